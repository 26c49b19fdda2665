r"""Partitions of weighted points that a mixture may start from: k-means, its seeds, random shares.

All draws are uniform numbers that are looked up in the cumulative weights of sorted distinct points, so that a weight
of 2 and a row given twice lead to the same partition.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["by_kmeans", "by_random_rows", "by_random_shares", "by_seeds", "nearest", "without_empty"]

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

ROUNDS = 50  # of k-means: a start needs no more


def by_kmeans(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> Labels:
    """Lloyd's iterations from seeds of k-means++.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._mixture_partitions import by_kmeans
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
