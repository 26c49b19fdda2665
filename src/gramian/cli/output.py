"""What a command found, described once, and its four renderings: screen, files, JSON and report."""

from __future__ import annotations

import csv
import json
import os
import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from string import ascii_letters
from typing import Any, TypeAlias

import click
import numpy as np
import rich.box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table as ScreenTable

from gramian import display, persistence
from gramian import results as certified
from gramian.cli.errors import DONE, UNMET, Invocation, answer_stream, one_line, write_errors
from gramian.cli.options import bundle, option
from gramian.cli.reading import MODEL, colour_columns, input_name
from gramian.cli.running import LOG, CommandRun
from gramian.display import report as reports
from gramian.display.report.facts import DataFacts, Run
from gramian.results.quality import FitLevel, Quality, find_gravest
from gramian.sources.files import hide_password, write_parquet
from gramian.sources.tables import Table as InputTable
from gramian.sources.writing import PlaceTakenError, as_json, claim, write_json, write_whole, write_whole_folder

Columns: TypeAlias = Mapping[str, Any]

CERTIFICATE, REPORT = "certificate.json", "report.html"
TABLE_ENDINGS = (".csv", ".parquet")
RESULT_ENDINGS = (*TABLE_ENDINGS, ".png", ".html")
OPTIONAL = ("path", "choice", "curve", "field", "profile", "comparison")  # what not every run writes
CLAIMED = "gramian.cli.claimed"  # key of a context: its place is claimed
MAX_CHECKSUM_BYTES = 2**33  # bytes of a file that is read once more to have its checksum
SKETCH_WIDTH, SKETCH_HEIGHT = 72, 16  # characters and lines of points on the screen
MAX_SKETCHED = 50_000  # points; of more, some
MARKS, SHADES = "o+x*#@%&=", "·∙•●"  # of groups, of which more have letters; and of few and many points
WORD_LENGTH = 11  # letters of a word that are kept together on the screen
ROWS_AT_A_TIME = 10_000  # rows that are turned into text at a time


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Named columns of one length: a file where it has a name, on the screen where it has a title.

    Attributes
    ----------
    columns : mapping of str to array-like
        Values by the name of the column.
    file : str
        Name of the file without its ending.
    title : str, optional
        Above the table on the screen; None keeps it off the screen.
    formats : mapping of str to str, optional
        The columns that are shown and the format of their numbers; all columns, to five digits, by default.
    most : int
        Rows that are shown.
    """

    columns: Columns
    file: str = ""
    title: str | None = None
    formats: Mapping[str, str] | None = None
    most: int = 12

    def records(self) -> list[dict[str, Any]]:
        """The rows, each by the names of the columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]


@dataclass(frozen=True, eq=False)
class Sketch:
    """Points to be drawn with characters, where no picture is written.

    Attributes
    ----------
    title : str
        Above them.
    x, y : array-like of shape (n,)
        Where they are; points that are not finite are left out.
    names : tuple of two str
        Of the axes.
    groups : sequence of str, optional
        What each point belongs to: up to 52 groups have a mark of their own.
    """

    title: str
    x: Any
    y: Any
    names: tuple[str, str]
    groups: Sequence[str] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """What a command found.

    Attributes
    ----------
    facts : mapping
        The main numbers, for scripts: keys of the JSON object; a :class:`ResultTable` stands for its columns.
    tables : sequence of ResultTable
        What is written, shown, or both.
    lines : sequence of str
        Said below the tables on the screen.
    data : DataFacts, optional
        What was read.
    model : estimator, optional
        What is saved.
    columns : sequence of str
        What it was fitted to.
    certificates : mapping of str to certificate
        By name; the name is "" where there is one. They are about the arithmetic.
    quality : sequence of Quality
        How well the model fits the data, the measure that says most first.
    sketch : Sketch, optional
        The picture that the screen shows where none is written.
    pictures : mapping of str to callable
        What draws each, by the name of the file without its ending.
    report : callable, optional
        Given ``data`` and ``run``, what makes the report.
    write_more : callable, optional
        Given the folder, or the file of a command that writes one, what writes in the formats of other programs.
    """

    facts: Mapping[str, Any]
    tables: Sequence[ResultTable] = ()
    lines: Sequence[str] = ()
    data: Any = None
    model: Any = None
    columns: Sequence[str] = ()
    certificates: Mapping[str, Any] = field(default_factory=dict)
    quality: Sequence[Quality] = ()
    sketch: Sketch | None = None
    pictures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    report: Callable[..., Any] | None = None
    write_more: Callable[[Path], Any] | None = None

    @classmethod
    def of_fit(cls, model: Any, table: InputTable, file: Path, **found: Any) -> Results:
        """What a command found that fitted one model, with one certificate, to the columns of a table."""
        proof = {"": model.certificate_}
        return cls(data=describe_data(table, file), columns=table.names, model=model, certificates=proof, **found)

    @property
    def converged(self) -> bool:
        """Whether every tolerance was met."""
        return all(certificate.converged for certificate in self.certificates.values())


# Where results go: options, and refusals before any work is done


class OutputPath(click.Path):
    """A place to write to. An empty name, often a variable that was not set, is not taken for the current folder."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(path_type=Path, **settings)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if not str(value).strip():
            self.fail("the name is empty; for the current folder, write . (a dot)", param, ctx)
        return super().convert(value, param, ctx)


_option = partial(option, section="Output")
json_option = _option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@dataclass(frozen=True, kw_only=True)
class Output:
    """A folder for results, and in which form they go there."""

    out: Path | None
    format: str = "csv"
    no_report: bool
    no_pictures: bool
    as_json: bool
    force: bool

    @property
    def has_report(self) -> bool:
        """Whether a report is to be written."""
        return self.out is not None and not self.no_report

    def check(self, tables: Sequence[str], pictures: Sequence[str], files: Sequence[str] = ()) -> None:
        """Exit 2 where one of the results is there already, or cannot be written.

        Tables and pictures are given by their names without endings, more files by their whole names.
        """
        if self.out is not None:
            written = [*files, *(f"{name}.{self.format}" for name in tables), MODEL, CERTIFICATE]
            drawn = [] if self.no_pictures else [f"{name}.png" for name in pictures]
            names = [*written, *([] if self.no_report else [REPORT]), *drawn]
            claim_place(self.out, [self.out / name for name in names], self.force)


def output_options(kind: type[Output] = Output, own: Iterable[Any] = ()) -> Callable[[Any], Any]:
    """Return a decorator that adds the options for results; the command is handed them as ``output``."""
    formats = _option("--format", type=click.Choice(["csv", "parquet"]), default="csv", help="Of the tables.")
    return bundle(
        kind,
        "output",
        [
            _option("-o", "--out", type=OutputPath(), help="Folder for the results [default: the screen]."),
            *(own or [formats]),
            _option("--no-report", is_flag=True, help="Leave out report.html."),
            _option("--no-pictures", is_flag=True, help="Leave out the pictures."),
            json_option,
            _option("--force", is_flag=True, help="Replace results that are there already."),
        ],
    )


@dataclass(frozen=True)
class TableOutput:
    """A file for one table."""

    out: Path | None
    as_json: bool
    force: bool

    def check(self, *, any_ending: bool = False) -> None:
        """Exit 2 where the file is there already, or is of no kind that is written."""
        if self.out is None:
            return
        if any_ending and (not self.out.suffix or self.out.is_dir()):
            raise click.UsageError(
                f"--out {self.out.name}: name a file, as new.eigenvec, new.tsv, new.csv or new.parquet"
            )
        if not any_ending and self.out.suffix.lower() not in TABLE_ENDINGS:
            raise click.UsageError(f"--out {self.out.name}: the name must end in .csv or .parquet")
        claim_place(self.out, [self.out], self.force)


def table_output_options(
    help: str = ".csv or .parquet file [default: print CSV].", *, dir_okay: bool = False
) -> Callable[[Any], Any]:
    """Return a decorator that adds the options for one table; the command is handed them as ``output``."""
    return bundle(
        TableOutput,
        "output",
        [
            _option("-o", "--out", type=OutputPath(dir_okay=dir_okay), help=help),
            json_option,
            _option("--force", is_flag=True, help="Replace a file that is there already."),
        ],
    )


@dataclass(frozen=True)
class FileSet:
    """Files whose names begin alike."""

    out: Path
    as_json: bool
    force: bool

    def claim(self, file: Path, endings: Sequence[str]) -> list[Path]:
        """Return the files, kept for this run; exit 2 where no name is given, or one would be replaced unasked."""
        if self.out.is_dir() or not self.out.name:
            raise click.UsageError(f"--out {self.out}: name what the files begin with, as {self.out / file.stem}")
        files = [self.out.with_name(self.out.name + ending) for ending in endings]
        claim_place(self.out, files, self.force)
        return files

    @contextmanager
    def written(self) -> Iterator[None]:
        """Make the folder, and name the place in errors of what is written there."""
        with write_errors(self.out):
            self.out.parent.mkdir(parents=True, exist_ok=True)
            yield


def file_set_options(help: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the options for files that begin alike; the command is handed them as ``output``."""
    return bundle(
        FileSet,
        "output",
        [
            _option("-o", "--out", type=OutputPath(), required=True, help=help),
            json_option,
            _option("--force", is_flag=True, help="Replace files that are there already."),
        ],
    )


def claim_place(out: Path, files: Sequence[Path], force: bool) -> None:
    """Keep a file or folder for this run until its command ends; what killed runs left there is cleared away.

    Exit 2 where it cannot be written to, another run is writing there, or a file would be replaced without ``--force``.
    """
    folder = files[0].parent
    place = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not place.is_dir():
        raise click.UsageError(f"cannot write to {out}: {place} is a file; choose another --out")
    if not os.access(place, os.W_OK | os.X_OK):
        raise click.UsageError(f"cannot write to {out}: {place} is write-protected; choose another --out")
    context = click.get_current_context()
    if CLAIMED not in context.meta:
        with write_errors(out):
            try:
                context.meta[CLAIMED] = context.with_resource(claim(out))
            except PlaceTakenError:
                raise click.UsageError(
                    f"another run is writing to {out}: wait until it has ended, or choose another --out"
                ) from None
    there = [file.name for file in files if file.exists()]
    if there and not force:
        raise click.UsageError(
            f"{folder} already holds {', '.join(there)}: add --force to replace, or choose another --out"
        )


# What commands fill their descriptions with


def number_columns(prefix: str, values: Any) -> dict[str, Any]:
    """Return the columns of a matrix, named PC1, PC2, … after a prefix.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.cli.output import number_columns
    >>> list(number_columns("PC", np.zeros((3, 2))))
    ['PC1', 'PC2']
    """
    return {f"{prefix}{j + 1}": values[:, j] for j in range(values.shape[1])}


def as_texts(values: Any) -> list[str] | None:
    """Return texts as a list, or None."""
    return None if values is None else [str(value) for value in values]


def describe_rows(table: InputTable) -> dict[str, Any]:
    """Return what a report is told of the rows: names, classes, numbers in the file, columns to colour by."""
    return {
        "ids": as_texts(table.ids),
        "labels": as_texts(table.label),
        "label_name": table.label_name or "label",
        "rows": table.rows,
        "columns": colour_columns(table.source),
    }


def describe_data(table: InputTable, file: Path) -> Any:
    """What is said of the data; the checksum is left out of a file so large that reading it takes minutes."""
    large = file.is_file() and file.stat().st_size > MAX_CHECKSUM_BYTES
    notes = [*map(one_line, table.notes), *(["no checksum: the file is large"] if large else [])]
    checksum = "" if large else table.checksum()
    return DataFacts(input_name(Path(without_folders(str(file)))), *table.source.shape, checksum, notes)


def without_folders(text: str) -> str:
    """Return an argument with only the last part of a path from the root: results are sent to others.

    Examples
    --------
    >>> from gramian.cli.output import without_folders
    >>> without_folders("/home/ann/study/flowers.csv"), without_folders("--out=/tmp/x"), without_folders("study/a.csv")
    ('flowers.csv', '--out=x', 'study/a.csv')
    """
    text = hide_password(text)
    option, mark, value = text.partition("=") if text.startswith("--") else ("", "", text)
    path = Path(value)
    return f"{option}{mark}{path.name}" if path.is_absolute() and path.name else text


# The renderings


def publish(run: CommandRun, output: Output, results: Results) -> None:
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
            write_whole_folder(output.out, overwrite=output.force, claimed=True) as folder,
        ):
            write_files(folder, output, run, results)
            if output.has_report:
                write_report(folder / REPORT, run, results)
            files = sorted(path.name for path in folder.iterdir())
        stems = {*(table.file for table in results.tables), *results.pictures, Path(REPORT).stem, *OPTIONAL}
        left = [name for name in sorted(earlier - set(files)) if Path(name).suffix in RESULT_ENDINGS]
        left = [name for name in left if Path(name).stem in stems]
        if left:  # where it could be taken for results of this run
            run.warn(f"{output.out} still holds {', '.join(left)} of an earlier run, which this one did not write")
    if output.as_json:
        each = {name: certificate.as_dict() for name, certificate in results.certificates.items()}
        head = {"gramian": version("gramian"), "data": _data_facts(results.data)}
        proof = {"converged": results.converged, "certificate": each.get("", each), "seconds": round(run.seconds, 3)}
        measures = {"quality": [measure.as_dict() for measure in results.quality]}
        print_json(results, before=head, after={**measures, **proof, **_describe_run(run, output.out), "files": files})
    else:
        console = print_screen(results, sketch=output.out is None, doubts=run.doubts)
        told = f"Wrote {', '.join(files)} to {one_line(click.format_filename(output.out or ''))}"
        if output.out is None:
            kept = [*(table.file for table in results.tables if table.file), "the model", "pictures", "a report"]
            told = f"Nothing was written. To keep {', '.join(kept[:-1])} and {kept[-1]}, add: --out FOLDER"
        console.print(told, markup=False, highlight=False, soft_wrap=True)
    click.get_current_context().exit(DONE if results.converged else UNMET)


def publish_table(run: CommandRun, output: TableOutput, results: Results) -> None:
    """Write the first table to its file, or print it as CSV; the others, and what is said, go to the screen."""
    table, out = results.tables[0], output.out
    if out is not None:  # before anything is printed: who reads it may stop after a line
        with run.step(f"Writing {out}"), write_errors(out), write_whole(out, overwrite=output.force) as part:
            if results.write_more is not None and out.suffix.lower() not in TABLE_ENDINGS:
                results.write_more(part)
            else:
                write_table(part, table.columns)
    if not output.as_json and (results.lines or len(results.tables) > 1):
        print_screen(results, stderr=out is None)
    if output.as_json:
        print_json(results, after={**_describe_run(run, out), **({"table": table} if out is None else {})})
    elif out is None:
        lines: Iterable[Any] = chain([list(table.columns)], csv_rows(table.columns))
        stream = answer_stream()
        if stream.isatty():  # cells must not move the cursor of a terminal; a pipe gets them as they are
            lines = ([one_line(cell) if isinstance(cell, str) else cell for cell in line] for line in lines)
        csv.writer(stream, lineterminator="\n").writerows(lines)


def _describe_run(run: CommandRun, out: Path | None) -> dict[str, Any]:
    return {"warnings": run.warnings, "out": None if out is None else click.format_filename(out)}


def _data_facts(data: Any) -> dict[str, Any]:
    facts = {"file": data.name, "rows": data.rows, "columns": data.columns, "sha256": data.checksum}
    return {**facts, "notes": list(data.notes)}


def _command_name() -> str:
    return str(click.get_current_context().command.name)


# ... on the screen


def print_screen(
    results: Results, *, stderr: bool = False, sketch: bool = False, doubts: Iterable[str] = ()
) -> Console:
    """Print what was read, the tables that have a title, what is said of them, how well it fits, and certificates."""
    console = Console(soft_wrap=False, stderr=True) if stderr else Console(soft_wrap=False, file=answer_stream())
    if results.data is not None:
        console.print(f"[bold]{escape(results.data.name)}[/]: {results.data.size}", highlight=False, soft_wrap=True)
        for note in results.data.notes:
            console.print(f"  {escape(note)}", highlight=False, soft_wrap=True)
    for table in results.tables:
        if table.title is not None:
            for part in screen_tables(table, console.width):
                console.print(part)
    if sketch and results.sketch is not None:
        drawn = draw_sketch(results.sketch, min(console.width, SKETCH_WIDTH))
        console.print(drawn, markup=False, highlight=False)
    for line in results.lines:
        console.print(f"  {escape(line)}", highlight=False, soft_wrap=True)
    for line in doubts:
        console.print(f"[yellow]Warning:[/] {escape(line)}", highlight=False, soft_wrap=True)
    gravest = find_gravest(results.quality)
    if gravest is not None:
        colour = {FitLevel.POOR: "red", FitLevel.DOUBTFUL: "yellow"}.get(gravest.verdict, "blue")
        print_panel(console, "How well the model fits", [(m.label, m.text) for m in results.quality], colour)
    for name, certificate in results.certificates.items():
        verdict = certified.describe_verdict(certificate.converged, certificate.tolerance)
        title = f"Arithmetic{f' of {name}' if name else ''}: {verdict}"
        print_panel(console, title, certificate.summary(), "green" if certificate.converged else "red")
    return console


def print_panel(console: Console, title: str, rows: Iterable[tuple[str, str]], colour: str) -> None:
    """Print names and texts in a frame."""
    grid = ScreenTable.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(escape(one_line(name)), escape(one_line(text)))
    console.print(Panel(grid, title=escape(one_line(title)), border_style=colour, title_align="left", expand=False))


def draw_sketch(sketch: Sketch, width: int) -> str:
    """Points as characters on a grid: a mark for each group, or dots that grow with the number of points.

    Examples
    --------
    >>> from gramian.cli.output import Sketch, draw_sketch
    >>> draw_sketch(Sketch("", [0, 1], [0, 1], ("x", "y")), 12).splitlines()[2]
    '│        ·│'
    """
    X = np.column_stack([np.asarray(sketch.x, dtype=float), np.asarray(sketch.y, dtype=float)])
    kept = np.flatnonzero(np.isfinite(X).all(axis=1))
    kept = kept[:: max(1, len(kept) // MAX_SKETCHED)]
    if not len(kept):
        return ""
    X, columns = X[kept], width - 3
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    size = np.array([columns, SKETCH_HEIGHT])
    place = np.clip(((X - low) / np.where(spread > 0, spread, 1.0) * size).astype(int), 0, size - 1)
    cell = place[:, 1] * columns + place[:, 0]
    texts = [""] * len(X) if sketch.groups is None else [str(sketch.groups[i]) for i in kept.tolist()]
    names = sorted(set(texts))
    marks = MARKS if len(names) <= len(MARKS) else ascii_letters  # groups beyond the last mark share it
    mark_of = {name: marks[min(i, len(marks) - 1)] for i, name in enumerate(names)}
    seen: dict[int, Counter[str]] = {}
    for place_of_point, text in zip(cell.tolist(), texts, strict=True):
        seen.setdefault(place_of_point, Counter())[text] += 1
    many = len(names) > 1

    def mark(at: int) -> str:
        if at not in seen:
            return " "
        count, (text, _) = seen[at].total(), seen[at].most_common(1)[0]
        return mark_of[text] if many else SHADES[(count > 2) + (count > 7) + (count > 19)]

    rows = ["".join(map(mark, range(r * columns, (r + 1) * columns))) for r in reversed(range(SKETCH_HEIGHT))]
    legend = "   ".join(f"{mark_of[name]} {one_line(name)}" for name in names[: len(marks)]) if many else ""
    more = f" and {len(names) - len(marks)} more" if len(names) > len(marks) else ""
    axes = [one_line(name) for name in sketch.names]
    head = f"{sketch.title}: {axes[1]} over {axes[0]}"
    ends = [f"{axes[i]}: {screen_cell(low[i])} to {screen_cell(low[i] + spread[i])}" for i in (0, 1)]
    frame = [f"┌{'─' * columns}┐", *(f"│{row}│" for row in rows), f"└{'─' * columns}┘"]
    lines = [head, *frame, "   ".join(ends), *([legend + more] if legend else [])]
    return "\n".join(lines)


def screen_tables(table: ResultTable, width: int) -> list[ScreenTable]:
    """Return a table for the screen: of many rows the first ones, of more columns than fit some below the others.

    The first column is repeated, so that every row has its name.
    """
    formats = dict.fromkeys(table.columns, "") if table.formats is None else table.formats
    arrays = {name: np.asarray(table.columns[name]) for name in formats if name in table.columns}
    length = len(next(iter(arrays.values()), ()))
    cells = {name: [screen_cell(v, formats[name]) for v in array[: table.most]] for name, array in arrays.items()}
    left = ["…"] * (length > table.most)
    narrowest = {}  # of a column: numbers stay on one line, texts may be broken between words
    for name, texts in cells.items():
        number = arrays[name].dtype.kind in "fiu"
        parts = texts if number else [word[:WORD_LENGTH] for text in texts for word in text.split()]
        narrowest[name] = max(map(len, (*one_line(name).split(), *parts)), default=0)
    first, *rest = cells
    blocks = [[first]]
    for name in rest:
        if sum(3 + narrowest[each] for each in (*blocks[-1], name)) > width - 1 and len(blocks[-1]) > 1:
            blocks.append([first])
        blocks[-1].append(name)
    shown = []
    for i, block in enumerate(blocks):
        title = one_line(table.title or "") if i == 0 else "(more columns)"
        part = ScreenTable(title=escape(title), box=rich.box.SIMPLE_HEAD, title_justify="left")
        heads = {name: one_line(name) for name in block}
        if sum(3 + max(map(len, (heads[name], *cells[name])), default=0) for name in block) > width - 1:
            # columns of numbers do not wrap, so that their names must be broken here
            heads |= {
                name: "\n".join(textwrap.wrap(heads[name], max(1, narrowest[name]), break_long_words=False))
                for name in block
                if arrays[name].dtype.kind in "fiu"
            }
        for name in block:
            number = arrays[name].dtype.kind in "fiu"
            part.add_column(
                escape(heads[name]),
                justify="right" if number else "left",
                overflow="fold",
                no_wrap=number,
                min_width=narrowest[name],
            )
        for row in zip(*([*cells[name], *left] for name in block), strict=True):
            part.add_row(*map(escape, row))
        shown.append(part)
    return shown


def screen_cell(value: Any, form: str = "") -> str:
    """A cell as text: of a number five digits and all before the point, or as its format says; NaN is nothing.

    Examples
    --------
    >>> from gramian.cli.output import screen_cell
    >>> screen_cell(1000123.456), screen_cell(0.123456), screen_cell(float("nan"))
    ('1000123.5', '0.12346', '')
    """
    if not isinstance(value, (float, np.floating)):
        return one_line(value)
    number = float(value)
    if number != number:
        return ""
    return format(number, form or (".1f" if 1e5 <= abs(number) < 1e15 else ".5g"))


# ... as JSON


def print_json(results: Results, *, before: Columns | None = None, after: Columns | None = None) -> None:
    """Print the command and its facts as one JSON object, with more of it before and after them."""
    content = {"command": _command_name(), **(before or {}), **results.facts, **(after or {})}
    found = {key: dict(value.columns) if isinstance(value, ResultTable) else value for key, value in content.items()}
    click.echo(json.dumps(as_json(found), allow_nan=False), file=answer_stream())


def print_results(results: Results, as_json: bool) -> None:
    """Print what was found as one JSON object, or on the screen."""
    if as_json:
        print_json(results)
    else:
        print_screen(results)


# ... as files


def write_files(folder: Path, output: Output, run: CommandRun, results: Results) -> None:
    """Write tables, certificate, model and pictures."""
    for table in results.tables:
        if table.file:
            write_table(folder / f"{table.file}.{output.format}", table.columns)
    if results.write_more is not None:
        results.write_more(folder)
    data = _data_facts(results.data)
    each = {name: certificate.as_dict() for name, certificate in results.certificates.items()}
    proof = each[""] if set(each) == {""} else {"converged": results.converged, "certificates": each}
    head = {"gramian": version("gramian"), "command": _command_name(), **data, "parameters": results.model.get_params()}
    head.pop("notes")
    measures = {"quality": [measure.as_dict() for measure in results.quality]}
    write_json(folder / CERTIFICATE, {**head, **measures, **proof})
    metadata = {"command": _command_name(), "columns": results.columns, "data": data, "seed": run.seed}
    persistence.save(results.model, folder / MODEL, metadata=as_json(metadata))
    if not output.no_pictures:
        for name, draw in results.pictures.items():
            display.save_picture(draw(), folder / f"{name}.png")


def write_table(path: Path, columns: Columns) -> None:
    """Write columns as the ending of the file says: Parquet, text between tabs (NaN is NA there), or CSV."""
    if path.suffix.lower() == ".parquet":
        write_parquet(path, columns)
    elif path.suffix.lower() == ".tsv":
        write_csv(path, list(columns), csv_rows(columns, "NA"), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        write_csv(path, list(columns), csv_rows(columns))


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], **dialect: Any) -> None:
    """Write a table with enough digits to read the same numbers back."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n", **dialect)
        writer.writerow(header)
        writer.writerows(rows)


def csv_rows(columns: Columns, absent: str = "") -> Iterator[Sequence[Any]]:
    """Yield the rows, turning some at a time into plain Python values, NaN into ``absent``."""
    arrays = [np.asarray(column) for column in columns.values()]
    for start in range(0, len(arrays[0]) if arrays else 0, ROWS_AT_A_TIME):
        blocks = [array[start : start + ROWS_AT_A_TIME].tolist() for array in arrays]
        yield from ([absent if cell != cell else cell for cell in row] for row in zip(*blocks, strict=True))


# ... and as a report


def write_report(path: Path, run: CommandRun, results: Results) -> None:
    """Write the page; without the packages it takes, say so."""
    assert results.report is not None
    invocation = click.get_current_context().find_object(Invocation)
    typed = shlex.join(["gramian", *map(without_folders, invocation.arguments if invocation else [_command_name()])])
    made = Run(one_line(typed), run.seed, run.seconds, tuple(run.warnings), results.quality)
    try:
        reports.write_report(path, results.report(data=results.data, run=made))
    except ImportError as error:
        run.warn(f"{REPORT} was not written: {error}")
