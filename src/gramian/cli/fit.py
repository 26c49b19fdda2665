"""``gramian fit``: distributions by maximum likelihood, compared, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian.cli.errors import data_errors
from gramian.cli.options import NAMES, command, option
from gramian.cli.output import Columns, Output, Results, facts_of, output_options, publish, screen_table
from gramian.cli.reading import (
    FILE,
    Reading,
    Records,
    families_for,
    input_name,
    read,
    reading_options,
    record_options,
    rows_of,
    sample_of,
)
from gramian.cli.running import LOG, Run, running_options
from gramian.display import ProfileDisplay, plot_fit
from gramian.display.base import name_axes
from gramian.display.report import fit_report
from gramian.likelihood import Comparison, compare
from gramian.likelihood.estimator import MaximumLikelihood
from gramian.likelihood.families.names import FAMILIES

__all__ = ["fit"]

TABLES = ("estimates", "comparison")
PICTURES = ("fit", "profile")
JOINT = "multivariate normal"
OFFERED = sorted(name for name in FAMILIES if name not in ("categorical", "gaussian", "t"))


def parameter(text: str) -> tuple[str, float]:
    """Return a name and a number from name=value."""
    name, mark, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not mark or not np.isfinite(number):
        raise click.BadParameter(f"{text!r} is no parameter and value; name=value is, as df=4")
    return name.strip(), number


@command(
    "fit",
    "gramian fit waiting.csv --columns minutes --out waiting",
    "gramian fit lifetimes.csv --columns weeks --event died --family weibull,gamma,exponential --json",
)
@click.argument("file", type=FILE)
@option(
    "--family",
    type=NAMES,
    metavar="NAMES",
    help=f"Families to compare [default: by the kind of values]: {', '.join(OFFERED)}, or a name in scipy.stats.",
)
@option("--by", type=click.Choice(["aic", "bic", "loglik"]), default="aic", show_default=True, help="What ranks them.")
@record_options
@option("--fixed", type=parameter, multiple=True, metavar="NAME=VALUE", help="A parameter to hold, of one family.")
@option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="NUMBER",
    default=0.95,
    show_default=True,
)
@option(
    "--tol",
    type=click.FloatRange(min=0, min_open=True),
    metavar="NUMBER",
    default=1e-6,
    show_default=True,
    help="Gradient to reach.",
)
@reading_options(missing="refuse")
@output_options
@running_options
@click.pass_context
def fit(
    context: click.Context,
    /,
    file: Path,
    family: tuple[str, ...] | None,
    by: str,
    records: Records,
    fixed: tuple[tuple[str, float], ...],
    level: float,
    tol: float,
    reading: Reading,
    output: Output,
    run: Run,
) -> None:
    """Fit distributions to a column of FILE, and rank them; - is standard input.

    Values may be counted, censored, truncated, or known to lie in intervals or classes. Several columns are fitted by
    one family, each by itself, or by "multivariate normal". Writes estimates with standard errors and intervals, the
    ranking, model.gramian, certificate.json, report.html and a picture.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    records.check(reading.columns)
    output.check(TABLES, PICTURES)
    table = read(file, _reading(reading, records), run)
    with run.step("Fitting"), data_errors(input_name(file)):
        columns = dict(zip(table.names, rows_of(table.source).T, strict=True))
        values = {name: column for name, column in columns.items() if name not in records.names}
        settings = {"truncated": records.truncated, "fixed": dict(fixed) or None, "tol": tol}
        if len(values) > 1:
            model, ranking = _each(values, columns, family or ("normal",), records, settings)
        else:
            sample = sample_of(columns, next(iter(values.values()), None), records)
            model, ranking = _one(sample, family or families_for(sample), by, settings)
    for name, reason in (ranking.failed if ranking is not None else {}).items():
        run.warn(f"{name} could not be fitted: {reason}")
    results = _results(model, ranking, list(values), _names(model, values, records), level)
    publish(context, run, output, facts_of(table, file), results)


def _reading(reading: Reading, records: Records) -> Reading:
    """Read the values and what belongs to them; an interval without an end has an empty cell."""
    wanted = reading.columns
    if records.lower is not None:
        return reading.with_(columns=records.names, missing="keep")
    return reading if wanted is None else reading.with_(columns=(*wanted, *records.names))


def _each(
    values: Mapping[str, Any], columns: Mapping[str, Any], families: tuple[str, ...], records: Records, settings: Any
) -> tuple[MaximumLikelihood, None]:
    """One family for every column."""
    if len(families) > 1 or records.event is not None:
        raise click.UsageError(f"there are {len(values)} columns of values: name one with --columns, or one --family")
    weights = None if records.counts is None else columns[records.counts]
    if families[0].replace("-", " ").replace("_", " ") == JOINT:
        settings = {"tol": settings["tol"]}
    X = np.column_stack(list(values.values()))
    return MaximumLikelihood(families[0], **settings).fit(X, sample_weight=weights), None


def _one(sample: Any, families: tuple[str, ...], by: str, settings: Any) -> tuple[MaximumLikelihood, Comparison | None]:
    """The best of several families, or the one that was named."""
    if len(families) == 1:
        return MaximumLikelihood(families[0], **{**settings, "truncated": None}).fit(sample), None
    if settings["fixed"]:
        raise click.UsageError("--fixed holds a parameter of one family: name it with --family")
    ranking = compare(families, sample, by=by)
    LOG.info("%s", ranking)
    model = MaximumLikelihood(ranking.best.family.name, tol=settings["tol"]).fit(sample)
    # the report shows the certificate of the fit to the tolerance that was asked for
    return model, replace(ranking, estimates=(model.estimates_[0], *ranking.estimates[1:]))


def _names(model: MaximumLikelihood, values: Mapping[str, Any], records: Records) -> list[str]:
    if len(model.estimates_) == len(values):
        return list(values)
    return [f"{records.lower} to {records.upper}" if records.lower is not None else ", ".join(values)]


def _results(
    model: MaximumLikelihood, ranking: Comparison | None, columns: list[str], names: list[str], level: float
) -> Results:
    fits = dict(zip(names, model.estimates_, strict=True))
    estimates = _estimates(fits, level)
    shown = [screen_table(f"{e.family.name}: {name}", _rows_of(estimates, name)) for name, e in fits.items()]
    tables: dict[str, Columns] = {"estimates": estimates}
    summary: dict[str, Any] = {
        "family": model.estimates_[0].family.name,
        "fits": {name: _summary(estimate, estimates, name) for name, estimate in fits.items()},
    }
    if ranking is not None:
        tables["comparison"] = ranking.table()
        summary["comparison"] = {key: list(column) for key, column in ranking.table().items()}
        summary["not_fitted"] = ranking.failed
        shown.insert(0, screen_table("Families", ranking.table()))
    page = partial(fit_report, ranking if ranking is not None else fits, level=level)
    certificates = {name if len(fits) > 1 else "": estimate.certificate for name, estimate in fits.items()}
    return Results("fit", columns, model, certificates, tables, _pictures(model, names[0], level), page, summary, shown)


def _fit_picture(estimate: Any, name: str) -> Any:
    """The fit over its data, whose axis has the name of the column."""
    ax = plot_fit(estimate)
    if ax.get_xlabel() == "value":
        name_axes(ax, name, ax.get_ylabel())
    return ax


def _pictures(model: MaximumLikelihood, name: str, level: float) -> dict[str, Callable[[], Any]]:
    """The first column with its fit, and the likelihood of each parameter."""
    first = model.estimates_[0]
    if first.sample is None:
        return {}
    drawn: dict[str, Callable[[], Any]] = {"fit": partial(_fit_picture, first, name)}
    if first.seen_from is not None:
        drawn["profile"] = partial(ProfileDisplay.from_estimator, first, level=level)
    return drawn


def _estimates(fits: Mapping[str, Any], level: float) -> Columns:
    """One line for every parameter of every fit: estimate, standard error, and interval by profile likelihood."""
    lines: list[tuple[Any, ...]] = []
    for name, estimate in fits.items():
        intervals = _intervals(estimate, level)
        for key, value in estimate.estimates.items():
            low, high = intervals.get(key, (np.nan, np.nan))
            lines.append((name, estimate.family.name, key, value, estimate.standard_errors[key], low, high))
    heads = ("column", "family", "parameter", "estimate", "standard_error", "lower", "upper")
    return dict(zip(heads, (list(column) for column in zip(*lines, strict=True)), strict=True))


def _intervals(estimate: Any, level: float) -> dict[str, tuple[float, float]]:
    """By profile likelihood; by Wald where there is no profile."""
    try:
        found = estimate.profile(level)
    except ValueError:
        found = estimate.wald(level)
    return {name: found[name] for name in found.names}


def _rows_of(estimates: Columns, name: str) -> Columns:
    keep = [i for i, column in enumerate(estimates["column"]) if column == name]
    return {
        key: [estimates[key][i] for i in keep] for key in ("parameter", "estimate", "standard_error", "lower", "upper")
    }


def _summary(estimate: Any, estimates: Columns, name: str) -> dict[str, Any]:
    rows = _rows_of(estimates, name)
    return {
        "family": estimate.family.name,
        "observations": estimate.n,
        "loglik": estimate.loglik,
        "aic": estimate.aic,
        "bic": estimate.bic,
        "parameters": {
            key: {"estimate": value, "standard_error": error, "lower": low, "upper": high}
            for key, value, error, low, high in zip(*rows.values(), strict=True)
        },
    }
