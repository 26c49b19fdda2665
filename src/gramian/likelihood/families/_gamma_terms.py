"""Differences of nearly equal gamma functions and logarithms, for shapes so large that they would cancel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammaln, xlogy

__all__ = ["LARGE", "log1pmx", "log_less_digamma", "log_poisson", "stirling"]

Vector = npt.NDArray[np.float64]

LARGE = 100.0  # where three terms of the asymptotic series have full accuracy


def log1pmx(x: Vector) -> Vector:
    """ln(1 + x) − x, by its series where x is small."""
    near = np.abs(x) < 0.05
    t = np.where(near, x, 0.0)
    series = np.zeros_like(t)
    for k in range(14, 1, -1):
        series = t * series + (-1.0) ** (k + 1) / k
    with np.errstate(divide="ignore"):
        return np.where(near, t * t * series, np.log1p(np.where(near, 0.0, x)) - x)


def stirling(a: float) -> float:
    """a ln a − a − ln Γ(a), which is ln(a/2π)/2 − 1/(12a) + 1/(360a³) − …"""
    if a < LARGE:
        return float(a * np.log(a) - a - gammaln(a))
    return float(0.5 * np.log(a / (2.0 * np.pi)) - 1.0 / (12.0 * a) + 1.0 / (360.0 * a**3) - 1.0 / (1260.0 * a**5))


def log_less_digamma(a: float) -> float:
    """ln a − ψ(a), which is 1/(2a) + 1/(12a²) − 1/(120a⁴) + …"""
    if a < LARGE:
        return float(np.log(a) - digamma(a))
    return float(1.0 / (2.0 * a) + 1.0 / (12.0 * a**2) - 1.0 / (120.0 * a**4) + 1.0 / (252.0 * a**6))


def log_poisson(k: Vector, rate: float | Vector) -> Vector:
    """K ln λ − λ − ln k!, for large k about its saddle point: k(ln(λ/k) + 1 − λ/k) − ½ ln 2πk − … (Loader 2000)."""
    large = k >= LARGE
    few, many = np.where(large, 0.0, k), np.where(large, k, LARGE)
    direct = xlogy(few, rate) - rate - gammaln(few + 1.0)
    if not np.any(large):
        return np.asarray(direct)
    v = 1.0 / many
    rest = -0.5 * np.log(2.0 * np.pi * many) - v * (1.0 / 12.0 - v * v * (1.0 / 360.0 - v * v / 1260.0))
    return np.where(large, many * log1pmx((rate - many) / many) + rest, direct)
