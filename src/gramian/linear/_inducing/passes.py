"""Passes over the rows of k(X, Z): the moments of whitened features, the residual of a solution, one product of CG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyr, dsyrk

from gramian.linear._inducing.problem import Problem
from gramian.operators.base import Operator

__all__ = ["First", "Measured", "blocks", "first_pass", "measure", "product"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SHARE = 8  # a block has at least one row for so many centres: it is then small beside the m×m matrices, and BLAS fast


@dataclass(frozen=True, eq=False)
class First:
    """What the first pass found.

    Attributes
    ----------
    sums : ndarray of shape (m,)
        k(Z, X)w.
    pull : ndarray of shape (r, t)
        ΦᵀWY.
    mean : ndarray of shape (r,)
        Mean of the features, 0 without an intercept.
    gram : ndarray of shape (r, r)
        Lower triangle of Σ w(Φ − mean)(Φ − mean)ᵀ: of all rows, or in proportion of a sample of them.
    outside : ndarray of shape (n,) or None
        ‖(I − P)φ(x)‖ of every row, where k(x, x) is known and every row was whitened.
    square : float
        Σ w‖k(x, Z)‖².
    """

    sums: Vector
    pull: Matrix
    mean: Vector
    gram: Matrix
    outside: Vector | None
    square: float


def blocks(A: Operator) -> Iterator[tuple[int, int, Matrix]]:
    """Dense rows of A in float64, some blocks joined where they would be thin beside the m×m matrices."""
    least, waiting, begin = min(A.shape[0], A.shape[1] // SHARE), [], 0
    for start, stop, block in A.rows():
        waiting.append(np.asarray(block, dtype=np.float64))
        begin = start if len(waiting) == 1 else begin
        if stop - begin >= least or stop == A.shape[0]:
            yield begin, stop, waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            waiting = []


def first_pass(problem: Problem, sample: Vector | None = None) -> First:
    """Sums over all rows, and the Gram matrix of the features of all, or of a sample with its own weights."""
    A, basis, w = problem.A, problem.basis, problem.w
    gram = _Gram(basis.rank, problem.intercept)
    sums, pull, square = np.zeros(A.shape[1]), np.zeros((A.shape[1], problem.Y.shape[1])), 0.0
    outside = np.zeros(A.shape[0]) if sample is None and problem.own is not None else None
    for start, stop, K in blocks(A):
        some = slice(start, stop)
        sums += w[some] @ K
        pull += K.T @ (w[some, None] * problem.Y[some])
        square += float(w[some] @ np.einsum("ij,ij->i", K, K))
        if sample is not None:
            chosen = np.flatnonzero(sample[some])
            if len(chosen):
                gram.add(basis.features(K[chosen]), sample[some][chosen])
            continue
        F = basis.features(K)
        if outside is not None and problem.own is not None:
            outside[some] = basis.outside(K, F, problem.own[some])
        gram.add(F, w[some])
    return First(sums, basis.adjoint(pull), gram.mean, gram.total, outside, square)


class _Gram:
    """Σ w(Φ − μ)(Φ − μ)ᵀ, merged block by block about the block's own mean, which loses no digits to a large mean."""

    def __init__(self, rank: int, centre: bool) -> None:
        self.total: Matrix = np.zeros((rank, rank), order="F")
        self.mean: Vector = np.zeros(rank)
        self.mass, self.centre = 0.0, centre

    def add(self, F: Matrix, w: Vector) -> None:
        """Take in the columns of F, which is overwritten."""
        mass = float(w.sum())
        if mass == 0.0 or not len(F):
            return
        if self.centre:
            mean = F @ w / mass
            F -= mean[:, None]
            step, both = mean - self.mean, self.mass + mass
            self.total = dsyr(self.mass * mass / both, step, lower=1, a=self.total, overwrite_a=1)
            self.mean = self.mean + step * (mass / both)
            self.mass = both
        F *= np.sqrt(w)[None, :]
        self.total = dsyrk(1.0, F, beta=1.0, c=self.total, lower=1, overwrite_c=1)


def product(problem: Problem, sums: Vector, a: Matrix) -> Matrix:
    """ΦᵀW(Φ − mean)c for a = L⁻ᵀc: one pass over a file, two products where the points are in memory."""
    A, w = problem.A, problem.w
    middle = sums @ a / problem.mass if problem.intercept else np.zeros(a.shape[1])
    if A.resident:  # evaluating tiles twice in the cache is quicker than writing them out once
        S = np.asarray(A.rmatmat(w[:, None] * (A.matmat(a) - middle)), dtype=np.float64)
        return problem.basis.adjoint(S)
    S = np.zeros_like(a)
    for start, stop, K in blocks(A):
        S += K.T @ (w[start:stop, None] * (K @ a - middle))
    return problem.basis.adjoint(S)


@dataclass(frozen=True, eq=False)
class Measured:
    """A solution and what was measured for it, for t targets.

    Attributes
    ----------
    c, a : ndarray of shape (r, t), (m, t)
        Coefficients of the features, and of the centres.
    intercept : ndarray of shape (t,)
        b, for the targets as given.
    errors : ndarray of shape (n, t)
        y − b − k(X, Z)a.
    gradient : ndarray of shape (r, t)
        ΦᵀW(errors) − λc, which is 0 at the solution.
    residuals : ndarray of shape (t,)
        Its length relative to that of ΦᵀWY.
    """

    c: Matrix
    a: Matrix
    intercept: Vector
    errors: Matrix
    gradient: Matrix
    residuals: Vector

    def or_better(self, other: Measured) -> Measured:
        """Of each column the one with the smaller residual."""
        worse = ~(self.residuals <= other.residuals)
        pick: Any = lambda name: np.where(worse, getattr(other, name), getattr(self, name))  # noqa: E731
        return Measured(*(pick(name) for name in self.__dataclass_fields__)) if worse.any() else self


def measure(problem: Problem, first: First, c: Matrix, lam: Vector) -> Measured:
    """One pass: errors of every row with the best intercept, and the gradient."""
    A, w = problem.A, problem.w
    a = problem.basis.coefficients(c)
    b = -(first.sums @ a) / problem.mass if problem.intercept else np.zeros(len(lam))
    errors, S = np.empty_like(problem.Y), np.zeros_like(a)
    if A.resident:
        errors[...] = problem.Y - b - A.matmat(a)
        S[...] = A.rmatmat(w[:, None] * errors)
    else:
        for start, stop, K in blocks(A):
            errors[start:stop] = problem.Y[start:stop] - b - K @ a
            S += K.T @ (w[start:stop, None] * errors[start:stop])
    if problem.intercept:  # what rounding left of the mean of the errors
        shift = w @ errors / problem.mass
        errors, b, S = errors - shift, b + shift, S - first.sums[:, None] * shift
    gradient = problem.basis.adjoint(S) - lam * c
    found, whole = np.linalg.norm(gradient, axis=0), np.linalg.norm(first.pull, axis=0)
    residuals = np.divide(found, whole, out=np.zeros_like(found), where=whole > 0)
    return Measured(c, a, b + problem.middle, errors, gradient, residuals)
