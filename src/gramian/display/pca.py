"""Pictures of PCA: variances, scores, loadings, biplots, correlations, monitoring, reconstructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.patches import Circle
from matplotlib.ticker import FixedLocator, Locator, MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from gramian.display.base import (
    GRID,
    INK,
    PALETTE,
    Display,
    as_floats,
    as_names,
    as_ticks,
    check_fitted,
    component_name,
    describe_axes,
    names_of_columns,
    set_plain,
    shares_of,
)
from gramian.display.groups import (
    ARROW,
    RASTER,
    Groups,
    appearance,
    draw_ellipses,
    find_extremes,
    groups_of,
    is_scale,
    legend_width,
    point_style,
    points_along,
    scatter,
    side_lengths,
    text_colour,
)
from gramian.display.labels import Hover, Labels
from gramian.inputs.checks import check_choice, check_share
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.interpret import biplot, correlations, describe, row_names

Array = NDArray[Any]

FEW = 12  # components whose shares are printed too
DOTS = 40  # components that get a dot each on the line of their sums
LINE = 0.19  # inches of a rule in the picture


@dataclass(frozen=True, eq=False)
class ScreeData:
    """What a picture of variances shows, whoever draws it.

    Attributes
    ----------
    shares : ndarray of shape (k,)
        λⱼ/Σλ.
    kept : int
        How many of them are components of the model; the others are known to a rule alone.
    threshold : ndarray or None
        What shares must exceed in parallel analysis.
    votes : mapping of int to sequence of str
        Numbers of components, and the rules that would keep so many.
    """

    shares: Array
    kept: int
    threshold: Array | None
    votes: Mapping[int, Sequence[str]]


def describe_scree(shares: ArrayLike, advice: Any = None, whole: ArrayLike | None = None) -> ScreeData:
    """Prepare the picture of variances, with what RankAdvice says; ``whole`` has the shares of more components."""
    values = np.asarray(shares, dtype=float)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"shares must be a number for each component, got shape {values.shape}.")
    kept = len(values)
    if whole is not None and np.size(whole) > kept:
        values = np.concatenate([values, np.asarray(whole, dtype=float)[kept:]])
    if advice is None:
        return ScreeData(values, kept, None, {})
    choice = advice.choices.get("parallel") or advice.choices.get("parallel-gaussian")
    threshold = None
    if choice is not None and len(choice.values) and choice.values[0] > 0:
        # Its values are eigenvalues; the first one is the first share in another unit.
        threshold = np.asarray(choice.thresholds, dtype=float)[: len(values)] * (values[0] / choice.values[0])
    return ScreeData(values, kept, threshold, advice.votes)


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
        self.data_, self.advice = describe_scree(shares, advice), advice
        self.shares = self.data_.shares

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
        shares = shares_of(check_fitted(model))
        if shares is None:
            raise ValueError(f"{type(model).__name__} does not know the shares of its components in the variance.")
        return cls(shares[:most], advice=advice).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> ScreeDisplay:
        """Draw, on the axes given or on a new figure."""
        if self.advice is None:
            self._draw_shares(self._start(ax, (6.4, 4.0)))
            return self
        low = LINE * len(self.advice.rules) + 0.5
        top, below = self._panels(ax, 2, 1, (6.4, 3.9 + low), sharex=True, heights=(3.4, low))
        self._draw_shares(top)
        top.set_xlabel("")
        top.tick_params(axis="x", labelbottom=False)
        self._draw_rules(below)
        consensus = self.advice.consensus
        if consensus is not None and consensus <= len(self.shares):
            for panel in (top, below):
                panel.axvline(consensus + 0.5, color=INK, linewidth=1, linestyle=(0, (5, 3)), zorder=0)
        return self

    def _draw_shares(self, ax: Axes) -> None:
        """Bars of shares, the line of their sums, and the threshold of parallel analysis."""
        ratio, threshold, count = self.shares, self.data_.threshold, len(self.shares)
        index, total = np.arange(1, count + 1), np.cumsum(ratio)
        ax.bar(index, ratio, width=0.72, color=PALETTE[0], label="each component")
        dot = 5.0 if count <= DOTS else 0.0
        ax.plot(index, total, color=PALETTE[1], marker="o", markersize=dot, label="running sum")
        if count <= FEW:  # the running sum starts on top of the first bar, where one number says both
            sums = [(j, height, (-9, 7)) for j, height in enumerate(total, start=1)]
            bars = [(j, share, (0, 3)) for j, share in enumerate(ratio, start=1) if j > 1]
            for j, height, shift in sums + bars:
                text = ax.annotate(f"{height:.1%}", (j, height), shift, textcoords="offset points", ha="center")
                text.set(color=INK, fontsize="small", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})
        side, above = ("right", 1.0), 6.0
        if threshold is not None:
            ax.plot(index[: len(threshold)], threshold, color="white", linewidth=4, alpha=0.85)  # seen on bars too
            style: dict[str, Any] = {"color": INK, "linestyle": (0, (1, 1)), "linewidth": 2}
            ax.plot(index[: len(threshold)], threshold, label="threshold of parallel analysis", **style)
            side, above = ("left", 0.0), 22.0  # the legend is long now, and lies below the title
        ax.set_title("Variance explained", loc="left", pad=above)
        place: dict[str, Any] = {"loc": f"lower {side[0]}", "bbox_to_anchor": (side[1], 1)}
        ax.legend(borderaxespad=0.2, ncols=3, frameon=False, fontsize="small", **place)
        # The whole is shown where most of it is there; a few of very many components would vanish on that scale.
        top = 1.0 if total[-1] > 0.5 or total[-1] == 0 else float(total[-1])
        margin = max(0.6, 2.1 - count / 2)
        frame: dict[str, Any] = {"xlim": (1 - margin, count + margin), "ylim": (0, 1.12 * top)}
        describe_axes(ax, grid="y", xlabel="component", ylabel="share of variance", **frame)
        ticks: Locator = FixedLocator(range(1, count + 1)) if count <= FEW else MaxNLocator(integer=True, min_n_ticks=1)
        ax.xaxis.set_major_locator(ticks)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))

    def _draw_rules(self, ax: Axes) -> None:
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
                box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
                style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
                ax.annotate(f"{k}", (k, row), (7, 0), bbox=box, **style)
        _name_bars(ax, self.advice.rules)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("component")
        ax.set_title("Components to keep, by rule", loc="left", fontsize="medium")


ALL = 60  # rows that are all named, where there is room
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
        Z = np.asarray(convert_to_numpy(scores), dtype=float)
        self.scores = Z[:, None] if Z.ndim == 1 else Z
        if self.scores.ndim != 2 or not self.scores.size:
            raise ValueError(f"scores must have a row for each point and a column for each component, got {Z.shape}.")
        if not np.isfinite(self.scores).all():
            row = int(np.argwhere(~np.isfinite(self.scores))[0, 0])
            raise ValueError(
                f"The scores of row {row + 1} are not finite: leave such rows out, or fit with fit_incomplete."
            )
        self.labels, self.components = labels, components
        self.names = None if names is None else as_names(names, len(self.scores), "names", "{}")
        self.shares = as_floats(shares)
        self.labels_: list[Labels] = []

    @classmethod
    def from_estimator(cls, model: Any, X: Any, **options: Any) -> ScoreDisplay:
        """Draw the scores ``model.transform(X)``; options as of :meth:`from_predictions`.

        The index of a frame names the rows, where it says more than a number.
        """
        found = {"names": row_names(X), **options}
        return cls.from_predictions(check_fitted(model).transform(convert_to_numpy(X)), model=model, **found)

    @classmethod
    def from_predictions(cls, scores: ArrayLike, *, model: Any = None, **options: Any) -> ScoreDisplay:
        """Draw scores that are there already.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            What ``transform`` returned.
        model : PCA, KernelPCA or GenotypePCA, optional
            Where they came from, for the shares of variance.
        **options
            ``labels``, ``names`` and ``components`` as of the class, and options of :meth:`plot`.

        Returns
        -------
        ScoreDisplay
            Drawn.
        """
        return super().from_predictions(scores, shares=None if model is None else shares_of(model), **options)

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
            How many rows to name, those farthest out first; all of up to 60 that have room, otherwise 8.
        group_names : bool, optional
            Write the names of groups at their middles; by default where there are more than ten.
        legend_title : str, optional
            What the labels are.

        Returns
        -------
        ScoreDisplay
            Itself.
        """
        check_choice("ellipse", ellipse, (None, "rows", "mean"))
        check_share("level", level)
        ax = self._start(ax, self._size(), "Scores", grid="both")
        self.labels_ = []
        if self.scores.shape[1] == 1:
            self._draw_one_score(ax)
            return self
        Z = self._plane()
        groups = scatter(ax, Z, self.labels, title=legend_title)
        outlines = [] if ellipse is None else draw_ellipses(ax, Z, groups, level, ellipse)
        across, up = (component_name(j, self.shares) for j in self.components)
        ax.set(xlabel=across, ylabel=up)
        ax.set_aspect("equal", adjustable="datalim")
        if groups is not None and (len(groups.names) > DIRECT if group_names is None else group_names):
            self._name_groups(ax, Z, groups)
        if self.names is not None:
            rows = find_extremes(Z, (len(Z) if len(Z) <= ALL else SOME) if most_names is None else most_names)
            avoid, names = np.concatenate([Z, *outlines]), [self.names[i] for i in rows]
            self.labels_.append(Labels(ax, Z[rows], names, avoid=avoid, fontsize="x-small"))
        return self

    def hover(self) -> Hover:
        """Show the name of the row under the pointer, where the figure is in a window or an interactive notebook."""
        if not hasattr(self, "ax_"):
            self.plot()
        names = [f"row {i + 1}" for i in range(len(self.scores))] if self.names is None else self.names
        if self.scores.shape[1] == 1:
            raise ValueError("One score is drawn as a histogram or in strips: there are no points to name.")
        return Hover(self.ax_, self._plane(), names)

    def _size(self) -> tuple[float, float]:
        """A figure that follows the shape of the points, and leaves them their room next to a long legend."""
        across, up = side_lengths(self._plane()) if self.scores.shape[1] > 1 else (1.0, 0.8)
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

    def _draw_one_score(self, ax: Axes) -> None:
        """One score: its histogram, or a row of points for each group, spread a little so that all are seen."""
        z = self.scores[:, 0]
        ax.set_xlabel(component_name(0, self.shares))
        if self.labels is None or is_scale(self.labels):
            ax.hist(z, bins="auto" if len(z) > 1 else 1, color=PALETTE[0], edgecolor="white", linewidth=0.5)
            ax.set_ylabel("rows")
            return
        groups, shift = groups_of(self.labels, len(z)), np.random.default_rng(0).uniform(-0.3, 0.3, len(z))
        for place, k in enumerate(groups.present):
            rows = groups.rows(k)
            ax.scatter(z[rows], place + shift[rows], **appearance(k), **point_style(len(z)))
        ax.set_yticks(range(len(groups.present)), as_ticks(groups.name(k) for k in groups.present))
        ax.tick_params(axis="y", labelsize="small")
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)

    def _name_groups(self, ax: Axes, Z: Array, groups: Groups) -> None:
        """Names at the middles of the groups, those of the largest first."""
        order = np.argsort(-np.bincount(groups.codes[groups.codes >= 0], minlength=len(groups.names)), kind="stable")
        middles = np.array([np.median(Z[groups.rows(int(k))], axis=0) for k in order])
        names = [groups.names[int(k)] for k in order]
        style: dict[str, Any] = {"fontweight": "bold", "fontsize": "small" if len(names) <= 2 * DIRECT else "x-small"}
        colours = [text_colour(int(k)) for k in order]
        self.labels_.append(Labels(ax, middles, names, centred=True, colors=colours, **style))


SHOWN = 25  # variables drawn, the largest
PRINTED = 240  # cells of a map that have their numbers printed
KINDS = ("lines", "heat")


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
        self.shares = as_floats(shares)

    @classmethod
    def from_estimator(cls, model: Any, *, names: Sequence[Any] | None = None, **options: Any) -> LoadingsDisplay:
        """Draw the loadings of a fitted PCA, or its unit axes V where it has none; options as of class and ``plot``."""
        model = check_fitted(model)
        values = model.loadings() if hasattr(model, "loadings") else np.asarray(model.components_).T
        found = names_of_columns(model, len(values), names)
        return cls.from_predictions(values, names=found, shares=shares_of(model), **options)

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
        check_choice("kind", kind, KINDS)
        part = self.loadings[:, list(self.components)]
        largest = np.argsort(-np.abs(part).max(axis=1), kind="stable")[:most]
        shown = largest[np.argsort(-np.abs(part[largest, 0]), kind="stable")]  # in the order of the first component
        count = len(self.components)
        if kind == "heat":
            self._draw_map(self._start(ax, (2.6 + 0.62 * count, 1.1 + 0.26 * len(shown))), part[shown])
        else:
            panels = self._panels(ax, 1, count, (2.4 + 2.2 * count, 1.2 + 0.22 * len(shown)), sharey=True)
            for panel, j in zip(panels, self.components, strict=True):
                self._draw_lines(panel, shown, j)
        for panel in self.axes_:
            panel.tick_params(axis="y", length=0, labelsize="small")
        _name_bars(self.ax_, [self.names[i] for i in shown])
        if len(shown) < len(self.names):
            self.ax_.set_ylabel(f"the largest {len(shown)} of {len(self.names):,} variables", fontsize="small")
        return self

    def _draw_lines(self, ax: Axes, shown: NDArray[np.intp], j: int) -> None:
        """A line and a dot for each variable: circles to the right, squares to the left."""
        values, rows = self.loadings[shown, j], np.arange(len(shown))
        for some, colour, marker in ((values >= 0, PALETTE[0], "o"), (values < 0, PALETTE[1], "s")):
            ax.hlines(rows[some], 0, values[some], color=colour, linewidth=1.6)
            ax.plot(values[some], rows[some], linestyle="", marker=marker, color=colour, markersize=5)
        if self.intervals is not None:
            ends = self.intervals
            ends = (ends.lower, ends.upper) if hasattr(ends, "lower") else ends
            low, high = (np.asarray(end, dtype=float)[shown, j] for end in ends)
            ax.hlines(rows, low, high, color=INK, linewidth=0.8)
            ax.plot(np.concatenate([low, high]), np.tile(rows, 2), "|", color=INK, markersize=5, linestyle="")
        ax.axvline(0, color=INK, linewidth=0.8)
        describe_axes(ax, grid="x", xlabel="loading V√λ")
        ax.set_title(component_name(j, self.shares).replace(" of the variance", ""), loc="left", fontsize="medium")
        ax.xaxis.set_major_locator(MaxNLocator(4))

    def _draw_map(self, ax: Axes, values: Array) -> None:
        """A map of colours, blue below 0 and red above, numbers printed where there is room."""
        image = ax.imshow(values, cmap="RdBu_r", norm=CenteredNorm(), aspect="auto")
        ax.figure.colorbar(image, ax=ax, label="loading V√λ")
        ax.set_xticks(range(len(self.components)), [f"PC{j + 1}" for j in self.components])
        ax.tick_params(axis="x", length=0)
        ax.spines[:].set_visible(False)
        ax.set_title("Loadings V√λ", loc="left")
        top = float(np.abs(values).max()) or 1.0
        for (i, j), value in np.ndenumerate(values) if values.size <= PRINTED else ():
            text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")  # with a true minus and no −0
            colour = "white" if abs(value) > 0.6 * top else INK
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize="x-small")


def _name_bars(ax: Axes, names: Sequence[str]) -> None:
    """Names of horizontal bars, the first on top."""
    ax.set_yticks(range(len(names)), as_ticks(names))
    ax.tick_params(axis="y", length=0, labelsize="small")
    ax.set_ylim(len(names) - 0.4, -0.6)


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
        usual = None if what == "variables" else [f"row {i + 1}" for i in range(len(C))]
        self.names, self.what = as_names(usual if names is None else names, len(C), "names", "x{}"), what

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, *, names: Sequence[Any] | None = None, **options: Any
    ) -> ContributionsDisplay:
        """Draw the contributions of the variables of a fitted PCA; with X, those of its rows."""
        model = check_fitted(model)
        weights = getattr(model, "explained_variance_", getattr(model, "eigenvalues_", None))
        if X is None:
            values = 100.0 * np.asarray(model.components_, dtype=float).T ** 2
            found: Any = names_of_columns(model, len(values), names)
        else:
            rows = describe(model, X).rows
            values, found = rows.contributions, rows.names if names is None else names
        what = "variables" if X is None else "rows"
        return cls.from_predictions(values, names=found, weights=weights, what=what, **options)

    def plot(self, ax: Axes | None = None, *, most: int = 15) -> ContributionsDisplay:
        """Draw the largest ``most`` contributions, on the axes given or on a new figure."""
        shown = np.argsort(-self.values, kind="stable")[:most]
        title = f"{self.what.capitalize()} that make {' and '.join(f'PC{j + 1}' for j in self.components)}"
        ax = self._start(ax, (5.6, 1.3 + 0.24 * len(shown)), title, grid="x", xlabel="contribution (%)")
        average = 100.0 / len(self.values)
        colours = [PALETTE[0] if self.values[i] > average else "#b9b9c9" for i in shown]
        ax.barh(range(len(shown)), self.values[shown], color=colours, height=0.72)
        ax.axvline(average, color=PALETTE[1], linestyle="--", linewidth=1.4, label=f"average ({average:.3g}%)")
        _name_bars(ax, [self.names[i] for i in shown])
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        if len(shown) < len(self.values):
            share = self.values[shown].sum()
            ax.set_ylabel(f"{len(shown)} of {len(self.values):,}, {share:.0f}% together", fontsize="small")
        return self


NAMED = 15  # arrows that are named, the longest; others are paler
PALE = 100  # variables beyond which those without a name are dots: arrows would hide the rows
REACH = 0.9  # of the farthest row, to which the longest arrow goes


class BiplotDisplay(Display):
    """Rows as points and variables as arrows in one plane: their inner products are the data.

    All arrows are multiplied by one number so that both can be seen; it is said below the picture. Of more than 100
    variables those without a name are dots, where their arrows would end.

    Parameters
    ----------
    biplot : Biplot
        What :func:`gramian.analysis.biplot` returned, for two components.
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
        cls, model: Any, X: Any, *, alpha: float | str = 1.0, components: Sequence[int] = (0, 1), **options: Any
    ) -> BiplotDisplay:
        """Draw the biplot of a fitted PCA and rows; ``alpha`` as in :func:`gramian.analysis.biplot`."""
        found = {"names": row_names(X), **options}
        return cls.from_predictions(biplot(check_fitted(model), X, alpha, components), **found)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        ellipse: str | None = None,
        level: float = 0.95,
        most_arrows: int = NAMED,
        most_names: int | None = None,
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
        most_names : int, optional
            As in :meth:`ScoreDisplay.plot`.
        legend_title : str, optional
            What the labels are.

        Returns
        -------
        BiplotDisplay
            Itself.
        """
        Z, V = np.asarray(self.biplot.rows, dtype=float), np.asarray(self.biplot.columns, dtype=float)
        labelled = self.labels is not None and not is_scale(self.labels)
        width = 5.4 + legend_width(groups_of(self.labels, len(Z)).names) if labelled else 6.0
        ax = self._start(ax, (width, 5.4), "Biplot", grid="both")
        groups = scatter(ax, Z, self.labels, title=legend_title)
        outlines = [] if ellipse is None else draw_ellipses(ax, Z, groups, level, ellipse)
        self.factor_ = _arrow_factor(Z, V)
        heads, order = self.factor_ * V, np.argsort(-np.hypot(*V.T), kind="stable")
        _draw_arrows(ax, heads, order, most_arrows)
        shares = dict(zip(self.biplot.components, self.biplot.explained, strict=True))
        across, up = (f"PC{j + 1} ({share:.1%} of the variance)" for j, share in shares.items())
        scaling = str(self.biplot.scaling).partition(":")[0]
        ax.set(xlabel=f"{across}\n{scaling}, arrows × {self.factor_:g}", ylabel=up)
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.1)
        # names of the variables first, then those of rows
        avoid, named = np.concatenate([Z, points_along(np.zeros_like(heads), heads), *outlines]), order[:most_arrows]
        names = [self.biplot.names[i] for i in named]
        style: dict[str, Any] = {"fontweight": "bold", "color": "#7a1f1f"}
        self.labels_ = [Labels(ax, heads[named], names, avoid=avoid, outward=heads[named], **style)]
        if self.names is not None and most_names != 0:
            rows = find_extremes(Z, (len(Z) if len(Z) <= ALL else SOME) if most_names is None else most_names)
            written = [self.names[i] for i in rows]
            self.labels_.append(Labels(ax, Z[rows], written, avoid=avoid, fontsize="x-small"))
        return self


def _arrow_factor(Z: Array, V: Array) -> float:
    """One number for all arrows, of one digit, that makes the longest reach nearly as far as the rows."""
    rows, arrows = float(np.max(np.hypot(*Z.T), initial=0.0)), float(np.max(np.hypot(*V.T), initial=0.0))
    if not rows > 0 or not arrows > 0:
        return 1.0
    exact = REACH * rows / arrows
    unit = 10.0 ** np.floor(np.log10(exact))
    return float(f"{np.floor(exact / unit) * unit:.1g}")


def _draw_arrows(ax: Axes, heads: Array, order: Array, strong: int) -> None:
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
        self.shares = as_floats(shares)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, *, names: Sequence[Any] | None = None, **options: Any
    ) -> CorrelationCircleDisplay:
        """Draw a fitted PCA; X, its rows, is needed where it neither scaled nor kept all components."""
        R = correlations(check_fitted(model), X)
        return cls.from_predictions(R, names=names_of_columns(model, len(R), names), shares=shares_of(model), **options)

    def plot(self, ax: Axes | None = None, *, most: int = 20) -> CorrelationCircleDisplay:
        """Draw the ``most`` variables the plane shows best by name, others pale; on the axes given or a new figure."""
        ax = self._start(ax, (5.8, 5.2), "Correlations of variables and components")
        for radius, style in ((1.0, "-"), (0.5, ":")):
            ax.add_patch(Circle((0, 0), radius, fill=False, color="#888888", linestyle=style, linewidth=0.9))
        ax.axhline(0, color=GRID, linewidth=1, zorder=0)
        ax.axvline(0, color=GRID, linewidth=1, zorder=0)
        columns = list(self.components)
        heads, names, more = self.correlations[:, columns], list(self.names), np.empty((0, 2))
        if self.supplementary is not None:
            more = np.asarray(self.supplementary.correlations, dtype=float)[:, columns]
            names += map(str, self.supplementary.names)
        heads, n_own = np.vstack([heads, more]), len(heads)
        cos2 = np.sum(heads**2, axis=1)
        order = np.argsort(-cos2, kind="stable")
        norm, shades = Normalize(0.0, 1.0), colormaps["viridis_r"]  # how much of a variable the plane shows
        for i in order[:most]:
            look: dict[str, Any] = {"color": shades(norm(float(cos2[i])))}
            look = look if i < n_own else {"color": PALETTE[1], "linestyle": "--"}
            ax.annotate("", heads[i], (0.0, 0.0), arrowprops={**ARROW, **look, "linewidth": 1.3}, zorder=3)
        scale = ax.scatter([], [], c=[], cmap=shades, norm=norm)
        ax.figure.colorbar(scale, ax=ax, label="cos²: share of the variable in this plane", shrink=0.7)
        if len(more):
            ax.plot([], [], "--", color=PALETTE[1], label="not in the fit")
            ax.legend(loc="lower left", frameon=False, fontsize="small")
        rest, shown = heads[order[most:]], heads[order[:most]]
        ax.scatter(rest[:, 0], rest[:, 1], s=5, color="#bbbbbb", zorder=2)
        across, up = (component_name(j, self.shares) for j in self.components)
        ax.set(xlim=(-1.13, 1.13), ylim=(-1.13, 1.13), aspect="equal", xlabel=across, ylabel=up)
        avoid = points_along(np.zeros_like(shown), shown)
        self.labels_ = Labels(ax, shown, [names[i] for i in order[:most]], avoid=avoid, outward=shown)
        return self


MOST_ALARMS = 10  # rows that are named, those farthest beyond a limit
SPREAD = 10.0  # largest value over the limit from which a scale is logarithmic
MONITORING_KINDS = ("chart", "plane")
# What a row breaks, how it looks, and what the legend says.
LOOKS = (
    ("within both limits", "#9aa0b5", "o"),
    ("T² above its limit", PALETTE[0], "^"),
    ("Q above its limit", PALETTE[1], "s"),
    ("both above", INK, "D"),
)


class MonitoringDisplay(Display):
    """T² and Q of rows with their limits: in the order of the rows, or against each other.

    Parameters
    ----------
    alarms : Alarms
        What ``check`` of a :class:`gramian.analysis.Monitor` returned.

    Attributes
    ----------
    labels_ : list of Labels
        Names of the rows with an alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import monitor
    >>> from gramian.display import MonitoringDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> pca = PCA(n_components=2).fit(X)
    >>> picture = MonitoringDisplay.from_estimator(monitor(pca, X), [[0, 0, 0, 0], [30, 0, 0, 0], [0, 0, 9, 0]])
    >>> [ax.get_ylabel() for ax in picture.axes_]
    ['T²', 'Q']
    """

    def __init__(self, alarms: Any) -> None:
        self.alarms = alarms
        self.labels_: list[Labels] = []

    @classmethod
    def from_estimator(cls, monitor: Any, X: Any, *, ax: Axes | None = None, **how: Any) -> MonitoringDisplay:
        """Draw what a Monitor says of rows."""
        if not hasattr(monitor, "check"):
            given = type(monitor).__name__
            raise ValueError(f"{given} has no limits to draw: give what gramian.analysis.monitor(pca, X) returns.")
        return cls.from_predictions(monitor.check(X), ax=ax, **how)

    def plot(self, ax: Axes | None = None, *, kind: str = "chart", most_names: int = MOST_ALARMS) -> MonitoringDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        kind : {"chart", "plane"}, default="chart"
            Both statistics in the order of the rows, below each other; or Q against T².
        most_names : int, default=10
            How many rows with an alarm to name.

        Returns
        -------
        MonitoringDisplay
            Itself.
        """
        check_choice("kind", kind, MONITORING_KINDS)
        self.labels_ = []
        a = self.alarms
        if kind == "plane":
            self._draw_plane(self._start(ax, (6.0, 4.8)), most_names)
        else:
            above, below = self._panels(ax, 2, 1, (7.2, 5.0), sharex=True)
            rows = np.arange(1.0, len(a.t2) + 1.0)
            for panel, name, values, limit in ((above, "T²", a.t2, a.t2_limit), (below, "Q", a.q, a.q_limit)):
                self._draw_sequence(panel, name, np.column_stack([rows, values]), limit, most_names)
            below.set_xlabel("row")
        self.ax_.set_title(f"{len(a.rows):,} of {len(a.t2):,} rows beyond a limit", loc="left")
        return self

    def _draw_sequence(self, ax: Axes, name: str, points: Array, limit: float, most: int) -> None:
        """One statistic in the order of the rows."""
        values = points[:, 1]
        out = values > limit
        ax.plot(*points.T, color="#c9ccd8", linewidth=0.7, zorder=1, rasterized=len(points) > 5000)
        style = point_style(len(points))
        ax.scatter(*points[~out].T, color=LOOKS[0][1], **style)
        ax.scatter(*points[out].T, color=PALETTE[1], marker="^", **{**style, "alpha": 0.9, "s": style["s"] + 8})
        ax.axhline(limit, color=INK, linestyle="--", linewidth=1.2)
        ax.annotate(
            f"limit {limit:.3g}", (1, limit), (-2, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", fontsize="small", color=INK,
        )  # fmt: skip
        describe_axes(ax, grid="y", ylabel=name)
        _set_scale(ax, "y", values, limit)
        worst = np.flatnonzero(out)[np.argsort(-values[out], kind="stable")][:most]
        line = points_along(np.array([[1.0, limit]]), np.array([[len(points), limit]]), 400)
        self._name_alarms(ax, points, worst, line)

    def _draw_plane(self, ax: Axes, most: int) -> None:
        """Q against T²: four fields, by which limit is broken."""
        a = self.alarms
        points = np.column_stack([a.t2, a.q]).astype(float)
        broken = a.t2_alarm.astype(int) + 2 * a.q_alarm.astype(int)
        for k, (name, colour, marker) in enumerate(LOOKS):
            some = points[broken == k]
            if len(some):
                label = f"{name}: {len(some):,}"
                ax.scatter(*some.T, color=colour, marker=marker, label=label, **point_style(len(points)))
        ax.axvline(a.t2_limit, color=INK, linestyle="--", linewidth=1.2)
        ax.axhline(a.q_limit, color=INK, linestyle="--", linewidth=1.2)
        describe_axes(ax, grid="both", xlabel="T², distance within the plane", ylabel="Q, squared distance from it")
        _set_scale(ax, "x", a.t2, a.t2_limit)
        _set_scale(ax, "y", a.q, a.q_limit)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize="small")
        excess = np.maximum(_excess(a.t2, a.t2_limit), _excess(a.q, a.q_limit))
        self._name_alarms(ax, points, np.argsort(-excess, kind="stable")[: min(most, len(a.rows))])

    def _name_alarms(self, ax: Axes, points: Array, rows: NDArray[np.intp], line: Array | None = None) -> None:
        avoid = points if line is None else np.vstack([points, line])
        names = [str(i + 1) if self.alarms.names is None else self.alarms.names[i] for i in rows]
        self.labels_.append(Labels(ax, points[rows], names, avoid=avoid, fontsize="x-small"))


def _excess(values: Array, limit: float) -> Array:
    return np.asarray(values / limit if limit > 0 else np.where(values > 0, np.inf, 0.0))


def _set_scale(ax: Axes, axis: str, values: Array, limit: float) -> None:
    """From 0; logarithmic where a few rows are so far out that the others could not be seen."""
    top = float(np.max(values, initial=0.0))
    if 0 < SPREAD * limit < top and float(np.min(values)) > 0:
        ax.set(**{f"{axis}scale": "log"})
    else:
        ax.set(**{f"{axis}lim": (0.0, 1.12 * max(top, limit) or 1.0)})


class ReconstructionDisplay(Display):
    """Images, and what is left of them: a line for each image, a column for each reconstruction.

    All are on the grey scale of the original, so that lost contrast is seen as lost. Below each column is the share of
    the squared deviation from the mean image that was lost, ‖X − X̂‖²/‖X − x̄‖².

    Parameters
    ----------
    images : array-like of shape (m, p)
        The originals, one row each.
    reconstructions : mapping of str to array-like of shape (m, p)
        A name for each column, and its images.
    image_shape : tuple of int
        Height and width, whose product is p.
    mean : array-like of shape (p,), optional
        The mean image; that of ``images`` unless given.

    Attributes
    ----------
    lost_ : dict of str to float
        What the columns say.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import PCA
    >>> from gramian.display import ReconstructionDisplay
    >>> X = load_digits().data
    >>> picture = ReconstructionDisplay.from_estimator(PCA(32).fit(X), X[:3], image_shape=(8, 8), counts=[4, 32])
    >>> {name: round(lost, 2) for name, lost in picture.lost_.items()}
    {'k = 4': 0.49, 'k = 32': 0.03}
    """

    def __init__(
        self,
        images: ArrayLike,
        reconstructions: Mapping[str, ArrayLike],
        *,
        image_shape: tuple[int, int],
        mean: ArrayLike | None = None,
    ) -> None:
        self.images, self.image_shape = np.atleast_2d(np.asarray(images, dtype=float)), tuple(image_shape)
        if int(np.prod(image_shape)) != self.images.shape[1]:
            raise ValueError(f"image_shape {image_shape} does not hold the {self.images.shape[1]} values of a row")
        self.reconstructions = {str(name): np.asarray(X, dtype=float) for name, X in reconstructions.items()}
        for name, X in self.reconstructions.items():
            if X.shape != self.images.shape:
                raise ValueError(f"Reconstruction {name!r} has shape {X.shape}, and the images {self.images.shape}.")
        centre = self.images.mean(axis=0) if mean is None else np.asarray(mean, dtype=float)
        total = float(np.sum((self.images - centre) ** 2))
        parts = {name: float(np.sum((self.images - X) ** 2)) for name, X in self.reconstructions.items()}
        self.lost_ = {name: part / total if total else 0.0 for name, part in parts.items()}

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        *,
        image_shape: tuple[int, int],
        counts: Sequence[int] | None = None,
        ax: Axes | None = None,
    ) -> ReconstructionDisplay:
        """Draw images with the first k components of a fitted PCA, for several k."""
        images, model = np.atleast_2d(np.asarray(convert_to_numpy(X), dtype=float)), check_fitted(model)
        most = len(model.components_)  # four numbers, doubling up to all of them, unless given
        ks = sorted({max(1, most >> shift) for shift in range(4)}) if counts is None else counts
        parts = {f"k = {k}": reconstruct(model, images, k) for k in ks}
        return cls.from_predictions(images, parts, image_shape=image_shape, mean=model.mean_, ax=ax)

    def plot(self, ax: Axes | None = None) -> ReconstructionDisplay:
        """Draw, in the place of the axes given or on a new figure."""
        columns = {"original": self.images, **self.reconstructions}
        m, count = len(self.images), len(columns)
        axes = self._panels(ax, m, count, (1.15 * count + 0.2, 1.15 * m + 0.7))
        for j, (name, column) in enumerate(columns.items()):
            axes[j].set_title(name, color=INK, fontsize="medium")
            set_plain([axes[j].title])
            for panel, image, original in zip(axes[j::count], column, self.images, strict=True):
                low, high = float(original.min()), float(original.max())
                panel.imshow(image.reshape(self.image_shape), cmap="gray_r", vmin=low, vmax=high)
                panel.set(xticks=[], yticks=[])
                panel.spines[:].set(visible=True, color=GRID)
            if j:
                axes[(m - 1) * count + j].set_xlabel(f"{self.lost_[name]:.1%} lost", color=INK, fontsize="small")
        return self


def reconstruct(pca: Any, X: Array, k: int) -> Array:
    """x̄ + Σⱼ₌₁ᵏ zⱼvⱼ, scaled back where the model scales."""
    scale = getattr(pca, "scale_", None)
    # A constant column has scale zero and is already its mean.
    s = np.ones_like(pca.mean_) if scale is None else np.where(np.asarray(scale) == 0, 1.0, scale)
    V = np.asarray(pca.components_[:k])
    return np.asarray(((X - pca.mean_) / s) @ V.T @ V * s + pca.mean_)
