r"""The steps of a kernel PCA fit, as functions: which solver, the eigenpairs, and the coefficients that follow.

With H = I − 1w̄ᵀ, w̄ = w/Σw, the matrix B = diag(√w) H K Hᵀ diag(√w) has unit eigenvectors u and eigenvalues λ. A
component is v = Σ_j α_j φ(x_j) with α = Hᵀ diag(√w) u/√λ, of length 1, and the score of a point x is

.. math:: \langle v, \varphi(x)-\bar\varphi\rangle = \sum_j \alpha_jk(x,x_j) - c,\qquad c = \bar w^TK\alpha

so that new points are centred with the training means by subtracting one number for each component.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.kernels import Kernel, Precomputed
from gramian.operators import Data, FeatureCentred, KernelOperator, Multiple, Operator, Shifted
from gramian.results import Certificate, NumericalWarning, Spectrum
from gramian.sources import memory_budget
from gramian.spectral import SymmetricKrylov
from gramian.spectral.rayleigh import warn_unless_converged
from gramian.spectral.rpcholesky import rp_cholesky

__all__ = ["DENSE", "Decomposition", "Task", "choose", "chosen_points", "decompose"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

DENSE = 1500  # rows up to which LAPACK on the whole matrix is quicker than a few products
PART = 8  # ... and where more than one component in so many rows is asked for
HUGE = 200_000  # rows beyond which a product with every pair takes minutes
NOTHING = 1e-13  # of the trace: what is left of it by centring is rounding
CANCELS = 1e-3  # of the trace: below, float32 has too few digits for what centring leaves
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
    def frequencies(self) -> Vector:
        """W, all ones where not given."""
        return np.ones(self.n) if self.w is None else self.w

    @property
    def share(self) -> Vector:
        """w̄: the weights, to sum 1."""
        return np.asarray(self.frequencies / self.frequencies.sum())

    @property
    def unknown(self) -> bool:
        """Whether nothing says that the kernel is positive semidefinite."""
        unheard = self.kernel.takes_objects or isinstance(self.kernel, Precomputed)
        return unheard or not self.kernel.positive_semidefinite


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
    low : float
        The smallest eigenvalue of B, where the kernel is not known to be positive semidefinite.
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
    low: float = 0.0
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
    K: Operator = KernelOperator(task.kernel, task.X, dtype=np.float64, store=way == "dense" or _costly(task))
    own = np.asarray(K.diagonal(), dtype=np.float64)  # type: ignore[attr-defined]
    K = Data(K.to_dense()) if way == "dense" else K  # evaluated once, whatever is asked of it
    B = FeatureCentred(K, task.w, centre=task.centre)
    twin = _twin(task, own) if way == "krylov" else None
    if twin is None and _spread(B, task, own) <= NOTHING and not task.unknown:
        return _coefficients(B, task, _no_variance(task, reason), 0.0)
    return _coefficients(B, task, *(_dense(B, task, reason) if way == "dense" else _krylov(B, twin, task, reason)))


def _spread(B: FeatureCentred, task: Task, own: Vector) -> float:
    """tr B as a share of the trace of K: what centring leaves."""
    whole = float(own @ task.frequencies)
    taken = float(task.frequencies.sum()) * float(B.means @ B.share) if task.centre else 0.0
    return (whole - taken) / abs(whole) if whole != 0.0 else 0.0


def _twin(task: Task, own: Vector) -> FeatureCentred | None:
    """B in float32, where there are many products to make and centring leaves digits enough."""
    if task.n <= DENSE or not 1e-30 < float(np.max(own)) < 1e30 or _costly(task):
        return None
    # what fits is kept from the first product, one triangle
    K = KernelOperator(task.kernel, task.X, dtype=np.float32, store=2 * task.n**2 <= memory_budget() // 2)
    B = FeatureCentred(K, task.w, centre=task.centre)
    return B if _spread(B, task, own) > CANCELS else None


def _costly(task: Task) -> bool:
    """Whether a value of the kernel costs a call of Python, so that every one is kept if it can be."""
    return task.kernel.takes_objects and 4 * task.n**2 <= memory_budget()


def _no_variance(task: Task, reason: str) -> Spectrum:
    """All features are equal, as far as K can tell: any directions will do."""
    warnings.warn(
        "All features are equal, as far as the kernel matrix can tell: there is no variance to explain. If the rows do "
        "differ, subtract their mean, or choose a narrower kernel.",
        NumericalWarning,
        stacklevel=5,
    )
    zero = np.zeros(task.k)
    certificate = Certificate("none needed", f"{reason}; all features are equal", 1, zero, zero, 0.0, 0.0, 1e-10)
    return Spectrum(zero, np.eye(task.n, task.k), None, certificate)


def _dense(B: FeatureCentred, task: Task, reason: str) -> tuple[Spectrum, float]:
    """LAPACK on B, the residuals by one product with it; and its smallest eigenvalue where that is not known."""
    n, k = task.n, task.k
    M = _centred_matrix(B)
    values, vectors = scipy.linalg.eigh(M, subset_by_index=[n - k, n - 1], check_finite=False)
    if vectors.shape[1] < k:  # LAPACK finds no part of a spectrum that is one large cluster
        values, vectors = scipy.linalg.eigh(M, check_finite=False)
    values, vectors = values[::-1][:k].copy(), np.ascontiguousarray(vectors[:, ::-1][:, :k])
    norm = max(float(np.max(np.abs(values), initial=0.0)), np.finfo(float).tiny)
    residuals = np.sqrt(2) * np.linalg.norm(M @ vectors - vectors * values, axis=0) / norm
    orthogonality = float(np.max(np.abs(vectors.T @ vectors - np.eye(k)), initial=0.0))
    method = "dense: eigendecomposition of the centred kernel matrix"
    # entries that are large beside what centring leaves of them have lost digits before LAPACK sees them
    largest = float(np.max(np.abs(B.A.to_dense()), initial=0.0)) * float(np.max(task.frequencies))
    rounding = 4 * np.finfo(float).eps * max(1.0, largest * n**0.5 / norm)
    certificate = Certificate(method, reason, 1, values, residuals, norm, orthogonality, max(task.tol, 1e-10), rounding)
    warn_unless_converged(certificate, "Subtract the mean from the data, or scale them.")
    low = float(scipy.linalg.eigvalsh(M, subset_by_index=[0, 0])[0]) if task.unknown else 0.0
    return Spectrum(values, vectors, None, certificate), low


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


def _krylov(B: FeatureCentred, twin: Operator | None, task: Task, reason: str) -> tuple[Spectrum, float]:
    """Block Krylov: iterated on tiles in float32 where that helps, projected and certified in float64."""
    solver = SymmetricKrylov(task.tol, max_products=task.max_iterations or 300, seed=task.seed)
    result = solver(B, task.k, reason, twin=twin)
    return result, _smallest(B, float(result.values[0]), task.seed) if task.unknown else 0.0


def _smallest(B: Operator, top: float, seed: int) -> float:
    """The smallest eigenvalue of B, as τ less the largest of τI − B with τ the largest of B.

    What Krylov finds is never below the smallest, so that a negative answer is proof.
    """
    top = max(top, np.finfo(float).tiny)
    shifted = Shifted(Multiple(B, -1.0), top)
    return top - float(SymmetricKrylov(1e-5, max_products=60, seed=seed).attempt(shifted, 1, "").values[0])


def _coefficients(B: FeatureCentred, task: Task, result: Spectrum, low: float) -> Decomposition:
    """α and c; directions without variance get the coefficient 0."""
    values, U = _cleaned(result.values), np.asarray(result.right, dtype=np.float64)
    root = np.sqrt(task.frequencies)[:, None]
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    alpha, share = root * U * inverse, task.share
    means = np.zeros(task.n)
    if task.centre:
        alpha = alpha - share[:, None] * alpha.sum(axis=0)
        means = np.asarray(B.means, dtype=np.float64)
    offset, mean_square = means @ alpha, float(means @ share)
    return Decomposition(values, U, task.X, alpha, offset, share, mean_square, means, result.certificate, low)


def _cleaned(values: Vector) -> Vector:
    """Eigenvalues, those at rounding level or below 0."""
    return np.where(values > 1e-12 * np.max(np.abs(values), initial=0.0), values, 0.0)


def _nystrom(task: Task, reason: str) -> Decomposition:
    r"""Components of the features of landmarks chosen by randomly pivoted Cholesky.

    K̂ = FFᵀ with F = K_{:,L}F_L⁻ᵀ and F_LF_Lᵀ = K_LL, so that 0 ≤ λ_i(K) − λ_i(K̂) ≤ tr(K − K̂), centred or not.
    """
    if not task.kernel.positive_semidefinite:
        raise ValueError(
            f"{task.kernel!r} is not positive semidefinite, which eigen_solver='nystrom' needs. Use 'krylov'."
        )
    m = min(task.n, task.landmarks or max(LANDMARKS, 4 * task.k))
    K = KernelOperator(task.kernel, task.X, dtype=np.float64, store=False)
    own = np.asarray(K.diagonal(), dtype=np.float64)
    found = rp_cholesky(own, K.columns, m, seed=task.seed)
    F, share, at = found.factor, task.share, found.factor[found.indices]
    mean = share @ F if task.centre else np.zeros(F.shape[1])
    F -= mean  # in place: F is the largest thing there is
    if task.w is not None:
        F *= np.sqrt(task.w)[:, None]
    squares, V = scipy.linalg.eigh(F.T @ F, check_finite=False)
    nothing = NOTHING * float(own @ task.frequencies)
    values, V = squares[::-1][: task.k], V[:, ::-1][:, : task.k]
    values = _cleaned(np.where(values > nothing, values, 0.0))
    V = V * (values > 0)  # directions without variance get the coefficient 0
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    U = F @ V * inverse
    # k(x, L) = F_L f(x) for the features f, so that f(x)·v = k(x, L)·F_L⁻ᵀv
    both = np.linalg.lstsq(at.T, np.column_stack([V, mean]), rcond=None)[0]
    coefficients, middle = np.asarray(both[:, :-1], np.float64), np.asarray(both[:, -1], np.float64)
    certificate = _nystrom_certificate(values, found.trace, own, task, reason, len(found.indices), U)
    warn_unless_converged(certificate, f"Use more than n_landmarks={m}, or eigen_solver='krylov'.")
    points = chosen_points(task.X, found.indices)
    square = float(mean @ mean)
    return Decomposition(
        values, U, points, coefficients, mean @ V, middle, square, at @ mean, certificate, 0.0, found.indices
    )


def chosen_points(X: Any, index: npt.NDArray[np.intp]) -> Any:
    """Some of the points, of an array or of a list of objects."""
    return [X[i] for i in index] if isinstance(X, (list, tuple)) else X[index]


def _nystrom_certificate(
    values: Vector, trace: float, own: Vector, task: Task, reason: str, m: int, U: Matrix
) -> Certificate:
    norm = float(values[0]) if len(values) and values[0] > 0 else 1.0
    bound = max(trace, 0.0) * float(np.max(task.frequencies))
    rounding = 8 * np.finfo(float).eps * max(1.0, float(own @ task.frequencies) / norm)
    return Certificate(
        f"Nyström with {m} landmarks by randomly pivoted Cholesky",
        reason,
        1,
        values,
        np.full(len(values), np.sqrt(2) * bound / norm),
        norm,
        float(np.max(np.abs(U.T @ U - np.eye(U.shape[1])), initial=0.0)),
        max(task.tol, 1e-6),
        rounding,
        notes=(f"eigenvalues are too small by at most {bound:.3g}, the trace of what the landmarks leave out",),
    )
