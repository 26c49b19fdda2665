"""The name of the point under the pointer, in a window or a notebook that reports where the pointer is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from gramian.display._text import short
from gramian.display.style import INK

__all__ = ["Hover"]

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
            self.note.set_text(short(self.names[row], 40))
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
