"""Rows beside the control limits of T² and Q."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from gramian.display._base import Display
from gramian.display._labels import Labels, add_labels
from gramian.display._points import along, point_style
from gramian.display.style import GRID, INK, PALETTE

__all__ = ["MonitoringDisplay"]

Array = NDArray[Any]

NAMED = 10  # rows that are named, those farthest beyond a limit
SPREAD = 10.0  # largest value over the limit from which a scale is logarithmic
KINDS = ("chart", "plane")
# What a row breaks, how it looks, and what the legend says.
LOOKS = (
    ("within both limits", "#9aa0b5", "o"),
    ("T² above its limit", PALETTE[0], "^"),
    ("Q above its limit", PALETTE[1], "s"),
    ("both above", INK, "D"),
)


class MonitoringDisplay(Display):
    """T² and Q of rows with their limits: in the order of the rows, or against each other.

    Parameters
    ----------
    alarms : Alarms
        What ``check`` of a :meth:`gramian.PCA.monitor` returned.

    Attributes
    ----------
    labels_ : list of Labels
        Names of the rows with an alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.display import MonitoringDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> pca = PCA(n_components=2).fit(X)
    >>> picture = MonitoringDisplay.from_estimator(pca.monitor(X), [[0, 0, 0, 0], [30, 0, 0, 0], [0, 0, 9, 0]])
    >>> [ax.get_ylabel() for ax in picture.axes_]
    ['T²', 'Q']
    """

    def __init__(self, alarms: Any) -> None:
        self.alarms = alarms
        self.labels_: list[Labels] = []

    @classmethod
    def from_estimator(cls, monitor: Any, X: Any, *, ax: Axes | None = None, **how: Any) -> MonitoringDisplay:
        """Draw what a Monitor says of rows."""
        if not hasattr(monitor, "check"):
            raise ValueError(
                f"{type(monitor).__name__} has no limits to draw: give the monitor of a fitted PCA, pca.monitor(X)."
            )
        return cls.from_predictions(monitor.check(X), ax=ax, **how)

    @classmethod
    def from_predictions(cls, alarms: Any, *, ax: Axes | None = None, **how: Any) -> MonitoringDisplay:
        """Draw alarms that are there already."""
        return cls(alarms).plot(ax=ax, **how)

    def plot(self, ax: Axes | None = None, *, kind: str = "chart", most_names: int = NAMED) -> MonitoringDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        kind : {"chart", "plane"}, default="chart"
            Both statistics in the order of the rows, below each other; or Q against T².
        most_names : int, default=10
            How many rows with an alarm to name.

        Returns
        -------
        MonitoringDisplay
            Itself.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
        self.labels_ = []
        if kind == "plane":
            return self._plane(self._start(ax, (6.0, 4.8)), most_names)
        a = self.alarms
        above, below = self._panels(ax, 2, 1, (7.2, 5.0), sharex=True)
        rows = np.arange(len(a.t2), dtype=float)
        for panel, name, values, limit in ((above, "T²", a.t2, a.t2_limit), (below, "Q", a.q, a.q_limit)):
            self._sequence(panel, name, np.column_stack([rows, values]), limit, most_names)
        below.set_xlabel("row")
        above.set_title(self._title(), loc="left")
        return self

    def _title(self) -> str:
        return f"{len(self.alarms.rows):,} of {len(self.alarms.t2):,} rows beyond a limit"

    def _sequence(self, ax: Axes, name: str, points: Array, limit: float, most: int) -> None:
        """One statistic in the order of the rows."""
        values = points[:, 1]
        out = values > limit
        ax.plot(*points.T, color="#c9ccd8", linewidth=0.7, zorder=1, rasterized=len(points) > 5000)
        style = point_style(len(points))
        ax.scatter(*points[~out].T, color=LOOKS[0][1], **style)
        ax.scatter(*points[out].T, color=PALETTE[1], marker="^", **{**style, "alpha": 0.9, "s": style["s"] + 8})
        ax.axhline(limit, color=INK, linestyle="--", linewidth=1.2)
        ax.annotate(
            f"limit {limit:.3g}", (1, limit), (-2, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", fontsize="small", color=INK,
        )  # fmt: skip
        ax.set_ylabel(name)
        ax.grid(axis="y", color=GRID)
        _scale(ax, "y", values, limit)
        worst = np.flatnonzero(out)[np.argsort(-values[out], kind="stable")][:most]
        line = along(np.array([[0.0, limit]]), np.array([[len(points) - 1.0, limit]]), 400)
        self._write(ax, points, worst, line)

    def _plane(self, ax: Axes, most: int) -> MonitoringDisplay:
        """Q against T²: four fields, by which limit is broken."""
        a = self.alarms
        points = np.column_stack([a.t2, a.q]).astype(float)
        broken = a.t2_alarm.astype(int) + 2 * a.q_alarm.astype(int)
        for k, (name, colour, marker) in enumerate(LOOKS):
            some = points[broken == k]
            if len(some):
                label = f"{name}: {len(some):,}"
                ax.scatter(*some.T, color=colour, marker=marker, label=label, **point_style(len(points)))
        ax.axvline(a.t2_limit, color=INK, linestyle="--", linewidth=1.2)
        ax.axhline(a.q_limit, color=INK, linestyle="--", linewidth=1.2)
        ax.grid(color=GRID)
        ax.set(xlabel="T², distance within the plane", ylabel="Q, squared distance from it")
        ax.set_title(self._title(), loc="left")
        _scale(ax, "x", a.t2, a.t2_limit)
        _scale(ax, "y", a.q, a.q_limit)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize="small")
        excess = np.maximum(_over(a.t2, a.t2_limit), _over(a.q, a.q_limit))
        self._write(ax, points, np.argsort(-excess, kind="stable")[: min(most, len(a.rows))])
        return self

    def _write(self, ax: Axes, points: Array, rows: NDArray[np.intp], line: Array | None = None) -> None:
        avoid = points if line is None else np.vstack([points, line])
        names = [str(i) if self.alarms.names is None else self.alarms.names[i] for i in rows]
        self.labels_.append(add_labels(ax, points[rows], names, avoid=avoid, fontsize="x-small"))


def _over(values: Array, limit: float) -> Array:
    return np.asarray(values / limit if limit > 0 else np.where(values > 0, np.inf, 0.0))


def _scale(ax: Axes, axis: str, values: Array, limit: float) -> None:
    """From 0; logarithmic where a few rows are so far out that the others could not be seen."""
    top = float(np.max(values, initial=0.0))
    if 0 < SPREAD * limit < top and float(np.min(values)) > 0:
        ax.set(**{f"{axis}scale": "log"})
    else:
        ax.set(**{f"{axis}lim": (0.0, 1.12 * max(top, limit) or 1.0)})
