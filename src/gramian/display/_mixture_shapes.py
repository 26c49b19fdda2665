"""Shapes and labels that pictures of mixtures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.analysis._cards import ground
from gramian.display.style import MARKERS, PALETTE

__all__ = ["checked_rows", "column_name", "curve_points", "ellipse", "legend_below", "look", "shown_columns", "span"]

Array = NDArray[Any]

STEPS = 400  # points of a curve
REACH = 3.5  # standard deviations drawn beyond the outermost components


def ellipse(mean: Array, S: Array, radius: float) -> Array:
    """Points x with (x − μ)ᵀΣ⁻¹(x − μ) = r²."""
    angle = np.linspace(0.0, 2 * np.pi, 121)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(mean + radius * circle @ np.linalg.cholesky(S).T)


def span(mixture: Any, j: int) -> tuple[float, float]:
    """How far components reach in a column."""
    centres, deviations = mixture.means[:, j], np.sqrt(mixture.matrices[:, j, j])
    return float(np.min(centres - REACH * deviations)), float(np.max(centres + REACH * deviations))


def curve_points(mixture: Any, low: float, high: float) -> Array:
    """Points from low to high, and closer ones around narrow components."""
    deviations = np.sqrt(mixture.matrices[:, 0, 0])
    near = mixture.means[:, :1] + deviations[:, None] * np.linspace(-REACH, REACH, 61)
    line = np.concatenate([np.linspace(low, high, STEPS), near.ravel()])
    return np.unique(line[(line >= low) & (line <= high)])


def look(k: int) -> dict[str, Any]:
    """Colour and marker of a component or model."""
    return {"color": PALETTE[k % len(PALETTE)], "marker": MARKERS[k % len(MARKERS)]}


def legend_below(ax: Axes) -> Legend:
    """A legend below the axes."""
    return ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False, fontsize="small")


def checked_rows(X: ArrayLike, d: int) -> Array:
    """X as rows of d columns."""
    rows = np.asarray(ground(X), dtype=float)
    rows = rows[:, None] if rows.ndim == 1 and d == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != d:
        raise ValueError(f"X must have {d} columns, as the mixture has; its shape is {rows.shape}.")
    return rows


def column_name(model: Any, j: int) -> str:
    """What a column is called."""
    names = getattr(model, "feature_names_in_", None)
    return f"x{j}" if names is None else str(names[j])


def shown_columns(model: Any, columns: Sequence[int | str] | None) -> list[int]:
    """The columns to draw, by number: one or two of them."""
    check_is_fitted(model)
    if columns is None:
        return list(range(min(model.means_.shape[1], 2)))
    if not isinstance(columns, str) and len(columns) not in (1, 2):
        raise ValueError(f"It takes one column or two to draw; got columns={columns!r}.")
    return [int(j) for j in model._columns(columns)]
