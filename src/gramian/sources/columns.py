"""Columns of text, Excel, Parquet and Feather tables: which are fitted, what becomes of text, and their numbers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.sources.addresses import as_address
from gramian.sources.arrays import WHOLE, DenseSource, refuse_rounding
from gramian.sources.base import Block, Source, memory_budget, naming, reading, rows_at_a_time
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import ARROW, SHEETS, TEXT, load_calamine, load_pyarrow, suffix_of
from gramian.sources.hdf5 import choose_dataset
from gramian.sources.marks import MissingMarks
from gramian.sources.text import (
    DAY,
    Dialect,
    SplitRows,
    TextColumns,
    UndecodableError,
    convert_cells,
    count_titles,
    days_of,
    describe_rows,
    is_numeral,
    is_western,
    line_of_row,
    normal_encoding,
    read_columns,
    read_decorated,
    read_verbatim,
    sniff,
)

T = TypeVar("T")
Name = str | int
Cells = npt.NDArray[np.object_]  # texts, and None where one is missing

TOLD = 5  # columns whose new names are told
INDEX = re.compile(r"__index_level_\d+__")  # where pandas keeps row names


class Records(ABC):
    """A table whose columns are known by number, from 0.

    Attributes
    ----------
    names : list of str
        Of the columns, all different.
    named : bool
        Whether the file brings the names.
    row_names : int or None
        The column that names the rows, where the file has one.
    notes : list of str
        What was found out and changed.
    marks : MissingMarks
        What stands for missing cells in texts, beside what always does.
    """

    names: list[str]
    named: bool = True
    row_names: int | None = None
    notes: list[str]
    marks: MissingMarks = MissingMarks()
    doubtful: Sequence[int] = ()  # columns of numbers like 1,234, which may be 1.234 or 1234

    @abstractmethod
    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read what must be read before anything can be asked."""

    @abstractmethod
    def kind(self, j: int) -> str:
        """Return ``"number"``, ``"text"``, ``"date"`` or ``"nested"``."""

    def array(self, columns: list[int]) -> npt.NDArray[np.float64] | None:
        """Return these columns where they are one array of numbers already."""
        return None

    @abstractmethod
    def numbers(self, j: int) -> npt.NDArray[Any]:
        """Return a column of numbers, NaN where one is missing."""

    @abstractmethod
    def cells(self, j: int) -> Cells:
        """Return another column as texts, None where one is missing."""

    def texts(self, j: int) -> npt.NDArray[np.str_]:
        """Return a column as text; an absent value is empty."""
        return np.array([cell or "" for cell in self.cells(j)], dtype=np.str_)

    def encode(self, feature: Feature) -> npt.NDArray[Any]:
        """Return the numbers that a column becomes, of shape (n,) or (n, levels)."""
        if feature.is_plain:
            return self.numbers(feature.column)
        return feature.encode(self.cells(feature.column))

    def where(self, row: int) -> str:
        """Say where a row is, in words of the user's."""
        return f"row {row + 1}"


class TextRecords(Records):
    """A text table."""

    def __init__(self, path: Path, *, delimiter: str | None, encoding: str | None = None, **written: Any) -> None:
        if delimiter is None and ".tsv" in path.name.lower():
            delimiter = "\t"
        self.path, self.written = path, {"delimiter": delimiter, **written}
        self.encoding = None if encoding is None else normal_encoding(encoding)
        try:
            self.describe(sniff(path, encoding=self.encoding, **self.written))
        except UndecodableError as error:
            self._describe_western(error)

    def _describe_western(self, error: UndecodableError) -> None:
        """Take a text that is not UTF-8 for one in cp1252, where it may be and nobody said what it is."""
        if self.encoding is not None or not is_western(self.path):
            raise error
        self.describe(sniff(self.path, encoding="cp1252", **self.written))

    def _decode(self, read: Callable[[], T]) -> T:
        """Read something, again where what is beyond the beginning of the text tells another encoding."""
        try:
            return read()
        except UndecodableError as error:
            self._describe_western(error)
            return read()

    def describe(self, dialect: Dialect) -> None:
        """Take over how the table is written."""
        self.dialect, self.named = dialect, dialect.header
        self.decimals = dialect.decimal if dialect.decimal == "," or self.written["decimal"] else ".,"
        self.names, renamed = distinct(list(dialect.names))
        self.row_names = 0 if dialect.row_names else None
        self.notes = [dialect.describe(), *dialect.told, *renamed]

    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read columns; the target apart from them, so that they are one array."""
        wanted = columns if target is None or target in columns else [*columns, target]
        self._read = self._decode(lambda: self.read(wanted))
        for j in list(self._read.others) if self.marks else []:
            before = self.cells(j)
            cells = self.marks.blank(before, self.names[j])
            if cells is not before:  # what is left may be numbers
                column = convert_cells(["" if cell is None else cell for cell in cells], self.dialect.decimal)
                if column.kind in ("number", "truth"):
                    self._read.make_number(j, column.values)
                else:
                    self._read.others[j], self._read.kinds[j] = [cells], column.kind
        doubtful = []
        for j in [j for j in self._read.others if self._read.kinds[j] == "text"]:
            found = read_decorated(self.cells(j), self.decimals, sure=not self.dialect.doubtful)
            if found is None:
                continue
            if found.rounded:
                name = self.names[j]
                raise SourceError(f"column {name!r} holds {found.rounded}, which float64 would round. Leave it out.")
            if found.doubtful:
                doubtful.append(j)
            else:
                first = next(cell for cell in self.cells(j) if cell is not None)
                number = found.values[~np.isnan(found.values)][0]
                self.notes.append(f"column {self.names[j]}: {first} is read as {number:.12g}")
                self._read.make_number(j, found.values)
        self.doubtful = doubtful

    def read(self, columns: list[int]) -> TextColumns:
        """Read columns."""
        return read_columns(self.path, self.dialect, columns)

    def kind(self, j: int) -> str:
        """Return what the cells were found to be."""
        kind = self._read.kinds[j]
        return "number" if kind == "truth" else kind

    def array(self, columns: list[int]) -> npt.NDArray[np.float64] | None:
        """Return the numbers where they were read in this order; the target, read last, is left where it is."""
        values = self._read.values[: self._read.rows]
        return values[:, : len(columns)] if columns == self._read.numeric[: len(columns)] else None

    def numbers(self, j: int) -> npt.NDArray[np.float64]:
        """Return a column that was read."""
        return self._read.values[: self._read.rows, self._read.numeric.index(j)]

    def cells(self, j: int) -> Cells:
        """Return a column that was read."""
        return np.concatenate([np.empty(0, dtype=object), *self._read.others[j]])

    def texts(self, j: int) -> npt.NDArray[np.str_]:
        """Return a column as it is written, 'NA' and leading zeros included."""
        return np.array(self._decode(lambda: read_verbatim(self.path, self.dialect, j)), dtype=np.str_)

    def where(self, row: int) -> str:
        """Say in which line a row begins."""
        return f"line {line_of_row(self.path, self.dialect, row)}"


class SheetRecords(TextRecords):
    """A sheet of an Excel or OpenDocument workbook: its cells as texts, and then as a text table."""

    def __init__(self, path: Path, *, dataset: str | None = None, **written: Any) -> None:
        self.path, self.written = path, written
        refuse_text_options(path.suffix, {name: written.pop(name, None) for name in ("delimiter", "encoding")})
        with reading(path, "a readable workbook"), load_calamine().load_workbook(str(path)) as book:
            names = [sheet.name for sheet in book.sheets_metadata if str(sheet.typ).endswith("WorkSheet")]
            sheets = {name: book.get_sheet_by_name(name) for name in names}
            filled = {name: f"{s.height} x {s.width}" for name, s in sheets.items() if s.height}
            name = next(iter(filled), "") if dataset is None else choose_dataset(filled, dataset, "sheet")
            if not name:
                raise SourceError("the workbook has no sheet with anything in it.")
            rows = sheets[name].to_python(skip_empty_area=False)
        table = [(i, cells) for i, row in enumerate(rows, 1) if any(cells := [spell_cell(cell) for cell in row])]
        titles = count_titles([cells for _, cells in table]) if written.get("header") is not False else 0
        above, table = table[titles - 1][0] if titles else 0, table[titles:]
        dialect = describe_rows(SplitRows("", [cells for _, cells in table], 1, 0.0, 2, above), **written)
        self.rows = table[dialect.skip :] if dialect.header else table
        if not self.rows:
            raise SourceError(f"a header row ({', '.join(dialect.names[:5])}) and no rows of data.")
        self.describe(dialect)
        others = [other for other in filled if other != name]
        told = f"; not read: {', '.join(others)}" if others and dataset is None else ""
        self.notes[0] = f"sheet {name}, {'header row' if dialect.header else 'no header row'}{told}"

    def read(self, columns: list[int]) -> TextColumns:
        """Take columns of the cells."""
        found = {j: convert_cells([cells[j] for _, cells in self.rows], self.dialect.decimal) for j in columns}
        read = TextColumns.of_kinds({j: column.kind for j, column in found.items()})
        read.append(len(self.rows), (found[j].values for j in read.numeric), found, 0)
        return read

    def texts(self, j: int) -> npt.NDArray[np.str_]:
        """Return a column as it is written."""
        return np.array([cells[j] for _, cells in self.rows], dtype=np.str_)

    def where(self, row: int) -> str:
        """Say in which row of the sheet a row is."""
        return f"row {self.rows[row][0]} of the sheet"


def spell_cell(cell: Any) -> str:
    """Return a cell of a workbook as text: numbers as short as they are exact, dates in ISO 8601.

    Examples
    --------
    >>> import datetime
    >>> [spell_cell(cell) for cell in (3.0, 0.1, True, datetime.date(2020, 2, 29), " a ")]
    ['3', '0.1', 'true', '2020-02-29', 'a']
    """
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, timedelta):
        return repr(cell.total_seconds() / DAY)
    if isinstance(cell, (datetime, date, time)):
        return cell.isoformat().removesuffix("T00:00:00")
    return repr(cell).removesuffix(".0") if isinstance(cell, float) else str(cell).strip()


class ArrowRecords(Records):
    """A table in Feather (Arrow IPC) or a Parquet file, loaded as far as it is needed."""

    def __init__(self, schema: Any) -> None:
        self.schema, self.names, self.notes = schema, list(schema.names), []
        twice = [repr(name) for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise SourceError(f"more than one column is called {', '.join(twice)}. Rename them.")
        self.row_names = next((j for j, name in enumerate(self.names) if INDEX.fullmatch(name)), None)
        self._columns: dict[int, Any] = {}

    def kind(self, j: int) -> str:
        """Return what the file says."""
        return arrow_kind(self.schema.field(j).type)

    @abstractmethod
    def table(self, names: list[str]) -> Any:
        """Read columns by name."""

    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read nothing yet: the file says itself what its columns are, and may be larger than memory."""

    def load(self, columns: list[int]) -> None:
        """Read columns together."""
        table = self.table([self.names[j] for j in columns])
        self._columns |= {j: table.column(self.names[j]) for j in columns}

    def numbers(self, j: int) -> npt.NDArray[Any]:
        """Return a column of numbers."""
        return arrow_numbers(self._column(j), self.names[j])

    def cells(self, j: int) -> Cells:
        """Return another column."""
        pa = load_pyarrow()
        values = self._column(j)
        try:
            return self.marks.blank(arrow_cells(values), self.names[j])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SourceError(
                f"column {self.names[j]!r} holds {values.type}: no text, so it can be neither label nor id."
            ) from error

    def _column(self, j: int) -> Any:
        """A column, loaded before, which is then forgotten, or read now."""
        return self._columns.pop(j) if j in self._columns else self.table([self.names[j]]).column(0)


class FeatherRecords(ArrowRecords):
    """An Arrow IPC file (Feather version 2) or stream."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "a readable Arrow (Feather) file"), self._reader() as reader:
            super().__init__(reader.schema)

    def _reader(self, columns: list[int] | None = None) -> Any:
        pa = load_pyarrow()
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        with self.path.open("rb") as file:
            is_file = file.read(6) == b"ARROW1"
        read = pa.ipc.open_file if is_file else pa.ipc.open_stream
        return read(pa.OSFile(str(self.path)), options=options)

    def table(self, names: list[str]) -> Any:
        """Read columns by name."""
        columns = [self.names.index(name) for name in names]
        with reading(self.path, "a readable Arrow (Feather) file"), self._reader(columns) as reader:
            table = reader.read_all()
            table.validate(full=True)
            return table


class ParquetRecords(ArrowRecords):
    """A Parquet file: its columns can be read apart, and its rows in batches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._file() as file:
            self.rows = int(file.metadata.num_rows)
            super().__init__(file.schema_arrow)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        pa = load_pyarrow()
        with (
            reading(self.path, "a readable Parquet file"),
            nullcontext(str(self.path)) if as_address(self.path) is None else self.path.open("rb") as opened,
            pa.parquet.ParquetFile(opened, memory_map=False, pre_buffer=False) as file,
        ):
            yield file

    def table(self, names: list[str]) -> Any:
        """Read columns by name."""
        with self._file() as file:
            return file.read(columns=names)

    def measure_lists(self, name: str) -> tuple[int, int | None]:
        """How many items the lists of a column have together, and one more than the largest, where the file says it."""
        stored, most = 0, 0
        known = True
        with self._file() as file:
            leaves = [file.schema.column(j).path for j in range(len(file.schema))]
            leaf = next(j for j, path in enumerate(leaves) if path.partition(".")[0] == name)
            for group in range(file.num_row_groups):
                chunk = file.metadata.row_group(group).column(leaf)
                stored += chunk.num_values
                statistics = chunk.statistics
                if statistics is not None and statistics.has_min_max:
                    most = max(most, int(statistics.max) + 1)
                elif chunk.num_values > file.metadata.row_group(group).num_rows:  # an empty list counts as one
                    known = False
        return stored, most if known and most else None

    def batches(self, columns: list[int], rows: int, first: int = 0, last: int | None = None) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows from row ``first`` to ``last``, one row group after another."""
        with self._file() as file:
            at = 0
            for group in range(file.num_row_groups):
                begin, at = at, at + file.metadata.row_group(group).num_rows
                if at <= first or (last is not None and begin >= last):
                    continue
                for batch in file.iter_batches(rows, row_groups=[group], columns=[self.names[j] for j in columns]):
                    skip = max(0, first - begin)
                    keep = len(batch) if last is None else min(len(batch), last - begin)
                    begin += len(batch)
                    if skip < keep:
                        yield batch.slice(skip, keep - skip)


def distinct(names: list[str]) -> tuple[list[str], list[str]]:
    """Rename columns that share a name (a, a becomes a, a.2), and say so.

    Examples
    --------
    >>> distinct(["a", "b", "a"])
    (['a', 'b', 'a.2'], ["column 3 is called 'a.2': there is an 'a' already"])
    """
    out: list[str] = []
    notes = []
    given, seen = set(names), Counter[str]()
    for j, name in enumerate(names):
        new = name
        seen[name] += 1
        if seen[name] > 1:
            while (new := f"{name}.{seen[name]}") in given:
                seen[name] += 1
            given.add(new)
            notes.append(f"column {j + 1} is called {new!r}: there is an {name!r} already")
        out.append(new)
    more = len(notes) - TOLD
    return out, notes if more <= 0 else [*notes[:TOLD], f"{more} more columns with double names are renamed so"]


def refuse_text_options(suffix: str, options: dict[str, Any]) -> None:
    """Refuse what says how a text is written, for a file that is none."""
    for name, value in options.items():
        if value is not None:
            given = Argument(name, value)
            raise SourceError(given, f" is for text files; a {suffix} file says such things itself.")


def open_records(path: Path, suffix: str, dataset: str | None = None, **options: Any) -> Records:
    """Open a table by how its name ends; ``options`` say how a text is written and are for text alone."""
    if suffix in SHEETS:
        return SheetRecords(path, dataset=dataset, **options)
    refuse_dataset(suffix, dataset)
    if suffix in TEXT:
        return TextRecords(path, **options)
    refuse_text_options(suffix, options)
    return FeatherRecords(path) if suffix in ARROW else ParquetRecords(path)


def refuse_dataset(suffix: str, dataset: str | None) -> None:
    """Refuse the name of one of several arrays, for a file that holds one table."""
    if dataset is not None:
        asked = Argument("dataset", dataset)
        raise SourceError(f"a {suffix} file holds one table; ", asked, " is for files of several.")


@dataclass(frozen=True)
class Roles:
    """Columns, counted from 0: those that are fitted, in order, and those that are not."""

    features: list[int]
    target: int | None = None
    label: int | None = None
    id: int | None = None


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns the user wants for what."""

    columns: Name | Sequence[Name] | None = None
    drop: Name | Sequence[Name] = ()
    target: Name | None = None
    label: Name | None = None
    id: Name | None = None
    categorical: str = "refuse"
    dates: str = "text"
    like: Sequence[str] | None = None
    marks: MissingMarks = field(default_factory=MissingMarks)

    def roles(self, names: Sequence[str], *, named: bool = True, row_names: int | None = None) -> Roles:
        """Give each column its role; one that has several is refused.

        ``row_names`` is a column that names the rows in the file itself: it is the id unless another is named.
        """
        given, drop = _as_list(self.columns), _as_list(self.drop)
        if self.like is not None and (self.columns is not None or drop):
            both = (Argument("columns"), " and ", Argument("drop"))
            raise SourceError(Argument("like"), " says which columns are read; ", *both, " cannot be given too.")
        wanted = {"target": self.target, "label": self.label, "id": self.id}
        found = {role: None if c is None else find_column(names, c, role, named=named) for role, c in wanted.items()}
        asked = [find_column(names, name, "columns", named=named) for name in given]
        dropped = {find_column(names, name, "drop", named=named) for name in drop}
        apart = {j: role for role, j in found.items() if j is not None}
        for j in sorted((set(asked) | dropped) & set(apart)):
            where = "columns" if j in asked else "drop"
            raise SourceError(f"column {names[j]!r} is the {apart[j]} and in {where}; name it once.")
        if set(asked) & dropped:
            raise SourceError(f"column {names[min(set(asked) & dropped)]!r} is in columns and in drop; name it once.")
        if found["id"] is None and row_names not in {*asked, *apart, *dropped}:
            found["id"] = row_names
        order = range(len(names)) if self.columns is None else dict.fromkeys(asked)
        aside = {*dropped, *apart, *([row_names] if self.columns is None else [])}
        features = [j for j in order if j not in aside]
        if not features:
            takers = [part for role in ("columns", "drop", "target", "label") for part in (Argument(role), ", ")]
            raise SourceError("no column is left to fit: ", *takers[:-1], " and ", Argument("id"), " take them all.")
        return Roles(features, **found)


def _as_list(names: Name | Sequence[Name] | None) -> list[Name]:
    if names is None:
        return []
    return [names] if isinstance(names, str | int) else list(names)


def find_column(names: Sequence[str], wanted: Name, role: str, *, of: str = "", named: bool = True) -> int:
    """Return the number, from 0, of a column given by name, or by its number from 1.

    Digits in a text are a name where the columns have names, and a number where they have none. An error says which
    ``role`` the column was to have, and whose columns they are (``of``).

    Examples
    --------
    >>> find_column(["age", "height"], "height", "target"), find_column(["age", "height"], 1, "target")
    (1, 0)
    """
    if isinstance(wanted, str) and wanted in names:
        return list(names).index(wanted)
    if isinstance(wanted, int) or (not named and wanted.isdigit() and wanted.isascii()):
        j = int(wanted)
        if 1 <= j <= len(names):
            return j - 1
        there = f"there are {len(names)}, counted from 1"
    else:
        folded = {name.casefold(): name for name in names}
        near = [folded[key] for key in get_close_matches(wanted.casefold(), list(folded), n=3, cutoff=0.5)]
        more = ", …" if len(names) > 10 else ""
        there = f"near it: {', '.join(near)}" if near else f"the columns are {', '.join(names[:10])}{more}"
    raise SourceError(f"no column {wanted!r}{of and f' {of}'} for ", Argument(role), f"; {there}.")


MOST_LEVELS = 1000
ID_LEVELS = 20  # a text column with more values than this, most of them seen once, names rows rather than classes
MOST_LABELS = 40  # classes that pictures tell apart
NUMBERS_SHARE = (0.9, 0.5)  # of cells that make a column one of numbers with slips; more are suspect as labels
NAMES_SHARE = 0.9  # of the cells of a column that differ where it names the rows
CATEGORICAL = ("refuse", "onehot", "drop", "label")
DATES = ("text", "days")
DAYS = " (days)"  # after the name of a column of dates, where they are numbers
WORDS = {"text": "text", "date": "dates or times", "nested": "lists or bytes"}


@dataclass(frozen=True)
class Feature:
    """A column of the table and the columns of numbers it becomes: itself, one for each of its levels, or days."""

    column: int
    name: str
    levels: tuple[str, ...] | None = None
    days: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the column is numbers itself."""
        return self.levels is None and not self.days

    @property
    def names(self) -> list[str]:
        """The names of the columns of numbers."""
        if self.levels is None:
            return [f"{self.name}{DAYS}" if self.days else self.name]
        return [f"{self.name}={level}" for level in self.levels]

    def encode(self, cells: Cells) -> npt.NDArray[np.float64]:
        """Return the numbers of texts: days since 1970-01-01, or 0 and 1 for each level; NaN where one is missing.

        A level that is not known is missing too.

        Examples
        --------
        >>> import numpy as np
        >>> Feature(0, "sex", ("f", "m")).encode(np.array(["m", None], dtype=object))
        array([[ 0.,  1.],
               [nan, nan]])
        """
        if self.levels is None:
            days = {cell: days_of(cell) for cell in set(cells) - {None}}
            return np.array([np.nan if cell is None else days[cell] for cell in cells], dtype=np.float64)
        codes = {level: i for i, level in enumerate(self.levels)}
        at = np.array([codes.get(cell, -1) for cell in cells], dtype=np.intp)
        out: npt.NDArray[np.float64] = (at[:, None] == np.arange(len(codes))).astype(np.float64)
        out[at < 0] = np.nan
        return out


@dataclass(frozen=True)
class ChosenColumns:
    """What becomes of columns: those that are fitted, the ones that label and name the rows, and notes on all this."""

    features: list[Feature]
    notes: list[str]
    label: int | None = None
    id: int | None = None


def choose_features(records: Records, columns: list[int], choice: ColumnChoice) -> ChosenColumns:
    """Decide what becomes of each column, and say so; columns without numbers are refused by name."""
    for name, value, known in (("categorical", choice.categorical, CATEGORICAL), ("dates", choice.dates, DATES)):
        if value not in known:
            raise SourceError(Argument(name, value), f": give one of {', '.join(known)}.")
    names = records.names
    rule = "refuse" if choice.categorical == "label" and choice.columns is not None else choice.categorical
    kinds = {j: records.kind(j) for j in columns}
    others = {j: kind for j, kind in kinds.items() if kind != "number"}
    # numbers but for some cells: leaving the column out or making classes of it would be wrong
    share = NUMBERS_SHARE[rule == "label"]
    for j in (j for j, kind in others.items() if kind == "text" and j not in records.doubtful):
        cells = records.cells(j)
        strange = _find_strange(cells)
        count = sum(cell is not None for cell in cells)
        if count - len(strange) >= share * count > 0:
            told, remedy = f"{count - len(strange)} of {count} cells are numbers", "drop the column."
            if strange:
                told = f"{told}, and {cells[strange[0]]!r} ({records.where(strange[0])}) is not"
                if strange == [0]:
                    remedy = "leave the row out if it holds names or units."
                texts = {str(cells[i]).strip() for i in strange}
                mark = Argument("na_values", texts.pop()) if len(texts) == 1 else Argument("na_values")
                parts = (f"column {names[j]!r}: {told}. Mend or empty the cell, say with ", mark)
                raise SourceError(*parts, f" that it marks a missing one, or {remedy}")
            if isinstance(records, TextRecords):  # other files say themselves that these numbers are text
                raise SourceError(f"column {names[j]!r}: {told}, not all written alike. Mend them, or {remedy}")
    notes = []
    days = [j for j, kind in others.items() if kind == "date" and choice.dates == "days"]
    if days:
        notes.append(f"days since 1970-01-01: {', '.join(names[j] for j in days)}")
    others = {j: kind for j, kind in others.items() if j not in days}
    if others and (rule == "refuse" or set(records.doubtful) & set(others)):
        _refuse_text(records, others)
    if rule == "onehot":
        levels = {j: _levels(records, j, kind) for j, kind in others.items()}
        features = [Feature(j, names[j], levels.get(j), j in days) for j in columns]
        notes += [f"column {f.name}: one-hot of {len(f.levels)}" for f in features if f.levels is not None]
        return ChosenColumns(features, notes)
    features = [Feature(j, names[j], None, j in days) for j in columns if j not in others]
    label: int | None = None
    id: int | None = None
    if rule == "label":
        for j in (j for j, kind in others.items() if kind == "text"):
            cells = records.cells(j)
            seen, count = len(set(cells) - {None}), sum(cell is not None for cell in cells)
            if label is None and choice.label is None and 1 < seen <= min(MOST_LABELS, count / 2):
                label = j
            elif id is None and choice.id is None and seen >= max(2, NAMES_SHARE * count):
                id = j
        notes += [] if label is None else [f"text column {names[label]}: labels the rows, and is not fitted"]
        notes += [] if id is None else [f"text column {names[id]}: names the rows, and is not fitted"]
    left = [names[j] for j in others if j not in (label, id)]
    notes += [f"left out, being no numbers: {', '.join(left)}"] if left else []
    return ChosenColumns(features, notes, label, id)


def _find_strange(cells: Cells) -> list[int]:
    """Return the rows in which texts are no numbers."""
    return [i for i, cell in enumerate(cells) if cell is not None and not is_numeral(cell.strip())]


def _list_text(records: Records, kinds: dict[int, str]) -> str:
    """Return the names of columns without numbers, with a cell of each that is none."""
    shown = []
    for j, kind in list(kinds.items())[:8]:
        cell = ""
        if kind == "text":
            cells = records.cells(j)
            row = next((i for i in [*_find_strange(cells), 0] if cells[i] is not None), 0)
            cell = f", {str(cells[row])[:40]!r} in {records.where(row)}"
        shown.append(f"{records.names[j]} ({WORDS[kind]}{cell})")
    return ", ".join(shown) + (f" and {len(kinds) - 8} more" if len(kinds) > 8 else "")


def _refuse_text(records: Records, kinds: dict[int, str]) -> None:
    """Raise an error that lists columns without numbers, and what can be done with them."""
    parts: list[str | Argument] = [f"Columns without numbers: {_list_text(records, kinds)}. "]
    if records.doubtful:
        says = ("Numbers like 1,234 may mean 1.234 or 1234: say ", Argument("decimal", ","), " or ")
        parts += [*says, Argument("decimal", "."), ". "]
    if "date" in kinds.values():
        parts += ["Make dates numbers with ", Argument("dates", "days"), ". "]
    encode = "text" in kinds.values()
    parts += ["Encode text with ", Argument("categorical", "onehot"), ", leave"] if encode else ["Leave"]
    parts += [" such columns out with ", Argument("categorical", "drop"), ", or give one as ", Argument("label"), ", "]
    raise SourceError(*parts, Argument("id"), " or in ", Argument("drop"), ".")


def _levels(records: Records, j: int, kind: str) -> tuple[str, ...]:
    name = records.names[j]
    if kind != "text":
        text = f"column {name!r} holds {WORDS[kind]}, which have no one-hot code. Drop it"
        more = (", or make it numbers with ", Argument("dates", "days")) if kind == "date" else ()
        raise SourceError(text, *more, ".")
    cells = records.cells(j)
    levels = sorted({cell for cell in cells if cell is not None})
    if len(levels) > MOST_LEVELS or (len(levels) > ID_LEVELS and 2 * len(levels) > len(cells)):
        text = f"column {name!r} has {len(levels)} different texts in {len(cells)} rows: too many for a one-hot code."
        raise SourceError(text, " Give it as ", Argument("id"), " or ", Argument("label"), ", or drop it.")
    return tuple(levels)


def columns_like(names: Sequence[str], like: Sequence[str]) -> list[Feature]:
    """Return what gives the wanted columns of numbers: columns of the file, levels of one, days of its dates.

    Examples
    --------
    >>> [(feature.column, feature.levels) for feature in columns_like(["sex", "age"], ["age", "sex=female"])]
    [(1, None), (0, ('female',))]
    """
    places = {name: j for j, name in enumerate(names)}
    found: list[Feature] = []
    absent = []
    for want in like:
        cuts = [at for at, mark in enumerate(want) if mark == "=" and want[:at] in places]
        dates = want.removesuffix(DAYS)
        if want in places:
            found.append(Feature(places[want], want))
        elif dates != want and dates in places:
            found.append(Feature(places[dates], dates, days=True))
        elif cuts:
            name, levels = want[: cuts[-1]], (want[cuts[-1] + 1 :],)
            if found and found[-1].name == name and found[-1].levels is not None:
                levels = (*found.pop().levels, *levels)  # type: ignore[misc]
            found.append(Feature(places[name], name, levels))
        else:
            absent.append(want)
    if absent:
        more = ", …" if len(absent) > 8 else ""
        raise SourceError(f"{len(absent)} of {len(like)} columns are not in the file: {', '.join(absent[:8])}{more}.")
    return found


def check_features(records: Records, features: list[Feature]) -> list[str]:
    """Refuse text and dates where the fit had numbers; return notes on levels that it did not have."""
    kinds = {f.column: records.kind(f.column) for f in features if f.is_plain}
    text = {column: kind for column, kind in kinds.items() if kind != "number"}
    if text:
        raise SourceError(f"Columns without numbers, which were numbers in the fit: {_list_text(records, text)}.")
    notes = []
    for feature in features:
        levels = feature.levels or ()
        if not feature.is_plain and records.kind(feature.column) == "number":
            raise SourceError(f"column {feature.name!r} is numbers, and was text or dates in the fit: {levels[:5]}.")
        cells: Sequence[str | None] = records.cells(feature.column).tolist() if levels else []
        new = {cell for cell in cells if cell is not None and cell not in levels}
        if new:
            count, shown = sum(cell in new for cell in cells), ", ".join(map(repr, sorted(new)[:5]))
            told = f"{shown} in {count} of {len(cells)} rows was not among the {len(levels)} levels of the fit"
            notes.append(f"column {feature.name}: {told}, and counts as missing")
    return notes


def arrow_kind(kind: Any) -> str:
    """Return ``"number"``, ``"text"``, ``"date"`` or ``"nested"`` for a pyarrow type.

    Truth values are numbers, 0 and 1. A column of categories is text whatever its categories are made of.
    """
    t = load_pyarrow().types
    if t.is_boolean(kind) or t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind):
        return "number"
    if t.is_temporal(kind):
        return "date"
    is_text = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind) or t.is_dictionary(kind)
    return "text" if is_text else "nested"


def arrow_numbers(values: Any, name: str, start: int = 0) -> npt.NDArray[Any]:
    """Return the numbers of a pyarrow array or chunked array, NaN where one is absent.

    ``start`` is the number of its first row, for an error about one that float64 would round.
    """
    pa = load_pyarrow()
    kind = pa.float32() if is_single(values.type) else pa.float64()
    chunked = values.cast(kind, safe=False)
    numbers = np.asarray(chunked.to_numpy() if isinstance(chunked, pa.ChunkedArray) else chunked.to_numpy(False))
    exact = pa.types.is_floating(values.type) or pa.types.is_boolean(values.type) or len(numbers) == 0
    if not exact and max(np.fmax.reduce(numbers), -np.fmin.reduce(numbers)) > WHOLE:
        refuse_rounding(np.array(values.to_pylist(), dtype=object), f"column {name!r}", start)
    return numbers


def arrow_cells(values: Any) -> Cells:
    """Return a pyarrow column as texts, None where one is absent; categories as the values they stand for."""
    pa = load_pyarrow()
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    return np.array([*plain.cast(pa.string()).to_pylist(), None], dtype=object)[:-1]


def is_single(kind: Any) -> bool:
    """Whether a pyarrow type is float32 or float16."""
    types = load_pyarrow().types
    return bool(types.is_float32(kind) or types.is_float16(kind))


def as_source(records: Records, features: list[Feature]) -> Source:
    """Return the numbers as a source: in memory, unless they are a Parquet file beyond the memory budget."""
    names, _ = distinct([name for feature in features for name in feature.names])
    dtype: np.dtype[Any] = np.dtype(np.float64)
    if isinstance(records, ArrowRecords):
        types = [records.schema.field(f.column).type for f in features]
        if all(is_single(kind) and f.is_plain for kind, f in zip(types, features, strict=True)):
            dtype = np.dtype(np.float32)
        if isinstance(records, ParquetRecords) and records.rows * len(names) * dtype.itemsize > memory_budget():
            return RecordsSource(records, features, names, dtype)
        records.load(list(dict.fromkeys(f.column for f in features)))
    ready = records.array([f.column for f in features]) if all(f.is_plain for f in features) else None
    if ready is not None:
        return DenseSource(ready, names)
    # one array is filled column by column, and each column let go of: they are never all there twice
    out: npt.NDArray[Any] | None = None
    at = 0
    for feature in features:
        values = records.encode(feature)
        if out is None:
            out = np.empty((len(values), len(names)), dtype, order="F")
        width = len(feature.names)
        out[:, at : at + width] = values.reshape(len(values), width)
        at += width
    assert out is not None
    return DenseSource(out, names)


class RecordsSource(Source):
    """Rows of a Parquet file, decoded batch by batch: for files larger than memory.

    Parameters
    ----------
    records : ParquetRecords
        The file.
    features : list of Feature
        Its columns of numbers.
    names : list of str
        What they are called.
    dtype : dtype
        Of the blocks.
    """

    resident = False

    def __init__(
        self, records: ParquetRecords, features: list[Feature], names: list[str], dtype: np.dtype[Any]
    ) -> None:
        self.records, self.features = records, features
        self.shape, self.dtype, self.feature_names = (records.rows, len(names)), dtype, names

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of blocks."""
        return list(self.ranges(rows or rows_at_a_time(self.shape[1] * self.dtype.itemsize), 1))

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks of rows; each is decoded when it is asked for."""
        rows = rows or rows_at_a_time(self.shape[1] * self.dtype.itemsize)
        last = self.shape[0] if self.last is None else self.last
        block = np.empty((min(rows, max(1, last - self.first)), self.shape[1]), self.dtype)
        start, filled = self.first, 0
        for batch in self.records.batches([f.column for f in self.features], rows, self.first, last):
            taken = 0
            while taken < len(batch):
                part = batch.slice(taken, len(block) - filled)
                at = 0
                for feature, values in zip(self.features, part.columns, strict=True):
                    width, first = len(feature.names), start + filled
                    plain = feature.is_plain
                    numbers = (
                        arrow_numbers(values, feature.name, first) if plain else feature.encode(arrow_cells(values))
                    )
                    block[filled : filled + len(part), at : at + width] = numbers.reshape(len(part), width)
                    at += width
                filled, taken = filled + len(part), taken + len(part)
                if filled == len(block) or start + filled == last:
                    yield Block(start, start + filled, block[:filled])
                    start, filled = start + filled, 0


class SparseListsSource(Source):
    """Sparse rows of a Parquet file, in which a row is two lists: the columns that are stored, and their values.

    Parameters
    ----------
    path : path-like
        The file.
    indices, values : str
        Which columns of the file the lists are.
    columns : int, optional
        How many columns the table has; where not given, as many as the file's statistics say there are.
    names : list of str, optional
        What they are called.
    """

    resident, sparse = False, True

    def __init__(
        self, path: Path, indices: str, values: str, columns: int | None = None, names: list[str] | None = None
    ) -> None:
        self.path, self.records, self.lists = path, ParquetRecords(path), (indices, values)
        types, kinds = load_pyarrow().types, []
        for name in self.lists:
            if name not in self.records.names:
                raise SourceError(f"no column {name!r}; there are {', '.join(self.records.names)}.", path=path)
            kind = self.records.schema.field(name).type
            if not (types.is_list(kind) or types.is_large_list(kind)):
                raise SourceError(f"column {name!r} holds {kind}, and no lists.", path=path)
            kinds.append(kind.value_type)
        if not types.is_integer(kinds[0]):
            raise SourceError(f"column {indices!r} holds lists of {kinds[0]}: whole numbers count columns.", path=path)
        stored, most = self.records.measure_lists(indices)
        if columns is None and most is None:
            raise SourceError("the file does not say how many columns there are: give columns=.", path=path)
        self.shape = (self.records.rows, int(columns if columns is not None else (most or 0)))
        self.dtype = np.dtype(np.float32 if is_single(kinds[1]) else np.float64)
        self.row_bytes, self.feature_names = stored * (self.dtype.itemsize + 8.0) / max(1, self.shape[0]), names

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of blocks."""
        return list(self.ranges(rows or rows_at_a_time(self.row_bytes), 1))

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks of sparse rows; each is decoded when it is asked for."""
        rows = rows or rows_at_a_time(self.row_bytes)
        last = self.shape[0] if self.last is None else self.last
        start, size, pieces = self.first, 0, list[Any]()
        positions = [self.records.names.index(name) for name in self.lists]
        for batch in self.records.batches(positions, rows, self.first, last):
            taken = 0
            while taken < len(batch):
                part = batch.slice(taken, rows - size)
                pieces.append(self._matrix(part, start + size))
                taken, size = taken + len(part), size + len(part)
                if size == rows or start + size == last:
                    yield Block(start, start + size, sp.csr_array(sp.vstack(pieces, format="csr")))
                    start, size, pieces = start + size, 0, []

    def _matrix(self, batch: Any, first: int) -> Any:
        pa = load_pyarrow()
        where, what = batch.column(self.lists[0]), batch.column(self.lists[1])
        lengths, others = (np.asarray(pa.compute.list_value_length(x).fill_null(0)) for x in (where, what))
        if np.any(lengths != others):
            row = first + int(np.argmax(lengths != others)) + 1
            raise SourceError(
                f"row {row} has {self.lists[0]!r} and {self.lists[1]!r} of unlike length.", path=self.path
            )
        index, values = np.array(where.flatten()), np.array(arrow_numbers(what.flatten(), self.lists[1]))
        begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        outside = (index < 0) | (index >= self.shape[1])
        if outside.any():
            row, column = int(np.searchsorted(begins, np.argmax(outside), "right")), index[int(np.argmax(outside))]
            told = f"row {first + row} names the column {column}, counted from 0, and there are {self.shape[1]}."
            raise SourceError(told, path=self.path)
        matrix = sp.csr_array((values, index, begins), shape=(len(lengths), self.shape[1]))
        matrix.sum_duplicates()
        return matrix


def open_tabular(path: Path, dataset: str | None = None) -> Source:
    r"""Read the columns of a CSV, TSV, Excel, Parquet or Feather file, which must be numbers.

    Missing cells are NaN. :func:`gramian.sources.read_table` chooses among columns and encodes text.

    Examples
    --------
    >>> import tempfile, pathlib, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.csv")
    ...     _ = path.write_text("height;weight\n1,5;60\n1,75;NA\n")
    ...     gramian.open(path).values
    array([[ 1.5 , 60.  ],
           [ 1.75,   nan]])
    """
    try:
        with naming(path):
            records = open_records(path, suffix_of(path), dataset, delimiter=None, decimal=None, header=None)
            columns = ColumnChoice().roles(records.names, row_names=records.row_names).features
            records.prepare(columns)
            return as_source(records, choose_features(records, columns, ColumnChoice()).features)
    except SourceError as error:
        if any(isinstance(part, Argument) and part.name != "dataset" for part in error.parts):
            error.parts += (" These are arguments of gramian.sources.read_table; fit the source of its table.",)
        raise
