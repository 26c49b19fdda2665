"""What every picture shares: colours, axes, and how it is saved."""

from __future__ import annotations

import os
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

__all__ = ["GRID", "INK", "MARKERS", "PALETTE", "FittedPCA", "new_axes", "save_picture"]

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


def save_picture(picture: Axes | Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture as a PNG file.

    Parameters
    ----------
    picture : matplotlib.axes.Axes or matplotlib.figure.Figure
        What one of the plotting functions returned.
    path : path-like
        Where to write.

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
    figure = picture.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure any more")
    # Without the version of matplotlib inside, equal pictures are equal bytes.
    figure.savefig(path, format="png", dpi=150, metadata={"Software": None})
