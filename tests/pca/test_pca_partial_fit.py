"""Blocks, however they are cut, give the answer of the whole."""

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import gramian
from gramian import PCA
from oracles import Array, centred, exact_pca, separated, subspace_sine, with_spectrum

SAME = ["components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"]


def feed(model: PCA, blocks: list[Any], weights: list[Any] | None = None) -> PCA:
    for i, block in enumerate(blocks):
        model.partial_fit(block, sample_weight=None if weights is None else weights[i])
    return model


def cut(X: Array, size: int) -> list[Array]:
    return [X[start : start + size] for start in range(0, len(X), size)]


def assert_same(ours: PCA, theirs: PCA, tol: float = 1e-10) -> None:
    for name in SAME:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=tol, atol=tol, err_msg=name)
    assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=tol, atol=tol)
    assert ours.n_samples_ == theirs.n_samples_
    assert ours.n_components_ == theirs.n_components_


@pytest.mark.parametrize("size", [1, 2, 7, 20, 99, 100])
@pytest.mark.parametrize("shape", [(100, 6), (30, 30), (20, 50)])
def test_blocks_of_any_size(shape: tuple[int, int], size: int) -> None:
    X = separated(*shape)
    assert_same(feed(PCA(4), cut(X, size)), PCA(4, svd_solver="full").fit(X))


@pytest.mark.parametrize("n_components", [None, 2, 0.9, "mle"])
@pytest.mark.parametrize("params", [{}, {"whiten": True}, {"scale": True}])
def test_every_kind_of_n_components(n_components: Any, params: dict[str, Any]) -> None:
    X = separated(60, 6)
    blocks = [X[:30], X[30:]]
    ours = feed(PCA(n_components, **params), blocks)
    theirs = PCA(n_components, svd_solver="full", **params).fit(X)
    assert_same(ours, theirs)
    assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-9)


@given(cuts=st.lists(st.integers(1, 39), max_size=6, unique=True), offset=st.sampled_from([0.0, 1e4, 1e8]))
def test_any_cuts(cuts: list[int], offset: float) -> None:
    X = separated(40, 5) + offset
    blocks = [block for block in np.split(X, sorted(cuts)) if len(block)]
    first = next((i for i in range(1, len(blocks) + 1) if sum(map(len, blocks[:i])) > 5), len(blocks))
    blocks = [np.vstack(blocks[:first]), *blocks[first:]]
    ours, exact = feed(PCA(3), blocks), exact_pca(X)
    assert_allclose(ours.explained_variance_, exact.variances[:3], rtol=1e-10)
    assert_allclose(ours.components_, exact.components[:3], atol=1e-9)


@pytest.mark.parametrize("mean", [1e4, 1e8, 1e12])
def test_large_means(mean: float) -> None:
    X = separated(60, 4) + mean
    ours = feed(PCA(3), cut(X, 13))
    assert_allclose(ours.explained_variance_, exact_pca(X).variances[:3], rtol=1e-10)


def test_blocks_whose_means_differ_wildly() -> None:
    X = separated(60, 4)
    X[20:40] += 1e6
    X[40:] -= 1e9
    ours = feed(PCA(), cut(X, 20))
    assert_allclose(ours.singular_values_, exact_pca(X).singular_values, rtol=1e-10, atol=1e-15 * 1e10)


def test_large_means_in_float32() -> None:
    X = (separated(60, 4) + 1e5).astype(np.float32)
    ours = feed(PCA(3), cut(X, 13))
    assert_allclose(ours.explained_variance_, exact_pca(X).variances[:3], rtol=1e-10)
    assert ours.transform(X).dtype == np.float32


@pytest.mark.parametrize("size", [10, 27])
def test_weights(size: int) -> None:
    X, weights = separated(60, 5), np.random.default_rng(0).integers(0, 4, 60)
    ours = feed(PCA(3), cut(X, size), cut(weights, size))
    theirs = PCA(3, svd_solver="full").fit(X, sample_weight=weights)
    for name in SAME:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-10, atol=1e-10, err_msg=name)
    repeated = PCA(3, svd_solver="full").fit(np.repeat(X, weights, axis=0))
    assert_allclose(ours.explained_variance_, repeated.explained_variance_, rtol=1e-10)


def test_some_blocks_weighted_and_some_not() -> None:
    X = separated(40, 5)
    ours = PCA(3).partial_fit(X[:20]).partial_fit(X[20:], sample_weight=np.full(20, 2.0))
    assert_allclose(ours.components_, PCA(3).fit(np.vstack([X, X[20:]])).components_, atol=1e-10)


def test_sparse_dense_frame_and_source_blocks_mix() -> None:
    pandas = pytest.importorskip("pandas")
    X = np.where(np.random.default_rng(0).random((80, 6)) < 0.5, 0, separated(80, 6))
    blocks = [sparse.csr_array(X[:20]), X[20:40], sparse.csc_array(X[40:60]), gramian.open(X[60:])]
    assert_same(feed(PCA(3), blocks), PCA(3, svd_solver="full").fit(X))
    names = list("abcdef")
    frames = [pandas.DataFrame(part, columns=names) for part in cut(X, 40)]
    fitted = feed(PCA(3), frames)
    assert_same(fitted, PCA(3, svd_solver="full").fit(X))
    assert list(fitted.feature_names_in_) == names


def test_fit_starts_afresh() -> None:
    X, other = separated(40, 5), separated(30, 5, seed=9) + 100
    model = PCA(3).partial_fit(other)
    assert_same(model.fit(X), PCA(3).fit(X))


def test_partial_fit_after_fit_does_not_mix_old_statistics_with_new() -> None:
    """Starting afresh and continuing are both sensible; half of each is not."""
    X, other = separated(40, 5), separated(30, 5, seed=9) + 100
    model = PCA(3).fit(other).partial_fit(X)
    readings = [PCA(3).fit(data).explained_variance_ for data in (X, np.vstack([other, X]))]
    assert min(np.abs(model.explained_variance_ / one - 1).max() for one in readings) < 1e-9


def test_the_model_keeps_statistics_and_not_the_rows() -> None:
    model = PCA(2)
    for seed in range(3):
        model.partial_fit(np.random.default_rng(seed).standard_normal((20_000, 5)))
        assert len(pickle.dumps(model)) < 20_000
    assert model.n_samples_ == 60_000
    assert len(pickle.dumps(model)) < 20_000


def test_every_step_is_a_fitted_model() -> None:
    X = separated(40, 5)
    model = PCA(2)
    for stop in (10, 20, 40):
        model.partial_fit(X[stop - 10 : stop] if stop < 40 else X[20:])
        assert_allclose(model.components_, PCA(2).fit(X[:stop]).components_, atol=1e-9)
        assert model.certificate_.converged


def test_another_number_of_features_is_refused() -> None:
    model = PCA(2).partial_fit(separated(20, 5))
    with pytest.raises(ValueError, match=r"4 features.*5 features|5.*4|4.*5"):
        model.partial_fit(separated(20, 4))
    assert_allclose(model.mean_, separated(20, 5).mean(axis=0))


def test_a_refused_block_leaves_the_model_as_it_was() -> None:
    X = separated(40, 5)
    model = PCA(2).partial_fit(X[:20])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((20, 5), np.nan))
    assert_allclose(model.partial_fit(X[20:]).components_, PCA(2).fit(X).components_, atol=1e-9)


WIDE = 240  # 240² float64 is 0.44 MiB: too much for the working memory of 0.1 MiB below


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("size", [15, 40])
def test_wide_data_of_low_rank_are_exact(size: int, mean: float) -> None:
    X = with_spectrum(120, WIDE, [9.0, 7.0, 5.0, 3.0, 2.0], mean=mean)
    with sklearn.config_context(working_memory=0.1):
        fitted = feed(PCA(3, random_state=0), cut(X, size))
    theirs = PCA(3, svd_solver="full").fit(X)
    assert_allclose(fitted.singular_values_, theirs.singular_values_, rtol=1e-9)
    assert subspace_sine(fitted.components_, theirs.components_) < 1e-8
    assert fitted.certificate_.converged


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("decay", [0.5, 0.9, 0.98])
@pytest.mark.parametrize("size", [15, 40])
def test_wide_data_are_certified(size: int, decay: float) -> None:
    X = with_spectrum(200, WIDE, 10 * decay ** np.arange(150), mean=3.0)
    with sklearn.config_context(working_memory=0.1):
        fitted = feed(PCA(3, random_state=0), cut(X, size))
    truth = np.linalg.svd(centred(X), compute_uv=False)[:3]
    error = np.abs(fitted.singular_values_ - truth)
    assert (error <= fitted.certificate_.value_bounds + 1e-12).all(), (error, fitted.certificate_)
    assert_allclose(fitted.mean_, X.mean(axis=0), rtol=1e-12)
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(3), atol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_wide_total_variance_is_exact_even_when_the_spectrum_is_not() -> None:
    X = with_spectrum(200, WIDE, 10 * 0.98 ** np.arange(150), mean=3.0)
    with sklearn.config_context(working_memory=0.1):
        fitted = feed(PCA(3, random_state=0), cut(X, 20))
    total = fitted.explained_variance_ / fitted.explained_variance_ratio_
    assert_allclose(total, centred(X).var(axis=0, ddof=1).sum(), rtol=1e-10)
