r"""A Cholesky factor of a symmetric operator where it lives: (A + λI)⁻¹ on a device, for numbers on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import gpu, host, put, refuse_beyond_device, torch_dtype
from gramian.operators.base import Operator

__all__ = ["Factored", "factored", "factored_bytes"]

Matrix = npt.NDArray[np.float64]

REMEDY = "Use conjugate gradients (solver='cg'), which store no matrix."


class Factored:
    """(A + λI)⁻¹ by a factor on a device: NumPy in, NumPy out.

    Attributes
    ----------
    factor : gramian.compute.gpu.cholesky.BlockCholesky
        L.
    dtype : dtype
        NumPy's name of its dtype.
    """

    def __init__(self, factor: Any, dtype: Any) -> None:
        self.factor, self.dtype = factor, np.dtype(dtype)

    def solve(self, R: Matrix) -> Matrix:
        """(LLᵀ)⁻¹R, each column brought to unit length first: float32 has few exponents."""
        lengths = np.linalg.norm(R, axis=0)
        R = R / np.where(lengths > 0, lengths, 1.0)
        if not R.size:
            return R
        X = host(self.factor.solve(put(R, self.factor.device)))
        return np.asarray(X.astype(np.float64) * lengths)


def factored_bytes(n: int, dtype: Any = np.float64) -> int:
    """Bytes that the factor of n rows takes on a device, the room to make it included: n²/2 numbers and some more."""
    return int(gpu().cholesky.nbytes(n, np.dtype(dtype).itemsize))


def factored(A: Any, shift: float, dtype: Any = np.float64) -> Factored:
    """Factor A + λI on the device of A, half of it, each block evaluated into its place.

    Parameters
    ----------
    A : Operator of shape (n, n)
        Symmetric, on a device, with ``A.tile(rows, columns, dtype)``: :class:`~gramian.operators.DeviceKernelOperator`.
    shift : float
        λ.
    dtype : dtype, default=float64
        Of the factor.

    Returns
    -------
    Factored
        With ``solve(R)``.

    Raises
    ------
    MemoryError
        Where the factor does not fit on the device.
    numpy.linalg.LinAlgError
        Where A + λI is not positive definite in this dtype.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.kernels import Linear
    >>> from gramian.operators import DeviceKernelOperator
    >>> from gramian.operators.factoring import factored
    >>> A = DeviceKernelOperator(Linear(), np.array([[1.0], [2.0]]), device=torch.device("cpu"))
    >>> factored(A, 1.0).solve(np.array([[0.0], [3.0]])).round(6)  # of [[1, 2], [2, 4]] + I
    array([[-1.],
           [ 1.]])
    """
    n, name = _checked(A), np.dtype(dtype)
    refuse_beyond_device(factored_bytes(n, name), A.device, f"A Cholesky factor of {n} rows in {name}", REMEDY)
    kind = torch_dtype(name)

    def fill(rows: slice, columns: slice) -> Any:
        return A.tile(rows, columns, kind)

    return Factored(gpu().cholesky.BlockCholesky(n, fill, shift, device=A.device, dtype=kind), name)


def _checked(A: Operator) -> int:
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"A symmetric operator is square; this one has the shape {A.shape}.")
    if A.device is None or not hasattr(A, "tile"):
        raise ValueError(f"{A!r} is not on a device, or hands out no tiles: factor it with gramian.linear.Cholesky.")
    return A.shape[0]
