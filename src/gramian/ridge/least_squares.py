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
from gramian.ridge.certificate import Gradient, RidgeFactor, column_norms
from gramian.ridge.path import augmented_triangle, decompose_wide
from gramian.ridge.problem import RidgeProblem

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
SMALL = 2**18  # cells up to which products in extended precision, which no BLAS makes, cost next to nothing
ROUNDS = 8


class LeastSquaresFactor(RidgeFactor):
    """B = D⁻¹(X̃D⁻¹)⁺Ỹ where the columns are independent, else the solution of least norm.

    Attributes
    ----------
    lengths : ndarray of shape (p,)
        D: lengths of the columns of X̃ as powers of two, which round nothing; infinite for a constant column.
    basis : ndarray of shape (p, r)
        M with (X̃ᵀX̃)⁺ = MMᵀ.
    steepest : float
        1/σ of the least singular value kept, of columns of length 1.
    """

    solver = "svd"

    def __init__(self, problem: RidgeProblem) -> None:
        n, p = problem.source.shape
        self.problem, t = problem, problem.Y.shape[1]
        lengths = np.exp2(np.round(0.5 * np.log2(np.where(problem.varies, problem.diagonal, 1.0))))
        self.lengths = np.where(problem.varies, lengths, np.inf)
        if p > n:  # U, Σ, V of a wide X̃, cut to its rank
            found = decompose_wide(problem)
            self.rank = r = found.rank
            sigma = np.sqrt(found.squares[:r])
            self.method = f"{found.label}, least norm"
            self.condition = float(sigma[0] / sigma[-1]) if r else 1.0
            self.steepest = problem.total**0.5 / float(sigma[-1]) if r else 0.0
            self.basis = found.right_vectors(r) / sigma
            self.start = self.basis @ found.projections[:r]
        else:  # R of [X̃D⁻¹ Ỹ] = QR and the SVD of its first p columns
            d = self.lengths
            R = augmented_triangle(problem, d)
            U, s, Vt = la.svd(R[:p, :p], check_finite=False)
            self.rank = r = int(np.count_nonzero(s > problem.rounding * max(s[0], 1e-300)))
            self.method = "QR of X̃ with columns of length 1" + ("" if r == p else ", least norm")
            self.condition = float(s[0] / s[r - 1]) if r else 1.0
            self.steepest = 1.0 / float(s[r - 1]) if r else 0.0
            self.basis = Vt[:r].T / d[:, None] / s[:r]
            if 0 < r < p:  # of least norm: without a component along what X̃ does not see
                Q = la.orth(Vt[r:].T / d[:, None])
                self.basis = self.basis - Q @ (Q.T @ self.basis)
            self.start = self.basis @ (U[:, :r].T @ R[:p, p:])
        least = 1.0 / np.linalg.norm(self.basis, 2) - 4 * EPS * problem.A.offset**0.5 if self.rank else np.inf
        self.floor = np.full(t, max(float(least), 0.0) ** 2)
        self.dof = np.full(t, float(self.rank))
        self.free = np.full(t, max(problem.weights.count - float(problem.intercept) - self.rank, 0.0))

    def coefficients(self) -> Array:
        """D⁻¹(X̃D⁻¹)⁺Ỹ."""
        return self.start

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """B + (X̃ᵀX̃)⁺G."""
        return np.asarray(B + self.basis @ (self.basis.T @ G))

    def inverse(self) -> tuple[Array, Array, Array]:
        """M, whose square is the (pseudo-)inverse."""
        return self.basis, np.ones((self.rank, len(self.dof))), np.zeros(len(self.dof))

    def bounds(self, problem: RidgeProblem, state: Gradient, eps: float) -> Array:
        """‖(X̃ᵀX̃)⁺G‖ and what rounding can add, for columns of length 1, and so however they were scaled."""
        B, t = state.B, state.B.shape[1]
        if self.rank == 0:
            return np.zeros(t)
        if not np.all(self.floor > 0):
            return np.full(t, np.inf)
        noise = eps * len(B) ** 0.5 * self.steepest * (state.size + np.sqrt(problem.energy))
        after = 4 * eps * problem.A.offset**0.5  # what cancels where means are taken off after multiplying
        noise = noise + after * (column_norms(B) + state.size / np.sqrt(self.floor))
        step = self.basis @ (self.basis.T @ state.G)
        return np.asarray(column_norms(step) + noise / np.sqrt(self.floor) + EPS * column_norms(B))

    def refine_fully(self) -> tuple[Array, Array, Array] | None:
        r"""B, R = Ỹ − X̃B and G = X̃ᵀR by Björck's refinement, for small dense data of full rank; else None.

        With f = b − r − Ax and g = −Aᵀr in extended precision, z = R⁻ᵀg and d = Qᵀf give dx = R⁻¹(d − z) and
        dr = f − Q(d − z).
        """
        problem, wide = self.problem, np.longdouble
        n, p = problem.source.shape
        if self.rank < p or n * p > SMALL or problem.source.sparse:
            return None
        self.reads = 1
        X = np.concatenate([np.array(to_numpy(b.values, float)) for b in problem.source.blocks()]).astype(wide)
        X, Y, w = X * problem.unit, problem.raw.astype(wide), problem.weights.values
        w = np.ones(n, wide) if w is None else w.astype(wide)
        if problem.intercept:  # about means taken in extended precision, of what rounded means leave over
            X, Y = X - to_numpy(problem.mean, float), Y - problem.level
            X, Y = X - w @ X / w.sum(), Y - w @ Y / w.sum()
        X, Y = np.sqrt(w)[:, None] * X, np.sqrt(w)[:, None] * Y
        A = X / self.lengths
        Q, R = np.linalg.qr(A.astype(np.float64))
        x, r, last = np.zeros((p, Y.shape[1]), wide), np.zeros_like(Y), np.inf
        for _ in range(ROUNDS):
            f, g = (Y - r - A @ x).astype(np.float64), (-(A.T @ r)).astype(np.float64)
            d = Q.T @ f - la.solve_triangular(R, g, trans="T", check_finite=False)
            dx = la.solve_triangular(R, d, check_finite=False)
            size = float(np.max(np.abs(dx), initial=0.0))
            if not size < 0.5 * last:
                break
            x, r, last = x + dx, r + (f - Q @ d), size
        r = Y - A @ x
        B, G = x / self.lengths[:, None], X.T @ r
        return B.astype(np.float64), r.astype(np.float64), G.astype(np.float64)
