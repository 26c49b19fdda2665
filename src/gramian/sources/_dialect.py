"""How a text table is written: delimiter, decimal mark, header row; found out from its beginning."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

__all__ = ["MISSING", "Dialect", "detect", "tidied"]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?", ".")
NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
YEAR = re.compile(r"[12]\d{3}")
DELIMITERS = ("\t", ";", "|", ",", " ")  # where two do equally well, the earlier
SPELLED = {"tab": "\t", "semicolon": ";", "pipe": "|", "comma": ",", "space": " "}
ROW_NAMES = "row names"

Rows = list[list[str]]


@dataclass(frozen=True)
class Dialect:
    """How a text table is written.

    Attributes
    ----------
    delimiter, decimal : str
        What separates cells, and what marks decimals.
    header : bool
        Whether the first row holds names.
    names : tuple of str
        One for each column: those of the header, or x1, x2, ….
    skip : int
        Lines before the first row of data.
    row_names : bool
        Whether the first column has no name in the header: it names the rows.
    padded : bool
        Whether blanks surround the cells.
    doubtful : bool
        Whether there are numbers like 1,234, which may be 1.234 or 1234.
    longest : int
        Characters of the longest line seen.
    """

    delimiter: str
    decimal: str
    header: bool
    names: tuple[str, ...]
    skip: int
    row_names: bool
    padded: bool
    doubtful: bool
    longest: int

    def describe(self) -> str:
        """Return what was detected, in words."""
        mark = "decimal comma" if self.decimal == "," else "decimal point"
        cells = f"delimiter {self.delimiter!r}" if len(self.names) > 1 else "one column"
        return f"{cells}, {mark}, {'header row' if self.header else 'no header row'}"


class _Parsed(NamedTuple):
    """The beginning of a file, split at one delimiter."""

    delimiter: str
    rows: Rows
    skip: int
    score: float


def detect(head: str, whole: bool, *, delimiter: str | None, decimal: str | None, header: bool | None) -> Dialect:
    r"""Find out how a table is written that begins with ``head``; what is given is taken as given.

    Examples
    --------
    >>> dialect = detect("a;b\n1,5;2\n", True, delimiter=None, decimal=None, header=None)
    >>> dialect.describe(), dialect.names
    ("delimiter ';', decimal comma, header row", ('a', 'b'))
    """
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal={decimal!r}: give '.' or ','.")
    parsed = _split(head, whole, SPELLED.get(delimiter or "", delimiter))
    first, rest = parsed.rows[0], parsed.rows[1:]
    has_header = _has_header(first, rest) if header is None else header
    body = rest if has_header else parsed.rows
    short = has_header and _begin_with_names(body, len(first) + 1)
    mark, doubtful = _decimal(body, parsed.delimiter, decimal)
    names = _names(first, has_header, short)
    return Dialect(
        delimiter=parsed.delimiter,
        decimal=mark,
        header=has_header,
        names=names,
        skip=parsed.skip if has_header else 0,
        row_names=has_header and len(names) > 1 and names[0] == ROW_NAMES and (short or not first[0].strip()),
        padded=_is_padded(head, parsed.delimiter),
        doubtful=doubtful,
        longest=max(map(len, head.splitlines()), default=0),
    )


def _names(first: list[str], header: bool, short: bool) -> tuple[str, ...]:
    if not header:
        return tuple(f"x{j + 1}" for j in range(len(first)))
    cells = [ROW_NAMES, *first] if short else list(first)
    if not cells[0].strip():
        cells[0] = ROW_NAMES if len(cells) > 1 else "x1"
    return tuple(cell.strip() or f"x{j + 1}" for j, cell in enumerate(cells))


def _split(head: str, whole: bool, delimiter: str | None) -> _Parsed:
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise ValueError(f"delimiter={delimiter!r}: give one character, or one of {', '.join(SPELLED)}.")
    tried = [_parse(head, whole, d) for d in ([delimiter] if delimiter else DELIMITERS)]
    found = [parsed for parsed in tried if parsed is not None]
    if not found:
        raise ValueError("no row of cells in the beginning of the file.")
    several = [p for p in found if len(p.rows[0]) > 1 and (p.delimiter != " " or p.score > 0.5)]
    if delimiter is not None or not several:
        return found[0] if delimiter else _one_column(found)
    return max(several, key=lambda p: (p.score, -DELIMITERS.index(p.delimiter)))


def _one_column(found: list[_Parsed]) -> _Parsed:
    """Return the reading in which every row is one cell, where there is one: 1,5 below a single name is 1.5."""
    single = [p for p in found if all(len(row) == 1 for row in p.rows)]
    order = [*(p for p in single if p.delimiter == ","), *single, *(p for p in found if p.delimiter == ","), *found]
    return order[0]


def _parse(head: str, whole: bool, delimiter: str) -> _Parsed | None:
    """Split the beginning of a file at a delimiter; None where that cannot be done."""
    text = tidied(head.encode(), delimiter).decode() if delimiter == " " else head
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: Rows = []
    skip = 0
    try:
        for row in lines:
            if row:
                rows.append([cell.strip() for cell in row])
                skip = skip or lines.line_num
    except csv.Error:
        return None
    if not whole and len(rows) > 1:
        rows.pop()  # it may be cut
    return _Parsed(delimiter, rows, skip, _score(rows)) if rows else None


def _score(rows: Rows) -> float:
    """How well a delimiter does: rows as long as the first (or longer by a row name), cells that are numbers."""
    width, body = len(rows[0]), rows[1:] or rows
    agree = max(sum(len(row) == w for row in body) for w in (width, width + 1)) / len(body)
    cells = [cell for row in body for cell in row]
    return agree * (0.6 + sum(map(_recognised, cells)) / max(1, len(cells)))


def _recognised(cell: str) -> bool:
    return cell in MISSING or NUMBER.fullmatch(cell) is not None


def _has_header(first: list[str], rest: Rows) -> bool:
    """Whether the first row is names: text above numbers, text above text only, or numbers that count columns."""
    columns = range(len(first))
    shift = 1 if _begin_with_names(rest, len(first) + 1) else 0
    body = [row for row in rest if len(row) == len(first) + shift]
    numeric = [_mostly(_recognised, [row[j + shift] for row in body if row[j + shift] not in MISSING]) for j in columns]
    text = [not _recognised(cell) for cell in first]
    if any(t and n for t, n in zip(text, numeric, strict=True)):
        return True
    if _numbers_are_names(first, [row[shift:] for row in body]):
        return True
    if all(_recognised(cell) for cell in first):
        return False
    return shift == 1 or not any(n and cell not in MISSING for n, cell in zip(numeric, first, strict=True))


def _begin_with_names(rows: Rows, width: int) -> bool:
    """Whether rows are one cell longer than the header because each begins with a name or its number, as R's do."""
    if len(rows) < 2 or width < 3 or any(len(row) != width for row in rows):
        return False
    first = [row[0] for row in rows]
    counted = first == [str(i + 1) for i in range(len(first))]
    return counted or (len(set(first)) == len(first) and not any(map(_recognised, first)))


def _mostly(test: Callable[[str], bool], cells: list[str]) -> bool:
    return bool(cells) and 2 * sum(map(test, cells)) > len(cells)


def _numbers_are_names(first: list[str], body: Rows) -> bool:
    """Whether numbers in the first row name columns: 0, 1, 2, … above decimals, or years above what are none."""
    at = [j for j, cell in enumerate(first) if NUMBER.fullmatch(cell)]
    cells, below = [first[j] for j in at], [[row[j] for j in at] for row in body]
    if len(cells) > 1 and cells == [str(j) for j in range(len(cells))]:
        return any("." in cell or "," in cell for row in below for cell in row)
    return bool(below) and _years(cells) and not any(map(_years, below))


def _years(cells: list[str]) -> bool:
    """Whether cells are years in equal steps; two are, where one follows the other."""
    if len(cells) < 2 or not all(YEAR.fullmatch(cell) for cell in cells):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(cells)}
    return len(steps) == 1 and (steps == {1} or (len(cells) > 2 and min(steps) > 0))


def _decimal(body: Rows, delimiter: str, given: str | None) -> tuple[str, bool]:
    """Return the decimal mark, and whether commas might as well group thousands."""
    if given is not None:
        return given, False
    numbers = [cell for row in body for cell in row if NUMBER.fullmatch(cell)]
    commas = [cell for cell in numbers if "," in cell]
    if not commas or any("." in cell for cell in numbers):
        return ".", False
    # Tables are separated by semicolons because the comma is taken.
    sure = delimiter == ";" or any(not THOUSANDS.fullmatch(cell) for cell in commas)
    return ("," if sure else "."), not sure


def _is_padded(head: str, delimiter: str) -> bool:
    if delimiter == " ":
        return "  " in head or any(line != line.strip(" ") for line in head.splitlines())
    return f" {delimiter}" in head or f"{delimiter} " in head


def tidied(data: bytes, delimiter: str) -> bytes:
    r"""Return a text table without the blanks around its cells; what is quoted, and the lines, stay as they are.

    Examples
    --------
    >>> tidied(b' 1   2 "a  b" \n', " "), tidied(b'1, NA ,"a , b"\n', ",")
    (b'1 2 "a  b"\n', b'1,NA,"a , b"\n')
    """
    mark = re.escape(delimiter.encode())
    blank = rb" +" if delimiter == " " else rb" *" + mark + rb" *"
    pattern = re.compile(rb'("(?:[^"]|"")*")|(^ +| +(?=\r?$))|' + blank, re.MULTILINE)
    return pattern.sub(lambda m: m[1] or (b"" if m[2] is not None else delimiter.encode()), data)
