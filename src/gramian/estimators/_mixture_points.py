"""What a start of a mixture looks at: a few thousand distinct points with weights, in the units of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import host, is_tensor, put
from gramian.estimators._mixture_cells import fill_cells
from gramian.likelihood.mixture import Bins, Maximiser, Mixture, Prior, Rows, fit_mixture
from gramian.sources import DenseSource

__all__ = ["MOST_POINTS", "Points", "points_of"]

Array = npt.NDArray[np.float64]

MOST_POINTS = 10_000  # rows that a start is found from, or 100 for each component: beyond, a sample of them
SPHERICAL = frozenset({"EII", "VII"})
FILLING = 50  # iterations of the one normal distribution that missing cells are filled from, for a start


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct points, in a fixed order whatever the order and repetition of the rows they come from.

    Attributes
    ----------
    values : ndarray of shape (m, d)
        Points, measured from the data's origin.
    weights : ndarray of shape (m,)
        How often each was seen.
    units : ndarray of shape (d,)
        What distances are measured in: standard deviations of the columns, or 1 where the model is spherical.
    """

    values: Array
    weights: Array
    units: Array

    @property
    def scaled(self) -> Array:
        """Points in their units."""
        return np.asarray(self.values / self.units)

    @property
    def rows(self) -> Rows:
        """The same points as data for a fit."""
        return Rows.of(DenseSource(self.values), self.weights)


def points_of(data: Rows | Bins, model: str, k: int, rng: np.random.RandomState) -> Points:
    """Return the distinct rows of data, or of a sample where they are many; of bins, the middles.

    A weight is the row so many times: the points and the draws from them are the same either way.
    """
    D, w = _middles(data) if isinstance(data, Bins) else _rows(data, max(MOST_POINTS, 100 * k), rng)
    if np.isnan(D).any():
        D = _filled(D, w)
    D, w = _distinct(D, w)
    spread = np.sqrt(np.maximum(w @ (D - w @ D / w.sum()) ** 2 / w.sum(), 0.0))
    units = np.ones(D.shape[1]) if model in SPHERICAL else np.where(spread > 0, spread, 1.0)
    return Points(D, w, units)


def _rows(data: Rows, most: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    n, d = data.source.shape
    w = np.ones(n) if data.sample_weight is None else data.sample_weight
    if n > most:
        ends = np.cumsum(w)
        drawn = np.searchsorted(ends, rng.random_sample(most) * ends[-1], side="right")
        w = np.bincount(np.minimum(drawn, n - 1), minlength=n).astype(np.float64)
    chosen = np.flatnonzero(w > 0)
    out = np.empty((len(chosen), d))
    for block in data.source.blocks():
        first, last = np.searchsorted(chosen, (block.start, block.stop))
        mine = chosen[first:last] - block.start
        there = is_tensor(block.values)  # rows are gathered on their device: only those chosen leave it
        out[first:last] = host(block.values[put(mine, block.values.device)]) if there else block.values[mine]
    return out - data.origin, w[chosen]


def _middles(data: Bins) -> tuple[Array, Array]:
    """The middles of boxes that hold something, from the origin; an open box counts as wide as the median one."""
    taken = data.counts > 0
    low, high = data.lower[taken] - data.origin, data.upper[taken] - data.origin
    width = high - low
    known = np.isfinite(width)
    typical = np.array([np.median(x[i]) if i.any() else 0.0 for x, i in zip(width.T, known.T, strict=True)])
    low = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high) - typical, low)
    high = np.where(np.isinf(high), low + typical, high)
    return low + 0.5 * (high - low), data.counts[taken]


def _distinct(D: Array, w: Array) -> tuple[Array, Array]:
    """Equal rows together, sorted: so that repeated rows and weights give the same start."""
    order = np.lexsort(D.T[::-1])
    D, w = D[order], w[order]
    new = np.concatenate([[True], (D[1:] != D[:-1]).any(axis=1)])
    return np.ascontiguousarray(D[new]), np.asarray(np.bincount(np.cumsum(new) - 1, w), dtype=np.float64)


def _filled(D: Array, w: Array) -> Array:
    """Missing cells as one normal distribution expects them, given those that are there."""
    data = Rows.of(DenseSource(D), w)
    start = Mixture.of([1.0], np.zeros((1, D.shape[1])), np.diag(np.where(data.variances > 0, data.variances, 1.0)))
    one = fit_mixture(data, start, Maximiser("EEE", Prior.floor(data)), max_iterations=FILLING)
    return fill_cells(D, one.mixture)
