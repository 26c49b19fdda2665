r"""The steps of a kernel PCA fit, as functions: which solver, the eigenpairs, and the coefficients that follow.

With H = I − 1w̄ᵀ, w̄ = w/Σw, the matrix B = diag(√w) H K Hᵀ diag(√w) has unit eigenvectors u and eigenvalues λ. A
component is v = Σ_j α_j φ(x_j) with α = Hᵀ diag(√w) u/√λ, of length 1, and the score of a point x is

.. math:: \langle v, \varphi(x)-\bar\varphi\rangle = \sum_j \alpha_jk(x,x_j) - c,\qquad c = \bar w^TK\alpha

so that new points are centred with the training means by subtracting one number for each component.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.compute.devices import free_bytes, refuse_beyond_device, to_device, to_numpy
from gramian.inputs.kernels import chosen_points
from gramian.kernels import Kernel, Precomputed
from gramian.operators import (
    Data,
    DeviceKernelOperator,
    FeatureCentred,
    KernelOperator,
    Multiple,
    Operator,
    Shifted,
    kernel_operator,
)
from gramian.results import NumericalWarning, SpectralCertificate, Spectrum
from gramian.sources import memory_budget
from gramian.spectral import SymmetricKrylov
from gramian.spectral.rayleigh import norms, orthogonality
from gramian.spectral.rpcholesky import rp_cholesky

__all__ = [
    "DENSE",
    "NOTHING",
    "Decomposition",
    "Task",
    "choose",
    "cleaned",
    "decompose",
    "dense_bytes",
    "dense_components",
    "nystrom_components",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

DENSE = 1500  # rows up to which LAPACK on the whole matrix is quicker than a few products
DENSE_ON_A_CARD = 2000  # on an H200: 0.03 s against 0.06 s at 1,500 rows, 0.07 s against 0.05 s at 3,000
PART = 8  # ... and where more than one component in so many rows is asked for
HUGE = 200_000  # rows beyond which a product with every pair takes minutes
HUGE_ON_A_CARD = 4_000_000  # a product in float32 then takes seconds on an H200, one in float64 most of a minute
NOTHING = 1e-13  # of the trace: what is left of it by centring is rounding


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
    device: Any = None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.X) if isinstance(self.X, (list, tuple)) else int(self.X.shape[0])

    @cached_property
    def points(self) -> Any:
        """The points where they are compared: put on the device once, for all operators."""
        return self.X if self.device is None else to_device(self.X, self.device)

    def operator(
        self, dtype: Any, store: bool | str = "auto", tolerance: float | None = None
    ) -> KernelOperator | DeviceKernelOperator:
        """K = k(X, X), in a precision."""
        return kernel_operator(
            self.kernel, self.points, dtype=dtype, store=store, device=self.device, tolerance=tolerance
        )

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
    certificate : SpectralCertificate
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
    certificate: SpectralCertificate
    low: float = 0.0
    landmarks: npt.NDArray[np.intp] | None = None


def choose(n: int, k: int, solver: str, device: Any = None) -> tuple[str, str]:
    """Return the solver and the reason: the one asked for, or by size.

    The whole matrix up to 1,500 rows (2,000 on a card), or where more than an eighth of all components is asked for and
    it fits; Nyström beyond 200,000 rows (4 million on a card); block Krylov on tiles in between.

    Examples
    --------
    >>> from gramian.kernel_pca.solve import choose
    >>> choose(20_000, 10, "auto")[0]
    'krylov'
    """
    if solver in ("arpack", "randomized"):
        return "krylov", f"eigen_solver={solver!r}: block Krylov, until the residuals meet the tolerance"
    if solver != "auto":
        return solver, f"eigen_solver={solver!r}"
    card = getattr(device, "type", "cpu") != "cpu"
    few = n <= (DENSE_ON_A_CARD if card else DENSE) or PART * k > n
    if few and (not card or dense_bytes(n) <= free_bytes(device)):
        return "dense", f"{n} rows and {k} components: the whole matrix costs least"
    if n > (HUGE_ON_A_CARD if card else HUGE):
        return "nystrom", f"{n} rows: a product with every pair of them takes minutes"
    return "krylov", f"{k} components of {n} rows: a few products with tiles that are never stored"


def dense_bytes(n: int) -> int:
    """Bytes that the eigendecomposition of the whole matrix takes: the matrix, its eigenvectors, and as much again."""
    return 4 * 8 * n**2


def cleaned(values: Vector) -> Vector:
    """Eigenvalues, those at rounding level or below 0."""
    return np.where(values > 1e-12 * np.max(np.abs(values), initial=0.0), values, 0.0)


def dense_components(B: FeatureCentred, task: Task, reason: str) -> tuple[Spectrum, float]:
    """The eigendecomposition of B, residuals by one product; and its smallest eigenvalue where that is not known."""
    n, k, xp = task.n, task.k, B.xp
    if task.device is not None:
        what = f"The eigendecomposition of {n} rows"
        refuse_beyond_device(dense_bytes(n), task.device, what, "Use eigen_solver='krylov', which stores no matrix.")
    # entries that are large beside what centring leaves of them have lost digits before LAPACK sees them
    largest = _largest(B) * float(np.max(task.frequencies))
    M = _centred_matrix(B) if task.device is None else B.to_dense()
    values, vectors, low = _eigen(M, task) if task.device is None else _eigen_there(xp, M, k)
    norm = max(float(np.max(np.abs(values), initial=0.0)), np.finfo(float).tiny)
    residuals = np.sqrt(2) * norms(xp, M @ vectors - vectors * B.asarray(values)) / norm
    rounding = 4 * B.epsilon * max(1.0, largest * n**0.5 / norm)
    certificate = SpectralCertificate(
        "dense: eigendecomposition of the centred kernel matrix",
        reason,
        1,
        values,
        residuals,
        norm,
        orthogonality(xp, vectors),
        rounding,
        tolerance=max(task.tol, 1e-10),
        device=B.device_name,
        precision=B.precision,
    )
    certificate.warn_unless_converged("Subtract the mean from the data, or scale them.")
    return Spectrum(values, vectors, None, certificate), low if task.unknown else 0.0


def _eigen(M: Matrix, task: Task) -> tuple[Vector, Matrix, float]:
    """The k largest eigenpairs by LAPACK, and the smallest eigenvalue where it is asked for."""
    n, k = task.n, task.k
    values, vectors = scipy.linalg.eigh(M, subset_by_index=[n - k, n - 1], check_finite=False)
    if vectors.shape[1] < k:  # LAPACK finds no part of a spectrum that is one large cluster
        values, vectors = scipy.linalg.eigh(M, check_finite=False)
    low = float(scipy.linalg.eigvalsh(M, subset_by_index=[0, 0])[0]) if task.unknown else 0.0
    return values[::-1][:k].copy(), np.ascontiguousarray(vectors[:, ::-1][:, :k]), low


def _eigen_there(xp: Any, M: Any, k: int) -> tuple[Vector, Any, float]:
    """The same on a device, which knows whole decompositions alone."""
    values, vectors = xp.linalg.eigh(M)
    values = to_numpy(values, float)
    return values[::-1][:k].copy(), xp.flip(vectors[:, -k:], axis=1), float(values[0])


def _largest(B: FeatureCentred) -> float:
    """The largest entry of K in size."""
    return max(float(B.xp.max(B.xp.abs(block))) for _, _, block in B.A.rows())


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


LANDMARKS = 2000  # where no number is given


def nystrom_components(task: Task, reason: str) -> Decomposition:
    r"""Components of the features of landmarks chosen by randomly pivoted Cholesky.

    K̂ = FFᵀ with F = K_{:,L}F_L⁻ᵀ and F_LF_Lᵀ = K_LL, so that 0 ≤ λ_i(K) − λ_i(K̂) ≤ tr(K − K̂), centred or not.
    """
    if not task.kernel.positive_semidefinite:
        raise ValueError(
            f"{task.kernel!r} is not positive semidefinite, which eigen_solver='nystrom' needs. Use 'krylov'."
        )
    m = min(task.n, task.landmarks or max(LANDMARKS, 4 * task.k))
    if task.device is not None:
        what = f"Nyström's factor of {task.n} rows and {m} landmarks"
        refuse_beyond_device(10 * task.n * m, task.device, what, "Use fewer landmarks: n_landmarks.")
    K = task.operator(np.float64, store=False)
    own = to_numpy(K.diagonal(), float)
    found = rp_cholesky(own, K.columns, m, seed=task.seed)
    F, share, at = found.factor, K.asarray(task.share), to_numpy(found.factor[K.xp.asarray(found.indices)], float)
    mean = to_numpy(share @ F, float) if task.centre else np.zeros(F.shape[1])
    F -= K.asarray(mean)  # in place: F is the largest thing there is
    if task.w is not None:
        F *= K.asarray(np.sqrt(task.w)[:, None])
    squares, V = scipy.linalg.eigh(to_numpy(F.T @ F, float), check_finite=False)
    nothing = NOTHING * float(own @ task.frequencies)
    values, V = squares[::-1][: task.k], V[:, ::-1][:, : task.k]
    values = cleaned(np.where(values > nothing, values, 0.0))
    V = V * (values > 0)  # directions without variance get the coefficient 0
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    U = to_numpy(F @ K.asarray(V * inverse), float)
    # k(x, L) = F_L f(x) for the features f, so that f(x)·v = k(x, L)·F_L⁻ᵀv
    both = np.linalg.lstsq(at.T, np.column_stack([V, mean]), rcond=None)[0]
    coefficients, middle = np.asarray(both[:, :-1], np.float64), np.asarray(both[:, -1], np.float64)
    certificate = _certificate(values, found.trace, own, task, reason, len(found.indices), U)
    certificate = certificate.with_(device=K.device_name, precision=K.precision)
    certificate.warn_unless_converged(f"Use more than n_landmarks={m}, or eigen_solver='krylov'.")
    points = chosen_points(task.X, found.indices)
    square = float(mean @ mean)
    return Decomposition(
        values, U, points, coefficients, mean @ V, middle, square, at @ mean, certificate, 0.0, found.indices
    )


def _certificate(
    values: Vector, trace: float, own: Vector, task: Task, reason: str, m: int, U: Matrix
) -> SpectralCertificate:
    norm = float(values[0]) if len(values) and values[0] > 0 else 1.0
    bound = max(trace, 0.0) * float(np.max(task.frequencies))
    rounding = 8 * np.finfo(float).eps * max(1.0, float(own @ task.frequencies) / norm)
    return SpectralCertificate(
        f"Nyström with {m} landmarks by randomly pivoted Cholesky",
        reason,
        1,
        values,
        np.full(len(values), np.sqrt(2) * bound / norm),
        norm,
        float(np.max(np.abs(U.T @ U - np.eye(U.shape[1])), initial=0.0)),
        rounding,
        tolerance=max(task.tol, 1e-6),
        notes=(f"eigenvalues are too small by at most {bound:.3g}, the trace of what the landmarks leave out",),
    )


CANCELS = 1e-3  # of the trace: below, float32 has too few digits for what centring leaves
FAST = 5e-4  # relative error of a card's fast mode, which iterates ...
FAST_FROM = 5e-5  # ... for tolerances from here on, where ...
FAST_CANCELS = 0.1  # ... centring leaves so much of the trace


def decompose(task: Task) -> Decomposition:
    """Find the leading eigenpairs of B and the coefficients of the components."""
    way, reason = choose(task.n, task.k, task.solver, task.device)
    if way == "nystrom":
        return nystrom_components(task, reason)
    K: Any = task.operator(np.float64, store=_kept(task, way))
    own = to_numpy(K.diagonal(), float)
    K = Data(K.to_dense()) if way == "dense" and task.device is None else K  # evaluated once, whatever is asked of it
    B = FeatureCentred(K, task.w, centre=task.centre)
    twins = _twins(task, own) if way == "krylov" else []
    if not twins and _spread(B, task, own) <= max(NOTHING, 4 * B.epsilon) and not task.unknown:
        return _coefficients(B, task, _no_variance(task, reason), 0.0)
    found = dense_components(B, task, reason) if way == "dense" else _krylov(B, twins, task, own, reason)
    return _coefficients(B, task, *found)


def _kept(task: Task, way: str) -> bool | str:
    """Whether K in float64 is kept: for LAPACK, or where values are dear; on a device by the operator's own rule."""
    if task.device is not None:
        return False if way == "dense" else "auto"
    return way == "dense" or _costly(task)


def _spread(B: FeatureCentred, task: Task, own: Vector) -> float:
    """tr B as a share of the trace of K: what centring leaves."""
    whole = float(own @ task.frequencies)
    taken = float(task.frequencies.sum()) * float(B.means @ B.share) if task.centre else 0.0
    return (whole - taken) / abs(whole) if whole != 0.0 else 0.0


def _twins(task: Task, own: Vector) -> list[FeatureCentred]:
    """B in float32, where there are many products to make and centring leaves digits enough; on a card in two modes."""
    if task.n <= DENSE or not 1e-30 < float(np.max(own)) < 1e30 or _costly(task):
        return []
    # what fits is kept from the first product, one triangle
    kept = 2 * task.n**2 <= memory_budget() // 2 if task.device is None else "auto"
    twin = FeatureCentred(task.operator(np.float32, store=kept), task.w, centre=task.centre)
    left = _spread(twin, task, own)
    if left <= CANCELS:
        return []
    fast = _fast(task) if task.device is not None and task.tol >= FAST_FROM and left > FAST_CANCELS else None
    return [twin] if fast is None or fast.epsilon <= twin.epsilon else [fast, twin]


def _fast(task: Task) -> FeatureCentred:
    return FeatureCentred(task.operator(np.float32, tolerance=FAST), task.w, centre=task.centre)


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
    method, reason = "none needed", f"{reason}; all features are equal"
    certificate = SpectralCertificate(method, reason, 1, zero, zero, 0.0, 0.0, tolerance=1e-10)
    return Spectrum(zero, np.eye(task.n, task.k), None, certificate)


def _krylov(
    B: FeatureCentred, twins: list[FeatureCentred], task: Task, own: Vector, reason: str
) -> tuple[Spectrum, float]:
    """Block Krylov: iterated on tiles in float32 where that helps, projected and certified in float64."""
    most = task.max_iterations or 300
    result = SymmetricKrylov(task.tol, max_products=most, seed=task.seed).attempt(B, task.k, reason, twin=twins)
    lost = _size(B, task, own) / max(result.certificate.norm, np.finfo(float).tiny)
    certificate = result.certificate.with_(
        passes=sum(A.passes for A in (*twins, B)), rounding=4 * B.epsilon * max(1.0, lost)
    )
    certificate.warn_unless_converged(f"Raise tol, use eigen_solver='dense', or allow more than max_iter={most}.")
    result = replace(result, certificate=certificate)
    return result, _smallest(B, float(result.values[0]), task.seed) if task.unknown else 0.0


def _size(B: FeatureCentred, task: Task, own: Vector) -> float:
    """‖K‖ ≤ tr K of inner products; else about the largest row sum. What centring takes away was rounded with it."""
    trace = float(np.abs(own) @ task.frequencies)
    if not (task.unknown and task.centre):
        return trace
    return max(trace, float(task.frequencies.sum() * np.max(np.abs(to_numpy(B.means)))))


def _smallest(B: Operator, top: float, seed: int) -> float:
    """The smallest eigenvalue of B, as τ less the largest of τI − B with τ the largest of B.

    What Krylov finds is never below the smallest, so that a negative answer is proof.
    """
    top = max(top, np.finfo(float).tiny)
    shifted = Shifted(Multiple(B, -1.0), top)
    return top - float(SymmetricKrylov(1e-5, max_products=60, seed=seed).attempt(shifted, 1, "").values[0])


def _coefficients(B: FeatureCentred, task: Task, result: Spectrum, low: float) -> Decomposition:
    """α and c; directions without variance get the coefficient 0."""
    values, U = cleaned(result.values), to_numpy(result.right, float)
    root = np.sqrt(task.frequencies)[:, None]
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    alpha, share = root * U * inverse, task.share
    means = np.zeros(task.n)
    if task.centre:
        alpha = alpha - share[:, None] * alpha.sum(axis=0)
        means = to_numpy(B.means, float)
    offset, mean_square = means @ alpha, float(means @ share)
    return Decomposition(values, U, task.X, alpha, offset, share, mean_square, means, result.certificate, low)
