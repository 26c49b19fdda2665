"""``gramian project results new.bed``: new samples on the components of others."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from gramian import persistence
from gramian.cli.errors import write_errors
from gramian.cli.genotype_options import BED, PREFIX, READABLE, SCALINGS, genotype_errors, noted
from gramian.cli.options import bundle, command, option
from gramian.cli.output import (
    MODEL,
    Columns,
    TableOutput,
    hand_out,
    numbered,
    plain,
    refuse_existing,
    screen_table,
)
from gramian.cli.reading import input_name
from gramian.cli.running import LOG, Run, running_options
from gramian.genetics.loadings import Loadings, read_loadings
from gramian.genetics.matching import AMBIGUOUS, BY
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import METHODS, Projection, project, write_projection
from gramian.sources.plink import open_bed
from gramian.sources.writing import write_whole_folder

__all__ = ["genotype_project"]

TABLES = (".csv", ".parquet")
ENDINGS = (".json", ".eigenvec.var", ".eigenvec.allele", ".snpweight", ".snpwt")
WORDS = {
    "absent": "absent",
    "chromosome": "on another chromosome",
    "mismatched": "with other alleles",
    "ambiguous": "A/T or C/G",
    "repeated": "with several partners",
    "constant": "constant in the reference",
    "by_position": "found by position",
    "swapped": "alleles swapped",
    "strand": "on the other strand",
    "one_allele": "with one allele named",
    "moved": "at another position",
}
LOST = ("absent", "chromosome", "mismatched", "ambiguous", "repeated", "constant")


@dataclass(frozen=True)
class ProjectionOutput(TableOutput):
    """Where the table of scores goes: CSV, Parquet, or as PLINK 2 writes tables of samples."""

    def check(self) -> None:
        """Exit 2 where the file is there already, or is a folder."""
        if self.out is None:
            return
        if not self.out.suffix or self.out.is_dir():
            raise click.UsageError(
                f"--out {self.out.name}: name a file, as new.eigenvec, new.tsv, new.csv or new.parquet"
            )
        refuse_existing(self.out.parent, [self.out.name], self.force)


@dataclass(frozen=True)
class Matching:
    """How SNPs are paired, and what is told of the reference."""

    by: str
    ambiguous: str
    min_share: float
    snps: Path | None
    frequencies: Path | None
    eigenvalues: Path | None
    scaling: str | None
    total_variance: float | None

    def reading(self) -> dict[str, Any]:
        """What :func:`read_loadings` is told."""
        return {
            "snps": self.snps,
            "frequencies": self.frequencies,
            "eigenvalues": self.eigenvalues,
            "scaling": self.scaling,
            "total_variance": self.total_variance,
        }


def _reference(*names: str, **settings: Any) -> Any:
    return option(*names, section="Reading", **settings)


MATCHING = (
    option("--by", type=click.Choice(BY), default="auto", show_default=True, help="How SNPs are paired."),
    option(
        "--ambiguous",
        type=click.Choice(AMBIGUOUS),
        default="drop",
        show_default=True,
        help="A/T and C/G SNPs: leave them out, tell the strand by frequency, or trust it.",
    ),
    option(
        "--min-share",
        type=click.FloatRange(0, 1),
        default=0.5,
        show_default=True,
        metavar="SHARE",
        help="Refuse where fewer of the SNPs can be used.",
    ),
    _reference("--snps", type=READABLE, help=".bim or .snp of the reference, for weights of smartpca."),
    _reference("--frequencies", type=READABLE, help=".afreq or .frq of the reference."),
    _reference("--eigenvalues", type=READABLE, help=".eigenval or .eval of the reference."),
    _reference("--scaling", type=click.Choice(SCALINGS), help="Of the reference, where not the program's own."),
    _reference("--total-variance", type=float, metavar="NUMBER", help="trace(ZZᵀ)/M, for OADP on smartpca's weights."),
)
OUTPUT = (
    option(
        "-o",
        "--out",
        type=click.Path(path_type=Path),
        section="Output",
        help="File: .csv, .parquet, or as PLINK 2 (.eigenvec, .tsv) [default: print CSV].",
    ),
    option("--json", "as_json", is_flag=True, section="Output", help="Print one JSON object and nothing else."),
    option("--force", is_flag=True, section="Output", help="Replace a file that is there already."),
)


@command(
    "project",
    "gramian project results new.bed --out new.eigenvec",
    "gramian project reference.eigenvec.var new.bed --method least-squares --json",
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=BED)
@option(
    "--method",
    type=click.Choice(METHODS),
    help="oadp corrects for shrinkage [default: oadp, or least-squares without eigenvalues].",
)
@option(
    "--scale",
    type=click.Choice(["auto", "eigenvectors", "scores"]),
    default="auto",
    show_default=True,
    help="Of the numbers: that of the reference's .eigenvec (auto, where known), or of Zv.",
)
@bundle(Matching, "matching", MATCHING)
@bundle(ProjectionOutput, "output", OUTPUT)
@running_options
@click.pass_context
def genotype_project(
    context: click.Context,
    /,
    model: Path,
    file: Path,
    method: str | None,
    scale: str,
    matching: Matching,
    output: ProjectionOutput,
    run: Run,
) -> None:
    """Scores of the samples in FILE (.bed) on the components of MODEL, which were found without them.

    MODEL is the folder that gramian pca wrote to, a model.gramian, or loadings: .eigenvec.var of PLINK, SNP weights of
    smartpca. SNPs are paired by name or position; swapped alleles and other strands are turned, and all that is not
    used is counted. Prints CSV unless --out names a file.

    Exit code: 0 done, 2 wrong use, 3 unusable data.
    """
    output.check()
    loadings = reference(model, matching, run)
    known = loadings.singular_values is not None
    how = method or ("oadp" if known else "least-squares")
    if method is None and not known:
        run.warn(f"{_lacking(matching)}; --method least-squares is used, whose scores shrink")
    if scale == "eigenvectors" and not known:
        raise click.UsageError("--scale eigenvectors needs the eigenvalues of the reference: give --eigenvalues")
    with run.step("Projecting"), noted(run), genotype_errors(input_name(file)):
        found = project(
            loadings,
            open_bed(file),
            how,
            by=matching.by,
            ambiguous=matching.ambiguous,
            min_share=matching.min_share,
        )
    facts = {
        "model": input_name(model),
        "data": input_name(file),
        "samples": len(found.samples),
        "method": how,
        "scale": _scale(found, scale),
        "matching": asdict(found.report),
    }
    _hand_out(run, output, found, scale, facts)


def _lacking(matching: Matching) -> str:
    """What keeps OADP from being used."""
    if matching.eigenvalues is None:
        return "the eigenvalues of the reference are not known: --eigenvalues would allow oadp"
    return "smartpca's eigenvalues are relative: --total-variance beside --eigenvalues would allow oadp"


def reference(model: Path, matching: Matching, run: Run) -> Loadings:
    """Loadings of a folder of results, a model file, a prefix or a file of another program."""
    name = input_name(model)
    with run.step(f"Loading {name}"), genotype_errors(name):
        place = _found(model)
        if place.suffix != Path(MODEL).suffix:
            return read_loadings(place, **matching.reading())
        fitted = persistence.load(place)
        if not isinstance(fitted, GenotypePCA):
            raise ValueError(f"holds a {type(fitted).__name__}; genotypes are projected on a GenotypePCA")
        LOG.info("%s: %s", name, Loadings.of(fitted))
        return Loadings.of(fitted)


def _found(model: Path) -> Path:
    """The file with the loadings: where they are exact, where there is a choice."""
    beside = model.parent / MODEL
    if not model.exists() and model.name == PREFIX and beside.is_file():
        return beside
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


def _scale(found: Projection, scale: str) -> str:
    return "scores" if scale == "scores" or found.eigenvectors is None else "eigenvectors"


def _hand_out(run: Run, output: ProjectionOutput, found: Projection, scale: str, facts: dict[str, Any]) -> None:
    if not output.as_json:
        _print_report(found, facts["scale"], to_error=output.out is None)
    out = output.out
    if out is None or out.suffix.lower() in TABLES:
        hand_out(run, output, "project", _columns(found, facts["scale"]), facts)
        return
    with run.step(f"Writing {out}"), write_errors(out), write_whole_folder(out.parent, overwrite=True) as folder:
        write_projection(found, folder / out.name, scale=scale)
    if output.as_json:
        content = {"command": "project", **facts, "warnings": run.warnings, "out": click.format_filename(out)}
        click.echo(json.dumps(plain(content), allow_nan=False))


def _columns(found: Projection, scale: str) -> Columns:
    values = found.eigenvectors if scale == "eigenvectors" and found.eigenvectors is not None else found.scores
    named = {"FID": found.samples.fid, "IID": found.samples.iid, "SNPS": found.snps_used}
    return {**named, **numbered("PC", values)}


def _print_report(found: Projection, scale: str, to_error: bool) -> None:
    """What became of the SNPs, apart from a table that is printed."""
    report, used = found.report, found.snps_used
    counts = asdict(report)
    rows = [("used", f"of {report.loadings:,} SNPs with loadings", report.used)]
    rows += [("used", word, counts[key]) for key, word in WORDS.items() if counts[key] and key not in LOST]
    rows += [("not used", word, counts[key]) for key, word in WORDS.items() if counts[key] and key in LOST]
    names = dict(zip(("SNPs", "which", "count"), map(list, zip(*rows, strict=True)), strict=True))
    console = Console(stderr=to_error)
    title = (
        f"{len(found.samples):,} samples on {found.scores.shape[1]} components by {found.method}, "
        f"{used.min():,} to {used.max():,} genotypes each, in the scale of {scale}"
    )
    console.print(title, highlight=False, soft_wrap=True)
    console.print(screen_table("", names, most=len(rows)))
