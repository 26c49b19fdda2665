"""Points of a plane: by group, on a colour scale, or as their density where they are a crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from gramian.display.base import COLOURS, MARKERS, PALETTE, natural_key, set_plain

Array = NDArray[Any]

MOST = 40  # groups with a look of their own; the rarest beyond are put together
MISSING = {"color": "#aaaaaa", "marker": "h"}  # rows without a label
TALL = 16  # entries of a column of a legend
INSIDE = 12  # entries of a legend that lies on the axes
ARROW = {"arrowstyle": "-|>", "shrinkA": 0.0, "shrinkB": 0.0, "mutation_scale": 9.0}


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of rows.

    Attributes
    ----------
    names : tuple of str
        In the order they are drawn.
    codes : ndarray of shape (n,)
        Number of the group of each row; −1 where there is no label.
    """

    names: tuple[str, ...]
    codes: NDArray[np.intp]

    def rows(self, k: int) -> NDArray[np.intp]:
        """Numbers of the rows of a group; of those without a label for −1."""
        return np.flatnonzero(self.codes == k)

    @property
    def present(self) -> list[int]:
        """The groups to draw, rows without a label first, so that they lie below."""
        return [*([-1] if (self.codes < 0).any() else []), *range(len(self.names))]

    def name(self, k: int) -> str:
        """What the legend says."""
        return "no label" if k < 0 else self.names[k]


def appearance(k: int) -> dict[str, Any]:
    """Colour and marker of a group: forty colours, and a hundred pairs before one comes again.

    Examples
    --------
    >>> from gramian.display.groups import appearance
    >>> len({appearance(k)["color"] for k in range(40)}), len({tuple(appearance(k).values()) for k in range(100)})
    (40, 100)
    """
    if k < 0:
        return dict(MISSING)
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[(k + k // len(PALETTE)) % len(MARKERS)]}


def text_colour(k: int) -> tuple[float, ...]:
    """The colour of a group, darkened so that it can be read as text."""
    return tuple(0.6 * part for part in to_rgb(appearance(k)["color"]))


def is_scale(labels: Any) -> bool:
    """Whether labels are numbers to be shown by a colour scale: more than ten different ones."""
    values = np.asarray(labels)
    if values.dtype.kind not in "fiu":
        return False
    return bool(np.unique(values[np.isfinite(values)]).size > len(PALETTE))


def groups_of(labels: Any, n: int, most: int = MOST) -> Groups:
    """Sort rows into groups by their labels; missing labels (None, NaN, "") stay apart.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Anything that can be written; the order of a pandas Categorical is kept.
    n : int
        How many rows there are.
    most : int, default=40
        Most groups; the rarest beyond are put together as "other".

    Returns
    -------
    Groups
        Names and codes.

    Examples
    --------
    >>> from gramian.display.groups import groups_of
    >>> found = groups_of(["b", None, "a", "b"], 4)
    >>> found.names, found.codes.tolist()
    (('a', 'b'), [1, -1, 0, 1])
    """
    values = np.asarray(labels)
    if values.dtype.kind in "US" and not hasattr(labels, "dtype"):
        values = np.array(labels, dtype=object)  # of a NaN among texts NumPy would make a text
    if values.shape != (n,):
        raise ValueError(f"labels of shape {values.shape} do not belong to {n} rows: give one label for each row.")
    known = np.array([not _is_missing(value) for value in values.tolist()], dtype=bool)
    texts = np.array([_label_text(value) for value in values.tolist()], dtype=object)
    order = getattr(getattr(labels, "dtype", None), "categories", None)
    if order is None and values.dtype.kind in "fiub":
        order = np.unique(values[known]).tolist()
    seen = set(texts[known].tolist())
    if order is None:
        names = sorted(seen, key=natural_key)
    else:
        names = [name for name in dict.fromkeys(map(_label_text, order)) if name in seen]
    place = {name: k for k, name in enumerate(names)}
    codes = np.array([place[text] if ok else -1 for text, ok in zip(texts, known, strict=True)], dtype=np.intp)
    if len(names) <= most:
        return Groups(tuple(names), codes)
    # The rarest are put together.
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    recode = np.full(len(names) + 1, len(kept), dtype=np.intp)
    recode[kept], recode[-1] = np.arange(len(kept)), -1
    return Groups((*(names[k] for k in kept), f"other ({len(names) - len(kept)})"), recode[codes])


def legend_width(names: Sequence[str]) -> float:
    """Inches a legend next to the axes takes, about."""
    longest = min(max((len(name) for name in names), default=0), 24)
    return _legend_columns(len(names)) * (0.35 + 0.075 * longest) if names else 0.0


def _legend_columns(count: int) -> int:
    return max(1, -(-count // TALL))


def _label_text(value: Any) -> str:
    """A label as text: 3 for 3.0, which is what a missing neighbour makes of a 3."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT, pandas.NA, and names of no letter."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal to itself nor not
        return type(value).__name__ == "NAType"


RASTER = 5000  # points beyond which they are drawn as pixels, which keeps vector files small
CROWD = 20_000  # points without labels beyond which their density is drawn instead
CELLS = 90  # of that density, along the longer side


def point_style(rows: int) -> dict[str, Any]:
    """Size, transparency and kind of drawing that suit the number of points."""
    many = rows > RASTER
    size = float(np.clip(20000 / max(rows, 1), 2, 26))
    return {"s": size, "alpha": 0.4 if many else 0.8, "linewidths": 0, "rasterized": many}


def scatter(
    ax: Axes, Z: Array, labels: Any = None, *, title: str | None = None, plain: bool = False, edges: str | None = None
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
        No legend and no scale next to the axes.
    edges : str, optional
        Colour of the rims of the points; none unless given.

    Returns
    -------
    Groups or None
        None where there are none.
    """
    style = point_style(len(Z)) | ({} if edges is None else {"linewidths": 0.5, "edgecolors": edges})
    if labels is None and len(Z) > CROWD:
        _draw_density(ax, Z, plain)
        return None
    if labels is None:
        ax.scatter(Z[:, 0], Z[:, 1], color=PALETTE[0], **style)
        return None
    if is_scale(labels):
        values = np.asarray(labels, dtype=float)
        known = np.isfinite(values)
        if not known.all():
            ax.scatter(Z[~known, 0], Z[~known, 1], **appearance(-1), **style)
        points = ax.scatter(Z[known, 0], Z[known, 1], c=values[known], cmap="viridis", **style)
        if not plain:
            bar = ax.figure.colorbar(points, ax=ax, label="label", fraction=0.05)
            set_plain([bar.ax.yaxis.label], [title or "label"])
            bar.solids.set(alpha=1)  # type: ignore[union-attr]
        return None
    groups = groups_of(labels, len(Z))
    for k in groups.present:
        rows = groups.rows(k)
        ax.scatter(Z[rows, 0], Z[rows, 1], **appearance(k), **style)
    if not plain:
        _draw_legend(ax, groups, title)
    return groups


def _draw_legend(ax: Axes, groups: Groups, title: str | None) -> None:
    """A legend next to the axes where the figure makes room for it, on them otherwise; in columns where it is long."""
    shown = [*(k for k in groups.present if k >= 0), *(k for k in groups.present if k < 0)]
    keys = [Line2D([], [], linestyle="", markersize=6, markeredgewidth=0, **appearance(k)) for k in shown]
    figure, count = ax.get_figure(root=True), len(shown)
    style: dict[str, Any] = {"ncols": _legend_columns(count), "columnspacing": 1.0, "handletextpad": 0.4}
    style |= {"fontsize": "small" if count > TALL // 2 else "medium"}
    if count > INSIDE or (figure is not None and figure.get_layout_engine() is not None):
        style |= {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
    else:
        style |= {"loc": "best", "framealpha": 0.8, "edgecolor": "none"}
    # written afterwards: matplotlib would leave out names that begin with "_"
    found = ax.legend(keys, ["name"] * count, title=title, **style)
    set_plain(found.get_texts(), [groups.name(k) for k in shown])
    if title is not None:
        set_plain([found.get_title()])


def _draw_density(ax: Axes, Z: Array, plain: bool) -> None:
    """How many points lie in each cell, of cells that are regular on equal axes."""
    across, up = side_lengths(Z)
    if across >= up:
        cells = (CELLS, int(np.clip(CELLS * up / across / np.sqrt(3), 4, CELLS)))
    else:
        cells = (int(np.clip(CELLS * across / up * np.sqrt(3), 4, CELLS)), CELLS)
    style: dict[str, Any] = {"bins": "log", "mincnt": 1, "cmap": "viridis", "linewidths": 0.1, "rasterized": True}
    found = ax.hexbin(Z[:, 0], Z[:, 1], gridsize=cells, **style)
    if not plain:
        ax.figure.colorbar(found, ax=ax, label="rows", fraction=0.05)


def side_lengths(Z: Array) -> tuple[float, float]:
    """Width and height of the points; one of nothing is taken as a millionth of the other."""
    across, up = (float(side) for side in np.ptp(Z, axis=0))
    least = 1e-6 * max(across, up) or 1.0
    return max(across, least), max(up, least)


def points_along(start: Array, stop: Array, steps: int = 40) -> Array:
    """Points along lines from start to stop: what names next to them should not hide."""
    t = np.linspace(0.0, 1.0, steps)[:, None, None]
    return np.asarray((1 - t) * np.asarray(start)[None] + t * np.asarray(stop)[None]).reshape(-1, 2)


def find_extremes(Z: Array, most: int) -> NDArray[np.intp]:
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
    >>> from gramian.display.groups import ellipse_of
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


def draw_ellipses(ax: Axes, Z: Array, groups: Groups | None, level: float, of: str) -> list[Array]:
    """Draw the ellipse of each group, or of all points; return points along their outlines."""
    parts = [(0, np.arange(len(Z)))] if groups is None else [(k, groups.rows(k)) for k in range(len(groups.names))]
    found = []
    for k, rows in parts:
        ring = ellipse_of(Z[rows], level, of)
        if ring is not None:
            colour = appearance(k)["color"]
            ax.plot(ring[:, 0], ring[:, 1], color=colour, linewidth=1.2, zorder=3)
            ax.fill(ring[:, 0], ring[:, 1], color=colour, alpha=0.06, linewidth=0, zorder=1)
            found.append(points_along(ring[:-1], ring[1:], 8))
    return found
