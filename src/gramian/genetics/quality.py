"""How good genotypes are: allele frequency, missingness, heterozygosity and Hardy–Weinberg, by SNP and by sample."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._elements import text_table
from gramian.genetics._quality_tables import write_tsv
from gramian.genetics._tallies import Tallies, is_autosomal, sums_over_missing, tally
from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.sources.plink import Genotypes, Samples, Snps

__all__ = ["SampleQuality", "SnpQuality", "sample_quality", "snp_quality"]

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]


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
