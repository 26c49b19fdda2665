"""How well a mixture fits: how certain the component of a row is, and how likely a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.results import FitLevel, Quality
from gramian.results.quality import MOST

SOME = 6  # names in a sentence
DOUBTED = 0.1  # uncertainty of a row's component from which on it is in doubt
MEANING = (
    "How far apart the components are. Whether normal components are right for these data is not said by this: BIC "
    "compares mixtures with each other only, and components may share one group that is not normal."
)

TOO_FEW = 5.0  # numbers of the table for each parameter, below which they are hardly estimated
FEW_VALUES = 5  # that a column takes: a normal component can sit on one of them
CROWDED = (
    "Numbers of the table for each parameter that was estimated. Where they are few, another sample would give other "
    "components, and BIC, which holds for large samples, tends to take too many. Fewer components, a model of fewer "
    "parameters (EII, EEE, VII), fewer columns or a prior make it steadier."
)
STEPPED = (
    "Columns that take a few values only, though normal components are for values that vary continuously. A component "
    "can sit on one value, where its density has no bound, and BIC then asks for a component for every combination of "
    "values. Leave such columns out of the fit, or take one as the label."
)


def count_values(values: Any) -> int:
    """How many values a column takes, where they are few for its rows; 0 where it may be continuous.

    Examples
    --------
    >>> count_values([0.0, 1.0] * 5), count_values([0.1, 0.4, 0.2, 0.9]), count_values(range(20))
    (2, 0, 0)
    """
    seen = np.asarray(values, dtype=float)
    seen = seen[~np.isnan(seen)]
    count = len(np.unique(seen))
    return count if count <= FEW_VALUES and len(seen) > 4 * count else 0  # of a handful of rows every column has few


def rank_columns(mixture: Any, X: Any = None) -> NDArray[np.intp]:
    """Columns by how far apart the components are in them, in standard deviations within, the farthest first.

    Columns of ``X`` that take a few values come last: points over these lie on one another.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> X = np.array([[0.0, 0.0], [0.1, 1.0], [9.0, 0.1], [9.1, 1.1], [0.2, 0.5], [9.2, 0.4]])
    >>> rank_columns(GaussianMixture(2, covariance_type="diag", random_state=0).fit(X).mixture_).tolist()
    [0, 1]
    """
    weights, means, inside = mixture.weights, mixture.means, np.diagonal(mixture.matrices, axis1=1, axis2=2)
    centre = weights @ means
    between = weights @ (means - centre) ** 2
    within = weights @ inside
    stepped = np.array([X is not None and count_values(X[:, j]) > 0 for j in range(len(centre))])
    return np.lexsort((-between / np.where(within > 0, within, 1.0), stepped))


def measure_mixture(
    responsibilities: Any,
    log_likelihood: float,
    sample_weight: Any = None,
    *,
    n_parameters: int | None = None,
    columns: Mapping[str, Any] | None = None,
) -> list[Quality]:
    """The mean probability of the component that each row is given, and the mean log-likelihood of a row.

    Parameters
    ----------
    responsibilities : array of shape (n, K)
        Probability of each component for each row.
    log_likelihood : float
        Of all rows.
    sample_weight : array of shape (n,), optional
        How often each row was observed.
    n_parameters : int, optional
        That were estimated: with ``columns``, few numbers for each are doubted.
    columns : mapping of str to array of shape (n,), optional
        The table. Columns of a few values are doubted.

    Returns
    -------
    list of Quality
        Doubtful where most rows are, of several components, and where the table is not for such a model.

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
    found = [
        Quality("certainty", "certainty of a row's component", sure, text, level, MEANING),
        Quality("log_likelihood_per_row", "log-likelihood of a row", mean, f"{mean:.4g}, mean"),
    ]
    if columns is None or best.size == 0:
        return found
    table = {name: np.asarray(values, dtype=float) for name, values in columns.items()}
    stepped = {name: count for name, values in table.items() if (count := count_values(values))}
    if stepped:
        some = ", ".join(f"{name} ({count})" for name, count in list(stepped.items())[:SOME])
        text = f"{some}{', …' * (len(stepped) > SOME)}: no normal distribution, and components may be these values"
        name, label = "stepped_columns", "columns of few values"
        found.append(Quality(name, label, len(stepped), text, FitLevel.DOUBTFUL, STEPPED))
    if n_parameters:
        per = float(sum(weight[~np.isnan(values)].sum() for values in table.values())) / n_parameters
        text = f"{per:.3g}: {n_parameters:,} parameters from {weight.sum():,g} rows of {len(table):,} columns"
        level = FitLevel.DOUBTFUL if per < TOO_FEW else FitLevel.FACT
        found.append(Quality("numbers_per_parameter", "numbers for each parameter", per, text, level, CROWDED))
    return found
