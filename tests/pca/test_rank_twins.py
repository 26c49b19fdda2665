"""Every rule for the number of components against a naive twin: fewer rows than columns, as many, and more."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammaln

from gramian import PCA
from gramian.pca import rank
from gramian.pca.tracy_widom import tracy_widom_sf

SHAPES = [(12, 30), (25, 26), (26, 26), (27, 26), (60, 9), (5, 4), (4, 5), (3, 3)]


def rows_of(n, p, seed):
    rng = np.random.default_rng([n, p, seed])
    k = seed % 3
    signal = rng.standard_normal((n, k)) @ rng.standard_normal((k, p)) * 2.5
    return signal + rng.standard_normal((n, p)) + 10.0


def all_eigenvalues(X):
    """All p of them, by the covariance matrix."""
    return np.maximum(np.linalg.eigvalsh(np.cov(X.T).reshape(X.shape[1], X.shape[1]))[::-1], 0.0)


def broken_stick_twin(lam, n, p):
    m, k = min(n - 1, p), 0
    while k < m and lam[k] / sum(lam) > sum(1 / i for i in range(k + 1, m + 1)) / m:
        k += 1
    return k


def gavish_donoho_twin(lam, n, p):
    m, longer = min(n - 1, p), max(n - 1, p)
    beta = m / longer
    a, b = (1 - math.sqrt(beta)) ** 2, (1 + math.sqrt(beta)) ** 2

    def mass(end):
        # t = a + (b − a) sin²φ takes the roots out of the ends
        phi = math.asin(math.sqrt((end - a) / (b - a)))
        inside = lambda f: ((b - a) * math.sin(f) * math.cos(f)) ** 2 / (a + (b - a) * math.sin(f) ** 2)  # noqa: E731
        return quad(inside, 1e-12, phi, epsabs=1e-12)[0] / (math.pi * beta)

    middle = brentq(lambda t: mass(t) - 0.5, a + 1e-12, b - 1e-12)
    cut = math.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + math.sqrt(beta**2 + 14 * beta + 1)))
    sigma = np.sqrt(lam[:m] * (n - 1))
    return int(np.sum(sigma > cut / math.sqrt(middle) * np.median(sigma)))


def noise_twin(lam, n, p, k):
    """σ² of Kritchman and Nadler, as the root of one equation."""

    def excess(v):
        rho = []
        for x in lam[:k]:
            b = x + v - v * (p - k) / (n - 1)
            rho.append((b + math.sqrt(b * b - 4 * x * v)) / 2 if b * b > 4 * x * v and b > 0 else math.sqrt(x * v))
        return v - (sum(lam[k:]) + sum(lam[:k]) - sum(rho)) / (p - k)

    low = sum(lam[k:]) / (p - k)
    return low if excess(low) >= 0 else brentq(excess, low, sum(lam), xtol=1e-14, rtol=1e-14)


@cache
def trace_ratio_limit(rows, columns, alpha=0.05):
    """μ + sσ with 1 − F₁(s) + (μ/σ)² F₁″(s)/(np) = α, the second derivative by differences."""
    a, b = math.sqrt(rows - 0.5), math.sqrt(columns - 0.5)
    mu, sigma = (a + b) ** 2 / rows, (a + b) / rows * (1 / a + 1 / b) ** (1 / 3)
    h = 1e-3

    def excess(s):
        left, middle, right = tracy_widom_sf([s - h, s, s + h])
        return middle - (mu / sigma) ** 2 / (rows * columns) * (left - 2 * middle + right) / h**2 - alpha

    return mu + brentq(excess, -1.4, 2.0, xtol=1e-8) * sigma


def tracy_widom_twin(lam, n, p):
    k = 0
    while k < min(n - 1, p) - 1 and lam[k] > noise_twin(lam, n, p, k) * trace_ratio_limit(n - 1, p - k):
        k += 1
    return k


def minka_twin(lam, n, p):
    lam = np.where(lam > max(p, 2) * np.finfo(float).eps * lam[0], lam, 0.0)
    best, answer = -math.inf, 1
    for k in range(1, min(np.count_nonzero(lam), p - 1) + 1):
        v = sum(lam[k:]) / (p - k)
        if v <= 0:
            continue
        smooth = [*lam[:k], *[v] * (p - k)]
        value = -k * math.log(2) + sum(gammaln((p - i) / 2) - (p - i) / 2 * math.log(math.pi) for i in range(k))
        value += -n / 2 * sum(math.log(x) for x in lam[:k]) - n * (p - k) / 2 * math.log(v)
        value += (p * k - k * (k + 1) / 2 + k) / 2 * math.log(2 * math.pi) - k / 2 * math.log(n)
        for i in range(k):
            for j in range(i + 1, p):
                value -= 0.5 * math.log((1 / smooth[j] - 1 / smooth[i]) * (lam[i] - lam[j]) * n)
        if value > best:
            best, answer = value, k
    return answer


def fraction_twin(lam, n, p):
    k = 1
    while sum(lam[:k]) <= 0.8 * sum(lam):
        k += 1
    return k


TWINS = {
    "broken-stick": broken_stick_twin,
    "gavish-donoho": gavish_donoho_twin,
    "tracy-widom": tracy_widom_twin,
    "mle": minka_twin,
    0.8: fraction_twin,
}


@pytest.mark.parametrize("rule", TWINS)
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_a_rule_and_its_twin_agree(rule, n, p):
    for seed in range(6):
        X = rows_of(n, p, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = PCA(rule, svd_solver="full").fit(X).n_components_
        assert found == TWINS[rule](all_eigenvalues(X), n, p), f"seed {seed}"


@pytest.mark.parametrize(("n", "p"), [(60, 9), (27, 26), (12, 30), (26, 26)])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_noise_variance_and_its_twin_agree(n, p, k):
    lam = all_eigenvalues(rows_of(n, p, 2))
    assert_allclose(rank.noise_variance(lam, n, p, k), noise_twin(lam, n, p, k), rtol=1e-8)


@pytest.mark.parametrize(("n", "p"), [(60, 9), (14, 14), (9, 21)])
@pytest.mark.parametrize("scale", [False, True])
def test_cross_validation_predicts_each_cell_from_the_others(n, p, scale):
    """PRESS by least squares on the other cells of the row, cell by cell; and the same k through PCA."""
    X, K = rows_of(n, p, 2), 4
    found = rank.cross_validate_rank(PCA(scale=scale), X, n_folds=3, max_components=K, random_state=3)
    folds = np.random.default_rng(rank.check_seed(3)).permutation(np.arange(n) % 3)
    press = np.zeros(K + 1)
    for f in range(3):
        train = X[folds != f]
        s = train.std(axis=0, ddof=1) if scale else np.ones(p)
        V = np.linalg.svd((train - train.mean(axis=0)) / s)[2]
        for row in (X[folds == f] - train.mean(axis=0)) / s:
            press[0] += row @ row
            for k in range(1, K + 1):
                for j in range(p):
                    others = np.arange(p) != j
                    z = np.linalg.lstsq(V[:k, others].T, row[others], rcond=None)[0]
                    press[k] += (row[j] - z @ V[:k, j]) ** 2
    assert_allclose(found.press, press, rtol=1e-8)
    assert found.n_components == np.argmin(press)


@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.95])
@pytest.mark.parametrize(("n", "p"), [(30, 6), (6, 6), (5, 9)])
def test_parallel_analysis_takes_the_quantile_asked_for(monkeypatch, quantile, n, p):
    X = rows_of(n, p, 1)
    draws = np.random.default_rng(0).uniform(size=(41, min(n, p)))
    monkeypatch.setattr(rank, "eigenvalues_of_draws", lambda *_: draws)
    found = rank.parallel_analysis(PCA(), X, n_draws=41, quantile=quantile)
    ordered = np.sort(draws[:, : min(n - 1, p)], axis=0)
    place = quantile * 40
    low = math.floor(place)
    high = ordered[min(low + 1, 40)]
    assert_allclose(found.thresholds, ordered[low] + (place - low) * (high - ordered[low]))
    lam, k = all_eigenvalues(X), 0
    while k < len(found.thresholds) and lam[k] > found.thresholds[k]:
        k += 1
    assert found.n_components == k


@pytest.mark.parametrize(("quantile", "least"), [(0.5, 2), (0.95, 20), (0.99, 100)])
def test_too_few_draws_for_a_quantile_are_refused(quantile, least):
    X = rows_of(12, 3, 1)
    rank.parallel_analysis(PCA(), X, n_draws=least, quantile=quantile)
    with pytest.raises(ValueError, match=f"n_draws={least - 1}.*{least}"):
        rank.parallel_analysis(PCA(), X, n_draws=least - 1, quantile=quantile)


@pytest.mark.parametrize("null", ["permutation", "gaussian"])
@pytest.mark.parametrize(("n", "p"), [(8, 20), (20, 20), (40, 7)])
def test_draws_have_the_mean_spectrum_of_naive_ones(null, n, p):
    X = rows_of(n, p, 1)
    found = rank.parallel_analysis(PCA(), X, null=null, n_draws=200, quantile=0.5, random_state=1)
    rng, spectra = np.random.default_rng(1), []
    for _ in range(200):
        Z = rng.permuted(X, axis=0) if null == "permutation" else rng.standard_normal((n, p)) * X.std(axis=0, ddof=1)
        spectra.append(all_eigenvalues(Z)[: min(n - 1, p)])
    middle, error = np.median(spectra, axis=0), np.std(spectra, axis=0) / math.sqrt(200)
    assert np.all(np.abs(found.thresholds - middle) < 8 * error + 1e-9)
