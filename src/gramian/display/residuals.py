"""What a regression leaves over: against the prediction, and against the normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from gramian.analysis._cards import ground
from gramian.display._base import Display, fitted
from gramian.display._labels import Labels, add_labels
from gramian.display._points import point_style
from gramian.display._text import as_names
from gramian.display.style import GRID, INK, PALETTE

__all__ = ["ResidualsDisplay"]

Array = NDArray[Any]

KINDS = ("both", "fitted", "qq")
PIECES = 12  # groups of neighbours whose medians are joined by a line
NAMED = 3  # rows that are named


class ResidualsDisplay(Display):
    r"""Residuals y − f(x) against f(x), with the medians of neighbours; and their quantiles against normal ones.

    The line of the second picture has the mean and standard deviation of the residuals. The band holds the i-th of n
    normal values with probability ``level``, one at a time: its ends are quantiles of a Beta(i, n + 1 − i) variable.

    Parameters
    ----------
    y : array-like of shape (n,)
        What was observed.
    prediction : array-like of shape (n,)
        f(x).
    std : array-like of shape (n,), optional
        Standard deviations of the observations: residuals are divided by them.
    names : sequence of str, optional
        Of the rows: those with the largest residuals are written; their numbers, counted from 0, unless given.
    level : float, default=0.95
        Of the band.

    Attributes
    ----------
    residuals : ndarray of shape (n,)
        y − f(x), divided by ``std`` where given.
    labels_ : list of Labels
        Names in the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Ridge
    >>> from gramian.display import ResidualsDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(size=50)
    >>> picture = ResidualsDisplay.from_estimator(Ridge().fit(X, y), X, y)
    >>> [ax.get_title(loc="left") for ax in picture.axes_]
    ['Residuals', 'Normal quantiles']
    """

    def __init__(
        self,
        y: ArrayLike,
        prediction: ArrayLike,
        *,
        std: ArrayLike | None = None,
        names: Sequence[Any] | None = None,
        level: float = 0.95,
    ) -> None:
        observed, self.prediction = np.asarray(y, dtype=float), np.asarray(prediction, dtype=float)
        if observed.ndim != 1 or observed.shape != self.prediction.shape:
            raise ValueError(f"y of shape {observed.shape} and prediction of {self.prediction.shape} must be vectors.")
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        self.standardised, self.level = std is not None, level
        with np.errstate(divide="ignore", invalid="ignore"):  # refused below, by row
            self.residuals = (observed - self.prediction) / (1.0 if std is None else np.asarray(std, dtype=float))
        wrong = np.flatnonzero(~np.isfinite(self.residuals))
        if len(wrong):
            raise ValueError(f"Row {wrong[0]} has no finite residual: leave out such rows ({len(wrong)} of them).")
        usual = [str(i) for i in range(len(observed))]
        self.names = as_names(usual if names is None else names, len(observed), "names", "{}")
        self.labels_: list[Labels] = []

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: ArrayLike, *, target: int = 0, ax: Axes | None = None, **options: Any
    ) -> ResidualsDisplay:
        """Draw the residuals of a fitted regression; options as of :meth:`from_predictions`."""
        f, observed = np.asarray(fitted(model).predict(ground(X)), dtype=float), np.asarray(ground(y), dtype=float)
        if f.ndim == 2:
            if not 0 <= target < f.shape[1]:
                raise ValueError(f"target must be from 0 to {f.shape[1] - 1}, got {target!r}.")
            f = f[:, target]
        observed = observed[:, target] if observed.ndim == 2 else observed
        return cls.from_predictions(observed, f, ax=ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        prediction: ArrayLike,
        *,
        kind: str = "both",
        ax: Axes | None = None,
        **options: Any,
    ) -> ResidualsDisplay:
        """Draw predictions that are there already; options as of the class, ``kind`` as of :meth:`plot`."""
        return cls(y, prediction, **options).plot(ax=ax, kind=kind)

    def plot(self, ax: Axes | None = None, *, kind: str = "both") -> ResidualsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        kind : {"both", "fitted", "qq"}, default="both"
            Which pictures.

        Returns
        -------
        ResidualsDisplay
            Itself.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
        self.labels_ = []
        if kind == "both":
            left, right = self._panels(ax, 1, 2, (8.6, 3.9))
        else:
            left = right = self._start(ax, (5.0, 3.9))
        if kind != "qq":
            self._against(left)
        if kind != "fitted":
            self._quantiles(right)
        return self

    def _against(self, ax: Axes) -> None:
        points = np.column_stack([self.prediction, self.residuals])
        ax.scatter(*points.T, color=PALETTE[0], **point_style(len(points)))
        ax.axhline(0, color=INK, linewidth=1)
        trend = _medians(points)
        if len(trend) > 2:
            ax.plot(*trend.T, color=PALETTE[1], linewidth=1.8, label="median of neighbours")
            ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), frameon=False, fontsize="small")
        ax.set(xlabel="prediction", ylabel=self._called())
        ax.set_title("Residuals", loc="left")
        ax.grid(color=GRID)
        self._write(ax, points)

    def _quantiles(self, ax: Axes) -> None:
        n = len(self.residuals)
        order, i = np.argsort(self.residuals, kind="stable"), np.arange(1, n + 1)
        normal = ndtri((i - 0.5) / n)
        mean, spread = float(self.residuals.mean()), float(self.residuals.std(ddof=1)) if n > 1 else 0.0
        ends = [ndtri(betaincinv(i, n + 1 - i, (1 + side * self.level) / 2)) for side in (-1, 1)]
        band: dict[str, Any] = {"color": PALETTE[3], "alpha": 0.4, "linewidth": 0}
        low, high = (mean + spread * end for end in ends)
        ax.fill_between(normal, low, high, label=f"{100 * self.level:.4g}% of normal values, each", **band)
        ax.plot(normal, mean + spread * normal, color=INK, linewidth=1)
        points = np.empty((n, 2))
        points[order] = np.column_stack([normal, self.residuals[order]])
        ax.scatter(*points.T, color=PALETTE[0], zorder=3, **point_style(n))
        ax.set(xlabel="normal quantile", ylabel=self._called())
        ax.set_title("Normal quantiles", loc="left")
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), frameon=False, fontsize="small")
        ax.grid(color=GRID)
        self._write(ax, points)

    def _called(self) -> str:
        return "residual / standard deviation" if self.standardised else "residual"

    def _write(self, ax: Axes, points: Array) -> None:
        rows = np.argsort(-np.abs(self.residuals), kind="stable")[:NAMED]
        names = [self.names[i] for i in rows]
        self.labels_.append(add_labels(ax, points[rows], names, avoid=points, fontsize="x-small"))


def _medians(points: Array) -> Array:
    """Medians of neighbours in x, in up to twelve groups of at least eight."""
    pieces = min(PIECES, len(points) // 8)
    if pieces < 3:
        return np.empty((0, 2))
    parts = np.array_split(points[np.argsort(points[:, 0], kind="stable")], pieces)
    return np.array([np.median(part, axis=0) for part in parts])
