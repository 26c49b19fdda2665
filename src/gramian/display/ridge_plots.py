"""What λ does, in one picture: the path of a ridge or kernel ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gramian.display.style import GRID, INK, MARKERS, PALETTE, new_axes

__all__ = ["plot_ridge_path"]

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


def plot_ridge_path(
    model: Any,
    *,
    target: int = 0,
    names: Sequence[str] | None = None,
    coefficients: bool | None = None,
    criterion: str = "loo",
) -> Figure:
    r"""Draw what λ does: coefficients, how much of each direction is kept, and the criteria that choose λ.

    The panels share one axis, λ on a logarithmic scale with the degrees of freedom above it; the vertical line is the λ
    chosen. The middle panel shows σ²/(σ²+λ): directions of small σ are the first to go.

    Parameters
    ----------
    model : RidgeCV, KernelRidgeCV or RidgePath
        A fitted model with a ``path_``, or such a path.
    target : int, default=0
        Which target, where there are several.
    names : sequence of str, optional
        Of the columns; ``feature_names_in_`` of the model, or x1, x2, … where not given.
    coefficients : bool, optional
        Whether to draw coefficients; by default unless the model has dual ones, which mean little one by one, or the
        path was too large to keep them.
    criterion : {"loo", "gcv", "marginal_likelihood"}, default="loo"
        What chooses the λ that is marked on a path; a model has chosen its own.

    Returns
    -------
    matplotlib.figure.Figure
        Two or three panels.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.ridge_plots import plot_ridge_path
    >>> from gramian.estimators.ridge_cv import RidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 3))
    >>> model = RidgeCV(alphas=np.geomspace(0.01, 100, 20)).fit(X, X[:, 0] + rng.normal(size=30))
    >>> [ax.get_title(loc="left") for ax in plot_ridge_path(model).axes[:3]]
    ['Coefficients', 'Kept of each direction', 'What chooses λ']
    """
    view = _view(model, target, criterion)
    wanted = view.coef.size > 0 and not hasattr(model, "dual_coef_") if coefficients is None else coefficients
    if wanted and not view.coef.size:
        raise ValueError("The path was too large to keep its coefficients: coefficients=True cannot draw them.")
    count = 2 + bool(wanted)
    figure = Figure(figsize=(7.2, 2.6 * count + 0.6), layout="constrained")
    axes = [new_axes(ax, (7.2, 2.6)) for ax in figure.subplots(count, sharex=True)]
    axes[0].set_xscale("log")
    if wanted:
        _draw_coefficients(axes[0], view, _names(model, names, view.coef.shape[1]))
    _draw_kept(axes[-2], view)
    _draw_criteria(axes[-1], view)
    _draw_penalty(axes, view)
    return figure


def _view(model: Any, target: int, criterion: str) -> View:
    """Read a model or a path; say what it lacks."""
    path: Any = getattr(model, "path_", None) if hasattr(model, "fit") else model
    if not hasattr(path, "filter_factors"):
        raise ValueError(
            f"{type(model).__name__} has no path of λ to draw. Fit RidgeCV, or KernelRidgeCV with solver='eigh' or "
            "'inducing', and hand in the model or its path_."
        )
    if not 0 <= target < path.loo.shape[1]:
        raise ValueError(f"target must be from 0 to {path.loo.shape[1] - 1}, got {target!r}.")
    order = np.argsort(path.alphas)
    order = order[path.alphas[order] > 0]
    if not len(order):
        raise ValueError("The path has no λ above 0 to draw.")
    chosen = path.alphas[path.best(criterion)] if path is model else np.atleast_1d(model.alpha_)
    falling = np.argsort(-path.singular_values, kind="stable")
    kept = (path.singular_values[:, None] * path.filter_factors)[falling]
    return View(
        lam=path.alphas[order],
        dof=path.dof[order],
        kept=kept[:, order],
        coef=path.coef[order, target] if path.coef.size else np.empty((len(order), 0)),
        curves={c.key: path.score(c.key)[order, target] for c in (LOO, GCV, LIKELIHOOD)},
        chosen=float(np.broadcast_to(chosen, (path.loo.shape[1],))[target]),
    )


def _names(model: Any, names: Sequence[str] | None, p: int) -> list[str]:
    found = names if names is not None else getattr(model, "feature_names_in_", None)
    labels = [f"x{j + 1}" for j in range(p)] if found is None else [str(name) for name in found]
    if len(labels) != p:
        raise ValueError(f"names has {len(labels)} entries for {p} columns.")
    return labels


def _draw_coefficients(ax: Axes, view: View, names: list[str]) -> None:
    """Every coefficient; the largest by name, in colours and with markers along the line, each at its own places."""
    size = np.max(np.abs(view.coef), axis=0)
    named = np.sort(np.argsort(-size, kind="stable")[:NAMED])
    rest = np.setdiff1d(np.arange(len(names)), named)
    ax.plot(view.lam, view.coef[:, rest], color="#bbbbbb", linewidth=0.8)
    step = max(1, len(view.lam) // REPEATED)
    for k, (j, colour, marker) in enumerate(zip(named, PALETTE, MARKERS, strict=False)):
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "markevery": (k % step, step)}
        ax.plot(view.lam, view.coef[:, j], label=_short(names[j]), **style)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.set_ylabel("coefficient")
    ax.set_title("Coefficients", loc="left")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")


def _short(name: str) -> str:
    """A long name without its middle: its ends tell it from others."""
    half = (LONGEST - 1) // 2
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1 - half]}…{name[-half:]}"


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
