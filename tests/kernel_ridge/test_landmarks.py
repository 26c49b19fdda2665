"""Landmarks: exact leverage scores, draws of known probability, the same rows from files, and models that improve."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge

from gramian.inputs.kernels import dense_kernel, kernel_diagonal
from gramian.kernel_ridge import landmarks as _landmarks
from gramian.kernel_ridge.landmark_fit import LandmarkSolver
from gramian.kernel_ridge.landmarks import HOW, choose_landmarks, default_landmarks, draw, ridge_leverage
from gramian.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from gramian.operators import KernelOperator

Array = np.ndarray[Any, np.dtype[Any]]


def points(n: int, p: int = 2, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((n, p))


def scores(K: Array, lam: float, w: Array) -> Array:
    """Diagonal of B(B + λI)⁻¹ by inverting the whole matrix."""
    B = np.sqrt(w)[:, None] * K * np.sqrt(w)
    return np.diagonal(B @ np.linalg.inv(B + lam * np.eye(len(B))))


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.5), Laplacian(0.3), Polynomial(degree=2, gamma=1.0)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_leverage_scores_are_exact_where_the_pilot_set_is_all_rows(kernel: Any, weighted: bool) -> None:
    X = points(80)
    w = np.random.default_rng(1).uniform(0.1, 4, 80) if weighted else np.ones(80)
    found = ridge_leverage(kernel, X, 0.3, np.random.default_rng(2).permutation(80), w)
    np.testing.assert_allclose(found, scores(kernel(X), 0.3, w), rtol=1e-8)


def test_leverage_scores_from_part_of_the_rows_are_near_the_exact_ones() -> None:
    X, kernel = points(600), Gaussian(gamma=0.5)
    truth = scores(kernel(X), 5.0, np.ones(600))
    found = ridge_leverage(kernel, X, 5.0, np.random.default_rng(0).permutation(600)[:200])
    assert np.corrcoef(found, truth)[0, 1] > 0.95
    assert np.mean((found > truth / 2) & (found < 2 * truth)) > 0.95
    assert found.sum() == pytest.approx(truth.sum(), rel=0.25)  # the effective degrees of freedom


def test_a_row_of_the_pilot_set_stands_for_itself_alone() -> None:
    """Rows with features of their own have the score k/(k + λ), whether they are in the pilot set or not."""
    X = 100.0 * np.arange(12)[:, None]
    found = ridge_leverage(Gaussian(gamma=1.0), X, 0.25, np.arange(4))
    np.testing.assert_allclose(found[:4], 0.8, rtol=1e-12)
    np.testing.assert_allclose(found[4:], 1.0, rtol=1e-12)  # unseen: (k − 0)/λ, and no more than 1


def test_leverage_scores_leave_out_rows_without_weight() -> None:
    X, kernel = points(40), Gaussian(gamma=0.5)
    w = np.where(np.arange(40) < 10, 0.0, 1.5)
    found = ridge_leverage(kernel, X, 0.3, np.arange(10, 40), w)
    np.testing.assert_array_equal(found[:10], 0.0)
    np.testing.assert_allclose(found[10:], scores(kernel(X[10:]), 0.3, w[10:]), rtol=1e-8)
    with pytest.raises(ValueError, match=r"λ.*0, got 0"):
        ridge_leverage(kernel, X, 0.0, [1, 2])


def close(counts: Array, chances: Array) -> bool:
    """Whether counts of a simulation are within five standard errors of what they should be."""
    total = counts.sum()
    return bool(np.all(np.abs(counts - total * chances) <= 5 * np.sqrt(total * chances * (1 - chances))))


def test_draws_have_the_chances_of_successive_sampling() -> None:
    p = np.array([1.0, 2.0, 0.0, 4.0])
    pairs = list(permutations(range(4), 2))
    share = p / p.sum()
    chances = np.array([share[i] * share[j] / (1 - share[i]) for i, j in pairs])  # the first, then one of the rest
    rng = np.random.default_rng(0)
    drawn = [tuple(draw(p, 2, rng).tolist()) for _ in range(6000)]
    counts = np.array([sum(pair == d for d in drawn) for pair in pairs])
    assert close(counts, chances)
    assert sorted(draw(p, 4, rng).tolist()) == [0, 1, 3]  # there are no more


def test_uniform_and_cholesky_draw_a_single_landmark_in_proportion_to_weight_and_length() -> None:
    X, w = np.array([[1.0], [2.0], [3.0], [1.0]]), np.array([1.0, 3.0, 0.0, 2.0])
    law = {"uniform": w / w.sum(), "rpcholesky": w * X[:, 0] ** 2 / (w @ X[:, 0] ** 2)}
    for how, chances in law.items():
        drawn = [int(choose_landmarks(Linear(), X, 1, how, weights=w, seed=s).indices[0]) for s in range(1000)]
        assert close(np.bincount(drawn, minlength=4), chances)


def test_leverage_draws_a_single_landmark_in_proportion_to_its_score() -> None:
    X, w = points(6), np.array([1.0, 2.0, 1.0, 0.0, 1.0, 0.5])
    kernel, alive = Gaussian(gamma=0.5), np.flatnonzero(w)
    exact = np.zeros(6)
    exact[alive] = scores(kernel(X[alive]), 0.4, w[alive])
    drawn = [
        int(choose_landmarks(kernel, X, 1, "leverage", lam=0.4, weights=w, seed=s).indices[0]) for s in range(1000)
    ]
    assert close(np.bincount(drawn, minlength=6), exact / exact.sum())


@given(
    how=st.sampled_from(HOW),
    n=st.integers(1, 50),
    m=st.integers(1, 60),
    dead=st.floats(0, 0.9),
    seed=st.integers(0, 99),
)
def test_chosen_rows_are_distinct_have_weight_and_are_as_many_as_asked(
    how: str, n: int, m: int, dead: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X, w = points(n, seed=seed), np.where(rng.random(n) < dead, 0.0, rng.uniform(0.5, 2, n))
    w[0] = 1.0
    found = choose_landmarks(Laplacian(1.0), X, m, how, weights=w, lam=0.1, seed=seed)
    assert len(set(found.indices.tolist())) == len(found.indices) == min(m, np.count_nonzero(w))
    assert np.all(w[found.indices] > 0)
    np.testing.assert_array_equal(found.points, X[found.indices])
    again = choose_landmarks(Laplacian(1.0), X, m, how, weights=w, lam=0.1, seed=seed)
    np.testing.assert_array_equal(found.indices, again.indices)


def test_rows_that_matter_are_found_where_an_even_draw_misses_them() -> None:
    """A cluster of 980 and 20 outliers, each with a feature of its own."""
    rng = np.random.default_rng(2)
    X = np.concatenate([0.01 * rng.standard_normal((980, 2)), 100 * rng.standard_normal((20, 2))])
    for seed in range(20):  # values of the kernel are not so exact here that no remainder is a little below 0
        assert np.sum(choose_landmarks(Gaussian(gamma=1.0), X, 40, seed=seed).indices >= 980) == 20
    caught = {how: np.sum(choose_landmarks(Gaussian(gamma=1.0), X, 40, how, lam=0.1).indices >= 980) for how in HOW}
    assert caught["rpcholesky"] == 20
    assert caught["leverage"] >= 15
    assert caught["uniform"] < 5


@pytest.mark.parametrize("how", ["uniform", "leverage"])
def test_a_file_gives_the_same_rows(how: str, tmp_path: Path) -> None:
    X = points(8000, p=8).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    kernel = Gaussian(gamma=0.1)
    here = choose_landmarks(kernel, X, 50, how, lam=2.0, seed=3)
    with sklearn.config_context(working_memory=0.2):
        for there in (tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r")):
            found = choose_landmarks(kernel, there, 50, how, lam=2.0, seed=3)
            np.testing.assert_array_equal(found.indices, here.indices)
            np.testing.assert_array_equal(found.points, X[here.indices])
            assert type(found.points) is np.ndarray


def test_cholesky_of_a_file_is_of_a_sample_and_says_so(tmp_path: Path) -> None:
    X = points(3000)
    np.save(tmp_path / "x.npy", X)
    found = choose_landmarks(Gaussian(gamma=1.0), tmp_path / "x.npy", 30)
    assert found.note == "by randomly pivoted Cholesky of a random sample of 600 of 3000 rows"
    np.testing.assert_array_equal(found.points, X[found.indices])


def test_cholesky_takes_a_sample_where_its_factor_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X = points(3000)
    assert choose_landmarks(Gaussian(gamma=1.0), X, 30).note == "by randomly pivoted Cholesky"
    monkeypatch.setattr(_landmarks, "available_memory", lambda: 4 * 8 * 30 * 500)
    assert "a random sample of 500 of 3000 rows" in choose_landmarks(Gaussian(gamma=1.0), X, 30).note


def test_cholesky_stops_at_the_rank_and_says_so() -> None:
    found = choose_landmarks(Linear(), points(100, p=3), 10)
    assert len(found.indices) == 3
    assert found.note == "by randomly pivoted Cholesky; 3 span the features of all"
    assert repr(found) == f"Landmarks(3: {found.note})"


def test_landmarks_given_are_taken_as_they_are() -> None:
    X = points(10)
    found = choose_landmarks(Gaussian(gamma=1.0), X, None, np.array([7, 2, 5]))
    assert found.indices.tolist() == [7, 2, 5]
    np.testing.assert_array_equal(found.points, X[[7, 2, 5]])


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ("best", "one of rpcholesky, leverage, uniform"),
        ([0.5, 1.0], "a vector of row numbers"),
        ([], "a vector of row numbers"),
        ([0, 10], "names row 10; there are rows 0 to 9"),
        ([-1, 2], "names row -1"),
        ([1, 2, 1], "names row 1 more than once"),
        ([2, 3], "names row 3, whose weight is 0"),
    ],
)
def test_landmarks_that_cannot_be_are_refused(how: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        choose_landmarks(Gaussian(gamma=1.0), points(10), 2, how, weights=np.where(np.arange(10) == 3, 0.0, 1.0))


def test_other_input_that_cannot_be_is_refused() -> None:
    X = points(10)
    with pytest.raises(ValueError, match="1, got 0"):
        choose_landmarks(Gaussian(gamma=1.0), X, 0)
    with pytest.raises(ValueError, match="weight"):
        choose_landmarks(Gaussian(gamma=1.0), X, 2, weights=np.zeros(10))
    for how in ("rpcholesky", "leverage"):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            choose_landmarks(Sigmoid(gamma=1.0, coef0=-1.0), X, 2, how)


def test_sparse_rows_and_objects() -> None:
    X = sparse.csr_array(np.round(points(50, p=4)))
    for how in HOW:
        found = choose_landmarks(Gaussian(gamma=0.2), X, 8, how, lam=0.5)
        np.testing.assert_array_equal(found.points.toarray(), X.toarray()[found.indices])
    words = ["".join(w) for w in product("ab", repeat=4)]
    same = Callable(lambda a, b: float(sum(x == y for x, y in zip(a, b, strict=True))))
    for how in HOW:
        found = choose_landmarks(same, words, 4, how, lam=0.5)
        assert found.points == [words[i] for i in found.indices]


def test_the_diagonal_of_a_file_takes_one_pass(tmp_path: Path) -> None:
    X = points(500)
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_allclose(kernel_diagonal(Linear(), tmp_path / "x.npy"), np.sum(X**2, axis=1))
    np.testing.assert_array_equal(kernel_diagonal(Gaussian(gamma=1.0), tmp_path / "x.npy"), 1.0)


def test_the_number_of_landmarks_where_none_is_given() -> None:
    assert [default_landmarks(n) for n in (10, 999, 10_000, 40_000, 10**7)] == [10, 999, 1000, 2000, 10_000]
    assert len(choose_landmarks(Laplacian(1.0), points(30)).indices) == 30


@pytest.mark.parametrize("how", HOW)
def test_models_come_nearer_to_exact_kernel_ridge_as_landmarks_are_added(how: str) -> None:
    X, new = points(300), points(50, seed=7)
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    kernel = Gaussian(gamma=0.5)
    truth = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X, y).predict(new)

    def error(m: int) -> float:
        found = []
        for seed in range(5):
            _, Z = choose_landmarks(kernel, X, m, how, lam=0.1, seed=seed)
            fit = LandmarkSolver()(KernelOperator(kernel, X, Z), kernel(Z), y, 0.1)
            found.append(np.sqrt(np.mean((kernel(new, Z) @ fit.coef[:, 0] - truth) ** 2)))
        return float(np.mean(found))

    errors = [error(m) for m in (5, 45, 120, 300)]
    assert all(a > 2 * b for a, b in pairwise(errors))
    assert errors[-1] < 1e-8


def test_points_in_float32_are_compared_in_float64() -> None:
    X = (points(400) + 30.0).astype(np.float32)
    wide = X.astype(np.float64)
    for kernel in (Linear(), Polynomial(degree=3, gamma=0.5), Gaussian(gamma=0.01)):
        np.testing.assert_array_equal(kernel_diagonal(kernel, X), kernel_diagonal(kernel, wide))
        np.testing.assert_array_equal(kernel_diagonal(kernel, sparse.csr_array(X)), kernel_diagonal(kernel, wide))
        np.testing.assert_array_equal(dense_kernel(kernel, X), dense_kernel(kernel, wide))
        for how in HOW:
            here, there = (choose_landmarks(kernel, Z, 25, how, lam=0.1).indices for Z in (X, wide))
            np.testing.assert_array_equal(here, there)
    found = ridge_leverage(Gaussian(gamma=0.01), X, 1e-6, np.arange(400))
    np.testing.assert_allclose(found, ridge_leverage(Gaussian(gamma=0.01), wide, 1e-6, np.arange(400)), rtol=1e-9)


def test_where_no_row_has_a_feature_one_stands_for_all() -> None:
    found = choose_landmarks(Linear(), np.zeros((50, 2)), 10, weights=np.where(np.arange(50) == 7, 1.0, 0.5))
    assert len(found.indices) == 1
    assert "every k(x, x) is 0" in found.note
