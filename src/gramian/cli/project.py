"""``gramian project``: scores of new rows, or of new samples, on components that were found without them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian import persistence
from gramian.cli.genotype_reading import PREFIX, READABLE, SCALINGS, genotypes_argument
from gramian.cli.options import bundle, command, option
from gramian.cli.output import (
    Results,
    ResultTable,
    TableOutput,
    number_columns,
    publish_table,
    table_output_options,
)
from gramian.cli.reading import (
    FILE,
    MODEL,
    MODEL_FILE,
    ReadingOptions,
    input_name,
    load_model,
    read_matching_table,
    reading_options,
)
from gramian.cli.running import LOG, CommandRun, data_errors, running_options
from gramian.genetics.loadings import Loadings, read_loadings
from gramian.genetics.matching import AMBIGUOUS, BY
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import METHODS, write_projection
from gramian.genetics.projection import project as project_genotypes
from gramian.genetics.text import list_few
from gramian.kernel_pca.estimator import KernelPCA
from gramian.pca.estimator import PCA
from gramian.sources.genotype_files import open_genotypes


@command(
    "project",
    "gramian project flowers/model.gramian more.csv --out more-scores.csv",
    "gramian project flowers/model.gramian more.csv --id plant --json",
)
@click.argument("model", type=MODEL_FILE)
@click.argument("file", type=FILE)
@reading_options(new_rows=True)
@table_output_options()
@running_options
def project(model: Path, file: Path, reading: ReadingOptions, output: TableOutput, run: CommandRun) -> None:
    """Scores of the rows of FILE on the components of MODEL, a model.gramian of pca or kernel-pca.

    Columns are matched by name: their order may differ and others are left out, but none may be absent. Prints CSV
    unless --out names a file. A .bed file has options of its own: gramian project MODEL cohort.bed --help.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    output.check()
    fitted = load_model(model, run)
    if not isinstance(fitted.model, (PCA, KernelPCA)):
        raise click.UsageError(f"{input_name(model)} is a {fitted.kind}, which has no scores: use gramian predict")
    table = read_matching_table(file, fitted, reading, run)
    with run.step("Projecting"), data_errors(input_name(file)):
        columns = number_columns("PC", np.asarray(fitted.model.transform(table.source)))
        if isinstance(fitted.model, PCA):
            try:
                columns["Q"] = np.asarray(fitted.model.reconstruction_error(table.source))
            except ValueError:  # cells are missing
                LOG.info("Q is left out: cells are missing")
    facts = {"model": input_name(model), "kind": fitted.kind, "data": input_name(file), "rows": table.source.shape[0]}
    found = ResultTable(table.by_row(columns))
    publish_table(run, output, Results(facts=facts, tables=[found]))


# New samples on the components of others

ENDINGS = (".json", ".eigenvec.var", ".eigenvec.allele", ".snpweight", ".snpwt")


@dataclass(frozen=True)
class Reference:
    """What is told of loadings of other programs, by the names of :func:`read_loadings`."""

    snps: Path | None
    frequencies: Path | None
    eigenvalues: Path | None
    scaling: str | None
    total_variance: float | None


_reference = partial(option, section="Reading")
REFERENCE = (
    _reference("--snps", type=READABLE, help=".bim or .snp of the reference, for weights of smartpca."),
    _reference("--frequencies", type=READABLE, help=".afreq or .frq of the reference."),
    _reference("--eigenvalues", type=READABLE, help=".eigenval or .eval of the reference."),
    _reference("--scaling", type=click.Choice(SCALINGS), help="Of the reference, where not the program's own."),
    _reference("--total-variance", type=float, metavar="NUMBER", help="trace(ZZᵀ)/M, for OADP on smartpca's weights."),
)


@command(
    "project",
    "gramian project results new.bed --out new.eigenvec",
    "gramian project reference.eigenvec.var new.bed --method least-squares --json",
)
@click.argument("model", type=click.Path(path_type=Path))
@genotypes_argument
@option(
    "--method",
    type=click.Choice(METHODS),
    help="oadp corrects for shrinkage [default: oadp, or least-squares without eigenvalues].",
)
@option(
    "--scale",
    type=click.Choice(["auto", "eigenvectors", "scores"]),
    default="auto",
    help="Of the numbers: that of the reference's .eigenvec (auto, where known), or of Zv.",
)
@option("--by", type=click.Choice(BY), default="auto", help="How SNPs are paired.")
@option(
    "--ambiguous",
    type=click.Choice(AMBIGUOUS),
    default="drop",
    help="A/T and C/G SNPs: leave them out, tell the strand by frequency, or trust it.",
)
@option(
    "--min-share",
    type=click.FloatRange(0, 1),
    default=0.5,
    metavar="SHARE",
    help="Refuse where fewer of the SNPs can be used.",
)
@bundle(Reference, "reference", REFERENCE)
@table_output_options("File: .csv, .parquet, or as PLINK 2 (.eigenvec, .tsv) [default: print CSV].", dir_okay=True)
@running_options
def genotype_project(
    model: Path,
    file: Path,
    method: str | None,
    scale: str,
    reference: Reference,
    output: TableOutput,
    run: CommandRun,
    **matching: Any,
) -> None:
    """Scores of the samples in FILE (.bed, .pgen, .bgen, .vcf, .bcf, .geno) on the components of MODEL, which were
    found without them.

    MODEL is the folder that gramian pca wrote to, a model.gramian, or loadings: .eigenvec.var of PLINK, SNP weights of
    smartpca. SNPs are paired by name or position; swapped alleles and other strands are turned, and all that is not
    used is counted. Prints CSV unless --out names a file.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    output.check(any_ending=True)
    loadings = _load_reference(model, reference, run)
    known = loadings.singular_values is not None
    how = method or ("oadp" if known else "least-squares")
    if method is None and not known:
        lacking = "the eigenvalues of the reference are not known: --eigenvalues would allow oadp"
        if reference.eigenvalues is not None:
            lacking = "smartpca's eigenvalues are relative: --total-variance beside --eigenvalues would allow oadp"
        run.warn(f"{lacking}; --method least-squares is used, whose scores shrink")
    if loadings.mean is None:
        run.warn("the allele frequencies of the reference are not known: give its .afreq or .frq file as --frequencies")
    if scale == "eigenvectors" and not known:
        raise click.UsageError("--scale eigenvectors needs the eigenvalues of the reference: give --eigenvalues")
    with run.step("Projecting"), data_errors(input_name(file)):
        found = project_genotypes(loadings, open_genotypes(file), how, **matching)
    if found.namesakes.any():
        names = list_few(found.samples.take(found.namesakes).names)
        run.warn(
            f"{found.namesakes.sum():,} samples have the ids of people in the reference and other genotypes, or too "
            f"few in common to tell: {names}; they are projected as new people"
        )
    values = None if scale == "scores" else found.eigenvectors
    scale, values = ("scores", found.scores) if values is None else ("eigenvectors", values)
    scores = {"FID": found.samples.fid, "IID": found.samples.iid, "SNPS": found.snps_used}
    used = found.snps_used
    fates = [("used", f"of {found.report.loadings:,} SNPs with loadings", found.report.used), *found.report.fates()]
    account = dict(zip(("SNPs", "which", "count"), map(list, zip(*fates, strict=True)), strict=True))
    results = Results(
        facts={
            "model": input_name(model),
            "data": input_name(file),
            "samples": len(found.samples),
            "method": how,
            "scale": scale,
            "matching": asdict(found.report),
            "in_the_reference": int(found.recognised.sum()),
        },
        tables=[
            ResultTable({**scores, **number_columns("PC", values)}),
            ResultTable(account, title="", most=len(fates)),
        ],
        lines=[
            f"{len(found.samples):,} samples on {found.scores.shape[1]} components by {found.method}, "
            f"{used.min():,} to {used.max():,} genotypes each, in the scale of {scale}",
            *(
                [f"{found.recognised.sum():,} of them are in the reference, and are placed where they are there"]
                if found.recognised.any()
                else []
            ),
        ],
        write_more=lambda path: write_projection(found, path, scale=scale),
    )
    publish_table(run, output, results)


def _load_reference(model: Path, reference: Reference, run: CommandRun) -> Loadings:
    """Loadings of a folder of results, a model file, a prefix or a file of another program."""
    name = input_name(model)
    with run.step(f"Loading {name}"), data_errors(name):
        place = _find_loadings(model)
        if place.suffix != Path(MODEL).suffix:
            return read_loadings(place, **asdict(reference))
        fitted = persistence.load(place)
        if not isinstance(fitted, GenotypePCA):
            raise ValueError(f"holds a {type(fitted).__name__}; genotypes are projected on a GenotypePCA")
        loadings = Loadings.of(fitted)
        LOG.info("%s: %s", name, loadings)
        return loadings


def _find_loadings(model: Path) -> Path:
    """The file with the loadings: where they are exact, where there is a choice."""
    sibling = model.parent / MODEL
    if not model.exists() and model.name == PREFIX and sibling.is_file():
        return sibling
    if not model.is_dir():
        return model
    if (model / MODEL).is_file():
        return model / MODEL
    for ending in ENDINGS:
        files = sorted(
            path for path in model.iterdir() if path.name.endswith(ending) and path.name != "certificate.json"
        )
        if len(files) == 1:
            return files[0]
        if files:
            raise ValueError(f"the folder holds {', '.join(path.name for path in files)}: name one of them")
    raise ValueError(f"the folder holds no {MODEL} and no loadings ({', '.join(ENDINGS[1:])})")
