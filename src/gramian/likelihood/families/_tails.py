r"""Logarithms of tail probabilities that are too small to be numbers.

Where the incomplete gamma and beta functions of scipy underflow, the classical expansions give their logarithms: the
series of P(a, x), and the continued fractions of Q(a, x) and of I_x(a, b) (DLMF 8.11.4, 8.9.2 and 8.17.22), summed by
Lentz's method. There x is so far in the tail that few terms suffice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = ["log1mexp", "log_beta_p", "log_beta_q", "log_gamma_p", "log_gamma_q"]

Vector = npt.NDArray[np.float64]

TINY = 1e-280  # below this scipy's functions near their underflow
TERMS = 500  # most terms of an expansion


def log1mexp(x: Vector) -> Vector:
    """ln(1 − eˣ) for x ≤ 0, to full relative accuracy at both ends (Mächler 2012)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > -np.log(2.0), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_gamma_p(a: Vector | float, x: Vector | float) -> Vector:
    """ln P(a, x), the lower incomplete gamma function."""
    return _with_tail(special.gammainc, _gamma_series, a, x)


def log_gamma_q(a: Vector | float, x: Vector | float) -> Vector:
    """ln Q(a, x), the upper incomplete gamma function."""
    return _with_tail(special.gammaincc, _gamma_fraction, a, x)


def log_beta_p(a: Vector | float, b: Vector | float, x: Vector) -> Vector:
    """ln I_x(a, b), the incomplete beta function."""
    return _with_tail(special.betainc, _beta_fraction, a, b, x)


def log_beta_q(a: Vector | float, b: Vector | float, x: Vector) -> Vector:
    """ln(1 − I_x(a, b))."""
    return _with_tail(special.betaincc, lambda a, b, x: _beta_fraction(b, a, 1.0 - x, np.log1p(-x), np.log(x)), a, b, x)


def _with_tail(function: Callable[..., Vector], expansion: Callable[..., Vector], *arguments: Vector | float) -> Vector:
    values = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in arguments))
    with np.errstate(divide="ignore"):
        direct = np.atleast_1d(function(*values))
        result = np.log(direct)
    x = values[-1]
    inside = (x > 0) & (x < np.inf) if len(values) == 2 else (x > 0) & (x < 1)
    small = np.atleast_1d((direct < TINY) & inside)
    if small.any():
        result[small] = expansion(*(np.atleast_1d(v)[small] for v in values))
    return result.reshape(x.shape)


def _gamma_series(a: Vector, x: Vector) -> Vector:
    """ln of xᵃe⁻ˣ/Γ(a+1) (1 + x/(a+1) + x²/((a+1)(a+2)) + …)."""
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(1, TERMS):
        term = term * x / (a + k)
        total = total + term
        if np.all(term < 1e-17 * total):
            break
    return np.asarray(a * np.log(x) - x - special.gammaln(a + 1.0) + np.log(total))


def _gamma_fraction(a: Vector, x: Vector) -> Vector:
    """ln of e⁻ˣxᵃ/Γ(a) · 1/(x+1−a − 1(1−a)/(x+3−a − 2(2−a)/(x+5−a − …)))."""
    fraction = _lentz(lambda k: (k * (a - k), x + 2.0 * k + 1.0 - a), x + 1.0 - a)
    return np.asarray(a * np.log(x) - x - special.gammaln(a) - np.log(fraction))


def _beta_fraction(a: Vector, b: Vector, x: Vector, log_x: Vector | None = None, log_y: Vector | None = None) -> Vector:
    """ln of xᵃ(1−x)ᵇ/(a B(a, b)) · 1/(1 + d₁/(1 + d₂/(1 + …)))."""

    def term(k: int) -> tuple[Vector, Vector]:
        m = k // 2
        if k % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        return d, np.ones_like(x)

    lx = np.log(x) if log_x is None else log_x
    ly = np.log1p(-x) if log_y is None else log_y
    fraction = _lentz(term, np.ones_like(x))
    return np.asarray(a * lx + b * ly - np.log(a) - special.betaln(a, b) - np.log(fraction))


def _lentz(term: Callable[[int], tuple[Vector, Vector]], first: Vector) -> Vector:
    """The continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) by the modified method of Lentz."""
    f, C, D = first.copy(), first.copy(), np.zeros_like(first)
    for k in range(1, TERMS):
        a, b = term(k)
        D = 1.0 / _not_zero(b + a * D)
        C = _not_zero(b + a / C)
        f = f * C * D
        if np.all(np.abs(C * D - 1.0) < 1e-16):
            break
    return f


def _not_zero(x: Vector) -> Vector:
    return np.where(x == 0.0, 1e-300, x)
