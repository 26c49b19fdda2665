r"""The Tracy–Widom law of real matrices: where the largest eigenvalue of noise lies.

The largest eigenvalue of a covariance matrix of pure noise, centred and scaled, follows

.. math:: F_1(s) = \det(I - K_s)_{L^2(0,\infty)},\qquad K_s(x, y) = \tfrac12\mathrm{Ai}\bigl(\tfrac{x+y}2 + s\bigr)

(P. Ferrari and H. Spohn, J. Phys. A 38, L557, 2005). Bornemann (Math. Comp. 79, 871, 2010) evaluates such determinants
by Gauss–Legendre quadrature: with nodes x and weights w the matrix √w K(x, xᵀ) √w has the eigenvalues of K to rounding,
as the kernel is analytic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import airy

__all__ = ["tracy_widom_cdf", "tracy_widom_quantile", "tracy_widom_sf"]

Vector = npt.NDArray[np.float64]

NODES = 48  # from 40 on the determinant has settled to rounding for every s between BOTTOM and TOP
DECAY = 63.0  # (2/3)·63 = 42: the interval ends where Ai has fallen by e⁻⁴², below rounding
BOTTOM, TOP = -10.0, 105.0  # F₁(−10) < 1e-20; Ai(105), and with it 1 − F₁(105), is below the smallest float64
LOWEST = 1e-9  # F₁ is right to about 1e-15 that far out, so smaller probabilities on the left say little of s
CHUNK = 128  # determinants at a time: their matrices fit a core's cache many times over, and never fill memory


def tracy_widom_cdf(s: npt.ArrayLike) -> Any:
    r"""Distribution function :math:`F_1(s)`, right to about 1e-13 (absolute) everywhere.

    Parameters
    ----------
    s : array-like
        Where to evaluate it.

    Returns
    -------
    float or ndarray
        Probabilities, in the shape of s. Below s = −10, where they are under 1e-20, they are 0.

    See Also
    --------
    tracy_widom_sf : 1 − F₁, with its digits kept in the right tail.

    Examples
    --------
    >>> from gramian.analysis.tracy_widom import tracy_widom_cdf
    >>> round(float(tracy_widom_cdf(0.9793)), 4)
    0.95
    """
    return _shaped(s, lambda log_f: np.exp(log_f))


def tracy_widom_sf(s: npt.ArrayLike) -> Any:
    r"""Survival function :math:`1 - F_1(s)`, the p-value of a statistic s.

    It is −expm1(Σ ln(1 − μ)) with μ the eigenvalues of the kernel, so nothing cancels: the relative error stays below
    1e-12 up to s = 100, where the value is 1e-292. Beyond s = 105 it is less than float64 can hold, and 0.

    Parameters
    ----------
    s : array-like
        Where to evaluate it.

    Returns
    -------
    float or ndarray
        Probabilities, in the shape of s.

    Examples
    --------
    >>> from gramian.analysis.tracy_widom import tracy_widom_sf
    >>> f"{tracy_widom_sf(3.2724):.4f} {tracy_widom_sf(30):.3e}"
    '0.0010 2.916e-50'
    """
    return _shaped(s, lambda log_f: 0.0 - np.expm1(log_f))


def tracy_widom_quantile(q: npt.ArrayLike, *, upper: bool = False) -> Any:
    r"""The s with :math:`F_1(s) = q`, or with :math:`1 - F_1(s) = q` if ``upper``: critical values.

    Parameters
    ----------
    q : array-like
        Probabilities, at least 1e-9 in the left tail (F₁ is right to 1e-15 there, no more) and 1e-290 in the right one.
    upper : bool, default=False
        Whether q is the probability of a larger value: small ones keep their digits.

    Returns
    -------
    float or ndarray
        Quantiles, in the shape of q.

    Examples
    --------
    >>> from gramian.analysis.tracy_widom import tracy_widom_quantile
    >>> [round(float(tracy_widom_quantile(q, upper=True)), 4) for q in (0.05, 0.01, 0.001)]
    [0.9793, 2.0234, 3.2722]
    """
    given = np.asarray(q, dtype=np.float64)
    found = [_quantile(float(value), upper) for value in given.ravel()]
    return np.reshape(found, given.shape)[()]


def _shaped(s: npt.ArrayLike, value: Any) -> Any:
    """Value(ln F₁) at each s, in the shape of s; NaN where s is NaN."""
    given = np.asarray(s, dtype=np.float64)
    flat = given.ravel()
    log_f = np.where(np.isnan(flat), np.nan, np.where(flat > TOP, 0.0, -np.inf))
    inside = np.flatnonzero((flat >= BOTTOM) & (flat <= TOP))
    for start in range(0, len(inside), CHUNK):
        part = inside[start : start + CHUNK]
        log_f[part] = _log_determinant(flat[part])
    return value(log_f).reshape(given.shape)[()]


def _log_determinant(s: Vector) -> Vector:
    """ln det(I − K) = Σ ln(1 − μ) for each s: with the eigenvalues small, their sum keeps its relative accuracy."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    length = 2 * ((np.maximum(s, 0.0) ** 1.5 + DECAY) ** (2 / 3) - s)
    nodes = length[:, None] * (x + 1) / 2
    root = np.sqrt(length[:, None] * w / 2)
    i, j = np.tril_indices(NODES)  # the kernel is symmetric: eigvalsh reads its lower half alone
    K = np.zeros((len(s), NODES, NODES))
    K[:, i, j] = airy((nodes[:, i] + nodes[:, j]) / 2 + s[:, None])[0] / 2 * root[:, i] * root[:, j]
    mu = np.linalg.eigvalsh(K)
    # an eigenvalue that rounding puts at 1 or above belongs to a determinant below 1e-15
    return np.asarray(np.sum(np.log1p(-np.minimum(mu, 1 - np.finfo(float).eps)), axis=1))


def _quantile(q: float, upper: bool) -> float:
    """Solve ln P(s) = ln q for whichever tail is the smaller, where the logarithm is smooth."""
    least = 1e-290 if upper else LOWEST
    most = 1 - LOWEST if upper else 1 - 2.0**-53
    if not least <= q <= most:
        raise ValueError(
            f"q={q!r} must lie between {least:g} and {most:.17g}: beyond that F₁ has no digits. "
            "Give small probabilities of the right tail with upper=True."
        )
    right = q <= 0.5 if upper else q > 0.5
    share = q if upper == right else 1 - q
    tail = tracy_widom_sf if right else tracy_widom_cdf

    def gap(s: float) -> float:
        return float(np.log(max(float(tail(s)), 5e-324)) - np.log(share))

    return float(brentq(gap, BOTTOM, TOP, xtol=1e-14, rtol=1e-14))
