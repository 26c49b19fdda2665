"""Kernel matrices k(X, Z) as operators: evaluated tile by tile inside each product, by NumPy or on a device."""

from __future__ import annotations

import math
import operator
import uuid
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from gramian.compute import dense as cpu
from gramian.compute import tiles
from gramian.compute.devices import (
    describe,
    free_bytes,
    gpu,
    is_tensor,
    refuse_beyond_device,
    resolve,
    to_device,
    to_numpy,
    torch_dtype,
)
from gramian.compute.executor import HERE, SHARES, current_executor, open_once
from gramian.compute.threads import split_runs
from gramian.kernels import Kernel, Precomputed, as_kernel
from gramian.operators.base import Capability, DeviceFactor, Operator
from gramian.sources import Block, Source, memory_budget, open_source
from gramian.sources.checkpoint import remember
from gramian.sources.devices import upload

Array = Any

STORE_SHARE = 2  # a matrix is kept where it takes no more than one part in so many of working_memory
STORE_SHARE_GPU = 8  # ... and of what is free on a GPU
ROWS_BYTES = 2**23  # of a block of dense rows
ROWS_BYTES_DEVICE = 2**28


class KernelOperator(Operator):
    r"""The matrix K = k(X, Z), or K = k(X, X), as an operator of shape (n, m).

    **When K is stored.** The first product evaluates K tile by tile and forgets it. The second one, with
    ``store="auto"``, keeps its tiles (of k(X, X) half of them) if they take at most half of scikit-learn's
    ``working_memory``: 512 MiB of 1 GiB unless set otherwise, which k(X, X) meets up to n = 11,584 in float64 and
    16,383 in float32. ``docs/kernels.md`` says what that saves. A single product, as for new points, never stores.

    Parameters
    ----------
    kernel : Kernel, str or callable
        Or one of scikit-learn's names, or a function of two points. Automatic parameters are found from X; ``A.kernel``
        says which.
    X : array, sparse matrix, data frame, tensor, path, Source; for :class:`~gramian.kernels.Callable` any sequence
        The n points of the rows. A file is read in blocks of rows where Z is given, and into memory otherwise: n points
        are small compared with n² products.
    Z : the same, optional
        The m points of the columns, read into memory; the same as X where not given.
    dtype : dtype, optional
        Of the products; float32 for float32 data, else float64.
    store : {"auto", True, False}, default="auto"
        Whether to keep K: by the rule above, from the first product on, or never.
    origin : Source, optional
        The file that X was read from. The workers of a cluster then read it too, once, and make the products of a K
        that would not be kept here.

    Attributes
    ----------
    stored : bool
        Whether K is in memory now.
    symmetric : bool
        Whether K is k(X, X), of which half the tiles are evaluated.
    passes : int
        How often K has been gone through, stored or not.
    evaluations : int
        How often K has been evaluated from the points, counted in products.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.operators import KernelOperator
    >>> A = KernelOperator(Gaussian(0.5), np.array([[0.0], [1.0], [2.0]]))
    >>> (A @ np.ones(3)).round(4)
    array([1.7419, 2.2131, 1.7419])
    """

    tiles: Any = tiles  # the module of products with pairs of points
    passes: int = 0
    X: Any
    Z: Any
    _pairs: Any

    def __init__(
        self,
        kernel: Any,
        X: Any,
        Z: Any = None,
        *,
        dtype: Any = None,
        store: bool | str = "auto",
        origin: Source | None = None,
    ) -> None:
        self._open(as_kernel(kernel), X, Z, store)
        if self._file is None:
            self._pairs = self.kernel.pairs(self.X, self.Z, dtype)
            self.shape, self.dtype, self.symmetric = self._pairs.shape, self._pairs.dtype, self._pairs.symmetric
        else:
            self.shape, self.symmetric = (self._file.shape[0], len(self.Z)), False
            single = self._file.dtype == np.float32 and self.Z.dtype == np.float32
            self.dtype = np.dtype(dtype or (np.float32 if single else np.float64))
        self._there = None
        address = None if origin is None or isinstance(self.kernel, Precomputed) else origin.address()
        if address is not None and address.shape == getattr(self.X, "shape", None):
            token = vars(address).setdefault("_token", uuid.uuid4().hex)
            self._there = _PairsThere(token, address, self.kernel, self.X.dtype, self.Z, self.dtype)

    def _open(self, kernel: Kernel, X: Any, Z: Any, store: bool | str) -> None:
        """The points of rows and columns where they are compared, and the kernel with its parameters found."""
        if not any(store is choice or store == choice for choice in ("auto", True, False)):
            raise ValueError(f"store must be 'auto', True or False; got {store!r}.")
        self.X = self._points(kernel, X, in_memory=Z is None)
        self.Z = None if Z is None else self._points(kernel, Z, in_memory=True)
        self._file = self.X if isinstance(self.X, Source) else None
        if kernel.automatic and self._file is not None:
            raise ValueError(
                f"{kernel!r} finds a parameter from data, and X is a file. Resolve it on rows in memory first."
            )
        self.kernel = kernel.resolved(to_numpy(self.X) if is_tensor(self.X) else self.X) if kernel.automatic else kernel
        self.store, self.resident, self.passes, self.evaluations = store, self._file is None, 0, 0
        self.capabilities = Capability.NONE if Z is not None else Capability.DIAGONAL
        self.capabilities |= Capability.NONE if self._file is not None else Capability.COLUMNS | Capability.TILES

    def _points(self, kernel: Kernel, X: Any, in_memory: bool) -> Any:
        """The points as a kernel takes them: an array or CSR, a list of objects, or the Source of a file."""
        if kernel.takes_objects and not isinstance(X, Source):
            return X if isinstance(X, Sized) or sp.issparse(X) else list(X)
        if type(X) is np.ndarray and X.ndim == 2:
            return X
        source = open_source(X)
        if source.resident:
            values = source.values
            return values if source.sparse else np.asarray(values)
        return np.concatenate([np.array(b.values) for b in source.blocks()]) if in_memory else source

    @property
    def stored(self) -> bool:
        """Whether K is in memory now."""
        return isinstance(self._pairs, tiles.Stored) if self.resident else False

    def matmat(self, V: Array) -> Array:
        """K V."""
        if self._file is not None:
            V = self.asarray(V)
            if self.device is None:
                self._count_pass()
                return np.concatenate(self._file.map(_BlockTiles(self.kernel, self.Z, self.dtype, "product", V)))
            return self.xp.concat([self.tiles.product(pairs, V) for _, _, pairs in self._file_parts()], axis=0)
        return self._multiply(V, "symmetric_product" if self.symmetric else "product")

    def rmatmat(self, U: Array) -> Array:
        """Kᵀ U."""
        if self.symmetric:
            return self.matmat(U)
        if self._file is not None:
            U = self.asarray(U)
            if self.device is None:
                self._count_pass()
                task = _BlockTiles(self.kernel, self.Z, self.dtype, "adjoint")
                return self._file.reduce(task, operator.add, along=[U])
            return sum(self.tiles.adjoint(pairs, U[start:stop]) for start, stop, pairs in self._file_parts())
        return self._multiply(U, "adjoint")

    def _multiply(self, V: Array, name: str) -> Array:
        """One product with K, stored or in tiles of pairs."""
        self._count_pass()
        return remember(f"product with {self!r}", (V, name), lambda: self._multiply_now(V, name))

    def _multiply_now(self, V: Array, name: str) -> Array:
        if isinstance(self.kernel, Precomputed):  # rows of a matrix are read faster than tiles of it
            multiply = cpu.adjoint if name == "adjoint" else cpu.product
            return np.asarray(multiply(self._pairs.K, V.astype(self.dtype, copy=False)))
        there = self._elsewhere()
        if there is not None and name == "symmetric_product":
            V = np.ascontiguousarray(V, dtype=self.dtype)
            count = -(-self.shape[0] // (self._pairs.side or tiles.side(V.shape[1], self.dtype.itemsize)))
            total: Array = self._work_there(
                V.shape[1], lambda run: run.reduce(_SymmetricPart(there, V), split_runs(range(count)), _add_later)
            )
            return total.astype(self.dtype, copy=False)
        if there is not None and name == "product":
            side = self._pairs.side or tiles.side(V.shape[1], self.dtype.itemsize)
            parts = self._work_there(
                V.shape[1], lambda run: list(run.map(_ProductPart(there, V), _shares(self.shape[0], side)))
            )
            return np.concatenate(parts)
        if self.store and not self.stored and self._worth_storing():
            self._pairs = tiles.Stored(self._pairs)
        return np.asarray(getattr(tiles, name)(self._pairs, V))

    def _elsewhere(self) -> _PairsThere | None:
        """Return what the workers of a cluster evaluate K by; None where this process does: K is kept, or in memory."""
        if self._there is None or self.stored or current_executor() is HERE or self._pairs.serial:
            return None
        small = tiles.Stored.nbytes(self._pairs) <= memory_budget() // STORE_SHARE
        return None if self.store is True or (self.store and small) else self._there

    def _work_there(self, k: int, work: Callable[[Any], Any]) -> Any:
        """Do something by the executor in use, whose workers read the points."""
        executor, (n, _) = current_executor(), self.shape
        points = self.X.nbytes if isinstance(self.X, np.ndarray) else self.X.data.nbytes + self.X.indices.nbytes
        executor.check_room(3 * points + 24 * n * k, f"{n} points, twice prepared, and {k} columns of results")
        return work(executor)

    def _worth_storing(self) -> bool:
        """The rule of the class: the second product, where K fits."""
        if self.store != "auto":
            return True
        return self.passes > 1 and tiles.Stored.nbytes(self._pairs) <= memory_budget() // STORE_SHARE

    def gram(self, w: Array | None = None) -> Array:
        """KᵀWK from blocks of rows, in one pass."""
        total, w = self._zeros(self.shape[1]), None if w is None else self.asarray(w)
        for start, stop, block in self.rows():
            total += self._dense_product(block.T, block if w is None else w[start:stop, None] * block)
        return total

    def cogram(self, w: Array | None = None) -> Array:
        """K W Kᵀ: from blocks of columns, in one pass; the same as :meth:`gram` where symmetric."""
        if self.symmetric:
            return self.gram(w)
        if self._file is not None:
            return super().cogram(w)
        self._count_pass()
        total, w = self._zeros(self.shape[0]), None if w is None else self.asarray(w)
        for some in self._slices(self.shape[1], self.shape[0]):
            block = self.tile(slice(0, self.shape[0]), some)
            total += self._dense_product(block if w is None else block * w[some], block.T)
        return total

    def reduce_rows(
        self, statistic: Callable[..., Any], merge: Callable[[Any, Any], Any], least: int, along: Sequence[Any] = ()
    ) -> Any:
        """Return the merged statistics of dense blocks of rows of K, of points in a file: one pass, as Source.reduce.

        Parameters
        ----------
        statistic : callable
            Of a dense block of rows, and of its rows of each array of ``along``.
        merge, along
            As of :meth:`gramian.sources.Source.reduce`.
        least : int
            How many rows a block has at least.
        """
        if self._file is None:
            raise ValueError("The points are in memory: use rows().")
        self._count_pass()
        task = _DenseRows(self.kernel, self.Z, self.dtype, statistic)
        return self._file.reduce(task, merge, max(least, self._step(self.shape[1])), along)

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of K V, or of K itself."""
        step = None if V is not None else self._step(self.shape[1])
        if self._file is not None:
            for start, stop, pairs in self._file_parts(step):
                yield start, stop, self.tiles.dense(pairs) if V is None else self.tiles.product(pairs, self.asarray(V))
        elif V is not None:
            yield 0, self.shape[0], self.matmat(V)
        else:
            yield from self._dense_rows(self._step(self.shape[1]))

    def _dense_rows(self, step: int) -> Iterator[tuple[int, int, Array]]:
        """Blocks of rows of K, of whole tiles."""
        self._count_pass()
        side = self._pairs.side
        step = max(side, step // side * side) if side else step
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            yield start, stop, tiles.dense(_Rows(self._pairs, start, stop))

    def to_dense(self) -> Array:
        """K as a matrix, written once."""
        if self._file is not None:
            return super().to_dense()
        self._count_pass()
        return self._whole()

    def _whole(self) -> Array:
        return tiles.dense(self._pairs)

    def tile(self, rows: slice, columns: slice, dtype: Any = None) -> Array:
        """A new array of the entries of K in these rows and columns, in a dtype of its own where one is given."""
        some = (np.arange(*part.indices(size)) for part, size in zip((columns, rows), self.shape[::-1], strict=True))
        tile = self.columns(*some)
        return tile if dtype is None else tile.astype(dtype, copy=False)

    def as_tiles(self, dtype: Any) -> tiles.Tiled:
        """K = k(X, X) as something that hands out tiles in a dtype, each evaluated when asked for: one pass."""
        if self.Z is not None or self.shape[0] != self.shape[1]:
            raise ValueError(f"Only k(X, X) is symmetric; this operator of shape {self.shape} has two sets of points.")
        self._count_pass()
        pairs: tiles.Tiled = self.kernel.pairs(self.X, None, np.dtype(dtype))
        return pairs

    def diagonal(self) -> Array:
        """k(x, x) for every point, found in float64; of K = k(X, X) only."""
        if self.Z is not None:
            raise ValueError("k(X, Z) of two sets of points has no diagonal of values k(x, x).")
        points = to_numpy(self.X, np.float64) if is_tensor(self.X) else self.X
        return self.asarray(self.kernel.diagonal(points))

    def columns(self, indices: Any, rows: Any = None) -> Array:
        """Columns k(X, Z[indices]) as a dense array, or some rows of them: what pivoted Cholesky asks for."""
        self._refuse_file("Columns")
        indices = np.asarray(indices, dtype=np.intp)
        if isinstance(self.kernel, Precomputed):
            return np.asarray(_take(self.X, rows)[:, indices], dtype=self.dtype)
        points = self.X if self.Z is None else self.Z
        chosen = _take(points, indices)
        if rows is None and self._there is not None and self._elsewhere() is not None:
            side = self._pairs.side or tiles.side(1, self.dtype.itemsize)
            there = self._there.against(chosen)
            parts = self._work_there(
                len(indices), lambda run: list(run.map(_DensePart(there), _shares(self.shape[0], side)))
            )
            return np.concatenate(parts)
        return tiles.dense(self.kernel.pairs(_take(self.X, rows), chosen, self.dtype))

    @property
    def T(self) -> Operator:
        """The operator itself where it is symmetric."""
        return self if self.symmetric else super().T

    def _count_pass(self) -> None:
        self.passes += 1
        self.evaluations += not self.stored

    def _file_parts(self, step: int | None = None) -> Iterator[tuple[int, int, Any]]:
        """Pairs of one block of rows of the file after another with all columns: one pass."""
        self._count_pass()
        for block in self._file.blocks(step):  # type: ignore[union-attr]
            yield block.start, block.stop, self._pairs_of(block.values)

    def _pairs_of(self, values: Array) -> Any:
        return self.kernel.pairs(np.array(values), self.Z, self.dtype)

    def _dense_product(self, A: Array, B: Array) -> Array:
        return A @ B

    def _zeros(self, side: int) -> Array:
        return np.zeros((side, side), self.dtype)

    def _step(self, width: int) -> int:
        """Rows of a block of dense ones with so many columns."""
        return int(max(1, min(ROWS_BYTES, memory_budget() // 8) // (self.dtype.itemsize * max(1, width))))

    def _slices(self, length: int, width: int) -> list[slice]:
        step = self._step(width)
        return [slice(i, min(i + step, length)) for i in range(0, length, step)]

    def _refuse_file(self, what: str) -> None:
        if self._file is not None:
            raise ValueError(f"{what} of a kernel of points in a file are not given; read X into memory.")


class _Rows:
    """Some rows of other pairs, without preparing them again."""

    symmetric = False

    def __init__(self, pairs: Any, start: int, stop: int) -> None:
        self.pairs, self.start = pairs, start
        self.shape, self.dtype = (stop - start, pairs.shape[1]), pairs.dtype
        self.buffers, self.serial, self.side = pairs.buffers, pairs.serial, pairs.side

    def fill(self, rows: slice, columns: slice, buffers: Any) -> Any:
        return self.pairs.fill(slice(rows.start + self.start, rows.stop + self.start), columns, buffers)


@dataclass(frozen=True, eq=False)
class _BlockTiles:
    """A product with the rows of K that belong to a block of points, tile by tile."""

    kernel: Kernel
    Z: Any
    dtype: Any
    name: str
    V: Array | None = None

    def __call__(self, block: Block, *along: Array) -> Array:
        pairs = self.kernel.pairs(_copy(block.values), self.Z, self.dtype)
        (factor,) = along or (self.V,)
        product: Array = getattr(tiles, self.name)(pairs, factor)
        return product


@dataclass(frozen=True, eq=False)
class _DenseRows:
    """A statistic of the rows of K that belong to a block of points."""

    kernel: Kernel
    Z: Any
    dtype: Any
    statistic: Callable[..., Any]

    def __call__(self, block: Block, *along: Any) -> Any:
        K = tiles.dense(self.kernel.pairs(_copy(block.values), self.Z, self.dtype))
        return self.statistic(K, *along)


def _copy(values: Any) -> Any:
    """Rows that stay when the buffer they were read into is used again."""
    return values if sp.issparse(values) else np.array(values)


@dataclass(frozen=True, eq=False)
class _PairsThere:
    """Pairs of the points in a file with each other, or with points that are sent along, for who reads the file."""

    token: str
    source: Source
    kernel: Kernel
    kind: Any
    Z: Any
    dtype: Any

    def describe(self, rows: Any) -> str:
        """Say what a task works on."""
        where = getattr(self.source, "path", None) or type(self.source).__name__
        if isinstance(rows, range):
            return f"Tiles {rows.start + 1} to {rows.stop} of the kernel matrix of {where}"
        return f"Rows {rows[0] + 1} to {rows[1]} of the kernel matrix of {where}"

    def against(self, Z: Any) -> _PairsThere:
        """Pairs with other points."""
        return _PairsThere(self.token, self.source, self.kernel, self.kind, Z, self.dtype)

    def pairs(self) -> Any:
        """Prepare the pairs; those of all points with each other are kept for the next task."""
        if self.Z is not None:
            return self.kernel.pairs(self._read(), self.Z, self.dtype)
        key = f"{self.token} {self.kernel!r} {self.dtype}"
        return open_once(key, lambda: self.kernel.pairs(self._read(), None, self.dtype))

    def _read(self) -> Any:
        return open_once(self.token, lambda: self.source.to_array().astype(self.kind, copy=False))


@dataclass(frozen=True, eq=False)
class _SymmetricPart:
    """What some rows of tiles add to K V."""

    there: _PairsThere
    V: Array

    def __call__(self, share: Sequence[int]) -> Array:
        return tiles.symmetric_part(self.there.pairs(), self.V, share)

    def describe(self, share: Any) -> str:
        return self.there.describe(share)


@dataclass(frozen=True, eq=False)
class _ProductPart:
    """Some rows of K V."""

    there: _PairsThere
    V: Array

    def __call__(self, rows: tuple[int, int]) -> Array:
        return tiles.product(_Rows(self.there.pairs(), *rows), self.V)

    def describe(self, rows: Any) -> str:
        return self.there.describe(rows)


@dataclass(frozen=True, eq=False)
class _DensePart:
    """Some rows of K."""

    there: _PairsThere

    def __call__(self, rows: tuple[int, int]) -> Array:
        return tiles.dense(_Rows(self.there.pairs(), *rows))

    def describe(self, rows: Any) -> str:
        return self.there.describe(rows)


def _add_later(total: Array, later: Array) -> Array:
    """The sum of two parts of K V, which are left as they are."""
    return tiles.add_later(total.copy(), later)


def _shares(n: int, side: int) -> list[tuple[int, int]]:
    """Return (start, stop) of at most 64 shares of n rows, each of whole tiles."""
    step = math.ceil(math.ceil(n / side) / SHARES) * side
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def _take(X: Any, indices: Any) -> Any:
    """Rows of an array, or items of a list; all where no indices are given."""
    if indices is None:
        return X
    return [X[i] for i in indices] if isinstance(X, (list, tuple)) else X[indices]


class DeviceKernelOperator(KernelOperator):
    r"""The matrix K = k(X, Z), or K = k(X, X), as an operator of shape (n, m) whose products are made by torch.

    The points are put on the device once. A product evaluates K there tile by tile, on a GPU by kernels written in
    Triton, and forgets it.

    **Precision.** Products in float64 are right to rounding. Those in float32 come in two modes, of which the tolerance
    chooses: *fast*, with a relative error of at most 5e-4, and *accurate*, with at most 2e-6. Where the size of
    the numbers would make a mode break its promise, the next more precise one is taken. ``epsilon`` is the promise and
    ``precision`` says it in words.

    **When K is stored.** With ``store="auto"`` from the second product on, where K takes at most an eighth of what is
    free on the GPU, and in float64 alone: in float32 a GPU evaluates K faster than it reads it. Without a GPU the
    rule of :class:`KernelOperator` holds.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel of numeric vectors. Functions and precomputed matrices have no formula that a GPU could evaluate.
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
    precision : str
        Device, mode and relative error of the products, in words.
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
        self.device, self.tolerance = resolve(device), tolerance
        if self.device is None:
            raise ValueError(f"device={device!r} is NumPy on the CPU: use KernelOperator, or torch.device('cpu').")
        self._open(as_kernel(kernel), X, Z, store)
        self.tiles, self.symmetric = gpu().tiles, self.Z is None
        if self.symmetric:
            self.capabilities |= Capability.FACTOR
        self._formula = self.kernel.formula(int(self.X.shape[1]))
        self.xp = array_namespace(self.X if self.Z is None else self.Z)
        given = [part.dtype for part in (self.X, self.Z) if part is not None]
        natural = "float32" if all(torch_dtype(kind) == torch_dtype("float32") for kind in given) else "float64"
        self.dtype = torch_dtype(natural if dtype is None else dtype)
        self.shape = (self.X.shape[0], self.X.shape[0] if self.Z is None else self.Z.shape[0])
        self._kept: Array | None = None
        self._others: dict[Any, Any] = {}  # pairs in other dtypes, for tiles
        self._error = 0.0
        first = self.X if self._file is None else next(iter(self._file.blocks(256))).values
        self._pairs = self._pairs_of(first)  # of a file: what says how precise products with it will be

    def _points(self, kernel: Kernel, X: Any, in_memory: bool) -> Any:
        """The points as a tensor on the device, in float32 or float64, or the Source of a file."""
        source: Any = X if sp.issparse(X) or kernel.takes_objects else open_source(X)
        reason = _obstacle(kernel, source)
        if reason:
            raise ValueError(f"On {describe(self.device)}: {reason} Use device='cpu', or KernelOperator.")
        if source.resident:
            return self._tensor(source.values)
        return self._tensor(upload(source, self.device)) if in_memory else source

    def _tensor(self, values: Any) -> Array:
        """Numbers on the device, in float32 or float64; what does not fit there is refused with the figure."""
        if self.device.type != "cpu" and not (is_tensor(values) and values.device == self.device):
            remedy = ("Use ", ("device", "cpu"), ", or fewer rows.")
            refuse_beyond_device(values.nbytes, self.device, f"A table of {len(values):,} points", remedy)
        x = to_device(values, self.device)
        if not x.dtype.is_floating_point:
            return to_device(x, self.device, np.float64)
        return to_device(x, self.device, np.float32) if x.dtype.itemsize < 4 else x

    def _pairs_of(self, values: Array) -> Any:
        """Pairs of these rows with all columns; the largest error that any of them promises is remembered."""
        X = self._tensor(values)
        pairs = self.tiles.prepare(self._formula, X, self.Z, dtype=self.dtype, tolerance=self.tolerance)
        if pairs.error >= self._error:
            self._error, self.mode, self.precision = float(pairs.error), str(pairs.mode), str(pairs.precision)
        return pairs

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

    def _multiply(self, V: Array, name: str) -> Array:
        self._count_pass()
        V = self.asarray(V)
        if self.store and self._kept is None and self._worth_storing():
            self._kept = self._whole()
        if self._kept is None:
            return getattr(self.tiles, name)(self._pairs, V)
        return self._dense_product(self._kept.T if name == "adjoint" else self._kept, V)

    def _worth_storing(self) -> bool:
        if self.store != "auto":
            return True
        on_gpu = self.device.type == "cuda"
        if self.passes <= 1 or (on_gpu and self.dtype != self.xp.float64):
            return False
        room = free_bytes(self.device) // STORE_SHARE_GPU if on_gpu else memory_budget() // STORE_SHARE
        return self.nbytes <= room

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """Kᵀ diag(w) K V, K evaluated once."""
        V, w = self.asarray(V), None if w is None else self.asarray(w)
        if self._file is not None:
            parts = ((pairs, None if w is None else w[start:stop]) for start, stop, pairs in self._file_parts())
            return sum(self.tiles.normal(pairs, V, some) for pairs, some in parts)
        if self.stored:
            return super().normal(V, w)
        self._count_pass()
        return self.tiles.normal(self._pairs, V, w)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """K diag(w) Kᵀ U: the same where K is symmetric."""
        return self.normal(U, w) if self.symmetric else super().conormal(U, w)

    def _dense_rows(self, step: int) -> Iterator[tuple[int, int, Array]]:
        self._count_pass()
        for some in self._slices(*self.shape):
            yield some.start, some.stop, self.tile(some, slice(0, self.shape[1]))

    def _whole(self) -> Array:
        """K; of a stored K, that matrix itself."""
        if self._kept is not None:
            return self._kept
        what = f"A kernel matrix of {self.shape[0]} x {self.shape[1]}"
        refuse_beyond_device(self.nbytes, self.device, what, "Use products with tiles: store=False, a krylov solver.")
        return self.tiles.dense(self._pairs)

    def tile(self, rows: slice, columns: slice, dtype: Any = None) -> Array:
        """A new tensor of the entries of K in these rows and columns, in a dtype of its own where one is given."""
        self._refuse_file("Tiles")
        wanted = self.dtype if dtype is None else torch_dtype(dtype)
        if wanted == self.dtype:
            return self.tiles.dense(self._pairs, rows, columns) if self._kept is None else self._kept[rows, columns]
        if wanted not in self._others:
            self._others[wanted] = self.tiles.prepare(self._formula, self.X, self.Z, dtype=wanted)
        return self.tiles.dense(self._others[wanted], rows, columns)

    def as_tiles(self, dtype: Any) -> tiles.Tiled:
        """K, made on the device, as tiles of NumPy."""
        return Operator.as_tiles(self, dtype)

    def diagonal(self) -> Array:
        """k(x, x) for every point, found in float64; of K = k(X, X) only."""
        if self.Z is None and self.kernel.normalised:
            return self.xp.ones(self.shape[0], dtype=self.dtype, device=self.device)
        return super().diagonal()

    def columns(self, indices: Any, rows: Any = None) -> Array:
        """Columns k(X, Z[indices]) as a tensor, or some rows of them: what pivoted Cholesky asks for."""
        self._refuse_file("Columns")
        return self.tiles.dense(self._pairs, self._positions(rows), self._positions(indices))

    def _positions(self, index: Any) -> Any:
        return index if index is None or isinstance(index, slice) else to_device(index, self.device, np.int64)

    def device_factor(self, shift: float, dtype: Any = np.float64) -> DeviceFactor:
        """(K + λI)⁻¹ for K = k(X, X), by a Cholesky factor on the device: one pass."""
        self._count_pass()
        return super().device_factor(shift, dtype)

    def _dense_product(self, A: Array, B: Array) -> Array:
        """A B with all digits, though torch may have been allowed to leave out some of float32."""
        with gpu().dense.every_digit():
            return A @ B

    def _step(self, width: int) -> int:
        return int(max(1, min(ROWS_BYTES_DEVICE, self.room // 2) // (int(self.dtype.itemsize) * max(1, width))))

    def _zeros(self, side: int) -> Array:
        nbytes = side * side * int(self.dtype.itemsize)
        refuse_beyond_device(nbytes, self.device, f"A Gram matrix of {side} x {side}", "Use a krylov solver.")
        return self.xp.zeros((side, side), dtype=self.dtype, device=self.device)


def _obstacle(kernel: Kernel, X: Any) -> str:
    """Why a kernel of these points is not evaluated on a device; nothing where it is."""
    if sp.issparse(X) or (isinstance(X, Source) and X.sparse):
        return "sparse points are compared on the CPU."
    shape = np.shape(X)
    if kernel.takes_objects or len(shape) != 2 or (not kernel.automatic and kernel.formula(int(shape[1])) is None):
        return f"{kernel!r} has no formula that could be evaluated there."
    return ""


def kernel_operator(
    kernel: Any,
    X: Any,
    Z: Any = None,
    *,
    dtype: Any = None,
    store: bool | str = "auto",
    device: Any = None,
    tolerance: float | None = None,
    origin: Source | None = None,
) -> KernelOperator:
    """Return the operator k(X, Z): a :class:`KernelOperator` on the CPU, a :class:`DeviceKernelOperator` elsewhere.

    Parameters
    ----------
    kernel, X, Z, dtype, store
        As of both.
    origin : Source, optional
        The file that X was read from, for the workers of a cluster; a device does not ask for it.
    device : None, str or torch.device
        None is NumPy on the CPU; a name is resolved by :func:`gramian.compute.devices.resolve`.
    tolerance : float, optional
        Relative error that products in float32 on a device may have.

    Returns
    -------
    KernelOperator
        The map k(X, Z).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import kernel_operator
    >>> kernel_operator("rbf", np.ones((3, 2)))
    KernelOperator(3 x 3, float64)
    """
    where = resolve(device, X) if isinstance(device, str) else device
    if where is None:
        return KernelOperator(kernel, X, Z, dtype=dtype, store=store, origin=origin)
    return DeviceKernelOperator(kernel, X, Z, device=where, dtype=dtype, tolerance=tolerance, store=store)


def kernel_device(device: Any, kernel: Kernel, X: Any, like: Any = None) -> Any:
    """Return where an estimator evaluates a kernel: a ``torch.device``, or None for NumPy on the CPU.

    What no GPU can evaluate (functions, precomputed matrices, objects, sparse points) goes to the CPU, unless a device
    was asked for by name: then it is refused.

    Parameters
    ----------
    device : None, str or torch.device
        What was asked for, as :func:`gramian.compute.devices.resolve` takes it.
    kernel : Kernel
        With its parameters found.
    X : array, tensor, Source, sparse matrix or sequence
        The points.
    like : the same, optional
        The points as they were handed in, where X was made of them: it says where the data are.

    Returns
    -------
    torch.device or None
        Where to compute.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.operators import kernel_device
    >>> kernel_device(None, Gaussian(1.0), np.ones((3, 2))) is None
    True
    """
    given = X if like is None else like
    found = resolve(device, getattr(given, "values", None) if isinstance(given, Source) else given)
    reason = "" if found is None else _obstacle(kernel, X)
    if reason and not (device is None or (isinstance(device, str) and device == "auto")):
        raise ValueError(f"device={device!r}: {reason} Use device='cpu', which is NumPy.")
    return None if reason else found
