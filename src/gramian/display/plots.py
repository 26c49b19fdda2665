"""Scree, score and reconstruction pictures on matplotlib, without pyplot's global state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, Locator, MaxNLocator, NullLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from gramian.display.style import GRID, INK, MARKERS, PALETTE, FittedPCA, new_axes

__all__ = ["reconstruction_gallery", "score_plot", "scree"]

FEW = 12  # components whose shares are printed too
CROWD = 20_000  # points beyond which their density is drawn instead


def scree(pca: FittedPCA, ax: Axes | None = None) -> Axes:
    """Draw the share of variance of each component, λⱼ / Σλ, and their running sum.

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
    ax = new_axes(ax, (6.4, 4.0))
    ratio = np.asarray(pca.explained_variance_ratio_, dtype=float)
    index, total = np.arange(1, ratio.size + 1), np.cumsum(ratio)
    ax.bar(index, ratio, width=0.72, color=PALETTE[0], label="each component")
    ax.plot(index, total, color=PALETTE[1], marker="o", markersize=_dot(ratio.size), label="running sum")
    if ratio.size <= FEW:
        _annotate_shares(ax, ratio, total)
    ax.set(xlabel="component", ylabel="share of variance")
    ax.set_title("Variance explained", loc="left")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=2, frameon=False)
    _share_axes(ax, ratio.size, float(total[-1]))
    return ax


def score_plot(
    scores: ArrayLike,
    pca: FittedPCA,
    labels: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each row at its first two scores, zⱼ = (x − x̄)ᵀvⱼ, with equal scales on both axes.

    A single component is drawn as a histogram, and more than 20,000 rows without labels as their density.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
        What ``pca.transform`` returned.
    pca : PCA
        The fitted PCA, for the share of variance on each axis.
    labels : array-like of shape (n_samples,), optional
        Up to ten classes get a colour and a marker each, further numbers a colour scale, and of further names
        the nine most frequent are told apart.
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
    ax = new_axes(ax, (6.4, 5.2))
    Z = np.asarray(scores, dtype=float)
    ax.set_title("Scores", loc="left")
    ax.set_xlabel(_axis_name(pca, 0))
    ax.grid(color=GRID)
    if Z.shape[1] == 1:
        ax.hist(Z[:, 0], bins="auto" if Z.shape[0] > 1 else 1, color=PALETTE[0], edgecolor="white")
        ax.set_ylabel("rows")
        return ax
    ax.set_ylabel(_axis_name(pca, 1))
    _scatter(ax, Z, None if labels is None else np.asarray(labels))
    ax.set_aspect("equal", adjustable="datalim")
    return ax


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
    images = np.atleast_2d(np.asarray(X, dtype=float))
    if image_shape[0] * image_shape[1] != images.shape[1]:
        raise ValueError(f"image_shape {image_shape} does not hold the {images.shape[1]} values of a row")
    counts = _default_counts(len(pca.components_)) if counts is None else counts
    columns = [images, *(_reconstruct(pca, images, k) for k in counts)]
    titles = ["original", *(f"k = {k}" for k in counts)]
    figure = Figure(figsize=(1.15 * len(columns) + 0.2, 1.15 * len(images) + 0.7), layout="constrained")
    grid = figure.subplots(len(images), len(columns), squeeze=False)
    for j, (title, column) in enumerate(zip(titles, columns, strict=True)):
        grid[0, j].set_title(title, color=INK)
        for i, image in enumerate(column):
            _draw_image(grid[i, j], image.reshape(image_shape), images[i])
        if j:
            grid[-1, j].set_xlabel(f"{_lost(pca, images, column):.1%} lost", color=INK)
    return figure


def _share_axes(ax: Axes, count: int, total: float) -> None:
    # The whole is shown where most of it is there; a few of very many components would vanish on that scale.
    top = 1.0 if total > 0.5 or total == 0 else total
    margin = max(0.6, 2.1 - count / 2)
    ax.set(xlim=(1 - margin, count + margin), ylim=(0, 1.12 * top))
    ticks: Locator = FixedLocator(range(1, count + 1)) if count <= FEW else MaxNLocator(integer=True, min_n_ticks=1)
    ax.xaxis.set_major_locator(ticks)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.grid(axis="y", color=GRID)


def _dot(count: int) -> float:
    return 5.0 if count <= 40 else 0.0


def _annotate_shares(ax: Axes, ratio: NDArray[Any], total: NDArray[Any]) -> None:
    # The running sum starts on top of the first bar, where one number says both.
    sums = [(j, height, (-9, 7)) for j, height in enumerate(total, start=1)]
    bars = [(j, share, (0, 3)) for j, share in enumerate(ratio, start=1) if j > 1]
    for j, height, shift in sums + bars:
        text = ax.annotate(f"{height:.1%}", (j, height), shift, textcoords="offset points", ha="center")
        text.set(color=INK, fontsize="small", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})


def _axis_name(pca: FittedPCA, j: int) -> str:
    return f"PC{j + 1} ({pca.explained_variance_ratio_[j]:.1%} of the variance)"


def _scatter(ax: Axes, Z: NDArray[Any], labels: NDArray[Any] | None) -> None:
    style = _point_style(len(Z))
    if labels is None and len(Z) > CROWD:
        cells = ax.hexbin(Z[:, 0], Z[:, 1], gridsize=90, bins="log", mincnt=1, cmap="viridis", linewidths=0.1)
        ax.figure.colorbar(cells, ax=ax, label="rows")
    elif labels is None:
        ax.scatter(Z[:, 0], Z[:, 1], color=PALETTE[0], **style)
    elif labels.dtype.kind in "fiu" and np.unique(labels).size > len(PALETTE):
        points = ax.scatter(Z[:, 0], Z[:, 1], c=labels, cmap="viridis", **style)
        ax.figure.colorbar(points, ax=ax, label="label")
    else:
        _scatter_classes(ax, Z, labels, style)


def _point_style(rows: int) -> dict[str, Any]:
    many = rows > 5000  # then drawn as pixels, which keeps vector files small
    size = float(np.clip(20000 / rows, 2, 26))
    return {"s": size, "alpha": 0.4 if many else 0.8, "linewidths": 0, "rasterized": many}


def _scatter_classes(ax: Axes, Z: NDArray[Any], labels: NDArray[Any], style: dict[str, Any]) -> None:
    names, codes = _classes(labels)
    for code, name in enumerate(names):
        rows = codes == code
        ax.scatter(Z[rows, 0], Z[rows, 1], color=PALETTE[code], marker=MARKERS[code], label=name, **style)
    legend = ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set(sizes=[30], alpha=1)


def _classes(labels: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    """Names and codes of at most ten classes; the rarest are put together as "other"."""
    names, codes, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    if names.size <= len(PALETTE):
        return names.tolist(), codes
    kept = np.sort(np.argsort(-counts, kind="stable")[: len(PALETTE) - 1])
    recode = np.full(names.size, kept.size)
    recode[kept] = np.arange(kept.size)
    return [*names[kept].tolist(), "other"], recode[codes]


def _default_counts(most: int) -> list[int]:
    return sorted({max(1, most >> shift) for shift in range(4)})


def _reconstruct(pca: FittedPCA, X: NDArray[Any], k: int) -> NDArray[Any]:
    scale = _scale(pca)
    V = np.asarray(pca.components_[:k])
    approximation: NDArray[Any] = ((X - pca.mean_) / scale) @ V.T @ V * scale + pca.mean_
    return approximation


def _scale(pca: FittedPCA) -> NDArray[Any]:
    scale = getattr(pca, "scale_", None)
    # A constant column has scale zero and is already its mean.
    return np.ones_like(pca.mean_) if scale is None else np.where(np.asarray(scale) == 0, 1.0, scale)


def _lost(pca: FittedPCA, X: NDArray[Any], approximation: NDArray[Any]) -> float:
    total = float(np.sum((X - pca.mean_) ** 2))
    return float(np.sum((X - approximation) ** 2)) / total if total else 0.0


def _draw_image(ax: Axes, image: NDArray[Any], original: NDArray[Any]) -> None:
    # Each reconstruction is shown on its original's grey scale, so that lost contrast is seen as lost.
    ax.imshow(image, cmap="gray_r", vmin=float(original.min()), vmax=float(original.max()))
    ax.xaxis.set_major_locator(NullLocator())
    ax.yaxis.set_major_locator(NullLocator())
    ax.spines[:].set_color(GRID)
