"""Rows and variables in one picture: coordinates whose inner products are the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gramian.inputs.checks import check_weights
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.model import (
    Elements,
    FittedPCA,
    component_names,
    feature_names,
    plain_scores,
    ratio,
    text_table,
    variable_scale,
)
from gramian.results import Optimum
from gramian.sources import DenseSource, Source, SparseSource, open_source

__all__ = [
    "Biplot",
    "Columns",
    "Eigenvalues",
    "Reading",
    "Rows",
    "Scored",
    "Standardised",
    "as_matrix",
    "biplot",
    "component_scores",
    "correlations",
    "describe",
    "deviations",
    "incomplete_fit",
    "loadings",
    "refuse_no_components",
    "row_names",
    "scored",
    "standardised",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

# Why rows must be whole.
LENGTHS = "Distances and squared cosines need whole rows."
EXPECTED = "The scores of such a row are expectations, which vary less than scores do and would bias the correlations."


@dataclass(frozen=True, eq=False)
class Scored:
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

    scores: Matrix
    weights: Vector
    row_squares: Vector
    column_squares: Vector
    unit: float

    @property
    def cos2(self) -> Matrix:
        """z²/‖d‖², and 0 for a row at the centre."""
        squares = np.square(self.scores / self.unit)
        # a projection is no longer than what it projects; the maximum holds against rounding
        lengths = np.maximum(self.row_squares, squares.sum(axis=1))[:, None]
        return np.asarray(np.divide(squares, lengths, out=np.zeros_like(squares), where=lengths > 0))

    @property
    def distances(self) -> Vector:
        """‖d‖ of each row."""
        return np.asarray(self.unit * np.sqrt(self.row_squares))


@dataclass(frozen=True, eq=False)
class Standardised:
    """Columns of mean 0 and mean square 1, and what they were before."""

    values: Matrix
    mean: Vector
    spread: Vector


def deviations(pca: FittedPCA) -> Vector:
    """Standard deviations σ/√(Σw − 1) of the scores: √λ, without the squares that may not be representable."""
    return np.asarray(np.asarray(pca.singular_values_, dtype=np.float64) / math.sqrt(pca._weight - 1.0))


def incomplete_fit(pca: FittedPCA) -> bool:
    """Whether the model was fitted where cells were missing, so that its certificate is that of an optimum."""
    return isinstance(getattr(pca, "certificate_", None), Optimum)


def refuse_no_components(pca: FittedPCA) -> None:
    """Refuse a model of 0 components."""
    if pca.n_components_ == 0:
        raise ValueError(
            "The model has no component: n_components was 0, or a rule that found nothing above the noise. Fit "
            "PCA(n_components=1) or more to look at directions all the same."
        )


def row_names(X: Any, labels: Sequence[Any] | None = None, n: int | None = None) -> tuple[str, ...] | None:
    """Names of the n rows: the labels given, else the index of a frame that says more than a number."""
    if labels is not None:
        if len(labels) != n:
            raise ValueError(f"row_labels has {len(labels)} names for {n} rows.")
        return tuple(str(label) for label in labels)
    index = getattr(X, "index", None)
    if index is None or not hasattr(X, "columns") or type(index).__name__ == "RangeIndex":
        return None
    return tuple(str(name) for name in index)


def as_matrix(data: Any, what: str) -> tuple[Matrix, tuple[str, ...] | None]:
    """A table, or one column, as a float64 array, and its names; a NaN or inf is refused by its place."""
    names: tuple[str, ...] | None
    data = convert_to_numpy(data)
    if isinstance(data, (list, tuple)) or getattr(data, "ndim", 2) == 1:
        column: Matrix = np.asarray(data, dtype=np.float64)
        values = column[:, None] if column.ndim == 1 else column
        own = getattr(data, "name", None)
        names = (str(own),) if own else None
    else:
        source = open_source(data)
        values = np.concatenate([_dense(block.values) for block in source.blocks()])
        names = None if source.feature_names is None else tuple(source.feature_names)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = (int(place) for place in bad[0])
        name = f" ({names[j]!r})" if names else ""
        raise ValueError(
            f"{what} contains {values[i, j]}: row {i}, column {j}{name}, counted from 0. "
            "Remove such rows or fill them in."
        )
    return values, names


def standardised(X: Matrix, w: Vector) -> Standardised:
    """Columns less their mean and divided by √(Σwx²/Σw); those that are constant up to rounding become 0."""
    origin = X[0]
    shift = w @ (X - origin) / w.sum()
    D = (X - origin) - shift
    peak = np.abs(D[w > 0]).max(axis=0)
    dust = 2.0**-48 * np.abs(X).max(axis=0)
    D = ratio(D * (peak > dust), peak)  # squares of numbers near 1 neither overflow nor vanish
    root = np.sqrt(w @ D**2 / w.sum())
    return Standardised(ratio(D, root), origin + shift, peak * root)


def component_scores(pca: FittedPCA, X: Any) -> Matrix:
    """Scores of rows, and 0 on components without variance, whose directions are arbitrary."""
    return np.where(np.arange(pca.n_components_) < pca.rank_, plain_scores(pca, X), 0.0)


def scored(pca: FittedPCA, X: Any, sample_weight: Any = None, *, why_whole: str = LENGTHS) -> Scored:
    """Read the rows of X once, block by block; a row with missing cells is refused, with the reason why."""
    source = open_source(X)
    w = check_weights(sample_weight, source.shape[0])
    mean, scale = np.asarray(pca.mean_, dtype=np.float64), variable_scale(pca)
    unit = _unit(pca)
    Z: list[Matrix] = []
    rows: list[Vector] = []
    columns = np.zeros(source.shape[1])
    for block in source.blocks():
        part = _as_source(block.values, source)
        Z.append(component_scores(pca, part))  # first, as it refuses what is no row of this model
        squares = _sparse_squares if source.sparse else _dense_squares
        by_row, by_column = squares(part.values, mean, scale * unit, w[block.start : block.stop])
        _refuse_missing(by_row, part, block.start, why_whole)
        rows.append(by_row)
        columns += by_column
    if not Z:
        raise ValueError("X has no rows.")
    return Scored(np.concatenate(Z), w, np.concatenate(rows), columns, unit)


def _refuse_missing(squares: Vector, rows: DenseSource | SparseSource, start: int, why: str) -> None:
    """Refuse a row that has scores, by conditional expectation, but no length."""
    bad = np.flatnonzero(np.isnan(squares))
    if len(bad):
        j = int(np.argmax(np.isnan(_dense(rows.values[bad[:1]]))[0]))
        name = f" ({rows.feature_names[j]!r})" if rows.feature_names else ""
        raise ValueError(
            f"X contains NaN: row {start + bad[0]}, column {j}{name}, counted from 0. {why} Leave such rows out, or "
            "fill them in first, with pca.impute(X) say."
        )


def _as_source(values: Any, whole: Source) -> DenseSource | SparseSource:
    """A block as float64 rows that keep the names of the columns."""
    if whole.sparse:
        return SparseSource(values.astype(np.float64), whole.feature_names)
    return DenseSource(_dense(values), whole.feature_names)


def _dense(values: Any) -> Matrix:
    """Rows of any kind as a float64 NumPy array."""
    values = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values, dtype=np.float64)


def _unit(pca: FittedPCA) -> float:
    sigma = float(np.max(np.asarray(pca.singular_values_), initial=0.0))
    return 2.0 ** math.frexp(sigma)[1] if 0.0 < sigma < math.inf else 1.0


def _dense_squares(X: Matrix, mean: Vector, scale: Vector, w: Vector) -> tuple[Vector, Vector]:
    D = ((X - mean) / scale) ** 2
    return D.sum(axis=1), w @ D


def _sparse_squares(X: Any, mean: Vector, scale: Vector, w: Vector) -> tuple[Vector, Vector]:
    """The same of sparse rows: entries stored count (x − m)², the others m²."""
    zero = (mean / scale) ** 2
    stored = X.copy()
    stored.data = ((X.data - mean[X.indices]) / scale[X.indices]) ** 2
    present = X.copy()
    present.data = np.ones_like(X.data)
    by_row = np.maximum(stored.sum(axis=1) + (zero.sum() - present @ zero), 0.0)
    return np.asarray(by_row).ravel(), np.asarray(w @ stored + (w.sum() - w @ present) * zero).ravel()


@dataclass(frozen=True, eq=False, repr=False)
class Eigenvalues:
    """The variances of the components, alone and beside the whole.

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
    >>> from gramian.pca.interpret import Eigenvalues
    >>> Eigenvalues(("pca0", "pca1"), np.array([3.0, 1.0]), np.array([75.0, 25.0]), np.array([75.0, 100.0]))
    Eigenvalues:
      name  variance  percent  cumulative
      pca0         3       75          75
      pca1         1       25         100
    """

    names: tuple[str, ...]
    variances: Vector
    percentages: Vector
    cumulative: Vector

    def table(self) -> dict[str, Any]:
        """Return the columns name, variance, percent and cumulative, ready for ``pandas.DataFrame``."""
        numbers = {"variance": self.variances, "percent": self.percentages, "cumulative": self.cumulative}
        return {"name": list(self.names), **numbers}

    def __repr__(self) -> str:
        return f"Eigenvalues:\n{text_table(self.table())}"


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

    kind: ClassVar[str] = "Columns"
    per_component: ClassVar[dict[str, str]] = {
        "coordinate": "coordinates",
        "correlation": "correlations",
        "contribution": "contributions",
        "cos2": "cos2",
    }
    overall: ClassVar[dict[str, str]] = {"deviation": "deviations"}
    order: ClassVar[str] = "contribution"

    names: tuple[str, ...]
    coordinates: Matrix
    correlations: Matrix
    contributions: Matrix
    cos2: Matrix
    deviations: Vector


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

    kind: ClassVar[str] = "Rows"
    per_component: ClassVar[dict[str, str]] = {
        "coordinate": "coordinates",
        "contribution": "contributions",
        "cos2": "cos2",
    }
    overall: ClassVar[dict[str, str]] = {"distance": "distances"}
    order: ClassVar[str] = "contribution"

    names: tuple[str, ...] | None
    coordinates: Matrix
    contributions: Matrix
    cos2: Matrix
    distances: Vector


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What :func:`~gramian.pca.interpret.describe` finds: ``columns``, ``rows`` and ``eigenvalues``."""

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
    >>> from gramian.pca.interpret import loadings
    >>> loadings(PCA(2, scale=True).fit(load_iris().data)).round(3)
    array([[ 0.89 ,  0.361],
           [-0.46 ,  0.883],
           [ 0.992,  0.023],
           [ 0.965,  0.064]])
    """
    pca = convert_to_numpy(pca)
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
    >>> from gramian.pca.interpret import correlations
    >>> X = load_iris().data
    >>> correlations(PCA(2).fit(X), X).round(3)
    array([[ 0.897,  0.391],
           [-0.399,  0.825],
           [ 0.998, -0.048],
           [ 0.967, -0.049]])
    """
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
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
        The rows it was fitted to; :func:`~gramian.pca.supplementary.supplementary_rows` is for others.
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
    >>> from gramian.pca.interpret import describe
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


FORM = "form biplot: distances between rows are those of the data, as far as these components show them"
COVARIANCE = "covariance biplot: inner products of columns are covariances, and their angles correlations"
SYMMETRIC = "symmetric biplot: the singular values are shared equally; neither distances nor angles are the data's"
ALPHAS = {"form": 1.0, "covariance": 0.0, "symmetric": 0.5}
BETWEEN = "biplot between form (alpha = 1) and covariance (alpha = 0)"


@dataclass(frozen=True, eq=False, repr=False)
class Biplot:
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

    rows: Matrix
    columns: Matrix
    alpha: float
    components: tuple[int, ...]
    names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    explained: Vector
    scaling: str

    def table(self) -> dict[str, Any]:
        """Return rows and columns below each other, ready for ``pandas.DataFrame``."""
        points = list(range(len(self.rows)) if self.row_names is None else self.row_names)
        kinds = ["row"] * len(self.rows) + ["column"] * len(self.columns)
        both = np.concatenate([self.rows, self.columns])
        return {"name": [*points, *self.names], "kind": kinds} | self._axes(both)

    def _axes(self, values: Matrix) -> dict[str, Any]:
        every = component_names(max(self.components) + 1)
        return {every[c]: values[:, j] for j, c in enumerate(self.components)}

    def __repr__(self) -> str:
        share = ", ".join(f"{100 * x:.1f}%" for x in self.explained)
        head = f"Biplot of {len(self.rows)} rows and {len(self.columns)} columns (variance shown: {share})"
        return f"{head}\n  {self.scaling}\n{text_table({'name': list(self.names)} | self._axes(self.columns))}"


def biplot(
    pca: FittedPCA,
    X: Any,
    alpha: float | str = 1.0,
    components: Sequence[int] = (0, 1),
    *,
    deviations: bool = False,
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
    >>> from gramian.pca.interpret import biplot
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
    chosen = _chosen(components, pca.n_components_)
    alpha = _share(alpha)
    sigma = np.asarray(pca.singular_values_, dtype=np.float64)[list(chosen)]
    sigma = sigma / math.sqrt(pca._weight - 1.0) if deviations else sigma
    spread = sigma ** (1.0 - alpha)
    rows = component_scores(pca, X)[:, list(chosen)] * ratio(1.0, spread)
    columns = np.asarray(pca.components_, dtype=np.float64).T[:, list(chosen)] * spread
    explained = np.asarray(pca.explained_variance_ratio_, dtype=np.float64)[list(chosen)]
    words = {1.0: FORM, 0.0: COVARIANCE, 0.5: SYMMETRIC}.get(alpha, BETWEEN)
    return Biplot(rows, columns, alpha, chosen, feature_names(pca), row_names(X), explained, words)


def _share(alpha: float | str) -> float:
    """The exponent, given as a number or by the name of the biplot."""
    if isinstance(alpha, str) and alpha in ALPHAS:
        return ALPHAS[alpha]
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be between 0 and 1, or one of {', '.join(ALPHAS)}; got {alpha!r}.")
    return float(alpha)


def _chosen(components: Sequence[int], k: int) -> tuple[int, ...]:
    chosen = tuple(int(c) for c in components)
    wrong = [c for c in chosen if not 0 <= c < k]
    if wrong or not chosen:
        raise ValueError(f"components={tuple(components)}: the model has components 0 to {k - 1}.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"components={chosen} names one twice.")
    return chosen
