"""How good a ridge solution is: the gradient measured with the data, a correction by it, a bound on the error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like, to_numpy
from gramian.results import Residual
from gramian.ridge.decomposition import SAFE
from gramian.ridge.least_squares import LeastSquares
from gramian.ridge.problem import RidgeProblem
from gramian.ridge.routes import Route, norms

__all__ = ["Certified", "Way", "certified"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = 2.0**-52
TOLERANCE = 1e-8  # of the gradient, for direct methods: far above what they reach
CANCELLED = 1e-6  # RSS/‖ỹ‖² below which it is not derived from the moments
CORRECTED = 1e4  # condition numbers above which a direct solution is corrected once whatever its gradient


@dataclass(frozen=True)
class Way:
    """A method and the reason for it."""

    method: str
    reason: str


@dataclass(frozen=True, eq=False)
class Measured:
    """A solution with its residuals R, its gradients G, and both in numbers.

    Attributes
    ----------
    relative : ndarray of shape (t,)
        ‖G‖/‖X̃ᵀỹ‖.
    size : ndarray of shape (t,)
        Length of what X̃ᵀ was multiplied by to get G, whose rounding G shares: ‖R‖, or ‖ỹ‖ + ‖X̃‖‖B‖ of moments.
    rounding : float
        Rounding of G beside ‖X̃ᵀỹ‖, where no product with the data shows it: of moments, or where means are taken off
        sparse data after they are multiplied.
    """

    B: Matrix
    R: Matrix
    G: Matrix
    rss: Vector
    relative: Vector
    size: Vector
    rounding: float = 0.0


@dataclass(frozen=True, eq=False)
class Certified:
    """The solution of some targets, in the units of the problem."""

    problem: RidgeProblem
    B: Matrix
    rss: Vector
    bounds: Vector
    route: Route
    certificate: Residual


def certified(problem: RidgeProblem, route: Route, lam: Vector, way: Way) -> Certified:
    """Solve, measure the gradient with the data, correct where that helps, and say how good it is."""
    exact = route.measured() if isinstance(route, LeastSquares) else None
    scale = _gradient_scale(problem)
    if exact is not None:
        B, R, G = exact
        state = Measured(B, R, G, norms(R) ** 2, norms(G) / scale, norms(R))
        notes: tuple[str, ...] = (_digits(),)
    else:
        state, notes = _refined(problem, route, lam, scale), ()
    eps = EPS if exact is None else float(np.finfo(np.longdouble).eps)
    bounds = route.bounds(problem, state.B, state.G, state.size, eps)
    asked = {"primal": "cholesky", "dual": "dual", "svd": "svd"}[way.method]
    if route.solver != asked and lam[0] > 0:
        notes = (*notes, f"forming the Gram matrix was not safe: {_why(problem, route)}")
    certificate = Residual(
        method=route.method,
        reason=way.reason,
        passes=problem.spent,
        iterations=0,
        residuals=state.relative,
        tolerance=TOLERANCE,
        rounding=state.rounding,
        condition=route.condition,
        bounded="‖ŵ − w‖",
        device=problem.A.device_name,
        precision=problem.A.precision,
        notes=notes,
    )
    return Certified(problem, state.B, state.rss if route.rss is None else route.rss, bounds, route, certificate)


def _refined(problem: RidgeProblem, route: Route, lam: Vector, scale: Vector) -> Measured:
    """Correct by the measured gradient while that brings it down."""
    B = route.coefficients()
    derived = _derived(problem, B, lam, scale) if route.solver == "cholesky" else None
    best = derived or _measure(problem, B, lam, scale)
    for step in range(3):
        settled = np.max(best.relative, initial=0.0) <= 1e-13 and (step > 0 or route.condition < CORRECTED)
        if settled or not (problem.source.resident or np.max(best.relative) > TOLERANCE):  # passes over a file cost
            break
        state = _measure(problem, route.improved(best.B, best.R, best.G), lam, scale)
        better = np.max(state.relative) < 0.5 * np.max(best.relative)
        if better or (step == 0 and np.max(state.relative) <= 2 * np.max(best.relative)):
            best = state
        if not better:
            break
    return best


def _measure(problem: RidgeProblem, B: Matrix, lam: Vector, scale: Vector) -> Measured:
    """R = Ỹ − X̃B and G = X̃ᵀR − λB."""
    A, source = problem.A, problem.source
    R = problem.targets - to_numpy(A @ like(source, B), float)
    G = to_numpy(A.T @ like(source, R), float) - lam * B
    lost = EPS * A.offset**0.5 * (norms(R) + problem.total**0.5 * norms(B))
    return Measured(B, R, G, norms(R) ** 2, norms(G) / scale, norms(R), float(np.max(lost / scale, initial=0.0)))


def _derived(problem: RidgeProblem, B: Matrix, lam: Vector, scale: Vector) -> Measured | None:
    """The same from the moments, to spare a file another pass; None where too many digits would cancel."""
    if problem.source.resident or problem.gram is None or problem.cross is None:
        return None
    GB, energy = problem.gram @ B, problem.energy
    rss = energy + np.sum(B * (GB - 2 * problem.cross), axis=0)
    if np.any(rss < CANCELLED * energy):
        return None
    G = problem.cross - GB - lam * B
    length = problem.total**0.5
    size = np.sqrt(energy) + length * norms(B)
    rounding = float(np.max(EPS * length * size / scale, initial=0.0))
    return Measured(B, np.zeros((0, B.shape[1])), G, rss, norms(G) / scale, size, rounding)


def _gradient_scale(problem: RidgeProblem) -> Vector:
    """‖X̃ᵀỹ‖ of each target, or where that is but rounding ‖X̃‖‖ỹ‖; 1 where both are 0."""
    cross = problem.cross
    cross = to_numpy(problem.A.T @ like(problem.source, problem.targets), float) if cross is None else cross
    whole = np.sqrt(problem.total * problem.energy)
    size = np.where(norms(cross) > 32 * EPS * whole, norms(cross), whole)
    return np.where(size > 0, size, 1.0)


def _why(problem: RidgeProblem, route: Route) -> str:
    if route.condition > SAFE:
        return f"its condition number is above {SAFE:.0e}"
    return "large means cancel in it" if problem.A.offset > 0 else "the fit is almost exact, and residuals cancel"


def _digits() -> str:
    digits = int(-np.log10(float(np.finfo(np.longdouble).eps)))
    return f"refined with residuals of {digits} digits"
