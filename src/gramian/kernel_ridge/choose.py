"""Choosing a kernel and λ where no n×n matrix is decomposed: on rows held out, or for a model of few centres."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.compute.devices import describe, free_bytes, to_numpy
from gramian.compute.memory import available_memory
from gramian.inputs.kernels import is_precomputed, multiplied
from gramian.kernel_ridge.certificate import INDEFINITE_NOTE, Fitted, longest_squares, warn_if_indefinite
from gramian.kernel_ridge.inducing import Centres, choose_centres, decompose_centres
from gramian.kernel_ridge.model import _some_rows
from gramian.kernel_ridge.path import Eigen, automatic_alphas, eigen_bytes, eigen_system, refined
from gramian.kernel_ridge.problem import Task
from gramian.kernel_ridge.solve import HUGE, HUGE_CARD, Factors, solve
from gramian.kernels import Kernel, as_kernel
from gramian.linear.inducing import Decomposed
from gramian.linear.path import RidgePath
from gramian.sources import Source

__all__ = [
    "ENOUGH",
    "EXACT",
    "EXACT_CARD",
    "HELD_OUT",
    "TOLERANCE",
    "Choice",
    "Rule",
    "alphas_of",
    "best_pair",
    "candidates",
    "choose_exact",
    "choose_held_out",
    "choose_inducing",
    "held_out_rows",
    "misses",
    "picked",
    "refuse_too_few",
    "route",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EXACT = 8000  # rows up to which one decomposition takes about a minute
EXACT_CARD = 20_000  # ... and about half a minute on a card
TOLERANCE = 1e-8  # of the residual: at the smallest λ that are tried, rounding of the kernel allows no 1e-10


@dataclass(frozen=True, eq=False)
class Rule:
    """By what to choose.

    Attributes
    ----------
    alphas : "auto" or ndarray
        λ to choose from.
    criterion : str
        One of :data:`gramian.linear.path.CRITERIA`, or "accuracy" of labels.
    per_target : bool
        Whether each target has a λ of its own.
    reason, tol : str, float
        Why the solver was chosen; tolerance of the residual.
    labels : bool
        Whether targets are ±1: one column, or one for each class.
    copies : ndarray or None
        How often each row is there, as for :func:`gramian.kernel_ridge.path.eigen_system`.
    show : callable or None
        Called with a line of text on each kernel as it is tried.
    """

    alphas: Any
    criterion: str = "loo"
    per_target: bool = False
    reason: str = "asked for"
    tol: float = TOLERANCE
    labels: bool = False
    copies: Vector | None = None
    show: Callable[[str], None] | None = None

    def tell(self, kernel: Kernel, number: str, alphas: Vector, S: Matrix) -> None:
        """Show the best λ of one kernel and its score, larger being better."""
        if self.show is None:
            return
        values = -self.joint(S) + float(self.criterion == "accuracy")
        best = int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
        self.show(f"{kernel!r}, {number}: {self.criterion} score {values[best]:.4g} at λ = {alphas[best]:.3g}")

    def joint(self, S: Matrix) -> Vector:
        """One number for each λ, of all targets: likelihoods multiply, errors are averaged."""
        return np.asarray(np.sum(S, axis=-1) if self.criterion == "marginal_likelihood" else np.mean(S, axis=-1))

    def scores(self, system: Eigen, path: RidgePath) -> Matrix:
        """What is to be made small, of shape (λs, t); the share of errors has one column."""
        if self.criterion != "accuracy":
            return path.score(self.criterion)
        w, total = system.task.share, np.zeros(len(path.alphas))
        for rows, _, errors in system.all_errors(path.alphas):
            total += w[rows] @ misses(system.task.Y[rows][:, None, :], errors)
        return np.asarray(np.where(system.usable(path.alphas), total, np.nan)[:, None])


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel and λ chosen, and what the others scored.

    Attributes
    ----------
    task : Task
        With the kernel and the λ of each target that were chosen.
    index, best : ndarray of shape (t,)
        Which λ that is; what was made small, there.
    scores, alphas : ndarray of shape (kernels, λs)
        What was made small, of all targets; λ.
    path, fitted : RidgePath or None, Fitted or None
        Of the kernel chosen; β and its certificate, where the choice made them on the way.
    left_out : ndarray of shape (m, t)
        Errors of predictions of rows left out, at the pair chosen.
    which : int
        Number of the kernel chosen.
    rows : ndarray of shape (m,) or None
        Which rows were left out; None is all.
    how : tuple of str
        How it was chosen, where not by all rows in turn.
    model : tuple or None
        Centres and the decomposition of their model, where the choice made one.
    """

    task: Task
    index: npt.NDArray[np.intp]
    best: Vector
    scores: Matrix
    alphas: Matrix
    path: RidgePath | None
    fitted: Fitted | None
    left_out: Matrix
    which: int = 0
    rows: npt.NDArray[np.intp] | None = None
    how: tuple[str, ...] = ()
    model: tuple[Centres, Decomposed] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: how it was chosen, and where λ is the smallest or largest of several tried."""
        tried = self.alphas[self.which]
        ends = {"smallest": tried.min(), "largest": tried.max()} if len(tried) > 1 else {}
        edges = (
            f"λ = {value:.3g} is the {name} tried: the best may lie beyond, give other alphas"
            for name, value in ends.items()
            if np.any(self.task.lam == value)
        )
        return (*self.how, *edges)


def route(n: int, solver: str, *, whole: bool = False, file: bool = False, device: Any = None) -> tuple[str, str]:
    """Return how to choose, and the reason: as asked for, or by size.

    One eigendecomposition up to 8,000 rows, where three matrices of n² numbers fit in memory, and of a kernel known by
    a function or a matrix (``whole``); conjugate gradients on four fifths of up to 200,000 rows; else inducing points.
    On a card up to 20,000 rows, where the matrices fit there, and up to 3 million.

    Examples
    --------
    >>> from gramian.kernel_ridge.choose import route
    >>> route(3_000, "auto")[0], route(50_000, "auto")[0]
    ('eigh', 'cg')
    """
    if solver != "auto":
        return solver, f"solver={solver!r}"
    if file:
        return "inducing", f"{n} rows in a file: it is read block by block"
    card = device is not None and device.type == "cuda"
    most, huge, free = (EXACT_CARD, HUGE_CARD, free_bytes(device)) if card else (EXACT, HUGE, available_memory())
    where = f" on {describe(device)}" if card else ""
    if whole or (n <= most and eigen_bytes(n, device=device) <= 0.8 * free):
        return "eigh", f"{n} rows: one decomposition{where} gives every λ"
    if n <= huge:
        return "cg", f"{n} rows: a decomposition{where} takes too long"
    return "inducing", f"{n} rows: a product with every pair of them{where} takes too long"


def candidates(model: Any, points: Any) -> list[Kernel]:
    """The kernels to choose from: each of ``model.kernel`` with each of ``model.gamma``, resolved from the points."""
    names = list(model.kernel) if isinstance(model.kernel, (list, tuple)) else [model.kernel]
    gammas = list(model.gamma) if isinstance(model.gamma, (list, tuple, np.ndarray)) else [model.gamma]
    if not names or not gammas:
        raise ValueError("There is nothing to choose from: kernel and gamma must not be empty lists.")
    extra = model.kernel_params or {}
    every = [as_kernel(name, gamma, model.degree, model.coef0, **extra) for name in names for gamma in gammas]
    if (len(every) > 1 or isinstance(model.kernel, (list, tuple))) and any(is_precomputed(kernel) for kernel in every):
        raise ValueError("A precomputed kernel matrix is one kernel: give kernel='precomputed' and one gamma.")
    if isinstance(points, Source):
        points = _some_rows(points)
    if not isinstance(points, list) and not is_precomputed(every[0]):
        every = [kernel.resolved(points) for kernel in every]
    return [kernel for k, kernel in enumerate(every) if kernel not in every[:k]]  # not all can be hashed


def alphas_of(alphas: Any, largest: float, span: Callable[[float], Vector] = automatic_alphas) -> Vector:
    """Λ as given, each positive; or found from the largest eigenvalue."""
    if isinstance(alphas, str) and alphas == "auto":
        return span(largest)
    try:
        values = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if isinstance(alphas, str) or values.ndim != 1 or not len(values) or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"alphas must be 'auto' or positive numbers, got {alphas!r}.")
    return values


def best_pair(S: Matrix, tie: Matrix, per_target: bool) -> tuple[npt.NDArray[np.intp], tuple[float, float]]:
    """Index of the best λ for each target, and the two numbers by which kernels are compared: smaller is better."""
    S, tie = (np.where(np.isnan(values), np.inf, values) for values in (S, tie))
    if not per_target:
        S, tie = S.sum(axis=1, keepdims=True), tie.sum(axis=1, keepdims=True)
    index = np.array([np.lexsort((tie[:, j], S[:, j]))[0] for j in range(S.shape[1])])
    columns = np.arange(S.shape[1])
    return index, (float(S[index, columns].sum()), float(tie[index, columns].sum()))


def misses(Y: Matrix, errors: Matrix) -> npt.NDArray[np.bool_]:
    """Whether Y − e points to another class than Y of ±1 does: by its sign, or by its largest column."""
    values = Y - errors
    if values.shape[-1] == 1:
        return np.asarray((values > 0) != (Y > 0))[..., 0]
    return np.asarray(np.argmax(values, axis=-1) != np.argmax(Y, axis=-1))


def choose_exact(task: Task, kernels: list[Kernel], rule: Rule) -> Choice:
    """Decompose B for each kernel in turn; of the eigenvectors only what the best needs is kept."""
    best: Choice | None = None
    rank, low, tried = (np.inf, np.inf), 0.0, []
    for k, kernel in enumerate(kernels):
        system = eigen_system(task.with_(kernel=kernel), rule.copies)
        # where K is indefinite, λ that outweigh its negative eigenvalues are among those found
        path = system.path(alphas_of(rule.alphas, max(system.largest, -4.0 * system.low)))
        S = rule.scores(system, path)
        index, mine = best_pair(S, path.loo, rule.per_target)
        tried.append((path.alphas, rule.joint(S)))
        rule.tell(kernel, f"{k + 1} of {len(kernels)}", path.alphas, S)
        if mine < rank or (best is None and np.any(system.usable(path.alphas))):
            best, rank, low = _chosen(k, system, path, S, index, rule), mine, system.low
    if best is None:
        raise ValueError(
            f"The kernel matrix is indefinite: no alpha up to {max(a.max() for a, _ in tried):.3g} makes it safely "
            "positive definite. Give larger alphas, or another kernel."
        )
    refuse_too_few(task.n, rank, tried)
    grid, means = np.array([a for a, _ in tried]), np.array([s for _, s in tried])
    return _noted(replace(best, scores=means, alphas=grid), low)


def refuse_too_few(n: int, rank: tuple[float, float], tried: list[tuple[Vector, Vector]]) -> None:
    """Refuse to choose where no pair of several has a score."""
    if not np.isfinite(rank[0]) and sum(len(a) for a, _ in tried) > 1:
        raise ValueError(
            f"n_samples={n} are too few to choose by: with an intercept nothing is left to predict a row by. "
            "Give one alpha, and one kernel."
        )


def _chosen(k: int, system: Eigen, path: RidgePath, S: Matrix, index: Any, rule: Rule) -> Choice:
    """What is kept of one kernel's decomposition, at the best λ of each target."""
    index = np.broadcast_to(index, (path.loo.shape[1],))
    task = system.task.with_(lam=path.alphas[index], tol=rule.tol)
    fitted, errors = refined(system, task, rule.reason), system.errors(task.lam)
    return Choice(task, index, picked(S, index), S, path.alphas[None, :], path, fitted, errors, k)


def picked(S: Matrix, index: Any) -> Vector:
    """Entries of the columns of S, or of its only one, at the index of each target."""
    return np.asarray(S[index, np.arange(len(index)) if S.shape[1] == len(index) else 0])


def _noted(choice: Choice, low: float) -> Choice:
    """Write into the certificate, and warn of, what a user should know of an indefinite kernel."""
    if choice.fitted is None or choice.path is None or low == 0.0:
        return choice
    size = float(np.max(choice.path.singular_values, initial=0.0)) ** 2
    certificate = choice.fitted.certificate
    if not warn_if_indefinite(low, max(size, -low)):
        return choice
    certificate = certificate.with_(indefinite=True, notes=(*certificate.notes, INDEFINITE_NOTE))
    return replace(choice, fitted=replace(choice.fitted, certificate=certificate))


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
    >>> from gramian.kernel_ridge.choose import held_out_rows
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
    top = float(np.max(np.linalg.eigvalsh(to_numpy(F.T @ F, float)), initial=0.0))
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
