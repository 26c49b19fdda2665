r"""Decompositions of X̃ = UΣVᵀ, each as much of it as a ridge regression for every λ needs.

Forming X̃ᵀX̃ or X̃X̃ᵀ squares the condition number: what is asked of them is :math:`\sigma^2+\lambda`, so that is
harmless while :math:`(\sigma_1^2+\lambda)/(\sigma_p^2+\lambda)` is moderate, and only then. Otherwise one QR
factorisation of [X̃ Ỹ], block by block, gives the same without forming either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as la

from gramian.compute import dense as cpu
from gramian.compute.devices import dense_loops, refuse_beyond_device, to_numpy
from gramian.compute.memory import refuse_beyond_memory
from gramian.linear.path import Filter
from gramian.ridge.problem import RidgeProblem

__all__ = [
    "CONTRACTION",
    "SAFE",
    "Decomposition",
    "augmented_triangle",
    "by_cogram",
    "by_gram",
    "by_rows",
    "by_svd",
    "cancelled",
    "is_safe",
    "real_columns",
    "relative_rounding",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = 2.0**-52
SAFE = 1e7  # of a condition number: the Gram route then keeps nine digits before, and sixteen after, a correction
CONTRACTION = 0.01  # of an error by one correction with a Gram matrix that rounding has changed
COLUMN_BYTES = 2**24  # of a dense block of columns


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Σ² with V or U, and c = UᵀỸ.

    Attributes
    ----------
    squares : ndarray of shape (r,)
        σ².
    basis : ndarray of shape (p, r) or (n, r)
        V, or U where ``dual``.
    projections : ndarray of shape (r, t)
        c.
    rest : ndarray of shape (t,)
        ‖ỹ − UUᵀỹ‖²; exactly 0 where U spans all that centring left.
    dual : bool
        Whether the basis is U.
    label : str
        How it was made, for the certificate.
    squared : bool
        Whether σ² are eigenvalues of a Gram matrix, good to ε σ₁² only.
    """

    squares: Vector
    basis: Matrix
    projections: Matrix
    rest: Vector
    dual: bool
    label: str
    squared: bool

    def filter(self, problem: RidgeProblem) -> Filter:
        """Return what every λ shares."""
        w = problem.weights
        return Filter(self.squares, self.projections, self.rest, w.count, w.mass, problem.intercept, w.log_sum)

    def rank(self, problem: RidgeProblem) -> int:
        """How many σ stand out of rounding: that of the data, or that of their squares."""
        lost = cancelled(problem) ** 0.5 if self.squared else 4 * EPS * problem.A.offset**0.5
        return int(np.count_nonzero(np.sqrt(self.squares) > max(self._level(problem) * self.top**0.5, lost)))

    def spans(self, problem: RidgeProblem) -> bool:
        """Whether U spans all that centring left of Ỹ, so that c alone knows the residuals."""
        most = problem.weights.rows - int(problem.intercept)
        return self.dual or (not self.squared and len(self.squares) >= most)

    def _level(self, problem: RidgeProblem) -> float:
        level = relative_rounding(problem)
        return max(level, level**0.5 if self.squared else 0.0)

    @property
    def top(self) -> float:
        """σ₁²."""
        return float(np.max(self.squares, initial=0.0))

    def smallest(self, problem: RidgeProblem) -> float:
        """The least σ² among all p directions of the coefficients, or n of the dual ones; 0 where there are more.

        Sparse data are centred after they are multiplied: what cancels there is taken off.
        """
        size = min(problem.source.shape) if self.dual else problem.source.shape[1]
        if len(self.squares) < size:
            return 0.0
        least, dust = float(np.min(self.squares)), 4 * EPS * problem.A.offset**0.5
        return max(least - cancelled(problem), 0.0) if self.squared else max(least**0.5 - dust, 0.0) ** 2


def relative_rounding(problem: RidgeProblem) -> float:
    """σ/σ₁ that the rounding of the data can make of nothing."""
    n, p = problem.source.shape
    if problem.source.dtype == problem.source.xp.float32:
        return float(4 * 2.0**-23 * min(n, p) ** 0.5)
    return float(EPS * max(n, p))


def cancelled(problem: RidgeProblem) -> float:
    """What rounding leaves in a Gram matrix of sparse data from which large means are taken off afterwards."""
    return float(4 * EPS * problem.A.offset)


def real_columns(problem: RidgeProblem) -> npt.NDArray[np.bool_]:
    """Which columns of X̃ are more than the rounding of a constant's mean."""
    dust = (4.0 if problem.source.sparse else 4e-6) * EPS * to_numpy(problem.mean, float)
    return np.asarray(problem.diagonal > problem.weights.mass * dust**2)


def is_safe(found: Decomposition, problem: RidgeProblem, lam: float) -> bool:
    """Whether σ² + λ keeps its digits although σ² came from a Gram matrix."""
    low = found.smallest(problem) + lam
    return not found.squared or (
        low > 0.0 and (found.top + lam) <= SAFE * low and cancelled(problem) <= CONTRACTION * low
    )


def by_gram(problem: RidgeProblem) -> Decomposition:
    """V and σ² from the p×p matrix X̃ᵀX̃; c = VᵀX̃ᵀỸ/σ."""
    assert problem.gram is not None
    assert problem.cross is not None
    squares, V = la.eigh(problem.gram, overwrite_a=False, check_finite=False)
    squares, V = np.maximum(squares[::-1], 0.0), np.ascontiguousarray(V[:, ::-1])
    sigma = np.sqrt(squares)[:, None]
    h = V.T @ problem.cross
    c = np.divide(h, sigma, out=np.zeros_like(h), where=sigma > 0)
    rest = np.maximum(problem.energy - np.sum(c**2, axis=0), 0.0)
    return Decomposition(squares, V, c, rest, False, "eigenvectors of X̃ᵀX̃", True)


def by_cogram(problem: RidgeProblem) -> Decomposition:
    """U and σ² from the n×n matrix X̃X̃ᵀ; the direction √w, which centring has emptied, is left out."""
    n = problem.source.shape[0]
    refuse_beyond_memory(
        24.0 * n * n, f"The {n} × {n} matrix X̃X̃ᵀ with its eigenvectors", "Use solver='cg', which never forms it."
    )
    _refuse_beyond_card(problem, 16.0 * n * n, f"The {n} × {n} matrix X̃X̃ᵀ")
    K = to_numpy(problem.A.cogram(), float)
    squares, U = _eigen_without(K, _emptied(problem))
    c = U.T @ problem.targets
    return Decomposition(squares, U, c, np.zeros(c.shape[1]), True, "eigenvectors of X̃X̃ᵀ", True)


def _refuse_beyond_card(problem: RidgeProblem, nbytes: float, what: str) -> None:
    """Say before it is made that a card cannot hold something."""
    if problem.A.device is not None:
        refuse_beyond_device(nbytes, problem.A.device, what, "Use solver='cg' or device='cpu'.")


def _emptied(problem: RidgeProblem) -> Matrix:
    """Directions with which every column of X̃ and Ỹ is orthogonal: √w/‖√w‖ of an intercept, and rows of weight 0."""
    n, root = problem.source.shape[0], problem.weights.root
    root = np.ones(n) if root is None else root
    absent = np.flatnonzero(root == 0.0)
    Q = np.zeros((n, len(absent) + int(problem.intercept)))
    Q[absent, np.arange(len(absent))] = 1.0
    if problem.intercept:
        Q[:, -1] = root / np.linalg.norm(root)
    return Q


def _eigen_without(K: Matrix, Q: Matrix) -> tuple[Vector, Matrix]:
    """Eigenpairs of K in descending order, without the columns of Q, eigenvectors of the eigenvalue 0."""
    if Q.shape[1]:
        lift = 2.0 * float(np.trace(K)) or 1.0  # above all others, so that no other eigenvector mixes with Q
        K = K + (lift * Q) @ Q.T
    squares, U = la.eigh(K, check_finite=False)
    kept = slice(-1 - Q.shape[1], None, -1)
    return np.maximum(squares[kept], 0.0), np.ascontiguousarray(U[:, kept])


def by_rows(problem: RidgeProblem) -> Decomposition:
    """V, Σ and c from the R of [X̃ Ỹ] = QR, made in one pass over the rows; for p ≤ n."""
    p = problem.source.shape[1]
    R = augmented_triangle(problem)
    U, sigma, Vt = la.svd(R[:p, :p], check_finite=False)
    rest = np.sum(R[p:, p:] ** 2, axis=0)
    return Decomposition(sigma**2, Vt.T, U.T @ R[:p, p:], rest, False, "SVD of the R of X̃ = QR", False)


def augmented_triangle(problem: RidgeProblem, scale: Vector | None = None) -> Matrix:
    """R of [X̃ diag(1/scale), Ỹ] = QR with at least p rows."""
    A, Y, p = problem.A, problem.targets, problem.source.shape[1]
    kernels, R = dense_loops(A.xp), None
    factor = A.asarray(np.ones(p) if scale is None else 1.0 / scale)
    for start, stop, block in A.rows():
        rows = A.xp.concat([block * factor[None, :], A.asarray(Y[start:stop])], axis=1)
        part = kernels.triangle(rows)
        R = part if R is None else kernels.triangle(A.xp.concat([R, part], axis=0))
    out = to_numpy(R, float)
    missing = p - len(out)
    return out if missing <= 0 else np.concatenate([out, np.zeros((missing, out.shape[1]))])


def by_svd(problem: RidgeProblem, *, dual: bool = False) -> Decomposition:
    """Σ with V, or U, of X̃ itself where p > n: of a dense copy, or of sparse columns taken a block at a time."""
    n, p = problem.source.shape
    if problem.source.sparse:
        return _by_columns(problem)
    refuse_beyond_memory(24.0 * n * p, f"The SVD of a dense {n} × {p} matrix", "Use solver='cg' or a larger alpha.")
    _refuse_beyond_card(problem, 16.0 * n * p, f"A dense {n} × {p} matrix in float64")
    X, Q = to_numpy(problem.A.to_dense(), float), _emptied(problem)
    k = Q.shape[1]
    # to_dense may be the caller's own array: only a copy is ours to write over
    X = np.concatenate([_lift(problem) * Q, X], axis=1) if k else X
    U, sigma, Vt = la.svd(X, full_matrices=False, overwrite_a=k > 0, check_finite=False)
    U, sigma, Vt = U[:, k:], sigma[k:], Vt[k:, k:]
    c = U.T @ problem.targets
    return Decomposition(sigma**2, U if dual else Vt.T, c, np.zeros(c.shape[1]), dual, "SVD of X̃", False)


def _lift(problem: RidgeProblem) -> float:
    """A singular value for what is empty, above all others, so that no other direction mixes with it."""
    return 2.0 * problem.total**0.5 or 1.0


def _by_columns(problem: RidgeProblem) -> Decomposition:
    """U and Σ from the R of X̃ᵀ = QR, a block of columns at a time: sparse data are never dense at once."""
    Q = _emptied(problem)
    k, R = Q.shape[1], _lift(problem) * Q.T
    for block in _column_blocks(problem):
        R = cpu.triangle(np.concatenate([R, block]))
    _, sigma, Ut = la.svd(R, full_matrices=False, check_finite=False)
    U, sigma = Ut[k:].T, sigma[k:]
    c = U.T @ problem.targets
    return Decomposition(sigma**2, U, c, np.zeros(c.shape[1]), True, "SVD of the R of X̃ᵀ = QR", False)


def _column_blocks(problem: RidgeProblem) -> Iterator[Matrix]:
    """Rows of X̃ᵀ, a few at a time."""
    X: Any = problem.source.values.tocsc()  # type: ignore[attr-defined]
    n, p = X.shape
    root, mean = problem.weights.root, to_numpy(problem.mean, float) + to_numpy(problem.low, float)
    step = max(1, COLUMN_BYTES // (8 * n))
    for j in range(0, p, step):
        block = problem.unit * X[:, j : j + step].toarray().astype(np.float64).T
        block = block - mean[j : j + step, None] if problem.intercept else block
        yield block if root is None else block * root
