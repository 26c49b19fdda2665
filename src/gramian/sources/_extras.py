"""Packages that come with an extra: loaded when a file needs them, and named with their extra where they are absent."""

from __future__ import annotations

from typing import Any

__all__ = ["load_anndata_io", "load_h5py", "load_pyarrow", "load_zarr"]


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
