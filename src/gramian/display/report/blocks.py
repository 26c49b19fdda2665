"""What a page is made of: text, facts, tables, certificates and Bokeh figures, in sections."""

from __future__ import annotations

import html
import json
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np

from gramian.display.base import GRID, INK, shorten
from gramian.results import Optimum, Quality, Residual, SpectralCertificate, describe_verdict

PACKAGES = ("gramian", "numpy", "scipy", "scikit-learn", "bokeh")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers and page depend on."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


Proof = SpectralCertificate | Optimum | Residual

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# What follows for the reader from a bound on what a certificate names.
EVERYWHERE = "all predictions, wherever they are made, are within {{}} of {} (times √k(x, x), 1 for a Gaussian kernel)"
FOLLOWS = {
    "‖ŵ − w‖": "the coefficients, all together, are within {} of the exact ones",
    "|f̂(x) − f(x)|/‖φ(x)‖": EVERYWHERE.format("the exact ones"),
    "|f̂(x) − f(x)|/‖φ(x)‖ against exact kernel ridge": EVERYWHERE.format("exact kernel ridge regression's on all rows"),
}
ARITHMETIC = (
    "This is about the arithmetic: how close the computed answer is to the exact one for these data. It says nothing "
    "of how the answer would change with other data."
)


def explain_certificate(proof: Proof) -> str:
    """Say what a certificate certifies.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.report.blocks import explain_certificate
    >>> from gramian.results import Residual
    >>> explain_certificate(Residual("Cholesky", "asked for", 1, 0, np.array([1e-15]), tolerance=1e-10)).split(".")[0]
    'The equations were solved by Cholesky in 1 pass over the data'
    """
    passes = f"{proof.passes} pass{'es' * (proof.passes != 1)} over the data"
    asked = f"{_power(proof.tolerance)} was asked for, so the tolerance is "
    care = "and the numbers on this page are to be used with care"
    if proof.worst <= proof.tolerance and not proof.converged:
        asked += f"met, but the error of the answer is not proved to be as small, {care}"
    else:
        asked += "met" if proof.converged else f"NOT met, {care}"
    if isinstance(proof, SpectralCertificate):
        return f"{_spectrum(proof, passes, asked)} {ARITHMETIC}"
    if isinstance(proof, Optimum):
        return _optimum(proof, passes, asked)
    follows = ""
    if proof.error_bounds is not None:
        words = FOLLOWS.get(proof.bounded, f"{proof.bounded or 'the error'} is at most {{}}")
        follows = f"It follows that {words.format(_power(float(np.max(proof.error_bounds, initial=0.0))))}. "
    return (
        f"The equations were solved by {proof.method} in {passes}. Put back into the equations, the solution misses "
        f"their right-hand side by {_power(proof.worst)} of its size; {asked}. {follows}{ARITHMETIC}"
    )


def _power(value: float) -> str:
    """A small number as people write it.

    Examples
    --------
    >>> _power(2.5e-9), _power(0.25), _power(0.0)
    ('2.5·10⁻⁹', '0.25', '0')
    """
    if not np.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.2g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}·10{str(int(power)).translate(RAISED)}"


def _spectrum(proof: SpectralCertificate, passes: str, asked: str) -> str:
    k, judged = len(proof.values), proof.judged
    if judged == 0:
        return f"{k} components were computed by {proof.method}; none of them stands out of the noise."
    if not k:
        return f"No component was computed ({proof.method})."
    bound = float(np.max(proof.value_bounds[:judged], initial=0.0))
    relative = bound / proof.norm if proof.norm > 0 else 0.0
    digits = "15 or more" if relative < 1e-15 else str(max(0, int(np.floor(-np.log10(relative)))))
    likely = ""
    if proof.overlooked is not None:
        likely = " That these are the largest is not proved, but likely: the chance that one of twice the size of the "
        likely += f"smallest was overlooked is below {_power(proof.overlooked)}."
    which = f"each of the first {judged} singular values, those that stand out of the noise,"
    which = "every singular value" if judged in (None, k) else which
    return (
        f"{k} component{'s were' if k != 1 else ' was'} computed by {proof.method} in {passes}, and each was then put "
        f"back into the data to see by how much it misses being a component. The largest miss is {_power(proof.worst)} "
        f"of the largest singular value; {asked}. It follows that {which} is within {_power(bound)} of an exact one, "
        f"which is {digits} correct digits of the largest.{likely}"
    )


def _optimum(proof: Optimum, passes: str, asked: str) -> str:
    steps = f"{proof.iterations} step{'s' * (proof.iterations != 1)}"
    text = f"The best fit was found by {proof.method} in {passes}"
    if proof.iterations:
        text = f"The fit was improved step by step ({proof.method}): {steps}, {passes}"
    text += f". Where it ended, one more step would move the estimates by {_power(proof.gradient)} of their own "
    text += f"standard errors; {asked}."
    if proof.converged:
        text += " What is left to gain is far smaller than the uncertainty that the data themselves leave."
    if proof.iterations:
        text += " Where there are several maxima, no certificate can say that this one is the highest."
    return text


NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
FORMULA = "=+-@＝＋－＠"  # with their full-width forms, which some spreadsheets take for the same
MATHS = re.compile(r"\$(?=\$)|\\(?=[()\[\]])")
JOINER = "\N{WORD JOINER}"


def guard_cell(text: str) -> str:
    r"""A cell as text: what a spreadsheet would take for a formula gets an apostrophe in front.

    Cells that begin with ``=``, ``+``, ``-`` or ``@``, after blanks or not, or with a tab or a line end, are guarded
    unless they are plain numbers (OWASP, "CSV Injection").

    Parameters
    ----------
    text : str
        The cell.

    Returns
    -------
    str
        The cell, safe to open in a spreadsheet.

    Examples
    --------
    >>> from gramian.display.report import guard_cell
    >>> guard_cell("=1+1"), guard_cell("-2.5e3"), guard_cell("@name"), guard_cell("wine")
    ("'=1+1", '-2.5e3', "'@name", 'wine')
    """
    bare = text.strip()
    if text[:1] not in ("\t", "\r", "\n") and bare[:1] not in tuple(FORMULA):
        return text
    return text if text == bare and NUMBER.fullmatch(bare) else f"'{text}"


def escape_math(text: str) -> str:
    r"""Text for a picture in which no ``$$`` or ``\(`` begins a formula: Bokeh would fetch what typesets it.

    Examples
    --------
    >>> escape_math("$$x$$") == "$$x$$", len(escape_math("$$x$$"))
    (False, 7)
    """
    return MATHS.sub(lambda found: found.group() + JOINER, text)


def isolate(text: str) -> str:
    """Text of unknown direction as HTML: escaped, and without effect on the text around it.

    Examples
    --------
    >>> isolate("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    return f"<bdi>{html.escape(text)}</bdi>"


def is_missing(value: Any) -> bool:
    """Whether there is nothing to show: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


LEAST_CHANCE = 1e-300  # below which a chance is only said to be smaller


def format_chance(p: float) -> str:
    """A p-value for readers: two digits, and never 0.

    Examples
    --------
    >>> format_chance(0.0412), format_chance(0.0), format_chance(2.3e-19)
    ('0.041', '< 1e-300', '2.3e-19')
    """
    return "–" if math.isnan(p) else "< 1e-300" if p < LEAST_CHANCE else f"{p:.2g}"


def format_value(value: Any, percent: bool = False) -> str:
    """A value for readers: five digits, powers of ten where there would be many noughts.

    Examples
    --------
    >>> format_value(0.123456789), format_value(1.5e-9), format_value(True), format_value(0.25, percent=True)
    ('0.12346', '1.50e-09', 'yes', '25.0 %')
    """
    if is_missing(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if percent:
        return f"{100 * value:.2g} %" if 0 < abs(value) < 0.01 else f"{100 * value:.1f} %"
    size = abs(value)
    return f"{value:.2e}" if math.isfinite(value) and size and not 1e-4 <= size < 1e6 else f"{value:.5g}"


def format_exact(value: Any) -> str:
    """A value for machines: every digit of a number; text guarded."""
    if is_missing(value):
        return ""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(value) if is_number else guard_cell(format_value(value))


def as_json(value: Any) -> str:
    r"""JSON that can stand in a script element, whatever text is in it.

    Examples
    --------
    >>> as_json(["</script>"])
    '["\\u003c/script>"]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A surrogate that stands alone cannot be written as UTF-8.
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


SHADE = (51, 34, 136), (204, 102, 119)  # above and below 0: the first two colours of the palette


class Page(Protocol):
    """What a block asks of the page that it is put on."""

    def plot(self, figure: Any, label: str) -> str:
        """Add a Bokeh figure; return the element that it will be drawn in."""

    def cloud(self, spec: dict[str, Any]) -> str:
        """Add points; return the name they go by."""

    def number(self) -> int:
        """A number that no other element has."""


class ReportBlock(Protocol):
    """Something that can stand in a section."""

    def html(self, page: Page, /) -> str:
        """Return it as HTML, everything escaped."""


@dataclass(frozen=True)
class Text:
    """Paragraphs; none of an empty text.

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
        paragraphs = [self.text] * bool(self.text) if isinstance(self.text, str) else self.text
        style = f' class="{escape(self.kind)}"' if self.kind else ""
        return "".join(f"<p{style}>{escape(text)}</p>" for text in paragraphs)


@dataclass(frozen=True)
class Facts:
    """Names and what they are; ``code`` are those set in fixed width, which can be copied."""

    rows: Sequence[tuple[str, str]]
    code: Sequence[str] = ()

    def html(self, page: Page) -> str:
        """A list of descriptions."""
        values = [f"<code>{escape(text)}</code>" if name in self.code else isolate(text) for name, text in self.rows]
        rows = (f"<div><dt>{escape(row[0])}</dt><dd>{v}</dd></div>" for row, v in zip(self.rows, values, strict=True))
        return f'<dl class="facts">{"".join(rows)}</dl>'


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
    percent, shaded, chances : sequence of str
        Columns shown as percentages, columns whose cells are coloured by their size, and columns of p-values.
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
    chances: Sequence[str] = ()

    def html(self, page: Page) -> str:
        """The table in a frame that scrolls."""
        lists = {
            name: [value.item() if isinstance(value, np.generic) else value for value in values]
            for name, values in self.columns.items()
        }
        largest = {name: max((abs(v) for v in lists[name] if _is_size(v)), default=0.0) for name in self.shaded}
        head = body = ""
        for name, values in lists.items():
            number = all(is_missing(value) or isinstance(value, (int, float)) for value in values)
            side, text = ' class="num"' if number else "", isolate(guard_cell(shorten(name)))
            head += f'<th scope="col"{side} aria-sort="none"><button type="button">{text}</button></th>'
        for row in zip(*lists.values(), strict=True):
            pairs = zip(lists, row, strict=True)
            cells = (self._cell(name, value, largest, first=j == 0) for j, (name, value) in enumerate(pairs))
            body += f"<tr>{''.join(cells)}</tr>"
        caption = escape(self.caption)
        return (
            f'<div class="table"><div class="bar"><h3>{caption}</h3><button type="button" class="csv" '
            f'data-file="{escape(self.name)}.csv">Download CSV</button></div>{Text(self.note, "note").html(page)}'
            f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table class="data">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
        )

    def _cell(self, name: str, value: Any, largest: dict[str, float], first: bool) -> str:
        if isinstance(value, str):
            text = isolate(guard_cell(shorten(value, 300)))
            return f'<th scope="row">{text}</th>' if first else f"<td>{text}</td>"
        style, text = "", format_value(value, name in self.percent)
        if name in self.chances and isinstance(value, float):
            text = escape(format_chance(value))
        if largest.get(name) and _is_size(value):  # stronger for larger values, another colour for those below 0
            red, green, blue = SHADE[0] if value >= 0 else SHADE[1]
            style = f' style="background:rgba({red},{green},{blue},{0.32 * abs(value) / largest[name]:.2f})"'
        return f'<td class="num" data-v="{escape(format_exact(value))}"{style}>{text}</td>'


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture: ``draw`` returns a Bokeh figure when the page is made."""

    title: str
    draw: Callable[[], Any]
    note: str = ""

    def html(self, page: Page) -> str:
        """The place that the figure is drawn in, with its title."""
        head = f"<h3>{escape(self.title)}</h3>{Text(self.note).html(page)}"
        plot = page.plot(self.draw(), f"{self.title}. {self.note}")
        return f'<figure class="picture"><figcaption>{head}</figcaption>{plot}</figure>'


@dataclass(frozen=True, eq=False)
class Row:
    """Blocks side by side, where the page is wide enough."""

    blocks: Sequence[ReportBlock]
    kind: str = ""

    def html(self, page: Page) -> str:
        """The blocks in a grid; of the kind "many", three and more in a line."""
        return f'<div class="row {escape(self.kind)}">{"".join(block.html(page) for block in self.blocks)}</div>'


@dataclass(frozen=True)
class QualityBlock:
    """A measure of fit, which no certificate of the arithmetic can give: in the colour of its level, and explained.

    Examples
    --------
    >>> from gramian.display.report.blocks import QualityBlock
    >>> from gramian.results import FitLevel, Quality
    >>> QualityBlock(Quality("r2", "R²", -0.1, "no better than their mean", FitLevel.POOR)).html(None).count("poor")
    1
    """

    measure: Quality

    @property
    def badge(self) -> str:
        """The words in their colour."""
        level, label = self.measure.verdict.name.lower(), isolate(self.measure.label)
        return f'<p class="badge fit {level}">Fit: {label}, {isolate(self.measure.text)}</p>'

    def html(self, page: Page) -> str:
        """The badge, and what it means."""
        return f'<div class="quality">{self.badge}{Text(self.measure.meaning).html(page)}</div>'


def arithmetic_badge(met: bool, tolerance: float | None) -> str:
    """What the certificate is about: the arithmetic, and to which tolerance."""
    mark = f'<span aria-hidden="true">{"✓" if met else "✗"}</span>'
    return f'<p class="badge {"met" if met else "unmet"}">{mark} Arithmetic: {describe_verdict(met, tolerance)}</p>'


@dataclass(frozen=True, eq=False)
class CertificateBlock:
    """A certificate: what it means, and then what it says."""

    proof: Proof
    title: str = ""

    def html(self, page: Page) -> str:
        """A badge, a paragraph, a table."""
        rows = "".join(
            f"<tr><th scope='row'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in self.proof.summary()
        )
        title = f"<h3>{isolate(shorten(self.title))}</h3>" if self.title else ""
        return (
            f'<div class="certificate {"met" if self.proof.converged else "unmet"}">{title}'
            f"{arithmetic_badge(self.proof.converged, self.proof.tolerance)}"
            f"<p>{escape(explain_certificate(self.proof))}</p>"
            f'<details><summary>The certificate itself</summary><table class="plain">{rows}</table></details></div>'
        )


@dataclass(frozen=True, eq=False)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: Sequence[ReportBlock]
    lead: str = ""

    def html(self, page: Page, anchor: str) -> str:
        """The section, with the name that links lead to."""
        body = "".join(block.html(page) for block in (Text(self.lead, "lead"), *self.blocks))
        head = f'<h2 id="{anchor}-h">{isolate(shorten(self.title))}</h2>'
        return f'<section id="{anchor}" aria-labelledby="{anchor}-h">{head}{body}</section>'


@dataclass(frozen=True, eq=False)
class Report:
    """All of a page.

    Attributes
    ----------
    title, subtitle : str
        Its head.
    sections : sequence of Section
        Its body.
    tiles : sequence of tuple of str
        The few numbers a reader wants first, each with its caption.
    met : bool or None
        Whether every tolerance was met; None where nothing was certified.
    tolerance : float or None
        The largest of them.
    quality : sequence of Quality
        How well the model fits; the head shows what says most against it.
    warnings : sequence of str
        What a reader must see before all else.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    tiles: Sequence[tuple[str, str]] = ()
    met: bool | None = None
    tolerance: float | None = None
    quality: Sequence[Quality] = ()
    warnings: Sequence[str] = ()


FAINT = "#5b6875"
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def bokeh_module(name: str) -> Any:
    """Load a module of Bokeh, or say what to install."""
    try:
        import bokeh.document
        import bokeh.models
        import bokeh.plotting
        import bokeh.resources
    except ImportError as error:
        raise ImportError('A report needs Bokeh: pip install "gramian[report]".') from error
    return getattr(bokeh, name)


def new_figure(
    x_label: str, y_label: str, *, height: int = 360, tools: str = "pan,box_zoom,wheel_zoom,reset,save", **options: Any
) -> Any:
    """A figure in the style of the page: as wide as its place, quiet grid, no idle lines."""
    plotting, models = bokeh_module("plotting"), bokeh_module("models")
    options = {"sizing_mode": "stretch_width", "min_width": 240, "toolbar_location": "above", **options}
    figure = plotting.figure(height=height, tools=tools, **options)
    figure.toolbar.update(logo=None, active_scroll=None)
    figure.update(background_fill_color=None, border_fill_color=None, outline_line_color=None)
    figure.grid.grid_line_color = GRID
    look: dict[str, Any] = {"axis_label_text_font_style": "normal", "axis_label_text_font": FONT}
    look |= {"axis_label_text_color": INK, "major_label_text_font": FONT, "major_label_text_color": FAINT}
    for axis, label in zip(figure.axis, (x_label, y_label), strict=True):
        axis.update(axis_line_color="#b9c0c8", major_tick_line_color="#b9c0c8", minor_tick_line_color=None, **look)
        axis.axis_label = models.PlainText(text=label)
    return figure


def line_with_dots(figure: Any, columns: Mapping[str, Any], *, size: int = 6, dash: str = "solid", **style: Any) -> Any:
    """Draw a line through points, whose places are the first two columns; return the points."""
    (x, y, *_), source = columns, bokeh_module("models").ColumnDataSource(dict(columns))
    figure.line(x, y, source=source, line_width=2, line_dash=dash, **style)
    return figure.scatter(x, y, source=source, size=size, **style)


def hover_names(figure: Any, renderers: Any, rows: list[tuple[str, str]], mode: str = "mouse") -> None:
    """Show values of the columns named ``@column`` where the pointer is."""
    models = bokeh_module("models")
    figure.add_tools(models.HoverTool(renderers=list(renderers), tooltips=rows, mode=mode, visible=False))


def legend_right(figure: Any) -> None:
    """Move the legend out of the data, and let a click on it hide a line."""
    if figure.legend:
        figure.add_layout(figure.legend[0], "right")
        look: dict[str, Any] = {"label_text_font": FONT, "label_text_font_size": "12px", "label_text_color": INK}
        look |= {"border_line_color": None, "background_fill_color": None, "padding": 4, "margin": 4}
        figure.legend[0].update(click_policy="mute", **look)


def legend_above(figure: Any) -> None:
    """Move the legend of a few lines above the data."""
    figure.add_layout(figure.legend[0], "above")
    look: dict[str, Any] = {"label_text_font": FONT, "label_text_font_size": "12px", "label_text_color": INK}
    look |= {"border_line_color": None, "background_fill_color": None, "margin": 0, "padding": 0}
    figure.legend[0].update(orientation="horizontal", **look)
