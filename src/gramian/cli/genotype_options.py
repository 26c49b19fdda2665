"""Genotypes on their way to a fit: opened, filtered, labelled, with everything that was left out counted."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from click.shell_completion import CompletionItem
from numpy.typing import NDArray

from gramian.cli.errors import data_errors, one_line
from gramian.cli.group import is_prefix
from gramian.cli.options import NAMES, ParamType, bundle, option
from gramian.cli.output import CERTIFICATE, MODEL, REPORT, Output, refuse_existing
from gramian.cli.reading import input_name
from gramian.cli.running import LOG, Report, Run
from gramian.compute.memory import gibibytes
from gramian.compute.threads import n_threads
from gramian.genetics.files import FORMATS, result_files
from gramian.genetics.filters import Filtered, Filters, few, numbered_lines
from gramian.genetics.pca import SEEN, Progress, rule
from gramian.sources import memory_budget
from gramian.sources.plink import Genotypes, Samples, open_bed

__all__ = [
    "BED",
    "OPTION_NAMES",
    "PREFIX",
    "Fitting",
    "GenotypeOutput",
    "Labels",
    "Plan",
    "Selection",
    "Study",
    "as_genotype_options",
    "fitting_options",
    "genotype_errors",
    "genotype_output_options",
    "noted",
    "planned",
    "predicted_memory",
    "prepared",
    "read_labels",
    "selection_options",
    "watcher",
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


TILE = 2**22  # bytes of decoded genotypes, of which a thread holds a few
HELD = 4
LEAST_SNPS = 32  # of a tile
NAMES_GENOTYPE_MEMORY, TEXT, PEOPLE = (
    180,
    460,
    260,
)  # bytes of a SNP's names, while its text is parsed, and of a sample's
COUNTS = 300  # bytes of a SNP's counts, mean, divisor and indices
VECTORS = 40  # blocks of vectors of a Krylov basis and of what is made of it
GRAM_ROWS = 1024  # SNPs decoded for one update of ZZᵀ
PINNED = 2**27  # bytes of a buffer that genotypes go to a card through


@dataclass(frozen=True)
class Plan:
    """The solver to ask for, and the bytes it will take beyond the program itself."""

    solver: str
    nbytes: int

    @property
    def text(self) -> str:
        """The prediction in words."""
        return f"predicted working memory {gibibytes(self.nbytes)}"


def predicted_memory(
    shape: tuple[int, int], file_shape: tuple[int, int], k: int, exact: bool, threads: int, on_card: bool = False
) -> int:
    r"""Bytes that a fit takes at its peak, beyond the program itself and without the mapped file.

    Names and counts of p SNPs, tiles of every thread, and either four n×n matrices or a Krylov basis of blocks of b
    vectors with what is computed from it:

    .. math:: \text{names} + (300 + 12b)\,p + \text{tiles} + \begin{cases}32n^2\\ \min(320\,nb,\ 3B)\end{cases}

    B being the quarter of the working memory that the basis may take. It errs on the large side. A card keeps tiles,
    matrices and basis to itself, and leaves two pinned buffers and a few vectors here.

    Examples
    --------
    >>> from gramian.cli.genotype_options import predicted_memory
    >>> predicted_memory((3192, 500_568), (3192, 500_568), 10, exact=False, threads=2) < 2**30
    True
    """
    (n, p), (n_file, p_file) = shape, file_shape
    block = -(-(k + 2) // 8) * 8
    names = PEOPLE * n_file + NAMES_GENOTYPE_MEMORY * p_file
    tiles = threads * HELD * max(TILE, LEAST_SNPS * 4 * n)
    basis = min(8 * VECTORS * n * block, 3 * memory_budget() // 4)
    solving = 32 * n * n + 8 * GRAM_ROWS * n if exact else basis
    if on_card:
        tiles, solving = 2 * PINNED, 32 * n * block
    return int(max(names + (COUNTS + 12 * block) * p + tiles + solving, TEXT * p_file))


def planned(
    source: Genotypes, file_shape: tuple[int, int], k: int, solver: str, ceiling: int | None, on_card: bool = False
) -> Plan:
    """Choose the solver that keeps below the ceiling; exit code 2 where none does."""
    sizes = source.shape, file_shape, k
    least, most = (predicted_memory(*sizes, exact, n_threads(), on_card) for exact in (False, True))
    choice = rule(*source.shape, k)
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
    return Plan(solver, max(need, least))


Text = npt.NDArray[np.object_]

IDS = ("iid", "id", "sample")
LATITUDE, LONGITUDE = ("latitude", "lat"), ("longitude", "lon", "long", "lng")
ABSENT = frozenset({"", "NA", "NaN", "nan", "."})


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of the samples beside their genotypes, in their order.

    Attributes
    ----------
    name : str
        Of the column by which samples are grouped.
    groups : ndarray of str or None
        That column, "" where unknown.
    columns : dict of str to ndarray
        The others: numbers with NaN, or text with "".
    places : ndarray of shape (n, 2) or None
        Longitude and latitude in degrees, NaN where unknown.
    notes : list of str
        Samples without a row, and rows without a sample.
    """

    name: str = "population"
    groups: Text | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    places: npt.NDArray[np.float64] | None = None
    notes: list[str] = field(default_factory=list)


def read_labels(path: Path, samples: Samples, column: str | None = None) -> Labels:
    """Read columns of the samples from a table between tabs, or between white space where there are none.

    Parameters
    ----------
    path : Path
        A header with IID, and FID perhaps, then a row for each sample in any order. Without a header the first two
        columns are FID and IID.
    samples : Samples
        Whose rows are wanted.
    column : str, optional
        By which samples are grouped; the first column of text that is no coordinate, by default.

    Returns
    -------
    Labels
        In the order of the samples.
    """
    header, rows, taken = _rows(path, samples)
    keys, first = _keys(path, header, rows)
    order, notes = _matched(path, keys, samples)
    found = {name: _values([row[j] for _, row in rows], order) for j, name in enumerate(header) if j >= first}
    places = _places(path, found)
    grouping = _grouping(path, found, column)
    groups = None if grouping is None else _as_text(found.pop(grouping))
    return Labels(grouping or "population", groups, found, places, [*taken, *notes])


def _rows(path: Path, samples: Samples) -> tuple[list[str], list[tuple[int, list[str]]], list[str]]:
    """The names of the columns, FID and IID first; the rows with the numbers of their lines; a note if no header."""
    rows = [(number, _fields(line)) for number, line in numbered_lines(path, "labels")]
    if not rows:
        raise ValueError(f"{path}: the file is empty; a header with FID, IID and labels was expected.")
    for number, row in rows:
        if len(row) != len(rows[0][1]):
            raise ValueError(
                f"{path}: line {number} has {len(row)} fields; {len(rows[0][1])} were expected as in the first line."
            )
    head = [name.lstrip("#") for name in rows[0][1]]
    lower = [name.lower() for name in head]
    own = next((lower.index(name) for name in IDS if name in lower), None)
    if own is not None:
        ahead = ([lower.index("fid")] if "fid" in lower else []) + [own]
        order = [*ahead, *(j for j in range(len(head)) if j not in ahead)]
        names = ["FID", "IID"][-len(ahead) :] + [head[j] for j in order[len(ahead) :]]
        return _unique(path, names), [(number, [row[j] for j in order]) for number, row in rows[1:]], []
    if len(head) > 2 and rows[0][1][1] in set(samples.iid):
        names = [f"label{j or ''}" for j in range(len(head) - 2)]
        note = f"there is no header: the first columns are taken for FID and IID, the others for {few(names)}."
        return ["FID", "IID", *names], rows, [note]
    raise ValueError(f"{path}: line 1: a header with IID, and FID perhaps, was expected; it is {few(head)}.")


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split("\t")] if "\t" in line else line.split()


def _unique(path: Path, names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: line 1: columns are named more than once: {few(twice)}.")
    return names


def _keys(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> tuple[dict[Any, int], int]:
    """The row of each sample, by (FID, IID) or by IID alone, and how many columns name it."""
    first = 2 if header[0] == "FID" else 1
    if len(header) == first:
        raise ValueError(f"{path}: there are no labels: columns after {' and '.join(header)} were expected.")
    keys: dict[Any, int] = {}
    for i, (number, row) in enumerate(rows):
        key = tuple(row[:first])
        if key in keys:
            raise ValueError(f"{path}: line {number}: {' '.join(key)} has a row already, line {rows[keys[key]][0]}.")
        keys[key] = i
    return keys, first


def _matched(path: Path, keys: dict[Any, int], samples: Samples) -> tuple[list[int], list[str]]:
    """The row of each sample, −1 where there is none."""
    alone = len(next(iter(keys), ("", ""))) == 1
    own = [(iid,) if alone else (fid, iid) for fid, iid in zip(samples.fid, samples.iid, strict=True)]
    order = [keys.get(key, -1) for key in own]
    without = [" ".join(key) for key, row in zip(own, order, strict=True) if row < 0]
    if len(without) == len(own):
        raise ValueError(
            f"{path}: none of its {len(keys)} rows is of a sample of the study; it names "
            f"{few([' '.join(key) for key in keys])}, the study {few([' '.join(key) for key in own])}."
        )
    extra = len(keys) - len(set(order) - {-1})
    notes = [f"{len(without)} of {len(own)} samples have no row: {few(without)}."] if without else []
    return order, notes + ([f"{extra} rows are of nobody in the analysis."] if extra else [])


def _values(cells: Sequence[str], order: list[int]) -> Any:
    """A column in the order of the samples: numbers where all that is there is a number."""
    own = ["" if row < 0 or cells[row] in ABSENT else cells[row] for row in order]
    try:
        return np.array([float(cell) if cell else np.nan for cell in own])
    except ValueError:
        return np.array([*own, None], dtype=object)[:-1]


def _as_text(values: Any) -> Text:
    if values.dtype == object:
        return np.asarray(values)
    return np.array([*("" if v != v else f"{v:g}" for v in values.tolist()), None], dtype=object)[:-1]


def _places(path: Path, found: dict[str, Any]) -> npt.NDArray[np.float64] | None:
    """Longitude and latitude, which are taken from the columns."""
    lower = {name.lower(): name for name in found}
    names = [next((lower[word] for word in words if word in lower), None) for words in (LONGITUDE, LATITUDE)]
    if names[0] is None or names[1] is None:
        return None
    for name, most in zip(names, (180.0, 90.0), strict=True):
        values = found[str(name)]
        if values.dtype == object or np.nanmax(np.abs(values), initial=0.0) > most:
            raise ValueError(f"{path}: column {name}: degrees between −{most:g} and {most:g} were expected.")
    return np.stack([found.pop(str(name)) for name in names], axis=1)


def _grouping(path: Path, found: dict[str, Any], column: str | None) -> str | None:
    if column is None:
        return next((name for name, values in found.items() if values.dtype == object), next(iter(found), None))
    if column not in found:
        raise ValueError(f"{path}: there is no column {column!r}; there are {few(list(found)) or 'none'}.")
    return column


OPTION_NAMES = {
    "max_snp_missing": "--geno",
    "max_sample_missing": "--mind",
    "chromosomes": "--chr",
    "ranges": "--range",
    "exclude_ranges": "--exclude-range",
    **{name: f"--{name}" for name in ("maf", "hwe", "extract", "exclude", "keep", "remove")},
}
WORDS = {"all_missing": "without a call", "monomorphic": "of one allele alone"}
USUAL, EARLY = 13.0, 0.5  # passes that a fit takes as a rule, and residuals that say nothing yet
# advice on arguments of Python as advice on options
ADVICE = (
    (r"\bmax_sample_missing below 1", "--mind below 1"),
    (r"\bname them in remove\b", "name them in a file for --remove"),
    (r" \(gramian\.genetics\.Filters\(max_sample_missing=0\.5\), or --mind 0\.5 on the command line\)", ": --mind 0.5"),
    (r"\bchromosomes='all'", "--all-chromosomes"),
    (r"\bn_components=(\d+)", r"-k \1"),
    (r"\bmin_share = ", "--min-share "),
    (r"\bA smaller min_share\b", "A smaller --min-share"),
    (r"\b(missing|solver|method|precision)=['\"]([\w-]+)['\"]", r"--\1 \2"),
    (r"\btol=(\S+) or max_passes=(\d+)", r"--tol \1 or --max-passes \2"),
    (r"\b[Gg]ive read_loadings the (.*?) as snps", r"give the \1 as --snps"),
    (
        r"\bGive read_loadings eigenvalues \(and total_variance for smartpca\)",
        "Give --eigenvalues (and --total-variance for smartpca)",
    ),
    (r"\bName the reference's \.afreq or \.frq file", "Give the reference's .afreq or .frq file as --frequencies"),
    (r"; ids themselves are given as a list, not as a string", ""),
)


def as_genotype_options(text: str) -> str:
    """Return advice on arguments of Python as advice on options.

    Examples
    --------
    >>> from gramian.cli.genotype_options import as_genotype_options
    >>> as_genotype_options("Raise tol=1e-05 or max_passes=3, or use solver='exact'.")
    'Raise --tol 1e-05 or --max-passes 3, or use --solver exact.'
    """
    for pattern, advice in ADVICE:
        text = re.sub(pattern, advice, text)
    # filters are named at the start of a complaint, and where one is said to have removed something
    named = r"^(\w+)(?=: )|(?<=\bafter the filter )(\w+)|\b(\w+)(?= removed \d)"
    return re.sub(named, lambda found: OPTION_NAMES.get(found[0], WORDS.get(found[0], found[0])), text)


@contextmanager
def genotype_errors(name: str) -> Iterator[None]:
    """Turn what is refused into one line, the lines of a table set apart, and exit code 3."""
    with data_errors(name):
        try:
            yield
        except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
            if isinstance(error, PermissionError):
                raise
            lines = [one_line(line).rstrip(".:") for line in str(error).splitlines() if line.strip()]
            raise ValueError(as_genotype_options("; ".join(lines)) or type(error).__name__) from error


@contextmanager
def noted(run: Run) -> Iterator[None]:
    """Pass warnings on, their advice on arguments of Python as advice on options."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield
    for warning in caught:
        run.warn(as_genotype_options(str(warning.message)))


@dataclass(frozen=True, eq=False)
class Study:
    """A fileset, what of it is analysed, and what is known of the samples.

    Attributes
    ----------
    path : Path
        The .bed file.
    whole : Genotypes
        All of it.
    filtered : Filtered
        What passed the filters, and an account of the rest.
    labels : Labels
        Populations and more, empty where there are none.
    """

    path: Path
    whole: Genotypes
    filtered: Filtered
    labels: Labels

    @property
    def source(self) -> Genotypes:
        """What is analysed."""
        return self.filtered.source

    @property
    def notes(self) -> list[str]:
        """What a reader should know of names and labels."""
        return [*map(one_line, self.whole.notes), *(f"labels: {one_line(note)}" for note in self.labels.notes)]

    @property
    def missing(self) -> NDArray[np.float64]:
        """Share of missing calls of each sample that is analysed."""
        return np.asarray(self.source.counts().by_sample[:, 3] / self.source.shape[1])

    def dropped(self) -> dict[str, int]:
        """How many SNPs were left out, by reason."""
        return {_reason(s.name): s.removed for s in self.filtered.steps if s.of == "SNPs"}

    def counts(self) -> dict[str, int]:
        """Samples and SNPs in the file, left out by each filter, and used."""
        (n, p), (kept_n, kept_p) = self.whole.shape, self.source.shape
        lost = [(s.of, _reason(s.name), s.removed) for s in self.filtered.steps if s.removed]
        found = {"Samples in the file": n, "SNPs in the file": p}
        found |= {f"{'SNPs' if of == 'SNPs' else 'Samples'} left out, {why}": count for of, why, count in lost}
        return found | {"Samples used": kept_n, "SNPs used": kept_p}

    def account(self) -> dict[str, Any]:
        """The filters as a table, under the names of the options."""
        columns = dict(self.filtered.table())
        columns["filter"] = [WORDS.get(name, OPTION_NAMES.get(name, name)) for name in columns["filter"]]
        return columns


def _reason(name: str) -> str:
    return WORDS.get(name, f"by {OPTION_NAMES.get(name, name)}")


def prepared(path: Path, filters: Filters, labels: tuple[Path | None, str | None], run: Run) -> Study:
    """Open, filter and label; exit code 3 with one line where that cannot be."""
    name = input_name(path)
    with run.step(f"Reading {name}"), genotype_errors(name):
        whole = open_bed(path)
    with run.step("Filtering"), noted(run), genotype_errors(name):
        filtered = filters.apply(whole)
    for step in filtered.steps:
        LOG.info("%s: %d %s removed, %d left %s", step.name, step.removed, step.of, step.left, step.detail)
    file, column = labels
    if file is None:
        return Study(path, whole, filtered, Labels())
    with genotype_errors(input_name(file)):
        found = read_labels(file, filtered.source.samples, column)
    return Study(path, whole, filtered, found)


def watcher(report: Report, tol: float, most: int) -> Callable[[Progress], None]:
    """Return what a fit calls with its progress: passes done of those expected, and the residual.

    Where the number of passes is not known it is guessed: the digits of the residual that are won so far, per pass. The
    bar never runs backwards.

    Examples
    --------
    >>> from gramian.cli.genotype_options import watcher
    >>> from gramian.genetics.pca import Progress
    >>> watcher(lambda *said: print(*said), 1e-6, 200)(Progress("iterating", 12.0, None, 1e-3))
    500 1000 Fitting: pass 12.0 of about 24, residual 1.0e-03
    """
    reached = 0

    def tell(progress: Progress) -> None:
        nonlocal reached
        if progress.stage == "counting":
            return
        expected = progress.expected or _expected(progress, tol, most)
        reached = max(reached, min(round(1000 * progress.passes / expected), 999))
        about = "" if progress.expected else "about "
        residual = "" if progress.residual is None else f", residual {progress.residual:.1e}"
        report(reached, 1000, f"Fitting: pass {progress.passes:.1f} of {about}{expected:.0f}{residual}")

    return tell


def _expected(progress: Progress, tol: float, most: int) -> float:
    passes, residual = progress.passes, progress.residual
    if residual is None or not tol < residual < EARLY:
        return max(USUAL, passes + 1)
    guess = passes * np.log(tol) / np.log(residual)
    if passes < SEEN:
        guess = min(guess, USUAL)
    return float(np.clip(guess, passes + 0.5, max(most, passes + 0.5)))
