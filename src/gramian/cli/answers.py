"""One table as the answer: into a file, or to standard output."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian.cli.errors import one_line, write_errors
from gramian.cli.options import bundle, option
from gramian.cli.outputs import plain, refuse_existing, staged
from gramian.cli.running import Run
from gramian.cli.tables import Columns, csv_rows, write_table

__all__ = ["TableOutput", "hand_out", "table_output_options"]

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
        with run.step(f"Writing {output.out}"), write_errors(output.out), staged(output.out.parent) as folder:
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
