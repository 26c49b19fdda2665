"""The likelihood of a family and a sample in free coordinates, and its maximum by Newton's method.

A likelihood with a kink at every point (Laplace's, where records are censored or truncated) is maximised in two steps:
for each location the scale by Newton's method, and the location by bisection on the slopes of this profile to the left
and right of a point, which the kinks make different.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.likelihood.families.base import NARROW_NODES, REAL, Family, nodes
from gramian.likelihood.sample import Sample

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SIXTH = ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0))  # multiples of the step, and their shares in the difference
SECOND = ((1, 0.5),)
SLOPE_STEP = 0.004  # of the spread of one observation, for derivatives of log-probabilities
CURVE_STEP = 0.01  # and for derivatives of the gradient


def sum_weighted(weight: Array, values: Array) -> Any:
    """Σw·value over the last axis, by NumPy's pairwise sums.

    A product of BLAS wakes its threads from 10,000 values on, and beside another process waits for them: 6 ms of what
    takes 0.02 ms.
    """
    return np.sum(weight * values, axis=-1)


def close_window(family: Family, c: Array, d: Array) -> tuple[Array, Array]:
    """A window [c, d] as an interval (c, d]: of whole numbers, from the one before c."""
    return (np.ceil(c) - 1.0, d) if family.discrete else (c, d)


class LikelihoodProblem:
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
        seen = seen.merge_equal() if family.discrete else seen
        self.sample, self.total = seen, seen.total
        self.free: Mask = np.ones(len(family.parameters), dtype=bool) if free is None else free
        self.steps = np.ones(len(family.parameters))
        exact = seen.exact
        self.x, self.x_weight = seen.lower[exact], seen.weight[exact]
        first, last = close_window(family, seen.left, seen.right)
        ends = np.column_stack([np.maximum(seen.lower, first), np.minimum(seen.upper, last)])[~exact]
        pairs, which = np.unique(ends, axis=0, return_inverse=True)  # censoring at one time is one integral
        self.a, self.b = pairs[:, 0], pairs[:, 1]
        self.b_weight = np.asarray(np.bincount(which.ravel(), seen.weight[~exact], len(pairs)), dtype=np.float64)
        c, d, self.d_weight = seen.windows()
        self.c, self.d = close_window(family, c, d)

    def only(self, free: Mask) -> LikelihoodProblem:
        """Return the same problem with other free coordinates."""
        twin = copy(self)
        twin.free = free
        return twin

    def theta(self, phi: Array) -> Array:
        """The parameters at φ."""
        return np.array([p.link.natural(v) for p, v in zip(self.family.parameters, phi, strict=True)])

    def slopes(self, phi: Array) -> Array:
        """dθ/dφ."""
        return np.array([p.link.slope(v) for p, v in zip(self.family.parameters, phi, strict=True)])

    def phi(self, theta: Array) -> Array:
        """The coordinates of θ."""
        return np.array([p.link.free(v) for p, v in zip(self.family.parameters, theta, strict=True)])

    def value(self, phi: Array) -> float:
        """The log-likelihood at φ; −∞ where it is no number."""
        return self.value_at(self.theta(phi))

    def value_at(self, theta: Array) -> float:
        """The log-likelihood at θ."""
        self.evaluations += 1
        with np.errstate(all="ignore"):
            # eq: mle-principle
            parts = [sum_weighted(self.x_weight, self.family.log_density(self.x, theta))] if len(self.x) else []
            if len(self.a):
                # eq: mle-intervals
                parts.append(sum_weighted(self.b_weight, self.family.log_interval(self.a, self.b, theta)))
            if len(self.c):
                parts.append(-sum_weighted(self.d_weight, self.family.log_interval(self.c, self.d, theta)))
            total = float(np.sum(parts))
        return -np.inf if np.isnan(total) or total == np.inf else total

    def gradient(self, phi: Array) -> Array:
        """The score at φ, 0 in coordinates that are held."""
        self.evaluations += 1
        g = np.zeros(len(phi))
        with np.errstate(all="ignore"):
            if len(self.x):
                score = self.family.score(self.x, self.theta(phi))
                if score is None:
                    every = np.arange(len(phi))
                    density = lambda t: self.family.log_density(self.x, t)  # noqa: E731
                    g += self._by_differences(density, self.x_weight, phi, every)
                else:
                    g += sum_weighted(self.x_weight, score) * self.slopes(phi)
            if len(self.a):
                g += self._interval_score(self.a, self.b, self.b_weight, phi)
            if len(self.c):
                g -= self._interval_score(self.c, self.d, self.d_weight, phi)
        return np.where(self.free, g, 0.0)

    def scores(self, phi: Array) -> Array:
        """The score of each record, one column each, without weights: their weighted sum is the gradient."""
        seen, every = self.sample, np.arange(len(phi))
        S = np.zeros((len(phi), len(seen.weight)))
        with np.errstate(all="ignore"):
            if len(self.x):
                score = self.family.score(self.x, self.theta(phi))
                if score is None:
                    S[:, seen.exact] = self._record_differences(
                        lambda t: self.family.log_density(self.x, t), phi, every, len(self.x)
                    )
                else:
                    S[:, seen.exact] = np.asarray(score) * self.slopes(phi)[:, None]
            sides = np.broadcast_arrays(seen.lower, seen.upper, *close_window(self.family, seen.left, seen.right))
            low, high, first, last = sides
            if len(self.a):
                ends = np.column_stack([np.maximum(low, first), np.minimum(high, last)])[~seen.exact]
                pairs, which = np.unique(ends, axis=0, return_inverse=True)
                S[:, ~seen.exact] = self._interval_scores(pairs[:, 0], pairs[:, 1], phi)[:, which.ravel()]
            if len(self.c):
                pairs, which = np.unique(np.column_stack([first, last]), axis=0, return_inverse=True)
                closed = np.isfinite(pairs).any(axis=1)
                through = np.zeros((len(phi), len(pairs)))
                through[:, closed] = self._interval_scores(pairs[closed, 0], pairs[closed, 1], phi)
                S -= through[:, which.ravel()]
        return np.where(self.free[:, None], S, 0.0)

    def information(self, phi: Array, fine: bool = False) -> Array:
        """Minus the second derivatives at φ in the free coordinates; ``fine`` for standard errors."""
        which = np.flatnonzero(self.free)
        H = self._differences(phi, which, fine)
        with np.errstate(divide="ignore"):
            spread = 1.0 / np.sqrt(np.abs(np.diag(H)) / self.total)  # what one observation tells of each coordinate
        is_logarithm = np.array([self.family.parameters[j].link != REAL for j in which])
        needed = np.where(is_logarithm | np.isinf(spread), np.minimum(spread, 1.0), spread)
        ratio = needed / self.steps[which]
        if np.any((ratio < 0.5) | (ratio > 100.0)) and np.all(np.isfinite(needed)):
            self.steps = self.steps.copy()
            self.steps[which] = needed
            H = self._differences(phi, which, fine)
        return 0.5 * (H + H.T)

    def _differences(self, phi: Array, which: npt.NDArray[np.intp], fine: bool) -> Array:
        H = np.zeros((len(which), len(which)))
        for row, j in enumerate(which):
            h = CURVE_STEP * self.steps[j]
            for k, share in SIXTH if fine else SECOND:
                up, down = (self.gradient(_shift(phi, j, sign * k * h))[which] for sign in (1, -1))
                with np.errstate(invalid="ignore"):
                    H[row] -= share * (up - down) / h
        return H

    def _interval_score(self, a: Array, b: Array, weight: Array, phi: Array) -> Array:
        """Σw ∂ln P/∂φ."""
        return np.asarray(sum_weighted(weight, self._interval_scores(a, b, phi)))

    def _interval_scores(self, a: Array, b: Array, phi: Array) -> Array:
        """∂ln P/∂φ: by how fast quantiles pass the ends; of narrow intervals the mean score inside."""
        family, theta = self.family, self.theta(phi)
        every, narrow = np.arange(len(phi)), family.narrow(a, b, theta)
        low, high = a[~narrow], b[~narrow]
        ends = family.velocity(low, theta), family.velocity(high, theta)
        if ends[0] is None or ends[1] is None:
            return self._record_differences(lambda t: family.log_interval(a, b, t), phi, every, len(a))
        flow = np.empty((len(phi), len(a)))
        if len(low):
            P = family.log_interval(low, high, theta)
            flow[:, ~narrow] = self._flow(low, ends[0], P, theta) - self._flow(high, ends[1], P, theta)
        if narrow.any():
            x, share = nodes(a[narrow], b[narrow], NARROW_NODES)  # the score averaged over each, by Gauss–Legendre
            f = family.log_density(x.ravel(), theta).reshape(x.shape)
            share = share * np.exp(f - f.max(axis=0))
            score: Any = family.score(x.ravel(), theta)
            flow[:, narrow] = (score.reshape(-1, *x.shape) * share).sum(axis=1) / share.sum(axis=0)
        flow[np.isin(every, family.unmoved)[:, None] & ~narrow] = 0.0
        flow *= self.slopes(phi)[:, None]
        if family.unmoved and len(low):
            interval = lambda t: family.log_interval(low, high, t)  # noqa: E731
            flow[:, ~narrow] += self._record_differences(interval, phi, family.unmoved, len(low))
        return flow

    def _flow(self, x: Array, speed: Array, P: Array, theta: Array) -> Array:
        ratio = np.exp(self.family.log_density(x, theta) - P)
        return np.where(np.isinf(x) | (speed == 0.0) | (ratio == 0.0), 0.0, ratio * speed)

    def _by_differences(self, f: Callable[[Array], Array], weight: Array, phi: Array, which: Any) -> Array:
        """Σw ∂f/∂φ: differences record by record, whose rounding errors do not add up."""
        return np.asarray(sum_weighted(weight, self._record_differences(f, phi, which, len(weight))))

    def _record_differences(self, f: Callable[[Array], Array], phi: Array, which: Any, count: int) -> Array:
        """∂f/∂φ of each record, 0 in coordinates that are held."""
        g = np.zeros((len(phi), count))
        for j in (j for j in which if self.free[j]):
            h = SLOPE_STEP * self.steps[j]
            for k, share in SIXTH:
                up, down = (f(self.theta(_shift(phi, j, sign * k * h))) for sign in (1, -1))
                g[j] += share * (up - down) / h
        return g


def _shift(phi: Array, j: Any, by: float) -> Array:
    moved = phi.copy()
    moved[j] += by
    return moved


LONGEST = 2.0  # step in a coordinate, as in ln σ: a factor 7
FLAT = 1e-8  # of the information where the search began, below which nothing more is being learnt
FAR = 30.0  # change of a logarithm beyond which a parameter has run away: a factor e³⁰ = 1e13
LIMIT = 10.0  # and of one that makes the family another, as the degrees of freedom do: a factor 2e4
REAL_FAR = 1e12  # and of parameters that are no logarithms
POLISH = 1e-12  # standard errors that Newton's quadratic convergence reaches in one more step
HALVINGS = 50
IDLE = 4  # steps that gain nothing before the search ends
SHORTER = 5  # how often differences are made shorter


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where the search ended: φ, the value, the trace of values, the decrement, and what ran away."""

    phi: Array
    value: float
    trace: tuple[float, ...]
    decrement: float
    information: Array
    runaway: tuple[int, int] | None = None  # a coordinate and the sign of its flight


def decrement(g: Array, information: Array) -> tuple[Array, float]:
    """The step |I|⁻¹g and √(gᵀ|I|⁻¹g), scaled first so that coordinates of all sizes keep their digits."""
    scale, sizes, vectors = _scaled_eigen(information)
    along = vectors.T @ (g * scale)
    with np.errstate(over="ignore", invalid="ignore"):  # without information a step is as long as it may be
        step = scale * (vectors @ (along / sizes))
        return np.nan_to_num(step), float(np.sqrt(np.sum(along**2 / sizes)))


def _scaled_eigen(information: Array) -> tuple[Array, Array, Array]:
    """Scales of the coordinates, and sizes of the eigenvalues and eigenvectors in these units."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(information)), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    return scale, np.maximum(np.abs(values), 1e-14), vectors


def ascend(problem: LikelihoodProblem, phi: Array, tolerance: float, most: int, certify: bool = True) -> Ascent:
    """Climb from φ until the decrement meets the tolerance; to ``certify``, until it can be lowered no more."""
    which, start = np.flatnonzero(problem.free), phi
    value = problem.value(phi)
    trace, best, first, idle = [value], np.inf, None, 0
    for _ in range(most + 1):
        g, information = _derivatives(problem, phi)
        if not np.all(np.isfinite(information)):
            break
        step, size = decrement(g, information)
        if not certify and size <= tolerance:  # a value is exact to the square of that
            return Ascent(phi, value, tuple(trace), size, information)
        first = information if first is None else first
        flight = _find_runaway(problem, phi, start, information, first, step)
        if flight is not None:
            return Ascent(phi, value, tuple(trace), np.inf, information, flight)
        if size <= POLISH or (size <= tolerance and size > 0.5 * best) or len(trace) > most:
            break
        best = min(best, size)
        moved, higher = _climb(problem, phi, which, step, value, float(g @ step))
        if moved is None:
            break
        idle = idle + 1 if higher - value <= _noise(problem, value) else 0
        phi, value = moved, higher
        trace.append(value)
        if idle >= IDLE:
            break
    # the gradient and the information where the search ended, as accurately as they can be had
    g, information = _derivatives(problem, phi, fine=True)
    size = decrement(g, information)[1] if np.all(np.isfinite(information)) else np.inf
    return Ascent(phi, value, tuple(trace), size, information)


def _derivatives(problem: LikelihoodProblem, phi: Array, fine: bool = False) -> tuple[Array, Array]:
    """Score and information; with shorter differences where they reach beyond the support."""
    for _ in range(SHORTER):
        information = problem.information(phi, fine)
        g = problem.gradient(phi)[problem.free]
        if np.all(np.isfinite(g)) and np.all(np.isfinite(information)):
            return g, information
        problem.steps = 0.2 * problem.steps
    free = int(problem.free.sum())
    return np.full(free, np.nan), np.full((free, free), np.nan)


def _climb(
    problem: LikelihoodProblem, phi: Array, which: npt.NDArray[np.intp], step: Array, value: float, slope: float
) -> tuple[Array | None, float]:
    """The first of ever shorter steps that climbs; a fall by less than rounding is none."""
    real = np.array([problem.family.parameters[j].link == REAL for j in which])
    most = np.where(real, 10.0 * np.maximum(problem.steps[which], np.abs(phi[which])), LONGEST)
    shorter = 1.0 / max(1.0, float(np.max(np.abs(step) / most)))
    noise = _noise(problem, value)
    for _ in range(HALVINGS):
        moved = phi.copy()
        moved[which] += shorter * step
        higher = problem.value(moved)
        if higher >= value + 1e-4 * shorter * slope - (noise if slope < 1e3 * noise else 0.0):
            return moved, max(higher, value) if higher >= value - noise else higher
        shorter *= 0.5
    return None, value


def _noise(problem: LikelihoodProblem, value: float) -> float:
    """What rounding does to the likelihood."""
    return 1e-14 * (abs(value) + problem.total)


def _find_runaway(
    problem: LikelihoodProblem, phi: Array, start: Array, information: Array, first: Array, step: Array
) -> tuple[int, int] | None:
    """Which coordinate has left for infinity, judged by its size or by the data no longer telling where it is."""
    which = np.flatnonzero(problem.free)
    moved = phi - start
    most = np.array([REAL_FAR if problem.family.parameters[j].link == REAL else FAR for j in which])
    if problem.family.limit is not None:
        most[which == problem.family.limit.parameter] = LIMIT
    far = np.flatnonzero(np.abs(moved[which]) > most)
    if len(far):
        return int(which[far[0]]), int(np.sign(moved[which[far[0]]]))
    scale, sizes, vectors = _scaled_eigen(first)
    W = scale[:, None] * vectors / np.sqrt(sizes)  # Wᵀ|I|W = 1: what is flat is judged by directions, not coordinates
    values, vectors = np.linalg.eigh(W.T @ information @ W)
    if abs(values[0]) < FLAT:
        along = (W @ vectors[:, 0]) * np.sqrt(np.abs(np.diag(first)))
        i = int(np.argmax(np.abs(along)))
        towards = step[i] if step[i] != 0.0 else moved[which[i]]
        return int(which[i]), int(np.sign(towards))
    return None


def ascend_kinks(problem: LikelihoodProblem, phi: Array, tolerance: float, most: int) -> Ascent:
    """Climb to the highest point, be it a kink or between two."""
    if not problem.free[0] or not len(problem.x):
        return ascend(problem, phi, tolerance, most)
    search = _LocationProfile(problem, phi, tolerance, most)
    kinks = np.unique(problem.x)
    low, high = 0, len(kinks) - 1
    if search.slopes(kinks[low])[0] < 0.0 or search.slopes(kinks[high])[1] > 0.0:
        return ascend(problem, search.at(kinks[low if search.slopes(kinks[low])[0] < 0.0 else high]), tolerance, most)
    while low <= high:
        middle = (low + high) // 2
        left, right = search.slopes(kinks[middle])
        if left >= 0.0 >= right:
            return certify_kinks(problem, search.at(float(kinks[middle])), kink=True)
        low, high = (middle + 1, high) if right > 0.0 else (low, middle - 1)
    if high < 0 or low == len(kinks):  # rounding has turned the slope round at one end, as far as one can see the top
        return certify_kinks(problem, search.at(float(kinks[max(high, 0)])), kink=True)
    a, b = float(kinks[high]), float(kinks[low])
    between = search.root(a + 1e-14 * (b - a), b - 1e-14 * (b - a))
    return certify_kinks(problem, search.at(between), kink=False)


class _LocationProfile:
    """The best scale for each location, and the slopes there."""

    def __init__(self, problem: LikelihoodProblem, phi: Array, tolerance: float, most: int) -> None:
        self.problem, self.phi, self.tolerance, self.most = problem, phi.copy(), tolerance, most
        self.rest = problem.only(problem.free & np.array([False, True]))

    def at(self, location: float) -> Array:
        """The coordinates of the best scale."""
        self.phi[0] = location
        if self.rest.free.any():
            self.phi = ascend(self.rest, self.phi, self.tolerance, self.most).phi.copy()
        return self.phi.copy()

    def slopes(self, location: float) -> tuple[float, float]:
        """To the left and to the right."""
        phi = self.at(location)
        here = float(self.problem.x_weight[self.problem.x == location].sum()) / float(np.exp(phi[1]))
        slope = float(self.problem.gradient(phi)[0])
        return slope + here, slope - here

    def root(self, a: float, b: float) -> float:
        """Where the slope between two kinks is 0; at the flatter end, where rounding hides its sign."""
        ends = [sum(self.slopes(m)) for m in (a, b)]
        if ends[0] * ends[1] >= 0.0:
            return a if abs(ends[0]) < abs(ends[1]) else b
        return float(brentq(lambda m: sum(self.slopes(m)), a, b, xtol=1e-15))


def certify_kinks(problem: LikelihoodProblem, phi: Array, kink: bool) -> Ascent:
    """A maximum at φ, with the gradient and the information measured there; at a kink 0 lies between the slopes."""
    g, information, value = problem.gradient(phi), information_about_kinks(problem, phi), problem.value(phi)
    g[0] = 0.0 if kink else g[0]
    return Ascent(phi, value, (value,), decrement(g[problem.free], information)[1], information)


def information_about_kinks(problem: LikelihoodProblem, phi: Array) -> Array:
    """The expected information w/b² of points for the location; the observed one of all else."""
    which = np.flatnonzero(problem.free)
    intervals, b = problem.only(problem.free), float(np.exp(phi[1]))
    intervals.x = intervals.x_weight = np.empty(0)
    of_points = [problem.x_weight.sum() / b**2, problem.x_weight @ np.abs(problem.x - phi[0]) / b]
    observed = np.zeros((len(which),) * 2)
    if len(intervals.a) or len(intervals.c):
        observed = intervals.information(phi, fine=True)
    return np.asarray(observed + np.diag(np.array(of_points)[which]))
