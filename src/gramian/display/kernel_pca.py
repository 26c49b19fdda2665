"""Pictures of kernel PCA: a component as a field over the plane, and data next to their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from numpy.typing import ArrayLike, NDArray

from gramian.display.base import (
    AXIS,
    GRID,
    INK,
    Display,
    as_floats,
    as_names,
    check_fitted,
    name_axes,
    names_of_frame,
    set_plain,
    without_names,
)
from gramian.display.groups import appearance, groups_of, is_scale, point_style, scatter
from gramian.inputs.devices import convert_to_numpy
from gramian.sources.arrays import is_frame

Array = NDArray[Any]

STEPS = 120  # points of the grid on each side
MARGIN = 0.15  # of the data's range, drawn around them
ALIKE = 3.0  # range of one column over the other's up to which both have one scale


def _names_of(model: Any, X: Any, count: int, names: Sequence[Any] | None) -> list[str]:
    """Names of columns: those given, those of a frame, those of the fit, or x₁, x₂, x₃."""
    if names is not None:
        return as_names(names, count, "names", "{}", "columns")
    usual = getattr(model, "feature_names_in_", ("x₁", "x₂", "x₃"))
    return names_of_frame(X, count) if is_frame(X) else [str(name) for name in usual][:count]


class KernelFieldDisplay(Display):
    """One component z_j(x) as a field over the plane, its level lines, and the points it was found from.

    A level line is where the component is constant; for linear PCA these are parallel straight lines.

    Parameters
    ----------
    across, up : array-like of shape (a,) and (b,)
        Lines of the grid.
    field : array-like of shape (b, a)
        Values there.
    points : array-like of shape (n, 2), optional
        Points to draw over it.
    labels : array-like of shape (n,), optional
        Their classes.
    component : int, default=0
        Which component it is, counted from 0, for the title.
    names : sequence of two str, default=("x₁", "x₂")
        Of the axes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from gramian import KernelPCA
    >>> from gramian.display import KernelFieldDisplay
    >>> X, y = make_moons(60, noise=0.05, random_state=0)
    >>> picture = KernelFieldDisplay.from_estimator(KernelPCA(2, kernel="rbf", gamma=15).fit(X), X, labels=y)
    >>> picture.ax_.get_title(loc="left"), picture.field.shape
    ('Component 1', (120, 120))
    """

    def __init__(
        self,
        across: ArrayLike,
        up: ArrayLike,
        field: ArrayLike,
        *,
        points: ArrayLike | None = None,
        labels: Any = None,
        component: int = 0,
        names: Sequence[Any] = ("x₁", "x₂"),
    ) -> None:
        self.across, self.up = np.asarray(across, dtype=float), np.asarray(up, dtype=float)
        self.field = np.asarray(field, dtype=float)
        if self.field.shape != (len(self.up), len(self.across)):
            grid = f"{len(self.up)} by {len(self.across)}"
            raise ValueError(f"field of shape {self.field.shape} is not of {grid} points.")
        self.points, self.labels, self.component, self.names = as_floats(points), labels, component, names

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        component: int = 0,
        labels: Any = None,
        steps: int = STEPS,
        names: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> KernelFieldDisplay:
        """Draw a component of a model fitted to points of the plane.

        Parameters
        ----------
        model : KernelPCA, PCA or another with ``transform``
            Fitted to two columns.
        X : array-like of shape (n, 2)
            The points.
        component : int, default=0
            Which one, from 0.
        labels : array-like of shape (n,), optional
            Classes of the points.
        steps : int, default=120
            Points of the grid on each side.
        names : sequence of two str, optional
            Of the columns; those of a frame, or of what the model was fitted to, unless given.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        KernelFieldDisplay
            Drawn.
        """
        points, model = np.asarray(convert_to_numpy(X), dtype=float), check_fitted(model)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"A field is drawn over the plane: X must have 2 columns, got shape {points.shape}.")
        low, high = points.min(axis=0), points.max(axis=0)
        margin = MARGIN * np.where(high > low, high - low, 1.0)
        across, up = np.linspace(low - margin, high + margin, steps).T
        grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        Z = np.asarray(without_names(model).transform(grid), dtype=float)
        if not 0 <= component < Z.shape[1]:
            raise ValueError(f"component must be from 0 to {Z.shape[1] - 1}, got {component!r}.")
        field = Z[:, component].reshape(len(up), len(across))
        found = _names_of(model, X, 2, names)
        return cls(across, up, field, points=points, labels=labels, component=component, names=found).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> KernelFieldDisplay:
        """Draw, on the axes given or on a new figure."""
        across, up, field = self.across, self.up, self.field
        slope = float(np.ptp(up) / np.ptp(across))
        alike = 1 / ALIKE <= slope <= ALIKE  # minutes against metres have no common scale
        slope = slope if alike else 0.75
        size = 6.0, float(np.clip(4.4 * slope + 0.9, 2.6, 6.5))
        ax = self._start(ax, size, f"Component {self.component + 1}", aspect="equal" if alike else "auto")
        shades = ax.contourf(across, up, field, levels=24, cmap="RdBu_r", norm=CenteredNorm(), alpha=0.75)
        if np.ptp(field) > 0:
            ax.contour(across, up, field, levels=12, colors=INK, linewidths=0.5, linestyles="solid")
        if self.points is not None:
            labels = np.zeros(len(self.points), dtype=int) if self.labels is None else self.labels
            scatter(ax, self.points, labels, plain=True, edges="white")  # the colour bar has the place of a legend
        shrink = float(np.clip(1.3 * slope, 0.4, 1))
        ax.figure.colorbar(shades, ax=ax, label=f"score {self.component + 1}", shrink=shrink)
        name_axes(ax, *self.names)
        return self


class EmbeddingDisplay(Display):
    """Data of two or three columns, and beside them their first two scores; of one score, its values by class.

    Parameters
    ----------
    X : array-like of shape (n, 2 or 3)
        The points.
    scores : array-like of shape (n, k)
        What ``transform`` returned for them.
    labels : array-like of shape (n,), optional
        Classes, or a number for each point.
    names : sequence of str, optional
        Of the columns.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from gramian import KernelPCA
    >>> from gramian.display import EmbeddingDisplay
    >>> X, y = make_circles(60, factor=0.3, random_state=0)
    >>> picture = EmbeddingDisplay.from_estimator(KernelPCA(2, kernel="rbf", gamma=2).fit(X), X, labels=y)
    >>> [ax.get_title(loc="left") for ax in picture.axes_]
    ['Data', 'Scores']
    """

    def __init__(
        self, X: ArrayLike, scores: ArrayLike, *, labels: Any = None, names: Sequence[Any] | None = None
    ) -> None:
        self.points, self.scores = (np.asarray(convert_to_numpy(part), dtype=float) for part in (X, scores))
        if self.points.ndim != 2 or self.points.shape[1] not in (2, 3):
            raise ValueError(f"Data are drawn in two or three dimensions; X has shape {self.points.shape}.")
        if self.scores.ndim != 2 or len(self.scores) != len(self.points):
            raise ValueError(f"scores of shape {self.scores.shape} do not belong to {len(self.points)} rows.")
        self.labels = None if labels is None else np.asarray(labels)
        self.names = as_names(
            names if names is not None else ("x₁", "x₂", "x₃")[: self.points.shape[1]],
            self.points.shape[1],
            "names",
            "{}",
            "columns",
        )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        labels: Any = None,
        names: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> EmbeddingDisplay:
        """Draw rows next to the scores that a fitted model gives them."""
        points, model = np.asarray(convert_to_numpy(X), dtype=float), check_fitted(model)
        found = _names_of(model, X, points.shape[1], names) if points.ndim == 2 else None
        return cls.from_predictions(points, without_names(model).transform(points), labels=labels, names=found, ax=ax)

    def plot(self, ax: Axes | None = None) -> EmbeddingDisplay:
        """Draw, in the place of the axes given or on a new figure."""
        left, right = self._panels(ax, 1, 2, (10.0, 4.6))
        if self.points.shape[1] == 3:
            left = self.ax_ = self.axes_[0] = self._draw_space(left)
        else:
            scatter(left, self.points, self.labels, plain=True)  # the legend of the scores serves both
            name_axes(left, *self.names)
            across, up = np.ptp(self.points, axis=0)
            left.set_aspect("equal" if up <= ALIKE * across and across <= ALIKE * up else "auto")
        left.set_title("Data", loc="left")
        if self.scores.shape[1] == 1:  # spread a little upwards, so that points do not hide each other
            height = np.random.default_rng(0).uniform(-1, 1, len(self.scores))
            scatter(right, np.column_stack([self.scores[:, 0], height]), self.labels)
            right.set(xlabel="score 1", yticks=[], ylim=(-3, 3))
        else:
            scatter(right, self.scores[:, :2], self.labels)
            right.set(xlabel="score 1", ylabel="score 2")
            right.grid(color=GRID)
        right.set_title("Scores", loc="left")
        return self

    def _draw_space(self, flat: Axes) -> Any:
        """Points in space in the place of flat axes, coloured as the scores beside them."""
        place = flat.get_subplotspec()
        flat.remove()
        if place is None:  # axes at a place of their own, in no grid
            ax: Any = self.figure_.add_axes(flat.get_position().bounds, projection="3d")
        else:
            ax = self.figure_.add_subplot(place, projection="3d")
        style, columns = point_style(len(self.points)), self.points.T
        if self.labels is None or is_scale(self.labels):
            values = {"color": appearance(0)["color"]} if self.labels is None else {"c": self.labels, "cmap": "viridis"}
            ax.scatter(*columns, **values, **style)
        else:
            groups = groups_of(self.labels, len(self.points))
            for k in groups.present:
                ax.scatter(*(x[groups.rows(k)] for x in columns), **appearance(k), **style)
        name_axes(ax, *self.names[:2])
        ax.set_zlabel("z")
        set_plain([ax.zaxis.label], [self.names[2]], AXIS)
        ax.set_box_aspect(None, zoom=0.85)
        return ax
