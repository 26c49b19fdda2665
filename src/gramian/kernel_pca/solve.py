r"""The eigenproblem of kernel PCA, which solver it gets, and the coefficients of components that follow.

With H = I − 1w̄ᵀ, w̄ = w/Σw, the matrix B = diag(√w) H K Hᵀ diag(√w) has unit eigenvectors u and eigenvalues λ. A
component is v = Σ_j α_j φ(x_j) with α = Hᵀ diag(√w) u/√λ, of length 1, and the score of a point x is

.. math:: \langle v, \varphi(x)-\bar\varphi\rangle = \sum_j \alpha_jk(x,x_j) - c,\qquad c = \bar w^TK\alpha

so that new points are centred with the training means by subtracting one number for each component.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.compute.devices import free_bytes, refuse_beyond_device, to_device, to_numpy
from gramian.inputs.kernels import take_points
from gramian.kernels import Kernel, Precomputed
from gramian.operators import Data, FeatureCentred, Multiple, Shifted, kernel_operator
from gramian.results import NumericalWarning, SpectralCertificate, caller_level
from gramian.sources import memory_budget
from gramian.sources.errors import Argument, SourceError
from gramian.spectral import SymmetricKrylov
from gramian.spectral.rayleigh import norms, orthogonality
from gramian.spectral.rpcholesky import rp_cholesky

Array = npt.NDArray[np.float64]

DENSE = 1500  # rows up to which LAPACK on the whole matrix is quicker than a few products
DENSE_GPU = 2000  # on an H200: 0.03 s against 0.06 s at 1,500 rows, 0.07 s against 0.05 s at 3,000
PART = 8  # ... and where more than one component in so many rows is asked for
HUGE = 200_000  # rows beyond which a product with every pair takes minutes
HUGE_GPU = 4_000_000  # a product in float32 then takes seconds on an H200, one in float64 most of a minute
LANDMARKS = 2000  # where no number is given
NOTHING = 1e-13  # of the trace: what is left of it by centring is rounding
CANCELS = 1e-3  # of the trace: below, float32 has too few digits for what centring leaves
FAST = 5e-4  # relative error of a GPU's fast mode, which iterates ...
FAST_FROM = 5e-5  # ... for tolerances from here on, where ...
FAST_CANCELS = 0.1  # ... centring leaves so much of the trace
TINY = float(np.finfo(float).tiny)


def choose_solver(n: int, k: int, solver: str, device: Any = None) -> tuple[str, str]:
    """Return the solver and the reason: the one asked for, or by size.

    The whole matrix up to 1,500 rows (2,000 on a GPU), or where more than an eighth of all components is asked for and
    it fits; Nyström beyond 200,000 rows (4 million on a GPU); block Krylov on tiles in between.

    Examples
    --------
    >>> from gramian.kernel_pca.solve import choose_solver
    >>> choose_solver(20_000, 10, "auto")[0]
    'krylov'
    """
    if solver in ("arpack", "randomized"):
        return "krylov", f"eigen_solver={solver!r}: block Krylov, until the residuals meet the tolerance"
    if solver != "auto":
        return solver, f"eigen_solver={solver!r}"
    gpu = getattr(device, "type", "cpu") != "cpu"
    few = n <= (DENSE_GPU if gpu else DENSE) or PART * k > n
    if few and (not gpu or dense_bytes(n) <= free_bytes(device)):
        return "dense", f"{n} rows and {k} components: the whole matrix costs least"
    if n > (HUGE_GPU if gpu else HUGE):
        return "nystrom", f"{n} rows: a product with every pair of them takes minutes"
    return "krylov", f"{k} components of {n} rows: a few products with tiles that are never stored"


def dense_bytes(n: int) -> int:
    """Bytes that the eigendecomposition of the whole matrix takes: the matrix, its eigenvectors, and as much again."""
    return 4 * 8 * n**2


@dataclass(frozen=True, eq=False)
class CentredKernel:
    """The matrix B of a kernel, points x and weights w: which kernel, of which points, computed where."""

    kernel: Kernel
    points: Any
    weights: Array | None
    centre: bool
    device: Any = None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.points) if isinstance(self.points, (list, tuple)) else int(self.points.shape[0])

    @cached_property
    def frequencies(self) -> Array:
        """The weights w, all ones where not given."""
        return np.ones(self.n) if self.weights is None else self.weights

    @cached_property
    def share(self) -> Array:
        """w̄: the weights, to sum 1."""
        return np.asarray(self.frequencies / self.frequencies.sum())

    @property
    def may_be_indefinite(self) -> bool:
        """Whether nothing says that the kernel is positive semidefinite."""
        unknown = self.kernel.takes_objects or isinstance(self.kernel, Precomputed)
        return unknown or not self.kernel.positive_semidefinite

    @property
    def is_costly(self) -> bool:
        """Whether a value of the kernel costs a call of Python, so that every one is kept if it can be."""
        return self.kernel.takes_objects and 4 * self.n**2 <= memory_budget()

    @cached_property
    def _points_on_device(self) -> Any:
        """The points where they are compared: put on the device once, for all operators."""
        return self.points if self.device is None else to_device(self.points, self.device)

    def operator(self, dtype: Any, store: bool | str = "auto", tolerance: float | None = None) -> Any:
        """K = k(X, X) as an operator, in a dtype and to a tolerance."""
        return kernel_operator(
            self.kernel, self._points_on_device, dtype=dtype, store=store, device=self.device, tolerance=tolerance
        )

    def centred(self, K: Any) -> FeatureCentred:
        """B: the operator K, centred and weighted."""
        return FeatureCentred(K, self.weights, centre=self.centre)

    def trace_left(self, B: FeatureCentred, diagonal: Array) -> float:
        """tr B as a share of the trace of K: what centring leaves."""
        whole = float(diagonal @ self.frequencies)
        mean = float(self.frequencies.sum()) * float(B.means @ B.share) if self.centre else 0.0
        return (whole - mean) / abs(whole) if whole != 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class KernelComponents:
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
    smallest : float
        The smallest eigenvalue of B, where the kernel is not known to be positive semidefinite.
    landmarks : ndarray or None
        Which rows the points are, where they are not all.
    """

    values: Array
    vectors: Array
    points: Any
    coefficients: Array
    offset: Array
    share: Array
    mean_square: float
    means: Array
    certificate: SpectralCertificate
    smallest: float = 0.0
    landmarks: npt.NDArray[np.intp] | None = None


def solve_dense(problem: CentredKernel, k: int, tol: float, reason: str) -> KernelComponents:
    """Components by the eigendecomposition of B, residuals by one product."""
    n, device = problem.n, problem.device
    K = problem.operator(np.float64, store=device is None)
    diagonal = to_numpy(K.diagonal(), float)
    B = problem.centred(Data(K.to_dense()) if device is None else K)  # evaluated once, whatever is asked of it
    if _has_no_variance(problem, B, diagonal):
        return _no_components(problem, B, k, reason)
    if device is not None:
        what = f"The eigendecomposition of {n} rows"
        refuse_beyond_device(dense_bytes(n), device, what, "Use eigen_solver='krylov', which stores no matrix.")
    # entries that are large compared with what centring leaves of them have lost digits before LAPACK sees them
    largest = max(float(B.xp.max(B.xp.abs(block))) for _, _, block in B.A.rows()) * float(np.max(problem.frequencies))
    smallest = 0.0
    if device is None:
        M = np.array(B.A.to_dense())  # B, by two rank-one corrections in place of two products
        if B.centre:
            row = B.share @ M
            M -= row[None, :]
            M -= (M @ B.share)[:, None]
        if B.root is not None:
            M *= B.root[:, None] * B.root[None, :]
        values, vectors = scipy.linalg.eigh(M, subset_by_index=[n - k, n - 1], check_finite=False)
        if vectors.shape[1] < k:  # LAPACK finds no part of a spectrum that is one large cluster
            values, vectors = scipy.linalg.eigh(M, check_finite=False)
        values, vectors = values[::-1][:k].copy(), np.ascontiguousarray(vectors[:, ::-1][:, :k])
        if problem.may_be_indefinite:
            smallest = float(scipy.linalg.eigvalsh(M, subset_by_index=[0, 0])[0])
    else:  # a device knows whole decompositions alone
        M = B.to_dense()
        every, vectors = B.xp.linalg.eigh(M)
        every, vectors = to_numpy(every, float), B.xp.flip(vectors[:, -k:], axis=1)
        values, smallest = every[::-1][:k].copy(), float(every[0]) if problem.may_be_indefinite else 0.0
    norm = max(float(np.max(np.abs(values), initial=0.0)), TINY)
    certificate = SpectralCertificate(
        "dense: eigendecomposition of the centred kernel matrix",
        reason,
        1,
        values,
        np.sqrt(2) * norms(B.xp, M @ vectors - vectors * B.asarray(values)) / norm,
        norm,
        orthogonality(B.xp, vectors),
        4 * B.epsilon * max(1.0, largest * n**0.5 / norm),
        tolerance=max(tol, 1e-10),
        device=B.device_name,
        precision=B.precision,
    )
    certificate.warn_unless_converged("Subtract the mean from the data, or scale them.")
    return _combine(problem, B, values, vectors, certificate, smallest)


def solve_krylov(
    problem: CentredKernel, k: int, tol: float, max_iter: int | None, seed: int, reason: str
) -> KernelComponents:
    """Components by block Krylov: iterated on tiles in float32 where that helps, projected and certified in float64."""
    K = problem.operator(np.float64, store=problem.is_costly if problem.device is None else "auto")
    diagonal = to_numpy(K.diagonal(), float)
    B, twins = problem.centred(K), _float32_twins(problem, tol, diagonal)
    if not twins and _has_no_variance(problem, B, diagonal):
        return _no_components(problem, B, k, reason)
    most = max_iter or 300
    result = SymmetricKrylov(tol, max_products=most, seed=seed).attempt(B, k, reason, twin=twins)
    # ‖K‖ ≤ tr K of inner products; else about the largest row sum. What centring takes away was rounded with it.
    size = float(np.abs(diagonal) @ problem.frequencies)
    if problem.may_be_indefinite and problem.centre:
        size = max(size, float(problem.frequencies.sum() * np.max(np.abs(to_numpy(B.means)))))
    rounding = 4 * B.epsilon * max(1.0, size / max(result.certificate.norm, TINY))
    certificate = result.certificate.with_(passes=sum(A.passes for A in (*twins, B)), rounding=rounding)
    certificate.warn_unless_converged(f"Raise tol, use eigen_solver='dense', or allow more than max_iter={most}.")
    smallest = 0.0
    if problem.may_be_indefinite:
        # τ less the largest of τI − B, τ the largest of B: Krylov's is never below it, so a negative one is proof
        top = max(float(result.values[0]), TINY)
        below = SymmetricKrylov(1e-5, max_products=60, seed=seed).attempt(Shifted(Multiple(B, -1.0), top), 1, "")
        smallest = top - float(below.values[0])
    return _combine(problem, B, result.values, result.right, certificate, smallest)


def _float32_twins(problem: CentredKernel, tol: float, diagonal: Array) -> list[FeatureCentred]:
    """B in float32, where there are many products to make and centring leaves digits enough; on a GPU in two modes."""
    if problem.n <= DENSE or not 1e-30 < float(np.max(diagonal)) < 1e30 or problem.is_costly:
        return []
    # what fits is kept from the first product, one triangle
    store = 2 * problem.n**2 <= memory_budget() // 2 if problem.device is None else "auto"
    twin = problem.centred(problem.operator(np.float32, store=store))
    left = problem.trace_left(twin, diagonal)
    if left <= CANCELS:
        return []
    if problem.device is None or tol < FAST_FROM or left <= FAST_CANCELS:
        return [twin]
    fast = problem.centred(problem.operator(np.float32, tolerance=FAST))
    return [twin] if fast.epsilon <= twin.epsilon else [fast, twin]


def _has_no_variance(problem: CentredKernel, B: FeatureCentred, diagonal: Array) -> bool:
    left = problem.trace_left(B, diagonal)
    return left <= max(NOTHING, 4 * B.epsilon) and not problem.may_be_indefinite


def _no_components(problem: CentredKernel, B: FeatureCentred, k: int, reason: str) -> KernelComponents:
    """All features are equal, as far as K can tell: any directions will do."""
    warnings.warn(
        "All features are equal, as far as the kernel matrix can tell: there is no variance to explain. If the rows do "
        "differ, subtract their mean, or choose a narrower kernel.",
        NumericalWarning,
        stacklevel=caller_level(),
    )
    zero = np.zeros(k)
    reason = f"{reason}; all features are equal"
    certificate = SpectralCertificate("none needed", reason, 1, zero, zero, 0.0, 0.0, tolerance=1e-10)
    return _combine(problem, B, zero, np.eye(problem.n, k), certificate, 0.0)


def _combine(
    problem: CentredKernel,
    B: FeatureCentred,
    values: Array,
    vectors: Any,
    certificate: SpectralCertificate,
    smallest: float,
) -> KernelComponents:
    """Coefficients α and c from eigenpairs; directions without variance get the coefficient 0."""
    values, U = _clear_rounding(values), to_numpy(vectors, float)
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    alpha, share, means = np.sqrt(problem.frequencies)[:, None] * U * inverse, problem.share, np.zeros(problem.n)
    if problem.centre:
        alpha = alpha - share[:, None] * alpha.sum(axis=0)
        means = to_numpy(B.means, float)
    offset, square = means @ alpha, float(means @ share)
    return KernelComponents(values, U, problem.points, alpha, offset, share, square, means, certificate, smallest)


def _clear_rounding(values: Array) -> Array:
    """Eigenvalues, 0 for those at rounding level or below 0."""
    return np.where(values > 1e-12 * np.max(np.abs(values), initial=0.0), values, 0.0)


def solve_nystrom(
    problem: CentredKernel, k: int, tol: float, n_landmarks: int | None, seed: int, reason: str
) -> KernelComponents:
    r"""Components of the features of landmarks chosen by randomly pivoted Cholesky.

    K̂ = FFᵀ with F = K_{:,L}F_L⁻ᵀ and F_LF_Lᵀ = K_LL, so that 0 ≤ λ_i(K) − λ_i(K̂) ≤ tr(K − K̂), centred or not.
    """
    if not problem.kernel.positive_semidefinite:
        nystrom, krylov = Argument("eigen_solver", "nystrom"), Argument("eigen_solver", "krylov")
        raise SourceError(
            f"{problem.kernel!r} is not positive semidefinite, which ", nystrom, " needs. Use ", krylov, "."
        )
    m = min(problem.n, n_landmarks or max(LANDMARKS, 4 * k))
    if problem.device is not None:
        what = f"Nyström's factor of {problem.n} rows and {m} landmarks"
        refuse_beyond_device(10 * problem.n * m, problem.device, what, "Use fewer landmarks: n_landmarks.")
    K = problem.operator(np.float64, store=False)
    diagonal = to_numpy(K.diagonal(), float)
    chosen = rp_cholesky(diagonal, K.columns, m, seed=seed)
    F, at = chosen.factor, to_numpy(chosen.factor[K.xp.asarray(chosen.indices)], float)
    mean = to_numpy(K.asarray(problem.share) @ F, float) if problem.centre else np.zeros(F.shape[1])
    F -= K.asarray(mean)  # in place: F is the largest thing there is
    if problem.weights is not None:
        F *= K.asarray(np.sqrt(problem.weights)[:, None])
    squares, V = scipy.linalg.eigh(to_numpy(F.T @ F, float), check_finite=False)
    trace = float(diagonal @ problem.frequencies)
    values, V = squares[::-1][:k], V[:, ::-1][:, :k]
    values = _clear_rounding(np.where(values > NOTHING * trace, values, 0.0))
    V = V * (values > 0)  # directions without variance get the coefficient 0
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    U = to_numpy(F @ K.asarray(V * inverse), float)
    # k(x, L) = F_L f(x) for the features f, so that f(x)·v = k(x, L)·F_L⁻ᵀv
    both = np.asarray(np.linalg.lstsq(at.T, np.column_stack([V, mean]), rcond=None)[0], np.float64)
    norm = float(values[0]) if len(values) and values[0] > 0 else 1.0
    bound = max(chosen.trace, 0.0) * float(np.max(problem.frequencies))
    certificate = SpectralCertificate(
        f"Nyström with {len(chosen.indices)} landmarks by randomly pivoted Cholesky",
        reason,
        1,
        values,
        np.full(len(values), np.sqrt(2) * bound / norm),
        norm,
        float(np.max(np.abs(U.T @ U - np.eye(U.shape[1])), initial=0.0)),
        8 * np.finfo(float).eps * max(1.0, trace / norm),
        tolerance=max(tol, 1e-6),
        device=K.device_name,
        precision=K.precision,
        notes=(f"eigenvalues are too small by at most {bound:.3g}, the trace of what the landmarks leave out",),
    )
    certificate.warn_unless_converged(f"Use more than n_landmarks={m}, or eigen_solver='krylov'.")
    return KernelComponents(
        values,
        U,
        take_points(problem.points, chosen.indices),
        both[:, :-1],
        mean @ V,
        both[:, -1],
        float(mean @ mean),
        at @ mean,
        certificate,
        landmarks=chosen.indices,
    )
