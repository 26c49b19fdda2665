"""Probabilities of heterozygote counts given the allele counts, and sums of their tails.

With n genotypes, r copies of the rarer allele and h heterozygotes, a = (r − h)/2 and b = n − a − h are the homozygotes,
and P(h | n, r) = n!/(a! h! b!) · 2^h · r! (2n − r)!/(2n)!.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
import numpy.typing as npt
from scipy.special import xlog1py

__all__ = ["log_probability", "ratio_down", "ratio_up", "tails"]

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

SMALL = 16  # factorials below this are tabulated, above it Stirling's series has reached rounding
NEGLIGIBLE = 2.0**-54
PATIENCE = 8  # terms between two looks at which sums are complete

_HEAD = np.array([0.0] + [lgamma(k + 1) - (k * log(k) - k) for k in range(1, SMALL)])


def _stirling(k: Counts) -> Array:
    """ln k! − (k ln k − k), which is 0 at k = 0, without the cancellation of its two large terms."""
    x = np.maximum(k, SMALL).astype(np.float64)
    s = 1 / (x * x)
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / x
    large = 0.5 * np.log(2 * np.pi * x) + series
    return np.where(k < SMALL, _HEAD[np.minimum(k, SMALL - 1)], large)


def _deviance(excess: Counts, expected: Counts, unit: Counts) -> Array:
    """x ln(x/m) + m − x for m = expected/unit and x = m + excess/unit; the integers keep x − m exact."""
    m = expected / unit
    u = excess / expected
    return np.asarray(m * (xlog1py(1 + u, u) - u))


def log_probability(n: Counts, r: Counts, h: Counts) -> Array:
    """Return ln P(h | n, r) for 0 < r ≤ n, to about 1e-12 where P is not below 1e-300, at any n.

    P is a multinomial probability of the genotypes over a binomial one of the alleles, both at the allele frequency
    r/2n. Written with their deviances (Loader 2000, "Fast and accurate computation of binomial probabilities"), no
    number is larger than the logarithm that comes out; differences of ln n! would lose eight digits at n = 500,000.
    """
    a = (r - h) // 2
    b = n - a - h
    alleles = _stirling(r) + _stirling(2 * n - r) - _stirling(2 * n)
    genotypes = _stirling(n) - _stirling(a) - _stirling(h) - _stirling(b)
    c, unit = 2 * n - r, 4 * n
    deviance = _deviance(unit * a - r * r, r * r, unit)
    deviance += _deviance(unit * h - 2 * r * c, 2 * r * c, unit)
    deviance += _deviance(unit * b - c * c, c * c, unit)
    return np.asarray(alleles + genotypes - deviance)


def _factors_up(n: Counts, r: Counts, h: Counts) -> Array:
    """The x, y, z, w of P(h+2)/P(h) = xy/(zw); k steps further on it is (x−k)(y−k)/((z+k)(w+k))."""
    a = (r - h) // 2
    return np.stack([a, n - a - h, h / 2 + 1, h / 2 + 0.5])


def _factors_down(n: Counts, r: Counts, h: Counts) -> Array:
    """The x, y, z, w of P(h−2)/P(h) = xy/(zw), likewise."""
    a = (r - h) // 2
    return np.stack([h / 2, h / 2 - 0.5, a + 1, n - a - h + 1])


def _ratio(factors: Array) -> Array:
    x, y, z, w = factors
    return np.asarray((x * y) / (z * w))


def ratio_up(n: Counts, r: Counts, h: Counts) -> Array:
    """Return P(h + 2)/P(h)."""
    return _ratio(_factors_up(n, r, h))


def ratio_down(n: Counts, r: Counts, h: Counts) -> Array:
    """Return P(h − 2)/P(h)."""
    return _ratio(_factors_down(n, r, h))


def tails(n: Counts, r: Counts, h: Counts, up: npt.NDArray[np.bool_]) -> Array:
    """Return the sum of P(h'), over P(h), for h' from h on away from the mode: upwards where ``up``, else downwards."""
    factors = np.where(up, _factors_up(n, r, h), _factors_down(n, r, h))
    return _series(factors)


def _series(factors: Array) -> Array:
    """1 + ρ₀ + ρ₀ρ₁ + … with ρ_k = (x−k)(y−k)/((z+k)(w+k)), each sum until what is left of it is below rounding.

    ρ falls with k, so what is left after a term t is at most tρ/(1 − ρ). Sums that are complete are taken out.
    """
    result = np.ones(factors.shape[1])
    place = np.arange(factors.shape[1])
    x, y, z, w = factors
    total, term = np.ones_like(x), np.ones_like(x)
    while place.size:
        ratio = _add_terms((x, y, z, w), total, term)
        left = term * ratio > NEGLIGIBLE * total * (1 - ratio)
        if np.count_nonzero(left) <= 0.75 * left.size:
            result[place] = total
            place, x, y, z, w, total, term = (values[left] for values in (place, x, y, z, w, total, term))
    return result


def _add_terms(factors: tuple[Array, Array, Array, Array], total: Array, term: Array) -> Array:
    """Add the next few terms, in place; return the last ratio between two."""
    x, y, z, w = factors
    ratio, below = np.empty_like(x), np.empty_like(x)
    for _ in range(PATIENCE):
        np.multiply(x, y, out=ratio)
        np.multiply(z, w, out=below)
        ratio /= below
        term *= ratio
        total += term
        x -= 1
        y -= 1
        z += 1
        w += 1
    return ratio
