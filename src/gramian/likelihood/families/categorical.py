r"""The categorical family: one probability for each label.

.. math:: \hat\theta_k = n_k/n,\qquad
    \operatorname{Cov}\hat\theta = (\operatorname{diag}\hat\theta - \hat\theta\hat\theta^T)/n

With θ_k held, the others share what is left as they are observed, so that the profile of θ_k is that of a coin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import xlogy

from gramian.inputs.checks import check_weights
from gramian.likelihood.families.base import FormulaFit, Joint, Profile

Array = npt.NDArray[np.float64]


class Categorical(Joint):
    """Labels of any kind, each with a probability of its own; parameters ``theta[label]``.

    Parameters
    ----------
    labels : sequence, optional
        All possible labels; by default those observed. One that is listed and never observed has θ̂ = 0.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("categorical", ["a", "b", "a", "c"]).estimates
    {'theta[a]': 0.5, 'theta[b]': 0.25, 'theta[c]': 0.25}
    """

    name = "categorical"
    discrete = True

    def __init__(self, labels: Any = None) -> None:
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None and (self.labels.ndim != 1 or len(np.unique(self.labels)) != len(self.labels)):
            raise ValueError("labels must be a list without repetitions.")

    def read(self, x: Any) -> Any:
        """A list of labels; a column is one too."""
        if np.ma.isMaskedArray(x) and np.ma.getmaskarray(x).any():
            raise ValueError("Some labels are masked: leave them out, as data.compressed() does.")
        values = np.asarray(x)
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.ndim != 1 or not len(values):
            raise ValueError(f"data has shape {values.shape}; expected a list of labels.")
        missing = values != values
        if values.dtype == object:
            missing = np.array([v is None or v != v for v in values])
        bad = np.flatnonzero(missing)
        if len(bad):
            raise ValueError(f"Label {bad[0]} is missing ({values[bad[0]]}): leave it out, or give it a name.")
        if values.dtype == object and len({isinstance(v, str) for v in values}) > 1:
            raise ValueError("Some labels are text and some are not, and have no order: make all of them text.")
        return values

    def formula(self, data: Any, sample_weight: Any) -> tuple[Categorical, FormulaFit]:
        """Shares of the labels."""
        values = self.read(data)
        w = check_weights(sample_weight, len(values))
        law = self if self.labels is not None else Categorical(np.unique(values[w > 0]))
        index, kinds = law._index(values[w > 0]), len(np.asarray(law.labels))
        counts = np.asarray(np.bincount(index, w[w > 0], kinds), dtype=np.float64)
        n = float(counts.sum())
        theta = counts / n
        covariance = (np.diag(theta) - np.outer(theta, theta)) / n
        at_end = (theta == 0) | (theta == 1)
        covariance[at_end, :] = covariance[:, at_end] = np.nan
        names = tuple(f"theta[{label}]" for label in np.asarray(law.labels))
        notes = tuple(
            f"{name} is {value:g}: the maximum is at the boundary; interval by profile"
            for name, value in zip(names, theta, strict=True)
            if value in (0.0, 1.0)
        )
        loglik = float(np.sum(xlogy(counts, theta)))
        shares = Shares(counts, n)
        seen = counts > 0
        score = float(np.sqrt(np.sum(theta[seen] * (counts[seen] / theta[seen] - n) ** 2) / n))
        return law, FormulaFit(names, theta, covariance, loglik, n, len(theta) - 1, score, shares, notes)

    def log_density(self, x: Any, values: Array) -> Array:
        """ln θ of each label."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values)[self._index(self.read(x))])

    def draw(self, values: Array, size: int, rng: np.random.Generator) -> Any:
        """Labels."""
        return rng.choice(np.asarray(self.labels), size=size, p=values)

    def _index(self, values: Any) -> npt.NDArray[np.intp]:
        labels = np.asarray(self.labels)
        order = np.argsort(labels)
        place = np.minimum(np.searchsorted(labels, values, sorter=order), len(labels) - 1)
        bad = np.flatnonzero(labels[order[place]] != values)
        if len(bad):
            raise ValueError(f"Label {values[bad[0]]!r} of observation {bad[0]} is none of {labels.tolist()}.")
        return np.asarray(order[place])

    def __repr__(self) -> str:
        return "Categorical()" if self.labels is None else f"Categorical({self.labels.tolist()})"


@dataclass(frozen=True, eq=False)
class Shares(Profile):
    """The profile of one probability: n_k heads in n flips."""

    counts: Array
    n: float

    def ends(self, j: int, drop: float) -> tuple[float, float]:
        """Where the deviance of the coin is ``drop``."""
        heads, tails = float(self.counts[j]), self.n - float(self.counts[j])
        top = float(xlogy(heads, heads / self.n) + xlogy(tails, tails / self.n))

        def excess(t: float) -> float:
            return 2.0 * (top - float(xlogy(heads, t) + xlogy(tails, 1.0 - t))) - drop

        share = heads / self.n
        low = brentq(excess, 1e-300, share, xtol=1e-15) if heads else 0.0
        high = brentq(excess, share, 1.0 - 1e-16, xtol=1e-15) if tails else 1.0
        return float(low), float(high)
