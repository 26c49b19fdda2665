"""``gramian ancestry new.bed --reference known.bed --labels groups.tsv``: where people come from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from gramian.cli.genotype_reading import (
    BED,
    READABLE,
    Selection,
    genotypes_argument,
    prepare_study,
    selection_options,
)
from gramian.cli.options import command, option
from gramian.cli.output import FileSet, Results, ResultTable, file_set_options, print_results
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors, running_options
from gramian.display import ScoreDisplay
from gramian.genetics.ancestry import UNKNOWN, ancestry_shares, classify_ancestry, group_frequencies
from gramian.genetics.loadings import Loadings
from gramian.genetics.matching import match_snps
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import project
from gramian.genetics.text import list_few, write_tsv
from gramian.sources.genotype_files import open_genotypes
from gramian.sources.writing import write_whole_folder

ENDINGS = (".ancestry.tsv", ".calibration.tsv", ".ancestry.png")


@command(
    "ancestry",
    "gramian ancestry cohort.bed --reference cohort.bed --labels groups.tsv -k 2 --out cohort",
    "gramian ancestry cohort.bed --reference cohort.bed --maf 0.05 --labels groups.tsv -k 3 --out ancestry/all --json",
)
@genotypes_argument
@option("--reference", type=BED, required=True, help="Genotypes of people whose groups are known.")
@option("--labels", type=READABLE, required=True, help="Their groups: a header with IID, and FID perhaps, and groups.")
@option("--label", "column", metavar="COLUMN", help="Which column of --labels [default: the first of text].")
@option("-k", "--components", type=click.IntRange(min=1), default=10, show_default=True, help="Components to use.")
@option("--level", type=click.FloatRange(0, 1), default=0.001, show_default=True, help="Least p-value of a group.")
@option("--certainty", type=click.FloatRange(0, 1), default=0.9, show_default=True, help="Least posterior of a group.")
@option("--no-shares", is_flag=True, help="Leave out the shares of groups in each genome.")
@selection_options
@file_set_options(f"What the names of the files begin with: NAME{ENDINGS[0]}, NAME{ENDINGS[1]}, NAME{ENDINGS[2]}.")
@running_options
def ancestry_command(
    file: Path,
    reference: Path,
    labels: Path,
    column: str | None,
    components: int,
    level: float,
    certainty: float,
    no_shares: bool,
    selection: Selection,
    output: FileSet,
    run: CommandRun,
) -> None:
    """Group of each person in FILE by a reference whose groups are known: components of the reference (filters are for
    it), the people projected on them (OADP), and posteriors; "unknown" where no group fits, as calibrated by leaving
    each person of the reference out. With it the shares of the groups in each genome, by allele frequencies.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 shares of somebody are not proved to be near the likeliest.
    """
    out, paths = output.out, output.claim(file, ENDINGS)
    study = prepare_study(reference, selection, (labels, column), run)
    groups = study.labels.groups
    if groups is None:
        raise click.UsageError(f"--labels {labels}: there is no column of groups")
    with run.step("Finding the components of the reference"), data_errors(input_name(reference)):
        model = GenotypePCA(min(components, len(groups) - 1), chromosomes="all").fit(study.source)
    with run.step("Projecting"), data_errors(input_name(file)):
        people = open_genotypes(file)
        placed = project(model, people)
        known = model.eigenvectors_ * model.singular_values_
        found = classify_ancestry(known, groups.tolist(), placed.scores, level=level, certainty=certainty)
    table = {"FID": placed.samples.fid, "IID": placed.samples.iid, **found.table()}
    shares, gap, proved = None, 0.0, True
    if not no_shares:
        with run.step("Finding shares") as report, data_errors(input_name(file)):
            match = match_snps(Loadings.of(model), people.snps)
            kept = (
                study.source if len(model.snps_) == study.source.shape[1] else study.source.select(snps=model.snp_mask_)
            )
            names, frequencies = group_frequencies(kept.select(snps=np.sort(match.loadings)), groups.tolist())
            order = np.argsort(np.argsort(match.loadings))
            F = frequencies[:, order]
            F = np.where(match.flip, 1 - F, F)
            shares = ancestry_shares(people.select(snps=match.snps), F, names, progress=report)
            gap, proved = float(shares.gaps.max()), bool(shares.converged.all())
        table |= {f"SHARE_{name}": shares.shares[:, j] for j, name in enumerate(shares.groups)}
    written = [path.name for path in paths]
    with (
        run.step(f"Writing {out}"),
        output.written(),
        write_whole_folder(out.parent, written, overwrite=output.force) as folder,
    ):
        write_tsv(folder / written[0], table, overwrite=True)
        write_tsv(folder / written[1], found.calibration, overwrite=True)
        _draw(known, groups, placed.scores, found.assigned, folder / written[2])
    assigned, counts = np.unique(found.assigned.astype(str), return_counts=True)
    print_results(
        Results(
            facts={
                "samples": len(placed.samples),
                "reference": len(groups),
                "components": known.shape[1],
                "groups": dict(zip(assigned.tolist(), counts.tolist(), strict=True)),
                "calibration": {name: values.tolist() for name, values in found.calibration.items()},
                "matching": asdict(placed.report),
                "level": level,
                "certainty": certainty,
                "shares": None if shares is None else dict(zip(shares.groups, shares.shares.mean(axis=0), strict=True)),
                "largest_gap": None if shares is None else gap,
                "in_the_reference": int(placed.recognised.sum()),
                "filters": study.account(),
                "seconds": round(run.seconds, 3),
                "out": click.format_filename(out),
                "files": [path.name for path in paths],
                "warnings": run.warnings,
            },
            tables=[
                ResultTable(study.account(), title="Left out of the reference", most=20),
                ResultTable(found.calibration, title="The reference, each person left out", most=40),
                ResultTable(
                    {"group": assigned.astype(object), "people": counts}, title="People by group", most=len(assigned)
                ),
            ],
            lines=[
                f"{len(placed.samples):,} people on {known.shape[1]} components of {len(groups):,}, "
                f"{placed.report.used:,} SNPs",
                *([f"{int(placed.recognised.sum()):,} are in the reference"] if placed.recognised.any() else []),
                *([f"Shares: no others are likelier by more than {gap:.1g} in log-likelihood"] if shares else []),
                f"Wrote {list_few([path.name for path in paths])} to {out.parent}",
            ],
        ),
        output.as_json,
    )
    if not proved:
        raise click.exceptions.Exit(4)


def _draw(known: np.ndarray, groups: np.ndarray, scores: np.ndarray, assigned: np.ndarray, path: Path) -> None:
    """The reference by group, and the people who have none."""
    strange = assigned == UNKNOWN
    points = np.vstack([known, scores[strange]])
    names = np.concatenate([groups, np.full(int(strange.sum()), UNKNOWN, dtype=object)])
    ScoreDisplay.from_predictions(points[:, :2], labels=names).save(path)
