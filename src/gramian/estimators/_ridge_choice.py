"""The steps of choosing λ: decompose once, leave every row out for every λ, score, fit the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gramian.compute.memory import gibibytes, refuse_beyond_memory
from gramian.estimators._ridge_certificate import Way, certified
from gramian.estimators._ridge_factor import Decomposition, is_safe
from gramian.estimators._ridge_fitting import (
    Solved,
    decompose,
    quiet_if_small,
    scaled_penalties,
    together,
)
from gramian.estimators._ridge_inputs import RidgeInputs
from gramian.estimators._ridge_path import LeftOut, automatic_grid, in_own_units, leave_out, ridge_path
from gramian.estimators._ridge_problem import RidgeProblem, ridge_problem
from gramian.estimators._ridge_routes import route_of
from gramian.linear.path import RidgePath
from gramian.sources import memory_budget

__all__ = ["Chosen", "Task", "choose_penalty"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Score = Callable[[Matrix], Vector]  # predictions of left-out rows, of shape (n, t) → a score for each target, or one


@dataclass(frozen=True, eq=False)
class Task:
    """What RidgeCV was asked for.

    Attributes
    ----------
    alphas : ndarray of shape (L,) or None
        λ, or None for an automatic grid.
    intercept, per_target, store, data : bool
        Fit an intercept; choose for each target; keep the errors of every row; decompose the data, not a Gram matrix.
    criterion : str
        "loo", "gcv" or "marginal_likelihood".
    score : callable or None
        Score of the predictions of the rows left out, where scikit-learn's ``scoring`` was given.
    """

    alphas: Vector | None
    intercept: bool
    criterion: str
    per_target: bool
    store: bool
    data: bool
    score: Score | None


@dataclass(frozen=True, eq=False)
class Chosen:
    """The best λ of each target, its score, its fit, the whole path, and the errors of every row if asked for."""

    alpha: Vector
    score: Vector
    solved: Solved
    path: RidgePath
    results: Matrix | None


def choose_penalty(inputs: RidgeInputs, task: Task) -> Chosen:
    """Decompose, leave out, score, fit."""
    with quiet_if_small(min(inputs.source.shape)):
        return _choose(inputs, task)


def _choose(inputs: RidgeInputs, task: Task) -> Chosen:
    n, p = inputs.source.shape
    if inputs.weights.count < 2:
        raise ValueError(
            f"Found 1 sample (n_samples={n}, weights that stand for {inputs.weights.count:g}): with one row left out "
            "nothing is left to fit. Use Ridge with an alpha of your choice."
        )
    way = _way(n, p, task)
    problem = ridge_problem(inputs, intercept=task.intercept, full=way.method == "primal")
    found, alphas = _decomposed(problem, way, task.alphas)
    lam, _ = scaled_penalties(problem, alphas)
    left = leave_out(problem, found, lam, keep=task.store)
    path = ridge_path(problem, found, lam, alphas, left)
    scores = _scores(problem, found, lam, path, left, task)
    path = in_own_units(path, problem)
    best = np.argmax(np.where(np.isnan(scores), -np.inf, scores), axis=0)
    t = problem.Y.shape[1]
    index = np.broadcast_to(best, (t,))
    fitted = certified(problem, route_of(problem, found, lam[index]), lam[index], way)
    solved = together(problem, [(np.arange(t), fitted)], scaled_penalties(problem, alphas[index])[1], task.data)
    solved = _noting_ends(solved, alphas, alphas[index])
    solved = replace(solved, warnings=(*solved.warnings, *_unscored(scores, problem, task)))
    told = scores if task.score is not None else _criterion(path, task)
    return Chosen(alphas[index], told[best, np.arange(told.shape[1])], solved, path, _results(problem, left, task))


def _noting_ends(solved: Solved, alphas: Vector, chosen: Vector) -> Solved:
    """Say where the best λ lies at an end of those tried: a better one may lie beyond."""
    notes = [
        f"the best λ, {value:g}, is the {name} of the {len(alphas)} tried"
        for value, name in ((alphas.min(), "smallest"), (alphas.max(), "largest"))
        if len(alphas) > 1 and np.any(chosen == value)
    ]
    certificate = solved.certificate
    return replace(solved, certificate=certificate.with_(notes=(*certificate.notes, *notes)))


def _unscored(scores: Matrix, problem: RidgeProblem, task: Task) -> tuple[str, ...]:
    """Say so where no λ could be told from another."""
    if np.all(np.isfinite(scores).any(axis=0)):
        return ()
    constant = np.flatnonzero(problem.energy == 0.0)
    if task.criterion == "marginal_likelihood" and len(constant):
        which = f"Column {constant[0]} of y" if problem.Y.shape[1] > 1 else "y"
        return (
            f"{which} is {'constant' if problem.intercept else '0 in every row'}: every alpha fits it without error, "
            "the likelihood grows without bound and prefers none, so that the first alpha was taken. Leave such a "
            "target out, or use criterion='loo'.",
        )
    return (
        "No alpha has a finite score, so that the first was taken: some row determines its own fit, and nothing is "
        "known of its error when left out. Try larger alphas, or criterion='marginal_likelihood'.",
    )


def _way(n: int, p: int, task: Task) -> Way:
    if task.data:
        return Way("svd", "gcv_mode='svd'")
    name, size = ("dual", n) if n - int(task.intercept) <= p else ("primal", p)
    refuse_beyond_memory(
        24.0 * size * size,
        f"A {size} × {size} Gram matrix with its eigenvectors",
        "Use cv=5, which fits each alpha by itself, or fewer columns.",
    )
    return Way(name, f"every λ from one decomposition, of a {size} × {size} matrix")


def _decomposed(problem: RidgeProblem, way: Way, alphas: Vector | None) -> tuple[Decomposition, Vector]:
    """A decomposition that is safe for the least λ, and the grid, which may follow from it."""
    if alphas is not None:
        lam, _ = scaled_penalties(problem, alphas)
        return decompose(problem, way, float(np.min(lam)), dual=True), alphas
    found = decompose(problem, way, np.inf, dual=True)
    grid = automatic_grid(found.squares)
    if not is_safe(found, problem, float(grid[0])):
        found = decompose(problem, Way("svd", way.reason), 0.0, dual=True)
        grid = automatic_grid(found.squares)
    with np.errstate(over="ignore", under="ignore"):
        own = grid / problem.unit / problem.unit
    if not np.all(np.isfinite(own) & (own > 0)):
        raise ValueError(
            "alphas='auto' would lie beyond the range of float64, as the squares of X do. Multiply X by a constant "
            "that brings its columns near 1."
        )
    return found, own


def _scores(
    problem: RidgeProblem, found: Decomposition, lam: Vector, path: RidgePath, left: LeftOut, task: Task
) -> Matrix:
    """What is to be made large, of shape (L, t), or (L, 1) for all targets together."""
    if task.score is not None:
        return _scored(problem, found, lam, left, task.score)
    return _criterion(path, task)


def _criterion(path: RidgePath, task: Task) -> Matrix:
    """The criterion for each target, or for all: their mean, of likelihoods the sum."""
    scores = -path.score(task.criterion)
    if task.per_target:
        return np.asarray(scores)
    joint = np.sum if task.criterion == "marginal_likelihood" else np.mean
    return np.asarray(joint(scores, axis=1, keepdims=True))


def _scored(problem: RidgeProblem, found: Decomposition, lam: Vector, left: LeftOut, score: Score) -> Matrix:
    """Scores by a function of all predictions: as many λ at a time as fit into the memory budget."""
    n, t = problem.Y.shape
    step = len(lam) if left.errors is not None else max(1, memory_budget() // (8 * n * t))
    out: list[Vector] = []
    for i in range(0, len(lam), step):
        some = left if left.errors is not None else leave_out(problem, found, lam[i : i + step], keep=True)
        assert some.errors is not None
        out += [np.atleast_1d(score(_predictions(problem, some.errors[:, k]))) for k in range(some.errors.shape[1])]
    return np.asarray(out, dtype=np.float64)


def _predictions(problem: RidgeProblem, errors: Matrix) -> Matrix:
    """ŷ of rows left out, in the units of y."""
    return np.asarray((problem.Y - errors + (problem.level + problem.level_low)) / problem.y_unit)


def _results(problem: RidgeProblem, left: LeftOut, task: Task) -> Matrix | None:
    """cv_results_ of shape (n, t, L): squared errors, weighted where the weights are precisions, or predictions."""
    if left.errors is None:
        return None
    if task.score is not None:
        return np.stack([_predictions(problem, e) for e in np.moveaxis(left.errors, 1, 0)], axis=2)
    squares = np.where(np.isnan(left.errors), 0.0, left.errors / problem.y_unit) ** 2
    w = problem.weights
    if w.values is not None and not w.counts:
        squares *= w.values[:, None, None]
    return np.ascontiguousarray(np.swapaxes(squares, 1, 2))


def check_store(n: int, L: int, t: int) -> None:
    """Refuse to keep errors of every row, λ and target where they would not fit."""
    nbytes = 16.0 * n * L * t
    refuse_beyond_memory(nbytes, f"cv_results_ ({gibibytes(nbytes)})", "Use store_cv_results=False.")
