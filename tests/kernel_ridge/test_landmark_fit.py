"""Landmarks: against least squares on stacked matrices, scikit-learn, refits, and exact kernel ridge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from gramian.kernel_ridge.landmark_fit import LandmarkFit, LandmarkSolver, choose_method, predict_bytes
from gramian.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, Sigmoid
from gramian.operators import KernelOperator

Array = np.ndarray[Any, np.dtype[np.float64]]


def data(n: int, p: int = 3, t: int = 2, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    F = np.column_stack([np.sin(X[:, 0]) + 2, X[:, -1] ** 2 - 1, np.tanh(X.sum(axis=1))])[:, :t]
    return X, F + 0.1 * rng.standard_normal((n, t))


def fitted(kernel: Kernel, X: Any, centres: Array, Y: Array, lam: Any, method: str = "auto", **options: Any) -> Any:
    A = KernelOperator(kernel, X, centres, dtype=np.float64, store=False)
    return LandmarkSolver(method=method, **options.pop("solver", {}))(A, kernel(centres), Y, lam, **options)


def predicted(fit: LandmarkFit, kernel: Kernel, X: Array, centres: Array) -> Array:
    return np.asarray(kernel(X, centres) @ fit.coef + fit.intercept)


def stacked(K: Array, Kmm: Array, Y: Array, lam: float, w: Array, intercept: bool) -> tuple[Array, Array]:
    """The twin: one least-squares problem [√w(K N, 1); √λ I], NᵀK_mm N = I, columns of N that sum to 0 if need be."""
    m = len(Kmm)
    N = scipy.linalg.null_space(np.ones((1, m))) if intercept else np.eye(m)
    values, V = np.linalg.eigh(N.T @ Kmm @ N)
    there = values > 1e-13 * values.max()
    N = N @ V[:, there] / np.sqrt(values[there])  # now the penalty is λ‖c‖²
    one = np.ones((len(K), 1)) if intercept else np.zeros((len(K), 0))
    top = np.sqrt(w)[:, None] * np.hstack([K @ N, one])
    bottom = np.hstack([np.sqrt(lam) * np.eye(N.shape[1]), np.zeros((N.shape[1], one.shape[1]))])
    right = np.vstack([np.sqrt(w)[:, None] * Y, np.zeros((N.shape[1], Y.shape[1]))])
    found = scipy.linalg.lstsq(np.vstack([top, bottom]), right)[0]
    b = found[-1] if intercept else np.zeros(Y.shape[1])
    return N @ found[: N.shape[1]], b


def exact(K: Array, Y: Array, lam: Array, w: Array, intercept: bool) -> tuple[Array, Array]:
    """Exact kernel ridge with weights and an unpenalised intercept, by dense solves."""
    n, s, share = len(Y), np.sqrt(w), w / w.sum()
    H = np.eye(n) - np.outer(np.ones(n), share) if intercept else np.eye(n)
    middle = share @ Y if intercept else np.zeros(Y.shape[1])
    B, right = s[:, None] * (H @ K @ H.T) * s, s[:, None] * (Y - middle)
    beta = [np.linalg.solve(B + lam[j] * np.eye(n), right[:, j]) for j in range(len(lam))]
    alpha = H.T @ (s[:, None] * np.column_stack(beta))
    return alpha, middle - share @ K @ alpha if intercept else middle


@pytest.mark.parametrize("method", ["direct", "cg"])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_all_rows_as_centres_it_is_kernel_ridge(method: str, weighted: bool) -> None:
    X, Y = data(200)
    new, _ = data(40, seed=9)
    w = np.random.default_rng(1).uniform(0.2, 3, 200) if weighted else None
    peer = KernelRidge(alpha=[0.1, 0.5], kernel="rbf", gamma=0.5).fit(X, Y, sample_weight=w)
    kernel = Gaussian(gamma=0.5)
    fit = fitted(kernel, X, X, Y, [0.1, 0.5], method, weights=w, indices=np.arange(200))
    np.testing.assert_allclose(predicted(fit, kernel, new, X), peer.predict(new), rtol=0, atol=1e-8)
    assert fit.certificate.converged


@pytest.mark.parametrize("method", ["direct", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_kernel_with_centres_that_span_is_ridge(method: str, intercept: bool, weighted: bool) -> None:
    X, Y = data(150, p=4)
    w = np.random.default_rng(1).uniform(0.2, 3, 150) if weighted else None
    peer = Ridge(alpha=np.array([2.0, 0.3]), fit_intercept=intercept, tol=1e-12).fit(X, Y, sample_weight=w)
    rows = np.arange(0, 150, 10)
    fit = fitted(
        Linear(), X, X[rows], Y, [2.0, 0.3], method, weights=w, intercept=intercept, indices=rows,
        diagonal=Linear().diagonal(X), solver={"tol": 1e-10},
    )  # fmt: skip
    np.testing.assert_allclose(fit.coef.T @ X[rows], peer.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fit.intercept, peer.intercept_, rtol=0, atol=1e-9)
    assert fit.rank == 4
    assert any("cut" in note for note in fit.certificate.notes)  # 15 centres span 4 dimensions
    if method == "direct":  # ridge is exact kernel ridge here, and the bound sees that nothing is left out
        assert np.max(fit.certificate.error_bounds) < 1e-3


@pytest.mark.parametrize("method", ["direct", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.3), Matern(1.5), Polynomial(degree=3, gamma=0.2)], ids=str)
def test_few_centres_minimise_the_objective(method: str, intercept: bool, kernel: Kernel) -> None:
    X, Y = data(300)
    w = np.random.default_rng(2).uniform(0, 2, 300)
    w[5:20] = 0.0
    rows, lam = np.arange(20, 60), [0.3, 2.0]
    fit = fitted(kernel, X, X[rows], Y, lam, method, weights=w, intercept=intercept, solver={"tol": 1e-10})
    K, Kmm = kernel(X, X[rows]), kernel(X[rows])
    for j in range(2):
        a, b = stacked(K, Kmm, Y[:, [j]], lam[j], w, intercept)
        truth = K @ a[:, 0] + b
        np.testing.assert_allclose(predicted(fit, kernel, X, X[rows])[:, j], truth, rtol=0, atol=1e-7)
        least = w @ (Y[:, j] - truth) ** 2 + lam[j] * a[:, 0] @ Kmm @ a[:, 0]
        assert fit.objective[j] == pytest.approx(least, rel=1e-8)
    if intercept:
        np.testing.assert_allclose(fit.coef.sum(axis=0), 0.0, atol=1e-12 * np.abs(fit.coef).sum())


def test_a_bound_needs_rows_or_lengths() -> None:
    X, Y = data(100)
    fit = fitted(Gaussian(gamma=1.0), X, X[:10], Y, 1.0, "cg", diagonal=1.0)
    assert fit.certificate.error_bounds is None


KERNELS = [Gaussian(gamma=0.1), Gaussian(gamma=2.0), Laplacian(0.5), Polynomial(degree=2, gamma=1.0), Linear()]


@settings(max_examples=200)
@given(
    kernel=st.sampled_from(KERNELS),
    n=st.integers(2, 40),
    share=st.floats(0, 1),
    power=st.floats(-5, 2),
    weighted=st.booleans(),
    intercept=st.booleans(),
    method=st.sampled_from(["direct", "cg"]),
    known=st.sampled_from(["indices", "diagonal", "both"]),
    seed=st.integers(0, 1000),
)
def test_the_bound_against_exact_kernel_ridge_is_never_violated(
    kernel: Kernel,
    n: int,
    share: float,
    power: float,
    weighted: bool,
    intercept: bool,
    method: str,
    known: str,
    seed: int,
) -> None:
    X, Y = data(n, seed=seed)
    rng = np.random.default_rng(seed + 1)
    new = np.vstack([X[:3], 2 * rng.standard_normal((20, 3))])
    w = rng.uniform(0.1, 3, n) if weighted else np.ones(n)
    rows = rng.permutation(n)[: max(1, round(share * n))]
    lam, own = np.array([10.0**power, 3 * 10.0**power]), kernel.diagonal(X)
    options: dict[str, Any] = {"indices": rows, "diagonal": own}
    options = options if known == "both" else {known: options[known]}
    fit = fitted(kernel, X, X[rows], Y, lam, method, weights=w, intercept=intercept, **options)
    bounds = fit.certificate.error_bounds
    if bounds is None:  # rows are not whitened, so that only the padded bound could be had
        assert known == "diagonal"
        assert method == "cg"
        assert n > 4 * len(rows)
        return
    alpha, b = exact(kernel(X), Y, lam, w, intercept)
    truth = kernel(new, X) @ alpha + b
    bar = w / w.sum()
    square = kernel.diagonal(new) - 2 * kernel(new, X) @ bar + bar @ kernel(X) @ bar
    lengths = np.sqrt(np.maximum(square, 0) if intercept else kernel.diagonal(new))
    slip = 1e-13 * (1 + np.abs(kernel(new, X)) @ np.abs(alpha) + np.abs(kernel(new, X[rows])) @ np.abs(fit.coef))
    slip = slip * (1 + 1 / lam)  # of the exact solve itself, whose condition is up to ‖K‖/λ
    assert np.all(np.abs(predicted(fit, kernel, new, X[rows]) - truth) <= lengths[:, None] * bounds + slip)
    if "diagonal" in options:  # what a model can say itself of ‖φ(x) − φ̄‖ is no less
        assert np.all(fit.lengths(kernel(new, X[rows]), kernel.diagonal(new)) >= lengths * (1 - 1e-9) - 1e-7)


def test_the_bound_sharpens_as_the_centres_fill_the_space() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    Y, kernel = np.sin(3 * X), Gaussian(gamma=2.0)
    alpha, _ = exact(kernel(X), Y, np.array([1e-2]), np.ones(400), False)
    new = np.linspace(-1, 1, 50)[:, None]
    found = []
    for m in (3, 6, 9, 12, 15):
        rows = np.argsort(X[:, 0])[np.linspace(0, 399, m).astype(int)]
        fit = fitted(kernel, X, X[rows], Y, 1e-2, indices=rows, diagonal=1.0)
        error = np.max(np.abs(predicted(fit, kernel, new, X[rows]) - kernel(new, X) @ alpha))
        found.append((error, float(fit.certificate.error_bounds[0])))
        assert error <= found[-1][1]
    assert found[-1][1] < 1e-3 < 0.1 < found[0][1]
    assert "leave out" in fit.certificate.notes[-1]


def with_many_digits(X: Array, rows: Array, y: Array, gamma: float, lam: float) -> Array:
    """Predictions of (K_mnK_nm + λK_mm)a = K_mn y at all rows, with 80 digits of the very numbers in X."""
    with mpmath.workdps(80):
        P = [[mpmath.mpf(float(v)) for v in x] for x in X]
        far = [
            [mpmath.fsum((a - b) ** 2 for a, b in zip(P[i], P[j], strict=True)) for j in rows] for i in range(len(P))
        ]
        K = mpmath.matrix([[mpmath.exp(-mpmath.mpf(gamma) * d) for d in line] for line in far])
        Kmm = mpmath.matrix([[K[int(i), j] for j in range(len(rows))] for i in rows])
        a = mpmath.lu_solve(K.T * K + mpmath.mpf(lam) * Kmm, K.T * mpmath.matrix(y.tolist()))
        return np.array([float(v) for v in K * a])


@pytest.mark.parametrize(("p", "gamma", "rank"), [(1, 2.0, 18), (2, 0.5, 30)])
def test_digits_where_the_centres_nearly_depend_on_each_other(p: int, gamma: float, rank: int) -> None:
    """Against 80 digits; K_mnK_nm first and L⁻¹ afterwards, for half the operations, would lose most of them."""
    X = np.random.default_rng(0).uniform(-1, 1, (80, p))
    Y, kernel, rows, lam = np.sin(3 * X[:, :1]), Gaussian(gamma=gamma), np.arange(30), 1e-5
    fit = fitted(kernel, X, X[rows], Y, lam)
    truth = with_many_digits(X, rows, Y[:, 0], gamma, lam)
    K, basis = kernel(X, X[rows]), fit.basis
    half = basis.adjoint(basis.adjoint(K.T @ K).T)
    cheap = basis.coefficients(np.linalg.solve(half + lam * np.eye(basis.rank), basis.adjoint(K.T @ Y)))
    ours, theirs = (float(np.max(np.abs((K @ a)[:, 0] - truth))) for a in (fit.coef, cheap))
    assert fit.rank <= rank
    assert ours < 1e-7
    assert theirs > 100 * ours


def naive_left_out(K: Array, Kmm: Array, Y: Array, lam: float, w: Array, counts: bool, intercept: bool) -> float:
    """Refit without each row, or without one of its copies."""
    errors = []
    for i in np.flatnonzero(w):
        less = w.copy()
        less[i] = w[i] - 1 if counts else 0.0
        a, b = stacked(K, Kmm, Y, lam, less, intercept)
        errors.append(w[i] * (Y[i, 0] - K[i] @ a[:, 0] - b[0]) ** 2)
    return float(np.sum(errors) / (w.sum() if counts else len(errors)))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["none", "counts", "precisions"])
def test_leave_one_out_is_refitting(intercept: bool, kind: str) -> None:
    X, Y = data(40)
    rng = np.random.default_rng(3)
    w = {"none": np.ones(40), "counts": rng.integers(0, 4, 40) * 1.0, "precisions": rng.uniform(0.3, 2, 40)}[kind]
    rows, kernel, alphas = np.flatnonzero(w)[:12], Gaussian(gamma=0.3), np.array([0.01, 1.0, 30.0])
    A = KernelOperator(kernel, X, X[rows])
    path = LandmarkSolver().decompose(A, kernel(X[rows]), Y, weights=w, intercept=intercept).path(alphas)
    K, Kmm = kernel(X, X[rows]), kernel(X[rows])
    for i, lam in enumerate(alphas):
        for j in range(2):
            truth = naive_left_out(K, Kmm, Y[:, [j]], lam, w, kind != "precisions", intercept)
            assert path.loo[i, j] == pytest.approx(truth, rel=1e-8)
            a, b = stacked(K, Kmm, Y[:, [j]], lam, w, intercept)
            np.testing.assert_allclose(K @ path.coef[i, j] + path.intercept[i, j], K @ a[:, 0] + b, atol=1e-9)
    assert path.coef.shape == (3, 2, 12)


def test_degrees_of_freedom_gcv_and_likelihood_follow_from_the_hat_matrix_and_the_density() -> None:
    X, Y = data(60, t=1)
    rows, kernel, lam = np.arange(10), Gaussian(gamma=0.3), 0.7
    K, Kmm = kernel(X, X[rows]), kernel(X[rows])
    path = LandmarkSolver().decompose(KernelOperator(kernel, X, X[rows]), Kmm, Y).path([lam])
    low = K @ np.linalg.solve(Kmm, K.T)
    hat = low @ np.linalg.inv(low + lam * np.eye(60))
    rss = float(np.sum((Y - hat @ Y) ** 2))
    assert path.dof[0] == pytest.approx(np.trace(hat), rel=1e-9)
    assert path.gcv[0, 0] == pytest.approx((rss / 60) / (1 - np.trace(hat) / 60) ** 2, rel=1e-9)
    cov = np.eye(60) + low / lam
    s = float(Y[:, 0] @ np.linalg.solve(cov, Y[:, 0])) / 60
    density = scipy.stats.multivariate_normal(np.zeros(60), s * cov).logpdf(Y[:, 0])
    assert path.log_marginal_likelihood[0, 0] == pytest.approx(density, rel=1e-9)


@pytest.mark.parametrize("method", ["direct", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
def test_counts_are_repetition(method: str, intercept: bool) -> None:
    X, Y = data(80)
    w = np.random.default_rng(4).integers(0, 4, 80)
    rows, kernel = np.flatnonzero(w)[:15], Gaussian(gamma=0.3)
    tight = {"solver": {"tol": 1e-11}, "intercept": intercept}
    once = fitted(kernel, X, X[rows], Y, 0.5, method, weights=w, indices=rows, **tight)
    twice = fitted(kernel, np.repeat(X, w, axis=0), X[rows], np.repeat(Y, w, axis=0), 0.5, method, **tight)
    np.testing.assert_allclose(once.coef, twice.coef, rtol=0, atol=1e-7)
    np.testing.assert_allclose(once.objective, twice.objective, rtol=1e-10)


def test_conjugate_gradients_agree_with_the_decomposition_and_report() -> None:
    X, Y = data(3000, t=3)
    kernel, rows, seen = Gaussian(gamma=0.1), np.arange(120), []
    lam = np.array([1e-2, 1.0, 1e-2])
    how = {"report": lambda i, residual: seen.append((i, residual))}
    cg = fitted(kernel, X, X[rows], Y, lam, "cg", intercept=True, indices=rows, solver=how)
    direct = fitted(kernel, X, X[rows], Y, lam, "direct", intercept=True, indices=rows)
    np.testing.assert_allclose(*(predicted(fit, kernel, X, X[rows]) for fit in (cg, direct)), rtol=0, atol=1e-6)
    assert [i for i, _ in seen] == list(range(1, cg.certificate.iterations + 1))
    assert cg.certificate.iterations < 60  # without the preconditioner it takes thousands
    assert seen[-1][1] <= 1e-8
    np.testing.assert_allclose(cg.certificate.error_bounds, direct.certificate.error_bounds, rtol=1e-3)


def test_iterations_that_stop_short_are_told() -> None:
    X, Y = data(500)
    with pytest.warns(ConvergenceWarning, match="tolerance 1.0e-08"):
        fit = fitted(Gaussian(gamma=1.0), X, X[:50], Y, 1e-3, "cg", solver={"max_iterations": 3})
    assert fit.certificate.iterations == 3
    assert not fit.certificate.converged


@pytest.mark.parametrize("method", ["direct", "cg"])
def test_a_file_larger_than_working_memory_gives_the_same(method: str, tmp_path: Path) -> None:
    X, Y = data(30_000, p=6)
    path = tmp_path / "x.npy"
    np.save(path, X)
    assert path.stat().st_size > 2**20
    kernel, rows = Gaussian(gamma=0.1), np.arange(0, 30_000, 1000)
    options: dict[str, Any] = {"intercept": True, "indices": rows, "diagonal": 1.0, "solver": {"tol": 1e-10}}
    memory = fitted(kernel, X, X[rows], Y, 0.5, method, **dict(options))
    with sklearn.config_context(working_memory=1):
        mapped = np.load(path, mmap_mode="r")
        file = fitted(kernel, mapped, X[rows], Y, 0.5, method, **dict(options))
        A = KernelOperator(kernel, path, X[rows])
        one = LandmarkSolver().decompose(A, kernel(X[rows]), Y, intercept=True).path([0.5])
    np.testing.assert_allclose(file.coef, memory.coef, rtol=0, atol=1e-6 * np.abs(memory.coef).max())
    np.testing.assert_allclose(file.objective, memory.objective, rtol=1e-10)
    np.testing.assert_allclose(file.certificate.error_bounds, memory.certificate.error_bounds, rtol=1e-6)
    np.testing.assert_allclose(one.coef[0].T, memory.coef, rtol=0, atol=1e-6 * np.abs(memory.coef).max())
    assert A.passes == 2  # the decomposition, and the leave-one-out errors
    assert file.certificate.passes == (2 if method == "direct" else file.certificate.iterations + 2)


@pytest.mark.parametrize("method", ["direct", "cg"])
def test_nothing_to_fit(method: str) -> None:
    X, _ = data(50)
    Y = np.column_stack([np.full(50, 1e6 + 0.1), np.zeros(50)])
    fit = fitted(Gaussian(gamma=0.3), X, X[:10], Y, 1.0, method, intercept=True)
    np.testing.assert_array_equal(fit.coef, 0.0)
    np.testing.assert_allclose(fit.intercept, [1e6 + 0.1, 0.0], rtol=1e-15)
    assert fit.certificate.converged
    same = fitted(Linear(), np.ones((50, 2)), np.ones((3, 2)), X[:, :1], 1.0, method, intercept=True)
    assert same.rank == 0  # all points are one, so that only the mean can be fitted
    assert same.intercept[0] == pytest.approx(X[:, 0].mean())


def test_without_a_penalty_it_is_least_squares() -> None:
    X, Y = data(100)
    kernel, rows = Polynomial(degree=2, gamma=1.0), np.arange(30)
    fit = fitted(kernel, X, X[rows], Y, 0.0, indices=rows)
    F = np.column_stack([np.ones(100), X, X**2, X[:, [0]] * X[:, [1]], X[:, [0]] * X[:, [2]], X[:, [1]] * X[:, [2]]])
    truth = F @ np.linalg.lstsq(F, Y, rcond=None)[0]
    np.testing.assert_allclose(predicted(fit, kernel, X, X[rows]), truth, atol=1e-9)
    assert np.all(np.isinf(fit.certificate.error_bounds))  # λ = 0: nothing is bounded


def test_the_choice_of_method_is_by_operations() -> None:
    assert choose_method(10**6, 500, 1)[0] == "direct"
    assert choose_method(10**6, 8000, 1)[0] == "cg"
    assert [choose_method(10**6, 5000, t)[0] for t in (1, 50)] == ["cg", "direct"]  # targets make iterations dearer
    way, why = choose_method(10**6, 8000, 1, "direct")
    assert (way, why) == ("direct", "method='direct'")
    assert predict_bytes(1000, "cg") < predict_bytes(1000, "direct")
    with pytest.raises(ValueError, match="method"):
        choose_method(10, 5, 1, "best")


def test_what_cannot_be_is_refused() -> None:
    X, Y = data(30)
    kernel, rows = Gaussian(gamma=0.3), np.arange(5)
    A, Kmm = KernelOperator(kernel, X, X[rows]), kernel(X[rows])
    narrow = KernelOperator(kernel, X, X[rows], dtype=np.float32)
    w = np.ones(30)
    w[2] = 0.0
    solve = LandmarkSolver()
    for match, call in [
        ("float32.*needs float64", lambda: solve(narrow, Kmm, Y, 1.0)),
        ("Kmm has shape", lambda: solve(A, Kmm[:4], Y, 1.0)),
        ("Y has shape", lambda: solve(A, Kmm, Y[:7], 1.0)),
        ("shift", lambda: solve(A, Kmm, Y, [1.0, 2.0, 3.0])),
        ("shift", lambda: solve(A, Kmm, Y, -1.0)),
        ("weights must be finite", lambda: solve(A, Kmm, Y, 1.0, weights=-w)),
        ("5 row numbers", lambda: solve(A, Kmm, Y, 1.0, indices=rows + 28)),
        ("Row 2 .* weight 0", lambda: solve(A, Kmm, Y, 1.0, weights=w, indices=rows)),
        ("not positive semidefinite", lambda: solve(A, np.eye(5) - 0.9, Y, 1.0)),
        ("diagonal that is not negative", lambda: solve(A, -Kmm, Y, 1.0)),
        ("give diagonal", lambda: solve(A, Kmm, Y, 1.0, intercept=True).lengths(Kmm, np.ones(5))),
    ]:
        with pytest.raises(ValueError, match=match):
            call()


def test_a_kernel_that_is_no_inner_product_is_refused() -> None:
    X, Y = data(60)
    kernel = Sigmoid(gamma=1.0, coef0=-1.0)
    with pytest.raises(ValueError, match=r"not positive semidefinite|not negative"):
        fitted(kernel, X, X[:20], Y, 1.0)


def test_representation_says_what_it_is() -> None:
    X, Y = data(50)
    fit = fitted(Gaussian(gamma=0.3), X, X[:10], Y, 1.0, reason="asked for")
    assert repr(fit).startswith("LandmarkFit(10 landmarks of rank 10, 2 targets")
    assert "asked for; 50 rows and 10 landmarks take" in fit.certificate.reason
    assert fit.certificate.error_bounds is None
    assert "no bound" in fit.certificate.notes[-1]


@pytest.mark.parametrize("intercept", [False, True])
def test_copies_of_weighted_rows_are_left_out_one_at_a_time(intercept: bool) -> None:
    """A weight of copies · precision is the row with its precision, repeated."""
    X, Y = data(50)
    rng = np.random.default_rng(4)
    copies, precision = rng.integers(0, 4, 50), rng.uniform(0.4, 2.5, 50)
    rows, kernel, alphas = np.flatnonzero(copies)[:12], Gaussian(gamma=0.3), np.array([0.01, 1.0, 30.0])
    often, Kmm = np.repeat(np.arange(50), copies), kernel(X[rows])
    both = {"weights": copies * precision, "copies": copies, "intercept": intercept}
    once = LandmarkSolver().decompose(KernelOperator(kernel, X, X[rows]), Kmm, Y, **both)
    long = {"weights": precision[often], "counts": False, "intercept": intercept}
    twice = LandmarkSolver().decompose(KernelOperator(kernel, X[often], X[rows]), Kmm, Y[often], **long)
    ours, theirs = once.path(alphas), twice.path(alphas)
    for name in ("loo", "gcv", "log_marginal_likelihood", "noise_variance", "dof", "coef"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-7, err_msg=name)
    errors, repeated = (dict(_each(system.leave_one_out_errors(alphas))) for system in (once, twice))
    assert sorted(errors) == np.flatnonzero(copies).tolist()
    for k, i in enumerate(often):
        np.testing.assert_allclose(errors[i], repeated[k], rtol=1e-7, atol=1e-10)
    with pytest.raises(ValueError, match="50 numbers"):
        LandmarkSolver().decompose(KernelOperator(kernel, X, X[:5]), kernel(X[:5]), Y, copies=np.zeros(50))


def _each(blocks: Any) -> Any:
    return ((int(i), e) for rows, errors in blocks for i, e in zip(rows, errors, strict=True))


def test_left_out_errors_make_up_the_score() -> None:
    X, Y = data(60)
    kernel, alphas = Gaussian(gamma=0.3), np.array([0.1, 3.0])
    system = LandmarkSolver().decompose(KernelOperator(kernel, X, X[:9]), kernel(X[:9]), 1e3 * Y, intercept=True)
    errors = np.array([e for _, e in sorted(dict(_each(system.leave_one_out_errors(alphas))).items())])
    np.testing.assert_allclose(np.mean(errors**2, axis=0), system.path(alphas).loo, rtol=1e-12)


@pytest.mark.parametrize("method", ["direct", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
def test_tiny_and_huge_targets_are_fitted_as_others_are(method: str, intercept: bool) -> None:
    X, Y = data(80)
    kernel, rows = Gaussian(gamma=0.3), np.arange(20)
    options: dict[str, Any] = {"intercept": intercept, "indices": rows, "diagonal": 1.0}
    plain = fitted(kernel, X, X[rows], Y, 0.5, method, **options)
    for power in (-1000, -565, 664, 1010):  # of two: 1e-301, 1e-170, 1e200 and 1e304
        scale = np.array([2.0**power, 1.0])  # the other target stays as it is
        fit = fitted(kernel, X, X[rows], Y * scale, 0.5, method, **options)
        np.testing.assert_allclose(fit.coef / scale, plain.coef, rtol=1e-12)
        np.testing.assert_allclose(fit.intercept / scale, plain.intercept, rtol=1e-12)
        np.testing.assert_allclose(fit.certificate.error_bounds / scale, plain.certificate.error_bounds, rtol=1e-9)
        np.testing.assert_array_equal(fit.objective[1], plain.objective[1])
        assert fit.certificate.converged


@pytest.mark.parametrize("power", [-90, 90])
def test_scores_are_in_the_units_of_the_targets(power: int) -> None:
    X, Y = data(60)
    kernel, lam, scale = Gaussian(gamma=0.3), np.array([0.1, 3.0]), np.array([2.0**power, 1.0])
    A = KernelOperator(kernel, X, X[:9])
    plain, scaled = (LandmarkSolver().decompose(A, kernel(X[:9]), T, intercept=True).path(lam) for T in (Y, Y * scale))
    for name in ("loo", "gcv", "noise_variance"):
        np.testing.assert_allclose(getattr(scaled, name) / scale**2, getattr(plain, name), rtol=1e-10)
    np.testing.assert_allclose(scaled.coef / scale[:, None], plain.coef, rtol=1e-10)
    shift = scaled.log_marginal_likelihood - plain.log_marginal_likelihood
    np.testing.assert_allclose(shift, np.broadcast_to(-59 * np.log(scale), shift.shape), atol=1e-8)


@pytest.mark.parametrize("X", [np.ones((30, 2)), np.full((30, 3), 0.1), np.zeros((30, 2)), np.ones((1, 2))], ids=str)
def test_every_penalty_gives_the_mean_where_all_points_are_one(X: Array) -> None:
    Y = np.random.default_rng(0).standard_normal((len(X), 2))
    system = LandmarkSolver().decompose(KernelOperator(Linear(), X, X), Linear()(X), Y, intercept=True)
    path = system.path([0.1, 10.0])
    np.testing.assert_array_equal(path.coef, 0.0)
    np.testing.assert_allclose(path.intercept, np.broadcast_to(Y.mean(axis=0), (2, 2)), rtol=1e-13)
    n = len(X)
    wanted = np.inf if n == 1 else np.mean((Y - Y.mean(axis=0)) ** 2, axis=0) * (n / (n - 1)) ** 2
    np.testing.assert_allclose(path.loo, np.broadcast_to(wanted, (2, 2)), rtol=1e-12)
