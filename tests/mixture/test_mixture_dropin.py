"""GaussianMixture beside scikit-learn's: the same steps from the same start, the same densities, names and shapes."""

import inspect

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Theirs

from gramian.mixture.estimator import GaussianMixture

KINDS = ("full", "tied", "diag", "spherical")
PARAMETERS = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")


@pytest.fixture(scope="module")
def X():
    return load_iris().data


def start(X, kind):
    """A start in scikit-learn's shapes: three rows, even weights, the variances of the columns."""
    P = {
        "full": np.repeat(np.diag(1 / X.var(axis=0))[None], 3, axis=0),
        "tied": np.diag(1 / X.var(axis=0)),
        "diag": np.repeat(1 / X.var(axis=0)[None], 3, axis=0),
        "spherical": np.full(3, 1 / X.var(axis=0).mean()),
    }[kind]
    return {"weights_init": np.full(3, 1 / 3), "means_init": X[[0, 60, 120]], "precisions_init": P}


def both(X, kind, steps, **params):
    """Ours without acceleration and theirs, after so many steps; neither has converged, and both say so."""
    shared = {"covariance_type": kind, "max_iter": steps, "tol": 0.0, "reg_covar": 0.0, **start(X, kind), **params}
    with pytest.warns(ConvergenceWarning):
        ours = GaussianMixture(3, accelerate=False, **shared).fit(X)
    with pytest.warns(ConvergenceWarning):
        theirs = Theirs(3, **shared).fit(X)
    return ours, theirs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 7])
def test_so_many_steps_from_the_same_start_lead_to_the_same_place(X, kind, steps):
    ours, theirs = both(X, kind, steps)
    assert ours.n_iter_ == theirs.n_iter_ == steps
    for name in PARAMETERS:
        assert getattr(ours, name).shape == getattr(theirs, name).shape
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_densities_responsibilities_and_criteria_are_theirs(X, kind):
    ours, theirs = both(X, kind, 5)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-12)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-12)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_to_the_end_is_at_least_as_likely_as_theirs(X, kind):
    ours = GaussianMixture(3, covariance_type=kind).fit(X)
    theirs = Theirs(3, covariance_type=kind, tol=1e-9, max_iter=2000, random_state=0).fit(X)
    assert ours.converged_
    assert ours.score(X) > theirs.score(X) - 1e-6


def test_every_parameter_and_method_of_theirs_is_there(X):
    ours, theirs = (inspect.signature(cls).parameters for cls in (GaussianMixture, Theirs))
    assert set(theirs) <= set(ours)
    assert len(set(ours) - set(theirs)) <= 8
    model = GaussianMixture(2).fit(X)
    fitted = Theirs(2).fit(X)
    assert {name for name in vars(fitted) if name.endswith("_")} <= set(vars(model))
    public = {name for name in dir(fitted) if not name.startswith("_")}
    assert not {name for name in public if not hasattr(model, name)}


def test_a_number_regularises_as_theirs_where_components_do_not_differ_in_size(X):
    """With one component, or one covariance for all, the penalty adds what scikit-learn adds."""
    one = GaussianMixture(1, reg_covar=0.3).fit(X)
    np.testing.assert_allclose(one.covariances_, Theirs(1, reg_covar=0.3).fit(X).covariances_, rtol=1e-10)
    ours, theirs = both(X, "tied", 4, reg_covar=0.3)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-10)


def test_without_iterations_the_start_is_returned(X):
    model = GaussianMixture(3, max_iter=0, **start(X, "full")).fit(X)
    np.testing.assert_allclose(model.means_, X[[0, 60, 120]], rtol=1e-14)
    np.testing.assert_allclose(model.precisions_, start(X, "full")["precisions_init"], rtol=1e-12)
    assert model.n_iter_ == 0


def test_a_warm_start_goes_on_where_the_last_fit_ended(X):
    cold = GaussianMixture(3).fit(X)
    warm = GaussianMixture(3, warm_start=True, max_iter=3)
    with pytest.warns(ConvergenceWarning):
        warm.fit(X)
    warm.set_params(max_iter=1000).fit(X)
    assert warm.converged_
    assert warm.log_likelihood_ == pytest.approx(cold.log_likelihood_, rel=1e-10)
    assert warm.fit(X).n_iter_ == 0


def test_given_means_alone_decide_which_component_is_which(X):
    means = X[[120, 0, 60]]
    model = GaussianMixture(3, means_init=means).fit(X)
    nearest = np.argmin(((model.means_[:, None] - means[None]) ** 2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(nearest, [0, 1, 2])


def test_labels_of_fit_predict_are_those_of_predict(X):
    model = GaussianMixture(3)
    np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))


def test_attributes_that_are_set_by_hand_are_used(X):
    fitted = Theirs(3, random_state=0).fit(X)
    model = GaussianMixture(3)
    for name in PARAMETERS:
        setattr(model, name, getattr(fitted, name))
    model.n_features_in_ = 4
    np.testing.assert_allclose(model.score_samples(X), fitted.score_samples(X), rtol=1e-9)
    model = GaussianMixture(3).fit(X)
    model.means_ = model.means_ + 1.0
    np.testing.assert_allclose(model.score_samples(X + 1.0), GaussianMixture(3).fit(X).score_samples(X), rtol=1e-9)


def test_samples_have_the_moments_of_the_mixture(X):
    model = GaussianMixture(2, random_state=3).fit(X)
    rows, labels = model.sample(200_000)
    assert (np.diff(labels) >= 0).all()
    mean = model.weights_ @ model.means_
    away = model.means_ - mean
    covariance = np.einsum("k,kij->ij", model.weights_, model.covariances_ + away[:, :, None] * away[:, None, :])
    scale = np.sqrt(np.diag(covariance) / 200_000)
    assert (np.abs(rows.mean(axis=0) - mean) < 5 * scale).all()
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.03)
    again, _ = model.sample(200_000)
    np.testing.assert_array_equal(rows, again)  # a seed is a seed, as in scikit-learn


def test_without_a_seed_fits_repeat_and_samples_do_not(X):
    one, two = GaussianMixture(3).fit(X), GaussianMixture(3).fit(X)
    np.testing.assert_array_equal(one.means_, two.means_)
    assert not np.array_equal(one.sample(5)[0], one.sample(5)[0])


def test_verbose_tells_of_iterations(X, capsys):
    GaussianMixture(3, verbose=2, verbose_interval=1).fit(X)
    said = capsys.readouterr().out
    assert "Initialization 0" in said
    assert "Iteration" in said
    assert "converged: log-likelihood -180.185" in said


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"n_components": 0}, "n_components"),
        ({"tol": -1.0}, "tol"),
        ({"reg_covar": -1.0}, "reg_covar"),
        ({"init_params": "magic"}, "init_params must be one of auto"),
        ({"covariance_type": "round"}, "no covariance model 'round'"),
        ({"covariance_type": "V"}, "for one column"),
        ({"prior": "strong"}, "prior must be one of"),
        ({"prior": "conjugate", "reg_covar": 1e-6}, "give one of them"),
        ({"constraints": 3}, "constraints must be"),
        ({"random_state": "x"}, "random_state"),
        ({"weights_init": [0.5, 0.6, 0.2]}, "sum to 1"),
        ({"means_init": np.zeros((3, 3))}, r"shape \(3, 4\)"),
        ({"precisions_init": np.zeros((3, 4, 4))}, "positive definite"),
        ({"precisions_init": np.ones(3)}, r"must have shape \(3, 4, 4\)"),
    ],
)
def test_wrong_parameters_are_named(X, params, complaint):
    with pytest.raises(ValueError, match=complaint):
        GaussianMixture(**{"n_components": 3} | params).fit(X)
