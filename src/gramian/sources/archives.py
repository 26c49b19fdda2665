"""Arrays in ``.npz`` archives and Matrix Market files: read whole, by NumPy and SciPy."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Source
from gramian.sources.slices import choose

__all__ = ["open_mtx", "open_npz"]


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
