"""Symmetric systems (A + λ_jI)x_j = b_j, and the algebra of columns that live in NumPy or on the device of A."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace, device, is_numpy_namespace

from gramian.compute import factor
from gramian.compute.devices import is_numpy, like, to_numpy
from gramian.operators.base import Capability, Operator

Array = Any  # of NumPy, or a tensor
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

ROUNDING = 8.0  # measured errors of tiled products are 1 to 6 times the estimate below, up to 20 where centred
VECTORS = 10  # for each right-hand side: b, x, r, p, what a step makes of them, and x before the cycle
ROOMS = 2  # times the room for a solver's vectors that they may take on a device: a quarter of it


class System:
    """Right-hand sides divided by their lengths, products with A or its twin, and what they tell of ‖A‖.

    With ``on_device`` B and every vector handed in or out are float64 tensors where A lives, if they fit there; NumPy's
    otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.systems import System
    >>> from gramian.operators import Data
    >>> System(Data(np.eye(2)), np.ones(2), 1.0).residual(np.zeros((2, 1)), np.array([0])).round(6).ravel().tolist()
    [0.707107, 0.707107]
    """

    def __init__(
        self, A: Operator, B: Any, shifts: Any, twin: Operator | None = None, *, on_device: bool = False
    ) -> None:
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"A symmetric operator is square; this one has the shape {A.shape}.")
        if twin is not None and twin.shape != A.shape:
            raise ValueError(f"The twin has the shape {twin.shape} and the operator {A.shape}.")
        self.A, self.twin = A, twin
        sides = to_numpy(B, float)
        self.vector = sides.ndim == 1
        sides = sides[:, None] if self.vector else sides
        if sides.ndim != 2 or len(sides) != A.shape[0]:
            n = A.shape[0]
            raise ValueError(
                f"Right-hand sides of an operator with {n} rows have the shape ({n}, t), got {sides.shape}."
            )
        if not np.isfinite(sides).all():
            i, j = np.argwhere(~np.isfinite(sides))[0]
            raise ValueError(
                f"Right-hand sides must be finite; row {i + 1}, column {j + 1} is {sides[i, j]}. Remove or replace it."
            )
        self.lam = check_shifts(shifts, sides.shape[1])
        self.lengths = lengths(sides)
        self.B: Array = sides / np.where(self.lengths > 0, self.lengths, 1.0)
        together = twin is None or twin.device == A.device
        if on_device and A.uses_torch and together and 8 * VECTORS * sides.size <= ROOMS * A.room:
            self.B = A.xp.asarray(self.B, dtype=A.xp.float64, **A.placement)
        self.norm = 0.0  # ‖A‖ from below, of all products so far
        self.column: float | None = None  # the root mean square of ‖Ae_j‖, where it was estimated
        self.eps = A.epsilon
        self._operators = [A] if twin is None or twin is A else [A, twin]
        self.precision = "; ".join(dict.fromkeys(K.precision for K in self._operators if K.precision))
        self._before = sum(operator.passes for operator in self._operators)

    @property
    def passes(self) -> int:
        """Passes over A and its twin since the beginning."""
        return sum(operator.passes for operator in self._operators) - self._before

    def product(self, V: Array, columns: Index, narrow: bool = False) -> Array:
        """(A + λ_jI)v_j, of columns brought to unit length first: float32 has few exponents."""
        size = lengths(V)
        V = V / like(V, np.where(size > 0, size, 1.0), float)
        A = self.twin if narrow and self.twin is not None else self.A
        Y = A.matmat(A.asarray(V))
        Y = to_numpy(Y, float) if isinstance(self.B, np.ndarray) else wide(Y)
        self.norm = max(self.norm, float(np.max(lengths(Y), initial=0.0)))
        return (Y + like(V, self.lam[columns], float) * V) * like(V, size, float)

    def residual(self, X: Array, columns: Index) -> Array:
        """b_j − (A + λ_jI)x_j by A itself."""
        return take(self.B, columns) - self.product(X, columns)

    def rounding(self, X: Array) -> float:
        r"""What rounding leaves of ‖Ax‖/‖b‖: errors of random sign, about ε√(Σ‖Ae_j‖²x_j²).

        Higham and Mary (2019) say why rounding errors add up like this and not as their bounds do. Where ‖Ae_j‖ is not
        known, ‖Ae_j‖² ≤ ‖A‖ max A_ii, or ‖A‖ itself. A device that promises a relative error of its products is
        taken at its word.
        """
        column = self.column
        if not column:
            knows = Capability.DIAGONAL in self.A.capabilities
            largest = np.max(np.abs(to_numpy(self.A.diagonal(), float)), initial=0.0) if knows else np.inf
            column = float(np.sqrt(self.norm * min(self.norm, float(largest))))
        unit = float(self.A.xp.finfo(self.A.dtype).eps)
        each = (max(ROUNDING * unit, self.eps) * column + unit * self.lam) * lengths(X)
        return float(np.max(each, initial=0.0))

    def values(self, X: Array) -> Array:
        """The solution of the system as it was given, where A lives and in the shape of B."""
        X = X * like(X, self.lengths, float)
        X = X[:, 0] if self.vector else X
        return X if is_numpy_namespace(self.A.xp) else self.A.asarray(X)


def check_shifts(shifts: Any, t: int) -> Vector:
    """λ of each of t right-hand sides, from one or t of them; finite and not negative."""
    lam = np.asarray(shifts, dtype=np.float64)
    if lam.ndim > 1 or lam.size not in (1, t):
        raise ValueError(f"Give one shift, or one for each of the {t} right-hand sides; got {lam.size}.")
    wrong = ~(np.isfinite(lam) & (lam >= 0))
    if wrong.any():
        raise ValueError(f"A shift λ must be a finite number, not negative; got {float(lam[wrong].flat[0])!r}.")
    return np.array(np.broadcast_to(lam.reshape(-1), (t,)))


def lengths(Y: Array) -> Vector:
    """Lengths of columns, in NumPy; they do not vanish because their squares would."""
    if not Y.shape[0]:
        return np.zeros(Y.shape[1])
    xp = array_namespace(Y)
    largest = xp.max(xp.abs(Y), axis=0)
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    return to_numpy(unit * xp.linalg.vector_norm(Y / unit, axis=0), float)


def dots(Y: Array, Z: Array) -> Vector:
    """Inner products of columns, in NumPy."""
    return to_numpy(array_namespace(Y).sum(Y * Z, axis=0), float)


def wide(x: Array) -> Array:
    """In float64 where x lives; x itself where it is."""
    xp = array_namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def copy_of(Y: Array) -> Array:
    """A copy where Y lives."""
    return array_namespace(Y).asarray(Y, copy=True)


def take(Y: Array, index: Index, axis: int = 1) -> Array:
    """Some columns, or rows: Y itself where they are all, in ascending order."""
    if len(index) == Y.shape[axis] and np.array_equal(index, np.arange(len(index))):
        return Y
    xp = array_namespace(Y)
    return xp.take(Y, xp.asarray(index, device=device(Y)), axis=axis)


def put(Y: Array, index: Index, Z: Array) -> None:
    """Write some columns in place."""
    if len(index):
        Y[:, array_namespace(Y).asarray(index, device=device(Y))] = Z


def triangular(L: Array, B: Array, transposed: bool = False) -> Array:
    """L⁻¹B, or L⁻ᵀB, solved where the lower triangular L lives and returned where B does."""
    if not B.shape[0]:
        return B
    if is_numpy(L):
        return scipy.linalg.solve_triangular(L, B, lower=True, trans=1 if transposed else 0, check_finite=False)
    X = array_namespace(L).linalg.solve_triangular(L.T if transposed else L, like(L, B, float), upper=transposed)
    return to_numpy(X, float) if is_numpy(B) else X


def cholesky(A: Array) -> Array:
    """The lower triangular factor; LinAlgError where A is not definite. In NumPy A is overwritten."""
    if is_numpy(A):
        return scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    try:
        return array_namespace(A).linalg.cholesky(A)
    except RuntimeError as error:  # what torch raises
        raise np.linalg.LinAlgError(str(error)) from error


def eigh(A: Array) -> tuple[Vector, Array]:
    """Eigenvalues, in NumPy, and eigenvectors where A lives, in descending order; in NumPy A is overwritten."""
    if not len(A):
        return np.zeros(0), A
    if is_numpy(A):
        values, V = factor.eigh(A, overwrite=True)
        return values[::-1], V[:, ::-1]
    xp = array_namespace(A)
    values, V = xp.linalg.eigh(A)
    return to_numpy(values, float)[::-1], xp.flip(V, axis=1)
