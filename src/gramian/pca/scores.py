"""Scores and reconstruction errors of rows, computed block by block where the rows live."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.compute.devices import like, to_numpy
from gramian.inputs.opening import refuse_non_finite
from gramian.pca.problem import centred_data
from gramian.sources import Source

__all__ = ["score_like", "scores", "scores_and_errors"]

Array = Any


def score_like(source: Source, Z: Any) -> Any:
    """Z as scores of this source are: in its array type, float32 for float32 data."""
    xp = source.xp
    return xp.astype(like(source, Z), xp.float32 if source.dtype == xp.float32 else xp.float64)


def scores(source: Source, components: Array, mean: Array, scale: Array | None) -> Array:
    """(x − x̄)/s times the components, in float32 for float32 data and float64 for all else."""
    xp = source.xp
    dtype = xp.float32 if source.dtype == xp.float32 else xp.float64
    A = centred_data(source, like(source, mean), like(source, scale), dtype)
    Z = A @ like(source, components).T
    if not bool(xp.all(xp.isfinite(Z))):
        refuse_non_finite(source)
    return Z


def scores_and_errors(source: Source, components: Array, mean: Array, scale: Array | None) -> tuple[Array, Array]:
    """Scores z of the rows of a source, and ‖x − x̄ − V z‖² of each, in float64."""
    xp = source.xp
    V = xp.astype(like(source, components), xp.float64).T
    A = centred_data(source, like(source, mean), like(source, scale), xp.float64)
    if source.sparse:
        Z = A @ V
        return Z, np.maximum(_squared_lengths(source, to_numpy(mean), to_numpy(scale)) - np.sum(Z**2, axis=1), 0.0)
    parts, errors = [], []
    for _, _, D in A.rows():
        parts.append(D @ V)
        errors.append(xp.sum((D - parts[-1] @ V.T) ** 2, axis=1))
    return xp.concat(parts, axis=0), xp.concat(errors, axis=0)


def _squared_lengths(source: Source, mean: Array, scale: Array | None) -> Array:
    """‖(x − x̄)/s‖² of sparse rows: Σ_stored ((x − x̄)² − x̄²)/s² + Σ x̄²/s²."""
    X = source.values.astype(np.float64)
    s2 = np.ones(X.shape[1]) if scale is None else np.asarray(scale) ** 2
    change = X.copy()
    change.data = X.data * (X.data - 2 * mean[X.indices]) / s2[X.indices]
    return np.asarray(change.sum(axis=1)).ravel() + float(np.sum(mean**2 / s2))
