"""How good genotypes are: allele frequency, missingness, heterozygosity and Hardy–Weinberg, by SNP and by sample."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import parallel
from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.results.tables import text_table
from gramian.sources.plink import Genotypes, Samples, Snps
from gramian.sources.writing import write_whole

__all__ = [
    "AUTOSOMES",
    "SampleQuality",
    "SnpQuality",
    "Tallies",
    "is_autosomal",
    "sample_quality",
    "snp_quality",
    "sums_over_missing",
    "tally",
    "write_tsv",
]

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]

AUTOSOMES = tuple(str(i) for i in range(1, 23))
MALE = 1
BLOCK = 2**20  # packed bytes looked at together


@dataclass(frozen=True, eq=False)
class Tallies:
    """What the statistics of SNPs and samples are made of.

    Attributes
    ----------
    a1, alleles : ndarray of shape (p,)
        Copies of A1 and of either allele: two for each call, one for males on X and Y.
    tested : ndarray of shape (p, 3)
        Two A1, heterozygous, two A2 among those with two chromosomes who can be tested for their proportions.
    testable : ndarray of bool of shape (p,)
        False for Y and MT.
    snp_missing, snp_asked : ndarray of shape (p,)
        Missing calls and the samples that could have one.
    sample_missing, sample_asked : ndarray of shape (n,)
        Missing calls and the SNPs that could have one.
    het, autosomal : ndarray of shape (n,)
        Heterozygous calls and all calls on autosomes.
    """

    a1: Ints
    alleles: Ints
    tested: Ints
    testable: Mask
    snp_missing: Ints
    snp_asked: Ints
    sample_missing: Ints
    sample_asked: Ints
    het: Ints
    autosomal: Ints


def is_autosomal(chromosome: npt.NDArray[np.object_]) -> Mask:
    """Whether SNPs lie on chromosomes 1 to 22."""
    return np.isin(chromosome.astype(str), AUTOSOMES)


def tally(source: Genotypes) -> Tallies:
    """Count genotypes as PLINK does.

    On X males have one copy, and a male heterozygote none; all others have two, and they are tested. On Y only males
    are counted, with one copy. On MT a heterozygous call (heteroplasmy) is half of each allele, and nobody is tested.
    Of all else (autosomes, XY, unplaced) everybody has two copies.
    """
    n, p = source.shape
    found = _empty(n, p)
    chromosome = source.snps.chromosome.astype(str)
    haploid = np.isin(chromosome, ("X", "Y", "MT"))
    autosomal = is_autosomal(source.snps.chromosome)
    for mask, is_auto in ((autosomal, True), (~autosomal & ~haploid, False)):
        if mask.any():
            _add_diploid(found, source, mask, is_auto)
    for name, add in (("X", _add_x), ("Y", _add_y), ("MT", _add_mt)):
        if (chromosome == name).any():
            add(found, source, chromosome == name)
    return found


def _empty(n: int, p: int) -> Tallies:
    by_snp, by_sample = [np.zeros(p, np.int64) for _ in range(4)], [np.zeros(n, np.int64) for _ in range(4)]
    a1, alleles, missing, asked = by_snp
    return Tallies(a1, alleles, np.zeros((p, 3), np.int64), np.ones(p, np.bool_), missing, asked, *by_sample)


def _add_diploid(found: Tallies, source: Genotypes, mask: Mask, is_autosomal: bool) -> None:
    counts = (source if mask.all() else source.select(snps=mask)).counts()
    _place_snps(found, mask, counts.by_snp)
    found.tested[mask] = counts.by_snp[:, :3]
    _add_samples(found, slice(None), counts.by_sample)
    if is_autosomal:
        found.het[:] += counts.by_sample[:, 1]
        found.autosomal[:] += counts.by_sample[:, :3].sum(axis=1)


def _add_x(found: Tallies, source: Genotypes, mask: Mask) -> None:
    male = source.samples.sex == MALE
    for chosen, copies in ((male, 1), (~male, 2)):
        if chosen.any():
            counts = source.select(samples=chosen, snps=mask).counts()
            _place_snps(found, mask, counts.by_snp, copies)
            _add_samples(found, chosen, counts.by_sample)
            if copies == 2:
                found.tested[mask] = counts.by_snp[:, :3]


def _add_y(found: Tallies, source: Genotypes, mask: Mask) -> None:
    found.testable[mask] = False
    chosen = source.samples.sex == MALE
    if chosen.any():
        counts = source.select(samples=chosen, snps=mask).counts()
        _place_snps(found, mask, counts.by_snp, copies=1)
        _add_samples(found, chosen, counts.by_sample)


def _add_mt(found: Tallies, source: Genotypes, mask: Mask) -> None:
    found.testable[mask] = False
    counts = source.select(snps=mask).counts()
    _place_snps(found, mask, counts.by_snp)  # many copies in a cell, which may differ: half and half, if both are seen
    _add_samples(found, slice(None), counts.by_sample)


def _place_snps(found: Tallies, mask: Mask, counts: Ints, copies: int = 2) -> None:
    two_a1, het, two_a2, missing = counts.T
    one = het if copies == 2 else 0  # who has one chromosome cannot carry both alleles: such a call says nothing
    found.a1[mask] += copies * two_a1 + one
    found.alleles[mask] += copies * (two_a1 + two_a2) + 2 * one
    found.snp_missing[mask] += missing
    found.snp_asked[mask] += counts.sum(axis=1)


def _add_samples(found: Tallies, chosen: Mask | slice, counts: Ints) -> None:
    found.sample_missing[chosen] += counts[:, 3]
    found.sample_asked[chosen] += counts.sum(axis=1)


def sums_over_missing(source: Genotypes, values: Array) -> Array:
    """Return for every sample the sum of ``values``, one for each SNP, over the SNPs where its call is missing.

    One pass over the packed bytes, which costs little where little is missing.
    """
    rows = max(1, BLOCK // max(1, source.width))
    edges = np.minimum(np.arange(0, source.shape[1] + rows, rows), source.shape[1])

    def work(spans: Sequence[tuple[int, int]]) -> Array:
        total = np.zeros(4 * source.width)
        for start, stop in spans:
            total += _missing_of(source.packed(start, stop), values[start:stop])
            source.give_back()
        return total

    parts = parallel(work, [(int(a), int(b)) for a, b in pairwise(edges)])
    return np.asarray(np.sum(parts, axis=0)[source.sample_index])


def _missing_of(packed: npt.NDArray[np.uint8], values: Array) -> Array:
    """The sums of a block: missing is 01, so its lower bit is set and its upper is not."""
    flags = (packed & ~(packed >> 1) & 0x55).ravel()
    at = np.flatnonzero(flags != 0)
    row, column = np.divmod(at, packed.shape[1])
    found, weight = flags[at], values[row]
    total = np.zeros((packed.shape[1], 4))
    for place in range(4):
        total[:, place] = np.bincount(column, weight * (found >> 2 * place & 1), packed.shape[1])
    return total.ravel()


def write_tsv(path: str | os.PathLike[str], columns: Mapping[str, Any], overwrite: bool) -> None:
    r"""Write columns between tabs under their names, with all digits and NA for NaN; the file is whole or absent.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.quality import write_tsv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tsv(Path(folder, "t.tsv"), {"id": ["rs1"], "p": [0.1]}, overwrite=False)
    ...     Path(folder, "t.tsv").read_text()
    'id\tp\nrs1\t0.1\n'
    """
    rows = zip(*(_texts(column) for column in columns.values()), strict=True)
    with write_whole(path, overwrite=overwrite) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        file.writelines("\t".join(row) + "\n" for row in rows)


def _texts(column: Any) -> list[str]:
    values = np.asarray(column)
    texts = [str(x) for x in values.tolist()]
    return ["NA" if text == "nan" else text for text in texts] if values.dtype.kind == "f" else texts


def _ratio(above: Any, below: Any) -> Array:
    """above/below, NaN where nothing was counted."""
    a, b = np.broadcast_arrays(np.asarray(above, np.float64), np.asarray(below, np.float64))
    return np.asarray(np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0))


@dataclass(frozen=True, eq=False, repr=False)
class SnpQuality:
    """Statistics of SNPs, in their order.

    Attributes
    ----------
    snps : Snps
        Which they are.
    frequency : ndarray of shape (p,)
        Of allele A1, p̂ = copies of A1/copies of both; NaN where there are none.
    minor_frequency : ndarray of shape (p,)
        min(p̂, 1 − p̂).
    missing : ndarray of int of shape (p,)
        Missing calls.
    missing_rate : ndarray of shape (p,)
        Missing calls over samples (over males on Y).
    observed_het, expected_het : ndarray of shape (p,)
        Heterozygotes over calls, and 2q̂(1 − q̂) with q̂ the frequency of A1 among them; NaN on Y and MT.
    hardy_weinberg : ndarray of shape (p,)
        Exact p-value; NaN on Y and MT.
    """

    snps: Snps
    frequency: Array
    missing: Ints
    missing_rate: Array
    observed_het: Array
    expected_het: Array
    hardy_weinberg: Array

    @property
    def minor_frequency(self) -> Array:
        """The frequency of the rarer allele."""
        return np.minimum(self.frequency, 1 - self.frequency)

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``: one row for each SNP."""
        return {
            "chromosome": self.snps.chromosome,
            "id": self.snps.id,
            "position": self.snps.position,
            "a1": self.snps.a1,
            "a2": self.snps.a2,
            "frequency": self.frequency,
            "maf": self.minor_frequency,
            "missing": self.missing,
            "missing_rate": self.missing_rate,
            "observed_het": self.observed_het,
            "expected_het": self.expected_het,
            "hwe_p": self.hardy_weinberg,
        }

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table between tabs; the file is whole or absent, and replaced only with ``overwrite``."""
        write_tsv(path, self.table(), overwrite)

    def __repr__(self) -> str:
        return f"SnpQuality: {len(self.snps)} SNPs\n{text_table(self.table())}"


@dataclass(frozen=True, eq=False, repr=False)
class SampleQuality:
    """Statistics of samples, in their order.

    Attributes
    ----------
    samples : Samples
        Who they are.
    missing : ndarray of int of shape (n,)
        Missing calls.
    missing_rate : ndarray of shape (n,)
        Missing calls over SNPs (those on Y count for males only).
    calls, het : ndarray of int of shape (n,)
        Calls and heterozygous calls on autosomes.
    het_rate : ndarray of shape (n,)
        Their ratio.
    inbreeding : ndarray of shape (n,)
        F = (O − E)/(N − E) on autosomes: N calls, O of them homozygous, E = Σ 1 − 2p̂(1 − p̂) over the called SNPs.
    """

    samples: Samples
    missing: Ints
    missing_rate: Array
    calls: Ints
    het: Ints
    het_rate: Array
    inbreeding: Array

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``: one row for each sample."""
        return {
            "fid": self.samples.fid,
            "iid": self.samples.iid,
            "missing": self.missing,
            "missing_rate": self.missing_rate,
            "calls": self.calls,
            "het": self.het,
            "het_rate": self.het_rate,
            "inbreeding": self.inbreeding,
        }

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table between tabs; the file is whole or absent, and replaced only with ``overwrite``."""
        write_tsv(path, self.table(), overwrite)

    def __repr__(self) -> str:
        return f"SampleQuality: {len(self.samples)} samples\n{text_table(self.table())}"


def snp_quality(source: Genotypes, *, mid_p: bool = False) -> SnpQuality:
    """Return allele frequency, missingness, heterozygosity and the Hardy–Weinberg test of every SNP.

    Parameters
    ----------
    source : Genotypes
        Samples and SNPs; all samples count, PLINK's default are those without parents in the file.
    mid_p : bool
        Mid-p-values of the Hardy–Weinberg test.

    Returns
    -------
    SnpQuality
        One pass over the genotypes, unless they have been counted before.

    Notes
    -----
    On X a male has one copy of an allele, and none where he is called heterozygous; heterozygosity and the
    Hardy–Weinberg test are those of all who are not males. On Y males alone are counted, with one copy, and on MT
    a heterozygous call is half of each allele: there is no test on these. Of autosomes, XY (pseudo-autosomal) and
    unplaced SNPs everybody has two copies. This is what PLINK 1.9 counts; PLINK 2 tests X by another method.

    Examples
    --------
    >>> from gramian.genetics.quality import snp_quality
    >>> from gramian.sources.plink import Genotypes
    >>> found = snp_quality(Genotypes.from_calls([[0, 1, 2, 1], [0, 0, 1, -1]]))
    >>> found.frequency.round(3), found.missing_rate, found.hardy_weinberg
    (array([0.5  , 0.167]), array([0.  , 0.25]), array([1., 1.]))
    """
    return snps_of(source, tally(source), mid_p)


def snps_of(source: Genotypes, found: Tallies, mid_p: bool) -> SnpQuality:
    """The statistics of SNPs from what was counted."""
    two_a1, het, two_a2 = found.tested.T
    calls = np.where(found.testable, two_a1 + het + two_a2, 0)
    q = _ratio(2 * two_a1 + het, 2 * calls)
    p = np.where(found.testable, hardy_weinberg(two_a1, het, two_a2, mid_p=mid_p), np.nan)
    return SnpQuality(
        snps=source.snps,
        frequency=_ratio(found.a1, found.alleles),
        missing=found.snp_missing,
        missing_rate=_ratio(found.snp_missing, found.snp_asked),
        observed_het=_ratio(het, calls),
        expected_het=2 * q * (1 - q),
        hardy_weinberg=p,
    )


def sample_quality(source: Genotypes) -> SampleQuality:
    """Return missingness, heterozygosity and the inbreeding coefficient of every sample.

    Parameters
    ----------
    source : Genotypes
        Samples and SNPs.

    Returns
    -------
    SampleQuality
        Two passes over the genotypes: F needs the allele frequencies first.

    Notes
    -----
    F compares homozygotes with what the allele frequencies of all samples lead to expect,

        F = (O − E)/(N − E),   E = Σ 1 − 2p̂(1 − p̂),

    as PLINK ``--autosome --het`` does without ``small-sample``: 0 in a well mixed population, positive where parents
    are related or the population is structured, negative where samples are mixed up in one tube. F and heterozygosity
    are of chromosomes 1 to 22; NaN where a sample has no call there, or no SNP varies.

    Examples
    --------
    >>> from gramian.genetics.quality import sample_quality
    >>> from gramian.sources.plink import Genotypes
    >>> found = sample_quality(Genotypes.from_calls([[0, 1, 2, 1], [0, 1, 1, -1]]))
    >>> found.het_rate, found.inbreeding.round(3)
    (array([0. , 1. , 0.5, 1. ]), array([ 1.   , -1.118, -0.059, -1.   ]))
    """
    return samples_of(source, tally(source))


def samples_of(source: Genotypes, found: Tallies) -> SampleQuality:
    """The statistics of samples from what was counted, and a pass over the autosomal SNPs with missing calls."""
    autosomal = is_autosomal(source.snps.chromosome)
    share = _ratio(found.a1, found.alleles)
    hom = np.where(autosomal & (found.alleles > 0), 1 - 2 * share * (1 - share), 0.0)
    gaps = autosomal & (found.snp_missing > 0)
    expected = np.full(source.shape[0], hom.sum())
    if gaps.any():
        expected -= sums_over_missing(source.select(snps=gaps), hom[gaps])
    excess = found.autosomal - found.het - expected
    return SampleQuality(
        samples=source.samples,
        missing=found.sample_missing,
        missing_rate=_ratio(found.sample_missing, found.sample_asked),
        calls=found.autosomal,
        het=found.het,
        het_rate=_ratio(found.het, found.autosomal),
        inbreeding=_ratio(excess, found.autosomal - expected),
    )
