"""Estimates with their intervals, and intervals from the replicates of a bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from gramian.compute.threads import parallel
from gramian.results.tables import SHOWN, Tabular

Array = npt.NDArray[np.float64]

TILE = 2**19  # numbers sorted at a time


@dataclass(frozen=True, repr=False, eq=False)
class Interval(Tabular):
    """Estimates and how far to trust them; all arrays have the shape of the estimate.

    Attributes
    ----------
    estimate : ndarray
        What the model found.
    lower, upper : ndarray
        Ends of the interval.
    error : ndarray
        Standard error.
    bias : ndarray
        How much too high the estimate is on average, as far as that is known.
    rows, columns : tuple of str or None
        Names of the entries along the first axis and the second, where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import Interval
    >>> one = np.ones(2)
    >>> Interval(one, 0.5 * one, 2 * one, 0.3 * one, 0 * one, ("pca0", "pca1"))
    Interval
            estimate  lower  upper  error  bias
      pca0         1    0.5      2    0.3     0
      pca1         1    0.5      2    0.3     0
    """

    estimate: Array
    lower: Array
    upper: Array
    error: Array
    bias: Array
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None

    def covers(self, value: Any) -> npt.NDArray[np.bool_]:
        """Whether the intervals hold these values."""
        return np.asarray((self.lower <= value) & (value <= self.upper))

    def table(self) -> dict[str, Any]:
        """Return the columns estimate, lower, upper, error and bias, entries in row-major order."""
        return {name: getattr(self, name).ravel() for name in ("estimate", "lower", "upper", "error", "bias")}

    def _shown(self) -> dict[str, Any]:
        """Columns with the names of the entries, in row-major order; a number along an axis without names."""
        shape = self.estimate.shape
        axes = [names or range(size) for names, size in zip((self.rows, self.columns), shape, strict=False)]
        axes += [range(size) for size in shape[len(axes) :]]
        places = islice(np.ndindex(*shape), SHOWN)
        names = [", ".join(str(axes[d][i]) for d, i in enumerate(place)) for place in places]
        return {"": names} | self.table()


def bootstrap_intervals(
    estimate: Array,
    replicates: Array,
    level: float,
    method: str,
    rows: tuple[str, ...] | None = None,
    columns: tuple[str, ...] | None = None,
) -> Interval:
    """Interval, standard error and bias of every entry, from replicates along the first axis.

    Bias-corrected ends are the quantiles Φ(2z₀ ± z), with Φ(z₀) the share of replicates below the estimate.
    """
    count, tail = len(replicates), (1 - level) / 2
    flat, R = estimate.ravel(), replicates.reshape(len(replicates), -1)
    width = max(1, TILE // count)
    out = np.empty((4, flat.size))

    def work(share: Sequence[slice]) -> None:
        for tile in share:
            center, draws = flat[tile], R[:, tile]
            low, high = np.full(len(center), tail), np.full(len(center), 1 - tail)
            if method == "bc":
                below = np.mean((center > draws) + 0.5 * (center == draws), axis=0)
                z0 = ndtri(np.clip(below, 1 / (count + 1), count / (count + 1)))  # all to one side: as far as they tell
                low, high = ndtr(2 * z0 + ndtri(tail)), ndtr(2 * z0 - ndtri(tail))
            ordered = np.sort(draws, axis=0)
            out[0, tile], out[1, tile] = _quantile(ordered, low), _quantile(ordered, high)
            D = draws - center
            peak = float(np.abs(D).max(initial=0.0)) or 1.0  # so that squares neither overflow nor vanish
            out[2, tile], out[3, tile] = peak * np.std(D / peak, axis=0, ddof=1), np.mean(D, axis=0)

    parallel(work, [slice(start, start + width) for start in range(0, flat.size, width)])
    lower, upper, error, bias = (x.reshape(estimate.shape) for x in out)
    return Interval(estimate, lower, upper, error, bias, rows, columns)


def _quantile(ordered: Array, share: Array) -> Array:
    """Quantile of each column, at a share of its own, between the two nearest order statistics."""
    position = share * (len(ordered) - 1)
    below = np.minimum(position.astype(np.intp), len(ordered) - 2)
    columns = np.arange(ordered.shape[1])
    left, right = ordered[below, columns], ordered[below + 1, columns]
    return np.asarray(left + (position - below) * (right - left))
