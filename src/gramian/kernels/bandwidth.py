"""How wide a kernel should be, from the data: the median distance, or the variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.kernels.base import as_points, is_sparse
from gramian.kernels.radial import squared_distances

__all__ = ["gamma_by_rule", "median_distance", "scale_gamma"]

ROWS = 2000  # distances among this many rows estimate the median to a percent or two


def median_distance(X: Any, *, seed: int = 0, rows: int = ROWS) -> float:
    """Median distance ‖x − x′‖ between different rows, of a seeded sample where there are many.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import median_distance
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    X = as_points(X)
    n = X.shape[0]
    if n > rows:
        X = X[np.sort(np.random.default_rng(seed).choice(n, rows, replace=False))]
    squares = squared_distances(X)[np.triu_indices(X.shape[0], 1)]
    apart = squares[squares > 0]
    if not len(apart):
        raise ValueError("The rows are all equal, so their median distance is 0: give gamma as a number.")
    # copies of one row say nothing about distances, unless they are few
    return float(np.sqrt(np.median(squares) or np.median(apart)))


def scale_gamma(X: Any) -> float:
    """1/(p·Var X), Var over all entries of X; 1/p where they are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import scale_gamma
    >>> scale_gamma(np.array([[0.0, 2.0], [2.0, 0.0]]))
    0.5
    """
    X = as_points(X)
    return float(1.0 / (X.shape[1] * (_variance(X) or 1.0)))


def _variance(X: Any) -> float:
    """Variance of all entries, zeros included, without cancellation."""
    if not is_sparse(X):
        return float(np.var(X, dtype=np.float64))
    size = X.shape[0] * X.shape[1]
    values = X.data.astype(np.float64)
    mean = values.sum() / size
    return float((np.sum((values - mean) ** 2) + (size - len(values)) * mean**2) / size)


def gamma_by_rule(rule: str, X: Any) -> float:
    """γ by the name of its rule: "scale", or "median" for 1/2m²."""
    return scale_gamma(X) if rule == "scale" else 0.5 / median_distance(X) ** 2
