"""Genotypes drawn from frequencies: random bits compared with thresholds, a chunk of SNPs at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

__all__ = ["draw_calls", "erase", "missing_rates", "random_bits"]

Bits = npt.NDArray[np.uint16]
Vector = npt.NDArray[np.float64]

ONE = 65535.0  # frequencies are drawn with 16 bits


def random_bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Bits:
    """Uniform 16-bit numbers, four from each word that the generator makes."""
    count = math.prod(shape)
    words = rng.integers(0, 2**64 - 1, -(-count // 4), dtype=np.uint64, endpoint=True)
    return words.view(np.uint16)[:count].reshape(shape)


def draw_calls(
    frequencies: npt.NDArray[np.float32], rng: np.random.Generator, linked: float, block: int, starts: Any
) -> npt.NDArray[np.int8]:
    """Copies of A1 of SNPs × people, drawn from two chromosomes each.

    A chromosome carries A1 where its uniform number lies below the frequency. From one SNP to the next it keeps this
    number with probability ``linked``, which then is the correlation of their alleles if they are as frequent; it
    draws a new one at each multiple of ``block`` and at the SNPs ``starts``.
    """
    p, n = frequencies.shape
    uniform = random_bits(rng, (p, 2, n))
    if linked and block > 1:
        _link(uniform, random_bits(rng, (p, 2, n)), linked, block, starts)
    frequencies *= ONE
    frequencies += 0.5
    carried = uniform < frequencies.astype(np.uint16)[:, None, :]
    first, second = carried.view(np.int8)[:, 0], carried.view(np.int8)[:, 1]
    first += second
    return first


def _link(uniform: Bits, decide: Bits, linked: float, block: int, starts: Any) -> None:
    """Carry numbers on from SNP to SNP within blocks, all blocks at once."""
    keep = np.negative((decide < round(linked * 65536)).astype(np.uint16))  # all bits, or none
    keep[starts] = 0
    u, k = (x.reshape(-1, block, x[0].size) for x in (uniform, keep))
    for j in range(1, block):
        u[:, j] ^= (u[:, j] ^ u[:, j - 1]) & k[:, j]


def missing_rates(missing: float, spread: float, n: int, rng: np.random.Generator) -> Vector:
    r"""Rates λᵢ of people, such that genotypes are missing as often as asked.

    A genotype is missing with probability :math:`1 - e^{-\lambda_i r_j}`, with gamma variables λ and r of people and
    SNPs, whose coefficient of variation s is ``spread``: on average over SNPs :math:`1 - (1+\lambda_i s^2)^{-1/s^2}`.
    """
    if not missing:
        return np.zeros(n)
    if not spread:
        return np.full(n, -math.log1p(-missing))
    relative = rng.gamma(1 / spread**2, spread**2, n)

    def excess(rate: float) -> float:
        return float(np.mean(-np.expm1(-np.log1p(rate * relative * spread**2) / spread**2))) - missing

    top = 1.0
    while excess(top) < 0:
        top *= 4
    return np.asarray(relative * brentq(excess, 0.0, top, xtol=1e-12))


def erase(calls: npt.NDArray[np.int8], rates: Vector, spread: float, rng: np.random.Generator) -> None:
    """Make genotypes missing: the points of a Poisson process of rate λᵢrⱼ fall on them, some twice."""
    p, n = calls.shape
    by_snp = rng.gamma(1 / spread**2, spread**2, p) if spread else np.ones(p)
    total = np.cumsum(rates)
    rows = np.repeat(np.arange(p), rng.poisson(by_snp * total[-1]))
    columns = np.searchsorted(total, rng.random(len(rows)) * total[-1], side="right")
    calls[rows, np.minimum(columns, n - 1)] = -1
