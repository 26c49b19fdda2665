"""Genotype counts by the copies of a chromosome that people have, from one reading of the genotypes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import parallel
from gramian.sources.plink import Genotypes

__all__ = ["AUTOSOMES", "Tallies", "is_autosomal", "sums_over_missing", "tally"]

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
