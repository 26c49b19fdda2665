"""The steps of choosing λ: decompose once, leave every row out for every λ, score, fit the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.compute.devices import like, to_numpy
from gramian.compute.memory import gibibytes, refuse_beyond_memory
from gramian.compute.threads import n_threads, parallel
from gramian.linear.path import Filter, RidgePath
from gramian.ridge.certificate import Way, certified
from gramian.ridge.decomposition import Decomposition, is_safe
from gramian.ridge.problem import RidgeInputs, RidgeProblem, ridge_problem
from gramian.ridge.routes import route_of
from gramian.ridge.solve import Solved, decompose, quiet_if_small, scaled_penalties, together
from gramian.sources import memory_budget

__all__ = [
    "ALONE",
    "Chosen",
    "LeftOut",
    "Task",
    "automatic_grid",
    "choose_penalty",
    "in_own_units",
    "leave_out",
    "left_out_there",
    "ridge_path",
]

Array = Any
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ALONE = 2.0**-44  # of 1 − h: what rounding can make of a row that determines its own fit
NUMBERS = 2**24  # of the predictions of a part of a block: 128 MiB


def left_out_there(
    problem: RidgeProblem, found: Decomposition, lam: Vector, keep: bool
) -> tuple[Matrix, Matrix, Matrix | None]:
    """Mean squared error of rows left out and residual sum of squares, (L, t) both, and the errors if asked for."""
    source, xp = problem.source, problem.source.xp
    filter_, (n, t), L = found.filter(problem), problem.Y.shape, len(lam)
    inverse = like(source, filter_.inverse(lam))
    C = filter_.factors(lam)[:, :, None] * found.projections[:, None, :]
    C = like(source, C.reshape(len(C), L * t))
    weights = problem.weights
    share = 1.0 / weights.mass if problem.intercept else 0.0
    errors = np.empty((n, L, t)) if keep else None
    loo, rss = like(source, np.zeros((L, t))), like(source, np.zeros((L, t)))
    for start, stop, Z in _parts(problem, found, L * t):
        w = np.ones(stop - start) if weights.values is None else weights.values[start:stop]
        v = like(source, w)[:, None, None]
        R = like(source, problem.Y[start:stop, None, :]) - xp.reshape(Z @ C, (stop - start, L, t))
        rss += xp.sum(v * R**2, axis=0)
        H = (Z**2) @ inverse + share
        left = 1.0 - (H if weights.counts else H * v[:, :, 0])
        alone = left <= ALONE
        E = R / xp.where(alone, xp.ones_like(left), left)[:, :, None]
        E = xp.where(alone[:, :, None], xp.full_like(E, np.inf), E)
        if errors is not None:
            errors[start:stop] = np.where(w[:, None, None] > 0, to_numpy(E, float), np.nan)
        loo += xp.sum(v * xp.where(v > 0, E, xp.zeros_like(E)) ** 2, axis=0)
    return to_numpy(loo, float) / weights.count, to_numpy(rss, float), errors


def _parts(problem: RidgeProblem, found: Decomposition, width: int) -> Iterator[tuple[int, int, Array]]:
    """Rows z = (x − μ)V, so few at a time that all their predictions fit."""
    step = max(1, NUMBERS // max(1, width))
    for start, stop, Z in problem.plain.rows(like(problem.source, found.basis)):
        for i in range(start, stop, step):
            last = min(i + step, stop)
            yield i, last, Z[i - start : last - start, :]


TILE = 2**18  # numbers a thread works on at a time: 2 MiB
GRID = 50
NEARLY = 0.01  # of the degrees of freedom: what the ends of an automatic grid leave out
SQUARES = ("loo", "gcv", "noise_variance")  # of a path: what has the units of y²
PATH_CELLS = 2**25  # coefficients of a whole path that are kept: 256 MiB


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What leaving each row out in turn gave, for every λ and target.

    Attributes
    ----------
    loo : ndarray of shape (L, t)
        Mean over the N observations of the squared error, weighted.
    rss : ndarray of shape (L, t)
        Weighted residual sum of squares of the fit to all rows.
    errors : ndarray of shape (n, L, t) or None
        y − ŷ of each row left out, without weights; NaN where the weight is 0.
    """

    loo: Matrix
    rss: Matrix
    errors: Matrix | None


def leave_out(problem: RidgeProblem, found: Decomposition, lam: Vector, *, keep: bool = False) -> LeftOut:
    """Leave every row out in turn, for every λ: one pass over the data, or none where U is at hand."""
    if not found.dual and problem.source.device is not None:
        return LeftOut(*left_out_there(problem, found, lam, keep))
    n, t = problem.Y.shape
    tiles = _Dual(problem, found, lam) if found.dual else _Primal(problem, found, lam)
    errors = np.empty((n, len(lam), t)) if keep else None
    loo, rss = np.zeros((len(lam), t)), np.zeros((len(lam), t))
    for start, Z in tiles.blocks():
        for a, b in parallel(partial(tiles.sums, Z, start, errors), tiles.parts(Z)):
            loo += a
            rss += b
    return LeftOut(loo / problem.weights.count, rss, errors)


class _Primal:
    """Rows z = (x − μ)V: h = 1/Σw + z²·1/(σ²+λ), r = y − zᵀσc/(σ²+λ)."""

    def __init__(self, problem: RidgeProblem, found: Decomposition, lam: Vector) -> None:
        filter_ = found.filter(problem)
        self.problem, self.found, self.lam = problem, found, lam
        self.inverse, self.factors = filter_.inverse(lam), filter_.factors(lam)
        w = problem.weights
        self.w = np.ones(len(problem.Y)) if w.values is None else w.values
        self.counts = w.counts
        self.share = 1.0 / w.mass if problem.intercept else 0.0

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """Z, a block at a time."""
        for start, _, Z in self.problem.plain.rows(like(self.problem.source, self.found.basis)):
            yield start, to_numpy(Z, float)

    def parts(self, Z: Matrix) -> list[tuple[slice, slice]]:
        """Tiles of rows, and of targets so few that their coordinates stay in cache."""
        (n, r), L, t = Z.shape, len(self.lam), self.problem.Y.shape[1]
        width = max(1, min(t, TILE // (2 * r * L + 1)))
        rows = max(64, TILE // (2 * r + L * (width + 2)))
        pieces = -(-n // rows)
        rows = -(-n // (-(-pieces // n_threads()) * n_threads()))  # as many for each thread
        return [
            (slice(i, min(i + rows, n)), slice(j, min(j + width, t)))
            for j in range(0, t, width)
            for i in range(0, n, rows)
        ]

    def sums(
        self, Z: Matrix, start: int, errors: Matrix | None, share: Sequence[tuple[slice, slice]]
    ) -> tuple[Matrix, Matrix]:
        """Weighted sums of squares of the errors and of the residuals, over some tiles."""
        shape = (len(self.lam), self.problem.Y.shape[1])
        loo, rss, last, C = np.zeros(shape), np.zeros(shape), slice(0, 0), np.zeros((0, 0))
        for rows, targets in share:
            if targets != last:
                C, last = self.coordinates(targets), targets
            here = slice(start + rows.start, start + rows.stop)
            w, R = self.w[here], self.residuals(Z[rows], here, targets, C)
            rss[:, targets] += _weighted(w, R)
            E = self.divided(R, Z[rows], w)
            if errors is not None:
                errors[here, :, targets] = np.where(w[:, None, None] > 0, E, np.nan)
            E[w == 0.0] = 0.0
            loo[:, targets] += _weighted(w, E)
        return loo, rss

    def coordinates(self, targets: slice) -> Matrix:
        """What a row of the basis is multiplied by, of shape (r, L·targets)."""
        C = self.factors[:, :, None] * self.found.projections[:, None, targets]
        return np.asarray(C.reshape(len(C), -1))

    def residuals(self, Z: Matrix, here: slice, targets: slice, C: Matrix) -> Matrix:
        """y − ŷ, of shape (rows, L, targets)."""
        F = (Z @ C).reshape(len(Z), len(self.lam), -1)
        return np.asarray(np.subtract(self.problem.Y[here, None, targets], F, out=F))

    def divided(self, R: Matrix, Z: Matrix, w: Vector) -> Matrix:
        """R over 1 − h of one copy, or of the whole row; infinite where a row determines its own fit."""
        H = (Z * Z) @ self.inverse
        H += self.share
        if not self.counts:
            H *= w[:, None]
        left = np.subtract(1.0, H, out=H)
        return _divided(R, left, left <= ALONE)


class _Dual(_Primal):
    """Rows u of U, which spans all that centring left: √w r = λ uᵀc/(σ²+λ); 1 − h = λ u²·1/(σ²+λ) cancels nothing."""

    def __init__(self, problem: RidgeProblem, found: Decomposition, lam: Vector) -> None:
        super().__init__(problem, found, lam)
        self.inverse = self.inverse * lam
        self.factors = self.inverse

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """U, whole: it is in memory."""
        yield 0, self.found.basis

    def residuals(self, Z: Matrix, here: slice, targets: slice, C: Matrix) -> Matrix:
        """y − ŷ, of shape (rows, L, targets)."""
        root = np.sqrt(np.where(self.w[here] > 0, self.w[here], 1.0))
        return np.asarray(((Z @ C) / root[:, None]).reshape(len(Z), len(self.lam), -1))

    def divided(self, R: Matrix, Z: Matrix, w: Vector) -> Matrix:
        """R over 1 − h = ((w − 1) + λ u²·1/(σ²+λ))/w of one copy, or λ u²·1/(σ²+λ) of the whole row.

        With one copy both have the factor λ, however small: alone is only a row of which U has nothing.
        """
        squares = Z * Z
        left, alone = squares @ self.inverse, np.sum(squares, axis=1) <= ALONE
        if self.counts:
            safe = np.where(w > 0, w, 1.0)
            left, alone = (left + (safe - 1.0)[:, None]) / safe[:, None], alone & (safe <= 1.0)
        return _divided(R, left, alone[:, None] | (left == 0.0))


def _weighted(w: Vector, E: Matrix) -> Matrix:
    """Σ w e² over the rows of a tile."""
    return np.asarray((w @ (E.reshape(len(w), -1) ** 2)).reshape(E.shape[1:]))


def _divided(R: Matrix, left: Matrix, alone: npt.NDArray[np.bool_]) -> Matrix:
    """Residuals over 1 − h, which are overwritten; infinite where a row is alone."""
    R /= np.where(alone, 1.0, left)[:, :, None]
    R[alone] = np.inf
    return R


def automatic_grid(squares: Vector) -> Vector:
    """50 values of λ in equal ratios, from nearly all degrees of freedom to nearly none.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.ridge.path import automatic_grid
    >>> grid = automatic_grid(np.array([100.0, 1.0]))
    >>> len(grid), [round(float((np.array([100, 1]) / (np.array([100, 1]) + a)).sum()), 3) for a in grid[[0, -1]]]
    (50, [1.98, 0.02])
    """
    top = float(np.max(squares, initial=0.0))
    real = squares[squares > 1e-12 * top]
    if not len(real):
        return np.geomspace(1e-2, 1e2, GRID)

    def excess(x: float, goal: float) -> float:
        return float(np.sum(real / (real + np.exp(x)))) - goal

    low, high = np.log(real.min()) - 8.0, np.log(top) + np.log(len(real)) + 8.0
    ends = [float(brentq(excess, low, high, args=(f * len(real),))) for f in (1 - NEARLY, NEARLY)]
    return np.asarray(np.exp(np.linspace(ends[0], ends[1], GRID)))


def ridge_path(problem: RidgeProblem, found: Decomposition, lam: Vector, alphas: Vector, left: LeftOut) -> RidgePath:
    """The whole path; ``lam`` are ``alphas`` in the units of the problem, in which squares of y are left for now."""
    filter_ = found.filter(problem)
    filter_ = filter_ if found.dual else with_measured_rest(filter_, lam, left.rss)  # U of the dual spans all of Ỹ
    coef = _coefficients(problem, found, filter_, lam) * (problem.unit / problem.y_unit)
    return RidgePath(
        alphas=alphas,
        singular_values=np.sqrt(found.squares) / problem.unit,
        filter_factors=filter_.factors(lam) * problem.unit,
        dof=filter_.dof(lam),
        coef=coef,
        intercept=np.stack([problem.anchored(c)[0] for c in coef]) if len(coef) else np.zeros(coef.shape[:2]),
        loo=left.loo,
        gcv=filter_.gcv(lam),
        log_marginal_likelihood=filter_.log_likelihood(lam),
        noise_variance=filter_.noise(lam),
    )


def in_own_units(path: RidgePath, problem: RidgeProblem) -> RidgePath:
    """The path with what has the units of y² in those of the data; it may overflow there."""
    if problem.y_unit == 1.0:
        return path
    shift = (problem.weights.count - float(problem.intercept)) * np.log(problem.y_unit)
    with np.errstate(over="ignore", under="ignore"):
        squares = {name: getattr(path, name) / problem.y_unit / problem.y_unit for name in SQUARES}
    return replace(path, log_marginal_likelihood=path.log_marginal_likelihood + shift, **squares)


def with_measured_rest(filter_: Filter, lam: Vector, rss: Matrix) -> Filter:
    """The filter with what no λ can fit taken from the residuals of the least λ: no digits cancel there."""
    i = int(np.argmin(lam))
    left = filter_.left(lam[i : i + 1])[:, 0] ** 2
    return replace(filter_, rest=np.maximum(rss[i] - left @ filter_.projections**2, 0.0))


def _coefficients(problem: RidgeProblem, found: Decomposition, filter_: Filter, lam: Vector) -> Matrix:
    """B for every λ, of shape (L, t, p); empty where that would be too many numbers."""
    L, t, p = len(lam), problem.Y.shape[1], problem.source.shape[1]
    if L * t * p > PATH_CELLS:
        return np.zeros((0, t, p))
    S = filter_.dual(lam) if found.dual else filter_.solution(lam)
    flat = found.basis @ S.reshape(len(S), L * t)
    flat = to_numpy(problem.A.T @ like(problem.source, flat), float) if found.dual else flat
    return np.ascontiguousarray(flat.T).reshape(L, t, p)


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
