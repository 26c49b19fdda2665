"""Missing cells given observed ones: against the textbook formulas with the whole covariance matrix."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest, multivariate_normal

import gramian
from gramian import PCA
from gramian.analysis import condition, latent
from gramian.pca.probabilistic import gaussian_model
from oracles import Array, separated

MODELS: dict[str, Any] = {
    "two": PCA(2),
    "scaled": PCA(2, scale=True),
    "whitened": PCA(3, whiten=True),
    "all": PCA(),
    "one": PCA(1, svd_solver="krylov"),
}


def rows_with_holes(p: int = 6, n: int = 12, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    X = separated(60, p)[:n] + rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.4] = np.nan
    X[:, 0] = np.where(np.isnan(X).all(axis=1), 1.0, X[:, 0])
    X[3] = separated(60, p)[3]  # one row is complete
    return X


def textbook(pca: PCA, x: Array) -> tuple[Array, Array]:
    """E[x|x_o] and Cov(x_m|x_o) by C_mo C_oo⁻¹."""
    C, o = pca.get_covariance(), ~np.isnan(x)
    K = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, ~o)]).T
    out = x.copy()
    out[~o] = pca.mean_[~o] + K @ (x[o] - pca.mean_[o])
    return out, C[np.ix_(~o, ~o)] - K @ C[np.ix_(o, ~o)]


@pytest.mark.parametrize("name", MODELS)
def test_means_and_covariances_are_those_of_the_textbook(name: str) -> None:
    pca, X = MODELS[name].fit(separated(60, 6)), rows_with_holes()
    given = condition(pca, X)
    for i, x in enumerate(X):
        mean, covariance = textbook(pca, x)
        assert_allclose(given.mean[i], mean, atol=1e-8)
        assert_allclose(given.covariance(i), covariance, atol=1e-8)
        assert_allclose(given.variance[i][given.missing[i]], np.diag(covariance), atol=1e-8)
    assert_allclose(pca.impute(X), given.mean, rtol=1e-12)
    assert np.all(given.variance[~given.missing] == 0)


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_a_row_with_holes_are_those_of_its_expectation(name: str) -> None:
    pca, X = MODELS[name].fit(separated(60, 6)), rows_with_holes()
    filled = np.array([textbook(pca, x)[0] for x in X])
    assert_allclose(pca.transform(X), pca.transform(filled), atol=1e-8)
    assert_allclose(pca.transform(X)[3], pca.transform(X[3:4])[0], rtol=1e-12)


@pytest.mark.parametrize("name", ["two", "scaled", "whitened", "one"])
def test_the_density_of_a_row_with_holes_is_its_marginal(name: str) -> None:
    pca, X = MODELS[name].fit(separated(60, 6)), rows_with_holes()
    C = pca.get_covariance()
    expected = []
    for x in X:
        o = ~np.isnan(x)
        expected.append(multivariate_normal.logpdf(x[o], pca.mean_[o], C[np.ix_(o, o)]))
    assert_allclose(pca.score_samples(X), expected, rtol=1e-9)
    assert_allclose(pca.score(X), np.mean(expected), rtol=1e-9)


def test_without_noise_the_expectation_is_the_limit_of_little_noise() -> None:
    pca = PCA(2).fit(separated(60, 6))
    pca.noise_variance_ = 0.0
    X = rows_with_holes()
    exact = condition(pca, X)
    pca.noise_variance_ = 1e-11
    near = condition(pca, X)
    enough = (~np.isnan(X)).sum(axis=1) >= 2  # rows that determine z
    assert_allclose(exact.mean[enough], near.mean[enough], atol=1e-6)
    assert_allclose(exact.variance, near.variance, atol=1e-6)


def test_latent_variables_have_the_posterior_of_tipping_and_bishop() -> None:
    X = separated(60, 6)
    pca = PCA(2).fit(X)
    W, noise = gaussian_model(pca).loading, pca.noise_variance_
    M = W.T @ W + noise * np.eye(2)
    posterior = latent(pca, X)
    assert_allclose(posterior.mean, (X - pca.mean_) @ W @ np.linalg.inv(M), atol=1e-10)
    assert_allclose(posterior.covariance[7], noise * np.linalg.inv(M), atol=1e-12)


@pytest.mark.parametrize("scale", [False, True])
def test_samples_have_the_mean_and_covariance_of_the_model(scale: bool) -> None:
    pca = PCA(2, scale=scale).fit(separated(60, 5))
    X = pca.sample(200_000, random_state=0)
    C = pca.get_covariance()
    deviation = np.sqrt(np.diag(C))
    assert_allclose((X.mean(axis=0) - pca.mean_) / deviation, 0, atol=5 / np.sqrt(200_000))
    assert_allclose(np.cov(X.T) / np.outer(deviation, deviation), C / np.outer(deviation, deviation), atol=0.02)


def test_a_likelihood_of_new_rows_prefers_the_right_number_of_components() -> None:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(3, 10)) * 2
    X = rng.normal(size=(400, 3)) @ W + rng.normal(size=(400, 10))
    held_out = rng.normal(size=(400, 3)) @ W + rng.normal(size=(400, 10))
    scores = [PCA(k).fit(X).score(held_out) for k in range(1, 8)]
    assert int(np.argmax(scores)) + 1 == 3


def test_draws_follow_the_conditional_distribution() -> None:
    pca = PCA(2).fit(separated(60, 6))
    x = separated(60, 6)[:1].copy()
    x[0, [1, 4]] = np.nan
    given = condition(pca, np.repeat(x, 4000, axis=0))
    draws = given.sample(random_state=0)[:, [1, 4]]
    whitened = np.linalg.solve(np.linalg.cholesky(given.covariance(0)), (draws - given.mean[0, [1, 4]]).T)
    assert kstest(whitened[0], "norm").pvalue > 1e-3
    assert kstest(whitened[1], "norm").pvalue > 1e-3
    assert abs(np.corrcoef(whitened)[0, 1]) < 0.06
    assert_allclose(given.sample(0), given.sample(0), rtol=0)


@pytest.mark.parametrize("method", [PCA.transform, PCA.impute, condition, PCA.score_samples, latent])
def test_a_row_with_nothing_observed_is_refused_by_number(method: Any) -> None:
    pca, X = PCA(2).fit(separated(60, 6)), rows_with_holes()
    X[7] = np.nan
    with pytest.raises(ValueError, match="Row 8 "):
        method(pca, X)


@pytest.mark.parametrize("method", ["transform", "impute", "score_samples"])
def test_an_infinity_beside_a_hole_is_refused_by_place(method: str) -> None:
    pca, X = PCA(2).fit(separated(60, 6)), rows_with_holes()
    X[8, 2] = -np.inf
    with pytest.raises(ValueError, match="row 9, column 3"):
        getattr(pca, method)(X)


def test_blocks_tensors_and_narrow_floats_give_the_same(tmp_path: Any, torch: Any) -> None:
    X = rows_with_holes(n=40)
    pca = PCA(2).fit(separated(60, 6))
    np.save(tmp_path / "x.npy", X)
    expected = pca.transform(X)
    assert_allclose(pca.transform(tmp_path / "x.npy"), expected, rtol=1e-12)
    assert_allclose(pca.transform(gramian.open(X)), expected, rtol=1e-12)
    tensor = pca.transform(torch.asarray(X))
    assert tensor.dtype == torch.float64
    assert_allclose(tensor.numpy(), expected, rtol=1e-12)
    narrow = pca.transform(X.astype(np.float32))
    assert narrow.dtype == np.float32
    assert_allclose(narrow, expected, atol=1e-4)
