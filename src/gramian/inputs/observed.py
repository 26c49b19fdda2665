"""Observed cells of rows of which a part is missing: counts, means and scatter by column, and what cannot be used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import to_numpy
from gramian.sources import Block, Source

Array = npt.NDArray[np.float64]
REMEDY = "Leave out such rows and columns, as gramian.open(X, keep_empty=False) does."


@dataclass(frozen=True, eq=False)
class ObservedCells:
    """Observed cells by column, counted with the weights of their rows.

    Attributes
    ----------
    count, mean, scatter : ndarray of shape (p,)
        Σ w, the mean, and Σ w (x − mean)², over observed cells.
    weight : float
        Σ w of all rows.
    rows, missing : int
        Rows with a positive weight, and how many of their cells are missing.
    """

    count: Array
    mean: Array
    scatter: Array
    weight: float
    rows: int
    missing: int

    @property
    def deviation(self) -> Array:
        """Standard deviation of the observed cells of each column; 1 for a constant one."""
        spread = np.sqrt(self.scatter / np.maximum(self.count - 1.0, np.finfo(float).tiny))
        return np.where((self.scatter > 0) & (self.count > 1.0), spread, 1.0)

    def merge(self, other: ObservedCells) -> ObservedCells:
        """Return the summary of both sets of rows together."""
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        delta = other.mean - self.mean
        scatter = self.scatter + other.scatter + self.count * share * delta**2
        return ObservedCells(
            count,
            self.mean + share * delta,
            scatter,
            self.weight + other.weight,
            self.rows + other.rows,
            self.missing + other.missing,
        )


def summarise_observed(source: Source, w: Array | None) -> ObservedCells:
    """Count in one pass, and refuse by name what cannot be used: infinities, empty rows, empty columns.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.inputs.observed import summarise_observed
    >>> summarise_observed(gramian.open(np.array([[1.0, 2.0], [3.0, np.nan]])), None).mean
    array([2., 2.])
    """
    if source.sparse:
        raise ValueError(
            "Sparse data with NaN: missing cells are taken only from dense data. Use X.toarray() where it fits."
        )

    def statistic(block: Block) -> ObservedCells:
        X = to_numpy(block.values, float)
        part = np.ones(len(X)) if w is None else w[block.start : block.stop]
        refuse_rows(X, part, block.start, source.feature_names)
        X, part = X[part > 0], part[part > 0]
        seen = ~np.isnan(X)
        count = part @ seen
        # about a value of the column's own, so that large means cost no digits
        first = X[np.argmax(seen, axis=0), np.arange(X.shape[1])] if len(X) else 0.0 * count
        first = np.where(seen.any(axis=0), first, 0.0)
        D = np.where(seen, X - first, 0.0)
        shift = np.divide(part @ D, count, out=np.zeros_like(count), where=count > 0)
        scatter = part @ np.where(seen, D - shift, 0.0) ** 2
        return ObservedCells(count, first + shift, scatter, float(part.sum()), len(X), int(np.sum(~seen)))

    with np.errstate(over="ignore", invalid="ignore"):
        found = source.reduce(statistic, ObservedCells.merge)
    total = float(np.sum(found.scatter))
    if not (total == 0.0 or 1e-200 < total < 1e200):
        raise ValueError(
            f"The squares of the values sum to {total:g}, which float64 cannot work with where cells are missing. "
            "Multiply the data by a constant to bring them near 1."
        )
    empty = np.flatnonzero(found.count == 0)
    if len(empty):
        raise NothingObservedError(
            f"Column {empty[0] + 1}{_quote_name(source.feature_names, int(empty[0]))} has no observed value"
            f"{'' if len(empty) == 1 else f', nor have {len(empty) - 1} others'}. {REMEDY}"
        )
    return found


class NothingObservedError(ValueError):
    """A row or a column has no observed value."""


def refuse_rows(X: Array, w: Array, start: int, names: list[str] | None, remedy: str = REMEDY) -> None:
    """Raise an error that names the first infinity, or the first row with nothing observed, if there is one."""
    infinite = np.isinf(X) & (w[:, None] > 0)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise ValueError(
            f"Input X contains infinity (inf): the first is in row {start + i + 1}, column {j + 1}"
            f"{_quote_name(names, int(j))}, counted from 1. Only NaN counts as missing; replace it."
        )
    empty = np.flatnonzero(np.isnan(X).all(axis=1) & (w > 0))
    if len(empty):
        raise NothingObservedError(f"Row {start + empty[0] + 1} (from 1) has no observed value. {remedy}")


def _quote_name(names: list[str] | None, j: int) -> str:
    return f" ({names[j]!r})" if names else ""
