"""A map found from data next to the true one: scores moved onto coordinates, with arrows from the true places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike, NDArray

from gramian.display.base import INK, PALETTE, Display, as_names, name_axes
from gramian.display.groups import ARROW, Groups, appearance, groups_of, point_style, points_along, text_colour
from gramian.display.labels import Labels

Array = NDArray[Any]

ARROWS = 400  # rows without groups that get an arrow each
MOST = 60  # groups


class MapDisplay(Display):
    """Rows at the places found for them, and an arrow from the true place of each group to the middle of its rows.

    Parameters
    ----------
    found : array-like of shape (n, 2)
        Places found, already moved onto the coordinates: ``procrustes(scores, places).apply(scores)``.
    places : array-like of shape (n, 2)
        True coordinates of the rows, as longitude and latitude.
    labels : array-like of shape (n,), optional
        Groups, as countries. Without them each row has an arrow, up to 400 rows.
    names : sequence of str, optional
        Of the axes.
    geographic : bool, default=False
        Whether places are degrees of longitude and latitude: a degree of longitude is then drawn cos φ as wide as one
        of latitude, φ being the middle of the map. Otherwise both axes have one scale.

    Attributes
    ----------
    r_squared_ : float
        1 − Σ‖found − place‖²/Σ‖place − mean‖²: how much of the map was found.
    labels_ : list of Labels
        Names of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import procrustes
    >>> from gramian.display import MapDisplay
    >>> rng = np.random.default_rng(0)
    >>> places = np.repeat([[0.0, 40.0], [10.0, 50.0], [20.0, 45.0]], 5, axis=0)
    >>> scores = -0.01 * places[:, ::-1] + 0.001 * rng.normal(size=(15, 2))
    >>> moved = procrustes(scores, places)
    >>> picture = MapDisplay.from_alignment(moved, scores, places, labels=np.repeat(["Spain", "Germany", "Hungary"], 5))
    >>> bool(abs(picture.r_squared_ - moved.r_squared) < 1e-9)
    True
    """

    def __init__(
        self,
        found: ArrayLike,
        places: ArrayLike,
        *,
        labels: Any = None,
        names: Sequence[str] | None = None,
        geographic: bool = False,
    ) -> None:
        self.found, self.places = np.asarray(found, dtype=float), np.asarray(places, dtype=float)
        if self.found.ndim != 2 or self.found.shape[1] != 2 or self.found.shape != self.places.shape:
            shapes = f"found of shape {self.found.shape} and places of {self.places.shape}"
            raise ValueError(f"{shapes}: both must place the same rows in a plane.")
        wrong = np.flatnonzero(~np.isfinite(self.found + self.places).all(axis=1))
        if len(wrong):
            raise ValueError(f"Row {wrong[0] + 1} has no finite place: leave out such rows ({len(wrong)} of them).")
        usual = ("longitude", "latitude") if geographic else ("first coordinate", "second coordinate")
        self.names = as_names(usual if names is None else names, 2, "names", "{}")
        self.groups = None if labels is None else groups_of(labels, len(self.found), MOST)
        self.geographic = geographic
        total = float(np.sum((self.places - self.places.mean(axis=0)) ** 2))
        lost = float(np.sum((self.found - self.places) ** 2))
        self.r_squared_ = 1.0 - lost / total if total else float(lost == 0.0)
        self.labels_: list[Labels] = []

    @classmethod
    def from_alignment(
        cls, alignment: Any, scores: ArrayLike, places: ArrayLike, *, ax: Axes | None = None, **options: Any
    ) -> MapDisplay:
        """Draw scores moved by an alignment: what ``procrustes(scores, places)`` returned."""
        Z = np.asarray(scores, dtype=float)
        return cls.from_predictions(alignment.apply(Z), places, ax=ax, **options)

    def plot(self, ax: Axes | None = None) -> MapDisplay:
        """Draw, on the axes given or on a new figure."""
        # A figure of the shape of the map.
        aspect = 1.0
        if self.geographic:
            middle = float(np.mean([self.places[:, 1].min(), self.places[:, 1].max()]))
            aspect = 1.0 / max(float(np.cos(np.deg2rad(middle))), 0.1)
        across, up = np.maximum(np.ptp(np.concatenate([self.found, self.places]), axis=0), 1e-12)
        size = 7.0, float(np.clip(6.2 * aspect * up / across + 0.8, 3.4, 8.0))
        ax = self._start(ax, size, f"Places found from the data, R² = {self.r_squared_:.3f}", grid="both")
        style = {**point_style(len(self.found)), "alpha": 0.45}
        if self.groups is None:
            ax.scatter(*self.found.T, color=PALETTE[0], **style)
            if len(self.found) <= ARROWS:
                lines = list(np.stack([self.places, self.found], axis=1))
                ax.add_collection(LineCollection(lines, colors="#999999", linewidths=0.7, zorder=1))
            ring: dict[str, Any] = {"s": 14, "facecolors": "none", "edgecolors": INK, "linewidths": 0.8}
            ax.scatter(*self.places.T, label="true place", **ring)
            ax.legend(loc="lower left", frameon=False, fontsize="small")
        else:
            for k in self.groups.present:
                some = self.found[self.groups.rows(k)]
                ax.scatter(some[:, 0], some[:, 1], **appearance(k), **style)
            self._draw_group_arrows(ax, self.groups)
        name_axes(ax, *self.names)
        ax.set_aspect(aspect)
        return self

    def _draw_group_arrows(self, ax: Axes, groups: Groups) -> None:
        """An arrow for each group, from its true place to the middle of its rows, and its name."""
        sizes = np.bincount(groups.codes[groups.codes >= 0], minlength=len(groups.names))
        order = [int(k) for k in np.argsort(-sizes, kind="stable")]
        start = np.array([self.places[groups.rows(k)].mean(axis=0) for k in order])
        stop = np.array([np.median(self.found[groups.rows(k)], axis=0) for k in order])
        for k, true, middle in zip(order, start, stop, strict=True):
            ax.annotate("", middle, true, arrowprops={**ARROW, "color": text_colour(k), "linewidth": 1.3}, zorder=4)
        ring: dict[str, Any] = {"s": 26, "facecolors": "white", "edgecolors": INK, "linewidths": 1.1, "zorder": 5}
        ax.scatter(*start.T, label="true place", **ring)
        ax.update_datalim(np.vstack([start, stop]))
        colours = [text_colour(k) for k in order]
        names, avoid = [groups.names[k] for k in order], np.vstack([points_along(start, stop, 20), start])
        style: dict[str, Any] = {"fontweight": "bold", "fontsize": "small" if len(order) <= 20 else "x-small"}
        self.labels_ = [Labels(ax, start, names, avoid=avoid, outward=start - stop, colors=colours, **style)]
        ax.legend(loc="lower left", frameon=True, framealpha=0.8, edgecolor="none", fontsize="small")
