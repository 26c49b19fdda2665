"""Pairs of rows of two tables of SNPs with the same name or the same place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Pairs", "join", "rows_of"]

Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

MOST = 16  # rows of one name or place on either side: with more, it tells nothing apart
UNNAMED = {".", ""}
UNPLACED = {"0", ""}


class Pairs(NamedTuple):
    """Rows left and right that belong together, how they were found, and left rows with too many partners to list."""

    left: Index
    right: Index
    by_id: Mask
    crowded: Mask


def join(left: Any, right: Any, by: str) -> Pairs:
    """Pair SNPs by name, by position, or by name and then by position what has no partner.

    Examples
    --------
    >>> from gramian.genetics._joining import join
    >>> from gramian.sources.plink import Snps
    >>> snps = Snps.numbered(4)
    >>> pairs = join(snps, snps.take([3, 1]), "id")
    >>> pairs.left.tolist(), pairs.right.tolist()
    ([1, 3], [1, 0])
    """
    every = np.ones(len(left.id), bool), np.ones(len(right.id), bool)
    if by == "id":
        return _joined(*_names(left, right), *every, True)
    if by == "position":
        return _joined(*_places(left, right), *every, False)
    named = _joined(*_names(left, right), *every, True)
    free_left, free_right = every
    free_left[named.left] = free_right[named.right] = False
    placed = _joined(*_places(left, right), free_left & ~named.crowded, free_right, False)
    return Pairs(
        np.concatenate([named.left, placed.left]),
        np.concatenate([named.right, placed.right]),
        np.concatenate([named.by_id, placed.by_id]),
        named.crowded | placed.crowded,
    )


def _names(left: Any, right: Any) -> tuple[Index, Index]:
    """A number for each name, −1 for none."""
    codes = {name: j for j, name in enumerate(dict.fromkeys([*left.id, *right.id])) if name not in UNNAMED}
    first, second = ([codes.get(name, -1) for name in side.id] for side in (left, right))
    return np.array(first, dtype=np.intp), np.array(second, dtype=np.intp)


def _places(left: Any, right: Any) -> tuple[Index, Index]:
    """A number for each chromosome and position, −1 where one of them is unknown."""
    names = dict.fromkeys([*left.chromosome, *right.chromosome])
    codes = {name: j for j, name in enumerate(names) if name not in UNPLACED}
    return _place(left, codes), _place(right, codes)


def _place(side: Any, codes: dict[str, int]) -> Index:
    chromosome = np.array([codes.get(name, -1) for name in side.chromosome], dtype=np.int64)
    known = (chromosome >= 0) & (side.position > 0)
    return np.asarray(np.where(known, chromosome << 40 | side.position, -1), dtype=np.intp)


def _joined(a: Index, b: Index, use_a: Mask, use_b: Mask, by_id: bool) -> Pairs:
    """All pairs of rows with the same key."""
    rows_a, rows_b = np.flatnonzero(use_a & (a >= 0)), np.flatnonzero(use_b & (b >= 0))
    order = rows_b[np.argsort(b[rows_b], kind="stable")]
    first, last = (np.searchsorted(b[order], a[rows_a], side) for side in ("left", "right"))
    times = last - first
    _, inverse, rivals = np.unique(a[rows_a], return_inverse=True, return_counts=True)
    many = (times > 0) & ((times > MOST) | (rivals[inverse] > MOST))
    crowded = np.zeros(len(a), bool)
    crowded[rows_a[many]] = True
    times[many] = 0
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    left, right = np.repeat(rows_a, times), order[np.repeat(first, times) + within]
    return Pairs(left, right, np.full(len(left), by_id), crowded)


def rows_of(wanted: npt.NDArray[np.object_], names: npt.NDArray[np.object_], path: Path, what: str) -> Index:
    """The row of a file for each name wanted: there must be one, and no more."""
    places = {name: j for j, name in enumerate(names)}
    absent = [name for name in wanted if name not in places]
    if absent:
        raise ValueError(f"{path}: no {what} of {len(absent)} of the {len(wanted)} SNPs, {absent[0]} first.")
    if len(places) < len(names):
        later = np.array([places[name] for name in names]) != np.arange(len(names))
        repeated = set(names[later]) & set(wanted)
        if repeated:
            raise ValueError(f"{path}: more than one line for {len(repeated)} of the SNPs, {min(repeated)} first.")
    return np.array([places[name] for name in wanted], dtype=np.intp)
