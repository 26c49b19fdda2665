"""KernelRidgeCV: scikit-learn's choices, refits, likelihoods, repeated rows, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import KernelRidgeClassifier, NumericalWarning
from gramian.kernel_ridge.choose import held_out_rows
from gramian.kernel_ridge.estimator import KernelRidge as OurKernelRidge
from gramian.kernel_ridge.estimator import KernelRidgeCV
from gramian.kernel_ridge.landmark_fit import LandmarkSolver
from gramian.kernel_ridge.solve import choose_solver
from gramian.kernels import Gaussian, Laplacian, Linear, Matern, Precomputed, median_distance
from oracles import Array

ALPHAS = np.geomspace(1e-3, 10.0, 6)
GAMMAS = [0.05, 0.3, 2.0]


def problem(n: int = 50, t: int = 1, noise: float = 0.2, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(X.sum(axis=1) + k) + noise * (1 + 4 * k) * rng.normal(size=n) for k in range(t)])
    return X, Y[:, 0] if t == 1 else Y


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        KernelRidgeCV(),
        KernelRidgeCV(criterion="gcv"),
        KernelRidgeCV(kernel="precomputed"),
        KernelRidgeCV(solver="landmarks"),
        KernelRidgeCV(fit_intercept=True, gamma=[0.1, 1.0], criterion="marginal_likelihood", alpha_per_target=True),
    ]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_choice_is_that_of_a_grid_search_with_each_row_left_out() -> None:
    X, y = problem(30)
    grid = {"alpha": ALPHAS, "gamma": GAMMAS}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y)
    ours = KernelRidgeCV(ALPHAS, gamma=GAMMAS).fit(X, y)
    assert ours.alpha_ == search.best_params_["alpha"]
    assert ours.gamma_ == search.best_params_["gamma"]
    theirs = search.cv_results_["mean_test_score"].reshape(len(ALPHAS), len(GAMMAS)).T
    assert_allclose(ours.scores_, theirs, rtol=1e-8)
    assert_allclose(ours.best_score_, search.best_score_, rtol=1e-8)
    new = problem(20, seed=1)[0]
    assert_allclose(ours.predict(new), search.predict(new), rtol=1e-8, atol=1e-10)
    assert_allclose(ours.dual_coef_, search.best_estimator_.dual_coef_, rtol=1e-7, atol=1e-9)


def test_the_likelihood_chooses_the_kernel_a_gaussian_process_prefers() -> None:
    X, y = problem()
    ours = KernelRidgeCV(ALPHAS, gamma=GAMMAS, criterion="marginal_likelihood").fit(X, y)
    best = (-np.inf, 0.0, 0.0)
    for gamma in GAMMAS:
        for alpha in ALPHAS:
            A = rbf_kernel(X, gamma=gamma) + alpha * np.eye(50)
            c = float(y @ np.linalg.solve(A, y)) / 50  # the most likely scale, in closed form
            kernel = ConstantKernel(c) * RBF(np.sqrt(0.5 / gamma)) + WhiteKernel(c * alpha)
            process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
            best = max(best, (process.log_marginal_likelihood_value_, alpha, gamma))
    assert (ours.alpha_, ours.gamma_) == best[1:]
    assert_allclose(ours.best_score_, best[0], rtol=1e-10)


def test_standard_deviations_are_those_of_the_gaussian_process() -> None:
    X, y = problem()
    new = problem(7, seed=3)[0]
    ours = KernelRidgeCV(ALPHAS, gamma=0.3).fit(X, y)
    s, alpha = ours.noise_variance_, ours.alpha_
    kernel = ConstantKernel(s / alpha) * RBF(np.sqrt(0.5 / 0.3)) + WhiteKernel(s)
    mean, std = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y).predict(new, return_std=True)
    f, ours_std = ours.predict(new, return_std=True)
    assert_allclose(f, mean, rtol=1e-8)
    assert_allclose(ours_std, std, rtol=1e-8)


def test_bounds_hold_against_a_solution_in_many_more_digits() -> None:
    X, y = problem(40)
    new = problem(9, seed=5)[0]
    ours = KernelRidgeCV([1e-6], gamma=0.3, fit_intercept=True).fit(X, y)
    f, bound = ours.predict(new, return_bound=True)
    K = rbf_kernel(X, gamma=0.3).astype(np.longdouble)
    border = np.block([[K + 1e-6 * np.eye(40), np.ones((40, 1))], [np.ones((1, 40)), np.zeros((1, 1))]])
    rhs = np.append(y, 0.0).astype(np.longdouble)
    solution = np.linalg.solve(border.astype(np.float64), rhs.astype(np.float64)).astype(np.longdouble)
    for _ in range(5):  # refined in extended precision
        solution += np.linalg.solve(border.astype(np.float64), (rhs - border @ solution).astype(np.float64))
    exact = rbf_kernel(new, X, gamma=0.3).astype(np.longdouble) @ solution[:-1] + solution[-1]
    assert np.all(np.abs(f - exact) <= bound)
    assert bound.max() < 1e-6
    assert ours.certificate_.converged


def test_targets_may_each_have_their_own_alpha() -> None:
    X, Y = problem(60, t=3)
    ours = KernelRidgeCV(ALPHAS, gamma=0.3, alpha_per_target=True, fit_intercept=True).fit(X, Y)
    assert len(set(ours.alpha_)) > 1
    for j in range(3):
        alone = KernelRidgeCV(ALPHAS, gamma=0.3, fit_intercept=True).fit(X, Y[:, j])
        assert ours.alpha_[j] == alone.alpha_
        assert_allclose(ours.dual_coef_[:, j], alone.dual_coef_, rtol=1e-8, atol=1e-10)
        assert_allclose(ours.best_score_[j], alone.best_score_, rtol=1e-10)
        assert_allclose([ours.dof_[j], ours.intercept_[j]], [alone.dof_, alone.intercept_], rtol=1e-9)
    shared = KernelRidgeCV(ALPHAS, gamma=0.3, fit_intercept=True).fit(X, Y)
    assert shared.alpha_ == ALPHAS[np.argmin(shared.path_.loo.sum(axis=1))]


@pytest.mark.parametrize("criterion", ["loo", "gcv", "marginal_likelihood"])
@pytest.mark.parametrize("intercept", [False, True])
def test_counts_are_repeated_rows(criterion: str, intercept: bool) -> None:
    X, y = problem(40)
    w = np.random.default_rng(2).integers(0, 4, 40)
    often, new = np.repeat(np.arange(40), w), problem(11, seed=1)[0]
    model = KernelRidgeCV(gamma=GAMMAS, criterion=criterion, fit_intercept=intercept)
    ours, long = clone(model).fit(X, y, w), clone(model).fit(X[often], y[often])
    assert_allclose(ours.alphas_, long.alphas_, rtol=1e-10)
    assert_allclose(ours.scores_, long.scores_, rtol=1e-4)  # from λ = 1e-11 of the largest eigenvalue on
    assert_allclose(ours.scores_[:, 8:], long.scores_[:, 8:], rtol=1e-7)
    assert_allclose(ours.alpha_, long.alpha_, rtol=1e-10)
    assert_allclose(ours.predict(new), long.predict(new), rtol=1e-7)
    assert_allclose(ours.noise_variance_, long.noise_variance_, rtol=1e-7)
    assert (ours.dual_coef_[w == 0] == 0).all()


def test_precisions_weight_the_errors_of_whole_rows() -> None:
    X, y = problem(30)
    w = np.random.default_rng(2).uniform(0.2, 3.0, 30)
    ours = KernelRidgeCV(ALPHAS, gamma=0.3).fit(X, y, w)
    errors = np.empty((len(ALPHAS), 30))
    for k, alpha in enumerate(ALPHAS):
        for i in range(30):
            rest = np.arange(30) != i
            theirs = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.3).fit(X[rest], y[rest], w[rest])
            errors[k, i] = y[i] - theirs.predict(X[[i]])[0]
    assert_allclose(-ours.scores_[0], (w * errors**2).mean(axis=1), rtol=1e-8)


def test_a_list_of_kernels_is_chosen_from() -> None:
    X, y = problem(80)
    kernels = [Linear(), Gaussian(0.1), Gaussian(0.1) + Linear(), Matern(1.5, 2.0), "laplacian"]
    ours = KernelRidgeCV(kernel=kernels, criterion="gcv").fit(X, y)
    assert ours.scores_.shape == (5, 30)
    row, column = np.unravel_index(np.argmax(ours.scores_), ours.scores_.shape)
    assert ours.kernel_ == ours.kernels_[row]
    assert ours.alpha_ == ours.alphas_[row, column]
    alone = KernelRidgeCV(kernel=ours.kernel_, criterion="gcv").fit(X, y)
    assert_allclose(alone.dual_coef_, ours.dual_coef_, rtol=1e-10)
    assert ours.kernels_[-1] == Laplacian(1 / 3).resolved(X)


def test_named_bandwidths_are_found_from_data() -> None:
    X, y = problem()
    ours = KernelRidgeCV(gamma=["median", "scale", 100.0]).fit(X, y)
    assert ours.kernels_[:2] == [Gaussian("median").resolved(X), Gaussian("scale").resolved(X)]
    assert ours.gamma_ == ours.kernel_.gamma < 100
    assert KernelRidgeCV(kernel=Gaussian(bandwidth=2.0)).fit(X, y).gamma_ == 0.125


@pytest.mark.parametrize("intercept", [False, True])
def test_a_matrix_and_sparse_rows_give_the_same(intercept: bool) -> None:
    X, y = problem()
    new = problem(8, seed=2)[0]
    ours = KernelRidgeCV(gamma=0.3, fit_intercept=intercept).fit(X, y)
    matrix = KernelRidgeCV(kernel="precomputed", fit_intercept=intercept).fit(rbf_kernel(X, gamma=0.3), y)
    assert_allclose(matrix.predict(rbf_kernel(new, X, gamma=0.3)), ours.predict(new), rtol=1e-7)
    sparse = KernelRidgeCV(gamma=0.3, fit_intercept=intercept).fit(sp.csr_array(X), y)
    assert_allclose(sparse.predict(sp.csr_array(new)), ours.predict(new), rtol=1e-7)


def test_objects_compared_by_a_function_can_be_fitted() -> None:
    words = ["ant", "anthem", "bee", "beetle", "cat", "cattle", "dog", "doge"] * 3
    y = np.array([len(word) for word in words], dtype=float)
    model = KernelRidgeCV(kernel=lambda a, b: float(len(set(a) & set(b)))).fit(words, y)
    assert_allclose(model.predict(["anthem", "cat"]), [6.0, 3.0], atol=0.2)


def test_noise_without_signal_takes_the_largest_alpha_and_says_so() -> None:
    rng = np.random.default_rng(0)
    ours = KernelRidgeCV([0.01, 0.1], gamma=1.0).fit(rng.normal(size=(40, 3)), rng.normal(size=40))
    assert ours.alpha_ == 0.1
    assert any("largest tried" in note for note in ours.certificate_.notes)
    inner = KernelRidgeCV(gamma=0.3).fit(*problem())
    assert inner.alphas_.min() < inner.alpha_ < inner.alphas_.max()
    assert not inner.certificate_.notes


def test_small_penalties_are_refined_to_the_tolerance() -> None:
    X, y = problem(120, noise=0.0)
    ours = KernelRidgeCV(gamma=0.02, fit_intercept=True).fit(X, y)
    assert ours.alpha_ < 1e-4
    assert ours.certificate_.converged
    assert ours.certificate_.condition > 1e6


def test_an_indefinite_kernel_is_warned_of_and_needs_larger_alphas() -> None:
    X, y = problem(20)
    K = rbf_kernel(X, gamma=0.3)
    K = K - 2.0 * np.eye(20)
    with pytest.warns(NumericalWarning, match="indefinite"):
        ours = KernelRidgeCV([0.1, 10.0], kernel="precomputed").fit(K, y)
    assert ours.alpha_ == 10.0
    assert np.isnan(ours.scores_[0, 0])
    assert_allclose(ours.dual_coef_, np.linalg.solve(K + 10 * np.eye(20), y), rtol=1e-9)
    with pytest.raises(ValueError, match="Give larger alphas"):
        KernelRidgeCV([0.1], kernel=Precomputed()).fit(K, y)


def test_one_row_is_enough_without_an_intercept_and_one_alpha_with() -> None:
    assert_allclose(KernelRidgeCV([1.0]).fit([[1.0, 2.0]], [4.0]).predict([[1.0, 2.0]]), 2.0)
    with pytest.raises(ValueError, match="n_samples=1"):
        KernelRidgeCV(fit_intercept=True).fit([[1.0, 2.0]], [4.0])
    alone = KernelRidgeCV([1.0], fit_intercept=True).fit([[1.0, 2.0]], [4.0])
    assert_allclose(alone.predict([[7.0, 2.0]]), 4.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alphas": []}, "alphas must be"),
        ({"alphas": [1.0, 0.0]}, "alphas must be"),
        ({"alphas": "many"}, "alphas must be"),
        ({"alphas": ["a"]}, r"alphas must be 'auto' or positive numbers, got \['a'\]"),
        ({"alphas": {1.0}}, "alphas must be"),
        ({"criterion": "aic"}, "criterion must be one of"),
        ({"solver": "cholesky"}, "solver must be one of"),
        ({"alpha_per_target": "yes"}, "alpha_per_target"),
        ({"kernel": []}, "nothing to choose from"),
        ({"kernel": ["rbf", "precomputed"]}, "precomputed kernel matrix is one kernel"),
        ({"gamma": [-1.0]}, "gamma"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KernelRidgeCV(**params).fit(*problem(10))


def test_a_matrix_has_no_landmarks() -> None:
    X, y = problem(20)
    with pytest.raises(ValueError, match="precomputed kernel matrix"):
        KernelRidgeCV(kernel="precomputed", solver="landmarks").fit(X @ X.T, y)


def test_too_large_a_decomposition_is_refused_before_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 2**16)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match=r"kernel.*50 rows"):
        KernelRidgeCV(solver="eigh").fit(*problem())


def test_pickled_and_cloned_models_predict_the_same() -> None:
    X, y = problem()
    model = KernelRidgeCV(gamma=GAMMAS).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X), model.predict(X), rtol=0)
    assert clone(model).get_params()["gamma"] == GAMMAS


def data_of(weighted: bool, n: int = 60) -> dict[str, Any]:
    X, Y = problem(n, t=2)
    w = np.random.default_rng(5).uniform(0.5, 2.0, n) if weighted else None
    return {"X": X, "y": Y, "sample_weight": w}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_held_out_judge_as_scikit_learns_refit_does(intercept: bool, weighted: bool) -> None:
    data = data_of(weighted)
    X, Y, w = data["X"], data["y"], np.ones(60) if data["sample_weight"] is None else data["sample_weight"]
    ours = KernelRidgeCV(ALPHAS, gamma=GAMMAS, solver="cg", fit_intercept=intercept, tol=1e-9).fit(**data)
    fit, judge = held_out_rows(60, 0)
    assert len(judge) == 12
    assert not set(fit) & set(judge)
    for gamma, row in zip(GAMMAS, ours.scores_, strict=True):
        for alpha, score in zip(ALPHAS, row, strict=True):
            K, k = rbf_kernel(X[fit], gamma=gamma), rbf_kernel(X[judge], X[fit], gamma=gamma)
            b = np.zeros(2)
            if intercept:  # the constant that is best for its own residuals: solve for both by elimination
                A = np.linalg.inv(K + alpha * np.diag(1 / w[fit]))
                b = (A.sum(axis=0) @ Y[fit]) / A.sum()
            theirs = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, Y[fit] - b, w[fit])
            errors = Y[judge] - b - theirs.predict(k)
            assert_allclose(-score, np.mean(w[judge, None] * errors**2), rtol=2e-2)  # solved to a residual of 1e-3
    final = KernelRidgeCV([ours.alpha_], gamma=ours.gamma_, solver="eigh", fit_intercept=intercept).fit(**data)
    assert_allclose(ours.predict(X), final.predict(X), atol=1e-6)
    assert ours.path_ is None
    assert any("rows held out" in note for note in ours.certificate_.notes)


def test_automatic_alphas_by_iteration_span_the_spectrum() -> None:
    X, y = problem(150)
    ours = KernelRidgeCV(gamma=0.3, solver="cg").fit(X, y)
    fit, _ = held_out_rows(150, 0)
    assert_allclose(ours.alphas_[0, -1], np.linalg.eigvalsh(rbf_kernel(X[fit], gamma=0.3))[-1], rtol=1e-3)
    assert ours.alphas_.shape == (1, 16)


def test_a_matrix_is_split_by_rows_and_columns() -> None:
    X, y = problem(60)
    ours = KernelRidgeCV(ALPHAS, gamma=0.3, solver="cg").fit(X, y)
    matrix = KernelRidgeCV(ALPHAS, kernel="precomputed", solver="cg").fit(rbf_kernel(X, gamma=0.3), y)
    assert_allclose(matrix.scores_, ours.scores_, rtol=1e-2)
    assert matrix.alpha_ == ours.alpha_


@pytest.mark.parametrize("criterion", ["loo", "gcv", "marginal_likelihood"])
@pytest.mark.parametrize("intercept", [False, True])
def test_landmarks_at_all_rows_choose_as_the_exact_path(criterion: str, intercept: bool) -> None:
    X, Y = problem(50, t=2)
    w = np.random.default_rng(5).integers(1, 3, 50)
    common: dict[str, Any] = {"gamma": GAMMAS, "criterion": criterion, "fit_intercept": intercept}
    ours = KernelRidgeCV(ALPHAS, solver="landmarks", n_landmarks=50, **common).fit(X, Y, w)
    exact = KernelRidgeCV(ALPHAS, solver="eigh", **common).fit(X, Y, w)
    assert_allclose(ours.scores_, exact.scores_, rtol=1e-5)
    assert (ours.alpha_, ours.gamma_) == (exact.alpha_, exact.gamma_)
    assert_allclose(ours.predict(X), exact.predict(X), atol=1e-6)
    assert_allclose(ours.dof_, exact.dof_, rtol=1e-5)


def test_criteria_that_need_eigenvalues_are_refused_by_iteration() -> None:
    with pytest.raises(ValueError, match="Use criterion='loo'"):
        KernelRidgeCV(solver="cg", criterion="gcv").fit(*problem())
    with pytest.raises(ValueError, match="hold"):
        KernelRidgeCV(solver="cg").fit(*problem(4))


def test_the_route_follows_the_size() -> None:
    assert [choose_solver(n, "auto", every_alpha=True)[0] for n in (10, 8_000, 8_001, 200_000, 200_001)] == [
        "eigh"
    ] * 2 + ["cg"] * 2 + ["landmarks"]
    assert choose_solver(10**5, "auto", whole=True, every_alpha=True)[0] == "eigh"
    assert choose_solver(10, "auto", file=True, every_alpha=True)[0] == "landmarks"
    assert choose_solver(10, "cg", every_alpha=True) == ("cg", "solver='cg'")


@pytest.mark.parametrize("solver", ["eigh", "cg", "landmarks"])
@pytest.mark.parametrize("X", [np.ones((60, 2)), np.full((60, 3), 0.1), np.zeros((60, 2))], ids=["1", "0.1", "0"])
def test_points_that_are_all_one_predict_the_mean(X: Array, solver: str) -> None:
    y = problem(60)[1]
    for n_landmarks in (None, 7):
        ours = KernelRidgeCV(kernel="linear", fit_intercept=True, solver=solver, n_landmarks=n_landmarks).fit(X, y)
        assert_allclose(ours.predict(X[:3] + 0.0), y.mean(), rtol=1e-12)
        assert 0.1 <= ours.alphas_.min() < ours.alphas_.max() <= 10.0
    if not X.any():
        assert_allclose(KernelRidgeCV(kernel="linear", solver=solver).fit(X, y).predict(X[:3]), 0.0)


def test_one_row_with_landmarks_is_as_one_row_without() -> None:
    row, target = [[1.0, 2.0]], [4.0]
    alone = KernelRidgeCV([1.0], fit_intercept=True, solver="landmarks").fit(row, target)
    assert_allclose(alone.predict([[7.0, 2.0]]), 4.0)
    with pytest.raises(ValueError, match="n_samples=1"):
        KernelRidgeCV(fit_intercept=True, solver="landmarks").fit(row, target)


def test_the_default_width_is_the_median_distance_in_any_units() -> None:
    """As of the command line; scikit-learn's 1/p stays that of KernelRidge."""
    X, y = problem(40)
    model = KernelRidgeCV().fit(X, y)
    assert model.gamma_ == pytest.approx(0.5 / median_distance(X) ** 2)
    inches = KernelRidgeCV().fit(1000 * X, y)
    assert_allclose(inches.predict(1000 * X), model.predict(X), rtol=1e-6)
    assert KernelRidgeCV(gamma=0.3).fit(X, y).gamma_ == 0.3
    assert OurKernelRidge(kernel="rbf").fit(X, y).kernel_.gamma == 1 / X.shape[1]
    assert KernelRidgeCV().fit(np.ones((5, 2)), y[:5]).gamma_ == 0.5  # no two rows differ: 1/p
    with pytest.raises(ValueError, match="all equal"):
        KernelRidgeCV(gamma="median").fit(np.ones((5, 2)), y[:5])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["eigh", "landmarks", "cg"])
def test_facts_of_a_fit_are_attributes(solver: str, intercept: bool) -> None:
    X, Y = problem(40, t=2)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    for y in (Y, Y[:, 0]):
        model = KernelRidgeCV(ALPHAS, fit_intercept=intercept, solver=solver, tol=1e-9).fit(X, y, w)
        f, several = model.predict(X), "raw_values" if y is Y else "uniform_average"
        assert_allclose(model.training_error_, np.sqrt(w @ (y - f) ** 2 / w.sum()), rtol=1e-5)
        assert_allclose(model.r2_, r2_score(y, f, sample_weight=w, multioutput=several), rtol=1e-5)
        if solver == "cg":
            assert model.leave_one_out_error_ is None
    if solver == "eigh":
        errors = np.empty(40)
        for i in range(40):
            rest = np.delete(np.arange(40), i)
            one = OurKernelRidge(model.alpha_, kernel=model.kernel_, fit_intercept=intercept)
            errors[i] = y[i] - one.fit(X[rest], y[rest], w[rest]).predict(X[[i]])[0]
        assert model.leave_one_out_error_ == pytest.approx(np.sqrt(w @ errors**2 / w.sum()), rel=1e-6)


def test_rows_in_float32_are_chosen_for_as_in_float64() -> None:
    X, y = problem(300)
    X = np.round(X, 2).astype(np.float32)
    for solver in ("eigh", "landmarks"):
        narrow, wide = (KernelRidgeCV(solver=solver).fit(Z, y) for Z in (X, X.astype(np.float64)))
        assert_allclose(narrow.scores_, wide.scores_, rtol=1e-6)
        assert_allclose(narrow.predict(X), wide.predict(X), rtol=1e-6)


def test_too_many_landmarks_are_refused_before_they_are_decomposed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("decomposed before memory was asked for")

    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 2**14)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    monkeypatch.setattr("gramian.kernel_ridge.landmarks.LandmarkSolver.decompose", never)
    with pytest.raises(MemoryError, match=r"solver='landmarks'.*50 landmarks.*landmarks"):
        KernelRidgeCV(solver="landmarks").fit(*problem())


@pytest.mark.parametrize("solver", ["eigh", "cg", "landmarks"])
def test_kernels_of_gaussian_processes_are_kernels(solver: str) -> None:
    X, y = problem(60)
    common: dict[str, Any] = {"alphas": ALPHAS, "solver": solver, "tol": 1e-9}
    ours = KernelRidgeCV(kernel=RBF(2.0), **common).fit(X, y)
    own = KernelRidgeCV(kernel="rbf", gamma=0.125, **common).fit(X, y)
    assert_allclose(ours.scores_, own.scores_, rtol=2e-2 if solver == "cg" else 1e-7)
    assert ours.alpha_ == own.alpha_
    assert_allclose(ours.predict(X), own.predict(X), atol=1e-7)
    several = KernelRidgeCV(kernel=[RBF(0.1), RBF(2.0)], **common).fit(X, y)
    assert_allclose(several.predict(X), ours.predict(X), atol=1e-9)


@pytest.mark.parametrize("solver", ["eigh", "cg", "landmarks"])
def test_a_large_mean_of_the_targets_costs_no_digits_but_its_own(solver: str) -> None:
    X, y = problem(60)
    model = KernelRidgeCV(gamma=0.1, fit_intercept=True, solver=solver, tol=1e-8)  # a warning would be an error
    plain, shifted = (clone(model).fit(X, y + b) for b in (0.0, 2.0**30))
    assert shifted.certificate_.converged
    assert_allclose(shifted.predict(X) - 2.0**30, plain.predict(X), atol=1e-5)


def test_lists_of_functions_compare_objects() -> None:
    words = ["ant", "anthem", "bee", "beetle", "cat", "cattle", "dog", "doge"] * 3
    y = np.array([len(word) for word in words], dtype=float)

    def letters(a: str, b: str) -> float:
        return float(len(set(a) & set(b)))

    def first(a: str, b: str) -> float:
        return float(a[0] == b[0])

    for solver in ("eigh", "cg", "landmarks"):
        model = KernelRidgeCV(kernel=[first, letters], solver=solver).fit(words, y)
        alone = KernelRidgeCV(kernel=letters, solver=solver).fit(words, y)
        assert_allclose(model.predict(["anthem", "cat"]), alone.predict(["anthem", "cat"]), rtol=1e-12)
        assert len(model.scores_) == 2
    with pytest.raises(ValueError, match="kernel 'rbf'"):
        KernelRidgeCV(kernel=[letters, "rbf"]).fit(words, y)
    X, z = problem(20)
    rows = KernelRidgeCV(kernel=[lambda a, b: float(a @ b), "rbf"]).fit(X, z)
    assert len(rows.scores_) == 2


@pytest.mark.parametrize("scale", [1e-170, 1e200])
@pytest.mark.parametrize("solver", ["eigh", "cg", "landmarks"])
def test_targets_without_squares_are_refused(scale: float, solver: str) -> None:
    X, y = problem(30)
    with pytest.raises(ValueError, match="target"):
        KernelRidgeCV(solver=solver).fit(X, np.column_stack([y, scale * y]))
    zeros = KernelRidgeCV([1.0], solver=solver).fit(X, np.column_stack([y, 0 * y]))
    assert_allclose(zeros.predict(X)[:, 1], 0.0)


@pytest.mark.parametrize("estimator", [KernelRidgeCV, KernelRidgeClassifier])
def test_max_iter_ends_the_iterations_of_cg(estimator: Any) -> None:
    X, y = problem(300)
    y = y if estimator is KernelRidgeCV else np.sign(y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        ours = estimator([1e-8], gamma=5.0, solver="cg", tol=1e-14, max_iter=1).fit(X, y)
    assert ours.n_iter_ == 1
    with pytest.raises(ValueError, match="max_iter"):
        estimator(max_iter=0).fit(X, y)


@pytest.mark.parametrize("solver", ["eigh", "cg", "landmarks"])
def test_the_choice_is_shown(solver: str, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = problem(60)
    ours = KernelRidgeCV(ALPHAS, gamma=[0.05, 0.3], solver=solver, verbose=True).fit(X, y)
    shown = capsys.readouterr().err
    assert "\nKernelRidgeCV: Gaussian(gamma=0.05), 1 of 2: loo score" in f"\n{shown}"  # on a line of its own
    assert shown.endswith("\n")
    assert f"{ours.scores_[1].max():.4g} at λ = {ALPHAS[np.argmax(ours.scores_[1])]:.3g}" in shown
    seen: list[Any] = []
    KernelRidgeCV(ALPHAS, solver=solver, verbose=lambda *step: seen.append(step)).fit(X, y)
    assert [message.startswith("iteration 1,") for *_, message in seen].count(True) == (
        2 if solver == "cg" else 0
    )  # of the choice, and of the fit
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("intercept", [False, True])
def test_the_model_of_the_landmarks_is_decomposed_once(intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("solved again, after the choice had decomposed the model")

    monkeypatch.setattr(LandmarkSolver, "__call__", never)
    monkeypatch.setattr("gramian.kernel_ridge.estimator.choose_landmarks", never)
    ours = KernelRidgeCV(solver="landmarks", fit_intercept=intercept).fit(X, y.astype(float))
    assert ours.certificate_.converged
    assert_allclose(ours.dual_coef_, ours.path_.coef[np.flatnonzero(ours.alphas_[0] == ours.alpha_)[0], 0], rtol=1e-4)
    again = OurKernelRidge(ours.alpha_, kernel=ours.kernel_, fit_intercept=intercept).fit(X, y.astype(float))
    f, bound = ours.predict(X, return_bound=True)
    assert np.all(np.abs(f - again.predict(X)) <= bound + 1e-9)
    assert (ours.landmarks_ == np.arange(150)).all()
    exact = KernelRidgeCV(solver="eigh", fit_intercept=intercept).fit(X, y.astype(float))
    assert not hasattr(exact, "landmarks_")
