"""Reports of distributions fitted by maximum likelihood."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import PALETTE
from gramian.display.report.assemble import Common, assemble
from gramian.display.report.blocks import (
    Block,
    DataFacts,
    DataTable,
    Figure,
    Proof,
    Report,
    Row,
    Run,
    Section,
    Text,
    shown,
)
from gramian.display.report.drawing import FAINT, bokeh_module, hover_names, new_figure

__all__ = ["density_figure", "fit_report", "quantile_figure"]

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


PICTURES = 12  # columns with sections of their own
PROFILED = 6  # parameters up to which intervals follow the likelihood


def fit_report(
    fits: Any,
    *,
    intervals: bool = True,
    level: float = 0.95,
    data: DataFacts,
    run: Run | None = None,
    title: str | None = None,
) -> Report:
    """Report distributions fitted to one column or several.

    Parameters
    ----------
    fits : Estimate, Comparison, or mapping of str to these
        What :func:`gramian.likelihood.fit` or :func:`gramian.likelihood.compare` returned; by column.
    intervals : bool, default=True
        Whether to find intervals by the likelihood's profile; Wald's otherwise, and where there are many parameters.
    level : float, default=0.95
        How often an interval holds the true value.
    data : DataFacts
        What was fitted on.
    run : Run, optional
        How it was made.
    title : str, optional
        Of the page.

    Returns
    -------
    Report
        For :func:`write_report`.

    Examples
    --------
    >>> from gramian.display.report import DataFacts, fit_report
    >>> from gramian.likelihood import fit
    >>> report = fit_report(fit("gamma", [1.0, 2.0, 2.5, 4.0]), data=DataFacts("waiting times", 4, 1))
    >>> [section.title for section in report.sections][2:4]
    ['Estimates', 'gamma']
    """
    by_name = dict(fits) if isinstance(fits, Mapping) else {"": fits}
    if not by_name:
        raise ValueError("fits is empty: there is nothing to report.")
    best = {name: _best(found) for name, found in by_name.items()}
    lines = _lines(best, intervals, level)
    sections = [_estimates(best, lines, level)]
    for name, found in list(by_name.items())[:PICTURES]:
        sections.append(_one(name, found, best[name]))
    if len(by_name) > PICTURES:
        sections[0] = _with(sections[0], Text(f"The first {PICTURES} of {len(by_name)} columns are drawn.", "note"))
    proofs: dict[str, Proof] = {name or "": estimate.certificate for name, estimate in best.items()}
    families = list(dict.fromkeys(estimate.family.name for estimate in best.values()))
    first = next(iter(best.values()))
    tiles = [(", ".join(families[:3]) + "…" * (len(families) > 3), "family"), (f"{first.n:,.0f}", "observations")]
    if len(best) == 1:
        tiles += [(shown(float(value)), name) for name, value in list(first.estimates.items())[:3]]
    common: Common = {"data": data, "run": run or Run(), "title": title}
    facts = [("Families", ", ".join(families)), ("Observations", f"{first.n:,.6g}")]
    return assemble("Maximum likelihood", facts, proofs, sections, tiles, {}, common)


def _best(found: Any) -> Any:
    """The estimate, or the best of several."""
    return found.best if hasattr(found, "best") else found


def _with(section: Section, block: Block) -> Section:
    return Section(section.title, [*section.blocks, block], section.lead)


def _ends(estimate: Any, profile: bool, level: float) -> tuple[dict[str, tuple[float, float]], str]:
    """Intervals by name, and by which method."""
    if profile and len(estimate.names) <= PROFILED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = estimate.profile(level)
                return {name: found[name] for name in found.names}, "profile likelihood"
            except ValueError:  # a family without a profile
                pass
    found = estimate.wald(level)
    return {name: found[name] for name in found.names}, "Wald"


def _lines(best: Mapping[str, Any], profile: bool, level: float) -> dict[str, list[Any]]:
    heads = ("column", "family", "parameter", "estimate", "standard error", "lower", "upper", "interval by")
    lines: dict[str, list[Any]] = {head: [] for head in heads}
    for name, estimate in best.items():
        ends, method = _ends(estimate, profile, level)
        for key, value in estimate.estimates.items():
            low, high = ends.get(key, (np.nan, np.nan))
            row = (name, estimate.family.name, key, value, estimate.standard_errors[key], low, high, method)
            for head, cell in zip(heads, row, strict=True):
                lines[head].append(float(cell) if isinstance(cell, np.floating) else cell)
    return lines


def _estimates(best: Mapping[str, Any], lines: dict[str, list[Any]], level: float) -> Section:
    if set(best) == {""}:
        lines = {head: column for head, column in lines.items() if head != "column"}
    criteria: dict[str, Any] = {
        "column": list(best),
        "family": [estimate.family.name for estimate in best.values()],
        "observations": [float(estimate.n) for estimate in best.values()],
        "log-likelihood": [float(estimate.loglik) for estimate in best.values()],
        "AIC": [float(estimate.aic) for estimate in best.values()],
        "BIC": [float(estimate.bic) for estimate in best.values()],
    }
    often = f"{100 * level:.6g} times in 100"
    lead = f"Estimates with intervals that hold the true value {often}, in large samples, if the family is right."
    blocks = [
        DataTable("estimates", "Estimates", lines),
        DataTable("criteria", "Likelihoods", criteria if set(best) != {""} else _without(criteria, "column")),
    ]
    return Section("Estimates", blocks, lead)


def _without(table: dict[str, Any], name: str) -> dict[str, Any]:
    return {head: column for head, column in table.items() if head != name}


def _one(name: str, found: Any, estimate: Any) -> Section:
    blocks: list[Block] = []
    figures: list[Block] = []
    if _is_drawn(estimate):
        note = "Data and the fitted distribution."
        figures.append(Figure("Fit", lambda: density_figure(estimate), note))
        if _has_quantiles(estimate):
            note = "Points on the line are where the fit puts them."
            figures.append(Figure("Quantiles", lambda: quantile_figure(estimate), note))
        blocks.append(Row(figures) if len(figures) > 1 else figures[0])
        blocks += _goodness(estimate)
    if hasattr(found, "estimates") and hasattr(found, "best"):
        ranking = DataTable(f"families-{name}" if name else "families", "Families, the best first", found.table())
        blocks = [ranking, *blocks]
        failed = [f"{family} could not be fitted: {reason}" for family, reason in found.failed.items()]
        blocks += [Text(failed, "note")] if failed else []
    if not blocks:
        blocks.append(Text("A distribution of rows or labels has no curve to draw."))
    return Section(f"{name}: {estimate.family.name}" if name else estimate.family.name, blocks)


def _is_drawn(estimate: Any) -> bool:
    return estimate.sample is not None and hasattr(estimate.family, "log_interval")


def _has_quantiles(estimate: Any) -> bool:
    sample = estimate.sample
    return bool(sample.edges is None and sample.plain and not estimate.family.discrete and len(sample.lower) > 1)


def _goodness(estimate: Any) -> list[Block]:
    """Statistics of fit, where the data allow any."""
    try:
        found = estimate.goodness()
    except ValueError:
        return []
    rows = [
        ("deviance G²", found.deviance, found.df, found.p_deviance),
        ("Pearson X²", found.pearson, found.df, found.p_pearson),
    ]
    rows = rows if len(found.observed) else []
    if not np.isnan(found.ks):
        rows.append(("Kolmogorov–Smirnov D", found.ks, None, found.p_ks))
    notes: list[Block] = [Text(list(found.notes), "note")] if found.notes else []
    if not rows:
        return notes
    columns = dict(
        zip(("statistic", "value", "df", "p-value"), (list(c) for c in zip(*rows, strict=True)), strict=True)
    )
    return [DataTable("goodness", "Goodness of fit", columns), *notes]
