"""A CSV file with a column of names beside its numbers."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.sources import DenseSource

__all__ = ["split_label"]


def split_label(path: Path, name: str) -> tuple[DenseSource, NDArray[Any]]:
    r"""Read the numbers of a CSV file, and the column ``name`` apart from them.

    Parameters
    ----------
    path : Path
        A CSV file with a header row.
    name : str
        The column to keep apart.

    Returns
    -------
    source : DenseSource
        The other columns, which must all be numbers.
    labels : ndarray of str
        The column ``name``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "t.csv")
    ...     _ = path.write_text("a,kind,b\n1,x,2\n3,y,4\n")
    ...     source, labels = split_label(path, "kind")
    >>> source.feature_names, labels.tolist()
    (['a', 'b'], ['x', 'y'])
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = [row for row in csv.reader(file) if row] or [[]]
    if name not in header:
        raise ValueError(f"no column {name!r}; the columns are {', '.join(header)}")
    _check_lengths(header, rows)
    at = header.index(name)
    labels = np.array([row[at] for row in rows])
    names = header[:at] + header[at + 1 :]
    return DenseSource(_numbers(names, [row[:at] + row[at + 1 :] for row in rows]), names), labels


def _check_lengths(header: list[str], rows: list[list[str]]) -> None:
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"row {i} has {len(row)} cells where the header has {len(header)}")


def _numbers(names: list[str], rows: list[list[str]]) -> NDArray[np.float64]:
    values = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            values[i, j] = _number(cell, i, names[j])
    return values


def _number(cell: str, row: int, column: str) -> float:
    try:
        return float(cell) if cell.strip() not in ("", "NA") else float("nan")
    except ValueError:
        raise ValueError(f"{cell!r} in row {row}, column {column!r}, is not a number") from None
