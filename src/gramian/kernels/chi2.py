"""The chi-squared kernels, for histograms and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels._exponential import RATE, at_least, exponential, lowest
from gramian.kernels._parameters import freeze, positive
from gramian.kernels.base import Kernel, Pairs, as_points, is_sparse, result_dtype, room, same_columns
from gramian.kernels.formula import Formula

__all__ = ["AdditiveChi2", "Chi2"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Chi2(Kernel):
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
        gamma = positive("gamma", self.gamma)
        if isinstance(gamma, tuple):
            raise ValueError(f"gamma is one number here, got {self.gamma!r}.")
        freeze(self, gamma=gamma)

    @property
    def normalised(self) -> bool:
        """k(x, x) = 1, to the last bit."""
        return True

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points: features times γ."""
        return _Chi2Pairs(X, Z, dtype, self.gamma * RATE, exponent=True)

    def formula(self, p: int) -> Formula:
        """e⁻ᵘ with s = γ."""
        return Formula("chi2", "exp", self.gamma)

    def diagonal(self, X: Any) -> Array:
        """All ones."""
        X = _counts(X)
        return np.ones(len(X), result_dtype(X, None, None))


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
        return _Chi2Pairs(X, Z, dtype, 1.0, exponent=False)

    def formula(self, p: int) -> Formula:
        """−u."""
        return Formula("chi2", "identity", factor=-1.0)

    def diagonal(self, X: Any) -> Array:
        """All zeros."""
        X = _counts(X)
        return np.zeros(len(X), result_dtype(X, None, None))


class _Chi2Pairs(Pairs):
    """Tiles of the sum, feature by feature in two scratch tiles."""

    buffers = 3

    def __init__(self, X: Any, Z: Any, dtype: npt.DTypeLike | None, gamma: float, exponent: bool) -> None:
        X = _counts(X)
        Z = X if Z is None else _counts(Z)
        same_columns(X, Z)
        self.dtype, self.symmetric, self.exponent = result_dtype(X, Z, dtype), Z is X, exponent
        self.shape = (len(X), len(Z))
        # features as rows, in memory one after another
        self.X, self.Z = (np.ascontiguousarray(A.T, dtype=self.dtype) * self.dtype.type(gamma) for A in (X, Z))

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
        return np.asarray(exponential(at_least(tile, lowest(self.dtype)), out=tile)) if self.exponent else tile


def _counts(X: Any) -> Array:
    """Refuse sparse and negative data by name."""
    X = as_points(X)
    if is_sparse(X):
        raise ValueError("The chi-squared kernels take dense data. Convert X with X.toarray().")
    if X.size and X.min() < 0:
        i, j = np.unravel_index(int(np.argmin(X)), X.shape)
        raise ValueError(f"Negative values in data passed to a chi-squared kernel: row {i}, column {j} is {X[i, j]}.")
    return np.asarray(X)
