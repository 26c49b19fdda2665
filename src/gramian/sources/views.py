"""Views of other sources: changed block by block, or some of their rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source


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

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the other source's blocks, changed."""
        for block in self.source.blocks(rows):
            yield Block(block.start, block.stop, self.change(block))


def map_source(
    source: Source, change: Callable[[Block], Any], columns: int | None = None, *, alike: bool = False
) -> Source:
    """Return the changed source: an array where the data are in memory, else computed block by block.

    Parameters are those of :class:`MappedSource`.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.views import map_source
    >>> map_source(gramian.open(np.array([[1.0, np.nan]])), lambda b: np.nan_to_num(b.values)).values
    array([[1., 0.]])
    """
    view = MappedSource(source, change, columns, alike=alike)
    if not source.resident:
        return view
    if view.sparse:
        return SparseSource(view.to_array(), view.feature_names)
    out = np.empty(view.shape, view.dtype)
    for block in view.blocks():
        out[block.start : block.stop] = block.values
    return DenseSource(out, view.feature_names)


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

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield what is picked of the other source's blocks; of ``rows`` rows at most, where some are left out."""
        start = 0
        for block in self.source.blocks(rows):
            values = block.values if self.rows is None else block.values[self.rows[block.start : block.stop]]
            values = values if self.columns is None else values[:, self.columns]
            if values.shape[0]:
                yield Block(start, start + values.shape[0], values)
                start += values.shape[0]


def select(source: Source, columns: list[int] | None = None, rows: npt.NDArray[np.bool_] | None = None) -> Source:
    """Return some rows and columns of a source: a copy where it is in memory, else picked block by block.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.views import select
    >>> select(gramian.open(np.arange(6).reshape(2, 3)), [2, 0]).values
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
    if not source.resident:
        return picked
    (block,) = picked.blocks(source.shape[0])
    return (SparseSource if source.sparse else DenseSource)(block.values, picked.feature_names)


def column_values(source: Source, j: int) -> npt.NDArray[Any]:
    """Return one column: a pass over the data where they are in a file."""
    parts = [b.values[:, [j]].toarray() if source.sparse else np.array(b.values[:, [j]]) for b in source.blocks()]
    return np.concatenate(parts).ravel()
