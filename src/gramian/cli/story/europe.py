"""The story's end: the genes of simulated people draw the map of Europe."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from gramian import GenotypePCA
from gramian.display import MapDisplay
from gramian.genetics.countries import simulate_europe
from gramian.pca.subspaces import Procrustes, procrustes

__all__ = ["europe"]


def europe(people: int = 1400, n_snps: int = 20_000) -> tuple[MapDisplay, GenotypePCA, Procrustes]:
    """Draw simulated people at their first two components, moved onto the map of where they live."""
    with TemporaryDirectory() as folder:
        study = simulate_europe(Path(folder, "europe.bed"), n_snps, people=people)
        model = GenotypePCA(2).fit(study.genotypes)
    scores = model.eigenvectors_
    alignment = procrustes(scores, study.positions, n_permutations=999, random_state=0)
    axes = ("east, in degrees of latitude", "north")
    picture = MapDisplay.from_alignment(alignment, scores, study.positions, labels=study.country, names=axes)
    picture.ax_.set_title(f"Simulated people, Procrustes correlation {alignment.correlation:.3f}", loc="left")
    return picture, model, alignment
