r"""The eigenproblem of kernel PCA, which solver it gets, and the coefficients of components that follow.

With H = I − 1w̄ᵀ, w̄ = w/Σw, the matrix B = diag(√w) H K Hᵀ diag(√w) has unit eigenvectors u and eigenvalues λ. A
component is v = Σ_j α_j φ(x_j) with α = Hᵀ diag(√w) u/√λ, of length 1, and the score of a point x is

.. math:: \langle v, \varphi(x)-\bar\varphi\rangle = \sum_j \alpha_jk(x,x_j) - c,\qquad c = \bar w^TK\alpha

so that new points are centred with the training means by subtracting one number for each component.

**Digits.** Centring subtracts what features have in common, and loses as many digits as that is larger than what is
left. Where it is a thousand times larger, the kernel about the mean of the rows is evaluated
(:meth:`gramian.kernels.Kernel.about_mean`), which has the same B and no such part.

**Bounds.** Let K̂ be K as evaluated and λ̂ what is returned. With \|K̂_ij − K_ij\| ≤ e_i e_j
(:meth:`gramian.kernels.Kernel.rounding`), u = 2⁻⁵³ and ν = min(n, 10√n),

.. math:: |\hat\lambda_i-\lambda_i| \le \underbrace{\textstyle\sum_jw_je_j^2}_{\text{values of the kernel}}
   + \underbrace{(6\nu+32)\,u\,s}_{\text{sums}}
   + \underbrace{\textstyle(\sum_{j\le i}\|r_j\|^2)^{1/2}}_{\text{residuals}}

* Values: ‖diag(√w)(K̂ − K)diag(√w)‖ ≤ Σ w e², and H does not lengthen.
* Sums: a sum of n terms has a relative error of nu in the worst case, and of 10√n u with a probability beyond doubt
  where roundings are independent (Higham and Mary, 2019). Two sums make the means of rows and columns, two more
  subtract them, one multiplies, and LAPACK's eigenvalues are those of a matrix as near as that. s is at least
  ‖diag(√w)\|K\|diag(√w)‖: the Frobenius norm of a matrix in memory, or the trace Σ w_j k(x_j, x_j) of inner products.
* Residuals: for orthonormal vectors with BV = VΘ + R there are eigenvalues of B that pair with those of Θ to within ‖R‖
  (Kahan). Those of the first i vectors pair with i eigenvalues to within the root of their summed squares. That these
  are the *largest* i no residual can prove; ``overlooked`` of the certificate says how likely it is.

Values that are below 1e-12 of the largest are returned as 0, and their bounds grow by what that takes away.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from gramian.compute import dense
from gramian.compute.devices import free_bytes, is_numpy, refuse_beyond_device, to_device, to_numpy
from gramian.compute.factor import eigh
from gramian.compute.threads import quiet_blas
from gramian.inputs.kernels import take_points
from gramian.kernels import Kernel, Precomputed
from gramian.operators import FeatureCentred, Multiple, Shifted, kernel_operator
from gramian.results import NumericalWarning, SpectralCertificate, caller_level
from gramian.sources import memory_budget
from gramian.sources.errors import Argument, SourceError
from gramian.spectral import SymmetricKrylov
from gramian.spectral.lanczos import search_eigenpairs
from gramian.spectral.rayleigh import largest_eigenpairs, norms, orthogonality
from gramian.spectral.rpcholesky import rp_cholesky

Array = npt.NDArray[np.float64]

DENSE = 1500  # rows up to which LAPACK on the whole matrix is quicker than a few products
DENSE_GPU = 2000  # on an H200: 0.03 s against 0.06 s at 1,500 rows, 0.07 s against 0.05 s at 3,000
ROWS_PER_FEATURE = 3  # from which on the Gram matrix of the features is decomposed, and not that of the rows
SMALL = 300  # rows up to which LAPACK finds a few eigenvectors as fast as ARPACK: 7.9 ms against 6.0 at 400
FEW = 16  # rows for each component from which on they are few
PART = 8  # ... and where more than one component in so many rows is asked for
STEP = 8192  # rows of Nyström's factor that are squared at a time
REMEDY = "Subtract the mean from the data, or multiply them by a constant."
HUGE = 200_000  # rows beyond which a product with every pair takes minutes
HUGE_GPU = 4_000_000  # a product in float32 then takes seconds on an H200, one in float64 most of a minute
LANDMARKS = 2000  # where no number is given
ITERATED = 1e-11  # residual to which a matrix in memory is iterated
CANCELS = 1e-3  # of the trace: below, float32 has too few digits for what centring leaves
FAST = 5e-4  # relative error of a GPU's fast mode, which iterates ...
FAST_FROM = 5e-5  # ... for tolerances from here on, where ...
FAST_CANCELS = 0.1  # ... centring leaves so much of the trace
TINY = float(np.finfo(float).tiny)
UNIT = 2.0**-53  # relative error of one operation
SPENT = 1e-12  # of the largest k(x, x): what a row adds to the span of landmarks, below which it adds nothing
USUAL = (1e-100, 1e100)  # sizes of numbers whose squares can be added


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
    gpu = device is not None and device.type != "cpu"
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
    origin: Any = None  # the file that the points were read from

    def __post_init__(self) -> None:
        """Evaluate the kernel about the mean of the points where centring would cost it digits."""
        if not self.centre or isinstance(self.points, list) or isinstance(self.kernel, Precomputed):
            return
        about = self.kernel.about_mean(self.points)
        if self.device is None or about.formula(self.points.shape[1]) is not None:
            object.__setattr__(self, "kernel", about)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.points) if isinstance(self.points, list) else int(self.points.shape[0])

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
            self.kernel,
            self._points_on_device,
            dtype=dtype,
            store=store,
            device=self.device,
            tolerance=tolerance,
            origin=self.origin,
        )

    def centre_features(self, K: Any) -> FeatureCentred:
        """B: the operator K, centred and weighted."""
        return FeatureCentred(K, self.weights, centre=self.centre)

    @cached_property
    def diagonal(self) -> Array:
        """k(x, x) of every point; numbers that overflow are refused."""
        if isinstance(self.kernel, Precomputed):
            return np.array(np.diagonal(self.points), dtype=np.float64)
        own = np.asarray(self.kernel.diagonal(self.points), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.abs(own) + self.error_squares
            total = float(sizes @ self.frequencies)
        if not np.isfinite(total):
            worst = int(np.argmax(np.where(np.isfinite(sizes), sizes, np.inf)))
            raise ValueError(
                f"k(x, x) of row {worst + 1} is {own[worst]:.3g}: the kernel overflows. Multiply the data by a small "
                "constant."
            )
        return own

    @property
    def trace(self) -> float:
        """Σ w k(x, x)."""
        return float(self.diagonal @ self.frequencies)

    def trace_left(self, B: FeatureCentred) -> float:
        """tr B as a share of the trace of K: what centring leaves."""
        mean = float(self.frequencies.sum()) * float(B.means @ B.share) if self.centre else 0.0
        return (self.trace - mean) / abs(self.trace) if self.trace != 0.0 else 0.0

    @cached_property
    def error_squares(self) -> Array:
        """e² of every point: what the values of the kernel, as evaluated on the CPU, can be off by."""
        with np.errstate(over="ignore"):
            return np.asarray(self.kernel.rounding(self.points) ** 2)

    @property
    def evaluation_error(self) -> float:
        """Σ w e²: how far that can move an eigenvalue."""
        return float(self.frequencies @ self.error_squares)

    def rounding_error(self, size: float, epsilon: float) -> float:
        """Bound on what evaluation and sums move an eigenvalue by, for s = ``size``: see the head of this module."""
        sums = (6 * _summation_units(self.n) + 32) * UNIT * size
        return sums + (self.evaluation_error if self.device is None else 4 * epsilon * size)

    @property
    def has_equal_points(self) -> bool:
        """Whether all rows are the same, so that centring leaves nothing: proved, and not a matter of rounding."""
        if not self.centre or isinstance(self.points, list) or self.kernel.takes_objects:
            return False
        first, last = (to_numpy(self.points[[i]]) for i in (0, -1))
        if not np.array_equal(first, last):
            return False
        if scipy.sparse.issparse(self.points):
            sparse: Any = self.points
            return bool(abs(sparse - scipy.sparse.csr_array(np.ones((self.n, 1)) @ first)).max() == 0)
        return bool(np.all(self.points == first))


def _summation_units(n: int) -> float:
    """ν = min(n, 10√n): relative error of a sum of n terms in units of rounding."""
    return float(min(n, 10.0 * n**0.5))


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


def solve_dense(problem: CentredKernel, k: int, tol: float, reason: str, *, iterate: bool = False) -> KernelComponents:
    """Components by the eigendecomposition of B, residuals by one product; a few by Lanczos where allowed (iterate)."""
    n, device = problem.n, problem.device
    if n > DENSE or device is not None:  # smaller ones are not worth asking
        what = f"The eigendecomposition of a kernel matrix of {n} rows"
        remedy = ("Use ", ("eigen_solver", "krylov"), ", which stores no matrix.")
        refuse_beyond_device(dense_bytes(n), device, what, remedy)
    if problem.has_equal_points:
        return _no_components(problem, k, reason)
    problem.diagonal  # noqa: B018  # refuses what overflows
    K = problem.operator(np.float64, store=False)
    smallest, overlooked = 0.0, None
    method = "dense: eigendecomposition of the centred kernel matrix"
    if device is None:
        M = K.to_dense()
        peak = max(float(M.max()), -float(M.min()))
        unit = _power_of_two(peak)  # what M is divided by, so that squares of its entries can be added
        M = M if unit == 1.0 else M / unit
        share, root = problem.share, None if problem.weights is None else np.sqrt(problem.weights)
        means = np.zeros(n)
        few = iterate and n > SMALL and FEW * k <= n and not problem.may_be_indefinite
        with quiet_blas():  # and with the same bits however many threads there are
            size = float(np.linalg.norm(M if root is None else M * root[:, None] * root))
            if problem.centre:  # two rank-one corrections in place of two products
                means = share @ M
                M -= means[None, :]
                M -= (M @ share)[:, None]
            if root is not None:
                M *= root[:, None] * root
            found = search_eigenpairs(M, k, ITERATED) if few else None
            if found is None:
                # eq: kpca-eigen, kpca-variance, kpca-covariance, kpca-quadratic
                values, vectors = largest_eigenpairs(M, k)
            else:
                (values, vectors, overlooked), method = found, "dense: Lanczos (ARPACK) on the centred kernel matrix"
            if problem.may_be_indefinite:
                smallest = -float(largest_eigenpairs(-M, 1)[0][0]) * unit
            residuals = np.linalg.norm(M @ vectors - vectors * values, axis=0) * unit
        means, size, defect = means * unit, size * unit, orthogonality(np, vectors)
    else:  # a device knows whole decompositions alone
        B, unit = problem.centre_features(K), 1.0
        M = B.to_dense()
        size = float(B.xp.linalg.vector_norm(B.A.to_dense())) * float(np.max(problem.frequencies))
        every, vectors = B.xp.linalg.eigh(M)
        every, vectors = to_numpy(every, float), B.xp.flip(vectors[:, -k:], axis=1)
        values, smallest = every[::-1][:k].copy(), float(every[0]) if problem.may_be_indefinite else 0.0
        residuals = norms(B.xp, M @ vectors - vectors * B.asarray(values))
        means = to_numpy(B.means, float) if problem.centre else np.zeros(n)
        defect = orthogonality(B.xp, vectors)
    facts = {"orthogonality": defect, "tolerance": max(tol, 1e-10), "overlooked": overlooked}
    error = problem.rounding_error(size, K.epsilon)
    certificate = _certify(K, method, reason, 1, values * unit, residuals, error, **facts)
    certificate.warn_unless_converged(REMEDY)
    return _combine(problem, means, certificate, vectors, smallest)


def find_features(problem: CentredKernel, k: int) -> Array | None:
    """Φ with K = ΦΦᵀ, where the kernel has so few features, and at least k, that their problem is the smaller one."""
    if problem.device is not None or not isinstance(problem.points, np.ndarray):
        return None
    most = min(problem.n // ROWS_PER_FEATURE, memory_budget() // (32 * problem.n))
    Phi = None if most < k else problem.kernel.map_features(problem.points, most)
    return Phi if Phi is not None and Phi.shape[1] >= k else None


def solve_features(problem: CentredKernel, Phi: Array, k: int, tol: float, reason: str) -> KernelComponents:
    r"""Components from F = diag(√w)HΦ with B = FFᵀ: u = Fv/√λ of the eigenvectors v of FᵀF, made orthonormal.

    What rounding does to v is measured by ‖F(Fᵀu) − λu‖; centring and two products err by less than those of B.
    """
    if problem.has_equal_points:
        return _no_components(problem, k, reason)
    half = float(2.0 ** (int(np.log2(_power_of_two(float(np.max(problem.diagonal))))) // 2))
    n, m, K = problem.n, Phi.shape[1], problem.operator(np.float64, store=False)
    share, unit = problem.share, half * half
    with quiet_blas():  # tiles are shared between cores all the same
        F = Phi if half == 1.0 else Phi / half
        means = np.zeros(n)
        if problem.centre:
            mean = share @ F
            means = (F @ mean) * unit
            F = F - mean
        if problem.weights is not None:
            F = F * np.sqrt(problem.weights)[:, None]
        V = largest_eigenpairs(dense.scatter(F, None, F[:0])[1], k)[1]
        Q = np.linalg.qr(dense.product(F, V))[0]
        T = dense.adjoint(F, Q)  # B in the span of Q
        values, W = largest_eigenpairs(T.T @ T, k)
        vectors = Q @ W
        residuals = np.linalg.norm(dense.product(F, T @ W) - vectors * values, axis=0) * unit
    facts = {"orthogonality": orthogonality(np, vectors), "tolerance": max(tol, 1e-10), "overlooked": None}
    method = f"dense: eigenvectors of the {m} features of the kernel"
    error = problem.rounding_error(problem.trace, K.epsilon)
    certificate = _certify(K, method, reason, 1, values * unit, residuals, error, **facts)
    certificate.warn_unless_converged(REMEDY)
    return _combine(problem, means, certificate, vectors, 0.0)


def _power_of_two(peak: float) -> float:
    """1 for numbers of usual size, else the power of two next to the largest."""
    return 1.0 if peak == 0.0 or USUAL[0] < peak < USUAL[1] else float(2.0 ** np.clip(np.frexp(peak)[1], -1021, 1021))


def _certify(
    K: Any, method: str, reason: str, passes: int, values: Array, residuals: Array, error: float, **facts: Any
) -> SpectralCertificate:
    """The certificate of eigenvalues with residuals ‖r‖ and an error of products: those next to 0 are 0.

    ``facts`` are the other fields of the certificate.
    """
    kept = np.where(values > 1e-12 * np.max(np.abs(values), initial=0.0), values, 0.0)
    # relative to the largest eigenvalue; to the error where there is none, which then is all there is
    norm = float(np.max(np.abs(values), initial=0.0)) or error or 1.0
    with np.errstate(over="ignore"):
        rounding = min(error / norm, 1e300)
    off = np.sqrt(2) * (residuals + np.maximum(values - kept, 0.0)) / norm
    facts |= {"rounding": rounding, "device": K.device_name, "precision": K.precision}
    return SpectralCertificate(method, reason, passes, kept, off, norm, **facts)


def solve_krylov(
    problem: CentredKernel, k: int, tol: float, max_iter: int | None, seed: int, reason: str
) -> KernelComponents:
    """Components by block Krylov: iterated on tiles in float32 where that helps, projected and certified in float64."""
    if problem.has_equal_points:
        return _no_components(problem, k, reason)
    unit = _power_of_two(float(np.max(np.abs(problem.diagonal))))
    K = problem.operator(np.float64, store=problem.is_costly if problem.device is None else "auto")
    B, twins = problem.centre_features(K), _float32_twins(problem, tol)
    most = max_iter or 300
    scaled = B if unit == 1.0 else Multiple(B, 1.0 / unit)
    result = SymmetricKrylov(tol, max_products=most, seed=seed).attempt(scaled, k, reason, twin=twins)
    found = result.certificate
    # ‖K‖ ≤ tr K of inner products. Others are bounded by their stored entries, by u times their own rounding, or,
    # for a function of two objects, by the largest mean.
    size = float(np.abs(problem.diagonal) @ problem.frequencies)
    if problem.may_be_indefinite and isinstance(problem.kernel, Precomputed):
        size = float(np.linalg.norm(problem.points / unit)) * unit * float(np.max(problem.frequencies))
    elif problem.may_be_indefinite:
        mean = float(np.max(np.abs(to_numpy(B.means, float)))) if problem.centre else 0.0
        size = max(size, problem.evaluation_error / (4 * UNIT), float(problem.frequencies.sum()) * mean)
    residuals, error = found.residuals * found.norm * unit / np.sqrt(2), problem.rounding_error(size, B.epsilon)
    passes = sum(A.passes for A in (*twins, B))
    facts = {name: getattr(found, name) for name in ("orthogonality", "tolerance", "notes", "overlooked")}
    certificate = _certify(K, found.method, reason, passes, result.values * unit, residuals, error, **facts)
    certificate.warn_unless_converged(f"Raise tol, use eigen_solver='dense', or allow more than max_iter={most}.")
    smallest = 0.0
    if problem.may_be_indefinite:
        # τ less the largest of τI − B, τ the largest of B: Krylov's is never below it, so a negative one is proof
        top = max(float(result.values[0]), TINY)
        below = SymmetricKrylov(1e-5, max_products=60, seed=seed).attempt(Shifted(Multiple(scaled, -1.0), top), 1, "")
        smallest = (top - float(below.values[0])) * unit
    means = to_numpy(B.means, float) if problem.centre else np.zeros(problem.n)
    return _combine(problem, means, certificate, result.right, smallest)


def _float32_twins(problem: CentredKernel, tol: float) -> list[FeatureCentred]:
    """B in float32, where there are many products to make and centring leaves digits enough; on a GPU in two modes."""
    if problem.n <= DENSE or not 1e-30 < float(np.max(problem.diagonal)) < 1e30 or problem.is_costly:
        return []
    # what fits is kept from the first product, one triangle
    store = 2 * problem.n**2 <= memory_budget() // 2 if problem.device is None else "auto"
    twin = problem.centre_features(problem.operator(np.float32, store=store))
    left = problem.trace_left(twin)
    if left <= CANCELS:
        return []
    if problem.device is None or tol < FAST_FROM or left <= FAST_CANCELS:
        return [twin]
    fast = problem.centre_features(problem.operator(np.float32, tolerance=FAST))
    return [twin] if fast.epsilon <= twin.epsilon else [fast, twin]


def _no_components(problem: CentredKernel, k: int, reason: str) -> KernelComponents:
    """All rows are equal: any directions will do."""
    message = "All features are equal, for all rows are: there is no variance to explain."
    warnings.warn(message, NumericalWarning, stacklevel=caller_level())
    zero, means, why = np.zeros(k), np.full(problem.n, problem.diagonal[0]), f"{reason}; all rows are equal"
    certificate = SpectralCertificate("none needed", why, 1, zero, zero, 0.0, 0.0, tolerance=1e-10)
    return _combine(problem, means, certificate, np.eye(problem.n, k), 0.0)


def _combine(
    problem: CentredKernel, means: Array, certificate: SpectralCertificate, vectors: Any, smallest: float
) -> KernelComponents:
    """Coefficients α and c from eigenpairs; directions without variance get the coefficient 0."""
    values, U = certificate.values, to_numpy(vectors, float)
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    # eq: kpca-normalisation
    alpha, share = np.sqrt(problem.frequencies)[:, None] * U * inverse, problem.share
    if problem.centre:
        alpha = alpha - share[:, None] * alpha.sum(axis=0)
    offset, square = means @ alpha, float(means @ share)
    return KernelComponents(values, U, problem.points, alpha, offset, share, square, means, certificate, smallest)


def solve_nystrom(
    problem: CentredKernel, k: int, tol: float, n_landmarks: int | None, seed: int, reason: str
) -> KernelComponents:
    r"""Components of the features of landmarks chosen by randomly pivoted Cholesky.

    K̂ = FFᵀ with F = K_{:,L}F_L⁻ᵀ and F_LF_Lᵀ = K_LL. In exact arithmetic K − K̂ is positive semidefinite, so that
    0 ≤ λ_i(B) − λ_i(B̂) ≤ tr(K − K̂), centred or not. As computed, F_LF_Lᵀ = K_LL + Δ and FF_Lᵀ = K_{:,L} + Δ′, each
    entry off by at most (ν + 4)u√(k_ii k_jj) and the error of the kernel, with ν = min(m, 10√m) for m landmarks. With
    W = FF_L⁻¹, K̂ is then off by WΔWᵀ − Δ′Wᵀ − WΔ′ᵀ to first order, and what is left of the trace by as much:

    .. math:: |\hat\lambda_i-\lambda_i| \le \sum_iw_i(k_{ii}-\|f_i\|^2)
       + 2\left(\|\sqrt wW\|_F^2\|\Delta\| + 2\|\sqrt wW\|_F\|\sqrt w\Delta'\|_F\right)

    and the rounding of sums. ‖√w W‖² = tr F_L⁻ᵀ(FᵀwF)F_L⁻¹ needs no further pass over F.
    """
    if not problem.kernel.positive_semidefinite:
        nystrom, krylov = Argument("eigen_solver", "nystrom"), Argument("eigen_solver", "krylov")
        raise SourceError(
            f"{problem.kernel!r} is not positive semidefinite, which ", nystrom, " needs. Use ", krylov, "."
        )
    if problem.has_equal_points:
        return replace(_no_components(problem, k, reason), landmarks=np.arange(problem.n))
    m = min(problem.n, n_landmarks or max(LANDMARKS, 4 * k))
    if problem.device is not None:
        what = f"Nyström's factor of {problem.n} rows and {m} landmarks"
        remedy = ("Use fewer landmarks: ", ("n_landmarks", None), ".")
        refuse_beyond_device(10 * problem.n * m, problem.device, what, remedy)
    K = problem.operator(np.float64, store=False)
    diagonal, w = problem.diagonal, problem.frequencies
    if 0.0 < diagonal.max() < TINY / UNIT:
        raise ValueError(
            f"The largest k(x, x) is {diagonal.max():.3g}: the kernel underflows. Multiply the data by a large "
            "constant."
        )
    chosen = rp_cholesky(diagonal, K.columns, m, seed=seed)
    F, at = chosen.factor, to_numpy(chosen.factor[K.xp.asarray(chosen.indices)], float)
    m = len(chosen.indices)
    lengths = [to_numpy(K.xp.sum(F[i : i + STEP, :] ** 2, axis=1), float) for i in range(0, problem.n, STEP)]
    left = float(w @ np.maximum(diagonal - np.concatenate(lengths), 0.0))
    with quiet_blas():
        mean = to_numpy(K.asarray(problem.share) @ F, float) if problem.centre else np.zeros(m)
    F -= K.asarray(mean)  # in place: F is the largest thing there is
    if problem.weights is not None:
        F *= K.asarray(np.sqrt(problem.weights)[:, None])
    G = dense.scatter(F, None, F[:0])[1] if is_numpy(F) else to_numpy(F.T @ F, float)
    squares, every = eigh(G)
    values, V = np.zeros(k), np.zeros((m, k))  # of a kernel of lower rank than k, the others are 0
    values[: min(k, m)], V[:, : min(k, m)] = squares[::-1][:k], every[:, ::-1][:, :k]
    # ‖√w W‖², ‖Δ‖ and ‖√w Δ′‖
    G += float(w.sum()) * np.outer(mean, mean)
    spread = 0.0
    if m:
        half = scipy.linalg.solve_triangular(at.T, G, check_finite=False)
        spread = float(np.trace(scipy.linalg.solve_triangular(at.T, half.T, check_finite=False)))
    part, own = (_summation_units(m) + 4) * UNIT, float(diagonal[chosen.indices].sum())
    values_off = problem.error_squares if problem.device is None else 4 * K.epsilon * diagonal
    inside, whole = float(values_off[chosen.indices].sum()), float(w @ values_off)
    block, rows = part * own + inside, part * np.sqrt(own) * np.sqrt(problem.trace) + np.sqrt(inside) * np.sqrt(whole)
    error = 2 * (spread * block + 2 * np.sqrt(spread) * rows) + problem.rounding_error(problem.trace, K.epsilon)
    method = f"Nyström with {m} landmarks by randomly pivoted Cholesky"
    note = f"eigenvalues are too small by at most {left:.3g}, the trace of what the landmarks leave out, and rounding"
    facts = {"orthogonality": 0.0, "tolerance": max(tol, 1e-6), "notes": (note,)}
    certificate = _certify(K, method, reason, 1, values, np.full(k, left), error, **facts)
    values = certificate.values
    V = V * (values > 0)  # directions without variance get the coefficient 0
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    U = dense.product(F, V * inverse) if is_numpy(F) else to_numpy(F @ K.asarray(V * inverse), float)
    defect = float(np.max(np.abs(U.T @ U - np.diag(1.0 * (values > 0))), initial=0.0))
    certificate = certificate.with_(orthogonality=defect)
    # k(x, L) = F_L f(x) for the features f, so that f(x)·v = k(x, L)·F_L⁻ᵀv
    both = np.column_stack([V, mean])
    both = np.asarray(scipy.linalg.solve_triangular(at.T, both, check_finite=False)) if m else both
    certificate.warn_unless_converged(f"Use more than n_landmarks={m}, or eigen_solver='krylov'.")
    landmarks, square = take_points(problem.points, chosen.indices), float(mean @ mean)
    kept = values, U, landmarks, both[:, :-1], mean @ V, both[:, -1], square, at @ mean, certificate
    return KernelComponents(*kept, landmarks=chosen.indices)


@dataclass(frozen=True, eq=False)
class LandmarkStream:
    r"""Rows that came a batch at a time, as features of landmarks: what ``partial_fit`` keeps of them.

    A batch adds landmarks while there is room, those of its rows that are farthest from the span of the ones before;
    each row is then known by the projection φ̂ of its feature on the span so far. With the rows √w(φ − φ̂) summing to
    ``left`` in squared length, singular values move by √left at most (Weyl), so that of B

    .. math:: |\hat\lambda_i-\lambda_i|\le2\sqrt{\hat\lambda_i\,\mathrm{left}}+\mathrm{left}.

    Attributes
    ----------
    points : array of shape (m, p)
        The landmarks.
    factor : ndarray of shape (m, m)
        Lower triangular L with LLᵀ = k(Z, Z): φ̂(x) = L⁻¹k(Z, x).
    weight, mean, scatter : float, ndarray of shape (m,), (m, m)
        Σw, and the mean and Σw(φ̂ − mean)(φ̂ − mean)ᵀ of the rows so far.
    left, trace : float
        Σw‖φ − φ̂‖², and Σw k(x, x).
    batches : int
        How many there were.
    """

    points: Any
    factor: Array
    weight: float
    mean: Array
    scatter: Array
    left: float = 0.0
    trace: float = 0.0
    batches: int = 0

    @classmethod
    def empty(cls, points: Any) -> LandmarkStream:
        """No rows, of the kind of these."""
        return cls(points[:0], np.zeros((0, 0)), 0.0, np.zeros(0), np.zeros((0, 0)))

    def absorb(self, kernel: Kernel, X: Any, w: Array, most: int) -> LandmarkStream:
        """The same with a batch of rows; all of them become landmarks where there is room, else half of what is left.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.kernel_pca.solve import LandmarkStream
        >>> from gramian.kernels import Linear
        >>> X = np.random.default_rng(0).normal(size=(9, 2))
        >>> stream = LandmarkStream.empty(X)
        >>> for batch in (X[:4], X[4:]):
        ...     stream = stream.absorb(Linear(), batch, np.ones(len(batch)), 5)
        >>> len(stream.points), stream.left < 1e-12
        (2, True)
        """
        b, m = int(X.shape[0]), len(self.mean)
        own = np.asarray(kernel.diagonal(X.astype(np.float64)), dtype=np.float64)
        k = np.asarray(kernel_operator(kernel, X, self.points, dtype=np.float64, store=False).to_dense()) if m else None
        C = np.zeros((b, 0)) if k is None else scipy.linalg.solve_triangular(self.factor, k.T, lower=True).T
        d = np.maximum(own - np.sum(C**2, axis=1), 0.0)
        room = max(0, most - m)
        take, least = room if b <= room else (room + 1) // 2, SPENT * float(np.max(own, initial=0.0))
        E = np.zeros((b, min(take, b)))
        chosen: list[int] = []
        for j in range(E.shape[1]):
            i = int(np.argmax(np.where(w > 0, d, -1.0)))
            if not d[i] > least or not w[i] > 0:
                break
            one = kernel_operator(kernel, X, X[[i]], dtype=np.float64, store=False).to_dense()
            column = np.asarray(one)[:, 0] - C @ C[i] - E[:, :j] @ E[i, :j]
            E[:, j] = column / np.sqrt(d[i])
            E[chosen, j] = 0.0
            d = np.maximum(d - E[:, j] ** 2, 0.0)
            d[i] = 0.0
            chosen.append(i)
        new = len(chosen)
        phi = np.hstack([C, E[:, :new]])
        factor = np.zeros((m + new, m + new))
        factor[:m, :m], factor[m:] = self.factor, np.tril(phi[chosen], m) if new else phi[:0]
        stack = scipy.sparse.vstack if scipy.sparse.issparse(X) else np.concatenate
        points = stack([self.points, X[chosen]]) if new else self.points
        points = scipy.sparse.csr_array(points) if scipy.sparse.issparse(X) else points
        # means and scatter of the parts, merged without cancelling
        weight, before = float(w.sum()), np.append(self.mean, np.zeros(new))
        total = self.weight + weight
        mean = w @ phi / weight if weight > 0 else before
        scatter = np.zeros((m + new, m + new))
        scatter[:m, :m] = self.scatter
        scatter += (phi - mean).T @ (w[:, None] * (phi - mean))
        apart = mean - before
        if total > 0:
            scatter += self.weight * weight / total * np.outer(apart, apart)
            before = before + weight / total * apart
        left, trace = self.left + float(w @ d), self.trace + float(w @ own)
        return LandmarkStream(points, factor, total, before, scatter, left, trace, self.batches + 1)

    def solve(self, kernel: Kernel, k: int, centre: bool, tol: float) -> KernelComponents:
        """Components of the rows so far; the vectors are in the orthonormal features of the landmarks."""
        m, L = len(self.mean), self.factor
        S = self.scatter if centre else self.scatter + self.weight * np.outer(self.mean, self.mean)
        squares, every = eigh(S) if m else (np.zeros(0), np.zeros((0, 0)))
        k = min(k, m)
        values, V = np.maximum(squares[::-1][:k], 0.0), every[:, ::-1][:, :k]
        condition = 1.0
        if m:
            inverse = scipy.linalg.solve_triangular(L, np.eye(m), lower=True)
            condition = float(np.linalg.norm(L) * np.linalg.norm(inverse))
        error = 4 * (_summation_units(m) + 4) * UNIT * condition * self.trace
        K = kernel_operator(kernel, self.points, dtype=np.float64, store=False) if m else None
        method = f"{m} landmarks of {self.batches} batches, the farthest rows of each"
        note = f"eigenvalues are off by what the landmarks leave out, {self.left:.3g} of a trace of {self.trace:.3g}"
        facts = {"orthogonality": 0.0, "tolerance": max(tol, 1e-6), "notes": (note,)}
        residuals = 2 * np.sqrt(values * self.left) + self.left
        # the first i bounds are added up as roots of sums of squares, of which each is one already
        certificate = _certify(K, method, "rows came in batches", 1, values, residuals, error, **facts)
        values = certificate.values
        V = V * (values > 0)
        both = np.column_stack([V, self.mean])
        both = np.asarray(scipy.linalg.solve_triangular(L, both, lower=True, trans=1)) if m else both
        mean = self.mean if centre else np.zeros(m)
        square = float(mean @ mean)
        kept = values, V, self.points, both[:, :-1], mean @ V, both[:, -1], square, L @ mean, certificate
        return KernelComponents(*kept)
