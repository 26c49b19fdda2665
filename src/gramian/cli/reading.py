"""What a command reads: a file or standard input, and which columns of it mean what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gramian.cli.errors import data_errors, one_line
from gramian.cli.options import NAMES, ParamType, bundle, option
from gramian.cli.running import LOG, Run
from gramian.sources.tables import Table, read_table

__all__ = ["FILE", "Reading", "input_name", "new_reading_options", "read", "reading_options"]

SECTION = "Reading"
TABS = ("tab", "\\t")


@dataclass(frozen=True)
class Reading:
    """Which columns are read, what they mean, and how the file is written."""

    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    target: str | None = None
    label: str | None = None
    id: str | None = None
    categorical: str = "refuse"
    missing: str = "keep"
    delimiter: str | None = None
    decimal: str | None = None
    no_header: bool = False
    dataset: str | None = None

    def with_(self, **changes: Any) -> Reading:
        """Return a copy with some of it changed."""
        return replace(self, **changes)


class InputFile(ParamType):
    """A file or folder that exists, perhaps with the dataset in it that is meant (x.h5::name); - is standard input."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        text = str(value)
        if text != "-" and not Path(text).exists() and not ("::" in text and Path(text.partition("::")[0]).exists()):
            self.fail(f"there is no file {one_line(click.format_filename(text))!r}", param, ctx)
        return Path(text)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete names of files."""
        return [CompletionItem(incomplete, type="file")]


FILE = InputFile()


def input_name(file: Path) -> str:
    """What a file is called in messages and reports."""
    return "standard input" if str(file) == "-" else one_line(click.format_filename(file))


def read(file: Path, reading: Reading, run: Run, like: Sequence[str] | None = None) -> Table:
    """Read a table, and say what was found; exit code 3 with a remedy where it will not do.

    ``like`` are the columns of an earlier table, which are then read from this one.
    """
    name = input_name(file)
    delimiter = "\t" if reading.delimiter in TABS else reading.delimiter
    with run.step(f"Reading {name}"), data_errors(name):
        table = read_table(
            "-" if str(file) == "-" else file,
            columns=reading.columns,
            drop=reading.drop,
            target=reading.target,
            label=reading.label,
            id=reading.id,
            categorical=reading.categorical,
            missing=reading.missing,
            delimiter=delimiter,
            decimal=reading.decimal,
            header=False if reading.no_header else None,
            dataset=reading.dataset,
            like=like,
        )
    rows, columns = table.source.shape
    LOG.info("%s: %d rows, %d columns, %s", name, rows, columns, table.source.dtype)
    for note in table.notes:
        LOG.info("%s: %s", name, one_line(note))
    return table


def _section(*names: str, **settings: Any) -> Callable[[Any], Any]:
    return option(*names, section=SECTION, **settings)


def reading_options(*, target: str = "", missing: str = "keep") -> Callable[[Any], Any]:
    """Return a decorator that adds the options for reading; the command is handed a :class:`Reading` as ``reading``.

    Parameters
    ----------
    target : str, optional
        What the target is, for commands that have one.
    missing : str, default="keep"
        What to do with missing values unless said otherwise.
    """
    wanted = [_section("--target", metavar="NAME", required=True, help=target)] if target else []
    chosen = [
        _section("--columns", type=NAMES, metavar="NAMES", help="Columns to use, as a,b,c [default: all]."),
        _section("--drop", type=NAMES, metavar="NAMES", default=(), help="Columns to leave out."),
    ]
    text = _section(
        "--categorical",
        type=click.Choice(["refuse", "onehot", "drop"]),
        default="refuse",
        show_default=True,
        help="What to do with columns of text.",
    )
    return bundle(Reading, "reading", [*wanted, *chosen, *_beside(), text, _missing(missing), *_written()])


def new_reading_options(function: Any) -> Any:
    """Add the options for reading rows that a model is asked about: the model knows which columns."""
    return bundle(Reading, "reading", [*_beside(), _missing("keep"), *_written()])(function)


def _beside() -> list[Callable[[Any], Any]]:
    return [
        _section("--label", metavar="NAME", help="Column of classes: shown in colour, not fitted."),
        _section("--id", metavar="NAME", help="Column that names the rows: shown, not fitted."),
    ]


def _missing(default: str) -> Callable[[Any], Any]:
    return _section(
        "--missing",
        type=click.Choice(["keep", "refuse", "drop", "mean"]),
        default=default,
        show_default=True,
        help="Missing cells: keep them for the model, refuse, drop such rows, or fill in the mean.",
    )


def _written() -> list[Callable[[Any], Any]]:
    return [
        _section("--delimiter", metavar="C", help="Between cells, as ';' or tab [default: detected]."),
        _section("--decimal", type=click.Choice([".", ","]), help="Decimal point or comma [default: detected]."),
        _section("--no-header", is_flag=True, help="The first row holds numbers, not names."),
        _section("--dataset", metavar="NAME", help="Array inside .npz, .h5, .h5ad and .zarr files."),
    ]
