"""Rows at their scores: colour and shape by label, ellipses, and the names of those that lie far out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from gramian.analysis._cards import ground
from gramian.display._base import Display, component_name, fitted, shares_of
from gramian.display._groups import Groups, appearance, groups_of, is_scale, legend_width, writing
from gramian.display._hover import Hover
from gramian.display._labels import Labels, add_labels
from gramian.display._points import extremes, point_style, rings, scatter, sides
from gramian.display._text import as_names, as_ticks
from gramian.display.style import GRID, PALETTE

__all__ = ["ScoreDisplay"]

Array = NDArray[Any]

ALL = 25  # rows that are all named
SOME = 8  # rows that are named where there are more
DIRECT = 10  # groups beyond which their names are written into the picture


class ScoreDisplay(Display):
    """Rows at two of their scores, zⱼ = (x − x̄)ᵀvⱼ, with equal scales on both axes; one score by groups.

    Parameters
    ----------
    scores : array-like of shape (n, k)
        Scores.
    labels : array-like of shape (n,), optional
        Up to 40 groups get a pair of colour and marker each; more than ten different numbers a colour scale. None, NaN
        and "" are drawn in grey as "no label".
    names : sequence of str, optional
        Of the rows; those far out are written.
    components : tuple of int, default=(0, 1)
        Which scores, counted from 0.
    shares : array-like of shape (k,), optional
        Shares of the variance, for the names of the axes.

    Attributes
    ----------
    ax_, axes_, figure_ : matplotlib objects
        What was drawn on.
    labels_ : list of Labels
        Names in the picture, of rows and of groups.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.display import ScoreDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> picture = ScoreDisplay.from_estimator(PCA(2).fit(X), X, labels=y, ellipse="rows")
    >>> picture.ax_.get_xlabel()
    'PC1 (92.5% of the variance)'
    >>> picture.save("scores.pdf")  # doctest: +SKIP
    """

    def __init__(
        self,
        scores: ArrayLike,
        *,
        labels: Any = None,
        names: Sequence[Any] | None = None,
        components: Sequence[int] = (0, 1),
        shares: ArrayLike | None = None,
    ) -> None:
        Z = np.asarray(ground(scores), dtype=float)
        self.scores = Z[:, None] if Z.ndim == 1 else Z
        if self.scores.ndim != 2 or not self.scores.size:
            raise ValueError(f"scores must have a row for each point and a column for each component, got {Z.shape}.")
        if not np.isfinite(self.scores).all():
            row = int(np.argwhere(~np.isfinite(self.scores))[0, 0])
            raise ValueError(
                f"The scores of row {row} are not finite: leave such rows out, or fit with fit_incomplete."
            )
        self.labels, self.components = labels, components
        self.names = None if names is None else as_names(names, len(self.scores), "names", "{}")
        self.shares = None if shares is None else np.asarray(shares, dtype=float)
        self.labels_: list[Labels] = []

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Axes | None = None, **options: Any) -> ScoreDisplay:
        """Draw the scores ``model.transform(X)``; options as of :meth:`from_predictions`."""
        return cls.from_predictions(fitted(model).transform(ground(X)), model=model, ax=ax, **options)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        model: Any = None,
        labels: Any = None,
        names: Sequence[Any] | None = None,
        components: Sequence[int] = (0, 1),
        ax: Axes | None = None,
        **how: Any,
    ) -> ScoreDisplay:
        """Draw scores that are there already.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            What ``transform`` returned.
        model : PCA, KernelPCA or GenotypePCA, optional
            Where they came from, for the shares of variance.
        labels, names, components
            As of the class.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **how
            Options of :meth:`plot`.

        Returns
        -------
        ScoreDisplay
            Drawn.
        """
        shares = None if model is None else shares_of(model)
        return cls(scores, labels=labels, names=names, components=components, shares=shares).plot(ax=ax, **how)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        ellipse: str | None = None,
        level: float = 0.95,
        most_names: int | None = None,
        group_names: bool | None = None,
        legend_title: str | None = None,
    ) -> ScoreDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        ellipse : {"rows", "mean"}, optional
            For each group, where a new row or the mean lies with probability ``level``, were it normal.
        level : float, default=0.95
            That probability.
        most_names : int, optional
            How many rows to name, those farthest out first; all of up to 25, otherwise 8.
        group_names : bool, optional
            Write the names of groups at their middles; by default where there are more than ten.
        legend_title : str, optional
            What the labels are.

        Returns
        -------
        ScoreDisplay
            Itself.
        """
        if ellipse not in (None, "rows", "mean"):
            raise ValueError(f"ellipse must be 'rows', 'mean' or None, got {ellipse!r}.")
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        ax = self._start(ax, self._size())
        ax.grid(color=GRID)
        ax.set_title("Scores", loc="left")
        if self.scores.shape[1] == 1:
            return self._one(ax)
        Z = self._plane()
        groups = scatter(ax, Z, self.labels, title=legend_title)
        outlines = [] if ellipse is None else rings(ax, Z, groups, level, ellipse)
        ax.set(xlabel=self._axis(self.components[0]), ylabel=self._axis(self.components[1]))
        ax.set_aspect("equal", adjustable="datalim")
        self.labels_ = []
        self._name_groups(ax, Z, groups, group_names)
        self._name_rows(ax, Z, most_names, outlines)
        return self

    def hover(self) -> Hover:
        """Show the name of the row under the pointer, where the figure is in a window or an interactive notebook."""
        if not hasattr(self, "ax_"):
            self.plot()
        names = [f"row {i}" for i in range(len(self.scores))] if self.names is None else self.names
        if self.scores.shape[1] == 1:
            raise ValueError("One score is drawn as a histogram or in strips: there are no points to name.")
        return Hover(self.ax_, self._plane(), names)

    def _axis(self, j: int) -> str:
        return component_name(j, self.shares)

    def _size(self) -> tuple[float, float]:
        """A figure that follows the shape of the points, and leaves them their room beside a long legend."""
        across, up = sides(self._plane()) if self.scores.shape[1] > 1 else (1.0, 0.8)
        height = float(np.clip(4.6 * up / across + 0.8, 3.4, 6.0))
        if self.labels is None or is_scale(self.labels):
            return (6.0, height)
        groups = groups_of(self.labels, len(self.scores))
        if self.scores.shape[1] == 1:
            return (6.0, max(2.4, 1.0 + 0.16 * len(groups.present)))
        return (5.4 + legend_width(groups.names), height)

    def _plane(self) -> Array:
        k = self.scores.shape[1]
        if len(self.components) != 2 or not all(0 <= j < k for j in self.components):
            raise ValueError(f"components={self.components!r}: two from 0 to {k - 1} can be drawn.")
        return np.asarray(self.scores[:, list(self.components)])

    def _one(self, ax: Axes) -> ScoreDisplay:
        """One score: its histogram, or a strip of points for each group."""
        z = self.scores[:, 0]
        ax.set_xlabel(self._axis(0))
        if self.labels is None or is_scale(self.labels):
            ax.hist(z, bins="auto" if len(z) > 1 else 1, color=PALETTE[0], edgecolor="white", linewidth=0.5)
            ax.set_ylabel("rows")
            return self
        _strips(ax, z, groups_of(self.labels, len(z)))
        return self

    def _name_groups(self, ax: Axes, Z: Array, groups: Groups | None, wanted: bool | None) -> None:
        if groups is None or not (len(groups.names) > DIRECT if wanted is None else wanted):
            return
        order = np.argsort(-np.bincount(groups.codes[groups.codes >= 0], minlength=len(groups.names)), kind="stable")
        middles = np.array([np.median(Z[groups.rows(int(k))], axis=0) for k in order])
        names = [groups.names[int(k)] for k in order]
        style: dict[str, Any] = {"fontweight": "bold", "fontsize": "small" if len(names) <= 2 * DIRECT else "x-small"}
        colours = [writing(int(k)) for k in order]
        self.labels_.append(add_labels(ax, middles, names, centred=True, colors=colours, **style))

    def _name_rows(self, ax: Axes, Z: Array, most: int | None, outlines: list[Array]) -> None:
        if self.names is None:
            return
        count = (len(Z) if len(Z) <= ALL else SOME) if most is None else most
        rows = extremes(Z, count)
        avoid = np.concatenate([Z, *outlines])
        self.labels_.append(add_labels(ax, Z[rows], [self.names[i] for i in rows], avoid=avoid, fontsize="x-small"))


def _strips(ax: Axes, z: Array, groups: Groups) -> None:
    """A row of points for each group, spread a little so that they do not hide each other."""
    shift = np.random.default_rng(0).uniform(-0.3, 0.3, len(z))
    for place, k in enumerate(groups.present):
        rows = groups.rows(k)
        ax.scatter(z[rows], place + shift[rows], **appearance(k), **point_style(len(z)))
    ax.set_yticks(range(len(groups.present)), as_ticks(groups.name(k) for k in groups.present))
    ax.tick_params(axis="y", labelsize="small")
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
