"""Tables of text, in and out: rows formatted by the block, fields named by their line where they are wrong."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

__all__ = ["Lines", "names", "read_lines", "text", "write_rows"]

Text = npt.NDArray[np.object_]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ROWS = 1 << 14  # rows formatted together


def text(values: Sequence[Any]) -> Text:
    """An array of Python strings."""
    out = np.empty(len(values), dtype=object)
    out[:] = [str(value) for value in values]
    return out


def names(column: Text, absent: str = "0") -> Text:
    """A column of names, each of which is one field: ``absent`` for an empty one, and none with white space in it.

    Examples
    --------
    >>> names(text(["a", ""])).tolist()
    ['a', '0']
    """
    fields = {name: name.split() for name in set(column)}
    if all(parts == [name] for name, parts in fields.items()):
        return column
    bad = next((name for name, parts in fields.items() if parts not in ([name], [])), None)
    if bad is not None:
        raise ValueError(
            f"The name {bad!r} has white space in it, which would be two fields of a text file: replace it by _, or "
            "write the formats 'gramian' and 'parquet'."
        )
    return text([name if fields[name] else absent for name in column])


def write_rows(file: IO[str], row: str, *columns: npt.NDArray[Any]) -> None:
    r"""Write ``row % (field, field, …)`` for every row of the columns; a matrix is as many columns as it has.

    Examples
    --------
    >>> import io, numpy as np
    >>> file = io.StringIO()
    >>> write_rows(file, "%s %.6g %.6g\n", np.array(["a", "b"], dtype=object), np.array([[1 / 3, 2.0], [0.5, 1e-7]]))
    >>> print(file.getvalue().rstrip())
    a 0.333333 2
    b 0.5 1e-07
    """
    for start in range(0, len(columns[0]), ROWS):
        part = [column[start : start + ROWS] for column in columns]
        fields = [line for block in part for line in (block.T.tolist() if block.ndim == 2 else [block.tolist()])]
        file.write("".join([row % values for values in zip(*fields, strict=True)]))


@dataclass(frozen=True, eq=False)
class Lines:
    """The fields of a file's lines, split at white space, as many in each.

    Attributes
    ----------
    path : Path
        The file.
    header : list of str or None
        Fields of the first line, where that is a header.
    columns : list of ndarray
        The fields by column: numbers where they were asked for, else text.
    first : int
        Number of the line with the first row.
    """

    path: Path
    header: list[str] | None
    columns: list[npt.NDArray[Any]]
    first: int

    def place(self, name: str) -> int | None:
        """Where a column of the header is."""
        return None if self.header is None or name not in self.header else self.header.index(name)

    def text(self, j: int) -> Text:
        """A column of text."""
        return np.ascontiguousarray(self.columns[j])

    def numbers(self, where: Sequence[int]) -> Numbers:
        """Some columns of numbers as a matrix."""
        return np.stack([self.columns[j] for j in where], axis=1)


def read_lines(
    path: Path, is_header: Callable[[list[str]], bool], numeric: Callable[[list[str]], Sequence[int]]
) -> Lines:
    """Read a table of text.

    Parameters
    ----------
    path : Path
        The file.
    is_header : callable
        Whether the first line, given as fields, is a header.
    numeric : callable
        Which columns are numbers, told by the fields of the first line.
    """
    content = _content(path)
    head, _, rest = content.partition("\n")
    fields = head.split()
    header = fields if fields and is_header(fields) else None
    body, first = (content, 1) if header is None else (rest, 2)
    if not body.strip():
        raise ValueError(f"{path}: the file has no rows.")
    if not fields:
        raise ValueError(f"{path}: line 1 is empty.")
    try:
        numbers = np.isin(np.arange(len(fields)), list(numeric(fields)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return Lines(path, header, _columns(path, body, first, numbers, header), first)


def _columns(path: Path, body: str, first: int, numbers: Mask, header: list[str] | None) -> list[npt.NDArray[Any]]:
    dtype = np.dtype([(f"{j}", np.float64 if number else object) for j, number in enumerate(numbers)])
    try:
        table = np.loadtxt(io.StringIO(body, None), dtype=dtype, comments=None, ndmin=1)
    except ValueError as error:
        _complain(path, body, first, numbers, header)
        raise ValueError(f"{path}: {error}") from error
    columns = [table[name] for name in table.dtype.names or ()]
    if not all(np.isfinite(column).all() for column, number in zip(columns, numbers, strict=True) if number):
        _complain(path, body, first, numbers, header)
    return columns


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text in UTF-8 (byte {error.start}).") from None


def _complain(path: Path, body: str, first: int, numbers: Mask, header: list[str] | None) -> None:
    """Name the first line that has another number of fields, or something else where a number should be."""
    for line, row in enumerate(body.splitlines(), first):
        fields = row.split()
        if fields and len(fields) != len(numbers):
            raise ValueError(
                f"{path}: line {line} has {len(fields)} fields; {len(numbers)} were expected as in the first line."
            )
        for j, field in enumerate(fields):
            if numbers[j] and not _is_finite(field):
                name = f" ({header[j]})" if header else ""
                raise ValueError(f"{path}: line {line}, column {j + 1}{name}: {field!r} is not a finite number.")


def _is_finite(field: str) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False
