"""Small questions to what was read: its names, its values, whether they fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.sources import Block, DenseSource, Source, memory_budget

__all__ = ["Watched", "in_memory", "rows_of", "shown_columns", "watched"]

COLOURED = 40  # columns of the table by which a report can colour its points


class Watched(Source):
    """A source in a file that reports how far each pass over it is.

    Parameters
    ----------
    source : Source
        What is read.
    report : callable
        Called as ``report(rows, all_rows)`` after each block.
    """

    resident = False

    def __init__(self, source: Source, report: Callable[[int, int], None]) -> None:
        self.source, self.report = source, report
        self.shape, self.dtype, self.xp = source.shape, source.dtype, source.xp
        self.feature_names, self.sparse = source.feature_names, source.sparse

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the blocks of the source."""
        for block in self.source.blocks(rows):
            yield block
            self.report(block.stop, self.shape[0])


def watched(source: Source, report: Callable[[int, int], None]) -> Source:
    """Watch what is read from a file; what is in memory is as it was."""
    return source if source.resident else Watched(source, report)


def in_memory(source: Source) -> Source:
    """Hold a table of modest size in memory, which shuffling its columns needs."""
    n, p = source.shape
    if source.resident or 8 * n * p > memory_budget():
        return source
    return DenseSource(rows_of(source), source.feature_names)


def rows_of(source: Source) -> NDArray[np.float64]:
    """Return all rows as a dense array of float64."""
    out = np.empty(source.shape)
    for block in source.blocks():
        out[block.start : block.stop] = block.values.toarray() if source.sparse else block.values
    return out


def shown_columns(source: Source) -> dict[str, Any] | None:
    """Return the first columns by name, of a table in memory, for points to be coloured by."""
    if not source.resident or source.sparse:
        return None
    names = (source.feature_names or [])[:COLOURED]
    values = np.asarray(source.values)[:, : len(names)]  # type: ignore[attr-defined]
    return {name: values[:, j] for j, name in enumerate(names)}
