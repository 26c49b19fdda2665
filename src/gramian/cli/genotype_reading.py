"""Genotypes on their way to a command: opened, filtered, labelled, with everything that was left out counted."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from gramian import genetics
from gramian.cli.errors import one_line
from gramian.cli.options import bundle, option
from gramian.cli.output import MAX_CHECKSUM_BYTES
from gramian.cli.reading import InputFile, input_name
from gramian.cli.running import LOG, CommandRun, as_option, data_errors
from gramian.display.report import DataFacts
from gramian.genetics.filters import Filtered, Filters, NothingLeftError, Step, numbered_lines, split_fields
from gramian.genetics.long_range import BUILDS
from gramian.genetics.text import is_number, list_few
from gramian.sources.arrays import refuse_rounding
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import checksum
from gramian.sources.genotype_files import open_genotypes
from gramian.sources.genotype_names import complete_name, join_names, list_genotype_files
from gramian.sources.plink import Genotypes, Samples

PREFIX = "pca"  # of the files whose names other programs know by their endings
READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
SCALINGS = ("plink", "patterson", "price", "none", "smartpca")  # the last is an older name of price
SHARE = click.FloatRange(0, 1)


class BedFile(InputFile):
    """A file of genotypes, by its name with or without its ending; braces and stars stand for several."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        text = complete_name(str(value)) or str(value)
        try:
            absent = [path for path in list_genotype_files(text) if not path.exists()]
        except SourceError as error:
            self.fail(str(error), param, ctx)
        if absent:
            self.fail(f"there is no file {one_line(click.format_filename(absent[0]))!r}", param, ctx)
        return Path(text)


def join_files(context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]) -> Path:
    """Return one path, in which braces stand for the files where there are several."""
    return Path(join_names([str(file) for file in files]))


BED = BedFile()
# a shell makes several words of cohort_chr{1..22}.bed
genotypes_argument = click.argument("file", type=BED, nargs=-1, required=True, callback=join_files)


@dataclass(frozen=True)
class Selection:
    """Which samples and SNPs, by the names of :class:`Filters`; the options have those that PLINK has made familiar."""

    maf: float | None = None
    max_snp_missing: float | None = None
    max_sample_missing: float | None = None
    hwe: float | None = None
    chromosomes: str | None = None
    all_chromosomes: bool = False
    ranges: str | None = None
    exclude_ranges: str | None = None
    extract: Path | None = None
    exclude: Path | None = None
    keep: Path | None = None
    remove: Path | None = None
    long_range: str | None = None

    def filters(self, *, keep_monomorphic: bool = False) -> Filters:
        """The filters that were asked for."""
        if self.all_chromosomes and self.chromosomes is not None:
            raise click.UsageError("--chr and --all-chromosomes contradict each other: leave out one of them")
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if given.pop("all_chromosomes"):
            given["chromosomes"] = "all"
        return Filters(**given, keep_monomorphic=keep_monomorphic)


_filter = partial(option, section="Filters")
FILTERS = (
    _filter("--maf", type=click.FloatRange(0, 0.5), metavar="SHARE", help="SNPs: least minor allele frequency."),
    _filter("--geno", "max_snp_missing", type=SHARE, metavar="SHARE", help="SNPs: most missing calls."),
    _filter("--mind", "max_sample_missing", type=SHARE, metavar="SHARE", help="Samples: most missing calls."),
    _filter("--hwe", type=SHARE, metavar="P", help="SNPs: least exact p-value of the Hardy–Weinberg test."),
    _filter("--chr", "chromosomes", metavar="LIST", help="Chromosomes, as 1-4,22,X [default: 1-22]."),
    _filter("--all-chromosomes", is_flag=True, help="Keep sex chromosomes, MT and unplaced SNPs."),
    _filter("--range", "ranges", metavar="LIST", help="Stretches to keep, as 6:25000000-35000000; or a file."),
    _filter("--exclude-range", "exclude_ranges", metavar="LIST", help="Stretches to leave out."),
    _filter("--extract", type=READABLE, help="File with the ids of the SNPs to keep, one a line."),
    _filter("--exclude", type=READABLE, help="The same, of SNPs to leave out."),
    _filter("--keep", type=READABLE, help="File with FID and IID, or IID, of the samples to keep."),
    _filter("--remove", type=READABLE, help="The same, of samples to leave out."),
    _filter(
        "--exclude-long-range",
        "long_range",
        type=click.Choice(["auto", *BUILDS]),
        help="Leave out known regions of long-range linkage disequilibrium, by build of the genome; auto tells it.",
    ),
)


selection_options = bundle(Selection, "selection", FILTERS)

IDS = ("iid", "id", "sample")
LATITUDE, LONGITUDE = ("latitude", "lat"), ("longitude", "lon", "long", "lng")
ABSENT = frozenset({"", "NA", "NaN", "nan", "."})


@dataclass(frozen=True, eq=False)
class SampleLabels:
    """What is known of the samples besides their genotypes, in their order.

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
    groups: npt.NDArray[np.object_] | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    places: npt.NDArray[np.float64] | None = None
    notes: list[str] = field(default_factory=list)


def read_labels(path: Path, samples: Samples, column: str | None = None) -> SampleLabels:
    """Read columns of the samples from a table between tabs, commas, semicolons, or between white space.

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
    found, notes = read_sample_columns(path, samples)
    places = _take_places(path, found)
    if column is not None and column not in found:
        raise ValueError(f"{path}: there is no column {column!r}; there are {list_few(list(found)) or 'none'}.")
    text = (name for name, values in found.items() if values.dtype == object)
    column = column or next(text, next(iter(found), None))
    groups = None if column is None else found.pop(column)
    if groups is not None and groups.dtype != object:
        groups = _as_objects(["" if value != value else f"{value:g}" for value in groups.tolist()])
    return SampleLabels(column or "population", groups, found, places, notes)


def read_sample_columns(
    path: Path, samples: Samples, missing: Collection[str] = ABSENT
) -> tuple[dict[str, Any], list[str]]:
    """Read the columns of :func:`read_labels` by their names, in the order of the samples, and notes.

    Numbers with NaN where a column has nothing else but what is in ``missing``, or text with "" there.
    """
    lines = list(numbered_lines(path, "labels"))
    first = lines[0][1] if lines else ""
    mark = "" if "\t" in first or not {*first} & {*",;"} else max(",;", key=first.count)
    rows = [(number, _split_cells(line, mark) if mark else split_fields(line)) for number, line in lines]
    if not rows:
        raise ValueError(f"{path}: the file is empty; a header with FID, IID and labels was expected.")
    head = [name.lstrip("#") for name in rows[0][1]]
    for (number, row), (_, line) in zip(rows, lines, strict=True):
        if line.endswith("\t"):  # cells at the end that are empty
            row += [""] * (len(head) - len(row))
        if len(row) != len(head):
            raise ValueError(f"{path}: line {number} has {len(row)} fields; {len(head)} were expected as in line 1.")
    lower, notes = [name.lower() for name in head], []
    iid = next((lower.index(name) for name in IDS if name in lower), None)
    if iid is not None:
        ids = ([lower.index("fid")] if "fid" in lower else []) + [iid]
        del rows[0]
    elif len(head) > 2 and rows[0][1][1] in set(samples.iid):
        ids, head = [0, 1], ["FID", "IID", *(f"label{j or ''}" for j in range(len(head) - 2))]
        taken = f"the first columns are taken for FID and IID, the others for {list_few(head[2:])}."
        notes = [f"there is no header: {taken}"]
    else:
        raise ValueError(f"{path}: line 1: a header with IID, and FID perhaps, was expected; it is {list_few(head)}.")
    twice = sorted({name for name in head if head.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: line 1: columns are named more than once: {list_few(twice)}.")
    if len(head) == len(ids):
        raise ValueError(f"{path}: there are no labels: columns after {' and '.join(head)} were expected.")
    places_of: dict[Any, int] = {}
    for i, (number, row) in enumerate(rows):
        key = tuple(row[j] for j in ids)
        if key in places_of:
            before = rows[places_of[key]][0]
            raise ValueError(f"{path}: line {number}: {' '.join(key)} has a row already, line {before}.")
        places_of[key] = i
    own = [(pair[1],) if len(ids) == 1 else pair for pair in zip(samples.fid, samples.iid, strict=True)]
    order = [places_of.get(key, -1) for key in own]  # −1 where a sample has no row
    without = [" ".join(key) for key, line in zip(own, order, strict=True) if line < 0]
    if len(without) == len(own):
        raise ValueError(
            f"{path}: none of its {len(places_of)} rows is of a sample of the study; it names "
            f"{list_few([' '.join(key) for key in places_of])}, the study {list_few(without)}."
        )
    extra = len(places_of) - len(set(order) - {-1})
    notes += [f"{len(without)} of {len(own)} samples have no row: {list_few(without)}."] if without else []
    notes += [f"{extra} rows are of nobody in the analysis."] if extra else []
    found = {
        name: _as_column(["" if line < 0 else rows[line][1][j] for line in order], missing)
        for j, name in enumerate(head)
        if j not in ids
    }
    return found, notes


def _split_cells(line: str, mark: str) -> list[str]:
    """Cells of a line of a CSV file, which may be quoted."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=mark))]


def _as_column(cells: list[str], missing: Collection[str]) -> Any:
    """Numbers where all that is there is a number that float64 holds, else text: names may be of digits."""
    cells = ["" if cell in missing else cell for cell in cells]
    if not all(is_number(cell) for cell in cells if cell):
        return _as_objects(cells)
    numbers = np.array([float(cell) if cell else np.nan for cell in cells])
    try:
        refuse_rounding(np.array([cell or "0" for cell in cells]))
    except SourceError:
        return _as_objects(cells)
    return numbers


def _as_objects(cells: list[str]) -> npt.NDArray[np.object_]:
    return np.array([*cells, None], dtype=object)[:-1]


def _take_places(path: Path, found: dict[str, Any]) -> npt.NDArray[np.float64] | None:
    """Longitude and latitude, which are taken out of the columns; None where one is not there."""
    lower = {name.lower(): name for name in found}
    names = [next((lower[word] for word in words if word in lower), "") for words in (LONGITUDE, LATITUDE)]
    if "" in names:
        return None
    for name, most in zip(names, (180.0, 90.0), strict=True):
        if found[name].dtype == object or np.nanmax(np.abs(found[name]), initial=0.0) > most:
            raise ValueError(f"{path}: column {name}: degrees between −{most:g} and {most:g} were expected.")
    return np.stack([found.pop(name) for name in names], axis=1)


PROJECTED = ("relatives", "outliers")  # steps whose people are placed by projection
WORDS = {
    "all_missing": "without a call",
    "monomorphic": "of one allele alone",
    "autosomes": "off the autosomes",
    "prune": "--indep-pairwise",
    "relatives": "--king-cutoff",
    "regions": "--find-regions",
    "outliers": "--outliers",
}


@dataclass(frozen=True, eq=False)
class GenotypeStudy:
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
    labels: SampleLabels

    @property
    def source(self) -> Genotypes:
        """What is analysed."""
        return self.filtered.source

    @property
    def notes(self) -> list[str]:
        """What a reader should know of names and labels."""
        return [*map(one_line, self.whole.notes), *(f"labels: {one_line(note)}" for note in self.labels.notes)]

    @property
    def missing(self) -> npt.NDArray[np.float64]:
        """Share of missing calls of each sample that is analysed."""
        return np.asarray(self.source.counts().by_sample[:, 3] / self.source.shape[1])

    def places(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Which samples and SNPs of the whole are analysed; a whole without some SNPs of its file is a view itself."""
        own, whole = self.source, self.whole
        samples = np.searchsorted(whole.sample_index, own.sample_index)
        return samples, np.searchsorted(whole.snp_index, own.snp_index)

    def with_steps(self, source: Genotypes, steps: Iterable[Step]) -> GenotypeStudy:
        """The same with what later steps left, in the same account."""
        return replace(self, filtered=replace(self.filtered, source=source, steps=(*self.filtered.steps, *steps)))

    def count_monomorphic(self, uncalled: bool) -> int:
        """SNPs that the filters left out as all have the same calls, or nobody has one."""
        names = ("all_missing", "monomorphic") if uncalled else ("monomorphic",)
        return sum(step.removed for step in self.filtered.steps if step.name in names)

    def dropped(self) -> dict[str, int]:
        """How many SNPs were left out, by reason."""
        found: Counter[str] = Counter()
        for step in self.filtered.steps:
            found[_reason(step.name)] += step.removed * (step.of == "SNPs")
        return {_reason(s.name): found[_reason(s.name)] for s in self.filtered.steps if s.of == "SNPs"}

    def counts(self) -> dict[str, int]:
        """Samples and SNPs in the file, left out by each filter, and used."""
        (n, p), (kept_n, kept_p) = self.whole.shape, self.source.shape
        found: Counter[str] = Counter({"Samples in the file": n, "SNPs in the file": p})
        for step in self.filtered.steps:
            if step.removed:
                what = "SNPs" if step.of == "SNPs" else "Samples"
                projected = step.name in PROJECTED
                reason = (
                    f"left out of the fit {_reason(step.name)}, and projected"
                    if projected
                    else f"left out, {_reason(step.name)}"
                )
                found[f"{what} {reason}"] += step.removed
        return {**found, "Samples used": kept_n, "SNPs used": kept_p}

    def account(self) -> dict[str, Any]:
        """The filters as a table, under the names of the options."""
        columns = dict(self.filtered.table())
        columns["filter"] = [name_filter(Argument(name)) for name in columns["filter"]]
        return columns


def name_filter(argument: Argument) -> str:
    """The option of a filter, or what it leaves out where no option asked for it."""
    return WORDS.get(argument.name) or as_option(argument)


def _reason(name: str) -> str:
    word = WORDS.get(name)
    return word if word and not word.startswith("--") else f"by {word or as_option(Argument(name))}"


def describe_files(path: Path) -> tuple[int, str, list[str]]:
    """Bytes of the files that a path stands for, their checksum where there is one, and why there is none."""
    files = list_genotype_files(path)
    size = sum(file.stat().st_size for file in files)
    if len(files) > 1:
        return size, "", [f"{len(files)} files read as one, the first {files[0].name}; no checksum"]
    if files[0].is_dir() or size > MAX_CHECKSUM_BYTES:
        return size, "", ["no checksum: the file is large" if files[0].is_file() else "no checksum of a folder"]
    return size, checksum(files[0]), []


class GenotypeFacts(DataFacts):
    """What was fitted on, in samples and SNPs."""

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.rows:,} sample{'s' * (self.rows != 1)} × {self.columns:,} SNP{'s' * (self.columns != 1)}"


def prepare_study(
    path: Path,
    selection: Selection,
    labels: tuple[Path | None, str | None],
    run: CommandRun,
    *,
    keep_monomorphic: bool = False,
    cohort: bool = False,
) -> GenotypeStudy:
    """Open, filter (``cohort``: people not by SNPs that many lack) and label; exit code 3 where that cannot be."""
    name = input_name(path)
    with run.step(f"Reading {name}"), data_errors(name):
        whole = open_genotypes(path)
    with run.step("Filtering"), data_errors(name), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what is told below
        try:
            filters = selection.filters(keep_monomorphic=keep_monomorphic)
            filtered = genetics.filter_cohort(whole, filters) if cohort else filters.apply(whole)
        except NothingLeftError as error:
            raise ValueError(error.text(name_filter)) from error
    for argument, remark in filtered.remarks:
        run.warn(f"{as_option(Argument(argument))}: {remark}")
    for step in filtered.steps:
        LOG.info("%s: %d %s removed, %d left %s", step.name, step.removed, step.of, step.left, step.detail)
    file, column = labels
    found = SampleLabels()
    if file is not None:
        with data_errors(input_name(file)):
            found = read_labels(file, filtered.source.samples, column)
    return GenotypeStudy(path, whole, filtered, found)
