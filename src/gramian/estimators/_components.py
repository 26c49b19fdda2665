"""How many components, and which way they point."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

__all__ = ["complete", "enough_for_fraction", "fix_signs", "minka", "requested"]

Array = Any
Vector = npt.NDArray[np.float64]

BLOCK = 64  # unit vectors made orthogonal at a time
APART = 1e-3  # a unit vector nearer than this to the span of the others is passed over
TIE = 1e-5  # entries this close to the largest count as equally large


def requested(n_components: Any, limit: int, solver: str) -> int | None:
    """Return the number of components asked for, or None where the whole spectrum decides."""
    if n_components is None:
        return max(1, limit - 1) if solver == "arpack" else limit  # as scikit-learn's arpack, which cannot find all
    if isinstance(n_components, str):
        return None
    if isinstance(n_components, (float, np.floating)) and 0 < n_components < 1:
        return None
    if isinstance(n_components, bool) or not isinstance(n_components, Integral) or not 0 <= int(n_components) <= limit:
        raise ValueError(
            f"n_components={n_components!r} must be between 0 and min(n_samples, n_features)={limit} with "
            f"svd_solver={solver!r}, or a fraction of the variance between 0 and 1, or 'mle'."
        )
    return int(n_components)


def enough_for_fraction(ratios: Vector, fraction: float) -> int:
    """Smallest number of components whose variance exceeds the fraction asked, as scikit-learn counts it."""
    return int(np.searchsorted(np.cumsum(ratios), fraction, side="right")) + 1


def minka(spectrum: Vector, n: float, p: int) -> int:
    r"""Minka's estimate of the dimension: the k that maximises the evidence of probabilistic PCA.

    .. math::
        \ln p(D|k) = \ln p(U) - \tfrac n2\sum_{i\le k}\ln\lambda_i - \tfrac{n(p-k)}2\ln\hat v
            + \tfrac{m+k}2\ln 2\pi - \tfrac12\ln|A_Z| - \tfrac k2\ln n

    with v̂ the mean of the p − k eigenvalues left over. Eigenvalues beyond the rank count as zeros, so n may be
    smaller than p. (T. Minka, Automatic choice of dimensionality for PCA, 2000.)

    Parameters
    ----------
    spectrum : ndarray
        Eigenvalues, descending; those not given are 0.
    n, p : float, int
        Rows and columns.

    Examples
    --------
    >>> from gramian.estimators._components import minka
    >>> import numpy as np
    >>> minka(np.array([9.0, 7.0, 1.01, 1.0, 0.99]), 1000, 5)
    2
    """
    lam = spectrum[spectrum > max(p, 2) * np.finfo(float).eps * spectrum[0]]
    last = min(len(lam), p - 1)
    if last < 1:
        return 1
    evidence = [_evidence(lam, k, n, p) for k in range(1, last + 1)]
    return int(np.argmax(evidence)) + 1


def _evidence(lam: Vector, k: int, n: float, p: int) -> float:
    """Minka's equation (30) in Laplace's approximation, for k components."""
    v = float(lam[k:].sum()) / (p - k)
    if v <= 0:
        return -math.inf
    i = np.arange(1, k + 1)
    uniform = -k * math.log(2.0) + float(np.sum(gammaln((p - i + 1) / 2) - math.log(math.pi) * (p - i + 1) / 2))
    fit = -n / 2 * float(np.log(lam[:k]).sum()) - n * (p - k) / 2 * math.log(v)
    free = p * k - k * (k + 1) / 2
    volume = math.log(2 * math.pi) * (free + k) / 2
    return uniform + fit + volume - _log_hessian(lam, k, n, p, v) / 2 - k * math.log(n) / 2


def _log_hessian(lam: Vector, k: int, n: float, p: int, v: float) -> float:
    """ln|A_Z| = Σ_{i≤k} Σ_{j>i} ln (1/λ̂_j − 1/λ̂_i)(λ_i − λ_j) n, ties floored at rounding."""
    total = 0.0
    smooth = np.concatenate([lam[:k], np.full(len(lam) - k, v)])
    for i in range(k):
        gaps = np.maximum(lam[i] - lam[i + 1 :], np.finfo(float).eps * lam[i])
        inverse = np.maximum(1 / smooth[i + 1 :] - 1 / lam[i], np.finfo(float).eps / lam[i])
        total += float(np.sum(np.log(gaps) + np.log(inverse) + math.log(n)))
        zeros = p - len(lam)
        if zeros:
            lost = max(1 / v - 1 / lam[i], np.finfo(float).eps / lam[i])
            total += zeros * (math.log(lam[i]) + math.log(lost) + math.log(n))
    return total


def complete(xp: Any, V: Array, k: int) -> Array:
    """V with further orthonormal columns, k in all: e₁, e₂, … made orthogonal to what is there.

    They depend on the span of V alone, so that equal data give equal directions even where these are arbitrary.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._components import complete
    >>> complete(np, np.array([[1.0], [0.0], [0.0]]), 2)[:, 1].round().tolist() == [0, 1, 0]
    True
    """
    p, filled, j = V.shape[0], V.shape[1], 0
    out = xp.concat([V, xp.zeros((p, k - filled), dtype=V.dtype)], axis=1)
    while filled < k:
        width = min(BLOCK, k - filled, p - j)
        E = xp.eye(p, width, k=-j, dtype=V.dtype)
        for _ in range(2):
            E = E - out[:, :filled] @ (out[:, :filled].T @ E)
        Q, R = xp.linalg.qr(E)
        pivots = xp.linalg.diagonal(R)
        Q = xp.where(pivots < 0, -Q, Q)
        far = np.abs(np.asarray(pivots)) > APART
        width = width if far.all() else 1  # near the span somewhere: one at a time from here
        if far[0]:
            out[:, filled : filled + width] = Q[:, :width]
            filled += width
        j += width
    return out


def fix_signs(xp: Any, V: Array) -> Array:
    """Turn each column of V so that its entry largest in size is positive; the first one if several tie.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._components import fix_signs
    >>> fix_signs(np, np.array([[0.6], [-0.8]])).ravel()
    array([-0.6,  0.8])
    """
    if V.shape[1] == 0:
        return V
    size = xp.abs(V)
    top = xp.max(size, axis=0)
    first = xp.argmax(xp.astype(size >= (1 - TIE) * top[None, :], xp.int8), axis=0)
    chosen = xp.take_along_axis(V, first[None, :], axis=0)
    return xp.where(chosen < 0, -V, V)
