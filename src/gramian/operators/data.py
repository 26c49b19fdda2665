"""The data operator: the rows of a Source as a linear map."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from gramian.compute import sparse
from gramian.compute.devices import dense_loops, describe, is_tensor
from gramian.operators.base import Operator
from gramian.sources import Block, Source, memory_budget, open_source
from gramian.sources.checkpoint import remember

Array = Any

ROWS_BYTES = 2**23  # of a block of dense rows: small enough for the allocator to use the same memory again
ROWS_BYTES_GPU = 2**28  # of one on a GPU, where each block costs a wait


def kernels_for(source: Source) -> ModuleType:
    """Return the module of hot loops that suits a source."""
    return sparse if source.sparse else dense_loops(source.xp)


class Data(Operator):
    r"""The matrix D = unit·X − 1 originᵀ of a source X.

    The origin is for numbers far from zero: subtracting it tile by tile, before anything is multiplied, keeps
    digits that no later correction can bring back. Sparse data take no origin.

    Parameters
    ----------
    source : Source or anything :func:`gramian.open` takes
        Where the rows come from.
    origin : array of shape (p,), optional
        Subtracted from every row.
    unit : float, default=1.0
        Factor for every value; a power of two, so that it rounds nothing.
    dtype : dtype, optional
        Of the products; float32 for float32 data, else float64.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> A = Data(np.array([[1, 2], [3, 4]]), origin=np.array([1.0, 2.0]))
    >>> A @ np.array([1.0, 1.0])
    array([0., 4.])
    """

    def __init__(self, source: Any, *, origin: Array | None = None, unit: float = 1.0, dtype: Any = None) -> None:
        self.source = source if isinstance(source, Source) else open_source(source)
        self.shape, self.xp = self.source.shape, self.source.xp
        self.resident, self.sparse = self.source.resident, self.source.sparse
        single = self.source.dtype == self.xp.float32  # float32 data stay float32, all else becomes float64
        self.dtype = (self.source.dtype if single else self.xp.float64) if dtype is None else dtype
        self.device = self.source.device
        if self.uses_torch:
            single = self.dtype == self.xp.float32
            mode = "accurate mode: float32 with all its digits" if single else "double mode: float64"
            where = "on" if self.device.type == "cuda" else "by"
            self.precision = f"products {where} {describe(self.device)} in {mode}"
        if origin is not None and self.sparse:
            raise ValueError("Sparse data take no origin: subtracting it would make them dense. Use Centred.")
        self.origin = None if origin is None else self.asarray(origin)[None, :]
        self.unit = unit
        self._kernels = kernels_for(self.source)
        self._passes = 0

    @property
    def passes(self) -> int:
        """How often the source has been read."""
        return self._passes

    def matmat(self, V: Array) -> Array:
        """D V, block by block."""
        self._passes += 1
        parts = self.source.map(_BlockProduct(self._kernels.product, V, self.origin, self.unit))
        return parts[0] if len(parts) == 1 else self.xp.concat(parts, axis=0)

    def rmatmat(self, U: Array) -> Array:
        """Dᵀ U, summed over blocks."""
        self._passes += 1
        task = _BlockProduct(self._kernels.adjoint, None, self.origin, self.unit)
        return self.source.reduce(task, operator.add, along=[U])

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """Dᵀ diag(w) D V: both products while a block is at hand, one pass."""
        self._passes += 1
        task = _BlockProduct(self._kernels.normal, V, self.origin, self.unit)
        return self.source.reduce(task, operator.add, along=[w])

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """D diag(w) Dᵀ U: one pass by columns in memory, two from a file."""
        if not self.resident:
            return super().conormal(U, w)
        self._passes += 1
        return remember(
            f"product with {self!r}",
            (U, w, self.origin, self.unit),
            lambda: self._kernels.conormal(self.source.values, U, w, self.origin, self.unit),
        )

    def gram(self, w: Array | None = None) -> Array:
        """Dᵀ diag(w) D in one pass, in float64."""
        self._passes += 1
        task = _BlockScatter(self._kernels.scatter, self._double(), self.origin, self.unit)
        return self.source.reduce(task, operator.add, along=[w], result_bytes=8 * self.shape[1] ** 2)

    def cogram(self, w: Array | None = None) -> Array:
        """D diag(w) Dᵀ: one pass by columns in memory, in float64."""
        if not self.resident or self.sparse:
            return super().cogram(w)
        self._passes += 1
        origin = None if self.origin is None else self.origin.T
        X = self.source.values
        return self._kernels.scatter(X.T, w, self._double(), origin, self.unit)[1]

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of D V; sparse rows are multiplied, never made dense by themselves."""
        self._passes += 1
        V = self.eye(self.shape[1]) if V is None and self.sparse else V
        width = self.shape[1] + (0 if V is None else V.shape[1])
        large = self.shape[0] * self.shape[1] >= 2 * ROWS_BYTES
        nbytes = min(2 * ROWS_BYTES if large else ROWS_BYTES, memory_budget() // 8)
        if self.uses_torch and self.device.type != "cpu":
            nbytes = ROWS_BYTES_GPU
        for b in self.source.blocks(max(1, nbytes // (8 * max(1, width)))):
            if V is not None:
                yield b.start, b.stop, self._kernels.product(b.values, V, self.origin, self.unit)
                continue
            values = b.values
            if not self.resident:  # the buffer of a file will be used again
                values = values.clone() if is_tensor(values) else np.array(values)
            values = self.xp.astype(values, self.dtype, copy=False)
            values = values if self.unit == 1.0 else values * self.unit
            yield b.start, b.stop, values if self.origin is None else values - self.origin

    def _double(self) -> Array:
        """A float64 array where the data live: squares of float32 numbers are summed in float64."""
        return self.xp.astype(self.eye(1), self.xp.float64)


@dataclass(frozen=True, eq=False)
class _BlockProduct:
    """The product of a block by one of the hot loops; a callable that can be sent to another process."""

    loop: Callable[..., Array]
    factor: Array | None
    origin: Array | None
    unit: float

    def __call__(self, block: Block, *along: Array) -> Array:
        own = () if self.factor is None else (self.factor,)
        return self.loop(block.values, *own, *along, self.origin, self.unit)


@dataclass(frozen=True, eq=False)
class _BlockScatter:
    """The scatter matrix of a block, in the dtype of ``like``."""

    loop: Callable[..., tuple[Array, Array]]
    like: Array
    origin: Array | None
    unit: float

    def __call__(self, block: Block, w: Array | None) -> Array:
        return self.loop(block.values, w, self.like, self.origin, self.unit)[1]
