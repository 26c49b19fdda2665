"""What kernel methods do with their input: open points, check kernel matrices, and compute with them where they are."""

from __future__ import annotations

import os
import warnings
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array

from gramian.compute import factor
from gramian.compute.devices import is_tensor, like, to_numpy
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.kernels import Kernel, Precomputed, as_kernel
from gramian.operators import KernelOperator, Operator
from gramian.results import NumericalWarning
from gramian.sources import Source, open_source
from gramian.sources.arrays import is_frame

Array = npt.NDArray[np.float64]

ASYMMETRY = 1e-8  # of the largest entry, and ten times ε: more is not rounding
INDEFINITE = 1e-5  # of the largest eigenvalue, as scikit-learn tolerates
ENTRY_BYTES = 40  # on a device for each entry of a matrix that is decomposed: itself, eigenvectors, room to work


def is_precomputed(kernel: Any) -> bool:
    """Whether the "points" are a kernel matrix, by a kernel or its name."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def are_objects(kernel: Any, X: Any) -> bool:
    """Whether X is a sequence of anything but rows of numbers, which only a function of two objects can compare."""
    if not ((callable(kernel) or isinstance(kernel, Kernel)) and as_kernel(kernel).takes_objects):
        return False
    if is_array_api_obj(X):
        return bool(is_numpy_array(X) and X.dtype == object and X.ndim == 1)
    if isinstance(X, (Source, str)) or sp.issparse(X) or is_frame(X):
        return False
    rows = all(isinstance(x, (list, tuple, np.ndarray)) and all(isinstance(v, Real) for v in x) for x in X)
    return not rows or len({len(x) for x in X}) > 1


def open_points(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, int, Source | None]:
    """Return the points, how many they are, and the source of numbers that they were read from.

    Objects that are no numbers are taken as they are for a callable.
    """
    if are_objects(estimator.kernel, X):
        return list(X), len(X), None
    source = open_finite(estimator, X, reset=reset)
    return read_all(source), source.shape[0], source


def open_finite(estimator: Any, X: Any, *, reset: bool) -> Source:
    """Open rows of finite numbers."""
    try:
        source = open_input(estimator, X, reset=reset)
    except ValueError:
        if is_numpy_array(X) and X.ndim == 2 and X.dtype.kind == "f":
            refuse_non_finite(open_source(X))  # what is not a number is told before what has the wrong shape
        raise
    refuse_non_finite(source)
    return source


def read_all(source: Source, *, copy: bool = False) -> Any:
    """All rows, in memory: a kernel compares every one with every other.

    With ``copy`` they are an array of their own, for a model that keeps them: the caller's may change later.
    """
    if source.sparse:
        return source.values.copy() if copy else source.values
    if source.resident:
        values = to_numpy(source.values)
        return values.astype(values.dtype if values.dtype.kind == "f" else np.float64, copy=copy)
    out = np.empty(source.shape, dtype=np.float32 if source.dtype == np.float32 else np.float64)
    for block in source.blocks():
        out[block.start : block.stop] = block.values
    return out


def read_rows(X: Any, indices: npt.NDArray[np.intp]) -> Any:
    """Some rows, in memory and in the order asked for: of a file in one pass."""
    if not isinstance(X, Source):
        return take_points(X, indices)
    order = np.argsort(indices, kind="stable")
    ranked, out = indices[order], np.empty((len(indices), X.shape[1]), dtype=np.result_type(X.dtype, np.float32))
    for block in X.blocks():
        low, high = np.searchsorted(ranked, (block.start, block.stop))
        out[order[low:high]] = block.values[ranked[low:high] - block.start]
    return out


def load_points(X: Any) -> tuple[Any, int]:
    """Points in memory, or the Source of a file; and how many they are."""
    if isinstance(X, (list, tuple)):
        return X, len(X)
    if isinstance(X, (Source, str, os.PathLike, np.memmap)):
        source = open_source(X)
        X = source.values if source.resident else source
    return X, int(X.shape[0])


def take_points(X: Any, index: npt.NDArray[np.intp]) -> Any:
    """Some of the points, of an array or of a list of objects."""
    return [X[i] for i in index] if isinstance(X, (list, tuple)) else X[index]


def check_kernel_matrix(K: Any) -> npt.NDArray[Any]:
    """Return a precomputed kernel matrix, square and symmetric, or say which entries differ."""
    K = to_numpy(K)
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
    """Warn where the smallest eigenvalue of the centred kernel matrix is negative, measured by the largest."""
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


def dense_kernel(kernel: Kernel, Z: Any) -> Array:
    """k(Z, Z) as a matrix in float64, also of points in float32."""
    return np.asarray(KernelOperator(kernel, Z, dtype=np.float64, store=False).to_dense())


def kernel_diagonal(kernel: Kernel, X: Any) -> Array:
    """k(x, x) of every row, in float64; of a file in one pass, or in none where k(x, x) = 1."""
    X, n = load_points(X)
    if kernel.normalised:
        return np.ones(n)
    if not isinstance(X, Source):
        single = getattr(X, "dtype", None) == np.float32  # for which a kernel would answer in float32
        return np.array(kernel.diagonal(X.astype(np.float64) if single else X), dtype=np.float64)
    out = np.empty(n)
    for block in X.blocks():
        out[block.start : block.stop] = kernel.diagonal(np.array(block.values, dtype=np.float64))
    return out


def multiply(A: Operator, V: Array) -> Array:
    """A V in float64 and in NumPy, wherever A lives.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.inputs.kernels import multiply
    >>> from gramian.operators import Data
    >>> multiply(Data(np.eye(2)), np.ones((2, 1))).ravel()
    array([1., 1.])
    """
    return to_numpy(A.matmat(A.asarray(V)), float)


def dense_matrix(A: Operator) -> Any:
    """A as a matrix in float64 where it lives."""
    M = A.to_dense()
    return M if is_tensor(M) else np.asarray(M, dtype=np.float64)


def matmul(M: Any, x: Array) -> Array:
    """M x in NumPy, M where it lives."""
    return to_numpy(M @ like(M, x, M.dtype))


def eigh(M: Any, overwrite: bool = False) -> tuple[Array, Any]:
    """Eigenvalues of a symmetric matrix, from the smallest, in NumPy; its eigenvectors where it lives."""
    if is_tensor(M):
        values, vectors = array_namespace(M).linalg.eigh(M)
        return to_numpy(values), vectors
    return factor.eigh(M, overwrite=overwrite)


def decomposition_bytes(n: int) -> int:
    """Bytes that the decomposition of an n×n matrix takes on a device."""
    return ENTRY_BYTES * n * n
