"""The polynomial kernels, homogeneous and not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels._inner import InnerPairs, row_squares
from gramian.kernels._parameters import freeze, positive
from gramian.kernels.base import Kernel, Pairs, as_points, result_dtype
from gramian.kernels.formula import Formula

__all__ = ["Polynomial"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
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
        if not float(self.degree).is_integer() or self.degree < 1:
            raise ValueError(f"degree must be a whole number from 1 on, got {self.degree!r}.")
        if not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        gamma = positive("gamma", self.gamma, optional=True)
        if isinstance(gamma, tuple):
            raise ValueError(f"gamma is one number here, got {self.gamma!r}. Multiply the columns by its square roots.")
        freeze(self, degree=int(self.degree), coef0=float(self.coef0), gamma=gamma)

    @property
    def positive_semidefinite(self) -> bool:
        """Whether c ≥ 0."""
        return self.coef0 >= 0

    def resolved(self, X: Any) -> Polynomial:
        """Return the kernel with γ as a number."""
        return self if self.gamma is not None else Polynomial(self.degree, self.coef0, 1.0 / as_points(X).shape[1])

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
        values = (self._rate(X.shape[1]) * row_squares(X) + self.coef0) ** self.degree
        return np.asarray(values.astype(result_dtype(X, None, None)))

    def _rate(self, p: int) -> float:
        return 1.0 / p if self.gamma is None else self.gamma

    def _power(self, tile: Array, spare: Sequence[Array]) -> Array:
        """(tile + c)^q in place, by squaring from the highest bit of q down."""
        if self.coef0:
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
