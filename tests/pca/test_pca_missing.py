"""``PCA.fit`` on rows with missing cells, wherever they come from."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import gramian
from gramian import PCA, Certificate, NumericalWarning, Optimum
from gramian.analysis import fit_incomplete
from gramian.sources.errors import SourceError
from oracles import Array, subspace_sine

METHODS = ["likelihood", "regularised", "least-squares"]
SAME = ["components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"]


def table(n: int = 120, p: int = 7, missing: float = 0.15, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) * 3 + rng.normal(size=(n, p)) + np.arange(p)
    gaps = rng.random((n, p)) < missing
    gaps[np.arange(n), rng.integers(0, p, n)] = False
    return truth, np.where(gaps, np.nan, truth)


def assert_same_fit(ours: PCA, theirs: PCA, tol: float) -> None:
    for name in SAME:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=tol, atol=tol, err_msg=name)
    assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=tol)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [False, True])
def test_complete_rows_give_the_plain_fit(method: str, scale: bool) -> None:
    X, _ = table()
    plain = PCA(2, scale=scale).fit(X)
    found = fit_incomplete(PCA(2, scale=scale), X, method=method)
    for name in SAME:
        assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-6, atol=1e-6, err_msg=name)
    if method != "regularised":  # whose noise has missMDA's degrees of freedom
        assert_allclose(found.noise_variance_, plain.noise_variance_, rtol=1e-6)
    assert isinstance(plain.certificate_, Certificate)
    assert isinstance(found.certificate_, Optimum)


@pytest.mark.parametrize("method", METHODS)
def test_the_components_of_the_complete_table_are_found(method: str) -> None:
    X, Xm = table(2000)
    plain = PCA(2).fit(X)
    found = fit_incomplete(PCA(2), Xm, method=method)
    assert found.certificate_.converged
    assert subspace_sine(found.components_, plain.components_) < 0.03
    assert_allclose(found.explained_variance_, plain.explained_variance_, rtol=0.05)
    error = np.sqrt(np.mean((found.impute(Xm) - X)[np.isnan(Xm)] ** 2))
    worse = np.sqrt(np.mean((np.nanmean(Xm, axis=0) - X)[np.isnan(Xm)] ** 2))
    assert error < 0.5 * worse


def test_fit_takes_missing_cells_by_maximum_likelihood() -> None:
    _, Xm = table()
    assert_same_fit(PCA(2).fit(Xm), fit_incomplete(PCA(2), Xm, method="likelihood"), 1e-12)
    assert "missing" in PCA(2).fit(Xm).certificate_.notes[0]


def test_all_components_are_those_of_the_most_likely_covariance() -> None:
    """As the EM algorithm for a multivariate normal (Little and Rubin) finds it, written here as they do."""
    _, Xm = table(200, 4)
    mean, C = np.nanmean(Xm, axis=0), np.diag(np.nanvar(Xm, axis=0))
    for _ in range(2000):
        S, total = np.zeros((4, 4)), np.zeros(4)
        for x in Xm:
            o = ~np.isnan(x)
            K = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, ~o)]).T
            full, spread = x.copy(), np.zeros((4, 4))
            full[~o] = mean[~o] + K @ (x[o] - mean[o])
            spread[np.ix_(~o, ~o)] = C[np.ix_(~o, ~o)] - K @ C[np.ix_(o, ~o)]
            S += np.outer(full, full) + spread
            total += full
        new = total / 200
        after = S / 200 - np.outer(new, new)
        change = np.abs(after - C).max()
        mean, C = new, after
        if change < 1e-12:
            break
    pca = PCA().fit(Xm)
    assert pca.n_components_ == 4
    assert_allclose(pca.mean_, mean, atol=1e-6)
    assert_allclose(pca.get_covariance() * 199 / 200, C, atol=1e-5 * np.trace(C))


def test_a_fraction_chooses_from_the_most_likely_spectrum() -> None:
    _, Xm = table(400)
    assert PCA(0.8).fit(Xm).n_components_ == 2


@pytest.mark.parametrize("missing", [0.1, 0.3])
def test_a_constant_column_changes_no_choice(missing: float) -> None:
    _, Xm = table(200, 12, missing)
    constant = np.column_stack([Xm, np.ones(200)])
    assert PCA(0.9).fit(constant).n_components_ == PCA(0.9).fit(Xm).n_components_
    whole, part = PCA().fit(constant), PCA().fit(Xm)
    assert whole.n_components_ == 13
    assert_allclose(whole.explained_variance_[:12], part.explained_variance_, rtol=1e-4)
    assert whole.explained_variance_[12] == 0
    assert_allclose(whole.mean_[12], 1.0, rtol=0)


@pytest.mark.parametrize("n_components", ["parallel", "parallel-gaussian", "mle", "tracy-widom", "broken-stick"])
def test_rules_need_whole_rows_and_say_so(n_components: str) -> None:
    _, Xm = table()
    with pytest.raises(ValueError, match="rows"):
        PCA(n_components).fit(Xm)


def test_held_out_likelihood_chooses_the_number_of_components() -> None:
    _, Xm = table(400)
    scores = [cross_val_score(PCA(k), Xm).mean() for k in range(1, 6)]
    assert int(np.argmax(scores)) + 1 == 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [False, True])
def test_an_integer_weight_is_repetition(method: str, scale: bool) -> None:
    _, Xm = table(60)
    w = np.random.default_rng(0).integers(0, 4, 60)
    repeated = np.repeat(Xm, w, axis=0)
    keep = (w > 0) & np.isfinite(Xm).any(axis=1)
    assert keep.any()
    options: Any = {"method": method, "tol": 1e-8, "max_iter": 20000}
    ours = fit_incomplete(PCA(2, scale=scale), Xm, sample_weight=w, **options)
    assert_same_fit(ours, fit_incomplete(PCA(2, scale=scale), repeated, **options), 1e-5)


def test_a_row_without_weight_may_be_empty() -> None:
    _, Xm = table(60)
    spoiled = np.vstack([Xm, np.full(7, np.nan)])
    w = np.r_[np.ones(60), 0.0]
    assert_same_fit(PCA(2).fit(spoiled, sample_weight=w), PCA(2).fit(Xm), 1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_files_frames_tensors_and_blocks_give_the_same(method: str, tmp_path: Any, torch: Any) -> None:
    pandas = pytest.importorskip("pandas")
    _, Xm = table()
    np.save(tmp_path / "x.npy", Xm)
    options: Any = {"method": method, "tol": 1e-8, "max_iter": 20000}
    expected = fit_incomplete(PCA(2), Xm, **options)
    with sklearn.config_context(working_memory=0.02):
        assert_same_fit(fit_incomplete(PCA(2), tmp_path / "x.npy", **options), expected, 1e-5)
    frame = fit_incomplete(PCA(2), pandas.DataFrame(Xm, columns=list("abcdefg")), **options)
    assert_same_fit(frame, expected, 1e-8)
    assert list(frame.feature_names_in_) == list("abcdefg")
    tensor = fit_incomplete(PCA(2), torch.asarray(Xm), **options)
    assert isinstance(tensor.components_, torch.Tensor)
    assert_allclose(tensor.components_.numpy(), expected.components_, atol=1e-8)
    narrow = fit_incomplete(PCA(2), Xm.astype(np.float32), **options)
    assert narrow.components_.dtype == np.float32
    assert_allclose(narrow.explained_variance_, expected.explained_variance_, rtol=1e-4)


def test_large_means_cost_no_digits() -> None:
    _, Xm = table()
    near, far = PCA(2).fit(Xm), PCA(2).fit(Xm + 2.0**27)
    assert_allclose(far.explained_variance_, near.explained_variance_, rtol=1e-5)
    assert_allclose(far.transform(Xm + 2.0**27), near.transform(Xm), atol=1e-4)


def test_a_row_or_column_with_nothing_observed_is_refused_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    _, Xm = table()
    empty_row, empty_column = Xm.copy(), Xm.copy()
    empty_row[11] = np.nan
    empty_column[:, 3] = np.nan
    for method in METHODS:
        with pytest.raises(ValueError, match="Row 12"):
            fit_incomplete(PCA(2), empty_row, method=method)
        with pytest.raises(ValueError, match="Column 4 "):
            fit_incomplete(PCA(2), empty_column, method=method)
    with pytest.raises(ValueError, match=r"Column 4 \('d'\)"):
        PCA(2).fit(pandas.DataFrame(empty_column, columns=list("abcdefg")))


def test_infinities_and_sparse_data_are_refused() -> None:
    _, Xm = table()
    with pytest.raises(ValueError, match="NaN"):
        PCA(2).fit(sp.csr_array(Xm))
    Xm[4, 5] = np.inf
    with pytest.raises(ValueError, match="row 5, column 6"):
        PCA(2).fit(Xm)


def test_too_many_components_are_refused() -> None:
    _, Xm = table(6, 8, 0.1)
    with pytest.raises(ValueError, match="at most 5"):
        PCA(6).fit(Xm)
    with pytest.raises(ValueError, match="do not determine"):
        PCA().fit(Xm)
    with pytest.raises(ValueError, match="method"):
        fit_incomplete(PCA(2), Xm, method="magic")
    with pytest.raises(ValueError, match="as a number"):
        fit_incomplete(PCA(), Xm, method="regularised")
    with pytest.raises(ValueError, match="max_iter"):
        fit_incomplete(PCA(2), Xm, max_iter=0)
    for wrong in (1.7, True, -1):
        with pytest.raises(ValueError, match="n_components"):
            fit_incomplete(PCA(wrong), Xm)


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_that_has_not_converged_warns(method: str) -> None:
    _, Xm = table(missing=0.4)
    with pytest.warns(NumericalWarning, match="did not converge"):
        pca = fit_incomplete(PCA(2), Xm, method=method, max_iter=2, tol=1e-12)
    assert not pca.certificate_.converged


def test_data_of_exact_rank_warn_that_there_is_no_maximum() -> None:
    X = np.outer(np.arange(1.0, 31), [1.0, 2.0, 3.0, 4.0])
    X[3, 1] = np.nan
    with pytest.warns(NumericalWarning, match="no maximum"):
        PCA(1).fit(X)


@pytest.mark.parametrize("scale", [False, True])
def test_least_squares_training_cells_are_what_impute_gives(scale: bool) -> None:
    _, Xm = table(missing=0.1)
    pca = fit_incomplete(PCA(2, scale=scale), Xm, method="least-squares", tol=1e-10, max_iter=20000)
    found = gramian.analysis.iterative_pca(
        PCA(2, scale=scale), gramian.open(Xm), 2, method="least-squares", tol=1e-10, max_iter=20000
    )
    assert_allclose(pca.impute(Xm), found.completed(Xm), atol=1e-6)


@pytest.mark.parametrize(("ours", "theirs"), [("regularised", "Regularized"), ("least-squares", "EM")])
def test_the_names_of_missmda_are_understood(ours: str, theirs: str) -> None:
    _, Xm = table()
    assert_same_fit(fit_incomplete(PCA(2), Xm, method=theirs), fit_incomplete(PCA(2), Xm, method=ours), 1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("p", [7, 40])
def test_rows_without_weight_may_hold_anything(method: str, p: int) -> None:
    _, Xm = table(80, p)
    spoiled = np.vstack([Xm, np.full((1, p), 1e200), np.full((1, p), np.inf)])
    w = np.r_[np.ones(80), 0.0, 0.0]
    ours = fit_incomplete(PCA(2), spoiled, method=method, sample_weight=w)
    assert_same_fit(ours, fit_incomplete(PCA(2), Xm, method=method), 1e-5)


@pytest.mark.parametrize("size", [1e160, 1e-160])
def test_values_float64_cannot_square_are_refused(size: float) -> None:
    _, Xm = table()
    with pytest.raises(ValueError, match="Multiply the data"):
        PCA(2).fit(Xm * size)


def test_fractional_weights_must_leave_rows_enough() -> None:
    _, Xm = table()
    with pytest.raises(ValueError, match="weights"):
        fit_incomplete(PCA(4), Xm, method="regularised", sample_weight=np.full(120, 0.02))


def test_a_density_needs_no_noise_where_all_components_are_kept() -> None:
    _, Xm = table()
    pca = PCA().fit(Xm)
    C = pca.get_covariance()
    expected = []
    for x in Xm:
        o = ~np.isnan(x)
        expected.append(multivariate_normal.logpdf(x[o], pca.mean_[o], C[np.ix_(o, o)]))
    assert_allclose(pca.score_samples(Xm), expected, rtol=1e-8)


def test_the_tolerance_of_the_constructor_is_that_of_the_fit() -> None:
    _, Xm = table()
    assert PCA(2, tol=1e-7).fit(Xm).certificate_.tolerance == 1e-7


@pytest.mark.parametrize("spread", [1.0, 1e-4])
def test_breast_cancer_with_and_without_scaling_is_one_model(spread: float) -> None:
    """The whole covariance does not depend on the units of the columns, nor does its certificate."""
    data = load_breast_cancer().data
    X = np.where(np.random.default_rng(0).random(data.shape) < 0.1, np.nan, data * spread)
    plain, scaled = PCA().fit(X), PCA(scale=True).fit(X)
    assert plain.certificate_.converged
    assert scaled.certificate_.converged
    assert_allclose(plain.certificate_.objective[-1], scaled.certificate_.objective[-1], rtol=1e-9)


def test_regularised_training_cells_are_the_conditional_expectations() -> None:
    """What iterative PCA fills in is what the model it ends with expects: one model, two roads to it."""
    _, Xm = table()
    pca = fit_incomplete(PCA(2), Xm, method="regularised", tol=1e-10, max_iter=20000)
    found = gramian.analysis.iterative_pca(PCA(2), gramian.open(Xm), 2, tol=1e-10, max_iter=20000)
    assert_allclose(pca.impute(Xm), found.completed(Xm), atol=1e-6)


def test_pipelines_clones_and_pickles() -> None:
    truth, Xm = table()
    y = truth @ np.arange(7.0)
    model = make_pipeline(PCA(2, scale=True), LinearRegression()).fit(Xm, y)
    assert model.score(Xm, y) > 0.5
    pca = PCA(2).fit(Xm)
    again = pickle.loads(pickle.dumps(pca))
    assert_allclose(again.transform(Xm), pca.transform(Xm), rtol=0)
    assert clone(pca).get_params() == pca.get_params()
    assert pca.set_output(transform="pandas").transform(Xm).shape == (120, 2)


def test_refitting_complete_data_forgets_the_missing_cells() -> None:
    X, Xm = table()
    pca = PCA(2).fit(Xm)
    assert isinstance(pca.fit(X).certificate_, Certificate)


@pytest.mark.parametrize("k", [1, 2, None])
def test_standardised_columns_have_variance_one_in_the_model(k: int | None) -> None:
    """Whatever is missing, the variances of p standardised columns sum to p; all of them are the plain fit's."""
    _, Xm = table(200, 6, 0.3)
    pca = PCA(k, scale=True, tol=1e-7).fit(Xm)
    assert pca.certificate_.converged
    left = 6 - pca.n_components_
    assert_allclose(pca.explained_variance_.sum() + left * pca.noise_variance_, 6.0, rtol=1e-7)
    if k is None:
        plain = PCA(tol=1e-7).fit(Xm)
        assert_allclose(pca.get_covariance(), plain.get_covariance(), rtol=1e-5, atol=1e-5)
        assert_allclose(pca.scale_**2, np.diag(plain.get_covariance()), rtol=1e-5)


def planets(n: int = 800, *, far: int = 12, seed: int = 0) -> Array:
    """Number, orbital period, mass, distance and year: the mass of half is unknown, and of those that are far out."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    period = np.minimum(np.exp(4 + 2.2 * z[:, 0]), 5000.0)
    mass = 0.006 * period + np.exp(0.2 + 1.1 * rng.normal(size=n))
    distance = np.exp(4 + 0.6 * rng.normal(size=n) + 0.5 * z[:, 1])
    year = np.round(2009 + 2.5 * z[:, 1] + 2 * rng.normal(size=n))
    lost = rng.random((n, 5)) < [0, 0.1, 0.5, 0.25, 0]
    rows = rng.permutation(n)[:far]
    period[rows], lost[rows] = 10 ** rng.uniform(4, 4.9, far), [False, False, True, False, False]
    X = np.column_stack([1.0 + rng.poisson(0.8, n), period, mass, distance, year])
    return np.where(lost, np.nan, X)


def test_two_components_of_a_table_full_of_gaps_are_those_of_its_complete_rows() -> None:
    X = planets(far=0)
    whole = X[~np.isnan(X).any(axis=1)]
    assert len(whole) < 0.4 * len(X)
    pca, complete = PCA(2, scale=True).fit(X), PCA(2, scale=True).fit(whole)
    assert pca.certificate_.converged
    assert_allclose(pca.explained_variance_ratio_, complete.explained_variance_ratio_, atol=0.06)
    assert subspace_sine(pca.components_.T, complete.components_.T) < 0.25


def test_what_was_extrapolated_is_not_kept_by_default_and_warned_about_where_asked_for() -> None:
    """Rows without a mass lie far outside those with one: their masses would have dozens of times the variance."""
    X = planets()
    pca = PCA(scale=True).fit(X)
    assert pca.n_components_ < 5
    assert pca.certificate_.converged
    assert any("held-out" in note for note in pca.certificate_.notes)
    assert pca.explained_variance_ratio_[0] < 0.35
    with pytest.warns(NumericalWarning, match="extrapolated"):
        assert PCA(5, scale=True).fit(X).n_components_ == 5


def test_columns_never_seen_together_do_not_determine_all_components() -> None:
    truth, _ = table(150, 5)
    truth[:75, 0], truth[75:, 1] = np.nan, np.nan
    pca = PCA().fit(truth)
    assert pca.n_components_ == 2  # the two of the table, by held-out cells
    with pytest.raises(ValueError, match="observed together in 0 rows"):
        PCA(5).fit(truth)


def test_held_out_cells_choose_the_number() -> None:
    _, Xm = table(150, 9, 0.2)
    pca = PCA("cv").fit(Xm)
    assert pca.n_components_ == 2
    assert "2 components by held-out cells" in pca.certificate_.notes[-1]
    assert_same_fit(pca, PCA(2).fit(Xm), 1e-6)


@pytest.mark.parametrize("rule", ["parallel", "bi-cv", "broken-stick", "mle"])
def test_every_other_rule_for_the_number_says_where_a_cell_is_missing_and_what_works(rule):
    X = np.random.default_rng(0).normal(size=(20, 4))
    X[2, 1] = np.nan
    with pytest.raises(SourceError, match=r"row 3 has NaN in column 2 .* a number, a fraction, or 'cv'") as raised:
        PCA(rule).fit(X)
    assert raised.value.missing


def test_complete_rows_by_a_rule_are_not_fitted_as_incomplete():
    with pytest.raises(ValueError, match=r"'parallel' is for PCA\.fit"):
        fit_incomplete(PCA("parallel"), np.random.default_rng(0).normal(size=(20, 4)))
