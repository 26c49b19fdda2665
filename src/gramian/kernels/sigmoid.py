"""The sigmoid kernel tanh(γ x·z + c), which is not positive semidefinite."""

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

__all__ = ["Sigmoid"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Sigmoid(Kernel):
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

    def __post_init__(self) -> None:
        if not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        gamma = positive("gamma", self.gamma, optional=True)
        if isinstance(gamma, tuple):
            raise ValueError(f"gamma is one number here, got {self.gamma!r}. Multiply the columns by its square roots.")
        freeze(self, gamma=gamma, coef0=float(self.coef0))

    @property
    def positive_semidefinite(self) -> bool:
        """False."""
        return False

    def resolved(self, X: Any) -> Sigmoid:
        """Return the kernel with γ as a number."""
        return self if self.gamma is not None else Sigmoid(1.0 / as_points(X).shape[1], self.coef0)

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
        values = np.tanh(self._rate(X.shape[1]) * row_squares(X) + self.coef0)
        return np.asarray(values.astype(result_dtype(X, None, None)))

    def _rate(self, p: int) -> float:
        return 1.0 / p if self.gamma is None else self.gamma

    def _tanh(self, tile: Array, spare: Sequence[Array]) -> Array:
        np.add(tile, self.coef0, out=tile)
        return np.asarray(np.tanh(tile, out=tile))

    def __repr__(self) -> str:
        inside = super().__repr__().removeprefix("Sigmoid(").removesuffix(")")
        return f"Sigmoid({inside}{', ' if inside else ''}indefinite)"
