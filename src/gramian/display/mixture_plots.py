"""Pictures of Gaussian mixtures: densities with their components, counts with fitted curves, choices, uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from gramian.display._mixture_shapes import checked_rows, column_name, legend_below, look, shown_columns
from gramian.display._text import name_axes
from gramian.display.mixture_choices import MixtureChoiceDisplay
from gramian.display.mixtures import BinnedMixtureDisplay, MixtureDisplay
from gramian.display.style import new_axes

__all__ = ["plot_binned_mixture", "plot_mixture", "plot_mixture_choice", "plot_uncertainty"]

KEY = 30.0  # size of a point in a legend, whatever those drawn


def plot_mixture(
    model: Any, X: ArrayLike | None = None, *, columns: Sequence[int | str] | None = None, ax: Axes | None = None
) -> Axes:
    r"""Draw the density of a mixture: in one column with its components π_kN_k, in two as level lines and ellipses.

    Parameters
    ----------
    model : GaussianMixture
        Fitted.
    X : array-like of shape (n, d), optional
        Rows: drawn as a histogram, or as points coloured by component.
    columns : sequence of one or two int or str, optional
        Which columns, by number or name, whose marginal distribution is drawn; the first two unless given.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.mixture_plots import plot_mixture
    >>> from gramian import GaussianMixture
    >>> x = np.concatenate([np.linspace(-1, 1, 30), np.linspace(4, 8, 30)])[:, None]
    >>> ax = plot_mixture(GaussianMixture(2).fit(x), x)
    >>> sum(line.get_label().startswith("component") for line in ax.get_lines())
    2
    """
    return MixtureDisplay.from_estimator(model, X, columns=columns, ax=ax).ax_


def plot_binned_mixture(model: Any, edges: ArrayLike, counts: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw counts in bins with the fitted components and their sum, on the scale of the counts.

    Bins that are open on one side are drawn as wide as the median one, and paler.

    Parameters
    ----------
    model : GaussianMixture
        Fitted to these counts, or to rows of one column.
    edges, counts : array-like of shape (m + 1,) and (m,)
        The bins; bars of unequal bins are counts per median width.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.mixture_plots import plot_binned_mixture
    >>> from gramian import GaussianMixture
    >>> edges, counts = [-np.inf, -1.0, 0.0, 1.0, np.inf], [16, 34, 34, 16]
    >>> ax = plot_binned_mixture(GaussianMixture().fit_binned(edges, counts), edges, counts)
    >>> len(ax.patches)
    4
    """
    return BinnedMixtureDisplay.from_estimator(model, edges, counts, ax=ax).ax_


def plot_mixture_choice(choice: Any, criterion: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a criterion over the numbers of components, one line for each covariance model; the lowest is marked.

    Parameters
    ----------
    choice : MixtureChoice
        What :func:`gramian.analysis.mixtures.select_mixture` returned.
    criterion : {"bic", "aic", "icl"}, optional
        Which; the one it chose by unless given.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    return MixtureChoiceDisplay.from_estimator(choice, criterion, ax=ax).ax_


def plot_uncertainty(
    model: Any, X: ArrayLike, *, columns: Sequence[int | str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how uncertain the component of each row is: 1 − max_k P(k|x), as the size of its point.

    Parameters
    ----------
    model : GaussianMixture
        Fitted.
    X : array-like of shape (n, d)
        Rows.
    columns : sequence of one or two int or str, optional
        Which columns to draw, by number or name; the first two unless given. Uncertainty is that of the whole rows.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.mixture_plots import plot_uncertainty
    >>> from gramian import GaussianMixture
    >>> x = np.concatenate([np.linspace(-1, 1, 30), np.linspace(4, 8, 30)])[:, None]
    >>> plot_uncertainty(GaussianMixture(2).fit(x), x).get_ylabel()
    '1 − max P(k|x)'
    """
    shown = shown_columns(model, columns)
    rows = checked_rows(X, model.means_.shape[1])
    shares = model.mixture_.responsibilities(rows)
    labels, doubt = np.argmax(shares, axis=1), 1.0 - shares.max(axis=1)
    ax = new_axes(ax, (6.4, 4.6))
    for k in range(shares.shape[1]):
        mine = labels == k
        x = rows[mine, shown[0]]
        y = doubt[mine] if len(shown) == 1 else rows[mine, shown[1]]
        size = 8.0 if len(shown) == 1 else 4.0 + 160.0 * doubt[mine]
        ax.scatter(x, y, s=size, alpha=0.7, linewidths=0, label=f"component {k}", **look(k))
    up = "1 − max P(k|x)" if len(shown) == 1 else column_name(model, shown[1])
    name_axes(ax, column_name(model, shown[0]), up)
    ax.set_title(f"Uncertain rows: {np.count_nonzero(doubt > 0.1)} of {len(rows)} by more than 0.1", loc="left")
    for handle in legend_below(ax).legend_handles:
        handle.set_sizes([KEY])  # type: ignore[union-attr]
    return ax
