"""Lists of samples and of SNPs, from files or from Python, and what of the data they name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.plink import Samples, Snps

__all__ = ["SampleId", "few", "numbered_lines", "sample_ids", "samples_named", "snp_ids", "snps_named"]

Mask = npt.NDArray[np.bool_]
SampleId = str | tuple[str, str]

SHOWN = 5  # examples in a note


def numbered_lines(path: str | os.PathLike[str], argument: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that are not blank, with their numbers from 1."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(
            f"{argument}: {file}: no such file; ids themselves are given as a list, not as a string."
        )
    if file.is_dir():
        raise IsADirectoryError(f"{argument}: {file} is a folder; a text file was expected.")
    raw = file.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{argument}: {file}: line {line} is not UTF-8 text. Save the file as UTF-8.") from error
    for number, content in enumerate(text.split("\n"), 1):
        if content.strip():
            yield number, content.rstrip("\r")


def sample_ids(given: str | os.PathLike[str] | Iterable[SampleId], argument: str) -> list[SampleId]:
    """The samples of a list or a file: (FID, IID), or IID alone.

    A file has FID and IID in its first two columns, or IID in its only one; a first line that begins with #FID or #IID
    is a header and says which.
    """
    if isinstance(given, str | os.PathLike):
        return _samples_of_file(given, argument)
    found: list[SampleId] = []
    for entry in given:
        pair = (entry,) if isinstance(entry, str) else tuple(str(part) for part in entry)
        if len(pair) not in (1, 2):
            raise ValueError(f"{argument}: {entry!r} is not a sample: give its IID, or the pair (FID, IID).")
        found.append(pair[0] if len(pair) == 1 else (pair[0], pair[1]))
    return found


def _samples_of_file(path: str | os.PathLike[str], argument: str) -> list[SampleId]:
    rows = [(number, _fields(line)) for number, line in numbered_lines(path, argument)]
    header = rows.pop(0)[1][0] if rows and rows[0][1][0] in ("#FID", "#IID") else None
    if header == "#IID":
        return [fields[0] for _, fields in rows]
    alone = header is None and bool(rows) and len(rows[0][1]) == 1
    for number, fields in rows:
        if (len(fields) == 1) is not alone:
            expected = "1, the IID, was" if alone else "2, FID and IID, were"
            raise ValueError(
                f"{argument}: {path}: line {number} has {len(fields)} field{'s' * (len(fields) > 1)}; {expected} "
                "expected as in the first line."
            )
    return [fields[0] if alone else (fields[0], fields[1]) for _, fields in rows]


def _fields(line: str) -> list[str]:
    """Fields between tabs, which may hold spaces, or between any white space where there is no tab."""
    return [field.strip() for field in line.strip("\r\n").split("\t")] if "\t" in line.strip() else line.split()


def snp_ids(given: str | os.PathLike[str] | Iterable[str], argument: str) -> list[str]:
    """The SNPs of a list, or of a file with one id in each line."""
    if not isinstance(given, str | os.PathLike):
        return [str(entry) for entry in given]
    found = []
    for number, line in numbered_lines(given, argument):
        fields = line.split()
        if len(fields) != 1:
            raise ValueError(f"{argument}: {given}: line {number} has {len(fields)} fields; one SNP id was expected.")
        found.append(fields[0])
    return found


def snps_named(wanted: Sequence[str], snps: Snps, argument: str) -> tuple[Mask, list[str]]:
    """Which SNPs have one of these ids, and what is to be said of the ids."""
    return _matched(wanted, [list(snps.id)], argument, "SNP")


def samples_named(wanted: Sequence[SampleId], samples: Samples, argument: str) -> tuple[Mask, list[str]]:
    """Which samples are named, by (FID, IID), by IID, or by FID:IID; and what is to be said of the names."""
    pairs = list(zip(samples.fid, samples.iid, strict=True))
    return _matched(wanted, [pairs, list(samples.iid), samples.names], argument, "sample")


def _matched(
    wanted: Sequence[Any], keys: Sequence[Sequence[Hashable]], argument: str, kind: str
) -> tuple[Mask, list[str]]:
    """Things of which one of the keys is wanted; with notes on ids that name none or several, or are listed twice."""
    times = Counter(wanted)
    mask = np.zeros(len(keys[0]), np.bool_)
    owners: Counter[Hashable] = Counter()
    for i, own in enumerate(zip(*keys, strict=True)):
        hits = {key for key in own if key in times}
        mask[i] = bool(hits)
        owners.update(hits)
    absent = [_shown(key) for key in times if key not in owners]
    several = [f"{_shown(key)} ({count})" for key, count in owners.items() if count > 1]
    twice = [_shown(key) for key, count in times.items() if count > 1]
    notes = [
        (absent, f"of {len(times)} {kind} ids are not in the data"),
        (several, f"{kind} ids belong to more than one {kind}, all of which are meant"),
        (twice, f"{kind} ids are listed more than once, and count once"),
    ]
    return mask, [f"{argument}: {len(found)} {text}: {few(found)}." for found, text in notes if found]


def _shown(key: Any) -> str:
    return key if isinstance(key, str) else " ".join(key)


def few(items: Sequence[str]) -> str:
    """The first few of them."""
    return ", ".join(items[:SHOWN]) + (", …" if len(items) > SHOWN else "")
