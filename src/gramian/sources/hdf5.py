"""HDF5 files by h5py."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source, memory_budget
from gramian.sources.extras import load_h5py

__all__ = ["Hdf5Source", "SlicedSource", "choose", "loaded", "open_hdf5", "opened_hdf5"]

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


@contextmanager
def opened_hdf5(path: Path) -> Iterator[Any]:
    """Open an HDF5 file for reading; a damaged one is a ValueError."""
    try:
        file = load_h5py().File(path, "r")
    except OSError as error:
        raise ValueError(f"{path}: damaged, or not a readable HDF5 file: {error}") from error
    with file:
        yield file


class Hdf5Source(SlicedSource):
    """A two-dimensional dataset of an HDF5 file."""

    @contextmanager
    def array(self) -> Iterator[Any]:
        """Open the dataset."""
        with opened_hdf5(self.path) as file:
            yield file[self.dataset]


def open_hdf5(path: Path, dataset: str | None = None) -> Source:
    """Open a dataset of an HDF5 file, in memory where it is small.

    Parameters
    ----------
    path : Path
        The file.
    dataset : str, optional
        Its name within the file, as ``"group/name"``; needed where the file holds more than one table.

    Examples
    --------
    >>> import tempfile, h5py, numpy as np, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/x.h5", "w") as file:
    ...         file["a/b"] = np.eye(3)
    ...     gramian.open(f"{folder}/x.h5::a/b")
    DenseSource(3 x 3, float64)
    """
    with opened_hdf5(path) as file:
        name = choose(_tables(file), dataset)
        array = file[name]
        chunk = array.chunks[0] if array.chunks else 1
        source = Hdf5Source(path, name, (int(array.shape[0]), int(array.shape[1])), np.dtype(array.dtype), chunk)
    return loaded(source)


def _tables(file: Any) -> dict[str, str]:
    """Return the datasets of two dimensions and real numbers, with their shapes."""
    found: dict[str, str] = {}

    def visit(name: str, item: Any) -> None:
        shape, dtype = getattr(item, "shape", None), getattr(item, "dtype", None)
        if shape is not None and len(shape) == 2 and isinstance(dtype, np.dtype) and dtype.kind in "fiub":
            found[name] = f"{shape[0]} x {shape[1]}, {dtype}"

    file.visititems(visit)
    return found
