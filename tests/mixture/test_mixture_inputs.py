"""What a mixture can be fitted to: weights, gaps, bins, frames, files, tensors, batches; and what it refuses."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

import gramian
from gramian.mixture.binned import Bins
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.parameters import Constraints


def clusters(n=400, d=3, k=3, seed=0):
    rng = np.random.default_rng(seed)
    means = 4.0 * rng.normal(size=(k, d))
    return means[rng.integers(0, k, n)] + rng.normal(size=(n, d)) * rng.uniform(0.5, 1.5, d)


@pytest.fixture(scope="module")
def X():
    return clusters()


@pytest.fixture(scope="module")
def fitted(X):
    return GaussianMixture(3).fit(X)


def assert_same(one, two, rtol=1e-8):
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=rtol, atol=rtol, err_msg=name)


def test_frames_files_maps_tensors_and_sources_give_the_same_fit(X, fitted, tmp_path, torch):
    path = tmp_path / "x.npy"
    np.save(path, X)
    for data in (
        path,
        np.load(path, mmap_mode="r"),
        torch.as_tensor(X),
        gramian.open(X),
        X.tolist(),
        np.asfortranarray(X),
    ):
        assert_same(GaussianMixture(3).fit(data), fitted)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = GaussianMixture(3).fit(frame)
    assert_same(named, fitted)
    assert list(named.feature_names_in_) == ["a", "b", "c"]
    answer = fitted.predict_proba(torch.as_tensor(X))
    assert isinstance(answer, torch.Tensor)
    np.testing.assert_array_equal(np.asarray(answer), fitted.predict_proba(X))
    np.testing.assert_array_equal(fitted.score_samples(path), fitted.score_samples(X))


def test_single_precision_is_read_as_it_is_and_summed_in_double(X, fitted):
    narrow = GaussianMixture(3).fit(X.astype(np.float32))
    assert narrow.means_.dtype == np.float64
    assert_same(narrow, GaussianMixture(3).fit(X.astype(np.float32).astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("kind", ["full", "EEI", "VVE"])
@pytest.mark.parametrize("init", ["kmeans", "hierarchical", "k-means++", "random_from_data", "random"])
def test_a_weight_is_the_row_so_many_times(kind, init):
    X = clusters(60, 2)
    w = np.random.default_rng(1).integers(0, 4, 60)
    params = {"covariance_type": kind, "init_params": init}
    once = GaussianMixture(2, **params).fit(X, sample_weight=w)
    often = GaussianMixture(2, **params).fit(np.random.default_rng(2).permutation(np.repeat(X, w, axis=0)))
    assert_same(once, often, rtol=1e-6)
    assert once.score(X, sample_weight=w) == pytest.approx(once.score(np.repeat(X, w, axis=0)), rel=1e-12)
    assert once.bic(X, sample_weight=w) == pytest.approx(once.bic(np.repeat(X, w, axis=0)), rel=1e-12)
    assert once.icl(X, sample_weight=w) == pytest.approx(once.icl(np.repeat(X, w, axis=0)), rel=1e-12)


def with_gaps(X, share=0.2, seed=3):
    Z = X.copy()
    Z[np.random.default_rng(seed).random(Z.shape) < share] = np.nan
    empty = np.isnan(Z).all(axis=1)
    Z[empty] = X[empty]
    return Z


def test_cells_that_are_missing_are_integrated_out(X):
    Z = with_gaps(X)
    model = GaussianMixture(3).fit(Z)
    assert model.certificate_.converged

    def density(row):
        seen = ~np.isnan(row)
        parts = zip(model.weights_, model.means_, model.covariances_, strict=True)
        return sum(w * multivariate_normal(m[seen], S[np.ix_(seen, seen)]).pdf(row[seen]) for w, m, S in parts)

    naive = np.array([np.log(density(row)) for row in Z])
    np.testing.assert_allclose(model.score_samples(Z), naive, rtol=1e-9)
    assert model.log_likelihood_ == pytest.approx(naive.sum(), rel=1e-10)


def test_missing_cells_of_one_normal_have_the_likelihood_that_an_optimiser_finds():
    """A naive twin: the likelihood of two columns with gaps, maximised by scipy over μ, log σ and atanh ρ."""
    Z = with_gaps(clusters(30, 2, 1), 0.25)

    def loss(v):
        s, rho = np.exp(v[2:4]), np.tanh(v[4])
        S = np.array([[s[0] ** 2, rho * s[0] * s[1]], [rho * s[0] * s[1], s[1] ** 2]])
        total = 0.0
        for row in Z:
            seen = ~np.isnan(row)
            total -= multivariate_normal(v[:2][seen], S[np.ix_(seen, seen)]).logpdf(row[seen])
        return total

    found = minimize(loss, [*np.nanmean(Z, axis=0), *np.log(np.nanstd(Z, axis=0)), 0.0], tol=1e-7)
    model = GaussianMixture(1).fit(Z)
    assert model.log_likelihood_ == pytest.approx(-found.fun, abs=1e-6)
    np.testing.assert_allclose(model.means_[0], found.x[:2], atol=1e-4)


def test_imputed_cells_are_conditional_means_with_their_uncertainty(X):
    model, Z = GaussianMixture(3).fit(X), with_gaps(X[:40])
    filled, deviations = model.impute(Z, return_std=True)
    np.testing.assert_array_equal(filled[~np.isnan(Z)], Z[~np.isnan(Z)])
    np.testing.assert_array_equal(filled, model.impute(Z))
    i = int(np.flatnonzero(np.isnan(Z).any(axis=1))[0])
    seen = np.flatnonzero(~np.isnan(Z[i]))
    rest = model.conditional(seen, Z[i, seen])
    draws, _ = rest.sample(200_000, np.random.default_rng(0))
    hidden = np.isnan(Z[i])
    np.testing.assert_allclose(filled[i, hidden], draws.mean(axis=0), atol=5 * draws.std() / 400)
    np.testing.assert_allclose(deviations[i, hidden], draws.std(axis=0), rtol=0.02)


def test_conditional_density_is_joint_over_marginal(X):
    model = GaussianMixture(3).fit(pd.DataFrame(X, columns=["a", "b", "c"]))
    at, rest = np.array([0.5, -1.0]), np.linspace(-6, 6, 9)[:, None]
    joint = model.score_samples(pd.DataFrame({"a": at[0], "b": rest[:, 0], "c": at[1]}))
    given = model.marginal(["a", "c"]).log_density(at[None])
    np.testing.assert_allclose(model.conditional(["a", "c"], at).log_density(rest), joint - given, rtol=1e-9)
    with pytest.raises(ValueError, match="'z'"):
        model.marginal(["z"])
    with pytest.raises(ValueError, match=r"2 columns.*1 values"):
        model.conditional([0, 1], [1.0])
    with pytest.raises(ValueError, match="none left"):
        model.conditional([0, 1, 2], [1.0, 1.0, 1.0])


def test_fine_bins_agree_with_the_rows_they_count():
    x = clusters(2000, 1, 2, seed=1)
    edges = np.linspace(x.min() - 0.01, x.max() + 0.01, 3000)
    counts = np.histogram(x[:, 0], edges)[0]
    rows, bins = GaussianMixture(2).fit(x), GaussianMixture(2).fit_binned(edges, counts)
    mine, theirs = np.argsort(bins.means_[:, 0]), np.argsort(rows.means_[:, 0])
    np.testing.assert_allclose(bins.means_[mine], rows.means_[theirs], atol=1e-3)
    np.testing.assert_allclose(bins.covariances_[mine], rows.covariances_[theirs], rtol=1e-2)


def test_the_likelihood_of_bins_is_that_of_differences_of_normal_probabilities():
    edges, counts = [-np.inf, -1.0, 0.5, 2.0, np.inf], np.array([20, 30, 40, 10])
    model = GaussianMixture(1).fit_binned(edges, counts)
    P = np.diff(norm(model.means_[0, 0], np.sqrt(model.covariances_[0, 0, 0])).cdf(edges))
    assert model.score(Bins.of(edges, counts)) == pytest.approx(float(counts @ np.log(P)) / 100, rel=1e-12)
    assert model.bic(Bins.of(edges, counts)) == pytest.approx(-2 * counts @ np.log(P) + 2 * np.log(100), rel=1e-12)


def test_rectangular_bins_in_two_columns():
    X = clusters(2000, 2, 2, seed=5)
    edges = [np.concatenate([[-np.inf], np.linspace(*np.quantile(x, (0.01, 0.99)), 9), [np.inf]]) for x in X.T]
    counts = np.histogramdd(X, edges)[0]
    rows, bins = GaussianMixture(2).fit(X), GaussianMixture(2, tol=1e-2).fit(Bins.of(edges, counts))
    mine, theirs = np.argsort(bins.means_[:, 0]), np.argsort(rows.means_[:, 0])
    np.testing.assert_allclose(bins.means_[mine], rows.means_[theirs], atol=0.15)
    assert bins.n_features_in_ == 2
    with pytest.raises(ValueError, match=r"bins.*weights"):
        bins.score(Bins.of(edges, counts), sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="asks about rows"):
        bins.predict(Bins.of(edges, counts))


@pytest.mark.parametrize("init", ["kmeans", "hierarchical"])
def test_many_rows_start_from_a_sample_of_them(init):
    X = clusters(12_000, 2, 3, seed=1)
    w = np.random.default_rng(0).integers(0, 3, 12_000)
    model = GaussianMixture(3, init_params=init).fit(X, sample_weight=w)
    same = GaussianMixture(3, means_init=model.means_).fit(np.repeat(X, w, axis=0))
    assert model.log_likelihood_ == pytest.approx(same.log_likelihood_, rel=1e-9)


def test_batches_lead_near_to_the_fit_of_all_rows():
    X = clusters(8_000, 3, 3)
    whole, stream = GaussianMixture(3).fit(X), GaussianMixture(3)
    for start in range(0, 8_000, 200):
        stream.partial_fit(X[start : start + 200])
    assert stream.score(X) > whole.score(X) - 0.01
    assert stream.n_iter_ == 40
    assert stream.score(X) > GaussianMixture(3).fit(X[:200]).score(X)
    stream.fit(X)  # starts anew
    assert_same(stream, whole)


def test_weights_of_batches_are_frequencies():
    X = clusters(300, 2, 2)
    w = np.random.default_rng(1).integers(0, 3, 300)
    one, two = GaussianMixture(2), GaussianMixture(2)
    for part in (slice(0, 150), slice(150, 300)):
        one.partial_fit(X[part], sample_weight=w[part])
        two.partial_fit(np.repeat(X[part], w[part], axis=0))
    assert_same(one, two, rtol=1e-6)


def test_memory_is_that_of_a_block_not_of_all_responsibilities(tmp_path):
    n, k = 200_000, 32
    X = np.random.default_rng(0).normal(size=(n, 4))
    model = GaussianMixture(k, covariance_type="diag", max_iter=1, accelerate=False, tol=1e9)
    model.fit(X[:1000])
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * k / 2  # one n×K matrix takes 51 MB


def test_held_and_tied_parameters(X):
    fixed = np.zeros((2, 3), bool)
    fixed[0] = True
    at = X[:2].copy()
    rules = Constraints(fixed_means=fixed, tied_weights=np.zeros(2, int))
    model = GaussianMixture(2, means_init=at, constraints=rules).fit(X)
    np.testing.assert_allclose(model.means_[0], at[0], rtol=1e-12)
    np.testing.assert_allclose(model.weights_, 0.5)
    assert model.n_parameters_ == GaussianMixture(2).fit(X).n_parameters_ - 4
    assert model.log_likelihood_ < GaussianMixture(2).fit(X).log_likelihood_
    with pytest.raises(ValueError, match="set means_init"):
        GaussianMixture(2, constraints=rules).fit(X)


def test_a_component_on_equal_rows_is_named_and_not_kept_where_there_is_another():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), np.tile([[9.0, 9.0]], (8, 1))])
    with pytest.warns(gramian.NumericalWarning, match="8 rows"):
        model = GaussianMixture(2).fit(X)
    (found,) = model.diagnose(X)
    assert found.kind == "collapsed"
    assert np.allclose(model.means_[found.component], 9.0)
    assert "collapsed" in model.landscape_.problems[0]
    prior = GaussianMixture(2, prior="conjugate").fit(X)
    assert prior.diagnose(X) == ()
    asked = GaussianMixture(2, reg_covar=1e-3).fit(X)  # a number was asked for: told in the landscape, not warned of
    assert "collapsed" in asked.landscape_.problems[0]
    with pytest.raises(ValueError, match="reg_covar=0"):
        GaussianMixture(2, reg_covar=0.0).fit(X)


def test_several_starts_tell_the_landscape():
    X = clusters(100, 2, 5, seed=7)
    model = GaussianMixture(5, n_init=12, init_params="random_from_data", covariance_type="tied").fit(X)
    landscape = model.landscape_
    assert landscape.counts.sum() == 12
    assert len(landscape.counts) > 1
    assert (np.diff(landscape.log_likelihoods) < 0).all()
    assert model.log_likelihood_ == landscape.log_likelihoods[landscape.kept]
    assert landscape.table()["kept"].sum() == 1
    assert f"{len(landscape.counts)} optima from 12 starts" in repr(landscape)
    worst = landscape.mixtures[-1]
    assert worst.log_likelihood(X) == pytest.approx(landscape.log_likelihoods[-1], rel=1e-9)


@pytest.mark.parametrize(
    ("data", "error", "complaint"),
    [
        (sp.eye_array(6, format="csr"), TypeError, "Sparse data"),
        (np.array([[1.0, 2.0], [np.inf, 1.0], [3.0, 1.0]]), ValueError, "row 2, column 1"),
        (np.repeat([[1.0, 2.0]], 9, axis=0), ValueError, "exceeds the 1 distinct rows"),
        (np.ones((1, 3)), ValueError, "1 sample"),
    ],
)
def test_data_that_cannot_be_fitted_are_refused_by_name(data, error, complaint):
    with pytest.raises(error, match=complaint):
        GaussianMixture(2).fit(data)


def test_weights_that_are_none_are_refused(X):
    with pytest.raises(ValueError, match="zero"):
        GaussianMixture(2).fit(X, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="row 4"):
        GaussianMixture(2).fit(X, sample_weight=np.where(np.arange(len(X)) == 3, -1.0, 1.0))
