"""What there is to see of a table with missing cells: counts, means and spreads of the observed ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.sources import Block, Source

__all__ = ["Survey", "host", "refuse_rows", "survey"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Survey:
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

    count: Vector
    mean: Vector
    scatter: Vector
    weight: float
    rows: int
    missing: int

    @property
    def deviation(self) -> Vector:
        """Standard deviation of the observed cells of each column; 1 for a constant one."""
        spread = np.sqrt(self.scatter / np.maximum(self.count - 1.0, np.finfo(float).tiny))
        return np.where((self.scatter > 0) & (self.count > 1.0), spread, 1.0)

    def merge(self, other: Survey) -> Survey:
        """Return the survey of both sets of rows together."""
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        delta = other.mean - self.mean
        scatter = self.scatter + other.scatter + self.count * share * delta**2
        return Survey(
            count,
            self.mean + share * delta,
            scatter,
            self.weight + other.weight,
            self.rows + other.rows,
            self.missing + other.missing,
        )


def host(block: Block) -> Matrix:
    """Return a block's values as a NumPy array of float64, from wherever they are."""
    values = block.values.cpu() if hasattr(block.values, "cpu") else block.values
    return np.asarray(values, dtype=np.float64)


def survey(source: Source, w: Vector | None) -> Survey:
    """Count in one pass, and refuse by name what cannot be used: infinities, empty rows, empty columns.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.likelihood.observed import survey
    >>> survey(gramian.open(np.array([[1.0, 2.0], [3.0, np.nan]])), None).mean
    array([2., 2.])
    """
    if source.sparse:
        raise ValueError(
            "Sparse data with NaN: missing cells are taken only from dense data. Use X.toarray() where it fits."
        )

    def statistic(block: Block) -> Survey:
        X = host(block)
        part = np.ones(len(X)) if w is None else w[block.start : block.stop]
        refuse_rows(X, part, block.start, source.feature_names)
        return _of_rows(X[part > 0], part[part > 0])

    with np.errstate(over="ignore", invalid="ignore"):
        seen = source.reduce(statistic, Survey.merge)
    _refuse_extremes(seen)
    empty = np.flatnonzero(seen.count == 0)
    if len(empty):
        raise ValueError(
            f"Column {empty[0]}{_name(source.feature_names, int(empty[0]))} has no observed value"
            f"{'' if len(empty) == 1 else f', nor have {len(empty) - 1} others'}. Leave it out."
        )
    return seen


def _of_rows(X: Matrix, w: Vector) -> Survey:
    seen = ~np.isnan(X)
    count = w @ seen
    first = (
        np.where(seen.any(axis=0), X[np.argmax(seen, axis=0), np.arange(X.shape[1])], 0.0) if len(X) else 0.0 * count
    )
    D = np.where(seen, X - first, 0.0)  # about a value of the column's own, so that large means cost no digits
    shift = np.divide(w @ D, count, out=np.zeros_like(count), where=count > 0)
    scatter = w @ np.where(seen, D - shift, 0.0) ** 2
    return Survey(count, first + shift, scatter, float(w.sum()), len(X), int(np.sum(~seen)))


def _refuse_extremes(seen: Survey) -> None:
    total = float(np.sum(seen.scatter))
    if not (total == 0.0 or 1e-200 < total < 1e200):
        raise ValueError(
            f"The squares of the values sum to {total:g}, which float64 cannot work with where cells are missing. "
            "Multiply the data by a constant to bring them near 1."
        )


def refuse_rows(
    X: Matrix, w: Vector, start: int, names: list[str] | None, remedy: str = "Leave it out or give it weight 0."
) -> None:
    """Raise an error that names the first infinity, or the first row with nothing observed, if there is one."""
    infinite = np.isinf(X) & (w[:, None] > 0)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise ValueError(
            f"Input X contains infinity (inf): the first is in row {start + i}, column {j}{_name(names, int(j))}, "
            "counted from 0. Only NaN counts as missing; replace it."
        )
    empty = np.flatnonzero(np.isnan(X).all(axis=1) & (w > 0))
    if len(empty):
        raise ValueError(f"Row {start + empty[0]} (from 0) has no observed value. {remedy}")


def _name(names: list[str] | None, j: int) -> str:
    return f" ({names[j]!r})" if names else ""
