"""Systems whose vectors stay on the device of their operator, so that a step of a solver moves a few numbers only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_numpy_namespace

from gramian.linear._places import lengths, placed, row, take, wide
from gramian.linear._system import System, numbers
from gramian.operators.base import Operator

__all__ = ["Resident", "system_for"]

Array = Any
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

VECTORS = 10  # for each right-hand side: b, x, r, p, what a step makes of them, and x before the cycle
ROOMS = 2  # times the room for a solver's vectors that they may take: a quarter of a card


def system_for(A: Operator, B: Any, shifts: Any, twin: Operator | None = None) -> System:
    """Return the system with its vectors on the device of A where they fit there, in NumPy otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear._resident import system_for
    >>> from gramian.operators import Data
    >>> type(system_for(Data(np.eye(2)), np.ones(2), 1.0)).__name__
    'System'
    """
    together = twin is None or (twin.device == A.device and is_numpy_namespace(twin.xp) == is_numpy_namespace(A.xp))
    if is_numpy_namespace(A.xp) or not together or getattr(A.device, "type", "") == "mps":  # which has no float64
        return System(A, B, shifts, twin)
    size = int(np.prod(np.shape(B))) * 8 * VECTORS
    return Resident(A, B, shifts, twin) if size <= ROOMS * A.room else System(A, B, shifts, twin)


class Resident(System):
    """The same system with B, and every vector handed in or out, as float64 tensors where A lives."""

    def __init__(self, A: Operator, B: Any, shifts: Any, twin: Operator | None = None) -> None:
        super().__init__(A, B, shifts, twin)
        self.B: Any = A.xp.asarray(self.B, dtype=A.xp.float64, **A._where())

    def product(self, V: Array, columns: Index, narrow: bool = False) -> Array:
        """(A + λ_jI)v_j, of columns brought to unit length first."""
        size = _norms(V)
        V = V / row(np.where(size > 0, size, 1.0), V)
        A = self.twin if narrow and self.twin is not None else self.A
        Y = wide(A.matmat(A.asarray(V)))
        self.norm = max(self.norm, float(np.max(lengths(Y), initial=0.0)))
        return (Y + row(self.lam[columns], V) * V) * row(size, V)

    def residual(self, X: Array, columns: Index) -> Array:
        """b_j − (A + λ_jI)x_j by A itself."""
        return take(self.B, columns) - self.product(X, columns)

    def rounding(self, X: Array) -> float:
        """What rounding leaves of ‖Ax‖/‖b‖, which depends on the length of x alone."""
        return super().rounding(lengths(X)[None, :])

    def values(self, X: Array) -> Array:
        """The solution of the system as it was given, in the shape of B."""
        X = X * placed(self.lengths, X)[None, :]
        return self.A.asarray(X[:, 0] if self.vector else X)


def _norms(V: Array) -> Vector:
    """Lengths of the columns; they do not vanish because their squares would."""
    if not V.shape[0]:
        return np.zeros(V.shape[1])
    xp = array_namespace(V)
    largest = xp.max(xp.abs(V), axis=0)
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    return np.asarray(lengths(V / unit[None, :]) * numbers(unit))
