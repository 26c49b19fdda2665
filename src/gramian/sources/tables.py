"""Tables in files: the numbers to fit, and beside them a target, labels and names of the rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources._checksum import checksum
from gramian.sources._gaps import MISSING_RULES, settle
from gramian.sources._kinds import split_dataset
from gramian.sources._parts import Choice, Parts, array_parts, h5ad_parts, tabular_parts
from gramian.sources._roles import Name
from gramian.sources.arrays import DenseSource
from gramian.sources.base import Source
from gramian.sources.opening import check_file
from gramian.sources.selected import selected
from gramian.sources.standard_input import Spool, spool_standard_input
from gramian.sources.tabular import TABULAR, telling

__all__ = ["Table", "read_table"]


@dataclass(frozen=True, eq=False)
class Table:
    """What was read from a file.

    Attributes
    ----------
    source : Source
        The columns of numbers, with their names.
    target : ndarray of shape (n,) or None
        The target: numbers, or text.
    label, ids : ndarray of str of shape (n,) or None
        What classes the rows are of, and what they are called.
    names : list of str
        Of the columns of numbers; ``sex=female`` for a level of a text column.
    path : Path
        The file; ``-`` for standard input.
    notes : tuple of str
        What was detected and done.
    missing : dict of str to int
        How many cells were missing, for the columns that have any; empty where nobody looked (a file that is read in
        blocks, with ``missing="keep"``).
    rows : ndarray of shape (n,) or None
        The numbers in the file, from 0, of the rows that are left where some were left out; None where all are there.
    """

    source: Source
    target: npt.NDArray[Any] | None
    label: npt.NDArray[np.str_] | None
    ids: npt.NDArray[np.str_] | None
    names: list[str]
    path: Path
    notes: tuple[str, ...]
    missing: dict[str, int] = field(default_factory=dict)
    rows: npt.NDArray[np.intp] | None = None
    sha256: str | None = field(default=None, repr=False)

    def checksum(self) -> str:
        """Return the SHA-256 of the file in hexadecimal digits; of a folder, that of its files' names and bytes."""
        return self.sha256 or checksum(self.path)

    def __repr__(self) -> str:
        n, p = self.source.shape
        extra = [role for role in ("target", "label", "ids") if getattr(self, role) is not None]
        size = f"{n} {'row' if n == 1 else 'rows'}, {p} {'column' if p == 1 else 'columns'}"
        lines = [f"{self.path.name}: {size}{''.join(f', {role}' for role in extra)}"]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Name | Sequence[Name] | None = None,
    drop: Name | Sequence[Name] = (),
    target: Name | None = None,
    label: Name | None = None,
    id: Name | None = None,
    categorical: str = "refuse",
    missing: str = "keep",
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    dataset: str | None = None,
    like: Sequence[str] | None = None,
) -> Table:
    r"""Read the numbers of a file, and the columns that are not fitted apart from them.

    Parameters
    ----------
    path : path-like
        A file that :func:`gramian.open` reads, or ``"-"`` for standard input.
    columns, drop : name, or list of names
        The columns to fit, in this order (all where not given), and columns to leave out. A column is given by its
        name, or by its number counted from 1.
    target, label, id : name, optional
        Columns that are not fitted: what to predict, the class of each row, the name of each row. A first column
        without a name in the header is the id unless another is given. In an AnnData file they are columns of ``obs``.
    categorical : {"refuse", "onehot", "drop"}, default="refuse"
        What becomes of columns of text: refused with a list; a column of zeros and ones for each of their values; left
        out. Truth values are the numbers 0 and 1. Dates and times are never encoded.
    missing : {"keep", "refuse", "drop", "mean"}, default="keep"
        What becomes of missing cells: NaN; refused with counts; their rows left out; the column's mean. A row whose
        target is missing is left out with "drop", else refused.
    delimiter, decimal : str, optional
        What separates the cells of a text and marks decimals; found out where not given.
    header : bool, optional
        Whether the first row of a text holds names; found out where not given.
    dataset : str, optional
        Which array of a file that holds several.
    like : sequence of str, optional
        The columns of numbers of an earlier table (its ``names``), to be read from this file in that order, with the
        same levels of text columns. What is not there is refused by name.

    Returns
    -------
    Table
        The source, what is beside it, and notes on what was detected and done.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gramian.sources.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("name;height;sex\nAnn;1,60;f\nBo;NA;m\nCy;1,81;m\n")
    ...     table = read_table(path, id="name", categorical="onehot", missing="mean")
    >>> table
    people.csv: 3 rows, 3 columns, ids
      delimiter ';', decimal comma, header row
      column sex: one-hot of 2
      1 cell missing in 1 column (height 1), filled in by column means
    >>> table.names, table.ids.tolist()
    (['height', 'sex=f', 'sex=m'], ['Ann', 'Bo', 'Cy'])
    >>> table.source.values
    array([[1.6  , 1.   , 0.   ],
           [1.705, 0.   , 1.   ],
           [1.81 , 0.   , 1.   ]])
    """
    if missing not in MISSING_RULES:
        raise ValueError(f"missing={missing!r}: give one of {', '.join(MISSING_RULES)}.")
    choice = Choice(columns, drop, target, label, id, categorical, like)
    text = {"delimiter": delimiter, "decimal": decimal, "header": header}
    if os.fspath(path) == "-":
        return _from_standard_input(choice, text, dataset, missing)
    name, dataset = split_dataset(os.fspath(path), dataset)
    return _read(Path(name), choice, text, dataset, missing)


def _from_standard_input(choice: Choice, text: dict[str, Any], dataset: str | None, missing: str) -> Table:
    spool: Spool = spool_standard_input()
    try:
        table = _read(spool.path, choice, text, dataset, missing)
    except BaseException as error:
        spool.remove()
        if isinstance(error, ValueError):
            raise ValueError(spool.rename(str(error))) from error
        raise
    spool.keep_for(table.source)
    return replace(table, path=Path("-"), sha256=spool.sha256)


def _read(path: Path, choice: Choice, text: dict[str, Any], dataset: str | None, missing: str) -> Table:
    suffix = check_file(path)
    with telling(path):
        if suffix in TABULAR:
            if dataset is not None:
                raise ValueError(f"a {suffix} file holds one table; dataset={dataset!r} is for files of several.")
            parts = tabular_parts(path, suffix, choice, text)
        else:
            given = [f"{name}={value!r}" for name, value in text.items() if value is not None]
            if given:
                raise ValueError(f"{', '.join(given)} is for text files; a {suffix} file says such things itself.")
            parts = h5ad_parts(path, choice, dataset) if suffix == ".h5ad" else array_parts(path, choice, dataset)
        return _settled(path, parts, missing)


def _settled(path: Path, parts: Parts, missing: str) -> Table:
    """Do with missing cells what is asked, in the table and in what is beside it."""
    parts, notes = _with_target(parts, missing)
    names = parts.names
    if 0 in parts.source.shape:
        raise ValueError(f"{parts.source.shape[0]} rows and {parts.source.shape[1]} columns: nothing to fit.")
    if missing == "keep" and not parts.source.resident:
        notes.append("read in blocks: missing cells are not counted beforehand")
        return _table(path, parts, notes, {})
    source, gaps, told = settle(parts.source, missing, names, parts.where)
    kept = gaps.complete if missing == "drop" else None
    parts = replace(parts, source=source) if kept is None else parts.only(kept, source)
    counts = {names[j]: int(gaps.counts[j]) for j in np.flatnonzero(gaps.counts)}
    return _table(path, parts, [*notes, *told, *_row_counters(parts)], counts)


def _with_target(parts: Parts, missing: str) -> tuple[Parts, list[str]]:
    """Leave out rows without a target, or refuse them."""
    absent = parts.target_missing
    if parts.target is None or absent is None or not absent.any():
        return parts, list(parts.notes)
    first, count = int(np.argmax(absent)), int(np.count_nonzero(absent))
    if missing != "drop":
        raise ValueError(
            f"the target is missing in {count} of {len(absent)} rows (first: {parts.where(first)}). Leave them out "
            "with missing='drop'."
        )
    if count == len(absent):
        raise ValueError("the target is missing in every row. Name another column.")
    told = f"the target is missing in {count} {'row' if count == 1 else 'rows'}: left out"
    return parts.only(~absent, selected(parts.source, None, ~absent)), [*parts.notes, told]


def _row_counters(parts: Parts) -> list[str]:
    """Point out columns that count the rows: they are seldom meant to be fitted."""
    n, source = parts.source.shape[0], parts.source
    if not isinstance(source, DenseSource) or n < 5:
        return []
    ends = source.values[-1].astype(np.float64) - source.values[0].astype(np.float64) == n - 1
    found = [j for j in np.flatnonzero(ends) if np.all(np.diff(source.values[:, j].astype(np.float64)) == 1)]
    return [
        f"column {parts.names[j]} counts the rows from {source.values[0, j]:g}; drop it, or give it as id, if it is no "
        "measurement"
        for j in found[:3]
    ]


def _table(path: Path, parts: Parts, notes: list[str], counts: dict[str, int]) -> Table:
    if parts.source.feature_names is None:
        parts.source.feature_names = parts.names
    return Table(
        source=parts.source,
        target=parts.target,
        label=parts.label,
        ids=parts.ids,
        names=parts.names,
        path=path,
        notes=tuple(notes),
        missing=counts,
        rows=parts.rows,
    )
