"""The choice of a penalty: scikit-learn's numbers, brute force, and formulas written out."""

import tracemalloc
import warnings
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import RidgeCV as SklearnRidgeCV
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from gramian import NumericalWarning
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.ridge.path import automatic_grid
from oracles import Array, with_spectrum

GRID = np.geomspace(0.05, 500, 8)
SHAPES = [(40, 5), (15, 30), (20, 19), (20, 20)]


def data(n: int, p: int, t: int = 2, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.uniform(-2, 2, p)
    return X, X[:, :3] @ rng.normal(size=(min(p, 3), t)) + rng.normal(size=(n, t))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("options", [{}, {"alpha_per_target": True}, {"scoring": "r2"}, {"gcv_mode": "svd"}])
@pytest.mark.parametrize("columns", [None, 1, 2])
def test_everything_is_as_in_scikit_learn(
    shape: tuple[int, int], weighted: bool, intercept: bool, options: dict[str, Any], columns: int | None
) -> None:
    X, Y = data(*shape)
    y = Y[:, 0] if columns is None else Y[:, :columns]
    w = np.random.default_rng(5).uniform(0.3, 2, len(X)) if weighted else None
    if columns != 2:
        options = {k: v for k, v in options.items() if k != "alpha_per_target"}
    given = {"alphas": GRID, "fit_intercept": intercept, "store_cv_results": True, **options}
    known, ours = (m(**given).fit(X, y, sample_weight=w) for m in (SklearnRidgeCV, RidgeCV))
    assert_array_equal(ours.alpha_, known.alpha_)
    assert_allclose(ours.best_score_, known.best_score_, rtol=1e-8)
    assert_allclose(ours.coef_, known.coef_, rtol=0, atol=1e-9 * np.max(np.abs(known.coef_)))
    assert_allclose(ours.intercept_, known.intercept_, rtol=0, atol=1e-9)
    assert ours.cv_results_.shape == known.cv_results_.shape
    assert_allclose(ours.cv_results_, known.cv_results_, rtol=0, atol=1e-8 * np.max(np.abs(known.cv_results_)))
    assert_allclose(ours.predict(X), known.predict(X), rtol=0, atol=1e-9)
    assert ours.certificate_.converged


def brute_force(X: Array, y: Array, alpha: float, w: Array, intercept: bool) -> Array:
    """y_i − ŷ_i of each row with it left out and the rest fitted again."""
    errors = np.zeros(len(X))
    for i in range(len(X)):
        v = w.copy()
        v[i] = 0.0
        A = np.c_[np.ones(len(X)), X] if intercept else X
        P = alpha * np.eye(A.shape[1])
        P[0, 0] = 0.0 if intercept else alpha
        beta = np.linalg.solve(A.T @ (v[:, None] * A) + P, A.T @ (v * y))
        errors[i] = y[i] - A[i] @ beta
    return errors


@pytest.mark.parametrize("shape", [(12, 3), (7, 11), (8, 7)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("counts", [True, False])
def test_leaving_out_is_what_it_says(shape: tuple[int, int], intercept: bool, counts: bool) -> None:
    X, Y = data(*shape)
    rng = np.random.default_rng(7)
    w = rng.integers(1, 4, len(X)).astype(float) if counts else rng.uniform(0.3, 2, len(X))
    model = RidgeCV(GRID, fit_intercept=intercept, store_cv_results=True).fit(X, Y, sample_weight=w)
    for j in range(2):
        for k, alpha in enumerate(GRID):
            errors = brute_force(X, Y[:, j], alpha, w, intercept)
            assert_allclose(model.cv_results_[:, j, k], w * errors**2, rtol=1e-7, atol=1e-10)
            mean = w @ errors**2 / (w.sum() if counts else len(X))
            assert model.path_.loo[k, j] == pytest.approx(mean, rel=1e-8)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 12),
    p=st.integers(1, 14),
    intercept=st.booleans(),
    whole=st.booleans(),
    per_target=st.booleans(),
)
def test_weights_choose_as_in_scikit_learn(
    seed: int, n: int, p: int, intercept: bool, whole: bool, per_target: bool
) -> None:
    X, Y = data(n, p, seed=seed)
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 5, n) if whole else rng.uniform(0.2, 3.0, n)
    options: dict[str, Any] = {"fit_intercept": intercept, "alpha_per_target": per_target, "store_cv_results": True}
    ours = RidgeCV(GRID, **options).fit(X, Y, sample_weight=w)
    theirs = SklearnRidgeCV(GRID, **options).fit(X, Y, sample_weight=w)
    assert_array_equal(ours.alpha_, theirs.alpha_)
    assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-6)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-5, atol=1e-8)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 12),
    p=st.integers(1, 14),
    intercept=st.booleans(),
    criterion=st.sampled_from(["gcv", "marginal_likelihood"]),
    per_target=st.booleans(),
)
def test_counts_are_repeated_rows(seed: int, n: int, p: int, intercept: bool, criterion: str, per_target: bool) -> None:
    X, Y = data(n, p, seed=seed)
    w = np.random.default_rng(seed).integers(0, 4, n)
    w[:3] += 1
    model = RidgeCV(GRID, fit_intercept=intercept, criterion=criterion, alpha_per_target=per_target)
    one = clone(model).fit(X, Y, sample_weight=w)
    many = clone(model).fit(X.repeat(w, axis=0), Y.repeat(w, axis=0))
    assert_array_equal(one.alpha_, many.alpha_)
    assert_allclose(one.best_score_, many.best_score_, rtol=1e-7)
    assert_allclose(one.coef_, many.coef_, rtol=1e-7, atol=1e-10)
    for name in ("gcv", "log_marginal_likelihood", "dof", "noise_variance"):
        assert_allclose(getattr(one.path_, name), getattr(many.path_, name), rtol=1e-6, err_msg=name)


def test_interpolation_does_not_cancel() -> None:
    """With p > n and a tiny λ the residuals and 1 − H_ii are both of the size of λ: sixty digits see their ratio."""
    X, Y = data(6, 9)
    lam = 1e-9
    with mpmath.workdps(60):
        A = mpmath.matrix([[mpmath.mpf(float(v)) for v in row] for row in X])
        y = mpmath.matrix([mpmath.mpf(float(v)) for v in Y[:, 0]])
        K = A * A.T + lam * mpmath.eye(6)
        inverse = K**-1
        a = inverse * y
        exact = [float((a[i] / inverse[i, i]) ** 2) for i in range(6)]
    model = RidgeCV([lam], fit_intercept=False, store_cv_results=True).fit(X, Y[:, 0])
    assert_allclose(model.cv_results_[:, 0], exact, rtol=1e-9)


def test_generalised_cross_validation_is_its_formula() -> None:
    X, Y = data(25, 5)
    w = np.random.default_rng(3).uniform(0.2, 2, 25)
    model = RidgeCV(GRID, criterion="gcv", alpha_per_target=True).fit(X, Y, sample_weight=w)
    A = np.c_[np.ones(25), X]
    values = np.zeros((len(GRID), 2))
    for k, alpha in enumerate(GRID):
        hat = A @ np.linalg.solve(A.T @ (w[:, None] * A) + np.diag([0.0, *[alpha] * 5]), A.T * w)
        dof = np.trace(hat)
        values[k] = (w @ (Y - hat @ Y) ** 2 / 25) / (1 - dof / 25) ** 2
        assert model.path_.dof[k] == pytest.approx(dof, rel=1e-10)
    assert_allclose(model.path_.gcv, values, rtol=1e-9)
    assert_array_equal(model.alpha_, GRID[np.argmin(values, axis=0)])
    assert_allclose(model.best_score_, -values.min(axis=0), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_marginal_likelihood_is_that_of_a_normal_distribution(weighted: bool) -> None:
    X, Y = data(20, 4, t=1)
    y = Y[:, 0]
    w = np.random.default_rng(3).uniform(0.2, 2, 20) if weighted else np.ones(20)
    model = RidgeCV(GRID, criterion="marginal_likelihood", fit_intercept=False).fit(X, y, sample_weight=w)
    values = []
    for alpha in GRID:
        shape = np.diag(1 / w) + X @ X.T / alpha
        scale = float(y @ np.linalg.solve(shape, y)) / 20  # the most likely noise variance
        values.append(stats.multivariate_normal(np.zeros(20), scale * shape).logpdf(y))
    assert_allclose(model.path_.log_marginal_likelihood[:, 0], values, rtol=1e-9)
    assert model.alpha_ == GRID[int(np.argmax(values))]
    assert model.best_score_ == pytest.approx(max(values), rel=1e-9)


def test_the_path_is_the_fits_one_by_one() -> None:
    X, Y = data(30, 4)
    for Z in (X, X.T[:, :4] @ np.ones((4, 9)) + np.random.default_rng(0).normal(size=(4, 9))):
        y = Y[: len(Z)]
        path = RidgeCV(GRID).fit(Z, y).path_
        for k, alpha in enumerate(GRID):
            one = Ridge(alpha, solver="svd").fit(Z, y)
            assert_allclose(path.coef[k], one.coef_, rtol=1e-8, atol=1e-11)
            assert_allclose(path.intercept[k], one.intercept_, rtol=1e-8, atol=1e-11)
            assert path.dof[k] == pytest.approx(one.dof_, rel=1e-9)
            assert_allclose(path.noise_variance[k], one.noise_variance_, rtol=1e-8)
    assert_allclose(path.singular_values, np.linalg.svd(Z - Z.mean(axis=0))[1][: len(path.singular_values)], atol=1e-10)


def test_ill_conditioned_data_are_decomposed_themselves() -> None:
    X = with_spectrum(40, 5, np.geomspace(1, 1e-7, 5), seed=1)
    y = np.random.default_rng(0).normal(size=40)
    grid = np.geomspace(1e-13, 1e-1, 7)
    rough, fine = RidgeCV(grid, store_cv_results=True).fit(X, y), RidgeCV(grid, gcv_mode="svd").fit(X, y)
    assert rough.solver_ == fine.solver_ == "svd"
    assert "not safe" in " ".join(rough.certificate_.notes)
    errors = brute_force(X, y, grid[0], np.ones(40), True)
    assert_allclose(rough.cv_results_[:, 0], errors**2, rtol=1e-2)  # the oracle's own condition number is 1e13
    assert RidgeCV(GRID).fit(X, y).solver_ == "cholesky"


@pytest.mark.parametrize("shape", [(60, 6), (10, 40)])
def test_automatic_grid_goes_from_all_degrees_of_freedom_to_none(shape: tuple[int, int]) -> None:
    X, Y = data(*shape)
    for size in (1.0, 1e-20, 1e40):
        model = RidgeCV("auto").fit(X * size, Y)
        rank = min(shape[0] - 1, shape[1])
        first = automatic_grid(model.path_.singular_values**2)
        assert len(first) == 50
        i = int(np.argmin(np.abs(np.log(model.path_.alphas / first[0]))))  # the first of them, where it was continued
        assert_allclose(model.path_.alphas[i : i + 50], first, rtol=1e-9)
        assert_allclose(model.path_.dof[[i, i + 49]] - 1, [0.99 * rank, 0.01 * rank], rtol=1e-6)
    with pytest.raises(ValueError, match="float64"):
        RidgeCV("auto").fit(X * 1e-200, Y)


def test_an_automatic_grid_is_continued_until_the_best_is_inside() -> None:
    """Of columns with little noise the best λ lies below the 50 values, and least squares where there is none."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 5))
    w = rng.normal(size=5)
    y = X @ w + 0.02 * rng.normal(size=80)
    model = RidgeCV("auto").fit(X, y)
    alphas, loo = model.path_.alphas, model.path_.loo[:, 0]
    assert len(alphas) > 50
    assert model.alpha_ < automatic_grid(model.path_.singular_values**2)[0]
    i = int(np.flatnonzero(alphas == model.alpha_)[0])
    assert 0 < i < len(alphas) - 1
    assert loo[i] == np.min(loo)
    assert not model.certificate_.notes
    fine = RidgeCV(np.geomspace(alphas[0], alphas[-1], 2000)).fit(X, y)  # the true minimum is within one step
    assert alphas[i - 1] <= fine.alpha_ <= alphas[i + 1]
    noisy = RidgeCV("auto").fit(X, rng.normal(size=80))
    assert any("largest" in note for note in noisy.certificate_.notes) == (noisy.alpha_ == noisy.path_.alphas.max())


def test_facts_of_a_fit_are_attributes() -> None:
    X, Y = data(30, 4)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    for intercept in (True, False):
        for model in (
            RidgeCV(GRID, fit_intercept=intercept, alpha_per_target=True),
            Ridge(0.3, fit_intercept=intercept),
            Ridge(0.3, fit_intercept=intercept, solver="cg", tol=1e-12),
        ):
            model.fit(X, Y, sample_weight=w)
            F = model.predict(X)
            assert_allclose(model.training_error_, np.sqrt(w @ (Y - F) ** 2 / w.sum()), rtol=1e-8)
            assert_allclose(model.r2_, r2_score(Y, F, sample_weight=w, multioutput="raw_values"), rtol=1e-8)
        cv = RidgeCV(GRID, fit_intercept=intercept).fit(X, Y[:, 0], sample_weight=w)
        errors = brute_force(X, Y[:, 0], cv.alpha_, w, intercept)
        assert cv.leave_one_out_error_ == pytest.approx(np.sqrt(w @ errors**2 / w.sum()), rel=1e-8)
    assert Ridge().fit(X, np.ones(30)).r2_ == 1.0


def test_errors_that_rounding_hides_are_not_shown() -> None:
    """Rows far longer than λ: 1 − h is rounding, and what it divides is not an error of anything."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 300)) * np.geomspace(1, 1e-9, 300)
    X[0] *= 1e12
    y = rng.normal(size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        model = RidgeCV([1e-14, 1e4]).fit(X, y)
    loo = model.path_.loo[:, 0]
    assert np.isnan(loo[0]) or loo[0] < 1e6
    assert np.all(np.isfinite(RidgeCV("auto").fit(X[:, :5], y, np.arange(400) > 0).path_.loo))


def test_the_ends_of_a_grid_are_pointed_out() -> None:
    X, Y = data(40, 4)
    assert any("smallest of the 2" in note for note in RidgeCV([1e3, 1e5]).fit(X, Y).certificate_.notes)
    assert not RidgeCV([1.0]).fit(X, Y).certificate_.notes


def absolute(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return -float(mean_absolute_error(y, model.predict(X), sample_weight=sample_weight))


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", absolute, make_scorer(mean_absolute_error)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("per_target", [False, True])
def test_scores_of_all_kinds(scoring: Any, weighted: bool, per_target: bool) -> None:
    X, Y = data(25, 4)
    w = np.random.default_rng(5).uniform(0.3, 2, 25) if weighted else None
    options = {"alphas": GRID, "scoring": scoring, "alpha_per_target": per_target}
    known, ours = (m(**options).fit(X, Y, sample_weight=w) for m in (SklearnRidgeCV, RidgeCV))
    assert_array_equal(ours.alpha_, known.alpha_)
    assert_allclose(ours.best_score_, known.best_score_, rtol=1e-9)


def test_scores_with_little_memory_are_the_same() -> None:
    X, Y = data(50, 4)
    plenty = RidgeCV(GRID, scoring="r2").fit(X, Y)
    with config_context(working_memory=1e-3):
        little = RidgeCV(GRID, scoring="r2").fit(X, Y)
    assert little.best_score_ == pytest.approx(plenty.best_score_, rel=1e-12)
    assert little.certificate_.passes > plenty.certificate_.passes


@pytest.mark.parametrize("cv", [3, KFold(4)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_folds_are_scikit_learn_s(cv: Any, weighted: bool, convert: Any) -> None:
    X, Y = data(30, 4)
    w = np.random.default_rng(5).uniform(0.3, 2, 30) if weighted else None
    known = SklearnRidgeCV(GRID, cv=cv).fit(X, Y, sample_weight=w)
    ours = RidgeCV(GRID, cv=cv).fit(convert(X), Y, sample_weight=w)
    assert ours.alpha_ == known.alpha_
    assert ours.best_score_ == pytest.approx(known.best_score_, rel=1e-9)
    assert_allclose(ours.coef_, known.coef_, rtol=1e-9)
    assert not hasattr(ours, "path_")


def test_folds_for_each_target() -> None:
    X, Y = data(30, 4)
    both = RidgeCV(GRID, cv=3, alpha_per_target=True).fit(X, Y)
    for j in range(2):
        one = RidgeCV(GRID, cv=3).fit(X, Y[:, j])
        assert both.alpha_[j] == one.alpha_
        assert_allclose(both.coef_[j], one.coef_, rtol=1e-10)


def test_many_targets_at_once_are_the_same_as_one_by_one() -> None:
    X, _ = data(60, 5)
    Y = X[:, :3] @ np.random.default_rng(1).normal(size=(3, 700)) + np.random.default_rng(2).normal(size=(60, 700))
    together = RidgeCV(np.geomspace(0.1, 1e3, 40), alpha_per_target=True).fit(X, Y)
    for j in (0, 350, 699):
        alone = RidgeCV(np.geomspace(0.1, 1e3, 40)).fit(X, Y[:, j])
        assert together.alpha_[j] == alone.alpha_
        assert_allclose(together.path_.loo[:, j], alone.path_.loo[:, 0], rtol=1e-11)


def test_errors_of_all_rows_are_not_kept_unless_asked_for() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20_000, 5)), rng.normal(size=(20_000, 8))
    grid = np.geomspace(1, 1e3, 40)
    RidgeCV(grid).fit(X[:50], Y[:50])
    tracemalloc.start()
    RidgeCV(grid).fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * 20_000 * 40 * 8 * 8


def test_rows_of_weight_zero_are_not_there() -> None:
    X, Y = data(20, 4)
    w = np.where(np.arange(20) < 5, 0.0, np.linspace(0.5, 1.4, 20))
    for Z in (X, np.tile(X, 6)):
        all_, some = (
            RidgeCV(GRID, store_cv_results=True).fit(A, B, sample_weight=v)
            for A, B, v in ((Z, Y, w), (Z[5:], Y[5:], w[5:]))
        )
        # scikit-learn's mean is over all rows, those without weight too
        assert 20 * all_.best_score_ == pytest.approx(15 * some.best_score_, rel=1e-9)
        assert_allclose(all_.cv_results_[5:], some.cv_results_, rtol=1e-7, atol=1e-12)
        assert_array_equal(all_.cv_results_[:5], 0.0)
        scored = RidgeCV(GRID, scoring="r2").fit(Z, Y, sample_weight=w)
        assert scored.best_score_ == pytest.approx(
            RidgeCV(GRID, scoring="r2").fit(Z[5:], Y[5:], sample_weight=w[5:]).best_score_, rel=1e-9
        )


def test_a_row_that_determines_its_own_fit_is_pointed_out() -> None:
    X = np.zeros((6, 2))
    X[:5, 0] = np.arange(5.0)
    X[5, 1] = 1e9  # the only row that knows of the second column: its leverage is 1 to the last digit
    with pytest.warns(NumericalWarning, match="leave-one-out"):
        model = RidgeCV([1e-3, 1e3], fit_intercept=False, store_cv_results=True).fit(X, np.arange(6.0))
    assert_allclose(model.cv_results_[5], 25.0)  # the others know nothing of its column and predict 0
    errors = brute_force(X[:5, :1], np.arange(5.0), 1e3, np.ones(5), False)
    assert_allclose(model.cv_results_[:5, 1], errors**2, rtol=1e-9, atol=1e-25)


@pytest.mark.parametrize("size", [1e-200, 1e-70, 1e70, 1e150])
def test_sizes_of_the_target(size: float) -> None:
    X, Y = data(40, 4)
    one, other = RidgeCV(GRID).fit(X, Y), RidgeCV(GRID).fit(X, Y * size)
    assert one.alpha_ == other.alpha_
    assert_allclose(other.coef_ / size, one.coef_, rtol=1e-10)


def test_float32() -> None:
    X, Y = data(40, 4)
    model = RidgeCV(GRID, store_cv_results=True).fit(X.astype(np.float32), Y)
    known = SklearnRidgeCV(GRID, store_cv_results=True).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == model.cv_results_.dtype == np.float32  # scikit-learn's are float64 before 1.8
    assert_allclose(model.coef_, known.coef_, rtol=1e-5)
    assert model.alpha_ == known.alpha_


def test_scripts_for_scikit_learn_run() -> None:
    X, Y = data(60, 3)
    steps = (StandardScaler(), PolynomialFeatures(2, include_bias=False))
    ours, known = (make_pipeline(*map(clone, steps), m(GRID)).fit(X, Y) for m in (RidgeCV, SklearnRidgeCV))
    assert_allclose(ours.predict(X), known.predict(X), rtol=1e-9)
    assert RidgeCV(0.5).fit(X, Y).alpha_ == 0.5


def test_metadata_is_routed_to_the_scorer() -> None:
    X, Y = data(30, 3)
    w = np.random.default_rng(0).uniform(0.5, 2, 30)
    scorer: Any = make_scorer(mean_absolute_error, greater_is_better=False)
    with config_context(enable_metadata_routing=True):
        scorer = scorer.set_score_request(sample_weight=True)
        models = [m(GRID, scoring=scorer).set_fit_request(sample_weight=True) for m in (RidgeCV, SklearnRidgeCV)]
        ours, known = (model.fit(X, Y, sample_weight=w) for model in models)
        folds, theirs = (m(GRID, cv=3).fit(X, Y, sample_weight=w) for m in (RidgeCV, SklearnRidgeCV))
    assert ours.best_score_ == pytest.approx(known.best_score_, rel=1e-9)
    assert folds.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": [1.0, 0.0]}, r"alphas\[1\] == 0.0"),
        ({"alphas": [-1.0]}, "alphas == -1.0"),
        ({"alphas": []}, "one or more numbers"),
        ({"alphas": "best"}, "alphas must be one of auto"),
        ({"criterion": "aic"}, "criterion must be one of"),
        ({"gcv_mode": "fast"}, "gcv_mode must be one of"),
        ({"cv": 3, "store_cv_results": True}, "store_cv_results=True are incompatible"),
        ({"cv": 3, "alphas": "auto"}, "give the values"),
        ({"criterion": "gcv", "scoring": "r2"}, "leave out scoring"),
    ],
)
def test_refusals_name_the_parameter(options: dict[str, Any], message: str) -> None:
    X, Y = data(10, 3)
    with pytest.raises(ValueError, match=message):
        RidgeCV(**options).fit(X, Y)


def test_other_refusals() -> None:
    X, Y = data(10, 3)
    with pytest.raises(TypeError, match=r"alphas\[0\]"):
        RidgeCV(["a", 1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="metadata"):
        RidgeCV().fit(X, Y, groups=np.ones(10))
    with pytest.raises(ValueError, match="indexed"):
        RidgeCV(cv=3).fit("x.npy", Y)
    with pytest.raises(ValueError, match="1 sample"):
        RidgeCV().fit(X[:1], Y[:1])
