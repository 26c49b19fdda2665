"""Pictures of regressions: the path of λ, errors that choose it, a curve with its band, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from gramian.display.base import (
    GRID,
    INK,
    MARKERS,
    PALETTE,
    Display,
    as_floats,
    as_names,
    as_ticks,
    check_fitted,
    describe_axes,
    name_axes,
    names_of_frame,
    plain_name,
    set_plain,
    without_names,
)
from gramian.display.groups import point_style
from gramian.display.labels import Labels
from gramian.inputs.checks import check_choice, check_integer, check_share
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.kernels import is_precomputed
from gramian.kernel_ridge.estimator import KernelRidge
from gramian.kernels.names import name_kernel
from gramian.pca.interpret import row_names

Array = NDArray[Any]

DIRECTIONS = 12  # of shrinkage, drawn where there are more
LONGEST = 18  # letters of a name: more would take the room of the picture
REPEATED = 6  # markers along a line
RIGHT: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "frameon": False}  # of the axes
WIDE = 30.0  # largest over smallest error from which they are drawn on a logarithmic scale


# Curves whose least value chooses λ: label, colour, line, marker and its size; where two have the same least value the
# smaller marker lies in the larger.
CRITERIA: dict[str, tuple[str, str, str, str, float]] = {
    "loo": ("leave-one-out", PALETTE[0], "-", "o", 12.0),
    "gcv": ("GCV", PALETTE[1], "--", "s", 7.5),
    "marginal_likelihood": ("−log likelihood (right)", PALETTE[2], ":", "D", 4.0),
}
ERRORS = ("loo", "gcv")


@dataclass(frozen=True, eq=False)
class PathData:
    """What a picture of a path of λ shows, whoever draws it.

    Attributes
    ----------
    lam, dof : ndarray of shape (l,)
        λ > 0, rising, and the degrees of freedom at each.
    kept : ndarray of shape (r, l)
        σ²/(σ²+λ) of the directions, from the largest σ to the smallest.
    coef : ndarray of shape (l, p)
        Coefficients of one target; no columns where they were not kept.
    curves : dict of str to ndarray of shape (l,)
        The criteria of one target, or their mean over all; NaN where there is none.
    """

    lam: Array
    dof: Array
    kept: Array
    coef: Array
    curves: dict[str, Array]

    @property
    def ranked(self) -> NDArray[np.intp]:
        """Numbers of the coefficients, the largest along the path first."""
        return np.argsort(-np.max(np.abs(self.coef), axis=0), kind="stable")

    @property
    def is_wide(self) -> bool:
        """Whether errors are so different that their scale is logarithmic."""
        return _is_wide(np.concatenate([self.curves[key] for key in ERRORS]))


def _is_wide(values: Array) -> bool:
    values = values[np.isfinite(values)]
    return bool(len(values) and 0 < WIDE * values.min() < values.max())


def describe_path(path: Any, target: int | None = 0) -> PathData:
    """Prepare the picture of one target of a RidgePath; of the mean over targets, with the first one's coefficients."""
    order = np.argsort(path.alphas)
    order = order[path.alphas[order] > 0]
    if not len(order):
        raise ValueError("The path has no λ above 0 to draw.")
    falling = np.argsort(-path.singular_values, kind="stable")
    curves = {key: path.score(key)[order] for key in CRITERIA}
    mine = {key: np.mean(curve, axis=1) if target is None else curve[:, target] for key, curve in curves.items()}
    return PathData(
        lam=path.alphas[order],
        dof=path.dof[order],
        kept=(path.singular_values[:, None] * path.filter_factors)[np.ix_(falling, order)],
        coef=path.coef[order, target or 0] if path.coef.size else np.empty((len(order), 0)),
        curves={key: np.where(np.isfinite(curve), curve, np.nan) for key, curve in mine.items()},
    )


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
        self.data_, self.chosen, self.coefficients = describe_path(path, target), chosen, coefficients
        p = self.data_.coef.shape[1]
        if coefficients and not p:
            raise ValueError("The path was too large to keep its coefficients: coefficients=True cannot draw them.")
        self.names = as_names(names, p, "names", "x{}", "columns") if coefficients else []

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
        model = check_fitted(model)
        path: Any = getattr(model, "path_", None) if hasattr(model, "fit") else model
        if not hasattr(path, "filter_factors"):
            raise ValueError(
                f"{type(model).__name__} has no path of λ to draw. Fit RidgeCV, or KernelRidgeCV with solver='eigh' or "
                "'landmarks', and hand in the model or its path_."
            )
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
            self._draw_coefficients(axes[0])
        self._draw_kept(axes[-2])
        self._draw_criteria(axes[-1])
        for panel in axes:
            panel.grid(color=GRID)
            if self.chosen > 0:
                panel.axvline(self.chosen, color=INK, linewidth=1, linestyle=(0, (5, 3)))
        text = f"λ chosen: {self.chosen:.3g}" if self.chosen > 0 else "λ chosen: 0, which has no place on this axis"
        axes[-1].set_xlabel(f"λ  ({text})")
        lam, top = self.data_.lam, axes[0].secondary_xaxis("top")
        ticks = np.unique(np.linspace(0, len(lam) - 1, min(7, len(lam))).round().astype(int))
        top.set_xticks(lam[ticks], [f"{self.data_.dof[k]:.3g}" for k in ticks])
        top.minorticks_off()
        top.set_xlabel("degrees of freedom")
        return self

    def _draw_coefficients(self, ax: Axes) -> None:
        """Every coefficient; the largest by name, in colours and with markers along the line, each at its places."""
        lam, coef, ranked = self.data_.lam, self.data_.coef, self.data_.ranked
        named = np.sort(ranked[: len(PALETTE)])
        ax.plot(lam, coef[:, ranked[len(PALETTE) :]], color="#bbbbbb", linewidth=0.8)
        step = max(1, len(lam) // REPEATED)
        lines: list[Line2D] = []
        for k, (j, colour, marker) in enumerate(zip(named, PALETTE, MARKERS, strict=False)):
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "markevery": (k % step, step)}
            lines += ax.plot(lam, coef[:, j], label=plain_name(self.names[j], LONGEST), **style)
        ax.axhline(0.0, color=INK, linewidth=0.8)
        describe_axes(ax, "Coefficients", ylabel="coefficient")
        key = ax.legend(lines, ["name"] * len(lines), fontsize="small", **RIGHT)
        set_plain(key.get_texts(), [self.names[j] for j in named], LONGEST)

    def _draw_kept(self, ax: Axes) -> None:
        """σ²/(σ²+λ) of some directions, from the largest σ, on top, to the smallest."""
        lam, kept, r = self.data_.lam, self.data_.kept, len(self.data_.kept)
        ends = {r - 1: ("smallest σ", PALETTE[1], "--", "s", 2)} | {0: ("largest σ", PALETTE[0], "-", "o", 2)}
        for j in np.unique(np.linspace(0, r - 1, min(r, DIRECTIONS)).round().astype(int)):
            label, colour, line, marker, width = ends.get(int(j), (None, "#999999", "-", "_", 1))
            style: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": width}
            ax.plot(lam, kept[j], label=label, marker=marker if len(lam) == 1 else None, **style)
        describe_axes(ax, "Kept of each direction", ylabel="σ²/(σ²+λ)", ylim=(-0.03, 1.03))
        ax.legend(fontsize="small", **RIGHT)

    def _draw_criteria(self, ax: Axes) -> None:
        """Errors on the left scale, the likelihood on the right one, each with a marker at its least value."""
        right = ax.twinx()
        right.spines["top"].set_visible(False)
        handles: list[Line2D] = []
        for key, (label, colour, line, marker, size) in CRITERIA.items():
            values = self.data_.curves[key]
            if np.isnan(values).all():
                continue
            style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker, "markersize": size}
            style |= {"markerfacecolor": "none", "markeredgewidth": 1.5, "markevery": [int(np.nanargmin(values))]}
            handles += (ax if key in ERRORS else right).plot(self.data_.lam, values, label=label, **style)
        if self.data_.is_wide:
            ax.set_yscale("log")
        right.set_ylabel("−log marginal likelihood")
        describe_axes(ax, "What chooses λ", ylabel="mean squared error")
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.28), "ncols": 3}
        ax.legend(handles=handles, frameon=False, fontsize="small", **below)


LINES = 8  # kernels drawn as lines; more are a map of colours
NAMES = {
    "loo": "mean squared leave-one-out error",
    "gcv": "generalised cross-validation",
    "marginal_likelihood": "−log marginal likelihood",
    "accuracy": "share of rows left out that were missed",
}
KINDS = ("lines", "heat")


class LeaveOneOutDisplay(Display):
    r"""The criterion that chose λ, and the bandwidth or kernel: a line for each kernel, or a map over both.

    .. math:: \mathrm{loo}(\lambda,\gamma)=\frac1n\sum_i\Big(\frac{\alpha_i}{(K_\gamma+\lambda I)^{-1}_{ii}}\Big)^2

    Parameters
    ----------
    alphas : array-like of shape (kernels, λs)
        λ, those of each kernel its own.
    values : array-like of shape (kernels, λs)
        What was made small; NaN where there is none.
    kernels : sequence of str, optional
        Names of the kernels.
    gammas : array-like of shape (kernels,), optional
        Their γ, where all have one: the axis of a map.
    criterion : str, default="loo"
        What the values are.

    Attributes
    ----------
    best_ : tuple of int
        Kernel and λ of the least value, which are marked.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidgeCV
    >>> from gramian.display import LeaveOneOutDisplay
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidgeCV(gamma=[0.1, 1.0, 10.0]).fit(x, np.sin(x[:, 0]) + 0.1 * np.cos(40 * x[:, 0]))
    >>> picture = LeaveOneOutDisplay.from_estimator(model)
    >>> bool(picture.values[picture.best_] == -model.best_score_)
    True
    """

    def __init__(
        self,
        alphas: ArrayLike,
        values: ArrayLike,
        *,
        kernels: Sequence[Any] | None = None,
        gammas: ArrayLike | None = None,
        criterion: str = "loo",
    ) -> None:
        self.alphas, self.values = (np.atleast_2d(np.asarray(part, dtype=float)) for part in (alphas, values))
        if not (self.alphas > 0).all():
            raise ValueError(f"λ = {self.alphas.min():g} has no place on a logarithmic axis: leave it out.")
        if self.alphas.shape != self.values.shape:
            raise ValueError(f"alphas of shape {self.alphas.shape} and values of {self.values.shape} must be alike.")
        self.values = np.where(np.isfinite(self.values), self.values, np.nan)
        if np.isnan(self.values).all():
            raise ValueError("No pair of kernel and λ has a value: there is nothing to draw.")
        self.kernels = [""] * len(self.values) if kernels is None else [str(kernel) for kernel in kernels]
        self.gammas, self.criterion = as_floats(gammas), criterion
        row, column = np.unravel_index(np.nanargmin(self.values), self.values.shape)
        self.best_ = int(row), int(column)

    @classmethod
    def from_estimator(
        cls, model: Any, *, target: int | None = None, ax: Axes | None = None, **how: Any
    ) -> LeaveOneOutDisplay:
        """Draw a fitted KernelRidgeCV, or a RidgeCV.

        Parameters
        ----------
        model : KernelRidgeCV, KernelRidgeClassifier or RidgeCV
            Fitted.
        target : int, optional
            Which target of a RidgeCV; the mean of all unless given.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **how
            Options of :meth:`plot`.

        Returns
        -------
        LeaveOneOutDisplay
            Drawn.
        """
        model = check_fitted(model)
        if hasattr(model, "scores_") and hasattr(model, "kernels_"):
            names, gammas = _name_kernels(model.kernels_)
            values = float(model.criterion == "accuracy") - model.scores_
            found = cls(model.alphas_, values, kernels=names, gammas=gammas, criterion=model.criterion)
            return found.plot(ax=ax, **how)
        path = getattr(model, "path_", None)
        if path is None:
            raise ValueError(f"{type(model).__name__} did not choose λ: fit KernelRidgeCV or RidgeCV.")
        order, criterion = np.argsort(path.alphas), getattr(model, "criterion", "loo")
        found = path.score(criterion)
        if target is not None and not 0 <= target < found.shape[1]:
            raise ValueError(f"target must be from 0 to {found.shape[1] - 1}, got {target!r}.")
        values = found.mean(axis=1) if target is None else found[:, target]
        return cls(path.alphas[order], values[order], criterion=criterion).plot(ax=ax, **how)

    def plot(self, ax: Axes | None = None, *, kind: str | None = None) -> LeaveOneOutDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        kind : {"lines", "heat"}, optional
            A line for each kernel, by default of up to 8; or a map of colours over λ and the kernels.

        Returns
        -------
        LeaveOneOutDisplay
            Itself.
        """
        check_choice("kind", kind, (None, *KINDS))
        heat = len(self.values) > LINES if kind is None else kind == "heat"
        ax = self._start(ax, (6.8, 4.4))
        (self._draw_map if heat else self._draw_lines)(ax)
        ax.set(xscale="log", xlabel="λ")
        best = self.kernels[self.best_[0]]
        title = f"Least at λ = {self.alphas[self.best_]:.3g}" + (f", {plain_name(best, 40)}" if best else "")
        set_plain([ax.set_title(title, loc="left", fontsize="medium")], longest=80)
        return self

    def _draw_lines(self, ax: Axes) -> None:
        """A line for each kernel, from light to dark by γ where they have one."""
        count, lines = len(self.values), []
        for i in range(count):
            dark = 0.9 - 0.8 * i / max(count - 1, 1)
            colour = colormaps["viridis"](dark) if self.gammas is not None and count > 1 else PALETTE[i % len(PALETTE)]
            style: dict[str, Any] = {"color": colour, "marker": MARKERS[i % len(MARKERS)], "markersize": 3.5}
            lines += ax.plot(self.alphas[i], self.values[i], label=f"kernel {i}", linewidth=1.4, **style)
        ax.plot(self.alphas[self.best_], self.values[self.best_], "o", color=INK, fillstyle="none", markersize=12)
        scale = "log" if _is_wide(self.values) else "linear"
        describe_axes(ax, grid="both", yscale=scale, ylabel=NAMES.get(self.criterion, self.criterion))
        if any(self.kernels):
            key = ax.legend(handles=lines, fontsize="small", **RIGHT)
            set_plain(key.get_texts(), self.kernels, 30)

    def _draw_map(self, ax: Axes) -> None:
        """A row of cells for each kernel, with the edges of its own λ."""
        up = [(i - 0.5, i + 0.5) for i in range(len(self.values))]  # lower and upper edge of each row
        if self.gammas is not None:
            edges = _cell_edges(np.sort(self.gammas))
            up = [(float(edges[k]), float(edges[k + 1])) for k in np.argsort(np.argsort(self.gammas))]
        low, high = float(np.nanmin(self.values)), float(np.nanmax(self.values))
        norm: Normalize = LogNorm(low, high) if _is_wide(self.values) else Normalize(low, high)
        order = np.argsort(self.alphas, axis=1)
        shades: Any = None
        for i, (bottom, top) in enumerate(up):
            lam, values = self.alphas[i, order[i]], self.values[i, order[i]]
            cells: dict[str, Any] = {"cmap": "viridis_r", "norm": norm, "rasterized": True}
            shades = ax.pcolormesh(_cell_edges(lam), [bottom, top], values[None, :], **cells)
        ax.figure.colorbar(shades, ax=ax, label=NAMES.get(self.criterion, self.criterion))
        i, _ = self.best_
        middle = np.sqrt(up[i][0] * up[i][1]) if self.gammas is not None else sum(up[i]) / 2
        ax.plot(self.alphas[self.best_], middle, "o", color="white", fillstyle="none", markersize=11, markeredgewidth=2)
        ax.plot(self.alphas[self.best_], middle, "x", color="white", markersize=5)
        if self.gammas is not None:
            ax.set(yscale="log", ylabel="γ (bandwidth 1/√(2γ))")
        else:
            ax.set_yticks(range(len(up)), as_ticks(self.kernels, 30))


class FeatureSharesDisplay(Display):
    r"""Which features a learned kernel compares rows by: a bar for the share of each, with its width.

    Parameters
    ----------
    names : sequence of str
        Of the features.
    shares : array-like of shape (p,)
        Of the squared distance of two near rows, as the kernel measures it, between 0 and 1.
    widths : array-like of shape (p,), optional
        Length scales, in units of the features; NaN where there is none.

    Attributes
    ----------
    order_ : ndarray of shape (p,)
        The features from the largest share to the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidgeCV
    >>> from gramian.display import FeatureSharesDisplay
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> model = KernelRidgeCV(learn="loo").fit(X, np.sin(2 * X[:, 1]))
    >>> int(FeatureSharesDisplay.from_estimator(model).order_[0])
    1
    """

    def __init__(self, names: Sequence[Any], shares: ArrayLike, *, widths: ArrayLike | None = None) -> None:
        self.names, self.shares = [str(name) for name in names], np.asarray(shares, dtype=float)
        self.widths = np.full(len(self.shares), np.nan) if widths is None else np.asarray(widths, dtype=float)
        for name, found in (("names", len(self.names)), ("widths", len(self.widths))):
            if found != len(self.shares):
                raise ValueError(f"{name} must be as many as shares, {len(self.shares)}; got {found}.")
        if not (np.isfinite(self.shares) & (self.shares >= 0)).all():
            raise ValueError("shares must be finite and not negative.")
        self.order_ = np.argsort(-self.shares, kind="stable")

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, **how: Any) -> FeatureSharesDisplay:
        """Draw what a KernelRidgeCV with ``learn`` has learned.

        Parameters
        ----------
        model : KernelRidgeCV
            Fitted with ``learn``.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **how
            Options of :meth:`plot`.

        Returns
        -------
        FeatureSharesDisplay
            Drawn.
        """
        learned = getattr(check_fitted(model), "learned_", None)
        if learned is None:
            raise ValueError(f"{type(model).__name__} has learned no kernel: fit KernelRidgeCV(learn='loo').")
        return cls(learned.features, learned.shares, widths=learned.widths).plot(ax=ax, **how)

    def plot(self, ax: Axes | None = None, *, most: int = 20) -> FeatureSharesDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        most : int, default=20
            Bars at most, of the largest shares.

        Returns
        -------
        FeatureSharesDisplay
            Itself.
        """
        shown = self.order_[: check_integer("most", most)]
        ax = self._start(ax, (6.4, 1.2 + 0.28 * len(shown)))
        at = np.arange(len(shown))
        ax.barh(at, self.shares[shown], color=PALETTE[0])
        for i, k in zip(at, shown, strict=True):
            if np.isfinite(self.widths[k]):
                ax.annotate(
                    f"{self.widths[k]:.3g}",
                    (self.shares[k], i),
                    (4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize="small",
                    color=INK,
                )
        ax.set_yticks(at, as_ticks([self.names[k] for k in shown], 30))
        ax.invert_yaxis()
        ax.margins(x=0.12)
        left = len(self.order_) - len(shown)
        title = "Share of the kernel's distance, and width" + (f"; {left} smaller ones not shown" if left else "")
        ax.set_title(title, loc="left", fontsize="medium")
        describe_axes(ax, grid="x", xlabel="share")
        return self


def _cell_edges(values: Array) -> Array:
    """Edges of cells around rising positive numbers, half way in their logarithms."""
    logs = np.log(values)
    if len(logs) == 1:
        return np.asarray(values[0] * np.array([0.5, 2.0]))
    middle = (logs[1:] + logs[:-1]) / 2
    ends = [2 * logs[0] - middle[0], *middle, 2 * logs[-1] - middle[-1]]
    return np.asarray(np.exp(ends))


def _name_kernels(kernels: Sequence[Any]) -> tuple[list[str], Array | None]:
    """Names of kernels; of one family that differs in γ alone, γ, and that as a number."""
    gammas = [getattr(kernel, "gamma", None) for kernel in kernels]
    alike = len({type(kernel) for kernel in kernels}) == 1 and len(kernels) > 1
    if alike and all(isinstance(g, (int, float, np.number)) and g > 0 for g in gammas) and len(set(gammas)) > 1:
        numbers = np.array([float(g) for g in gammas])  # type: ignore[arg-type]
        return [f"γ = {g:.3g}" for g in numbers], numbers if len(set(numbers)) == len(numbers) else None
    return [name_kernel(kernel) for kernel in kernels], None


STEPS = 300  # points of the curve


class PredictionBandDisplay(Display):
    """The data, the curve f(x), the band a new observation falls in, and the certified bound on |f̂ − f|.

    Parameters
    ----------
    x : array-like of shape (m,)
        Where the curve is known, rising.
    prediction : array-like of shape (m,)
        f(x).
    lower, upper : array-like of shape (m,), optional
        Ends of the band.
    bound : array-like of shape (m,), optional
        Certified distance from the exact solution; its largest value is in the legend, as it may be thinner than the
        line.
    data : tuple of two array-like of shape (n,), optional
        Points: where, and what was observed there.
    level : float, default=0.95
        Share of new observations in the band, for the legend.
    names : tuple of two str, default=("x", "y")
        Of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.display import PredictionBandDisplay
    >>> x = np.linspace(0, 6, 30)
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x[:, None], np.sin(x))
    >>> picture = PredictionBandDisplay.from_estimator(model, x, np.sin(x), bound=True)
    >>> [text.get_text() for text in picture.ax_.get_legend().get_texts()][:3]
    ['data', 'prediction', '95% of new observations']
    """

    def __init__(
        self,
        x: ArrayLike,
        prediction: ArrayLike,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        bound: ArrayLike | None = None,
        data: tuple[ArrayLike, ArrayLike] | None = None,
        level: float = 0.95,
        names: tuple[str, str] = ("x", "y"),
    ) -> None:
        self.x, self.prediction = np.asarray(x, dtype=float), np.asarray(prediction, dtype=float)
        if self.x.shape != self.prediction.shape or self.x.ndim != 1:
            raise ValueError(f"x of shape {self.x.shape} and prediction of {self.prediction.shape} must be vectors.")
        self.lower, self.upper, self.bound = map(as_floats, (lower, upper, bound))
        if (self.lower is None) != (self.upper is None):
            raise ValueError("A band has two ends: give both lower and upper.")
        self.data, self.level, self.names = data, level, names

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        x: Any,
        y: Any,
        *,
        level: float = 0.95,
        bound: bool = False,
        target: int = 0,
        names: tuple[str, str] | None = None,
        ax: Axes | None = None,
    ) -> PredictionBandDisplay:
        """Draw a model fitted to one column over its data; parameters as of :meth:`describe`, and ``ax``."""
        how: dict[str, Any] = {"level": level, "bound": bound, "target": target, "names": names}
        return cls.describe(model, x, y, **how).plot(ax=ax)

    @classmethod
    def describe(
        cls,
        model: Any,
        x: Any,
        y: Any,
        *,
        level: float = 0.95,
        bound: bool = False,
        target: int = 0,
        names: tuple[str, str] | None = None,
    ) -> PredictionBandDisplay:
        """Predict along one column, for a picture that is not drawn yet.

        Parameters
        ----------
        model : Ridge, KernelRidge or another regression fitted to one column
            The band is drawn where it has ``predict_interval``, or predicts with ``return_std``.
        x, y : array-like of shape (n,) or (n, 1), and (n,) or (n, t)
            The data.
        level : float, default=0.95
            Share of new observations in the band.
        bound : bool, default=False
            Also draw the certified bound, of a model that predicts with ``return_bound``.
        target : int, default=0
            Which target, where there are several.
        names : tuple of two str, optional
            Of the axes; those of a frame and a series, or x and y, unless given.

        Returns
        -------
        PredictionBandDisplay
            Not drawn.
        """
        names = (names_of_frame(x, 1, "x")[0], names_of_frame(y, 1, "y")[0]) if names is None else names
        points, values = np.asarray(convert_to_numpy(x), dtype=float), _one_target(convert_to_numpy(y), target)
        if points.ndim not in (1, 2) or points.size != len(points):
            raise ValueError(f"A fit is drawn over one variable: x must have one column, got shape {points.shape}.")
        points = points.reshape(-1)
        if len(points) != len(values):
            raise ValueError(f"x has {len(points)} points, y {len(values)}.")
        check_share("level", level)
        model = without_names(check_fitted(model))
        line = np.linspace(points.min(), points.max(), STEPS)
        curve = _one_target(model.predict(line[:, None]), target)
        options: dict[str, Any] = {"data": (points, values), "level": level, "names": names}
        if bound:
            options["bound"] = _one_target(model.predict(line[:, None], return_bound=True)[1], target)
        if hasattr(model, "predict_interval"):
            ends = model.predict_interval(line[:, None], level=level)
            options["lower"], options["upper"] = (_one_target(end, target) for end in ends)
        elif "return_std" in signature(model.predict).parameters:
            std = _one_target(model.predict(line[:, None], return_std=True)[1], target)
            half = float(ndtri((1 + level) / 2)) * std
            options |= {"lower": curve - half, "upper": curve + half}
        return cls(line, curve, **options)

    def plot(self, ax: Axes | None = None) -> PredictionBandDisplay:
        """Draw, on the axes given or on a new figure."""
        title = "Data and prediction" if self.data is not None else "Prediction"
        ax = self._start(ax, (6.4, 4.2), title, grid="both")
        if self.data is not None:
            points, values = (np.asarray(part, dtype=float) for part in self.data)
            style = {**point_style(len(points)), "alpha": 0.6}
            ax.scatter(points, values, color=INK, label="data", zorder=3, **{**style, "s": min(style["s"], 18)})
        ax.plot(self.x, self.prediction, color=PALETTE[0], linewidth=2, label="prediction", zorder=4)
        if self.lower is not None and self.upper is not None:
            label = f"{100 * self.level:.4g}% of new observations"
            ax.fill_between(self.x, self.lower, self.upper, color=PALETTE[3], alpha=0.4, linewidth=0, label=label)
        if self.bound is not None:  # both sides, over the curve, and how wide it is at most
            style = {"color": PALETTE[1], "linestyle": "--", "linewidth": 1.2, "zorder": 5}
            ax.plot(self.x, self.prediction - self.bound, **style)
            label = f"certified bound: ±{np.max(self.bound):.1e}"
            ax.plot(self.x, self.prediction + self.bound, label=label, **style)
        name_axes(ax, *self.names)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False, fontsize="small")
        return self


AVERAGED = 200  # rows over which predictions are averaged
GRID_POINTS = 15  # values of a column at which they are
MOST_COLUMNS = 30  # columns that are tried


@dataclass(frozen=True, eq=False)
class Dependence:
    """What a prediction depends on: its mean over the rows while one column is set to each of some values.

    Attributes
    ----------
    name : str
        Of the column.
    x, y : ndarray of shape (m,)
        Values of the column, between its 2nd and 98th percentile, and the mean prediction there.
    seen : ndarray
        Values of the column in some rows.
    """

    name: str
    x: Array
    y: Array
    seen: Array

    @property
    def reach(self) -> float:
        """By how much the prediction changes."""
        return float(np.ptp(self.y))


def describe_dependence(model: Any, X: Any, names: Sequence[str], target: int = 0) -> list[Dependence]:
    r"""Mean predictions by column, f̄ⱼ(v) = Σᵢ f(xᵢ with xᵢⱼ = v)/n, the column that changes them most first.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Ridge
    >>> from gramian.display.ridge import describe_dependence
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = describe_dependence(Ridge(1e-6).fit(X, X @ [0.0, 2.0, 1.0]), X, ["a", "b", "c"])
    >>> [part.name for part in found], round(float(np.diff(found[0].y)[0] / np.diff(found[0].x)[0]), 3)
    (['b', 'c', 'a'], 2.0)
    """
    rows, bare = np.asarray(X, dtype=float), without_names(model)
    some = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), AVERAGED)).round().astype(int))]
    columns = np.arange(rows.shape[1])
    if len(columns) > MOST_COLUMNS:  # those that go with the prediction
        f, spread = _one_target(bare.predict(some), target), some.std(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            together = np.abs((f - f.mean()) @ (some - some.mean(axis=0)) / spread)
        columns = np.argsort(-np.nan_to_num(together), kind="stable")[:MOST_COLUMNS]
    found = []
    for j in columns.tolist():
        low, high = np.quantile(rows[:, j], [0.02, 0.98])
        values = np.unique(rows[:, j]) if len(np.unique(rows[:, j])) <= 6 else np.linspace(low, high, GRID_POINTS)
        grid = np.repeat(some[None], len(values), axis=0)
        grid[:, :, j] = values[:, None]
        f = _one_target(bare.predict(grid.reshape(-1, rows.shape[1])), target)
        found.append(Dependence(names[j], values, f.reshape(len(values), -1).mean(axis=1), some[:, j]))
    return sorted(found, key=lambda part: -part.reach)


def leave_one_out_predictions(model: Any, X: Any, y: ArrayLike) -> Array | None:
    r"""What a regression of all other rows predicts for each row, where that follows from the one fit; else None.

    .. math:: f_{-i}(x_i) = y_i - \frac{y_i - f(x_i)}{1 - h_i},\qquad h_i = \frac{s^2(x_i)}{\hat\sigma^2} - 1

    The leverage h is read off the standard deviation s of a new observation, which ridge and kernel ridge regression
    have in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Ridge
    >>> from gramian.display.ridge import leave_one_out_predictions
    >>> X, y = np.eye(4)[:, :2], np.array([1.0, 2.0, 0.0, 4.0])
    >>> found = leave_one_out_predictions(Ridge(0.5).fit(X, y), X, y)
    >>> bool(abs(found[0] - Ridge(0.5).fit(X[1:], y[1:]).predict(X[:1])[0]) < 1e-12)
    True
    """
    model, observed = without_names(check_fitted(model), X), np.asarray(y, dtype=float)
    if "return_std" not in signature(model.predict).parameters:
        return None
    if isinstance(model, KernelRidge) and (is_precomputed(model.kernel_) or model.std_method() != "exact"):
        return None
    try:
        f, std = (np.asarray(part, dtype=float) for part in model.predict(X, return_std=True))
    except ValueError:  # the fit keeps too little for a standard deviation, and says so
        return None
    with np.errstate(all="ignore"):
        left = 2.0 - std**2 / np.asarray(model.noise_variance_, dtype=float)  # 1 − h
        found = observed - (observed - f) / left
    # where a row has the fit to itself, or there is no noise, the quotient is one of rounding errors
    return found if np.isfinite(found).all() and np.min(left, initial=1.0) > 1e-6 else None


def _one_target(values: Any, target: int) -> Array:
    """Values of one target: all of a vector, a column of a table."""
    table = np.asarray(values, dtype=float)
    if table.ndim == 1:
        return table
    if not 0 <= target < table.shape[1]:
        raise ValueError(f"target must be from 0 to {table.shape[1] - 1}, got {target!r}.")
    return np.asarray(table[:, target])


RESIDUAL_KINDS = ("both", "fitted", "qq")
PIECES = 12  # groups of neighbours whose medians are joined by a line
NAMED = 3  # rows that are named


class ResidualsDisplay(Display):
    r"""Residuals y − f(x) against f(x), with the medians of neighbours; and their quantiles against normal ones.

    The line of the second picture has the mean and standard deviation of the residuals. The band holds the i-th of n
    normal values with probability ``level``, one at a time: its ends are quantiles of a Beta(i, n + 1 − i) variable.

    Parameters
    ----------
    y : array-like of shape (n,)
        What was observed.
    prediction : array-like of shape (n,)
        f(x).
    std : array-like of shape (n,), optional
        Standard deviations of the observations: residuals are divided by them.
    names : sequence of str, optional
        Of the rows: those with the largest residuals are written; their numbers, counted from 1, unless given.
    level : float, default=0.95
        Of the band.
    left_out : bool, default=False
        Whether the predictions are those of the other rows, for the titles.

    Attributes
    ----------
    residuals : ndarray of shape (n,)
        y − f(x), divided by ``std`` where given.
    labels_ : list of Labels
        Names in the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Ridge
    >>> from gramian.display import ResidualsDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(size=50)
    >>> picture = ResidualsDisplay.from_estimator(Ridge().fit(X, y), X, y)
    >>> [ax.get_title(loc="left") for ax in picture.axes_]
    ['Residuals', 'Normal quantiles']
    """

    def __init__(
        self,
        y: ArrayLike,
        prediction: ArrayLike,
        *,
        std: ArrayLike | None = None,
        names: Sequence[Any] | None = None,
        level: float = 0.95,
        left_out: bool = False,
    ) -> None:
        self.left_out = left_out
        observed, self.prediction = np.asarray(y, dtype=float), np.asarray(prediction, dtype=float)
        if observed.ndim != 1 or observed.shape != self.prediction.shape:
            raise ValueError(f"y of shape {observed.shape} and prediction of {self.prediction.shape} must be vectors.")
        check_share("level", level)
        self.standardised, self.level = std is not None, level
        with np.errstate(divide="ignore", invalid="ignore"):  # refused below, by row
            self.residuals = (observed - self.prediction) / (1.0 if std is None else np.asarray(std, dtype=float))
        wrong = np.flatnonzero(~np.isfinite(self.residuals))
        if len(wrong):
            raise ValueError(f"Row {wrong[0] + 1} has no finite residual: leave out such rows ({len(wrong)} of them).")
        usual = [str(i + 1) for i in range(len(observed))]
        self.names = as_names(usual if names is None else names, len(observed), "names", "{}")
        self.labels_: list[Labels] = []

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: ArrayLike, *, target: int = 0, ax: Axes | None = None, **options: Any
    ) -> ResidualsDisplay:
        """Draw the residuals of a fitted regression; options as of :meth:`from_predictions`.

        With ``left_out=True`` each row is predicted by the others, exactly, of a ridge or kernel ridge regression with
        unit weights. The index of a frame names the rows.
        """
        rows, model = convert_to_numpy(X), check_fitted(model)
        if options.get("left_out"):
            found = leave_one_out_predictions(model, rows, convert_to_numpy(y))
            if found is None:
                raise ValueError(f"What other rows predict does not follow from this {type(model).__name__}.")
        else:
            found = model.predict(rows)
        f, observed = _one_target(found, target), _one_target(convert_to_numpy(y), target)
        return cls.from_predictions(observed, f, ax=ax, **{"names": row_names(X), **options})

    def plot(self, ax: Axes | None = None, *, kind: str = "both") -> ResidualsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        kind : {"both", "fitted", "qq"}, default="both"
            Which pictures.

        Returns
        -------
        ResidualsDisplay
            Itself.
        """
        check_choice("kind", kind, RESIDUAL_KINDS)
        self.labels_ = []
        if kind == "both":
            left, right = self._panels(ax, 1, 2, (8.6, 3.9))
        else:
            left = right = self._start(ax, (5.0, 3.9))
        if kind != "qq":
            title, axis = (
                ("Rows left out", "prediction by the others") if self.left_out else ("Residuals", "prediction")
            )
            self._finish(left, self._draw_against_prediction(left), title, axis)
        if kind != "fitted":
            self._finish(right, self._draw_quantiles(right), "Normal quantiles", "normal quantile")
        return self

    def _draw_against_prediction(self, ax: Axes) -> Array:
        """Draw residuals with the medians of neighbours, in up to twelve groups of at least eight; return the dots."""
        points = np.column_stack([self.prediction, self.residuals])
        ax.scatter(*points.T, color=PALETTE[0], **point_style(len(points)))
        ax.axhline(0, color=INK, linewidth=1)
        pieces = min(PIECES, len(points) // 8)
        if pieces > 2:
            parts = np.array_split(points[np.argsort(points[:, 0], kind="stable")], pieces)
            trend = np.array([np.median(part, axis=0) for part in parts])
            ax.plot(*trend.T, color=PALETTE[1], linewidth=1.8, label="median of neighbours")
        return points

    def _draw_quantiles(self, ax: Axes) -> Array:
        """Draw residuals at normal quantiles, with the band of normal values; return the dots."""
        n = len(self.residuals)
        order, i = np.argsort(self.residuals, kind="stable"), np.arange(1, n + 1)
        normal = ndtri((i - 0.5) / n)
        mean, spread = float(self.residuals.mean()), float(self.residuals.std(ddof=1)) if n > 1 else 0.0
        ends = [ndtri(betaincinv(i, n + 1 - i, (1 + side * self.level) / 2)) for side in (-1, 1)]
        band: dict[str, Any] = {"color": PALETTE[3], "alpha": 0.4, "linewidth": 0}
        low, high = (mean + spread * end for end in ends)
        ax.fill_between(normal, low, high, label=f"{100 * self.level:.4g}% of normal values, each", **band)
        ax.plot(normal, mean + spread * normal, color=INK, linewidth=1)
        points = np.empty((n, 2))
        points[order] = np.column_stack([normal, self.residuals[order]])
        ax.scatter(*points.T, color=PALETTE[0], zorder=3, **point_style(n))
        return points

    def _finish(self, ax: Axes, points: Array, title: str, x_name: str) -> None:
        """Title, axes, legend, and the names of the largest residuals."""
        y_name = "residual / standard deviation" if self.standardised else "residual"
        describe_axes(ax, title, grid="both", xlabel=x_name, ylabel=y_name)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), frameon=False, fontsize="small")
        rows = np.argsort(-np.abs(self.residuals), kind="stable")[:NAMED]
        names = [self.names[i] for i in rows]
        self.labels_.append(Labels(ax, points[rows], names, avoid=points, fontsize="x-small"))
