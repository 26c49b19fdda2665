"""Progress of work that takes long: the protocol, and the line on standard error that ``verbose=True`` shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
    shown = False

    def write(done: int, total: int, message: str) -> None:
        nonlocal shown
        shown = True
        sys.stderr.write(f"\r{name}: {done} of {total}{', ' if message else ''}{message} ")
        sys.stderr.flush()

    try:
        yield write
    finally:
        if shown:
            sys.stderr.write("\n")
