"""The Laplacian kernel, of the sum of absolute differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from gramian.kernels._exponential import RATE, at_least, exponential, lowest
from gramian.kernels._parameters import freeze, per_feature, positive
from gramian.kernels.base import Kernel, Pairs, as_points, is_sparse, result_dtype, room, same_columns
from gramian.kernels.formula import Formula

__all__ = ["Laplacian"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Laplacian(Kernel):
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
    def normalised(self) -> bool:
        """k(x, x) = 1, to the last bit."""
        return True

    def resolved(self, X: Any) -> Laplacian:
        """Return the kernel with γ as a number."""
        return self if self.gamma is not None else Laplacian(1.0 / as_points(X).shape[1])

    def pairs(self, X: Any, Z: Any = None, dtype: npt.DTypeLike | None = None) -> Pairs:
        """Prepare the points: features multiplied by γ."""
        X = as_points(X)
        Z = X if Z is None else as_points(Z)
        same_columns(X, Z)
        if is_sparse(X) != is_sparse(Z):
            raise ValueError("One of X and Z is sparse and the other is not. Convert one of them with .toarray().")
        return _ManhattanPairs(X, Z, self._rates(X.shape[1]), result_dtype(X, Z, dtype))

    def formula(self, p: int) -> Formula:
        """e⁻ᵘ with s = γ."""
        return Formula("absolute", "exp", self._rates(p))

    def _rates(self, p: int) -> Any:
        return 1.0 / p if self.gamma is None else per_feature("gamma", self.gamma, p)

    def diagonal(self, X: Any) -> Array:
        """All ones."""
        X = as_points(X)
        return np.ones(X.shape[0], result_dtype(X, None, None))


class _ManhattanPairs(Pairs):
    """exp(−‖f − g‖₁) by differences, which need no care."""

    def __init__(self, X: Any, Z: Any, gamma: Any, dtype: np.dtype[Any]) -> None:
        self.dtype, self.symmetric, self.shape = dtype, Z is X, (X.shape[0], Z.shape[0])
        # about a common origin, so that what features have in common costs no digits
        origin = 0.0 if is_sparse(Z) or not len(Z) else np.asarray(Z, dtype=np.float64).mean(axis=0)
        self.Z = _multiplied(Z, gamma * RATE, origin)
        self.X = self.Z if Z is X else _multiplied(X, gamma * RATE, origin)

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Array]) -> Array:
        distance = manhattan_distances if is_sparse(self.X) else _cityblock
        tile = room(buffers[0], rows, columns)
        np.negative(distance(self.X[rows], self.Z[columns]), out=tile, casting="same_kind")
        return np.asarray(exponential(at_least(tile, lowest(self.dtype)), out=tile))


def _cityblock(X: Array, Z: Array) -> Array:
    return np.asarray(cdist(X, Z, "cityblock"))


def _multiplied(X: Any, gamma: Any, origin: Any) -> Any:
    """The features about an origin times γ, in float64."""
    if not is_sparse(X):
        return (np.asarray(X, dtype=np.float64) - origin) * gamma
    X = X.astype(np.float64)
    return X * gamma if np.ndim(gamma) == 0 else sp.csr_array(X @ sp.diags_array(gamma))
