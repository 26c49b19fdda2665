r"""Products AAᵀ, Cholesky factors and inverses of triangles, shared between cores with the same bits for any number.

LAPACK's own threads divide a product by how many they are, which shows in the last bits, and they wait by spinning,
which costs much beside another busy process. Here matrices are halved until a part is small, and the products between
halves are made tile by tile: tiles depend on the size alone, one core makes each, and which core does not matter.

SciPy's wrappers of BLAS keep Python's lock and copy parts of matrices. The routines themselves are called here, through
the addresses that SciPy hands out for Cython, without the lock and in place. Matrices are in Fortran's order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas, cython_lapack

from gramian.compute.threads import ONE_CORE, parallel_each, quiet_blas

Array = npt.NDArray[Any]

TILES = 4  # along a side, ten in a triangle, so that two or four cores end together ...
SIDES = (128, 512)  # ... of so many rows: long enough for BLAS, short enough to share
COLUMNS = 1024  # that are multiplied at a time, so that all tiles find them in the cores' common cache

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]


@cache
def _routine(name: str, dtype: Any, arguments: int) -> Callable[..., None]:
    """Return a routine of BLAS or LAPACK for float32 or float64, all of whose arguments are addresses."""
    name = {"f": "s", "d": "d"}[dtype.char] + name
    library = cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = library.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(_pointer(capsule, _name(capsule)))


def _call(name: str, dtype: Any, *given: str | int | float | Array | ctypes.c_int) -> None:
    """Call a routine with the addresses of letters, numbers, and of matrices and their leading dimensions."""
    real = ctypes.c_float if dtype.char == "f" else ctypes.c_double
    kept: list[Any] = []
    for value in given:
        if isinstance(value, np.ndarray):
            assert value.strides[0] == value.itemsize or len(value) <= 1, "matrices are in Fortran's order"
            kept += [ctypes.c_void_p(value.ctypes.data), ctypes.c_int(max(value.strides[1] // value.itemsize, 1))]
        elif isinstance(value, str):
            kept.append(ctypes.c_char(value.encode()))
        elif isinstance(value, ctypes.c_int):  # in which the routine says how it went
            kept.append(value)
        else:
            kept.append(ctypes.c_int(value) if isinstance(value, int) else real(value))
    _routine(name, dtype, len(kept))(*(v if isinstance(v, ctypes.c_void_p) else ctypes.byref(v) for v in kept))


def _parts(n: int) -> list[slice]:
    side = min(max(-(-n // TILES), SIDES[0]), SIDES[1])
    return [slice(i, min(i + side, n)) for i in range(0, n, side)]


def add_square(C: Array, A: Array, alpha: float = 1.0, *, upper: bool = False) -> None:
    """C ← C + αAAᵀ in the lower half of C, or the upper one; A of shape (n, m) in any order of memory.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import add_square
    >>> C = np.zeros((2, 2), order="F")
    >>> add_square(C, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> C.tolist()
    [[5.0, 0.0], [11.0, 25.0]]
    """
    if A.strides[0] != A.itemsize and A.strides[1] != A.itemsize:
        A = np.ascontiguousarray(A)
    transposed = A.strides[0] != A.itemsize  # in C's order: BLAS sees Aᵀ
    parts = _parts(len(A))
    tiles = [(r, c) for i, r in enumerate(parts) for c in parts[: i + 1]]
    for start in range(0, A.shape[1], COLUMNS):
        some = A[:, start : start + COLUMNS]

        def add_tile(tile: tuple[slice, slice], A: Array = some) -> None:
            rows, columns = tile[::-1] if upper else tile
            home, one, other = C[rows, columns], A[rows], A[columns]
            (n, k), m = one.shape, len(other)
            one, other = (one.T, other.T) if transposed else (one, other)
            if rows == columns:
                half, how = "U" if upper else "L", "T" if transposed else "N"
                _call("syrk", C.dtype, half, how, n, k, alpha, one, 1.0, home)
            else:
                both = ("T", "N") if transposed else ("N", "T")
                _call("gemm", C.dtype, *both, n, m, k, alpha, one, other, 1.0, home)

        parallel_each(add_tile, tiles)


def mirror(C: Array) -> Array:
    """Write the lower half of C over the upper one, in place, and return C.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import mirror
    >>> mirror(np.array([[1.0, 0.0], [2.0, 3.0]])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    parts = _parts(len(C))

    def copy_tile(rows: slice, columns: slice) -> None:
        if rows != columns:
            C[columns, rows] = C[rows, columns].T
        else:
            own = C[rows, rows]
            own[...] = np.tril(own) + np.tril(own, -1).T

    parallel_each(lambda tile: copy_tile(*tile), [(r, c) for i, r in enumerate(parts) for c in parts[: i + 1]])
    return C


def _solve(L: Array, B: Array, *, right: bool, upper: bool, transposed: bool) -> None:
    """B ← L⁻¹B, or BL⁻¹ on the right, in place, for a triangle L or its transpose; some rows or columns at a time."""
    how = ("R" if right else "L", "U" if upper else "L", "T" if transposed else "N", "N")

    def solve_part(part: slice) -> None:
        some = B[part] if right else B[:, part]
        _call("trsm", B.dtype, *how, *some.shape, 1.0, L, some)

    parallel_each(solve_part, _parts(B.shape[0 if right else 1]))


def factorise(A: Array, *, upper: bool = False) -> int:
    """Cholesky's L of A = LLᵀ, or U of A = UᵀU, in place of that half of A; the first minor that is not positive, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import factorise
    >>> A = np.asfortranarray([[4.0, 2.0], [2.0, 5.0]])
    >>> factorise(A), A[0, 0], A[1, 0], A[1, 1]
    (0, np.float64(2.0), np.float64(1.0), np.float64(2.0))
    """
    n = len(A)
    if n <= ONE_CORE:
        minor = ctypes.c_int(0)
        with quiet_blas():
            _call("potrf", A.dtype, "U" if upper else "L", n, A, minor)
        return minor.value
    half = (n + 1) // 2
    first, second = A[:half, :half], A[half:, half:]
    between = A[:half, half:] if upper else A[half:, :half]
    if failed := factorise(first, upper=upper):
        return failed
    _solve(first, between, right=not upper, upper=upper, transposed=True)
    add_square(second, between.T if upper else between, -1.0, upper=upper)
    failed = factorise(second, upper=upper)
    return failed and half + failed


def factorise_packed(memory: Array, n: int) -> int:
    """The same of a matrix in LAPACK's rectangular packed form (TRANSR='N', UPLO='L'), in place: two triangles in one.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import factorise_packed
    >>> packed = np.array([5.0, 4.0, 2.0])  # [[4, 2], [2, 5]]
    >>> factorise_packed(packed, 2), packed.tolist()
    (0, [2.0, 2.0, 1.0])
    """
    half, even = (n + 1) // 2, 1 - n % 2
    both = memory.reshape((n + even, half), order="F")
    first, between = both[even : even + half], both[even + half :]
    second = both[: n - half, 1 - even :]
    if failed := factorise(first):
        return failed
    _solve(first, between, right=True, upper=False, transposed=True)
    add_square(second, between, -1.0, upper=True)
    failed = factorise(second, upper=True)
    return failed and half + failed


def invert_triangle(L: Array) -> int:
    """L⁻¹ in place of a lower triangle L; the first entry of the diagonal that is 0, counted from 1, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import invert_triangle
    >>> L = np.asfortranarray([[2.0, 0.0], [1.0, 4.0]])
    >>> invert_triangle(L), L.tolist()
    (0, [[0.5, 0.0], [-0.125, 0.25]])
    """
    n = len(L)
    if n <= ONE_CORE:
        zero = ctypes.c_int(0)
        with quiet_blas():
            _call("trtri", L.dtype, "L", "N", n, L, zero)
        return zero.value
    half = (n + 1) // 2
    first, second, between = L[:half, :half], L[half:, half:], L[half:, :half]
    between *= -1.0
    _solve(second, between, right=False, upper=False, transposed=False)
    _solve(first, between, right=True, upper=False, transposed=False)
    failed = invert_triangle(second)
    return invert_triangle(first) or (failed and half + failed)
