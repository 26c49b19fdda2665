"""Ridge regression of standardised columns: against scikit-learn's pipeline and a naive solve in more digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import PCA, Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV, load, save
from gramian.compute.devices import to_numpy
from oracles import Array

SIZES = 10.0 ** np.array([-6.0, 4.0, 0.0, 5.0, -2.0, 1.0])


def rows(n: int = 50, t: int = 1, p: int = 6, seed: int = 0) -> tuple[Array, Array]:
    """Columns of very different units, the third constant, and targets to which all contribute."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, p)) + rng.uniform(-3, 3, p)
    X = Z * np.resize(SIZES, p)
    X[:, 2] = 0.1
    Y = Z @ rng.normal(size=(p, t)) + rng.normal(size=(n, t))
    return X, Y[:, 0] if t == 1 else Y


def standardise(X: Array) -> Array:
    s = X.std(axis=0, ddof=1)
    s[np.ptp(X, axis=0) == 0] = 1.0
    return np.asarray((X - X.mean(axis=0)) / s)


def solve_naively(X: Array, y: Array, w: Array, alpha: float, intercept: bool) -> tuple[Any, Any, Any, Any]:
    """w, f(μ), s and μ of the definition, in extended precision: normal equations, refined."""
    wide = np.longdouble
    X, Y, w = X.astype(wide), np.asarray(y).astype(wide).reshape(len(X), -1), w.astype(wide)
    count = w.sum() if np.all(w == np.round(w)) else np.count_nonzero(w)
    mean, constant = w @ X / w.sum(), np.ptp(X[w > 0], axis=0) == 0
    s = np.where(constant, 1, np.sqrt(w @ (X - mean) ** 2 / w.sum() * count / (count - 1)))
    mean, level = (mean, w @ Y / w.sum()) if intercept else (0 * mean, 0 * Y[0])
    D = np.where(constant & intercept, 0, (X - mean) / s) * np.sqrt(w)[:, None]
    A, h = D.T @ D + wide(alpha) * np.eye(X.shape[1]), D.T @ ((Y - level) * np.sqrt(w)[:, None])
    B, inverse = np.zeros_like(h), np.linalg.inv(A.astype(float))
    for _ in range(40):
        B = B + inverse @ (h - A @ B)
    return (B / s[:, None]).T, level, s, mean


INPUTS: dict[str, Any] = {
    "dense": lambda X, path: X,
    "sparse": lambda X, path: sp.csr_array(X),
    "float32": lambda X, path: X.astype(np.float32),
    "file": lambda X, path: np.save(path / "X.npy", X) or path / "X.npy",
    "tensor": lambda X, path: pytest.importorskip("torch").tensor(X),
}


@pytest.mark.parametrize("solver", ["auto", "svd", "cholesky", "dual", "cg"])
@pytest.mark.parametrize("kind", INPUTS)
def test_predictions_are_those_of_a_pipeline(kind: str, solver: str, tmp_path: Path) -> None:
    """scikit-learn's scaler divides by the root of Σ(x − μ)²/n, which is the same as another λ."""
    X, Y = rows(t=2)
    n = len(X)
    model = Ridge(2.0, scale=True, solver=solver, tol=1e-12).fit(given := INPUTS[kind](X, tmp_path), Y)
    theirs = make_pipeline(StandardScaler(), sk.Ridge(2.0 * n / (n - 1))).fit(X, Y)
    tol = 1e-4 if kind == "float32" else 1e-8
    np.testing.assert_allclose(to_numpy(model.predict(given)), theirs.predict(X), rtol=tol, atol=tol)
    by_hand = X @ to_numpy(model.coef_, float).T + to_numpy(model.intercept_, float)
    np.testing.assert_allclose(by_hand, theirs.predict(X), rtol=tol, atol=tol)
    np.testing.assert_allclose(to_numpy(model.scale_, float), PCA(scale=True).fit(X).scale_, rtol=1e-6)
    assert model.certificate_.converged
    assert Ridge().fit(X, Y).scale_ is None


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighting", ["none", "counts", "precisions"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "tensor"])
@pytest.mark.parametrize("shape", [(50, 6), (30, 40)])
def test_bounds_hold(shape: tuple[int, int], kind: str, weighting: str, intercept: bool, tmp_path: Path) -> None:
    n, p = shape
    X, Y = rows(n, 2, p)
    X = X.astype(np.float32).astype(float) if kind == "float32" else X
    rng = np.random.default_rng(5)
    w = {"none": np.ones(n), "counts": rng.integers(0, 4, n), "precisions": rng.uniform(0.001, 0.01, n)}[weighting]
    coef, level, s, mean = solve_naively(X, Y, w, 0.5, intercept)
    given = INPUTS[kind](X, tmp_path)
    exact = ((X - mean) @ coef.T + level).astype(float)
    for solver in ("auto", "svd", "cg"):
        model = Ridge(0.5, scale=True, fit_intercept=intercept, solver=solver, tol=1e-9).fit(given, Y, w)
        error = (to_numpy(model.coef_, float) - coef).astype(float)
        assert np.all(np.linalg.norm(error, axis=1) <= model.certificate_.error_bounds)
        near = 1e-5 if kind == "float32" or solver == "cg" else 1e-9
        assert np.linalg.norm(error * s) < near * np.linalg.norm(coef * s)
        f, bound = (to_numpy(x, float) for x in model.predict(given, return_bound=True))
        assert np.all(np.abs(f - exact) <= bound)
        assert np.max(bound) < (0.1 if kind == "float32" else 1e-3 if solver == "cg" else 1e-9)


def test_variances_are_those_of_standardised_columns() -> None:
    for n, p in ((50, 6), (20, 30)):
        X, y = rows(n, p=p)
        Z = standardise(X)
        model, plain = Ridge(2.0, scale=True).fit(X, y), Ridge(2.0).fit(Z, y)
        new = X + 0.3 * np.resize(SIZES, p)
        at = (new - X.mean(axis=0)) / model.scale_
        for one, other in zip(model.predict(new, return_std=True), plain.predict(at, return_std=True), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8)
        np.testing.assert_allclose(model.predict_interval(new), plain.predict_interval(at), rtol=1e-8)
        found = model.coef_covariance() * np.outer(model.scale_, model.scale_)
        np.testing.assert_allclose(found, plain.coef_covariance(), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(model.predict(sp.csr_array(new), return_std=True)[1], model.predict(new, True)[1])
        assert model.dof_ == pytest.approx(plain.dof_)


@pytest.mark.parametrize("given", [{}, {"criterion": "gcv"}, {"alphas": [0.1, 3.0]}, {"gcv_mode": "svd"}])
@pytest.mark.parametrize("shape", [(50, 6), (20, 30)])
def test_choice_is_that_of_standardised_columns(shape: tuple[int, int], given: dict[str, Any]) -> None:
    X, y = rows(shape[0], p=shape[1])
    Z, options = standardise(X), {"alphas": "auto", **given}
    plain = RidgeCV(**options).fit(Z, y)
    for data in (X, sp.csr_array(X)):
        model = RidgeCV(**options, scale=True).fit(data, y)
        assert model.alpha_ == pytest.approx(plain.alpha_, rel=1e-8)
        np.testing.assert_allclose(model.path_.loo, plain.path_.loo, rtol=1e-6)
        np.testing.assert_allclose(model.path_.dof, plain.path_.dof, rtol=1e-8)
        ours, theirs = (m.path_.coef[:, 0] @ D.T + m.path_.intercept for m, D in ((model, X), (plain, Z)))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        assert model.leave_one_out_error_ == pytest.approx(plain.leave_one_out_error_, rel=1e-8)
        np.testing.assert_allclose(model.predict(data), plain.predict(Z), rtol=1e-7, atol=1e-8)


def test_choice_is_that_of_a_pipeline() -> None:
    X, y = rows()
    alphas, n = np.geomspace(0.1, 100, 7), len(X)
    theirs = make_pipeline(StandardScaler(), sk.RidgeCV(alphas * n / (n - 1))).fit(X, y)
    ours = RidgeCV(alphas, scale=True).fit(X, y)
    assert ours.alpha_ * n / (n - 1) == pytest.approx(theirs[-1].alpha_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8)
    folds = RidgeCV(alphas, scale=True, cv=4).fit(X, y)  # each fold is divided by the deviations of the others
    np.testing.assert_allclose(folds.scale_, ours.scale_)
    assert np.max(folds.predict(X, return_bound=True)[1]) < 1e-6


def test_counts_are_repeated_rows_and_precisions_have_no_unit() -> None:
    X, y = rows()
    w = np.random.default_rng(1).integers(0, 4, len(X))
    one, other = Ridge(scale=True).fit(X, y, w), Ridge(scale=True).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(one.scale_, other.scale_)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-8)
    v = np.random.default_rng(2).uniform(0.1, 1, len(X))
    one, other = Ridge(1.0, scale=True).fit(X, y, v), Ridge(1e-6, scale=True).fit(X, y, 1e-6 * v)
    np.testing.assert_allclose(one.scale_, other.scale_)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-8)


@pytest.mark.parametrize("factor", [1e-160, 1e-30, 1e120])
def test_units_of_columns_do_not_matter(factor: float) -> None:
    X, y = rows()
    one, other = Ridge(scale=True).fit(X, y), Ridge(scale=True).fit(X * factor, y)
    np.testing.assert_allclose(other.coef_ * factor, one.coef_, rtol=1e-8)
    np.testing.assert_allclose(other.predict(X * factor), one.predict(X), rtol=1e-8)


def test_constants_stay_zero() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1000, 3))
    X[:, 1] = 0.1
    for data in (X, sp.csr_array(X), X.astype(np.float32)):
        model = Ridge(scale=True).fit(data, X[:, 0])
        assert model.scale_[1] == 1.0
        assert model.coef_[1] == 0.0
    X[7, 1] = np.nextafter(0.1, 1)  # one ulp away is no constant
    assert 0 < Ridge(scale=True).fit(X, X[:, 0]).scale_[1] < 1e-17
    # without an intercept a constant is a column like any other, and has the scale 1 as in scikit-learn's scaler
    X[7, 1] = 0.1
    y = X[:, 0] + 1.0
    ours = Ridge(1e-3, scale=True, fit_intercept=False).fit(X, y)
    Z = X / np.where(X.std(axis=0, ddof=1) > 1e-9, X.std(axis=0, ddof=1), 1.0)
    np.testing.assert_allclose(ours.predict(X), sk.Ridge(1e-3, fit_intercept=False).fit(Z, y).predict(Z), rtol=1e-8)


def test_deviations_whose_squares_vanish_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 1.0, 1e-200]
    for data in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match="column 3"):
            Ridge(scale=True).fit(data, X[:, 0])


def test_least_squares_predict_alike() -> None:
    X, y = rows()
    X = X[:, [0, 1, 3, 4]]
    one, other = Ridge(0, scale=True).fit(X, y), Ridge(0).fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-12)
    assert one.certificate_.converged
    error = np.linalg.norm(one.coef_ - other.coef_)
    assert error <= one.certificate_.error_bounds[0] + other.certificate_.error_bounds[0]


def test_signs_and_labels() -> None:
    X, y = rows()
    Z = standardise(X)
    one, other = Ridge(scale=True, positive=True).fit(X, y), Ridge(positive=True).fit(Z, y)
    np.testing.assert_allclose(one.predict(X), other.predict(Z), rtol=1e-8)
    assert np.all(one.coef_ >= 0)
    assert one.certificate_.converged
    for options in ({}, {"cv": 3}):
        labels = RidgeClassifierCV(scale=True, **options).fit(X, y > np.median(y))
        assert labels.scale_ is not None
    plain, values = RidgeClassifier().fit(Z, y > 0), RidgeClassifier(scale=True).fit(X, y > 0).decision_function(X)
    np.testing.assert_allclose(values, plain.decision_function(Z), rtol=1e-8)


def test_round_trip_through_a_file(tmp_path: Path) -> None:
    X, y = rows()
    model = RidgeCV(scale=True).fit(X, y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.scale is True
    for one, other in zip(model.predict(X, True, True), again.predict(X, True, True), strict=True):
        np.testing.assert_array_equal(one, other)
