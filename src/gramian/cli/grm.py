"""``gramian grm cohort.bed``: the genetic relationship matrix, in the files of GCTA."""

from __future__ import annotations

from pathlib import Path

import click

from gramian.cli.genotype_reading import Selection, genotypes_argument, prepare_study, selection_options
from gramian.cli.options import command
from gramian.cli.output import FileSet, Results, ResultTable, file_set_options, print_results
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
@file_set_options("What the names of the files begin with: NAME.grm.bin, NAME.grm.N.bin, NAME.grm.id.")
@running_options
def grm_command(file: Path, selection: Selection, output: FileSet, run: CommandRun) -> None:
    """Genetic relationship matrix of the people in FILE, a PLINK .bed, as GCTA and plink2 --make-grm-bin write it: the
    lower triangle in float32, the numbers of SNPs behind it, and FID and IID.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    out, files = output.out, output.claim(file, GRM_ENDINGS)
    study = prepare_study(file, selection, (None, None), run, keep_monomorphic=True)
    with run.step(f"Computing {out.name}.grm.bin") as report, data_errors(input_name(file)), output.written():
        write_grm(study.source, out, overwrite=output.force, progress=report)
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
        output.as_json,
    )
