"""``gramian.open``: a Source from whatever the user has."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj, is_numpy_array

from gramian.compute.devices import to_device, to_numpy
from gramian.sources.addresses import as_address, as_path, is_several_names, must_fetch, open_fetched
from gramian.sources.anndata import open_h5ad, open_zarr_or_anndata
from gramian.sources.arrays import (
    DenseSource,
    SparseSource,
    TensorSource,
    frame_names,
    frame_to_array,
    is_frame,
    refuse_rounding,
    select,
    to_numbers,
)
from gramian.sources.base import Block, MappedSource, Source, naming, reading
from gramian.sources.columns import SparseListsSource, open_tabular, refuse_dataset
from gramian.sources.dask_arrays import DaskSource, is_dask
from gramian.sources.errors import SourceError
from gramian.sources.files import (
    SHEETS,
    TABULAR,
    check_content,
    describe_kind,
    split_dataset,
    spool_standard_input,
    suffix_of,
)
from gramian.sources.genotype_files import open_genotypes
from gramian.sources.genotype_names import is_genotype_name
from gramian.sources.hdf5 import open_hdf5
from gramian.sources.npy import MemmapSource, NpySource, open_mtx, open_npz
from gramian.sources.parts import PartsSource, is_pattern, list_parts
from gramian.sources.streams import is_stream, open_stream
from gramian.sources.zarr import is_zarr

# A new format is a line here: a file of one table, or one of several that are chosen by name.
READERS: dict[str, Callable[[Path], Source]] = {
    ".bed": open_genotypes,
    ".npy": NpySource,
    ".mtx": open_mtx,
    **dict.fromkeys((suffix for suffix in TABULAR if suffix not in SHEETS), open_tabular),
}
CONTAINERS: dict[str, Callable[[Path, str | None], Source]] = {
    ".npz": open_npz,
    **dict.fromkeys(SHEETS, open_tabular),
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".h5ad": open_h5ad,
    ".zarr": open_zarr_or_anndata,
    ".zip": open_zarr_or_anndata,
}


def open_source(data: Any, *, dataset: str | None = None, keep_empty: bool = True) -> Source:
    """Open an array, a data frame, a file or a Source as a :class:`~gramian.sources.Source`.

    Parameters
    ----------
    data : array-like, sparse matrix, data frame, tensor, path or Source
        NumPy arrays are read where they lie; ``.npy`` files and memory maps are read in blocks and may be larger
        than memory, and so are HDF5, Zarr and Parquet files beyond scikit-learn's ``working_memory``. ``"-"`` is
        standard input. Excel, Parquet and Feather files need the ``tables`` extra; HDF5, Zarr and AnnData files the
        ``arrays`` extra.
    dataset : str, optional
        Which array of a file that holds several; ``"file.h5::name"`` says the same.
    keep_empty : bool, default=True
        False leaves out rows and columns in which every cell is missing, of which no model can say anything:
        ``kept_rows`` and ``kept_columns`` of the source say which stayed, and ``spread`` gives results one for each row
        that was there, NaN for those left out.

    Returns
    -------
    Source
        Something that hands out blocks of rows.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> gramian.open(np.zeros((4, 3)))
    DenseSource(4 x 3, float64)
    >>> X = np.array([[1.0, 2.0, np.nan], [np.nan, np.nan, np.nan], [3.0, 5.0, np.nan], [5.0, 7.0, np.nan]])
    >>> rows = gramian.open(X, keep_empty=False)
    >>> rows.shape, rows.spread(gramian.PCA(1).fit_transform(rows)).shape
    ((3, 2), (4, 1))
    """
    return _open(data, dataset) if keep_empty else _leave_out_empty(_open(data, dataset))


def _leave_out_empty(source: Source) -> Source:
    """Some rows and columns of a source: those in which a cell is not missing. One pass over the data."""
    if source.sparse:
        return source  # cells that are not stored are zeros
    rows, columns = np.zeros(source.shape[0], np.bool_), np.zeros(source.shape[1], np.bool_)
    for block in source.blocks():
        seen = ~np.isnan(to_numpy(block.values))
        rows[block.start : block.stop] = seen.any(axis=1)
        columns |= seen.any(axis=0)
    if not rows.any():
        raise SourceError(f"{source.shape[0]} rows and {source.shape[1]} columns, and no number in any of them.")
    if rows.all() and columns.all():
        return source
    if source.device is None:
        found = select(source, np.flatnonzero(columns).tolist(), rows)
    else:
        found = TensorSource(source.values[to_device(rows, source.device)][:, to_device(columns, source.device)])
    found.kept_rows, found.kept_columns = rows, columns
    return found


def _open(data: Any, dataset: str | None) -> Source:
    """Open what is there by what it is."""
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        if os.fspath(data) != "-":
            return open_file(os.fspath(data), dataset)
        with spool_standard_input() as spool:
            source = open_file(str(spool.path), dataset)
            spool.keep_for(source)
            return source
    if isinstance(data, np.memmap):
        return _check_blocks(MemmapSource(data), data.filename or "a memory map")
    if sp.issparse(data):
        return SparseSource(data)
    if is_frame(data):
        return DenseSource(frame_to_array(data), frame_names(data))
    if is_dask(data):
        return DaskSource(data)
    if is_stream(data):
        return open_stream(data)
    if is_array_api_obj(data) and not is_numpy_array(data):
        return TensorSource(data)
    return DenseSource(np.asarray(to_numbers(data)))


def open_file(name: str, dataset: str | None = None) -> Source:
    """Open a file by how its name ends; a pattern or a folder of files as one table."""
    name, dataset = split_dataset(name, dataset)
    path = as_path(name)
    if as_address(path) is None and dataset is None and is_genotype_name(str(path)):
        return open_genotypes(str(path))
    if is_several(path):
        return PartsSource(list_files(path), partial(_open_part, dataset))
    if must_fetch(path):
        return open_fetched(path, dataset, open_file)
    suffix = check_file(path)
    with reading(path, describe_kind(suffix)):
        if suffix in CONTAINERS:
            return _check_blocks(CONTAINERS[suffix](path, dataset), path)
        refuse_dataset(suffix, dataset)
        return _check_blocks(READERS[suffix](path), path)


def open_sparse_parquet(
    path: str | os.PathLike[str],
    *,
    indices: str = "indices",
    values: str = "values",
    columns: int | Sequence[str] | None = None,
) -> Source:
    """Open a sparse table in Parquet: each row two lists, of the columns that are stored and of their values.

    So are cells × genes often published: a list of genes and a list of counts for each cell. Blocks stay sparse.

    Parameters
    ----------
    path : path-like
        A file, a folder of files, or a pattern such as ``"cells/*.parquet"``.
    indices, values : str
        Which columns of the file the lists are. Indices count from 0.
    columns : int or sequence of str, optional
        How many columns the table has, or what they are called; the largest index that the files' statistics tell,
        and one, where not given.

    Returns
    -------
    Source
        The rows, read in sparse blocks.

    Examples
    --------
    >>> import tempfile, gramian
    >>> from gramian.sources import open_sparse_parquet, write_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lists = {"indices": [[0, 2], [], [1]], "values": [[5.0, 1.0], [], [2.0]]}
    ...     write_parquet(f"{folder}/x.parquet", lists)
    ...     open_sparse_parquet(f"{folder}/x.parquet").to_array().toarray()
    array([[5., 0., 1.],
           [0., 0., 0.],
           [0., 2., 0.]])
    """
    place = as_path(path)
    names = None if columns is None or isinstance(columns, int) else [str(name) for name in columns]
    count = columns if isinstance(columns, int) or columns is None else len(columns)
    files = list_files(place) if is_several(place) else [place]
    if count is None:
        count = max(SparseListsSource(file, indices, values).shape[1] for file in files)
    open_part = partial(_open_lists, indices, values, count, names)
    return open_part(files[0]) if len(files) == 1 else PartsSource(files, open_part)


def _open_lists(indices: str, values: str, count: int, names: list[str] | None, path: Path) -> Source:
    if check_file(path) != ".parquet":
        raise SourceError("no Parquet file.", path=path)
    return SparseListsSource(path, indices, values, count, names)


def _open_part(dataset: str | None, part: Path) -> Source:
    return open_file(os.fspath(part), dataset)


def is_several(path: Path) -> bool:
    """Whether a name stands for several files: a pattern, or a folder that is no Zarr store."""
    pattern = is_pattern(str(path)) if as_address(path) is None else is_several_names(path)
    return pattern or (path.is_dir() and not is_zarr(path))


def list_files(name: str | Path) -> list[Path]:
    """Return the files that a pattern or a folder stands for, in natural order."""
    return list_parts(as_path(name), (*READERS, *CONTAINERS), is_zarr)


def _check_blocks(source: Source, path: str | os.PathLike[str]) -> Source:
    """Refuse numbers that float64 would round also in what is read block by block."""
    kind, size = source.dtype.kind, source.dtype.itemsize
    if source.resident or not ((kind in "iu" and size == 8) or (kind == "f" and size > 8)):
        return source

    def check(block: Block) -> Any:
        with naming(path):
            refuse_rounding(block.values, start=block.start, names=source.feature_names)
        return block.values.astype(np.float64) if kind == "f" else block.values

    return MappedSource(source, check, alike=kind != "f")


def check_file(path: Path) -> str:
    """Return what a file is by its name, once it is known to be there and to hold that."""
    suffix = ".zarr" if path.is_dir() and is_zarr(path) else suffix_of(path)
    known = [*READERS, *CONTAINERS]
    if path.is_dir() and suffix != ".zarr":
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if suffix not in known:
        text = f"cannot read files that end in {path.suffix!r}; {', '.join(known)} are read."
        raise SourceError(text, path=path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    if not path.is_dir():
        if not path.is_file():  # a pipe that nobody writes to would be waited for
            raise SourceError("a pipe or a device, not a file. Pipe it in as -, standard input.", path=path)
        with reading(path, describe_kind(suffix)):
            check_content(path, suffix)
    return suffix
