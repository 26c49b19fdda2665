r"""Two normals from five moments: Pearson's solution of 1894.

With :math:`m_1, m_2` the means measured from the common mean, κ the cumulants and :math:`v=m_1m_2<0`, equating moments
leads to an equation of the ninth degree (Pearson 1894; in cumulants, Cohen 1967)

.. math:: 24v^9+84\kappa_4v^7+36\kappa_3^2v^6+(90\kappa_4^2+72\kappa_5\kappa_3)v^5
    +(444\kappa_4\kappa_3^2-18\kappa_5^2)v^4
    +(288\kappa_3^4-108\kappa_3\kappa_4\kappa_5+27\kappa_4^3)v^3-(63\kappa_4^2+72\kappa_3\kappa_5)\kappa_3^2v^2
    -96\kappa_3^4\kappa_4v-24\kappa_3^6=0.

Every negative root that leads to positive variances is a solution; where there are several, the one whose sixth moment
is nearest that of the data is chosen, as Pearson did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture.binned import Bins
from gramian.likelihood.mixture.parameters import Mixture

__all__ = ["TwoNormals", "central_moments", "two_normals"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class TwoNormals:
    """Mixtures of two normals with given moments.

    Attributes
    ----------
    solutions : tuple of Mixture
        All of them, the smaller mean first in each; the one to prefer comes first.
    sixth : tuple of float
        Sixth central moment of each.
    roots : ndarray
        Negative real roots of the nonic, in units of the variance.
    """

    solutions: tuple[Mixture, ...]
    sixth: tuple[float, ...]
    roots: Array

    def __repr__(self) -> str:
        lines = [
            f"weights {m.weights.round(4)}, means {m.means[:, 0]}, deviations {np.sqrt(m.covariances[:, 0])}"
            for m in self.solutions
        ]
        return "\n".join([f"TwoNormals: {len(lines)} solution{'s' * (len(lines) != 1)}", *lines])


def central_moments(data: Any, *, sheppard: bool = True) -> tuple[float, Array]:
    """The mean, and the central moments 2 to 6.

    Parameters
    ----------
    data : Bins of one column, or array-like
        Bins count at their midpoints, open ones as if they were as wide as their neighbours.
    sheppard : bool, default=True
        Whether to take out what rounding to bins of one width adds to moments (Sheppard 1898).

    Examples
    --------
    >>> from gramian.likelihood.mixture import central_moments
    >>> central_moments([1.0, 2.0, 3.0])[1].round(4)
    array([0.6667, 0.    , 0.6667, 0.    , 0.6667])
    """
    if isinstance(data, Bins):
        x, w, h = _midpoints(data)
    else:
        x = np.asarray(data, dtype=np.float64).ravel()
        w, h = np.ones(len(x)), 0.0
    w = w / w.sum()
    mean = float(x[0] + w @ (x - x[0]))
    raw = np.array([w @ (x - mean) ** j for j in range(2, 7)])
    return mean, _sheppard(raw, h) if sheppard and h > 0 else raw


def two_normals(mean: float, moments: npt.ArrayLike) -> TwoNormals:
    """Mixtures of two normals that have a mean and central moments 2 to 5 (and nearly the sixth, where given).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture import two_normals
    >>> found = two_normals(2.0, [5.0, 0.0, 43.0, 0.0, 499.0]).solutions[0]  # ½N(0, 1) + ½N(4, 1)
    >>> found.weights.round(6), found.means.ravel().round(6), found.covariances.ravel().round(6)
    (array([0.5, 0.5]), array([0., 4.]), array([1., 1.]))
    """
    given = np.asarray(moments, dtype=np.float64)
    if given.shape not in ((4,), (5,)) or not given[0] > 0:
        raise ValueError(f"Give the central moments 2 to 5, or 2 to 6, of which the first is positive; got {given}.")
    unit = math.sqrt(given[0])
    nu = given / unit ** np.arange(2, len(given) + 2)
    k3, k4, k5 = nu[1], nu[2] - 3.0, nu[3] - 10 * nu[1]
    roots = _negative_roots(_nonic(k3, k4, k5))
    found = [m for v in roots if (m := _solution(float(v), k3, k4, k5)) is not None]
    sixth = [_sixth(*m) for m in found]
    aim = nu[4] if len(nu) == 5 else math.nan
    order = sorted(range(len(found)), key=lambda i: abs(sixth[i] - aim) if len(nu) == 5 else 0.0)
    made = tuple(_mixture(mean, unit, *found[i]) for i in order)
    return TwoNormals(made, tuple(sixth[i] * unit**6 for i in order), roots)


def _nonic(k3: float, k4: float, k5: float) -> list[float]:
    return [
        24.0,
        0.0,
        84 * k4,
        36 * k3**2,
        90 * k4**2 + 72 * k5 * k3,
        444 * k4 * k3**2 - 18 * k5**2,
        288 * k3**4 - 108 * k3 * k4 * k5 + 27 * k4**3,
        -(63 * k4**2 + 72 * k3 * k5) * k3**2,
        -96 * k3**4 * k4,
        -24 * k3**6,
    ]


def _negative_roots(polynomial: list[float]) -> Array:
    """Real negative roots, each polished by a few steps of Newton's; double ones once."""
    roots = np.roots(polynomial)
    real = roots[np.abs(roots.imag) < 1e-6 * np.maximum(np.abs(roots), 1e-12)].real
    slope = np.polyder(np.array(polynomial))
    for _ in range(5):
        steep = np.polyval(slope, real)
        step = np.divide(np.polyval(polynomial, real), steep, out=np.zeros_like(real), where=np.abs(steep) > 1e-8)
        real = real - np.where(np.abs(step) < 1e-3 * np.abs(real), step, 0.0)
    real = np.sort(real[real < -1e-9])
    return real[np.append(True, np.diff(real) > 1e-7 * np.abs(real[1:]))] if len(real) else real


def _solution(v: float, k3: float, k4: float, k5: float) -> tuple[Array, Array, Array] | None:
    """Weights, means and variances in units of a variance of 1, for a root v."""
    below = 2 * v**3 + 3 * k4 * v + 4 * k3**2
    if below == 0.0:
        return None
    total = (-8 * k3 * v**3 + 3 * k5 * v**2 + 6 * k3 * k4 * v + 2 * k3**3) / below / v
    gap = math.sqrt(total**2 - 4 * v)
    m = np.array([total - gap, total + gap]) / 2
    beta = (2 * total - k3 / v) / 3
    variances = m * beta + 1.0 - m**2
    if not (variances > 0).all():
        return None
    return np.array([m[1], -m[0]]) / gap, m, variances


def _sixth(weights: Array, m: Array, variances: Array) -> float:
    s = variances
    return float(weights @ (m**6 + 15 * m**4 * s + 45 * m**2 * s**2 + 15 * s**3))


def _mixture(mean: float, unit: float, weights: Array, m: Array, variances: Array) -> Mixture:
    return Mixture.of(weights, unit * m[:, None], unit**2 * variances, "V", [mean])


def _midpoints(bins: Bins) -> tuple[Array, Array, float]:
    if bins.lower.shape[1] != 1:
        raise ValueError(f"Moments are taken of one column; the boxes have {bins.lower.shape[1]}.")
    low, high = bins.lower[:, 0].copy(), bins.upper[:, 0].copy()
    width = high - low
    inner = width[np.isfinite(width)]
    if not len(inner):
        raise ValueError("All bins are open: they have no midpoints.")
    h = float(np.median(inner))
    low = np.where(np.isinf(low), high - h, low)
    high = np.where(np.isinf(high), low + h, high)
    same = bool(np.allclose(inner, h, rtol=1e-6))
    return 0.5 * (low + high), bins.counts, h if same else 0.0


def _sheppard(m: Array, h: float) -> Array:
    return np.array(
        [
            m[0] - h**2 / 12,
            m[1],
            m[2] - h**2 * m[0] / 2 + 7 * h**4 / 240,
            m[3] - 5 * h**2 * m[1] / 6,
            m[4] - 5 * h**2 * m[2] / 4 + 7 * h**4 * m[0] / 16 - 31 * h**6 / 1344,
        ]
    )
