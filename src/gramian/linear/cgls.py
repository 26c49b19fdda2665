"""Conjugate gradients for regularised least squares: many right-hand sides, each with its own λ, shared products."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.linear._caller import caller_level
from gramian.linear._descent import Descent, LeastSquares, Measured, norms, small
from gramian.operators.base import Operator
from gramian.results import Residual, Solution

__all__ = ["CGLS"]

Array = Any
Vector = npt.NDArray[np.float64]

AIM = 0.5  # of the tolerance: the gradient that is carried along differs a little from the true one
STALLED = 0.5  # a round that leaves more than this of the true gradient is the last for its column


@dataclass(frozen=True)
class CGLS:
    r"""Minimise ‖Ax − b‖² + λ‖x‖² for every column b and its own λ, by conjugate gradients.

    .. math:: (A^TA+\lambda_jI)\,x_j = A^Tb_j

    AᵀA is never formed (Hestenes and Stiefel 1952; Björck, Elfving and Strakoš 1998). Each step multiplies all columns
    that are not yet done at once. While λ is a fair part of ‖A‖² a step is one pass over the data, AᵀA times the
    directions; where λ is small or 0 it is two, A and then Aᵀ, which lose half as many digits. When the gradient that
    is carried along meets the tolerance the true one is measured, and where that does not, the iteration starts again
    from it. With λ = 0 and no start the solution is the one of least norm.

    Parameters
    ----------
    tol : float, optional
        What ‖Aᵀ(b − Ax) − λx‖/‖Aᵀb‖ is to meet; 1e-10 in float64 and 1e-5 in float32 where not given.
    max_iterations : int, optional
        Give up, with a warning, after this many steps; 100 + 10 min(n, p) where not given.
    report : callable, optional
        Called as ``report(iteration, worst)`` after every step, with the largest residual of the columns at work.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.cgls import CGLS
    >>> from gramian.operators import Data
    >>> A = Data(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> solved = CGLS()(A, np.array([[1.0], [2.0], [3.0]]), 1.0)
    >>> solved.values.round(6).tolist(), solved.certificate.converged
    ([[0.5], [0.8]], True)
    """

    tol: float | None = None
    max_iterations: int | None = None
    report: Callable[[int, float], None] | None = None

    def __call__(
        self,
        A: Operator,
        B: Array,
        shifts: Any,
        *,
        start: Array | None = None,
        diagonal: Any = None,
        reason: str = "asked for",
    ) -> Solution:
        r"""Return x for every column.

        Parameters
        ----------
        A : Operator of shape (n, p)
            The map.
        B : array of shape (n, t)
            Right-hand sides.
        shifts : float or array-like of shape (t,)
            λ of each, none negative.
        start : array of shape (p, t), optional
            Where to begin; 0 where not given.
        diagonal : array-like of shape (p,), optional
            Diagonal of AᵀA. The steps of columns with λ > 0 are then scaled by 1/(diagonal + λ), which helps where the
            columns of A differ much in length.
        reason : str, optional
            Why this method was chosen, for the certificate.

        Returns
        -------
        Solution
            Values of shape (p, t). Where every λ > 0 the certificate bounds ‖ŵ − w‖ by ‖gradient‖/λ, the rounding of
            the products included.
        """
        lam = _checked(A, B, shifts, start)
        B, before = A.asarray(B), A.passes
        lengths = _units(A, B)
        unit = A.asarray(lengths)[None, :]
        work = LeastSquares(A, B / unit, lam, diagonal)
        with A.session():
            true, iterations = self._rounds(work, work.gradient(None if start is None else A.asarray(start) / unit))
        certificate = self._certificate(work, true, iterations, A.passes - before, reason, lengths)
        self._warn_unless_converged(certificate)
        return Solution(true.X * unit, certificate)

    def _tolerance(self, A: Operator) -> float:
        default = 1e-5 if A.dtype == A.xp.float32 else 1e-10
        return default if self.tol is None else self.tol

    def _rounds(self, work: LeastSquares, true: Measured) -> tuple[Measured, int]:
        """Steps until the carried gradients are small, then the true ones; again while that brings them down."""
        tol, done = self._tolerance(work.A), 0
        limit = 100 + 10 * min(work.A.shape) if self.max_iterations is None else self.max_iterations
        todo = ~(true.residuals <= tol)
        while todo.any() and done < limit:
            X, steps = self._steps(work, true, np.flatnonzero(todo), tol, done, limit)
            previous, true, done = true, work.gradient(X), done + steps
            todo = ~(true.residuals <= tol) & (true.residuals <= STALLED * previous.residuals)
            true = true.or_better(previous, work.A)
        return true, done

    def _steps(
        self, work: LeastSquares, true: Measured, columns: npt.NDArray[np.intp], tol: float, done: int, limit: int
    ) -> tuple[Array, int]:
        """Conjugate gradients from the measured state for some columns; each leaves when it is done or stuck."""
        X, descent, steps = true.X + 0.0, Descent(work, true, columns), 0
        while len(descent.columns):
            descent.step()
            steps += 1
            residuals = descent.gradients / work.size[descent.columns]
            if self.report is not None:
                self.report(done + steps, float(np.max(residuals)))
            leaving = (residuals <= AIM * tol) | descent.stuck() | (done + steps >= limit)
            for k in np.flatnonzero(leaving):
                X[:, int(descent.columns[k])] = descent.lowest[:, int(k)]
            descent.keep(~leaving)
        return X, steps

    def _certificate(
        self, work: LeastSquares, true: Measured, iterations: int, passes: int, reason: str, lengths: Vector
    ) -> Residual:
        A, lam, regular = work.A, work.lam, bool(np.all(work.lam > 0))
        square = work.square + A.offset  # of the numbers that are really multiplied
        spread = np.sqrt(square * work.square)  # of Aᵀ times the rounding of Ax
        noise = np.sqrt(square) * norms(A, true.R) + (spread + lam) * norms(A, true.X)
        return Residual(
            method="CGLS, one pass a step" if work.one_pass else "CGLS, two passes a step",
            reason=reason,
            passes=passes,
            iterations=iterations,
            residuals=true.residuals,
            tolerance=self._tolerance(A),
            rounding=4 * work.eps * (square / work.square if work.square > 0 else 1.0) ** 0.5,
            condition=float(np.max(1.0 + work.square / lam, initial=1.0)) if regular else None,
            error_bounds=lengths * (true.residuals * work.size + 4 * work.eps * noise) / lam if regular else None,
            bounded="‖ŵ − w‖" if regular else "",
        )

    def _warn_unless_converged(self, certificate: Residual) -> None:
        if certificate.converged:
            return
        missed = int(np.count_nonzero(~(certificate.residuals <= certificate.tolerance)))
        what = f"{missed} of {len(certificate.residuals)} right-hand sides have a gradient above the tolerance"
        warnings.warn(
            f"{certificate.method}: {what if missed else 'the products themselves round to more than the tolerance'} "
            f"{certificate.tolerance:.1e}: the largest is {certificate.worst:.1e} of ‖Aᵀb‖, "
            f"{certificate.worst / certificate.tolerance:.1f} times what was asked, after {certificate.iterations} "
            f"iterations. Raise the tolerance or λ, scale the columns, allow more iterations, or use an exact solver.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )


def _checked(A: Operator, B: Array, shifts: Any, start: Array | None) -> Vector:
    """Return λ of each right-hand side, or say what does not fit."""
    if B.ndim != 2 or B.shape[0] != A.shape[0]:
        raise ValueError(
            f"Right-hand sides of an operator of shape {A.shape} have shape ({A.shape[0]}, t), got {tuple(B.shape)}."
        )
    if start is not None and tuple(start.shape) != (A.shape[1], B.shape[1]):
        raise ValueError(f"start must have shape {(A.shape[1], B.shape[1])}, got {tuple(start.shape)}.")
    lam = np.array(np.broadcast_to(np.asarray(shifts, dtype=np.float64), (B.shape[1],)))
    wrong = ~(np.isfinite(lam) & (lam >= 0))
    if wrong.any():
        raise ValueError(f"A shift λ must be a finite number, not negative; got {float(lam[wrong][0])!r}.")
    return lam


def _units(A: Operator, B: Array) -> Vector:
    """Powers of two near the largest number of each column; with columns divided by them no square overflows."""
    largest = small(A.xp.max(A.xp.abs(B), axis=0)) if B.shape[0] else np.zeros(B.shape[1])
    return np.asarray(np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1]), 1.0))
