"""What users hand over: numbers, columns and masked arrays, checked by name."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import host, is_tensor

__all__ = ["column_numbers", "numbers", "unmasked"]


def numbers(name: str, value: Any) -> npt.NDArray[np.float64]:
    """The value as an array of float64, or an error that names it.

    Examples
    --------
    >>> from gramian.likelihood.mixture.given import numbers
    >>> numbers("edges", [0, 1])
    array([0., 1.])
    """
    try:
        given = np.asarray(host(value) if is_tensor(value) else unmasked(value))
        if given.dtype.kind not in "biufO":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:76]} …"
        raise ValueError(f"{name} must be an array of real numbers, with rows of one length; got {shown}.") from None


def unmasked(X: Any) -> Any:
    """Masked cells as NaN: they are missing. All else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    values = np.array(X.data, dtype=X.dtype if X.dtype.kind in "fc" else np.float64)
    values[np.ma.getmaskarray(X)] = np.nan
    return values


def column_numbers(columns: Iterable[Any], d: int) -> npt.NDArray[np.intp]:
    """Columns by number, each once, counted from the end where negative."""
    found: list[int] = []
    for j in columns:
        if isinstance(j, (bool, np.bool_)) or not isinstance(j, Integral):
            mask = " For a mask, use np.flatnonzero(mask)." if isinstance(j, (bool, np.bool_)) else ""
            raise ValueError(f"A column is named by a whole number; got {j!r}.{mask}")
        if not -d <= int(j) < d:
            raise ValueError(f"There is no column {j}; there are {d}.")
        found.append(int(j) % d)
    if len(set(found)) < len(found) or not found:
        raise ValueError(f"Name one column or more, each once; got {found}.")
    return np.array(found, dtype=np.intp)
