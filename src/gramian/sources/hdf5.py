"""HDF5 files by h5py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gramian.sources._extras import load_h5py
from gramian.sources.base import Source
from gramian.sources.slices import SlicedSource, choose, loaded

__all__ = ["Hdf5Source", "open_hdf5", "opened_hdf5"]


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
