r"""The hot loop of kernel methods: K V for K = k(X, Z), tile by tile, K never stored.

A tile is evaluated, multiplied and forgotten while it is in a core's cache. For K = k(X, X) each tile above the
diagonal is evaluated once and used twice, for its own rows and, transposed, for those of its columns. What hands out
the tiles is anything with ``shape``, ``dtype``, ``symmetric``, ``buffers``, ``serial`` and
``fill(rows, columns, buffers)``, such as ``kernel.pairs(X, Z)``. Sums over tiles are kept in float64, whatever the
tiles are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import add_to, parallel, parallel_sum

Array = npt.NDArray[Any]

TILE_BYTES = 2**19  # of a tile: with what it is made of and multiplied by, within a level-2 cache of 1 MiB
SMALLEST = 256  # side: smaller tiles cost more in Python than they save in arithmetic
FLOPS = 10**6  # OpenBLAS does not pack the factors of a product of up to so many multiplications: a third faster
NARROW = 48  # ... and from so many columns on, packing pays


class Tiled(Protocol):
    """What the loops ask of a kernel matrix."""

    shape: tuple[int, int]
    dtype: Any
    symmetric: bool
    buffers: int
    serial: bool
    side: int  # of tiles that are stored, and come in no other size; 0 where any size will do

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        """Return one tile, in ``buffers[0]`` or as a view of stored numbers."""
        ...


def side(k: int, itemsize: int) -> int:
    """Return the side of square tiles to be multiplied by k columns: 352 for few in float32, otherwise 256."""
    most = min(FLOPS / max(1, k), TILE_BYTES / itemsize)
    return max(SMALLEST, int(most**0.5) // 16 * 16)


@cache
def _slabs(rows: int, columns: int, k: int) -> list[slice]:
    """Split the rows of a tile so that the product of each part with k columns needs no packing."""
    pieces = -(-rows * columns * k // FLOPS) if k < NARROW else 1
    height = -(-rows // (16 * pieces)) * 16
    return [slice(i, min(i + height, rows)) for i in range(0, rows, height)]


def _add_product(total: Array, tile: Array, V: Array, part: Array) -> None:
    """total += tile V."""
    for some in _slabs(*tile.shape, V.shape[1]):
        total[some] += np.dot(tile[some], V, out=part[: some.stop - some.start])


def _add_adjoint(total: Array, tile: Array, U: Array, part: Array) -> None:
    """total += tileᵀ U."""
    for some in _slabs(*tile.shape, U.shape[1]):
        total += np.dot(tile[some].T, U[some], out=part[: tile.shape[1]])


class Stored:
    """The tiles of K kept in memory, each contiguous; of a symmetric K those on and above the diagonal, half of all.

    A tile in one piece is read at the speed of memory. As part of a matrix in rows it lies in as many pieces as it has
    rows, each in a page of its own, and takes three times as long.
    """

    buffers, serial = 0, False

    def __init__(self, K: Tiled) -> None:
        self.shape, self.dtype, self.symmetric = K.shape, K.dtype, K.symmetric
        self.side = K.side or side(1, 8)
        rows, columns = (_slices(n, self.side) for n in K.shape)
        wanted = [(r, c) for r in rows for c in columns if c.start >= r.start or not K.symmetric]

        sizes = [(r.stop - r.start) * (c.stop - c.start) for r, c in wanted]
        memory = np.empty(sum(sizes), K.dtype)  # in one piece, for which the system gives large pages
        pieces = np.split(memory, np.cumsum(sizes)[:-1])
        homes = [piece.reshape(r.stop - r.start, -1) for piece, (r, _) in zip(pieces, wanted, strict=True)]

        def work(share: Sequence[tuple[tuple[slice, slice], Array]]) -> None:
            buffers = _buffers(K, self.side)
            for (r, c), home in share:
                home[...] = K.fill(r, c, buffers)

        parallel(work, list(zip(wanted, homes, strict=True)), serial=K.serial)
        self.tiles = {(r.start, c.start): home for (r, c), home in zip(wanted, homes, strict=True)}

    @staticmethod
    def nbytes(K: Tiled) -> int:
        """How much memory the tiles of K take, or would."""
        n, m = K.shape
        return (n * (n + 1) // 2 if K.symmetric else n * m) * int(K.dtype.itemsize)

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        """Return a stored tile."""
        if self.symmetric and columns.start < rows.start:
            return self.tiles[columns.start, rows.start].T
        return self.tiles[rows.start, columns.start]


def product(K: Tiled, V: Array, *, transposed: bool = False) -> Array:
    """K V, or Kᵀ V."""
    V = np.ascontiguousarray(V, dtype=K.dtype)
    k = V.shape[1]
    step = K.side or side(k, K.dtype.itemsize)
    n, m = K.shape[::-1] if transposed else K.shape
    out, others = np.empty((n, k), K.dtype), _slices(m, step)

    def work(share: Sequence[slice]) -> None:
        buffers, part = _buffers(K, step), np.empty((step, k), K.dtype)
        for some in share:
            total = np.zeros((some.stop - some.start, k))
            for along in others:
                if transposed:
                    _add_adjoint(total, K.fill(along, some, buffers), V[along], part)
                else:
                    _add_product(total, K.fill(some, along, buffers), V[along], part)
            out[some] = total

    parallel(work, _slices(n, step), serial=K.serial)
    return out


def adjoint(K: Tiled, U: Array) -> Array:
    """Kᵀ U."""
    return product(K, U, transposed=True)


def symmetric_product(K: Tiled, V: Array) -> Array:
    """K V for a symmetric K: the tiles on and above the diagonal serve for all."""
    V = np.ascontiguousarray(V, dtype=K.dtype)
    count = len(_slices(K.shape[0], K.side or side(V.shape[1], K.dtype.itemsize)))
    total = parallel_sum(partial(symmetric_part, K, V), range(count), add_later, serial=K.serial)
    return total.astype(K.dtype, copy=False)


def symmetric_part(K: Tiled, V: Array, share: Sequence[int]) -> Array:
    """What some rows of tiles of a symmetric K add to K V, from the first of these rows on."""
    k = V.shape[1]
    step = K.side or side(k, K.dtype.itemsize)
    slices = _slices(K.shape[0], step)
    buffers, part = _buffers(K, step), np.empty((step, k), K.dtype)
    first = slices[next(iter(share), 0)].start  # these tiles add to no row before it
    total = np.zeros((K.shape[0] - first, k))
    for i in share:
        rows = slices[i]
        here, mine = total[rows.start - first : rows.stop - first], V[rows]
        for columns in slices[i:]:
            tile = K.fill(rows, columns, buffers)
            _add_product(here, tile, V[columns], part)
            if columns is not rows:
                _add_adjoint(total[columns.start - first : columns.stop - first], tile, mine, part)
    return total


def add_later(total: Array, later: Array) -> Array:
    """Return the sum of two parts of K V, in the memory of the first."""
    add_to(total[len(total) - len(later) :], later)
    return total


@lru_cache(maxsize=8)
def _below_diagonal(n: int) -> npt.NDArray[np.bool_]:
    return np.tri(n, k=-1, dtype=bool)


def dense(K: Tiled) -> Array:
    """K as a matrix; where symmetric, each tile is evaluated once and the result is symmetric to the last bit."""
    out = np.empty(K.shape, K.dtype)
    step = K.side or side(1, K.dtype.itemsize)

    def work(share: Sequence[slice]) -> None:
        buffers = _buffers(K, step)
        for rows in share:
            for columns in _slices(K.shape[1], step):
                if not K.symmetric or columns.start > rows.start:
                    out[rows, columns] = K.fill(rows, columns, buffers)
                elif columns == rows:
                    tile = K.fill(rows, columns, buffers)
                    out[rows, columns] = tile
                    np.copyto(out[rows, columns], tile.T, where=_below_diagonal(len(tile)))

    def mirror(share: Sequence[slice]) -> None:
        for rows in share:
            for columns in _slices(rows.start, step):
                out[rows, columns] = out[columns, rows].T

    parallel(work, _slices(K.shape[0], step), serial=K.serial)
    if K.symmetric:
        parallel(mirror, _slices(K.shape[0], step))
    return out


def pack_triangle(K: Tiled) -> Array:
    """One triangle of a symmetric K in LAPACK's rectangular full packed form (TRANSR='N', UPLO='L'), n(n+1)/2 numbers.

    Half the memory of a matrix, and factored at the same speed (Gustavson, Waśniewski, Dongarra and Langou, 2010).
    Read in rows, with h = ⌈n/2⌉, the array holds the first h rows of the upper triangle of K and, in the room left
    below their diagonal, the lower triangle of the other n − h rows and columns.
    """
    n, step = K.shape[0], side(1, K.dtype.itemsize)
    half, even = (n + 1) // 2, 1 - n % 2
    memory = np.empty(n * (n + 1) // 2, K.dtype)
    C = memory.reshape(half, n + even)
    head, tail = C[:, even:], C[1 - even :]
    jobs = [(head, rows, c, 0) for rows in _slices(half, step) for c in (rows, *_slices(n, step, rows.stop))]
    jobs += [(tail, rows, c, half) for rows in _slices(n - half, step) for c in _slices(rows.stop, step)]

    def work(share: Sequence[tuple[Array, slice, slice, int]]) -> None:
        buffers = _buffers(K, step)
        for home, rows, columns, first in share:
            down, along = (slice(part.start + first, part.stop + first) for part in (rows, columns))
            tile = K.fill(down, along, buffers)
            if rows != columns:
                home[rows, columns] = tile
            else:  # both triangles of these places are in use
                mask = np.tri(len(tile), dtype=bool)
                np.copyto(home[rows, columns], tile, where=mask if first else mask.T)

    parallel(work, jobs, serial=K.serial)
    return memory


def _slices(n: int, step: int, start: int = 0) -> list[slice]:
    return [slice(i, min(i + step, n)) for i in range(start, n, step)]


def _buffers(K: Tiled, step: int) -> list[Array]:
    return [np.empty(step * step, K.dtype) for _ in range(K.buffers)]
