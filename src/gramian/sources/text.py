"""Text tables: how they are written, found out from their beginning, and their columns.

Python's own reader serves small files, and all where pyarrow is not installed; pyarrow reads the pieces of large ones
with all cores. The numbers go into one array, so that the whole takes little more memory than they do. A piece ends
with a line, and never within quotes.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import refuse_beyond_device
from gramian.sources.arrays import WHOLE
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import find_encoding, load_pyarrow, open_unpacked

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-nan", "null", "NULL", "?", ".")
ABSENT = frozenset(MISSING)
NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE | re.ASCII)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
POINT = re.compile(r".*,\d{3}(?:\.|,\d{3}).*", re.ASCII)  # 1,234.5 and 1,234,567: the comma groups thousands
COMMA = re.compile(r".*\.\d{3}(?:,|\.\d{3}).*", re.ASCII)

GROUPED = re.compile(r"[+-]?\d{1,3}(?:([., '’])\d{3})(?:\1\d{3})*(?:[.,]\d*)?", re.ASCII)
CURRENCY = "".join(chr(i) for i in range(0x2100) if unicodedata.category(chr(i)) == "Sc")
SIGNS = f"{CURRENCY}% ()"
WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
SEPARATOR = re.compile(r"\ufeff?(sep=(.))[ \t]*\r?\n")
MOST_TITLES = 20  # rows above a table
YEAR = re.compile(r"[12]\d{3}")
DELIMITERS = ("\t", ";", "|", ",", " ")  # where two do equally well, the earlier
SPELLED = {"tab": "\t", "semicolon": ";", "pipe": "|", "comma": ",", "space": " "}
ROW_NAMES = "row names"

Rows = list[list[str]]  # the cells of some lines


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
    encoding : str
        Of the text; the marks at the beginning are told apart from it.
    told : tuple of str
        Lines that are neither header nor data.
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
    encoding: str = "utf-8"
    told: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return what was detected, in words."""
        mark = "decimal comma" if self.decimal == "," else "decimal point"
        cells = f"delimiter {self.delimiter!r}" if len(self.names) > 1 else "one column"
        coded = "" if self.encoding == "utf-8" else f", {self.encoding}"
        return f"{cells}, {mark}, {'header row' if self.header else 'no header row'}{coded}"


class SplitRows(NamedTuple):
    """The beginning of a table, its lines split at one delimiter.

    The first row ends with line ``skip`` and the second with line ``second``; titles above them with line ``above``.
    """

    delimiter: str
    rows: Rows
    skip: int
    score: float
    second: int = 0
    above: int = 0


def detect(head: str, whole: bool, *, delimiter: str | None, decimal: str | None, header: bool | None) -> Dialect:
    r"""Find out how a table is written that begins with ``head``; what is given is taken as given.

    Examples
    --------
    >>> dialect = detect("a;b\n1,5;2\n", True, delimiter=None, decimal=None, header=None)
    >>> dialect.describe(), dialect.names
    ("delimiter ';', decimal comma, header row", ('a', 'b'))
    """
    said = SEPARATOR.match(head)  # what Excel writes, and reads, above a table
    if said is not None:
        head = head[: said.start(1)] + head[said.end(1) :]
        delimiter = said[2] if delimiter is None else delimiter
    parsed = _split_head(head, whole, SPELLED.get(delimiter or "", delimiter), header is not False)
    if said is not None and not parsed.above:
        parsed = parsed._replace(above=1)
    if parsed.delimiter == " ":
        padded = "  " in head or any(line != line.strip(" ") for line in head.splitlines())
    else:
        padded = f" {parsed.delimiter}" in head or f"{parsed.delimiter} " in head
    longest = max(map(len, head.splitlines()), default=0)
    return replace(describe_rows(parsed, decimal=decimal, header=header), padded=padded, longest=longest)


def describe_rows(parsed: SplitRows, *, decimal: str | None, header: bool | None) -> Dialect:
    """Find out what the first rows of a table are, once they are split into cells."""
    if decimal not in (None, ".", ","):
        raise SourceError(Argument("decimal", decimal), ": give '.' or ','.")
    first, rest = parsed.rows[0], parsed.rows[1:]
    has_header = _has_header(first, rest) if header is None else header
    if header is None and not has_header and any(not cell for cell in first[1:]) and _is_second_header(first, rest):
        has_header = True  # numbers above groups of names, as years
    body = rest if has_header else parsed.rows
    short = has_header and _begin_with_names(body, len(first) + 1)
    grouped = False
    again = parsed.second > 0 and header is None and has_header and not short and _is_second_header(first, body)
    if again:
        grouped = any(not cell for cell in first[1:])
        first = _join_headers(first, body[0]) if grouped else first
        body = body[1:]
    mark, doubtful = _find_decimal(body, parsed.delimiter, decimal)
    if not has_header:
        cells = [""] * len(first)
    else:
        cells = [ROW_NAMES, *first] if short else list(first)
        if not cells[0].strip() and len(cells) > 1:
            cells[0] = ROW_NAMES
    names = tuple(cell.strip() or f"x{j + 1}" for j, cell in enumerate(cells))
    return Dialect(
        delimiter=parsed.delimiter,
        decimal=mark,
        header=has_header,
        names=names,
        skip=parsed.second if again else parsed.skip if has_header else parsed.above,
        row_names=has_header and len(names) > 1 and names[0] == ROW_NAMES and (short or not first[0].strip()),
        padded=False,
        doubtful=doubtful,
        longest=0,
        told=(
            *([f"left out above the table: {_count_lines(parsed.above)}"] if parsed.above else []),
            *(["two header rows, read as one" if grouped else "second header row (units) left out"] if again else []),
        ),
    )


def _count_lines(count: int) -> str:
    return "line 1" if count == 1 else f"lines 1 to {count}"


def _numeric_columns(rows: Rows, width: int) -> list[int]:
    """Columns in which most cells are numbers, where they are not missing."""
    below = {j: [row[j] for row in rows if len(row) == width and row[j] not in ABSENT] for j in range(width)}
    return [j for j, cells in below.items() if cells and 2 * sum(map(is_numeral, cells)) > len(cells)]


def _is_second_header(first: list[str], body: Rows) -> bool:
    """Whether the row below the header has text in two columns of numbers or more, and a number in none: units, names.

    With one such column, it may be a slip.
    """
    if len(body) < 4 or len(body[0]) != len(first):
        return False
    cells = [body[0][j] for j in _numeric_columns(body[1:], len(first))]
    present = [cell for cell in cells if cell not in ABSENT]
    return len(present) > 1 and not any(map(is_numeral, present))


def _join_headers(groups: list[str], names: list[str]) -> list[str]:
    """Names below the cells of a row of groups, each of which stands for those to its right that are empty."""
    joined, group = [], ""
    for above, name in zip(groups, names, strict=True):
        group = above or group
        joined.append(f"{group} {name}".strip() if group and name else group or name)
    return joined


def count_titles(rows: Rows) -> int:
    """Count the rows above a table: each with one cell that is not empty, or none, above a header and numbers.

    Examples
    --------
    >>> count_titles([["Report", "", ""], ["", "", ""], ["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]])
    2
    >>> count_titles([["", "x"], ["a", "1"], ["b", "2"]])
    0
    """
    count = 0
    for row in rows[:MOST_TITLES]:
        if (not row[0] and any(row)) or any(row[1:]):
            break
        count += 1
    if count in (0, len(rows)) or not any(any(row) for row in rows[:count]):
        return 0
    first, rest = rows[count], rows[count + 1 :]
    width = len(first)
    regular = sum(len(row) == width for row in rest)
    is_table = width > 1 and regular > 1 and 2 * regular > len(rest)
    header = not any(cell not in ABSENT and is_numeral(cell) for cell in first) and sum(map(bool, first)) > 1
    return count if is_table and header and _numeric_columns(rest, width) else 0


def _split_head(head: str, whole: bool, delimiter: str | None, titles: bool = True) -> SplitRows:
    if delimiter is not None and len(delimiter.encode()) != 1:
        given = Argument("delimiter", delimiter)
        raise SourceError(given, f": give one character, or one of {', '.join(SPELLED)}.")
    tried = [_parse(head, whole, d, titles) for d in ([delimiter] if delimiter else DELIMITERS)]
    found = [parsed for parsed in tried if parsed is not None]
    if not found:
        raise SourceError("no row of cells in the beginning of the file.")
    if delimiter is not None:
        return found[0]
    several = [p for p in found if len(p.rows[0]) > 1 and (p.delimiter != " " or p.score > 0.5)]
    if several:
        return max(several, key=lambda p: (p.score, -DELIMITERS.index(p.delimiter)))
    # the reading in which every row is one cell, where there is one: 1,5 below a single name is 1.5
    single = [p for p in found if all(len(row) == 1 for row in p.rows)] or found
    return next((p for p in single if p.delimiter == ","), single[0])


def _parse(head: str, whole: bool, delimiter: str, titles: bool) -> SplitRows | None:
    """Split the beginning of a file at a delimiter; None where that cannot be done."""
    text = strip_blanks(head.encode(), delimiter).decode() if delimiter == " " else head
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: Rows = []
    ends: list[int] = []
    try:
        for row in lines:
            if row:
                rows.append([cell.strip() for cell in row])
                ends.append(lines.line_num)
    except csv.Error:
        return None
    if not whole and len(rows) > 1:
        rows.pop()  # it may be cut
    if not rows:
        return None
    above = count_titles(rows) if titles and delimiter != " " else 0
    last, rows, ends = ends[above - 1] if above else 0, rows[above:], ends[above:]
    # how well the delimiter does: rows as long as the first (or longer by a row name), cells that are numbers
    width, body = len(rows[0]), rows[1:] or rows
    agree = max(sum(len(row) == w for row in body) for w in (width, width + 1)) / len(body)
    cells = [cell for row in body for cell in row]
    score = agree * (0.6 + sum(map(is_numeral, cells)) / max(1, len(cells)))
    return SplitRows(delimiter, rows, ends[0], score, ends[1] if len(rows) > 1 else 0, last)


def is_numeral(cell: str) -> bool:
    """Whether a cell is a number, with signs of currency, per cent and thousands or without; or missing."""
    bare = cell.strip(SIGNS)
    return cell in ABSENT or NUMBER.fullmatch(bare) is not None or GROUPED.fullmatch(bare) is not None


def _has_header(first: list[str], rest: Rows) -> bool:
    """Whether the first row is names: text above numbers, text above text only, or numbers that count columns."""
    columns = range(len(first))
    shift = 1 if _begin_with_names(rest, len(first) + 1) else 0
    body = [row for row in rest if len(row) == len(first) + shift]
    below = [[row[j + shift] for row in body if row[j + shift] not in MISSING] for j in columns]
    numeric = [bool(cells) and 2 * sum(map(is_numeral, cells)) > len(cells) for cells in below]
    if any(n and not is_numeral(cell) for n, cell in zip(numeric, first, strict=True)):
        return True
    if _numbers_are_names(first, [row[shift:] for row in body]):
        return True
    if all(is_numeral(cell) for cell in first):
        return False
    return shift == 1 or not any(n and cell not in MISSING for n, cell in zip(numeric, first, strict=True))


def _begin_with_names(rows: Rows, width: int) -> bool:
    """Whether rows are one cell longer than the header because each begins with a name or its number, as R's do."""
    if len(rows) < 2 or width < 3 or any(len(row) != width for row in rows):
        return False
    first = [row[0] for row in rows]
    counted = first == [str(i + 1) for i in range(len(first))]
    return counted or (len(set(first)) == len(first) and not any(map(is_numeral, first)))


def _numbers_are_names(first: list[str], body: Rows) -> bool:
    """Whether numbers in the first row name columns: 0, 1, 2, … above decimals, or years above what are none."""
    at = [j for j, cell in enumerate(first) if NUMBER.fullmatch(cell)]
    cells, below = [first[j] for j in at], [[row[j] for j in at] for row in body]
    if len(cells) > 1 and cells == [str(j) for j in range(len(cells))]:
        return any("." in cell or "," in cell for row in below for cell in row)
    return bool(below) and _are_years(cells) and not any(map(_are_years, below))


def _are_years(cells: list[str]) -> bool:
    """Whether cells are years in equal steps; two are, where one follows the other."""
    if len(cells) < 2 or not all(YEAR.fullmatch(cell) for cell in cells):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(cells)}
    return len(steps) == 1 and (steps == {1} or (len(cells) > 2 and min(steps) > 0))


def _find_decimal(body: Rows, delimiter: str, given: str | None) -> tuple[str, bool]:
    """Return the decimal mark, and whether commas might as well group thousands."""
    if given is not None:
        return given, False
    numerals = [cell.strip(SIGNS) for row in body for cell in row if is_numeral(cell)]
    for mark, pattern in ((".", POINT), (",", COMMA)):
        if any(pattern.fullmatch(cell) for cell in numerals):
            return mark, False
    numbers = [cell for cell in numerals if NUMBER.fullmatch(cell)]
    commas = [cell for cell in numbers if "," in cell]
    if not commas or any("." in cell for cell in numbers):
        return ".", False
    # Tables are separated by semicolons because the comma is taken.
    sure = delimiter == ";" or any(not THOUSANDS.fullmatch(cell) for cell in commas)
    return ("," if sure else "."), not sure


def strip_blanks(data: bytes, delimiter: str) -> bytes:
    r"""Return a text table without the blanks around its cells; what is quoted, and the lines, stay as they are.

    Examples
    --------
    >>> strip_blanks(b' 1   2 "a  b" \n', " "), strip_blanks(b'1, NA ,"a , b"\n', ",")
    (b'1 2 "a  b"\n', b'1,NA,"a , b"\n')
    """
    mark = re.escape(delimiter.encode())
    blank = rb" +" if delimiter == " " else rb" *" + mark + rb" *"
    pattern = re.compile(rb'("(?:[^"]|"")*")|(^ +| +(?=\r?$))|' + blank, re.MULTILINE)
    return pattern.sub(lambda m: m[1] or (b"" if m[2] is not None else delimiter.encode()), data)


HEAD = 2**16
CHUNK = 2**22
LARGE_REMEDY = "Write it as .npy or Parquet, which are read in blocks."
LONGEST = 2**30  # characters in a cell, for Python's reader


class UndecodableError(SourceError):
    """A text that is not in the encoding it was taken for."""


def normal_encoding(name: str) -> str:
    """Return the name of an encoding as Python knows it; UTF-8 with a mark, and ASCII, are UTF-8."""
    try:
        found = codecs.lookup(name).name
    except LookupError:
        raise SourceError(Argument("encoding", name), ": there is no such encoding; cp1252 is one.") from None
    return "utf-8" if found in ("ascii", "utf-8-sig") else found


def open_text(path: Path, encoding: str = "utf-8") -> IO[bytes]:
    """Open a text file, compressed or not, as bytes of UTF-8; one in another encoding is read whole."""
    if encoding == "utf-8":
        return open_unpacked(path)
    with open_unpacked(path) as file:
        raw = read_whole(file)
    refuse_beyond_device(4 * len(raw), None, f"A text of {len(raw):,} bytes in {encoding}", LARGE_REMEDY)
    try:
        return io.BytesIO(raw.decode(encoding).encode())
    except UnicodeDecodeError as error:
        line, at = raw.count(b"\n", 0, error.start) + 1, error.start
        where = f"line {line}: byte 0x{raw[at]:02x} at position {at} is not {encoding}"
        raise UndecodableError(f"{where}. Say another ", Argument("encoding"), ".") from error


def read_whole(file: IO[bytes]) -> bytes:
    """Read what is left of a file, or refuse it before it takes more memory than there is: it may be compressed."""
    parts, size = [], 0
    while data := file.read(CHUNK):
        parts.append(data)
        size += len(data)
        if size % (16 * CHUNK) < CHUNK:
            refuse_beyond_device(size, None, f"A text of {size:,} bytes or more", LARGE_REMEDY)
    return b"".join(parts)


def sniff(
    path: Path, *, delimiter: str | None, decimal: str | None, header: bool | None, encoding: str | None = None
) -> Dialect:
    """Find out how a text table is written from its first 64 KiB, or more where two lines take more."""
    if encoding is None:
        with open_unpacked(path) as file:
            encoding = find_encoding(file.read(512)) or "utf-8"
    with open_text(path, encoding) as file:
        head = file.read(HEAD)
        while head.strip().count(b"\n") < 2 and (more := file.read(len(head) or 1)):
            head += more
            refuse_beyond_device(4 * len(head), None, f"A line of {len(head):,} bytes or more", LARGE_REMEDY)
        whole = not file.read(1)
    text = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode(head, whole)
    if not text.strip():
        raise SourceError("the file holds nothing but blank lines.")
    if "�" in text and encoding == "utf-8":
        refuse_undecodable(path)
    dialect = detect(text, whole, delimiter=delimiter, decimal=decimal, header=header)
    if dialect.header and whole and dialect.skip >= len(text.rstrip().splitlines()):
        raise SourceError(f"a header row ({', '.join(dialect.names[:5])}) and no rows of data.")
    return replace(dialect, encoding=encoding)


def refuse_undecodable(path: Path) -> None:
    """Raise an error that names the first byte that is not UTF-8, if there is one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    at, line, pending = 0, 1, 0
    with open_text(path) as file:
        while True:
            data = file.read(CHUNK)
            try:
                decoder.decode(data, not data)
            except UnicodeDecodeError as error:
                bad, line = error.object[error.start], line + error.object[: error.start].count(b"\n")
                where = f"line {line}: byte 0x{bad:02x} at position {at - pending + error.start} is not UTF-8"
                remedy = (". Save the file as UTF-8, or say its ", Argument("encoding"), ".")
                raise UndecodableError(where, *remedy) from error
            if not data:
                return
            pending = len(decoder.getstate()[0])
            at, line = at + len(data), line + data.count(b"\n")


def is_western(path: Path) -> bool:
    """Whether a text that is not UTF-8 is one of Windows in Western Europe, cp1252.

    It is where all bytes have a meaning there, and none are a letter of UTF-8, which would make it a damaged one.
    """
    with open_unpacked(path) as file:
        raw = read_whole(file)
    known = raw.decode("cp1252", errors="replace")
    return "�" not in known and b"\0" not in raw and raw.decode("utf-8", errors="ignore").isascii()


def numbered_rows(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of data with the line in which each begins, by Python's own reader."""
    with open_text(path, dialect.encoding) as file:
        raw: IO[bytes] = io.BytesIO(strip_blanks(read_whole(file), dialect.delimiter)) if dialect.padded else file
        text = io.TextIOWrapper(raw, "utf-8-sig", newline="")
        before = csv.field_size_limit(LONGEST)
        line = 1
        try:
            reader = csv.reader(text, delimiter=dialect.delimiter, strict=True)
            for row in reader:
                if row and reader.line_num > dialect.skip:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise SourceError(
                f'line {line}: a quote (") opens here that is not closed where the cell ends ({error}). Close it, or '
                'write it as "" within quotes.'
            ) from error
        finally:
            csv.field_size_limit(before)


def check_lines(path: Path, dialect: Dialect) -> None:
    """Raise an error that names the first line that cannot be part of the table, if there is one."""
    if dialect.encoding == "utf-8":
        refuse_undecodable(path)
    expected = len(dialect.names)
    for line, row in numbered_rows(path, dialect):
        if len(row) != expected:
            source = "header has" if dialect.header else "first row has"
            raise SourceError(
                f"line {line}: {len(row)} cells where the {source} {expected} (delimiter {dialect.delimiter!r}). Mend "
                "the line, or say which ",
                Argument("delimiter"),
                " separates the cells.",
            )


def line_of_row(path: Path, dialect: Dialect, row: int) -> int:
    """Return the line in which a row of data (counted from 0) begins."""
    for i, (line, _) in enumerate(numbered_rows(path, dialect)):
        if i == row:
            return line
    raise IndexError(row)


# What the cells of a column are

DIGITS = str.maketrans("", "", "0123456789+-.eE")
TRUE, FALSE = frozenset({"true", "True", "TRUE", "1"}), frozenset({"false", "False", "FALSE", "0"})
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
TIME = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?", re.ASCII)
DAY = 86400.0  # seconds


class Column(NamedTuple):
    """A column by its kind: ``"number"`` and ``"truth"`` have floats, NaN where missing; ``"text"`` and ``"date"``
    have texts, None where missing.
    """

    kind: str
    values: npt.NDArray[Any]


def convert_cells(cells: list[str], decimal: str, kind: str | None = None) -> Column:
    """Return cells as a column of the kind they all are, or of the one that is given.

    Raises :class:`NotThatKindError` where a kind is given, and they are not of it.

    Examples
    --------
    >>> convert_cells(["1,5", "NA"], ",")
    Column(kind='number', values=array([1.5, nan]))
    >>> convert_cells(["true", "", "false"], ".").values, convert_cells(["2020-02-29"], ".").kind
    (array([ 1., nan,  0.]), 'date')
    """
    present = {cell for cell in cells if cell not in ABSENT}
    if kind in (None, "number"):
        numbers = _as_floats(cells, present, decimal)
        if numbers is not None:
            return Column("number", numbers)
    if kind in (None, "truth") and present <= TRUE | FALSE:
        return Column("truth", np.array([np.nan if cell in ABSENT else float(cell in TRUE) for cell in cells]))
    is_date = kind in (None, "date") and all(days_of(cell) is not None for cell in present)
    if not is_date and kind not in (None, "text"):
        raise NotThatKindError
    texts = np.array([*(None if cell in ABSENT else cell for cell in cells), None], dtype=object)[:-1]
    return Column("date" if is_date else "text", texts)


def _as_floats(cells: list[str], present: set[str], decimal: str) -> npt.NDArray[np.float64] | None:
    """Cells as numbers; None where one is none. Python would take more for numbers (1_000, ٣) than are."""
    if decimal == "," and any("." in cell for cell in present):
        return None
    point = [cell.replace(",", ".") for cell in cells] if decimal == "," else cells
    strange = "".join(present).replace(decimal, "").translate(DIGITS)
    if strange and not all(NUMBER.fullmatch(cell.strip()) for cell in present):
        return None
    try:
        return np.array([np.nan if cell in ABSENT else float(text) for cell, text in zip(cells, point, strict=True)])
    except ValueError:
        return None


def days_of(text: str) -> float | None:
    """A date as days since 1970-01-01, a time as a part of the day; None for what is neither.

    Examples
    --------
    >>> days_of("1970-01-02 12:00"), days_of("06:00:00"), days_of("1.2.1970")
    (1.5, 0.25, None)
    """
    try:
        if DATE.fullmatch(text):
            when = datetime.fromisoformat(text)
            return (when.replace(tzinfo=when.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / DAY
        if TIME.fullmatch(text):
            at = time.fromisoformat(text)
            return (at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6) / DAY
    except ValueError:  # 2020-02-30
        pass
    return None


MINUS = str.maketrans({"−": "-", "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ", "’": "'"})
DECORATED = (
    r"(?P<open>\()?(?P<sign>[+-]?) ?(?P<before>[{currency}]?) ?(?P<sign2>[+-]?)"
    r"(?P<digits>[1-9]\d{{0,2}}(?:(?P<group>[{marks}])\d{{3}}(?:(?P=group)\d{{3}})*)|\d+|(?=[{decimal}]\d))"
    r"(?P<rest>[{decimal}]\d*)? ?(?P<after>[%{currency}]?)(?P<close>\))?"
)


class Decorated(NamedTuple):
    """Numbers that were written with signs around or between their digits.

    ``doubtful`` says whether 1,234 may be 1.234 as well; ``rounded`` is a whole number that float64 does not hold.
    """

    values: npt.NDArray[np.float64]
    doubtful: bool
    rounded: str


def read_decorated(cells: npt.NDArray[np.object_], marks: str, *, sure: bool = True) -> Decorated | None:
    """Return numbers with thousands separators, per cent or currency signs; None where a cell is none.

    Decimals are marked by one of ``marks``, the first with which all cells are numbers. Per cent stay per cent (12 % is
    12), and all cells must have the sign then; amounts must be in one currency; (12) is −12. Where the decimal mark is
    not ``sure``, one mark before three digits may group thousands or not: it does where a cell says so, by two groups,
    by decimals, or as a number below 1000 where none above is without that mark.

    Examples
    --------
    >>> import numpy as np
    >>> read_decorated(np.array(["$1,234.50", "($7)", None], dtype=object), ".").values
    array([1234.5,   -7. ,     nan])
    >>> read_decorated(np.array(["12 %", "7 %"], dtype=object), ".").values
    array([12.,  7.])
    """
    present = {cell: str(cell).strip().translate(MINUS) for cell in set(cells.tolist()) if cell is not None}
    for mark in marks:
        between = "".join({*"., '"} - {mark})
        form = DECORATED.format(currency=re.escape(CURRENCY), marks=between, decimal=re.escape(mark))
        pattern = re.compile(form, re.ASCII)
        found = {cell: match for cell, text in present.items() if (match := pattern.fullmatch(text)) is not None}
        signs = {match["before"] + match["after"] for match in found.values()}
        groups = {match["group"] for match in found.values()} - {None}
        unlike = len(signs - {""}) > 1 or ("%" in signs and len(signs) > 1) or len(groups) > 1
        unclosed = any(bool(m["open"]) != bool(m["close"]) or (m["sign"] and m["sign2"]) for m in found.values())
        if not found or len(found) < len(present) or unlike or unclosed:
            continue
        numbers: dict[str, float] = {}
        rounded, plain, told = "", [], False
        for cell, match in found.items():
            digits, decimals = re.sub(r"\D", "", match["digits"]), (match["rest"] or "").replace(",", ".")
            number = float(digits + decimals)
            if number > WHOLE and not decimals and int(digits) != int(number):
                rounded = str(cell)
            numbers[cell] = -number if "-" in match["sign"] + match["sign2"] or match["open"] else number
            told = told or bool(decimals) or len(match["digits"]) > len(digits) + 1
            plain += [] if match["group"] else [number]
        told = told or (bool(plain) and max(plain) < 1000)
        values = np.array([np.nan if cell is None else numbers[cell] for cell in cells])
        return Decorated(values, not sure and not told and not groups.isdisjoint(",."), rounded)
    return None


# Reading

WIDE = 1000  # columns: from here on pyarrow takes longer for each of them than for its cells
MOST_TEXTS = 100  # columns of text in so wide a table
SMALL = 2**20  # bytes of a file up to which Python reads faster than pyarrow is loaded
PIECE = 2**25
BLOCK = 2**20  # what one core parses at a time
PYTHON = 25  # bytes that Python takes for one of a text, as lists of cells


class NotThatKindError(Exception):
    """The pieces do not fit together: a column is not in all of them what it is in the first."""


class NoTableError(Exception):
    """A piece of a text is no table: rows have different numbers of cells, quotes are not closed."""


@dataclass
class TextColumns:
    """What was read: columns of numbers as one array, the others as texts.

    Attributes
    ----------
    numeric : list of int
        The columns of ``values``, by their numbers in the file.
    values : ndarray
        Their numbers, NaN where missing; more rows than ``rows`` while it is being filled.
    others : dict of int to list of ndarray
        Columns that are not numbers: texts, None where missing, in chunks.
    kinds : dict of int to str
        What all the columns are: see :class:`Column`.
    rows : int
        How many were read.
    quotes, lines : int
        How many there are in the file.
    """

    numeric: list[int]
    values: npt.NDArray[np.float64]
    others: dict[int, list[npt.NDArray[np.object_]]]
    kinds: dict[int, str]
    rows: int = 0
    quotes: int = 0
    lines: int = 0

    @classmethod
    def of_kinds(cls, kinds: dict[int, str]) -> TextColumns:
        """Make room for columns of these kinds."""
        numeric = [j for j, kind in kinds.items() if kind in ("number", "truth")]
        known = set(numeric)
        others: dict[int, list[npt.NDArray[np.object_]]] = {j: [] for j in kinds if j not in known}
        return cls(numeric, np.empty((0, len(numeric))), others, kinds)

    def append(self, n: int, numbers: Iterable[npt.NDArray[Any]], others: Mapping[int, Column], expected: int) -> None:
        """Add n rows, of ``expected`` in all: the columns of numbers in their order, and the others."""
        if self.rows + n > len(self.values):
            rows, k = self.rows + n, len(self.numeric)
            refuse_beyond_device(8 * rows * k, None, f"The numbers of {rows:,} rows or more", LARGE_REMEDY)
            grown = np.empty((max(expected, rows, 3 * self.rows // 2), k))
            grown[: self.rows] = self.values[: self.rows]
            self.values = grown
        for i, column in enumerate(numbers):
            self.values[self.rows : self.rows + n, i] = column
        for j, chunks in self.others.items():
            chunks.append(others[j].values)
        self.rows += n

    def make_number(self, j: int, numbers: npt.NDArray[np.float64]) -> None:
        """Give a column of texts its numbers."""
        del self.others[j]
        self.kinds[j] = "number"
        numeric = {*self.numeric, j}
        order = [column for column in self.kinds if column in numeric]
        at = order.index(j)
        self.values = np.insert(self.values[: self.rows], at, numbers, axis=1)
        self.numeric = order


def read_columns(path: Path, dialect: Dialect, columns: list[int]) -> TextColumns:
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
    parser: type[PythonParser | ArrowParser] = PythonParser if is_for_python(path) else ArrowParser
    try:
        try:
            wide = _read_wide(path, dialect, columns) if len(dialect.names) > WIDE and parser is ArrowParser else None
            found = wide or _read_pieces(path, parser(dialect, columns))
        except NotThatKindError:  # at once, so that what is in the last line can change what a column is
            found = _read_pieces(path, parser(dialect, columns), whole=True)
    except (NoTableError, OSError, EOFError) as error:
        check_lines(path, dialect)
        raise SourceError(f"cannot be read as a table: {error}") from error
    if found.quotes and found.lines != dialect.skip + found.rows:  # quotes have joined lines, rightly or not
        check_lines(path, dialect)
    if found.rows and found.numeric:
        values = found.values[: found.rows]
        largest = np.maximum(np.fmax.reduce(values, axis=0), -np.fmin.reduce(values, axis=0))
        for i in np.flatnonzero(largest > WHOLE):
            texts = read_verbatim(path, dialect, found.numeric[i])
            refuse_rounded(texts, values[:, i], dialect.names[found.numeric[i]], partial(line_of_row, path, dialect))
    return found


def refuse_rounded(
    texts: Sequence[str], values: npt.NDArray[np.float64], name: str, line: Callable[[int], int]
) -> None:
    """Raise an error that names the first whole number of a column that float64 does not hold, if there is one."""
    for row in np.flatnonzero(np.isfinite(values) & (np.abs(values) > WHOLE)).tolist():
        if WHOLE_NUMBER.fullmatch(texts[row]) and int(texts[row]) != int(values[row]):
            raise SourceError(
                f"line {line(row)}: column {name!r} is {texts[row].strip()}, which float64 would round. Subtract "
                "a number near it from the whole column first, or leave it out."
            )


def is_for_python(path: Path) -> bool:
    """Whether Python's own reader is the better one, or the only one."""
    return path.stat().st_size <= SMALL or find_spec("pyarrow") is None


def read_verbatim(path: Path, dialect: Dialect, column: int) -> list[str]:
    """Read one column as it is written, 'NA' and leading zeros included."""
    if is_for_python(path):
        return [row[column] for _, row in numbered_rows(path, dialect)]
    with open_text(path, dialect.encoding) as file:
        data = read_whole(file)
    try:
        _, found = ArrowParser(dialect, [column], verbatim=True).parse(data, dialect.skip)
    except (NoTableError, NotThatKindError) as error:
        check_lines(path, dialect)
        raise SourceError(f"cannot be read as a table: {error}") from error
    texts: list[str] = found[column].values.tolist()
    return texts


class PythonParser:
    """Pieces of a text as columns, by Python's own reader; columns stay what they are in the first piece."""

    def __init__(self, dialect: Dialect, columns: list[int]) -> None:
        self.dialect, self.columns, self.kinds = dialect, columns, dict[int, str]()

    def parse(self, data: bytes, skip: int) -> tuple[int, dict[int, Column]]:
        """How many rows follow the lines to be skipped, and their columns."""
        if len(data) > SMALL:
            refuse_beyond_device(PYTHON * len(data), None, f"A text of {len(data):,} bytes, as cells", LARGE_REMEDY)
        data = strip_blanks(data, self.dialect.delimiter) if self.dialect.padded else data
        try:
            text = io.StringIO(data.decode("utf-8-sig"), newline="")
        except UnicodeDecodeError as error:
            raise NoTableError(str(error)) from error
        for _ in range(skip):
            next(text, None)
        before = csv.field_size_limit(LONGEST)
        try:
            rows = [row for row in csv.reader(text, delimiter=self.dialect.delimiter, strict=True) if row]
        except csv.Error as error:
            raise NoTableError(str(error)) from error
        finally:
            csv.field_size_limit(before)
        if set(map(len, rows)) - {len(self.dialect.names)}:
            raise NoTableError("rows have different numbers of cells")
        decimal = self.dialect.decimal
        found = {j: convert_cells([row[j] for row in rows], decimal, self.kinds.get(j)) for j in self.columns}
        self.kinds = {j: column.kind for j, column in found.items()}
        return len(rows), found


class ArrowParser:
    """The same by pyarrow, which reads with all cores; ``verbatim``, every column as it is written."""

    def __init__(self, dialect: Dialect, columns: list[int], *, verbatim: bool = False) -> None:
        self.dialect, self.columns, self.verbatim = dialect, columns, verbatim
        self.types: dict[str, Any] = {str(j): load_pyarrow().string() for j in columns} if verbatim else {}

    def convert_options(self, columns: list[int], types: dict[str, Any]) -> Any:
        """How pyarrow makes values of cells."""
        return load_pyarrow().csv.ConvertOptions(
            include_columns=[str(j) for j in columns],
            column_types=types,
            null_values=[] if self.verbatim else list(MISSING),
            strings_can_be_null=not self.verbatim,
            decimal_point=self.dialect.decimal,
        )

    def parse(self, data: bytes, skip: int) -> tuple[int, dict[int, Column]]:
        """How many rows follow the lines to be skipped, and their columns."""
        pa = load_pyarrow()
        data = strip_blanks(data, self.dialect.delimiter) if self.dialect.padded else data
        names = [str(j) for j in range(len(self.dialect.names))]  # for names of the file may be double
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(
                    column_names=names,
                    skip_rows=skip,
                    block_size=max(BLOCK, 8 * self.dialect.longest),
                    encoding="utf8",
                ),
                pa.csv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=True),
                self.convert_options(self.columns, self.types),
            )
        except pa.ArrowInvalid as error:
            raise (NotThatKindError if self.types else NoTableError)(str(error)) from error
        found: dict[int, Column] = {}
        for j in self.columns:
            values = table.column(str(j))
            kind, t = values.type, pa.types
            if t.is_binary(kind):  # not UTF-8
                raise NoTableError(f"column {j + 1} is no text")
            if t.is_integer(kind) or t.is_floating(kind) or t.is_null(kind) or t.is_boolean(kind):
                numbers = values.cast("float64", safe=False).to_numpy()
                found[j] = Column("truth" if t.is_boolean(kind) else "number", numbers)
                kind = kind if t.is_boolean(kind) else pa.float64()
            else:
                texts = values.cast(pa.string()).to_numpy()
                found[j] = Column("date" if t.is_temporal(kind) else "text", texts)
            self.types[str(j)] = kind
        return table.num_rows, found


def _read_wide(path: Path, dialect: Dialect, columns: list[int]) -> TextColumns | None:
    """Read a table of very many columns: its numbers as one long column, which costs pyarrow far less than many.

    None where that cannot be: quotes, lines of other lengths, text among the numbers of a column.
    """
    pa = load_pyarrow()
    mark, width = dialect.delimiter.encode(), len(dialect.names)
    found: TextColumns | None = None
    parser = ArrowParser(dialect, columns)
    skip = dialect.skip
    for piece, quotes in _pieces(path, dialect, whole=False):
        lines = [line.removesuffix(b"\r") for line in piece.split(b"\n")[skip:]]
        lines = [line for line in lines if line]
        if quotes or dialect.padded or any(line.count(mark) != width - 1 for line in lines):
            return None
        if found is None and lines:
            first = lines[0].decode(errors="replace").split(dialect.delimiter)
            numeral = [cell in ABSENT or NUMBER.fullmatch(cell) is not None for cell in map(str.strip, first)]
            kinds = {j: "number" if numeral[j] else "text" for j in columns}
            found = TextColumns.of_kinds(kinds)
            if not found.numeric or len(found.others) > MOST_TEXTS:
                return None
            parser = ArrowParser(dialect, list(found.others))
        if found is None:
            skip = 0
            continue
        if found.numeric == list(range(width)):
            cells = [line.replace(mark, b"\n") for line in lines]
        else:
            cells = [b"\n".join([split[j] for j in found.numeric]) for split in (line.split(mark) for line in lines)]
        try:
            numbers = pa.csv.read_csv(
                pa.BufferReader(b"\n".join([*cells, b""])),
                pa.csv.ReadOptions(column_names=["0"], block_size=BLOCK, encoding="utf8"),
                pa.csv.ParseOptions(delimiter=dialect.delimiter, quote_char=False, ignore_empty_lines=False),
                parser.convert_options([0], {"0": pa.float64()}),
            ).column(0)
            others = parser.parse(piece, skip)[1] if found.others else {}
        except (pa.ArrowInvalid, NoTableError, NotThatKindError):
            return None
        if len(numbers) != len(lines) * len(found.numeric) or any(c.kind == "truth" for c in others.values()):
            return None
        found.append(len(lines), numbers.to_numpy().reshape(len(lines), -1).T, others, 0)
        found.kinds |= {j: column.kind for j, column in others.items()}
        found.lines += len(lines) + skip
        skip = 0
    return found


def _read_pieces(path: Path, parser: PythonParser | ArrowParser, *, whole: bool = False) -> TextColumns:
    """Read a file piece by piece, or as one."""
    size, seen, skip = path.stat().st_size, 0, parser.dialect.skip
    found: TextColumns | None = None
    for piece, quotes in _pieces(path, parser.dialect, whole):
        n, columns = parser.parse(piece, skip)
        if found is None:
            found = TextColumns.of_kinds({j: column.kind for j, column in columns.items()})
        seen, skip = seen + len(piece), 0
        expected = int((found.rows + n) * max(1.0, size / seen) * 1.02) if size > seen else 0
        found.append(n, (columns[j].values for j in found.numeric), columns, expected)
        found.quotes, found.lines = found.quotes + quotes, found.lines + piece.count(b"\n")
        found.lines += not piece.endswith(b"\n")
    if found is None:
        raise NotThatKindError
    return found


def _pieces(path: Path, dialect: Dialect, whole: bool) -> Iterator[tuple[bytes, int]]:
    """Yield pieces that end with lines, and how many quotes each has; none can be made where quotes are open."""
    with open_text(path, dialect.encoding) as file:
        rest = read_whole(file) if whole else b""
        while data := file.read(PIECE):
            rest += data
            cut = rest.rfind(b"\n") + 1
            if cut:
                piece, rest = rest[:cut], rest[cut:]
                quotes = piece.count(b'"')
                if quotes % 2:
                    raise NotThatKindError
                yield piece, quotes
        if rest or whole:
            yield rest, rest.count(b'"')
