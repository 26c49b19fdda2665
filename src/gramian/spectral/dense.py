"""Exact factorisations: LAPACK's SVD, blockwise QR, or the small side's Gram matrix where that is safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
from array_api_compat import is_numpy_namespace

from gramian.compute.devices import device_keyword, to_numpy
from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.lanczos import BlockLanczos
from gramian.spectral.rayleigh import (
    Triplets,
    check_k,
    default_tolerance,
    epsilon,
    finish,
    norms,
    spectrum,
)

__all__ = ["Dense", "eigen_of_gram"]

Array = Any

STEEP = 2000.0  # σ₁/σ_k up to which the Gram matrix is safe: the residual ε σ₁/σ_k is then still at rounding level
SVD_ENTRIES = 250_000  # below this LAPACK's SVD of the matrix itself takes milliseconds
HOST_SIDE = 512  # up to this LAPACK's SVD takes no longer than a card's
HOST_EIGEN = 128  # ... and its eigenvectors: of 200 columns they take 1.7 ms on an H200, 4.3 ms on its host
LANCZOS_SIZE = 3000  # beyond this a few eigenpairs come faster from Lanczos than from tridiagonalisation
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
        k = min(A.shape) if k is None else check_k(A, k)
        if self.method == "svd" or (self.method == "auto" and _better_formed(A)):
            return self._svd(A, k, reason, A.passes)
        if self.method == "qr":
            return self._qr(A, k, reason, None, A.passes)
        return self._gram(A, k, reason)

    def _svd(self, A: Operator, k: int, reason: str, before: int) -> Spectrum:
        D = A.to_dense()
        U, s, Vt = _lapack_svd(A.xp, D)
        U, values, V = U[:, :k], to_numpy(s[:k], float), Vt[:k, :].T
        left, right = D @ V - U * s[None, :k], D.T @ U - V * s[None, :k]
        residuals = np.hypot(norms(A.xp, left), norms(A.xp, right)) / (values[0] or 1.0)
        found = Triplets(values, V, U, residuals)
        return self._done(A, found, "dense: LAPACK SVD", reason, before)

    def _gram(self, A: Operator, k: int, reason: str) -> Spectrum:
        before = A.passes
        wide = A.shape[0] < A.shape[1]
        G = A.cogram() if wide else A.gram()
        values, W, residuals = eigen_of_gram(A.xp, G, k, offset=A.offset)
        safe = values[0] <= STEEP * values[-1]
        if self.method == "auto" and not safe:
            why = f"{reason}; the spectrum falls too far for the Gram matrix"
            if not wide:
                return self._qr(A, k, why, eigen_of_gram(A.xp, G, A.shape[1])[1] if A.sparse else None, before)
            if A.resident and not A.sparse:
                return self._svd(A, k, why, before)
        side, W = "AAᵀ" if wide else "AᵀA", A.xp.astype(W, A.dtype)
        found = Triplets(values, W, None, residuals)
        if wide:
            found = finish(A.T, W, k)
            found = Triplets(found.values, found.left, found.right, found.residuals)
        elif self.left:
            found = finish(A, W, k)
        return self._done(A, found, f"dense: eigenvectors of {side}", reason, before)

    def _qr(self, A: Operator, k: int, reason: str, basis: Array | None, before: int) -> Spectrum:
        """A·basis = QR block by block, R = PΣZᵀ: singular values of A to ε‖A‖, and V = basis·Z."""
        if A.shape[0] < A.shape[1]:
            raise ValueError(f"Blockwise QR needs at least as many rows as columns; A is {A.shape}. Use method='svd'.")
        R = A.triangle(basis)
        P, s, Zt = _lapack_svd(A.xp, R)
        values, Z = to_numpy(s[:k], float), Zt[:k, :].T
        defect = np.hypot(norms(A.xp, R @ Z - P[:, :k] * s[None, :k]), norms(A.xp, R.T @ P[:, :k] - Z * s[None, :k]))
        V = Z if basis is None else A.xp.astype(basis, A.dtype) @ Z
        # R carries the backward error of QR, which no product with R can show
        residuals = defect / (values[0] or 1.0) + 4 * epsilon(A)
        found = Triplets(values, V, None, residuals)
        if self.left:
            return self._svd(A, k, reason, before)
        return self._done(A, found, "dense: blockwise QR, then SVD of R", reason, before)

    def _done(self, A: Operator, found: Triplets, method: str, reason: str, before: int) -> Spectrum:
        exact = default_tolerance(A) if A.dtype == A.xp.float32 else TOLERANCE
        passes, tolerance = A.passes - before, exact if self.tol is None else self.tol
        result = spectrum(A, found, method=method, reason=reason, passes=passes, tolerance=tolerance, left=self.left)
        result.certificate.warn_unless_converged(
            "Use svd_solver='full', scale the columns, or ask for fewer components."
        )
        return result


def eigen_of_gram(xp: Any, G: Array, k: int, offset: float = 0.0) -> tuple[Any, Array, Any]:
    r"""The k largest singular values and right vectors of A from G = AᵀA, with residuals.

    ‖Aᵀu − σv‖ = ‖Gv − λv‖/σ; to it is added the error of forming G, ε(‖A‖² + offset)/σ.
    """
    if not is_numpy_namespace(xp) and G.shape[0] <= HOST_EIGEN:
        values, W, residuals = eigen_of_gram(np, to_numpy(G, float), k, offset)
        return values, _there(xp, W, G), residuals
    lam, W = _top_eigen(xp, G, k)
    lam = np.maximum(lam, 0.0)
    values = np.sqrt(lam)
    eps = float(xp.finfo(G.dtype).eps)
    top = float(lam[0]) if len(lam) and lam[0] > 0 else 1.0
    sigma = np.sqrt(np.maximum(lam, eps * top))
    defect = norms(xp, G @ W - W * xp.asarray(lam, dtype=G.dtype, **device_keyword(G))[None, :])
    residuals = (defect + 4 * eps * (top + offset)) / (sigma * np.sqrt(top))
    return values, W, residuals


def _top_eigen(xp: Any, G: Array, k: int) -> tuple[Any, Array]:
    """The k largest eigenpairs of a symmetric matrix, largest first."""
    m = G.shape[0]
    if is_numpy_namespace(xp) and 8 * k < m:
        if m > LANCZOS_SIZE:
            return _lanczos_eigen(xp, G, k)
        lam, W = scipy.linalg.eigh(G, subset_by_index=[m - k, m - 1], check_finite=False)
    else:
        lam, W = xp.linalg.eigh(G)
    return to_numpy(lam, float)[::-1][:k], xp.flip(W, axis=1)[:, :k]


def _lanczos_eigen(xp: Any, G: Array, k: int) -> tuple[Any, Array]:
    """A few eigenpairs of a large matrix in memory, to rounding; LAPACK if that is slow to come."""
    m, b = G.shape[0], -(-(k + 2) // 8) * 8
    start = np.random.default_rng(0).standard_normal((m, b))
    lanczos = BlockLanczos(lambda V: G @ V, start, xp, min(m, 1200))
    checked = 0
    while lanczos.d + b <= lanczos.limit:
        lanczos.extend(keep=k + b)
        if lanczos.d < 1.15 * checked:
            continue
        checked = lanczos.d
        theta, S, residuals = lanczos.ritz(k)
        if residuals.max() <= 1e-15 * m**0.5 * theta[0]:
            return theta, xp.linalg.qr(lanczos.vectors(S))[0]
    lam, W = scipy.linalg.eigh(G, subset_by_index=[m - k, m - 1], check_finite=False)
    return lam[::-1], W[:, ::-1]


def _lapack_svd(xp: Any, D: Array) -> tuple[Array, Array, Array]:
    """Thin SVD; NumPy's gesdd, with gesvd where that rare failure strikes. Small ones leave a card for it."""
    if not is_numpy_namespace(xp):
        if min(D.shape) > HOST_SIDE:
            return tuple(xp.linalg.svd(D, full_matrices=False))
        return tuple(_there(xp, part, D) for part in _lapack_svd(np, to_numpy(D, float)))
    try:
        return tuple(np.linalg.svd(D, full_matrices=False))  # type: ignore[return-value]
    except np.linalg.LinAlgError:
        return tuple(scipy.linalg.svd(D, full_matrices=False, lapack_driver="gesvd"))  # type: ignore[return-value]


def _there(xp: Any, x: Any, like: Array) -> Array:
    """A NumPy array as one of the namespace, dtype and device of another."""
    return xp.asarray(np.array(x, order="C"), dtype=like.dtype, **device_keyword(like))


def _better_formed(A: Operator) -> bool:
    """Whether to form A itself: it is small, or it is a wide file, whose Gram matrix would take many passes."""
    n, p = A.shape
    return not A.sparse and (n * p <= SVD_ENTRIES or (n < p and not A.resident))
