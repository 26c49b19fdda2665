"""What the functions of this layer need of a fitted PCA."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["FittedPCA", "Model", "feature_names", "plain_scores", "variable_scale"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


class Model(Protocol):
    """The attributes of a fitted principal component analysis."""

    components_: Any
    explained_variance_: Any
    explained_variance_ratio_: Any
    singular_values_: Any
    mean_: Any
    scale_: Any
    noise_variance_: float
    n_components_: int
    n_features_in_: int
    n_samples_: int
    rank_: int
    whiten: bool
    _weight: float
    _missing_method: str


class FittedPCA(Model, Protocol):
    """A fitted principal component analysis, as :class:`gramian.PCA` is after ``fit``."""

    def transform(self, X: Any) -> Any:
        """Return the scores of the rows of X."""

    def set_params(self, **params: Any) -> Any:
        """Change constructor parameters."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to the rows of X."""


def plain_scores(pca: FittedPCA, X: Any) -> Matrix:
    """Scores z = Vᵀ(x − x̄)/s in float64, whether the model whitens or not."""
    Z = np.asarray(pca.transform(X), dtype=np.float64)
    # from σ, which cannot overflow where λ would
    return Z * np.asarray(pca.singular_values_, dtype=np.float64) / (pca._weight - 1.0) ** 0.5 if pca.whiten else Z


def variable_scale(pca: Model) -> Vector:
    """Return what columns were divided by: 1 without ``scale``."""
    if pca.scale_ is None:
        return np.ones(pca.n_features_in_)
    return np.asarray(pca.scale_, dtype=np.float64)


def feature_names(pca: Model) -> tuple[str, ...]:
    """Names of the variables: those seen in ``fit``, else x0, x1, …"""
    names = getattr(pca, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{j}" for j in range(pca.n_features_in_))
    return tuple(str(name) for name in names)
