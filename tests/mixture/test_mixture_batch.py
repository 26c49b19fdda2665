"""Starts that climb together against the same starts one by one, and against the optimum by another method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.datasets import load_iris

import gramian
from gramian import GaussianMixture
from gramian.mixture import Maximiser, Mixture, MixtureRows, fit_mixture
from gramian.mixture.models import MODELS

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 1, (60, 2)), RNG.normal(2.5, 0.6, (90, 2)) @ [[1.0, 0.4], [0.0, 1.0]]])


def starts_of(data, model, count=3, k=3):
    rng = np.random.default_rng(1)
    n = data.source.shape[0]
    return [Maximiser(model)(data.assign(rng.permutation(np.arange(n) % k), k, model)) for _ in range(count)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_starts_that_climb_together_end_at_optima_of_the_careful_ascent(model, weighted):
    w = np.random.default_rng(2).integers(1, 4, len(X)).astype(float) if weighted else None
    data = MixtureRows.of(gramian.open(X), w)
    for climb in data.climb(starts_of(data, model), 1e-6, 3000):
        assert (np.diff(climb.heights) >= -1e-9).all()
        if climb.slope > 1e-6:  # left to the careful ascent, which goes on from there
            continue
        again = fit_mixture(data, climb.mixture, tol=1e-6, max_iter=0)
        assert again.optimum.gradient == pytest.approx(climb.slope, rel=1.0, abs=1e-7)
        assert again.log_likelihood == pytest.approx(climb.height, rel=1e-12)
        assert climb.mixture.weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_one_start_climbs_as_it_does_among_others():
    data = MixtureRows.of(gramian.open(X))
    starts = starts_of(data, "VVV", 4)
    together = data.climb(starts, 1e-8, 2000)
    for start, among in zip(starts, together, strict=True):
        (alone,) = data.climb([start], 1e-8, 2000)
        assert alone.height == pytest.approx(among.height, abs=1e-6)


def test_the_optimum_is_that_of_a_general_optimiser():
    model = GaussianMixture(2, covariance_type="spherical", tol=1e-9).fit(X)

    def objective(theta):
        share = 1 / (1 + np.exp(-theta[0]))
        mix = Mixture.of([share, 1 - share], theta[1:5].reshape(2, 2), np.exp(theta[5:]), "VII")
        return -mix.log_likelihood(X)

    odds = np.log(model.weights_[0] / model.weights_[1])
    theta = np.concatenate([[odds], model.means_.ravel(), np.log(model.covariances_)])
    found = minimize(objective, theta + 0.05, method="BFGS", options={"gtol": 1e-6})
    assert -found.fun == pytest.approx(model.log_likelihood_, abs=1e-8)
    assert_allclose(found.x, theta, atol=1e-4)


def test_steps_never_lower_the_likelihood_and_the_last_looks_again():
    iris = load_iris().data
    model = GaussianMixture(3).fit(iris)
    assert (np.diff(model.lower_bounds_) >= -1e-12).all()
    assert model.certificate_.converged
    assert model.n_iter_ == model.certificate_.iterations <= model.max_iter
    assert model.certificate_.objective[-1] == pytest.approx(-model.log_likelihood_, rel=1e-13)


def test_a_start_too_narrow_for_kept_sums_is_left_where_it_was():
    data = MixtureRows.of(gramian.open(X))
    wide = starts_of(data, "VVV", 1)[0]
    narrow = Mixture(wide.weights, wide.centres, 1e-9 * wide.covariances, "VVV", wide.origin)
    left, right = data.climb([narrow, wide], 1e-6, 500)
    assert left.mixture is narrow
    assert left.passes == 0
    assert right.slope <= 1e-6
    assert fit_mixture(data, narrow).optimum.iterations > 0


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_no_more_steps_are_made_than_allowed(steps):
    data = MixtureRows.of(gramian.open(X))
    fit = fit_mixture(data, starts_of(data, "VVV", 1)[0], max_iter=steps)
    assert fit.optimum.iterations == steps
    assert not fit.optimum.converged
