"""Intervals of what follows from replicates: loadings and scores."""

from __future__ import annotations

import numpy as np

from gramian.analysis._interval import Interval
from gramian.analysis._model import FittedPCA, plain_scores
from gramian.analysis._quantiles import intervals
from gramian.analysis._replicates import Store
from gramian.analysis._training import Training, float_rows
from gramian.analysis.reading import loadings
from gramian.sources import memory_budget

__all__ = ["loading_intervals", "score_intervals"]


def loading_intervals(pca: FittedPCA, store: Store, level: float, method: str) -> Interval:
    """Intervals of V√λ, variables by rows; one component at a time, as the loadings of all replicates are many."""
    estimate = loadings(pca)
    out = lower, upper, error, bias = [np.empty_like(estimate) for _ in range(4)]
    for l in range(estimate.shape[1]):  # noqa: E741 - the number of a component, as in the formulas
        replicates = np.einsum("bj,bjp->bp", store.turns[:, l], store.components)
        part = intervals(np.ascontiguousarray(estimate[:, l]), replicates, level, method)
        for whole, piece in zip(out, (part.lower, part.upper, part.error, part.bias), strict=True):
            whole[:, l] = piece
    return Interval(estimate, lower, upper, error, bias)


def score_intervals(pca: FittedPCA, training: Training, store: Store, level: float, method: str) -> Interval:
    """Intervals of Aᵀ_bVᵀ_b(x − x̄_b)/s_b for each row x, a few rows at a time."""
    source, (count, k, p) = training.source, store.components.shape
    if store.scales is not None:
        store.components /= store.scales[:, None, :]  # their own intervals are made by now
    directions = store.components.reshape(count * k, p)
    origin = np.zeros(p) if source.sparse else np.asarray(pca.mean_, dtype=np.float64)
    offsets = np.einsum("bkp,bp->bk", store.components, store.means - origin).ravel()
    estimate = plain_scores(pca, source)
    out = lower, upper, error, bias = [np.empty_like(estimate) for _ in range(4)]
    rows = max(1, memory_budget() // (64 * count * k))
    for block in source.blocks(rows):
        x = float_rows(source, block)
        Z = (x @ directions.T).T if source.sparse else directions @ (x - origin).T
        Z -= offsets[:, None]
        part = intervals(estimate[block.start : block.stop].T, Z.reshape(count, k, -1), level, method)
        for whole, piece in zip(out, (part.lower, part.upper, part.error, part.bias), strict=True):
            whole[block.start : block.stop] = piece.T
    return Interval(estimate, lower, upper, error, bias)
