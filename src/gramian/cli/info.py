"""``gramian info``: what is in a data file or a model file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape

from gramian import persistence
from gramian.cli.errors import data_errors, one_line
from gramian.cli.genotype_info import show_genotypes
from gramian.cli.options import command, option
from gramian.cli.output import Columns, plain, screen_table
from gramian.cli.reading import FILE, Reading, input_name, new_reading_options, read
from gramian.cli.running import Run, running_options
from gramian.sources import Source, open_source
from gramian.sources.columns import TABULAR, kind_of, levels_of
from gramian.sources.extras import load_pyarrow
from gramian.sources.kinds import suffix_of
from gramian.sources.records import Records, open_records

__all__ = ["info"]

MODEL = ".gramian"


@command("info", "gramian info flowers.csv", "gramian info flowers/model.gramian --json")
@click.argument("file", type=FILE)
@option("--json", "as_json", is_flag=True, section="Output", help="Print one JSON object and nothing else.")
@option("--all", "every", is_flag=True, section="Output", help="Show every column, however many there are.")
@new_reading_options
@running_options
@click.pass_context
def info(context: click.Context, /, file: Path, as_json: bool, every: bool, reading: Reading, run: Run) -> None:
    """What is in FILE: rows, columns, their types and missing cells; or the model in a model.gramian.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    if file.suffix == MODEL:
        _show_model(file, as_json)
        return
    if file.suffix == ".bed":
        show_genotypes(file, as_json, every, run)
        return
    name = input_name(file)
    if str(file) != "-" and suffix_of(file) in TABULAR:
        with run.step(f"Reading {name}"), data_errors(name):
            rows, columns, notes = _described(file, reading)
    else:
        rows, columns, notes = _numbers(file, reading, run)
    if as_json:
        each = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        click.echo(json.dumps(plain({"command": "info", "file": name, "rows": rows, "columns": each, "notes": notes})))
        return
    console = Console()
    count = len(columns["column"])
    console.print(f"[bold]{escape(name)}[/]: {rows:,} rows, {count:,} columns", highlight=False)
    for note in notes:
        console.print(f"  {escape(one_line(note))}", highlight=False, soft_wrap=True)
    console.print(screen_table("", columns, most=count if every else 30))


def _show_model(file: Path, as_json: bool) -> None:
    with data_errors(input_name(file)):
        found = persistence.inspect(file)
    if not as_json:
        click.echo("\n".join(one_line(line) if i == 0 else line for i, line in enumerate(repr(found).splitlines())))
        return
    fields = ("kind", "gramian", "format", "parameters", "attributes", "metadata", "bytes", "sha256")
    content = {name: getattr(found, name) for name in fields}
    click.echo(json.dumps(plain({"command": "info", "file": input_name(file), **content}), allow_nan=False))


def _described(file: Path, reading: Reading) -> tuple[int, Columns, list[str]]:
    """Rows, columns with their types, and what was detected, of a table whose columns may be of any kind."""
    written = {"delimiter": reading.delimiter, "decimal": reading.decimal}
    options = {**written, "header": False if reading.no_header else None}
    records = open_records(file, suffix_of(file), **options)
    each = range(len(records.names))
    records.prepare(list(each))
    facts = [_column(records, j) for j in each]
    heads = ("column", "type", "missing", "different", "smallest", "largest")
    columns = dict(zip(heads, map(list, zip(*facts, strict=True)), strict=True))
    return len(records.column(0)), columns, list(records.notes)


def _column(records: Records, j: int) -> tuple[Any, ...]:
    pa = load_pyarrow()
    values, kind = records.column(j), kind_of(pa, records.type(j))
    head = (records.names[j], kind)
    if kind == "text":
        return (*head, int(values.null_count), len(levels_of(values)), np.nan, np.nan)
    if kind != "number":
        return (*head, int(values.null_count), len(values.unique()), np.nan, np.nan)
    x = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    seen = np.unique(x[~np.isnan(x)])
    ends = (float(seen[0]), float(seen[-1])) if len(seen) else (np.nan, np.nan)
    return (*head, int(np.isnan(x).sum()), len(seen), *ends)


def _numbers(file: Path, reading: Reading, run: Run) -> tuple[int, Columns, list[str]]:
    """The same of an array, or of standard input."""
    notes: list[str] = []
    if str(file) != "-":
        with run.step(f"Reading {input_name(file)}"), data_errors(input_name(file)):
            source = open_source(file, dataset=reading.dataset)
    else:
        table = read(file, reading.with_(categorical="drop", missing="keep"), run)
        source, notes = table.source, list(table.notes)
    with run.step("Counting"), data_errors(input_name(file)):
        missing, low, high = _ranges(source)
    names = source.feature_names or [f"x{j + 1}" for j in range(source.shape[1])]
    columns = {"column": list(names), "type": ["number"] * len(names), "missing": missing, "smallest": low}
    return source.shape[0], {**columns, "largest": high}, [f"numbers of type {source.dtype}", *notes]


def _ranges(source: Source) -> tuple[Any, Any, Any]:
    """Missing cells, and the smallest and largest value of every column: one pass."""
    p = source.shape[1]
    missing, low, high = np.zeros(p, dtype=int), np.full(p, np.inf), np.full(p, -np.inf)
    for block in source.blocks():
        X = np.asarray(block.values.toarray() if source.sparse else block.values, dtype=np.float64)
        absent = np.isnan(X)
        missing += absent.sum(axis=0)
        low = np.minimum(low, np.min(np.where(absent, np.inf, X), axis=0, initial=np.inf))
        high = np.maximum(high, np.max(np.where(absent, -np.inf, X), axis=0, initial=-np.inf))
    return missing, low, high
