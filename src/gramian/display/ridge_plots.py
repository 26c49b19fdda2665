"""What λ does, in one picture: the path of a ridge or kernel ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from gramian.display.paths import RidgePathDisplay

__all__ = ["plot_ridge_path"]


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
    options: dict[str, Any] = {"target": target, "names": names, "coefficients": coefficients}
    return RidgePathDisplay.from_estimator(model, criterion=criterion, **options).figure_
