"""The likelihood of one parameter, the others at their best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.special import chdtri, erf

from gramian.display.base import GRID, INK, PALETTE, Display, as_ticks, fitted, new_axes

__all__ = ["ProfileDisplay", "plot_fit"]

Vector = NDArray[np.float64]
STEPS = 400  # points of a curve
REPEATED = 1_000_000  # most observations written out to choose classes
FEW = 12  # values of a count that get a tick each
MOST = 60  # values of a count that get a bar each


class FittedFamily(Protocol):
    """What the picture reads from an estimate."""

    @property
    def family(self) -> Any:
        """The family, with its name."""

    @property
    def sample(self) -> Any:
        """The records it was fitted to."""

    @property
    def values(self) -> Vector:
        """Its parameters."""

    def log_density(self, x: Any, /) -> Vector:
        """The logarithm of its density."""

    def cdf(self, x: Any, /) -> Vector:
        """Its distribution function."""


def plot_fit(estimate: FittedFamily, bins: Any = "auto", ax: Axes | None = None) -> Axes:
    """Draw a fitted distribution over its data.

    Values are drawn as a histogram, classes by their density n/(N·width), counts as bars, right-censored times as the
    product-limit estimate of survival, and other intervals as lines; the fit as a curve, or as points for counts. The
    shares of labels are bars.
    An open class is as wide as its neighbour and hatched.

    Parameters
    ----------
    estimate : Estimate
        What :func:`gramian.likelihood.fit` returned, for a family of numbers.
    bins : int, sequence or str, default="auto"
        Classes for values, as in :func:`numpy.histogram`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> from gramian.likelihood.fit import fit
    >>> from gramian.display.likelihood import plot_fit
    >>> plot_fit(fit("gamma", [1.0, 2.0, 2.5, 4.0])).get_title(loc="left")
    'gamma: shape 4.47, rate 1.88'
    """
    if hasattr(estimate.family, "labels"):
        return _draw_labels(new_axes(ax, (6.4, 4.0)), estimate)
    if estimate.sample is None:
        raise ValueError(f"A {estimate.family.name} fit is no curve: only families of numbers and labels are drawn.")
    ax = new_axes(ax, (6.4, 4.0))
    sample = estimate.sample if estimate.sample.edges is not None else estimate.sample.observed()
    survival = None if estimate.family.discrete or sample.exact.all() else sample.survival()
    if sample.edges is not None:
        _draw_classes(ax, estimate, *_closed(sample.edges, sample.weight))
    elif estimate.family.discrete and sample.exact.all():
        _draw_counts(ax, estimate, sample)
    elif survival is not None:
        _draw_survival(ax, estimate, sample, *survival)
    elif sample.exact.all():
        counts, edges = np.histogram(sample.lower, bins=_edges(bins, sample), weights=sample.weight)
        _draw_classes(ax, estimate, edges, counts.astype(float), np.zeros(len(counts), dtype=bool))
    else:
        _draw_intervals(ax, estimate, sample)
    ax.grid(axis="y", color=GRID)
    pairs = [f"{name} {value:.3g}" for name, value in zip(estimate.family.names, estimate.values, strict=True)]
    ax.set_title(f"{estimate.family.name}: {', '.join(pairs)}", loc="left")
    ax.set_xlabel("value")
    ax.legend(frameon=False)
    return ax


def _edges(bins: Any, sample: Any) -> Any:
    """Classes for weighted values, as numpy would choose them for each value so often as it was observed."""
    if not isinstance(bins, str):
        return bins
    often = np.round(sample.weight).astype(int)
    whole = np.all(often == sample.weight) and often.sum() <= REPEATED
    return np.histogram_bin_edges(np.repeat(sample.lower, often) if whole else sample.lower, bins=bins)


def _draw_labels(ax: Axes, estimate: FittedFamily) -> Axes:
    """A bar for each label: the share that was observed is the estimate."""
    labels = as_ticks(estimate.family.labels)
    ax.bar(np.arange(len(labels)), estimate.values, 0.8, color=PALETTE[3], tick_label=labels)
    ax.grid(axis="y", color=GRID)
    ax.set_title(f"{estimate.family.name}: {len(labels)} labels", loc="left")
    ax.set(xlabel="label", ylabel="share")
    return ax


def _closed(edges: Vector, counts: Vector) -> tuple[Vector, Vector, NDArray[np.bool_]]:
    """Edges with open ends closed by the width of the neighbour, and which classes those are."""
    limits, was_open = np.array(edges, dtype=float), np.zeros(len(counts), dtype=bool)
    finite = np.diff(limits)[np.isfinite(np.diff(limits))]
    usual = float(np.median(finite)) if len(finite) else 1.0
    if np.isinf(limits[0]):
        width = limits[2] - limits[1] if len(limits) > 2 and np.isfinite(limits[2]) else usual
        limits[0], was_open[0] = limits[1] - width if np.isfinite(limits[1]) else -1.0, True
    if np.isinf(limits[-1]):
        width = limits[-2] - limits[-3] if len(limits) > 2 else usual
        limits[-1], was_open[-1] = limits[-2] + width, True
    return limits, np.asarray(counts, dtype=float), was_open


def _draw_classes(ax: Axes, estimate: FittedFamily, edges: Vector, counts: Vector, was_open: NDArray[np.bool_]) -> None:
    heights = counts / counts.sum() / np.diff(edges)
    style: dict[str, Any] = {"align": "edge", "color": PALETTE[3], "edgecolor": "white"}
    for chosen, label, hatch in ((~was_open, "data", ""), (was_open, "open class", "//")):
        if chosen.any():
            ax.bar(edges[:-1][chosen], heights[chosen], np.diff(edges)[chosen], label=label, hatch=hatch, **style)
    if estimate.family.discrete:
        _draw_masses(ax, estimate, np.arange(np.ceil(edges[0]), edges[-1] + 1.0))
    else:
        _draw_curve(ax, estimate, float(edges[0]), float(edges[-1]))
    ax.set_ylabel("density")


def _draw_counts(ax: Axes, estimate: FittedFamily, sample: Any) -> None:
    low, high = float(sample.lower.min()), float(sample.lower.max())
    if high - low > MOST:
        counts, edges = np.histogram(sample.lower, bins=MOST, weights=sample.weight)
        _draw_classes(ax, estimate, edges, counts.astype(float), np.zeros(len(counts), dtype=bool))
        return
    if estimate.family.high - estimate.family.low <= 1.0:
        low, high = estimate.family.low, estimate.family.high  # a coin has two sides, seen or not
    k = np.arange(low, high + 1.0)
    share = [float(sample.weight[sample.lower == value].sum()) / sample.total for value in k]
    ax.bar(k, share, 0.8, color=PALETTE[3], label="data")
    _draw_masses(ax, estimate, k)
    if len(k) <= FEW:
        ax.set_xticks(k)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel("share")


def _draw_masses(ax: Axes, estimate: FittedFamily, k: Vector) -> None:
    style = "-" if len(k) > MOST else ""
    ax.plot(k, _visible(estimate, k), marker="" if style else "o", linestyle=style, color=PALETTE[1], label="fit")


def _draw_curve(ax: Axes, estimate: FittedFamily, low: float, high: float) -> None:
    margin = 0.08 * (high - low)
    first, last = estimate.family.low, estimate.family.high
    if any(parameter.kind == "angle" for parameter in estimate.family.parameters):
        first, last = (-np.pi, np.pi) if -np.pi <= low and high <= np.pi else (min(low, 0.0), max(high, 2.0 * np.pi))
    ends = max(low - margin, first), min(high + margin, last)
    x = np.linspace(*ends, STEPS)
    y = _visible(estimate, x)
    ax.plot(x[np.isfinite(y)], y[np.isfinite(y)], color=PALETTE[1], label="fit")
    ax.set_ylabel("density")


def _visible(estimate: FittedFamily, x: Vector) -> Vector:
    """The density of what could be seen: 0 outside the window of truncated data, and larger inside."""
    sample, family = estimate.sample, estimate.family
    y = np.exp(estimate.log_density(x))
    if not sample.truncated or len(sample.left) > 1:
        return np.asarray(y)
    c, d = sample.left, sample.right
    inside = family.log_interval(np.ceil(c) - 1.0 if family.discrete else c, d, estimate.values)
    return np.where((x < c[0]) | (x > d[0]), 0.0, y / np.exp(inside[0]))


def _draw_survival(ax: Axes, estimate: FittedFamily, sample: Any, times: Vector, survival: Vector) -> None:
    end = float(max(sample.lower.max(), times.max(initial=-np.inf)))
    begin = min(0.0, float(sample.lower.min()))
    steps = (
        np.concatenate([[begin], times, [end]]),
        np.concatenate([[1.0], survival, survival[-1:] if len(survival) else [1.0]]),
    )
    ax.step(*steps, where="post", color=PALETTE[0], label="data (product limit)")
    late = sample.lower[~sample.exact]
    at = np.concatenate([[1.0], survival])[np.searchsorted(times, late, side="right")]
    ax.plot(late, at, linestyle="", marker="|", color=INK, label="censored")
    x = np.linspace(begin, end, STEPS)
    ax.plot(x, 1.0 - estimate.cdf(x), color=PALETTE[1], label="fit")
    ax.set(ylabel="survival", ylim=(0.0, 1.03))


def _draw_intervals(ax: Axes, estimate: FittedFamily, sample: Any) -> None:
    """The fitted density, and under it every record as a line, open ends drawn to the edge."""
    finite = np.concatenate([side[np.isfinite(side)] for side in (sample.lower, sample.upper)])
    low, high = float(finite.min()), float(finite.max())
    if estimate.family.discrete:
        _draw_masses(ax, estimate, np.arange(np.ceil(low), high + 1.0))
    else:
        _draw_curve(ax, estimate, low, high)
    order = np.lexsort([sample.upper, sample.lower])
    depth = -0.3 * float(ax.get_ylim()[1]) * (1.0 + np.arange(len(order))) / len(order)
    ends = np.clip(sample.lower[order], low, high), np.clip(sample.upper[order], low, high)
    ax.hlines(depth, *ends, color=PALETTE[0], linewidth=0.8, label="records")
    ax.set_yticks([tick for tick in ax.get_yticks() if tick >= 0.0])
    points = sample.exact[order]
    ax.plot(ends[0][points], depth[points], linestyle="", marker=".", markersize=3, color=PALETTE[0])


Array = NDArray[Any]

ROOTS = np.array([0.1, 0.35, 0.7, 1.05, 1.4, 1.75, 2.1, 2.45])  # √deviance of the points of a curve
STEPS_PROFILES = 200  # points of a curve as drawn
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
        self.curves_ = {name: _curve(estimate, name) for name in chosen}

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
        estimate = model
        if hasattr(model, "fit"):
            estimates = fitted(model).estimates_
            if not 0 <= column < len(estimates):
                raise ValueError(f"column must be from 0 to {len(estimates) - 1}, got {column!r}.")
            estimate = estimates[column]
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
            self._draw(panel, name)
        for j in range(0, count, across):
            axes[j].set_ylabel("deviance  2(ℓ̂ − ℓ)")
        for spare in axes[count:]:
            spare.set_axis_off()
        return self

    def _draw(self, ax: Axes, name: str) -> None:
        curve, (low, high) = self.curves_[name], self.intervals_[name]
        at, error = self.estimate[name], self.estimate.standard_errors[name]
        limit = float(chdtri(1.0, 1.0 - self.level))
        top = max(1.25 * limit, 5.0)
        if np.isfinite(error) and error > 0:
            t = np.linspace(-np.sqrt(top), np.sqrt(top), 101)
            ax.plot(at + error * t, t**2, color="#888888", linestyle="--", linewidth=1, label="± standard errors")
        ax.plot(*_smooth(curve, at).T, color=PALETTE[0], linewidth=2, label="profile")
        ax.axhline(limit, color=INK, linewidth=0.8, linestyle=":")
        ends = [end for end in (low, high) if np.isfinite(end)]
        ax.vlines(ends, 0, limit, color=PALETTE[1], linewidth=1.4)
        ax.plot([at] if np.isfinite(at) else [], [0] if np.isfinite(at) else [], "o", color=INK, markersize=5)
        ax.set_ylim(0, top)
        ax.set_xlabel(name)
        ax.grid(axis="y", color=GRID)
        ax.set_title(f"{at:.3g}, {100 * self.level:.4g}%: {low:.3g} to {high:.3g}", loc="left", fontsize="medium")
        if ax is self.ax_:
            ax.legend(loc="upper center", frameon=True, framealpha=0.9, edgecolor="none", fontsize="x-small")


def _smooth(curve: Array, at: float) -> Array:
    """More points of a curve: the root of the deviance, with a sign, is nearly a straight line in the parameter."""
    root = np.where(curve[:, 0] < at, -1.0, 1.0) * np.sqrt(curve[:, 1])
    fine = np.unique(np.concatenate([curve[:, 0], np.linspace(curve[0, 0], curve[-1, 0], STEPS_PROFILES)]))
    return np.column_stack([fine, np.interp(fine, curve[:, 0], root) ** 2])


def _curve(estimate: Any, name: str) -> Array:
    """Where the profile has lost so much, on both sides, from left to right; an open side is left out."""
    points = [(float(estimate[name]), 0.0)]
    for root in ROOTS:
        low, high = estimate.profile(float(erf(root / np.sqrt(2.0))), name)[name]
        points += [(low, float(root**2)), (high, float(root**2))]
    found = np.array(points)
    at = found[0, 0]
    end = (found[:, 0] == at) & (found[:, 1] > 0)  # the maximum is at the end of the range: that side has no curve
    found = found[np.isfinite(found[:, 0]) & ~end]
    return np.asarray(found[np.lexsort([found[:, 1], found[:, 0]])])
