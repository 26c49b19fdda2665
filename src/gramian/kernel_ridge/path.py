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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like, to_numpy
from gramian.inputs.kernels import decomposition_bytes, dense, eigenvectors, multiplied, times
from gramian.kernel_ridge.certificate import Fitted, relative
from gramian.kernel_ridge.problem import Task
from gramian.linear.path import Filter, RidgePath
from gramian.results import Residual

__all__ = ["AUTO_ALPHAS", "Eigen", "automatic_alphas", "dense_system", "eigen_bytes", "eigen_system", "refined"]

Array = Any  # of NumPy, or a tensor on a device
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
BLOCK_BYTES = 2**24  # of U∘U, formed a block of rows at a time
AUTO_ALPHAS = (1e-11, 1.0, 30)  # least and largest λ as shares of the largest eigenvalue, and how many
ABOUT_ONE = (0.1, 10.0)  # least and largest λ where there is no eigenvalue: all of them predict the mean, or 0


def eigen_bytes(n: int, targets: int = 1, alphas: int = 30, device: Any = None) -> int:
    """Bytes of the decomposition of an n×n matrix, work space included: on a device, or here with all coefficients."""
    if device is not None:
        return decomposition_bytes(n)
    return 8 * (3 * n * n + 2 * n * targets * alphas)


def automatic_alphas(largest: float, shares: tuple[float, float, int] = AUTO_ALPHAS) -> Vector:
    """30 values of λ, evenly spaced in their logarithm, from 1e-11 to 1 times the largest eigenvalue σ₁².

    At the largest every direction is shrunk to half or less; below the smallest, rounding of K itself is felt. Where
    no eigenvalue is left, from 0.1 to 10: all give the same.

    Examples
    --------
    >>> from gramian.kernel_ridge.path import automatic_alphas
    >>> alphas = automatic_alphas(100.0)
    >>> len(alphas), alphas[0].round(12), alphas[-1].round(6)
    (30, np.float64(1e-09), np.float64(100.0))
    """
    low, high, number = shares
    return np.asarray(largest * np.geomspace(low, high, number) if largest > 0 else np.geomspace(*ABOUT_ONE, number))


def dense_system(task: Task) -> tuple[Array, Vector, float]:
    """B as an array in Fortran's order, or on the task's device; K w̄, and how long what centring takes from B was.

    The last two are on the host, and 0 without an intercept.
    """
    K, means, size = _kernel_matrix(task), np.zeros(task.n), 0.0
    if task.intercept:
        share = like(K, task.share, K.dtype)
        size = _length(K, like(K, task.frequencies, K.dtype))
        middle = K @ share
        K -= middle[:, None]
        K -= (share @ K)[None, :]
        means = to_numpy(middle)
    if task.w is not None:
        root = like(K, np.sqrt(task.w), K.dtype)
        K *= root[:, None]
        K *= root[None, :]
    return K.T, means, size  # symmetric: its transpose is itself, in the order LAPACK overwrites


def _length(K: Array, w: Array) -> float:
    """‖√w K √w‖ of Frobenius, a block of rows at a time."""
    step = max(1, BLOCK_BYTES // (8 * max(1, len(K))))
    parts = (slice(start, start + step) for start in range(0, len(K), step))
    return float(np.sqrt(sum(float(w[rows] @ (K[rows] ** 2 @ w)) for rows in parts)))


def _kernel_matrix(task: Task) -> Array:
    """K; where a value is a call of Python each pair is evaluated once, otherwise by all threads, or on the device."""
    if task.kernel.takes_objects:
        return np.array(task.kernel(task.points), dtype=np.float64)
    if task.device is not None:
        return dense(task.kernel_operator())
    out = np.empty((task.n, task.n))
    for start, stop, block in task.kernel_operator().rows():
        out[start:stop] = block
    return out


def eigen_system(task: Task, copies: Vector | None = None) -> Eigen:
    """Decompose B, in one call of LAPACK's divide and conquer, or of the same on the task's device.

    Parameters
    ----------
    task : Task
        What is to be decomposed.
    copies : ndarray of shape (n,), optional
        How often each row is there, where its weight is copies · precision: both at once. By default the weights
        themselves where they are counts, otherwise once.
    """
    if copies is None and task.counts:
        copies = task.w
    B, means, size = dense_system(task)
    tilted = _tilt(B, task) if task.intercept else 0.0
    values, U = eigenvectors(B, overwrite=True)
    if task.intercept:  # tilted to be the largest, so that nothing else mixes with it
        values, U = values[:-1], U[:, :-1]
    low, top = float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0))
    # what centring and LAPACK leave of a zero; a negative eigenvalue that is more than that stays
    rounding = 10 * EPS * (task.n * max(top, -low) + tilted + size)
    squares = np.where(np.abs(values) <= rounding, np.maximum(values, 0.0), values)
    Y, c = task.targets, np.ones(task.n) if copies is None else copies
    logs = float(c @ np.log(task.frequencies / c))
    kept = Filter(squares, times(U.T, Y), np.zeros(Y.shape[1]), float(c.sum()), task.mass, task.intercept, logs)
    return Eigen(task, U, kept, means, low if low < -rounding else 0.0, copies, top if top > rounding else 0.0)


def _tilt(B: Array, task: Task) -> float:
    """Add τuuᵀ with u ∝ √w, of which B makes 0, and τ beyond all eigenvalues; return τ."""
    u = like(B, np.sqrt(task.share), B.dtype)
    tau = 2.0 * max(float(abs(columns).sum(1).max()) for _, columns in _column_blocks(B)) or 1.0
    for some, columns in _column_blocks(B):
        columns += (tau * u[some])[:, None] * u[None, :]
    return tau


def _column_blocks(B: Array) -> Iterator[tuple[slice, Array]]:
    """Some columns of B at a time, as rows of its transpose, which lie together in memory."""
    step = max(1, BLOCK_BYTES // (8 * max(1, B.shape[1])))
    parts = (slice(start, start + step) for start in range(0, len(B), step))
    return ((some, B.T[some]) for some in parts)


@dataclass(frozen=True, eq=False)
class Eigen:
    """B = UΣ²Uᵀ, and what follows from it for every λ.

    Attributes
    ----------
    task : Task
        What was decomposed; its own λ plays no part.
    vectors : ndarray of shape (n, r), or a tensor on the task's device
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

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.path import eigen_system
    >>> from gramian.kernel_ridge.problem import Task
    >>> from gramian.kernels import Linear
    >>> y = np.array([[1.0], [2.0], [4.0]])
    >>> found = eigen_system(Task(Linear(), np.array([[1.0], [2.0], [3.0]]), y, None, np.ones(1), False))
    >>> (found.task.points.T @ found.dual(np.ones(1))).round(6)  # 17/(14 + 1)
    array([[1.133333]])
    """

    task: Task
    vectors: Array
    filter: Filter
    means: Vector
    low: float
    copies: Vector | None = None
    largest: float = 0.0

    def usable(self, alphas: Vector) -> npt.NDArray[np.bool_]:
        """Which λ make B + λI safely positive definite."""
        return np.asarray(alphas > -2.0 * self.low)

    def solve(self, R: Matrix, lam: Vector) -> Matrix:
        """(B + λI)⁻¹R, λ of each column its own."""
        return times(self.vectors, times(self.vectors.T, R) * self.filter.inverse(lam))

    def dual(self, lam: Vector) -> Matrix:
        """β for one λ of each target."""
        return times(self.vectors, self.filter.projections * self.filter.inverse(lam))

    def intercepts(self, alpha: Matrix) -> Vector:
        """b = ȳ − w̄ᵀKα of coefficients of shape (n, …, t)."""
        return np.asarray(self.task.mean - np.tensordot(self.means, alpha, axes=1))

    def diagonal(self, lam: Vector) -> Matrix:
        """d = diag (B + λI)⁻¹, without the share of an intercept, of shape (n, λs)."""
        inverse = self.filter.inverse(lam)
        return np.concatenate([times(self.vectors[rows] ** 2, inverse) for rows in self._blocks(1)])

    def errors(self, lam: Vector) -> Matrix:
        """Leave-one-out errors y_i − f₋ᵢ(x_i), of shape (n, t), for one λ of each target."""
        each, which = np.unique(lam, return_inverse=True)
        d = self.diagonal(each)[:, which]
        return self._left_out(self.dual(lam), d, lam, slice(None))

    def all_errors(self, alphas: Vector) -> Iterator[tuple[slice, Matrix, Matrix]]:
        """Yield a slice of rows, their β and their leave-one-out errors, both of shape (rows, λs, t)."""
        inverse, dual = self.filter.inverse(alphas), self.filter.dual(alphas)
        flat = dual.reshape(len(dual), len(alphas) * dual.shape[2])
        for rows in self._blocks(flat.shape[1] / max(1, len(dual))):
            U = self.vectors[rows]
            beta = times(U, flat).reshape(len(U), *dual.shape[1:])
            d = times(U**2, inverse)
            yield rows, beta, self._left_out(beta, d[:, :, None], alphas[:, None], rows)

    def path(self, alphas: Vector) -> RidgePath:
        """Everything about every λ; NaN where B + λI is not positive definite."""
        task, kept, t = self.task, self.filter, self.task.Y.shape[1]
        alpha, loo = np.empty((task.n, len(alphas), t)), np.zeros((len(alphas), t))
        w = task.frequencies
        for rows, beta, errors in self.all_errors(alphas):
            alpha[rows] = beta
            loo += np.tensordot(w[rows], errors**2, axes=1)
        alpha = task.dual(alpha.reshape(task.n, -1)).reshape(alpha.shape)
        fit = np.where(self.usable(alphas), 1.0, np.nan)[:, None]
        roots = np.sqrt(np.maximum(kept.squares, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):  # one row and an intercept leave nothing to divide by
            return RidgePath(
                alphas,
                roots,
                roots[:, None] * kept.inverse(alphas),
                kept.dof(alphas) * fit[:, 0],
                np.ascontiguousarray(np.moveaxis(alpha, 0, -1)),
                self.intercepts(alpha),
                loo / kept.count * fit,
                kept.gcv(alphas) * fit,
                kept.log_likelihood(alphas) * fit,
                kept.noise(alphas) * fit,
            )

    def _blocks(self, wider: float) -> Iterator[slice]:
        n, r = self.vectors.shape
        step = max(1, int(BLOCK_BYTES / (8 * max(1, r) * max(1.0, wider))))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def _left_out(self, beta: Matrix, d: Matrix, lam: Any, rows: slice) -> Matrix:
        """e = λβ/√w over 1 − H_ii/c = (c − 1 + λd)/c, for rows of c copies of which one is left out; ∞ of one alone."""
        trailing = (1,) * (beta.ndim - 1)
        residual = beta if self.task.w is None else beta / np.sqrt(self.task.w[rows]).reshape(-1, *trailing)
        if self.copies is None:
            left = d
        else:
            c = self.copies[rows].reshape(-1, *trailing)
            left = np.where(c > 1.0, (c - 1.0 + lam * d) / c, d)
            residual = residual * np.where(c > 1.0, lam, 1.0)
        return np.asarray(np.divide(residual, left, out=np.full(beta.shape, np.inf), where=left > 0))


def refined(system: Eigen, task: Task, reason: str) -> Fitted:
    """β, refined by what one more pass over the kernel shows to be missing, and its residual."""
    B, Y, lam = task.operator(), task.targets, task.lam
    beta, passes = system.dual(lam), 2
    R = _seen(task, Y - (multiplied(B, beta) + lam * beta))
    if np.max(relative(R, Y), initial=0.0) > 1e-2 * task.tol:
        better = beta + system.solve(R, lam)
        S = _seen(task, Y - (multiplied(B, better) + lam * better))
        use = np.linalg.norm(S, axis=0) < np.linalg.norm(R, axis=0)
        beta, R, passes = np.where(use, better, beta), np.where(use, S, R), 3
    squares = system.filter.squares
    least, most = float(np.min(squares, initial=np.inf)), float(np.max(squares, initial=0.0))
    condition = (most + lam.min()) / (least + lam.min()) if len(squares) else 1.0
    residuals = relative(R, Y)
    certificate = Residual(
        "eigendecomposition",
        reason,
        passes,
        0,
        residuals,
        0.0,
        float(condition),
        tolerance=task.tol,
        device=B.device_name,
        precision=B.precision,
    )
    return Fitted(beta, certificate, epsilon=B.epsilon)


def _seen(task: Task, R: Matrix) -> Matrix:
    """R without its part along √w where there is an intercept: α = Hᵀ√wβ sees nothing of it."""
    u = np.sqrt(task.share)
    return np.asarray(R - np.outer(u, u @ R) if task.intercept else R)
