r"""Solvers of a kernel ridge regression: which one, and its solution β of (B + λI)β = ỹ."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.compute.devices import describe, free_bytes, to_numpy
from gramian.compute.memory import available_memory, gibibytes
from gramian.inputs.kernels import decomposition_bytes, dense, eigenvectors, is_precomputed, refuse_beyond, times
from gramian.kernel_ridge.certificate import (
    BOUNDED,
    EPS,
    INDEFINITE_NOTE,
    Fitted,
    bounded,
    known,
    longest_squares,
    merged,
    relative,
    rounding,
    semidefinite,
    warn_if_indefinite,
    warn_unless_converged,
)
from gramian.kernel_ridge.problem import Task
from gramian.linear.cg import ConjugateGradients
from gramian.linear.cholesky import Cholesky
from gramian.linear.preconditioners import scale_factor
from gramian.operators import Operator
from gramian.operators.base import device_factor_bytes
from gramian.results import NumericalWarning, Residual, Solution, caller_level
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky

__all__ = [
    "BOUNDED",
    "DIRECT",
    "DIRECT_CARD",
    "HUGE",
    "HUGE_CARD",
    "TOLERANCES",
    "Factors",
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
DIRECT_CARD = 160_000  # rows whose factor in float64 takes less than half a minute on an H200: 120,000 take 12 s
HUGE_CARD = 3_000_000  # rows beyond which a product with every pair of them takes seconds on a card
FILLED = 0.9  # of the free memory of a card that a factor may take
TOLERANCES = {"eigh": 1e-8, "cholesky": 1e-8, "cg": 1e-6, "inducing": 1e-8}
SHARPER = 1e-2  # times the tolerance: what refinement aims at, since another step costs little
EIGEN = 20  # bytes for each entry of a matrix that is decomposed: the matrix, its eigenvectors, and room to work
WIDEST = 1e30  # values of a kernel beyond which their products may overflow in float32


def choose(n: int, solver: str, *, whole: bool = False, file: bool = False, device: Any = None) -> tuple[str, str]:
    """Return the solver and the reason: the one asked for, or by size.

    Cholesky up to 20,000 rows, where the matrix fits in memory; conjugate gradients on tiles that are never stored up
    to 200,000; inducing points beyond, and for a file that is not to be read into memory. A kernel known by a function
    or a matrix (``whole``) is factored.

    On a card Cholesky up to 160,000 rows, half a minute on an H200, as long as one triangle in float64 fits in nine
    tenths of its free memory (some 130,000 rows on a card of 80 GB). A well preconditioned system of that size takes
    conjugate gradients less than a second, and an ill-conditioned one may never converge: what λ and the kernel make
    of it is not known before, so that they are chosen beyond, up to 3 million rows, and by ``solver="cg"``. Inducing
    points take over from there.

    Examples
    --------
    >>> from gramian.kernel_ridge.solve import choose
    >>> choose(50_000, "auto")[0]
    'cg'
    """
    if solver != "auto":
        return solver, f"solver={solver!r}"
    if file:
        return "inducing", f"{n} rows in a file: it is read block by block"
    if device is not None and device.type == "cuda":
        return _choose_on_card(n, device)
    if whole or (n <= DIRECT and Cholesky.memory(n) <= 0.8 * available_memory()):
        return "cholesky", f"{n} rows: a factorisation is affordable, whatever the kernel and λ"
    if n <= HUGE:
        return "cg", f"{n} rows: products with tiles that are never stored"
    return "inducing", f"{n} rows: a product with every pair of them takes half a minute"


def _choose_on_card(n: int, device: Any) -> tuple[str, str]:
    nbytes = device_factor_bytes(n)
    fits = nbytes <= FILLED * free_bytes(device)
    if fits and n <= DIRECT_CARD:
        return "cholesky", f"{n} rows: a factor of {gibibytes(nbytes)} fits on {describe(device)}"
    if n <= HUGE_CARD:
        trouble = "would take more than half a minute" if fits else "does not fit"
        return "cg", f"{n} rows: a factor of {gibibytes(nbytes)} {trouble} on {describe(device)}"
    return "inducing", f"{n} rows: a product with every pair of them takes several seconds on {describe(device)}"


def solve(task: Task, solver: str, reason: str) -> Fitted:
    """Solve (B + λI)β = ỹ by "eigh", "cholesky" or "cg"; say so where the answer is not as good as asked for."""
    method = {"eigh": _by_eigenvectors, "cholesky": _by_cholesky, "cg": _by_gradients}[solver]
    with warnings.catch_warnings():
        # what a solver says of itself is said again below, at the user's own line
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        warnings.filterwarnings("ignore", category=NumericalWarning, message=".*the largest residual")
        found = method(task, reason)
    certificate = bounded(task, found).with_(tolerance=task.tol)
    warn_unless_converged(certificate)
    return replace(found, certificate=certificate)


def _refuse_unless_it_fits(task: Task, solver: str) -> None:
    n, on_host = task.n, task.device is None
    eigen, triangle = (EIGEN * n**2, Cholesky.memory) if on_host else (decomposition_bytes(n), device_factor_bytes)
    refuse_beyond(
        eigen if solver == "eigh" else triangle(n),
        task.device,
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
        found = _by_one_factor(B, Y[:, mine], float(lam), task, reason)
        if found is None:
            return _by_eigenvectors(task, f"{reason}; K + λI is not positive definite")
        beta[:, mine] = to_numpy(found.values)
        parts.append((mine, found.certificate))
    return Fitted(beta, merged(parts, len(task.lam)), epsilon=B.epsilon)


def _by_one_factor(B: Operator, Y: Matrix, lam: float, task: Task, reason: str) -> Solution | None:
    """The solution for one λ; None where B + λI is not positive definite, and nothing that was made of it is kept."""
    solver = Cholesky(SHARPER * task.tol, "float64" if task.n <= SMALL else "auto")
    try:
        return solver(B, Y, lam, reason=reason)
    except np.linalg.LinAlgError:
        return None


def _settled(task: Task) -> Operator:
    """B in float64: evaluated in tiles, or, of a function of two objects, once and for all."""
    if task.kernel.takes_objects and not is_precomputed(task.kernel):
        return task.dressed(task.matrix)
    return task.operator()


def _by_eigenvectors(task: Task, reason: str) -> Fitted:
    """β = U (Uᵀỹ)/(s + λ) from B = U diag(s) Uᵀ; at λ = 0 the pseudo-inverse."""
    _refuse_unless_it_fits(task, "eigh")
    A, Y = _settled(task), task.targets
    B = dense(A)
    s, U = eigenvectors(B)
    size = float(np.max(np.abs(s), initial=0.0))
    lowest = float(s[0]) if len(s) else 0.0
    is_indefinite = not known(task.kernel) and warn_if_indefinite(lowest, size)
    if known(task.kernel):
        s = np.maximum(s, 0.0)  # negative only by rounding
    shifted = s[:, None] + task.lam[None, :]
    gone = (np.abs(shifted) <= len(s) * EPS * size) & (task.lam == 0.0) | (shifted == 0.0)
    beta = times(U, np.divide(times(U.T, Y), shifted, out=np.zeros_like(shifted), where=~gone))
    R = Y - (times(B, beta) + task.lam * beta)
    if np.any(gone):
        _warn_of_rank(task, int(np.sum(~np.any(gone, axis=1))))
        # what no β can reach is not an error of β
        R = np.where(np.any(gone, axis=0), times(U, (~gone) * times(U.T, R)), R)
    kept = np.abs(shifted)[~gone]
    condition = float(kept.max() / kept.min()) if kept.size else 1.0
    slip = float(np.max(relative(np.atleast_2d(rounding(task, beta, A.epsilon)), Y), initial=0.0))
    residuals = relative(R, Y)
    certificate = Residual(
        "eigendecomposition",
        reason,
        1,
        0,
        residuals,
        slip,
        condition,
        indefinite=is_indefinite,
        tolerance=task.tol,
        device=A.device_name,
        precision=A.precision,
        notes=(INDEFINITE_NOTE,) if is_indefinite else (),
    )
    return Fitted(beta, certificate, epsilon=A.epsilon)


def _warn_of_rank(task: Task, rank: int) -> None:
    warnings.warn(
        f"At alpha=0 the kernel matrix of {task.n} rows has rank {rank}: the smallest solution is returned. "
        "A positive alpha makes it unique.",
        NumericalWarning,
        stacklevel=caller_level(),
    )


def _by_gradients(task: Task, reason: str) -> Fitted:
    """Block conjugate gradients, products in float32 and residuals in float64, with a factor of growing rank."""
    if np.any(task.lam == 0.0):
        raise ValueError("alpha=0 with solver='cg' has no preconditioner to speak of: use a positive alpha.")
    if not task.kernel.positive_semidefinite:
        raise ValueError(
            f"solver='cg' needs a positive semidefinite kernel, and {task.kernel!r} is not one: use solver='eigh', or "
            "another kernel."
        )
    A, factors = _settled(task), Factors(task)
    tiled = not task.kernel.takes_objects
    twin = task.operator(np.float32, store="auto") if tiled and not factors.wide else None
    solver = ConjugateGradients(task.tol, task.max_iterations, task.report)
    found: Solution = solver(A, task.targets, task.lam, grow=factors if tiled else None, twin=twin, reason=reason)
    return Fitted(to_numpy(found.values), found.certificate, factors.landmarks, A.epsilon)


class Factors:
    """F of B ≈ FFᵀ, of any rank, each continuing the last: where K lives.

    On the host its columns are evaluated in float32, for half the time; on a device in float64, since a thousand of n
    columns cost nothing beside a product and show smaller pivots.
    """

    def __init__(self, task: Task) -> None:
        self.wide = float(np.max(longest_squares(task), initial=0.0)) > WIDEST
        self.dtype = np.float64 if self.wide or task.device is not None else np.float32
        self.task, self.K = task, task.kernel_operator(self.dtype)
        self.found: PivotedCholesky | None = None

    @property
    def landmarks(self) -> npt.NDArray[np.intp] | None:
        """Rows chosen so far."""
        return None if self.found is None else self.found.indices

    def __call__(self, rank: int) -> Any:
        """F of this rank, or of less where there is no more."""
        diagonal = to_numpy(self.K.diagonal(), float)
        columns = self.K.columns
        self.found = rp_cholesky(diagonal, columns, min(rank, self.task.n), seed=self.task.seed, start=self.found)
        return scale_factor(self.found.factor, self.task.w, self.task.intercept)
