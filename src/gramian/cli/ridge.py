"""``gramian ridge``: linear regression with a penalty, chosen by leave-one-out errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gramian.cli.options import NumbersType, command, option, portable, standardise_option
from gramian.cli.output import (
    Columns,
    Output,
    Results,
    ResultTable,
    Sketch,
    as_texts,
    describe_rows,
    output_options,
    publish,
)
from gramian.cli.reading import (
    FILE,
    ReadingOptions,
    input_name,
    measure_columns,
    read,
    read_rows,
    reading_options,
    report_reading,
)
from gramian.cli.running import LOG, CommandRun, data_errors, device_option, running_options
from gramian.display import (
    FeatureSharesDisplay,
    LeaveOneOutDisplay,
    PredictionBandDisplay,
    ResidualsDisplay,
    RidgePathDisplay,
)
from gramian.display.report import regression_report
from gramian.display.ridge import leave_one_out_predictions
from gramian.kernel_ridge.estimator import KernelRidgeCV
from gramian.linear.path import CRITERIA
from gramian.results import Quality, warn_of_units
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.ridge.quality import measure_regression
from gramian.sources.tables import Table as InputTable

Array = NDArray[np.float64]

TABLES = ("coefficients", "predictions", "path")
PICTURES = ("residuals", "path", "choice", "widths", "curve")
LEVELS = (  # said where a column of text is encoded
    "Of the levels of one text column the data determine differences alone: λ shares what is left among all of them, "
    "and standard errors of single levels hold that too"
)
ERRORS = {"rmse_left_out": np.nan, "r2_left_out": np.nan}  # of models that do not tell them


SHRUNK = 0.9  # degrees of freedom for each column, below which the penalty is felt, and with it the units
UNITS_TOLD = (
    "and the penalty hardly shrinks its coefficient, but those of the others",
    "Divide each column by its standard deviation (--standardise)",
)


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
    metavar="NUMBERS",
    help="λ; several, as 0.1,1,10 or 0.001:1000:50, are chosen from.",
)
@option("--criterion", type=click.Choice(CRITERIA), default="loo", help="What λ is chosen by.")
@option("--no-intercept", is_flag=True, help="Fit no constant.")
@standardise_option("scale")
@option("--solver", type=click.Choice(["auto", "svd", "cholesky", "dual", "cg"]), default="auto", help="For one λ.")
@reading_options(target="Column to be predicted.  [required]", missing="refuse", categorical="onehot")
@output_options()
@running_options
@device_option
def ridge(
    file: Path,
    alpha: tuple[float | str, ...],
    criterion: str,
    no_intercept: bool,
    scale: bool,
    solver: str,
    reading: ReadingOptions,
    output: Output,
    run: CommandRun,
    device: str,
) -> None:
    """Ridge regression of a column of FILE on the others; - is standard input.

    Writes coefficients, predictions and the path over λ, model.gramian, certificate.json, report.html and pictures.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    model = _make_model(alpha, criterion, solver, fit_intercept=not no_intercept, scale=scale)
    output.check(TABLES, PICTURES)
    table = read(file, reading, run)
    with run.step("Fitting") as report, data_errors(input_name(file)):
        source, y = report_reading(table.source, report), numeric_target(table, str(reading.target))
        fitted = np.asarray(model.set_params(device=device).fit(source, y).predict(source))
        portable(model)
        quality = measure_fit(model, table, y, fitted)
    target, alpha_, names = str(reading.target), penalty(model), table.names
    if not scale and float(np.min(model.dof_)) - (not no_intercept) < SHRUNK * min(table.source.shape):
        deviations = measure_columns(table.source)
        unlike = None if deviations is None else warn_of_units(deviations, names, *UNITS_TOLD)
        if unlike is not None:
            run.doubt(unlike)
    LOG.info("λ = %.6g, %.4g degrees of freedom", alpha_, float(np.max(model.dof_)))
    coef, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    try:
        errors = np.sqrt(np.diag(model.coef_covariance()))
    except ValueError:  # they are not known
        errors = np.full(len(coef), np.nan)
    coefficients = {
        "column": ["(intercept)", *names],
        "coefficient": np.append(intercept, coef),
        "standard_error": np.append(np.nan, errors),
    }
    told = {"feature_names": names, "target_names": [target], **describe_rows(table)}
    told["X"] = rows_of_report(table)
    results = Results.of_fit(
        model,
        table,
        file,
        quality=quality,
        sketch=sketch_fit(y, fitted, target),
        tables=[
            ResultTable(
                coefficients, "coefficients", f"Coefficients for {target}, λ = {alpha_:.4g}", most=len(coef) + 1
            ),
            ResultTable(prediction_columns(table, y, fitted), "predictions"),
            *path_tables(model),
        ],
        lines=[LEVELS] if any(" one-hot of " in note for note in table.notes) else [],
        pictures=regression_pictures(model, table, y, fitted, target),
        report=partial(regression_report, model, y, fitted, **told),
        facts={
            "target": target,
            "alpha": alpha_,
            "degrees_of_freedom": model.dof_,
            "noise_variance": model.noise_variance_,
            **ERRORS,
            **{measure.name: measure.value for measure in quality},
            "intercept": model.intercept_,
            "coefficients": dict(zip(names, coef.tolist(), strict=True)),
        },
    )
    publish(run, output, results)


def _make_model(alpha: tuple[float | str, ...], criterion: str, solver: str, **shared: bool) -> Ridge | RidgeCV:
    if "auto" in alpha and len(alpha) > 1:
        raise click.UsageError("--alpha is auto, or numbers")
    if len(alpha) == 1 and alpha != ("auto",):
        return Ridge(float(alpha[0]), solver=solver, **shared)
    if solver not in ("auto", "svd"):
        raise click.UsageError(f"--solver {solver} is for one λ: a choice is made from one decomposition")
    if 0.0 in alpha:
        raise click.UsageError("--alpha 0 is least squares: it can be fitted by itself, not chosen")
    mode = "svd" if solver == "svd" else None
    values = "auto" if alpha == ("auto",) else alpha
    return RidgeCV(values, criterion=criterion, gcv_mode=mode, **shared)


def numeric_target(table: InputTable, name: str) -> Array:
    """Return the target as numbers; text is refused by name."""
    values = np.asarray(table.target)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"the target {name!r} is text, as {str(values[0])[:40]!r}: name a column of numbers")
    return values.astype(np.float64)


def penalty(model: Any) -> float:
    """The λ of the fit."""
    return float(getattr(model, "alpha_", getattr(model, "alpha", np.nan)))


def prediction_columns(table: InputTable, y: Array, fitted: Array, **more: Array) -> Columns:
    """Every row with its target, what was fitted, the difference, and more."""
    return table.by_row({"observed": y, "fitted": fitted, "residual": y - fitted, **more})


def measure_fit(model: Any, table: InputTable, y: Array, fitted: Array) -> list[Quality]:
    """Root mean squared error and R² of rows left out, where the fit tells, and of the rows fitted."""
    X = None if getattr(model, "path_", None) is not None else rows_of_report(table)
    return measure_regression(model, y, fitted, None if X is None else leave_one_out_predictions(model, X, y))


def sketch_fit(y: Array, fitted: Array, target: str) -> Sketch:
    """Every row at what was fitted and what was observed."""
    return Sketch("Fit", fitted, y, ("fitted", f"observed {target}"))


def path_tables(model: Any) -> list[ResultTable]:
    """Every λ with its degrees of freedom and every criterion, where λ was chosen."""
    path = getattr(model, "path_", None)
    if path is None:
        return []
    columns = {"alpha": path.alphas, "degrees_of_freedom": path.dof}
    for name in ("loo", "gcv", "log_marginal_likelihood"):
        values = getattr(path, name, None)
        if values is not None:
            columns[name] = np.asarray(values).reshape(len(path.alphas), -1)[:, 0]
    return [ResultTable(columns, "path")]


def rows_of_report(table: InputTable) -> Any:
    """The rows of a table in memory, for pictures that predict; None of others."""
    return read_rows(table.source) if table.source.resident and not table.source.sparse else None


def regression_pictures(
    model: Any, table: InputTable, y: Array, fitted: Array, target: str
) -> dict[str, Callable[[], Any]]:
    """What draws the residuals; the path over λ and the choice, where there was one; the curve over a single column."""
    X = rows_of_report(table)
    left = None if X is None else leave_one_out_predictions(model, X, y)  # each row as the others predict it
    shown = partial(ResidualsDisplay.from_predictions, y, fitted if left is None else left, left_out=left is not None)
    drawn: dict[str, Callable[[], Any]] = {"residuals": partial(shown, names=as_texts(table.ids))}
    if getattr(model, "path_", None) is not None:
        drawn["path"] = partial(RidgePathDisplay.from_estimator, model, names=table.names)
    if isinstance(model, KernelRidgeCV):
        drawn["choice"] = partial(LeaveOneOutDisplay.from_estimator, model)
        if hasattr(model, "learned_"):
            drawn["widths"] = partial(FeatureSharesDisplay.from_estimator, model)
    if table.source.shape[1] == 1:
        names = (table.names[0], target)
        drawn["curve"] = lambda: PredictionBandDisplay.from_estimator(
            model, read_rows(table.source)[:, 0], y, names=names
        )
    return drawn
