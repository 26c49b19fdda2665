"""Mixtures to start from: of partitions, of a hierarchy, or as given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators import _mixture_partitions as partitions
from gramian.estimators._mixture_hierarchy import MOST_LEAVES, by_agglomeration, half_whitened
from gramian.estimators._mixture_names import covariances_from
from gramian.estimators._mixture_points import SPHERICAL, Points, points_of
from gramian.likelihood.mixture import Bins, Maximiser, Mixture, Prior, Rows
from gramian.likelihood.mixture.given import numbers
from gramian.likelihood.mixture.models import DIAGONAL

__all__ = ["starts"]

Array = npt.NDArray[np.float64]

LEAST_START = 1e-3  # of the columns' variances, that a component starts with
TRIES = 2  # of k-means, in each of two metrics, before the first start
PARTITIONS = {
    "k-means++": partitions.by_seeds,
    "random_from_data": partitions.by_random_rows,
    "random": partitions.by_random_shares,
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
        made = [_mixture(points, shares, model.n_components, letters) for shares in candidates]
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
        return [partitions.nearest(Z, (means - origin) / points.units)[0]]
    if how == "hierarchical" and (turn == 0 or len(Z) > MOST_LEAVES):
        return [_hierarchical(Z, w, k, letters in SPHERICAL, rng)]
    if how not in ("kmeans", "hierarchical"):
        return [PARTITIONS[how](Z, w, k, rng)]
    if turn > 0 or k == 1:  # there is one hierarchy: other starts are by k-means
        return [partitions.by_kmeans(Z, w, k, rng)]
    Y = Z if letters in SPHERICAL else half_whitened(Z, w)
    return [partitions.by_kmeans(X, w, k, rng) for X in (Z, Y) for _ in range(TRIES)]


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
    return partitions.nearest(Y, C)[0]


def _mixture(points: Points, shares: Any, k: int, letters: str) -> Mixture:
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
    return partitions.without_empty(labels, np.sum((Z - centre[labels]) ** 2, axis=1), k)


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
