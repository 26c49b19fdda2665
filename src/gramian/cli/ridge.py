"""``gramian ridge``: linear regression with a penalty, chosen by leave-one-out errors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gramian.cli.errors import data_errors
from gramian.cli.options import NumbersType, command, option, portable
from gramian.cli.output import (
    PICTURES,
    Columns,
    Output,
    Results,
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
from gramian.cli.reading import FILE, Reading, input_name, read, reading_options, watched
from gramian.cli.running import LOG, Run, device_option, running_options
from gramian.display.report import regression_report
from gramian.linear.path import CRITERIA
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.sources.tables import Table

__all__ = ["ridge"]

TABLES = ("coefficients", "predictions", "path")


@command(
    "ridge",
    "gramian ridge houses.csv --target price --out houses",
    "gramian ridge houses.csv --target price --alpha 0.001:1000:50 --criterion gcv --json",
)
@click.argument("file", type=FILE)
@option(
    "--alpha",
    type=NumbersType(["auto"]),
    default="auto",
    show_default=True,
    metavar="NUMBERS",
    help="λ; several, as 0.1,1,10 or 0.001:1000:50, are chosen from.",
)
@option("--criterion", type=click.Choice(CRITERIA), default="loo", show_default=True, help="What λ is chosen by.")
@option("--no-intercept", is_flag=True, help="Fit no constant.")
@option(
    "--solver",
    type=click.Choice(["auto", "svd", "cholesky", "dual", "cg"]),
    default="auto",
    show_default=True,
    help="For one λ.",
)
@reading_options(target="Column to be predicted.", missing="refuse")
@output_options
@running_options
@device_option
@click.pass_context
def ridge(
    context: click.Context,
    /,
    file: Path,
    alpha: tuple[float | str, ...],
    criterion: str,
    no_intercept: bool,
    solver: str,
    reading: Reading,
    output: Output,
    run: Run,
    device: str,
) -> None:
    """Ridge regression of a column of FILE on the others; - is standard input.

    Writes coefficients, predictions and the path over λ, model.gramian, certificate.json, report.html and pictures.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    model = _model(alpha, criterion, not no_intercept, solver)
    output.check(TABLES, PICTURES)
    table = read(file, reading, run)
    with run.step("Fitting") as report, data_errors(input_name(file)):
        source = watched(table.source, report)
        model.set_params(device=device).fit(source, numeric_target(table, str(reading.target)))
        fitted = np.asarray(model.predict(source))
        portable(model)
    LOG.info("λ = %.6g, %.4g degrees of freedom", _penalty(model), float(np.max(model.dof_)))
    target = str(reading.target)
    publish(context, run, output, facts_of(table, file), _results(table, model, fitted, target, reading.label))


def _model(alpha: tuple[float | str, ...], criterion: str, intercept: bool, solver: str) -> Ridge | RidgeCV:
    if "auto" in alpha and len(alpha) > 1:
        raise click.UsageError("--alpha is auto, or numbers")
    if len(alpha) == 1 and alpha != ("auto",):
        return Ridge(float(alpha[0]), fit_intercept=intercept, solver=solver)
    if solver not in ("auto", "svd"):
        raise click.UsageError(f"--solver {solver} is for one λ: a choice is made from one decomposition")
    if 0.0 in alpha:
        raise click.UsageError("--alpha 0 is least squares: it can be fitted by itself, not chosen")
    mode = "svd" if solver == "svd" else None
    values = "auto" if alpha == ("auto",) else alpha
    return RidgeCV(values, fit_intercept=intercept, criterion=criterion, gcv_mode=mode)


def _penalty(model: Any) -> float:
    return float(getattr(model, "alpha_", getattr(model, "alpha", np.nan)))


def _results(table: Table, model: Any, fitted: NDArray[Any], target: str, label: str | None) -> Results:
    y = np.asarray(table.target, dtype=np.float64)
    page = partial(
        regression_report,
        model,
        y,
        fitted,
        feature_names=table.names,
        target_names=[target],
        **told_of(table, label),
    )
    path = getattr(model, "path_", None)
    return Results(
        "ridge",
        table.names,
        model,
        {"": model.certificate_},
        {
            "coefficients": _coefficients(table, model),
            "predictions": prediction_table(table, y, fitted),
            **({} if path is None else {"path": path_table(path)}),
        },
        pictures(model, table, y, fitted, target),
        page,
        {
            "target": target,
            "alpha": _penalty(model),
            "degrees_of_freedom": model.dof_,
            "noise_variance": model.noise_variance_,
            **quality(y, fitted),
            "intercept": model.intercept_,
            "coefficients": dict(zip(table.names, np.ravel(model.coef_).tolist(), strict=True)),
        },
        [screen_table(f"Coefficients for {target}, λ = {_penalty(model):.4g}", _coefficients(table, model))],
    )


def _coefficients(table: Table, model: Any) -> Columns:
    """Names, coefficients and their standard errors, where these are known; the intercept first."""
    coef = np.ravel(model.coef_)
    try:
        errors = np.sqrt(np.diag(model.coef_covariance()))
    except ValueError:
        errors = np.full(len(coef), np.nan)
    return {
        "column": ["(intercept)", *table.names],
        "coefficient": np.append(float(np.ravel(model.intercept_)[0]), coef),
        "standard_error": np.append(np.nan, errors),
    }
