"""What every spectral solver shares: orthonormal bases, the last Rayleigh–Ritz step, the certificate, signs."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace, device

from gramian.compute.devices import to_numpy
from gramian.compute.factor import eigh
from gramian.compute.threads import quiet_blas
from gramian.operators.base import Operator
from gramian.results import SpectralCertificate, Spectrum

Array = Any
Vector = npt.NDArray[np.float64]

SUMMED = 2**18  # terms of a sum within one block, at most
FRESH = 2  # start vectors that are drawn after the first product, from its own digits
TIE = 1e-5  # entries this close to the largest count as equally large


def default_tolerance(A: Operator) -> float:
    """1e-4 in float32, 1e-6 in float64."""
    return 1e-4 if A.dtype == A.xp.float32 else 1e-6


def check_k(A: Operator, k: int) -> int:
    """Return k, the number of triplets asked for, or say why there are not so many."""
    if not 1 <= k <= min(A.shape):
        raise ValueError(f"k={k}: an operator of shape {A.shape} has between 1 and {min(A.shape)} singular triplets.")
    return k


def count_roundings(n: int, p: int) -> float:
    r"""How many units of rounding the products of an n×p matrix may be off by, relative to its norm: 4 + (r_n + r_p)/2.

    A sum of m terms is off by at most m/2 units, and by more than a small multiple of √m/2 with a probability that
    falls like a normal tail (Higham and Mary, SIAM J. Sci. Comput. 41, 2019): r_m = √m is what is taken. Sums are made
    in blocks of at most t = 2¹⁸ terms, and m/t of them are added: r_m = √t + √(m/t) beyond.

    Examples
    --------
    >>> from gramian.spectral.rayleigh import count_roundings
    >>> count_roundings(100, 16)
    11.0
    """
    sides = (math.sqrt(m) if m <= SUMMED else math.sqrt(SUMMED) + math.sqrt(m / SUMMED) for m in (n, p))
    return 4 + sum(sides) / 2


def random_block(A: Operator, rows: int, columns: int, seed: int) -> Array:
    """Gaussian start vectors: the same bits for the same seed on every device."""
    return A.asarray(np.random.default_rng(seed).standard_normal((rows, columns)))


def seed_from_product(product: Array, seed: int) -> list[int]:
    """Seed of directions that nobody knows before the data are multiplied: a hash of the first column of a product.

    Vectors that are drawn from a seed alone are public, and data can be made that hide a component from them: no
    product with such vectors shows it, and no residual. The product with a vector depends on every number of the data,
    and a hash of all its bits on every bit. Products on a device, whose last bits may differ between runs, are known by
    three digits of their lengths.
    """
    if isinstance(product, np.ndarray):
        known = np.ascontiguousarray(product[:, 0]).tobytes()
    else:
        known = " ".join(f"{length:.2e}" for length in norms(array_namespace(product), product)).encode()
    return [seed, *np.frombuffer(hashlib.blake2b(known, digest_size=16).digest(), dtype="<u4").tolist()]


def chance_of_overlooking(m: int, steps: int, vectors: int, share: float, *, krylov: bool = True) -> float:
    r"""Bound on the probability that an eigenvalue λ of an m×m matrix ⪰ 0 was overlooked: all found are below (1−ε)λ.

    Of one random start, Gaussian and independent of the matrix, by Kuczyński and Woźniakowski (SIAM J. Matrix Anal.
    Appl. 13, 1992, theorems 4.1 and 4.2):

    .. math:: 1.648\,\sqrt m\,e^{-\sqrt\varepsilon(2j-1)}\ \text{(Krylov space of dimension j)},\qquad
        0.824\,\sqrt m\,(1-\varepsilon)^{j-1/2}\ \text{(j steps of the power method)}

    A block of several independent starts overlooks λ only if each of them does: the probabilities multiply. Other
    eigenvalues, found before, are no obstacle: the same holds for what is orthogonal to their vectors.

    Parameters
    ----------
    m : int
        Size of the matrix.
    steps : int
        j.
    vectors : int
        Independent random starts.
    share : float
        ε.
    krylov : bool, default=True
        Whether the space of all products was searched, or the last product alone.

    Examples
    --------
    >>> from gramian.spectral.rayleigh import chance_of_overlooking
    >>> chance_of_overlooking(10_000, 20, 2, 0.75) < 1e-24
    True
    """
    if steps < 1 or vectors < 1:
        return 1.0
    decay = -math.sqrt(share) * (2 * steps - 1) if krylov else math.log1p(-share) * (steps - 0.5)
    return min(1.0, (1.648 if krylov else 0.824) * math.sqrt(m) * math.exp(decay)) ** vectors


def thin_qr(xp: Any, Y: Array) -> tuple[Array, Array]:
    """Y = QR for a tall Y of few columns: Cholesky of YᵀY, twice, which is all large products; LAPACK if Y is not tame.

    Twice makes Q orthonormal to rounding while the condition number is below 1e7 (Yamamoto, Nakatsukasa, Yanagisawa and
    Fukaya 2015); it is used up to about 1e4, and 55 in float32.
    """
    Q, R, tame = Y, None, float(xp.finfo(Y.dtype).eps) ** 0.25
    for _ in range(2):
        try:
            step = xp.linalg.cholesky(Q.T @ Q).T
        except (np.linalg.LinAlgError, RuntimeError):  # not positive definite, in NumPy's words and in torch's
            return tuple(xp.linalg.qr(Y))
        pivots = np.abs(np.diag(to_numpy(step, float)))
        if not pivots.min(initial=np.inf) > tame * pivots.max(initial=0.0):
            return tuple(xp.linalg.qr(Y))
        Q, R = Q @ xp.linalg.inv(step), step if R is None else step @ R
    return Q, R


def largest_eigenpairs(M: npt.NDArray[Any], k: int) -> tuple[Vector, Vector]:
    """The k largest eigenvalues of a symmetric matrix in memory, descending, and their vectors.

    LAPACK's search for a part of a spectrum fails, or finds less than was asked for, where that is one large cluster;
    then the whole is decomposed.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.spectral.rayleigh import largest_eigenpairs
    >>> largest_eigenpairs(np.diag([1.0, 3.0, 2.0]), 2)[0]
    array([3., 2.])
    """
    n = len(M)
    k = min(k, n)
    values = np.empty(0)
    try:
        values, vectors = eigh(M, k)
    except np.linalg.LinAlgError:
        vectors = np.empty((n, 0))
    if vectors.shape[1] < k:
        with quiet_blas():
            values, vectors = scipy.linalg.eigh(M, driver="ev", check_finite=False)
    # eq: pca-further
    return values[::-1][:k].copy(), np.ascontiguousarray(vectors[:, ::-1][:, :k])


def norms(xp: Any, Y: Array) -> npt.NDArray[np.float64]:
    """Lengths of the columns."""
    return to_numpy(xp.linalg.vector_norm(Y, axis=0), float)


@dataclass(frozen=True, eq=False)
class Triplets:
    """Unfinished result: singular values, both sets of vectors, residuals relative to the largest value."""

    values: Vector
    right: Array
    left: Array
    residuals: Vector

    @property
    def transposed(self) -> Triplets:
        """Those of Aᵀ: left and right vectors exchanged."""
        return Triplets(self.values, self.left, self.right, self.residuals)


def finish(A: Operator, V: Array, k: int) -> Triplets:
    r"""Best triplets from span(V), with their residuals: two products.

    AV = QR and R = PΣZᵀ give U = QP, V ← VZ. Then Av = σu to rounding and the residual is ‖Aᵀu − σv‖. Working with
    AV rather than with VᵀAᵀAV keeps singular values to an absolute error of ε‖A‖.
    """
    xp = A.xp
    Y = A.matmat(V)
    Q, R = thin_qr(xp, Y)
    # eq: pca-rayleigh
    P, s, Zt = xp.linalg.svd(R, full_matrices=False)
    U, V, values = Q @ P[:, :k], V @ Zt.T[:, :k], to_numpy(s[:k], float)
    R1, R2 = Y @ Zt.T[:, :k] - U * s[None, :k], A.rmatmat(U) - V * s[None, :k]
    norm = values[0] if len(values) and values[0] > 0 else 1.0
    return Triplets(values, V, U, np.hypot(norms(xp, R1), norms(xp, R2)) / norm)


def orthogonality(xp: Any, V: Array) -> float:
    """Largest entry of |VᵀV − I|."""
    defect = to_numpy(V.T @ V, float) - np.eye(V.shape[1])
    return float(np.max(np.abs(defect), initial=0.0))


def spectrum(
    A: Operator,
    found: Triplets,
    *,
    method: str,
    reason: str,
    passes: int,
    tolerance: float,
    left: bool = False,
    notes: tuple[str, ...] = (),
    overlooked: float | None = None,
) -> Spectrum:
    """Put the certificate on a result."""
    # sums round by more than their terms; and products of numbers larger than A's own (a mean subtracted afterwards)
    # by as much more, which may be all that is left of A
    unit = 4 * A.epsilon + (count_roundings(*A.shape) - 4) * float(A.xp.finfo(A.dtype).eps)
    found_norm = float(found.values[0]) if len(found.values) else 0.0
    # of values of 0 residuals are not relative: where they are not 0 as well, ‖A‖ is at least as large
    size = found_norm or float(np.max(found.residuals, initial=0.0))
    norm = max(size, math.sqrt(unit) * math.sqrt(A.offset))
    rounding = unit * (1.0 + ((math.sqrt(A.offset) / norm) ** 2 if norm > 0 else 0.0))
    certificate = SpectralCertificate(
        method=method,
        reason=reason,
        passes=passes,
        values=found.values,
        residuals=found.residuals * ((found_norm or 1.0) / (norm or 1.0)),
        norm=norm,
        orthogonality=orthogonality(A.xp, found.right),
        tolerance=tolerance,
        rounding=rounding,
        device=A.device_name,
        precision=A.precision,
        notes=notes,
        overlooked=overlooked,
    )
    return Spectrum(found.values, found.right, found.left if left else None, certificate)


def fix_signs(xp: Any, V: Array) -> Array:
    """Turn each column of V so that its entry largest in size is positive; the first one if several tie.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.spectral.rayleigh import fix_signs
    >>> fix_signs(np, np.array([[0.6], [-0.8]])).ravel()
    array([-0.6,  0.8])
    """
    if V.shape[1] == 0:
        return V
    if isinstance(V, np.ndarray):
        sizes = np.abs(V)
        largest = (sizes >= (1 - TIE) * sizes.max(axis=0)).argmax(axis=0)
        turned = V[largest, np.arange(V.shape[1])] < 0
        return np.where(turned, -V, V)
    size = xp.abs(V)
    top = xp.max(size, axis=0)
    first = xp.argmax(xp.astype(size >= (1 - TIE) * top[None, :], xp.int8), axis=0)
    chosen = V[first, xp.arange(V.shape[1], device=device(V))]
    return xp.where(chosen[None, :] < 0, -V, V)
