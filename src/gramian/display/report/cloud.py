"""Clouds of points: linked scatter plots whose axes and colours the reader chooses."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.display.base import INK
from gramian.display.report.blocks import Page, bokeh_module, escape_math, new_figure, shorten

Array = NDArray[Any]

MOST_POINTS = 100_000  # drawn; of more, a sample is
BYTES_EACH = 60  # letters of base64 for colours, for each point
AT_LEAST = 600_000  # ... and so many for all of them, where points are few
LETTERS = 120  # of a name
NAMES_EACH = 24  # letters of names for each point beyond which they are shortened further
STEPS = 62  # shades of a column that is only coloured by, above the first; 63 is missing: a letter of base64 each
LETTERS_64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)
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
        What stands beside an axis, where that is more than its name.

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

    def __post_init__(self) -> None:
        if not self.axes:
            raise ValueError("A cloud of points needs at least one axis.")
        known = {**self.axes, **self.groups, **self.columns}
        if self.names is not None:
            known["names"] = self.names
        if self.numbers is not None:
            known["numbers"] = self.numbers
        for name, values in known.items():
            if np.shape(values)[:1] != (self.n,):
                raise ValueError(f"{name!r} has {len(values)} entries for {self.n} points.")

    @property
    def n(self) -> int:
        """How many there are."""
        return len(next(iter(self.axes.values())))


def encode(points: Points) -> tuple[dict[str, Any], list[str]]:
    """Everything the page needs of the points, as plain values, and what was left out, in words."""
    rows, notes = _sample_rows(points.n, points.title)
    chosen = slice(None) if rows is None else rows
    numbers = rows if points.numbers is None else np.asarray(points.numbers)[chosen]
    names, told = _encode_names(points.names, chosen)
    columns = [
        _encode_numbers(name, np.asarray(values)[chosen]) | {"label": shorten(points.wordy.get(name, name))}
        for name, values in points.axes.items()
    ]
    columns += [_encode_groups(name, np.asarray(values)[chosen]) for name, values in points.groups.items()]
    shades, left = _encode_shades(points, chosen)
    return {
        "n": points.n if rows is None else len(rows),
        "title": points.title,
        "rows": None if numbers is None else _pack(numbers.astype("<i4")),
        "names": names,
        "columns": columns + shades,
        "axes": list(range(len(points.axes))),
    }, notes + told + left


def is_text(values: Any) -> bool:
    """Whether a column holds text, or objects that are shown as text.

    Examples
    --------
    >>> is_text(["a", "b"]), is_text([1, 2])
    (True, False)
    """
    return np.asarray(values).dtype.kind not in "fiub"


def _sample_rows(n: int, title: str) -> tuple[Array | None, list[str]]:
    if n <= MOST_POINTS:
        return None, []
    rows = np.sort(np.random.default_rng(0).choice(n, MOST_POINTS, replace=False))
    return rows, [
        f"A random sample of {MOST_POINTS:,} of the {n:,} {title}s is drawn; every number was computed from all."
    ]


def _encode_names(names: Sequence[str] | None, chosen: Any) -> tuple[list[str] | None, list[str]]:
    if names is None:
        return None, []
    texts = [str(name) for name in np.asarray(names, dtype=object)[chosen]]
    total = sum(min(len(text), LETTERS) for text in texts)
    most = LETTERS if total <= max(NAMES_EACH * len(texts), AT_LEAST // 4) else NAMES_EACH
    cut = sum(len(text) > most for text in texts)
    note = f"{cut:,} name{'s' * (cut != 1)} of more than {most} letters {'are' if cut != 1 else 'is'} shortened."
    return [shorten(text, most) for text in texts], [note] if cut else []


def _encode_numbers(name: str, values: Array) -> dict[str, Any]:
    """A column as float32 where that keeps its digits, else as float64."""
    wide = values.astype("<f8")
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = wide.astype("<f4")
        lost = np.abs(wide - narrow)
    finite = np.isfinite(wide)
    spread = float(np.ptp(wide[finite])) if finite.any() else 0.0
    enough = bool(np.all(lost[finite] <= 1e-5 * spread)) or bool(np.all(lost[finite] == 0))
    kind, data = ("f4", narrow) if enough else ("f8", wide)
    return {"name": shorten(name), "type": "number", "dtype": kind, "data": _pack(data)}


def _encode_groups(name: str, values: Array) -> dict[str, Any]:
    texts = ["" if value is None else str(value) for value in values.tolist()]
    different = sorted(dict.fromkeys(texts), key=_natural)
    place = {text: code for code, text in enumerate(different)}
    kind = "u1" if len(different) < 2**8 else "u2" if len(different) < 2**16 else "u4"
    return {
        "name": shorten(name),
        "type": "group",
        "dtype": kind,
        "values": [shorten(text) or "(none)" for text in different],
        "data": _pack(np.fromiter(map(place.__getitem__, texts), dtype=f"<{kind}", count=len(texts))),
    }


def _natural(text: str) -> tuple[int, float, str]:
    """Numbers by size, before text by its letters."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def _encode_shades(points: Points, chosen: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Columns that are only coloured by: as many as there is room for."""
    found, left, n = [], [], min(points.n, MOST_POINTS)
    room = max(AT_LEAST, BYTES_EACH * n)
    taken = {*points.axes, *points.groups}
    wanted = {name: values for name, values in points.columns.items() if name not in taken}
    for name, values in wanted.items():
        column = _encode_shade(name, np.asarray(values)[chosen])
        size = 0 if column is None else len(column["data"]) + sum(map(len, column.get("values", ())))
        if column is None or size > room:
            left.append(name)
            continue
        room -= size
        found.append(column)
    note = f"Points can be coloured by {len(found)} of {len(wanted)} columns; the others would make this file too large"
    return found, [f"{note}, or hold too many different texts."] if left else []


def _encode_shade(name: str, values: Array) -> dict[str, Any] | None:
    if is_text(values):
        texts = [str(value) for value in values.tolist()]
        return _encode_groups(name, np.array(texts, dtype=object)) if len(set(texts)) <= CATEGORIES else None
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    low, high, cut = _colour_range(finite)
    with np.errstate(invalid="ignore"):
        codes = np.rint(np.clip((wide - low) / ((high - low) or 1.0), 0.0, 1.0) * STEPS)
    codes = np.where(np.isnan(wide), STEPS + 1, codes).astype(np.uint8)
    return {
        "name": shorten(name),
        "type": "shade",
        "dtype": "letter",
        "low": low,
        "high": high,
        "cut": cut,
        "data": LETTERS_64[codes].tobytes().decode("ascii"),
    }


def _colour_range(finite: Array) -> tuple[float, float, list[bool]]:
    """The range of the colours, and whether values lie below or above it."""
    if not len(finite):
        return 0.0, 0.0, [False, False]
    ends = np.quantile(finite, [0.0, 0.01, 0.99, 1.0])
    width = ends[2] - ends[1]
    low = ends[1] if ends[1] - ends[0] > FAR * width > 0 else ends[0]
    high = ends[2] if ends[3] - ends[2] > FAR * width > 0 else ends[3]
    return float(low), float(high), [bool(low > ends[0]), bool(high < ends[3])]


def _pack(values: Array) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


WEBGL = 3000  # points from which the GPU draws them
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
            "colour": names.index(shorten(self.colour)) if self.colour else -1,
            "arrows": self.arrows,
            "ellipses": self._encode_ellipses(names),
            "panels": [
                {"x": names.index(shorten(panel.x)), "y": names.index(shorten(panel.y)), "line": panel.line}
                for panel in self.panels
            ],
        }
        # The page fills it; the column says which kind of array it is to make.
        empty = {"colour": np.zeros(0, dtype=np.uint32)}
        source = bokeh_module("models").ColumnDataSource(data=empty, name=f"{key}-points")
        what, panels = f"Scatter plot of {self.points.n:,} {self.points.title}s", ""
        for j, panel in enumerate(self.panels):
            plot = page.plot(_panel_figure(key, j, panel, source, spec["n"]), f"{what}: {panel.y} against {panel.x}")
            panels += _frame_html(panel, plot, j)
        told = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
        wide = " one" if len(self.panels) == 1 else ""
        return (
            f'<div class="cloud" id="{key}">{CONTROLS}<div class="row{wide}">{panels}</div>'
            f'<div class="legend" role="group" aria-label="Legend"></div>{told}<p class="note hint">{HINT}</p>'
            '<div class="chosen" hidden></div></div>'
        )

    def _encode_ellipses(self, names: list[str]) -> dict[str, Any] | None:
        e = self.ellipses
        if e is None:
            return None
        return {
            "axes": [names.index(shorten(axis)) for axis in e.axes],
            "names": [shorten(name) for name in e.names],
            "means": np.asarray(e.means, dtype=float).tolist(),
            "covariances": np.asarray(e.covariances, dtype=float).tolist(),
        }


CONTROLS = (
    '<div class="bar controls"><label>Colour by <select class="colour"></select></label>'
    '<label>Find <input type="search" class="find" placeholder="part of a name" autocomplete="off"></label>'
    '<span class="count" role="status" aria-live="polite"></span>'
    '<button type="button" class="clear" disabled>Clear</button>'
    '<button type="button" class="save" disabled>Download selection</button></div>'
)


def _frame_html(panel: Panel, plot: str, j: int) -> str:
    title = f"<h3>{escape(panel.title)}</h3>" if panel.title else ""
    pickers = "".join(
        f'<label>{way} <select class="axis" data-panel="{j}" data-way="{axis}"></select></label>'
        for axis, way in (("y", "Vertical"), ("x", "Horizontal"))
    )
    chosen = f'<div class="axes">{pickers}</div>' if panel.choose else ""
    return f'<figure class="panel"><figcaption>{title}{chosen}</figcaption>{plot}</figure>'


def _panel_figure(key: str, j: int, panel: Panel, source: Any, n: int) -> Any:
    models = bokeh_module("models")
    figure = new_figure(
        escape_math(panel.x),
        escape_math(panel.y),
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
    smaller = ((400, 9, 0.85), (3000, 7, 0.75), (20_000, 5, 0.6), (np.inf, 3.5, 0.4))  # and fainter, of more points
    size, alpha = next((size, alpha) for most, size, alpha in smaller if n <= most)
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
    style = {"text_font_size": "12px", "text_color": INK, "text_align": "align", "text_baseline": "middle"}
    figure.text("x", "y", text="text", x_offset="offset", source=texts, **style)
    figure.hover.renderers = [dots]
    figure.hover.name = f"{key}-{j}-hover"
    figure.hover.limit = 4
    figure.hover.visible = False
    return figure
