"""From columns of several kinds to columns of numbers: what becomes of each, and the numbers themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources._extras import load_pyarrow
from gramian.sources._records import ArrowRecords, ParquetRecords, Records, distinct
from gramian.sources.arrays import DenseSource
from gramian.sources.base import Block, Source, memory_budget

__all__ = ["Feature", "RecordsSource", "as_source", "kind_of", "levels_of", "numbers_of", "plan"]

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
