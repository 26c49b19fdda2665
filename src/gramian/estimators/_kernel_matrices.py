"""Dense matrices of kernels, NumPy's or on a device: multiplied by numbers on the host, decomposed where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace

from gramian.compute.devices import host, is_tensor, put, refuse_beyond_device
from gramian.compute.memory import refuse_beyond_memory
from gramian.operators import Operator

__all__ = ["beside", "decomposition_bytes", "dense", "eigenvectors", "multiplied", "refuse_beyond", "times"]

Array = Any  # of NumPy, or a tensor on a device
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ENTRY = 40  # bytes on a device for each entry of a matrix that is decomposed: itself, eigenvectors, room to work


def multiplied(A: Operator, V: Matrix) -> Matrix:
    """A V in float64 on the host, wherever A lives.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._kernel_matrices import multiplied
    >>> from gramian.operators import Data
    >>> multiplied(Data(np.eye(2)), np.ones((2, 1))).ravel()
    array([1., 1.])
    """
    return np.asarray(host(A.matmat(A.asarray(V))), dtype=np.float64)


def dense(A: Operator) -> Array:
    """A as a matrix in float64 where it lives."""
    M = A.to_dense()
    return M if is_tensor(M) else np.asarray(M, dtype=np.float64)


def beside(M: Array, x: Any) -> Array:
    """Numbers where a matrix lives, in its dtype."""
    return put(x, M.device, M.dtype) if is_tensor(M) else x


def times(M: Array, x: Matrix) -> Matrix:
    """M x on the host, M where it lives."""
    return np.asarray(host(M @ beside(M, x)))


def eigenvectors(M: Array, overwrite: bool = False) -> tuple[Vector, Array]:
    """Eigenvalues of a symmetric matrix, from the smallest, on the host; its eigenvectors where it lives."""
    if is_tensor(M):
        values, vectors = array_namespace(M).linalg.eigh(M)
        return np.asarray(host(values)), vectors
    found: tuple[Vector, Matrix] = scipy.linalg.eigh(M, driver="evd", overwrite_a=overwrite, check_finite=False)
    return found


def decomposition_bytes(n: int) -> int:
    """Bytes that the decomposition of an n×n matrix takes on a device."""
    return ENTRY * n * n


def refuse_beyond(nbytes: float, device: Any, what: str, remedy: str) -> None:
    """Raise a MemoryError that says what would take how much, of a device or, where there is none, of the machine."""
    if device is None:
        refuse_beyond_memory(nbytes, what, remedy)
    else:
        refuse_beyond_device(nbytes, device, what, remedy)
