"""The way back of kernel PCA: pre-images of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import host
from gramian.estimators._devices import at_home
from gramian.estimators._kernel_inputs import is_precomputed
from gramian.estimators._kernel_scores import Scores
from gramian.estimators._preimages import PreImages, fit_ridge_inverse, preimages, ridge_points
from gramian.kernels import Kernel, as_kernel

__all__ = ["Inverse"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


class Inverse(Scores):
    """Methods that go back from scores to rows, by the fitted attributes of a kernel PCA."""

    kernel_params: dict[str, Any] | None
    degree: float
    coef0: float
    alpha: float
    inverse: str
    fit_inverse_transform: bool
    gamma_: Any
    _means: Vector
    _of_all: bool

    def transform(self, X: Any) -> Matrix:
        """Scores of the rows of X."""
        raise TypeError("an estimator supplies this")

    def _like(self, Z: Matrix) -> Matrix:
        raise TypeError("an estimator supplies this")

    @at_home
    def inverse_transform(self, X: Any) -> Matrix:
        """Rows whose features are near those of the scores X: pre-images, by the method ``inverse``."""
        check_is_fitted(self)
        Z = np.asarray(host(X), dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != len(self.eigenvalues_):
            raise ValueError(f"Scores of shape {Z.shape} do not fit {len(self.eigenvalues_)} components.")
        if self.inverse == "ridge":
            return self._like(self._ridge(Z))
        return self._like(self.preimages(Z).points)

    @at_home
    def preimages(self, Z: Any, start: Any = None, **options: Any) -> PreImages:
        """Pre-images of scores with the convergence of every row: :func:`gramian.estimators._preimages.preimages`.

        Parameters
        ----------
        Z : array-like of shape (m, k)
            Scores.
        start : array-like of shape (m, p), optional
            Rows to start from, such as those to be denoised.
        **options
            ``method`` (that of the estimator by default) and what it takes.
        """
        check_is_fitted(self)
        Z, start = np.asarray(host(Z), dtype=np.float64), host(start)
        method = options.pop("method", self.inverse)
        if method == "ridge":
            self._refuse_without_inverse()
            options |= {"targets": Z, "scores": self.X_transformed_fit_, "dual": self.dual_coef_}
            return preimages(self._score_kernel(), self.X_fit_, self._combinations(Z), method=method, **options)
        known = {"norms": self._squared_lengths(Z), "products": self._products(Z)}
        return preimages(
            self.kernel_, self.X_fit_, self._combinations(Z), method=method, start=start, **(known | options)
        )

    @at_home
    def denoise(self, X: Any, **options: Any) -> Matrix:
        """Project rows on the components and find the pre-images, starting from the rows themselves."""
        Z = host(self.transform(X))
        if options.get("method", self.inverse) == "ridge":
            return self.inverse_transform(Z)
        return self._like(self.preimages(Z, np.asarray(host(X), dtype=np.float64), **options).points)

    def _combinations(self, Z: Matrix) -> Matrix:
        """γ of P = φ̄ + Σ z v = Σ γ_i φ(x_i)."""
        return np.asarray(Z @ self.dual_coefficients_.T + (self.mean_coefficients_ if self.centre else 0.0))

    def _squared_lengths(self, Z: Matrix) -> Vector:
        """‖P‖² = ‖φ̄‖² + 2Σ z⟨v, φ̄⟩ + Σ z², for orthonormal v."""
        own = np.sum(Z**2, axis=1)
        return np.asarray(own + 2 * Z @ self.offset_ + self._mean_square if self.centre else own)

    def _products(self, Z: Matrix) -> Matrix | None:
        """⟨P, φ(x_i)⟩ of all training rows, where they are the points the components are made of."""
        if not self._of_all:
            return None
        mean = self._means if self.centre else 0.0
        return np.asarray(Z @ (self._training_scores() + self.offset_).T + mean)

    def _ridge(self, Z: Matrix) -> Matrix:
        self._refuse_without_inverse()
        return np.asarray(ridge_points(self._score_kernel(), self.X_transformed_fit_, self.dual_coef_, Z))

    def _refuse_without_inverse(self) -> None:
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The learned inverse was not fitted: set fit_inverse_transform=True, or inverse='fixed-point', "
                "'regularised' or 'mds', which need no fit."
            )

    def _score_kernel(self) -> Kernel:
        """The kernel given by name, of scores: as scikit-learn, with γ as it was for the rows."""
        if isinstance(self.kernel, Kernel):
            return self.kernel_
        return as_kernel(self.kernel, self.gamma_, self.degree, self.coef0, **(self.kernel_params or {}))

    def _learn_inverse(self, points: Any) -> None:
        if is_precomputed(self.kernel_) or isinstance(points, (list, tuple)):
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel, or without rows to go back to.")
        rows = points.toarray() if hasattr(points, "toarray") else points
        if np.ndim(getattr(self.kernel_, "gamma", None) or 0.0) > 0 or isinstance(self.gamma_, tuple):
            raise ValueError(
                "A kernel with one parameter for each feature does not fit scores. Use inverse='regularised'."
            )
        self.X_transformed_fit_ = self._training_scores()
        penalty = self.alpha if self._root is None else self.alpha / self._root[:, 0] ** 2
        self.dual_coef_ = fit_ridge_inverse(self._score_kernel(), self.X_transformed_fit_, rows, penalty)
