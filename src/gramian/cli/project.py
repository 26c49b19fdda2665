"""``gramian project``: scores of new rows on the components of a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian.cli.errors import data_errors
from gramian.cli.options import command
from gramian.cli.output import Columns, TableOutput, hand_out, numbered, row_keys, table_output_options
from gramian.cli.reading import FILE, MODEL_FILE, Reading, input_name, load_model, matching_table, new_reading_options
from gramian.cli.running import Run, running_options
from gramian.kernel_pca.estimator import KernelPCA
from gramian.pca.estimator import PCA
from gramian.sources import Source

__all__ = ["project"]


@command(
    "project",
    "gramian project flowers/model.gramian more.csv --out more-scores.csv",
    "gramian project flowers/model.gramian more.csv --id plant --json",
)
@click.argument("model", type=MODEL_FILE)
@click.argument("file", type=FILE)
@new_reading_options
@table_output_options
@running_options
@click.pass_context
def project(
    context: click.Context, /, model: Path, file: Path, reading: Reading, output: TableOutput, run: Run
) -> None:
    """Scores of the rows of FILE on the components of MODEL, a model.gramian of pca or kernel-pca.

    Columns are matched by name: their order may differ and others are left out, but none may be absent. Prints CSV
    unless --out names a file. A .bed file has options of its own: gramian project MODEL cohort.bed --help.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    output.check()
    fitted = load_model(model, run)
    if not isinstance(fitted.model, (PCA, KernelPCA)):
        raise click.UsageError(f"{input_name(model)} is a {fitted.kind}, which has no scores: use gramian predict")
    table = matching_table(file, fitted, reading, run)
    with run.step("Projecting"), data_errors(input_name(file)):
        scores = _scores(fitted.model, table.source)
    keys = row_keys(table)
    facts = {"model": input_name(model), "kind": fitted.kind, "data": input_name(file), "rows": table.source.shape[0]}
    hand_out(run, output, "project", {**keys, **scores}, facts)


def _scores(model: Any, source: Source) -> Columns:
    scores: dict[str, Any] = numbered("PC", np.asarray(model.transform(source)))
    if isinstance(model, KernelPCA):
        return scores
    try:
        return {**scores, "Q": np.asarray(model.reconstruction_error(source))}
    except ValueError:  # cells are missing
        return scores
