"""Dask arrays and data frames as sources: their chunks are computed on their cluster, and worked on there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.compute.executor import Executor, LazyItem, find_executor
from gramian.sources.arrays import DenseSource, SparseSource, refuse_rounding, to_numbers
from gramian.sources.base import Block, Share, Source
from gramian.sources.errors import SourceError


def is_dask(data: Any) -> bool:
    """Whether data are an array or a data frame of Dask (which is not imported to find out)."""
    names = {cls.__name__ for cls in type(data).__mro__ if cls.__module__.startswith(("dask.", "dask_expr."))}
    return not names.isdisjoint({"Array", "DataFrame"})


class DaskSource(Source):
    """The rows of a Dask array or data frame, chunk by chunk.

    In a block of :func:`gramian.cluster`, or where a ``distributed.Client`` is connected, every chunk is worked on
    where it is computed, and small statistics come back. Else chunks are computed here, one after another. A chunk is
    computed in every pass unless it was persisted.

    Parameters
    ----------
    data : dask array or data frame
        Of two dimensions and real numbers.
    """

    resident = False

    def __init__(self, data: Any) -> None:
        if data.ndim == 2 and "DataFrame" in {cls.__name__ for cls in type(data).__mro__}:
            self.feature_names = [str(name) for name in data.columns]
            kinds = [str(name) for name, dtype in data.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"]
            if kinds:
                raise SourceError(f"columns without numbers: {', '.join(kinds)}. Select columns of numbers.")
            data = data.to_dask_array(lengths=True)
        if data.ndim != 2:
            raise SourceError(f"Expected 2D array, got a Dask array of {data.ndim} dimensions.")
        if any(math.isnan(n) for n in data.shape):
            raise SourceError("the Dask array does not know its shape. Call its compute_chunk_sizes() first.")
        if data.dtype.kind not in "fiub":
            raise SourceError(f"Expected real numbers, got a Dask array of dtype {data.dtype}.")
        self.array = data if len(data.chunks[1]) == 1 else data.rechunk({1: -1})
        self.shape, self.dtype = (int(data.shape[0]), int(data.shape[1])), np.dtype(data.dtype)
        self.sparse = sp.issparse(getattr(data, "_meta", None))

    def address(self) -> Source | None:
        """Return None: chunks are worked on where they are computed, or here."""
        return None

    def executor(self) -> Executor:
        """Return the cluster in use, or the one that is connected."""
        return find_executor()

    def share(self, rows: int | None, start: int, stop: int, along: list[Any]) -> Any:
        """Return the rows as they are on the cluster, to be worked on there."""
        return LazyItem(self.array[start:stop], partial(_make_share, rows, start, stop, along))

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of chunks, or of blocks of ``rows`` rows."""
        if rows is not None:
            return list(self.ranges(rows, 1))
        stops = np.cumsum(self.array.chunks[0]).tolist()
        return [(a, b) for a, b in zip([0, *stops], stops, strict=False) if a < b]

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks, each computed when it is asked for."""
        for start, stop in self.row_spans(rows):
            yield Block(start, stop, _check_values(self.array[start:stop].compute(), start))


class _RowsFrom(Source):
    """Rows in memory that are rows ``start`` and following of something larger."""

    def __init__(self, values: Any, start: int) -> None:
        self.inner, self.start = SparseSource(values) if sp.issparse(values) else DenseSource(values), start
        self.shape, self.dtype = self.inner.shape, self.inner.dtype

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks, with the numbers that their rows have in the whole."""
        for block in self.inner.blocks(rows or max(1, self.shape[0])):
            yield Block(block.start + self.start, block.stop + self.start, block.values)


def _make_share(rows: int | None, start: int, stop: int, along: list[Any], values: Any) -> Share:
    return Share(_RowsFrom(_check_values(values, start), start), rows, start, stop, along)


def _check_values(values: Any, start: int) -> Any:
    """The rows of a chunk as numbers that float64 holds: what is masked is missing; none would be rounded."""
    if sp.issparse(values):
        refuse_rounding(values, start=start)
        return values
    return to_numbers(np.asanyarray(values), start=start)
