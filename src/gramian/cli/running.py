"""How a command runs: seed, threads, memory, device; what it says while someone waits, and where data will not do."""

from __future__ import annotations

import logging
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
from rich import progress as bars
from rich.console import Console
from rich.markup import escape
from threadpoolctl import threadpool_limits

from gramian.cli.errors import DataError, Invocation, one_line
from gramian.cli.options import SIZE, bundle, check_device, option
from gramian.compute.devices import TooLargeError
from gramian.compute.executor import PATIENCE, ClusterError, cluster
from gramian.compute.memory import limit_working_memory
from gramian.inputs.progress import Progress
from gramian.sources.checkpoint import checkpoint
from gramian.sources.errors import Argument, SourceError
from gramian.sources.parts import is_pattern

LOG = logging.getLogger("gramian")
_option = partial(option, section="Running")

# options that are not called what the arguments of Python are
OPTIONS = {
    "n_components": "-k",
    "svd_solver": "--solver",
    "eigen_solver": "--solver",
    "gcv_mode": "--solver",
    "n_landmarks": "--landmarks",
    "max_snp_missing": "--geno",
    "max_sample_missing": "--mind",
    "chromosomes": "--chr",
    "ranges": "--range",
    "prefix": "--out",
    "exclude_ranges": "--exclude-range",
    "long_range": "--exclude-long-range",
}
FLAGS = {("header", False): "--no-header", ("chromosomes", "all"): "--all-chromosomes"}


@dataclass(eq=False)
class CommandRun:
    """One run of a command.

    Attributes
    ----------
    seed, threads, memory, verbose, cluster, patience, checkpoint
        As the options say; memory in bytes.
    warnings : list of str
        What was warned about so far, each once.
    seconds : float
        How long the steps took so far.
    """

    seed: int = 0
    threads: int | None = None
    memory: int | None = None
    verbose: int = 0
    cluster: str | None = None
    patience: float = PATIENCE
    checkpoint: Path | None = None
    warnings: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @contextmanager
    def session(self) -> Iterator[None]:
        """Set threads, memory and logging for a while."""
        with ExitStack() as stack:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(message)s"))
            LOG.addHandler(handler)
            stack.callback(LOG.removeHandler, handler)
            stack.callback(LOG.setLevel, LOG.level)
            stack.callback(setattr, LOG, "propagate", LOG.propagate)
            LOG.setLevel({0: logging.WARNING, 1: logging.INFO}.get(self.verbose, logging.DEBUG))
            LOG.propagate = False
            if self.memory is not None:
                stack.enter_context(limit_working_memory(max(self.memory / 2**20, 1e-4)))
                LOG.info("memory: blocks of rows take at most %.4g MiB", self.memory / 4 / 2**20)
            if self.threads is not None:
                stack.enter_context(threadpool_limits(self.threads))
                LOG.info("threads: %d", self.threads)
            if self.cluster is not None:
                with data_errors("--cluster"):
                    executor = stack.enter_context(cluster(self.cluster, patience=self.patience))
                LOG.info("passes over files are made by %s", executor.describe())
            yield

    @contextmanager
    def step(self, text: str, *, even: bool = True) -> Iterator[Progress]:
        """Do something that may take a while: shown on a terminal and only there, timed, its warnings gathered.

        Parameters
        ----------
        text : str
            What is going on.
        even : bool, default=True
            Whether its parts take about as long as each other: only then is the time left told.

        Yields
        ------
        Progress
            To be called by work that knows how far it is; a bar then shows the time left, or the number of parts and
            the time so far, before that a clock. A message is shown after the text.
        """
        start, shown, console = time.perf_counter(), one_line(text), Console(stderr=True)
        clock: Any = [bars.SpinnerColumn(), bars.TextColumn("{task.description}", markup=False)]
        clock += [bars.TimeElapsedColumn()]
        try:
            with (
                bars.Progress(*clock, console=console, transient=True, disable=not console.is_terminal) as shower,
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always")
                for kind in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):  # for developers
                    warnings.filterwarnings("ignore", category=kind)
                # pictures ask models about points of their own; columns of files are matched by name before
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                task = shower.add_task(shown, total=None)

                def report(done: int, total: int, message: str, /) -> None:
                    if len(shower.columns) == len(clock):
                        left = (bars.TaskProgressColumn(), bars.TimeRemainingColumn())
                        so_far = (bars.MofNCompleteColumn(), bars.TimeElapsedColumn())
                        shower.columns = (*clock[:2], bars.BarColumn(), *(left if even else so_far))
                    doing = one_line(f"{shown}: {message}" if message else shown)
                    shower.update(task, completed=done, total=total, description=doing)

                yield report
            for warning in caught:
                self.warn(warning.message)
        finally:
            took = time.perf_counter() - start
            self.seconds += took
            LOG.info("%s: %.2f s", shown, took)

    def doubt(self, text: object) -> None:
        """Keep for the answer, wherever it goes, what the reader of these numbers should know."""
        line = one_line(text)
        if line not in self.warnings:
            self.warnings.append(line)
            self.doubts.append(line)

    def warn(self, text: object) -> None:
        """Say something on standard error that the reader should know, once."""
        line = one_line(text)
        if line not in self.warnings:
            self.warnings.append(line)
            Console(stderr=True, soft_wrap=True).print(f"[yellow]Warning:[/] {escape(line)}", highlight=False)


def _debug(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    invocation = context.find_object(Invocation)
    if value and invocation is not None:
        invocation.debug = True


RUNNING = (
    _option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed."),
    _option("--threads", type=click.IntRange(min=1), help="Most cores to use [default: all]."),
    _option(
        "--memory",
        type=SIZE,
        metavar="SIZE",
        help="Working memory for blocks of rows, as 512M or 2G [default: 1G].",
    ),
    _option(
        "--cluster",
        metavar="WHERE",
        help="Who reads files in blocks: tcp://HOST:PORT of a Dask scheduler, local[8] or processes[8].",
    ),
    _option(
        "--patience",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=PATIENCE,
        show_default=True,
        help="How long a pass waits while the cluster has no worker.",
    ),
    _option(
        "--checkpoint",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Keep every pass there until the run has ended well; the same command goes on from it.",
    ),
    _option("-v", "--verbose", count=True, help="Say what was decided, and why."),
    _option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_debug,
        help="Show a traceback where something fails.",
    ),
)


def running_options(function: Any) -> Any:
    """Add the options of every command that computes; the command is handed a :class:`CommandRun` as ``run``."""

    @wraps(function)
    def call_in_session(*arguments: Any, run: CommandRun, **given: Any) -> Any:
        click.get_current_context().with_resource(run.session())
        with ExitStack() as stack:  # its records are removed once the results are written, and only then
            if run.checkpoint is not None:
                with data_errors("--checkpoint"):
                    stack.enter_context(checkpoint(run.checkpoint))
            try:
                return function(*arguments, run=run, **given)
            except click.exceptions.Exit as done:  # how a command ends well: nothing is left to resume
                code = done.exit_code
            except ClusterError as error:
                raise click.ClickException(f"{error} What to type: {_tell_again()}") from error
        raise click.exceptions.Exit(code)

    return bundle(CommandRun, "run", RUNNING)(call_in_session)


device_option = _option(
    "--device",
    default="cpu",
    metavar="NAME",
    callback=check_device,
    help='Where to compute: cpu, cuda, cuda:1, or auto for a GPU if there is one (needs "gramian[gpu]").',
)


@contextmanager
def data_errors(name: str) -> Iterator[None]:
    """Turn what reading and fitting refuse into one line with a remedy, and exit code 3."""
    try:
        yield
    except MemoryError as error:
        text = without_name(name_options(error), name)
        text = text or "does not fit in memory. A .npy file is read in blocks, of a size that --memory sets."
        raise DataError(f"{name}: {text}") from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        text = without_name(name_options(error), name).rstrip(".")
        if isinstance(error, SourceError) and error.path is not None and (Path(name).is_dir() or is_pattern(name)):
            name = one_line(error.path)  # one of several files
        told = text or type(error).__name__
        raise DataError(f"{told if told.startswith(f'{name} ') else f'{name}: {told}'}.") from error


def _tell_again() -> str:
    """The command that runs, to be typed again; with a folder for its passes where it has none."""
    context = click.get_current_context(silent=True)
    invocation = None if context is None else context.find_object(Invocation)
    words = [] if invocation is None else invocation.arguments
    kept = [] if any(word.startswith("--checkpoint") for word in words) else ["--checkpoint", "FOLDER"]
    return shlex.join(["gramian", *words, *kept])


def without_name(text: str, name: str) -> str:
    """Return what an error says of a file without the file's name before it, however often it stands there.

    Examples
    --------
    >>> from gramian.cli.running import without_name
    >>> without_name("x.mtx: x.mtx: no room", "x.mtx")
    'no room'
    """
    while text.startswith(f"{name}: "):
        text = text.removeprefix(f"{name}: ")
    return text


def name_options(error: Exception) -> str:
    """Return the text of an error, on one line, with the options of the running command that help."""
    if isinstance(error, TooLargeError):
        return one_line(error.text(lambda name, value: as_option(Argument(name, value))))
    if not isinstance(error, SourceError):
        return one_line(error)
    text = one_line(error.text(as_option))
    context = click.get_current_context(silent=True)
    offered = [] if context is None else [p.type for p in context.command.params if p.name == "missing"]
    if error.missing and any(isinstance(kind, click.Choice) and "drop" in kind.choices for kind in offered):
        text = f"{text.rstrip('.')}. Here --missing drop leaves such rows out and --missing mean fills them in."
    return text


def as_option(argument: Argument) -> str:
    """Return an argument of Python as the option that stands for it.

    Examples
    --------
    >>> from gramian.cli.running import as_option
    >>> from gramian.sources.errors import Argument
    >>> as_option(Argument("missing", "drop")), as_option(Argument("label"))
    ('--missing drop', '--label')
    """
    name, value = argument
    option = FLAGS.get((name, value)) or OPTIONS.get(name) or f"--{name.replace('_', '-')}"
    return option if value is None or (name, value) in FLAGS else f"{option} {shlex.quote(str(value))}"
