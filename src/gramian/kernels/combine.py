"""Sums, products and multiples of kernels, which are kernels again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels.base import Formula, Kernel, Pairs, combination, freeze

__all__ = ["Product", "Scaled", "Sum"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class _Two(Kernel):
    """A kernel of two kernels."""

    first: Kernel
    second: Kernel

    @property
    def positive_semidefinite(self) -> bool:
        """Whether both are."""
        return self.first.positive_semidefinite and self.second.positive_semidefinite

    @property
    def automatic(self) -> bool:
        """Whether either is."""
        return self.first.automatic or self.second.automatic

    @property
    def takes_objects(self) -> bool:
        """Whether both do."""
        return self.first.takes_objects and self.second.takes_objects

    def resolved(self, X: Any) -> Kernel:
        """Resolve both."""
        return type(self)(self.first.resolved(X), self.second.resolved(X))

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points for both."""
        first, second = self.first.pairs(X, Z, dtype), self.second.pairs(X, Z, dtype)
        if first.dtype != second.dtype:  # a Python function gives float64 whatever the data are
            first, second = self.first.pairs(X, Z, np.float64), self.second.pairs(X, Z, np.float64)
        return _TwoPairs(first, second, np.add if isinstance(self, Sum) else np.multiply)

    def formula(self, p: int) -> Formula | None:
        """The sum or product of both, where both are formulas."""
        first, second = self.first.formula(p), self.second.formula(p)
        if first is None or second is None:
            return None
        return Formula("sum" if isinstance(self, Sum) else "product", "identity", parts=(first, second))


@combination
@dataclass(frozen=True, repr=False)
class Sum(_Two):
    r"""k₁(x, z) + k₂(x, z): the features of both, side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian, Linear
    >>> (Linear() + 0.5 * Gaussian(1.0))(np.array([[0.0], [1.0]])).round(4)
    array([[0.5   , 0.1839],
           [0.1839, 1.5   ]])
    """

    def diagonal(self, X: Any) -> Array:
        """The sum of the diagonals."""
        return np.asarray(self.first.diagonal(X) + self.second.diagonal(X))

    def __repr__(self) -> str:
        return f"{self.first!r} + {self.second!r}"


@combination
@dataclass(frozen=True, repr=False)
class Product(_Two):
    r"""k₁(x, z) k₂(x, z): all products of a feature of the one with a feature of the other.

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

    def diagonal(self, X: Any) -> Array:
        """The product of the diagonals."""
        return np.asarray(self.first.diagonal(X) * self.second.diagonal(X))

    def __repr__(self) -> str:
        parts = [f"({part!r})" if isinstance(part, Sum) else repr(part) for part in (self.first, self.second)]
        return " * ".join(parts)


@combination
@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    r"""c k(x, z) for a positive number c.

    Examples
    --------
    >>> from gramian.kernels import Linear
    >>> 2 * Linear()
    2.0 * Linear()
    """

    kernel: Kernel
    factor: float

    @property
    def takes_objects(self) -> bool:
        """Whether the kernel does."""
        return self.kernel.takes_objects

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise ValueError(f"A kernel is multiplied by positive numbers, so that it stays one; got {self.factor!r}.")
        freeze(self, factor=float(self.factor))

    @property
    def positive_semidefinite(self) -> bool:
        """Whether k is."""
        return self.kernel.positive_semidefinite

    @property
    def normalised(self) -> bool:
        """Only where c = 1 and k is."""
        return self.factor == 1.0 and self.kernel.normalised

    @property
    def automatic(self) -> bool:
        """Whether k is."""
        return self.kernel.automatic

    def resolved(self, X: Any) -> Kernel:
        """Resolve k."""
        return Scaled(self.kernel.resolved(X), self.factor)

    def formula(self, p: int) -> Formula | None:
        """That of k, c times as large."""
        inside = self.kernel.formula(p)
        return None if inside is None else inside._replace(factor=self.factor * inside.factor)

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points for k."""
        return _ScaledPairs(self.kernel.pairs(X, Z, dtype), self.factor)

    def diagonal(self, X: Any) -> Array:
        """c times the diagonal of k."""
        return np.asarray(self.factor * self.kernel.diagonal(X))

    def __repr__(self) -> str:
        inside = f"({self.kernel!r})" if isinstance(self.kernel, Sum) else repr(self.kernel)
        return f"{self.factor!r} * {inside}"


class _TwoPairs(Pairs):
    """Tile by tile: the first in the first buffers, the second in those after its tile."""

    def __init__(self, first: Pairs, second: Pairs, join: Any) -> None:
        self.first, self.second, self.join = first, second, join
        self.shape, self.dtype, self.symmetric = first.shape, first.dtype, first.symmetric
        self.buffers = 1 + max(first.buffers, 1 + second.buffers)
        self.serial = first.serial or second.serial

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        left = self.first.fill(rows, columns, buffers[1:])
        right = self.second.fill(rows, columns, buffers[2:])
        out = buffers[0][: left.size].reshape(left.shape)
        return np.asarray(self.join(left, right, out=out))


class _ScaledPairs(Pairs):
    """A tile and a factor; the extra buffer is for tiles that are views of stored numbers."""

    def __init__(self, pairs: Pairs, factor: float) -> None:
        self.pairs, self.factor = pairs, factor
        self.shape, self.dtype, self.symmetric, self.serial = pairs.shape, pairs.dtype, pairs.symmetric, pairs.serial
        self.buffers = 1 + pairs.buffers

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        tile = self.pairs.fill(rows, columns, buffers[1:])
        out = buffers[0][: tile.size].reshape(tile.shape)
        return np.asarray(np.multiply(tile, self.factor, out=out))
