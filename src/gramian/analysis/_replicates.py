"""Fits of a PCA to resampled rows: a replicate is the same rows with other frequencies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from gramian.analysis._model import FittedPCA
from gramian.analysis._scored import incomplete_fit
from gramian.analysis._training import Training, dense_rows
from gramian.compute.threads import n_threads, parallel, quiet_blas
from gramian.results import NumericalWarning
from gramian.sources import memory_budget

__all__ = ["Draws", "Fit", "Progress", "Store", "each_replicate", "matched", "refit", "turn"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Progress = Callable[[int, int], Any]

NARROW = 200  # columns up to which a p×p matrix per replicate is quicker than a fit
SAFE = 1e-5  # λ_k/λ₁ down to which a Gram matrix keeps ten digits of λ_k
DUST = 1e-13  # λ/λ₁ up to which an eigenvalue of a Gram matrix may be rounding alone


@dataclass(frozen=True, eq=False)
class Draws:
    """Frequencies of replicates: multinomial, one generator each, so that threads do not change them."""

    seeds: Sequence[np.random.SeedSequence]
    size: int
    shares: Vector

    def weights(self, b: int) -> Vector:
        """Return the frequencies of replicate b."""
        return np.random.default_rng(self.seeds[b]).multinomial(self.size, self.shares).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Fit:
    """One replicate's PCA: λ, λ/Σλ, V with components as rows, x̄, s where the model scales, the rank seen."""

    variances: Vector
    ratios: Vector
    components: Matrix
    mean: Vector
    scale: Vector | None
    rank: int
    converged: bool = True


class Store:
    """The aligned replicates, each filled in at its place by whichever thread fitted it.

    ``turns`` are the k×k matrices that make aligned loadings √λV of aligned components.
    """

    def __init__(self, V: Matrix, deviations: Vector, count: int, align: str, scaled: bool) -> None:
        k, p = V.shape
        self.V, self.align = V, align
        self.loadings = deviations[:, None] * V
        self.turns, self.converged = np.zeros((count, k, k)), np.ones(count, dtype=np.bool_)
        self.variances, self.ratios = np.empty((count, k)), np.empty((count, k))
        self.components, self.means = np.empty((count, k, p)), np.empty((count, p))
        self.scales = np.empty((count, p)) if scaled else None
        self.order = np.empty((count, k), dtype=np.intp)

    def __call__(self, b: int, fit: Fit) -> None:
        k = len(self.V)
        if fit.rank < k:
            raise ValueError(
                f"Replicate {b} drew rows of rank {fit.rank}, too few for {k} components: fit fewer components, or "
                "bring more rows."
            )
        nearest, self.order[b] = matched(self.V, fit.components[: fit.rank])
        if self.align == "order":
            self.components[b], self.turns[b] = nearest, np.diag(np.sqrt(fit.variances[self.order[b]]))
        else:
            W, spread = fit.components[:k], np.sqrt(fit.variances[:k])[:, None]
            R, Q = turn(self.V, W), turn(self.loadings, spread * W)
            self.components[b], self.turns[b] = R @ W, Q @ (spread * R.T)
        self.converged[b] = fit.converged
        self.variances[b], self.ratios[b], self.means[b] = fit.variances[:k], fit.ratios[:k], fit.mean
        if self.scales is not None:
            self.scales[b] = fit.scale


def each_replicate(
    pca: FittedPCA, training: Training, draws: Draws, k: int, use: Callable[[int, Fit], None], progress: Progress
) -> None:
    """Call ``use(b, fit)`` with every replicate's fit of k components, and ``progress(done, total)`` in between."""
    fit, threaded = _method(pca, training, k)
    total = len(draws.seeds)
    step = max(n_threads(), -(-total // 100))

    def work(share: Sequence[int]) -> None:
        for b in share:
            use(b, _named_errors(fit, b, draws.weights(b)))

    with quiet_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # of components beyond the rank, which are told by it
        for start in range(0, total, step):
            chunk = range(start, min(start + step, total))
            if threaded:
                parallel(work, chunk)
            else:
                work(chunk)
            progress(chunk.stop, total)


def _named_errors(fit: Callable[[Vector], Fit], b: int, w: Vector) -> Fit:
    try:
        return fit(w)
    except ValueError as error:  # a column of which no cell was drawn, say
        raise ValueError(f"Replicate {b} could not be fitted: {error}") from error


def _method(pca: FittedPCA, training: Training, k: int) -> tuple[Callable[[Vector], Fit], bool]:
    """Return how to fit one replicate, and whether several may be fitted at once."""
    source = training.source
    n, p = source.shape
    small = p <= NARROW and 8 * n * p * (1 + 2 * n_threads()) <= memory_budget()
    model = clone(pca).set_params(n_components=k, whiten=False)
    if incomplete_fit(pca):
        how = pca._missing_method
        return (lambda w: _fitted(clone(model).fit_incomplete(source, method=how, sample_weight=w))), False
    if source.resident and not source.sparse and small:
        X, scale = dense_rows(source), pca.scale_ is not None
        return (lambda w: refit(X, w, k, scale, pca.n_components_)), True
    return (lambda w: _fitted(clone(model).fit(source, sample_weight=w))), False


def _fitted(model: Any) -> Fit:
    named = (model.explained_variance_, model.explained_variance_ratio_, model.components_, model.mean_)
    variances, ratios, components, mean = (np.asarray(x, dtype=np.float64) for x in named)
    scale = None if model.scale_ is None else np.asarray(model.scale_, dtype=np.float64)
    # the residuals of a complete fit are in its tolerance; an optimum may not have been reached
    converged = not incomplete_fit(model) or model.certificate_.converged
    return Fit(variances, ratios, components, mean, scale, model.rank_, converged)


def refit(X: Matrix, w: Vector, k: int, scale: bool, needed: int) -> Fit:
    """PCA of the rows of X with frequencies w, as ``PCA(k, scale=scale).fit(X, sample_weight=w)`` finds it.

    The first ``needed`` components have all their digits; the others are there to be changed places with.
    """
    used = w > 0
    w, origin = w[used], X[np.argmax(used)]
    D = X[used] - origin  # a column that is constant here becomes exactly 0
    total = float(w.sum())
    m = w @ D / total
    D -= m
    D *= np.sqrt(w)[:, None]
    squares = np.einsum("ij,ij->j", D, D)
    s = np.where(squares > 0, np.sqrt(squares / (total - 1)), 1.0) if scale else None
    D = D if s is None else np.divide(D, s, out=D)
    whole = float(np.sum(squares if s is None else squares / s**2))
    values, V, rank = _leading(D, k, needed)
    return Fit(values / (total - 1), values / (whole or 1.0), V, origin + m, s, rank)


def _leading(D: Matrix, k: int, needed: int) -> tuple[Vector, Matrix, int]:
    """Squared singular values, right singular vectors as rows, and how many of them are more than rounding."""
    n, p = D.shape
    if n >= p:
        values, vectors = np.linalg.eigh(D.T @ D)
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
        if values[needed - 1] > SAFE * values[0]:
            return np.maximum(values, 0.0), vectors.T, int(np.count_nonzero(values > DUST * values[0]))
    _, sigma, right = np.linalg.svd(D, full_matrices=False)
    sigma, right = sigma[:k], right[:k]
    rank = int(np.count_nonzero(sigma > 32 * 2.0**-52 * min(n, p) ** 0.5 * sigma[0]))
    return sigma**2, right, rank


def matched(V: Matrix, W: Matrix) -> tuple[Matrix, npt.NDArray[np.intp]]:
    """Rows of W reordered and turned to lie nearest to those of V: the best signed permutation; and the order."""
    similarity = V @ W.T
    _, order = linear_sum_assignment(-np.abs(similarity))
    signs = np.where(similarity[np.arange(len(V)), order] < 0, -1.0, 1.0)
    return W[order] * signs[:, None], order


def turn(V: Matrix, W: Matrix) -> Matrix:
    """The orthogonal R for which RW is nearest to V: the orthogonal Procrustes problem."""
    left, _, right = np.linalg.svd(V @ W.T)
    return np.asarray(left @ right)
