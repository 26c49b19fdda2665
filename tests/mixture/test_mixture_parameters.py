"""Mixture, Chart and regression: against scipy's densities, scikit-learn, integrals, and mclust's counts."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from gramian.mixture.errors import Chart
from gramian.mixture.models import MODELS, resolve_model
from gramian.mixture.parameters import Mixture, free_parameters, regress
from oracles import Array

MCLUST = json.loads((Path(__file__).parents[1] / "data" / "mclust.json").read_text("utf-8"))


def random_mixture(model: str, k: int, d: int, seed: int = 0) -> Mixture:
    """A mixture that obeys its model: volumes, shapes and axes drawn, and shared as its letters say."""
    rng = np.random.default_rng(seed)

    def drawn(letter: str, draw):
        each = [draw() for _ in range(k)]
        return [each[0]] * k if letter == "E" else each

    volumes = drawn(model[0], lambda: np.exp(rng.normal()))
    shapes = drawn(model[1], lambda: np.zeros(d) if model[1] == "I" else np.sort(rng.normal(size=d)))
    axes = drawn(model[2], lambda: np.eye(d) if model[2] == "I" else np.linalg.qr(rng.normal(size=(d, d)))[0])
    spread = [v * (Q * np.exp(s - s.mean())) @ Q.T for v, s, Q in zip(volumes, shapes, axes, strict=True)]
    return Mixture.of(rng.dirichlet(np.full(k, 3.0)), 3 * rng.normal(size=(k, d)), np.stack(spread), model)


def scipy_density(mixture: Mixture, X: Array) -> Array:
    parts = zip(mixture.weights, mixture.means, mixture.matrices, strict=True)
    return np.sum([w * multivariate_normal.pdf(X, m, S) for w, m, S in parts], axis=0)


@pytest.mark.parametrize("model", MODELS)
def test_density_is_scipys(model):
    mixture = random_mixture(model, 3, 3)
    X = np.random.default_rng(1).normal(size=(40, 3)) * 3
    assert_allclose(np.exp(mixture.log_density(X)), scipy_density(mixture, X), rtol=1e-11)
    each = mixture.component_log_density(X)
    assert_allclose(each[:, 1], multivariate_normal.logpdf(X, mixture.means[1], mixture.matrices[1]), rtol=1e-11)


def test_responsibilities_are_scikit_learns():
    mixture = random_mixture("VVV", 3, 2)
    theirs = GaussianMixture(3)
    theirs.weights_, theirs.means_, theirs.covariances_ = mixture.weights, mixture.means, mixture.covariances
    theirs.precisions_cholesky_ = np.stack([np.linalg.cholesky(np.linalg.inv(S)) for S in mixture.covariances])
    X = np.random.default_rng(1).normal(size=(40, 2)) * 3
    assert_allclose(mixture.responsibilities(X), theirs.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert_allclose(mixture.log_likelihood(X, np.full(40, 2.0)), 2 * theirs.score_samples(X).sum(), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_free_parameters_are_counted_as_mclust_counts_them(model):
    assert free_parameters(model, 3, 4) == MCLUST["single"][model]["parameters"]
    assert Chart(random_mixture(model, 3, 4)).size == MCLUST["single"][model]["parameters"]


@pytest.mark.parametrize("model", ["VVV", "VVI", "EII"])
def test_a_sample_has_the_moments_of_the_mixture(model):
    mixture = random_mixture(model, 3, 2)
    X, labels = mixture.sample(200_000, np.random.default_rng(0))
    mean = mixture.weights @ mixture.means
    away = mixture.means - mean
    covariance = np.einsum("k,kij->ij", mixture.weights, mixture.matrices + away[:, :, None] * away[:, None, :])
    assert_allclose(X.mean(axis=0), mean, atol=5 * np.sqrt(np.max(np.diag(covariance)) / len(X)))
    assert_allclose(np.cov(X.T), covariance, rtol=0.03, atol=0.03)
    assert_allclose(np.bincount(labels) / len(X), mixture.weights, atol=0.01)


@pytest.mark.parametrize("model", ["VVV", "EEE", "EVE", "VVI", "VII"])
def test_marginal_times_conditional_is_joint(model):
    mixture = random_mixture(model, 3, 3)
    x = np.array([0.3, -1.0, 2.0])
    marginal = mixture.marginal([1]).log_density(x[None, [1]])[0]
    conditional = mixture.conditional([1], [x[1]]).log_density(x[None, [0, 2]])[0]
    assert_allclose(marginal + conditional, mixture.log_density(x[None])[0], rtol=1e-12)


def test_regression_is_the_integral_of_the_conditional_density():
    mixture = random_mixture("VVV", 2, 2, seed=5)
    mean, covariance = regress(mixture, [0], [[0.5]])
    y = np.linspace(-40, 40, 200_001)
    density = scipy_density(mixture, np.column_stack([np.full(len(y), 0.5), y]))
    first = np.sum(density * y) / np.sum(density)
    assert_allclose(mean[0, 0], first, rtol=1e-10)
    assert_allclose(covariance[0, 0, 0], np.sum(density * (y - first) ** 2) / np.sum(density), rtol=1e-10)


@given(seed=st.integers(0, 10**6), power=st.integers(-8, 8), model=st.sampled_from(MODELS))
def test_other_units_change_densities_by_a_constant(seed, power, model):
    rng = np.random.default_rng(seed)
    mixture, s = random_mixture(model, 2, 3, seed), 10.0**power
    Q, shift, X = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3), rng.normal(size=(5, 3))
    moved = mixture.transform(s, shift, Q)
    assert_allclose(
        moved.log_density(s * X @ Q.T + shift), mixture.log_density(X) - 3 * np.log(s), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("model", MODELS)
def test_every_point_of_a_chart_obeys_the_model(model):
    chart = Chart(random_mixture(model, 3, 3))
    v = 0.05 * np.random.default_rng(2).normal(size=chart.size)
    S = chart.mixture(v).matrices
    volumes = np.linalg.det(S) ** (1 / 3)
    values = np.linalg.eigvalsh(S) / volumes[:, None]
    assert (np.ptp(volumes) < 1e-12 * volumes[0]) == (model[0] == "E")
    assert (np.ptp(values, axis=0).max() < 1e-9) == (model[1] in "EI")
    commute = np.max(np.abs(S[0] @ S[1] - S[1] @ S[0])) < 1e-9 * np.max(S) ** 2
    assert commute == (model[2] in "EI")
    assert_allclose(chart.mixture(np.zeros(chart.size)).matrices, chart.base.matrices, rtol=1e-10, atol=1e-12)


def test_far_data_keep_their_digits_by_the_origin():
    near = random_mixture("VVV", 2, 2)
    X = np.round(np.random.default_rng(0).normal(size=(9, 2)) * 64) / 64
    far = Mixture(near.weights, near.centres, near.covariances, "VVV", np.full(2, 2.0**27))
    assert_allclose(far.log_density(X + 2.0**27), near.log_density(X), rtol=1e-14)
    assert_allclose(near.shift_origin(np.ones(2)).log_density(X), near.log_density(X), rtol=1e-12)


def test_names():
    assert [resolve_model(m, 2) for m in ("full", "tied", "diag", "spherical")] == ["VVV", "EEE", "VVI", "VII"]
    assert repr(random_mixture("VVV", 1, 2)) == "Mixture(VVV, 1 component, 2 columns): weights 1"
    assert random_mixture("VVV", 3, 2).reorder([2, 1, 0]).weights[0] == random_mixture("VVV", 3, 2).weights[2]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([0.5, 0.6], [[0.0], [1.0]], [1.0, 1.0], "V"), "sum to 1"),
        (([0.5, 0.5], [[0.0], [1.0]], [1.0, -1.0], "V"), "Component 2"),
        (([1.0], [[0.0, 1.0]], [[[1.0, 2.0], [2.0, 1.0]]], "VVV"), "component 1 is not positive definite"),
        (([1.0], [[0.0, np.nan]], [np.eye(2)], "VVV"), "finite"),
        (([1.0], [[0.0, 1.0]], [np.eye(3)], "VVV"), "do not fit"),
        (([1.0], [[0.0, 1.0]], [1.0], "V"), "for one column"),
        (([1.0], [[0.0, 1.0]], [1.0], "XYZ"), "no covariance model 'XYZ'"),
    ],
)
def test_what_is_not_a_mixture_is_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        Mixture.of(*arguments)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="2 columns"):
        random_mixture("VVV", 2, 2).log_density(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="free parameters"):
        Chart(random_mixture("VVV", 2, 2)).mixture([0.0])
    with pytest.raises(ValueError, match="1 values"):
        regress(random_mixture("VVV", 2, 2), [0], [[0.0, 1.0]])
