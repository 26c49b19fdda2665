r"""The log-likelihood of a sample in free coordinates, with its gradient and information.

Coordinates are measured in the spread of one observation: derivatives that have no formula are central differences of
sixth order with steps of less than a hundredth of it, whose errors are near those of rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.likelihood.families._links import REAL
from gramian.likelihood.families.base import Family, nodes
from gramian.likelihood.sample import Sample

__all__ = ["Problem"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SIXTH = ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0))  # multiples of the step, and their shares in the difference
SECOND = ((1, 0.5),)
SLOPE_STEP = 0.004  # of the spread of one observation, for derivatives of log-probabilities
CURVE_STEP = 0.01  # and for derivatives of the gradient


class Problem:
    """What there is to maximise: a family, records in units of order 1, and which coordinates are free.

    Parameters
    ----------
    family : Family
        Its log-density and probabilities.
    sample : Sample
        The records.
    free : ndarray of bool
        Which coordinates may move.
    """

    def __init__(self, family: Family, sample: Sample, free: Mask | None = None) -> None:
        self.family, self.evaluations = family, 0
        seen = sample.observed()
        seen = seen.merged() if family.discrete else seen
        self.sample, self.total = seen, seen.total
        self.free: Mask = np.ones(len(family.parameters), dtype=bool) if free is None else free
        self.steps = np.ones(len(family.parameters))
        exact = seen.exact
        self.x, self.x_weight = seen.lower[exact], seen.weight[exact]
        first, last = self._window(seen.left, seen.right)
        ends = np.column_stack([np.maximum(seen.lower, first), np.minimum(seen.upper, last)])[~exact]
        pairs, which = np.unique(ends, axis=0, return_inverse=True)  # censoring at one time is one integral
        self.a, self.b = pairs[:, 0], pairs[:, 1]
        self.b_weight = np.asarray(np.bincount(which.ravel(), seen.weight[~exact], len(pairs)), dtype=np.float64)
        c, d, self.d_weight = seen.windows()
        self.c, self.d = self._window(c, d)

    def only(self, free: Mask) -> Problem:
        """Return the same problem with other free coordinates."""
        twin = object.__new__(Problem)
        twin.__dict__.update(self.__dict__)
        twin.free = free
        return twin

    def without_points(self) -> Problem:
        """Return the same problem with its intervals and windows only."""
        twin = self.only(self.free)
        twin.x, twin.x_weight = np.empty(0), np.empty(0)
        return twin

    @property
    def has_records(self) -> bool:
        """Whether anything is left to sum over."""
        return bool(len(self.x) or len(self.a) or len(self.c))

    def theta(self, phi: Vector) -> Vector:
        """The parameters at φ."""
        return np.array([p.link.natural(v) for p, v in zip(self.family.parameters, phi, strict=True)])

    def slopes(self, phi: Vector) -> Vector:
        """dθ/dφ."""
        return np.array([p.link.slope(v) for p, v in zip(self.family.parameters, phi, strict=True)])

    def phi(self, theta: Vector) -> Vector:
        """The coordinates of θ."""
        return np.array([p.link.free(v) for p, v in zip(self.family.parameters, theta, strict=True)])

    def value(self, phi: Vector) -> float:
        """The log-likelihood at φ; −∞ where it is no number."""
        return self.value_at(self.theta(phi))

    def value_at(self, theta: Vector) -> float:
        """The log-likelihood at θ."""
        self.evaluations += 1
        with np.errstate(all="ignore"):
            parts = [self.x_weight @ self.family.log_density(self.x, theta)] if len(self.x) else []
            if len(self.a):
                parts.append(self.b_weight @ self.family.log_interval(self.a, self.b, theta))
            if len(self.c):
                parts.append(-(self.d_weight @ self.family.log_interval(self.c, self.d, theta)))
            total = float(np.sum(parts))
        return -np.inf if np.isnan(total) or total == np.inf else total

    def gradient(self, phi: Vector) -> Vector:
        """The score at φ, 0 in coordinates that are held."""
        self.evaluations += 1
        g = np.zeros(len(phi))
        with np.errstate(all="ignore"):
            if len(self.x):
                g += self._point_score(phi)
            if len(self.a):
                g += self._interval_score(self.a, self.b, self.b_weight, phi)
            if len(self.c):
                g -= self._interval_score(self.c, self.d, self.d_weight, phi)
        return np.where(self.free, g, 0.0)

    def information(self, phi: Vector, fine: bool = False) -> Matrix:
        """Minus the second derivatives at φ in the free coordinates; ``fine`` for standard errors."""
        which = np.flatnonzero(self.free)
        H = self._differences(phi, which, fine)
        needed = self._spreads(H, which)
        ratio = needed / self.steps[which]
        if np.any((ratio < 0.5) | (ratio > 100.0)) and np.all(np.isfinite(needed)):
            self.steps = self.steps.copy()
            self.steps[which] = needed
            H = self._differences(phi, which, fine)
        return 0.5 * (H + H.T)

    def _spreads(self, H: Matrix, which: npt.NDArray[np.intp]) -> Vector:
        """What one observation tells of each coordinate; those that are logarithms are never moved by more than 1."""
        with np.errstate(divide="ignore"):
            spread = 1.0 / np.sqrt(np.abs(np.diag(H)) / self.total)
        bounded = np.array([self.family.parameters[j].link != REAL for j in which])
        return np.where(bounded | np.isinf(spread), np.minimum(spread, 1.0), spread)

    def _differences(self, phi: Vector, which: npt.NDArray[np.intp], fine: bool) -> Matrix:
        H = np.zeros((len(which), len(which)))
        for row, j in enumerate(which):
            h = CURVE_STEP * self.steps[j]
            for k, share in SIXTH if fine else SECOND:
                up, down = (self.gradient(_moved(phi, j, sign * k * h))[which] for sign in (1, -1))
                with np.errstate(invalid="ignore"):
                    H[row] -= share * (up - down) / h
        return H

    def _window(self, c: Vector, d: Vector) -> tuple[Vector, Vector]:
        """A window [c, d] as an interval (c, d]: of whole numbers, from the one before c."""
        return (np.ceil(c) - 1.0, d) if self.family.discrete else (c, d)

    def _point_score(self, phi: Vector) -> Vector:
        score = self.family.score(self.x, self.theta(phi))
        if score is None:
            every = np.arange(len(phi))
            return self._by_differences(lambda t: self.family.log_density(self.x, t), self.x_weight, phi, every)
        return np.asarray(score @ self.x_weight) * self.slopes(phi)

    def _interval_score(self, a: Vector, b: Vector, weight: Vector, phi: Vector) -> Vector:
        """Σw ∂ln P/∂φ: by how fast quantiles pass the ends; of narrow intervals the mean score inside."""
        family, theta = self.family, self.theta(phi)
        ends = family.velocity(a, theta), family.velocity(b, theta)
        every = np.arange(len(phi))
        if ends[0] is None or ends[1] is None:
            return self._by_differences(lambda t: family.log_interval(a, b, t), weight, phi, every)
        P = family.log_interval(a, b, theta)
        flow = self._flow(a, ends[0], P, theta) - self._flow(b, ends[1], P, theta)
        narrow = family.narrow(a, b, theta)
        if narrow.any():
            flow[:, narrow] = self._mean_score(a[narrow], b[narrow], theta)
        g = np.asarray(flow @ weight) * self.slopes(phi)
        if family.unmoved:
            rest = self._by_differences(lambda t: family.log_interval(a, b, t), weight, phi, family.unmoved)
            g = np.where(np.isin(every, family.unmoved), rest, g)
        return g

    def _flow(self, x: Vector, speed: Matrix, P: Vector, theta: Vector) -> Matrix:
        ratio = np.exp(self.family.log_density(x, theta) - P)
        return np.where(np.isinf(x) | (speed == 0.0) | (ratio == 0.0), 0.0, ratio * speed)

    def _mean_score(self, a: Vector, b: Vector, theta: Vector) -> Matrix:
        x, weight = nodes(a, b)
        f = self.family.log_density(x.ravel(), theta).reshape(x.shape)
        share = weight * np.exp(f - f.max(axis=0))
        score: Any = self.family.score(x.ravel(), theta)
        return np.asarray((score.reshape(-1, *x.shape) * share).sum(axis=1) / share.sum(axis=0))

    def _by_differences(self, f: Callable[[Vector], Vector], weight: Vector, phi: Vector, which: Any) -> Vector:
        """Σw ∂f/∂φ: differences record by record, whose rounding errors do not add up."""
        g = np.zeros(len(phi))
        for j in (j for j in which if self.free[j]):
            h = SLOPE_STEP * self.steps[j]
            for k, share in SIXTH:
                up, down = (f(self.theta(_moved(phi, j, sign * k * h))) for sign in (1, -1))
                g[j] += share * (weight @ (up - down)) / h
        return g


def _moved(phi: Vector, j: Any, by: float) -> Vector:
    moved = phi.copy()
    moved[j] += by
    return moved
