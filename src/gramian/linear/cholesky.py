r"""Cholesky factorisation of A + λI in half a matrix of memory, and refinement to float64 from a float32 factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from gramian.linear.systems import System
from gramian.operators.base import Capability, Operator
from gramian.results import NumericalWarning, Residual, Solution

__all__ = ["Cholesky"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

PRECISIONS = ("auto", "float32", "float64")
CONTRACTS = 0.5  # a step of refinement that leaves more of the residual than this is not worth another
POWER_STEPS = 3  # products and solutions at least, for the two norms of the condition number
REMEDY = "Use a larger shift (alpha)"


@dataclass(frozen=True)
class Cholesky:
    r"""Solve (A + λI)X = B for a symmetric positive semidefinite A by one factorisation.

    One triangle of A + λI is written once, in LAPACK's packed rectangles (n²/2 numbers), and factored in place: in
    float32, which takes half the time and memory of float64. The factor then serves to correct the solution,

    .. math:: x \leftarrow x + (LL^T)^{-1}\big(b - (A+\lambda I)x\big),

    with residuals in float64 from A itself, until ‖b − (A+λI)x‖ ≤ tol‖b‖. Each step takes out all but a share κε of
    the error, with κ the condition number and ε = 6e-8 (Higham, 2002, chapter 12). Where float32 does not see that A +
    λI is positive definite, or a step takes out less than half, the same is done with a factor in float64.

    An operator on a device makes its factor there (``A.device_factor``), in float64 unless asked otherwise:
    the cards this is for multiply matrices in float64 as fast as in float32.

    Parameters
    ----------
    tol : float, default=1e-10
        Relative residual to reach.
    precision : {"auto", "float32", "float64"}, default="auto"
        Of the factor. "auto" is float32, then float64 where that is not good enough; float64 at once for λ = 0 and
        on a device.
    max_refinements : int, default=10
        Steps of refinement at most, for each factor.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.cholesky import Cholesky
    >>> from gramian.operators import Data
    >>> found = Cholesky()(Data(np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([[5.0], [4.0]]), 1.0)
    >>> found.values.round(12).ravel().tolist(), found.certificate.converged
    ([1.375, 0.875], True)
    """

    tol: float = 1e-10
    precision: str = "auto"
    max_refinements: int = 10

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}; got {self.precision!r}.")

    @staticmethod
    def memory(n: int, precision: str = "auto") -> int:
        """Bytes that a system of n rows takes at most: one triangle, in float64 unless float32 is asked for.

        Examples
        --------
        >>> from gramian.linear.cholesky import Cholesky
        >>> Cholesky.memory(20_000, "float32") / 2**20 < 800
        True
        """
        return n * (n + 1) // 2 * (4 if precision == "float32" else 8) + 64 * n

    def __call__(self, A: Operator, B: Any, shift: float, *, reason: str = "asked for") -> Solution:
        """Return the solution with its residuals; a LinAlgError says that A + λI is not positive definite."""
        system = System(A, B, float(shift))
        X, done, method = np.zeros_like(system.B), _Refined(system.B, system.lengths, 0, None), ""
        for dtype in self._order(float(shift), Capability.FACTOR in A.capabilities):
            last = dtype == "float64" or self.precision == "float32"
            factor = _factor_of(A, float(shift), dtype, last)
            if factor is None:
                continue
            done = _refined(system, factor, X, self.tol, self.max_refinements)
            X = done.X
            method = f"Cholesky factor in {dtype}, {done.steps} steps of refinement"
            if done.met(self.tol):
                break
        return self._solution(system, done, method, reason)

    def _order(self, shift: float, on_device: bool) -> tuple[str, ...]:
        if self.precision != "auto":
            return (self.precision,)
        return ("float32", "float64") if shift > 0 and not on_device else ("float64",)

    def _solution(self, system: System, done: _Refined, method: str, reason: str) -> Solution:
        certificate = Residual(
            method=method,
            reason=reason,
            passes=system.passes,
            iterations=done.steps,
            residuals=done.residuals,
            tolerance=self.tol,
            rounding=system.rounding(done.X),
            condition=done.condition,
            device=system.A.device_name,
            precision=system.precision,
        )
        more = ", or precision='float64'" if self.precision == "float32" else ""
        remedy = f"The condition number is about {done.condition:.1e}. {REMEDY}, or a larger tolerance{more}."
        certificate.warn_unless_converged(remedy, NumericalWarning)
        return Solution(system.values(done.X), certificate)


class Factor(Protocol):
    """What refinement asks of a factor."""

    def solve(self, R: Matrix) -> Matrix:
        """(LLᵀ)⁻¹R."""
        ...


def _factor_of(A: Operator, shift: float, dtype: str, last: bool) -> Factor | None:
    """Factor A + λI where it lives; None where this dtype fails and another is to come."""
    if Capability.FACTOR not in A.capabilities:
        return _Factor.of(A, shift, dtype, last)
    try:
        found: Factor = A.device_factor(shift, dtype)
    except np.linalg.LinAlgError as error:
        if not last:
            return None
        minor, size = getattr(error, "minor", 0), getattr(error, "size", 0.0)
        raise np.linalg.LinAlgError(_not_definite(A.shape[0], minor, shift, dtype, size)) from error
    return found


class _Factor:
    """L of A + λI = LLᵀ in packed rectangles."""

    def __init__(self, n: int, L: Any) -> None:
        self.n, self.L, self.dtype = n, L, L.dtype
        self._solve = lapack.spftrs if L.dtype == np.float32 else lapack.dpftrs

    @classmethod
    def of(cls, A: Operator, shift: float, dtype: str, last: bool) -> _Factor | None:
        """Factor A + λI in place; None where this dtype fails and another is to come."""
        n, P = A.shape[0], A.packed_triangle(np.dtype(dtype))
        size = _add_to_diagonal(P, n, shift)
        if not n:
            return cls(0, P)
        L, info = (lapack.spftrf if dtype == "float32" else lapack.dpftrf)(n, P, transr="N", uplo="L", overwrite_a=1)
        if info == 0 and np.isfinite(L[-1]):
            return cls(n, L)
        if not last:
            return None
        raise np.linalg.LinAlgError(_not_definite(n, info, shift, dtype, size))

    def solve(self, R: Matrix) -> Matrix:
        """(LLᵀ)⁻¹R, each column brought to unit length first."""
        lengths = np.linalg.norm(R, axis=0)
        R = R / np.where(lengths > 0, lengths, 1.0)
        if not self.n or not R.shape[1]:
            return R
        X = self._solve(self.n, self.L, np.asfortranarray(R, dtype=self.dtype), transr="N", uplo="L", overwrite_b=1)[0]
        return np.asarray(X.astype(np.float64) * lengths)


def _add_to_diagonal(P: Any, n: int, shift: float) -> float:
    """Add λ to the 2 pieces of the diagonal, and return its largest entry."""
    half, even = (n + 1) // 2, 1 - n % 2
    C, i = P.reshape(half, n + even), np.arange(half)
    C[i, i + even] += P.dtype.type(shift)
    j = np.arange(n - half)
    C[j + 1 - even, j] += P.dtype.type(shift)
    return float(max(np.max(np.abs(C[i, i + even]), initial=0.0), np.max(np.abs(C[j + 1 - even, j]), initial=0.0)))


def _not_definite(n: int, info: int, shift: float, dtype: str, size: float) -> str:
    """Say whether a negative eigenvalue or rounding is to blame."""
    noise = n * float(np.finfo(dtype).eps) * size
    head = f"A + {shift:g} I of {n} rows is not positive definite in {dtype} (leading minor {info})"
    if shift > noise:
        return f"{head}: A has a negative eigenvalue below {noise - shift:.3g}. Use a positive semidefinite kernel."
    return (
        f"{head}: the shift is not above the rounding of the factorisation, up to {noise:.1e}, and A is singular or "
        f"has a negative eigenvalue. {REMEDY}, or an eigendecomposition, which tells the rank."
    )


@dataclass(frozen=True, eq=False)
class _Refined:
    """Where refinement ended: x, residuals, steps, and the condition number."""

    X: Matrix
    residuals: Vector
    steps: int
    condition: float | None

    def met(self, tol: float) -> bool:
        return bool(np.all(self.residuals <= tol))


def _refined(system: System, factor: Factor, X: Matrix, tol: float, limit: int) -> _Refined:
    """Correct X until its residual meets tol, or a step no longer halves it.

    A column more in every product and solution is a step of the power method for ‖A‖ and ‖(A+λI)⁻¹‖: all but free.
    """
    condition = _Condition(system, factor)
    R, best = system.B, np.where(system.lengths > 0, np.inf, 0.0)
    steps, open_ = 0, np.flatnonzero(system.lengths > 0)
    if np.any(X):
        R = system.residual(X, np.arange(X.shape[1]))
        best = np.linalg.norm(R, axis=0)
    X, R = X.copy(), R.copy()
    while len(open_) and steps <= limit:
        trial = X[:, open_] + condition.solve(R[:, open_])
        new = system.B[:, open_] - condition.product(trial, open_)
        size = np.linalg.norm(new, axis=0)
        better = size < best[open_]
        some = open_[better]
        X[:, some], R[:, some] = trial[:, better], new[:, better]
        going = (size > tol) & (size <= CONTRACTS * best[open_])
        best[some] = size[better]
        open_, steps = open_[going], steps + 1
    return _Refined(X, best, max(0, steps - 1), condition.finish())


class _Condition:
    """‖A + λI‖ and ‖(A + λI)⁻¹‖ by the power method, riding on the products and solutions of the refinement."""

    def __init__(self, system: System, factor: Factor) -> None:
        self.system, self.factor = system, factor
        self.up, self.down = np.random.default_rng(0).standard_normal((2, system.A.shape[0], 1))
        self.norm, self.inverse, self.products, self.solutions = 0.0, 0.0, 0, 0

    def product(self, V: Matrix, columns: Any) -> Matrix:
        """(A + λI)V, and a step of the power method."""
        v = self.up / max(float(np.linalg.norm(self.up)), np.finfo(float).tiny)
        Y = self.system.product(np.column_stack([V, v]), np.append(columns, 0))
        self.up, self.products = Y[:, -1:], self.products + 1
        if self.products == 1 and self.system.column is None:  # of a random direction
            self.system.column = float(np.linalg.norm(self.up))
        self.norm = max(self.norm, float(np.linalg.norm(self.up)))
        return Y[:, :-1]

    def solve(self, R: Matrix) -> Matrix:
        """(A + λI)⁻¹R, and a step of the power method."""
        v = self.down / max(float(np.linalg.norm(self.down)), np.finfo(float).tiny)
        X = self.factor.solve(np.column_stack([R, v]))
        self.down, self.solutions = X[:, -1:], self.solutions + 1
        self.inverse = max(self.inverse, float(np.linalg.norm(self.down)))
        return X[:, :-1]

    def finish(self) -> float | None:
        """Make up for steps that were not needed otherwise."""
        n = self.system.A.shape[0]
        if not n:
            return None
        for _ in range(POWER_STEPS - self.products):
            self.product(np.empty((n, 0)), np.empty(0, dtype=np.intp))
        for _ in range(POWER_STEPS - self.solutions):
            self.solve(np.empty((n, 0)))
        return max(1.0, self.norm * self.inverse)
