r"""A growing set of rows kept as a short factor B with BᵀB = Σ w (x−μ)(x−μ)ᵀ: exact PCA from a stream.

Unlike a covariance matrix, B has singular values of the data, not their squares, so nothing is lost for small
components. While p rows fit in memory B is exact; otherwise it is cut to its leading directions and the largest
squared value cut off each time is added up: 0 ⪯ M − BᵀB ⪯ Δ I.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute import dense
from gramian.compute.factor import eigh, triangulate
from gramian.compute.threads import ONE_CORE, quiet_blas

Matrix = npt.NDArray[np.float64]

SMALLEST = 1e-290  # squares below this have lost digits


@dataclass(frozen=True, eq=False)
class RowSpace:
    """Weight, mean and row factor of the rows seen so far.

    Attributes
    ----------
    weight, rows : float, int
        Σ w, and how many rows had a positive weight.
    mean, low : ndarray of shape (p,)
        The mean is ``mean + low``.
    squares : ndarray of shape (p,)
        Σ w (x−μ)² by column, exact whatever was cut off.
    factor : ndarray of shape (r, p)
        B.
    discarded : float
        Δ, which bounds the error of every eigenvalue of BᵀB.
    """

    weight: float
    rows: int
    mean: Matrix
    low: Matrix
    squares: Matrix
    factor: Matrix
    discarded: float = 0.0

    @classmethod
    def empty(cls, p: int) -> RowSpace:
        """Return the factor of no rows."""
        return cls(0.0, 0, np.zeros(p), np.zeros(p), np.zeros(p), np.zeros((0, p)))

    def update(self, X: npt.NDArray[Any], w: Matrix | None, limit: int) -> RowSpace:
        r"""Return the factor with the rows X added.

        The rows are centred on their own mean; that they move the common mean by a share of δ = μ_X − μ adds the one
        row √(ω ω_X/(ω+ω_X)) δ (Chan, Golub and LeVeque).
        """
        weights = np.ones(len(X)) if w is None else w
        added = float(weights.sum())
        if added == 0.0:
            return self
        D = X.astype(np.float64)
        origin = D[int(np.argmax(weights > 0))].copy()
        D -= origin
        with quiet_blas():  # the same bits however many threads there are
            drift = weights @ D / added
        D -= drift
        total = self.weight + added
        start, low = (self.mean, self.low) if self.weight else (origin, 0.0 * drift)
        delta = (origin - start) + (drift - low)
        between = np.sqrt(self.weight * added / total) * delta
        step = delta * (added / total) + low
        mean = start + step
        D *= np.sqrt(weights)[:, None]
        squares = self.squares + np.einsum("ij,ij->j", D, D) + between**2
        if not np.all(np.isfinite(squares)):
            raise ValueError("Squared deviations overflow float64: multiply the data by a small constant.")
        if not np.any(squares >= SMALLEST) and np.any(D):
            raise ValueError("Squared deviations underflow float64: multiply the data by a large constant.")
        stacked = np.concatenate([self.factor, D, between[None, :]])
        factor, lost = _compress(stacked, limit)
        seen = self.rows + int(np.count_nonzero(weights))
        return RowSpace(total, seen, mean, (start - mean) + step, squares, factor, self.discarded + lost)


def _compress(B: Matrix, limit: int) -> tuple[Matrix, float]:
    """The same BᵀB in at most ``limit`` rows, exactly if they suffice; and the square of what was cut off."""
    r, p = B.shape
    if r <= min(p, limit):
        return B, 0.0
    if limit >= p:  # with the same bits however many threads there are
        return dense.triangle(B) if p <= ONE_CORE else triangulate(B), 0.0
    # Wᵀ B for the leading eigenvectors W of B Bᵀ: an orthogonal change of rows, at a tenth of the cost of an SVD
    lam, W = eigh(dense.scatter(B.T, None, B)[1], overwrite=True)
    lost = max(float(lam[-limit - 1]), 0.0) + 4 * np.finfo(float).eps * float(lam[-1])
    return np.ascontiguousarray(dense.product(B.T, W[:, : -limit - 1 : -1]).T), lost
