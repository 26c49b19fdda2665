"""Kernel ridge regression against scikit-learn, Gaussian processes, explicit systems and repeated rows."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian
from gramian.kernel_ridge import uncertainty as _kernel_variance
from gramian.kernel_ridge.estimator import KernelRidge
from gramian.kernel_ridge.solve import choose_solver
from gramian.kernels import Gaussian, Linear, Matern
from gramian.results import NumericalWarning

SOLVERS = ("auto", "eigh", "cholesky", "cg", "landmarks")
EXACT = ("eigh", "cholesky", "cg")


def data(n=120, p=3, t=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    Y = np.sin(X @ rng.standard_normal((p, t))) + 0.1 * rng.standard_normal((n, t))
    return X, Y[:, 0] if t == 1 else Y


def model(solver="auto", n=120, **params):
    options = {"kernel": "rbf", "gamma": 0.3, "alpha": 0.1, "solver": solver, **params}
    if solver == "landmarks":
        options.setdefault("n_landmarks", n)
    if solver == "cg":
        options.setdefault("tol", 1e-11)
    return KernelRidge(**options)


def ours_and_theirs(X, y, w=None, **params):
    theirs = SklearnKernelRidge(**params).fit(X, y, sample_weight=w)
    return KernelRidge(**params).fit(X, y, sample_weight=w), theirs


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("targets", [1, 3])
def test_predictions_are_those_of_scikit_learn(solver, targets):
    X, Y = data(t=targets)
    theirs = SklearnKernelRidge(alpha=0.1, kernel="rbf", gamma=0.3).fit(X, Y)
    ours = model(solver).fit(X, Y)
    new = data(seed=1)[0]
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-7)
    assert ours.predict(new).shape == theirs.predict(new).shape
    assert ours.certificate_.converged


@pytest.mark.parametrize("solver", EXACT)
def test_coefficients_are_those_of_scikit_learn(solver):
    X, Y = data(t=2)
    w = np.random.default_rng(2).uniform(0.2, 3.0, len(X))
    theirs = SklearnKernelRidge(alpha=[0.1, 2.0], kernel="rbf", gamma=0.3).fit(X, Y, sample_weight=w)
    ours = model(solver, alpha=[0.1, 2.0]).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-8)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel": "linear", "alpha": 3.0},
        {"kernel": "poly", "degree": 2, "coef0": 1.5, "gamma": 0.5},
        {"kernel": "laplacian", "gamma": 0.2, "alpha": 0.3},
        {"kernel": "cosine"},
        {"kernel": lambda x, z: float(np.exp(-np.abs(x - z).sum()))},
    ],
)
def test_every_named_kernel_as_in_scikit_learn(params):
    X, y = data(60)
    ours, theirs = ours_and_theirs(X, y, **params)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X[:7]), theirs.predict(X[:7]), atol=1e-9)


def test_a_precomputed_matrix_gives_the_same_as_its_kernel():
    X, y = data()
    K, k_new = Gaussian(gamma=0.3)(X), Gaussian(gamma=0.3)(X[:5] + 0.1, X)
    ours = KernelRidge(0.1, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(ours.predict(k_new), model().fit(X, y).predict(X[:5] + 0.1), atol=1e-10)
    with pytest.raises(ValueError, match="kernel"):
        ours.predict(k_new, return_bound=True)
    with pytest.raises(ValueError, match="in memory already"):
        KernelRidge(kernel="precomputed", solver="landmarks").fit(K, y)


def bordered(K, y, w, lam):
    """The intercept as the Lagrange multiplier it is: [K + λ/W, 1; 1ᵀ, 0][α; b] = [y; 0]."""
    n = len(K)
    system = np.block([[K + lam * np.diag(1 / w), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    found = np.linalg.solve(system, np.append(y, 0.0))
    return found[:n], found[n]


@pytest.mark.parametrize("solver", EXACT)
def test_an_intercept_solves_the_bordered_system(solver):
    X, y = data()
    w = np.random.default_rng(3).uniform(0.5, 2.0, len(X))
    ours = model(solver, fit_intercept=True).fit(X, y + 100.0, sample_weight=w)
    alpha, b = bordered(Gaussian(gamma=0.3)(X), y + 100.0, w, 0.1)
    np.testing.assert_allclose(ours.dual_coef_, alpha, atol=1e-7)
    assert ours.intercept_ == pytest.approx(b, abs=1e-7)
    assert abs(ours.dual_coef_.sum()) < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
def test_weights_are_repetitions(solver, intercept):
    X, y = data(50)
    w = np.random.default_rng(4).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), w)
    one = model(solver, n=int((w > 0).sum()), fit_intercept=intercept).fit(X, y, sample_weight=w)
    two = model(solver, n=int((w > 0).sum()), fit_intercept=intercept).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=2e-7)
    if solver != "landmarks":
        assert one.noise_variance_ == pytest.approx(two.noise_variance_, rel=1e-6)
        np.testing.assert_allclose(one.predict(X, return_std=True)[1], two.predict(X, return_std=True)[1], rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lam=st.floats(1e-4, 10.0),
    intercept=st.booleans(),
    weighted=st.booleans(),
    iterations=st.integers(1, 6),
)
def test_the_bound_is_never_violated_by_an_unfinished_solution(seed, lam, intercept, weighted, iterations):
    X, Y = data(60, t=2, seed=seed)
    w = np.random.default_rng(seed).uniform(0.1, 5.0, 60) if weighted else None
    options = {"alpha": lam, "kernel": Gaussian(gamma=0.5), "fit_intercept": intercept}
    exact = KernelRidge(**options, solver="eigh").fit(X, Y, sample_weight=w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rough = KernelRidge(**options, solver="cg", max_iter=iterations, tol=1e-12).fit(X, Y, sample_weight=w)
    new = np.random.default_rng(seed + 1).standard_normal((40, 3)) * 2
    f, bound = rough.predict(new, return_bound=True)
    truth, own = exact.predict(new, return_bound=True)
    assert np.all(np.abs(f - truth) <= bound + own)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lam=st.floats(1e-3, 10.0),
    intercept=st.booleans(),
    weighted=st.booleans(),
    m=st.integers(2, 60),
)
def test_the_bound_of_landmarks_against_exact_kernel_ridge(seed, lam, intercept, weighted, m):
    X, y = data(60, seed=seed)
    w = np.random.default_rng(seed).uniform(0.1, 5.0, 60) if weighted else None
    options = {"alpha": lam, "kernel": Matern(1.5, length_scale=1.0), "fit_intercept": intercept}
    exact = KernelRidge(**options, solver="eigh").fit(X, y, sample_weight=w)
    few = KernelRidge(**options, solver="landmarks", n_landmarks=m, random_state=seed).fit(X, y, sample_weight=w)
    new = np.random.default_rng(seed + 1).standard_normal((40, 3)) * 2
    f, bound = few.predict(new, return_bound=True)
    truth, own = exact.predict(new, return_bound=True)
    assert np.all(np.abs(f - truth) <= bound + own)
    assert "exact kernel ridge" in few.certificate_.bounded


def test_standard_deviations_are_those_of_the_gaussian_process():
    X, y = data(40)
    ours = model().fit(X, y)
    s = ours.noise_variance_
    kernel = ConstantKernel(s / 0.1) * RBF(length_scale=np.sqrt(0.5 / 0.3)) + WhiteKernel(s)
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
    new = data(30, seed=5)[0]
    f, std = ours.predict(new, return_std=True)
    mean, truth = process.predict(new, return_std=True)
    np.testing.assert_allclose(f, mean, atol=1e-9)
    np.testing.assert_allclose(std, truth, rtol=1e-7)
    assert ours.std_method() == "exact"


def test_the_noise_is_the_most_likely_one():
    X, y = data(40)
    s = model().fit(X, y).noise_variance_
    likelihoods = []
    for scale in (0.99 * s, s, 1.01 * s):
        kernel = ConstantKernel(scale / 0.1) * RBF(length_scale=np.sqrt(0.5 / 0.3)) + WhiteKernel(scale)
        process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
        likelihoods.append(process.log_marginal_likelihood_value_)
    assert likelihoods[1] > max(likelihoods[0], likelihoods[2])


@pytest.mark.parametrize("intercept", [False, True])
def test_fewer_rows_give_an_upper_bound_of_the_standard_deviation(monkeypatch, intercept):
    X, y = data(200)
    exact = model(fit_intercept=intercept).fit(X, y)
    truth = exact.predict(X, return_std=True)[1]
    monkeypatch.setattr(_kernel_variance, "EXACT", 100)
    monkeypatch.setattr(_kernel_variance, "SUBSET", 60)
    some = model(fit_intercept=intercept).fit(X, y)
    bound = some.predict(X, return_std="subset")[1]
    assert some.std_method("subset") == "upper bound from 60 of the 200 rows"
    assert np.all(bound >= truth * (1 - 1e-9))
    few = model("landmarks", n_landmarks=50, fit_intercept=intercept).fit(X, y)
    assert few.std_method() == "upper bound from 50 of the 200 rows"


def test_standard_deviation_with_an_intercept_is_least_squares_as_the_prior_widens():
    X, y = data(30, p=1)
    ours = KernelRidge(1e-5, kernel="linear", fit_intercept=True, solver="eigh", tol=1e-6).fit(X, y)
    D = np.column_stack([np.ones(30), X])
    new = np.array([[0.0], [2.0]])
    N = np.column_stack([np.ones(2), new])
    truth = 1 + np.einsum("ij,jk,ik->i", N, np.linalg.inv(D.T @ D), N)
    std = ours.predict(new, return_std=True)[1]
    np.testing.assert_allclose(std**2 / ours.noise_variance_, truth, rtol=1e-4)


@pytest.mark.parametrize("solver", ["eigh", "cholesky"])
def test_no_penalty_warns_with_the_rank_and_interpolates(solver):
    X, y = data(30, p=2)
    with pytest.warns(NumericalWarning, match="rank 2"):
        ours = KernelRidge(0, kernel="linear", solver=solver).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), X @ np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-9)
    with pytest.raises(ValueError, match="no bound"):
        ours.predict(X, return_bound=True)


def test_an_indefinite_kernel_is_solved_and_told():
    X, y = data(40)
    with pytest.warns(NumericalWarning, match="indefinite"):
        ours = KernelRidge(0.01, kernel="sigmoid", gamma=2.0, coef0=-1.0, solver="eigh").fit(X, y)
    K = np.tanh(2.0 * X @ X.T - 1.0)
    np.testing.assert_allclose(ours.dual_coef_, np.linalg.solve(K + 0.01 * np.eye(40), y), rtol=1e-6)
    with pytest.raises(ValueError, match="indefinite"):
        ours.predict(X, return_bound=True)


def test_an_exact_solve_beyond_memory_is_refused_before_it_is_tried(monkeypatch):
    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 10**5)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    X, y = data(2500)
    with pytest.raises(MemoryError, match=r"solver='cholesky'.*2500 rows.*'cg'"):
        model("cholesky").fit(X, y)


@pytest.mark.parametrize(
    ("n", "chosen"), [(300, "cholesky"), (20_000, "cholesky"), (50_000, "cg"), (200_001, "landmarks")]
)
def test_the_rule(n, chosen, monkeypatch):
    monkeypatch.setattr("gramian.kernel_ridge.solve.available_memory", lambda: 16 * 2**30)
    assert choose_solver(n, "auto")[0] == chosen
    assert choose_solver(n, "auto", whole=True)[0] == "cholesky"
    assert choose_solver(n, "auto", file=True)[0] == "landmarks"


def test_the_rule_avoids_a_matrix_that_does_not_fit(monkeypatch):
    monkeypatch.setattr("gramian.kernel_ridge.solve.available_memory", lambda: 2**20)
    assert choose_solver(5000, "auto")[0] == "cg"


def test_sparse_rows_frames_and_files_give_the_same(tmp_path):
    X, y = data()
    X[np.abs(X) < 0.4] = 0.0
    wanted = model().fit(X, y).predict(X[:9])
    np.testing.assert_allclose(model().fit(sp.csr_array(X), y).predict(sp.csr_array(X[:9])), wanted, atol=1e-10)
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_allclose(model().fit(str(tmp_path / "x.npy"), y).predict(X[:9]), wanted, atol=1e-10)
    in_file = model("landmarks").fit(str(tmp_path / "x.npy"), y)
    np.testing.assert_allclose(in_file.predict(str(tmp_path / "x.npy"))[:9], wanted, atol=1e-6)
    assert gramian.open(str(tmp_path / "x.npy")).resident is False


def test_objects_that_are_no_numbers():
    words = ["spam", "ham", "spa", "hams", "egg", "eggs"]
    shared = lambda a, b: float(len(set(a) & set(b)))  # noqa: E731
    K = np.array([[shared(a, b) for b in words] for a in words])
    y = np.arange(6.0)
    ours = KernelRidge(0.5, kernel=shared).fit(words, y)
    np.testing.assert_allclose(ours.dual_coef_, np.linalg.solve(K + 0.5 * np.eye(6), y), atol=1e-9)
    assert ours.predict(["gg"]).shape == (1,)


def test_progress_is_reported():
    seen = []
    X, y = data()
    fitted = model("cg", tol=1e-8, verbose=lambda *report: seen.append(report)).fit(X, y)
    assert len(seen) >= 1
    assert fitted.n_iter_ >= 1
    assert all(done <= total for done, total, _ in seen)
    assert "residual" in seen[-1][2]


def test_verbose_writes_to_standard_error(capsys):
    X, y = data()
    model("cg", tol=1e-8, verbose=True).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "KernelRidge: " in err


def test_too_few_iterations_warn():
    X, y = data()
    with pytest.warns(ConvergenceWarning):
        fitted = model("cg", alpha=1e-6, max_iter=1, tol=1e-12).fit(X, y)
    assert not fitted.certificate_.converged


def test_scripts_for_scikit_learn_run(tmp_path):
    X, y = data()
    pipe = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    search = GridSearchCV(pipe, {"kernelridge__alpha": [0.01, 0.1], "kernelridge__gamma": [0.1, 1.0]}, cv=3).fit(X, y)
    theirs = GridSearchCV(
        make_pipeline(StandardScaler(), SklearnKernelRidge(kernel="rbf")), search.param_grid, cv=3
    ).fit(X, y)
    assert search.best_params_ == theirs.best_params_
    assert search.best_score_ == pytest.approx(theirs.best_score_, abs=1e-10)
    back = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(back.predict(X), search.predict(X))
    assert clone(KernelRidge(2, kernel=Linear())).get_params()["alpha"] == 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1.0}, "alpha must be finite and not negative"),
        ({"alpha": [1.0, 2.0, 3.0]}, "alpha"),
        ({"solver": "svd"}, "solver must be one of"),
        ({"tol": 0.0}, "tol must be"),
        ({"landmarks": "kmeans"}, "landmarks must be one of"),
        ({"n_landmarks": 0}, "n_landmarks must be"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    X, y = data(20)
    with pytest.raises(ValueError, match=message):
        KernelRidge(**{"kernel": "rbf", **params}).fit(X, y)


def test_wrong_targets_are_named():
    X, y = data(20)
    y[7] = np.nan
    with pytest.raises(ValueError, match="row 8"):
        KernelRidge().fit(X, y)
    with pytest.raises(ValueError, match="20 rows, y 19"):
        KernelRidge().fit(X, np.zeros(19))


def true_residual(fitted, X, y, k, lam):
    K = k(X.astype(np.longdouble))
    alpha = fitted.dual_coef_.astype(np.longdouble)
    return float(np.linalg.norm((y - K @ alpha - lam * alpha).astype(float)) / np.linalg.norm(y))


@pytest.mark.parametrize("solver", ["auto", "eigh"])
def test_columns_too_far_from_zero_are_told_of_not_certified(solver):
    X, y = data(60)
    far = X + 1e8
    with pytest.warns(NumericalWarning, match="alpha"):
        fitted = KernelRidge(0.1, solver=solver).fit(far, y)
    assert not fitted.certificate_.converged
    assert fitted.certificate_.worst >= 0.1 * true_residual(fitted, far, y, lambda Z: Z @ Z.T, 0.1)


def test_a_tiny_penalty_on_repeated_rows_is_told_of():
    X, y = data(12)
    twice, targets = np.r_[X, X], np.r_[y, y + 0.1]
    with pytest.warns(NumericalWarning, match="larger alpha"):
        fitted = KernelRidge(1e-14, kernel="rbf", solver="eigh").fit(twice, targets)
    assert not fitted.certificate_.converged


def test_a_polynomial_of_large_numbers_warns_at_the_line_that_fits():
    X, y = data(60)
    with pytest.warns(NumericalWarning) as seen:
        fitted = KernelRidge(0.1, kernel="poly").fit(X * 1e4, y)
    assert not fitted.certificate_.converged
    assert seen[0].filename == __file__


@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision_rows_are_computed_with_in_double(solver):
    X, y = data(200, p=2)
    X = X.astype(np.float32)
    ours = model(solver, n=200).fit(X, y)
    theirs = model(solver, n=200).fit(X.astype(np.float64), y)
    for one, two in zip(
        ours.predict(X, return_std=True, return_bound=True),
        theirs.predict(X.astype(np.float64), return_std=True, return_bound=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-8)


def test_landmarks_are_counted_among_all_rows():
    X, y = data(60)
    w = np.ones(60)
    w[:10] = 0
    fitted = model("landmarks", landmarks=[10, 11, 40], n_landmarks=None).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(fitted.X_fit_, X[[10, 11, 40]])
    np.testing.assert_array_equal(fitted.landmarks_, [10, 11, 40])
    with pytest.raises(ValueError, match="row 3"):
        model("landmarks", landmarks=[3, 11], n_landmarks=None).fit(X, y, sample_weight=w)
    drawn = model("landmarks", n_landmarks=5).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(drawn.X_fit_, X[drawn.landmarks_])


@pytest.mark.parametrize(
    ("params", "points"),
    [
        ({"kernel": "additive_chi2", "alpha": 200.0}, np.abs),
        ({"kernel": "sigmoid", "alpha": 100.0}, np.asarray),
        ({"kernel": lambda a, b: -float(((a - b) ** 2).sum()), "alpha": 1e4}, np.asarray),
    ],
)
def test_a_kernel_that_is_not_semidefinite_has_no_bound(params, points):
    X, y = data(40)
    fitted = KernelRidge(**params).fit(points(X), y)
    with pytest.raises(ValueError, match="no bound"):
        fitted.predict(points(X), return_bound=True)
    with pytest.raises(ValueError, match="no variance"):
        fitted.predict(points(X), return_std=True)


def test_conjugate_gradients_refuse_an_indefinite_kernel_by_name():
    X, y = data(40)
    with pytest.raises(ValueError, match=r"solver='cg'.*kernel"):
        KernelRidge(kernel="sigmoid", solver="cg").fit(X, y)


def test_conjugate_gradients_with_values_beyond_single_precision():
    X, y = data(60)
    with pytest.warns((NumericalWarning, ConvergenceWarning)):
        fitted = KernelRidge(1.0, kernel="poly", solver="cg", max_iter=3).fit(X * 1e12, y)
    assert np.all(np.isfinite(fitted.dual_coef_))


def test_bounds_hold_for_targets_far_from_zero():
    X, y = data(60)
    near = KernelRidge(0.1, kernel="rbf", gamma=0.5, fit_intercept=True).fit(X, y)
    far = KernelRidge(0.1, kernel="rbf", gamma=0.5, fit_intercept=True).fit(X, y + 1e8)
    f, bound = far.predict(X, return_bound=True)
    assert np.all(np.abs(f - 1e8 - near.predict(X)) <= bound)
    assert np.all(bound < 1e-5)


def test_memory_is_asked_for_before_a_fallback_too(monkeypatch):
    X, y = data(500)
    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 3 * 10**6)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match=r"solver='eigh'.*500 rows"):
        KernelRidge(0, kernel="rbf").fit(X, y)
    with pytest.raises(MemoryError, match="500 landmarks"):
        KernelRidge(kernel="rbf", solver="landmarks", n_landmarks=500).fit(X, y)


def test_kernels_of_gaussian_processes():
    X, y = data(60)
    kernel = ConstantKernel(2.0) * RBF(1.5)
    ours, theirs = ours_and_theirs(X, y, kernel=kernel, alpha=0.1)
    np.testing.assert_allclose(ours.predict(X[:5] + 0.1), theirs.predict(X[:5] + 0.1), atol=1e-9)
    assert clone(ours).kernel == kernel


def test_nothing_of_an_earlier_fit_is_left():
    X, y = data(60)
    fitted = model("landmarks", n_landmarks=5).fit(X, y)
    fitted.set_params(solver="cholesky").fit(X, y)
    assert not hasattr(fitted, "landmarks_")
    before = fitted.predict(X, return_std=True)[1]
    fitted.set_params(fit_intercept=True, kernel="linear")
    np.testing.assert_array_equal(fitted.predict(X, return_std=True)[1], before)


def test_a_variance_that_rounding_does_not_allow_is_refused():
    X, y = data(60)
    with pytest.warns(NumericalWarning):
        fitted = KernelRidge(0.1).fit(X + 1e8, y)
    with pytest.raises(ValueError, match=r"alpha=0\.1"):
        fitted.predict(X, return_std=True)


def test_weights_of_zero_in_a_file(tmp_path):
    X, y = data(80)
    w = np.arange(80) % 3
    np.save(tmp_path / "x.npy", X)
    in_file = model("landmarks", n_landmarks=40).fit(str(tmp_path / "x.npy"), y, sample_weight=w)
    in_memory = model().fit(X, y, sample_weight=w)
    assert np.all(w[in_file.landmarks_] > 0)
    f, bound = in_file.predict(X, return_bound=True)
    assert np.all(np.abs(f - in_memory.predict(X)) <= bound)


def test_a_target_without_penalty_beside_one_with():
    X, Y = data(40, p=2, t=2)
    with pytest.warns(NumericalWarning, match="rank 2"):
        fitted = KernelRidge([0.0, 1.0], kernel="linear").fit(X, Y)
    f, std, bound = fitted.predict(X, return_std=True, return_bound=True)
    assert np.all(np.isinf(bound[:, 0]) & np.isnan(std[:, 0]))
    np.testing.assert_allclose(f[:, 1], KernelRidge(1.0).fit(X, Y[:, 1]).predict(X), atol=1e-9)
    assert np.all(np.isfinite(bound[:, 1]) & np.isfinite(std[:, 1]))


def test_verbose_ends_its_line(capsys):
    X, y = data()
    with pytest.warns(ConvergenceWarning):
        model("cg", alpha=1e-6, max_iter=1, tol=1e-12, verbose=True).fit(X, y)
    assert capsys.readouterr().err.endswith("\n")


def test_bounds_are_not_found_row_by_row_where_there_are_many_points():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    exact = KernelRidge(kernel="rbf").fit(X, y)
    few = KernelRidge(kernel="rbf", solver="landmarks", n_landmarks=50).fit(X, y)
    with sklearn.config_context(working_memory=0.1):
        blocks = [len(list(model._blocks(X, False, True))) for model in (exact, few)]
        assert blocks[0] == 1  # a bound takes two products and no matrix ...
        assert blocks[1] > 1  # ... but for landmarks, whose lengths are those of columns
        assert len(list(exact._blocks(X, True, False))) > 1
        values, bounds = exact.predict(X, return_bound=True)
    np.testing.assert_array_equal(bounds, exact.predict(X, return_bound=True)[1])
    assert values.shape == bounds.shape


@pytest.mark.parametrize("intercept", [True, False])
def test_intervals_are_those_of_the_gaussian_process(intercept):
    X, y = data(40)
    Y = np.column_stack([y, 2 * y + 1])
    new = X[:7] + 0.1
    for fitted in (KernelRidge(0.3, kernel="rbf", fit_intercept=intercept).fit(X, t) for t in (y, Y)):
        f, std = fitted.predict(new, return_std=True)
        half = scipy.stats.t(40 - intercept).ppf(0.95) * std
        lower, upper = fitted.predict_interval(new, 0.9)
        np.testing.assert_allclose((lower, upper), (f - half, f + half), rtol=1e-12)
        inner, outer = fitted.predict_interval(new, 0.9, kind="mean")
        assert np.all((lower < inner) & (inner < f) & (f < outer) & (outer < upper))


def test_intervals_hold_what_they_promise():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        X = rng.uniform(0, 5, (31, 1))
        K = rbf_kernel(X, gamma=1.0)
        y = rng.multivariate_normal(np.zeros(31), K / 0.1 + np.eye(31))
        lower, upper = KernelRidge(0.1, kernel="rbf", gamma=1.0).fit(X[1:], y[1:]).predict_interval(X[:1], 0.8)
        held += lower[0] <= y[0] <= upper[0]
    assert 140 <= held <= 178  # of 200, four standard deviations about 160


def test_intervals_that_cannot_be_are_refused():
    X, y = data(20)
    with pytest.raises(ValueError, match="level"):
        KernelRidge(kernel="rbf").fit(X, y).predict_interval(X, 1.0)
    with pytest.raises(ValueError, match="kind"):
        KernelRidge(kernel="rbf").fit(X, y).predict_interval(X, kind="both")
    with pytest.raises(ValueError, match="precomputed"):
        KernelRidge(kernel="precomputed").fit(X @ X.T, y).predict_interval(X @ X.T)


@pytest.mark.parametrize("kernel", ["linear", "poly", "cosine"])
@pytest.mark.parametrize("intercept", [False, True])
def test_few_features_solve_the_problem_of_many_rows(kernel, intercept):
    X, Y = data(150, 3, 2)
    w = np.random.default_rng(3).uniform(0.5, 2.0, 150)
    params = {"kernel": kernel, "alpha": [0.03, 3.0], "fit_intercept": intercept}
    ours = KernelRidge(**params).fit(X + 1.0, Y, sample_weight=w)
    exact = KernelRidge(solver="eigh", **params).fit(X + 1.0, Y, sample_weight=w)
    assert "features" in ours.certificate_.method
    assert ours.certificate_.converged
    own = np.sqrt(ours.kernel_.diagonal(X + 1.0))[:, None]
    allowed = ours.certificate_.error_bounds + exact.certificate_.error_bounds
    # of the same coefficients, to rounding of the product with them
    slack = 1e-13 * np.abs(ours.dual_coef_).sum(axis=0) * own.max() ** 2
    assert np.all(np.abs(ours.predict(X + 1.0) - exact.predict(X + 1.0)) <= allowed * own + slack)
    np.testing.assert_allclose(ours.training_error_, exact.training_error_, rtol=1e-8)


def test_features_serve_any_number_of_rows_and_give_way_where_digits_are_lost():
    X, y = data(25_000, 2)
    fitted = KernelRidge(alpha=1.0, kernel="linear").fit(X, y)
    assert fitted.solver_ == "cholesky"
    assert "2 features" in fitted.certificate_.method
    B = np.linalg.solve(X.T @ X + np.eye(2), X.T @ y)
    np.testing.assert_allclose(fitted.predict(X[:50]), X[:50] @ B, rtol=1e-9)
    lost = KernelRidge(alpha=1e-9, kernel="poly")
    with pytest.warns(NumericalWarning):
        lost.fit(100 * X[:300], y[:300])
    assert "features" not in lost.certificate_.method
