r"""Conjugate gradients for many systems (A + λ_jI)x_j = b_j at once: one product with A for all of them a step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.linear._gradients import Preconditioner, Run, name_of
from gramian.linear._resident import system_for
from gramian.linear.preconditioners import factor_bytes, largest_rank
from gramian.operators.base import Operator
from gramian.results import Residual, Solution

__all__ = ["ConjugateGradients"]

DEFAULT_LIMIT = 1000  # iterations


@dataclass(frozen=True)
class ConjugateGradients:
    r"""Solve (A + λ_jI)x_j = b_j for a symmetric positive semidefinite A, every column with its own λ.

    Columns share nothing but the products: a path of λ, or all classes, cost one pass over A a step, and columns that
    are done leave. With a ``twin``, the same operator in float32, the products of the iteration are made with it;
    residuals fall to a thousandth, then are measured again in float64 with A, and so on. What is reported is always the
    true residual ‖b − (A+λI)x‖/‖b‖, by which the iteration ends. Where float32 brings no progress, A takes over.

    **Rank of the preconditioner.** With ``grow``, a function that gives a factor F of A ≈ FFᵀ of the rank asked for,
    the iteration begins with a rank whose factor costs as much as three products. Every five iterations the rate of the
    slowest column says how many are left, and the rank is doubled where that saves more than it costs
    (:func:`~gramian.linear.preconditioners.pays_to_double`); the iteration goes on from where it is. A factor with
    fewer columns than asked for says that there are no more to be had.

    **On a device.** With an operator on a device all vectors stay there, in float64, and a step moves a few numbers for
    each column; where they would take more than a quarter of the card they are NumPy's, and only blocks of them travel.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative residual to reach.
    max_iterations : int, optional
        Give up, with a warning, after so many; 10 n but at most 1000 where not given.
    report : callable, optional
        Called as ``report(iteration, worst)`` after every step, with the largest residual of the columns at work.
    max_rank : int, optional
        Of the factors that ``grow`` is asked for; where not given, what 2 GiB hold with all that is made of them, 1789
        for n = 50,000, or half of a card.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.cg import ConjugateGradients
    >>> from gramian.operators import Data
    >>> A = Data(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> found = ConjugateGradients()(A, np.array([[5.0, 5.0], [4.0, 4.0]]), [1.0, 3.0])
    >>> found.values.round(6).tolist()
    [[1.375, 0.875], [0.875, 0.625]]
    """

    tol: float = 1e-6
    max_iterations: int | None = None
    report: Callable[[int, float], None] | None = None
    max_rank: int | None = None

    def __call__(
        self,
        A: Operator,
        B: Any,
        shifts: Any,
        *,
        preconditioner: Preconditioner | None = None,
        twin: Operator | None = None,
        start: Any = None,
        grow: Callable[[int], Any] | None = None,
        reason: str = "asked for",
    ) -> Solution:
        """Return x for every column.

        Parameters
        ----------
        A : Operator of shape (n, n)
            Symmetric and positive semidefinite.
        B : array of shape (n, t)
            Right-hand sides.
        shifts : float or array-like of shape (t,)
            λ of each, none negative.
        preconditioner : callable, optional
            ``preconditioner(R, columns)`` is about (A + λ_jI)⁻¹r_j for the columns numbered, where R lives:
            :class:`~gramian.linear.preconditioners.Nystrom`.
        twin : Operator, optional
            A in float32, on the same device.
        start : array of shape (n, t), optional
            Where to begin; 0 where not given.
        grow : callable, optional
            ``grow(rank)`` gives a factor of A of that rank.
        reason : str, optional
            Why this method was chosen, for the certificate.

        Returns
        -------
        Solution
            Values of the shape of B; ``certificate.notes`` has the rank of the preconditioner.
        """
        system = system_for(A, B, shifts, twin)
        limit = min(DEFAULT_LIMIT, 10 * A.shape[0]) if self.max_iterations is None else self.max_iterations
        most = largest_rank(A.shape[0], factor_bytes(A)) if self.max_rank is None else self.max_rank
        run = Run(system, self.tol, limit, self.report, preconditioner)
        run.begin(start, grow, most)
        while run.going:
            with A.session():
                run.descend()
            if run.wants_more:
                run.enlarge()
        return self._solution(run, reason)

    def _solution(self, run: Run, reason: str) -> Solution:
        system = run.system
        narrow = "" if system.twin is None else f", products in {name_of(system.twin)}"
        certificate = Residual(
            method=f"preconditioned conjugate gradients{narrow}"
            if run.M is not None
            else f"conjugate gradients{narrow}",
            reason=reason,
            passes=system.passes,
            iterations=run.iterations,
            residuals=run.true,
            tolerance=self.tol,
            rounding=system.rounding(run.X),
            notes=run.notes(),
        )
        self._warn_unless_converged(certificate, run)
        return Solution(system.values(run.X), certificate)

    def _warn_unless_converged(self, certificate: Residual, run: Run) -> None:
        if certificate.converged:
            return
        missed = int(np.count_nonzero(~(certificate.residuals <= self.tol)))
        why = f"max_iterations={run.limit} was reached" if run.iterations >= run.limit else "rounding allows no less"
        warnings.warn(
            f"{certificate.method}: {missed} of {len(certificate.residuals)} right-hand sides have a residual above "
            f"the tolerance {self.tol:.1e}; the largest, rounding included, is {certificate.worst:.1e}, after "
            f"{certificate.iterations} iterations: {why}. Use a larger shift (alpha), a preconditioner of higher rank, "
            "more iterations, a larger tolerance, or a factorisation.",
            ConvergenceWarning,
            stacklevel=4,
        )
