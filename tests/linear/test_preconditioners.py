"""The Nyström preconditioner against the inverse written out, and a pivoted factor that is continued."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian.kernels import Gaussian
from gramian.linear.preconditioners import Nystrom, first_rank, largest_rank, pays_to_double, scale_factor
from gramian.operators import Data, FeatureCentred
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky


def factored(K: np.ndarray, k: int, start: PivotedCholesky | None = None, seed: int = 0) -> PivotedCholesky:
    return rp_cholesky(np.diagonal(K), lambda j, i=slice(None): K[i][:, j], k, seed=seed, start=start)


def kernel(n: int, seed: int = 0) -> np.ndarray:
    return np.asarray(Gaussian(0.2)(np.random.default_rng(seed).standard_normal((n, 3))))


@given(n=st.integers(1, 60), r=st.integers(1, 12), seed=st.integers(0, 300), t=st.integers(1, 4))
def test_without_rest_it_is_the_inverse_for_every_shift(n: int, r: int, seed: int, t: int) -> None:
    rng = np.random.default_rng(seed)
    F, lam, V = rng.standard_normal((n, r)), rng.uniform(0.1, 10.0, t), rng.standard_normal((n, t))
    M = Nystrom(F, lam, rest=0.0)
    want = np.column_stack([np.linalg.solve(F @ F.T + lam[j] * np.eye(n), V[:, j]) for j in range(t)])
    assert_allclose(M(V), want, atol=3e-6 * np.linalg.norm(V) / lam.min())
    some = np.array([t - 1])
    assert_allclose(M(V[:, some], some), want[:, some], atol=3e-6 * np.linalg.norm(V) / lam.min())
    assert M.rank == min(n, r)


@given(exponent=st.floats(0.0, 6.0), seed=st.integers(0, 100), rest=st.sampled_from([None, 0.0]))
def test_it_stays_symmetric_and_positive_however_small_the_shift(
    exponent: float, seed: int, rest: float | None
) -> None:
    """In float32 alone I − U diag(s/(s+λ)) Uᵀ would be indefinite as soon as λ/s is below 1e-7."""
    F = np.linalg.qr(np.random.default_rng(seed).standard_normal((30, 6)))[0] * np.geomspace(1e3, 1.0, 6)
    lam = 10.0**-exponent
    P = Nystrom(F, lam, rest)(np.eye(30), np.zeros(30, dtype=np.intp))
    assert_allclose(P, P.T, atol=1e-6 * np.abs(P).max())
    s, U = np.geomspace(1e3, 1.0, 6) ** 2, F / np.geomspace(1e3, 1.0, 6)
    assert_allclose(np.linalg.eigvalsh(U.T @ P @ U), 1 / (s + lam), rtol=0.03)
    assert np.linalg.eigvalsh((P + P.T) / 2)[0] > 0
    assert Nystrom(F, lam, rest).U.dtype == (np.float32 if lam + (rest is None) >= 10.0 else np.float64)


def test_with_rest_it_is_the_formula_of_frangella_tropp_and_udell() -> None:
    K = kernel(80)
    F, lam = factored(K, 20).factor, 1e-3
    U, root, _ = np.linalg.svd(F, full_matrices=False)
    s = root**2
    theirs = (s[-1] + lam) * (U / (s + lam)) @ U.T + np.eye(80) - U @ U.T  # times a constant
    ours = Nystrom(F, lam)(np.eye(80), np.zeros(80, dtype=np.intp)) * (s[-1] + lam)
    assert_allclose(ours, theirs, atol=2e-5)


def test_the_condition_number_falls_as_the_theory_says() -> None:
    K, lam = kernel(120), 1e-2
    found = []
    for r in (5, 15, 40):
        F = factored(K, r).factor
        P = Nystrom(F, lam, rest=0.0)(np.eye(120), np.zeros(120, dtype=np.intp))
        values = np.linalg.eigvals(P @ (K + lam * np.eye(120))).real
        found.append(values.max() / values.min())
        assert found[-1] <= 1.001 * (1 + np.linalg.norm(K - F @ F.T, 2) / lam)
    assert all(a > 2 * b for a, b in pairwise([np.linalg.cond(K + lam * np.eye(120)), *found]))


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_scale_factor_is_the_factor_of_the_dressed_matrix(centre: bool, weighted: bool) -> None:
    F = factored(kernel(40), 15).factor
    w = np.random.default_rng(1).uniform(0.2, 3.0, 40) if weighted else None
    G = scale_factor(F, w, centre)
    want = FeatureCentred(Data(F @ F.T), w, centre=centre) @ np.eye(40)
    assert_allclose(G @ G.T, want, atol=1e-13)
    assert (G is F) == (not centre and not weighted)


def test_a_factor_of_lower_rank_than_columns_and_one_of_nothing() -> None:
    v = np.arange(1.0, 6.0)[:, None]
    M = Nystrom(np.hstack([v, 2 * v, -v]), 0.5, rest=0.0)
    assert M.rank == 1
    assert_allclose(M(np.ones((5, 1))), np.linalg.solve(6 * v @ v.T + 0.5 * np.eye(5), np.ones((5, 1))), atol=1e-5)
    nothing = Nystrom(np.zeros((5, 2)), 0.5)
    assert nothing.rank == 0
    assert_allclose(nothing(np.ones((5, 1))), np.full((5, 1), 2.0))


@pytest.mark.parametrize("shift", [0.0, -1.0, np.nan])
def test_a_shift_that_is_not_positive_is_refused(shift: float) -> None:
    with pytest.raises(ValueError, match="positive shifts, got"):
        Nystrom(np.ones((3, 1)), [1.0, shift])


def test_the_rule_for_doubling() -> None:
    falling, flat = 100 * 0.99 ** np.arange(400), np.ones(400)
    assert pays_to_double(50_000, falling, 0.95, 200)
    assert not pays_to_double(50_000, falling, 0.95, 1)  # nearly done
    assert not pays_to_double(50_000, flat, 0.95, 200)  # more of the same would not help
    assert not pays_to_double(50_000, falling, 0.95, 200, most=400)  # no room
    assert not pays_to_double(2_000, falling, 0.5, 20)  # products are cheap
    assert [first_rank(n) for n in (1, 10, 40_000)] == [1, 10, 670]
    assert largest_rank(10) == 10
    assert 20 * 100_000 * largest_rank(100_000) < 2**31


def test_a_factor_is_continued() -> None:
    K = kernel(90)
    first = factored(K, 10)
    more = factored(K, 35, start=first)
    assert_array_equal(more.indices[:10], first.indices)
    assert_array_equal(more.factor[:, :10], first.factor)
    assert len(set(more.indices.tolist())) == 35
    rest = K - more.factor @ more.factor.T
    assert_allclose(rest[:, more.indices], 0.0, atol=1e-12)
    assert more.trace == pytest.approx(np.trace(rest), abs=1e-10)
    assert more.trace < first.trace
    assert more.columns == 35
    same = factored(K, 10, start=more)  # of fewer landmarks: the first of them
    assert_array_equal(same.indices, first.indices)
    assert same.trace == pytest.approx(first.trace)
    with pytest.raises(ValueError, match=r"90 rows.*has 50"):
        factored(kernel(50), 20, start=first)


def test_continued_draws_follow_the_same_law() -> None:
    """The second landmark of a 3×3 matrix given the first, drawn in one go or continued: d_j of what is left."""
    B = np.random.default_rng(5).standard_normal((3, 3))
    K = B @ B.T
    draws, counts, want = 1500, np.zeros((3, 3)), np.zeros((3, 3))
    for i in range(3):
        rest = K - np.outer(K[:, i], K[:, i]) / K[i, i]
        want[i] = np.maximum(np.diagonal(rest), 0) / np.trace(rest) * K[i, i] / np.trace(K)
    for seed in range(draws):
        i, j = factored(K, 2, start=factored(K, 1, seed=seed), seed=seed).indices
        counts[i, j] += 1
    assert np.abs(counts / draws - want).max() < 5 * np.sqrt(0.25 / draws)  # five standard errors
