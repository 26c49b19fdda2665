"""The page: one file with everything in it, a policy that lets nothing else in, and its place on disk."""

from __future__ import annotations

import os
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from gramian.display.base import COLOURS, shorten
from gramian.display.report.blocks import QualityBlock, Report, Text, arithmetic_badge, as_json, bokeh_module
from gramian.display.report.cloud import WEBGL
from gramian.results import find_gravest
from gramian.sources.writing import write_whole

# Bokeh writes style elements and attributes of its own; scripts run by their checksums alone, and nothing is evaluated.
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'none'; base-uri 'none'; form-action 'none'"
)


def write_report(path: str | os.PathLike[str], report: Report) -> None:
    """Write a report as one HTML file that needs nothing else.

    Parameters
    ----------
    path : path-like
        Where to write. The file is written next to its place and renamed, so that it is whole or absent.
    report : Report
        What one of the ``*_report`` functions returned.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gramian.display.report import Report, Section, Text, write_report
    >>> report = Report("Title", "Subtitle", [Section("First", [Text("Words.")])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(pathlib.Path(folder, "report.html"), report)
    ...     pathlib.Path(folder, "report.html").read_text("utf-8")[:15]
    '<!DOCTYPE html>'
    """
    text = render(report)
    with write_whole(path, overwrite=True) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def render(report: Report) -> str:
    """Return a report as the text of an HTML page.

    Parameters
    ----------
    report : Report
        What one of the ``*_report`` functions returned.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from gramian.display.report import Report, Section, Text, render
    >>> page = render(Report("A < B", "", [Section("First", [Text("Words.")])]))
    >>> "<h1><bdi>A &lt; B</bdi></h1>" in page
    True
    """
    canvas = Canvas()
    body = "".join(section.html(canvas, f"s{j}") for j, section in enumerate(report.sections, start=1))
    links = "".join(f'<a href="#s{j}">{escape(s.title)}</a>' for j, s in enumerate(report.sections, start=1))
    scripts = canvas.scripts()
    digests = (b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts)
    policy = POLICY.format(scripts=" ".join(dict.fromkeys(f"'sha256-{digest}'" for digest in digests)))
    title, subtitle = escape(shorten(report.title)), escape(shorten(report.subtitle, 300))
    tiles = "".join(
        f"<div><strong>{escape(value)}</strong><span>{escape(text)}</span></div>" for value, text in report.tiles
    )
    gravest = find_gravest(report.quality)
    badge = "" if gravest is None else QualityBlock(gravest).badge
    badge += "" if report.met is None else arithmetic_badge(report.met, report.tolerance)
    notices = Text([f"Warning: {text}" for text in report.warnings], "warning").html(canvas)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{_read('report.css')}</style>\n</head>\n"
        '<body>\n<a class="skip" href="#main">To the content</a>\n'
        f'<header><h1><bdi>{title}</bdi></h1><p>{subtitle}</p><div class="badges">{badge}</div>'
        f'<div class="tiles">{tiles}</div></header>\n'
        f'<nav aria-label="Sections">{links}</nav>\n<main id="main">{notices}{body}</main>\n'
        "<noscript><p>The plots are drawn by scripts, which are part of this page; nothing is fetched.</p></noscript>\n"
        f'<script type="application/json" id="plots">{canvas.plots()}</script>\n'
        f'<script type="application/json" id="clouds">{as_json(canvas.clouds)}</script>\n'
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body>\n</html>\n"
    )


class Canvas:
    """What a page gathers while its blocks are written: figures in one document, and points."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}  # by the element that each is drawn in
        self.clouds: dict[str, dict[str, Any]] = {}
        self._count = 0

    def number(self) -> int:
        """A number that no other element has."""
        self._count += 1
        return self._count

    def plot(self, figure: Any, label: str) -> str:
        """Add a figure; return the element that it will be drawn in."""
        place = f"plot-{self.number()}"
        self.figures[place] = figure
        return f'<div class="plot" id="{place}" role="group" aria-label="{escape(shorten(label, 300))}"></div>'

    def cloud(self, spec: dict[str, Any]) -> str:
        """Add points; return the name they go by."""
        key = f"cloud-{self.number()}"
        self.clouds[key] = spec
        return key

    def plots(self) -> str:
        """The document, and where its figures go."""
        if not self.figures:
            return "null"
        document = bokeh_module("document").Document()
        for figure in self.figures.values():
            document.add_root(figure)
        roots = {figure.id: place for place, figure in self.figures.items()}
        item = {"docid": "report", "roots": roots, "root_ids": list(roots)}
        return as_json({"documents": {"report": document.to_json(deferred=False)}, "items": [item]})

    def scripts(self) -> list[str]:
        """Bokeh, as much of it as is needed, and what makes the page work."""
        parts = f"const COLOURS = {as_json(list(COLOURS))};\n"
        parts += "".join(_read(name) for name in ("tools.js", "cloud.js", "start.js"))
        found = [f'"use strict";\n(() => {{\n{parts}}})();\n']  # in a scope of its own
        if self.figures:
            large = any(spec["n"] > WEBGL for spec in self.clouds.values())
            components = ["bokeh", "bokeh-gl"] if large else ["bokeh"]
            resources = bokeh_module("resources").Resources(mode="inline", components=components, log_level="error")
            found = [*resources.js_raw, *found]
        # As a browser reads them, whose checksums are those of text with one kind of line end.
        found = [script.replace("\r\n", "\n").replace("\r", "\n") for script in found]
        if any("</script" in script.lower() or "<!--" in script for script in found):
            raise ValueError("A script would end its own element: this version of Bokeh cannot be put inline.")
        return found


def _read(name: str) -> str:
    """A file that lies next to this one."""
    return files("gramian.display.report").joinpath(name).read_text("utf-8")
