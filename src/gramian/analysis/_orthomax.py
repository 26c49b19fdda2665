"""Orthogonal rotations that maximise the orthomax criterion, plane by plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

__all__ = ["Found", "orthomax", "random_rotation"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Found:
    """A rotation T, the criterion there, and how nearly it is stationary."""

    T: Matrix
    criterion: float
    stationarity: float
    sweeps: int
    converged: bool


def orthomax(A: Matrix, T: Matrix, weight: float, tol: float, most: int) -> Found:
    """Sweep over all planes until the criterion is stationary and no sweep raises it any more; weight is γ/p."""
    L, T = A @ T, T.copy()
    value, scale, residual = _criterion(L, weight), float(np.sum(np.sum(L**2, axis=1) ** 2)), math.inf
    for sweep in range(1, most + 1):
        for i, j in combinations(range(L.shape[1]), 2):
            turn = _plane(L[:, i], L[:, j], weight)
            L[:, [i, j]] = L[:, [i, j]] @ turn
            T[:, [i, j]] = T[:, [i, j]] @ turn
        before, value = value, _criterion(L, weight)
        residual = _stationarity(L, weight)
        if residual <= tol and value - before <= tol * scale:
            return Found(T, value, residual, sweep, True)
    return Found(T, value, residual, most, False)


def _plane(x: Vector, y: Vector, weight: float) -> Matrix:
    """Return the rotation of two columns that maximises the criterion: φ = atan2(…)/4 of Kaiser (1958)."""
    u, v = x**2 - y**2, 2 * x * y
    a, b = float(np.sum(u)), float(np.sum(v))
    sine = float(2 * np.sum(u * v)) - 2 * weight * a * b
    cosine = float(np.sum(u**2 - v**2)) - weight * (a**2 - b**2)
    angle = math.atan2(sine, cosine) / 4
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s], [s, c]])


def _criterion(L: Matrix, weight: float) -> float:
    return float(np.sum(L**4) - weight * np.sum(np.sum(L**2, axis=0) ** 2))


def _stationarity(L: Matrix, weight: float) -> float:
    """T is stationary among orthogonal matrices where ΛᵀG is symmetric."""
    C = L.T @ (L**3 - weight * L * np.sum(L**2, axis=0))
    size = float(np.linalg.norm(L.T @ L**3))
    return float(np.linalg.norm(C - C.T)) / size if size else 0.0


def random_rotation(rng: np.random.Generator, k: int) -> Matrix:
    """Return an orthogonal matrix, all of them being equally likely."""
    Q, R = np.linalg.qr(rng.standard_normal((k, k)))
    return np.asarray(Q * np.sign(np.diag(R)))
