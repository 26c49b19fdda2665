"""Products AAᵀ, Cholesky factors and inverses by tiles: right, where they must fail, and the same for any threads."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from gramian.compute.factor import add_square, factorise, factorise_packed, invert_triangle, mirror

Array = Any
SIZES = (1, 2, 5, 511, 513, 1101)


def definite(n: int, dtype: str) -> Array:
    X = np.random.default_rng(n).standard_normal((n, n + 3))
    return np.asfortranarray(X @ X.T / n + np.eye(n), dtype=dtype)


def error(found: Array, exact: Array) -> float:
    """The largest difference in units of rounding of the largest entry."""
    return float(np.max(np.abs(found - exact)) / (np.finfo(found.dtype).eps * np.max(np.abs(exact))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_factors_are_those_of_lapack(n: int, dtype: str) -> None:
    A = definite(n, dtype)
    L = np.linalg.cholesky(A.astype(float))
    to_packed, packed_factor = lapack.get_lapack_funcs(("trttf", "pftrf"), (A,))
    for upper in (False, True):
        own = A.copy(order="F")
        assert factorise(own, upper=upper) == 0
        assert error(np.triu(own).T if upper else np.tril(own), L) < 20 + n
        other = np.tril(A, -1) if upper else np.triu(A, 1)  # the other half is left as it was
        np.testing.assert_array_equal(np.tril(own, -1) if upper else np.triu(own, 1), other)
    packed = to_packed(A, uplo="L")[0]
    exact = packed_factor(n, packed, uplo="L")[0]
    assert factorise_packed(packed, n) == 0
    assert error(packed, exact) < 20 + n
    inverse = np.array(L, dtype=dtype, order="F")
    assert invert_triangle(inverse) == 0
    assert error(np.tril(inverse) @ L.astype(dtype), np.eye(n)) < 20 + n


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 0), (1, 7), (300, 2500), (1101, 40)])
def test_squares_are_added_to_one_half(shape: tuple[int, int], order: Any) -> None:
    n = shape[0]
    A, C = (np.random.default_rng(n).standard_normal(s) for s in (shape, (n, n)))
    for upper, keep in ((False, np.tril), (True, np.triu)):
        own = C.copy(order="F")
        add_square(own, np.asarray(A, order=order), -0.5, upper=upper)
        np.testing.assert_allclose(own, C + keep(-0.5 * A @ A.T), rtol=1e-12, atol=1e-12 * (1 + shape[1]))
    spaced = np.random.default_rng(0).standard_normal((2 * n, 2 * shape[1]))[::2, ::2]  # in neither order
    own = np.zeros((n, n), order="F")
    add_square(own, spaced)
    np.testing.assert_allclose(mirror(own), spaced @ spaced.T, atol=1e-12 * (1 + shape[1]))


@pytest.mark.parametrize("where", [0, 300, 700, 1100])
def test_the_minor_that_is_not_positive_is_named(where: int) -> None:
    A = definite(1101, "float64")
    A[where, where] = -1.0
    packed = lapack.dtrttf(A, uplo="L")[0]
    assert factorise(A.copy(order="F")) == factorise(A.copy(order="F"), upper=True) == where + 1
    assert factorise_packed(packed, 1101) == where + 1
    L = np.asfortranarray(np.tril(A))
    L[where, where] = 0.0
    assert invert_triangle(L) == where + 1


@pytest.mark.parametrize("n", [700, 1101])
def test_the_number_of_threads_does_not_show(n: int) -> None:
    A, found = definite(n, "float64"), []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            L, U, packed = A.copy(order="F"), A.copy(order="F"), lapack.dtrttf(A, uplo="L")[0]
            codes = factorise(L), factorise(U, upper=True), factorise_packed(packed, n)
            inverse, square = L.copy(order="F"), np.zeros((n, n), order="F")
            invert_triangle(inverse)
            add_square(square, A)
        assert codes == (0, 0, 0)
        found.append(np.concatenate([L.ravel(), U.ravel(), packed, inverse.ravel(), square.ravel()]))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
