"""``gramian pca``: principal components of a file, as tables, pictures and a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from gramian.cli.labels import split_label
from gramian.cli.outputs import refuse_existing, staged, write_csv, write_json
from gramian.cli.show import certificate_panel, spinner, variance_table, warnings_as_lines
from gramian.display import save_picture, score_plot, scree
from gramian.estimators import PCA
from gramian.estimators._parameters import RULES, SOLVERS
from gramian.results import Certificate
from gramian.sources import DenseSource, Source, memory_budget, open_source

__all__ = ["FILES", "pca"]

FILES = ("scores.csv", "loadings.csv", "variances.csv", "certificate.json", "scree.png", "scores.png")
UNMET = 4


def number_or_rule(text: str) -> int | float | str:
    """Return what PCA takes as n_components: a number, a fraction of the variance, or the name of a rule."""
    if text in RULES:
        return text
    with suppress(ValueError):
        number = float(text)
        if 0 < number < 1:
            return number
        if number >= 1 and number.is_integer():
            return int(number)
    raise click.BadParameter(
        f"{text!r} is no number of components from 1 on, no fraction between 0 and 1, and no rule ({', '.join(RULES)})."
    )


class DataError(click.ClickException):
    """The data cannot be used as they are."""

    exit_code = 3


@dataclass(frozen=True)
class Table:
    """What was read: the numbers, where they came from, the column names, and the rows' labels if any."""

    file: Path
    source: Source
    labels: NDArray[Any] | None

    @property
    def columns(self) -> list[str]:
        """The names of the columns, or x0, x1, … where the file has none."""
        return self.source.feature_names or [f"x{j}" for j in range(self.source.shape[1])]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-k",
    "--components",
    type=number_or_rule,
    metavar="NUMBER|FRACTION|RULE",
    help="How many components, the fraction of the variance to explain (0.9), or a rule: "
    f"{', '.join(RULES)} [default: 5].",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder for the results.")
@click.option("--scale", is_flag=True, help="Divide each column by its standard deviation (correlation PCA).")
@click.option("--whiten", is_flag=True, help="Give every score the variance 1.")
@click.option("--label", metavar="COLUMN", help="CSV column that names the rows: shown, not fitted.")
@click.option("--tol", type=click.FloatRange(min=0), default=0.0, help="Residual to reach [default: 1e-6 or 1e-4].")
@click.option("--solver", "svd_solver", type=click.Choice(SOLVERS), default="auto", show_default=True)
@click.option("--seed", "random_state", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--force", is_flag=True, help="Replace results that are there already.")
@click.pass_context
def pca(
    context: click.Context,
    /,
    file: Path,
    components: int | float | str | None,
    out: Path,
    label: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Principal components of FILE: a .csv with a header row, or a .npy.

    Writes scores, loadings and variances as CSV, the certificate as JSON, and two pictures.

    Exit status: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    refuse_existing(out, FILES, force)
    with spinner(f"Reading {file.name}"):
        table = _read(file, label)
    model = PCA(n_components=_components(components, table.source.shape), **options)
    table = _loaded(table) if components == "parallel" else table
    with warnings_as_lines(), spinner(_doing(model.n_components)), _data_errors(file):
        scores = model.fit_transform(table.source)
        if model.n_components_ == 0:
            raise ValueError(f"-k {components} finds nothing that stands out of the noise; give -k as a number")
    with spinner(f"Writing to {out}"), _write_errors(out), staged(out) as folder:
        _write(folder, table, model, np.asarray(scores))
    _report(table, model, out)
    context.exit(0 if model.certificate_.converged else UNMET)


@contextmanager
def _data_errors(file: Path) -> Iterator[None]:
    """Turn what reading and fitting refuse into one line with a remedy, and exit status 3."""
    try:
        yield
    except (ValueError, ImportError, OSError) as error:
        text = " ".join(str(error).split()).removeprefix(f"{file}: ").rstrip(".")
        raise DataError(f"{file}: {text}.{_remedy(text)}") from error
    except MemoryError as error:
        raise DataError(f"{file}: does not fit in memory. Save it as .npy, which is read in blocks.") from error


def _remedy(text: str) -> str:
    """What the command line adds to the advice that the library gives."""
    if "could not convert" in text or "not a number" in text:
        return " A column of names can be set apart with --label COLUMN."
    if "n_components='parallel-gaussian'" in text:
        return " Here that is -k parallel-gaussian."
    return ""


@contextmanager
def _write_errors(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise click.ClickException(
            f"cannot write to {out}: {error.strerror or error}. Choose another --out."
        ) from error


def _read(file: Path, label: str | None) -> Table:
    if label is not None and file.suffix.lower() != ".csv":
        raise click.UsageError("--label names a column of a CSV file")
    with _data_errors(file):
        source, labels = (open_source(file), None) if label is None else split_label(file, label)
    return Table(file, source, labels)


def _components(asked: int | float | str | None, shape: tuple[int, int]) -> int | float | str:
    most = min(shape)
    if isinstance(asked, int) and asked > most:
        raise click.UsageError(f"-k {asked} is more than the {most} components of {shape[0]} × {shape[1]} data")
    return min(5, most) if asked is None else asked


def _loaded(table: Table) -> Table:
    """Hold a table of modest size in memory, which shuffling its columns needs."""
    n, p = table.source.shape
    if table.source.resident or 8 * n * p > memory_budget():
        return table
    with _data_errors(table.file):
        rows = np.concatenate([np.array(block.values, dtype=np.float64) for block in table.source.blocks()])
    return replace(table, source=DenseSource(rows, table.source.feature_names))


def _doing(components: int | float | str | None) -> str:
    return f"Fitting {components} components" if isinstance(components, int) else f"Choosing components by {components}"


def _write(folder: Path, table: Table, model: PCA, scores: NDArray[Any]) -> None:
    names = [f"PC{j + 1}" for j in range(scores.shape[1])]
    keys = ["row"] if table.labels is None else ["row", "label"]
    write_csv(folder / "scores.csv", [*keys, *names], _score_rows(scores, table.labels))
    loadings = model.components_.T.tolist()
    write_csv(
        folder / "loadings.csv",
        ["column", *names],
        ([c, *v] for c, v in zip(table.columns, loadings, strict=True)),
    )
    _write_variances(folder / "variances.csv", names, model)
    write_json(folder / "certificate.json", _certificate(table, model))
    save_picture(scree(model), folder / "scree.png")
    save_picture(score_plot(scores, model, table.labels), folder / "scores.png")


def _score_rows(scores: NDArray[Any], labels: NDArray[Any] | None) -> Iterator[list[Any]]:
    for i, row in enumerate(scores):
        yield [i, *row.tolist()] if labels is None else [i, labels[i], *row.tolist()]


def _write_variances(path: Path, names: list[str], model: PCA) -> None:
    certificate = model.certificate_
    shares = model.explained_variance_ratio_.tolist()
    columns = {
        "component": names,
        "variance": model.explained_variance_.tolist(),
        "share": shares,
        "running_sum": list(accumulate(shares)),
        "singular_value": model.singular_values_.tolist(),
    }
    if isinstance(certificate, Certificate):  # an optimum has one gradient, not a residual for each
        columns["residual"] = certificate.residuals.tolist()
        columns["variance_bound"] = certificate.eigenvalue_bounds.tolist()
    write_csv(path, list(columns), zip(*columns.values(), strict=True))


def _certificate(table: Table, model: PCA) -> dict[str, Any]:
    n, p = table.source.shape
    return {
        "gramian": version("gramian"),
        "file": table.file.name,
        "rows": n,
        "columns": p,
        "parameters": model.get_params(),
        **model.certificate_.as_dict(),
    }


def _report(table: Table, model: PCA, out: Path) -> None:
    console = Console()
    n, p = table.source.shape
    console.print(variance_table(model, f"{table.file.name}: {n} rows, {p} columns"))
    console.print(certificate_panel(model.certificate_))
    console.print(f"Wrote {', '.join(FILES)} to {out}", markup=False, highlight=False, soft_wrap=True)
