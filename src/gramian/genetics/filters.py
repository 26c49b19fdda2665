"""Which samples and SNPs an analysis should see: filters, applied in a fixed order, and an account of them."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.genetics.long_range import BUILDS, Region, detect_build, long_range_regions
from gramian.genetics.quality import TableFile, Tallies, tally
from gramian.genetics.text import list_few, read_text
from gramian.results.tables import text_table
from gramian.sources.errors import Argument, SourceError
from gramian.sources.plink import Genotypes, Snps, chromosome_name

Mask = npt.NDArray[np.bool_]
SampleId = str | tuple[str, str]

SLACK = 1e-12  # a rate that equals its threshold passes, however both were rounded
LISTS = ("ranges", "exclude_ranges", "extract", "exclude", "keep", "remove")
LIMITS = {"maf": 0.5, "max_snp_missing": 1.0, "max_sample_missing": 1.0, "hwe": 1.0}


@dataclass(frozen=True)
class Step:
    """One filter: its name, whether it is of samples or SNPs, how many it removed and how many it left.

    Attributes
    ----------
    name : str
        The argument of ``Filters``, or ``all_missing`` or ``monomorphic``.
    of : str
        ``samples`` or ``SNPs``.
    removed, left : int
        How many.
    detail : str
        The threshold, and what was removed.
    """

    name: str
    of: str
    removed: int
    left: int
    detail: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Filtered(TableFile):
    """Genotypes that passed, and an account of those that did not.

    Attributes
    ----------
    source : Genotypes
        A view of the samples and SNPs that are left; no copy.
    shape : tuple of int
        Samples and SNPs there were.
    steps : tuple of Step
        The filters in the order in which they were applied.
    left_out : dict of str to int
        SNPs on each chromosome that was not asked for.
    remarks : tuple of (str, str)
        The argument, and what is said of its list: ids that name nothing, or more than one.
    """

    source: Genotypes
    shape: tuple[int, int]
    steps: tuple[Step, ...]
    left_out: dict[str, int]
    remarks: tuple[tuple[str, str], ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks in words."""
        return tuple(f"{argument}: {remark}" for argument, remark in self.remarks)

    @property
    def removed(self) -> dict[str, int]:
        """How many each filter removed, by its name."""
        return {step.name: step.removed for step in self.steps}

    def table(self) -> dict[str, Any]:
        """Return the columns filter, of, removed, left and detail, ready for ``pandas.DataFrame``."""
        names = ("name", "of", "removed", "left", "detail")
        return {"filter" if name == "name" else name: [getattr(step, name) for step in self.steps] for name in names}

    def __repr__(self) -> str:
        (n, p), (kept_n, kept_p) = self.shape, self.source.shape
        head = f"Filtered: {n} samples × {p} SNPs → {kept_n} × {kept_p}"
        return "\n".join([head, text_table(self.table(), len(self.steps)), *(f"  {note}" for note in self.notes)])


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of samples and SNPs, by lists, places and statistics.

    They are applied in PLINK's order: first chromosomes, ranges and lists of SNPs, then lists of samples; then samples
    by missing calls and heterozygosity, on the SNPs left; then SNPs by missing calls, Hardy–Weinberg test and minor
    allele frequency, among the samples left. SNPs without calls and monomorphic SNPs are dropped, and counted.

    Parameters
    ----------
    maf : float, optional
        Least minor allele frequency.
    max_snp_missing, max_sample_missing : float, optional
        Largest share of missing calls of a SNP, of a sample.
    hwe : float, optional
        Least exact p-value of the Hardy–Weinberg test.
    mid_p : bool
        Take its mid-p-value.
    heterozygosity : float or (float, float), optional
        Samples whose share of heterozygous calls on autosomes is further than so many standard deviations from the mean
        are removed; or those outside a range.
    chromosomes : str or iterable of str
        "1-22", the autosomes, unless given: "1,3,X", "22-26" in PLINK's numbers, "all".
    ranges, exclude_ranges : str, path or iterable of str, optional
        Stretches to keep or to leave out, ends included: "6:25000000-35000000", several between commas, a list of them,
        or a file with chromosome, start and end in each line.
    extract, exclude : path or iterable of str, optional
        Ids of SNPs to keep, to leave out: a file with one in each line, or the ids.
    keep, remove : path or iterable of str or of (str, str), optional
        Samples to keep, to leave out: a file with FID and IID, or IID alone, in each line; or (FID, IID) or IID.
    keep_monomorphic : bool
        Keep SNPs without calls and monomorphic SNPs, as PLINK does.
    long_range : {"auto", "hg18", "hg19", "hg38"}, optional
        Leave out the known regions of long-range linkage disequilibrium, in this build of the human genome; "auto"
        tells the build by the positions of well-known SNPs, and refuses where it cannot.

    Examples
    --------
    >>> from gramian.genetics.filters import Filters
    >>> from gramian.sources.plink import Genotypes
    >>> calls = [[0, 1, 2, 1], [0, 0, 0, 0], [0, 1, -1, -1], [0, 0, 0, 1]]
    >>> Filters(max_snp_missing=0.25, maf=0.2).apply(Genotypes.from_calls(calls))
    Filtered: 4 samples × 4 SNPs → 4 × 1
      filter             of  removed  left  detail
      chromosomes      SNPs        0     4    1-22
      all_missing      SNPs        0     4
      max_snp_missing  SNPs        1     3  ≤ 0.25
      monomorphic      SNPs        1     2
      maf              SNPs        1     1   ≥ 0.2
    """

    maf: float | None = None
    max_snp_missing: float | None = None
    max_sample_missing: float | None = None
    hwe: float | None = None
    mid_p: bool = False
    heterozygosity: float | tuple[float, float] | None = None
    chromosomes: str | Iterable[str | int] = "1-22"
    ranges: str | os.PathLike[str] | Iterable[str] | None = None
    exclude_ranges: str | os.PathLike[str] | Iterable[str] | None = None
    extract: str | os.PathLike[str] | Iterable[str] | None = None
    exclude: str | os.PathLike[str] | Iterable[str] | None = None
    keep: str | os.PathLike[str] | Iterable[SampleId] | None = None
    remove: str | os.PathLike[str] | Iterable[SampleId] | None = None
    keep_monomorphic: bool = False
    long_range: str | None = None

    def __post_init__(self) -> None:
        for name in ("chromosomes", *LISTS):  # an iterator could be read once only
            given = getattr(self, name)
            if given is not None and not isinstance(given, str | os.PathLike):
                object.__setattr__(self, name, tuple(given))
        for name, largest in LIMITS.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= largest:
                raise ValueError(f"{name}={value!r} must lie between 0 and {largest:g}.")
        chromosome_set(self.chromosomes)
        if self.long_range not in (None, "auto", *BUILDS):
            raise ValueError(f"long_range={self.long_range!r} must be 'auto' or one of {', '.join(BUILDS)}.")
        given = self.heterozygosity
        if isinstance(given, int | float):
            if not given > 0:
                raise ValueError(f"heterozygosity={given!r} must be a positive number of standard deviations.")
        elif given is not None and not (np.shape(given) == (2,) and 0 <= given[0] <= given[1] <= 1):
            raise ValueError(f"heterozygosity={given!r} must be a range (low, high) between 0 and 1.")

    def apply(self, source: Genotypes) -> Filtered:
        """Return a view of what passes and an account of what does not.

        Parameters
        ----------
        source : Genotypes
            Samples and SNPs; they are not copied.

        Returns
        -------
        Filtered
            One pass over the genotypes that the lists leave, and a second where a sample is removed by a statistic.

        Raises
        ------
        ValueError
            Where a sample has no call on the SNPs left, by name; where nothing is left; where a list cannot be read.
        """
        sieve = Sieve(source)
        self._filter_by_place(sieve)
        self._filter_by_sample_lists(sieve)
        self._filter_by_sample_statistics(sieve)
        calls, p = sieve.tallies.sample_asked - sieve.tallies.sample_missing, sieve.source.shape[1]
        sieve.keep_snps(*self._snp_statistics(sieve.tallies))
        if np.min(calls) <= p - sieve.source.shape[1]:  # as many SNPs were removed as somebody had calls
            sieve.refuse_uncalled()
        return Filtered(sieve.source, source.shape, tuple(sieve.steps), sieve.left_out, tuple(sieve.remarks))

    def _filter_by_place(self, sieve: Sieve) -> None:
        """Chromosomes, ranges, and lists of SNPs, whose ids are looked for on all chromosomes."""
        snps = sieve.source.snps
        wanted = chromosome_set(self.chromosomes)
        unknown = genome_order((wanted or frozenset()) - set(ORDER) - set(snps.chromosome))
        if unknown:
            known = list_few(genome_order(snps.chromosome))
            raise SourceError(
                Argument("chromosomes", list_few(unknown)), f": no such chromosome in the data, which have {known}."
            )
        chosen: list[tuple[str, Mask, str]] = []
        for name in ("ranges", "exclude_ranges", "extract", "exclude"):
            given = getattr(self, name)
            if given is None:
                continue
            if name in ("ranges", "exclude_ranges"):
                mask, remarks = snps_within(read_regions(given, name), snps)
            else:
                mask, remarks = _match_ids(read_snp_ids(given, name), [list(snps.id)], "SNP")
            chosen.append((name, mask if name in ("ranges", "extract") else ~mask, ""))
            sieve.remark(name, remarks)
        if self.long_range is not None:
            build = detect_build(snps) if self.long_range == "auto" else self.long_range
            with suppress(SourceError):
                if (told := detect_build(snps)) != build:
                    sieve.remark(
                        "long_range", [f"the positions of well-known SNPs are those of {told}, not of {build}."]
                    )
            inside, _ = snps_within(long_range_regions(build), snps)
            chosen.append(("long_range", ~inside, f"{len(long_range_regions(build))} regions of {build}"))
        on = np.array([wanted is None or name in wanted for name in snps.chromosome], dtype=np.bool_)
        counts = Counter(snps.chromosome[~on])
        sieve.left_out = {str(name): counts[name] for name in genome_order(counts)}
        # the number first: of chromosome 12 and 697 SNPs, "12 697" would read as a thousand times as many
        lost = ", ".join(f"{n} unplaced" if name == "0" else f"{n} on {name}" for name, n in sieve.left_out.items())
        given = self.chromosomes
        detail = given if isinstance(given, str) else ",".join(str(part) for part in given)
        sieve.keep_snps(("chromosomes", on, f"{detail}; left out: {lost}" if lost else detail))
        sieve.keep_snps(*((name, mask[on], detail) for name, mask, detail in chosen))

    def _filter_by_sample_lists(self, sieve: Sieve) -> None:
        """Those to keep, then those to remove, both looked for among all samples."""
        samples, kept = sieve.source.samples, np.ones(len(sieve.source.samples), np.bool_)
        masks = {}
        for name in ("keep", "remove"):
            if getattr(self, name) is not None:
                pairs = list(zip(samples.fid, samples.iid, strict=True))
                keys = [pairs, list(samples.iid), samples.names]  # by (FID, IID), by IID, or by FID:IID
                masks[name], remarks = _match_ids(read_sample_ids(getattr(self, name), name), keys, "sample")
                sieve.remark(name, remarks)
        if "keep" in masks:
            kept = masks["keep"]
            sieve.keep_samples("keep", kept)
        if "remove" in masks:
            sieve.keep_samples("remove", ~masks["remove"][kept])

    def _filter_by_sample_statistics(self, sieve: Sieve) -> None:
        """Missing calls, then heterozygosity of those left; both from one count, as neither changes the SNPs."""
        found = sieve.tallies
        passed = np.ones(sieve.source.shape[0], np.bool_)
        if self.max_sample_missing is not None:
            passed = ~(found.sample_missing > (self.max_sample_missing + SLACK) * found.sample_asked)
            sieve.keep_samples("max_sample_missing", passed, f"≤ {self.max_sample_missing:g}")
        if (found.sample_asked[passed] == found.sample_missing[passed]).any():
            sieve.refuse_uncalled()
        if self.heterozygosity is None:
            return
        if not found.autosomal.any():
            raise ValueError("heterozygosity is of chromosomes 1 to 22, and no SNP of theirs is left.")
        rate = found.het[passed] / np.maximum(found.autosomal[passed], 1)
        if isinstance(self.heterozygosity, int | float):
            reach = self.heterozygosity * rate.std(ddof=min(1, rate.size - 1))
            low, high = rate.mean() - reach, rate.mean() + reach
            detail = f"within {self.heterozygosity:g} SD: {low:.4g} to {high:.4g}"
        else:
            low, high = self.heterozygosity
            detail = f"{low:.4g} to {high:.4g}"
        sieve.keep_samples("heterozygosity", (rate >= low - SLACK) & (rate <= high + SLACK), detail)

    def _snp_statistics(self, found: Tallies) -> list[tuple[str, Mask, str]]:
        """Name, SNPs that pass and detail of each filter by missing calls, Hardy–Weinberg test and frequency."""
        minor = np.minimum(found.a1, found.alleles - found.a1)
        chosen: list[tuple[str, Mask, str]] = []
        if not self.keep_monomorphic:
            chosen.append(("all_missing", found.snp_missing < found.snp_asked, ""))
        if self.max_snp_missing is not None:
            passed = found.snp_missing <= (self.max_snp_missing + SLACK) * found.snp_asked
            chosen.append(("max_snp_missing", passed, f"≤ {self.max_snp_missing:g}"))
        if self.hwe is not None:
            p = hardy_weinberg(*found.tested.T, mid_p=self.mid_p)
            detail = f"{'mid-p' if self.mid_p else 'p'} ≥ {self.hwe:g}"
            chosen.append(("hwe", (p >= self.hwe * (1 - SLACK)) | ~found.testable, detail))
        if not self.keep_monomorphic:
            chosen.append(("monomorphic", minor > 0, ""))
        if self.maf is not None:
            chosen.append(("maf", minor >= (self.maf - SLACK) * found.alleles, f"≥ {self.maf:g}"))
        return chosen


class NothingLeftError(SourceError):
    """Filters that leave no sample or no SNP; ``steps`` are those that were applied, the last one left nothing."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        super().__init__()
        self.steps = steps

    def text(self, spell: Callable[[Argument], str] = lambda argument: argument.name) -> str:
        """The text, in which filters are spelled by ``spell``."""
        *before, last = self.steps
        earlier = ", ".join(f"{spell(Argument(s.name))} removed {s.removed} {s.of}" for s in before if s.removed)
        return (
            f"No {last.of} are left after the filter {spell(Argument(last.name))}"
            f"{f' ({last.detail})' if last.detail else ''}, which removed the last {last.removed}."
            f"{f' Before it, {earlier}.' if earlier else ''}"
        )


@dataclass(eq=False)
class Sieve:
    """Genotypes on their way through filters, with an account of those that were removed."""

    source: Genotypes
    steps: list[Step] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    _tallies: Tallies | None = None

    @property
    def tallies(self) -> Tallies:
        """Counts among the samples and SNPs left: one pass, again only after something was removed."""
        if self._tallies is None:
            self._tallies = tally(self.source)
        return self._tallies

    def keep_samples(self, name: str, mask: Mask, detail: str = "") -> None:
        """Go on with the samples of the mask."""
        self._record(name, "samples", len(mask), mask, detail)
        if not mask.all():
            self.source, self._tallies = self.source.select(samples=mask), None

    def keep_snps(self, *filters: tuple[str, Mask, str]) -> None:
        """Go on with the SNPs that pass every (name, mask, detail); each is charged with what those before let pass."""
        left = np.ones(self.source.shape[1], np.bool_)
        for name, mask, detail in filters:
            before, left = int(left.sum()), left & mask
            self._record(name, "SNPs", before, left, detail)
        if not left.all():
            self.source, self._tallies = self.source.select(snps=left), None

    def refuse_uncalled(self) -> None:
        """Raise where a sample has no call on the SNPs that are left."""
        calls = self.tallies.sample_asked - self.tallies.sample_missing
        empty = np.flatnonzero(calls == 0)
        if empty.size:
            who = list_few([f"{self.source.samples.fid[i]} {self.source.samples.iid[i]}" for i in empty])
            raise SourceError(
                f"{empty.size} sample{'s have' if empty.size > 1 else ' has'} no call on the {self.source.shape[1]} "
                f"SNPs that are left: {who} (FID IID). Leave them out with ",
                Argument("max_sample_missing", 0.5),
                " or ",
                Argument("remove"),
                ".",
            )

    def remark(self, argument: str, remarks: list[str]) -> None:
        """Keep remarks on the list that was given as an argument, and warn of them."""
        for remark in remarks:
            self.remarks.append((argument, remark))
            warnings.warn(f"{argument}: {remark}", UserWarning, stacklevel=4)

    def _record(self, name: str, of: str, before: int, left: Mask, detail: str) -> None:
        """Account for a filter, and raise where it leaves nothing."""
        kept = int(np.count_nonzero(left))
        self.steps.append(Step(name, of, before - kept, kept, detail))
        if not kept:
            raise NothingLeftError(tuple(self.steps))


# Lists of samples and SNPs


def numbered_lines(path: str | os.PathLike[str], argument: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that are not blank, with their numbers from 1."""
    hint = "" if argument.endswith("ranges") else "; ids themselves are given as a list, not as a string"
    for number, content in enumerate(read_text(Path(path), argument, hint).split("\n"), 1):
        if content.strip():
            yield number, content.rstrip("\r")


def split_fields(line: str) -> list[str]:
    """Fields between tabs, which may hold spaces, or between any white space where there is no tab.

    Tabs at the end of a line, as the panel of the 1000 Genomes has them, part nothing.
    """
    line = line.rstrip()
    return [field.strip() for field in line.strip("\r\n").split("\t")] if "\t" in line.strip() else line.split()


def read_sample_ids(given: str | os.PathLike[str] | Iterable[SampleId], argument: str) -> list[SampleId]:
    """The samples of a list or a file: (FID, IID), or IID alone.

    A file has FID and IID in its first two columns, or IID in its only one; a first line that begins with #FID or #IID
    is a header and says which.
    """
    found: list[SampleId] = []
    if not isinstance(given, str | os.PathLike):
        for entry in given:
            pair = (entry,) if isinstance(entry, str) else tuple(str(part) for part in entry)
            if len(pair) not in (1, 2):
                raise ValueError(f"{argument}: {entry!r} is not a sample: give its IID, or the pair (FID, IID).")
            found.append(pair[0] if len(pair) == 1 else (pair[0], pair[1]))
        return found
    rows = [(number, split_fields(line)) for number, line in numbered_lines(given, argument)]
    header = rows.pop(0)[1][0] if rows and rows[0][1][0] in ("#FID", "#IID") else None
    alone = header is None and bool(rows) and len(rows[0][1]) == 1
    for number, fields in rows:
        if header != "#IID" and (len(fields) == 1) is not alone:
            expected = "1, the IID, was" if alone else "2, FID and IID, were"
            raise ValueError(
                f"{argument}: {given}: line {number} has {len(fields)} field{'s' * (len(fields) > 1)}; {expected} "
                "expected as in the first line."
            )
        found.append(fields[0] if alone or header == "#IID" else (fields[0], fields[1]))
    return found


def read_snp_ids(given: str | os.PathLike[str] | Iterable[str], argument: str) -> list[str]:
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


def _match_ids(wanted: Sequence[Any], keys: Sequence[Sequence[Hashable]], kind: str) -> tuple[Mask, list[str]]:
    """Things of which one of the keys is wanted; with notes on ids that name none or several, or are listed twice."""
    times = Counter(wanted)
    mask = np.zeros(len(keys[0]), np.bool_)
    owners: Counter[Hashable] = Counter()
    for i, own in enumerate(zip(*keys, strict=True)):
        hits = {key for key in own if key in times}
        mask[i] = bool(hits)
        owners.update(hits)
    words: dict[Any, str] = {key: key if isinstance(key, str) else " ".join(key) for key in times}
    absent = [words[key] for key in times if key not in owners]
    several = [f"{words[key]} ({count})" for key, count in owners.items() if count > 1]
    twice = [words[key] for key, count in times.items() if count > 1]
    remarks = [
        (absent, f"of {len(times)} {kind} ids are not in the data"),
        (several, f"{kind} ids belong to more than one {kind}, all of which are meant"),
        (twice, f"{kind} ids are listed more than once, and count once"),
    ]
    return mask, [f"{len(found)} {text}: {list_few(found)}." for found, text in remarks if found]


# Places on the genome

ORDER = ("0", *(str(i) for i in range(1, 23)), "X", "Y", "XY", "MT")  # in PLINK's numbers 0 to 26
BUILD_COLUMN = re.compile(r"(hg|grch|build|b)\d+\D.*", re.IGNORECASE)
REGION = re.compile(r"([^:\s]+):(\d+)-(\d+)")


def chromosome_set(spec: str | Iterable[str | int]) -> frozenset[str] | None:
    """Return the chromosomes of "1-22", "1,3,X" or a list of such; None for "all".

    Examples
    --------
    >>> from gramian.genetics.filters import chromosome_set
    >>> sorted(chromosome_set("1-3,X")), chromosome_set("all")
    (['1', '2', '3', 'X'], None)
    """
    parts = spec.split(",") if isinstance(spec, str) else [str(part) for part in spec]
    entries = [part.strip() for part in parts]
    if entries == ["all"]:
        return None
    if not entries or "" in entries:
        raise SourceError(Argument("chromosomes", spec), ' names none; write for example "1-22", "1,3,X" or "all".')
    found: set[str] = set()
    for entry in entries:
        first, dash, last = entry.partition("-")
        ends = chromosome_name(first.strip()), chromosome_name(last.strip())
        if not dash or not set(ends) <= set(ORDER):
            found.add(chromosome_name(entry))
            continue
        low, high = (ORDER.index(end) for end in ends)
        if low > high:
            raise SourceError(Argument("chromosomes", entry), f" runs backwards; write it as {last}-{first}.")
        found.update(ORDER[low : high + 1])
    return frozenset(found)


def genome_order(names: Iterable[str]) -> list[str]:
    """Return names of chromosomes in their order: 1 to 22, X, Y, XY, MT, then others by name, and unplaced SNPs (0).

    Examples
    --------
    >>> from gramian.genetics.filters import genome_order
    >>> genome_order(["0", "X", "10", "contig", "2"])
    ['2', '10', 'X', 'contig', '0']
    """
    place = {name: i for i, name in enumerate(ORDER[1:])}
    return sorted(set(names), key=lambda name: (name == "0", place.get(name, len(place)), name))


def read_regions(given: str | os.PathLike[str] | Iterable[str], argument: str) -> list[Region]:
    """Return the ranges of "6:25000000-35000000", of several between commas, of a list of such, or of a file of them.

    A line of a file has chromosome, start and end; what follows them (a label) is not read.

    Examples
    --------
    >>> from gramian.genetics.filters import read_regions
    >>> [tuple(region) for region in read_regions("chr6:25-35,X:1-9", "ranges")]
    [('6', 25, 35), ('X', 1, 9)]
    """
    entries = [entry.strip() for entry in given.split(",")] if isinstance(given, str) else []
    parts: list[tuple[str, Sequence[str]]] = []
    if isinstance(given, str | os.PathLike) and not any(REGION.fullmatch(entry) for entry in entries):
        for number, line in numbered_lines(given, argument):
            fields = line.split()
            if not parts and (fields[0].startswith("#") or not (set("".join(fields[1:3])) & set("0123456789"))):
                continue  # a header: no digit stands where positions would
            if not parts and len(fields) > 2 and BUILD_COLUMN.fullmatch(fields[1]):
                raise ValueError(
                    f"{given}: line {number}: the columns {', '.join(fields)} are of several builds. Keep chromosome, "
                    "start and end of one of them (the usual regions are known: long_range)."
                )
            if len(fields) < 3 or not (fields[1].isdecimal() and fields[2].isdecimal()):
                raise ValueError(
                    f"{given}: line {number}: {line.strip()!r} is not a range: chromosome, start and end were expected."
                )
            parts.append((f"{given}: line {number}", fields[:3]))
    else:
        for entry in entries or map(str, cast("Iterable[str]", given)):
            match = REGION.fullmatch(entry.strip())
            if match is None:
                raise ValueError(
                    f'{argument}: {entry!r} is not a range; write chromosome:start-end, as in "6:25000000-35000000".'
                )
            parts.append((f"{argument}: {entry!r}", match.groups()))
    regions = [(where, Region(chromosome_name(name), int(start), int(end))) for where, (name, start, end) in parts]
    for where, region in regions:
        if region.start > region.end:
            raise ValueError(f"{where}: the range ends ({region.end}) before it starts ({region.start}).")
    return [region for _, region in regions]


def snps_within(given: list[Region], snps: Snps) -> tuple[Mask, list[str]]:
    """Which SNPs lie in one of the regions, and a note on regions in which there is none."""
    mask, void = np.zeros(len(snps), np.bool_), []
    on: dict[str, npt.NDArray[np.intp]] = {}  # comparing names is slow, and many regions lie on few chromosomes
    for chromosome, start, end in given:
        if chromosome not in on:
            on[chromosome] = np.flatnonzero(snps.chromosome == chromosome)
        position = snps.position[on[chromosome]]
        held = on[chromosome][(position >= start) & (position <= end)]
        mask[held] = True
        if not held.size:
            void.append(f"{chromosome}:{start}-{end}")
    return mask, [f"{len(void)} of {len(given)} ranges hold no SNP: {list_few(void)}."] if void else []
