"""What λ does, in one picture: the path of a ridge or kernel ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from gramian.display._base import Display, fitted
from gramian.display._text import as_names, set_plain, short
from gramian.display.style import GRID, INK, MARKERS, PALETTE

__all__ = ["RidgePathDisplay"]

Array = NDArray[Any]

NAMED = len(PALETTE)  # coefficients that get a colour and a name; the others are grey
DIRECTIONS = 12  # of shrinkage, drawn where there are more
LONGEST = 18  # letters of a name: more would take the room of the picture
REPEATED = 6  # markers along a line
WIDE = 30.0  # largest over smallest error from which they are drawn on a logarithmic scale


@dataclass(frozen=True)
class Criterion:
    """A curve whose least value chooses λ: how it is named and drawn."""

    key: str
    label: str
    colour: str
    line: str
    marker: str
    size: float  # of the marker: where two have the same least value the smaller lies in the larger


LOO = Criterion("loo", "leave-one-out", PALETTE[0], "-", "o", 12.0)
GCV = Criterion("gcv", "GCV", PALETTE[1], "--", "s", 7.5)
LIKELIHOOD = Criterion("marginal_likelihood", "−log likelihood (right)", PALETTE[2], ":", "D", 4.0)


@dataclass(frozen=True, eq=False)
class View:
    """One target of a path, λ > 0 rising, directions from the largest σ to the smallest, and the λ chosen."""

    lam: Array
    dof: Array
    kept: Array
    coef: Array
    curves: dict[str, Array]
    chosen: float


class RidgePathDisplay(Display):
    r"""What λ does: coefficients, how much of each direction is kept, and the criteria that choose λ.

    .. math:: \hat\beta_\lambda = V\frac{\sigma}{\sigma^2+\lambda}U^Ty,\qquad
        \mathrm{df}_\lambda=\sum_j\frac{\sigma_j^2}{\sigma_j^2+\lambda}

    The panels share one axis, λ on a logarithmic scale with the degrees of freedom above it; the vertical line is the λ
    chosen. The middle panel shows σ²/(σ²+λ): directions of small σ are the first to go.

    Parameters
    ----------
    path : RidgePath
        Every λ of a regression.
    chosen : float
        The λ to mark.
    target : int, default=0
        Which target, where there are several.
    names : sequence of str, optional
        Of the columns; x1, x2, … where not given.
    coefficients : bool, default=True
        Whether to draw coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RidgeCV
    >>> from gramian.display import RidgePathDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 3))
    >>> model = RidgeCV(alphas=np.geomspace(0.01, 100, 20)).fit(X, X[:, 0] + rng.normal(size=30))
    >>> [ax.get_title(loc="left") for ax in RidgePathDisplay.from_estimator(model).axes_]
    ['Coefficients', 'Kept of each direction', 'What chooses λ']
    """

    def __init__(
        self,
        path: Any,
        *,
        chosen: float,
        target: int = 0,
        names: Sequence[str] | None = None,
        coefficients: bool = True,
    ) -> None:
        self.view = _view(path, chosen, target)
        if coefficients and not self.view.coef.size:
            raise ValueError("The path was too large to keep its coefficients: coefficients=True cannot draw them.")
        self.coefficients = coefficients
        p = self.view.coef.shape[1]
        self.names = [] if not coefficients else _names(names, p)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        target: int = 0,
        names: Sequence[str] | None = None,
        coefficients: bool | None = None,
        criterion: str = "loo",
        ax: Axes | None = None,
    ) -> RidgePathDisplay:
        """Draw the path of a fitted model, or a path.

        Parameters
        ----------
        model : RidgeCV, KernelRidgeCV or RidgePath
            A fitted model with a ``path_``, or such a path.
        target : int, default=0
            Which target, where there are several.
        names : sequence of str, optional
            Of the columns; ``feature_names_in_`` of the model, or x1, x2, … where not given.
        coefficients : bool, optional
            Whether to draw coefficients; by default unless the model has dual ones, which mean little one by one, or
            the path was too large to keep them.
        criterion : {"loo", "gcv", "marginal_likelihood"}, default="loo"
            What chooses the λ that is marked on a path; a model has chosen its own.
        ax : matplotlib.axes.Axes, optional
            In whose place to draw; by default a new figure.

        Returns
        -------
        RidgePathDisplay
            Drawn.
        """
        model = fitted(model)
        path = _path_of(model)
        if not 0 <= target < path.loo.shape[1]:
            raise ValueError(f"target must be from 0 to {path.loo.shape[1] - 1}, got {target!r}.")
        chosen = path.alphas[path.best(criterion)] if path is model else np.atleast_1d(model.alpha_)
        mine = float(np.broadcast_to(chosen, (path.loo.shape[1],))[target])
        wanted = path.coef.size > 0 and not hasattr(model, "dual_coef_") if coefficients is None else coefficients
        found = names if names is not None else getattr(model, "feature_names_in_", None)
        return cls(path, chosen=mine, target=target, names=found, coefficients=bool(wanted)).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> RidgePathDisplay:
        """Draw, in the place of the axes given or on a new figure."""
        count = 2 + self.coefficients
        axes = self._panels(ax, count, 1, (7.2, 2.6 * count + 0.6), sharex=True)
        axes[0].set_xscale("log")
        if self.coefficients:
            _draw_coefficients(axes[0], self.view, self.names)
        _draw_kept(axes[-2], self.view)
        _draw_criteria(axes[-1], self.view)
        _draw_penalty(axes, self.view)
        return self


def _path_of(model: Any) -> Any:
    """The path of a model, or the path itself; say what it lacks."""
    path: Any = getattr(model, "path_", None) if hasattr(model, "fit") else model
    if not hasattr(path, "filter_factors"):
        raise ValueError(
            f"{type(model).__name__} has no path of λ to draw. Fit RidgeCV, or KernelRidgeCV with solver='eigh' or "
            "'inducing', and hand in the model or its path_."
        )
    return path


def _view(path: Any, chosen: float, target: int) -> View:
    """One target of a path, in order."""
    order = np.argsort(path.alphas)
    order = order[path.alphas[order] > 0]
    if not len(order):
        raise ValueError("The path has no λ above 0 to draw.")
    falling = np.argsort(-path.singular_values, kind="stable")
    kept = (path.singular_values[:, None] * path.filter_factors)[falling]
    return View(
        lam=path.alphas[order],
        dof=path.dof[order],
        kept=kept[:, order],
        coef=path.coef[order, target] if path.coef.size else np.empty((len(order), 0)),
        curves={c.key: path.score(c.key)[order, target] for c in (LOO, GCV, LIKELIHOOD)},
        chosen=chosen,
    )


def _names(names: Sequence[str] | None, p: int) -> list[str]:
    if names is not None and len(names) != p:
        raise ValueError(f"names has {len(names)} entries for {p} columns.")
    return as_names(names, p, "names", "x{}")


def _draw_coefficients(ax: Axes, view: View, names: list[str]) -> None:
    """Every coefficient; the largest by name, in colours and with markers along the line, each at its own places."""
    size = np.max(np.abs(view.coef), axis=0)
    named = np.sort(np.argsort(-size, kind="stable")[:NAMED])
    rest = np.setdiff1d(np.arange(len(names)), named)
    ax.plot(view.lam, view.coef[:, rest], color="#bbbbbb", linewidth=0.8)
    step = max(1, len(view.lam) // REPEATED)
    lines: list[Line2D] = []
    for k, (j, colour, marker) in enumerate(zip(named, PALETTE, MARKERS, strict=False)):
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "markevery": (k % step, step)}
        lines += ax.plot(view.lam, view.coef[:, j], label=short(names[j], LONGEST), **style)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.set_ylabel("coefficient")
    ax.set_title("Coefficients", loc="left")
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "frameon": False}
    key = ax.legend(lines, ["name"] * len(lines), fontsize="small", **beside)
    set_plain(key.get_texts(), [names[j] for j in named], LONGEST)


def _draw_kept(ax: Axes, view: View) -> None:
    """σ²/(σ²+λ) of some directions, from the largest σ, on top, to the smallest."""
    r = len(view.kept)
    some = np.unique(np.linspace(0, r - 1, min(r, DIRECTIONS)).round().astype(int))
    for j in some:
        first, last = j == 0, j == r - 1 and r > 1
        colour, line = (PALETTE[0], "-") if first else (PALETTE[1], "--") if last else ("#999999", "-")
        label = "largest σ" if first else "smallest σ" if last else None
        style: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": 2 if label else 1}
        if len(view.lam) == 1:  # of which there is no line
            style["marker"] = "o" if first else "s" if last else "_"
        ax.plot(view.lam, view.kept[j], label=label, **style)
    ax.set(ylabel="σ²/(σ²+λ)", ylim=(-0.03, 1.03))
    ax.set_title("Kept of each direction", loc="left")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")


def _draw_criteria(ax: Axes, view: View) -> None:
    """Errors on the left scale, the likelihood on the right one, each with a marker at its least value."""
    right = ax.twinx()
    right.spines["top"].set_visible(False)
    handles = []
    for scale, criterion in ((ax, LOO), (ax, GCV), (right, LIKELIHOOD)):
        values = np.where(np.isfinite(view.curves[criterion.key]), view.curves[criterion.key], np.nan)
        if np.all(np.isnan(values)):
            continue
        least = int(np.nanargmin(values))
        style: dict[str, Any] = {"color": criterion.colour, "linestyle": criterion.line, "marker": criterion.marker}
        style |= {"markersize": criterion.size, "markerfacecolor": "none", "markeredgewidth": 1.5}
        handles += scale.plot(view.lam, values, markevery=[least], label=criterion.label, **style)
    errors = np.concatenate([view.curves[c.key] for c in (LOO, GCV)])
    errors = errors[np.isfinite(errors)]
    if len(errors) and 0 < WIDE * errors.min() < errors.max():
        ax.set_yscale("log")
    ax.set_ylabel("mean squared error")
    right.set_ylabel("−log marginal likelihood")
    ax.set_title("What chooses λ", loc="left")
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.28), "ncols": 3}
    ax.legend(handles=handles, frameon=False, fontsize="small", **below)


def _draw_penalty(axes: Sequence[Axes], view: View) -> None:
    """The axis of λ below, degrees of freedom above, and the λ chosen through all panels."""
    for ax in axes:
        ax.grid(color=GRID)
        if view.chosen > 0:
            ax.axvline(view.chosen, color=INK, linewidth=1, linestyle=(0, (5, 3)))
    text = f"λ chosen: {view.chosen:.3g}" if view.chosen > 0 else "λ chosen: 0, which has no place on this axis"
    axes[-1].set_xlabel(f"λ  ({text})")
    top = axes[0].secondary_xaxis("top")
    ticks = np.unique(np.linspace(0, len(view.lam) - 1, min(7, len(view.lam))).round().astype(int))
    top.set_xticks(view.lam[ticks], [f"{view.dof[k]:.3g}" for k in ticks])
    top.minorticks_off()
    top.set_xlabel("degrees of freedom")
