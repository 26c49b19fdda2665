"""Kernels of the inner product: linear, polynomial with its feature map, cosine, sigmoid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.kernels.base import (
    CLOSE,
    SMALLEST,
    UNIT,
    Formula,
    Kernel,
    Pairs,
    as_points,
    as_two_sets,
    freeze,
    is_sparse,
    mean_row,
    positive,
    room,
    row_squares,
)

Array = npt.NDArray[Any]
Apply = Callable[[Array, Sequence[Array]], Array]


class InnerPairs(Pairs):
    """f(s·x·z) with f applied to a tile in place; it may use the buffers beyond the first.

    Parameters
    ----------
    X, Z : arrays or sparse matrices; Z may be None
        The points.
    dtype : dtype
        Of the tiles.
    apply : callable
        f, given the tile and the spare buffers.
    factor : float
        s.
    buffers : int
        How many tiles f and the product need together.
    unit : bool
        Whether rows are first divided by their norms.
    origin : array of shape (p,), optional
        What is subtracted from dense rows (of norm 1, where ``unit``).
    """

    def __init__(
        self,
        X: Any,
        Z: Any,
        dtype: npt.DTypeLike | None,
        apply: Apply | None = None,
        factor: float = 1.0,
        buffers: int = 1,
        unit: bool = False,
        origin: Any = None,
    ) -> None:
        self.symmetric, self.apply, self.buffers = Z is None, apply, buffers
        X, Z, self.dtype = as_two_sets(X, Z, dtype)
        self.right = _prepare(Z, self.dtype, unit, origin)
        self.left = self.right if self.symmetric else _prepare(X, self.dtype, unit, origin)
        if factor != 1.0:  # one array for both where possible: BLAS then computes half of a symmetric tile
            self.left = self.left * self.dtype.type(factor)
        self.shape = (self.left.shape[0], self.right.shape[0])
        largest = float(X.shape[1])  # of an inner product: sums that overflow on the way can end with the wrong sign
        for A in (self.left, self.right) if min(self.left.shape + self.right.shape) else ():
            largest *= max(float(A.max()), -float(A.min()))
        if not largest < float(np.finfo(self.dtype).max):
            raise ValueError(f"Inner products of rows overflow {self.dtype}: multiply the data by a small constant.")

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        """Multiply and apply f."""
        A, B = self.left[rows], self.right[columns]
        tile = room(buffers[0], rows, columns)
        if is_sparse(A) or is_sparse(B):
            product = A @ B.T
            tile[...] = product.toarray() if is_sparse(product) else product
        else:
            np.dot(A, B.T, out=tile)
        return tile if self.apply is None else self.apply(tile, buffers[1:])


def _prepare(X: Any, dtype: np.dtype[Any], unit: bool, origin: Any) -> Any:
    """The rows, of norm 1 or about an origin where that is asked for, in a dtype."""
    X = unit_rows(X) if unit else X
    if origin is not None:
        X = np.asarray(X, dtype=np.float64) - origin
    return X.astype(dtype, copy=False) if is_sparse(X) else np.ascontiguousarray(X, dtype=dtype)


def unit_rows(X: Any) -> Any:
    """x/‖x‖ in float64, of rows of any size; rows of zeros stay."""
    X = X.astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)
    squares = row_squares(X)
    if not np.all((squares > 1e-280) & (squares < 1e280)):  # squares that overflow or underflow, or rows of zeros
        size = np.abs(X).max(axis=1)
        exponents = -np.frexp(size.toarray().ravel() if is_sparse(size) else size)[1]
        if is_sparse(X):
            X.data = np.ldexp(X.data, np.repeat(exponents, np.diff(X.indptr)))
        else:
            X = np.ldexp(X, exponents[:, None])
        squares = row_squares(X)
    inverse = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))
    return sp.csr_array(sp.diags_array(inverse) @ X) if is_sparse(X) else X * inverse[:, None]


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    r"""k(x, z) = x·z, whose feature map is φ(x) = x.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points."""
        return InnerPairs(X, Z, dtype)

    def formula(self, p: int) -> Formula:
        """u = x·z."""
        return Formula("inner", "identity")

    def diagonal(self, X: Any) -> Array:
        """‖x‖²."""
        return row_squares(as_points(X))

    def about_mean(self, X: Any) -> Kernel:
        """(x − o)·(z − o), where that leaves little of the rows; sparse ones stay as they are."""
        X = as_points(X)
        if is_sparse(X):
            return self
        about = LinearAbout(tuple(mean_row(X).tolist()))
        return about if np.sum(about.diagonal(X)) < CLOSE * np.sum(self.diagonal(X)) else self

    def map_features(self, X: Any, most: int) -> Array | None:
        """The rows themselves, of dense data."""
        X = as_points(X)
        return None if is_sparse(X) or X.shape[1] > most else np.asarray(X, dtype=np.float64)

    def rounding(self, X: Any) -> Array:
        """Of p products that add up to at most ‖x‖‖z‖ in size; each may underflow."""
        X = as_points(X)
        return np.asarray(np.sqrt((X.shape[1] + 2) * (UNIT * self.diagonal(X) + SMALLEST)))


@dataclass(frozen=True, repr=False)
class LinearAbout(Linear):
    """k(x, z) = (x − o)·(z − o), of dense rows."""

    origin: tuple[float, ...]

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points about the origin."""
        return InnerPairs(X, Z, dtype, origin=np.array(self.origin))

    def map_features(self, X: Any, most: int) -> Array | None:
        """The rows about the origin."""
        inside = super().map_features(X, most)
        return None if inside is None else np.asarray(inside - np.array(self.origin))

    def formula(self, p: int) -> Formula:
        """u = (x − o)·(z − o)."""
        return Formula("inner", "identity", origin=np.array(self.origin))

    def diagonal(self, X: Any) -> Array:
        """‖x − o‖²."""
        return row_squares(np.asarray(X, dtype=np.float64) - np.array(self.origin))


class _OfInnerProduct(Kernel):
    """A kernel f(γ x·z + c), γ being 1/p where not given."""

    gamma: float | None
    coef0: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        freeze(self, gamma=positive("gamma", self.gamma, optional=True, single=True), coef0=float(self.coef0))

    @property
    def rate(self) -> float | None:
        """γ, or None for 1/p."""
        return self.gamma

    def resolved(self, X: Any) -> Kernel:
        """Return the kernel with γ as a number."""
        return self if self.gamma is not None else replace(self, gamma=1.0 / as_points(X).shape[1])  # type: ignore[type-var]

    def _rate(self, p: int) -> float:
        return 1.0 / p if self.gamma is None else self.gamma


@dataclass(frozen=True, repr=False)
class Polynomial(_OfInnerProduct):
    r"""k(x, z) = (γ x·z + c)^q; with c = 0 homogeneous.

    :func:`~gramian.kernels.polynomial_features` is its feature map. With c < 0 it is not positive semidefinite.

    Parameters
    ----------
    degree : int, default=3
        q.
    coef0 : float, default=1.0
        c.
    gamma : float, optional
        γ; 1/p where not given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Polynomial
    >>> Polynomial(2, coef0=0, gamma=1)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[121.]])
    """

    degree: int = 3
    coef0: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not float(self.degree).is_integer() or self.degree < 1:
            raise ValueError(f"degree must be a whole number from 1 on, got {self.degree!r}.")
        freeze(self, degree=int(self.degree))

    @property
    def positive_semidefinite(self) -> bool:
        """Whether c ≥ 0."""
        return self.coef0 >= 0

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points."""
        X = as_points(X)
        buffers = 1 if self.degree <= 2 else 2
        return InnerPairs(X, Z, dtype, self._power, factor=self._rate(X.shape[1]), buffers=buffers)

    def formula(self, p: int) -> Formula:
        """(u + c)^q with s = √γ."""
        return Formula("inner", "power", float(np.sqrt(self._rate(p))), (float(self.degree), self.coef0))

    def diagonal(self, X: Any) -> Array:
        """(γ‖x‖² + c)^q."""
        X = as_points(X)
        with np.errstate(over="ignore"):
            return np.asarray((self._rate(X.shape[1]) * row_squares(X) + self.coef0) ** self.degree)

    def about_mean(self, X: Any) -> Kernel:
        """By the recursion of :class:`PolynomialAbout`, where values are close to each other."""
        X = as_points(X)
        about = PolynomialAbout(self, tuple(mean_row(X).tolist()))
        with np.errstate(over="ignore", invalid="ignore"):
            close = np.sum(about.diagonal(X)) < CLOSE * np.sum(np.abs(self.diagonal(X)))
        return about if close else self

    def map_features(self, X: Any, most: int) -> Array | None:
        """The monomials, where c ≥ 0."""
        X = as_points(X)
        p, q = X.shape[1], self.degree
        if self.coef0 < 0 or is_sparse(X) or comb(p + q - (self.coef0 == 0), q) > most:
            return None
        found = polynomial_features(X, q, self.coef0, self.gamma)
        return found if np.all(np.isfinite(found)) else None

    def rounding(self, X: Any) -> Array:
        """With t = γ‖x‖² + |c|, |u + c| ≤ √(t t′), off by (p + 3)ε√(t t′)/2; its power, q times as much relatively.

        Monomials are off by (q + 3)ε/2 each, and their inner products by twice that: no more.
        """
        X = as_points(X)
        t = self._rate(X.shape[1]) * row_squares(X) + abs(self.coef0)
        with np.errstate(over="ignore"):
            return np.asarray(np.sqrt(self.degree * (X.shape[1] + 7) * (UNIT * t**self.degree + SMALLEST)))

    def _power(self, tile: Array, spare: Sequence[Array]) -> Array:
        """(tile + c)^q in place, by squaring from the highest bit of q down."""
        if self.coef0:
            # eq: kernel-polynomial
            np.add(tile, self.coef0, out=tile)
        if self.degree <= 2:
            return tile if self.degree == 1 else np.multiply(tile, tile, out=tile)
        base = spare[0][: tile.size].reshape(tile.shape)
        np.copyto(base, tile)
        for bit in f"{self.degree:b}"[1:]:
            np.multiply(tile, tile, out=tile)
            if bit == "1":
                np.multiply(tile, base, out=tile)
        return tile


@dataclass(frozen=True, repr=False)
class PolynomialAbout(Kernel):
    r"""⟨φ(x) − φ(o), φ(z) − φ(o)⟩ of a polynomial kernel, without cancellation.

    With A = γ‖o‖² + c, B_x = γ o·(x − o), D = γ(x − o)·(z − o) and s = A + B_x + B_z + D = γ x·z + c the value is

    .. math:: P_q = s^q - (A+B_x)^q - (A+B_z)^q + A^q

    and, with δ_j(B) = (A + B)^j − A^j = (A + B)δ_{j−1}(B) + B A^{j−1},

    .. math:: P_q = sP_{q-1} + B_z\delta_{q-1}(B_x) + B_x\delta_{q-1}(B_z)
              + D\,(\delta_{q-1}(B_x) + \delta_{q-1}(B_z) + A^{q-1}),\qquad P_0 = 0

    With a² = γ‖o‖² + |c| and d = √γ‖x − o‖ no product of this is larger than its part in
    ((a + d_x)^q − a^q)((a + d_z)^q − a^q), which the error of a value is relative to.
    """

    kernel: Polynomial
    origin: tuple[float, ...]

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the polynomial is."""
        return self.kernel.positive_semidefinite

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points about the origin, and B."""
        return _PolynomialPairsAbout(self, X, Z, dtype)

    def constants(self, X: Any) -> tuple[float, Array]:
        """A, and B of every row."""
        rate, origin = self.kernel._rate(X.shape[1]), np.array(self.origin)
        along = np.zeros(X.shape[0]) if is_sparse(X) else (np.asarray(X, dtype=np.float64) - origin) @ (rate * origin)
        return rate * float(origin @ origin) + self.kernel.coef0, along

    def values(self, D: Array, A: float, left: Array, right: Array) -> Array:
        """P_q from D, A and B of rows and columns."""
        s = A + (left + right) + D
        P, power = np.array(D), 1.0  # P₁ and A⁰
        of_left, of_right = np.zeros_like(left), np.zeros_like(right)
        for _ in range(self.kernel.degree - 1):
            of_left, of_right = (A + left) * of_left + left * power, (A + right) * of_right + right * power
            power *= A
            P *= s
            P += right * of_left + left * of_right + D * (of_left + of_right + power)
        return P

    def diagonal(self, X: Any) -> Array:
        """P_q of every row with itself."""
        X = as_points(X)
        A, B = self.constants(X)
        return self.values(self._squares(X), A, B, B)

    def _squares(self, X: Any) -> Array:
        """γ‖x − o‖²."""
        apart = X if is_sparse(X) else np.asarray(X, dtype=np.float64) - np.array(self.origin)
        return np.asarray(self.kernel._rate(X.shape[1]) * row_squares(apart))

    def rounding(self, X: Any) -> Array:
        """As the class says: a few ε for each of q steps, (p + 4)ε/2 for the products of points."""
        X, q = as_points(X), self.kernel.degree
        rate = self.kernel._rate(X.shape[1])
        a = float(np.sqrt(rate * np.square(self.origin).sum() + abs(self.kernel.coef0)))
        d = np.sqrt(self._squares(X))
        with np.errstate(over="ignore"):
            growth = sum((a + d) ** i * a ** (q - 1 - i) for i in range(q)) * d
        return np.asarray(np.sqrt(q * (X.shape[1] + 12) * (UNIT * growth**2 + SMALLEST)))


class _PolynomialPairsAbout(InnerPairs):
    """Tiles of D, and then of P_q."""

    def __init__(self, kernel: PolynomialAbout, X: Any, Z: Any, dtype: npt.DTypeLike | None) -> None:
        X = as_points(X)
        origin = None if is_sparse(X) else np.array(kernel.origin)
        super().__init__(X, Z, dtype, factor=kernel.kernel._rate(X.shape[1]), origin=origin)
        self.kernel = kernel
        self.constant, along = kernel.constants(X)
        self.of_rows = along.astype(self.dtype)[:, None]
        self.of_columns = along.astype(self.dtype) if Z is None else kernel.constants(Z)[1].astype(self.dtype)

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        D = super().fill(rows, columns, buffers)
        D[...] = self.kernel.values(D, self.constant, self.of_rows[rows], self.of_columns[columns])
        return D


@dataclass(frozen=True, repr=False)
class Cosine(Kernel):
    r"""k(x, z) = x·z/(‖x‖‖z‖), the cosine of the angle between x and z; 0 for a row of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Cosine
    >>> Cosine()(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0. ]])
    """

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points: rows of norm 1."""
        return _CosinePairs(X, Z, dtype, unit=True)

    def formula(self, p: int) -> Formula:
        """u, the cosine."""
        return Formula("cosine", "identity")

    def diagonal(self, X: Any) -> Array:
        """1, or 0 for a row of zeros."""
        X = as_points(X)
        return np.asarray(
            abs(X).max(axis=1) > 0 if not is_sparse(X) else abs(X).max(axis=1).toarray().ravel() > 0, float
        )

    def about_mean(self, X: Any) -> Kernel:
        """Of rows of norm 1 about their mean, where that leaves little of them; sparse rows stay as they are."""
        X = as_points(X)
        if is_sparse(X) or not X.size:
            return self
        rows = unit_rows(X)
        origin = rows.mean(axis=0)
        return CosineAbout(tuple(origin.tolist())) if np.sum((rows - origin) ** 2) < CLOSE * len(X) else self

    def map_features(self, X: Any, most: int) -> Array | None:
        """The rows with norm 1, of dense data."""
        X = as_points(X)
        return None if is_sparse(X) or X.shape[1] > most else np.asarray(unit_rows(X))

    def rounding(self, X: Any) -> Array:
        """A row of norm 1 has a relative error of (p/2 + 3)ε/2, and an inner product p of them one of pε/2 more."""
        X = as_points(X)
        return np.full(X.shape[0], np.sqrt((2 * X.shape[1] + 10) * UNIT))


@dataclass(frozen=True, repr=False)
class CosineAbout(Kernel):
    """⟨x/‖x‖ − o, z/‖z‖ − o⟩, of dense rows."""

    origin: tuple[float, ...]

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points: rows of norm 1, less the origin."""
        return InnerPairs(X, Z, dtype, unit=True, origin=np.array(self.origin))

    def diagonal(self, X: Any) -> Array:
        """‖x/‖x‖ − o‖²."""
        return row_squares(unit_rows(as_points(X)) - np.array(self.origin))

    def map_features(self, X: Any, most: int) -> Array | None:
        """The rows with norm 1, about the origin."""
        X = as_points(X)
        return None if X.shape[1] > most else np.asarray(unit_rows(X) - np.array(self.origin))

    def rounding(self, X: Any) -> Array:
        """Of rows of norm 1, times their distance from the origin, and of the product."""
        p, largest = np.shape(X)[1], float(self.diagonal(X).max(initial=0.0))
        return np.full(len(X), np.sqrt((p + 10) * UNIT * (np.sqrt(largest) + largest)))


class _CosinePairs(InnerPairs):
    """Products of unit rows, held between −1 and 1, and 1 for a row with itself."""

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        tile = super().fill(rows, columns, buffers)
        if self.symmetric and rows == columns:
            diagonal = tile.flat[:: len(tile) + 1]
            tile.flat[:: len(tile) + 1] = (diagonal > 0).astype(self.dtype)
        if tile.size and (tile.max() > 1 or tile.min() < -1):
            np.clip(tile, -1, 1, out=tile)
        return tile


@dataclass(frozen=True, repr=False)
class Sigmoid(_OfInnerProduct):
    r"""k(x, z) = tanh(γ x·z + c). Indefinite: its matrices have negative eigenvalues, and no feature map exists.

    Parameters
    ----------
    gamma : float, optional
        γ; 1/p where not given.
    coef0 : float, default=1.0
        c.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Sigmoid
    >>> k = Sigmoid(gamma=1.0, coef0=0.0)
    >>> k(np.array([[1.0], [2.0]])).round(4)
    array([[0.7616, 0.964 ],
           [0.964 , 0.9993]])
    >>> k
    Sigmoid(gamma=1.0, coef0=0.0, indefinite)
    """

    gamma: float | None = None
    coef0: float = 1.0

    @property
    def positive_semidefinite(self) -> bool:
        """False."""
        return False

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points."""
        X = as_points(X)
        return InnerPairs(X, Z, dtype, self._tanh, factor=self._rate(X.shape[1]))

    def formula(self, p: int) -> Formula:
        """tanh(u + c) with s = √γ."""
        return Formula("inner", "tanh", float(np.sqrt(self._rate(p))), (self.coef0,))

    def diagonal(self, X: Any) -> Array:
        """tanh(γ‖x‖² + c)."""
        X = as_points(X)
        return np.asarray(np.tanh(self._rate(X.shape[1]) * row_squares(X) + self.coef0))

    def rounding(self, X: Any) -> Array:
        """That of u + c, (p + 3)ε√(t t′)/2 with t = γ‖x‖² + |c|, for the slope of tanh is at most 1; and of tanh."""
        X = as_points(X)
        t = self._rate(X.shape[1]) * row_squares(X) + abs(self.coef0)
        return np.asarray(np.sqrt((X.shape[1] + 7) * (UNIT * t + SMALLEST)))

    def _tanh(self, tile: Array, spare: Sequence[Array]) -> Array:
        np.add(tile, self.coef0, out=tile)
        return np.asarray(np.tanh(tile, out=tile))

    def __repr__(self) -> str:
        inside = super().__repr__().removeprefix("Sigmoid(").removesuffix(")")
        return f"Sigmoid({inside}{', ' if inside else ''}indefinite)"


def monomials(p: int, degree: int, homogeneous: bool = False) -> list[tuple[int, ...]]:
    """Return the monomials of p variables up to a degree (or of that degree), each as its variables with repetition.

    Parameters
    ----------
    p, degree : int
        Number of variables, and highest degree.
    homogeneous : bool, default=False
        Whether only monomials of that degree are wanted.

    Returns
    -------
    list of tuple of int
        Of each monomial its variables, repeated by their powers.

    Examples
    --------
    >>> from gramian.kernels import monomials
    >>> monomials(2, 2, homogeneous=True)
    [(0, 0), (0, 1), (1, 1)]
    """
    degrees = (degree,) if homogeneous else range(degree + 1)
    return [term for q in degrees for term in combinations_with_replacement(range(p), q)]


def polynomial_features(X: Any, degree: int = 2, coef0: float = 1.0, gamma: float | None = None) -> Array:
    r"""φ(x) with φ(x)·φ(z) = (γ x·z + c)^q, one column for each monomial.

    By the multinomial theorem the column of x₁^{a₁}⋯x_p^{a_p}, with a₀ = q − Σ a_j, is

    .. math:: \sqrt{\frac{q!}{a_0!\,a_1!\cdots a_p!}\,c^{a_0}\gamma^{q-a_0}}\;x_1^{a_1}\cdots x_p^{a_p}

    There are C(p + q, q) columns, or C(p + q − 1, q) for c = 0, ordered by degree: for q = 2, c = 0, p = 2 they are
    (x₁², √2 x₁x₂, x₂²).

    Parameters
    ----------
    X : array of shape (n, p)
        The points.
    degree : int, default=2
        q.
    coef0 : float, default=1.0
        c ≥ 0.
    gamma : float, optional
        γ; 1/p where not given.

    Returns
    -------
    ndarray of shape (n, number of monomials)
        In float64.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import polynomial_features
    >>> polynomial_features(np.array([[1.0, 3.0]]), 2, coef0=0, gamma=1).round(4)
    array([[1.    , 4.2426, 9.    ]])
    """
    kernel = Polynomial(degree, coef0, gamma)
    if kernel.coef0 < 0:
        raise ValueError(f"coef0 must not be negative for a feature map to exist, got {coef0!r}.")
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"Expected rows of features (2 dimensions), got shape {X.shape}.")
    n, p = X.shape
    factor, q = 1.0 / p if kernel.gamma is None else kernel.gamma, kernel.degree
    terms = monomials(p, q, homogeneous=kernel.coef0 == 0)
    # each monomial is one of a degree less times a variable
    products: dict[tuple[int, ...], Array] = {(): np.ones(n)}
    for term in monomials(p, q)[1:]:
        products[term] = products[term[:-1]] * X[:, term[-1]]
    out = np.empty((n, len(terms)))
    for column, term in enumerate(terms):
        # q!/(a₀! a₁! ⋯) of a monomial of degree q − a₀
        orders = prod(factorial(term.count(j)) for j in set(term))
        ways = comb(q, len(term)) * factorial(len(term)) // orders
        weight = ways * kernel.coef0 ** (q - len(term)) * factor ** len(term)
        # eq: feature-map, features-regression
        out[:, column] = products[term] * np.sqrt(weight)
    return out
