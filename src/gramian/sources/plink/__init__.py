"""Genotypes in PLINK's files: packed, mapped, and checked against the names of their samples and SNPs."""

from gramian.sources.plink._counting import Counts
from gramian.sources.plink.bed import open_bed
from gramian.sources.plink.genotypes import Genotypes
from gramian.sources.plink.tables import Samples, Snps, read_bim, read_fam

__all__ = ["Counts", "Genotypes", "Samples", "Snps", "open_bed", "read_bim", "read_fam"]
