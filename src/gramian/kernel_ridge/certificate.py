r"""What a residual says of a kernel ridge regression: a bound on every prediction, or a warning.

With r = ỹ − (B + λI)β the error of every prediction is at most

.. math:: |\hat f(x)-f(x)| = |\tilde\varphi(x)^T\tilde\Phi^T(B+\lambda I)^{-1}r|
    \le\|\tilde\varphi(x)\|\max_\sigma\frac{\sigma}{\sigma^2+\lambda}\|r\|
    = \|\tilde\varphi(x)\|\frac{\|r\|}{2\sqrt\lambda}
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernels import Kernel, Precomputed
from gramian.results import NumericalWarning, Residual, caller_level

Array = npt.NDArray[np.float64]

BOUNDED = "|f̂(x) − f(x)|/‖φ(x)‖"
EPS = 2.0**-52
DIGIT = 0.1  # of the largest |y|: a bound beyond this at the training rows proves not a digit of their predictions
INDEFINITE = 1e-8  # of the largest: a negative eigenvalue below this is rounding
# what to change where the tolerance was missed, and the kind of the warning: of iterations, and of factors
ITERATED = ("Use more iterations (max_iter), a larger alpha, or a larger tolerance (tol).", ConvergenceWarning)
FACTORED = (
    "Use a larger alpha, columns that are centred and scaled, or a larger tolerance (tol).",
    NumericalWarning,
)
TRIED = 20_000  # rows up to which a matrix is factored to learn whether it is positive semidefinite


@dataclass(frozen=True, eq=False)
class KernelSolution:
    """β, how good it is, rows that a preconditioner chose, and the relative error of the products of the residual."""

    beta: Array
    certificate: Residual
    landmarks: npt.NDArray[np.intp] | None = None
    epsilon: float = EPS


def is_known_semidefinite(kernel: Kernel) -> bool:
    """Whether the kernel is positive semidefinite by its formula, not by someone's word."""
    return kernel.positive_semidefinite and not (kernel.takes_objects or isinstance(kernel, Precomputed))


def is_semidefinite(K: Array) -> bool:
    """Whether K is positive semidefinite, as far as can be told: by its 2×2 minors, and a factor."""
    own = np.diagonal(K)
    small = INDEFINITE * float(np.max(np.abs(own), initial=0.0))
    root = np.sqrt(np.maximum(own, 0.0)) + np.sqrt(small)
    if np.any(own < -small) or np.any(np.abs(K) > np.outer(root, root) * (1 + 1e-8)):
        return False
    try:
        if len(K) <= TRIED:
            scipy.linalg.cholesky(K + (small or 1e-300) * np.eye(len(K)), overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True


def is_indefinite(low: float, size: float) -> bool:
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


def relative_norms(R: Array, Y: Array) -> Array:
    """‖r‖/‖ỹ‖ of each target; 0 where both are 0."""
    size, error = np.linalg.norm(Y, axis=0), np.linalg.norm(R, axis=0)
    return np.asarray(np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0))


def add_bounds(problem: KernelProblem, found: KernelSolution) -> Residual:
    """The certificate with ‖r‖/(2√λ), rounding of the products that r was computed from included; ∞ where λ is 0."""
    c = found.certificate
    if c.indefinite:
        return c.with_(notes=(*c.notes, "the kernel matrix is indefinite, so there is no bound on predictions"))
    known = is_known_semidefinite(problem.kernel)
    if not (known or (problem.kernel.positive_semidefinite and is_semidefinite(problem.matrix))):
        return c.with_(notes=(*c.notes, "the kernel is not known to be positive semidefinite: there is no bound"))
    if np.all(problem.lam == 0.0):
        return c.with_(notes=(*c.notes, "λ is 0: no bound follows from a residual"))
    errors = c.residuals * np.linalg.norm(problem.targets, axis=0)
    errors = errors + product_rounding(problem, found.beta, found.epsilon)
    if problem.intercept:
        heaviest = np.sqrt(np.max(problem.frequencies))
        errors = errors + 2 * EPS * np.linalg.norm(problem.Y, axis=0) * heaviest
    with np.errstate(divide="ignore"):
        bounds = errors / (2 * np.sqrt(problem.lam))
    longest = np.sqrt(np.max(np.abs(problem.squared_lengths), initial=0.0))
    size = np.max(np.abs(problem.Y), axis=0, initial=0.0)
    proved = bool(np.all((bounds * longest <= DIGIT * size) | (problem.lam == 0.0)))
    return c.with_(error_bounds=np.asarray(bounds), bounded=BOUNDED, proved=proved)


def product_rounding(problem: KernelProblem, beta: Array, epsilon: float = EPS) -> Array:
    """Error of Bβ in norm: each entry is a sum of n products whose rounding errors are as good as random."""
    longest = float(np.max(np.abs(problem.squared_lengths), initial=0.0))
    scale = max(16 * EPS, epsilon) * np.sqrt(problem.n) * longest * float(np.max(problem.frequencies))
    return np.asarray(scale * np.linalg.norm(beta, axis=0))
