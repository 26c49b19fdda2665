"""``gramian kernel-ridge``: regression on the features of a kernel, with a bound on the error of every prediction."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gramian.cli.errors import data_errors
from gramian.cli.kernels import KernelOptions, kernel_options
from gramian.cli.options import NumbersType, command, option, portable
from gramian.cli.output import (
    PICTURES,
    Columns,
    Output,
    Results,
    bounded_predictions,
    facts_of,
    numeric_target,
    output_options,
    path_table,
    pictures,
    prediction_table,
    publish,
    quality,
    screen_table,
    told_of,
)
from gramian.cli.reading import FILE, Reading, input_name, read, reading_options
from gramian.cli.running import LOG, Run, convergence, device_option, running_options
from gramian.display.report import regression_report
from gramian.kernel_ridge.estimator import KernelRidge, KernelRidgeCV
from gramian.kernels import Kernel
from gramian.linear.path import CRITERIA
from gramian.sources.tables import Table

__all__ = ["kernel_ridge"]

TABLES = ("predictions", "path", "choice")


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
    show_default=True,
    metavar="NUMBERS",
    help="λ; several, as 0.1,1,10 or 0.001:1000:30, are chosen from.",
)
@kernel_options(several=True)
@option("--criterion", type=click.Choice(CRITERIA), default="loo", show_default=True, help="What is chosen by.")
@option("--intercept", is_flag=True, help="Add a constant that is not penalised.")
@option(
    "--solver",
    type=click.Choice(["auto", "eigh", "cholesky", "cg", "inducing"]),
    default="auto",
    show_default=True,
    help="inducing takes a few centres for millions of rows.",
)
@option("--centres", type=click.IntRange(min=1), metavar="NUMBER", help="How many centres for inducing.")
@option("--tol", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="NUMBER", help="Residual to reach.")
@reading_options(target="Column to be predicted.", missing="refuse")
@output_options
@running_options
@device_option
@click.pass_context
def kernel_ridge(
    context: click.Context,
    /,
    file: Path,
    alpha: tuple[float | str, ...],
    kernel: KernelOptions,
    reading: Reading,
    output: Output,
    run: Run,
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
    with run.step("Fitting") as report, data_errors(input_name(file)):
        y = numeric_target(table, str(reading.target))
        model = _model(alpha, kernel.resolved(table.source), run.seed, **options)
        model.set_params(verbose=convergence(report, options["tol"] or 1e-6)).fit(table.source, y)
        model.set_params(verbose=False)
        fitted, bound = bounded_predictions(model, table.source)
        portable(model)
    LOG.info("kernel: %s, λ = %.6g", model.kernel_, _penalty(model))
    results = _results(table, model, fitted, bound, reading)
    publish(context, run, output, facts_of(table, file), results)


def _model(
    alpha: tuple[float | str, ...],
    kernels: list[Kernel],
    seed: int,
    criterion: str,
    intercept: bool,
    solver: str,
    centres: int | None,
    tol: float | None,
    device: str,
) -> KernelRidge:
    shared: dict[str, Any] = {
        "fit_intercept": intercept,
        "solver": solver,
        "n_centres": centres,
        "tol": tol,
        "random_state": seed,
        "device": device,
    }
    if len(alpha) == 1 and alpha != ("auto",) and len(kernels) == 1:
        return KernelRidge(float(alpha[0]), kernel=kernels[0], **shared)
    if solver == "cholesky":
        raise click.UsageError("--solver cholesky is for one λ and one kernel: eigh, cg and inducing choose")
    values = "auto" if alpha == ("auto",) else [float(value) for value in alpha]
    return KernelRidgeCV(values, kernel=kernels if len(kernels) > 1 else kernels[0], criterion=criterion, **shared)


def _penalty(model: Any) -> float:
    return float(getattr(model, "alpha_", getattr(model, "alpha", np.nan)))


def _results(table: Table, model: Any, fitted: NDArray[Any], bound: NDArray[Any], reading: Reading) -> Results:
    target = str(reading.target)
    y = np.asarray(table.target, dtype=np.float64)
    page = partial(
        regression_report,
        model,
        y,
        fitted,
        target_names=[target],
        measures={"bound on the error": bound},
        **told_of(table, reading.label),
    )
    path, choice = getattr(model, "path_", None), _choice(model)
    return Results(
        "kernel-ridge",
        table.names,
        model,
        {"": model.certificate_},
        {
            "predictions": {**prediction_table(table, y, fitted), "bound": bound},
            **({} if path is None else {"path": path_table(path)}),
            **({} if choice is None else {"choice": choice}),
        },
        pictures(model, table, y, fitted, target),
        page,
        {
            "target": target,
            "kernel": repr(model.kernel_),
            "alpha": _penalty(model),
            "noise_variance": model.noise_variance_,
            **quality(y, fitted),
            "largest_bound": float(np.max(bound)),
        },
        [screen_table(f"{target} by {model.kernel_!r}", _numbers(model, y, fitted, bound))],
    )


def _numbers(model: Any, y: NDArray[Any], fitted: NDArray[Any], bound: NDArray[Any]) -> Columns:
    found = {"λ": _penalty(model), **quality(y, fitted), "largest bound on a prediction's error": float(np.max(bound))}
    return {"": list(found), "value": list(found.values())}


def _choice(model: Any) -> Columns | None:
    """Every kernel and λ that was tried, with its score; None where nothing was chosen."""
    if not isinstance(model, KernelRidgeCV):
        return None
    each = np.shape(model.scores_)[-1]
    return {
        "kernel": np.repeat([repr(kernel) for kernel in model.kernels_], each),
        "alpha": np.ravel(model.alphas_),
        "score": np.ravel(model.scores_),
    }
