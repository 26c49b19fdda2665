"""A Source knows where numbers live and hands them out in blocks of rows. It knows nothing of mathematics."""

from __future__ import annotations

import gzip
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from gramian.sources.errors import SourceError

S = TypeVar("S")

BLOCK_BYTES = 2**24  # 16 MiB: long reads, and small compared with any sensible memory budget


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let every ValueError of the block name this file, unless it names one already."""
    try:
        yield
    except SourceError as error:
        error.path = path if error.path is None else error.path
        raise
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(f"damaged gzip file: {error}", path=path) from error
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
    """Rows ``start`` to ``stop`` of a source and their values."""

    start: int
    stop: int
    values: Any


def memory_budget() -> int:
    """Return scikit-learn's ``working_memory`` setting in bytes."""
    return int(get_config()["working_memory"] * 2**20)


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
    """

    shape: tuple[int, int]
    dtype: Any
    xp: Any = np
    device: Any = None
    feature_names: list[str] | None = None
    sparse: bool = False
    resident: bool = True

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

    def reduce(self, statistic: Callable[[Block], S], merge: Callable[[S, S], S], rows: int | None = None) -> S:
        """Return the merged statistics of all blocks: one pass.

        Examples
        --------
        >>> import numpy as np, gramian
        >>> source = gramian.open(np.arange(6.0).reshape(3, 2))
        >>> float(source.reduce(lambda b: b.values.sum(), lambda a, b: a + b, rows=2))
        15.0
        """
        parts = iter(self.blocks(rows))
        total = statistic(next(parts))
        for block in parts:
            total = merge(total, statistic(block))
        return total

    def ranges(self, rows: int | None, row_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield the (start, stop) of blocks that take at most a quarter of the memory budget."""
        n = self.shape[0]
        if rows is None:
            rows = max(1, memory_budget() // 4 // max(1, row_bytes))
        for start in range(0, n, rows):
            yield start, min(start + rows, n)

    def __repr__(self) -> str:
        n, p = self.shape
        return f"{type(self).__name__}({n} x {p}, {self.dtype})"


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
