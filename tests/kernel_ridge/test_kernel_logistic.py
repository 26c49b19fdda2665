"""KernelLogisticRegression: against Newton's method written out, more digits, scikit-learn, and what is promised."""

import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian.kernel_ridge.logistic as logistic
from gramian import KernelLogisticRegression
from gramian.kernel_ridge.logistic import LogisticObjective, assign_folds
from gramian.kernels import Gaussian, Linear, Polynomial
from oracles import Array


def moons(n: int = 60, seed: int = 0) -> tuple[Array, Array]:
    X, y = make_moons(n, noise=0.3, random_state=seed)
    return X, y


def iris() -> tuple[Array, Array]:
    X, y = load_iris(return_X_y=True)
    return X[::2], np.array(["a", "b", "c"])[y[::2]]


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        KernelLogisticRegression(),
        KernelLogisticRegression(1.0, kernel="linear", class_weight="balanced"),
        KernelLogisticRegression([0.1, 1.0], gamma=[0.1, 1.0]),
    ]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def naive(K: Array, T: Array, w: Array, lam: float, intercept: bool) -> tuple[Array, Array]:
    """Newton's method on all coefficients at once, of softmax of every class: the Hessian as it stands."""
    n, c = T.shape
    B = np.hstack([K, np.ones((n, 1))]) if intercept else K
    m = B.shape[1]
    Q = np.zeros((m, m))
    Q[:n, :n] = lam * K
    theta = np.zeros((m, c))
    for _ in range(60):
        F = B @ theta
        P = np.exp(F - F.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        g = B.T @ (w[:, None] * (P - T)) + Q @ theta
        H = np.zeros((m * c, m * c))
        for j in range(c):
            for k in range(c):
                block = B.T @ ((w * P[:, j] * ((j == k) - P[:, k]))[:, None] * B) + (j == k) * Q
                H[j * m : (j + 1) * m, k * m : (k + 1) * m] = block
        step = np.linalg.lstsq(H, g.T.ravel(), rcond=1e-14)[0].reshape(c, m).T
        theta = theta - step
        if np.max(np.abs(B @ step)) < 1e-11:
            break
    F = B @ theta
    return F - F.mean(axis=1, keepdims=True), theta


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_are_newtons_method_written_out(intercept: bool, weighted: bool) -> None:
    X, y = iris()
    w = np.random.default_rng(0).uniform(0.3, 2.0, len(X)) if weighted else np.ones(len(X))
    K = rbf_kernel(X, gamma=0.5)
    T = (y[:, None] == np.unique(y)).astype(float)
    expected, _ = naive(K, T, w, 0.3, intercept)
    model = KernelLogisticRegression(0.3, gamma=0.5, fit_intercept=intercept, tol=1e-9)
    found, bound = model.fit(X, y, w if weighted else None).decision_function(X, return_bound=True)
    assert_allclose(found, expected, atol=1e-7)
    assert np.all(np.abs(found - expected) <= bound + 1e-9)
    assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_bounds_hold_however_early_it_stops(tol: float, lam: float, intercept: bool) -> None:
    X, y = moons()
    new = moons(30, 1)[0]
    options: dict[str, Any] = {"gamma": 2.0, "fit_intercept": intercept}
    exact = KernelLogisticRegression(lam, tol=1e-12, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rounding may leave more than 1e-12
        truth = exact.fit(X, y).decision_function(new)
    rough = KernelLogisticRegression(lam, tol=tol, **options).fit(X, y)
    found, bound = rough.decision_function(new, return_bound=True)
    assert np.all(np.abs(found - truth) <= bound)
    certificate = rough.certificate_
    assert certificate.converged
    assert certificate.gradient <= tol
    assert np.all(np.diff(certificate.objective) <= 0)


def test_two_classes_have_the_digits_that_mpmath_finds() -> None:
    X, y = moons(14)
    K, lam = rbf_kernel(X, gamma=1.0), 0.05
    with mp.workdps(40):
        M, t = mp.matrix(K.tolist()), [mp.mpf(int(v)) for v in y]
        alpha, b, n = mp.zeros(14, 1), mp.mpf(0), 14
        for _ in range(40):
            f = M * alpha + b * mp.ones(n, 1)
            p = [1 / (1 + mp.exp(-v)) for v in f]
            # λα + p − t = 0 and Σα = 0: Newton's method on the equations themselves
            A = mp.zeros(n + 1, n + 1)
            rhs = mp.zeros(n + 1, 1)
            for i in range(n):
                h = p[i] * (1 - p[i])
                rhs[i] = -(lam * alpha[i] + p[i] - t[i])
                A[i, n] = h
                for j in range(n):
                    A[i, j] = h * M[i, j] + (lam if i == j else 0)
                A[n, i] = 1
            rhs[n] = -sum(alpha)
            step = mp.lu_solve(A, rhs)
            alpha, b = alpha + step[:n, 0], b + step[n]
        truth = np.array([float(v) for v in alpha]), float(b)
    model = KernelLogisticRegression(lam, gamma=1.0, tol=1e-12).fit(X, y)
    assert_allclose(model.dual_coef_, truth[0], atol=1e-10)
    assert model.intercept_ == pytest.approx(truth[1], abs=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_on_features_that_can_be_written_down_it_is_scikit_learns(classes: int) -> None:
    X, y = iris()
    X, y = X[y < "abcd"[classes]], y[y < "abcd"[classes]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    pairs = [np.sqrt(1.0 + (i != j)) * X[:, i] * X[:, j] for i in range(4) for j in range(i + 1)]
    phi = np.column_stack([np.ones(len(X)), np.sqrt(2) * X, *pairs])  # (1 + x·z)²
    w = np.random.default_rng(0).uniform(0.3, 2.0, len(X))
    ours = KernelLogisticRegression(0.5, kernel=Polynomial(2, gamma=1.0, coef0=1.0), tol=1e-9).fit(X, y, w)
    theirs = LogisticRegression(C=2.0, tol=1e-10, solver="newton-cholesky", max_iter=1000).fit(phi, y, w)
    assert_allclose(ours.decision_function(X), theirs.decision_function(phi), atol=1e-5)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(phi), atol=1e-6)
    assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(phi), atol=1e-5)
    assert_array_equal(ours.predict(X), theirs.predict(phi))


def test_the_mode_is_that_of_scikit_learns_gaussian_process() -> None:
    X, y = moons(40)
    process = GaussianProcessClassifier(RBF(0.7), optimizer=None).fit(X, y)
    ours = KernelLogisticRegression(1.0, kernel=Gaussian(bandwidth=0.7), fit_intercept=False, tol=1e-9).fit(X, y)
    f = rbf_kernel(X, gamma=0.5 / 0.49) @ (process.base_estimator_.y_train_ - process.base_estimator_.pi_)
    assert_allclose(ours.decision_function(X), f, atol=1e-4)


def test_large_sets_are_solved_by_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = iris()
    exact = KernelLogisticRegression(0.01, gamma=0.3, tol=1e-9).fit(X, y)
    monkeypatch.setattr(logistic, "IN_MEMORY", 10)
    monkeypatch.setattr(logistic, "RANKS", (8, 8))  # a preconditioner that leaves much to do
    model = KernelLogisticRegression(0.01, gamma=0.3, tol=1e-9).fit(X, y)
    assert model.certificate_.passes > exact.certificate_.passes
    assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-6)
    sparse = KernelLogisticRegression(0.01, gamma=0.3, tol=1e-9).fit(sp.csr_array(X), y)
    assert_allclose(sparse.decision_function(sp.csr_array(X)), exact.decision_function(X), atol=1e-6)


def test_a_choice_is_that_of_refits_without_each_fold() -> None:
    X, y = moons(50)
    grid, gammas = [0.01, 0.1, 1.0], [0.5, 5.0]
    model = KernelLogisticRegression(grid, gamma=gammas).fit(X, y)
    folds = assign_folds(X, y, 0)
    for k, gamma in enumerate(gammas):
        for j, lam in enumerate(model.alphas_[k]):
            total = 0.0
            for fold in range(5):
                away = folds == fold
                part = KernelLogisticRegression(lam, gamma=gamma, tol=1e-9).fit(X[~away], y[~away])
                total += log_loss(y[away], part.predict_proba(X[away]), normalize=False)
            assert model.scores_[k, j] == pytest.approx(-total / 50, abs=2e-3)
    assert model.best_score_ == model.scores_.max()
    at = np.unravel_index(np.argmax(model.scores_), (2, 3))
    assert model.alpha_ == model.alphas_[at]
    assert model.gamma_ == gammas[at[0]]


@pytest.mark.parametrize("several", [False, True])
def test_every_other_penalty_first_finds_what_all_of_them_find(several: bool) -> None:
    X, y = iris() if several else moons(80)
    gammas = [0.05, 0.5, 5.0]
    quick = KernelLogisticRegression(gamma=gammas).fit(X, y)
    every = KernelLogisticRegression(logistic.ALPHAS, gamma=gammas).fit(X, y)
    assert (quick.gamma_, quick.alpha_) == (every.gamma_, every.alpha_)
    tried = np.isfinite(quick.scores_)
    assert 6 < tried.sum() < 0.8 * tried.size
    assert_allclose(quick.scores_[tried], every.scores_[tried], atol=2e-3)
    assert_allclose(quick.predict_proba(X), every.predict_proba(X), atol=1e-6)


def test_counts_are_repeated_rows_also_in_the_choice() -> None:
    X, y = moons(40)
    w = np.random.default_rng(0).integers(0, 4, 40)
    often = np.repeat(np.arange(40), w)
    ours = KernelLogisticRegression([0.1, 1.0], gamma=1.0).fit(X, y, w)
    long = KernelLogisticRegression([0.1, 1.0], gamma=1.0).fit(X[often], y[often])
    assert_allclose(ours.scores_, long.scores_, atol=1e-3)
    assert_allclose(ours.predict_proba(X), long.predict_proba(X), atol=1e-6)
    assert np.all(ours.dual_coef_[w == 0] == 0)


def test_kernels_given_as_matrices_and_functions() -> None:
    X, y = iris()
    K = rbf_kernel(X, gamma=0.5)
    plain = KernelLogisticRegression(0.1, gamma=0.5).fit(X, y)
    matrix = KernelLogisticRegression(0.1, kernel="precomputed").fit(K, y)
    assert_allclose(matrix.decision_function(K), plain.decision_function(X), atol=1e-5)
    words = [str(round(x, 1)) for x in X[:, 2]]
    shared = KernelLogisticRegression(0.1, kernel=lambda a, b: float(a[0] == b[0]) + float(a == b)).fit(words, y)
    assert shared.score(words, y) > 0.8
    with pytest.raises(ValueError, match="positive semidefinite"):
        KernelLogisticRegression(1.0, kernel="sigmoid").fit(X, y)


def test_separable_classes_and_small_penalties_end() -> None:
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    for lam in (1e-2, 1e-6):
        model = KernelLogisticRegression(lam, kernel=Linear()).fit(x, [0, 0, 1, 1])
        assert model.certificate_.converged
        assert model.intercept_ == pytest.approx(0.0, abs=1e-6)
        w = float(model.dual_coef_ @ x[:, 0])
        # Σ x(1 − p) = λw by symmetry
        p = 1.0 / (1.0 + np.exp(-w * np.abs(x[:, 0])))
        assert float(np.abs(x[:, 0]) @ (1 - p)) == pytest.approx(lam * w, rel=1e-4)


def test_a_fit_that_is_stopped_says_so() -> None:
    X, y = moons()
    with pytest.warns(UserWarning, match="standard errors"):
        model = KernelLogisticRegression(1e-3, gamma=2.0, max_iter=1).fit(X, y)
    assert not model.certificate_.converged


def test_what_cannot_be_fitted_is_refused() -> None:
    X, y = moons()
    with pytest.raises(ValueError, match="one class"):
        KernelLogisticRegression().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="positive weight"):
        KernelLogisticRegression().fit(*iris(), (iris()[1] != "c").astype(float))
    with pytest.raises(ValueError, match="alphas"):
        KernelLogisticRegression(0.0).fit(X, y)


def test_probabilities_are_calibrated_and_more_likely_than_those_of_least_squares() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    model = KernelLogisticRegression([1e-2, 1e-1], gamma="median").fit(X[:200], y[:200])
    P = model.predict_proba(X[200:])
    assert model.score(X[200:], y[200:]) > 0.9
    assert log_loss(y[200:], P) < 0.4
    assert abs(P.max(axis=1).mean() - np.mean(P.argmax(axis=1) == y[200:])) < 0.15


def test_held_out_rows_need_no_problem_of_their_own() -> None:
    X, y = moons(30)
    K, T = rbf_kernel(X, gamma=1.0), y[:, None].astype(float)
    w = np.ones(30)
    w[::4] = 0.0
    F = np.linalg.cholesky(K + 1e-10 * np.eye(30))
    found = LogisticObjective(lambda V: K @ V, F, 1.0, T, w, True).minimise(0.2, tol=1e-10)
    part = KernelLogisticRegression(0.2, gamma=1.0, tol=1e-10).fit(X[w > 0], y[w > 0])
    assert_allclose(found.f[:, 0], part.decision_function(X), atol=1e-8)
