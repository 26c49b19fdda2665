"""What a PCA means: loadings, contributions, squared cosines, biplots, and what took no part in it, placed among it.

And what functions on a fitted PCA share.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.compute.devices import to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_weights
from gramian.inputs.devices import convert_to_numpy
from gramian.results import Optimum, warn_of_units
from gramian.results.tables import Tabular, text_table
from gramian.sources import Block, DenseSource, Source, SparseSource, open_source
from gramian.sources.arrays import is_frame

if TYPE_CHECKING:
    from gramian.pca.estimator import PCA

Array = npt.NDArray[np.float64]
Names = tuple[str, ...]

SAME = 1e-5  # means of the same rows agree to this share of their size and spread, float32 sums included
MISMATCH = 1e-3  # relative difference between Σwz² and σ² that no tolerance of a solver explains
DUST = 1e-6  # ... relative to the largest σ²
CONSTANT = 2.0**-50  # spread of a column, relative to its mean, that rounding of the mean alone can make

# Why rows must be whole.
LENGTHS = "Distances and squared cosines need whole rows."
EXPECTED = "The scores of such a row are expectations, which vary less than scores do and would bias the correlations."


def ratio(a: Any, b: Any) -> Array:
    """a/b, and 0 where b is 0: what has no variance, or lies at the centre, has no share of anything."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    return np.asarray(np.divide(a, b, out=np.zeros(a.shape), where=b > 0))


def component_names(k: int) -> tuple[str, ...]:
    """Names of components, counted from 0 as scikit-learn's ``get_feature_names_out`` does: pca0, pca1, …"""
    return tuple(f"pca{j}" for j in range(k))


def feature_names(pca: PCA) -> tuple[str, ...]:
    """Names of the variables: those seen in ``fit``, else x0, x1, …"""
    names = getattr(pca, "feature_names_in_", None)
    return tuple(f"x{j}" for j in range(pca.n_features_in_)) if names is None else tuple(map(str, names))


def row_names(X: Any, labels: Sequence[Any] | None = None, n: int | None = None) -> tuple[str, ...] | None:
    """Names of the n rows: the labels given, else the index of a frame that says more than a number."""
    if labels is not None and len(labels) != n:
        raise ValueError(f"row_labels has {len(labels)} names for {n} rows.")
    if labels is None:
        labels = getattr(X, "index", None) if is_frame(X) else None
    return None if labels is None or type(labels).__name__ == "RangeIndex" else tuple(map(str, labels))


def variable_scale(pca: PCA) -> Array:
    """Return what columns were divided by: 1 without ``scale``."""
    return np.ones(pca.n_features_in_) if pca.scale_ is None else to_numpy(pca.scale_, float)


def deviations(pca: PCA) -> Array:
    """Standard deviations σ/√(Σw − 1) of the scores: √λ, without the squares that may not be representable."""
    return to_numpy(pca.singular_values_, float) / math.sqrt(pca._weight - 1.0)


def plain_scores(pca: PCA, X: Any) -> Array:
    """Scores z = Vᵀ(x − x̄)/s in float64, whether the model whitens or not."""
    Z = to_numpy(pca.transform(X), float)
    return Z * deviations(pca) if pca.whiten else Z


def component_scores(pca: PCA, X: Any) -> Array:
    """Scores of rows, and 0 on components without variance, whose directions are arbitrary."""
    return np.where(np.arange(pca.n_components_) < pca.rank_, plain_scores(pca, X), 0.0)


def had_missing_cells(pca: PCA) -> bool:
    """Whether the model was fitted where cells were missing, so that its certificate is that of an optimum."""
    return isinstance(pca.certificate_, Optimum)


def refuse_missing_cells(pca: PCA) -> None:
    """Refuse a model whose variances are those of expected cells and noise, not of the rows in any table."""
    if had_missing_cells(pca):
        raise ValueError(
            "The model was fitted where cells were missing, and this needs a fit to complete rows: F = pca.impute(X), "
            "PCA(...).fit(F). A table filled so varies too little: to see by how much, draw tables with "
            "multiple_imputation, fit and look at each of them, or use the complete rows alone."
        )


def refuse_lost_variances(pca: PCA) -> None:
    """Refuse a model whose variances are beyond float64, of which the fit has warned."""
    lam, sigma = to_numpy(pca.explained_variance_, float), to_numpy(pca.singular_values_, float)
    if np.any(~np.isfinite(lam) | ((lam < np.finfo(float).tiny) & (sigma > 0))):
        raise ValueError(
            "The variances of this model are too large or too small for float64, and this is made of them. Multiply "
            "the data by a constant to bring them near 1, and fit again."
        )


def refuse_no_components(pca: PCA) -> None:
    """Refuse a model of 0 components."""
    if pca.n_components_ == 0:
        raise ValueError(
            "The model has no component: n_components was 0, or a rule that found nothing above the noise. Fit "
            "PCA(n_components=1) or more to look at directions all the same."
        )


def float_rows(source: Source, block: Block) -> Any:
    """Values of a block in float64: a CSR matrix of a sparse source, else a NumPy array."""
    return block.values.astype(np.float64) if source.sparse else to_numpy(block.values, float)


def dense_rows(source: Source) -> Array:
    """All rows in one float64 array; for few of them."""
    return np.concatenate([to_numpy(block.values, float) for block in source.blocks()])


def open_training_rows(
    pca: PCA, X: Any, sample_weight: Any = None, *, incomplete: bool = False
) -> tuple[Source, Array]:
    """Open X and its frequencies, and make sure that the model was fitted on it: same columns, same Σw, same mean.

    A fit to rows with missing cells is refused, unless the caller can deal with it (``incomplete``).
    """
    if not incomplete:
        refuse_missing_cells(pca)
    source = open_source(X)
    if source.shape[1] != pca.n_features_in_:
        raise ValueError(f"X has {source.shape[1]} columns, but the model was fitted on {pca.n_features_in_}.")
    w = check_weights(sample_weight, source.shape[0])
    total = _check_total(pca, w)
    if had_missing_cells(pca):
        return source, w

    def sum_rows(block: Block) -> Array:
        rows, part = float_rows(source, block), w[block.start : block.stop]
        used = part > 0  # rows without weight may hold anything
        return np.asarray(part[used] @ rows[used], dtype=np.float64)

    mean, expected = source.reduce(sum_rows, np.add) / total, to_numpy(pca.mean_, float)
    spread = variable_scale(pca) * np.sqrt(float(np.max(to_numpy(pca.explained_variance_), initial=0.0)))
    other = np.flatnonzero(~(np.abs(mean - expected) <= SAME * (np.abs(expected) + spread)))  # NaN is other too
    if len(other):
        j, name = int(other[0]), feature_names(pca)[other[0]]
        if not np.isfinite(mean[j]):
            raise ValueError(f"X has missing or infinite values in column {name!r}, and this needs complete rows.")
        raise ValueError(
            f"X is not what the model was fitted on: the mean of {name!r} is {mean[j]:g} and was "
            f"{expected[j]:g}. Hand in the rows, and the sample_weight, of the fit."
        )
    return source, w


def _check_total(pca: PCA, w: Array) -> float:
    """Return Σw, which must be that of the fit."""
    total = float(w.sum())
    if not np.isclose(total, pca._weight, rtol=1e-9):
        raise ValueError(
            f"X has {total:g} rows (sum of the weights), but the model was fitted on {pca._weight:g}: hand in the "
            "rows, and the sample_weight, of the fit; supplementary_rows describes other rows."
        )
    return total


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """Rows as the model sees them, d = (x − x̄)/s, in what describes them.

    Attributes
    ----------
    scores : ndarray of shape (n, k)
        z = Vᵀd, and 0 on components without variance, whose directions are arbitrary.
    weights : ndarray of shape (n,)
        Frequencies of the rows, 1 where none were given.
    row_squares, column_squares : ndarray of shape (n,), (p,)
        ‖d‖² of each row and Σ w d² of each column, both divided by unit².
    unit : float
        A power of two near the size of the data, so that the squares of 1e200 are no infinity.
    """

    scores: Array
    weights: Array
    row_squares: Array
    column_squares: Array
    unit: float

    @property
    def cos2(self) -> Array:
        """z²/‖d‖², and 0 for a row at the centre."""
        squares = np.square(self.scores / self.unit)
        # a projection is no longer than what it projects; the maximum holds against rounding
        return ratio(squares, np.maximum(self.row_squares, squares.sum(axis=1))[:, None])

    @property
    def distances(self) -> Array:
        """‖d‖ of each row."""
        return np.asarray(self.unit * np.sqrt(self.row_squares))


def project_rows(pca: PCA, X: Any, sample_weight: Any = None, *, why_whole: str = LENGTHS) -> ProjectedRows:
    """Read the rows of X once, block by block; a row with missing cells is refused, with the reason why."""
    source = open_source(X)
    w = check_weights(sample_weight, source.shape[0])
    sigma = float(np.max(to_numpy(pca.singular_values_), initial=0.0))
    unit = 2.0 ** math.frexp(sigma)[1] if 0.0 < sigma < math.inf else 1.0
    mean, scale, names = to_numpy(pca.mean_, float), variable_scale(pca) * unit, source.feature_names
    Z: list[Array] = []
    rows: list[Array] = []
    columns = np.zeros(source.shape[1])
    for block in source.blocks():
        values, part = float_rows(source, block), w[block.start : block.stop]
        # first, as it refuses what is no row of this model
        Z.append(component_scores(pca, SparseSource(values, names) if source.sparse else DenseSource(values, names)))
        if source.sparse:  # entries stored count (x − m)²/s², the others m²/s²
            zero, stored, present = (mean / scale) ** 2, values.copy(), values.copy()
            stored.data = ((values.data - mean[values.indices]) / scale[values.indices]) ** 2
            present.data = np.ones_like(values.data)
            by_row = np.asarray(stored.sum(axis=1)).ravel() + (zero.sum() - present @ zero)
            rows.append(np.maximum(by_row, 0.0))
            columns += np.asarray(part @ stored + (part.sum() - part @ present) * zero).ravel()
        else:
            squares = ((values - mean) / scale) ** 2
            rows.append(squares.sum(axis=1))
            columns += part @ squares
        bad = np.flatnonzero(np.isnan(rows[-1]))  # such a row has scores, by conditional expectation, but no length
        if len(bad):
            j = int(np.argmax(np.isnan(to_numpy(values[bad[:1]]))[0]))
            name = f" ({names[j]!r})" if names else ""
            raise ValueError(
                f"X contains NaN: row {block.start + bad[0] + 1}, column {j + 1}{name}, counted from 1. {why_whole} "
                "Leave such rows out, or fill them in first, with pca.impute(X) say."
            )
    if not Z:
        raise ValueError("X has no rows.")
    return ProjectedRows(np.concatenate(Z), w, np.concatenate(rows), columns, unit)


def as_matrix(data: Any, what: str) -> tuple[Array, tuple[str, ...] | None]:
    """A table, or one column, as a float64 array, and its names; a NaN or inf is refused by its place."""
    names: tuple[str, ...] | None
    data = convert_to_numpy(data)
    if isinstance(data, (list, tuple)) or getattr(data, "ndim", 2) == 1:
        column: Array = np.asarray(data, dtype=np.float64)
        values = column[:, None] if column.ndim == 1 else column
        own = getattr(data, "name", None)
        names = (str(own),) if own else None
    else:
        source = open_source(data)
        values = dense_rows(source)
        names = None if source.feature_names is None else tuple(source.feature_names)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = (int(place) for place in bad[0])
        name = f" ({names[j]!r})" if names else ""
        raise ValueError(
            f"{what} contains {values[i, j]}: row {i + 1}, column {j + 1}{name}, counted from 1. "
            "Remove such rows or fill them in."
        )
    return values, names


def standardise(X: Array, w: Array) -> tuple[Array, Array, Array]:
    """Columns less their mean and divided by √(Σwx²/Σw); constant ones become 0. And mean and root."""
    origin = X[0]
    shift = w @ (X - origin) / w.sum()
    D = (X - origin) - shift
    peak = np.abs(D[w > 0]).max(axis=0)
    dust = 2.0**-48 * np.abs(X).max(axis=0)
    D = ratio(D * (peak > dust), peak)  # squares of numbers near 1 neither overflow nor vanish
    root = np.sqrt(w @ D**2 / w.sum())
    return ratio(D, root), origin + shift, peak * root


# attributes that are columns of a table, where they are called by their singular
NUMBERS = "coordinates", "correlations", "contributions", "cos2", "v_test", "deviations", "distances", "weights"


@dataclass(frozen=True, eq=False, repr=False)
class Elements:
    """Things that lie in the space of the components, with some numbers for each of them on each component.

    Attributes
    ----------
    names : tuple of str or None
        The elements, where they have names.
    coordinates, cos2 : ndarray of shape (m, k)
        Where they lie, and how much of each of them a component shows.
    """

    order: ClassVar[str] = "cos2"  # the column by which elements are sorted

    names: tuple[str, ...] | None
    coordinates: Array
    cos2: Array

    def labels(self) -> dict[str, Any]:
        """Return the columns of the table that say which element a line is about."""
        return {"name": list(range(len(self.coordinates)) if self.names is None else self.names)}

    def table(self, component: int | None = None) -> dict[str, Any]:
        """Return the numbers as columns, ready for ``pandas.DataFrame``.

        Parameters
        ----------
        component : int, optional
            One component, counted from 0, with the elements that matter most to it first. By default all components,
            side by side, and the elements in their own order.

        Returns
        -------
        dict
            Names of columns and their values.
        """
        k, columns = self.coordinates.shape[1], dict(self.labels())
        numbers = {name.removesuffix("s"): vars(self)[name] for name in NUMBERS if name in vars(self)}
        if component is None:
            for name, value in numbers.items():
                if value.ndim == 2:
                    columns |= {f"{name}_{pc}": value[:, j] for j, pc in enumerate(component_names(k))}
            return columns | {name: value for name, value in numbers.items() if value.ndim == 1}
        if not -k <= component < k:
            raise ValueError(f"component={component} does not exist: there are {k}, counted from 0.")
        first = np.argsort(-np.abs(numbers[self.order][:, component]), kind="stable")
        columns = {name: [values[i] for i in first] for name, values in columns.items()}
        one = {name: value[:, component] if value.ndim == 2 else value for name, value in numbers.items()}
        return columns | {name: value[first] for name, value in one.items()}

    def __repr__(self) -> str:
        size, k = self.coordinates.shape
        kind = re.sub("(?<=[a-z])[A-Z]", lambda capital: f" {capital[0].lower()}", type(self).__name__)
        head = f"{kind}: {size} on {k} component{'s' if k != 1 else ''}"
        return f"{head}; on pca0, by {self.order}:\n{text_table(self.table(0))}" if size and k else head


@dataclass(frozen=True, eq=False, repr=False)
class Eigenvalues(Tabular):
    """The variances of the components, and their shares of the whole.

    Attributes
    ----------
    names : tuple of str
        The components.
    variances : ndarray of shape (k,)
        λ.
    percentages, cumulative : ndarray of shape (k,)
        100 λ/Σλ, with all variances in the sum, and the running sum of these.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import Eigenvalues
    >>> Eigenvalues(("pca0", "pca1"), np.array([3.0, 1.0]), np.array([75.0, 25.0]), np.array([75.0, 100.0]))
    Eigenvalues:
      name  variance  percent  cumulative
      pca0         3       75          75
      pca1         1       25         100
    """

    names: tuple[str, ...]
    variances: Array
    percentages: Array
    cumulative: Array

    def table(self) -> dict[str, Any]:
        """Return the columns name, variance, percent and cumulative, ready for ``pandas.DataFrame``."""
        numbers = {"variance": self.variances, "percent": self.percentages, "cumulative": self.cumulative}
        return {"name": list(self.names)} | numbers

    def _title(self) -> str:
        return "Eigenvalues:"


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Elements):
    """The variables of a PCA, seen from its components.

    Attributes
    ----------
    names : tuple of str
        The variables.
    coordinates : ndarray of shape (p, k)
        Loadings v√λ.
    correlations : ndarray of shape (p, k)
        Correlation of each variable with each component; 0 for a constant variable.
    contributions : ndarray of shape (p, k)
        100 v²: the percentage of a component's variance that comes from a variable. Columns sum to 100.
    cos2 : ndarray of shape (p, k)
        Squared correlation: how much of a variable a component shows. Over all components they sum to 1.
    deviations : ndarray of shape (p,)
        Standard deviations of the variables as the PCA saw them: 1 where it scaled them.
    """

    order: ClassVar[str] = "contribution"

    correlations: Array
    contributions: Array
    deviations: Array


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Elements):
    """The rows a PCA was fitted to, seen from its components.

    Attributes
    ----------
    names : tuple of str or None
        The rows, where they have names.
    coordinates : ndarray of shape (n, k)
        Scores z = Vᵀ(x − x̄)/s.
    contributions : ndarray of shape (n, k)
        100 wz²/Σwz²: the percentage of a component's variance that comes from a row. Columns sum to 100, or are 0 for
        a component without variance.
    cos2 : ndarray of shape (n, k)
        z²/d²: how much of the row's distance from the centre a component shows; 0 for a row at the centre.
    distances : ndarray of shape (n,)
        d = ‖(x − x̄)/s‖.
    """

    order: ClassVar[str] = "contribution"

    contributions: Array
    distances: Array


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What :func:`gramian.analysis.describe` finds: ``columns``, ``rows`` and ``eigenvalues``.

    Parameters
    ----------
    columns : Columns
        Coordinates, correlations, contributions and cos² of the variables.
    rows : Rows
        The same of the rows.
    eigenvalues : Eigenvalues
        Variances, with their shares.
    """

    columns: Columns
    rows: Rows
    eigenvalues: Eigenvalues

    def table(self) -> dict[str, Any]:
        """Return columns and rows below each other, in what they share, ready for ``pandas.DataFrame``."""
        parts = {"column": self.columns.table(), "row": self.rows.table()}
        kinds = [kind for kind, part in parts.items() for _ in part["name"]]
        shared = [key for key in parts["column"] if key in parts["row"]]
        return {"kind": kinds} | {key: [*parts["column"][key], *parts["row"][key]] for key in shared}

    def __repr__(self) -> str:
        return f"{self.eigenvalues!r}\n{self.columns!r}\n{self.rows!r}"


@quiet_blas()
def loadings(pca: PCA) -> Array:
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
    >>> from gramian.analysis import loadings
    >>> loadings(PCA(2, scale=True).fit(load_iris().data)).round(3)
    array([[ 0.89 ,  0.361],
           [-0.46 ,  0.883],
           [ 0.992,  0.023],
           [ 0.965,  0.064]])
    """
    pca = convert_to_numpy(pca)
    return np.asarray(to_numpy(pca.components_, float).T * deviations(pca))


@quiet_blas()
def correlations(pca: PCA, X: Any = None, sample_weight: Any = None) -> Array:
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
    >>> from gramian.analysis import correlations
    >>> X = load_iris().data
    >>> correlations(PCA(2).fit(X), X).round(3)
    array([[ 0.897,  0.391],
           [-0.399,  0.825],
           [ 0.998, -0.048],
           [ 0.967, -0.049]])
    """
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    refuse_missing_cells(pca)
    if X is not None:
        spread = _measure_spread(pca, _project_training_rows(pca, X, sample_weight))
    elif pca.scale_ is not None:
        spread = np.ones(pca.n_features_in_)
    elif pca.noise_variance_ == 0.0:  # all components are there
        spread = np.linalg.norm(loadings(pca), axis=1)
    else:
        raise ValueError(
            f"A PCA of {pca.n_components_} components without scale does not know the standard deviations of the "
            "variables. Pass the rows it was fitted to as X, or fit with all components or scale=True."
        )
    return _correlations(pca, spread)


@quiet_blas()
def describe(pca: PCA, X: Any, sample_weight: Any = None, *, row_labels: Sequence[Any] | None = None) -> Reading:
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
        The rows it was fitted to; :func:`gramian.analysis.supplementary_rows` is for others.
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
    >>> from gramian.analysis import describe
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
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    refuse_missing_cells(pca)
    seen = _project_training_rows(pca, X, sample_weight)
    spread = _measure_spread(pca, seen)
    r, V = _correlations(pca, spread), to_numpy(pca.components_, float).T
    columns = Columns(feature_names(pca), loadings(pca), r**2, r, 100 * V**2, spread)
    squares = seen.weights[:, None] * np.square(seen.scores / seen.unit)
    share = 100 * ratio(squares, squares.sum(axis=0))
    rows = Rows(row_names(X, row_labels, len(share)), seen.scores, seen.cos2, share, seen.distances)
    variances, ratios = to_numpy(pca.explained_variance_, float), to_numpy(pca.explained_variance_ratio_, float)
    shares = Eigenvalues(component_names(len(variances)), variances, 100 * ratios, 100 * np.cumsum(ratios))
    return Reading(columns, rows, shares)


def warn_unscaled(deviations: npt.ArrayLike, names: Sequence[str]) -> str | None:
    """Say where the first component of columns that were not scaled is little more than one of them.

    Examples
    --------
    >>> from gramian.pca.interpret import warn_unscaled
    >>> warn_unscaled([6.0, 124.0], ["mpg", "disp"]).partition(":")[0]
    'The columns seem to have unlike units, and were not scaled'
    """
    remedy = "Divide each column by its standard deviation (--scale on the command line, scale=True in Python)"
    return warn_of_units(deviations, names, "and decides the first component", remedy)


def _correlations(pca: PCA, spread: Array) -> Array:
    return np.clip(ratio(loadings(pca), spread[:, None]), -1.0, 1.0)


def _measure_spread(pca: PCA, seen: ProjectedRows) -> Array:
    """Standard deviations of the variables as the model saw them; 0 for constant columns, scaled or not."""
    spread = seen.unit * np.sqrt(seen.column_squares / (pca._weight - 1.0))
    if pca.scale_ is not None:  # scaled columns have 1, constant ones were left alone
        return np.where(spread > 0.5, 1.0, 0.0)
    return np.where(spread <= CONSTANT * np.abs(to_numpy(pca.mean_, float)), 0.0, spread)


def _project_training_rows(pca: PCA, X: Any, sample_weight: Any) -> ProjectedRows:
    """Project the rows, and refuse those that are not the ones the model was fitted to."""
    seen = project_rows(pca, X, sample_weight)
    _check_total(pca, seen.weights)
    found = seen.weights @ np.square(seen.scores / seen.unit)
    fitted = np.square(to_numpy(pca.singular_values_, float) / seen.unit)
    off = np.abs(found - fitted) > MISMATCH * fitted + DUST * fitted.max(initial=0.0)
    if off.any():
        j = int(np.argmax(off))
        raise ValueError(
            f"The scores of X on component {j + 1} have {found[j] / fitted[j] if fitted[j] else np.inf:.4g} times the "
            "variance of the fit. Pass the rows and the sample_weight the model was fitted with; supplementary_rows "
            "describes other rows."
        )
    return seen


ALPHAS = {"form": 1.0, "covariance": 0.0, "symmetric": 0.5}
SCALINGS = {
    1.0: "form biplot: distances between rows are those of the data, as far as these components show them",
    0.0: "covariance biplot: inner products of columns are covariances, and their angles correlations",
    0.5: "symmetric biplot: the singular values are shared equally; neither distances nor angles are the data's",
}


@dataclass(frozen=True, eq=False, repr=False)
class Biplot(Tabular):
    """Coordinates of a biplot.

    Attributes
    ----------
    rows : ndarray of shape (n, m)
        Points.
    columns : ndarray of shape (p, m)
        Arrows.
    alpha : float
        Share of the singular values in the rows.
    components : tuple of int
        The components drawn, counted from 0.
    names : tuple of str
        The variables.
    row_names : tuple of str or None
        The rows, where they have names.
    explained : ndarray of shape (m,)
        Fractions of the variance that the components drawn explain.
    scaling : str
        What may be read from the picture, in words.
    """

    rows: Array
    columns: Array
    alpha: float
    components: tuple[int, ...]
    names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    explained: Array
    scaling: str

    def table(self) -> dict[str, Any]:
        """Return rows and columns below each other, ready for ``pandas.DataFrame``."""
        points = list(range(len(self.rows)) if self.row_names is None else self.row_names)
        kinds = ["row"] * len(self.rows) + ["column"] * len(self.columns)
        both = np.concatenate([self.rows, self.columns])
        return {"name": [*points, *self.names], "kind": kinds} | self._axes(both)

    def _axes(self, values: Array) -> dict[str, Any]:
        return {f"pca{c}": values[:, j] for j, c in enumerate(self.components)}

    def _title(self) -> str:
        share = ", ".join(f"{100 * x:.1f}%" for x in self.explained)
        head = f"Biplot of {len(self.rows)} rows and {len(self.columns)} columns (variance shown: {share})"
        return f"{head}\n  {self.scaling}"

    def _shown(self) -> dict[str, Any]:
        return {"name": list(self.names)} | self._axes(self.columns)


@quiet_blas()
def biplot(
    pca: PCA, X: Any, alpha: float | str = 1.0, components: Sequence[int] = (0, 1), *, deviations: bool = False
) -> Biplot:
    r"""Coordinates of rows and variables whose inner products approximate the centred (and scaled) data.

    .. math:: G = Z\,\Sigma^{\alpha-1} = U\Sigma^\alpha,\qquad H = V\,\Sigma^{1-\alpha},\qquad
        GH^T = U\Sigma V^T \approx (X-1\bar x^T)\,\mathrm{diag}(1/s)

    (Gabriel 1971.) The product is the best approximation by as many dimensions where the components are the first.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p)
        The rows to draw.
    alpha : float or {"form", "covariance", "symmetric"}, default=1.0
        1 or "form" is the form biplot, which keeps distances between rows; 0 or "covariance" the covariance biplot,
        which keeps covariances between variables; 0.5 or "symmetric" the symmetric one.
    components : sequence of int, default=(0, 1)
        Which components, counted from 0.
    deviations : bool, default=False
        Use the standard deviations √λ = σ/√(n−1) in the place of the singular values. Products are the same; with
        ``alpha=0`` rows are then standardised scores, and columns the loadings, whose inner products are covariances
        and not n − 1 times that.

    Returns
    -------
    Biplot
        Coordinates, with what may be read from them in words. A component without variance has rows of 0.

    Notes
    -----
    R's ``biplot(prcomp(X), scale=1-alpha)`` uses √(nλ) where this uses σ = √((n−1)λ): its rows are smaller, and its
    columns larger, by (n/(n−1))^((1−α)/2). Its ``pc.biplot=TRUE`` is ``deviations=True`` for α = 0, and
    multiplies the rows by √n for every α.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis import biplot
    >>> X = load_iris().data
    >>> pca = PCA(2).fit(X)
    >>> picture = biplot(pca, X, alpha="symmetric")
    >>> bool(np.allclose(picture.rows @ picture.columns.T, pca.inverse_transform(pca.transform(X)) - pca.mean_))
    True
    >>> print(picture.scaling)
    symmetric biplot: the singular values are shared equally; neither distances nor angles are the data's
    """
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    refuse_no_components(pca)
    chosen = [int(c) for c in components]
    if not chosen or not all(0 <= c < pca.n_components_ for c in chosen):
        raise ValueError(f"components={tuple(components)}: the model has components 0 to {pca.n_components_ - 1}.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"components={tuple(chosen)} names one twice.")
    share = ALPHAS.get(alpha) if isinstance(alpha, str) else alpha
    if share is None or isinstance(share, bool) or not 0.0 <= share <= 1.0:
        raise ValueError(f"alpha must be between 0 and 1, or one of {', '.join(ALPHAS)}; got {alpha!r}.")
    share = float(share)
    sigma = to_numpy(pca.singular_values_, float)[chosen] / (math.sqrt(pca._weight - 1.0) if deviations else 1.0)
    spread = sigma ** (1.0 - share)
    rows = component_scores(pca, X)[:, chosen] * ratio(1.0, spread)
    columns = to_numpy(pca.components_, float).T[:, chosen] * spread
    explained = to_numpy(pca.explained_variance_ratio_, float)[chosen]
    words = SCALINGS.get(share, "biplot between form (alpha = 1) and covariance (alpha = 0)")
    return Biplot(rows, columns, share, tuple(chosen), feature_names(pca), row_names(X), explained, words)


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

    correlations: Array


@quiet_blas()
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
    return SupplementaryRows(row_names(X, row_labels, len(seen.scores)), seen.scores, seen.cos2, seen.distances)


@quiet_blas()
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
    return SupplementaryColumns(labels, coordinates, r**2, r)


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

    order: ClassVar[str] = "v_test"

    variables: tuple[str, ...]
    v_test: Array
    distances: Array
    weights: Array
    eta2: Array
    eta2_names: tuple[str, ...]

    def labels(self) -> dict[str, Any]:
        """Return the columns that say which category a line is about."""
        return super().labels() | {"variable": list(self.variables)}

    def eta2_table(self) -> dict[str, Any]:
        """Return η² as columns, ready for ``pandas.DataFrame``."""
        components = component_names(self.eta2.shape[1])
        return {"variable": list(self.eta2_names)} | {pc: self.eta2[:, j] for j, pc in enumerate(components)}

    def __repr__(self) -> str:
        return f"{super().__repr__()}\nη² of the variables:\n{text_table(self.eta2_table())}"


@quiet_blas()
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
    return Categories(names, coordinates, cos2, variables, v, distances, n_g, eta2, columns)


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
            place = f"labels: row {i + 1} of {column!r} is"
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
