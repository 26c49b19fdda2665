"""Checks and conversions that need nothing of scikit-learn, which loads slowly: commands on genotypes do without it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gramian.compute.devices import is_tensor, to_numpy
from gramian.sources.arrays import frame_to_array, is_frame, to_numbers


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise an error unless the value is one of those allowed."""
    if not any(value is choice or value == choice for choice in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}.")


def check_integer(name: str, value: Any, least: int = 1) -> int:
    """The value as an int, which must be a whole number of at least ``least``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_share(name: str, value: Any) -> None:
    """Raise an error that names the parameter where it does not lie between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name}={value!r} must lie between 0 and 1.")


def is_lazy(values: Any) -> bool:
    """Whether an array, a column or a frame of Dask, which is not imported to find out."""
    return type(values).__module__.startswith(("dask.", "dask_expr.")) and hasattr(values, "compute")


def fetch_numbers(values: Any, what: str) -> Any:
    """Bring targets, weights or penalties into memory, as numbers that float64 holds; what is masked is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.inputs.values import fetch_numbers
    >>> fetch_numbers(np.ma.array([1, 2], mask=[False, True]), "y")
    array([ 1., nan])
    """
    values = values.compute() if is_lazy(values) else values
    values = to_numpy(values) if is_tensor(values) else values
    return frame_to_array(values) if is_frame(values) else to_numbers(values, what)
