"""What an inducing-point regression is handed, checked: k(X, Z), targets, weights, and the basis of the centres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.linear._inducing.whitening import EPS, Whitening, whiten
from gramian.linear._places import numbers, placed
from gramian.operators.base import Operator

__all__ = ["Problem", "make_problem", "shifts_of"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """k(X, Z), the targets and their weights, and the basis in which the problem is a ridge regression.

    All arrays are NumPy's but the factor of the basis, which is where A lives.

    Attributes
    ----------
    A : Operator of shape (n, m)
        k(X, Z).
    basis : Whitening
        Of the centres.
    Y : ndarray of shape (n, t)
        Targets divided by ``scale``, less their means where there is an intercept.
    middle : ndarray of shape (t,)
        What was subtracted.
    scale : ndarray of shape (t,)
        A power of two near the largest target: squares of what is left neither overflow nor vanish.
    w : ndarray of shape (n,)
        Weights, not negative.
    copies : ndarray of shape (n,)
        How often each row is there: its weight where weights are counts, otherwise once; 0 without weight.
    intercept : bool
        Whether there is one.
    indices : ndarray of shape (m,) or None
        Which rows the centres are.
    own : ndarray of shape (n,) or None
        k(x, x) of every row.
    """

    A: Operator
    basis: Whitening
    Y: Matrix
    middle: Vector
    scale: Vector
    w: Vector
    copies: Vector
    intercept: bool
    indices: npt.NDArray[np.intp] | None
    own: Vector | None

    @property
    def mass(self) -> float:
        """Σw."""
        return float(self.w.sum())

    @cached_property
    def there(self) -> tuple[Any, Any]:
        """W as a column and Y where A lives: what every block of rows asks for."""
        if self.A.device is None:
            return self.w[:, None], self.Y
        return placed(self.w, self.basis.L)[:, None], placed(self.Y, self.basis.L)

    @property
    def lengths(self) -> Vector:
        """‖√w y‖ of every target divided by its scale, its mean included."""
        return np.asarray(np.sqrt(self.w @ self.Y**2 + self.mass * self.middle**2))


def shifts_of(shifts: Any, t: int) -> Vector:
    lam = np.asarray(shifts, dtype=np.float64)
    if lam.ndim > 1 or lam.shape not in ((), (1,), (t,)):
        raise ValueError(f"shifts has shape {lam.shape}; expected one λ, or one for each of the {t} targets.")
    if not np.all(np.isfinite(lam) & (lam >= 0)):
        raise ValueError(f"shifts must be finite and not negative, got {shifts!r}.")
    return np.array(np.broadcast_to(lam, (t,)))


def make_problem(
    A: Operator,
    Kmm: Any,
    Y: Any,
    *,
    weights: Any = None,
    counts: bool | None = None,
    copies: Any = None,
    intercept: bool = False,
    indices: Any = None,
    diagonal: Any = None,
) -> Problem:
    """Check what was handed in, scale and centre the targets, and factor k(Z, Z)."""
    n, m = A.shape
    if A.dtype != A.xp.float64:
        raise ValueError(f"k(X, Z) is in {A.dtype}; dividing by small pivots of k(Z, Z) needs float64. Give dtype.")
    Y = numbers(Y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    w = np.ones(n) if weights is None else numbers(weights)
    for name, found, wanted in (
        ("Kmm", tuple(np.shape(Kmm)), (m, m)),
        ("Y", Y.shape[:1], (n,)),
        ("weights", w.shape, (n,)),
    ):
        if found != wanted:
            raise ValueError(f"{name} has shape {found}; k(X, Z) of shape {A.shape} needs {wanted}.")
    if not (np.all(np.isfinite(w) & (w >= 0)) and w.sum() > 0):
        raise ValueError("weights must be finite, not negative, and not all 0.")
    where = None if indices is None else _rows_of_centres(indices, w, m)
    own = None if diagonal is None else np.broadcast_to(numbers(diagonal), (n,))
    scale = _powers_of_two(Y)
    Y = Y / scale
    middle = w @ Y / w.sum() if intercept else np.zeros(Y.shape[1])
    moved = Y - middle
    moved = moved * (w @ moved**2 > (8 * EPS * middle) ** 2 * w.sum())  # a constant is the intercept and nothing else
    each = _copies(w, counts, copies)
    basis = whiten(numbers(Kmm) if A.device is None else placed(Kmm, A.eye(1)), intercept)
    return Problem(A, basis, moved, middle, scale, w, each, intercept, where, own)


def _powers_of_two(Y: Matrix) -> Vector:
    """The power of two at or below the largest size of each target; 1 where all are 0. Dividing by it is exact."""
    largest = np.max(np.abs(Y), axis=0, initial=0.0)
    return np.asarray(np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0))


def _copies(w: Vector, counts: bool | None, copies: Any) -> Vector:
    """How often each row is there: as given; else its weight if weights are counts, or once."""
    if copies is None:
        counts = bool(np.all(w == np.round(w))) if counts is None else counts
        return w if counts else (w > 0).astype(np.float64)
    each = numbers(copies)
    if each.shape != w.shape or not np.all(np.isfinite(each) & (each >= 0) & ((each > 0) | (w == 0))):
        raise ValueError(f"copies must be {len(w)} numbers, positive where the weight is.")
    return np.asarray(np.where(w > 0, each, 0.0))


def _rows_of_centres(indices: Any, w: Vector, m: int) -> npt.NDArray[np.intp]:
    where: npt.NDArray[np.intp] = numbers(indices).astype(np.intp)
    if where.shape != (m,) or np.any((where < 0) | (where >= len(w))):
        raise ValueError(f"indices must be {m} row numbers between 0 and {len(w) - 1}, one for each centre.")
    if np.any(w[where] == 0):
        raise ValueError(
            f"Row {where[np.argmin(w[where])]} is a centre and has weight 0. Choose rows that have weight."
        )
    return where
