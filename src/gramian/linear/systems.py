"""Systems whose vectors stay on the device of their operator, so that a step of a solver moves a few numbers only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace, device, is_numpy_namespace

from gramian.compute.devices import is_numpy, like, to_numpy
from gramian.operators.base import Capability, Operator

__all__ = [
    "Resident",
    "System",
    "cholesky",
    "dots",
    "duplicate",
    "eigh",
    "lengths",
    "put",
    "row",
    "system_for",
    "take",
    "triangular",
    "wide",
]

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
        given = to_numpy(B, float)
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
        Y = to_numpy(A.matmat(A.asarray(V)), float)
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
        if Capability.DIAGONAL not in self.A.capabilities:
            return np.inf
        return float(np.max(np.abs(to_numpy(self.A.diagonal(), float)), initial=0.0))

    @property
    def precision(self) -> str:
        """How the products of A and of its twin are made, where that is not NumPy's own way: for the certificate."""
        made = (A.precision for A in (self.A, self.twin) if A is not None and A.precision)
        return "; ".join(dict.fromkeys(made))

    def values(self, X: Matrix) -> Array:
        """The solution of the system as it was given, where A lives and in the shape of B."""
        X = X * self.lengths
        X = X[:, 0] if self.vector else X
        return X if is_numpy_namespace(self.A.xp) else self.A.asarray(X)


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


def wide(x: Array) -> Array:
    """In float64 where x lives; x itself where it is."""
    xp = array_namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def duplicate(Y: Array) -> Array:
    """Return a copy where Y lives."""
    return Y.copy() if is_numpy(Y) else array_namespace(Y).asarray(Y, copy=True)


def row(x: Vector, Y: Array) -> Array:
    """A number for each column of Y, to be multiplied by them where they live."""
    return x if is_numpy(Y) else like(Y, x, float)[None, :]


def take(Y: Array, index: Index, axis: int = 1) -> Array:
    """Some columns, or rows: on a device Y itself where they are all, in ascending order."""
    if is_numpy(Y):
        return np.take(Y, index, axis=axis) if axis == 0 else Y[:, index]
    if len(index) == Y.shape[axis] and np.array_equal(index, np.arange(len(index))):
        return Y
    xp = array_namespace(Y)
    return xp.take(Y, xp.asarray(index, device=device(Y)), axis=axis)


def put(Y: Array, index: Index, Z: Array) -> None:
    """Write some columns in place."""
    if is_numpy(Y):
        Y[:, index] = Z
    elif len(index):
        Y[:, array_namespace(Y).asarray(index, device=device(Y))] = Z


def dots(Y: Array, Z: Array) -> Vector:
    """Inner products of columns, in NumPy."""
    return np.asarray(np.sum(Y * Z, axis=0) if is_numpy(Y) else to_numpy(array_namespace(Y).sum(Y * Z, axis=0), float))


def lengths(Y: Array) -> Vector:
    """Lengths of columns, in NumPy."""
    return np.asarray(np.linalg.norm(Y, axis=0) if is_numpy(Y) else np.sqrt(dots(Y, Y)))


def triangular(L: Array, B: Array, transposed: bool = False) -> Array:
    """L⁻¹B, or L⁻ᵀB, solved where the lower triangular L lives and returned where B does."""
    if not B.shape[0]:
        return B
    if is_numpy(L):
        return scipy.linalg.solve_triangular(L, B, lower=True, trans=1 if transposed else 0, check_finite=False)
    xp, there = array_namespace(L), like(L, B, float)
    X = xp.linalg.solve_triangular(L.T if transposed else L, there, upper=transposed)
    return to_numpy(X, float) if is_numpy(B) else X


def cholesky(A: Array) -> Array:
    """The lower triangular factor of a matrix on a device; LinAlgError, as in NumPy, where it is not definite."""
    try:
        return array_namespace(A).linalg.cholesky(A)
    except RuntimeError as error:  # what torch raises
        raise np.linalg.LinAlgError(str(error)) from error


def eigh(A: Array) -> tuple[Vector, Array]:
    """Eigenvalues, in NumPy, and eigenvectors of a matrix on a device, both in ascending order."""
    values, V = array_namespace(A).linalg.eigh(A)
    return to_numpy(values, float), V


VECTORS = 10  # for each right-hand side: b, x, r, p, what a step makes of them, and x before the cycle
ROOMS = 2  # times the room for a solver's vectors that they may take: a quarter of a card


def system_for(A: Operator, B: Any, shifts: Any, twin: Operator | None = None) -> System:
    """Return the system with its vectors on the device of A where they fit there, in NumPy otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.systems import system_for
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
        self.B: Any = A.xp.asarray(self.B, dtype=A.xp.float64, **A.placement)

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
        X = X * like(X, self.lengths, float)[None, :]
        return self.A.asarray(X[:, 0] if self.vector else X)


def _norms(V: Array) -> Vector:
    """Lengths of the columns; they do not vanish because their squares would."""
    if not V.shape[0]:
        return np.zeros(V.shape[1])
    xp = array_namespace(V)
    largest = xp.max(xp.abs(V), axis=0)
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    return np.asarray(lengths(V / unit[None, :]) * to_numpy(unit, float))
