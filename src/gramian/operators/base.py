"""The base of all operators: what every linear map can do, and the capabilities that some have beyond that."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import is_numpy_namespace, is_torch_namespace

from gramian.compute import tiles
from gramian.compute.devices import (
    dense_loops,
    gpu,
    refuse_beyond_device,
    to_device,
    to_numpy,
    torch_dtype,
    vector_bytes,
)
from gramian.compute.threads import quiet_blas

Array = Any

IDENTITY_COLUMNS = 256  # columns of the identity multiplied at a time where a Gram matrix has no shorter way


class Capability(enum.Flag):
    """What an operator may be able to do beyond products: solvers ask ``Capability.DIAGONAL in A.capabilities``."""

    NONE = 0
    DIAGONAL = enum.auto()  # A.diagonal()
    COLUMNS = enum.auto()  # A.columns(indices, rows)
    TILES = enum.auto()  # A.tile(rows, columns, dtype), without forming the rest
    FACTOR = enum.auto()  # A.device_factor(shift, dtype)


class Operator(ABC):
    r"""A linear map A from p to n numbers: ``A @ V``, ``A.T @ U``, and the two normal products.

    A concrete operator gives ``shape``, ``dtype``, ``xp``, ``device``, ``passes`` and :meth:`matmat`,
    :meth:`rmatmat`; the rest follows, and is overridden where there is a shorter way.

    Attributes
    ----------
    shape : tuple of int
        (n, p).
    dtype : dtype
        Dtype of the products.
    xp, device : module, device
        Where the products live; a solver makes its own arrays there and asks no more.
    resident : bool
        Whether another pass over the data costs no reading.
    sparse : bool
        Whether the data are sparse and rows must not be made dense.
    by_columns : bool
        Whether the data are stored by columns, so that AAᵀU takes one pass over them and AᵀAV two.
    offset : float
        ‖removed rank-one part‖²: how much larger the numbers multiplied are than those of A itself.
    precision : str
        How the products are made, where a certificate should say so: the device and its mode of arithmetic.
    capabilities : Capability
        Which of :meth:`diagonal`, :meth:`columns`, :meth:`tile` and :meth:`device_factor` it has.
    """

    shape: tuple[int, int]
    dtype: Any
    xp: Any = np
    device: Any = None
    resident: bool = True
    sparse: bool = False
    by_columns: bool = False
    offset: float = 0.0
    precision: str = ""
    capabilities: Capability = Capability.NONE

    @property
    def device_name(self) -> str:
        """Where the products are computed, as a certificate says it: ``"cpu"``, ``"cuda:0"``."""
        return "cpu" if self.device is None else str(self.device)

    @property
    def uses_torch(self) -> bool:
        """Whether the products are tensors of torch, on whichever device."""
        return is_torch_namespace(self.xp)

    @property
    def placement(self) -> dict[str, Any]:
        """The keyword with which ``xp`` makes a new array where this operator lives."""
        return {} if self.device is None else {"device": self.device}

    @property
    def epsilon(self) -> float:
        """Relative error of what is multiplied: the rounding unit, or more where a device uses fewer bits."""
        return float(self.xp.finfo(self.dtype).eps)

    @property
    def room(self) -> int:
        """Bytes that a solver may keep vectors in where this operator lives: a quarter of ``working_memory``."""
        return vector_bytes(self.device)

    @property
    @abstractmethod
    def passes(self) -> int:
        """How often the data behind this operator have been read from beginning to end."""

    @abstractmethod
    def matmat(self, V: Array) -> Array:
        """A V for V of shape (p, k)."""

    @abstractmethod
    def rmatmat(self, U: Array) -> Array:
        """Aᵀ U for U of shape (n, k)."""

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """Aᵀ diag(w) A V; in one pass over the data where the operator can."""
        Y = self.matmat(V)
        return self.rmatmat(Y if w is None else w[:, None] * Y)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """A diag(w) Aᵀ U; in one pass over the data where the operator can."""
        Y = self.rmatmat(U)
        return self.matmat(Y if w is None else w[:, None] * Y)

    def gram(self, w: Array | None = None) -> Array:
        """Aᵀ diag(w) A as a dense p×p matrix."""
        return self._by_identity(self.shape[1], lambda E: self.normal(E, w))

    def cogram(self, w: Array | None = None) -> Array:
        """A diag(w) Aᵀ as a dense n×n matrix."""
        return self._by_identity(self.shape[0], lambda E: self.conormal(E, w))

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield (start, stop, rows of A V) in dense blocks of bounded size; V = I where None is given."""
        V = self.eye(self.shape[1]) if V is None else V
        yield 0, self.shape[0], self.matmat(V)

    def triangle(self, V: Array | None = None) -> Array:
        """R of A V = QR, by QR of one block of rows after another under the R so far: one pass."""
        kernels, R = dense_loops(self.xp), None
        for _, _, block in self.rows(V):
            part = kernels.triangle(block)
            R = part if R is None else kernels.triangle(self.xp.concat([R, part], axis=0))
        return R

    def to_dense(self) -> Array:
        """A as a dense array: for small problems and tests."""
        blocks = [block for _, _, block in self.rows()]
        return blocks[0] if len(blocks) == 1 else self.xp.concat(blocks, axis=0)

    def diagonal(self) -> Array:
        """A_ii of a square A."""
        raise self._lacks(Capability.DIAGONAL)

    def columns(self, indices: Any, rows: Any = None) -> Array:
        """Some columns of A as a dense array, or some rows of them."""
        raise self._lacks(Capability.COLUMNS)

    def tile(self, rows: slice, columns: slice, dtype: Any = None) -> Array:
        """A new array of the entries in these rows and columns, in a dtype of its own where one is given."""
        tile = self.to_dense()[rows, columns]
        return tile if dtype is None else self.xp.astype(tile, dtype, copy=False)

    def packed_triangle(self, dtype: Any) -> npt.NDArray[Any]:
        """One triangle of a symmetric A in LAPACK's packed rectangles, in NumPy: what Cholesky factors."""
        return tiles.pack_triangle(self.as_tiles(dtype))

    def as_tiles(self, dtype: Any) -> tiles.Tiled:
        """A symmetric A as something that hands out tiles of NumPy in a dtype, each evaluated when asked for."""
        return _DenseTiles(to_numpy(self.to_dense(), np.dtype(dtype)))

    def device_factor(self, shift: float, dtype: Any = np.float64) -> DeviceFactor:
        """(A + λI)⁻¹ by a Cholesky factor on the device of A: half of it, each tile evaluated into its place.

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
        >>> from gramian.operators import kernel_operator
        >>> A = kernel_operator(Linear(), np.array([[1.0], [2.0]]), device=torch.device("cpu"))
        >>> A.device_factor(1.0).solve(np.array([[0.0], [3.0]])).round(6)  # of [[1, 2], [2, 4]] + I
        array([[-1.],
               [ 1.]])
        """
        n, name = self.shape[0], np.dtype(dtype)
        if n != self.shape[1]:
            raise ValueError(f"A symmetric operator is square; this one has the shape {self.shape}.")
        if Capability.FACTOR not in self.capabilities:
            raise self._lacks(Capability.FACTOR)
        what = f"A Cholesky factor of {n} rows in {name}"
        remedy = ("Use conjugate gradients, ", ("solver", "cg"), ", which store no matrix.")
        refuse_beyond_device(device_factor_bytes(n, name), self.device, what, remedy)
        kind = torch_dtype(name)

        def fill(rows: slice, columns: slice) -> Any:
            return self.tile(rows, columns, kind)

        return DeviceFactor(gpu().cholesky.BlockCholesky(n, fill, shift, device=self.device, dtype=kind))

    def session(self) -> AbstractContextManager[None]:
        """Prepare the machine for many products in turn; a solver's loop runs inside."""
        return quiet_blas() if is_numpy_namespace(self.xp) else nullcontext()

    def eye(self, k: int) -> Array:
        """The k×k identity where this operator lives."""
        return self.xp.eye(k, dtype=self.dtype, **self.placement)

    def asarray(self, x: Any) -> Array:
        """X as an array where this operator lives, in its dtype."""
        if isinstance(x, np.ndarray) and min(x.strides, default=0) < 0:
            x = x.copy()  # torch takes no negative strides
        return self.xp.asarray(x, dtype=self.dtype, **self.placement)

    @property
    def T(self) -> Operator:
        """The transposed operator."""
        return Transposed(self)

    def __matmul__(self, V: Array) -> Array:
        """Multiply a vector or a block of columns, after a check of its shape."""
        if V.ndim not in (1, 2) or V.shape[0] != self.shape[1]:
            raise ValueError(
                f"Cannot multiply an operator of shape {self.shape} by an array of shape {tuple(V.shape)}."
            )
        V = V if V.dtype == self.dtype else self.asarray(V)
        return self.matmat(V[:, None])[:, 0] if V.ndim == 1 else self.matmat(V)

    def _by_identity(self, size: int, multiply: Any) -> Array:
        eye = self.eye(size)
        parts = [multiply(eye[:, i : i + IDENTITY_COLUMNS]) for i in range(0, size, IDENTITY_COLUMNS)]
        return self.xp.concat(parts, axis=1)

    def _lacks(self, capability: Capability) -> ValueError:
        return ValueError(f"{self!r} has no {str(capability.name).lower()} of its own.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} x {self.shape[1]}, {self.dtype})"


class _DenseTiles:
    """A dense symmetric matrix that hands out its tiles."""

    symmetric, buffers, serial, side = True, 0, False, 0

    def __init__(self, K: npt.NDArray[Any]) -> None:
        self.K, self.shape, self.dtype = K, K.shape, K.dtype

    def fill(self, rows: slice, columns: slice, buffers: Any) -> npt.NDArray[Any]:
        return self.K[rows, columns]


class Composed(Operator):
    """What every operator over one other operator shares."""

    def __init__(self, A: Operator) -> None:
        self.A = A
        self.shape, self.dtype, self.xp, self.device = A.shape, A.dtype, A.xp, A.device
        self.resident, self.sparse, self.offset = A.resident, A.sparse, A.offset
        self.precision = A.precision

    @property
    def epsilon(self) -> float:
        """That of the operator underneath."""
        return self.A.epsilon

    @property
    def passes(self) -> int:
        """Passes of the operator underneath."""
        return self.A.passes


class Transposed(Composed):
    """Aᵀ: every product of A with its sides exchanged.

    Parameters
    ----------
    A : Operator
        The map.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> Data(np.ones((3, 2))).T @ np.ones(3)
    array([3., 3.])
    """

    def __init__(self, A: Operator) -> None:
        super().__init__(A)
        self.shape = (A.shape[1], A.shape[0])

    def matmat(self, V: Array) -> Array:
        """Aᵀ V."""
        return self.A.rmatmat(V)

    def rmatmat(self, U: Array) -> Array:
        """A U."""
        return self.A.matmat(U)

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """A diag(w) Aᵀ V."""
        return self.A.conormal(V, w)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """Aᵀ diag(w) A U."""
        return self.A.normal(U, w)

    def gram(self, w: Array | None = None) -> Array:
        """A diag(w) Aᵀ."""
        return self.A.cogram(w)

    def cogram(self, w: Array | None = None) -> Array:
        """Aᵀ diag(w) A."""
        return self.A.gram(w)

    def to_dense(self) -> Array:
        """The dense array of A, transposed."""
        return self.A.to_dense().T

    @property
    def T(self) -> Operator:
        """The operator itself."""
        return self.A


class DeviceFactor:
    """(A + λI)⁻¹ by a Cholesky factor on a device: NumPy in, NumPy out.

    Attributes
    ----------
    factor : gramian.compute.gpu.cholesky.BlockCholesky
        L.
    """

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def solve(self, R: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(LLᵀ)⁻¹R, each column brought to unit length first: float32 has few exponents."""
        lengths = np.linalg.norm(R, axis=0)
        R = R / np.where(lengths > 0, lengths, 1.0)
        if not R.size:
            return R
        return np.asarray(to_numpy(self.factor.solve(to_device(R, self.factor.device)), float) * lengths)


def device_factor_bytes(n: int, dtype: Any = np.float64) -> int:
    """Bytes that the factor of n rows takes on a device, the room to make it included: n²/2 numbers and some more."""
    return int(gpu().cholesky.nbytes(n, np.dtype(dtype).itemsize))
