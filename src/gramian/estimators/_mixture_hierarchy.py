r"""Model-based agglomeration of points: clusters are merged that lose least of the classification likelihood.

For covariances that all differ, the loss of a partition is

.. math:: \sum_k n_k\ln\Bigl(\Bigl|\frac{W_k}{n_k}\Bigr|+\frac{\operatorname{tr}W_k+\operatorname{tr}W/(nd)}{n_k}\Bigr)

with W_k the scatter matrix of a cluster and W that of all points (Banfield and Raftery 1993; the trace keeps clusters
of few points, whose determinant is 0, apart: Fraley 1998). For equal spheres it is :math:`\sum_k\operatorname{tr}W_k`,
which is Ward's method.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_LEAVES", "Agglomeration", "by_agglomeration", "half_whitened"]

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

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
    >>> from gramian.estimators._mixture_hierarchy import by_agglomeration
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
