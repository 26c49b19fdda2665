"""How far a fit of genotypes is, told while it runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from gramian.spectral.krylov import History

__all__ = ["Progress", "Tracker", "teller"]

STEP = 0.02  # of a pass between two calls: one for each of thousands of blocks would cost more than it tells


class Progress(NamedTuple):
    """Where a fit stands: what ``verbose`` is called with.

    Attributes
    ----------
    stage : str
        "counting", "iterating" or "exact".
    passes : float
        Passes over the genotypes so far, with the part of the present one.
    expected : float or None
        How many there may be in all, where that can be told.
    residual : float or None
        The largest residual waited for.
    """

    stage: str
    passes: float
    expected: float | None
    residual: float | None


def teller(verbose: Any) -> Callable[[Progress], Any]:
    """What to call with progress: the user's own function, a line on standard error, or nothing."""
    if callable(verbose):
        return verbose  # type: ignore[no-any-return]
    return _print if verbose else lambda _: None


class Tracker:
    """Turns finished blocks and residuals into progress, one call at a time whichever thread has done a block.

    Examples
    --------
    >>> from gramian.genetics._progress import Tracker
    >>> tracker = Tracker(print, "exact", 100)
    >>> tracker.block(50, 100)
    Progress(stage='exact', passes=0.5, expected=3.0, residual=None)
    """

    def __init__(self, say: Callable[[Progress], Any], solver: str, p: int) -> None:
        self.say, self.p = say, p
        self.stage = "exact" if solver == "exact" else "iterating"
        self.expected = 3.0 if solver == "exact" else None
        self.residual: float | None = None
        self._done, self._told = 0, 0.0
        self._lock = threading.Lock()

    def block(self, snps: int, _: int) -> None:
        """A block of SNPs was multiplied."""
        with self._lock:
            self._done += snps
            passes = self._done / self.p
            if passes - self._told >= STEP:
                self._told = passes
                self.say(Progress(self.stage, passes, self.expected, self.residual))

    def watch(self, history: History) -> None:
        """A residual is known."""
        self.residual = history[-1][1]


def _print(progress: Progress) -> None:
    residual = "" if progress.residual is None else f", residual {progress.residual:.1e}"
    sys.stderr.write(f"\rGenotypePCA: {progress.stage}, pass {progress.passes:.1f}{residual}   ")
    sys.stderr.flush()
