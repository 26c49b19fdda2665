"""What every spectral solver must satisfy: written once, run for each solver, backend, dtype and shape."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from gramian.operators import Centred, Data, Operator
from gramian.results import Spectrum
from gramian.spectral import Auto, Dense, Krylov, Power, Randomized

SOLVERS = {
    "dense": Dense(left=True),
    "dense-svd": Dense("svd", left=True),
    "dense-gram": Dense("gram", left=True),
    "krylov": Krylov(left=True),
    "randomized": Randomized(left=True),
    "power": Power(left=True),
    "auto": Auto(left=True),
}
SHAPES = {"tall": (60, 12), "wide": (12, 60), "square": (25, 25)}
BACKENDS = ["numpy", "sparse", "torch"]


def with_spectrum(n: int, p: int, s: np.ndarray, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    m = min(n, p)
    U = np.linalg.qr(rng.standard_normal((n, m)))[0]
    V = np.linalg.qr(rng.standard_normal((p, m)))[0]
    return (U[:, : len(s)] * s) @ V[:, : len(s)].T


def operator(X: np.ndarray, backend: str) -> Operator:
    if backend == "sparse":
        return Data(sp.csr_array(X))
    if backend == "torch":
        return Data(pytest.importorskip("torch", reason="torch is not installed").asarray(X))
    return Data(X)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SOLVERS)
def test_triplets_agree_with_lapack(name: str, backend: str, shape: str, dtype: str) -> None:
    n, p = SHAPES[shape]
    s = 0.6 ** np.arange(min(n, p)) * 10
    X = with_spectrum(n, p, s).astype(dtype)
    U, true, Vt = scipy.linalg.svd(X.astype(float), full_matrices=False)
    result: Spectrum = SOLVERS[name](operator(X, backend), 3)
    tol = 1e-5 if dtype == "float64" else 5e-3
    values, V, left = result.values, np.asarray(result.right), np.asarray(result.left)
    np.testing.assert_allclose(values, true[:3], rtol=tol)
    assert np.all(np.diff(values) <= 0)
    assert V.shape == (p, 3)
    assert left.shape == (n, 3)
    np.testing.assert_allclose(np.abs(np.sum(V * Vt[:3].T, axis=0)), 1.0, atol=tol)
    np.testing.assert_allclose(np.abs(np.sum(left * U[:, :3], axis=0)), 1.0, atol=tol)
    assert V.dtype == np.dtype(dtype)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_certificate_is_true(name: str, shape: str) -> None:
    n, p = SHAPES[shape]
    X = with_spectrum(n, p, 0.7 ** np.arange(min(n, p)))
    result = SOLVERS[name](Data(X), 4)
    c, s, V, U = result.certificate, result.values, result.right, result.left
    residuals = np.hypot(*(np.linalg.norm(R, axis=0) for R in (X @ V - U * s, X.T @ U - V * s))) / s[0]
    assert np.all(residuals <= c.residuals + 100 * np.finfo(float).eps)
    assert np.all(np.abs(s - np.linalg.svd(X, compute_uv=False)[:4]) <= c.value_bounds + 1e-15)
    lam = np.linalg.svd(X, compute_uv=False)[:4] ** 2
    assert np.all(np.abs(s**2 - lam) <= c.eigenvalue_bounds + 1e-15)
    assert c.converged
    assert c.passes >= 1
    assert c.orthogonality < 1e-13
    assert c.norm == s[0]


@pytest.mark.parametrize("name", SOLVERS)
def test_the_same_seed_gives_the_same_bits(name: str) -> None:
    X = np.random.default_rng(0).standard_normal((80, 30)) * 0.7 ** np.arange(30)
    a, b = (SOLVERS[name](Data(X), 3) for _ in range(2))
    assert a.values.tobytes() == b.values.tobytes()
    assert np.asarray(a.right).tobytes() == np.asarray(b.right).tobytes()


@pytest.mark.parametrize("name", [n for n in SOLVERS if n != "power"])
@pytest.mark.parametrize("multiplicity", [5, 12])
def test_tied_values_are_all_found(name: str, multiplicity: int) -> None:
    """k = 10 of a spectrum whose largest value comes 5 or 12 times: a small block would miss copies."""
    s = np.concatenate([np.full(multiplicity, 5.0), 4.0 * 0.8 ** np.arange(30)])
    X = with_spectrum(90, 60, s)
    result = SOLVERS[name](Data(X), 10)
    np.testing.assert_allclose(result.values, s[:10], rtol=1e-8)
    top = np.linalg.svd(X)[2][:multiplicity].T  # the true eigenspace of 5
    inside = result.right[:, : min(10, multiplicity)]
    np.testing.assert_allclose(np.linalg.norm(top.T @ inside, axis=0), 1.0, atol=1e-6)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_more_components_than_the_rank(name: str, rank: int) -> None:
    X = with_spectrum(40, 20, 2.0 - np.arange(rank) / 4) if rank else np.zeros((40, 20))
    result = SOLVERS[name](Data(X), 5)
    np.testing.assert_allclose(result.values[:rank], 2.0 - np.arange(rank) / 4, rtol=1e-6)
    assert np.all(result.values[rank:] < 1e-6)
    V = result.right
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-10)


@pytest.mark.parametrize(
    "solver", [Krylov(tol=1e-12), Randomized(tol=1e-12, max_passes=5000), Krylov(tol=1e-12, basis=30)]
)
def test_tolerance_1e_12_is_reached_on_a_slow_spectrum(solver: Any) -> None:
    X = with_spectrum(300, 200, np.linspace(2, 1, 200))
    result = solver(Data(X), 4)
    assert result.certificate.worst <= 1e-12
    np.testing.assert_allclose(result.values, np.linspace(2, 1, 200)[:4], rtol=1e-12)


@pytest.mark.parametrize("solver", [Krylov(max_passes=2), Randomized(max_passes=1), Power(max_passes=1)])
def test_missing_the_tolerance_is_said_with_figures_and_a_remedy(solver: Any) -> None:
    X = with_spectrum(300, 200, np.linspace(2, 1, 200))
    with pytest.warns(ConvergenceWarning, match="components") as seen:
        result = solver(Data(X), 5)
    assert "passes" in str(seen[0].message)
    assert not result.certificate.converged
    true = np.linalg.svd(X, compute_uv=False)
    gaps = np.min(np.abs(result.values[:, None] - true[None, :]), axis=1)
    assert np.all(gaps <= result.certificate.value_bounds)  # the bound holds all the same


LAPACK_SHAPES = [(200, 50), (50, 200), (120, 120), (700, 400), (400, 700)]
SPECTRA = {
    "flat": lambda m: np.ones(m),
    "linear": lambda m: np.linspace(1, 0.1, m),
    "geometric": lambda m: 0.9 ** np.arange(m),
    "one small": lambda m: np.append(np.ones(m - 1), 1e-15),
    "one large": lambda m: np.append(1.0, np.full(m - 1, 1e-10)),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("shape", LAPACK_SHAPES)
def test_dense_factorisations_meet_lapacks_own_test_ratios(shape: tuple[int, int], spectrum: str) -> None:
    n, p = shape
    X = with_spectrum(n, p, SPECTRA[spectrum](min(n, p)))
    eps = np.finfo(float).eps
    for method in ("auto", "svd"):
        result = Dense(method, left=True)(Data(X))
        U, s, V = result.left, result.values, result.right
        norm, k = np.linalg.norm(X, 1), min(n, p)
        assert np.linalg.norm(X - (U * s) @ V.T, 1) / (max(n, p) * norm * eps) <= 30
        assert np.linalg.norm(V.T @ V - np.eye(k), 1) / (k * eps) <= 30
        assert np.linalg.norm(U.T @ U - np.eye(k), 1) / (k * eps) <= 30


def test_qr_keeps_small_singular_values_that_the_gram_matrix_loses() -> None:
    s = 10.0 ** -np.arange(12)
    X = with_spectrum(30_000, 12, s)
    assert "QR" in Dense()(Data(X)).certificate.method
    # |error| a small multiple of eps, absolutely: what backward stability promises
    assert np.abs(Dense()(Data(X)).values - s).max() < 1e-14
    with pytest.warns(ConvergenceWarning, match="eigenvectors of AᵀA"):
        gram = Dense("gram")(Data(X))
    assert np.abs(gram.values - s).max() > 1e-9
    assert not gram.certificate.converged


@given(n=st.integers(2, 30), p=st.integers(2, 30), decay=st.floats(0.3, 1.0), seed=st.integers(0, 50), data=st.data())
def test_bounds_hold_for_any_shape_and_spectrum(n: int, p: int, decay: float, seed: int, data: st.DataObject) -> None:
    m = min(n, p)
    k = data.draw(st.integers(1, m))
    X = with_spectrum(n, p, decay ** np.arange(m), seed)
    true = np.linalg.svd(X, compute_uv=False)[:k]
    for solver in (Dense(), Krylov(seed=seed), Randomized(seed=seed, max_passes=20)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = solver(Data(X), k)
        if result.certificate.converged:
            assert np.all(np.abs(result.values - true) <= result.certificate.value_bounds + 1e-14)


def test_auto_explains_its_choice_and_does_what_it_says() -> None:
    rng = np.random.default_rng(0)
    tall = Data(rng.standard_normal((3000, 100)))
    assert Auto().choose(tall, 100).gram
    assert "100 of 100" in Auto().choose(tall, 100).reason
    wide_sparse = Data(sp.random_array((500, 9000), density=0.01, rng=rng, format="csr"))
    assert Auto().choose(Data(sp.random_array((9000, 9000), density=1e-4, rng=rng, format="csr")), 5).solver == "krylov"
    assert Auto()(wide_sparse, 3).certificate.converged
    assert Auto()(tall, 100).certificate.method.startswith("dense")


def test_auto_turns_to_the_gram_matrix_when_krylov_is_slow() -> None:
    rng = np.random.default_rng(0)
    A = Centred(Data(rng.standard_normal((1700, 1600))), np.zeros(1600))
    result = Auto(tol=1e-10)(A, 2)
    assert "slow to converge" in result.certificate.reason
    assert result.certificate.converged
    np.testing.assert_allclose(result.values, np.sqrt(np.linalg.eigvalsh(A.gram())[:-3:-1]), rtol=1e-10)
