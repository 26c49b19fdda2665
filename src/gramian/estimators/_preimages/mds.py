r"""Kwok and Tsang's pre-images: distances in feature space become distances in input space, and those a position.

The nearest training rows x_1, …, x_k to P are kept, with the squared distances δ_i² that z must have from them. With x̄
their mean and C the rows x_i − x̄, ‖x_i − x̄‖² − δ_i² = 2(x_i − x̄)·(z − x̄) − ‖z − x̄‖², and the last term is the same
for all. So the point of their affine span with these distances, in the sense of least squares, is

.. math:: z = \bar x + \tfrac12C^T(CC^T)^+(d_0^2-\delta^2),\qquad d_{0i}^2=\|x_i-\bar x\|^2

(Kwok and Tsang, The pre-image problem in kernel methods, IEEE Transactions on Neural Networks 15, 2004.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._preimages.landscape import Landscape, as_dense, is_sparse
from gramian.estimators._preimages.result import Found

__all__ = ["local_mds"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SAME = 1e-10  # eigenvalues of CCᵀ below this part of the largest are directions without extent


def local_mds(land: Landscape, products: Matrix, norms: Vector, n_neighbors: int) -> Found:
    """Place every row by its distances from the nearest training rows; in the landscape's coordinates."""
    nearest = _nearest(land.diagonal(land.X) - 2 * products, n_neighbors)
    squares = land.distances(products, norms)
    squares = np.take_along_axis(squares, nearest, axis=1)
    possible: npt.NDArray[np.bool_] = np.isfinite(squares)
    points = _placed(_rows(land.X, nearest), np.where(possible, squares, 0.0), possible)
    trouble = "no point has such distances from all neighbours: P is further from them than any φ(z) can be"
    return Found(points, np.all(possible, axis=1), np.zeros(len(points), dtype=np.intp), trouble)


def _placed(X: Matrix, squares: Matrix, possible: npt.NDArray[np.bool_]) -> Matrix:
    """The point at these squared distances from the rows X[i], those that are impossible left out."""
    count = possible.sum(axis=1)
    # where no distance is possible, the nearest row itself is the answer
    use = np.where((count > 0)[:, None], possible, np.arange(possible.shape[1]) == 0).astype(np.float64)
    mean = np.einsum("mk,mkd->md", use, X) / use.sum(axis=1)[:, None]
    C = (X - mean[:, None, :]) * use[:, :, None]
    gram = C @ C.transpose(0, 2, 1)
    inverse = np.linalg.pinv(gram, rcond=SAME, hermitian=True)
    differences = use * (np.einsum("mkk->mk", gram) - squares)
    return np.asarray(mean + 0.5 * np.einsum("mkd,mk->md", C, np.einsum("mkl,ml->mk", inverse, differences)))


def _nearest(distances: Matrix, k: int) -> npt.NDArray[np.intp]:
    """The k columns with the least distance, nearest first."""
    k = min(k, distances.shape[1])
    some = np.argpartition(distances, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(distances, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _rows(X: Any, chosen: npt.NDArray[np.intp]) -> Matrix:
    """X[chosen], dense, of shape (m, k, d)."""
    return as_dense(X[chosen.ravel()]).reshape(*chosen.shape, X.shape[1]) if is_sparse(X) else np.asarray(X[chosen])
