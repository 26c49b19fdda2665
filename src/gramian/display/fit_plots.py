"""A regression on one variable, drawn with its data, its intervals and its certified bound."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from gramian.display.bands import PredictionBandDisplay

__all__ = ["plot_ridge_fit"]


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

    The short form of :meth:`PredictionBandDisplay.from_estimator`.

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
    options: dict[str, Any] = {"level": level, "bound": bound, "target": target}
    return PredictionBandDisplay.from_estimator(model, x, y, ax=ax, **options).ax_
