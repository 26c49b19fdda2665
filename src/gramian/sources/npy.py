"""Arrays in ``.npz`` archives and Matrix Market files: read whole, by NumPy and SciPy."""

from __future__ import annotations

import io
import mmap
import os
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.io
import scipy.sparse as sp

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source, memory_budget
from gramian.sources.hdf5 import choose

__all__ = ["MemmapSource", "NpySource", "open_mtx", "open_npz"]

BLOCK_BYTES = 2**24  # 16 MiB: long reads, and small beside any sensible memory budget


class NpySource(Source):
    """A two-dimensional array in a file: a header, then numbers in C or Fortran order.

    Parameters
    ----------
    path : path-like
        A ``.npy`` file.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from gramian.sources import NpySource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.npy")
    ...     np.save(path, np.ones((5, 2), dtype=np.float32))
    ...     NpySource(path)
    NpySource(5 x 2, float32)
    """

    resident = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = Path(path)
        shape, fortran, dtype, offset = _header(path)
        self._set(path, shape, fortran, dtype, offset)

    def _set(self, path: Path, shape: tuple[int, ...], fortran: bool, dtype: np.dtype[Any], offset: int) -> None:
        if len(shape) != 2:
            raise ValueError(f"{path}: expected a table (2 dimensions), the file holds an array of shape {shape}.")
        if dtype.kind not in "fiub":
            raise ValueError(f"{path}: expected real numbers, the file holds dtype {dtype}.")
        expected = offset + int(np.prod(shape, dtype=object)) * dtype.itemsize
        actual = path.stat().st_size
        if actual < expected:
            raise ValueError(
                f"{path}: truncated: {shape[0]} x {shape[1]} values of {dtype} need {expected} bytes, the file has "
                f"{actual}. Write it again."
            )
        self.path, self.fortran, self.offset = path, fortran, offset
        self.shape, self.dtype = (int(shape[0]), int(shape[1])), dtype

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks read from the file; the next one is read while the caller works on this one."""
        if rows is None:
            size = min(BLOCK_BYTES, memory_budget() // 8)
            rows = max(1, size // max(1, self.shape[1] * self.dtype.itemsize))
        spans = list(self.ranges(rows, 1))
        buffers = [self._buffer(rows), self._buffer(rows)]
        with self.path.open("rb", buffering=0) as file, ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._read, file, spans[0], buffers[0]) if spans else None
            for i, (start, stop) in enumerate(spans):
                assert ahead is not None
                values = ahead.result()
                if i + 1 < len(spans):
                    ahead = reader.submit(self._read, file, spans[i + 1], buffers[(i + 1) % 2])
                yield Block(start, stop, values)

    def _buffer(self, rows: int) -> npt.NDArray[Any]:
        shape = (min(rows, self.shape[0]), self.shape[1])
        return np.empty(shape, self.dtype, order="F" if self.fortran else "C")

    def _read(self, file: io.FileIO, span: tuple[int, int], buffer: npt.NDArray[Any]) -> npt.NDArray[Any]:
        start, stop = span
        item, (n, p) = self.dtype.itemsize, self.shape
        block = buffer[: stop - start]
        if not self.fortran:
            self._fill(file, block, self.offset + start * p * item)
            return block
        for j in range(p):
            self._fill(file, block[:, j], self.offset + (j * n + start) * item)
        return block

    def _fill(self, file: io.FileIO, out: npt.NDArray[Any], position: int) -> None:
        view = memoryview(out.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        file.seek(position)
        while view:
            got = file.readinto(view)
            if not got:
                raise ValueError(f"{self.path}: the file became shorter while it was read (at byte {file.tell()}).")
            view = view[got:]


class MemmapSource(Source):
    """A memory map of the user's, or a slice of one; its pages are given back after each block.

    Reading goes through the map, not through the file's name, which may lead elsewhere by now.
    """

    resident = False

    def __init__(self, X: np.memmap[Any, Any]) -> None:
        if X.ndim != 2:
            raise ValueError(f"Expected a table (2 dimensions), got a memory map of shape {X.shape}.")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"Expected real numbers, got a memory map of dtype {X.dtype}.")
        self.shape, self.dtype, self._map = (int(X.shape[0]), int(X.shape[1])), X.dtype, X

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield views of the map."""
        if rows is None:
            size = min(BLOCK_BYTES, memory_budget() // 8)
            rows = max(1, size // max(1, self.shape[1] * self.dtype.itemsize))
        values = np.asarray(self._map)
        for start, stop in self.ranges(rows, 1):
            yield Block(start, stop, values[start:stop])
            self._give_back()

    def _give_back(self) -> None:
        """Drop the map's pages from memory; the file, and what was written to a shared map, stay as they are."""
        pages = getattr(self._map, "_mmap", None)
        shared = getattr(self._map, "mode", "c") in ("r", "r+", "w+")  # a private map would lose its changes
        if shared and pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


def _header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Parse the header of a ``.npy`` file: shape, Fortran order, dtype, where the numbers begin."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{path}: not a readable .npy file: {error}") from error
        return shape, fortran, dtype, file.tell()


def open_npz(path: Path, dataset: str | None = None) -> Source:
    """Read one array of an ``.npz`` archive, or a sparse matrix that ``scipy.sparse.save_npz`` wrote.

    Parameters
    ----------
    path : Path
        The archive.
    dataset : str, optional
        The key of the array; needed where more than one is a table.

    Examples
    --------
    >>> import tempfile, numpy as np, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/x.npz", a=np.eye(3), b=np.ones((2, 2)))
    ...     gramian.open(f"{folder}/x.npz::a")
    DenseSource(3 x 3, float64)
    """
    if not zipfile.is_zipfile(path):  # NumPy would leave the file open
        raise ValueError(f"{path}: damaged, or not a readable .npz archive: it does not end as a zip file does.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            if {"format", "shape", "data"} <= set(archive.files):
                if dataset is not None:
                    raise ValueError(f"the archive holds one sparse matrix; dataset={dataset!r} is for several arrays.")
                return SparseSource(sp.load_npz(path))
            return DenseSource(archive[choose(_tables(archive), dataset, "array")])
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"{path}: damaged, or not a readable .npz archive: {error}") from error


def _tables(archive: Any) -> dict[str, str]:
    """Return the arrays of two dimensions and real numbers; only their headers are read."""
    found = {}
    for key in archive.files:
        name = key if key in archive.zip.namelist() else f"{key}.npy"
        with archive.zip.open(name) as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(member)
        if len(shape) == 2 and dtype.kind in "fiub":
            found[key] = f"{shape[0]} x {shape[1]}, {dtype}"
    return found


def open_mtx(path: Path) -> Source:
    """Read a Matrix Market file, compressed by gzip or not: sparse where it is written so.

    Examples
    --------
    >>> import tempfile, scipy.io, scipy.sparse as sp, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.mmwrite(f"{folder}/x.mtx", sp.eye_array(3))
    ...     gramian.open(f"{folder}/x.mtx")
    SparseSource(3 x 3, float64)
    """
    try:
        values = scipy.io.mmread(path)
    except (ValueError, OSError, EOFError, OverflowError) as error:
        raise ValueError(f"{path}: not a readable Matrix Market file: {error}") from error
    return SparseSource(values) if sp.issparse(values) else DenseSource(np.asarray(values))
