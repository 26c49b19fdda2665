"""``gramian king cohort.bed``: kinship of pairs of people, and who is to go so that nobody is related."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from gramian.cli.genotype_reading import Selection, genotypes_argument, prepare_study, selection_options
from gramian.cli.options import command, option
from gramian.cli.output import FileSet, Results, ResultTable, file_set_options, print_results
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors, device_option, running_options
from gramian.genetics.relatives import king, unrelated, write_king_files

TABLE, LISTS = ".kin0", (".king.cutoff.in.id", ".king.cutoff.out.id")


@command(
    "king",
    "gramian king cohort.bed --cutoff 0.0884 --out cohort",
    "gramian king cohort.bed --maf 0.05 --least 0.0442 --out kinship/cohort --json",
)
@genotypes_argument
@option(
    "--cutoff",
    type=click.FloatRange(-1, 0.5),
    help="Kinship above which one of two people goes: 0.354 duplicates, 0.177, 0.0884, 0.0442 first to third degree.",
)
@option(
    "--least",
    type=click.FloatRange(-1, 0.5),
    help="Smallest kinship of a pair in the table [default: --cutoff; without it, all pairs].",
)
@selection_options
@file_set_options(
    "What the names of the files begin with: NAME.kin0, and with --cutoff NAME.king.cutoff.in.id and .out.id."
)
@device_option
@running_options
def king_command(
    file: Path,
    cutoff: float | None,
    least: float | None,
    selection: Selection,
    output: FileSet,
    device: str,
    run: CommandRun,
) -> None:
    """Kinship of the people in FILE, a PLINK .bed, by KING's robust estimate: pairs as KING and plink2
    --make-king-table list them, and, with --cutoff, who stays and who goes by plink2's rule.

    Next: gramian pca FILE --remove NAME.king.cutoff.out.id --out results.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    if cutoff is not None and least is not None and least > cutoff:
        raise click.UsageError(f"--least {least:g} leaves out pairs that --cutoff {cutoff:g} needs: lower it")
    out, files = output.out, output.claim(file, (TABLE, *(LISTS if cutoff is not None else ())))
    study = prepare_study(file, selection, (None, None), run, keep_monomorphic=True)
    with run.step("Comparing people") as report, data_errors(input_name(file)):
        found = king(study.source, least=cutoff if least is None else least, device=device, progress=report)
        kept = None if cutoff is None else unrelated(found, cutoff)
    with run.step(f"Writing {out}"), output.written():
        write_king_files(found, out, kept, overwrite=output.force)
    columns = found.table()
    closest = np.argsort(-np.nan_to_num(columns["KINSHIP"], nan=-np.inf), kind="stable")[:12]
    shown = {name: column[closest] for name, column in columns.items() if name not in ("HETHET",)}
    degrees = found.degrees()
    n, gone = len(found.samples), None if kept is None else int(np.count_nonzero(~kept))
    print_results(
        Results(
            facts={
                "samples": n,
                "snps": found.snps,
                "pairs": len(found.first),
                "least": found.least,
                "degrees": degrees,
                "cutoff": cutoff,
                "kept": None if gone is None else n - gone,
                "removed": gone,
                "filters": study.account(),
                "seconds": round(run.seconds, 3),
                "out": click.format_filename(out),
                "files": [path.name for path in files],
                "warnings": run.warnings,
            },
            tables=[
                ResultTable(study.account(), title="Left out", most=20),
                *([ResultTable(shown, title="Closest pairs")] if len(closest) else []),
            ],
            lines=[
                f"{len(found.first):,} pairs of {n:,} people, {found.snps:,} SNPs: "
                + ", ".join(
                    f"{count:,} {'duplicates' if name == 'duplicate' else f'of {name} degree'}"
                    for name, count in degrees.items()
                ),
                *([] if gone is None else [f"{n - gone:,} people stay, {gone:,} go: no kinship is above {cutoff:g}"]),
                f"Wrote {', '.join(path.name for path in files)} to {out.parent}",
            ],
        ),
        output.as_json,
    )
