"""Standard deviations and intervals of ridge regression, against closed forms that know nothing of centring."""

import json
import warnings
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse, stats

from gramian import NumericalWarning
from gramian.ridge.estimator import Ridge, RidgeCV
from oracles import Array

CARS = json.loads((Path(__file__).parents[1] / "data" / "r_cars.json").read_text("utf-8"))


def rows(n: int, p: int, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.uniform(-2, 2, p)
    return X, X[:, :2] @ rng.normal(size=(2, 2)) + rng.normal(size=(n, 2)), rng.uniform(0.3, 2, n)


def augmented(
    X: Array, y: Array, lam: float, w: Array, new: Array, count: float, intercept: bool = True
) -> tuple[Array, Array, float, float]:
    """Prediction, variance factor, noise and dof with the column of ones written out and no penalty on it."""
    A, B = (np.c_[np.ones(len(X)), X], np.c_[np.ones(len(new)), new]) if intercept else (X, new)
    P = lam * np.eye(A.shape[1])
    P[0, 0] = 0.0 if intercept else lam
    C = np.linalg.inv(A.T @ (w[:, None] * A) + P)
    beta = C @ A.T @ (w * y)
    dof = float(np.trace(C @ A.T @ (w[:, None] * A)))
    noise = float(w @ (y - A @ beta) ** 2) / (count - dof)
    return B @ beta, np.einsum("ij,jk,ik->i", B, C, B), noise, dof


def test_stopping_distances_as_r_prints_them() -> None:
    X = np.array(CARS["speed"], dtype=float)[:, None]
    model = Ridge(0).fit(X, CARS["dist"])
    assert_allclose([model.intercept_, model.coef_[0]], CARS["coefficients"], atol=5e-5)
    assert np.sqrt(model.noise_variance_) == pytest.approx(CARS["residual_error"], abs=5e-3)
    assert np.sqrt(model.coef_covariance()[0, 0]) == pytest.approx(CARS["slope_error"], abs=5e-5)
    new = np.array(CARS["new_speed"], dtype=float)[:, None]
    lower, upper = model.predict_interval(new, kind="mean")
    assert_allclose(model.predict(new), CARS["fit"], atol=0.05)
    assert_allclose(lower, CARS["mean_lower"], atol=0.05)
    assert_allclose(upper, CARS["mean_upper"], atol=0.05)


@pytest.mark.parametrize("solver", ["auto", "svd", "dual", "cholesky"])
@pytest.mark.parametrize("lam", [0.0, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_intervals_are_those_of_the_textbook(solver: str, lam: float, weighted: bool, intercept: bool) -> None:
    X, Y, w = rows(30, 4)
    w = w if weighted else np.ones(30)
    new = rows(7, 4, seed=1)[0]
    f, h, noise, dof = augmented(X, Y[:, 0], lam, w, new, 30.0, intercept)
    model = Ridge(lam, solver=solver, fit_intercept=intercept).fit(X, Y[:, 0], sample_weight=w)
    mean, std = model.predict(new, return_std=True)
    assert_allclose(mean, f, rtol=1e-10)
    assert_allclose(std, np.sqrt(noise * (1 + h)), rtol=1e-10)
    for kind, one in (("prediction", 1.0), ("mean", 0.0)):
        half = stats.t.ppf(0.95, 30 - dof) * np.sqrt(noise * (one + h))
        lower, upper = model.predict_interval(new, 0.9, kind=kind)
        assert_allclose(lower, f - half, rtol=1e-9)
        assert_allclose(upper, f + half, rtol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "svd", "primal"])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_more_columns_than_rows(solver: str, convert: Any) -> None:
    X, Y, w = rows(10, 25)
    new = 3 * rows(5, 25, seed=1)[0]
    f, h, noise, _ = augmented(X, Y[:, 0], 1.5, w, new, 10.0)
    mean, std = Ridge(1.5, solver=solver).fit(convert(X), Y[:, 0], sample_weight=w).predict(convert(new), True)
    assert_allclose(mean, f, rtol=1e-9)
    assert_allclose(std, np.sqrt(noise * (1 + h)), rtol=1e-9)


def test_counts_enter_as_repeated_rows() -> None:
    X, Y, _ = rows(12, 3)
    w = np.arange(12) % 4
    one = Ridge(1.0).fit(X, Y, sample_weight=w)
    many = Ridge(1.0).fit(X.repeat(w, axis=0), Y.repeat(w, axis=0))
    for a, b in zip(one.predict_interval(X), many.predict_interval(X), strict=True):
        assert_allclose(a, b, rtol=1e-10)


def test_each_target_has_its_own() -> None:
    X, Y, w = rows(30, 4)
    alphas = [0.0, 4.0]
    model = Ridge(alphas).fit(X, Y, sample_weight=w)
    mean, std = model.predict(X, return_std=True)
    covariance = model.coef_covariance()
    for j, lam in enumerate(alphas):
        f, h, noise, dof = augmented(X, Y[:, j], lam, w, X, 30.0)
        assert_allclose(mean[:, j], f, rtol=1e-9)
        assert_allclose(std[:, j], np.sqrt(noise * (1 + h)), rtol=1e-9)
        assert model.dof_[j] == pytest.approx(dof)
        D = np.sqrt(w)[:, None] * (X - w @ X / w.sum())
        assert_allclose(covariance[j], noise * np.linalg.inv(D.T @ D + lam * np.eye(4)), rtol=1e-9)


def test_ridge_cv_knows_its_variances_too() -> None:
    X, Y, _ = rows(40, 4)
    cv = RidgeCV([0.5, 5.0]).fit(X, Y[:, 0])
    same = Ridge(cv.alpha_).fit(X, Y[:, 0])
    assert_allclose(cv.predict(X, return_std=True)[1], same.predict(X, return_std=True)[1], rtol=1e-10)
    assert_allclose(cv.predict_interval(X)[0], same.predict_interval(X)[0], rtol=1e-10)


@given(size=st.sampled_from([1e-150, 1e-40, 1e40, 1e150]), seed=st.integers(0, 1000), wide=st.booleans())
def test_units_do_not_matter(size: float, seed: int, wide: bool) -> None:
    X, Y, _ = rows(9, 14 if wide else 3, seed)
    if wide:
        one, other = Ridge(1.0).fit(X, Y[:, 0]), Ridge(1.0).fit(X, Y[:, 0] * size)
        assert_allclose(other.predict(X, True)[1] / size, one.predict(X, True)[1], rtol=1e-9)
        return
    one, other = Ridge(0.0).fit(X, Y[:, 0]), Ridge(0.0).fit(X * size, Y[:, 0])
    assert_allclose(other.predict(X * size, True)[1], one.predict(X, True)[1], rtol=1e-9)


def test_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(0)
    X, new, beta = rng.normal(size=(15, 3)), rng.normal(size=(1, 3)), np.array([1.0, -2.0, 0.5])
    held = 0
    for _ in range(200):
        model = Ridge(0).fit(X, X @ beta + 3 + rng.normal(size=15))
        lower, upper = model.predict_interval(new, 0.8)
        held += int(lower[0] <= float(new[0] @ beta + 3 + rng.normal()) <= upper[0])
    assert abs(held / 200 - 0.8) < 0.085  # three standard errors


def test_nothing_left_over_is_said() -> None:
    X, Y, _ = rows(4, 3)
    model = Ridge(0).fit(X, Y[:, 0])
    assert np.isnan(model.noise_variance_)
    with pytest.raises(ValueError, match="estimate"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="0 and 1"):
        model.predict_interval(X, 1.5)
    with pytest.raises(ValueError, match="prediction"):
        model.predict_interval(X, kind="both")


def test_a_basis_too_large_to_carry_is_not_carried_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.ridge.solve.KEEP", 10)
    X, Y, _ = rows(30, 4)
    with pytest.raises(ValueError, match="solver='svd'"):
        Ridge().fit(X, Y).predict(X, return_std=True)
    assert Ridge(solver="svd").fit(X, Y).predict(X, return_std=True)[1].shape == (30, 2)


def test_rank_deficient_least_squares_has_variances_of_what_can_be_estimated() -> None:
    X, Y, _ = rows(30, 3)
    with pytest.warns(NumericalWarning, match=r"rank 3.*4 columns"):
        double = Ridge(0).fit(np.c_[X, X[:, 0]], Y[:, 0])
    assert_allclose(
        double.predict(np.c_[X, X[:, 0]], return_std=True)[1],
        Ridge(0).fit(X, Y[:, 0]).predict(X, return_std=True)[1],
        rtol=1e-9,
    )


def exact_predictions(X: Array, y: Array, w: Array | None, lam: float, intercept: bool, new: Array) -> list[Any]:
    """f(x) of the exact solution, with 60 digits."""
    extra = [1] if intercept else []
    A = mpmath.matrix([[*extra, *row] for row in X.astype(float).tolist()])
    W = mpmath.diag((np.ones(len(X)) if w is None else w).tolist())
    G = A.T * W * A
    for j in range(len(extra), G.rows):
        G[j, j] += mpmath.mpf(lam)
    b = mpmath.lu_solve(G, A.T * W * mpmath.matrix(y.tolist()))
    return list(mpmath.matrix([[*extra, *row] for row in new.astype(float).tolist()]) * b)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("solver", ["cholesky", "dual", "svd", "cg"])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
def test_no_prediction_is_further_from_the_exact_one_than_its_bound(kind: str, solver: str, offset: float) -> None:
    rng = np.random.default_rng(0)
    for (n, p), lam, intercept in (
        ((25, 4), 1.0, True),
        ((25, 4), 1e-6, True),
        ((6, 9), 0.5, True),
        ((25, 4), 2.0, False),
    ):
        X, new = (rng.normal(size=(rows, p)) + offset for rows in (n, 5))
        X, new = (Z.astype(np.float32) if kind == "float32" else Z for Z in (X, new))
        y, w = rng.normal(size=n) + 10.0, rng.uniform(0.5, 2.0, n)
        data, rows = (sparse.csr_array(Z) if kind == "sparse" else Z for Z in (X, new))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Ridge(lam, solver=solver, fit_intercept=intercept, tol=1e-10).fit(data, y, w)
        f, bound = model.predict(rows, return_bound=True)
        with mpmath.workdps(60):
            exact = exact_predictions(X, y, w, lam, intercept, new)
            errors = [float(abs(mpmath.mpf(float(a)) - b)) for a, b in zip(f, exact, strict=True)]
        assert np.all(np.array(errors) <= bound)
        if kind == "dense" and offset == 0.0 and solver != "cg":
            assert np.all(bound < 1e-6)


def test_bounds_of_several_targets_and_of_a_chosen_penalty() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    for model in (Ridge([0.5, 0.0]).fit(X, Y), RidgeCV(alpha_per_target=True).fit(X, Y)):
        f, std, bound = model.predict(X, return_std=True, return_bound=True)
        assert f.shape == std.shape == bound.shape == (30, 2)
        assert np.all((bound > 0) & (bound < 1e-10))
    model.intercept_ = model.intercept_ + 1.0
    with pytest.raises(ValueError, match="intercept_"):
        model.predict(X, return_bound=True)
