"""Sources from tables with named columns: text, Parquet and Feather files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import DenseSource, SparseSource
from gramian.sources.base import Block, Source, memory_budget
from gramian.sources.extras import load_pyarrow
from gramian.sources.kinds import ARROW, TEXT, suffix_of
from gramian.sources.records import ArrowRecords, ParquetRecords, Records, distinct, open_records
from gramian.sources.views import MappedSource, selected, stacked

__all__ = [
    "MISSING_RULES",
    "TABULAR",
    "Feature",
    "Gaps",
    "Name",
    "RecordsSource",
    "Roles",
    "as_source",
    "assign",
    "columns_like",
    "find",
    "kind_of",
    "levels_of",
    "match_features",
    "numbers_of",
    "open_tabular",
    "plan",
    "settle",
    "several",
    "survey",
    "telling",
]

Name = str | int


@dataclass(frozen=True)
class Roles:
    """Columns, counted from 0: those that are fitted, in order, and those that are not."""

    features: list[int]
    target: int | None = None
    label: int | None = None
    id: int | None = None


def several(names: Name | Sequence[Name] | None) -> list[Name]:
    """Return one name, or several, as a list."""
    if names is None:
        return []
    return [names] if isinstance(names, str | int) else list(names)


def find(names: Sequence[str], wanted: Name, role: str, *, named: bool = True) -> int:
    """Return the number, from 0, of a column given by name, or by its number from 1.

    Digits in a text are a name where the columns have names, and a number where they have none.

    Examples
    --------
    >>> find(["age", "height"], "height", "target"), find(["age", "height"], 1, "target")
    (1, 0)
    """
    if isinstance(wanted, str) and wanted in names:
        return list(names).index(wanted)
    if isinstance(wanted, int) or (not named and wanted.isdigit() and wanted.isascii()):
        j = int(wanted)
        if 1 <= j <= len(names):
            return j - 1
        raise ValueError(f"{role}: no column {wanted}; there are {len(names)}, counted from 1.")
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(wanted.casefold(), list(folded), n=3, cutoff=0.5)
    shown = ", ".join(folded[n] for n in near) if near else ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    raise ValueError(f"{role}: no column {wanted!r}; {'near it: ' if near else 'the columns are '}{shown}.")


def assign(
    names: Sequence[str],
    *,
    columns: Name | Sequence[Name] | None,
    drop: Name | Sequence[Name],
    target: Name | None,
    label: Name | None,
    id: Name | None,
    row_names: int | None = None,
    named: bool = True,
) -> Roles:
    """Give each column its role; one that has several is refused.

    ``row_names`` is a column that names the rows in the file itself: it is the id unless another is named.
    """
    roles = {"target": target, "label": label, "id": id}
    found = {role: None if name is None else find(names, name, role, named=named) for role, name in roles.items()}
    asked = [find(names, name, "columns", named=named) for name in several(columns)]
    dropped = {find(names, name, "drop", named=named) for name in several(drop)}
    apart = {j: role for role, j in found.items() if j is not None}
    for j in sorted((set(asked) | dropped) & set(apart)):
        where = "columns" if j in asked else "drop"
        raise ValueError(f"column {names[j]!r} is the {apart[j]} and in {where}; name it once.")
    if set(asked) & dropped:
        raise ValueError(f"column {names[min(set(asked) & dropped)]!r} is in columns and in drop; name it once.")
    aside = {row_names} if columns is None else set()
    if found["id"] is None and row_names not in asked and row_names not in apart and row_names not in dropped:
        found["id"] = row_names
    order = list(dict.fromkeys(asked)) if columns is not None else list(range(len(names)))
    features = [j for j in order if j not in dropped and j not in apart and j not in aside]
    if not features:
        raise ValueError("no column is left to fit: columns=, drop=, target=, label= and id= take them all.")
    return Roles(features, **found)


MOST_LEVELS = 1000
ID_LEVELS = 20  # a text column with more values than this, most of them seen once, names rows rather than classes
CATEGORICAL = ("refuse", "onehot", "drop")
NUMERAL = r"^\s*[+-]?(\d+(MARK\d*)?|MARK\d+)([eE][+-]?\d+)?\s*$"


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


def kind_of(pa: Any, kind: Any) -> str:
    """Return ``"number"``, ``"text"``, ``"date"`` or ``"nested"`` for a pyarrow type.

    Truth values are numbers, 0 and 1. A column of categories is text whatever its categories are made of.
    """
    t = pa.types
    if t.is_boolean(kind) or t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind):
        return "number"
    if t.is_temporal(kind):
        return "date"
    is_text = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind) or t.is_dictionary(kind)
    return "text" if is_text else "nested"


def plan(records: Records, columns: list[int], categorical: str) -> tuple[list[Feature], list[str]]:
    """Decide what becomes of each column, and say so; columns without numbers are refused by name."""
    pa = load_pyarrow()
    if categorical not in CATEGORICAL:
        raise ValueError(f"categorical={categorical!r}: give one of {', '.join(CATEGORICAL)}.")
    kinds = {j: kind_of(pa, records.type(j)) for j in columns}
    others = [j for j in columns if kinds[j] != "number"]
    is_other = set(others)
    for j in others:
        if kinds[j] == "text":
            _refuse_misspelt(pa, records, j)
    if categorical == "refuse" and others:
        raise ValueError(_without_numbers(records, others, kinds))
    if categorical == "drop":
        notes = [f"left out, being no numbers: {', '.join(records.names[j] for j in others)}"] if others else []
        return [Feature(j, records.names[j]) for j in columns if j not in is_other], notes
    features = [Feature(j, records.names[j], _levels(records, j, kinds[j]) if j in is_other else None) for j in columns]
    return features, [f"column {f.name}: one-hot of {len(f.levels)}" for f in features if f.levels is not None]


def _refuse_misspelt(pa: Any, records: Records, j: int) -> None:
    """Refuse a column that is numbers but for a few cells: leaving it out or making classes of it would be wrong."""
    values, is_number = _numerals(pa, records, j)
    numbers, cells = pa.compute.sum(is_number).as_py() or 0, len(values) - values.null_count
    if cells > numbers >= 0.9 * cells > 0:
        row = pa.compute.index(is_number, False).as_py()
        raise ValueError(
            f"column {records.names[j]!r}: {numbers} of {cells} cells are numbers, and {str(values[row])!r} "
            f"({records.where(row)}) is not. Mend or empty the cell, or drop the column."
        )


def _numerals(pa: Any, records: Records, j: int) -> tuple[Any, Any]:
    """Return the texts of a column, and which of them are numbers."""
    values = _plain(pa, records.column(j)).cast(pa.string())
    pattern = NUMERAL.replace("MARK", "[.]" if records.decimal == "." else ",")
    return values, pa.compute.match_substring_regex(values, pattern)


def _without_numbers(records: Records, columns: list[int], kinds: dict[int, str]) -> str:
    listed = ", ".join(_example(records, j, kinds[j]) for j in columns[:8])
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    comma = " Numbers like 1,234 may mean 1.234 or 1234: say decimal=',' or write 1234." if records.doubtful else ""
    encode = "Encode text with categorical='onehot', leave" if "text" in (kinds[j] for j in columns) else "Leave"
    return (
        f"Columns without numbers: {listed}{more}.{comma} {encode} such columns out with categorical='drop', or give "
        "one as label=, id= or in drop=."
    )


def _example(records: Records, j: int, kind: str) -> str:
    """Name a column and show a cell of it that is no number."""
    pa = load_pyarrow()
    word = {"text": "text", "date": "dates or times", "nested": "lists or bytes"}[kind]
    values, shown = records.column(j), -1
    if kind == "text":
        values, is_number = _numerals(pa, records, j)
        shown = pa.compute.index(is_number, False).as_py()
    cell = f", {str(values[shown])[:40]!r} in {records.where(shown)}" if shown >= 0 else ""
    return f"{records.names[j]} ({word}{cell})"


def _plain(pa: Any, values: Any) -> Any:
    """Return categories as the values they stand for."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def levels_of(values: Any) -> list[str]:
    """Return the distinct texts of a column, sorted."""
    pa = load_pyarrow()
    return sorted(_plain(pa, values).cast(pa.string()).unique().drop_null().to_pylist())


def _levels(records: Records, j: int, kind: str) -> tuple[str, ...]:
    name = records.names[j]
    if kind != "text":
        word = "dates or times" if kind == "date" else "lists or bytes"
        raise ValueError(f"column {name!r} holds {word}, which have no one-hot code. Drop it, or make it a number.")
    values = records.column(j)
    levels = levels_of(values)
    if len(levels) > MOST_LEVELS or (len(levels) > ID_LEVELS and 2 * len(levels) > len(values)):
        raise ValueError(
            f"column {name!r} has {len(levels)} different texts in {len(values)} rows: too many for a one-hot code. "
            "Give it as id= or label=, or drop it."
        )
    return tuple(levels)


def numbers_of(values: Any, feature: Feature) -> npt.NDArray[Any]:
    """Return the numbers of a pyarrow array or chunked array: shape (n,), or (n, levels); NaN where one is absent."""
    pa = load_pyarrow()
    if feature.levels is None:
        kind = pa.float32() if _single(pa, values.type) else pa.float64()
        return np.asarray(values.cast(kind, safe=False).to_numpy(zero_copy_only=False))
    codes = pa.compute.index_in(_plain(pa, values).cast(pa.string()), value_set=pa.array(feature.levels, pa.string()))
    at: npt.NDArray[np.float64] = codes.cast(pa.float64()).to_numpy(zero_copy_only=False)
    out: npt.NDArray[np.float64] = (at[:, None] == np.arange(len(feature.levels))).astype(np.float64)
    out[np.isnan(at)] = np.nan
    return out


def _single(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_float32(kind) or pa.types.is_float16(kind))


def as_source(records: Records, features: list[Feature]) -> Source:
    """Return the numbers as a source: in memory, unless they are a Parquet file beyond the memory budget."""
    pa = load_pyarrow()
    single = all(_single(pa, records.type(f.column)) and f.levels is None for f in features)
    dtype = np.dtype(np.float32 if single else np.float64)
    names, _ = distinct([name for feature in features for name in feature.names])
    if isinstance(records, ParquetRecords) and records.rows * len(names) * dtype.itemsize > memory_budget():
        return RecordsSource(records, features, names, dtype)
    ready = records.array([f.column for f in features]) if len(names) == len(features) else None
    return DenseSource(_gathered(records, features, len(names), dtype) if ready is None else ready, names)


def _gathered(records: Records, features: list[Feature], p: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Fill one array column by column, and let go of each column once it is copied: they are never all there twice."""
    if isinstance(records, ArrowRecords):
        records.load(list(dict.fromkeys(f.column for f in features)))
    out: npt.NDArray[Any] | None = None
    at = 0
    for feature in features:
        values = records.release(feature.column)
        if out is None:
            out = np.empty((len(values), p), dtype, order="F")
        width = len(feature.names)
        row = 0
        for chunk in values.chunks:
            part = numbers_of(chunk, feature)
            out[row : row + len(chunk), at : at + width] = part.reshape(len(chunk), width)
            row += len(chunk)
        at += width
    assert out is not None
    return out


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
        if rows is None:
            rows = max(1, min(2**24, memory_budget() // 8) // max(1, self.shape[1] * self.dtype.itemsize))
        block = np.empty((min(rows, self.shape[0]), self.shape[1]), self.dtype)
        start, filled = 0, 0
        for batch in self.records.batches([f.column for f in self.features], rows):
            taken = 0
            while taken < len(batch):
                part = batch.slice(taken, len(block) - filled)
                self._fill(block[filled : filled + len(part)], part)
                filled, taken = filled + len(part), taken + len(part)
                if filled == len(block) or start + filled == self.shape[0]:
                    yield Block(start, start + filled, block[:filled])
                    start, filled = start + filled, 0

    def _fill(self, out: npt.NDArray[Any], batch: Any) -> None:
        at = 0
        for feature, values in zip(self.features, batch.columns, strict=True):
            width = len(feature.names)
            out[:, at : at + width] = numbers_of(values, feature).reshape(len(out), width)
            at += width


MISSING_RULES = ("keep", "refuse", "drop", "mean")


@dataclass(frozen=True)
class Gaps:
    """Missing cells: how many in each column, the rows that have none, and the sums of what is there."""

    counts: npt.NDArray[np.int64]
    complete: npt.NDArray[np.bool_]
    sums: npt.NDArray[np.float64]

    def describe(self, names: list[str]) -> str:
        """Return the counts in words: the columns with most first."""
        order = [j for j in np.argsort(-self.counts, kind="stable") if self.counts[j]]
        cells, columns = int(self.counts.sum()), len(order)
        shown = ", ".join(f"{names[j]} {self.counts[j]}" for j in order[:5]) + (", …" if columns > 5 else "")
        return f"{cells} {_plural(cells, 'cell')} missing in {columns} {_plural(columns, 'column')} ({shown})"


def survey(source: Source, names: list[str], where: Callable[[int], str]) -> Gaps:
    """Count the missing cells in one pass; an infinity is refused by row and column."""
    n, p = source.shape
    gaps = Gaps(np.zeros(p, np.int64), np.ones(n, np.bool_), np.zeros(p))
    if np.dtype(source.dtype).kind == "f":
        for block in source.blocks():
            _look(block, gaps, names, where)
    return gaps


def _look(block: Block, gaps: Gaps, names: list[str], where: Callable[[int], str]) -> None:
    cells = block.values.data if hasattr(block.values, "indptr") else block.values
    with np.errstate(all="ignore"):
        sums = np.asarray(block.values.sum(axis=0, dtype=np.float64)).ravel()
        if np.isfinite(sums).all():  # one look at each number: neither NaN nor an infinity leaves a sum finite
            gaps.sums[:] += sums
            return
        infinite = np.isinf(cells)
        if infinite.any():
            row, column, value = _first(block.values, infinite)
            raise ValueError(
                f"column {names[column]!r} is {value} ({where(block.start + row)}). Empty the cell, or leave out "
                "the row."
            )
        rows, columns = _positions(block.values, np.isnan(cells))
        gaps.counts[:] += np.bincount(columns, minlength=len(names))
        gaps.complete[block.start + rows] = False
        gaps.sums[:] += _observed_sums(block.values)


def _positions(values: Any, mask: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return rows and columns of marked cells; of the stored ones in a sparse matrix."""
    if not hasattr(values, "indptr"):
        rows, columns = np.nonzero(mask)
        return rows, columns
    (at,) = np.nonzero(mask)
    return np.searchsorted(values.indptr, at, side="right") - 1, values.indices[at]


def _first(values: Any, mask: npt.NDArray[np.bool_]) -> tuple[int, int, float]:
    rows, columns = _positions(values, mask)
    i, j = int(rows[0]), int(columns[0])
    return i, j, float(values[i, j])


def _observed_sums(values: Any) -> npt.NDArray[np.float64]:
    if not hasattr(values, "indptr"):
        return np.asarray(np.nansum(values, axis=0, dtype=np.float64))
    observed = np.nan_to_num(values.data, nan=0.0)
    return np.bincount(values.indices, observed, minlength=values.shape[1]).astype(np.float64)


def settle(source: Source, rule: str, names: list[str], where: Callable[[int], str]) -> tuple[Source, Gaps, list[str]]:
    """Do with missing cells what the rule says; return the source, what was found, and what was done in words."""
    gaps = survey(source, names, where)
    if not gaps.counts.any():
        return source, gaps, []
    told = gaps.describe(names)
    if rule == "refuse":
        raise ValueError(
            f"{told}. Leave out their rows with missing='drop', fill them in with missing='mean', or keep them with "
            "missing='keep' for methods that take them (PCA does)."
        )
    empty = [names[j] for j in np.flatnonzero(gaps.counts == source.shape[0])]
    if empty and rule != "keep":
        raise ValueError(f"nothing is observed in {', '.join(map(repr, empty[:5]))}: every cell is missing. Drop it.")
    if rule == "mean":
        return _filled(source, gaps), gaps, [f"{told}, filled in by column means"]
    if rule == "drop":
        left = int(np.count_nonzero(gaps.complete))
        if not left:
            raise ValueError(f"{told}: no row is complete. Use missing='mean' or 'keep', or drop columns.")
        out = source.shape[0] - left
        return selected(source, None, gaps.complete), gaps, [f"{told}: {out} {_plural(out, 'row')} left out"]
    return source, gaps, [told]


def _filled(source: Source, gaps: Gaps) -> Source:
    """Put the mean of its column in each missing cell."""
    means = gaps.sums / (source.shape[0] - gaps.counts)
    if isinstance(source, DenseSource):
        return DenseSource(_with_means(source.values, means), source.feature_names)
    if isinstance(source, SparseSource):
        return SparseSource(_with_means(source.values, means), source.feature_names)
    return FilledSource(source, lambda block: _with_means(block.values, means))


class FilledSource(MappedSource):
    """Blocks of another source with their missing cells filled in; sparse blocks stay sparse."""

    def __init__(self, source: Source, change: Callable[[Block], Any]) -> None:
        super().__init__(source, change)
        self.sparse, self.dtype = source.sparse, source.dtype

    @property
    def values(self) -> Any:
        """All rows, read now: for methods that compare every row with every other."""
        return stacked(self)


def _with_means(values: Any, means: npt.NDArray[np.float64]) -> Any:
    if hasattr(values, "indptr"):
        out = values.copy()
        gaps = np.isnan(out.data)
        out.data[gaps] = means[out.indices[gaps]]
        return out
    return np.where(np.isnan(values), means.astype(values.dtype), values)


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"


TABULAR = (*TEXT, ".parquet", *ARROW)


@contextmanager
def telling(path: Path | str) -> Iterator[None]:
    """Let errors about a file begin with its name."""
    try:
        yield
    except UnicodeError as error:
        raise ValueError(f"{path}: {error}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: damaged gzip file: {error}") from error
    except ValueError as error:
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path}: {error}") from error


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
    with telling(path):
        records = open_records(path, suffix_of(path), delimiter=None, decimal=None, header=None)
        names, row_names = records.names, records.row_names
        roles = assign(names, columns=None, drop=(), target=None, label=None, id=None, row_names=row_names)
        records.prepare(roles.features)
        features, _ = plan(records, roles.features, "refuse")
        return as_source(records, features)


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
        raise ValueError(f"{len(absent)} of {len(like)} columns are not in the file: {', '.join(absent[:8])}{more}.")
    return found


def match_features(records: Records, wanted: list[tuple[int, str | None]]) -> list[Feature]:
    """Return the features that give wanted columns of numbers; a level they do not know is refused."""
    pa = load_pyarrow()
    features: list[Feature] = []
    for j, level in wanted:
        if level is None:
            features.append(Feature(j, records.names[j]))
        elif features and features[-1].column == j and features[-1].levels is not None:
            features[-1] = Feature(j, records.names[j], (*features[-1].levels, level))
        else:
            features.append(Feature(j, records.names[j], (level,)))
    plain = [f.column for f in features if f.levels is None]
    text = [records.names[j] for j in plain if kind_of(pa, records.type(j)) != "number"]
    if text:
        raise ValueError(f"Columns without numbers, which were numbers in the fit: {', '.join(text)}.")
    for feature in features:
        _refuse_new_levels(records, feature)
    return features


def _refuse_new_levels(records: Records, feature: Feature) -> None:
    if feature.levels is None:
        return
    new = [level for level in levels_of(records.column(feature.column)) if level not in feature.levels]
    if new:
        raise ValueError(
            f"column {feature.name!r}: {', '.join(map(repr, new[:5]))} was not among the {len(feature.levels)} levels "
            "of the fit. Leave out such rows, or fit again."
        )
