"""Data frames (pandas, polars) as sources; neither package is imported for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["frame_names", "frame_to_array", "is_frame"]


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars data frame (neither package is imported to find out)."""
    return type(X).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(X, "columns")


def frame_names(X: Any) -> list[str] | None:
    """Return the names of the columns where all of them are text, as scikit-learn does."""
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def frame_to_array(X: Any) -> npt.NDArray[Any]:
    """Return the numbers of a data frame; columns that hold none are refused by name.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian.sources.frames import frame_to_array
    >>> frame_to_array(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}))
    array([[1. , 0.5],
           [2. , 1.5]])
    """
    bad = [str(name) for name in X.columns if not _numeric(X[name])]
    if bad:
        raise ValueError(
            f"Columns without numbers: {', '.join(bad)} (could not convert string to float). Drop or encode them first."
        )
    if X.shape[1] == 0:
        return np.empty((X.shape[0], 0))
    # missing values become NaN, which the estimator then refuses or handles by its own rules
    pandas = type(X).__module__.startswith("pandas")
    values = X.to_numpy(dtype=np.float64, na_value=np.nan) if pandas and _nullable(X) else np.asarray(X)
    return values.astype(np.float64) if values.dtype.kind == "O" else values


def _numeric(column: Any) -> bool:
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric() or str(dtype) == "Boolean")
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        return True
    return bool(getattr(dtype, "_is_numeric", False) or _holds_numbers(column))


def _holds_numbers(column: Any) -> bool:
    """Whether a column of Python objects is numbers throughout."""
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _nullable(X: Any) -> bool:
    return any(not isinstance(dtype, np.dtype) for dtype in X.dtypes)
