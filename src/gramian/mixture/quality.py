"""How well a mixture fits: how certain the component of a row is, and how likely a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.results import FitLevel, Quality
from gramian.results.quality import MOST

DOUBTED = 0.1  # uncertainty of a row's component from which on it is in doubt
MEANING = (
    "How far apart the components are. Whether normal components are right for these data is not said by this: BIC "
    "compares mixtures with each other only, and components may share one group that is not normal."
)


def measure_mixture(responsibilities: Any, log_likelihood: float, sample_weight: Any = None) -> list[Quality]:
    """The mean probability of the component that each row is given, and the mean log-likelihood of a row.

    Parameters
    ----------
    responsibilities : array of shape (n, K)
        Probability of each component for each row.
    log_likelihood : float
        Of all rows.
    sample_weight : array of shape (n,), optional
        How often each row was observed.

    Returns
    -------
    list of Quality
        Doubtful where most rows are, of several components.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.quality import measure_mixture
    >>> [round(measure.value, 3) for measure in measure_mixture(np.array([[0.99, 0.01], [0.3, 0.7]]), -5.0)]
    [0.845, -2.5]
    """
    best = np.max(np.asarray(responsibilities, dtype=float), axis=1)
    weight = np.ones(len(best)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    sure, in_doubt = float(np.average(best, weights=weight)), 1.0 - best > DOUBTED
    text = f"{sure:.1%} on average; {np.count_nonzero(in_doubt):,} of {len(best):,} rows below {1 - DOUBTED:.0%}"
    level = FitLevel.DOUBTFUL if float(np.average(in_doubt, weights=weight)) > MOST else FitLevel.FACT
    mean = log_likelihood / float(weight.sum())
    return [
        Quality("certainty", "certainty of a row's component", sure, text, level, MEANING),
        Quality("log_likelihood_per_row", "log-likelihood of a row", mean, f"{mean:.4g}, mean"),
    ]
