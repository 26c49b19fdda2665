"""``gramian kernel-pca``: principal components of features that a kernel knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian import display
from gramian.cli.options import command, option, portable
from gramian.cli.output import (
    Output,
    Results,
    ResultTable,
    Sketch,
    as_texts,
    describe_rows,
    number_columns,
    output_options,
    publish,
)
from gramian.cli.reading import (
    FILE,
    KernelOptions,
    ReadingOptions,
    input_name,
    kernel_options,
    read,
    read_rows,
    reading_options,
)
from gramian.cli.running import LOG, CommandRun, data_errors, device_option, running_options
from gramian.display import report as reports
from gramian.kernel_pca.estimator import KernelPCA
from gramian.results import measure_shares

TABLES = ("scores", "eigenvalues")
PICTURES = ("scores", "field")
MAX_MEASURED = 5_000  # rows up to which the share of the variance is measured


@command(
    "kernel-pca",
    "gramian kernel-pca moons.csv --label moon --bandwidth 0.3 --out moons",
    "gramian kernel-pca moons.csv --label moon -k 3 --kernel poly --degree 2 --json",
)
@click.argument("file", type=FILE)
@option("-k", "--components", type=click.IntRange(min=1), help="How many components [default: 5].")
@kernel_options()
@option("--tol", type=click.FloatRange(min=0), default=0.0, help="Residual to reach [default: 1e-6].")
@option(
    "--solver",
    type=click.Choice(["auto", "dense", "krylov", "nystrom"]),
    default="auto",
    help="nystrom approximates from landmarks.",
)
@option("--landmarks", type=click.IntRange(min=1), help="How many landmarks for nystrom.")
@reading_options(missing="refuse")
@output_options()
@running_options
@device_option
def kernel_pca(
    file: Path,
    components: int | None,
    kernel: KernelOptions,
    tol: float,
    solver: str,
    landmarks: int | None,
    reading: ReadingOptions,
    output: Output,
    run: CommandRun,
    device: str,
) -> None:
    """Principal components of the rows of FILE in the feature space of a kernel; - is standard input.

    Writes scores and eigenvalues, model.gramian, certificate.json, report.html and a picture.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    kernel.check()
    output.check(TABLES, PICTURES)
    table = read(file, reading, run)
    n = table.source.shape[0]
    if components is not None and components > n:
        raise click.UsageError(f"-k {components} is more than the {n} components of {n} rows")
    kernel.warn_of_units(table, run)
    components, few = min(5, n) if components is None else components, components is None
    with run.step(f"Fitting {components} components"), data_errors(input_name(file)):
        found = kernel.make_kernels(table.source)[0]
        LOG.info("kernel: %s", found)
        model = KernelPCA(
            components,
            kernel=found,
            eigen_solver=solver,
            tol=tol,
            n_landmarks=landmarks,
            random_state=run.seed,
            device=device,
        )
        scores = np.asarray(model.fit_transform(table.source))
        quality = []
        if len(scores) <= MAX_MEASURED:  # the kernel is evaluated once more
            kept, left = np.sum(scores**2, axis=0), float(np.sum(np.asarray(model.reconstruction_error(table.source))))
            quality = measure_shares(kept / (float(kept.sum()) + left or np.nan), "the variance of the features")
        portable(model)
    there = int(np.count_nonzero(model.eigenvalues_))
    if there < components and not few:
        run.warn(
            f"-k {components}: only {there} eigenvalues of the kernel matrix of {n} centred rows are above rounding, "
            "and there are no more components"
        )

    labels, names = as_texts(table.label), as_texts(table.ids)

    def draw_field() -> Any:
        """The first component over the plane."""
        return display.KernelFieldDisplay.from_estimator(
            model, read_rows(table.source), labels=labels, names=table.names
        )

    pictures: dict[str, Callable[[], Any]] = {
        "scores": lambda: display.ScoreDisplay.from_predictions(scores, labels=labels, names=names)
    }
    if table.source.shape[1] == 2:
        pictures["field"] = draw_field
    eigenvalues = {
        "component": [f"PC{j + 1}" for j in range(len(model.eigenvalues_))],
        "eigenvalue": model.eigenvalues_,
        "residual": model.certificate_.residuals,
    }
    results = Results.of_fit(
        model,
        table,
        file,
        tables=[
            ResultTable(table.by_row(number_columns("PC", scores)), "scores"),
            ResultTable(eigenvalues, "eigenvalues", f"Components of {model.kernel_!r}"),
        ],
        sketch=None if scores.shape[1] < 2 else Sketch("Scores", scores[:, 0], scores[:, 1], ("PC1", "PC2"), labels),
        quality=quality,
        pictures=pictures,
        report=lambda **given: reports.kernel_pca_report(model, scores, **describe_rows(table), **given),
        facts={"kernel": repr(model.kernel_), "n_components": scores.shape[1], "eigenvalues": model.eigenvalues_},
    )
    publish(run, output, results)
