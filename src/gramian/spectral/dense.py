"""Exact factorisations: LAPACK's SVD, blockwise QR, or the small side's Gram matrix where that is safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
from array_api_compat import is_numpy_namespace

from gramian.compute.dense import product
from gramian.compute.devices import like, refuse_beyond_device, to_numpy
from gramian.compute.factor import eigh, svd
from gramian.compute.threads import quiet_blas
from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.lanczos import iterate_eigenpairs, search_eigenpairs
from gramian.spectral.rayleigh import (
    Triplets,
    check_k,
    count_roundings,
    default_tolerance,
    finish,
    norms,
    spectrum,
)

Array = Any

STEEP = 2000.0  # σ₁/σ_k up to which the Gram matrix is safe: the residual ε σ₁/σ_k is then still at rounding level
SVD_ENTRIES = 250_000  # below this LAPACK's SVD of the matrix itself takes milliseconds
STEEP_SMALL = 200.0  # σ₁/σ_k up to which a small Gram matrix is used: variances keep eleven digits
HOST_SIDE = 512  # up to this LAPACK's SVD takes no longer than a GPU's
HOST_EIGEN = 128  # ... and its eigenvectors: of 200 columns they take 1.7 ms on an H200, 4.3 ms on its host
SEARCH_SIZE = 400  # from here on a few eigenpairs come faster from ARPACK than from LAPACK: 13 ms against 45 at 1,000
LANCZOS_SIZE = 3000  # ... and beyond this from blocks of vectors, for which a matrix is read less often
LARGE = 2**28  # bytes that are asked for before they are taken
TOLERANCE = 1e4 * 2.0**-52  # what an exact method is held to


@dataclass(frozen=True)
class Dense:
    r"""All or some singular triplets to rounding.

    ``gram`` forms AᵀA (or AAᵀ if A is wide) in one pass and takes its eigenvectors: fastest, but eigenvalues carry an
    absolute error ε‖A‖², so that the k-th has a residual of ε σ₁/σ_k and its variance a relative error of ε λ₁/λ_k.
    ``auto`` accepts it up to σ₁/σ_k = 2,000, where the smallest variance has nine right digits, and otherwise factors
    A itself: blockwise QR and the SVD of R if A is tall, LAPACK's SVD if not.

    Parameters
    ----------
    method : {"auto", "gram", "qr", "svd"}, default="auto"
        ``svd`` forms A; ``qr`` needs a tall A; ``gram`` is used whatever the spectrum.
    left : bool, default=False
        Whether to return the left vectors.
    tol : float, optional
        Residual the certificate is held to; 2e-12 in float64 and 1e-4 in float32 where not given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> from gramian.spectral import Dense
    >>> result = Dense()(Data(np.diag([1.0, 1e-10])))
    >>> result.values
    array([1.e+00, 1.e-10])
    >>> result.certificate.converged
    True
    """

    method: Literal["auto", "gram", "qr", "svd"] = "auto"
    left: bool = False
    tol: float | None = None

    def __call__(self, A: Operator, k: int | None = None, reason: str = "asked for") -> Spectrum:
        """Return the k largest triplets of A (all where k is not given)."""
        k, before = min(A.shape) if k is None else check_k(A, k), A.passes
        n, p = A.shape
        # a wide A is formed where it is a file, whose Gram matrix would take many passes, or where all of few rows are
        # asked for: centring has emptied one direction, whose square no Gram matrix would keep
        small = not A.sparse and n * p <= SVD_ENTRIES
        formed = not A.sparse and ((n < p and not A.resident) or (small and k == n))
        formed = self.method == "svd" or (self.method == "auto" and formed)
        with A.session():  # products of LAPACK and BLAS besides those of A itself: tiles are shared between threads
            overlooked = None
            if formed:
                found, method = self._svd(A, k)
            elif self.method == "qr":
                found, method = self._qr(A, k)
            else:
                found, method, more, overlooked = self._gram(A, k, small)
                reason += more
        exact = default_tolerance(A) if A.dtype == A.xp.float32 else TOLERANCE
        passes, tolerance = A.passes - before, exact if self.tol is None else self.tol
        about: dict[str, Any] = {
            "method": method,
            "reason": reason,
            "passes": passes,
            "tolerance": tolerance,
            "overlooked": overlooked,
        }
        result = spectrum(A, found, left=self.left, **about)
        result.certificate.warn_unless_converged(
            "Use svd_solver='full', scale the columns, or ask for fewer components."
        )
        return result

    def _svd(self, A: Operator, k: int) -> tuple[Triplets, str]:
        (n, p), m = A.shape, min(A.shape)
        _refuse_beyond_memory(A, 4 * n * p + 7 * m * m, f"A dense {n} × {p} matrix and its singular vectors")
        D = A.to_dense()
        # eq: pca-svd
        U, s, Vt = _lapack_svd(A.xp, D)
        U, values, V = U[:, :k], to_numpy(s[:k], float), Vt[:k, :].T
        left, right = _multiply(A.xp, D, V) - U * s[None, :k], _multiply(A.xp, D.T, U) - V * s[None, :k]
        residuals = np.hypot(norms(A.xp, left), norms(A.xp, right)) / (values[0] or 1.0)
        return Triplets(values, V, U, residuals), "dense: LAPACK SVD"

    def _gram(self, A: Operator, k: int, small: bool) -> tuple[Triplets, str, str, float | None]:
        """Eigenvectors of the smaller Gram matrix, or what is safer; why that was taken; the chance of missing some."""
        wide, m = A.shape[0] < A.shape[1], min(A.shape)
        # a few eigenvectors of a large G come from products with it
        _refuse_beyond_memory(A, (2 if 8 * k < m else 5) * m * m, f"The {m} × {m} Gram matrix and its eigenvectors")
        # eq: pca-covariance, pca-two-sides
        G = A.cogram() if wide else A.gram()
        values, W, residuals, overlooked = eigen_of_gram(A.xp, G, k, offset=A.offset)
        if self.method == "auto" and values[0] > (STEEP_SMALL if small else STEEP) * values[-1]:
            why = "; the spectrum falls too far for the Gram matrix"
            if small:
                return *self._svd(A, k), why, None
            if not wide:
                return *self._qr(A, k, eigen_of_gram(A.xp, G, A.shape[1])[1] if A.sparse else None), why, None
            if A.resident and not A.sparse:
                return *self._svd(A, k), why, None
        W = A.xp.astype(W, A.dtype)
        if wide:
            found = finish(A.T, W, k).transposed
        elif self.left:
            found = finish(A, W, k)
        else:
            found = Triplets(values, W, None, residuals)
        return found, f"dense: eigenvectors of {'AAᵀ' if wide else 'AᵀA'}", "", overlooked

    def _qr(self, A: Operator, k: int, basis: Array | None = None) -> tuple[Triplets, str]:
        """A·basis = QR block by block, R = PΣZᵀ: singular values of A to ε‖A‖, and V = basis·Z."""
        if A.shape[0] < A.shape[1]:
            raise ValueError(f"Blockwise QR needs at least as many rows as columns; A is {A.shape}. Use method='svd'.")
        if self.left:
            return self._svd(A, k)
        p = A.shape[1]
        _refuse_beyond_memory(A, 11 * p * p, f"The {p} × {p} factor R and its singular vectors")
        R = A.triangle(basis)
        P, s, Zt = _lapack_svd(A.xp, R)
        # eq: pca-singular-values
        values, Z = to_numpy(s[:k], float), Zt[:k, :].T
        defect = np.hypot(norms(A.xp, R @ Z - P[:, :k] * s[None, :k]), norms(A.xp, R.T @ P[:, :k] - Z * s[None, :k]))
        V = Z if basis is None else A.xp.astype(basis, A.dtype) @ Z
        # R carries the backward error of QR, which no product with R can show
        residuals = defect / (values[0] or 1.0) + count_roundings(*A.shape) * A.epsilon
        return Triplets(values, V, None, residuals), "dense: blockwise QR, then SVD of R"


def _multiply(xp: Any, D: Array, V: Array) -> Array:
    """D V, in NumPy by tiles."""
    return product(D, V) if is_numpy_namespace(xp) else D @ V


def _refuse_beyond_memory(A: Operator, numbers: int, what: str) -> None:
    """Refuse, before it is taken, more memory than there is: of the machine, or of the device of A."""
    if 8 * numbers >= LARGE:
        remedy = ("Ask for a few components with ", ("svd_solver", "krylov"), ", which never forms it.")
        refuse_beyond_device(8 * numbers, A.device, what, remedy)


def eigen_of_gram(xp: Any, G: Array, k: int, offset: float = 0.0) -> tuple[Any, Array, Any, float | None]:
    r"""The k largest singular values and right vectors of A from G = AᵀA, with residuals.

    ‖Aᵀu − σv‖ = ‖Gv − λv‖/σ; to it is added the error of forming G, ε(‖A‖² + offset)/σ. The last is a bound on the
    chance that a value of twice the size was overlooked, None where all were seen.
    """
    if not is_numpy_namespace(xp) and G.shape[0] <= HOST_EIGEN:
        values, W, residuals, overlooked = eigen_of_gram(np, to_numpy(G, float), k, offset)
        return values, like(G, W, G.dtype), residuals, overlooked
    lam, W, overlooked = _top_eigen(xp, G, k)
    lam = np.maximum(lam, 0.0)
    values = np.sqrt(lam)
    eps = float(xp.finfo(G.dtype).eps)
    top = float(lam[0]) if len(lam) and lam[0] > 0 else 1.0
    sigma = np.sqrt(np.maximum(lam, eps * top))
    defect = norms(xp, G @ W - W * like(G, lam, G.dtype)[None, :])
    residuals = (defect + 4 * eps * (top + offset)) / (sigma * np.sqrt(top))
    return values, W, residuals, overlooked


def _top_eigen(xp: Any, G: Array, k: int) -> tuple[Any, Array, float | None]:
    """The k largest eigenpairs of a symmetric matrix ⪰ 0, largest first, and the chance of having overlooked one."""
    m = G.shape[0]
    if is_numpy_namespace(xp) and 8 * k < m:
        if m > LANCZOS_SIZE:
            found = iterate_eigenpairs(G, k, 1e-15 * m**0.5, min(m, 1200))
            if found is not None:
                return found[0], xp.linalg.qr(found[1])[0], found[2]
        elif m > SEARCH_SIZE:
            found = search_eigenpairs(G, k, 0.0)
            if found is not None:
                return found
        # eq: pca-eigen
        lam, W = eigh(G, k)
    else:
        lam, W = eigh(G) if is_numpy_namespace(xp) else xp.linalg.eigh(G)
    return to_numpy(lam, float)[::-1][:k], xp.flip(W, axis=1)[:, :k], None


def _lapack_svd(xp: Any, D: Array) -> tuple[Array, Array, Array]:
    """Thin SVD; by divide and conquer, with gesvd where that rare failure strikes. Small ones leave a GPU for it."""
    if not is_numpy_namespace(xp):
        if min(D.shape) > HOST_SIDE:
            return tuple(xp.linalg.svd(D, full_matrices=False))
        return tuple(like(D, part, D.dtype) for part in _lapack_svd(np, to_numpy(D, float)))
    try:
        return svd(D)
    except np.linalg.LinAlgError:
        with quiet_blas():
            return tuple(scipy.linalg.svd(D, full_matrices=False, lapack_driver="gesvd"))  # type: ignore[return-value]
