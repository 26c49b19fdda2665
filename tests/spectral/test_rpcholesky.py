"""Randomly pivoted Cholesky: exact at full rank, below K always, near the best of its rank, drawn as it should be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.kernels import Gaussian, Matern
from gramian.operators import KernelOperator
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky


def factored(K: np.ndarray, k: int, **options: Any) -> PivotedCholesky:
    return rp_cholesky(np.diagonal(K), lambda j, i=slice(None): K[i][:, j], k, **options)


def low_rank(n: int, r: int, seed: int = 0) -> np.ndarray:
    B = np.random.default_rng(seed).standard_normal((n, r))
    return B @ B.T


@pytest.mark.parametrize("block", [1, 3, 50])
def test_exact_on_a_matrix_of_rank_r(block: int) -> None:
    K = low_rank(60, 7)
    found = factored(K, 20, block=block)
    assert len(found.indices) == len(set(found.indices.tolist())) == 7  # stops at the rank
    np.testing.assert_allclose(found.factor @ found.factor.T, K, atol=1e-11 * K.max())
    assert found.trace == 0.0


@given(n=st.integers(1, 40), seed=st.integers(0, 200), block=st.integers(1, 12), share=st.floats(0, 1))
def test_a_partial_factor_lies_below_the_matrix(n: int, seed: int, block: int, share: float) -> None:
    K = Gaussian(0.5)(np.random.default_rng(seed).standard_normal((n, 2)))
    found = factored(K, max(1, int(share * n)), block=block, seed=seed)
    rest = K - found.factor @ found.factor.T
    assert np.linalg.eigvalsh(rest)[0] >= -1e-12 * n
    assert found.trace == pytest.approx(np.trace(rest), abs=1e-11 * n)
    assert found.trace >= 0.0
    np.testing.assert_allclose(rest[:, found.indices], 0.0, atol=1e-12 * n)  # exact in the landmarks' columns
    L = found.factor[found.indices]
    np.testing.assert_array_equal(L, np.tril(L))


def test_eigenvalue_errors_are_within_the_trace() -> None:
    K = Gaussian(0.2)(np.random.default_rng(0).standard_normal((150, 3)))
    truth = np.linalg.eigvalsh(K)[::-1]
    found = factored(K, 30)
    errors = truth[:30] - np.linalg.svd(found.factor, compute_uv=False) ** 2
    assert errors.min() >= -1e-11
    assert errors.max() <= found.trace * (1 + 1e-12)


def test_trace_falls_and_is_near_the_best_of_its_rank() -> None:
    K = Gaussian(0.2)(np.random.default_rng(1).standard_normal((200, 3)))
    values = np.linalg.eigvalsh(K)[::-1]
    for k in (5, 20, 50):
        traces = [factored(K, k, seed=seed).trace for seed in range(20)]
        assert values[k:].sum() <= min(traces)
        assert np.mean(traces) < 5 * values[k:].sum()
    nested = [factored(K, k, block=1).trace for k in (1, 2, 5, 10, 20, 40)]
    assert all(a > b for a, b in pairwise(nested))


def test_it_beats_uniform_landmarks_where_a_few_rows_matter() -> None:
    """A big cluster and 20 outliers, each with a kernel of its own: uniform columns miss most of them."""
    rng = np.random.default_rng(2)
    X = np.concatenate([0.01 * rng.standard_normal((980, 2)), 100 * rng.standard_normal((20, 2))])
    K = Gaussian(1.0)(X)
    assert factored(K, 30).trace < 1e-3
    uniform = rng.permutation(1000)[:30]
    left = np.trace(K - K[:, uniform] @ np.linalg.pinv(K[np.ix_(uniform, uniform)], rcond=1e-12) @ K[uniform])
    assert left > 10


def test_proposed_in_blocks_the_draws_follow_the_same_law() -> None:
    """Probability of each ordered pair of landmarks of a 3×3 matrix: d_i/tr K times the rest of d_j over its trace."""
    K = low_rank(3, 3, seed=5)
    want = np.zeros((3, 3))
    for i in range(3):
        rest = K - np.outer(K[:, i], K[:, i]) / K[i, i]
        want[i] = np.maximum(np.diagonal(rest), 0) / np.trace(rest) * K[i, i] / np.trace(K)
    draws = 1500
    for block in (1, 4):
        counts = np.zeros((3, 3))
        for seed in range(draws):
            i, j = factored(K, 2, block=block, seed=seed).indices
            counts[i, j] += 1
        # five standard errors of a binomial share
        assert np.abs(counts / draws - want).max() < 5 * np.sqrt(0.25 / draws)


def test_columns_of_a_kernel_operator_in_both_precisions() -> None:
    X = np.random.default_rng(3).standard_normal((80, 2))
    K = Gaussian(0.1)(X)
    for dtype, tol in ((np.float64, 1e-12), (np.float32, 1e-4)):
        A = KernelOperator(Gaussian(0.1), X, dtype=dtype, store=False)
        found = rp_cholesky(A.diagonal(), A.columns, 80)
        assert len(found.indices) < 80  # numerically of low rank, which is noticed
        assert np.abs(found.factor @ found.factor.T - K).max() < 100 * tol


def test_seeded_readable_and_tabled() -> None:
    K = low_rank(30, 30)
    a, b = factored(K, 5, seed=1), factored(K, 5, seed=1)
    np.testing.assert_array_equal(a.indices, b.indices)
    assert repr(a).startswith("PivotedCholesky(5 landmarks of 30, 0.")
    table = a.table()
    assert 1 - table["share"].sum() == pytest.approx(a.trace / a.total)


@pytest.mark.parametrize(
    ("diagonal", "k", "options", "message"),
    [
        ([1.0, -2.0], 1, {}, "Entry 1 of the diagonal is -2"),
        ([1.0, np.nan], 1, {}, "finite"),
        ([1.0, 1.0], 3, {}, "between 1 and the 2 rows, got 3"),
        ([1.0, 1.0], 1, {"block": 0}, "block must be"),
    ],
)
def test_bad_input_is_refused(diagonal: list[float], k: int, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rp_cholesky(np.array(diagonal), lambda j, i=None: np.eye(2)[:, j], k, **options)


def test_a_zero_matrix_has_no_landmarks() -> None:
    found = factored(np.zeros((4, 4)), 2)
    assert found.factor.shape == (4, 0)
    assert found.trace == 0.0


@pytest.mark.parametrize("gamma", [0.003, 0.0375])
@pytest.mark.parametrize("kind", [Gaussian, Matern])
def test_float32_columns_of_a_smooth_kernel_are_used_up_and_not_refused(kind: Any, gamma: float) -> None:
    X = np.random.default_rng(0).uniform(-1.7, 1.7, (1500, 4))
    kernel = Gaussian(gamma) if kind is Gaussian else Matern(2.5, length_scale=gamma**-0.5)
    A = KernelOperator(kernel, X, dtype=np.float32, store=False)
    found = rp_cholesky(A.diagonal(), A.columns, 1500, block=64)
    assert len(found.indices) < 1500
    assert found.trace == 0.0  # the factor ends because nothing is left that is not rounding
    K = kernel(X)
    rest = np.diagonal(K) - np.sum(found.factor**2, axis=1)
    assert np.abs(rest).sum() <= found.rounding
    assert np.abs(found.factor @ found.factor.T - K).max() < 1e-2


def perturbed(seed: int, n: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """A positive semidefinite matrix with a falling spectrum, and one whose entries are off by the errors allowed."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n)) * np.geomspace(1, 10.0 ** -rng.uniform(1, 5), n)
    K = B @ B.T
    signs = np.sign(rng.standard_normal((n, n)))
    signs = np.triu(signs) + np.triu(signs, 1).T
    lengths = np.sqrt(np.diagonal(K))
    noisy = K + epsilon * signs * np.outer(lengths, lengths)
    np.fill_diagonal(noisy, np.diagonal(K))
    return K, noisy


def test_errors_of_the_columns_that_are_allowed_are_never_taken_for_indefiniteness() -> None:
    needed = 0
    for seed in range(300):
        share, n = 1e-6, 24
        K, noisy = perturbed(seed, n, share)
        found = rp_cholesky(
            np.diagonal(K), lambda j, i=slice(None), M=noisy: M[i][:, j], n, block=1, seed=seed, epsilon=share / 100
        )
        S, F = found.indices, found.factor
        w = np.linalg.solve(F[S].T, F.T)  # F = wᵀF_S, by another way than substitution
        excess = np.sum(F**2, axis=1) - np.diagonal(K)
        root = np.sqrt(np.diagonal(K))
        assert np.all(excess <= 1.0001 * share * (root + np.abs(w.T) @ root[S]) ** 2)
        needed += bool(np.any(excess > 4 * share * np.diagonal(K)))  # the bound without the growth of w
    assert needed > 30


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_a_matrix_that_is_indefinite_beyond_rounding_is_refused_by_row(dtype: Any, size: float) -> None:
    rng = np.random.default_rng(0)
    B = rng.standard_normal((40, 60))
    K = B @ B.T
    K[7, 3] = K[3, 7] = 1.05 * np.sqrt(K[3, 3] * K[7, 7])  # no inner product is so large
    K = (size * K).astype(dtype)
    with pytest.raises(ValueError, match=r"Row \d+ .* not positive semidefinite"):
        factored(K, 40, block=1)
