r"""Kernel ridge regression over a few centres: f(x) = Σ_j a_j k(x, z_j) + b, by passes over blocks of rows.

.. math:: \min_{a,b}\ \sum_i w_i\big(y_i-f(x_i)\big)^2+\lambda\,a^TK_{mm}a,\qquad
    \mathbf 1^Ta=0\ \text{with an intercept, as in the exact solution}

With K_mm = LLᵀ and Φ = K_nm L⁻ᵀ this is a ridge regression with coefficients c = Lᵀa. The rows of Φ are found block by
block by triangular solves: n·m² operations, and as many for ΦᵀΦ. Forming K_mnK_nm first and solving twice with the m×m
result would save half of them, but its rounding, ε‖K_nm‖², is then divided by the smallest pivots of K_mm, squared,
which reach 1e-14: nothing is left of the weak directions. For the same reason values of the kernel in float32 will not
do.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.linear._inducing.cg import ROWS, Report, iterate, preconditioner, sampled
from gramian.linear._inducing.direct import Decomposed, decompose
from gramian.linear._inducing.fit import InducingFit, as_fit
from gramian.linear._inducing.passes import first_pass
from gramian.linear._inducing.problem import Problem, make_problem, shifts_of
from gramian.operators.base import Operator
from gramian.results import Residual

__all__ = ["Decomposed", "Inducing", "InducingFit", "choose_method", "needed_bytes", "on_card"]

Vector = npt.NDArray[np.float64]

METHODS = ("auto", "direct", "cg")
EVALUATION = 100  # a value of the kernel in a product takes as long as so many operations of BLAS
WRITTEN = 150  # ... and in a dense block
EIGEN = 10  # times m³ operations that eigenvectors take
CARD_WRITTEN, CARD_EIGEN = 1000, 500  # the same on a card, whose other operations are so much faster
ITERATIONS = 40  # that CG is expected to take
LIMIT = 300  # ... and may take


@dataclass(frozen=True)
class Inducing:
    r"""Fit f(x) = Σ_j a_j k(x, z_j) + b by passes over the rows of k(X, Z).

    "direct" forms ΦᵀWΦ in one pass and decomposes it, after which every λ is there. "cg" iterates, one pass over a file
    each time and two products in memory, for all targets at once, with a preconditioner from a sample of rows. "auto"
    takes what costs fewer operations (:func:`choose_method`); it is "direct" up to some 4,000 centres, 3,000 of a file.

    With k(X, Z) on a device the blocks, the m×m matrices and all products are there; targets, coefficients and what is
    said of them are NumPy's.

    Parameters
    ----------
    tol : float, default=1e-8
        Residual ‖ΦᵀW(y − f) − λc‖/‖ΦᵀWy‖ to reach.
    method : {"auto", "direct", "cg"}, default="auto"
        How.
    max_iterations : int, optional
        Of "cg"; 300.
    report : callable, optional
        Called with the iteration and the largest residual.
    seed : int, default=0
        For the sample of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.linear.inducing import Inducing
    >>> from gramian.operators import KernelOperator
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> k, centres = Gaussian(gamma=0.2), np.arange(0, 200, 20)
    >>> A = KernelOperator(k, X, X[centres])
    >>> found = Inducing()(A, k(X[centres]), np.sin(X), 1e-3, indices=centres)
    >>> bool(np.max(np.abs(A @ found.coef + found.intercept - np.sin(X))) < 0.01)
    True
    """

    tol: float = 1e-8
    method: str = "auto"
    max_iterations: int | None = None
    report: Report = None
    seed: int = 0

    def __call__(self, A: Operator, Kmm: Any, Y: Any, shifts: Any, *, reason: str = "", **options: Any) -> InducingFit:
        """Fit for one λ, or one for each target.

        Parameters
        ----------
        A : Operator of shape (n, m)
            k(X, Z), in float64.
        Kmm : array of shape (m, m)
            k(Z, Z), in NumPy or where A lives.
        Y : array of shape (n,) or (n, t)
            Targets.
        shifts : float or array-like of shape (t,)
            λ, not negative; where one is 0, "cg" gives way to "direct".
        reason : str, optional
            Why this solver was chosen, for the certificate.
        **options
            ``weights``, ``counts``, ``copies``, ``intercept``, ``indices`` and ``diagonal``, as for
            :meth:`decompose`.

        Returns
        -------
        InducingFit
            Coefficients, intercepts and certificate.
        """
        problem = make_problem(A, Kmm, Y, **options)
        lam = shifts_of(shifts, problem.Y.shape[1])
        way, why = choose_method(*A.shape, len(lam), self.method, resident=A.resident, card=on_card(A))
        if way == "cg" and not np.all(lam > 0):
            way, why = "direct", "λ = 0 needs the singular values"
        reason = "; ".join(part for part in (reason, why) if part)
        found = decompose(problem).fit(lam, self.tol, reason) if way == "direct" else self._cg(problem, lam, reason)
        _warn_unless_converged(found.certificate)
        return found

    def decompose(self, A: Operator, Kmm: Any, Y: Any, **options: Any) -> Decomposed:
        """Decompose in one pass; ``fit(λ)`` and ``path(λs)`` of the result take one more each.

        Parameters
        ----------
        A, Kmm, Y
            As for a fit.
        **options
            ``weights``: of shape (n,), not negative; rows of weight 0 take no part. ``counts``: whether they are
            counts; where None, if all are whole numbers. ``copies``: how often each row is there, where a weight is
            copies · precision: both at once. ``intercept``: whether to fit one, False unless given.
            ``indices``: which rows the centres are, and ``diagonal``: k(x, x) of every row; either gives a bound on the
            distance from exact kernel ridge, the second a sharper one.

        Returns
        -------
        Decomposed
            With ``filter``, ``fit``, ``path`` and ``left_out``.
        """
        return decompose(make_problem(A, Kmm, Y, **options))

    def _cg(self, problem: Problem, lam: Vector, reason: str) -> InducingFit:
        A, limit = problem.A, self.max_iterations or LIMIT
        before = A.passes
        first = first_pass(problem, sampled(problem.w, A.shape[1], self.seed))
        inverse = preconditioner(first.gram, lam)
        with A.session():
            at, steps = iterate(problem, first, lam, inverse, self.tol, limit, self.report)
        return as_fit(problem, first, at, lam, ("cg", reason, A.passes - before, steps, self.tol, None))


def on_card(A: Operator) -> bool:
    """Whether an operator lives on another device than a CPU.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.inducing import on_card
    >>> from gramian.operators import Data
    >>> on_card(Data(np.eye(2)))
    False
    """
    return getattr(A.device, "type", "cpu") != "cpu"


def choose_method(
    n: int, m: int, t: int, method: str = "auto", *, resident: bool = True, card: bool = False
) -> tuple[str, str]:
    """Return "direct" or "cg", and why: the one asked for, or the one of fewer operations.

    "direct" takes 2nm² for the Gram matrix and 10m³ for its eigenvectors; "cg" some 40 iterations over n·m values of
    the kernel, each as dear as 100 operations where it is multiplied in a core's cache (twice an iteration) and 150
    where it is written to a block (once), and 9m³ for the preconditioner from 4m rows. Where there are no more rows,
    the preconditioner is the inverse itself. On a card, which is so much faster at all else, a value of the kernel in
    float64 is as dear as 1000 operations, once in an iteration, and eigenvectors as 500m³.

    Examples
    --------
    >>> from gramian.linear.inducing import choose_method
    >>> choose_method(100_000, 1_000, 1)[0], choose_method(1_000_000, 10_000, 1)[0]
    ('direct', 'cg')
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method != "auto":
        return method, f"method={method!r}"
    written, eigen = (CARD_WRITTEN, CARD_EIGEN) if card else (WRITTEN, EIGEN)
    each = 2 * (EVALUATION + 2 * t) if resident and not card else written + 4 * t
    direct = n * m * (2 * m + 2 * written) + eigen * m**3
    steps, sample = (ITERATIONS, ROWS * m) if n > ROWS * m else (1, n)
    cg = n * m * (written + steps * each) + (2 * sample + m) * m**2
    way = "direct" if direct <= cg else "cg"
    return way, f"{n} rows and {m} centres take {direct:.1e} operations directly and some {cg:.1e} by iteration"


def needed_bytes(m: int, method: str, card: bool = False) -> int:
    """Return the memory that matrices of m×m numbers take: ask before a fit.

    On a card blocks of as many rows as centres are there beside them, and room for the eigenvectors to work in.

    Examples
    --------
    >>> from gramian.linear.inducing import needed_bytes
    >>> needed_bytes(10_000, "direct")
    4000000000
    """
    matrices = {"direct": 5, "cg": 3}[method]
    return (matrices + 3 if card else matrices) * 8 * m**2


def _warn_unless_converged(certificate: Residual) -> None:
    if certificate.converged:
        return
    missed = int(np.count_nonzero(~(certificate.residuals <= certificate.tolerance)))
    warnings.warn(
        f"{certificate.method}: {missed} of {len(certificate.residuals)} targets have a residual above the tolerance "
        f"{certificate.tolerance:.1e}: the largest is {certificate.worst:.1e}, "
        f"{certificate.worst / certificate.tolerance:.1f} times what was asked, after {certificate.passes} passes. "
        "Raise the tolerance or λ, allow more iterations, or choose fewer centres.",
        ConvergenceWarning,
        stacklevel=3,
    )
