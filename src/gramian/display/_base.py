"""What every picture class shares: scikit-learn's convention of ``plot``, ``ax_`` and ``figure_``."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.display.style import new_axes, new_panels, save_picture
from gramian.estimators._devices import in_numpy

__all__ = ["Display", "component_name", "fitted", "shares_of"]

Array = NDArray[Any]


class Display:
    """A picture of numbers that are there already: ``plot`` draws them, ``ax_`` and ``figure_`` hold the drawing.

    In a notebook a display shows itself; :meth:`save` writes a file.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes drawn on; the first of several.
    axes_ : list of matplotlib.axes.Axes
        All of them.
    figure_ : matplotlib.figure.Figure
        Their figure.
    """

    ax_: Axes
    axes_: list[Axes]
    figure_: Figure

    def plot(self, ax: Axes | None = None) -> Display:
        """Draw, on the axes given or on a new figure."""
        raise TypeError(f"{type(self).__name__} is no picture by itself: use one of the classes made from it.")

    def save(self, path: str | os.PathLike[str], *, dpi: float = 150) -> None:
        """Write the picture, as the end of the name says: .png, .pdf or .svg."""
        save_picture(self._drawn(), path, dpi=dpi)

    def _repr_png_(self) -> bytes:
        """The picture for a notebook."""
        buffer = io.BytesIO()
        self._drawn().savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()

    def _drawn(self) -> Figure:
        if not hasattr(self, "figure_"):
            self.plot()
        return self.figure_

    def _start(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """Take the axes given, or those of a new figure."""
        return self._keep([new_axes(ax, size)])

    def _panels(
        self, ax: Axes | None, rows: int, columns: int, size: tuple[float, float], **options: Any
    ) -> list[Axes]:
        """Take a grid of axes in the place of the axes given, or on a new figure."""
        self._keep(new_panels(ax, rows, columns, size, **options))
        return self.axes_

    def _keep(self, axes: list[Axes]) -> Axes:
        figure = axes[0].get_figure(root=True)
        if figure is None:
            raise ValueError("These axes belong to no figure any more: give others as ax.")
        self.axes_, self.ax_, self.figure_ = axes, axes[0], figure
        return axes[0]


def fitted(model: Any) -> Any:
    """The model, if it was fitted, with its arrays in NumPy; scikit-learn's NotFittedError otherwise."""
    if not hasattr(model, "fit"):
        return model
    check_is_fitted(model)
    return in_numpy(model)


def shares_of(model: Any) -> Array | None:
    """The share of the variance of each component, where a model knows the whole."""
    model = model if model is None else in_numpy(model)
    ratio = getattr(model, "explained_variance_ratio_", None)
    if ratio is None and hasattr(model, "total_variance_") and hasattr(model, "eigenvalues_"):
        ratio = np.asarray(model.eigenvalues_) / float(model.total_variance_)
    return None if ratio is None else np.asarray(ratio, dtype=float)


def component_name(j: int, shares: Array | None) -> str:
    """PC1 (72.9% of the variance): the name of an axis."""
    known = shares is not None and j < len(shares) and np.isfinite(shares[j])
    return f"PC{j + 1} ({shares[j]:.1%} of the variance)" if shares is not None and known else f"PC{j + 1}"
