"""The kernel operator: k(X, Z) as a linear map, evaluated in tiles and stored only where that pays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.compute import cpu, tiles
from gramian.kernels import Kernel, Precomputed, as_kernel
from gramian.operators.base import Operator
from gramian.sources import Source, memory_budget, open_source

__all__ = ["KernelOperator"]

Array = npt.NDArray[Any]

STORE_SHARE = 2  # a matrix is kept where it takes no more than one part in so many of working_memory
ROWS_BYTES = 2**23  # of a block of dense rows


class KernelOperator(Operator):
    r"""The matrix K = k(X, Z), or K = k(X, X), as an operator of shape (n, m).

    **When K is stored.** The first product evaluates K tile by tile and forgets it. The second one, with
    ``store="auto"``, keeps its tiles (of k(X, X) half of them) if they take at most half of scikit-learn's
    ``working_memory``: 512 MiB of 1 GiB unless set otherwise, which k(X, X) meets up to n = 11,584 in float64 and
    16,383 in float32. ``docs/kernels.md`` says what that saves. A single product, as for new points, never stores.

    Parameters
    ----------
    kernel : Kernel, str or callable
        Or one of scikit-learn's names, or a function of two points. Automatic parameters are found from X; ``A.kernel``
        says which.
    X : array, sparse matrix, data frame, tensor, path, Source; for :class:`~gramian.kernels.Callable` any sequence
        The n points of the rows. A file is read in blocks of rows where Z is given, and into memory otherwise: n points
        are small beside n² products.
    Z : the same, optional
        The m points of the columns, read into memory; the same as X where not given.
    dtype : dtype, optional
        Of the products; float32 for float32 data, else float64.
    store : {"auto", True, False}, default="auto"
        Whether to keep K: by the rule above, from the first product on, or never.

    Attributes
    ----------
    stored : bool
        Whether K is in memory now.
    symmetric : bool
        Whether K is k(X, X), of which half the tiles are evaluated.
    passes : int
        How often K has been gone through, stored or not.
    evaluations : int
        How often K has been evaluated from the points, counted in products.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.operators import KernelOperator
    >>> A = KernelOperator(Gaussian(0.5), np.array([[0.0], [1.0], [2.0]]))
    >>> (A @ np.ones(3)).round(4)
    array([1.7419, 2.2131, 1.7419])
    """

    def __init__(
        self, kernel: Any, X: Any, Z: Any = None, *, dtype: npt.DTypeLike | None = None, store: bool | str = "auto"
    ) -> None:
        if not any(store is choice or store == choice for choice in ("auto", True, False)):
            raise ValueError(f"store must be 'auto', True or False; got {store!r}.")
        kernel = as_kernel(kernel)
        points = _points(kernel, X, in_memory=Z is None)
        self._file = points if isinstance(points, Source) else None
        if kernel.automatic and self._file is not None:
            raise ValueError(
                f"{kernel!r} finds a parameter from data, and X is a file. Resolve it on rows in memory first."
            )
        self.X = X if self._file is not None else points
        self.Z = None if Z is None else _points(kernel, Z, in_memory=True)
        self.kernel = kernel.resolved(self.X) if kernel.automatic else kernel
        self.store, self._passes, self.evaluations = store, 0, 0
        self.resident = self._file is None
        self._pairs: Any = None
        self._asked = dtype
        self._prepare()

    def _prepare(self) -> None:
        """Compute what depends on single points, or for a file, on the points of Z."""
        if self._file is None:
            self._pairs = self.kernel.pairs(self.X, self.Z, self._asked)
            self.shape, self.dtype = self._pairs.shape, self._pairs.dtype
            self.symmetric = self._pairs.symmetric
            return
        self.shape, self.symmetric = (self._file.shape[0], _count(self.Z)), False
        single = self._file.dtype == np.float32 and self.Z.dtype == np.float32  # type: ignore[union-attr]
        self.dtype = np.dtype(self._asked or (np.float32 if single else np.float64))

    @property
    def passes(self) -> int:
        """How often K has been gone through, stored or not."""
        return self._passes

    @property
    def stored(self) -> bool:
        """Whether K is in memory now."""
        return isinstance(self._pairs, tiles.Stored)

    def matmat(self, V: Array) -> Array:
        """K V."""
        return self._multiplied(V, "product")

    def rmatmat(self, U: Array) -> Array:
        """Kᵀ U."""
        if self.symmetric:
            return self.matmat(U)
        if self._file is None:
            return self._multiplied(U, "adjoint")
        self._count_pass()
        total = np.zeros((self.shape[1], U.shape[1]), self.dtype)
        for start, stop, pairs in self._parts():
            total += tiles.adjoint(pairs, U[start:stop])
        return total

    def gram(self, w: Array | None = None) -> Array:
        """KᵀWK from blocks of rows, in one pass."""
        total = np.zeros((self.shape[1], self.shape[1]), self.dtype)
        for start, stop, block in self.rows():
            total += block.T @ (block if w is None else w[start:stop, None] * block)
        return total

    def cogram(self, w: Array | None = None) -> Array:
        """K W Kᵀ: from blocks of columns, in one pass; the same as :meth:`gram` where symmetric."""
        if self.symmetric:
            return self.gram(w)
        if self._file is not None:
            return np.asarray(super().cogram(w))
        total, step = np.zeros((self.shape[0], self.shape[0]), self.dtype), self._block_rows(self.shape[0])
        for start in range(0, self.shape[1], step):
            some = np.arange(start, min(start + step, self.shape[1]))
            block = self.columns(some)
            total += (block if w is None else block * w[some]) @ block.T
        return total

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of K V, or of K itself."""
        self._count_pass()
        if V is not None:
            for start, stop, pairs in self._parts():
                yield start, stop, tiles.product(pairs, V)
            return
        for start, stop, pairs in self._parts(self._block_rows(self.shape[1])):
            yield start, stop, tiles.dense(pairs)

    def to_dense(self) -> Array:
        """K as a matrix, written once."""
        if self._file is not None:
            return np.asarray(super().to_dense())
        self._count_pass()
        return tiles.dense(self._pairs)

    def tiled(self, dtype: npt.DTypeLike) -> tiles.Tiled:
        """K = k(X, X) as something that hands out tiles in a dtype, each evaluated when asked for."""
        if self.Z is not None or self.shape[0] != self.shape[1]:
            raise ValueError(f"Only k(X, X) is symmetric; this operator of shape {self.shape} has two sets of points.")
        pairs: tiles.Tiled = self.kernel.pairs(self.X, None, np.dtype(dtype))
        return pairs

    def packed(self, dtype: npt.DTypeLike) -> Array:
        """One triangle of K = k(X, X) as :func:`gramian.compute.tiles.packed` lays it out: what Cholesky factors."""
        self._count_pass()
        return tiles.packed(self.tiled(dtype))

    def diagonal(self) -> Array:
        """k(x, x) for every point; of K = k(X, X) only."""
        if self.Z is not None:
            raise ValueError("k(X, Z) of two sets of points has no diagonal of values k(x, x).")
        return np.asarray(self.kernel.diagonal(self.X), dtype=self.dtype)

    def columns(self, indices: Any, rows: Any = None) -> Array:
        """Columns k(X, Z[indices]) as a dense array, or some rows of them: what pivoted Cholesky asks for."""
        indices = np.asarray(indices, dtype=np.intp)
        if isinstance(self.kernel, Precomputed):
            return np.asarray(_take(self.X, rows)[:, indices], dtype=self.dtype)
        if self._file is not None:
            raise ValueError("Columns of a kernel of points in a file are not given; read X into memory.")
        points = self.X if self.Z is None else self.Z
        return tiles.dense(self.kernel.pairs(_take(self.X, rows), _take(points, indices), self.dtype))

    @property
    def T(self) -> Operator:
        """The operator itself where it is symmetric."""
        return self if self.symmetric else super().T

    def _multiplied(self, V: Array, name: str) -> Array:
        """One product with K: stored, in tiles of pairs, or from a file."""
        self._count_pass()
        if self._file is not None:
            return np.concatenate([tiles.product(pairs, V) for _, _, pairs in self._parts()])
        if isinstance(self.kernel, Precomputed):  # rows of a matrix are read faster than tiles of it
            return np.asarray(getattr(cpu, name)(self._pairs.K, V.astype(self.dtype, copy=False)))
        if not self.stored and self._worth_storing():
            self._pairs = tiles.Stored(self._pairs)
        name = "symmetric_product" if self.symmetric else name
        return np.asarray(getattr(tiles, name)(self._pairs, V))

    def _count_pass(self) -> None:
        self._passes += 1
        self.evaluations += not self.stored

    def _worth_storing(self) -> bool:
        """The rule of the class: the second product, where K fits."""
        if self.store is False:
            return False
        small = tiles.Stored.nbytes(self._pairs) <= memory_budget() // STORE_SHARE
        return self.store is True or (small and self._passes > 1)

    def _block_rows(self, width: int) -> int:
        return int(max(1, min(ROWS_BYTES, memory_budget() // 8) // (self.dtype.itemsize * max(1, width))))

    def _parts(self, step: int | None = None) -> Iterator[tuple[int, int, Any]]:
        """Pairs of one block of rows after another with all columns."""
        if self._file is not None:
            for block in self._file.blocks(step):
                yield block.start, block.stop, self.kernel.pairs(np.array(block.values), self.Z, self.dtype)
        else:
            step, side = step or max(1, self.shape[0]), self._pairs.side
            step = max(side, step // side * side) if side else step  # whole tiles
            for start in range(0, self.shape[0], step):
                stop = min(start + step, self.shape[0])
                yield start, stop, _Rows(self._pairs, start, stop)


class _Rows:
    """Some rows of other pairs, without preparing them again."""

    symmetric = False

    def __init__(self, pairs: Any, start: int, stop: int) -> None:
        self.pairs, self.start = pairs, start
        self.shape, self.dtype = (stop - start, pairs.shape[1]), pairs.dtype
        self.buffers, self.serial, self.side = pairs.buffers, pairs.serial, pairs.side

    def fill(self, rows: slice, columns: slice, buffers: Any) -> Array:
        tile: Array = self.pairs.fill(slice(rows.start + self.start, rows.stop + self.start), columns, buffers)
        return tile


def _points(kernel: Kernel, X: Any, in_memory: bool) -> Any:
    """The points as a kernel takes them: an array or CSR, a list of objects, or the Source of a file."""
    if kernel.takes_objects and not isinstance(X, Source):
        return X if hasattr(X, "__len__") or sp.issparse(X) else list(X)
    source = open_source(X)
    if source.resident:
        values = source.values  # type: ignore[attr-defined]
        return values if source.sparse else np.asarray(values)
    return np.concatenate([np.array(b.values) for b in source.blocks()]) if in_memory else source


def _take(X: Any, indices: Any) -> Any:
    """Rows of an array, or items of a list."""
    if indices is None:
        return X
    return [X[i] for i in indices] if isinstance(X, (list, tuple)) else X[indices]


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
