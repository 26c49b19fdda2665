"""Some rows and some columns of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source

__all__ = ["MappedSource", "SelectedSource", "column_values", "mapped", "selected", "stacked"]


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
    >>> from gramian.sources.views import mapped
    >>> mapped(gramian.open(np.array([[1.0, np.nan]])), lambda b: np.nan_to_num(b.values)).values
    array([[1., 0.]])
    """
    if not source.resident:
        return MappedSource(source, change, columns)
    out = np.empty((source.shape[0], source.shape[1] if columns is None else columns))
    for block in source.blocks():
        out[block.start : block.stop] = change(block)
    return DenseSource(out, source.feature_names if columns is None else None)


Index = npt.NDArray[np.intp]


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

    def __init__(self, source: Source, columns: Index | None = None, rows: npt.NDArray[np.bool_] | None = None) -> None:
        self.source, self.columns, self.rows = source, columns, rows
        n = source.shape[0] if rows is None else int(np.count_nonzero(rows))
        self.shape = (n, source.shape[1] if columns is None else len(columns))
        self.dtype, self.sparse = source.dtype, source.sparse
        names = source.feature_names
        self.feature_names = names if names is None or columns is None else [names[j] for j in columns]

    @property
    def values(self) -> Any:
        """All that is picked, read now: for methods that compare every row with every other."""
        return stacked(self)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield what is picked of the other source's blocks; of ``rows`` rows at most, where some are left out."""
        start = 0
        for block in self.source.blocks(rows):
            values = block.values if self.rows is None else block.values[self.rows[block.start : block.stop]]
            values = values if self.columns is None else values[:, self.columns]
            if values.shape[0]:
                yield Block(start, start + values.shape[0], values)
                start += values.shape[0]


def selected(source: Source, columns: list[int] | None = None, rows: npt.NDArray[np.bool_] | None = None) -> Source:
    """Return some rows and columns of a source: a copy where it is in memory, else picked block by block.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.views import selected
    >>> selected(gramian.open(np.arange(6).reshape(2, 3)), [2, 0]).values
    array([[2, 0],
           [5, 3]])
    """
    if columns is not None and columns == list(range(source.shape[1])):
        columns = None
    if rows is not None and rows.all():
        rows = None
    if columns is None and rows is None:
        return source
    picked = SelectedSource(source, None if columns is None else np.asarray(columns, dtype=np.intp), rows)
    if not isinstance(source, DenseSource | SparseSource):
        return picked
    (block,) = picked.blocks(source.shape[0])
    return type(source)(block.values, picked.feature_names)


def stacked(source: Source) -> Any:
    """Return all rows of a source as one array, or one sparse matrix."""
    if source.sparse:
        return sp.csr_array(sp.vstack([block.values for block in source.blocks()], format="csr"))
    return np.concatenate([np.array(block.values) for block in source.blocks()])


def column_values(source: Source, j: int) -> npt.NDArray[Any]:
    """Return one column: a pass over the data where they are in a file."""
    parts = [b.values[:, [j]].toarray() if source.sparse else np.array(b.values[:, [j]]) for b in source.blocks()]
    return np.concatenate(parts).ravel()
