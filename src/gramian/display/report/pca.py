"""Reports of principal components, of data and of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import PALETTE, component_name, names_of_columns
from gramian.display.pca import ScreeData, describe_scree
from gramian.display.report.assemble import Common, assemble, matrix, percent, row_cloud
from gramian.display.report.blocks import (
    FAINT,
    DataTable,
    Figure,
    Report,
    ReportBlock,
    Row,
    Section,
    Text,
    bokeh_module,
    hover_names,
    new_figure,
)
from gramian.display.report.cloud import Cloud, Panel, Points
from gramian.inputs.devices import convert_to_numpy
from gramian.results import SpectralCertificate

SHOWN = 40  # components drawn


def scree_figure(data: ScreeData, label: str = "share of the variance") -> Any:
    """Draw shares of the variance, those of components not kept in grey, and where each rule stops."""
    models, values = bokeh_module("models"), data.shares[:SHOWN]
    number = np.arange(1, len(values) + 1)
    figure = new_figure("component", label, height=340, x_range=(0.3, len(values) + 0.7))
    columns = {
        "k": number,
        "share": values,
        "colour": [PALETTE[0] if k <= data.kept else "#c9cdd4" for k in number],
        "text": [f"{100 * share:.3g} %" for share in values],
        "total": [f"{100 * total:.4g} %" for total in np.cumsum(values)],
    }
    bars = figure.vbar("k", width=0.75, top="share", color="colour", source=models.ColumnDataSource(columns))
    tallest = float(values.max(initial=0.0))
    if data.threshold is not None:
        threshold = data.threshold[: len(values)]
        figure.line(number[: len(threshold)], threshold, color="#1d2733", line_dash="dashed", line_width=1.5)
        tallest = float(np.nanmax([tallest, *threshold]))
    tallest = tallest or 1.0
    votes = {k: rules for k, rules in data.votes.items() if k <= len(values)}
    figure.y_range.start, figure.y_range.end = 0, tallest * (1.05 + 0.09 * len(votes))
    figure.yaxis.bounds = (0, 1.05 * tallest)  # no numbers where the names of the rules are
    look = {"text_font_size": "11px", "text_color": FAINT, "text_baseline": "bottom", "background_fill_color": "white"}
    for j, (k, rules) in enumerate(votes.items()):  # a line after the last component kept, and who keeps it
        right, height = 2 * k > len(values), tallest * (1.07 + 0.09 * (len(votes) - 1 - j))
        figure.segment(k + 0.5, 0, k + 0.5, height, line_color=FAINT, line_dash="dotted", line_width=1.2)
        side = {"text_align": "right" if right else "left", "x_offset": -4 if right else 4}
        text = f"{k}: {', '.join(rules)}"
        figure.add_layout(models.Label(x=k + 0.5, y=height, text=text, background_fill_alpha=0.85, **side, **look))
    figure.yaxis.formatter = models.NumeralTickFormatter(format="0.[0] %")
    figure.xaxis.ticker = models.BasicTicker(min_interval=1, num_minor_ticks=0)
    hover_names(figure, [bars], [("component", "@k"), ("share", "@text"), ("running sum", "@total")], "vline")
    return figure


Matrix = NDArray[np.float64]

COMPONENTS = 10  # that can be put on an axis
LARGEST = 300  # columns in the table of loadings
DRAWN = 3000  # columns in the plot of loadings


def pca_report(
    model: Any,
    scores: Any,
    *,
    advice: Any = None,
    feature_names: Sequence[str] | None = None,
    measures: Mapping[str, Any] | None = None,
    **common: Unpack[Common],
) -> Report:
    """Report a principal component analysis.

    Parameters
    ----------
    model : PCA
        Fitted.
    scores : array of shape (n, k)
        Of the rows.
    advice : RankAdvice, optional
        What the rules for the number of components say.
    feature_names : sequence of str, optional
        Of the columns; those the model knows, by default.
    measures : mapping of str to array of shape (n,), optional
        Further numbers of the rows to look at and download, such as T² and Q.
    **common
        ``data`` (a :class:`DataFacts`), and ``run``, ``ids``, ``labels``, ``label_name``, ``columns``, ``title``.

    Returns
    -------
    Report
        For :func:`write_report`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.display.report import DataFacts, pca_report
    >>> iris = load_iris()
    >>> model = PCA(2).fit(iris.data)
    >>> report = pca_report(model, model.transform(iris.data), data=DataFacts("iris", 150, 4))
    >>> [section.title for section in report.sections][2:5]
    ['Scores', 'Variance and rank', 'Loadings']
    """
    Z, model = matrix(scores, "scores"), convert_to_numpy(model)
    components = matrix(model.components_, "components_")
    shares = np.asarray(model.explained_variance_ratio_, dtype=np.float64)
    names = [f"PC{j + 1}" for j in range(Z.shape[1])]
    features = names_of_columns(model, components.shape[1], feature_names)
    tiles = [(str(len(names)), "components"), (percent(shares.sum()), "of the variance in them")]
    tiles += [(percent(share), f"in {name}") for name, share in zip(names[:2], shares, strict=False)]
    if advice is not None and advice.votes:
        k = advice.consensus
        tiles.append(("no majority" if k is None else str(k), "components by most rules"))
    facts = [("Components", f"{len(names)}, holding {percent(shares.sum())} of the variance")]
    facts.append(("Columns were", "centred and divided by their standard deviations" if model.scale else "centred"))
    sections = [
        scores_section(Z, shares, measures, common),
        _variance_section(model, names, shares, advice),
        loadings_section(components, names, features),
    ]
    return assemble("PCA", model, facts, tiles, sections, common)


def scores_section(Z: Matrix, shares: Any, measures: Mapping[str, Any] | None, common: Common) -> Section:
    """Scores in linked plots; components named with their share of the variance, where it is known."""
    axes, wordy = score_axes(Z, shares, common.get("rows"))
    k = min(Z.shape[1], COMPONENTS)
    cut = f"The first {k} of {Z.shape[1]} components can be shown here." if k < Z.shape[1] else ""
    cloud = row_cloud(axes, score_panels(k), "selected-scores", measures, common, wordy=wordy)
    return Section("Scores", [cloud, Text(cut, "note")])


def score_axes(Z: Matrix, shares: Any, numbers: Any = None) -> tuple[dict[str, Any], dict[str, str]]:
    """The first components as axes, a single one next to the numbers of the rows; and what stands next to each axis."""
    axes: dict[str, Any] = {f"PC{j + 1}": z for j, z in enumerate(Z.T[:COMPONENTS])}
    wordy = {name: component_name(j, shares) for j, name in enumerate(axes)}
    if len(axes) == 1:
        axes["row number"] = np.asarray(np.arange(len(Z)) if numbers is None else numbers, dtype=float)
    return axes, wordy


def score_panels(k: int) -> list[Panel]:
    """Which components are shown at first.

    Examples
    --------
    >>> [(panel.x, panel.y) for panel in score_panels(3)]
    [('PC1', 'PC2'), ('PC1', 'PC3')]
    """
    if k == 1:
        return [Panel("row number", "PC1")]
    pairs = {2: [(1, 2)], 3: [(1, 2), (1, 3)]}.get(k, [(1, 2), (3, 4)])
    return [Panel(f"PC{a}", f"PC{b}") for a, b in pairs]


def _variance_section(model: Any, names: list[str], shares: Any, advice: Any) -> Section:
    seen = advice.choices.get("broken-stick") if advice is not None else None  # the rule that sees every share
    data = describe_scree(shares, advice, None if seen is None else seen.values)
    columns: dict[str, Any] = {"component": names, "variance": np.asarray(model.explained_variance_, dtype=np.float64)}
    columns |= {"share": shares, "running sum": np.cumsum(shares)}
    if isinstance(model.certificate_, SpectralCertificate):
        columns["certain within"] = model.certificate_.eigenvalue_bounds
    table = DataTable("variances", "Variances", columns, percent=("share", "running sum"))
    note, advised = "Share of the variance of each component.", list[ReportBlock]()
    if advice is not None:
        if "parallel" in advice.choices:
            note += " Dashes: the 95 % quantile of tables whose columns are independent."
        note += " Dotted: where the rules stop."
        rules = DataTable("rank-advice", "Number of components, by rule", advice.table())
        advised = [Text(advice.explain.splitlines()), rules]
    return Section("Variance and rank", [Row([Figure("Scree", lambda: scree_figure(data), note), table]), *advised])


def loadings_section(components: Matrix, names: list[str], features: list[str]) -> Section:
    """Loadings in a plot and a table: which columns make a component."""
    k = min(len(names), COMPONENTS)
    V = components[:k].T
    ranked = np.argsort(-np.max(np.abs(V), axis=1), kind="stable")
    some, order = np.sort(ranked[:DRAWN]), ranked[:LARGEST]
    order = np.sort(order) if len(order) == len(V) else order
    axes = dict(zip(names, V[some].T, strict=False))
    if k == 1:
        axes["column number"] = some + 1.0
    panels = [Panel("column number", names[0])] if k == 1 else score_panels(k)
    points = Points(axes, names=[features[i] for i in some], title="column", numbers=some)
    cloud = Cloud(points, panels, name="selected-loadings", arrows=k > 1)
    left = f"The {LARGEST} columns with the largest loadings, of {len(V):,}." if len(order) < len(V) else ""
    drawn = f"The {DRAWN:,} columns with the largest loadings are drawn, of {len(V):,}." if len(some) < len(V) else ""
    table = {"column": [features[i] for i in order]} | {n: V[order, j] for j, n in enumerate(names[:k])}
    lead = "How much of each column is in each component: the entries of its unit vector."
    shown = DataTable("loadings", "Loadings", table, shaded=names[:k], note=left)
    return Section("Loadings", [cloud, Text(drawn, "note"), shown], lead)


def kernel_pca_report(
    model: Any, scores: Any, *, measures: Mapping[str, Any] | None = None, **common: Unpack[Common]
) -> Report:
    """Report a kernel principal component analysis.

    Parameters
    ----------
    model : KernelPCA
        Fitted.
    scores : array of shape (n, k)
        Of the rows.
    measures, **common
        As in :func:`pca_report`.

    Returns
    -------
    Report
        For :func:`write_report`.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from gramian import KernelPCA
    >>> from gramian.display.report import DataFacts, kernel_pca_report
    >>> X, y = make_circles(60, factor=0.3, random_state=0)
    >>> model = KernelPCA(2, kernel="rbf").fit(X)
    >>> kernel_pca_report(model, model.transform(X), data=DataFacts("circles", 60, 2)).title
    'Kernel PCA of circles'
    """
    Z, model = matrix(scores, "scores"), convert_to_numpy(model)
    values = np.asarray(model.eigenvalues_, dtype=np.float64)
    names = [f"PC{j + 1}" for j in range(Z.shape[1])]
    table: dict[str, Any] = {"component": names, "eigenvalue": values}
    if isinstance(model.certificate_, SpectralCertificate):
        table["residual"] = model.certificate_.residuals
    lead = "Eigenvalues of the centred kernel matrix: the spread of the rows along each component, in feature space."
    data = describe_scree(values / (values.sum() or 1.0))
    figure = Figure("Eigenvalues", lambda: scree_figure(data, "share"), "As shares of their sum.")
    facts = [("Kernel", repr(model.kernel_)), ("Components", str(len(names)))]
    tiles = [(str(len(names)), "components"), (type(model.kernel_).__name__, "kernel")]
    spectrum = Section("Eigenvalues", [Row([figure, DataTable("eigenvalues", "Eigenvalues", table)])], lead)
    return assemble("Kernel PCA", model, facts, tiles, [scores_section(Z, (), measures, common), spectrum], common)
