"""Numbers in print, and those of R's mclust: crabs, geysers, galaxies, diabetes, irises."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from gramian.mixture.binned import Bins
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.starts import by_agglomeration, half_whiten

FOLDER = Path(__file__).resolve().parents[1] / "data"
DATA = json.loads((FOLDER / "mixtures.json").read_text("utf-8"))
MCLUST = json.loads((FOLDER / "mclust_grid.json").read_text("utf-8"))
EDGES = np.concatenate([[-np.inf], 0.5835 + 0.004 * np.arange(28), [np.inf]])
FAITHFUL, DIABETES = np.array(DATA["faithful"]), np.array(DATA["diabetes"])
GALAXIES = np.array(DATA["galaxies"])[:, None] / 1000


@pytest.fixture(scope="module")
def crabs():
    return GaussianMixture(2, covariance_type="V").fit_binned(EDGES, DATA["crabs"])


def by_mean(model):
    order = np.argsort(model.means_[:, 0])
    return order, model.weights_[order], model.means_[order, 0], np.sqrt(model.covariances_.ravel()[order])


def test_pearsons_crabs_by_the_likelihood_of_their_classes(crabs):
    _, weights, means, deviations = by_mean(crabs)
    assert crabs.certificate_.converged
    assert crabs.log_likelihood_ == pytest.approx(-2952.6959, abs=5e-5)
    np.testing.assert_allclose(weights, [0.45276, 0.54724], atol=5e-5)
    np.testing.assert_allclose(means, [0.632616, 0.654687], atol=2e-6)
    np.testing.assert_allclose(deviations, [0.018619, 0.012483], atol=2e-6)


def test_pearsons_crabs_standard_errors_and_goodness_of_fit(crabs):
    bins, (order, *_) = Bins.of(EDGES, DATA["crabs"]), by_mean(crabs)
    errors = crabs.standard_errors(bins)
    assert errors.weights[0] == pytest.approx(0.162, abs=5e-4)
    np.testing.assert_allclose(errors.means[order, 0], [0.0062, 0.0018], atol=5e-5)
    np.testing.assert_allclose(errors.deviations[order, 0], [0.0019, 0.0012], atol=5e-5)
    fit = crabs.goodness(bins)
    assert (fit.deviance, fit.chi2) == (pytest.approx(22.11, abs=5e-3), pytest.approx(20.50, abs=5e-3))
    assert fit.degrees == 23


def test_one_normal_is_a_worse_account_of_the_crabs(crabs):
    one = GaussianMixture(1, covariance_type="V").fit_binned(EDGES, DATA["crabs"])
    assert one.means_[0, 0] == pytest.approx(0.644697, abs=1e-6)
    assert np.sqrt(one.covariances_[0, 0, 0]) == pytest.approx(0.019054, abs=1e-6)
    assert one.log_likelihood_ == pytest.approx(-2979.0593, abs=5e-5)
    assert 2 * (crabs.log_likelihood_ - one.log_likelihood_) == pytest.approx(52.73, abs=5e-3)


def test_crabs_at_the_midpoints_of_their_classes_are_another_answer():
    middles = 0.5815 + 0.004 * np.arange(29)
    _, weights, means, deviations = by_mean(
        GaussianMixture(2, covariance_type="V", tol=1e-7).fit(middles[:, None], sample_weight=DATA["crabs"])
    )
    np.testing.assert_allclose(weights, [0.43275, 0.56725], atol=2e-5)
    np.testing.assert_allclose(means, [0.631741, 0.654579], atol=2e-6)
    np.testing.assert_allclose(deviations, [0.018311, 0.012619], atol=2e-6)


@pytest.mark.parametrize(
    ("X", "model", "k", "height", "bic"),
    [
        (FAITHFUL, "EEE", 3, -1126.3159, 2314.2957),
        (GALAXIES, "V", 3, -203.1792, 441.6122),
        (DIABETES, "VVV", 3, -2295.0935, 4734.5122),
        (load_iris().data, "VVV", 2, None, 574.0178),
        (load_iris().data, "VVV", 3, None, 580.8389),
    ],
    ids=["faithful", "galaxies", "diabetes", "iris 2", "iris 3"],
)
def test_published_log_likelihoods_are_reached(X, model, k, height, bic):
    found = GaussianMixture(k, covariance_type=model, init_params="hierarchical", n_init=3).fit(X)
    assert found.certificate_.converged
    assert found.bic(X) == pytest.approx(bic, abs=1e-4)
    if height is not None:
        assert found.log_likelihood_ == pytest.approx(height, abs=5e-5)


def test_waiting_times_of_old_faithful():
    """The two normals that mixtools' documentation shows."""
    _, weights, means, _ = by_mean(GaussianMixture(2).fit(FAITHFUL[:, 1:]))
    np.testing.assert_allclose(weights, [0.3609, 0.6391], atol=5e-5)
    np.testing.assert_allclose(means, [54.615, 80.091], atol=5e-4)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_fourteen_models_are_at_least_as_likely_as_mclusts(k):
    X = load_iris().data
    for fit in [fit for fit in MCLUST["iris"]["fits"] if fit["k"] == k]:
        ours = GaussianMixture(k, covariance_type=fit["model"], init_params="hierarchical").fit(X)
        assert ours.n_parameters_ == fit["df"]
        assert ours.log_likelihood_ > fit["loglik"] - 1e-4, fit["model"]
        if abs(ours.log_likelihood_ - fit["loglik"]) < 1e-4:
            assert ours.bic(X) == pytest.approx(-fit["bic"], abs=3e-4)
            assert ours.icl(X) == pytest.approx(-fit["icl"], abs=2e-2)  # moves with the classes, not only with ℓ


def test_the_hierarchy_is_mclusts():
    X = load_iris().data
    labels = by_agglomeration(half_whiten(X, np.ones(150)), np.ones(150), 3, spheres=False)
    assert adjusted_rand_score(MCLUST["iris"]["hclass3"], labels) == 1.0


# mclust's EII and EEI do not agree with its own M-steps (mstep) by some tenths of a percent
@pytest.mark.parametrize("model", ["VII", "VVI", "EEE", "VVV"])
def test_the_conjugate_prior_is_mclusts(model):
    fit = next(fit for fit in MCLUST["faithful_prior"] if fit["model"] == model)
    ours = GaussianMixture(2, covariance_type=model, prior="conjugate").fit(FAITHFUL)
    order = np.argsort(-ours.weights_) if fit["pro"][0] > 0.5 else np.argsort(ours.weights_)
    np.testing.assert_allclose(ours.weights_[order], fit["pro"], rtol=1e-5)
    np.testing.assert_allclose(ours.means_[order].ravel(), fit["mean"], rtol=1e-5)
    sigma = np.array(fit["sigma"]).reshape(2, 2, 2)
    np.testing.assert_allclose(ours.covariances_[order], sigma, rtol=1e-4, atol=1e-6)
    assert ours.log_likelihood_ == pytest.approx(fit["loglik"], abs=1e-3)
