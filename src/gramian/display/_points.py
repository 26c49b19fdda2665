"""Points of a plane: by group, on a colour scale, or as their density where they are a crowd."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from gramian.display._groups import Groups, appearance, groups_of, is_scale, key, legend
from gramian.display._text import set_plain
from gramian.display.style import PALETTE

__all__ = ["CROWD", "RASTER", "along", "ellipse_of", "extremes", "point_style", "rings", "scatter", "sides"]

Array = NDArray[Any]

RASTER = 5000  # points beyond which they are drawn as pixels, which keeps vector files small
CROWD = 20_000  # points without labels beyond which their density is drawn instead
CELLS = 90  # of that density, along the longer side


def point_style(rows: int) -> dict[str, Any]:
    """Size, transparency and kind of drawing that suit the number of points."""
    many = rows > RASTER
    size = float(np.clip(20000 / max(rows, 1), 2, 26))
    return {"s": size, "alpha": 0.4 if many else 0.8, "linewidths": 0, "rasterized": many}


def scatter(
    ax: Axes,
    Z: Array,
    labels: Any = None,
    *,
    title: str | None = None,
    plain: bool = False,
    edges: str | None = None,
) -> Groups | None:
    """Draw points by their labels, with the legend or the colour bar that belongs to it; return the groups.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where.
    Z : ndarray of shape (n, 2)
        The points.
    labels : array-like of shape (n,), optional
        Names, or numbers: more than ten different ones are shown by a colour scale.
    title : str, optional
        What the labels are, over the legend or beside the scale.
    plain : bool, default=False
        No legend and no scale beside the axes.
    edges : str, optional
        Colour of the rims of the points; none unless given.

    Returns
    -------
    Groups or None
        None where there are none.
    """
    style = point_style(len(Z)) | ({} if edges is None else {"linewidths": 0.5, "edgecolors": edges})
    if labels is None and len(Z) > CROWD:
        _density(ax, Z, plain)
        return None
    if labels is None:
        ax.scatter(Z[:, 0], Z[:, 1], color=PALETTE[0], **style)
        return None
    if is_scale(labels):
        _scale(ax, Z, np.asarray(labels, dtype=float), style, title, plain)
        return None
    groups = groups_of(labels, len(Z))
    for k in groups.present:
        rows = groups.rows(k)
        ax.scatter(Z[rows, 0], Z[rows, 1], **appearance(k), **style)
    if not plain:
        shown = [*(k for k in groups.present if k >= 0), *(k for k in groups.present if k < 0)]
        legend(ax, [key(k) for k in shown], [groups.name(k) for k in shown], title=title)
    return groups


def _density(ax: Axes, Z: Array, plain: bool) -> None:
    """How many points lie in each cell, of cells that are regular on equal axes."""
    across, up = sides(Z)
    if across >= up:
        cells = (CELLS, int(np.clip(CELLS * up / across / np.sqrt(3), 4, CELLS)))
    else:
        cells = (int(np.clip(CELLS * across / up * np.sqrt(3), 4, CELLS)), CELLS)
    style: dict[str, Any] = {"bins": "log", "mincnt": 1, "cmap": "viridis", "linewidths": 0.1, "rasterized": True}
    found = ax.hexbin(Z[:, 0], Z[:, 1], gridsize=cells, **style)
    if not plain:
        ax.figure.colorbar(found, ax=ax, label="rows", fraction=0.05)


def _scale(ax: Axes, Z: Array, values: Array, style: dict[str, Any], title: str | None, plain: bool) -> None:
    known = np.isfinite(values)
    if not known.all():
        ax.scatter(Z[~known, 0], Z[~known, 1], **appearance(-1), **style)
    points = ax.scatter(Z[known, 0], Z[known, 1], c=values[known], cmap="viridis", **style)
    if not plain:
        bar = ax.figure.colorbar(points, ax=ax, label="label", fraction=0.05)
        set_plain([bar.ax.yaxis.label], [title or "label"])
        bar.solids.set(alpha=1)  # type: ignore[union-attr]


def sides(Z: Array) -> tuple[float, float]:
    """Width and height of the points; one of nothing is taken as a millionth of the other."""
    across, up = (float(side) for side in np.ptp(Z, axis=0))
    least = 1e-6 * max(across, up) or 1.0
    return max(across, least), max(up, least)


def along(start: Array, stop: Array, steps: int = 40) -> Array:
    """Points along lines from start to stop: what names beside them should not hide."""
    t = np.linspace(0.0, 1.0, steps)[:, None, None]
    return np.asarray((1 - t) * np.asarray(start)[None] + t * np.asarray(stop)[None]).reshape(-1, 2)


def extremes(Z: Array, most: int) -> NDArray[np.intp]:
    """Numbers of the points farthest from the middle, the farthest first, by Σ z²/s²."""
    spread = Z.std(axis=0)
    distance = np.sum(((Z - Z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)) ** 2, axis=1)
    return np.argsort(-distance, kind="stable")[:most]


def ellipse_of(Z: Array, level: float, of: str = "rows") -> Array | None:
    r"""The ellipse that holds a new row, or the mean, of a normal group with this probability; None of too few rows.

    .. math:: (x-\bar x)^TS^{-1}(x-\bar x) = \frac{2(n-1)}{n-2}\,F_{2,n-2}(\text{level})\cdot
        \begin{cases}1+1/n & \text{a new row}\\ 1/n & \text{the mean}\end{cases}

    With two degrees of freedom F has a closed form, :math:`\tfrac m2((1-\text{level})^{-2/m}-1)` for m = n − 2.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display._points import ellipse_of
    >>> ellipse_of(np.eye(2), 0.95) is None
    True
    """
    n = len(Z)
    if n < 3:
        return None
    S = np.cov(Z.T)
    values, vectors = np.linalg.eigh(S)
    if values[0] <= 1e-12 * values[1]:  # on a line there is no ellipse
        return None
    m = n - 2
    F = 0.5 * m * ((1 - level) ** (-2 / m) - 1)
    radius = np.sqrt(2 * (n - 1) / m * F * (1 / n + (of == "rows")))
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(Z.mean(axis=0) + radius * (circle * np.sqrt(values)) @ vectors.T)


def rings(ax: Axes, Z: Array, groups: Groups | None, level: float, of: str) -> list[Array]:
    """Draw the ellipse of each group, or of all points; return points along their outlines."""
    parts = [(0, np.arange(len(Z)))] if groups is None else [(k, groups.rows(k)) for k in range(len(groups.names))]
    found = []
    for k, rows in parts:
        ring = ellipse_of(Z[rows], level, of)
        if ring is not None:
            colour = appearance(k)["color"]
            ax.plot(ring[:, 0], ring[:, 1], color=colour, linewidth=1.2, zorder=3)
            ax.fill(ring[:, 0], ring[:, 1], color=colour, alpha=0.06, linewidth=0, zorder=1)
            found.append(along(ring[:-1], ring[1:], 8))
    return found
