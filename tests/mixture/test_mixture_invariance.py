"""What must not change a fit but for its units: scale, shift, order; and what never happens on its way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.models import MODELS

SEEDS = st.integers(0, 2**16)
few = settings(max_examples=10)


def clusters(seed, n=80, d=2, k=3):
    rng = np.random.default_rng(seed)
    means = 5.0 * rng.normal(size=(k, d))
    return means[rng.integers(0, k, n)] + rng.normal(size=(n, d))


def fit(X, **params):
    return GaussianMixture(**{"n_components": 3, "reg_covar": None} | params).fit(X)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, scale=st.sampled_from([1e-8, 1e8, 1e-3, 7.0]), model=st.sampled_from(MODELS))
def test_units_change_nothing_but_units(seed, scale, model):
    X = clusters(seed)
    one, other = fit(X, covariance_type=model), fit(scale * X, covariance_type=model)
    np.testing.assert_allclose(other.means_ / scale, one.means_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.covariances_ / scale**2, one.covariances_, rtol=1e-4, atol=1e-6)
    moved = other.log_likelihood_ + X.size * np.log(scale)
    assert moved == pytest.approx(one.log_likelihood_, abs=1e-6)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, model=st.sampled_from(MODELS))
def test_a_shift_of_a_hundred_million_moves_the_means_alone(seed, model):
    """The data keep eight digits of themselves at 1e8, and the fit what they keep."""
    X = clusters(seed)
    far = X + 1e8
    one, other = fit(far - 1e8, covariance_type=model), fit(far, covariance_type=model)
    np.testing.assert_allclose(other.means_ - 1e8, one.means_, atol=1e-5)
    np.testing.assert_allclose(other.covariances_, one.covariances_, rtol=1e-4, atol=1e-6)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-5)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, kind=st.sampled_from(["full", "tied", "diag"]), units=st.sampled_from([(1e6, 1.0), (1e-4, 1e3)]))
def test_units_of_one_column_change_nothing_but_units(seed, kind, units):
    X, u = clusters(seed), np.array(units)
    one, other = fit(X, covariance_type=kind), fit(X * u, covariance_type=kind)
    np.testing.assert_allclose(other.means_ / u, one.means_, rtol=1e-5, atol=1e-5)
    assert other.log_likelihood_ + len(X) * np.log(u).sum() == pytest.approx(one.log_likelihood_, abs=1e-6)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, model=st.sampled_from(MODELS))
def test_the_order_of_rows_does_not_matter(seed, model):
    X = clusters(seed)
    one = fit(X, covariance_type=model)
    other = fit(np.random.default_rng(seed).permutation(X), covariance_type=model)
    np.testing.assert_allclose(other.means_, one.means_, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=40)
@given(
    seed=SEEDS,
    model=st.sampled_from(MODELS),
    k=st.integers(1, 5),
    accelerate=st.booleans(),
    gaps=st.booleans(),
    init=st.sampled_from(["kmeans", "random", "random_from_data"]),
)
def test_the_likelihood_never_falls(seed, model, k, accelerate, gaps, init):
    X = clusters(seed, n=40)
    if gaps:
        X[np.random.default_rng(seed).random(40) < 0.3, 0] = np.nan
    found = fit(X, n_components=k, covariance_type=model, accelerate=accelerate, init_params=init, max_iter=40)
    heights = np.array(found.lower_bounds_) * 40
    assert (np.diff(heights) >= -1e-12 * np.abs(heights[1:])).all()
    assert found.lower_bound_ == pytest.approx(heights[-1] / 40 if len(heights) else found.lower_bound_)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@few
@given(seed=SEEDS, kind=st.sampled_from(["full", "tied", "diag", "spherical"]))
def test_one_step_more_from_a_certified_optimum_is_shorter_than_its_gradient_says(seed, kind):
    X = clusters(seed, n=100)
    first = fit(X, covariance_type=kind)
    start = {"weights_init": first.weights_, "means_init": first.means_, "precisions_init": first.precisions_}
    again = fit(X, covariance_type=kind, tol=0.0, max_iter=1, accelerate=False, **start)
    spread = np.sqrt(np.diagonal(first.mixture_.matrices, axis1=1, axis2=2) / (100 * first.weights_[:, None]))
    # a step is measured as a whole, in standard errors; each mean moves less than that, up to the rounding of inverses
    assert np.all(np.abs(again.means_ - first.means_) <= (1.01 * first.certificate_.gradient + 1e-9) * spread)


def test_small_data_do_not_collapse_as_scikit_learns_do():
    X = 1e-8 * clusters(1, n=300)
    model = fit(X)
    big = fit(1e8 * X)
    np.testing.assert_array_equal(model.predict(X), big.predict(1e8 * X))
    assert model.covariances_.max() < 1e-14


def test_stopping_short_is_told():
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        found = fit(clusters(2), n_components=5, max_iter=3)
    assert not found.converged_
    assert found.certificate_.gradient > 1e-5
