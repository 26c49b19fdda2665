"""Options of the commands for genotypes: which samples and SNPs, how to fit, what to write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gramian.cli.errors import one_line
from gramian.cli.group import is_prefix
from gramian.cli.options import NAMES, ParamType, bundle, option
from gramian.cli.outputs import refuse_existing
from gramian.cli.publishing import CERTIFICATE, MODEL, REPORT, Output
from gramian.genetics.files import FORMATS, result_files
from gramian.genetics.filters import Filters

__all__ = [
    "BED",
    "PREFIX",
    "Fitting",
    "GenotypeOutput",
    "Selection",
    "fitting_options",
    "genotype_output_options",
    "selection_options",
]

PREFIX = "pca"  # of the files whose names other programs know by their endings
READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
SCALINGS = ("plink", "patterson", "smartpca", "none")
SHARE = click.FloatRange(0, 1)


class BedFile(ParamType):
    """A PLINK fileset, named by its .bed file or by what its three files have in common."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path of the .bed file."""
        text = str(value)
        if not Path(text).exists() and not is_prefix(text):
            self.fail(f"there is no file {one_line(click.format_filename(text))!r}", param, ctx)
        return Path(f"{text}.bed" if is_prefix(text) else text)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete names of files."""
        return [CompletionItem(incomplete, type="file")]


BED = BedFile()


@dataclass(frozen=True)
class Selection:
    """Which samples and SNPs, under the names that PLINK has made familiar."""

    maf: float | None = None
    geno: float | None = None
    mind: float | None = None
    hwe: float | None = None
    chromosomes: str | None = None
    all_chromosomes: bool = False
    ranges: str | None = None
    exclude_ranges: str | None = None
    extract: Path | None = None
    exclude: Path | None = None
    keep: Path | None = None
    remove: Path | None = None

    def filters(self) -> Filters:
        """The filters that were asked for."""
        if self.all_chromosomes and self.chromosomes is not None:
            raise click.UsageError("--chr and --all-chromosomes contradict each other: leave out one of them")
        return Filters(
            maf=self.maf,
            max_snp_missing=self.geno,
            max_sample_missing=self.mind,
            hwe=self.hwe,
            chromosomes="all" if self.all_chromosomes else self.chromosomes or "1-22",
            ranges=self.ranges,
            exclude_ranges=self.exclude_ranges,
            extract=self.extract,
            exclude=self.exclude,
            keep=self.keep,
            remove=self.remove,
        )


def _filter(*names: str, **settings: Any) -> Any:
    return option(*names, section="Filters", **settings)


FILTERS = (
    _filter("--maf", type=click.FloatRange(0, 0.5), metavar="SHARE", help="SNPs: least minor allele frequency."),
    _filter("--geno", type=SHARE, metavar="SHARE", help="SNPs: most missing calls."),
    _filter("--mind", type=SHARE, metavar="SHARE", help="Samples: most missing calls."),
    _filter("--hwe", type=SHARE, metavar="P", help="SNPs: least exact p-value of the Hardy–Weinberg test."),
    _filter("--chr", "chromosomes", metavar="LIST", help="Chromosomes, as 1-4,22,X [default: 1-22]."),
    _filter("--all-chromosomes", is_flag=True, help="Keep sex chromosomes, MT and unplaced SNPs."),
    _filter("--range", "ranges", metavar="LIST", help="Stretches to keep, as 6:25000000-35000000; or a file."),
    _filter("--exclude-range", "exclude_ranges", metavar="LIST", help="Stretches to leave out."),
    _filter("--extract", type=READABLE, help="File with the ids of the SNPs to keep, one a line."),
    _filter("--exclude", type=READABLE, help="The same, of SNPs to leave out."),
    _filter("--keep", type=READABLE, help="File with FID and IID, or IID, of the samples to keep."),
    _filter("--remove", type=READABLE, help="The same, of samples to leave out."),
)


def selection_options(function: Any) -> Any:
    """Add the filters; the command is handed a :class:`Selection` as ``selection``."""
    return bundle(Selection, "selection", FILTERS)(function)


@dataclass(frozen=True)
class Fitting:
    """How components are found."""

    components: int = 10
    scaling: str = "plink"
    solver: str = "auto"
    exact: bool = False
    missing: str = "mean"
    tol: float = 1e-4
    max_passes: int = 200

    @property
    def wanted(self) -> str:
        """The solver that was asked for."""
        if self.exact and self.solver == "krylov":
            raise click.UsageError("--exact and --solver krylov contradict each other: leave out one of them")
        if self.missing == "pairwise" and self.solver == "krylov":
            raise click.UsageError("--missing pairwise needs the whole matrix: leave out --solver krylov")
        return "exact" if self.exact or self.missing == "pairwise" else self.solver


FIT = (
    option(
        "-k",
        "--components",
        type=click.IntRange(min=1),
        default=10,
        metavar="NUMBER",
        show_default=True,
        help="How many.",
    ),
    option(
        "--scaling",
        type=click.Choice(SCALINGS),
        default="plink",
        show_default=True,
        help="What centred genotypes are divided by: √(2f(1−f)), √(f(1−f)), smartpca's, or nothing.",
    ),
    option(
        "--missing",
        type=click.Choice(["mean", "pairwise", "least-squares"]),
        default="mean",
        show_default=True,
        help="Missing genotypes: the SNP's mean; pairs of samples by the calls they share, as PLINK; each "
        "sample's scores fitted to its calls, as smartpca.",
    ),
    option("--solver", type=click.Choice(["auto", "exact", "krylov"]), default="auto", show_default=True),
    option("--exact", is_flag=True, help="The same as --solver exact: all eigenvalues, by ZZᵀ."),
    option(
        "--tol",
        type=click.FloatRange(1e-12, 1, max_open=True),
        default=1e-4,
        show_default=True,
        metavar="NUMBER",
        help="Residual to reach by components that stand out of the noise.",
    ),
    option(
        "--max-passes",
        type=click.IntRange(min=2),
        default=200,
        show_default=True,
        metavar="NUMBER",
        help="Most passes over the genotypes.",
    ),
)


def fitting_options(function: Any) -> Any:
    """Add the options of the fit; the command is handed a :class:`Fitting` as ``fitting``."""
    return bundle(Fitting, "fitting", FIT)(function)


@dataclass(frozen=True, kw_only=True)
class GenotypeOutput(Output):
    """Where results of a genotype PCA go, and in which forms."""

    format: str = "tsv"
    formats: tuple[str, ...] = ("plink2",)
    quality: bool = False

    def check_names(self, pictures: list[str], more: list[str]) -> None:
        """Exit 2 where there is no place to write to, a form that nobody knows, or something is there already."""
        try:
            coded = [path.name for path in result_files(PREFIX, self.formats)]
        except ValueError as error:
            text = re.sub(r"^formats=.*?: ", "", str(error)).replace(
                "write to two prefixes", "run it again for another --out"
            )
            raise click.UsageError(f"--formats {','.join(self.formats)}: {text}") from None
        if self.out is None and not self.as_json:
            raise click.UsageError("results need a folder: add --out FOLDER, or --json to print them only")
        page = [] if self.no_report else [REPORT]
        drawn = [] if self.no_pictures else pictures
        if self.out is not None:
            refuse_existing(self.out, [*coded, *more, MODEL, CERTIFICATE, *page, *drawn], self.force)


def _output(*names: str, **settings: Any) -> Any:
    return option(*names, section="Output", **settings)


OUTPUT = (
    _output("-o", "--out", type=click.Path(path_type=Path), help="Folder for the results."),
    _output(
        "--formats",
        type=NAMES,
        metavar="NAMES",
        default="plink2",
        show_default=True,
        help=f"Of eigenvectors and loadings, with commas between: {', '.join(FORMATS)}.",
    ),
    _output("--quality", is_flag=True, help="Write tables of the quality of every SNP and sample."),
    _output("--no-report", is_flag=True, help="Leave out report.html."),
    _output("--no-pictures", is_flag=True, help="Leave out the pictures."),
    _output("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."),
    _output("--force", is_flag=True, help="Replace results that are there already."),
)


def genotype_output_options(function: Any) -> Any:
    """Add the options for results; the command is handed a :class:`GenotypeOutput` as ``output``."""
    return bundle(GenotypeOutput, "output", OUTPUT)(function)
