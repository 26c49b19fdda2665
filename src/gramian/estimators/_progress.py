"""Progress of a fit that iterates, for people who wait for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Lines", "finish", "reporter"]


class Lines:
    """One line on standard error that is written over, ended by :meth:`end`."""

    def __init__(self, name: str, tol: float) -> None:
        self.name, self.tol, self.open = name, tol, False

    def __call__(self, iteration: int, residual: float) -> None:
        """Show where the iteration stands."""
        sys.stderr.write(f"\r{self.name}: iteration {iteration}, residual {residual:.1e} of {self.tol:.0e} ")
        sys.stderr.flush()
        self.open = True

    def end(self) -> None:
        """Go to the next line, if anything was written."""
        if self.open:
            sys.stderr.write("\n")
        self.open = False


def reporter(verbose: Any, name: str, tol: float) -> Callable[[int, float], None] | None:
    """Return what a solver calls after each iteration: nothing, the user's own function, or a line on standard error.

    Examples
    --------
    >>> from gramian.estimators._progress import reporter
    >>> seen = []
    >>> reporter(lambda i, residual: seen.append((i, residual)), "KernelRidge", 1e-6)(3, 0.5)
    >>> seen
    [(3, 0.5)]
    """
    if callable(verbose):
        return lambda iteration, residual: verbose(iteration, residual)
    return Lines(name, tol) if verbose else None


def finish(report: Any) -> None:
    """End the line that a fit has shown."""
    if isinstance(report, Lines):
        report.end()
