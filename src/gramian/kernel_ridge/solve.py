r"""Solvers of a kernel ridge regression: which one, and its solution β of (B + λI)β = ỹ."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as la
from scipy.linalg import lapack

from gramian.compute import dense
from gramian.compute.devices import describe, free_bytes, refuse_beyond_device, to_numpy
from gramian.compute.factor import factorise
from gramian.compute.memory import available_memory
from gramian.compute.threads import quiet_blas
from gramian.inputs.kernels import decomposition_bytes, eigh, matmul
from gramian.kernel_ridge.certificate import (
    EPS,
    FACTORED,
    ITERATED,
    KernelSolution,
    add_bounds,
    is_indefinite,
    is_known_semidefinite,
    product_rounding,
    relative_norms,
)
from gramian.kernel_ridge.problem import KernelProblem
from gramian.linear.cg import ConjugateGradients
from gramian.linear.cholesky import Cholesky
from gramian.linear.preconditioners import scale_factor
from gramian.operators.base import device_factor_bytes
from gramian.results import NumericalWarning, Residual, caller_level
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky

Array = npt.NDArray[np.float64]
Report = Callable[[int, float], None]  # called with the iteration and the residual

MAX_ROWS_CHOLESKY = 20_000  # a factorisation, whatever the kernel and λ, takes less than half a minute
MAX_ROWS_CHOLESKY_GPU = 160_000  # the factor in float64 takes less than half a minute on an H200: 120,000 take 12 s
MAX_ROWS_EIGH = 8000  # one decomposition takes about a minute
MAX_ROWS_EIGH_GPU = 20_000  # ... and about half a minute on a GPU
MAX_ROWS_PRODUCTS = 200_000  # beyond, a product with every pair of them takes half a minute
MAX_ROWS_PRODUCTS_GPU = 3_000_000  # beyond, a product with every pair of them takes seconds on a GPU
MAX_ROWS_AFFORDABLE = 2_000  # a matrix of them and its factor take 64 MB: nobody is asked whether they are there
MAX_ROWS_DENSE = 2_000  # whole in memory and evaluated once: 10 ms against 32 at 423 rows, 88 against 96 at 2,000
MAX_REFINEMENTS = 4
SINGLE = 700  # rows from which on a factor in float32 saves more than the steps that it leaves: 4 ms of 8 at 1,000
MILD = 1e5  # largest ‖B + λI‖/λ of which such steps win a few digits each
SMALL = 3_000  # rows up to which a factor in float64 costs nothing worth saving
TOLERANCES = {"eigh": 1e-8, "cholesky": 1e-8, "cg": 1e-6, "landmarks": 1e-8}
SHARPER = 1e-2  # times the tolerance: what refinement aims at, since another step costs little
MOST_COEFFICIENTS = 2**25  # of all λ and targets, that a path holds at a time
EIGEN = 20  # bytes for each entry of a matrix that is decomposed: the matrix, its eigenvectors, and room to work
SMALLER = (
    *("Use ", ("solver", "cg"), ", which stores no matrix, or ", ("solver", "landmarks"), "; "),
    *(("solver", "auto"), " chooses between them."),
)
WIDEST = 1e30  # values of a kernel beyond which their products may overflow in float32


def choose_solver(
    n: int,
    solver: str,
    *,
    whole: bool = False,
    file: bool = False,
    device: Any = None,
    every_alpha: bool = False,
    features: int | None = None,
) -> tuple[str, str]:
    """Return the solver and the reason: the one asked for, or by size.

    A kernel with few ``features`` (linear, cosine, polynomial ones of few columns) is factored by them, whatever n.

    Cholesky up to 20,000 rows, where the matrix fits in memory; conjugate gradients on tiles that are never stored up
    to 200,000; landmarks beyond, and for a file that is not to be read into memory. A kernel known by a function or a
    matrix (``whole``) is factored. For ``every_alpha`` one eigendecomposition takes the place of Cholesky, up to 8,000
    rows, and conjugate gradients are fitted to four fifths of the rows.

    On a GPU Cholesky up to 160,000 rows, half a minute on an H200, as long as one triangle in float64 fits in nine
    tenths of its free memory (some 130,000 rows in 80 GB); decompositions up to 20,000. A well preconditioned system
    of that size takes conjugate gradients less than a second, and an ill-conditioned one may never converge: what λ and
    the kernel make of it is not known before, so that they are chosen beyond, up to 3 million rows, and by
    ``solver="cg"``. Landmarks take over from there.

    Examples
    --------
    >>> from gramian.kernel_ridge.solve import choose_solver
    >>> choose_solver(50_000, "auto")[0], choose_solver(3_000, "auto", every_alpha=True)[0]
    ('cg', 'eigh')
    """
    if solver != "auto":
        return solver, f"solver={solver!r}"
    if file:
        return "landmarks", f"{n} rows in a file: it is read block by block"
    if features is not None and not every_alpha:
        return "cholesky", f"{n} rows, of which the kernel knows {features} features"
    if n <= MAX_ROWS_AFFORDABLE:
        why = (
            "one decomposition gives every λ"
            if every_alpha
            else "a factorisation is affordable, whatever the kernel and λ"
        )
        return "eigh" if every_alpha else "cholesky", f"{n} rows: {why}"
    gpu = device is not None and device.type == "cuda"
    free, where = (free_bytes(device), f" on {describe(device)}") if gpu else (available_memory(), "")
    if every_alpha:
        most, nbytes, share = MAX_ROWS_EIGH_GPU if gpu else MAX_ROWS_EIGH, eigen_bytes(n, device=device), 0.8
        direct, why = "eigh", "one decomposition gives every λ"
    else:
        most, nbytes, share = MAX_ROWS_CHOLESKY, Cholesky.memory(n), 0.8
        if gpu:
            most, nbytes, share = MAX_ROWS_CHOLESKY_GPU, device_factor_bytes(n), 0.9
        direct, why = "cholesky", "a factorisation is affordable, whatever the kernel and λ"
    fits = nbytes <= share * free
    if whole or (fits and n <= most):
        return direct, f"{n} rows: {why}{where}"
    if n <= (MAX_ROWS_PRODUCTS_GPU if gpu else MAX_ROWS_PRODUCTS):
        return (
            "cg",
            f"{n} rows: products with tiles, since a factor {'takes too long' if fits else 'does not fit'}{where}",
        )
    return "landmarks", f"{n} rows: a product with every pair of them takes too long{where}"


def eigen_bytes(n: int, targets: int = 1, alphas: int = 30, device: Any = None) -> int:
    """Bytes of the decomposition of an n×n matrix, work space included: on a device, or here with all coefficients."""
    if device is not None:
        return decomposition_bytes(n)
    return 8 * (3 * n * n + 2 * min(n * targets * alphas, MOST_COEFFICIENTS) + 4 * n * targets)


def solve(
    problem: KernelProblem,
    solver: str,
    reason: str,
    *,
    tol: float,
    max_iter: int | None = None,
    report: Report | None = None,
) -> KernelSolution:
    """Solve (B + λI)β = ỹ by "eigh", "cholesky" or "cg"; say so where the answer is not as good as asked for."""
    with quiet_blas():  # and with the same bits however many threads there are
        if solver == "cg":
            found = _solve_by_gradients(problem, reason, tol, max_iter, report)
        elif solver == "eigh":
            found = _solve_by_eigenvectors(problem, reason, tol)
        else:
            found = _solve_by_cholesky(problem, reason, tol)
    certificate = add_bounds(problem, found).with_(tolerance=tol)
    certificate.warn_unless_converged(*(ITERATED if solver == "cg" else FACTORED))
    return replace(found, certificate=certificate)


def _solve_by_cholesky(problem: KernelProblem, reason: str, tol: float) -> KernelSolution:
    """One factorisation for each λ; by eigenvectors at λ = 0 or where B + λI is not positive definite."""
    if np.any(problem.lam == 0.0):
        return _solve_by_eigenvectors(problem, f"{reason}; at λ = 0 eigenvectors tell the rank", tol)
    if problem.features is not None:
        solution = _solve_by_features(problem, problem.features, reason, tol)
        if solution is not None:
            return solution
    if problem.n <= MAX_ROWS_DENSE and problem.device is None:
        dense = _solve_dense(problem, reason, tol)
        return dense or _solve_by_eigenvectors(problem, f"{reason}; K + λI is not positive definite", tol)
    nbytes = Cholesky.memory(problem.n) if problem.device is None else device_factor_bytes(problem.n)
    refuse_beyond_device(nbytes, problem.device, (("solver", "cholesky"), f" on {problem.n} rows"), SMALLER)
    cholesky = Cholesky(SHARPER * tol, "float64" if problem.n <= SMALL else "auto")
    B, Y = problem.operator(), problem.targets
    beta, residuals, certificates = np.empty_like(Y), np.empty(len(problem.lam)), []
    for lam in np.unique(problem.lam):
        mine = np.flatnonzero(problem.lam == lam)
        try:
            found = cholesky(B, Y[:, mine], float(lam), reason=reason, warn=False)
        except np.linalg.LinAlgError:
            found = None  # not handled here: the traceback would keep the factor in memory
        if found is None:
            return _solve_by_eigenvectors(problem, f"{reason}; K + λI is not positive definite", tol)
        beta[:, mine], residuals[mine] = to_numpy(found.values), found.certificate.residuals
        certificates.append(found.certificate)
    certificate = certificates[0].with_(
        residuals=residuals,
        passes=sum(c.passes for c in certificates),
        iterations=max(c.iterations for c in certificates),
        condition=max((c.condition for c in certificates if c.condition is not None), default=None),
        rounding=max(c.rounding for c in certificates),
        indefinite=any(c.indefinite for c in certificates),
        notes=tuple(dict.fromkeys(note for c in certificates for note in c.notes)),
    )
    return KernelSolution(beta, certificate, epsilon=B.epsilon)


def _solve_dense(problem: KernelProblem, reason: str, tol: float) -> KernelSolution | None:
    """The same with B in memory, its kernel evaluated once; None where B + λI is not positive definite."""
    n = problem.n
    with quiet_blas():  # tiles are shared between cores all the same
        B = problem.dense()[0]
        units = np.max(np.abs(problem.targets), axis=0, initial=0.0)
        Y = problem.targets / np.where(units > 0, units, 1.0)  # whose squares neither vanish nor overflow
        beta, R, condition, steps = np.zeros_like(Y), Y.copy(), 1.0, 0
        kinds, sure = set[str](), is_known_semidefinite(problem.kernel)
        for lam in np.unique(problem.lam):
            mine, begun = problem.lam == lam, False
            A = np.array(B.T, order="F")  # B is symmetric: a copy in the order of memory
            # eq: krr-dual, ridge-dual
            A[np.diag_indices(n)] += lam
            norm = float(la.norm(A, 1, check_finite=False))
            unit = 2.0 ** -np.frexp(norm)[1]
            goal = SHARPER * tol * np.linalg.norm(Y[:, mine], axis=0)
            for kind in ("float32", "float64") if sure and n > SINGLE and norm < MILD * lam else ("float64",):
                rough = kind == "float32"
                factor = np.asfortranarray((A * unit).astype(np.float32)) if rough else A
                if factorise(factor) != 0:  # by tiles, with the same bits for any number of threads
                    if rough:
                        continue
                    return None
                kinds.add(kind)
                estimate, solve_with = (lapack.spocon, lapack.spotrs) if rough else (lapack.dpocon, lapack.dpotrs)
                size_of = norm * unit if rough else norm
                condition = max(condition, 1.0 / max(float(estimate(factor, size_of, uplo="L")[0]), 1e-300))
                size = np.linalg.norm(R[:, mine], axis=0)
                # x + (LLᵀ)⁻¹(y − (B + λI)x) while that brings the residual down
                for _ in range(MAX_REFINEMENTS * (1 + rough)):
                    if rough:
                        length = np.where(size > 0, size, 1.0)
                        step = unit * length * solve_with(factor, (R[:, mine] / length).astype(np.float32), lower=1)[0]
                    else:
                        step = solve_with(factor, R[:, mine], lower=1)[0]
                    trial = beta[:, mine] + step
                    # eq: krr-normal
                    left = Y[:, mine] - (B @ trial + lam * trial)
                    before, size = np.linalg.norm(R[:, mine], axis=0), np.linalg.norm(left, axis=0)
                    better = (size < before) if begun else np.full(len(size), True)
                    beta[:, mine] = np.where(better, trial, beta[:, mine])
                    R[:, mine] = np.where(better, left, R[:, mine])
                    steps, begun = steps + begun, True
                    # a rough factor leaves digits that one more step brings, for a fraction of what it has saved
                    if np.all((size <= goal * (1e-2 if rough else 1.0)) | (size > 0.5 * before)):
                        break
                if np.all(np.linalg.norm(R[:, mine], axis=0) <= goal):
                    break
        each = (8 * EPS * float(np.linalg.norm(B)) / n**0.5 + EPS * problem.lam) * np.linalg.norm(beta, axis=0)
    certificate = Residual(
        method=f"Cholesky factor in {' and '.join(sorted(kinds))}, {steps} steps of refinement",
        reason=reason,
        passes=1,
        iterations=steps,
        residuals=relative_norms(R, Y),
        tolerance=tol,
        rounding=float(np.max(each / np.maximum(np.linalg.norm(Y, axis=0), 1e-300), initial=0.0)),
        condition=condition,
    )
    return KernelSolution(beta * units, certificate)


def _solve_by_features(problem: KernelProblem, Phi: Array, reason: str, tol: float) -> KernelSolution | None:
    r"""β = (ỹ − F(FᵀF + λI)⁻¹Fᵀỹ)/λ for B = FFᵀ with m features, m ≪ n; None where that keeps too few digits.

    What cancels in it, ε‖B‖/λ of β as in any other way of solving, refinement brings back.
    """
    with quiet_blas():  # tiles are shared between cores all the same
        F = Phi - problem.share @ Phi if problem.intercept else Phi
        F = F if problem.w is None else np.sqrt(problem.w)[:, None] * F
        m, units = F.shape[1], np.max(np.abs(problem.targets), axis=0, initial=0.0)
        Y = problem.targets / np.where(units > 0, units, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            G = dense.scatter(F, None, F[:0])[1]
        norm = float(np.max(np.abs(G).sum(axis=0), initial=0.0))  # ≥ ‖B‖
        if not np.isfinite(norm):
            return None
        beta, R, condition, steps = np.zeros_like(Y), Y.copy(), 1.0, 0
        for lam in np.unique(problem.lam):
            mine = problem.lam == lam
            A = np.array(G.T, order="F")
            A[np.diag_indices(m)] += lam
            if factorise(A) != 0:
                return None
            condition = max(condition, (norm + lam) / lam)
            goal = SHARPER * tol * np.linalg.norm(Y[:, mine], axis=0)
            for step in range(MAX_REFINEMENTS):
                inside = lapack.dpotrs(A, dense.adjoint(F, R[:, mine]), lower=1)[0]
                # eq: krr-dual
                trial = beta[:, mine] + (R[:, mine] - dense.product(F, inside)) / lam
                left = Y[:, mine] - (dense.product(F, dense.adjoint(F, trial)) + lam * trial)
                before, size = np.linalg.norm(R[:, mine], axis=0), np.linalg.norm(left, axis=0)
                better = (size < before) if step else np.full(len(size), True)
                beta[:, mine], R[:, mine] = np.where(better, trial, beta[:, mine]), np.where(better, left, R[:, mine])
                steps = max(steps, step)
                if np.all((size <= goal) | (size > 0.5 * before)):
                    break
        residuals = relative_norms(R, Y)
        each = (8 * EPS * norm / problem.n**0.5 + EPS * problem.lam) * np.linalg.norm(beta, axis=0)
        if problem.n <= MAX_ROWS_DENSE and not np.all(residuals <= tol):  # the kernel matrix itself may do better
            return None
    certificate = Residual(
        method=f"Cholesky factor of the kernel's {m} features in float64, {steps} steps of refinement",
        reason=reason,
        passes=1,
        iterations=steps,
        residuals=residuals,
        tolerance=tol,
        rounding=float(np.max(each / np.maximum(np.linalg.norm(Y, axis=0), 1e-300), initial=0.0)),
        condition=condition,
    )
    return KernelSolution(beta * units, certificate)


def _solve_by_eigenvectors(problem: KernelProblem, reason: str, tol: float) -> KernelSolution:
    """β = U (Uᵀỹ)/(s + λ) from B = U diag(s) Uᵀ; at λ = 0 the pseudo-inverse."""
    n, lam = problem.n, problem.lam
    nbytes = EIGEN * n**2 if problem.device is None else decomposition_bytes(n)
    refuse_beyond_device(nbytes, problem.device, (("solver", "eigh"), f" on {n} rows"), SMALLER)
    A, Y = problem.operator(), problem.targets
    with quiet_blas():
        B = problem.dense()[0]
        s, U = eigh(B)
    size, indefinite = float(np.max(np.abs(s), initial=0.0)), False
    if is_known_semidefinite(problem.kernel):
        s = np.maximum(s, 0.0)  # negative only by rounding
    else:
        indefinite = is_indefinite(float(s[0]) if len(s) else 0.0, size)
    shifted = s[:, None] + lam[None, :]
    gone = (np.abs(shifted) <= len(s) * EPS * size) & (lam == 0.0) | (shifted == 0.0)
    beta = matmul(U, np.divide(matmul(U.T, Y), shifted, out=np.zeros_like(shifted), where=~gone))
    R = Y - (matmul(B, beta) + lam * beta)
    if np.any(gone):
        warnings.warn(
            f"At alpha=0 the kernel matrix of {n} rows has rank {int(np.sum(~np.any(gone, axis=1)))}: the smallest "
            "solution is returned. A positive alpha makes it unique.",
            NumericalWarning,
            stacklevel=caller_level(),
        )
        # what no β can reach is not an error of β
        R = np.where(np.any(gone, axis=0), matmul(U, (~gone) * matmul(U.T, R)), R)
    kept = np.abs(shifted)[~gone]
    slips = relative_norms(np.atleast_2d(product_rounding(problem, beta, A.epsilon)), Y)
    certificate = Residual(
        method="eigendecomposition",
        reason=reason,
        passes=1,
        iterations=0,
        residuals=relative_norms(R, Y),
        rounding=float(np.max(slips, initial=0.0)),
        condition=float(kept.max() / kept.min()) if kept.size else 1.0,
        indefinite=indefinite,
        tolerance=tol,
        device=A.device_name,
        precision=A.precision,
    )
    return KernelSolution(beta, certificate, epsilon=A.epsilon)


def _solve_by_gradients(
    problem: KernelProblem, reason: str, tol: float, max_iter: int | None, report: Report | None
) -> KernelSolution:
    """Block conjugate gradients, products in float32 and residuals in float64, with a factor of growing rank."""
    if np.any(problem.lam == 0.0):
        raise ValueError("alpha=0 with solver='cg' has no preconditioner to speak of: use a positive alpha.")
    if not problem.kernel.positive_semidefinite:
        raise ValueError(
            f"solver='cg' needs a positive semidefinite kernel, and {problem.kernel!r} is not one: use solver='eigh', "
            "or another kernel."
        )
    A, factors, tiled = problem.operator(), PivotedFactors(problem), not problem.kernel.takes_objects
    twin = problem.operator(np.float32, store="auto") if tiled and not factors.wide else None
    cg = ConjugateGradients(tol, max_iter, report)
    grow = factors if tiled else None
    found = cg(A, problem.targets, problem.lam, grow=grow, twin=twin, reason=reason, warn=False)
    landmarks = None if factors.found is None else factors.found.indices
    return KernelSolution(to_numpy(found.values), found.certificate, landmarks, A.epsilon)


class PivotedFactors:
    """F of B ≈ FFᵀ, of any rank, each continuing the last: where K lives.

    On the CPU its columns are evaluated in float32, for half the time; on a device in float64, since a thousand of n
    columns cost nothing compared with a product and show smaller pivots.
    """

    def __init__(self, problem: KernelProblem) -> None:
        self.wide = float(np.max(problem.squared_lengths, initial=0.0)) > WIDEST
        self.dtype = np.float64 if self.wide or problem.device is not None else np.float32
        self.problem, self.K = problem, problem.kernel_operator(self.dtype)
        self.found: PivotedCholesky | None = None

    def __call__(self, rank: int) -> Any:
        """F of this rank, or of less where there is no more."""
        diagonal = to_numpy(self.K.diagonal(), float)
        columns, rank = self.K.columns, min(rank, self.problem.n)
        self.found = rp_cholesky(diagonal, columns, rank, seed=self.problem.seed, start=self.found)
        return scale_factor(self.found.factor, self.problem.w, self.problem.intercept)
