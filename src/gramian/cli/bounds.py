"""Predictions of kernel regressions with the bound on the error of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bounded_predictions"]

Vector = NDArray[np.float64]


def bounded_predictions(model: Any, X: Any) -> tuple[Vector, Vector]:
    """Predictions of a kernel regression and the bound on the error of each; NaN where there is none."""
    if model.certificate_.error_bounds is None:
        found = np.asarray(model.predict(X))
        return found, np.full(found.shape, np.nan)
    found, bound = model.predict(X, return_bound=True)
    return np.asarray(found), np.asarray(bound)
