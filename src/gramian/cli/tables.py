"""Tables of results: columns by name, as CSV or Parquet, and as tables on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import rich.box
from rich.markup import escape
from rich.table import Table

from gramian.cli.errors import one_line
from gramian.cli.outputs import write_csv
from gramian.cli.sources import shown_columns
from gramian.sources.tables import Table as InputTable
from gramian.sources.writing import write_parquet

__all__ = ["Columns", "csv_rows", "listed", "numbered", "row_keys", "screen_table", "told_of", "write_table"]

Columns: TypeAlias = Mapping[str, Any]

WORD = 11  # letters of a word that are kept together on the screen
BLOCK = 10_000  # rows that are turned into text at a time


def row_keys(table: InputTable) -> dict[str, Any]:
    """Return the columns that say which row is which: its number in the file, from 0, its name and its class."""
    keys: dict[str, Any] = {"row": np.arange(table.source.shape[0]) if table.rows is None else table.rows}
    if table.ids is not None:
        keys["id"] = table.ids
    if table.label is not None:
        keys["label"] = table.label
    return keys


def told_of(table: InputTable, label: str | None) -> dict[str, Any]:
    """Return what reports are told of the rows: names, classes, numbers in the file, columns to colour by."""
    named = None if label is None or label.isdecimal() else label  # a column can be given by its number
    return {
        "ids": listed(table.ids),
        "labels": listed(table.label),
        "label_name": named or "label",
        "rows": table.rows,
        "columns": shown_columns(table.source),
    }


def listed(values: Any) -> list[str] | None:
    """Return texts as a list, or None."""
    return None if values is None else [str(value) for value in values]


def numbered(prefix: str, values: Any) -> dict[str, Any]:
    """Return the columns of a matrix, named PC1, PC2, … after a prefix.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.cli.tables import numbered
    >>> list(numbered("PC", np.zeros((3, 2))))
    ['PC1', 'PC2']
    """
    return {f"{prefix}{j + 1}": values[:, j] for j in range(values.shape[1])}


def write_table(path: Path, columns: Columns) -> None:
    """Write columns as the ending of the file says."""
    if path.suffix.lower() == ".parquet":
        write_parquet(path, columns)
    else:
        write_csv(path, list(columns), csv_rows(columns))


def csv_rows(columns: Columns) -> Iterator[Sequence[Any]]:
    """Yield the rows, turning some at a time into plain Python values."""
    arrays = [np.asarray(column) for column in columns.values()]
    length = len(arrays[0]) if arrays else 0
    for start in range(0, length, BLOCK):
        yield from zip(*(_cells(array[start : start + BLOCK]) for array in arrays), strict=True)


def _cells(values: Any) -> list[Any]:
    cells: list[Any] = values.tolist()
    if values.dtype.kind == "f":
        return ["" if cell != cell else cell for cell in cells]
    return cells


def screen_table(title: str, columns: Columns, most: int = 12) -> Table:
    """Return columns as a table for the screen: numbers to five digits, and of many rows the first ones."""
    table = Table(title=escape(one_line(title)), box=rich.box.SIMPLE_HEAD, title_justify="left")
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    for name, array in arrays.items():
        number = array.dtype.kind in "fiu"
        side: Any = "right" if number else "left"
        table.add_column(
            escape(one_line(name)), justify=side, overflow="fold", no_wrap=number, min_width=_longest_word(array)
        )
    length = len(next(iter(arrays.values()), ()))
    for i in range(min(length, most)):
        table.add_row(*(_shown(array[i]) for array in arrays.values()))
    if length > most:
        table.add_row(*["…"] * len(arrays))
    return table


def _longest_word(array: Any) -> int | None:
    """Room for the words of a column of text, so that they are not broken; long ones are."""
    if array.dtype.kind in "fiu":
        return None
    return min(WORD, max((len(word) for cell in array[:100] for word in one_line(cell).split()), default=0))


def _shown(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if value != value else f"{value:.5g}"
    return escape(one_line(value))
