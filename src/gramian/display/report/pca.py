"""Reports of principal components, of data and of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import INK, PALETTE, component_name, names_of_columns, shares_of, shorten
from gramian.display.pca import ScreeData, describe_scree
from gramian.display.report.assemble import Common, Folded, assemble, find_quality, matrix, percent, row_cloud
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
    escape_math,
    hover_names,
    new_figure,
)
from gramian.display.report.cloud import Arrows, Panel
from gramian.inputs.devices import convert_to_numpy
from gramian.kernels.names import name_kernel
from gramian.pca.interpret import had_missing_cells, warn_unscaled
from gramian.results import SpectralCertificate, measure_shares

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
        some = list(rules) if len(rules) <= NAMED_RULES else [*rules[: NAMED_RULES - 1], "…"]
        text = f"{k}: {', '.join(some)}"  # the table names them all; on a phone there is room for few
        figure.add_layout(models.Label(x=k + 0.5, y=height, text=text, background_fill_alpha=0.85, **side, **look))
    figure.yaxis.formatter = models.NumeralTickFormatter(format="0.[0] %")
    figure.xaxis.ticker = models.BasicTicker(min_interval=1, num_minor_ticks=0)
    hover_names(figure, [bars], [("component", "@k"), ("share", "@text"), ("running sum", "@total")], "vline")
    return figure


def circle_figure(r: Matrix, names: Sequence[str], shares: Matrix, axes: tuple[int, int] = (0, 1)) -> Any:
    """Variables at their correlations with two components, in the circle where the plane shows a variable wholly."""
    a, b = axes
    figure = new_figure(component_name(a, shares), component_name(b, shares), height=430, match_aspect=True)
    figure.scatter([-1.3, 1.3], [-1.05, 1.05], alpha=0)  # what the frame holds
    for radius, dash in ((1.0, "solid"), (0.5, "dotted")):
        figure.circle(0, 0, radius=radius, fill_color=None, line_color=FAINT, line_dash=dash)
    cos2 = r[:, a] ** 2 + r[:, b] ** 2
    order = np.argsort(-cos2, kind="stable")[:DRAWN]
    some = order[:NAMED]
    figure.segment(0, 0, r[some, a], r[some, b], line_color=PALETTE[0], line_width=1.5)
    source = {"x": r[order, a], "y": r[order, b], "name": [names[i] for i in order], "cos2": cos2[order]}
    dots = figure.scatter("x", "y", source=source, size=7, color=PALETTE[0], fill_alpha=0.8, line_color=None)
    hover_names(figure, [dots], [("", "@name"), ("correlations", "@x{0.000}, @y{0.000}"), ("cos²", "@cos2{0.000}")])
    taken: list[tuple[float, float, float, float]] = []
    for i in some:  # names outwards, but for those that would cover another
        text, west = escape_math(shorten(names[i], 22)), r[i, a] < 0
        wide = 0.045 * len(text)
        box = (r[i, a] - west * wide, r[i, a] + (not west) * wide, r[i, b] - 0.05, r[i, b] + 0.05)
        if any(box[0] < o[1] and o[0] < box[1] and box[2] < o[3] and o[2] < box[3] for o in taken):
            continue
        taken.append(box)
        side = {"text_align": "right" if west else "left", "x_offset": -7 if west else 7, "text_baseline": "middle"}
        look = {"text_font_size": "12px", "text_color": INK}
        figure.add_layout(bokeh_module("models").Label(x=r[i, a], y=r[i, b], text=text, **side, **look))
    return figure


Matrix = NDArray[np.float64]

COMPONENTS = 10  # that can be put on an axis
LARGEST = 300  # columns in the tables
NAMED_RULES = 3  # of those that stop at one number
NAMED = 20  # columns with an arrow and a name
DRAWN = 3000  # columns in the circle
ARROWS = 60  # columns that an arrow can be chosen from


def pca_report(
    model: Any,
    scores: Any,
    *,
    advice: Any = None,
    feature_names: Sequence[str] | None = None,
    measures: Mapping[str, Any] | None = None,
    deviations: Any = None,
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
    deviations : array of shape (p,), optional
        Standard deviations of the columns, for their correlations with the components; a model that scaled, or kept
        all components, knows them.
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
    >>> [section.title for section in report.sections][:3]
    ['Scores', 'What the components mean', 'How many components']
    """
    Z, model = matrix(scores, "scores"), convert_to_numpy(model)
    V = matrix(model.components_, "components_").T
    shares = np.asarray(model.explained_variance_ratio_, dtype=np.float64)
    loadings = V * np.sqrt(np.asarray(model.explained_variance_, dtype=np.float64))
    names = [f"PC{j + 1}" for j in range(Z.shape[1])]
    features = names_of_columns(model, len(V), feature_names)
    spread, r = None if deviations is None else np.asarray(deviations, dtype=np.float64), None
    if model.scale:
        r = loadings
    elif not had_missing_cells(model) and (spread is not None or len(V) == len(names)):
        s = np.linalg.norm(loadings, axis=1) if spread is None else spread  # all components have all of a variance
        r = np.divide(loadings, s[:, None], out=np.zeros_like(loadings), where=s[:, None] > 0)
    tiles = [(str(len(names)), "components"), (percent(shares.sum()), "of the variance in them")]
    tiles += [(percent(share), f"in {name}") for name, share in zip(names[:2], shares, strict=False)]
    if advice is not None and advice.votes:
        low, high = advice.interval
        span = f" ({low} to {high})" if high > low else ""
        tiles.append((f"{advice.consensus}{span}", "components by the rules"))
    facts = [("Components", f"{len(names)}, holding {percent(shares.sum())} of the variance")]
    facts.append(("Columns were", "centred and divided by their standard deviations" if model.scale else "centred"))
    told, whitened = dict(measures or {}), bool(model.get_params().get("whiten"))
    squares = Z**2 * (model.explained_variance_ if whitened else 1.0)
    told |= {f"% of {name}": 100 * z / (z.sum() or 1.0) for name, z in zip(names[:2], squares.T, strict=False)}
    if "Q" in told and len(names) > 1:  # ‖x − x̄‖² = Σz² + Q
        length = squares.sum(axis=1) + np.asarray(told["Q"])
        seen_share = np.divide(squares[:, :2].sum(axis=1), length, out=np.zeros(len(Z)), where=length > 0)
        told["cos² (PC1, PC2)"] = seen_share
    arrows = None if whitened else Arrows(names[:COMPONENTS], *_longest(features, loadings))
    sections = [
        scores_section(Z, shares, told, common, arrows),
        _variables_section(V, loadings, r, names, features, shares, bool(model.scale)),
        _variance_section(model, names, shares, advice),
    ]
    warning = None if model.scale or spread is None else warn_unscaled(spread, features)
    quality = find_quality(common, lambda: measure_shares(shares))
    return assemble("PCA", model, facts, tiles, sections, common, quality, [] if warning is None else [warning])


def _longest(features: list[str], loadings: Matrix) -> tuple[list[str], Matrix]:
    """Names and loadings of the columns with the largest ones."""
    some = np.argsort(-np.max(np.abs(loadings[:, :COMPONENTS]), axis=1, initial=0.0), kind="stable")[:ARROWS]
    return [features[i] for i in some], loadings[some, :COMPONENTS]


def scores_section(
    Z: Matrix, shares: Any, measures: Mapping[str, Any] | None, common: Common, arrows: Arrows | None = None
) -> Section:
    """Scores in linked plots; components named with their share of the variance, where it is known."""
    axes, wordy = score_axes(Z, shares, common.get("rows"))
    k = min(Z.shape[1], COMPONENTS)
    cut = f"The first {k} of {Z.shape[1]} components can be shown here." if k < Z.shape[1] else ""
    given: dict[str, Any] = {
        "wordy": wordy,
        "alike": [f"PC{j + 1}" for j in range(k)],
        "biplot": arrows if k > 1 else None,
    }
    cloud = row_cloud(axes, score_panels(k), "selected-scores", measures, common, **given)
    lead = "Each point is a row; rows that lie together are alike."
    if arrows is not None and k > 1:
        lead += " An arrow points where a column grows: rows in its direction have large values of it."
    return Section("Scores", [cloud, Text(cut, "note")], lead)


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
    elif had_missing_cells(model):
        why = "The rules for the number of components compare variances with those of complete tables, and cells are "
        why += "missing here. They can be asked of the rows without gaps, or of a table that impute has filled, in "
        advised = [Text(f"{why}which variances are too small: hold cells out to compare numbers of components.")]
    blocks = [Row([Figure("Scree", lambda: scree_figure(data), note), table]), *advised]
    return Section("How many components", blocks)


def _variables_section(
    V: Matrix, loadings: Matrix, r: Matrix | None, names: list[str], features: list[str], shares: Matrix, scaled: bool
) -> Section:
    """Which columns make a component, and how much of a column it shows: correlations, contributions, cos²."""
    k = min(len(names), COMPONENTS)
    order = np.argsort(-np.max(np.abs(V[:, :k]), axis=1, initial=0.0), kind="stable")[:LARGEST]
    order = np.sort(order) if len(order) == len(V) else order
    left = f"The {LARGEST} columns with the largest contributions, of {len(V):,}." if len(order) < len(V) else ""

    def table(name: str, caption: str, values: Matrix, form: str, note: str) -> DataTable:
        """A number of each column and component."""
        heads = [form.format(pc) for pc in names[:k]]
        cells = {"column": [features[i] for i in order]} | {h: values[order, j] for j, h in enumerate(heads)}
        return DataTable(name, caption, cells, shaded=heads, note=f"{note} {left}".strip())

    meaning = "Covariances of the columns with the standardised scores."
    meaning += " Columns were scaled, so these are correlations." if scaled else ""
    tables: list[ReportBlock] = [
        table("loadings", "Loadings V√λ", loadings, "loading {}", meaning),
        table("contributions", "Contributions", 100 * V**2, "% of {}", "How much of a component each column makes."),
    ]
    blocks: list[ReportBlock] = []
    if r is not None:
        note = "How much of each column a component shows, the squared correlation: 1 is all of it."
        tables.append(table("cos2", "cos²", r**2, "cos² {}", note))
        if not scaled:
            note = "Of the columns with the components, from −1 to 1."
            tables.insert(1, table("correlations", "Correlations", r, "correlation {}", note))
        if k > 1:
            note = (
                "An arrow that reaches the circle is a column that the plane shows wholly; a small angle between two "
            )
            note += "such arrows is a large correlation."
            circle = Figure("Correlation circle", lambda: circle_figure(r, features, shares), note)
            blocks.append(Row([circle, tables.pop(0)]))
    unit = "The components themselves, vectors of length 1: a score is the sum of a row's deviations times these."
    folded = table("unit-vectors", "Unit vectors V", V, "unit vector {}", unit)
    return Section("What the components mean", [*blocks, *tables, Folded("Unit vectors V", folded)])


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
    facts = [("Kernel", name_kernel(model.kernel_)), ("Components", str(len(names)))]
    tiles = [(str(len(names)), "components"), (type(model.kernel_).__name__, "kernel")]
    shares = shares_of(model)
    known = () if shares is None else shares
    quality = find_quality(common, lambda: measure_shares(known, "the variance of the features"))
    spectrum = Section("Eigenvalues", [Row([figure, DataTable("eigenvalues", "Eigenvalues", table)])], lead)
    sections = [scores_section(Z, shares, measures, common), spectrum]
    return assemble("Kernel PCA", model, facts, tiles, sections, common, quality)
