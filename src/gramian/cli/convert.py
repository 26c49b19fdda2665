"""``gramian convert cohort.vcf.gz --out cohort.bed``: genotypes of other programs as a PLINK 1 fileset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from gramian.cli.errors import one_line, write_errors
from gramian.cli.genotype_reading import Selection, genotypes_argument, prepare_study, selection_options
from gramian.cli.options import command, option
from gramian.cli.output import OutputPath, Results, ResultTable, claim_place, json_option, print_results
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors, running_options
from gramian.genetics.bed_writer import write_bed
from gramian.genetics.text import as_text
from gramian.sources.genotype_files import open_genotypes
from gramian.sources.plink import Samples, Snps

ENDINGS = (".bed", ".bim", ".fam")
Named = TypeVar("Named", Samples, Snps)


def join_blanks(named: Named, columns: tuple[str, ...]) -> tuple[Named, int]:
    """Names without white space, which PLINK's files cannot hold, _ in its place; and how many were changed."""
    texts = {name: list(getattr(named, name)) for name in columns}
    joined = {name: ["_".join(text.split()) or "0" for text in column] for name, column in texts.items()}
    count = sum(old != new for name in columns for old, new in zip(texts[name], joined[name], strict=True))
    changed: dict[str, Any] = {name: as_text(joined[name]) for name in columns}
    return (replace(named, **changed) if count else named), count


@command(
    "convert",
    "gramian convert cohort.vcf.gz --out cohort.bed",
    "gramian convert cohort_chr{1..22}.pgen --maf 0.01 --out cohort.bed",
)
@genotypes_argument
@selection_options
@option("-o", "--out", type=OutputPath(dir_okay=False), required=True, section="Output", help="The .bed.")
@json_option
@option("--force", is_flag=True, section="Output", help="Replace files that are there already.")
@running_options
def convert(file: Path, selection: Selection, out: Path, as_json: bool, force: bool, run: CommandRun) -> None:
    """The genotypes of FILE (.pgen, .bgen, .vcf, .bcf, VCF-Zarr, .geno, .bed of any kind) as PLINK's .bed, .bim, .fam.

    Everything is written unless filters say otherwise; with any filter, chromosomes 1 to 22 unless --chr or
    --all-chromosomes is among them. Dosages become the call within 0.1, else missing, as in plink2. What is changed
    or left out is counted.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    if out.suffix != ".bed":
        raise click.UsageError(f"--out {out.name}: the name must end in .bed")
    claim_place(out.with_suffix(""), [out.with_suffix(ending) for ending in ENDINGS], force)
    if selection == Selection() or selection == Selection(all_chromosomes=True):
        with run.step(f"Reading {input_name(file)}"), data_errors(input_name(file)):
            source = whole = open_genotypes(file)
        account: dict[str, object] = {}
    else:
        study = prepare_study(file, selection, (None, None), run, keep_monomorphic=True)
        source, whole, account = study.source, study.whole, study.account()
    samples, changed = join_blanks(source.samples, ("fid", "iid", "father", "mother", "phenotype"))
    snps, more = join_blanks(source.snps, ("chromosome", "id", "a1", "a2"))
    notes = [one_line(note) for note in whole.notes]
    if changed + more:
        notes.append(f"{changed + more} names with white space, or none, are written with _, or as 0.")
    with run.step(f"Writing {out}"), write_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_bed(out, source, samples, snps, overwrite=force)
    n, p = source.shape
    files = [out.with_suffix(ending).name for ending in ENDINGS]
    print_results(
        Results(
            facts={
                "samples": n,
                "snps": p,
                "filters": account,
                "notes": notes,
                "out": click.format_filename(out),
                "files": files,
                "seconds": round(run.seconds, 3),
                "warnings": run.warnings,
            },
            tables=[ResultTable(account, title="Left out", most=20)] if account else [],
            lines=[*notes, f"{n:,} samples × {p:,} SNPs. Wrote {', '.join(files)} to {out.parent}"],
        ),
        as_json,
    )
