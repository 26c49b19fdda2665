r"""The steps of a kernel PCA fit, as functions: which solver, the eigenpairs, and the coefficients that follow.

With H = I − 1w̄ᵀ, w̄ = w/Σw, the matrix B = diag(√w) H K Hᵀ diag(√w) has unit eigenvectors u and eigenvalues λ. A
component is v = Σ_j α_j φ(x_j) with α = Hᵀ diag(√w) u/√λ, of length 1, and the score of a point x is

.. math:: \langle v, \varphi(x)-\bar\varphi\rangle = \sum_j \alpha_jk(x,x_j) - c,\qquad c = \bar w^TK\alpha

so that new points are centred with the training means by subtracting one number for each component.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.kernels import Kernel
from gramian.operators import Data, FeatureCentred, KernelOperator, Operator
from gramian.results import Certificate, Spectrum
from gramian.sources import memory_budget
from gramian.spectral import SymmetricKrylov
from gramian.spectral.rayleigh import warn_unless_converged
from gramian.spectral.rpcholesky import rp_cholesky

__all__ = ["DENSE", "Decomposition", "Task", "choose", "decompose"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

DENSE = 1500  # rows up to which LAPACK on the whole matrix is quicker than a few products
PART = 8  # ... and where more than one component in so many rows is asked for
HUGE = 200_000  # rows beyond which a product with every pair takes minutes
LANDMARKS = 2000  # of Nyström's method, where no number is given


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be decomposed, and how."""

    kernel: Kernel
    X: Any
    w: Vector | None
    k: int
    solver: str
    tol: float
    max_iterations: int | None
    seed: int
    centre: bool
    landmarks: int | None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.X) if isinstance(self.X, (list, tuple)) else int(self.X.shape[0])

    @property
    def share(self) -> Vector:
        """w̄: the weights, to sum 1."""
        return np.full(self.n, 1.0 / self.n) if self.w is None else self.w / self.w.sum()


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Eigenpairs of B, and what new points need.

    Attributes
    ----------
    values, vectors : ndarray of shape (k,), (n, k)
        Eigenvalues and unit eigenvectors.
    points : array
        The points x_j that components are combinations of: all rows, or landmarks.
    coefficients : ndarray of shape (m, k)
        α.
    offset : ndarray of shape (k,)
        c; 0 where nothing is centred.
    share : ndarray of shape (m,)
        Coefficients of the mean φ̄ in the features of the points.
    mean_square : float
        ‖φ̄‖².
    means : ndarray of shape (m,)
        ⟨φ̄, φ(x_j)⟩ of the points.
    certificate : Certificate
        How good they are.
    landmarks : ndarray or None
        Which rows the points are, where they are not all.
    """

    values: Vector
    vectors: Matrix
    points: Any
    coefficients: Matrix
    offset: Vector
    share: Vector
    mean_square: float
    means: Vector
    certificate: Certificate
    landmarks: npt.NDArray[np.intp] | None = None


def choose(n: int, k: int, solver: str) -> tuple[str, str]:
    """Return the solver and the reason: the one asked for, or by size.

    The whole matrix up to 1,500 rows, or where more than an eighth of all components is asked for; Nyström beyond
    200,000 rows; block Krylov on tiles in between.

    Examples
    --------
    >>> from gramian.estimators._kernel_fitting import choose
    >>> choose(20_000, 10, "auto")[0]
    'krylov'
    """
    if solver in ("arpack", "randomized"):
        return "krylov", f"eigen_solver={solver!r}: block Krylov, until the residuals meet the tolerance"
    if solver != "auto":
        return solver, f"eigen_solver={solver!r}"
    if n <= DENSE or PART * k > n:
        return "dense", f"{n} rows and {k} components: the whole matrix costs least"
    if n > HUGE:
        return "nystrom", f"{n} rows: a product with every pair of them takes minutes"
    return "krylov", f"{k} components of {n} rows: a few products with tiles that are never stored"


def decompose(task: Task) -> Decomposition:
    """Find the leading eigenpairs of B and the coefficients of the components."""
    way, reason = choose(task.n, task.k, task.solver)
    if way == "nystrom":
        return _nystrom(task, reason)
    K = KernelOperator(task.kernel, task.X, dtype=np.float64, store=way == "dense")
    if way == "dense":
        return _coefficients(K, task, _dense(K, task, reason))
    if task.n <= DENSE:
        return _coefficients(K, task, _krylov(K, None, task, reason))
    # many products are to come: what fits is kept from the first, one triangle in float32
    twin = KernelOperator(task.kernel, task.X, dtype=np.float32, store=2 * task.n**2 <= memory_budget() // 2)
    # a mean of n values of the kernel is as good from float32, unless the components are better than that
    return _coefficients(twin if task.tol >= 1e-7 else K, task, _krylov(K, twin, task, reason))


def _dense(K: KernelOperator, task: Task, reason: str) -> Spectrum:
    """LAPACK on B, and the residuals by one product with it."""
    n, k = task.n, task.k
    B = FeatureCentred(Data(K.to_dense()), task.w, centre=task.centre)
    M = _centred_matrix(B)
    values, vectors = scipy.linalg.eigh(M, subset_by_index=[n - k, n - 1], overwrite_a=False, check_finite=False)
    values, vectors = values[::-1].copy(), np.ascontiguousarray(vectors[:, ::-1])
    norm = max(float(np.max(np.abs(values), initial=0.0)), np.finfo(float).tiny)
    residuals = np.sqrt(2) * np.linalg.norm(M @ vectors - vectors * values, axis=0) / norm
    orthogonality = float(np.max(np.abs(vectors.T @ vectors - np.eye(k)), initial=0.0))
    method = "dense: eigendecomposition of the centred kernel matrix"
    rounding = 4 * np.finfo(float).eps
    certificate = Certificate(method, reason, 1, values, residuals, norm, orthogonality, max(task.tol, 1e-10), rounding)
    return Spectrum(values, vectors, None, certificate)


def _centred_matrix(B: FeatureCentred) -> Matrix:
    """B as a matrix: two rank-one corrections in place of two products."""
    K = np.array(B.A.to_dense())
    if B.centre:
        row = B.share @ K
        K -= row[None, :]
        K -= (K @ B.share)[:, None]
    if B.root is not None:
        K *= B.root[:, None] * B.root[None, :]
    return K


def _krylov(K: KernelOperator, twin: KernelOperator | None, task: Task, reason: str) -> Spectrum:
    """Block Krylov: iterated on tiles in float32 where there are many, projected and certified in float64."""
    B = FeatureCentred(K, task.w, centre=task.centre)
    narrow = None if twin is None else FeatureCentred(twin, task.w, centre=task.centre)
    solver = SymmetricKrylov(task.tol, max_products=task.max_iterations or 300, seed=task.seed)
    return solver(B, task.k, reason, twin=narrow)


def _coefficients(K: Operator, task: Task, result: Spectrum) -> Decomposition:
    """α and c; directions without variance get the coefficient 0."""
    values, U = _cleaned(result.values), np.asarray(result.right, dtype=np.float64)
    root = np.ones((task.n, 1)) if task.w is None else np.sqrt(task.w)[:, None]
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    alpha, share = root * U * inverse, task.share
    offset, mean_square, means = np.zeros(len(values)), 0.0, np.zeros(task.n)
    if task.centre:
        alpha = alpha - share[:, None] * alpha.sum(axis=0)
        means = np.asarray(K.matmat(np.asarray(share[:, None], K.dtype)), dtype=np.float64)[:, 0]
        offset, mean_square = means @ alpha, float(means @ share)
    return Decomposition(values, U, task.X, alpha, offset, share, mean_square, means, result.certificate)


def _cleaned(values: Vector) -> Vector:
    """Eigenvalues, those at rounding level or below 0."""
    return np.where(values > 1e-12 * np.max(np.abs(values), initial=0.0), values, 0.0)


def _nystrom(task: Task, reason: str) -> Decomposition:
    r"""Components of the features of landmarks chosen by randomly pivoted Cholesky.

    K̂ = FFᵀ with F = K_{:,L}F_L⁻ᵀ and F_LF_Lᵀ = K_LL, so that 0 ≤ λ_i(K) − λ_i(K̂) ≤ tr(K − K̂), centred or not.
    """
    m = min(task.n, task.landmarks or max(LANDMARKS, 4 * task.k))
    K = KernelOperator(task.kernel, task.X, dtype=np.float64, store=False)
    found = rp_cholesky(np.asarray(K.diagonal(), dtype=np.float64), K.columns, m, seed=task.seed)
    F, share = found.factor, task.share
    mean = share @ F if task.centre else np.zeros(F.shape[1])
    root = np.ones((task.n, 1)) if task.w is None else np.sqrt(task.w)[:, None]
    scatter = (F - mean) * root
    squares, V = scipy.linalg.eigh(scatter.T @ scatter, check_finite=False)
    values, V = _cleaned(squares[::-1][: task.k]), V[:, ::-1][:, : task.k]
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    U = scatter @ V * inverse
    points = task.X[found.indices]
    # k(x, L) = F_L f(x) for the features f, so that f(x)·v = k(x, L)·F_L⁻ᵀv
    both = np.linalg.lstsq(F[found.indices].T, np.column_stack([V, mean]), rcond=None)[0]
    coefficients, middle = np.asarray(both[:, :-1], np.float64), np.asarray(both[:, -1], np.float64)
    certificate = _nystrom_certificate(values, found.trace, task, reason, len(found.indices), U)
    warn_unless_converged(certificate, f"Use more than n_landmarks={m}, or eigen_solver='krylov'.")
    return Decomposition(
        values,
        U,
        points,
        coefficients,
        mean @ V,
        middle,
        float(mean @ mean),
        F[found.indices] @ mean,
        certificate,
        found.indices,
    )


def _nystrom_certificate(values: Vector, trace: float, task: Task, reason: str, m: int, U: Matrix) -> Certificate:
    norm = float(values[0]) if len(values) and values[0] > 0 else 1.0
    heaviest = 1.0 if task.w is None else float(task.w.max())
    bound = max(trace, 0.0) * heaviest
    return Certificate(
        f"Nyström with {m} landmarks by randomly pivoted Cholesky",
        reason,
        1,
        values,
        np.full(len(values), np.sqrt(2) * bound / norm),
        norm,
        float(np.max(np.abs(U.T @ U - np.eye(U.shape[1])), initial=0.0)),
        max(task.tol, 1e-6),
        notes=(f"eigenvalues are too small by at most {bound:.3g}, the trace of what the landmarks leave out",),
    )
