"""How results are handed out: tables, model file, certificate, report, pictures; on the screen, or as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.markup import escape

from gramian import persistence
from gramian.cli import show
from gramian.cli.beside import Beside
from gramian.cli.errors import DONE, UNMET, Invocation, one_line, write_errors
from gramian.cli.options import bundle, option
from gramian.cli.outputs import plain, refuse_existing, staged, write_json
from gramian.cli.reading import input_name
from gramian.cli.running import LOG, Run
from gramian.cli.tables import Columns, write_table
from gramian.display import report as reports
from gramian.display import save_picture
from gramian.sources.tables import Table

__all__ = ["Output", "Results", "facts_of", "output_options", "publish", "without_folders"]

SECTION = "Output"
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


def facts_of(table: Table, file: Path, notes: Sequence[str] = ()) -> Any:
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
    >>> from gramian.cli.publishing import without_folders
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
        with run.step(f"Writing to {output.out}"), write_errors(output.out), staged(output.out) as folder:
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
        console.print(show.certificate_panel(certificate, name))
    place = one_line(click.format_filename(output.out or ""))
    console.print(f"Wrote {', '.join(files)} to {place}", markup=False, highlight=False, soft_wrap=True)
