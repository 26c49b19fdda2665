"""One pass over rows: their scores, their distances from the centre, and the spread of their columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._cards import ground
from gramian.analysis._elements import ratio
from gramian.analysis._model import FittedPCA, plain_scores, variable_scale
from gramian.analysis._weights import frequencies
from gramian.results import Optimum
from gramian.sources import DenseSource, Source, SparseSource, open_source

__all__ = [
    "Scored",
    "Standardised",
    "as_matrix",
    "component_scores",
    "deviations",
    "incomplete_fit",
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
    data = ground(data)
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
    w = frequencies(sample_weight, source.shape[0])
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
