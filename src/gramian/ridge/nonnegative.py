r"""Ridge regression with coefficients that are not negative: the support by pivoting, and a proof by its gradient.

.. math:: \min_{\beta\ge0}\ \|\tilde y-\tilde X\beta\|^2+\lambda\|\beta\|^2,\qquad
    g=\tilde X^T(\tilde y-\tilde X\beta)-\lambda\beta,\qquad
    \beta_j>0\Rightarrow g_j=0,\quad \beta_j=0\Rightarrow g_j\le0

**The bound.** Let d be g where β > 0 and the positive part of g elsewhere. Then β solves the same problem with X̃ᵀỹ − d
in place of X̃ᵀỹ exactly. With A = X̃ᵀX̃ + λI the solutions of two such problems differ by e with eᵀAe ≤ dᵀe, hence
‖e‖ ≤ ‖d‖/(σ_p²+λ), and the objective is at most 2‖d‖‖e‖ above its least value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.linalg as la
from scipy.optimize import nnls

from gramian.compute.devices import refuse_beyond_device, to_numpy
from gramian.results import NumericalWarning, Residual
from gramian.ridge.certificate import (
    EPS,
    TOLERANCE,
    Gradient,
    bound_by_floor,
    column_norms,
    gradient_scale,
    is_proved,
    measure_gradient,
)
from gramian.ridge.path import augmented_triangle
from gramian.ridge.problem import RidgeProblem
from gramian.ridge.solve import RidgeSolution, in_own_units

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

GRAM_COLUMNS = 2000  # columns up to which X̃ᵀX̃ is formed although there are fewer rows
CHANCES = 3  # rounds without fewer wrong signs, after which one sign is changed at a time
SLACK = 1e-13  # of the largest: a coefficient or gradient of the wrong sign that is rounding
REFINEMENTS = 3
REMEDY = "Use a larger alpha, bring columns to similar size, or leave out those that nearly follow from others."


def wants_gram(n: int, p: int) -> bool:
    """Whether the solver works with X̃ᵀX̃, or with the columns of X̃ themselves.

    Examples
    --------
    >>> from gramian.ridge.nonnegative import wants_gram
    >>> wants_gram(5000, 3000), wants_gram(100, 50_000)
    (True, False)
    """
    return p <= max(n, GRAM_COLUMNS)


def solve_nonnegative(problem: RidgeProblem, alpha: Array, reason: str) -> RidgeSolution:
    """Find the support of each target by block principal pivoting (Portugal, Júdice and Vicente 1994), then refine.

    At λ = 0 the support is that of the active-set method of Lawson and Hanson on the R of X̃ = QR.
    """
    (n, p), (lam, scale) = problem.source.shape, problem.scale_penalties(alpha)
    remedy = ("Use fewer columns, or ", ("positive", False), ".")
    if problem.gram is None:
        refuse_beyond_device(24.0 * n * p, None, f"A dense {n} × {p} matrix", remedy)
        X = to_numpy(problem.A.to_dense(), float)
        H = X.T @ problem.targets
    else:
        assert problem.cross is not None
        X, H = problem.gram, problem.cross
    B, rounds, triangle = np.zeros((p, len(lam))), 0, None
    supports = []
    for j, shift in enumerate(lam):

        def solve(support: Mask, r: Array | None = None, j: int = j, shift: float = shift) -> Array:
            """(X̃ᵀX̃ + λI)⁻¹r on the support, r being X̃ᵀỹ where none is given."""
            out = np.zeros(p)
            P = np.flatnonzero(support)
            if problem.gram is None and len(P) > n and shift > 0.0:
                # X̃ᵀ(X̃X̃ᵀ + λI)⁻¹ỹ, in which nothing cancels; or (I − X̃ᵀ(X̃X̃ᵀ + λI)⁻¹X̃)r/λ
                Z = X[:, P]
                K = Z @ Z.T
                K[np.diag_indices(n)] += shift
                a = la.solve(K, problem.targets[:, j] if r is None else Z @ r[P], assume_a="pos", check_finite=False)
                out[P] = Z.T @ a if r is None else (r[P] - Z.T @ a) / shift
                return out
            r = H[:, j] if r is None else r
            M = X[np.ix_(P, P)] if problem.gram is not None else X[:, P].T @ X[:, P]
            M[np.diag_indices(len(P))] += shift
            try:
                out[P] = la.cho_solve(la.cho_factor(M, check_finite=False), r[P], check_finite=False)
            except la.LinAlgError:
                out[P] = la.lstsq(M, r[P], check_finite=False)[0]
            return out

        def gradient(b: Array, h: Array = H[:, j], shift: float = shift) -> Array:
            """X̃ᵀ(ỹ − X̃b) − λb."""
            return np.asarray(h - (X @ b if problem.gram is not None else X.T @ (X @ b)) - shift * b)

        if shift > 0.0:
            support, steps = _pivot(solve, gradient, H[:, j])
        else:
            triangle = augmented_triangle(problem) if triangle is None else triangle
            support = nnls(triangle[:, :p], triangle[:, p + j], maxiter=100 + 30 * p)[0] > 0.0
            steps = int(np.count_nonzero(support))
        supports.append((support, solve))
        B[:, j], rounds = np.maximum(solve(support), 0.0), max(rounds, steps)

    # corrected by gradients measured with the data, while that brings down what is wrong with their signs
    units = gradient_scale(problem)

    def measure(B: Array) -> tuple[Gradient, float]:
        state = measure_gradient(problem, B, lam)
        D = np.where(B > 0.0, state.G, np.maximum(state.G, 0.0))
        return state._replace(G=D), float(np.max(column_norms(D) / units, initial=0.0))

    kept, wrong = measure(B)
    for _ in range(REFINEMENTS):
        steps_of = [solve(support, kept.G[:, j]) for j, (support, solve) in enumerate(supports)]
        state, size = measure(np.maximum(kept.B + np.stack(steps_of, axis=1), 0.0))
        if not size < 0.5 * wrong:
            break
        kept, wrong = state, size
    best, bounds = kept.B, bound_by_floor(problem, kept, EPS, lam)
    if not is_proved(problem, best, bounds, TOLERANCE) and problem.gram is not None and p <= n:
        squares = la.eigvalsh(problem.gram, check_finite=False)  # σ_p² may prove what λ alone does not
        least = max(float(squares[0]) - 4 * EPS * p * float(squares[-1]) - problem.cancelled, 0.0)
        bounds = bound_by_floor(problem, kept, EPS, lam + least)
    proved = is_proved(problem, best, bounds, TOLERANCE)
    coef, own = in_own_units(problem, best, scale, bounds)
    with np.errstate(over="ignore", invalid="ignore"):
        gap = float(np.max(2 * column_norms(kept.G) * bounds, initial=0.0)) / problem.y_unit / problem.y_unit
    positive = ", ".join(str(k) for k in np.count_nonzero(best, axis=0)[:5])
    certificate = Residual(
        method="block pivoting on the signs of coefficients and gradients",
        reason=reason,
        passes=problem.passes,
        iterations=rounds,
        residuals=column_norms(kept.G) / units,
        tolerance=TOLERANCE,
        rounding=float(np.max(kept.rounding / units, initial=0.0)),
        error_bounds=own,
        bounded="‖ŵ − w‖",
        proved=proved,
        device=problem.A.device_name,
        precision=problem.A.precision,
        notes=(f"{positive} of {p} coefficients are positive", f"the objective is within {gap:.1e} of its least value"),
    )
    certificate.warn_unless_converged(REMEDY, NumericalWarning)
    unknown = np.full(len(alpha), np.nan)
    return RidgeSolution(problem, coef, certificate, "nonnegative", kept.rss, unknown, unknown, None, ())


def _pivot(solve: Callable[[Mask], Array], gradient: Callable[[Array], Array], h: Array) -> tuple[Mask, int]:
    """The support of the solution: all wrong signs are changed at once, and one by one where that goes on for long."""
    support = np.zeros(len(h), dtype=bool)
    fewest, chances, steps, b = len(h) + 1, CHANCES, 0, np.zeros(len(h))
    while steps < 100 + 3 * len(h):
        b, steps = solve(support), steps + 1
        g = gradient(b)
        wrong = np.where(
            support, b < -SLACK * np.max(np.abs(b), initial=0.0), g > SLACK * np.max(np.abs(h), initial=0.0)
        )
        count = int(np.count_nonzero(wrong))
        if not count:
            break
        if count < fewest:
            fewest, chances = count, CHANCES
        elif chances:
            chances -= 1
        else:  # Murty's rule ends whatever the problem
            wrong = np.arange(len(h)) == np.flatnonzero(wrong)[-1]
        support = support ^ wrong
    return support & (b > 0.0), steps
