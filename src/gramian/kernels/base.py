"""The Kernel, a function k(x, z) with its matrix; sums, products and multiples of kernels; Pairs, their tiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from itertools import product
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


class Formula(NamedTuple):
    r"""k(x, z) = c f(u) with u a number made of s∘x and s∘z; or a sum or product of such.

    ============  ======================================  ==================================================
    ``geometry``  u                                       ``profile``: f(u), with its ``parameters``
    ============  ======================================  ==================================================
    "squared"     Σ (s_j x_j − s_j z_j)²                  "exp": e⁻ᵘ; "matern12", "matern32", "matern52":
                                                          e⁻ʳ, (1 + r)e⁻ʳ, (1 + r + r²/3)e⁻ʳ with r = √u;
                                                          "rational", (α,): (1 + u)^(−α)
    "absolute"    Σ \|s_j x_j − s_j z_j\|                 "exp": e⁻ᵘ
    "chi2"        Σ (s_j x_j − s_j z_j)²/(s_j x_j +       "exp": e⁻ᵘ; "identity": u
                  s_j z_j), where 0/0 counts as 0
    "inner"       Σ s_j x_j s_j z_j                       "identity": u; "power", (q, b): (u + b)^q;
                                                          "tanh", (b,): tanh(u + b)
    "cosine"      x·z/(‖x‖‖z‖), 0 where a norm is         "identity": u
    "sum"         of the values of ``parts``              "identity": u
    "product"     of the values of ``parts``              "identity": u
    ============  ======================================  ==================================================

    Attributes
    ----------
    geometry, profile : str
        As above.
    scale : float or ndarray (p,)
        s.
    parameters : tuple of float
        Of f.
    factor : float
        c.
    parts : tuple of Formula
        The kernels that are added or multiplied.
    origin : float or ndarray (p,)
        What is subtracted from all points first; of "inner" and "identity" only.

    Examples
    --------
    >>> from gramian.kernels import Gaussian
    >>> Gaussian(4.0).formula(3)
    Formula(geometry='squared', profile='exp', scale=2.0, parameters=(), factor=1.0, parts=(), origin=0.0)
    """

    geometry: str
    profile: str
    scale: Any = 1.0
    parameters: tuple[float, ...] = ()
    factor: float = 1.0
    parts: tuple[Formula, ...] = ()
    origin: Any = 0.0


RULES = ("median", "scale")


def freeze(kernel: Any, **values: Any) -> None:
    """Set checked values on a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(kernel, name, value)


def refuse_automatic(kernel: Any) -> None:
    """Refuse a kernel whose parameters wait for data."""
    if kernel.automatic:
        raise ValueError(f"{kernel!r} finds a parameter from data: use the formula of kernel.resolved(X).")


def plain(scale: Any) -> float | npt.NDArray[np.float64]:
    """A number of Python, or an array of one for each feature."""
    return float(scale) if np.ndim(scale) == 0 else np.asarray(scale)


def positive(
    name: str, value: Any, *, rules: tuple[str, ...] = (), optional: bool = False, single: bool = False
) -> Any:
    """Return a positive number, a tuple of them, a rule or None: what a frozen kernel can hold and compare."""
    if value is None and optional:
        return None
    if isinstance(value, str):
        if value in rules:
            return value
        allowed = f", or one of {', '.join(map(repr, rules))}" if rules else ""
        raise ValueError(f"{name} must be a positive number{allowed}; got {value!r}.")
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.ndim > 1 or not np.all(np.isfinite(numbers) & (numbers > 0)):
        raise ValueError(f"{name} must be a positive number, or one for each feature; got {value!r}.")
    if numbers.ndim and single:
        raise ValueError(f"{name} is one number here, got {value!r}. Multiply the columns of the data instead.")
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())


def per_feature(name: str, value: float | tuple[float, ...], p: int) -> float | npt.NDArray[np.float64]:
    """Return the value as a number, or as an array after a check of its length."""
    if isinstance(value, tuple):
        if len(value) != p:
            raise ValueError(f"{name} has {len(value)} values for data with {p} columns: give one, or one for each.")
        return np.asarray(value)
    return value


Array = npt.NDArray[Any]

UNIT = 2.0**-53  # relative error of one operation in float64
SMALLEST = 2.0**-1074  # error of a product that underflows
CLOSE = 1e-3  # values of k that differ by so little, relative to their size, are better subtracted before than after
SIDE = 512  # of the square tiles a matrix is written in


class Pairs(ABC):
    """The values k(x_i, z_j) of all pairs of two sets of points, handed out in tiles.

    What depends on one point alone (scaled features, norms) is computed once, when the object is made.

    Attributes
    ----------
    shape : tuple of int
        Number of points x, number of points z.
    dtype : dtype
        Of the tiles.
    symmetric : bool
        Whether both sets are the same.
    buffers : int
        How many tiles of scratch memory :meth:`fill` needs, the one it answers in included.
    serial : bool
        Whether tiles must be asked for by one thread at a time.
    side : int
        0: tiles of any size can be asked for.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    symmetric: bool = False
    buffers: int = 1
    serial: bool = False
    side: int = 0

    @abstractmethod
    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        """Return the tile of these rows and columns, in ``buffers[0]`` or as a view of stored numbers."""


class Kernel(ABC):
    r"""A function k(x, z) = ⟨φ(x), φ(z)⟩ of two points.

    ``k(X, Z)`` is its matrix for the rows of X and Z, ``k.diagonal(X)`` the values k(x, x); ``k1 + k2``, ``k1 * k2``
    and ``2.0 * k`` are kernels again. Kernels are immutable, compare by value and can be the keys of a dictionary.

    Attributes
    ----------
    positive_semidefinite : bool
        Whether every matrix k(X, X) is positive semidefinite, so that the feature map φ exists.
    normalised : bool
        Whether k(x, x) = 1 for every x.
    automatic : bool
        Whether a parameter is to be found from data, by :meth:`resolved`.
    """

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every matrix k(X, X) is positive semidefinite."""
        return True

    @property
    def normalised(self) -> bool:
        """Whether k(x, x) = 1 for every x."""
        return False

    @property
    def automatic(self) -> bool:
        """Whether a parameter is to be found from data."""
        return False

    @property
    def takes_objects(self) -> bool:
        """Whether points may be objects of any kind, and not rows of numbers only."""
        return False

    @property
    def terms(self) -> tuple[Kernel, ...]:
        """The kernels that it is a sum of, from the left: itself where it is none."""
        return (self,)

    @property
    def has_columns(self) -> bool:
        """Whether points are rows of numbers, of which some columns can be taken."""
        return not self.takes_objects

    @property
    def rate(self) -> Any:
        """γ where the kernel has one: a number, one for each feature, a rule, or None for 1/p; None where not."""
        return None

    @abstractmethod
    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points for evaluation in tiles; Z = X where None is given."""

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """k(x, x) for every row of X."""

    def resolved(self, X: Any) -> Kernel:
        """Return the kernel with its automatic parameters found from the rows of X."""
        return self

    def about_mean(self, X: Any) -> Kernel:
        r"""Return the kernel of the features φ(x) − φ(o) where centring would cost k its digits; k itself elsewhere.

        With o the mean of the rows of X,

        .. math:: k_o(x,z) = \langle\varphi(x)-\varphi(o), \varphi(z)-\varphi(o)\rangle
                           = k(x,z) - k(x,o) - k(o,z) + k(o,o)

        differs from k by g(x) + g(z), which centring takes away: both have the same centred matrix. Kernels that know
        how evaluate it from differences, so that values far larger than what centring leaves of them are never made.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.kernels import Gaussian
        >>> X = np.array([[0.0], [2.0]])
        >>> wide = Gaussian(1e-20)
        >>> wide(X)[0]  # nothing of the distance is left
        array([1., 1.])
        >>> wide.about_mean(X)(X)[0]  # 2γ(x − o)(z − o)
        array([ 2.e-20, -2.e-20])
        """
        return self

    def map_features(self, X: Any, most: int) -> Array | None:
        r"""Return Φ with ΦΦᵀ = k(X, X) and at most ``most`` columns, in float64; None where no so small one is known.

        Problems of n rows then are problems of a few features. ΦΦᵀ is off by no more than :meth:`rounding` says.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.kernels import Gaussian, Polynomial
        >>> X = np.array([[1.0, 2.0], [0.0, 1.0]])
        >>> Polynomial(2).map_features(X, 10).shape, Gaussian().map_features(X, 10)
        ((2, 6), None)
        """
        return None

    def rounding(self, X: Any) -> Array:
        r"""Return e with \|k̂(x_i, x_j) − k(x_i, x_j)\| ≤ e_i e_j for the values k̂ evaluated in float64.

        Of the rows as they are given. 0 where values are taken as they come, from a function or a matrix.
        """
        return np.zeros(X.shape[0] if is_sparse(X) else len(X))

    def formula(self, p: int) -> Formula | None:
        """Return the kernel of points with p features as a formula; None where it is none, as a Python function.

        Examples
        --------
        >>> from gramian.kernels import Polynomial
        >>> Polynomial(2, gamma=0.25).formula(3)  # (u + 1)² with u = x·z/4
        Formula(geometry='inner', profile='power', scale=0.5, parameters=(2.0, 1.0), factor=1.0, parts=(), origin=0.0)
        """
        return None

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """Return the dense matrix k(X, Z), or k(X, X), which is symmetric to the last bit."""
        if self.automatic and Z is not None:
            raise ValueError(
                f"{self!r} finds a parameter from data, and was given two sets. Say from which: "
                "kernel.resolved(X_train)(X, Z)."
            )
        # eq: kernel-trick
        pairs = (self.resolved(X) if self.automatic else self).pairs(X, Z)
        out = np.empty(pairs.shape, pairs.dtype)
        buffers = [np.empty(SIDE * SIDE, pairs.dtype) for _ in range(pairs.buffers)]
        all_rows, all_columns = ([slice(i, min(i + SIDE, n)) for i in range(0, n, SIDE)] for n in pairs.shape)
        for rows, columns in product(all_rows, all_columns):
            if pairs.symmetric and columns.start < rows.start:
                continue  # each tile is evaluated once and mirrored
            tile = pairs.fill(rows, columns, buffers)
            if pairs.symmetric and rows == columns:  # the upper triangle, in both
                tile = np.triu(tile) + np.triu(tile, 1).T
            out[rows, columns] = tile
            if pairs.symmetric and rows != columns:
                out[columns, rows] = tile.T
        return out

    def on(self, columns: Sequence[int]) -> Kernel:
        """The same function of some of the columns, counted from 0: see :class:`OnColumns`."""
        return OnColumns(self, tuple(columns))

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__

    def __repr__(self) -> str:
        shown = []
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if f.default is MISSING or value != f.default:
                many = isinstance(value, tuple) and len(value) > 4
                shown.append(f"{f.name}=" + (f"({value[0]:.4g}, ..., {value[-1]:.4g})" if many else repr(value)))
        return f"{type(self).__name__}({', '.join(shown)})"


class Normalised(Kernel):
    """A kernel with k(x, x) = 1, to the last bit."""

    @property
    def normalised(self) -> bool:
        """True."""
        return True

    def diagonal(self, X: Any) -> Array:
        """All ones."""
        return np.ones(as_points(X).shape[0])

    def less_one(self) -> Kernel:
        """The function k − 1, to a small relative error where k is close to 1."""
        raise NotImplementedError

    def typical_distance(self, X: Any, origin: Any) -> float:
        """A mean of 1 − k(x, o) over the rows, where that is small."""
        raise NotImplementedError

    def about_mean(self, X: Any) -> Kernel:
        """(k − 1)(x, z) − (k − 1)(x, o) − (k − 1)(o, z) where values are close to 1."""
        X = as_points(X)
        origin = mean_row(X)
        return NormalisedAbout(self, tuple(origin.tolist())) if self.typical_distance(X, origin) < CLOSE else self


@dataclass(frozen=True, repr=False)
class NormalisedAbout(Kernel):
    """⟨φ(x) − φ(o), φ(z) − φ(o)⟩ for a kernel with k(x, x) = 1."""

    kernel: Normalised
    origin: tuple[float, ...]

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points for k − 1, and its values at the origin."""
        return _PairsAbout(self, X, Z, dtype)

    def at_origin(self, X: Any) -> Array:
        """(k − 1)(x, o)."""
        origin = np.array([self.origin])
        return self.kernel.less_one()(X, sp.csr_array(origin) if is_sparse(X) else origin)[:, 0].astype(np.float64)

    def diagonal(self, X: Any) -> Array:
        """2(1 − k(x, o))."""
        return -2.0 * self.at_origin(X)

    def rounding(self, X: Any) -> Array:
        """Of three values of k − 1, and of their sum."""
        own = self.diagonal(X)
        return np.asarray(np.sqrt(3.0 * self.kernel.less_one().rounding(X) ** 2 + 4 * UNIT * own.max(initial=0.0)))


class _PairsAbout(Pairs):
    """Tiles of k − 1 less its values at the origin."""

    def __init__(self, kernel: NormalisedAbout, X: Any, Z: Any, dtype: npt.DTypeLike | None) -> None:
        self.parts = kernel.kernel.less_one().pairs(X, Z, dtype)
        self.shape, self.dtype, self.symmetric = self.parts.shape, self.parts.dtype, self.parts.symmetric
        self.buffers, self.serial = self.parts.buffers, self.parts.serial
        self.left = kernel.at_origin(X).astype(self.dtype)[:, None]
        self.right = self.left[:, 0] if Z is None else kernel.at_origin(Z).astype(self.dtype)

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        tile = self.parts.fill(rows, columns, buffers)
        np.subtract(tile, self.left[rows], out=tile)
        return np.asarray(np.subtract(tile, self.right[columns], out=tile))


class _Combination(Kernel):
    """A kernel of other kernels, its fields."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels it is made of."""
        return tuple(value for value in vars(self).values() if isinstance(value, Kernel))

    @property
    def positive_semidefinite(self) -> bool:
        """Whether all are."""
        # eq: kernel-positive
        return all(kernel.positive_semidefinite for kernel in self.kernels)

    @property
    def automatic(self) -> bool:
        """Whether any is."""
        return any(kernel.automatic for kernel in self.kernels)

    @property
    def takes_objects(self) -> bool:
        """Whether all do."""
        return all(kernel.takes_objects for kernel in self.kernels)

    @property
    def has_columns(self) -> bool:
        """Whether all have."""
        return all(kernel.has_columns for kernel in self.kernels)

    def resolved(self, X: Any) -> Kernel:
        """Resolve all."""
        changed = {name: value.resolved(X) for name, value in vars(self).items() if isinstance(value, Kernel)}
        return replace(self, **changed)  # type: ignore[type-var]

    def _lengths(self, kernel: Kernel, X: Any) -> Array:
        """√k(x, x): |k(x, z)| is at most the product of two of them."""
        return np.sqrt(np.abs(kernel.diagonal(X)))


@dataclass(frozen=True, repr=False)
class _Two(_Combination):
    """The sum or product of two kernels."""

    first: Kernel
    second: Kernel

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points for both."""
        parts = [kernel.pairs(X, Z, dtype) for kernel in self.kernels]
        if parts[0].dtype != parts[1].dtype:  # a Python function gives float64 whatever the data are
            parts = [kernel.pairs(X, Z, np.float64) for kernel in self.kernels]
        return _CombinedPairs(parts, np.add if isinstance(self, Sum) else np.multiply)

    def formula(self, p: int) -> Formula | None:
        """The sum or product of both, where both are formulas."""
        first, second = self.first.formula(p), self.second.formula(p)
        if first is None or second is None:
            return None
        return Formula("sum" if isinstance(self, Sum) else "product", "identity", parts=(first, second))


@dataclass(frozen=True, repr=False)
class Sum(_Two):
    r"""k₁(x, z) + k₂(x, z): the features of both, side by side.

    Parameters
    ----------
    first, second : Kernel
        The two kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian, Linear
    >>> (Linear() + 0.5 * Gaussian(1.0))(np.array([[0.0], [1.0]])).round(4)
    array([[0.5   , 0.1839],
           [0.1839, 1.5   ]])
    """

    @property
    def terms(self) -> tuple[Kernel, ...]:
        """Those of both."""
        return (*self.first.terms, *self.second.terms)

    def about_mean(self, X: Any) -> Kernel:
        """The sum of both about the mean."""
        first, second = self.first.about_mean(X), self.second.about_mean(X)
        return self if first is self.first and second is self.second else Sum(first, second)

    def map_features(self, X: Any, most: int) -> Array | None:
        """The features of both."""
        first = self.first.map_features(X, most)
        second = None if first is None else self.second.map_features(X, most - first.shape[1])
        return None if first is None or second is None else np.concatenate([first, second], axis=1)

    def rounding(self, X: Any) -> Array:
        """Of both, and of their sum: by Cauchy and Schwarz."""
        squares = [kernel.rounding(X) ** 2 + UNIT * self._lengths(kernel, X) ** 2 for kernel in self.kernels]
        return np.asarray(np.sqrt(squares[0] + squares[1]))

    def diagonal(self, X: Any) -> Array:
        """The sum of the diagonals."""
        return np.asarray(self.first.diagonal(X) + self.second.diagonal(X))

    def __repr__(self) -> str:
        return f"{self.first!r} + {self.second!r}"


@dataclass(frozen=True, repr=False)
class Product(_Two):
    r"""k₁(x, z) k₂(x, z): all products of a feature of the one with a feature of the other.

    Parameters
    ----------
    first, second : Kernel
        The two kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> (Linear() * Linear())(np.array([[2.0]]))
    array([[16.]])
    """

    @property
    def normalised(self) -> bool:
        """Whether both are."""
        return self.first.normalised and self.second.normalised

    def rounding(self, X: Any) -> Array:
        """From k₁δ₂ + δ₁k₂ + δ₁δ₂, and of the product."""
        s, t = (self._lengths(kernel, X) for kernel in self.kernels)
        d, e = (kernel.rounding(X) for kernel in self.kernels)
        return np.asarray(np.sqrt((s * e) ** 2 + (d * t) ** 2 + (d * e) ** 2 + UNIT * (s * t) ** 2))

    def diagonal(self, X: Any) -> Array:
        """The product of the diagonals."""
        return np.asarray(self.first.diagonal(X) * self.second.diagonal(X))

    def __repr__(self) -> str:
        return " * ".join(f"({part!r})" if isinstance(part, Sum) else repr(part) for part in self.kernels)


@dataclass(frozen=True, repr=False)
class Scaled(_Combination):
    r"""c k(x, z) for a positive number c.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    factor : float
        c.

    Examples
    --------
    >>> from gramian.kernels import Linear
    >>> 2 * Linear()
    2.0 * Linear()
    """

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise ValueError(f"A kernel is multiplied by positive numbers, so that it stays one; got {self.factor!r}.")
        freeze(self, factor=float(self.factor))

    @property
    def normalised(self) -> bool:
        """Only where c = 1 and k is."""
        return self.factor == 1.0 and self.kernel.normalised

    def formula(self, p: int) -> Formula | None:
        """That of k, c times as large."""
        inside = self.kernel.formula(p)
        return None if inside is None else inside._replace(factor=self.factor * inside.factor)

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points for k."""
        return _CombinedPairs([self.kernel.pairs(X, Z, dtype)], partial(np.multiply, self.factor))

    def about_mean(self, X: Any) -> Kernel:
        """c times k about the mean."""
        about = self.kernel.about_mean(X)
        return self if about is self.kernel else Scaled(about, self.factor)

    def map_features(self, X: Any, most: int) -> Array | None:
        """√c times those of k."""
        inside = self.kernel.map_features(X, most)
        return None if inside is None else np.asarray(np.sqrt(self.factor) * inside)

    def rounding(self, X: Any) -> Array:
        """√c times that of k, and of the product: of c with a value, or of √c with two features."""
        squares = self.kernel.rounding(X) ** 2 + 4 * UNIT * self._lengths(self.kernel, X) ** 2
        return np.asarray(np.sqrt(self.factor) * np.sqrt(squares))

    def diagonal(self, X: Any) -> Array:
        """c times the diagonal of k."""
        return np.asarray(self.factor * self.kernel.diagonal(X))

    def __repr__(self) -> str:
        inside = f"({self.kernel!r})" if isinstance(self.kernel, Sum) else repr(self.kernel)
        return f"{self.factor!r} * {inside}"


@dataclass(frozen=True, repr=False)
class OnColumns(_Combination):
    r"""k of some of the columns: k(x, z) = k₀(x_C, z_C).

    Written ``kernel.on(columns)``. Sums of kernels on groups of columns are how the parts of a model are told apart.

    Parameters
    ----------
    kernel : Kernel
        k₀.
    columns : sequence of int
        C, counted from 0, each once.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> Linear().on([1])(np.array([[5.0, 2.0]]))
    array([[4.]])
    """

    kernel: Kernel
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        columns = np.atleast_1d(np.asarray(self.columns))
        if columns.ndim != 1 or not len(columns) or columns.dtype.kind not in "iu" or np.any(columns < 0):
            raise ValueError(f"columns must be whole numbers, counted from 0, and at least one; got {self.columns!r}.")
        if len(np.unique(columns)) < len(columns):
            raise ValueError(f"columns names one of them twice: {self.columns!r}.")
        if not self.kernel.has_columns:
            raise ValueError(f"{self.kernel!r} is not a function of rows of numbers, of which columns could be taken.")
        freeze(self, columns=tuple(columns.tolist()))

    @property
    def normalised(self) -> bool:
        """Whether k₀ is."""
        return self.kernel.normalised

    def take(self, X: Any) -> Any:
        """The columns of some points."""
        X = as_points(X)
        if max(self.columns) >= X.shape[1]:
            raise ValueError(
                f"{self!r} asks for column {max(self.columns)}, counted from 0, of points with {X.shape[1]} columns."
            )
        return X[:, list(self.columns)]

    def resolved(self, X: Any) -> Kernel:
        """Resolve k₀ for these columns."""
        return replace(self, kernel=self.kernel.resolved(self.take(X)))

    def formula(self, p: int) -> Formula | None:
        """That of k₀, with s = 0 elsewhere; None where u is no sum over columns."""
        inside = self.kernel.formula(len(self.columns))
        return None if inside is None else _spread(inside, list(self.columns), p)

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare these columns for k₀."""
        return self.kernel.pairs(self.take(X), None if Z is None else self.take(Z), dtype)

    def about_mean(self, X: Any) -> Kernel:
        """k₀ about the mean of these columns."""
        about = self.kernel.about_mean(self.take(X))
        return self if about is self.kernel else replace(self, kernel=about)

    def map_features(self, X: Any, most: int) -> Array | None:
        """Those of k₀."""
        return self.kernel.map_features(self.take(X), most)

    def rounding(self, X: Any) -> Array:
        """That of k₀."""
        return self.kernel.rounding(self.take(X))

    def diagonal(self, X: Any) -> Array:
        """That of k₀."""
        return self.kernel.diagonal(self.take(X))

    def __repr__(self) -> str:
        inside = f"({self.kernel!r})" if isinstance(self.kernel, (Sum, Product, Scaled)) else repr(self.kernel)
        steps = set(np.diff(self.columns))
        if len(self.columns) > 2 and steps == {1}:
            return f"{inside}.on(range({self.columns[0]}, {self.columns[-1] + 1}))"
        return f"{inside}.on({list(self.columns)})"


def _spread(formula: Formula, columns: list[int], p: int) -> Formula | None:
    """A formula of some columns as one of all p: with s = 0 in the others."""
    if formula.parts:
        parts = [_spread(part, columns, p) for part in formula.parts]
        known_parts = tuple(part for part in parts if part is not None)
        return formula._replace(parts=known_parts) if len(known_parts) == len(parts) else None
    if formula.geometry == "cosine":
        return None
    scale, origin = np.zeros(p), np.zeros(p)
    scale[columns], origin[columns] = formula.scale, formula.origin
    return formula._replace(scale=scale, origin=origin if np.any(origin) else 0.0)


class _CombinedPairs(Pairs):
    """Tiles of a few kernels, joined in the first buffer: they may be views of stored numbers.

    The tile of each is in the buffers after that of the one before.
    """

    def __init__(self, parts: Sequence[Pairs], join: Any) -> None:
        self.parts, self.join = parts, join
        self.shape, self.dtype, self.symmetric = parts[0].shape, parts[0].dtype, parts[0].symmetric
        self.buffers = 1 + max(i + part.buffers for i, part in enumerate(parts))
        self.serial = any(part.serial for part in parts)

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        """Return the joined tile."""
        tiles = [part.fill(rows, columns, buffers[1 + i :]) for i, part in enumerate(self.parts)]
        return np.asarray(self.join(*tiles, out=room(buffers[0], rows, columns)))


def room(buffer: Array, rows: slice, columns: slice) -> Array:
    """Return the beginning of a buffer as a contiguous tile."""
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    return buffer[: shape[0] * shape[1]].reshape(shape)


is_sparse: Callable[[Any], bool] = sp.issparse


def as_points(X: Any) -> Any:
    """Return X as a two-dimensional array of finite real numbers, or as CSR."""
    X = sp.csr_array(X) if is_sparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"Expected rows of features (2 dimensions), got shape {X.shape}. Use X.reshape(-1, 1) for one."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"Expected real numbers, got an array of dtype {X.dtype}. For other objects use Callable.")
    values = X.data if is_sparse(X) else X
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = tuple(np.argwhere(~np.isfinite(values))[0])
        where = f"stored value {at[0] + 1}" if is_sparse(X) else f"row {at[0] + 1}, column {at[1] + 1}"
        raise ValueError(f"A kernel needs finite numbers; {where} is {values[at]}. Remove or replace it.")
    return X


def as_two_sets(X: Any, Z: Any, dtype: npt.DTypeLike | None) -> tuple[Any, Any, np.dtype[Any]]:
    """Both sets of points, Z being X itself where None is given, and the dtype of their kernel."""
    X = as_points(X)
    Z = X if Z is None else as_points(Z)
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns and Z has {Z.shape[1]}: a kernel compares points of one space.")
    return X, Z, result_dtype(X, Z, dtype)


def result_dtype(X: Any, Z: Any, dtype: npt.DTypeLike | None) -> np.dtype[Any]:
    """Return the dtype asked for; else float32 where all data are, and float64."""
    if dtype is not None:
        return np.dtype(dtype)
    single = X.dtype == np.float32 and (Z is None or Z.dtype == np.float32)
    return np.dtype(np.float32 if single else np.float64)


def mean_row(X: Any) -> npt.NDArray[np.float64]:
    """The mean of the rows; 0 of sparse ones, which stay sparse."""
    return np.zeros(X.shape[1]) if is_sparse(X) or not len(X) else np.asarray(X.mean(axis=0, dtype=np.float64))


def row_squares(X: Any) -> Array:
    """‖x‖² of every row, in float64."""
    if is_sparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))
