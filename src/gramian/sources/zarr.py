"""Zarr arrays, in a folder or a zip file, of format 2 or 3, by zarr."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gramian.sources.addresses import as_address
from gramian.sources.base import Source, reading
from gramian.sources.errors import SourceError
from gramian.sources.files import load_zarr
from gramian.sources.hdf5 import SlicedSource, choose_dataset

MARKS = ("zarr.json", ".zarray", ".zgroup")
MOST_ABSENT = 1000  # chunks that are not stored for one that is: more is no array that somebody wrote
WHOLE = "the array"  # what an array is called that is the whole store


def is_zarr(path: Path) -> bool:
    """Whether a folder or zip file holds a Zarr array or group."""
    if path.is_dir():
        return any((path / mark).exists() for mark in MARKS)
    if as_address(path) is not None or not zipfile.is_zipfile(path):
        return False
    with reading(path, "a readable zip file"), zipfile.ZipFile(path) as file:
        return any(mark in file.namelist() for mark in MARKS)


@contextmanager
def open_store(path: Path) -> Iterator[Any]:
    """Open what is in the folder or zip file: an array or a group."""
    zarr = load_zarr()
    if as_address(path) is not None:
        store = zarr.storage.FsspecStore.from_url(os.fspath(path), read_only=True)
    elif path.is_dir():
        store = zarr.storage.LocalStore(path, read_only=True)
    else:
        store = zarr.storage.ZipStore(path, mode="r")
    try:
        with reading(path, "a readable Zarr store"):
            yield zarr.open(store, mode="r")
    finally:
        store.close()


class ZarrSource(SlicedSource):
    """A two-dimensional Zarr array."""

    @contextmanager
    def array(self) -> Iterator[Any]:
        """Open the array."""
        with open_store(self.path) as root:
            yield root if self.dataset == WHOLE else root[self.dataset]


def open_zarr(path: Path, dataset: str | None = None) -> Source:
    """Open a Zarr array, in memory where it is small.

    Parameters
    ----------
    path : Path
        A folder or a zip file, of Zarr format 2 or 3.
    dataset : str, optional
        Which array, where the store is a group of more than one.

    Examples
    --------
    >>> import tempfile, zarr, numpy as np, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = zarr.save_array(f"{folder}/x.zarr", np.eye(3))
    ...     gramian.open(f"{folder}/x.zarr")
    DenseSource(3 x 3, float64)
    """
    if not is_zarr(path):
        raise SourceError(f"no Zarr array or group is in it (none of {', '.join(MARKS)}).")
    with open_store(path) as root:
        name = choose_dataset(_tables(root), dataset, "array")
        source = zarr_source(path, name, root if name == WHOLE else root[name])
    return source.load()


def zarr_source(path: Path, name: str, array: Any) -> ZarrSource:
    """Return the source of an opened array; chunks that are not stored are warned of."""
    shape = (int(array.shape[0]), int(array.shape[1]))
    _warn_of_absent_chunks(path, "" if name == WHOLE else name, array)
    return ZarrSource(path, name, shape, np.dtype(array.dtype), int(array.chunks[0]))


def _warn_of_absent_chunks(path: Path, name: str, array: Any) -> None:
    """Warn where chunks are not stored: they are read as the fill value, whether they were never written or are lost.

    A fill value of NaN needs no warning: such cells are missing, and treated as such.
    """
    if array.fill_value is not None and array.fill_value != array.fill_value:
        return
    sizes = getattr(array, "shards", None) or array.chunks
    grid = [-(-n // size) for n, size in zip(array.shape, sizes, strict=True)]
    if (address := as_address(path)) is not None:
        stored = set(address.list_files())
    elif path.is_dir():
        stored = {file.relative_to(path).as_posix() for file in (path / name).rglob("*")}
    else:
        with zipfile.ZipFile(path) as file:
            stored = set(file.namelist())
    count = math.prod(grid)
    if count > 2**16 and count > MOST_ABSENT * len(stored):
        raise SourceError(f"the array should have {count} chunks, and {len(stored)} files are stored. Write it again.")
    keys = (f"{name}/{array.metadata.encode_chunk_key(at)}".lstrip("/") for at in np.ndindex(*grid))
    absent = [key for key in keys if key not in stored]
    if absent:
        more = ", …" if len(absent) > 5 else ""
        warnings.warn(
            f"{path}: {len(absent)} of {count} chunks are not stored and read as {array.fill_value}: "
            f"{', '.join(absent[:5])}{more}. If they were lost, write the array again.",
            stacklevel=2,
        )


def _tables(root: Any) -> dict[str, str]:
    """Return the arrays of two dimensions and real numbers, with their shapes."""
    if hasattr(root, "shape"):
        items = [(WHOLE, root)]
    else:  # the arrays of a group and of the groups in it
        items = [(p.strip("/"), item) for p, item in root.members(max_depth=None) if hasattr(item, "shape")]
    return {
        name: f"{item.shape[0]} x {item.shape[1]}, {item.dtype}"
        for name, item in items
        if len(item.shape) == 2 and np.dtype(item.dtype).kind in "fiub"
    }
