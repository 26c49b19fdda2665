r"""Iterative PCA of tables with missing cells: fill in, decompose, fill in what the decomposition says, and again.

Each round decomposes the completed table X̃ = mean + UΣVᵀ and fills the missing cells with mean + U f(Σ) Vᵀ. With
f(σ) = σ this minimises Σ_observed w(x − m)² over means and rank-k matrices (Kiers 1997; missMDA calls it EM). With
f(σ) = σ − c/σ it is the regularised iterative PCA of Josse and Husson (2012), missMDA's default. For a fixed c that is
the proximal step of the penalty

.. math:: \varphi_c(y) = \tfrac y4\sqrt{y^2+4c} + c\,\mathrm{asinh}\frac{y}{2\sqrt c} - \tfrac{y^2}4,
    \qquad \varphi_c'(y) = f^{-1}(y) - y

so that every round lowers ½Σ_observed w(x − m)² + Σ φ_c(σ_i(m)): both methods have an objective. The noise c and the
scale of the columns are held while the rounds go on, then estimated again from the completed table, until these too
stand still.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from gramian.compute.devices import to_numpy
from gramian.pca.factor import Survey, survey
from gramian.pca.model import FittedPCA
from gramian.results import NumericalWarning, Optimum
from gramian.sources import Block, Source, mapped

__all__ = ["METHODS", "Completion", "LowRank", "Round", "Task", "iterative_pca", "one_round"]

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
    X = to_numpy(block.values, float) / scale
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


METHODS = ("least-squares", "regularised")


@dataclass(frozen=True, eq=False)
class Completion:
    """A table with its missing cells filled by k components.

    Attributes
    ----------
    mean, scale : ndarray of shape (p,)
        Of the completed table, in the data's units.
    components : ndarray of shape (k, p)
        Orthonormal rows.
    variances : ndarray of shape (k,)
        Eigenvalues of the completed table's covariance, scaled columns, divisor Σw − 1.
    total, noise : float
        Their sum over all components, and the noise variance.
    fitted : LowRank
        What the missing cells were filled with, in scaled units.
    phases : tuple of ndarray
        The objective after each step, a new array whenever the noise or the scale was estimated anew.
    certificate : Optimum
        Its objective is that of the last phase, its gradient the last change of the missing cells, and of noise and
        scale, relative to the spread of the observed ones.
    """

    mean: Vector
    scale: Vector
    components: Matrix
    variances: Vector
    total: float
    noise: float
    weight: float
    fitted: LowRank
    phases: tuple[Vector, ...]
    certificate: Optimum

    def completed(self, X: Any) -> Matrix:
        """Return the rows this was made from with NaN cells filled in; they must come in the same order."""
        D = np.array(X, dtype=np.float64)
        fit = self.fitted.rows(0, len(D)) * self.scale
        return np.where(np.isnan(D), fit, D)


def iterative_pca(
    pca: FittedPCA,
    source: Source,
    k: int,
    w: Vector | None = None,
    *,
    method: str = "regularised",
    tol: float = 1e-6,
    max_iterations: int = 1000,
) -> Completion:
    """Complete a table by k components; see the module for the mathematics.

    Parameters
    ----------
    pca : PCA
        Says how to decompose (``svd_solver``, ``tol``, ``scale``); need not be fitted.
    source : Source
        The rows; NaN cells are missing.
    k : int
        Number of components.
    w : ndarray of shape (n,), optional
        Frequencies of the rows.
    method : {"regularised", "least-squares"}, default="regularised"
        missMDA's "Regularized" and "EM".
    tol : float, default=1e-6
        Change of the filled cells to reach, relative to the spread of the observed ones.
    max_iterations : int, default=1000
        Most rounds.

    Returns
    -------
    Completion
        Components, filled cells and certificate.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.pca.iterative import iterative_pca
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    >>> X[3, 1] = np.nan
    >>> found = iterative_pca(gramian.PCA(), gramian.open(X), 1, method="least-squares")
    >>> round(float(found.completed(X)[3, 1]), 3)
    8.0
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    seen = survey(source, w)
    _check_rank(k, seen, source.shape[1])
    every = np.ones(source.shape[0]) if w is None else w
    task = Task(pca, source, k, every, seen, method == "regularised")
    return _iterate(task, tol, max_iterations)


def _check_rank(k: int, seen: Survey, p: int) -> None:
    most = min(seen.rows - 2, math.ceil(seen.weight) - 2, p - 1)
    if not 1 <= k <= most:
        raise ValueError(
            f"n_components={k} must be between 1 and {most}, two less than the rows (the sum of the weights) and one "
            "less than the columns, where values are missing."
        )


def _iterate(task: Task, tol: float, most: int) -> Completion:
    """Rounds at fixed noise and scale until these matter more than the rounds; then estimate them anew."""
    n, p = task.source.shape
    scale = task.seen.deviation if task.pca.scale else np.ones(p)
    fit = LowRank(task.seen.mean / scale, np.zeros((n, 0)), np.zeros((0, p)))
    noise = one_round(task, fit, scale, 0.0).noise if task.regularised else 0.0
    within = 1e-2 if task.regularised or task.pca.scale else tol
    phases: list[Vector] = []
    passes = rounds = 0
    while True:
        steps, trace, last = _phase(task, fit, scale, noise, within, most - rounds)
        passes, rounds, phases = passes + sum(s.passes for s in steps), rounds + len(steps), [*phases, np.array(trace)]
        drift = _drift(last, noise, scale)
        gradient = max(last.change, drift)
        if gradient <= tol or rounds >= most:
            certificate = _certificate(task, phases, gradient, tol, passes, rounds)
            return _completion(task, last, scale, noise, tuple(phases), certificate)
        fit = last.fitted.times(scale / last.scale)
        noise, scale, within = last.noise, last.scale, min(within, max(tol, 0.1 * drift))


def _phase(
    task: Task, fit: LowRank, scale: Vector, noise: float, within: float, most: int
) -> tuple[list[Round], list[float], Round]:
    """Rounds with momentum (Nesterov's, restarted where the objective would rise) until the cells stand still."""
    steps: list[Round] = []
    trace: list[float] = []
    momentum, before = 1.0, fit
    last: Round | None = None
    while last is None or len(steps) < most:
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        beta = (momentum - 1) / following
        step = one_round(task, fit.ahead(before, beta), scale, noise)
        steps.append(step)
        if beta > 0 and step.objective > trace[-1]:
            momentum, before = 1.0, fit  # it overshot: from here a plain round, which never loses
            continue
        trace.append(step.objective)
        last = step
        if step.change <= within:
            break
        before, fit, momentum = fit, step.fitted, following
    return steps, trace, last


def _drift(step: Round, noise: float, scale: Vector) -> float:
    """Relative change that estimating noise and scale anew would make."""
    relative = abs(step.noise - noise) / max(step.noise, noise) if noise > 0 else 0.0
    return max(relative, float(np.max(np.abs(step.scale / scale - 1.0))))


def _certificate(task: Task, phases: list[Vector], gradient: float, tol: float, passes: int, rounds: int) -> Optimum:
    name = "regularised iterative PCA" if task.regularised else "iterative PCA (least squares of the observed cells)"
    reason = f"{task.seen.missing} cells are missing"
    notes = (f"noise and scale were estimated {len(phases)} times",) if len(phases) > 1 else ()
    return Optimum(name, reason, passes + 1, rounds, phases[-1], gradient, tolerance=tol, notes=notes)


def _completion(
    task: Task, step: Round, scale: Vector, noise: float, phases: tuple[Vector, ...], certificate: Optimum
) -> Completion:
    freedom = task.seen.weight - 1.0
    rest = max(step.total - float(np.sum(step.squares[: task.k])), 0.0)
    dimensions = min(task.source.shape[1], math.ceil(freedom)) - task.k
    return Completion(
        step.fitted.mean * scale,
        scale,
        step.fitted.components,
        step.squares[: task.k] / freedom,
        step.total / freedom,
        (noise if task.regularised else rest / dimensions) / freedom,
        task.seen.weight,
        step.fitted,
        phases,
        certificate,
    )
