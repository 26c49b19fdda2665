"""Reports of Gaussian mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import COLOURS, INK, PALETTE, names_of_columns
from gramian.display.mixture import describe_choice
from gramian.display.report.assemble import (
    Common,
    assemble,
    colour_options,
    find_quality,
    matrix,
    percent,
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
    bokeh_module,
    format_value,
    hover_names,
    legend_right,
    line_with_dots,
    new_figure,
)
from gramian.display.report.cloud import NARROW, Cloud, Ellipses, Panel, Points
from gramian.inputs.devices import convert_to_numpy
from gramian.mixture.quality import DOUBTED, measure_mixture, rank_columns

DASHES = ("solid", "dashed", "dotted")
CLASSES = 25


def choice_figure(choice: Any) -> Any:
    """The criterion for each number of components, a line for each covariance model."""
    data = describe_choice(choice)
    figure = new_figure("components", f"{data.criterion} (lower is better)", height=400)
    drawn = []
    for j, model in enumerate(data.models):
        columns = {"k": list(data.sizes), "value": data.values[:, j], "model": [model] * len(data.sizes)}
        style = {"color": PALETTE[j % len(PALETTE)], "legend_label": model, "muted_alpha": 0.08}
        dash = DASHES[j // len(PALETTE) % len(DASHES)]
        drawn.append(line_with_dots(figure, columns, size=7, dash=dash, **style))
    (row, column), (low, top) = data.best, data.frame
    ring = {"size": 17, "fill_color": None, "line_color": INK, "line_width": 2}
    label = f"best: {data.models[column]}, {data.sizes[row]}"
    figure.scatter(data.sizes[row], data.values[row, column], legend_label=label, **ring)
    above = data.values > top
    if above.any():
        at = np.asarray(data.sizes)[above.any(axis=1)]
        label = f"above the frame: {np.count_nonzero(above)}"
        style = {"marker": "triangle", "size": 9, "color": INK, "legend_label": label}
        figure.scatter(at, np.full(len(at), top - 0.03 * (top - low)), **style)
    figure.y_range.update(start=low, end=top)
    hover_names(figure, drawn, [("model", "@model"), ("components", "@k"), (data.criterion, "@value{0,0.00}")])
    figure.xaxis.ticker = bokeh_module("models").BasicTicker(min_interval=1, num_minor_ticks=0)
    legend_right(figure)
    return figure


def uncertainty_figure(uncertainty: Any, component: Any) -> Any:
    """How many rows of each component have how much uncertainty."""
    edges = np.linspace(0.0, max(float(np.max(uncertainty, initial=0.0)), 0.02), CLASSES + 1)
    figure = new_figure("uncertainty", "rows", height=300)
    base, drawn = np.zeros(CLASSES), []
    for k in range(int(np.max(component, initial=0)) + 1):
        counts = np.histogram(uncertainty[component == k], bins=edges)[0]
        data = {"left": edges[:-1], "right": edges[1:], "bottom": base, "top": base + counts}
        sides, colour = {side: side for side in data}, COLOURS[k % len(COLOURS)]
        data |= {"rows": counts, "name": [f"component {k + 1}"] * CLASSES}
        drawn.append(figure.quad(**sides, source=data, color=colour, line_color="white", fill_alpha=0.85))
        base = base + counts
    hover_names(figure, drawn, [("", "@name"), ("uncertainty", "@left{0.000} to @right{0.000}"), ("rows", "@rows")])
    figure.y_range.start = 0
    return figure


Matrix = NDArray[np.float64]

AXES = 12  # columns that can be put on an axis
PAIRED = 4  # columns whose pairs are drawn
WIDE = 40  # columns in the table of means
MOST_LABELS = 60  # that are counted against components


def mixture_report(
    model: Any,
    X: Any,
    *,
    choice: Any = None,
    responsibilities: Any = None,
    feature_names: Sequence[str] | None = None,
    **common: Unpack[Common],
) -> Report:
    """Report a Gaussian mixture.

    Parameters
    ----------
    model : GaussianMixture
        Fitted.
    X : array of shape (n, d)
        The rows; NaN where cells are missing.
    choice : MixtureChoice, optional
        What the model was chosen from.
    responsibilities : array of shape (n, K), optional
        Probability of each component for each row; asked of the model, by default.
    feature_names : sequence of str, optional
        Of the columns.
    **common
        ``data`` (a :class:`DataFacts`), and ``run``, ``ids``, ``labels``, ``label_name``, ``columns``, ``title``.

    Returns
    -------
    Report
        For :func:`write_report`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import GaussianMixture
    >>> from gramian.display.report import DataFacts, mixture_report
    >>> X = load_iris().data
    >>> report = mixture_report(GaussianMixture(2).fit(X), X, data=DataFacts("iris", 150, 4))
    >>> [section.title for section in report.sections][:2]
    ['Rows and components', 'Components']
    """
    rows, model = matrix(X, "X"), convert_to_numpy(model)
    R = matrix(model.predict_proba(rows) if responsibilities is None else responsibilities, "responsibilities")
    mixture = model.mixture_
    names = names_of_columns(model, rows.shape[1], feature_names)
    bic = -2.0 * model.log_likelihood_ + model.n_parameters_ * np.log(len(rows))
    facts = [("Components", str(mixture.n_components)), ("Covariance model", str(model.covariance_type))]
    likelihood = format_value(float(model.log_likelihood_))
    facts.append(("Log-likelihood", f"{likelihood}, {model.n_parameters_} parameters"))
    doubt = percent(float(np.mean(1.0 - R.max(axis=1) > DOUBTED)))
    tiles = [(str(mixture.n_components), "components"), (str(model.covariance_type), "covariance model")]
    tiles += [(format_value(float(bic)), "BIC"), (doubt, "of rows in doubt (> 10 %)")]
    told: dict[str, Any] = {"n_parameters": model.n_parameters_, "columns": dict(zip(names, rows.T, strict=True))}
    quality = find_quality(common, lambda: measure_mixture(R, float(model.log_likelihood_), **told))
    sections = [
        _rows_section(rows, R, mixture, names, common),
        _components_section(R, mixture, names, common),
        _choice_section(choice),
    ]
    return assemble("Gaussian mixture", model, facts, tiles, sections, common, quality)


def _rows_section(rows: Matrix, R: Matrix, mixture: Any, names: list[str], common: Common) -> Section:
    order = rank_columns(mixture, rows)[:AXES]
    shown_names = unique_names([names[j] for j in order], ["component", "uncertainty", "log density", "row number"])
    axes: dict[str, Any] = dict(zip(shown_names, rows[:, order].T, strict=True))
    axes |= {"uncertainty": 1.0 - R.max(axis=1), "log density": mixture.log_density(rows)}
    first, *others = shown_names  # with one pair of columns, or none, the uncertainty is beside it
    panels = [Panel(first, others[0] if others else "log density"), Panel(first, "uncertainty")]
    if len(others) > 1:  # every pair of the columns that tell most
        pairs = combinations(shown_names[: PAIRED if len(rows) <= NARROW else 3], 2)
        panels = [Panel(a, b, choose="", height=300) for a, b in pairs]
        panels[-1] = replace(panels[-1], choose="xy" if len(names) > PAIRED else "")
    groups = {"component": [str(k + 1) for k in np.argmax(R, axis=1)]}
    given: Common = {**common, "columns": {k: v for k, v in (common.get("columns") or {}).items() if k not in axes}}
    points = Points(axes, **colour_options(given, axes, groups))
    known = np.ix_(np.arange(mixture.n_components), order, order)
    numbers = [str(k + 1) for k in range(mixture.n_components)]
    ellipses = Ellipses(shown_names, numbers, mixture.means[:, order], mixture.matrices[known])
    cloud = Cloud(points, panels, colour="component", name="selected-rows", ellipses=ellipses)
    lead = "Each row belongs to its most probable component. Ellipses hold 95 % of a component."
    if len(names) > PAIRED:
        lead += f" Every pair of the {PAIRED} columns in which the components differ most."
    if len(order) < len(names):
        lead += f" Of {len(names)} columns the first {len(order)} of these can be coloured by and downloaded."
    return Section("Rows and components", [cloud], lead)


def _components_section(R: Matrix, mixture: Any, names: list[str], common: Common) -> Section:
    """Weights and means, how many rows are in doubt, and how often each label falls into each component."""
    k, mine = mixture.n_components, np.argmax(R, axis=1)
    some = np.sort(rank_columns(mixture)[:WIDE])
    table: dict[str, Any] = {"component": np.arange(1, k + 1), "weight": mixture.weights}
    table |= {"rows": np.bincount(mine, minlength=k)} | {f"mean {names[j]}": mixture.means[:, j] for j in some}
    left = f"{len(some)} of {len(names)} columns." if len(some) < len(names) else ""
    note = "One minus the probability of the component a row was given to: 0 is no doubt."
    row: list[ReportBlock] = [Figure("Uncertainty", lambda: uncertainty_figure(1.0 - R.max(axis=1), mine), note)]
    labels, name = common.get("labels"), common.get("label_name") or "label"
    different, codes = np.unique(np.asarray([] if labels is None else labels, dtype=str), return_inverse=True)
    if 0 < len(different) <= MOST_LABELS:
        counts = np.zeros((len(different), k), dtype=int)
        np.add.at(counts, (codes, mine), 1)
        heads = [f"component {j + 1}" for j in range(k)]
        cells = {name: different.tolist()} | dict(zip(heads, counts.T, strict=True))
        row.append(DataTable("labels", f"Rows by {name} and component", cells, shaded=heads))
    components = DataTable("components", "Components", table, percent=("weight",), note=left)
    return Section("Components", [components, Row(row)])


def _choice_section(choice: Any) -> Section:
    title = "What it was chosen from"
    if choice is None:
        return Section(title, [])
    best = choice.best
    text = (
        f"Of {np.size(choice.bic)} fits, {best.n_components} component{'s' * (best.n_components != 1)} of model "
        f"{best.covariance_type} {'is' if best.n_components == 1 else 'are'} best by {choice.criterion.upper()}."
    )
    note = (
        "Lower is better. Models are named by volume, shape and orientation of their ellipses: equal, varying or fixed."
    )
    figure = Figure("Criterion by number of components", lambda: choice_figure(choice), note)
    columns = choice.table()
    by = np.asarray(columns["bic" if choice.criterion == "lrt" else choice.criterion], dtype=float)
    order = np.lexsort([by, ~np.ravel(choice.eligible)])  # the best first, those that are not eligible last
    sorted_columns = {name: [column[i] for i in order] for name, column in columns.items()}
    table = DataTable("choice", "Every fit, the best first", sorted_columns)
    return Section(title, [Text(text), figure, table])
