r"""What each row of a kernel ridge regression says when it is left out: the smoother of new points, for intervals.

With A = K + λI and, where there is an intercept, C = A⁻¹ − A⁻¹11ᵀA⁻¹/(1ᵀA⁻¹1), else C = A⁻¹,

.. math:: f(x)=\sum_i s_i(x)y_i,\qquad s(x)=Ck(x)+\frac{A^{-1}1}{1^TA^{-1}1},\qquad 1-h_i=\lambda C_{ii},\qquad
    r_i=\lambda\alpha_i

(the second term only with an intercept). Over landmarks the same holds of their features, the landmarks as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.compute.devices import refuse_beyond_device
from gramian.kernel_ridge.landmark_fit import LandmarkFit, blocks
from gramian.kernels import Kernel
from gramian.operators import kernel_operator

Array = npt.NDArray[np.float64]

MOST = 20_000  # rows whose inverse is made: 3.2 GB, and some minutes


@dataclass(frozen=True, eq=False)
class InverseOfRows:
    """C of all rows, for one λ.

    Attributes
    ----------
    inverse : ndarray of shape (n, n)
        C.
    constant : ndarray of shape (n,) or None
        A⁻¹1/(1ᵀA⁻¹1), where there is an intercept.
    within : float
        1ᵀA⁻¹1.
    lam : float
        λ > 0.
    """

    inverse: Array
    constant: Array | None
    within: float
    lam: float

    @classmethod
    def of(cls, K: Array, lam: float, intercept: bool) -> InverseOfRows:
        """Factor and invert K + λI, which is overwritten."""
        K[np.diag_indices_from(K)] += lam
        factor, failed = scipy.linalg.lapack.dpotrf(K.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise ValueError(
                f"K + λI is singular to rounding at alpha={lam:g}: nothing is known of rows left out. Use a larger "
                "alpha."
            )
        C, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        C = np.tril(C) + np.tril(C, -1).T
        if not intercept:
            return cls(C, None, 0.0, lam)
        total = C.sum(axis=1)
        within = float(total.sum())
        return cls(C - np.outer(total, total / within), total / within, within, lam)

    @property
    def left(self) -> Array:
        """1 − h of every row."""
        return np.asarray(self.lam * np.diag(self.inverse))

    def smoother(self, k: Array) -> Array:
        """s(x) of b points, from their rows k(x, X)."""
        S = k @ self.inverse
        return S if self.constant is None else S + self.constant

    def growth(self, k: Array, own: Array, S: Array) -> Array:
        """1 + Var f(x)/s of the points."""
        free = own - np.einsum("ij,ij->i", k, S)
        if self.constant is not None:
            free = free - k @ self.constant + 1.0 / self.within
        return np.asarray(1.0 + np.maximum(free, 0.0) / self.lam)


def refuse_too_many(n: int) -> None:
    """Refuse what would take minutes or does not fit."""
    remedy = "Give calibration=(X, y) of rows that the fit has not seen, with method='conformal'."
    if n > MOST:
        raise ValueError(f"Leaving out each of {n} rows takes the inverse of a matrix of that size. {remedy}")
    refuse_beyond_device(24.0 * n * n, None, f"The inverse of a kernel matrix of {n} rows", remedy)


@dataclass(frozen=True, eq=False)
class InverseOfLandmarks:
    """The same for a model of landmarks: a ridge regression on Φ, with the rows of the fit given again.

    Attributes
    ----------
    kernel, rows, landmarks : Kernel, array or Source, array
        k, the rows of the fit, and the landmarks.
    fit : LandmarkFit
        What knows Φ.
    factor : ndarray of shape (r, r)
        Lower triangular factor of ΦᵀΦ + λI, about the mean where there is an intercept.
    mean : ndarray of shape (r,)
        Of Φ; 0 without an intercept.
    share : float
        1/n with an intercept, else 0.
    """

    kernel: Kernel
    rows: Any
    landmarks: Any
    fit: LandmarkFit
    factor: Array
    mean: Array
    share: float

    @classmethod
    def of(
        cls, kernel: Kernel, rows: Any, landmarks: Any, fit: LandmarkFit, lam: float, intercept: bool
    ) -> InverseOfLandmarks:
        """Two passes over the rows: their mean, and their scatter about it."""
        A = kernel_operator(kernel, rows, landmarks, dtype=np.float64, store=False, device=None)
        n, r = A.shape[0], fit.rank
        mean = np.zeros(r)
        if intercept:
            for _, _, K in blocks(A):
                mean += fit.basis.features(K).sum(axis=1) / n
        G = lam * np.eye(r)
        for _, _, K in blocks(A):
            F = fit.basis.features(K) - mean[:, None]
            G += F @ F.T
        return cls(kernel, rows, landmarks, fit, scipy.linalg.cholesky(G, lower=True), mean, float(intercept) / n)

    def coordinates(self, points: Any) -> Iterator[tuple[int, int, Array]]:
        """Of blocks of points their first and last, and L⁻¹(Φ − mean)ᵀ."""
        A = kernel_operator(self.kernel, points, self.landmarks, dtype=np.float64, store=False, device=None)
        for start, stop, K in blocks(A):
            F = self.fit.basis.features(K) - self.mean[:, None]
            yield start, stop, scipy.linalg.solve_triangular(self.factor, F, lower=True, check_finite=False)


def dense_rows(kernel: Kernel, X: Any, Z: Any) -> Array:
    """k(X, Z) in float64, an array of its own."""
    return np.array(kernel_operator(kernel, X, Z, dtype=np.float64, store=False, device=None).to_dense())
