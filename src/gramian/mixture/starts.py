"""Mixtures to start from: of partitions, of a hierarchy, or as given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import is_tensor, to_device, to_numpy
from gramian.mixture.binned import Bins
from gramian.mixture.em import fit_mixture
from gramian.mixture.missing import regression
from gramian.mixture.models import Maximiser, Prior
from gramian.mixture.options import covariances_from
from gramian.mixture.parameters import DIAGONAL, Mixture, numbers
from gramian.mixture.rows import Rows
from gramian.sources import DenseSource

__all__ = [
    "MOST_LEAVES",
    "MOST_POINTS",
    "Agglomeration",
    "Points",
    "TwoNormals",
    "by_agglomeration",
    "by_kmeans",
    "by_random_rows",
    "by_random_shares",
    "by_seeds",
    "central_moments",
    "expected_cells",
    "fill_cells",
    "half_whitened",
    "nearest",
    "points_of",
    "starts",
    "two_normals",
    "without_empty",
]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class TwoNormals:
    """Mixtures of two normals with given moments.

    Attributes
    ----------
    solutions : tuple of Mixture
        All of them, the smaller mean first in each; the one to prefer comes first.
    sixth : tuple of float
        Sixth central moment of each.
    roots : ndarray
        Negative real roots of the nonic, in units of the variance.
    """

    solutions: tuple[Mixture, ...]
    sixth: tuple[float, ...]
    roots: Array

    def __repr__(self) -> str:
        lines = [
            f"weights {m.weights.round(4)}, means {m.means[:, 0]}, deviations {np.sqrt(m.covariances[:, 0])}"
            for m in self.solutions
        ]
        return "\n".join([f"TwoNormals: {len(lines)} solution{'s' * (len(lines) != 1)}", *lines])


def central_moments(data: Any, *, sheppard: bool = True) -> tuple[float, Array]:
    """The mean, and the central moments 2 to 6.

    Parameters
    ----------
    data : Bins of one column, or array-like
        Bins count at their midpoints, open ones as if they were as wide as their neighbours.
    sheppard : bool, default=True
        Whether to take out what rounding to bins of one width adds to moments (Sheppard 1898).

    Examples
    --------
    >>> from gramian.mixture import central_moments
    >>> central_moments([1.0, 2.0, 3.0])[1].round(4)
    array([0.6667, 0.    , 0.6667, 0.    , 0.6667])
    """
    if isinstance(data, Bins):
        x, w, h = _midpoints(data)
    else:
        x = np.asarray(data, dtype=np.float64).ravel()
        w, h = np.ones(len(x)), 0.0
    w = w / w.sum()
    mean = float(x[0] + w @ (x - x[0]))
    raw = np.array([w @ (x - mean) ** j for j in range(2, 7)])
    return mean, _sheppard(raw, h) if sheppard and h > 0 else raw


def two_normals(mean: float, moments: npt.ArrayLike) -> TwoNormals:
    """Mixtures of two normals that have a mean and central moments 2 to 5 (and nearly the sixth, where given).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import two_normals
    >>> found = two_normals(2.0, [5.0, 0.0, 43.0, 0.0, 499.0]).solutions[0]  # ½N(0, 1) + ½N(4, 1)
    >>> found.weights.round(6), found.means.ravel().round(6), found.covariances.ravel().round(6)
    (array([0.5, 0.5]), array([0., 4.]), array([1., 1.]))
    """
    given = np.asarray(moments, dtype=np.float64)
    if given.shape not in ((4,), (5,)) or not given[0] > 0:
        raise ValueError(f"Give the central moments 2 to 5, or 2 to 6, of which the first is positive; got {given}.")
    unit = math.sqrt(given[0])
    nu = given / unit ** np.arange(2, len(given) + 2)
    k3, k4, k5 = nu[1], nu[2] - 3.0, nu[3] - 10 * nu[1]
    roots = _negative_roots(_nonic(k3, k4, k5))
    found = [m for v in roots if (m := _solution(float(v), k3, k4, k5)) is not None]
    sixth = [_sixth(*m) for m in found]
    aim = nu[4] if len(nu) == 5 else math.nan
    order = sorted(range(len(found)), key=lambda i: abs(sixth[i] - aim) if len(nu) == 5 else 0.0)
    made = tuple(_mixture(mean, unit, *found[i]) for i in order)
    return TwoNormals(made, tuple(sixth[i] * unit**6 for i in order), roots)


def _nonic(k3: float, k4: float, k5: float) -> list[float]:
    return [
        24.0,
        0.0,
        84 * k4,
        36 * k3**2,
        90 * k4**2 + 72 * k5 * k3,
        444 * k4 * k3**2 - 18 * k5**2,
        288 * k3**4 - 108 * k3 * k4 * k5 + 27 * k4**3,
        -(63 * k4**2 + 72 * k3 * k5) * k3**2,
        -96 * k3**4 * k4,
        -24 * k3**6,
    ]


def _negative_roots(polynomial: list[float]) -> Array:
    """Real negative roots, each polished by a few steps of Newton's; double ones once."""
    roots = np.roots(polynomial)
    real = roots[np.abs(roots.imag) < 1e-6 * np.maximum(np.abs(roots), 1e-12)].real
    slope = np.polyder(np.array(polynomial))
    for _ in range(5):
        steep = np.polyval(slope, real)
        step = np.divide(np.polyval(polynomial, real), steep, out=np.zeros_like(real), where=np.abs(steep) > 1e-8)
        real = real - np.where(np.abs(step) < 1e-3 * np.abs(real), step, 0.0)
    real = np.sort(real[real < -1e-9])
    return real[np.append(True, np.diff(real) > 1e-7 * np.abs(real[1:]))] if len(real) else real


def _solution(v: float, k3: float, k4: float, k5: float) -> tuple[Array, Array, Array] | None:
    """Weights, means and variances in units of a variance of 1, for a root v."""
    below = 2 * v**3 + 3 * k4 * v + 4 * k3**2
    if below == 0.0:
        return None
    total = (-8 * k3 * v**3 + 3 * k5 * v**2 + 6 * k3 * k4 * v + 2 * k3**3) / below / v
    gap = math.sqrt(total**2 - 4 * v)
    m = np.array([total - gap, total + gap]) / 2
    beta = (2 * total - k3 / v) / 3
    variances = m * beta + 1.0 - m**2
    if not (variances > 0).all():
        return None
    return np.array([m[1], -m[0]]) / gap, m, variances


def _sixth(weights: Array, m: Array, variances: Array) -> float:
    s = variances
    return float(weights @ (m**6 + 15 * m**4 * s + 45 * m**2 * s**2 + 15 * s**3))


def _mixture(mean: float, unit: float, weights: Array, m: Array, variances: Array) -> Mixture:
    return Mixture.of(weights, unit * m[:, None], unit**2 * variances, "V", [mean])


def _midpoints(bins: Bins) -> tuple[Array, Array, float]:
    if bins.lower.shape[1] != 1:
        raise ValueError(f"Moments are taken of one column; the boxes have {bins.lower.shape[1]}.")
    low, high = bins.lower[:, 0].copy(), bins.upper[:, 0].copy()
    width = high - low
    inner = width[np.isfinite(width)]
    if not len(inner):
        raise ValueError("All bins are open: they have no midpoints.")
    h = float(np.median(inner))
    low = np.where(np.isinf(low), high - h, low)
    high = np.where(np.isinf(high), low + h, high)
    same = bool(np.allclose(inner, h, rtol=1e-6))
    return 0.5 * (low + high), bins.counts, h if same else 0.0


def _sheppard(m: Array, h: float) -> Array:
    return np.array(
        [
            m[0] - h**2 / 12,
            m[1],
            m[2] - h**2 * m[0] / 2 + 7 * h**4 / 240,
            m[3] - 5 * h**2 * m[1] / 6,
            m[4] - 5 * h**2 * m[2] / 4 + 7 * h**4 * m[0] / 16 - 31 * h**6 / 1344,
        ]
    )


Index = npt.NDArray[np.intp]


def fill_cells(X: Array, mixture: Mixture) -> Array:
    """X with every NaN replaced by its expectation given the row's other cells.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.starts import fill_cells
    >>> from gramian.mixture import Mixture
    >>> one = Mixture.of([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]])
    >>> fill_cells(np.array([[2.0, np.nan]]), one)
    array([[2., 1.]])
    """
    return expected_cells(X, mixture)[0]


def expected_cells(X: Array, mixture: Mixture) -> tuple[Array, Array]:
    r"""E(x|x_o) and the standard deviations of x|x_o, which are 0 where a cell is observed.

    With shares r_k, means m_k and variances v_k of the components given x_o, the law of total variance is
    :math:`\sum_kr_kv_k+\sum_kr_k(m_k-\bar m)^2`.
    """
    out, deviations = np.array(X, dtype=np.float64), np.zeros(X.shape)
    for rows, seen, hidden in _patterns(np.isnan(X)):
        shares, centres, spread = regression(out[np.ix_(rows, seen)], mixture, seen, hidden)
        variances = spread if spread.ndim == 2 else np.diagonal(spread, axis1=1, axis2=2)
        mean = np.einsum("nk,nku->nu", shares, centres)
        within = shares @ variances
        between = np.einsum("nk,nku->nu", shares, (centres - mean[:, None]) ** 2)
        out[np.ix_(rows, hidden)] = mean + mixture.origin[hidden]
        deviations[np.ix_(rows, hidden)] = np.sqrt(np.maximum(within + between, 0.0))
    return out, deviations


def _patterns(missing: npt.NDArray[np.bool_]) -> Iterator[tuple[Index, Index, Index]]:
    """Rows that lack the same cells, the cells they have, and those they lack; complete rows are left out."""
    some = np.flatnonzero(missing.any(axis=1))
    if not len(some):
        return
    _, which = np.unique(np.packbits(missing[some], axis=1), axis=0, return_inverse=True)
    for kind in range(int(which.max()) + 1):
        rows = some[which.ravel() == kind]
        yield rows, np.flatnonzero(~missing[rows[0]]), np.flatnonzero(missing[rows[0]])


MOST_POINTS = 10_000  # rows that a start is found from, or 100 for each component: beyond, a sample of them
SPHERICAL = frozenset({"EII", "VII"})
FILLING = 50  # iterations of the one normal distribution that missing cells are filled from, for a start


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct points, in a fixed order whatever the order and repetition of the rows they come from.

    Attributes
    ----------
    values : ndarray of shape (m, d)
        Points, measured from the data's origin.
    weights : ndarray of shape (m,)
        How often each was seen.
    units : ndarray of shape (d,)
        What distances are measured in: standard deviations of the columns, or 1 where the model is spherical.
    """

    values: Array
    weights: Array
    units: Array

    @property
    def scaled(self) -> Array:
        """Points in their units."""
        return np.asarray(self.values / self.units)

    @property
    def rows(self) -> Rows:
        """The same points as data for a fit."""
        return Rows.of(DenseSource(self.values), self.weights)


def points_of(data: Rows | Bins, model: str, k: int, rng: np.random.RandomState) -> Points:
    """Return the distinct rows of data, or of a sample where they are many; of bins, the middles.

    A weight is the row so many times: the points and the draws from them are the same either way.
    """
    D, w = _middles(data) if isinstance(data, Bins) else _rows(data, max(MOST_POINTS, 100 * k), rng)
    if np.isnan(D).any():
        D = _filled(D, w)
    D, w = _distinct(D, w)
    spread = np.sqrt(np.maximum(w @ (D - w @ D / w.sum()) ** 2 / w.sum(), 0.0))
    units = np.ones(D.shape[1]) if model in SPHERICAL else np.where(spread > 0, spread, 1.0)
    return Points(D, w, units)


def _rows(data: Rows, most: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    n, d = data.source.shape
    w = np.ones(n) if data.sample_weight is None else data.sample_weight
    if n > most:
        ends = np.cumsum(w)
        drawn = np.searchsorted(ends, rng.random_sample(most) * ends[-1], side="right")
        w = np.bincount(np.minimum(drawn, n - 1), minlength=n).astype(np.float64)
    chosen = np.flatnonzero(w > 0)
    out = np.empty((len(chosen), d))
    for block in data.source.blocks():
        first, last = np.searchsorted(chosen, (block.start, block.stop))
        mine = chosen[first:last] - block.start
        there = is_tensor(block.values)  # rows are gathered on their device: only those chosen leave it
        out[first:last] = to_numpy(block.values[to_device(mine, block.values.device)]) if there else block.values[mine]
    return out - data.origin, w[chosen]


def _middles(data: Bins) -> tuple[Array, Array]:
    """The middles of boxes that hold something, from the origin; an open box counts as wide as the median one."""
    taken = data.counts > 0
    low, high = data.lower[taken] - data.origin, data.upper[taken] - data.origin
    width = high - low
    known = np.isfinite(width)
    typical = np.array([np.median(x[i]) if i.any() else 0.0 for x, i in zip(width.T, known.T, strict=True)])
    low = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high) - typical, low)
    high = np.where(np.isinf(high), low + typical, high)
    return low + 0.5 * (high - low), data.counts[taken]


def _distinct(D: Array, w: Array) -> tuple[Array, Array]:
    """Equal rows together, sorted: so that repeated rows and weights give the same start."""
    order = np.lexsort(D.T[::-1])
    D, w = D[order], w[order]
    new = np.concatenate([[True], (D[1:] != D[:-1]).any(axis=1)])
    return np.ascontiguousarray(D[new]), np.asarray(np.bincount(np.cumsum(new) - 1, w), dtype=np.float64)


def _filled(D: Array, w: Array) -> Array:
    """Missing cells as one normal distribution expects them, given those that are there."""
    data = Rows.of(DenseSource(D), w)
    start = Mixture.of([1.0], np.zeros((1, D.shape[1])), np.diag(np.where(data.variances > 0, data.variances, 1.0)))
    one = fit_mixture(data, start, Maximiser("EEE", Prior.floor(data)), max_iterations=FILLING)
    return fill_cells(D, one.mixture)


Labels = npt.NDArray[np.intp]

ROUNDS = 50  # of k-means: a start needs no more


def by_kmeans(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> Labels:
    """Lloyd's iterations from seeds of k-means++.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.starts import by_kmeans
    >>> labels = by_kmeans(np.array([[0.0], [1.0], [8.0], [9.0]]), np.ones(4), 2, np.random.RandomState(0))
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    C = Z[seeds(Z, w, k, rng)]
    labels, distances = nearest(Z, C)
    for _ in range(ROUNDS):
        C = _means(Z, w, labels, distances, k)
        new, distances = nearest(Z, C)
        if np.array_equal(new, labels):
            break
        labels = new
    return without_empty(labels, distances, k)


def by_seeds(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> Labels:
    """Every point to the nearest seed of k-means++."""
    return nearest(Z, Z[seeds(Z, w, k, rng)])[0]


def by_random_rows(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> Labels:
    """Every point to the nearest of k rows drawn at random, each other than the ones before."""
    chosen: list[int] = []
    left = w.copy()
    for _ in range(k):
        chosen.append(_draw(left, rng.random_sample()))
        left[chosen[-1]] = 0.0
    return nearest(Z, Z[chosen])[0]


def by_random_shares(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> Array:
    """Random responsibilities, uniform before they are made to sum to 1, as scikit-learn's."""
    R = rng.random_sample((len(Z), k))
    return np.asarray(R / R.sum(axis=1, keepdims=True))


def seeds(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> list[int]:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007): of a few candidates, the one that leaves least."""
    trials = 2 + int(np.log(k))
    chosen = [_draw(w, rng.random_sample())]
    left = _squares(Z, Z[chosen[0]])
    for _ in range(1, k):
        mass = w * left
        if not mass.sum() > 0:
            mass = np.where(np.isin(np.arange(len(Z)), chosen), 0.0, w)
        candidates = [_draw(mass, u) for u in rng.random_sample(trials)]
        after = [np.minimum(left, _squares(Z, Z[i])) for i in candidates]
        best = int(np.argmin([w @ each for each in after]))
        chosen.append(candidates[best])
        left = after[best]
    return chosen


def nearest(Z: Array, C: Array) -> tuple[Labels, Array]:
    """The nearest of the centres for each point, and its squared distance, from ‖z‖² − 2zᵀc + ‖c‖²."""
    D = Z @ (-2.0 * C.T)
    D += np.einsum("ij,ij->i", C, C)
    labels = np.argmin(D, axis=1)
    best = D[np.arange(len(Z)), labels] + np.einsum("ij,ij->i", Z, Z)
    return labels, np.maximum(best, 0.0)


def _squares(Z: Array, c: Array) -> Array:
    D = Z - c
    return np.asarray(np.einsum("ij,ij->i", D, D))


def _draw(mass: Array, u: float) -> int:
    """The index at which cumulative mass passes a share u of all."""
    ends = np.cumsum(mass)
    i = int(np.searchsorted(ends, u * ends[-1], side="right"))
    return min(i, int(np.flatnonzero(mass)[-1]))


def _means(Z: Array, w: Array, labels: Labels, distances: Array, k: int) -> Array:
    labels = without_empty(labels, distances, k)
    totals = np.bincount(labels, w, minlength=k)
    return np.stack([np.bincount(labels, w * z, minlength=k) / totals for z in Z.T], axis=1)


def without_empty(labels: Labels, distances: Array, k: int) -> Labels:
    """Give each empty cluster the point that lies farthest from its own, of a cluster that has others."""
    sizes = np.bincount(labels, minlength=k)
    if sizes.all():
        return labels
    labels, order = labels.copy(), iter(np.argsort(-distances, kind="stable"))
    for j in np.flatnonzero(sizes == 0):
        i = next(i for i in order if sizes[labels[i]] > 1)
        sizes[labels[i]] -= 1
        labels[i], sizes[j] = j, 1
    return labels


MOST_LEAVES = 600  # points that are agglomerated: beyond, a sample of them, and the others go to the nearest cluster


def half_whitened(Z: Array, w: Array) -> Array:
    r"""Standardised columns, turned to principal axes and divided by the root of the singular value of each.

    With X = UDVᵀ the points are XVD^{-1/2}, half way between the data and white: the transformation that Scrucca and
    Raftery (2015) found to lead to the best starts. Directions without variance are left out.
    """
    D = Z - w @ Z / w.sum()
    spread = np.sqrt(w @ D**2 / w.sum())
    D = D / np.where(spread > 0, spread, 1.0)
    squares, axes = np.linalg.eigh((w[:, None] * D).T @ D)
    keep = squares > 1e-12 * squares[-1]
    return np.asarray(D @ axes[:, keep] / squares[keep] ** 0.25)


def by_agglomeration(Z: Array, w: Array, k: int, *, spheres: bool) -> Labels:
    """Partition the points into k clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.starts import by_agglomeration
    >>> by_agglomeration(np.array([[0.0], [8.0], [0.1], [8.2], [0.3]]), np.ones(5), 2, spheres=False)
    array([0, 1, 0, 1, 0])
    """
    points = np.ascontiguousarray(Z, dtype=np.float64)
    mergers = _mergers(points.tobytes(), np.asarray(w, dtype=np.float64).tobytes(), points.shape[1], spheres)
    owner = np.arange(len(Z), dtype=np.intp)
    for i, j in mergers[: len(Z) - k]:
        owner[owner == j] = i
    return np.unique(owner, return_inverse=True)[1].astype(np.intp)


@lru_cache(maxsize=4)  # one tree serves every number of components, and every model but the spherical ones
def _mergers(points: bytes, weights: bytes, d: int, spheres: bool) -> list[tuple[int, int]]:
    """All mergers of a tree, in order: j into i."""
    tree = Agglomeration(np.frombuffer(points).reshape(-1, d), np.frombuffer(weights), spheres=spheres)
    return [tree.merge_best() for _ in range(len(tree.alive) - 1)]


class Agglomeration:
    """Clusters of points, with what each pair of them would lose by a merger."""

    def __init__(self, Z: Array, w: Array, *, spheres: bool) -> None:
        m, d = Z.shape
        total = float(w.sum())
        D = Z - w @ Z / total
        self.spheres, self.count, self.centre = spheres, w.astype(np.float64), D.copy()
        self.base = float(w @ np.sum(D**2, axis=1)) / (total * d)
        self.scatter = np.zeros((m, d, d))
        self.alive = list(range(m))
        self.own = self._term(self.count, self.scatter)
        self.loss = np.full((m, m), np.inf)
        for i in range(m - 1):
            later = np.arange(i + 1, m)
            self.loss[i, later] = self.loss[later, i] = self._losses(i, later)
        self.least = np.argmin(self.loss, axis=1)

    def merge_best(self) -> tuple[int, int]:
        """Merge the two clusters that lose least, j into i; return i and j."""
        rows = np.array(self.alive, dtype=np.intp)
        i = int(rows[np.argmin(self.loss[rows, self.least[rows]])])
        j = int(self.least[i])
        i, j = min(i, j), max(i, j)
        self.count[i], self.centre[i], self.scatter[i] = self._merged(i, np.array([j]), single=True)
        self.own[i] = self._term(self.count[i : i + 1], self.scatter[i : i + 1])[0]
        self.alive.remove(j)
        self.loss[j, :] = self.loss[:, j] = np.inf
        self._renew(i, j)
        return i, j

    def _renew(self, i: int, gone: int) -> None:
        others = np.array([c for c in self.alive if c != i], dtype=np.intp)
        if not len(others):
            return
        self.loss[i, others] = self.loss[others, i] = self._losses(i, others)
        self.least[i] = int(np.argmin(self.loss[i]))
        stale = others[np.isin(self.least[others], (i, gone))]
        self.least[stale] = np.argmin(self.loss[stale], axis=1)
        fresh = others[self.loss[others, i] < self.loss[others, self.least[others]]]
        self.least[fresh] = i

    def _losses(self, i: int, others: Labels) -> Array:
        count, _, scatter = self._merged(i, others)
        return np.asarray(self._term(count, scatter) - self.own[i] - self.own[others])

    def _merged(self, i: int, others: Labels, single: bool = False) -> tuple[Array, Array, Array]:
        """Counts, centres and scatter matrices of cluster i merged with each of the others."""
        a, b = self.count[i], self.count[others]
        away = self.centre[others] - self.centre[i]
        count, share = a + b, b / (a + b)
        centre = self.centre[i] + share[:, None] * away
        scatter = self.scatter[i] + self.scatter[others]
        scatter = scatter + (a * share)[:, None, None] * away[:, :, None] * away[:, None, :]
        return (count[0], centre[0], scatter[0]) if single else (count, centre, scatter)

    def _term(self, count: Array, scatter: Array) -> Array:
        trace = np.trace(scatter, axis1=1, axis2=2)
        if self.spheres:
            return np.asarray(trace)
        volume = np.maximum(np.linalg.det(scatter / count[:, None, None]), 0.0)
        return np.asarray(count * np.log(volume + (trace + self.base) / count))


LEAST_START = 1e-3  # of the columns' variances, that a component starts with
TRIES = 2  # of k-means, in each of two metrics, before the first start
PARTITIONS = {
    "k-means++": by_seeds,
    "random_from_data": by_random_rows,
    "random": by_random_shares,
}


def starts(model: Any, data: Rows | Bins, letters: str, rng: np.random.RandomState) -> Iterator[Mixture]:
    """Yield ``n_init`` mixtures; one alone where everything is given.

    Parameters
    ----------
    model : GaussianMixture
        Its ``init_params``, ``n_init`` and ``*_init``.
    data : Rows or Bins
        What is to be fitted.
    letters : str
        The covariance model.
    rng : RandomState
        Where draws come from.
    """
    given = _given(model, len(data.origin))
    if all(value is not None for value in given.values()):
        yield _with(None, given, data, letters)
        return
    points = points_of(data, letters, model.n_components, rng)
    if len(points.values) < model.n_components:
        things = "bins" if isinstance(data, Bins) else "rows"
        raise ValueError(
            f"n_components={model.n_components} exceeds the {len(points.values)} distinct {things} with weight: each "
            f"component needs {things} of its own. Fit fewer components."
        )
    for turn in range(model.n_init):
        candidates = _candidates(model, points, letters, given["means"], data.origin, rng, turn)
        made = [_mixture_mixture_start(points, shares, model.n_components, letters) for shares in candidates]
        yield _with(_likeliest(points, made), given, data, letters)


def _likeliest(points: Points, made: list[Mixture]) -> Mixture:
    """The first of the mixtures that no other beats by more than rounding: the same one in other units."""
    if len(made) == 1:
        return made[0]
    rows = points.rows
    heights = np.array([rows.expect(one).log_likelihood for one in made])
    return made[int(np.argmax(heights > heights.max() - 1e-7 * rows.weight))]


def _given(model: Any, d: int) -> dict[str, Array | None]:
    k, kind = model.n_components, model.covariance_type
    weights, means, precisions = model.weights_init, model.means_init, model.precisions_init
    if weights is not None:
        weights = numbers("weights_init", weights)
        if weights.shape != (k,) or not (weights >= 0).all() or not np.isclose(weights.sum(), 1.0):
            raise ValueError(f"weights_init must be {k} numbers of at least 0 that sum to 1, got {weights}.")
    if means is not None:
        means = numbers("means_init", means)
        if means.shape != (k, d) or not np.isfinite(means).all():
            raise ValueError(f"means_init must be finite and of shape ({k}, {d}); its shape is {means.shape}.")
    try:
        spread = None if precisions is None else covariances_from(precisions, kind, k, d)
    except ValueError as error:
        raise ValueError(f"precisions_init: {error}") from None
    return {"weights": weights, "means": means, "covariances": spread}


def _candidates(
    model: Any, points: Points, letters: str, means: Array | None, origin: Array, rng: np.random.RandomState, turn: int
) -> list[Any]:
    """Clusters of the points, or shares in them: several for the first start by k-means, to take the likeliest."""
    Z, w, k, how = points.scaled, points.weights, model.n_components, model.init_params
    if means is not None:
        return [nearest(Z, (means - origin) / points.units)[0]]
    if how == "hierarchical" and (turn == 0 or len(Z) > MOST_LEAVES):
        return [_hierarchical(Z, w, k, letters in SPHERICAL, rng)]
    if how not in ("kmeans", "hierarchical"):
        return [PARTITIONS[how](Z, w, k, rng)]
    if turn > 0 or k == 1:  # there is one hierarchy: other starts are by k-means
        return [by_kmeans(Z, w, k, rng)]
    Y = Z if letters in SPHERICAL else half_whitened(Z, w)
    return [by_kmeans(X, w, k, rng) for X in (Z, Y) for _ in range(TRIES)]


def _hierarchical(Z: Array, w: Array, k: int, spheres: bool, rng: np.random.RandomState) -> Any:
    """Clusters of the points, or of some of them, the others going to the nearest centre."""
    Y = Z if spheres else half_whitened(Z, w)
    if len(Y) <= MOST_LEAVES:
        return by_agglomeration(Y, w, k, spheres=spheres)
    ends = np.cumsum(w)
    drawn = np.searchsorted(ends, rng.random_sample(MOST_LEAVES) * ends[-1], side="right")
    some, count = np.unique(np.minimum(drawn, len(Y) - 1), return_counts=True)
    found = by_agglomeration(Y[some], count.astype(np.float64), k, spheres=spheres)
    size = np.bincount(found, count, minlength=k)
    C = np.stack([np.bincount(found, count * y, minlength=k) / size for y in Y[some].T], axis=1)
    return nearest(Y, C)[0]


def _mixture_mixture_start(points: Points, shares: Any, k: int, letters: str) -> Mixture:
    """The mixture of assigned points, measured from their origin.

    Covariances are drawn to that of the columns within clusters, as if each cluster had d + 1 rows more of it: one of
    a few rows would else start in a collapse that the data need not lead to.
    """
    rows, d = points.rows, points.values.shape[1]
    if shares.ndim == 1:
        shares = _all_taken(points.scaled, shares, k)
    stats = rows.assigned(shares, k, letters, np.zeros(d))
    scatter = stats.scatter(stats.centres).sum(axis=0)
    within = (scatter if stats.diagonal else np.diag(scatter)) / stats.weight
    floor = Prior.floor(rows, LEAST_START).scale
    c = (d + 1.0) * stats.weight / len(points.weights)
    return Maximiser(letters, Prior(c * np.maximum(within, floor), c))(stats)


def _all_taken(Z: Array, labels: Any, k: int) -> Any:
    sizes = np.bincount(labels, minlength=k)
    if sizes.all():
        return labels
    centre = np.stack([Z[labels == j].mean(axis=0) if sizes[j] else np.full(Z.shape[1], np.nan) for j in range(k)])
    return without_empty(labels, np.sum((Z - centre[labels]) ** 2, axis=1), k)


def _with(start: Mixture | None, given: dict[str, Array | None], data: Rows | Bins, letters: str) -> Mixture:
    """The start with what was given in its place."""
    weights, means, spread = given["weights"], given["means"], given["covariances"]
    centres = None if means is None else means - data.origin
    if spread is not None and letters in DIAGONAL and spread.ndim == 3:
        spread = np.array(np.diagonal(spread, axis1=1, axis2=2))
    if start is not None:
        weights = start.weights if weights is None else weights
        centres = start.centres if centres is None else centres
        spread = start.covariances if spread is None else spread
    return Mixture.of(weights, centres, spread, letters, data.origin)
