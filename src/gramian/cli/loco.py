"""``gramian loco cohort.bed --pheno traits.txt --out prefix``: predictions without each chromosome, for regenie."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from gramian.cli.genotype_reading import Selection, genotypes_argument, prepare_study, selection_options
from gramian.cli.options import command, option
from gramian.cli.output import FileSet, Results, ResultTable, file_set_options, print_results
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors, running_options
from gramian.cli.traits import TraitFiles, trait_options
from gramian.genetics.text import list_few
from gramian.genetics.whole_genome import whole_genome_ridge, write_loco


@command(
    "loco",
    "gramian loco cohort.bed --maf 0.01 --pheno traits.txt --covar covariates.txt --out step1",
    "gramian loco cohort.bed --pheno traits.txt --pheno-name height --block 500 --out height --json",
)
@genotypes_argument
@trait_options
@option("--block", type=click.IntRange(min=2), default=1000, show_default=True, help="SNPs of a block (--bsize).")
@option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Folds of the people.")
@selection_options
@file_set_options("What the names of the files begin with: NAME_1.loco for the first trait …, and NAME_pred.list.")
@running_options
def loco_command(
    file: Path,
    files: TraitFiles,
    block: int,
    folds: int,
    selection: Selection,
    output: FileSet,
    run: CommandRun,
) -> None:
    """Predictions of traits from all SNPs in FILE but those of one chromosome, by ridge regression in blocks that are
    stacked: the first step of regenie, for its second. Quantitative traits.

    Next: regenie --step 2 --bed cohort --phenoFile traits.txt --pred NAME_pred.list --out results.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    study = prepare_study(file, selection, (None, None), run)
    traits, covariates, names = files.read(study.source.samples, run)
    endings = [*(f"_{j + 1}.loco" for j in range(len(traits))), "_pred.list"]
    out, paths = output.out, output.claim(file, endings)
    source, Y = study.source, np.column_stack(list(traits.values()))
    if covariates is not None and not np.isfinite(covariates).all():
        kept = np.isfinite(covariates).all(axis=1)
        lost = source.samples.take(np.flatnonzero(~kept)).names
        run.warn(f"{len(lost)} people lack a covariate and are left out: {list_few(lost)}")
        source, Y, covariates = source.select(samples=kept), Y[kept], covariates[kept]
    with run.step("Predicting by blocks of SNPs") as report, data_errors(input_name(file)):
        found = whole_genome_ridge(
            source,
            Y,
            covariates,
            traits=list(traits),
            block=block,
            folds=folds,
            random_state=run.seed,
            progress=report,
        )
    with run.step(f"Writing {out}"), output.written():
        write_loco(found, out, overwrite=output.force)
    table = {
        "trait": np.array(found.traits, dtype=object),
        "known": found.known.sum(axis=0),
        "share": found.shares,
        "r2": found.r2,
    }
    print_results(
        Results(
            facts={
                "samples": len(found.samples),
                "snps": source.shape[1],
                "blocks": found.blocks,
                "chromosomes": list(found.chromosomes),
                "covariates": names,
                "traits": {
                    name: {"known": int(found.known[:, j].sum()), "share": found.shares[j], "r2": found.r2[j]}
                    for j, name in enumerate(found.traits)
                },
                "filters": study.account(),
                "seconds": round(run.seconds, 3),
                "out": click.format_filename(out),
                "files": [path.name for path in paths],
                "warnings": run.warnings,
            },
            tables=[
                ResultTable(study.account(), title="Left out", most=20),
                ResultTable(table, title="Traits: the share of variance assumed, and r² of people left out"),
            ],
            lines=[
                f"{len(found.samples):,} people, {source.shape[1]:,} SNPs in {found.blocks} blocks"
                + (f", covariates {', '.join(names)}" if names else ""),
                f"Wrote {list_few([path.name for path in paths])} to {out.parent}",
            ],
        ),
        output.as_json,
    )
