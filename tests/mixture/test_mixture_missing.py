"""Rows with missing cells: against densities of every row's observed cells, and sums over what is missing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

import gramian
from gramian.mixture import missing
from gramian.mixture.em import Maximiser, fit_mixture
from gramian.mixture.parameters import Mixture, Prior, SufficientStatistics
from gramian.mixture.rows import MixtureRows
from oracles import Array

X, SPECIES = load_iris(return_X_y=True)


def gaps(data: Array, share: float, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    lost = rng.random(data.shape) < share
    lost[np.arange(len(data)), rng.integers(0, data.shape[1], len(data))] = False  # every row keeps a cell
    return np.where(lost, np.nan, data)


def start_of(model: str) -> Mixture:
    return Maximiser(model)(MixtureRows.of(gramian.open(X)).assign(SPECIES, 3, model))


def naive(data: Array, w: Array, mixture: Mixture) -> tuple[Array, Array, Array, float]:
    """Row by row: densities of observed cells, conditional means and covariances of the others."""
    k, d = mixture.centres.shape
    N, first, second, height = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)), 0.0
    for x, weight in zip(data, w, strict=True):
        o, u = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        density, moments = np.zeros(k), []
        for j in range(k):
            m, S = mixture.means[j], mixture.matrices[j]
            density[j] = mixture.weights[j] * multivariate_normal.pdf(x[o], m[o], S[np.ix_(o, o)])
            B = S[np.ix_(u, o)] @ np.linalg.inv(S[np.ix_(o, o)])
            e, C = np.where(np.isnan(x), 0.0, x - m), np.zeros((d, d))
            e[u] = B @ (x[o] - m[o])
            C[np.ix_(u, u)] = S[np.ix_(u, u)] - B @ S[np.ix_(o, u)]
            moments.append((e, np.outer(e, e) + C))
        height += weight * np.log(density.sum())
        for j, (e, square) in enumerate(moments):
            r = weight * density[j] / density.sum()
            N[j] += r
            first[j] += r * e
            second[j] += r * square
    return N, first, second, height


def assert_statistics(found: SufficientStatistics, expected: tuple[Array, Array, Array, float]) -> None:
    N, first, second, height = expected
    assert_allclose(found.counts, N, rtol=1e-10)
    assert_allclose(found.first, first, rtol=1e-8, atol=1e-9)
    diagonal = np.diagonal(second, axis1=1, axis2=2)
    assert_allclose(found.second, diagonal if found.diagonal else second, rtol=1e-8, atol=1e-9)
    assert_allclose(found.log_likelihood, height, rtol=1e-11)


@pytest.mark.parametrize("model", ["VVV", "EEE", "VVE", "VVI", "EII"])
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 0.8))
def test_statistics_are_those_of_the_naive_twin(model, seed, share):
    data = gaps(X, share, seed)[::5]
    w = np.random.default_rng(seed).integers(0, 3, len(data)).astype(float)
    w[:3] = 1.0
    mixture = start_of(model)
    found = MixtureRows.of(gramian.open(data), w).expect(mixture)
    assert_statistics(found, naive(data, w, mixture))


def test_densities_are_of_the_observed_cells():
    mixture, data = start_of("VVV"), gaps(X, 0.4, 3)
    assert_allclose(mixture.log_density(data).sum(), naive(data, np.ones(150), mixture)[3], rtol=1e-12)
    assert_allclose(mixture.responsibilities(data).sum(axis=1), 1.0)


@pytest.mark.parametrize("model", ["VVV", "EEE", "EVE", "VEV", "VVI", "VEI"])
def test_fits_climb_and_come_near_the_complete_ones(model):
    data = MixtureRows.of(gramian.open(gaps(X, 0.1, 0)))
    assert data.incomplete
    fit = fit_mixture(data, start_of(model))
    trace = fit.optimum.objective
    assert fit.optimum.converged
    assert (np.diff(trace) <= 1e-12 * abs(trace[0])).all()
    whole = fit_mixture(MixtureRows.of(gramian.open(X)), start_of(model)).mixture
    assert_allclose(fit.mixture.means, whole.means, atol=0.35)


def test_one_normal_with_a_monotone_gap_has_a_closed_form():
    # Anderson (1957): regress the column with gaps on the complete one, and put the parts together.
    data = X[:, :2].copy()
    data[100:, 1] = np.nan
    fit = fit_mixture(MixtureRows.of(gramian.open(data)), Mixture.of([1.0], [[5.0, 3.0]], [np.eye(2)]), tol=1e-9)
    x, y = data[:100, 0], data[:100, 1]
    slope = np.cov(x, y, bias=True)[0, 1] / np.var(x)
    mean_y = y.mean() + slope * (data[:, 0].mean() - x.mean())
    var_y = np.var(y) - slope**2 * np.var(x) + slope**2 * np.var(data[:, 0])
    assert_allclose(fit.mixture.means[0], [data[:, 0].mean(), mean_y], rtol=1e-8)
    expected = [[np.var(data[:, 0]), slope * np.var(data[:, 0])], [slope * np.var(data[:, 0]), var_y]]
    assert_allclose(fit.mixture.covariances[0], expected, rtol=1e-7)


def test_a_row_with_nothing_or_infinity_is_named():
    data = X.copy()
    data[7] = np.nan
    with pytest.raises(ValueError, match="Row 8"):
        MixtureRows.of(gramian.open(data))
    data[7] = np.inf
    with pytest.raises(ValueError, match="row 8, column 1"):
        MixtureRows.of(gramian.open(data))
    w = np.ones(150)
    w[7] = 0.0
    kept = np.arange(150) != 7
    mixture = start_of("VVV")
    assert_allclose(
        MixtureRows.of(gramian.open(data), w).expect(mixture).log_likelihood,
        MixtureRows.of(gramian.open(X[kept])).expect(mixture).log_likelihood,
        rtol=1e-12,
    )


def test_a_start_from_labels_takes_gaps_for_means():
    data = MixtureRows.of(gramian.open(gaps(X, 0.1, 0)))
    filled = np.where(np.isnan(gaps(X, 0.1, 0)), data.origin, X)
    here, there = data.assign(SPECIES, 3, "VVV"), MixtureRows.of(gramian.open(filled)).assign(SPECIES, 3, "VVV")
    step = Maximiser("VVV", Prior.floor(data))
    assert_allclose(step(here).means, step(there).means, rtol=1e-12)


@pytest.mark.parametrize("chunk", [1, 2**21])
def test_all_patterns_at_once_are_one_after_the_other(monkeypatch, chunk):
    rng = np.random.default_rng(3)
    D = gaps(rng.normal(size=(60, 7)) @ rng.normal(size=(7, 7)), 0.4, 1)
    D = np.concatenate([D, D[:20]])  # patterns of one row and of two
    rows = MixtureRows.of(gramian.open(D))
    spread = np.cov(rng.normal(size=(2, 7, 40)).reshape(14, 40))
    mixture = Mixture.of([0.4, 0.6], rng.normal(size=(2, 7)), [spread[:7, :7], spread[7:, 7:]], origin=rows.origin)
    monkeypatch.setattr(missing, "CHUNK", chunk)
    found, density = rows.expect(mixture), mixture.log_density(D)
    monkeypatch.setattr(missing, "MOST_INFLATION", 0.0)
    careful = rows.expect(mixture)
    for name in ("counts", "first", "second", "log_likelihood"):
        assert_allclose(getattr(found, name), getattr(careful, name), rtol=1e-10, atol=1e-10)
    assert_allclose(density, mixture.log_density(D), rtol=1e-11)
