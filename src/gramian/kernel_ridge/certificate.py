r"""What a residual says of a kernel ridge regression: a bound on every prediction, or a warning.

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

from gramian.inputs.kernels import is_precomputed, kernel_diagonal
from gramian.kernel_ridge.problem import Task
from gramian.kernels import Kernel
from gramian.results import NumericalWarning, Residual, caller_level

__all__ = [
    "BOUNDED",
    "EPS",
    "Fitted",
    "bounded",
    "known",
    "longest_squares",
    "merged",
    "relative",
    "rounding",
    "semidefinite",
    "warn_if_indefinite",
    "warn_unless_converged",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

BOUNDED = "|f̂(x) − f(x)|/‖φ(x)‖"
EPS = 2.0**-52
INDEFINITE = 1e-8  # of the largest: a negative eigenvalue below this is rounding
TRIED = 20_000  # rows up to which a matrix is factored to learn whether it is positive semidefinite


@dataclass(frozen=True, eq=False)
class Fitted:
    """β, how good it is, rows that a preconditioner chose, and the relative error of the products of the residual."""

    beta: Matrix
    certificate: Residual
    landmarks: npt.NDArray[np.intp] | None = None
    epsilon: float = EPS


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


def merged(parts: list[tuple[Any, Residual]], t: int) -> Residual:
    """One certificate for targets that were solved for different λ."""
    residuals = np.empty(t)
    for mine, certificate in parts:
        residuals[mine] = certificate.residuals
    conditions = [c.condition for _, c in parts if c.condition is not None]
    notes = tuple(dict.fromkeys(note for _, c in parts for note in c.notes))
    return parts[0][1].with_(
        residuals=residuals,
        passes=sum(c.passes for _, c in parts),
        iterations=max(c.iterations for _, c in parts),
        condition=max(conditions, default=None),
        rounding=max(c.rounding for _, c in parts),
        indefinite=any(c.indefinite for _, c in parts),
        notes=notes,
    )


def known(kernel: Kernel) -> bool:
    """Whether the kernel is positive semidefinite by its formula, not by someone's word."""
    return kernel.positive_semidefinite and not kernel.takes_objects and not is_precomputed(kernel)


def semidefinite(task: Task) -> bool:
    """Whether K is positive semidefinite, as far as can be told: by its formula, by a factor, or by its 2×2 minors."""
    if known(task.kernel):
        return True
    if not task.kernel.positive_semidefinite:
        return False
    K = task.matrix
    own = np.diagonal(K)
    small = INDEFINITE * float(np.max(np.abs(own), initial=0.0))
    root = np.sqrt(np.maximum(own, 0.0)) + np.sqrt(small)
    if np.any(own < -small) or np.any(np.abs(K) > np.outer(root, root) * (1 + 1e-8)):
        return False
    if len(K) > TRIED:
        return True
    try:
        scipy.linalg.cholesky(K + (small or 1e-300) * np.eye(len(K)), overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True


INDEFINITE_NOTE = "the kernel matrix is indefinite, so there is no bound on predictions"


def warn_if_indefinite(low: float, size: float) -> bool:
    """Whether B + λI has an eigenvalue far below 0, with a warning: there is no feature space, hence no bound."""
    if low >= -INDEFINITE * size:
        return False
    warnings.warn(
        f"The kernel matrix is indefinite: its smallest eigenvalue is {low:.4g}, its largest in size {size:.4g}. "
        "The system is solved as it is, but it is no kernel ridge regression and its predictions have no bound.",
        NumericalWarning,
        stacklevel=caller_level(),
    )
    return True


def relative(R: Matrix, Y: Matrix) -> Vector:
    """‖r‖/‖ỹ‖ of each target; 0 where both are 0."""
    size, error = np.linalg.norm(Y, axis=0), np.linalg.norm(R, axis=0)
    return np.asarray(np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0))


def bounded(task: Task, found: Fitted) -> Residual:
    """Add ‖r‖/(2√λ), with the rounding of the products that r was computed from; infinite where λ is 0."""
    c = found.certificate
    if c.indefinite:
        return c
    if not semidefinite(task):
        return c.with_(notes=(*c.notes, "the kernel is not known to be positive semidefinite: there is no bound"))
    if np.all(task.lam == 0.0):
        return c.with_(notes=(*c.notes, "λ is 0: no bound follows from a residual"))
    size = np.linalg.norm(task.targets, axis=0)
    slack = 2 * EPS * np.linalg.norm(task.Y, axis=0) * np.sqrt(np.max(task.frequencies)) if task.intercept else 0.0
    with np.errstate(divide="ignore"):
        bounds = (c.residuals * size + rounding(task, found.beta, found.epsilon) + slack) / (2 * np.sqrt(task.lam))
    return c.with_(error_bounds=np.asarray(bounds), bounded=BOUNDED)


def rounding(task: Task, beta: Matrix, epsilon: float = EPS) -> Vector:
    """Error of Bβ in norm: each entry is a sum of n products whose rounding errors are as good as random."""
    longest = float(np.max(np.abs(longest_squares(task)), initial=0.0))
    heavy = float(np.max(task.frequencies))
    return np.asarray(max(16 * EPS, epsilon) * np.sqrt(task.n) * longest * heavy * np.linalg.norm(beta, axis=0))


def longest_squares(task: Task) -> Vector:
    """k(x, x) of the training points, in float64."""
    if is_precomputed(task.kernel):
        return np.asarray(np.diagonal(task.points), dtype=np.float64)
    return kernel_diagonal(task.kernel, task.points)
