"""What regressions do with their targets: numbers, one row for each row of X, named where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_y

__all__ = ["check_targets", "one_of", "whole_numbers"]


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Raise an error unless the value is one of those allowed."""
    if not any(value is choice or value == choice for choice in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}.")


Matrix = npt.NDArray[np.float64]


def check_targets(estimator: Any, y: Any, n: int) -> tuple[Matrix, bool]:
    """Return the targets as an (n, t) float64 array, and whether they came as a vector."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    y = y.detach().cpu().numpy() if hasattr(y, "detach") else y
    _refuse_non_finite(y)
    values = np.asarray(_check_y(y, multi_output=np.asarray(y).ndim != 1, y_numeric=True, estimator=estimator))
    if len(values) != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n} rows, y {len(values)}."
        )
    values = values.astype(np.float64, copy=False)
    return (values[:, None], True) if values.ndim == 1 else (values, False)


def _refuse_non_finite(y: Any) -> None:
    """Name the first target that is not a finite number."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return  # scikit-learn says what is wrong with what are no numbers
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = f"row {bad[0][0]}" + (f", target {bad[0][1]}" if values.ndim > 1 else "")
        raise ValueError(
            f"Input y contains NaN or infinity: the first is {values[tuple(bad[0])]} in {where}, counted from 0. "
            "Remove such rows."
        )


def whole_numbers(w: Matrix | None) -> bool:
    """Whether weights are counts: all of them whole numbers."""
    return w is None or bool(np.all(w == np.floor(w)))
