"""``gramian pca cohort.bed``: principal components of genotypes, straight from the packed file."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from gramian.cli.genotype_reading import (
    PREFIX,
    READABLE,
    SCALINGS,
    GenotypeFacts,
    Selection,
    describe_files,
    genotypes_argument,
    prepare_study,
    selection_options,
)
from gramian.cli.options import NAMES, command, option, portable
from gramian.cli.output import (
    Output,
    Results,
    ResultTable,
    as_texts,
    output_options,
    publish,
    without_folders,
)
from gramian.cli.reading import input_name
from gramian.cli.running import LOG, CommandRun, data_errors, device_option, name_options, running_options
from gramian.compute.devices import resolve
from gramian.compute.memory import gibibytes
from gramian.compute.threads import n_threads
from gramian.display import MapDisplay, ScoreDisplay, ScreeDisplay
from gramian.display.report import genotype_report
from gramian.genetics.files import FORMATS, result_files, write_results
from gramian.genetics.fst import fst
from gramian.genetics.pca import PAIR_MATRICES, GenotypePCA, choose_genotype_solver, measure_components, pairs_compared
from gramian.genetics.quality import sample_quality, snp_quality
from gramian.genetics.simulation import map_plane
from gramian.pca.subspaces import procrustes
from gramian.results.quality import SUSPECTED
from gramian.sources import memory_budget
from gramian.sources.plink import Genotypes

PERMUTATIONS = 999
SHOWN = {
    "component": "",
    "eigenvalue": ".6g",
    "share": ".2%",
    "residual": ".1e",
    "tracy_widom": ".3f",
    "p_value": "",
    "": "",
}


@dataclass(frozen=True, kw_only=True)
class GenotypeOutput(Output):
    """A folder for results of a genotype PCA, and in which forms they go there."""

    format: str = "tsv"
    formats: tuple[str, ...] = ("plink2",)
    quality: bool = False


OUTPUT = (
    option(
        "--formats",
        type=NAMES,
        metavar="NAMES",
        default="plink2",
        section="Output",
        help=f"Of eigenvectors and loadings, with commas between: {', '.join(FORMATS)}.",
    ),
    option("--quality", is_flag=True, section="Output", help="Write tables of the quality of every SNP and sample."),
)


@command(
    "pca",
    "gramian pca cohort.bed -k 20 --labels cohort.tsv --out results",
    "gramian pca cohort.bed --maf 0.05 --geno 0.02 --exact --json",
)
@genotypes_argument
@option("-k", "--components", type=click.IntRange(min=1), default=10, help="How many.")
@option(
    "--scaling",
    type=click.Choice(SCALINGS),
    default="plink",
    help="What centred genotypes are divided by: √(2f(1−f)), √(f(1−f)), smartpca's, or nothing.",
)
@option(
    "--missing",
    type=click.Choice(["mean", "pairwise", "least-squares"]),
    default="mean",
    help="Missing genotypes: the SNP's mean; pairs of samples by the calls they share, as PLINK; each "
    "sample's scores fitted to its calls, as smartpca.",
)
@option("--solver", type=click.Choice(["auto", "exact", "krylov"]), default="auto")
@option("--exact", is_flag=True, help="The same as --solver exact: all eigenvalues, by ZZᵀ.")
@option(
    "--tol",
    type=click.FloatRange(1e-12, 1, max_open=True),
    default=1e-4,
    help="Residual to reach by components that stand out of the noise.",
)
@option("--max-passes", type=click.IntRange(min=2), default=200, help="Most passes over the genotypes.")
@option("--labels", type=READABLE, help="Table with FID, IID and labels; latitude and longitude make a map.")
@option("--label", metavar="NAME", help="Its column of groups [default: the first of text].")
@option("--fst", "between", is_flag=True, help="F_ST between the groups.")
@selection_options
@output_options(GenotypeOutput, OUTPUT)
@device_option
@running_options
def genotype_pca(
    file: Path,
    components: int,
    solver: str,
    exact: bool,
    labels: Path | None,
    label: str | None,
    between: bool,
    selection: Selection,
    output: GenotypeOutput,
    device: str,
    run: CommandRun,
    **options: Any,
) -> None:
    """Principal components of the genotypes in FILE: PLINK's .bed with its .bim and .fam, .pgen, .bgen, .vcf, .bcf,
    VCF-Zarr or .geno; or their common name, or one file for each chromosome (cohort_chr{1..22}.bed).

    Genotypes stay packed, two bits each, and are read a few times. Writes eigenvectors, eigenvalues and loadings as
    PLINK does (pca.eigenvec …), tests of the eigenvalues, model.gramian, certificate.json, report.html and pictures.
    Autosomes are used unless told otherwise; what is left out is counted.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met by a component that stands out of the noise
    (the results are there anyway).
    """
    if exact and solver == "krylov":
        raise click.UsageError("--exact and --solver krylov contradict each other: leave out one of them")
    if options["missing"] == "pairwise" and solver == "krylov":
        raise click.UsageError("--missing pairwise needs the whole matrix: leave out --solver krylov")
    solver = "exact" if exact or options["missing"] == "pairwise" else solver
    if labels is None and (between or label is not None):
        raise click.UsageError("--fst and --label need --labels FILE")
    tables = [*["sample_quality", "snp_quality"] * output.quality, *["fst"] * between, "tracy_widom", "filters"]
    try:
        coded = [path.name for path in result_files(PREFIX, output.formats)]
    except ValueError as refusal:
        raise click.UsageError(name_options(refusal)) from refusal
    output.check(tables, ["scree", "scores"], coded)
    study = prepare_study(file, selection, (labels, label), run)
    (n, p), known = study.source.shape, study.labels
    if known.places is not None and components > 1:
        output.check([], ["map"])
    most = min(n - 1, p)
    if components > most:
        raise click.UsageError(f"-k {components} is more than the {most} components of {n:,} samples × {p:,} SNPs")
    solver, need = _plan(study.source, study.whole.shape, components, solver, run.memory, resolve(device) is not None)
    expected = f"predicted working memory {gibibytes(need)}"
    LOG.info("%s", expected)
    with (
        run.step(f"Fitting {components} components ({expected})") as report,
        data_errors(input_name(file)),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)  # told below
        model = GenotypePCA(
            components,
            solver=solver,
            chromosomes="all",  # the filters have left out the others
            random_state=run.seed,
            verbose=report,
            device=device,
            **options,
        ).fit(study.source)
    portable(model.set_params(verbose=False))
    proof = model.certificate_
    if not proof.converged:
        remedy = "raise --tol or use --solver krylov"
        if solver != "exact":
            remedy = f"raise --tol {options['tol']:g} or --max-passes {options['max_passes']}, or use --solver exact"
        run.warn(f"the residual is {proof.worst:.1e} after {proof.passes} passes: {remedy}")
    # the model knows the SNPs that the filters took, so that it takes the file as it is from now on
    mask = np.zeros(study.whole.shape[1], dtype=bool)
    mask[study.source.snp_index[model.snp_mask_]] = True
    model.snp_mask_, model.n_features_in_, model.dropped_ = mask, len(mask), study.dropped()
    scores = np.asarray(model.eigenvectors_ * model.singular_values_, dtype=np.float64)
    groups = None
    with run.step("Comparing"), data_errors(input_name(file)):
        aligned = None if known.places is None else _align_with_map(scores, known.places, run.seed)
        if between:
            if known.groups is None:
                raise ValueError("the labels have no column of groups, which --fst needs")
            groups = fst(study.source, known.groups)
        _, proof_of_file, remarks = describe_files(file)
        data = GenotypeFacts(without_folders(input_name(file)), n, p, proof_of_file, [*study.notes, *remarks])

    names = as_texts(known.groups)
    account, tests = study.account(), model.tracy_widom_
    untested = [np.nan] * max(0, components - len(tests.statistics))  # nothing is left to compare these with
    eigenvalues: dict[str, Any] = {
        "component": [f"PC{j + 1}" for j in range(components)],
        "eigenvalue": np.asarray(model.eigenvalues_),
        "share": np.asarray(model.explained_variance_ratio_),
        "residual": np.asarray(proof.residuals),
        "tracy_widom": np.array([*tests.statistics[:components], *untested]),
        "p_value": np.array([*tests.p_values[:components], *untested]),
    }
    screen = {
        **eigenvalues,
        "p_value": ["< 1e-300" if p < 1e-300 else "" if p != p else f"{p:.2g}" for p in eigenvalues["p_value"]],
        "": [
            "" if j < model.n_separated_ else "doubtful" if p < SUSPECTED else "noise"
            for j, p in enumerate(eigenvalues["p_value"])
        ],
    }
    found = [
        ResultTable(account, "filters", "Left out", most=20),
        ResultTable(screen, title="Components", formats=SHOWN, most=20),
        ResultTable(tests.table(), "tracy_widom"),
    ]
    if groups is not None:
        found.append(ResultTable(groups.table(), "fst", f"F_ST by {known.name} (Hudson), mean {groups.mean:.4g}"))
    quality: dict[str, Any] = {}
    if output.quality and output.out is not None:
        whole, used = study.whole, study.source
        snps, samples = (np.zeros(size, dtype=bool) for size in whole.shape[::-1])
        snps[used.snp_index], samples[used.sample_index] = True, True
        quality = {"snp_quality": snp_quality(whole), "sample_quality": sample_quality(whole)}
        for (name, table), kept in zip(quality.items(), (snps, samples), strict=True):
            found.append(ResultTable({**table.table(), "used": kept}, name))
    pictures: dict[str, Callable[[], Any]] = {
        "scree": partial(ScreeDisplay.from_estimator, model),
        "scores": partial(
            ScoreDisplay.from_predictions,
            scores,
            model=model,
            labels=names,
            legend_title=None if names is None else known.name,
        ),
    }
    lines, placed = [], {}
    if aligned is not None and known.places is not None:
        (fit, rows), places = aligned, known.places[aligned[1]]
        found_places = fit.apply(scores[rows, :2]) / [math.cos(math.radians(float(places[:, 1].mean()))), 1.0]
        near = None if known.groups is None else as_texts(known.groups[rows])
        pictures["map"] = MapDisplay(found_places, places, labels=near, geographic=True).plot
        lines = [
            f"Procrustes correlation of PC1 and PC2 with the map: {fit.correlation:.4f} "
            f"(p = {fit.p_value:.2g} by {PERMUTATIONS} permutations, {rows.sum():,} samples)"
        ]
        named = {name: getattr(fit, name) for name in ("correlation", "p_value", "r_squared")}
        placed = {"procrustes": {**named, "samples": int(rows.sum())}}
    after, markers, error = 0, math.nan, math.nan
    if len(tests.effective_n):  # not of two samples, or one SNP
        after = min(model.n_separated_, len(tests.effective_n) - 1)
        markers = float(tests.effective_n[after])
        error = float(markers * model.effective_markers_error_)
    results = Results(
        data=data,
        model=model,
        certificates={"": proof},
        tables=found,
        lines=[
            f"Eigenvalues: {model.eigenvalue_scale_.removeprefix('eigenvalues ')}",
            f"Effective number of markers: {markers:,.0f}{f' ± {error:,.0f}' if error else ''} of {p:,}, "
            + ("of all eigenvalues", "without the first component", f"without the first {after} components")[
                min(after, 2)
            ],
            *lines,
            f"Time of the fit: {run.seconds:.1f} s, {proof.passes} passes over the genotypes; {expected}",
        ],
        quality=measure_components(model),
        pictures=pictures,
        report=partial(
            genotype_report,
            model,
            scores=scores,
            coordinates=None if aligned is None else known.places,
            procrustes=None if aligned is None else aligned[0],
            counts=study.counts(),
            measures={"missing": study.missing},
            ids=model.samples_.names,
            labels=names,
            label_name=known.name,
            columns=known.columns or None,
            fst=groups,
            **quality,
        ),
        write_more=lambda folder: write_results(
            model,
            folder / PREFIX,
            output.formats,
            labels=None if names is None else [name or "???" for name in names],
        ),
        facts={
            "n_components": components,
            "samples": n,
            "snps": p,
            "filters": account,
            "left_out": study.filtered.left_out,
            "eigenvalue_scale": model.eigenvalue_scale_,
            "components": eigenvalues,
            "total_variance": model.total_variance_,
            "significant": tests.significant(),
            "separated": model.n_separated_,
            "effective_markers": {"value": markers, "standard_error": error, "after_components": after},
            "predicted_memory": need,
            **placed,
            **({} if groups is None else {"fst": groups.table()}),
        },
    )
    publish(run, output, results)


# Memory: predicted before the fit, and held below the ceiling that --memory sets

TILE = 2**22  # bytes of decoded genotypes, of which a thread holds a few
HELD = 4
LEAST_SNPS = 32  # of a tile
NAMES_BYTES, TEXT_BYTES, SAMPLE_BYTES = 180, 460, 260  # of a SNP's names, while its text is parsed; of a sample's names
COUNTS = 300  # bytes of a SNP's counts, mean, divisor and indices
VECTORS = 40  # blocks of vectors of a Krylov basis and of what is made of it
GRAM_ROWS = 1024  # SNPs decoded for one update of ZZᵀ
PINNED = 2**27  # bytes of a buffer that genotypes go to a GPU through


def predicted_memory(
    shape: tuple[int, int], file_shape: tuple[int, int], k: int, exact: bool, threads: int, on_gpu: bool = False
) -> int:
    r"""Bytes that a fit takes at its peak, beyond the program itself and without the mapped file.

    Names and counts of p SNPs, tiles of every thread, and either four n×n matrices or a Krylov basis of blocks of b
    vectors with what is computed from it:

    .. math:: \text{names} + (300 + 12b)\,p + \text{tiles} + \begin{cases}32n^2\\ \min(320\,nb,\ 3B) + 24r^2\end{cases}

    B being the quarter of the working memory that the basis may take and r the people whose pairs are compared.
    It errs on the large side. A GPU keeps tiles, matrices and basis to itself, and leaves two pinned buffers and a few
    vectors here.

    Examples
    --------
    >>> from gramian.cli.genotypes import predicted_memory
    >>> predicted_memory((3192, 500_568), (3192, 500_568), 10, exact=False, threads=2) < 2**30
    True
    """
    (n, p), (n_file, p_file) = shape, file_shape
    block = -(-(k + 2) // 8) * 8
    names = SAMPLE_BYTES * n_file + NAMES_BYTES * p_file
    tiles = threads * HELD * max(TILE, LEAST_SNPS * 4 * n)
    basis = min(8 * VECTORS * n * block, 3 * memory_budget() // 4) + 8 * PAIR_MATRICES * pairs_compared(n, p)[0] ** 2
    solving = 32 * n * n + 8 * GRAM_ROWS * n if exact else basis
    if on_gpu:
        tiles, solving = 2 * PINNED, 32 * n * block
    return int(max(names + (COUNTS + 12 * block) * p + tiles + solving, TEXT_BYTES * p_file))


def _plan(
    source: Genotypes, file_shape: tuple[int, int], k: int, solver: str, ceiling: int | None, on_gpu: bool
) -> tuple[str, int]:
    """The solver that keeps below the ceiling, and the bytes it will take; exit code 2 where none does."""
    least, most = (predicted_memory(source.shape, file_shape, k, exact, n_threads(), on_gpu) for exact in (False, True))
    choice = choose_genotype_solver(*source.shape, k)
    if solver == "auto" and ceiling is not None and most > ceiling:
        LOG.info("solver: krylov, as the exact way would take %s", gibibytes(most))
        solver = "krylov"
    may_be_exact = solver == "exact" or (solver == "auto" and (choice.solver != "krylov" or choice.fallback))
    need = most if may_be_exact else least
    if ceiling is not None and need > ceiling:
        remedy = " --solver krylov takes less." if may_be_exact and least <= ceiling else ""
        raise click.UsageError(
            f"--memory {gibibytes(ceiling)} is less than the {gibibytes(need)} that {source.shape[0]:,} samples "
            f"and {source.shape[1]:,} SNPs will take.{remedy}"
        )
    return solver, max(need, least)


def _align_with_map(scores: NDArray[Any], places: NDArray[np.float64], seed: int) -> Any:
    """Procrustes alignment of the first two components with a map, and the rows that have a place.

    The map is a plane where a degree is as long in both directions. None where one component
    or too few places are there.
    """
    rows = np.asarray(np.isfinite(places).all(axis=1))
    if scores.shape[1] < 2 or rows.sum() < 3 or not np.ptp(places[rows], axis=0).any():
        return None
    plane = map_plane(places[rows, 1], places[rows, 0])
    return procrustes(scores[rows, :2], plane, n_permutations=PERMUTATIONS, random_state=seed), rows
