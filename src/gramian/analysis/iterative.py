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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._model import FittedPCA
from gramian.analysis._rounds import LowRank, Round, Task, one_round
from gramian.likelihood.observed import Survey, survey
from gramian.results import Optimum
from gramian.sources import Source

__all__ = ["METHODS", "Completion", "iterative_pca"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

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
    >>> from gramian.analysis.iterative import iterative_pca
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
    return Optimum(name, reason, passes + 1, rounds, phases[-1], gradient, tol, notes)


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
