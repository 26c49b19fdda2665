r"""Extrapolation of three statistics in a row: SQUAREM (Varadhan and Roland 2008), in the units of the components."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture.parameters import Mixture
from gramian.likelihood.mixture.statistics import Statistics

__all__ = ["blend", "length", "possible"]

Array = npt.NDArray[np.float64]

LEAST = 0.01  # of the variances so far, that extrapolated ones must have


def blend(zero: Statistics, one: Statistics, two: Statistics, a: float) -> Statistics:
    """(1−a)²T₀ + 2a(1−a)T₁ + a²T₂, which is T₂ for a = 1."""
    total = two.scaled(a * a).merge(one.scaled(2 * a * (1 - a))).merge(zero.scaled((1 - a) ** 2))
    return replace(total, weight=two.weight)


def possible(stats: Statistics, near: Statistics) -> bool:
    """Whether extrapolated statistics are those of some data: positive counts and scatter."""
    if not (stats.counts >= 0.1 * near.counts).all() or not np.isfinite(stats.second).all():
        return False
    live = near.counts > 0
    shape = (-1, *(1,) * (stats.second.ndim - 1))
    T, S = (v.scatter(v.centres)[live] / v.counts[live].reshape(shape) for v in (stats, near))
    rest = T - LEAST * S
    if stats.diagonal:
        return bool((rest >= 0).all())
    size = np.sqrt(np.maximum(np.diagonal(S, axis1=1, axis2=2), np.finfo(float).tiny))
    return bool((np.linalg.eigvalsh(rest / (size[:, :, None] * size[:, None, :])) >= -1e-10).all())


def length(zero: Statistics, one: Statistics, two: Statistics, mixture: Mixture) -> float:
    """‖T₁−T₀‖/‖T₂−2T₁+T₀‖ in the units of the components: how far the steps can be extrapolated."""
    if zero.diagonal != two.diagonal:
        return 1.0
    a, b, c = (_whitened(stats, mixture) for stats in (zero, one, two))
    r, v = b - a, (c - b) - (b - a)
    size, curve = float(np.linalg.norm(r)), float(np.linalg.norm(v))
    if size <= 1e-11 * float(np.linalg.norm(b)) or curve == 0.0:  # extrapolating rounding errors magnifies them
        return 1.0
    return size / curve


def _whitened(stats: Statistics, mixture: Mixture) -> Array:
    """Statistics about a mixture's centres, in its components' standard deviations, as one vector."""
    moved, R = stats.moved(mixture.centres), mixture.roots
    unit = 1.0 / np.sqrt(np.maximum(moved.counts, np.finfo(float).tiny))
    if mixture.diagonal:
        first, second = moved.first * R, moved.second * R**2
    else:
        first = np.einsum("kij,kj->ki", R, moved.first)
        second = (R @ moved.second @ R.transpose(0, 2, 1)).reshape(len(R), -1)
    live = (moved.counts > 0)[:, None]
    rows = np.concatenate([moved.counts[:, None], first, second / np.sqrt(2.0)], axis=1)
    return np.asarray(np.where(live, unit[:, None] * rows, 0.0)).ravel()
