r"""Moments of two correlated normal variables confined to a rectangle.

With x the first variable and y the second given the first, in standard units,

.. math:: P=\int_{a_1}^{b_1}\varphi(x)\,P(a_2<\rho x+sz<b_2)\,dx,\qquad s=\sqrt{1-\rho^2}

and likewise for the moments: the inner integral is exact, the outer one is by Gauss and Legendre's rule on pieces that
end where the integrand bends. The integrand is log-concave, so it has one peak and its tails can be cut off. Where a
value is known exactly, its density takes the place of its probability, and the other variable is confined given it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture.truncated import truncated_moments

__all__ = ["planar_moments"]

Array = npt.NDArray[np.float64]

NODES, MASSES = np.polynomial.legendre.leggauss(18)
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
    >>> from gramian.likelihood.mixture.planar import planar_moments
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
    x = middle[:, :, None] + half[:, :, None] * NODES
    mass = half[:, :, None] * MASSES
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
