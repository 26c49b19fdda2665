"""A progress bar for work that reports how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gramian.inputs import progress as progress_protocol


@contextmanager
def progress_bar(text: str, console: Console | None = None) -> Iterator[progress_protocol.Progress]:
    """Show a bar on standard error while something runs, if that is a terminal; it vanishes at the end.

    Parameters
    ----------
    text : str
        What is going on.
    console : rich.console.Console, optional
        Where to draw instead.

    Yields
    ------
    callable
        To be called as ``report(done, total, message)``, which is what functions with a ``progress`` argument do.

    Examples
    --------
    >>> from gramian.display import progress_bar
    >>> with progress_bar("Counting") as report:
    ...     for i in range(3):
    ...         report(i + 1, 3)
    """
    console = Console(stderr=True) if console is None else console
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(text, total=None)

        def report(done: int, total: int, message: str = "") -> None:
            bars.update(task, completed=done, total=total, description=f"{text}: {message}" if message else text)

        yield report
