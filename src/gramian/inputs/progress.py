"""Progress of work that takes long: the protocol, and the line on standard error that ``verbose=True`` shows."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Progress(Protocol):
    """What every ``progress`` argument is: it is called from time to time, and what it raises ends the work."""

    def __call__(self, done: int, total: int, message: str, /) -> Any:
        """``done`` of ``total`` parts are finished; ``message`` says of what, or how it stands, and may be empty."""


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
    written = False

    def write(done: int, total: int, message: str, /) -> None:
        nonlocal written
        sys.stderr.write(f"\r{name}: {done} of {total}{', ' if message else ''}{message} ")
        sys.stderr.flush()
        written = True

    try:
        yield write
    finally:
        if written:
            sys.stderr.write("\n")


@contextmanager
def report_residuals(verbose: Any, name: str, tol: float) -> Iterator[Callable[[int, float], None] | None]:
    """Give what a solver calls with (iteration, residual): None, or what tells the user's own function, or a line.

    Progress is in thousandths of the digits that are wanted.

    Examples
    --------
    >>> from gramian.inputs.progress import report_residuals
    >>> with report_residuals(lambda *report: print(*report), "KernelRidge", 1e-6) as report:
    ...     report(3, 1e-3)
    500 1000 iteration 3, residual 1.0e-03 of 1e-06
    """
    with show_progress(verbose, name) as progress:
        if progress is None:
            yield None
            return

        def report(iteration: int, residual: float) -> None:
            least = min(tol, 0.1)
            won = math.log(min(max(residual, least), 1.0)) / math.log(least)
            progress(round(1000 * won), 1000, f"iteration {iteration}, residual {residual:.1e} of {tol:.0e}")

        yield report
