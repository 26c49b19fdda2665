"""Pictures of Gaussian mixtures: densities, counts in bins, uncertain rows, and criteria that choose a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.display.base import INK, PALETTE, Display, as_names, check_fitted, name_axes, names_of_columns
from gramian.display.groups import appearance, point_style
from gramian.inputs.devices import convert_to_numpy

Array = NDArray[Any]

STEPS = 400  # points of a curve
KEY = 30.0  # size of a point in a legend, whatever those drawn
REACH = 3.5  # standard deviations drawn beyond the outermost components


def _span(mixture: Any, j: int) -> tuple[float, float]:
    """How far components reach in a column."""
    centres, deviations = mixture.means[:, j], np.sqrt(mixture.matrices[:, j, j])
    return float(np.min(centres - REACH * deviations)), float(np.max(centres + REACH * deviations))


def _curve_points(mixture: Any, low: float, high: float) -> Array:
    """Points from low to high, and closer ones around narrow components."""
    deviations = np.sqrt(mixture.matrices[:, 0, 0])
    near = mixture.means[:, :1] + deviations[:, None] * np.linspace(-REACH, REACH, 61)
    line = np.concatenate([np.linspace(low, high, STEPS), near.ravel()])
    return np.unique(line[(line >= low) & (line <= high)])


def _legend_below(ax: Axes) -> Legend:
    return ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False, fontsize="small")


def _as_rows(X: ArrayLike, d: int) -> Array:
    """X as rows of d columns."""
    rows = np.asarray(convert_to_numpy(X), dtype=float)
    rows = rows[:, None] if rows.ndim == 1 and d == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != d:
        raise ValueError(f"X must have {d} columns, as the mixture has; its shape is {rows.shape}.")
    return rows


def _columns_to_draw(model: Any, columns: Sequence[int | str] | None) -> tuple[list[int], list[str]]:
    """The columns to draw, one or two of them, by number and by name."""
    check_is_fitted(model)
    d = model.means_.shape[1]
    if columns is not None and not isinstance(columns, str) and len(columns) not in (1, 2):
        raise ValueError(f"It takes one column or two to draw; got columns={columns!r}.")
    shown = list(range(min(d, 2))) if columns is None else [int(j) for j in model._columns(columns)]
    names = names_of_columns(model, d)
    return shown, [names[j] for j in shown]


GRID_STEPS = 120  # and of each side of a field
ELLIPSE = (1.0, 2.0)  # standard deviations at which components are outlined
STYLES = ("--", ":", "-.")
CURVES = tuple(colour for colour in PALETTE if colour != PALETTE[3])  # that of the bars


class MixtureDisplay(Display):
    r"""The density of a mixture: in one column with its components π_kN_k, in two as level lines and ellipses.

    .. math:: p(x) = \sum_k\pi_kN(x;\mu_k,\Sigma_k)

    The ellipses lie at one and two standard deviations of each component.

    Parameters
    ----------
    mixture : Mixture
        Of one or two columns: the marginal of those drawn.
    rows : array-like of shape (n, 1 or 2), optional
        Rows: drawn as a histogram, or as points by component.
    assigned : array-like of int of shape (n,), optional
        The component of each row.
    names : sequence of str, optional
        Of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.display import MixtureDisplay
    >>> x = np.concatenate([np.linspace(-1, 1, 30), np.linspace(4, 8, 30)])[:, None]
    >>> picture = MixtureDisplay.from_estimator(GaussianMixture(2).fit(x), x)
    >>> sum(line.get_label().startswith("component") for line in picture.ax_.get_lines())
    2
    """

    def __init__(
        self,
        mixture: Any,
        *,
        rows: ArrayLike | None = None,
        assigned: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        d = mixture.means.shape[1]
        if d not in (1, 2):
            raise ValueError(f"A mixture is drawn over one column or two; this one has {d}: take its marginal.")
        self.mixture = mixture
        self.rows = None if rows is None else _as_rows(rows, d)
        self.assigned = None if assigned is None else np.asarray(assigned)
        self.names = as_names(names, d, "names", "x{}", "columns")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike | None = None,
        *,
        columns: Sequence[int | str] | None = None,
        ax: Axes | None = None,
    ) -> MixtureDisplay:
        """Draw a fitted mixture.

        Parameters
        ----------
        model : GaussianMixture
            Fitted.
        X : array-like of shape (n, d), optional
            Rows, of all columns.
        columns : sequence of one or two int or str, optional
            Which columns, by number or name, whose marginal distribution is drawn; the first two unless given.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        MixtureDisplay
            Drawn.
        """
        shown, names = _columns_to_draw(model, columns)
        options: dict[str, Any] = {"names": names}
        if X is not None:
            rows = _as_rows(X, model.means_.shape[1])
            assigned = np.argmax(model.mixture_.joint_log_density(rows), axis=1) if len(shown) == 2 else None
            options |= {"rows": rows[:, shown], "assigned": assigned}
        return cls(model.marginal(shown), **options).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> MixtureDisplay:
        """Draw, on the axes given or on a new figure."""
        one = len(self.names) == 1
        ax = self._start(ax, (6.4, 4.2) if one else (6.4, 4.8), "Density and components")
        (self._draw_line if one else self._draw_plane)(ax)
        name_axes(ax, self.names[0], "density" if one else self.names[1])
        return self

    def _draw_line(self, ax: Axes) -> None:
        """Curves over a histogram of the rows."""
        low, high = _span(self.mixture, 0)
        if self.rows is not None:
            seen = self.rows[np.isfinite(self.rows)]
            ax.hist(seen, bins="auto", density=True, color=PALETTE[3], alpha=0.5, edgecolor="white", linewidth=0.5)
            low, high = min(low, float(seen.min())), max(high, float(seen.max()))
        _draw_curves(ax, self.mixture, _curve_points(self.mixture, low, high), 1.0)

    def _draw_plane(self, ax: Axes) -> None:
        """Rows by component, level lines of the density, and the ellipses of the components."""
        if self.rows is not None:
            style = point_style(len(self.rows))
            codes = np.zeros(len(self.rows), dtype=int) if self.assigned is None else self.assigned
            for k in range(self.mixture.n_components):
                some = self.rows[codes == k]
                ax.scatter(some[:, 0], some[:, 1], label=f"component {k + 1}", **appearance(k), **style)
        across, up = (np.linspace(*_span(self.mixture, j), GRID_STEPS) for j in range(2))
        points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        height = np.exp(self.mixture.log_density(points)).reshape(len(up), len(across))
        levels = float(height.max()) * np.geomspace(0.005, 0.9, 9)
        ax.contour(across, up, height, levels=levels, colors=INK, linewidths=0.6, alpha=0.6)
        angle = np.linspace(0.0, 2 * np.pi, 121)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        for k, (mean, S) in enumerate(zip(self.mixture.means, self.mixture.matrices, strict=True)):
            colour = appearance(k)["color"]
            for radius in ELLIPSE:  # (x − μ)ᵀΣ⁻¹(x − μ) = r²
                ring = mean + radius * circle @ np.linalg.cholesky(S).T
                ax.plot(ring[:, 0], ring[:, 1], color=colour, linewidth=1.4, linestyle=STYLES[k % 3])
            ax.plot(*mean, "+", color=colour, markersize=9, markeredgewidth=2)
        if self.rows is not None:
            _legend_below(ax)


def _draw_curves(ax: Axes, mixture: Any, line: Array, factor: float) -> None:
    """Each component's curve and their sum, times a factor."""
    parts = factor * np.exp(mixture.joint_log_density(line[:, None]))
    for k in range(parts.shape[1]):
        ax.plot(line, parts[:, k], color=CURVES[k % len(CURVES)], linestyle=STYLES[k % 3], label=f"component {k + 1}")
    ax.plot(line, parts.sum(axis=1), color=INK, linewidth=2, label="sum")
    _legend_below(ax)


class BinnedMixtureDisplay(Display):
    """Counts in bins with the fitted components and their sum, on the scale of the counts: Pearson's picture.

    Bins that are open on one side are drawn as wide as the median one, and paler; bars of unequal bins are counts per
    median width.

    Parameters
    ----------
    mixture : Mixture
        Of one column.
    edges, counts : array-like of shape (m + 1,) and (m,)
        The bins.
    name : str, default="x1"
        Of the column.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.display import BinnedMixtureDisplay
    >>> edges, counts = [-np.inf, -1.0, 0.0, 1.0, np.inf], [16, 34, 34, 16]
    >>> model = GaussianMixture().fit_binned(edges, counts)
    >>> picture = BinnedMixtureDisplay.from_estimator(model, edges, counts)
    >>> [float(bar.get_height()) for bar in picture.ax_.patches]
    [16.0, 34.0, 34.0, 16.0]
    """

    def __init__(self, mixture: Any, edges: ArrayLike, counts: ArrayLike, *, name: str = "x1") -> None:
        ends, n = np.asarray(edges, dtype=float), np.asarray(counts, dtype=float)
        if mixture.means.shape[1] != 1 or n.ndim != 1 or ends.shape != (len(n) + 1,):
            raise ValueError(f"Bars are drawn over one column: edges {ends.shape} and counts {n.shape} must be of one.")
        if np.isinf(ends).all():
            raise ValueError("The one bin is open on both sides and has no place to draw: give finite edges.")
        self.mixture, self.edges, self.counts, self.name = mixture, ends, n, name

    @classmethod
    def from_estimator(
        cls, model: Any, edges: ArrayLike, counts: ArrayLike, *, name: str | None = None, ax: Axes | None = None
    ) -> BinnedMixtureDisplay:
        """Draw a mixture fitted to these counts, or to rows of one column."""
        model = check_fitted(model)
        called = names_of_columns(model, model.means_.shape[1])[0] if name is None else name
        return cls(model.mixture_, convert_to_numpy(edges), convert_to_numpy(counts), name=called).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> BinnedMixtureDisplay:
        """Draw, on the axes given or on a new figure."""
        ends, n = self.edges, self.counts
        ax = self._start(ax, (6.8, 4.2), f"{int(n.sum()):,} observations in {len(n)} bins")
        widths = np.diff(ends)
        closed = np.isfinite(widths)
        usual = float(np.median(widths[closed])) if closed.any() else 1.0
        left = np.where(np.isinf(ends[:-1]), ends[1:] - usual, ends[:-1])
        width = np.where(closed, widths, usual)
        bars = ax.bar(left, n * usual / width, width, align="edge", color=PALETTE[3], edgecolor="white", linewidth=0.5)
        for bar, whole in zip(bars, closed, strict=True):
            bar.set_alpha(0.6 if whole else 0.3)
        line = _curve_points(self.mixture, float(left[0]), float(left[-1] + width[-1]))
        _draw_curves(ax, self.mixture, line, float(n.sum()) * usual)
        name_axes(ax, self.name, "count" if np.allclose(width, usual) else f"count per {usual:.4g}")
        return self


class UncertaintyDisplay(Display):
    """How uncertain the component of each row is, 1 − max_k P(k|x): the size of its point, or its height.

    Parameters
    ----------
    points : array-like of shape (n, 1 or 2)
        The columns to draw; one is drawn against the uncertainty.
    responsibilities : array-like of shape (n, K)
        P(k|x), of whole rows.
    names : sequence of str, optional
        Of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.display import UncertaintyDisplay
    >>> x = np.concatenate([np.linspace(-1, 1, 30), np.linspace(4, 8, 30)])[:, None]
    >>> UncertaintyDisplay.from_estimator(GaussianMixture(2).fit(x), x).ax_.get_ylabel()
    '1 − max P(k|x)'
    """

    def __init__(self, points: ArrayLike, responsibilities: ArrayLike, *, names: Sequence[str] | None = None) -> None:
        self.points, shares = np.asarray(points, dtype=float), np.asarray(responsibilities, dtype=float)
        if self.points.ndim != 2 or self.points.shape[1] not in (1, 2) or len(shares) != len(self.points):
            raise ValueError(f"points of shape {self.points.shape} must be one column or two of {len(shares)} rows.")
        self.assigned, self.uncertainty = np.argmax(shares, axis=1), 1.0 - shares.max(axis=1)
        self.n_components = shares.shape[1]
        self.names = as_names(names, self.points.shape[1], "names", "x{}", "columns")

    @classmethod
    def from_estimator(
        cls, model: Any, X: ArrayLike, *, columns: Sequence[int | str] | None = None, ax: Axes | None = None
    ) -> UncertaintyDisplay:
        """Draw rows of a fitted mixture; one column or two of them, by number or name, the first two unless given."""
        shown, names = _columns_to_draw(model, columns)
        rows = _as_rows(X, model.means_.shape[1])
        shares = model.mixture_.responsibilities(rows)
        return cls(rows[:, shown], shares, names=names).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> UncertaintyDisplay:
        """Draw, on the axes given or on a new figure."""
        one = self.points.shape[1] == 1
        up = self.uncertainty if one else self.points[:, 1]
        doubtful = np.count_nonzero(self.uncertainty > 0.1)
        ax = self._start(ax, (6.4, 4.6), f"Uncertain rows: {doubtful} of {len(up)} by more than 0.1")
        size = np.full(len(up), 8.0) if one else 4.0 + 160.0 * self.uncertainty
        for k in range(self.n_components):
            mine = self.assigned == k
            style: dict[str, Any] = {"alpha": 0.7, "linewidths": 0, **appearance(k)}
            ax.scatter(self.points[mine, 0], up[mine], s=size[mine], label=f"component {k + 1}", **style)
        name_axes(ax, self.names[0], "1 − max P(k|x)" if one else self.names[1])
        for handle in _legend_below(ax).legend_handles:
            handle.set_sizes([KEY])  # type: ignore[union-attr]
        return self


CRITERIA = ("bic", "aic", "icl")
LINES = ("-", "--", ":", "-.")


@dataclass(frozen=True, eq=False)
class ChoiceData:
    """What a picture of a choice between mixtures shows, whoever draws it.

    Attributes
    ----------
    criterion : str
        BIC, AIC or ICL.
    sizes, models : sequence of int, sequence of str
        Numbers of components and covariance models.
    values : ndarray of shape (sizes, models)
        The criterion; NaN where a fit is not eligible.
    """

    criterion: str
    sizes: Sequence[int]
    models: Sequence[str]
    values: Array

    @property
    def best(self) -> tuple[int, int]:
        """Size and model of the least value, by number."""
        row, column = np.unravel_index(np.nanargmin(self.values), self.values.shape)
        return int(row), int(column)

    @property
    def frame(self) -> tuple[float, float]:
        """Ends of the axis: the contest is at the bottom, and values far above it are cut off."""
        low = float(np.nanmin(self.values))
        reach = float(np.nanmedian(self.values)) - low or 1.0
        return low - 0.1 * reach, min(float(np.nanmax(self.values)) + 0.05 * reach, low + 3 * reach)


def describe_choice(choice: Any, criterion: str | None = None) -> ChoiceData:
    """Prepare the picture of a choice: of the criterion named, or of the one it chose by."""
    name = choice.criterion if criterion is None else criterion
    name = "bic" if name == "lrt" else name
    if name not in CRITERIA:
        raise ValueError(f"There is no criterion {name!r} to draw. Use one of {', '.join(CRITERIA)}.")
    values = np.where(choice.eligible, np.asarray(getattr(choice, name), dtype=float), np.nan)
    if np.isnan(values).all():
        raise ValueError("No fit is eligible: there is nothing to draw. See choice.table() for the reasons.")
    return ChoiceData(name.upper(), choice.n_components, choice.covariance_types, values)


class MixtureChoiceDisplay(Display):
    """BIC, AIC or ICL over the numbers of components, one line for each covariance model; the lowest is marked.

    Fits that are not eligible (a collapsed or empty component) leave a gap. The frame follows the contest at the
    bottom; values far above are arrows at its upper edge.

    Parameters
    ----------
    choice : MixtureChoice
        What :func:`gramian.mixture.choose.select_mixture` returned.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.mixture.choose import select_mixture
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
        data = describe_choice(self.choice, criterion)
        title = f"{data.criterion} by components and covariance model"
        names = {"xlabel": "components", "ylabel": f"{data.criterion} (lower is better)"}
        ax = self._start(ax, (7.2, 4.6), title, grid="both", **names)
        for j, model in enumerate(data.models):
            style: dict[str, Any] = {**appearance(j), "markersize": 4, "linewidth": 1.2}
            ax.plot(data.sizes, data.values[:, j], linestyle=LINES[j // len(PALETTE) % 4], label=model, **style)
        row, column = data.best
        ring: dict[str, Any] = {"marker": "o", "markersize": 13, "fillstyle": "none", "color": INK, "linestyle": ""}
        label = f"best: {data.models[column]}, {data.sizes[row]}"
        ax.plot(data.sizes[row], data.values[row, column], label=label, **ring)
        low, top = data.frame
        above = data.values > top  # arrows at the upper edge
        if above.any():
            at = np.asarray(data.sizes)[above.any(axis=1)]
            label = f"above the frame: {np.count_nonzero(above)}"
            ax.plot(at, np.full(len(at), top - 0.03 * (top - low)), "^", color=INK, markersize=6, label=label)
        ax.set(ylim=(low, top), xticks=data.sizes)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
        return self
