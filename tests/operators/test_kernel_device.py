"""The kernel operator of a GPU, run by torch on the CPU: what is stored, files, tiles, factors, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

import gramian
from gramian.kernels import Callable, Gaussian, Laplacian, Linear, MatrixFunction, Polynomial, Precomputed, scale_gamma
from gramian.operators import DeviceKernelOperator, FeatureCentred, KernelOperator, kernel_device, kernel_operator
from gramian.operators.base import Operator

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import pretend_gpu

CPU = torch.device("cpu")
RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((60, 4)), RNG.standard_normal((25, 4))
K = rbf_kernel(X, gamma=0.3)
ONES = torch.ones(60, dtype=torch.float64)


def operator(*points: Any, kernel: Any = None, **options: Any) -> DeviceKernelOperator:
    return DeviceKernelOperator(kernel or Gaussian(0.3), *points, device=CPU, **options)


def test_the_second_product_stores_a_matrix_that_fits() -> None:
    A = operator(X)
    for stored, evaluations in ((False, 1), (True, 2), (True, 2)):
        assert_allclose(A @ ONES, K.sum(axis=1), rtol=1e-12)
        assert (A.stored, A.evaluations) == (stored, evaluations)
    assert A.passes == 3
    needed = 60 * 60 * 8 / 2**20
    for memory, stored in ((2.01 * needed, True), (1.99 * needed, False)):
        B = operator(X)
        with config_context(working_memory=memory):
            B @ ONES
            B @ ONES
        assert B.stored is stored


def test_storing_can_be_demanded_and_forbidden() -> None:
    always, never = operator(X, store=True), operator(X, store=False)
    for A in (always, never, always, never):
        assert_allclose(A @ ONES, K.sum(axis=1), rtol=1e-12)
    assert (always.stored, always.evaluations) == (True, 1)
    assert (never.stored, never.evaluations) == (False, 2)
    with pytest.raises(ValueError, match="store must be"):
        operator(X, store="maybe")


def test_a_symmetric_operator_is_its_transpose() -> None:
    A, B = operator(X), operator(X, Z)
    assert A.symmetric
    assert A.T is A
    assert not B.symmetric
    assert_allclose(B.T.to_dense(), rbf_kernel(Z, X, gamma=0.3), rtol=1e-12)


@pytest.mark.parametrize("store", [True, False])
def test_columns_diagonal_and_tiles(store: bool) -> None:
    A, some = operator(X, store=store), np.array([7, 3, 3])
    A @ ONES
    assert_allclose(A.columns(some), K[:, some], rtol=1e-12)
    assert_allclose(A.columns(torch.asarray(some), [5, 0]), K[np.ix_([5, 0], some)], rtol=1e-12)
    assert_allclose(A.diagonal(), np.ones(60), rtol=0)
    assert_allclose(A.tile(slice(3, 9), slice(50, 60)), K[3:9, 50:60], rtol=1e-12)
    narrow = A.tile(slice(3, 9), slice(50, 60), np.float32)
    assert narrow.dtype == torch.float32
    assert_allclose(narrow, K[3:9, 50:60], rtol=2e-6)
    B = operator(X, Z)
    assert_allclose(B.columns([2]), rbf_kernel(X, Z[[2]], gamma=0.3), rtol=1e-12)
    with pytest.raises(ValueError, match="no diagonal"):
        B.diagonal()
    assert_allclose(operator(X, kernel=Polynomial(2)).diagonal(), np.diag(polynomial_kernel(X, degree=2)), rtol=1e-12)


def test_rows_and_gram_matrices_come_in_blocks_of_bounded_size() -> None:
    many = np.random.default_rng(3).standard_normal((300, 4))
    want, w = rbf_kernel(many, Z, gamma=0.3), np.random.default_rng(4).uniform(1, 2, 300)
    with config_context(working_memory=0.1):
        A = operator(many, Z)
        blocks = [block for _, _, block in A.rows()]
        assert len(blocks) > 3
        assert max(block.nbytes for block in blocks) <= 0.1 * 2**20 / 8
        assert_allclose(torch.cat(blocks), want, rtol=1e-12)
        assert_allclose(A.gram(torch.asarray(w)), (want.T * w) @ want, rtol=1e-12)
        assert_allclose(A.cogram(), want @ want.T, rtol=1e-12)


def test_the_normal_product_takes_one_pass() -> None:
    A, V, w = operator(X, Z), torch.ones((25, 2), dtype=torch.float64), torch.linspace(1, 2, 60, dtype=torch.float64)
    want = rbf_kernel(X, Z, gamma=0.3)
    assert_allclose(A.normal(V, w), (want.T * np.asarray(w)) @ want @ np.ones((25, 2)), rtol=1e-12)
    assert A.passes == 1


def test_a_file_is_uploaded_in_blocks_of_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    want = rbf_kernel(X, Z, gamma=0.3)
    V, U = np.random.default_rng(1).standard_normal((25, 3)), np.random.default_rng(2).standard_normal((60, 3))
    with config_context(working_memory=0.002):
        A = operator(tmp_path / "x.npy", Z)
        assert (A.resident, A.shape, A.stored) == (False, (60, 25), False)
        assert_allclose(A @ torch.asarray(V), want @ V, atol=1e-12)
        assert_allclose(A.T @ torch.asarray(U), want.T @ U, atol=1e-12)
        assert_allclose(A.normal(torch.asarray(V)), want.T @ (want @ V), atol=1e-11)
        assert A.passes == 3
        assert_allclose(A.to_dense(), want, atol=1e-12)
        assert_allclose(A.cogram(), want @ want.T, atol=1e-11)
    for ask in (lambda: A.columns([0]), lambda: A.tile(slice(0, 1), slice(0, 1))):
        with pytest.raises(ValueError, match="memory"):
            ask()
    with pytest.raises(ValueError, match="Resolve it"):
        operator(tmp_path / "x.npy", Z, kernel=Gaussian("scale"))
    whole = operator(gramian.open(tmp_path / "x.npy"))
    assert_allclose(whole.to_dense(), K, rtol=1e-12)
    assert whole.symmetric


@pytest.mark.parametrize("order", ["<", ">"])
def test_points_in_either_byte_order(order: str) -> None:
    assert_allclose(operator(X.astype(f"{order}f8")).to_dense(), K, rtol=1e-12)


def test_what_does_not_fit_is_refused_with_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    A = FeatureCentred(operator(X))
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 1000)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    for ask, what in (
        (A.to_dense, "A kernel matrix of 60 x 60"),
        (A.A.to_dense, "A kernel matrix of 60 x 60"),  # type: ignore[attr-defined]
        (A.A.gram, "A Gram matrix of 60 x 60"),  # type: ignore[attr-defined]
    ):
        with pytest.raises(MemoryError, match=rf"{what} would take .* where 0\.0 MiB are free"):
            ask()


def test_points_that_do_not_fit_are_refused_with_the_figure() -> None:
    words = r"A table of 60 points would take 0\.0 MiB on cuda:0 \(a pretended GPU\), where 0\.0 MiB are free"
    with pretend_gpu(free=1000) as device, pytest.raises(MemoryError, match=words):
        DeviceKernelOperator(Gaussian(0.3), X, device=device)


def test_dtypes_follow_the_points_unless_given() -> None:
    assert operator(X.astype(np.float32)).dtype == torch.float32
    assert operator(X.astype(np.float32), Z).dtype == torch.float64
    assert operator(np.arange(6).reshape(3, 2)).dtype == torch.float64
    assert operator(torch.ones((3, 2), dtype=torch.float16)).dtype == torch.float32
    A = operator(X, dtype=np.float32)
    assert (A @ ONES).dtype == torch.float32
    assert_allclose(A @ ONES, K.sum(axis=1), rtol=2e-6)


@given(offset=st.floats(-1e4, 1e4), gamma=st.floats(1e-3, 3.0), seed=st.integers(0, 99))
def test_the_promise_of_precision_is_kept_wherever_the_points_lie(offset: float, gamma: float, seed: int) -> None:
    points = np.random.default_rng(seed).standard_normal((40, 3)) + offset
    V = np.random.default_rng(seed + 1).uniform(size=(40, 2))
    exact = np.exp(-gamma * ((points[:, None] - points) ** 2).sum(axis=2)) @ V
    for dtype in (np.float32, np.float64):
        A = operator(points, kernel=Gaussian(gamma), dtype=dtype)
        assert np.linalg.norm(np.asarray(A @ torch.asarray(V)) - exact) <= A.epsilon * np.linalg.norm(exact)


def test_what_products_promise_is_said_and_passed_on() -> None:
    wide, narrow = operator(X), operator(X, dtype=np.float32, tolerance=1e-6)
    assert (wide.mode, narrow.mode) == ("double", "accurate")
    assert wide.epsilon < 1e-12 < narrow.epsilon <= 2e-6
    for A in (wide, narrow):
        B = FeatureCentred(A)
        assert A.mode in A.precision
        assert (B.precision, B.epsilon) == (A.precision, A.epsilon)


def test_automatic_parameters_and_names_of_scikit_learn() -> None:
    assert operator(X, Z, kernel=Gaussian("scale")).kernel == Gaussian(scale_gamma(X))
    assert_allclose(operator(X, Z, kernel="rbf").to_dense(), rbf_kernel(X, Z), rtol=1e-12)
    both = Gaussian(0.3) + 2.0 * Laplacian(0.1)
    want = K + 2 * laplacian_kernel(X, gamma=0.1)
    assert_allclose(operator(X, kernel=both).to_dense(), want, rtol=1e-12)


def test_a_centred_kernel_matrix_is_factored_on_its_device() -> None:
    w, B = np.random.default_rng(5).uniform(0.5, 2, 60), np.random.default_rng(6).standard_normal((60, 2))
    root, H = np.sqrt(w)[:, None], np.eye(60) - np.outer(np.ones(60), w / w.sum())
    for A, M in ((operator(X), K), (FeatureCentred(operator(X), w), root * (H @ K @ H.T) * root.T)):
        assert_allclose(A.device_factor(0.7, np.float64).solve(B), np.linalg.solve(M + 0.7 * np.eye(60), B), atol=1e-11)
        assert_allclose(A.device_factor(0.7, np.float32).solve(B), np.linalg.solve(M + 0.7 * np.eye(60), B), atol=1e-4)


@pytest.mark.parametrize("kernel", [Callable(lambda a, b: float(a @ b)), MatrixFunction(rbf_kernel), Precomputed()])
def test_kernels_without_a_formula_are_refused_with_what_to_do(kernel: Any) -> None:
    with pytest.raises(ValueError, match="device='cpu'"):
        operator(K, kernel=kernel)
    with pytest.raises(ValueError, match=r"no formula.*device='cpu'"):
        kernel_device(CPU, kernel, K)


def test_sparse_points_and_points_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match=r"sparse.*device='cpu'"):
        operator(sp.csr_array(X))
    holes = X.copy()
    holes[4, 2] = np.nan
    with pytest.raises(ValueError, match="row 5, column 3"):
        operator(holes)
    with pytest.raises(ValueError, match="KernelOperator"):
        DeviceKernelOperator(Gaussian(0.3), X, device="cpu")


def test_the_factory_chooses_by_the_device() -> None:
    kinds: dict[Any, type[Operator]] = {None: KernelOperator, "cpu": KernelOperator, CPU: DeviceKernelOperator}
    for device, kind in kinds.items():
        A = kernel_operator(Gaussian(0.3), X, Z, device=device)
        assert type(A) is kind
        assert_allclose(np.asarray(A.to_dense()), rbf_kernel(X, Z, gamma=0.3), rtol=1e-12)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, and it would be chosen")
def test_without_a_gpu_auto_is_the_cpu_and_cuda_is_refused() -> None:
    assert kernel_device("auto", Gaussian(0.3), X) is None
    with pytest.raises(ValueError, match=r"'cuda'.*'cpu'"):
        kernel_device("cuda", Gaussian(0.3), X)


def test_what_no_card_can_do_goes_to_the_cpu_unless_one_is_named() -> None:
    assert kernel_device(CPU, Gaussian(0.3), X) == CPU
    assert kernel_device(CPU, Linear(), [[1.0, 2.0]]) == CPU
    assert kernel_device("auto", Precomputed(), K) is None
    assert kernel_device(None, Gaussian(0.3), sp.csr_array(X)) is None
    with pytest.raises(ValueError, match=r"sparse.*device='cpu'"):
        kernel_device(CPU, Gaussian(0.3), sp.csr_array(X))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", None), ("float32", None), ("float32", 5e-4)])
def test_on_cuda(dtype: str, tolerance: float | None) -> None:
    points = np.random.default_rng(7).standard_normal((3000, 20))
    V = np.random.default_rng(8).uniform(size=(3000, 5))
    A = DeviceKernelOperator(Gaussian(0.02), points, device=torch.device("cuda"), dtype=dtype, tolerance=tolerance)
    exact = rbf_kernel(points, gamma=0.02) @ V
    for _ in range(3):
        assert np.linalg.norm((A @ torch.asarray(V)).cpu().numpy() - exact) <= A.epsilon * np.linalg.norm(exact)
    assert A.stored is (dtype == "float64")
    assert "cuda" in A.precision
