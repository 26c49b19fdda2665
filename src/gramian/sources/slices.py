"""Sources over arrays that live in a file and are read by slices of rows: HDF5, Zarr, AnnData."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source, memory_budget

__all__ = ["SlicedSource", "choose", "loaded"]

BLOCK_BYTES = 2**24


class SlicedSource(Source):
    """A two-dimensional array in a file that hands out slices of rows; the file is open only while it is read.

    A subclass opens the array (:meth:`array`). The next slice is read while the caller works on this one.

    Parameters
    ----------
    path : Path
        The file or folder.
    dataset : str
        Which array in it.
    shape, dtype
        Of the array.
    chunk : int, default=1
        How many rows are stored together, so that slices end where chunks do.
    """

    resident = False

    def __init__(self, path: Path, dataset: str, shape: tuple[int, int], dtype: np.dtype[Any], chunk: int = 1) -> None:
        self.path, self.dataset, self.chunk = path, dataset, max(1, chunk)
        self.shape, self.dtype = shape, dtype

    @abstractmethod
    def array(self) -> AbstractContextManager[Any]:
        """Open the array."""

    def row_bytes(self) -> float:
        """Return what a row takes in memory."""
        return float(self.shape[1] * self.dtype.itemsize)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield slices, each read while the one before it is in use."""
        spans = list(self.ranges(rows or self._rows(), 1))
        with self.array() as array, ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._read, array, spans[0]) if spans else None
            for i, (start, stop) in enumerate(spans):
                assert ahead is not None
                values = ahead.result()
                if i + 1 < len(spans):
                    ahead = reader.submit(self._read, array, spans[i + 1])
                yield Block(start, stop, values)

    def _rows(self) -> int:
        rows = max(1, int(min(BLOCK_BYTES, memory_budget() // 8) / max(1.0, self.row_bytes())))
        return max(1, rows // self.chunk) * self.chunk if self.chunk * self.row_bytes() <= memory_budget() / 8 else rows

    def _read(self, array: Any, span: tuple[int, int]) -> Any:
        values: npt.NDArray[Any] = np.asarray(array[span[0] : span[1]])
        return values


def loaded(source: SlicedSource) -> Source:
    """Return the source in memory where it is within the memory budget, else as it is."""
    if source.shape[0] * source.row_bytes() > memory_budget():
        return source
    names = source.feature_names
    with source.array() as array:
        values = source._read(array, (0, source.shape[0]))
    return SparseSource(values, names) if source.sparse else DenseSource(values, names)


def choose(found: dict[str, str], dataset: str | None, what: str = "dataset") -> str:
    """Return the name of an array in a file: the one that is asked for, or the only one.

    Parameters
    ----------
    found : dict of str
        What the file holds: names, and what they are in words.
    dataset : str or None
        What is asked for.
    what : str
        What such a thing is called.

    Examples
    --------
    >>> choose({"X": "5 x 2, float64"}, None)
    'X'
    """
    listed = ", ".join(f"{name} ({shape})" for name, shape in list(found.items())[:20]) or "no table of real numbers"
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    if dataset is None:
        if len(found) == 1:
            return next(iter(found))
        raise ValueError(f"say which {what} is meant with dataset=; the file holds {listed}{more}.")
    if dataset.strip("/") not in found:
        raise ValueError(f"no {what} {dataset!r} with rows and columns of real numbers; the file holds {listed}{more}.")
    return dataset.strip("/")
