"""What every operator must satisfy, on NumPy and torch, in float32 and float64: written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context

from gramian.kernels import Gaussian, Polynomial
from gramian.operators import (
    Centred,
    ColumnScaled,
    Data,
    DeviceGenotypeOperator,
    DeviceKernelOperator,
    FeatureCentred,
    GenotypeOperator,
    Gram,
    KernelOperator,
    Known,
    Operator,
    RowWeighted,
    Shifted,
    Transposed,
)
from gramian.operators import genotype as genotype_device
from gramian.sources.plink import Genotypes

N, P = 13, 7
BACKENDS = ["numpy", "fortran", "sparse", "torch"]
DTYPES = ["float32", "float64"]


def matrix(n: int = N, p: int = P) -> np.ndarray:
    X = np.random.default_rng(5).standard_normal((n, p)) + 0.5
    return np.where(np.abs(X) < 0.3, 0.0, X)  # some zeros, for the sparse backend


def vector(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 2.0, size)


def data(backend: str, dtype: str, n: int = N, p: int = P) -> Data:
    X = matrix(n, p).astype(dtype)
    if backend == "fortran":
        return Data(np.asfortranarray(X))
    if backend == "sparse":
        return Data(sp.csr_array(X))
    if backend == "torch":
        return Data(pytest.importorskip("torch", reason="torch is not installed").asarray(X))
    return Data(X)


def origin_data(backend: str, dtype: str) -> Operator:
    if backend == "sparse":
        pytest.skip("sparse data take no origin")
    return Data(data(backend, dtype).source, origin=vector(P, 1), unit=0.25)


def others(A: Data) -> np.ndarray:
    """Points for the columns of a kernel matrix, in the dtype of the data."""
    return matrix(9).astype("float32" if "32" in str(A.dtype) else "float64")


def on_device(A: Data, kernel: Any = Gaussian(0.3), Z: Any = None, store: bool | str = "auto") -> Operator:  # noqa: B008
    """The kernel operator of a GPU, run by torch on the CPU."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return DeviceKernelOperator(kernel, A.source, Z, device=torch.device("cpu"), store=store)


def gaussian(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.3 * ((X[:, None] - Z) ** 2).sum(axis=2)))


def feature_centred(X: np.ndarray) -> np.ndarray:
    """diag(√w) H K Hᵀ diag(√w), written out."""
    w = vector(N, 3)
    H = np.sqrt(w)[:, None] * (np.eye(N) - np.ones((N, 1)) * (w / w.sum()))
    return np.asarray(H @ gaussian(X, X) @ H.T)


# name -> (operator of a data operator, the same for a dense float64 matrix)
Build = Callable[[Any], Any]
COMPOSITIONS: dict[str, tuple[Build, Build]] = {
    "data": (lambda A: A, lambda X: X),
    "centred": (lambda A: Centred(A, vector(P, 2)), lambda X: X - vector(P, 2)),
    "centred-left": (
        lambda A: Centred(A, vector(P, 2), left=vector(N, 3)),
        lambda X: X - np.outer(vector(N, 3), vector(P, 2)),
    ),
    "scaled": (lambda A: ColumnScaled(A, vector(P, 4)), lambda X: X / vector(P, 4)),
    "weighted": (lambda A: RowWeighted(A, vector(N, 3)), lambda X: vector(N, 3)[:, None] * X),
    "transposed": (lambda A: Transposed(A), lambda X: X.T),
    "gram": (lambda A: Gram(A), lambda X: X.T @ X),
    "shifted-gram": (lambda A: Shifted(Gram(A), 0.7), lambda X: X.T @ X + 0.7 * np.eye(P)),
    "known": (lambda A: Known(A, A.gram()), lambda X: X),
    "pca": (
        lambda A: Centred(ColumnScaled(RowWeighted(A, vector(N, 3)), vector(P, 4)), vector(P, 2), left=vector(N, 3)),
        lambda X: vector(N, 3)[:, None] * (X / vector(P, 4) - vector(P, 2)),
    ),
    "inside-out": (
        lambda A: RowWeighted(ColumnScaled(Centred(A, vector(P, 2)), vector(P, 4)), vector(N, 3)),
        lambda X: vector(N, 3)[:, None] * (X - vector(P, 2)) / vector(P, 4),
    ),
    "kernel": (lambda A: KernelOperator(Gaussian(0.3), A.source), lambda X: gaussian(X, X)),
    "kernel-stored": (lambda A: KernelOperator(Gaussian(0.3), A.source, store=True), lambda X: gaussian(X, X)),
    "kernel-two-sets": (
        lambda A: KernelOperator(Gaussian(0.3), A.source, others(A)),
        lambda X: gaussian(X, matrix(9)),
    ),
    "kernel-centred": (
        lambda A: Centred(KernelOperator(Polynomial(2), A.source, others(A), store=False), vector(9, 2)),
        lambda X: (X @ matrix(9).T / P + 1) ** 2 - vector(9, 2),
    ),
    "kernel-shifted": (
        lambda A: Shifted(KernelOperator(Gaussian(0.3), A.source), 0.7),
        lambda X: gaussian(X, X) + 0.7 * np.eye(N),
    ),
    "device-kernel": (lambda A: on_device(A, store=False), lambda X: gaussian(X, X)),
    "device-kernel-stored": (lambda A: on_device(A, store=True), lambda X: gaussian(X, X)),
    "device-kernel-two-sets": (lambda A: on_device(A, Z=others(A)), lambda X: gaussian(X, matrix(9))),
    "device-kernel-polynomial": (
        lambda A: Centred(on_device(A, Polynomial(2), others(A), store=False), vector(9, 2)),
        lambda X: (X @ matrix(9).T / P + 1) ** 2 - vector(9, 2),
    ),
    "device-kernel-centred": (lambda A: FeatureCentred(on_device(A), vector(N, 3)), lambda X: feature_centred(X)),
    "kernel-feature-centred": (
        lambda A: FeatureCentred(KernelOperator(Gaussian(0.3), A.source), vector(N, 3)),
        lambda X: feature_centred(X),
    ),
    "transposed-pca": (
        lambda A: Transposed(Centred(RowWeighted(A, vector(N, 3)), vector(P, 2), left=vector(N, 3))),
        lambda X: (vector(N, 3)[:, None] * (X - vector(P, 2))).T,
    ),
}


def genotypes(which: str, dtype: str) -> tuple[Operator, np.ndarray]:
    """A genotype operator, of the whole table or of a part of it, and the same by plain arithmetic."""
    G = np.random.default_rng(6).integers(-1, 3, (P + 4, N + 6))
    rows, columns = np.arange(P + 4) % 3 != 1, np.arange(N + 6) % 4 != 2
    source = Genotypes.from_calls(G)
    if which.endswith("some"):
        source, G = source.select(snps=rows).select(samples=columns), G[rows][:, columns]
    mean, scale = vector(len(G), 1), vector(len(G), 2)
    Z = np.where(G < 0, 0.0, (G - mean[:, None]) / scale[:, None]).T
    if "-" not in which:
        return GenotypeOperator(source, mean, scale, dtype=dtype), Z
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with patch.object(genotype_device, "SHARE", 0.0 if which.startswith("streamed") else 0.8):
        return DeviceGenotypeOperator(source, mean, scale, device=torch.device("cpu"), dtype=dtype), Z


ELSEWHERE = ("fortran", "sparse")  # a device is given a copy of rows as they come, and no sparse ones
CASES = [
    f"{name}/{b}/{d}"
    for name in COMPOSITIONS
    for b in BACKENDS
    for d in DTYPES
    if not (name.startswith("device") and b in ELSEWHERE)
]
GENOTYPES = ("all", "some", "device-all", "device-some", "streamed-all", "streamed-some")
CASES += [f"genotypes/{which}/{d}" for which in GENOTYPES for d in DTYPES]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Operator, np.ndarray, float]:
    name, backend, dtype = request.param.split("/")
    if name == "genotypes":
        return *genotypes(backend, dtype), 1e-12 if dtype == "float64" else 2e-5
    operator, dense = COMPOSITIONS[name]
    # float32: a few roundings of sums of 13 products of numbers near 2
    return (
        operator(data(backend, dtype)),
        dense(matrix().astype(dtype).astype(float)),
        1e-12 if dtype == "float64" else 2e-5,
    )


def array(A: Operator, rows: int, columns: int, seed: int) -> Any:
    return A.asarray(np.random.default_rng(seed).standard_normal((rows, columns)))


def must_be_close(got: Any, want: np.ndarray, tol: float) -> None:
    np.testing.assert_allclose(np.asarray(got), want, atol=tol * max(1.0, np.abs(want).max()), rtol=0)


def test_shape_dtype_and_dense_form(case: tuple[Operator, np.ndarray, float]) -> None:
    A, D, tol = case
    assert A.shape == D.shape
    must_be_close(A.to_dense(), D, tol)
    assert A.to_dense().dtype == A.dtype


def test_products_agree_with_the_dense_matrix(case: tuple[Operator, np.ndarray, float]) -> None:
    A, D, tol = case
    V, U = array(A, A.shape[1], 3, 0), array(A, A.shape[0], 3, 1)
    must_be_close(A @ V, D @ np.asarray(V, float), tol)
    must_be_close(A.T @ U, D.T @ np.asarray(U, float), tol)
    must_be_close(A @ V[:, 0], D @ np.asarray(V[:, 0], float), tol)
    assert (A @ V).dtype == A.dtype


def test_normal_products_and_gram_matrices(case: tuple[Operator, np.ndarray, float]) -> None:
    A, D, tol = case
    V, U = array(A, A.shape[1], 2, 2), array(A, A.shape[0], 2, 3)
    w, c = vector(A.shape[0], 6), vector(A.shape[1], 7)
    must_be_close(A.normal(V), D.T @ D @ np.asarray(V, float), 10 * tol)
    must_be_close(A.conormal(U), D @ D.T @ np.asarray(U, float), 10 * tol)
    must_be_close(A.normal(V, A.asarray(w)), (D.T * w) @ D @ np.asarray(V, float), 10 * tol)
    must_be_close(A.conormal(U, A.asarray(c)), (D * c) @ D.T @ np.asarray(U, float), 10 * tol)
    must_be_close(A.gram(), D.T @ D, 10 * tol)
    must_be_close(A.cogram(), D @ D.T, 10 * tol)
    must_be_close(A.gram(A.asarray(w)), (D.T * w) @ D, 10 * tol)
    must_be_close(A.cogram(A.asarray(c)), (D * c) @ D.T, 10 * tol)


def test_linearity_and_adjointness(case: tuple[Operator, np.ndarray, float]) -> None:
    A, D, tol = case
    V, W, U = array(A, A.shape[1], 2, 4), array(A, A.shape[1], 2, 5), array(A, A.shape[0], 2, 6)
    size = np.abs(D).sum()
    must_be_close((A @ (2.0 * V - W)) / size, np.asarray((2.0 * (A @ V) - A @ W) / size), tol)
    left, right = (A @ V).T @ U, V.T @ (A.T @ U)  # <Av, u> = <v, Aᵀu>
    must_be_close(left / size, np.asarray(right / size), tol)


def test_rows_come_in_order_and_make_up_the_matrix(case: tuple[Operator, np.ndarray, float]) -> None:
    A, D, tol = case
    V = array(A, A.shape[1], 2, 8)
    for basis, want in ((None, D), (V, D @ np.asarray(V, float))):
        stops = [0]
        for start, stop, block in A.rows(basis):
            assert start == stops[-1]
            must_be_close(block, want[start:stop], tol)
            stops.append(stop)
        assert stops[-1] == A.shape[0]


def test_a_transposed_twice_is_itself(case: tuple[Operator, np.ndarray, float]) -> None:
    A, D, tol = case
    must_be_close(A.T.T.to_dense(), D, tol)
    assert A.T.shape == D.T.shape


def test_passes_are_counted(case: tuple[Operator, np.ndarray, float]) -> None:
    A, _, _ = case
    before = A.passes
    A @ array(A, A.shape[1], 1, 0)
    assert A.passes >= before + 1


def test_wrong_shapes_are_refused_with_both_shapes(case: tuple[Operator, np.ndarray, float]) -> None:
    A, _, _ = case
    with pytest.raises(ValueError, match=r"shape .*\(99, 1\)"):
        A @ array(A, 99, 1, 0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_data_with_origin_and_unit(backend: str, dtype: str) -> None:
    A = origin_data(backend, dtype)
    want = 0.25 * matrix().astype(dtype).astype(float) - vector(P, 1)
    tol = 1e-13 if dtype == "float64" else 1e-5
    must_be_close(A.to_dense(), want, tol)
    must_be_close(A.gram(), want.T @ want, 10 * tol)
    must_be_close(A.cogram(), want @ want.T, 10 * tol)
    must_be_close(A.conormal(array(A, N, 2, 0)), want @ want.T @ np.asarray(array(A, N, 2, 0), float), 10 * tol)


@given(n=st.integers(1, 40), p=st.integers(1, 12), memory=st.floats(1e-5, 1e-2), seed=st.integers(0, 99))
def test_blocks_of_any_size_give_the_same_answer(n: int, p: int, memory: float, seed: int) -> None:
    X = matrix(n, p)
    A = Centred(Data(X), X.mean(axis=0))
    V, U = array(A, p, 2, seed), array(A, n, 2, seed)
    whole = [A @ V, A.T @ U, A.normal(V), A.conormal(U), A.gram()]
    with config_context(working_memory=memory):
        blocks = [A @ V, A.T @ U, A.normal(V), A.conormal(U), A.gram()]
    for a, b in zip(whole, blocks, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


def test_an_origin_keeps_what_a_correction_would_lose() -> None:
    """Data of mean 1e8: centring after the product loses 8 digits, an origin none."""
    X = np.random.default_rng(0).standard_normal((50, 3)) + 1e8
    exact = X - X.mean(axis=0)
    V = np.eye(3)
    near = np.abs(Data(X, origin=X.mean(axis=0)) @ V - exact).max()
    assert near < 1e-12


def test_sparse_data_take_no_origin() -> None:
    with pytest.raises(ValueError, match="Centred"):
        Data(sp.eye_array(3), origin=np.ones(3))


def test_only_square_operators_are_shifted() -> None:
    with pytest.raises(ValueError, match="square"):
        Shifted(Data(np.ones((3, 2))), 1.0)
