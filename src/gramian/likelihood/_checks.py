"""Numbers and weights as they should be, or an error that names what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_numbers", "as_weights"]

Vector = npt.NDArray[np.float64]


def as_numbers(data: Any, name: str) -> Vector:
    """Return a list of finite numbers; a column is one too."""
    x: Vector = np.asarray(data, dtype=np.float64)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else np.atleast_1d(x)
    if x.ndim != 1:
        raise ValueError(
            f"{name} has shape {x.shape}: this family describes single numbers. Fit the columns one by one."
        )
    if not len(x):
        raise ValueError(f"{name} is empty: there is no observation.")
    bad = np.flatnonzero(~np.isfinite(x))
    if len(bad):
        raise ValueError(
            f"{name} must be finite; row {bad[0]} has {x[bad[0]]}. Censored data are Intervals(lower, upper)."
        )
    return x


def as_weights(weight: Any, n: int | None, name: str = "sample_weight") -> Vector:
    """Return frequencies as numbers: finite, none negative, one for each of n records."""
    w = np.asarray(weight, dtype=np.float64)
    w = np.full(n, float(w)) if w.ndim == 0 and n is not None else w
    if w.ndim != 1 or (n is not None and len(w) != n):
        raise ValueError(f"{name} has shape {w.shape}; expected one for each of the {n if n else ''} records.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(f"{name} must be finite and not negative; row {bad[0]} has {w[bad[0]]}.")
    return w
