"""Maximisation steps of the 14 models: against mclust, and against every nearby mixture of the same model."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.datasets import load_iris

import gramian
from gramian.mixture.em import Maximiser, fit_mixture
from gramian.mixture.errors import Chart
from gramian.mixture.models import (
    MODELS,
    expected_log_likelihood,
    maximise_covariances,
    maximise_together,
    resolve_model,
)
from gramian.mixture.parameters import Constraints, Mixture, Prior, SufficientStatistics
from gramian.mixture.rows import MixtureRows
from oracles import Array

MCLUST = json.loads((Path(__file__).parents[1] / "data" / "mclust.json").read_text("utf-8"))
X, SPECIES = load_iris(return_X_y=True)
OWN = np.eye(3)[SPECIES]
SHARES = 0.8 * OWN + 0.15 * OWN[:, [2, 0, 1]] + 0.05 * OWN[:, [1, 2, 0]]
IRIS = MixtureRows.of(gramian.open(X))
DIAGONAL = MODELS[:6]


def scatter_matrices(k: int, d: int, seed: int, diagonal: bool) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    N = rng.uniform(1, 50, k)
    roots = rng.normal(size=(k, d + 2, d)) * np.exp(rng.normal(size=(k, 1, d)))
    T = N[:, None, None] * (roots.transpose(0, 2, 1) @ roots)
    return N, np.diagonal(T, axis1=1, axis2=2).copy() if diagonal else T


@pytest.mark.parametrize("model", MODELS)
def test_one_step_is_mclusts(model):
    stats = IRIS.assign(SHARES, 3, model)
    found = Maximiser(model)(stats)
    theirs = np.array(MCLUST["single"][model]["covariances"])
    assert_allclose(found.means, MCLUST["single"][model]["means"], rtol=1e-12)
    if model == "VVE":  # mclust ends in a lower maximum over the axes
        T = stats.shift(stats.centres).second
        height = expected_log_likelihood(found.covariances, stats.counts, T)
        assert height > expected_log_likelihood(theirs, stats.counts, T)
    else:  # mclust's iterations for VEE and EVE end a little early
        assert_allclose(found.matrices, theirs, rtol=2e-6 if model in ("VEE", "EVE") else 1e-11, atol=1e-11)


@pytest.mark.parametrize("model", MODELS)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), d=st.integers(1, 4))
def test_no_mixture_of_the_model_nearby_does_better(model, seed, k, d):
    N, T = scatter_matrices(k, d, seed, model in DIAGONAL)
    found = maximise_covariances(model, N, T)
    chart = Chart(Mixture.of(np.full(k, 1 / k), np.zeros((k, d)), found, model))
    best = expected_log_likelihood(found, N, T)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1):
        v = size * rng.normal(size=chart.size)
        v[: k - 1 + k * d] = 0.0
        assert expected_log_likelihood(chart.mixture(v).covariances, N, T) <= best + 1e-12 * abs(best)


@pytest.mark.parametrize("model", MODELS)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), d=st.integers(1, 4))
def test_a_step_from_anywhere_in_the_model_does_not_lower_q(model, seed, k, d):
    N, T = scatter_matrices(k, d, seed, model in DIAGONAL)
    start = maximise_covariances(model, *scatter_matrices(k, d, seed + 1, model in DIAGONAL))
    before = expected_log_likelihood(start, N, T)
    after = expected_log_likelihood(maximise_covariances(model, N, T, start), N, T)
    assert after >= before - 1e-11 * abs(before)


@pytest.mark.parametrize("model", MODELS)
def test_one_component_is_the_normal_distribution_of_its_model(model):
    found = Maximiser(model)(IRIS.assign(np.zeros(len(X), int), 1, model))
    S = np.cov(X.T, bias=True)
    by_letters = {"II": np.eye(4) * np.trace(S) / 4, "EI": np.diag(np.diag(S)), "VI": np.diag(np.diag(S))}
    assert_allclose(found.matrices[0], by_letters.get(model[1:], S), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", ["VII", "VVI", "EEE", "VVV"])
def test_prior_is_mclusts(model):
    # mclust 6.0.0 counts the means' part of the prior differently in EII and does not shrink means in EEI.
    theirs = MCLUST["prior"][model]
    step = Maximiser(model, Prior.conjugate(np.cov(X.T), X.mean(axis=0), model, 3))
    found = step(IRIS.assign(SHARES, 3, model))
    assert_allclose(found.means, theirs["means"], rtol=1e-11)
    assert_allclose(found.matrices, theirs["covariances"], rtol=1e-10, atol=1e-11)
    fit = fit_mixture(IRIS, step(IRIS.assign(SPECIES, 3, model)), step, tol=1e-8)
    assert_allclose(fit.log_likelihood, theirs["log_likelihood"], atol=1e-6)
    assert_allclose(fit.mixture.means, theirs["fitted_means"], atol=1e-6)


@pytest.mark.parametrize("model", ["E", "V"])
@pytest.mark.parametrize("prior", [False, True])
def test_one_column_is_mclusts(model, prior):
    y, letters = X[:, 2:3], resolve_model(model, 1)
    theirs = MCLUST["univariate_prior" if prior else "univariate"][model]
    known = Prior.conjugate(np.cov(y.T).reshape(1, 1), y.mean(axis=0), letters, 3) if prior else None
    found = Maximiser(model, known)(MixtureRows.of(gramian.open(y)).assign(SHARES, 3, letters))
    assert_allclose(found.means[:, 0], theirs["means"], rtol=1e-11)
    assert_allclose(found.covariances[:, 0], theirs["variances"], rtol=1e-11)


@pytest.mark.parametrize("model", ["EII", "VII", "EEI", "VVI", "EEE", "VVV"])
def test_a_step_with_the_prior_maximises_likelihood_times_prior(model):
    step = Maximiser(model, Prior.conjugate(np.cov(X.T), X.mean(axis=0), model, 3))
    stats = IRIS.assign(SHARES, 3, model)
    found = step(stats)
    chart = Chart(found)

    def height(v: Array) -> float:
        at = chart.mixture(v)
        T = stats.shift(at.centres).second
        return expected_log_likelihood(at.covariances, stats.counts, T) + step.log_prior(at)

    weights = found.n_components - 1
    for a in range(weights, chart.size):
        unit = 1e-4 * (np.arange(chart.size) == a)
        slope = (height(unit) - height(-unit)) / 2e-4
        assert abs(slope) < 1e-4


def test_the_floor_is_without_units_and_weight():
    prior = Prior.floor(IRIS)
    assert_allclose(Prior.floor(MixtureRows.of(gramian.open(1e8 * X))).scale, 1e16 * prior.scale, rtol=1e-12)
    assert_allclose(Prior.floor(MixtureRows.of(gramian.open(X + 2.0**20))).scale, prior.scale, rtol=1e-8)
    with pytest.raises(ValueError, match="not EVE"):
        Prior.conjugate(np.cov(X.T), X.mean(axis=0), "EVE", 3)


class TestConstraints:
    """Held and shared parameters, against a general optimiser on the same expected log-likelihood."""

    stats: SufficientStatistics = IRIS.assign(SHARES, 3, "VVV")
    start: Mixture = Maximiser("VVV")(IRIS.assign(SPECIES, 3, "VVV"))

    def test_weights(self):
        N = self.stats.counts
        fixed = Constraints(fixed_weights=np.array([True, False, False]), tied_weights=np.array([0, 1, 1]))
        found = fixed.weights(N, self.start)
        assert_allclose(found, [1 / 3, 1 / 3, 1 / 3])
        tied = Constraints(tied_weights=np.array([0, 0, 1])).weights(N, self.start)
        best = minimize(
            lambda p: -(N[0] + N[1]) * np.log(p[0]) - N[2] * np.log(1 - 2 * p[0]), [0.3], method="Nelder-Mead"
        )
        assert_allclose(tied, [best.x[0], best.x[0], 1 - 2 * best.x[0]], atol=1e-4)

    def test_means(self):
        held = np.zeros((3, 4), bool)
        held[0, 1] = True
        labels = np.arange(3)[:, None] + np.zeros((3, 4), int)
        labels[:, 2] = 7
        rules = Constraints(fixed_means=held, tied_means=labels)
        N, centres = self.stats.counts, self.stats.centres
        found = rules.means(N, centres, self.start)
        P = np.linalg.inv(self.start.covariances)
        slope = N[:, None] * np.einsum("kij,kj->ki", P, found - centres)  # free entries: 0; shared ones: their sum
        assert found[0, 1] == self.start.centres[0, 1]
        assert np.ptp(found[:, 2]) < 1e-12
        assert abs(slope[:, 2].sum()) < 1e-8
        assert_allclose(slope[1:, [0, 1, 3]], 0.0, atol=1e-8)
        assert_allclose(slope[0, [0, 3]], 0.0, atol=1e-8)
        assert rules.free_parameters(self.start) == 2 + (11 - 2) + 30

    def test_covariances(self):
        rules = Constraints(fixed_covariances=np.array([True, False, False]), tied_covariances=np.array([0, 1, 1]))
        found = Maximiser("VVV", None, rules)(self.stats, self.start)
        T, N = self.stats.shift(self.stats.centres).second, self.stats.counts
        assert_allclose(found.covariances[0], self.start.covariances[0], rtol=1e-12)
        assert_allclose(found.covariances[1], (T[1] + T[2]) / (N[1] + N[2]), rtol=1e-12)
        assert_allclose(found.covariances[1], found.covariances[2], rtol=1e-14)
        assert rules.free_parameters(self.start) == 2 + 12 + 10

    def test_fits_keep_them_and_climb(self):
        held = np.zeros((3, 4), bool)
        held[0] = True
        rules = Constraints(fixed_means=held, tied_weights=np.zeros(3, int))
        fit = fit_mixture(IRIS, self.start, Maximiser("VVV", Prior.floor(IRIS), rules))
        assert fit.optimum.converged
        assert (np.diff(fit.optimum.objective) <= 1e-12 * abs(fit.optimum.objective[0])).all()
        assert_allclose(fit.mixture.means[0], self.start.means[0], rtol=1e-12)
        assert_allclose(fit.mixture.weights, 1 / 3)

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(ValueError, match=r"fixed_means.*\(3, 4\)"):
            Constraints(fixed_means=np.zeros(3, bool)).check(self.start)
        rules = Constraints(fixed_covariances=np.array([True, False, False]))
        tied = Maximiser("EEE")(self.stats)
        with pytest.raises(ValueError, match="another"):
            fit_mixture(IRIS, tied, Maximiser("EEE", None, rules))


@pytest.mark.parametrize("model", ["EVE", "VVE"])
@pytest.mark.parametrize("d", [7, 20, 40])
def test_common_axes_are_found_in_many_columns(model, d):
    """Scatter with axes in common: the covariances are those of Celeux and Govaert in these axes, in closed form."""
    rng = np.random.default_rng(d)
    Q, N, v = np.linalg.qr(rng.normal(size=(d, d)))[0], np.array([20.0, 50.0]), np.exp(rng.normal(size=(2, d)))
    T = N[:, None, None] * ((Q * v[:, None, :]) @ Q.T)
    if model == "EVE":
        sizes = np.exp(np.log(N[:, None] * v).mean(axis=1))
        v = N[:, None] * v * (sizes.sum() / N.sum() / sizes)[:, None]
    expected = (Q * v[:, None, :]) @ Q.T
    if d <= 20:  # of more axes a step turns them part of the way
        assert_allclose(maximise_covariances(model, N, T), expected, rtol=1e-8, atol=1e-9)
    start = maximise_covariances(model, *scatter_matrices(2, d, 0, diagonal=False))
    for _ in range(30):
        start = maximise_covariances(model, N, T, start)
    assert_allclose(start, expected, rtol=1e-6, atol=1e-7)


def test_constraints_take_plain_lists_and_name_what_is_wrong():
    rules = Constraints(fixed_weights=[True, False], tied_means=[[0, 1], [0, 2]], fixed_covariances=[1, 0])
    assert rules.fixed_weights.dtype == rules.fixed_covariances.dtype == bool
    assert rules.tied_means.dtype == np.intp
    with pytest.raises(ValueError, match="fixed_means"):
        Constraints(fixed_means=[["a", "b"]])
    with pytest.raises(ValueError, match="tied_weights"):
        Constraints(tied_weights=[0.5, 1.0])
    with pytest.raises(ValueError, match="tied_means"):
        Constraints(tied_means=[[0], [0, 1]])


@pytest.mark.parametrize("model", MODELS)
def test_several_mixtures_at_once_are_each_as_alone(model):
    for k, d in ((2, 2), (3, 5), (4, 3), (1, 4)):
        N, T, now = [], [], []
        for seed in range(7):
            n, t = scatter_matrices(k, d, seed, model in DIAGONAL)
            N.append(n)
            T.append(t)
            other = scatter_matrices(k, d, seed + 50 if seed % 2 else seed, model in DIAGONAL)
            now.append(maximise_covariances(model, *other))
        both = maximise_together(model, np.stack(N), np.stack(T), np.stack(now))
        for one, n, t, at in zip(both, N, T, now, strict=True):
            alone = maximise_covariances(model, n, t, at)
            assert_allclose(one, alone, rtol=0, atol=1e-12 * np.abs(alone).max())
