"""What the axes of a PCA mean: loadings, correlations, contributions and squared cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._cards import ground
from gramian.analysis._elements import component_names, ratio
from gramian.analysis._model import FittedPCA, feature_names
from gramian.analysis._reading_results import Columns, Eigenvalues, Reading, Rows
from gramian.analysis._scored import Scored, deviations, incomplete_fit, row_names, scored

__all__ = ["Columns", "Eigenvalues", "Reading", "Rows", "correlations", "describe", "loadings"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

MISMATCH = 1e-3  # relative difference between Σwz² and σ² that no tolerance of a solver explains
DUST = 1e-6  # ... beside the largest σ²
CONSTANT = 2.0**-50  # spread of a column, relative to its mean, that rounding of the mean alone can make


def loadings(pca: FittedPCA) -> Matrix:
    r"""Loadings of the variables on the components.

    .. math:: \Lambda = V\,\mathrm{diag}(\sqrt{\lambda}),\qquad \Lambda\Lambda^T = S

    where S is the covariance matrix as the PCA saw it (the last holds with all components). They are the covariances
    of the variables with the standardised scores, in the units of the variables. After ``PCA(scale=True)`` S is the
    correlation matrix, and loadings are the correlations of variables and components, whatever the divisor.

    Parameters
    ----------
    pca : PCA
        A fitted model.

    Returns
    -------
    ndarray of shape (p, k)
        A row for each variable, a column for each component.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.reading import loadings
    >>> loadings(PCA(2, scale=True).fit(load_iris().data)).round(3)
    array([[ 0.89 ,  0.361],
           [-0.46 ,  0.883],
           [ 0.992,  0.023],
           [ 0.965,  0.064]])
    """
    pca = ground(pca)
    return np.asarray(np.asarray(pca.components_, dtype=np.float64).T * deviations(pca))


def correlations(pca: FittedPCA, X: Any = None, sample_weight: Any = None) -> Matrix:
    r"""Correlations of the variables with the components.

    .. math:: r_{ij} = v_{ij}\sqrt{\lambda_j}\,/\,s_i

    The standard deviations s of the variables are known to a model that scaled them, and to one that kept all
    components. Otherwise they are taken from X in one pass. A constant variable has correlation 0.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p), optional
        The rows the model was fitted to.
    sample_weight : array-like of shape (n,), optional
        The weights it was fitted with.

    Returns
    -------
    ndarray of shape (p, k)
        Correlations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.reading import correlations
    >>> X = load_iris().data
    >>> correlations(PCA(2).fit(X), X).round(3)
    array([[ 0.897,  0.391],
           [-0.399,  0.825],
           [ 0.998, -0.048],
           [ 0.967, -0.049]])
    """
    pca, X = ground(pca), ground(X)
    _refuse_incomplete(pca)
    if X is not None:
        return _correlations(pca, _known_or_measured(pca, _of_the_fit(pca, X, sample_weight)))
    known = _known_deviations(pca)
    if known is None:
        raise ValueError(
            f"A PCA of {pca.n_components_} components without scale does not know the standard deviations of the "
            "variables. Pass the rows it was fitted to as X, or fit with all components or scale=True."
        )
    return _correlations(pca, known)


def describe(pca: FittedPCA, X: Any, sample_weight: Any = None, *, row_labels: Sequence[Any] | None = None) -> Reading:
    r"""Describe the variables and the rows of a PCA: coordinates, contributions, squared cosines.

    .. math::
        \mathrm{ctr}_{ij} = 100\,\frac{w_iz_{ij}^2}{\sum_i w_iz_{ij}^2},\qquad
        \cos^2_{ij} = \frac{z_{ij}^2}{\|d_i\|^2},\qquad d_i = (x_i-\bar x)/s

    for rows, and :math:`\mathrm{ctr}=100\,v^2`, :math:`\cos^2 = r^2` for variables. X is read once, in blocks.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p)
        The rows it was fitted to; :func:`~gramian.analysis.supplementary.supplementary_rows` is for others.
    sample_weight : array-like of shape (n,), optional
        The weights it was fitted with.
    row_labels : sequence of length n, optional
        Names of the rows; by default the index of a pandas frame, where that says more than a number.

    Returns
    -------
    Reading
        ``eigenvalues``, ``columns`` and ``rows``, each with ``table()``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.reading import describe
    >>> iris = load_iris(as_frame=True).data
    >>> reading = describe(PCA(2, scale=True).fit(iris), iris)
    >>> reading.eigenvalues
    Eigenvalues:
      name  variance  percent  cumulative
      pca0     2.918    72.96       72.96
      pca1     0.914    22.85       95.81
    >>> reading.columns
    Columns: 4 on 2 components; on pca0, by contribution:
      name               coordinate  correlation  contribution    cos2  deviation
      petal length (cm)      0.9916       0.9916         33.69  0.9832          1
      petal width (cm)        0.965        0.965         31.91  0.9312          1
      sepal length (cm)      0.8902       0.8902         27.15  0.7924          1
      sepal width (cm)      -0.4601      -0.4601         7.255  0.2117          1
    >>> reading.columns.table(component=1)["name"][0]
    'sepal width (cm)'
    >>> reading.rows.contributions.sum(axis=0).round(9)
    array([100., 100.])
    """
    pca, X = ground(pca), ground(X)
    _refuse_incomplete(pca)
    seen = _of_the_fit(pca, X, sample_weight)
    rows = _rows(seen, row_names(X, row_labels, len(seen.scores)))
    return Reading(_columns(pca, _known_or_measured(pca, seen)), rows, _eigenvalues(pca))


def _eigenvalues(pca: FittedPCA) -> Eigenvalues:
    variances, share = (
        np.asarray(x, dtype=np.float64) for x in (pca.explained_variance_, pca.explained_variance_ratio_)
    )
    return Eigenvalues(component_names(len(variances)), variances, 100 * share, 100 * np.cumsum(share))


def _columns(pca: FittedPCA, spread: Vector) -> Columns:
    V = np.asarray(pca.components_, dtype=np.float64).T
    r = _correlations(pca, spread)
    return Columns(feature_names(pca), loadings(pca), r, 100 * V**2, r**2, spread)


def _rows(seen: Scored, names: tuple[str, ...] | None) -> Rows:
    squares = seen.weights[:, None] * np.square(seen.scores / seen.unit)
    return Rows(names, seen.scores, 100 * ratio(squares, squares.sum(axis=0)), seen.cos2, seen.distances)


def _correlations(pca: FittedPCA, spread: Vector) -> Matrix:
    return np.clip(ratio(loadings(pca), spread[:, None]), -1.0, 1.0)


def _known_deviations(pca: FittedPCA) -> Vector | None:
    """Standard deviations of the variables as the model saw them, where they follow from the model."""
    if pca.scale_ is not None:
        return np.ones(pca.n_features_in_)
    if pca.noise_variance_ > 0.0:
        return None
    return np.asarray(np.linalg.norm(loadings(pca), axis=1))


def _known_or_measured(pca: FittedPCA, seen: Scored) -> Vector:
    """The same, measured on the rows; 0 for constant columns, whether they were scaled or not."""
    spread = seen.unit * np.sqrt(seen.column_squares / (pca._weight - 1.0))
    if pca.scale_ is not None:  # scaled columns have 1, constant ones were left alone
        return np.where(spread > 0.5, 1.0, 0.0)
    constant = spread <= CONSTANT * np.abs(np.asarray(pca.mean_, dtype=np.float64))
    return np.where(constant, 0.0, spread)


def _refuse_incomplete(pca: FittedPCA) -> None:
    """Refuse a model whose variances are those of expected cells and noise, not of the rows in any table."""
    if incomplete_fit(pca):
        raise ValueError(
            "The model was fitted where cells were missing; complete the table and fit again: F = pca.impute(X); "
            "PCA(...).fit(F).describe(F)."
        )


def _of_the_fit(pca: FittedPCA, X: Any, sample_weight: Any) -> Scored:
    """Score the rows, and refuse those that are not the ones the model was fitted to."""
    seen = scored(pca, X, sample_weight)
    total = float(seen.weights.sum())
    if abs(total - pca._weight) > 1e-9 * total:
        raise ValueError(
            f"The weights of X sum to {total:g}, those of the fit to {pca._weight:g}. Pass the rows and the "
            "sample_weight the model was fitted with; supplementary_rows describes other rows."
        )
    found = seen.weights @ np.square(seen.scores / seen.unit)
    fitted = np.square(np.asarray(pca.singular_values_, dtype=np.float64) / seen.unit)
    off = np.abs(found - fitted) > MISMATCH * fitted + DUST * fitted.max(initial=0.0)
    if off.any():
        j = int(np.argmax(off))
        raise ValueError(
            f"The scores of X on component {j} have {found[j] / fitted[j] if fitted[j] else np.inf:.4g} times the "
            "variance of the fit. Pass the rows and the sample_weight the model was fitted with; supplementary_rows "
            "describes other rows."
        )
    return seen
