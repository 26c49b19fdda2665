"""The vocabulary of a page: text, facts, tables, figures and clouds of points, in sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Protocol

import numpy as np

from gramian.display.report.cells import exact, guarded, is_missing, isolated, short, shown
from gramian.display.report.facts import DataFacts, Run
from gramian.display.report.words import Proof, in_words

__all__ = ["Block", "CertificateBlock", "DataTable", "Facts", "Figure", "Page", "Report", "Row", "Section", "Text"]

SHADE = (51, 34, 136), (204, 102, 119)  # above and below 0: the first two colours of the palette


class Page(Protocol):
    """What a block asks of the page that it is put on."""

    def plot(self, figure: Any, label: str) -> str:
        """Add a Bokeh figure; return the element that it will be drawn in."""

    def cloud(self, spec: dict[str, Any]) -> str:
        """Add points; return the name they go by."""

    def number(self) -> int:
        """A number that no other element has."""


class Block(Protocol):
    """Something that can stand in a section."""

    def html(self, page: Page, /) -> str:
        """Return it as HTML, everything escaped."""


@dataclass(frozen=True)
class Text:
    """Paragraphs.

    Examples
    --------
    >>> from gramian.display.report.blocks import Text
    >>> Text("a < b").html(None)
    '<p>a &lt; b</p>'
    """

    text: str | Sequence[str]
    kind: str = ""

    def html(self, page: Page) -> str:
        """The paragraphs."""
        paragraphs = [self.text] if isinstance(self.text, str) else self.text
        style = f' class="{escape(self.kind)}"' if self.kind else ""
        return "".join(f"<p{style}>{escape(text)}</p>" for text in paragraphs)


@dataclass(frozen=True)
class Facts:
    """Names and what they are; ``code`` are those set in fixed width, which can be copied."""

    rows: Sequence[tuple[str, str]]
    code: Sequence[str] = ()

    def html(self, page: Page) -> str:
        """A list of descriptions."""
        return f'<dl class="facts">{"".join(self._row(*row) for row in self.rows)}</dl>'

    def _row(self, name: str, text: str) -> str:
        value = f"<code>{escape(text)}</code>" if name in self.code else isolated(text)
        return f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>"


@dataclass(frozen=True, eq=False)
class DataTable:
    """A table that can be sorted and downloaded.

    Attributes
    ----------
    name : str
        Of the file that is downloaded, without its ending.
    caption : str
        What the table holds.
    columns : mapping of str to sequence
        The columns, of equal length.
    percent, shaded : sequence of str
        Columns shown as percentages, and columns whose cells are coloured by their size.
    note : str
        What is left out.

    Examples
    --------
    >>> from gramian.display.report import DataTable
    >>> DataTable("shares", "Shares", {"part": ["a"], "share": [0.25]}, percent=("share",)).html(None).count("<td")
    1
    """

    name: str
    caption: str
    columns: Mapping[str, Any]
    percent: Sequence[str] = ()
    shaded: Sequence[str] = ()
    note: str = ""

    def html(self, page: Page) -> str:
        """The table in a frame that scrolls."""
        lists = {name: _plain_list(values) for name, values in self.columns.items()}
        largest = {name: max((abs(v) for v in lists[name] if _is_size(v)), default=0.0) for name in self.shaded}
        head = "".join(self._head(name, values) for name, values in lists.items())
        rows = (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
        body = "".join(f"<tr>{self._cells(row, largest)}</tr>" for row in rows)
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        caption = escape(self.caption)
        return (
            f'<div class="table"><div class="bar"><h3>{caption}</h3>'
            f'<button type="button" class="csv" data-file="{escape(self.name)}.csv">Download CSV</button></div>{note}'
            f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table class="data">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
        )

    def _head(self, name: str, values: list[Any]) -> str:
        side = ' class="num"' if _are_numbers(values) else ""
        text = isolated(guarded(short(name)))
        return f'<th scope="col"{side} aria-sort="none"><button type="button">{text}</button></th>'

    def _cells(self, row: dict[str, Any], largest: dict[str, float]) -> str:
        return "".join(self._cell(name, value, largest, first=j == 0) for j, (name, value) in enumerate(row.items()))

    def _cell(self, name: str, value: Any, largest: dict[str, float], first: bool) -> str:
        if isinstance(value, str):
            text = isolated(guarded(short(value, 300)))
            return f'<th scope="row">{text}</th>' if first else f"<td>{text}</td>"
        style = _shade(value, largest[name]) if name in largest else ""
        return f'<td class="num" data-v="{escape(exact(value))}"{style}>{shown(value, name in self.percent)}</td>'


def _plain_list(values: Any) -> list[Any]:
    found = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [value.item() if isinstance(value, np.generic) else value for value in found]


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _are_numbers(values: list[Any]) -> bool:
    return all(is_missing(value) or isinstance(value, (int, float)) for value in values)


def _shade(value: Any, largest: float) -> str:
    """The colour of a cell: stronger for larger values, another for those below 0."""
    if not _is_size(value) or largest == 0.0:
        return ""
    red, green, blue = SHADE[0] if value >= 0 else SHADE[1]
    return f' style="background:rgba({red},{green},{blue},{0.32 * abs(value) / largest:.2f})"'


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture: ``draw`` returns a Bokeh figure when the page is made."""

    title: str
    draw: Callable[[], Any]
    note: str = ""

    def html(self, page: Page) -> str:
        """The place that the figure is drawn in, with its title."""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        plot = page.plot(self.draw(), f"{self.title}. {self.note}")
        return f'<figure class="picture"><figcaption><h3>{escape(self.title)}</h3>{note}</figcaption>{plot}</figure>'


@dataclass(frozen=True, eq=False)
class Row:
    """Blocks side by side, where the page is wide enough."""

    blocks: Sequence[Block]

    def html(self, page: Page) -> str:
        """The blocks in a grid."""
        return f'<div class="row">{"".join(block.html(page) for block in self.blocks)}</div>'


@dataclass(frozen=True, eq=False)
class CertificateBlock:
    """A certificate: what it means, and then what it says."""

    proof: Proof
    title: str = ""

    def html(self, page: Page) -> str:
        """A badge, a paragraph, a table."""
        state, mark, word = (
            ("met", "✓", "tolerance met") if self.proof.converged else ("unmet", "✗", "tolerance NOT met")
        )
        rows = "".join(
            f"<tr><th scope='row'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in self.proof.summary()
        )
        title = f"<h3>{isolated(short(self.title))}</h3>" if self.title else ""
        return (
            f'<div class="certificate {state}">{title}'
            f'<p class="badge"><span aria-hidden="true">{mark}</span> {word}</p>'
            f"<p>{escape(in_words(self.proof))}</p>"
            f'<details><summary>The certificate itself</summary><table class="plain">{rows}</table></details></div>'
        )


@dataclass(frozen=True, eq=False)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: Sequence[Block]
    lead: str = ""

    def html(self, page: Page, anchor: str) -> str:
        """The section, with the name that links lead to."""
        lead = f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        body = "".join(block.html(page) for block in self.blocks)
        head = f'<h2 id="{anchor}-h">{isolated(short(self.title))}</h2>'
        return f'<section id="{anchor}" aria-labelledby="{anchor}-h">{head}{lead}{body}</section>'


@dataclass(frozen=True, eq=False)
class Report:
    """All of a page.

    Attributes
    ----------
    title, subtitle : str
        Its head.
    sections : sequence of Section
        Its body.
    data : DataFacts
        What was fitted on.
    run : Run
        What was run.
    tiles : sequence of tuple of str
        The few numbers a reader wants first, each with its caption.
    met : bool or None
        Whether every tolerance was met; None where nothing was certified.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    data: DataFacts
    run: Run = field(default_factory=Run)
    tiles: Sequence[tuple[str, str]] = ()
    met: bool | None = None
