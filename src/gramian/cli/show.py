"""What the commands print: tables and certificates on the terminal."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import rich.box
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from gramian.estimators import PCA

__all__ = ["certificate_panel", "variance_table"]


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


def certificate_panel(certificate: Any, name: str = "") -> Panel:
    """Return a certificate in a frame, green when the tolerance was met and red otherwise."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row, text in certificate.summary():
        table.add_row(escape(row), escape(text))
    colour, head = ("green", "converged") if certificate.converged else ("red", "NOT converged")
    title = f"Certificate{f' of {escape(name)}' if name else ''}: {head}"
    return Panel(table, title=title, border_style=colour, title_align="left", expand=False)
