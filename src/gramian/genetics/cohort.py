"""From raw genotypes to components: filters, pruning, long-range regions, relatives, outliers, each accounted for."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from gramian.genetics.filters import Filtered, Filters, Step, snps_within
from gramian.genetics.genotypes import as_genotypes, is_autosomal
from gramian.genetics.long_range import (
    BUILDS,
    Region,
    RegionWarning,
    detect_build,
    estimated_regions,
    long_range_regions,
)
from gramian.genetics.outliers import LdRegions, Outliers, far_people, far_snps
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.pruning import LEAST_FOUNDERS, LdPruning, Window, chromosome_runs, founder_mask, prune
from gramian.genetics.relatives import (
    CUTOFF,
    Kinship,
    king,
    least_kinship,
    project_relatives,
    unrelated,
    write_king_files,
)
from gramian.genetics.text import list_few, one_field, write_plink_table, write_tsv
from gramian.inputs.progress import Progress
from gramian.inputs.values import check_choice
from gramian.results.tables import text_table
from gramian.sources.checkpoint import begin_checkpoint, remember
from gramian.sources.errors import SourceError
from gramian.sources.plink import Genotypes
from gramian.sources.writing import write_whole_folder

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

USUAL = Filters(maf=0.01, max_snp_missing=0.05, max_sample_missing=0.1)
LOST = 0.2  # of a SNP's calls: people are not judged by SNPs that so many lack
NEAR, APART = "500kb", 50  # window of the pruning; SNPs, where positions are not known
KINSHIP_SNPS = 100_000  # up to which kinship is by all SNPs that pass the filters, and by pruned ones otherwise
SOME = 400  # people by whom the effective number of SNPs is told
ENOUGH = 20_000  # SNPs that tell strangers from relatives, as a rule
COPIES_CUTOFF = 0.354  # copies of one person are told by however few SNPs
LEAST_SNPS = 2_000  # for regions that the data show: 50 SNPs on either side are averaged
ROUNDS = 5  # of fits that leave out regions, or people
GLANCE = 1e-2  # tolerance of the components before any step, which are for a picture
LIST_ENDINGS = (  # of the lists, of which a run writes those of its steps
    *(".steps.tsv", ".snps.in", ".fitted.id", ".prune.in", ".prune.out", ".long-range.out", ".regions.tsv"),
    *(".regions.out", ".kin0", ".king.cutoff.in.id", ".king.cutoff.out.id", ".outliers.tsv", ".outliers.id"),
)
ROLES = ("fitted", "relative, projected", "outlier, projected")


@dataclass(frozen=True, eq=False, repr=False)
class CohortAnalysis:
    """Components of a cohort, and all that was done to the genotypes before they were found.

    Attributes
    ----------
    source : Genotypes
        People and SNPs that passed the filters.
    model : GenotypePCA
        Fitted to the people of ``fitted`` at the SNPs of ``snps``.
    scores : ndarray of shape (n, k)
        Of everybody in ``source``: those of the fit, and the others projected by OADP.
    fitted : ndarray of bool of shape (n,)
        Who the components were found from.
    related, outlying : ndarray of bool of shape (n,)
        Who was left out as a relative, as an outlier.
    snps : ndarray of bool
        SNPs of ``source`` that were left after all steps; those of them that do not vary are not in the model.
    steps : tuple of Step
        What each step removed, how many it left, and why; people removed by the last two are projected.
    pruning : LdPruning or None
        SNPs that linkage disequilibrium leaves.
    build : str or None
        Of the genome, where known regions were left out.
    known : ndarray of bool
        SNPs of ``source`` that were left out by the table of long-range regions.
    regions : LdRegions or None
        Regions that the data showed; ``kept`` is of the SNPs of ``source``.
    kinship : Kinship or None
        Pairs above the cutoff.
    outliers : Outliers or None
        Who was left out in which round, and by which component.
    before : GenotypePCA or None
        Of everybody and all SNPs that passed the filters, roughly: for a picture.
    remarks : tuple of str
        What could not be done, and why.
    """

    source: Genotypes
    model: GenotypePCA
    scores: Array
    fitted: Mask
    related: Mask
    outlying: Mask
    snps: Mask
    steps: tuple[Step, ...]
    pruning: LdPruning | None
    build: str | None
    known: Mask
    regions: LdRegions | None
    kinship: Kinship | None
    outliers: Outliers | None
    before: GenotypePCA | None
    remarks: tuple[str, ...]

    @property
    def roles(self) -> npt.NDArray[np.object_]:
        """What became of everybody: ``fitted``, ``relative, projected`` or ``outlier, projected``."""
        found = np.full(len(self.fitted), ROLES[0], dtype=object)
        found[self.related], found[self.outlying] = ROLES[1], ROLES[2]
        return found

    def of_everybody(self) -> GenotypePCA:
        """The model with everybody's components in place of those of the fit, for files that list everybody.

        Columns of ``eigenvectors_`` have length 1 over the people of the fit.
        """
        whole = copy(self.model)
        whole.samples_ = self.source.samples
        lengths = np.asarray(self.model.score_lengths_)
        whole.eigenvectors_ = self.scores / np.where(lengths > 0, lengths, 1.0)
        return whole

    def table(self) -> dict[str, Any]:
        """Return step, of, removed, left and why, ready for ``pandas.DataFrame``."""
        return {
            "step": [step.name for step in self.steps],
            "of": [step.of for step in self.steps],
            "before": [step.removed + step.left for step in self.steps],
            "removed": [step.removed for step in self.steps],
            "left": [step.left for step in self.steps],
            "why": [step.detail for step in self.steps],
        }

    def list_files(self, prefix: str) -> list[str]:
        """The files that :meth:`write_lists` writes."""
        found = [".steps.tsv", ".snps.in", ".fitted.id"]
        found += [".prune.in", ".prune.out"] if self.pruning is not None else []
        found += [".long-range.out"] if self.build is not None else []
        found += [".regions.tsv", ".regions.out"] if self.regions is not None else []
        if self.kinship is not None:
            found += [".kin0", ".king.cutoff.in.id", ".king.cutoff.out.id"]
        found += [".outliers.tsv", ".outliers.id"] if self.outliers is not None else []
        return [prefix + ending for ending in found]

    def write_lists(self, prefix: str | os.PathLike[str], *, overwrite: bool = False) -> list[Path]:
        """Write what every step removed as lists that PLINK reads; all or none.

        PREFIX.steps.tsv is the account; .snps.in and .fitted.id hold what the components were found from; .prune.in and
        .prune.out, .long-range.out, .regions.out ids of SNPs; .kin0, .king.cutoff.in.id and .king.cutoff.out.id are
        those of ``plink2 --king-cutoff``; .regions.tsv and .outliers.tsv say where, when and why.
        """
        home, ids = Path(prefix), one_field(self.source.snps.id, ".")
        names = self.list_files(home.name)

        def write_snps(path: Path, mask: Mask) -> None:
            path.write_text("".join([f"{name}\n" for name in ids[mask]]), encoding="utf-8", newline="\n")

        def write_people(path: Path, mask: Mask) -> None:
            people = self.source.samples.take(mask)
            write_plink_table(path, {"FID": people.fid, "IID": people.iid})

        with write_whole_folder(home.parent, names, overwrite=overwrite) as folder:
            start = folder / home.name

            def place(ending: str) -> Path:
                return start.with_name(home.name + ending)

            write_tsv(place(".steps.tsv"), self.table(), overwrite=True)
            write_snps(place(".snps.in"), self.snps)
            write_people(place(".fitted.id"), self.fitted)
            if self.pruning is not None:
                write_snps(place(".prune.in"), self.pruning.kept)
                write_snps(place(".prune.out"), self.pruning.removed)
            if self.build is not None:
                write_snps(place(".long-range.out"), self.known)
            if self.regions is not None:
                write_tsv(place(".regions.tsv"), self.regions.table(), overwrite=True)
                write_snps(place(".regions.out"), ~self.regions.kept)
            if self.kinship is not None:
                write_king_files(self.kinship, start, ~self.related, overwrite=True)
            if self.outliers is not None:
                write_tsv(place(".outliers.tsv"), self.outliers.table(), overwrite=True)
                write_people(place(".outliers.id"), self.outlying)
        return [home.parent / name for name in names]

    def __repr__(self) -> str:
        n = len(self.fitted)
        head = (
            f"CohortAnalysis: {len(self.model.eigenvalues_)} components of {n:,} people, found from "
            f"{self.fitted.sum():,} of them and {len(self.model.snps_):,} SNPs"
        )
        return "\n".join([head, text_table(self.table(), None), *(f"  {remark}" for remark in self.remarks)])


class _Stages:
    """One progress of several stages, each of which has a share of the whole; how many fits there are shows late."""

    def __init__(self, report: Progress | None, total: float) -> None:
        self.report, self.total, self.done, self.told = report, total, 0.0, 0

    @contextmanager
    def stage(self, text: str, weight: float) -> Iterator[Progress | None]:
        """Report what is done in this block as its share."""
        if self.report is None:
            yield None
            return
        start, report = self.done, self.report

        def tell(done: int, total: int, message: str, /) -> None:
            part = min(done / total, 1.0) if total else 1.0
            self.told = max(self.told, min(round(1000 * (start + weight * part) / self.total), 999))
            report(self.told, 1000, f"{text}{': ' if message else ''}{message}")

        tell(0, 1, "")
        yield tell
        self.done = start + weight


@dataclass(frozen=True, eq=False)
class _Request:
    """What a checkpoint knows an analysis by."""

    settings: dict[str, Any] = field(default_factory=dict)

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return self.settings


def filter_cohort(source: Genotypes, filters: Filters) -> Filtered:
    """Apply filters so that people are not judged by SNPs that nearly everybody lacks.

    Where people are filtered by missing calls, SNPs that a fifth of them lack go first; then all filters are applied in
    their order. Both are in the account.

    Parameters
    ----------
    source : Genotypes
        People and SNPs.
    filters : Filters
        What has to go.

    Returns
    -------
    Filtered
        The genotypes that stay, and the account of what went and why.
    """
    if filters.max_sample_missing is None:
        return filters.apply(source)
    lists = ("chromosomes", "ranges", "exclude_ranges", "extract", "exclude", "keep", "remove", "long_range")
    given = {name: getattr(filters, name) for name in lists}
    first = Filters(**given, max_snp_missing=LOST, keep_monomorphic=True).apply(source)
    done: dict[str, Any] = {**dict.fromkeys(lists), "chromosomes": "all"}
    rest = replace(filters, **done).apply(first.source)
    steps = (*first.steps, *rest.steps[1:])
    return Filtered(rest.source, source.shape, steps, first.left_out, first.remarks)


def name_snps(source: Genotypes) -> tuple[Genotypes, str]:
    """The same genotypes with a name of its own for every SNP, and what was done to those that had none.

    SNPs without a name, or with one that others have, are called chromosome:position:A2:A1, as by ``plink2
    --set-all-var-ids @:#:$r:$a``.
    """
    ids, snps = source.snps.id, source.snps
    times = Counter(ids)
    bad = np.array([times[name] > 1 or name in (".", "") for name in ids], dtype=np.bool_)
    if not bad.any():
        return source, ""
    names = ids.copy()
    for i in np.flatnonzero(bad).tolist():
        names[i] = f"{snps.chromosome[i]}:{snps.position[i]}:{snps.a2[i]}:{snps.a1[i]}"
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(
            f"{len(twice)} SNPs cannot be told apart by name, nor by place and alleles: {list_few(twice)}. Leave out "
            "all but one of each, for example by plink2 --rm-dup force-first."
        )
    return source.renamed(names), (
        f"{bad.sum():,} SNPs without a name of their own are called chromosome:position:A2:A1, as "
        f"{names[np.flatnonzero(bad)[0]]}"
    )


def analyse_cohort(
    source: Any,
    pca: GenotypePCA | None = None,
    *,
    filters: Filters | None = USUAL,
    prune_by: tuple[int | str | Window, int, float] | str | None = "auto",
    long_range: str | None = "auto",
    find_regions: bool = True,
    king_cutoff: float | str | None = "auto",
    outliers: str | None = "deviations",
    before: bool = True,
    progress: Progress | None = None,
) -> CohortAnalysis:
    """Find the components of a cohort as they can be published, from its raw genotypes.

    1. Filters: SNPs that a fifth of all people lack go first, then people with a tenth of their calls missing, then
       SNPs with a twentieth, and those rarer than 0.01. Autosomes.
    2. Pruning for linkage disequilibrium, r² > 0.2 within 500 kb (:func:`~gramian.genetics.prune`).
    3. Known regions of long-range linkage disequilibrium, where the build of the genome is told by well-known SNPs.
    4. Relatives: kinship of all pairs; of those above the cutoff, who goes by the rule of ``plink2 --king-cutoff``.
    5. Components of the unrelated; regions whose loadings stand out along the genome go, and they are found again.
    6. Outliers among them go, and they are found again, five times at most.
    7. Everybody: relatives and outliers are projected on the components of the others (OADP).

    Parameters
    ----------
    source : path, Genotypes or array
        Raw genotypes.
    pca : GenotypePCA, optional
        Settings of all fits; 10 components by default.
    filters : Filters, optional
        Of samples and SNPs; None leaves them as they are.
    prune_by : (window, step, r2), "auto" or None
        As for :func:`~gramian.genetics.prune`; "auto" is ("500kb", 1, 0.2), and (50, 5, 0.2) without positions.
    long_range : {"auto", "hg18", "hg19", "hg38"} or None
        Build of the known regions; where "auto" cannot tell it, they stay, and a remark says so.
    find_regions : bool, default=True
        Whether regions that the data show are left out.
    king_cutoff : float, "auto" or None
        Kinship above which one of two people is projected; "auto" is 0.0884, or, where few independent SNPs tell, what
        chance makes of strangers.
    outliers : {"deviations", "neighbours"} or None
        Rule of :func:`~gramian.genetics.find_outliers`.
    before : bool, default=True
        Whether components before all steps but the filters are found too, roughly, for a picture.
    progress : callable, optional
        Called with what is done, 1000, and a message.

    Returns
    -------
    CohortAnalysis
        Components, scores of everybody, and the account.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, analyse_cohort
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> p = np.repeat(rng.uniform(0.3, 0.7, (3000, 2)), 60, axis=1)
    >>> calls = rng.binomial(2, p)
    >>> calls[:, 119] = calls[:, 60]
    >>> found = analyse_cohort(Genotypes.from_calls(calls), GenotypePCA(2), long_range=None)
    >>> found.fitted.sum(), found.scores.shape, bool(np.isclose(*found.scores[[60, 119], 0], rtol=0.1))
    (np.int64(119), (120, 2), True)
    """
    pca = GenotypePCA() if pca is None else pca
    if isinstance(king_cutoff, str):
        check_choice("king_cutoff", king_cutoff, ("auto",))
    if outliers is not None:
        check_choice("outliers", outliers, ("deviations", "neighbours"))
    if long_range is not None:
        check_choice("long_range", long_range, ("auto", *BUILDS))
    whole = as_genotypes(source)
    settings: dict[str, Any] = {"filters": filters, "prune_by": prune_by, "long_range": long_range, "pca": pca}
    settings |= {"find_regions": find_regions, "king_cutoff": king_cutoff, "outliers": outliers, "before": before}
    begin_checkpoint(_Request(settings), whole)
    stages = _Stages(progress, 12.0 + 4 * before + 3 * (prune_by is not None) + 3 * (king_cutoff is not None))
    remarks: list[str] = []
    steps: list[Step] = []
    with stages.stage("filters", 1):
        if filters is not None:
            filtered = filter_cohort(whole, filters)
            whole, steps = filtered.source, list(filtered.steps)
            remarks += filtered.notes
        on = is_autosomal(whole.snps)
        if not on.all():
            whole = whole.select(snps=on)
            steps.append(Step("autosomes", "SNPs", int((~on).sum()), int(on.sum()), "chromosomes 1-22"))
        whole, said = name_snps(whole)
        remarks += [said] * bool(said)
    (n, p), kept = whole.shape, np.ones(whole.shape[1], np.bool_)

    def fit(
        text: str, weight: float, people: Mask | None = None, snps: Mask | None = None, **changed: Any
    ) -> GenotypePCA:
        with stages.stage(text, weight) as tell, warnings.catch_warnings():
            warnings.simplefilter("ignore", RegionWarning)  # looked for in what is left at the end
            warnings.simplefilter("ignore", ConvergenceWarning)
            model: GenotypePCA = clone(pca).set_params(chromosomes="all", verbose=tell or False, **changed)
            model.fit(whole.select(samples=people, snps=snps))
        model.set_params(verbose=pca.verbose)
        return model

    def account(name: str, of: str, removed: int, left: int, why: str) -> None:
        steps.append(Step(name, of, removed, left, why))

    earlier = fit("components before any step", 4, tol=max(pca.tol, GLANCE)) if before else None
    pruning = None
    if prune_by is not None:
        with stages.stage("linkage disequilibrium", 3) as tell:
            pruning, said = _prune(whole, prune_by, tell)
        remarks += [said] * bool(said)
        if pruning is not None:
            kept &= pruning.kept
            why = f"r² > {pruning.r2:g} within {pruning.window}{'' if pruning.window.kb else ' SNPs'}"
            account("prune", "SNPs", int(p - kept.sum()), int(kept.sum()), why)
    build, known = None, np.zeros(p, np.bool_)
    if long_range is not None:
        try:
            build = detect_build(whole.snps) if long_range == "auto" else long_range
        except SourceError as error:
            reason = str(error).partition(". ")[0]
            remarks.append(
                f"known regions of long-range linkage disequilibrium were not left out: {reason[0].lower()}{reason[1:]}"
            )
        else:
            table = long_range_regions(build)
            known, _ = snps_within(table, whole.snps)
            before_step, kept = int(kept.sum()), kept & ~known
            why = f"{len(table)} regions of {build}"
            if estimated := len(estimated_regions(build)):
                why += f", {estimated} of them estimated from another build"
            account("long_range", "SNPs", before_step - int(kept.sum()), int(kept.sum()), why)
    related, kinship = np.zeros(n, np.bool_), None
    if king_cutoff is not None:
        compared = np.ones(p, np.bool_) if p <= KINSHIP_SNPS or not kept.any() else kept
        with stages.stage("relatives", 3) as tell:
            view = whole.select(snps=compared)
            chance = _chance_kinship(view)
            cutoff = min(max(CUTOFF, chance), COPIES_CUTOFF) if king_cutoff == "auto" else float(king_cutoff)
            kinship = _recall_kinship(view, cutoff, pca.device, tell)
            related = ~unrelated(kinship, cutoff)
        if chance > CUTOFF or chance > cutoff:
            remarks.append(
                f"kinship is told by few independent SNPs: that of strangers is up to {chance:.3g} by chance, "
                + (f"and {cutoff:.3g} is the cutoff" if king_cutoff == "auto" else f"and the cutoff is {cutoff:g}")
            )
        degrees = ", ".join(f"{count} {name}" for name, count in kinship.degrees().items() if count)
        why = f"{len(kinship.first)} pairs with a kinship above {cutoff:.3g} at {view.shape[1]:,} SNPs"
        account(
            "relatives", "samples", int(related.sum()), int((~related).sum()), why + f" ({degrees})" * bool(degrees)
        )
    fitted = ~related
    model = fit("components of the unrelated", 3, fitted, kept)
    regions = None
    if find_regions:
        model, kept, regions, said = _leave_out_regions(model, whole, fitted, kept, fit)
        remarks += [said] * bool(said)
        if regions is not None:
            gone = int((~regions.kept).sum())
            many = len(regions.regions)
            account("regions", "SNPs", gone, int(kept.sum()), f"loadings stand out, {many} region{'s' * (many != 1)}")
    outlying, found = np.zeros(n, np.bool_), None
    if outliers is not None:
        model, found = _leave_out_people(model, whole, fitted, kept, outliers, fit)
        outlying = fitted & ~found.kept
        fitted = fitted & found.kept
        rule = "more than 6 standard deviations on a component" if outliers == "deviations" else "far from 5 neighbours"
        account("outliers", "samples", int(outlying.sum()), int(fitted.sum()), rule)
    scores = np.empty((n, len(model.components_)))
    scores[fitted] = np.asarray(model.eigenvectors_ * model.score_lengths_)
    with stages.stage("projection of relatives and outliers", 1):
        if not fitted.all():
            scores[~fitted] = project_relatives(model, whole.select(snps=kept), fitted, kinship)
    proof = model.certificate_
    proof.warn_unless_converged("Raise tol or max_passes.")
    return CohortAnalysis(
        whole,
        model,
        scores,
        fitted,
        related,
        outlying,
        kept,
        tuple(steps),
        pruning,
        build,
        known,
        regions,
        kinship,
        found,
        earlier,
        tuple(remarks),
    )


def _prune(
    source: Genotypes, prune_by: tuple[int | str | Window, int, float] | str, progress: Progress | None
) -> tuple[LdPruning | None, str]:
    """Pruning as asked, or as the positions allow; nothing where r² would be noise, and why."""
    said = ""
    if prune_by == "auto":
        founders = int(founder_mask(source).sum())
        if founders < LEAST_FOUNDERS:
            return None, (
                f"SNPs were not pruned: {founders} people are founders, and r² of fewer than {LEAST_FOUNDERS} is "
                "mostly noise"
            )
        settings: tuple[int | str | Window, int, float] = (NEAR, 1, 0.2)
        lacking = _without_positions(source)
        if lacking:
            settings = (APART, 5, 0.2)
            said = f"pruned by windows of {APART} SNPs, not {NEAR}: {lacking}"
    else:
        settings = prune_by  # type: ignore[assignment]
    window, step, r2 = settings

    def work() -> tuple[Any, ...]:
        found = prune(source, window, step, r2, progress=progress)
        return found.kept, found.removed, found.monomorphic, found.founders

    kept, removed, monomorphic, founders = remember("pruning", [str(window), step, r2], work)
    found = LdPruning(source, kept, removed, monomorphic, founders, Window.read(window), step, r2, "plink2")
    return found, said


def _without_positions(source: Genotypes) -> str:
    """Why windows in kb cannot be made, or nothing."""
    for name, start, stop in chromosome_runs(source.snps):
        position = source.snps.position[start:stop]
        if stop - start > 1 and not position.any():
            return f"chromosome {name} has no positions"
        if np.any(np.diff(position) < 0):
            return f"positions on chromosome {name} are not sorted"
    return ""


def _chance_kinship(source: Genotypes) -> float:
    """The kinship that chance makes of strangers, by the effective number of SNPs among some people.

    Of many SNPs some are taken, of which chance makes more, where even these leave it below the usual cutoff.
    """
    n, p = source.shape
    if p > ENOUGH:
        fewer = _chance_kinship(source.select(snps=np.arange(ENOUGH) * p // ENOUGH))
        if fewer < CUTOFF:
            return fewer
    some = np.arange(min(n, SOME)) * n // min(n, SOME)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RegionWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GenotypePCA(max(1, min(10, len(some) - 2)), solver="exact", chromosomes="all")
        return least_kinship(model.fit(source.select(samples=some)), n)


def _recall_kinship(source: Genotypes, cutoff: float, device: Any, progress: Progress | None) -> Kinship:
    """Pairs above the cutoff, from a checkpoint where they were found before."""
    names = ("first", "second", "n_snps", "hethet", "ibs0", "first_het", "second_het")

    def work() -> tuple[Any, ...]:
        found = king(source, least=cutoff, device=device, progress=progress)
        return tuple(getattr(found, name) for name in names)

    columns: dict[str, Any] = dict(zip(names, remember("kinship", cutoff, work), strict=True))
    return Kinship(source.samples, **columns, snps=source.shape[1], least=cutoff)


Fit = Callable[..., GenotypePCA]


def _leave_out_regions(
    model: GenotypePCA, whole: Genotypes, people: Mask, kept: Mask, fit: Fit
) -> tuple[GenotypePCA, Mask, LdRegions | None, str]:
    """Leave out SNPs whose loadings stand out along the genome, until none does: model, SNPs, regions, why not."""
    if _without_positions(whole) or len(model.snps_) < LEAST_SNPS:
        lacking = _without_positions(whole) or f"{len(model.snps_):,} SNPs are fewer than {LEAST_SNPS:,}"
        return model, kept, None, f"regions that the data show were not looked for: {lacking}"
    left = kept.copy()
    regions: list[Region] = []
    rounds: list[int] = []
    sizes: list[int] = []
    converged = False
    for number in range(1, ROUNDS + 1):
        far, found = far_snps(model)
        converged = not far.any()
        if converged:
            break
        regions += [region for region, _ in found]
        sizes += [size for _, size in found]
        rounds += [number] * len(found)
        at = np.flatnonzero(left)[model.snp_mask_]
        left[at[far]] = False
        model = fit(f"components without {len(regions)} regions", 1 / number, people, left)
    return model, left, LdRegions(~(kept & ~left), regions, rounds, sizes, converged, model), ""


def _leave_out_people(
    model: GenotypePCA, whole: Genotypes, people: Mask, snps: Mask, rule: str, fit: Fit
) -> tuple[GenotypePCA, Outliers]:
    """Leave out people who are far from all others, until nobody is; rows are those of everybody."""
    kept, found = people.copy(), []
    for number in range(1, ROUNDS + 1):
        rows = np.flatnonzero(kept)
        far, component, value = far_people(model, rule)
        if not far.any():
            break
        found += [(number, int(rows[i]), int(component[i]), float(value[i])) for i in np.flatnonzero(far)]
        kept[rows[far]] = False
        model = fit(f"components without {int(people.sum() - kept.sum())} outliers", 1 / number, kept, snps)
    columns = list(zip(*found, strict=True)) if found else [(), (), (), ()]
    rounds, at, components = (np.array(column, dtype=np.int64) for column in columns[:3])
    values = np.array(columns[3], dtype=np.float64)
    return model, Outliers(whole, kept | ~people, rounds, at, components, values, model)
