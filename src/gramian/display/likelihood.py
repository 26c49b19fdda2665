"""Pictures of maximum likelihood: a fitted distribution over its data, and the likelihood of each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.special import chdtri

from gramian.display.base import GRID, INK, PALETTE, Display, as_ticks, check_fitted, describe_axes, name_axes

Array = NDArray[Any]

STEPS = 400  # points of a curve
REPEATED = 1_000_000  # most observations written out to choose classes
CLASSES = 200  # most classes of values
FEW = 12  # values of a count that get a tick each
MOST = 60  # values of a count that get a bar each
NOTHING = np.empty(0)


def _estimate_of(model: Any, column: int) -> Any:
    """An Estimate as it is; of a fitted MaximumLikelihood that of a column."""
    if not hasattr(model, "fit"):
        return model
    estimates = check_fitted(model).estimates_
    if not 0 <= column < len(estimates):
        raise ValueError(f"column must be from 0 to {len(estimates) - 1}, got {column!r}.")
    return estimates[column]


@dataclass(eq=False)
class FitData:
    """What a picture of a fitted distribution shows, whoever draws it.

    Attributes
    ----------
    left, right, heights, counts : ndarray of shape (m,)
        Bars of the data; none where data are censored or intervals.
    is_open : ndarray of bool of shape (m,)
        Bars of classes that are open on one side, as wide as their neighbours.
    x, y : ndarray
        The fit: a curve, or the probabilities of whole numbers.
    points : bool
        Whether the fit is drawn as points.
    steps, censored : ndarray of shape (s, 2)
        The product-limit estimate of survival, and where times were censored.
    records : ndarray of shape (r, 4)
        Ends of intervals, the depth below 0 at which their lines lie, and whether they are values.
    x_name, y_name : str
        Of the axes.
    top : float or None
        Upper end of the axis, where a density with a pole would flatten the bars.
    """

    y_name: str = "density"
    x_name: str = "value"
    left: Array = field(default_factory=lambda: NOTHING)
    right: Array = field(default_factory=lambda: NOTHING)
    heights: Array = field(default_factory=lambda: NOTHING)
    counts: Array = field(default_factory=lambda: NOTHING)
    is_open: Array = field(default_factory=lambda: NOTHING.astype(bool))
    x: Array = field(default_factory=lambda: NOTHING)
    y: Array = field(default_factory=lambda: NOTHING)
    points: bool = False
    steps: Array = field(default_factory=lambda: np.empty((0, 2)))
    censored: Array = field(default_factory=lambda: np.empty((0, 2)))
    records: Array = field(default_factory=lambda: np.empty((0, 4)))
    top: float | None = None

    def put_bars(self, edges: Array, counts: Array, is_open: Array | None = None) -> None:
        """Classes by their density n/(N·width)."""
        self.left, self.right, self.counts = edges[:-1], edges[1:], np.asarray(counts, dtype=float)
        self.heights = self.counts / self.counts.sum() / np.diff(edges)
        self.is_open, self.y_name = np.zeros(len(counts), dtype=bool) if is_open is None else is_open, "density"

    def put_fit(self, estimate: Any, low: float, high: float) -> None:
        """The fitted density from low to high and a little beyond; of counts the probability of each."""
        if estimate.family.discrete:
            self.x = np.arange(np.ceil(low), high + 1.0)
            self.y, self.points = _visible_density(estimate, self.x), len(self.x) <= MOST + 1
            return
        margin, first, last = 0.08 * (high - low), estimate.family.low, estimate.family.high
        if any(parameter.kind == "angle" for parameter in estimate.family.parameters):
            inside = -np.pi <= low and high <= np.pi
            first, last = (-np.pi, np.pi) if inside else (min(low, 0.0), max(high, 2.0 * np.pi))
        x = np.linspace(max(low - margin, first), min(high + margin, last), STEPS)
        y = _visible_density(estimate, x)
        self.x, self.y = x[np.isfinite(y)], y[np.isfinite(y)]
        if len(self.heights) and self.y.max(initial=0.0) > 3.0 * self.heights.max():
            self.top = 3.3 * float(self.heights.max())


def describe_fit(estimate: Any, bins: Any = "auto") -> FitData:
    """Prepare the picture of a fitted distribution of numbers or labels.

    Examples
    --------
    >>> from gramian.display.likelihood import describe_fit
    >>> from gramian.likelihood import fit
    >>> describe_fit(fit("poisson", [0, 1, 1, 2, 4])).heights.tolist()
    [0.2, 0.4, 0.2, 0.0, 0.2]
    """
    family = estimate.family
    data = FitData(y_name="share" if family.discrete else "density")
    if hasattr(family, "labels"):
        at = np.arange(len(family.labels))
        data.left, data.right, data.heights = at - 0.4, at + 0.4, estimate.values
        data.x_name, data.y_name, data.is_open = "label", "share", np.zeros(len(at), dtype=bool)
        return data
    if estimate.sample is None:
        raise ValueError(f"A {family.name} fit is no curve: only families of numbers and labels are drawn.")
    sample = estimate.sample if estimate.sample.edges is not None else estimate.sample.observed().points()
    if sample.edges is not None:
        edges, is_open = _close_edges(sample.edges)
        data.put_bars(edges, sample.weight, is_open)
        data.put_fit(estimate, float(edges[0]), float(edges[-1]))
    elif sample.exact.all():
        _describe_values(data, estimate, sample, bins)
    elif not family.discrete and (survival := sample.survival()) is not None:
        _describe_survival(data, estimate, sample, *survival)
    else:
        _describe_intervals(data, estimate, sample)
    return data


def _describe_values(data: FitData, estimate: Any, sample: Any, bins: Any) -> None:
    """A bar for each of a few whole numbers, a histogram otherwise."""
    family, low, high = estimate.family, float(sample.lower.min()), float(sample.lower.max())
    if family.discrete and high - low <= MOST:
        if family.high - family.low <= 1.0:
            low, high = family.low, family.high  # a coin has two sides, seen or not
        k = np.arange(low, high + 1.0)
        data.counts = np.array([float(sample.weight[sample.lower == value].sum()) for value in k])
        data.left, data.right, data.heights = k - 0.4, k + 0.4, data.counts / sample.total
        data.is_open = np.zeros(len(k), dtype=bool)
        data.put_fit(estimate, low, high)
        return
    if family.discrete:
        bins = MOST
    elif isinstance(bins, str):  # as NumPy would choose for each value so often as it was observed
        often = np.round(sample.weight).astype(int)
        whole = np.all(often == sample.weight) and often.sum() <= REPEATED
        bins = np.histogram_bin_edges(np.repeat(sample.lower, often) if whole else sample.lower, bins=bins)
        bins = bins if len(bins) <= CLASSES + 1 else np.linspace(bins[0], bins[-1], CLASSES + 1)
    counts, edges = np.histogram(sample.lower, bins=bins, weights=sample.weight)
    data.put_bars(edges, counts)
    data.put_fit(estimate, float(edges[0]), float(edges[-1]))


def _describe_survival(data: FitData, estimate: Any, sample: Any, times: Array, survival: Array) -> None:
    """The product-limit estimate of right-censored times, and the survival of the fit."""
    begin = min(0.0, float(sample.lower.min()))
    end = float(max(sample.lower.max(), times.max(initial=-np.inf)))
    levels = np.concatenate([[1.0], survival])
    data.steps = np.column_stack([np.concatenate([[begin], times, [end]]), np.append(levels, levels[-1])])
    late = sample.lower[~sample.exact]
    data.censored = np.column_stack([late, levels[np.searchsorted(times, late, side="right")]])
    data.x = np.linspace(begin, end, STEPS)
    data.y, data.y_name, data.top = 1.0 - estimate.cdf(data.x), "survival", 1.03


def _describe_intervals(data: FitData, estimate: Any, sample: Any) -> None:
    """The fitted density, and under it every record as a line, open ends drawn to the edge."""
    finite = np.concatenate([side[np.isfinite(side)] for side in (sample.lower, sample.upper)])
    low, high = float(finite.min()), float(finite.max())
    data.put_fit(estimate, low, high)
    order = np.lexsort([sample.upper, sample.lower])
    depth = -0.3 * float(data.y.max(initial=0.0)) * (1.0 + np.arange(len(order))) / len(order)
    ends = (np.clip(side[order], low, high) for side in (sample.lower, sample.upper))
    data.records = np.column_stack([*ends, depth, sample.exact[order]])


def _close_edges(edges: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Edges with open ends closed by the width of the neighbour, and which classes those are."""
    limits = np.array(edges, dtype=float)
    is_open = ~np.isfinite(np.diff(limits))
    finite = np.diff(limits)[~is_open]
    usual = float(np.median(finite)) if len(finite) else 1.0
    if np.isinf(limits[0]):
        width = limits[2] - limits[1] if len(limits) > 2 and np.isfinite(limits[2]) else usual
        limits[0] = limits[1] - width if np.isfinite(limits[1]) else -1.0
    if np.isinf(limits[-1]):
        limits[-1] = limits[-2] + (limits[-2] - limits[-3] if len(limits) > 2 else usual)
    return limits, is_open


def _visible_density(estimate: Any, x: Array) -> Array:
    """The density of what could be seen: 0 outside the window of truncated data, and larger inside."""
    sample, family = estimate.sample, estimate.family
    y = np.exp(estimate.log_density(x))
    if not sample.truncated or len(sample.left) > 1:
        return np.asarray(y)
    c, d = sample.left, sample.right
    inside = family.log_interval(np.ceil(c) - 1.0 if family.discrete else c, d, estimate.values)
    return np.where((x < c[0]) | (x > d[0]), 0.0, y / np.exp(inside[0]))


class FitDisplay(Display):
    """A fitted distribution over its data.

    Values are drawn as a histogram, classes by their density n/(N·width), counts as bars, right-censored times as the
    product-limit estimate of survival, and other intervals as lines; the fit as a curve, or as points for counts. The
    shares of labels are bars. An open class is as wide as its neighbour and hatched.

    Parameters
    ----------
    estimate : Estimate
        What :func:`gramian.likelihood.fit` returned, for a family of numbers or labels.
    bins : int, sequence or str, default="auto"
        Classes for values, as in :func:`numpy.histogram`.
    name : str, default="value"
        Of the column.

    Attributes
    ----------
    data_ : FitData
        What is drawn.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> from gramian.display import FitDisplay
    >>> FitDisplay.from_estimator(fit("gamma", [1.0, 2.0, 2.5, 4.0])).ax_.get_title(loc="left")
    'gamma: shape 4.47, rate 1.88'
    """

    def __init__(self, estimate: Any, *, bins: Any = "auto", name: str = "value") -> None:
        self.estimate, self.data_, self.name = estimate, describe_fit(estimate, bins), name

    @classmethod
    def from_estimator(
        cls, model: Any, *, column: int = 0, bins: Any = "auto", name: str = "value", ax: Axes | None = None
    ) -> FitDisplay:
        """Draw an Estimate, or a column of a fitted MaximumLikelihood."""
        return cls(_estimate_of(model, column), bins=bins, name=name).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> FitDisplay:
        """Draw, on the axes given or on a new figure."""
        ax, data, family = self._start(ax, (6.4, 4.0)), self.data_, self.estimate.family
        edge = "none" if data.points or data.x_name == "label" else "white"
        for some, label, hatch in ((~data.is_open, "data", ""), (data.is_open, "open class", "//")):
            if some.any():
                left, width = data.left[some], (data.right - data.left)[some]
                style: dict[str, Any] = {"align": "edge", "color": PALETTE[3], "edgecolor": edge, "hatch": hatch}
                ax.bar(left, data.heights[some], width, label=label, **style)
        if len(data.steps):
            ax.step(*data.steps.T, where="post", color=PALETTE[0], label="data (product limit)")
            ax.plot(*data.censored.T, linestyle="", marker="|", color=INK, label="censored")
        if len(data.x):
            line: dict[str, Any] = {"linestyle": "", "marker": "o"} if data.points else {"linestyle": "-"}
            ax.plot(data.x, data.y, color=PALETTE[1], label="fit", **line)
        if len(data.records):
            low, high, depth, exact = data.records.T
            ax.hlines(depth, low, high, color=PALETTE[0], linewidth=0.8, label="records")
            ax.plot(low[exact > 0], depth[exact > 0], linestyle="", marker=".", markersize=3, color=PALETTE[0])
            ax.set_yticks([tick for tick in ax.get_yticks() if tick >= 0.0])
        if data.top is not None:
            ax.set_ylim(0.0, data.top)
        ax.grid(axis="y", color=GRID)
        name_axes(ax, self.name if data.x_name == "value" else data.x_name, data.y_name)
        if data.x_name == "label":
            ax.set_xticks(range(len(family.labels)), as_ticks(family.labels))
            ax.set_title(f"{family.name}: {len(family.labels)} labels", loc="left")
            return self
        if data.points and len(data.heights) == len(data.x) <= FEW:
            ax.set_xticks(data.x)
        elif data.points:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        pairs = [f"{name} {value:.3g}" for name, value in zip(family.names, self.estimate.values, strict=True)]
        ax.set_title(f"{family.name}: {', '.join(pairs)}", loc="left")
        ax.legend(frameon=False)
        return self


TOP, LEAST = 6.0, 0.01  # deviance up to which a curve goes, and from which on it does towards an infinite estimate
PROFILE_STEPS = 200  # points of a curve as drawn
ACROSS = 3  # panels beside each other


class ProfileDisplay(Display):
    r"""The deviance of each parameter, with the confidence interval it gives and the parabola of the standard error.

    .. math:: D(\theta_j) = 2(\hat\ell - \max_{\theta_{-j}}\ell(\theta)),\qquad
        \{\theta_j: D(\theta_j)\le\chi^2_{1,\text{level}}\}

    The interval is all values under the horizontal line. Where the curve leaves the dashed parabola, intervals of
    ± standard errors mislead.

    Parameters
    ----------
    estimate : Estimate
        What :func:`gramian.likelihood.fit` returned.
    names : sequence of str, optional
        Which parameters; all that were estimated, up to six, unless given.
    level : float, default=0.95
        Of the intervals.

    Attributes
    ----------
    intervals_ : ConfidenceIntervals
        The intervals drawn.
    curves_ : dict of str to ndarray of shape (m, 2)
        Values of a parameter and the deviance there.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> from gramian.display import ProfileDisplay
    >>> picture = ProfileDisplay.from_estimator(fit("poisson", [2, 0, 4]))
    >>> tuple(round(end, 4) for end in picture.intervals_["rate"])
    (0.7949, 4.0527)
    """

    def __init__(self, estimate: Any, *, names: Sequence[str] | None = None, level: float = 0.95) -> None:
        chosen = [name for name in estimate.names if name not in estimate.fixed][:6] if names is None else list(names)
        self.estimate, self.level, self.names = estimate, level, chosen
        self.intervals_ = estimate.profile(level, chosen)
        self.curves_ = {name: _profile_curve(estimate, name) for name in chosen}

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        names: Sequence[str] | str | None = None,
        level: float = 0.95,
        column: int = 0,
        ax: Axes | None = None,
    ) -> ProfileDisplay:
        """Draw an Estimate, or a column of a fitted MaximumLikelihood."""
        estimate = _estimate_of(model, column)
        return cls(estimate, names=[names] if isinstance(names, str) else names, level=level).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> ProfileDisplay:
        """Draw a panel for each parameter, in the place of the axes given or on a new figure."""
        count = len(self.names)
        across = min(count, ACROSS)
        down = -(-count // across)
        if count == 1:
            axes = [self._start(ax, (5.4, 3.8))]
        else:
            axes = self._panels(ax, down, across, (3.3 * across, 3.2 * down), sharey=True)
        for panel, name in zip(axes, self.names, strict=False):
            self._draw_profile(panel, name)
        for j in range(0, count, across):
            axes[j].set_ylabel("deviance  2(ℓ̂ − ℓ)")
        for spare in axes[count:]:
            spare.set_axis_off()
        return self

    def _draw_profile(self, ax: Axes, name: str) -> None:
        """The deviance of one parameter, its parabola and its interval."""
        curve, (low, high) = self.curves_[name], self.intervals_[name]
        at, error = self.estimate[name], self.estimate.standard_errors[name]
        limit = float(chdtri(1.0, 1.0 - self.level))
        top = max(1.25 * limit, 5.0)
        if np.isfinite(error) and error > 0:
            t = np.linspace(-np.sqrt(top), np.sqrt(top), 101)
            ax.plot(at + error * t, t**2, color="#888888", linestyle="--", linewidth=1, label="± standard errors")
        # More points: the root of the deviance, with a sign, is nearly a straight line in the parameter.
        root = np.where(curve[:, 0] < at, -1.0, 1.0) * np.sqrt(curve[:, 1])
        fine = np.unique(np.concatenate([curve[:, 0], np.linspace(curve[0, 0], curve[-1, 0], PROFILE_STEPS)]))
        ax.plot(fine, np.interp(fine, curve[:, 0], root) ** 2, color=PALETTE[0], linewidth=2, label="profile")
        ax.axhline(limit, color=INK, linewidth=0.8, linestyle=":")
        ends = [end for end in (low, high) if np.isfinite(end)]
        ax.vlines(ends, 0, limit, color=PALETTE[1], linewidth=1.4)
        ax.plot([at] if np.isfinite(at) else [], [0] if np.isfinite(at) else [], "o", color=INK, markersize=5)
        describe_axes(ax, grid="y", xlabel=name, ylim=(0, top))
        ax.set_title(f"{at:.3g}, {100 * self.level:.4g}%: {low:.3g} to {high:.3g}", loc="left", fontsize="medium")
        if ax is self.ax_:
            ax.legend(loc="upper center", frameon=True, framealpha=0.9, edgecolor="none", fontsize="x-small")


def _profile_curve(estimate: Any, name: str) -> Array:
    """Values of the parameter and the deviance there, from left to right; what is infinite is left out."""
    curve = estimate.profile_curve(name, TOP)
    curve = curve[np.isfinite(curve).all(axis=1)]
    if np.isfinite(estimate[name]):
        return np.asarray(np.unique(np.vstack([curve, [estimate[name], 0.0]]), axis=0))
    return np.asarray(curve[curve[:, 1] >= LEAST])  # the way to infinity is flat, and long
