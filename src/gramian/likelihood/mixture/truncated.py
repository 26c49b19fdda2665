r"""Probability and moments of a standard normal variable between two limits, in tails and narrow bins too.

.. math:: P=\Phi(b)-\Phi(a),\qquad M_j=E[z^j\,|\,a<z<b]

Narrow intervals are integrated by Gauss and Legendre's rule, where differences of φ and Φ would cancel; all others obey
:math:`M_j=(j-1)M_{j-2}+(a^{j-1}\varphi(a)-b^{j-1}\varphi(b))/P`, with the ratios from the scaled complementary error
function, which neither underflows nor cancels.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

__all__ = ["truncated_moments"]

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
    >>> from gramian.likelihood.mixture.truncated import truncated_moments
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
    log_p[point], M[:, point] = -0.5 * a[point] ** 2 - LOG_ROOT, a[point] ** _powers(order, 1)
    log_p[narrow], M[:, narrow] = _integrated(middle[narrow], width[narrow], order)
    log_p[wide], M[:, wide] = _recursive(a[wide], b[wide], order)
    return log_p, M


def _powers(order: int, ndim: int) -> npt.NDArray[np.int64]:
    return np.arange(order + 1).reshape(-1, *(1,) * ndim)


def _integrated(middle: Array, width: Array, order: int) -> tuple[Array, Array]:
    half = 0.5 * width[:, None] * NODES
    density = MASSES * np.exp(-half * (middle[:, None] + 0.5 * half))  # φ(z)/φ(middle)
    total = density.sum(axis=1)
    z = middle[:, None] + half
    moments = np.stack([np.sum(density * z**j, axis=1) / total for j in range(order + 1)])
    return np.log(0.5 * width * total) - 0.5 * middle**2 - LOG_ROOT, moments


def _recursive(a: Array, b: Array, order: int) -> tuple[Array, Array]:
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
