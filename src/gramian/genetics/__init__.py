"""Genotypes: quality, principal components, projection, and the files other programs read."""

from gramian.genetics.artefacts import Artefact, ArtefactKind, Artefacts, find_artefacts
from gramian.genetics.bed_writer import BedWriter, write_bed
from gramian.genetics.cohort import CohortAnalysis, analyse_cohort, filter_cohort
from gramian.genetics.files import result_files, write_covariates, write_results
from gramian.genetics.filters import Filtered, Filters, Step
from gramian.genetics.fst import Fst, fst
from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.genetics.loadings import Loadings, read_loadings
from gramian.genetics.long_range import (
    CarryingRegion,
    RegionWarning,
    carrying_regions,
    detect_build,
    long_range_regions,
)
from gramian.genetics.matching import MatchReport, SnpMatch, match_snps
from gramian.genetics.outliers import LdRegions, Outliers, SelectionScan, find_ld_regions, find_outliers, selection_scan
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import Projection, project, write_projection
from gramian.genetics.pruning import LdPruning, clump, prune
from gramian.genetics.quality import SampleQuality, SnpQuality, sample_quality, snp_quality
from gramian.genetics.relatives import (
    Kinship,
    PcAir,
    Relationships,
    RelativeScreen,
    king,
    pc_air,
    pc_relate,
    read_grm,
    screen_relatives,
    unrelated,
    write_grm,
    write_king_files,
)
from gramian.genetics.simulation import (
    EUROPE,
    Country,
    Simulation,
    Study,
    map_plane,
    simulate_europe,
    simulate_genotypes,
)

__all__ = ["EUROPE", "Artefact", "ArtefactKind", "Artefacts", "BedWriter", "CarryingRegion", "CohortAnalysis"]
__all__ += ["Country", "Filtered", "Filters", "Fst", "GenotypePCA", "Kinship", "LdPruning", "LdRegions", "Loadings"]
__all__ += ["MatchReport", "Outliers", "PcAir", "Projection", "RegionWarning", "Relationships", "RelativeScreen"]
__all__ += ["SampleQuality", "SelectionScan", "Simulation", "SnpMatch", "SnpQuality", "Step", "Study", "analyse_cohort"]
__all__ += ["carrying_regions", "clump", "detect_build", "filter_cohort", "find_artefacts", "find_ld_regions"]
__all__ += ["find_outliers", "fst", "hardy_weinberg", "king", "long_range_regions", "map_plane", "match_snps", "pc_air"]
__all__ += ["pc_relate", "project", "prune", "read_grm", "read_loadings", "result_files", "sample_quality"]
__all__ += ["screen_relatives", "selection_scan", "simulate_europe", "simulate_genotypes", "snp_quality", "unrelated"]
__all__ += ["write_bed", "write_covariates", "write_grm", "write_king_files", "write_projection", "write_results"]
