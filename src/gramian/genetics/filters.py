"""Which samples and SNPs an analysis should see: filters, applied in a fixed order, and an account of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.genetics._filter_report import Filtered, Step
from gramian.genetics._filtering import SLACK, Sieve
from gramian.genetics._id_lists import SampleId, few, sample_ids, samples_named, snp_ids, snps_named
from gramian.genetics._regions import chromosome_set, genome_order, regions, snps_within, unknown_chromosomes
from gramian.genetics._tallies import Tallies
from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.sources.plink import Genotypes

__all__ = ["Filtered", "Filters", "Step"]

Mask = npt.NDArray[np.bool_]
Path = str | os.PathLike[str]

LISTS = ("ranges", "exclude_ranges", "extract", "exclude", "keep", "remove")
LIMITS = {"maf": 0.5, "max_snp_missing": 1.0, "max_sample_missing": 1.0, "hwe": 1.0}


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of samples and SNPs, by lists, places and statistics.

    They are applied in PLINK's order: first chromosomes, ranges and lists of SNPs, then lists of samples; then samples
    by missing calls and heterozygosity, on the SNPs left; then SNPs by missing calls, Hardy–Weinberg test and minor
    allele frequency, among the samples left. SNPs without calls and monomorphic SNPs are always dropped, and counted.

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
    ranges: Path | Iterable[str] | None = None
    exclude_ranges: Path | Iterable[str] | None = None
    extract: Path | Iterable[str] | None = None
    exclude: Path | Iterable[str] | None = None
    keep: Path | Iterable[SampleId] | None = None
    remove: Path | Iterable[SampleId] | None = None

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
        self._check_heterozygosity()

    def _check_heterozygosity(self) -> None:
        given = self.heterozygosity
        if given is None:
            return
        if isinstance(given, int | float):
            if not given > 0:
                raise ValueError(f"heterozygosity={given!r} must be a positive number of standard deviations.")
        elif not (np.shape(given) == (2,) and 0 <= given[0] <= given[1] <= 1):
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
        self._by_place(sieve)
        self._by_sample_lists(sieve)
        self._by_sample_statistics(sieve)
        calls, p = sieve.tallies.sample_asked - sieve.tallies.sample_missing, sieve.source.shape[1]
        sieve.keep_snps(*self._by_snp_statistics(sieve.tallies))
        sieve.refuse_emptied(calls, p)
        return sieve.result()

    def _by_place(self, sieve: Sieve) -> None:
        """Chromosomes, ranges, and lists of SNPs, whose ids are looked for on all chromosomes."""
        snps = sieve.source.snps
        wanted = chromosome_set(self.chromosomes)
        strange = unknown_chromosomes(wanted or frozenset(), snps)
        if strange:
            raise ValueError(
                f"chromosomes: {few(strange)}: no such chromosome in the data, "
                f"which have {few(genome_order(snps.chromosome))}."
            )
        chosen = []
        for name, inside in (("ranges", True), ("exclude_ranges", False)):
            if getattr(self, name) is not None:
                mask, notes = self._in_ranges(sieve.source, name)
                chosen.append((name, mask if inside else ~mask, ""))
                _say(sieve, notes)
        for name, inside in (("extract", True), ("exclude", False)):
            if getattr(self, name) is not None:
                mask, notes = snps_named(snp_ids(getattr(self, name), name), snps, name)
                chosen.append((name, mask if inside else ~mask, ""))
                _say(sieve, notes)
        before = sieve.source.snp_index
        sieve.keep_chromosomes(wanted, _text(self.chromosomes))
        left = np.isin(before, sieve.source.snp_index, assume_unique=True)
        sieve.keep_snps(*((name, mask[left], detail) for name, mask, detail in chosen))

    def _in_ranges(self, source: Genotypes, name: str) -> tuple[Mask, list[str]]:
        given = regions(getattr(self, name), name)
        mask, void = snps_within(given, source.snps)
        return mask, [f"{name}: {len(void)} of {len(given)} ranges hold no SNP: {few(void)}."] if void else []

    def _by_sample_lists(self, sieve: Sieve) -> None:
        samples = sieve.source.samples
        masks = {}
        for name in ("keep", "remove"):
            if getattr(self, name) is not None:
                masks[name], notes = samples_named(sample_ids(getattr(self, name), name), samples, name)
                _say(sieve, notes)
        if "keep" in masks:
            sieve.keep_samples("keep", masks["keep"])
        if "remove" in masks:
            mask = ~masks["remove"]
            sieve.keep_samples("remove", mask[masks["keep"]] if "keep" in masks else mask)

    def _by_sample_statistics(self, sieve: Sieve) -> None:
        """Missing calls, then heterozygosity of those left; both from one count, as neither changes the SNPs."""
        found = sieve.tallies
        passed = np.ones(sieve.source.shape[0], np.bool_)
        if self.max_sample_missing is not None:
            passed = ~(found.sample_missing > (self.max_sample_missing + SLACK) * found.sample_asked)
            sieve.keep_samples("max_sample_missing", passed, f"≤ {self.max_sample_missing:g}")
        uncalled = found.sample_asked[passed] == found.sample_missing[passed]
        if uncalled.any():
            sieve.refuse_uncalled()
        if self.heterozygosity is not None:
            if not found.autosomal.any():
                raise ValueError("heterozygosity is of chromosomes 1 to 22, and no SNP of theirs is left.")
            rate = found.het[passed] / np.maximum(found.autosomal[passed], 1)
            low, high, detail = self._range(rate)
            sieve.keep_samples("heterozygosity", (rate >= low - SLACK) & (rate <= high + SLACK), detail)

    def _range(self, rate: npt.NDArray[np.float64]) -> tuple[float, float, str]:
        if isinstance(self.heterozygosity, int | float):
            mean, spread = rate.mean(), rate.std(ddof=min(1, rate.size - 1))
            low, high = mean - self.heterozygosity * spread, mean + self.heterozygosity * spread
            return float(low), float(high), f"within {self.heterozygosity:g} SD: {low:.4g} to {high:.4g}"
        low, high = self.heterozygosity or (0.0, 1.0)
        return low, high, f"{low:.4g} to {high:.4g}"

    def _by_snp_statistics(self, found: Tallies) -> list[tuple[str, Mask, str]]:
        minor = np.minimum(found.a1, found.alleles - found.a1)
        chosen: list[tuple[str, Mask, str]] = [("all_missing", found.snp_missing < found.snp_asked, "")]
        if self.max_snp_missing is not None:
            passed = found.snp_missing <= (self.max_snp_missing + SLACK) * found.snp_asked
            chosen.append(("max_snp_missing", passed, f"≤ {self.max_snp_missing:g}"))
        if self.hwe is not None:
            p = hardy_weinberg(*found.tested.T, mid_p=self.mid_p)
            detail = f"{'mid-p' if self.mid_p else 'p'} ≥ {self.hwe:g}"
            chosen.append(("hwe", (p >= self.hwe * (1 - SLACK)) | ~found.testable, detail))
        chosen.append(("monomorphic", minor > 0, ""))
        if self.maf is not None:
            chosen.append(("maf", minor >= (self.maf - SLACK) * found.alleles, f"≥ {self.maf:g}"))
        return chosen


def _say(sieve: Sieve, notes: list[str]) -> None:
    sieve.notes.extend(notes)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=4)


def _text(given: str | Iterable[str | int]) -> str:
    return given if isinstance(given, str) else ",".join(str(part) for part in given)
