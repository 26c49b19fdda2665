"""Criteria of mixtures over the numbers of components, for each covariance model."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from gramian.display._base import Display
from gramian.display._groups import appearance
from gramian.display.style import GRID, INK, PALETTE

__all__ = ["MixtureChoiceDisplay"]

Array = NDArray[Any]

CRITERIA = ("bic", "aic", "icl")
STYLES = ("-", "--", ":", "-.")


class MixtureChoiceDisplay(Display):
    """BIC, AIC or ICL over the numbers of components, one line for each covariance model; the lowest is marked.

    Fits that are not eligible (a collapsed or empty component) leave a gap. The frame follows the contest at the
    bottom; values far above are arrows at its upper edge.

    Parameters
    ----------
    choice : MixtureChoice
        What :func:`gramian.analysis.mixtures.select_mixture` returned.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.analysis.mixtures import select_mixture
    >>> from gramian.display import MixtureChoiceDisplay
    >>> x = np.concatenate([np.linspace(-1, 1, 30), np.linspace(4, 8, 30)])[:, None]
    >>> choice = select_mixture(GaussianMixture(), x, n_components=(1, 2), covariance_types=("E", "V"))
    >>> MixtureChoiceDisplay(choice).plot().ax_.get_ylabel()
    'BIC (lower is better)'
    """

    def __init__(self, choice: Any) -> None:
        self.choice = choice

    @classmethod
    def from_estimator(
        cls, choice: Any, criterion: str | None = None, *, ax: Axes | None = None
    ) -> MixtureChoiceDisplay:
        """Draw a choice between fitted mixtures."""
        return cls(choice).plot(ax=ax, criterion=criterion)

    def plot(self, ax: Axes | None = None, *, criterion: str | None = None) -> MixtureChoiceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default a new figure.
        criterion : {"bic", "aic", "icl"}, optional
            Which; the one it chose by unless given.

        Returns
        -------
        MixtureChoiceDisplay
            Itself.
        """
        choice = self.choice
        name = choice.criterion if criterion is None else criterion
        name = "bic" if name == "lrt" else name
        if name not in CRITERIA:
            raise ValueError(f"There is no criterion {name!r} to draw. Use one of {', '.join(CRITERIA)}.")
        values = np.where(choice.eligible, np.asarray(getattr(choice, name), dtype=float), np.nan)
        if np.isnan(values).all():
            raise ValueError("No fit is eligible: there is nothing to draw. See choice.table() for the reasons.")
        ax = self._start(ax, (7.2, 4.6))
        ax.grid(color=GRID)
        for j, model in enumerate(choice.covariance_types):
            style: dict[str, Any] = {**appearance(j), "markersize": 4, "linewidth": 1.2}
            ax.plot(choice.n_components, values[:, j], linestyle=STYLES[j // len(PALETTE) % 4], label=model, **style)
        self._best(ax, values)
        _frame(ax, np.asarray(choice.n_components), values)
        ax.set(xlabel="components", ylabel=f"{name.upper()} (lower is better)", xticks=choice.n_components)
        ax.set_title(f"{name.upper()} by components and covariance model", loc="left")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
        return self

    def _best(self, ax: Axes, values: Array) -> None:
        row, column = (int(at) for at in np.unravel_index(np.nanargmin(values), values.shape))
        best = f"{self.choice.covariance_types[column]}, {self.choice.n_components[row]}"
        style: dict[str, Any] = {"markersize": 13, "fillstyle": "none", "color": INK, "linestyle": ""}
        place = self.choice.n_components[row], values[row, column]
        ax.plot(*place, marker="o", label=f"best: {best}", **style)


def _frame(ax: Axes, sizes: Array, values: Array) -> None:
    """A frame for the contest, which is at the bottom; values far above it are arrows at its upper edge."""
    low, typical = float(np.nanmin(values)), float(np.nanmedian(values))
    reach = typical - low or 1.0
    top = min(float(np.nanmax(values)) + 0.05 * reach, low + 3 * reach)
    ax.set_ylim(low - 0.1 * reach, top)
    above = np.flatnonzero((values > top).any(axis=1))
    if len(above):
        number = int(np.count_nonzero(values > top))
        at = np.full(len(above), top - 0.03 * (top - low))
        ax.plot(sizes[above], at, "^", color=INK, markersize=6, label=f"above the frame: {number}")
