r"""How far an inducing-point model can be from exact kernel ridge regression, from what its own passes measured.

Two bounds on ‖f̂ − f‖ in the space of the kernel; both need no more than the solution's errors e = y − f̂.

**Padded.** With zeros for all rows that are no centres, a is a candidate β = a/√w for the exact system
(B + λI)β = ỹ, with residual r = √w e − λa/√w; then ‖f̂ − f‖ ≤ ‖r‖/(2√λ).

**What the centres leave out.** f − f̂ = (ΦᵀWΦ + λ)⁻¹g in feature space, with the gradient g = Σ w_i e_i φ(x_i) − λf̂. Its
part in the span of the centres is the residual of the normal equations; the rest is Σ w_i e_i(I − P)φ(x_i), so that

.. math:: \|\hat f-f\|\le\frac1\lambda\sqrt{\|\rho\|^2+\Big(\sum_iw_i|e_i|\,\|(I-P)\varphi(x_i)\|\Big)^2}

The first is never more than the errors themselves suggest; the second goes to 0 as the centres fill the space. With an
intercept Σ w_i e_i = 0 and Σ a_j = 0, and both hold for features about any point.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gramian.linear._inducing.passes import First, Measured
from gramian.linear._inducing.problem import Problem
from gramian.linear._inducing.whitening import EPS

__all__ = ["BOUNDED", "error_bounds"]

Vector = npt.NDArray[np.float64]

BOUNDED = "|f̂(x) − f(x)|/‖φ(x)‖ against exact kernel ridge"


def error_bounds(problem: Problem, first: First, at: Measured, lam: Vector) -> tuple[Vector | None, str]:
    """Return the smaller of the bounds that can be had for each target, and which; None where there is none."""
    found = {}
    slips = _slips(problem, first, at)
    with np.errstate(divide="ignore"):
        if problem.indices is not None:
            found["of the coefficients, padded with zeros, in the exact system"] = _padded(problem, at, lam, slips)
        if first.outside is not None:
            found["of what the centres leave out of the features"] = _left_out(problem, first, at, lam, slips)
    if not found:
        return None, "no bound: neither the rows of the centres nor k(x, x) were given"
    name = min(found, key=lambda key: float(np.max(found[key], initial=0.0)))
    return np.min(list(found.values()), axis=0), f"the bound is that {name}"


def _slips(problem: Problem, first: First, at: Measured) -> Vector:
    """Rounding of √w(y − b − k(X, Z)a), all rows together."""
    m = problem.A.shape[1]
    products = (np.sqrt(m) + 16) * np.linalg.norm(at.a, axis=0) * np.sqrt(first.square)
    return np.asarray(max(EPS, problem.A.epsilon) * (products + 4 * problem.lengths))


def _padded(problem: Problem, at: Measured, lam: Vector, slips: Vector) -> Vector:
    assert problem.indices is not None
    root = np.sqrt(problem.w)[:, None]
    R = root * at.errors
    np.subtract.at(R, problem.indices, lam * at.a / root[problem.indices])
    return np.asarray((np.linalg.norm(R, axis=0) + slips) / (2.0 * np.sqrt(lam)))


def _left_out(problem: Problem, first: First, at: Measured, lam: Vector, slips: Vector) -> Vector:
    assert first.outside is not None
    length = np.sqrt(problem.w @ at.errors**2)
    rest = (problem.w * first.outside) @ np.abs(at.errors)
    noise = 8 * EPS * float(np.max(problem.basis.noise, initial=0.0)) * np.sqrt(first.square) * length
    noise = noise + np.sqrt(problem.mass) * problem.basis.size * slips
    return np.asarray((np.hypot(np.linalg.norm(at.gradient, axis=0), rest) + noise) / lam)
