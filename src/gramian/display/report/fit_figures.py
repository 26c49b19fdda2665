"""Interactive figures of fitted distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.display.report.drawing import FAINT, bokeh_module, hover_names, new_figure
from gramian.display.style import PALETTE

__all__ = ["density_figure", "quantile_figure"]

Vector = NDArray[np.float64]

STEPS = 300  # points of a curve
DRAWN = 2000  # quantiles
MOST = 60  # values of a count that get a bar each
BAR = "#88ccee"


def density_figure(estimate: Any) -> Any:
    """Data as bars and the fitted density or probabilities; the distribution function where data are intervals."""
    sample, discrete = estimate.sample, estimate.family.discrete
    if sample.edges is not None:
        return _classes(estimate, *_closed(sample.edges), sample.weight)
    sample = sample.observed()
    if not sample.exact.all():
        return _distribution(estimate, sample)
    low, high = float(sample.lower.min()), float(sample.lower.max())
    if discrete and high - low <= MOST:
        edges = np.arange(low - 0.5, high + 1.0)
    else:
        edges = np.histogram_bin_edges(sample.lower, bins="auto" if not discrete else MOST)
        edges = edges if len(edges) <= 201 else np.linspace(edges[0], edges[-1], 201)
    counts = np.histogram(sample.lower, bins=edges, weights=sample.weight)[0]
    return _classes(estimate, edges, counts)


def _closed(edges: Vector) -> tuple[Vector]:
    """Edges with open ends closed by the usual width."""
    limits = np.array(edges, dtype=float)
    finite = np.diff(limits[np.isfinite(limits)])
    usual = float(np.median(finite)) if len(finite) else 1.0
    middle = limits[np.isfinite(limits)]
    if not len(middle):
        return (np.array([-1.0, 1.0]),)
    limits[0] = limits[0] if np.isfinite(limits[0]) else middle[0] - usual
    limits[-1] = limits[-1] if np.isfinite(limits[-1]) else middle[-1] + usual
    return (limits,)


def _classes(estimate: Any, edges: Vector, counts: Vector) -> Any:
    width = np.diff(edges)
    heights = np.asarray(counts, dtype=float) / float(np.sum(counts)) / width
    figure = new_figure("value", "share" if estimate.family.discrete else "density", height=340)
    data = {"left": edges[:-1], "right": edges[1:], "top": heights, "count": counts}
    source = bokeh_module("models").ColumnDataSource(data)
    style = {"fill_color": BAR, "line_color": "white", "legend_label": "data"}
    bars = figure.quad(left="left", right="right", top="top", bottom=0, source=source, **style)
    if estimate.family.discrete:
        x = np.arange(np.ceil(edges[0]), edges[-1])
        figure.scatter(x, _visible(estimate, x), color=PALETTE[1], size=8, legend_label="fit")
    else:
        x = _grid(estimate, float(edges[0]), float(edges[-1]), 0.08)
        y = _visible(estimate, x)
        good = np.isfinite(y)
        figure.line(x[good], y[good], color=PALETTE[1], line_width=2.5, legend_label="fit")
        _cap(figure, heights, y[good])
    hover_names(figure, [bars], [("from", "@left"), ("to", "@right"), ("observed", "@count")])
    return _finished(figure)


def _cap(figure: Any, heights: Vector, y: Vector) -> None:
    """Keep a density that has a pole from flattening the bars."""
    figure.y_range.end = 1.1 * float(min(max(heights.max(), y.max(initial=0.0)), 3.0 * heights.max()))


def _finished(figure: Any) -> Any:
    figure.y_range.start = 0
    figure.legend.border_line_color = None
    figure.legend.background_fill_alpha = 0.8
    return figure


def _grid(estimate: Any, low: float, high: float, margin: float, steps: int = STEPS) -> Vector:
    """Points around the data, where the family has a density."""
    reach = margin * (high - low or 1.0)
    return np.linspace(max(low - reach, estimate.family.low), min(high + reach, estimate.family.high), steps)


def _visible(estimate: Any, x: Vector) -> Vector:
    """The density of what could be seen: 0 outside the window of truncated data, and larger inside."""
    sample, family = estimate.sample, estimate.family
    y = np.exp(estimate.log_density(x))
    if not sample.truncated or len(sample.left) > 1:
        return np.asarray(y)
    c, d = sample.left, sample.right
    inside = family.log_interval(np.ceil(c) - 1.0 if family.discrete else c, d, estimate.values)
    return np.where((x < c[0]) | (x > d[0]), 0.0, y / np.exp(inside[0]))


def _distribution(estimate: Any, sample: Any) -> Any:
    """Survival by the product limit, where times are censored on the right alone; and that of the fit."""
    figure = new_figure("value", "share beyond", height=340)
    sides = np.concatenate([sample.lower, sample.upper])
    sides = sides[np.isfinite(sides)]
    x = _grid(estimate, float(sides.min()), float(sides.max()), 0.05)
    steps = sample.survival()
    if steps is not None:
        times = np.concatenate([[x[0]], steps[0], [x[-1]]])
        left = np.concatenate([[1.0], steps[1], steps[1][-1:] if len(steps[1]) else [1.0]])
        figure.step(times, left, mode="after", color=PALETTE[0], line_width=2, legend_label="data (product limit)")
    figure.line(x, 1.0 - estimate.cdf(x), color=PALETTE[1], line_width=2.5, legend_label="fit")
    return _finished(figure)


def quantile_figure(estimate: Any) -> Any:
    """Observed values against the values at which the fit has the same share below."""
    sample = estimate.sample.observed()
    order = np.argsort(sample.lower, kind="stable")
    values, weight = sample.lower[order], sample.weight[order]
    share = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    some = np.unique(np.linspace(0, len(values) - 1, min(len(values), DRAWN)).round().astype(int))
    x = _grid(estimate, float(values[0]), float(values[-1]), 1.0, 20 * STEPS)
    below = estimate.cdf(x)
    inside = some[(share[some] > below[0]) & (share[some] < below[-1])]
    fitted = np.interp(share[inside], below, x)
    figure = new_figure("fitted quantile", "observed value", height=340)
    ends = [float(values[0]), float(values[-1])]
    figure.line(ends, ends, color=FAINT, line_width=1.5)
    source = bokeh_module("models").ColumnDataSource({"x": fitted, "y": values[inside], "p": 100 * share[inside]})
    dots = figure.scatter("x", "y", source=source, color=PALETTE[0], size=5, fill_alpha=0.6, line_color=None)
    hover_names(figure, [dots], [("observed", "@y"), ("fitted", "@x"), ("share below", "@p{0.0} %")])
    return figure
