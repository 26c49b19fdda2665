"""Ridge regression: every route to the same numbers, exact oracles, and what scikit-learn's users expect."""

import pickle
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import NumericalWarning
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.ridge.solve import choose_solver
from gramian.sources import DenseSource, Source, SparseSource
from oracles import Array, with_spectrum

ROUTES = ["auto", "svd", "cholesky", "primal", "dual", "cg"]
DIRECT = ROUTES[:-1]


# The checks feed degenerate data (one feature, constant columns) on purpose; Gramian rightly speaks up there.
@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        Ridge(),
        Ridge(solver="svd"),
        Ridge(solver="dual"),
        Ridge(solver="cg"),
        Ridge(scale=True),
        RidgeCV(),
        RidgeCV(scale=True),
        RidgeCV(criterion="gcv"),
        RidgeCV(alpha_per_target=True),
    ]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def data(n: int, p: int, t: int = 2, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2, p) + rng.uniform(-3, 3, p)
    return X, X[:, :3] @ rng.normal(size=(3, t)) + rng.normal(size=(n, t)) + 1.0


WEIGHTS = {
    "none": lambda n: None,
    "fractions": lambda n: np.random.default_rng(1).uniform(0.2, 3, n),
    "counts": lambda n: np.random.default_rng(2).integers(0, 4, n),
}


@pytest.mark.parametrize("solver", ROUTES)
@pytest.mark.parametrize("shape", [(60, 5), (15, 40), (20, 20)])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.7, [0.3, 9.0]])
def test_every_route_gives_what_scikit_learn_gives(
    solver: str, shape: tuple[int, int], weights: str, intercept: bool, alpha: Any
) -> None:
    X, Y = data(*shape)
    w = WEIGHTS[weights](len(X))
    known = SklearnRidge(np.asarray(alpha)[()], fit_intercept=intercept, solver="cholesky").fit(X, Y, sample_weight=w)
    ours = Ridge(alpha, fit_intercept=intercept, solver=solver, tol=1e-13).fit(X, Y, sample_weight=w)
    size = np.max(np.abs(known.coef_))
    assert_allclose(ours.coef_, known.coef_, rtol=0, atol=1e-10 * size)
    assert_allclose(ours.intercept_, known.intercept_, rtol=0, atol=1e-10 * (1 + size))
    assert_allclose(ours.predict(X), known.predict(X), rtol=0, atol=1e-10 * np.max(np.abs(Y)))
    assert ours.certificate_.converged


@pytest.mark.parametrize("columns", [None, 1, 2])
def test_shapes_are_those_of_scikit_learn(columns: int | None) -> None:
    X, Y = data(30, 4)
    y = Y[:, 0] if columns is None else Y[:, :columns]
    known, ours = SklearnRidge().fit(X, y), Ridge().fit(X, y)
    assert ours.coef_.shape == known.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(known.intercept_)
    assert ours.predict(X).shape == known.predict(X).shape
    assert ours.score(X, y) == pytest.approx(known.score(X, y), rel=1e-12)
    assert Ridge(fit_intercept=False).fit(X, y).intercept_ == 0.0


def exact(X: Array, y: Array, lam: float, w: Array | None = None) -> Array:
    """Coefficients with 60 digits of the very numbers given, the intercept first and not penalised."""
    with mpmath.workdps(60):
        A = mpmath.matrix([[1, *map(mpmath.mpf, map(float, row))] for row in X])
        W = mpmath.diag([mpmath.mpf(float(v)) for v in (np.ones(len(X)) if w is None else w)])
        G = A.T * W * A
        for j in range(1, A.cols):
            G[j, j] += mpmath.mpf(lam)
        solution = mpmath.lu_solve(G, A.T * W * mpmath.matrix([mpmath.mpf(float(v)) for v in y]))
        return np.array([float(v) for v in solution])


def off(model: Ridge, answer: Array) -> float:
    """‖ŵ − w‖."""
    return float(np.linalg.norm(model.coef_ - answer[1:]))


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("least", [1e-3, 1e-7])
@pytest.mark.parametrize("lam", [1e-2, 1e-6, 1e-10])
def test_ill_conditioned_data_against_sixty_digits(solver: str, least: float, lam: float) -> None:
    X = with_spectrum(30, 5, np.geomspace(1, least, 5), seed=3, mean=2.0)
    y = np.random.default_rng(4).normal(size=30)
    answer = exact(X, y, lam)
    model = Ridge(lam, solver=solver).fit(X, y)
    bound = model.certificate_.error_bounds[0]
    assert off(model, answer) <= bound
    assert off(model, answer) <= 1e-10 * np.linalg.norm(answer[1:])
    assert model.certificate_.bounded == "‖ŵ − w‖"


def test_the_gram_matrix_is_not_used_where_that_is_unsafe() -> None:
    X = with_spectrum(50, 4, [1, 1e-2, 1e-4, 1e-6])
    y = X[:, 0]
    safe, unsafe = Ridge(1e-4).fit(X, y), Ridge(1e-11).fit(X, y)
    assert (safe.solver_, unsafe.solver_) == ("cholesky", "svd")
    assert "not safe" in " ".join(unsafe.certificate_.notes)
    wide = Ridge(1e-9).fit(X.T[:, :20], y[:4])
    assert wide.solver_ == "svd"
    assert Ridge(1e-3).fit(X.T[:, :20], y[:4]).solver_ == "dual"


def test_columns_of_different_size_do_not_make_a_problem_ill_conditioned() -> None:
    X, Y = data(80, 4)
    scale = np.array([1e-6, 1.0, 1e6, 1e3])
    model = Ridge(1e-9).fit(X * scale, Y[:, 0])
    answer = exact(X * scale, Y[:, 0], 1e-9)
    assert model.solver_ == "cholesky"
    assert_allclose(model.coef_, answer[1:], rtol=1e-10)


def polynomial(x: Array, degree: int) -> Array:
    return np.asarray(x[:, None] ** np.arange(1, degree + 1))


def test_least_squares_of_a_hard_polynomial() -> None:
    # Like NIST's Filip: 82 points, degree 10, x near -6, so that the columns are almost dependent.
    x = np.sort(np.random.default_rng(0).uniform(-8.8, -3.1, 82)).round(6)
    X, y = polynomial(x, 10), 0.8 + 0.1 * np.sin(2 * x)
    answer = exact(X, y, 0.0)
    model = Ridge(0.0).fit(X, y)
    assert_allclose(model.coef_, answer[1:], rtol=1e-8)
    assert model.intercept_ == pytest.approx(answer[0], rel=1e-8)
    assert off(model, answer) <= model.certificate_.error_bounds[0]
    assert model.rank_ == 10


@pytest.mark.parametrize("ratio", [1.0, 0.1])
def test_wampler(ratio: float) -> None:
    # Wampler1 and Wampler2 of NIST's Statistical Reference Datasets: y is a polynomial of x = 0, …, 20 exactly.
    x = np.arange(21.0)
    X = polynomial(x, 5)
    y = 1.0 + X @ ratio ** np.arange(1.0, 6.0)
    model = Ridge(0.0).fit(X, y)
    assert_allclose(model.coef_, ratio ** np.arange(1.0, 6.0), rtol=1e-11)
    assert model.intercept_ == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("n", [40, 60_000])
def test_least_squares_of_full_rank(solver: str, n: int) -> None:
    if n > 1000 and solver == "dual":
        solver = "auto"
    X, Y = data(n, 5)
    w = np.random.default_rng(1).uniform(0.2, 3, n)
    known = LinearRegression().fit(X, Y, sample_weight=w)
    model = Ridge(0, solver=solver).fit(X, Y, sample_weight=w)
    assert_allclose(model.coef_, known.coef_, rtol=1e-10)
    assert_allclose(model.intercept_, known.intercept_, rtol=1e-10)
    assert_allclose(model.dof_, 6.0)


def test_large_least_squares_that_only_qr_can_do() -> None:
    n = 60_000  # beyond what is refined in extended precision
    x = np.linspace(-3, -1, n)
    X = polynomial(x, 9)
    y = X @ np.arange(1.0, 10.0) + 2.0
    model = Ridge(0).fit(X, y)
    assert model.solver_ == "svd"
    assert_allclose(model.coef_, np.arange(1.0, 10.0), rtol=1e-6)


@pytest.mark.parametrize("kind", ["tall", "wide", "sparse wide", "constant"])
def test_solution_of_least_norm(kind: str) -> None:
    X, Y = data(12, 30) if "wide" in kind else data(40, 4)
    X = X if "wide" in kind else np.c_[X, np.full(40, 7.0) if kind == "constant" else X[:, 0] - 3 * X[:, 1]]
    rank = 11 if "wide" in kind else 4
    answer = np.linalg.pinv(X - X.mean(axis=0), rcond=1e-12) @ (Y - Y.mean(axis=0))
    with pytest.warns(NumericalWarning, match=f"rank {rank} and {X.shape[1]} columns"):
        model = Ridge(0).fit(sparse.csr_array(X) if "sparse" in kind else X, Y)
    assert_allclose(model.coef_, answer.T, atol=1e-10)
    assert_allclose(model.predict(X), (X - X.mean(axis=0)) @ answer + Y.mean(axis=0), atol=1e-9)
    assert model.rank_ == rank


def test_least_norm_is_of_the_coefficients_as_they_are_whatever_the_scales() -> None:
    X, Y = data(40, 3)
    scale = np.array([1e-5, 1.0, 1e5, 1e2])
    Z = np.c_[X, X[:, 0] + X[:, 1]] * scale
    with pytest.warns(NumericalWarning, match=r"rank 3.*4 columns"):
        model = Ridge(0).fit(Z, Y[:, 0])
    null = np.array([1.0, 1.0, 0.0, -1.0]) / scale  # Z·null = 0
    assert abs(model.coef_ @ null) <= 1e-9 * np.linalg.norm(model.coef_) * np.linalg.norm(null)
    assert_allclose(model.predict(Z), LinearRegression().fit(X, Y[:, 0]).predict(X), rtol=1e-9)


def test_targets_with_and_without_a_penalty() -> None:
    X, Y = data(50, 4)
    both = Ridge([0.0, 3.0]).fit(X, Y)
    assert_allclose(both.coef_[0], LinearRegression().fit(X, Y[:, 0]).coef_, rtol=1e-11)
    assert_allclose(both.coef_[1], SklearnRidge(3.0).fit(X, Y[:, 1]).coef_, rtol=1e-11)
    assert both.dof_[0] == pytest.approx(5.0)


@pytest.mark.parametrize("solver", ROUTES)
@pytest.mark.parametrize("mean", [1e8, -1e10])
def test_large_means_cost_no_digits(solver: str, mean: float) -> None:
    X, Y = data(60, 4)
    X = np.round(X * 1024) / 1024  # so that adding the mean rounds nothing
    near = Ridge(solver="svd").fit(X, Y)
    far = Ridge(solver=solver, tol=1e-13).fit(X + mean, Y)
    assert_allclose(far.coef_, near.coef_, rtol=1e-9)
    assert_allclose(far.predict(X + mean), near.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ROUTES)
@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-60, 1e60, 1e170, 1e300])
def test_sizes_of_the_data(solver: str, size: float) -> None:
    X, Y = data(40, 3)
    deviations = X - X.mean(axis=0)
    # λ = 1 is all there is compared with tiny data, and nothing compared with huge ones
    limit = deviations.T @ (Y - Y.mean(axis=0)) if size < 1 else np.linalg.pinv(deviations) @ (Y - Y.mean(axis=0))
    model = Ridge(solver=solver, tol=1e-12).fit(X * size, Y)
    assert_allclose(model.coef_ / size if size < 1 else model.coef_ * size, limit.T, rtol=1e-9)
    assert_allclose(Ridge(solver=solver, tol=1e-12).fit(X, Y * size).coef_ / size, Ridge().fit(X, Y).coef_, rtol=1e-9)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 12),
    p=st.integers(1, 8),
    solver=st.sampled_from(["auto", "svd", "dual", "primal"]),
    intercept=st.booleans(),
    alpha=st.floats(1e-3, 1e3),
)
def test_counts_are_repeated_rows(seed: int, n: int, p: int, solver: str, intercept: bool, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(n, p)), rng.normal(size=n), rng.integers(0, 4, n)
    w[:2] += 1
    weighted = Ridge(alpha, solver=solver, fit_intercept=intercept).fit(X, y, sample_weight=w)
    repeated = Ridge(alpha, solver=solver, fit_intercept=intercept).fit(X.repeat(w, axis=0), y.repeat(w))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-9, atol=1e-12)
    assert_allclose(weighted.dof_, repeated.dof_, rtol=1e-9)
    assert_allclose(weighted.noise_variance_, repeated.noise_variance_, rtol=1e-8)


@given(seed=st.integers(0, 10_000), factor=st.floats(1e-3, 1e3), alpha=st.floats(1e-2, 1e2))
def test_weights_and_penalty_have_one_scale(seed: int, factor: float, alpha: float) -> None:
    X, Y = data(20, 4, seed=seed)
    w = np.random.default_rng(seed).uniform(0.1, 2, 20)
    one = Ridge(alpha).fit(X, Y, sample_weight=w)
    assert_allclose(Ridge(alpha * factor).fit(X, Y, sample_weight=w * factor).coef_, one.coef_, rtol=1e-9, atol=1e-12)


def test_float32_stays_float32_and_is_computed_in_float64() -> None:
    X, Y = data(50, 4)
    narrow = X.astype(np.float32)
    model, wide = Ridge().fit(narrow, Y), Ridge().fit(narrow.astype(np.float64), Y)
    assert model.coef_.dtype == model.intercept_.dtype == model.predict(narrow).dtype == np.float32
    assert model.predict(X).dtype == np.float64
    assert_array_equal(model.coef_, wide.coef_.astype(np.float32))


def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix() -> None:
    X, Y = data(25, 6)
    w = np.random.default_rng(3).uniform(0.2, 2, 25)
    A, P = np.c_[np.ones(25), X], np.diag([0.0, *[2.0] * 6])
    hat = A @ np.linalg.solve(A.T @ (w[:, None] * A) + P, A.T * w)
    residuals = Y - hat @ Y
    for solver in ("svd", "cholesky", "dual"):
        model = Ridge(2.0, solver=solver).fit(X, Y, sample_weight=w)
        assert model.dof_ == pytest.approx(np.trace(hat), rel=1e-10)
        assert_allclose(model.noise_variance_, w @ residuals**2 / (25 - np.trace(hat)), rtol=1e-10)


class Shape(Source):
    """A source of which only the outside is known."""

    def __init__(self, shape: tuple[int, int], *, sparse: bool = False, resident: bool = True) -> None:
        self.shape, self.sparse, self.resident = shape, sparse, resident

    def blocks(self, rows: int | None = None) -> Any:
        raise AssertionError("nothing is read to choose")


@pytest.mark.parametrize(
    ("source", "method"),
    [
        (Shape((1000, 50)), "cholesky"),
        (Shape((50, 1000)), "dual"),
        (Shape((10**6, 10**6)), "cg"),
        (Shape((10**5, 10**4), sparse=True), "cg"),
        (Shape((10**5, 500), sparse=True), "cholesky"),
        (Shape((500, 10**6), resident=False), "dual"),
        (Shape((10**4, 10**5), resident=False), "cg"),
    ],
)
def test_the_rule(source: Source, method: str) -> None:
    solver, reason = choose_solver(source, "auto")
    assert solver == method
    assert reason


def test_the_certificate_names_the_way() -> None:
    X, Y = data(30, 4)
    certificate = Ridge().fit(X, Y).certificate_
    assert "Cholesky" in certificate.method
    assert "4 columns, 30 rows" in certificate.reason
    assert certificate.worst < 1e-12
    assert certificate.condition < 1e3
    assert len(certificate.error_bounds) == len(certificate.residuals) == 2
    assert "solver='svd'" in Ridge(solver="svd").fit(X, Y).certificate_.reason


def test_targets_without_anything_to_explain() -> None:
    X, _ = data(20, 3)
    constant = Ridge().fit(X, np.full(20, 4.0))
    assert_allclose(constant.coef_, 0.0, atol=1e-15)
    assert constant.intercept_ == pytest.approx(4.0)
    assert constant.certificate_.converged
    nothing = Ridge().fit(np.ones((20, 3)), np.arange(20.0))
    assert_array_equal(nothing.coef_, 0.0)
    assert nothing.intercept_ == pytest.approx(9.5)


def test_conjugate_gradients_say_how_far_they_are() -> None:
    X, Y = data(200, 30)
    exactly = Ridge(5.0).fit(X, Y)
    loose = Ridge(5.0, solver="cg", tol=1e-3).fit(X, Y)
    gaps = np.linalg.norm(loose.coef_ - exactly.coef_, axis=1)
    assert np.all(gaps <= loose.certificate_.error_bounds)
    assert loose.solver_ == "cg"
    assert np.all(loose.n_iter_ >= 1)
    assert np.isnan(loose.dof_)
    with pytest.raises(ValueError, match="solver='svd'"):
        loose.predict(X, return_std=True)
    with pytest.warns(ConvergenceWarning):
        Ridge(1e-6, solver="cg", tol=1e-12, max_iter=1).fit(X, Y)


@pytest.mark.parametrize("name", ["lsqr", "sparse_cg", "sag", "saga"])
def test_iterative_solvers_of_scikit_learn_are_conjugate_gradients(name: str) -> None:
    X, Y = data(40, 5)
    assert_allclose(Ridge(solver=name, tol=1e-12).fit(X, Y).coef_, Ridge().fit(X, Y).coef_, rtol=1e-9)


def test_a_changed_model_predicts_with_what_it_was_changed_to() -> None:
    X, Y = data(20, 3)
    model = Ridge().fit(X, Y[:, 0])
    model.coef_ = np.array([1.0, 2.0, 3.0])
    model.intercept_ = -1.0
    assert_allclose(model.predict(X), X @ [1.0, 2.0, 3.0] - 1.0, rtol=1e-12)


def test_scripts_for_scikit_learn_run() -> None:
    X, Y = data(60, 5, t=1)
    y = Y[:, 0]
    pipe, known = make_pipeline(StandardScaler(), Ridge(2.0)), make_pipeline(StandardScaler(), SklearnRidge(2.0))
    assert_allclose(pipe.fit(X, y).predict(X), known.fit(X, y).predict(X), rtol=1e-11)
    grids = [GridSearchCV(m(), {"alpha": [0.1, 1.0, 10.0]}, cv=3).fit(X, y) for m in (Ridge, SklearnRidge)]
    assert grids[0].best_params_ == grids[1].best_params_
    assert grids[0].best_score_ == pytest.approx(grids[1].best_score_, rel=1e-10)
    assert_allclose(cross_val_score(Ridge(), X, y), cross_val_score(SklearnRidge(), X, y), rtol=1e-10)
    model = clone(Ridge(3.0)).set_params(alpha=2.0, solver="svd").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"positive": "yes"}, "positive"),
        ({"positive": True, "solver": "svd"}, "positive"),
        ({"solver": "lbfgs"}, "lbfgs"),
        ({"solver": "magic"}, "solver must be one of"),
        ({"alpha": -1.0}, "alpha must be finite and not negative"),
        ({"alpha": np.nan}, "alpha must be finite"),
        ({"alpha": [1.0, 2.0, 3.0]}, "3 != 2"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_refusals_name_the_parameter(parameters: dict[str, Any], message: str) -> None:
    X, Y = data(10, 3)
    with pytest.raises(ValueError, match=message):
        Ridge(**parameters).fit(X, Y)


def test_refusals_name_the_cell() -> None:
    X, Y = data(10, 3)
    for value, name in ((np.nan, "NaN"), (np.inf, "inf")):
        bad, bad_y = X.copy(), Y.copy()
        bad[4, 2] = bad_y[7, 1] = value
        with pytest.raises(ValueError, match=rf"{name}.*row 5, column 3"):
            Ridge().fit(bad, Y)
        with pytest.raises(ValueError, match=rf"(?i){name}.*row 8, target 2"):
            Ridge().fit(X, bad_y)
        with pytest.raises(ValueError, match=rf"{name}.*row 5, column 3"):
            Ridge().fit(X, Y).predict(bad)
    with pytest.raises(ValueError, match="10 rows, y 9"):
        Ridge().fit(X, Y[:9])
    with pytest.raises(ValueError, match=r"row 3.*-1"):
        Ridge().fit(X, Y, sample_weight=[1, 1, -1, *[1] * 7])
    with pytest.raises(ValueError, match="every"):
        Ridge().fit(X, Y, sample_weight=np.zeros(10))


def test_sources_are_as_good_as_arrays() -> None:
    X, Y = data(30, 4)
    assert_array_equal(Ridge().fit(DenseSource(X), Y).coef_, Ridge().fit(X, Y).coef_)
    assert_allclose(Ridge().fit(SparseSource(sparse.csr_array(X)), Y).coef_, Ridge().fit(X, Y).coef_, rtol=1e-10)
