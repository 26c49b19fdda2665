"""The steps of a ridge fit, as functions: which way, solve, measure, correct, certify."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like, to_numpy
from gramian.compute.memory import available_memory
from gramian.compute.threads import quiet_blas
from gramian.linear.cgls import CGLS
from gramian.results import Residual
from gramian.ridge.certificate import Certified, Way, certified
from gramian.ridge.decomposition import Decomposition, by_cogram, by_gram, by_rows, by_svd, is_safe
from gramian.ridge.least_squares import SMALL, LeastSquares
from gramian.ridge.problem import ITERATIVE, RidgeInputs, RidgeProblem, ridge_problem
from gramian.ridge.routes import KEEP, Cholesky, Group, Route, norms, route_of
from gramian.sources import Source

__all__ = ["Options", "Solved", "choose", "decompose", "fit_ridge", "quiet_if_small", "scaled_penalties", "together"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SPARSE_GRAM = 2000  # rows or columns up to which sparse data have a dense Gram matrix made of them
FILE_COGRAM = 2048  # rows up to which X̃X̃ᵀ of a file is made, in one pass for every 128 of them
LARGEST_PENALTY = 1e250  # in the units of the problem: more is the same
ALONE = 512  # rows or columns of a square matrix that one core factors as fast as several


@dataclass(frozen=True)
class Options:
    """The constructor's choices."""

    solver: str
    intercept: bool
    tol: float
    max_iterations: int | None


@dataclass(frozen=True, eq=False)
class Solved:
    """Coefficients of all targets in the data's own units, and what is known about them."""

    coef: Matrix
    problem: RidgeProblem
    certificate: Residual
    solver: str
    rss: Vector
    dof: Vector
    free: Vector
    rank: int | None
    groups: tuple[Group, ...]
    warnings: tuple[str, ...] = ()


def fit_ridge(inputs: RidgeInputs, lam: Vector, options: Options) -> Solved:
    """Choose a way, take the moments, solve for every target, certify."""
    with quiet_if_small(min(inputs.source.shape)):
        return _fit(inputs, lam, options)


def quiet_if_small(size: int) -> AbstractContextManager[None]:
    """Keep BLAS to one thread where matrices are too small to share: starting its threads would take longer."""
    return quiet_blas() if size <= ALONE else nullcontext()


def _fit(inputs: RidgeInputs, lam: Vector, options: Options) -> Solved:
    way = choose(inputs.source, options.solver)
    problem = ridge_problem(inputs, intercept=options.intercept, full=way.method == "primal")
    if way.method == "cg":
        return _iterative(problem, lam, way, options)
    shifts, factor = scaled_penalties(problem, lam)
    parts = []
    for wanted in (shifts > 0, shifts == 0):
        if wanted.any():
            columns = np.flatnonzero(wanted)
            sub = problem if wanted.all() else _some(problem, columns)
            parts.append((columns, certified(sub, _route(sub, shifts[columns], way), shifts[columns], way)))
    return together(problem, parts, factor, keep_all=options.solver == "svd")


def choose(source: Source, solver: str) -> Way:
    """Return the method asked for, or the rule's: the smaller Gram matrix, if there is one of bearable size."""
    n, p = source.shape
    if solver in ITERATIVE:
        return Way("cg", f"solver={solver!r}")
    if solver != "auto":
        return Way("primal" if solver == "cholesky" else solver, f"solver={solver!r}")
    size, name = min(n, p), "primal" if p <= n else "dual"
    if 24.0 * size * size > available_memory() / 2:
        return Way("cg", f"a {size} × {size} matrix and its factor would not fit in memory")
    if source.sparse and size > SPARSE_GRAM:
        return Way("cg", f"the data are sparse and both of {n} × {p} are large")
    if not source.resident and name == "dual" and n > FILE_COGRAM:
        return Way("cg", f"X̃X̃ᵀ of {n} rows in a file would take {n // 128} passes")
    return Way(name, f"{p} columns, {n} rows" + (": the dual problem is the smaller one" if name == "dual" else ""))


def scaled_penalties(problem: RidgeProblem, lam: Vector) -> tuple[Vector, Vector]:
    """λ in the units of the problem, and what its coefficients are multiplied by to be those of the data."""
    with np.errstate(over="ignore", under="ignore"):
        shifts = lam * problem.unit * problem.unit
        clipped = np.minimum(shifts, LARGEST_PENALTY)
        factor = np.full(len(lam), problem.unit / problem.y_unit)
        over = shifts > LARGEST_PENALTY  # then B = X̃ᵀỸ/λ to the last digit
        factor[over] = clipped[over] / lam[over] / problem.unit / problem.y_unit
    return clipped, factor


def _some(problem: RidgeProblem, columns: npt.NDArray[np.intp]) -> RidgeProblem:
    """The problem of some targets."""
    cross = None if problem.cross is None else problem.cross[:, columns]
    level, low = problem.level[columns], problem.level_low[columns]
    return replace(problem, raw=problem.raw[:, columns], level=level, level_low=low, cross=cross)


def _route(problem: RidgeProblem, lam: Vector, way: Way) -> Route:
    """The way chosen where it is safe, else one that does not square the condition number."""
    small = problem.source.shape[0] * problem.source.shape[1] <= SMALL
    if way.method == "primal" and np.all(lam == lam[0]) and not (small and lam[0] == 0.0):
        cholesky = Cholesky(problem, lam)
        if cholesky.safe:
            return cholesky
        way = Way("svd", "")
    if lam[0] == 0.0:
        return LeastSquares(problem)
    return route_of(problem, decompose(problem, way, float(np.min(lam))), lam)


def decompose(problem: RidgeProblem, way: Way, least: float, *, dual: bool = False) -> Decomposition:
    """Decompose the Gram matrix where that is safe for λ ≥ ``least``, else the data; ``dual``: with U, not V."""
    n, p = problem.source.shape
    if way.method in ("primal", "dual"):
        found = by_gram(problem) if way.method == "primal" else by_cogram(problem)
        if is_safe(found, problem, least):
            return found
    return by_svd(problem, dual=dual) if p >= n - int(problem.intercept) else by_rows(problem)


def together(
    problem: RidgeProblem, parts: list[tuple[npt.NDArray[np.intp], Certified]], factor: Vector, keep_all: bool
) -> Solved:
    """All targets in their order and in the data's own units."""
    t, p = problem.Y.shape[1], problem.source.shape[1]
    coef, (rss, dof, free, residuals, bounds) = np.zeros((p, t)), np.zeros((5, t))
    groups, messages = [], []
    with np.errstate(over="ignore", under="ignore"):
        for columns, part in parts:
            coef[:, columns] = part.B * factor[columns]
            rss[columns] = part.rss / problem.y_unit / problem.y_unit
            dof[columns], free[columns] = part.route.dof, part.route.free
            residuals[columns] = part.certificate.residuals
            bounds[columns] = part.bounds * factor[columns]
            groups += _kept(problem, part.route, columns, keep_all)
            messages += _rank_message(part.route, p)
    certificate = _joined(problem, [part for _, part in parts]).with_(residuals=residuals, error_bounds=bounds)
    certificate = _as_returned(certificate, coef, problem.source)
    messages += _missed_message(certificate, problem)
    route, dof = parts[0][1].route, dof + float(problem.intercept)
    return Solved(coef, problem, certificate, route.solver, rss, dof, free, route.rank, tuple(groups), tuple(messages))


def _as_returned(certificate: Residual, coef: Matrix, source: Source) -> Residual:
    """The certificate with the rounding of coefficients that are returned in single precision."""
    if source.dtype != source.xp.float32 or certificate.error_bounds is None:
        return certificate
    with np.errstate(over="ignore", invalid="ignore"):
        lost = norms(coef - coef.astype(np.float32))
    return certificate.with_(error_bounds=certificate.error_bounds + lost)


def _missed_message(certificate: Residual, problem: RidgeProblem) -> list[str]:
    if certificate.converged:
        return []
    remedy = (
        "Sparse data are centred after they are multiplied, and where means are large beside the spread of their "
        "columns digits cancel: pass a dense array, or subtract constants from such columns first."
        if problem.A.offset > problem.total
        else "Use a larger alpha, bring the columns to similar size, or leave out those that nearly follow from others."
    )
    return [
        f"{certificate.method}: the gradient at the solution is {certificate.worst:.1e} of ‖X̃ᵀỹ‖, rounding included, "
        f"and was to be at most {certificate.tolerance:.0e}. {remedy} certificate_.error_bounds says how far off the "
        "coefficients can be."
    ]


def _joined(problem: RidgeProblem, parts: list[Certified]) -> Residual:
    """One certificate for targets with a penalty and targets without."""
    certificates = [part.certificate for part in parts]
    return certificates[0].with_(
        method="; ".join(dict.fromkeys(certificate.method for certificate in certificates)),
        passes=problem.passes + sum(part.problem.spent - problem.passes + part.route.reads for part in parts),
        rounding=max(certificate.rounding for certificate in certificates),
        condition=max(part.route.condition for part in parts),
        notes=tuple(note for certificate in certificates for note in certificate.notes),
    )


def _kept(problem: RidgeProblem, route: Route, columns: npt.NDArray[np.intp], keep_all: bool) -> list[Group]:
    """The inverse for later use, unless it is too large to carry along."""
    p = problem.source.shape[1]
    if not keep_all and p * route.rank > KEEP:
        return []
    return [Group(columns, *route.group(), problem.unit)]


def _rank_message(route: Route, p: int) -> list[str]:
    if not isinstance(route, LeastSquares) or route.rank >= p:
        return []
    return [
        f"X has rank {route.rank} and {p} columns{' after centring' if route.problem.intercept else ''}: with alpha=0 "
        "many coefficients fit equally well, and those of least norm are returned. Remove columns that follow from "
        "others, or use alpha > 0."
    ]


def _iterative(problem: RidgeProblem, lam: Vector, way: Way, options: Options) -> Solved:
    """Conjugate gradients: the decomposition, and with it degrees of freedom and variances, is not made."""
    shifts, factor = scaled_penalties(problem, lam)
    solver = CGLS(options.tol or None, options.max_iterations)
    targets = like(problem.source, problem.targets)
    found = solver(problem.A, targets, shifts, diagonal=problem.diagonal, reason=way.reason)
    certificate = found.certificate
    bounds = certificate.error_bounds
    certificate = certificate.with_(
        passes=certificate.passes + problem.passes,
        error_bounds=None if bounds is None else bounds * factor,
        device=problem.A.device_name,
        precision=problem.A.precision,
    )
    coef, unknown = to_numpy(found.values, float) * factor, np.full(len(lam), np.nan)
    certificate = _as_returned(certificate, coef, problem.source)
    return Solved(coef, problem, certificate, "cg", unknown, unknown, unknown, None, ())
