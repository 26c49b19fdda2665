"""Ridge regression at its limits: nobody's data change, tiny penalties cancel nothing, bounds hold, misses are said."""

import warnings
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.linear_model import RidgeCV as SklearnRidgeCV
from sklearn.model_selection import GridSearchCV

from gramian import NumericalWarning
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.ridge.problem import row_weights
from gramian.ridge.solve import SOLVERS
from oracles import Array

ORDERS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": lambda X: np.require(X.copy(order="F"), requirements=[]),
    "frame": lambda X: pd.DataFrame(np.asfortranarray(X)),
    "sparse": sparse.csr_array,
}


def fitted(model: Any, *given: Any) -> Any:
    """The model, whatever it has to say about its data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*given)


def bits(x: Any) -> bytes:
    """Every stored number."""
    return bytes(x.data.tobytes() if sparse.issparse(x) else np.asarray(x).tobytes())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(1, 2), (5, 9), (9, 4), (6, 6)])
def test_no_solver_changes_what_it_was_given(order: str, intercept: bool, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    y, w = np.asfortranarray(rng.normal(size=(shape[0], 2))), rng.uniform(0.5, 2, shape[0])
    plain = rng.normal(size=shape)
    models: list[Any] = [Ridge(a, solver=s, fit_intercept=intercept) for s in SOLVERS for a in (0.0, 1e-9, 1.0)]
    if shape[0] > 1:
        models += [RidgeCV(a, gcv_mode=m, fit_intercept=intercept) for a in ("auto", [1e-9]) for m in ("svd", "eigen")]
    for model in models:
        for weights in (None, w):
            X = ORDERS[order](plain)
            if order == "read-only":
                X.flags.writeable = False
            before = bits(X), bits(y), bits(w)
            fitted(model, X, y, weights)
            assert (bits(X), bits(y), bits(w)) == before


def test_least_norm_of_an_array_that_could_have_been_written_over(torch: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 9)), rng.normal(size=5)
    known = np.linalg.pinv(X) @ y
    for data in (pd.DataFrame(X), np.asfortranarray(X), torch.tensor(X.T.copy()).T):
        assert_allclose(np.asarray(fitted(Ridge(0, fit_intercept=False), data, y).coef_), known, rtol=1e-12)
        assert_array_equal(np.asarray(data), X)
    with pytest.warns(NumericalWarning, match=r"rank 1.*2 columns"):
        assert_allclose(Ridge(0, fit_intercept=False).fit([[1.0, 2]], [3.0]).coef_, [0.6, 1.2])


def far_sparse(mean: float) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    X[:, 0] += mean
    return X, y


@pytest.mark.parametrize("model", [Ridge(), Ridge(solver="svd"), RidgeCV(), RidgeCV(gcv_mode="svd")])
def test_a_gradient_that_is_not_small_is_said_where_the_fit_was_asked_for(model: Any) -> None:
    X, y = far_sparse(1e11)
    with pytest.warns(NumericalWarning, match="gradient") as caught:
        model.fit(sparse.csr_array(X), y)
    assert not model.certificate_.converged
    assert f"{model.certificate_.worst:.1e}" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_iterations_that_stop_short_are_said_where_the_fit_was_asked_for() -> None:
    X, y = far_sparse(1.0)
    model = Ridge(1e-6, solver="cg", tol=1e-12, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning) as caught:
        GridSearchCV(model, {"alpha": [1e-6]}, cv=2).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


class Twin:
    """Leave-one-out, GCV and noise with 300 digits: with P = K⁻¹ − K⁻¹11ᵀK⁻¹/1ᵀK⁻¹1, or K⁻¹, e = Py/diag P."""

    def __init__(self, X: Array, y: Array, lam: float, intercept: bool) -> None:
        n = len(y)
        with mpmath.workdps(300):
            A = mpmath.matrix(X.tolist())
            P = (A * A.T + mpmath.mpf(lam) * mpmath.eye(n)) ** -1
            if intercept:
                one = mpmath.ones(n, 1)
                P = P - P * one * one.T * P / (one.T * P * one)[0]
            a = P * mpmath.matrix(y.tolist())
            trace, square = mpmath.fsum(P[i, i] for i in range(n)), mpmath.fsum(v**2 for v in a)
            self.errors = np.array([float(a[i] / P[i, i]) for i in range(n)])
            self.gcv, self.noise = float(n * square / trace**2), float(mpmath.mpf(lam) * square / trace)


@pytest.mark.parametrize("lam", [1e-3, 1e-9, 1e-11, 1e-12, 1e-14, 1e-20, 1e-100])
@pytest.mark.parametrize(
    ("shape", "intercept"), [((10, 30), True), ((10, 30), False), ((8, 7), True), ((8, 8), True), ((8, 8), False)]
)
def test_tiny_penalties_of_wide_data_cancel_nothing(lam: float, shape: tuple[int, int], intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    twin = Twin(X, y, lam, intercept)
    for data in (X, sparse.csr_array(X)):
        model = RidgeCV([lam], fit_intercept=intercept, store_cv_results=True).fit(data, y)
        assert_allclose(model.cv_results_[:, 0], twin.errors**2, rtol=1e-9)
        assert model.best_score_ == pytest.approx(-np.mean(twin.errors**2), rel=1e-10)
        assert model.path_.gcv[0, 0] == pytest.approx(twin.gcv, rel=1e-10)
        assert model.path_.noise_variance[0, 0] == pytest.approx(twin.noise, rel=1e-10, abs=0)
        assert model.noise_variance_ == pytest.approx(twin.noise, rel=1e-10, abs=0)
        for solver in ("auto", "svd", "dual", "cholesky"):
            ridge = Ridge(lam, solver=solver, fit_intercept=intercept).fit(data, y)
            assert ridge.noise_variance_ == pytest.approx(twin.noise, rel=1e-7, abs=0)
            low, high = ridge.predict_interval(X[:1])
            assert low[0] < high[0]


def test_large_data_are_a_small_penalty() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 30)), rng.normal(size=10)
    model = RidgeCV().fit(X * 1e8, y)
    assert model.best_score_ == pytest.approx(-np.mean(Twin(X * 1e8, y, model.alpha_, True).errors ** 2), rel=1e-9)


@given(seed=st.integers(0, 1000), lam=st.sampled_from([1e-2, 1e-8, 1e-13]), intercept=st.booleans())
def test_tiny_penalties_leave_a_row_out_with_all_its_weight(seed: int, lam: float, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(6, 9)), rng.normal(size=6), rng.integers(0, 3, 6)
    w[:3] = 1, 2, 1
    model = RidgeCV([lam], fit_intercept=intercept, store_cv_results=True).fit(X, y, sample_weight=w)
    for i in np.flatnonzero(w):
        others = np.where(np.arange(6) == i, 0, w)
        error = y[i] - Ridge(lam, fit_intercept=intercept, solver="svd").fit(X, y, others).predict(X[i : i + 1])[0]
        assert np.sqrt(model.cv_results_[i, 0] / w[i]) == pytest.approx(abs(error), rel=1e-7, abs=1e-11)


@pytest.mark.parametrize("columns", [4, 14, 18, 40])
@pytest.mark.parametrize("lam", [1e-11, 1e-3, 1.0])
@pytest.mark.parametrize("whole", [True, False])
def test_rows_of_weight_zero_take_no_degrees_of_freedom(columns: int, lam: float, whole: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, columns)), rng.normal(size=20)
    w = rng.integers(1, 4, 20).astype(float) if whole else rng.uniform(0.5, 2, 20)
    w[[0, 7, 8, 19]] = 0.0
    keep = w > 0
    for model in (RidgeCV([lam]), RidgeCV([lam], gcv_mode="svd"), Ridge(lam, solver="dual"), Ridge(lam, solver="svd")):
        noise = model.fit(X, y, w).noise_variance_
        assert model.fit(X[keep], y[keep], w[keep]).noise_variance_ == pytest.approx(noise, rel=1e-6, abs=0)
    gcv = RidgeCV([lam]).fit(X, y, w).path_.gcv
    # saturated by the rows that count, yet with fewer columns than rows: there rounding is larger than some gcv
    if columns != 18 or lam > 1e-6:
        assert_allclose(gcv, RidgeCV([lam]).fit(X[keep], y[keep], w[keep]).path_.gcv, rtol=1e-6)


@pytest.mark.parametrize("lam", [1e-6, 1.0, 1e6, 1e12])
def test_degrees_of_freedom_by_cholesky_do_not_cancel(lam: float) -> None:
    X = np.random.default_rng(0).normal(size=(40, 5))
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    model = Ridge(lam).fit(X, X[:, 0] + 1.0)
    assert model.solver_ == "cholesky"
    assert model.dof_ - 1.0 == pytest.approx(np.sum(squares / (squares + lam)), rel=1e-9, abs=1e-15)


def exact(X: Array, y: Array, lam: float, w: Array | None = None) -> Array:
    """Coefficients with 80 digits of the very numbers given; the intercept is not penalised."""
    with mpmath.workdps(80):
        A = mpmath.matrix([[1, *row] for row in X.astype(float).tolist()])
        W = mpmath.diag((np.ones(len(X)) if w is None else w).tolist())
        G = A.T * W * A
        for j in range(1, A.cols):
            G[j, j] += mpmath.mpf(lam)
        return np.array([float(v) for v in mpmath.lu_solve(G, A.T * W * mpmath.matrix(y.tolist()))[1:]])


def violated(model: Any, answer: Array) -> bool:
    return bool(np.linalg.norm(model.coef_.astype(float) - answer) > model.certificate_.error_bounds[0])


@pytest.mark.parametrize("solver", ["auto", "svd", "dual", "cg"])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_bounds_know_that_the_result_is_in_single_precision(solver: str, lam: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)).astype(np.float32), rng.normal(size=40)
    model = Ridge(lam, solver=solver, tol=1e-12).fit(X, y)
    assert not violated(model, exact(X, y, lam))
    assert model.certificate_.error_bounds[0] < 1e-6 * np.linalg.norm(model.coef_)


@pytest.mark.parametrize("mean", [1e2, 1e5, 1e8, 1e11])
@pytest.mark.parametrize("lam", [0.0, 1e-6, 1.0, 100.0])
def test_bounds_know_what_cancels_in_sparse_data(mean: float, lam: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3)) + mean * np.array([1.0, -0.3, 0.0])
    y = rng.normal(size=40)
    answer = exact(X, y, lam)
    for solver in ("auto", "svd", "dual", "cg") if lam else ("auto", "svd", "dual"):
        model = fitted(Ridge(lam, solver=solver, tol=1e-10), sparse.csr_array(X), y)
        assert not violated(model, answer)
        assert np.linalg.norm(model.coef_ - answer) <= 1e-15 * mean * 40  # the loss is linear in the mean, not square


def test_bounds_of_least_squares_hold_far_from_zero_with_weights() -> None:
    rng = np.random.default_rng(0)
    X, w, y = rng.normal(size=(400, 3)) + 1e12, rng.uniform(0.1, 3, 400), rng.normal(size=400)
    model = Ridge(0).fit(X, y, w)
    assert not violated(model, exact(X, y, 0.0, w))
    assert model.certificate_.error_bounds[0] < 1e-15


@pytest.mark.parametrize("solver", ["auto", "svd", "dual"])
@pytest.mark.parametrize("lam", [0.0, 1.0])
@pytest.mark.parametrize("constant", [0.1, 1e6 / 3])
def test_a_constant_column_has_no_rank(solver: str, lam: float, constant: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    X[:, 2] = constant
    for data in (X, sparse.csr_array(X)):
        model = fitted(Ridge(lam, solver=solver), data, y)
        assert model.rank_ == 2
        assert_allclose(model.coef_[:2], SklearnRidge(lam).fit(X[:, :2], y).coef_, rtol=1e-9)


def test_columns_of_different_size_do_not_slow_conjugate_gradients() -> None:
    rng = np.random.default_rng(0)
    sizes = np.geomspace(1e-3, 1e3, 30)
    X = rng.normal(size=(200, 30)) * sizes
    y = (X / sizes).sum(axis=1) + 0.1 * rng.normal(size=200)
    model, known = Ridge(1e-6, solver="cg").fit(X, y), Ridge(1e-6, solver="svd").fit(X, y)
    assert model.n_iter_[0] <= 30
    assert_allclose(model.coef_, known.coef_, rtol=1e-2)


@pytest.mark.parametrize("value", [4.0, 0.1, 1 / 3])
def test_a_constant_target_has_no_likely_penalty(value: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.full(30, value)
    with pytest.warns(NumericalWarning, match="y is constant"):
        assert RidgeCV(criterion="marginal_likelihood").fit(X, y).best_score_ == np.inf
    both = np.c_[X[:, 0] + rng.normal(size=30), y]
    with pytest.warns(NumericalWarning, match="2 of"):
        model = RidgeCV(criterion="marginal_likelihood", alpha_per_target=True).fit(X, both)
    alone = RidgeCV(criterion="marginal_likelihood").fit(X, both[:, 0])
    assert (model.alpha_[0], model.best_score_[0]) == (alone.alpha_, pytest.approx(alone.best_score_))
    assert RidgeCV().fit(X, y).best_score_ == 0.0
    with pytest.warns(NumericalWarning, match="0 in"):
        RidgeCV(criterion="marginal_likelihood", fit_intercept=False).fit(X, 0.0 * y)


def test_what_to_ask_for_where_the_inverse_was_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.ridge.solve.KEEP", 10)
    X, y = far_sparse(0.0)
    X = np.c_[X, X**2]
    for model, remedy in ((Ridge(), "solver='svd'"), (RidgeCV(), "gcv_mode='svd'"), (RidgeCV(cv=3), "Ridge")):
        with pytest.raises(ValueError, match=rf"6 columns was too large to keep.*limit: 4,194,304.*{remedy}"):
            model.fit(X, y).predict(X, return_std=True)
    with pytest.raises(ValueError, match="solver='svd'"):
        Ridge(solver="cg").fit(X, y).predict_interval(X)
    assert RidgeCV(gcv_mode="svd").fit(X, y).predict(X, return_std=True)[1].shape == (50,)


@pytest.mark.parametrize("alpha", ["a", "1.0", None, [None, 1.0]])
def test_a_penalty_that_is_no_number_is_named(alpha: Any) -> None:
    X, y = far_sparse(0.0)
    with pytest.raises(ValueError, match=r"alpha.*target"):
        Ridge(alpha).fit(X, np.c_[y, y])


def test_penalties_of_any_shape_are_one_for_each_target() -> None:
    X, y = far_sparse(0.0)
    Y = np.c_[y, y**2]
    known = SklearnRidge(np.array([[1.0], [7.0]])).fit(X, Y)
    assert_allclose(Ridge(np.array([[1.0], [7.0]])).fit(X, Y).coef_, known.coef_, rtol=1e-11)


@pytest.mark.parametrize("size", [1e308, 1e200, 1e-200])
def test_weights_beyond_the_range_are_refused_with_what_to_do(size: float) -> None:
    X, y = far_sparse(0.0)
    w = size * np.linspace(0.1, 1, 50)
    with pytest.raises(ValueError, match=r"1e[+-]\d+.*row 50.*weights.*alpha"):
        Ridge().fit(X, y, w)
    near = 1e90 * np.linspace(0.1, 1, 50)
    assert_allclose(Ridge(1e90).fit(X, y, near).coef_, Ridge().fit(X, y, near / 1e90).coef_, rtol=1e-10)
    assert row_weights([1e99, 0.0], 2).rows == 1


def test_targets_and_weights_that_carry_gradients(torch: Any) -> None:
    X, y = far_sparse(0.0)
    w = np.linspace(0.5, 2, 50)
    carrying = [torch.tensor(v, requires_grad=True) for v in (y, w)]
    assert_allclose(Ridge().fit(X, *carrying).coef_, Ridge().fit(X, y, w).coef_, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"scoring": "r2"}, {"cv": 3}])
def test_one_column_of_targets_has_one_score(options: dict[str, Any]) -> None:
    X, y = far_sparse(0.0)
    model = RidgeCV(alpha_per_target=True, **options).fit(X, y[:, None])
    assert np.shape(model.best_score_) == (1,)
    assert np.shape(model.alpha_) == ()
    if not options:
        known = SklearnRidgeCV(alpha_per_target=True).fit(X, y[:, None])
        assert_allclose(model.best_score_, known.best_score_, rtol=1e-10)
        assert model.alpha_ == known.alpha_


def test_folds_are_checked_once_and_names_do_not_stay() -> None:
    X, y = far_sparse(0.0)
    model = RidgeCV(cv=3).fit(pd.DataFrame(X, columns=list("abc")), y)
    assert list(model.feature_names_in_) == list("abc")
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3
    for weights, message in ((np.ones(3), r"shape \(3,\); expected one"), (-np.ones(50), "row 1 has -1")):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, weights)


@pytest.mark.parametrize("big", [0.1, 1e8 + 0.1, 1e60, 8.4527125e269, 1e305])
@pytest.mark.parametrize("alpha", [0.0, 1e-310, 1e-16, 1e6])
@pytest.mark.parametrize("columns", [1, 3, 9])
def test_sparse_constants_of_any_size_have_the_dense_answer_or_no_bound(big: float, alpha: float, columns: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, columns)), rng.standard_normal(6)
    X[:, 0] = big
    dense, thin = fitted(Ridge(alpha), X, y), fitted(Ridge(alpha), sparse.csr_array(X), y)
    assert np.all(np.isfinite(thin.coef_))
    error = float(np.linalg.norm(thin.coef_ - dense.coef_))
    assert error <= (thin.certificate_.error_bounds + dense.certificate_.error_bounds)[0]
    assert not thin.certificate_.converged or error <= 1e-6


@pytest.mark.parametrize("alpha", [5e-324, 9e-318, 1e-300])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "dual", "svd", "lsqr"])
def test_columns_without_spread_have_no_coefficient_however_small_alpha_is(alpha: float, solver: str) -> None:
    for X, w in ((np.zeros((2, 4)), None), (np.array([[3e-148], [-4e-148]]), [1.0, 0.0])):
        model = fitted(Ridge(alpha, solver=solver), X, np.array([1.0, 2.0]), w)
        assert_array_equal(model.coef_, 0.0)
        assert model.certificate_.converged


def test_sparse_columns_that_only_rounding_tells_apart_have_no_bound() -> None:
    """Means taken off afterwards leave what looks like a third direction; with more digits there is none."""
    rng = np.random.default_rng([181126, 3833])
    X = rng.standard_normal((10, 2))
    for size in 10.0 ** np.arange(0, 9):
        Z = np.column_stack([X, X[:, 0]]) + size * rng.standard_normal(3)
        model = fitted(Ridge(0.0), sparse.csr_array(Z), rng.standard_normal(10))
        assert np.all(np.isinf(model.certificate_.error_bounds))


def test_the_error_of_the_basis_counts_where_a_gradient_lies_across_it() -> None:
    """Columns of 0 have no coefficient; what rounding of V mixes into them is within the bound."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        x, y = np.round(rng.standard_normal(6) * 3e7), rng.standard_normal(6)
        X = np.column_stack([np.zeros((6, 2)), x])
        for solver in ("svd", "lsqr", "cholesky"):
            model = fitted(Ridge(1e-8, fit_intercept=False, solver=solver), X, y)
            known = np.array([0.0, 0.0, (x @ y) / (x @ x)])  # λ is 1e-23 of xᵀx
            assert np.linalg.norm(model.coef_ - known) <= model.certificate_.error_bounds[0] + 1e-14 * abs(known[2])


def test_equal_rows_of_any_unit_have_a_bound() -> None:
    for unit in 10.0 ** np.arange(-300, 301, 25):
        X = unit * np.ones((2, 1)) * np.array([1.1652617, -0.555390289, 0.802219509, 0.0809018603, 3.36259648])
        model = fitted(Ridge(2.4e-27), X, np.array([-1.4, -0.26]), np.array([2.6521514, 0.21994059]))
        assert_array_equal(model.coef_, 0.0)
        assert not np.isnan(model.certificate_.error_bounds[0])
