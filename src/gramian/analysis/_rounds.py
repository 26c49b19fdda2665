"""One round of iterative PCA: complete the table, decompose it, shrink, and measure what came out."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from gramian.likelihood.observed import Survey, host
from gramian.results import NumericalWarning
from gramian.sources import Block, Source, mapped

__all__ = ["LowRank", "Round", "Task", "one_round"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LowRank:
    """The matrix 1 meanᵀ + scores components, in scaled units."""

    mean: Vector
    scores: Matrix
    components: Matrix

    def rows(self, start: int, stop: int) -> Matrix:
        """Return some of its rows."""
        return np.asarray(self.mean + self.scores[start:stop] @ self.components)

    def times(self, factor: Vector) -> LowRank:
        """Return the matrix with its columns multiplied."""
        return LowRank(self.mean * factor, self.scores, self.components * factor)

    def ahead(self, other: LowRank, beta: float) -> LowRank:
        """Return self + β(self − other)."""
        if beta == 0.0:
            return self
        return LowRank(
            (1 + beta) * self.mean - beta * other.mean,
            np.hstack([(1 + beta) * self.scores, -beta * other.scores]),
            np.vstack([self.components, other.components]),
        )


@dataclass(frozen=True, eq=False)
class Task:
    """What does not change from round to round: the data, their weights, and how to decompose them."""

    pca: Any
    source: Source
    k: int
    w: Vector
    seen: Survey
    regularised: bool

    @cached_property
    def norm(self) -> float:
        """Root of the sum of squares of the observed cells about their means, in scaled units."""
        s = self.seen.deviation if self.pca.scale else np.ones(1)
        return math.sqrt(float(np.sum(self.seen.scatter / s**2))) or 1.0


@dataclass(frozen=True, eq=False)
class Round:
    """What one round found.

    Attributes
    ----------
    fitted : LowRank
        Mean and shrunken components of the completed table.
    squares, total : ndarray, float
        Its k + 1 leading squared singular values, and the sum of all.
    objective : float
        ½Σ_observed w(x − m)² + Σφ(σ(m)) at ``fitted``.
    change : float
        ‖fitted − guess‖ over the missing cells, relative to ``Task.norm``.
    noise, scale : float, ndarray
        What c and the columns' scale are by the completed table.
    passes : int
        Over the data.
    """

    fitted: LowRank
    squares: Vector
    total: float
    objective: float
    change: float
    noise: float
    scale: Vector
    passes: int


def one_round(task: Task, guess: LowRank, scale: Vector, noise: float) -> Round:
    """Decompose the table completed by a guess, shrink by c = ``noise``, and look at the cells once more."""
    k = task.k
    fit = clone(task.pca).set_params(n_components=k + 1, scale=False, whiten=False)
    with warnings.catch_warnings():  # the fit of a round is not what the user asked for
        warnings.simplefilter("ignore", NumericalWarning)
        fit.fit(mapped(task.source, lambda block: _completed(block, task, guess, scale)[0]), sample_weight=task.w)
    squares = np.asarray(fit.singular_values_, dtype=np.float64) ** 2
    V, mean = np.asarray(fit.components_[:k], dtype=np.float64), np.asarray(fit.mean_, dtype=np.float64)
    shrink = np.maximum(1.0 - noise / np.maximum(squares[:k], np.finfo(float).tiny), 0.0)
    scores, spread = np.empty((task.source.shape[0], k)), np.zeros(len(mean))
    error = change = 0.0
    for block in task.source.blocks():
        X, missing = _completed(block, task, guess, scale)
        rows, D = slice(block.start, block.stop), X - mean
        w = task.w[rows][:, None]
        scores[rows] = (D @ V.T) * shrink
        moved = w * (D - scores[rows] @ V) ** 2
        spread += np.sum(w * D**2, axis=0)
        change += float(np.sum(moved, where=missing))
        error += float(np.sum(moved, where=~missing))
    total = float(np.sum(spread))
    return Round(
        LowRank(mean, scores, V),
        squares,
        total,
        0.5 * error + float(np.sum(_penalty(shrink * np.sqrt(squares[:k]), noise))),
        math.sqrt(change) / task.norm,
        _noise(task, squares, total) if task.regularised else 0.0,
        _scale(task, scale, spread),
        int(fit.certificate_.passes) + 1,
    )


def _completed(block: Block, task: Task, guess: LowRank, scale: Vector) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Rows in scaled units with missing cells filled by a guess, and which these are; all of a row without weight."""
    X = host(block) / scale
    missing = np.isnan(X) | (task.w[block.start : block.stop, None] == 0)
    return np.where(missing, guess.rows(block.start, block.stop), X), missing


def _scale(task: Task, scale: Vector, spread: Vector) -> Vector:
    """Standard deviations of the completed columns, where these are asked for and not zero."""
    if not task.pca.scale:
        return scale
    return np.where(spread > 0, scale * np.sqrt(spread / (task.seen.weight - 1.0)), scale)


def _noise(task: Task, squares: Vector, total: float) -> float:
    r"""c = n σ̂²: the sum of the squares left out, per degree of freedom, but no more than the first of them.

    .. math::
        \hat\sigma^2 = \frac{np}{\min(p, n-1)}\,\frac{\sum_{i>k}\lambda_i}{(n-1)(p-k)-pk+k^2},\qquad c = n\hat\sigma^2
    """
    n, p, k = task.seen.weight, task.source.shape[1], task.k
    rest = max(total - float(np.sum(squares[:k])), 0.0)
    freedom = (n - 1) * p - (n - 1) * k - p * k + k**2
    return min(n * p / min(p, n - 1) * rest / freedom, float(squares[k]))


def _penalty(y: Vector, c: float) -> Vector:
    """φ_c of shrunken singular values y; 0 without shrinking."""
    if c <= 0.0:
        return 0.0 * y
    return np.asarray(y / 4 * np.sqrt(y**2 + 4 * c) + c * np.arcsinh(y / (2 * math.sqrt(c))) - y**2 / 4)
