r"""Ways to B = (X̃ᵀX̃+λI)⁻¹X̃ᵀỸ, each with the inverse it holds: for a correction, for variances, for error bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as la
from scipy.linalg import lapack

from gramian.compute.devices import like, to_numpy
from gramian.linear.path import Filter
from gramian.ridge.decomposition import CONTRACTION, SAFE, Decomposition, cancelled, real_columns, relative_rounding
from gramian.ridge.problem import RidgeProblem

__all__ = ["KEEP", "Cholesky", "Dual", "Group", "Route", "Spectral", "norms", "route_of"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = 2.0**-52
SATURATED = 1e-4  # of N − df: below, with as many coefficients as observations, residuals are not differences
KEEP = 2**22  # numbers of a basis that a fitted model carries with it unless asked for more: 32 MiB


@dataclass(frozen=True, eq=False)
class Group:
    """(X̃ᵀX̃+λI)⁻¹ of some targets: V diag(inverse) Vᵀ, and ``outside`` times what V does not span.

    Attributes
    ----------
    targets : ndarray of shape (g,)
        Which.
    basis : ndarray of shape (p, r)
        V.
    inverse : ndarray of shape (r, g)
        1/(σ²+λ).
    outside : ndarray of shape (g,)
        1/λ where V has fewer than p columns, else 0.
    unit : float
        All this is of data multiplied by it.
    """

    targets: npt.NDArray[np.intp]
    basis: Matrix
    inverse: Matrix
    outside: Vector
    unit: float


class Route(ABC):
    """One way to the coefficients of some targets.

    Attributes
    ----------
    method, solver : str
        What is done, in words; its short name.
    condition : float
        Condition number of the matrix that is inverted.
    floor : ndarray of shape (t,)
        Lower bound on σ_p² + λ.
    dof, free : ndarray of shape (t,)
        Σσ²/(σ²+λ), without the intercept; N − df with it, which may be far smaller than either and is summed itself.
    rss : ndarray of shape (t,) or None
        Residual sums of squares where the method knows them better than the residuals, which cancel.
    rank : int
        Numerical rank of X̃, as far as the method can see.
    reads : int
        Passes over the data that no operator has counted.
    """

    method: str
    solver: str
    condition: float
    floor: Vector
    dof: Vector
    free: Vector
    rank: int
    rss: Vector | None = None
    reads: int = 0

    @abstractmethod
    def coefficients(self) -> Matrix:
        """B, of shape (p, t)."""

    @abstractmethod
    def improved(self, B: Matrix, R: Matrix, G: Matrix) -> Matrix:
        """B after one step of refinement with R = Ỹ − X̃B and G = X̃ᵀR − λB."""

    @abstractmethod
    def group(self) -> tuple[Matrix, Matrix, Vector]:
        """Basis, inverse and outside of a :class:`Group`."""

    def bounds(self, problem: RidgeProblem, B: Matrix, G: Matrix, distance: Vector, eps: float) -> Vector:
        """‖B̂ − B‖ is at most ‖G‖/(σ_p²+λ), to which rounding adds; ``distance`` is ‖R‖, or more.

        That of X̃ᵀR is divided by σ_p² + λ as well, that of R = Ỹ − X̃B by its root: ‖(X̃ᵀX̃+λI)⁻¹X̃ᵀ‖ is no more.
        """
        size = problem.magnitude
        floor = np.where(self.floor > 0, self.floor, np.nan)
        within = eps * (np.sqrt(problem.energy) + size * norms(B)) / np.sqrt(floor)
        bounds = (norms(G) + eps * size * distance) / floor + within + 2 * EPS * norms(B)
        return np.where(self.floor > 0, bounds, np.inf)


class Spectral(Route):
    """B = V diag(...) c, from a basis V of the coefficients."""

    def __init__(self, problem: RidgeProblem, found: Decomposition, lam: Vector) -> None:
        filter_ = found.filter(problem)
        self.method, self.solver = found.label, "cholesky" if found.squared else "svd"
        self.basis, self.inverse = found.basis, filter_.inverse(lam)
        self.coordinates = filter_.factors(lam) * found.projections
        low, p = found.smallest(problem), problem.source.shape[1]
        self.floor = low + lam
        self.condition = _ratio(found.top + float(np.min(lam)), low + float(np.min(lam)))
        self.dof, self.free = filter_.shrinkage(lam).sum(axis=0), filter_.free(lam)
        self.rss = _rss(filter_, lam) if found.spans(problem) else None
        self.rank = found.rank(problem)
        self.outside = _inverse(lam) if len(found.squares) < p else np.zeros(len(lam))

    def coefficients(self) -> Matrix:
        """V σc/(σ²+λ)."""
        return np.asarray(self.basis @ self.coordinates)

    def improved(self, B: Matrix, R: Matrix, G: Matrix) -> Matrix:
        """B + V diag(1/(σ²+λ)) VᵀG."""
        return np.asarray(B + self.basis @ (self.inverse * (self.basis.T @ G)))

    def group(self) -> tuple[Matrix, Matrix, Vector]:
        """V, 1/(σ²+λ), and 1/λ outside its span."""
        return self.basis, self.inverse, self.outside


class Dual(Route):
    """B = X̃ᵀa with a = (X̃X̃ᵀ+λI)⁻¹Ỹ = U c/(σ²+λ)."""

    def __init__(self, problem: RidgeProblem, found: Decomposition, lam: Vector) -> None:
        filter_ = found.filter(problem)
        self.problem, self.found, self.lam = problem, found, lam
        self.method, self.solver = found.label, "dual" if found.squared else "svd"
        self.inverse = filter_.inverse(lam)
        self.a = found.basis @ (self.inverse * found.projections)
        least = float(np.min(lam))
        self.floor = lam + (found.smallest(problem) if len(found.squares) >= problem.source.shape[1] else 0.0)
        self.condition = _ratio(found.top + least, found.smallest(problem) + least)
        self.dof, self.free = filter_.shrinkage(lam).sum(axis=0), filter_.free(lam)
        self.rss = _rss(filter_, lam)
        self.rank = found.rank(problem)

    def coefficients(self) -> Matrix:
        """X̃ᵀa."""
        return _adjoint(self.problem, self.a)

    def improved(self, B: Matrix, R: Matrix, G: Matrix) -> Matrix:
        """The same after a step of refinement of the dual system, whose residual is R − λa."""
        U = self.found.basis
        self.a = self.a + U @ (self.inverse * (U.T @ (R - self.lam * self.a)))
        return self.coefficients()

    def group(self) -> tuple[Matrix, Matrix, Vector]:
        """V = X̃ᵀU/σ of the directions that stand out of rounding."""
        keep, sigma = slice(0, self.rank), np.sqrt(self.found.squares)
        V = _adjoint(self.problem, self.found.basis[:, keep]) / sigma[keep]
        return V, self.inverse[keep], _inverse(self.lam)


class Cholesky(Route):
    r"""One λ: X̃ᵀX̃ + λI = S⁻¹LLᵀS⁻¹ with S making the diagonal 1, which Cholesky's rounding does not see."""

    solver = "cholesky"

    def __init__(self, problem: RidgeProblem, lam: Vector) -> None:
        assert problem.gram is not None
        assert problem.cross is not None
        p = len(problem.gram)
        self.method = "Cholesky factor of X̃ᵀX̃ + λI"
        self.cross = problem.cross
        shift = float(lam[0])
        self.scale, L, self.condition = _scaled_factor(problem.gram, shift)
        self.safe = self.condition <= SAFE
        if not self.safe:
            return
        self.factor = L
        inverse, _ = lapack.dtrtri(L, lower=1)
        self.basis = self.scale[:, None] * np.tril(inverse).T
        trace = float(np.sum(self.basis**2))
        left = shift * trace  # Σλ/(σ²+λ)
        fixed = problem.weights.count - float(problem.intercept) - p
        saturated = fixed <= 0 and left < SATURATED  # then RSS/(N − df) is a ratio of two small numbers
        self.safe = cancelled(problem) * trace <= CONTRACTION and not saturated
        self.floor = np.full(len(lam), max(shift, 1.0 / trace - cancelled(problem)))
        kept = p - left if left < 0.5 * p else float(np.sum(self.basis * (problem.gram @ self.basis)))
        self.dof = np.full(len(lam), max(kept, 0.0))
        self.free = np.full(len(lam), max(fixed + left, 0.0))
        self.rank = _rank(problem)

    def coefficients(self) -> Matrix:
        """(X̃ᵀX̃+λI)⁻¹X̃ᵀỸ."""
        return self._solve(self.cross)

    def improved(self, B: Matrix, R: Matrix, G: Matrix) -> Matrix:
        """B + (X̃ᵀX̃+λI)⁻¹G."""
        return B + self._solve(G)

    def group(self) -> tuple[Matrix, Matrix, Vector]:
        """S L⁻ᵀ, whose square is the inverse."""
        t = len(self.dof)
        return self.basis, np.ones((len(self.basis), t)), np.zeros(t)

    def _solve(self, H: Matrix) -> Matrix:
        S = self.scale[:, None]
        return np.asarray(S * la.cho_solve((self.factor, True), S * H, check_finite=False))


def _scaled_factor(gram: Matrix, shift: float) -> tuple[Vector, Matrix, float]:
    """S, L and the condition number of S(G+λI)S; infinite where it is not positive definite."""
    diagonal = np.diagonal(gram) + shift
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = gram * scale[:, None] * scale[None, :]
    np.fill_diagonal(scaled, 1.0)
    norm = float(np.max(np.abs(scaled).sum(axis=0)))
    L, info = lapack.dpotrf(scaled, lower=1, overwrite_a=1)
    if info != 0 or not np.all(diagonal > 0):
        return scale, L, np.inf
    reciprocal, _ = lapack.dpocon(L, norm, uplo="L")
    return scale, L, _ratio(1.0, float(reciprocal))


def _rank(problem: RidgeProblem) -> int:
    """Rank of X̃ with columns of length 1, by a Cholesky factorisation with pivots: σ to the root of rounding."""
    assert problem.gram is not None
    real = real_columns(problem)
    scale = np.where(real, 1.0 / np.sqrt(np.where(real, problem.diagonal, 1.0)), 0.0)
    scaled = problem.gram * scale[:, None] * scale[None, :]
    *_, rank, _ = lapack.dpstrf(scaled, tol=4 * relative_rounding(problem), lower=1, overwrite_a=1)
    return int(rank)


def _rss(filter_: Filter, lam: Vector) -> Vector:
    """Σ(λ/(σ²+λ))²c² with one λ for each target: the residuals, where U spans all of Ỹ."""
    return np.asarray(np.sum((filter_.left(lam) * filter_.projections) ** 2, axis=0))


def route_of(problem: RidgeProblem, found: Decomposition, lam: Vector) -> Route:
    """Return the route that a decomposition allows."""
    return Dual(problem, found, lam) if found.dual else Spectral(problem, found, lam)


def _adjoint(problem: RidgeProblem, U: Matrix) -> Matrix:
    """X̃ᵀU, in NumPy."""
    V: Any = problem.A.T @ like(problem.source, U)
    return to_numpy(V, float)


def norms(G: Matrix) -> Vector:
    """Lengths of the columns."""
    return np.asarray(np.linalg.norm(G, axis=0))


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else np.inf


def _inverse(lam: Vector) -> Vector:
    return np.divide(1.0, lam, out=np.zeros_like(lam), where=lam > 0)
