"""Columns of tables: which are fitted, what becomes of text, and the numbers of them as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import WHOLE, DenseSource, refuse_rounding
from gramian.sources.base import Block, Source, memory_budget, naming, rows_at_a_time
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import load_pyarrow, suffix_of
from gramian.sources.records import ArrowRecords, ParquetRecords, Records, as_strings, distinct, open_records

Name = str | int


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
        kind = pa.float32() if _is_single(values.type) else pa.float64()
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


def _is_single(kind: Any) -> bool:
    types = load_pyarrow().types
    return bool(types.is_float32(kind) or types.is_float16(kind))


def as_source(records: Records, features: list[Feature]) -> Source:
    """Return the numbers as a source: in memory, unless they are a Parquet file beyond the memory budget."""
    single = all(_is_single(records.type(f.column)) and f.levels is None for f in features)
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

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks of rows; each is decoded when it is asked for."""
        rows = rows or rows_at_a_time(self.shape[1] * self.dtype.itemsize)
        block = np.empty((min(rows, self.shape[0]), self.shape[1]), self.dtype)
        start, filled = 0, 0
        for batch in self.records.batches([f.column for f in self.features], rows):
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
                if filled == len(block) or start + filled == self.shape[0]:
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
