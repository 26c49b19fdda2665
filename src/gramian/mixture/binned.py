r"""Counts in intervals or boxes: the exact likelihood of what was recorded, not of midpoints.

.. math:: \ell = \sum_b n_b\ln\sum_k\pi_kP_{kb},\qquad P_{kb}=\int_bN(x;\mu_k,\Sigma_k)\,dx

A row known only to lie in box b contributes the moments of a normal variable confined to b (Dempster, Laird and Rubin
1977; McLachlan and Jones 1988). Where covariances are diagonal, these are products over the columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, erfcx, logsumexp, ndtr

from gramian.mixture.parameters import Mixture, SufficientStatistics, as_floats, check_variances

Array = npt.NDArray[np.float64]

NODES, MASSES = np.polynomial.legendre.leggauss(28)
NARROW, STEEP = 2.0, 8.0  # widths, and changes of the exponent, up to which 28 nodes give all digits
LOG_ROOT = 0.5 * math.log(2 * math.pi)


def truncated_moments(a: Array, b: Array, order: int) -> tuple[Array, Array]:
    """Return ln P and the moments M_0 … M_order, in a first axis, for every pair of limits.

    Limits that are equal are a point: then ln P is the logarithm of the density there.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.binned import truncated_moments
    >>> log_p, moments = truncated_moments(np.array([40.0]), np.array([np.inf]), 1)
    >>> log_p.round(4), moments[1].round(6)
    (array([-804.6084]), array([40.024969]))
    """
    log_p, M = np.empty(a.shape), np.empty((order + 1, *a.shape))
    with np.errstate(invalid="ignore"):
        width, middle = b - a, 0.5 * (a + b)
        point = a == b
        narrow = ~point & (width <= NARROW) & (np.abs(middle) * width <= STEEP)
    wide = ~(point | narrow)
    log_p[point], M[:, point] = -0.5 * a[point] ** 2 - LOG_ROOT, a[point] ** np.arange(order + 1)[:, None]
    log_p[narrow], M[:, narrow] = _by_quadrature(middle[narrow], width[narrow], order)
    log_p[wide], M[:, wide] = _by_recursion(a[wide], b[wide], order)
    return log_p, M


def _by_quadrature(middle: Array, width: Array, order: int) -> tuple[Array, Array]:
    half = 0.5 * width[:, None] * NODES
    density = MASSES * np.exp(-half * (middle[:, None] + 0.5 * half))  # φ(z)/φ(middle)
    total = density.sum(axis=1)
    z = middle[:, None] + half
    moments = np.stack([np.sum(density * z**j, axis=1) / total for j in range(order + 1)])
    return np.log(0.5 * width * total) - 0.5 * middle**2 - LOG_ROOT, moments


def _by_recursion(a: Array, b: Array, order: int) -> tuple[Array, Array]:
    """Limits turned round where most of the interval is below 0; odd moments change their sign."""
    with np.errstate(invalid="ignore"):
        turned = np.abs(a) > np.abs(b)
    low, high = np.where(turned, -b, a), np.where(turned, -a, b)
    log_p, at_low, at_high = _ratios(low, high)
    M = np.ones((order + 1, len(a)))
    left, right = np.where(np.isinf(low), 0.0, low), np.where(np.isinf(high), 0.0, high)
    for j in range(1, order + 1):
        before = (j - 1) * M[j - 2] if j > 1 else 0.0
        M[j] = before + left ** (j - 1) * at_low - right ** (j - 1) * at_high
    M[1::2] *= np.where(turned, -1.0, 1.0)
    return log_p, M


def _ratios(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """ln P, φ(a)/P and φ(b)/P, for intervals whose nearer limit is a or that hold 0."""
    tail = a > 0
    x, y = np.where(tail, a, 1.0), np.where(tail, b, 2.0)
    fall = np.exp(-0.5 * (y - x) * (y + x))  # φ(b)/φ(a)
    with np.errstate(invalid="ignore"):
        beyond = np.where(np.isinf(y), 0.0, fall * erfcx(y / math.sqrt(2)))
    scaled = erfcx(x / math.sqrt(2)) - beyond
    far = math.sqrt(2 / math.pi) / scaled
    P = np.where(tail, 1.0, ndtr(b) - ndtr(a))
    near_a, near_b = np.exp(-0.5 * a**2 - LOG_ROOT) / P, np.exp(-0.5 * b**2 - LOG_ROOT) / P
    log_p = np.where(tail, np.log(0.5 * scaled) - 0.5 * x**2, np.log(P))
    return log_p, np.where(tail, far, near_a), np.where(tail, far * fall, near_b)


NODES_PLANAR, MASSES_PLANAR = np.polynomial.legendre.leggauss(18)
REACH = 40.0  # standard deviations that count as everything
BEND = np.array([-9.0, -3.0, 0.0, 3.0, 9.0])  # pieces around a bend, in its own width
GRADES = np.array([0.02, 0.06, 0.2, 0.6, 2.0, 5.0, 10.0])  # and around the peak, which may be steep
PEAK = np.concatenate([-GRADES[::-1], [0.0], GRADES])


def planar_moments(a: Array, b: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """ln P, E x and E xxᵀ of a normal variable with mean 0 in boxes; limits are in standard deviations.

    Limits that are equal are a value known exactly: then P is a density in that column.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.binned import planar_moments
    >>> quadrant = planar_moments(np.zeros((1, 2)), np.full((1, 2), np.inf), np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> np.exp(quadrant[0]).round(12)
    array([0.33333333])
    """
    known = a == b
    if not known.any():
        return _planar(a, b, covariance, exact=False)
    log_p, first, second = np.empty(len(a)), np.empty((len(a), 2)), np.empty((len(a), 2, 2))
    kinds = (
        (~known.any(axis=1), [0, 1], False),
        (known[:, 0], [0, 1], True),
        (~known[:, 0] & known[:, 1], [1, 0], True),
    )
    for rows, order, exact in kinds:  # the variable known exactly comes first
        if not rows.any():
            continue
        turned = np.ix_(order, order)
        p, m, M = _planar(a[rows][:, order], b[rows][:, order], covariance[turned], exact=exact)
        log_p[rows], first[rows], second[rows] = p, m[:, order], M[:, order][:, :, order]
    return log_p, first, second


def _planar(a: Array, b: Array, covariance: Array, *, exact: bool) -> tuple[Array, Array, Array]:
    """The same for boxes whose first column is known exactly in all of them or in none."""
    sigma = np.sqrt(np.diag(covariance))
    rho = float(covariance[0, 1] / (sigma[0] * sigma[1]))
    rest = math.sqrt(float(np.linalg.det(covariance / np.outer(sigma, sigma))))
    x, mass = (a[:, :1], np.full((len(a), 1), 1.0 / sigma[0])) if exact else _nodes(a, b, rho, rest)
    log_p, M = truncated_moments((a[:, 1:] - rho * x) / rest, (b[:, 1:] - rho * x) / rest, 2)
    log_p -= np.where(a[:, 1:] == b[:, 1:], math.log(sigma[1] * rest), 0.0)  # a density of x, not of z
    log_f = log_p - 0.5 * x**2 - 0.5 * math.log(2 * math.pi)
    top = log_f.max(axis=1, keepdims=True)
    f = mass * np.exp(log_f - top)
    total = f.sum(axis=1)
    f /= total[:, None]
    y, yy = rho * x + rest * M[1], (rho * x) ** 2 + 2 * rho * rest * x * M[1] + rest**2 * M[2]
    first = np.stack([np.sum(f * v, axis=1) for v in (x, y)], axis=1) * sigma
    xx, xy, sq = (np.sum(f * v, axis=1) for v in (x * x, x * y, yy))
    second = np.stack([np.stack([xx, xy], axis=1), np.stack([xy, sq], axis=1)], axis=1) * np.outer(sigma, sigma)
    return np.log(total) + top[:, 0], first, second


def _nodes(a: Array, b: Array, rho: float, rest: float) -> tuple[Array, Array]:
    """Nodes and masses of the outer integral for every box."""
    low, high = np.clip(a[:, 0], -REACH, None), np.clip(b[:, 0], None, REACH)
    low, high = np.minimum(low, b[:, 0]), np.maximum(high, a[:, 0])
    bends = [np.zeros((len(a), 0))]
    if rho != 0.0:
        width = rest / abs(rho)
        with np.errstate(invalid="ignore"):
            edges = np.stack([a[:, 1], b[:, 1]], axis=1) / rho
        edges = np.where(np.isfinite(edges), edges, 0.0)
        bends = [edges[:, :1] + width * BEND, edges[:, 1:] + width * BEND]
    peak = _peak(low, high, a[:, 1], b[:, 1], rho, rest)
    cuts = [peak[:, None] + PEAK, low[:, None], high[:, None], *bends]
    ends = np.sort(np.clip(np.concatenate(cuts, axis=1), low[:, None], high[:, None]), axis=1)
    half, middle = 0.5 * np.diff(ends, axis=1), 0.5 * (ends[:, 1:] + ends[:, :-1])
    x = middle[:, :, None] + half[:, :, None] * NODES_PLANAR
    mass = half[:, :, None] * MASSES_PLANAR
    return x.reshape(len(a), -1), mass.reshape(len(a), -1)


def _peak(low: Array, high: Array, a2: Array, b2: Array, rho: float, rest: float) -> Array:
    """Where the integrand is largest, by golden sections."""
    ratio = (math.sqrt(5) - 1) / 2

    def height(x: Array) -> Array:
        return truncated_moments((a2 - rho * x) / rest, (b2 - rho * x) / rest, 0)[0] - 0.5 * x**2

    left, right = low.copy(), high.copy()
    for _ in range(40):
        one, two = right - ratio * (right - left), left + ratio * (right - left)
        up = height(one) < height(two)
        left, right = np.where(up, one, left), np.where(up, right, two)
    return np.asarray(0.5 * (left + right))


CHUNK = 2**15  # boxes times components times columns worked on at once


@dataclass(frozen=True, eq=False, repr=False)
class BinnedGoodness:
    """How far counts are from those expected.

    Attributes
    ----------
    deviance, chi2 : float
        2Σ n ln(n/e) and Σ (n−e)²/e.
    degrees : int
        Boxes − 1 − free parameters.
    expected : ndarray of shape (B,)
        e.
    """

    deviance: float
    chi2: float
    degrees: int
    expected: Array

    @property
    def p_values(self) -> tuple[float, float]:
        """Of deviance and χ², where expected counts are not small."""
        if self.degrees < 1:
            return np.nan, np.nan
        return float(chdtrc(self.degrees, self.deviance)), float(chdtrc(self.degrees, self.chi2))

    def __repr__(self) -> str:
        p, q = self.p_values
        return f"Goodness: deviance {self.deviance:.2f} (p {p:.2g}), X² {self.chi2:.2f} (p {q:.2g}), df {self.degrees}"


@dataclass(frozen=True, eq=False)
class Bins:
    """Counts in boxes.

    Attributes
    ----------
    lower, upper : ndarray of shape (B, d)
        Limits; infinite ones leave a box open, and equal ones say that a value is known exactly.
    counts : ndarray of shape (B,)
        How many rows lie in each.
    origin, variances : ndarray of shape (d,)
        Where the boxes lie and how widely, roughly.
    weight : float
        Σ counts.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Bins, Mixture
    >>> bins = Bins.of([-np.inf, 0.0, np.inf], [30, 70])
    >>> bins.probabilities(Mixture.of([1.0], [[0.0]], [1.0], "V"))
    array([0.5, 0.5])
    """

    lower: Array
    upper: Array
    counts: Array
    origin: Array
    variances: Array
    weight: float

    @classmethod
    def of(cls, edges: Any, counts: Any) -> Bins:
        """A histogram: B+1 rising edges and B counts; or, in d columns, d sequences of edges and a d-dimensional table.

        The first edge of a column may be −inf and the last inf.
        """
        table = as_floats("counts", counts)
        limits = [as_floats("edges", e) for e in ([edges] if table.ndim == 1 else list(edges))]
        if table.ndim == 0 or any(e.ndim != 1 for e in limits) or tuple(len(e) - 1 for e in limits) != table.shape:
            raise ValueError(
                "Edges must be one more than counts in every column, and counts have an axis for each; counts have "
                f"shape {table.shape}, and edges have {', '.join(str(e.shape) for e in limits) or 'none'}."
            )
        for j, e in enumerate(limits):
            where = "" if len(limits) == 1 else f" of column {j + 1}"
            if np.isnan(e).any():
                raise ValueError(
                    f"Edge {np.flatnonzero(np.isnan(e))[0]}{where} is NaN. Use -inf and inf for open ends."
                )
            wrong = np.flatnonzero(~(np.diff(e) > 0))
            if len(wrong):
                i = wrong[0]
                raise ValueError(f"Edges must rise: edge {i}{where} is {e[i]} and edge {i + 1} is {e[i + 1]}.")
        lower = np.stack([g.ravel() for g in np.meshgrid(*(e[:-1] for e in limits), indexing="ij")], axis=1)
        upper = np.stack([g.ravel() for g in np.meshgrid(*(e[1:] for e in limits), indexing="ij")], axis=1)
        return cls.intervals(lower, upper, table.ravel())

    @classmethod
    def intervals(cls, lower: Any, upper: Any, counts: Any | None = None) -> Bins:
        """Rows known to lie between limits, each counted once unless counts are given."""
        low, high = as_floats("lower", lower), as_floats("upper", upper)
        low, high = (v[:, None] if v.ndim == 1 else v for v in (low, high))
        n = np.ones(len(low)) if counts is None else as_floats("counts", counts)
        if low.ndim != 2 or low.shape != high.shape or n.shape != (len(low),):
            raise ValueError(
                f"Limits of shapes {low.shape} and {high.shape} and counts of shape {n.shape} do not match."
            )
        wrong = np.flatnonzero(~(low <= high).all(axis=1) | (np.isinf(low) & (low == high)).any(axis=1))
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"Box {i} goes from {low[i]} to {high[i]}: lower limits must not exceed upper ones, nor be NaN."
            )
        bad = np.flatnonzero(~(n >= 0) | np.isinf(n))
        if len(bad):
            raise ValueError(f"Count {bad[0]} is {n[bad[0]]}; counts must be finite and not negative.")
        if not n.sum() > 0:
            raise ValueError("All counts are 0: there is nothing to fit.")
        with np.errstate(invalid="ignore", over="ignore"):  # rows at midpoints, open boxes at their limit
            middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, 0.5 * low + 0.5 * high))
            width = np.where(np.isinf(low) | np.isinf(high), 0.0, high - low)
            known = np.isfinite(middle)
            w = np.where(known, n[:, None], 0.0)
            total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
            value = np.where(known, middle, 0.0)
            start = value[np.argmax(w > 0, axis=0), np.arange(low.shape[1])]
            mean = start + np.sum(w * (value - start), axis=0) / total
            variances = np.sum(w * ((value - mean) ** 2 + width**2 / 12), axis=0) / total
        edges = np.concatenate([low, high])[np.tile(n > 0, 2)]
        low_end, high_end = (f.reduce(np.where(np.isinf(edges), np.nan, edges), axis=0) for f in (np.fmin, np.fmax))
        check_variances(variances, low_end < high_end)
        return cls(low, high, n, mean, variances, float(n.sum()))

    def expect(self, mixture: Mixture) -> SufficientStatistics:
        """One expectation step."""
        joint, first, second = self._moments(mixture)
        total = logsumexp(joint, axis=0)
        taken = self.counts > 0
        R = np.where(taken, np.exp(joint - np.where(taken, total, 0.0)), 0.0) * self.counts
        # eq: binned-likelihood
        height = float(self.counts[taken] @ total[taken])
        sums = np.einsum("kb,kb...->k...", R, first), np.einsum("kb,kb...->k...", R, second)
        return SufficientStatistics(R.sum(axis=1), *sums, height, mixture.centres, mixture.origin, self.weight)

    def probabilities(self, mixture: Mixture) -> Array:
        """P_b of every box."""
        return np.asarray(np.exp(logsumexp(self._moments(mixture)[0], axis=0)))

    def goodness(self, mixture: Mixture, free_parameters: int | None = None) -> BinnedGoodness:
        """Compare counts with those expected."""
        free = mixture.free_parameters if free_parameters is None else free_parameters
        expected = self.weight * self.probabilities(mixture)
        n = self.counts
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(n > 0, n * np.log(n / expected), 0.0)
            chi2 = float(np.sum(np.where((expected == 0) & (n == 0), 0.0, (n - expected) ** 2 / expected)))
        return BinnedGoodness(2 * float(parts.sum()), chi2, len(n) - 1 - free, expected)

    def limits(self, mixture: Mixture, k: int) -> tuple[Array, Array]:
        """Limits in standard deviations from the mean of component k, by column."""
        scale = mixture.roots[k] if mixture.diagonal else 1.0 / np.sqrt(np.diag(mixture.covariances[k]))
        return (
            ((self.lower - mixture.origin) - mixture.centres[k]) * scale,
            ((self.upper - mixture.origin) - mixture.centres[k]) * scale,
        )

    def _moments(self, mixture: Mixture) -> tuple[Array, Array, Array]:
        """ln π_k P_kb, E(x−μ_k) and E(x−μ_k)² or E(x−μ_k)(x−μ_k)ᵀ, of shapes (K, B, …)."""
        d = len(mixture.origin)
        if self.lower.shape[1] != d:
            raise ValueError(f"Boxes have {self.lower.shape[1]} columns, and the mixture has {d}.")
        if not mixture.diagonal and d > 2:
            raise ValueError(
                f"Boxes in {d} columns need diagonal covariances: {mixture.model} would take integrals over correlated "
                "normals that are done here in two columns only. Use EII, VII, EEI, VEI, EVI or VVI."
            )
        step = max(1, CHUNK // max(1, mixture.n_components * d))
        parts = [self._part(mixture, slice(i, i + step)) for i in range(0, len(self.counts), step)]
        joint, first, second = (np.concatenate(p, axis=1) for p in zip(*parts, strict=True))
        with np.errstate(divide="ignore"):
            return joint + np.log(mixture.weights)[:, None], first, second

    def _part(self, mixture: Mixture, part: slice) -> tuple[Array, Array, Array]:
        limits = [self.limits(mixture, k) for k in range(mixture.n_components)]
        a, b = np.stack([low[part] for low, _ in limits]), np.stack([high[part] for _, high in limits])
        if mixture.diagonal or a.shape[2] == 1:
            sigma = np.sqrt(np.diagonal(mixture.matrices, axis1=1, axis2=2))[:, None, :]
            log_p, M = truncated_moments(a, b, 2)
            log_p -= np.where(a == b, np.log(sigma), 0.0)  # a density of x, not of z
            second = sigma**2 * M[2]
            return log_p.sum(axis=2), sigma * M[1], second if mixture.diagonal else second[..., None]
        planes = [planar_moments(a[k], b[k], S) for k, S in enumerate(mixture.covariances)]
        joint, first, second = (np.stack(p) for p in zip(*planes, strict=True))
        return joint, first, second
