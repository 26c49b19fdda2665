"""Arrays, sparse matrices, tensors and data frames as sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from array_api_compat import array_namespace, device

from gramian.sources.base import Block, Source

DEVICE_BYTES = 2**31  # of a block of float64 numbers on a GPU, whose loops cut it further


def _two_dimensional(X: Any) -> tuple[int, int]:
    if X.ndim != 2:
        raise ValueError(
            f"Expected a table of rows and columns (2 dimensions), got shape {tuple(X.shape)}. Reshape your data "
            "with array.reshape(-1, 1) if it has one column, or array.reshape(1, -1) if it is one row."
        )
    return int(X.shape[0]), int(X.shape[1])


class DenseSource(Source):
    """A NumPy array of any real dtype and memory layout, read where it lies.

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
            raise ValueError(
                f"Expected real numbers, got an array of dtype {X.dtype}. Convert it with X.astype(float)."
            )
        self.values, self.dtype, self.feature_names = X, X.dtype, feature_names

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield views of the array: nothing is copied."""
        for start, stop in self.ranges(rows, self.shape[1] * 8):
            yield Block(start, stop, self.values[start:stop])


class SparseSource(Source):
    """A scipy.sparse matrix or array of any format, kept as CSR with duplicates summed.

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
            raise ValueError(f"Expected real numbers, got a sparse matrix of dtype {X.dtype}.")
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self.values, self.dtype, self.feature_names = X, X.dtype, feature_names

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the matrix whole (its products are bounded by their dense factor), or ``rows`` rows at a time."""
        if rows is None:
            yield Block(0, self.shape[0], self.values)
            return
        for start, stop in self.ranges(rows, 1):
            yield Block(start, stop, self.values[start:stop])


class TensorSource(Source):
    """A torch tensor on any device, or another array of the array API standard."""

    values: Any = None

    def __init__(self, X: Any, feature_names: list[str] | None = None) -> None:
        self.shape = _two_dimensional(X)
        self.xp = array_namespace(X)
        if not self.xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
            raise ValueError(f"Expected real numbers, got a tensor of dtype {X.dtype}.")
        if str(getattr(X, "layout", "torch.strided")) != "torch.strided":
            raise ValueError(
                f"Expected a dense tensor, got one of layout {X.layout}. Pass a scipy.sparse matrix instead."
            )
        if getattr(X, "requires_grad", False):
            X = X.detach()
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
    bad = [str(name) for name in X.columns if not _is_numeric(X[name])]
    if bad:
        raise ValueError(
            f"Columns without numbers: {', '.join(bad)} (could not convert string to float). Drop or encode them first."
        )
    if X.shape[1] == 0:
        return np.empty((X.shape[0], 0))
    # missing values become NaN, which the estimator then refuses or handles by its own rules
    pandas = type(X).__module__.startswith("pandas")
    nullable = pandas and any(not isinstance(dtype, np.dtype) for dtype in X.dtypes)
    values = X.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else np.asarray(X)
    return values.astype(np.float64) if values.dtype.kind == "O" else values


def _is_numeric(column: Any) -> bool:
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric() or str(dtype) == "Boolean")
    if (isinstance(dtype, np.dtype) and dtype.kind in "fiub") or getattr(dtype, "_is_numeric", False):
        return True
    try:  # Python objects may be numbers throughout
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True
