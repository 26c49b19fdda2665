"""What kernel methods do with their input: rows of numbers, a kernel matrix, or objects of any kind."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import is_array_api_obj, is_numpy_array

from gramian.compute.devices import host
from gramian.estimators._inputs import open_input, refuse_non_finite
from gramian.kernels import Kernel, Precomputed, as_kernel
from gramian.results import NumericalWarning
from gramian.sources import Source, open_source

__all__ = [
    "are_objects",
    "check_kernel_matrix",
    "checked_source",
    "gathered",
    "is_precomputed",
    "points_of",
    "warn_if_indefinite",
]

Matrix = npt.NDArray[Any]

ASYMMETRY = 1e-8  # of the largest entry, and ten times ε: more is not rounding
INDEFINITE = 1e-5  # of the largest eigenvalue, as scikit-learn tolerates


def is_precomputed(kernel: Any) -> bool:
    """Whether the "points" are a kernel matrix."""
    return isinstance(kernel, Precomputed)


def points_of(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, int]:
    """Return the points and how many they are; objects that are no numbers are taken as they are for a callable."""
    if are_objects(estimator.kernel, X):
        return list(X), len(X)
    source = checked_source(estimator, X, reset=reset)
    return gathered(source), source.shape[0]


def checked_source(estimator: Any, X: Any, *, reset: bool) -> Source:
    """Open rows of finite numbers."""
    try:
        source = open_input(estimator, X, reset=reset)
    except ValueError:
        if is_numpy_array(X) and X.ndim == 2 and X.dtype.kind == "f":
            refuse_non_finite(open_source(X))  # what is not a number is told before what has the wrong shape
        raise
    refuse_non_finite(source)
    return source


def are_objects(kernel: Any, X: Any) -> bool:
    """Whether X is a sequence of anything but rows of numbers, which only a function of two objects can compare."""
    if not _calls(kernel):
        return False
    if is_array_api_obj(X):
        return bool(is_numpy_array(X) and X.dtype == object and X.ndim == 1)
    if isinstance(X, (Source, str)) or hasattr(X, "toarray") or hasattr(X, "columns"):
        return False
    rows = all(isinstance(x, (list, tuple, np.ndarray)) and _numbers(x) for x in X)
    return not rows or len({len(x) for x in X}) > 1


def _calls(kernel: Any) -> bool:
    return as_kernel(kernel).takes_objects if callable(kernel) or isinstance(kernel, Kernel) else False


def _numbers(x: Any) -> bool:
    return all(isinstance(value, Real) for value in x)


def gathered(source: Source) -> Any:
    """All rows, in memory: a kernel compares every one with every other."""
    if source.sparse:
        return source.values  # type: ignore[attr-defined]
    if source.resident:
        values = host(source.values)  # type: ignore[attr-defined]
        return values if values.dtype.kind == "f" else values.astype(np.float64)
    out = np.empty(source.shape, dtype=np.float32 if source.dtype == np.float32 else np.float64)
    for block in source.blocks():
        out[block.start : block.stop] = block.values
    return out


def check_kernel_matrix(K: Any) -> Matrix:
    """Return a precomputed kernel matrix, square and symmetric, or say which entries differ."""
    K = np.asarray(K.toarray() if hasattr(K, "toarray") else K)
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"A precomputed kernel matrix must be square to fit; this one has the shape {K.shape}.")
    gap = np.abs(K - K.T)
    i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
    eps = float(np.finfo(K.dtype).eps) if K.dtype.kind == "f" else 0.0
    if gap[i, j] > max(ASYMMETRY, 10 * eps) * float(np.max(np.abs(K))):
        raise ValueError(
            f"The precomputed kernel matrix is not symmetric: entry ({i}, {j}) is {K[i, j]:g} and ({j}, {i}) is "
            f"{K[j, i]:g}. Use (K + K.T) / 2 if that is what you mean."
        )
    return np.asarray((K + K.T) / 2)


def warn_if_indefinite(low: float, eigenvalues: Any) -> None:
    """Warn where the smallest eigenvalue of the centred kernel matrix is negative beside the largest."""
    top = float(np.max(eigenvalues, initial=0.0))
    if low >= -INDEFINITE * top:
        return
    if low <= -top:
        message = (
            f"The kernel matrix is not positive semidefinite: its eigenvalue {low:.4g} is larger in size than the "
            f"largest, {top:.4g}, so it is no matrix of inner products. Check its sign, and the kernel."
        )
    else:
        message = (
            f"The kernel matrix is indefinite: its smallest eigenvalue is {low:.4g} and its largest {top:.4g}. "
            "Components with positive eigenvalues are returned; distances in feature space are not to be trusted."
        )
    warnings.warn(message, NumericalWarning, stacklevel=3)
