"""One pass, one decomposition: the inducing-point model for every λ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace

from gramian.linear._inducing.fit import InducingFit, as_fit
from gramian.linear._inducing.passes import First, blocks, first_pass, measure
from gramian.linear._inducing.problem import Problem, shifts_of
from gramian.linear._inducing.whitening import EPS
from gramian.linear._places import Array, eigh, numbers, on_host, placed, take
from gramian.linear.path import Filter, RidgePath, leave_one_out

__all__ = ["Decomposed", "decompose"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decomposed:
    """The problem decomposed by one pass: every λ follows.

    Attributes
    ----------
    filter : Filter
        σ², and projections of the targets divided by their scale, of the weighted, centred features.
    vectors : array of shape (r, r)
        V, the right singular vectors of the features, where k(X, Z) lives.
    """

    problem: Problem
    first: First
    filter: Filter
    vectors: Array

    def coordinates(self, lam: Vector) -> Matrix:
        """C, of shape (r, t), for the λ of each target, divided by its scale."""
        return self._combined(self.filter.factors(lam) * self.filter.projections)

    def _combined(self, C: Matrix) -> Matrix:
        """V C, in NumPy."""
        return np.asarray(numbers(self.vectors @ placed(C, self.vectors)))

    def _projected(self, C: Matrix) -> Matrix:
        """VᵀC, in NumPy."""
        return np.asarray(numbers(self.vectors.T @ placed(C, self.vectors)))

    def fit(self, shifts: Any, tol: float = 1e-8, reason: str = "asked for") -> InducingFit:
        """Return the model for one λ, or one for each target: one more pass, and another where a residual is large."""
        problem, lam = self.problem, shifts_of(shifts, self.problem.Y.shape[1])
        before = problem.A.passes
        at, steps = measure(problem, self.first, self.coordinates(lam), lam), 0
        while not np.all(at.residuals <= tol) and steps < 2:  # what forming the Gram matrix rounded away
            step = self._combined(self.filter.inverse(lam) * self._projected(at.gradient))
            at, steps = measure(problem, self.first, at.c + step, lam).or_better(at), steps + 1
        passes = 1 + problem.A.passes - before
        condition = _condition(self.filter.squares, lam)
        return as_fit(problem, self.first, at, lam, ("direct", reason, passes, steps, tol, condition))

    def path(self, alphas: Any) -> RidgePath:
        """Return the model for every λ with its leave-one-out errors, centres fixed: one more pass."""
        lam = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        p, f, basis, scale = self.problem, self.filter, self.problem.basis, self.problem.scale
        t = len(scale)
        c = self._combined(f.solution(lam).reshape(basis.rank, len(lam) * t))
        a = basis.coefficients(c)
        b = np.tile(p.middle, len(lam))
        b = b - self.first.sums @ a / p.mass if p.intercept else b
        loo = self._mean_squares(lam)
        nu = f.count - float(p.intercept)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # one row and an intercept leave nothing
            return RidgePath(
                alphas=lam,
                singular_values=np.sqrt(f.squares),
                filter_factors=f.factors(lam),
                dof=f.dof(lam),
                coef=a.T.reshape(len(lam), t, basis.m) * scale[:, None],
                intercept=b.reshape(len(lam), t) * scale,
                loo=loo * scale**2,
                gcv=f.gcv(lam) * scale**2,
                log_marginal_likelihood=f.log_likelihood(lam) - nu * np.log(scale),
                noise_variance=f.noise(lam) * scale**2,
            )

    def left_out(self, alphas: Any) -> Iterator[tuple[npt.NDArray[np.intp], Matrix]]:
        """Yield the numbers of some rows and their leave-one-out errors, of shape (rows, λs, t): one pass over all."""
        lam = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        return ((rows, errors * self.problem.scale) for rows, errors in self._scaled_errors(lam))

    def _mean_squares(self, lam: Vector) -> Matrix:
        """Mean squared leave-one-out errors of the targets divided by their scale, of shape (λs, t)."""
        total = np.zeros((len(lam), len(self.problem.scale)))
        for rows, errors in self._scaled_errors(lam):
            total += np.einsum("i,ilt->lt", self.problem.w[rows], errors**2)
        return total / self.filter.count

    def _scaled_errors(self, lam: Vector) -> Iterator[tuple[npt.NDArray[np.intp], Matrix]]:
        p, inverse = self.problem, self.filter.inverse(lam)
        t = len(p.scale)
        V, mean = self.vectors, placed(self.first.mean, self.vectors)
        solution = placed(self.filter.solution(lam).reshape(len(inverse), len(lam) * t), V)
        weights = placed(inverse, V)
        for start, stop, K in blocks(p.A):
            rows = start + np.flatnonzero(p.w[start:stop] > 0)
            if not len(rows):
                continue
            F = (p.basis.features(take(K, rows - start, axis=0)) - mean[:, None]).T @ V
            errors = p.Y[rows][:, None, :] - numbers(F @ solution).reshape(len(rows), len(lam), t)
            leverage = p.w[rows][:, None] * (numbers(F**2 @ weights) + float(p.intercept) / p.mass)
            yield rows, leave_one_out(errors, leverage, p.copies[rows], True)


def decompose(problem: Problem) -> Decomposed:
    first, w = first_pass(problem), problem.w
    values, V = _eigenvectors(first.gram)
    squares = np.where(values > len(values) * EPS * np.max(values, initial=0.0), values, 0.0)
    roots = np.sqrt(squares)[:, None]
    projected = np.asarray(numbers(V.T @ placed(first.pull, V)))
    c = np.divide(projected, roots, out=np.zeros_like(projected), where=roots > 0)
    rest = np.maximum(w @ problem.Y**2 - np.sum(c**2, axis=0), 0.0)
    there, copies = w > 0, problem.copies
    logs = float(copies[there] @ np.log(w[there] / copies[there]))
    kept = Filter(squares, c, rest, float(copies.sum()), problem.mass, problem.intercept, logs)
    return Decomposed(problem, first, kept, V)


def _eigenvectors(gram: Array) -> tuple[Vector, Array]:
    """Eigenvalues in NumPy and eigenvectors where the matrix lives, in descending order."""
    if not len(gram):
        return np.zeros(0), gram
    if not on_host(gram):
        values, V = eigh(gram)
        return values[::-1], array_namespace(V).flip(V, axis=1)
    values, V = scipy.linalg.eigh(gram, lower=True, overwrite_a=True, check_finite=False)
    return values[::-1], V[:, ::-1]


def _condition(squares: Vector, lam: Vector) -> float | None:
    if not np.all(lam > 0) or not len(squares):
        return None
    return float(np.max((squares.max() + lam) / (squares.min() + lam)))
