"""The Procrustes correlation of two maps, and its permutation test."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial import procrustes as scipy_procrustes

from gramian.pca.subspaces import procrustes
from oracles import Array


def turned(seed: int, k: int = 2) -> Array:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((k, k)))[0])


@given(seed=st.integers(0, 10**6), k=st.integers(1, 4))
def test_the_correlation_is_that_of_scipys_disparity(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((12, k)), rng.standard_normal((12, k)) + 5
    disparity = scipy_procrustes(B, A)[2]
    assert_allclose(procrustes(A, B).correlation, np.sqrt(1 - disparity), rtol=1e-9)
    assert_allclose(procrustes(B, A).correlation, np.sqrt(1 - disparity), rtol=1e-9)
    assert_allclose(procrustes(A, B, scale=False).correlation, np.sqrt(1 - disparity), rtol=1e-9)


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([0.0, 0.1, 1.0]))
def test_similarities_do_not_change_the_correlation(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((15, 2))
    B = A + noise * rng.standard_normal((15, 2))
    plain, moved = procrustes(A, B), procrustes(A, 40.0 * B @ turned(seed) + [1000.0, -7.0])
    assert_allclose(moved.correlation, plain.correlation, rtol=1e-9)
    assert_allclose(moved.correlation**2, moved.r_squared, rtol=1e-9)
    assert noise or moved.correlation == pytest.approx(1.0, abs=1e-12)


def test_without_mirror_it_is_smaller_and_never_negative() -> None:
    A = np.random.default_rng(3).standard_normal((20, 2))
    mirrored = A * [1.0, -1.0]
    assert procrustes(A, mirrored).correlation == pytest.approx(1.0)
    assert 0.0 <= procrustes(A, mirrored, reflect=False).correlation < 0.9
    line = A[:, :1]
    assert procrustes(line, -line, reflect=False).correlation == 0.0


@pytest.mark.parametrize("reflect", [True, False])
def test_the_p_value_is_that_of_all_permutations(reflect: bool) -> None:
    rng = np.random.default_rng(8)
    A = rng.standard_normal((6, 2))
    B = A + 1.2 * rng.standard_normal((6, 2))
    fit = procrustes(A, B, reflect=reflect, n_permutations=4000)
    every = [procrustes(A[list(order)], B, reflect=reflect).correlation for order in permutations(range(6))]
    exact = np.mean(np.array(every) >= fit.correlation - 1e-12)
    assert 0.01 < exact < 0.5
    assert fit.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000))


def test_p_values_of_unrelated_maps_are_uniform() -> None:
    rng = np.random.default_rng(0)
    found = np.array(
        [procrustes(*rng.standard_normal((2, 30, 2)), n_permutations=99, random_state=i).p_value for i in range(300)]
    )
    # P(p ≤ a) = a for a = 0.01, 0.02, …: four standard errors of 300 draws
    for level in (0.05, 0.2, 0.5, 0.8):
        assert np.mean(found <= level + 1e-9) == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 300))


def test_related_maps_have_the_smallest_p_value_and_seeds_repeat() -> None:
    A = np.random.default_rng(1).standard_normal((3000, 2))
    fit = procrustes(A, A @ turned(1), n_permutations=500)
    assert fit.p_value == 1 / 501
    weak = A[:40], np.random.default_rng(2).standard_normal((40, 2))
    first, again, other = (procrustes(*weak, n_permutations=200, random_state=s).p_value for s in (5, 5, 6))
    assert first == again != other


def test_what_is_shown_and_refused() -> None:
    A = np.random.default_rng(0).standard_normal((9, 2))
    assert np.isnan(procrustes(A, A).p_value)
    assert "correlation 1\n" in repr(procrustes(A, A))
    assert "(p = 0.0" in repr(procrustes(A, A, n_permutations=60))
    assert procrustes(A, np.ones((9, 2))).correlation == 0.0
    with pytest.raises(ValueError, match="n_permutations"):
        procrustes(A, A, n_permutations=-1)
    with pytest.raises(ValueError, match="without sample_weight"):
        procrustes(A, A, n_permutations=9, sample_weight=np.ones(9))
