"""Arrays in files that are read by slices of rows: what HDF5, Zarr and AnnData share, and HDF5 by h5py."""

from __future__ import annotations

import mmap
import struct
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source, memory_budget, read_ahead, reading, rows_at_a_time
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import load_h5py

HEAD = struct.Struct("<HHIQ")  # of an object in a heap
HEAP = b"GCOL\x01\x00\x00\x00"
MOST_UNPACKED = 10**4  # times the bytes that are stored: no filter packs numbers, even equal ones, much closer
MOST_SCANNED = 2**30  # bytes of a file that is looked through for damaged heaps: a tenth of a second at most

# What a child does with a file before we do: it looks at every attribute, and reads every text and every small array.
TRIAL = """
import sys, h5py
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]),) * 2)
except (ImportError, ValueError):
    pass
def attempt(call, *args):
    try:
        return call(*args)
    except Exception:
        return ()
def look(name, item):
    for key in attempt(list, item.attrs):
        attempt(item.attrs.__getitem__, key)
    if attempt(lambda: item.dtype.kind == "O" or item.nbytes <= 2**24):
        attempt(item.__getitem__, ())
with h5py.File(sys.argv[1], "r") as file:
    look("", file)
    attempt(file.visititems, look)
"""
PATIENCE = 120  # seconds of a processor for a small file, and one more for each MiB


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

    def read(self, array: Any, start: int, stop: int) -> Any:
        """Rows start to stop of the opened array."""
        return np.asarray(array[start:stop])

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of slices."""
        if rows is None:
            rows, row_bytes = rows_at_a_time(self.row_bytes()), self.row_bytes()
            if self.chunk * row_bytes <= memory_budget() / 8:
                rows = max(1, rows // self.chunk) * self.chunk
        return list(self.ranges(rows, 1))

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield slices, each read while the one before it is in use."""
        with reading(self.path, "readable"), self.array() as array:
            yield from read_ahead(self.row_spans(rows), partial(self.read, array))

    def load(self) -> Source:
        """The source in memory where it is within the memory budget, else as it is."""
        if self.shape[0] * self.row_bytes() > memory_budget():
            return self
        with self.array() as array:
            values = self.read(array, 0, self.shape[0])
        return (SparseSource if self.sparse else DenseSource)(values, self.feature_names)


def check_indices(matrix: Any) -> Any:
    """Return a sparse matrix from a file, whose indices are known to lie within it."""
    if matrix.format in ("csr", "csc", "bsr"):  # else products would read and write anywhere
        if np.any(np.diff(matrix.indptr) < 0):  # which scipy does not look for where nothing is stored
            raise SourceError("the sparse matrix has rows that end before they begin (indptr).")
        matrix.check_format(full_check=True)
    return matrix


def choose_dataset(found: dict[str, str], dataset: str | None, what: str = "dataset") -> str:
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
    >>> choose_dataset({"X": "5 x 2, float64"}, None)
    'X'
    """
    listed = ", ".join(f"{name} ({shape})" for name, shape in list(found.items())[:20]) or "no table of real numbers"
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    if dataset is None:
        if len(found) == 1:
            return next(iter(found))
        asked = Argument("dataset")
        raise SourceError(f"say which {what} is meant with ", asked, f"; the file holds {listed}{more}.")
    if dataset.strip("/") not in found:
        raise SourceError(
            f"no {what} {dataset!r} with rows and columns of real numbers; the file holds {listed}{more}."
        )
    return dataset.strip("/")


@contextmanager
def open_h5py(path: Path) -> Iterator[Any]:
    """Open an HDF5 file for reading; a damaged one is refused."""
    with reading(path, "a readable HDF5 file"), load_h5py().File(path, "r") as file:
        yield file


@contextmanager
def try_in_child(path: Path) -> Iterator[None]:
    """Let a child process read an HDF5 file first, while this one imports what it needs to read it.

    A damaged file can crash the HDF5 library, and with it the process. If it does so in the child, or the child never
    comes to an end, the file is refused; what the child can read or refuse is left to this process.
    """
    check_heaps(path)
    if not Path(sys.executable or "").name.lower().startswith("python"):  # no interpreter to start: embedded, frozen
        yield
        return
    limit = str(PATIENCE + path.stat().st_size // 2**20)
    none = subprocess.DEVNULL
    command = [sys.executable, "-P", "-c", TRIAL, str(path.absolute()), limit]
    with subprocess.Popen(command, stdin=none, stdout=none, stderr=none) as child:
        try:
            yield
        except BaseException:
            child.kill()
            raise
        code = child.wait()
    if code < 0 or code >= 2**30:  # a signal; on Windows an exception
        text = f"reading it makes the HDF5 library crash or run without end (status {code})"
        raise SourceError(f"damaged: {text}. Write the file again.", path=path)


def check_heaps(path: Path) -> None:
    """Refuse a file whose heaps of texts do not add up: the HDF5 library would walk in circles there.

    A heap (``GCOL``, its size) is a row of objects: each an index, a count of references, and its size. One of index 0
    is free space, whose size includes its own head.
    """
    size = path.stat().st_size
    if not 16 < size <= MOST_SCANNED:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(HEAP)
        while at >= 0:
            heap = data[at : at + int.from_bytes(data[at + 8 : at + 16], "little")]
            place = HEAD.size
            while place + HEAD.size <= len(heap):
                index, _, _, taken = HEAD.unpack_from(heap, place)
                step = HEAD.size + (taken + 7 & ~7) if index else taken
                if step < HEAD.size or place + step > len(heap):
                    place += at
                    raise SourceError(f"damaged: the heap at byte {at} has an object of {taken} bytes at byte {place}.")
                place += step
            at = data.find(HEAP, at + 8)


class Hdf5Source(SlicedSource):
    """A two-dimensional dataset of an HDF5 file."""

    @contextmanager
    def array(self) -> Iterator[Any]:
        """Open the dataset."""
        with open_h5py(self.path) as file:
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
    with reading(path, "a readable HDF5 file"), try_in_child(path):
        load_h5py()
    with open_h5py(path) as file:
        name = choose_dataset(_tables(file), dataset)
        source = dense_source(path, name, file[name])
    return source.load()


def dense_source(path: Path, name: str, array: Any) -> Hdf5Source:
    """Return the source of an opened dataset; one that is far larger than what the file stores is refused."""
    if array.nbytes > MOST_UNPACKED * max(2**20, array.id.get_storage_size()):
        text = f"{name} should have {array.nbytes} bytes of numbers, and {array.id.get_storage_size()} are stored."
        raise SourceError(f"damaged: {text} Write the file again.")
    chunk = array.chunks[0] if array.chunks else 1
    return Hdf5Source(path, name, (int(array.shape[0]), int(array.shape[1])), np.dtype(array.dtype), chunk)


def _tables(file: Any) -> dict[str, str]:
    """Return the datasets of two dimensions and real numbers, with their shapes."""
    found: dict[str, str] = {}

    def visit(name: str, item: Any) -> None:
        shape, dtype = getattr(item, "shape", None), getattr(item, "dtype", None)
        if shape is not None and len(shape) == 2 and isinstance(dtype, np.dtype) and dtype.kind in "fiub":
            found[name] = f"{shape[0]} x {shape[1]}, {dtype}"

    file.visititems(visit)
    return found
