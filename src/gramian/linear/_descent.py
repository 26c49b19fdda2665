"""Conjugate gradients on AᵀA + λI, step by step, for the columns that are still at work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import to_device

from gramian.operators.base import Operator

__all__ = ["Descent", "LeastSquares", "Measured", "norms", "small"]

Array = Any
Vector = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Measured:
    """A solution X with what was measured for it: R = B − AX, G = AᵀR − XΛ and ‖g‖/‖Aᵀb‖ of each column."""

    X: Array
    R: Array
    G: Array
    residuals: Vector

    def or_better(self, other: Measured, A: Operator) -> Measured:
        """Of each column the one with the smaller residual: a gradient may rise before it falls."""
        worse = ~(self.residuals <= other.residuals)
        if not worse.any():
            return self
        old = A.xp.asarray(worse, **A._where())[None, :]
        pairs = ((self.X, other.X), (self.R, other.R), (self.G, other.G))
        X, R, G = (A.xp.where(old, theirs, ours) for ours, theirs in pairs)
        return Measured(X, R, G, np.where(worse, other.residuals, self.residuals))


class LeastSquares:
    """Columns B with their λ, and what is learnt of A on the way: ‖A‖² from below, and so how a step is made."""

    def __init__(self, A: Operator, B: Array, lam: Vector, diagonal: Any = None) -> None:
        self.A, self.B, self.lam = A, B, lam
        self.eps = A.epsilon
        self.square = 0.0
        self.size: Vector = np.zeros(0)  # ‖Aᵀb‖, known with the first gradient
        self.diagonal = None if diagonal is None else small(A.asarray(diagonal))

    def gradient(self, X: Array | None) -> Measured:
        """Measure at X, or at 0 where None is given: two products, or one."""
        A = self.A
        at = A.xp.zeros((A.shape[1], self.B.shape[1]), dtype=A.dtype, **A._where()) if X is None else X
        R = self.B if X is None else self.B - A.matmat(at)
        if not len(self.size):
            return self._first(at, R)
        G = A.rmatmat(R) - A.asarray(self.lam)[None, :] * at
        return Measured(at, R, G, self._relative(G))

    def _first(self, X: Array, R: Array) -> Measured:
        """Measure with Aᵀb beside it; where that is 0 the solution is 0."""
        A, t = self.A, self.B.shape[1]
        both = A.rmatmat(self.B if R is self.B else A.xp.concat([self.B, R], axis=1))
        self.size = norms(A, both[:, :t])
        there = A.asarray(self.size > 0)[None, :]
        X, R = X * there, R * there + self.B * (1.0 - there)
        G = both[:, -t:] * there - A.asarray(self.lam)[None, :] * X
        return Measured(X, R, G, self._relative(G))

    def _relative(self, G: Array) -> Vector:
        found = norms(self.A, G)
        return np.divide(found, self.size, out=np.zeros_like(found), where=self.size != 0)

    def learn(self, squares: Vector) -> None:
        """‖Ap‖²/‖p‖² of some directions p: ‖A‖² is no less."""
        self.square = max(self.square, float(np.max(squares, initial=0.0)))

    @property
    def one_pass(self) -> bool:
        """Whether pᵀ(AᵀA + λ)p keeps half its digits when it is computed from AᵀAp."""
        least = float(np.min(self.lam, initial=np.inf))
        return self.square > 0 and self.square + self.A.offset <= least / self.eps**0.5

    def scaling(self, columns: Index) -> Array | None:
        """1/(diagonal + λ) for these columns, the largest being 1; all 1 where λ = 0, for a solution of least norm."""
        if self.diagonal is None:
            return None
        lam = self.lam[None, columns]
        total = np.where(lam > 0, self.diagonal[:, None] + lam, 1.0)
        return self.A.asarray(np.min(total, axis=0, initial=np.inf) / total)


class Descent:
    """Some of the columns on their way down; G is the gradient carried along, ``lowest`` the X where it was least."""

    def __init__(self, problem: LeastSquares, at: Measured, columns: Index) -> None:
        self.problem, self.A, self.columns = problem, problem.A, columns
        self.X, self.R, self.G = (_take(self.A, Y, columns) for Y in (at.X, at.R, at.G))
        self.scale = problem.scaling(columns)
        self.P = self._scaled(self.G)
        self.slope = _dots(self.A, self.G, self.P)
        self.gradients = norms(self.A, self.G)
        self.best, self.since, self.lowest = self.gradients, np.zeros(len(columns)), self.X
        self.broken = np.zeros(len(columns), dtype=bool)
        self.fused = problem.one_pass

    def step(self) -> None:
        """x ← x + αp, the gradient g there, and p ← Mg + βp with M the scaling."""
        before = self.slope
        self.broken = ~(self._by_one_product() if self.fused else self._by_both_products())
        self.fused = self.fused or self.problem.one_pass  # never back: the residual is then no longer carried along
        Z = self._scaled(self.G)
        self.slope = _dots(self.A, self.G, Z)
        self.P = Z + self._row(_ratio(self.slope, before)) * self.P
        self._note(norms(self.A, self.G))

    def _by_one_product(self) -> Mask:
        """One pass: AᵀAp at once, by which the gradient is updated."""
        Q = self.A.normal(self.P) + self._lam * self.P
        curve = _dots(self.A, self.P, Q)
        self.problem.learn(_ratio(curve, _dots(self.A, self.P, self.P)) - self.problem.lam[self.columns])
        alpha = self._row(_ratio(self.slope, curve))
        self.X, self.G = self.X + alpha * self.P, self.G - alpha * Q
        return np.asarray(curve > 0)

    def _by_both_products(self) -> Mask:
        """Two passes: Ap, by which the residual is updated, and the gradient from that."""
        Q = self.A.matmat(self.P)
        square, length = _dots(self.A, Q, Q), _dots(self.A, self.P, self.P)
        self.problem.learn(_ratio(square, length))
        curve = square + self.problem.lam[self.columns] * length
        alpha = self._row(_ratio(self.slope, curve))
        self.X, self.R = self.X + alpha * self.P, self.R - alpha * Q
        self.G = self.A.rmatmat(self.R) - self._lam * self.X
        return np.asarray(curve > 0)

    def stuck(self) -> Mask:
        """Columns that cannot go on, or have not improved for as long as conjugate gradients may take."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.sqrt(1.0 + self.problem.square / self.problem.lam[self.columns])
        patience = 20 + np.fmin(4 * min(self.A.shape), 10 * rate)
        return np.asarray(self.broken | (self.since > patience) | ~np.isfinite(self.gradients))

    def keep(self, chosen: Mask) -> None:
        """Go on with some of the columns."""
        if chosen.all():
            return
        index = np.flatnonzero(chosen)
        at_work = (self.X, self.R, self.G, self.P, self.lowest)
        self.X, self.R, self.G, self.P, self.lowest = (_take(self.A, Y, index) for Y in at_work)
        self.scale = None if self.scale is None else _take(self.A, self.scale, index)
        self.columns, self.slope, self.gradients = self.columns[index], self.slope[index], self.gradients[index]
        self.best, self.since = self.best[index], self.since[index]

    @property
    def _lam(self) -> Array:
        return self._row(self.problem.lam[self.columns])

    def _row(self, x: Vector) -> Array:
        return self.A.asarray(x)[None, :]

    def _scaled(self, G: Array) -> Array:
        return G if self.scale is None else self.scale * G

    def _note(self, gradients: Vector) -> None:
        better = gradients < self.best
        where = self.A.xp.asarray(better, **self.A._where())[None, :]
        self.lowest = self.X if better.all() else self.A.xp.where(where, self.X, self.lowest)
        self.since = np.where(better, 0.0, self.since + 1.0)
        self.best, self.gradients = np.fmin(self.best, gradients), gradients


def small(x: Array) -> Vector:
    """Numbers for each column as float64 NumPy, whatever the device."""
    return np.asarray(x if isinstance(x, np.ndarray) else to_device(x, "cpu"), dtype=np.float64)


def norms(A: Operator, Y: Array) -> Vector:
    """Lengths of the columns; they do not vanish because their squares would."""
    if Y.shape[0] == 0:
        return np.zeros(Y.shape[1])
    largest = A.xp.max(A.xp.abs(Y), axis=0)
    unit = A.xp.where(largest > 0, largest, A.xp.ones_like(largest))
    return small(unit) * small(A.xp.linalg.vector_norm(Y / unit[None, :], axis=0))


def _dots(A: Operator, Y: Array, Z: Array) -> Vector:
    return small(A.xp.sum(Y * Z, axis=0))


def _ratio(a: Vector, b: Vector) -> Vector:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _take(A: Operator, Y: Array, index: Index) -> Array:
    return A.xp.take(Y, A.xp.asarray(index, **A._where()), axis=1)
