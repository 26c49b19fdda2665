"""Probabilistic PCA by EM: against the closed form, naive densities, and the factored likelihood of Anderson (1957)."""

from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import gramian
from gramian.pca.factor import Factor, expectation, fit_factor
from oracles import Array

ROUTES = ["cells", "latent"]


def factor_data(n: int, p: int, k: int, missing: float, seed: int = 0, noise: float = 1.0) -> Array:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k)) @ rng.normal(size=(k, p)) * 1.5 + noise * rng.normal(size=(n, p)) + np.arange(p)
    gaps = rng.random((n, p)) < missing
    gaps[np.arange(n), rng.integers(0, p, n)] = False  # every row keeps a cell
    gaps[:2] = False
    return np.where(gaps, np.nan, X)


def random_start(X: Array, k: int, seed: int = 1) -> Factor:
    rng = np.random.default_rng(seed)
    return Factor(np.nanmean(X, axis=0), rng.normal(size=(X.shape[1], k)), 1.0)


def naive_log_likelihood(X: Array, factor: Factor, w: Array | None = None) -> float:
    C = factor.loading @ factor.loading.T + factor.noise * np.eye(len(factor.mean))
    total = 0.0
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        density = multivariate_normal.logpdf(x[o], factor.mean[o], C[np.ix_(o, o)])
        total += density * (1.0 if w is None else w[i])
    return float(total)


def covariance(factor: Factor) -> Array:
    return np.asarray(factor.loading @ factor.loading.T + factor.noise * np.eye(len(factor.mean)))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("n", "p", "k"), [(60, 5, 2), (40, 8, 1), (30, 6, 5)])
def test_em_reaches_the_closed_form_on_complete_data(route: str, n: int, p: int, k: int) -> None:
    X = factor_data(n, p, 2, 0.0)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    values, V = values[::-1], vectors[:, ::-1][:, :k]
    noise = values[k:].mean()
    closed = Factor(X.mean(axis=0), V * np.sqrt(values[:k] - noise), noise)
    found, certificate = fit_factor(gramian.open(X), random_start(X, k), tol=1e-8, max_iter=20000, route=route)
    assert certificate.converged
    assert_allclose(covariance(found), covariance(closed), atol=1e-6 * values[0])
    assert_allclose(found.mean, closed.mean, atol=1e-7)
    assert_allclose(-certificate.objective[-1], naive_log_likelihood(X, closed), rtol=1e-10)


@pytest.mark.parametrize("route", ROUTES)
def test_at_the_closed_form_the_gradient_is_zero(route: str) -> None:
    X = factor_data(60, 6, 2, 0.0)
    pca = gramian.PCA(2).fit(X)
    scale = 59 / 60
    lam, noise = pca.explained_variance_ * scale, pca.noise_variance_ * scale
    start = Factor(X.mean(axis=0), pca.components_.T * np.sqrt(lam - noise), noise)
    _, certificate = fit_factor(gramian.open(X), start, route=route, max_iter=1)
    assert certificate.gradient < 1e-10


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_log_likelihood_is_that_of_the_observed_cells(route: str, missing: float) -> None:
    X = factor_data(40, 5, 2, missing)
    w = np.random.default_rng(2).integers(0, 4, 40).astype(float)
    start = random_start(X, 2)
    _, certificate = fit_factor(gramian.open(X), start, w, route=route, max_iter=1)
    assert_allclose(-certificate.objective[0], naive_log_likelihood(X, start, w), rtol=1e-12)


def test_slopes_are_the_derivatives_of_the_likelihood() -> None:
    X, start = factor_data(30, 4, 2, 0.3), random_start(factor_data(30, 4, 2, 0.3), 2)
    stats = expectation(X, np.ones(30), start)
    derivative = np.empty((4, 3))
    for j in range(4):
        for a in range(3):
            sides = []
            for h in (1e-5, -1e-5):
                W, mean = start.loading.copy(), start.mean.copy()
                if a < 2:
                    W[j, a] += h
                else:
                    mean[j] += h
                sides.append(naive_log_likelihood(X, Factor(mean, W, start.noise)))
            derivative[j, a] = (sides[0] - sides[1]) / 2e-5
    assert_allclose(stats.slope / start.noise, derivative, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("route", ROUTES)
def test_no_nearby_model_is_more_likely(route: str) -> None:
    X = factor_data(50, 5, 2, 0.25)
    found, certificate = fit_factor(gramian.open(X), random_start(X, 2), tol=1e-7, max_iter=20000, route=route)
    best = naive_log_likelihood(X, found)
    rng = np.random.default_rng(0)
    assert certificate.converged
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(10):
            step = found.like(found.vector + size * rng.normal(size=found.vector.shape))
            assert naive_log_likelihood(X, step) <= best + 1e-8


@pytest.mark.parametrize("missing", [0.05, 0.3, 0.5])
def test_both_routes_find_the_same_maximum(missing: float) -> None:
    X = factor_data(200, 10, 3, missing)
    start = random_start(X, 3)
    a, one = fit_factor(gramian.open(X), start, route="cells", tol=1e-7, max_iter=5000)
    b, two = fit_factor(gramian.open(X), start, route="latent", tol=1e-7, max_iter=5000)
    assert one.converged
    assert two.converged
    assert_allclose(one.objective[-1], two.objective[-1], rtol=1e-12)
    assert_allclose(covariance(a), covariance(b), atol=1e-6)


def test_monotone_gaps_have_andersons_closed_form() -> None:
    """Of (x, y) with y missing for some rows the likelihood factors: y's moments follow from a regression."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = 2 + 1.5 * x + rng.normal(size=200)
    seen = rng.random(200) < 1 / (1 + np.exp(2 * x))  # large x, and so large y, tend to be missing
    slope = np.cov(x[seen], y[seen])[0, 1] / np.var(x[seen], ddof=1)
    mean = y[seen].mean() + slope * (x.mean() - x[seen].mean())
    rest = np.mean((y[seen] - y[seen].mean() - slope * (x[seen] - x[seen].mean())) ** 2)
    X = np.column_stack([x, np.where(seen, y, np.nan)])
    for route in ROUTES:
        start = random_start(X, 1)
        found, _ = fit_factor(gramian.open(X), start, tol=1e-8, max_iter=20000, route=route)
        assert_allclose(found.mean, [x.mean(), mean], atol=1e-6)
        assert_allclose(covariance(found)[1, 1], rest + slope**2 * x.var(), rtol=1e-5)
        assert_allclose(covariance(found)[0, 1], slope * x.var(), rtol=1e-5)
    assert abs(mean - y.mean()) < abs(y[seen].mean() - y.mean()) / 3  # and it undoes the selection


@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(8, 40), st.integers(3, 9)),
    missing=st.floats(0.0, 0.6),
    route=st.sampled_from(ROUTES),
    weighted=st.booleans(),
    noise=st.floats(-5, 0),
)
def test_the_objective_never_increases(
    seed: int, shape: tuple[int, int], missing: float, route: str, weighted: bool, noise: float
) -> None:
    n, p = shape
    k = 1 + seed % min(3, p - 1)
    X = factor_data(n, p, 2, missing, seed, 10.0**noise)
    w = np.random.default_rng(seed).uniform(0.5, 3, n) if weighted else None
    _, certificate = fit_factor(gramian.open(X), random_start(X, k, seed), w, route=route, max_iter=60)
    assert len(certificate.objective) >= 2
    rounding = 1e-11 * (np.abs(certificate.objective).max() + X.size)
    assert np.all(np.diff(certificate.objective) <= rounding)


@pytest.mark.parametrize("route", ROUTES)
def test_an_integer_weight_is_repetition(route: str) -> None:
    X = factor_data(40, 6, 2, 0.2)
    w = np.random.default_rng(1).integers(0, 4, 40).astype(float)
    w[:2] = 1
    start = random_start(X, 2)
    repeated = np.repeat(X, w.astype(int), axis=0)
    a, _ = fit_factor(gramian.open(X), start, w, route=route, tol=1e-8, max_iter=5000)
    b, _ = fit_factor(gramian.open(repeated), start, route=route, tol=1e-8, max_iter=5000)
    assert_allclose(covariance(a), covariance(b), atol=1e-7)


def test_data_of_exact_rank_have_no_maximum_and_the_certificate_says_so() -> None:
    X = np.outer(np.arange(1.0, 21), [1.0, 2.0, 3.0])
    X[3, 1] = np.nan
    _, certificate = fit_factor(gramian.open(X), random_start(X, 1), max_iter=5000)
    assert not certificate.converged
    assert "without bound" in certificate.notes[0]


def test_an_unknown_route_is_refused() -> None:
    X = factor_data(10, 3, 1, 0.1)
    with pytest.raises(ValueError, match="route"):
        fit_factor(gramian.open(X), random_start(X, 1), route="both")


@pytest.mark.parametrize("route", ROUTES)
def test_blocks_change_nothing(route: str, tmp_path: Any) -> None:
    X = factor_data(300, 6, 2, 0.2)
    np.save(tmp_path / "x.npy", X)
    start = random_start(X, 2)
    whole, _ = fit_factor(gramian.open(X), start, route=route, tol=1e-8, max_iter=5000)
    with sklearn.config_context(working_memory=0.05):
        blocks, _ = fit_factor(gramian.open(tmp_path / "x.npy"), start, route=route, tol=1e-8, max_iter=5000)
    assert_allclose(covariance(blocks), covariance(whole), atol=1e-7)
