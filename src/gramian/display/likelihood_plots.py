"""Pictures of fitted distributions beside the data they were fitted to."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from gramian.display._text import as_ticks
from gramian.display.style import GRID, INK, PALETTE, new_axes

__all__ = ["plot_fit"]

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
    >>> from gramian.display.likelihood_plots import plot_fit
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
