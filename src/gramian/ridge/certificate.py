"""How good a ridge solution is: the gradient measured with the data, a correction by it, a bound on the error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like, to_numpy
from gramian.results import Residual
from gramian.ridge.problem import RidgeProblem

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
TOLERANCE = 1e-8  # of the gradient, for direct methods: far above what they reach
CANCELLED = 1e-6  # RSS/‖ỹ‖² below which it is not derived from the moments
UNSEEN = 2.0**-40  # of ‖ỹ‖/‖X̃‖: coefficients within this of the exact ones are as good as right, though they be 0
CORRECTED = 1e4  # condition numbers above which a direct solution is corrected once whatever its gradient


class Gradient(NamedTuple):
    """A solution B with its residuals R = Ỹ − X̃B, its gradients G = X̃ᵀR − λB, and both in numbers.

    ``size`` is the length of what X̃ᵀ was multiplied by to get G, whose rounding G shares: ‖R‖, or ‖ỹ‖ + ‖X̃‖‖B‖ of
    moments. ``rounding`` is that of G where no product with the data shows it: of moments, or where means are taken
    off sparse data after they are multiplied.
    """

    B: Array
    R: Array
    G: Array
    rss: Array
    size: Array
    rounding: Array | float = 0.0


class RidgeFactor(ABC):
    """What a factorisation of X̃ᵀX̃ + λI says of some targets.

    Attributes
    ----------
    method, solver : str
        What is done, in words; its short name.
    condition : float
        Condition number of the matrix that is inverted.
    floor : ndarray of shape (t,)
        Lower bound on σ_p² + λ.
    dof, free : ndarray of shape (t,)
        Σσ²/(σ²+λ), without the intercept; N − df with it, which may be far smaller than either and is summed itself.
    rss : ndarray of shape (t,) or None
        Residual sums of squares where the method knows them better than the residuals, which cancel.
    rank : int
        Numerical rank of X̃, as far as the method can see.
    reads : int
        Passes over the data that no operator has counted.
    why : str
        Why another matrix than the one asked for was factored; for the certificate.
    """

    method: str
    solver: str
    condition: float
    floor: Array
    dof: Array
    free: Array
    rank: int
    rss: Array | None = None
    reads: int = 0
    why: str = ""

    @abstractmethod
    def coefficients(self) -> Array:
        """B, of shape (p, t)."""

    @abstractmethod
    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """B after one step of refinement with R = Ỹ − X̃B and G = X̃ᵀR − λB."""

    @abstractmethod
    def inverse(self) -> tuple[Array, Array, Array]:
        """V, d and e with (X̃ᵀX̃+λI)⁻¹ = V diag(d) Vᵀ + e(I − VVᵀ): of shapes (p, r), (r, t) and (t,)."""

    def refine_fully(self) -> tuple[Array, Array, Array, float] | None:
        """B, R and G in extended precision, and that precision, where that is worth it; else None."""
        return None

    def bounds(self, problem: RidgeProblem, state: Gradient, eps: float) -> Array:
        """Bound ‖ŵ − w‖ of each target, of products whose relative error is ``eps``."""
        return bound_by_floor(problem, state, eps, self.floor)


def bound_by_floor(problem: RidgeProblem, state: Gradient, eps: float, floor: Array) -> Array:
    """Bound ‖ŵ − w‖ by ‖G‖/(σ_p²+λ), to which rounding adds, with ``floor`` no more than σ_p² + λ.

    The rounding of X̃ᵀR is divided by σ_p² + λ as well, that of R = Ỹ − X̃B by its root: ‖(X̃ᵀX̃+λI)⁻¹X̃ᵀ‖ is no more.
    """
    offset, length = problem.A.offset, column_norms(state.B)
    size = float((problem.total + (16.0 * offset if offset else 0.0)) ** 0.5)  # of the numbers that are multiplied
    least = np.where(floor > 0, floor, np.nan)
    within = eps * (np.sqrt(problem.energy) + size * length) / np.sqrt(least)
    bounds = (column_norms(state.G) + eps * size * state.size) / least + within + 2 * EPS * length
    return np.where(floor > 0, bounds, np.inf)


def rounding_of_gradient(problem: RidgeProblem, state: Gradient, eps: float) -> tuple[Array, Array]:
    """‖δR‖ and ‖D⁻¹δG‖ of the rounding of R = Ỹ − X̃B and of X̃ᵀR, with D the lengths of the columns of X̃.

    At most ε(p+2)Σ|b_j|‖x̃_j‖ + 2ε‖ỹ‖ and, as sums of n products err like random numbers, ε(8+√n)√p‖R‖.
    """
    (n, p), longer = problem.source.shape, eps * problem.longer
    residual = longer * ((p + 2) * (np.sqrt(problem.diagonal) @ np.abs(state.B)) + 2 * np.sqrt(problem.energy))
    return residual, longer * (8 + n**0.5) * p**0.5 * state.size


def is_proved(problem: RidgeProblem, B: Array, bounds: Array | None, tolerance: float) -> bool:
    """Whether ‖ŵ − w‖ is proved to be at most √tolerance ‖ŵ‖, or next to nothing compared with ‖ỹ‖/‖X̃‖.

    A gradient within the tolerance says nothing of the coefficients where X̃ᵀX̃ + λI is nearly singular: what users read
    off a solution that has converged are coefficients, so that half of the digits asked for are promised of these.
    """
    if bounds is None:
        return False
    # of sparse columns the means count as well: what is left of a constant one is rounding, and no measure of anything
    size = np.sqrt(problem.energy) / ((problem.total + problem.A.offset) ** 0.5 or 1.0)
    return bool(
        np.all(bounds + problem.scaling_errors(B) <= np.maximum(tolerance**0.5 * column_norms(B), UNSEEN * size))
    )


def certify(problem: RidgeProblem, factor: RidgeFactor, lam: Array, reason: str) -> tuple[Array, Array, Residual]:
    """Solve, measure the gradient with the data, correct where that helps: B, RSS, and how good they are."""
    scale = gradient_scale(problem)
    full, notes, eps = factor.refine_fully(), [], EPS
    if full is not None:
        B, R, G, eps = full
        state = Gradient(B, R, G, column_norms(R) ** 2, column_norms(R))
        notes.append(f"refined with residuals of {int(-np.log10(eps))} digits")
    else:
        state = _refine(problem, factor, lam, scale)
    if factor.why and lam[0] > 0:
        notes.append(f"forming the Gram matrix was not safe: {factor.why}")
    bounds = factor.bounds(problem, state, eps)
    bounds = np.where(np.isnan(bounds), np.inf, bounds)  # 0 times what overflows: nothing is proved
    certificate = Residual(
        method=factor.method,
        reason=reason,
        passes=problem.passes,
        iterations=0,
        residuals=column_norms(state.G) / scale,
        tolerance=TOLERANCE,
        rounding=float(np.max(state.rounding / scale, initial=0.0)),
        condition=factor.condition,
        error_bounds=bounds,
        bounded="‖ŵ − w‖",
        proved=is_proved(problem, state.B, bounds, TOLERANCE),
        device=problem.A.device_name,
        precision=problem.A.precision,
        notes=tuple(notes),
    )
    return state.B, state.rss if factor.rss is None else factor.rss, certificate


def gradient_scale(problem: RidgeProblem) -> Array:
    """‖X̃ᵀỹ‖ of each target, which gradients are measured by; where that is but rounding, ‖X̃‖‖ỹ‖; 1 where both are 0."""
    if problem.cross is None:
        problem.cross = to_numpy(problem.A.T @ like(problem.source, problem.targets), float)
    length, whole = column_norms(problem.cross), np.sqrt(problem.total * problem.energy)
    scale = np.where(length > 32 * EPS * whole, length, whole)
    return np.where(scale > 0, scale, 1.0)


def _refine(problem: RidgeProblem, factor: RidgeFactor, lam: Array, scale: Array) -> Gradient:
    """Correct by the measured gradient while that brings it down."""
    B = factor.coefficients()
    best = measure_gradient(problem, B, lam, spare=factor.solver == "cholesky" and not problem.source.resident)
    worst = float(np.max(column_norms(best.G) / scale, initial=0.0))
    for step in range(3):
        done = worst <= 1e-13 and (step > 0 or factor.condition < CORRECTED)
        if done or not (problem.source.resident or worst > TOLERANCE):  # passes over a file cost
            break
        state = measure_gradient(problem, factor.refine(best.B, best.R, best.G), lam)
        now = float(np.max(column_norms(state.G) / scale, initial=0.0))
        better = now < 0.5 * worst
        if better or (step == 0 and now <= 2 * worst):
            best, worst = state, now
        if not better:
            break
    return best


def measure_gradient(problem: RidgeProblem, B: Array, lam: Array, *, spare: bool = False) -> Gradient:
    """Measured with the data: two products; or, to ``spare`` a file another pass, from X̃ᵀX̃ and X̃ᵀỸ."""
    A, source = problem.A, problem.source
    if spare and problem.gram is not None and problem.cross is not None:
        GB, energy, length = problem.gram @ B, problem.energy, problem.total**0.5
        rss = energy + np.sum(B * (GB - 2 * problem.cross), axis=0)
        if not np.any(rss < CANCELLED * energy):  # else too many digits would cancel
            size, G = np.sqrt(energy) + length * column_norms(B), problem.cross - GB - lam * B
            size = size if problem.scale is None else 3.0 * size  # dividing X̃ᵀX̃ by s twice has rounded each entry
            return Gradient(B, np.zeros((0, B.shape[1])), G, rss, size, EPS * length * size)
    R = problem.targets - to_numpy(A @ like(source, B), float)
    G = to_numpy(A.T @ like(source, R), float) - lam * B
    size = column_norms(R)
    lost = EPS * A.offset**0.5 * (size + problem.total**0.5 * column_norms(B))
    return Gradient(B, R, G, size**2, size, lost)


def column_norms(G: Array) -> Array:
    """Lengths of the columns."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", G, G)))
