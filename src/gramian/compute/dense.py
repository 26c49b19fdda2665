r"""The hot loops for NumPy arrays: tiles that stay in cache, one thread per core.

Same names, signatures and meaning as :mod:`gramian.compute.reference`; D = unit·X − origin is formed tile by
tile, never as a copy of X, and not at all where X can be multiplied as it lies. The other factor is held as
a short wide matrix Vᵀ: OpenBLAS multiplies (k×p)(p×t) 1.5 times as fast as (t×p)(p×k) for k near 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.factor import add_square, mirror
from gramian.compute.memory import working_memory
from gramian.compute.threads import add_to, n_threads, parallel, parallel_each, parallel_sum, quiet_blas

Array = npt.NDArray[Any]

TILE_BYTES = 2**21  # a core's level-2 cache is 1 MiB here; 0.5 to 4 MiB measure alike
LITTLE = 2**23  # multiplications that take one thread less than half a millisecond
SCATTER_ROWS = 1024  # rank-t updates DᵀD need a long inner dimension: 256 rows cost a quarter more
WIDE = 1000  # from this many columns on all threads share one DᵀD: a matrix for each would take much memory


class _Tiles:
    """Row tiles of D = unit·X − origin, each formed in a scratch buffer owned by one thread.

    Their rows take 2 MiB, but are no fewer than ``least`` for wide X, where each tile updates a whole row of results.
    """

    def __init__(
        self, X: Array, dtype: npt.DTypeLike, origin: Array | None, unit: float, least: int = 256, rows: int = 0
    ) -> None:
        self.X, self.dtype, self.origin, self.unit = X, np.dtype(dtype), origin, unit
        row = self.dtype.itemsize * max(1, X.shape[1])
        most = int(working_memory() * 2**16) // row
        self.rows = max(1, min(rows or max(16, min(max(least, TILE_BYTES // row), most)), X.shape[0]))
        rows_contiguous = abs(X.strides[0]) >= abs(X.strides[1])
        self.order = "C" if rows_contiguous else "F"
        # BLAS wants unit stride along one axis; anything else is copied like a change of type.
        blas_ready = X.itemsize in (abs(X.strides[0]), abs(X.strides[1])) and min(X.strides) > 0
        self.direct = origin is None and unit == 1.0 and X.dtype == self.dtype and blas_ready

    def slices(self) -> list[slice]:
        n = self.X.shape[0]
        return [slice(i, min(i + self.rows, n)) for i in range(0, n, self.rows)]

    def scratch(self) -> Array | None:
        shape = (self.rows, self.X.shape[1])
        return None if self.direct else np.empty(shape, self.dtype, order=self.order)  # type: ignore[call-overload]

    def form(self, part: slice, scratch: Array | None) -> Array:
        if scratch is None:
            return self.X[part]
        D: Array = scratch[: part.stop - part.start]
        np.copyto(D, self.X[part], casting="unsafe")
        if self.unit != 1.0:
            D *= self.unit
        if self.origin is not None:
            D -= self.origin if self.origin.shape[0] == 1 else self.origin[part]
        return D

    def form_together(self, part: slice, scratch: Array | None) -> Array:
        """The same with all threads on one tile."""
        if scratch is None:
            return self.X[part]
        step = -(-(part.stop - part.start) // (4 * n_threads()))
        pieces = [slice(i, min(i + step, part.stop)) for i in range(part.start, part.stop, step)]

        def work(share: Sequence[slice]) -> None:
            for piece in share:
                self.form(piece, scratch[piece.start - part.start : piece.stop - part.start])

        parallel(work, pieces)
        return scratch[: part.stop - part.start]


def centre_few(X: Array, unit: float = 1.0) -> tuple[Array, Array]:
    """The mean c of rows times ``unit``, rounding apart, and unit·X − c in float64: of data that fit a core's cache.

    The mean is taken about the first row, so that a constant is its own mean to the last bit.
    """
    # as X lies in memory, so that it is read and written in one go
    D: Array = np.array(X, dtype=np.float64, order="C" if abs(X.strides[0]) >= abs(X.strides[1]) else "F")
    if unit != 1.0:
        D *= unit
    c = D[0].copy()
    D -= c
    with quiet_blas():
        c += np.full(len(X), 1.0 / len(X)) @ D
    np.copyto(D, X, casting="unsafe")
    if unit != 1.0:
        D *= unit
    D -= c
    return c, D


def _is_little(X: Array, V: Array) -> bool:
    """Whether a product takes one thread no longer than another takes to be handed its part."""
    return bool(X.size * V.shape[1] <= LITTLE)


def product(X: Array, V: Array, origin: Array | None = None, unit: float = 1.0) -> Array:
    """D V."""
    if _is_little(X, V) and origin is None and unit == 1.0 and X.dtype == V.dtype:
        with quiet_blas():
            return np.asarray(X @ V)
    tiles = _Tiles(X, V.dtype, origin, unit)
    Vt, Yt = np.ascontiguousarray(V.T), np.empty((V.shape[1], X.shape[0]), V.dtype)

    def work(share: Sequence[slice]) -> None:
        scratch = tiles.scratch()
        for part in share:
            Yt[:, part] = Vt @ tiles.form(part, scratch).T

    parallel(work, tiles.slices(), serial=_is_little(X, V))
    return Yt.T


def adjoint(X: Array, U: Array, origin: Array | None = None, unit: float = 1.0) -> Array:
    """Dᵀ U."""
    if _is_little(X, U) and origin is None and unit == 1.0 and X.dtype == U.dtype:
        with quiet_blas():
            return np.asarray(X.T @ U)
    tiles = _Tiles(X, U.dtype, origin, unit)
    Ut = np.ascontiguousarray(U.T)

    def work(share: Sequence[slice]) -> Array:
        scratch, Zt = tiles.scratch(), np.zeros((U.shape[1], X.shape[1]), U.dtype)
        for part in share:
            Zt += Ut[:, part] @ tiles.form(part, scratch)
        return Zt

    return parallel_sum(work, tiles.slices(), add_to, serial=_is_little(X, U)).T


def normal(X: Array, V: Array, w: Array | None = None, origin: Array | None = None, unit: float = 1.0) -> Array:
    """Dᵀ diag(w) D V: both products while a tile is in cache, so one pass over X."""
    tiles = _Tiles(X, V.dtype, origin, unit)
    Vt = np.ascontiguousarray(V.T)

    def work(share: Sequence[slice]) -> Array:
        scratch, Zt = tiles.scratch(), np.zeros((V.shape[1], X.shape[1]), V.dtype)
        for part in share:
            D = tiles.form(part, scratch)
            Yt = Vt @ D.T
            if w is not None:
                Yt *= w[part]
            Zt += Yt @ D
        return Zt

    return parallel_sum(work, tiles.slices(), add_to, serial=_is_little(X, V)).T


def conormal(X: Array, U: Array, w: Array | None = None, origin: Array | None = None, unit: float = 1.0) -> Array:
    """D diag(w) Dᵀ U: column tiles of D are row tiles of Dᵀ."""
    return normal(X.T, U, w, None if origin is None else origin.T, unit)


def scatter(
    X: Array, w: Array | None, like: Array, origin: Array | None = None, unit: float = 1.0
) -> tuple[Array, Array]:
    """Σ w d and Σ w d dᵀ over the rows d of D, in the dtype of ``like``."""
    p = X.shape[1]
    if w is None and origin is None and unit == 1.0 and X.dtype == like.dtype and _is_little(X, X):
        with quiet_blas(), np.errstate(over="ignore", invalid="ignore"):
            return np.ones(len(X), X.dtype) @ X, X.T @ X
    tiles = _Tiles(X, like.dtype, origin, unit, rows=SCATTER_ROWS)
    if p >= WIDE:
        # a tile whose DᵀD is worth p² additions: up to an eighth of scikit-learn's ``working_memory``
        longest = int(working_memory() * 2**17) // (8 * p)
        tiles.rows = X.shape[0] if tiles.direct and w is None else max(32, min(X.shape[0], longest))
    root = None if w is None else np.sqrt(w).astype(like.dtype)
    if p >= WIDE:
        return _wide_scatter(tiles, root, p, like.dtype)

    def work(share: Sequence[slice]) -> tuple[Array, Array]:
        scratch, s, G = tiles.scratch(), np.zeros(p, like.dtype), np.zeros((p, p), like.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for non-finite sums
            for part in share:
                D = tiles.form(part, scratch)
                if root is None:
                    s += np.ones(len(D), like.dtype) @ D
                else:
                    r = root[part]
                    D = D * r[:, None]
                    s += r @ D
                G += D.T @ D  # numpy sees the transpose of the same array and calls syrk: half the work
        return s, G

    return parallel_sum(work, tiles.slices(), _add_pairs, serial=_is_little(X, X))


def _wide_scatter(tiles: _Tiles, root: Array | None, p: int, dtype: Any) -> tuple[Array, Array]:
    """The same for many columns: all threads on one tile of rows, each with tiles of the result."""
    scratch, s, G = tiles.scratch(), np.zeros(p, dtype), np.zeros((p, p), dtype, order="F")
    some = [slice(i, i + WIDE // 4) for i in range(0, p, WIDE // 4)]
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for non-finite sums
        for part in tiles.slices():
            D = tiles.form_together(part, scratch)
            r = np.ones(len(D), dtype) if root is None else root[part]
            D = D if root is None else D * r[:, None]

            def add_sum(columns: slice, r: Array = r, D: Array = D) -> None:
                s[columns] += r @ D[:, columns]

            parallel_each(add_sum, some)
            add_square(G, D.T)
    return s, mirror(G)


def spread(
    X: Array, w: Array | None, like: Array, origin: Array | None = None, unit: float = 1.0
) -> tuple[Array, Array]:
    """Σ w d and Σ w d² by column, in the dtype of ``like``."""
    p = X.shape[1]
    tiles = _Tiles(X, like.dtype, origin, unit, least=16)

    def work(share: Sequence[slice]) -> tuple[Array, Array]:
        scratch, s, q = tiles.scratch(), np.zeros(p, like.dtype), np.zeros(p, like.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in share:
                D = tiles.form(part, scratch)
                WD = D if w is None else w[part, None] * D
                s += WD.sum(axis=0)
                q += np.einsum("ij,ij->j", WD, D)
        return s, q

    return parallel_sum(work, tiles.slices(), _add_pairs, serial=16 * X.size <= LITTLE)


def _add_pairs(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return add_to(one[0], other[0]), add_to(one[1], other[1])


def triangle(X: Array) -> Array:
    """R of X = QR: each thread runs down its share of the rows with the R so far on top of the next tile."""
    p = X.shape[1]
    step = max(SCATTER_ROWS, 2 * p)

    def work(share: Sequence[int]) -> Array:
        R = np.empty((0, p), X.dtype)
        for i in share:
            R = np.asarray(np.linalg.qr(np.concatenate([R, X[i : i + step]]), mode="r"))
        return R

    def merge(one: Array, other: Array) -> Array:
        return np.asarray(np.linalg.qr(np.concatenate([one, other]), mode="r"))

    return parallel_sum(work, range(0, X.shape[0], step), merge)
