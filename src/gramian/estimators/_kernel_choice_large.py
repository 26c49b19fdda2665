"""Choosing a kernel and λ where no n×n matrix is decomposed: on rows held out, or for a model of few centres."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.compute.devices import host
from gramian.estimators._centres import Centres, choose_centres
from gramian.estimators._kernel_choice import Choice, Rule, alphas_of, best_pair, misses, picked, refuse_too_few
from gramian.estimators._kernel_inducing import decompose_centres
from gramian.estimators._kernel_inputs import is_precomputed
from gramian.estimators._kernel_matrices import multiplied
from gramian.estimators._kernel_path import automatic_alphas
from gramian.estimators._kernel_solving import Factors, longest_squares, solve
from gramian.estimators._kernel_task import Task
from gramian.kernels import Kernel
from gramian.linear.inducing import Decomposed

__all__ = ["ENOUGH", "HELD_OUT", "choose_held_out", "choose_inducing", "held_out_rows"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

HELD_OUT = 5  # one row in so many
ALPHAS = (1e-9, 1.0, 16)  # least and largest λ as shares of the largest eigenvalue, and how many, for iterations
ENOUGH = 1e-3  # of the residual: a change of predictions far below their errors
STEPS = 100  # iterations after which predictions are judged as they are
COLUMNS = 64  # solved for at once: more would take memory and save no evaluations
RANK = 100  # of a factor whose largest eigenvalue is that of the matrix, to a few digits


def held_out_rows(n: int, seed: int, labels: Any = None) -> tuple[Index, Index]:
    """Split rows into those to fit and those to judge by, a fifth; of each class alike where there are labels.

    Examples
    --------
    >>> from gramian.estimators._kernel_choice_large import held_out_rows
    >>> fit, judge = held_out_rows(10, seed=0)
    >>> len(fit), len(judge)
    (8, 2)
    """
    order = np.random.default_rng(seed).permutation(n)
    if labels is not None:
        order = order[np.argsort(np.asarray(labels)[order], kind="stable")]
    judge = np.zeros(n, dtype=bool)
    judge[order[HELD_OUT - 1 :: HELD_OUT]] = True
    return np.flatnonzero(~judge), np.flatnonzero(judge)


def choose_held_out(task: Task, kernels: list[Kernel], rule: Rule) -> Choice:
    """Fit four fifths of the rows for every λ, all in one block, and judge by the others."""
    if rule.criterion in ("gcv", "marginal_likelihood"):
        raise ValueError(
            f"criterion={rule.criterion!r} needs the eigenvalues of the kernel matrix of {task.n} rows, which "
            "solver='cg' does not find. Use criterion='loo', by rows held out, or solver='inducing' or 'eigh'."
        )
    labels = np.unique(task.Y, axis=0, return_inverse=True)[1].reshape(-1) if rule.labels else None
    fit, judge = held_out_rows(task.n, task.seed, labels)
    if not len(judge):
        raise ValueError(f"n_samples={task.n} are too few to hold out one in {HELD_OUT}. Use solver='eigh'.")
    tried = [_tried(task, kernel, rule, fit, judge) for kernel in kernels]
    w = task.frequencies[judge]
    copies = rule.copies[judge] if rule.copies is not None else w if task.counts else np.ones(len(judge))
    size = float(copies.sum())
    how = (f"chosen by the errors of {len(judge)} rows held out, and fitted to all",)
    return _best(task, kernels, rule, tried, judge, w / size, how)


def _best(
    task: Task, kernels: list[Kernel], rule: Rule, tried: list[tuple[Vector, Matrix]], rows: Index, w: Vector, how: Any
) -> Choice:
    """The best of all pairs, from the λ of each kernel and the errors of rows left out, of shape (m, λs, t)."""
    squares = [np.tensordot(w, errors**2, axes=1) for _, errors in tried]
    scores, Y = squares, task.Y[rows][:, None, :]
    if rule.criterion == "accuracy":
        scores = [(w / w.sum() @ misses(Y, errors))[:, None] for _, errors in tried]
    found = [best_pair(S, tie, rule.per_target) for S, tie in zip(scores, squares, strict=True)]
    for k, S in enumerate(scores):
        rule.tell(kernels[k], f"{k + 1} of {len(kernels)}", tried[k][0], S)
    k = min(range(len(found)), key=lambda i: found[i][1])
    t = task.Y.shape[1]
    index = np.broadcast_to(found[k][0], (t,))
    alphas, errors = tried[k]
    chosen = task.with_(kernel=kernels[k], lam=alphas[index])
    grid, means = np.array([a for a, _ in tried]), np.array([rule.joint(S) for S in scores])
    left_out = errors[:, index, np.arange(t)]
    return Choice(chosen, index, picked(scores[k], index), means, grid, None, None, left_out, k, rows, how)


def _tried(task: Task, kernel: Kernel, rule: Rule, fit: Index, judge: Index) -> tuple[Vector, Matrix]:
    """λ and the errors, of shape (rows held out, λs, t), of one kernel."""
    part = _part(task.with_(kernel=kernel), fit)
    alphas = alphas_of(rule.alphas, _largest(part), _coarse)
    t = task.Y.shape[1]
    lam = np.repeat(alphas, t)
    across = _across(task.with_(kernel=kernel), judge, fit)
    means = multiplied(part.kernel_operator(), part.share[:, None])[:, 0] if part.intercept else np.zeros(part.n)
    parts = []
    for columns in _groups(len(lam)):
        some = part.with_(Y=part.Y[:, columns % t], lam=lam[columns], tol=ENOUGH, max_iterations=STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # judged as they are, by rows they have not seen
            alpha = some.dual(solve(some, "cg", rule.reason).beta)
        parts.append(across(alpha) + some.mean - means @ alpha)
    f = np.concatenate(parts, axis=1).reshape(len(judge), len(alphas), t)
    return alphas, task.Y[judge][:, None, :] - f


def _groups(size: int) -> Iterator[Index]:
    return (np.arange(start, min(start + COLUMNS, size)) for start in range(0, size, COLUMNS))


def _coarse(largest: float) -> Vector:
    return automatic_alphas(largest, ALPHAS)


def _largest(task: Task) -> float:
    """The largest eigenvalue of B, by a factor of low rank, which lies below B and is near it where it matters.

    0 where that is what rounding leaves of rows that centring makes 0.
    """
    factors = Factors(task)
    F = factors(min(RANK, task.n))
    top = float(np.max(np.linalg.eigvalsh(np.asarray(host(F.T @ F), np.float64)), initial=0.0))
    slip = 4 * float(np.finfo(factors.dtype).eps) if task.intercept else 0.0
    return top if top > slip**2 * float(task.frequencies @ np.abs(longest_squares(task))) else 0.0


def _part(task: Task, rows: Index) -> Task:
    """The regression of some rows."""
    points = task.points[np.ix_(rows, rows)] if is_precomputed(task.kernel) else _taken(task.points, rows)
    return task.with_(points=points, Y=task.Y[rows], w=None if task.w is None else task.w[rows])


def _taken(points: Any, rows: Index) -> Any:
    return [points[i] for i in rows] if isinstance(points, (list, tuple)) else points[rows]


def _across(task: Task, judge: Index, fit: Index) -> Any:
    """Return the function that multiplies by k(rows held out, rows fitted)."""
    if is_precomputed(task.kernel):
        K = task.points[np.ix_(judge, fit)]
        return lambda alpha: K @ alpha
    A = task.between(_taken(task.points, judge), _taken(task.points, fit), store="auto")
    return partial(multiplied, A)


def choose_inducing(task: Task, kernels: list[Kernel], rule: Rule, n_centres: int | None) -> Choice:
    """Decompose the model of each kernel's centres: every λ, and rows left out exactly, by two passes over the rows."""
    best: Any = None
    rank, tried = (np.inf, np.inf), []
    for k, kernel in enumerate(kernels):
        model = _decomposed(task.with_(kernel=kernel), rule.copies, n_centres)
        system = model[1]
        path = system.path(alphas_of(rule.alphas, float(np.max(system.filter.squares, initial=0.0))))
        S = path.score(rule.criterion) if rule.criterion != "accuracy" else _wrong(system, path.alphas, task)
        index, mine = best_pair(S, path.loo, rule.per_target)
        tried.append((path.alphas, rule.joint(S)))
        rule.tell(kernel, f"{k + 1} of {len(kernels)}", path.alphas, S)
        if best is None or mine < rank:
            best, rank = (k, model, path, S, np.broadcast_to(index, (task.Y.shape[1],))), mine
    refuse_too_few(task.n, rank, tried)
    k, model, path, S, index = best
    chosen = task.with_(kernel=kernels[k], lam=path.alphas[index])
    left_out = _own_errors(model[1], chosen.lam, task) if rule.labels else np.empty((0, len(index)))
    grid, means = np.array([a for a, _ in tried]), np.array([s for _, s in tried])
    how = ("chosen for the model of the centres, by leaving out each row with the centres as they are",)
    return Choice(chosen, index, picked(S, index), means, grid, path, None, left_out, k, None, how, model)


def _decomposed(task: Task, copies: Vector | None, n_centres: int | None) -> tuple[Centres, Decomposed]:
    """Choose centres and decompose their model, unless its matrices would not fit."""
    options = {"weights": task.w, "seed": task.seed, "device": task.device}
    chosen = choose_centres(task.kernel, task.points, n_centres, **options)
    return chosen, decompose_centres(task, chosen, copies)


def _wrong(system: Decomposed, alphas: Vector, task: Task) -> Matrix:
    """Weighted share of rows put into a wrong class when left out, of shape (λs, 1)."""
    total = np.zeros(len(alphas))
    for rows, errors in system.left_out(alphas):
        total += task.share[rows] @ misses(task.Y[rows][:, None, :], errors)
    return total[:, None]


def _own_errors(system: Decomposed, lam: Vector, task: Task) -> Matrix:
    """Errors of rows left out, of shape (n, t), for one λ of all targets; 0 of rows without weight."""
    out = np.zeros_like(task.Y)
    for rows, errors in system.left_out(lam[:1]):
        out[rows] = errors[:, 0, :]
    return out
