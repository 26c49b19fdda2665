"""Interactive figures of mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.display.report.drawing import bokeh_module, hover_names, legend_right, new_figure
from gramian.display.style import PALETTE

__all__ = ["choice_figure", "uncertainty_figure"]

DASHES = ("solid", "dashed", "dotted")
CLASSES = 25


def choice_figure(choice: Any) -> Any:
    """The criterion for each number of components, a line for each covariance model."""
    name = choice.criterion if choice.criterion != "lrt" else "bic"
    values = np.where(choice.eligible, getattr(choice, name), np.nan)
    figure = new_figure("components", name.upper(), height=360)
    drawn = []
    for j, model in enumerate(choice.covariance_types):
        data = {"k": list(choice.n_components), "value": values[:, j], "model": [model] * len(choice.n_components)}
        source = bokeh_module("models").ColumnDataSource(data)
        style = {"color": PALETTE[j % len(PALETTE)], "legend_label": model, "muted_alpha": 0.08}
        dash = DASHES[j // len(PALETTE) % len(DASHES)]
        figure.line("k", "value", source=source, line_width=2, line_dash=dash, **style)
        drawn.append(figure.scatter("k", "value", source=source, size=7, **style))
    hover_names(figure, drawn, [("model", "@model"), ("components", "@k"), (name.upper(), "@value{0,0.00}")])
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
        data = {
            "left": edges[:-1],
            "right": edges[1:],
            "bottom": base,
            "top": base + counts,
            "rows": counts,
            "name": [f"component {k + 1}"] * CLASSES,
        }
        source = bokeh_module("models").ColumnDataSource(data)
        sides = {side: side for side in ("left", "right", "bottom", "top")}
        colour = PALETTE[k % len(PALETTE)]
        drawn.append(figure.quad(**sides, source=source, color=colour, line_color="white", fill_alpha=0.85))
        base = base + counts
    hover_names(figure, drawn, [("", "@name"), ("uncertainty", "@left{0.000} to @right{0.000}"), ("rows", "@rows")])
    figure.y_range.start = 0
    return figure
