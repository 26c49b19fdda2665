"""Pictures of Gaussian mixtures: densities with their components, counts with fitted curves, choices, uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.display._mixture_shapes import (
    checked_rows,
    column_name,
    curve_points,
    ellipse,
    legend_below,
    look,
    span,
)
from gramian.display.plots import _point_style
from gramian.display.style import GRID, INK, PALETTE, new_axes

__all__ = ["plot_binned_mixture", "plot_mixture", "plot_mixture_choice", "plot_uncertainty"]

Array = NDArray[Any]

GRID_STEPS = 120  # and of each side of a field
ELLIPSE = (1.0, 2.0)  # standard deviations at which components are outlined
STYLES = ("--", ":", "-.")
CRITERIA = ("bic", "aic", "icl")
KEY = 30.0  # size of a point in a legend, whatever those drawn
CURVES = tuple(colour for colour in PALETTE if colour != PALETTE[3])  # that of the bars


def plot_mixture(
    model: Any, X: ArrayLike | None = None, *, columns: Sequence[int | str] | None = None, ax: Axes | None = None
) -> Axes:
    r"""Draw the density of a mixture: in one column with its components π_kN_k, in two as level lines and ellipses.

    Parameters
    ----------
    model : GaussianMixture
        Fitted.
    X : array-like of shape (n, d), optional
        Rows: drawn as a histogram, or as points coloured by component.
    columns : sequence of one or two int or str, optional
        Which columns, by number or name, whose marginal distribution is drawn; the first two unless given.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.mixture_plots import plot_mixture
    >>> from gramian import GaussianMixture
    >>> x = np.concatenate([np.linspace(-1, 1, 30), np.linspace(4, 8, 30)])[:, None]
    >>> ax = plot_mixture(GaussianMixture(2).fit(x), x)
    >>> sum(line.get_label().startswith("component") for line in ax.get_lines())
    2
    """
    shown = _shown(model, columns)
    rows = None if X is None else checked_rows(X, model.means_.shape[1])
    marginal = model.marginal(shown)
    names = [column_name(model, j) for j in shown]
    if len(shown) == 1:
        return _one_column(marginal, None if rows is None else rows[:, shown[0]], names[0], ax)
    return _two_columns(model, marginal, rows, shown, names, ax)


def plot_binned_mixture(model: Any, edges: ArrayLike, counts: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw counts in bins with the fitted components and their sum, on the scale of the counts.

    Bins that are open on one side are drawn as wide as the median one, and paler.

    Parameters
    ----------
    model : GaussianMixture
        Fitted to these counts, or to rows of one column.
    edges, counts : array-like of shape (m + 1,) and (m,)
        The bins; bars of unequal bins are counts per median width.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.mixture_plots import plot_binned_mixture
    >>> from gramian import GaussianMixture
    >>> edges, counts = [-np.inf, -1.0, 0.0, 1.0, np.inf], [16, 34, 34, 16]
    >>> ax = plot_binned_mixture(GaussianMixture().fit_binned(edges, counts), edges, counts)
    >>> len(ax.patches)
    4
    """
    check_is_fitted(model)
    ends, n = np.asarray(edges, dtype=float), np.asarray(counts, dtype=float)
    if model.means_.shape[1] != 1 or n.ndim != 1 or ends.shape != (len(n) + 1,):
        raise ValueError(f"Bars are drawn over one column: edges {ends.shape} and counts {n.shape} must be of one.")
    if np.isinf(ends).all():
        raise ValueError("The one bin is open on both sides: it has no place and no width to draw. Give finite edges.")
    ax = new_axes(ax, (6.8, 4.2))
    widths = np.diff(ends)
    closed = np.isfinite(widths)
    typical = float(np.median(widths[closed])) if closed.any() else 1.0
    left = np.where(np.isinf(ends[:-1]), ends[1:] - typical, ends[:-1])
    width = np.where(closed, widths, typical)
    bars = ax.bar(left, n * typical / width, width, align="edge", color=PALETTE[3], edgecolor="white", linewidth=0.5)
    for bar, whole in zip(bars, closed, strict=True):
        bar.set_alpha(0.6 if whole else 0.3)
    line = curve_points(model.mixture_, float(left[0]), float(left[-1] + width[-1]))
    _curves(ax, model.mixture_, line, float(n.sum()) * typical)
    ax.set(xlabel=column_name(model, 0), ylabel="count" if np.allclose(width, typical) else f"count per {typical:.4g}")
    ax.set_title(f"{int(n.sum()):,} observations in {len(n)} bins", loc="left")
    return ax


def plot_mixture_choice(choice: Any, criterion: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a criterion over the numbers of components, one line for each covariance model; the lowest is marked.

    Parameters
    ----------
    choice : MixtureChoice
        What :func:`gramian.analysis.mixtures.select_mixture` returned.
    criterion : {"bic", "aic", "icl"}, optional
        Which; the one it chose by unless given.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    name = choice.criterion if criterion is None else criterion
    name = "bic" if name == "lrt" else name
    if name not in CRITERIA:
        raise ValueError(f"There is no criterion {name!r} to draw. Use one of {', '.join(CRITERIA)}.")
    values = np.where(choice.eligible, np.asarray(getattr(choice, name), dtype=float), np.nan)
    ax = new_axes(ax, (7.2, 4.6))
    ax.grid(color=GRID)
    for j, model in enumerate(choice.covariance_types):
        style: dict[str, Any] = {**look(j), "markersize": 4, "linewidth": 1.2}
        ax.plot(
            choice.n_components, values[:, j], linestyle=("-", *STYLES)[j // len(PALETTE) % 4], label=model, **style
        )
    row, column = (int(at) for at in np.unravel_index(np.nanargmin(values), values.shape))
    best = f"{choice.covariance_types[column]}, {choice.n_components[row]}"
    ax.plot(
        choice.n_components[row],
        values[row, column],
        "o",
        markersize=13,
        fillstyle="none",
        color=INK,
        label=f"best: {best}",
    )
    _frame(ax, np.asarray(choice.n_components), values)
    ax.set(xlabel="components", ylabel=f"{name.upper()} (lower is better)", xticks=choice.n_components)
    ax.set_title(f"{name.upper()} by components and covariance model", loc="left")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    return ax


def plot_uncertainty(
    model: Any, X: ArrayLike, *, columns: Sequence[int | str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how uncertain the component of each row is: 1 − max_k P(k|x), as the size of its point.

    Parameters
    ----------
    model : GaussianMixture
        Fitted.
    X : array-like of shape (n, d)
        Rows.
    columns : sequence of one or two int or str, optional
        Which columns to draw, by number or name; the first two unless given. Uncertainty is that of the whole rows.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.mixture_plots import plot_uncertainty
    >>> from gramian import GaussianMixture
    >>> x = np.concatenate([np.linspace(-1, 1, 30), np.linspace(4, 8, 30)])[:, None]
    >>> plot_uncertainty(GaussianMixture(2).fit(x), x).get_ylabel()
    '1 − max P(k|x)'
    """
    shown = _shown(model, columns)
    rows = checked_rows(X, model.means_.shape[1])
    shares = model.mixture_.responsibilities(rows)
    labels, doubt = np.argmax(shares, axis=1), 1.0 - shares.max(axis=1)
    ax = new_axes(ax, (6.4, 4.6))
    for k in range(shares.shape[1]):
        mine = labels == k
        x = rows[mine, shown[0]]
        y = doubt[mine] if len(shown) == 1 else rows[mine, shown[1]]
        size = 8.0 if len(shown) == 1 else 4.0 + 160.0 * doubt[mine]
        ax.scatter(x, y, s=size, alpha=0.7, linewidths=0, label=f"component {k}", **look(k))
    ax.set(
        xlabel=column_name(model, shown[0]),
        ylabel="1 − max P(k|x)" if len(shown) == 1 else column_name(model, shown[1]),
    )
    ax.set_title(f"Uncertain rows: {np.count_nonzero(doubt > 0.1)} of {len(rows)} by more than 0.1", loc="left")
    for handle in legend_below(ax).legend_handles:
        handle.set_sizes([KEY])  # type: ignore[union-attr]
    return ax


def _shown(model: Any, columns: Sequence[int | str] | None) -> list[int]:
    """The columns to draw, by number: one or two of them."""
    check_is_fitted(model)
    if columns is None:
        return list(range(min(model.means_.shape[1], 2)))
    if not isinstance(columns, str) and len(columns) not in (1, 2):
        raise ValueError(f"It takes one column or two to draw; got columns={columns!r}.")
    return [int(j) for j in model._columns(columns)]


def _frame(ax: Axes, sizes: Array, values: Array) -> None:
    """A frame for the contest, which is at the bottom; values far above it are arrows at its upper edge."""
    low, typical = float(np.nanmin(values)), float(np.nanmedian(values))
    reach = typical - low or 1.0
    top = min(float(np.nanmax(values)) + 0.05 * reach, low + 3 * reach)
    ax.set_ylim(low - 0.1 * reach, top)
    above = np.flatnonzero((values > top).any(axis=1))
    if len(above):
        number = int(np.count_nonzero(values > top))
        at = np.full(len(above), top - 0.03 * (top - low))
        ax.plot(sizes[above], at, "^", color=INK, markersize=6, label=f"above the frame: {number}")


def _one_column(mixture: Any, x: Array | None, name: str, ax: Axes | None) -> Axes:
    ax = new_axes(ax, (6.4, 4.2))
    low, high = span(mixture, 0)
    if x is not None:
        seen = x[np.isfinite(x)]
        ax.hist(seen, bins="auto", density=True, color=PALETTE[3], alpha=0.5, edgecolor="white", linewidth=0.5)
        low, high = min(low, float(seen.min())), max(high, float(seen.max()))
    _curves(ax, mixture, curve_points(mixture, low, high), 1.0)
    ax.set(xlabel=name, ylabel="density")
    ax.set_title("Density and components", loc="left")
    return ax


def _curves(ax: Axes, mixture: Any, line: Array, factor: float) -> None:
    """Each component's curve and their sum, times a factor."""
    parts = factor * np.exp(mixture.joint_log_density(line[:, None]))
    for k in range(parts.shape[1]):
        ax.plot(line, parts[:, k], color=CURVES[k % len(CURVES)], linestyle=STYLES[k % 3], label=f"component {k}")
    ax.plot(line, parts.sum(axis=1), color=INK, linewidth=2, label="sum")
    legend_below(ax)


def _two_columns(
    model: Any, mixture: Any, rows: Array | None, shown: list[int], names: list[str], ax: Axes | None
) -> Axes:
    ax = new_axes(ax, (6.4, 4.8))
    if rows is not None:
        labels = np.argmax(model.mixture_.joint_log_density(rows), axis=1)
        for k in range(mixture.n_components):
            some = rows[labels == k]
            ax.scatter(
                some[:, shown[0]], some[:, shown[1]], label=f"component {k}", **look(k), **_point_style(len(rows))
            )
    across, up = (np.linspace(*span(mixture, j), GRID_STEPS) for j in range(2))
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    height = np.exp(mixture.log_density(points)).reshape(len(up), len(across))
    top = float(height.max())
    ax.contour(across, up, height, levels=top * np.geomspace(0.005, 0.9, 9), colors=INK, linewidths=0.6, alpha=0.6)
    for k, (mean, S) in enumerate(zip(mixture.means, mixture.matrices, strict=True)):
        for radius in ELLIPSE:
            ring = ellipse(mean, S, radius)
            ax.plot(ring[:, 0], ring[:, 1], color=look(k)["color"], linewidth=1.4, linestyle=STYLES[k % 3])
        ax.plot(*mean, "+", color=look(k)["color"], markersize=9, markeredgewidth=2)
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_title("Density and components", loc="left")
    if rows is not None:
        legend_below(ax)
    return ax
