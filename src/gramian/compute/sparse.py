r"""The hot loops for scipy.sparse CSR matrices, never made dense: one share of rows per thread.

Same names as :mod:`gramian.compute.cpu`, without an origin: a displaced sparse matrix is not sparse, so
centring is left to a rank-one correction of the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.compute.threads import n_threads, parallel

__all__ = ["adjoint", "conormal", "normal", "product", "scatter", "spread"]

Array = npt.NDArray[Any]
Sparse = Any


def _rows(X: Sparse, part: slice, unit: float) -> Sparse:
    """Rows ``part`` of X as a matrix that shares X's memory (slicing would copy)."""
    lo, hi = int(X.indptr[part.start]), int(X.indptr[part.stop])
    data = X.data[lo:hi] if unit == 1.0 else X.data[lo:hi] * unit
    shape = (part.stop - part.start, X.shape[1])
    return sp.csr_array((data, X.indices[lo:hi], X.indptr[part.start : part.stop + 1] - lo), shape, copy=False)


def _shares(X: Sparse) -> list[slice]:
    """One run of rows per thread, with equal numbers of stored values."""
    goals = np.linspace(0, X.nnz, n_threads() + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(X.indptr, goals), [X.shape[0]]]))
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)]


def product(X: Sparse, V: Array, origin: None = None, unit: float = 1.0) -> Array:
    """X V."""
    V = np.ascontiguousarray(V)
    parts = _shares(X)
    done = parallel(lambda share: [_rows(X, part, unit) @ V for part in share], parts)
    # parallel deals the shares out in turn; with one share per thread that is already their order
    return np.concatenate([Y for ys in done for Y in ys], axis=0).astype(V.dtype, copy=False)


def adjoint(X: Sparse, U: Array, origin: None = None, unit: float = 1.0) -> Array:
    """Xᵀ U."""
    U = np.ascontiguousarray(U)

    def work(share: Sequence[slice]) -> list[Array]:
        return [_rows(X, part, unit).T @ U[part] for part in share]

    return _sum(parallel(work, _shares(X)), (X.shape[1], U.shape[1]), U.dtype)


def normal(X: Sparse, V: Array, w: Array | None = None, origin: None = None, unit: float = 1.0) -> Array:
    """Xᵀ diag(w) X V."""
    V = np.ascontiguousarray(V)

    def work(share: Sequence[slice]) -> list[Array]:
        out = []
        for part in share:
            rows = _rows(X, part, unit)
            Y = rows @ V
            out.append(rows.T @ (Y if w is None else w[part, None] * Y))
        return out

    return _sum(parallel(work, _shares(X)), V.shape, V.dtype)


def conormal(X: Sparse, U: Array, w: Array | None = None, origin: None = None, unit: float = 1.0) -> Array:
    """X diag(w) Xᵀ U."""
    Y = adjoint(X, U, unit=unit)
    return product(X, Y if w is None else w[:, None] * Y, unit=unit)


def scatter(X: Sparse, w: Array | None, like: Array, origin: None = None, unit: float = 1.0) -> tuple[Array, Array]:
    """Σ w x and Σ w x xᵀ as a dense vector and a dense p×p matrix."""
    rows = _rows(X, slice(0, X.shape[0]), unit).astype(like.dtype)
    w = np.ones(X.shape[0], like.dtype) if w is None else w
    weighted = sp.diags_array(w) @ rows
    return rows.T @ w, (rows.T @ weighted).toarray()


def spread(X: Sparse, w: Array | None, like: Array, origin: None = None, unit: float = 1.0) -> tuple[Array, Array]:
    r"""Σ w x and Σ w (x − m)² by column, m the weighted mean, zeros included.

    Summed as Σ_stored w (x − m)² + (ω − ω_stored) m², which does not cancel.
    """
    p = X.shape[1]
    w = np.ones(X.shape[0], like.dtype) if w is None else w
    x = X.data.astype(like.dtype) * unit
    each = np.repeat(w, np.diff(X.indptr))
    s = np.bincount(X.indices, weights=each * x, minlength=p)
    stored = np.bincount(X.indices, weights=each, minlength=p)
    m = s / w.sum()
    q = np.bincount(X.indices, weights=each * (x - m[X.indices]) ** 2, minlength=p)
    return s, q + np.maximum(w.sum() - stored, 0) * m**2


def _sum(parts: list[list[Array]], shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    out = np.zeros(shape, dtype)
    for part in parts:
        for Z in part:
            out += Z
    return out
