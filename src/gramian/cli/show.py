"""What the commands print: tables and certificates on the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

import rich.box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from gramian.estimators import PCA
from gramian.results import Certificate, Optimum

__all__ = ["certificate_panel", "spinner", "variance_table", "warnings_as_lines"]


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show on a terminal, and only there, that work is going on."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(escape(text)):
        yield


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print each warning of the block once, as one readable line on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    console = Console(stderr=True, soft_wrap=True)
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        console.print(f"[yellow]Warning:[/] {escape(text)}", highlight=False)


def variance_table(model: PCA, title: str, most: int = 10) -> Table:
    """Return a table of the leading components with their variances and residuals."""
    table = Table(title=escape(title), box=rich.box.SIMPLE_HEAD, title_justify="left")
    residuals = getattr(model.certificate_, "residuals", None)  # where cells were missing there is one gradient instead
    names = ["component", "variance", "share", "running sum"] + ([] if residuals is None else ["residual"])
    for name in names:
        table.add_column(name, justify="right")
    shares = model.explained_variance_ratio_.tolist()
    columns = zip(model.explained_variance_.tolist(), shares, accumulate(shares), strict=True)
    for j, (variance, share, total) in enumerate(columns):
        if j >= most:
            table.add_row(*["…"] * len(names))
            break
        last = [] if residuals is None else [f"{residuals[j]:.1e}"]
        table.add_row(f"PC{j + 1}", f"{variance:.6g}", f"{share:.2%}", f"{total:.2%}", *last)
    return table


def certificate_panel(certificate: Certificate | Optimum) -> Panel:
    """Return the certificate in a frame, green when the tolerance was met and red otherwise."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in certificate.summary():
        table.add_row(escape(name), escape(text))
    colour, head = ("green", "converged") if certificate.converged else ("red", "NOT converged")
    return Panel(table, title=f"Certificate: {head}", border_style=colour, title_align="left", expand=False)
