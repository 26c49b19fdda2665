"""Numbers and weights as they should be, or an error that names what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_floats", "as_numbers", "as_weights"]

Vector = npt.NDArray[np.float64]


def as_floats(data: Any, name: str) -> Vector:
    """Return an array of real numbers; hidden, complex or written ones are refused by name."""
    if np.ma.isMaskedArray(data) and np.ma.getmaskarray(data).any():
        row = int(np.flatnonzero(np.ma.getmaskarray(data).ravel())[0])
        raise ValueError(f"{name} is masked at entry {row}: leave masked values out, as {name}.compressed() does.")
    given = np.asarray(data)
    if np.iscomplexobj(given):
        raise ValueError(f"{name} is complex: a likelihood needs real numbers. Take the real part, or the modulus.")
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        row, value = next((i, v) for i, v in enumerate(given.ravel()) if not _number(v))
        value = str(value) if isinstance(value, str) else value
        labels = f'Labels are fitted as "categorical"; one of them against the rest as "bernoulli" of x == {value!r}.'
        remedy = f" {labels}" if name == "data" else ""
        raise ValueError(f"{name} must be numbers; row {row} has {value!r}.{remedy}") from None


def _number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def as_numbers(data: Any, name: str) -> Vector:
    """Return a list of finite numbers; a column is one too."""
    x = as_floats(data, name)
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
    w = as_floats(weight, name)
    w = np.full(n, float(w)) if w.ndim == 0 and n is not None else w
    if w.ndim != 1 or (n is not None and len(w) != n):
        raise ValueError(f"{name} has shape {w.shape}; expected one for each of the {n if n else ''} records.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(f"{name} must be finite and not negative; row {bad[0]} has {w[bad[0]]}.")
    return w
