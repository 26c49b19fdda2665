"""Which variables make the components: loadings as lines or as a map of colours, contributions as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from gramian.display._base import Display, component_name, fitted, shares_of
from gramian.display._text import as_names, as_ticks
from gramian.display.style import GRID, INK, PALETTE

__all__ = ["ContributionsDisplay", "LoadingsDisplay", "feature_names"]

Array = NDArray[Any]

SHOWN = 25  # variables drawn, the largest
PRINTED = 240  # cells of a map that have their numbers printed
KINDS = ("lines", "heat")


def feature_names(model: Any, count: int, names: Sequence[Any] | None = None) -> list[str]:
    """The names given, those the model was fitted with, those of its SNPs, or x1, x2, …"""
    found = names if names is not None else getattr(model, "feature_names_in_", None)
    if found is None and hasattr(model, "snps_"):
        found = model.snps_.id
    return as_names(found, count, "names", "x{}")


class LoadingsDisplay(Display):
    """Loadings V√λ of the variables: lines from 0, a panel for each component, or a map of colours.

    Of more than ``most`` variables those with the largest loadings on the components drawn are shown, and the axis says
    how many there are.

    Parameters
    ----------
    loadings : array-like of shape (p, k)
        A row for each variable.
    names : sequence of str, optional
        Of the variables.
    components : sequence of int, optional
        Which columns, counted from 0; the first three unless given.
    shares : array-like, optional
        Shares of the variance, for the titles.
    intervals : Interval, optional
        With ``lower`` and ``upper`` of the shape of the loadings, as ``loadings`` of a bootstrap.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.display import LoadingsDisplay
    >>> pca = PCA(2, scale=True).fit(load_iris(as_frame=True).data)
    >>> [text.get_text() for text in LoadingsDisplay.from_estimator(pca).ax_.get_yticklabels()][:2]
    ['petal length (cm)', 'petal width (cm)']
    """

    def __init__(
        self,
        loadings: ArrayLike,
        *,
        names: Sequence[Any] | None = None,
        components: Sequence[int] | None = None,
        shares: ArrayLike | None = None,
        intervals: Any = None,
    ) -> None:
        self.loadings = np.asarray(loadings, dtype=float)
        if self.loadings.ndim != 2 or not self.loadings.size:
            raise ValueError(f"loadings must have a row for each variable, got shape {self.loadings.shape}.")
        p, k = self.loadings.shape
        self.names, self.intervals = as_names(names, p, "names", "x{}"), intervals
        self.components = tuple(range(min(k, 3)) if components is None else components)
        if not self.components or not all(0 <= j < k for j in self.components):
            raise ValueError(f"components={self.components!r}: the model has components 0 to {k - 1}.")
        self.shares = None if shares is None else np.asarray(shares, dtype=float)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        names: Sequence[Any] | None = None,
        components: Sequence[int] | None = None,
        intervals: Any = None,
        ax: Axes | None = None,
        **how: Any,
    ) -> LoadingsDisplay:
        """Draw the loadings of a fitted PCA, or its unit axes V where it has none; ``how`` are options of ``plot``."""
        model = fitted(model)
        values = model.loadings() if hasattr(model, "loadings") else np.asarray(model.components_).T
        shares, found = shares_of(model), feature_names(model, len(values), names)
        return cls(values, names=found, components=components, shares=shares, intervals=intervals).plot(ax=ax, **how)

    def plot(self, ax: Axes | None = None, *, kind: str = "lines", most: int = SHOWN) -> LoadingsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        kind : {"lines", "heat"}, default="lines"
            Lines from 0 to each loading, or a map of colours.
        most : int, default=25
            Most variables.

        Returns
        -------
        LoadingsDisplay
            Itself.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
        shown = self._shown(most)
        count = len(self.components)
        if kind == "heat":
            size = (2.6 + 0.62 * count, 1.1 + 0.26 * len(shown))
            _heat(self._start(ax, size), self.loadings[shown][:, list(self.components)], self.components)
        else:
            size = (2.4 + 2.2 * count, 1.2 + 0.22 * len(shown))
            for panel, j in zip(self._panels(ax, 1, count, size, sharey=True), self.components, strict=True):
                self._lines(panel, shown, j)
        self._name(shown)
        return self

    def _shown(self, most: int) -> NDArray[np.intp]:
        """The variables to draw: the largest, in the order of the first component drawn."""
        part = self.loadings[:, list(self.components)]
        kept = np.argsort(-np.abs(part).max(axis=1), kind="stable")[:most]
        return kept[np.argsort(-np.abs(part[kept, 0]), kind="stable")]

    def _lines(self, ax: Axes, shown: NDArray[np.intp], j: int) -> None:
        """A line and a dot for each variable: circles to the right, squares to the left."""
        values, rows = self.loadings[shown, j], np.arange(len(shown))
        for positive, colour, marker in ((True, PALETTE[0], "o"), (False, PALETTE[1], "s")):
            some = (values >= 0) == positive
            ax.hlines(rows[some], 0, values[some], color=colour, linewidth=1.6)
            ax.plot(values[some], rows[some], linestyle="", marker=marker, color=colour, markersize=5)
        if self.intervals is not None:
            low, high = (np.asarray(end, dtype=float)[shown, j] for end in _ends(self.intervals))
            ax.hlines(rows, low, high, color=INK, linewidth=0.8)
            ax.plot(np.concatenate([low, high]), np.tile(rows, 2), "|", color=INK, markersize=5, linestyle="")
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.grid(axis="x", color=GRID)
        ax.set_title(component_name(j, self.shares).replace(" of the variance", ""), loc="left", fontsize="medium")
        ax.set_xlabel("loading")
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_ylim(len(shown) - 0.4, -0.6)

    def _name(self, shown: NDArray[np.intp]) -> None:
        self.ax_.set_yticks(range(len(shown)), as_ticks(self.names[i] for i in shown))
        for ax in self.axes_:
            ax.tick_params(axis="y", length=0, labelsize="small")
        if len(shown) < len(self.names):
            self.ax_.set_ylabel(f"the largest {len(shown)} of {len(self.names):,} variables", fontsize="small")


def _ends(intervals: Any) -> tuple[Any, Any]:
    return (intervals.lower, intervals.upper) if hasattr(intervals, "lower") else tuple(intervals)


def _heat(ax: Axes, values: Array, components: Sequence[int]) -> None:
    """A map of colours, blue below 0 and red above, numbers printed where there is room."""
    image = ax.imshow(values, cmap="RdBu_r", norm=CenteredNorm(), aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="loading")
    ax.set_xticks(range(len(components)), [f"PC{j + 1}" for j in components])
    ax.tick_params(axis="x", length=0)
    ax.spines[:].set_visible(False)
    ax.set_title("Loadings", loc="left")
    if values.size <= PRINTED:
        top = float(np.abs(values).max()) or 1.0
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if abs(value) > 0.6 * top else INK
            ax.text(j, i, _number(value), ha="center", va="center", color=colour, fontsize="x-small")


def _number(value: float) -> str:
    """Two digits, with a true minus and no −0."""
    return f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")


class ContributionsDisplay(Display):
    """The percentage of a component that comes from each variable, or row, in order, with the average as a line.

    Variables contribute 100 v², rows 100 z²/Σz². Several components are put together by their variances:
    Σ λⱼcⱼ/Σ λⱼ.

    Parameters
    ----------
    contributions : array-like of shape (m, k)
        In percent; columns sum to 100.
    names : sequence of str, optional
        Of the variables or rows.
    components : int or sequence of int, default=0
        Of which components together, counted from 0.
    weights : array-like of shape (k,), optional
        The variances λ; needed for several components.
    what : str, default="variables"
        What contributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.display import ContributionsDisplay
    >>> pca = PCA(2, scale=True).fit(load_iris(as_frame=True).data)
    >>> [round(float(bar.get_width()), 1) for bar in ContributionsDisplay.from_estimator(pca).ax_.patches]
    [33.7, 31.9, 27.2, 7.3]
    """

    def __init__(
        self,
        contributions: ArrayLike,
        *,
        names: Sequence[Any] | None = None,
        components: int | Sequence[int] = 0,
        weights: ArrayLike | None = None,
        what: str = "variables",
    ) -> None:
        C = np.asarray(contributions, dtype=float)
        C = C[:, None] if C.ndim == 1 else C
        self.components = tuple(components) if isinstance(components, Sequence | np.ndarray) else (int(components),)
        if C.ndim != 2 or not self.components or not all(0 <= j < C.shape[1] for j in self.components):
            raise ValueError(f"components={self.components!r} are none of those of contributions of shape {C.shape}.")
        if weights is None and len(self.components) > 1:
            raise ValueError("Several components are put together by their variances: give these as weights.")
        w = np.ones(1) if weights is None else np.asarray(weights, dtype=float)[list(self.components)]
        self.values = C[:, list(self.components)] @ (w / w.sum())
        usual = None if what == "variables" else [f"row {i}" for i in range(len(C))]
        self.names, self.what = as_names(usual if names is None else names, len(C), "names", "x{}"), what

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        components: int | Sequence[int] = 0,
        names: Sequence[Any] | None = None,
        ax: Axes | None = None,
        **how: Any,
    ) -> ContributionsDisplay:
        """Draw the contributions of the variables of a fitted PCA; with X, those of its rows."""
        model = fitted(model)
        weights = getattr(model, "explained_variance_", getattr(model, "eigenvalues_", None))
        if X is None:
            values = 100.0 * np.asarray(model.components_, dtype=float).T ** 2
            found: Any = feature_names(model, len(values), names)
        else:
            rows = model.describe(X).rows
            values, found = rows.contributions, rows.names if names is None else names
        what = "variables" if X is None else "rows"
        return cls(values, names=found, components=components, weights=weights, what=what).plot(ax=ax, **how)

    def plot(self, ax: Axes | None = None, *, most: int = 15) -> ContributionsDisplay:
        """Draw the largest ``most`` contributions, on the axes given or on a new figure."""
        shown = np.argsort(-self.values, kind="stable")[:most]
        ax = self._start(ax, (5.6, 1.3 + 0.24 * len(shown)))
        average = 100.0 / len(self.values)
        colours = [PALETTE[0] if self.values[i] > average else "#b9b9c9" for i in shown]
        ax.barh(range(len(shown)), self.values[shown], color=colours, height=0.72)
        ax.axvline(average, color=PALETTE[1], linestyle="--", linewidth=1.4, label=f"average ({average:.3g}%)")
        ax.set_yticks(range(len(shown)), as_ticks(self.names[i] for i in shown))
        ax.tick_params(axis="y", length=0, labelsize="small")
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.grid(axis="x", color=GRID)
        ax.set_xlabel("contribution (%)")
        ax.set_title(f"{self.what.capitalize()} that make {self._which()}", loc="left")
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        if len(shown) < len(self.values):
            share = self.values[shown].sum()
            ax.set_ylabel(f"{len(shown)} of {len(self.values):,}, {share:.0f}% together", fontsize="small")
        return self

    def _which(self) -> str:
        return " and ".join(f"PC{j + 1}" for j in self.components)
