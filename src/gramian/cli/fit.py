"""``gramian fit``: distributions by maximum likelihood, compared, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian import display
from gramian.cli.options import NAMES, command, option
from gramian.cli.output import Output, Results, ResultTable, describe_data, output_options, publish
from gramian.cli.reading import (
    FILE,
    ObservationColumns,
    ReadingOptions,
    Vector,
    input_name,
    read,
    read_rows,
    reading_options,
    record_options,
)
from gramian.cli.running import LOG, CommandRun, data_errors, running_options
from gramian.display import report as reports
from gramian.likelihood import Binned, Censored, Comparison, Intervals, Sample, as_sample, compare
from gramian.likelihood.estimator import MaximumLikelihood
from gramian.likelihood.families import FAMILIES
from gramian.likelihood.goodness import measure_goodness

TABLES = ("estimates", "comparison")
PICTURES = ("fit", "profile")
PARAMETERS = ("parameter", "estimate", "standard_error", "lower", "upper")
RANKING = {"family": "", "parameters": "", "loglik": ".2f", "aic": ".2f", "bic": ".2f", "difference": ".2f"}
JOINT = "multivariate normal"
MAX_CLASSES, BAR = 12, 24  # of a histogram on the screen, and characters of its longest bar
OFFERED = sorted(name for name, law in FAMILIES.items() if name == law.name != "categorical")
COUNTS = ("poisson", "geometric", "negative binomial")
POSITIVE = ("normal", "lognormal", "gamma", "weibull", "exponential")
REAL = ("normal", "student t", "laplace", "logistic")


def make_sample(columns: dict[str, Vector], values: Vector | None, records: ObservationColumns) -> Sample:
    """Return one column, or one pair of limits, as a sample.

    Classes that follow one upon the other, with counts, are binned data, for which there are goodness-of-fit tests.
    """
    counts = None if records.counts is None else columns[records.counts]
    if records.lower is not None and records.upper is not None:
        low, high = columns[records.lower], columns[records.upper]
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        order = np.argsort(low, kind="stable")
        edges = np.append(low[order], high[order][-1:])
        if counts is not None and np.array_equal(edges[1:], high[order]) and np.all(np.diff(edges) > 0):
            return as_sample(Binned(edges, counts[order]), None, records.truncated)
        return as_sample(Intervals(low, high), counts, records.truncated)
    if values is None:
        raise ValueError("there is no column of values: name it with --columns")
    if records.event is not None:
        return as_sample(Censored(values, columns[records.event], records.side), counts, records.truncated)
    return as_sample(values, counts, records.truncated)


def choose_families(sample: Sample) -> tuple[str, ...]:
    """Return the families worth comparing for values like these; of whole numbers counts and continuous ones.

    Examples
    --------
    >>> from gramian.cli.fit import choose_families
    >>> from gramian.likelihood import as_sample
    >>> choose_families(as_sample([0, 3, 1, 1]))[:3]
    ('poisson', 'negative binomial', 'normal')
    """
    seen = sample.observed()
    low, high = float(np.min(seen.lower)), float(np.max(seen.upper))
    if seen.exact.all() and low >= 0 and np.all(seen.lower == np.floor(seen.lower)):
        if high <= 1:
            return ("bernoulli",)
        return (*(name for name in COUNTS if low >= 1 or name != "geometric"), *POSITIVE)
    if low < 0 or (low == 0 and seen.exact.any() and np.min(seen.lower[seen.exact], initial=1.0) == 0):
        return REAL
    return (*POSITIVE, "beta") if high < 1 else POSITIVE


def parse_parameter(text: str) -> tuple[str, float]:
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
@option("--by", type=click.Choice(["aic", "bic", "loglik"]), default="aic", help="What ranks them.")
@record_options
@option(
    "--fixed", type=parse_parameter, multiple=True, metavar="NAME=VALUE", help="A parameter to hold, of one family."
)
@option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95)
@option("--tol", type=click.FloatRange(min=0, min_open=True), default=1e-6, help="Gradient to reach.")
@reading_options(missing="refuse")
@output_options()
@running_options
def fit(
    file: Path,
    family: tuple[str, ...] | None,
    by: str,
    records: ObservationColumns,
    fixed: tuple[tuple[str, float], ...],
    level: float,
    tol: float,
    reading: ReadingOptions,
    output: Output,
    run: CommandRun,
) -> None:
    """Fit distributions to a column of FILE, and rank them; - is standard input.

    Values may be counted, censored, truncated, or known to lie in intervals or classes. Several columns are fitted by
    one family, each by itself, or by "multivariate normal". Writes estimates with standard errors and intervals, the
    ranking, model.gramian, certificate.json, report.html and a picture.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    records.check(reading.columns)
    output.check(TABLES, PICTURES)
    if records.lower is not None:  # an interval without an end has an empty cell
        reading = replace(reading, columns=records.names, missing="keep", keep_empty=True)
    elif reading.columns is not None:
        reading = replace(reading, columns=(*reading.columns, *records.names))
    table = read(file, reading, run)
    with run.step("Fitting"), data_errors(input_name(file)):
        columns = dict(zip(table.names, read_rows(table.source).T, strict=True))
        values = {name: column for name, column in columns.items() if name not in records.names}
        settings: dict[str, Any] = {"truncated": records.truncated, "fixed": dict(fixed) or None, "tol": tol}
        ranking = None
        if len(values) > 1:
            families = family or ("normal",)  # one for every column
            if len(families) > 1 or records.event is not None:
                many = f"there are {len(values)} columns of values"
                raise click.UsageError(f"{many}: name one with --columns, or one --family")
            if families[0].replace("-", " ").replace("_", " ") == JOINT:
                settings = {"tol": tol}
            weights = None if records.counts is None else columns[records.counts]
            X = np.column_stack(list(values.values()))
            model = MaximumLikelihood(families[0], **settings).fit(X, sample_weight=weights)
        else:
            sample = make_sample(columns, next(iter(values.values()), None), records)
            model, ranking = _fit_best(sample, family or choose_families(sample), by, settings)
    failed = {} if ranking is None else ranking.failed
    for name, reason in failed.items():
        run.warn(f"{name} could not be fitted: {reason}")
    names = list(values)
    if len(model.estimates_) != len(values):
        names = [", ".join(values) if records.lower is None else f"{records.lower} to {records.upper}"]
    fits = dict(zip(names, model.estimates_, strict=True))
    estimates = {name: _estimate_columns(estimate, level) for name, estimate in fits.items()}
    every: dict[str, list[Any]] = {name: [] for name in ("column", "family", *PARAMETERS)}
    for name, found in estimates.items():
        every["column"] += [name] * len(found["parameter"])
        every["family"] += [fits[name].family.name] * len(found["parameter"])
        for head in PARAMETERS:
            every[head] += found[head]
    compared = (
        [] if ranking is None else [ResultTable(ranking.table(), "comparison", "Families, the best first", RANKING)]
    )
    shown = [ResultTable(estimates[name], title=f"{estimate.family.name}: {name}") for name, estimate in fits.items()]
    first = model.estimates_[0]
    pictures: dict[str, Callable[[], Any]] = {}
    if first.sample is not None:
        pictures["fit"] = lambda: display.FitDisplay.from_estimator(first, name=names[0])
        if first.profiler is not None:
            pictures["profile"] = lambda: display.ProfileDisplay.from_estimator(first, level=level)
    results = Results(
        data=describe_data(table, file),
        columns=list(values),
        model=model,
        certificates={name if len(fits) > 1 else "": estimate.certificate for name, estimate in fits.items()},
        quality=measure_goodness(fits),
        tables=[*compared, *shown, *([] if output.out else _histograms(fits)), ResultTable(every, "estimates")],
        lines=[] if ranking is None else ranking.notes,
        pictures=pictures,
        report=lambda **given: reports.fit_report(ranking if ranking is not None else fits, level=level, **given),
        facts={
            "family": first.family.name,
            "fits": {name: _fit_facts(estimate, estimates[name]) for name, estimate in fits.items()},
            **({"comparison": compared[0], "not_fitted": failed} if compared else {}),
        },
    )
    publish(run, output, results)


def _fit_best(
    sample: Any, families: tuple[str, ...], by: str, settings: Any
) -> tuple[MaximumLikelihood, Comparison | None]:
    """The best of several families, or the one that was named."""
    if len(families) == 1:
        return MaximumLikelihood(families[0], **{**settings, "truncated": None}).fit(sample), None
    if settings["fixed"]:
        raise click.UsageError("--fixed holds a parameter of one family: name it with --family")
    ranking = compare(families, sample, by=by)
    LOG.info("%s", ranking)
    model = MaximumLikelihood(ranking.best.family.name, tol=settings["tol"]).fit(ranking.best.sample)
    # the report shows the certificate of the fit to the tolerance that was asked for
    return model, replace(ranking, estimates=(model.estimates_[0], *ranking.estimates[1:]))


def _estimate_columns(estimate: Any, level: float) -> dict[str, list[Any]]:
    """Estimate, standard error and interval of every parameter: by profile likelihood, by Wald where there is none."""
    try:
        found = estimate.profile(level)
    except ValueError:
        found = estimate.wald(level)
    rows = [
        (name, value, estimate.standard_errors[name], *(found[name] if name in found.names else (np.nan, np.nan)))
        for name, value in estimate.estimates.items()
    ]
    return dict(zip(PARAMETERS, map(list, zip(*rows, strict=True)), strict=True))


def _histograms(fits: Mapping[str, Any]) -> list[ResultTable]:
    """Observed and expected numbers in equal classes with a bar for each, of columns of single values."""
    tables = []
    for name, estimate in fits.items():
        sample = None if estimate.sample is None else estimate.sample.points().observed()
        angles = sample is not None and any(p.kind == "angle" for p in estimate.family.parameters)
        if sample is None or angles or not sample.plain or np.ptp(sample.lower) == 0:
            continue
        x, h = sample.lower, 0.5 * (estimate.family.discrete or estimate.sample.rounding > 0)
        if h:  # classes of whole numbers end between two of them
            width = max(1.0, np.ceil((np.ptp(x) + 1.0) / MAX_CLASSES))
            edges = np.arange(x.min() - h, x.max() + h + width, width)
        else:
            edges = np.histogram_bin_edges(x, min(MAX_CLASSES, int(np.log2(len(x))) + 2))
        counts = np.histogram(x, edges, weights=sample.weight)[0]
        expected = sample.total * np.diff(estimate.cdf(edges))
        bars = ["█" * round(BAR * count / counts.max()) or "▏" for count in counts]
        columns = {"from": edges[:-1], "to": edges[1:], "observed": counts, "expected": expected, "": bars}
        formats = {"from": "", "to": "", "observed": ".0f", "expected": ".1f", "": ""}
        tables.append(ResultTable(columns, title=f"{name} and the fit", formats=formats, most=2 * MAX_CLASSES))
    return tables


def _fit_facts(estimate: Any, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    named, *numbers = columns.values()
    each = [dict(zip(PARAMETERS[1:], row, strict=True)) for row in zip(*numbers, strict=True)]
    return {
        "family": estimate.family.name,
        "observations": estimate.n,
        "loglik": estimate.loglik,
        "aic": estimate.aic,
        "bic": estimate.bic,
        "parameters": dict(zip(named, each, strict=True)),
    }
