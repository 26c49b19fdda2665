"""Images beside what models made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike, NDArray

from gramian.analysis._cards import ground
from gramian.display._base import Display, fitted
from gramian.display._text import set_plain
from gramian.display.style import GRID, INK

__all__ = ["ReconstructionDisplay", "draw_image", "reconstructed", "usual_counts"]

Array = NDArray[Any]


class ReconstructionDisplay(Display):
    """Images, and what is left of them: a line for each image, a column for each reconstruction.

    All are on the grey scale of the original, so that lost contrast is seen as lost. Below each column is the share of
    the squared deviation from the mean image that was lost, ‖X − X̂‖²/‖X − x̄‖².

    Parameters
    ----------
    images : array-like of shape (m, p)
        The originals, one row each.
    reconstructions : mapping of str to array-like of shape (m, p)
        A name for each column, and its images.
    image_shape : tuple of int
        Height and width, whose product is p.
    mean : array-like of shape (p,), optional
        The mean image; that of ``images`` unless given.

    Attributes
    ----------
    lost_ : dict of str to float
        What the columns say.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import PCA
    >>> from gramian.display import ReconstructionDisplay
    >>> X = load_digits().data
    >>> picture = ReconstructionDisplay.from_estimator(PCA(32).fit(X), X[:3], image_shape=(8, 8), counts=[4, 32])
    >>> {name: round(lost, 2) for name, lost in picture.lost_.items()}
    {'k = 4': 0.49, 'k = 32': 0.03}
    """

    def __init__(
        self,
        images: ArrayLike,
        reconstructions: Mapping[str, ArrayLike],
        *,
        image_shape: tuple[int, int],
        mean: ArrayLike | None = None,
    ) -> None:
        self.images, self.image_shape = np.atleast_2d(np.asarray(images, dtype=float)), tuple(image_shape)
        if int(np.prod(image_shape)) != self.images.shape[1]:
            raise ValueError(f"image_shape {image_shape} does not hold the {self.images.shape[1]} values of a row")
        self.reconstructions = {str(name): np.asarray(X, dtype=float) for name, X in reconstructions.items()}
        for name, X in self.reconstructions.items():
            if X.shape != self.images.shape:
                raise ValueError(f"Reconstruction {name!r} has shape {X.shape}, and the images {self.images.shape}.")
        centre = self.images.mean(axis=0) if mean is None else np.asarray(mean, dtype=float)
        total = float(np.sum((self.images - centre) ** 2))
        parts = {name: float(np.sum((self.images - X) ** 2)) for name, X in self.reconstructions.items()}
        self.lost_ = {name: part / total if total else 0.0 for name, part in parts.items()}

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        *,
        image_shape: tuple[int, int],
        counts: Sequence[int] | None = None,
        ax: Axes | None = None,
    ) -> ReconstructionDisplay:
        """Draw images with the first k components of a fitted PCA, for several k."""
        images, model = np.atleast_2d(np.asarray(ground(X), dtype=float)), fitted(model)
        ks = usual_counts(len(model.components_)) if counts is None else counts
        parts = {f"k = {k}": reconstructed(model, images, k) for k in ks}
        return cls.from_predictions(images, parts, image_shape=image_shape, mean=model.mean_, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        images: ArrayLike,
        reconstructions: Mapping[str, ArrayLike],
        *,
        image_shape: tuple[int, int],
        mean: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> ReconstructionDisplay:
        """Draw images beside reconstructions by any method, as pre-images of kernel PCA."""
        return cls(images, reconstructions, image_shape=image_shape, mean=mean).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> ReconstructionDisplay:
        """Draw, in the place of the axes given or on a new figure."""
        columns = {"original": self.images, **self.reconstructions}
        m, count = len(self.images), len(columns)
        axes = self._panels(ax, m, count, (1.15 * count + 0.2, 1.15 * m + 0.7))
        for j, (name, column) in enumerate(columns.items()):
            axes[j].set_title(name, color=INK, fontsize="medium")
            set_plain([axes[j].title])
            for i, image in enumerate(column):
                draw_image(axes[i * count + j], image.reshape(self.image_shape), self.images[i])
            if j:
                axes[(m - 1) * count + j].set_xlabel(f"{self.lost_[name]:.1%} lost", color=INK, fontsize="small")
        return self


def usual_counts(most: int) -> list[int]:
    """Four numbers of components, doubling up to all of them."""
    return sorted({max(1, most >> shift) for shift in range(4)})


def reconstructed(pca: Any, X: Array, k: int) -> Array:
    """x̄ + Σⱼ₌₁ᵏ zⱼvⱼ, scaled back where the model scales."""
    scale = getattr(pca, "scale_", None)
    # A constant column has scale zero and is already its mean.
    s = np.ones_like(pca.mean_) if scale is None else np.where(np.asarray(scale) == 0, 1.0, scale)
    V = np.asarray(pca.components_[:k])
    return np.asarray(((X - pca.mean_) / s) @ V.T @ V * s + pca.mean_)


def draw_image(ax: Axes, image: Array, original: Array) -> None:
    """One image on the grey scale of another."""
    ax.imshow(image, cmap="gray_r", vmin=float(original.min()), vmax=float(original.max()))
    ax.xaxis.set_major_locator(NullLocator())
    ax.yaxis.set_major_locator(NullLocator())
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(GRID)
