"""What every picture class shares: scikit-learn's convention of ``plot``, ``ax_`` and ``figure_``."""

from __future__ import annotations

import io
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from copy import copy
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.inputs.devices import convert_to_numpy
from gramian.sources.arrays import is_frame

AXIS = 60  # letters of the name of an axis
LONGEST = 24  # letters of a name: more would take the room of the picture
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn")  # kinds of characters that are not drawn


def shorten(text: str, most: int = 120) -> str:
    """A long text without its middle: its ends tell it from others.

    Examples
    --------
    >>> from gramian.display.base import shorten
    >>> shorten("abcdefghij", 5)
    'ab…ij'
    """
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"


def plain_name(name: Any, most: int = LONGEST) -> str:
    r"""A name for a picture: short, on one line, without control characters and marks that reverse text.

    Examples
    --------
    >>> from gramian.display.base import plain_name
    >>> plain_name("the pressure\nin the upper chamber\x00", 16)
    'the pres…chamber'
    """
    text = "".join(" " if c in "\n\r\t\v\f\u2028\u2029" else c for c in str(name))
    return shorten("".join(c for c in text if unicodedata.category(c) not in UNSEEN).strip(), most)


def as_names(names: Iterable[Any] | None, count: int, what: str, usual: str, unit: str = "") -> list[str]:
    """The names given, which must be so many; or the usual ones, as x1, x2, …"""
    if names is None:
        return [usual.format(j + 1) for j in range(count)]
    found = [str(name) for name in names]
    if len(found) != count:
        raise ValueError(f"{what} has {len(found)} entries for {count}{' ' + unit if unit else ''}.")
    return found


def set_plain(texts: Iterable[Text], names: Sequence[Any] | None = None, longest: int = LONGEST) -> None:
    """Write names, letter by letter: a dollar is a dollar and starts no formula."""
    drawn = list(texts)
    for text, name in zip(drawn, [text.get_text() for text in drawn] if names is None else names, strict=True):
        text.set_parse_math(False)
        text.set_text(plain_name(name, longest))


def name_axes(ax: Axes, x: Any, y: Any) -> None:
    """Name both axes by names that came from data."""
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    set_plain([ax.xaxis.label, ax.yaxis.label], [x, y], AXIS)


def as_ticks(names: Iterable[Any], longest: int = LONGEST) -> list[str]:
    r"""Names for the ticks of an axis, which reads a pair of dollars as a formula unless they are escaped.

    Examples
    --------
    >>> from gramian.display.base import as_ticks
    >>> as_ticks(["price in $"])
    ['price in \\$']
    """
    return [plain_name(name, longest).replace("$", r"\$") for name in names]


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """A key by which "group 2" comes before "group 10".

    Examples
    --------
    >>> from gramian.display.base import natural_key
    >>> sorted(["b10", "b2", "a"], key=natural_key)
    ['a', 'b2', 'b10']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part[:18]), part) if part[0] in "0123456789" else (1, 0, part) for part in parts]


# The nine colours of Paul Tol's "muted" scheme, which colour-blind readers can tell apart, and a grey; ordered so
# that neighbours differ in lightness too. The marker repeats what the colour says.
PALETTE = (
    "#332288", "#cc6677", "#117733", "#88ccee", "#882255", "#ddcc77", "#44aa99", "#aa4499", "#999933", "#777777",
)  # fmt: skip
# Thirty more for groups: each time the colour farthest from those before, in Oklab as it is seen with and without
# colour vision. No two of the forty are nearer than 0.097, about five just noticeable differences.
COLOURS = (
    *PALETTE,
    "#0d69f2", "#f269f2", "#0de30d", "#a60df2", "#7896f2", "#f296b5", "#2b5978", "#c40d0d", "#0d0de3", "#3b4a1c",
    "#693bb5", "#f2781c", "#3be3a6", "#f20da6", "#87590d", "#0d87b5", "#8769d4", "#e30df2", "#2b960d", "#a6b587",
    "#0dc459", "#f22b2b", "#782b0d", "#a687b5", "#d40d69", "#690df2", "#691c78", "#b5692b", "#c4a6f2", "#a6c42b",
)  # fmt: skip
MARKERS = "osD^vP<X>p"
INK, GRID = "#333333", "#e6e6e6"


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or those of a new figure of this size in inches, without the idle frame lines."""
    if ax is None:
        ax = Figure(figsize=size, layout="constrained").subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    return ax


def describe_axes(ax: Axes, title: str = "", grid: Literal["", "x", "y", "both"] = "", **settings: Any) -> None:
    """Write a title on the left, draw the lines of a grid, and set what :meth:`matplotlib.axes.Axes.set` knows."""
    if title:
        ax.set_title(title, loc="left")
    if grid:
        ax.grid(axis=grid, color=GRID)
    ax.set(**settings)


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
    suffix = Path(path).suffix.lower().removeprefix(".")
    kind = suffix if suffix in SILENT else "png"
    _figure_of(picture).savefig(path, format=kind, dpi=dpi, metadata=SILENT[kind])


def _figure_of(picture: Any) -> Figure:
    figure = getattr(picture, "figure_", picture).get_figure(root=True)
    if not isinstance(figure, Figure):
        raise ValueError("These axes belong to no figure any more: give others as ax.")
    return figure


def render_png(picture: Any, dpi: float = 110) -> bytes:
    """A picture as the bytes of a PNG file."""
    buffer = io.BytesIO()
    _figure_of(picture).savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def render_formula(tex: str, size: float = 14.0) -> bytes:
    r"""A formula in TeX as the bytes of an SVG file, set by matplotlib.

    Examples
    --------
    >>> from gramian.display.base import render_formula
    >>> render_formula(r"\frac{1}{n}\sum_i x_i")[:5]
    b'<?xml'
    """
    buffer = io.BytesIO()
    with mpl.rc_context({"mathtext.fontset": "cm", "svg.hashsalt": "gramian"}):
        figure = Figure(figsize=(0.1, 0.1))
        figure.text(0, 0, f"${tex}$", fontsize=size)
        figure.savefig(
            buffer, format="svg", bbox_inches="tight", pad_inches=0.02, transparent=True, metadata=SILENT["svg"]
        )
    return buffer.getvalue()


Array = NDArray[Any]


class Display:
    """A picture of numbers that are there already: ``plot`` draws them, ``ax_`` and ``figure_`` hold the drawing.

    In a notebook a display shows itself; :meth:`save` writes a file.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes drawn on; the first of several.
    axes_ : list of matplotlib.axes.Axes
        All of them.
    figure_ : matplotlib.figure.Figure
        Their figure.
    """

    ax_: Axes
    axes_: list[Axes]
    figure_: Figure

    @classmethod
    def from_predictions(cls, *values: Any, **options: Any) -> Self:
        """Draw numbers that are there already: those the class takes, with its options and those of ``plot``."""
        how = {name: options.pop(name) for name in signature(cls.plot).parameters if name in options}
        make: Any = cls
        return cast(Self, make(*values, **options).plot(**how))

    def plot(self, ax: Axes | None = None) -> Display:
        """Draw, on the axes given or on a new figure."""
        raise TypeError(f"{type(self).__name__} is no picture by itself: use one of the classes made from it.")

    def save(self, path: str | os.PathLike[str], *, dpi: float = 150) -> None:
        """Write the picture, as the end of the name says: .png, .pdf or .svg."""
        if not hasattr(self, "figure_"):
            self.plot()
        save_picture(self, path, dpi=dpi)

    def _repr_png_(self) -> bytes:
        """The picture for a notebook."""
        if not hasattr(self, "figure_"):
            self.plot()
        return render_png(self)

    def _start(self, ax: Axes | None, size: tuple[float, float], title: str = "", **how: Any) -> Axes:
        """Take the axes given, or those of a new figure, and describe them as in :func:`describe_axes`."""
        (found,) = self._take([ax], size)
        describe_axes(found, title, **how)
        return found

    def _take(self, axes: Iterable[Axes | None], size: tuple[float, float]) -> list[Axes]:
        """Keep the axes that are drawn on, without their idle frame lines."""
        self.axes_ = [new_axes(ax, size) for ax in axes]
        self.ax_, self.figure_ = self.axes_[0], _figure_of(self.axes_[0])
        return self.axes_

    def _panels(
        self, ax: Axes | None, rows: int, columns: int, size: tuple[float, float], heights: Any = None, **how: Any
    ) -> list[Axes]:
        """Take a grid of axes, row by row: on a new figure, or in the place of those given, which then hold nothing."""
        place = None if ax is None else ax.get_subplotspec()
        grid: Any
        if ax is None:
            figure = Figure(figsize=size, layout="constrained")
            grid = figure.subplots(rows, columns, squeeze=False, height_ratios=heights, **how).ravel()
        elif place is not None:
            grid = place.subgridspec(rows, columns, height_ratios=heights).subplots(squeeze=False, **how).ravel()
        else:  # axes at a place of their own, in no grid
            w, h = 1.0 / columns, 1.0 / rows
            boxes = [(j * w, 1 - (i + 1) * h, 0.82 * w, 0.78 * h) for i in range(rows) for j in range(columns)]
            grid = [ax.inset_axes(box) for box in boxes]
        if ax is not None:
            ax.set_axis_off()
        return self._take(grid, size)


def as_floats(values: Any) -> Any:
    """Values as an array of floats; None stays None."""
    return None if values is None else np.asarray(values, dtype=float)


def check_fitted(model: Any) -> Any:
    """The model, if it was fitted, with its arrays in NumPy; scikit-learn's NotFittedError otherwise."""
    if not hasattr(model, "fit"):
        return model
    check_is_fitted(model)
    return convert_to_numpy(model)


def shares_of(model: Any) -> Array | None:
    """The share of the variance of each component, where a model knows the whole."""
    model = model if model is None else convert_to_numpy(model)
    ratio = getattr(model, "explained_variance_ratio_", None)
    if ratio is None and hasattr(model, "total_variance_") and hasattr(model, "eigenvalues_"):
        ratio = np.asarray(model.eigenvalues_) / float(model.total_variance_)
    return None if ratio is None else np.asarray(ratio, dtype=float)


def component_name(j: int, shares: Array | None) -> str:
    """PC1 (72.9% of the variance): the name of an axis; shares below 1 % with two digits."""
    if shares is None or not j < len(shares) or not np.isfinite(shares[j]):
        return f"PC{j + 1}"
    share = f"{shares[j]:.1%}" if not 0 < shares[j] < 0.01 else f"{100 * shares[j]:.2g}%"
    return f"PC{j + 1} ({share} of the variance)"


def names_of_columns(model: Any, count: int, names: Iterable[Any] | None = None) -> list[str]:
    """The names of columns given, those the model was fitted with, those of its SNPs, or x1, x2, …"""
    found = names if names is not None else getattr(model, "feature_names_in_", None)
    if found is None and hasattr(model, "snps_"):
        found = model.snps_.id
    return as_names(found, count, "names", "x{}", "columns")


def names_of_frame(X: Any, count: int, usual: str = "x{}") -> list[str]:
    """The names of the columns of a frame, or of a series; otherwise the usual ones."""
    if is_frame(X):
        return [str(name) for name in X.columns]
    name = getattr(X, "name", None)  # of a series
    if isinstance(name, str) and name and not isinstance(X, np.ndarray):
        return [name]
    return [usual.format(j + 1) for j in range(count)]


def without_names(model: Any, X: Any = None) -> Any:
    """A model that takes plain arrays in place of the frames it was fitted to, without a warning for lack of names.

    Where X is given and a frame, it is the model itself.
    """
    if is_frame(X) or not hasattr(model, "feature_names_in_"):
        return model
    bare = copy(model)
    del bare.feature_names_in_
    return bare
