r"""The learned way back: kernel ridge regression from scores to rows, as in scikit-learn.

.. math:: z(t) = \sum_i k(t,t_i)\,b_i,\qquad B = (K_t+\alpha I)^{-1}X

with t_i the scores of the training rows and K_t their own kernel matrix. (Bakır, Weston and Schölkopf, Learning to find
pre-images, NIPS 2003.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.kernels import Kernel

__all__ = ["fit_ridge_inverse", "ridge_points"]

Matrix = npt.NDArray[np.float64]


def fit_ridge_inverse(kernel: Kernel, scores: Any, X: Any, alpha: Any = 1.0) -> Matrix:
    """Return the dual coefficients B = (k(T, T) + αI)⁻¹X of the map from scores T to rows X.

    Parameters
    ----------
    kernel : Kernel
        Of the scores.
    scores : array-like of shape (n, k)
        T, the scores of the training rows.
    X : array-like of shape (n, d)
        The training rows.
    alpha : float, default=1.0
        α > 0 trades exactness on the training rows for smoothness; α/w for rows of weight w.

    Returns
    -------
    ndarray of shape (n, d)
        B, for :func:`ridge_points`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._preimages import fit_ridge_inverse, ridge_points
    >>> from gramian.kernels import Gaussian
    >>> T, X = np.array([[0.0], [1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> B = fit_ridge_inverse(Gaussian(1.0), T, X, alpha=1e-9)
    >>> ridge_points(Gaussian(1.0), T, B, T).round(6)
    array([[1., 2.],
           [3., 4.]])
    """
    T, rows = np.asarray(scores, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if T.ndim != 2 or rows.ndim != 2 or len(T) != len(rows):
        raise ValueError(f"scores of shape {T.shape} and X of shape {rows.shape} must have the same number of rows.")
    if not np.all((np.asarray(alpha) >= 0) & np.isfinite(alpha)):
        raise ValueError(f"alpha must be a number from 0 on, got {alpha!r}.")
    K = np.asarray(kernel(T), dtype=np.float64)
    K.flat[:: len(K) + 1] += alpha
    try:
        factor = scipy.linalg.cho_factor(K, overwrite_a=True)
    except scipy.linalg.LinAlgError:
        raise ValueError(
            f"k(T, T) + αI is not positive definite for {kernel!r} and alpha={alpha!r}. Use a larger alpha, or a "
            "positive semidefinite kernel."
        ) from None
    return np.asarray(scipy.linalg.cho_solve(factor, rows))


def ridge_points(kernel: Kernel, scores: Any, dual: Any, targets: Any) -> Matrix:
    """Return the rows k(targets, T) B for scores ``targets``; see :func:`fit_ridge_inverse`."""
    T, new = np.asarray(scores, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    return np.asarray(kernel(new, T) @ np.asarray(dual, dtype=np.float64))
