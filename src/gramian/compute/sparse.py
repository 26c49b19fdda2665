r"""The hot loops for scipy.sparse CSR matrices, never made dense: one share of rows per thread.

Same names as :mod:`gramian.compute.dense`, without an origin: a displaced sparse matrix is not sparse, so
centring is left to a rank-one correction of the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

# the products that ``A @ V`` calls: making the matrix of a run of rows takes longer than multiplying it
from scipy.sparse import _sparsetools

from gramian.compute.threads import SHARES, add_to, parallel, parallel_sum

Array = npt.NDArray[Any]
Sparse = Any
_loops: Any = _sparsetools
Rows = tuple[tuple[int, int], Array, Array, Array]

LEAST = 2**16  # stored values that one thread multiplies as fast as several
RUN = 2**15  # stored values of a run of rows
LONGER = 8  # times the columns that a run of rows has stored values


def _rows(X: Sparse, part: slice, unit: float) -> Sparse:
    """Rows ``part`` of X as a matrix that shares X's memory (slicing would copy)."""
    lo, hi = int(X.indptr[part.start]), int(X.indptr[part.stop])
    if unit == 1.0 and part.stop - part.start == X.shape[0] and lo == 0 and hi == len(X.data):
        return X
    rows = sp.csr_array((part.stop - part.start, X.shape[1]), dtype=X.dtype)
    # set one by one: the constructor copies arrays that are views of larger ones
    # in float64, as the unit of tiny float32 numbers is beyond their range
    rows.data = X.data[lo:hi] if unit == 1.0 else X.data[lo:hi].astype(np.float64) * unit
    rows.indices, rows.indptr = X.indices[lo:hi], X.indptr[part.start : part.stop + 1] - lo
    return rows


def _stored_rows(X: Sparse, w: Array | None) -> tuple[Sparse, Array | None]:
    """The rows that hold a value, one at least, where most hold none, in the same memory, and their weights."""
    n = X.shape[0]
    if 2 * X.nnz > n or n < 2:
        return X, w
    holding = np.flatnonzero(X.indptr[1:] != X.indptr[:-1]) if X.nnz else np.zeros(1, int)
    rows = sp.csr_array((len(holding), X.shape[1]), dtype=X.dtype)
    rows.data, rows.indices = X.data, X.indices
    rows.indptr = np.concatenate([X.indptr[:1], X.indptr[1:][holding]])
    return rows, None if w is None else w[holding]


def _transpose(rows: Sparse) -> Sparse:
    """The transposed matrix in the same memory; ``rows.T`` would copy views once more."""
    columns = sp.csc_array(rows.shape[::-1], dtype=rows.dtype)
    columns.data, columns.indices, columns.indptr = rows.data, rows.indices, rows.indptr
    return columns


def _shares(X: Sparse, pieces: int = 1) -> list[slice]:
    """Runs of rows with about equal numbers of stored values: as many whatever the number of threads.

    Two at least, and more where a sum, as long as X is wide, is short beside what is added to it.
    """
    runs = max(2, min(SHARES, X.nnz // RUN, X.nnz // (LONGER * X.shape[1]))) if X.nnz > LEAST else 1
    goals = np.linspace(0, X.nnz, pieces * runs + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(X.indptr, goals), [X.shape[0]]]))
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)]


def _add_product(rows: Rows, V: Array, out: Array) -> None:
    """out ← out + rows·V, of contiguous arrays of one dtype."""
    shape, *stored = rows
    _loops.csr_matvecs(*shape, V.shape[1], *stored, V.ravel(), out.ravel())


def _add_adjoint(rows: Rows, U: Array, out: Array) -> None:
    """out ← out + rowsᵀ·U."""
    shape, *stored = rows
    _loops.csc_matvecs(*shape[::-1], U.shape[1], *stored, U.ravel(), out.ravel())


def _parts(X: Sparse, part: slice, unit: float, dtype: Any) -> Rows:
    """Shape, places, columns and values of some rows of X, in the same memory where the dtype is the one asked for."""
    lo, hi = int(X.indptr[part.start]), int(X.indptr[part.stop])
    values = X.data[lo:hi]
    # in float64, as the unit of tiny float32 numbers is beyond their range
    values = (values if unit == 1.0 else values.astype(np.float64) * unit).astype(dtype, copy=False)
    return (part.stop - part.start, X.shape[1]), X.indptr[part.start : part.stop + 1] - lo, X.indices[lo:hi], values


def product(X: Sparse, V: Array, origin: None = None, unit: float = 1.0) -> Array:
    """X V."""
    V = np.ascontiguousarray(V)
    out = np.zeros((X.shape[0], V.shape[1]), V.dtype)

    def work(share: Sequence[slice]) -> None:
        for part in share:
            _add_product(_parts(X, part, unit, V.dtype), V, out[part])

    parallel(work, _shares(X))
    return out


def adjoint(X: Sparse, U: Array, origin: None = None, unit: float = 1.0) -> Array:
    """Xᵀ U."""
    U = np.ascontiguousarray(U)

    def work(share: Sequence[slice]) -> Array:
        total = np.zeros((X.shape[1], U.shape[1]), U.dtype)
        for part in share:
            _add_adjoint(_parts(X, part, unit, U.dtype), U[part], total)
        return total

    return parallel_sum(work, _shares(X), add_to)


def normal(X: Sparse, V: Array, w: Array | None = None, origin: None = None, unit: float = 1.0) -> Array:
    """Xᵀ diag(w) X V."""
    V = np.ascontiguousarray(V)

    def work(share: Sequence[slice]) -> Array:
        total = np.zeros(V.shape, V.dtype)
        for part in share:
            rows = _parts(X, part, unit, V.dtype)
            Y = np.zeros((part.stop - part.start, V.shape[1]), V.dtype)
            _add_product(rows, V, Y)
            _add_adjoint(rows, Y if w is None else (w[part, None] * Y).astype(V.dtype, copy=False), total)
        return total

    return parallel_sum(work, _shares(X), add_to)


def conormal(X: Sparse, U: Array, w: Array | None = None, origin: None = None, unit: float = 1.0) -> Array:
    """X diag(w) Xᵀ U."""
    Y = adjoint(X, U, unit=unit)
    return product(X, Y if w is None else w[:, None] * Y, unit=unit)


def scatter(X: Sparse, w: Array | None, like: Array, origin: None = None, unit: float = 1.0) -> tuple[Array, Array]:
    """Σ w x and Σ w x xᵀ as a dense vector and a dense p×p matrix."""
    X, w = _stored_rows(X, w)
    rows = _rows(X, slice(0, X.shape[0]), unit).astype(like.dtype, copy=False)
    columns = _transpose(rows).tocsr()
    weighted = rows if w is None else sp.csr_array(sp.diags_array(w) @ rows)
    return columns @ (np.ones(X.shape[0], like.dtype) if w is None else w), (columns @ weighted).toarray()


def spread(X: Sparse, w: Array | None, like: Array, origin: None = None, unit: float = 1.0) -> tuple[Array, Array]:
    r"""Σ w x and Σ w (x − m)² by column, m the weighted mean, zeros included.

    Summed as Σ_stored w (x − m)² + (ω − ω_stored) m², which does not cancel. The deviations are summed too: what they
    say that m was off by corrects Σ w x, so that the mean is right to rounding however many rows there are.
    """
    total = float(X.shape[0]) if w is None else w.sum()
    X, w = _stored_rows(X, w)
    weights = np.ones(X.shape[0], like.dtype) if w is None else w
    s = adjoint(X, weights[:, None].astype(like.dtype, copy=False), unit=unit)[:, 0]
    m = s / total

    def work(share: Sequence[slice]) -> Array:
        return reduce(add_to, (_deviations(_rows(X, part, unit), weights[part], m) for part in share))

    with np.errstate(over="ignore", invalid="ignore"):
        pieces = 1 + X.nnz // (SHARES * 2**18)  # small enough for the temporary arrays to stay in cache
        stored, q, d = parallel_sum(work, _shares(X, pieces), add_to)
        zeros = np.maximum(total - stored, 0)
        off = d - zeros * m
        return s + off, np.maximum(q + zeros * m**2 - off**2 / total, 0)


def _deviations(rows: Sparse, w: Array, m: Array) -> Array:
    """Σ w, Σ w (x − m)² and Σ w (x − m) over the stored values of each column."""
    if rows.nnz <= RUN:
        each, p = np.repeat(w, np.diff(rows.indptr)), len(m)
        with np.errstate(over="ignore", invalid="ignore"):
            d = rows.data - np.take(m, rows.indices)
            sums = (each, each * d * d, each * d)
            return np.stack([np.bincount(rows.indices, x, minlength=p) for x in sums]).astype(m.dtype, copy=False)
    columns = _transpose(rows)
    columns.data = np.ones(rows.nnz, m.dtype)
    stored = columns @ w
    with np.errstate(over="ignore", invalid="ignore"):
        d = rows.data - np.take(m, rows.indices)
        columns.data = d * d
        squares = columns @ w
        columns.data = d
        return np.stack([stored, squares, columns @ w])
