"""Pictures of kernel PCA: a component as a field over the plane, data beside scores, and rows of denoised images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from gramian.display._groups import appearance, groups_of, is_scale
from gramian.display._points import point_style, scatter
from gramian.display.fields import KernelFieldDisplay
from gramian.display.galleries import draw_image
from gramian.display.style import GRID, INK, PALETTE, new_axes

__all__ = ["before_and_after", "component_field", "denoising_gallery"]


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
    >>> from gramian.display.kernel_plots import component_field
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
    >>> from gramian.display.kernel_plots import before_and_after
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
    >>> from gramian.display.kernel_plots import denoising_gallery
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
