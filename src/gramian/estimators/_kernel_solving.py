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

from gramian.compute.memory import available_memory, refuse_beyond_memory
from gramian.estimators._kernel_inputs import is_precomputed
from gramian.estimators._kernel_task import Task
from gramian.linear.cg import ConjugateGradients
from gramian.linear.cholesky import Cholesky
from gramian.linear.preconditioners import dressed_factor
from gramian.operators import Operator
from gramian.results import NumericalWarning, Residual, Solution
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky

__all__ = ["BOUNDED", "DIRECT", "HUGE", "TOLERANCES", "Fitted", "choose", "solve"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

DIRECT = 20_000  # rows up to which a factorisation, whatever the kernel and λ, takes less than half a minute
SMALL = 3_000  # rows up to which a factor in float64 costs nothing worth saving
HUGE = 200_000  # rows beyond which a product with every pair of them takes half a minute
TOLERANCES = {"eigh": 1e-10, "cholesky": 1e-10, "cg": 1e-6, "inducing": 1e-8}
BOUNDED = "|f̂(x) − f(x)|/‖φ(x)‖"
EPS = 2.0**-52


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
    """Solve (B + λI)β = ỹ by "eigh", "cholesky" or "cg"."""
    if solver != "cg":
        _refuse_unless_it_fits(task, solver)
    found = {"eigh": _by_eigenvectors, "cholesky": _by_cholesky, "cg": _by_gradients}[solver](task, reason)
    return Fitted(found.beta, _bounded(task, found), found.landmarks)


def _refuse_unless_it_fits(task: Task, solver: str) -> None:
    n = task.n
    if is_precomputed(task.kernel):
        return
    nbytes = 2.5 * 8 * n**2 if solver == "eigh" else Cholesky.memory(n)
    refuse_beyond_memory(
        nbytes,
        f"solver={solver!r} on {n} rows",
        "Use solver='cg', which stores no matrix, or solver='inducing'; solver='auto' chooses between them.",
    )


def _by_cholesky(task: Task, reason: str) -> Fitted:
    """One factorisation for each λ; by eigenvectors at λ = 0 or where B + λI is not positive definite."""
    if np.any(task.lam == 0.0):
        return _by_eigenvectors(task, f"{reason}; at λ = 0 eigenvectors tell the rank")
    B, Y = _settled(task), task.targets
    beta, parts = np.empty_like(Y), []
    for lam in np.unique(task.lam):
        mine = np.flatnonzero(task.lam == lam)
        try:
            solver = Cholesky(task.tol, "float64" if task.n <= SMALL else "auto")
            found = solver(B, Y[:, mine], float(lam), reason=reason)
        except np.linalg.LinAlgError:
            return _by_eigenvectors(task, f"{reason}; K + λI is not positive definite")
        beta[:, mine] = found.values
        parts.append((mine, found.certificate))
    return Fitted(beta, _merged(parts, len(task.lam)))


def _settled(task: Task) -> Operator:
    """B in float64: evaluated in tiles, or, of a function of two objects, once and for all."""
    if task.kernel.takes_objects and not is_precomputed(task.kernel):
        return task.dressed(np.asarray(task.kernel(task.points), dtype=np.float64))
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
    """β = U (Uᵀỹ)/(s + λ) from B = U diag(s) Uᵀ; the pseudo-inverse where s + λ is rounding."""
    B, Y = np.asarray(_settled(task).to_dense(), dtype=np.float64), task.targets
    s, U = scipy.linalg.eigh(B, driver="evd", check_finite=False)
    shifted = s[:, None] + task.lam[None, :]
    size = float(np.max(np.abs(s), initial=0.0))
    cut = len(s) * EPS * size
    gone = np.abs(shifted) <= cut
    C = np.divide(U.T @ Y, shifted, out=np.zeros_like(shifted), where=~gone)
    beta = U @ C
    if np.any(gone & (task.lam == 0.0)):
        rank = int(np.sum(np.abs(s) > cut))
        warnings.warn(
            f"At alpha=0 the kernel matrix of {task.n} rows has rank {rank}: the smallest solution is returned. "
            "A positive alpha makes it unique.",
            NumericalWarning,
            stacklevel=5,
        )
    low = float(s[0]) if len(s) else 0.0
    notes = _indefinite(low, size, task)
    R = Y - (B @ beta + task.lam * beta)
    if np.any(gone):
        R = np.where(np.any(gone, axis=0), U @ ((~gone) * (U.T @ R)), R)  # what no β can reach is not an error of β
    kept = np.abs(shifted)[~gone]
    condition = float(kept.max() / kept.min()) if kept.size else 1.0
    certificate = Residual(
        "eigendecomposition", reason, 1, 0, _relative(R, Y), task.tol, condition=condition, notes=notes
    )
    return Fitted(beta, certificate)


def _indefinite(low: float, size: float, task: Task) -> tuple[str, ...]:
    """Say so where B + λI has an eigenvalue far below 0: there is no feature space, hence no bound."""
    if low >= -1e-8 * size:
        return ()
    warnings.warn(
        f"The kernel matrix is indefinite: its smallest eigenvalue is {low:.4g}, its largest in size {size:.4g}. "
        "The system is solved as it is, but it is no kernel ridge regression and its predictions have no bound.",
        NumericalWarning,
        stacklevel=6,
    )
    return ("the kernel matrix is indefinite, so there is no bound on predictions",)


def _by_gradients(task: Task, reason: str) -> Fitted:
    """Block conjugate gradients, products in float32 and residuals in float64, with a factor of growing rank."""
    if np.any(task.lam == 0.0):
        raise ValueError("alpha=0 with solver='cg' has no preconditioner to speak of: use a positive alpha.")
    A = _settled(task)
    tiled = not task.kernel.takes_objects
    twin = task.operator(np.float32, store="auto") if tiled else None
    factors = _Factors(task)
    solver = ConjugateGradients(task.tol, task.max_iterations, task.report)
    found: Solution = solver(A, task.targets, task.lam, grow=factors if tiled else None, twin=twin, reason=reason)
    return Fitted(np.asarray(found.values), found.certificate, factors.landmarks)


class _Factors:
    """F of B ≈ FFᵀ, of any rank, each continuing the last."""

    def __init__(self, task: Task) -> None:
        self.task, self.K = task, task.kernel_operator(np.float32)
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
    """Add ‖r‖/(2√λ), with the rounding of the products that r was computed from."""
    c = found.certificate
    if np.any(task.lam == 0.0) or any("indefinite" in note for note in c.notes):
        notes = c.notes if any("indefinite" in note for note in c.notes) else (*c.notes, "λ is 0: no bound follows")
        return c.with_(notes=notes)
    size = np.linalg.norm(task.targets, axis=0)
    rounding = _rounding(task, found.beta)
    bounds = (c.residuals * size + rounding) / (2 * np.sqrt(task.lam))
    return c.with_(error_bounds=np.asarray(bounds), bounded=BOUNDED)


def _rounding(task: Task, beta: Matrix) -> Vector:
    """Error of Bβ in norm: each entry is a sum of n products whose rounding errors are as good as random."""
    longest = float(np.max(longest_squares(task), initial=0.0))
    heavy = float(np.max(task.frequencies))
    return np.asarray(16 * EPS * np.sqrt(task.n) * longest * heavy * np.linalg.norm(beta, axis=0))


def longest_squares(task: Task) -> Vector:
    """k(x, x) of the training points."""
    if is_precomputed(task.kernel):
        return np.asarray(np.abs(np.diagonal(task.points)), dtype=np.float64)
    return np.asarray(task.kernel.diagonal(task.points), dtype=np.float64)
