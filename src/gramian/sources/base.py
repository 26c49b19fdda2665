"""A Source knows where numbers live and hands them out in blocks of rows. It knows nothing of mathematics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn import get_config

__all__ = ["Block", "Source", "memory_budget"]

S = TypeVar("S")


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
