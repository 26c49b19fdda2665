"""Randomly pivoted Cholesky with its factor on a device, by torch on the CPU: NumPy's landmarks, and K itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian.kernels import Gaussian
from gramian.operators import kernel_operator
from gramian.spectral import rpcholesky
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky


def kernel(n: int, seed: int = 0) -> np.ndarray:
    return np.asarray(Gaussian(0.2)(np.random.default_rng(seed).standard_normal((n, 3))))


def factored(K: Any, k: int, **options: Any) -> PivotedCholesky:
    return rp_cholesky(K.diagonal(), lambda j, i=slice(None): K[i][:, j], k, **options)


def numpy(x: Any) -> np.ndarray:
    return np.asarray(x, dtype=np.float64)


@given(n=st.integers(1, 40), seed=st.integers(0, 200), block=st.integers(1, 12), share=st.floats(0, 1))
def test_a_factor_on_a_device_lies_below_the_matrix_and_has_the_landmarks_of_numpy(
    n: int, seed: int, block: int, share: float
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")
    K, k = kernel(n, seed), max(1, int(share * n))
    here, there = (factored(M, k, block=block, seed=seed) for M in (K, torch.asarray(K)))
    F = numpy(there.factor)
    assert isinstance(there.factor, torch.Tensor)
    assert there.factor.dtype == torch.float64
    assert_array_equal(there.indices, here.indices)
    rest = K - F @ F.T
    assert np.linalg.eigvalsh(rest)[0] >= -1e-12 * n
    assert there.trace == pytest.approx(np.trace(rest), abs=1e-11 * n)
    assert_allclose(rest[:, there.indices], 0.0, atol=1e-12 * n)
    assert_array_equal(F[there.indices], np.tril(F[there.indices]))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("small_blocks", [False, True])
def test_the_table_and_the_trace_are_those_of_the_factor(
    dtype: str, small_blocks: bool, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpcholesky, "BLOCK", 8 * 30 * 7 if small_blocks else rpcholesky.BLOCK)
    K = kernel(90)
    for M in (K, torch.asarray(K)):
        found = factored(M, 30, dtype=dtype)
        F = numpy(found.factor)
        assert dtype in str(found.factor.dtype)
        assert found.trace == pytest.approx(np.trace(K - F @ F.T), rel=1e-5)
        assert_allclose(K[:, found.indices], F @ F[found.indices].T, atol=1e-12 if dtype == "float64" else 2e-6)
        assert_allclose(found.table()["share"], np.sum(F**2, axis=0) / 90, rtol=1e-6)
        assert 1 - found.table()["share"].sum() == pytest.approx(found.trace / found.total, abs=1e-6)
        assert repr(found).startswith("PivotedCholesky(30 landmarks of 90, 0.0")


def test_a_factor_is_continued_on_a_device_and_moved_there(torch: Any) -> None:
    K = kernel(90)
    T = torch.asarray(K)
    first, here = factored(T, 10), factored(K, 10)
    more, moved, want = factored(T, 35, start=first), factored(T, 35, start=here), factored(K, 35, start=here)
    for found in (more, moved):
        assert_array_equal(found.indices, want.indices)
        assert_allclose(numpy(found.factor), want.factor, atol=1e-11)
        assert found.trace == pytest.approx(want.trace, rel=1e-9)
    assert_array_equal(numpy(more.factor[:, :10]), numpy(first.factor))
    same = factored(T, 10, start=more)
    assert_array_equal(same.indices, first.indices)
    with pytest.raises(ValueError, match=r"90 rows.*has 50"):
        factored(torch.asarray(kernel(50)), 20, start=first)


def test_a_matrix_of_low_rank_ends_the_factor(torch: Any) -> None:
    B = np.random.default_rng(0).standard_normal((60, 7))
    for k in (10, 40):  # with a copy where that frees half of the memory, and without
        found = factored(torch.asarray(B @ B.T), k, block=3)
        assert found.factor.shape == (60, 7)
        assert found.trace == 0.0
        assert_allclose(numpy(found.factor @ found.factor.T), B @ B.T, atol=1e-11 * np.max(B @ B.T))
    nothing = factored(torch.zeros((4, 4), dtype=torch.float64), 2)
    assert nothing.factor.shape == (4, 0)


def test_columns_with_an_error_of_their_own(torch: Any) -> None:
    """Columns wrong by 1e-6 are no longer positive semidefinite; what is left below their error is not a pivot."""
    rng = np.random.default_rng(1)
    K = Gaussian(0.02)(rng.standard_normal((120, 2)))  # of low numerical rank
    noisy = torch.asarray(K * (1 + 1e-6 * rng.uniform(-1, 1, K.shape)))
    found = factored(noisy, 120, epsilon=1e-6)
    assert 5 < len(found.indices) < 60
    F = numpy(found.factor)
    assert np.abs(F @ F.T - K).max() < 1e-3
    kept = numpy(np.sum(F**2, axis=0) > 0)
    assert kept.all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_of_a_kernel_on_a_device(dtype: Any, torch: Any) -> None:
    X = np.random.default_rng(3).standard_normal((80, 2))
    A = kernel_operator(Gaussian(0.1), X, dtype=dtype, store=False, device=torch.device("cpu"))
    found = rp_cholesky(A.diagonal(), A.columns, 80, epsilon=A.epsilon)
    assert len(found.indices) < 80  # numerically of low rank, which is noticed
    assert_allclose(numpy(found.factor @ found.factor.T), Gaussian(0.1)(X), atol=1e-2 if dtype == np.float32 else 1e-9)


def test_a_dtype_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dtype.*float64, float32.*'half'"):
        factored(np.eye(3), 2, dtype="half")
