"""The linear kernel x·z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels._inner import InnerPairs, row_squares
from gramian.kernels.base import Kernel, Pairs, as_points, result_dtype
from gramian.kernels.formula import Formula

__all__ = ["Linear"]

Array = npt.NDArray[Any]


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
        X = as_points(X)
        return np.asarray(row_squares(X).astype(result_dtype(X, None, None)))
