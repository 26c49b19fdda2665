"""Passes over the rows of k(X, Z): the moments of whitened features, the residual of a solution, one product of CG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyr, dsyrk

from gramian.linear._inducing.problem import Problem
from gramian.linear._inducing.whitening import squares_of
from gramian.linear._places import lengths, numbers, on_host, placed, take, wide
from gramian.operators.base import Operator

__all__ = ["First", "Measured", "blocks", "first_pass", "measure", "product"]

Array = Any  # of NumPy, or a tensor where k(X, Z) lives
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SHARE = 8  # a block has at least one row for so many centres: it is then small beside the m×m matrices, and BLAS fast
ROWS = 4096  # ... and on a device as many as there are centres, and no fewer than this


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
    gram : array of shape (r, r)
        Lower triangle of Σ w(Φ − mean)(Φ − mean)ᵀ, where k(X, Z) lives: of all rows, or in proportion of a sample.
    outside : ndarray of shape (n,) or None
        ‖(I − P)φ(x)‖ of every row, where k(x, x) is known and every row was whitened.
    square : float
        Σ w‖k(x, Z)‖².
    """

    sums: Vector
    pull: Matrix
    mean: Vector
    gram: Array
    outside: Vector | None
    square: float


def blocks(A: Operator) -> Iterator[tuple[int, int, Array]]:
    """Dense rows of A in float64, some blocks joined where they would be thin beside the m×m matrices."""
    n, m = A.shape
    least, waiting, begin = min(n, m // SHARE if A.device is None else max(m, ROWS)), [], 0
    for start, stop, block in A.rows():
        waiting.append(np.asarray(block, dtype=np.float64) if A.device is None else wide(block))
        begin = start if len(waiting) == 1 else begin
        if stop - begin >= least or stop == n:
            yield begin, stop, waiting[0] if len(waiting) == 1 else A.xp.concat(waiting, axis=0)
            waiting = []


def first_pass(problem: Problem, sample: Vector | None = None) -> First:
    """Sums over all rows, and the Gram matrix of the features of all, or of a sample with its own weights."""
    A, basis, w = problem.A, problem.basis, problem.w
    W, Y = problem.there
    gram = _Gram(basis.L, problem.intercept)
    sums, pull, square = np.zeros(A.shape[1]), np.zeros((A.shape[1], problem.Y.shape[1])), 0.0
    outside = np.zeros(A.shape[0]) if sample is None and problem.own is not None else None
    for start, stop, K in blocks(A):
        some = slice(start, stop)
        sums += numbers(W[some, 0] @ K)
        pull += numbers(K.T @ (W[some, :] * Y[some, :]))
        square += float(w[some] @ squares_of(K.T))
        if sample is not None:
            chosen = np.flatnonzero(sample[some])
            if len(chosen):
                gram.add(basis.features(take(K, chosen, axis=0)), sample[some][chosen])
            continue
        F = basis.features(K)
        if outside is not None and problem.own is not None:
            outside[some] = basis.outside(K, F, problem.own[some])
        gram.add(F, w[some])
    return First(sums, basis.adjoint(pull), numbers(gram.mean), gram.total, outside, square)


class _Gram:
    """Σ w(Φ − μ)(Φ − μ)ᵀ, merged block by block about the block's own mean, which loses no digits to a large mean."""

    def __init__(self, L: Array, centre: bool) -> None:
        self.total: Array = placed(np.zeros(L.shape, order="F"), L)
        self.mean: Array = placed(np.zeros(len(L)), L)
        self.mass, self.centre = 0.0, centre

    def add(self, F: Array, w: Vector) -> None:
        """Take in the columns of F, which is overwritten."""
        mass = float(w.sum())
        if mass == 0.0 or not len(F):
            return
        if self.centre:
            mean = F @ placed(w, F) / mass
            F -= mean[:, None]
            step, both = mean - self.mean, self.mass + mass
            self.total = _with_square(self.total, step[:, None], self.mass * mass / both)
            self.mean = self.mean + step * (mass / both)
            self.mass = both
        F *= placed(np.sqrt(w), F)[None, :]
        self.total = _with_square(self.total, F)


def _with_square(total: Array, F: Array, factor: float = 1.0) -> Array:
    """Add factor·FFᵀ in place: the lower triangle in NumPy, on a device all of it."""
    if not on_host(total):
        total += F @ (F.T if factor == 1.0 else factor * F.T)
        return total
    if F.shape[1] == 1:
        return dsyr(factor, F[:, 0], lower=1, a=total, overwrite_a=1)
    return dsyrk(factor, F, beta=1.0, c=total, lower=1, overwrite_c=1)


def product(problem: Problem, sums: Vector, a: Matrix) -> Matrix:
    """ΦᵀW(Φ − mean)c for a = L⁻ᵀc: one pass over a file or on a device, two products of points in memory."""
    A, (W, _) = problem.A, problem.there
    middle = sums @ a / problem.mass if problem.intercept else np.zeros(a.shape[1])
    if A.resident and A.device is None:  # evaluating tiles twice in the cache is quicker than writing them out once
        return problem.basis.adjoint(numbers(A.rmatmat(W * (A.matmat(a) - middle))))
    there = placed(a, W)
    if A.resident and not problem.intercept:
        return problem.basis.adjoint(numbers(A.normal(there, W[:, 0])))
    S, shift = 0.0 * there, placed(middle, W)
    for start, stop, K in blocks(A):
        S += K.T @ (W[start:stop, :] * (K @ there - shift))
    return problem.basis.adjoint(numbers(S))


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
    a = problem.basis.coefficients(c)
    b = -(first.sums @ a) / problem.mass if problem.intercept else np.zeros(len(lam))
    w, (errors, S) = problem.w, _errors(problem, a, b)
    if problem.intercept:  # what rounding left of the mean of the errors
        shift = w @ errors / problem.mass
        errors, b, S = errors - shift, b + shift, S - first.sums[:, None] * shift
    gradient = problem.basis.adjoint(S) - lam * c
    found, whole = lengths(gradient), lengths(first.pull)
    residuals = np.divide(found, whole, out=np.zeros_like(found), where=whole > 0)
    return Measured(c, a, b + problem.middle, errors, gradient, residuals)


def _errors(problem: Problem, a: Matrix, b: Vector) -> tuple[Matrix, Matrix]:
    """Y − b − k(X, Z)a and k(Z, X)W times that, in one pass over a file or on a device, else two products."""
    A, (W, Y) = problem.A, problem.there
    if A.resident and A.device is None:
        E = Y - b - A.matmat(a)
        return E, numbers(A.rmatmat(W * E))
    there, shift = placed(a, W), placed(b, W)
    errors, S = np.empty_like(problem.Y), 0.0 * there
    for start, stop, K in blocks(A):
        E = Y[start:stop, :] - shift - K @ there
        S += K.T @ (W[start:stop, :] * E)
        errors[start:stop] = numbers(E)
    return errors, numbers(S)
