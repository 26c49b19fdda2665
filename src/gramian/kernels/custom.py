"""Kernels that are not formulas of vectors: a function of two objects or two arrays, a matrix computed elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels.base import Kernel, Pairs, as_points, is_sparse, room

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Callable(Kernel):
    r"""k(x, z) = function(x, z) for objects of any kind: strings, graphs, sets, rows of an array.

    Points are a sequence: a list of objects, or an array or sparse matrix, whose rows are handed over as vectors. The
    function is called once for each pair, by one thread, and half as often where both sets are the same.

    Parameters
    ----------
    function : callable
        Of two objects; returns a number, the same when they are exchanged.
    parameters : tuple of (str, value) pairs, default=()
        Keyword arguments for the function.
    positive_semidefinite : bool, default=True
        What is known of it.

    Examples
    --------
    >>> from gramian.kernels import Callable
    >>> def common(a, b):
    ...     return len(set(a) & set(b))
    >>> Callable(common)(["gram", "ram", "go"])
    array([[4., 3., 1.],
           [3., 3., 0.],
           [1., 0., 2.]])
    """

    function: Any
    parameters: tuple[tuple[str, Any], ...] = ()
    positive_semidefinite: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable with two objects, got {self.function!r}.")
        object.__setattr__(self, "parameters", tuple(dict(self.parameters).items()))

    @property
    def takes_objects(self) -> bool:
        """Anything the function takes."""
        return True

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Take the objects as they are."""
        function = functools.partial(self.function, **dict(self.parameters)) if self.parameters else self.function
        return _ObjectPairs(function, _objects(X), None if Z is None else _objects(Z), dtype)

    def diagonal(self, X: Any) -> Array:
        """function(x, x)."""
        parameters = dict(self.parameters)
        return np.array([float(self.function(x, x, **parameters)) for x in _objects(X)], dtype=np.float64)

    def __repr__(self) -> str:
        return f"Callable({getattr(self.function, '__name__', repr(self.function))})"


class _ObjectPairs(Pairs):
    """One call for each pair."""

    serial = True

    def __init__(self, function: Any, X: Any, Z: Any, dtype: npt.DTypeLike | None) -> None:
        self.function, self.X, self.Z = function, X, X if Z is None else Z
        self.symmetric, self.dtype = Z is None, np.dtype(np.float64 if dtype is None else dtype)
        self.shape = (len(self.X), len(self.Z))

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        tile, same = room(buffers[0], rows, columns), self.symmetric and rows == columns
        for a, x in enumerate(self.X[rows]):
            for b in range(a if same else 0, tile.shape[1]):
                tile[a, b] = self.function(x, self.Z[columns.start + b])
        if same:
            below = np.tril_indices(len(tile), -1)
            tile[below] = tile.T[below]
        return tile


def _objects(X: Any) -> Any:
    """The points as something with a length and slices."""
    if is_sparse(X):
        return list(X.tocsr().toarray())
    return X if isinstance(X, (list, tuple, np.ndarray)) else list(X)


@dataclass(frozen=True, repr=False, eq=False)
class MatrixFunction(Kernel):
    r"""k(X, Z) = function(X, Z), a function of two arrays of rows: such as the kernels of Gaussian processes.

    Parameters
    ----------
    function : callable
        Takes two arrays of rows and returns the matrix of their kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from gramian.kernels import MatrixFunction
    >>> MatrixFunction(RBF(2.0))(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    function: Any

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Hand over rows in float64."""
        return _FunctionPairs(self.function, _dense(X, np.float64), None if Z is None else _dense(Z, np.float64), dtype)

    def diagonal(self, X: Any) -> Array:
        """function(x, x), of a few rows at a time."""
        X = _dense(X, np.float64)
        parts = [np.diagonal(self.function(X[i : i + 64], X[i : i + 64])) for i in range(0, len(X), 64)]
        return np.concatenate(parts) if parts else np.empty(0)

    def __repr__(self) -> str:
        return f"MatrixFunction({self.function!r})"


class _FunctionPairs(_ObjectPairs):
    """One call for each tile."""

    serial = False

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        tile = room(buffers[0], rows, columns)
        tile[...] = self.function(self.X[rows], self.Z[columns])
        return tile


def _dense(X: Any, dtype: npt.DTypeLike | None = None) -> Array:
    X = as_points(X)
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=dtype)


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    r"""The matrix itself: ``k(K)`` is K, of rows for points x and columns for points z.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Precomputed
    >>> Precomputed().diagonal(np.array([[2.0, 1.0], [1.0, 3.0]]))
    array([2., 3.])
    """

    @property
    def has_columns(self) -> bool:
        """False: its columns are those of a matrix of pairs."""
        return False

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Take the matrix as it is."""
        if Z is not None:
            raise ValueError("A precomputed kernel takes one matrix, K, and no Z.")
        return _StoredPairs(_dense(X), dtype)

    def diagonal(self, X: Any) -> Array:
        """The diagonal of a square K."""
        K = _dense(X)
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"A kernel matrix of shape {K.shape} has no diagonal of values k(x, x).")
        return np.array(np.diagonal(K))


class _StoredPairs(Pairs):
    """Views of a matrix in memory; symmetric where it equals its transpose to the last bit."""

    def __init__(self, K: Array, dtype: npt.DTypeLike | None = None) -> None:
        wanted = np.dtype(dtype or (K.dtype if K.dtype == np.float32 else np.float64))
        self.K, self.dtype, self.shape = K.astype(wanted, copy=False), wanted, (K.shape[0], K.shape[1])
        self.symmetric = K.shape[0] == K.shape[1] and bool(np.array_equal(K, K.T))

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        return self.K[rows, columns]
