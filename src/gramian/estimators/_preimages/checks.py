"""Arguments of the search for pre-images, checked and named where they are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._preimages.landscape import as_dense

__all__ = ["Limits", "coefficients", "shaped"]

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """The numbers that steer a search."""

    penalty: float
    n_neighbors: int
    tol: float
    max_iterations: int

    def __post_init__(self) -> None:
        if not 0 <= self.penalty < np.inf:
            raise ValueError(f"penalty must be a number from 0 on, got {self.penalty!r}.")
        if self.n_neighbors < 2:
            raise ValueError(f"n_neighbors must be 2 or more for a position between them, got {self.n_neighbors!r}.")
        if not 0 < self.tol < np.inf:
            raise ValueError(f"tol must be a positive number, got {self.tol!r}.")
        if self.max_iterations < 1:
            raise ValueError(f"max_iterations must be 1 or more, got {self.max_iterations!r}.")


def coefficients(G: Any, n: int) -> Matrix:
    """Return Γ, one row for each point and one column for each training row."""
    G = as_dense(G)
    if G.ndim != 2 or G.shape[1] != n:
        raise ValueError(f"G must have a row for each point and a column for each of the {n} rows of X; got {G.shape}.")
    return _finite("G", G)


def shaped(name: str, values: Any, shape: tuple[int, ...]) -> Matrix:
    """Return an array after a check of its shape."""
    values = as_dense(values)
    if values.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {values.shape}.")
    return _finite(name, values)


def _finite(name: str, values: Matrix) -> Matrix:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        place = tuple(bad[0].tolist())
        raise ValueError(f"{name} has {values[place]} at {place}; every number must be finite.")
    return values
