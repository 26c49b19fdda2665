"""Reports of distributions fitted by maximum likelihood."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np

from gramian.display.base import INK, PALETTE
from gramian.display.likelihood import describe_fit
from gramian.display.report.assemble import Common, assemble, find_quality
from gramian.display.report.blocks import (
    FAINT,
    DataTable,
    Figure,
    Proof,
    Report,
    ReportBlock,
    Row,
    Section,
    Text,
    format_value,
    hover_names,
    legend_above,
    new_figure,
)
from gramian.display.report.facts import DataFacts, Run
from gramian.likelihood.fit import Comparison
from gramian.likelihood.goodness import Goodness, measure_goodness

DRAWN = 2000  # quantiles
GRID_POINTS = 6000  # between which the fitted distribution function is interpolated


def fit_figure(estimate: Any) -> Any:
    """A fitted distribution over its data, as :class:`gramian.display.FitDisplay` draws it."""
    data = describe_fit(estimate)
    figure = new_figure(data.x_name, data.y_name, height=340)
    if len(data.heights):
        columns = {"left": data.left, "right": data.right, "top": data.heights, "count": data.counts}
        style = {"fill_color": PALETTE[3], "line_color": "white", "legend_label": "data"}
        bars = figure.quad(left="left", right="right", top="top", bottom=0, source=columns, **style)
        hover_names(figure, [bars], [("from", "@left"), ("to", "@right"), ("observed", "@count")])
    if len(data.steps):
        figure.step(*data.steps.T, mode="after", color=PALETTE[0], line_width=2, legend_label="data (product limit)")
        figure.scatter(*data.censored.T, marker="dash", angle=np.pi / 2, size=9, color=INK, legend_label="censored")
    if len(data.records):
        low, high, depth, _ = data.records.T
        figure.segment(low, depth, high, depth, color=PALETTE[0], legend_label="records")
    if data.points:
        figure.scatter(data.x, data.y, color=PALETTE[1], size=8, legend_label="fit")
    else:
        figure.line(data.x, data.y, color=PALETTE[1], line_width=2.5, legend_label="fit")
    if not len(data.records):
        figure.y_range.start = 0
    if data.top is not None:
        figure.y_range.end = data.top
    legend_above(figure)
    return figure


def quantile_figure(estimate: Any) -> Any:
    """Observed values against the values at which the fit has the same share below."""
    sample = estimate.sample.observed()
    order = np.argsort(sample.lower, kind="stable")
    values, weight = sample.lower[order], sample.weight[order]
    share = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    some = np.unique(np.linspace(0, len(values) - 1, min(len(values), DRAWN)).round().astype(int))
    reach, family = float(values[-1] - values[0]) or 1.0, estimate.family
    x = np.linspace(max(values[0] - reach, family.low), min(values[-1] + reach, family.high), GRID_POINTS)
    below = estimate.cdf(x)
    inside = some[(share[some] > below[0]) & (share[some] < below[-1])]
    fitted = np.interp(share[inside], below, x)
    figure = new_figure("fitted quantile", "observed value", height=340)
    ends = [float(values[0]), float(values[-1])]
    figure.line(ends, ends, color=FAINT, line_width=1.5)
    source = {"x": fitted, "y": values[inside], "p": 100 * share[inside]}
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
    >>> [section.title for section in report.sections][:2]
    ['gamma', 'Estimates']
    """
    by_name = dict(fits) if isinstance(fits, Mapping) else {"": fits}
    if not by_name:
        raise ValueError("fits is empty: there is nothing to report.")
    best = {name: found.best if isinstance(found, Comparison) else found for name, found in by_name.items()}
    goodness = {name: _measure_goodness(estimate) for name, estimate in list(best.items())[:PICTURES]}
    drawn = [_column_section(name, by_name[name], best[name], found) for name, found in goodness.items()]
    sections = [*drawn, _estimates_section(best, intervals, level)]
    proofs: dict[str, Proof] = {name or "": estimate.certificate for name, estimate in best.items()}
    families = list(dict.fromkeys(estimate.family.name for estimate in best.values()))
    first = next(iter(best.values()))
    tiles = [(", ".join(families[:3]) + "…" * (len(families) > 3), "family"), (f"{first.n:,.0f}", "observations")]
    if len(best) == 1:
        tiles += [(format_value(float(value)), name) for name, value in list(first.estimates.items())[:3]]
    common: Common = {"data": data, "run": run or Run(), "title": title}
    facts = [("Families", ", ".join(families)), ("Observations", f"{first.n:,.6g}")]
    quality = find_quality(common, lambda: measure_goodness(best))
    return assemble("Maximum likelihood", proofs, facts, tiles, sections, common, quality)


def _measure_goodness(estimate: Any) -> Goodness | None:
    """Statistics of fit, where the data allow any."""
    with suppress(ValueError):
        return cast(Goodness, estimate.goodness())
    return None


def _estimates_section(best: Mapping[str, Any], profile: bool, level: float) -> Section:
    heads = ("column", "family", "parameter", "estimate", "standard error", "lower", "upper", "interval by")
    rows = []
    for name, estimate in best.items():
        ends, method = None, "profile likelihood"
        if profile and len(estimate.names) <= PROFILED:
            with warnings.catch_warnings(), suppress(ValueError):  # a family without a profile
                warnings.simplefilter("ignore")
                ends = estimate.profile(level)
        if ends is None:
            ends, method = estimate.wald(level), "Wald"
        for key, value in estimate.estimates.items():
            interval = ends[key] if key in ends.names else (np.nan, np.nan)
            rows.append((name, estimate.family.name, key, value, estimate.standard_errors[key], *interval, method))
    lines = _table(heads, rows)
    numbers = [(e.family.name, float(e.n), float(e.loglik), float(e.aic), float(e.bic)) for e in best.values()]
    criteria = {"column": list(best)} | _table(("family", "observations", "log-likelihood", "AIC", "BIC"), numbers)
    if set(best) == {""}:
        del lines["column"], criteria["column"]
    often = f"{100 * level:.6g} times in 100"
    lead = f"Estimates with intervals that hold the true value {often}, in large samples, if the family is right."
    blocks: list[ReportBlock] = [
        DataTable("estimates", "Estimates", lines),
        DataTable("criteria", "Likelihoods", criteria),
    ]
    if len(best) > PICTURES:
        blocks.append(Text(f"The first {PICTURES} of {len(best)} columns are drawn.", "note"))
    return Section("Estimates", blocks, lead)


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Columns by name, from rows."""
    return {head: list(column) for head, column in zip(heads, zip(*rows, strict=True), strict=True)}


def _column_section(name: str, found: Any, estimate: Any, goodness: Goodness | None) -> Section:
    """What was fitted to one column: the ranking of families, the fit over its data, and how well it fits."""
    blocks: list[ReportBlock] = []
    sample = estimate.sample
    if sample is not None and hasattr(estimate.family, "log_interval"):
        figures: list[ReportBlock] = [Figure("Fit", lambda: fit_figure(estimate), "Data and the fitted distribution.")]
        if sample.edges is None and sample.plain and not estimate.family.discrete and len(sample.lower) > 1:
            note = "Points on the line are where the fit puts them."
            figures.append(Figure("Quantiles", lambda: quantile_figure(estimate), note))
        blocks += [Row(figures) if len(figures) > 1 else figures[0], *_goodness(goodness)]
    if isinstance(found, Comparison):
        table = found.table()
        blocks.append(DataTable(f"families-{name}" if name else "families", "Families, the best first", table))
    if isinstance(found, Comparison) and found.failed:
        failed = [f"{family} could not be fitted: {reason}" for family, reason in found.failed.items()]
        blocks.append(Text(failed, "note"))
    if not blocks:
        blocks.append(Text("A distribution of rows or labels has no curve to draw."))
    return Section(f"{name}: {estimate.family.name}" if name else estimate.family.name, blocks)


def _goodness(found: Goodness | None) -> list[ReportBlock]:
    """A table of the statistics of fit."""
    if found is None:
        return []
    rows: list[tuple[str, float, float | None, float]] = []
    if len(found.observed):
        rows.append(("deviance G²", found.deviance, found.df, found.p_deviance))
        rows.append(("Pearson X²", found.pearson, found.df, found.p_pearson))
    if not np.isnan(found.ks):
        rows.append(("Kolmogorov–Smirnov D", found.ks, None, found.p_ks))
    notes = Text(list(found.notes), "note")
    if not rows:
        return [notes]
    cells = _table(("statistic", "value", "df", "p-value"), rows)
    return [DataTable("goodness", "Goodness of fit", cells, chances=("p-value",)), notes]
