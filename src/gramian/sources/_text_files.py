"""The columns of text tables, by pyarrow, a piece of the file at a time.

pyarrow reads a piece with all cores; the numbers go into one array, so that the whole takes little more memory than
they do. A piece ends with a line, and never within quotes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources._dialect import MISSING, Dialect, tidied
from gramian.sources._extras import load_pyarrow
from gramian.sources._text_lines import check_lines, opened, refuse_undecodable

__all__ = ["Columns", "read_columns", "read_verbatim"]

PIECE = 2**25
BLOCK = 2**20  # what one core parses at a time


class _OtherwiseError(Exception):
    """The pieces do not fit together; the file must be read whole."""


@dataclass
class Columns:
    """What was read: columns of numbers as one array, the others as pyarrow's.

    Attributes
    ----------
    numeric : list of int
        The columns of ``values``, by their numbers in the file.
    values : ndarray
        Their numbers, NaN where missing; more rows than ``rows`` while it is being filled.
    others : dict of int to list of arrays
        Columns that are not numbers, in chunks.
    rows : int
        How many were read.
    quotes, lines : int
        How many there are in the file.
    """

    numeric: list[int]
    values: npt.NDArray[np.float64]
    others: dict[int, list[Any]] = field(default_factory=dict)
    rows: int = 0
    quotes: int = 0
    lines: int = 0

    def append(self, table: Any, expected: int) -> None:
        """Add the rows of a pyarrow table, of ``expected`` in all."""
        n = table.num_rows
        if self.rows + n > len(self.values):
            grown = np.empty((max(expected, self.rows + n), len(self.numeric)))
            grown[: self.rows] = self.values[: self.rows]
            self.values = grown
        for i, j in enumerate(self.numeric):
            at = self.rows
            for chunk in table.column(str(j)).chunks:
                self.values[at : at + len(chunk), i] = _floats(chunk)
                at += len(chunk)
        for j, chunks in self.others.items():
            chunks.extend(table.column(str(j)).chunks)
        self.rows += n


def _floats(chunk: Any) -> npt.NDArray[np.float64]:
    pa = load_pyarrow()
    found: npt.NDArray[np.float64] = chunk.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def read_columns(path: Path, dialect: Dialect, columns: list[int]) -> Columns:
    """Read columns of a text table; numbers, truth values and dates are recognised.

    Parameters
    ----------
    path : Path
        The file.
    dialect : Dialect
        How it is written.
    columns : list of int
        Which columns, counted from 0.
    """
    pa = load_pyarrow()
    try:
        try:
            found = _in_pieces(pa, path, dialect, columns)
        except _OtherwiseError:
            found = _whole(pa, path, dialect, columns)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        check_lines(path, dialect)
        raise ValueError(f"cannot be read as a table: {error}") from error
    if any(pa.types.is_binary(chunks[0].type) for chunks in found.others.values() if chunks):
        refuse_undecodable(path)
    if found.quotes and found.lines != dialect.skip + found.rows:  # quotes have joined lines, rightly or not
        check_lines(path, dialect)
    return found


def read_verbatim(path: Path, dialect: Dialect, column: int) -> list[str]:
    """Read one column as it is written, 'NA' and leading zeros included."""
    pa = load_pyarrow()
    with opened(path) as file:
        data = file.read() if not dialect.padded else tidied(file.read(), dialect.delimiter)
    try:
        table = _parse(pa, data, dialect, [column], {str(column): pa.string()}, skip=dialect.skip, verbatim=True)
    except pa.ArrowInvalid as error:
        check_lines(path, dialect)
        raise ValueError(f"cannot be read as a table: {error}") from error
    texts: list[str] = table.column(0).to_pylist()
    return texts


def _in_pieces(pa: Any, path: Path, dialect: Dialect, columns: list[int]) -> Columns:
    size, seen, skip = path.stat().st_size, 0, dialect.skip
    found: Columns | None = None
    types: dict[str, Any] = {}
    for piece, quotes in _pieces(path):
        try:
            table = _parse(pa, _tidy(piece, dialect), dialect, columns, types, skip=skip)
        except pa.ArrowInvalid as error:
            raise _OtherwiseError from error
        if found is None:
            found, types = _begun(pa, table, columns)
        seen, skip = seen + len(piece), 0
        expected = int((found.rows + table.num_rows) * max(1.0, size / seen) * 1.02) if size > seen else 0
        found.append(table, expected)
        found.quotes, found.lines = found.quotes + quotes, found.lines + piece.count(b"\n")
        found.lines += not piece.endswith(b"\n")
    if found is None:
        raise _OtherwiseError
    return found


def _pieces(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield pieces that end with lines, and how many quotes each has; none can be made where quotes are open."""
    with opened(path) as file:
        rest = b""
        while data := file.read(PIECE):
            rest += data
            cut = rest.rfind(b"\n") + 1
            if cut:
                piece, rest = rest[:cut], rest[cut:]
                quotes = piece.count(b'"')
                if quotes % 2:
                    raise _OtherwiseError
                yield piece, quotes
        if rest:
            yield rest, rest.count(b'"')


def _begun(pa: Any, table: Any, columns: list[int]) -> tuple[Columns, dict[str, Any]]:
    """Return an empty store for columns as the first piece has them, and their types for the pieces that follow."""
    kinds = {j: table.column(str(j)).type for j in columns}
    numeric = [j for j in columns if _is_number(pa, kinds[j])]
    found = Columns(numeric, np.empty((0, len(numeric))), {j: [] for j in sorted({*columns} - {*numeric})})
    plain = {j for j in numeric if not pa.types.is_boolean(kinds[j])}
    return found, {str(j): pa.float64() if j in plain else kinds[j] for j in columns}


def _is_number(pa: Any, kind: Any) -> bool:
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_null(kind))


def _whole(pa: Any, path: Path, dialect: Dialect, columns: list[int]) -> Columns:
    """Read the file at once, so that what is in its last line can change what a column is."""
    with opened(path) as file:
        data = file.read()
    table = _parse(pa, _tidy(data, dialect), dialect, columns, {}, skip=dialect.skip)
    found, _ = _begun(pa, table, columns)
    found.append(table, table.num_rows)
    found.quotes, found.lines = data.count(b'"'), data.count(b"\n") + (not data.endswith(b"\n"))
    return found


def _tidy(data: bytes, dialect: Dialect) -> bytes:
    return tidied(data, dialect.delimiter) if dialect.padded else data


def _parse(
    pa: Any,
    data: bytes,
    dialect: Dialect,
    columns: list[int],
    types: dict[str, Any],
    *,
    skip: int,
    verbatim: bool = False,
) -> Any:
    """Return columns of a text as a pyarrow table; they are called by their numbers, for names may be double."""
    names = [str(j) for j in range(len(dialect.names))]
    size = max(BLOCK, 8 * dialect.longest)
    return pa.csv.read_csv(
        pa.BufferReader(data),
        pa.csv.ReadOptions(column_names=names, skip_rows=skip, block_size=size, encoding="utf8"),
        pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(
            include_columns=[str(j) for j in columns],
            column_types=types,
            null_values=[] if verbatim else list(MISSING),
            strings_can_be_null=not verbatim,
            decimal_point=dialect.decimal,
        ),
    )
