r"""Cholesky factorisation of A + λI in half a matrix of memory, and refinement to float64 from a float32 factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from gramian.compute.factor import factorise_packed
from gramian.linear.systems import System
from gramian.operators.base import Capability, DeviceFactor, Operator
from gramian.results import NumericalWarning, Residual, Solution

Array = npt.NDArray[np.float64]

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
    the GPUs this is for multiply matrices in float64 as fast as in float32.

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

    def __call__(self, A: Operator, B: Any, shift: float, *, reason: str = "asked for", warn: bool = True) -> Solution:
        """Return the solution with its residuals; a LinAlgError says that A + λI is not positive definite.

        With ``warn=False`` an unmet tolerance is in the certificate alone.
        """
        with A.session():  # the factor and the products are shared between cores by themselves
            return self._solve(A, B, float(shift), reason, warn)

    def _solve(self, A: Operator, B: Any, shift: float, reason: str, warn: bool) -> Solution:
        system = System(A, B, shift)
        on_device = Capability.FACTOR in A.capabilities
        tried = ("float32", "float64") if shift > 0 and not on_device else ("float64",)
        tried = tried if self.precision == "auto" else (self.precision,)
        X, residuals, steps, condition, method = np.zeros_like(system.B), system.lengths, 0, None, ""
        for dtype in tried:
            try:
                factor = A.device_factor(shift, dtype) if on_device else HostFactor(A, shift, dtype)
            except np.linalg.LinAlgError as error:
                if dtype != tried[-1]:
                    continue
                raise np.linalg.LinAlgError(_explain_failure(A.shape[0], shift, dtype, error)) from error
            X, residuals, steps, condition = _refine(system, factor, X, self.tol, self.max_refinements)
            method = f"Cholesky factor in {dtype}, {steps} steps of refinement"
            if np.all(residuals <= self.tol):
                break
        certificate = Residual(
            method=method,
            reason=reason,
            passes=system.passes,
            iterations=steps,
            residuals=residuals,
            tolerance=self.tol,
            rounding=system.rounding(X),
            condition=condition,
            device=A.device_name,
            precision=system.precision,
        )
        more = ", or precision='float64'" if self.precision == "float32" else ""
        remedy = f"The condition number is about {condition or 1.0:.1e}. {REMEDY}, or a larger tolerance{more}."
        if warn:
            certificate.warn_unless_converged(remedy, NumericalWarning)
        return Solution(system.values(X), certificate)


class NotDefinite(np.linalg.LinAlgError):
    """A leading minor of a matrix is not positive; ``size`` is the largest entry of its diagonal."""

    def __init__(self, minor: int, size: float) -> None:
        super().__init__(f"leading minor {minor} is not positive")
        self.minor, self.size = minor, size


class HostFactor:
    """L of A + λI = LLᵀ in LAPACK's packed rectangles, half a matrix in NumPy."""

    def __init__(self, A: Operator, shift: float, dtype: str) -> None:
        self.n, L = A.shape[0], A.packed_triangle(np.dtype(dtype))
        half, even = (self.n + 1) // 2, 1 - self.n % 2
        C, i, j = L.reshape(half, self.n + even), np.arange(half), np.arange(self.n - half)
        for piece in ((i, i + even), (j + 1 - even, j)):  # the diagonal is in two pieces
            C[piece] += L.dtype.type(shift)
        size = max(float(np.max(np.abs(C[piece]), initial=0.0)) for piece in ((i, i + even), (j + 1 - even, j)))
        single = dtype == "float32"
        if self.n:
            minor = factorise_packed(L, self.n)
            if minor != 0 or not np.isfinite(L[-1]):
                raise NotDefinite(minor, size)
        self.L, self._solve = L, lapack.spftrs if single else lapack.dpftrs

    def solve(self, R: Array) -> Array:
        """(LLᵀ)⁻¹R, each column brought to unit length first: float32 has few exponents."""
        size = np.linalg.norm(R, axis=0)
        if not R.size:
            return R
        R = np.asfortranarray(R / np.where(size > 0, size, 1.0), dtype=self.L.dtype)
        X = self._solve(self.n, self.L, R, transr="N", uplo="L", overwrite_b=1)[0]
        return np.asarray(X.astype(np.float64) * size)


def _explain_failure(n: int, shift: float, dtype: str, error: Any) -> str:
    """Say whether a negative eigenvalue or rounding is to blame."""
    noise = n * float(np.finfo(dtype).eps) * error.size
    head = f"A + {shift:g} I of {n} rows is not positive definite in {dtype} (leading minor {error.minor})"
    if shift > noise:
        return f"{head}: A has a negative eigenvalue below {noise - shift:.3g}. Use a positive semidefinite kernel."
    return (
        f"{head}: the shift is not above the rounding of the factorisation, up to {noise:.1e}, and A is singular or "
        f"has a negative eigenvalue. {REMEDY}, or an eigendecomposition, which tells the rank."
    )


def _refine(
    system: System, factor: HostFactor | DeviceFactor, X: Array, tol: float, limit: int
) -> tuple[Array, Array, int, float | None]:
    """Correct X until its residual meets tol, or a step no longer halves it: x, residuals, steps, condition number.

    A column more in every product and solution is a step of the power method for ‖A‖ and ‖(A+λI)⁻¹‖: all but free.
    """
    condition = _Condition(system, factor)
    X, R, best = X.copy(), system.B.copy(), np.where(system.lengths > 0, np.inf, 0.0)
    steps, open_ = 0, np.flatnonzero(system.lengths > 0)
    if np.any(X):
        R = system.residual(X, np.arange(X.shape[1]))
        best = np.linalg.norm(R, axis=0)
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
    n = system.A.shape[0]
    for _ in range(POWER_STEPS - condition.products if n else 0):  # steps that were not needed otherwise
        condition.product(np.empty((n, 0)), np.empty(0, dtype=np.intp))
    for _ in range(POWER_STEPS - condition.solutions if n else 0):
        condition.solve(np.empty((n, 0)))
    return X, best, max(0, steps - 1), max(1.0, condition.norm * condition.inverse) if n else None


class _Condition:
    """‖A + λI‖ and ‖(A + λI)⁻¹‖ by the power method, riding on the products and solutions of the refinement."""

    def __init__(self, system: System, factor: HostFactor | DeviceFactor) -> None:
        self.system, self.factor = system, factor
        self.up, self.down = np.random.default_rng(0).standard_normal((2, system.A.shape[0], 1))
        self.norm, self.inverse, self.products, self.solutions = 0.0, 0.0, 0, 0

    def product(self, V: Array, columns: Any) -> Array:
        """(A + λI)V, and a step of the power method."""
        v = self.up / max(float(np.linalg.norm(self.up)), np.finfo(float).tiny)
        Y = self.system.product(np.column_stack([V, v]), np.append(columns, 0))
        self.up, self.products = Y[:, -1:], self.products + 1
        if self.products == 1 and self.system.column is None:  # of a random direction
            self.system.column = float(np.linalg.norm(self.up))
        self.norm = max(self.norm, float(np.linalg.norm(self.up)))
        return np.asarray(Y[:, :-1])

    def solve(self, R: Array) -> Array:
        """(A + λI)⁻¹R, and a step of the power method."""
        v = self.down / max(float(np.linalg.norm(self.down)), np.finfo(float).tiny)
        X = self.factor.solve(np.column_stack([R, v]))
        self.down, self.solutions = X[:, -1:], self.solutions + 1
        self.inverse = max(self.inverse, float(np.linalg.norm(self.down)))
        return X[:, :-1]
