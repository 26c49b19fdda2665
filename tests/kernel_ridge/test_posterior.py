"""Bounds from both sides on the variance of a prediction, against dense solutions in higher precision."""

import warnings

import mpmath
import numpy as np
import pytest

import gramian.kernel_ridge.uncertainty as _kernel_variance
from gramian import KernelRidge
from gramian.kernel_ridge import posterior
from gramian.kernel_ridge.posterior import BoundedPosterior
from gramian.kernels import Gaussian, Matern
from gramian.results import NumericalWarning


def solved(kernel, X, w, lam, intercept, new):
    """Var(f + b)/s of each new point with 40 digits, from the same values of the kernel."""
    n = len(X)
    with mpmath.workdps(40):
        A = mpmath.matrix(kernel(X).tolist())
        for i in range(n):
            A[i, i] += mpmath.mpf(float(lam)) / mpmath.mpf(float(w[i]))
        L = mpmath.cholesky(A)

        def half(values):
            z = mpmath.matrix(n, 1)
            for i in range(n):
                z[i] = (mpmath.mpf(float(values[i])) - sum(L[i, j] * z[j] for j in range(i))) / L[i, i]
            return z

        one, found = half(np.ones(n)), []
        total = sum(x * x for x in one)
        for k, own in zip(kernel(X, new).T, kernel.diagonal(new), strict=True):
            z = half(k)
            v = mpmath.mpf(float(own)) - sum(x * x for x in z)
            if intercept:
                v += (1 - sum(x * y for x, y in zip(one, z, strict=True))) ** 2 / total
            found.append(float(v / mpmath.mpf(float(lam))))
    return np.array(found)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kernel", "lam"), [(Gaussian(0.4), 0.3), (Gaussian(2.0), 1e-3), (Matern(1.5, 0.7), 0.05)])
def test_bounds_hold_and_meet(kernel, lam, weighted, intercept):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(35, 2)), rng.normal(size=(4, 2)) * 2
    w = rng.uniform(0.3, 3.0, 35) if weighted else None
    truth = solved(kernel, X, np.ones(35) if w is None else w, lam, intercept, new)
    found = BoundedPosterior(kernel, X, w, lam, intercept, 0).bounds(new, 1e-3)
    assert np.all(found.lower <= truth)
    assert np.all(truth <= found.upper)
    assert found.width.max() < 1e-3


@pytest.mark.parametrize(("rank", "lam"), [(0.5, 0.02), (2.0, 0.2), (8.0, 1.0)])
def test_many_rows_with_a_small_factor(monkeypatch, rank, lam):
    """The factor tells little of K, so that several steps are needed; a dense solution says what is right."""
    monkeypatch.setattr(posterior, "RANK", rank)
    rng = np.random.default_rng(1)
    X, new, kernel = rng.normal(size=(700, 4)), rng.normal(size=(40, 4)), Gaussian(0.5)
    k = kernel(X, new)
    truth = (1.0 - np.sum(k * np.linalg.solve(kernel(X) + lam * np.eye(700), k), axis=0)) / lam
    for width in (0.3, 0.05, 0.005):
        found = BoundedPosterior(kernel, X, None, lam, False, 0).bounds(new, width)
        assert np.all(found.lower <= truth * (1 + 1e-10))
        assert np.all(truth <= found.upper * (1 + 1e-10))
        assert found.width.max() <= width * (1 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("gamma", "lam"), [(0.01, 0.5), (0.05, 0.05), (0.002, 1e-3)])
def test_a_smooth_kernel_needs_no_product_with_all_rows(monkeypatch, weighted, intercept, gamma, lam):
    """The trace of what the factor leaves bounds the variance from above; a dense solution says what is right."""
    rng = np.random.default_rng(3)
    X, new, kernel = rng.normal(size=(900, 3)), 1.5 * rng.normal(size=(60, 3)), Gaussian(gamma)
    w = rng.uniform(0.2, 3.0, 900) if weighted else np.ones(900)
    k, A = kernel(X, new), kernel(X) + lam * np.diag(1 / w)
    truth = kernel.diagonal(new) - np.sum(k * np.linalg.solve(A, k), axis=0)
    if intercept:
        a = np.linalg.solve(A, np.ones(900))
        truth = truth + (1 - a @ k) ** 2 / a.sum()
    found = BoundedPosterior(kernel, X, w if weighted else None, lam, intercept, 0)
    monkeypatch.setattr(BoundedPosterior, "_multiply", None)
    ends = found.bounds(new)
    slack = 1e-10 * (1 + 1 / lam)
    assert np.all(ends.lower <= truth / lam + slack)
    assert np.all(truth / lam <= ends.upper + slack)
    assert ends.width.max() <= 0.05


def test_points_are_worked_on_in_blocks(monkeypatch):
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(150, 3)), rng.normal(size=(25, 3))
    whole = BoundedPosterior(Gaussian(0.5), X, None, 0.1, True, 0)
    one = whole.bounds(new)
    monkeypatch.setattr(posterior, "POINTS", 7)
    several = whole.bounds(new)
    assert np.all(np.maximum(one.lower, several.lower) <= np.minimum(one.upper, several.upper))
    assert len(whole.bounds(new[:0]).lower) == 0


def sine(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_fit_of_more_rows_than_are_factored(monkeypatch, solver, intercept):
    X, y = sine(300)
    given = {"kernel": "rbf", "gamma": 0.5, "fit_intercept": intercept, "solver": solver}
    truth = KernelRidge(0.1, **given).fit(X, y).predict(X[:20], return_std=True)[1]
    monkeypatch.setattr(_kernel_variance, "EXACT", 100)
    monkeypatch.setattr(_kernel_variance, "SUBSET", 60)
    model = KernelRidge(0.1, **given).fit(X, y)
    f, std = model.predict(X[:20], return_std=True)
    lower, upper = model.std_bounds(X[:20])
    assert np.all(lower <= truth * (1 + 1e-5))  # the noise itself is found to the tolerance of the fit
    assert np.all(truth <= upper * (1 + 1e-5))
    np.testing.assert_allclose(std, (lower + upper) / 2)
    assert np.all(upper / lower < 1.026)
    assert "all 300 rows" in model.std_method()
    subset = model.predict(X[:20], return_std="subset")[1]
    assert np.all(subset >= truth * (1 - 1e-5))
    low, high = model.predict_interval(X[:20])
    narrow, wide = high - low, np.subtract(*model.predict_interval(X[:20], return_std="subset")[::-1])
    assert np.all(narrow <= wide * 1.03)
    np.testing.assert_allclose((low + high) / 2, f)


def test_rows_without_weight_are_none(monkeypatch):
    monkeypatch.setattr(_kernel_variance, "EXACT", 100)
    X, y = sine(240)
    w = np.r_[np.ones(200), np.zeros(40)]
    ours = KernelRidge(0.2, kernel="rbf").fit(X, y, sample_weight=w).std_bounds(X[:9])
    theirs = KernelRidge(0.2, kernel="rbf").fit(X[:200], y[:200]).std_bounds(X[:9])
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_intervals_hold_what_they_are_about_as_often_as_they_say(monkeypatch):
    """Targets of the Gaussian process itself."""
    monkeypatch.setattr(_kernel_variance, "EXACT", 100)
    rng, inside = np.random.default_rng(3), []
    for _ in range(40):
        X = rng.normal(size=(320, 2))
        K = Gaussian(1.0)(X)
        f = np.linalg.cholesky(K + 1e-9 * np.eye(320)) @ rng.normal(size=320)
        y = f + 0.5 * rng.normal(size=320)
        model = KernelRidge(0.25, kernel="rbf", gamma=1.0).fit(X[:220], y[:220])
        low, high = model.predict_interval(X[220:])
        inside.append(np.mean((low <= y[220:]) & (y[220:] <= high)))
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_what_cannot_be_is_said(monkeypatch):
    X, y = sine(150)
    model = KernelRidge(0.1, kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="return_std"):
        model.predict(X, return_std="quick")
    with pytest.raises(ValueError, match="width"):
        model.std_bounds(X, width=0.0)
    lower, upper = model.std_bounds(X)
    np.testing.assert_array_equal(lower, upper)
    with pytest.raises(ValueError, match="landmarks"):
        KernelRidge(0.1, kernel="rbf", solver="landmarks", n_landmarks=20).fit(X, y).std_bounds(X)
    monkeypatch.setattr(_kernel_variance, "EXACT", 100)
    monkeypatch.setattr(_kernel_variance, "FACTORED", 0)
    monkeypatch.setattr(posterior, "RANK", 1.0)
    monkeypatch.setattr(posterior, "STEPS", 0)
    rough = KernelRidge(0.001, kernel="rbf", gamma=5.0).fit(X, y)
    with pytest.warns(NumericalWarning, match="upper end"):
        wide = rough.predict(X + 0.03, return_std=True)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(posterior, "STEPS", 200)
        std = rough.fit(X, y).predict(X + 0.03, return_std=True)[1]
    assert np.all(std <= wide * 1.001)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_are_factored_where_bounds_do_not_meet(monkeypatch, intercept, weighted):
    X, y = sine(150)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 150) if weighted else None
    model = KernelRidge(1e-4, kernel="rbf", gamma=20.0, fit_intercept=intercept).fit(X, y, w)
    new = np.vstack([X[:5] + 0.01, X[:2] + 3.0])
    truth = model.predict(new, return_std=True)[1]
    monkeypatch.setattr(_kernel_variance, "EXACT", 100)
    monkeypatch.setattr(posterior, "RANK", 1.0)
    again = KernelRidge(1e-4, kernel="rbf", gamma=20.0, fit_intercept=intercept).fit(X, y, w)
    lower, upper = again.std_bounds(new)
    np.testing.assert_array_equal(lower, upper)
    np.testing.assert_allclose(upper, truth, rtol=1e-6)
    monkeypatch.setattr(_kernel_variance, "FACTORED", 0)
    bounded = KernelRidge(1e-4, kernel="rbf", gamma=20.0, fit_intercept=intercept).fit(X, y, w).std_bounds(new)
    assert np.all(bounded[0] <= truth * (1 + 1e-6))
    assert np.all(truth <= bounded[1] * (1 + 1e-6))
    assert np.any(bounded[0] < bounded[1])


def test_a_device_with_room_factors_all_rows(monkeypatch, torch):
    X, y = sine(150)
    truth = KernelRidge(0.1, kernel="rbf", fit_intercept=True).fit(X, y).predict(X[:9] + 0.1, return_std=True)[1]
    monkeypatch.setattr(_kernel_variance, "EXACT", 100)
    model = KernelRidge(0.1, kernel="rbf", fit_intercept=True, device=torch.device("cpu")).fit(X, y)
    lower, upper = model.std_bounds(X[:9] + 0.1)
    np.testing.assert_array_equal(lower, upper)
    np.testing.assert_allclose(upper, truth, rtol=1e-6)
