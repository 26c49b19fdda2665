"""Parameters of kernels: numbers, one number per feature, or a rule that finds them from data."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RULES", "freeze", "is_automatic", "known", "per_feature", "plain", "positive"]

RULES = ("median", "scale")


def freeze(kernel: Any, **values: Any) -> None:
    """Set checked values on a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(kernel, name, value)


def is_automatic(value: Any) -> bool:
    """Whether the value waits for data."""
    return isinstance(value, str)


def known(kernel: Any) -> None:
    """Refuse a kernel whose parameters wait for data."""
    if kernel.automatic:
        raise ValueError(f"{kernel!r} finds a parameter from data: use the formula of kernel.resolved(X).")


def plain(scale: Any) -> float | npt.NDArray[np.float64]:
    """A number of Python, or an array of one for each feature."""
    return float(scale) if np.ndim(scale) == 0 else np.asarray(scale)


def positive(name: str, value: Any, *, rules: tuple[str, ...] = (), optional: bool = False) -> Any:
    """Return a positive number, a tuple of them, a rule or None: what a frozen kernel can hold and compare."""
    if value is None and optional:
        return None
    if isinstance(value, str):
        if value in rules:
            return value
        allowed = f", or one of {', '.join(map(repr, rules))}" if rules else ""
        raise ValueError(f"{name} must be a positive number{allowed}; got {value!r}.")
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.ndim > 1 or not np.all(np.isfinite(numbers) & (numbers > 0)):
        raise ValueError(f"{name} must be a positive number, or one for each feature; got {value!r}.")
    return float(numbers) if isinstance(value, Real) or numbers.ndim == 0 else tuple(numbers.tolist())


def per_feature(name: str, value: float | tuple[float, ...], p: int) -> float | npt.NDArray[np.float64]:
    """Return the value as a number, or as an array after a check of its length."""
    if isinstance(value, tuple):
        if len(value) != p:
            raise ValueError(f"{name} has {len(value)} values for data with {p} columns: give one, or one for each.")
        return np.asarray(value)
    return value
