r"""Every λ of a kernel ridge regression from one eigendecomposition.

With B = UΣ²Uᵀ and c = Uᵀỹ (see :mod:`gramian.kernel_ridge.problem`), another λ costs two products with U:

.. math:: \beta_\lambda = U\frac{c}{\sigma^2+\lambda},\qquad
    (B+\lambda I)^{-1}_{ii} = \sum_j\frac{u_{ij}^2}{\sigma_j^2+\lambda} =: d_i,\qquad
    e_i = \frac{\beta_i}{\sqrt{w_i}\,d_i}

where e is the error of the prediction of a row by all the others. With an intercept √w is an eigenvector of B that says
nothing about the features; it is left out of U and of d, which takes the place of a difference that would lose digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like
from gramian.compute.threads import quiet_blas
from gramian.inputs.kernels import eigh, matmul, multiply
from gramian.kernel_ridge.certificate import KernelSolution, relative_norms
from gramian.kernel_ridge.problem import KernelProblem, row_blocks
from gramian.linear.path import Filter, RidgePath
from gramian.results import Residual

Array = npt.NDArray[np.float64]
DeviceArray = Any  # of NumPy, or a tensor on a device

EPS = float(np.finfo(np.float64).eps)
AUTO_ALPHAS = (1e-10, 1.0, 30)  # least and largest λ as shares of the largest eigenvalue, and how many
PATH_CELLS = 2**25  # coefficients of a whole path that are kept: 256 MiB
TARGET_CELLS = 2**24  # of some targets that are worked on at a time: 128 MiB
ABOUT_ONE = (0.1, 10.0)  # least and largest λ where there is no eigenvalue: all of them predict the mean, or 0


def automatic_alphas(largest: float, shares: tuple[float, float, int] = AUTO_ALPHAS) -> Array:
    """30 values of λ, evenly spaced in their logarithm, from 1e-10 to 1 times the largest eigenvalue σ₁².

    At the largest every direction is shrunk to half or less; below the smallest, predictions lose half their digits.
    Where no eigenvalue is left, from 0.1 to 10: all give the same.

    Examples
    --------
    >>> from gramian.kernel_ridge.path import automatic_alphas
    >>> alphas = automatic_alphas(100.0)
    >>> len(alphas), alphas[0].round(12), alphas[-1].round(6)
    (30, np.float64(1e-08), np.float64(100.0))
    """
    low, high, number = shares
    return np.asarray(largest * np.geomspace(low, high, number) if largest > 0 else np.geomspace(*ABOUT_ONE, number))


def eigen_system(problem: KernelProblem, copies: Array | None = None) -> KernelEigen:
    """Decompose B, in one call of LAPACK's divide and conquer, or of the same on the problem's device.

    Parameters
    ----------
    problem : KernelProblem
        What is to be decomposed.
    copies : ndarray of shape (n,), optional
        How often each row is there, where its weight is copies · precision: both at once. By default the weights
        themselves where they are counts, otherwise once.
    """
    if copies is None and problem.counts:
        copies = problem.w
    with quiet_blas():
        B, means, size = problem.dense()
        tilted = _tilt(B, problem) if problem.intercept else 0.0
        values, U = eigh(B, overwrite=True)
    if problem.intercept:  # tilted to be the largest, so that nothing else mixes with it
        values, U = values[:-1], U[:, :-1]
    low, top = float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0))
    # what centring and LAPACK leave of a zero; a negative eigenvalue that is more than that stays
    rounding = 10 * EPS * (problem.n * max(top, -low) + tilted + size)
    squares = np.where(np.abs(values) <= rounding, np.maximum(values, 0.0), values)
    Y, c = problem.targets, np.ones(problem.n) if copies is None else copies
    logs = float(c @ np.log(problem.frequencies / c))
    kept = Filter(squares, matmul(U.T, Y), np.zeros(Y.shape[1]), float(c.sum()), problem.mass, problem.intercept, logs)
    return KernelEigen(
        problem, U, kept, means, low if low < -rounding else 0.0, copies, top if top > rounding else 0.0, rounding
    )


def _tilt(B: DeviceArray, problem: KernelProblem) -> float:
    """Add τuuᵀ with u ∝ √w, of which B makes 0, and τ beyond all eigenvalues; return τ.

    Some columns of B at a time, as rows of its transpose, which lie together in memory.
    """
    u = like(B, np.sqrt(problem.share), B.dtype)
    tau = 2.0 * max(float(abs(B.T[some]).sum(1).max()) for some in row_blocks(len(B), len(B))) or 1.0
    for some in row_blocks(len(B), len(B)):
        B.T[some] += (tau * u[some])[:, None] * u[None, :]
    return tau


@dataclass(frozen=True, eq=False)
class KernelEigen:
    """B = UΣ²Uᵀ, and what follows from it for every λ.

    Attributes
    ----------
    problem : KernelProblem
        What was decomposed; its own λ plays no part.
    vectors : ndarray of shape (n, r), or a tensor on the problem's device
        U; r = n, or n − 1 with an intercept.
    filter : Filter
        σ² and c = Uᵀỹ.
    means : ndarray of shape (n,)
        K w̄; 0 without an intercept.
    low : float
        The smallest eigenvalue where it is negative and not by rounding, else 0.
    copies : ndarray of shape (n,) or None
        How often each row is there: one copy of them is left out.
    largest : float
        The largest eigenvalue; 0 where that is rounding of what centring took away.
    rounding : float
        What LAPACK and centring may have changed B by.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.path import eigen_system
    >>> from gramian.kernel_ridge.problem import KernelProblem, row_blocks
    >>> from gramian.kernels import Linear
    >>> y = np.array([[1.0], [2.0], [4.0]])
    >>> found = eigen_system(KernelProblem(Linear(), np.array([[1.0], [2.0], [3.0]]), y, None, np.ones(1), False))
    >>> (found.problem.points.T @ found.beta(np.ones(1))).round(6)  # 17/(14 + 1)
    array([[1.133333]])
    """

    problem: KernelProblem
    vectors: DeviceArray
    filter: Filter
    means: Array
    low: float
    copies: Array | None = None
    largest: float = 0.0
    rounding: float = 0.0

    def usable(self, alphas: Array) -> npt.NDArray[np.bool_]:
        """Which λ make B + λI safely positive definite."""
        return np.asarray(alphas > -2.0 * self.low)

    def solve(self, R: Array, lam: Array) -> Array:
        """(B + λI)⁻¹R, λ of each column its own."""
        return matmul(self.vectors, matmul(self.vectors.T, R) * self.filter.inverse(lam))

    def beta(self, lam: Array) -> Array:
        """β for one λ of each target."""
        return matmul(self.vectors, self.filter.projections * self.filter.inverse(lam))

    def diagonal(self, lam: Array) -> Array:
        """d = diag (B + λI)⁻¹, without the share of an intercept, of shape (n, λs)."""
        inverse = self.filter.inverse(lam)
        return np.concatenate([matmul(self.vectors[rows] ** 2, inverse) for rows in row_blocks(*self.vectors.shape)])

    def errors(self, lam: Array) -> Array:
        """Leave-one-out errors y_i − f₋ᵢ(x_i), of shape (n, t), for one λ of each target."""
        each, which = np.unique(lam, return_inverse=True)
        d = self.diagonal(each)[:, which]
        return self._leave_one_out(self.beta(lam), d, lam, slice(None))

    def all_errors(self, alphas: Array, targets: slice = slice(None)) -> Iterator[tuple[slice, Array, Array]]:
        """Yield rows, their β and their leave-one-out errors, both of shape (rows, λs, t), of some targets."""
        inverse = self.filter.inverse(alphas)
        dual = replace(self.filter, projections=self.filter.projections[:, targets]).dual(alphas)
        flat = dual.reshape(len(dual), len(alphas) * dual.shape[2])
        for rows in row_blocks(len(self.vectors), max(self.vectors.shape[1], flat.shape[1])):
            U = self.vectors[rows]
            beta = matmul(U, flat).reshape(len(U), *dual.shape[1:])
            d = matmul(U**2, inverse)
            yield rows, beta, self._leave_one_out(beta, d[:, :, None], alphas[:, None], rows)

    def leave_one_out_errors(self, alphas: Array) -> Iterator[tuple[slice, Array]]:
        """Yield a slice of rows and their leave-one-out errors, of shape (rows, λs, t)."""
        return ((rows, errors) for rows, _, errors in self.all_errors(alphas))

    def find_lost_errors(self, lam: Array, errors: Array) -> Array:
        r"""Bound on what rounding can make of Σwe² of each target, for one λ of each, by the errors e left out.

        A change of B by δ moves (B + λI)⁻¹ by at most its share η = δ/(σ_n²+λ), and with it d by ηd and β by η√(qd),
        q = ỹᵀ(B+λI)⁻¹ỹ: ‖δe‖ ≤ η(‖e‖ + √(nq/min d)), and ‖e‖² moves by no more than 2‖e‖‖δe‖ + ‖δe‖².
        """
        kept, each = self.filter, np.unique(lam, return_inverse=True)
        least = np.min(self.diagonal(each[0]), axis=0)[each[1]]
        e = np.sqrt(self.problem.frequencies @ errors**2)
        q = np.sum(kept.inverse(lam) * kept.projections**2, axis=0)
        eta = 0.1 * self.rounding / (np.maximum(np.min(kept.squares, initial=np.inf), 0.0) + lam)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            moved = eta * (e + np.sqrt(self.problem.n * q / least))
            return np.asarray((2 * e + moved) * moved)

    def path(self, alphas: Array) -> RidgePath:
        """Everything about every λ; NaN where B + λI is not positive definite.

        Some targets at a time, so that thousands of them take no more memory than a few; coefficients of every λ are
        kept where they have no more than 2²⁵ numbers.
        """
        problem, kept, t = self.problem, self.filter, self.problem.Y.shape[1]
        n, L = problem.n, len(alphas)
        held = n * L * t <= PATH_CELLS
        alpha, loo = np.empty((n, L, t) if held else (0, L, t)), np.zeros((L, t))
        w, step = problem.frequencies, max(1, TARGET_CELLS // (n * L)) if n * L else t
        for start in range(0, t, step):
            some = slice(start, min(start + step, t))
            for rows, beta, errors in self.all_errors(alphas, some):
                if held:
                    alpha[rows, :, some] = beta
                loo[:, some] += np.tensordot(w[rows], errors**2, axes=1)
        if held:
            alpha = problem.dual(alpha.reshape(n, -1)).reshape(alpha.shape)
        fit = np.where(self.usable(alphas), 1.0, np.nan)[:, None]
        roots = np.sqrt(np.maximum(kept.squares, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):  # one row and an intercept leave nothing to divide by
            return RidgePath(
                alphas,
                roots,
                roots[:, None] * kept.inverse(alphas),
                kept.dof(alphas) * fit[:, 0],
                np.ascontiguousarray(np.moveaxis(alpha, 0, -1)) if held else np.empty((0, t, n)),
                # b = ȳ − w̄ᵀKα
                np.asarray(problem.mean - np.tensordot(self.means, alpha, axes=1)) if held else np.empty((0, t)),
                loo / kept.count * fit,
                kept.gcv(alphas) * fit,
                kept.log_likelihood(alphas) * fit,
                kept.noise(alphas) * fit,
            )

    def _leave_one_out(self, beta: Array, d: Array, lam: Any, rows: slice) -> Array:
        """e = λβ/√w over 1 − H_ii/c = (c − 1 + λd)/c, for rows of c copies of which one is left out; ∞ of one alone."""
        trailing = (1,) * (beta.ndim - 1)
        residual = beta if self.problem.w is None else beta / np.sqrt(self.problem.w[rows]).reshape(-1, *trailing)
        if self.copies is None:
            left = d
        else:
            c = self.copies[rows].reshape(-1, *trailing)
            left = np.where(c > 1.0, (c - 1.0 + lam * d) / c, d)
            residual = residual * np.where(c > 1.0, lam, 1.0)
        return np.asarray(np.divide(residual, left, out=np.full(beta.shape, np.inf), where=left > 0))


def refine(system: KernelEigen, problem: KernelProblem, reason: str, tol: float) -> KernelSolution:
    """β, refined by what one more pass over the kernel shows to be missing, and its residual."""
    B, Y, lam, u = problem.operator(), problem.targets, problem.lam, np.sqrt(problem.share)

    def residual(beta: Array) -> Array:
        """Without its part along √w where there is an intercept: α = Hᵀ√wβ sees nothing of it."""
        R = Y - (multiply(B, beta) + lam * beta)
        return R - np.outer(u, u @ R) if problem.intercept else R

    beta, passes = system.beta(lam), 2
    R = residual(beta)
    if np.max(relative_norms(R, Y), initial=0.0) > 1e-2 * tol:
        better = beta + system.solve(R, lam)
        S = residual(better)
        use = np.linalg.norm(S, axis=0) < np.linalg.norm(R, axis=0)
        beta, R, passes = np.where(use, better, beta), np.where(use, S, R), 3
    squares = system.filter.squares
    least, most = float(np.min(squares, initial=np.inf)), float(np.max(squares, initial=0.0))
    certificate = Residual(
        method="eigendecomposition",
        reason=reason,
        passes=passes,
        iterations=0,
        residuals=relative_norms(R, Y),
        condition=float((most + lam.min()) / (least + lam.min())) if len(squares) else 1.0,
        tolerance=tol,
        device=B.device_name,
        precision=B.precision,
    )
    return KernelSolution(beta, certificate, epsilon=B.epsilon)
