"""Missing and infinite cells of a source: counted, refused, left out, filled in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source
from gramian.sources.mapped import MappedSource
from gramian.sources.selected import selected, stacked

__all__ = ["MISSING_RULES", "Gaps", "settle", "survey"]

MISSING_RULES = ("keep", "refuse", "drop", "mean")


@dataclass(frozen=True)
class Gaps:
    """Missing cells: how many in each column, the rows that have none, and the sums of what is there."""

    counts: npt.NDArray[np.int64]
    complete: npt.NDArray[np.bool_]
    sums: npt.NDArray[np.float64]

    def describe(self, names: list[str]) -> str:
        """Return the counts in words: the columns with most first."""
        order = [j for j in np.argsort(-self.counts, kind="stable") if self.counts[j]]
        cells, columns = int(self.counts.sum()), len(order)
        shown = ", ".join(f"{names[j]} {self.counts[j]}" for j in order[:5]) + (", …" if columns > 5 else "")
        return f"{cells} {_plural(cells, 'cell')} missing in {columns} {_plural(columns, 'column')} ({shown})"


def survey(source: Source, names: list[str], where: Callable[[int], str]) -> Gaps:
    """Count the missing cells in one pass; an infinity is refused by row and column."""
    n, p = source.shape
    gaps = Gaps(np.zeros(p, np.int64), np.ones(n, np.bool_), np.zeros(p))
    if np.dtype(source.dtype).kind == "f":
        for block in source.blocks():
            _look(block, gaps, names, where)
    return gaps


def _look(block: Block, gaps: Gaps, names: list[str], where: Callable[[int], str]) -> None:
    cells = block.values.data if hasattr(block.values, "indptr") else block.values
    with np.errstate(all="ignore"):
        sums = np.asarray(block.values.sum(axis=0, dtype=np.float64)).ravel()
        if np.isfinite(sums).all():  # one look at each number: neither NaN nor an infinity leaves a sum finite
            gaps.sums[:] += sums
            return
        infinite = np.isinf(cells)
        if infinite.any():
            row, column, value = _first(block.values, infinite)
            raise ValueError(
                f"column {names[column]!r} is {value} ({where(block.start + row)}). Empty the cell, or leave out "
                "the row."
            )
        rows, columns = _positions(block.values, np.isnan(cells))
        gaps.counts[:] += np.bincount(columns, minlength=len(names))
        gaps.complete[block.start + rows] = False
        gaps.sums[:] += _observed_sums(block.values)


def _positions(values: Any, mask: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return rows and columns of marked cells; of the stored ones in a sparse matrix."""
    if not hasattr(values, "indptr"):
        rows, columns = np.nonzero(mask)
        return rows, columns
    (at,) = np.nonzero(mask)
    return np.searchsorted(values.indptr, at, side="right") - 1, values.indices[at]


def _first(values: Any, mask: npt.NDArray[np.bool_]) -> tuple[int, int, float]:
    rows, columns = _positions(values, mask)
    i, j = int(rows[0]), int(columns[0])
    return i, j, float(values[i, j])


def _observed_sums(values: Any) -> npt.NDArray[np.float64]:
    if not hasattr(values, "indptr"):
        return np.asarray(np.nansum(values, axis=0, dtype=np.float64))
    observed = np.nan_to_num(values.data, nan=0.0)
    return np.bincount(values.indices, observed, minlength=values.shape[1]).astype(np.float64)


def settle(source: Source, rule: str, names: list[str], where: Callable[[int], str]) -> tuple[Source, Gaps, list[str]]:
    """Do with missing cells what the rule says; return the source, what was found, and what was done in words."""
    gaps = survey(source, names, where)
    if not gaps.counts.any():
        return source, gaps, []
    told = gaps.describe(names)
    if rule == "refuse":
        raise ValueError(
            f"{told}. Leave out their rows with missing='drop', fill them in with missing='mean', or keep them with "
            "missing='keep' for methods that take them (PCA does)."
        )
    empty = [names[j] for j in np.flatnonzero(gaps.counts == source.shape[0])]
    if empty and rule != "keep":
        raise ValueError(f"nothing is observed in {', '.join(map(repr, empty[:5]))}: every cell is missing. Drop it.")
    if rule == "mean":
        return _filled(source, gaps), gaps, [f"{told}, filled in by column means"]
    if rule == "drop":
        left = int(np.count_nonzero(gaps.complete))
        if not left:
            raise ValueError(f"{told}: no row is complete. Use missing='mean' or 'keep', or drop columns.")
        out = source.shape[0] - left
        return selected(source, None, gaps.complete), gaps, [f"{told}: {out} {_plural(out, 'row')} left out"]
    return source, gaps, [told]


def _filled(source: Source, gaps: Gaps) -> Source:
    """Put the mean of its column in each missing cell."""
    means = gaps.sums / (source.shape[0] - gaps.counts)
    if isinstance(source, DenseSource):
        return DenseSource(_with_means(source.values, means), source.feature_names)
    if isinstance(source, SparseSource):
        return SparseSource(_with_means(source.values, means), source.feature_names)
    return FilledSource(source, lambda block: _with_means(block.values, means))


class FilledSource(MappedSource):
    """Blocks of another source with their missing cells filled in; sparse blocks stay sparse."""

    def __init__(self, source: Source, change: Callable[[Block], Any]) -> None:
        super().__init__(source, change)
        self.sparse, self.dtype = source.sparse, source.dtype

    @property
    def values(self) -> Any:
        """All rows, read now: for methods that compare every row with every other."""
        return stacked(self)


def _with_means(values: Any, means: npt.NDArray[np.float64]) -> Any:
    if hasattr(values, "indptr"):
        out = values.copy()
        gaps = np.isnan(out.data)
        out.data[gaps] = means[out.indices[gaps]]
        return out
    return np.where(np.isnan(values), means.astype(values.dtype), values)


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
