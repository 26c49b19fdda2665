"""``gramian mixture``: Gaussian mixtures, their number of components and covariance model chosen by a criterion."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gramian.cli.errors import data_errors
from gramian.cli.options import NAMES, command, option, portable
from gramian.cli.output import (
    Columns,
    Output,
    Results,
    facts_of,
    numbered,
    output_options,
    publish,
    row_keys,
    screen_table,
    told_of,
)
from gramian.cli.reading import FILE, Reading, input_name, read, reading_options, rows_of
from gramian.cli.running import LOG, Run, device_option, running_options
from gramian.display import MixtureChoiceDisplay, MixtureDisplay
from gramian.display.report import mixture_report
from gramian.mixture.choose import MixtureChoice, select_mixture
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.parameters import MODELS
from gramian.sources.tables import Table

__all__ = ["mixture"]

TABLES = ("clusters", "components", "covariances", "choice")
PICTURES = ("mixture", "choice")
TYPES = ("full", "tied", "diag", "spherical", "E", "V", *MODELS)
MOST = 10_000  # components
SHOWN = 20_000  # rows that are drawn


def sizes(text: str) -> tuple[int, ...]:
    """Return numbers of components: 3, a range as 1-9, or several as 2,3,5."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None or int(match[1]) < 1 or not int(match[1]) <= int(match[2] or match[1]) <= MOST:
            raise click.BadParameter(f"{text!r} is no number of components; 3, 1-9 and 2,3,5 are")
        found.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(set(found)))


@command(
    "mixture",
    "gramian mixture geyser.csv -k 1-4 --out geyser",
    "gramian mixture geyser.csv -k 2 --covariance full,tied --json",
)
@click.argument("file", type=FILE)
@option("-k", "--components", type=sizes, default="1-9", show_default=True, help="How many: 3, 1-9 or 2,3,5.")
@option(
    "--covariance",
    type=NAMES,
    metavar="NAMES",
    help="full, tied, diag, spherical, or three letters of mclust's, as EEE,VVV [default: all 14 of these].",
)
@option(
    "--criterion",
    type=click.Choice(["bic", "aic", "icl", "lrt"]),
    default="bic",
    show_default=True,
    help="What is chosen by; lrt is the bootstrap likelihood-ratio test.",
)
@option("--counts", metavar="NAME", help="Column that says how often each row was observed.")
@option(
    "--starts", type=click.IntRange(min=1), metavar="NUMBER", default=1, show_default=True, help="Starts of each fit."
)
@option(
    "--tol",
    type=click.FloatRange(min=0, min_open=True),
    metavar="NUMBER",
    default=1e-5,
    show_default=True,
    help="Gradient to reach.",
)
@option(
    "--max-iter",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    default=1000,
    show_default=True,
    help="Most iterations of a start.",
)
@option("--prior", type=click.Choice(["conjugate"]), help="Maximum a posteriori, with mclust's default prior.")
@reading_options()
@output_options
@running_options
@device_option
@click.pass_context
def mixture(
    context: click.Context,
    /,
    file: Path,
    components: tuple[int, ...],
    covariance: tuple[str, ...] | None,
    criterion: str,
    counts: str | None,
    starts: int,
    reading: Reading,
    output: Output,
    run: Run,
    **options: Any,
) -> None:
    """Gaussian mixture of the rows of FILE; - is standard input. Missing cells are taken into the likelihood.

    Every number of components and covariance model asked for is fitted, and the best by the criterion is kept. Writes
    the component of every row, the components, what was chosen from, model.gramian, certificate.json, report.html and
    pictures.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    _check(covariance, criterion)
    output.check(TABLES, PICTURES)
    table = read(file, reading.with_(target=counts), run)
    prototype = GaussianMixture(n_init=starts, random_state=run.seed, **options)
    extra = {"random_state": run.seed} if criterion == "lrt" else {}
    with run.step(f"Fitting mixtures of {_range(components)} components") as report, data_errors(input_name(file)):
        choice = select_mixture(
            prototype,
            table.source,
            n_components=components,
            covariance_types=covariance,
            criterion=criterion,
            sample_weight=table.target,
            progress=report,
            **extra,
        )
    for line in repr(choice).splitlines():
        LOG.info("%s", line)
    portable(choice.best)
    publish(context, run, output, facts_of(table, file), _results(table, choice, reading.label))


def _check(covariance: tuple[str, ...] | None, criterion: str) -> None:
    for name in covariance or ():
        if name not in TYPES:
            raise click.UsageError(f"there is no covariance model {name!r}; there are {', '.join(TYPES)}")
    if criterion == "lrt" and len(covariance or ()) != 1:
        raise click.UsageError("--criterion lrt compares numbers of components in one model: name it by --covariance")


def _range(components: tuple[int, ...]) -> str:
    return str(components[0]) if len(components) == 1 else f"{components[0]} to {components[-1]}"


def _results(table: Table, choice: MixtureChoice, label: str | None) -> Results:
    model = choice.best
    responsibilities = np.asarray(model.predict_proba(table.source))
    many = np.size(choice.bic) > 1
    page = partial(_report, table, label, choice if many else None, model, responsibilities)
    parts = _components(model, table)
    tables: dict[str, Columns] = {
        "clusters": _clusters(table, responsibilities),
        "components": parts,
        "covariances": _covariances(model, table.names),
    }
    summary: dict[str, Any] = {
        "n_components": model.n_components,
        "covariance_type": model.covariance_type,
        "log_likelihood": model.log_likelihood_,
        "n_parameters": model.n_parameters_,
        "bic": model.bic(table.source, table.target),
        "weights": model.weights_,
        "means": model.means_,
    }
    if many:
        tables["choice"] = choice.table()
        summary["choice"] = [{"covariance_type": m, "n_components": k, "value": v} for m, k, v in choice.ranked()]
    title = f"{model.covariance_type}, {model.n_components} component{'s' * (model.n_components > 1)}"
    pictures = _pictures(table, model, choice if many else None)
    shown = [screen_table(title, parts)]
    return Results("mixture", table.names, model, {"": model.certificate_}, tables, pictures, page, summary, shown)


def _pictures(table: Table, model: GaussianMixture, choice: MixtureChoice | None) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {"mixture": partial(_picture, table, model)}
    if choice is not None:
        found["choice"] = partial(MixtureChoiceDisplay.from_estimator, choice)
    return found


def _picture(table: Table, model: GaussianMixture) -> Any:
    """The mixture, its components numbered from 1 as in the tables and the report."""
    drawn = MixtureDisplay.from_estimator(model, _some_rows(table))
    legends: Any = drawn.figure_.findobj(lambda part: hasattr(part, "get_texts"))
    for text in (text for legend in set(legends) for text in legend.get_texts()):
        named = re.fullmatch(r"component (\d+)", text.get_text())
        if named is not None:
            text.set_text(f"component {int(named[1]) + 1}")
    return drawn


def _some_rows(table: Table) -> NDArray[np.float64] | None:
    """Rows to draw; none where cells are missing."""
    X = rows_of(table.source)
    X = X[:: max(1, len(X) // SHOWN)]
    return None if np.isnan(X).any() else X


def _report(
    table: Table, label: str | None, choice: MixtureChoice | None, model: Any, R: NDArray[Any], **given: Any
) -> Any:
    return mixture_report(
        model,
        rows_of(table.source),
        choice=choice,
        responsibilities=R,
        feature_names=table.names,
        **told_of(table, label),
        **given,
    )


def _clusters(table: Table, R: NDArray[Any]) -> Columns:
    keys = row_keys(table)
    found = {"component": np.argmax(R, axis=1) + 1, "uncertainty": 1.0 - np.max(R, axis=1)}
    return {**keys, **found, **numbered("probability", R)}


def _components(model: GaussianMixture, table: Table) -> Columns:
    means = {f"mean {name}": model.means_[:, j] for j, name in enumerate(table.names)}
    return {"component": np.arange(len(model.weights_)) + 1, "weight": model.weights_, **means}


def _covariances(model: GaussianMixture, names: list[str]) -> Columns:
    """Every entry on and above the diagonal, component by component."""
    S = model.mixture_.matrices
    S = np.broadcast_to(S, (len(model.weights_), *S.shape[1:]))
    k, d = S.shape[0], S.shape[1]
    i, j = np.triu_indices(d)
    return {
        "component": np.repeat(np.arange(k) + 1, len(i)),
        "column": [names[a] for a in i] * k,
        "with": [names[b] for b in j] * k,
        "covariance": S[:, i, j].ravel(),
    }
