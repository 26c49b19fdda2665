"""Reports of genotype PCA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import PALETTE
from gramian.display.genetics import QuantileDisplay, place_along_genome
from gramian.display.pca import describe_scree
from gramian.display.report.assemble import (
    Common,
    Folded,
    assemble,
    find_quality,
    matrix,
    percent,
    row_cloud,
    unique_names,
)
from gramian.display.report.blocks import (
    DataTable,
    Figure,
    Report,
    ReportBlock,
    Row,
    Section,
    Text,
    hover_names,
    new_figure,
)
from gramian.display.report.cloud import Cloud, Panel, Points
from gramian.display.report.pca import COMPONENTS, score_axes, score_panels, scree_figure
from gramian.genetics.filters import genome_order
from gramian.genetics.pca import measure_components
from gramian.inputs.devices import convert_to_numpy

Matrix = NDArray[np.float64]

DRAWN = 4000  # SNPs along the genome
LARGEST = 200  # SNPs in the table
EAST, NORTH, PLACE = "longitude", "latitude", "place in the genome"


def genotype_report(
    model: Any,
    *,
    scores: Any = None,
    coordinates: Any = None,
    procrustes: Any = None,
    counts: Mapping[str, int] | None = None,
    measures: Mapping[str, Any] | None = None,
    fst: Any = None,
    snp_quality: Any = None,
    sample_quality: Any = None,
    analysis: Any = None,
    artefacts: Any = None,
    selection: Any = None,
    **common: Unpack[Common],
) -> Report:
    """Report a principal component analysis of genotypes.

    Parameters
    ----------
    model : GenotypePCA
        Fitted.
    scores : array of shape (n, k), optional
        Of the samples; eigenvectors times singular values, by default.
    coordinates : array of shape (n, 2), optional
        Longitude and latitude of the samples, NaN where unknown.
    procrustes : Procrustes, optional
        How the first two components were moved onto the coordinates.
    counts : mapping of str to int, optional
        How many SNPs and samples were in the file and dropped, and why; what the fit dropped, by default.
    measures : mapping of str to array of shape (n,), optional
        Further numbers of the samples, such as the share of missing calls.
    fst : FstMatrix, optional
        What :func:`gramian.genetics.fst.fst` found between the populations.
    snp_quality, sample_quality : SnpQuality, SampleQuality, optional
        What :mod:`gramian.genetics.quality` found of the whole file.
    analysis : CohortAnalysis, optional
        What :func:`gramian.genetics.analyse_cohort` did before.
    artefacts : Artefacts, optional
        What :func:`gramian.genetics.find_artefacts` found.
    selection : SelectionScan, optional
        What :func:`gramian.genetics.selection_scan` found.
    **common
        ``data`` (a :class:`DataFacts`), and ``run``, ``ids`` (names of the samples, by default), ``labels`` (their
        populations), ``label_name``, ``columns``, ``title``.

    Returns
    -------
    Report
        For :func:`write_report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.report import DataFacts, genotype_report
    >>> from gramian.genetics.pca import GenotypePCA
    >>> rng = np.random.default_rng(0)
    >>> G = rng.binomial(2, np.repeat(rng.uniform(0.1, 0.9, (2, 300)), 20, axis=0))
    >>> report = genotype_report(GenotypePCA(4).fit(G), labels=["A"] * 20 + ["B"] * 20, data=DataFacts("G", 40, 300))
    >>> [section.title for section in report.sections][:3]
    ['Samples', 'SNPs', 'How many components are real']
    """
    model = convert_to_numpy(model)
    Z = matrix(model.eigenvectors_ * model.singular_values_ if scores is None else scores, "scores")
    given: Common = {**common, "label_name": common.get("label_name") or "population"}
    if given.get("ids") is None and hasattr(model, "samples_"):
        given["ids"] = model.samples_.names
    shares = np.asarray(model.eigenvalues_, dtype=np.float64) / (float(model.total_variance_) or 1.0)
    chromosomes = ", ".join(genome_order(model.snps_.chromosome)) if hasattr(model, "snps_") else ""
    facts = [
        ("Components", str(Z.shape[1])),
        ("Chromosomes", chromosomes),
        ("Eigenvalues are", str(model.eigenvalue_scale_)),
    ]
    if counts is None:
        dropped = {f"SNPs left out, {why}": number for why, number in dict(model.dropped_).items() if number}
        counts = {"SNPs used": model.components_.shape[1], **dropped}
    facts += [(str(name), f"{int(number):,}") for name, number in counts.items()]
    tiles = [(f"{len(Z):,}", "samples"), (f"{model.components_.shape[1]:,}", "SNPs used")]
    significant = model.tracy_widom_.significant()
    tiles += [(percent(shares[0]), "of the variance in PC1"), (str(significant), "components beyond noise (p < 0.05)")]
    if procrustes is not None:
        tiles.append((f"{procrustes.correlation:.3f}", "Procrustes correlation with the map"))
    sections = [
        _samples_section(Z, shares, coordinates, procrustes, measures, given),
        _cohort_section(analysis, Z, given),
        _artefacts_section(artefacts),
        _fst_section(fst, given["label_name"]),
        _snps_section(model),
        _selection_section(selection),
        _rank_section(model, shares),
        _quality_section(snp_quality, sample_quality),
    ]
    quality = find_quality(given, lambda: measure_components(model))
    return assemble("Genotype PCA", model, facts, tiles, sections, given, quality)


MOST_ROWS = 500  # of a table of people or pairs


def _cohort_section(analysis: Any, Z: Matrix, common: Common) -> Section:
    """What each step left out and why, components before and after, and who and what it was."""
    title = "What was left out, and why"
    if analysis is None:
        return Section(title, [])
    blocks: list[ReportBlock] = [DataTable("steps", "Steps", analysis.table())]
    blocks += [Text(remark[0].upper() + remark[1:] + ".", "note") for remark in analysis.remarks]
    if analysis.before is not None and Z.shape[1] > 1:
        earlier = convert_to_numpy(analysis.before)
        early = np.asarray(earlier.eigenvectors_ * earlier.singular_values_, dtype=np.float64)[:, :2]
        early = early * np.where(np.sum(early * Z[:, :2], axis=0) < 0, -1.0, 1.0)  # signs are arbitrary
        axes = {"PC1 before": early[:, 0], "PC2 before": early[:, 1], "PC1 after": Z[:, 0], "PC2 after": Z[:, 1]}
        panels = [
            Panel("PC1 before", "PC2 before", "Before: everybody, all SNPs that passed the filters"),
            Panel("PC1 after", "PC2 after", "After all steps"),
        ]
        told: Common = {**common, "columns": {**(common.get("columns") or {}), "role": analysis.roles.tolist()}}
        blocks.append(row_cloud(axes, panels, "selected-before", None, told, title="sample"))
    if analysis.kinship is not None and len(analysis.kinship.first):
        pairs = analysis.kinship.table()
        order = np.argsort(-np.nan_to_num(pairs["KINSHIP"]), kind="stable")[:MOST_ROWS]
        note = f"{len(order):,} of {len(analysis.kinship.first):,} pairs." * (len(order) < len(pairs["KINSHIP"]))
        rows = {name: np.asarray(column)[order] for name, column in pairs.items()}
        blocks.append(Folded("Relatives", DataTable("relatives", "The closest pairs first", rows, note=note)))
    if analysis.outliers is not None and len(analysis.outliers.rows):
        rows = {name: np.asarray(column)[:MOST_ROWS] for name, column in analysis.outliers.table().items()}
        caption = "Round, component that condemned them, and by how much"
        blocks.append(Folded("Outliers", DataTable("outliers", caption, rows)))
    if analysis.regions is not None and analysis.regions.regions:
        blocks.append(Folded("Regions", DataTable("regions", "Found by their loadings", analysis.regions.table())))
    lead = (
        f"Components were found from {analysis.fitted.sum():,} of {len(analysis.fitted):,} people; "
        f"{analysis.related.sum():,} relatives and {analysis.outlying.sum():,} outliers were projected on them."
    )
    return Section(title, blocks, lead)


def _artefacts_section(artefacts: Any) -> Section:
    """What else than ancestry the components may show, and how far it was looked for."""
    title = "What else the components may show"
    if artefacts is None:
        return Section(title, [])
    screen = artefacts.relatives
    looked = (
        f"{screen.compared:,} people were compared for relatives at {screen.snps:,} SNPs; one person's share of each "
        "component, missing calls, sex and regions of the genome were looked at."
    )
    if not artefacts.found:
        return Section(title, [Text("Nothing was found. That proves nothing: see the components.", "note")], looked)
    blocks: list[ReportBlock] = [DataTable("artefacts", "Found", artefacts.table())]
    pairs = screen.pairs
    if len(pairs.first):
        table = pairs.table()
        order = np.argsort(-np.nan_to_num(table["KINSHIP"]), kind="stable")[:MOST_ROWS]
        rows = {name: np.asarray(column)[order] for name, column in table.items()}
        blocks.append(Folded("Relatives in the fit", DataTable("related", "The closest pairs first", rows)))
    return Section(title, blocks, looked)


def _fst_section(fst: Any, name: str) -> Section:
    """F_ST of every pair of populations: as a table of both ways, and pair by pair."""
    title = "Differentiation"
    if fst is None:
        return Section(title, [])
    groups = [str(group) for group in fst.groups]
    values = np.where(np.eye(len(groups), dtype=bool), 0.0, np.asarray(fst.matrix, dtype=float))
    square: dict[str, Any] = {name: groups}
    square |= {head: values[:, j] for j, head in enumerate(unique_names(groups, [name]))}
    both = DataTable("fst-matrix", f"F_ST by {name}", square, shaded=list(square)[1:])
    pairs = fst.table()
    order = np.argsort(-np.nan_to_num(pairs["fst"]), kind="stable")
    each = DataTable("fst", "Every pair, the most different first", {k: np.asarray(v)[order] for k, v in pairs.items()})
    lead = (
        f"{fst.method} F_ST, the share of the variance of allele frequencies that lies between two populations; mean "
    )
    return Section(title, [both, Folded("Every pair", each)], f"{lead}{fst.mean:.4g}.")


def _quality_section(snps: Any, samples: Any) -> Section:
    """How complete calls are, how frequent alleles, how far from Hardy–Weinberg; and the samples that stand out."""
    figures: list[ReportBlock] = []
    if snps is not None:
        for head, values in (("minor allele frequency", snps.minor_frequency), ("missing calls", snps.missing_rate)):
            figures.append(Figure(f"SNPs: {head}", partial(histogram_figure, values, head, "SNPs")))
    if samples is not None:
        for head, values in (("missing calls", samples.missing_rate), ("inbreeding F", samples.inbreeding)):
            figures.append(Figure(f"Samples: {head}", partial(histogram_figure, values, head, "samples")))
    blocks: list[ReportBlock] = [Row(figures)] if figures else []
    if snps is not None:
        table = snps.table()
        order = np.argsort(np.nan_to_num(np.asarray(table["hwe_p"], dtype=float), nan=1.0), kind="stable")[:LARGEST]
        cells = {name: np.asarray(column)[order] for name, column in table.items()}
        note = f"{len(order):,} of {len(snps.minor_frequency):,} SNPs."
        caption = "SNPs farthest from Hardy–Weinberg proportions"
        blocks.append(DataTable("snp-quality", caption, cells, note=note, chances=("hwe_p",)))
    if samples is not None:
        table = samples.table()
        order = np.argsort(-np.nan_to_num(np.abs(np.asarray(table["inbreeding"], dtype=float))), kind="stable")[
            :LARGEST
        ]
        cells = {name: np.asarray(column)[order] for name, column in table.items()}
        note = f"{len(order):,} of {len(samples.missing_rate):,} samples."
        blocks.append(DataTable("sample-quality", "Samples with the largest |F|", cells, note=note))
    return Section("Quality of the genotypes", blocks, "Of all SNPs and samples of the file, used or not.")


def histogram_figure(values: Any, x_label: str, y_label: str) -> Any:
    """How many have each value."""
    known = np.asarray(values, dtype=float)
    counts, edges = np.histogram(known[np.isfinite(known)], bins=40)
    figure = new_figure(x_label, y_label, height=260)
    source = {"left": edges[:-1], "right": edges[1:], "count": counts}
    bars = figure.quad("left", "right", "count", 0, source=source, fill_color=PALETTE[0], line_color="white")
    hover_names(figure, [bars], [("from", "@left"), ("to", "@right"), (y_label, "@count{0,0}")])
    figure.y_range.start = 0
    return figure


def _samples_section(
    Z: Matrix, shares: Matrix, coordinates: Any, procrustes: Any, measures: Mapping[str, Any] | None, common: Common
) -> Section:
    k = min(Z.shape[1], COMPONENTS)
    axes, wordy = score_axes(Z, shares)
    panels = score_panels(k)
    if coordinates is not None:
        place = matrix(coordinates, "coordinates")
        axes |= {EAST: place[:, 0], NORTH: place[:, 1]}
        panels = [replace(panels[0], title="Principal components"), Panel(EAST, NORTH, "Where the samples come from")]
    lead = "Each point is one sample; samples of like ancestry lie together."
    if procrustes is not None and k > 1:
        moved = procrustes.apply(Z[:, :2])
        axes |= {"moved PC, east": moved[:, 0], "moved PC, north": moved[:, 1]}
        panels = [replace(panel, title=panel.title or "Principal components") for panel in panels]
        panels.append(Panel("moved PC, east", "moved PC, north", "PC1 and PC2 moved onto the map"))
        lead += " Turned, scaled and shifted, the first two components agree with the map with a Procrustes correlation"
        lead += f" of {procrustes.correlation:.3f}"
        lead += "." if np.isnan(procrustes.p_value) else f" (permutation p = {procrustes.p_value:.2g})."
    alike = [f"PC{j + 1}" for j in range(k)]
    cloud = row_cloud(axes, panels, "selected-samples", measures, common, wordy=wordy, title="sample", alike=alike)
    return Section("Samples", [cloud], lead)


def _rank_section(model: Any, shares: Matrix) -> Section:
    every = getattr(model, "all_eigenvalues_", None)
    whole = shares if every is None else np.asarray(every, dtype=np.float64) / (float(model.total_variance_) or 1.0)
    data = describe_scree(shares, whole=whole)
    table = {name: np.asarray(column)[: max(len(shares), 20)] for name, column in model.tracy_widom_.table().items()}
    text = (
        f"{model.tracy_widom_.significant()} components have a Tracy–Widom p-value below 0.05, counted up to the first "
        "that has not: structure that chance would not make in one population (Patterson, Price and Reich 2006)."
    )
    figure = Figure("Scree", lambda: scree_figure(data), "Share of the total variance.")
    tests = DataTable("tracy-widom", "Tracy–Widom table", table, chances=("p_value",))
    return Section("How many components are real", [Text(text), Row([figure, tests])])


def _selection_section(scan: Any) -> Section:
    """Tests along the genome, how they are calibrated, and the SNPs that stand out most."""
    title = "Selection"
    if scan is None:
        return Section(title, [])
    heights = -np.log10(np.maximum(np.asarray(scan.p_values, dtype=np.float64), 1e-300))
    place, ticks = place_along_genome(scan.snps.chromosome, scan.snps.position)
    top = np.argsort(-heights.max(axis=1), kind="stable")
    some = np.sort(top[:DRAWN])
    names = [f"−log₁₀ p, {name}" for name in scan.names]
    axes: dict[str, Any] = {PLACE: place[some]} | {name: heights[some, j] for j, name in enumerate(names)}
    chromosome = np.array([str(name) for name in scan.snps.chromosome], dtype=object)
    points = Points(
        axes,
        names=[str(name) for name in scan.snps.id[some]],
        groups={"chromosome": chromosome[some]},
        title="SNP",
        numbers=some,
        totals={"chromosome": Counter(chromosome.tolist())},
        wordy={PLACE: "chromosome"},
    )
    panels = [Panel(PLACE, name, choose="y", ticks=ticks) for name in names[:1]]
    blocks: list[ReportBlock] = [Cloud(points, panels, "chromosome", "selected-tests")]
    curves = [
        Figure(f"{name}: λ_GC = {inflation:.3f}", partial(_quantile_figure, scan.p_values[:, j]))
        for j, (name, inflation) in enumerate(zip(scan.names, scan.inflation, strict=True))
    ]
    blocks.append(Row(curves[:4]))
    table = {name: np.asarray(column)[top[:LARGEST]] for name, column in scan.table().items()}
    chances = tuple(name for name in table if name.endswith("_P"))
    blocks.append(DataTable("selection", "SNPs that stand out most", table, chances=chances))
    lead = (
        "SNPs that differ along a component by more than drift explains. A curve that leaves the line at small values, "
        "or a λ_GC far from 1, says that the test is not calibrated for these data."
    )
    return Section(title, blocks, lead)


def _quantile_figure(p_values: Any) -> Any:
    """Observed over expected p-values."""
    data = QuantileDisplay(p_values)
    figure = new_figure("expected −log₁₀ p", "observed −log₁₀ p", height=260)
    some = np.unique(np.concatenate([np.arange(min(1000, len(data.expected))), np.arange(0, len(data.expected), 50)]))
    some = some[some < len(data.expected)]
    figure.scatter(data.expected[some], data.observed[some], size=4, color=PALETTE[0], line_color=None)
    end = float(data.expected[0])
    figure.line([0, end], [0, end], line_color=PALETTE[1], line_dash="dashed")
    return figure


def _snps_section(model: Any) -> Section:
    """Loadings along the genome, and the largest of them: what a component is made of."""
    snps, V = model.snps_, np.asarray(model.components_, dtype=np.float64)[:COMPONENTS]
    names = [f"PC{j + 1}" for j in range(len(V))]
    size = np.max(np.abs(V), axis=0)
    top = np.argsort(-size, kind="stable")
    some = np.sort(top[:DRAWN])
    ids, chromosome, a1 = (
        np.array([str(name) for name in column], dtype=object) for column in (snps.id, snps.chromosome, snps.a1)
    )
    place, ticks = place_along_genome(chromosome, snps.position)
    axes: dict[str, Any] = {PLACE: place[some]} | {name: V[j, some] for j, name in enumerate(names)}
    groups, counts = {"chromosome": chromosome[some]}, Counter(chromosome.tolist())
    panels = [Panel(PLACE, name, choose="y", ticks=ticks) for name in names[:2]]
    told: dict[str, Any] = {"numbers": some, "totals": {"chromosome": counts}, "wordy": {PLACE: "chromosome"}}
    points = Points(axes, names=ids[some].tolist(), groups=groups, title="SNP", **told)
    cloud = Cloud(points, panels, "chromosome", "selected-snps")
    largest = top[:LARGEST]
    columns = {"SNP": ids, "chromosome": chromosome, "position": snps.position, "A1": a1}
    columns |= {"frequency": model.allele_frequency_, **dict(zip(names, V, strict=True))}
    table = {name: np.asarray(column)[largest] for name, column in columns.items()}
    lead = "A component whose large loadings lie in one region of the genome tells of that region, not of ancestry."
    note = f"The {len(largest):,} of {V.shape[1]:,} with the largest loadings."
    drawn = f"The {len(some):,} SNPs with the largest loadings are drawn, of {V.shape[1]:,}; the legend counts all."
    shown = DataTable("snps", "Largest loadings", table, shaded=names, note=note)
    return Section("SNPs", [cloud, Text(drawn if len(some) < V.shape[1] else "", "note"), shown], lead)
