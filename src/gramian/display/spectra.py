"""The variances of the components, with what the rules say of how many to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, Locator, MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from gramian.display._base import Display, fitted, shares_of
from gramian.display._text import as_ticks
from gramian.display.style import GRID, INK, PALETTE

__all__ = ["ScreeDisplay", "draw_shares"]

Array = NDArray[Any]

FEW = 12  # components whose shares are printed too
DOTS = 40  # components that get a dot each on the line of their sums
LINE = 0.19  # inches of a rule in the picture


class ScreeDisplay(Display):
    """The share of variance of each component, λⱼ/Σλ, their running sum, and the number each rule would keep.

    Parameters
    ----------
    shares : array-like of shape (k,)
        λⱼ/Σλ.
    advice : RankAdvice, optional
        What :func:`gramian.rank_advice` said of the same data: each rule gets a line below, with a dot at its answer;
        the vertical line is the answer most of them give. The threshold of parallel analysis is drawn over the bars.

    Attributes
    ----------
    ax_, axes_, figure_ : matplotlib objects
        The bars; the bars and the rules; their figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA, rank_advice
    >>> from gramian.display import ScreeDisplay
    >>> X = load_iris().data
    >>> picture = ScreeDisplay.from_estimator(PCA(scale=True).fit(X), advice=rank_advice(X, scale=True))
    >>> [round(float(bar.get_height()), 3) for bar in picture.ax_.patches]
    [0.73, 0.229, 0.037, 0.005]
    """

    def __init__(self, shares: ArrayLike, *, advice: Any = None) -> None:
        self.shares, self.advice = np.asarray(shares, dtype=float), advice
        if self.shares.ndim != 1 or not len(self.shares):
            raise ValueError(f"shares must be a number for each component, got shape {self.shares.shape}.")

    @classmethod
    def from_estimator(
        cls, model: Any, *, advice: Any = None, most: int | None = None, ax: Axes | None = None
    ) -> ScreeDisplay:
        """Draw the variances of a fitted model.

        Parameters
        ----------
        model : PCA, KernelPCA or GenotypePCA
            Fitted.
        advice : RankAdvice, optional
            As of the class.
        most : int, optional
            Draw the first so many components only.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        ScreeDisplay
            Drawn.
        """
        shares = shares_of(fitted(model))
        if shares is None:
            raise ValueError(f"{type(model).__name__} does not know the shares of its components in the variance.")
        return cls(shares[:most], advice=advice).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> ScreeDisplay:
        """Draw, on the axes given or on a new figure."""
        if self.advice is None:
            draw_shares(self._start(ax, (6.4, 4.0)), self.shares)
            return self
        low = LINE * len(self.advice.rules) + 0.5
        top, below = self._panels(ax, 2, 1, (6.4, 3.9 + low), sharex=True, heights=(3.4, low))
        draw_shares(top, self.shares)
        top.set_xlabel("")
        top.tick_params(axis="x", labelbottom=False)
        self._threshold(top)
        self._rules(below)
        self._consensus(top, below)
        return self

    def _threshold(self, ax: Axes) -> None:
        """What eigenvalues must exceed in parallel analysis, on the scale of the shares."""
        choice = self.advice.choices.get("parallel") or self.advice.choices.get("parallel-gaussian")
        if choice is None or not len(choice.values) or not choice.values[0] > 0:
            return
        scale = self.shares[0] / choice.values[0]
        line = np.asarray(choice.thresholds, dtype=float)[: len(self.shares)] * scale
        index = np.arange(1, len(line) + 1)
        ax.plot(index, line, color="white", linewidth=4, alpha=0.85)  # so that it is seen on the bars too
        style: dict[str, Any] = {"color": INK, "linestyle": (0, (1, 1)), "linewidth": 2}
        ax.plot(index, line, label="threshold of parallel analysis", **style)
        ax.set_title("Variance explained", loc="left", pad=22)  # above the legend, which is long now
        _legend(ax, "left")

    def _rules(self, ax: Axes) -> None:
        """A line for each rule, a dot at its number; beyond the components drawn an arrow with the number."""
        last = len(self.shares)
        for row, k in enumerate(self.advice.n_components):
            if k is None:
                ax.text(0.5, row, "could not be used", va="center", fontsize="x-small", color="#777777")
            elif k > last:
                ax.plot(last + 0.45, row, ">", color=PALETTE[1], clip_on=False)
                ax.annotate(f"{k} ", (last + 0.3, row), ha="right", va="center", fontsize="small", color=INK)
            else:
                ax.plot([0, k], [row, row], color=GRID, linewidth=4, zorder=1, solid_capstyle="butt")
                ax.plot(k, row, "o", color=PALETTE[1], markersize=6)
                number = ax.annotate(
                    f"{k}", (k, row), (7, 0), textcoords="offset points", va="center", fontsize="small"
                )
                number.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        ax.set_yticks(range(len(self.advice.rules)), as_ticks(self.advice.rules))
        ax.set_ylim(len(self.advice.rules) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0, labelsize="small")
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("component")
        ax.set_title("Components to keep, by rule", loc="left", fontsize="medium")

    def _consensus(self, *axes: Axes) -> None:
        k = self.advice.consensus
        if k is not None and k <= len(self.shares):
            for ax in axes:
                ax.axvline(k + 0.5, color=INK, linewidth=1, linestyle=(0, (5, 3)), zorder=0)


def draw_shares(ax: Axes, ratio: Array) -> Axes:
    """Bars of shares and the line of their sums."""
    index, total = np.arange(1, ratio.size + 1), np.cumsum(ratio)
    ax.bar(index, ratio, width=0.72, color=PALETTE[0], label="each component")
    dot = 5.0 if ratio.size <= DOTS else 0.0
    ax.plot(index, total, color=PALETTE[1], marker="o", markersize=dot, label="running sum")
    if ratio.size <= FEW:
        _annotate_shares(ax, ratio, total)
    ax.set(xlabel="component", ylabel="share of variance")
    ax.set_title("Variance explained", loc="left")
    _legend(ax)
    _share_axes(ax, ratio.size, float(total[-1]))
    return ax


def _legend(ax: Axes, side: str = "right") -> None:
    place: dict[str, Any] = {"loc": f"lower {side}", "bbox_to_anchor": (float(side == "right"), 1)}
    ax.legend(borderaxespad=0.2, ncols=3, frameon=False, fontsize="small", **place)


def _share_axes(ax: Axes, count: int, total: float) -> None:
    # The whole is shown where most of it is there; a few of very many components would vanish on that scale.
    top = 1.0 if total > 0.5 or total == 0 else total
    margin = max(0.6, 2.1 - count / 2)
    ax.set(xlim=(1 - margin, count + margin), ylim=(0, 1.12 * top))
    ticks: Locator = FixedLocator(range(1, count + 1)) if count <= FEW else MaxNLocator(integer=True, min_n_ticks=1)
    ax.xaxis.set_major_locator(ticks)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.grid(axis="y", color=GRID)


def _annotate_shares(ax: Axes, ratio: Array, total: Array) -> None:
    # The running sum starts on top of the first bar, where one number says both.
    sums = [(j, height, (-9, 7)) for j, height in enumerate(total, start=1)]
    bars = [(j, share, (0, 3)) for j, share in enumerate(ratio, start=1) if j > 1]
    for j, height, shift in sums + bars:
        text = ax.annotate(f"{height:.1%}", (j, height), shift, textcoords="offset points", ha="center")
        text.set(color=INK, fontsize="small", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})
