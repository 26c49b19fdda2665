"""One pass, one decomposition: the inducing-point model for every λ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.linear._inducing.fit import InducingFit, as_fit
from gramian.linear._inducing.passes import First, blocks, first_pass, measure
from gramian.linear._inducing.problem import Problem, shifts_of
from gramian.linear._inducing.whitening import EPS
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
        σ² and projections of the weighted, centred features.
    vectors : ndarray of shape (r, r)
        V, the right singular vectors of the features.
    """

    problem: Problem
    first: First
    filter: Filter
    vectors: Matrix

    def coordinates(self, lam: Vector) -> Matrix:
        """C, of shape (r, t), for the λ of each target."""
        return np.asarray(self.vectors @ (self.filter.factors(lam) * self.filter.projections))

    def fit(self, shifts: Any, tol: float = 1e-8, reason: str = "asked for") -> InducingFit:
        """Return the model for one λ, or one for each target: one more pass, and another where a residual is large."""
        problem, lam = self.problem, shifts_of(shifts, self.problem.Y.shape[1])
        before = problem.A.passes
        at, steps = measure(problem, self.first, self.coordinates(lam), lam), 0
        while not np.all(at.residuals <= tol) and steps < 2:  # what forming the Gram matrix rounded away
            step = self.vectors @ (self.filter.inverse(lam) * (self.vectors.T @ at.gradient))
            at, steps = measure(problem, self.first, at.c + step, lam).or_better(at), steps + 1
        passes = 1 + problem.A.passes - before
        condition = _condition(self.filter.squares, lam)
        return as_fit(problem, self.first, at, lam, ("direct", reason, passes, steps, tol, condition))

    def path(self, alphas: Any) -> RidgePath:
        """Return the model for every λ with its leave-one-out errors, centres fixed: one more pass."""
        lam = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        f, basis, t = self.filter, self.problem.basis, self.problem.Y.shape[1]
        c = np.tensordot(self.vectors, f.solution(lam), axes=1).reshape(basis.rank, len(lam) * t)
        a = basis.coefficients(c)
        b = np.tile(self.problem.middle, len(lam))
        b = b - self.first.sums @ a / self.problem.mass if self.problem.intercept else b
        return RidgePath(
            alphas=lam,
            singular_values=np.sqrt(f.squares),
            filter_factors=f.factors(lam),
            dof=f.dof(lam),
            coef=a.T.reshape(len(lam), t, basis.m),
            intercept=b.reshape(len(lam), t),
            loo=self._left_out(lam),
            gcv=f.gcv(lam),
            log_marginal_likelihood=f.log_likelihood(lam),
            noise_variance=f.noise(lam),
        )

    def _left_out(self, lam: Vector) -> Matrix:
        """Mean squared leave-one-out errors, of shape (λs, t)."""
        p, inverse = self.problem, self.filter.inverse(lam)
        solution = self.filter.solution(lam).reshape(len(inverse), -1)
        total = np.zeros((len(lam), p.Y.shape[1]))
        for start, stop, K in blocks(p.A):
            some = np.flatnonzero(p.w[start:stop] > 0)
            if not len(some):
                continue
            F = (p.basis.features(K[some]) - self.first.mean[:, None]).T @ self.vectors
            Y, w = p.Y[start:stop][some], p.w[start:stop][some]
            errors = Y[:, None, :] - (F @ solution).reshape(len(Y), len(lam), -1)
            leverage = w[:, None] * (F**2 @ inverse + float(p.intercept) / p.mass)
            total += np.einsum("i,ilt->lt", w, leave_one_out(errors, leverage, w, p.counts) ** 2)
        return total / self.filter.count


def decompose(problem: Problem) -> Decomposed:
    first, w = first_pass(problem), problem.w
    if not problem.basis.rank:
        values, V = np.zeros(0), np.zeros((0, 0))
    else:
        values, V = scipy.linalg.eigh(first.gram, lower=True, overwrite_a=True, check_finite=False)
    values, V = values[::-1], V[:, ::-1]
    squares = np.where(values > len(values) * EPS * np.max(values, initial=0.0), values, 0.0)
    roots = np.sqrt(squares)[:, None]
    projected = V.T @ first.pull
    c = np.divide(projected, roots, out=np.zeros_like(projected), where=roots > 0)
    rest = np.maximum(w @ problem.Y**2 - np.sum(c**2, axis=0), 0.0)
    rows = float(np.count_nonzero(w))
    count, logs = (problem.mass, 0.0) if problem.counts else (rows, float(np.sum(np.log(w[w > 0]))))
    return Decomposed(problem, first, Filter(squares, c, rest, count, problem.mass, problem.intercept, logs), V)


def _condition(squares: Vector, lam: Vector) -> float | None:
    if not np.all(lam > 0) or not len(squares):
        return None
    return float(np.max((squares.max() + lam) / (squares.min() + lam)))
