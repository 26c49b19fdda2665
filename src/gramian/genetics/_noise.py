"""Where the noise of a genotype matrix ends: the sums of all eigenvalues, without computing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from gramian.analysis.eigenvalue_tests import TracyWidomTable, tracy_widom_from_sums
from gramian.analysis.tracy_widom import tracy_widom_quantile
from gramian.compute.devices import put
from gramian.operators import Operator
from gramian.spectral.rayleigh import small, thin_qr

__all__ = ["ALPHA", "Noise", "Probes", "untested"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ALPHA = 0.001  # a component that noise exceeds less often than this is waited for
SEEN = 10  # passes after which a component below the edge of the noise is no longer waited for


@dataclass(frozen=True, eq=False)
class Noise:
    """Sums over all eigenvalues of ZZᵀ that are not zero by construction.

    Attributes
    ----------
    count : int
        How many there are.
    total : float
        Σλ, exact: the sum of squares of Z.
    deviation : float
        Σ(λ − λ̄)².
    error : float
        Standard error, relative, of this sum over the eigenvalues that were not computed, and so of the effective
        number of markers; 0 where all were.
    spread : float
        This sum.
    """

    count: int
    total: float
    deviation: float
    error: float = 0.0
    spread: float = 0.0

    def statistic_errors(self, eigenvalues: Vector) -> Vector:
        """Standard errors of the statistics: half the change from one error less to one more."""
        if self.error in (0.0, np.inf):
            return np.full(len(eigenvalues), self.error)
        shift = min(self.error, 0.9) * self.spread
        less, more = (replace(self, deviation=self.deviation + by).table(eigenvalues) for by in (-shift, shift))
        return np.asarray(np.abs(more.statistics - less.statistics) / 2)

    def table(self, eigenvalues: Vector) -> TracyWidomTable:
        """Test the leading eigenvalues as far as some are left to compare with."""
        few = eigenvalues[: self.count - 1]
        few = few[few > 0]
        return tracy_widom_from_sums(few, self.count, self.total, self.deviation) if len(few) else untested()


@dataclass(frozen=True, eq=False)
class Probes:
    r"""Random directions Ω and ZZᵀΩ, from which the spread of the eigenvalues is estimated without bias.

    For standard normal ω, :math:`E\|(ZZ^T - cI)\,\omega\|^2 = \sum_j(\lambda_j - c)^2`. With c the mean of the
    eigenvalues this is their spread itself, not a difference of two large numbers; with the components found projected
    out of ω and of the product, large eigenvalues, which would make it vary, are left out.

    Attributes
    ----------
    omega, product : array of shape (n, b)
        Ω, orthogonal to 1 as Z is, and ZZᵀΩ: in float64, where Z is multiplied.
    count : int
        Eigenvalues that are not zero by construction: the smaller of n − 1 and the number of SNPs.
    total : float
        Their sum, exact.
    """

    omega: Any
    product: Any
    count: int
    total: float

    @classmethod
    def draw(cls, A: Operator, columns: int, total: float, seed: int) -> Probes:
        """Multiply random directions, the same ones on every device: one pass."""
        n, p = A.shape
        drawn = np.random.default_rng(seed).standard_normal((n, columns))
        drawn -= drawn.mean(axis=0)
        omega = drawn if A.device is None else put(drawn, A.device)
        product = A.conormal(drawn if A.device is None else A.asarray(omega))
        return cls(omega, A.xp.asarray(product, dtype=omega.dtype), min(n - 1, p), total)

    def outside(self, U: Any) -> Outside:
        """What of the probes lies inside the span of components U (n, k), and outside."""
        inside, moved = U.T @ self.omega, U.T @ self.product
        omega, rest = self.omega - U @ inside, self.product - U @ moved
        sums = (small((x * y).sum(axis=0)) for x, y in ((rest, rest), (rest, omega), (omega, omega)))
        return Outside(self, small(inside), small(moved), *sums)

    def noise(self, eigenvalues: Vector, U: Any) -> Noise:
        """The sums, with what lies outside the span of the components U (n, j) estimated from the probes."""
        return self.outside(U).noise(eigenvalues)

    def separated(self, eigenvalues: Vector, U: Any) -> int:
        """How many leading components lie above the edge of the noise that remains when they are taken out."""
        outside = self.outside(U)
        for j in range(len(eigenvalues)):
            if j >= self.count - 1:
                return j
            if not outside.statistic(eigenvalues[: j + 1]) > critical():
                return j
        return len(eigenvalues)

    def waited(self, eigenvalues: Vector, vectors: Callable[[], Any], passes: int) -> int:
        """All components at first; when they have had time to show, those that lie above the noise."""
        if passes < SEEN:
            return len(eigenvalues)
        xp = array_namespace(self.omega)
        return self.separated(eigenvalues, thin_qr(xp, xp.asarray(vectors(), dtype=self.omega.dtype))[0])

    def resolution(self, passes: int) -> float:
        r"""How far above the edge, relative to it, a component must lie to be found in so many passes.

        From b random directions among n the Chebyshev polynomial of degree q raises a component that lies a fraction γ
        above the rest by :math:`\tfrac12 e^{2q\sqrt\gamma}`; it leads when the square of this exceeds n/b.
        """
        n, b = self.omega.shape
        return float((np.log(4 * n / b) / (4 * max(passes, 1))) ** 2)


@dataclass(frozen=True, eq=False)
class Outside:
    r"""Probes apart from the components u₁ … u_k, in numbers as many as probes: large arrays are looked at once.

    With fewer components taken out, the parts along the others come back, which are orthogonal to the rest:

    .. math:: \|(I - U_jU_j^T)(ZZ^T - cI)\,\omega\|^2
        = \|r - c\,\omega_\perp\|^2 + \sum_{i>j} (u_i^TZZ^T\omega - c\,u_i^T\omega)^2

    Attributes
    ----------
    inside, moved : ndarray of shape (k, b)
        uᵀΩ and uᵀZZᵀΩ.
    rest, cross, omega : ndarray of shape (b,)
        Squared lengths and products of what is left of ZZᵀΩ and of Ω.
    """

    probes: Probes
    inside: Matrix
    moved: Matrix
    rest: Vector
    cross: Vector
    omega: Vector

    def noise(self, eigenvalues: Vector) -> Noise:
        """The sums, with what lies outside the span of the first j components estimated from the probes."""
        probes, j = self.probes, len(eigenvalues)
        count, total = probes.count, probes.total
        left = count - j
        mean = (total - eigenvalues.sum()) / left
        back = np.sum((self.moved[j:] - mean * self.inside[j:]) ** 2, axis=0)
        null = len(probes.omega) - 1 - count  # zero eigenvalues of fewer SNPs than samples lie c from the mean c
        each = self.rest - 2 * mean * self.cross + mean**2 * self.omega + back - null * mean**2
        spread, error = float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))
        squares = max(spread, 0.0) + left * mean**2 + float(np.sum(eigenvalues**2))
        deviation = squares - total**2 / count
        return Noise(count, total, deviation, error / spread if spread > 0 else np.inf, max(spread, 0.0))

    def statistic(self, eigenvalues: Vector) -> float:
        r"""The Tracy–Widom statistic of the last of the eigenvalues, as the largest of the m that follow the others.

        As :func:`tracy_widom_from_sums` has it, without the p-values, which take longer than a pass on a card:
        with their mean c and spread S₂ = Σ(λ − c)², :math:`n' = (m + 2)mc^2/S_2`.
        """
        before, last = eigenvalues[:-1], float(eigenvalues[-1])
        noise = self.noise(before)
        m = noise.count - len(before)
        mean = (noise.total - float(before.sum())) / m
        if not noise.spread > 8 * np.finfo(float).eps * m * mean**2 or last <= 0:
            return float("nan")
        n = max((m + 2) * m * mean**2 / noise.spread, 1.0 + 1e-9)
        a, b = np.sqrt(n - 1), np.sqrt(m)
        return float((last / mean - (a + b) ** 2 / n) / ((a + b) / n * np.cbrt(1 / a + 1 / b)))


def untested() -> TracyWidomTable:
    """The table where there is but one eigenvalue, and nothing to compare it with."""
    return TracyWidomTable(*(np.empty(0) for _ in range(4)))


@cache
def critical() -> float:
    """The Tracy–Widom statistic that noise exceeds with probability ALPHA."""
    return float(tracy_widom_quantile(ALPHA, upper=True))
