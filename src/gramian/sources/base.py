"""A Source knows where numbers live and hands them out in blocks of rows. It knows nothing of mathematics."""

from __future__ import annotations

import gzip
import lzma
import operator
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.compute.executor import HERE, Executor, count_shares, current_executor, merge_tree
from gramian.compute.memory import gibibytes, limit_working_memory, working_memory
from gramian.sources.checkpoint import is_recorded, remember
from gramian.sources.errors import SourceError

S = TypeVar("S")
T = TypeVar("T")

BLOCK_BYTES = 2**24  # 16 MiB: long reads, and small compared with any sensible memory budget


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let every ValueError of the block name this file, unless it names one already."""
    try:
        yield
    except SourceError as error:
        error.path = path if error.path is None else error.path
        raise
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise SourceError(f"the compressed file is damaged: {error}", path=path) from error
    except OSError as error:
        if type(error) not in (OSError, gzip.BadGzipFile) or error.errno is not None:
            raise
        raise SourceError(f"the compressed file is damaged: {error}", path=path) from error  # of gzip, bz2 and zstd
    except ValueError as error:
        raise SourceError(str(error), path=path) from error


@contextmanager
def reading(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Let whatever a library raises while it reads a damaged file say so, and name the file.

    Examples
    --------
    >>> from gramian.sources.base import reading
    >>> with reading("x.npy", "a .npy file"):
    ...     raise IndexError("list index out of range")
    Traceback (most recent call last):
    gramian.sources.errors.SourceError: x.npy: damaged, or not a .npy file: list index out of range
    """
    try:
        yield
    except SourceError as error:
        error.path = path if error.path is None else error.path
        raise
    except (ImportError, FileNotFoundError, PermissionError):
        raise
    except MemoryError as error:
        raise MemoryError(f"{path}: {error or 'it does not fit in memory'}") from error
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"damaged, or not {what}: {text}", path=path) from error


class Block(NamedTuple):
    """Rows ``start`` to ``stop`` of a source and their values.

    Parameters
    ----------
    start, stop : int
        First row, and the row after the last.
    values : array
        The rows.
    """

    start: int
    stop: int
    values: Any


def memory_budget() -> int:
    """Return scikit-learn's ``working_memory`` setting in bytes.

    Returns
    -------
    int
        Bytes.
    """
    return int(working_memory() * 2**20)


class Source(ABC):
    """A table of n rows and p columns that can be read in blocks of rows, any number of times.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        The dtype of the stored values.
    xp : module
        Array namespace of the blocks.
    device : device or None
        Where the blocks of tensors are; None for NumPy and scipy.sparse.
    feature_names : list of str or None
        Names of the columns, where the data bring them.
    sparse : bool
        Whether blocks are scipy.sparse CSR matrices.
    resident : bool
        Whether the values are in memory, so that another pass costs no reading.
    kept_rows, kept_columns : ndarray of bool, or None
        Which rows and columns of what was opened are here, where ``gramian.open(keep_empty=False)`` left some out.
    """

    shape: tuple[int, int]
    dtype: Any
    xp: Any = np
    device: Any = None
    feature_names: list[str] | None = None
    sparse: bool = False
    resident: bool = True
    kept_rows: npt.NDArray[np.bool_] | None = None
    kept_columns: npt.NDArray[np.bool_] | None = None
    first: int = 0
    last: int | None = None

    @abstractmethod
    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield consecutive blocks, of ``rows`` rows where given, else sized by ``working_memory``.

        A block's values are good until the next block is asked for: files are read into reused buffers.
        """

    @property
    def values(self) -> Any:
        """All rows as one array, where they are in memory as one; sparse rows of a file are read now; else None."""
        return self.to_array() if self.sparse else None

    def to_array(self) -> Any:
        """All rows as one array or sparse matrix, read now."""
        if self.sparse:
            return sp.csr_array(sp.vstack([block.values for block in self.blocks()], format="csr"))
        return np.concatenate([np.array(block.values) for block in self.blocks()])

    def spread(self, values: Any) -> npt.NDArray[Any]:
        """Results of the rows that are here, one for each row of what was opened, NaN for the rows left out.

        Examples
        --------
        >>> import numpy as np, gramian
        >>> gramian.open(np.array([[1.0], [np.nan], [3.0]]), keep_empty=False).spread([10, 30])
        array([10., nan, 30.])
        """
        found = np.asarray(values)
        if len(found) != self.shape[0]:
            raise ValueError(f"{len(found)} results, and there are {self.shape[0]} rows.")
        if self.kept_rows is None:
            return found
        out = np.full((len(self.kept_rows), *found.shape[1:]), np.nan, np.result_type(found.dtype, np.float32))
        out[self.kept_rows] = found
        return out

    def reduce(
        self,
        statistic: Callable[..., S],
        merge: Callable[[S, S], S],
        rows: int | None = None,
        along: Sequence[Any] = (),
        result_bytes: int = 0,
    ) -> S:
        """Return the merged statistics of all blocks: one pass, by the workers of a cluster where there is one.

        Parameters
        ----------
        statistic : callable
            Of a block, and of its rows of each array of ``along``.
        merge : callable
            The statistic of both; it leaves its arguments as they are.
        rows : int, optional
            Of a block.
        along : sequence of arrays, optional
            With an entry, or a row, for each row; None where there is none.
        result_bytes : int, default=0
            What a statistic takes, where it is known to be large: workers without memory for it are not asked.

        Examples
        --------
        >>> import numpy as np, gramian
        >>> source = gramian.open(np.arange(6.0).reshape(3, 2))
        >>> float(source.reduce(lambda b, w: w @ b.values.sum(axis=1), lambda a, b: a + b, rows=2, along=[np.ones(3)]))
        15.0
        """
        if not is_recorded():
            return self._reduce(statistic, merge, rows, along, result_bytes)
        return remember(
            f"pass over {self!r}",
            (statistic, rows, along),
            lambda: self._reduce(statistic, merge, rows, along, result_bytes),
        )

    def _reduce(
        self,
        statistic: Callable[..., S],
        merge: Callable[[S, S], S],
        rows: int | None,
        along: Sequence[Any],
        result_bytes: int,
    ) -> S:
        spans = self.row_spans(rows)
        if not spans:  # all in one share, here
            whole = self.one_block(rows)
            if whole is not None:
                return statistic(whole, *along)
            return next(_merge_shares(self.blocks(rows), set(), statistic, merge, along))
        count = count_shares(len(spans))
        starts = [spans[len(spans) * i // count][0] for i in range(count)]
        executor = self.executor()
        if count > 1 and executor is not HERE:
            task = _ShareTask(statistic, merge, working_memory())
            row_bytes = self.shape[1] * np.dtype(self.dtype).itemsize if not self.sparse and self.device is None else 0
            block, result = max(b - a for a, b in spans) * row_bytes, result_bytes
            what = f"two blocks of {gibibytes(block)} and three results of {gibibytes(result)}"
            executor.check_room(2 * block + 3 * result, what)
            cuts = pairwise([*starts, self.shape[0]])
            shares = [self.share(rows, a, b, [x if x is None else x[a:b] for x in along]) for a, b in cuts]
            total: S = executor.reduce(task, shares, merge)
            return total
        return merge_tree(_merge_shares(self.blocks(rows), set(starts), statistic, merge, along), merge)

    def map(self, function: Callable[..., S], rows: int | None = None, along: Sequence[Any] = ()) -> list[S]:
        """Return the function of each block, in order: one pass, as :meth:`reduce`."""
        parts: list[S] = self.reduce(_Listed(function), operator.add, rows, along)
        return parts

    def normalise(self, total: float = 1e4) -> Source:
        """Return the rows divided by their sums, times ``total``: counts of cells of unequal depth made comparable.

        Nothing is computed before it is read, and sparse rows stay sparse. Select columns afterwards, so that sums are
        those of all.

        Parameters
        ----------
        total : float, default=1e4
            What every row sums to afterwards; rows of zeros stay.

        Examples
        --------
        >>> import numpy as np, gramian
        >>> gramian.open(np.array([[1, 3], [0, 0]])).normalise(8).to_array()
        array([[2., 6.],
               [0., 0.]])
        """
        if not (np.isfinite(total) and total > 0):
            raise ValueError(f"total={total!r} must be a positive number.")
        self._refuse_device()
        dtype = np.dtype(np.float32 if self.dtype == np.float32 else np.float64)
        return CountsSource(self, _Normalise(float(total), dtype), f"Rows that sum to {total:g}")

    def log1p(self) -> Source:
        """Return log(1 + x) of every cell; nothing is computed before it is read, and sparse rows stay sparse.

        Examples
        --------
        >>> import numpy as np, gramian
        >>> gramian.open(np.array([[0.0, np.e - 1]])).log1p().to_array()
        array([[0., 1.]])
        """
        self._refuse_device()
        return CountsSource(
            self, _Log1p(np.dtype(np.float32 if self.dtype == np.float32 else np.float64)), "log(1 + x)"
        )

    def select_columns(self, columns: Sequence[Any]) -> Source:
        """Return some columns, in their order here where a mask says which; picked as they are read.

        Parameters
        ----------
        columns : sequence of str, of int, or of bool
            Names, positions counted from 0, or a mask.

        Examples
        --------
        >>> import numpy as np, gramian
        >>> gramian.open(np.arange(6).reshape(2, 3)).select_columns([2, 0]).to_array()
        array([[2, 0],
               [5, 3]])
        """
        self._refuse_device()
        given, p = np.asarray(columns), self.shape[1]
        if given.dtype.kind in "UO":
            names = self.feature_names or []
            known = {name: j for j, name in enumerate(names)}
            absent = [str(name) for name in given if name not in known]
            if absent:
                raise ValueError(f"columns that are not there: {', '.join(absent[:5])}; there are {p}.")
            index = np.array([known[name] for name in given], dtype=np.intp)
        elif given.dtype == np.bool_ and given.shape == (p,):
            index = np.flatnonzero(given)
        elif given.dtype.kind in "iu" and given.ndim == 1 and (not len(given) or 0 <= given.min() <= given.max() < p):
            index = given.astype(np.intp)
        else:
            raise ValueError(f"columns must be names, positions from 0 to {p - 1}, or a mask of {p}.")
        return SelectedSource(self, index)

    def _refuse_device(self) -> None:
        if self.device is not None:
            raise ValueError(f"Tensors on {self.device} are not changed as they are read: hand in an array, or a file.")

    def map_fits(self, fit: Callable[[T], S], items: Sequence[T]) -> Iterator[S]:
        """Yield ``fit(item)`` of every item: one fit of these rows after another, or each by a worker of a cluster.

        For replicates and folds, each of which makes passes of its own: a worker makes all of them, and reads the file
        itself. What is in memory is worked on here.

        Parameters
        ----------
        fit : callable
            What to do, with all that it needs in it, this source included.
        items : sequence
            What fits differ by.

        Examples
        --------
        >>> import numpy as np, gramian
        >>> source = gramian.open(np.eye(3))
        >>> list(source.map_fits(lambda k: gramian.PCA(k).fit(source).n_components_, [1, 2]))
        [1, 2]
        """
        executor = self.executor()
        if executor is HERE or self.address() is None:
            return map(fit, items)
        return executor.map(_FitTask(fit, working_memory()), items)

    def address(self) -> Source | None:
        """Return what a worker can open these rows by, elsewhere and again; None where they are in memory here."""
        return None if self.resident or not self.row_spans(None) else self

    def executor(self) -> Executor:
        """Return what runs the passes over these rows now."""
        return current_executor()

    def share(self, rows: int | None, start: int, stop: int, along: list[Any]) -> Any:
        """Return what a task needs of the blocks from row ``start`` to ``stop``."""
        return Share(self.between(start, stop), rows, start, stop, along)

    def one_block(self, rows: int | None) -> Block | None:
        """Return all rows where they are one block that is at hand; else nothing."""
        return None

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of blocks where any of them can be read by itself; else nothing."""
        return []

    def between(self, first: int, last: int) -> Self:
        """Return a source of the same shape that hands out the blocks from row ``first`` to ``last`` alone."""
        view = copy(self)
        view.first, view.last = first, last
        return view

    def ranges(self, rows: int | None, row_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield the (start, stop) of blocks that take at most a quarter of the memory budget."""
        if rows is None:
            rows = max(1, memory_budget() // 4 // max(1, row_bytes))
        last = self.shape[0] if self.last is None else self.last
        for start in range(self.first, last, rows):
            yield start, min(start + rows, last)

    def __repr__(self) -> str:
        n, p = self.shape
        return f"{type(self).__name__}({n} x {p}, {self.dtype})"


class MappedSource(Source):
    """Blocks of float64 values, computed from those of another source each time they are read.

    Parameters
    ----------
    source : Source
        What is read.
    change : callable
        The new values of a block.
    columns : int, optional
        How many columns they have, where not as many as before.
    alike : bool, default=False
        Whether the new values are sparse and of the dtype that the others are; else they are dense and float64.
    """

    resident = False

    def __init__(
        self, source: Source, change: Callable[[Block], Any], columns: int | None = None, *, alike: bool = False
    ) -> None:
        self.source, self.change = source, change
        self.shape = (source.shape[0], source.shape[1] if columns is None else columns)
        self.feature_names = source.feature_names if columns is None else None
        self.dtype, self.sparse = (source.dtype, source.sparse) if alike else (np.dtype(np.float64), False)

    def one_block(self, rows: int | None) -> Block | None:
        """Return all rows where they are one block that is at hand; else nothing."""
        return None

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of the other source's blocks."""
        return self.source.row_spans(rows)

    def between(self, first: int, last: int) -> Self:
        """Return a source of some of the blocks."""
        view = super().between(first, last)
        view.source = self.source.between(first, last)
        return view

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the other source's blocks, changed."""
        for block in self.source.blocks(rows):
            yield Block(block.start, block.stop, self.change(block))


class SelectedSource(Source):
    """Rows and columns of another source, picked from its blocks as they are read.

    Parameters
    ----------
    source : Source
        What is read.
    columns : ndarray of int, optional
        Which columns, in this order; all where not given.
    rows : ndarray of bool, optional
        Which rows; all where not given.
    """

    resident = False

    def __init__(self, source: Source, columns: Any = None, rows: Any = None) -> None:
        self.source, self.columns, self.rows = source, columns, rows
        n = source.shape[0] if rows is None else int(np.count_nonzero(rows))
        self.shape = (n, source.shape[1] if columns is None else len(columns))
        self.dtype, self.sparse = source.dtype, source.sparse
        names = source.feature_names
        self.feature_names = names if names is None or columns is None else [names[j] for j in columns]

    def one_block(self, rows: int | None) -> Block | None:
        """Return all rows where they are one block that is at hand; else nothing."""
        return None

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of the other source's blocks, where all rows are here."""
        return [] if self.rows is not None else self.source.row_spans(rows)

    def between(self, first: int, last: int) -> Self:
        """Return a source of some of the blocks."""
        view = super().between(first, last)
        view.source = self.source.between(first, last)
        return view

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield what is picked of the other source's blocks; of ``rows`` rows at most, where some are left out."""
        start = self.first
        for block in self.source.blocks(rows):
            values = block.values if self.rows is None else block.values[self.rows[block.start : block.stop]]
            values = values if self.columns is None else values[:, self.columns]
            if values.shape[0]:
                yield Block(start, start + values.shape[0], values)
                start += values.shape[0]


class CountsSource(MappedSource):
    """Rows whose values are changed each by itself as they are read, sparse where they were.

    Parameters
    ----------
    source : Source
        What is read.
    change : callable
        The new values of a block, of the same form.
    what : str
        What it does, for the eye.
    """

    def __init__(self, source: Source, change: Callable[[Block], Any], what: str) -> None:
        super().__init__(source, change, alike=True)
        single = source.dtype == np.float32
        self.dtype, self.what = np.dtype(np.float32 if single else np.float64), what

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the other source's blocks, changed; of a matrix in memory a few rows at a time."""
        if rows is None and self.source.resident:
            X, (n, p) = self.source.values, self.source.shape
            stored = 2.0 * X.data.nbytes / max(1, n) if self.sparse else p * self.dtype.itemsize
            rows = rows_at_a_time(stored)
        yield from super().blocks(rows)

    def __repr__(self) -> str:
        return f"{self.what} of {self.source!r}"


def _in_floats(block: Block, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the values of a block as new floating-point numbers, and the array of those that are stored."""
    values: Any = block.values.astype(dtype)  # a copy: what is read may be somebody's
    return values, values.data if hasattr(values, "indptr") else values


@dataclass(frozen=True)
class _Normalise:
    """Every row divided by its sum, times a number; rows of zeros stay."""

    total: float
    dtype: Any

    def __call__(self, block: Block) -> Any:
        values, stored = _in_floats(block, self.dtype)
        sums = np.asarray(values.sum(axis=1, dtype=np.float64)).reshape(-1)
        wrong = np.flatnonzero(~(np.isfinite(sums) & (sums >= 0)))
        if len(wrong) or (stored.size and stored.min() < 0):
            rows = wrong if len(wrong) else np.flatnonzero((values < 0).sum(axis=1))
            raise SourceError(
                f"row {block.start + int(rows[0]) + 1} has cells that are no counts: below 0, or missing."
            )
        factor = np.divide(self.total, sums, out=np.zeros_like(sums), where=sums > 0).astype(self.dtype)
        if hasattr(values, "indptr"):
            values.data *= np.repeat(factor, np.diff(values.indptr))
        else:
            values *= factor[:, None]
        return values


@dataclass(frozen=True)
class _Log1p:
    """log(1 + x) of every cell."""

    dtype: Any

    def __call__(self, block: Block) -> Any:
        values, stored = _in_floats(block, self.dtype)
        if stored.size and not stored.min() > -1:
            below = np.asarray((values <= -1).sum(axis=1)).reshape(-1)
            row = int(np.argmax(below > 0)) if below.any() else int(np.argmax(np.isnan(values.sum(axis=1))))
            raise SourceError(f"row {block.start + row + 1} has a cell of -1 or less, or a missing one: no logarithm.")
        np.log1p(stored, out=stored)
        return values


@dataclass(frozen=True)
class Share:
    """Consecutive blocks of a source, and their rows of other arrays."""

    source: Source
    rows: int | None
    start: int
    stop: int
    along: list[Any]

    def __str__(self) -> str:
        where = getattr(self.source, "path", None)
        return f"Rows {self.start + 1} to {self.stop} of {where or type(self.source).__name__}"


@dataclass(frozen=True)
class _ShareTask:
    """The statistic of a share, with the memory that its reader may use here."""

    statistic: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    working_memory: float

    def __call__(self, share: Share) -> Any:
        along = [None if x is None else _Offset(x, share.start) for x in share.along]
        with limit_working_memory(self.working_memory):
            (total,) = _merge_shares(share.source.blocks(share.rows), set(), self.statistic, self.merge, along)
        return total


@dataclass(frozen=True)
class _FitTask:
    """A fit, with the memory that its readers may use here."""

    fit: Callable[[Any], Any]
    working_memory: float

    def __call__(self, item: Any) -> Any:
        with limit_working_memory(self.working_memory):
            return self.fit(item)

    def describe(self, item: Any) -> str:
        """Say which fit it is."""
        return f"Fit {item + 1}" if isinstance(item, int) else "A fit"


class _Offset:
    """Rows of an array, counted from a row on."""

    def __init__(self, values: Any, start: int) -> None:
        self.values, self.start = values, start

    def __getitem__(self, rows: Any) -> Any:
        return self.values[rows.start - self.start : rows.stop - self.start]


def _merge_shares(
    blocks: Iterator[Block],
    starts: set[int],
    statistic: Callable[..., S],
    merge: Callable[[S, S], S],
    along: Sequence[Any],
) -> Iterator[S]:
    """Yield the merged statistics of blocks, one for each share that begins at one of ``starts``."""
    first = next(blocks)
    total = statistic(first, *(None if x is None else x[first.start : first.stop] for x in along))
    for b in blocks:
        part = statistic(b, *(None if x is None else x[b.start : b.stop] for x in along))
        if b.start in starts:
            yield total
            total = part
        else:
            total = merge(total, part)
    yield total


@dataclass(frozen=True)
class _Listed:
    """A function whose results are lists of one."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> list[Any]:
        return [self.function(*arguments)]


def rows_at_a_time(row_bytes: float, most: int = BLOCK_BYTES) -> int:
    """How many rows of a file are read together: at most an eighth of the memory budget."""
    return max(1, int(min(most, memory_budget() // 8) / max(1.0, row_bytes)))


def read_ahead(spans: list[tuple[int, int]], read: Callable[[int, int], Any]) -> Iterator[Block]:
    """Yield ``read(start, stop)`` of each span, the next one read by a thread while the caller works on this one."""
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(read, *spans[0]) if spans else None
        for (start, stop), after in zip(spans, [*spans[1:], None], strict=False):
            assert ahead is not None
            values = ahead.result()
            ahead = None if after is None else reader.submit(read, *after)
            yield Block(start, stop, values)
