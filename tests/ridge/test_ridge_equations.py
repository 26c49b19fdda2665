"""Each equation of ridge and kernel ridge regression, through the public classes."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from sklearn.datasets import make_circles

from gramian import PCA, kernels
from gramian.kernel_ridge.estimator import KernelRidge
from gramian.ridge.estimator import Ridge, RidgeCV

DATA = Path(__file__).parents[1] / "data"
SHAPES = {"tall": (40, 6), "wide": (6, 40), "square": (15, 15)}
each_shape = pytest.mark.parametrize("shape", SHAPES)


def sample(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n)


def primal(X, y, lam):
    """(XᵀX + λI)⁻¹Xᵀy."""
    return np.linalg.solve(X.T @ X + lam * np.eye(X.shape[1]), X.T @ y)


def dual(X, y, lam):
    """Xᵀ(XXᵀ + λI)⁻¹y."""
    return X.T @ np.linalg.solve(X @ X.T + lam * np.eye(len(X)), y)


def by_svd(X, y, lam):
    """V σ/(σ²+λ) Uᵀy."""
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return Vt.T @ (s / (s**2 + lam) * (U.T @ y))


# Three formulas, one answer


@each_shape
@pytest.mark.parametrize("lam", [1e-3, 1.0, 100.0])
def test_primal_dual_and_svd_are_equal(shape, lam):
    X, y = sample(*SHAPES[shape])
    formulas = [form(X, y, lam) for form in (primal, dual, by_svd)]
    fits = [
        Ridge(alpha=lam, fit_intercept=False, solver=solver).fit(X, y) for solver in ("auto", "primal", "dual", "svd")
    ]
    kernel = KernelRidge(alpha=lam, kernel="linear").fit(X, y)
    for w in (*formulas[1:], *(model.coef_ for model in fits), X.T @ kernel.dual_coef_):
        np.testing.assert_allclose(w, formulas[0], rtol=0, atol=1e-10 * np.linalg.norm(formulas[0]))


@each_shape
@pytest.mark.parametrize("lam", [1e-3, 1.0, 100.0])
def test_a_linear_kernel_is_as_near_as_its_certificate_says(shape, lam):
    """|f̂(x) − f(x)| ≤ bound·‖x‖ for every x is ‖Xᵀα̂ − w‖ ≤ bound."""
    X, y = sample(*SHAPES[shape])
    model, truth = KernelRidge(alpha=lam, kernel="linear").fit(X, y), by_svd(X, y, lam)
    error = np.linalg.norm(X.T @ model.dual_coef_ - truth)
    assert error <= model.certificate_.error_bounds[0] + 1e-13 * np.linalg.norm(truth)


@each_shape
def test_so_they_are_with_an_intercept(shape):
    X, y = sample(*SHAPES[shape])
    X = X + 3.0
    models = [Ridge(alpha=0.5, solver=solver).fit(X, y) for solver in ("primal", "dual", "svd")]
    D = X - X.mean(axis=0)
    expected = primal(D, y - y.mean(), 0.5)
    for model in models:
        np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-10 * np.linalg.norm(expected))
        assert model.intercept_ == pytest.approx(y.mean() - X.mean(axis=0) @ expected, rel=1e-10)


@given(st.integers(1, 12), st.integers(1, 12), st.floats(-3, 3), st.integers(0, 999))
def test_push_through(n, p, exponent, seed):
    """(XᵀX + λI)⁻¹Xᵀ = Xᵀ(XXᵀ + λI)⁻¹, column by column: a fit with every unit vector as a target."""
    X, lam = np.random.default_rng(seed).standard_normal((n, p)), 10.0**exponent
    left = Ridge(alpha=lam, fit_intercept=False, solver="primal").fit(X, np.eye(n)).coef_.reshape(n, p).T
    right = X.T @ KernelRidge(alpha=lam, kernel="linear").fit(X, np.eye(n)).dual_coef_
    size = np.linalg.norm(left, 2)
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(left, np.linalg.inv(X.T @ X + lam * np.eye(p)) @ X.T, rtol=0, atol=1e-9 * size)


def test_the_cheap_form_is_chosen_and_named():
    tall, wide = (Ridge().fit(*sample(*SHAPES[name])).certificate_ for name in ("tall", "wide"))
    assert tall.method != wide.method
    assert tall.converged
    assert wide.converged


# Feature maps and the representer theorem


def phi(X):
    """The degree-2 monomials: (x₁², √2 x₁x₂, x₂²)."""
    return np.column_stack([X[:, 0] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1], X[:, 1] ** 2])


SQUARE = kernels.Polynomial(2, coef0=0, gamma=1)


def test_the_kernel_is_the_inner_product_of_the_features():
    X, Z = sample(9, 2)[0], sample(7, 2, seed=1)[0]
    np.testing.assert_allclose(SQUARE(X, Z), phi(X) @ phi(Z).T, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(SQUARE(X, Z), (X @ Z.T) ** 2, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_ridge_on_the_features_is_kernel_ridge(intercept):
    """The representer theorem: w = Φᵀα, with n coefficients where there would be as many as features."""
    X, _ = sample(30, 2)
    rng = np.random.default_rng(3)
    y, new = 2 * X[:, 0] * X[:, 1] - X[:, 1] ** 2 + 0.1 * rng.standard_normal(30) + 4.0, sample(11, 2, seed=4)[0]
    explicit = Ridge(alpha=0.7, fit_intercept=intercept).fit(phi(X), y)
    implicit = KernelRidge(alpha=0.7, kernel=SQUARE, fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(implicit.predict(new), explicit.predict(phi(new)), rtol=1e-10)
    np.testing.assert_allclose(phi(X).T @ implicit.dual_coef_, explicit.coef_, rtol=1e-9)
    if intercept:
        assert abs(implicit.dual_coef_.sum()) < 1e-10 * np.abs(implicit.dual_coef_).sum()


def test_inhomogeneous_monomials_too():
    X, y = sample(25, 3)
    kernel = kernels.Polynomial(3, coef0=1, gamma=1)
    features = kernels.polynomial_features(X, 3, coef0=1, gamma=1)
    explicit = Ridge(alpha=2.0, fit_intercept=False).fit(features, y)
    implicit = KernelRidge(alpha=2.0, kernel=kernel).fit(X, y)
    np.testing.assert_allclose(implicit.predict(X), explicit.predict(features), rtol=1e-10)


# The dual problem


def objective(K, y, lam, a):
    """‖Kα − y‖² + λαᵀKα."""
    return float(np.sum((K @ a - y) ** 2) + lam * a @ K @ a)


@pytest.mark.parametrize("singular", [False, True], ids=["regular", "singular"])
def test_the_coefficients_minimise_the_penalised_error_also_for_a_singular_matrix(singular):
    X, y = sample(20, 3)
    X = np.vstack([X[:10], X[:10]]) if singular else X
    kernel = SQUARE if singular else kernels.Gaussian(gamma=0.5)
    K, lam = kernel(X, X), 0.3
    assert (np.linalg.matrix_rank(K) < 20) == singular
    model = KernelRidge(alpha=lam, kernel=kernel).fit(X, y)
    a = model.dual_coef_
    np.testing.assert_allclose(a, np.linalg.solve(K + lam * np.eye(20), y), rtol=1e-9, atol=1e-12)
    gradient = 2 * K @ (K @ a - y + lam * a)
    assert np.linalg.norm(gradient) < 1e-9 * np.linalg.norm(K @ y)
    least = objective(K, y, lam, a)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert objective(K, y, lam, a + 10.0 ** rng.uniform(-3, 1) * rng.standard_normal(20)) >= least
    found = minimize(lambda v: objective(K, y, lam, v), np.zeros(20), jac=lambda v: 2 * K @ (K @ v - y + lam * v))
    assert found.fun == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(K @ found.x, model.predict(X), rtol=0, atol=1e-3 * np.abs(y).max())


@pytest.mark.parametrize("solver", ["eigh", "cholesky", "cg", "landmarks"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_squared_norm_is_that_of_the_coefficients_of_the_features(solver, intercept):
    """αᵀKα = ‖w‖² with w = Φᵀα, by features that can be written down; of one target and of two."""
    X, y = sample(25, 3)
    Y = np.column_stack([y, np.cos(3 * y)])
    phi = kernels.polynomial_features(X, 2, coef0=1.0, gamma=1.0)
    kernel = kernels.Polynomial(2, coef0=1.0, gamma=1.0)
    model = KernelRidge(0.3, kernel=kernel, fit_intercept=intercept, solver=solver).fit(X, Y)
    rows = phi if solver != "landmarks" else phi[model.landmarks_]
    expected = np.sum((rows.T @ model.dual_coef_) ** 2, axis=0)
    np.testing.assert_allclose(model.squared_norm(), expected, rtol=1e-7)
    one = KernelRidge(0.3, kernel=kernel, fit_intercept=intercept).fit(X, y)
    assert one.squared_norm() == pytest.approx(np.sum((phi.T @ one.dual_coef_) ** 2), rel=1e-7)
    by_matrix = KernelRidge(0.3, kernel="precomputed", fit_intercept=intercept).fit(kernel(X), y)
    assert by_matrix.squared_norm() == pytest.approx(one.squared_norm(), rel=1e-7)


def test_a_prediction_is_a_sum_over_the_training_points():
    X, y = sample(15, 2)
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.8).fit(X, y)
    new = sample(4, 2, seed=9)[0]
    expected = [
        sum(a * np.exp(-0.8 * np.sum((z - x) ** 2)) for a, x in zip(model.dual_coef_, X, strict=True)) for z in new
    ]
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-11)


def test_a_linear_model_of_features_has_a_boundary_that_is_not_linear():
    """Circles: no straight line parts them, the conic f(x) = 0 of the degree-2 features does."""
    X, label = make_circles(200, noise=0.05, factor=0.5, random_state=0)
    y = 2.0 * label - 1.0
    straight = np.sign(Ridge(alpha=1.0).fit(X, y).predict(X))
    curved = KernelRidge(alpha=1.0, kernel=SQUARE, fit_intercept=True).fit(X, y)
    assert np.mean(straight == y) < 0.7
    assert np.mean(np.sign(curved.predict(X)) == y) == 1.0
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    rays = np.column_stack([np.cos(angle), np.sin(angle)])
    radii = [brentq(lambda r, u=u: float(curved.predict(r * u[None, :])[0]), 0.1, 1.5) for u in rays]
    assert np.ptp(radii) < 0.2  # a closed curve around the inner circle
    assert 0.5 < np.mean(radii) < 1.0


# What λ does


def test_every_direction_shrinks_and_the_small_ones_most():
    X, y = sample(50, 6)
    X = X * [5.0, 3.0, 2.0, 1.0, 0.5, 0.2]
    alphas = np.geomspace(1e-3, 1e4, 20)
    path = RidgeCV(alphas=alphas).fit(X, y).path_
    D = X - X.mean(axis=0)
    U, s, Vt = np.linalg.svd(D, full_matrices=False)
    np.testing.assert_allclose(path.singular_values, s, rtol=1e-10)
    np.testing.assert_allclose(path.filter_factors, s[:, None] / (s[:, None] ** 2 + alphas), rtol=1e-9)
    kept = path.singular_values[:, None] * path.filter_factors
    assert np.all(np.diff(kept, axis=0) <= 0)  # the smaller σ, the less is kept
    assert np.all(np.diff(kept, axis=1) < 0)  # the larger λ, the less
    for k, lam in enumerate(alphas):
        rotated = Vt @ path.coef[k, 0]
        np.testing.assert_allclose(rotated, s / (s**2 + lam) * (U.T @ y), rtol=1e-8, atol=1e-12)


def test_degrees_of_freedom_fall_from_the_rank_to_the_intercept():
    X, y = sample(50, 6)
    alphas = np.geomspace(1e-8, 1e10, 30)
    s = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    path = RidgeCV(alphas=alphas).fit(X, y).path_
    np.testing.assert_allclose(path.dof - 1, (s[:, None] ** 2 / (s[:, None] ** 2 + alphas)).sum(axis=0), rtol=1e-8)
    assert np.all(np.diff(path.dof) < 0)
    assert path.dof[0] == pytest.approx(7, abs=1e-8)
    assert path.dof[-1] == pytest.approx(1, abs=1e-6)


@given(st.integers(3, 15), st.integers(1, 8), st.integers(0, 999))
def test_the_path_is_monotone(n, p, seed):
    X, y = sample(n, p, seed)
    alphas = np.geomspace(1e-4, 1e5, 15)
    path = RidgeCV(alphas=alphas).fit(X, y).path_
    length = np.linalg.norm(path.coef[:, 0], axis=1)
    fitted = path.coef[:, 0] @ X.T + path.intercept
    rss = np.sum((y - fitted) ** 2, axis=1)
    assert np.all(np.diff(length) <= 1e-9 * length[0])
    assert np.all(np.diff(rss) >= -1e-9 * rss[-1])
    assert np.all(np.diff(path.dof) <= 1e-9)


@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_the_ends_of_the_path(shape):
    """λ → 0 is least squares of least norm; λ → ∞ the mean, along Xᵀy/λ."""
    X, y = sample(*SHAPES[shape])
    D, d = X - X.mean(axis=0), y - y.mean()
    path = RidgeCV(alphas=[1e-10, 1e10]).fit(X, y).path_
    np.testing.assert_allclose(path.coef[0, 0], np.linalg.pinv(D, rcond=1e-10) @ d, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(path.coef[1, 0], D.T @ d / 1e10, rtol=1e-6)
    assert path.intercept[1, 0] == pytest.approx(y.mean(), rel=1e-6)


def test_rows_twice_are_a_penalty_halved():
    X, y = sample(20, 4)
    once = Ridge(alpha=1.5).fit(X, y)
    twice = Ridge(alpha=3.0).fit(np.vstack([X, X]), np.append(y, y))
    np.testing.assert_allclose(twice.coef_, once.coef_, rtol=1e-10)


# The prostate data of Hastie, Tibshirani and Friedman (2009)


@pytest.fixture(scope="module")
def prostate():
    """Predictors standardised over all 97 men, as in the book; the log of PSA; who is in the training set."""
    lines = (DATA / "prostate.csv").read_text("utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    names = [name for name in rows[0] if name not in ("lpsa", "train")]
    X = np.array([[float(row[name]) for name in names] for row in rows])
    train = np.array([row["train"] == "True" for row in rows])
    y = np.array([float(row["lpsa"]) for row in rows])
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1), y, train


def error(model, X, y):
    return float(np.mean((y - model.predict(X)) ** 2))


def test_prostate_base_and_least_squares(prostate):
    X, y, train = prostate
    assert (train.sum(), len(y)) == (67, 97)
    base = float(np.mean((y[~train] - y[train].mean()) ** 2))
    assert round(base, 3) == 1.057
    shrunk = Ridge(alpha=1e12).fit(X[train], y[train])
    assert round(error(shrunk, X[~train], y[~train]), 3) == 1.057
    least = Ridge(alpha=0.0).fit(X[train], y[train])
    assert round(error(least, X[~train], y[~train]), 3) == 0.521


def test_prostate_ridge_with_five_degrees_of_freedom(prostate):
    X, y, train = prostate

    def dof(log):
        return float(RidgeCV(alphas=[np.exp(log)]).fit(X[train], y[train]).path_.dof[0])

    lam = float(np.exp(brentq(lambda log: dof(log) - 6.0, 0.0, 8.0)))  # with the intercept
    assert lam == pytest.approx(24, abs=0.05)
    model = Ridge(alpha=lam).fit(X[train], y[train])
    assert round(error(model, X[~train], y[~train]), 3) == 0.490
    kernel = KernelRidge(alpha=lam, kernel="linear", fit_intercept=True).fit(X[train], y[train])
    assert round(error(kernel, X[~train], y[~train]), 3) == 0.490


def test_prostate_regression_on_seven_principal_components(prostate):
    X, y, train = prostate
    pca = PCA(n_components=7).fit(X[train])
    model = Ridge(alpha=0.0).fit(pca.transform(X[train]), y[train])
    assert round(error(model, pca.transform(X[~train]), y[~train]), 3) == 0.449


def test_prostate_coefficients_are_pulled_together(prostate):
    """Principal components with small variance are shrunk away: the coefficient of lcp, −.288, becomes about 0."""
    X, y, train = prostate
    least, ridge = (Ridge(alpha=lam).fit(X[train], y[train]).coef_ for lam in (0.0, 24.0))
    np.testing.assert_allclose(least[[0, 1, 5]], [0.680, 0.263, -0.288], atol=5e-4)
    assert abs(ridge[5]) < 0.001 < abs(least[5])
    assert np.linalg.norm(ridge) < np.linalg.norm(least)
