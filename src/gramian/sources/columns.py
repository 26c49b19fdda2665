"""Columns of text, Parquet and Feather tables: which are fitted, what becomes of text, and their numbers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import WHOLE, DenseSource, refuse_rounding
from gramian.sources.base import Block, Source, memory_budget, naming, reading, rows_at_a_time
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import ARROW, TEXT, load_pyarrow, suffix_of
from gramian.sources.text import TextColumns, line_of_row, read_columns, read_verbatim, sniff

Name = str | int

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
    """

    names: list[str]
    named: bool = True
    row_names: int | None = None
    notes: list[str]
    decimal: str = "."
    doubtful: bool = False

    @abstractmethod
    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read what must be read before anything can be asked."""

    @abstractmethod
    def type(self, j: int) -> Any:
        """Return the pyarrow type of a column."""

    def array(self, columns: list[int]) -> npt.NDArray[np.float64] | None:
        """Return these columns where they are one array of numbers already."""
        return None

    @abstractmethod
    def column(self, j: int) -> Any:
        """Return a column as a pyarrow chunked array."""

    def release(self, j: int) -> Any:
        """Return a column that will not be asked for again."""
        return self.column(j)

    def texts(self, j: int) -> npt.NDArray[np.str_]:
        """Return a column as text; an absent value is empty."""
        pa = load_pyarrow()
        values = self.column(j)
        try:
            texts = as_strings(values).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SourceError(
                f"column {self.names[j]!r} holds {values.type}: no text, so it can be neither label nor id."
            ) from error
        return np.array([t or "" for t in texts], dtype=np.str_)

    def where(self, row: int) -> str:
        """Say where a row is, in words of the user's."""
        return f"row {row}, counted from 0"


def as_strings(values: Any) -> Any:
    """A pyarrow column as text; categories as the values they stand for."""
    pa = load_pyarrow()
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    return plain.cast(pa.string())


class TextRecords(Records):
    """A text table."""

    def __init__(self, path: Path, *, delimiter: str | None, decimal: str | None, header: bool | None) -> None:
        if delimiter is None and path.name.lower().removesuffix(".gz").endswith(".tsv"):
            delimiter = "\t"
        self.path, self.dialect = path, sniff(path, delimiter=delimiter, decimal=decimal, header=header)
        self.decimal, self.doubtful = self.dialect.decimal, self.dialect.doubtful
        self.names, renamed = distinct(list(self.dialect.names))
        self.named = self.dialect.header
        self.row_names = 0 if self.dialect.row_names else None
        self.notes = [self.dialect.describe(), *renamed]

    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read columns; the target apart from them, so that they are one array."""
        wanted = columns if target is None or target in columns else [*columns, target]
        self._read: TextColumns = read_columns(self.path, self.dialect, wanted)

    def type(self, j: int) -> Any:
        """Return double for all that is numbers."""
        return self._read.others[j][0].type if j in self._read.others else load_pyarrow().float64()

    def array(self, columns: list[int]) -> npt.NDArray[np.float64] | None:
        """Return the numbers where they were read in this order; the target, read last, is left where it is."""
        values = self._read.values[: self._read.rows]
        return values[:, : len(columns)] if columns == self._read.numeric[: len(columns)] else None

    def column(self, j: int) -> Any:
        """Return a column that was read."""
        pa = load_pyarrow()
        if j in self._read.others:
            return pa.chunked_array(self._read.others[j])
        return pa.chunked_array([pa.array(self._read.values[: self._read.rows, self._read.numeric.index(j)])])

    def texts(self, j: int) -> npt.NDArray[np.str_]:
        """Return a column as it is written, 'NA' and leading zeros included."""
        return np.array(read_verbatim(self.path, self.dialect, j), dtype=np.str_)

    def where(self, row: int) -> str:
        """Say in which line a row begins."""
        return f"line {line_of_row(self.path, self.dialect, row)}"


class ArrowRecords(Records):
    """A table in Feather (Arrow IPC) or a Parquet file, loaded as far as it is needed."""

    def __init__(self, schema: Any) -> None:
        self.schema, self.names, self.notes = schema, list(schema.names), []
        twice = [repr(name) for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise SourceError(f"more than one column is called {', '.join(twice)}. Rename them.")
        self.row_names = next((j for j, name in enumerate(self.names) if INDEX.fullmatch(name)), None)
        self._columns: dict[int, Any] = {}

    def type(self, j: int) -> Any:
        """Return what the file says."""
        return self.schema.field(j).type

    @abstractmethod
    def table(self, names: list[str]) -> Any:
        """Read columns by name."""

    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read nothing yet: the file says itself what its columns are, and may be larger than memory."""

    def load(self, columns: list[int]) -> None:
        """Read columns together."""
        table = self.table([self.names[j] for j in columns])
        self._columns |= {j: table.column(self.names[j]) for j in columns}

    def column(self, j: int) -> Any:
        """Return a column, loaded before or read now."""
        return self._columns[j] if j in self._columns else self.table([self.names[j]]).column(0)

    def release(self, j: int) -> Any:
        """Return a column and forget it."""
        return self._columns.pop(j) if j in self._columns else self.column(j)


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
            pa.parquet.ParquetFile(str(self.path), memory_map=False, pre_buffer=False) as file,
        ):
            yield file

    def table(self, names: list[str]) -> Any:
        """Read columns by name."""
        with self._file() as file:
            return file.read(columns=names)

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


def open_records(path: Path, suffix: str, **options: Any) -> Records:
    """Open a table by how its name ends; ``options`` say how a text is written and are for text alone."""
    if suffix in TEXT:
        return TextRecords(path, **options)
    refuse_text_options(suffix, options)
    return FeatherRecords(path) if suffix in ARROW else ParquetRecords(path)


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
    like: Sequence[str] | None = None

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
CATEGORICAL = ("refuse", "onehot", "drop")
NUMERAL = r"^\s*[+-]?(\d+(MARK\d*)?|MARK\d+)([eE][+-]?\d+)?\s*$"
WORDS = {"text": "text", "date": "dates or times", "nested": "lists or bytes"}


@dataclass(frozen=True)
class Feature:
    """A column of the table and the columns of numbers it becomes: itself, or one for each of its levels."""

    column: int
    name: str
    levels: tuple[str, ...] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns of numbers."""
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels]


def kind_of(kind: Any) -> str:
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


def levels_of(values: Any) -> list[str]:
    """Return the distinct texts of a column, sorted."""
    return sorted(as_strings(values).unique().drop_null().to_pylist())


def choose_features(records: Records, columns: list[int], categorical: str) -> tuple[list[Feature], list[str]]:
    """Decide what becomes of each column, and say so; columns without numbers are refused by name."""
    if categorical not in CATEGORICAL:
        raise SourceError(Argument("categorical", categorical), f": give one of {', '.join(CATEGORICAL)}.")
    kinds = {j: kind_of(records.type(j)) for j in columns}
    others = {j: kind for j, kind in kinds.items() if kind != "number"}
    # numbers but for a few cells: leaving the column out or making classes of it would be wrong
    for j in (j for j, kind in others.items() if kind == "text"):
        values, is_number = _find_numerals(records, j)
        numbers, cells = load_pyarrow().compute.sum(is_number).as_py() or 0, len(values) - values.null_count
        if cells > numbers >= 0.9 * cells > 0:
            row = load_pyarrow().compute.index(is_number, False).as_py()
            raise SourceError(
                f"column {records.names[j]!r}: {numbers} of {cells} cells are numbers, and {str(values[row])!r} "
                f"({records.where(row)}) is not. Mend or empty the cell, or drop the column."
            )
    if categorical == "refuse" and others:
        _refuse_text(records, others)
    if categorical == "drop":
        notes = [f"left out, being no numbers: {', '.join(records.names[j] for j in others)}"] if others else []
        return [Feature(j, records.names[j]) for j in columns if j not in others], notes
    features = [Feature(j, records.names[j], _levels(records, j, others[j]) if j in others else None) for j in columns]
    return features, [f"column {f.name}: one-hot of {len(f.levels)}" for f in features if f.levels is not None]


def _find_numerals(records: Records, j: int) -> tuple[Any, Any]:
    """Return the texts of a column, and which of them are numbers."""
    values = as_strings(records.column(j))
    pattern = NUMERAL.replace("MARK", "[.]" if records.decimal == "." else ",")
    return values, load_pyarrow().compute.match_substring_regex(values, pattern)


def _refuse_text(records: Records, kinds: dict[int, str]) -> None:
    """Raise an error that lists columns without numbers, with a cell of each that is none."""
    shown = []
    for j, kind in list(kinds.items())[:8]:
        cell = ""
        if kind == "text":
            values, is_number = _find_numerals(records, j)
            row = load_pyarrow().compute.index(is_number, False).as_py()
            cell = f", {str(values[row])[:40]!r} in {records.where(row)}" if row >= 0 else ""
        shown.append(f"{records.names[j]} ({WORDS[kind]}{cell})")
    more = f" and {len(kinds) - 8} more" if len(kinds) > 8 else ""
    parts: list[str | Argument] = [f"Columns without numbers: {', '.join(shown)}{more}. "]
    if records.doubtful:
        parts += ["Numbers like 1,234 may mean 1.234 or 1234: say ", Argument("decimal", ","), " or write 1234. "]
    encode = "text" in kinds.values()
    parts += ["Encode text with ", Argument("categorical", "onehot"), ", leave"] if encode else ["Leave"]
    parts += [" such columns out with ", Argument("categorical", "drop"), ", or give one as ", Argument("label"), ", "]
    raise SourceError(*parts, Argument("id"), " or in ", Argument("drop"), ".")


def _levels(records: Records, j: int, kind: str) -> tuple[str, ...]:
    name = records.names[j]
    if kind != "text":
        no_code = f"holds {WORDS[kind]}, which have no one-hot code. Drop it, or make it a number."
        raise SourceError(f"column {name!r} {no_code}")
    values = records.column(j)
    levels = levels_of(values)
    if len(levels) > MOST_LEVELS or (len(levels) > ID_LEVELS and 2 * len(levels) > len(values)):
        text = f"column {name!r} has {len(levels)} different texts in {len(values)} rows: too many for a one-hot code."
        raise SourceError(text, " Give it as ", Argument("id"), " or ", Argument("label"), ", or drop it.")
    return tuple(levels)


def columns_like(names: Sequence[str], like: Sequence[str]) -> list[tuple[int, str | None]]:
    """Return for each wanted column of numbers the column of the file, and the level that it is one for.

    Examples
    --------
    >>> columns_like(["sex", "age"], ["age", "sex=female"])
    [(1, None), (0, 'female')]
    """
    places = {name: j for j, name in enumerate(names)}
    found: list[tuple[int, str | None]] = []
    absent = []
    for want in like:
        cuts = [at for at, mark in enumerate(want) if mark == "=" and want[:at] in places]
        if want in places:
            found.append((places[want], None))
        elif cuts:
            found.append((places[want[: cuts[-1]]], want[cuts[-1] + 1 :]))
        else:
            absent.append(want)
    if absent:
        more = ", …" if len(absent) > 8 else ""
        raise SourceError(f"{len(absent)} of {len(like)} columns are not in the file: {', '.join(absent[:8])}{more}.")
    return found


def match_features(records: Records, wanted: list[tuple[int, str | None]]) -> list[Feature]:
    """Return the features that give wanted columns of numbers; a level they do not know is refused."""
    features: list[Feature] = []
    for j, level in wanted:
        levels = () if level is None else (level,)
        if level is not None and features and features[-1].column == j and features[-1].levels is not None:
            levels = (*features.pop().levels, level)  # type: ignore[misc]
        features.append(Feature(j, records.names[j], levels or None))
    text = [f.name for f in features if f.levels is None and kind_of(records.type(f.column)) != "number"]
    if text:
        raise SourceError(f"Columns without numbers, which were numbers in the fit: {', '.join(text)}.")
    for feature in features:
        if feature.levels is None:
            continue
        new = [level for level in levels_of(records.column(feature.column)) if level not in feature.levels]
        if new:
            raise SourceError(
                f"column {feature.name!r}: {', '.join(map(repr, new[:5]))} was not among the {len(feature.levels)} "
                "levels of the fit. Leave out such rows, or fit again."
            )
    return features


def numbers_of(values: Any, feature: Feature, start: int = 0) -> npt.NDArray[Any]:
    """Return the numbers of a pyarrow array or chunked array: shape (n,), or (n, levels); NaN where one is absent.

    ``start`` is the number of its first row, for an error about one that float64 would round.
    """
    pa = load_pyarrow()
    if feature.levels is None:
        kind = pa.float32() if is_single(values.type) else pa.float64()
        numbers = np.asarray(values.cast(kind, safe=False).to_numpy(zero_copy_only=False))
        exact = pa.types.is_floating(values.type) or pa.types.is_boolean(values.type) or len(numbers) == 0
        if not exact and max(np.fmax.reduce(numbers), -np.fmin.reduce(numbers)) > WHOLE:
            refuse_rounding(np.array(values.to_pylist(), dtype=object), f"column {feature.name!r}", start)
        return numbers
    codes = pa.compute.index_in(as_strings(values), value_set=pa.array(feature.levels, pa.string()))
    at: npt.NDArray[np.float64] = codes.cast(pa.float64()).to_numpy(zero_copy_only=False)
    out: npt.NDArray[np.float64] = (at[:, None] == np.arange(len(feature.levels))).astype(np.float64)
    out[np.isnan(at)] = np.nan
    return out


def is_single(kind: Any) -> bool:
    """Whether a pyarrow type is float32 or float16."""
    types = load_pyarrow().types
    return bool(types.is_float32(kind) or types.is_float16(kind))


def as_source(records: Records, features: list[Feature]) -> Source:
    """Return the numbers as a source: in memory, unless they are a Parquet file beyond the memory budget."""
    single = all(is_single(records.type(f.column)) and f.levels is None for f in features)
    dtype = np.dtype(np.float32 if single else np.float64)
    names, _ = distinct([name for feature in features for name in feature.names])
    if isinstance(records, ParquetRecords) and records.rows * len(names) * dtype.itemsize > memory_budget():
        return RecordsSource(records, features, names, dtype)
    ready = records.array([f.column for f in features]) if len(names) == len(features) else None
    if ready is not None:
        return DenseSource(ready, names)
    # one array is filled column by column, and each column let go of: they are never all there twice
    if isinstance(records, ArrowRecords):
        records.load(list(dict.fromkeys(f.column for f in features)))
    out: npt.NDArray[Any] | None = None
    at = 0
    for feature in features:
        values = records.release(feature.column)
        if out is None:
            out = np.empty((len(values), len(names)), dtype, order="F")
        width = len(feature.names)
        row = 0
        for chunk in values.chunks:
            part = numbers_of(chunk, feature, row)
            out[row : row + len(chunk), at : at + width] = part.reshape(len(chunk), width)
            row += len(chunk)
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
                    width = len(feature.names)
                    numbers = numbers_of(values, feature, start + filled).reshape(len(part), width)
                    block[filled : filled + len(part), at : at + width] = numbers
                    at += width
                filled, taken = filled + len(part), taken + len(part)
                if filled == len(block) or start + filled == last:
                    yield Block(start, start + filled, block[:filled])
                    start, filled = start + filled, 0


def open_tabular(path: Path) -> Source:
    r"""Read the columns of a CSV, TSV, Parquet or Feather file, which must be numbers.

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
    with naming(path):
        records = open_records(path, suffix_of(path), delimiter=None, decimal=None, header=None)
        columns = ColumnChoice().roles(records.names, row_names=records.row_names).features
        records.prepare(columns)
        features, _ = choose_features(records, columns, "refuse")
        return as_source(records, features)
