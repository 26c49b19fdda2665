"""Scores of a fitted kernel PCA, and how far rows lie from what it was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import to_numpy
from gramian.inputs.devices import like_input
from gramian.inputs.kernels import is_precomputed, points_of
from gramian.kernels import Kernel
from gramian.operators import kernel_device, kernel_operator
from gramian.pca.solve import fix_signs

__all__ = ["Novelty", "Scores", "signs_of"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Novelty:
    """How far rows lie from the training rows, in feature space.

    Attributes
    ----------
    t2 : ndarray of shape (n,)
        Σ z²/λ̄ with λ̄ the variance of each score: how far out within the components.
    spe : ndarray of shape (n,)
        ‖φ(x) − φ̄‖² − Σ z²: the squared distance from their span.
    """

    t2: Vector
    spe: Vector


class Scores:
    """Methods that compare new rows with the training rows, by the fitted attributes of a kernel PCA."""

    kernel: Any
    centre: bool
    device: Any
    eigenvalues_: Vector
    eigenvectors_: Matrix
    dual_coefficients_: Matrix
    mean_coefficients_: Vector
    offset_: Vector
    X_fit_: Any
    kernel_: Kernel
    _kept: Any
    _landmarks: Any
    _mean_square: float
    _precision: Any
    _root: Matrix | None
    _weight: float

    @like_input
    def novelty(self, X: Any) -> Novelty:
        """T² within the components and squared distance from their span, in feature space, of the rows of X."""
        check_is_fitted(self)
        Z, lengths = self._scores_and_lengths(X)
        variances = self.eigenvalues_ / max(self._weight - 1.0, 1.0)
        t2 = np.sum(np.divide(Z**2, variances, out=np.zeros_like(Z), where=variances > 0), axis=1)
        return Novelty(t2, np.maximum(lengths - np.sum(Z**2, axis=1), 0.0))

    def reconstruction_error(self, X: Any) -> Vector:
        """‖φ(x) − φ̄ − Σ z v‖² of each row: what the components leave of it in feature space."""
        return self.novelty(X).spe

    def _scores(self, X: Any) -> Matrix:
        points, _ = points_of(self, X, reset=False)
        return np.asarray(self._product(X, points, self.dual_coefficients_, self._precision) - self.offset_)

    def _scores_and_lengths(self, X: Any) -> tuple[Matrix, Vector]:
        """Scores, and ‖φ(x) − φ̄‖² = k(x, x) − 2φ(x)·φ̄ + ‖φ̄‖², from one product."""
        points, _ = points_of(self, X, reset=False)
        if is_precomputed(self.kernel_):
            raise ValueError("A precomputed kernel does not say k(x, x) of new rows, which distances need.")
        both = self._product(X, points, np.column_stack([self.dual_coefficients_, self.mean_coefficients_]))
        own = np.asarray(self.kernel_.diagonal(points), dtype=np.float64)
        lengths = own - 2 * both[:, -1] + self._mean_square if self.centre else own
        return both[:, :-1] - self.offset_, lengths

    def _product(self, X: Any, points: Any, V: Matrix, dtype: Any = np.float64) -> Matrix:
        """k(x, X_fit_) V of the points of an input X, computed where that says."""
        if V.shape[1] == 0:
            return np.zeros((len(points) if isinstance(points, list) else points.shape[0], 0))
        if is_precomputed(self.kernel_):
            K = points[:, self._landmarks] if self._landmarks is not None else points
            return np.asarray(K @ V, dtype=np.float64)
        where = kernel_device(self.device, self.kernel_, points, like=X)
        A = kernel_operator(self.kernel_, points, self.X_fit_, dtype=dtype, store=False, device=where)
        return to_numpy(A.matmat(A.asarray(V)), float)

    def _training_scores(self) -> Matrix:
        """√λ u, divided by √w, of the rows that have weight."""
        Z = (self.eigenvectors_ if self._kept is None else self.eigenvectors_[self._kept]) * np.sqrt(self.eigenvalues_)
        return Z if self._root is None else np.asarray(Z / self._root)


def signs_of(U: Matrix, w: Vector | None) -> Vector:
    """±1 such that the score largest in size is positive; of unit eigenvectors, divided by √w, it is the same entry."""
    Z = U if w is None else U[w > 0] / np.sqrt(w[w > 0])[:, None]
    return np.where(np.sum(fix_signs(np, Z) * Z, axis=0) < 0, -1.0, 1.0)
