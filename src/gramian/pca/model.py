"""Categorical variables as codes, and sums over their categories."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.inputs.checks import check_weights
from gramian.results import Optimum
from gramian.sources import Block, Source, open_source

__all__ = [
    "Coding",
    "Elements",
    "FittedPCA",
    "Model",
    "Training",
    "coded",
    "component_names",
    "dense_rows",
    "feature_names",
    "float_rows",
    "plain_scores",
    "ratio",
    "text_table",
    "training_rows",
    "variable_scale",
]

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


SAME = 1e-5  # means of the same rows agree to this share of their size and spread, float32 sums included


@dataclass(frozen=True, eq=False)
class Training:
    """Training rows as a source, and their frequencies."""

    source: Source
    weights: Vector

    @property
    def total(self) -> float:
        """Return Σw, the number of rows they stand for."""
        return float(self.weights.sum())


def float_rows(source: Source, block: Block) -> Any:
    """Values of a block in float64: a CSR matrix of a sparse source, else a NumPy array."""
    return block.values.astype(np.float64) if source.sparse else np.asarray(block.values, dtype=np.float64)


def dense_rows(source: Source) -> Matrix:
    """All rows in one float64 array; for few of them."""
    out = np.empty(source.shape)
    for block in source.blocks():
        rows = float_rows(source, block)
        out[block.start : block.stop] = rows.toarray() if source.sparse else rows
    return out


def refuse_incomplete_fit() -> None:
    """Refuse a model fitted to rows with missing cells: filled cells vary less than observed ones would."""
    raise ValueError(
        "The model was fitted where cells were missing, and this needs a fit to complete rows. A table filled by "
        "impute varies too little: draw tables with multiple_imputation, fit and look at each of them, or use the "
        "complete rows alone."
    )


def training_rows(pca: FittedPCA, X: Any, sample_weight: Any = None, *, incomplete: bool = False) -> Training:
    """Open X and make sure that the model was fitted on it: same columns, same Σw, same mean.

    A fit to rows with missing cells is refused, unless the caller can deal with it (``incomplete``).
    """
    missing = isinstance(getattr(pca, "certificate_", None), Optimum)
    if missing and not incomplete:
        refuse_incomplete_fit()
    source = open_source(X)
    if source.shape[1] != pca.n_features_in_:
        raise ValueError(f"X has {source.shape[1]} columns, but the model was fitted on {pca.n_features_in_}.")
    training = Training(source, check_weights(sample_weight, source.shape[0]))
    if not np.isclose(training.total, pca._weight, rtol=1e-9):
        raise ValueError(
            f"X has {training.total:g} rows (sum of the weights), but the model was fitted on {pca._weight:g}: "
            "hand in the rows, and the sample_weight, of the fit."
        )
    if not missing:
        _refuse_other_mean(pca, training)
    return training


def _refuse_other_mean(pca: FittedPCA, training: Training) -> None:
    expected = np.asarray(pca.mean_, dtype=np.float64)
    spread = variable_scale(pca) * np.sqrt(float(np.max(np.asarray(pca.explained_variance_), initial=0.0)))
    mean = _mean(training)
    other = np.flatnonzero(~(np.abs(mean - expected) <= SAME * (np.abs(expected) + spread)))  # NaN is other too
    if len(other):
        j = int(other[0])
        if not np.isfinite(mean[j]):
            raise ValueError(
                f"X has missing or infinite values in column {feature_names(pca)[j]!r}, and this needs complete rows."
            )
        raise ValueError(
            f"X is not what the model was fitted on: the mean of {feature_names(pca)[j]!r} is {mean[j]:g} and was "
            f"{expected[j]:g}. Hand in the rows, and the sample_weight, of the fit."
        )


def _mean(training: Training) -> Vector:
    source, w = training.source, training.weights

    def sums(block: Block) -> Vector:
        rows, part = float_rows(source, block), w[block.start : block.stop]
        used = part > 0  # rows without weight may hold anything
        return np.asarray(part[used] @ rows[used], dtype=np.float64)

    return np.asarray(source.reduce(sums, np.add) / training.total)


Array = npt.NDArray[np.float64]

SHOWN = 10  # lines of a table that is printed


def component_names(k: int) -> tuple[str, ...]:
    """Names of components, counted from 0 as scikit-learn's ``get_feature_names_out`` does: pca0, pca1, …"""
    return tuple(f"pca{j}" for j in range(k))


def ratio(a: Any, b: Any) -> Array:
    """a/b, and 0 where b is 0: what has no variance, or lies at the centre, has no share of anything."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    return np.asarray(np.divide(a, b, out=np.zeros(a.shape), where=b > 0))


def text_table(columns: Mapping[str, Any], limit: int = SHOWN) -> str:
    """Return columns of a table as lines of text, the first ``limit`` of them."""
    size = len(next(iter(columns.values())))
    cells = [[name, *(_cell(x) for x in list(values[:limit]))] for name, values in columns.items()]
    widths = [max(len(cell) for cell in column) for column in cells]
    lines = [
        "  ".join(_aligned(i, cell, widths[i]) for i, cell in enumerate(line)) for line in zip(*cells, strict=True)
    ]
    more = [f"... and {size - limit} more"] if size > limit else []
    return "\n".join(f"  {line}".rstrip() for line in [*lines, *more])


def _aligned(place: int, cell: str, width: int) -> str:
    """Names stand at the left of their column, numbers at the right."""
    return cell.ljust(width) if place == 0 else cell.rjust(width)


def _cell(x: Any) -> str:
    return f"{float(x):.4g}" if isinstance(x, (float, np.floating)) else str(x)


class Elements:
    """Things that lie in the space of the components, with some numbers for each of them on each component."""

    kind: ClassVar[str]
    # what a table calls a number, and the attribute that holds it
    per_component: ClassVar[dict[str, str]]
    overall: ClassVar[dict[str, str]]
    order: ClassVar[str]

    coordinates: Array

    def labels(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table that say which element a line is about."""
        names = getattr(self, "names", None)
        return {"name": list(range(len(self.coordinates)) if names is None else names)}

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
        if component is None:
            return self._wide()
        k = self.coordinates.shape[1]
        if not -k <= component < k:
            raise ValueError(f"component={component} does not exist: there are {k}, counted from 0.")
        key = getattr(self, self.per_component[self.order])[:, component]
        first = np.argsort(-np.abs(key), kind="stable")
        columns: dict[str, Any] = {name: [values[i] for i in first] for name, values in self.labels().items()}
        columns |= {name: getattr(self, of)[first, component] for name, of in self.per_component.items()}
        return columns | {name: getattr(self, of)[first] for name, of in self.overall.items()}

    def _wide(self) -> dict[str, Any]:
        columns: dict[str, Any] = dict(self.labels())
        for name, of in self.per_component.items():
            values = getattr(self, of)
            columns |= {f"{name}_{pc}": values[:, j] for j, pc in enumerate(component_names(values.shape[1]))}
        return columns | {name: getattr(self, of) for name, of in self.overall.items()}

    def __repr__(self) -> str:
        size, k = self.coordinates.shape
        head = f"{self.kind}: {size} on {k} component{'s' if k != 1 else ''}"
        if not size or not k:
            return head
        return f"{head}; on pca0, by {self.order}:\n{text_table(self.table(0))}"


@dataclass(frozen=True, eq=False)
class Coding:
    """Which rows belong to which categories.

    Attributes
    ----------
    columns : tuple of str
        The categorical variables.
    variables, names : tuple of str
        For each category the variable it belongs to, and its own name.
    weights : ndarray of shape (g,)
        Sum of the weights of the category's rows.
    indicator : sparse array of shape (g, n)
        1 where a row belongs to a category.
    """

    columns: tuple[str, ...]
    variables: tuple[str, ...]
    names: tuple[str, ...]
    weights: Vector
    indicator: Any

    def sums(self, values: Matrix) -> Matrix:
        """Sum rows over each category."""
        return np.asarray(self.indicator @ values)

    def block_sums(self, X: Any, part: slice, mean: Vector, w: Vector) -> Matrix:
        """Sum w(x − mean) over each category, for some of the rows, dense or sparse."""
        weighted = self.indicator[:, part] * w
        if sp.issparse(X):
            return np.asarray((weighted @ X).todense() - weighted.sum(axis=1)[:, None] * mean)
        values = X.cpu() if hasattr(X, "cpu") else X
        return np.asarray(weighted @ (np.asarray(values, dtype=np.float64) - mean))

    def by_variable(self, values: Matrix) -> Matrix:
        """Sum numbers of categories over each categorical variable."""
        rows = [[name == column for name in self.variables] for column in self.columns]
        return np.asarray(np.array(rows, dtype=np.float64) @ values)


def coded(labels: Any, w: Vector) -> Coding:
    """Return the categories of each variable, sorted where they can be, less those without weight."""
    columns, table = _columns(labels)
    if len(table) != len(w):
        raise ValueError(f"labels has {len(table)} rows and X has {len(w)}.")
    variables: list[str] = []
    names: list[str] = []
    rows: list[Any] = []
    for j, column in enumerate(columns):
        values = [_hashable(value, i, column) for i, value in enumerate(table[:, j])]
        order = {category: g for g, category in enumerate(_in_order(values, w))}
        codes = np.array([order.get(value, -1) for value in values])
        variables += [column] * len(order)
        names += [str(category) for category in order]
        rows += [np.flatnonzero(codes == g) for g in range(len(order))]
    indicator = _indicator(rows, len(w))
    return Coding(columns, tuple(variables), tuple(names), np.asarray(indicator @ w), indicator)


def _columns(labels: Any) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Names of the categorical variables, and their values as a table of objects."""
    if hasattr(labels, "columns"):
        names = tuple(str(name) for name in labels.columns)
        columns = [np.asarray(labels[name], dtype=object) for name in labels.columns]
        table = np.stack(columns, axis=1) if columns else np.empty((len(labels), 0), dtype=object)
    else:
        table = _table(labels)
        own = getattr(labels, "name", None)
        names = (str(own),) if own else tuple(f"label{j}" for j in range(table.shape[1]))
    if not names:
        raise ValueError("labels has no columns.")
    if len(set(names)) < len(names):
        raise ValueError(f"labels has columns of the same name: {', '.join(names)}. Give each its own.")
    return names, table


def _table(labels: Any) -> npt.NDArray[Any]:
    """Values of one variable, or of several in columns; tuples in a list are categories, not columns."""
    if isinstance(labels, (list, tuple)) and any(isinstance(value, tuple) for value in labels):
        table = np.empty((len(labels), 1), dtype=object)
        table[:, 0] = labels
        return table
    table = np.asarray(labels, dtype=object)
    if table.ndim not in (1, 2):
        raise ValueError(f"labels has shape {table.shape}; expected one category for each row, or columns of them.")
    return table[:, None] if table.ndim == 1 else table


def _hashable(value: Any, row: int, column: str) -> Any:
    """Refuse a missing category by its place (a NaN is not equal to itself, and pandas' NA refuses to say)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        raise ValueError(f"labels: row {row} of {column!r} is missing. Give missing categories a name of their own.")
    if not isinstance(value, Hashable):
        raise ValueError(f"labels: row {row} of {column!r} is a {type(value).__name__}, which names no category.")
    return value


def _in_order(values: list[Any], w: Vector) -> list[Any]:
    seen = list(dict.fromkeys(value for value, weight in zip(values, w, strict=True) if weight > 0))
    try:
        return sorted(seen)
    except TypeError:  # categories of several types: in the order they come
        return seen


def _indicator(rows: list[Any], n: int) -> Any:
    sizes = [len(members) for members in rows]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return sp.csr_array((np.ones(int(ends[-1])), np.concatenate(rows), ends), shape=(len(rows), n))
