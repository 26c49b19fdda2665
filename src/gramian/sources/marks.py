"""What marks missing cells in a table of its own way, such as -999: what is given, and what looks like it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import DenseSource, map_source
from gramian.sources.base import Block, Source
from gramian.sources.errors import Argument, SourceError

Cells = npt.NDArray[np.object_]  # texts, and None where one is missing

MOST_SEARCHED = 20_000_000  # cells that are looked through for suspicious numbers
TOLD = 4  # marks that are told of, and columns of each
HUGE = 1e20  # no measurement is as large: fill values are (1e20 and 9.97e36 in climate files)
SHORT_FAR = 3.0  # ranges of the others that 99 must lie away by, since people may be as old
LIMITS = {-32768.0, 32767.0, 65535.0, -2147483648.0, 2147483647.0}  # of the integers that instruments write


@dataclass(frozen=True)
class MissingMarks:
    """What stands for a missing cell, in every column or in some.

    Attributes
    ----------
    everywhere : tuple of str
        In all columns.
    columns : dict of str to tuple of str
        In the columns of these names.
    """

    everywhere: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> MissingMarks:
        """Return the marks that an argument says: a number or text, several, or a mapping from columns to these.

        Examples
        --------
        >>> from gramian.sources.marks import MissingMarks
        >>> MissingMarks.of(-999.0).everywhere, MissingMarks.of({"age": [98, 99]}).columns
        (('-999',), {'age': ('98', '99')})
        """

        def spell(value: Any) -> str:
            if isinstance(value, bool) or not isinstance(value, (str, int, float, np.integer, np.floating)):
                raise SourceError(
                    Argument("na_values", given), ": give numbers or texts, or a dict of these by column."
                )
            return value.strip() if isinstance(value, str) else str(value).removesuffix(".0")

        def spell_all(values: Any) -> tuple[str, ...]:
            several = isinstance(values, Iterable) and not isinstance(values, str)
            return tuple(map(spell, values)) if several else (spell(values),)

        if given is None:
            return cls()
        if isinstance(given, MissingMarks):
            return given
        if isinstance(given, Mapping):
            return cls((), {str(name): spell_all(values) for name, values in given.items()})
        return cls(spell_all(given))

    def __bool__(self) -> bool:
        return bool(self.everywhere or self.columns)

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a column that is not there."""
        there = list(names)
        absent = [name for name in self.columns if name not in there]
        if absent:
            raise SourceError(
                f"no column {absent[0]!r} for ", Argument("na_values"), f"; the columns are {', '.join(there[:10])}."
            )

    def texts(self, name: str) -> frozenset[str]:
        """The marks of a column, as they are written."""
        return frozenset((*self.everywhere, *self.columns.get(name, ())))

    def numbers(self, name: str) -> list[float]:
        """Those that are numbers."""
        return [number for text in self.texts(name) if math.isfinite(number := _as_number(text))]

    def blank(self, cells: Cells, name: str) -> Cells:
        """Return the cells of a column of text with None for the marks; the cells themselves where there are none."""
        texts = self.texts(name)
        hit = np.array([cell is not None and cell.strip() in texts for cell in cells], dtype=bool)
        if not hit.any():
            return cells
        out = cells.copy()
        out[hit] = None
        return out

    def blank_numbers(self, source: Source, names: list[str]) -> Source:
        """Return the source with NaN for the marks."""
        found = [(j, np.array(numbers)) for j, name in enumerate(names) if (numbers := self.numbers(name))]
        if not found:
            return source
        floats = source.dtype if np.dtype(source.dtype).kind == "f" else np.dtype(np.float64)
        every = self.numbers("") if not self.columns else None

        def change(block: Block) -> Any:
            if source.sparse:
                out = block.values.tocsc().astype(floats)
                for j, numbers in found:
                    part = out.data[out.indptr[j] : out.indptr[j + 1]]
                    part[np.isin(part, numbers.astype(floats))] = np.nan
                return out.tocsr() if floats == source.dtype else out.toarray()
            out = np.array(block.values, dtype=floats)
            if every is not None:
                out[np.isin(out, np.array(every, dtype=floats))] = np.nan
                return out
            for j, numbers in found:
                out[np.isin(out[:, j], numbers.astype(floats)), j] = np.nan
            return out

        return map_source(source, change, alike=floats == source.dtype)


def _as_number(text: str) -> float:
    """A mark as a number, with a decimal point or comma; NaN where it is none."""
    try:
        return float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
    except ValueError:
        return math.nan


def find_suspects(source: Source, names: list[str]) -> list[str]:
    """Say which numbers seem to mark missing cells: repeated nines, limits of integers and the like, far from others.

    A number as -999 or 9999 is suspect where it lies farther from the others of its column than these lie from each
    other (one as 99 three times as far), or is the only negative one.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.marks import find_suspects
    >>> x = np.array([[1.5], [-999], [2.5], [2.0]])
    >>> find_suspects(gramian.open(x), ["height"])[0].partition(":")[0]
    'column height holds -999 in 1 row, far from its other values'
    """
    if not isinstance(source, DenseSource) or source.values.size > MOST_SEARCHED or source.shape[0] < 3:
        return []
    X = source.values
    with np.errstate(invalid="ignore"):
        ends = np.stack([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)]).astype(np.float64)
    found: dict[str, list[tuple[str, int]]] = {}
    for j in np.flatnonzero([any(map(_looks_like_mark, pair)) for pair in ends.T]):
        values, counts = np.unique(X[:, j][~np.isnan(X[:, j])].astype(np.float64), return_counts=True)
        odd = np.array([_looks_like_mark(value) for value in values])
        rest = values[~odd]
        if len(rest) < 2:
            continue
        low, high = float(rest[0]), float(rest[-1])
        for value, count in zip(values[odd].tolist(), counts[odd].tolist(), strict=True):
            far = SHORT_FAR if abs(value) < 100 else 1.0
            if max(low - value, value - high) > far * (high - low) or value < 0.0 <= low:
                short = f"{value:.15g}"
                found.setdefault(short if float(short) == value else repr(value), []).append((names[j], count))
    notes = []
    for mark, places in list(found.items())[:TOLD]:
        (first, count), *others = places
        more = [f"{name} in {rows}" for name, rows in others[:TOLD]]
        more += [f"{len(others) - TOLD} more columns"] if len(others) > TOLD else []
        its = "its" if not others else "their"
        also = f" ({', '.join(more)})" if more else ""
        notes.append(
            f"column {first} holds {mark} in {count} row{'s' * (count != 1)}{also}, far from {its} other values: if it "
            f"marks missing cells, say so with na_values={mark} (--na-values {mark})"
        )
    return notes


def _looks_like_mark(value: float) -> bool:
    """Whether a number is one that people and instruments write for what is missing: -9, 99, -99.9, 8888, 1e20."""
    if not math.isfinite(value):
        return False
    if abs(value) >= HUGE or value in LIMITS:
        return True
    digits = f"{abs(value):.7g}".replace(".", "")
    least = 1 if value < 0 else 2
    return len(set(digits)) == 1 and len(digits) >= (least if digits[0] == "9" else 3) and digits[0] in "789"
