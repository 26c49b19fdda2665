"""What chose λ and the bandwidth: errors of rows left out over both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from numpy.typing import ArrayLike, NDArray

from gramian.display._base import Display, fitted
from gramian.display._text import as_ticks, set_plain, short
from gramian.display.style import GRID, INK, MARKERS, PALETTE

__all__ = ["LeaveOneOutDisplay"]

Array = NDArray[Any]

LINES = 8  # kernels drawn as lines; more are a map of colours
WIDE = 30.0  # largest over smallest error from which the scale is logarithmic
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
        self.gammas = None if gammas is None else np.asarray(gammas, dtype=float)
        self.criterion = criterion
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
        model = fitted(model)
        if hasattr(model, "scores_") and hasattr(model, "kernels_"):
            names, gammas = _kernels(model.kernels_)
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
        if kind not in (None, *KINDS):
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
        heat = len(self.values) > LINES if kind is None else kind == "heat"
        ax = self._start(ax, (6.8, 4.4))
        if heat:
            self._map(ax)
        else:
            self._lines(ax)
        ax.set(xscale="log", xlabel="λ")
        set_plain([ax.set_title(self._title(), loc="left", fontsize="medium")], longest=80)
        return self

    def _title(self) -> str:
        i = self.best_[0]
        kernel = f", {short(self.kernels[i], 40)}" if self.kernels[i] else ""
        return f"Least at λ = {self.alphas[self.best_]:.3g}{kernel}"

    def _lines(self, ax: Axes) -> None:
        """A line for each kernel, from light to dark by γ where they have one."""
        count, lines = len(self.values), []
        for i in range(count):
            dark = 0.9 - 0.8 * i / max(count - 1, 1)
            colour = colormaps["viridis"](dark) if self.gammas is not None and count > 1 else PALETTE[i % len(PALETTE)]
            style: dict[str, Any] = {"color": colour, "marker": MARKERS[i % len(MARKERS)], "markersize": 3.5}
            lines += ax.plot(self.alphas[i], self.values[i], label=f"kernel {i}", linewidth=1.4, **style)
        ax.plot(self.alphas[self.best_], self.values[self.best_], "o", color=INK, fillstyle="none", markersize=12)
        ax.grid(color=GRID)
        low, high = np.nanmin(self.values), np.nanmax(self.values)
        if 0 < WIDE * low < high:
            ax.set_yscale("log")
        ax.set_ylabel(NAMES.get(self.criterion, self.criterion))
        if any(self.kernels):
            beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
            key = ax.legend(handles=lines, fontsize="small", **beside)
            set_plain(key.get_texts(), self.kernels, 30)

    def _map(self, ax: Axes) -> None:
        """A row of cells for each kernel, with the edges of its own λ."""
        up = self._rows()
        low, high = float(np.nanmin(self.values)), float(np.nanmax(self.values))
        norm: Normalize = LogNorm(low, high) if 0 < WIDE * low < high else Normalize(low, high)
        order = np.argsort(self.alphas, axis=1)
        shades: Any = None
        for i, (bottom, top) in enumerate(up):
            lam, values = self.alphas[i, order[i]], self.values[i, order[i]]
            cells: dict[str, Any] = {"cmap": "viridis_r", "norm": norm, "rasterized": True}
            shades = ax.pcolormesh(_edges(lam), [bottom, top], values[None, :], **cells)
        ax.figure.colorbar(shades, ax=ax, label=NAMES.get(self.criterion, self.criterion))
        i, _ = self.best_
        middle = np.sqrt(up[i][0] * up[i][1]) if self.gammas is not None else sum(up[i]) / 2
        ax.plot(self.alphas[self.best_], middle, "o", color="white", fillstyle="none", markersize=11, markeredgewidth=2)
        ax.plot(self.alphas[self.best_], middle, "x", color="white", markersize=5)
        if self.gammas is not None:
            ax.set(yscale="log", ylabel="γ (bandwidth 1/√(2γ))")
        else:
            ax.set_yticks(range(len(up)), as_ticks(self.kernels, 30))

    def _rows(self) -> list[tuple[float, float]]:
        """Lower and upper edge of the row of each kernel."""
        if self.gammas is None:
            return [(i - 0.5, i + 0.5) for i in range(len(self.values))]
        order = np.argsort(self.gammas)
        edges = _edges(self.gammas[order])
        place = {int(i): k for k, i in enumerate(order)}
        return [(float(edges[place[i]]), float(edges[place[i] + 1])) for i in range(len(self.gammas))]


def _edges(values: Array) -> Array:
    """Edges of cells around rising positive numbers, half way in their logarithms."""
    logs = np.log(values)
    if len(logs) == 1:
        return np.asarray(values[0] * np.array([0.5, 2.0]))
    middle = (logs[1:] + logs[:-1]) / 2
    ends = [2 * logs[0] - middle[0], *middle, 2 * logs[-1] - middle[-1]]
    return np.asarray(np.exp(ends))


def _kernels(kernels: Sequence[Any]) -> tuple[list[str], Array | None]:
    """Names of kernels; of one family that differs in γ alone, γ, and that as a number."""
    gammas = [getattr(kernel, "gamma", None) for kernel in kernels]
    alike = len({type(kernel) for kernel in kernels}) == 1 and len(kernels) > 1
    if alike and all(isinstance(g, (int, float, np.number)) and g > 0 for g in gammas) and len(set(gammas)) > 1:
        numbers = np.array([float(g) for g in gammas])  # type: ignore[arg-type]
        return [f"γ = {g:.3g}" for g in numbers], numbers if len(set(numbers)) == len(numbers) else None
    return [repr(kernel) for kernel in kernels], None
