"""Groups of features with a penalty each, as sums of kernels; and very many targets."""

import numpy as np
import pytest

from gramian import KernelRidge, KernelRidgeCV
from gramian.kernels import Linear

GROUPS = ([0, 1, 2], [3, 4], [5, 6, 7, 8])


def sample(n: int = 60, t: int = 3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 9)) * np.repeat([1.0, 5.0, 0.2], [3, 2, 4])
    W = rng.normal(size=(9, t)) * np.repeat([1.0, 0.0, 3.0], [3, 2, 4])[:, None]
    return X, X @ W + 0.3 * rng.normal(size=(n, t))


@pytest.mark.parametrize("intercept", [False, True])
def test_a_sum_of_linear_kernels_is_ridge_with_a_penalty_for_each_group(intercept):
    X, Y = sample()
    penalties = (0.5, 20.0, 3.0)
    first, second, third = ((1.0 / lam) * Linear().on(g) for lam, g in zip(penalties, GROUPS, strict=True))
    kernel = first + second + third
    model = KernelRidge(1.0, kernel=kernel, fit_intercept=intercept).fit(X, Y)
    D = np.diag(np.repeat(penalties, [3, 2, 4]))
    A, B = (X - X.mean(axis=0), Y - Y.mean(axis=0)) if intercept else (X, Y)
    expected = np.linalg.solve(A.T @ A + D, A.T @ B)  # min ‖y − Xw‖² + Σ λ_g‖w_g‖²
    parts = model.predict_parts(np.eye(9))
    for g, part in zip(GROUPS, parts, strict=True):
        np.testing.assert_allclose(part[g], expected[g], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(np.delete(part, g, axis=0), 0.0, atol=1e-12)


def test_learned_weights_of_groups_find_those_that_say_something():
    X, Y = sample()
    kernel = Linear().on(GROUPS[0]) + Linear().on(GROUPS[1]) + Linear().on(GROUPS[2])
    plain = KernelRidgeCV(kernel=kernel).fit(X, Y)
    model = KernelRidgeCV(kernel=kernel, learn="loo").fit(X, Y)
    assert np.mean(model.leave_one_out_error_**2) <= np.mean(plain.leave_one_out_error_**2)
    assert model.learned_.shares[[3, 4]].sum() < 0.02
    T, Z = sample(200)
    explained = model.explained_by_parts(T, Z)
    assert explained.shape == (3, 3)
    left = np.var(Z - model.predict(T), axis=0)
    np.testing.assert_allclose(explained.sum(axis=0), 1.0 - left / np.var(Z, axis=0), rtol=1e-10)
    assert np.all(np.abs(explained[1]) < 0.02)


@pytest.mark.parametrize("intercept", [False, True])
def test_thousands_of_targets_a_few_at_a_time(monkeypatch, intercept):
    X, Y = sample(40, 50)
    options = {"kernel": "rbf", "alpha_per_target": True, "fit_intercept": intercept}
    whole = KernelRidgeCV(np.geomspace(1e-3, 10, 6), **options).fit(X, Y)
    monkeypatch.setattr("gramian.kernel_ridge.path.PATH_CELLS", 100)
    monkeypatch.setattr("gramian.kernel_ridge.path.TARGET_CELLS", 40 * 6 * 7)
    some = KernelRidgeCV(np.geomspace(1e-3, 10, 6), **options).fit(X, Y)
    np.testing.assert_array_equal(some.alpha_, whole.alpha_)
    np.testing.assert_allclose(some.dual_coef_, whole.dual_coef_, rtol=1e-10)
    np.testing.assert_allclose(some.leave_one_out_error_, whole.leave_one_out_error_, rtol=1e-12)
    assert whole.path_.coef.shape == (6, 50, 40)
    assert some.path_.coef.size == 0
