"""Kernels of the inner product: tiles of x·z by matrix multiplication, then a function of each entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.kernels.base import Pairs, as_points, is_sparse, result_dtype, room, same_columns

__all__ = ["InnerPairs", "row_squares"]

Array = npt.NDArray[Any]
Apply = Callable[[Array, Sequence[Array]], Array]


def row_squares(X: Any) -> Array:
    """‖x‖² of every row, in float64."""
    if is_sparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


class InnerPairs(Pairs):
    """f(s·x·z) with f applied to a tile in place; it may use the buffers beyond the first.

    Parameters
    ----------
    X, Z : arrays or sparse matrices; Z may be None
        The points.
    dtype : dtype
        Of the tiles.
    apply : callable
        f, given the tile and the spare buffers.
    factor : float
        s.
    buffers : int
        How many tiles f and the product need together.
    unit : bool
        Whether rows are first divided by their norms.
    """

    def __init__(
        self,
        X: Any,
        Z: Any,
        dtype: npt.DTypeLike | None,
        apply: Apply | None = None,
        factor: float = 1.0,
        buffers: int = 1,
        unit: bool = False,
    ) -> None:
        X = as_points(X)
        Z = None if Z is None else as_points(Z)
        if Z is not None:
            same_columns(X, Z)
        self.dtype = result_dtype(X, Z, dtype)
        self.symmetric, self.apply, self.buffers = Z is None, apply, buffers
        self.right = _prepared(X if Z is None else Z, self.dtype, 1.0, unit)
        left = self.right if Z is None else _prepared(X, self.dtype, 1.0, unit)
        # one array for both where possible: BLAS then computes half of a symmetric tile
        self.left = left if factor == 1.0 else _prepared(left, self.dtype, factor, False)
        self.shape = (self.left.shape[0], self.right.shape[0])

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        """Multiply and apply f."""
        A, B = self.left[rows], self.right[columns]
        tile = room(buffers[0], rows, columns)
        if is_sparse(A) or is_sparse(B):
            tile[...] = _dense(A @ B.T)
        else:
            np.dot(A, B.T, out=tile)
        return tile if self.apply is None else self.apply(tile, buffers[1:])


def _prepared(X: Any, dtype: np.dtype[Any], factor: float, unit: bool) -> Any:
    X = X.astype(dtype, copy=False) if is_sparse(X) else np.ascontiguousarray(X, dtype=dtype)
    if unit:
        norms = np.sqrt(row_squares(X))
        inverse = (1.0 / np.where(norms > 0, norms, 1.0)).astype(dtype)
        X = sp.csr_array(sp.diags_array(inverse) @ X) if is_sparse(X) else X * inverse[:, None]
    return X if factor == 1.0 else X * dtype.type(factor)


def _dense(product: Any) -> Array:
    return np.asarray(product.toarray() if is_sparse(product) else product)
