"""``gramian kernel-ridge``: regression on the features of a kernel, with a bound on the error of every prediction."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian.cli.options import NumbersType, command, option, portable
from gramian.cli.output import Output, Results, ResultTable, describe_rows, output_options, publish
from gramian.cli.reading import FILE, KernelOptions, ReadingOptions, input_name, kernel_options, read, reading_options
from gramian.cli.ridge import (
    ERRORS,
    PICTURES,
    Array,
    measure_fit,
    numeric_target,
    path_tables,
    penalty,
    prediction_columns,
    regression_pictures,
    rows_of_report,
    sketch_fit,
)
from gramian.cli.running import LOG, CommandRun, data_errors, device_option, running_options
from gramian.display.report import regression_report
from gramian.kernel_ridge.estimator import KernelRidge, KernelRidgeCV
from gramian.kernels import Kernel
from gramian.kernels.names import name_kernel
from gramian.linear.path import CRITERIA

TABLES = ("predictions", "path", "choice", "widths")


@command(
    "kernel-ridge",
    "gramian kernel-ridge curve.csv --target y --bandwidth 0.1:3:6 --out curve",
    "gramian kernel-ridge curve.csv --target y --kernel matern --bandwidth 1 --alpha 0.01 --json",
)
@click.argument("file", type=FILE)
@option(
    "--alpha",
    type=NumbersType(["auto"]),
    default="auto",
    metavar="NUMBERS",
    help="λ; several, as 0.1,1,10 or 0.001:1000:30, are chosen from.",
)
@kernel_options(several=True)
@option("--criterion", type=click.Choice(CRITERIA), default="loo", help="What is chosen by.")
@option(
    "--learn",
    type=click.Choice(CRITERIA),
    help="Learn a width for each column by this criterion, from the kernels given, and choose by it.",
)
@option("--intercept", is_flag=True, help="Add a constant that is not penalised.")
@option(
    "--solver",
    type=click.Choice(["auto", "eigh", "cholesky", "cg", "landmarks"]),
    default="auto",
    help="landmarks takes a few rows for millions.",
)
@option("--landmarks", type=click.IntRange(min=1), help="How many landmarks for that solver.")
@option("--tol", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Residual to reach.")
@reading_options(target="Column to be predicted.  [required]", missing="refuse", categorical="onehot")
@output_options()
@running_options
@device_option
def kernel_ridge(
    file: Path,
    alpha: tuple[float | str, ...],
    kernel: KernelOptions,
    reading: ReadingOptions,
    output: Output,
    run: CommandRun,
    **options: Any,
) -> None:
    """Kernel ridge regression of a column of FILE on the others; - is standard input.

    The kernel and λ are chosen by leave-one-out errors where several are given. Writes predictions with a bound on the
    error of each, what was chosen from, model.gramian, certificate.json, report.html and pictures.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    if "auto" in alpha and len(alpha) > 1:
        raise click.UsageError("--alpha is auto, or numbers")
    kernel.check(several=True)
    output.check(TABLES, PICTURES)
    table = read(file, reading, run)
    kernel.warn_of_units(table, run)
    with run.step("Fitting") as report, data_errors(input_name(file)):
        y = numeric_target(table, str(reading.target))
        model = _make_model(alpha, kernel.make_kernels(table.source), run.seed, **options)
        model.set_params(verbose=report).fit(table.source, y)
        model.set_params(verbose=False)
        fitted, bound = predict_with_bound(model, table.source)
        portable(model)
        quality = measure_fit(model, table, y, fitted)
    target, alpha_, largest = str(reading.target), penalty(model), float(np.max(bound))
    LOG.info("kernel: %s, λ = %.6g", model.kernel_, alpha_)
    choice = []
    if isinstance(model, KernelRidgeCV):  # every kernel and λ that was tried, with its score
        kernels = np.repeat([repr(kernel) for kernel in model.kernels_], np.shape(model.scores_)[-1])
        scores = {"kernel": kernels, "alpha": np.ravel(model.alphas_), "score": np.ravel(model.scores_)}
        choice = [ResultTable(scores, "choice")]
        if model.learn is not None:
            choice.append(ResultTable(model.learned_.table(), "widths"))
            LOG.info("%s", model.learned_.note)
    told = {"target_names": [target], "measures": {"bound on the error": bound}, **describe_rows(table)}
    told |= {"X": rows_of_report(table), "feature_names": table.names}
    results = Results.of_fit(
        model,
        table,
        file,
        lines=[
            f"{target} by {name_kernel(model.kernel_)}, λ = {alpha_:.4g}",
            f"computed predictions are within {largest:.1e} of the exact ones",
        ],
        quality=quality,
        sketch=sketch_fit(y, fitted, target),
        tables=[
            ResultTable(prediction_columns(table, y, fitted, bound=bound), "predictions"),
            *path_tables(model),
            *choice,
        ],
        pictures=regression_pictures(model, table, y, fitted, target),
        report=partial(regression_report, model, y, fitted, **told),
        facts={
            "target": target,
            "kernel": repr(model.kernel_),
            "alpha": alpha_,
            "noise_variance": model.noise_variance_,
            **ERRORS,
            **{measure.name: measure.value for measure in quality},
            "largest_bound": largest,
        },
    )
    publish(run, output, results)


def _make_model(
    alpha: tuple[float | str, ...],
    kernels: list[Kernel],
    seed: int,
    criterion: str,
    learn: str | None,
    intercept: bool,
    solver: str,
    landmarks: int | None,
    tol: float | None,
    device: str,
) -> KernelRidge:
    shared: dict[str, Any] = {
        "fit_intercept": intercept,
        "solver": solver,
        "n_landmarks": landmarks,
        "tol": tol,
        "random_state": seed,
        "device": device,
    }
    if len(alpha) == 1 and alpha != ("auto",) and len(kernels) == 1 and learn is None:
        return KernelRidge(float(alpha[0]), kernel=kernels[0], **shared)
    if solver == "cholesky":
        raise click.UsageError("--solver cholesky is for one λ and one kernel: eigh, cg and landmarks choose")
    values = "auto" if alpha == ("auto",) else [float(value) for value in alpha]
    chosen = kernels if len(kernels) > 1 else kernels[0]
    return KernelRidgeCV(values, kernel=chosen, criterion=criterion, learn=learn, **shared)


def predict_with_bound(model: Any, X: Any) -> tuple[Array, Array]:
    """Predictions of a kernel regression and the bound on the error of each; NaN where there is none."""
    if model.certificate_.error_bounds is None:
        found = np.asarray(model.predict(X))
        return found, np.full(found.shape, np.nan)
    found, bound = model.predict(X, return_bound=True)
    return np.asarray(found), np.asarray(bound)
