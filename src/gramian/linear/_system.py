"""Systems (A + λ_jI)x_j = b_j of a symmetric operator: checked, scaled to unit length, and measured in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import is_numpy_namespace, to_device

from gramian.operators.base import Operator

__all__ = ["System", "numbers"]

Array = Any
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

ROUNDING = 8.0  # measured errors of tiled products are 1 to 6 times the estimate below, up to 20 where centred


class System:
    """Right-hand sides divided by their lengths, products with A or its twin, and what they tell of ‖A‖."""

    def __init__(self, A: Operator, B: Any, shifts: Any, twin: Operator | None = None) -> None:
        self.A, self.twin = A, twin
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"A symmetric operator is square; this one has the shape {A.shape}.")
        if twin is not None and twin.shape != A.shape:
            raise ValueError(f"The twin has the shape {twin.shape} and the operator {A.shape}.")
        given = numbers(B)
        self.vector = given.ndim == 1
        given = given[:, None] if self.vector else given
        _check_sides(given, A.shape[0])
        self.lam = _checked_shifts(shifts, given.shape[1])
        self.lengths = _lengths(given)
        self.B: Matrix = given / np.where(self.lengths > 0, self.lengths, 1.0)
        self.norm = 0.0  # ‖A‖ from below, of all products so far
        self.column: float | None = None  # the root mean square of ‖Ae_j‖, where it was estimated
        self.eps = A.epsilon
        self._before = self._count()

    @property
    def passes(self) -> int:
        """Passes over A and its twin since the beginning."""
        return self._count() - self._before

    def _count(self) -> int:
        return self.A.passes + (0 if self.twin is None or self.twin is self.A else self.twin.passes)

    def product(self, V: Matrix, columns: Index, narrow: bool = False) -> Matrix:
        """(A + λ_jI)v_j, of columns brought to unit length first: float32 has few exponents."""
        lengths = _lengths(V)
        V = V / np.where(lengths > 0, lengths, 1.0)
        A = self.twin if narrow and self.twin is not None else self.A
        Y = numbers(A.matmat(A.asarray(V)))
        self.norm = max(self.norm, float(np.max(np.linalg.norm(Y, axis=0), initial=0.0)))
        return np.asarray((Y + self.lam[columns] * V) * lengths)

    def residual(self, X: Matrix, columns: Index) -> Matrix:
        """b_j − (A + λ_jI)x_j by A itself."""
        return np.asarray(self.B[:, columns] - self.product(X, columns))

    def rounding(self, X: Matrix) -> float:
        r"""What rounding leaves of ‖Ax‖/‖b‖: errors of random sign, about ε√(Σ‖Ae_j‖²x_j²).

        Higham and Mary (2019) say why rounding errors add up like this and not as their bounds do. Where ‖Ae_j‖ is not
        known, ‖Ae_j‖² ≤ ‖A‖ max A_ii, or ‖A‖ itself. A device that promises a relative error of its products is
        taken at its word.
        """
        column = self.column or float(np.sqrt(self.norm * min(self.norm, self._largest())))
        unit = float(self.A.xp.finfo(self.A.dtype).eps)
        each = (max(ROUNDING * unit, self.eps) * column + unit * self.lam) * np.linalg.norm(X, axis=0)
        return float(np.max(each, initial=0.0))

    def _largest(self) -> float:
        """The largest entry of the diagonal of A, where A knows it."""
        knows = all(hasattr(A, "diagonal") for A in (self.A, getattr(self.A, "A", self.A)))
        return float(np.max(np.abs(numbers(self.A.diagonal())), initial=0.0)) if knows else np.inf  # type: ignore[attr-defined]

    @property
    def precisions(self) -> tuple[str, ...]:
        """How the products of A and of its twin are made, where that is not NumPy's own way: for the certificate."""
        said = (A.precision for A in (self.A, self.twin) if A is not None and A.precision)
        return tuple(dict.fromkeys(said))

    def values(self, X: Matrix) -> Array:
        """The solution of the system as it was given, where A lives and in the shape of B."""
        X = X * self.lengths
        X = X[:, 0] if self.vector else X
        return X if is_numpy_namespace(self.A.xp) else self.A.asarray(X)


def numbers(x: Any) -> Any:
    """As float64 NumPy, whatever the device."""
    return np.asarray(x if isinstance(x, np.ndarray) or not hasattr(x, "device") else to_device(x, "cpu"), np.float64)


def _lengths(V: Matrix) -> Vector:
    """Norms of the columns; they do not vanish because their squares would."""
    largest = np.max(np.abs(V), axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray(unit * np.linalg.norm(V / unit, axis=0))


def _check_sides(B: Matrix, n: int) -> None:
    if B.ndim != 2 or B.shape[0] != n:
        raise ValueError(f"Right-hand sides of an operator with {n} rows have the shape ({n}, t), got {B.shape}.")
    if not np.isfinite(B).all():
        i, j = np.argwhere(~np.isfinite(B))[0]
        raise ValueError(f"Right-hand sides must be finite; row {i}, column {j} is {B[i, j]}. Remove or replace it.")


def _checked_shifts(shifts: Any, t: int) -> Vector:
    lam = np.asarray(shifts, dtype=np.float64)
    if lam.ndim > 1 or lam.size not in (1, t):
        raise ValueError(f"Give one shift, or one for each of the {t} right-hand sides; got {lam.size}.")
    wrong = ~(np.isfinite(lam) & (lam >= 0))
    if wrong.any():
        raise ValueError(f"A shift λ must be a finite number, not negative; got {float(lam[wrong].flat[0])!r}.")
    return np.array(np.broadcast_to(lam.reshape(-1), (t,)))
