"""Pictures of genotypes: a map found from data next to the true one, and tests of SNPs along the genome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from gramian.display.base import INK, PALETTE, Display, as_names, name_axes
from gramian.display.groups import ARROW, Groups, appearance, groups_of, point_style, points_along, text_colour
from gramian.display.labels import Labels

Array = NDArray[Any]

ARROWS = 400  # rows without groups that get an arrow each
MOST = 60  # groups


class MapDisplay(Display):
    """Rows at the places found for them, and an arrow from the true place of each group to the middle of its rows.

    Parameters
    ----------
    found : array-like of shape (n, 2)
        Places found, already moved onto the coordinates: ``procrustes(scores, places).apply(scores)``.
    places : array-like of shape (n, 2)
        True coordinates of the rows, as longitude and latitude.
    labels : array-like of shape (n,), optional
        Groups, as countries. Without them each row has an arrow, up to 400 rows.
    names : sequence of str, optional
        Of the axes.
    geographic : bool, default=False
        Whether places are degrees of longitude and latitude: a degree of longitude is then drawn cos φ as wide as one
        of latitude, φ being the middle of the map. Otherwise both axes have one scale.

    Attributes
    ----------
    r_squared_ : float
        1 − Σ‖found − place‖²/Σ‖place − mean‖²: how much of the map was found.
    labels_ : list of Labels
        Names of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import procrustes
    >>> from gramian.display import MapDisplay
    >>> rng = np.random.default_rng(0)
    >>> places = np.repeat([[0.0, 40.0], [10.0, 50.0], [20.0, 45.0]], 5, axis=0)
    >>> scores = -0.01 * places[:, ::-1] + 0.001 * rng.normal(size=(15, 2))
    >>> moved = procrustes(scores, places)
    >>> picture = MapDisplay.from_alignment(moved, scores, places, labels=np.repeat(["Spain", "Germany", "Hungary"], 5))
    >>> bool(abs(picture.r_squared_ - moved.r_squared) < 1e-9)
    True
    """

    def __init__(
        self,
        found: ArrayLike,
        places: ArrayLike,
        *,
        labels: Any = None,
        names: Sequence[str] | None = None,
        geographic: bool = False,
    ) -> None:
        self.found, self.places = np.asarray(found, dtype=float), np.asarray(places, dtype=float)
        if self.found.ndim != 2 or self.found.shape[1] != 2 or self.found.shape != self.places.shape:
            shapes = f"found of shape {self.found.shape} and places of {self.places.shape}"
            raise ValueError(f"{shapes}: both must place the same rows in a plane.")
        wrong = np.flatnonzero(~np.isfinite(self.found + self.places).all(axis=1))
        if len(wrong):
            raise ValueError(f"Row {wrong[0] + 1} has no finite place: leave out such rows ({len(wrong)} of them).")
        usual = ("longitude", "latitude") if geographic else ("first coordinate", "second coordinate")
        self.names = as_names(usual if names is None else names, 2, "names", "{}")
        self.groups = None if labels is None else groups_of(labels, len(self.found), MOST)
        self.geographic = geographic
        total = float(np.sum((self.places - self.places.mean(axis=0)) ** 2))
        lost = float(np.sum((self.found - self.places) ** 2))
        self.r_squared_ = 1.0 - lost / total if total else float(lost == 0.0)
        self.labels_: list[Labels] = []

    @classmethod
    def from_alignment(
        cls, alignment: Any, scores: ArrayLike, places: ArrayLike, *, ax: Axes | None = None, **options: Any
    ) -> MapDisplay:
        """Draw scores moved by an alignment: what ``procrustes(scores, places)`` returned."""
        Z = np.asarray(scores, dtype=float)
        return cls.from_predictions(alignment.apply(Z), places, ax=ax, **options)

    def plot(self, ax: Axes | None = None) -> MapDisplay:
        """Draw, on the axes given or on a new figure."""
        # A figure of the shape of the map.
        aspect = 1.0
        if self.geographic:
            middle = float(np.mean([self.places[:, 1].min(), self.places[:, 1].max()]))
            aspect = 1.0 / max(float(np.cos(np.deg2rad(middle))), 0.1)
        across, up = np.maximum(np.ptp(np.concatenate([self.found, self.places]), axis=0), 1e-12)
        size = 7.0, float(np.clip(6.2 * aspect * up / across + 0.8, 3.4, 8.0))
        ax = self._start(ax, size, f"Places found from the data, R² = {self.r_squared_:.3f}", grid="both")
        style = {**point_style(len(self.found)), "alpha": 0.45}
        if self.groups is None:
            ax.scatter(*self.found.T, color=PALETTE[0], **style)
            if len(self.found) <= ARROWS:
                lines = list(np.stack([self.places, self.found], axis=1))
                ax.add_collection(LineCollection(lines, colors="#999999", linewidths=0.7, zorder=1))
            ring: dict[str, Any] = {"s": 14, "facecolors": "none", "edgecolors": INK, "linewidths": 0.8}
            ax.scatter(*self.places.T, label="true place", **ring)
            ax.legend(loc="lower left", frameon=False, fontsize="small")
        else:
            for k in self.groups.present:
                some = self.found[self.groups.rows(k)]
                ax.scatter(some[:, 0], some[:, 1], **appearance(k), **style)
            self._draw_group_arrows(ax, self.groups)
        name_axes(ax, *self.names)
        ax.set_aspect(aspect)
        return self

    def _draw_group_arrows(self, ax: Axes, groups: Groups) -> None:
        """An arrow for each group, from its true place to the middle of its rows, and its name."""
        sizes = np.bincount(groups.codes[groups.codes >= 0], minlength=len(groups.names))
        order = [int(k) for k in np.argsort(-sizes, kind="stable")]
        start = np.array([self.places[groups.rows(k)].mean(axis=0) for k in order])
        stop = np.array([np.median(self.found[groups.rows(k)], axis=0) for k in order])
        for k, true, middle in zip(order, start, stop, strict=True):
            ax.annotate("", middle, true, arrowprops={**ARROW, "color": text_colour(k), "linewidth": 1.3}, zorder=4)
        ring: dict[str, Any] = {"s": 26, "facecolors": "white", "edgecolors": INK, "linewidths": 1.1, "zorder": 5}
        ax.scatter(*start.T, label="true place", **ring)
        ax.update_datalim(np.vstack([start, stop]))
        colours = [text_colour(k) for k in order]
        names, avoid = [groups.names[k] for k in order], np.vstack([points_along(start, stop, 20), start])
        style: dict[str, Any] = {"fontweight": "bold", "fontsize": "small" if len(order) <= 20 else "x-small"}
        self.labels_ = [Labels(ax, start, names, avoid=avoid, outward=start - stop, colors=colours, **style)]
        ax.legend(loc="lower left", frameon=True, framealpha=0.8, edgecolor="none", fontsize="small")


LINE = 5e-8  # p-value from which a SNP is called significant among all of the genome
SMALLEST = 1e-300  # p-value that is drawn
TIGHT = 0.03  # of the genome: names of chromosomes that lie closer are left out


def place_along_genome(chromosome: ArrayLike, position: ArrayLike) -> tuple[NDArray[np.float64], dict[float, str]]:
    """Where SNPs lie with chromosomes one after the other, each as long as its last position, and names at the middles.

    Where no position is known, SNPs lie side by side in their order.

    Examples
    --------
    >>> from gramian.display.genetics import place_along_genome
    >>> place, names = place_along_genome(["1", "1", "2"], [10, 20, 10])
    >>> place.tolist(), names
    ([10.0, 20.0, 30.0], {10.0: '1', 25.0: '2'})
    """
    codes = np.asarray(chromosome, dtype=object).astype(str)
    number = np.array([float(name) if name.isdigit() else np.inf for name in codes])
    ends = np.asarray(position, dtype=np.float64)
    order = np.lexsort([ends, codes, number])
    if not (ends > 0).any():
        ends = np.argsort(order).astype(np.float64)
    place, start, ticks = np.empty(len(ends)), 0.0, {}
    for name in dict.fromkeys(codes[order].tolist()):
        mine = codes == name
        here = ends[mine] - (0.0 if (ends > 0).all() else ends[mine].min())
        place[mine], length = start + here, float(here.max()) or 1.0
        ticks[start + length / 2] = name
        start += length
    last = -np.inf
    for at in list(ticks):  # names of short chromosomes would lie on each other
        if at - last < TIGHT * start:
            del ticks[at]
        else:
            last = at
    return place, ticks


class ManhattanDisplay(Display):
    """Tests of SNPs along the genome: −log₁₀ p, with the line that a genome of independent tests seldom crosses.

    Parameters
    ----------
    chromosome, position : array-like of shape (p,)
        Of the SNPs.
    p_values : array-like of shape (p,)
        NaN is not drawn, and what is below 1e-300 is drawn there.
    name : str
        What is tested.

    Examples
    --------
    >>> from gramian.display import ManhattanDisplay
    >>> picture = ManhattanDisplay(["1", "1", "2"], [10, 20, 10], [0.1, 1e-9, 0.5], name="PC1").plot()
    >>> picture.heights_.round(1).tolist()
    [1.0, 9.0, 0.3]
    """

    def __init__(self, chromosome: ArrayLike, position: ArrayLike, p_values: ArrayLike, *, name: str = "") -> None:
        self.chromosome = np.asarray(chromosome, dtype=object)
        self.position, self.p_values = np.asarray(position), np.asarray(p_values, dtype=float)
        if not self.chromosome.shape == self.position.shape == self.p_values.shape or self.p_values.ndim != 1:
            shapes = f"{self.chromosome.shape}, {self.position.shape} and {self.p_values.shape}"
            raise ValueError(f"chromosome, position and p_values have the shapes {shapes}: one of each for every SNP.")
        if np.any((self.p_values < 0) | (self.p_values > 1)):
            raise ValueError("p_values lie between 0 and 1.")
        self.name = name
        self.heights_ = -np.log10(np.maximum(self.p_values, SMALLEST))

    def plot(self, ax: Axes | None = None) -> ManhattanDisplay:
        """Draw, on the axes given or on a new figure."""
        place, ticks = place_along_genome(self.chromosome, self.position)
        ax = self._start(ax, (9.0, 3.6), f"Tests along the genome{': ' if self.name else ''}{self.name}", grid="y")
        for k, code in enumerate(dict.fromkeys(self.chromosome[np.argsort(place, kind="stable")].tolist())):
            mine = self.chromosome == code
            ax.scatter(
                place[mine], self.heights_[mine], s=6, color=PALETTE[0] if k % 2 == 0 else PALETTE[3], linewidths=0
            )
        ax.axhline(-np.log10(LINE), color=PALETTE[1], linestyle="--", linewidth=1)
        ax.set_xticks(list(ticks), list(ticks.values()), fontsize="small")
        name_axes(ax, "chromosome", "−log₁₀ p")
        ax.set_ylim(bottom=0)
        return self


class QuantileDisplay(Display):
    """Observed −log₁₀ p over those expected by chance, and λ_GC: a curve that leaves the line early is not calibrated.

    Parameters
    ----------
    p_values : array-like of shape (p,)
        NaN are left out.
    name : str
        What is tested.

    Attributes
    ----------
    inflation_ : float
        λ_GC: the median of the χ² with one degree of freedom that the p-values stand for, over its median by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display import QuantileDisplay
    >>> p = (np.arange(1000) + 0.5) / 1000
    >>> round(QuantileDisplay(p).plot().inflation_, 3)
    1.0
    """

    def __init__(self, p_values: ArrayLike, *, name: str = "") -> None:
        known = np.asarray(p_values, dtype=float).ravel()
        known = np.sort(known[np.isfinite(known)])
        if not len(known) or known[0] < 0 or known[-1] > 1:
            raise ValueError("p_values lie between 0 and 1, and there must be some.")
        self.name, m = name, len(known)
        self.expected = -np.log10((np.arange(m) + 0.5) / m)
        self.observed = -np.log10(np.maximum(known, SMALLEST))
        self.inflation_ = float((norm.isf(np.median(known) / 2) / norm.isf(0.25)) ** 2)

    def plot(self, ax: Axes | None = None) -> QuantileDisplay:
        """Draw, on the axes given or on a new figure."""
        title = f"{self.name}{', ' if self.name else ''}λ_GC = {self.inflation_:.3f}"
        ax = self._start(ax, (4.6, 4.6), title, grid="both")
        ax.scatter(self.expected, self.observed, s=8, color=PALETTE[0], linewidths=0)
        end = float(self.expected[0])
        ax.plot([0, end], [0, end], color=PALETTE[1], linestyle="--", linewidth=1)
        name_axes(ax, "expected −log₁₀ p", "observed −log₁₀ p")
        return self
