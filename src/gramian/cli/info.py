"""``gramian info``: what is in a data file, a model file or a PLINK fileset."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian import persistence
from gramian.cli.errors import one_line
from gramian.cli.genotype_reading import GenotypeFacts, describe_files
from gramian.cli.options import command, option
from gramian.cli.output import Columns, Results, ResultTable, json_option, print_json, print_results
from gramian.cli.reading import ANY_FILE, ReadingOptions, input_name, parse_marks, reading_options
from gramian.cli.running import CommandRun, data_errors, running_options
from gramian.compute.memory import gibibytes
from gramian.display.report import DataFacts
from gramian.genetics.filters import genome_order
from gramian.genetics.text import list_few
from gramian.sources import DenseSource, Source, open_source
from gramian.sources.addresses import as_path, must_fetch, spool_file
from gramian.sources.base import naming
from gramian.sources.columns import Records, open_records
from gramian.sources.errors import SourceError
from gramian.sources.files import TABULAR, split_dataset, spool_query, spool_standard_input, suffix_of
from gramian.sources.genotype_files import open_genotypes
from gramian.sources.genotype_names import is_genotype_name
from gramian.sources.marks import MissingMarks, find_suspects
from gramian.sources.opening import is_several, list_files

MAX_SHOWN = 30  # columns, chromosomes and contigs that are shown
MANY = 0.05  # share of missing calls above which SNPs and samples are often left out
SEXES = {"male": 1, "female": 2, "unknown": 0}


@command("info", "gramian info flowers.csv", "gramian info flowers/model.gramian --json")
@click.argument("file", type=ANY_FILE)
@json_option
@option("--all", "every", is_flag=True, section="Output", help="Show every column, however many there are.")
@reading_options(new_rows=True)
@running_options
def info(file: Path, as_json: bool, every: bool, reading: ReadingOptions, run: CommandRun) -> None:
    """What is in FILE: rows, columns, their types and missing cells; or the model in a model.gramian.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    name = input_name(file)
    if file.suffix == ".gramian":
        with data_errors(name):
            found = persistence.inspect(file)
        if as_json:
            fields = ("kind", "gramian", "format", "parameters", "attributes", "metadata", "bytes", "sha256")
            print_json(Results(facts={"file": name, **{field: getattr(found, field) for field in fields}}))
        else:
            click.echo(repr(found))
        return
    if is_genotype_name(str(file)):
        with run.step(f"Counting {name}"), data_errors(name):
            results = _describe_genotypes(file, every)
    else:
        with run.step(f"Reading {name}"), data_errors(name), ExitStack() as until:
            place, dataset = split_dataset(str(file), reading.dataset)
            opening: Any = None
            if reading.sql is not None:
                opening = spool_query(file, reading.sql)
            elif place == "-":
                opening = spool_standard_input()
            elif must_fetch(path := as_path(place)):
                opening = spool_file(path)
            if opening is not None:
                spool = until.enter_context(opening)
                until.callback(shutil.rmtree, spool.path.parent, ignore_errors=True)
                place = str(spool.path)
            path = as_path(place)
            files = list_files(path) if is_several(path) else [path]
            if all(suffix_of(path) in TABULAR for path in files):
                rows, columns, notes = _describe_table(files, reading, dataset)
            else:
                rows, columns, notes = _describe_numbers(
                    open_source(place, dataset=dataset), parse_marks(reading.na_values)
                )
        count = len(columns["column"])
        table = ResultTable(columns, title="", most=count if every else MAX_SHOWN)
        results = Results(
            data=DataFacts(name, rows, count, "", [one_line(note) for note in notes]),
            tables=[table],
            facts={"file": name, "rows": rows, "columns": table.records(), "notes": notes},
        )
    print_results(results, as_json)


def _describe_table(files: list[Path], reading: ReadingOptions, dataset: str | None) -> tuple[int, Columns, list[str]]:
    """Rows, columns with their types, and what was detected, of a table whose columns may be of any kind."""
    written = {"delimiter": reading.delimiter, "decimal": reading.decimal, "encoding": reading.encoding}
    header = False if reading.no_header else None
    parts: list[Records] = []
    for path in files:
        with naming(path):
            records = open_records(path, suffix_of(path), dataset, header=header, **written)
            if parts and records.names != parts[0].names:
                there, here = ", ".join(parts[0].names), ", ".join(records.names)
                raise SourceError(f"the columns are {here}, where {files[0]} has {there}.")
            records.marks = parse_marks(reading.na_values)
            records.marks.check_columns(records.names)
            records.prepare(list(range(len(records.names))))
        parts.append(records)
    facts: list[tuple[Any, ...]] = []
    suspects: list[str] = []
    rows = 0
    for j, name in enumerate(parts[0].names):
        kinds, low, high = {part.kind(j) for part in parts}, np.nan, np.nan
        if kinds == {"number"}:
            values: Any = np.concatenate([part.numbers(j) for part in parts]).astype(np.float64)
            values = np.where(np.isin(values, parts[0].marks.numbers(name)), np.nan, values)
            suspects += find_suspects(DenseSource(values[:, None]), [name])
            seen: Any = np.unique(values[~np.isnan(values)])
            missing = int(np.isnan(values).sum())
            if len(seen):
                low, high = float(seen[0]), float(seen[-1])
        else:
            each = [part.texts(j) if part.kind(j) == "number" else part.cells(j) for part in parts]
            values = [cell or None for cells in each for cell in cells]
            seen, missing = {*values} - {None}, values.count(None)
        rows = len(values)
        facts.append((name, kinds.pop() if len(kinds) == 1 else "text", missing, len(seen), low, high))
    heads = ("column", "type", "missing", "different", "smallest", "largest")
    columns = dict(zip(heads, map(list, zip(*facts, strict=True)), strict=True))
    several = [f"{len(files)} files, the first {files[0].name}"] if len(files) > 1 else []
    return rows, columns, [*several, *parts[0].notes, *suspects]


def _describe_numbers(source: Source, marks: MissingMarks) -> tuple[int, Columns, list[str]]:
    """The same of an array."""
    p = source.shape[1]
    names = source.feature_names or [f"x{j + 1}" for j in range(p)]
    marks.check_columns(names)
    source = marks.blank_numbers(source, names)
    missing, low, high = np.zeros(p, dtype=int), np.full(p, np.inf), np.full(p, -np.inf)
    for block in source.blocks():
        X = np.asarray(block.values.toarray() if source.sparse else block.values, dtype=np.float64)
        absent = np.isnan(X)
        missing += absent.sum(axis=0)
        low = np.minimum(low, np.min(np.where(absent, np.inf, X), axis=0, initial=np.inf))
        high = np.maximum(high, np.max(np.where(absent, -np.inf, X), axis=0, initial=-np.inf))
    columns = {"column": list(names), "type": ["number"] * len(names), "missing": missing, "smallest": low}
    return (
        source.shape[0],
        {**columns, "largest": high},
        [f"numbers of type {source.dtype}", *find_suspects(source, names)],
    )


def _describe_genotypes(file: Path, every: bool) -> Results:
    """Counts, shares of missing calls and a row for each chromosome, in one pass over a fileset."""
    source = open_genotypes(file)
    (n, p), (size, _, _), name = source.shape, describe_files(file), input_name(file)
    counts = source.counts()
    by_snp, by_sample = counts.by_snp[:, 3] / n, counts.by_sample[:, 3] / p
    silent = [source.samples.names[i] for i in np.flatnonzero(by_sample == 1)]
    two, one, none, _ = counts.by_snp.T
    sexes = {name: int(np.sum(source.samples.sex == code)) for name, code in SEXES.items()}
    missing = {"mean": by_snp.mean(), "highest_snp": by_snp.max(), "highest_sample": by_sample.max()}
    snps = {
        "above_5_percent": int(np.sum(by_snp > MANY)),
        "without_calls": int(np.sum(by_snp == 1)),
        "of_one_allele": int(np.sum((one == 0) & ((two == 0) != (none == 0)))),
    }
    samples = {"above_5_percent": int(np.sum(by_sample > MANY)), "without_calls": len(silent)}
    notes = [one_line(note) for note in source.notes]
    if silent:
        notes.append(
            one_line(f"Samples without a call, which pca refuses: {list_few(silent)}. Leave them out with --mind.")
        )
    lines = [
        f"{gibibytes(size)} at two bits a genotype",
        f"Samples: {', '.join(f'{count:,} {sex}' for sex, count in sexes.items())} (sex)",
        f"Missing calls: {missing['mean']:.3%}; of a SNP at most {missing['highest_snp']:.2%}, "
        f"of a sample at most {missing['highest_sample']:.2%}",
        f"More than {MANY:.0%} missing: {snps['above_5_percent']:,} of {p:,} SNPs (--geno {MANY:g}) and "
        f"{samples['above_5_percent']:,} of {n:,} samples (--mind {MANY:g})",
        f"Left out of any PCA: {snps['without_calls']:,} SNPs without a call, {snps['of_one_allele']:,} of one "
        "allele alone; X, Y, MT and unplaced SNPs unless --chr or --all-chromosomes says otherwise",
        *notes,
    ]
    # a row for each chromosome in the order of the genome
    order = genome_order(source.snps.chromosome)
    number = {name: i for i, name in enumerate(order)}
    code = np.array([number[name] for name in source.snps.chromosome], dtype=np.intp)
    held = np.bincount(code, minlength=len(order))
    first, last = np.full(len(order), np.iinfo(np.int64).max), np.zeros(len(order), dtype=np.int64)
    np.minimum.at(first, code, source.snps.position)
    np.maximum.at(last, code, source.snps.position)
    columns: dict[str, Any] = {
        "chromosome": ["unplaced" if name == "0" else name for name in order],
        "SNPs": held,
        "first position": first,
        "last position": last,
        "missing": np.bincount(code, by_snp, len(order)) / held,
    }
    share = [f"{value:.3%}" for value in columns["missing"]]
    return Results(
        data=GenotypeFacts(name, n, p, "", lines),
        tables=[ResultTable({**columns, "missing": share}, title="", most=len(order) if every else MAX_SHOWN)],
        facts={
            "file": name,
            "samples": n,
            "snps": p,
            "bytes": size,
            "sexes": sexes,
            "missing": missing,
            "counts": {"snps": snps, "samples": samples},
            "chromosomes": ResultTable(columns).records(),
            "notes": notes,
        },
    )
