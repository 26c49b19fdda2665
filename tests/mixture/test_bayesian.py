"""Variational mixtures: scikit-learn's own steps and bound as the oracle."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.mixture as theirs
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian import BayesianGaussianMixture

IRIS: Any = load_iris().data
KINDS = ("full", "tied", "diag", "spherical")
TYPES = ("dirichlet_process", "dirichlet_distribution")


def as_theirs(model: BayesianGaussianMixture, X: Any) -> Any:
    """scikit-learn's estimator with the posterior of ours."""
    names = ("weight_concentration_prior", "mean_precision_prior", "degrees_of_freedom_prior", "covariance_prior")
    priors = {name: getattr(model, name) for name in (*names, "mean_prior", "weight_concentration_prior_type")}
    reference = theirs.BayesianGaussianMixture(
        n_components=model.n_components, covariance_type=model.covariance_type, reg_covar=0.0, **priors
    )
    reference._check_parameters(X)
    reference._set_parameters(
        (
            model.weight_concentration_,
            model.mean_precision_,
            model.means_,
            model.degrees_of_freedom_,
            model.covariances_,
            model.precisions_cholesky_,
        )
    )
    return reference


@pytest.mark.parametrize("prior", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_point_of_scikit_learns_steps(kind: str, prior: str) -> None:
    model = BayesianGaussianMixture(4, covariance_type=kind, weight_concentration_prior_type=prior, tol=1e-6).fit(IRIS)
    assert model.converged_
    reference = as_theirs(model, IRIS)
    assert_allclose(model.weights_, reference.weights_, rtol=1e-12)
    assert_allclose(model.predict_proba(IRIS), reference.predict_proba(IRIS), atol=1e-7)
    assert_allclose(model.score_samples(IRIS), reference.score_samples(IRIS), rtol=1e-6)
    mean, log_resp = reference._e_step(IRIS)
    reference._m_step(IRIS, log_resp)
    assert_allclose(reference.means_, model.means_, atol=1e-6)
    assert_allclose(reference.covariances_, model.covariances_, atol=1e-6)
    assert_allclose(reference.mean_precision_, model.mean_precision_, rtol=1e-6)
    bound = float(np.squeeze(reference._compute_lower_bound(log_resp, mean)))
    assert model.lower_bound_ == pytest.approx(bound, rel=1e-10)
    assert np.all(np.diff(model.lower_bounds_) > -1e-9)
    # and no worse than scikit-learn's own start
    own = theirs.BayesianGaussianMixture(
        n_components=4,
        covariance_type=kind,
        weight_concentration_prior_type=prior,
        tol=1e-6,
        max_iter=3000,
        reg_covar=0.0,
        random_state=0,
    ).fit(IRIS)
    assert model.lower_bound_ >= float(np.squeeze(own.lower_bound_)) - 1e-4


def test_given_priors() -> None:
    priors = {
        "weight_concentration_prior": 3.0,
        "mean_precision_prior": 0.2,
        "mean_prior": np.array([5.0, 3.0, 4.0, 1.0]),
        "degrees_of_freedom_prior": 7.5,
        "covariance_prior": 0.3 * np.eye(4) + 0.1,
    }
    model = BayesianGaussianMixture(3, tol=1e-6, **priors).fit(IRIS)
    reference = as_theirs(model, IRIS)
    _, log_resp = reference._e_step(IRIS)
    reference._m_step(IRIS, log_resp)
    assert_allclose(reference.means_, model.means_, atol=1e-6)
    assert_allclose(reference.covariances_, model.covariances_, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_variance_for_each_row_is_part_of_what_rises(kind: str) -> None:
    model = BayesianGaussianMixture(3, covariance_type=kind, reg_covar=0.1).fit(IRIS)
    assert model.certificate_.converged
    assert np.all(np.diff(model.lower_bounds_) > -1e-9)


def test_needless_components_are_left_empty() -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(-6, 1, (100, 2)), rng.normal(6, 1, (300, 2))])
    model = BayesianGaussianMixture(8, weight_concentration_prior=1e-3, random_state=3).fit(X)
    assert_allclose(np.sort(model.weights_)[-2:], [0.25, 0.75], atol=0.01)
    assert set(model.predict(X[:100])) != set(model.predict(X[100:]))
    drawn, labels = model.sample(500)
    assert drawn.shape == (500, 2)
    assert np.all(np.diff(labels) >= 0)
    assert model.score(X) == pytest.approx(float(np.mean(model.score_samples(X))))


def test_weights_files_tensors_and_model_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 3, size=len(IRIS))
    weighted = BayesianGaussianMixture(2, tol=1e-8).fit(IRIS, sample_weight=counts)
    repeated = BayesianGaussianMixture(2, tol=1e-8).fit(np.repeat(IRIS, counts, axis=0))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)
    plain = BayesianGaussianMixture(2).fit(IRIS)
    np.save(tmp_path / "iris.npy", IRIS)
    assert_allclose(BayesianGaussianMixture(2).fit(tmp_path / "iris.npy").means_, plain.means_, atol=1e-6)
    gramian.save(plain, tmp_path / "model")
    again = gramian.load(tmp_path / "model")
    assert_allclose(again.predict_proba(IRIS), plain.predict_proba(IRIS), rtol=0, atol=0)
    warm = BayesianGaussianMixture(2, warm_start=True).fit(IRIS)
    assert warm.fit(IRIS).n_iter_ <= 2


def test_tensors_come_back_as_tensors() -> None:
    torch = pytest.importorskip("torch")
    model = BayesianGaussianMixture(2).fit(torch.tensor(IRIS))
    assert torch.is_tensor(model.means_)
    assert torch.is_tensor(model.predict_proba(torch.tensor(IRIS)))


def test_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    for bad, message in (
        ({"degrees_of_freedom_prior": 3.0}, "degrees_of_freedom_prior must be greater than 3"),
        ({"covariance_prior": -np.eye(4)}, "positive definite"),
        ({"covariance_prior": np.eye(3)}, "shape"),
        ({"mean_prior": [1.0]}, "mean_prior"),
        ({"covariance_type": "VVV"}, "covariance_type"),
        ({"weight_concentration_prior": 0.0}, "weight_concentration_prior"),
    ):
        with pytest.raises(ValueError, match=message):
            BayesianGaussianMixture(**bad).fit(IRIS)
    with pytest.raises(ValueError, match="NaN"):
        BayesianGaussianMixture().fit(np.where(IRIS > 6, np.nan, IRIS))
    with pytest.warns(gramian.NumericalWarning, match="singular"):
        assert BayesianGaussianMixture().fit(np.column_stack([IRIS, IRIS[:, 0]])).converged_
    with pytest.raises(ValueError, match="a column is constant"):
        BayesianGaussianMixture().fit(IRIS * [1, 1, 0, 1])
    with pytest.warns(ConvergenceWarning, match="Raise max_iter=2"):
        BayesianGaussianMixture(3, tol=0.0, max_iter=2, verbose=2, verbose_interval=1).fit(IRIS)
    assert "Initialization 0" in capsys.readouterr().out
