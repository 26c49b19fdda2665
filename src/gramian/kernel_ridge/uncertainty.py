r"""How uncertain a kernel ridge prediction is: the variance of the Gaussian process whose mean it is.

With observations y = f(x) + b + ε, Var f = (s/λ)k, Var ε = s/w and a flat prior on the intercept b, the variance of
f(x) + b given the rows S, in units of the noise s, is

.. math:: \frac1\lambda\Big[k(x,x) - k_S^TA^{-1}k_S + \frac{(1-1^TA^{-1}k_S)^2}{1^TA^{-1}1}\Big],
    \qquad A=K_{SS}+\lambda W_S^{-1}

(the last term only with an intercept). More rows can only lower it, so some of the rows give an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.inputs.kernels import chosen_points, kernel_diagonal
from gramian.kernel_ridge.problem import count_points
from gramian.kernels import Kernel
from gramian.operators import KernelOperator
from gramian.spectral.rpcholesky import rp_cholesky

__all__ = ["EXACT", "SUBSET", "Given", "Posterior"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EXACT = 6000  # rows up to which all of them are used: a factor of 288 MB
SUBSET = 1000  # rows that stand for more, where the solver chose none


@dataclass(frozen=True, eq=False)
class Given:
    """Which rows to condition on: all ``rows`` of the fit there were, those a solver chose, or some drawn by a seed."""

    rows: int
    subset: npt.NDArray[np.intp] | None
    seed: int

    def method(self, n: int) -> str:
        """Say what a variance from n points at hand is: "exact", or an upper bound."""
        used = n if n <= EXACT else SUBSET if self.subset is None else len(self.subset)
        return "exact" if used == self.rows else f"upper bound from {used} of the {self.rows} rows"


@dataclass(frozen=True, eq=False)
class Posterior:
    """The variance given some of the rows.

    Attributes
    ----------
    kernel, points : Kernel, array or list
        k, and the rows S.
    factor : ndarray of shape (m, m)
        Lower triangular L with LLᵀ = A.
    ones : ndarray of shape (m,) or None
        L⁻¹1, where there is an intercept.
    lam : float
        λ.
    """

    kernel: Kernel
    points: Any
    factor: Matrix
    ones: Vector | None
    lam: float

    @classmethod
    def of(cls, kernel: Kernel, points: Any, w: Vector | None, lam: float, intercept: bool, given: Given) -> Posterior:
        """Choose the rows: all, the solver's own, or some by randomly pivoted Cholesky; and factor A."""
        if not lam > 0:
            raise ValueError("At λ = 0 there is no noise, and no predictive variance. Use a positive alpha.")
        n, subset = count_points(points), given.subset
        if n > EXACT:
            if subset is None:
                K = KernelOperator(kernel, points, store=False)
                subset = rp_cholesky(K.diagonal(), K.columns, SUBSET, seed=given.seed).indices
            points, w = chosen_points(points, subset), None if w is None else w[subset]
        A = np.asarray(KernelOperator(kernel, points, dtype=np.float64, store=False).to_dense(), dtype=np.float64)
        A[np.diag_indices_from(A)] += lam if w is None else lam / w
        try:
            L = scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"K + λI is singular to rounding at alpha={lam:g}, so there is no predictive variance. Use a larger "
                "alpha, or columns that are centred and scaled."
            ) from None
        ones = scipy.linalg.solve_triangular(L, np.ones(len(L)), lower=True) if intercept else None
        return cls(kernel, points, L, ones, lam)

    def variance(self, X: Any) -> Vector:
        """Var(f(x) + b)/s of the rows of X."""
        k = np.asarray(KernelOperator(self.kernel, X, self.points, dtype=np.float64, store=False).to_dense())
        Z = scipy.linalg.solve_triangular(self.factor, k.T, lower=True, check_finite=False)
        left = kernel_diagonal(self.kernel, X) - np.einsum("ij,ij->j", Z, Z)
        left = np.maximum(left, 0.0)
        if self.ones is not None:
            left += (1.0 - self.ones @ Z) ** 2 / (self.ones @ self.ones)
        return np.asarray(left / self.lam)
