"""Populations, coordinates and other columns of the samples, from a table of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics._id_lists import few, numbered_lines
from gramian.sources.plink import Samples

__all__ = ["Labels", "read_labels"]

Text = npt.NDArray[np.object_]

IDS = ("iid", "id", "sample")
LATITUDE, LONGITUDE = ("latitude", "lat"), ("longitude", "lon", "long", "lng")
ABSENT = frozenset({"", "NA", "NaN", "nan", "."})


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of the samples beside their genotypes, in their order.

    Attributes
    ----------
    name : str
        Of the column by which samples are grouped.
    groups : ndarray of str or None
        That column, "" where unknown.
    columns : dict of str to ndarray
        The others: numbers with NaN, or text with "".
    places : ndarray of shape (n, 2) or None
        Longitude and latitude in degrees, NaN where unknown.
    notes : list of str
        Samples without a row, and rows without a sample.
    """

    name: str = "population"
    groups: Text | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    places: npt.NDArray[np.float64] | None = None
    notes: list[str] = field(default_factory=list)


def read_labels(path: Path, samples: Samples, column: str | None = None) -> Labels:
    """Read columns of the samples from a table between tabs, or between white space where there are none.

    Parameters
    ----------
    path : Path
        A header with IID, and FID perhaps, then a row for each sample in any order. Without a header the first two
        columns are FID and IID.
    samples : Samples
        Whose rows are wanted.
    column : str, optional
        By which samples are grouped; the first column of text that is no coordinate, by default.

    Returns
    -------
    Labels
        In the order of the samples.
    """
    header, rows, taken = _rows(path, samples)
    keys, first = _keys(path, header, rows)
    order, notes = _matched(path, keys, samples)
    found = {name: _values([row[j] for _, row in rows], order) for j, name in enumerate(header) if j >= first}
    places = _places(path, found)
    grouping = _grouping(path, found, column)
    groups = None if grouping is None else _as_text(found.pop(grouping))
    return Labels(grouping or "population", groups, found, places, [*taken, *notes])


def _rows(path: Path, samples: Samples) -> tuple[list[str], list[tuple[int, list[str]]], list[str]]:
    """The names of the columns, FID and IID first; the rows with the numbers of their lines; a note if no header."""
    rows = [(number, _fields(line)) for number, line in numbered_lines(path, "labels")]
    if not rows:
        raise ValueError(f"{path}: the file is empty; a header with FID, IID and labels was expected.")
    for number, row in rows:
        if len(row) != len(rows[0][1]):
            raise ValueError(
                f"{path}: line {number} has {len(row)} fields; {len(rows[0][1])} were expected as in the first line."
            )
    head = [name.lstrip("#") for name in rows[0][1]]
    lower = [name.lower() for name in head]
    own = next((lower.index(name) for name in IDS if name in lower), None)
    if own is not None:
        ahead = ([lower.index("fid")] if "fid" in lower else []) + [own]
        order = [*ahead, *(j for j in range(len(head)) if j not in ahead)]
        names = ["FID", "IID"][-len(ahead) :] + [head[j] for j in order[len(ahead) :]]
        return _unique(path, names), [(number, [row[j] for j in order]) for number, row in rows[1:]], []
    if len(head) > 2 and rows[0][1][1] in set(samples.iid):
        names = [f"label{j or ''}" for j in range(len(head) - 2)]
        note = f"there is no header: the first columns are taken for FID and IID, the others for {few(names)}."
        return ["FID", "IID", *names], rows, [note]
    raise ValueError(f"{path}: line 1: a header with IID, and FID perhaps, was expected; it is {few(head)}.")


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split("\t")] if "\t" in line else line.split()


def _unique(path: Path, names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: line 1: columns are named more than once: {few(twice)}.")
    return names


def _keys(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> tuple[dict[Any, int], int]:
    """The row of each sample, by (FID, IID) or by IID alone, and how many columns name it."""
    first = 2 if header[0] == "FID" else 1
    if len(header) == first:
        raise ValueError(f"{path}: there are no labels: columns after {' and '.join(header)} were expected.")
    keys: dict[Any, int] = {}
    for i, (number, row) in enumerate(rows):
        key = tuple(row[:first])
        if key in keys:
            raise ValueError(f"{path}: line {number}: {' '.join(key)} has a row already, line {rows[keys[key]][0]}.")
        keys[key] = i
    return keys, first


def _matched(path: Path, keys: dict[Any, int], samples: Samples) -> tuple[list[int], list[str]]:
    """The row of each sample, −1 where there is none."""
    alone = len(next(iter(keys), ("", ""))) == 1
    own = [(iid,) if alone else (fid, iid) for fid, iid in zip(samples.fid, samples.iid, strict=True)]
    order = [keys.get(key, -1) for key in own]
    without = [" ".join(key) for key, row in zip(own, order, strict=True) if row < 0]
    if len(without) == len(own):
        raise ValueError(
            f"{path}: none of its {len(keys)} rows is of a sample of the study; it names "
            f"{few([' '.join(key) for key in keys])}, the study {few([' '.join(key) for key in own])}."
        )
    extra = len(keys) - len(set(order) - {-1})
    notes = [f"{len(without)} of {len(own)} samples have no row: {few(without)}."] if without else []
    return order, notes + ([f"{extra} rows are of nobody in the analysis."] if extra else [])


def _values(cells: Sequence[str], order: list[int]) -> Any:
    """A column in the order of the samples: numbers where all that is there is a number."""
    own = ["" if row < 0 or cells[row] in ABSENT else cells[row] for row in order]
    try:
        return np.array([float(cell) if cell else np.nan for cell in own])
    except ValueError:
        return np.array([*own, None], dtype=object)[:-1]


def _as_text(values: Any) -> Text:
    if values.dtype == object:
        return np.asarray(values)
    return np.array([*("" if v != v else f"{v:g}" for v in values.tolist()), None], dtype=object)[:-1]


def _places(path: Path, found: dict[str, Any]) -> npt.NDArray[np.float64] | None:
    """Longitude and latitude, which are taken from the columns."""
    lower = {name.lower(): name for name in found}
    names = [next((lower[word] for word in words if word in lower), None) for words in (LONGITUDE, LATITUDE)]
    if names[0] is None or names[1] is None:
        return None
    for name, most in zip(names, (180.0, 90.0), strict=True):
        values = found[str(name)]
        if values.dtype == object or np.nanmax(np.abs(values), initial=0.0) > most:
            raise ValueError(f"{path}: column {name}: degrees between −{most:g} and {most:g} were expected.")
    return np.stack([found.pop(str(name)) for name in names], axis=1)


def _grouping(path: Path, found: dict[str, Any], column: str | None) -> str | None:
    if column is None:
        return next((name for name, values in found.items() if values.dtype == object), next(iter(found), None))
    if column not in found:
        raise ValueError(f"{path}: there is no column {column!r}; there are {few(list(found)) or 'none'}.")
    return column
