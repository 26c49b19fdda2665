"""What every picture shares: colours, axes, and how it is saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

__all__ = ["GRID", "INK", "MARKERS", "PALETTE", "FittedPCA", "new_axes", "new_panels", "save_picture"]

# The nine colours of Paul Tol's "muted" scheme, which colour-blind readers can tell apart, and a grey; ordered so
# that neighbours differ in lightness too. The marker repeats what the colour says.
PALETTE = (
    "#332288",
    "#cc6677",
    "#117733",
    "#88ccee",
    "#882255",
    "#ddcc77",
    "#44aa99",
    "#aa4499",
    "#999933",
    "#777777",
)
MARKERS = "osD^vP<X>p"
INK, GRID = "#333333", "#e6e6e6"


class FittedPCA(Protocol):
    """What the pictures read from a fitted PCA."""

    @property
    def components_(self) -> NDArray[Any]:
        """The principal axes v as rows."""

    @property
    def explained_variance_ratio_(self) -> NDArray[Any]:
        """The share of variance of each."""

    @property
    def mean_(self) -> NDArray[Any]:
        """The mean of each column."""


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or those of a new figure of this size in inches, without the idle frame lines."""
    if ax is None:
        ax = Figure(figsize=size, layout="constrained").subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    return ax


def new_panels(
    ax: Axes | None,
    rows: int,
    columns: int,
    size: tuple[float, float],
    *,
    heights: Sequence[float] | None = None,
    **options: Any,
) -> list[Axes]:
    """Return a grid of axes row by row: on a new figure, or in the place of the axes given, which then hold nothing."""
    if ax is None:
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, height_ratios=heights, **options)
        return [new_axes(panel, size) for panel in grid.ravel()]
    ax.set_axis_off()
    place = ax.get_subplotspec()
    if place is None:  # axes at a place of their own, in no grid
        w, h = 1.0 / columns, 1.0 / rows
        boxes = [(j * w, 1 - (i + 1) * h, 0.82 * w, 0.78 * h) for i in range(rows) for j in range(columns)]
        return [new_axes(ax.inset_axes(box), size) for box in boxes]
    grid = place.subgridspec(rows, columns, height_ratios=heights).subplots(squeeze=False, **options)
    return [new_axes(panel, size) for panel in grid.ravel()]


# What a file format writes about itself: without versions and dates inside, equal pictures are equal bytes.
SILENT: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
}


def save_picture(picture: Any, path: str | os.PathLike[str], *, dpi: float = 150) -> None:
    """Write a picture as a file: PDF or SVG where the name ends so, otherwise PNG.

    Parameters
    ----------
    picture : Display, matplotlib.axes.Axes or matplotlib.figure.Figure
        What one of the plotting functions or classes returned.
    path : path-like
        Where to write.
    dpi : float, default=150
        Dots per inch of a PNG, and of points that are drawn as pixels in the others.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from matplotlib.figure import Figure
    >>> from gramian.display import save_picture
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "empty.png")
    ...     save_picture(Figure(), path)
    ...     path.read_bytes()[1:4]
    b'PNG'
    """
    drawn = getattr(picture, "figure_", picture)
    figure = drawn.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure any more")
    suffix = Path(path).suffix.lower().removeprefix(".")
    kind = suffix if suffix in SILENT else "png"
    figure.savefig(path, format=kind, dpi=dpi, metadata=SILENT[kind])
