"""Predictions with bounds and standard deviations: each formula by matrices of its own, each choice on both sides."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.stats
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

from gramian import KernelRidge
from gramian.kernel_ridge import uncertainty
from gramian.kernel_ridge.uncertainty import Posterior
from gramian.kernels import Gaussian, Linear, Polynomial
from gramian.results import NumericalWarning
from oracles import Array

EPS = 2.0**-52
RNG = np.random.default_rng(12)
X = RNG.standard_normal((40, 3))
Y = np.column_stack([np.sin(X.sum(axis=1)), X[:, 0] - 7.0]) + 0.1 * RNG.standard_normal((40, 2))
NEW = 1.5 * RNG.standard_normal((9, 3))
WEIGHTS = RNG.uniform(0.2, 3.0, 40)
KERNEL = Polynomial(2, coef0=1.0, gamma=0.5)  # whose k(x, x) are not all 1


def fit(targets: Array = Y, alpha: Any = 0.3, weights: Any = None, **options: Any) -> KernelRidge:
    return KernelRidge(alpha, **{"kernel": KERNEL, **options}).fit(X, targets, sample_weight=weights)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alone", "weighted"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
def test_bounds_are_those_of_the_formula(solver: str, intercept: bool, weights: Any) -> None:
    """‖φ(x)‖ or ‖φ(x) − φ̄‖ times the certificate's, and 4ε(8+√n)(‖φ(x)‖ + l)Σ|α|l + 4ε(|b| + m), l = max ‖φ(x_i)‖."""
    model = fit(weights=weights, solver=solver, fit_intercept=intercept)
    values, bounds = model.predict(NEW, return_bound=True)
    share = (np.ones(40) if weights is None else weights) / (40 if weights is None else weights.sum())
    K, own, rows = KERNEL(X), np.diag(KERNEL(NEW)), KERNEL(NEW, X)
    squares = own - 2 * rows @ share + share @ K @ share if intercept else own
    alpha, b = model.dual_coef_, np.atleast_1d(model.intercept_)
    assert_allclose(values, rows @ alpha + b, rtol=1e-11)
    longest = np.sqrt(np.diag(K).max())
    level = (share @ np.abs(Y)).max() * (1 + np.sqrt(40) / 16) if intercept else 0.0  # what a mean can round by
    rounding = 4 * EPS * (8 + np.sqrt(40)) * np.outer(np.sqrt(own) + longest, np.abs(alpha).sum(axis=0) * longest)
    rounding = rounding + 4 * EPS * (np.abs(b) + level)
    assert_allclose(bounds, np.outer(np.sqrt(squares), model.certificate_.error_bounds) + rounding, rtol=1e-10)
    # each of the parts can be seen in the sum
    assert rounding.min() > 1e-6 * bounds.max()
    assert np.outer(np.sqrt(squares), model.certificate_.error_bounds).min() > 1e-6 * bounds.max()


def test_bounds_of_a_model_far_from_zero_count_its_intercept() -> None:
    near, far = (fit(Y[:, :1] + level, fit_intercept=True, solver="eigh") for level in (0.0, 1e9))
    bounds = far.predict(NEW, return_bound=True)[1]
    assert np.all(bounds >= 4 * EPS * (np.abs(far.intercept_) + 1e9))
    assert np.all(bounds > 1e3 * near.predict(NEW, return_bound=True)[1])


@pytest.mark.parametrize("intercept", [False, True])
def test_bounds_of_landmarks_are_lengths_times_the_certificate(intercept: bool) -> None:
    kernel = Gaussian(0.4)
    model = fit(kernel=kernel, solver="landmarks", n_landmarks=12, fit_intercept=intercept, random_state=0)
    _, bounds = model.predict(NEW, return_bound=True)
    own = np.diag(kernel(NEW))
    centre = kernel(X).mean() - 2 * kernel(NEW, X).mean(axis=1) if intercept else 0.0
    least = np.outer(np.sqrt(own + centre), model.certificate_.error_bounds)
    assert np.all(bounds >= least)
    if not intercept:
        assert_allclose(bounds, least, rtol=1e-6)


def test_what_is_returned_has_the_shape_of_the_targets_and_the_order_asked_for() -> None:
    for targets, shape in ((Y[:, 0], (9,)), (Y[:, :1], (9, 1)), (Y, (9, 2))):
        model = fit(targets)
        plain = model.predict(NEW)
        assert isinstance(plain, np.ndarray)
        both = model.predict(NEW, return_std=True, return_bound=True)
        assert [each.shape for each in both] == [shape] * 3
        std, bound = model.predict(NEW, return_std=True), model.predict(NEW, return_bound=True)
        assert len(std) == len(bound) == 2
        assert_array_equal(both[0], plain)
        assert_array_equal(both[1], std[1])
        assert_array_equal(both[2], bound[1])
        assert std[1].min() > 1e3 * bound[1].max()


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alone", "weighted"])
@pytest.mark.parametrize("intercept", [False, True])
def test_variances_are_those_of_the_gaussian_process(intercept: bool, weights: Any) -> None:
    alphas = np.array([0.3, 5.0])
    model = fit(alpha=alphas, weights=weights, fit_intercept=intercept)
    K, k, own = KERNEL(X), KERNEL(NEW, X), np.diag(KERNEL(NEW))
    _, std = model.predict(NEW, return_std=True)
    for j, lam in enumerate(alphas):
        A = np.linalg.inv(K + lam * np.diag(1 / (np.ones(40) if weights is None else weights)))
        left = own - np.einsum("ij,jk,ik->i", k, A, k)
        if intercept:
            left = left + (1 - k @ A.sum(axis=1)) ** 2 / A.sum()
        assert_allclose(std[:, j] ** 2, model.noise_variance_[j] * (1 + left / lam), rtol=1e-8)


def test_a_target_without_noise_has_no_variance_beside_one_that_has() -> None:
    model = fit(alpha=np.array([0.0, 0.3]), kernel=Gaussian(0.4))
    std = model.predict(NEW, return_std=True)[1]
    assert np.isnan(std[:, 0]).all()
    assert np.isfinite(std[:, 1]).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_are_students(intercept: bool, level: float) -> None:
    model = fit(fit_intercept=intercept)
    f, std = model.predict(NEW, return_std=True)
    quantile = scipy.stats.t(40 - intercept).ppf((1 + level) / 2)
    lower, upper = model.predict_interval(NEW, level)
    assert_allclose(lower, f - quantile * std, rtol=1e-12)
    assert_allclose(upper, f + quantile * std, rtol=1e-12)
    inside = np.sqrt(std**2 - model.noise_variance_)
    lower, upper = model.predict_interval(NEW, level, kind="mean")
    assert_allclose(lower, f - quantile * inside, rtol=1e-10)
    assert_allclose(upper, f + quantile * inside, rtol=1e-10)
    if level == 0.95:
        assert_array_equal(model.predict_interval(NEW), model.predict_interval(NEW, 0.95))


def test_intervals_of_one_row_have_one_degree_of_freedom() -> None:
    for intercept in (False, True):
        model = KernelRidge(0.3, kernel="rbf", fit_intercept=intercept).fit(X[:1], [2.0])
        if not np.all(np.isfinite(np.atleast_1d(model.noise_variance_))):
            continue
        f, std = model.predict(NEW, return_std=True)
        assert_allclose(model.predict_interval(NEW)[1], f + scipy.stats.t(1).ppf(0.975) * std, rtol=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_levels_that_are_no_probabilities_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        fit().predict_interval(NEW, level)


def test_a_mean_at_a_training_row_has_an_interval_where_rounding_leaves_no_variance() -> None:
    model = KernelRidge(1e12, kernel=Linear()).fit(X, Y[:, 0])
    lower, upper = model.predict_interval(np.zeros((1, 3)), kind="mean")
    assert_allclose(lower, upper, atol=1e-6)
    assert np.all(np.isfinite(lower))


def test_a_kernel_matrix_does_not_say_how_far_new_rows_are() -> None:
    model = KernelRidge(0.3, kernel="precomputed").fit(KERNEL(X), Y)
    assert_allclose(model.predict(KERNEL(NEW, X)), fit().predict(NEW), rtol=1e-8)
    for ask in (
        lambda: model.predict(KERNEL(NEW, X), return_std=True),
        lambda: model.predict_interval(KERNEL(NEW, X)),
        model.std_method,
    ):
        with pytest.raises(ValueError, match="variance"):
            ask()
    with pytest.raises(ValueError, match="bound"):
        model.predict(KERNEL(NEW, X), return_bound=True)


def test_what_has_no_bound_says_why_and_predicts_all_the_same() -> None:
    with pytest.warns(NumericalWarning, match="indefinite"):
        model = fit(alpha=1e-3, kernel=lambda a, b: float(a @ b - (a @ b) ** 2))
    assert model.certificate_.error_bounds is None
    assert model.predict(NEW).shape == (9, 2)
    with pytest.raises(ValueError, match="definite"):
        model.predict(NEW, return_bound=True)
    with pytest.raises(ValueError, match="semidefinite"):
        model.predict(NEW, return_std=True)


def test_at_no_penalty_there_is_no_variance() -> None:
    with pytest.warns(NumericalWarning):
        model = fit(alpha=0.0, kernel=Linear())
    with pytest.raises(ValueError, match="alpha=0"):
        model.predict(NEW, return_std=True)


@pytest.mark.parametrize("ask", ["bound", "std", "nothing"])
def test_blocks_of_points_change_nothing(ask: str, tmp_path: Any) -> None:
    options = {"return_bound": True} if ask == "bound" else {"return_std": True} if ask == "std" else {}
    many = RNG.standard_normal((3000, 3))
    for solver in ("cholesky", "landmarks"):
        model = fit(solver=solver, fit_intercept=True, **({"n_landmarks": 15} if solver == "landmarks" else {}))
        known = np.stack(np.atleast_1d(model.predict(many, **options))).reshape(-1, 3000, 2)
        np.save(tmp_path / "many.npy", many)
        with sklearn.config_context(working_memory=1):
            blocks = [len(block) for block in model._blocks(many, ask == "std", ask == "bound")]
            found = [model.predict(rows, **options) for rows in (many, tmp_path / "many.npy")]
        width = {"nothing": 0, "std": len(model.X_fit_), "bound": len(model.X_fit_) if solver == "landmarks" else 0}[
            ask
        ]
        width = 40 if ask == "std" and solver != "landmarks" else width
        step = 2**20 // 4 // (8 * width) if width else 3000
        assert blocks == [min(step, 3000 - start) for start in range(0, 3000, step)]
        for each in found:
            assert_allclose(np.stack(np.atleast_1d(each)).reshape(-1, 3000, 2), known, rtol=1e-9)


def test_how_standard_deviations_are_found_depends_on_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit(fit_intercept=True)
    assert model.std_method() == "exact"
    monkeypatch.setattr(uncertainty, "EXACT", 40)
    assert model.std_method() == "exact"
    monkeypatch.setattr(uncertainty, "EXACT", 39)
    monkeypatch.setattr(uncertainty, "SUBSET", 11)
    assert "all 40 rows" in model.std_method()
    assert model.std_method("subset") == "upper bound from 11 of the 40 rows"
    _, wide = fit(fit_intercept=True).predict(NEW, return_std="subset")
    monkeypatch.setattr(uncertainty, "EXACT", 40)
    _, exact = fit(fit_intercept=True).predict(NEW, return_std=True)
    assert np.all(wide >= exact)
    assert np.any(wide > 1.001 * exact)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alone", "weighted"])
def test_a_posterior_of_some_rows_is_that_of_a_process_given_these(
    monkeypatch: pytest.MonkeyPatch, weights: Any
) -> None:
    chosen = np.array([3, 1, 17, 30, 22])
    monkeypatch.setattr(uncertainty, "EXACT", 39)
    posterior = Posterior.of(KERNEL, X, weights, 0.7, True, chosen, 0)
    assert_array_equal(posterior.points, X[chosen])
    assert posterior.lam == 0.7
    w = np.ones(5) if weights is None else weights[chosen]
    A = KERNEL(X[chosen]) + 0.7 * np.diag(1 / w)
    assert_allclose(posterior.factor @ posterior.factor.T, A, rtol=1e-12)
    k, inverse = KERNEL(NEW, X[chosen]), np.linalg.inv(A)
    left = np.diag(KERNEL(NEW)) - np.einsum("ij,jk,ik->i", k, inverse, k)
    left = left + (1 - k @ inverse.sum(axis=1)) ** 2 / inverse.sum()
    assert_allclose(posterior.variance(NEW), left / 0.7, rtol=1e-9)
    monkeypatch.setattr(uncertainty, "EXACT", 40)
    assert len(Posterior.of(KERNEL, X, weights, 0.7, False, chosen, 0).points) == 40


def test_rows_are_chosen_by_the_seed_where_no_solver_chose_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "EXACT", 39)
    monkeypatch.setattr(uncertainty, "SUBSET", 6)
    some = [Posterior.of(Gaussian(0.5), X, None, 0.7, False, None, seed).points for seed in (0, 0, 1)]
    assert len(some[0]) == 6
    assert_array_equal(some[0], some[1])
    assert not np.array_equal(some[0], some[2])


def test_a_variance_is_never_negative() -> None:
    posterior = Posterior.of(Linear(), 1e6 * X, None, 0.05, False, None, 0)
    assert np.all(posterior.variance(1e6 * X) >= 0)


def test_a_matrix_that_is_singular_to_rounding_is_refused_by_its_alpha() -> None:
    with pytest.raises(ValueError, match="alpha=1e-300"):
        Posterior.of(Linear(), 1e3 * np.ones((5, 2)), None, 1e-300, False, None, 0)


def test_what_can_be_made_again_is_not_saved() -> None:
    model = fit()
    known = model.predict(NEW, return_std=True)[1]
    again = pickle.loads(pickle.dumps(model))
    assert "_posteriors" in vars(model)
    assert "_posteriors" not in vars(again)
    assert_array_equal(again.predict(NEW, return_std=True)[1], known)


def test_posteriors_are_made_once_for_each_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    made, of = [], Posterior.of

    def count(*given: Any) -> Posterior:
        made.append(given)
        return of(*given)

    monkeypatch.setattr(Posterior, "of", count)
    model = fit(alpha=np.array([0.3, 0.3]))
    model.predict(NEW, return_std=True)
    model.predict(X, return_std=True)
    assert len(made) == 1
