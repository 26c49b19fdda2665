"""``gramian pca cohort.bed``: principal components of genotypes, straight from the packed file."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from gramian.cli.options import NAMES, bundle, command, option, portable
from gramian.cli.output import (
    Output,
    Results,
    ResultTable,
    as_texts,
    output_options,
    publish,
    without_folders,
)
from gramian.cli.prune import read_window
from gramian.cli.reading import input_name
from gramian.cli.running import LOG, CommandRun, data_errors, device_option, name_options, running_options
from gramian.compute.devices import resolve
from gramian.compute.memory import gibibytes
from gramian.compute.threads import n_threads
from gramian.display import ManhattanDisplay, MapDisplay, QuantileDisplay, ScoreDisplay, ScreeDisplay
from gramian.display.report import genotype_report
from gramian.genetics.artefacts import find_artefacts
from gramian.genetics.cohort import LIST_ENDINGS, USUAL, CohortAnalysis, analyse_cohort
from gramian.genetics.files import FORMATS, result_files, write_results
from gramian.genetics.filters import chromosome_set
from gramian.genetics.fst import fst
from gramian.genetics.genotypes import AUTOSOMES, is_autosomal
from gramian.genetics.outliers import SelectionScan, selection_scan
from gramian.genetics.pca import PAIR_MATRICES, GenotypePCA, choose_genotype_solver, measure_components, pairs_compared
from gramian.genetics.pruning import Window
from gramian.genetics.quality import sample_quality, snp_quality
from gramian.genetics.simulation import map_plane
from gramian.genetics.text import list_few
from gramian.inputs.progress import Progress
from gramian.pca.subspaces import procrustes
from gramian.results.quality import SUSPECTED
from gramian.sources import memory_budget
from gramian.sources.errors import Argument, SourceError
from gramian.sources.plink import Genotypes

PERMUTATIONS = 999
SIGNIFICANT = 5e-8  # among all SNPs of a genome
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


@dataclass(frozen=True, kw_only=True)
class CohortSteps:
    """Steps between filters and components."""

    auto: bool = False
    indep_pairwise: tuple[Window, int, float] | None = None
    find_regions: bool = False
    king_cutoff: float | None = None
    outliers: str | None = None

    @property
    def asked(self) -> bool:
        """Whether there are any."""
        return self.auto or any((self.indep_pairwise, self.find_regions, self.king_cutoff is not None, self.outliers))

    def usual(self, selection: Selection) -> Selection:
        """The filters of ``--auto``: those that were asked for, and the usual ones for the others."""
        names = ("maf", "max_snp_missing", "max_sample_missing")
        lacking = {name: getattr(USUAL, name) for name in names if getattr(selection, name) is None}
        return replace(selection, long_range=None, **lacking)

    def analyse(
        self, source: Genotypes, pca: GenotypePCA, selection: Selection, progress: Progress, *, pictured: bool
    ) -> CohortAnalysis:
        """Take the steps that were asked for, all of them with ``--auto``."""
        auto = self.auto
        return analyse_cohort(
            source,
            pca,
            filters=None,
            prune_by="auto" if auto and self.indep_pairwise is None else self.indep_pairwise,
            long_range=(selection.long_range or "auto") if auto else None,
            find_regions=auto or self.find_regions,
            king_cutoff="auto" if auto and self.king_cutoff is None else self.king_cutoff,
            outliers="deviations" if auto and self.outliers is None else self.outliers,
            before=pictured,
            progress=progress,
        )


_cohort = partial(option, section="Cohort")
COHORT = (
    _cohort(
        "--auto",
        is_flag=True,
        help="All steps from raw genotypes to components: --mind 0.1, --geno 0.05, --maf 0.01, autosomes, pruning, "
        "known and found regions of long-range linkage, relatives and outliers, who are projected.",
    ),
    _cohort(
        "--indep-pairwise",
        nargs=3,
        metavar="WINDOW STEP R2",
        callback=read_window,
        help="Prune SNPs, as gramian prune [with --auto: 500kb 1 0.2].",
    ),
    _cohort("--find-regions", is_flag=True, help="Leave out regions whose loadings stand out along the genome."),
    _cohort(
        "--king-cutoff",
        type=click.FloatRange(-1, 0.5),
        help="Project one of any two people whose kinship is above this [with --auto: 0.0884].",
    ),
    _cohort(
        "--outliers",
        type=click.Choice(["deviations", "neighbours"]),
        help="Project people far from all others: 6 standard deviations on a component, as smartpca [with --auto]; or "
        "by the distance to their neighbours.",
    ),
)


@command(
    "pca",
    "gramian pca cohort.bed --auto -k 20 --labels cohort.tsv --out results",
    "gramian pca cohort.bed --maf 0.05 --geno 0.02 --exact --json",
)
@genotypes_argument
@option("-k", "--components", type=click.IntRange(min=1), default=10, help="How many.")
@option(
    "--scaling",
    type=click.Choice(SCALINGS),
    default="plink",
    help="What centred genotypes are divided by: √(2f(1−f)); √(f(1−f)), as smartpca; Price's √(q(1−q)), as smartpca "
    "with altnormstyle NO; or nothing.",
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
@bundle(CohortSteps, "steps", COHORT)
@option(
    "--selection",
    "scanned",
    type=click.Choice(["galinsky", "pcadapt"]),
    help="Test SNPs for selection along the components that stand out: each by itself, or all together.",
)
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
    scanned: str | None,
    steps: CohortSteps,
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
    Autosomes are used unless told otherwise; what is left out is counted. With --auto, or single steps of it, the
    lists of what each step removed are written too (pca.prune.in, pca.kin0, pca.outliers.tsv …).

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
    tables = [
        *["sample_quality", "snp_quality"] * output.quality,
        *["fst"] * between,
        *["selection"] * bool(scanned),
        "tracy_widom",
        "filters",
    ]
    try:
        coded = [path.name for path in result_files(PREFIX, output.formats)]
        coded += [PREFIX + ending for ending in LIST_ENDINGS] if steps.asked else []
    except ValueError as refusal:
        raise click.UsageError(name_options(refusal)) from refusal
    if steps.asked and (selection.all_chromosomes or not on_autosomes(selection.chromosomes)):
        raise click.UsageError(
            "pruning and kinship are of autosomes: leave out --all-chromosomes, and X, Y, MT of --chr"
        )
    output.check(
        tables, ["scree", "scores", *["before", "roles"] * steps.asked, *["manhattan", "qq"] * bool(scanned)], coded
    )
    wanted = steps.usual(selection) if steps.auto else selection
    study = prepare_study(file, wanted, (labels, label), run, cohort=steps.auto)
    (n, p), known = study.source.shape, study.labels
    if known.places is not None and components > 1:
        output.check([], ["map"])
    most = min(n - 1, p)
    if components > most:
        raise click.UsageError(f"-k {components} is more than the {most} components of {n:,} samples × {p:,} SNPs")
    solver, need = _plan(study.source, study.whole.shape, components, solver, run.memory, resolve(device) is not None)
    expected = f"predicted working memory {gibibytes(need)}"
    LOG.info("%s", expected)
    model = GenotypePCA(
        components,
        solver=solver,
        chromosomes="all",  # the filters have left out the others
        random_state=run.seed,
        device=device,
        **options,
    )
    analysis: CohortAnalysis | None = None
    doing = "Analysing" if steps.asked else f"Fitting {components} components"
    with run.step(f"{doing} ({expected})") as report, data_errors(input_name(file)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # told below
        if steps.asked:
            pictured = output.out is not None and not (output.no_report and output.no_pictures)
            analysis = steps.analyse(study.source, model, selection, report, pictured=pictured)
            model, used = analysis.model, analysis.source.select(samples=analysis.fitted, snps=analysis.snps)
            for remark in analysis.remarks:
                run.warn(remark)
            study = study.with_steps(analysis.source.select(snps=analysis.snps), analysis.steps)
        else:
            used = study.source
            model.set_params(verbose=report).fit(used)
    with run.step("Looking for relatives and artefacts") as report, data_errors(input_name(file)):
        artefacts = find_artefacts(model, used, progress=report)
    for artefact in artefacts.found:
        run.warn(artefact.text)
    scan: SelectionScan | None = None
    if scanned is not None and not model.n_separated_:
        run.warn("--selection: no component stands out of the noise, along which SNPs could be tested")
    elif scanned is not None:
        with run.step("Testing for selection"), data_errors(input_name(file)):
            scan = selection_scan(model, used, method=scanned)
    everybody = model if analysis is None else analysis.of_everybody()
    p = len(model.snps_)
    portable(model.set_params(verbose=False))
    proof = model.certificate_
    if not proof.converged:
        remedy = "raise --tol or use --solver krylov"
        if solver != "exact":
            remedy = f"raise --tol {options['tol']:g} or --max-passes {options['max_passes']}, or use --solver exact"
        run.warn(f"the residual is {proof.worst:.1e} after {proof.passes} passes: {remedy}")
    # the model knows the SNPs that the filters took, so that it takes the file as it is from now on
    mask = np.zeros(study.whole.shape[1], dtype=bool)
    mask[study.places()[1][model.snp_mask_]] = True
    constant = model.monomorphic_
    if wanted.maf is None:  # with it PLINK leaves them out too
        constant += study.count_monomorphic(uncalled=model.missing != "pairwise")
    for each in (model, everybody):
        each.snp_mask_, each.n_features_in_, each.dropped_ = mask, len(mask), study.dropped()
        each.monomorphic_ = constant
        if is_autosomal(model.snps_).all():
            each.set_params(chromosomes="autosomes")
    scores = np.asarray(everybody.eigenvectors_ * everybody.singular_values_, dtype=np.float64)
    groups = None
    with run.step("Comparing"), data_errors(input_name(file)):
        aligned = None if known.places is None else _align_with_map(scores, known.places, run.seed)
        if between:
            if known.groups is None:
                raise ValueError("the labels have no column of groups, which --fst needs")
            sizes = Counter(known.groups)
            single = sorted(name for name, size in sizes.items() if name and size == 1)
            many = sum(size > 1 for name, size in sizes.items() if name)
            if single and many > 1:  # of one person's alleles frequencies are a coin's
                run.warn(f"--fst: {len(single)} groups of one person are left out: {list_few(single)}")
                groups = fst(study.source, ["" if sizes[name] == 1 else name for name in known.groups])
            elif many < 2:
                text = f"the column {known.name} names {many} groups of two people and more, and {len(single)} of one"
                raise SourceError(f"{text}: F_ST is between groups. Name another column, ", Argument("label"), ".")
            else:
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
    if scan is not None:
        found.append(ResultTable(scan.table(), "selection"))
    quality: dict[str, Any] = {}
    if output.quality and output.out is not None:
        whole = study.whole
        samples, snps = (np.zeros(size, dtype=bool) for size in whole.shape)
        for inside, places in zip((samples, snps), study.places(), strict=True):
            inside[places] = True
        quality = {"snp_quality": snp_quality(whole), "sample_quality": sample_quality(whole)}
        for (name, table), inside in zip(quality.items(), (snps, samples), strict=True):
            found.append(ResultTable({**table.table(), "used": inside}, name))
    pictures: dict[str, Callable[[], Any]] = {
        "scree": partial(ScreeDisplay.from_estimator, model),
        **({} if analysis is None else cohort_pictures(analysis, scores, names, known.name)),
        "scores": partial(
            ScoreDisplay.from_predictions,
            scores,
            model=model,
            labels=names,
            legend_title=None if names is None else known.name,
        ),
    }
    lines, placed = [], {}
    if scan is not None:
        best, chance = scan.p_values.min(axis=0).argmin(), scan.p_values.min(axis=1)
        tested, told = scan.snps, ", ".join(f"{n} {x:.3f}" for n, x in zip(scan.names, scan.inflation, strict=True))
        which = scan.names[0] if len(scan.names) == 1 else f"smallest p of {scan.names[0]} to {scan.names[-1]}"
        pictures["manhattan"] = ManhattanDisplay(tested.chromosome, tested.position, chance, name=which).plot
        pictures["qq"] = QuantileDisplay(scan.p_values[:, best], name=scan.names[best]).plot
        lines.append(
            f"Selection ({scanned}): {np.count_nonzero(chance < SIGNIFICANT):,} of {len(tested):,} SNPs with "
            f"p < {SIGNIFICANT:g}, λ_GC {told}"
        )
    if aligned is not None and known.places is not None:
        (fit, rows), places = aligned, known.places[aligned[1]]
        found_places = fit.apply(scores[rows, :2]) / [math.cos(math.radians(float(places[:, 1].mean()))), 1.0]
        near = None if known.groups is None else as_texts(known.groups[rows])
        pictures["map"] = MapDisplay(found_places, places, labels=near, geographic=True).plot
        lines += [
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

    def write_more(folder: Path) -> None:
        given = None if names is None else [name or "???" for name in names]
        write_results(everybody, folder / PREFIX, output.formats, labels=given)
        if analysis is not None:
            analysis.write_lists(folder / PREFIX)

    results = Results(
        data=data,
        model=model,
        certificates={"": proof},
        tables=found,
        lines=[
            f"Eigenvalues: {model.eigenvalue_scale_.removeprefix('eigenvalues ')}",
            f"Effective number of markers: {markers:,.0f}{f' ± {error:,.0f}' if error else ''}, "
            f"{f'of {p:,}' if markers < p else f'so that all {p:,} count'}, "
            + ("of all eigenvalues", "without the first component", f"without the first {after} components")[
                min(after, 2)
            ],
            *lines,
            *([] if analysis is None else describe_cohort(analysis)),
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
            ids=everybody.samples_.names,
            labels=names,
            label_name=known.name,
            columns=known.columns or None,
            fst=groups,
            analysis=analysis,
            artefacts=artefacts,
            selection=scan,
            **quality,
        ),
        write_more=write_more,
        facts={
            "n_components": components,
            "samples": n,
            "snps": p,
            "filters": account,
            "left_out": study.filtered.left_out,
            "fitted": len(model.samples_),
            **({} if analysis is None else cohort_facts(analysis)),
            "artefacts": artefacts.table(),
            **({} if scan is None else {"selection": {"method": scanned, **scan_facts(scan)}}),
            "compared_for_relatives": {"samples": artefacts.relatives.compared, "snps": artefacts.relatives.snps},
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


def on_autosomes(chromosomes: str | None) -> bool:
    """Whether what --chr names are autosomes alone."""
    asked = None if chromosomes is None else chromosome_set(chromosomes)
    return chromosomes is None or (asked is not None and not asked - set(AUTOSOMES))


def cohort_pictures(
    analysis: CohortAnalysis, scores: NDArray[Any], names: list[str] | None, label_name: str
) -> dict[str, Callable[[], Any]]:
    """Components before all steps, and after them, coloured by what became of everybody."""
    drawn: dict[str, Callable[[], Any]] = {
        "roles": partial(
            ScoreDisplay.from_predictions,
            scores,
            model=analysis.model,
            labels=[str(role) for role in analysis.roles],
            legend_title="role",
        )
    }
    if analysis.before is not None:
        earlier = analysis.before
        drawn["before"] = partial(
            ScoreDisplay.from_predictions,
            earlier.eigenvectors_ * earlier.singular_values_,
            model=earlier,
            labels=[str(role) for role in analysis.roles] if names is None else names,
            legend_title="role" if names is None else label_name,
        )
    return drawn


def describe_cohort(analysis: CohortAnalysis) -> list[str]:
    """What the steps did, in a line."""
    n, fitted = len(analysis.fitted), int(analysis.fitted.sum())
    projected = f"{int(analysis.related.sum()):,} relatives and {int(analysis.outlying.sum()):,} outliers"
    found = [f"Components of {n:,} people, found from {fitted:,}; {projected} are projected on them"]
    if analysis.regions is not None and analysis.regions.regions:
        places = [f"{r.chromosome}:{r.start / 1e6:.1f}–{r.end / 1e6:.1f} Mb" for r in analysis.regions.regions]
        found.append(f"Regions that the data showed: {list_few(places)}")
    return found


def scan_facts(scan: SelectionScan) -> dict[str, Any]:
    """What a script wants of a scan for selection."""
    return {"inflation": dict(zip(scan.names, scan.inflation.tolist(), strict=True)), "degrees": scan.degrees}


def cohort_facts(analysis: CohortAnalysis) -> dict[str, Any]:
    """What a script wants of the steps."""
    kinship, regions, outliers = analysis.kinship, analysis.regions, analysis.outliers
    return {
        "steps": analysis.table(),
        "build": analysis.build,
        "related": int(analysis.related.sum()),
        "outlying": int(analysis.outlying.sum()),
        "degrees": None if kinship is None else kinship.degrees(),
        "regions": None if regions is None else regions.table(),
        "outliers": None if outliers is None else outliers.table(),
    }


# Memory: predicted before the fit, and held below the ceiling that --memory sets

TILE = 2**22  # bytes of decoded genotypes, of which a thread holds a few
HELD = 4
LEAST_SNPS = 32  # of a tile
NAMES_BYTES, TEXT_BYTES, SAMPLE_BYTES = 180, 460, 260  # of a SNP's names, while its text is parsed; of a sample's names
COUNTS = 300  # bytes of a SNP's counts, mean, divisor and indices
VECTORS = 40  # blocks of vectors of a Krylov basis and of what is made of it
GRAM_ROWS = 1024  # SNPs decoded for one update of ZZᵀ
PINNED = 2**27  # bytes of a buffer that genotypes go to a GPU through


def predict_memory(
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
    >>> from gramian.cli.genotypes import predict_memory
    >>> predict_memory((3192, 500_568), (3192, 500_568), 10, exact=False, threads=2) < 2**30
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
    least, most = (predict_memory(source.shape, file_shape, k, exact, n_threads(), on_gpu) for exact in (False, True))
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
