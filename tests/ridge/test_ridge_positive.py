"""Ridge(positive=True): scipy's active sets, scikit-learn's answers, and a bound that is never exceeded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn import linear_model
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import NumericalWarning, Ridge, RidgeClassifier, load, save
from gramian.ridge import nonnegative
from oracles import Array


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks([Ridge(positive=True)])  # type: ignore[untyped-decorator]
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def data(n: int, p: int, t: int = 1, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2, p) + rng.uniform(-3, 3, p)
    return X, X @ (rng.normal(size=(p, t)) * (rng.random((p, t)) < 0.4)) + rng.normal(size=(n, t))


def naive(X: Array, y: Array, alpha: float, w: Array | None, intercept: bool) -> Array:
    """By scipy's active sets, with √λ·I stacked below."""
    w = np.ones(len(X)) if w is None else w
    if intercept:
        X, y = X - w @ X / w.sum(), y - w @ y / w.sum()
    root = np.sqrt(w)
    p = X.shape[1]
    A = np.concatenate([root[:, None] * X, np.sqrt(alpha) * np.eye(p)])
    return np.asarray(nnls(A, np.concatenate([root * y, np.zeros(p)]), maxiter=100 * p)[0])


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 30),
    p=st.integers(1, 40),
    alpha=st.sampled_from([1e-8, 1e-3, 1.0, 50.0]),
    intercept=st.booleans(),
    weighted=st.booleans(),
    wide=st.booleans(),
)
def test_answers_and_bounds(
    seed: int, n: int, p: int, alpha: float, intercept: bool, weighted: bool, wide: bool
) -> None:
    X, Y = data(n, p, seed=seed)
    w = np.random.default_rng(seed).uniform(0.2, 2, n) if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nonnegative, "GRAM_COLUMNS", 0 if wide else 2000)
        model = Ridge(alpha, positive=True, fit_intercept=intercept).fit(X, Y[:, 0], sample_weight=w)
    assert np.all(model.coef_ >= 0.0)
    exact = naive(X, Y[:, 0], alpha, w, intercept)
    error = np.linalg.norm(model.coef_ - exact)
    assert error <= model.certificate_.error_bounds[0] + 1e-9 * np.linalg.norm(exact)
    if alpha >= 1e-3:
        assert_allclose(model.coef_, exact, rtol=0, atol=1e-8 * max(1.0, float(np.max(exact, initial=0.0))))
        assert model.certificate_.converged


@pytest.mark.parametrize("shape", [(40, 6), (15, 30)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_scikit_learn_has_the_same_answers(shape: tuple[int, int], make: Any) -> None:
    X, Y = data(*shape, t=3)
    alpha = np.array([0.5, 5.0, 50.0])
    ours = Ridge(alpha, positive=True).fit(make(X), Y)
    theirs = linear_model.Ridge(alpha, positive=True, tol=1e-12, max_iter=100_000).fit(X, Y)
    assert ours.coef_.shape == theirs.coef_.shape
    assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-4)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=0, atol=2e-3)
    assert ours.solver_ == "nonnegative"


def test_least_squares_without_a_penalty() -> None:
    X, Y = data(50, 8)
    model = Ridge(0, positive=True).fit(X, Y[:, 0])
    assert_allclose(model.coef_, naive(X, Y[:, 0], 0.0, None, True), atol=1e-10)
    assert model.certificate_.converged
    with pytest.warns(NumericalWarning):  # equal columns: nothing proves which of them it is
        Ridge(0, positive=True).fit(np.c_[X, X[:, :1]], Y[:, 0])


def test_nothing_is_positive() -> None:
    x = np.arange(5.0)[:, None]
    model = Ridge(1.0, positive=True).fit(x, -x[:, 0])
    assert_array_equal(model.coef_, 0.0)
    assert model.intercept_ == pytest.approx(-2.0)
    assert model.certificate_.converged
    assert model.r2_ == pytest.approx(0.0)


def test_columns_of_very_different_size() -> None:
    X, Y = data(60, 5)
    scale = np.array([1e-4, 1.0, 1e4, 1e2, 1e-2])
    model = Ridge(1e-6, positive=True).fit(X * scale, Y[:, 0])
    # √λ is lost beside columns of 1e4 in nnls, not in the scaled one
    shrunk = naive(X, Y[:, 0], 0.0, None, True) / scale
    assert_allclose(model.coef_[1:4], shrunk[1:4], rtol=1e-4, atol=1e-6)


def test_what_does_not_go_together_is_refused() -> None:
    X, Y = data(20, 3)
    with pytest.raises(ValueError, match="svd"):
        Ridge(positive=True, solver="svd").fit(X, Y)
    with pytest.raises(ValueError, match="lbfgs"):
        Ridge(solver="lbfgs").fit(X, Y)
    model = Ridge(positive=True, solver="lbfgs").fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="positive=True"):
        model.predict(X, return_std=True)
    assert np.all(model.predict(X, return_bound=True)[1] < 1e-8)
    assert np.all(RidgeClassifier(positive=True).fit(X, Y[:, 0] > 0).coef_ >= 0.0)


def test_a_model_is_read_back(tmp_path: Path) -> None:
    X, Y = data(20, 3)
    model = Ridge(positive=True).fit(X, Y)
    save(model, tmp_path / "model.gramian")
    assert_array_equal(load(tmp_path / "model.gramian").predict(X), model.predict(X))
