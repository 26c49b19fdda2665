"""Names next to points that never lie on one another, whatever the size of the picture.

Places are found when the picture is drawn, as only then it is known how large a name is beside the axes. Names are
placed greedily, the most important first: of some sixty places around its point the one that hides the least is taken;
a name with no free place is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox, IdentityTransform
from numpy.typing import ArrayLike, NDArray

from gramian.display.base import INK, plain_name, set_plain

Array = NDArray[Any]

NEAR = 8.0  # points (1/72 inch) within which the pointer is on a point


class Hover:
    """Shows the name of the nearest point, if it is near; ``stop`` ends it.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where the points are, with a canvas that tells of the pointer.
    points : ndarray of shape (n, 2)
        In the coordinates of the data.
    names : sequence of n names
        What to show.
    """

    def __init__(self, ax: Axes, points: Array, names: Sequence[Any]) -> None:
        self.ax, self.points, self.names = ax, points, names
        box = {"facecolor": "white", "edgecolor": INK, "linewidth": 0.6, "pad": 3.0}
        shift: dict[str, Any] = {"xytext": (10, 10), "textcoords": "offset points"}
        self.note = ax.annotate("", (0, 0), bbox=box, fontsize="small", zorder=9, **shift)
        self.note.set(visible=False, parse_math=False, in_layout=False)
        self._canvas: Any = ax.figure.canvas
        self._link = self._canvas.mpl_connect("motion_notify_event", self.move)

    def move(self, event: Any) -> None:
        """Follow the pointer."""
        row = None if event.inaxes is not self.ax else self.nearest(event.x, event.y)
        shown = self.note.get_visible()
        if row is not None:
            self.note.xy = tuple(self.points[row])
            self.note.set_text(plain_name(self.names[row], 40))
        self.note.set_visible(row is not None)
        if shown or row is not None:
            self._canvas.draw_idle()

    def nearest(self, x: float, y: float) -> int | None:
        """Number of the point at a pixel; None where none is near."""
        away = np.hypot(*(self.ax.transData.transform(self.points) - [x, y]).T)
        row = int(np.argmin(away))
        return row if away[row] <= NEAR * self.ax.figure.dpi / 72 else None

    def stop(self) -> None:
        """Let the pointer go."""
        self._canvas.mpl_disconnect(self._link)
        self.note.set_visible(False)


GAPS = (4.0, 9.0, 16.0, 26.0, 40.0)  # points (1/72 inch) between a point and its name
LEADER = 8.0  # from this gap on a line leads to the name
TURNS = 12  # directions tried
CELL = 2.0  # pixels of a cell in which what may be hidden is counted
CENTRED = 1e6  # what it is worth that the name of a group lies in its middle
PAD = 1.5  # pixels around a name that stay free


class Labels(Artist):
    """Names beside points of axes, the most important first, placed when they are drawn.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        To which they are added.
    xy : array-like of shape (m, 2)
        The points, in the coordinates of the data.
    names : sequence of m names
        What to write.
    avoid : array-like of shape (n, 2), optional
        Points that names should not hide; by default those that are named.
    outward : array-like of shape (m, 2), optional
        Directions in which names should lie, as at the heads of arrows.
    centred : bool, default=False
        Write each name on its point, where there is room.
    colors : sequence of m colours, optional
        Of the names.
    **style
        Of the texts: fontsize, color and the like.

    Attributes
    ----------
    texts : list of matplotlib.text.Text
        One for each name; those without a free place are not visible.
    """

    def __init__(
        self,
        ax: Axes,
        xy: ArrayLike,
        names: Sequence[Any],
        *,
        avoid: ArrayLike | None = None,
        outward: ArrayLike | None = None,
        centred: bool = False,
        colors: Sequence[Any] = (),
        **style: Any,
    ) -> None:
        super().__init__()
        self.xy, self.centred = np.asarray(xy, dtype=float).reshape(-1, 2), centred
        others = self.xy if avoid is None else np.asarray(avoid, dtype=float).reshape(-1, 2)
        self.avoid = others[np.isfinite(others).all(axis=1)]
        self.outward = None if outward is None else np.asarray(outward, dtype=float).reshape(-1, 2)
        self.taken: list[Array] = []
        style = {"fontsize": "small", "color": INK, "ha": "center", "va": "center", **style}
        box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5}
        self.texts = [Text(0, 0, "", bbox=box, **style) for _ in names]
        set_plain(self.texts, names)
        for text, colour in zip(self.texts, colors, strict=False):
            text.set_color(colour)
        self.leaders = [Line2D([], [], color=style["color"], linewidth=0.6, alpha=0.7, visible=False) for _ in names]
        for artist in self.get_children():
            artist.set_transform(IdentityTransform())
        self.set(in_layout=False, zorder=6)
        for artist in (self, *self.get_children()):
            artist.set_figure(ax.figure)
            artist.axes = ax
        ax.add_artist(self)

    def get_children(self) -> list[Artist]:
        """The texts and the lines that lead to them."""
        return [*self.texts, *self.leaders]

    def boxes(self, renderer: RendererBase) -> list[Bbox]:
        """Where the visible names are, in pixels."""
        return [text.get_window_extent(renderer) for text in self.texts if text.get_visible()]

    def draw(self, renderer: RendererBase) -> None:
        """Find the places, and draw."""
        if not self.get_visible() or self.axes is None:
            return
        self.place(renderer)
        for artist in (*self.leaders, *self.texts):
            artist.draw(renderer)

    def place(self, renderer: RendererBase) -> None:
        """Move each name to its place for this renderer."""
        assert self.axes is not None
        frame = self.axes.get_window_extent(renderer)
        points = self.axes.transData.transform(self.xy)
        hidden = _Counts(frame, self.axes.transData.transform(self.avoid) if len(self.avoid) else self.avoid)
        unit = float(np.asarray(renderer.points_to_pixels(1.0)))
        # Names that were added to the same axes before have their places.
        every = [artist for artist in self.axes.artists if isinstance(artist, Labels)]
        earlier = every[: every.index(self)] if self in every else []
        taken = [box for other in earlier for box in other.taken]
        before = len(taken)
        for i, text in enumerate(self.texts):
            text.set_visible(True)
            size = np.array(text.get_window_extent(renderer).size)
            way = None if self.outward is None else self.outward[i]
            boxes, cost = _list_places(points[i], size, way, unit, self.centred)
            # The place that hides the least, of those that overlap neither other names nor the frame.
            inside = (boxes[:, :2] >= frame.min).all(axis=1) & (boxes[:, 2:] <= frame.max).all(axis=1)
            free = np.asarray(inside & frame.contains(*points[i]))
            for other in taken:
                free &= (boxes[:, :2] >= other[2:]).any(axis=1) | (boxes[:, 2:] <= other[:2]).any(axis=1)
            best = int(np.argmin(np.where(free, cost + hidden.inside(boxes), np.inf)))
            box = boxes[best] if free[best] else None
            text.set_visible(box is not None)
            self.leaders[i].set_visible(False)
            if box is not None:
                taken.append(box)
                text.set_position(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
                near = np.clip(points[i], box[:2], box[2:])
                far = bool(np.hypot(*(near - points[i])) > LEADER * unit)
                self.leaders[i].set(data=np.array([points[i], near]).T, visible=far)
        self.taken = taken[before:]


def _list_places(point: Array, size: Array, outward: Array | None, unit: float, centred: bool) -> tuple[Array, Array]:
    """Boxes around a point, and what each costs: farther is worse, and so is a wrong direction."""
    angle = 2 * np.pi * np.arange(TURNS) / TURNS
    ways = np.column_stack([np.cos(angle), np.sin(angle)])
    # a box beside a point touches it with its edge, one above it with its lower side, one between with a corner
    reach = np.clip(ways * 1.5, -1, 1) * size / 2
    centres = point + reach[None] + ways[None] * (unit * np.array(GAPS))[:, None, None]
    cost = np.repeat(0.6 * np.arange(len(GAPS))[:, None], TURNS, axis=1)
    if outward is not None and np.hypot(*outward) > 0:
        cost = cost + 6.0 * (1 - ways @ (outward / np.hypot(*outward)))[None]
    else:
        cost = cost + 0.05 * (1 - ways[:, 0])[None]  # the right side, where nothing else is to be said
    centres, cost = centres.reshape(-1, 2), cost.ravel()
    if centred:
        centres, cost = np.vstack([point, centres]), np.concatenate([[-CENTRED], cost])
    return np.hstack([centres - size / 2 - PAD, centres + size / 2 + PAD]), cost


class _Counts:
    """How many points lie in boxes of the frame, from a table of sums."""

    def __init__(self, frame: Bbox, points: Array) -> None:
        self.frame = frame
        shape = [int(np.ceil(side / CELL)) + 1 for side in (frame.width, frame.height)]
        counts = np.zeros(shape)
        points = points[np.isfinite(points).all(axis=1)] if len(points) else points
        if len(points):
            cells = np.floor((points - [frame.x0, frame.y0]) / CELL).astype(int)
            inside = ((cells >= 0) & (cells < shape)).all(axis=1)
            np.add.at(counts, tuple(cells[inside].T), 1.0)
        # a cell that is hidden is hidden, whether one point lies in it or a thousand
        self.sums = np.pad(np.minimum(counts, 1.0).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def inside(self, boxes: Array) -> Array:
        """What each box hides."""
        corner = np.array([self.frame.x0, self.frame.y0])
        low = np.floor((boxes[:, :2] - corner) / CELL).astype(int)
        high = np.ceil((boxes[:, 2:] - corner) / CELL).astype(int)
        last = np.array(self.sums.shape) - 1
        (a, b), (c, d) = np.clip(low, 0, last).T, np.clip(high, 0, last).T
        S = self.sums
        return np.asarray(S[c, d] - S[a, d] - S[c, b] + S[a, b])
