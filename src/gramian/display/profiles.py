"""The likelihood of one parameter, the others at their best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.special import chdtri, erf

from gramian.display._base import Display, fitted
from gramian.display.style import GRID, INK, PALETTE

__all__ = ["ProfileDisplay"]

Array = NDArray[Any]

ROOTS = np.array([0.1, 0.35, 0.7, 1.05, 1.4, 1.75, 2.1, 2.45])  # √deviance of the points of a curve
STEPS = 200  # points of a curve as drawn
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
    fine = np.unique(np.concatenate([curve[:, 0], np.linspace(curve[0, 0], curve[-1, 0], STEPS)]))
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
