"""Clouds of points: linked scatter plots whose axes and colours the reader chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.display.report.blocks import Page
from gramian.display.report.cells import plain, short
from gramian.display.report.drawing import bokeh_module, new_figure
from gramian.display.report.points import Points, encode
from gramian.display.style import INK

__all__ = ["WEBGL", "Cloud", "Ellipses", "Panel"]

WEBGL = 3000  # points from which the graphics card draws them
TOOLS = "pan,box_zoom,wheel_zoom,box_select,lasso_select,tap,reset,save,hover"
HINT = (
    "Drag over the points to select them in every plot; the tools above each plot zoom, pan and draw a lasso. "
    "Hold Shift to add to a selection, press Escape to end it. Hover for names."
)


@dataclass(frozen=True)
class Panel:
    """One scatter plot of a cloud.

    Attributes
    ----------
    x, y : str
        Names of the axes shown at first.
    title : str
        Above it.
    line : {"", "diagonal", "zero"}
        A line to compare with, drawn while the axes are those shown at first.
    choose : bool
        Whether the reader can choose the axes.
    """

    x: str
    y: str
    title: str = ""
    line: str = ""
    choose: bool = True


@dataclass(frozen=True, eq=False)
class Ellipses:
    """Ellipses of normal distributions: means (K, d) and covariances (K, d, d) along d of the axes, by name."""

    axes: Sequence[str]
    names: Sequence[str]
    means: NDArray[Any]
    covariances: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points in linked plots.

    Attributes
    ----------
    points : Points
        What is known of them.
    panels : sequence of Panel
        The plots. What is selected in one is selected in all.
    colour : str
        What they are coloured by at first; nothing where it is "".
    name : str
        Of the file that a selection is downloaded as.
    ellipses : Ellipses, optional
        Drawn on plots whose axes they know.
    arrows : bool
        Whether lines lead to the points from the origin, and the farthest are named: for loadings.
    """

    points: Points
    panels: Sequence[Panel]
    colour: str = ""
    name: str = "selection"
    ellipses: Ellipses | None = None
    arrows: bool = False

    def html(self, page: Page) -> str:
        """Controls, plots, legend, and the table of what is selected."""
        spec, notes = encode(self.points)
        key = page.cloud(spec)
        names = [column["name"] for column in spec["columns"]]
        spec |= {
            "file": self.name,
            "colour": names.index(short(self.colour)) if self.colour else -1,
            "arrows": self.arrows,
            "ellipses": self._known(names),
            "panels": [
                {"x": names.index(short(panel.x)), "y": names.index(short(panel.y)), "line": panel.line}
                for panel in self.panels
            ],
        }
        source = _source(key)
        plots = [
            page.plot(_panel(key, j, panel, source, spec["n"]), self._label(panel))
            for j, panel in enumerate(self.panels)
        ]
        panels = "".join(_frame(panel, plot, j) for j, (panel, plot) in enumerate(zip(self.panels, plots, strict=True)))
        told = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
        wide = " one" if len(self.panels) == 1 else ""
        return (
            f'<div class="cloud" id="{key}">{_controls()}<div class="row{wide}">{panels}</div>'
            f'<div class="legend" role="group" aria-label="Legend"></div>{told}<p class="note hint">{HINT}</p>'
            '<div class="chosen" hidden></div></div>'
        )

    def _label(self, panel: Panel) -> str:
        return f"Scatter plot of {self.points.n:,} {self.points.title}s: {panel.y} against {panel.x}"

    def _known(self, names: list[str]) -> dict[str, Any] | None:
        e = self.ellipses
        if e is None:
            return None
        return {
            "axes": [names.index(short(axis)) for axis in e.axes],
            "names": [short(name) for name in e.names],
            "means": np.asarray(e.means, dtype=float).tolist(),
            "covariances": np.asarray(e.covariances, dtype=float).tolist(),
        }


def _controls() -> str:
    return (
        '<div class="bar controls"><label>Colour by <select class="colour"></select></label>'
        '<label>Find <input type="search" class="find" placeholder="part of a name" autocomplete="off"></label>'
        '<span class="count" role="status" aria-live="polite"></span>'
        '<button type="button" class="clear" disabled>Clear</button>'
        '<button type="button" class="save" disabled>Download selection</button></div>'
    )


def _frame(panel: Panel, plot: str, j: int) -> str:
    title = f"<h3>{escape(panel.title)}</h3>" if panel.title else ""
    pickers = "".join(
        f'<label>{way} <select class="axis" data-panel="{j}" data-way="{axis}"></select></label>'
        for axis, way in (("y", "Vertical"), ("x", "Horizontal"))
    )
    chosen = f'<div class="axes">{pickers}</div>' if panel.choose else ""
    return f'<figure class="panel"><figcaption>{title}{chosen}</figcaption>{plot}</figure>'


def _source(key: str) -> Any:
    models = bokeh_module("models")
    # The page fills it; the two columns say which kinds of array it is to make.
    data = {"colour": np.zeros(0, dtype=np.uint32)}
    return models.ColumnDataSource(data=data, name=f"{key}-points")


def _panel(key: str, j: int, panel: Panel, source: Any, n: int) -> Any:
    models = bokeh_module("models")
    figure = new_figure(
        plain(panel.x),
        plain(panel.y),
        height=430,
        tools=TOOLS,
        output_backend="webgl" if n > WEBGL else "canvas",
        x_range=models.Range1d(0, 1),
        y_range=models.Range1d(0, 1),
        name=f"{key}-{j}",
        active_drag="box_select",
    )
    lines = models.ColumnDataSource(data={"xs": [], "ys": [], "colour": []}, name=f"{key}-{j}-lines")
    figure.multi_line("xs", "ys", line_color="colour", line_width=1.5, line_alpha=0.9, source=lines)
    size, alpha = _size(n)
    dots = figure.scatter(
        f"x{j}",
        f"y{j}",
        source=source,
        marker="marker",
        size=size,
        fill_color="colour",
        line_color="white" if n <= WEBGL else None,
        line_width=0.5,
        fill_alpha=alpha,
        nonselection_fill_alpha=0.12 * alpha,
        nonselection_line_alpha=0.1,
        name=f"{key}-{j}-dots",
    )
    texts = models.ColumnDataSource(
        data={"x": [], "y": [], "text": [], "align": [], "offset": []}, name=f"{key}-{j}-texts"
    )
    style = {
        "text_font_size": "12px",
        "text_color": INK,
        "x_offset": "offset",
        "text_align": "align",
        "text_baseline": "middle",
    }
    figure.text("x", "y", text="text", source=texts, **style)
    figure.hover.renderers = [dots]
    figure.hover.name = f"{key}-{j}-hover"
    figure.hover.limit = 4
    figure.hover.visible = False
    return figure


def _size(n: int) -> tuple[float, float]:
    """Smaller and fainter points where there are more of them."""
    for most, size, alpha in ((400, 9, 0.85), (3000, 7, 0.75), (20_000, 5, 0.6)):
        if n <= most:
            return size, alpha
    return 3.5, 0.4
