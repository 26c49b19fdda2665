"""Where the noise of a genotype matrix ends: the sums of all eigenvalues, without computing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis.eigenvalue_tests import TracyWidomTable, tracy_widom_from_sums
from gramian.analysis.tracy_widom import tracy_widom_quantile

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
    omega, product : ndarray of shape (n, b)
        Ω, orthogonal to 1 as Z is, and ZZᵀΩ.
    count : int
        Eigenvalues that are not zero by construction: the smaller of n − 1 and the number of SNPs.
    total : float
        Their sum, exact.
    """

    omega: Matrix
    product: Matrix
    count: int
    total: float

    @classmethod
    def draw(cls, conormal: Callable[[Any], Any], n: int, p: int, columns: int, total: float, seed: int) -> Probes:
        """Multiply random directions: one pass."""
        omega = np.random.default_rng(seed).standard_normal((n, columns))
        omega -= omega.mean(axis=0)
        return cls(omega, np.asarray(conormal(omega), dtype=np.float64), min(n - 1, p), total)

    def noise(self, eigenvalues: Vector, U: Matrix) -> Noise:
        """The sums, with what lies outside the span of the components U (n, j) estimated from the probes."""
        left = self.count - len(eigenvalues)
        mean = (self.total - eigenvalues.sum()) / left
        omega = self.omega - U @ (U.T @ self.omega)
        rest = self.product - U @ (U.T @ self.product) - mean * omega
        null = len(self.omega) - 1 - self.count  # zero eigenvalues of fewer SNPs than samples lie c from the mean c
        each = np.sum(rest**2, axis=0) - null * mean**2
        spread, error = float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))
        squares = max(spread, 0.0) + left * mean**2 + float(np.sum(eigenvalues**2))
        deviation = squares - self.total**2 / self.count
        return Noise(self.count, self.total, deviation, error / spread if spread > 0 else np.inf, max(spread, 0.0))

    def separated(self, eigenvalues: Vector, U: Matrix) -> int:
        """How many leading components lie above the edge of the noise that remains when they are taken out."""
        for j in range(len(eigenvalues)):
            if j >= self.count - 1:
                return j
            noise = self.noise(eigenvalues[:j], U[:, :j])
            if not noise.table(eigenvalues[: j + 1]).statistics[j] > critical():
                return j
        return len(eigenvalues)

    def waited(self, eigenvalues: Vector, vectors: Callable[[], Any], passes: int) -> int:
        """All components at first; when they have had time to show, those that lie above the noise."""
        if passes < SEEN:
            return len(eigenvalues)
        return self.separated(eigenvalues, np.linalg.qr(np.asarray(vectors(), dtype=np.float64))[0])

    def resolution(self, passes: int) -> float:
        r"""How far above the edge, relative to it, a component must lie to be found in so many passes.

        From b random directions among n the Chebyshev polynomial of degree q raises a component that lies a fraction γ
        above the rest by :math:`\tfrac12 e^{2q\sqrt\gamma}`; it leads when the square of this exceeds n/b.
        """
        n, b = self.omega.shape
        return float((np.log(4 * n / b) / (4 * max(passes, 1))) ** 2)


def untested() -> TracyWidomTable:
    """The table where there is but one eigenvalue, and nothing to compare it with."""
    return TracyWidomTable(*(np.empty(0) for _ in range(4)))


@cache
def critical() -> float:
    """The Tracy–Widom statistic that noise exceeds with probability ALPHA."""
    return float(tracy_widom_quantile(ALPHA, upper=True))
