"""``IncrementalPCA`` and ``TruncatedSVD``: scikit-learn's answers under its names; densities of wide data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition as theirs
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.base import clone

import gramian
from gramian import PCA, IncrementalPCA, TruncatedSVD
from oracles import Array

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 12)) * np.geomspace(1, 9, 12) + np.arange(12)


@pytest.mark.parametrize("k", [None, 1, 5, 12])
def test_batches_give_the_components_of_all_rows(k: int | None) -> None:
    whole = PCA(k).fit(X)
    parts = IncrementalPCA(k)
    for batch in np.array_split(X, 37):  # smaller than the number of components
        parts.partial_fit(batch)
    for model in (parts, IncrementalPCA(k, batch_size=17).fit(X)):
        for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
            assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-9, atol=1e-9, err_msg=name)
        assert_allclose(model.transform(X), whole.transform(X), atol=1e-8)
        assert_allclose(
            model.inverse_transform(model.transform(X)), whole.inverse_transform(whole.transform(X)), atol=1e-8
        )
        assert model.certificate_.converged


def test_attributes_of_incremental_pca_are_scikit_learns() -> None:
    ours, reference = IncrementalPCA(12).fit(X), theirs.IncrementalPCA(12).fit(X)  # all: nothing is lost on the way
    for name in ("var_", "mean_", "n_samples_seen_", "batch_size_", "explained_variance_", "noise_variance_"):
        assert_allclose(getattr(ours, name), getattr(reference, name), rtol=1e-6, atol=1e-12, err_msg=name)
    assert_allclose(abs(ours.components_), abs(reference.components_), atol=1e-6)
    assert clone(ours).get_params() == {"n_components": 12, "whiten": False, "copy": True, "batch_size": None}
    assert set(clone(ours).get_params()) == set(reference.get_params())
    assert ours.fit(X[:50]).n_samples_seen_ == 50  # fit forgets
    with pytest.raises(ValueError, match="batch_size"):
        IncrementalPCA(batch_size=0).fit(X)
    with pytest.raises(ValueError, match="n_components"):
        IncrementalPCA(13).fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("algorithm", ["randomized", "arpack"])
def test_truncated_svd_is_scikit_learns(algorithm: str, sparse: bool, dtype: Any) -> None:
    dense = np.where(RNG.random((200, 60)) < 0.2, RNG.exponential(size=(200, 60)), 0.0).astype(dtype)
    data = sp.csr_array(dense) if sparse else dense
    ours = TruncatedSVD(4, algorithm=algorithm, tol=1e-4 if dtype == np.float32 else 1e-7).fit(data)
    reference = theirs.TruncatedSVD(4, algorithm="arpack", tol=0, random_state=0).fit(dense.astype(np.float64))
    tol = 3e-4 if dtype == np.float32 else 1e-6
    for name in ("components_", "singular_values_", "explained_variance_", "explained_variance_ratio_"):
        assert_allclose(getattr(ours, name), getattr(reference, name), rtol=10 * tol, atol=10 * tol, err_msg=name)
    assert_allclose(ours.transform(data), reference.transform(dense), atol=30 * tol)
    assert_allclose(ours.fit_transform(data), ours.transform(data), atol=tol)
    assert_allclose(ours.inverse_transform(ours.transform(data)), reference.inverse_transform(reference.transform(dense)), atol=30 * tol)  # fmt: skip  # noqa: E501
    assert ours.components_.dtype == dtype
    assert ours.certificate_.converged
    assert ours.get_feature_names_out()[0] == "truncatedsvd0"


def test_truncated_svd_bounds_hold_and_bad_input_is_named() -> None:
    svd = TruncatedSVD(3, tol=1e-3).fit(X)
    exact = np.linalg.svd(X, compute_uv=False)[:3]
    assert np.all(np.abs(svd.singular_values_ - exact) <= svd.certificate_.value_bounds)
    with pytest.raises(ValueError, match="n_features"):
        TruncatedSVD(13).fit(X)
    with pytest.raises(ValueError, match="row 3, column 2"):
        TruncatedSVD().fit(np.where(np.arange(36).reshape(3, 12) == 25, np.nan, X[:3]))
    with pytest.raises(ValueError, match="algorithm"):
        TruncatedSVD(algorithm="magic").fit(X)
    zero = TruncatedSVD(2).fit(np.zeros((5, 3)))
    assert_allclose(zero.singular_values_, 0.0)
    assert_allclose(zero.explained_variance_ratio_, 0.0)


@pytest.mark.parametrize("model", [IncrementalPCA(3), TruncatedSVD(3)])
def test_they_come_back_from_files(model: Any, tmp_path: Path) -> None:
    fitted = clone(model).fit(X)
    gramian.save(fitted, tmp_path / "model")
    assert_allclose(gramian.load(tmp_path / "model").transform(X), fitted.transform(X), rtol=0, atol=0)


def test_wide_rows_have_a_density_in_their_span() -> None:
    """The oracle is the normal distribution of the coordinates in the span."""
    wide = RNG.normal(size=(8, 30)) * 2.0
    pca = PCA().fit(wide)
    basis = np.linalg.svd(wide - wide.mean(axis=0))[2][:7].T
    D: Array = (wide - wide.mean(axis=0)) @ basis
    expected = multivariate_normal.logpdf(D, np.zeros(7), np.cov(D.T))
    assert_allclose(pca.score_samples(wide), expected, rtol=1e-9)
    assert_allclose(pca.score(wide), expected.mean(), rtol=1e-9)
    assert pca.score_samples(RNG.normal(size=(2, 30))).tolist() == [-np.inf, -np.inf]
