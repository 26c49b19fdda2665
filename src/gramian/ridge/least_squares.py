r"""λ = 0: ordinary least squares, which does not care how its columns are scaled, or the solution of least norm.

Columns are brought to about length 1 before the rank is judged. A small problem of full rank is refined as Björck
(1967) does it: with A = QR, the residuals of r + Ax = b and Aᵀr = 0 are taken in extended precision and both r and x
are corrected, so that what remains is little more than the rounding of the answer, whatever the condition up to 1/ε.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg as la

from gramian.compute.devices import to_numpy
from gramian.ridge.decomposition import Decomposition, augmented_triangle, by_svd, real_columns, relative_rounding
from gramian.ridge.problem import RidgeProblem
from gramian.ridge.routes import Dual, Route, norms

__all__ = ["SMALL", "LeastSquares", "refined"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Extended = npt.NDArray[np.longdouble]

EPS = 2.0**-52
SMALL = 2**18  # cells up to which products in extended precision, which no BLAS makes, cost next to nothing
ROUNDS = 8


class LeastSquares(Route):
    """B = D⁻¹(X̃D⁻¹)⁺Ỹ where the columns are independent, else the solution of least norm.

    Attributes
    ----------
    basis : ndarray of shape (p, r)
        M with (X̃ᵀX̃)⁺ = MMᵀ.
    steepest : float
        1/σ of the least singular value kept, of columns of length 1.
    """

    solver = "svd"

    def __init__(self, problem: RidgeProblem) -> None:
        n, p = problem.source.shape
        self.problem, t = problem, problem.Y.shape[1]
        self.outside = np.zeros(t)
        if p > n:
            self._from_svd(problem, by_svd(problem))
        else:
            self._from_triangle(problem)
        least = 1.0 / np.linalg.norm(self.basis, 2) - 4 * EPS * problem.A.offset**0.5 if self.rank else np.inf
        self.floor = np.full(t, max(float(least), 0.0) ** 2)
        self.dof = np.full(t, float(self.rank))
        self.free = np.full(t, max(problem.weights.count - float(problem.intercept) - self.rank, 0.0))

    def _from_svd(self, problem: RidgeProblem, found: Decomposition) -> None:
        """U, Σ, V of a wide X̃, cut to its rank."""
        self.rank = found.rank(self.problem)
        sigma = np.sqrt(found.squares[: self.rank])
        V = Dual(self.problem, found, np.ones(1)).group()[0] if found.dual else found.basis[:, : self.rank]
        self.method = f"{found.label}, least norm"
        self.condition = float(sigma[0] / sigma[-1]) if self.rank else 1.0
        self.steepest = problem.total**0.5 / float(sigma[-1]) if self.rank else 0.0
        self.basis = V[:, : self.rank] / sigma
        self.start = self.basis @ found.projections[: self.rank]

    def _from_triangle(self, problem: RidgeProblem) -> None:
        """R of [X̃D⁻¹ Ỹ] = QR and the SVD of its first p columns."""
        p = problem.source.shape[1]
        d = _lengths(problem)
        R = augmented_triangle(problem, d)
        U, s, Vt = la.svd(R[:p, :p], check_finite=False)
        self.rank = int(np.count_nonzero(s > relative_rounding(problem) * max(s[0], 1e-300)))
        r = self.rank
        self.method = "QR of X̃ with columns of length 1" + ("" if r == p else ", least norm")
        self.condition = float(s[0] / s[r - 1]) if r else 1.0
        self.steepest = 1.0 / float(s[r - 1]) if r else 0.0
        self.basis = _without(Vt[r:].T / d[:, None], Vt[:r].T / d[:, None] / s[:r])
        self.start = self.basis @ (U[:, :r].T @ R[:p, p:])

    def coefficients(self) -> Matrix:
        """D⁻¹(X̃D⁻¹)⁺Ỹ."""
        return self.start

    def improved(self, B: Matrix, R: Matrix, G: Matrix) -> Matrix:
        """B + (X̃ᵀX̃)⁺G."""
        return np.asarray(B + self.basis @ (self.basis.T @ G))

    def group(self) -> tuple[Matrix, Matrix, Vector]:
        """M, whose square is the (pseudo-)inverse."""
        return self.basis, np.ones((self.rank, len(self.dof))), self.outside

    def bounds(self, problem: RidgeProblem, B: Matrix, G: Matrix, distance: Vector, eps: float) -> Vector:
        """‖(X̃ᵀX̃)⁺G‖ and what rounding can add, for columns of length 1, and so however they were scaled."""
        if self.rank == 0:
            return np.zeros(B.shape[1])
        if not np.all(self.floor > 0):
            return np.full(B.shape[1], np.inf)
        noise = eps * len(B) ** 0.5 * self.steepest * (distance + np.sqrt(problem.energy))
        after = 4 * eps * problem.A.offset**0.5  # what cancels where means are taken off after multiplying
        noise = noise + after * (norms(B) + distance / np.sqrt(self.floor))
        return np.asarray(norms(self.basis @ (self.basis.T @ G)) + noise / np.sqrt(self.floor) + EPS * norms(B))

    def measured(self) -> tuple[Matrix, Matrix, Matrix] | None:
        """B, R and G refined in extended precision, for small dense data of full rank; else None."""
        source = self.problem.source
        n, p = source.shape
        if self.rank < p or n * p > SMALL or source.sparse:
            return None
        self.reads = 1
        return refined(self.problem)


def _lengths(problem: RidgeProblem) -> Vector:
    """Lengths of the columns of X̃ as powers of two, which round nothing; infinite for a constant column."""
    real = real_columns(problem)
    lengths = np.exp2(np.round(0.5 * np.log2(np.where(real, problem.diagonal, 1.0))))
    return np.asarray(np.where(real, lengths, np.inf))


def _without(N: Matrix, M: Matrix) -> Matrix:
    """M less its components along the columns of N."""
    if not N.shape[1] or not M.shape[1]:
        return M
    Q = la.orth(N)
    return np.asarray(M - Q @ (Q.T @ M))


def refined(problem: RidgeProblem) -> tuple[Matrix, Matrix, Matrix]:
    r"""B, R = Ỹ − X̃B and G = X̃ᵀR by Björck's refinement.

    With f = b − r − Ax and g = −Aᵀr in extended precision, z = R⁻ᵀg and d = Qᵀf give dx = R⁻¹(d − z) and
    dr = f − Q(d − z).
    """
    X, Y = _extended(problem)
    scale = _lengths(problem)
    A: Extended = X / scale
    Q, R = np.linalg.qr(A.astype(np.float64))
    x, r, last = np.zeros((A.shape[1], Y.shape[1]), np.longdouble), np.zeros_like(Y), np.inf
    for _ in range(ROUNDS):
        f, g = (Y - r - A @ x).astype(np.float64), (-(A.T @ r)).astype(np.float64)
        z = la.solve_triangular(R, g, trans="T", check_finite=False)
        d = Q.T @ f - z
        dx = la.solve_triangular(R, d, check_finite=False)
        size = float(np.max(np.abs(dx), initial=0.0))
        if not size < 0.5 * last:
            break
        x, r, last = x + dx, r + (f - Q @ d), size
    R_ = Y - A @ x
    return (x / scale[:, None]).astype(np.float64), R_.astype(np.float64), (X.T @ R_).astype(np.float64)


def _extended(problem: RidgeProblem) -> tuple[Extended, Extended]:
    """X̃ and Ỹ in extended precision, about means that are taken in it, of what rounded means leave over."""
    blocks = [np.array(to_numpy(b.values, float)) for b in problem.source.blocks()]
    X = np.concatenate(blocks).astype(np.longdouble) * problem.unit
    Y = problem.raw.astype(np.longdouble)
    w = np.ones(len(X), np.longdouble) if problem.weights.values is None else problem.weights.values
    w = w.astype(np.longdouble)
    if problem.intercept:
        X, Y = X - to_numpy(problem.mean, float), Y - problem.level
        X, Y = X - w @ X / w.sum(), Y - w @ Y / w.sum()
    root = np.sqrt(w)[:, None]
    return root * X, root * Y
