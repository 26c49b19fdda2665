r"""Solvers of a ridge regression: which one, and B = (X̃ᵀX̃+λI)⁻¹X̃ᵀỸ by a factor or by conjugate gradients."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as la
from scipy.linalg import lapack

from gramian.compute.dense import product
from gramian.compute.devices import ALWAYS_TRIED, like, refuse_beyond_device, to_numpy
from gramian.compute.factor import eigh, factorise, invert_triangle
from gramian.compute.memory import available_memory
from gramian.compute.threads import quiet_blas
from gramian.linear.cgls import CGLS, REMEDY
from gramian.results import NumericalWarning, Residual, caller_level
from gramian.ridge.certificate import (
    EPS,
    Gradient,
    RidgeFactor,
    bound_by_floor,
    certify,
    column_norms,
    is_proved,
    measure_gradient,
    rounding_of_gradient,
)
from gramian.ridge.least_squares import SMALL, LeastSquaresFactor
from gramian.ridge.path import (
    CANCELLED_MEANS,
    CONTRACTION,
    SAFE,
    Decomposition,
    constant_directions,
    decompose,
)
from gramian.ridge.problem import RidgeProblem
from gramian.sources import Source

Array = npt.NDArray[np.float64]

ITERATIVE = ("cg", "lsqr", "sparse_cg", "sag", "saga")  # scikit-learn's names, all of them our block CGLS
SOLVERS = ("auto", "svd", "cholesky", "primal", "dual", *ITERATIVE)
SPARSE_GRAM = 2000  # rows or columns up to which sparse data have a dense Gram matrix made of them
FILE_COGRAM = 2048  # rows up to which X̃X̃ᵀ of a file is made, in one pass for every 128 of them
SATURATED = 1e-4  # of N − df: below, with as many coefficients as observations, residuals are not differences
KEEP = 2**22  # numbers of a basis that a fitted model carries with it unless asked for more: 32 MiB
AFFORDABLE = 1e10  # multiplications, about a second, of a decomposition where conjugate gradients prove too little
SMALLEST = 2.0**-1000  # largest coefficient of a target, with all its digits


def choose_solver(source: Source, solver: str) -> tuple[str, str]:
    """Return "cholesky", "dual", "svd" or "cg", and the reason: as asked for, or the smaller Gram matrix, if bearable.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.ridge.solve import choose_solver
    >>> choose_solver(gramian.open(np.ones((3, 5))), "auto")
    ('dual', '5 columns, 3 rows: the dual problem is the smaller one')
    """
    n, p = source.shape
    if solver != "auto":
        return "cg" if solver in ITERATIVE else {"primal": "cholesky"}.get(solver, solver), f"solver={solver!r}"
    size = min(n, p)
    nbytes = 24.0 * size * size
    if nbytes > ALWAYS_TRIED and nbytes > available_memory() / 2:
        return "cg", f"a {size} × {size} matrix and its factor would not fit in memory"
    if source.sparse and size > SPARSE_GRAM:
        return "cg", f"the data are sparse and both of {n} × {p} are large"
    if p <= n:
        return "cholesky", f"{p} columns, {n} rows"
    if not source.resident and n > FILE_COGRAM:
        return "cg", f"X̃X̃ᵀ of {n} rows in a file would take {n // 128} passes"
    return "dual", f"{p} columns, {n} rows: the dual problem is the smaller one"


@dataclass(frozen=True, eq=False)
class RidgeInverse:
    """(X̃ᵀX̃+λI)⁻¹ of some targets: V diag(inverse) Vᵀ, and ``outside`` times what V does not span.

    Attributes
    ----------
    targets : ndarray of shape (g,)
        Which.
    basis : ndarray of shape (p, r)
        V.
    inverse : ndarray of shape (r, g)
        1/(σ²+λ).
    outside : ndarray of shape (g,)
        1/λ where V has fewer than p columns, else 0.
    unit : float
        All this is of data multiplied by it.
    """

    targets: npt.NDArray[np.intp]
    basis: Array
    inverse: Array
    outside: Array
    unit: float

    def matrix(self, k: int) -> Array:
        """(X̃ᵀX̃+λI)⁻¹ of one target, in the data's own units."""
        V = self.basis
        inside = (V * self.inverse[:, k]) @ V.T
        if self.outside[k]:
            inside = inside + self.outside[k] * (np.eye(len(V)) - V @ V.T)
        return np.asarray(self.unit * self.unit * inside)


@dataclass(frozen=True, eq=False)
class InverseToCome:
    """The same, of a dual problem, made when it is asked for: a decomposition takes longer than the fit.

    Attributes
    ----------
    targets, unit
        As of a :class:`RidgeInverse`.
    rows : ndarray of shape (n, p)
        X̃: no more numbers than its right singular vectors have.
    rank : int
        How many of these stand out of rounding.
    lam : ndarray of shape (g,)
        λ of each target, in the units of the problem.
    """

    targets: npt.NDArray[np.intp]
    rows: Array
    rank: int
    lam: Array
    unit: float

    @cached_property
    def made(self) -> RidgeInverse:
        """V = X̃ᵀU/σ from the eigenvectors of X̃X̃ᵀ."""
        squares, U = eigh(self.rows @ self.rows.T, overwrite=True)
        squares, U = squares[::-1][: self.rank], U[:, ::-1][:, : self.rank]
        V = (self.rows.T @ U) / np.sqrt(squares)
        return RidgeInverse(self.targets, V, 1.0 / (squares[:, None] + self.lam), 1.0 / self.lam, self.unit)


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Coefficients of all targets in the data's own units and precision, and what is known about them.

    ``rss``, the residual sums of squares, are in the units of the problem; ``dof`` counts the intercept and ``free`` is
    N − dof. Where no decomposition was made, these are NaN, the rank is None and there are no inverses.
    """

    problem: RidgeProblem
    coef: npt.NDArray[np.float32] | Array
    certificate: Residual
    solver: str
    rss: Array
    dof: Array
    free: Array
    rank: int | None
    inverses: tuple[RidgeInverse | InverseToCome, ...]


def solve_directly(problem: RidgeProblem, alpha: Array, solver: str, reason: str, *, keep: bool) -> RidgeSolution:
    """Solve by a factor: targets with a penalty together, and those without."""
    lam, _ = problem.scale_penalties(alpha)
    parts = []
    for wanted in (lam > 0, lam == 0):
        columns = np.flatnonzero(wanted)
        if len(columns):
            part = problem if wanted.all() else problem.for_targets(columns)
            parts.append((columns, part, _factorise(part, lam[columns], solver)))
    return solve_by_factors(problem, alpha, parts, reason, keep=keep)


def _factorise(problem: RidgeProblem, lam: Array, solver: str) -> RidgeFactor:
    """The factor asked for where it is safe, else one that does not square the condition number."""
    small, why = problem.source.shape[0] * problem.source.shape[1] <= SMALL, ""
    if solver == "cholesky" and np.all(lam == lam[0]) and not (small and lam[0] == 0.0):
        factor = CholeskyFactor(problem, lam)
        why = factor.why
        if not why:
            return factor
        solver = "svd"
    if lam[0] == 0.0:
        return LeastSquaresFactor(problem)
    n, p = problem.source.shape
    one_host = problem.A.device is None and not problem.source.sparse and problem.source.resident
    if solver == "dual" and n <= p and one_host and np.all(lam == lam[0]):
        dual = DualCholeskyFactor(problem, lam)
        if not dual.why:
            return dual
    # where there are fewer rows than columns, B = X̃ᵀa lies in their span whatever rounding does to a
    found = decompose(problem, solver, float(np.min(lam)), dual=p >= n)
    return factor_of(replace(found, why=why) if why else found, lam)


def factor_of(found: Decomposition, lam: Array) -> RidgeFactor:
    """Return the factor that a decomposition gives for one λ of each target."""
    return DualFactor(found, lam) if found.dual else SpectralFactor(found, lam)


class CholeskyFactor(RidgeFactor):
    r"""One λ: X̃ᵀX̃ + λI = S⁻¹LLᵀS⁻¹ with S making the diagonal 1, which Cholesky's rounding does not see."""

    solver, method = "cholesky", "Cholesky factor of X̃ᵀX̃ + λI"

    def __init__(self, problem: RidgeProblem, lam: Array) -> None:
        gram, shift = problem.gram, float(lam[0])
        assert gram is not None
        assert problem.cross is not None
        self.cross, p, t = problem.cross, len(gram), len(lam)
        diagonal = np.diagonal(gram) + shift
        self.scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled = gram * self.scale[:, None] * self.scale[None, :]
        np.fill_diagonal(scaled, 1.0)
        norm = float(np.max(np.abs(scaled).sum(axis=0)))
        self.factor = np.asfortranarray(scaled.T)  # symmetric: its transpose is itself, as a rule without a copy
        reciprocal = 0.0
        if factorise(self.factor) == 0 and np.all(diagonal > 0):
            with quiet_blas():
                reciprocal = float(lapack.dpocon(self.factor, norm, uplo="L")[0])
        self.condition = 1.0 / reciprocal if reciprocal > 0 else np.inf
        if not self.condition <= SAFE:
            self.why = f"its condition number is above {SAFE:.0e}"
            return
        inverse = np.triu(self.factor.T).T
        invert_triangle(inverse)
        self.basis = self.scale[:, None] * inverse.T
        trace = float(np.vdot(self.basis, self.basis))
        left = shift * trace  # Σλ/(σ²+λ)
        fixed = problem.weights.count - float(problem.intercept) - p
        if fixed <= 0 and left < SATURATED:  # then RSS/(N − df) is a ratio of two small numbers
            self.why = "the fit is almost exact, and residuals cancel"
        elif problem.cancelled * trace > CONTRACTION:
            self.why = CANCELLED_MEANS
        if self.why:
            return
        self.floor = np.full(t, max(shift, 1.0 / trace - problem.cancelled))
        kept = p - left if left < 0.5 * p else float(np.sum(self.basis * product(gram, self.basis)))
        self.dof = np.full(t, max(kept, 0.0))
        self.free = np.full(t, max(fixed + left, 0.0))
        # the rank of X̃ with columns of length 1: full where 1/‖L⁻¹‖² − λ max S² bounds all pivots from below, else by
        # a Cholesky factorisation with pivots: σ to the root of rounding
        self.root = float(np.linalg.norm(inverse))  # ‖L⁻¹‖
        least = 1.0 / self.root**2 - shift * float(np.max(self.scale)) ** 2
        if least > 8 * problem.rounding and problem.varies.all():
            self.rank = p
            return
        unit = np.where(problem.varies, 1.0 / np.sqrt(np.where(problem.varies, problem.diagonal, 1.0)), 0.0)
        of_unit = gram * unit[:, None] * unit[None, :]
        with quiet_blas():  # it is made of products with vectors, which threads share badly
            self.rank = int(lapack.dpstrf(of_unit, tol=4 * problem.rounding, lower=1, overwrite_a=1)[2])

    def coefficients(self) -> Array:
        """(X̃ᵀX̃+λI)⁻¹X̃ᵀỸ."""
        # eq: ridge-primal
        return self._solve(self.cross)

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """B + (X̃ᵀX̃+λI)⁻¹G."""
        return B + self._solve(G)

    def inverse(self) -> tuple[Array, Array, Array]:
        """S L⁻ᵀ, whose square is the inverse."""
        t = len(self.dof)
        return self.basis, np.ones((len(self.basis), t)), np.zeros(t)

    def bounds(self, problem: RidgeProblem, state: Gradient, eps: float) -> Array:
        """With M = SL⁻ᵀ, ‖(X̃ᵀX̃+λI)⁻¹G‖ + ‖M‖(‖δR‖ + ‖L⁻¹‖‖D⁻¹δG‖ + φ‖MᵀG‖) + 2ε‖B‖, however columns are scaled.

        ‖MᵀX̃ᵀ‖ ≤ 1 and SD ≤ I. The factor is that of (I+F) times the matrix, seen from both sides by M, and ‖F‖ ≤ φ,
        p times the condition number times ε: nine digits at least, or it would not be used.
        """
        if problem.A.offset and not problem.varies.all():  # of such columns nothing but cancelled digits is left
            return super().bounds(problem, state, eps)
        residual, gradient = rounding_of_gradient(problem, state, eps)
        spread, root = np.linalg.norm(self.basis), self.root
        step = column_norms(self._solve(state.G))
        lost = 4 * EPS * len(self.basis) * self.condition * column_norms(self.basis.T @ state.G)
        return np.asarray(
            1.01 * (step + spread * (residual + root * gradient + lost)) + 2 * EPS * column_norms(state.B)
        )

    def _solve(self, H: Array) -> Array:
        S = self.scale[:, None]
        with quiet_blas():
            return np.asarray(S * lapack.dpotrs(self.factor, S * H, lower=1, overwrite_b=1)[0])


class DualCholeskyFactor(RidgeFactor):
    r"""One λ: B = X̃ᵀa with a = (X̃X̃ᵀ+λI)⁻¹Ỹ by a Cholesky factor LLᵀ.

    Directions Q that X̃ and Ỹ are orthogonal to (√w where there is an intercept, rows without weight) are given a
    square of middle size, which changes nothing else and no condition number.
    """

    solver, method = "dual", "Cholesky factor of X̃X̃ᵀ + λI"
    can_wait = True

    def __init__(self, problem: RidgeProblem, lam: Array) -> None:
        self.problem, self.lam, shift = problem, lam, float(lam[0])
        n, Q = problem.source.shape[0], constant_directions(problem)
        what, remedy = f"The {n} × {n} matrix X̃X̃ᵀ", ("Use ", ("solver", "cg"), ", which never forms it.")
        refuse_beyond_device(24.0 * n * n, None, f"{what} and its factor", remedy)
        K, used = problem.A.cogram(), n - Q.shape[1]
        middle = float(np.trace(K)) / max(used, 1) or 1.0
        for q in Q.T:
            where = np.flatnonzero(q) if np.count_nonzero(q) < n else slice(None)
            K[np.ix_(where, where) if isinstance(where, np.ndarray) else where] += middle * np.outer(q[where], q[where])
        norm = float(np.max(np.abs(K).sum(axis=0), initial=0.0))
        self.factor = np.array(K.T, order="F")
        self.factor[np.diag_indices(n)] += shift
        reciprocal = 0.0
        if factorise(self.factor) == 0:
            with quiet_blas():
                reciprocal = float(lapack.dpocon(self.factor, norm + shift, uplo="L")[0])
        self.condition = 1.0 / reciprocal if reciprocal > 0 else np.inf
        if not self.condition <= SAFE:
            self.why = f"its condition number is above {SAFE:.0e}"
            return
        inverse = np.triu(self.factor.T).T
        invert_triangle(inverse)
        trace = float(np.einsum("ij,ij->", inverse, inverse))
        left = max(shift * (trace - Q.shape[1] / (middle + shift)), 0.0)  # Σλ/(σ²+λ) of the others
        self.least = max(1.0 / trace - 4 * EPS * n * (norm + shift) - problem.cancelled, shift)  # ≤ σ_n² + λ
        self.floor = lam
        kept = used - left
        if kept < 1e-3 * used:  # too many digits cancel
            self.why = "next to no degrees of freedom are used"
            return
        self.dof, self.free = np.full(len(lam), kept), np.full(len(lam), self._count_free(used, left))
        # the rank is full where X̃X̃ᵀ less the square of what rounding hides is positive definite
        level = max(problem.rounding, problem.rounding**0.5, (problem.cancelled / norm) ** 0.5 if norm > 0 else 1.0)
        hidden = np.asfortranarray(K.T)
        hidden[np.diag_indices(n)] -= level * level * norm
        if factorise(hidden) != 0:
            self.why = "the rank is not full"
            return
        self.rank = used
        self.tried: list[tuple[Array, Array]] = []  # B, and the a that it was made of
        # eq: ridge-dual
        self.a = self._solve(problem.targets)
        self.rss = np.asarray(np.sum((lam * self.a) ** 2, axis=0))  # Ỹ − X̃X̃ᵀa = λa

    def _count_free(self, used: int, left: float) -> float:
        w = self.problem.weights
        return max(w.count - float(self.problem.intercept) - used, 0.0) + left

    def coefficients(self) -> Array:
        """X̃ᵀa."""
        # eq: ridge-push-through
        self.tried.append((to_numpy(self.problem.A.T @ self.a, float), self.a))
        return self.tried[-1][0]

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """The same after a step of refinement of the dual system, whose residual is R − λa."""
        self.a = self.a + self._solve(R - self.lam * self.a)
        return self.coefficients()

    def inverse(self) -> tuple[Array, Array, Array]:
        """V of the directions that stand out of rounding."""
        made = self.inverse_to_come(np.arange(len(self.lam)), self.problem.unit).made
        return made.basis, made.inverse, made.outside

    def inverse_to_come(self, targets: npt.NDArray[np.intp], unit: float) -> InverseToCome:
        """The same, with a copy of the rows to make it of."""
        rows = np.array(self.problem.A.to_dense(), dtype=np.float64)
        return InverseToCome(targets, rows, self.rank, self.lam, unit)

    def bounds(self, problem: RidgeProblem, state: Gradient, eps: float) -> Array:
        """As of a decomposition of X̃X̃ᵀ, with 1/‖L⁻¹‖² as the lower bound on σ_n² + λ."""
        simple = RidgeFactor.bounds(self, problem, state, eps)
        if problem.A.offset and not problem.varies.all():
            return simple
        a = next(a for B, a in self.tried if B is state.B)
        return np.minimum(simple, bound_by_dual_residual(problem, state, eps, a, self.lam, np.full(1, self.least)))

    def _solve(self, H: Array) -> Array:
        with quiet_blas():
            return np.asarray(la.cho_solve((self.factor, True), H, check_finite=False))


def bound_by_dual_residual(
    problem: RidgeProblem, state: Gradient, eps: float, a: Array, lam: Array, least: Array
) -> Array:
    r"""A bound by the residual s = ỹ − (X̃X̃ᵀ+λI)a of the dual system, ``least`` being no more than σ_n² + λ.

    The rounding δB of B = X̃ᵀa, ε(8+√n)Σ|a_i|‖x̃_i‖ at most, leaves s = R + X̃δB − λa, and so

    .. math:: \|\hat w-w\| \le \|\delta B\| + \|\tilde X^T(\tilde X\tilde X^T+\lambda I)^{-1}s\|
        \le 2\|\delta B\| + \frac{\|R-\lambda a\|+\|\delta R\|}{\sqrt{\sigma_n^2+\lambda}}
    """
    residual, n = rounding_of_gradient(problem, state, eps)[0], len(a)
    outside = problem.longer * eps * (8 + n**0.5) * problem.total**0.5 * column_norms(a)
    residual = column_norms(state.R - lam * a) + residual + 2 * EPS * lam * column_norms(a)
    return np.asarray(2 * outside + residual / np.sqrt(least) + 2 * EPS * column_norms(state.B))


class SpectralFactor(RidgeFactor):
    """B = V diag(...) c, from a basis V of the coefficients."""

    def __init__(self, found: Decomposition, lam: Array) -> None:
        self.found, self.lam, filter_ = found, lam, found.filter
        self.method, self.rank, self.why = found.label, found.rank, found.why
        self.solver = "svd" if not found.squared else "dual" if found.dual else "cholesky"
        self.reciprocals = filter_.inverse(lam)
        low, least = found.smallest, float(np.min(lam))
        self.condition = (found.top + least) / (low + least) if low + least > 0 else np.inf
        self.dof, self.free = filter_.shrinkage(lam).sum(axis=0), filter_.free(lam)
        if found.spans_targets:  # Σ(λ/(σ²+λ))²c² are the residuals
            self.rss = np.asarray(np.sum((filter_.left(lam) * filter_.projections) ** 2, axis=0))
        whole = len(found.squares) >= found.problem.source.shape[1]
        self.floor = lam + (low if whole or not found.dual else 0.0)
        self.outside = np.zeros(len(lam))
        if not whole or found.dual:
            np.divide(1.0, lam, out=self.outside, where=lam > 0)

    def coefficients(self) -> Array:
        """V σc/(σ²+λ)."""
        return np.asarray(self.found.basis @ (self.found.filter.factors(self.lam) * self.found.projections))

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """B + V diag(1/(σ²+λ)) VᵀG."""
        V = self.found.basis
        return np.asarray(B + V @ (self.reciprocals * (V.T @ G)))

    def inverse(self) -> tuple[Array, Array, Array]:
        """V, 1/(σ²+λ), and 1/λ outside its span."""
        return self.found.basis, self.reciprocals, self.outside

    def bounds(self, problem: RidgeProblem, state: Gradient, eps: float) -> Array:
        """The same as of a Cholesky factor, with M = V diag(1/√(σ²+λ)), where σ keeps its digits; or that of ‖G‖ alone.

        ‖MᵀD‖² ≤ Σ‖Dv_j‖²/(σ_j²+λ), and what V does not span adds ‖X̃‖²/λ.
        """
        simple, found = super().bounds(problem, state, eps), self.found
        if not np.all(self.floor > 0) or (problem.A.offset and not problem.varies.all()):
            return simple
        spread, r = 1.0 / np.sqrt(self.floor), len(found.squares)
        lost = 4 * EPS * r * (found.top * spread**2 if found.squared else (found.top / max(r, 1)) ** 0.5 * spread)
        residual, gradient = rounding_of_gradient(problem, state, eps)
        V = found.basis
        seen = np.sum(problem.diagonal[:, None] * V**2, axis=0)
        root = np.sqrt(self.reciprocals.T @ seen + self.outside * problem.total)
        C = V.T @ state.G
        rest = state.G - V @ C
        step = column_norms(V @ (self.reciprocals * C) + self.outside * rest)
        within = np.sqrt(np.sum(self.reciprocals * C**2, axis=0) + self.outside * column_norms(rest) ** 2)  # ‖MᵀG‖
        lose = 2.1 * lost * within  # a decomposition of other data errs by this in the length that M gives
        bounds = 1.01 * (step + spread * (residual + root * gradient + lose)) + 2 * EPS * column_norms(state.B)
        return np.where(lost < 1e-3, np.minimum(simple, bounds), simple)


class DualFactor(SpectralFactor):
    """B = X̃ᵀa with a = (X̃X̃ᵀ+λI)⁻¹Ỹ = U c/(σ²+λ)."""

    def __init__(self, found: Decomposition, lam: Array) -> None:
        super().__init__(found, lam)
        # eq: ridge-dual
        self.a = found.basis @ (self.reciprocals * found.projections)
        self.tried: list[tuple[Array, Array]] = []  # B, and the a that it was made of

    def coefficients(self) -> Array:
        """X̃ᵀa."""
        problem = self.found.problem
        # eq: ridge-push-through
        self.tried.append((to_numpy(problem.A.T @ like(problem.source, self.a), float), self.a))
        return self.tried[-1][0]

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """The same after a step of refinement of the dual system, whose residual is R − λa."""
        U = self.found.basis
        self.a = self.a + U @ (self.reciprocals * (U.T @ (R - self.lam * self.a)))
        return self.coefficients()

    def bounds(self, problem: RidgeProblem, state: Gradient, eps: float) -> Array:
        """A bound by the residual of the dual system, or that of ‖G‖ alone."""
        simple, found = RidgeFactor.bounds(self, problem, state, eps), self.found
        if not len(found.squares) or (problem.A.offset and not problem.varies.all()):
            return simple
        a = next(a for B, a in self.tried if B is state.B)
        least = float(np.min(found.squares, initial=np.inf))
        lost = EPS * len(found.squares) * found.top if found.squared else 2 * EPS * (found.top * least * len(a)) ** 0.5
        floor = np.maximum(least - 4 * lost - problem.cancelled, 0.0) + self.lam
        return np.minimum(simple, bound_by_dual_residual(problem, state, eps, a, self.lam, floor))

    @property
    def can_wait(self) -> bool:
        """Whether V is not made before it is asked for, from a copy of the rows: as long a product as the fit."""
        problem = self.found.problem
        return problem.A.device is None and not problem.source.sparse and problem.source.resident and self.lam[0] > 0

    def inverse_to_come(self, targets: npt.NDArray[np.intp], unit: float) -> InverseToCome:
        """The same as of a Cholesky factor."""
        rows = np.array(self.found.problem.A.to_dense(), dtype=np.float64)
        return InverseToCome(targets, rows, self.rank, self.lam, unit)

    def inverse(self) -> tuple[Array, Array, Array]:
        """V = X̃ᵀU/σ of the directions that stand out of rounding."""
        return self.found.right_vectors(self.rank), self.reciprocals[: self.rank], self.outside


def solve_by_factors(
    problem: RidgeProblem,
    alpha: Array,
    parts: list[tuple[npt.NDArray[np.intp], RidgeProblem, RidgeFactor]],
    reason: str,
    *,
    keep: bool,
) -> RidgeSolution:
    """Certify the solution of each part's targets, and return all in their order and in the data's own units.

    The inverse is kept for variances unless it is too large to carry along and ``keep`` does not ask for it.
    """
    t, p = problem.Y.shape[1], problem.source.shape[1]
    lam, scale = problem.scale_penalties(alpha)
    B, (rss, dof, free, residuals, bounds) = np.zeros((p, t)), np.zeros((5, t))
    certificates, inverses = [], list[RidgeInverse | InverseToCome]()
    for columns, part, factor in parts:
        B[:, columns], squares, certificate = certify(part, factor, lam[columns], reason)
        certificates.append(certificate)
        rss[columns], bounds[columns] = squares, np.asarray(certificate.error_bounds)
        dof[columns], free[columns], residuals[columns] = factor.dof, factor.free, certificate.residuals
        if keep or p * factor.rank <= KEEP:
            if isinstance(factor, (DualCholeskyFactor, DualFactor)) and factor.can_wait:
                inverses.append(factor.inverse_to_come(columns, problem.unit))
            else:
                inverses.append(RidgeInverse(columns, *factor.inverse(), problem.unit))
        if factor.rank < p and isinstance(factor, LeastSquaresFactor):
            vanishing = " or next to 0 beside squares of X" if np.any(alpha[columns]) else ""
            _warn(
                f"X has rank {factor.rank} and {p} columns{' after centring' if problem.intercept else ''}: with "
                f"alpha=0{vanishing} many coefficients fit equally well, and those of least norm are returned. Remove "
                "columns that follow from others, or use alpha > 0."
            )
    coef, bounds = in_own_units(problem, B, scale, bounds)
    certificate = certificates[0].with_(
        method="; ".join(dict.fromkeys(c.method for c in certificates)),
        passes=problem.passes + sum(factor.reads for _, _, factor in parts),
        residuals=residuals,
        rounding=max(c.rounding for c in certificates),
        condition=max(factor.condition for _, _, factor in parts),
        error_bounds=bounds,
        proved=all(c.proved for c in certificates),
        notes=tuple(note for c in certificates for note in c.notes),
    )
    told = any(isinstance(factor, LeastSquaresFactor) and factor.rank < p for _, _, factor in parts)
    if not (certificate.converged or (told and certificate.worst <= certificate.tolerance)):
        remedy = "Use a larger alpha, bring columns to similar size, or leave out those that nearly follow from others."
        if problem.A.offset > problem.total:
            remedy = (
                "Sparse data are centred after they are multiplied, and where means are large beside the spread of "
                "their columns digits cancel: pass a dense array, or subtract constants from such columns first."
            )
        _warn(
            f"{certificate.method}: the gradient at the solution is {certificate.worst:.1e} of ‖X̃ᵀỹ‖, rounding "
            f"included, and was to be at most {certificate.tolerance:.0e}; the coefficients are proved to within "
            f"{np.max(bounds):.1e}. {remedy} certificate_.error_bounds says how far off they can be."
        )
    first = parts[0][2]
    dof = dof + float(problem.intercept)
    return RidgeSolution(problem, coef, certificate, first.solver, rss, dof, free, first.rank, tuple(inverses))


def _warn(message: str) -> None:
    warnings.warn(message, NumericalWarning, stacklevel=caller_level())


def in_own_units(problem: RidgeProblem, B: Array, scale: Array, bounds: Array) -> tuple[Any, Array]:
    """Coefficients in the units of the data, and the bounds on them; an error where float64 cannot hold them.

    Those of columns that were divided by s are divided as well, and ‖ŵ − w‖ ≤ ‖s(ŵ − w)‖/min s. Of data in single
    precision they are too, where that keeps their digits; what it rounds is added to the bounds.
    """
    s = np.ones((1, 1)) if problem.scale is None else problem.scale[:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if problem.scale is not None:
            divided = B / s
            bounds = (
                bounds + problem.scaling_errors(B) + column_norms(np.where(np.isfinite(divided), B - divided * s, 0.0))
            )
            B = divided
        if np.isfinite(scale).all():
            coef, bounds = B * scale + 0.0, bounds * scale  # zeros without a sign
        else:
            coef, bounds = (np.where(x == 0.0, 0.0, x * np.where(x == 0.0, 1.0, scale)) for x in (B, bounds))
        size = np.abs(B).max(axis=0, initial=0.0)
        largest = size * scale
        inside = (size == 0) | ((largest >= SMALLEST) & (largest < np.inf))
        if not inside.all():
            j = int(np.argmin(inside))
            raise ValueError(
                f"The coefficients of target {j + 1} would be about 2^{np.log2(size[j]) + np.log2(scale[j]):.0f}, "
                "beyond the range of float64. Multiply X or y by a constant that brings their columns near 1."
            )
        source = problem.source
        if source.dtype != source.xp.float32 or np.any((largest > 0) & ~((largest > 1e-30) & (largest < 1e38))):
            return coef, bounds if problem.scale is None else bounds / np.min(s)
        single = coef.astype(np.float32)
        return single, (bounds + column_norms(s * (B - single / scale)) * scale) / np.min(s)


def solve_by_gradients(
    problem: RidgeProblem, alpha: Array, tol: float, max_iter: int | None, reason: str
) -> RidgeSolution:
    """Conjugate gradients: the decomposition, and with it degrees of freedom and variances, is not made."""
    lam, scale = problem.scale_penalties(alpha)
    targets = like(problem.source, problem.targets)
    found = CGLS(tol or None, max_iter)(problem.A, targets, lam, diagonal=problem.diagonal, reason=reason, warn=False)
    certificate, B = found.certificate, to_numpy(found.values, float)
    bounds, (n, p) = certificate.error_bounds, problem.source.shape
    proved = is_proved(problem, B, bounds, certificate.tolerance)
    stopped = max_iter is not None and certificate.iterations >= max_iter
    if not (proved or stopped) and float(n) * p * min(n, p) <= AFFORDABLE:
        if p <= n:  # σ_p² of X̃ᵀX̃ may prove what λ alone does not
            squares = la.eigvalsh(to_numpy(problem.A.gram(), float), check_finite=False)
            floor = float(squares[0]) - 4 * EPS * p * float(squares[-1]) - problem.cancelled
            if floor > 0.0:
                bounds = bound_by_floor(problem, measure_gradient(problem, B, lam), EPS, floor + lam)
                proved = is_proved(problem, B, bounds, certificate.tolerance)
        if not (proved and certificate.converged):
            why = f"{reason}; conjugate gradients proved too little of their coefficients"
            return solve_directly(problem, alpha, "svd", why, keep=False)
    certificate = certificate.with_(proved=proved)
    certificate.warn_unless_converged(REMEDY)
    coef, bounds = in_own_units(problem, B, scale, np.full(len(alpha), np.inf) if bounds is None else bounds)
    rss = column_norms(problem.targets - to_numpy(problem.A @ like(problem.source, B), float)) ** 2
    certificate = certificate.with_(
        passes=problem.passes,
        error_bounds=bounds if np.all(np.isfinite(bounds)) else None,
        bounded="‖ŵ − w‖",
        device=problem.A.device_name,
        precision=problem.A.precision,
    )
    unknown = np.full(len(alpha), np.nan)
    return RidgeSolution(problem, coef, certificate, "cg", rss, unknown, unknown, None, ())
