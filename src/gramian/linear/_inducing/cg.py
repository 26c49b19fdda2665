r"""Conjugate gradients on (ΦᵀWΦ + λI)c = ΦᵀWy, preconditioned with the Gram matrix of a sample of rows.

The preconditioner is that of KRILL with rows drawn in proportion to their weights (Díaz, Epperly, Frangella, Tropp and
Webber, 2023): (Σw/s)Σ Φ_sΦ_sᵀ + λI. With the centres themselves as the sample, it is Falkon's (Rudi, Carratino and
Rosasco, 2017).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.linear._inducing.passes import First, Measured, measure, product
from gramian.linear._inducing.problem import Problem
from gramian.linear._places import Array, cholesky, eigh, numbers, on_host, placed, triangular

__all__ = ["ROWS", "Report", "iterate", "preconditioner", "sampled"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Report = Callable[[int, float], None] | None
Inverse = Callable[[Matrix, Index], Matrix]

ROWS = 4  # of the sample for each centre
AIM = 0.5  # of the tolerance: the gradient that is carried along differs a little from the true one
PATIENCE = 40  # iterations without a new lowest gradient


def sampled(w: Vector, m: int, seed: int) -> Vector | None:
    """Weights of a sample of 4m rows drawn in proportion to w, to the same sum; None, for all, if there are fewer."""
    size, mass = ROWS * m, float(w.sum())
    if size >= np.count_nonzero(w):
        return None
    drawn = np.random.default_rng(seed).choice(len(w), size=size, p=w / mass)
    return np.asarray(np.bincount(drawn, minlength=len(w)) * (mass / size))


def preconditioner(gram: Array, lam: Vector) -> Inverse:
    """(G + λI)⁻¹ for the λ of each column: one Cholesky factorisation, or the eigenvectors where λ differ."""
    if not on_host(gram):
        return _on_device(gram, lam)
    if len(np.unique(lam)) == 1:
        gram[np.diag_indices(len(gram))] += lam[0]
        factor = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        return lambda R, columns: np.asarray(scipy.linalg.cho_solve(factor, R, check_finite=False))
    values, V = scipy.linalg.eigh(gram, lower=True, overwrite_a=True, check_finite=False)
    values = np.maximum(values, 0.0)[:, None]
    return lambda R, columns: np.asarray(V @ ((V.T @ R) / (values + lam[None, columns])))


def _on_device(gram: Array, lam: Vector) -> Inverse:
    """The same where G is on a device: vectors come and go in NumPy."""
    if len(np.unique(lam)) == 1:
        L = cholesky(gram + float(lam[0]) * placed(np.eye(len(gram)), gram))
        return lambda R, columns: np.asarray(triangular(L, triangular(L, R), transposed=True))
    found, V = eigh(gram)
    values = np.maximum(found, 0.0)[:, None]

    def inverse(R: Matrix, columns: Index) -> Matrix:
        inner = numbers(V.T @ placed(R, V)) / (values + lam[None, columns])
        return np.asarray(numbers(V @ placed(inner, V)))

    return inverse


def iterate(
    problem: Problem, first: First, lam: Vector, inverse: Inverse, tol: float, limit: int, report: Report
) -> tuple[Measured, int]:
    """Steps until the gradients carried along are small, then the true ones; again while that brings them down."""
    zero = np.zeros_like(first.pull)
    there = np.where(np.any(first.pull != 0.0, axis=0), 1.0, 0.0)
    at = Measured(zero, np.zeros((problem.A.shape[1], len(lam))), problem.middle, problem.Y, first.pull, there)
    done, best, todo = 0, None, there > 0
    while best is None or (todo.any() and done < limit):
        columns = np.flatnonzero(todo)
        c, steps = _steps(problem, first, lam, inverse, at, columns, (tol, limit - done, done), report)
        previous, at, done = at.residuals, measure(problem, first, c, lam), done + steps
        todo = ~(at.residuals <= tol) & (at.residuals <= 0.5 * previous)
        best = at = at if best is None else at.or_better(best)
    return best, done


def _steps(
    problem: Problem,
    first: First,
    lam: Vector,
    inverse: Inverse,
    at: Measured,
    columns: Index,
    rule: tuple[float, int, int],
    report: Report,
) -> tuple[Matrix, int]:
    """Preconditioned conjugate gradients for some columns, all in one product; each leaves when it is done or stuck."""
    tol, limit, done = rule
    c, whole, steps = at.c.copy(), np.linalg.norm(first.pull, axis=0), 0
    x, r = at.c[:, columns], at.gradient[:, columns]
    z = inverse(r, columns)
    p, slope = z, _dots(r, z)
    low, lowest, since = x.copy(), np.linalg.norm(r, axis=0), np.zeros(len(columns))
    while len(columns) and steps < limit:
        q = product(problem, first.sums, problem.basis.coefficients(p)) + lam[columns] * p
        alpha = slope / _dots(p, q)
        x, r, steps = x + alpha * p, r - alpha * q, steps + 1
        size = np.linalg.norm(r, axis=0)
        better = size < lowest
        low, lowest, since = np.where(better, x, low), np.fmin(size, lowest), np.where(better, 0.0, since + 1.0)
        if report is not None:
            report(done + steps, float(np.max(size / whole[columns])))
        stay = (size > AIM * tol * whole[columns]) & (since <= PATIENCE) & (steps < limit)
        c[:, columns[~stay]] = low[:, ~stay]
        z = inverse(r, columns)
        before, slope = slope, _dots(r, z)
        p = z + (slope / before) * p
        columns, x, r, p, slope, low, lowest, since = (
            columns[stay], x[:, stay], r[:, stay], p[:, stay], slope[stay], low[:, stay], lowest[stay], since[stay],
        )  # fmt: skip
    return c, steps


def _dots(a: Matrix, b: Matrix) -> Vector:
    return np.asarray(np.einsum("ij,ij->j", a, b))
