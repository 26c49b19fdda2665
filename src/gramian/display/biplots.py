"""Variables as arrows: over the rows in a biplot, within the unit circle by their correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Circle
from numpy.typing import ArrayLike, NDArray

from gramian.display._base import Display, component_name, fitted, shares_of
from gramian.display._groups import groups_of, is_scale, legend_width
from gramian.display._labels import Labels, add_labels
from gramian.display._points import RASTER, along, extremes, rings, scatter
from gramian.display._text import as_names
from gramian.display.loadings import feature_names
from gramian.display.style import GRID, PALETTE

__all__ = ["BiplotDisplay", "CorrelationCircleDisplay"]

Array = NDArray[Any]

NAMED = 15  # arrows that are named, the longest; others are paler
PALE = 100  # variables beyond which those without a name are dots: arrows would hide the rows
REACH = 0.9  # of the farthest row, to which the longest arrow goes
ARROW = {"arrowstyle": "-|>", "shrinkA": 0.0, "shrinkB": 0.0, "mutation_scale": 9.0}


class BiplotDisplay(Display):
    """Rows as points and variables as arrows in one plane: their inner products are the data.

    All arrows are multiplied by one number so that both can be seen; it is said below the picture. Of more than 100
    variables those without a name are dots, where their arrows would end.

    Parameters
    ----------
    biplot : Biplot
        What :meth:`gramian.PCA.biplot` returned, for two components.
    labels : array-like of shape (n,), optional
        Groups of the rows, as in :class:`ScoreDisplay`.
    names : sequence of str, optional
        Of the rows: those far out are written; by default the index of the frame, where there was one.

    Attributes
    ----------
    factor_ : float
        What the arrows were multiplied by.
    labels_ : list of Labels
        Names in the picture.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.display import BiplotDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> picture = BiplotDisplay.from_estimator(PCA(2).fit(X), X, labels=y)
    >>> [text.get_text() for text in picture.labels_[0].texts][:2]
    ['petal length (cm)', 'sepal length (cm)']
    """

    def __init__(self, biplot: Any, *, labels: Any = None, names: Sequence[Any] | None = None) -> None:
        self.biplot, self.labels = biplot, labels
        if np.shape(biplot.rows)[1:] != (2,):
            raise ValueError(f"A biplot is drawn of two components; this one has {len(biplot.components)}.")
        self.names = None if names is None else as_names(names, len(biplot.rows), "names", "{}")
        self.factor_ = 1.0
        self.labels_: list[Labels] = []

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        alpha: float | str = 1.0,
        components: Sequence[int] = (0, 1),
        labels: Any = None,
        names: Sequence[Any] | None = None,
        ax: Axes | None = None,
        **how: Any,
    ) -> BiplotDisplay:
        """Draw the biplot of a fitted PCA and rows; ``alpha`` as in :meth:`gramian.PCA.biplot`."""
        found = fitted(model).biplot(X, alpha, components)
        return cls(found, labels=labels, names=names).plot(ax=ax, **how)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        ellipse: str | None = None,
        level: float = 0.95,
        most_arrows: int = NAMED,
        most_names: int = 8,
        legend_title: str | None = None,
    ) -> BiplotDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        ellipse, level : {"rows", "mean"} or None, float
            As in :meth:`ScoreDisplay.plot`.
        most_arrows : int, default=15
            How many variables to name, the longest arrows first.
        most_names : int, default=8
            How many rows to name, where they have names.
        legend_title : str, optional
            What the labels are.

        Returns
        -------
        BiplotDisplay
            Itself.
        """
        Z, V = np.asarray(self.biplot.rows, dtype=float), np.asarray(self.biplot.columns, dtype=float)
        ax = self._start(ax, self._size(Z))
        ax.grid(color=GRID)
        groups = scatter(ax, Z, self.labels, title=legend_title)
        outlines = [] if ellipse is None else rings(ax, Z, groups, level, ellipse)
        self.factor_ = _factor(Z, V)
        heads, order = self.factor_ * V, np.argsort(-np.hypot(*V.T), kind="stable")
        _arrows(ax, heads, order, most_arrows)
        first, second = self.biplot.components
        shares = dict(zip(self.biplot.components, self.biplot.explained, strict=True))
        ax.set_xlabel(f"PC{first + 1} ({shares[first]:.1%} of the variance)\n{self._note()}")
        ax.set_ylabel(f"PC{second + 1} ({shares[second]:.1%} of the variance)")
        ax.set_title("Biplot", loc="left")
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.1)
        self._write(ax, Z, heads, order[:most_arrows], most_names, outlines)
        return self

    def _note(self) -> str:
        kind = str(self.biplot.scaling).partition(":")[0]
        return f"{kind}, arrows × {self.factor_:g}"

    def _size(self, Z: Array) -> tuple[float, float]:
        if self.labels is None or is_scale(self.labels):
            return (6.0, 5.4)
        return (5.4 + legend_width(groups_of(self.labels, len(Z)).names), 5.4)

    def _write(self, ax: Axes, Z: Array, heads: Array, order: Array, most_names: int, outlines: list[Array]) -> None:
        """Names of the variables first, then those of rows."""
        avoid = np.concatenate([Z, along(np.zeros_like(heads), heads), *outlines])
        names = [self.biplot.names[i] for i in order]
        style: dict[str, Any] = {"fontweight": "bold", "color": "#7a1f1f"}
        self.labels_ = [add_labels(ax, heads[order], names, avoid=avoid, outward=heads[order], **style)]
        if self.names is not None and most_names:
            rows = extremes(Z, most_names)
            written = [self.names[i] for i in rows]
            self.labels_.append(add_labels(ax, Z[rows], written, avoid=avoid, fontsize="x-small"))


def _factor(Z: Array, V: Array) -> float:
    """One number for all arrows, of one digit, that makes the longest reach nearly as far as the rows."""
    rows, arrows = float(np.max(np.hypot(*Z.T), initial=0.0)), float(np.max(np.hypot(*V.T), initial=0.0))
    if not rows > 0 or not arrows > 0:
        return 1.0
    exact = REACH * rows / arrows
    unit = 10.0 ** np.floor(np.log10(exact))
    return float(f"{np.floor(exact / unit) * unit:.1g}")


def _arrows(ax: Axes, heads: Array, order: Array, strong: int) -> None:
    """Arrows from the origin: the first ones strong, the others pale; dots at the heads of more than a few."""
    few = len(order) <= PALE
    if not few:
        rest = heads[order[strong:]]
        ax.scatter(rest[:, 0], rest[:, 1], s=5, color="#d9b0b0", linewidths=0, zorder=1, rasterized=len(rest) > RASTER)
    for place, i in enumerate(order if few else order[:strong]):
        colour = "#a33030" if place < strong else "#d9b0b0"
        style: dict[str, Any] = {**ARROW, "color": colour, "linewidth": 1.3 if place < strong else 0.6}
        ax.annotate("", heads[i], (0.0, 0.0), arrowprops=style, zorder=4)
    ax.update_datalim(heads)


class CorrelationCircleDisplay(Display):
    r"""Variables at their correlations with two components; the circle is where the plane shows a variable wholly.

    .. math:: r_{ij} = v_{ij}\sqrt{\lambda_j}/s_i,\qquad \cos^2 = r_{i1}^2 + r_{i2}^2 \le 1

    Parameters
    ----------
    correlations : array-like of shape (p, k)
        A row for each variable.
    names : sequence of str, optional
        Of the variables.
    components : tuple of int, default=(0, 1)
        Which components, counted from 0.
    shares : array-like, optional
        Shares of the variance, for the names of the axes.
    supplementary : SupplementaryColumns, optional
        Variables that took no part in the fit: dashed arrows.

    Attributes
    ----------
    labels_ : Labels
        Names of the variables.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gramian import PCA
    >>> from gramian.display import CorrelationCircleDisplay
    >>> X = load_wine(as_frame=True).data
    >>> picture = CorrelationCircleDisplay.from_estimator(PCA(2, scale=True).fit(X))
    >>> picture.labels_.texts[0].get_text()
    'flavanoids'
    """

    def __init__(
        self,
        correlations: ArrayLike,
        *,
        names: Sequence[Any] | None = None,
        components: Sequence[int] = (0, 1),
        shares: ArrayLike | None = None,
        supplementary: Any = None,
    ) -> None:
        R = np.asarray(correlations, dtype=float)
        if R.ndim != 2 or len(components) != 2 or not all(0 <= j < R.shape[1] for j in components):
            raise ValueError(f"Two components are drawn: components={components!r}, correlations of shape {R.shape}.")
        self.correlations, self.components, self.supplementary = R, tuple(components), supplementary
        self.names = as_names(names, len(R), "names", "x{}")
        self.shares = None if shares is None else np.asarray(shares, dtype=float)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        names: Sequence[Any] | None = None,
        components: tuple[int, int] = (0, 1),
        supplementary: Any = None,
        ax: Axes | None = None,
        **how: Any,
    ) -> CorrelationCircleDisplay:
        """Draw a fitted PCA; X, its rows, is needed where it neither scaled nor kept all components."""
        R = fitted(model).correlations(X)
        options: dict[str, Any] = {"components": components, "supplementary": supplementary}
        return cls(R, names=feature_names(model, len(R), names), shares=shares_of(model), **options).plot(ax, **how)

    def plot(self, ax: Axes | None = None, *, most: int = 20) -> CorrelationCircleDisplay:
        """Draw the ``most`` variables the plane shows best by name, others pale; on the axes given or a new figure."""
        ax = self._start(ax, (5.8, 5.2))
        for radius, style in ((1.0, "-"), (0.5, ":")):
            ax.add_patch(Circle((0, 0), radius, fill=False, color="#888888", linestyle=style, linewidth=0.9))
        ax.axhline(0, color=GRID, linewidth=1, zorder=0)
        ax.axvline(0, color=GRID, linewidth=1, zorder=0)
        heads, names, own = self._all()
        cos2 = np.sum(heads**2, axis=1)
        order = np.argsort(-cos2, kind="stable")
        self._draw(ax, heads, cos2, order[:most], own)
        rest = heads[order[most:]]
        ax.scatter(rest[:, 0], rest[:, 1], s=5, color="#bbbbbb", zorder=2)
        ax.set(xlim=(-1.13, 1.13), ylim=(-1.13, 1.13), aspect="equal")
        ax.set(xlabel=component_name(self.components[0], self.shares))
        ax.set(ylabel=component_name(self.components[1], self.shares))
        ax.set_title("Correlations of variables and components", loc="left")
        shown = heads[order[:most]]
        avoid = along(np.zeros_like(shown), shown)
        self.labels_ = add_labels(ax, shown, [names[i] for i in order[:most]], avoid=avoid, outward=shown)
        return self

    def _all(self) -> tuple[Array, list[str], NDArray[np.bool_]]:
        """Heads of all arrows, their names, and which belong to the model."""
        columns = list(self.components)
        heads, names = self.correlations[:, columns], list(self.names)
        own = np.ones(len(heads), dtype=bool)
        if self.supplementary is not None:
            more = np.asarray(self.supplementary.correlations, dtype=float)[:, columns]
            heads, names = np.vstack([heads, more]), [*names, *map(str, self.supplementary.names)]
            own = np.concatenate([own, np.zeros(len(more), dtype=bool)])
        return heads, names, own

    def _draw(self, ax: Axes, heads: Array, cos2: Array, order: Array, own: NDArray[np.bool_]) -> None:
        """Arrows in the colour of how much of a variable the plane shows."""
        norm, maps = Normalize(0.0, 1.0), "viridis_r"
        for i in order:
            colour = _shade(float(cos2[i]), norm, maps) if own[i] else PALETTE[1]
            style: dict[str, Any] = {**ARROW, "color": colour, "linewidth": 1.3}
            style |= {} if own[i] else {"linestyle": "--"}
            ax.annotate("", heads[i], (0.0, 0.0), arrowprops=style, zorder=3)
        shades = ax.scatter([], [], c=[], cmap=maps, norm=norm)
        ax.figure.colorbar(shades, ax=ax, label="cos²: share of the variable in this plane", shrink=0.7)
        if not own.all():
            ax.plot([], [], "--", color=PALETTE[1], label="not in the fit")
            ax.legend(loc="lower left", frameon=False, fontsize="small")


def _shade(value: float, norm: Normalize, name: str) -> Any:
    return colormaps[name](norm(value))
