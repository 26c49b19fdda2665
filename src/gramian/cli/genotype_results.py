"""What a genotype PCA hands out: files other programs read, tables, pictures, a report, and lines on the screen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gramian.cli.genotype_options import PREFIX, GenotypeOutput, Plan, Study
from gramian.cli.output import CHECKSUM_MOST, Results, listed, screen_table, without_folders
from gramian.cli.reading import input_name
from gramian.display import MapDisplay, ScoreDisplay, ScreeDisplay
from gramian.display.report import DataFacts, genotype_report
from gramian.genetics.countries import map_plane
from gramian.genetics.files import write_results
from gramian.genetics.fst import Fst
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.quality import sample_quality, snp_quality, write_tsv
from gramian.pca.subspaces import procrustes
from gramian.sources.kinds import checksum

__all__ = ["Map", "genotype_facts", "genotype_results", "mapped"]

PERMUTATIONS = 999
SMALLEST = 1e-300  # p-values below are 0 in float64


class GenotypeFacts(DataFacts):
    """What was fitted on, in samples and SNPs."""

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.rows:,} sample{'s' * (self.rows != 1)} × {self.columns:,} SNP{'s' * (self.columns != 1)}"


def genotype_facts(study: Study) -> DataFacts:
    """What a report says of the data; the checksum is that of the .bed file."""
    n, p = study.source.shape
    large = study.path.stat().st_size > CHECKSUM_MOST
    notes = [*study.notes, *(["no checksum: the file is large"] if large else [])]
    return GenotypeFacts(without_folders(input_name(study.path)), n, p, "" if large else checksum(study.path), notes)


@dataclass(frozen=True, eq=False)
class Map:
    """The first two components beside the places where the samples come from.

    Attributes
    ----------
    alignment : Procrustes
        How scores were moved onto places in a plane where a degree is as long in both directions.
    rows : ndarray of bool
        Samples with a place.
    places, found : ndarray of shape (m, 2)
        Longitude and latitude of these, true and found from the genotypes.
    """

    alignment: Any
    rows: NDArray[np.bool_]
    places: NDArray[np.float64]
    found: NDArray[np.float64]


def mapped(scores: NDArray[Any], places: NDArray[np.float64] | None, seed: int) -> Map | None:
    """Move the first two components onto the map; None where there are no places or one component."""
    if places is None or scores.shape[1] < 2:
        return None
    rows = np.asarray(np.isfinite(places).all(axis=1))
    if rows.sum() < 3 or not np.ptp(places[rows], axis=0).any():
        return None
    longitude, latitude = places[rows].T
    Z = scores[rows, :2]
    fit = procrustes(Z, map_plane(latitude, longitude), n_permutations=PERMUTATIONS, random_state=seed)
    width = math.cos(math.radians(float(latitude.mean())))
    return Map(fit, rows, places[rows], fit.apply(Z) / [width, 1.0])


def genotype_results(
    study: Study,
    model: GenotypePCA,
    output: GenotypeOutput,
    place: Map | None,
    groups: Fst | None,
    plan: Plan,
    seconds: float,
) -> Results:
    """Everything that is written, drawn and printed."""
    scores = np.asarray(model.eigenvectors_ * model.singular_values_, dtype=np.float64)
    labels = listed(study.labels.groups)
    return Results(
        "pca",
        (),
        model,
        {"": model.certificate_},
        {},
        pictures(study, model, scores, place),
        partial(
            genotype_report,
            model,
            scores=scores,
            coordinates=None if place is None else study.labels.places,
            procrustes=None if place is None else place.alignment,
            counts=study.counts(),
            measures={"missing": study.missing},
            ids=model.samples_.names,
            labels=labels,
            label_name=study.labels.name,
            columns=study.labels.columns or None,
        ),
        _summary(study, model, place, groups, plan),
        _shown(study, model, place, groups, plan, seconds),
        files=partial(_write, study, model, output, groups),
    )


def pictures(study: Study, model: GenotypePCA, scores: Any, place: Map | None) -> dict[str, Callable[[], Any]]:
    """What draws each picture."""
    labels = listed(study.labels.groups)
    drawn: dict[str, Callable[[], Any]] = {
        "scree": partial(ScreeDisplay.from_estimator, model),
        "scores": partial(
            ScoreDisplay.from_predictions,
            scores,
            model=model,
            labels=labels,
            legend_title=None if labels is None else study.labels.name,
        ),
    }
    if place is not None:
        near = None if study.labels.groups is None else listed(study.labels.groups[place.rows])
        drawn["map"] = partial(MapDisplay, place.found, place.places, labels=near, geographic=True)
        drawn["map"] = partial(_plotted, drawn["map"])
    return drawn


def _plotted(make: Callable[[], Any]) -> Any:
    return make().plot()


def _write(study: Study, model: GenotypePCA, output: GenotypeOutput, groups: Fst | None, folder: Path) -> None:
    labels = listed(study.labels.groups)
    known = None if labels is None else [name or "???" for name in labels]
    write_results(model, folder / PREFIX, output.formats, labels=known)
    write_tsv(folder / "tracy_widom.tsv", model.tracy_widom_.table(), overwrite=False)
    write_tsv(folder / "filters.tsv", study.account(), overwrite=False)
    if groups is not None:
        write_tsv(folder / "fst.tsv", groups.table(), overwrite=False)
    if output.quality:
        whole, used = study.whole, study.source
        snps, samples = (np.zeros(size, dtype=bool) for size in whole.shape[::-1])
        snps[used.snp_index], samples[used.sample_index] = True, True
        write_tsv(folder / "snp_quality.tsv", {**snp_quality(whole).table(), "used": snps}, overwrite=False)
        write_tsv(folder / "sample_quality.tsv", {**sample_quality(whole).table(), "used": samples}, overwrite=False)


def effective_markers(model: GenotypePCA) -> tuple[int, float, float]:
    """After how many components, the effective number of markers, and its standard error; NaN if nothing is tested."""
    each = model.tracy_widom_.effective_n
    if not len(each):  # two samples, or one SNP
        return 0, math.nan, math.nan
    after = min(model.n_separated_, len(each) - 1)
    return after, float(each[after]), float(each[after] * model.effective_markers_error_)


def _columns(model: GenotypePCA) -> dict[str, Any]:
    """A row for each component; NaN where nothing is left to compare an eigenvalue with."""
    k, table = len(model.eigenvalues_), model.tracy_widom_
    short = max(0, k - len(table.statistics))
    pad = [np.nan] * short
    return {
        "component": [f"PC{j + 1}" for j in range(k)],
        "eigenvalue": np.asarray(model.eigenvalues_),
        "share": np.asarray(model.explained_variance_ratio_),
        "residual": np.asarray(model.certificate_.residuals),
        "tracy_widom": np.array([*table.statistics[:k], *pad]),
        "p_value": np.array([*table.p_values[:k], *pad]),
    }


def _summary(study: Study, model: GenotypePCA, place: Map | None, groups: Fst | None, plan: Plan) -> dict[str, Any]:
    after, markers, error = effective_markers(model)
    found: dict[str, Any] = {
        "n_components": len(model.eigenvalues_),
        "samples": study.source.shape[0],
        "snps": study.source.shape[1],
        "filters": study.account(),
        "left_out": study.filtered.left_out,
        "eigenvalue_scale": model.eigenvalue_scale_,
        "components": _columns(model),
        "total_variance": model.total_variance_,
        "significant": model.tracy_widom_.significant(),
        "separated": model.n_separated_,
        "effective_markers": {"value": markers, "standard_error": error, "after_components": after},
        "predicted_memory": plan.nbytes,
    }
    if place is not None:
        fit = place.alignment
        found["procrustes"] = {
            "correlation": fit.correlation,
            "p_value": fit.p_value,
            "r_squared": fit.r_squared,
            "samples": int(place.rows.sum()),
        }
    return found | ({} if groups is None else {"fst": groups.table()})


def _shown(
    study: Study, model: GenotypePCA, place: Map | None, groups: Fst | None, plan: Plan, seconds: float
) -> list[RenderableType]:
    shown: list[RenderableType] = [screen_table("Left out", study.account(), most=20), _eigenvalues(model)]
    after, markers, error = effective_markers(model)
    spread = f" ± {error:,.0f}" if error else ""
    k = len(model.eigenvalues_)
    lines = [
        f"Eigenvalues: {model.eigenvalue_scale_.removeprefix('eigenvalues ')}",
        f"Significant: {_significant(model, k)} (Tracy–Widom p < 0.05)",
        f"Effective number of markers: {markers:,.0f}{spread} of {study.source.shape[1]:,}, {_after(after)}",
    ]
    if place is not None:
        fit = place.alignment
        lines.append(
            f"Procrustes correlation of PC1 and PC2 with the map: {fit.correlation:.4f} "
            f"(p = {fit.p_value:.2g} by {PERMUTATIONS} permutations, {place.rows.sum():,} samples)"
        )
    if groups is not None:
        shown.append(screen_table(f"F_ST by {study.labels.name} (Hudson), mean {groups.mean:.4g}", groups.table()))
    lines.append(
        f"Time of the fit: {seconds:.1f} s, {model.certificate_.passes} passes over the genotypes; {plan.text}"
    )
    return [*shown, *(Padding(Text(line), (0, 0, 0, 2)) for line in lines)]


def _significant(model: GenotypePCA, k: int) -> str:
    count, tested = model.tracy_widom_.significant(), len(model.tracy_widom_.p_values)
    if count == tested == k < min(model.n_samples_ - 1, len(model.components_.T)):
        return f"all {k} that were computed, and perhaps more"
    return f"{count} component{'s' * (count != 1)}" + (f", {k} of them computed" if count > k else "")


def _after(count: int) -> str:
    if count < 2:
        return "without the first component" if count else "of all eigenvalues"
    return f"without the first {count} components"


def _eigenvalues(model: GenotypePCA, most: int = 20) -> Table:
    table = Table(title="Components", box=rich.box.SIMPLE_HEAD, title_justify="left")
    heads = ("component", "eigenvalue", "share", "residual", "Tracy–Widom", "p-value", "")
    for head in heads:
        table.add_column(head, justify="left" if not head else "right")
    rows = list(zip(*_columns(model).values(), strict=True))
    for j, (name, value, share, residual, statistic, p) in enumerate(rows[:most]):
        where = "" if j < model.n_separated_ else "noise"
        numbers = (f"{value:.6g}", f"{share:.2%}", f"{residual:.1e}", _number(statistic, ".3f"), _probability(p))
        table.add_row(name, *numbers, where)
    if len(rows) > most:
        table.add_row(*["…"] * (len(heads) - 1), "")
    return table


def _probability(p: float) -> str:
    return f"< {SMALLEST:g}" if p < SMALLEST else _number(p, ".2g")


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)
