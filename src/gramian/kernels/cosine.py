"""The cosine kernel x·z/(‖x‖‖z‖)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels._inner import InnerPairs, row_squares
from gramian.kernels.base import Kernel, Pairs, as_points, result_dtype
from gramian.kernels.formula import Formula

__all__ = ["Cosine"]

Array = npt.NDArray[Any]


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
        return np.asarray((row_squares(X) > 0).astype(result_dtype(X, None, None)))


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
