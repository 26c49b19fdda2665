r"""The sufficient statistics of a mixture, and what data must offer to give them.

Sums are kept about one point per component, its current centre: then a maximisation step loses no digits, wherever the
data lie and however small a component is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gramian.compute.mixture import Sums
from gramian.mixture.parameters import Mixture

__all__ = ["Data", "Statistics"]

Array = npt.NDArray[np.float64]


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

    @classmethod
    def of(cls, sums: Sums, about: Array, origin: Array, weight: float) -> Statistics:
        """Statistics from the sums of a hot loop about some points."""
        return cls(sums.counts, sums.first, sums.second, about, sums.log_likelihood, weight, origin)

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
