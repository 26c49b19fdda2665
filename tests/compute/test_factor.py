"""Products, factors and decompositions by tiles: right, where they must fail, and the same for any threads."""

from typing import Any

import numpy as np
import pytest
from scipy import linalg as la
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from gramian.compute import factor
from gramian.compute.factor import (
    add_square,
    eigh,
    eigvalsh,
    factorise,
    factorise_packed,
    invert_triangle,
    mirror,
    svd,
    triangulate,
)

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


def symmetric(n: int, kind: str = "normal") -> Array:
    rng = np.random.default_rng(n)
    if kind == "kernel":  # eigenvalues from 10 down to rounding
        x = rng.uniform(size=(n, 1))
        return np.exp(-((x - x.T) ** 2))
    if kind == "clusters":
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        return (Q * rng.integers(3, size=n)) @ Q.T
    A = rng.standard_normal((n, n))
    return A + A.T


@pytest.fixture(params=[None, 20], ids=["as it is", "small parts"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The size of a decomposition in parts: as users get it, and with the same steps for small matrices."""
    if request.param is None:
        return 530
    for name, value in {"ONE_CORE": 20, "PANEL": 7, "SIDES": (5, 16), "LITTLE": 0.0}.items():
        monkeypatch.setattr(factor, name, value)
    return 71


@pytest.mark.parametrize("kind", ["normal", "kernel", "clusters"])
def test_eigenvectors_in_parts_are_those_of_the_matrix(parts: int, kind: str) -> None:
    A = symmetric(parts, kind)
    known, eps = la.eigvalsh(A), 1e-15 * parts
    size = np.abs(known).max()
    untouched = A.copy()
    values, V = eigh(A)
    np.testing.assert_array_equal(A, untouched)
    np.testing.assert_allclose(values, known, rtol=0, atol=eps * size)
    np.testing.assert_allclose(eigvalsh(A), known, rtol=0, atol=eps * size)
    np.testing.assert_allclose(A @ V, V * values, rtol=0, atol=eps * size)
    np.testing.assert_allclose(V.T @ V, np.eye(parts), rtol=0, atol=eps)
    some, W = eigh(np.tril(A), 3)  # of the lower half
    np.testing.assert_allclose(some, known[-3:], rtol=0, atol=eps * size)
    np.testing.assert_allclose(A @ W, W * some, rtol=0, atol=eps * size)
    np.testing.assert_allclose(W.T @ W, np.eye(3), rtol=0, atol=eps)


@pytest.mark.parametrize("sides", [(1, 1), (1.3, 1), (1, 1.3), (3, 1), (1, 3)])
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_in_parts_are_those_of_the_matrix(parts: int, sides: Any, full: bool) -> None:
    shape = tuple(int(parts * side) for side in sides)
    if full and shape[0] < shape[1]:
        pytest.skip("of tall matrices")
    A = np.random.default_rng(parts).standard_normal(shape)
    k, untouched = min(shape), A.copy()
    U, s, Vt = svd(A, full=full)
    np.testing.assert_array_equal(A, untouched)
    assert U.shape == (shape[0], shape[0] if full else k)
    assert Vt.shape == (k, shape[1])
    np.testing.assert_allclose(s, la.svdvals(A), rtol=1e-12)
    np.testing.assert_allclose(U[:, :k] * s @ Vt, A, rtol=0, atol=1e-12)
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(Vt @ Vt.T, np.eye(k), rtol=0, atol=1e-12)
    R = triangulate(A)
    assert R.shape == (k, shape[1])
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, A.T @ A, rtol=0, atol=1e-11)


def test_more_rows_than_divide_and_conquer_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor, "INDEX", 10_000)
    A = np.random.default_rng(0).standard_normal((90, 70))
    with monkeypatch.context() as asked:
        drivers = []
        own = la.svd
        asked.setattr(la, "svd", lambda *a, **k: drivers.append(k["lapack_driver"]) or own(*a, **k))
        U, s, Vt = svd(A)
    assert drivers == ["gesvd"]
    np.testing.assert_allclose(U * s @ Vt, A, rtol=0, atol=1e-12)


@pytest.mark.parametrize("unit", [0.0, 1e-300, 1e-160, 1e155, 1e305])
def test_decompositions_of_any_size_of_numbers(parts: int, unit: float) -> None:
    A = symmetric(parts) / 100
    values, singular = la.eigvalsh(A), la.svdvals(A)
    near = {"rtol": 0, "atol": 1e-12 * abs(values).max() * unit}
    np.testing.assert_allclose(eigh(A * unit)[0], values * unit, **near)
    np.testing.assert_allclose(svd(A * unit)[1], singular * unit, **near)


@pytest.mark.parametrize("size", [2e-45, 1e-38, 1e-20, 1e20, 3.4e38])
def test_decompositions_of_any_size_of_short_numbers(parts: int, size: float) -> None:
    A = np.full((parts, parts), size, np.float32)  # of rank 1
    with np.errstate(over="ignore"):
        largest = np.float32(float(A[0, 0]) * parts)
    for values in (eigh(A)[0][::-1], svd(A)[1], eigvalsh(A)[::-1]):
        np.testing.assert_allclose(values[0], largest, rtol=1e-5)
        assert np.all(np.abs(values[1:]) <= parts * np.finfo(np.float32).eps * parts * size)  # LAPACK's: up to 100 of n


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(parts: int, bad: float) -> None:
    A = symmetric(parts)
    A[5, 3] = bad
    for decompose in (eigh, eigvalsh, svd):
        with pytest.raises(np.linalg.LinAlgError, match="finite"):
            decompose(A)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_decompositions_have_the_same_bits_for_any_number_of_threads(dtype: str) -> None:
    n, found = 600, []
    A = symmetric(n).astype(dtype)
    B = np.random.default_rng(0).standard_normal((n + 100, n)).astype(dtype)
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            made = [*eigh(A), *eigh(A, 5), eigvalsh(A), *svd(B), *svd(np.concatenate([B, B])), triangulate(B)]
        assert {part.dtype for part in made} == {np.dtype(dtype)}
        found.append([part.tobytes() for part in made])
    assert found[0] == found[1] == found[2]
