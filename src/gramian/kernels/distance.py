r"""Kernels of a distance: Gaussian, Laplacian, Matérn, rational quadratic, and the chi-squared ones for counts.

Radial kernels are functions of u = ‖s∘(x − z)‖², found by matrix multiplication and accurate where that alone is not:
u = ‖f‖² + ‖g‖² − 2f·g with f = s∘(x − o), g = s∘(z − o) runs at the speed of BLAS and is off by a few ε(‖f‖² + ‖g‖²). A
common origin o, the mean of the points, keeps that small whatever the offset of the data. Where u is so small that
this error matters to the kernel, the entry is computed again from the differences of the points as given:
identical points are at distance 0 exactly, and no squared distance is negative.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.special import gammainc
from sklearn.metrics.pairwise import manhattan_distances

from gramian.kernels.base import (
    RULES,
    SMALLEST,
    UNIT,
    Formula,
    Kernel,
    Normalised,
    Pairs,
    as_points,
    as_two_sets,
    freeze,
    is_sparse,
    mean_row,
    per_feature,
    plain,
    positive,
    refuse_automatic,
    room,
    row_squares,
)

try:
    from numpy.lib.introspect import opt_func_info

    _LOOPS = [loop["current"] for loop in opt_func_info(func_name="^exp2$").get("exp2", {}).values()]
except ImportError:  # pragma: no cover  # NumPy 2.0 cannot say, and its eˣ is always vectorised
    _LOOPS = []

# 2ˣ where NumPy has a loop of its own for it and this processor
exponential: Any = np.exp2 if _LOOPS and not any("baseline" in loop for loop in _LOOPS) else np.exp
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


Array = npt.NDArray[Any]
Scale = Any  # a number, or an array of one for each feature

DELTA = {"float64": 1e-12, "float32": 1e-5}  # error that f may have, relative to its largest value
CHUNK = 4096  # entries computed from differences at a time
CROWDED = 8  # a tile with more than one entry in so many to repair is computed anew as a whole


def scale_columns(X: Any, s: Scale) -> Any:
    """The columns of a sparse X times s."""
    return X * s if np.ndim(s) == 0 else sp.csr_array(X @ sp.diags_array(s))


class Radial(Normalised):
    """A kernel f(u) of one scaled squared distance, with f(0) = 1."""

    @abstractmethod
    def scale(self, p: int) -> Scale:
        """s: what differences of p features are multiplied by."""

    @abstractmethod
    def profile(self, t: Array) -> Array:
        """f of u = −t, in place; t ≤ 0."""

    @abstractmethod
    def profile_less_one(self, t: Array) -> Array:
        """f − 1 of u = −t, in place, to a small relative error."""

    @abstractmethod
    def least_flat_argument(self, ratio: float) -> float:
        """The least u from which |f′(u)| ≤ 1/ratio: beyond it an error of δ·ratio in u moves f by at most δ."""

    @property
    @abstractmethod
    def steepest(self) -> float:
        """The largest |f′(u)|."""

    def size(self, u: float) -> float:
        """The largest |f| of squared distances up to u."""
        return 1.0

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points: scaled features about a common origin, and their norms."""
        return RadialPairs(self, X, Z, dtype)

    def less_one(self) -> Kernel:
        """f − 1."""
        return _RadialLessOne(self)

    def typical_distance(self, X: Any, origin: Any) -> float:
        """1 − f of the mean u between a row and the origin."""
        u = self._squares_about(X, origin)
        return -float(self.profile_less_one(np.array([-np.mean(u)]))[0]) if len(u) else 1.0

    def _squares_about(self, X: Any, origin: Any) -> Array:
        """u of every row and the origin."""
        s = self.scale(X.shape[1])
        with np.errstate(over="ignore"):
            return row_squares(scale_columns(X.astype(np.float64), s) if is_sparse(X) else (X - origin) * s)

    def rounding(self, X: Any) -> Array:
        r"""From the error of u, as far as entries are not repaired, and a few units of those that are, and of f.

        −u is an inner product of p + 2 terms that add up to 2(‖f‖² + ‖g‖²) in size, of features and norms that are
        rounded themselves: it is off by at most (2p + 8)ε(‖f‖² + ‖g‖²). f is off by its slope times that, and by no
        more than :meth:`RadialPairs.fill` lets stand. A repaired u has a relative error of (p + 4)ε/2, and
        \|u f′(u)\| ≤ 1.
        """
        X = as_points(X)
        n, p = X.shape
        reach = 2.0 * float(self._squares_about(X, mean_row(X)).max(initial=0.0))
        worst, size = (2 * p + 8) * 2 * UNIT, self.size(2 * reach)
        let_stand = worst / ((1 + p**0.5) * UNIT) * DELTA["float64"] * size
        lost = (p + 4) * SMALLEST  # of u, by products that underflow
        if self.steepest < np.inf:
            let_stand, lost = min(worst * reach * self.steepest, let_stand), lost * self.steepest
        else:  # e⁻ˢ is steep as a function of u = s², not of s
            lost = np.sqrt(lost)
        error = let_stand + lost + (p + 12) * UNIT * size
        return np.full(n, np.sqrt(error))


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
        self._peaks: dict[tuple[int, int, bool], float] = {}
        largest = kernel.size(float(self.left_norms.max(initial=0.0) + self.right_norms.max(initial=0.0)))
        self.delta = max(DELTA[self.dtype.name] * largest, float(np.finfo(np.float64).tiny))

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
        reach = self._peak(rows, True) + self._peak(columns, False)
        # the u below which the product is not good enough for these rows and columns; two units even where all norms
        # are 0, so that a tile of identical points is at distance 0 too
        limit = float(
            max(self.certain * reach, self.kernel.least_flat_argument(self.typical * reach / self.delta), 4e-45)
        )
        if t.size and t.max() > -limit:
            self._repair(t, rows, columns, limit)
        if same:
            t.flat[:: len(t) + 1] = 0.0
        return self.kernel.profile(t)

    def _peak(self, part: slice, left: bool) -> float:
        """The largest ‖f‖² of a run of rows, remembered."""
        key = (part.start, part.stop, left)
        if key not in self._peaks:
            norms = self.left_norms if left else self.right_norms
            self._peaks[key] = float(norms[part].max(initial=0.0))
        return self._peaks[key]

    def _repair(self, t: Array, rows: slice, columns: slice, limit: float) -> None:
        """Compute the entries above −limit again, from differences of the points as given, in float64.

        One by one if they are few, else all: scaled points would carry their rounding.
        """
        i, j = np.nonzero(t > -limit)
        if len(i) * CROWDED > t.size and not self.sparse:
            X, Z = (np.asarray(A[part], dtype=np.float64) for A, part in ((self.X, rows), (self.Z, columns)))
            if np.ndim(self.scale) == 0:
                t[...] = cdist(X, Z, "sqeuclidean") * -(self.scale**2)
            else:
                t[...] = -cdist(X, Z, "sqeuclidean", w=self.scale**2)
            return
        for a in range(0, len(i), CHUNK):
            b, c = i[a : a + CHUNK], j[a : a + CHUNK]
            if self.sparse:
                left, right = (sp.csr_array(A, dtype=np.float64) for A in (self.X, self.Z))
                D = scale_columns(left[rows.start + b] - right[columns.start + c], self.scale)
            else:  # exact subtraction in float64 where the points are near each other
                X, Z = self.X[rows.start + b], self.Z[columns.start + c]
                D = (X.astype(np.float64) - Z.astype(np.float64)) * self.scale
            t[b, c] = -row_squares(D)


class _RadialLessOne(Radial):
    """f − 1, of a kernel whose values are close to 1: no kernel itself."""

    def __init__(self, kernel: Radial) -> None:
        self.kernel = kernel

    def scale(self, p: int) -> Scale:
        return self.kernel.scale(p)

    def profile(self, t: Array) -> Array:
        return self.kernel.profile_less_one(t)

    profile_less_one = profile

    def least_flat_argument(self, ratio: float) -> float:
        return self.kernel.least_flat_argument(ratio)

    @property
    def steepest(self) -> float:
        return self.kernel.steepest

    def size(self, u: float) -> float:
        return -float(self.kernel.profile_less_one(np.array([-u]))[0])


class _Distance(Radial):
    """f(u) = u: the squared distance itself, which is no kernel."""

    steepest = 1.0

    def scale(self, p: int) -> Scale:
        return 1.0

    def profile(self, t: Array) -> Array:
        np.negative(t, out=t)
        return np.add(t, 0.0, out=t)  # no −0

    profile_less_one = profile

    def least_flat_argument(self, ratio: float) -> float:
        return 0.0


def squared_distances(X: Any, Z: Any = None) -> Array:
    """‖x − z‖² of all rows, none negative, those of identical rows 0."""
    return _Distance()(X, Z)


MEDIAN_ROWS = 2000  # distances among this many rows estimate the median to a percent or two


class EqualRowsError(ValueError):
    """There is no distance between rows that are all equal."""


def median_distance(X: Any, *, seed: int = 0, rows: int = MEDIAN_ROWS) -> float:
    """Median distance ‖x − x′‖ between different rows, copies counted once, of a seeded sample where there are many.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.
    seed : int, default=0
        Of the sample.
    rows : int, default=2000
        Size of the sample, where there are more rows.

    Returns
    -------
    float
        The median distance.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import median_distance
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    X = as_points(X)
    n = X.shape[0]
    if n > rows:
        X = X[np.sort(np.random.default_rng(seed).choice(n, rows, replace=False))]
    squares = squared_distances(X.astype(np.float64))  # the same for rows in float32
    first = np.flatnonzero(np.argmax(squares == 0.0, axis=1) == np.arange(len(squares)))
    if len(first) < 2:
        if X.shape[0] > 1 and (X[[0] * X.shape[0]] != X).sum():
            raise ValueError("The squared distances between rows underflow: multiply the data by a large constant.")
        raise EqualRowsError("The rows are all equal, so their median distance is 0: give gamma as a number.")
    if len(first) < len(squares):
        squares = squares[np.ix_(first, first)]
    return float(np.sqrt(np.median(squares[np.triu_indices(len(first), 1)])))


def scale_gamma(X: Any) -> float:
    """1/(p·Var X), Var over all entries of X; 1/p where they are all equal.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.

    Returns
    -------
    float
        γ.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import scale_gamma
    >>> scale_gamma(np.array([[0.0, 2.0], [2.0, 0.0]]))
    0.5
    """
    X = as_points(X)
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _variance(X)
    if variance == 0.0 and not _is_constant(X):
        raise ValueError("The variance of the entries of X underflows: multiply the data by a large constant.")
    if not variance < np.inf:
        raise ValueError("The variance of the entries of X overflows: multiply the data by a small constant.")
    return float(1.0 / (X.shape[1] * (variance or 1.0)))


def _is_constant(X: Any) -> bool:
    """Whether all entries are equal."""
    if is_sparse(X):
        X = X.data if X.nnz == X.shape[0] * X.shape[1] else np.append(X.data, 0.0)
    return bool(X.size == 0 or X.min() == X.max())


def _variance(X: Any) -> float:
    """Variance of all entries, zeros included, without cancellation."""
    if not is_sparse(X):
        return float(np.var(X, dtype=np.float64))
    size = X.shape[0] * X.shape[1]
    values = X.data.astype(np.float64)
    mean = values.sum() / size
    return float((np.sum((values - mean) ** 2) + (size - len(values)) * mean**2) / size)


@dataclass(frozen=True, repr=False)
class Gaussian(Radial):
    r"""k(x, z) = exp(−γ‖x − z‖²) = exp(−‖x − z‖²/2σ²), or exp(−Σ γ_j(x_j − z_j)²) with one value for each feature.

    Parameters
    ----------
    gamma : float, sequence of float, "median", "scale", optional
        γ. "scale" is 1/(p·Var X), "median" is 1/2m² with m the median distance of at most 2,000 of the rows. Without
        any parameter, 1/p.
    beta : the same, optional
        Another name for γ.
    bandwidth : the same, optional
        σ = 1/√(2γ).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> Gaussian(bandwidth=1.0)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    >>> Gaussian("median").resolved(np.array([[0.0], [1.0], [2.0]]))
    Gaussian(gamma=0.5)
    """

    gamma: Any = None
    beta: Any = field(default=None, kw_only=True)
    bandwidth: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("gamma", "beta", "bandwidth")}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) > 1:
            raise ValueError(f"Give one of gamma, beta and bandwidth; got {' and '.join(given)}.")
        freeze(self, **{name: positive(name, value, rules=RULES) for name, value in given.items()})

    @property
    def automatic(self) -> bool:
        """Whether γ is to be found from data."""
        return isinstance(self._given, str)

    @property
    def _given(self) -> Any:
        return next((v for v in (self.gamma, self.beta, self.bandwidth) if v is not None), None)

    @property
    def rate(self) -> Any:
        """γ however it was given: a number, one for each feature, a rule, or None for 1/p."""
        if self.bandwidth is None or isinstance(self.bandwidth, str):
            return self._given
        gamma = 0.5 / np.square(self.bandwidth)
        return tuple(gamma.tolist()) if isinstance(self.bandwidth, tuple) else float(gamma)

    def resolved(self, X: Any) -> Gaussian:
        """Return the kernel with γ as a number."""
        if self.automatic:
            return Gaussian(scale_gamma(X) if self._given == "scale" else 0.5 / median_distance(X) ** 2)
        return self if self._given is not None else Gaussian(1.0 / as_points(X).shape[1])

    def scale(self, p: int) -> Scale:
        """√γ, times what the exponential of this machine needs."""
        return np.sqrt(RATE) * self._root(p)

    def formula(self, p: int) -> Formula:
        """e⁻ᵘ with s = √γ."""
        refuse_automatic(self)
        return Formula("squared", "exp", plain(self._root(p)))

    def _root(self, p: int) -> Scale:
        """√γ."""
        if self._given is None:
            return float(np.sqrt(1.0 / p))
        if self.bandwidth is not None:
            return np.sqrt(0.5) / per_feature("bandwidth", self.bandwidth, p)
        name = "gamma" if self.gamma is not None else "beta"
        return np.sqrt(per_feature(name, getattr(self, name), p))

    def profile(self, t: Array) -> Array:
        """exp(t)."""
        # eq: kernel-gaussian
        return np.asarray(exponential(at_least(t, lowest(t.dtype)), out=t))

    steepest = 1.0

    def profile_less_one(self, t: Array) -> Array:
        """exp(t) − 1."""
        return np.asarray(np.expm1(np.multiply(t, t.dtype.type(1 / RATE), out=t), out=t))

    def least_flat_argument(self, ratio: float) -> float:
        """ln ratio, for f′ = −f."""
        return RATE * float(np.log(max(ratio, 1.0)))


@dataclass(frozen=True, repr=False)
class Laplacian(Normalised):
    r"""k(x, z) = exp(−Σ γ_j|x_j − z_j|), with one γ or one for each feature.

    The sum of absolute differences is no matrix product, so this is several times slower than the Gaussian kernel. Both
    inputs may be sparse, or neither.

    Parameters
    ----------
    gamma : float or sequence of float, optional
        γ; 1/p where not given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Laplacian
    >>> Laplacian(1.0)(np.array([[0.0, 0.0]]), np.array([[1.0, -1.0]])).round(4)
    array([[0.1353]])
    """

    gamma: Any = None

    def __post_init__(self) -> None:
        freeze(self, gamma=positive("gamma", self.gamma, optional=True))

    @property
    def rate(self) -> Any:
        """γ: a number, one for each feature, or None for 1/p."""
        return self.gamma

    def resolved(self, X: Any) -> Laplacian:
        """Return the kernel with γ as a number."""
        return self if self.gamma is not None else Laplacian(1.0 / as_points(X).shape[1])

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Take the points as they are: their differences are multiplied by γ."""
        return _ManhattanPairs(X, Z, self._rates, dtype)

    def less_one(self) -> Kernel:
        """e⁻ᵘ − 1."""
        return _ExponentialLessOne(self, partial(_ManhattanPairs, rates=self._rates, less_one=True))

    def typical_distance(self, X: Any, origin: Any) -> float:
        """The mean u between a row and the origin."""
        rates = self._rates(X.shape[1])
        with np.errstate(over="ignore"):
            D = abs(scale_columns(X.astype(np.float64), rates)) if is_sparse(X) else np.abs((X - origin) * rates)
            return float(D.sum() / max(X.shape[0], 1))

    def rounding(self, X: Any) -> Array:
        """Differences and their sum have a relative error of (p + 4)ε/2, and u e⁻ᵘ < 1."""
        return np.full(*_uniform(X, 0.5 * X.shape[1] + 8))

    def formula(self, p: int) -> Formula:
        """e⁻ᵘ with s = γ."""
        return Formula("absolute", "exp", self._rates(p))

    def _rates(self, p: int) -> Any:
        return 1.0 / p if self.gamma is None else per_feature("gamma", self.gamma, p)


def _uniform(X: Any, units: float) -> tuple[int, float]:
    """How many rows there are, and the root of so many units of rounding."""
    return X.shape[0], float(np.sqrt(units * UNIT))


class _ManhattanPairs(Pairs):
    """exp(−Σ γ_j|x_j − z_j|), or that less 1, by differences, which need no care."""

    def __init__(self, X: Any, Z: Any, rates: Any, dtype: npt.DTypeLike | None, *, less_one: bool = False) -> None:
        X, Z, self.dtype = as_two_sets(X, Z, dtype)
        if is_sparse(X) != is_sparse(Z):
            raise ValueError("One of X and Z is sparse and the other is not. Convert one of them with .toarray().")
        self.symmetric, self.shape, self.less_one = Z is X, (X.shape[0], Z.shape[0]), less_one
        self.rates = np.broadcast_to(np.asarray(rates(X.shape[1])), (X.shape[1],))
        self.single = float(self.rates[0]) if len(self.rates) and np.all(self.rates == self.rates[0]) else None
        self.X, self.Z = (self._points(A) for A in (X, Z))

    def _points(self, X: Any) -> Any:
        """In float64; a sparse matrix with several γ multiplied by them."""
        X = X.astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)
        return scale_columns(X, self.rates) if is_sparse(X) and self.single is None else X

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        tile, X, Z = room(buffers[0], rows, columns), self.X[rows], self.Z[columns]
        if is_sparse(X):
            distances = manhattan_distances(X, Z)
        elif self.single is None:
            distances = cdist(X, Z, "cityblock", w=self.rates)
        else:
            distances = cdist(X, Z, "cityblock")
        factor = (1.0 if self.single is None else self.single) * (1.0 if self.less_one else RATE)
        return _exponential(np.multiply(distances, -factor, out=tile, casting="same_kind"), self.less_one)


def _exponential(t: Array, less_one: bool) -> Array:
    """eᵗ − 1, or eᵗ of RATE times t, in place; t ≤ 0."""
    return np.asarray(np.expm1(t, out=t) if less_one else exponential(at_least(t, lowest(t.dtype)), out=t))


class _ExponentialLessOne(Kernel):
    """e⁻ᵘ − 1 for a sum u of terms of one feature each, from what evaluates it in pairs: no kernel itself."""

    def __init__(self, kernel: Normalised, pairs: Any) -> None:
        self.kernel, self._pairs = kernel, pairs

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        return self._pairs(X, Z, dtype=dtype)  # type: ignore[no-any-return]

    def diagonal(self, X: Any) -> Array:
        return np.zeros(X.shape[0])

    def rounding(self, X: Any) -> Array:
        """That of u, at most twice the sum of two u to the mean of the rows (√u is a distance)."""
        X = as_points(X)
        origin = mean_row(X)[None]
        largest = -float(self(X, sp.csr_array(origin) if is_sparse(X) else origin).min(initial=0.0))
        return np.asarray(self.kernel.rounding(X) * np.sqrt(8.0 * largest))  # min(u, 1) ≤ 1.6(1 − e⁻ᵘ)


SMOOTHNESS = (0.5, 1.5, 2.5)


class _WithLengthScale(Radial):
    """A radial kernel with a length scale ℓ, which may be a rule."""

    length_scale: Any

    @property
    def automatic(self) -> bool:
        """Whether ℓ is to be found from data."""
        return isinstance(self.length_scale, str)

    def resolved(self, X: Any) -> Kernel:
        """Return the kernel with ℓ as a number."""
        return replace(self, length_scale=median_distance(X)) if self.automatic else self  # type: ignore[type-var]


@dataclass(frozen=True, repr=False)
class Matern(_WithLengthScale):
    r"""e⁻ˢ, (1 + s)e⁻ˢ or (1 + s + s²/3)e⁻ˢ for ν = 1/2, 3/2, 5/2, with s = √(2ν)‖(x − z)/ℓ‖.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness: functions of the kernel's space have derivatives of every order below ν.
    length_scale : float, sequence of float, "median", default=1.0
        ℓ, one value or one for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Matern
    >>> Matern(0.5)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    nu: float = 1.5
    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        if self.nu not in SMOOTHNESS:
            raise ValueError(f"nu must be one of {SMOOTHNESS}, got {self.nu!r}.")
        length = positive("length_scale", self.length_scale, rules=("median",))
        freeze(self, nu=float(self.nu), length_scale=length)

    def scale(self, p: int) -> Scale:
        """√(2ν)/ℓ, so that u = s²."""
        return np.sqrt(2 * self.nu) / per_feature("length_scale", self.length_scale, p)

    def formula(self, p: int) -> Formula:
        """The polynomial in r = √u times e⁻ʳ."""
        refuse_automatic(self)
        return Formula("squared", f"matern{round(2 * self.nu)}2", plain(self.scale(p)))

    def profile(self, t: Array) -> Array:
        """The polynomial in s times e⁻ˢ."""
        s = np.sqrt(np.negative(t, out=t), out=t)
        np.minimum(s, -0.999 * np.log(np.finfo(t.dtype).tiny), out=s)  # e⁻ˢ below the normal numbers is slow
        if self.nu == 0.5:
            return np.exp(np.negative(s, out=s), out=s)
        factor = 1 + s if self.nu == 1.5 else 1 + s * (1 + s / 3)
        np.exp(np.negative(s, out=s), out=s)
        return np.multiply(s, factor, out=s)

    @property
    def steepest(self) -> float:
        """1/2 and 1/6; without bound for ν = 1/2."""
        return {0.5: np.inf, 1.5: 0.5, 2.5: 1 / 6}[self.nu]

    def profile_less_one(self, t: Array) -> Array:
        """e⁻ˢ − 1, −P(2, s) and −P(3, s) − s²e⁻ˢ/6, with P the regularised incomplete gamma function."""
        s = np.sqrt(np.negative(t, out=t), out=t)
        if self.nu == 0.5:
            return np.expm1(np.negative(s, out=s), out=s)
        if self.nu == 1.5:
            return np.negative(gammainc(2.0, s), out=s)
        return np.negative(gammainc(3.0, s) + s * s * np.exp(-s) / 6, out=s)

    def least_flat_argument(self, ratio: float) -> float:
        """From |f′| = e⁻ˢ/2s, e⁻ˢ/2 and (1 + s)e⁻ˢ/6 ≤ e^(−s/2)/4."""
        if self.nu == 0.5:
            return max(min(ratio / 2, 1.0), _log(ratio / 2)) ** 2
        return _log(ratio / 2) ** 2 if self.nu == 1.5 else 4 * _log(ratio / 4) ** 2


def _log(x: float) -> float:
    """ln x, and 0 below 1."""
    return float(np.log(max(x, 1.0)))


@dataclass(frozen=True, repr=False)
class RationalQuadratic(_WithLengthScale):
    r"""k(x, z) = (1 + ‖(x − z)/ℓ‖²/2α)^(−α); as α grows it becomes the Gaussian kernel of bandwidth ℓ.

    Parameters
    ----------
    alpha : float, default=1.0
        α.
    length_scale : float, sequence of float, "median", default=1.0
        ℓ, one value or one for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=0.5)(np.array([[0.0], [np.sqrt(3.0)]]))[0].round(12)
    array([1. , 0.5])
    """

    alpha: float = 1.0
    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        length = positive("length_scale", self.length_scale, rules=("median",))
        freeze(self, alpha=positive("alpha", self.alpha, single=True), length_scale=length)

    def scale(self, p: int) -> Scale:
        """1/(ℓ√(2α)), so that k = (1 + u)^(−α)."""
        return 1.0 / (np.sqrt(2 * self.alpha) * per_feature("length_scale", self.length_scale, p))

    def formula(self, p: int) -> Formula:
        """(1 + u)^(−α)."""
        refuse_automatic(self)
        return Formula("squared", "rational", plain(self.scale(p)), (self.alpha,))

    def profile(self, t: Array) -> Array:
        """(1 − t)^(−α)."""
        np.subtract(1.0, t, out=t)
        if self.alpha == 1.0:
            return np.reciprocal(t, out=t)
        return np.asarray(np.power(t, t.dtype.type(-self.alpha), out=t))

    @property
    def steepest(self) -> float:
        """α."""
        return self.alpha

    def profile_less_one(self, t: Array) -> Array:
        """(1 − t)^(−α) − 1."""
        np.log1p(np.negative(t, out=t), out=t)
        return np.asarray(np.expm1(np.multiply(t, t.dtype.type(-self.alpha), out=t), out=t))

    def rounding(self, X: Any) -> Array:
        """The power multiplies the rounding of 1 + u by α."""
        return np.asarray(np.sqrt(super().rounding(X) ** 2 + self.alpha * UNIT))

    def least_flat_argument(self, ratio: float) -> float:
        """From |f′| = α(1 + u)^(−α−1)."""
        return float(max(self.alpha * ratio, 1.0) ** (1.0 / (self.alpha + 1.0)) - 1.0)


@dataclass(frozen=True, repr=False)
class Chi2(Normalised):
    r"""k(x, z) = exp(−γ Σ_j (x_j − z_j)²/(x_j + z_j)) for rows without negative entries; 0/0 counts as 0.

    Dense rows only. The sum runs over features one by one, so a tile costs about as much as p exponentials.

    Parameters
    ----------
    gamma : float, default=1.0
        γ.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Chi2
    >>> Chi2()(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).round(4)
    array([[0.1353]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        freeze(self, gamma=positive("gamma", self.gamma, single=True))

    @property
    def rate(self) -> float:
        """γ."""
        return self.gamma

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points."""
        return _Chi2Pairs(X, Z, self.gamma, dtype)

    def less_one(self) -> Kernel:
        """e⁻ᵘ − 1."""
        return _ExponentialLessOne(self, partial(_Chi2Pairs, gamma=self.gamma, less_one=True))

    def typical_distance(self, X: Any, origin: Any) -> float:
        """The mean 1 − k(x, o)."""
        return -float(np.mean(self.less_one()(_counts(X), origin[None]))) if len(X) else 1.0

    def rounding(self, X: Any) -> Array:
        """Every term has a relative error of 3ε, and u e⁻ᵘ < 1."""
        return np.full(*_uniform(X, 0.5 * X.shape[1] + 10))

    def formula(self, p: int) -> Formula:
        """e⁻ᵘ with s = γ."""
        return Formula("chi2", "exp", self.gamma)

    def diagonal(self, X: Any) -> Array:
        """All ones."""
        return super().diagonal(_counts(X))


@dataclass(frozen=True, repr=False)
class AdditiveChi2(Kernel):
    r"""k(x, z) = −Σ_j (x_j − z_j)²/(x_j + z_j): only conditionally positive definite, that is, after centring.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import AdditiveChi2
    >>> AdditiveChi2()(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    array([[-2.]])
    """

    @property
    def positive_semidefinite(self) -> bool:
        """False: k(x, x) = 0 though k(x, z) < 0."""
        return False

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points."""
        return _Chi2Pairs(X, Z, 1.0, dtype, exponent=False)

    def rounding(self, X: Any) -> Array:
        """u ≤ Σ (x_j + z_j), of which a sum has a relative error of (p + 6)ε/2."""
        X = _counts(X)
        most = 2.0 * X.sum(axis=1, dtype=np.float64).max(initial=0.0)
        return np.full(len(X), np.sqrt((X.shape[1] + 10) * UNIT * most))

    def formula(self, p: int) -> Formula:
        """−u."""
        return Formula("chi2", "identity", factor=-1.0)

    def diagonal(self, X: Any) -> Array:
        """All zeros."""
        return np.zeros(len(_counts(X)))


class _Chi2Pairs(Pairs):
    """Tiles of the sum, feature by feature in two scratch tiles."""

    buffers = 3

    def __init__(
        self,
        X: Any,
        Z: Any,
        gamma: float,
        dtype: npt.DTypeLike | None,
        *,
        exponent: bool = True,
        less_one: bool = False,
    ) -> None:
        X, Z, self.dtype = as_two_sets(_counts(X), None if Z is None else _counts(Z), dtype)
        self.symmetric, self.exponent, self.less_one = Z is X, exponent, less_one
        self.shape = (len(X), len(Z))
        # features as rows, in memory one after another; γ is for the sum, since differences of features are exact
        self.X, self.Z = (np.ascontiguousarray(A.T, dtype=self.dtype) for A in (X, Z))
        self.gamma = self.dtype.type(gamma if less_one or not exponent else gamma * RATE)

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        tile, square, total = (room(buffer, rows, columns) for buffer in buffers[:3])
        tile[...] = 0.0
        tiny = np.finfo(self.dtype).tiny
        for x, z in zip(self.X[:, rows], self.Z[:, columns], strict=True):
            np.subtract(x[:, None], z, out=square)
            np.add(x[:, None], z, out=total)
            # (x − z)·((x − z)/(x + z)): no square that could overflow; 0/tiny where both are 0
            np.divide(square, np.maximum(total, tiny, out=total), out=total)
            np.multiply(square, total, out=square)
            np.subtract(tile, square, out=tile)
        return _exponential(np.multiply(tile, self.gamma, out=tile), self.less_one) if self.exponent else tile


def _counts(X: Any) -> Array:
    """Refuse sparse and negative data by name."""
    X = as_points(X)
    if is_sparse(X):
        raise ValueError("The chi-squared kernels take dense data. Convert X with X.toarray().")
    if X.size and X.min() < 0:
        i, j = np.unravel_index(int(np.argmin(X)), X.shape)
        raise ValueError(
            f"Negative values in data passed to a chi-squared kernel: row {i + 1}, column {j + 1} is {X[i, j]}."
        )
    return np.asarray(X)
