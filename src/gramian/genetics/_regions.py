"""Chromosomes and stretches of them, as users write them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.genetics._id_lists import numbered_lines
from gramian.sources.plink import Snps
from gramian.sources.plink.tables import chromosome_name

__all__ = ["Region", "chromosome_set", "genome_order", "regions", "snps_within", "unknown_chromosomes"]

Mask = npt.NDArray[np.bool_]

# in PLINK's numbers 0 to 26
ORDER = ("0", *(str(i) for i in range(1, 23)), "X", "Y", "XY", "MT")
REGION = re.compile(r"([^:\s]+):(\d+)-(\d+)")


@dataclass(frozen=True)
class Region:
    """Positions start to end of a chromosome, both included."""

    chromosome: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.chromosome}:{self.start}-{self.end}"


def chromosome_set(spec: str | Iterable[str | int]) -> frozenset[str] | None:
    """Return the chromosomes of "1-22", "1,3,X" or a list of such; None for "all".

    Examples
    --------
    >>> from gramian.genetics._regions import chromosome_set
    >>> sorted(chromosome_set("1-3,X")), chromosome_set("all")
    (['1', '2', '3', 'X'], None)
    """
    parts = spec.split(",") if isinstance(spec, str) else [str(part) for part in spec]
    entries = [part.strip() for part in parts]
    if entries == ["all"]:
        return None
    if not entries or "" in entries:
        raise ValueError(f'chromosomes={spec!r} names none; write for example "1-22", "1,3,X" or "all".')
    return frozenset(name for entry in entries for name in _expanded(entry))


def _expanded(entry: str) -> tuple[str, ...]:
    first, dash, last = entry.partition("-")
    ends = chromosome_name(first.strip()), chromosome_name(last.strip())
    if not dash or not set(ends) <= set(ORDER):
        return (chromosome_name(entry),)
    low, high = (ORDER.index(end) for end in ends)
    if low > high:
        raise ValueError(f"chromosomes: {entry!r} runs backwards; write it as {last}-{first}.")
    return ORDER[low : high + 1]


def genome_order(names: Iterable[str]) -> list[str]:
    """Return names of chromosomes in their order: 1 to 22, X, Y, XY, MT, then others by name, and unplaced SNPs (0).

    Examples
    --------
    >>> from gramian.genetics._regions import genome_order
    >>> genome_order(["0", "X", "10", "contig", "2"])
    ['2', '10', 'X', 'contig', '0']
    """
    place = {name: i for i, name in enumerate(ORDER[1:])}
    return sorted(set(names), key=lambda name: (name == "0", place.get(name, len(place)), name))


def unknown_chromosomes(wanted: frozenset[str], snps: Snps) -> list[str]:
    """Names that are neither a human chromosome nor one of the file."""
    return genome_order(wanted - set(ORDER) - set(snps.chromosome))


def regions(given: str | os.PathLike[str] | Iterable[str], argument: str) -> tuple[Region, ...]:
    """Return the ranges of "6:25000000-35000000", of several between commas, of a list of such, or of a file of them.

    Examples
    --------
    >>> from gramian.genetics._regions import regions
    >>> [str(region) for region in regions("chr6:25-35,X:1-9", "ranges")]
    ['6:25-35', 'X:1-9']
    """
    if isinstance(given, str):
        entries = [entry.strip() for entry in given.split(",")]
        if any(REGION.fullmatch(entry) for entry in entries):
            return tuple(_region(entry, argument) for entry in entries)
    if isinstance(given, str | os.PathLike):
        return _from_file(given, argument)
    return tuple(_region(str(entry), argument) for entry in given)


def _region(entry: str, argument: str) -> Region:
    found = REGION.fullmatch(entry.strip())
    if found is None:
        raise ValueError(
            f'{argument}: {entry!r} is not a range; write chromosome:start-end, as in "6:25000000-35000000".'
        )
    return _checked(found.group(1), int(found.group(2)), int(found.group(3)), f"{argument}: {entry!r}")


def _checked(chromosome: str, start: int, end: int, where: str) -> Region:
    if start > end:
        raise ValueError(f"{where}: the range ends ({end}) before it starts ({start}).")
    return Region(chromosome_name(chromosome), start, end)


def _from_file(path: str | os.PathLike[str], argument: str) -> tuple[Region, ...]:
    """Lines of chromosome, start and end; what follows them (a label) is not read."""
    found = []
    for number, line in numbered_lines(path, argument):
        fields = line.split()
        if number == 1 and fields[0].startswith("#"):
            continue
        if len(fields) < 3 or not (fields[1].isdecimal() and fields[2].isdecimal()):
            raise ValueError(
                f"{path}: line {number}: {line.strip()!r} is not a range: chromosome, start and end were expected."
            )
        found.append(_checked(fields[0], int(fields[1]), int(fields[2]), f"{path}: line {number}"))
    return tuple(found)


def snps_within(given: Iterable[Region], snps: Snps) -> tuple[Mask, list[str]]:
    """Which SNPs lie in one of the regions, and the regions in which there is none."""
    mask, void = np.zeros(len(snps), np.bool_), []
    on: dict[str, npt.NDArray[np.intp]] = {}  # comparing names is slow, and many regions lie on few chromosomes
    for region in given:
        if region.chromosome not in on:
            on[region.chromosome] = np.flatnonzero(snps.chromosome == region.chromosome)
        here = on[region.chromosome]
        position = snps.position[here]
        held = here[(position >= region.start) & (position <= region.end)]
        mask[held] = True
        if not held.size:
            void.append(str(region))
    return mask, void
