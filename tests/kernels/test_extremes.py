"""Kernels of rows of extreme size, of few rows and of equal ones: right, or refused by name."""

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from gramian.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    median_distance,
    scale_gamma,
)
from kernel_oracles import DIGITS, exact_matrix
from oracles import Array

SIZES = [1e-200, 1e-150, 1e-40, 1.0, 1e40, 1e150, 1e200]


def rows(size: float, positive: bool = False) -> Array:
    X = np.random.default_rng(0).standard_normal((6, 3)) * size
    X[3] = X[1]
    X[4] = 0.0
    return np.abs(X) if positive else X


def make(size: float) -> list[Kernel]:
    """Kernels whose width suits the size of the rows, as far as a number can say it."""
    rate = min(max(size**-2.0, 1e-300), 1e300) if 1e-150 <= size <= 1e150 else 1.0
    return [
        Linear(),
        Cosine(),
        Polynomial(2, 0.5, rate),
        Polynomial(3, 0.0, rate),
        Sigmoid(rate, 0.5),
        Gaussian(rate),
        Laplacian(1.0 / size),
        Matern(0.5, size),
        Matern(1.5, size),
        Matern(2.5, size),
        RationalQuadratic(0.7, size),
        Chi2(1.0 / size),
        AdditiveChi2(),
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("index", range(len(make(1.0))), ids=[repr(k) for k in make(1.0)])
def test_values_are_right_or_refused(index: int, size: float) -> None:
    kernel = make(size)[index]
    X = rows(size, isinstance(kernel, (Chi2, AdditiveChi2)))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        try:
            K = kernel(X)
        except ValueError as error:
            if "overflow" in str(error) and size > 1.0:
                return
            raise
        with mp.workdps(DIGITS):
            exact = exact_matrix(kernel, X)
            beyond = np.array([[abs(v) > np.finfo(float).max for v in row] for row in exact])
            exact = exact.astype(np.float64)
    if beyond.any():  # a number that cannot be held is not taken for one
        assert not np.isfinite(K[beyond]).any()
    else:
        assert_allclose(K, exact, rtol=1e-12, atol=1e-12 * float(np.max(np.abs(exact))) + 1e-320)


@pytest.mark.parametrize(
    "kernel", [*make(1.0), Linear() + Gaussian(1.0), Cosine() * Matern(), 0.3 * Laplacian()], ids=repr
)
@pytest.mark.parametrize("n", [1, 2, 6, 700])
def test_matrices_are_symmetric_and_have_their_diagonal(kernel: Kernel, n: int) -> None:
    X = np.abs(np.random.default_rng(1).standard_normal((n, 3)))
    for rows in (X, X.astype(np.float32)):
        K = kernel(rows)
        assert_array_equal(K, K.T)
        own = kernel.diagonal(rows)
        assert own.dtype == np.float64
        eps = float(np.finfo(K.dtype).eps)
        assert_allclose(np.diagonal(K), own, rtol=30 * eps, atol=30 * eps)
        assert kernel(rows, rows[:0]).shape == (n, 0)


@pytest.mark.parametrize("convert", [np.array, sp.csr_array])
def test_widths_of_rows_that_are_equal_or_too_small_or_too_large(convert: type) -> None:
    X = np.random.default_rng(0).standard_normal((8, 2))
    for constant in (np.ones((5, 2)), np.zeros((5, 2)), np.ones((1, 2))):
        assert scale_gamma(convert(constant)) == 0.5
        with pytest.raises(ValueError, match="equal"):
            median_distance(convert(constant))
    assert_allclose(scale_gamma(convert(X * 1e-100)), scale_gamma(X) * 1e200, rtol=1e-12)
    assert_allclose(median_distance(convert(X * 1e-100)), median_distance(X) * 1e-100, rtol=1e-12)
    for size, word in ((1e-200, "underflow"), (1e200, "overflow")):
        with pytest.raises(ValueError, match=word):
            scale_gamma(convert(X * size))
        with pytest.raises(ValueError, match=word):
            median_distance(convert(X * size))
    repeated = convert(np.repeat(X[:2], [9, 1], axis=0))  # copies do not count as distances
    assert median_distance(repeated) == pytest.approx(float(np.linalg.norm(X[0] - X[1])))
