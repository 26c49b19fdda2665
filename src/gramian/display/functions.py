"""Pictures of Gaussian mixtures: densities with their components, counts with fitted curves, choices, uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from gramian.display.base import GRID, INK, PALETTE, FittedPCA, name_axes, new_axes
from gramian.display.groups import appearance, groups_of, is_scale, point_style, scatter
from gramian.display.kernel_pca import KernelFieldDisplay
from gramian.display.mixture import (
    BinnedMixtureDisplay,
    MixtureChoiceDisplay,
    MixtureDisplay,
    checked_rows,
    column_name,
    legend_below,
    look,
    shown_columns,
)
from gramian.display.pca import ReconstructionDisplay, ScoreDisplay, ScreeDisplay, draw_image
from gramian.display.ridge import PredictionBandDisplay, RidgePathDisplay

__all__ = [
    "before_and_after",
    "component_field",
    "denoising_gallery",
    "plot_binned_mixture",
    "plot_mixture",
    "plot_mixture_choice",
    "plot_ridge_fit",
    "plot_ridge_path",
    "plot_uncertainty",
    "reconstruction_gallery",
    "score_plot",
    "scree",
]


def scree(pca: FittedPCA, ax: Axes | None = None) -> Axes:
    """Draw the share of variance of each component, λⱼ / Σλ, and their running sum; see :class:`ScreeDisplay`.

    Parameters
    ----------
    pca : PCA
        A fitted PCA.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.display import scree
    >>> ax = scree(PCA().fit(np.diag([3.0, 2.0, 1.0])))
    >>> ax.get_ylabel()
    'share of variance'
    """
    return ScreeDisplay.from_estimator(pca, ax=ax).ax_


def score_plot(
    scores: ArrayLike,
    pca: FittedPCA,
    labels: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each row at its first two scores, zⱼ = (x − x̄)ᵀvⱼ, with equal scales on both axes.

    A single component is drawn as a histogram, or by class; more than 20,000 rows without labels are drawn as their
    density.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
        What ``pca.transform`` returned.
    pca : PCA
        The fitted PCA, for the share of variance on each axis.
    labels : array-like of shape (n_samples,), optional
        Up to 40 classes get a pair of colour and marker each; more than ten different numbers a colour scale.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.display import score_plot
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> pca = PCA().fit(X)
    >>> ax = score_plot(pca.transform(X), pca, labels=["a", "b", "b"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    return ScoreDisplay.from_predictions(scores, model=pca, labels=labels, ax=ax).ax_


def reconstruction_gallery(
    pca: FittedPCA,
    X: ArrayLike,
    *,
    image_shape: tuple[int, int],
    counts: Sequence[int] | None = None,
) -> Figure:
    """Draw images beside what is left of them with few components, x̂ = x̄ + Σⱼ₌₁ᵏ zⱼvⱼ.

    Parameters
    ----------
    pca : PCA
        A fitted PCA.
    X : array-like of shape (n_images, n_features)
        The images, one row each.
    image_shape : tuple of int
        Height and width, whose product is ``n_features``.
    counts : sequence of int, optional
        The numbers of components k, a column each; by default four, doubling down from all of them.

    Returns
    -------
    matplotlib.figure.Figure
        A row for each image, the original first; under each column the share of the squared deviation from
        the mean image that was lost, ‖X − X̂‖² / ‖X − x̄‖².

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.display import reconstruction_gallery
    >>> X = np.arange(12.0).reshape(3, 4) ** 2
    >>> figure = reconstruction_gallery(PCA().fit(X), X, image_shape=(2, 2), counts=[1, 2])
    >>> [ax.get_title() for ax in figure.axes[:3]]
    ['original', 'k = 1', 'k = 2']
    """
    return ReconstructionDisplay.from_estimator(pca, X, image_shape=image_shape, counts=counts).figure_


class Scoring(Protocol):
    """What these pictures read from a fitted kernel PCA."""

    def transform(self, X: Any, /) -> Any:
        """Scores of rows."""


def component_field(
    model: Scoring,
    X: ArrayLike,
    component: int = 0,
    labels: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one component z_j(x) as a field over the plane, its level lines, and the points it was found from.

    A level line is where the component is constant; for linear PCA these are parallel straight lines.

    Parameters
    ----------
    model : KernelPCA
        Fitted to points of the plane.
    X : array-like of shape (n_samples, 2)
        The points.
    component : int, default=0
        Which one, from 0.
    labels : array-like of shape (n_samples,), optional
        Classes of the points.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.display.functions import component_field
    >>> X = np.array([[0.0, 0.0], [2.0, 1.0], [4.0, 2.5]])
    >>> component_field(PCA(n_components=1).fit(X), X).get_title(loc="left")
    'Component 1'
    """
    return KernelFieldDisplay.from_estimator(model, X, component=component, labels=labels, ax=ax).ax_


def before_and_after(X: ArrayLike, scores: ArrayLike, labels: ArrayLike | None = None, title: str = "") -> Figure:
    """Draw data of two or three columns beside their first two scores; of one score, its values by class.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2 or 3)
        The points.
    scores : array-like of shape (n_samples, n_components)
        What ``transform`` returned for them.
    labels : array-like of shape (n_samples,), optional
        Classes, or a number for each point.
    title : str, optional
        Over both.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.functions import before_and_after
    >>> X = np.random.default_rng(0).normal(size=(9, 3))
    >>> [ax.get_title(loc="left") for ax in before_and_after(X, X[:, :2]).axes]
    ['Data', 'Scores']
    """
    points, Z = np.asarray(X, dtype=float), np.asarray(scores, dtype=float)
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise ValueError(f"Data are drawn in two or three dimensions: X must have as many columns, got {points.shape}.")
    if Z.ndim != 2 or len(Z) != len(points):
        raise ValueError(f"scores of shape {Z.shape} do not belong to {len(points)} rows.")
    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    kinds = None if labels is None else np.asarray(labels)
    if points.shape[1] == 3:
        left: Any = figure.add_subplot(1, 2, 1, projection="3d")
        _scatter_space(left, points, kinds)
    else:
        left = new_axes(figure.add_subplot(1, 2, 1), (5.0, 4.6))
        scatter(left, points, kinds, plain=True)  # the legend of the scores serves both
        left.set(xlabel="x₁", ylabel="x₂", aspect="equal")
    left.set_title("Data", loc="left")
    _draw_scores(new_axes(figure.add_subplot(1, 2, 2), (5.0, 4.6)), Z, kinds)
    return figure


def denoising_gallery(
    rows: Mapping[str, ArrayLike], *, image_shape: tuple[int, int], original: str | None = None
) -> Figure:
    """Draw rows of the same images: as they were, with noise, and as each method gave them back.

    Parameters
    ----------
    rows : mapping of str to array-like of shape (n_images, n_features)
        A name for each row, and its images.
    image_shape : tuple of int
        Height and width, whose product is ``n_features``.
    original : str, optional
        Which row is the truth: the others get their mean squared error from it. The first, where not given.

    Returns
    -------
    matplotlib.figure.Figure
        A row for each entry, all on the grey scale of the truth.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.functions import denoising_gallery
    >>> clean = np.eye(4)
    >>> figure = denoising_gallery({"original": clean, "noisy": clean + 0.5}, image_shape=(2, 2))
    >>> figure.axes[4].get_ylabel().split()
    ['noisy', '0.25']
    """
    if not rows:
        raise ValueError("There is no row to draw.")
    images = {name: np.asarray(values, dtype=float) for name, values in rows.items()}
    truth = next(iter(images)) if original is None else original
    if truth not in images:
        raise ValueError(f"original={original!r} is none of the rows: {', '.join(images)}.")
    shape = (len(images[truth]), int(np.prod(image_shape)))
    for name, values in images.items():
        if values.shape != shape:
            raise ValueError(
                f"Row {name!r} has shape {values.shape}; {shape} is what {truth!r} and image_shape ask for."
            )
    figure = Figure(figsize=(1.7 + 0.7 * shape[0], 0.75 * len(images)), layout="constrained")
    panels = figure.subplots(len(images), shape[0], squeeze=False)
    for line, (name, values) in zip(panels, images.items(), strict=True):
        for ax, image in zip(line, values, strict=True):
            draw_image(ax, image.reshape(image_shape), images[truth])
        error = "" if name == truth else f"\n{np.mean((values - images[truth]) ** 2):.3g}"
        line[0].set_ylabel(name + error, rotation=0, ha="right", va="center", color=INK)
    return figure


def _draw_scores(ax: Axes, Z: NDArray[Any], labels: NDArray[Any] | None) -> None:
    if Z.shape[1] == 1:
        # one score: spread a little upwards, so that points do not hide each other
        height = np.random.default_rng(0).uniform(-1, 1, len(Z))
        scatter(ax, np.column_stack([Z[:, 0], height]), labels)
        ax.set(xlabel="score 1", yticks=[], ylim=(-3, 3))
    else:
        scatter(ax, Z[:, :2], labels)
        ax.set(xlabel="score 1", ylabel="score 2")
        ax.grid(color=GRID)
    ax.set_title("Scores", loc="left")


def _scatter_space(ax: Any, X: NDArray[Any], labels: NDArray[Any] | None) -> None:
    """Points in space, coloured as the scores beside them."""
    style = point_style(len(X))
    columns = X[:, 0], X[:, 1], X[:, 2]
    if labels is None:
        ax.scatter(*columns, color=PALETTE[0], **style)
    elif is_scale(labels):
        ax.scatter(*columns, c=labels, cmap="viridis", **style)
    else:
        groups = groups_of(labels, len(X))
        for k in groups.present:
            ax.scatter(*(x[groups.rows(k)] for x in columns), **appearance(k), **style)
    ax.set(xlabel="x₁", ylabel="x₂", zlabel="x₃")
    ax.set_box_aspect(None, zoom=0.85)


def plot_ridge_fit(
    model: Any,
    x: ArrayLike,
    y: ArrayLike,
    *,
    level: float = 0.95,
    bound: bool = False,
    target: int = 0,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw a regression on one variable: the data, the curve f(x), and the band a new observation falls in.

    The short form of :meth:`PredictionBandDisplay.from_estimator`.

    Parameters
    ----------
    model : Ridge, KernelRidge or another regression fitted to one column
        The band is drawn where it has ``predict_interval``, or predicts with ``return_std``.
    x : array-like of shape (n,) or (n, 1)
        Where the data are.
    y : array-like of shape (n,) or (n, t)
        The data.
    level : float, default=0.95
        Share of new observations in the band.
    bound : bool, default=False
        Also draw the certified bound on the distance from the exact solution, of a model that predicts with
        ``return_bound``; its largest value is in the legend, as it may be thinner than the line.
    target : int, default=0
        Which target, where there are several.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, reached as ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.functions import plot_ridge_fit
    >>> from gramian.kernel_ridge.estimator import KernelRidge
    >>> x = np.linspace(0, 6, 30)
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x[:, None], np.sin(x))
    >>> [text.get_text() for text in plot_ridge_fit(model, x, np.sin(x)).get_legend().get_texts()]
    ['data', 'prediction', '95% of new observations']
    """
    options: dict[str, Any] = {"level": level, "bound": bound, "target": target}
    return PredictionBandDisplay.from_estimator(model, x, y, ax=ax, **options).ax_


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
    >>> from gramian.display.functions import plot_ridge_path
    >>> from gramian.ridge.estimator import RidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 3))
    >>> model = RidgeCV(alphas=np.geomspace(0.01, 100, 20)).fit(X, X[:, 0] + rng.normal(size=30))
    >>> [ax.get_title(loc="left") for ax in plot_ridge_path(model).axes[:3]]
    ['Coefficients', 'Kept of each direction', 'What chooses λ']
    """
    options: dict[str, Any] = {"target": target, "names": names, "coefficients": coefficients}
    return RidgePathDisplay.from_estimator(model, criterion=criterion, **options).figure_


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
    >>> from gramian.display.functions import plot_mixture
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
    >>> from gramian.display.functions import plot_binned_mixture
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
        What :func:`gramian.mixture.choose.select_mixture` returned.
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
    >>> from gramian.display.functions import plot_uncertainty
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
