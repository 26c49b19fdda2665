"""``gramian pca cohort.bed``: principal components of genotypes, straight from the packed file."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from gramian.cli.genotype_options import (
    BED,
    READABLE,
    Fitting,
    GenotypeOutput,
    Plan,
    Selection,
    Study,
    fitting_options,
    genotype_errors,
    genotype_output_options,
    noted,
    planned,
    prepared,
    selection_options,
    watcher,
)
from gramian.cli.genotype_project import genotype_project
from gramian.cli.genotype_results import genotype_facts, genotype_results, mapped
from gramian.cli.options import command, option, portable
from gramian.cli.output import publish
from gramian.cli.reading import input_name
from gramian.cli.running import LOG, Run, device_option, running_options
from gramian.compute.devices import resolve
from gramian.genetics.fst import Fst, fst
from gramian.genetics.pca import GenotypePCA

__all__ = ["genotype_pca", "genotype_project"]


@command(
    "pca",
    "gramian pca cohort.bed -k 20 --labels cohort.tsv --out results",
    "gramian pca cohort.bed --maf 0.05 --geno 0.02 --exact --json",
)
@click.argument("file", type=BED)
@fitting_options
@option("--labels", type=READABLE, help="Table with FID, IID and labels; latitude and longitude make a map.")
@option("--label", metavar="NAME", help="Its column of groups [default: the first of text].")
@option("--fst", "between", is_flag=True, help="F_ST between the groups.")
@selection_options
@genotype_output_options
@device_option
@running_options
@click.pass_context
def genotype_pca(
    context: click.Context,
    /,
    file: Path,
    fitting: Fitting,
    labels: Path | None,
    label: str | None,
    between: bool,
    selection: Selection,
    output: GenotypeOutput,
    device: str,
    run: Run,
) -> None:
    """Principal components of the genotypes in FILE, a PLINK .bed with its .bim and .fam, or their common name.

    Genotypes stay packed, two bits each, and are read a few times. Writes eigenvectors, eigenvalues and loadings as
    PLINK does (pca.eigenvec …), tests of the eigenvalues, model.gramian, certificate.json, report.html and pictures.
    Autosomes are used unless told otherwise; what is left out is counted.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met by a component that stands out of the noise
    (the results are there anyway).
    """
    if labels is None and (between or label is not None):
        raise click.UsageError("--fst and --label need --labels FILE")
    solver, filters = fitting.wanted, selection.filters()
    output.check_names(["scree.png", "scores.png"], _tables(output, between))
    study = prepared(file, filters, (labels, label), run)
    drawn = study.labels.places is not None and fitting.components > 1
    output.check_names(["map.png"] if drawn else [], [])
    most = min(study.source.shape[0] - 1, study.source.shape[1])
    if fitting.components > most:
        n, p = study.source.shape
        raise click.UsageError(
            f"-k {fitting.components} is more than the {most} components of {n:,} samples × {p:,} SNPs"
        )
    on_card = resolve(device) is not None
    plan = planned(study.source, study.whole.shape, fitting.components, solver, run.memory, on_card)
    LOG.info("%s", plan.text)
    model = _fitted(study, fitting, plan, run, device)
    with run.step("Comparing"), genotype_errors(input_name(file)):
        place = mapped(np.asarray(model.eigenvectors_ * model.singular_values_), study.labels.places, run.seed)
        groups = _groups(study) if between else None
        facts = genotype_facts(study)
    publish(context, run, output, facts, genotype_results(study, model, output, place, groups, plan, run.seconds))


def _tables(output: GenotypeOutput, between: bool) -> list[str]:
    quality = ["sample_quality.tsv", "snp_quality.tsv"] if output.quality else []
    return ["tracy_widom.tsv", "filters.tsv", *quality, *(["fst.tsv"] if between else [])]


def _fitted(study: Study, fitting: Fitting, plan: Plan, run: Run, device: str) -> GenotypePCA:
    name = input_name(study.path)
    with (
        run.step(f"Fitting {fitting.components} components ({plan.text})") as report,
        noted(run),
        genotype_errors(name),
    ):
        model = GenotypePCA(
            fitting.components,
            scaling=fitting.scaling,
            solver=plan.solver,
            missing=fitting.missing,
            chromosomes="all",  # the filters have left out the others
            tol=fitting.tol,
            max_passes=fitting.max_passes,
            random_state=run.seed,
            verbose=watcher(report, fitting.tol, fitting.max_passes),
            device=device,
        ).fit(study.source)
    model.set_params(verbose=False)
    return _of_the_whole_file(portable(model), study)


def _of_the_whole_file(model: GenotypePCA, study: Study) -> GenotypePCA:
    """Let the model know the SNPs that the filters took, so that it takes the file as it is from now on."""
    mask = np.zeros(study.whole.shape[1], dtype=bool)
    mask[study.source.snp_index[model.snp_mask_]] = True
    model.snp_mask_, model.n_features_in_ = mask, len(mask)
    model.dropped_ = study.dropped()
    return model


def _groups(study: Study) -> Fst:
    groups = study.labels.groups
    if groups is None:
        raise ValueError("the labels have no column of groups, which --fst needs")
    return fst(study.source, groups)
