"""A source whose blocks are another's, changed on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gramian.sources.arrays import DenseSource
from gramian.sources.base import Block, Source

__all__ = ["MappedSource", "mapped"]


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
    """

    resident = False

    def __init__(self, source: Source, change: Callable[[Block], Any], columns: int | None = None) -> None:
        self.source, self.change = source, change
        self.shape = (source.shape[0], source.shape[1] if columns is None else columns)
        self.feature_names = source.feature_names if columns is None else None
        self.dtype = np.dtype(np.float64)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the other source's blocks, changed."""
        for block in self.source.blocks(rows):
            yield Block(block.start, block.stop, self.change(block))


def mapped(source: Source, change: Callable[[Block], Any], columns: int | None = None) -> Source:
    """Return the changed source: an array where the data are in memory, else computed block by block.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.mapped import mapped
    >>> mapped(gramian.open(np.array([[1.0, np.nan]])), lambda b: np.nan_to_num(b.values)).values
    array([[1., 0.]])
    """
    if not source.resident:
        return MappedSource(source, change, columns)
    out = np.empty((source.shape[0], source.shape[1] if columns is None else columns))
    for block in source.blocks():
        out[block.start : block.stop] = change(block)
    return DenseSource(out, source.feature_names if columns is None else None)
