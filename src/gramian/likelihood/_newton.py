r"""Newton's method for a log-likelihood: steps I⁻¹g with |I| where the curvature is wrong, shortened until it grows.

The certificate is the length of the next step in standard errors, √(gᵀI⁻¹g).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.likelihood._problem import Problem
from gramian.likelihood.families._links import REAL

__all__ = ["FAR", "Ascent", "ascend", "decrement"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

LONGEST = 2.0  # step in a coordinate, as in ln σ: a factor 7
FLAT = 1e-8  # of the information where the search began, below which nothing more is being learnt
FAR = 30.0  # change of a logarithm beyond which a parameter has run away: a factor e³⁰ = 1e13
LIMIT = 10.0  # and of one that makes the family another, as the degrees of freedom do: a factor 2e4
REAL_FAR = 1e12  # and of parameters that are no logarithms
POLISH = 1e-12  # standard errors that Newton's quadratic convergence reaches in one more step
HALVINGS = 50
IDLE = 4  # steps that gain nothing before the search ends
SHORTER = 5  # how often differences are made shorter


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where the search ended: φ, the value, the trace of values, the decrement, and what ran away."""

    phi: Vector
    value: float
    trace: tuple[float, ...]
    decrement: float
    information: Matrix
    runaway: tuple[int, int] | None = None  # a coordinate and the sign of its flight


def decrement(g: Vector, information: Matrix) -> tuple[Vector, float]:
    """The step |I|⁻¹g and √(gᵀ|I|⁻¹g), scaled first so that coordinates of all sizes keep their digits."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(information)), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    sizes = np.maximum(np.abs(values), 1e-14)
    along = vectors.T @ (g * scale)
    with np.errstate(over="ignore", invalid="ignore"):  # without information a step is as long as it may be
        step = scale * (vectors @ (along / sizes))
        return np.nan_to_num(step), float(np.sqrt(np.sum(along**2 / sizes)))


def ascend(problem: Problem, phi: Vector, tolerance: float, most: int) -> Ascent:
    """Climb from φ until the decrement meets the tolerance and can be lowered no more."""
    which, start = np.flatnonzero(problem.free), phi
    value = problem.value(phi)
    trace, best, first, idle = [value], np.inf, None, 0
    for _ in range(most + 1):
        g, information = _derivatives(problem, phi)
        if not np.all(np.isfinite(information)):
            break
        step, size = decrement(g, information)
        first = information if first is None else first
        flight = _flight(problem, phi, start, information, first, step)
        if flight is not None:
            return Ascent(phi, value, tuple(trace), np.inf, information, flight)
        if size <= POLISH or (size <= tolerance and size > 0.5 * best) or len(trace) > most:
            break
        best = min(best, size)
        moved, higher = _climb(problem, phi, which, step, value, float(g @ step))
        if moved is None:
            break
        idle = idle + 1 if higher - value <= _noise(problem, value) else 0
        phi, value = moved, higher
        trace.append(value)
        if idle >= IDLE:
            break
    return _measured(problem, phi, value, trace)


def _derivatives(problem: Problem, phi: Vector, fine: bool = False) -> tuple[Vector, Matrix]:
    """Score and information; with shorter differences where they reach beyond the support."""
    for _ in range(SHORTER):
        information = problem.information(phi, fine)
        g = problem.gradient(phi)[problem.free]
        if np.all(np.isfinite(g)) and np.all(np.isfinite(information)):
            return g, information
        problem.steps = 0.2 * problem.steps
    free = int(problem.free.sum())
    return np.full(free, np.nan), np.full((free, free), np.nan)


def _measured(problem: Problem, phi: Vector, value: float, trace: list[float]) -> Ascent:
    """The gradient and the information where the search ended, as accurately as they can be had."""
    g, information = _derivatives(problem, phi, fine=True)
    if not np.all(np.isfinite(information)):
        return Ascent(phi, value, tuple(trace), np.inf, information)
    return Ascent(phi, value, tuple(trace), decrement(g, information)[1], information)


def _climb(
    problem: Problem, phi: Vector, which: npt.NDArray[np.intp], step: Vector, value: float, slope: float
) -> tuple[Vector | None, float]:
    """The first of ever shorter steps that climbs; a fall by less than rounding is none."""
    real = np.array([problem.family.parameters[j].link == REAL for j in which])
    most = np.where(real, 10.0 * np.maximum(problem.steps[which], np.abs(phi[which])), LONGEST)
    shorter = 1.0 / max(1.0, float(np.max(np.abs(step) / most)))
    noise = _noise(problem, value)
    for _ in range(HALVINGS):
        moved = phi.copy()
        moved[which] += shorter * step
        higher = problem.value(moved)
        if higher >= value + 1e-4 * shorter * slope - (noise if slope < 1e3 * noise else 0.0):
            return moved, max(higher, value) if higher >= value - noise else higher
        shorter *= 0.5
    return None, value


def _noise(problem: Problem, value: float) -> float:
    """What rounding does to the likelihood."""
    return 1e-14 * (abs(value) + problem.total)


def _flight(
    problem: Problem, phi: Vector, start: Vector, information: Matrix, first: Matrix, step: Vector
) -> tuple[int, int] | None:
    """Which coordinate has left for infinity, judged by its size or by the data no longer telling where it is."""
    which = np.flatnonzero(problem.free)
    moved = phi - start
    most = np.array([REAL_FAR if problem.family.parameters[j].link == REAL else FAR for j in which])
    if problem.family.limit is not None:
        most[which == problem.family.limit.parameter] = LIMIT
    far = np.flatnonzero(np.abs(moved[which]) > most)
    if len(far):
        return int(which[far[0]]), int(np.sign(moved[which[far[0]]]))
    W = _whitening(first)
    values, vectors = np.linalg.eigh(W.T @ information @ W)
    if abs(values[0]) < FLAT:
        along = (W @ vectors[:, 0]) * np.sqrt(np.abs(np.diag(first)))
        i = int(np.argmax(np.abs(along)))
        towards = step[i] if step[i] != 0.0 else moved[which[i]]
        return int(which[i]), int(np.sign(towards))
    return None


def _whitening(information: Matrix) -> Matrix:
    """W with Wᵀ|I|W = 1, so that what is flat is judged by directions and not by coordinates."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(information)), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors / np.sqrt(np.maximum(np.abs(values), 1e-14)))
