r"""The sufficient statistics of a mixture, and rows as data that give them.

Sums are kept about one point per component, its current centre: then a maximisation step loses no digits, wherever the
data lie and however small a component is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gramian.compute import cpu
from gramian.compute.mixture import Sums, expectation, rounding_size, weighted_sums
from gramian.compute.moments import Moments, block_moments
from gramian.likelihood.mixture import missing
from gramian.likelihood.mixture.given import numbers
from gramian.likelihood.mixture.models import DIAGONAL
from gramian.likelihood.mixture.parameters import Mixture
from gramian.likelihood.observed import survey
from gramian.sources import Block, Source, memory_budget

__all__ = ["Data", "Rows", "Statistics"]

Array = npt.NDArray[np.float64]

EXPANDED = 1e4  # times the rounding of float64 is what the expanded way may lose: 1e-12
TEMPORARIES = 6  # copies of a block that rows with missing cells take


@dataclass(frozen=True, eq=False)
class Statistics:
    r"""Sums over data at one mixture: all that a maximisation step needs.

    Attributes
    ----------
    counts : ndarray of shape (K,)
        :math:`N_k=\sum_i w_ir_{ik}`.
    first : ndarray of shape (K, d)
        :math:`\sum wr(x-a_k)`.
    second : ndarray of shape (K, d, d) or (K, d)
        :math:`\sum wr(x-a_k)(x-a_k)^T`, or its diagonal.
    about : ndarray of shape (K, d)
        The points a, measured from the mixture's origin.
    log_likelihood : float
        Of the data, at the mixture they were taken at.
    weight : float
        Σw.
    origin : ndarray of shape (d,)
        What the points are measured from.
    """

    counts: Array
    first: Array
    second: Array
    about: Array
    log_likelihood: float
    weight: float
    origin: Array

    @property
    def diagonal(self) -> bool:
        """Whether only the diagonal of the second moments is kept."""
        return self.second.ndim == 2

    @property
    def centres(self) -> Array:
        """Means of the components, from the origin; of an empty one, the point its sums are about."""
        N = self.counts[:, None]
        return self.about + np.divide(self.first, N, out=np.zeros_like(self.first), where=N > 0)

    def scatter(self, centres: Array) -> Array:
        """Σwr(x−m)(x−m)ᵀ about any points m."""
        return self.moved(centres).second

    def moved(self, about: Array) -> Statistics:
        """The same sums about other points."""
        step = self.about - about
        N = self.counts[:, None]
        if self.diagonal:
            second = self.second + step * (2 * self.first + N * step)
        else:
            cross = step[:, :, None] * self.first[:, None, :]
            second = self.second + cross + cross.transpose(0, 2, 1)
            second += N[:, :, None] * step[:, :, None] * step[:, None, :]
        return self._with(self.counts, self.first + N * step, second, about)

    def scaled(self, factor: float) -> Statistics:
        """The statistics of data that each count ``factor`` times."""
        return Statistics(
            factor * self.counts,
            factor * self.first,
            factor * self.second,
            self.about,
            factor * self.log_likelihood,
            factor * self.weight,
            self.origin,
        )

    def merge(self, other: Statistics) -> Statistics:
        """The statistics of both sets of data together, about this one's points."""
        if not np.array_equal(self.origin, other.origin):
            raise ValueError("Statistics measured from different origins cannot be merged. Use one origin.")
        b = other if other.about is self.about else other.moved(self.about)
        return Statistics(
            self.counts + b.counts,
            self.first + b.first,
            self.second + b.second,
            self.about,
            self.log_likelihood + b.log_likelihood,
            self.weight + b.weight,
            self.origin,
        )

    def _with(self, counts: Array, first: Array, second: Array, about: Array) -> Statistics:
        return Statistics(counts, first, second, about, self.log_likelihood, self.weight, self.origin)


class Data(Protocol):
    """What can be fitted: anything that gives statistics at a mixture."""

    @property
    def origin(self) -> Array:
        """What to measure from."""

    @property
    def variances(self) -> Array:
        """Spread of the columns."""

    @property
    def weight(self) -> float:
        """Sum of the weights."""

    def expect(self, mixture: Mixture) -> Statistics:
        """One expectation step."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a source with their weights, looked at once.

    Attributes
    ----------
    source : Source
        Where the rows are.
    sample_weight : ndarray of shape (n,) or None
        How often each counts.
    origin, variances : ndarray of shape (d,)
        Means and variances of the columns, over observed cells.
    weight : float
        Σw.
    incomplete : bool
        Whether any cell is NaN.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.likelihood.mixture import Mixture, Rows
    >>> data = Rows.of(gramian.open(np.array([[0.0], [1.0], [5.0]])))
    >>> data.expect(Mixture.of([0.5, 0.5], [[0.0], [5.0]], [1.0, 1.0], "E", origin=[0.0])).counts.round(3)
    array([1.999, 1.001])
    """

    source: Source
    sample_weight: Array | None
    origin: Array
    variances: Array
    weight: float
    incomplete: bool

    @classmethod
    def of(cls, source: Source, sample_weight: Any | None = None) -> Rows:
        """Look at a source: where its columns lie, how wide they are, whether cells are missing."""
        w = None if sample_weight is None else numbers("sample_weight", sample_weight)
        if source.sparse:
            raise ValueError(
                "Mixtures take dense data: the responsibilities of sparse rows are dense. Use X.toarray()."
            )
        with np.errstate(all="ignore"):
            seen = source.reduce(lambda b: _moments(b, w), Moments.merge)
        total = float(np.sum(seen.scatter))
        if np.isfinite(total):
            return cls(source, w, np.asarray(seen.mean), seen.scatter / seen.weight, seen.weight, False)
        cells = survey(source, w)  # names what cannot be used; otherwise NaN, if only in rows without weight
        return cls(source, w, cells.mean, cells.scatter / cells.count, cells.weight, True)

    def expect(self, mixture: Mixture) -> Statistics:
        """One expectation step: one pass."""
        expanded = not self.incomplete and rounding_size(mixture.components, self._size(mixture)) < EXPANDED

        def step(X: Array, w: Array | None) -> Sums:
            if self.incomplete:
                return _incomplete(X, w, mixture)
            return expectation(X, w, mixture.components, expanded=expanded)

        return self._reduce(step, mixture.centres, mixture.origin)

    def assigned(self, shares: Any, k: int, model: str, origin: Array | None = None) -> Statistics:
        """Statistics of rows that are given to components, by labels (n,) or by responsibilities (n, K): for a start.

        Missing cells count as the mean of their column.
        """
        given, start = np.asarray(shares), self.origin if origin is None else origin
        full = model not in DIAGONAL
        if given.shape[0] != self.source.shape[0]:
            raise ValueError(f"There are {given.shape[0]} labels for {self.source.shape[0]} rows.")
        rough = self._assigned(given, np.zeros((k, len(start))), start, full=False)
        found = self._assigned(given, rough.centres, start, full=full)  # squares about the means: no digits are lost
        return found.moved(found.centres)

    def _assigned(self, given: Array, centres: Array, origin: Array, *, full: bool) -> Statistics:
        def statistic(block: Block) -> Statistics:
            w = _part(self.sample_weight, block)
            part = given[block.start : block.stop]

            def shares(rows: slice) -> Array:
                return _shares(part[rows], len(centres), None if w is None else w[rows])

            X = _values(block)
            X = np.where(np.isnan(X), self.origin, X) if self.incomplete else X
            sums = weighted_sums(X, shares, origin, centres, full=full)
            return _statistics(sums, centres, origin, float(np.sum(sums.counts)))

        return self.source.reduce(statistic, Statistics.merge)

    def _reduce(self, step: Callable[[Array, Array | None], Sums], about: Array, origin: Array) -> Statistics:
        def statistic(block: Block) -> Statistics:
            w = _part(self.sample_weight, block)
            weight = float(block.stop - block.start if w is None else w.sum())
            return _statistics(step(_values(block), w), about, origin, weight)

        rows = max(1, memory_budget() // 8 // (8 * TEMPORARIES * len(origin))) if self.incomplete else None
        return self.source.reduce(statistic, Statistics.merge, rows)

    def _size(self, mixture: Mixture) -> Array:
        """Root mean square of the columns, measured from the mixture's origin."""
        return np.asarray(np.sqrt(self.variances + (self.origin - mixture.origin) ** 2))


def _moments(block: Block, w: Array | None) -> Moments:
    X = _values(block)
    return block_moments(cpu, X, _part(w, block), np.empty((0, X.shape[1])), full=False)


def _statistics(sums: Sums, about: Array, origin: Array, weight: float) -> Statistics:
    return Statistics(sums.counts, sums.first, sums.second, about, sums.log_likelihood, weight, origin)


def _values(block: Block) -> Array:
    """The values of a block as NumPy has them, in whichever precision."""
    values = np.asarray(block.values.cpu() if hasattr(block.values, "cpu") else block.values)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _part(w: Array | None, block: Block) -> Array | None:
    return None if w is None else w[block.start : block.stop]


def _shares(given: Array, k: int, w: Array | None) -> Array:
    """Responsibilities of shape (k, t) from labels or from responsibilities (t, k), times weights."""
    R = (given == np.arange(k)[:, None]).astype(np.float64) if given.ndim == 1 else np.array(given.T, dtype=np.float64)
    if w is not None:
        R *= w
    return R


def _incomplete(X: Array, w: Array | None, mixture: Mixture) -> Sums:
    """Rows that are complete take the short way."""
    partial = np.isnan(X).any(axis=1)
    if w is not None:
        partial &= w > 0
        X, w, partial = X[w > 0], w[w > 0], partial[w > 0]
    whole = expectation(X[~partial], None if w is None else w[~partial], mixture.components)
    rest = missing.expectation(X[partial], None if w is None else w[partial], mixture)
    return Sums(
        whole.counts + rest.counts,
        whole.first + rest.first,
        whole.second + rest.second,
        whole.log_likelihood + rest.log_likelihood,
    )
