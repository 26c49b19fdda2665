r"""Solvers of a kernel ridge regression: which one, its solution β, and the bound that its residual gives.

With r = ỹ − (B + λI)β the error of every prediction is at most

.. math:: |\hat f(x)-f(x)| = |\tilde\varphi(x)^T\tilde\Phi^T(B+\lambda I)^{-1}r|
    \le\|\tilde\varphi(x)\|\max_\sigma\frac{\sigma}{\sigma^2+\lambda}\|r\|
    = \|\tilde\varphi(x)\|\frac{\|r\|}{2\sqrt\lambda}
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from gramian.compute.memory import available_memory, refuse_beyond_memory
from gramian.estimators._centres import kernel_diagonal
from gramian.estimators._kernel_inputs import is_precomputed
from gramian.estimators._kernel_task import Task
from gramian.kernels import Kernel
from gramian.linear._caller import caller_level
from gramian.linear.cg import ConjugateGradients
from gramian.linear.cholesky import Cholesky
from gramian.linear.preconditioners import dressed_factor
from gramian.operators import Operator
from gramian.results import NumericalWarning, Residual, Solution
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky

__all__ = [
    "BOUNDED",
    "DIRECT",
    "HUGE",
    "TOLERANCES",
    "Fitted",
    "choose",
    "longest_squares",
    "semidefinite",
    "solve",
    "warn_unless_converged",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

DIRECT = 20_000  # rows up to which a factorisation, whatever the kernel and λ, takes less than half a minute
SMALL = 3_000  # rows up to which a factor in float64 costs nothing worth saving
HUGE = 200_000  # rows beyond which a product with every pair of them takes half a minute
TOLERANCES = {"eigh": 1e-8, "cholesky": 1e-8, "cg": 1e-6, "inducing": 1e-8}
SHARPER = 1e-2  # times the tolerance: what refinement aims at, since another step costs little
BOUNDED = "|f̂(x) − f(x)|/‖φ(x)‖"
EPS = 2.0**-52
EIGEN = 20  # bytes for each entry of a matrix that is decomposed: the matrix, its eigenvectors, and room to work
INDEFINITE = 1e-8  # of the largest: a negative eigenvalue below this is rounding
WIDEST = 1e30  # values of a kernel beyond which their products may overflow in float32


@dataclass(frozen=True, eq=False)
class Fitted:
    """β, how good it is, and rows that a preconditioner chose."""

    beta: Matrix
    certificate: Residual
    landmarks: npt.NDArray[np.intp] | None = None


def choose(n: int, solver: str, *, whole: bool = False, file: bool = False) -> tuple[str, str]:
    """Return the solver and the reason: the one asked for, or by size.

    Cholesky up to 20,000 rows, where the matrix fits in memory; conjugate gradients on tiles that are never stored up
    to 200,000; inducing points beyond, and for a file that is not to be read into memory. A kernel known by a function
    or a matrix (``whole``) is factored.

    Examples
    --------
    >>> from gramian.estimators._kernel_solving import choose
    >>> choose(50_000, "auto")[0]
    'cg'
    """
    if solver != "auto":
        return solver, f"solver={solver!r}"
    if file:
        return "inducing", f"{n} rows in a file: it is read block by block"
    if whole or (n <= DIRECT and Cholesky.memory(n) <= 0.8 * available_memory()):
        return "cholesky", f"{n} rows: a factorisation is affordable, whatever the kernel and λ"
    if n <= HUGE:
        return "cg", f"{n} rows: products with tiles that are never stored"
    return "inducing", f"{n} rows: a product with every pair of them takes half a minute"


def solve(task: Task, solver: str, reason: str) -> Fitted:
    """Solve (B + λI)β = ỹ by "eigh", "cholesky" or "cg"; say so where the answer is not as good as asked for."""
    method = {"eigh": _by_eigenvectors, "cholesky": _by_cholesky, "cg": _by_gradients}[solver]
    with warnings.catch_warnings():
        # what a solver says of itself is said again below, at the user's own line
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        warnings.filterwarnings("ignore", category=NumericalWarning, message=".*the largest residual")
        found = method(task, reason)
    certificate = _bounded(task, found).with_(tolerance=task.tol)
    warn_unless_converged(certificate)
    return Fitted(found.beta, certificate, found.landmarks)


def warn_unless_converged(certificate: Residual) -> None:
    """Say by how much the tolerance was missed, and what to change."""
    if certificate.converged:
        return
    iterated = "conjugate gradients" in certificate.method
    remedy = "Use more iterations (max_iter), a larger alpha" if iterated else "Use a larger alpha, columns that are"
    remedy += ", or a larger tolerance (tol)." if iterated else " centred and scaled, or a larger tolerance (tol)."
    warnings.warn(
        f"{certificate.method}: the residual, rounding included, is {certificate.worst:.1e}, and "
        f"{certificate.tolerance:.1e} was asked for. {remedy}",
        ConvergenceWarning if iterated else NumericalWarning,
        stacklevel=caller_level(),
    )


def _refuse_unless_it_fits(task: Task, solver: str) -> None:
    n = task.n
    nbytes = EIGEN * n**2 if solver == "eigh" else Cholesky.memory(n)
    refuse_beyond_memory(
        nbytes,
        f"solver={solver!r} on {n} rows",
        "Use solver='cg', which stores no matrix, or solver='inducing'; solver='auto' chooses between them.",
    )


def _by_cholesky(task: Task, reason: str) -> Fitted:
    """One factorisation for each λ; by eigenvectors at λ = 0 or where B + λI is not positive definite."""
    if np.any(task.lam == 0.0):
        return _by_eigenvectors(task, f"{reason}; at λ = 0 eigenvectors tell the rank")
    _refuse_unless_it_fits(task, "cholesky")
    B, Y = _settled(task), task.targets
    beta, parts = np.empty_like(Y), []
    for lam in np.unique(task.lam):
        mine = np.flatnonzero(task.lam == lam)
        try:
            solver = Cholesky(SHARPER * task.tol, "float64" if task.n <= SMALL else "auto")
            found = solver(B, Y[:, mine], float(lam), reason=reason)
        except np.linalg.LinAlgError:
            return _by_eigenvectors(task, f"{reason}; K + λI is not positive definite")
        beta[:, mine] = found.values
        parts.append((mine, found.certificate))
    return Fitted(beta, _merged(parts, len(task.lam)))


def _settled(task: Task) -> Operator:
    """B in float64: evaluated in tiles, or, of a function of two objects, once and for all."""
    if task.kernel.takes_objects and not is_precomputed(task.kernel):
        return task.dressed(task.matrix)
    return task.operator()


def _merged(parts: list[tuple[Any, Residual]], t: int) -> Residual:
    """One certificate for targets that were solved for different λ."""
    residuals = np.empty(t)
    for mine, certificate in parts:
        residuals[mine] = certificate.residuals
    known = [c.condition for _, c in parts if c.condition is not None]
    notes = tuple(dict.fromkeys(note for _, c in parts for note in c.notes))
    return parts[0][1].with_(
        residuals=residuals,
        passes=sum(c.passes for _, c in parts),
        iterations=max(c.iterations for _, c in parts),
        condition=max(known, default=None),
        rounding=max(c.rounding for _, c in parts),
        notes=notes,
    )


def _by_eigenvectors(task: Task, reason: str) -> Fitted:
    """β = U (Uᵀỹ)/(s + λ) from B = U diag(s) Uᵀ; at λ = 0 the pseudo-inverse."""
    _refuse_unless_it_fits(task, "eigh")
    B, Y = np.asarray(_settled(task).to_dense(), dtype=np.float64), task.targets
    s, U = scipy.linalg.eigh(B, driver="evd", check_finite=False)
    size = float(np.max(np.abs(s), initial=0.0))
    notes: tuple[str, ...] = ()
    if _known(task.kernel):
        s = np.maximum(s, 0.0)  # negative only by rounding
    else:
        notes = _indefinite(float(s[0]) if len(s) else 0.0, size, task)
    cut = len(s) * EPS * size
    shifted = s[:, None] + task.lam[None, :]
    gone = (np.abs(shifted) <= cut) & (task.lam == 0.0) | (shifted == 0.0)
    C = np.divide(U.T @ Y, shifted, out=np.zeros_like(shifted), where=~gone)
    beta = U @ C
    R = Y - (B @ beta + task.lam * beta)
    if np.any(gone):
        _warn_of_rank(task, int(np.sum(~np.any(gone, axis=1))))
        R = np.where(np.any(gone, axis=0), U @ ((~gone) * (U.T @ R)), R)  # what no β can reach is not an error of β
    kept = np.abs(shifted)[~gone]
    condition = float(kept.max() / kept.min()) if kept.size else 1.0
    rounding = float(np.max(_relative(np.atleast_2d(_rounding(task, beta)), Y), initial=0.0))
    residuals = _relative(R, Y)
    certificate = Residual("eigendecomposition", reason, 1, 0, residuals, task.tol, rounding, condition, notes=notes)
    return Fitted(beta, certificate)


def _warn_of_rank(task: Task, rank: int) -> None:
    warnings.warn(
        f"At alpha=0 the kernel matrix of {task.n} rows has rank {rank}: the smallest solution is returned. "
        "A positive alpha makes it unique.",
        NumericalWarning,
        stacklevel=caller_level(),
    )


def _known(kernel: Kernel) -> bool:
    """Whether the kernel is positive semidefinite by its formula, not by someone's word."""
    return kernel.positive_semidefinite and not kernel.takes_objects and not is_precomputed(kernel)


def semidefinite(task: Task) -> bool:
    """Whether K is positive semidefinite, as far as can be told: by its formula, by a factor, or by its 2×2 minors."""
    if _known(task.kernel):
        return True
    if not task.kernel.positive_semidefinite:
        return False
    K = task.matrix
    own = np.diagonal(K)
    small = INDEFINITE * float(np.max(np.abs(own), initial=0.0))
    root = np.sqrt(np.maximum(own, 0.0)) + np.sqrt(small)
    if np.any(own < -small) or np.any(np.abs(K) > np.outer(root, root) * (1 + 1e-8)):
        return False
    if len(K) > DIRECT:
        return True
    try:
        scipy.linalg.cholesky(K + (small or 1e-300) * np.eye(len(K)), overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True


def _indefinite(low: float, size: float, task: Task) -> tuple[str, ...]:
    """Say so where B + λI has an eigenvalue far below 0: there is no feature space, hence no bound."""
    if low >= -INDEFINITE * size:
        return ()
    warnings.warn(
        f"The kernel matrix is indefinite: its smallest eigenvalue is {low:.4g}, its largest in size {size:.4g}. "
        "The system is solved as it is, but it is no kernel ridge regression and its predictions have no bound.",
        NumericalWarning,
        stacklevel=caller_level(),
    )
    return ("the kernel matrix is indefinite, so there is no bound on predictions",)


def _by_gradients(task: Task, reason: str) -> Fitted:
    """Block conjugate gradients, products in float32 and residuals in float64, with a factor of growing rank."""
    if np.any(task.lam == 0.0):
        raise ValueError("alpha=0 with solver='cg' has no preconditioner to speak of: use a positive alpha.")
    if not task.kernel.positive_semidefinite:
        raise ValueError(
            f"solver='cg' needs a positive semidefinite kernel, and {task.kernel!r} is not one: use solver='eigh', or "
            "another kernel."
        )
    A, factors = _settled(task), _Factors(task)
    tiled = not task.kernel.takes_objects
    twin = task.operator(np.float32, store="auto") if tiled and factors.dtype == np.float32 else None
    solver = ConjugateGradients(task.tol, task.max_iterations, task.report)
    found: Solution = solver(A, task.targets, task.lam, grow=factors if tiled else None, twin=twin, reason=reason)
    return Fitted(np.asarray(found.values), found.certificate, factors.landmarks)


class _Factors:
    """F of B ≈ FFᵀ, of any rank, each continuing the last."""

    def __init__(self, task: Task) -> None:
        wide = float(np.max(longest_squares(task), initial=0.0)) > WIDEST
        self.dtype = np.float64 if wide else np.float32
        self.task, self.K = task, task.kernel_operator(self.dtype)
        self.found: PivotedCholesky | None = None

    @property
    def landmarks(self) -> npt.NDArray[np.intp] | None:
        return None if self.found is None else self.found.indices

    def __call__(self, rank: int) -> Matrix:
        diagonal, columns = np.asarray(self.K.diagonal(), np.float64), self.K.columns  # type: ignore[attr-defined]
        self.found = rp_cholesky(diagonal, columns, min(rank, self.task.n), seed=self.task.seed, start=self.found)
        return dressed_factor(self.found.factor, self.task.w, self.task.intercept)


def _relative(R: Matrix, Y: Matrix) -> Vector:
    """‖r‖/‖ỹ‖ of each target; 0 where both are 0."""
    size, error = np.linalg.norm(Y, axis=0), np.linalg.norm(R, axis=0)
    return np.asarray(np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0))


def _bounded(task: Task, found: Fitted) -> Residual:
    """Add ‖r‖/(2√λ), with the rounding of the products that r was computed from; infinite where λ is 0."""
    c = found.certificate
    if any("indefinite" in note for note in c.notes):
        return c
    if not semidefinite(task):
        return c.with_(notes=(*c.notes, "the kernel is not known to be positive semidefinite: there is no bound"))
    if np.all(task.lam == 0.0):
        return c.with_(notes=(*c.notes, "λ is 0: no bound follows from a residual"))
    size = np.linalg.norm(task.targets, axis=0)
    slack = 2 * EPS * np.linalg.norm(task.Y, axis=0) * np.sqrt(np.max(task.frequencies)) if task.intercept else 0.0
    with np.errstate(divide="ignore"):
        bounds = (c.residuals * size + _rounding(task, found.beta) + slack) / (2 * np.sqrt(task.lam))
    return c.with_(error_bounds=np.asarray(bounds), bounded=BOUNDED)


def _rounding(task: Task, beta: Matrix) -> Vector:
    """Error of Bβ in norm: each entry is a sum of n products whose rounding errors are as good as random."""
    longest = float(np.max(np.abs(longest_squares(task)), initial=0.0))
    heavy = float(np.max(task.frequencies))
    return np.asarray(16 * EPS * np.sqrt(task.n) * longest * heavy * np.linalg.norm(beta, axis=0))


def longest_squares(task: Task) -> Vector:
    """k(x, x) of the training points, in float64."""
    if is_precomputed(task.kernel):
        return np.asarray(np.diagonal(task.points), dtype=np.float64)
    return kernel_diagonal(task.kernel, task.points)
