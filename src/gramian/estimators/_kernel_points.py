"""Points of a kernel, in memory or in a file: some of their rows, and values of the kernel in float64."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._kernel_fitting import chosen_points
from gramian.kernels import Kernel
from gramian.operators import KernelOperator
from gramian.sources import Source, open_source

__all__ = ["dense_kernel", "gathered_rows", "kernel_diagonal", "opened"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def dense_kernel(kernel: Kernel, Z: Any) -> Matrix:
    """k(Z, Z) as a matrix in float64, also of points in float32."""
    return np.asarray(KernelOperator(kernel, Z, dtype=np.float64, store=False).to_dense())


def kernel_diagonal(kernel: Kernel, X: Any) -> Vector:
    """k(x, x) of every row, in float64; of a file in one pass, or in none where k(x, x) = 1."""
    X, n = opened(X)
    if kernel.normalised:
        return np.ones(n)
    if not isinstance(X, Source):
        single = getattr(X, "dtype", None) == np.float32  # for which a kernel would answer in float32
        return np.array(kernel.diagonal(X.astype(np.float64) if single else X), dtype=np.float64)
    out = np.empty(n)
    for block in X.blocks():
        out[block.start : block.stop] = kernel.diagonal(np.array(block.values, dtype=np.float64))
    return out


def opened(X: Any) -> tuple[Any, int]:
    """Points in memory, or the Source of a file; and how many they are."""
    if isinstance(X, (list, tuple)):
        return X, len(X)
    if isinstance(X, (Source, str, os.PathLike, np.memmap)):
        source = open_source(X)
        X = source.values if source.resident else source  # type: ignore[attr-defined]
    return X, int(X.shape[0])


def gathered_rows(X: Any, indices: Indices) -> Any:
    """Some rows, in memory and in the order asked for: of a file in one pass."""
    if not isinstance(X, Source):
        return chosen_points(X, indices)
    order = np.argsort(indices, kind="stable")
    ranked, out = indices[order], np.empty((len(indices), X.shape[1]), dtype=np.result_type(X.dtype, np.float32))
    for block in X.blocks():
        low, high = np.searchsorted(ranked, (block.start, block.stop))
        out[order[low:high]] = block.values[ranked[low:high] - block.start]
    return out
