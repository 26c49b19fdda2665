r"""The hot loops for scipy.sparse CSR matrices, never made dense: one share of rows per thread.

Same names as :mod:`gramian.compute.dense`, without an origin: a displaced sparse matrix is not sparse, so
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

Array = npt.NDArray[Any]
Sparse = Any


def _rows(X: Sparse, part: slice, unit: float) -> Sparse:
    """Rows ``part`` of X as a matrix that shares X's memory (slicing would copy)."""
    lo, hi = int(X.indptr[part.start]), int(X.indptr[part.stop])
    rows = sp.csr_array((part.stop - part.start, X.shape[1]), dtype=X.dtype)
    # set one by one: the constructor copies arrays that are views of larger ones
    # in float64, as the unit of tiny float32 numbers is beyond their range
    rows.data = X.data[lo:hi] if unit == 1.0 else X.data[lo:hi].astype(np.float64) * unit
    rows.indices, rows.indptr = X.indices[lo:hi], X.indptr[part.start : part.stop + 1] - lo
    return rows


def _transpose(rows: Sparse) -> Sparse:
    """The transposed matrix in the same memory; ``rows.T`` would copy views once more."""
    columns = sp.csc_array(rows.shape[::-1], dtype=rows.dtype)
    columns.data, columns.indices, columns.indptr = rows.data, rows.indices, rows.indptr
    return columns


def _shares(X: Sparse, pieces: int = 1) -> list[slice]:
    """Runs of rows with equal numbers of stored values, one or more per thread."""
    goals = np.linspace(0, X.nnz, pieces * n_threads() + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(X.indptr, goals), [X.shape[0]]]))
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)]


def product(X: Sparse, V: Array, origin: None = None, unit: float = 1.0) -> Array:
    """X V."""
    V = np.ascontiguousarray(V)
    out = np.empty((X.shape[0], V.shape[1]), V.dtype)

    def work(share: Sequence[slice]) -> None:
        for part in share:
            out[part] = _rows(X, part, unit) @ V

    parallel(work, _shares(X))
    return out


def adjoint(X: Sparse, U: Array, origin: None = None, unit: float = 1.0) -> Array:
    """Xᵀ U."""
    U = np.ascontiguousarray(U)

    def work(share: Sequence[slice]) -> list[Array]:
        return [_transpose(_rows(X, part, unit)) @ U[part] for part in share]

    return _sum(parallel(work, _shares(X)), (X.shape[1], U.shape[1]), U.dtype)


def normal(X: Sparse, V: Array, w: Array | None = None, origin: None = None, unit: float = 1.0) -> Array:
    """Xᵀ diag(w) X V."""
    V = np.ascontiguousarray(V)

    def work(share: Sequence[slice]) -> list[Array]:
        out = []
        for part in share:
            rows = _rows(X, part, unit)
            Y = rows @ V
            out.append(_transpose(rows) @ (Y if w is None else w[part, None] * Y))
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

    Summed as Σ_stored w (x − m)² + (ω − ω_stored) m², which does not cancel. The deviations are summed too: what they
    say that m was off by corrects Σ w x, so that the mean is right to rounding however many rows there are.
    """
    weights = np.ones(X.shape[0], like.dtype) if w is None else w
    s, total = adjoint(X, weights[:, None].astype(like.dtype), unit=unit)[:, 0], weights.sum()
    m = s / total

    def work(share: Sequence[slice]) -> list[Array]:
        return [_deviations(_rows(X, part, unit), weights[part], m) for part in share]

    with np.errstate(over="ignore", invalid="ignore"):
        pieces = 1 + X.nnz // (n_threads() * 2**18)  # small enough for the temporary arrays to stay in cache
        stored, q, d = _sum(parallel(work, _shares(X, pieces)), (3, X.shape[1]), like.dtype)
        zeros = np.maximum(total - stored, 0)
        off = d - zeros * m
        return s + off, np.maximum(q + zeros * m**2 - off**2 / total, 0)


def _deviations(rows: Sparse, w: Array, m: Array) -> Array:
    """Σ w, Σ w (x − m)² and Σ w (x − m) over the stored values of each column."""
    columns = _transpose(rows)
    columns.data = np.ones(rows.nnz, m.dtype)
    stored = columns @ w
    with np.errstate(over="ignore", invalid="ignore"):
        d = rows.data - np.take(m, rows.indices)
        columns.data = d * d
        squares = columns @ w
        columns.data = d
        return np.stack([stored, squares, columns @ w])


def _sum(parts: list[list[Array]], shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    out = np.zeros(shape, dtype)
    for part in parts:
        for Z in part:
            out += Z
    return out
