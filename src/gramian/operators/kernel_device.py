"""The kernel operator on a device: k(X, Z) is evaluated on a card where it is multiplied, and never leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from gramian.compute.devices import free_bytes, gpu, host, put, refuse_beyond_device, resolve, torch_dtype
from gramian.kernels import as_kernel
from gramian.operators._device_points import first_rows, natural, placed, settled, tensor
from gramian.operators.base import Operator
from gramian.operators.factoring import Factored, factored
from gramian.sources import Source, memory_budget

__all__ = ["DeviceKernelOperator"]

Array = Any

STORE_SHARE = 8  # a matrix is kept where it takes no more than one part in so many of what is free on a card
ROWS_BYTES = 2**28  # of a block of dense rows


class DeviceKernelOperator(Operator):
    r"""The matrix K = k(X, Z), or K = k(X, X), as an operator of shape (n, m) whose products are made by torch.

    The points are put on the device once. A product evaluates K there tile by tile, on a card by kernels written in
    Triton, and forgets it.

    **Precision.** Products in float64 are right to rounding. Those in float32 come in two modes, of which the tolerance
    chooses: *fast*, with a relative error of at most 5e-4, and *accurate*, with at most 2e-6. Where the size of
    the numbers would make a mode break its promise, the next more precise one is taken. ``epsilon`` is the promise and
    ``precision`` says it in words.

    **When K is stored.** With ``store="auto"`` from the second product on, where K takes at most an eighth of what is
    free on the card, and in float64 alone: in float32 a card evaluates K faster than it reads it. Without a card the
    rule of :class:`KernelOperator` holds.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel of numeric vectors. Functions and precomputed matrices have no formula that a card could evaluate.
    X : array, data frame, tensor, path or Source
        The n points of the rows. A file is uploaded in blocks of rows where Z is given, and whole otherwise.
    Z : the same, optional
        The m points of the columns; the same as X where not given.
    device : torch.device or str
        Where; ``torch.device("cpu")`` is torch on the CPU.
    dtype : dtype, optional
        Of the products; float32 for float32 data, else float64.
    tolerance : float, optional
        Relative error that products in float32 may have; 2e-6 where not given.
    store : {"auto", True, False}, default="auto"
        Whether to keep K: by the rule above, from the first product on, or never.

    Attributes
    ----------
    mode : str
        "fast", "accurate" or "double".
    stored, symmetric, passes, evaluations
        As of :class:`KernelOperator`.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.kernels import Gaussian
    >>> from gramian.operators import DeviceKernelOperator
    >>> A = DeviceKernelOperator(Gaussian(0.5), np.array([[0.0], [1.0], [2.0]]), device=torch.device("cpu"))
    >>> np.asarray(A @ torch.ones(3)).round(4)
    array([1.7419, 2.2131, 1.7419])
    """

    def __init__(
        self,
        kernel: Any,
        X: Any,
        Z: Any = None,
        *,
        device: Any,
        dtype: Any = None,
        tolerance: float | None = None,
        store: bool | str = "auto",
    ) -> None:
        if not any(store is choice or store == choice for choice in ("auto", True, False)):
            raise ValueError(f"store must be 'auto', True or False; got {store!r}.")
        self.store, self.tolerance = store, tolerance
        self.device = resolve(device)
        if self.device is None:
            raise ValueError(f"device={device!r} is NumPy on the CPU: use KernelOperator, or torch.device('cpu').")
        kernel = as_kernel(kernel)
        self.X = placed(kernel, X, self.device, in_memory=Z is None)
        self.Z = None if Z is None else placed(kernel, Z, self.device, in_memory=True)
        self._file = self.X if isinstance(self.X, Source) else None
        self.kernel, self._formula = settled(kernel, self.X)
        self.resident, self._passes, self.evaluations = self._file is None, 0, 0
        self.symmetric = self.Z is None
        self.xp = array_namespace(self.X if self.Z is None else self.Z)
        self.dtype = torch_dtype(natural(self.X, self.Z) if dtype is None else dtype)
        self.shape = (self.X.shape[0], self.X.shape[0] if self.Z is None else self.Z.shape[0])
        self._kept: Array | None = None
        self._others: dict[Any, Any] = {}
        self._error = 0.0
        self._pairs = self._prepared(self.X if self._file is None else first_rows(self._file, self.device))

    @property
    def passes(self) -> int:
        """How often K has been gone through, stored or not."""
        return self._passes

    @property
    def epsilon(self) -> float:
        """Relative error that the products promise, of all points seen so far."""
        return self._error

    @property
    def stored(self) -> bool:
        """Whether K is on the device now."""
        return self._kept is not None

    @property
    def nbytes(self) -> int:
        """How much memory K takes, or would."""
        return self.shape[0] * self.shape[1] * int(self.dtype.itemsize)

    def matmat(self, V: Array) -> Array:
        """K V."""
        V = self.asarray(V)
        if self._file is not None:
            return self.xp.concat([gpu().tiles.product(pairs, V) for _, _, pairs in self._parts()], axis=0)
        if self._available():
            return self._exactly(self._kept, V)
        tiles = gpu().tiles
        return tiles.symmetric_product(self._pairs, V) if self.symmetric else tiles.product(self._pairs, V)

    def rmatmat(self, U: Array) -> Array:
        """Kᵀ U."""
        if self.symmetric:
            return self.matmat(U)
        U = self.asarray(U)
        if self._file is not None:
            return sum(gpu().tiles.adjoint(pairs, U[start:stop]) for start, stop, pairs in self._parts())
        if self._available():
            return self._exactly(self._kept.T, U)  # type: ignore[union-attr]
        return gpu().tiles.adjoint(self._pairs, U)

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """Kᵀ diag(w) K V, K evaluated once."""
        V, w = self.asarray(V), None if w is None else self.asarray(w)
        if self._file is not None:
            parts = ((pairs, None if w is None else w[start:stop]) for start, stop, pairs in self._parts())
            return sum(gpu().tiles.normal(pairs, V, some) for pairs, some in parts)
        if self.stored:
            return super().normal(V, w)
        self._count_pass()
        return gpu().tiles.normal(self._pairs, V, w)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """K diag(w) Kᵀ U: the same where K is symmetric."""
        return self.normal(U, w) if self.symmetric else super().conormal(U, w)

    def gram(self, w: Array | None = None) -> Array:
        """KᵀWK from blocks of rows, in one pass."""
        total = self._zeros(self.shape[1])
        for start, stop, block in self.rows():
            total += self._exactly(block.T, block if w is None else self.asarray(w)[start:stop, None] * block)
        return total

    def cogram(self, w: Array | None = None) -> Array:
        """K W Kᵀ: from blocks of columns, in one pass; the same as :meth:`gram` where symmetric."""
        if self.symmetric:
            return self.gram(w)
        if self._file is not None:
            return super().cogram(w)
        self._count_pass()
        total, every = self._zeros(self.shape[0]), slice(0, self.shape[0])
        for some in self._slices(self.shape[1], self.shape[0]):
            block = self.tile(every, some)
            total += self._exactly(block if w is None else block * self.asarray(w)[some], block.T)
        return total

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of K V, or of K itself."""
        if self._file is not None:
            multiply = gpu().tiles.dense if V is None else lambda pairs: gpu().tiles.product(pairs, self.asarray(V))
            step = None if V is not None else self._step(self.shape[1])
            yield from ((start, stop, multiply(pairs)) for start, stop, pairs in self._parts(step))
        elif V is not None:
            yield 0, self.shape[0], self.matmat(V)
        else:
            self._count_pass()
            for some in self._slices(*self.shape):
                yield some.start, some.stop, self.tile(some, slice(0, self.shape[1]))

    def to_dense(self) -> Array:
        """K as a matrix; of a stored K, that matrix itself."""
        if self._file is not None:
            return super().to_dense()
        self._count_pass()
        return self._all() if self._kept is None else self._kept

    def tile(self, rows: slice, columns: slice, dtype: Any = None) -> Array:
        """A new tensor of the entries of K in these rows and columns, in a dtype of its own where one is given."""
        self._refuse_file("Tiles")
        wanted = self.dtype if dtype is None else torch_dtype(dtype)
        if wanted == self.dtype:
            return gpu().tiles.dense(self._pairs, rows, columns) if self._kept is None else self._kept[rows, columns]
        if wanted not in self._others:
            self._others[wanted] = gpu().tiles.prepare(self._formula, self.X, self.Z, dtype=wanted)
        return gpu().tiles.dense(self._others[wanted], rows, columns)

    def diagonal(self) -> Array:
        """k(x, x) for every point, found in float64; of K = k(X, X) only."""
        if self.Z is not None:
            raise ValueError("k(X, Z) of two sets of points has no diagonal of values k(x, x).")
        if self.kernel.normalised:
            return self.xp.ones(self.shape[0], dtype=self.dtype, **self._where())
        return self.asarray(self.kernel.diagonal(np.asarray(host(self.X), dtype=np.float64)))

    def columns(self, indices: Any, rows: Any = None) -> Array:
        """Columns k(X, Z[indices]) as a tensor, or some rows of them: what pivoted Cholesky asks for."""
        self._refuse_file("Columns")
        return gpu().tiles.dense(self._pairs, self._indices(rows), self._indices(indices))

    def factored(self, shift: float, dtype: Any = np.float64) -> Factored:
        """(K + λI)⁻¹ for K = k(X, X), by a Cholesky factor on the device."""
        self._count_pass()
        return factored(self, shift, dtype)

    @property
    def T(self) -> Operator:
        """The operator itself where it is symmetric."""
        return self if self.symmetric else super().T

    def _prepared(self, X: Array) -> Any:
        """Pairs of the points, with what they promise remembered."""
        pairs = gpu().tiles.prepare(self._formula, X, self.Z, dtype=self.dtype, tolerance=self.tolerance)
        if pairs.error >= self._error:
            self._error, self.mode, self.precision = float(pairs.error), str(pairs.mode), str(pairs.precision)
        return pairs

    def _parts(self, step: int | None = None) -> Iterator[tuple[int, int, Any]]:
        """Pairs of one block of rows of a file after another with all columns: one pass."""
        self._count_pass()
        for block in self._file.blocks(step):  # type: ignore[union-attr]
            yield block.start, block.stop, self._prepared(tensor(block.values, self.device))

    def _available(self) -> bool:
        """Count a product, and say whether K is stored for it: by the rule of the class."""
        self._count_pass()
        if self._kept is None and self._worth_storing():
            self._kept = self._all()
        return self._kept is not None

    def _worth_storing(self) -> bool:
        if self.store != "auto":
            return bool(self.store)
        card = self.device.type == "cuda"
        if self._passes <= 1 or (card and self.dtype != self.xp.float64):
            return False
        return self.nbytes <= (free_bytes(self.device) // STORE_SHARE if card else memory_budget() // 2)

    def _all(self) -> Array:
        what = f"A kernel matrix of {self.shape[0]} x {self.shape[1]}"
        refuse_beyond_device(self.nbytes, self.device, what, "Use products with tiles: store=False, a krylov solver.")
        return gpu().tiles.dense(self._pairs)

    def _exactly(self, A: Array, B: Array) -> Array:
        """A B with all digits, though torch may have been allowed to leave out some of float32."""
        with gpu().dense.every_digit():
            return A @ B

    def _count_pass(self) -> None:
        self._passes += 1
        self.evaluations += not self.stored

    def _step(self, width: int) -> int:
        return int(max(1, min(ROWS_BYTES, self.room // 2) // (int(self.dtype.itemsize) * max(1, width))))

    def _slices(self, length: int, width: int) -> list[slice]:
        step = self._step(width)
        return [slice(i, min(i + step, length)) for i in range(0, length, step)]

    def _zeros(self, side: int) -> Array:
        nbytes = side * side * int(self.dtype.itemsize)
        refuse_beyond_device(nbytes, self.device, f"A Gram matrix of {side} x {side}", "Use a krylov solver.")
        return self.xp.zeros((side, side), dtype=self.dtype, **self._where())

    def _indices(self, index: Any) -> Any:
        return index if index is None or isinstance(index, slice) else put(index, self.device, np.int64)

    def _refuse_file(self, what: str) -> None:
        if self._file is not None:
            raise ValueError(f"{what} of a kernel of points in a file are not given; read X into memory.")
