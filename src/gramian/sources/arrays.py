"""Arrays, sparse matrices, tensors and frames as sources, numbers that float64 holds exactly, and views of sources."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from array_api_compat import array_namespace, device

from gramian.compute.devices import to_numpy
from gramian.sources.base import Block, MappedSource, SelectedSource, Source, memory_budget
from gramian.sources.errors import SourceError

DEVICE_BYTES = 2**31  # of a block of float64 numbers on a GPU, whose loops cut it further
WHOLE = 2**53  # up to here float64 holds every whole number


def to_numbers(X: Any, what: str = "X", start: int = 0) -> Any:
    """Return an array, or lists of numbers, as numbers that float64 holds; masked and absent cells are NaN.

    Every computation is in float64 at most. Whole numbers beyond 2⁵³ and long doubles that would be rounded are refused
    by row and column, since a certificate would be one of other data; so are complex numbers, dates and records. What
    is neither array nor list, text, and objects that are no numbers are returned as they are.

    Parameters
    ----------
    X : array-like
        Masked arrays included; of object arrays, None and ``pandas.NA`` are missing cells.
    what : str, default="X"
        What an error calls it.
    start : int, default=0
        Rows of it that came before these.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources.arrays import to_numbers
    >>> to_numbers(np.ma.masked_equal([[1, 2], [3, 4]], 3))
    array([[ 1.,  2.],
           [nan,  4.]])
    """
    if type(X).__module__.partition(".")[0] in ("pandas", "polars") and not is_frame(X):
        X = np.asarray(X) if getattr(X.dtype, "kind", "O") in "fiubmMc" else np.array(list(X), dtype=object)
    if not isinstance(X, (np.ndarray, list, tuple)):
        return X
    values = np.asarray(X)
    if values.dtype.names is not None:
        raise SourceError(
            f"{what} is an array of records with the fields {', '.join(values.dtype.names)}. Convert it with "
            f"numpy.lib.recfunctions.structured_to_unstructured({what})."
        )
    if values.dtype.kind == "c":
        raise SourceError(f"Complex data not supported: {what} has dtype {values.dtype}, real numbers are expected.")
    if values.dtype.kind in "mM":
        raise SourceError(f"{what} holds dates or times (dtype {values.dtype}). Convert them to numbers first.")
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X) else None
    if mask is not None:
        values = np.where(mask, values.dtype.type(0), values)  # what is behind a mask is nobody's business
    if values.dtype.kind == "O" or (isinstance(X, (list, tuple)) and values.dtype.kind == "f"):
        values = _convert_objects(X, values, what)
    refuse_rounding(values, what, start)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    if mask is None:
        return values
    if values.dtype.kind not in "fiub":
        raise SourceError(
            f"{what} has masked entries, the first in row {np.argwhere(mask)[0][0] + 1}. Leave such rows out."
        )
    values = values.astype(np.result_type(values.dtype, np.float16 if values.dtype.kind == "f" else np.float64))
    values[mask] = np.nan
    return values


def _convert_objects(X: Any, values: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """Return Python's numbers as float64, or the array as it is where some are no numbers."""
    if values.dtype.kind == "f":  # lists: whole numbers among decimals are rounded already
        with np.errstate(invalid="ignore"):
            if not np.any(np.abs(values) > WHOLE):
                return values
        values = np.array(X, dtype=object)
    pandas = sys.modules.get("pandas")  # where it is not loaded there is no pandas.NA
    absent = np.zeros(values.shape, np.bool_) if pandas is None else pandas.isna(values)
    try:
        floats: npt.NDArray[np.float64] = np.where(absent, np.nan, values).astype(np.float64)
    except (TypeError, ValueError):
        return values
    except OverflowError:
        refuse_rounding(values, what)
        raise
    with np.errstate(invalid="ignore"):
        if np.any(np.abs(floats) > WHOLE):
            refuse_rounding(values, what)
    return floats


def refuse_rounding(values: Any, what: str = "X", start: int = 0, names: list[str] | None = None) -> None:
    """Raise an error that names the first number that float64 does not hold, if there is one.

    Rows and columns are counted from 1, after ``start`` rows that came before.

    Looked at are 64-bit integers, in one pass and another where some are large, long doubles, Python's numbers, and
    numbers in words.
    """
    sparse = sp.issparse(values)
    cells: npt.NDArray[Any] = values.data if sparse else values
    if cells.dtype.itemsize < 8 or cells.dtype.kind not in "fiuOUS" or cells.dtype == np.float64 or cells.size == 0:
        return
    if cells.dtype.kind in "OUS":
        rounded = np.vectorize(_is_rounded, otypes=[np.bool_])(cells)
    elif cells.dtype.kind == "f":
        with np.errstate(over="ignore"):
            rounded = (cells.astype(np.float64) != cells) & ~np.isnan(cells)
    elif cells.max() <= WHOLE and cells.min() >= -WHOLE:
        return
    else:  # a large float64 less its upper 32 bits is exact
        high = cells >> 32
        rounded = cells.astype(np.float64) - high * 2.0**32 != (cells - (high << 32)).astype(np.float64)
    if not rounded.any():
        return
    at = tuple(int(i) for i in np.argwhere(rounded)[0])
    digits = str(cells[at])
    if sparse:
        at = (int(np.searchsorted(values.indptr, at[0], side="right")) - 1, int(values.indices[at[0]]))
    where = f" in row {at[0] + start + 1}" if at else ""
    if len(at) > 1:
        where += f", column {at[1] + 1}" + ("" if names is None else f" ({names[at[1]]!r})")
    shown = digits if len(digits) <= 40 else f"{digits[:20]}… ({len(digits)} digits)"
    raise SourceError(
        f"{what} holds {shown}{where}, counted from 1, which float64 would round. Subtract a number near it from "
        "the whole column first, in its own dtype, or say that the rounding is meant with astype(float)."
    )


def _is_rounded(cell: Any) -> bool:
    """Whether a large number, of Python or of NumPy, or a whole one in words, is another one as a float."""
    if isinstance(cell, (str, bytes)):
        try:
            cell = int(cell)
        except ValueError:  # with a point, or no number
            return False
    if isinstance(cell, Integral):
        cell = int(cell)  # NumPy would compare it rounded
    elif not isinstance(cell, (Real, Decimal)):
        return False
    try:
        return bool(abs(cell) > WHOLE and cell != float(cell))
    except OverflowError:
        return True


def _two_dimensional(X: Any) -> tuple[int, int]:
    if X.ndim != 2:
        raise SourceError(
            f"Expected a table of rows and columns (2 dimensions), got shape {tuple(X.shape)}. Reshape your data "
            "with array.reshape(-1, 1) if it has one column, or array.reshape(1, -1) if it is one row."
        )
    return int(X.shape[0]), int(X.shape[1])


class DenseSource(Source):
    """A NumPy array of any real dtype and memory layout, read where it lies.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The rows.
    feature_names : list of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources import DenseSource
    >>> DenseSource(np.eye(3, dtype=np.int8))
    DenseSource(3 x 3, int8)
    """

    values: Any = None

    def __init__(self, X: npt.NDArray[Any], feature_names: list[str] | None = None) -> None:
        self.shape = _two_dimensional(X)
        if X.dtype.kind not in "fiub":
            raise SourceError(
                f"Expected real numbers, got an array of dtype {X.dtype}. Convert it with X.astype(float)."
            )
        refuse_rounding(X, names=feature_names)
        X = X.astype(np.float64) if X.dtype.kind == "f" and X.dtype.itemsize > 8 else X
        self.values, self.dtype, self.feature_names = X, X.dtype, feature_names

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield views of the array: nothing is copied."""
        for start, stop in self.ranges(rows, self.shape[1] * 8):
            yield Block(start, stop, self.values[start:stop])

    def one_block(self, rows: int | None) -> Block | None:
        """All rows, which most arrays are read as."""
        n, p = self.shape
        whole = type(self) is DenseSource and self.first == 0 and self.last is None
        return Block(0, n, self.values) if whole and (rows or memory_budget() // (32 * max(p, 1))) >= n else None


class SparseSource(Source):
    """A scipy.sparse matrix or array of any format, kept as CSR with duplicates summed.

    Parameters
    ----------
    X : sparse matrix or sparse array of shape (n, p)
        The rows.
    feature_names : list of str, optional
        Names of the columns.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gramian.sources import SparseSource
    >>> SparseSource(sp.eye_array(3, format="coo"))
    SparseSource(3 x 3, float64)
    """

    sparse = True
    values: Any = None

    def __init__(self, X: Any, feature_names: list[str] | None = None) -> None:
        self.shape = _two_dimensional(X)
        if X.dtype.kind not in "fiub":
            raise SourceError(f"Expected real numbers, got a sparse matrix of dtype {X.dtype}.")
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        refuse_rounding(X, names=feature_names)
        self.values, self.dtype, self.feature_names = X, X.dtype, feature_names

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the matrix whole (its products are bounded by their dense factor), or ``rows`` rows at a time."""
        if rows is None:
            yield Block(0, self.shape[0], self.values)
            return
        for start, stop in self.ranges(rows, 1):
            yield Block(start, stop, self.values[start:stop])


class TensorSource(Source):
    """A torch tensor on any device, or another array of the array API standard.

    Parameters
    ----------
    X : tensor of shape (n, p)
        The rows.
    feature_names : list of str, optional
        Names of the columns.
    """

    values: Any = None

    def __init__(self, X: Any, feature_names: list[str] | None = None) -> None:
        self.shape = _two_dimensional(X)
        self.xp = array_namespace(X)
        if not self.xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
            raise SourceError(f"Expected real numbers, got a tensor of dtype {X.dtype}.")
        if str(getattr(X, "layout", "torch.strided")) != "torch.strided":
            raise SourceError(
                f"Expected a dense tensor, got one of layout {X.layout}. Pass a scipy.sparse matrix instead."
            )
        if getattr(X, "requires_grad", False):
            X = X.detach()
        if X.dtype in (self.xp.int64, self.xp.uint64) and 0 not in self.shape and self.xp.max(self.xp.abs(X)) > WHOLE:
            refuse_rounding(to_numpy(X), names=feature_names)
        self.values, self.dtype, self.feature_names = X, X.dtype, feature_names
        self.device = device(X)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield views of the tensor: few on a GPU, where memory is plenty and each block costs a wait."""
        if rows is None and getattr(self.device, "type", "cpu") != "cpu":
            rows = max(1, DEVICE_BYTES // (8 * max(1, self.shape[1])))
        for start, stop in self.ranges(rows, self.shape[1] * 8):
            yield Block(start, stop, self.values[start:stop, :])


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars data frame (neither package is imported to find out)."""
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(X).__mro__}
    return not names.isdisjoint({("pandas", "DataFrame"), ("polars", "DataFrame")})


def frame_names(X: Any) -> list[str] | None:
    """Return the names of the columns where all of them are text, as scikit-learn does."""
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def frame_to_array(X: Any) -> npt.NDArray[Any]:
    """Return the numbers of a data frame; columns that hold none are refused by name.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian.sources.arrays import frame_to_array
    >>> frame_to_array(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}))
    array([[1. , 0.5],
           [2. , 1.5]])
    """
    columns = [X.iloc[:, j] if hasattr(X, "iloc") else X[:, j] for j in range(X.shape[1])]
    kinds = {str(column.dtype) for column in columns}
    bad = [str(name) for name, column in zip(X.columns, columns, strict=True) if not _is_numeric(column, str(name))]
    if bad:
        raise SourceError(
            f"Columns without numbers: {', '.join(bad)} (could not convert string to float). Drop or encode them first."
        )
    if not columns:
        return np.empty((X.shape[0], 0))
    # missing values become NaN, which the estimator then refuses or handles by its own rules
    pandas = type(X).__module__.startswith("pandas")
    nullable = pandas and any(not isinstance(dtype, np.dtype) for dtype in X.dtypes)
    values = X.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else np.asarray(X)
    values = to_numbers(values) if values.dtype.kind == "O" else values
    if values.dtype == np.float64 and kinds != {"float64"} and len(values):  # whole numbers may have been rounded
        largest = np.maximum(np.fmax.reduce(values, axis=0), -np.fmin.reduce(values, axis=0))
        for j in np.flatnonzero(largest > WHOLE):
            refuse_rounding(np.array(list(columns[j]), dtype=object), f"Column {X.columns[j]!r}")
    return values


def _is_numeric(column: Any, name: str) -> bool:
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric() or str(dtype) == "Boolean")
    if (isinstance(dtype, np.dtype) and dtype.kind in "fiub") or getattr(dtype, "_is_numeric", False):
        return True
    if dtype.kind in "mM":
        return False
    values = to_numbers(np.array(list(column), dtype=object), f"Column {name!r}")
    return bool(values.dtype.kind == "f")  # Python objects may be numbers throughout


def map_source(
    source: Source, change: Callable[[Block], Any], columns: int | None = None, *, alike: bool = False
) -> Source:
    """Return the changed source: an array where the data are in memory, else computed block by block.

    Parameters
    ----------
    source : Source
        The data.
    change : callable
        Takes a block of rows and returns the changed values.
    columns : int, optional
        How many columns there are after the change, where their number changes.
    alike : bool, default=False
        As for :class:`MappedSource`.

    Returns
    -------
    Source
        The changed data.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.arrays import map_source
    >>> map_source(gramian.open(np.array([[1.0, np.nan]])), lambda b: np.nan_to_num(b.values)).values
    array([[1., 0.]])
    """
    view = MappedSource(source, change, columns, alike=alike)
    if not source.resident:
        return view
    if view.sparse:
        return SparseSource(view.to_array(), view.feature_names)
    out = np.empty(view.shape, view.dtype)
    for block in view.blocks():
        out[block.start : block.stop] = block.values
    return DenseSource(out, view.feature_names)


def select(source: Source, columns: list[int] | None = None, rows: npt.NDArray[np.bool_] | None = None) -> Source:
    """Return some rows and columns of a source: a copy where it is in memory, else picked block by block.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.arrays import select
    >>> select(gramian.open(np.arange(6).reshape(2, 3)), [2, 0]).values
    array([[2, 0],
           [5, 3]])
    """
    if columns is not None and columns == list(range(source.shape[1])):
        columns = None
    if rows is not None and rows.all():
        rows = None
    if columns is None and rows is None:
        return source
    picked = SelectedSource(source, None if columns is None else np.asarray(columns, dtype=np.intp), rows)
    if not source.resident:
        return picked
    (block,) = picked.blocks(source.shape[0])
    return (SparseSource if source.sparse else DenseSource)(block.values, picked.feature_names)


def column_values(source: Source, j: int) -> npt.NDArray[Any]:
    """Return one column: a pass over the data where they are in a file."""
    parts = [b.values[:, [j]].toarray() if source.sparse else np.array(b.values[:, [j]]) for b in source.blocks()]
    return np.concatenate(parts).ravel()
