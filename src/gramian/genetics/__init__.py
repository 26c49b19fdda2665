"""Genotypes: quality, principal components, projection, and the files other programs read."""

from gramian.genetics.bed_writer import BedWriter, write_bed
from gramian.genetics.countries import EUROPE, Country, Study, map_plane, simulate_europe
from gramian.genetics.covariates import write_covariates
from gramian.genetics.files import result_files, write_results
from gramian.genetics.filters import Filtered, Filters, Step
from gramian.genetics.fst import Fst, fst
from gramian.genetics.grm import Relationships, read_grm, write_grm
from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.genetics.ld_regions import LdRegions, find_ld_regions
from gramian.genetics.loadings import Loadings, read_loadings
from gramian.genetics.long_range import (
    CarryingRegion,
    RegionWarning,
    carrying_regions,
    detect_build,
    long_range_regions,
)
from gramian.genetics.matching import MatchReport, SnpMatch, match_snps
from gramian.genetics.outliers import Outliers, find_outliers
from gramian.genetics.pc_air import PcAir, pc_air, pc_relate
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import Projection, project, write_projection
from gramian.genetics.pruning import LdPruning, clump, prune
from gramian.genetics.quality import SampleQuality, SnpQuality, sample_quality, snp_quality
from gramian.genetics.relatives import Kinship, king, unrelated, write_king_files
from gramian.genetics.selection import SelectionScan, selection_scan
from gramian.genetics.simulation import Simulation, simulate_genotypes

__all__ = [
    "EUROPE",
    "BedWriter",
    "CarryingRegion",
    "Country",
    "Filtered",
    "Filters",
    "Fst",
    "GenotypePCA",
    "Kinship",
    "LdPruning",
    "LdRegions",
    "Loadings",
    "MatchReport",
    "Outliers",
    "PcAir",
    "Projection",
    "RegionWarning",
    "Relationships",
    "SampleQuality",
    "SelectionScan",
    "Simulation",
    "SnpMatch",
    "SnpQuality",
    "Step",
    "Study",
    "carrying_regions",
    "clump",
    "detect_build",
    "find_ld_regions",
    "find_outliers",
    "fst",
    "hardy_weinberg",
    "king",
    "long_range_regions",
    "map_plane",
    "match_snps",
    "pc_air",
    "pc_relate",
    "project",
    "prune",
    "read_grm",
    "read_loadings",
    "result_files",
    "sample_quality",
    "selection_scan",
    "simulate_europe",
    "simulate_genotypes",
    "snp_quality",
    "unrelated",
    "write_bed",
    "write_covariates",
    "write_grm",
    "write_king_files",
    "write_projection",
    "write_results",
]
