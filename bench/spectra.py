"""The singular values the recipes aim at, and the noise they stand on."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SLOW_POWER = 0.25
FAST_RATIO = 0.8
FAST_TOP = 1e3
TOPICS = 60
TOPIC_POWER = 0.7


def noise_edge(rows: int, cols: int) -> float:
    """Return √n + √p, the largest singular value of unit Gaussian noise."""
    return float(np.sqrt(rows) + np.sqrt(cols))


def signal(rows: int, cols: int, count: int, spectrum: str) -> Array:
    """Return the ``count`` singular values put on top of unit noise, in units of the data.

    ``slow`` is σᵢ = 1.1·e·(r/i)^¼ with e = √n + √p: the last of r values just clears the noise, the first is
    3.5 times the noise, and neighbours differ by a percent or less. ``fast`` is σᵢ = 10³·e·0.8^(i−1), cut at
    e: thirty values that fall by a fifth each, then noise. The condition number is about 10³·e/|√n − √p|, so
    even the squared one is far from 1/ε: no solver is hurt by rounding, and what is compared is speed.
    """
    i = np.arange(1, count + 1, dtype=np.float64)
    edge = noise_edge(rows, cols)
    if spectrum == "slow":
        return np.asarray(1.1 * edge * (count / i) ** SLOW_POWER, dtype=np.float64)
    falling = FAST_TOP * edge * FAST_RATIO ** (i - 1)
    return np.asarray(falling[falling > edge], dtype=np.float64)


def topic_shares() -> Array:
    """Return the share of the documents each topic has, t^−0.7 normalised: all clearly different."""
    shares = np.arange(1, TOPICS + 1, dtype=np.float64) ** -TOPIC_POWER
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def noise_bulk(rows: int, cols: int, count: int) -> Array:
    """Return the singular values of unit noise, descending: ``count`` Marchenko–Pastur quantiles."""
    low, high = abs(np.sqrt(rows) - np.sqrt(cols)), noise_edge(rows, cols)
    s = np.linspace(low, high, 20_001)[1:-1]
    density = np.sqrt((high**2 - s**2) * (s**2 - low**2)) / s
    share = np.cumsum(density) / density.sum()
    at = (np.arange(count)[::-1] + 0.5) / count
    return np.asarray(np.interp(at, share, s), dtype=np.float64)


def with_noise(values: Array, rows: int, cols: int) -> Array:
    """Return where singular values lie once unit noise is added: σ'² = (σ² + n)(σ² + p)/σ²."""
    square = values**2
    return np.asarray(np.sqrt((square + rows) * (square + cols) / square), dtype=np.float64)
