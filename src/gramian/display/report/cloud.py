"""Clouds of points: linked scatter plots whose axes and colours the reader chooses."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any
from zlib import compress

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import shorten
from gramian.display.groups import groups_of
from gramian.display.report.blocks import Page, Text, bokeh_module, escape_math, new_figure

Array = NDArray[Any]

MOST_POINTS = 100_000  # drawn; of more, a sample is
ROOM = 2_300_000  # letters of base64 for all that is known of the points: with Bokeh a page of less than 4 MB
NARROW = 20_000  # points beyond which an axis has 65,535 steps: more than a screen has, and half the letters
LETTERS = 120  # of a name
NAMES_EACH = 24  # letters of a name where they would take a third of the room
STEPS = 62  # shades of a column that is only coloured by, above the first; 63 is missing
FINEST = 65_534  # steps of an axis of very many points, above the first; one more is missing
CATEGORIES = 1000  # different texts from which a column is no longer a set of groups
FAR = 0.5  # tails that widen the range of a column by this share are cut off from its colours


@dataclass(frozen=True, eq=False)
class Points:
    """What is known of each point.

    Attributes
    ----------
    axes : mapping of str to array of shape (n,)
        Numbers that can be put on an axis: kept to seven digits, and downloadable.
    names : sequence of str, optional
        Of the points; their row numbers otherwise.
    groups : mapping of str to sequence of str
        Labels and clusters: coloured by, and downloadable.
    columns : mapping of str to array
        Others that can be coloured by, numbers or text.
    title : str
        What one point is: "row", "sample", "column".
    numbers : array of shape (n,), optional
        Their row numbers, where they are not 0, 1, 2, …
    wordy : mapping of str to str
        What stands next to an axis, where that is more than its name.
    alike : sequence of str
        Axes of one unit: a plot of two of them has equal scales, in which distances are true.
    totals : mapping of str to mapping of str to int
        How many of each group there are, where some are not drawn.

    Examples
    --------
    >>> from gramian.display.report.cloud import Points
    >>> Points({"PC1": [0.0, 1.0], "PC2": [1.0, 0.0]}).n
    2
    """

    axes: Mapping[str, Any]
    names: Sequence[str] | None = None
    groups: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    title: str = "row"
    numbers: Any = None
    wordy: Mapping[str, str] = field(default_factory=dict)
    alike: Sequence[str] = ()
    totals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.axes:
            raise ValueError("A cloud of points needs at least one axis.")
        known = [*self.axes.items(), *self.groups.items(), *self.columns.items()]
        for name, values in (*known, ("names", self.names), ("numbers", self.numbers)):
            if values is not None and np.shape(values)[:1] != (self.n,):
                raise ValueError(f"{name!r} has {len(values)} entries for {self.n} points.")

    @property
    def n(self) -> int:
        """How many there are."""
        return len(next(iter(self.axes.values())))


def encode(points: Points, needed: Sequence[str] = ()) -> tuple[dict[str, Any], list[str]]:
    """Everything the page needs of the points, as plain values, and what was left out, in words.

    Columns are put in as there is room for them, those needed in any case.
    """
    notes: list[str] = []
    rows: Array | None = None
    if points.n > MOST_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(points.n, MOST_POINTS, replace=False))
        sample = f"A random sample of {MOST_POINTS:,} of the {points.n:,} {points.title}s is drawn"
        notes.append(f"{sample}; every number was computed from all.")
    chosen = slice(None) if rows is None else rows
    numbers = rows if points.numbers is None else np.asarray(points.numbers)[chosen]
    names, room = None, ROOM
    if points.names is not None:
        texts = [str(name).replace("\n", " ") for name in np.asarray(points.names, dtype=object)[chosen]]
        most = LETTERS if sum(min(len(text), LETTERS) for text in texts) <= ROOM // 3 else NAMES_EACH
        cut = sum(len(text) > most for text in texts)
        names = _pack("\n".join(shorten(text, most) for text in texts).encode("utf-8", "replace"))
        room -= len(names)
        if cut:
            are = "s of more than {} letters are" if cut != 1 else " of more than {} letters is"
            notes.append(f"{cut:,} name{are.format(most)} shortened.")
    columns: list[dict[str, Any]] = []
    for name, values in sorted(points.axes.items(), key=lambda axis: axis[0] not in needed):
        column = _encode_numbers(name, np.asarray(values)[chosen]) | {"label": shorten(points.wordy.get(name, name))}
        if name in needed or len(column["data"]) <= room:
            room -= len(column["data"])
            columns.append(column)
    order = [shorten(name) for name in points.axes]
    columns.sort(key=lambda column: order.index(column["name"]))
    count = len(columns)
    if count < len(points.axes):
        notes.append(f"The first {count} of {len(points.axes)} axes can be shown: more would make this file too large.")
    for name, values in points.groups.items():
        column, totals = _encode_groups(name, np.asarray(values)[chosen]), points.totals.get(name)
        columns.append(column if totals is None else column | {"totals": [totals.get(v, 0) for v in column["values"]]})
    room -= sum(len(column["data"]) for column in columns[count:])
    # Columns that are only coloured by.
    shades = []
    wanted = {name: v for name, v in points.columns.items() if name not in {*points.axes, *points.groups}}
    for name, values in wanted.items():
        shade = _encode_shade(name, np.asarray(values)[chosen])
        size = 0 if shade is None else len(shade["data"]) + sum(map(len, shade.get("values", ())))
        if shade is not None and size <= room:
            room -= size
            shades.append(shade)
    if len(shades) < len(wanted):
        coloured = f"Points can be coloured by {len(shades)} of {len(wanted)} columns"
        notes.append(f"{coloured}; the others would make this file too large, or hold too many different texts.")
    return {
        "n": points.n if rows is None else len(rows),
        "title": points.title,
        "rows": None if numbers is None else _pack(numbers.astype("<i4")),
        "names": names,
        "columns": columns + shades,
        "axes": list(range(count)),
        "alike": [k for k, column in enumerate(columns) if column["name"] in points.alike],
    }, notes


def is_text(values: Any) -> bool:
    """Whether a column holds text, or objects that are shown as text.

    Examples
    --------
    >>> is_text(["a", "b"]), is_text([1, 2])
    (True, False)
    """
    return np.asarray(values).dtype.kind not in "fiub"


def _encode_numbers(name: str, values: Array) -> dict[str, Any]:
    """A column as float32 where that keeps its digits, else as float64; of very many points in 65,535 steps."""
    wide = values.astype("<f8")
    finite = np.isfinite(wide)
    low, high = (float(wide[finite].min()), float(wide[finite].max())) if finite.any() else (0.0, 0.0)
    found: dict[str, Any] = {"name": shorten(name), "type": "number"}
    if len(wide) > NARROW and np.isfinite(high - low):
        with np.errstate(invalid="ignore"):
            codes = np.where(finite, np.rint((wide - low) / ((high - low) or 1.0) * FINEST), FINEST + 1)
        return found | {"dtype": "u2", "low": low, "high": high, "data": _pack(codes.astype("<u2"))}
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = wide.astype("<f4")
        lost = np.abs(wide - narrow)
    kind, data = ("f4", narrow) if np.all(lost[finite] <= 1e-5 * (high - low)) else ("f8", wide)
    return found | {"dtype": kind, "data": _pack(data)}


def _encode_groups(name: str, values: Array) -> dict[str, Any]:
    """Labels as codes of the groups that pictures draw, rows without a label last."""
    groups = groups_of(values, len(values), len(values))
    names = [*groups.names, *([groups.name(-1)] if (groups.codes < 0).any() else [])]
    kind = "u1" if len(names) < 2**8 else "u2" if len(names) < 2**16 else "u4"
    codes = np.where(groups.codes < 0, len(groups.names), groups.codes)
    shown = {"name": shorten(name), "type": "group", "dtype": kind, "values": [shorten(text) for text in names]}
    return {**shown, "data": _pack(codes.astype(f"<{kind}"))}


def _encode_shade(name: str, values: Array) -> dict[str, Any] | None:
    """A column that is only coloured by: text as groups, unless they are too many, and numbers in 63 steps."""
    if is_text(values):
        return _encode_groups(name, values) if len(set(map(str, values.tolist()))) <= CATEGORIES else None
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    least, low, high, most = np.quantile(finite, [0.0, 0.01, 0.99, 1.0]).tolist() if len(finite) else [0.0] * 4
    far = FAR * (high - low)  # tails that are no longer than this have their own colours
    low, high = low if low - least > far > 0 else least, high if most - high > far > 0 else most
    with np.errstate(invalid="ignore"):
        codes = np.rint(np.clip((wide - low) / ((high - low) or 1.0), 0.0, 1.0) * STEPS)
    codes = np.where(np.isnan(wide), STEPS + 1, codes).astype(np.uint8)
    return {
        "name": shorten(name),
        "type": "shade",
        "dtype": "u1",
        "low": low,
        "high": high,
        "cut": [low > least, high < most],
        "data": _pack(codes),
    }


def _pack(values: Array | bytes) -> str:
    """Numbers or text as letters, deflated."""
    return b64encode(compress(values if isinstance(values, bytes) else values.tobytes(), 6)).decode("ascii")


WEBGL = 3000  # points from which the GPU draws them
TOOLS = "pan,box_zoom,wheel_zoom,box_select,lasso_select,tap,reset,save,hover"
HINT = (
    "Drag over the points to select them in every plot; the tools above each plot zoom, pan and draw a lasso. "
    "Hold Shift to add to a selection, press Escape to end it. Hover over points for names, over the legend to see one "
    "group. With the keyboard: arrow keys move a plot, + and − zoom, 0 shows all."
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
    choose : {"xy", "y", ""}
        Which axes the reader can choose.
    height : int
        In pixels.
    ticks : mapping of float to str
        Names of places on the horizontal axis, which is then not to be chosen.
    """

    x: str
    y: str
    title: str = ""
    line: str = ""
    choose: str = "xy"
    height: int = 430
    ticks: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Ellipses:
    """Ellipses of normal distributions: means (K, d) and covariances (K, d, d) along d of the axes, by name."""

    axes: Sequence[str]
    names: Sequence[str]
    means: NDArray[Any]
    covariances: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Arrows:
    """Arrows from the origin, of variables in a biplot: names and values (m, d) along d of the axes, by name.

    In each plot the longest are drawn, all multiplied by one number so that they are as long as the points are far.
    """

    axes: Sequence[str]
    names: Sequence[str]
    values: NDArray[Any]


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
    biplot : Arrows, optional
        Drawn over the points on plots whose axes they know.
    """

    points: Points
    panels: Sequence[Panel]
    colour: str = ""
    name: str = "selection"
    ellipses: Ellipses | None = None
    biplot: Arrows | None = None

    def html(self, page: Page) -> str:
        """Controls, plots, legend, and the table of what is selected."""
        spec, notes = encode(self.points, [axis for panel in self.panels for axis in (panel.x, panel.y)])
        key = page.cloud(spec)
        numbers = {column["name"]: k for k, column in reversed(list(enumerate(spec["columns"])))}
        ellipses, e = None, self.ellipses
        if e is not None:
            ellipses = {
                "axes": [numbers.get(shorten(axis), -1) for axis in e.axes],
                "names": [shorten(name) for name in e.names],
                "means": np.asarray(e.means, dtype=float).tolist(),
                "covariances": np.asarray(e.covariances, dtype=float).tolist(),
            }
        spec |= {
            "file": self.name,
            "colour": numbers[shorten(self.colour)] if self.colour else -1,
            "ellipses": ellipses,
            "biplot": None
            if self.biplot is None
            else {
                "axes": [numbers.get(shorten(axis), -1) for axis in self.biplot.axes],
                "names": [shorten(name, 24) for name in self.biplot.names],
                "values": np.asarray(self.biplot.values, dtype=float).tolist(),
            },
            "panels": [
                {"x": numbers[shorten(panel.x)], "y": numbers[shorten(panel.y)], "line": panel.line}
                for panel in self.panels
            ],
        }
        # The page fills it; the column says which kind of array it is to make.
        empty = {"colour": np.zeros(0, dtype=np.uint32)}
        source = bokeh_module("models").ColumnDataSource(data=empty, name=f"{key}-points")
        what, panels = f"Scatter plot of {self.points.n:,} {self.points.title}s", ""
        for j, panel in enumerate(self.panels):
            plot = page.plot(_panel_figure(key, j, panel, source, spec["n"]), f"{what}: {panel.y} against {panel.x}")
            title = f"<h3>{escape(panel.title)}</h3>" if panel.title else ""
            pickers = "".join(PICKERS[way].format(j=j) for way in reversed(panel.choose))
            pickers = f'<div class="axes">{pickers}</div>' if pickers else ""
            panels += f'<figure class="panel"><figcaption>{title}{pickers}</figcaption>{plot}</figure>'
        wide = {1: " one", 2: ""}.get(len(self.panels), " many")
        shown = CONTROLS.replace("<!--biplot-->", "" if self.biplot is None else BIPLOT)
        return (
            f'<div class="cloud" id="{key}">{shown}<div class="row{wide}">{panels}</div>'
            f'<div class="legend" role="group" aria-label="Legend"></div>{Text(notes, "note").html(page)}'
            f'<p class="note hint">{HINT}</p><div class="chosen" hidden></div></div>'
        )


CONTROLS = (
    '<div class="bar controls"><label>Colour by <select class="colour"></select></label>'
    '<label>Find <input type="search" class="find" placeholder="part of a name" autocomplete="off"></label>'
    '<!--biplot--><span class="count" role="status" aria-live="polite"></span>'
    '<button type="button" class="clear" disabled>Clear</button>'
    '<button type="button" class="save" disabled>Download selection</button></div>'
)


BIPLOT = '<label><input type="checkbox" class="biplot" checked> Arrows of the columns</label>'
PICKERS = {
    "y": '<label>Vertical <select class="axis" data-panel="{j}" data-way="y"></select></label>',
    "x": '<label>Horizontal <select class="axis" data-panel="{j}" data-way="x"></select></label>',
}


def _panel_figure(key: str, j: int, panel: Panel, source: Any, n: int) -> Any:
    models, few = bokeh_module("models"), n <= WEBGL
    how: dict[str, Any] = {"x_range": models.Range1d(0, 1), "y_range": models.Range1d(0, 1), "name": f"{key}-{j}"}
    how |= {"tools": TOOLS, "active_drag": "box_select", "output_backend": "canvas" if few else "webgl"}
    figure = new_figure(escape_math(panel.x), escape_math(panel.y), height=panel.height, **how)
    if panel.ticks:
        figure.xaxis.ticker = models.FixedTicker(ticks=list(panel.ticks))
        figure.xaxis.major_label_policy = models.NoOverlap(min_distance=3)  # on a phone some are left out
        figure.xaxis.major_label_overrides = {place: escape_math(name) for place, name in panel.ticks.items()}
    lines = models.ColumnDataSource(data={"xs": [], "ys": [], "colour": []}, name=f"{key}-{j}-lines")
    figure.multi_line("xs", "ys", line_color="colour", line_width=1.5, line_alpha=0.9, source=lines)
    smaller = ((400, 9, 0.85), (3000, 7, 0.75), (20_000, 5, 0.6), (np.inf, 3.5, 0.4))  # and fainter, of more points
    size, alpha = next((size, alpha) for most, size, alpha in smaller if n <= most)
    style: dict[str, Any] = {"marker": "marker", "size": size, "fill_color": "colour", "fill_alpha": alpha}
    style |= {"line_color": "white" if few else None, "line_width": 0.5, "nonselection_fill_alpha": 0.12 * alpha}
    style |= {"nonselection_line_alpha": 0.1, "name": f"{key}-{j}-dots"}
    dots = figure.scatter(f"x{j}", f"y{j}", source=source, **style)
    empty: dict[str, Any] = {name: [] for name in ("x", "y", "text", "align", "offset", "colour")}
    texts = models.ColumnDataSource(data=empty, name=f"{key}-{j}-texts")
    letters = {"text_font_size": "12px", "text_color": "colour", "text_align": "align", "text_baseline": "middle"}
    figure.text("x", "y", text="text", x_offset="offset", source=texts, **letters)
    figure.hover.update(renderers=[dots], name=f"{key}-{j}-hover", limit=4, visible=False)
    return figure
