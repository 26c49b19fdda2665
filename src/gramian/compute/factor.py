r"""Products AAᵀ, factors, eigenvectors and singular vectors, shared between cores with the same bits for any number.

LAPACK's own threads divide a product by how many they are, which shows in the last bits, and they wait by spinning,
which costs much beside another busy process. Here matrices are halved until a part is small, and the products between
halves are made tile by tile: tiles depend on the size alone, one core makes each, and which core does not matter.

Decompositions are LAPACK's, in its steps: a few columns are reduced at a time by one core, what they change in the rest
of the matrix is a product and is made by tiles, one core finds the eigenvectors of the small form (by divide and
conquer), and these are turned back some columns at a time. Products with vectors and divide and conquer, half
of the work, are not shared.

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
import scipy.linalg as la
from scipy.linalg import cython_blas, cython_lapack, lapack

from gramian.compute.threads import ONE_CORE, parallel_each, quiet_blas

Array = npt.NDArray[Any]

TILES = 4  # along a side, ten in a triangle, so that two or four cores end together ...
SIDES = (128, 512)  # ... of so many rows: long enough for BLAS, short enough to share
COLUMNS = 1024  # that are multiplied at a time, so that all tiles find them in the cores' common cache
PANEL = 48  # columns that are reduced at a time: of more, more work is products with vectors
LITTLE = 2.0**28  # multiplications that take one thread some 10 ms, as long as others take to come to rest
TALL = 2  # times as many rows as columns, from which a triangle is decomposed and not the matrix
INDEX = 2**31 - 1  # the largest number that LAPACK counts with
WRAPPED = 64  # rows of which SciPy's wrapper, which keeps the lock, takes less time than finding addresses
NOT_CONVERGED = "Eigenvalues or singular values did not converge."

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
    """Call a routine with the addresses of letters, numbers, vectors, and of matrices and their leading dimensions."""
    real = ctypes.c_float if dtype.char == "f" else ctypes.c_double
    kept: list[Any] = []
    for value in given:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            kept.append(ctypes.c_void_p(value.ctypes.data))
        elif isinstance(value, np.ndarray):
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
        if 0 < n <= WRAPPED and A.flags.f_contiguous:
            potrf = lapack.dpotrf if A.dtype == np.float64 else lapack.spotrf
            with quiet_blas():
                return int(potrf(A, lower=not upper, clean=0, overwrite_a=1)[1])
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
        if 0 < n <= WRAPPED and L.flags.f_contiguous:
            trtri = lapack.dtrtri if L.dtype == np.float64 else lapack.strtri
            with quiet_blas():
                return int(trtri(L, lower=1, overwrite_c=1)[1])
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


# Eigenvectors and singular vectors


def eigh(A: Array, k: int | None = None, *, overwrite: bool = False) -> tuple[Array, Array]:
    """Eigenvalues of a symmetric matrix, from the smallest, and eigenvectors: all, or of the k largest.

    Only the lower half is read. LAPACK's error is raised where A is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import eigh
    >>> values, vectors = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values, np.abs(vectors).round(3).tolist()
    (array([1., 3.]), [[0.707, 0.707], [0.707, 0.707]])
    """
    n, dtype = len(A), A.dtype
    if 0 < n <= WRAPPED and dtype == np.float64:  # all of them, by divide and conquer, take less time than a choice
        with quiet_blas():
            d, V, failed = lapack.dsyevd(A, lower=1, overwrite_a=overwrite)
        if failed:
            raise np.linalg.LinAlgError(NOT_CONVERGED)
        return (d, V) if k is None else (d[n - k :], V[:, n - k :])
    if n <= ONE_CORE or dtype.char not in "fd":
        subset = None if k is None else [n - k, n - 1]
        found: tuple[Array, Array]
        with quiet_blas():
            found = la.eigh(
                A,
                driver="evd" if k is None else None,
                subset_by_index=subset,
                overwrite_a=overwrite,
                check_finite=False,
            )
        return found
    A, unit = _prepare(A, overwrite)
    with quiet_blas():
        d, e, tau = _tridiagonalise(A)
        if k is not None or n * n + 4 * n >= INDEX:
            chosen: dict[str, Any] = {} if k is None else {"select": "i", "select_range": (n - k, n - 1)}
            d, Z = la.eigh_tridiagonal(d, e[:-1], check_finite=False, **chosen)
            Z = np.asfortranarray(Z, dtype)
        else:
            Z = np.empty((n, n), dtype, order="F")
            _lapack("stedc", dtype, "I", n, d, e, Z, work=1 + 4 * n + n * n, integers=3 + 5 * n)
        _turn_back(Z, "ormtr", "L", "L", "N", A, tau)
    return _in_units(d, unit), Z


def eigvalsh(A: Array, *, overwrite: bool = False) -> Array:
    """Eigenvalues of a symmetric matrix, of which the lower half is read, from the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import eigvalsh
    >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    array([1., 3.])
    """
    n, dtype = len(A), A.dtype
    if n <= ONE_CORE or dtype.char not in "fd":
        with quiet_blas():
            return np.asarray(la.eigvalsh(A, overwrite_a=overwrite, check_finite=False))
    A, unit = _prepare(A, overwrite)
    with quiet_blas():
        d, e, _ = _tridiagonalise(A)
        wrong = ctypes.c_int(0)
        _call("sterf", dtype, n, d, e, wrong)
    if wrong.value:
        raise np.linalg.LinAlgError(NOT_CONVERGED)
    return _in_units(d, unit)


def _tridiagonalise(A: Array) -> tuple[Array, Array, Array]:
    """QᵀAQ = T in place, in the lower half: its diagonal, what is below it, and with it what Q is made of."""
    n, dtype = len(A), A.dtype
    d, e, tau = np.empty(n, dtype), np.empty(n, dtype), np.empty(n, dtype)
    W, i = np.empty((n, PANEL), dtype, order="F"), 0
    while n - i > ONE_CORE:
        m, j = n - i, i + PANEL
        _call("latrd", dtype, "L", m, PANEL, A[i:, i:], e[i:], tau[i:], W)
        _subtract(A[j:, j:], (A[j:, i:j], W[PANEL:m]), (W[PANEL:m], A[j:, i:j]), lower=True)
        place = np.arange(i, j)
        d[i:j], A[place + 1, place], i = A[place, place], e[i:j], j
    _lapack("sytrd", dtype, "L", n - i, A[i:, i:], d[i:], e[i:], tau[i:], work=64 * n)
    return d, e, tau


def svd(A: Array, *, full: bool = False, overwrite: bool = False) -> tuple[Array, Array, Array]:
    """U, the singular values from the largest, and Vᵀ, as many as the smaller side has.

    With ``full``, all columns of a tall U. LAPACK's error is raised where A is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import svd
    >>> U, s, Vt = svd(np.array([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]]))
    >>> s, np.abs(Vt).tolist(), U.shape
    (array([4., 3.]), [[0.0, 1.0], [1.0, 0.0]], (3, 2))
    """
    (m, n), dtype = A.shape, A.dtype
    least, little = min(m, n), float(m) * n * min(m, n) <= LITTLE
    countless = 3 * least * least + 4 * least > INDEX  # divide and conquer would need more memory than LAPACK can count
    if countless or (least <= ONE_CORE and (little or max(m, n) < TALL * least)) or dtype.char not in "fd":
        found: tuple[Array, Array, Array]
        driver: Any = "gesvd" if countless else "gesdd"
        with quiet_blas():
            found = la.svd(A, full_matrices=full, overwrite_a=overwrite, check_finite=False, lapack_driver=driver)
        return found
    if m < n:
        V, s, Ut = svd(A.T, overwrite=overwrite)
        return Ut.T, s, V.T
    A, unit = _prepare(A, overwrite)
    with quiet_blas():
        U = np.zeros((m, m if full else n), dtype, order="F")
        np.fill_diagonal(U[n:, n:], 1.0)
        if m >= TALL * n:
            taus = _triangulate(A)
            U[:n, :n], s, Vt = svd(np.triu(A[:n]), overwrite=True)
            _turn_back(U, "ormqr", "L", "N", A, taus, count=n)
            return U, _in_units(s, unit), Vt
        d, e, q, p = (np.empty(n, dtype) for _ in range(4))
        X, Y = np.empty((m, PANEL), dtype, order="F"), np.empty((n, PANEL), dtype, order="F")
        i = 0
        while n - i > ONE_CORE:
            j = i + PANEL
            _call("labrd", dtype, m - i, n - i, PANEL, A[i:, i:], d[i:], e[i:], q[i:], p[i:], X, Y)
            _subtract(A[j:, j:], (A[j:, i:j], X[PANEL : m - i]), (Y[PANEL : n - i], A[i:j, j:].T))
            place = np.arange(i, j)
            A[place, place], A[place, place + 1], i = d[i:j], e[i:j], j
        _lapack("gebrd", dtype, m - i, n - i, A[i:, i:], d[i:], e[i:], q[i:], p[i:], work=64 * (m + n))
        small, Vt = np.empty((n, n), dtype, order="F"), np.empty((n, n), dtype, order="F")
        unused = np.empty(1, dtype), np.empty(1, np.intc)
        more: dict[str, Any] = {"work": 3 * n * n + 4 * n, "integers": 8 * n, "sized": False}
        _lapack("bdsdc", dtype, "U", "I", n, d, e, small, Vt, *unused, **more)
        U[:n, :n], V = small, np.asfortranarray(Vt.T)
        _turn_back(U, "ormbr", "Q", "L", "N", A, q, count=n)
        _turn_back(V, "ormbr", "P", "L", "N", A, p, count=n)
    return U, _in_units(d, unit), V.T


def triangulate(A: Array) -> Array:
    """Householder's R of A = QR, with as many rows as A has columns, or as A has where these are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.factor import triangulate
    >>> np.abs(triangulate(np.array([[3.0, 1.0], [4.0, 2.0]]))).round(3).tolist()
    [[5.0, 2.2], [0.0, 0.4]]
    """
    A = np.array(A, order="F")
    with quiet_blas():
        _triangulate(A)
    return np.triu(A[: A.shape[1]])


def _prepare(A: Array, overwrite: bool) -> tuple[Array, float]:
    """A, or a copy, in Fortran's order and of usual size, and the power of two that it was divided by."""
    peak = max(float(A.max()), -float(A.min()))
    if not np.isfinite(peak):
        raise np.linalg.LinAlgError("The matrix holds values that are not finite.")
    tiny, most = float(np.sqrt(np.finfo(A.dtype).tiny)) * 1e10, float(np.sqrt(np.finfo(A.dtype).max)) * 1e-10
    unit = 1.0 if peak == 0.0 or tiny < peak < most else float(np.ldexp(1.0, np.frexp(peak)[1] - 1))
    if not (overwrite and A.flags.f_contiguous and A.flags.writeable):
        A = np.array(A, order="F")
    if unit != 1.0:
        A /= A.dtype.type(unit)
    return A, unit


def _in_units(values: Array, unit: float) -> Array:
    """Values of what was divided by a unit; what overflows is infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values * values.dtype.type(unit))


def _lapack(name: str, dtype: Any, *given: Any, work: int, integers: int = 0, sized: bool = True) -> None:
    """Call a routine with memory to work in, of which it is told the size, and raise the error that it found."""
    found, memory = ctypes.c_int(0), [np.empty(min(work, INDEX), dtype)]
    memory += [np.empty(integers, np.intc)] if integers else []
    told = [each for part in memory for each in ((part, len(part)) if sized else (part,))]
    _call(name, dtype, *given, *told, found)
    if found.value:
        raise np.linalg.LinAlgError(NOT_CONVERGED)


def _subtract(C: Array, left: tuple[Array, Array], right: tuple[Array, Array], *, lower: bool = False) -> None:
    """C ← C − [left][right]ᵀ by tiles, in its lower half where that is all."""
    a, b = (np.asfortranarray(np.concatenate(pair, axis=1).T) for pair in (left, right))
    k, rows, columns = len(a), _parts(len(C)), _parts(C.shape[1])

    def subtract_from(tile: tuple[slice, slice]) -> None:
        r, c = tile
        one, other = a[:, r], b[:, c]
        _call("gemm", C.dtype, "T", "N", one.shape[1], other.shape[1], k, -1.0, one, other, 1.0, C[r, c])

    parallel_each(subtract_from, [(r, c) for r in rows for c in columns if not lower or c.start <= r.start])


def _triangulate(A: Array) -> Array:
    """Householder's R of A = QR in place, with what Q is made of; a few columns at a time, then the others by parts."""
    n = min(A.shape)
    taus = np.empty(n, A.dtype)
    for i in range(0, n, PANEL):
        tau = taus[i : i + PANEL]
        own = A[i:, i : i + len(tau)]
        _lapack("geqrf", A.dtype, *own.shape, own, tau, work=64 * PANEL)
        rest = A[i:, i + len(tau) :]
        if rest.shape[1]:
            _turn_back(rest, "ormqr", "L", "T", own, tau, count=len(tau))
    return taus


def _turn_back(Z: Array, name: str, *given: Any, count: int | None = None) -> None:
    """Z ← QZ for the Q that LAPACK keeps as reflections, some columns at a time."""
    letters, (A, tau) = given[:-2], given[-2:]

    def turn_part(part: slice) -> None:
        some = Z[:, part]
        size = (*some.shape,) if count is None else (*some.shape, count)
        _lapack(name, Z.dtype, *letters, *size, A, tau, some, work=64 * (some.shape[1] + 80))

    parallel_each(turn_part, _parts(Z.shape[1]))
