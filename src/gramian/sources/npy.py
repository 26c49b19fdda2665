"""NumPy's files: ``.npy`` and memory maps, read in blocks; ``.npz`` and Matrix Market files, read whole."""

from __future__ import annotations

import io
import math
import mmap
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import scipy.io
import scipy.sparse as sp

from gramian.sources.addresses import as_path
from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source, naming, read_ahead, reading, rows_at_a_time
from gramian.sources.errors import Argument, SourceError
from gramian.sources.hdf5 import check_indices, choose_dataset
from gramian.sources.text import open_text

CHUNK = 2**22
LONGEST_LINE = 2**20
NUMERAL = b"0123456789+-.eE \t\r\nnaifNAIFtyTY"  # of the numbers in a Matrix Market file, inf and nan included
NUMBERS = re.compile(rb"\s*(?:[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)\s+)*+", re.IGNORECASE)


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
        self.path = path = as_path(path)
        with naming(path), path.open("rb") as file:
            with reading(path, "a readable .npy file"):
                shape, self.fortran, dtype = _read_header(file)
            self.offset = file.tell()
            if len(shape) != 2 or min(shape) < 0:
                raise SourceError(f"expected a table (2 dimensions), the file holds an array of shape {shape}.")
            if dtype.kind not in "fiub":
                raise SourceError(f"expected real numbers, the file holds dtype {dtype}.")
            expected = self.offset + int(np.prod(shape, dtype=object)) * dtype.itemsize
            actual = path.stat().st_size
            if actual != expected:
                wrong = "truncated" if actual < expected else "longer than its header says"
                raise SourceError(
                    f"{wrong}: {shape[0]} x {shape[1]} values of {dtype} need {expected} bytes, the file has {actual}. "
                    "Write it again."
                )
        self.shape, self.dtype = (int(shape[0]), int(shape[1])), dtype

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of blocks."""
        return list(self.ranges(rows or rows_at_a_time(self.shape[1] * self.dtype.itemsize), 1))

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks read from the file; the next one is read while the caller works on this one."""
        item, (n, p) = self.dtype.itemsize, self.shape
        spans = self.row_spans(rows)
        rows = max((stop - start for start, stop in spans), default=1)
        order: Any = "F" if self.fortran else "C"
        buffers = [np.empty((rows, p), self.dtype, order=order) for _ in range(2)]
        with self.path.open("rb", buffering=0) as file:

            def read(start: int, stop: int) -> npt.NDArray[Any]:
                block = buffers[(start - self.first) // rows % 2][: stop - start]
                if not self.fortran:
                    self._fill(file, block, self.offset + start * p * item)
                    return block
                for j in range(p):
                    self._fill(file, block[:, j], self.offset + (j * n + start) * item)
                return block

            yield from read_ahead(spans, read)

    def _fill(self, file: Any, out: npt.NDArray[Any], position: int) -> None:
        view = memoryview(out.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        file.seek(position)
        while view:
            got = file.readinto(view)
            if not got:
                text = f"the file became shorter while it was read (at byte {file.tell()})."
                raise SourceError(text, path=self.path)
            view = view[got:]


class MemmapSource(Source):
    """A memory map of the user's, or a slice of one; its pages are given back after each block.

    Reading goes through the map, not through the file's name, which may lead elsewhere by now.

    Parameters
    ----------
    X : numpy.memmap of shape (n, p)
        The rows.
    """

    resident = False

    def __init__(self, X: np.memmap[Any, Any]) -> None:
        self.shape, self.dtype, self._map = DenseSource(X).shape, X.dtype, X

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield views of the map."""
        values, pages = np.asarray(self._map), getattr(self._map, "_mmap", None)
        shared = getattr(self._map, "mode", "c") in ("r", "r+", "w+")  # a private map would lose its changes
        for start, stop in self.ranges(rows or rows_at_a_time(self.shape[1] * self.dtype.itemsize), 1):
            yield Block(start, stop, values[start:stop])
            if shared and pages is not None and hasattr(mmap, "MADV_DONTNEED"):
                pages.madvise(mmap.MADV_DONTNEED)  # the file, and what was written to the map, stay as they are


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and dtype from the header of a ``.npy`` file."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def read_headers(archive: Any) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and dtype of every array of an open ``.npz`` archive, whose size must be what these say.

    A zip file's checksum is compared at the end of a member, which a damaged size puts where nobody reads.

    Examples
    --------
    >>> import io, numpy as np
    >>> from gramian.sources.npy import read_headers
    >>> file = io.BytesIO()
    >>> np.savez(file, a=np.eye(3))
    >>> start = file.seek(0)
    >>> read_headers(np.load(file))
    {'a': ((3, 3), dtype('float64'))}
    """
    headers = {}
    for info in archive.zip.infolist():
        if info.filename.endswith(".npy"):
            with archive.zip.open(info) as member:
                shape, _, dtype = _read_header(member)
                whole = member.tell() + math.prod(shape) * dtype.itemsize
            if info.file_size != whole and not dtype.hasobject:
                raise SourceError(f"damaged: {info.filename} has {info.file_size} bytes, and {whole} by its header.")
            headers[info.filename[:-4]] = shape, dtype
    return headers


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
        raise SourceError("damaged, or not a readable .npz archive: it does not end as a zip file does.")
    with reading(path, "a readable .npz archive"), np.load(path, allow_pickle=False) as archive:
        headers = read_headers(archive)
        if {"format", "shape", "data"} <= set(archive.files):
            if dataset is not None:
                asked = Argument("dataset", dataset)
                raise SourceError("the archive holds one sparse matrix; ", asked, " is for several arrays.")
            return SparseSource(check_indices(sp.load_npz(path)))
        tables = {key: (shape, dtype) for key, (shape, dtype) in headers.items() if len(shape) == 2}
        found = {key: f"{n} x {p}, {dtype}" for key, ((n, p), dtype) in tables.items() if dtype.kind in "fiub"}
        return DenseSource(archive[choose_dataset(found, dataset, "array")])


def open_mtx(path: Path) -> Source:
    """Read a Matrix Market file, compressed or not: sparse where it is written so.

    Examples
    --------
    >>> import tempfile, scipy.io, scipy.sparse as sp, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.mmwrite(f"{folder}/x.mtx", sp.eye_array(3))
    ...     gramian.open(f"{folder}/x.mtx")
    SparseSource(3 x 3, float64)
    """
    with reading(path, "a readable Matrix Market file"):
        # scipy's reader drops what follows a number, and does not survive a NUL or a number that the file breaks off in
        with open_text(path) as file:
            count = 0
            while (line := file.readline(LONGEST_LINE)).startswith(b"%"):
                count += 1
                if b"\0" in line:
                    raise SourceError("the comments hold a NUL (0x00).")
            at, last, rest, lines = file.tell() - len(line), b"", b"", count
            while data := line or file.read(CHUNK):
                if strange := data.translate(None, NUMERAL):
                    where = at + data.index(strange[:1])
                    raise SourceError(f"byte 0x{strange[0]:02x} at position {where} is no part of a number.")
                at, last, line, data = at + len(data), data[-1:], b"", rest + data
                end = NUMBERS.match(data).end()  # type: ignore[union-attr]
                lines, rest = lines + data.count(b"\n", 0, end), data[end:]
                if len(rest.split(None, 1)) > 1 or rest[-1:].isspace():  # not only a number that the chunk breaks off
                    break
            if rest and NUMBERS.fullmatch(rest + b"\n") is None:
                text = rest.split(None, 1)[0][:40].decode("ascii")
                raise SourceError(f"line {lines + 1}: {text!r} is no number.")
        if last == b"\n" and path.suffix.lower() not in (".xz", ".zst"):
            values = scipy.io.mmread(path)
        else:
            with open_text(path) as file:
                values = scipy.io.mmread(io.BytesIO(file.read() + b"\n"))
    return SparseSource(values) if sp.issparse(values) else DenseSource(np.asarray(values))
