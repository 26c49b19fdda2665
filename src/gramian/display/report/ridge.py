"""Reports of ridge and kernel ridge regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import INK, PALETTE, as_names, names_of_columns, shorten
from gramian.display.report.assemble import Common, Pairs, assemble, find_quality, matrix, row_cloud, unique_names
from gramian.display.report.blocks import (
    FAINT,
    DataTable,
    Figure,
    Report,
    ReportBlock,
    Row,
    Section,
    bokeh_module,
    escape_math,
    format_value,
    hover_names,
    legend_above,
    legend_right,
    line_with_dots,
    new_figure,
)
from gramian.display.report.cloud import Panel
from gramian.display.ridge import (
    CRITERIA,
    ERRORS,
    Dependence,
    PathData,
    PredictionBandDisplay,
    describe_dependence,
    describe_path,
    leave_one_out_predictions,
)
from gramian.inputs.devices import convert_to_numpy
from gramian.kernels.names import name_kernel
from gramian.results import Quality
from gramian.ridge.quality import measure_regression

DRAWN = 200  # lines of coefficients
DOTS = 4000  # rows drawn over a curve


def band_figure(band: PredictionBandDisplay) -> Any:
    """A curve with the band of new observations over the data, as :class:`PredictionBandDisplay` draws it."""
    figure = new_figure(*map(escape_math, band.names), height=400)
    if band.lower is not None and band.upper is not None:
        label = f"{100 * band.level:.4g} % of new observations"
        style = {"fill_color": PALETTE[3], "fill_alpha": 0.4, "legend_label": label}
        figure.varea(x=band.x, y1=band.lower, y2=band.upper, **style)
    if band.data is not None:
        x, y = (np.asarray(part, dtype=float) for part in band.data)
        some = np.unique(np.linspace(0, len(x) - 1, min(len(x), DOTS)).round().astype(int))
        style = {"color": INK, "fill_alpha": 0.6, "line_color": None, "legend_label": "data"}
        dots = figure.scatter("x", "y", source={"x": x[some], "y": y[some]}, size=6, **style)
        hover_names(
            figure, [dots], [(escape_math(name), f"@{axis}") for name, axis in zip(band.names, "xy", strict=True)]
        )
    figure.line(band.x, band.prediction, color=PALETTE[0], line_width=2.5, legend_label="prediction")
    legend_above(figure)
    return figure


def dependence_figure(part: Dependence, ends: tuple[float, float], target: str) -> Any:
    """The mean prediction over the values of one column; ticks below are rows."""
    figure = new_figure(escape_math(shorten(part.name, 40)), f"mean of {escape_math(shorten(target, 24))}", height=230)
    dots = line_with_dots(figure, {"x": part.x, "y": part.y}, size=5, color=PALETTE[0])
    inside = part.seen[(part.seen >= part.x[0]) & (part.seen <= part.x[-1])]
    figure.scatter(
        inside, np.full(len(inside), ends[0]), marker="dash", angle=np.pi / 2, size=8, color=FAINT, alpha=0.5
    )
    figure.y_range.update(start=ends[0], end=ends[1])
    hover_names(figure, [dots], [(escape_math(part.name), "@x"), ("mean prediction", "@y")])
    return figure


def path_figure(data: PathData, lines: Sequence[dict[str, Any]], y_label: str, chosen: float, log: bool = False) -> Any:
    """Lines over λ, each a mapping of y, name and its style, and a line at the λ chosen."""
    figure = new_figure("λ", y_label, height=340, x_axis_type="log", y_axis_type="log" if log else "linear")
    if chosen > 0:
        line = {"line_color": FAINT, "line_dash": "dashed", "line_width": 1.5}
        figure.add_layout(bokeh_module("models").Span(location=chosen, dimension="height", **line))
    drawn = []
    for given in lines:
        style = {key: value for key, value in given.items() if key not in ("y", "name")}
        columns = {"x": data.lam, "y": given["y"], "name": [given["name"]] * len(data.lam), "dof": data.dof}
        drawn.append(figure.line("x", "y", source=columns, **style))
    rows = [("", "@name"), ("λ", "$x{0.000e+0}"), (y_label, "$y{0.0000a}"), ("degrees of freedom", "@dof{0.0}")]
    hover_names(figure, drawn, rows)
    return figure


Matrix = NDArray[np.float64]

TARGETS = 4  # with axes of their own
TILES = 4  # measures of fit in the head
CURVES = 6  # columns whose mean predictions are drawn
LARGEST = 300  # coefficients in the table
PATH = {
    "alpha": "λ",
    "dof": "degrees of freedom",
    "loo": "leave-one-out error",
    "gcv": "GCV",
    "log_marginal_likelihood": "log marginal likelihood",
    "noise_variance": "noise variance",
}
METHODS = {
    "Ridge": "Ridge regression",
    "RidgeCV": "Ridge regression",
    "KernelRidge": "Kernel ridge regression",
    "KernelRidgeCV": "Kernel ridge regression",
    "KernelRidgeClassifier": "Kernel ridge classification",
}


def regression_report(
    model: Any,
    observed: Any,
    fitted: Any,
    *,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    measures: Mapping[str, Any] | None = None,
    **common: Unpack[Common],
) -> Report:
    """Report a ridge or kernel ridge regression.

    Parameters
    ----------
    model : Ridge, RidgeCV, KernelRidge or KernelRidgeCV
        Fitted.
    observed, fitted : array of shape (n,) or (n, t)
        Targets, and what the model predicts for the same rows.
    X : array of shape (n, p), optional
        The rows, all of weight 1: for the curve over one column, what the prediction depends on of several, and what
        the other rows predict for each.
    feature_names, target_names : sequence of str, optional
        Of the columns and of the targets.
    measures : mapping of str to array of shape (n,), optional
        Further numbers of the rows to look at and download, such as standard deviations of the predictions.
    **common
        ``data`` (a :class:`DataFacts`), and ``run``, ``ids``, ``labels``, ``label_name``, ``columns``, ``title``.

    Returns
    -------
    Report
        For :func:`write_report`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import RidgeCV
    >>> from gramian.display.report import DataFacts, regression_report
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas="auto").fit(X, y)
    >>> report = regression_report(model, y, model.predict(X), X=X, data=DataFacts("diabetes", 442, 10))
    >>> [section.title for section in report.sections][:4]
    ['Predictions', 'What the prediction depends on', 'Coefficients', 'Choice of λ']
    """
    model = convert_to_numpy(model)
    Y, F = matrix(observed, "observed"), matrix(fitted, "fitted")
    if Y.shape != F.shape:
        raise ValueError(f"observed has shape {Y.shape} and fitted {F.shape}; they must be the same rows and targets.")
    t = Y.shape[1]
    usual = ["y"] if t == 1 else [f"y{j + 1}" for j in range(t)]
    targets = as_names(usual if target_names is None else target_names, t, "target_names", "{}", "targets")
    left = None if X is None else leave_one_out_predictions(model, X, Y[:, 0] if np.ndim(observed) == 1 else Y)
    left = None if left is None else matrix(left, "left out")
    quality = find_quality(common, lambda: measure_regression(model, Y, F, left, targets))
    facts, tiles = _summarise(model, targets, quality)
    sections = [
        _fit_section(Y, F, left, targets, measures, common),
        _shape_section(model, X, Y, feature_names, targets),
        _coefficient_section(model, feature_names, targets),
        _path_section(model, feature_names, targets),
    ]
    if X is not None and np.shape(X)[1] == 1:
        sections[:2] = sections[1::-1]  # the curve is the picture
    method = METHODS.get(type(model).__name__, type(model).__name__)
    return assemble(method, model, facts, tiles, sections, common, quality)


def _summarise(model: Any, targets: list[str], quality: Sequence[Quality]) -> tuple[Pairs, Pairs]:
    """What was fitted, by name, and the few numbers a reader wants first."""
    lam = np.atleast_1d(np.asarray(getattr(model, "alpha_", getattr(model, "alpha", np.nan)), dtype=float))
    low, high = (format_value(float(end)) for end in (lam.min(), lam.max()))
    penalty = low if np.ptp(lam) == 0 else f"{low} to {high}"
    several = len(targets) > 1
    facts = [("Targets" if several else "Target", ", ".join(targets[:12]) + "…" * (len(targets) > 12))]
    facts.append(("Penalty λ", penalty))
    tiles = [(format_value(measure.value), measure.label) for measure in quality[:TILES]] + [(penalty, "penalty λ")]
    if hasattr(model, "kernel_"):
        facts.append(("Kernel", name_kernel(model.kernel_)))
    dof, noise = getattr(model, "dof_", None), np.atleast_1d(getattr(model, "noise_variance_", np.nan)).astype(float)
    if dof is not None and np.isfinite(np.asarray(dof, dtype=float)).all():
        text = format_value(float(np.mean(np.asarray(dof, dtype=float))))
        facts.append(("Effective degrees of freedom", text))
        tiles.append((text, "degrees of freedom"))
    if len(noise) == 1 and np.isfinite(noise[0]) and noise[0] >= 0:
        facts.append(("Standard deviation of the errors, about", format_value(float(np.sqrt(noise[0])))))
    return facts, tiles


def _fit_section(
    Y: Matrix, F: Matrix, left: Matrix | None, targets: list[str], measures: Mapping[str, Any] | None, common: Common
) -> Section:
    """Rows at what is predicted for them by the others, or by all where that is not known, and what is left over."""
    axes: dict[str, Any] = {}
    for j, name in enumerate(targets[:TARGETS]):
        tail = f" ({name})" if len(targets) > 1 else ""
        known = {"fitted": F[:, j], "observed": Y[:, j], "residual": Y[:, j] - F[:, j]}
        if left is not None:
            known = {"predicted by the others": left[:, j], "observed": Y[:, j], "error": Y[:, j] - left[:, j], **known}
        new = unique_names([f"{name}{tail}" for name in known], list(axes))
        axes |= dict(zip(new, known.values(), strict=True))
    first, second, third = list(axes)[:3]
    words = ("Observed against fitted", "Residuals against fitted")
    words = words if left is None else ("Observed against predicted", "Errors of rows left out")
    panels = [Panel(first, second, words[0], line="diagonal"), Panel(first, third, words[1], line="zero")]
    cloud = row_cloud(axes, panels, "selected-rows", measures, common)
    lead = "Points on the diagonal are fitted exactly. Residuals should lie about 0 without a shape."
    if left is not None:
        lead = (
            "Each row as the fit to all other rows predicts it: points on the diagonal are predicted exactly. Errors "
        )
        lead += "should lie about 0 without a shape."
    if len(targets) > TARGETS:
        lead += f" The first {TARGETS} of {len(targets)} targets can be shown."
    return Section("Predictions", [cloud], lead)


def _shape_section(model: Any, X: Any, Y: Matrix, feature_names: Sequence[str] | None, targets: list[str]) -> Section:
    """The curve over one column; of several, what the prediction depends on."""
    title = "What the prediction depends on"
    if X is None or len(Y) < 2:
        return Section(title, [])
    rows = matrix(X, "X")
    names, several = names_of_columns(model, rows.shape[1], feature_names), f" Of {targets[0]}." * (len(targets) > 1)
    if rows.shape[1] == 1:
        band = PredictionBandDisplay.describe(model, rows[:, 0], Y, names=(names[0], targets[0]))
        note = f"The prediction along {shorten(names[0], 60)}, and where new observations fall.{several}"
        return Section("Curve", [Figure("Data and prediction", lambda: band_figure(band), note)])
    found = describe_dependence(model, rows, names)
    low, high = min(part.y.min() for part in found), max(part.y.max() for part in found)
    margin = 0.08 * (high - low) or 1.0
    shown = found[:CURVES]

    def draw(part: Dependence) -> Any:
        """All on one scale."""
        return dependence_figure(part, (low - margin, high + margin), targets[0])

    figures = [Figure(shorten(part.name, 40), partial(draw, part)) for part in shown]
    lead = (
        "The mean prediction over the rows while one column is set to each of its values, and the others stay as they "
    )
    lead += f"are; the columns that change it most, on one scale.{several}"
    if len(shown) < rows.shape[1]:
        lead += f" {len(shown)} of {rows.shape[1]:,} columns are shown."
    return Section(title, [Row(figures, "many")], lead)


def _path_section(model: Any, feature_names: Sequence[str] | None, targets: list[str]) -> Section:
    path = getattr(model, "path_", None)
    if path is None or not np.any(path.alphas > 0):
        return Section("Choice of λ", [])
    data, chosen = describe_path(path, None), float(np.atleast_1d(model.alpha_)[0])

    def criteria() -> Any:
        """Leave-one-out error and generalised cross-validation for each λ."""
        lines = []
        for key in ERRORS:
            label, colour, dash, *_ = CRITERIA[key]
            look = {"line_dash": "solid" if dash == "-" else "dashed", "color": colour, "line_width": 2.5}
            lines.append({"y": data.curves[key], "name": label, "legend_label": label, **look})
        figure = path_figure(data, lines, "mean squared error", chosen, data.is_wide)
        legend_above(figure)
        return figure

    note = "Mean squared error of rows left out, exact, and generalised cross-validation. The line is the λ chosen."
    figures: list[ReportBlock] = [Figure("What chooses λ", criteria, note)]
    if path.coef.size and not hasattr(model, "dual_coef_"):
        names = names_of_columns(model, path.coef.shape[2], feature_names)

        def coefficients() -> Any:
            """Coefficients of the first target for each λ; the largest in colour and by name."""
            lines = []
            for rank, j in enumerate(data.ranked[:DRAWN]):
                style: dict[str, Any] = {"color": "#c3c7cd", "line_width": 1, "level": "underlay"}
                if rank < len(PALETTE):
                    label = escape_math(shorten(names[j], 18))
                    style = {"color": PALETTE[rank], "line_width": 2, "legend_label": label, "muted_alpha": 0.1}
                lines.append({"y": data.coef[:, j], "name": shorten(names[j], 60), **style})
            figure = path_figure(data, lines, "coefficient", chosen)
            legend_right(figure)
            return figure

        note = "Every coefficient shrinks as λ grows; the largest are named."
        note += f" Of {targets[0]}." if len(targets) > 1 else ""
        figures.append(Figure("Coefficients along the path", coefficients, note))
    else:
        note, label = "How many free parameters the fit amounts to.", "effective degrees of freedom"
        line = {"y": data.dof, "name": "", "color": PALETTE[0], "line_width": 2.5}
        figures.append(Figure("Effective degrees of freedom", lambda: path_figure(data, [line], label, chosen), note))
    table = {PATH.get(name, name): column for name, column in path.table().items()}
    return Section("Choice of λ", [Row(figures), DataTable("path", "Every λ that was tried", table)])


def _coefficient_section(model: Any, feature_names: Sequence[str] | None, targets: list[str]) -> Section:
    if not hasattr(model, "coef_") or hasattr(model, "dual_coef_"):
        return Section("Coefficients", [])
    W = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    names = names_of_columns(model, W.shape[1], feature_names)
    shown_targets = targets[:TARGETS]
    order = np.argsort(-np.max(np.abs(W[: len(shown_targets)]), axis=0), kind="stable")[:LARGEST]
    heads = ["coefficient"] if len(targets) == 1 else unique_names(shown_targets, ["column"])
    table: dict[str, Any] = {"column": [names[i] for i in order]}
    table |= {head: W[j, order] for j, head in enumerate(heads)}
    if len(targets) == 1:
        with suppress(AttributeError, ValueError):  # the fit has not kept the covariance of the coefficients
            table["standard error"] = np.sqrt(np.diag(model.coef_covariance()))[order]
    left = f"The {LARGEST} largest of {len(names):,}." if len(order) < len(names) else ""
    lead = "The change of the target for one unit of a column, the others held."
    lead += " Columns of other units cannot be compared."
    return Section("Coefficients", [DataTable("coefficients", "Coefficients", table, shaded=heads, note=left)], lead)
