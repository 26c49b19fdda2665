"""The RV coefficient and its permutation moments, against FactoMineR and against all permutations."""

import csv
import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import pearson3

from gramian.pca.subspaces import rv_coefficient
from oracles import Array, separated

DATA = Path(__file__).parent.parent / "data"
R: dict[str, Any] = json.loads((DATA / "decathlon.json").read_text("utf-8"))
LINES = list(csv.reader((DATA / "decathlon.csv").read_text("utf-8").splitlines()))[1:]
X = np.array([line[1:13] for line in LINES], dtype=np.float64)
RACES, THROWS = X[:, [0, 4, 5, 9]], X[:, [2, 6, 8]]


@pytest.mark.parametrize(("name", "tables"), [("rv", (RACES, THROWS)), ("rv_few", (RACES[:8], X[:8, 10:12]))])
def test_factominer(name: str, tables: tuple[Array, Array]) -> None:
    found, theirs = rv_coefficient(*tables), R[name]
    ours = [found.rv, found.standardized, found.mean, found.variance, found.skewness, found.p_value]
    assert_allclose(
        ours, [theirs[key] for key in ("rv", "rvstd", "mean", "variance", "skewness", "p.value")], rtol=1e-9
    )
    assert_allclose(found.adjusted, (theirs["rv"] - theirs["mean"]) / (1 - theirs["mean"]), rtol=1e-9)


def naive_rv(A: Array, B: Array) -> float:
    """Written with the matrices of inner products, as Escoufier does."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    a, b = A @ A.T, B @ B.T
    return float(np.trace(a @ b) / np.sqrt(np.trace(a @ a) * np.trace(b @ b)))


@given(seed=st.integers(0, 10**6), n=st.integers(3, 7), p=st.integers(1, 4), q=st.integers(1, 8))
def test_moments_are_those_of_all_permutations(seed: int, n: int, p: int, q: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((n, p)), rng.exponential(size=(n, q)) + 100
    found = rv_coefficient(A, B)
    every = np.array([naive_rv(A[list(order)], B) for order in permutations(range(n))])
    assert_allclose(found.rv, naive_rv(A, B), rtol=1e-9)
    assert_allclose(found.mean, every.mean(), rtol=1e-9)
    assert_allclose(found.variance, every.var(), rtol=1e-6, atol=1e-16)
    third = np.mean((every - every.mean()) ** 3)
    assert_allclose(found.skewness * found.variance**1.5, third, rtol=1e-5, atol=1e-12)
    if n <= 6:
        assert_allclose(found.p_value, np.mean(every >= found.rv * (1 - 1e-9)))


def test_two_columns_are_a_squared_correlation() -> None:
    a, b = separated(30, 2).T
    found = rv_coefficient(a, b)
    assert_allclose(found.rv, np.corrcoef(a, b)[0, 1] ** 2, rtol=1e-10)
    assert_allclose(found.mean, 1 / 29, rtol=1e-10)


@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-150, 1.0, 1e150]))
def test_turning_shifting_and_stretching_change_nothing(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((15, 3)), rng.standard_normal((15, 4))
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    one, other = rv_coefficient(A, B), rv_coefficient((A @ Q + [5, 6, 7]) * factor, B)
    for name in ("rv", "mean", "variance", "skewness", "p_value"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, err_msg=name)
    assert_allclose(rv_coefficient(A, (A @ Q) * factor).rv, 1, rtol=1e-12)
    assert 0 <= one.rv <= 1


def test_the_approximation_agrees_with_permutations_and_scipy() -> None:
    exact = rv_coefficient(RACES, THROWS)
    drawn = rv_coefficient(RACES, THROWS, n_permutations=2000)
    assert drawn.method == "2000 random permutations"
    # a share of 2,000 draws has a standard deviation of √(p(1−p)/2000) < 0.009; the approximation errs by about as much
    assert abs(exact.p_value - drawn.p_value) < 0.04
    assert_allclose(exact.p_value, pearson3.sf(exact.standardized, exact.skewness), rtol=1e-9)
    assert rv_coefficient(RACES, THROWS, n_permutations=50, random_state=3).p_value == (
        rv_coefficient(RACES, THROWS, n_permutations=50, random_state=3).p_value
    )


def test_tables_of_noise_with_many_columns_and_of_the_same_signal() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((30, 200)), rng.standard_normal((30, 200))
    noise = rv_coefficient(A, B)
    assert noise.rv > 0.8  # near 1 without any relation
    assert abs(noise.adjusted) < 0.05
    assert noise.p_value > 0.01
    signal = rng.standard_normal((30, 1))
    assert rv_coefficient(A + 5 * signal, B + 5 * signal).p_value < 1e-6


def test_p_values_of_noise_are_uniform() -> None:
    rng = np.random.default_rng(1)
    values = [rv_coefficient(rng.standard_normal((20, 2)), rng.standard_normal((20, 3))).p_value for _ in range(300)]
    assert abs(np.mean(np.array(values) < 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 300)
    assert abs(np.mean(values) - 0.5) < 4 / np.sqrt(12 * 300)


def test_weights_are_frequencies_and_leave_no_test() -> None:
    w = np.arange(41) % 3
    ours = rv_coefficient(RACES, THROWS, sample_weight=w)
    assert_allclose(ours.rv, naive_rv(np.repeat(RACES, w, axis=0), np.repeat(THROWS, w, axis=0)), rtol=1e-10)
    assert np.isnan([ours.p_value, ours.mean, ours.adjusted]).all()
    assert ours.method == "none"


def test_without_centring() -> None:
    found = rv_coefficient(RACES, THROWS, centre=False, n_permutations=20)
    cross, a, b = RACES.T @ THROWS, RACES.T @ RACES, THROWS.T @ THROWS
    assert_allclose(found.rv, np.sum(cross**2) / np.sqrt(np.sum(a**2) * np.sum(b**2)), rtol=1e-10)
    assert np.isnan(found.mean)
    assert 0 < found.p_value <= 1


def test_kinds_tables_and_refusals() -> None:
    pd = pytest.importorskip("pandas")
    found = rv_coefficient(sparse.csr_array(RACES), pd.DataFrame(THROWS))
    assert_allclose(found.rv, R["rv"]["rv"], rtol=1e-9)
    assert pd.DataFrame(found.table()).shape == (1, 8)
    assert "Pearson type III" in repr(found)
    with pytest.raises(ValueError, match=r"41 rows.*has 5"):
        rv_coefficient(RACES, THROWS[:5])
    with pytest.raises(ValueError, match="rows"):
        rv_coefficient(RACES, np.full((41, 2), 0.1))
    with pytest.raises(ValueError, match="without sample_weight"):
        rv_coefficient(RACES, THROWS, sample_weight=np.ones(41), n_permutations=10)
    with pytest.raises(ValueError, match="row 1, column 1"):
        rv_coefficient(np.full((3, 1), np.nan), np.eye(3))
