"""Eigenvalues of data without components: columns permuted, or drawn anew as normal noise."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.analysis._rank_inputs import WholeFit, host
from gramian.analysis._weights import frequencies
from gramian.compute.threads import n_threads, parallel
from gramian.sources import Source
from gramian.sources.base import memory_budget

__all__ = ["Draw", "eigenvalues_of_draws", "gaussian_null", "permutation_null"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator], Vector]


def eigenvalues_of_draws(
    draw: Draw, count: int, seed: int, numbers: int, progress: Callable[[int, int], None] | None
) -> Matrix:
    """Return the eigenvalues of each draw as a row; a draw holds that many numbers at a time.

    Each draw has a seed of its own, so that the answer does not depend on how many threads share them.
    """
    lock, done = threading.Lock(), [0]

    def one(i: int) -> tuple[int, Vector]:
        values = draw(np.random.default_rng([seed, i]))
        with lock:
            done[0] += 1
            if progress is not None:
                progress(done[0], count)
        return i, values

    def work(share: Sequence[int]) -> list[tuple[int, Vector]]:
        return [one(i) for i in share]

    together = 8 * numbers * n_threads() <= memory_budget()
    parts = parallel(work, range(count)) if together else [work(range(count))]
    return np.array(
        [values for _, values in sorted((pair for part in parts for pair in part), key=lambda pair: pair[0])]
    )


def gaussian_null(whole: WholeFit) -> tuple[Draw, int]:
    """Covariance matrices of independent normal columns with the variances of the data, and the numbers each takes.

    With no more columns than degrees of freedom ν the scatter matrix is drawn itself, as AAᵀ with A lower triangular,
    √χ²(ν − i) on its diagonal and standard normal below (M. Bartlett, 1933): no rows are needed; ν may be a fraction.
    """
    freedom, p = whole.n - 1, whole.p
    spread = np.sqrt(whole.variances)
    scaled = whole.scale is not None
    if p <= freedom:
        return lambda rng: _bartlett(rng, freedom, spread, scaled), 2 * p * p
    rows = max(1, round(freedom))
    return lambda rng: _wide(rng, rows, freedom, spread, scaled), rows * (rows + _width(rows))


def _bartlett(rng: np.random.Generator, freedom: float, spread: Vector, scaled: bool) -> Vector:
    p = len(spread)
    A = np.tril(rng.standard_normal((p, p)), -1)
    A[np.diag_indices(p)] = np.sqrt(rng.chisquare(freedom - np.arange(p)))
    A *= (spread / (np.linalg.norm(A, axis=1) if scaled else math.sqrt(freedom)))[:, None]
    return _descending(A @ A.T)


def _wide(rng: np.random.Generator, rows: int, freedom: float, spread: Vector, scaled: bool) -> Vector:
    """Gram matrix of ``rows`` rows, a few columns at a time: they may be many."""
    G, width = np.zeros((rows, rows)), _width(rows)
    for start in range(0, len(spread), width):
        part = spread[start : start + width]
        A = rng.standard_normal((rows, len(part)))
        A *= part / (np.linalg.norm(A, axis=0) if scaled else math.sqrt(freedom))
        G += A @ A.T
    return _descending(G)


def _width(rows: int) -> int:
    return max(64, 2**20 // rows)


def permutation_null(source: Source, whole: WholeFit, sample_weight: Any) -> tuple[Draw, int]:
    """Covariance matrices of the data with each column permuted by itself, and the numbers each takes.

    Means and standard deviations of the columns stay as they are. Sparse columns get their entries moved to other rows.
    """
    if not source.resident:
        raise ValueError(
            f"n_components='parallel' (null='permutation') shuffles columns in memory, and {source!r} is read in "
            "blocks. Use n_components='parallel-gaussian' (null='gaussian') or 'tracy-widom', or load the data."
        )
    index = np.repeat(np.arange(source.shape[0]), _counts(sample_weight, source.shape[0]))
    scale = np.ones(whole.p) if whole.scale is None else whole.scale
    if source.sparse:
        X = sp.csc_array(source.values[index].astype(np.float64))  # type: ignore[attr-defined]
        X.data /= np.repeat(scale, np.diff(X.indptr))
        return lambda rng: _sparse_draw(rng, X, whole.mean / scale), int(min(X.shape) ** 2 + X.nnz)
    blocks = np.concatenate([host(block.values) for block in source.blocks()])
    columns = np.ascontiguousarray(((blocks - whole.mean) / scale)[index].T)
    return lambda rng: _dense_draw(rng, columns), columns.size + min(columns.shape) ** 2


def _counts(sample_weight: Any, n: int) -> npt.NDArray[np.int64]:
    w = frequencies(sample_weight, n)
    bad = np.flatnonzero(w != np.round(w))
    if len(bad):
        raise ValueError(
            f"n_components='parallel' (null='permutation') repeats rows by their weights, and row {bad[0]} has weight "
            f"{w[bad[0]]:g}, not a whole number. Use n_components='parallel-gaussian' (null='gaussian')."
        )
    return np.asarray(w, dtype=np.int64)


def _dense_draw(rng: np.random.Generator, columns: Matrix) -> Vector:
    Z = rng.permuted(columns, axis=1)
    p, n = Z.shape
    return _descending((Z @ Z.T if p <= n else Z.T @ Z) / (n - 1))


def _sparse_draw(rng: np.random.Generator, X: Any, mean: Vector) -> Vector:
    """(X − 1mᵀ)ᵀ(X − 1mᵀ) or its like on the side of the rows, without X − 1mᵀ."""
    n, p = X.shape
    rows = [rng.choice(n, count, replace=False) for count in np.diff(X.indptr)]
    Z = sp.csc_array((X.data, np.concatenate(rows) if rows else X.indices, X.indptr), shape=X.shape)
    if p <= n:
        return _descending(((Z.T @ Z).toarray() - n * np.outer(mean, mean)) / (n - 1))
    c = Z @ mean
    return _descending(((Z @ Z.T).toarray() - c[:, None] - c[None, :] + mean @ mean) / (n - 1))


def _descending(S: Matrix) -> Vector:
    return np.asarray(np.maximum(np.linalg.eigvalsh(S)[::-1], 0.0))
