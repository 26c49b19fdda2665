"""Far clusters, flat likelihoods, refits, batches after fits, and messages that name the argument and the remedy."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

import gramian
from gramian.mixture.binned import Bins
from gramian.mixture.choose import bootstrap_lrt, bootstrap_mixture, select_mixture
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.parameters import Mixture, regress

X = load_iris().data


def said(call):
    """The messages of the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(item.message) for item in found]


@pytest.mark.parametrize("away", [1e6, 1e9])
@pytest.mark.parametrize("kind", ["full", "VVI", "E"])
def test_clusters_far_apart_keep_their_own_variances(away, kind):
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(500, 1)), rng.normal(away, 1.0, (500, 1))
    model = GaussianMixture(2, covariance_type=kind).fit(np.concatenate(parts))
    each = [float(parts[int(m > away / 2)].var()) for m in model.means_[:, 0]]
    expected = [np.mean(each)] * 2 if kind == "E" else each
    np.testing.assert_allclose(model.covariances_.ravel(), expected, rtol=1e-5)


def test_one_mistyped_cell_spoils_its_own_component_alone():
    Z = X.copy()
    Z[3, 1] = 1e6
    messages = said(lambda: GaussianMixture(2).fit(Z))
    assert len(messages) == 1
    assert "it holds 1 row," in messages[0]
    with pytest.warns(gramian.NumericalWarning):
        model = GaussianMixture(2).fit(Z)
    rest = np.delete(Z, 3, axis=0)
    np.testing.assert_allclose(model.covariances_[np.argmax(model.weights_)], np.cov(rest.T, bias=True), rtol=1e-8)


def test_columns_at_fault_are_named_once_with_the_remedy():
    constant = said(lambda: GaussianMixture(3).fit(np.column_stack([X, np.ones(150)])))
    assert len(constant) == 1
    assert "column 5 is constant" in constant[0]
    assert constant[0].endswith("leave it out.")
    double = said(lambda: GaussianMixture(3).fit(np.column_stack([X, X[:, 0]])))
    assert len(double) == 1
    assert "is a combination of others" in double[0]
    wide = said(lambda: GaussianMixture(1).fit(np.random.default_rng(0).normal(size=(5, 8))))
    assert len(wide) == 1
    assert "5 rows in 8 columns" in wide[0]


@pytest.mark.parametrize(("edges", "counts"), [([-np.inf, 0, np.inf], [10, 10]), ([-np.inf, 0, 1, np.inf], [0, 10, 0])])
def test_counts_that_do_not_determine_a_mixture_are_said_so(edges, counts):
    with pytest.warns(gramian.NumericalWarning, match="2 parameters"):
        model = GaussianMixture(1).fit_binned(edges, counts)
    assert any("do not determine" in note for note in model.certificate_.notes)
    assert said(lambda: GaussianMixture(1).fit_binned([-np.inf, 0, 1, np.inf], [5, 10, 4])) == []


def test_four_boxes_do_not_determine_two_correlated_columns():
    bins = Bins.of([[-np.inf, 0.0, np.inf]] * 2, [[10, 5], [5, 10]])
    with pytest.warns(gramian.NumericalWarning, match=r"4 classes.*5 parameters"):
        GaussianMixture(1).fit(bins)


@pytest.mark.parametrize(("name", "value"), [("n_components", 3), ("covariance_type", "tied")])
def test_batches_go_on_with_one_kind_of_mixture(name, value):
    for model in (GaussianMixture(2).partial_fit(X), GaussianMixture(2).fit(X)):
        with pytest.raises(ValueError, match=f"{name} was"):
            model.set_params(**{name: value}).partial_fit(X)
    fresh = GaussianMixture(2, warm_start=True).fit(X).set_params(**{name: value}).fit(X)
    again = GaussianMixture(2).set_params(**{name: value}).fit(X)
    np.testing.assert_allclose(fresh.means_, again.means_, rtol=1e-12)


def test_batches_go_on_from_a_fit():
    one, two = GaussianMixture(2).fit(X[::2]), GaussianMixture(2).partial_fit(X[::2])
    np.testing.assert_allclose(one.partial_fit(X[1::2]).means_, two.partial_fit(X[1::2]).means_, rtol=1e-12)
    assert one.score(X) > GaussianMixture(2).fit(X[::2]).score(X)


def test_a_refit_that_fails_leaves_no_fit_behind():
    model = GaussianMixture(2).fit(X)
    with pytest.raises(ValueError, match="distinct rows"):
        model.fit(np.ones((9, 3)))
    assert not hasattr(model, "means_")
    assert model.fit(X[:, :3]).means_.shape == (2, 3)


def test_a_prior_and_samples_need_weights_that_are_frequencies():
    w = np.full(150, 1e-3)
    with pytest.raises(ValueError, match=r"weights.*to 0\.15"):
        GaussianMixture(2, prior="conjugate").fit(X, sample_weight=w)
    with pytest.raises(ValueError, match=r"weights.*0\.15, so.*0 rows"):
        bootstrap_lrt(GaussianMixture(), X, most=2, n_replicates=19, sample_weight=w)
    with pytest.raises(ValueError, match="0 rows"):
        bootstrap_mixture(GaussianMixture().fit(X), X, sample_weight=w)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda m: m.conditional([0], [np.nan]), "value of column 1 is nan"),
        (lambda m: m.conditional([0], ["a"]), "values must be an array of real numbers"),
        (lambda m: m.marginal([1.7]), "whole number; got 1.7"),
        (lambda m: m.marginal([True, False, True, False]), "flatnonzero"),
        (lambda m: m.mixture_.marginal([1.7]), "whole number; got 1.7"),
        (lambda m: regress(m.mixture_, [1.7], [[1.0]]), "whole number; got 1.7"),
        (lambda m: m.sample(1.5), "n_samples must be a whole number"),
        (lambda m: GaussianMixture(True).fit(X), "n_components must be a whole number"),
        (lambda m: GaussianMixture(2, decay=2).fit(X), "decay must be a number between 0.5 and 1, got 2"),
        (lambda m: GaussianMixture(2, weights_init="ab").fit(X), "weights_init must be an array of real numbers"),
        (lambda m: GaussianMixture(2, means_init=[["a"]]).fit(X), "means_init must be an array of real numbers"),
        (lambda m: m.fit(X, sample_weight=["a"] * 150), "sample_weight must be an array of real numbers"),
        (lambda m: Mixture.of("a", [[0.0]], [1.0], "V"), "weights must be an array of real numbers"),
        (lambda m: GaussianMixture(3).fit_binned([0, 1, 2], [5, 5]), "2 distinct bins"),
        (lambda m: GaussianMixture(2).fit(X + 1j), "(?i)complex"),
        (lambda m: select_mixture(m, X, n_components=[1.5]), "n_components .* got 1.5"),
    ],
)
def test_arguments_are_named_and_not_coerced(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(GaussianMixture(2).fit(X))


def test_a_choice_takes_one_size():
    choice = select_mixture(GaussianMixture(), X, n_components=3, covariance_types="EEE")
    assert choice.n_components == (3,)


def test_masked_cells_are_missing_ones():
    mask = np.random.default_rng(0).random(X.shape) < 0.1
    masked, gaps = np.ma.MaskedArray(X, mask), np.where(mask, np.nan, X)
    one, two = GaussianMixture(2).fit(masked), GaussianMixture(2).fit(gaps)
    np.testing.assert_array_equal(one.means_, two.means_)
    np.testing.assert_array_equal(one.predict_proba(masked), two.predict_proba(gaps))
    whole = np.ma.MaskedArray(np.arange(12).reshape(6, 2), np.eye(6, 2, dtype=bool))
    assert np.isfinite(GaussianMixture(1, covariance_type="diag").fit(whole).means_).all()
