"""KernelRidgeClassifier: refits without each row, scikit-learn's answers and calibration, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import _sigmoid_calibration
from sklearn.datasets import load_digits, load_iris, make_blobs, make_moons
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian.kernel_ridge.choose import held_out_rows
from gramian.kernel_ridge.classifier import KernelRidgeClassifier, ProbabilitySigmoid, fit_sigmoid, probabilities
from gramian.kernels import Gaussian, Linear
from oracles import Array

ALPHAS = np.array([0.01, 0.1, 1.0, 10.0])


def moons(n: int = 120, noise: float = 0.25, seed: int = 0) -> tuple[Array, Array]:
    X, y = make_moons(n, noise=noise, random_state=seed)
    return X, y


def blobs(n: int = 60, seed: int = 0, spread: float = 2.0) -> tuple[Array, Array]:
    X, y = make_blobs(n, centers=3, cluster_std=spread, random_state=seed)
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        KernelRidgeClassifier(),
        KernelRidgeClassifier(solver="landmarks"),
        KernelRidgeClassifier(gamma=[0.1, 1.0], criterion="accuracy", class_weight="balanced"),
    ]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def naive_left_out(X: Array, Y: Array, alpha: float, gamma: float) -> Array:
    """Decision values of each row by scikit-learn's fit to the others."""
    out = np.empty_like(Y)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        out[i] = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(X[rest], Y[rest]).predict(X[[i]])[0]
    return out


def test_scores_coefficients_and_sigmoids_follow_from_refits() -> None:
    X, y = blobs(45)
    Y = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    ours = KernelRidgeClassifier(ALPHAS, gamma=0.2, fit_intercept=False).fit(X, y)
    values = [naive_left_out(X, Y, alpha, 0.2) for alpha in ALPHAS]
    assert_allclose(ours.scores_[0], [-np.mean((Y - f) ** 2) for f in values], rtol=1e-9)
    best = int(np.argmax(ours.scores_[0]))
    assert ours.alpha_ == ALPHAS[best]
    theirs = KernelRidge(alpha=ours.alpha_, kernel="rbf", gamma=0.2).fit(X, Y)
    assert_allclose(ours.decision_function(X), theirs.predict(X), atol=1e-9)
    a, b = _sigmoid_calibration(values[best].ravel(), Y.ravel())
    assert_allclose([ours.sigmoid_.slope, ours.sigmoid_.offset], [-a, -b], rtol=1e-4, atol=1e-4)
    by_accuracy = KernelRidgeClassifier(ALPHAS, gamma=0.2, fit_intercept=False, criterion="accuracy").fit(X, y)
    assert_allclose(by_accuracy.scores_[0], [np.mean(f.argmax(axis=1) == Y.argmax(axis=1)) for f in values])
    assert by_accuracy.best_score_ == by_accuracy.scores_.max()


def test_two_classes_have_one_function() -> None:
    X, y = moons()
    ours = KernelRidgeClassifier(ALPHAS, gamma=1.0, fit_intercept=False).fit(X, y)
    values = [naive_left_out(X, 2.0 * y - 1.0, alpha, 1.0) for alpha in ALPHAS]
    assert_allclose(ours.scores_[0], [-np.mean((2 * y - 1 - f) ** 2) for f in values], rtol=1e-9)
    assert ours.decision_function(X).shape == (120,)
    assert ours.dual_coef_.shape == (120,)
    assert_array_equal(ours.predict(X), (ours.decision_function(X) > 0).astype(int))
    P = ours.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0)
    assert_allclose(P[:, 1], ours.sigmoid_(ours.decision_function(X)))
    assert_array_equal(P.argmax(axis=1), ours.predict(X))
    assert abs(ours.sigmoid_.offset) < 1e-12
    assert_allclose(ours.predict_log_proba(X), np.log(P))


def test_a_linear_kernel_with_intercept_is_scikit_learns_ridge_classifier() -> None:
    X, y = blobs()
    ours = KernelRidgeClassifier([3.0], kernel=Linear()).fit(X, y)
    theirs = RidgeClassifier(alpha=3.0).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-8, atol=1e-10)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    balanced = KernelRidgeClassifier([3.0], kernel="linear", class_weight="balanced").fit(X[5:], y[5:])
    reference = RidgeClassifier(alpha=3.0, class_weight="balanced").fit(X[5:], y[5:])
    assert_allclose(balanced.decision_function(X), reference.decision_function(X), rtol=1e-8, atol=1e-10)
    given_weights = {"ant": 2.0, "cat": 0.5}
    weighted = KernelRidgeClassifier([3.0], kernel="linear", class_weight=given_weights).fit(X, y)
    reference = RidgeClassifier(alpha=3.0, class_weight=given_weights).fit(X, y)
    assert_allclose(weighted.decision_function(X), reference.decision_function(X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2, 1: 1}])
@pytest.mark.parametrize("criterion", ["loo", "accuracy"])
def test_counts_are_repeated_rows(class_weight: Any, criterion: str) -> None:
    X, y = moons(50)
    w = np.random.default_rng(0).integers(0, 4, 50)
    often, new = np.repeat(np.arange(50), w), moons(20, seed=1)[0]
    model = KernelRidgeClassifier(ALPHAS, gamma=[0.5, 2.0], class_weight=class_weight, criterion=criterion)
    ours, long = clone(model).fit(X, y, w), clone(model).fit(X[often], y[often])
    assert_allclose(ours.scores_, long.scores_, rtol=1e-9)
    assert_allclose(ours.decision_function(new), long.decision_function(new), rtol=1e-8, atol=1e-9)
    assert_allclose(ours.predict_proba(new), long.predict_proba(new), rtol=1e-6, atol=1e-9)


def test_class_weights_leave_out_whole_rows() -> None:
    X, y = moons(40)
    w = compute_sample_weight({0: 2, 1: 1}, y)
    ours = KernelRidgeClassifier([0.5], gamma=1.0, class_weight={0: 2, 1: 1}, fit_intercept=False).fit(X, y)
    errors = np.empty(40)
    for i in range(40):
        rest = np.arange(40) != i
        fit = KernelRidge(alpha=0.5, kernel="rbf", gamma=1.0).fit(X[rest], 2.0 * y[rest] - 1.0, w[rest])
        errors[i] = 2 * y[i] - 1 - fit.predict(X[[i]])[0]
    assert_allclose(-ours.best_score_, np.mean(w * errors**2), rtol=1e-9)


def test_probabilities_are_better_than_clipped_values_and_the_noise_is_known() -> None:
    X, y = moons(150, noise=0.35)
    new, truth = moons(1500, noise=0.35, seed=1)
    ours = KernelRidgeClassifier(gamma=[0.3, 1.0, 3.0]).fit(X, y)
    P = ours.predict_proba(new)[:, 1]
    clipped = np.clip((ours.decision_function(new) + 1) / 2, 1e-6, 1 - 1e-6)
    assert log_loss(truth, P) < log_loss(truth, clipped)
    assert brier_score_loss(truth, P) < brier_score_loss(truth, np.full(1500, 0.5)) / 1.8
    for low in (0.0, 0.25, 0.5, 0.75):  # in each quarter the share of the class is near the mean probability
        inside = (low <= P) & (low + 0.25 >= P)
        assert abs(truth[inside].mean() - P[inside].mean()) < 0.12
    assert ours.score(new, truth) > 0.85


def test_honest_values_calibrate_better_than_fitted_ones() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 20)), rng.integers(0, 2, 80)  # nothing to learn
    ours = KernelRidgeClassifier([0.1], gamma=0.05).fit(X, y)
    assert ours.score(X, y) > 0.95
    new, truth = rng.normal(size=(500, 20)), rng.integers(0, 2, 500)
    assert log_loss(truth, ours.predict_proba(new)) < 0.75
    fitted = fit_sigmoid(ours.decision_function(X), y > 0)
    assert log_loss(truth, fitted(ours.decision_function(new))) > 0.85


def test_digits_are_read() -> None:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16.0, y[order]
    ours = KernelRidgeClassifier(gamma=[0.02, 0.05]).fit(X[:500], y[:500])
    assert ours.score(X[500:], y[500:]) > 0.975
    P = ours.predict_proba(X[500:])
    assert P.shape == (1297, 10)
    assert log_loss(y[500:], P) < 0.13
    assert_array_equal(ours.classes_[P.argmax(axis=1)], ours.predict(X[500:]))


def test_a_matrix_gives_the_same_as_its_kernel() -> None:
    X, y = blobs()
    new = blobs(10, seed=1)[0]
    ours = KernelRidgeClassifier(gamma=0.2).fit(X, y)
    matrix = KernelRidgeClassifier(kernel="precomputed").fit(rbf_kernel(X, gamma=0.2), y)
    assert_allclose(matrix.predict_proba(rbf_kernel(new, X, gamma=0.2)), ours.predict_proba(new), rtol=1e-6, atol=1e-9)
    called = KernelRidgeClassifier(kernel=lambda a, b: float(len(set(a) & set(b)))).fit(
        ["aa", "ab", "cd", "dd"], list("xxyy")
    )
    assert_array_equal(called.predict(["a", "c"]), ["x", "y"])


def test_bounds_come_with_decision_values() -> None:
    X, y = blobs()
    f, bound = KernelRidgeClassifier(ALPHAS, gamma=0.2).fit(X, y).decision_function(X, return_bound=True)
    assert f.shape == bound.shape == (60, 3)
    assert (bound < 1e-9).all()


def test_classes_without_weight_stay_classes() -> None:
    X, y = blobs()
    w = (y != "cat").astype(float)
    ours = KernelRidgeClassifier(ALPHAS, gamma=0.2).fit(X, y, w)
    assert_array_equal(ours.classes_, ["ant", "bee", "cat"])
    assert (ours.predict_proba(X)[:, 2] < 0.1).all()
    assert "cat" not in ours.predict(X)
    balanced = KernelRidgeClassifier(ALPHAS, gamma=0.2, class_weight="balanced").fit(X, y, w)
    assert "cat" not in balanced.predict(X)


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({}, np.zeros(60), "only one class"),
        ({}, np.zeros((60, 2)), "one label for each row"),
        ({}, np.linspace(0, 1, 60), "Unknown label type"),
        ({}, None, "requires y"),
        ({"criterion": "gcv"}, None, "criterion must be one of loo, accuracy"),
        ({"class_weight": "even"}, np.arange(60) % 2, "class_weight must be"),
        ({"alphas": [-1.0]}, np.arange(60) % 2, "alphas must be"),
    ],
)
def test_wrong_input_is_named(params: dict[str, Any], y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KernelRidgeClassifier(**params).fit(blobs()[0], y)


def test_rows_without_weight_do_not_make_a_class() -> None:
    X, y = moons(20)
    with pytest.raises(ValueError, match="weight: 1"):
        KernelRidgeClassifier().fit(X, y, (y == 1).astype(float))


def test_pickled_models_predict_the_same() -> None:
    X, y = blobs()
    model = KernelRidgeClassifier(kernel=[Gaussian(0.2), Linear()]).fit(X, y)
    assert_allclose(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X), rtol=0)
    assert not hasattr(clone(model), "sigmoid_")


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("noise", [0.01, 1.0, 5.0])
def test_the_sigmoid_is_that_of_scikit_learn(scale: float, noise: float) -> None:
    rng = np.random.default_rng(3)
    f, w = rng.normal(size=300), rng.uniform(0.1, 3.0, 300)
    positive = f + noise * rng.normal(size=300) > 0.5
    a, b = _sigmoid_calibration(scale * f, positive.astype(float), w)
    ours = fit_sigmoid(scale * f, positive, w)
    assert_allclose(ours(scale * f), expit(-(a * scale * f + b)), atol=2e-5)


def test_values_that_say_nothing_give_the_share_of_the_class() -> None:
    positive = np.arange(10) < 3
    share = (3 * 4 / 5 + 7 / 9) / 10  # Platt's targets, averaged
    for values in (np.ones(10), np.arange(10.0)):  # constant, or larger where the class is not
        assert_allclose(fit_sigmoid(values, positive)(values), share)
    assert_allclose(probabilities(np.full((1, 3), -1e4), ProbabilitySigmoid(1.0, 0.0)), 1 / 3)


@given(st.integers(4, 60), st.integers(0, 10**6), st.floats(-3, 3))
def test_the_gradient_of_the_sigmoid_vanishes(n: int, seed: int, log: float) -> None:
    rng = np.random.default_rng(seed)
    f = 10.0**log * rng.normal(size=n)
    positive = rng.random(n) < expit(f / f.std())
    ours = fit_sigmoid(f, positive)
    high, low = positive.sum(), (~positive).sum()
    t = np.where(positive, (high + 1) / (high + 2), 1 / (low + 2))
    gradient = ours(f) - t
    assert abs(gradient.sum()) < 1e-6 * n
    assert ours.slope >= 0
    inner = float(gradient @ f) / float(np.abs(f).max())
    assert abs(inner) < 1e-6 * n if ours.slope > 0 else inner > -1e-6 * n


@pytest.mark.parametrize("criterion", ["loo", "accuracy"])
@pytest.mark.parametrize("solver", ["cg", "landmarks"])
def test_other_solvers_choose_and_calibrate_alike(solver: str, criterion: str) -> None:
    X, y = blobs(150)
    new, truth = blobs(600, seed=0)
    model = KernelRidgeClassifier(ALPHAS, gamma=[0.05, 0.2], criterion=criterion, n_landmarks=60)
    exact, ours = clone(model).fit(X, y), clone(model).set_params(solver=solver).fit(X, y)
    assert abs(ours.best_score_ - exact.best_score_) < 0.1
    assert abs(log_loss(truth, ours.predict_proba(new)) - log_loss(truth, exact.predict_proba(new))) < 0.1
    assert np.mean(ours.predict(new) == exact.predict(new)) > 0.93
    assert_array_equal(ours.classes_[ours.predict_proba(new).argmax(axis=1)], ours.predict(new))


def test_landmarks_at_all_rows_leave_out_as_the_exact_path() -> None:
    X, y = blobs(40)
    model = KernelRidgeClassifier(ALPHAS, gamma=0.2, criterion="accuracy", n_landmarks=40, class_weight={"ant": 2})
    exact, ours = clone(model).fit(X, y), clone(model).set_params(solver="landmarks").fit(X, y)
    assert_allclose(ours.scores_, exact.scores_, atol=1e-12)
    assert_allclose(
        [ours.sigmoid_.slope, ours.sigmoid_.offset], [exact.sigmoid_.slope, exact.sigmoid_.offset], rtol=1e-5
    )


def test_each_class_is_held_out_alike() -> None:
    labels = np.repeat([0, 1, 2], [50, 25, 5])
    fit, judge = held_out_rows(80, 1, labels)
    assert_array_equal(np.bincount(labels[judge]), [10, 5, 1])
    assert_array_equal(np.sort(np.concatenate([fit, judge])), np.arange(80))


@pytest.mark.parametrize("criterion", ["loo", "accuracy"])
def test_counts_of_weighted_classes_are_repeated_rows_for_landmarks_too(criterion: str) -> None:
    X, y = (part[20:] for part in load_iris(return_X_y=True))
    w = np.random.default_rng(3).integers(1, 4, len(y))
    often, class_weight = np.repeat(np.arange(len(y)), w), {0: 1, 1: 2.5, 2: 0.7}
    model = KernelRidgeClassifier(
        np.geomspace(1e-3, 10, 5), class_weight=class_weight, criterion=criterion, solver="landmarks"
    )
    ours, long = clone(model).fit(X, y, w), clone(model).fit(X[often], y[often])
    exact = clone(model).set_params(solver="eigh").fit(X, y, w)
    for other in (long, exact):
        assert_allclose(ours.scores_, other.scores_, rtol=1e-8)
        assert ours.alpha_ == other.alpha_
        assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-6)
    held_out = clone(model).set_params(solver="cg").fit(X, y, w)
    assert held_out.scores_.shape == (1, 5)


def test_copies_held_out_together_count_as_rows_do() -> None:
    """The score of rows held out is Σ c v e²/Σ c, of c copies and weights v of classes."""
    X, y = moons(60)
    copies, share = np.random.default_rng(0).integers(1, 4, 60), {0: 2.5, 1: 0.7}
    ours = KernelRidgeClassifier([0.5], gamma=1.0, solver="cg", class_weight=share, fit_intercept=False)
    score = ours.fit(X, y, copies).best_score_
    fit, judge = held_out_rows(60, 0, y)
    v = compute_sample_weight(share, y)
    theirs = KernelRidge(alpha=0.5, kernel="rbf", gamma=1.0).fit(X[fit], 2.0 * y[fit] - 1, (copies * v)[fit])
    errors = 2 * y[judge] - 1 - theirs.predict(X[judge])
    assert_allclose(-score, (copies * v)[judge] @ errors**2 / copies[judge].sum(), rtol=2e-2)


def test_a_kernel_of_gaussian_processes_is_a_kernel() -> None:
    X, y = moons(60)
    ours = KernelRidgeClassifier(ALPHAS, kernel=RBF(0.5)).fit(X, y)
    own = KernelRidgeClassifier(ALPHAS, kernel="rbf", gamma=2.0).fit(X, y)
    assert_allclose(ours.predict_proba(X), own.predict_proba(X), atol=1e-8)
    assert clone(ours).get_params()["kernel__length_scale"] == 0.5
