"""Genotypes: quality, principal components, projection, and the files other programs read."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.genetics.ancestry import (
        Ancestry,
        AncestryShares,
        ancestry_shares,
        classify_ancestry,
        group_frequencies,
    )
    from gramian.genetics.artefacts import Artefact, ArtefactKind, Artefacts, find_artefacts
    from gramian.genetics.bed_writer import BedWriter, write_bed
    from gramian.genetics.cohort import CohortAnalysis, analyse_cohort, filter_cohort
    from gramian.genetics.files import result_files, write_covariates, write_results
    from gramian.genetics.filters import Filtered, Filters, Step
    from gramian.genetics.fst import Fst, fst
    from gramian.genetics.hardy_weinberg import hardy_weinberg
    from gramian.genetics.heritability import Heritability, heritability
    from gramian.genetics.loadings import Loadings, read_loadings
    from gramian.genetics.long_range import (
        CarryingRegion,
        RegionWarning,
        carrying_regions,
        detect_build,
        long_range_regions,
    )
    from gramian.genetics.matching import MatchReport, SnpMatch, match_snps
    from gramian.genetics.outliers import (
        LdRegions,
        Outliers,
        SelectionScan,
        find_ld_regions,
        find_outliers,
        selection_scan,
    )
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
    from gramian.genetics.whole_genome import WholeGenomePredictions, whole_genome_ridge, write_loco
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["EUROPE", "Ancestry", "AncestryShares", "Artefact", "ArtefactKind", "Artefacts", "BedWriter"]
__all__ += ["CarryingRegion", "CohortAnalysis", "Country", "Filtered", "Filters", "Fst", "GenotypePCA", "Heritability"]
__all__ += ["Kinship", "LdPruning", "LdRegions", "Loadings", "MatchReport", "Outliers", "PcAir", "Projection"]
__all__ += ["RegionWarning", "Relationships", "RelativeScreen", "SampleQuality", "SelectionScan", "Simulation"]
__all__ += ["SnpMatch", "SnpQuality", "Step", "Study", "WholeGenomePredictions", "analyse_cohort", "ancestry_shares"]
__all__ += ["carrying_regions", "classify_ancestry", "clump", "detect_build", "filter_cohort", "find_artefacts"]
__all__ += ["find_ld_regions", "find_outliers", "fst", "group_frequencies", "hardy_weinberg", "heritability", "king"]
__all__ += ["long_range_regions", "map_plane", "match_snps", "pc_air", "pc_relate", "project", "prune", "read_grm"]
__all__ += ["read_loadings", "result_files", "sample_quality", "screen_relatives", "selection_scan", "simulate_europe"]
__all__ += ["simulate_genotypes", "snp_quality", "unrelated", "whole_genome_ridge", "write_bed", "write_covariates"]
__all__ += ["write_grm", "write_king_files", "write_loco", "write_projection", "write_results"]
