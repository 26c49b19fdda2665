"""Reports of ridge and kernel ridge regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import PALETTE, as_names, names_of_columns, shorten
from gramian.display.report.assemble import Common, Pairs, assemble, matrix, row_cloud, unique_names
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
    legend_right,
    line_with_dots,
    new_figure,
)
from gramian.display.report.cloud import Panel
from gramian.display.ridge import CRITERIA, ERRORS, PathData, describe_path
from gramian.inputs.devices import convert_to_numpy

DRAWN = 200  # lines of coefficients


def _path_figure(y_label: str, chosen: float, **options: Any) -> Any:
    """A figure over λ, with a line at the one chosen."""
    figure = new_figure("λ", y_label, height=340, x_axis_type="log", **options)
    if chosen > 0:
        line = {"line_color": FAINT, "line_dash": "dashed", "line_width": 1.5}
        figure.add_layout(bokeh_module("models").Span(location=chosen, dimension="height", **line))
    return figure


def criteria_figure(data: PathData, chosen: float) -> Any:
    """Leave-one-out error and generalised cross-validation for each λ."""
    figure = _path_figure("mean squared error", chosen, y_axis_type="log" if data.is_wide else "linear")
    drawn = []
    for key in ERRORS:
        label, colour, dash, *_ = CRITERIA[key]
        columns = {"x": data.lam, "y": data.curves[key], "name": [label] * len(data.lam), "dof": data.dof}
        line = "solid" if dash == "-" else "dashed"
        drawn.append(line_with_dots(figure, columns, dash=line, color=colour, legend_label=label))
    hover_names(figure, drawn, [("", "@name"), ("λ", "@x{0.000e+0}"), ("error", "@y{0.0000a}"), ("df", "@dof{0.0}")])
    figure.add_layout(figure.legend[0], "above")
    look = {"border_line_color": None, "background_fill_color": None, "margin": 0, "padding": 0}
    figure.legend[0].update(orientation="horizontal", **look)
    return figure


def dof_figure(data: PathData, chosen: float) -> Any:
    """Effective degrees of freedom for each λ."""
    figure = _path_figure("effective degrees of freedom", chosen)
    dots = line_with_dots(figure, {"x": data.lam, "y": data.dof}, color=PALETTE[0])
    hover_names(figure, [dots], [("λ", "@x{0.000e+0}"), ("df", "@y{0.00}")])
    return figure


def coefficient_figure(data: PathData, names: list[str], chosen: float) -> Any:
    """Coefficients of the first target for each λ; the largest in colour and by name."""
    figure, drawn = _path_figure("coefficient", chosen), []
    for rank, j in enumerate(data.ranked[:DRAWN]):
        columns = {"x": data.lam, "y": data.coef[:, j], "name": [shorten(names[j], 60)] * len(data.lam)}
        style: dict[str, Any] = {"color": "#c3c7cd", "line_width": 1, "level": "underlay"}
        if rank < len(PALETTE):
            label = escape_math(shorten(names[j], 18))
            style = {"color": PALETTE[rank], "line_width": 2, "legend_label": label, "muted_alpha": 0.1}
        drawn.append(figure.line("x", "y", source=columns, **style))
    hover_names(figure, drawn, [("", "@name"), ("λ", "$x{0.000e+0}"), ("coefficient", "$y{0.0000}")])
    legend_right(figure)
    return figure


Matrix = NDArray[np.float64]

TARGETS = 4  # with axes of their own
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
    >>> report = regression_report(model, y, model.predict(X), data=DataFacts("diabetes", 442, 10))
    >>> [section.title for section in report.sections][2:5]
    ['Fit and residuals', 'Choice of λ', 'Coefficients']
    """
    model = convert_to_numpy(model)
    Y, F = matrix(observed, "observed"), matrix(fitted, "fitted")
    if Y.shape != F.shape:
        raise ValueError(f"observed has shape {Y.shape} and fitted {F.shape}; they must be the same rows and targets.")
    t = Y.shape[1]
    usual = ["y"] if t == 1 else [f"y{j + 1}" for j in range(t)]
    targets = as_names(usual if target_names is None else target_names, t, "target_names", "{}", "targets")
    sections = [
        _fit_section(Y, F, targets, measures, common),
        _path_section(model, feature_names, targets),
        _coefficient_section(model, feature_names, targets),
    ]
    method = METHODS.get(type(model).__name__, type(model).__name__)
    return assemble(method, model, *_summarise(model, targets, Y, F), sections, common)


def _summarise(model: Any, targets: list[str], Y: Matrix, F: Matrix) -> tuple[Pairs, Pairs]:
    """What was fitted, by name, and the few numbers a reader wants first."""
    total, left = np.sum((Y - Y.mean(axis=0)) ** 2, axis=0), np.sum((Y - F) ** 2, axis=0)
    r2 = 1.0 - np.divide(left, total, out=np.full_like(left, np.nan), where=total > 0)  # NaN of a constant target
    lam = np.atleast_1d(np.asarray(getattr(model, "alpha_", getattr(model, "alpha", np.nan)), dtype=float))
    low, high = (format_value(float(end)) for end in (lam.min(), lam.max()))
    penalty = low if np.ptp(lam) == 0 else f"{low} to {high}"
    several = len(targets) > 1
    facts = [("Targets" if several else "Target", ", ".join(targets[:12]) + "…" * (len(targets) > 12))]
    facts.append(("Penalty λ", penalty))
    tiles = [(f"{float(np.mean(r2)):.3f}", "R² on the rows fitted" + ", mean" * several), (penalty, "penalty λ")]
    if hasattr(model, "kernel_"):
        facts.append(("Kernel", repr(model.kernel_)))
    dof, noise = getattr(model, "dof_", None), np.atleast_1d(getattr(model, "noise_variance_", np.nan)).astype(float)
    if dof is not None and np.isfinite(np.asarray(dof, dtype=float)).all():
        text = format_value(float(np.mean(np.asarray(dof, dtype=float))))
        facts.append(("Effective degrees of freedom", text))
        tiles.append((text, "degrees of freedom"))
    if len(noise) == 1 and np.isfinite(noise[0]) and noise[0] >= 0:
        facts.append(("Standard deviation of the errors, about", format_value(float(np.sqrt(noise[0])))))
    facts.append(("R² on the rows fitted", ", ".join(format_value(float(value)) for value in r2[:8])))
    path = getattr(model, "path_", None)
    if path is not None:  # at the λ chosen, of each target its own
        t = path.loo.shape[1]
        errors = path.loo[np.argmin(np.abs(path.alphas[:, None] - np.broadcast_to(lam, t)), axis=0), np.arange(t)]
        if np.isfinite(errors).all():
            tiles.append((format_value(float(np.sqrt(np.mean(errors)))), "typical error of rows left out"))
    return facts, tiles


def _fit_section(
    Y: Matrix, F: Matrix, targets: list[str], measures: Mapping[str, Any] | None, common: Common
) -> Section:
    axes: dict[str, Any] = {}
    several = len(targets) > 1
    for j, name in enumerate(targets[:TARGETS]):
        tail = f" ({name})" if several else ""
        new = unique_names([f"fitted{tail}", f"observed{tail}", f"residual{tail}"], list(axes))
        axes |= dict(zip(new, (F[:, j], Y[:, j], Y[:, j] - F[:, j]), strict=True))
    first, second, third = list(axes)[:3]
    panels = [
        Panel(first, second, "Observed against fitted", line="diagonal"),
        Panel(first, third, "Residuals against fitted", line="zero"),
    ]
    cloud = row_cloud(axes, panels, "selected-rows", measures, common)
    lead = "Points on the diagonal are fitted exactly. Residuals should lie about 0 without a shape."
    if len(targets) > TARGETS:
        lead += f" The first {TARGETS} of {len(targets)} targets can be shown."
    return Section("Fit and residuals", [cloud], lead)


def _path_section(model: Any, feature_names: Sequence[str] | None, targets: list[str]) -> Section:
    path = getattr(model, "path_", None)
    if path is None or not np.any(path.alphas > 0):
        return Section("Choice of λ", [])
    data, chosen = describe_path(path, None), float(np.atleast_1d(model.alpha_)[0])
    note = "Mean squared error of rows left out, exact, and generalised cross-validation. The line is the λ chosen."
    figures: list[ReportBlock] = [Figure("What chooses λ", lambda: criteria_figure(data, chosen), note)]
    if path.coef.size and not hasattr(model, "dual_coef_"):
        names = names_of_columns(model, path.coef.shape[2], feature_names)
        note = "Every coefficient shrinks as λ grows; the largest are named."
        note += f" Of {targets[0]}." if len(targets) > 1 else ""
        figures.append(Figure("Coefficients along the path", lambda: coefficient_figure(data, names, chosen), note))
    else:
        note = "How many free parameters the fit amounts to."
        figures.append(Figure("Effective degrees of freedom", lambda: dof_figure(data, chosen), note))
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
            table["standard deviation"] = np.sqrt(np.diag(model.coef_covariance()))[order]
    left = f"The {LARGEST} largest of {len(names):,}." if len(order) < len(names) else ""
    lead = "The change of the target for one unit of a column, the others held."
    lead += " Columns of other units cannot be compared."
    return Section("Coefficients", [DataTable("coefficients", "Coefficients", table, shaded=heads, note=left)], lead)
