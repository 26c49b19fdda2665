"""AnnData in HDF5 (.h5ad) and in Zarr: a matrix, dense or sparse, with names and tables for its rows and columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.sources.arrays import SparseSource
from gramian.sources.base import Source, reading
from gramian.sources.columns import distinct
from gramian.sources.errors import SourceError
from gramian.sources.files import load_anndata_io
from gramian.sources.hdf5 import SlicedSource, check_indices, choose_dataset, dense_source, open_h5py, try_in_child
from gramian.sources.zarr import is_zarr, open_store, open_zarr, zarr_source

SPARSE = ("csr_matrix", "csc_matrix")


@dataclass(frozen=True)
class Annotated:
    """The matrix of an AnnData file, the names of its rows, and what is known of them."""

    source: Source
    row_names: npt.NDArray[np.str_]
    rows: Any  # a pandas data frame
    notes: tuple[str, ...] = ()


class SparseRowsSource(SlicedSource):
    """A sparse matrix stored by rows in an AnnData file or Zarr store; its blocks are sparse."""

    sparse = True

    def __init__(self, path: Path, dataset: str, shape: tuple[int, int], dtype: np.dtype[Any], stored: int) -> None:
        super().__init__(path, dataset, shape, dtype)
        self.stored = stored

    def row_bytes(self) -> float:
        """Return what a row takes on average: a value and a column number for each cell that is stored."""
        return float(self.stored * (self.dtype.itemsize + 8) / max(1, self.shape[0]))

    @contextmanager
    def array(self) -> Iterator[Any]:
        """Open the group of its three arrays: values, columns, and where each row begins."""
        with (open_store if is_zarr_name(self.path) else open_h5py)(self.path) as file:
            yield file[self.dataset]

    def read(self, array: Any, start: int, stop: int) -> Any:
        """Rows start to stop, sparse."""
        begins = array["indptr"][start : stop + 1].astype(np.int64)
        stored = slice(int(begins[0]), int(begins[-1]))
        parts = array["data"][stored], array["indices"][stored], begins - begins[0]
        values = check_indices(sp.csr_array(parts, shape=(stop - start, self.shape[1])))
        values.sum_duplicates()
        return values


def open_h5ad(path: Path, dataset: str | None = None) -> Source:
    """Open the matrix X of an AnnData file, or one of its layers; sparse stays sparse.

    Parameters
    ----------
    path : Path
        The file.
    dataset : str, optional
        ``"X"`` (default), a layer by name, or any matrix by its place, as ``"obsm/X_pca"``.
    """
    return read_h5ad(path, dataset).source


def is_zarr_name(path: Path) -> bool:
    """Whether a name is that of a Zarr store, which is a folder or a zip file."""
    return path.suffix.lower() != ".h5ad"


def is_annotated(path: Path) -> bool:
    """Whether a file holds AnnData: by its name, or by what a Zarr store says of itself."""
    if not is_zarr_name(path):
        return True
    if not is_zarr(path):
        return False
    with open_store(path) as root:
        return bool(root.attrs.get("encoding-type") == "anndata") and hasattr(root, "members")


def open_zarr_or_anndata(path: Path, dataset: str | None = None) -> Source:
    """Open an array of a Zarr store; of AnnData the matrix X, or another by its name, sparse where it is stored so."""
    return read_h5ad(path, dataset).source if is_annotated(path) else open_zarr(path, dataset)


def read_h5ad(path: Path, dataset: str | None = None) -> Annotated:
    """Open a matrix of an AnnData file or store, with the names and the table of its rows."""
    if is_zarr_name(path):
        elements, opened = load_anndata_io(), open_store(path)
    else:
        with reading(path, "a readable HDF5 file"), try_in_child(path):
            elements = load_anndata_io()
        opened = open_h5py(path)
    with opened as file:
        if not {"obs", "var"} <= set(file):
            raise SourceError("an HDF5 file without the tables obs and var of AnnData. Rename it to end in .h5.")
        places = [("", "X"), *((g, name) for g in ("layers", "obsm") if g in file for name in file[g])]
        items = {f"{g}/{name}" if g else name: (file[g] if g else file).get(name) for g, name in places}
        found = {place: _shape(item) for place, item in items.items() if item is not None and _shape(item)}
        wanted = dataset or ("X" if "X" in found else None)
        place = choose_dataset(found, f"layers/{wanted}" if f"layers/{wanted}" in found else wanted, "matrix")
        rows = elements.read_elem(file["obs"])
        columns = elements.read_elem(file["var"]).index if place == "X" or place.startswith("layers/") else None
        source = _source(path, place, file[place], elements)
    renamed: list[str] = []
    if columns is not None:
        source.feature_names, renamed = distinct([str(name) for name in columns])
    source = source.load() if isinstance(source, SlicedSource) else source
    return Annotated(source, np.array([str(name) for name in rows.index], dtype=np.str_), rows, tuple(renamed))


def _shape(item: Any) -> str:
    if item.attrs.get("encoding-type") in SPARSE:
        n, p = item.attrs["shape"]
        return f"{n} x {p}, sparse"
    shape: tuple[int, ...] = getattr(item, "shape", ())
    return f"{shape[0]} x {shape[1]}, {item.dtype}" if len(shape) == 2 and item.dtype.kind in "fiub" else ""


def _source(path: Path, place: str, item: Any, elements: Any) -> Source:
    kind = item.attrs.get("encoding-type")
    if kind not in SPARSE:
        return zarr_source(path, place, item) if is_zarr_name(path) else dense_source(path, place, item)
    n, p = (int(size) for size in item.attrs["shape"])
    if kind == "csr_matrix":
        return SparseRowsSource(path, place, (n, p), np.dtype(item["data"].dtype), int(item["data"].shape[0]))
    return SparseSource(check_indices(elements.read_elem(item)))  # stored by columns: no row without all of it
