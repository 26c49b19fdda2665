"""How good genotypes are: allele frequency, missingness, heterozygosity and Hardy–Weinberg, by SNP and by sample."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import add_to, parallel_sum
from gramian.genetics.genotypes import is_autosomal
from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.genetics.text import write_tsv
from gramian.results.tables import Tabular
from gramian.sources.plink import Genotypes, Samples, Snps

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]

MALE = 1
BLOCK = 2**20  # packed bytes looked at together


class TableFile(Tabular):
    """A result that can be written as a table between tabs."""

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table between tabs; the file is whole or absent, and replaced only with ``overwrite``."""
        write_tsv(path, self.table(), overwrite)


@dataclass(frozen=True, eq=False, repr=False)
class SnpQuality(TableFile):
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
        places = {name: getattr(self.snps, name) for name in ("chromosome", "id", "position", "a1", "a2")}
        shares = {"frequency": self.frequency, "maf": self.minor_frequency}
        names = ("missing", "missing_rate", "observed_het", "expected_het")
        return places | shares | {name: getattr(self, name) for name in names} | {"hwe_p": self.hardy_weinberg}

    def _title(self) -> str:
        return f"SnpQuality: {len(self.snps)} SNPs"


@dataclass(frozen=True, eq=False, repr=False)
class SampleQuality(TableFile):
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
        names = ("missing", "missing_rate", "calls", "het", "het_rate", "inbreeding")
        who = {"fid": self.samples.fid, "iid": self.samples.iid}
        return who | {name: getattr(self, name) for name in names}

    def _title(self) -> str:
        return f"SampleQuality: {len(self.samples)} samples"


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
    found = tally(source)
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
    found, autosomal = tally(source), is_autosomal(source.snps)
    share = _ratio(found.a1, found.alleles)
    hom = np.where(autosomal & (found.alleles > 0), 1 - 2 * share * (1 - share), 0.0)
    gaps = autosomal & (found.snp_missing > 0)
    expected = np.full(source.shape[0], hom.sum())
    if gaps.any():
        expected -= _sum_over_missing(source.select(snps=gaps), hom[gaps])
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


def _ratio(above: Any, below: Any) -> Array:
    """above/below, NaN where nothing was counted."""
    a, b = np.broadcast_arrays(np.asarray(above, np.float64), np.asarray(below, np.float64))
    return np.asarray(np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0))


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


def tally(source: Genotypes) -> Tallies:
    """Count genotypes as PLINK does.

    On X males have one copy, and a male heterozygote none; all others have two, and they are tested. On Y only males
    are counted, with one copy. On MT a heterozygous call (heteroplasmy) is half of each allele, and nobody is tested.
    Of all else (autosomes, XY, unplaced) everybody has two copies.
    """
    n, p = source.shape
    by_snp, by_sample = np.zeros((4, p), np.int64), np.zeros((4, n), np.int64)
    a1, alleles, snp_missing, snp_asked = by_snp
    found = Tallies(a1, alleles, np.zeros((p, 3), np.int64), np.ones(p, np.bool_), snp_missing, snp_asked, *by_sample)
    chromosome = source.snps.chromosome.astype(str)
    X, Y, MT = (chromosome == name for name in ("X", "Y", "MT"))
    autosomal, male = is_autosomal(source.snps), source.samples.sex == MALE
    found.testable[Y | MT] = False
    # SNPs, samples (None: everybody), copies of an allele, whether their proportions are tested
    for snps, people, copies, is_tested in (
        (autosomal, None, 2, True),
        (~(autosomal | X | Y | MT), None, 2, True),
        (X, male, 1, False),
        (X, ~male, 2, True),
        (Y, male, 1, False),
        (MT, None, 2, False),  # many copies in a cell, which may differ: half and half, if both are seen
    ):
        if not snps.any() or (people is not None and not people.any()):
            continue
        whole = people is None and bool(snps.all())
        counts = (source if whole else source.select(samples=people, snps=snps)).counts()
        two_a1, het, two_a2, missing = counts.by_snp.T
        one = het if copies == 2 else 0  # who has one chromosome cannot carry both alleles: such a call says nothing
        found.a1[snps] += copies * two_a1 + one
        found.alleles[snps] += copies * (two_a1 + two_a2) + 2 * one
        found.snp_missing[snps] += missing
        found.snp_asked[snps] += counts.by_snp.sum(axis=1)
        who = slice(None) if people is None else people
        found.sample_missing[who] += counts.by_sample[:, 3]
        found.sample_asked[who] += counts.by_sample.sum(axis=1)
        if is_tested:
            found.tested[snps] = counts.by_snp[:, :3]
        if snps is autosomal:
            found.het[:] += counts.by_sample[:, 1]
            found.autosomal[:] += counts.by_sample[:, :3].sum(axis=1)
    return found


def _sum_over_missing(source: Genotypes, values: Array) -> Array:
    """Return for every sample the sum of ``values``, one for each SNP, over the SNPs where its call is missing.

    One pass over the packed bytes, which costs little where little is missing.
    """

    def work(spans: Sequence[tuple[int, int]]) -> Array:
        total = np.zeros((source.width, 4))
        for start, stop in spans:
            packed = source.packed(start, stop)
            flags = (packed & ~(packed >> 1) & 0x55).ravel()  # missing is 01: its lower bit is set, its upper is not
            at = np.flatnonzero(flags != 0)
            row, column = np.divmod(at, source.width)
            found, weight = flags[at], values[start:stop][row]
            for place in range(4):
                total[:, place] += np.bincount(column, weight * (found >> 2 * place & 1), source.width)
            source.give_back()
        return total.ravel()

    total = parallel_sum(work, source.spans(max(1, BLOCK // max(1, source.width))), add_to)
    return np.asarray(total[source.sample_index])
