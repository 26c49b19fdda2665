"""Solvers with their arrays on a device, by torch on the CPU: LAPACK, scikit-learn and NumPy's own way as oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from gramian.compute.devices import is_numpy, like, to_numpy
from gramian.kernel_ridge import landmark_fit as passes
from gramian.kernel_ridge.landmark_fit import LandmarkSolver, choose_method, is_on_gpu, predict_bytes, whiten
from gramian.kernels import Gaussian, Linear, Matern, Polynomial
from gramian.linear import preconditioners
from gramian.linear import preconditioners as _ranks
from gramian.linear import systems as _resident
from gramian.linear.cg import ConjugateGradients
from gramian.linear.preconditioners import (
    GPU,
    Costs,
    Nystrom,
    costs_of,
    factor_bytes,
    first_rank,
    largest_rank,
    pays_to_double,
    scale_factor,
)
from gramian.linear.systems import cholesky, put, take, triangular
from gramian.operators import Capability, Data, FeatureCentred, Operator, kernel_operator
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky

PLACES = ["numpy", "dense tensor", "kernel on torch"]
KERNEL = Gaussian(0.3)


def points(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def operator(place: str, torch: Any, X: np.ndarray, Z: np.ndarray | None = None, dtype: Any = np.float64) -> Any:
    """K(X, Z) in NumPy, as a dense matrix of torch, or evaluated by torch."""
    if place != "dense tensor":
        device = None if place == "numpy" else torch.device("cpu")
        return kernel_operator(KERNEL, X, Z, dtype=dtype, device=device)
    return Dense(torch.asarray(KERNEL(X, X if Z is None else Z).astype(dtype)))


class Dense(Data):
    """A dense matrix that also gives its columns and its diagonal."""

    capabilities = Capability.COLUMNS | Capability.DIAGONAL

    def columns(self, indices: Any, rows: Any = None) -> Any:
        K = self.source.values  # type: ignore[attr-defined]
        return (K if rows is None else K[rows])[:, indices]

    def diagonal(self) -> Any:
        return self.source.values.diagonal()  # type: ignore[attr-defined]


class Factors:
    """Pivoted factors of K, weighted and centred, each continuing the last."""

    def __init__(self, K: Any, w: Any, centre: bool) -> None:
        self.K, self.w, self.centre, self.asked = K, w, centre, []  # type: ignore[var-annotated]
        self.found: PivotedCholesky | None = None

    def __call__(self, rank: int) -> Any:
        self.asked.append(rank)
        self.found = rp_cholesky(self.K.diagonal(), self.K.columns, min(rank, self.K.shape[0]), start=self.found)
        return scale_factor(self.found.factor, self.w, self.centre)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("twinned", [False, True])
def test_gradients_with_a_growing_factor_solve_the_system(
    place: str, weighted: bool, twinned: bool, torch: Any
) -> None:
    X, B, lam = points(200), points(200, 4, 5), np.array([3.0, 1e-2, 1e-3, 1e-2])
    B[:, 3] = 0.0
    w = np.random.default_rng(1).uniform(0.2, 3.0, 200) if weighted else None
    K = operator(place, torch, X)
    factors = Factors(K, w, True)
    twin = FeatureCentred(operator(place, torch, X, dtype=np.float32), w) if twinned else None
    found = ConjugateGradients(1e-8)(FeatureCentred(K, w), B, lam, grow=factors, twin=twin)
    A = FeatureCentred(Data(KERNEL(X)), w) @ np.eye(200)
    x, c = to_numpy(found.values, float), found.certificate
    assert is_numpy(found.values) == (place == "numpy")
    residuals = np.linalg.norm(B - A @ x - lam * x, axis=0)[:3] / np.linalg.norm(B, axis=0)[:3]
    assert c.converged
    assert_allclose(residuals, c.residuals[:3], atol=1e-12)
    assert not np.any(x[:, 3])
    for j in range(3):
        want = np.linalg.solve(A + lam[j] * np.eye(200), B[:, j])
        assert np.linalg.norm(x[:, j] - want) <= 1.1e-8 * np.linalg.norm(B[:, j]) / lam[j]
    assert factors.asked[0] == first_rank(200)
    assert f"preconditioner of rank {min(factors.asked[-1], 199)}" in c.notes[0]
    assert K.precision in c.precision
    assert any("in float64" in note for note in c.notes) >= twinned


@pytest.mark.parametrize("place", PLACES[1:])
def test_gradients_on_a_device_take_the_steps_of_numpy(place: str, torch: Any) -> None:
    X, b = points(250), points(250, 1, 3)
    here, there = (ConjugateGradients(1e-9)(operator(p, torch, X), b, 0.05) for p in ("numpy", place))
    assert abs(here.certificate.iterations / there.certificate.iterations - 1) < 0.05  # other rounding
    assert_allclose(to_numpy(there.values, float), here.values, atol=1e-8 * np.linalg.norm(b) / 0.05)
    again = ConjugateGradients(1e-6)(operator(place, torch, X), b, 0.05, start=there.values)
    assert (again.certificate.iterations, again.certificate.passes) == (0, 1)
    bad = ConjugateGradients(1e-9)(
        operator(place, torch, X), b[:, 0], 0.05, start=1e9 * to_numpy(there.values, float)[:, 0]
    )
    assert bad.values.shape == (250,)
    assert abs(bad.certificate.iterations / there.certificate.iterations - 1) < 0.05
    with pytest.raises(ValueError, match=r"\(250, 1\)"):
        ConjugateGradients()(operator(place, torch, X), b, 0.05, start=np.zeros((250, 2)))


@pytest.mark.parametrize("kind", ["another matrix", "indefinite"])
def test_a_twin_that_is_none_is_given_up_on_a_device(kind: str, torch: Any) -> None:
    K = KERNEL(points(80)) + 0.1 * np.eye(80)
    twin = {"another matrix": KERNEL(points(80, seed=1)), "indefinite": -K}[kind].astype(np.float32)
    found = ConjugateGradients(1e-9)(Data(torch.asarray(K)), points(80, 2, 2), 0.1, twin=Data(torch.asarray(twin)))
    assert found.certificate.converged
    assert_allclose(to_numpy(found.values, float), np.linalg.solve(K + 0.1 * np.eye(80), points(80, 2, 2)), atol=1e-6)
    assert "float32 was not enough and float64 took over" in found.certificate.notes[-1]


def test_what_goes_wrong_on_a_device_is_said_as_elsewhere(torch: Any) -> None:
    Q = np.linalg.qr(points(50, 50))[0]
    A = Data(torch.asarray((Q * np.append(np.linspace(1, 5, 49), -2.0)) @ Q.T))
    with pytest.raises(np.linalg.LinAlgError, match="negative curvature"):
        ConjugateGradients()(A, points(50, 1), 0.5)
    hard = Data(torch.asarray((Q * np.geomspace(1000, 1e-4, 50)) @ Q.T))
    with pytest.warns(ConvergenceWarning, match="max_iterations=5"):
        found = ConjugateGradients(1e-9, max_iterations=5)(hard, points(50, 2), 1e-3)
    assert np.all(found.certificate.residuals <= 1.0)


def test_vectors_stay_where_there_is_room_for_them(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    K = KERNEL(points(60))
    A, B = Data(torch.asarray(K)), points(60, 2, 1)
    seen: list[type] = []

    def watched(R: Any, columns: Any) -> Any:
        seen.append(type(R))
        return R

    inside = ConjugateGradients(1e-9)(A, B, 0.5, preconditioner=watched)
    assert set(seen) == {torch.Tensor}
    monkeypatch.setattr(_resident, "ROOMS", 1e-9)  # no room at all
    seen.clear()
    outside = ConjugateGradients(1e-9)(A, B, 0.5, preconditioner=watched)
    assert set(seen) == {np.ndarray}
    assert isinstance(outside.values, torch.Tensor)
    want = np.linalg.solve(K + 0.5 * np.eye(60), B)
    for found in (inside, outside):
        assert_allclose(found.values.numpy(), want, atol=1e-7)


@given(n=st.integers(1, 40), r=st.integers(1, 12), seed=st.integers(0, 200), t=st.integers(1, 4))
def test_the_preconditioner_is_the_inverse_wherever_factor_and_vectors_are(n: int, r: int, seed: int, t: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")
    rng = np.random.default_rng(seed)
    F, lam, V = rng.standard_normal((n, r)), rng.uniform(0.1, 10.0, t), rng.standard_normal((n, t))
    want = np.column_stack([np.linalg.solve(F @ F.T + lam[j] * np.eye(n), V[:, j]) for j in range(t)])
    for factor in (F, torch.asarray(F), torch.asarray(F.astype(np.float32))):
        M = Nystrom(factor, lam, rest=0.0)
        assert type(M.U) is type(factor)
        for vectors in (V, torch.asarray(V)):
            found = M(vectors)
            assert type(found) is type(vectors)
            assert_allclose(to_numpy(found, float), want, atol=1e-5 * np.linalg.norm(V) / lam.min())
        some = np.array([t - 1])
        assert_allclose(
            to_numpy(M(torch.asarray(V[:, some]), some), float), want[:, some], atol=1e-5 * np.linalg.norm(V) / 0.1
        )


@pytest.mark.parametrize("limit", [0, 500])
def test_eigenvectors_are_found_on_the_device_of_a_large_factor(
    limit: int, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preconditioners, "SMALL", limit)
    monkeypatch.setattr(preconditioners, "BLOCK", 8 * 20 * 7)  # seven rows at a time
    F = np.linalg.qr(points(60, 20))[0] * np.geomspace(1e3, 1.0, 20)
    for lam in (1e-3, 1e5):
        here, there = Nystrom(F, lam), Nystrom(torch.asarray(F), lam)
        assert_allclose(there.values, np.geomspace(1e3, 1.0, 20) ** 2, rtol=1e-9)
        assert str(there.U.dtype) == f"torch.{here.U.dtype}"
        P = [to_numpy(M(np.eye(60), np.zeros(60, dtype=np.intp)), float) for M in (here, there)]
        assert_allclose(P[0], P[1], atol=2e-6 * np.abs(P[0]).max())


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_scale_factor_on_a_device(centre: bool, weighted: bool, dtype: Any, torch: Any) -> None:
    F = points(40, 6).astype(dtype)
    w = np.random.default_rng(1).uniform(0.2, 3.0, 40) if weighted else None
    T = torch.asarray(F)
    G = scale_factor(T, w if w is None else torch.asarray(w), centre)
    want = FeatureCentred(Data(F.astype(np.float64) @ F.T.astype(np.float64)), w, centre=centre) @ np.eye(40)
    assert G.dtype == T.dtype
    assert_allclose(to_numpy(G @ G.T, float), want, atol=1e-13 if dtype == np.float64 else 1e-4)
    assert (G is T) == (not centre and not weighted)
    assert_array_equal(T.numpy(), F)  # as it was


def test_a_card_has_costs_and_room_of_its_own(torch: Any) -> None:
    class OnGPU(Data):
        """As if it were on a GPU of 64 GiB."""

        room = 2**33

        def __init__(self, M: Any) -> None:
            super().__init__(M)
            self.device = type("Device", (), {"type": "cuda"})()

    narrow, wide = OnGPU(torch.eye(3, dtype=torch.float32)), OnGPU(torch.eye(3, dtype=torch.float64))
    assert costs_of(narrow) == GPU
    assert costs_of(wide).product > GPU.product
    assert costs_of(Data(torch.eye(3))) == costs_of(Data(np.eye(3))) == _ranks.CPU
    assert factor_bytes(wide) == 2.0**35
    assert factor_bytes(Data(np.eye(3))) == 2.0**31
    assert largest_rank(10**6, factor_bytes(wide)) == 2**35 // (24 * 10**6)
    # the factor of the first rank costs three products and no more; one column more would
    for n in (1000, 10**5, 10**6):
        r = first_rank(n, costs=GPU)
        assert GPU.time_factor(n, r) <= 3 * GPU.product * n**2 < GPU.time_factor(n, r + 1)
    free = Costs(1.0, 1e-300)
    assert first_rank(50, costs=free) == 50
    falling = 100 * 0.99 ** np.arange(400)
    assert not pays_to_double(2_000, falling, 0.5, 20)
    assert pays_to_double(2_000, falling, 0.5, 20, costs=free)
    assert (is_on_gpu(wide), is_on_gpu(Data(torch.eye(3)))) == (True, False)
    assert predict_bytes(100, "direct", on_gpu=True) > predict_bytes(100, "direct")
    assert [choose_method(10**6, m, 1, on_gpu=True)[0] for m in (3_000, 20_000)] == ["direct", "cg"]


def data(n: int, t: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = points(n, 3, seed)
    Y = np.column_stack([np.sin(X[:, 0]) + 2, X[:, -1] ** 2 - 1])[:, :t]
    return X, Y + 0.1 * np.random.default_rng(seed + 1).standard_normal((n, t))


def stacked(K: np.ndarray, Kmm: np.ndarray, y: np.ndarray, lam: float, w: np.ndarray, intercept: bool) -> np.ndarray:
    """Predictions by one least-squares problem [√w(K N, 1); √λ I] with NᵀK_mm N = I, 1ᵀN = 0 with an intercept."""
    N = scipy.linalg.null_space(np.ones((1, len(Kmm)))) if intercept else np.eye(len(Kmm))
    values, V = np.linalg.eigh(N.T @ Kmm @ N)
    there = values > 1e-13 * values.max()
    F = np.hstack([K @ N @ V[:, there] / np.sqrt(values[there]), np.ones((len(K), int(intercept)))])
    bottom = np.sqrt(lam) * np.eye(F.shape[1])[: there.sum()]
    right = np.concatenate([np.sqrt(w) * y, np.zeros(len(bottom))])
    return np.asarray(F @ scipy.linalg.lstsq(np.vstack([np.sqrt(w)[:, None] * F, bottom]), right)[0])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", ["direct", "cg"])
def test_with_all_rows_as_centres_it_is_kernel_ridge(place: str, method: str, torch: Any) -> None:
    X, Y = data(150)
    w = np.random.default_rng(1).uniform(0.2, 3, 150)
    peer = KernelRidge(alpha=[0.1, 0.5], kernel="rbf", gamma=0.3).fit(X, Y, sample_weight=w)
    A = operator(place, torch, X, X)
    fit = LandmarkSolver(method=method)(A, KERNEL(X), Y, [0.1, 0.5], weights=w, indices=np.arange(150))
    assert_allclose(KERNEL(X) @ fit.coef, peer.predict(X), rtol=0, atol=1e-8)
    assert fit.certificate.converged


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", ["direct", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_few_centres_minimise_the_objective_and_say_the_same_everywhere(
    place: str, method: str, intercept: bool, same: bool, torch: Any
) -> None:
    """With one λ for both targets, whose preconditioner is a Cholesky factor, or two, where it is eigenvectors."""
    X, Y = data(400)
    w = np.random.default_rng(2).uniform(0, 2, 400)
    w[5:20] = 0.0
    rows, lam = np.arange(20, 55), np.array([0.3, 0.3 if same else 2.0])
    options = {"weights": w, "intercept": intercept, "indices": rows, "diagonal": 1.0}
    K, Kmm = KERNEL(X, X[rows]), KERNEL(X[rows])
    fit = LandmarkSolver(1e-10, method)(operator(place, torch, X, X[rows]), Kmm, Y, lam, **options)
    for j in range(2):
        truth = stacked(K, Kmm, Y[:, j], lam[j], w, intercept)
        assert_allclose((K @ fit.coef + fit.intercept)[:, j], truth, rtol=0, atol=1e-7)
    here = LandmarkSolver(1e-10, method)(operator("numpy", torch, X, X[rows]), Kmm, Y, lam, **options)
    assert_allclose(fit.certificate.error_bounds, here.certificate.error_bounds, rtol=1e-6)
    assert_allclose(fit.objective, here.objective, rtol=1e-10)
    assert fit.certificate.converged
    assert fit.rank == here.rank
    assert all(isinstance(x, np.ndarray) for x in (fit.coef, fit.objective, fit.basis.L, fit.mean))
    new = points(20, 3, 9)
    if method == "direct":
        assert_allclose(*(f.lengths(KERNEL(new, X[rows]), np.ones(20)) for f in (fit, here)), rtol=1e-6)
    assert ("double mode" in fit.certificate.precision) >= (place == "kernel on torch")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_refitting_and_the_path_is_the_same(place: str, intercept: bool, torch: Any) -> None:
    X, Y = data(40, 1)
    w = np.random.default_rng(3).uniform(0.3, 2, 40)
    w[3] = 0.0
    rows, alphas = np.arange(5, 17), np.array([0.01, 1.0, 30.0])
    K, Kmm = KERNEL(X, X[rows]), KERNEL(X[rows])
    options = {"weights": w, "intercept": intercept}
    found = LandmarkSolver().decompose(operator(place, torch, X, X[rows]), Kmm, Y, **options)
    path = found.path(alphas)
    for i, lam in enumerate(alphas):
        without = ((j, np.where(np.arange(40) == j, 0.0, w)) for j in np.flatnonzero(w))
        errors = [(Y[:, 0] - stacked(K, Kmm, Y[:, 0], lam, less, intercept))[j] for j, less in without]
        truth = np.sum(w[w > 0] * np.square(errors)) / np.count_nonzero(w)
        assert path.loo[i, 0] == pytest.approx(truth, rel=1e-8)
    here = LandmarkSolver().decompose(operator("numpy", torch, X, X[rows]), Kmm, Y, **options)
    for name in ("coef", "intercept", "gcv", "log_marginal_likelihood", "dof", "noise_variance"):
        assert_allclose(getattr(path, name), getattr(here.path(alphas), name), rtol=1e-7, atol=1e-9, err_msg=name)
    fit = found.fit(1.0)
    assert_allclose(K @ fit.coef[:, 0] + fit.intercept, stacked(K, Kmm, Y[:, 0], 1.0, w, intercept), atol=1e-9)


@pytest.mark.parametrize("place", PLACES[1:])
def test_blocks_are_joined_and_thin_ones_come_to_the_same(
    place: str, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = data(300)
    rows = np.arange(10)
    A = operator(place, torch, X, X[rows])
    whole = LandmarkSolver(method="direct")(A, KERNEL(X[rows]), Y, 0.1, intercept=True, diagonal=1.0)
    monkeypatch.setattr(passes, "ROWS", 1)
    K = A.to_dense()
    monkeypatch.setattr(type(A), "rows", lambda self: ((i, i + 6, K[i : i + 6]) for i in range(0, 300, 6)))
    assert [stop - start for start, stop, _ in passes.blocks(A)] == [12] * 25
    thin = LandmarkSolver(method="direct")(A, KERNEL(X[rows]), Y, 0.1, intercept=True, diagonal=1.0)
    assert_allclose(thin.coef, whole.coef, rtol=1e-9)
    assert_allclose(thin.certificate.error_bounds, whole.certificate.error_bounds, rtol=1e-9)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Matern(1.5), Polynomial(degree=3, gamma=0.2), Linear()], ids=str)
def test_coordinates_on_a_device_are_those_of_an_orthonormal_basis(kernel: Any, centred: bool, torch: Any) -> None:
    """Inner products of features are those of projections, whatever the order of the pivots."""
    Z, X = points(12), points(30, 3, 1)
    Z = np.vstack([Z, Z[:2]])  # two centres twice, so that the order they come in will not do
    K, Kmm = kernel(X, Z), kernel(Z)
    H = np.eye(14) - centred / 14
    G = H @ Kmm @ H
    right = (K - centred * (K.mean(axis=1)[:, None] + Kmm.mean(axis=0) - Kmm.mean())) @ H
    want = right @ np.linalg.pinv(G, rcond=1e-12, hermitian=True) @ right.T
    here, there = whiten(Kmm, centred), whiten(torch.asarray(Kmm), centred)
    assert here.rank == there.rank == np.linalg.matrix_rank(G, tol=1e-9 * np.trace(G))
    for basis, given_as in ((here, K), (there, torch.asarray(K)), (there.in_numpy(), K)):
        F = to_numpy(basis.features(given_as), float)
        assert_allclose(F.T @ F, want, atol=1e-8 * np.abs(want).max())
        assert_allclose(basis.outside(given_as, basis.features(given_as), kernel.diagonal(X)) ** 2, here.outside(
            K, here.features(K), kernel.diagonal(X)) ** 2, atol=1e-6 * np.abs(want).max())  # fmt: skip
    a = there.coefficients(points(there.rank, 2))
    shift = K @ a - to_numpy(there.features(torch.asarray(K)), float).T @ points(there.rank, 2)
    assert_allclose(shift - shift.mean(axis=0) * centred, 0.0, atol=1e-6 * np.abs(K @ a).max())


def test_centres_in_a_good_order_are_taken_as_they_come(torch: Any) -> None:
    Z = points(40)
    order = rp_cholesky(np.ones(40), lambda j, i=slice(None): KERNEL(Z)[i][:, j], 40).indices
    for centred in (False, True):
        basis = whiten(torch.asarray(KERNEL(Z[order])), centred)
        assert_array_equal(basis.pivots, np.arange(40 - centred))
        L = np.linalg.inv(np.tril(to_numpy(basis.L, float)))
        assert_allclose(basis.noise, np.linalg.norm(L, axis=1), rtol=1e-6)


def test_a_kernel_that_is_no_inner_product_is_refused_on_a_device(torch: Any) -> None:
    X, Y = data(30)
    A = operator("dense tensor", torch, X, X[:5])
    for match, Kmm in [("not positive semidefinite", np.eye(5) - 0.9), ("not negative", -KERNEL(X[:5]))]:
        with pytest.raises(ValueError, match=match):
            LandmarkSolver()(A, Kmm, Y, 1.0)
    with pytest.raises(ValueError, match=r"float32.*needs float64"):
        LandmarkSolver()(operator("dense tensor", torch, X, X[:5], np.float32), KERNEL(X[:5]), Y, 1.0)


@pytest.mark.parametrize("method", ["direct", "cg"])
def test_nothing_to_fit_on_a_device(method: str, torch: Any) -> None:
    X = np.ones((50, 2))
    Y = points(50, 1)
    A: Operator = Data(torch.asarray(Linear()(X, X[:3])))
    fit = LandmarkSolver(method=method)(A, Linear()(X[:3]), Y, 1.0, intercept=True)
    assert fit.rank == 0  # all points are one, so that only the mean can be fitted
    assert_array_equal(fit.coef, 0.0)
    assert fit.intercept[0] == pytest.approx(Y.mean())


def test_columns_are_taken_written_and_solved_where_they_live(torch: Any) -> None:
    Y = points(6, 4)
    L = np.tril(points(6, 6)) + 4 * np.eye(6)
    for here in (Y.copy(), torch.asarray(Y.copy())):
        assert_array_equal(to_numpy(take(here, np.array([2, 0])), float), Y[:, [2, 0]])
        assert_array_equal(to_numpy(take(here, np.array([3]), axis=0), float), Y[[3]])
        put(here, np.array([1]), like(here, np.zeros((6, 1)), float))
        assert not np.any(to_numpy(here, float)[:, 1])
        for factor in (L, torch.asarray(L)):
            if is_numpy(factor) and not is_numpy(here):
                continue
            for transposed in (False, True):
                found = triangular(factor, here, transposed)
                assert type(found) is type(here)
                assert_allclose((L.T if transposed else L) @ to_numpy(found, float), to_numpy(here, float), atol=1e-14)
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(torch.asarray(-np.eye(2)))
    reversed_view = np.arange(3.0)[::-1]
    reversed_view.flags.writeable = False  # of which torch would warn
    assert_array_equal(to_numpy(like(torch.zeros(1), reversed_view, float), float), reversed_view)
