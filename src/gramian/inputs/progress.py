"""Progress of work that takes long: the protocol, and the line on standard error that ``verbose=True`` shows."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Progress(Protocol):
    """What every ``progress`` argument is: it is called from time to time, and what it raises ends the work."""

    def __call__(self, done: int, total: int, message: str, /) -> Any:
        """``done`` of ``total`` parts are finished; ``message`` says of what, or how it stands, and may be empty."""


class ProgressLine:
    """A line on standard error that every report writes over."""

    def __init__(self, name: str) -> None:
        self.name, self.open = name, False

    def __call__(self, done: int, total: int, message: str, /) -> None:
        """Write what is done, and the message."""
        sys.stderr.write(f"\r{self.name}: {done} of {total}{', ' if message else ''}{message} ")
        sys.stderr.flush()
        self.open = True

    def end(self) -> None:
        """Go to the next line, if anything was written."""
        if self.open:
            sys.stderr.write("\n")
        self.open = False


@contextmanager
def show_progress(verbose: Any, name: str) -> Iterator[Progress | None]:
    """Give what to report to: None, the user's own function, or (``verbose=True``) a line on standard error.

    The line is written over at every report, and ended with the block.

    Examples
    --------
    >>> from gramian.inputs.progress import show_progress
    >>> seen = []
    >>> with show_progress(lambda *report: seen.append(report), "KernelRidge") as progress:
    ...     progress(3, 100, "residual 5e-01")
    >>> seen
    [(3, 100, 'residual 5e-01')]
    """
    if callable(verbose) or not verbose:
        yield verbose or None
        return
    line = ProgressLine(name)
    try:
        yield line
    finally:
        line.end()


class ResidualReport:
    """What a solver calls with (iteration, residual): progress in thousandths of the digits that are wanted."""

    def __init__(self, progress: Progress, tol: float) -> None:
        self.progress, self.tol = progress, tol

    def __call__(self, iteration: int, residual: float) -> None:
        """Report the digits won so far."""
        tol = min(self.tol, 0.1)
        won = math.log(min(max(residual, tol), 1.0)) / math.log(tol)
        message = f"iteration {iteration}, residual {residual:.1e} of {self.tol:.0e}"
        self.progress(round(1000 * won), 1000, message)


@contextmanager
def report_residuals(verbose: Any, name: str, tol: float) -> Iterator[ResidualReport | None]:
    """Give what a solver calls after each iteration: None, or what tells the user's own function, or a line.

    Examples
    --------
    >>> from gramian.inputs.progress import report_residuals
    >>> with report_residuals(lambda *report: print(*report), "KernelRidge", 1e-6) as report:
    ...     report(3, 1e-3)
    500 1000 iteration 3, residual 1.0e-03 of 1e-06
    """
    with show_progress(verbose, name) as progress:
        yield None if progress is None else ResidualReport(progress, tol)
