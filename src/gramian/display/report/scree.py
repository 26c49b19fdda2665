"""The scree plot with what the rules say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.display.report.drawing import FAINT, bokeh_module, hover_names, new_figure
from gramian.display.style import PALETTE

__all__ = ["scree_figure"]

SHOWN = 40  # components drawn


def scree_figure(shares: Any, advice: Any, whole: Any = None, label: str = "share of the variance") -> Any:
    """Draw shares of the variance, those of components not kept in grey, and where each rule stops."""
    values, noise = _spectrum(np.asarray(shares, dtype=np.float64), advice, whole)
    number = np.arange(1, len(values) + 1)
    kept = len(shares)
    figure = new_figure("component", label, height=340, x_range=(0.3, len(values) + 0.7))
    source = bokeh_module("models").ColumnDataSource(
        {
            "k": number,
            "share": values,
            "colour": [PALETTE[0] if j < kept else "#c9cdd4" for j in range(len(values))],
            "text": [f"{100 * share:.3g} %" for share in values],
            "total": [f"{100 * total:.4g} %" for total in np.cumsum(values)],
        }
    )
    bars = figure.vbar("k", width=0.75, top="share", color="colour", source=source)
    if noise is not None:
        figure.line(number, noise, color="#1d2733", line_dash="dashed", line_width=1.5)
    tallest = float(max(values.max(initial=0.0), 0.0 if noise is None else np.nanmax(noise))) or 1.0
    votes = {} if advice is None else {k: rules for k, rules in advice.votes.items() if k <= len(values)}
    figure.y_range.start, figure.y_range.end = 0, tallest * (1.05 + 0.09 * len(votes))
    figure.yaxis.bounds = (0, 1.05 * tallest)  # no numbers where the names of the rules are
    for j, (k, rules) in enumerate(votes.items()):
        _mark(figure, k, ", ".join(rules), len(values), tallest * (1.07 + 0.09 * (len(votes) - 1 - j)))
    figure.yaxis.formatter = bokeh_module("models").NumeralTickFormatter(format="0.[0] %")
    figure.xaxis.ticker = bokeh_module("models").BasicTicker(min_interval=1, num_minor_ticks=0)
    hover_names(figure, [bars], [("component", "@k"), ("share", "@text"), ("running sum", "@total")], "vline")
    return figure


def _spectrum(shares: NDArray[Any], advice: Any, whole: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """All shares where a rule has seen them all, and those of noise by parallel analysis."""
    seen = advice.choices.get("broken-stick") if advice is not None else None
    whole = seen.values if seen is not None else whole
    if whole is not None and len(whole) >= len(shares):
        shares = np.concatenate([shares, whole[len(shares) :]])
    values = shares[:SHOWN]
    parallel = advice.choices.get("parallel") if advice is not None else None
    if parallel is None or not len(values) or not parallel.values[0] > 0:
        return values, None
    # Its values are eigenvalues; the first one is the first share in another unit.
    return values, (parallel.thresholds * (values[0] / parallel.values[0]))[: len(values)]


def _mark(figure: Any, k: int, rules: str, most: int, height: float) -> None:
    """A line after the last component that some rules keep, and the names of the rules."""
    models = bokeh_module("models")
    line = {"line_color": FAINT, "line_dash": "dotted", "line_width": 1.2}
    figure.segment(k + 0.5, 0, k + 0.5, height, **line)
    right = 2 * k > most
    side = {"text_align": "right" if right else "left", "x_offset": -4 if right else 4, "text_baseline": "bottom"}
    look = {"text_font_size": "11px", "text_color": FAINT, "background_fill_color": "white"}
    figure.add_layout(
        models.Label(x=k + 0.5, y=height, text=f"{k}: {rules}", background_fill_alpha=0.85, **side, **look)
    )
