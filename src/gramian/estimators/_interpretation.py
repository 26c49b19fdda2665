"""The thin methods by which a PCA is read, watched and doubted; the functions are in :mod:`gramian.analysis`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from gramian import analysis
from gramian.analysis import (
    AsymptoticErrors,
    Biplot,
    Bootstrap,
    Categories,
    Monitor,
    Reading,
    Rotation,
    SupplementaryColumns,
    SupplementaryRows,
)

__all__ = ["Interpretation"]

Matrix = npt.NDArray[np.float64]


class Interpretation:
    """Methods that hand a fitted PCA to the function of the same name in :mod:`gramian.analysis`."""

    def loadings(self) -> Matrix:
        """Loadings V√λ of the variables: :func:`gramian.analysis.loadings`."""
        return analysis.loadings(self._fitted())

    def correlations(self, X: Any = None, sample_weight: Any = None) -> Matrix:
        """Correlations of the variables with the components: :func:`gramian.analysis.correlations`."""
        return analysis.correlations(self._fitted(), X, sample_weight)

    def describe(self, X: Any, sample_weight: Any = None, *, row_labels: Sequence[Any] | None = None) -> Reading:
        """Coordinates, contributions and cos² of rows and variables: :func:`gramian.analysis.describe`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from gramian import PCA
        >>> X = load_iris().data
        >>> reading = PCA(n_components=2, scale=True).fit(X).describe(X)
        >>> reading.columns.contributions[:, 0].sum().round(6)
        np.float64(100.0)
        """
        return analysis.describe(self._fitted(), X, sample_weight, row_labels=row_labels)

    def supplementary_rows(self, X: Any, *, row_labels: Sequence[Any] | None = None) -> SupplementaryRows:
        """Place rows that took no part in the fit: :func:`gramian.analysis.supplementary_rows`."""
        return analysis.supplementary_rows(self._fitted(), X, row_labels=row_labels)

    def supplementary_columns(
        self, X: Any, Y: Any, names: Sequence[str] | None = None, sample_weight: Any = None
    ) -> SupplementaryColumns:
        """Correlate other variables with the components: :func:`gramian.analysis.supplementary_columns`."""
        return analysis.supplementary_columns(self._fitted(), X, Y, names, sample_weight)

    def supplementary_categories(self, X: Any, labels: Any, sample_weight: Any = None) -> Categories:
        """Place the categories of labels, with test values: :func:`gramian.analysis.supplementary_categories`."""
        return analysis.supplementary_categories(self._fitted(), X, labels, sample_weight)

    def rotate(self, method: str = "varimax", **options: Any) -> Rotation:
        """Rotate the loadings towards simple structure: :func:`gramian.analysis.rotate`."""
        return analysis.rotate(self._fitted(), method, **options)

    def biplot(self, X: Any, alpha: float = 1.0, components: tuple[int, int] = (0, 1), **options: Any) -> Biplot:
        """Coordinates of rows and variables in one plane: :func:`gramian.analysis.biplot`."""
        return analysis.biplot(self._fitted(), X, alpha, components, **options)

    def monitor(self, X: Any, **options: Any) -> Monitor:
        """Control limits for T² and Q from the training rows: :func:`gramian.analysis.monitor`."""
        return analysis.monitor(self._fitted(), X, **options)

    def bootstrap(self, X: Any, **options: Any) -> Bootstrap:
        """Bootstrap intervals of variances, components and scores: :func:`gramian.analysis.bootstrap`."""
        return analysis.bootstrap(self._fitted(), X, **options)

    def eigenvalue_errors(self, level: float = 0.95, *, form: str = "ratio") -> AsymptoticErrors:
        """Anderson's asymptotic standard errors: :func:`gramian.analysis.eigenvalue_errors`."""
        return analysis.eigenvalue_errors(self._fitted(), level, form=form)

    def principal_angles(self, other: Any) -> Matrix:
        """Angles between the subspaces of two fits: :func:`gramian.analysis.principal_angles`."""
        return analysis.principal_angles(self._fitted(), other)

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self
