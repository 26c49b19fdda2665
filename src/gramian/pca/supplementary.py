"""Rows, variables and categories that took no part in a PCA, placed among its components."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.compute.devices import to_numpy
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.estimator import PCA
from gramian.pca.interpret import (
    EXPECTED,
    Elements,
    as_matrix,
    component_names,
    float_rows,
    project_rows,
    ratio,
    row_names,
    standardise,
    variable_scale,
)
from gramian.results.tables import text_table
from gramian.sources import open_source
from gramian.sources.arrays import is_frame

Array = npt.NDArray[np.float64]
Names = tuple[str, ...]


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
    order: ClassVar[str] = "cos2"

    names: tuple[str, ...] | None
    coordinates: Array
    cos2: Array
    distances: Array


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
    order: ClassVar[str] = "cos2"

    names: tuple[str, ...]
    coordinates: Array
    correlations: Array
    cos2: Array


def supplementary_rows(pca: PCA, X: Any, *, row_labels: Sequence[Any] | None = None) -> SupplementaryRows:
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
    >>> from gramian.analysis import supplementary_rows
    >>> X = load_iris().data
    >>> new = supplementary_rows(PCA(2).fit(X[:100]), X[100:])
    >>> new.coordinates.shape, bool((new.cos2.sum(axis=1) <= 1).all())
    ((50, 2), True)
    """
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    seen = project_rows(pca, X)
    names = row_names(X, row_labels, len(seen.scores))
    return SupplementaryRows(names, seen.scores, seen.cos2, seen.distances)


def supplementary_columns(
    pca: PCA, X: Any, Y: Any, names: Sequence[str] | None = None, sample_weight: Any = None
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
    >>> from gramian.analysis import supplementary_columns
    >>> X, y = load_diabetes(return_X_y=True)
    >>> supplementary_columns(PCA(3, scale=True).fit(X), X, y, names=["progression"]).correlations.round(3)
    array([[ 0.555, -0.194,  0.162]])
    """
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    seen = project_rows(pca, X, sample_weight, why_whole=EXPECTED)
    Z, w = seen.scores, seen.weights
    values, own = as_matrix(Y, "Y")
    if len(values) != len(Z):
        raise ValueError(f"Y has {len(values)} rows and X has {len(Z)}.")
    labels = tuple(names) if names is not None else own or tuple(f"y{j}" for j in range(values.shape[1]))
    if len(labels) != values.shape[1]:
        raise ValueError(f"names has {len(labels)} names for the {values.shape[1]} columns of Y.")
    (D, _, spread), (E, _, _) = standardise(values, w), standardise(Z, w)
    r = np.clip((w[:, None] * D).T @ E / w.sum(), -1.0, 1.0)
    spread *= np.sqrt(w.sum() / max(w.sum() - 1.0, 1.0))
    coordinates = r if pca.scale_ is not None else r * spread[:, None]
    return SupplementaryColumns(labels, coordinates, r, r**2)


@dataclass(frozen=True, eq=False, repr=False)
class Categories(Elements):
    """Categories as the barycentres of their rows.

    Attributes
    ----------
    variables, names : tuple of str
        For each category the variable it belongs to, and its own name.
    coordinates, cos2, v_test : ndarray of shape (g, k)
        Mean score of the rows; its square over the squared distance; and by how many standard deviations it is from
        the mean of as many rows drawn without replacement.
    distances, weights : ndarray of shape (g,)
        Distance of the barycentre from the centre; how many rows the category has (sum of their weights).
    eta2 : ndarray of shape (variables, k)
        Correlation ratio η² of each categorical variable with each component: between-category share of its variance.
    eta2_names : tuple of str
        The categorical variables, in the order of ``eta2``.
    """

    kind: ClassVar[str] = "Categories"
    order: ClassVar[str] = "v_test"

    variables: tuple[str, ...]
    names: tuple[str, ...]
    coordinates: Array
    cos2: Array
    v_test: Array
    distances: Array
    weights: Array
    eta2: Array
    eta2_names: tuple[str, ...]

    def labels(self) -> dict[str, Any]:
        """Return the columns that say which category a line is about."""
        return {"name": list(self.names), "variable": list(self.variables)}

    def eta2_table(self) -> dict[str, Any]:
        """Return η² as columns, ready for ``pandas.DataFrame``."""
        components = component_names(self.eta2.shape[1])
        return {"variable": list(self.eta2_names)} | {pc: self.eta2[:, j] for j, pc in enumerate(components)}

    def __repr__(self) -> str:
        return f"{super().__repr__()}\nη² of the variables:\n{text_table(self.eta2_table())}"


def supplementary_categories(pca: PCA, X: Any, labels: Any, sample_weight: Any = None) -> Categories:
    r"""Place categories at the barycentres of their rows, and test them against chance.

    .. math::
        \bar z_g = \frac1{n_g}\sum_{i\in g}w_iz_i,\qquad
        v_g = \bar z_g\Big/\sqrt{\frac{s^2}{n_g}\,\frac{n-n_g}{n-1}},\qquad
        \eta^2 = \frac{\sum_g n_g\bar z_g^2}{\sum_i w_iz_i^2}

    with n the sum of the weights, :math:`n_g` that of category g, and s² = Σwz²/n; scores are taken about their mean
    over these rows, which is 0 for those of the fit. |v| > 1.96 is what chance alone exceeds once in twenty times.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p)
        Rows in the model's variables, as a rule those it was fitted to. Read twice.
    labels : array-like of shape (n,) or (n, variables), frame or Series
        A category for each row, any hashable values; several categorical variables as columns. None and NaN are
        refused: give missing ones a name of their own.
    sample_weight : array-like of shape (n,), optional
        Frequencies of the rows. A category whose rows have no weight is left out.

    Returns
    -------
    Categories
        Coordinates, squared cosines, tests, distances and η².

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis import supplementary_categories
    >>> iris = load_iris()
    >>> species = iris.target_names[iris.target]
    >>> supplementary_categories(PCA(2, scale=True).fit(iris.data), iris.data, species)
    Categories: 3 on 2 components; on pca0, by v_test:
      name        variable  coordinate    cos2  v_test  distance  weight
      setosa        label0      -2.217   0.983  -11.24     2.236      50
      virginica     label0       1.723  0.9715   8.732     1.748      50
      versicolor    label0      0.4948  0.4407   2.508    0.7454      50
    η² of the variables:
      variable    pca0    pca1
      label0    0.9346  0.1657
    """
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    seen = project_rows(pca, X, sample_weight)
    w = seen.weights
    columns, variables, names, indicator = _read_categories(convert_to_numpy(labels), w)
    D, centre, spread = standardise(seen.scores, w)
    n, n_g = float(w.sum()), np.asarray(indicator @ w)
    means = np.asarray(indicator @ (w[:, None] * D)) / n_g[:, None]  # in standard deviations of the scores
    v = ratio(1.0, np.sqrt(ratio(n - n_g, n_g * max(n - 1.0, 1.0))))[:, None] * means
    coordinates = means * spread + centre
    # distance ‖(x̄_g − x̄)/s‖ of each category's mean row, from Σ w(x − x̄) over its rows
    source, weighted, mean = open_source(X), (indicator * w).tocsr(), to_numpy(pca.mean_, float)
    sums = np.zeros((len(n_g), source.shape[1]))
    for block in source.blocks():
        values, part = float_rows(source, block), weighted[:, block.start : block.stop]
        if source.sparse:
            sums += np.asarray((part @ values).todense() - part.sum(axis=1)[:, None] * mean)
        else:
            sums += part @ (values - mean)
    barycentres = sums / n_g[:, None] / variable_scale(pca)
    peak = float(np.abs(barycentres).max(initial=0.0)) or 1.0  # so that no square overflows
    distances = peak * np.linalg.norm(barycentres / peak, axis=1)
    cos2 = np.minimum(np.square(ratio(np.abs(coordinates), distances[:, None])), 1.0)
    belongs = np.array([[name == column for name in variables] for column in columns], dtype=np.float64)
    eta2 = np.minimum(belongs @ (n_g[:, None] * means**2 / n), 1.0)
    return Categories(variables, names, coordinates, cos2, v, distances, n_g, eta2, columns)


def _read_categories(labels: Any, w: Array) -> tuple[Names, Names, Names, Any]:
    """Read the categories of each variable, sorted where they can be, less those without weight.

    Returns the categorical variables; for each category the variable it belongs to, and its own name; and the sparse
    matrix of shape (g, n) that is 1 where a row belongs to a category.
    """
    if is_frame(labels):
        columns = tuple(map(str, labels.columns))
        table = [np.asarray(labels[name], dtype=object) for name in labels.columns]
    else:
        if isinstance(labels, (list, tuple)) and any(isinstance(value, tuple) for value in labels):
            values = np.empty(len(labels), dtype=object)
            values[:] = labels  # tuples in a list are categories, not columns
        else:
            values = np.asarray(labels, dtype=object)
        if values.ndim not in (1, 2):
            raise ValueError(f"labels has shape {values.shape}: give one category for each row, or columns of them.")
        table = list(values.T) if values.ndim == 2 else [values]
        own = getattr(labels, "name", None)
        columns = (str(own),) if own else tuple(f"label{j}" for j in range(len(table)))
    if not columns:
        raise ValueError("labels has no columns.")
    if len(set(columns)) < len(columns):
        raise ValueError(f"labels has columns of the same name: {', '.join(columns)}. Give each its own.")
    if len(table[0]) != len(w):
        raise ValueError(f"labels has {len(table[0])} rows and X has {len(w)}.")
    variables: list[str] = []
    names: list[str] = []
    members: list[npt.NDArray[np.intp]] = []
    for column, values in zip(columns, table, strict=True):
        for i, value in enumerate(values):  # a NaN is not equal to itself, and pandas' NA refuses to say
            place = f"labels: row {i} of {column!r} is"
            if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
                raise ValueError(f"{place} missing. Give missing categories a name of their own.")
            if not isinstance(value, Hashable):
                raise ValueError(f"{place} a {type(value).__name__}, which names no category.")
        seen = list(dict.fromkeys(value for value, weight in zip(values, w, strict=True) if weight > 0))
        with suppress(TypeError):  # categories of several types: in the order they come
            seen = sorted(seen)
        number = {category: g for g, category in enumerate(seen)}
        codes = np.array([number.get(value, -1) for value in values])
        variables += [column] * len(seen)
        names += [str(category) for category in seen]
        members += [np.flatnonzero(codes == g) for g in range(len(seen))]
    ends = np.cumsum([0, *map(len, members)])
    indicator = sp.csr_array((np.ones(int(ends[-1])), np.concatenate(members), ends), shape=(len(members), len(w)))
    return columns, tuple(variables), tuple(names), indicator
