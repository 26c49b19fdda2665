"""``gramian mixture``: Gaussian mixtures, their number of components and covariance model chosen by a criterion."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian import display
from gramian.cli.options import NAMES, command, option, portable
from gramian.cli.output import (
    Output,
    Results,
    ResultTable,
    Sketch,
    describe_rows,
    number_columns,
    output_options,
    publish,
)
from gramian.cli.pca import count_components
from gramian.cli.reading import FILE, ReadingOptions, input_name, read, read_rows, reading_options
from gramian.cli.running import LOG, CommandRun, data_errors, device_option, running_options
from gramian.display import report as reports
from gramian.mixture.choose import select_mixture
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.models import MODELS
from gramian.mixture.quality import measure_mixture, rank_columns

TABLES = ("clusters", "components", "covariances", "choice")
PICTURES = ("mixture", "choice")
TYPES = ("full", "tied", "diag", "spherical", "E", "V", *MODELS)
MAX_COMPONENTS = 10_000  # components
MAX_DRAWN = 20_000  # rows
MODELS_SHOWN = 6
CHOICE = ("covariance_type", "n_components", "value")  # what is said of each mixture in JSON


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return numbers of components: 3, a range as 1-9, or several as 2,3,5."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None or int(match[1]) < 1 or not int(match[1]) <= int(match[2] or match[1]) <= MAX_COMPONENTS:
            raise click.BadParameter(f"{text!r} is no number of components; 3, 1-9 and 2,3,5 are")
        found.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(set(found)))


@command(
    "mixture",
    "gramian mixture geyser.csv -k 1-4 --out geyser",
    "gramian mixture geyser.csv -k 2 --covariance full,tied --json",
)
@click.argument("file", type=FILE)
@option("-k", "--components", type=parse_sizes, default="1-9", help="How many: 3, 1-9 or 2,3,5.")
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
    help="What is chosen by; lrt is the bootstrap likelihood-ratio test.",
)
@option("--counts", metavar="NAME", help="Column that says how often each row was observed.")
@option("--starts", type=click.IntRange(min=1), default=1, help="Starts of each fit.")
@option("--tol", type=click.FloatRange(min=0, min_open=True), default=1e-5, help="Gradient to reach.")
@option("--max-iter", type=click.IntRange(min=1), default=1000, help="Most iterations of a start.")
@option("--prior", type=click.Choice(["conjugate"]), help="Maximum a posteriori, with mclust's default prior.")
@reading_options()
@output_options()
@running_options
@device_option
def mixture(
    file: Path,
    components: tuple[int, ...],
    covariance: tuple[str, ...] | None,
    criterion: str,
    counts: str | None,
    starts: int,
    reading: ReadingOptions,
    output: Output,
    run: CommandRun,
    **options: Any,
) -> None:
    """Gaussian mixture of the rows of FILE; - is standard input. Missing cells are taken into the likelihood.

    Every number of components and covariance model asked for is fitted, and the best by the criterion is kept. Writes
    the component of every row, the components, what was chosen from, model.gramian, certificate.json, report.html and
    pictures.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    for name in covariance or ():
        if name not in TYPES:
            raise click.UsageError(f"there is no covariance model {name!r}; there are {', '.join(TYPES)}")
    if criterion == "lrt" and len(covariance or ()) != 1:
        raise click.UsageError("--criterion lrt compares numbers of components in one model: name it by --covariance")
    output.check(TABLES, PICTURES)
    table = read(file, replace(reading, target=counts), run)
    prototype = GaussianMixture(n_init=starts, random_state=run.seed, **options)
    sizes = str(components[0]) if len(components) == 1 else f"{components[0]} to {components[-1]}"
    doing = f"Fitting mixtures of {sizes} components"
    # a fit of many components takes far longer than one of few: nobody can tell how long is left
    with run.step(doing, even=False) as report, data_errors(input_name(file)):
        choice = select_mixture(
            prototype,
            table.source,
            n_components=components,
            covariance_types=covariance,
            criterion=criterion,
            sample_weight=table.target,
            progress=report,
            **({"random_state": run.seed} if criterion == "lrt" else {}),
        )
    for line in repr(choice).splitlines():
        LOG.info("%s", line)
    model, names = portable(choice.best), table.names
    k, many = model.n_components, np.size(choice.bic) > 1
    R = np.asarray(model.predict_proba(table.source))

    def draw_mixture() -> Any:
        """The mixture, over rows without missing cells."""
        X = read_rows(table.source)
        X = X[:: max(1, len(X) // MAX_DRAWN)]
        return display.MixtureDisplay.from_estimator(model, None if np.isnan(X).any() else X)

    def report_page(**given: Any) -> Any:
        told: dict[str, Any] = {"feature_names": names, **describe_rows(table)}
        return reports.mixture_report(
            model, read_rows(table.source), choice=choice if many else None, responsibilities=R, **told, **given
        )

    S = np.broadcast_to(model.mixture_.matrices, (k, len(names), len(names)))
    i, j = np.triu_indices(len(names))
    clusters = {"component": np.argmax(R, axis=1) + 1, "uncertainty": 1.0 - np.max(R, axis=1)}
    means = {f"mean {name}": model.means_[:, j] for j, name in enumerate(names)}
    covariances = {
        "component": np.repeat(np.arange(k) + 1, len(i)),
        "column": [names[a] for a in i] * k,
        "with": [names[b] for b in j] * k,
        "covariance": S[:, i, j].ravel(),
    }
    sizes_of = np.bincount(clusters["component"] - 1, minlength=k)
    parts = {"component": np.arange(k) + 1, "weight": model.weights_, "size": sizes_of, **means}
    bic, loglik = float(model.bic(table.source, table.target)), float(model.log_likelihood_)
    title = f"{model.covariance_type}, {count_components(k)}"
    results = Results.of_fit(
        model,
        table,
        file,
        tables=[
            ResultTable(table.by_row({**clusters, **number_columns("probability", R)}), "clusters"),
            *([ResultTable(_best_models(choice, criterion), title="Models, the best first")] if many else []),
            ResultTable(parts, "components", title, most=max(k, 12)),
            ResultTable(covariances, "covariances"),
            *([ResultTable(choice.table(), "choice")] if many else []),
        ],
        lines=[f"BIC {bic:.2f}, log-likelihood {loglik:.2f}, {model.n_parameters_:,} parameters"],
        quality=measure_mixture(R, loglik, table.target, n_parameters=model.n_parameters_, columns=_as_columns(table)),
        sketch=_sketch_clusters(table, clusters["component"], model.mixture_),
        pictures={
            "mixture": draw_mixture,
            **({"choice": lambda: display.MixtureChoiceDisplay.from_estimator(choice)} if many else {}),
        },
        report=report_page,
        facts={
            "n_components": k,
            "covariance_type": model.covariance_type,
            "log_likelihood": model.log_likelihood_,
            "n_parameters": model.n_parameters_,
            "bic": bic,
            "weights": model.weights_,
            "means": model.means_,
            **({"choice": [dict(zip(CHOICE, row, strict=True)) for row in choice.ranked()]} if many else {}),
        },
    )
    publish(run, output, results)


def _best_models(choice: Any, criterion: str) -> dict[str, list[Any]]:
    """The best models, by what they were chosen by."""
    kinds, counts, values = zip(*list(choice.ranked())[:MODELS_SHOWN], strict=True)
    return {"covariance": list(kinds), "components": list(counts), criterion.upper(): [f"{v:.2f}" for v in values]}


def _as_columns(table: Any) -> dict[str, Any] | None:
    """The columns of a dense table in memory."""
    if not table.source.resident or table.source.sparse:
        return None
    return dict(zip(table.names, np.asarray(table.source.values).T, strict=True))


def _sketch_clusters(table: Any, component: Any, mixture: Any) -> Sketch | None:
    """The rows on the two columns in which the components differ most, each with its component."""
    columns = _as_columns(table)
    if columns is None or len(columns) < 2:
        return None
    values = list(columns.values())
    x, y = sorted(rank_columns(mixture, np.column_stack(values))[:2])
    groups = [str(value) for value in component]
    return Sketch("Components", values[x], values[y], (table.names[x], table.names[y]), groups)
