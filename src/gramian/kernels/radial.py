r"""Kernels of the distance: tiles of u = ‖s∘(x − z)‖² by matrix multiplication, accurate where that alone is not.

u = ‖f‖² + ‖g‖² − 2f·g with f = s∘(x − o), g = s∘(z − o) runs at the speed of BLAS and is off by a few ε(‖f‖² + ‖g‖²). A
common origin o, the mean of the points, keeps that small whatever the offset of the data. Where u is so small that
this error matters to the kernel, the entry is computed again from the differences of the points as given:
identical points are at distance 0 exactly, and no squared distance is negative.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from gramian.kernels.base import Kernel, Pairs, as_points, as_two_sets, is_sparse, result_dtype, room
from gramian.kernels.inner_product import row_squares

try:
    from numpy.lib.introspect import opt_func_info
except ImportError:  # pragma: no cover  # NumPy 2.0 cannot say, and its eˣ is always vectorised
    opt_func_info = None  # type: ignore[assignment]


Array = npt.NDArray[Any]


def _vectorised(name: str) -> bool:
    """Whether NumPy has a loop of its own for this processor."""
    if opt_func_info is None:  # pragma: no cover
        return False
    loops = opt_func_info(func_name=f"^{name}$").get(name, {}).values()
    return bool(loops) and not any("baseline" in loop["current"] for loop in loops)


exponential: Any = np.exp2 if _vectorised("exp2") else np.exp
RATE = float(np.log2(np.e)) if exponential is np.exp2 else 1.0  # exponential(RATE x) = eˣ


@cache
def lowest(dtype: np.dtype[Any]) -> float:
    """Return an exponent whose exponential is next to the smallest normal number."""
    return (int(np.finfo(dtype).minexp) + 1) * RATE / float(np.log2(np.e))


def at_least(t: Array, floor: float) -> Array:
    """Raise t to the floor in place; most tiles only need the look at their least entry."""
    if t.size and t.min() < floor:
        # an array of floors: NumPy's loop for a single number is half as fast
        np.maximum(t, np.full(t.shape[1], floor, t.dtype), out=t)
    return t


Scale = Any  # a number, or an array of one for each feature

CHUNK = 4096  # entries computed from differences at a time
CROWDED = 8  # a tile with more than one entry in so many to repair is computed anew as a whole


def scale_columns(X: Any, s: Scale) -> Any:
    """The columns of a sparse X times s."""
    return X * s if np.ndim(s) == 0 else sp.csr_array(X @ sp.diags_array(s))


class Radial(Kernel):
    """A kernel f(u) of one scaled squared distance, with f(0) = 1."""

    @property
    def normalised(self) -> bool:
        """k(x, x) = 1, to the last bit."""
        return True

    @abstractmethod
    def scale(self, p: int) -> Scale:
        """s: what differences of p features are multiplied by."""

    @abstractmethod
    def profile(self, t: Array) -> Array:
        """f of u = −t, in place; t ≤ 0."""

    @abstractmethod
    def near(self, ratio: float) -> float:
        """The least u from which |f′(u)| ≤ 1/ratio: beyond it an error of δ·ratio in u moves f by at most δ."""

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points: scaled features about a common origin, and their norms."""
        return RadialPairs(self, X, Z, dtype)

    def diagonal(self, X: Any) -> Array:
        """All ones."""
        X = as_points(X)
        return np.ones(X.shape[0], result_dtype(X, None, None))


class RadialPairs(Pairs):
    """Tiles of a radial kernel."""

    def __init__(self, kernel: Radial, X: Any, Z: Any, dtype: npt.DTypeLike | None) -> None:
        X, Z, self.dtype = as_two_sets(X, Z, dtype)
        self.kernel, self.X, self.Z, self.symmetric = kernel, X, Z, Z is X
        self.shape, p = (X.shape[0], Z.shape[0]), X.shape[1]
        self.scale = kernel.scale(p)
        self.sparse = is_sparse(X) or is_sparse(Z)
        self.origin = 0.0 if self.sparse or not len(Z) else Z.mean(axis=0, dtype=np.float64)
        self.left, self.left_norms = self._features(X, left=True)
        self.right, self.right_norms = self._features(Z, left=False)
        eps = float(np.finfo(self.dtype).eps)
        self.certain = (p + 2) * eps  # no sum of p + 2 products is further off, relative to the sum of the norms
        self.typical = (1 + p**0.5) / 2 * eps  # and few are further off than this
        self.delta = 1e-12 if self.dtype == np.float64 else 1e-5  # error that f may have
        self._peaks: dict[tuple[int, int, bool], float] = {}

    def _features(self, X: Any, left: bool) -> tuple[Any, Array]:
        """Rows (2f, −‖f‖², −1) or (g, 1, ‖g‖²), whose inner product is −u; sparse ones without the norms."""
        with np.errstate(over="ignore"):
            if is_sparse(X):
                F = scale_columns(X.astype(np.float64), self.scale)
            else:
                F = (np.asarray(X, dtype=np.float64) - self.origin) * self.scale
            F = F.astype(self.dtype)
            squares = row_squares(F)
        if not squares.max(initial=0.0) < np.finfo(self.dtype).max / 8:
            raise ValueError(f"Squared distances overflow {self.dtype}: multiply the data by a small constant.")
        if self.sparse:
            return (F * self.dtype.type(2.0) if left else F), squares
        out = np.empty((F.shape[0], F.shape[1] + 2), self.dtype)
        np.multiply(F, 2.0 if left else 1.0, out=out[:, :-2])
        out[:, -2] = -squares if left else 1.0
        out[:, -1] = -1.0 if left else squares
        return out, squares

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        """−u by matrix multiplication, repaired where it must be; then f."""
        t = room(buffers[0], rows, columns)
        if self.sparse:
            product = self.left[rows] @ self.right[columns].T
            t[...] = product.toarray() if is_sparse(product) else product
            t -= self.left_norms[rows, None].astype(self.dtype)
            t -= self.right_norms[columns].astype(self.dtype)
        else:
            np.dot(self.left[rows], self.right[columns].T, out=t)
        same = self.symmetric and rows == columns
        if same:
            t.flat[:: len(t) + 1] = -np.inf  # known, and not to be taken for near-duplicates
        limit = self._limit(rows, columns)
        if t.size and t.max() > -limit:
            self._repair(t, rows, columns, limit)
        if same:
            t.flat[:: len(t) + 1] = 0.0
        return self.kernel.profile(t)

    def _limit(self, rows: slice, columns: slice) -> float:
        """The u below which the product is not good enough for these rows and columns."""
        reach = self._peak(rows, True) + self._peak(columns, False)
        # ... but two units even where all norms are 0, so that a tile of identical points is at distance 0 too
        return float(max(self.certain * reach, self.kernel.near(self.typical * reach / self.delta), 4e-45))

    def _peak(self, part: slice, left: bool) -> float:
        """The largest ‖f‖² of a run of rows, remembered."""
        key = (part.start, part.stop, left)
        if key not in self._peaks:
            norms = self.left_norms if left else self.right_norms
            self._peaks[key] = float(norms[part].max(initial=0.0))
        return self._peaks[key]

    def _repair(self, t: Array, rows: slice, columns: slice, limit: float) -> None:
        """Compute the entries above −limit again: one by one if they are few, else all by a slower, safer way."""
        i, j = np.nonzero(t > -limit)
        if len(i) * CROWDED > t.size and not self.sparse:
            t[...] = self._careful(rows, columns)
            return
        for a in range(0, len(i), CHUNK):
            b, c = i[a : a + CHUNK], j[a : a + CHUNK]
            t[b, c] = -self._from_differences(rows.start + b, columns.start + c)

    def _from_differences(self, i: Array, j: Array) -> Array:
        """u from x_i − z_j in float64: exact subtraction where the points are near each other."""
        if self.sparse:
            X, Z = (sp.csr_array(A, dtype=np.float64)[k] for A, k in ((self.X, i), (self.Z, j)))
            return row_squares(scale_columns(X - Z, self.scale))
        D = (self.X[i].astype(np.float64) - self.Z[j].astype(np.float64)) * self.scale
        return row_squares(D)

    def _careful(self, rows: slice, columns: slice) -> Array:
        """−u for a whole tile, from the differences of the points as given: scaled ones would carry their rounding."""
        X, Z = (np.asarray(A[part], dtype=np.float64) for A, part in ((self.X, rows), (self.Z, columns)))
        if np.ndim(self.scale) == 0:
            return np.asarray(cdist(X, Z, "sqeuclidean") * -(self.scale**2))
        return np.asarray(-cdist(X, Z, "sqeuclidean", w=self.scale**2))


class _Distance(Radial):
    """f(u) = u: the squared distance itself, which is no kernel."""

    def scale(self, p: int) -> Scale:
        return 1.0

    def profile(self, t: Array) -> Array:
        np.negative(t, out=t)
        return np.add(t, 0.0, out=t)  # no −0

    def near(self, ratio: float) -> float:
        return 0.0


def squared_distances(X: Any, Z: Any = None) -> Array:
    """‖x − z‖² of all rows, none negative, those of identical rows 0."""
    return _Distance()(X, Z)
