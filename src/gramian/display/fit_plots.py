"""A regression on one variable, drawn with its data, its intervals and its certified bound."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from gramian.display.style import GRID, INK, PALETTE, new_axes

__all__ = ["plot_ridge_fit"]

Array = NDArray[Any]

STEPS = 300  # points of the curve


def plot_ridge_fit(
    model: Any,
    x: ArrayLike,
    y: ArrayLike,
    *,
    level: float = 0.95,
    bound: bool = False,
    target: int = 0,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw a regression on one variable: the data, the curve f(x), and the band a new observation falls in.

    Parameters
    ----------
    model : Ridge, KernelRidge or another regression fitted to one column
        The band is drawn where it has ``predict_interval``, or predicts with ``return_std``.
    x : array-like of shape (n,) or (n, 1)
        Where the data are.
    y : array-like of shape (n,) or (n, t)
        The data.
    level : float, default=0.95
        Share of new observations in the band.
    bound : bool, default=False
        Also draw the certified bound on the distance from the exact solution, of a model that predicts with
        ``return_bound``; its largest value is in the legend, as it may be thinner than the line.
    target : int, default=0
        Which target, where there are several.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.fit_plots import plot_ridge_fit
    >>> from gramian.estimators.kernel_ridge import KernelRidge
    >>> x = np.linspace(0, 6, 30)
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x[:, None], np.sin(x))
    >>> [text.get_text() for text in plot_ridge_fit(model, x, np.sin(x)).get_legend().get_texts()]
    ['data', 'prediction', '95% of new observations']
    """
    points, values = _checked(x, y, level, target)
    ax = new_axes(ax, (6.4, 4.2))
    ax.grid(color=GRID)
    line = np.linspace(points.min(), points.max(), STEPS)
    ax.scatter(points, values, s=18, color=INK, alpha=0.6, linewidths=0, label="data", zorder=3)
    curve = _target(np.asarray(model.predict(line[:, None]), dtype=float), target)
    ax.plot(line, curve, color=PALETTE[0], linewidth=2, label="prediction", zorder=4)
    _draw_band(ax, line, _band(model, line, level, target), f"{100 * level:.4g}% of new observations")
    if bound:
        _draw_bound(ax, line, curve, _target(np.asarray(model.predict(line[:, None], return_bound=True)[1]), target))
    ax.set(xlabel="x", ylabel="y")
    ax.set_title("Data and prediction", loc="left")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False, fontsize="small")
    return ax


def _checked(x: ArrayLike, y: ArrayLike, level: float, target: int) -> tuple[Array, Array]:
    """Points and their values, of the same number, and a level that is a share."""
    points, values = _one_variable(x), _target(np.asarray(y, dtype=float), target)
    if len(points) != len(values):
        raise ValueError(f"x has {len(points)} points, y {len(values)}.")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}.")
    return points, values


def _draw_band(ax: Axes, line: Array, band: tuple[Array, Array] | None, label: str) -> None:
    if band is not None:
        ax.fill_between(line, *band, color=PALETTE[3], alpha=0.4, linewidth=0, label=label)


def _draw_bound(ax: Axes, line: Array, curve: Array, distance: Array) -> None:
    """Both sides of the bound, over the curve, and how wide it is at most."""
    for side in (-1, 1):
        label = f"certified bound: ±{np.max(distance):.1e}" if side > 0 else None
        ax.plot(line, curve + side * distance, color=PALETTE[1], linestyle="--", linewidth=1.2, label=label, zorder=5)


def _one_variable(x: ArrayLike) -> Array:
    points = np.asarray(x, dtype=float)
    if points.ndim not in (1, 2) or points.size != len(points):
        raise ValueError(f"A fit is drawn over one variable: x must have one column, got shape {points.shape}.")
    return points.reshape(-1)


def _target(values: Array, target: int) -> Array:
    if values.ndim == 1:
        return values
    if not 0 <= target < values.shape[1]:
        raise ValueError(f"target must be from 0 to {values.shape[1] - 1}, got {target!r}.")
    return np.asarray(values[:, target])


def _band(model: Any, line: Array, level: float, target: int) -> tuple[Array, Array] | None:
    """Lower and upper ends of the interval of a new observation, where the model knows one."""
    if hasattr(model, "predict_interval"):
        low, high = (np.asarray(end, dtype=float) for end in model.predict_interval(line[:, None], level=level))
    elif "return_std" in signature(model.predict).parameters:
        f, std = (np.asarray(part, dtype=float) for part in model.predict(line[:, None], return_std=True))
        half = float(ndtri((1 + level) / 2)) * std
        low, high = f - half, f + half
    else:
        return None
    return _target(low, target), _target(high, target)
