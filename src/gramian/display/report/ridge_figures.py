"""What λ does, as interactive figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.display.report.cells import plain, short
from gramian.display.report.drawing import FAINT, bokeh_module, hover_names, legend_right, new_figure
from gramian.display.style import PALETTE

__all__ = ["coefficient_figure", "criteria_figure", "dof_figure"]

WIDE = 30.0  # largest over smallest error from which they are drawn on a logarithmic scale
DRAWN = 200  # lines of coefficients


def _order(path: Any) -> Any:
    order = np.argsort(path.alphas)
    return order[path.alphas[order] > 0]


def _penalty_axis(y_label: str, chosen: float, **options: Any) -> Any:
    figure = new_figure("λ", y_label, height=340, x_axis_type="log", **options)
    if chosen > 0:
        line = {"line_color": FAINT, "line_dash": "dashed", "line_width": 1.5}
        figure.add_layout(bokeh_module("models").Span(location=chosen, dimension="height", **line))
    return figure


def criteria_figure(path: Any, chosen: float) -> Any:
    """Leave-one-out error and generalised cross-validation for each λ, the mean over targets."""
    order = _order(path)
    curves = {"leave-one-out": path.loo, "GCV": path.gcv}
    values = {name: np.mean(curve[order], axis=1) for name, curve in curves.items()}
    finite = np.concatenate([v[np.isfinite(v)] for v in values.values()])
    log = len(finite) and 0 < WIDE * finite.min() < finite.max()
    figure = _penalty_axis("mean squared error", chosen, y_axis_type="log" if log else "linear")
    drawn = []
    for (name, curve), colour, dash in zip(values.items(), PALETTE, ("solid", "dashed"), strict=False):
        safe = np.where(np.isfinite(curve), curve, np.nan)
        data = {"x": path.alphas[order], "y": safe, "name": [name] * len(order), "dof": path.dof[order]}
        source = bokeh_module("models").ColumnDataSource(data)
        figure.line("x", "y", source=source, color=colour, line_dash=dash, line_width=2, legend_label=name)
        drawn.append(figure.scatter("x", "y", source=source, color=colour, size=6, legend_label=name))
    hover_names(figure, drawn, [("", "@name"), ("λ", "@x{0.000e+0}"), ("error", "@y{0.0000a}"), ("df", "@dof{0.0}")])
    legend = figure.legend[0]
    figure.add_layout(legend, "above")
    legend.orientation, legend.border_line_color, legend.background_fill_color = "horizontal", None, None
    legend.margin = legend.padding = 0
    return figure


def dof_figure(path: Any, chosen: float) -> Any:
    """Effective degrees of freedom for each λ."""
    order = _order(path)
    figure = _penalty_axis("effective degrees of freedom", chosen)
    source = bokeh_module("models").ColumnDataSource({"x": path.alphas[order], "y": path.dof[order]})
    figure.line("x", "y", source=source, color=PALETTE[0], line_width=2)
    dots = figure.scatter("x", "y", source=source, color=PALETTE[0], size=6)
    hover_names(figure, [dots], [("λ", "@x{0.000e+0}"), ("df", "@y{0.00}")])
    return figure


def coefficient_figure(path: Any, names: list[str], chosen: float) -> Any:
    """Coefficients of the first target for each λ; the largest in colour and by name."""
    order = _order(path)
    coef = path.coef[order, 0]
    size = np.max(np.abs(coef), axis=0)
    ranked = np.argsort(-size, kind="stable")
    figure = _penalty_axis("coefficient", chosen)
    lam = path.alphas[order]
    rest = ranked[len(PALETTE) : DRAWN]
    drawn = []
    if len(rest):
        data = {"xs": [lam] * len(rest), "ys": list(coef[:, rest].T), "name": [short(names[j], 60) for j in rest]}
        grey = bokeh_module("models").ColumnDataSource(data)
        drawn.append(figure.multi_line("xs", "ys", source=grey, color="#c3c7cd", line_width=1))
    for j, colour in zip(ranked, PALETTE, strict=False):
        data = {"x": lam, "y": coef[:, j], "name": [short(names[j], 60)] * len(lam)}
        source = bokeh_module("models").ColumnDataSource(data)
        label = plain(short(names[j], 18))
        drawn.append(
            figure.line("x", "y", source=source, color=colour, line_width=2, legend_label=label, muted_alpha=0.1)
        )
    hover_names(figure, drawn, [("", "@name"), ("λ", "$x{0.000e+0}"), ("coefficient", "$y{0.0000}")])
    legend_right(figure)
    return figure
