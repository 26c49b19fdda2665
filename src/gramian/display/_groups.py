"""Rows by their labels: which group each belongs to, how it looks, and the legend that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from gramian.display._text import natural, set_plain
from gramian.display.style import MARKERS, PALETTE

__all__ = [
    "MISSING",
    "MOST",
    "Groups",
    "appearance",
    "groups_of",
    "is_scale",
    "key",
    "legend",
    "legend_width",
    "writing",
]

Array = NDArray[Any]

MOST = 40  # groups with a look of their own; the rarest beyond are put together
MISSING = {"color": "#aaaaaa", "marker": "h"}  # rows without a label
TALL = 16  # entries of a column of a legend
INSIDE = 12  # entries of a legend that lies on the axes


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
    """Colour and marker of a group: 100 pairs before one comes again.

    Examples
    --------
    >>> from gramian.display._groups import appearance
    >>> len({tuple(appearance(k).values()) for k in range(100)})
    100
    """
    if k < 0:
        return dict(MISSING)
    return {"color": PALETTE[k % len(PALETTE)], "marker": MARKERS[(k + k // len(PALETTE)) % len(MARKERS)]}


def writing(k: int) -> tuple[float, ...]:
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
    >>> from gramian.display._groups import groups_of
    >>> found = groups_of(["b", None, "a", "b"], 4)
    >>> found.names, found.codes.tolist()
    (('a', 'b'), [1, -1, 0, 1])
    """
    order = getattr(getattr(labels, "dtype", None), "categories", None)
    values = _values(labels)
    if values.shape != (n,):
        raise ValueError(f"labels of shape {values.shape} do not belong to {n} rows: give one label for each row.")
    known = ~_missing(values)
    texts = np.array([_written(value) for value in values.tolist()], dtype=object)
    names = _ordered(values[known], texts[known], order)
    place = {name: k for k, name in enumerate(names)}
    codes = np.array([place[text] if ok else -1 for text, ok in zip(texts, known, strict=True)], dtype=np.intp)
    return _fewer(names, codes, most)


def key(k: int, **changes: Any) -> Line2D:
    """The entry of a group in a legend."""
    look = appearance(k)
    style: dict[str, Any] = {"linestyle": "", "markersize": 6, "markeredgewidth": 0, **look, **changes}
    return Line2D([], [], **style)


def legend(ax: Axes, handles: Sequence[Artist], names: Sequence[Any], *, title: str | None = None) -> Legend:
    """A legend beside the axes where the figure makes room for it, on them otherwise; in columns where it is long."""
    figure = ax.get_figure(root=True)
    roomy = figure is not None and figure.get_layout_engine() is not None
    style: dict[str, Any] = {"ncols": _columns(len(names)), "columnspacing": 1.0, "handletextpad": 0.4}
    style |= {"fontsize": "small" if len(names) > TALL // 2 else "medium"}
    if roomy or len(names) > INSIDE:
        style |= {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
    else:
        style |= {"loc": "best", "framealpha": 0.8, "edgecolor": "none"}
    # written afterwards: matplotlib would leave out names that begin with "_"
    found = ax.legend(list(handles), ["name"] * len(names), title=title, **style)
    set_plain(found.get_texts(), names)
    if title is not None:
        set_plain([found.get_title()])
    return found


def legend_width(names: Sequence[str]) -> float:
    """Inches a legend beside the axes takes, about."""
    longest = min(max((len(name) for name in names), default=0), 24)
    return _columns(len(names)) * (0.35 + 0.075 * longest) if names else 0.0


def _columns(count: int) -> int:
    return max(1, -(-count // TALL))


def _values(labels: Any) -> Array:
    """Labels as an array; of a list in which NaN is among texts, NumPy would make a text of it."""
    values = np.asarray(labels)
    return np.array(labels, dtype=object) if values.dtype.kind in "US" and not hasattr(labels, "dtype") else values


def _written(value: Any) -> str:
    """A label as text: 3 for 3.0, which is what a missing neighbour makes of a 3."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _missing(values: Array) -> NDArray[np.bool_]:
    if values.dtype.kind in "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        return np.array([_is_missing(value) for value in values], dtype=bool)
    return np.array([value == "" for value in values.tolist()], dtype=bool)


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT, pandas.NA, and names of no letter."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal to itself nor not
        return type(value).__name__ == "NAType"


def _ordered(values: Array, texts: Array, order: Any) -> list[str]:
    """Names in the order of their categories, of their numbers, or of the alphabet."""
    if order is not None:
        seen = set(texts.tolist())
        return [_written(name) for name in order if _written(name) in seen]
    if values.dtype.kind in "fiub":
        return list(dict.fromkeys(_written(value) for value in np.unique(values).tolist()))
    return sorted(set(texts.tolist()), key=natural)


def _fewer(names: list[str], codes: NDArray[np.intp], most: int) -> Groups:
    if len(names) <= most:
        return Groups(tuple(names), codes)
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    recode = np.full(len(names) + 1, len(kept), dtype=np.intp)
    recode[kept], recode[-1] = np.arange(len(kept)), -1
    rest = f"other ({len(names) - len(kept)})"
    return Groups((*(names[k] for k in kept), rest), recode[codes])
