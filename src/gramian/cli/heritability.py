"""``gramian heritability cohort.bed --pheno traits.txt``: how much of a trait the SNPs explain."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from gramian.cli.errors import write_errors
from gramian.cli.genotype_reading import Selection, genotypes_argument, prepare_study, selection_options
from gramian.cli.options import command, option
from gramian.cli.output import OutputPath, Results, ResultTable, claim_place, json_option, print_results
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors, running_options
from gramian.cli.traits import TraitFiles, only_trait, trait_options
from gramian.genetics.heritability import METHODS, heritability
from gramian.genetics.text import write_tsv


@command(
    "heritability",
    "gramian heritability cohort.bed --pheno traits.txt --pheno-name height",
    "gramian heritability cohort.bed --maf 0.01 --pheno traits.txt --pheno-name height --out height.tsv --json",
)
@genotypes_argument
@trait_options
@option("--method", type=click.Choice(METHODS), default="auto", help="REML up to 6,000 people, moments beyond.")
@option(
    "--prevalence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Of a disease, coded 0 and 1 or 1 and 2: h² of the liability behind it too.",
)
@selection_options
@option(
    "-o",
    "--out",
    type=OutputPath(),
    section="Output",
    help="Table of the samples: the trait, its prediction by all others, and the breeding value (REML).",
)
@json_option
@option("--force", is_flag=True, section="Output", help="Replace a file that is there already.")
@running_options
def heritability_command(
    file: Path,
    files: TraitFiles,
    method: str,
    prevalence: float | None,
    selection: Selection,
    out: Path | None,
    as_json: bool,
    force: bool,
    run: CommandRun,
) -> None:
    """Share of a trait's variance that goes with the SNPs in FILE: by residual maximum likelihood with one
    eigendecomposition, proved to be at its highest point; or by the method of moments, in one pass.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 the likelihood has no clear maximum.
    """
    if out is not None:
        claim_place(out, [out], force)
    study = prepare_study(file, selection, (None, None), run)
    traits, covariates, names = files.read(study.source.samples, run)
    trait, y = only_trait(traits)
    with run.step("Finding the heritability") as report, data_errors(input_name(file)):
        known = y[np.isfinite(y)]
        if prevalence is not None:
            if len(np.unique(known)) != 2:
                raise click.UsageError(
                    f"--prevalence is of a disease: {trait} has {len(np.unique(known))} values, not two"
                )
            y = np.where(np.isfinite(y), (y == known.max()).astype(float), np.nan)
        found = heritability(study.source, y, covariates, method=method, random_state=run.seed, progress=report)
    n = len(found.samples)
    if out is not None:
        if found.breeding_values is None or found.left_out is None:
            raise click.UsageError("--out: breeding values need --method reml")
        people = study.source.samples.take(found.samples)
        with run.step(f"Writing {out}"), write_errors(out):
            columns = {"FID": people.fid, "IID": people.iid, trait: y[found.samples]}
            write_tsv(
                out, {**columns, "left_out": found.left_out, "breeding_value": found.breeding_values}, overwrite=force
            )
    liability = None
    if prevalence is not None:
        liability = found.on_liability_scale(prevalence, float(np.mean(y[found.samples])))
    left_out = None
    if found.left_out is not None:
        left_out = float(np.corrcoef(found.left_out, y[found.samples])[0, 1] ** 2)
    low, high = found.interval
    certificate = found.certificate
    print_results(
        Results(
            facts={
                "trait": trait,
                "covariates": names,
                "samples": n,
                "snps": found.n_snps,
                "method": found.method,
                "h2": found.h2,
                "standard_error": found.standard_error,
                "interval": [low, high],
                "p_value": found.p_value,
                "genetic_variance": found.genetic_variance,
                "residual_variance": found.residual_variance,
                "log_likelihood": found.log_likelihood,
                "probe_error": found.probe_error,
                "h2_liability": liability,
                "r2_left_out": left_out,
                "converged": None if certificate is None else certificate.converged,
                "filters": study.account(),
                "seconds": round(run.seconds, 3),
                "out": None if out is None else click.format_filename(out),
                "warnings": run.warnings,
            },
            tables=[ResultTable(study.account(), title="Left out", most=20)],
            lines=[
                f"{trait}: {n:,} people, {found.n_snps:,} SNPs" + (f", covariates {', '.join(names)}" if names else ""),
                f"h² = {found.h2:.4f} ± {found.standard_error:.4f}; 95 % between {low:.4f} and {high:.4f}; "
                f"p = {found.p_value:.2g}",
                f"variance {found.genetic_variance:.6g} with the SNPs, {found.residual_variance:.6g} without",
                *(
                    []
                    if liability is None
                    else [f"h² of the liability at a prevalence of {prevalence:g}: {liability:.4f}"]
                ),
                *([] if left_out is None else [f"r² of each person as the others predict them: {left_out:.4f}"]),
                *([] if certificate is None else [f"Arithmetic: {certificate.notes[0]}"]),
                *([] if found.probe_error == 0 else [f"of the error {found.probe_error:.4f} is that of random probes"]),
                *([] if out is None else [f"Wrote {out}"]),
            ],
        ),
        as_json,
    )
    if certificate is not None and not certificate.converged:
        raise click.exceptions.Exit(4)
