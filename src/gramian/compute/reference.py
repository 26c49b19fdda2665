r"""The hot loops in plain array-API code: the oracle, and the implementation for arrays other than NumPy's.

Everywhere D = unit·X − origin, with ``origin`` a row (1, p), a column (n, 1) or None for 0. Subtracting an
origin near the mean before multiplying is what keeps the variance of data whose mean is 1e8.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace, device

Array = Any


def displace(X: Array, like: Array, origin: Array | None, unit: float) -> Array:
    """D = unit·X − origin in the dtype of ``like``."""
    xp = array_namespace(like)
    D = xp.astype(X, like.dtype, copy=False)
    D = D if unit == 1.0 else D * unit
    return D if origin is None else D - origin


def product(X: Array, V: Array, origin: Array | None = None, unit: float = 1.0) -> Array:
    """D V."""
    return displace(X, V, origin, unit) @ V


def adjoint(X: Array, U: Array, origin: Array | None = None, unit: float = 1.0) -> Array:
    """Dᵀ U."""
    return displace(X, U, origin, unit).T @ U


def normal(X: Array, V: Array, w: Array | None = None, origin: Array | None = None, unit: float = 1.0) -> Array:
    """Dᵀ diag(w) D V."""
    D = displace(X, V, origin, unit)
    Y = D @ V
    return D.T @ (Y if w is None else w[:, None] * Y)


def conormal(X: Array, U: Array, w: Array | None = None, origin: Array | None = None, unit: float = 1.0) -> Array:
    """D diag(w) Dᵀ U."""
    D = displace(X, U, origin, unit)
    Y = D.T @ U
    return D @ (Y if w is None else w[:, None] * Y)


def scatter(
    X: Array, w: Array | None, like: Array, origin: Array | None = None, unit: float = 1.0
) -> tuple[Array, Array]:
    """Σ w d and Σ w d dᵀ over the rows d of D, in the dtype of ``like``."""
    D = displace(X, like, origin, unit)
    WD = D if w is None else w[:, None] * D
    return array_namespace(like).sum(WD, axis=0), WD.T @ D


def triangle(X: Array) -> Array:
    """R of X = QR."""
    return array_namespace(X).linalg.qr(X)[1]


def spread(
    X: Array, w: Array | None, like: Array, origin: Array | None = None, unit: float = 1.0
) -> tuple[Array, Array]:
    """Σ w d and Σ w d² by column, in the dtype of ``like``."""
    xp = array_namespace(like)
    D = displace(X, like, origin, unit)
    w = xp.ones(D.shape[0], dtype=like.dtype, device=device(like)) if w is None else w
    return w @ D, w @ D**2
