"""``gramian.open``: a Source from whatever the user has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj, is_numpy_array

from gramian.sources.arrays import DenseSource, SparseSource, TensorSource
from gramian.sources.base import Source
from gramian.sources.files import MemmapSource, NpySource
from gramian.sources.frames import frame_names, frame_to_array, is_frame, read_csv

__all__ = ["open_source"]

READERS = {".npy": NpySource, ".csv": read_csv}


def open_source(data: Any) -> Source:
    """Open an array, a data frame, a file or a Source as a :class:`~gramian.sources.Source`.

    Parameters
    ----------
    data : array-like, sparse matrix, data frame, tensor, path or Source
        NumPy arrays are read where they lie; ``.npy`` files and memory maps are read in blocks and may be larger
        than memory; ``.csv`` files need the ``tables`` extra.

    Returns
    -------
    Source
        Something that hands out blocks of rows.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> gramian.open(np.zeros((4, 3)))
    DenseSource(4 x 3, float64)
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        return _open_file(Path(data))
    if isinstance(data, np.memmap):
        return MemmapSource(data)
    if sp.issparse(data):
        return SparseSource(data)
    if is_frame(data):
        return DenseSource(frame_to_array(data), frame_names(data))
    if is_array_api_obj(data) and not is_numpy_array(data):
        return TensorSource(data)
    return DenseSource(np.asarray(data))


def _open_file(path: Path) -> Source:
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path}: cannot read files that end in {path.suffix!r}; {' and '.join(READERS)} are read.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    return reader(path)
