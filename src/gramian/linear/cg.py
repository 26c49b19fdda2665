r"""Conjugate gradients for many systems (A + λ_jI)x_j = b_j at once: one product with A for all of them a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like, to_numpy
from gramian.linear.preconditioners import Nystrom, costs_of, factor_bytes, first_rank, largest_rank, pays_to_double
from gramian.linear.systems import System, copy_of, dots, lengths, put, take
from gramian.operators.base import Operator
from gramian.results import Residual, Solution

Array = Any  # columns in NumPy, or on the device of the operator: where the system keeps its right-hand sides
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Preconditioner = Callable[[Array, Index], Array]

NARROW_DROP = 1e-3  # what a cycle in float32 may leave of a residual before it is measured again in float64
DROP = 1e-9  # ... and one in float64
AIM = 0.5  # of the tolerance, for the residual that is carried along: it is a little kinder than the true one
USELESS = 0.5  # a cycle that leaves more than this of a residual has not earned another of its kind
LOOK = 5  # iterations between two looks at the rate
SLOWEST = 0.98  # rate that is believed: the residuals of conjugate gradients rise at times
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
    each column; where they would take more than a quarter of it they are NumPy's, and only blocks of them travel.

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
        for n = 50,000, or half of the device.

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
        warn: bool = True,
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
        warn : bool, default=True
            Whether to warn of an unmet tolerance; otherwise the certificate alone says so.

        Returns
        -------
        Solution
            Values of the shape of B; ``certificate.notes`` has the rank of the preconditioner.
        """
        system = System(A, B, shifts, twin, on_device=True)
        limit = min(DEFAULT_LIMIT, 10 * A.shape[0]) if self.max_iterations is None else self.max_iterations
        most = largest_rank(A.shape[0], factor_bytes(A)) if self.max_rank is None else self.max_rank
        run = _Run(system, self.tol, limit, self.report, preconditioner, start, grow, most)
        while len(run.unsolved) and run.iterations < limit and not run.stuck:
            with A.session():
                run.descend()
            if run.wants_more:
                run.enlarge()
        method = "conjugate gradients" if run.M is None else "preconditioned conjugate gradients"
        notes = [f"preconditioner of rank {run.M.rank}"] if isinstance(run.M, Nystrom) else []
        if twin is not None:
            first, last = (str(K.xp.finfo(K.dtype).dtype) for K in (twin, A))
            method += f", products in {first}"
            how = "" if run.narrow else f"; {first} was not enough and {last} took over"
            notes.append(f"residuals measured {run.replaced} times in {last}{how}")
        certificate = Residual(
            method=method,
            reason=reason,
            passes=system.passes,
            iterations=run.iterations,
            residuals=run.true,
            tolerance=self.tol,
            rounding=system.rounding(run.X),
            device=A.device_name,
            precision=system.precision,
            notes=tuple(notes),
        )
        why = f"max_iterations={limit} was reached" if run.iterations >= limit else "Rounding allows no less"
        if warn:
            certificate.warn_unless_converged(
                f"{why}: use a larger shift (alpha), a preconditioner of higher rank, more iterations, a larger "
                "tolerance, or a factorisation."
            )
        return Solution(system.values(run.X), certificate)


class _Run:
    """One call of the solver: x, the residuals as they are carried along, and the directions."""

    def __init__(
        self,
        system: System,
        tol: float,
        limit: int,
        report: Callable[[int, float], None] | None,
        preconditioner: Preconditioner | None,
        start: Any,
        grow: Callable[[int], Array] | None,
        most: int,
    ) -> None:
        self.system, self.tol, self.limit, self.report = system, tol, limit, report
        self.M, self.most, self.grow = preconditioner, 0, None
        self.iterations, self.replaced, self.narrow = 0, 0, system.twin is not None
        self.wants_more, self.stuck = False, False
        self.costs = costs_of(system.A if system.twin is None else system.twin)
        self.X: Array = 0.0 * system.B
        self.R, self.true = copy_of(system.B), (system.lengths > 0).astype(np.float64)
        if start is not None:
            self._start_at(to_numpy(start, float))
        self.P = 0.0 * system.B
        self.size = self.true.copy()  # of the residuals as they are carried along
        if grow is not None and self.M is None and np.all(system.lam > 0) and len(self.unsolved):
            n = system.A.shape[0]
            self.grow, self.most = grow, min(n, most)
            rank = first_rank(n, costs=self.costs)
            self.M = Nystrom(grow(min(rank, self.most)), system.lam, quiet=system.A.session)
        self._restart(self.unsolved)

    def _start_at(self, X: Any) -> None:
        X = X[:, None] if self.system.vector and X.ndim == 1 else X
        if X.shape != tuple(self.X.shape):
            raise ValueError(
                f"start must have the shape of the right-hand sides, {tuple(self.X.shape)}; got {X.shape}."
            )
        given = self.system.lengths
        X = like(self.X, np.where(given > 0, X, 0.0) / np.where(given > 0, given, 1.0), float)
        R = self.system.residual(X, np.arange(X.shape[1]))
        sizes = lengths(R)
        better = np.flatnonzero(sizes < self.true)  # a start worse than 0 is none
        put(self.X, better, take(X, better))
        put(self.R, better, take(R, better))
        self.true[better] = sizes[better]

    @property
    def unsolved(self) -> Index:
        """Columns whose true residual does not meet the tolerance."""
        return np.flatnonzero(~(self.true <= self.tol))

    def _solve(self, R: Array, columns: Index) -> Array:
        return R if self.M is None else self.M(R, columns)

    def _restart(self, columns: Index) -> None:
        """Directions of steepest descent: nothing of earlier ones is kept."""
        if len(columns):
            put(self.P, columns, self._solve(take(self.R, columns), columns))

    def descend(self) -> None:
        """A cycle: steps until every column has come down to its goal, then the true residuals of all of them."""
        columns, before, X = self.unsolved, self.true.copy(), copy_of(self.X)
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
                self._enlarge_if_it_pays(active, started, self.iterations - since)
        if not self.wants_more:
            self._measure(columns, before, X)

    def _step(self, active: Index) -> Mask:
        """x ← x + αp, r ← r − α(A+λI)p, p ← M⁻¹r + βp; False where a direction has no curvature to speak of."""
        P, R = take(self.P, active), take(self.R, active)
        Q = self.system.product(P, active, self.narrow)
        curve, length = dots(P, Q), dots(P, P)
        system = self.system
        noise = 8 * system.eps * (system.norm + system.lam[active]) * length
        good, negative = np.asarray(curve > noise), np.flatnonzero(curve < -noise)
        if len(negative) and not self.narrow:  # beyond rounding in float64
            j = int(negative[0])
            lam, quotient = system.lam[active[j]], curve[j] / length[j]
            raise np.linalg.LinAlgError(
                f"A + {lam:g} I is not positive definite: a direction of negative curvature, pᵀ(A + λI)p = "
                f"{quotient:.3g} ‖p‖², shows that A has an eigenvalue of at most {quotient - lam:.3g}. Use a positive "
                "semidefinite kernel, or a larger shift (alpha)."
            )
        self.iterations += 1
        alpha = np.divide(dots(P, R), curve, out=np.zeros_like(curve), where=good)
        put(self.X, active, take(self.X, active) + like(P, alpha, float) * P)
        R = R - like(P, alpha, float) * Q
        Z = self._solve(R, active)
        beta = np.divide(-dots(Z, Q), curve, out=np.zeros_like(curve), where=good)
        put(self.P, active, Z + like(P, beta, float) * P)
        put(self.R, active, R)
        self.size[active] = lengths(R)
        return good

    def _measure(self, columns: Index, before: Vector, X: Array) -> None:
        """Replace the residuals by the true ones; where a cycle did harm, undo it; where little good, go to A."""
        R = self.system.residual(take(self.X, columns), columns)
        sizes, gap = lengths(R), lengths(R - take(self.R, columns))
        self.replaced += 1
        worse = columns[sizes > before[columns]]
        put(self.R, columns, R)
        self.true[columns] = sizes
        if len(worse):
            old = take(X, worse)
            put(self.X, worse, old)
            put(self.R, worse, self.system.residual(old, worse))
            self.true[worse] = before[worse]
        self.size[columns] = self.true[columns]
        slow = (sizes > USELESS * before[columns]) & (sizes > self.tol)
        if slow.any() and self.iterations < self.limit:
            self.stuck = not self.narrow and bool(np.all(slow | (sizes <= self.tol)))
            self.narrow = False
        self._restart(columns[(gap > USELESS * sizes) | slow])

    def _enlarge_if_it_pays(self, active: Index, started: Vector, steps: int) -> None:
        """Ask for a larger factor where the rate of the slowest column says that it pays."""
        if self.grow is None or not isinstance(self.M, Nystrom) or self.M.rank >= self.most:
            return
        rates = np.minimum((self.size[active] / started[active]) ** (1.0 / steps), SLOWEST)
        left = np.log(AIM * self.tol / self.size[active]) / np.log(rates)
        slowest = int(np.argmax(left))
        n, rate, steps_left = self.system.A.shape[0], float(rates[slowest]), float(left[slowest])
        self.wants_more = pays_to_double(n, self.M.values, rate, steps_left, self.most, self.costs)

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
        self._restart(self.unsolved)
