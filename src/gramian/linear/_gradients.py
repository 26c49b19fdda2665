"""The steps of conjugate gradients for many columns at once, in cycles that end with a true residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.linear._system import System
from gramian.linear.preconditioners import Nystrom, first_rank, pays_to_double

__all__ = ["Preconditioner", "Run"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Preconditioner = Callable[[Matrix, Index], Matrix]

NARROW_DROP = 1e-3  # what a cycle in float32 may leave of a residual before it is measured again in float64
DROP = 1e-9  # ... and one in float64
AIM = 0.5  # of the tolerance, for the residual that is carried along: it is a little kinder than the true one
USELESS = 0.5  # a cycle that leaves more than this of a residual has not earned another of its kind
LOOK = 5  # iterations between two looks at the rate
SLOWEST = 0.98  # rate that is believed: the residuals of conjugate gradients rise at times


class Run:
    """One call of the solver: x, the residuals as they are carried along, and the directions."""

    def __init__(
        self,
        system: System,
        tol: float,
        limit: int,
        report: Callable[[int, float], None] | None,
        preconditioner: Preconditioner | None,
    ) -> None:
        self.system, self.tol, self.limit, self.report = system, tol, limit, report
        self.M, self.most = preconditioner, 0
        self.grow: Callable[[int], Matrix] | None = None
        self.iterations, self.replaced, self.narrow = 0, 0, system.twin is not None
        self.wants_more, self.stuck = False, False

    def begin(self, start: Any, grow: Callable[[int], Matrix] | None, most: int) -> None:
        """x, its true residual, the first factor and the first directions."""
        system, n = self.system, self.system.A.shape[0]
        self.X: Matrix = np.zeros_like(system.B)
        self.R, self.true = system.B.copy(), (system.lengths > 0).astype(np.float64)
        if start is not None:
            self._start_at(np.asarray(start, dtype=np.float64))
        self.P = np.zeros_like(self.X)
        self.size = self.true.copy()  # of the residuals as they are carried along
        if grow is not None and self.M is None and np.all(system.lam > 0) and len(self._open()):
            self.grow, self.most = grow, min(n, most)
            self.M = Nystrom(grow(min(first_rank(n), self.most)), system.lam, quiet=system.A.session)
        self._restart(self._open())

    def _start_at(self, X: Matrix) -> None:
        X = X[:, None] if self.system.vector and X.ndim == 1 else X
        if X.shape != self.X.shape:
            raise ValueError(f"start must have the shape of the right-hand sides, {self.X.shape}; got {X.shape}.")
        lengths = self.system.lengths
        X = np.where(lengths > 0, X, 0.0) / np.where(lengths > 0, lengths, 1.0)
        R = self.system.residual(X, np.arange(X.shape[1]))
        sizes = np.linalg.norm(R, axis=0)
        better = sizes < self.true  # a start worse than 0 is none
        self.X[:, better], self.R[:, better], self.true[better] = X[:, better], R[:, better], sizes[better]

    def _open(self) -> Index:
        return np.flatnonzero(~(self.true <= self.tol))

    @property
    def going(self) -> bool:
        return bool(len(self._open())) and self.iterations < self.limit and not self.stuck

    def _solve(self, R: Matrix, columns: Index) -> Matrix:
        return R if self.M is None else self.M(R, columns)

    def _restart(self, columns: Index) -> None:
        """Directions of steepest descent: nothing of earlier ones is kept."""
        if len(columns):
            self.P[:, columns] = self._solve(self.R[:, columns], columns)

    def descend(self) -> None:
        """A cycle: steps until every column has come down to its goal, then the true residuals of all of them."""
        columns, before, X = self._open(), self.true.copy(), self.X.copy()
        drop = NARROW_DROP if self.narrow else DROP
        goals = np.maximum(AIM * self.tol, drop * before)
        active, since, self.wants_more = columns, self.iterations, False
        started = self.size.copy()
        while len(active) and self.iterations < self.limit and not self.wants_more:
            whole = self._step(active)
            active = active[whole & (self.size[active] > goals[active])]
            if self.report is not None:
                self.report(self.iterations, float(np.max(self.size[columns])))
            if len(active) and (self.iterations - since) % LOOK == 0:
                self._look(active, started, self.iterations - since)
        if not self.wants_more:
            self._measure(columns, before, X)

    def _step(self, active: Index) -> Mask:
        """x ← x + αp, r ← r − α(A+λI)p, p ← M⁻¹r + βp; False where a direction has no curvature to speak of."""
        P, R = self.P[:, active], self.R[:, active]
        Q = self.system.product(P, active, self.narrow)
        curve, length = np.sum(P * Q, axis=0), np.sum(P * P, axis=0)
        good = self._curved(curve, length, active)
        self.iterations += 1
        alpha = np.divide(np.sum(P * R, axis=0), curve, out=np.zeros_like(curve), where=good)
        self.X[:, active] += alpha * P
        R = R - alpha * Q
        Z = self._solve(R, active)
        beta = np.divide(-np.sum(Z * Q, axis=0), curve, out=np.zeros_like(curve), where=good)
        self.P[:, active], self.R[:, active] = Z + beta * P, R
        self.size[active] = np.linalg.norm(R, axis=0)
        return good

    def _curved(self, curve: Vector, length: Vector, active: Index) -> Mask:
        """Whether pᵀ(A+λI)p is positive; an error where it is negative beyond rounding in float64."""
        system = self.system
        noise = 8 * system.eps * (system.norm + system.lam[active]) * length
        negative = np.flatnonzero(curve < -noise)
        if len(negative) and not self.narrow:
            j = int(negative[0])
            lam, quotient = system.lam[active[j]], curve[j] / length[j]
            raise np.linalg.LinAlgError(
                f"A + {lam:g} I is not positive definite: a direction of negative curvature, pᵀ(A + λI)p = "
                f"{quotient:.3g} ‖p‖², shows that A has an eigenvalue of at most {quotient - lam:.3g}. Use a positive "
                "semidefinite kernel, or a larger shift (alpha)."
            )
        return np.asarray(curve > noise)

    def _measure(self, columns: Index, before: Vector, X: Matrix) -> None:
        """Replace the residuals by the true ones; where a cycle did harm, undo it; where little good, go to A."""
        R = self.system.residual(self.X[:, columns], columns)
        sizes, gap = np.linalg.norm(R, axis=0), np.linalg.norm(R - self.R[:, columns], axis=0)
        self.replaced += 1
        worse = columns[sizes > before[columns]]
        self.R[:, columns], self.true[columns] = R, sizes
        if len(worse):
            self.X[:, worse] = X[:, worse]
            self.R[:, worse] = self.system.residual(X[:, worse], worse)
            self.true[worse] = before[worse]
        self.size[columns] = self.true[columns]
        slow = (sizes > USELESS * before[columns]) & (sizes > self.tol)
        if slow.any() and self.iterations < self.limit:
            self.stuck = not self.narrow and bool(np.all(slow | (sizes <= self.tol)))
            self.narrow = False
        self._restart(columns[(gap > USELESS * sizes) | slow])

    def _look(self, active: Index, started: Vector, steps: int) -> None:
        """Ask for a larger factor where the rate of the slowest column says that it pays."""
        if self.grow is None or not isinstance(self.M, Nystrom) or self.M.rank >= self.most:
            return
        rates = np.minimum((self.size[active] / started[active]) ** (1.0 / steps), SLOWEST)
        left = np.log(AIM * self.tol / self.size[active]) / np.log(rates)
        slowest = int(np.argmax(left))
        self.wants_more = pays_to_double(
            self.system.A.shape[0], self.M.values, float(rates[slowest]), float(left[slowest]), self.most
        )

    def enlarge(self) -> None:
        """Twice the rank, and steepest descent from here; outside the session, with all BLAS threads."""
        self.wants_more = False
        if self.grow is None or not isinstance(self.M, Nystrom):
            return
        had, asked = self.M.rank, min(2 * self.M.rank, self.most)
        self.M = None  # its memory first
        F = self.grow(asked)
        self.grow = None if F.shape[1] < asked or F.shape[1] <= had else self.grow
        self.M = Nystrom(F, self.system.lam, quiet=self.system.A.session)
        self._restart(self._open())

    def notes(self) -> tuple[str, ...]:
        """What the certificate says beside its figures."""
        rank = (f"preconditioner of rank {self.M.rank}",) if isinstance(self.M, Nystrom) else ()
        if self.system.twin is None:
            return rank
        how = "" if self.narrow else "; float32 was not enough and float64 took over"
        return (*rank, f"residuals measured {self.replaced} times in float64{how}")
