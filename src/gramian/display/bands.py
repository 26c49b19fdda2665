"""A regression on one variable, with the band a new observation falls in and its certified bound."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from gramian.analysis._cards import ground
from gramian.display._base import Display, fitted
from gramian.display._points import point_style
from gramian.display._text import name_axes
from gramian.display.style import GRID, INK, PALETTE

__all__ = ["PredictionBandDisplay"]

Array = NDArray[Any]

STEPS = 300  # points of the curve


class PredictionBandDisplay(Display):
    """The data, the curve f(x), the band a new observation falls in, and the certified bound on |f̂ − f|.

    Parameters
    ----------
    x : array-like of shape (m,)
        Where the curve is known, rising.
    prediction : array-like of shape (m,)
        f(x).
    lower, upper : array-like of shape (m,), optional
        Ends of the band.
    bound : array-like of shape (m,), optional
        Certified distance from the exact solution; its largest value is in the legend, as it may be thinner than the
        line.
    data : tuple of two array-like of shape (n,), optional
        Points: where, and what was observed there.
    level : float, default=0.95
        Share of new observations in the band, for the legend.
    names : tuple of two str, default=("x", "y")
        Of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.display import PredictionBandDisplay
    >>> x = np.linspace(0, 6, 30)
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x[:, None], np.sin(x))
    >>> picture = PredictionBandDisplay.from_estimator(model, x, np.sin(x), bound=True)
    >>> [text.get_text() for text in picture.ax_.get_legend().get_texts()][:3]
    ['data', 'prediction', '95% of new observations']
    """

    def __init__(
        self,
        x: ArrayLike,
        prediction: ArrayLike,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        bound: ArrayLike | None = None,
        data: tuple[ArrayLike, ArrayLike] | None = None,
        level: float = 0.95,
        names: tuple[str, str] = ("x", "y"),
    ) -> None:
        self.x, self.prediction = np.asarray(x, dtype=float), np.asarray(prediction, dtype=float)
        if self.x.shape != self.prediction.shape or self.x.ndim != 1:
            raise ValueError(f"x of shape {self.x.shape} and prediction of {self.prediction.shape} must be vectors.")
        self.lower, self.upper = (None if end is None else np.asarray(end, dtype=float) for end in (lower, upper))
        if (self.lower is None) != (self.upper is None):
            raise ValueError("A band has two ends: give both lower and upper.")
        self.bound = None if bound is None else np.asarray(bound, dtype=float)
        self.data, self.level, self.names = data, level, names

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        x: ArrayLike,
        y: ArrayLike,
        *,
        level: float = 0.95,
        bound: bool = False,
        target: int = 0,
        names: tuple[str, str] = ("x", "y"),
        ax: Axes | None = None,
    ) -> PredictionBandDisplay:
        """Draw a model fitted to one column over its data.

        Parameters
        ----------
        model : Ridge, KernelRidge or another regression fitted to one column
            The band is drawn where it has ``predict_interval``, or predicts with ``return_std``.
        x, y : array-like of shape (n,) or (n, 1), and (n,) or (n, t)
            The data.
        level : float, default=0.95
            Share of new observations in the band.
        bound : bool, default=False
            Also draw the certified bound, of a model that predicts with ``return_bound``.
        target : int, default=0
            Which target, where there are several.
        names : tuple of two str
            Of the axes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        PredictionBandDisplay
            Drawn.
        """
        points, values = _checked(ground(x), ground(y), level, target)
        model = fitted(model)
        line = np.linspace(points.min(), points.max(), STEPS)
        curve = _target(np.asarray(model.predict(line[:, None]), dtype=float), target)
        low, high = _band(model, line, level, target)
        width = _target(np.asarray(model.predict(line[:, None], return_bound=True)[1]), target) if bound else None
        options: dict[str, Any] = {"bound": width, "data": (points, values), "level": level, "names": names}
        return cls.from_predictions(line, curve, lower=low, upper=high, ax=ax, **options)

    @classmethod
    def from_predictions(
        cls, x: ArrayLike, prediction: ArrayLike, *, ax: Axes | None = None, **options: Any
    ) -> PredictionBandDisplay:
        """Draw predictions that are there already; options as of the class."""
        return cls(x, prediction, **options).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> PredictionBandDisplay:
        """Draw, on the axes given or on a new figure."""
        ax = self._start(ax, (6.4, 4.2))
        ax.grid(color=GRID)
        if self.data is not None:
            points, values = (np.asarray(part, dtype=float) for part in self.data)
            style = {**point_style(len(points)), "alpha": 0.6}
            ax.scatter(points, values, color=INK, label="data", zorder=3, **{**style, "s": min(style["s"], 18)})
        ax.plot(self.x, self.prediction, color=PALETTE[0], linewidth=2, label="prediction", zorder=4)
        if self.lower is not None and self.upper is not None:
            label = f"{100 * self.level:.4g}% of new observations"
            ax.fill_between(self.x, self.lower, self.upper, color=PALETTE[3], alpha=0.4, linewidth=0, label=label)
        if self.bound is not None:
            self._draw_bound(ax, self.bound)
        name_axes(ax, *self.names)
        ax.set_title("Data and prediction" if self.data is not None else "Prediction", loc="left")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False, fontsize="small")
        return self

    def _draw_bound(self, ax: Axes, distance: Array) -> None:
        """Both sides of the bound, over the curve, and how wide it is at most."""
        style: dict[str, Any] = {"color": PALETTE[1], "linestyle": "--", "linewidth": 1.2, "zorder": 5}
        for side in (-1, 1):
            label = f"certified bound: ±{np.max(distance):.1e}" if side > 0 else None
            ax.plot(self.x, self.prediction + side * distance, label=label, **style)


def _checked(x: ArrayLike, y: ArrayLike, level: float, target: int) -> tuple[Array, Array]:
    """Points and their values, of the same number, and a level that is a share."""
    points, values = _one_variable(x), _target(np.asarray(y, dtype=float), target)
    if len(points) != len(values):
        raise ValueError(f"x has {len(points)} points, y {len(values)}.")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}.")
    return points, values


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


def _band(model: Any, line: Array, level: float, target: int) -> tuple[Array | None, Array | None]:
    """Lower and upper ends of the interval of a new observation, where the model knows one."""
    if hasattr(model, "predict_interval"):
        low, high = (np.asarray(end, dtype=float) for end in model.predict_interval(line[:, None], level=level))
    elif "return_std" in signature(model.predict).parameters:
        f, std = (np.asarray(part, dtype=float) for part in model.predict(line[:, None], return_std=True))
        half = float(ndtri((1 + level) / 2)) * std
        low, high = f - half, f + half
    else:
        return None, None
    return _target(low, target), _target(high, target)
