"""What commands read: tables and their columns, model files, how values were observed; and the kernel that is meant."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.shell_completion import CompletionItem
from numpy.typing import NDArray

from gramian import kernels, persistence
from gramian.cli.errors import one_line
from gramian.cli.options import NAMES, NumbersType, ParamType, bundle, option, standardise_option
from gramian.cli.running import LOG, CommandRun, data_errors
from gramian.inputs.progress import Progress
from gramian.results.quality import warn_of_units
from gramian.sources import Block, DenseSource, Source, memory_budget
from gramian.sources.columns import CATEGORICAL, DATES, open_records
from gramian.sources.files import TABULAR, find_address, hide_password, suffix_of
from gramian.sources.genotype_names import is_genotype_name, list_genotype_files
from gramian.sources.marks import MissingMarks
from gramian.sources.parts import is_pattern
from gramian.sources.tables import Table, read_table

MAX_COLOURS = 40  # columns of the table by which a report can colour its points


class ReportingSource(Source):
    """A source in a file that reports how far each pass over it is.

    Parameters
    ----------
    source : Source
        What is read.
    report : Progress
        Called with the rows so far, and all of them, after each block.
    """

    resident = False

    def __init__(self, source: Source, report: Progress) -> None:
        self.source, self.report = source, report
        self.shape, self.dtype, self.xp = source.shape, source.dtype, source.xp
        self.feature_names, self.sparse = source.feature_names, source.sparse

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of the source's blocks."""
        return self.source.row_spans(rows)

    def share(self, rows: int | None, start: int, stop: int, along: list[Any]) -> Any:
        """Return the source's own part: what other processes read is not watched."""
        return self.source.share(rows, start, stop, along)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the blocks of the source."""
        for block in self.source.blocks(rows):
            yield block
            self.report(block.stop, self.shape[0], "")


def report_reading(source: Source, report: Progress) -> Source:
    """Watch what is read from a file; what is in memory is as it was."""
    return source if source.resident else ReportingSource(source, report)


def load_into_memory(source: Source) -> Source:
    """Hold a table of modest size in memory, which shuffling its columns needs."""
    n, p = source.shape
    if source.resident or 8 * n * p > memory_budget():
        return source
    return DenseSource(read_rows(source), source.feature_names)


def read_rows(source: Source) -> NDArray[np.float64]:
    """Return all rows as a dense array of float64."""
    out = np.empty(source.shape)
    for block in source.blocks():
        out[block.start : block.stop] = block.values.toarray() if source.sparse else block.values
    return out


def colour_columns(source: Source) -> dict[str, Any] | None:
    """Return the first columns by name, of a table in memory, for points to be coloured by."""
    if not source.resident or source.sparse:
        return None
    names = (source.feature_names or [])[:MAX_COLOURS]
    values = np.asarray(source.values)[:, : len(names)]
    return {name: values[:, j] for j, name in enumerate(names)}


def measure_columns(source: Source) -> NDArray[np.float64] | None:
    """Standard deviations of the columns of a dense table in memory, of the cells that are there."""
    if not source.resident or source.sparse or source.shape[0] < 2:
        return None
    with warnings.catch_warnings():  # a column without cells has none
        warnings.simplefilter("ignore", RuntimeWarning)
        spread: NDArray[np.float64] = np.nanstd(np.asarray(source.values, dtype=np.float64), axis=0, ddof=1)
    return np.nan_to_num(spread)


TAB_NAMES = ("tab", "\\t")


@dataclass(frozen=True)
class ReadingOptions:
    """Which columns are read, what they mean, and how the file is written."""

    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    target: str | None = None
    label: str | None = None
    id: str | None = None
    categorical: str = "label"
    dates: str = "text"
    missing: str = "keep"
    na_values: tuple[str, ...] = ()
    keep_empty: bool = False
    delimiter: str | None = None
    decimal: str | None = None
    no_header: bool = False
    encoding: str | None = None
    dataset: str | None = None
    sql: str | None = None


class InputFile(ParamType):
    """A file or folder that exists, perhaps with the dataset in it that is meant (x.h5::name); - is standard input.

    A pattern (parts/*.parquet) stands for the files that it matches, which are one table.
    """

    name = "file"

    def __init__(self, *, models: bool = False) -> None:
        self.models = models

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        text = str(value)
        name = text.partition("::")[0]
        if (
            text not in ("-", ":memory:")
            and not find_address(text)
            and not (
                Path(text).exists()
                or Path(name).exists()
                or (is_pattern(name) and glob.glob(name))
                or (is_genotype_name(name) and all(path.exists() for path in list_genotype_files(name)))
            )
        ):
            self.fail(f"there is no file {one_line(click.format_filename(text))!r}", param, ctx)
        if not self.models and name.endswith(Path(MODEL).suffix) and Path(name).is_file():
            told = f"{input_name(Path(name))!r} is a fitted model, not a table"
            self.fail(f"{told}: gramian info says what is in it, project and predict take new rows to it", param, ctx)
        if is_results_folder(Path(name)) and not self.models:
            tables = sorted(path.name for path in Path(name).iterdir() if path.suffix in (".csv", ".parquet"))
            first = (*[table for table in tables if table.startswith("scores")], *tables, MODEL)[0]
            told = f"{input_name(Path(name))!r} is a folder of results"
            self.fail(f"{told}: name the table that is meant, as {input_name(Path(name, first))}", param, ctx)
        return Path(name, MODEL) if is_results_folder(Path(name)) else Path(text)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete names of files."""
        return [CompletionItem(incomplete, type="file")]


MODEL = "model.gramian"  # the name of fitted models in folders of results


def is_results_folder(path: Path) -> bool:
    """Whether a command has written its results there."""
    return path.is_dir() and (path / MODEL).is_file()


FILE, ANY_FILE = InputFile(), InputFile(models=True)


def input_name(file: Path) -> str:
    """What a file is called in messages and reports."""
    if str(file) == "-":
        return "standard input"
    return one_line(hide_password(find_address(file)) or click.format_filename(file))


def parse_marks(texts: Sequence[str]) -> MissingMarks:
    """Return what marks missing cells, in all columns or, as age=99, in one.

    Examples
    --------
    >>> from gramian.cli.reading import parse_marks
    >>> parse_marks(["-999", "age=98", "age=99"])
    MissingMarks(everywhere=('-999',), columns={'age': ('98', '99')})
    """
    everywhere, columns = [], dict[str, tuple[str, ...]]()
    for text in texts:
        name, mark, value = text.rpartition("=")
        if mark and name:
            columns[name] = (*columns.get(name, ()), value)
        else:
            everywhere.append(text)
    return MissingMarks(tuple(everywhere), columns)


def read(file: Path, reading: ReadingOptions, run: CommandRun, like: Sequence[str] | None = None) -> Table:
    """Read a table, and say what was found; exit code 3 with a remedy where it will not do.

    ``like`` are the columns of an earlier table, which are then read from this one.
    """
    name = input_name(file)
    delimiter = "\t" if reading.delimiter in TAB_NAMES else reading.delimiter
    with run.step(f"Reading {name}"), data_errors(name):
        given = {name: value for name, value in asdict(reading).items() if name not in ("delimiter", "no_header")}
        given["na_values"] = parse_marks(reading.na_values)
        header = False if reading.no_header else None
        place = "-" if str(file) == "-" else file
        table = read_table(place, **given, delimiter=delimiter, header=header, like=like)
    rows, columns = table.source.shape
    LOG.info("%s: %d rows, %d columns, %s", name, rows, columns, table.source.dtype)
    for note in table.notes:
        LOG.info("%s: %s", name, one_line(note))
    return table


class MissingRule(click.Choice):  # type: ignore[type-arg]
    """What to do with missing cells; a mark of them is the value of another option."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the rule."""
        if value not in self.choices:
            told = f"{one_line(value)!r} is no rule ({', '.join(self.choices)})"
            self.fail(f"{told}; for cells that hold it to count as missing, give --na-values {value}", param, ctx)
        return super().convert(value, param, ctx)


def ask_for_target(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse to go on without a target, and name the columns of the table that there are to choose from."""
    if value is not None or ctx.resilient_parsing:
        return value
    names: list[str] = []
    file = Path(str(ctx.params.get("file") or ""))
    if suffix_of(file) in TABULAR and file.is_file():
        with suppress(ValueError, OSError, ImportError):  # what is wrong with the file is said when it is read
            dialect = {"delimiter": None, "decimal": None, "encoding": None, "header": None}
            names = open_records(file, suffix_of(file), None, **dialect).names
    columns = f"; the columns are {', '.join(names[:20])}{', …' * (len(names) > 20)}" if names else ""
    example = names[-1] if names else "NAME"
    raise click.UsageError(f"which column is to be predicted? Name it, as in --target {example}{columns}")


def reading_options(
    *, target: str = "", missing: str = "keep", categorical: str = "label", new_rows: bool = False
) -> Callable[[Any], Any]:
    """Return a decorator that adds the options for reading; the command is handed them as ``reading``.

    Parameters
    ----------
    target : str, optional
        What the target is, for commands that have one: the help of an option that must be given.
    missing : str, default="keep"
        What to do with missing values unless said otherwise.
    categorical : str, default="label"
        What to do with columns of text unless said otherwise.
    new_rows : bool, default=False
        Whether a model is asked about the rows: it knows which columns.
    """
    add = partial(option, section="Reading")
    options = [
        add("--label", metavar="NAME", help="Column of classes: shown in colour, not fitted."),
        add("--id", metavar="NAME", help="Column that names the rows: shown, not fitted."),
        add(
            "--missing",
            type=MissingRule(["keep", "refuse", "drop", "mean"]),
            default=missing,
            help="Missing cells: keep them for the model, refuse, drop such rows, or fill in the mean.",
        ),
        add(
            "--na-values",
            type=NAMES,
            default=(),
            metavar="VALUES",
            help="What else marks a missing cell, as -999,unknown; with = in one column, as age=99.",
        ),
        add("--delimiter", metavar="C", help="Between cells, as ';' or tab [default: detected]."),
        add("--decimal", type=click.Choice([".", ","]), help="Decimal point or comma [default: detected]."),
        add("--no-header", is_flag=True, help="The first row holds numbers, not names."),
        add("--encoding", metavar="NAME", help="Of a text, as cp1252 or utf-16 [default: detected]."),
        add("--dataset", metavar="NAME", help="Array inside .npz, .h5, .h5ad and .zarr files, or sheet of a workbook."),
        add(
            "--sql",
            metavar="QUERY",
            help="Query for the table: FILE is a DuckDB database, :memory:, or postgresql://….",
        ),
    ]
    if not new_rows:
        text = "Columns of text: label and name the rows, one-hot code, leave out, or refuse."
        kinds, dates = click.Choice(CATEGORICAL[::-1]), click.Choice(DATES)
        options.insert(2, add("--categorical", type=kinds, default=categorical, help=text))
        options.insert(3, add("--dates", type=dates, default=DATES[0], help="Dates: as text, or days since 1970."))
        options[:0] = [
            *(
                [add("--target", metavar="NAME", callback=ask_for_target, help=f"{target}  [required]")]
                if target
                else []
            ),
            add("--columns", type=NAMES, metavar="NAMES", help="Columns to use, as a,b,c [default: all]."),
            add("--drop", type=NAMES, metavar="NAMES", default=(), help="Columns to leave out."),
        ]
    return bundle(ReadingOptions, "reading", options)


class ModelPath(click.Path):
    """A model.gramian, or the folder of results that holds one."""

    def __init__(self) -> None:
        super().__init__(exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path of the file."""
        path = Path(str(super().convert(value, param, ctx)))
        if not path.is_dir():
            return path
        if not is_results_folder(path):
            self.fail(f"the folder {input_name(path)!r} holds no {MODEL}: name a model file", param, ctx)
        return path / MODEL


MODEL_FILE = ModelPath()


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model from a file, and the columns it was fitted to where the file says which."""

    model: Any
    kind: str
    columns: list[str] | None


def load_model(file: Path, run: CommandRun) -> Fitted:
    """Load a model; exit code 3 where the file is none, is damaged, or is of a newer version."""
    with run.step(f"Loading {input_name(file)}"), data_errors(input_name(file)):
        model = persistence.load(file)
        known = persistence.inspect(file, verify=False)  # load has compared the checksum
    LOG.info("%s", known)
    names = getattr(model, "feature_names_in_", None)
    columns = known.metadata.get("columns") if names is None else [str(name) for name in names]
    return Fitted(model, known.kind, columns)


def read_matching_table(file: Path, fitted: Fitted, reading: ReadingOptions, run: CommandRun) -> Table:
    """Read the columns of the fit from another file, in their order; exit code 3 names those that are not there.

    Rows of which the model can say nothing, for cells are missing that it needs, are left out and told of.
    """
    needs_all = reading.missing == "keep" and not fitted.model.__sklearn_tags__().input_tags.allow_nan
    table = read(file, replace(reading, missing="drop") if needs_all else reading, run, like=fitted.columns)
    for note in table.warnings:
        run.warn(f"{input_name(file)}: {note}")
    wanted = int(getattr(fitted.model, "n_features_in_", table.source.shape[1]))
    with data_errors(input_name(file)):
        if table.source.shape[1] != wanted:
            raise ValueError(f"{table.source.shape[1]} columns, and the {fitted.kind} was fitted to {wanted}")
    return table


Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ObservationColumns:
    """Columns that say how each value was observed."""

    event: str | None
    side: str
    lower: str | None
    upper: str | None
    counts: str | None
    truncated: tuple[float, float] | None

    def check(self, columns: tuple[str, ...] | None) -> None:
        """Exit 2 where columns contradict each other."""
        if (self.lower is None) != (self.upper is None):
            raise click.UsageError("an interval has two ends: give --lower and --upper together")
        if self.lower is not None and (self.event is not None or columns is not None):
            raise click.UsageError("--lower and --upper are the values: leave out --columns and --event")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are no values themselves."""
        return tuple(name for name in (self.event, self.lower, self.upper, self.counts) if name is not None)


def parse_limits(text: str) -> tuple[float, float]:
    """Return two limits from low:high; an empty one is infinite."""
    low, mark, high = text.partition(":")
    try:
        found = (float(low) if low.strip() else -np.inf, float(high) if high.strip() else np.inf)
    except ValueError:
        found = (np.nan, np.nan)
    if not mark or not found[0] < found[1]:
        raise click.BadParameter(f"{text!r} is no range; low:high is, as 0:10 or 1:")
    return found


def record_options(function: Any) -> Any:
    """Add the options that say how values were observed; the command is handed them as ``records``."""
    add: list[Callable[[Any], Any]] = [
        option("--event", metavar="NAME", help="Column of 1 (happened at that time) and 0 (censored)."),
        option(
            "--side",
            type=click.Choice(["right", "left"]),
            default="right",
            help="Censored events come after their time, or before it.",
        ),
        option("--lower", metavar="NAME", help="Column of lower limits, for values known to lie in intervals."),
        option("--upper", metavar="NAME", help="Column of upper limits; empty cells have no limit."),
        option("--counts", metavar="NAME", help="Column that says how often each value or interval was observed."),
        option("--truncated", type=parse_limits, metavar="LOW:HIGH", help="Only values in this range could be seen."),
    ]
    return bundle(ObservationColumns, "records", add)(function)


# The kernel that options name

KERNELS = (
    *("rbf", "laplacian", "matern", "rational-quadratic", "poly", "sigmoid", "linear", "cosine"),
    *("chi2", "additive_chi2"),
)
WIDTH_RULES = ("median", "scale")
WITH_GAMMA = ("rbf", "laplacian", "poly", "sigmoid", "chi2")
WITH_WIDTH = ("rbf", "matern", "rational-quadratic")


@dataclass(frozen=True)
class KernelOptions:
    """A kernel by name and parameters; several values of gamma or the bandwidth are a grid to choose from."""

    kernel: str
    gamma: tuple[float | str, ...] | None
    bandwidth: tuple[float | str, ...] | None
    degree: int
    coef0: float
    nu: float
    standardise: bool

    def check(self, *, several: bool = False) -> None:
        """Exit 2 where an option does not belong to the kernel."""
        if self.gamma is not None and self.bandwidth is not None:
            raise click.UsageError("--gamma and --bandwidth say the same (γ = 1/2σ²): give one of them")
        if self.gamma is not None and self.kernel not in WITH_GAMMA:
            raise click.UsageError(f"the kernel {self.kernel} has no --gamma; {', '.join(WITH_GAMMA)} have")
        if self.bandwidth is not None and self.kernel not in WITH_WIDTH:
            raise click.UsageError(f"the kernel {self.kernel} has no --bandwidth; {', '.join(WITH_WIDTH)} have")
        if self.standardise and self.kernel not in WITH_WIDTH:
            raise click.UsageError(f"--standardise is for the kernels {', '.join(WITH_WIDTH)}")
        values = self.gamma or self.bandwidth or ()
        if len(values) > 1 and not several:
            raise click.UsageError("give one value of --gamma or --bandwidth: there is nothing to choose by")
        if any(isinstance(value, float) and not value > 0 for value in values):
            raise click.UsageError("--gamma and --bandwidth must be positive")
        if self.kernel not in ("rbf",) and self.gamma is not None and any(v in WIDTH_RULES for v in self.gamma):
            raise click.UsageError(f"--gamma {' and '.join(WIDTH_RULES)} are rules for the kernel rbf: give a number")

    def warn_of_units(self, table: Table, run: CommandRun) -> None:
        """Say where distances between rows are those of one column, since it has another unit."""
        if self.kernel not in WITH_WIDTH or self.standardise:
            return
        deviations = measure_columns(table.source)
        told = "and decides the distances between rows", "Count each column in its deviations (--standardise)"
        text = None if deviations is None else warn_of_units(deviations, table.names, *told)
        if text is not None:
            run.doubt(text)

    def make_kernels(self, source: Source) -> list[kernels.Kernel]:
        """Return the kernels, with every parameter found from the rows where a rule asks for that."""
        if self.kernel in WITH_WIDTH and (self.gamma is None or self.standardise):
            X = read_rows(source)  # widths are in the units of the columns, or in standard deviations of each
            spread = np.std(X, axis=0) if self.standardise else np.ones(X.shape[1])
            spread = np.where(spread > 0, spread, 1.0)
            widths = [self._width(value, X / spread) for value in self.bandwidth or self.gamma or ("median",)]
            makers: dict[str, Callable[[Any], kernels.Kernel]] = {
                "rbf": lambda width: kernels.Gaussian(bandwidth=width),
                "matern": partial(kernels.Matern, self.nu),
                "rational-quadratic": partial(kernels.RationalQuadratic, 1.0),
            }
            return [makers[self.kernel](tuple((w * spread).tolist()) if self.standardise else w) for w in widths]
        found = [kernels.as_kernel(self.kernel, gamma, self.degree, self.coef0) for gamma in self.gamma or (None,)]
        if not any(kernel.automatic for kernel in found):
            return found
        X = read_rows(source)
        return [kernel.resolved(X) for kernel in found]

    def _width(self, value: float | str, X: Any) -> float:
        if value == "median":
            return kernels.median_distance(X)
        if value == "scale":
            return float(np.sqrt(X.shape[1] * np.var(X) / 2) or 1.0)  # γ = 1/(p·Var X)
        return float(value) if self.gamma is None else float(np.sqrt(0.5 / float(value)))


def kernel_options(*, several: bool = False) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of a kernel; the command is handed them as ``kernel``."""
    widths = NumbersType(WIDTH_RULES)
    grid = "; several, as 0.1,1,10 or 0.01:10:7, are chosen from" if several else ""
    return bundle(
        KernelOptions,
        "kernel",
        [
            option("--kernel", type=click.Choice(KERNELS), default="rbf"),
            option("--gamma", type=widths, metavar="NUMBER", help=f"γ of the kernel, or median or scale{grid}."),
            option(
                "--bandwidth",
                type=widths,
                metavar="NUMBER",
                help=f"σ of the kernel, γ = 1/2σ² [default: median distance]{grid}.",
            ),
            option("--degree", type=click.IntRange(min=1), default=3, help="Of poly."),
            option("--coef0", type=float, default=1.0, help="Of poly and sigmoid."),
            option("--nu", type=click.FloatRange(min=0, min_open=True), default=1.5, help="Of matern."),
            standardise_option("standardise"),
        ],
    )
