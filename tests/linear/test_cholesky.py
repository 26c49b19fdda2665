"""Cholesky in packed rectangles: the layout LAPACK reads, the memory it says, and refinement to what float64 allows."""

from __future__ import annotations

import tracemalloc
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import lapack
from sklearn.kernel_ridge import KernelRidge
from threadpoolctl import threadpool_limits

from gramian.compute import tiles
from gramian.kernels import Gaussian, Laplacian, Precomputed
from gramian.linear.cholesky import Cholesky
from gramian.operators import Data, FeatureCentred, KernelOperator
from gramian.results import NumericalWarning


def points(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def with_values(values: np.ndarray, seed: int = 0) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    K = (Q * values) @ Q.T
    return np.asarray((K + K.T) / 2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 3, 256, 511, 512, 513, 1100])
def test_a_packed_triangle_is_laid_out_as_lapack_lays_it_out(n: int, threads: int) -> None:
    X, w = points(n), np.random.default_rng(1).uniform(0.5, 2.0, n)
    K = KernelOperator(Gaussian(0.3), X)
    with threadpool_limits(threads):
        for A in (K, FeatureCentred(K), FeatureCentred(K, w), FeatureCentred(Data(K.to_dense()), w, centre=False)):
            want = lapack.dtrttf(np.asfortranarray(A @ np.eye(n)), transr="N", uplo="L")[0]
            assert_allclose(A.packed_triangle(np.float64), want, atol=1e-13)
            assert_allclose(A.packed_triangle(np.float32), want, atol=3e-6)
            assert A.packed_triangle(np.float32).dtype == np.float32


def test_to_dense_and_the_diagonal_agree_with_products() -> None:
    X, w = points(700), np.random.default_rng(1).uniform(0.5, 2.0, 700)
    K = KernelOperator(Laplacian(0.3), X)
    for A in (K, FeatureCentred(K), FeatureCentred(K, w), FeatureCentred(K, w, centre=False)):
        M = A.to_dense()
        assert_allclose(M, A @ np.eye(700), atol=1e-12)
        assert_array_equal(M, M.T)
        assert_allclose(A.diagonal(), np.diagonal(M), atol=1e-12)


def test_two_sets_of_points_have_no_triangle() -> None:
    with pytest.raises(ValueError, match="points"):
        KernelOperator(Gaussian(1.0), points(4), points(5)).packed_triangle(np.float64)


def test_a_precomputed_matrix_is_packed_from_its_values() -> None:
    K = Gaussian(0.2)(points(30))
    want = lapack.dtrttf(np.asfortranarray(K), transr="N", uplo="L")[0]
    assert_array_equal(KernelOperator(Precomputed(), K).packed_triangle(np.float64), want)
    assert tiles.pack_triangle(Precomputed().pairs(K)).nbytes == 30 * 31 // 2 * 8


def test_dual_coefficients_are_those_of_scikit_learn() -> None:
    X, y = points(300), np.sin(points(300)[:, :2])
    theirs = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.4).fit(X, y)
    ours = Cholesky(1e-13)(KernelOperator(Gaussian(0.4), X), y, 0.3)
    assert_allclose(ours.values, theirs.dual_coef_, rtol=1e-9, atol=1e-11)


def test_against_fifty_digits() -> None:
    """K + λI of 15 nearby points and λ = 1e-8, a condition number of 1e9: the error is within ‖r‖/λ."""
    X, lam = points(15, 1), 1e-8
    K, b = Gaussian(0.5)(X), np.cos(X)
    found = Cholesky(1e-10)(Data(K), b, lam)
    with mpmath.workdps(50):
        S = mpmath.matrix(K.tolist()) + mpmath.mpf(lam) * mpmath.eye(15)
        truth = mpmath.lu_solve(S, mpmath.matrix(b.tolist()))
        residual = mpmath.norm(mpmath.matrix(b.tolist()) - S * mpmath.matrix(found.values.tolist()))
        error = mpmath.norm(truth - mpmath.matrix(found.values.tolist()))
    size = np.linalg.norm(b)
    assert float(residual) / size <= found.certificate.residuals[0] + found.certificate.rounding
    assert float(error) <= (found.certificate.residuals[0] + found.certificate.rounding) * size / lam


def test_float32_is_refined_to_float64_in_a_few_steps() -> None:
    K = with_values(np.geomspace(1e3, 1e-8, 200))
    b = np.random.default_rng(2).standard_normal((200, 1))
    for lam, most in ((1.0, 3), (0.1, 6)):
        c = Cholesky(2e-11)(Data(K), b, lam).certificate
        assert "float32" in c.method
        assert c.worst <= 2e-11
        assert 1 <= c.iterations <= most
    c = Cholesky(1e-7)(Data(K), b, 1e-5).certificate  # a condition number of 1e8 is beyond float32
    assert "float64" in c.method
    assert c.converged


def test_no_shift_is_factored_in_float64() -> None:
    K = with_values(np.linspace(1, 2, 50))
    found = Cholesky()(Data(K), np.ones((50, 1)), 0.0)
    assert "float64" in found.certificate.method
    assert_allclose(found.values, np.linalg.solve(K, np.ones((50, 1))), rtol=1e-12)


@pytest.mark.parametrize("top", [1.0, 1e2, 1e4, 1e9])
def test_the_condition_number_is_about_right(top: float) -> None:
    K = with_values(np.geomspace(top, 1.0, 80))
    c = Cholesky(1e-4)(Data(K), np.ones((80, 1)), 1.0).certificate
    truth = np.linalg.cond(K + np.eye(80))
    assert c.condition is not None
    assert truth / 4 <= c.condition <= truth * 1.01


def test_a_singular_matrix_without_shift_is_refused_with_a_remedy() -> None:
    v = np.arange(1.0, 21.0)[:, None]
    with pytest.raises(np.linalg.LinAlgError, match="eigendecomp"):
        Cholesky()(Data(v @ v.T), np.ones((20, 1)), 0.0)


def test_a_negative_eigenvalue_is_told_from_rounding() -> None:
    K = with_values(np.append(np.linspace(1, 2, 19), -3.0))
    with pytest.raises(np.linalg.LinAlgError, match="-1"):
        Cholesky()(Data(K), np.ones((20, 1)), 1.0)
    with pytest.raises(np.linalg.LinAlgError, match="float32"):
        Cholesky(precision="float32")(Data(K), np.ones((20, 1)), 1.0)


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_a_tolerance_out_of_reach_is_said(precision: str) -> None:
    K = with_values(np.geomspace(1e6, 1e-9, 100))
    b = np.random.default_rng(0).standard_normal((100, 1))
    with pytest.warns(NumericalWarning, match="condition") as seen:
        c = Cholesky(1e-16, precision)(Data(K), b, 1.0).certificate
    assert not c.converged
    assert c.residuals[0] < 1e-8  # and yet it went as far as it could
    assert ("float64" in str(seen[0].message).partition("condition")[2]) == (precision == "float32")


def test_memory_is_one_triangle_and_no_copies() -> None:
    """What is allocated at most, by tracemalloc, is what ``memory`` says, and tiles."""
    n = 2500
    A, b = KernelOperator(Gaussian(0.3), points(n), store=False), np.ones((n, 1))
    tracemalloc.start()
    found = Cholesky(precision="float32")(A, b, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.certificate.converged
    says = Cholesky.memory(n, "float32")
    assert 4 * n * (n + 1) // 2 <= says <= peak + 64 * n
    assert peak < 1.35 * says
    assert Cholesky.memory(n) == Cholesky.memory(n, "float64") > 1.9 * says


def test_passes_are_counted_and_few() -> None:
    A = KernelOperator(Gaussian(0.3), points(300), store=False)
    c = Cholesky()(A, points(300), 1.0).certificate
    assert c.passes == A.passes == A.evaluations == 4  # the triangle, and three products
    assert c.condition is not None


def test_nothing_but_zeros() -> None:
    found = Cholesky()(Data(np.zeros((6, 6))), np.arange(6.0), 2.0)
    assert_allclose(found.values, np.arange(6.0) / 2)
    assert found.certificate.condition == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{"precision": "half"}, {"precision": "float16"}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="float32, float64"):
        Cholesky(**options)
