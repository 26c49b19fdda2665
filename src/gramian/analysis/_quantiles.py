"""Intervals from replicates, many entries at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from gramian.analysis._interval import Interval
from gramian.compute.threads import parallel

__all__ = ["intervals"]

Array = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

TILE = 2**19  # numbers sorted at a time


def intervals(estimate: Array, replicates: Array, level: float, method: str) -> Interval:
    """Interval, standard error and bias of every entry, from replicates along the first axis."""
    count, shape = len(replicates), estimate.shape
    flat, R = estimate.ravel(), replicates.reshape(count, -1)
    width = max(1, TILE // count)
    tiles = [slice(start, start + width) for start in range(0, flat.size, width)]
    out = np.empty((4, flat.size))

    def work(share: Sequence[slice]) -> None:
        for tile in share:
            out[:, tile] = _four(flat[tile], R[:, tile], level, method)

    parallel(work, tiles)
    lower, upper, error, bias = (x.reshape(shape) for x in out)
    return Interval(estimate, lower, upper, error, bias)


def _four(estimate: Vector, R: Matrix, level: float, method: str) -> tuple[Vector, Vector, Vector, Vector]:
    ordered = np.sort(R, axis=0)
    low, high = _shares(estimate, R, level, method)
    bias = np.mean(R - estimate, axis=0)
    return _quantile(ordered, low), _quantile(ordered, high), np.std(R - estimate, axis=0, ddof=1), bias


def _shares(estimate: Vector, R: Matrix, level: float, method: str) -> tuple[Vector, Vector]:
    """Which quantiles are the ends; bias-corrected ones are Φ(2z₀ ± z) with Φ(z₀) the share below the estimate."""
    tail = (1 - level) / 2
    if method == "percentile":
        return np.full(len(estimate), tail), np.full(len(estimate), 1 - tail)
    count, z = len(R), ndtri(tail)
    below = np.mean((estimate > R) + 0.5 * (estimate == R), axis=0)
    z0 = ndtri(np.clip(below, 1 / (count + 1), count / (count + 1)))  # all to one side: as far as they can tell
    return ndtr(2 * z0 + z), ndtr(2 * z0 - z)


def _quantile(ordered: Matrix, share: Vector) -> Vector:
    """Quantile of each column, at a share of its own, between the two nearest order statistics."""
    position = share * (len(ordered) - 1)
    below = np.minimum(position.astype(np.intp), len(ordered) - 2)
    columns = np.arange(ordered.shape[1])
    left, right = ordered[below, columns], ordered[below + 1, columns]
    return np.asarray(left + (position - below) * (right - left))
