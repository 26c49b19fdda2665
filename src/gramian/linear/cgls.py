"""Conjugate gradients for regularised least squares: many right-hand sides, each with its own λ, shared products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import to_numpy
from gramian.linear.systems import check_shifts, dots, lengths, take
from gramian.operators.base import Operator
from gramian.results import Residual, Solution

Array = Any
Vector = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]


AIM = 0.5  # of the tolerance: the gradient that is carried along differs a little from the true one
REMEDY = "Raise the tolerance or λ, scale the columns, allow more iterations, or use an exact solver."
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
        warn: bool = True,
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
            columns of A differ much in length; and its sum, no less than ‖A‖², makes the bound a proof.
        reason : str, optional
            Why this method was chosen, for the certificate.
        warn : bool, default=True
            Whether to warn of an unmet tolerance; otherwise the certificate alone says so.

        Returns
        -------
        Solution
            Values of shape (p, t). Where every λ > 0 the certificate bounds ‖ŵ − w‖ by ‖gradient‖/λ, the rounding of
            the products included.
        """
        if B.ndim != 2 or B.shape[0] != A.shape[0]:
            n, given = A.shape[0], tuple(B.shape)
            raise ValueError(f"Right-hand sides of an operator of shape {A.shape} have shape ({n}, t), got {given}.")
        if start is not None and tuple(start.shape) != (A.shape[1], B.shape[1]):
            raise ValueError(f"start must have shape {(A.shape[1], B.shape[1])}, got {tuple(start.shape)}.")
        lam, B, before = check_shifts(shifts, B.shape[1]), A.asarray(B), A.passes
        # powers of two near the largest number of each column: divided by them, no square overflows
        largest = to_numpy(A.xp.max(A.xp.abs(B), axis=0), float) if B.shape[0] else np.zeros(B.shape[1])
        units = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1]), 1.0)
        unit = A.asarray(units)[None, :]
        work = LeastSquares(A, B / unit, lam, diagonal)
        tol = (1e-5 if A.dtype == A.xp.float32 else 1e-10) if self.tol is None else self.tol
        with A.session():
            # steps until the carried gradients are small, then the true ones; again while that brings them down
            true, iterations = work.gradient(None if start is None else A.asarray(start) / unit), 0
            limit = 100 + 10 * min(A.shape) if self.max_iterations is None else self.max_iterations
            todo = ~(true.residuals <= tol)
            while todo.any() and iterations < limit:
                X, iterations = self._descend(work, true, np.flatnonzero(todo), tol, iterations, limit)
                previous, true = true, work.gradient(X)
                todo = ~(true.residuals <= tol) & (true.residuals <= STALLED * previous.residuals)
                true = true.or_better(previous, A)
        regular = bool(np.all(lam > 0))
        # ‖A‖² from above, or, where no diagonal tells, as the directions of the descent have shown it; to the numbers
        # that are really multiplied the offset adds
        norm = work.square if work.diagonal is None else float(np.sum(work.diagonal))
        square = norm + A.offset
        spread = np.sqrt(square * norm)  # of Aᵀ times the rounding of Ax
        noise = np.sqrt(square) * lengths(true.R) + (spread + lam) * lengths(true.X)
        certificate = Residual(
            method="CGLS, one pass a step" if work.one_pass else "CGLS, two passes a step",
            reason=reason,
            passes=A.passes - before,
            iterations=iterations,
            residuals=true.residuals,
            tolerance=tol,
            rounding=4 * work.eps * (1.0 + (A.offset / work.square if work.square > 0 else 0.0)) ** 0.5,
            condition=float(np.max(1.0 + work.square / lam, initial=1.0)) if regular else None,
            error_bounds=units * (true.residuals * work.size + 4 * work.eps * noise) / lam if regular else None,
            bounded="‖ŵ − w‖" if regular else "",
            device=A.device_name,
            precision=A.precision,
        )
        if warn:
            certificate.warn_unless_converged(REMEDY)
        return Solution(true.X * unit, certificate)

    def _descend(
        self, work: LeastSquares, true: Measured, columns: Index, tol: float, done: int, limit: int
    ) -> tuple[Array, int]:
        """Conjugate gradients from the measured state for some columns; each leaves when it is done or stuck."""
        X, descent = true.X + 0.0, Descent(work, true, columns)
        while len(descent.columns):
            descent.step()
            done += 1
            residuals = descent.gradients / work.size[descent.columns]
            if self.report is not None:
                self.report(done, float(np.max(residuals)))
            leaving = (residuals <= AIM * tol) | descent.stuck() | (done >= limit)
            for k in np.flatnonzero(leaving):
                X[:, int(descent.columns[k])] = descent.lowest[:, int(k)]
            descent.keep(~leaving)
        return X, done


@dataclass(frozen=True, eq=False)
class Measured:
    """A solution X with what was measured for it: R = B − AX, G = AᵀR − XΛ and ‖g‖/‖Aᵀb‖ of each column."""

    X: Array
    R: Array
    G: Array
    residuals: Vector

    def or_better(self, other: Measured, A: Operator) -> Measured:
        """Of each column the one with the smaller residual: a gradient may rise before it falls."""
        worse = ~(self.residuals <= other.residuals)
        if not worse.any():
            return self
        old = A.xp.asarray(worse, **A.placement)[None, :]
        pairs = ((self.X, other.X), (self.R, other.R), (self.G, other.G))
        X, R, G = (A.xp.where(old, theirs, ours) for ours, theirs in pairs)
        return Measured(X, R, G, np.where(worse, other.residuals, self.residuals))


class LeastSquares:
    """Columns B with their λ, and what is learnt of A on the way: ‖A‖² from below, and so how a step is made."""

    def __init__(self, A: Operator, B: Array, lam: Vector, diagonal: Any = None) -> None:
        self.A, self.B, self.lam = A, B, lam
        self.eps = A.epsilon
        self.square = 0.0
        self.size: Vector = np.zeros(0)  # ‖Aᵀb‖, known with the first gradient
        self.diagonal = None if diagonal is None else to_numpy(A.asarray(diagonal), float)
        if self.diagonal is not None:  # scaled directions may never see the longest column
            self.learn(self.diagonal)

    def gradient(self, X: Array | None) -> Measured:
        """Measure at X, or at 0 where None is given: two products, or one."""
        A = self.A
        at = A.xp.zeros((A.shape[1], self.B.shape[1]), dtype=A.dtype, **A.placement) if X is None else X
        R = self.B if X is None else self.B - A.matmat(at)
        if not len(self.size):
            return self._measure_start(at, R)
        G = A.rmatmat(R) - A.asarray(self.lam)[None, :] * at
        return Measured(at, R, G, self._relative(G))

    def _measure_start(self, X: Array, R: Array) -> Measured:
        """Measure with Aᵀb beside it; where that is 0 the solution is 0."""
        A, t = self.A, self.B.shape[1]
        both = A.rmatmat(self.B if R is self.B else A.xp.concat([self.B, R], axis=1))
        self.size = lengths(both[:, :t])
        there = A.asarray(self.size > 0)[None, :]
        X, R = X * there, R * there + self.B * (1.0 - there)
        G = both[:, -t:] * there - A.asarray(self.lam)[None, :] * X
        return Measured(X, R, G, self._relative(G))

    def _relative(self, G: Array) -> Vector:
        found = lengths(G)
        return np.divide(found, self.size, out=np.zeros_like(found), where=self.size != 0)

    def learn(self, squares: Vector) -> None:
        """‖Ap‖²/‖p‖² of some directions p: ‖A‖² is no less."""
        self.square = max(self.square, float(np.max(squares, initial=0.0)))

    @property
    def one_pass(self) -> bool:
        """Whether pᵀ(AᵀA + λ)p keeps half its digits when it is computed from AᵀAp."""
        least = float(np.min(self.lam, initial=np.inf))
        return self.square > 0 and self.square + self.A.offset <= least / self.eps**0.5

    def scale_steps(self, columns: Index) -> Array | None:
        """1/(diagonal + λ) for these columns, the largest being 1; all 1 where λ = 0, for a solution of least norm."""
        if self.diagonal is None:
            return None
        lam = self.lam[None, columns]
        total = np.where(lam > 0, self.diagonal[:, None] + lam, 1.0)
        return self.A.asarray(np.min(total, axis=0, initial=np.inf) / total)


class Descent:
    """Some of the columns on their way down; G is the gradient carried along, ``lowest`` the X where it was least."""

    def __init__(self, problem: LeastSquares, at: Measured, columns: Index) -> None:
        self.problem, self.A, self.columns = problem, problem.A, columns
        self.X, self.R, self.G = (take(Y, columns) for Y in (at.X, at.R, at.G))
        self.scale = problem.scale_steps(columns)
        self.P = self._scale_steps(self.G)
        self.slope = dots(self.G, self.P)
        self.gradients = lengths(self.G)
        self.best, self.since, self.lowest = self.gradients, np.zeros(len(columns)), self.X
        self.broken = np.zeros(len(columns), dtype=bool)
        self.fused = problem.one_pass

    def step(self) -> None:
        """x ← x + αp, the gradient g there, and p ← Mg + βp with M the scaling."""
        before, lam, length = self.slope, self.problem.lam[self.columns], dots(self.P, self.P)
        if self.fused:  # one pass: AᵀAp at once, by which the gradient is updated
            Q = self.A.normal(self.P) + self._row(lam) * self.P
            curve = dots(self.P, Q)
            self.problem.learn(_ratio(curve, length) - lam)
            alpha = self._row(_ratio(before, curve))
            self.X, self.G = self.X + alpha * self.P, self.G - alpha * Q
        else:  # two: Ap, by which the residual is updated, and the gradient from that
            Q = self.A.matmat(self.P)
            square = dots(Q, Q)
            self.problem.learn(_ratio(square, length))
            curve = square + lam * length
            alpha = self._row(_ratio(before, curve))
            self.X, self.R = self.X + alpha * self.P, self.R - alpha * Q
            self.G = self.A.rmatmat(self.R) - self._row(lam) * self.X
        self.broken = ~(curve > 0)
        self.fused = self.fused or self.problem.one_pass  # never back: the residual is then no longer carried along
        Z = self._scale_steps(self.G)
        self.slope, gradients = dots(self.G, Z), lengths(self.G)
        self.P = Z + self._row(_ratio(self.slope, before)) * self.P
        better = gradients < self.best
        where = self.A.xp.asarray(better, **self.A.placement)[None, :]
        self.lowest = self.X if better.all() else self.A.xp.where(where, self.X, self.lowest)
        self.since = np.where(better, 0.0, self.since + 1.0)
        self.best, self.gradients = np.fmin(self.best, gradients), gradients

    def stuck(self) -> Mask:
        """Columns that cannot go on, or have not improved for as long as conjugate gradients may take."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.sqrt(1.0 + self.problem.square / self.problem.lam[self.columns])
        patience = 20 + np.fmin(4 * min(self.A.shape), 10 * rate)
        return np.asarray(self.broken | (self.since > patience) | ~np.isfinite(self.gradients))

    def keep(self, chosen: Mask) -> None:
        """Go on with some of the columns."""
        if chosen.all():
            return
        index = np.flatnonzero(chosen)
        at_work = (self.X, self.R, self.G, self.P, self.lowest)
        self.X, self.R, self.G, self.P, self.lowest = (take(Y, index) for Y in at_work)
        self.scale = None if self.scale is None else take(self.scale, index)
        self.columns, self.slope, self.gradients = self.columns[index], self.slope[index], self.gradients[index]
        self.best, self.since = self.best[index], self.since[index]

    def _row(self, x: Vector) -> Array:
        return self.A.asarray(x)[None, :]

    def _scale_steps(self, G: Array) -> Array:
        return G if self.scale is None else self.scale * G


def _ratio(a: Vector, b: Vector) -> Vector:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
