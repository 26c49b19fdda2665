"""``gramian grm cohort.bed``: the genetic relationship matrix, in the files of GCTA."""

from __future__ import annotations

from pathlib import Path

import click

from gramian.cli.errors import write_errors
from gramian.cli.genotype_reading import Selection, genotypes_argument, prepare_study, selection_options
from gramian.cli.options import command, option
from gramian.cli.output import OutputPath, Results, ResultTable, claim_place, json_option, print_results
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors, running_options
from gramian.genetics.relatives import GRM_ENDINGS, write_grm


@command(
    "grm",
    "gramian grm cohort.bed --out cohort",
    "gramian grm cohort.bed --maf 0.01 --extract cohort.prune.in --out grm/cohort --json",
)
@genotypes_argument
@selection_options
@option(
    "-o",
    "--out",
    type=OutputPath(),
    required=True,
    section="Output",
    help="What the names of the files begin with: NAME.grm.bin, NAME.grm.N.bin, NAME.grm.id.",
)
@json_option
@option("--force", is_flag=True, section="Output", help="Replace files that are there already.")
@running_options
def grm_command(file: Path, selection: Selection, out: Path, as_json: bool, force: bool, run: CommandRun) -> None:
    """Genetic relationship matrix of the people in FILE, a PLINK .bed, as GCTA and plink2 --make-grm-bin write it: the
    lower triangle in float32, the numbers of SNPs behind it, and FID and IID.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    if out.is_dir() or not out.name:
        raise click.UsageError(f"--out {out}: name what the files begin with, as {out / file.stem}")
    files = [out.with_name(out.name + ending) for ending in GRM_ENDINGS]
    claim_place(out, files, force)
    study = prepare_study(file, selection, (None, None), run, keep_monomorphic=True)
    with run.step(f"Computing {out.name}.grm.bin") as report, data_errors(input_name(file)):
        out.parent.mkdir(parents=True, exist_ok=True)
        with write_errors(out):
            write_grm(study.source, out, overwrite=force, progress=report)
    n, p = study.source.shape
    print_results(
        Results(
            facts={
                "samples": n,
                "snps": p,
                "filters": study.account(),
                "seconds": round(run.seconds, 3),
                "out": click.format_filename(out),
                "files": [path.name for path in files],
                "warnings": run.warnings,
            },
            tables=[ResultTable(study.account(), title="Left out", most=20)],
            lines=[
                f"{n:,} people, {p:,} SNPs",
                f"Wrote {', '.join(path.name for path in files)} to {out.parent}",
            ],
        ),
        as_json,
    )
