"""Choosing a kernel and λ: by one decomposition for each kernel, on rows held out, or for a model of landmarks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.compute.devices import to_numpy
from gramian.inputs.kernels import is_precomputed, multiply, take_points
from gramian.kernel_ridge.certificate import KernelSolution
from gramian.kernel_ridge.landmark_fit import Decomposed
from gramian.kernel_ridge.landmarks import Landmarks, choose_landmarks, decompose_landmarks
from gramian.kernel_ridge.path import automatic_alphas, eigen_system, refine
from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernel_ridge.solve import PivotedFactors, Report, solve
from gramian.kernels import Kernel
from gramian.linear.path import RidgePath
from gramian.sources.arrays import to_numbers
from gramian.sources.errors import Argument, SourceError

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

HELD_OUT = 5  # one row in so many
ALPHAS = (1e-9, 1.0, 16)  # least and largest λ as shares of the largest eigenvalue, and how many, for iterations
KNOWN = 0.01  # of a sum of squared leave-one-out errors: what rounding may make of it
ENOUGH = 1e-3  # of the residual: a change of predictions far below their errors
STEPS = 100  # iterations after which predictions are judged as they are
COLUMNS = 64  # solved for at once: more would take memory and save no evaluations
RANK = 100  # of a factor whose largest eigenvalue is that of the matrix, to a few digits


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
    shown_as : str
        Under which name to show the best score of each kernel as it is tried; empty not to.
    hints : dict of int to float
        λ that suit a kernel, by its number: each takes the place of the nearest of those found automatically.
    hint : float or None
        That of the kernel being tried.
    """

    alphas: Any
    criterion: str
    per_target: bool
    reason: str
    tol: float
    labels: bool = False
    copies: Array | None = None
    shown_as: str = ""
    hints: dict[int, float] = field(default_factory=dict)
    hint: float | None = None

    def alphas_up_to(self, largest: float, span: Callable[[float], Array] = automatic_alphas) -> Array:
        """λ to try with a kernel matrix whose largest eigenvalue is given."""
        values = check_alphas(self.alphas, largest, span)
        if self.hint is not None and isinstance(self.alphas, str) and np.all(values > 0):
            values = values.copy()
            values[int(np.argmin(np.abs(np.log(values / self.hint))))] = self.hint
        return values

    def joint(self, S: Array) -> Array:
        """One number for each λ, of all targets: likelihoods multiply, errors are averaged."""
        return np.asarray(np.sum(S, axis=-1) if self.criterion == "marginal_likelihood" else np.mean(S, axis=-1))


@dataclass(frozen=True, eq=False)
class Trial:
    """One kernel: λ, what is to be made small for each (λs, t) or (λs, 1), and by what ties are broken.

    ``finish`` makes of the problem with its best λ what a :class:`KernelChoice` is to keep; ``usable`` says whether any
    λ will do, and ``lowest`` is the smallest eigenvalue where it is negative and not by rounding.
    """

    alphas: Array
    scores: Array
    ties: Array
    finish: Callable[[KernelProblem], dict[str, Any]]
    path: RidgePath | None = None
    usable: bool = True
    lowest: float = 0.0


@dataclass(frozen=True, eq=False)
class KernelChoice:
    """The kernel and λ chosen, and what the others scored.

    Attributes
    ----------
    problem : KernelProblem
        With the kernel and the λ of each target that were chosen.
    index, best : ndarray of shape (t,)
        Which λ that is; what was made small, there.
    scores, alphas : ndarray of shape (kernels, λs)
        What was made small, of all targets; λ.
    which : int
        Number of the kernel chosen.
    path, lowest : RidgePath or None, float
        Of the kernel chosen; its smallest eigenvalue, as in a :class:`Trial`.
    solution : KernelSolution or None
        β and its certificate, where the choice made them on the way.
    left_out : ndarray of shape (m, t)
        Errors of predictions of rows left out, at the pair chosen.
    rows : ndarray of shape (m,) or None
        Which rows were left out; None is all.
    how : str
        How it was chosen, where not by all rows in turn.
    model : tuple or None
        Landmarks and the decomposition of their model, where the choice made one.
    is_known : bool
        Whether rounding is proved to leave the squared errors left out alone, but for a hundredth.
    """

    problem: KernelProblem
    index: Index
    best: Array
    scores: Array
    alphas: Array
    which: int
    path: RidgePath | None
    lowest: float
    solution: KernelSolution | None = None
    left_out: Array = field(default_factory=lambda: np.empty((0, 0)))
    rows: Index | None = None
    how: str = ""
    model: tuple[Landmarks, Decomposed] | None = None
    is_known: bool = True

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: how it was chosen, and where λ is the smallest or largest of several tried."""
        tried = self.alphas[self.which]
        ends = {"smallest": tried.min(), "largest": tried.max()} if len(tried) > 1 else {}
        edges = (
            f"λ = {value:.3g} is the {name} tried: the best may lie beyond, give other alphas"
            for name, value in ends.items()
            if np.any(self.problem.lam == value)
        )
        doubt = (
            "rounding is not proved to leave 99 % of the leave-one-out error as it is: a larger λ, or centred columns"
        )
        return (*((self.how,) if self.how else ()), *edges, *(() if self.is_known else (doubt,)))


def check_alphas(alphas: Any, largest: float, span: Callable[[float], Array] = automatic_alphas) -> Array:
    """λ as given, each positive; or found from the largest eigenvalue."""
    if isinstance(alphas, str) and alphas == "auto":
        return span(largest)
    try:
        given = to_numbers(alphas, "alphas") if np.ma.isMaskedArray(alphas) else alphas
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if isinstance(alphas, str) or values.ndim != 1 or not len(values) or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"alphas must be 'auto' or positive numbers, got {alphas!r}.")
    return values


def choose_pair(
    problem: KernelProblem, kernels: list[Kernel], rule: Rule, try_kernel: Callable[[KernelProblem, Rule], Trial]
) -> KernelChoice:
    """Try each kernel in turn with every λ; of the others only the scores are kept."""
    t, tried = problem.Y.shape[1], []
    best: KernelChoice | None = None
    rank = (np.inf, np.inf)
    for k, kernel in enumerate(kernels):
        trial = try_kernel(problem.with_(kernel=kernel), replace(rule, hint=rule.hints.get(k)))
        S, means = trial.scores, rule.joint(trial.scores)
        tried.append((trial.alphas, means))
        if rule.shown_as:  # larger is better there
            shown = -means + float(rule.criterion == "accuracy")
            i = int(np.argmax(np.where(np.isnan(shown), -np.inf, shown)))
            score = f"{rule.criterion} score {shown[i]:.4g} at λ = {trial.alphas[i]:.3g}"
            line = f"{rule.shown_as}: {kernel!r}, {k + 1} of {len(kernels)}: {score}"
            print(line, file=sys.stderr, flush=True)  # noqa: T201
        # the best λ for each target, and the two numbers by which kernels are compared: smaller is better
        losses, ties = (np.where(np.isnan(values), np.inf, values) for values in (S, trial.ties))
        if not rule.per_target:
            losses, ties = losses.sum(axis=1, keepdims=True), ties.sum(axis=1, keepdims=True)
        columns = np.arange(losses.shape[1])
        index = np.array([np.lexsort((ties[:, j], losses[:, j]))[0] for j in columns])
        mine = (float(losses[index, columns].sum()), float(ties[index, columns].sum()))
        if mine < rank or (best is None and trial.usable):
            rank, index = mine, np.broadcast_to(index, (t,))
            chosen = problem.with_(kernel=kernel, lam=trial.alphas[index])
            score = S[index, np.arange(t) if S.shape[1] == t else 0]
            best = KernelChoice(chosen, index, score, S, S, k, trial.path, trial.lowest, **trial.finish(chosen))
        del trial  # its decomposition would be kept while the next one is made
    grid, means = np.array([a for a, _ in tried]), np.array([s for _, s in tried])
    if best is None:
        raise ValueError(
            f"The kernel matrix is indefinite: no alpha up to {grid.max():.3g} makes it safely positive definite. Give "
            "larger alphas, or another kernel."
        )
    if not np.isfinite(rank[0]) and grid.size > 1:
        raise ValueError(
            f"n_samples={problem.n} are too few to choose by: with an intercept nothing is left to predict a row by. "
            "Give one alpha, and one kernel."
        )
    return replace(best, scores=means, alphas=grid)


def _is_misclassified(Y: Array, errors: Array) -> npt.NDArray[np.bool_]:
    """Whether Y − e points to another class than Y of ±1 does: by its sign, or by its largest column."""
    values = Y - errors
    if values.shape[-1] == 1:
        return np.asarray((values > 0) != (Y > 0))[..., 0]
    return np.asarray(np.argmax(values, axis=-1) != np.argmax(Y, axis=-1))


def _path_scores(
    problem: KernelProblem, rule: Rule, path: RidgePath, errors: Callable[[Array], Iterable[tuple[Any, Array]]]
) -> Array:
    """The criterion of each target; or of labels the weighted share of rows put into a wrong class when left out."""
    if rule.criterion != "accuracy":
        return path.score(rule.criterion)
    total = np.zeros(len(path.alphas))
    for rows, e in errors(path.alphas):
        total += problem.share[rows] @ _is_misclassified(problem.Y[rows][:, None, :], e)
    return total[:, None]


def try_by_eigenvectors(problem: KernelProblem, rule: Rule) -> Trial:
    """Decompose B: exact errors of rows left out, for every λ."""
    system = eigen_system(problem, rule.copies)
    # where K is indefinite, λ that outweigh its negative eigenvalues are among those found
    alphas = rule.alphas_up_to(max(system.largest, -4.0 * system.low))
    path, usable = system.path(alphas), system.usable(alphas)
    S = _path_scores(problem, rule, path, system.leave_one_out_errors)

    def finish(chosen: KernelProblem) -> dict[str, Any]:
        solution, errors = refine(system, chosen, rule.reason, rule.tol), system.errors(chosen.lam)
        w, lost = problem.frequencies, system.find_lost_errors(chosen.lam, errors)
        enough = KNOWN * np.maximum(w @ errors**2, 1e-8 * (w @ problem.targets**2))
        return {"solution": solution, "left_out": errors, "is_known": bool(np.all(lost <= enough))}

    S = np.where(usable[:, None], S, np.nan)
    return Trial(alphas, S, path.loo, finish, path, bool(np.any(usable)), system.low)


def try_landmarks(problem: KernelProblem, rule: Rule, n_landmarks: int | None) -> Trial:
    """Decompose the model of the landmarks: every λ, and rows left out exactly, by two passes over the rows."""
    options = {"weights": problem.w, "seed": problem.seed, "device": problem.device}
    landmarks = choose_landmarks(problem.kernel, problem.points, n_landmarks, **options)
    system = decompose_landmarks(problem, landmarks, rule.copies)
    path = system.path(rule.alphas_up_to(float(np.max(system.filter.squares, initial=0.0))))

    def finish(chosen: KernelProblem) -> dict[str, Any]:
        how = "chosen for the model of the landmarks, by leaving out each row with the landmarks as they are"
        left_out = np.zeros_like(problem.Y) if rule.labels else np.empty((0, problem.Y.shape[1]))
        if rule.labels:  # one λ of all targets; 0 of rows without weight
            for rows, errors in system.leave_one_out_errors(chosen.lam[:1]):
                left_out[rows] = errors[:, 0, :]
        return {"model": (landmarks, system), "left_out": left_out, "how": how}

    return Trial(path.alphas, _path_scores(problem, rule, path, system.leave_one_out_errors), path.loo, finish, path)


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


def try_held_out(
    problem: KernelProblem, rule: Rule, max_iter: int | None = None, report: Report | None = None
) -> Trial:
    """Fit four fifths of the rows for every λ by conjugate gradients, and judge by the others."""
    n, t = problem.Y.shape
    if rule.criterion in ("gcv", "marginal_likelihood"):
        raise SourceError(
            Argument("criterion", rule.criterion),
            f" needs the eigenvalues of the kernel matrix of {n} rows, which ",
            Argument("solver", "cg"),
            " does not find. Use ",
            Argument("criterion", "loo"),
            ", by rows held out, or ",
            Argument("solver", "landmarks"),
            " or 'eigh'.",
        )
    labels = np.unique(problem.Y, axis=0, return_inverse=True)[1].reshape(-1) if rule.labels else None
    fit, judge = held_out_rows(n, problem.seed, labels)
    if not len(judge):
        text = f"n_samples={n} are too few to hold out one in {HELD_OUT}. Use "
        raise SourceError(text, Argument("solver", "eigh"), ".")
    alphas, errors = _held_out_errors(problem, rule, fit, judge, min(STEPS, max_iter or STEPS), report)
    w, copies = problem.frequencies[judge], rule.copies
    size = copies[judge] if copies is not None else w if problem.counts else np.ones(len(judge))
    squares = np.tensordot(w / float(size.sum()), errors**2, axes=1)
    S = squares
    if rule.criterion == "accuracy":
        S = (w / w.sum() @ _is_misclassified(problem.Y[judge][:, None, :], errors))[:, None]

    def finish(chosen: KernelProblem) -> dict[str, Any]:
        index = [int(np.flatnonzero(alphas == lam)[0]) for lam in chosen.lam]
        how = f"chosen by the errors of {len(judge)} rows held out, and fitted to all"
        return {"left_out": errors[:, index, np.arange(t)], "rows": judge, "how": how}

    return Trial(alphas, S, squares, finish)


def _held_out_errors(
    problem: KernelProblem, rule: Rule, fit: Index, judge: Index, steps: int, report: Report | None
) -> tuple[Array, Array]:
    """λ and the errors, of shape (rows held out, λs, t): all λ and targets in one block."""
    t, whole = problem.Y.shape[1], is_precomputed(problem.kernel)
    points = problem.points[np.ix_(fit, fit)] if whole else take_points(problem.points, fit)
    part = problem.with_(points=points, Y=problem.Y[fit], w=None if problem.w is None else problem.w[fit])
    # the largest eigenvalue of B, by a factor of low rank, which lies below B and is near it where it matters; 0 where
    # that is what rounding leaves of rows that centring makes 0
    factors = PivotedFactors(part)
    F = factors(min(RANK, part.n))
    top = float(np.max(np.linalg.eigvalsh(to_numpy(F.T @ F, float)), initial=0.0))
    slip = 4 * float(np.finfo(factors.dtype).eps) if part.intercept else 0.0
    if top <= slip**2 * float(part.frequencies @ np.abs(part.squared_lengths)):
        top = 0.0
    alphas = rule.alphas_up_to(top, partial(automatic_alphas, shares=ALPHAS))
    lam = np.repeat(alphas, t)
    across: Callable[[Array], Array]
    if whole:
        across = partial(np.matmul, problem.points[np.ix_(judge, fit)])
    else:
        across = partial(multiply, problem.between(take_points(problem.points, judge), points, store="auto"))
    means, parts = part.feature_means(), []
    for start in range(0, len(lam), COLUMNS):
        columns = np.arange(start, min(start + COLUMNS, len(lam)))
        some = part.with_(Y=part.Y[:, columns % t], lam=lam[columns])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # judged as they are, by rows they have not seen
            found = solve(some, "cg", rule.reason, tol=ENOUGH, max_iter=steps, report=report)
        alpha = some.dual(found.beta)
        parts.append(across(alpha) + some.mean - means @ alpha)
    f = np.concatenate(parts, axis=1).reshape(len(judge), len(alphas), t)
    return alphas, problem.Y[judge][:, None, :] - f
