"""Categorical variables as codes, and sums over their categories."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["Coding", "coded"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coding:
    """Which rows belong to which categories.

    Attributes
    ----------
    columns : tuple of str
        The categorical variables.
    variables, names : tuple of str
        For each category the variable it belongs to, and its own name.
    weights : ndarray of shape (g,)
        Sum of the weights of the category's rows.
    indicator : sparse array of shape (g, n)
        1 where a row belongs to a category.
    """

    columns: tuple[str, ...]
    variables: tuple[str, ...]
    names: tuple[str, ...]
    weights: Vector
    indicator: Any

    def sums(self, values: Matrix) -> Matrix:
        """Sum rows over each category."""
        return np.asarray(self.indicator @ values)

    def block_sums(self, X: Any, part: slice, mean: Vector, w: Vector) -> Matrix:
        """Sum w(x − mean) over each category, for some of the rows, dense or sparse."""
        weighted = self.indicator[:, part] * w
        if sp.issparse(X):
            return np.asarray((weighted @ X).todense() - weighted.sum(axis=1)[:, None] * mean)
        values = X.cpu() if hasattr(X, "cpu") else X
        return np.asarray(weighted @ (np.asarray(values, dtype=np.float64) - mean))

    def by_variable(self, values: Matrix) -> Matrix:
        """Sum numbers of categories over each categorical variable."""
        rows = [[name == column for name in self.variables] for column in self.columns]
        return np.asarray(np.array(rows, dtype=np.float64) @ values)


def coded(labels: Any, w: Vector) -> Coding:
    """Return the categories of each variable, sorted where they can be, less those without weight."""
    columns, table = _columns(labels)
    if len(table) != len(w):
        raise ValueError(f"labels has {len(table)} rows and X has {len(w)}.")
    variables: list[str] = []
    names: list[str] = []
    rows: list[Any] = []
    for j, column in enumerate(columns):
        values = [_hashable(value, i, column) for i, value in enumerate(table[:, j])]
        order = {category: g for g, category in enumerate(_in_order(values, w))}
        codes = np.array([order.get(value, -1) for value in values])
        variables += [column] * len(order)
        names += [str(category) for category in order]
        rows += [np.flatnonzero(codes == g) for g in range(len(order))]
    indicator = _indicator(rows, len(w))
    return Coding(columns, tuple(variables), tuple(names), np.asarray(indicator @ w), indicator)


def _columns(labels: Any) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Names of the categorical variables, and their values as a table of objects."""
    if hasattr(labels, "columns"):
        names = tuple(str(name) for name in labels.columns)
        columns = [np.asarray(labels[name], dtype=object) for name in labels.columns]
        table = np.stack(columns, axis=1) if columns else np.empty((len(labels), 0), dtype=object)
    else:
        table = _table(labels)
        own = getattr(labels, "name", None)
        names = (str(own),) if own else tuple(f"label{j}" for j in range(table.shape[1]))
    if not names:
        raise ValueError("labels has no columns.")
    if len(set(names)) < len(names):
        raise ValueError(f"labels has columns of the same name: {', '.join(names)}. Give each its own.")
    return names, table


def _table(labels: Any) -> npt.NDArray[Any]:
    """Values of one variable, or of several in columns; tuples in a list are categories, not columns."""
    if isinstance(labels, (list, tuple)) and any(isinstance(value, tuple) for value in labels):
        table = np.empty((len(labels), 1), dtype=object)
        table[:, 0] = labels
        return table
    table = np.asarray(labels, dtype=object)
    if table.ndim not in (1, 2):
        raise ValueError(f"labels has shape {table.shape}; expected one category for each row, or columns of them.")
    return table[:, None] if table.ndim == 1 else table


def _hashable(value: Any, row: int, column: str) -> Any:
    """Refuse a missing category by its place (a NaN is not equal to itself, and pandas' NA refuses to say)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        raise ValueError(f"labels: row {row} of {column!r} is missing. Give missing categories a name of their own.")
    if not isinstance(value, Hashable):
        raise ValueError(f"labels: row {row} of {column!r} is a {type(value).__name__}, which names no category.")
    return value


def _in_order(values: list[Any], w: Vector) -> list[Any]:
    seen = list(dict.fromkeys(value for value, weight in zip(values, w, strict=True) if weight > 0))
    try:
        return sorted(seen)
    except TypeError:  # categories of several types: in the order they come
        return seen


def _indicator(rows: list[Any], n: int) -> Any:
    sizes = [len(members) for members in rows]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return sp.csr_array((np.ones(int(ends[-1])), np.concatenate(rows), ends), shape=(len(rows), n))
