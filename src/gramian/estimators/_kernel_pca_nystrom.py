"""Kernel PCA of a few landmarks: Nyström's method, with its bound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.compute.devices import host, refuse_beyond_device
from gramian.estimators._kernel_pca_task import NOTHING, Decomposition, Task, chosen_points, cleaned
from gramian.results import Certificate
from gramian.spectral.rayleigh import small, warn_unless_converged
from gramian.spectral.rpcholesky import rp_cholesky

__all__ = ["nystrom_components"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

LANDMARKS = 2000  # where no number is given


def nystrom_components(task: Task, reason: str) -> Decomposition:
    r"""Components of the features of landmarks chosen by randomly pivoted Cholesky.

    K̂ = FFᵀ with F = K_{:,L}F_L⁻ᵀ and F_LF_Lᵀ = K_LL, so that 0 ≤ λ_i(K) − λ_i(K̂) ≤ tr(K − K̂), centred or not.
    """
    if not task.kernel.positive_semidefinite:
        raise ValueError(
            f"{task.kernel!r} is not positive semidefinite, which eigen_solver='nystrom' needs. Use 'krylov'."
        )
    m = min(task.n, task.landmarks or max(LANDMARKS, 4 * task.k))
    if task.device is not None:
        what = f"Nyström's factor of {task.n} rows and {m} landmarks"
        refuse_beyond_device(10 * task.n * m, task.device, what, "Use fewer landmarks: n_landmarks.")
    K = task.operator(np.float64, store=False)
    own = np.asarray(host(K.diagonal()), dtype=np.float64)
    found = rp_cholesky(own, K.columns, m, seed=task.seed)
    F, share, at = found.factor, K.asarray(task.share), small(found.factor[K.xp.asarray(found.indices)])
    mean = small(share @ F) if task.centre else np.zeros(F.shape[1])
    F -= K.asarray(mean)  # in place: F is the largest thing there is
    if task.w is not None:
        F *= K.asarray(np.sqrt(task.w)[:, None])
    squares, V = scipy.linalg.eigh(small(F.T @ F), check_finite=False)
    nothing = NOTHING * float(own @ task.frequencies)
    values, V = squares[::-1][: task.k], V[:, ::-1][:, : task.k]
    values = cleaned(np.where(values > nothing, values, 0.0))
    V = V * (values > 0)  # directions without variance get the coefficient 0
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    U = small(F @ K.asarray(V * inverse))
    # k(x, L) = F_L f(x) for the features f, so that f(x)·v = k(x, L)·F_L⁻ᵀv
    both = np.linalg.lstsq(at.T, np.column_stack([V, mean]), rcond=None)[0]
    coefficients, middle = np.asarray(both[:, :-1], np.float64), np.asarray(both[:, -1], np.float64)
    certificate = _certificate(values, found.trace, own, task, reason, len(found.indices), U)
    certificate = certificate.with_(notes=(*certificate.notes, K.precision)) if K.precision else certificate
    warn_unless_converged(certificate, f"Use more than n_landmarks={m}, or eigen_solver='krylov'.")
    points = chosen_points(task.X, found.indices)
    square = float(mean @ mean)
    return Decomposition(
        values, U, points, coefficients, mean @ V, middle, square, at @ mean, certificate, 0.0, found.indices
    )


def _certificate(values: Vector, trace: float, own: Vector, task: Task, reason: str, m: int, U: Matrix) -> Certificate:
    norm = float(values[0]) if len(values) and values[0] > 0 else 1.0
    bound = max(trace, 0.0) * float(np.max(task.frequencies))
    rounding = 8 * np.finfo(float).eps * max(1.0, float(own @ task.frequencies) / norm)
    return Certificate(
        f"Nyström with {m} landmarks by randomly pivoted Cholesky",
        reason,
        1,
        values,
        np.full(len(values), np.sqrt(2) * bound / norm),
        norm,
        float(np.max(np.abs(U.T @ U - np.eye(U.shape[1])), initial=0.0)),
        max(task.tol, 1e-6),
        rounding,
        notes=(f"eigenvalues are too small by at most {bound:.3g}, the trace of what the landmarks leave out",),
    )
