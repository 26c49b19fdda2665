"""Progress of a fit that iterates, for people who wait for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["reporter"]


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
    if not verbose:
        return None

    def line(iteration: int, residual: float) -> None:
        end = "\n" if residual <= tol else ""
        sys.stderr.write(f"\r{name}: iteration {iteration}, residual {residual:.1e} of {tol:.0e} {end}")
        sys.stderr.flush()

    return line
