"""Tables written as Parquet, by pyarrow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

__all__ = ["load_anndata_io", "load_h5py", "load_pyarrow", "load_zarr", "write_parquet"]


def load_pyarrow() -> Any:
    """Return pyarrow with its readers of CSV, Parquet and Feather."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise _absent("pyarrow", "tables", "CSV, Parquet and Feather files") from error
    return pyarrow


def load_h5py() -> Any:
    """Return h5py."""
    try:
        import h5py
    except ImportError as error:
        raise _absent("h5py", "arrays", "HDF5 files") from error
    return h5py


def load_zarr() -> Any:
    """Return zarr."""
    try:
        import zarr
    except ImportError as error:
        raise _absent("zarr", "arrays", "Zarr arrays") from error
    return zarr


def load_anndata_io() -> Any:
    """Return anndata's readers of single elements."""
    try:
        import anndata.io
    except ImportError as error:
        raise _absent("anndata", "arrays", ".h5ad files") from error
    return anndata.io


def _absent(package: str, extra: str, what: str) -> ImportError:
    return ImportError(f'{what} are read with {package}, which is not installed: pip install "gramian[{extra}]"')


def write_parquet(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write columns of one length as a Parquet file, compressed by zstd.

    Parameters
    ----------
    path : path-like
        Where; what is there is replaced.
    columns : mapping of str to array-like
        Names and values.

    Examples
    --------
    >>> import tempfile, gramian
    >>> from gramian.sources.extras import write_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(f"{folder}/x.parquet", {"a": [1.0, 2.0], "b": [3, 4]})
    ...     gramian.open(f"{folder}/x.parquet").values
    array([[1., 3.],
           [2., 4.]])
    """
    pa = load_pyarrow()
    pa.parquet.write_table(pa.table(dict(columns)), os.fspath(path), compression="zstd")
