"""Every λ from one decomposition: against refits without each row, bordered systems and a Gaussian process."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge

from gramian.kernel_ridge import problem as _kernel_problem
from gramian.kernel_ridge.path import KernelEigen, automatic_alphas, eigen_system
from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernel_ridge.solve import eigen_bytes
from gramian.kernels import Callable, Gaussian, Kernel, Linear, Precomputed
from gramian.operators import FeatureCentred, KernelOperator
from oracles import Array

ALPHAS = np.array([1e-3, 0.1, 2.0, 50.0])
INTERCEPT = [False, True]


def problem(n: int = 30, p: int = 3, t: int = 2, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.column_stack([np.sin(X.sum(axis=1) + k) for k in range(t)]) + 0.2 * rng.normal(size=(n, t)) + 1.0


def weights(n: int, kind: str, seed: int = 1) -> tuple[Any, bool]:
    rng = np.random.default_rng(seed)
    if kind == "none":
        return None, True
    return (rng.integers(1, 4, n).astype(float), True) if kind == "counts" else (rng.uniform(0.3, 3.0, n), False)


def found(X: Array, Y: Array, w: Any, counts: bool, intercept: bool, kernel: Kernel | None = None) -> KernelEigen:
    return eigen_system(KernelProblem(kernel or Gaussian(0.4), X, Y, w, np.ones(Y.shape[1]), intercept, counts))


def naive(K: Array, Y: Array, w: Array, lam: float, intercept: bool) -> tuple[Array, Array]:
    """Minimise Σ w(y − Kα − b)² + λαᵀKα by its own equations: (K + λW⁻¹)α + 1b = y, 1ᵀα = 0."""
    n = len(K)
    M = K + lam * np.diag(1 / w)
    if not intercept:
        return np.linalg.solve(M, Y), np.zeros(Y.shape[1])
    border = np.block([[M, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(border, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:-1], solution[-1]


def naive_errors(K: Array, Y: Array, w: Array, counts: bool, lam: float, intercept: bool) -> Array:
    """Fit again without each row, or without one copy of it."""
    out = np.empty_like(Y)
    for i in range(len(K)):
        left = w.copy()
        left[i] = left[i] - 1 if counts else 0.0
        rows = np.flatnonzero(left > 0)
        alpha, b = naive(K[np.ix_(rows, rows)], Y[rows], left[rows], lam, intercept)
        out[i] = Y[i] - K[i, rows] @ alpha - b
    return out


@pytest.mark.parametrize("kind", ["none", "counts", "precisions"])
@pytest.mark.parametrize("intercept", INTERCEPT)
def test_coefficients_and_errors_are_those_of_refits(kind: str, intercept: bool) -> None:
    X, Y = problem()
    w, counts = weights(len(X), kind)
    each, K = np.ones(len(X)) if w is None else w, Gaussian(0.4)(X)
    system = found(X, Y, w, counts, intercept)
    path = system.path(ALPHAS)
    for k, lam in enumerate(ALPHAS):
        alpha, b = naive(K, Y, each, lam, intercept)
        assert_allclose(path.coef[k].T, alpha, rtol=1e-8, atol=1e-9 * np.abs(alpha).max())
        assert_allclose(path.intercept[k], b, rtol=1e-9, atol=1e-12)
        errors = naive_errors(K, Y, each, counts, lam, intercept)
        assert_allclose(system.errors(np.full(2, lam)), errors, rtol=1e-7, atol=1e-10)
        total = each.sum() if counts else len(X)
        assert_allclose(path.loo[k], each @ errors**2 / total, rtol=1e-8)


@pytest.mark.parametrize("intercept", INTERCEPT)
def test_every_quantity_of_counts_is_that_of_repeated_rows(intercept: bool) -> None:
    X, Y = problem(18)
    w, _ = weights(18, "counts")
    often = np.repeat(np.arange(18), w.astype(int))
    ours, long = found(X, Y, w, True, intercept).path(ALPHAS), found(X[often], Y[often], None, True, intercept)
    theirs = long.path(ALPHAS)
    for name in ("loo", "gcv", "log_marginal_likelihood", "noise_variance", "dof", "intercept"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, err_msg=name)


def test_degrees_of_freedom_and_gcv_are_those_of_the_hat_matrix() -> None:
    X, Y = problem()
    w, K, n = weights(30, "precisions")[0], Gaussian(0.4)(X), 30
    path = found(X, Y, w, False, True).path(ALPHAS)
    for k, lam in enumerate(ALPHAS):
        alpha, b = naive(K, np.eye(n), w, lam, True)  # every column of the hat matrix
        hat = K @ alpha + b
        assert_allclose(path.dof[k], np.trace(hat), rtol=1e-10)
        rss = w @ (Y - hat @ Y) ** 2
        assert_allclose(path.gcv[k], rss / n / (1 - np.trace(hat) / n) ** 2, rtol=1e-9)
        assert_allclose(path.noise_variance[k], rss / (n - np.trace(hat)), rtol=1e-9)


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_the_likelihood_is_that_of_a_gaussian_process_with_the_best_scale(lam: float) -> None:
    X, Y = problem(25, t=1)
    system = found(X, Y, None, True, False)
    s = float(system.filter.scale([lam])[0, 0])  # noise variance; the signal's is s/λ
    length = np.sqrt(0.5 / 0.4)
    kernel = ConstantKernel(s / lam) * RBF(length) + WhiteKernel(s)
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, Y[:, 0])
    ours = float(system.path(np.array([lam])).log_marginal_likelihood[0, 0])
    assert_allclose(ours, process.log_marginal_likelihood_value_, rtol=1e-10)
    beside = [np.log([a * s / lam, length, a * s]) for a in (0.98, 1.02)]
    assert ours >= max(process.log_marginal_likelihood(theta) for theta in beside)


def test_coefficients_are_those_of_scikit_learn() -> None:
    X, Y = problem(40)
    w, _ = weights(40, "precisions")
    path = found(X, Y, w, False, False).path(ALPHAS)
    for k, lam in enumerate(ALPHAS):
        theirs = KernelRidge(alpha=lam, kernel="rbf", gamma=0.4).fit(X, Y, sample_weight=w)
        assert_allclose(path.coef[k].T, theirs.dual_coef_, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPT)
def test_solves_with_one_shift_for_each_column(intercept: bool) -> None:
    X, Y = problem()
    w, _ = weights(30, "precisions")
    system = found(X, Y, w, False, intercept)
    B, R, lam = system.problem.dense()[0], system.problem.targets, np.array([0.3, 7.0])
    expected = np.column_stack([np.linalg.solve(B + a * np.eye(30), R[:, j]) for j, a in enumerate(lam)])
    assert_allclose(system.solve(R, lam), expected, rtol=1e-9, atol=1e-12)
    assert_allclose(system.beta(lam), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["none", "counts", "precisions"])
@pytest.mark.parametrize("intercept", INTERCEPT)
def test_the_dense_system_is_the_operator(kind: str, intercept: bool) -> None:
    X, Y = problem(12)
    w, counts = weights(12, kind)
    task = KernelProblem(Gaussian(0.4), X, Y, w, np.ones(2), intercept, counts)
    B = FeatureCentred(KernelOperator(Gaussian(0.4), X), w, centre=intercept)
    ours, means, _ = task.dense()
    assert_allclose(ours, B.to_dense(), atol=1e-14)
    assert_allclose(means, B.means if intercept else np.zeros(12), atol=1e-14)
    assert ours.flags.f_contiguous


def test_a_callable_and_a_matrix_give_the_same_as_a_kernel() -> None:
    X, Y = problem(15)
    K = Gaussian(0.4)(X)
    path = found(X, Y, None, True, True).path(ALPHAS)
    called = found(X, Y, None, True, True, Callable(lambda x, z: np.exp(-0.4 * np.sum((x - z) ** 2)))).path(ALPHAS)
    given = found(K, Y, None, True, True, Precomputed()).path(ALPHAS)
    assert_allclose(called.loo, path.loo, rtol=1e-9)
    assert_allclose(given.loo, path.loo, rtol=1e-9)
    assert_allclose(K, Gaussian(0.4)(X), atol=0)  # the matrix handed in is not overwritten


def test_many_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = problem(25)
    whole = found(X, Y, None, True, True).path(ALPHAS)
    monkeypatch.setattr(_kernel_problem, "BLOCK_BYTES", 2000)
    parts = found(X, Y, None, True, True).path(ALPHAS)
    assert_allclose(parts.loo, whole.loo, rtol=1e-12)
    assert_allclose(parts.coef, whole.coef, rtol=1e-9, atol=1e-12)


def test_small_alphas_keep_their_digits() -> None:
    # K ≈ I: the prediction of a row left out is the mean of the others, or 0; a difference 1 − H_ii would be rounding
    X, y = 100.0 * np.arange(8.0)[:, None], np.array([[3.0, 1, 4, 1, 5, 9, 2, 6]]).T
    plain = found(X, y, None, True, False).errors(np.array([1e-14]))
    assert_allclose(plain, y, rtol=1e-12)
    centred = found(X, y, None, True, True).errors(np.array([1e-14]))
    assert_allclose(centred, (y - y.mean()) * 8 / 7, rtol=1e-12)


def test_eigenvalues_of_a_rank_deficient_kernel_are_not_negative() -> None:
    X, Y = problem(40, 2)
    system = found(X, Y, None, True, True, Linear())
    assert system.low == 0.0
    assert (system.filter.squares >= 0).all()
    assert_allclose(system.filter.dof(np.array([1e-6])), 3.0, rtol=1e-6)  # two features and the intercept
    assert system.usable(np.array([1e-12])).all()


def test_an_indefinite_matrix_is_solved_where_alpha_lifts_it() -> None:
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    K = Q @ np.diag([5, 4, 3, 2, 1, 0.5, 0.2, 0.1, 0, -0.5]) @ Q.T
    K, Y = (K + K.T) / 2, rng.normal(size=(10, 1))
    system = found(K, Y, None, True, False, Precomputed())
    assert_allclose(system.low, -0.5, rtol=1e-12)
    path = system.path(np.array([0.1, 0.5, 2.0]))
    assert np.isnan(path.loo[:2]).all()
    assert_allclose(path.coef[2, 0], np.linalg.solve(K + 2 * np.eye(10), Y[:, 0]), rtol=1e-10)
    assert_allclose(path.loo[2, 0], np.mean(naive_errors(K, Y, np.ones(10), False, 2.0, False) ** 2), rtol=1e-10)


def test_one_row_cannot_be_left_out_of_a_mean() -> None:
    system = found(np.ones((1, 2)), np.array([[3.0]]), None, True, True)
    assert np.isinf(system.errors(np.ones(1))).all()
    assert_allclose(system.path(np.ones(1)).intercept, 3.0)


def test_automatic_alphas_span_the_spectrum() -> None:
    alphas = automatic_alphas(8.0)
    assert_allclose(alphas[[0, -1]], [8e-10, 8.0])
    assert_allclose(np.diff(np.log(alphas)), np.log(1e10) / 29)
    assert automatic_alphas(0.0).min() > 0


def test_memory_is_counted_with_work_space() -> None:
    assert eigen_bytes(1000) >= 3 * 8 * 1000**2


@given(st.integers(2, 12), st.integers(0, 10**6), st.booleans(), st.floats(-4, 4))
def test_residuals_shrink_and_errors_do_not(n: int, seed: int, intercept: bool, log: float) -> None:
    X, Y = problem(n, seed=seed)
    system = found(X, Y, None, True, intercept)
    lam = np.full(2, 10.0**log)
    K = Gaussian(0.4)(X)
    alpha = system.problem.dual(system.beta(lam))
    residual = Y - K @ alpha - (system.problem.mean - system.means @ alpha)
    assert_allclose(residual, lam * alpha, rtol=1e-6, atol=1e-9)  # K α + λα + b = y
    assert np.all(np.abs(system.errors(lam)) >= np.abs(residual) * (1 - 1e-9))


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_centring_leaves_of_points_that_are_one_is_no_eigenvalue(value: float, weighted: bool) -> None:
    X, (_, Y) = np.full((60, 3), value), problem(60)
    w = weights(60, "precisions")[0] if weighted else None
    system = found(X, Y, w, not weighted, True, Linear())
    assert system.largest == 0.0
    assert system.low == 0.0
    alphas = automatic_alphas(system.largest)
    assert 0.1 <= alphas.min() < 1.0 < alphas.max() <= 10.0
    nudged = found(X + 1e-5 * max(1.0, value) * problem(60)[0], Y, w, not weighted, True, Linear())
    assert nudged.largest > 0.0
