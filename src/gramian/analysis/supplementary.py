"""Rows and variables that took no part in a PCA, placed in its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gramian.analysis._cards import ground
from gramian.analysis._elements import Elements
from gramian.analysis._model import FittedPCA
from gramian.analysis._scored import EXPECTED, as_matrix, row_names, scored, standardised

__all__ = [
    "SupplementaryColumns",
    "SupplementaryRows",
    "supplementary_columns",
    "supplementary_rows",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class SupplementaryRows(Elements):
    """Rows projected on the components.

    Attributes
    ----------
    names : tuple of str or None
        The rows, where they have names.
    coordinates, cos2 : ndarray of shape (m, k)
        Scores z, and z²/d²; 0 for a row at the centre.
    distances : ndarray of shape (m,)
        d = ‖(x − x̄)/s‖.
    """

    kind: ClassVar[str] = "Supplementary rows"
    per_component: ClassVar[dict[str, str]] = {"coordinate": "coordinates", "cos2": "cos2"}
    overall: ClassVar[dict[str, str]] = {"distance": "distances"}
    order: ClassVar[str] = "cos2"

    names: tuple[str, ...] | None
    coordinates: Matrix
    cos2: Matrix
    distances: Vector


@dataclass(frozen=True, eq=False, repr=False)
class SupplementaryColumns(Elements):
    """Variables that took no part in a PCA, correlated with its components.

    Attributes
    ----------
    names : tuple of str
        The variables.
    coordinates : ndarray of shape (q, k)
        Covariance with the standardised scores, on the scale of the loadings: correlations after ``scale=True``.
    correlations, cos2 : ndarray of shape (q, k)
        Correlation with each component and its square; 0 for a constant variable.
    """

    kind: ClassVar[str] = "Supplementary columns"
    per_component: ClassVar[dict[str, str]] = {
        "coordinate": "coordinates",
        "correlation": "correlations",
        "cos2": "cos2",
    }
    overall: ClassVar[dict[str, str]] = {}
    order: ClassVar[str] = "cos2"

    names: tuple[str, ...]
    coordinates: Matrix
    correlations: Matrix
    cos2: Matrix


def supplementary_rows(pca: FittedPCA, X: Any, *, row_labels: Sequence[Any] | None = None) -> SupplementaryRows:
    r"""Place rows that took no part in the fit.

    .. math:: z = V^T(x-\bar x)/s,\qquad \cos^2_j = z_j^2\,/\,\|(x-\bar x)/s\|^2

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (m, p)
        The rows, read once in blocks.
    row_labels : sequence of length m, optional
        Names of the rows; by default the index of a pandas frame, where that says more than a number.

    Returns
    -------
    SupplementaryRows
        Coordinates, squared cosines and distances.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.supplementary import supplementary_rows
    >>> X = load_iris().data
    >>> new = supplementary_rows(PCA(2).fit(X[:100]), X[100:])
    >>> new.coordinates.shape, bool((new.cos2.sum(axis=1) <= 1).all())
    ((50, 2), True)
    """
    pca, X = ground(pca), ground(X)
    seen = scored(pca, X)
    names = row_names(X, row_labels, len(seen.scores))
    return SupplementaryRows(names, seen.scores, seen.cos2, seen.distances)


def supplementary_columns(
    pca: FittedPCA, X: Any, Y: Any, names: Sequence[str] | None = None, sample_weight: Any = None
) -> SupplementaryColumns:
    r"""Correlate variables that took no part in the fit with the components.

    .. math:: r_j = \frac{\sum_i w_i(y_i-\bar y)z_{ij}}{\sqrt{\sum_i w_i(y_i-\bar y)^2\,\sum_i w_iz_{ij}^2}}

    A variable of the PCA itself gets its own loadings and correlations.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p)
        Rows in the model's variables, as a rule those it was fitted to.
    Y : array-like, sparse matrix, frame, path or Source of shape (n,) or (n, q)
        The other variables of the same rows, without missing values; held in memory.
    names : sequence of str, optional
        Their names; by default those that Y brings, else y0, y1, …
    sample_weight : array-like of shape (n,), optional
        Frequencies of the rows.

    Returns
    -------
    SupplementaryColumns
        Coordinates, correlations and squared cosines.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import PCA
    >>> from gramian.analysis.supplementary import supplementary_columns
    >>> X, y = load_diabetes(return_X_y=True)
    >>> supplementary_columns(PCA(3, scale=True).fit(X), X, y, names=["progression"]).correlations.round(3)
    array([[ 0.555, -0.194,  0.162]])
    """
    pca, X = ground(pca), ground(X)
    seen = scored(pca, X, sample_weight, why_whole=EXPECTED)
    Z, w = seen.scores, seen.weights
    values, own = as_matrix(Y, "Y")
    if len(values) != len(Z):
        raise ValueError(f"Y has {len(values)} rows and X has {len(Z)}.")
    labels = tuple(names) if names is not None else own or tuple(f"y{j}" for j in range(values.shape[1]))
    if len(labels) != values.shape[1]:
        raise ValueError(f"names has {len(labels)} names for the {values.shape[1]} columns of Y.")
    D, E = standardised(values, w), standardised(Z, w)
    r = np.clip((w[:, None] * D.values).T @ E.values / w.sum(), -1.0, 1.0)
    spread = np.sqrt(w.sum() / max(w.sum() - 1.0, 1.0)) * D.spread
    coordinates = r if pca.scale_ is not None else r * spread[:, None]
    return SupplementaryColumns(labels, coordinates, r, r**2)
