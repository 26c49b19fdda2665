"""A weight of m is m equal rows, and a weight of zero is no row at all."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gramian import PCA
from oracles import Array, centred, exact_pca, naive_pca, separated, sparse_rows

EXACT = ["auto", "full", "covariance_eigh"]
ITERATIVE = ["krylov", "randomized", "power"]
SAME = ["components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"]


def assert_equal_fits(ours: Any, theirs: Any, tol: float = 1e-10) -> None:
    for name in SAME:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=tol, atol=tol, err_msg=name)
    assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=tol, atol=tol)


def weights_for(n: int, seed: int = 0) -> Array:
    """Integer weights from 0 to 4, a few of them zero."""
    return np.random.default_rng(seed).integers(0, 5, n)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("shape", [(40, 5), (30, 30), (12, 40)])
def test_integer_weight_is_repetition(shape: tuple[int, int], solver: str, scale: bool) -> None:
    X, weights = separated(*shape), weights_for(shape[0])
    repeated = np.repeat(X, weights, axis=0)
    ours = PCA(3, svd_solver=solver, scale=scale).fit(X, sample_weight=weights)
    theirs = PCA(3, svd_solver=solver, scale=scale).fit(repeated)
    for name in SAME:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-10, atol=1e-10, err_msg=name)
    assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-10)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("solver", ITERATIVE)
def test_integer_weight_is_repetition_for_iterative_solvers(solver: str, scale: bool) -> None:
    X, weights = separated(40, 12), weights_for(40)
    params: dict[str, Any] = {"svd_solver": solver, "scale": scale, "tol": 1e-12, "random_state": 0}
    ours = PCA(3, **params).fit(X, sample_weight=weights)
    assert_equal_fits(ours, PCA(3, **params).fit(np.repeat(X, weights, axis=0)))


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
def test_zero_weight_is_removal(solver: str) -> None:
    X, keep = separated(40, 6), weights_for(40) > 1
    params: dict[str, Any] = {"svd_solver": solver, "tol": 1e-12, "random_state": 0}
    assert_equal_fits(PCA(3, **params).fit(X, sample_weight=keep), PCA(3, **params).fit(X[keep]))


@pytest.mark.parametrize("outlier", [1e6, 1e12, -1e16, 1e150, 1e300])
def test_zero_weight_hides_an_outlier_completely(outlier: float) -> None:
    X = separated(40, 6)
    spoiled = np.vstack([X[:20], np.full((1, 6), outlier), X[20:]])
    weights = np.r_[np.ones(20), 0.0, np.ones(20)]
    assert_equal_fits(PCA(3).fit(spoiled, sample_weight=weights), PCA(3).fit(X))


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("scale", [False, True])
def test_fractional_weights_agree_with_the_fifty_digit_oracle(solver: str, scale: bool) -> None:
    X = separated(30, 4)
    weights = np.random.default_rng(3).uniform(0.1, 4, 30)
    exact = exact_pca(X, weights, scale)
    ours = PCA(svd_solver=solver, scale=scale).fit(X, sample_weight=weights)
    assert_allclose(ours.mean_, exact.mean, rtol=1e-13)
    assert_allclose(ours.explained_variance_, exact.variances, rtol=1e-10)
    assert_allclose(ours.components_, exact.components, atol=1e-10)


@pytest.mark.parametrize("kind", [list, np.float32, np.int8, bool, "pandas"])
def test_weights_of_any_kind(kind: Any) -> None:
    X, weights = separated(20, 4), np.arange(20) % 2
    if kind == "pandas":
        given_weights = pytest.importorskip("pandas").Series(weights)
    else:
        given_weights = list(weights) if kind is list else weights.astype(kind)
    assert_equal_fits(PCA(2).fit(X, sample_weight=given_weights), PCA(2).fit(X[1::2]))


def test_float32_data_with_weights() -> None:
    X, weights = separated(50, 5).astype(np.float32), weights_for(50)
    ours = PCA(3).fit(X, sample_weight=weights)
    assert_allclose(ours.explained_variance_, exact_pca(X, weights).variances[:3], rtol=1e-6)
    assert ours.transform(X).dtype == np.float32


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "krylov", "randomized"])
def test_sparse_with_weights(solver: str, scale: bool) -> None:
    X = sparse_rows(60, 15, 0.3)
    weights = weights_for(60)
    params: dict[str, Any] = {"svd_solver": solver, "scale": scale, "tol": 1e-12, "random_state": 0}
    ours = PCA(3, **params).fit(X, sample_weight=weights)
    theirs = PCA(3, svd_solver="full", scale=scale).fit(np.repeat(X.toarray(), weights, axis=0))
    assert_equal_fits(ours, theirs)


@pytest.mark.parametrize("weights", [None, "weights"])
def test_scaling_is_pca_of_standardised_columns(weights: str | None) -> None:
    X = separated(40, 5) * np.array([1, 1e3, 1e-3, 7, 1e6])
    given_weights = None if weights is None else weights_for(40)
    ours = PCA(3, scale=True).fit(X, sample_weight=given_weights)
    naive = naive_pca(X, given_weights, scale=True)
    assert_allclose(ours.explained_variance_, naive.variances[:3], rtol=1e-10)
    assert_allclose(ours.components_, naive.components[:3], atol=1e-10)
    assert_allclose(ours.explained_variance_ratio_, naive.variances[:3] / 5, rtol=1e-10)
    standardised = (X - ours.mean_) / ours.scale_
    assert_allclose(ours.transform(X), standardised @ ours.components_.T, atol=1e-10)


def test_decoding_scaled_data_returns_to_the_units_of_the_data() -> None:
    X = separated(40, 5) * np.array([1, 1e3, 1e-3, 7, 1e6])
    full = PCA(scale=True).fit(X)
    assert_allclose(full.inverse_transform(full.transform(X)), X, rtol=1e-9)
    assert PCA(2).fit(X).scale_ is None


def test_scaling_a_constant_column_leaves_it_alone() -> None:
    X = separated(40, 5)
    X[:, 2] = 7.0
    fitted = PCA(3, scale=True).fit(X)
    without = PCA(3, scale=True).fit(np.delete(X, 2, axis=1))
    assert np.isfinite(fitted.transform(X)).all()
    assert_allclose(fitted.components_[:, 2], 0, atol=1e-12)
    assert_allclose(fitted.explained_variance_, without.explained_variance_, rtol=1e-10)


@pytest.mark.parametrize(
    ("weights", "word"),
    [
        (np.full(20, -1.0), "[Nn]egative"),
        (np.r_[-1.0, np.ones(19)], "[Nn]egative"),
        (np.zeros(20), "weight|sample"),
        (np.r_[1.0, np.zeros(19)], "weight|sample"),
        (np.r_[np.nan, np.ones(19)], "(?i)nan"),
        (np.r_[np.inf, np.ones(19)], "inf"),
        (np.ones(19), "shape|length|sample"),
        (np.ones((20, 2)), "1D|dimension|shape"),
    ],
)
def test_impossible_weights_are_refused(weights: Array, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        PCA(2).fit(separated(20, 4), sample_weight=weights)


@given(
    weights=st.lists(st.integers(0, 6), min_size=15, max_size=15).filter(lambda w: sum(v > 0 for v in w) > 5),
    scale=st.booleans(),
    offset=st.sampled_from([0.0, 1e3, -1e6]),
)
def test_repetition_for_any_weights(weights: list[int], scale: bool, offset: float) -> None:
    X = separated(15, 4) + offset
    ours = PCA(svd_solver="full", scale=scale).fit(X, sample_weight=weights)
    theirs = PCA(svd_solver="full", scale=scale).fit(np.repeat(X, weights, axis=0))
    assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-10)
    assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12)


@given(weights=st.lists(st.floats(0.01, 100), min_size=12, max_size=12), factor=st.floats(0.5, 10))
def test_components_do_not_depend_on_the_unit_of_the_weights(weights: list[float], factor: float) -> None:
    X, w = separated(12, 4), np.array(weights) + 1
    one, other = PCA().fit(X, sample_weight=w), PCA().fit(X, sample_weight=w * factor)
    assert_allclose(one.explained_variance_ratio_, other.explained_variance_ratio_, rtol=1e-9, atol=1e-12)
    assert_allclose(one.singular_values_**2 * factor, other.singular_values_**2, rtol=1e-9)
    assert_allclose(one.singular_values_, np.linalg.svd(centred(X, w), compute_uv=False), rtol=1e-9)
