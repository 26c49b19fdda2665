"""Text tables: how they are written, found out from their beginning, and their columns, read by pyarrow.

pyarrow reads a piece with all cores; the numbers go into one array, so that the whole takes little more memory than
they do. A piece ends with a line, and never within quotes.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import refuse_beyond_device
from gramian.sources.arrays import WHOLE
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import load_pyarrow

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?", ".")
NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+\s*")
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
        raise SourceError(Argument("decimal", decimal), ": give '.' or ','.")
    parsed = _split_head(head, whole, SPELLED.get(delimiter or "", delimiter))
    first, rest = parsed.rows[0], parsed.rows[1:]
    has_header = _has_header(first, rest) if header is None else header
    body = rest if has_header else parsed.rows
    short = has_header and _begin_with_names(body, len(first) + 1)
    mark, doubtful = _find_decimal(body, parsed.delimiter, decimal)
    if parsed.delimiter == " ":
        padded = "  " in head or any(line != line.strip(" ") for line in head.splitlines())
    else:
        padded = f" {parsed.delimiter}" in head or f"{parsed.delimiter} " in head
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
        skip=parsed.skip if has_header else 0,
        row_names=has_header and len(names) > 1 and names[0] == ROW_NAMES and (short or not first[0].strip()),
        padded=padded,
        doubtful=doubtful,
        longest=max(map(len, head.splitlines()), default=0),
    )


def _split_head(head: str, whole: bool, delimiter: str | None) -> _Parsed:
    if delimiter is not None and len(delimiter.encode()) != 1:
        given = Argument("delimiter", delimiter)
        raise SourceError(given, f": give one character, or one of {', '.join(SPELLED)}.")
    tried = [_parse(head, whole, d) for d in ([delimiter] if delimiter else DELIMITERS)]
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


def _parse(head: str, whole: bool, delimiter: str) -> _Parsed | None:
    """Split the beginning of a file at a delimiter; None where that cannot be done."""
    text = strip_blanks(head.encode(), delimiter).decode() if delimiter == " " else head
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
    if not rows:
        return None
    # how well the delimiter does: rows as long as the first (or longer by a row name), cells that are numbers
    width, body = len(rows[0]), rows[1:] or rows
    agree = max(sum(len(row) == w for row in body) for w in (width, width + 1)) / len(body)
    cells = [cell for row in body for cell in row]
    return _Parsed(delimiter, rows, skip, agree * (0.6 + sum(map(_is_numeral, cells)) / max(1, len(cells))))


def _is_numeral(cell: str) -> bool:
    """Whether a cell is a number, or missing."""
    return cell in MISSING or NUMBER.fullmatch(cell) is not None


def _has_header(first: list[str], rest: Rows) -> bool:
    """Whether the first row is names: text above numbers, text above text only, or numbers that count columns."""
    columns = range(len(first))
    shift = 1 if _begin_with_names(rest, len(first) + 1) else 0
    body = [row for row in rest if len(row) == len(first) + shift]
    below = [[row[j + shift] for row in body if row[j + shift] not in MISSING] for j in columns]
    numeric = [bool(cells) and 2 * sum(map(_is_numeral, cells)) > len(cells) for cells in below]
    if any(n and not _is_numeral(cell) for n, cell in zip(numeric, first, strict=True)):
        return True
    if _numbers_are_names(first, [row[shift:] for row in body]):
        return True
    if all(_is_numeral(cell) for cell in first):
        return False
    return shift == 1 or not any(n and cell not in MISSING for n, cell in zip(numeric, first, strict=True))


def _begin_with_names(rows: Rows, width: int) -> bool:
    """Whether rows are one cell longer than the header because each begins with a name or its number, as R's do."""
    if len(rows) < 2 or width < 3 or any(len(row) != width for row in rows):
        return False
    first = [row[0] for row in rows]
    counted = first == [str(i + 1) for i in range(len(first))]
    return counted or (len(set(first)) == len(first) and not any(map(_is_numeral, first)))


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
    numbers = [cell for row in body for cell in row if NUMBER.fullmatch(cell)]
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


def open_text(path: Path) -> IO[bytes]:
    """Open a text file, compressed by gzip or not."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]


def read_whole(file: IO[bytes]) -> bytes:
    """Read what is left of a file, or refuse it before it takes more memory than there is: it may be compressed."""
    parts, size = [], 0
    while data := file.read(CHUNK):
        parts.append(data)
        size += len(data)
        if size % (16 * CHUNK) < CHUNK:
            refuse_beyond_device(size, None, f"A text of {size:,} bytes or more", LARGE_REMEDY)
    return b"".join(parts)


def sniff(path: Path, *, delimiter: str | None, decimal: str | None, header: bool | None) -> Dialect:
    """Find out how a text table is written from its first 64 KiB, or more where two lines take more."""
    with open_text(path) as file:
        head = file.read(HEAD)
        while head.strip().count(b"\n") < 2 and (more := file.read(len(head) or 1)):
            head += more
            refuse_beyond_device(4 * len(head), None, f"A line of {len(head):,} bytes or more", LARGE_REMEDY)
        whole = not file.read(1)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError("the text is UTF-16 (it begins with its mark). Save it as UTF-8.")
    text = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode(head, whole)
    if not text.strip():
        raise SourceError("the file holds nothing but blank lines.")
    if "�" in text:
        refuse_undecodable(path)
    dialect = detect(text, whole, delimiter=delimiter, decimal=decimal, header=header)
    if dialect.header and whole and dialect.skip >= len(text.rstrip().splitlines()):
        raise SourceError(f"a header row ({', '.join(dialect.names[:5])}) and no rows of data.")
    return dialect


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
                raise SourceError(
                    f"line {line}: byte 0x{bad:02x} at position {at - pending + error.start} is not UTF-8. Save the "
                    "file as UTF-8."
                ) from error
            if not data:
                return
            pending = len(decoder.getstate()[0])
            at, line = at + len(data), line + data.count(b"\n")


def numbered_rows(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of data with the line in which each begins, by Python's own reader."""
    with open_text(path) as file:
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


WIDE = 1000  # columns: from here on pyarrow takes longer for each of them than for its cells
MOST_TEXTS = 100  # columns of text in so wide a table
PIECE = 2**25
BLOCK = 2**20  # what one core parses at a time


class _NotInPiecesError(Exception):
    """The pieces do not fit together; the file must be read whole."""


@dataclass
class TextColumns:
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

    def append(self, numbers: npt.NDArray[np.float64] | None, table: Any, expected: int) -> None:
        """Add rows, of ``expected`` in all: of a pyarrow table, or its numbers apart from it."""
        n = table.num_rows if numbers is None else len(numbers)
        if self.rows + n > len(self.values):
            rows, k = self.rows + n, len(self.numeric)
            refuse_beyond_device(8 * rows * k, None, f"The numbers of {rows:,} rows or more", LARGE_REMEDY)
            grown = np.empty((max(expected, rows, 3 * self.rows // 2), k))
            grown[: self.rows] = self.values[: self.rows]
            self.values = grown
        if numbers is not None:
            self.values[self.rows : self.rows + n] = numbers
        else:
            for i, j in enumerate(self.numeric):
                at = self.rows
                for chunk in table.column(str(j)).chunks:
                    cells = chunk.cast("float64", safe=False).to_numpy(zero_copy_only=False)
                    self.values[at : at + len(chunk), i] = cells
                    at += len(chunk)
        for j, chunks in self.others.items():
            chunks.extend(table.column(str(j)).chunks)
        self.rows += n


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
    pa = load_pyarrow()
    try:
        try:
            wide = _read_wide(path, dialect, columns) if len(dialect.names) > WIDE else None
            found = wide or _read_pieces(path, dialect, columns)
        except _NotInPiecesError:  # at once, so that what is in the last line can change what a column is
            found = _read_pieces(path, dialect, columns, whole=True)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        check_lines(path, dialect)
        raise SourceError(f"cannot be read as a table: {error}") from error
    if any(pa.types.is_binary(chunks[0].type) for chunks in found.others.values() if chunks):
        refuse_undecodable(path)
    if found.quotes and found.lines != dialect.skip + found.rows:  # quotes have joined lines, rightly or not
        check_lines(path, dialect)
    if found.rows and found.numeric:
        values = found.values[: found.rows]
        largest = np.maximum(np.fmax.reduce(values, axis=0), -np.fmin.reduce(values, axis=0))
        for i in np.flatnonzero(largest > WHOLE):
            _refuse_rounding(path, dialect, found.numeric[i], values[:, i])
    return found


def _refuse_rounding(path: Path, dialect: Dialect, column: int, values: npt.NDArray[np.float64]) -> None:
    """Raise an error that names the first whole number of a column that float64 does not hold, if there is one."""
    texts = read_verbatim(path, dialect, column)
    for row in np.flatnonzero(np.isfinite(values) & (np.abs(values) > WHOLE)):
        if WHOLE_NUMBER.fullmatch(texts[row]) and int(texts[row]) != int(values[row]):
            where = f"line {line_of_row(path, dialect, int(row))}: column {dialect.names[column]!r}"
            raise SourceError(
                f"{where} is {texts[row].strip()}, which float64 would round. Subtract a number near it from the whole "
                "column first, or leave it out."
            )


def read_verbatim(path: Path, dialect: Dialect, column: int) -> list[str]:
    """Read one column as it is written, 'NA' and leading zeros included."""
    pa = load_pyarrow()
    with open_text(path) as file:
        data = read_whole(file)
    try:
        table = _parse_piece(data, dialect, [column], {str(column): pa.string()}, skip=dialect.skip, verbatim=True)
    except pa.ArrowInvalid as error:
        check_lines(path, dialect)
        raise SourceError(f"cannot be read as a table: {error}") from error
    texts: list[str] = table.column(0).to_pylist()
    return texts


def _read_wide(path: Path, dialect: Dialect, columns: list[int]) -> TextColumns | None:
    """Read a table of very many columns: its numbers as one long column, which costs pyarrow far less than many.

    None where that cannot be: quotes, lines of other lengths, text among the numbers of a column.
    """
    pa = load_pyarrow()
    mark, width = dialect.delimiter.encode(), len(dialect.names)
    found: TextColumns | None = None
    types: dict[str, Any] = {}
    skip = dialect.skip
    for piece, quotes in _pieces(path, whole=False):
        lines = [line.removesuffix(b"\r") for line in piece.split(b"\n")[skip:]]
        lines = [line for line in lines if line]
        if quotes or dialect.padded or any(line.count(mark) != width - 1 for line in lines):
            return None
        if found is None and lines:
            first = lines[0].decode(errors="replace").split(dialect.delimiter)
            numeric = [j for j in columns if _is_numeral(first[j].strip())]
            found = TextColumns(numeric, np.empty((0, len(numeric))), {j: [] for j in sorted({*columns} - {*numeric})})
            if not numeric or len(found.others) > MOST_TEXTS:
                return None
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
                _convert_options(dialect, [0], {"0": pa.float64()}),
            ).column(0)
            texts = _parse_piece(piece, dialect, list(found.others), types, skip=skip) if found.others else None
        except pa.ArrowInvalid:
            return None
        if len(numbers) != len(lines) * len(found.numeric):
            return None
        found.append(numbers.to_numpy().reshape(len(lines), -1), texts, 0)
        types = {} if texts is None else {name: texts.column(name).type for name in texts.column_names}
        found.lines += len(lines) + skip
        skip = 0
    return found


def _read_pieces(path: Path, dialect: Dialect, columns: list[int], *, whole: bool = False) -> TextColumns:
    """Read a file piece by piece, or as one; columns are what they are in the first piece."""
    pa = load_pyarrow()
    size, seen, skip = path.stat().st_size, 0, dialect.skip
    found: TextColumns | None = None
    types: dict[str, Any] = {}
    for piece, quotes in _pieces(path, whole):
        try:
            table = _parse_piece(piece, dialect, columns, types, skip=skip)
        except pa.ArrowInvalid as error:
            if whole:
                raise
            raise _NotInPiecesError from error
        if found is None:
            kinds, t = {j: table.column(str(j)).type for j in columns}, pa.types
            plain = {j for j, k in kinds.items() if t.is_integer(k) or t.is_floating(k) or t.is_null(k)}
            numeric = [j for j in columns if j in plain or t.is_boolean(kinds[j])]
            found = TextColumns(numeric, np.empty((0, len(numeric))), {j: [] for j in sorted({*columns} - {*numeric})})
            types = {str(j): pa.float64() if j in plain else kinds[j] for j in columns}
        seen, skip = seen + len(piece), 0
        expected = int((found.rows + table.num_rows) * max(1.0, size / seen) * 1.02) if size > seen else 0
        found.append(None, table, expected)
        found.quotes, found.lines = found.quotes + quotes, found.lines + piece.count(b"\n")
        found.lines += not piece.endswith(b"\n")
    if found is None:
        raise _NotInPiecesError
    return found


def _pieces(path: Path, whole: bool) -> Iterator[tuple[bytes, int]]:
    """Yield pieces that end with lines, and how many quotes each has; none can be made where quotes are open."""
    with open_text(path) as file:
        rest = read_whole(file) if whole else b""
        while data := file.read(PIECE):
            rest += data
            cut = rest.rfind(b"\n") + 1
            if cut:
                piece, rest = rest[:cut], rest[cut:]
                quotes = piece.count(b'"')
                if quotes % 2:
                    raise _NotInPiecesError
                yield piece, quotes
        if rest or whole:
            yield rest, rest.count(b'"')


def _parse_piece(
    data: bytes,
    dialect: Dialect,
    columns: list[int],
    types: dict[str, Any],
    *,
    skip: int,
    verbatim: bool = False,
) -> Any:
    """Return columns of a text as a pyarrow table; they are called by their numbers, for names may be double."""
    pa = load_pyarrow()
    data = strip_blanks(data, dialect.delimiter) if dialect.padded else data
    names = [str(j) for j in range(len(dialect.names))]
    size = max(BLOCK, 8 * dialect.longest)
    return pa.csv.read_csv(
        pa.BufferReader(data),
        pa.csv.ReadOptions(column_names=names, skip_rows=skip, block_size=size, encoding="utf8"),
        pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        _convert_options(dialect, columns, types, verbatim=verbatim),
    )


def _convert_options(dialect: Dialect, columns: list[int], types: dict[str, Any], *, verbatim: bool = False) -> Any:
    """How pyarrow makes values of cells."""
    return load_pyarrow().csv.ConvertOptions(
        include_columns=[str(j) for j in columns],
        column_types=types,
        null_values=[] if verbatim else list(MISSING),
        strings_can_be_null=not verbatim,
        decimal_point=dialect.decimal,
    )
