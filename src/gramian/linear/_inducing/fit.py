"""The fitted model with its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gramian.linear._inducing.bounds import BOUNDED, error_bounds
from gramian.linear._inducing.passes import First, Measured
from gramian.linear._inducing.problem import Problem
from gramian.linear._inducing.whitening import EPS, Whitening
from gramian.linear._places import numbers, placed
from gramian.results import Residual

__all__ = ["InducingFit", "as_fit"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InducingFit:
    """A fitted model f(x) = k(x, Z)a + b.

    Attributes
    ----------
    coef : ndarray of shape (m, t)
        a, which sums to 0 where there is an intercept.
    intercept : ndarray of shape (t,)
        b.
    objective : ndarray of shape (t,)
        Σ w(y − f)² + λaᵀK_mm a.
    certificate : Residual
        Residuals of the normal equations, and bounds on the distance from exact kernel ridge.
    rank : int
        Dimension of the span of the centres' features.
    basis : Whitening
        Coordinates in that span, in NumPy whatever the device of the fit.
    mean : ndarray of shape (r,)
        Coordinates of the mean feature φ̄, where there is an intercept.
    mean_outside : float or None
        Bound on the length of the part of φ̄ outside the span; None where k(x, x) was not given.
    """

    coef: Matrix
    intercept: Vector
    objective: Vector
    certificate: Residual
    rank: int
    basis: Whitening
    mean: Vector
    mean_outside: float | None

    def lengths(self, K: Matrix, own: Vector) -> Vector:
        """‖φ(x)‖, or with an intercept ‖φ(x) − φ̄‖ from above, of points by their rows k(x, Z) and k(x, x)."""
        if self.basis.means is None:
            return np.sqrt(own)
        if self.mean_outside is None:
            raise ValueError("Lengths about the mean feature need k(x, x) of the training rows: give diagonal.")
        F = self.basis.features(K)
        across = self.basis.outside(K, F, own) + self.mean_outside
        return np.asarray(np.hypot(np.linalg.norm(F - self.mean[:, None], axis=0), across))

    def times(self, scale: Vector | float) -> InducingFit:
        """Return the model of targets ``scale`` times as large."""
        bounds = self.certificate.error_bounds
        certificate = self.certificate if bounds is None else self.certificate.with_(error_bounds=bounds * scale)
        with np.errstate(over="ignore"):  # a square beyond the largest number is infinite
            objective = self.objective * scale * scale
        coef, intercept = self.coef * scale, self.intercept * scale
        return replace(self, coef=coef, intercept=intercept, objective=objective, certificate=certificate)

    def __repr__(self) -> str:
        m, t = self.coef.shape
        return f"InducingFit({m} centres of rank {self.rank}, {t} targets; {self.certificate.method})"


def as_fit(
    problem: Problem, first: First, at: Measured, lam: Vector, how: tuple[str, str, int, int, float, float | None]
) -> InducingFit:
    """Name the results, with the certificate."""
    basis, m, (method, reason, passes, steps, tol, condition) = problem.basis, problem.A.shape[1], how
    bounds, note = error_bounds(problem, first, at, lam)
    said = (problem.A.precision,) if problem.A.precision else ()
    cut = (f"{m - basis.rank - problem.intercept} directions of k(Z, Z) are rounding and were cut",)
    names = {"direct": "eigenvectors of the Gram matrix", "cg": "conjugate gradients, preconditioned by a sample"}
    certificate = Residual(
        method=f"inducing points, {m} centres: {names[method]}",
        reason=reason,
        passes=passes,
        iterations=steps,
        residuals=at.residuals,
        tolerance=tol,
        rounding=max(EPS, problem.A.epsilon) * (np.sqrt(m) + 16),
        condition=condition,
        error_bounds=bounds,
        bounded="" if bounds is None else BOUNDED,
        notes=(f"rank {basis.rank}", *(cut if m - basis.rank > problem.intercept else ()), *said, note),
    )
    objective = problem.w @ at.errors**2 + lam * np.sum(at.c**2, axis=0)
    mean = _mean(problem, first)
    across = _mean_outside(problem, first, mean)
    found = InducingFit(at.a, at.intercept, objective, certificate, basis.rank, basis.hosted(), mean, across)
    return found.times(problem.scale)


def _mean(problem: Problem, first: First) -> Vector:
    """Coordinates of the mean feature."""
    basis = problem.basis
    return np.asarray(numbers(basis.features(placed(first.sums[None, :] / problem.mass, basis.L))[:, 0]))


def _mean_outside(problem: Problem, first: First, mean: Vector) -> float | None:
    """‖(I − P)φ̄‖ from above: Σ w̄‖(I − P)φ(x)‖, or by Jensen's inequality from Σ w̄‖φ(x)‖² and Pφ̄."""
    if problem.own is None:
        return None
    if first.outside is not None:
        return float(problem.w @ first.outside / problem.mass)
    row_mean = np.mean(first.sums) / problem.mass
    square = problem.basis.squares(problem.w @ problem.own / problem.mass, row_mean)
    return float(np.sqrt(max(float(square) - float(mean @ mean), 0.0) + 1e3 * EPS * problem.basis.size**2))
