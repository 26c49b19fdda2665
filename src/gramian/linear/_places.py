"""Columns of numbers in NumPy or on a device: the few things a solver does with them, in the same words for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_namespace

from gramian.linear._system import numbers

__all__ = [
    "as_array",
    "cholesky",
    "dots",
    "duplicate",
    "eigh",
    "lengths",
    "numbers",
    "on_host",
    "placed",
    "put",
    "row",
    "take",
    "triangular",
    "wide",
]

Array = Any  # of NumPy, or a tensor
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]


def as_array(x: Any) -> Array:
    """An array or tensor as it is, anything else as NumPy has it."""
    return x if is_array_api_obj(x) else np.asarray(x)


def on_host(x: Array) -> bool:
    """Whether x is NumPy's."""
    return isinstance(x, np.ndarray) or is_numpy_namespace(array_namespace(x))


def placed(x: Any, like: Array) -> Array:
    """Numbers in float64 where another array lives."""
    if on_host(like):
        return numbers(x)
    if isinstance(x, np.ndarray) and (min(x.strides, default=0) < 0 or not x.flags.writeable):
        x = x.copy()  # torch takes no negative strides, and warns of what it must not write to
    xp = array_namespace(like)
    return xp.asarray(x, dtype=xp.float64, device=device(like))


def wide(x: Array) -> Array:
    """In float64 where x lives; x itself where it is."""
    xp = array_namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def duplicate(Y: Array) -> Array:
    """Return a copy where Y lives."""
    return Y.copy() if on_host(Y) else array_namespace(Y).asarray(Y, copy=True)


def row(x: Vector, like: Array) -> Array:
    """A number for each column, to be multiplied by columns where they live."""
    return x if on_host(like) else placed(x, like)[None, :]


def take(Y: Array, index: Index, axis: int = 1) -> Array:
    """Some columns, or rows: on a device Y itself where they are all, in ascending order."""
    if on_host(Y):
        return np.take(Y, index, axis=axis) if axis == 0 else Y[:, index]
    if len(index) == Y.shape[axis] and np.array_equal(index, np.arange(len(index))):
        return Y
    xp = array_namespace(Y)
    return xp.take(Y, xp.asarray(index, device=device(Y)), axis=axis)


def put(Y: Array, index: Index, Z: Array) -> None:
    """Write some columns in place."""
    if on_host(Y):
        Y[:, index] = Z
    elif len(index):
        Y[:, array_namespace(Y).asarray(index, device=device(Y))] = Z


def dots(Y: Array, Z: Array) -> Vector:
    """Inner products of columns, in NumPy."""
    return np.asarray(np.sum(Y * Z, axis=0) if on_host(Y) else numbers(array_namespace(Y).sum(Y * Z, axis=0)))


def lengths(Y: Array) -> Vector:
    """Lengths of columns, in NumPy."""
    return np.asarray(np.linalg.norm(Y, axis=0) if on_host(Y) else np.sqrt(dots(Y, Y)))


def triangular(L: Array, B: Array, transposed: bool = False) -> Array:
    """L⁻¹B, or L⁻ᵀB, solved where the lower triangular L lives and returned where B does."""
    if not B.shape[0]:
        return B
    if on_host(L):
        return scipy.linalg.solve_triangular(L, B, lower=True, trans=1 if transposed else 0, check_finite=False)
    xp, there = array_namespace(L), placed(B, L)
    X = xp.linalg.solve_triangular(L.T if transposed else L, there, upper=transposed)
    return numbers(X) if on_host(B) else X


def cholesky(A: Array) -> Array:
    """The lower triangular factor of a matrix on a device; LinAlgError, as in NumPy, where it is not definite."""
    try:
        return array_namespace(A).linalg.cholesky(A)
    except RuntimeError as error:  # what torch raises
        raise np.linalg.LinAlgError(str(error)) from error


def eigh(A: Array) -> tuple[Vector, Array]:
    """Eigenvalues, in NumPy, and eigenvectors of a matrix on a device, both in ascending order."""
    values, V = array_namespace(A).linalg.eigh(A)
    return numbers(values), V
