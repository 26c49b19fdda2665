r"""Solvers of a ridge regression: which one, and B = (X̃ᵀX̃+λI)⁻¹X̃ᵀỸ by a factor or by conjugate gradients."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as la
from scipy.linalg import lapack

from gramian.compute.devices import like, to_numpy
from gramian.compute.memory import available_memory
from gramian.compute.threads import quiet_blas
from gramian.linear.cgls import CGLS
from gramian.results import NumericalWarning, Residual, caller_level
from gramian.ridge.certificate import RidgeFactor, certify, column_norms
from gramian.ridge.least_squares import SMALL, LeastSquaresFactor
from gramian.ridge.path import CONTRACTION, SAFE, Decomposition, decompose
from gramian.ridge.problem import RidgeProblem
from gramian.sources import Source

Array = npt.NDArray[np.float64]

ITERATIVE = ("cg", "lsqr", "sparse_cg", "sag", "saga")  # scikit-learn's names, all of them our block CGLS
SOLVERS = ("auto", "svd", "cholesky", "primal", "dual", *ITERATIVE)
SPARSE_GRAM = 2000  # rows or columns up to which sparse data have a dense Gram matrix made of them
FILE_COGRAM = 2048  # rows up to which X̃X̃ᵀ of a file is made, in one pass for every 128 of them
SATURATED = 1e-4  # of N − df: below, with as many coefficients as observations, residuals are not differences
KEEP = 2**22  # numbers of a basis that a fitted model carries with it unless asked for more: 32 MiB
ALONE = 512  # rows or columns of a square matrix that one core factors as fast as several


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
    if 24.0 * size * size > available_memory() / 2:
        return "cg", f"a {size} × {size} matrix and its factor would not fit in memory"
    if source.sparse and size > SPARSE_GRAM:
        return "cg", f"the data are sparse and both of {n} × {p} are large"
    if p <= n:
        return "cholesky", f"{p} columns, {n} rows"
    if not source.resident and n > FILE_COGRAM:
        return "cg", f"X̃X̃ᵀ of {n} rows in a file would take {n // 128} passes"
    return "dual", f"{p} columns, {n} rows: the dual problem is the smaller one"


def quiet_if_small(size: int) -> AbstractContextManager[None]:
    """Keep BLAS to one thread where matrices are too small to share: starting its threads would take longer."""
    return quiet_blas() if size <= ALONE else nullcontext()


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
class RidgeSolution:
    """Coefficients of all targets in the data's own units, and what is known about them.

    ``dof`` counts the intercept; ``free`` is N − dof. Where no decomposition was made, numbers are NaN, the rank is
    None and there are no inverses.
    """

    problem: RidgeProblem
    coef: Array
    certificate: Residual
    solver: str
    rss: Array
    dof: Array
    free: Array
    rank: int | None
    inverses: tuple[RidgeInverse, ...]


def solve_directly(problem: RidgeProblem, alpha: Array, solver: str, reason: str, *, keep: bool) -> RidgeSolution:
    """Solve by a factor: targets with a penalty together, and those without."""
    lam, _ = problem.scale_penalties(alpha)
    parts = []
    for wanted in (lam > 0, lam == 0):
        columns = np.flatnonzero(wanted)
        if len(columns):
            part = problem if wanted.all() else problem.for_targets(columns)
            parts.append((columns, part, _factorise(part, lam[columns], solver)))
    return solve_by_factors(problem, alpha, parts, solver, reason, keep=keep)


def _factorise(problem: RidgeProblem, lam: Array, solver: str) -> RidgeFactor:
    """The factor asked for where it is safe, else one that does not square the condition number."""
    small = problem.source.shape[0] * problem.source.shape[1] <= SMALL
    if solver == "cholesky" and np.all(lam == lam[0]) and not (small and lam[0] == 0.0):
        factor = CholeskyFactor(problem, lam)
        if factor.safe:
            return factor
        solver = "svd"
    if lam[0] == 0.0:
        return LeastSquaresFactor(problem)
    return factor_of(decompose(problem, solver, float(np.min(lam))), lam)


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
        self.factor, info = lapack.dpotrf(scaled, lower=1, overwrite_a=1)
        reciprocal = 0.0
        if info == 0 and np.all(diagonal > 0):
            reciprocal = float(lapack.dpocon(self.factor, norm, uplo="L")[0])
        self.condition = 1.0 / reciprocal if reciprocal > 0 else np.inf
        self.safe = self.condition <= SAFE
        if not self.safe:
            return
        self.basis = self.scale[:, None] * np.tril(lapack.dtrtri(self.factor, lower=1)[0]).T
        trace = float(np.sum(self.basis**2))
        left = shift * trace  # Σλ/(σ²+λ)
        fixed = problem.weights.count - float(problem.intercept) - p
        saturated = fixed <= 0 and left < SATURATED  # then RSS/(N − df) is a ratio of two small numbers
        self.safe = problem.cancelled * trace <= CONTRACTION and not saturated
        self.floor = np.full(t, max(shift, 1.0 / trace - problem.cancelled))
        kept = p - left if left < 0.5 * p else float(np.sum(self.basis * (gram @ self.basis)))
        self.dof = np.full(t, max(kept, 0.0))
        self.free = np.full(t, max(fixed + left, 0.0))
        # the rank of X̃ with columns of length 1, by a Cholesky factorisation with pivots: σ to the root of rounding
        unit = np.where(problem.varies, 1.0 / np.sqrt(np.where(problem.varies, problem.diagonal, 1.0)), 0.0)
        pivoted = lapack.dpstrf(gram * unit[:, None] * unit[None, :], tol=4 * problem.rounding, lower=1, overwrite_a=1)
        self.rank = int(pivoted[2])

    def coefficients(self) -> Array:
        """(X̃ᵀX̃+λI)⁻¹X̃ᵀỸ."""
        return self._solve(self.cross)

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """B + (X̃ᵀX̃+λI)⁻¹G."""
        return B + self._solve(G)

    def inverse(self) -> tuple[Array, Array, Array]:
        """S L⁻ᵀ, whose square is the inverse."""
        t = len(self.dof)
        return self.basis, np.ones((len(self.basis), t)), np.zeros(t)

    def _solve(self, H: Array) -> Array:
        S = self.scale[:, None]
        return np.asarray(S * la.cho_solve((self.factor, True), S * H, check_finite=False))


class SpectralFactor(RidgeFactor):
    """B = V diag(...) c, from a basis V of the coefficients."""

    def __init__(self, found: Decomposition, lam: Array) -> None:
        self.found, self.lam, filter_ = found, lam, found.filter
        self.method, self.rank = found.label, found.rank
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


class DualFactor(SpectralFactor):
    """B = X̃ᵀa with a = (X̃X̃ᵀ+λI)⁻¹Ỹ = U c/(σ²+λ)."""

    def __init__(self, found: Decomposition, lam: Array) -> None:
        super().__init__(found, lam)
        self.a = found.basis @ (self.reciprocals * found.projections)

    def coefficients(self) -> Array:
        """X̃ᵀa."""
        problem = self.found.problem
        return to_numpy(problem.A.T @ like(problem.source, self.a), float)

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """The same after a step of refinement of the dual system, whose residual is R − λa."""
        U = self.found.basis
        self.a = self.a + U @ (self.reciprocals * (U.T @ (R - self.lam * self.a)))
        return self.coefficients()

    def inverse(self) -> tuple[Array, Array, Array]:
        """V = X̃ᵀU/σ of the directions that stand out of rounding."""
        return self.found.right_vectors(self.rank), self.reciprocals[: self.rank], self.outside


def solve_by_factors(
    problem: RidgeProblem,
    alpha: Array,
    parts: list[tuple[npt.NDArray[np.intp], RidgeProblem, RidgeFactor]],
    solver: str,
    reason: str,
    *,
    keep: bool,
) -> RidgeSolution:
    """Certify the solution of each part's targets, and return all in their order and in the data's own units.

    The inverse is kept for variances unless it is too large to carry along and ``keep`` does not ask for it.
    """
    t, p = problem.Y.shape[1], problem.source.shape[1]
    lam, scale = problem.scale_penalties(alpha)
    coef, (rss, dof, free, residuals, bounds) = np.zeros((p, t)), np.zeros((5, t))
    certificates, inverses = [], []
    for columns, part, factor in parts:
        B, squares, certificate = certify(part, factor, lam[columns], solver, reason)
        certificates.append(certificate)
        with np.errstate(over="ignore", under="ignore"):
            coef[:, columns] = B * scale[columns]
            rss[columns] = squares / problem.y_unit / problem.y_unit
            bounds[columns] = np.asarray(certificate.error_bounds) * scale[columns]
        dof[columns], free[columns], residuals[columns] = factor.dof, factor.free, certificate.residuals
        if keep or p * factor.rank <= KEEP:
            inverses.append(RidgeInverse(columns, *factor.inverse(), problem.unit))
        if factor.rank < p and isinstance(factor, LeastSquaresFactor):
            _warn(
                f"X has rank {factor.rank} and {p} columns{' after centring' if problem.intercept else ''}: with "
                "alpha=0 many coefficients fit equally well, and those of least norm are returned. Remove columns that "
                "follow from others, or use alpha > 0."
            )
    certificate = certificates[0].with_(
        method="; ".join(dict.fromkeys(c.method for c in certificates)),
        passes=problem.passes + sum(factor.reads for _, _, factor in parts),
        residuals=residuals,
        rounding=max(c.rounding for c in certificates),
        condition=max(factor.condition for _, _, factor in parts),
        error_bounds=bounds + _lost_in_float32(coef, problem.source),
        notes=tuple(note for c in certificates for note in c.notes),
    )
    if not certificate.converged:
        remedy = "Use a larger alpha, bring columns to similar size, or leave out those that nearly follow from others."
        if problem.A.offset > problem.total:
            remedy = (
                "Sparse data are centred after they are multiplied, and where means are large beside the spread of "
                "their columns digits cancel: pass a dense array, or subtract constants from such columns first."
            )
        _warn(
            f"{certificate.method}: the gradient at the solution is {certificate.worst:.1e} of ‖X̃ᵀỹ‖, rounding "
            f"included, and was to be at most {certificate.tolerance:.0e}. {remedy} certificate_.error_bounds says how "
            "far off the coefficients can be."
        )
    first = parts[0][2]
    dof = dof + float(problem.intercept)
    return RidgeSolution(problem, coef, certificate, first.solver, rss, dof, free, first.rank, tuple(inverses))


def _warn(message: str) -> None:
    warnings.warn(message, NumericalWarning, stacklevel=caller_level())


def _lost_in_float32(coef: Array, source: Source) -> Any:
    """‖w − fl(w)‖ of coefficients that are returned in single precision, else 0."""
    if source.dtype != source.xp.float32:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return column_norms(coef - coef.astype(np.float32))


def solve_by_gradients(
    problem: RidgeProblem, alpha: Array, tol: float, max_iter: int | None, reason: str
) -> RidgeSolution:
    """Conjugate gradients: the decomposition, and with it degrees of freedom and variances, is not made."""
    lam, scale = problem.scale_penalties(alpha)
    before, targets = problem.passes, like(problem.source, problem.targets)
    found = CGLS(tol or None, max_iter)(problem.A, targets, lam, diagonal=problem.diagonal, reason=reason)
    certificate, coef = found.certificate, to_numpy(found.values, float) * scale
    bounds = certificate.error_bounds
    certificate = certificate.with_(
        passes=certificate.passes + before,
        error_bounds=None if bounds is None else bounds * scale + _lost_in_float32(coef, problem.source),
        device=problem.A.device_name,
        precision=problem.A.precision,
    )
    unknown = np.full(len(alpha), np.nan)
    return RidgeSolution(problem, coef, certificate, "cg", unknown, unknown, unknown, None, ())
