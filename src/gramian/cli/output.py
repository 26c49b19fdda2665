"""Predictions of kernel regressions with the bound on the error of each."""

from __future__ import annotations

import csv
import json
import math
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from gramian import persistence
from gramian.cli.errors import DONE, UNMET, Invocation, one_line, write_errors
from gramian.cli.options import bundle, option
from gramian.cli.reading import input_name, rows_of, shown_columns
from gramian.cli.running import LOG, Run
from gramian.display import LeaveOneOutDisplay, PredictionBandDisplay, ResidualsDisplay, RidgePathDisplay, save_picture
from gramian.display import report as reports
from gramian.kernel_ridge.estimator import KernelRidgeCV
from gramian.pca.estimator import PCA
from gramian.sources.extras import write_parquet
from gramian.sources.tables import Table as InputTable
from gramian.sources.tables import Table as TablePublishing
from gramian.sources.tables import Table as TableRegression
from gramian.sources.writing import write_whole_folder

__all__ = [
    "PICTURES",
    "Beside",
    "Columns",
    "Output",
    "Results",
    "TableOutput",
    "bounded_predictions",
    "certificate_panel",
    "csv_rows",
    "facts_of",
    "hand_out",
    "listed",
    "numbered",
    "numeric_target",
    "output_options",
    "path_table",
    "pictures",
    "plain",
    "prediction_table",
    "publish",
    "quality",
    "refuse_existing",
    "row_keys",
    "screen_table",
    "table_output_options",
    "told_of",
    "variance_table",
    "without_folders",
    "write_csv",
    "write_json",
    "write_table",
]


def refuse_existing(out: Path, names: Sequence[str], force: bool) -> None:
    """Exit 2 when a file that would be written is there already and ``--force`` was not given."""
    _refuse_place(out)
    there = [name for name in names if (out / name).exists()]
    if there and not force:
        raise click.UsageError(
            f"{out} already holds {', '.join(there)}: add --force to replace, or choose another --out"
        )


def _refuse_place(out: Path) -> None:
    """Exit 2 before any work where results could not be written after it."""
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not place.is_dir():
        raise click.UsageError(f"cannot write to {out}: {place} is a file; choose another --out")
    if not os.access(place, os.W_OK | os.X_OK):
        raise click.UsageError(f"cannot write to {out}: {place} is write-protected; choose another --out")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table with enough digits to read the same numbers back."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON: NaN and infinity, which JSON does not know, become null."""
    path.write_text(json.dumps(plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Return what JSON knows: numbers that it does not know become null, other objects the text that shows them.

    Examples
    --------
    >>> from gramian.cli.output import plain
    >>> plain({"a": (1, float("nan")), 2: {"x"}})
    {'a': [1, None], '2': "{'x'}"}
    """
    if isinstance(value, dict):
        return {_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else _text(value)


def _text(value: Any) -> str:
    """A text that can be written as UTF-8, which not every file name can."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


Columns: TypeAlias = Mapping[str, Any]

WORD = 11  # letters of a word that are kept together on the screen
BLOCK = 10_000  # rows that are turned into text at a time


def row_keys(table: InputTable) -> dict[str, Any]:
    """Return the columns that say which row is which: its number in the file, from 0, its name and its class."""
    keys: dict[str, Any] = {"row": np.arange(table.source.shape[0]) if table.rows is None else table.rows}
    if table.ids is not None:
        keys["id"] = table.ids
    if table.label is not None:
        keys["label"] = table.label
    return keys


def told_of(table: InputTable, label: str | None) -> dict[str, Any]:
    """Return what reports are told of the rows: names, classes, numbers in the file, columns to colour by."""
    named = None if label is None or label.isdecimal() else label  # a column can be given by its number
    return {
        "ids": listed(table.ids),
        "labels": listed(table.label),
        "label_name": named or "label",
        "rows": table.rows,
        "columns": shown_columns(table.source),
    }


def listed(values: Any) -> list[str] | None:
    """Return texts as a list, or None."""
    return None if values is None else [str(value) for value in values]


def numbered(prefix: str, values: Any) -> dict[str, Any]:
    """Return the columns of a matrix, named PC1, PC2, … after a prefix.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.cli.output import numbered
    >>> list(numbered("PC", np.zeros((3, 2))))
    ['PC1', 'PC2']
    """
    return {f"{prefix}{j + 1}": values[:, j] for j in range(values.shape[1])}


def write_table(path: Path, columns: Columns) -> None:
    """Write columns as the ending of the file says."""
    if path.suffix.lower() == ".parquet":
        write_parquet(path, columns)
    else:
        write_csv(path, list(columns), csv_rows(columns))


def csv_rows(columns: Columns) -> Iterator[Sequence[Any]]:
    """Yield the rows, turning some at a time into plain Python values."""
    arrays = [np.asarray(column) for column in columns.values()]
    length = len(arrays[0]) if arrays else 0
    for start in range(0, length, BLOCK):
        yield from zip(*(_cells(array[start : start + BLOCK]) for array in arrays), strict=True)


def _cells(values: Any) -> list[Any]:
    cells: list[Any] = values.tolist()
    if values.dtype.kind == "f":
        return ["" if cell != cell else cell for cell in cells]
    return cells


def screen_table(title: str, columns: Columns, most: int = 12) -> Table:
    """Return columns as a table for the screen: numbers to five digits, and of many rows the first ones."""
    table = Table(title=escape(one_line(title)), box=rich.box.SIMPLE_HEAD, title_justify="left")
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    for name, array in arrays.items():
        number = array.dtype.kind in "fiu"
        side: Any = "right" if number else "left"
        table.add_column(
            escape(one_line(name)), justify=side, overflow="fold", no_wrap=number, min_width=_longest_word(array)
        )
    length = len(next(iter(arrays.values()), ()))
    for i in range(min(length, most)):
        table.add_row(*(_shown(array[i]) for array in arrays.values()))
    if length > most:
        table.add_row(*["…"] * len(arrays))
    return table


def _longest_word(array: Any) -> int | None:
    """Room for the words of a column of text, so that they are not broken; long ones are."""
    if array.dtype.kind in "fiu":
        return None
    return min(WORD, max((len(word) for cell in array[:100] for word in one_line(cell).split()), default=0))


def _shown(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if value != value else f"{value:.5g}"
    return escape(one_line(value))


def variance_table(model: PCA, title: str, most: int = 10) -> Table:
    """Return a table of the leading components with their variances and residuals."""
    table = Table(title=escape(title), box=rich.box.SIMPLE_HEAD, title_justify="left")
    residuals = getattr(model.certificate_, "residuals", None)  # where cells were missing there is one gradient instead
    names = ["component", "variance", "share", "running sum"] + ([] if residuals is None else ["residual"])
    for name in names:
        table.add_column(name, justify="right")
    shares = model.explained_variance_ratio_.tolist()
    columns = zip(model.explained_variance_.tolist(), shares, accumulate(shares), strict=True)
    for j, (variance, share, total) in enumerate(columns):
        if j >= most:
            table.add_row(*["…"] * len(names))
            break
        last = [] if residuals is None else [f"{residuals[j]:.1e}"]
        table.add_row(f"PC{j + 1}", f"{variance:.6g}", f"{share:.2%}", f"{total:.2%}", *last)
    return table


def certificate_panel(certificate: Any, name: str = "") -> Panel:
    """Return a certificate in a frame, green when the tolerance was met and red otherwise."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row, text in certificate.summary():
        table.add_row(escape(row), escape(text))
    colour, head = ("green", "converged") if certificate.converged else ("red", "NOT converged")
    title = f"Certificate{f' of {escape(name)}' if name else ''}: {head}"
    return Panel(table, title=title, border_style=colour, title_align="left", expand=False)


SECTION = "Output"


@dataclass(frozen=True)
class TableOutput:
    """Where one table goes."""

    out: Path | None
    as_json: bool
    force: bool

    def check(self) -> None:
        """Exit 2 where the file is there already, or is of no kind that is written."""
        if self.out is None:
            return
        if self.out.suffix.lower() not in (".csv", ".parquet"):
            raise click.UsageError(f"--out {self.out.name}: the name must end in .csv or .parquet")
        refuse_existing(self.out.parent, [self.out.name], self.force)


def table_output_options(function: Any) -> Any:
    """Add the options for one table; the command is handed a :class:`TableOutput` as ``output``."""
    file = click.Path(path_type=Path, dir_okay=False)
    return bundle(
        TableOutput,
        "output",
        [
            option("-o", "--out", type=file, section=SECTION, help=".csv or .parquet file [default: print CSV]."),
            option("--json", "as_json", is_flag=True, section=SECTION, help="Print one JSON object and nothing else."),
            option("--force", is_flag=True, section=SECTION, help="Replace a file that is there already."),
        ],
    )(function)


def hand_out(run: Run, output: TableOutput, kind: str, columns: Columns, facts: dict[str, Any]) -> None:
    """Write the table, or print it; with --json a summary, which holds the table where it is not written."""
    if output.out is not None:
        with (
            run.step(f"Writing {output.out}"),
            write_errors(output.out),
            write_whole_folder(output.out.parent, overwrite=True) as folder,
        ):
            write_table(folder / output.out.name, columns)
    if output.as_json:
        place = {"out": None if output.out is None else click.format_filename(output.out)}
        rows = {} if output.out is not None else {"table": {name: np.asarray(c) for name, c in columns.items()}}
        content = {"command": kind, **facts, "warnings": run.warnings, **place, **rows}
        click.echo(json.dumps(plain(content), allow_nan=False))
    elif output.out is None:
        lines = chain([list(columns)], csv_rows(columns))
        # cells must not move the cursor of a terminal; a pipe gets them as they are
        csv.writer(sys.stdout, lineterminator="\n").writerows(map(_harmless, lines) if sys.stdout.isatty() else lines)


def _harmless(row: Sequence[Any]) -> list[Any]:
    return [one_line(cell) if isinstance(cell, str) else cell for cell in row]


class Beside:
    """A function that is called in a thread of its own, and whose answer is waited for when it is needed.

    The thread ends with the process: Ctrl-C does not wait for it.

    Parameters
    ----------
    work : callable
        What to do.

    Examples
    --------
    >>> from gramian.cli.output import Beside
    >>> later = Beside(lambda: 6 * 7)
    >>> later.start()
    >>> later.result()
    42
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._answer = work, None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def result(self) -> Any:
        """Wait for the answer; what the function raised is raised here."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._work()
        except Exception as error:
            self._error = error


MODEL, CERTIFICATE, REPORT = "model.gramian", "certificate.json", "report.html"
ENDINGS = (".csv", ".parquet", ".png", ".html")
OPTIONAL = ("path", "choice", "curve", "field", "profile", "comparison")  # what not every run writes
CHECKSUM_MOST = 2**33  # bytes of a file that is read once more to have its checksum


@dataclass(frozen=True)
class Output:
    """Where results go, and in which form."""

    out: Path | None
    format: str
    no_report: bool
    no_pictures: bool
    as_json: bool
    force: bool

    def check(self, tables: Sequence[str], pictures: Sequence[str]) -> None:
        """Exit 2 where there is no place to write to, or where something is there already."""
        if self.out is None and not self.as_json:
            raise click.UsageError("results need a folder: add --out FOLDER, or --json to print them only")
        if self.out is not None:
            refuse_existing(self.out, self.names(tables, pictures), self.force)

    def names(self, tables: Sequence[str], pictures: Sequence[str]) -> list[str]:
        """Return the names of the files that will be written."""
        drawn = [] if self.no_pictures else [f"{name}.png" for name in pictures]
        page = [] if self.no_report else [REPORT]
        return [*(f"{name}.{self.format}" for name in tables), MODEL, CERTIFICATE, *page, *drawn]


@dataclass(frozen=True, eq=False)
class Results:
    """What a command found.

    Attributes
    ----------
    kind : str
        The command.
    columns : sequence of str
        What was fitted to.
    model : estimator
        What is saved.
    certificates : mapping of str to certificate
        By name; the name is "" where there is one.
    tables : mapping of str to columns
        By the name of the file without its ending.
    pictures : mapping of str to callable
        What draws each.
    report : callable
        Given ``data`` and ``run``, what makes the report.
    summary : mapping
        The main numbers, for scripts.
    shown : sequence
        What is printed on the screen.
    beside : Beside, optional
        What the report waits for and may be done while everything else is written.
    files : callable, optional
        Given the folder, what writes files that are not tables of the usual kind.
    """

    kind: str
    columns: Sequence[str]
    model: Any
    certificates: Mapping[str, Any]
    tables: Mapping[str, Columns]
    pictures: Mapping[str, Callable[[], Any]]
    report: Callable[..., Any]
    summary: Mapping[str, Any]
    shown: Sequence[RenderableType] = field(default=())
    beside: Beside | None = None
    files: Callable[[Path], None] | None = None

    @property
    def converged(self) -> bool:
        """Whether every tolerance was met."""
        return all(certificate.converged for certificate in self.certificates.values())


def output_options(function: Any) -> Any:
    """Add the options for results; the command is handed an :class:`Output` as ``output``."""
    folder = click.Path(path_type=Path)
    return bundle(
        Output,
        "output",
        [
            option("-o", "--out", type=folder, section=SECTION, help="Folder for the results."),
            option(
                "--format",
                type=click.Choice(["csv", "parquet"]),
                default="csv",
                show_default=True,
                section=SECTION,
                help="Of the tables.",
            ),
            option("--no-report", is_flag=True, section=SECTION, help="Leave out report.html."),
            option("--no-pictures", is_flag=True, section=SECTION, help="Leave out the pictures."),
            option("--json", "as_json", is_flag=True, section=SECTION, help="Print one JSON object and nothing else."),
            option("--force", is_flag=True, section=SECTION, help="Replace results that are there already."),
        ],
    )(function)


def facts_of(table: TablePublishing, file: Path, notes: Sequence[str] = ()) -> Any:
    """What a report says of the data; the checksum is left out of a file so large that reading it takes minutes."""
    rows, columns = table.source.shape
    found = [*map(one_line, table.notes), *notes]
    size = file.stat().st_size if file.is_file() else 0
    name = input_name(Path(without_folders(str(file))))
    if size > CHECKSUM_MOST:
        return reports.DataFacts(name, rows, columns, "", [*found, "no checksum: the file is large"])
    return reports.DataFacts(name, rows, columns, table.checksum(), found)


def without_folders(text: str) -> str:
    """Return an argument with only the last part of a path from the root: results are sent to others.

    Examples
    --------
    >>> from gramian.cli.output import without_folders
    >>> without_folders("/home/ann/study/flowers.csv"), without_folders("--out=/tmp/x"), without_folders("study/a.csv")
    ('flowers.csv', '--out=x', 'study/a.csv')
    """
    option, mark, value = text.partition("=") if text.startswith("--") else ("", "", text)
    path = Path(value)
    return f"{option}{mark}{path.name}" if path.is_absolute() and path.name else text


def publish(context: click.Context, run: Run, output: Output, facts: Any, results: Results) -> None:
    """Write everything or nothing, say what was found, and exit with 0, or with 4 where a tolerance was not met."""
    for name, certificate in results.certificates.items():
        LOG.info("%s%s, because %s", f"{name}: " if name else "", certificate.method, certificate.reason)
        LOG.info("%d passes, %s", certificate.passes, "converged" if certificate.converged else "NOT converged")
    files: list[str] = []
    if output.out is not None:
        earlier = {path.name for path in output.out.glob("*")} if output.force else set()
        with (
            run.step(f"Writing to {output.out}"),
            write_errors(output.out),
            write_whole_folder(output.out, overwrite=True) as folder,
        ):
            _write(folder, context, run, output, facts, results)
            files = sorted(path.name for path in folder.iterdir())
        _tell_of_others(run, output, earlier - set(files), results)
    if output.as_json:
        _print_json(run, output, facts, results, files)
    else:
        _print(output, facts, results, files)
    context.exit(DONE if results.converged else UNMET)


def _tell_of_others(run: Run, output: Output, left: set[str], results: Results) -> None:
    """Name what an earlier run has left where it could be taken for the results of this one."""
    stems = {*results.tables, *results.pictures, Path(REPORT).stem, *OPTIONAL}
    mine = sorted(name for name in left if Path(name).stem in stems and Path(name).suffix in ENDINGS)
    if mine:
        run.warn(f"{output.out} still holds {', '.join(mine)} of an earlier run, which this one did not write")


def _write(folder: Path, context: click.Context, run: Run, output: Output, facts: Any, results: Results) -> None:
    if results.beside is not None and not output.no_report:
        results.beside.start()
    for name, columns in results.tables.items():
        write_table(folder / f"{name}.{output.format}", columns)
    if results.files is not None:
        results.files(folder)
    write_json(folder / CERTIFICATE, _certificate(facts, results))
    metadata = {"command": results.kind, "columns": results.columns, "data": _described(facts), "seed": run.seed}
    persistence.save(results.model, folder / MODEL, metadata=plain(metadata))
    if not output.no_pictures:
        for name, draw in results.pictures.items():
            save_picture(draw(), folder / f"{name}.png")
    if not output.no_report:
        _write_report(folder / REPORT, context, run, facts, results)


def _write_report(path: Path, context: click.Context, run: Run, facts: Any, results: Results) -> None:
    invocation = context.find_object(Invocation)
    typed = shlex.join(["gramian", *map(without_folders, invocation.arguments if invocation else [results.kind])])
    told = reports.Run(one_line(typed), run.seed, run.seconds, tuple(run.warnings))
    try:
        reports.write_report(path, results.report(data=facts, run=told))
    except ImportError as error:
        run.warn(f"{REPORT} was not written: {error}")


def _described(facts: Any) -> dict[str, Any]:
    return {
        "file": facts.name,
        "rows": facts.rows,
        "columns": facts.columns,
        "sha256": facts.checksum,
        "notes": list(facts.notes),
    }


def _certificate(facts: Any, results: Results) -> dict[str, Any]:
    described = _described(facts)
    described.pop("notes")
    head = {"gramian": version("gramian"), "command": results.kind, **described}
    head["parameters"] = results.model.get_params()
    each = {name: certificate.as_dict() for name, certificate in results.certificates.items()}
    return {**head, **each[""]} if set(each) == {""} else {**head, "converged": results.converged, "certificates": each}


def _print_json(run: Run, output: Output, facts: Any, results: Results, files: list[str]) -> None:
    each = {name: certificate.as_dict() for name, certificate in results.certificates.items()}
    content = {
        "command": results.kind,
        "gramian": version("gramian"),
        "data": _described(facts),
        **results.summary,
        "converged": results.converged,
        "certificate": each.get("", each),
        "seconds": round(run.seconds, 3),
        "warnings": run.warnings,
        "out": None if output.out is None else click.format_filename(output.out),
        "files": files,
    }
    click.echo(json.dumps(plain(content), allow_nan=False))


def _print(output: Output, facts: Any, results: Results, files: list[str]) -> None:
    console = Console(soft_wrap=False)
    console.print(f"[bold]{escape(facts.name)}[/]: {facts.size}", highlight=False)
    for note in facts.notes:
        console.print(f"  {escape(note)}", highlight=False, soft_wrap=True)
    for item in results.shown:
        console.print(item)
    for name, certificate in results.certificates.items():
        console.print(certificate_panel(certificate, name))
    place = one_line(click.format_filename(output.out or ""))
    console.print(f"Wrote {', '.join(files)} to {place}", markup=False, highlight=False, soft_wrap=True)


Vector = NDArray[np.float64]

PICTURES = ("residuals", "path", "choice", "curve")


def numeric_target(table: TableRegression, name: str) -> Vector:
    """Return the target as numbers; text is refused by name."""
    values = np.asarray(table.target)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"the target {name!r} is text, as {str(values[0])[:40]!r}: name a column of numbers")
    return values.astype(np.float64)


def prediction_table(table: TableRegression, y: Vector, fitted: Vector) -> Columns:
    """Every row with its target, what was fitted, and the difference."""
    keys = row_keys(table)
    return {**keys, "observed": y, "fitted": fitted, "residual": y - fitted}


def quality(y: Vector, fitted: Vector) -> dict[str, float]:
    """Return the root mean squared error and R² on the rows of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.cli.output import quality
    >>> quality(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    {'rmse': 1.0, 'r2': 0.0}
    """
    rss, total = float(np.sum((y - fitted) ** 2)), float(np.sum((y - y.mean()) ** 2))
    return {"rmse": float(np.sqrt(rss / len(y))), "r2": 1.0 - rss / total if total > 0 else float("nan")}


def path_table(path: Any) -> Columns:
    """Every λ with its degrees of freedom and every criterion."""
    found = {"alpha": path.alphas, "degrees_of_freedom": path.dof}
    for name in ("loo", "gcv", "log_marginal_likelihood"):
        values = getattr(path, name, None)
        if values is not None:
            found[name] = np.asarray(values).reshape(len(path.alphas), -1)[:, 0]
    return found


def pictures(
    model: Any, table: TableRegression, y: Vector, fitted: Vector, target: str
) -> dict[str, Callable[[], Any]]:
    """What draws the residuals; the path over λ and the choice, where there was one; the curve over a single column."""
    drawn: dict[str, Callable[[], Any]] = {"residuals": partial(ResidualsDisplay.from_predictions, y, fitted)}
    if getattr(model, "path_", None) is not None:
        drawn["path"] = partial(RidgePathDisplay.from_estimator, model, names=table.names)
    if isinstance(model, KernelRidgeCV):
        drawn["choice"] = partial(LeaveOneOutDisplay.from_estimator, model)
    if table.source.shape[1] == 1:
        names = (table.names[0], target)
        drawn["curve"] = lambda: PredictionBandDisplay.from_estimator(
            model, rows_of(table.source)[:, 0], y, names=names
        )
    return drawn


def bounded_predictions(model: Any, X: Any) -> tuple[Vector, Vector]:
    """Predictions of a kernel regression and the bound on the error of each; NaN where there is none."""
    if model.certificate_.error_bounds is None:
        found = np.asarray(model.predict(X))
        return found, np.full(found.shape, np.nan)
    found, bound = model.predict(X, return_bound=True)
    return np.asarray(found), np.asarray(bound)
