"""``gramian prune cohort.bed``: SNPs that linkage disequilibrium leaves, as PLINK lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramian.cli.genotype_reading import Selection, genotypes_argument, prepare_study, selection_options
from gramian.cli.options import command, option
from gramian.cli.output import FileSet, Results, ResultTable, file_set_options, print_results
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors, running_options
from gramian.genetics.pruning import LEAST_FOUNDERS, ORDERS, Window, clump, prune, refuse_repeated_ids

ENDINGS = (".prune.in", ".prune.out")
SHARE = click.FloatRange(0, 1, max_open=True)


def read_window(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Return the window, the step and the threshold; exit 2 where one is none."""
    if value is None:
        return None
    try:
        window, step, r2 = Window.read(value[0]), int(value[1]), float(value[2])
    except ValueError as error:
        raise click.BadParameter(f"{error} Write WINDOW STEP R2, as 50 5 0.2 or 500kb 1 0.2", context) from error
    if not 0 <= r2 < 1 or step < 1 or (step != 1 if window.kb else step > window.size):
        raise click.BadParameter(
            "R2 lies between 0 and 1; STEP is at least 1, at most the window, and 1 for a window in kb", context
        )
    return window, step, r2


@command(
    "prune",
    "gramian prune cohort.bed --indep-pairwise 50 5 0.2 --out cohort",
    "gramian prune cohort.bed --maf 0.01 --indep-pairwise 500kb 1 0.2 --order plink1 --out pruned/cohort",
)
@genotypes_argument
@option(
    "--indep-pairwise",
    nargs=3,
    metavar="WINDOW STEP R2",
    callback=read_window,
    help="Window in SNPs, or thousand base pairs (500kb); by how many SNPs it moves; largest r² [default: 50 5 0.2].",
)
@option("--clump", "clumps", nargs=2, type=float, metavar="KB R2", help="Clump instead: distance, largest r².")
@option(
    "--order",
    type=click.Choice(ORDERS),
    default=ORDERS[0],
    help="Which pairs are looked at first: as PLINK 2 since 2023, or as PLINK 1.9 and PLINK 2 before.",
)
@option("--least-founders", type=click.IntRange(2), default=LEAST_FOUNDERS, help="Fewer are refused.")
@selection_options
@file_set_options("What the names of the lists begin with: NAME.prune.in and NAME.prune.out.")
@running_options
def prune_command(
    file: Path,
    indep_pairwise: tuple[Window, int, float] | None,
    clumps: tuple[float, float] | None,
    order: str,
    least_founders: int,
    selection: Selection,
    output: FileSet,
    run: CommandRun,
) -> None:
    """SNPs of FILE, a PLINK .bed, of which no two close ones are correlated: an id in each line of NAME.prune.in, and
    those that go in NAME.prune.out.

    The lists are those of PLINK, line by line. Correlations are of founders, people without parents in the .fam file.
    Next: gramian pca FILE --extract NAME.prune.in --out results.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    if indep_pairwise is not None and clumps is not None:
        raise click.UsageError("--indep-pairwise and --clump contradict each other: leave out one of them")
    if clumps is not None and not (clumps[0] > 0 and 0 <= clumps[1] < 1):
        raise click.UsageError("--clump: KB is more than 0, and R2 lies between 0 and 1")
    out, files = output.out, output.claim(file, ENDINGS)
    study = prepare_study(file, selection, (None, None), run, keep_monomorphic=True)
    with run.step("Pruning") as report, data_errors(input_name(file)):
        refuse_repeated_ids(study.source.snps)
        if clumps is not None:
            found = clump(study.source, *clumps, least_founders=least_founders, progress=report)
        else:
            window, step, r2 = indep_pairwise or (Window(50), 5, 0.2)
            found = prune(study.source, window, step, r2, order=order, least_founders=least_founders, progress=report)
    with run.step(f"Writing {out}"), output.written():
        found.write(out, overwrite=output.force)
    kept, removed = int(found.kept.sum()), int(found.removed.sum())
    table = ResultTable(found.table(), title="SNPs by chromosome", most=30)
    print_results(
        Results(
            facts={
                "samples": study.source.shape[0],
                "founders": found.founders,
                "snps": study.source.shape[1],
                "window": str(found.window),
                "step": found.step,
                "r2": found.r2,
                "order": found.order,
                "kept": kept,
                "removed": removed,
                "monomorphic": found.monomorphic,
                "unplaced": found.unplaced,
                "chromosomes": table,
                "filters": study.account(),
                "seconds": round(run.seconds, 3),
                "out": click.format_filename(out),
                "files": [path.name for path in files],
                "warnings": run.warnings,
            },
            tables=[ResultTable(study.account(), title="Left out", most=20), table],
            lines=[
                f"{kept:,} of {kept + removed:,} SNPs stay, {removed:,} go ({found.monomorphic:,} that do not vary)"
                + (f"; {found.unplaced:,} without a place are in neither list" if found.unplaced else ""),
                f"Window {found.window}, step {found.step}, r² > {found.r2:g} among {found.founders:,} founders, "
                f"{'clumped by minor allele count' if clumps is not None else f'order of {found.order}'}",
                f"Wrote {', '.join(path.name for path in files)} to {out.parent}",
            ],
        ),
        output.as_json,
    )
