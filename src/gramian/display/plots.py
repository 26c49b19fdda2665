"""Scree, score and reconstruction pictures on matplotlib, without pyplot's global state."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from gramian.display.galleries import ReconstructionDisplay
from gramian.display.scores import ScoreDisplay
from gramian.display.spectra import ScreeDisplay
from gramian.display.style import FittedPCA

__all__ = ["reconstruction_gallery", "score_plot", "scree"]


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
