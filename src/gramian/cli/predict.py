"""``gramian predict``: what a model file says of new rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian.cli.kernel_ridge import predict_with_bound
from gramian.cli.options import command, option
from gramian.cli.output import (
    Columns,
    Results,
    ResultTable,
    TableOutput,
    number_columns,
    publish_table,
    table_output_options,
)
from gramian.cli.reading import (
    FILE,
    MODEL_FILE,
    ReadingOptions,
    input_name,
    load_model,
    read_matching_table,
    read_rows,
    reading_options,
)
from gramian.cli.running import CommandRun, data_errors, name_options, running_options
from gramian.kernel_ridge.classifier import KernelClassifier
from gramian.kernel_ridge.estimator import KernelRidge
from gramian.likelihood.estimator import MaximumLikelihood
from gramian.mixture.estimator import GaussianMixture
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.sources import Source


@command(
    "predict",
    "gramian predict houses/model.gramian new-houses.csv --out prices.csv",
    "gramian predict houses/model.gramian new-houses.csv --level 0.9 --json",
)
@click.argument("model", type=MODEL_FILE)
@click.argument("file", type=FILE)
@option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Of the intervals that hold a new observation.",
)
@reading_options(new_rows=True)
@table_output_options()
@running_options
def predict(
    model: Path, file: Path, level: float, reading: ReadingOptions, output: TableOutput, run: CommandRun
) -> None:
    """What MODEL, a model.gramian of ridge, kernel-ridge, mixture or fit, says of the rows of FILE.

    Regressions give predictions, standard deviations and intervals of new observations, and kernel-ridge a bound on the
    numerical error of each; mixtures the component and its probability; distributions the log density. Columns are
    matched by name. Prints CSV unless --out names a file.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    output.check()
    fitted = load_model(model, run)
    answer = next((give for kind, give in ANSWERS if isinstance(fitted.model, kind)), None)
    if answer is None:
        raise click.UsageError(f"{input_name(model)} is a {fitted.kind}, which predicts nothing: use gramian project")
    if fitted.columns == []:
        raise click.UsageError(f"{input_name(model)} was fitted to intervals: there is no column to find in new data")
    table = read_matching_table(file, fitted, reading, run)
    with run.step("Predicting"), data_errors(input_name(file)):
        columns = answer(fitted.model, table.source, level, run)
    facts = {"model": input_name(model), "kind": fitted.kind, "data": input_name(file), "rows": table.source.shape[0]}
    found = ResultTable(table.by_row(columns))
    publish_table(run, output, Results(facts=facts, tables=[found]))


def _by_regression(model: Any, source: Source, level: float, run: CommandRun) -> Columns:
    interval: Columns = {}
    try:
        values, spread = model.predict(source, return_std=True)
        lower, upper = model.predict_interval(source, level)
        interval = {"std": spread, "lower": lower, "upper": upper}
    except ValueError as error:
        values = model.predict(source)
        run.warn(f"there are no intervals: {name_options(error)}")
    bound = {"bound": predict_with_bound(model, source)[1]} if isinstance(model, KernelRidge) else {}
    found: dict[str, Any] = {}
    for name, column in {"prediction": values, **bound, **interval}.items():
        array = np.asarray(column)  # columns of several targets are numbered
        found |= {name: array} if array.ndim == 1 else number_columns(f"{name} ", array)
    return found


def _by_classifier(model: Any, source: Source, level: float, run: CommandRun) -> Columns:
    P = np.asarray(model.predict_proba(source))
    return {"class": model.predict(source), **{f"probability {c}": P[:, j] for j, c in enumerate(model.classes_)}}


def _by_mixture(model: Any, source: Source, level: float, run: CommandRun) -> Columns:
    R = np.asarray(model.predict_proba(source))
    found = {"component": np.argmax(R, axis=1) + 1, "uncertainty": 1.0 - np.max(R, axis=1)}
    return {**found, **number_columns("probability", R), "log_density": np.asarray(model.score_samples(source))}


def _by_distribution(model: Any, source: Source, level: float, run: CommandRun) -> Columns:
    return {"log_density": np.asarray(model.score_samples(read_rows(source)))}


ANSWERS: tuple[tuple[type | tuple[type, ...], Callable[..., Columns]], ...] = (
    (KernelClassifier, _by_classifier),
    ((Ridge, RidgeCV, KernelRidge), _by_regression),
    (GaussianMixture, _by_mixture),
    (MaximumLikelihood, _by_distribution),
)
