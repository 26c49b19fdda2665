"""Rules that hold whatever the right answer is: rows in another order, scaled, shifted, repeated, rotated, stored."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from threadpoolctl import threadpool_limits

from gramian import KernelPCA
from gramian.kernels import (
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from oracles import Array

K = 3
KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "polynomial": Polynomial(3, 1.0, 0.2),
    "sigmoid": Sigmoid(0.05, 0.1),
    "cosine": Cosine(),
    "gaussian": Gaussian(0.3),
    "wide gaussian": Gaussian(1e-9),
    "laplacian": Laplacian(0.2),
    "matern": Matern(1.5, 2.0),
    "rational": RationalQuadratic(0.8, 2.0),
    "sum": Linear() + 2.0 * Gaussian(0.5),
    "product": Gaussian(0.1) * Laplacian(0.1),
}
SHIFTED = ["linear", "gaussian", "wide gaussian", "laplacian", "matern", "rational", "sum", "product"]
ROTATED = ["linear", "polynomial", "sigmoid", "cosine", "gaussian", "wide gaussian", "matern", "rational", "sum"]
SOLVERS = ["dense", "krylov", "nystrom"]

pytestmark = pytest.mark.filterwarnings("ignore:The kernel matrix is indefinite")


def rows(n: int = 60, seed: int = 0) -> Array:
    """Rows on a grid of 2⁻¹⁰, which shifts by whole numbers keep exact."""
    spread = np.array([3.0, 2.0, 1.2, 0.5])
    return np.round(np.random.default_rng(seed).standard_normal((n, 4)) * spread * 1024) / 1024


def fit(X: Any, name: str | Kernel, solver: str = "dense", **params: Any) -> KernelPCA:
    kernel = KERNELS[name] if isinstance(name, str) else name
    weights = params.pop("sample_weight", None)
    # landmarks as many as rows: Nyström then is exact
    model = KernelPCA(K, kernel=kernel, eigen_solver=solver, tol=1e-10, n_landmarks=len(rows()), **params)
    return model.fit(X, sample_weight=weights)


def assert_same(ours: Array, theirs: Array, size: float | None = None) -> None:
    assert_allclose(ours, theirs, rtol=0, atol=1e-8 * (np.max(np.abs(theirs)) if size is None else size))


def assert_same_up_to_sign(ours: Array, theirs: Array) -> None:
    signs = np.sign(np.sum(ours * theirs, axis=0))
    assert_allclose(ours * signs, theirs, atol=1e-6 * np.max(np.abs(theirs)))


def usable(name: str, solver: str) -> None:
    if name == "sigmoid" and solver == "nystrom":
        pytest.skip("Nyström needs inner products")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", KERNELS)
def test_rows_in_another_order_have_the_same_scores(name: str, solver: str) -> None:
    usable(name, solver)
    X, order = rows(), np.random.default_rng(1).permutation(60)
    here, there = fit(X, name, solver), fit(X[order], name, solver)
    assert_same(there.eigenvalues_, here.eigenvalues_)
    assert_same_up_to_sign(there.transform(rows(9, 2)), here.transform(rows(9, 2)))


@pytest.mark.parametrize("weights", [None, np.arange(60) % 3 + 0.5, np.arange(60) % 3])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", KERNELS)
def test_fit_transform_is_fit_and_transform(name: str, solver: str, weights: Any) -> None:
    usable(name, solver)
    model = KernelPCA(K, kernel=KERNELS[name], eigen_solver=solver, tol=1e-10, n_landmarks=60)
    Z = model.fit_transform(rows(), sample_weight=weights)
    assert_same(model.transform(rows()), Z)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
@pytest.mark.parametrize(
    ("kernel", "power"),
    [
        (lambda c: Linear(), 2),
        (lambda c: Cosine(), 0),
        (lambda c: Gaussian(0.3 / c**2), 0),
        (lambda c: Laplacian(0.2 / c), 0),
        (lambda c: Matern(2.5, 2.0 * c), 0),
        (lambda c: RationalQuadratic(0.8, 2.0 * c), 0),
        (lambda c: Polynomial(2, 1.0, 0.2 / c**2), 0),
    ],
)
def test_scaled_rows_with_a_scaled_kernel(kernel: Any, power: int, factor: float, solver: str) -> None:
    here, there = fit(rows(), kernel(1.0), solver), fit(rows() * factor, kernel(factor), solver)
    assert_same(there.eigenvalues_ / factor**power, here.eigenvalues_)
    Z = there.transform(rows(9, 2) * factor) / factor ** (power / 2)
    assert_same_up_to_sign(Z, here.transform(rows(9, 2)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shift", [1.0, 2.0**20, 2.0**40])
@pytest.mark.parametrize("name", SHIFTED)
def test_shifted_rows_have_the_same_scores(name: str, shift: float, solver: str) -> None:
    here, there = fit(rows(), name, solver), fit(rows() + shift, name, solver)
    assert_same(there.eigenvalues_, here.eigenvalues_)
    assert_same_up_to_sign(there.transform(rows(9, 2) + shift), here.transform(rows(9, 2)))
    assert_same(there.novelty(rows(9, 2) + shift).spe, here.novelty(rows(9, 2)).spe)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_row_twice_is_a_row_of_weight_two(name: str, solver: str) -> None:
    usable(name, solver)
    X, times = rows(30), np.random.default_rng(1).integers(1, 4, 30)
    here, there = fit(X, name, solver, sample_weight=times), fit(np.repeat(X, times, axis=0), name, solver)
    assert_same(here.eigenvalues_, there.eigenvalues_)
    assert_same_up_to_sign(here.transform(rows(9, 2)), there.transform(rows(9, 2)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ROTATED)
def test_rotated_rows_have_the_same_scores(name: str, solver: str) -> None:
    usable(name, solver)
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    here, there = fit(rows(), name, solver), fit(rows() @ Q, name, solver)
    assert_same(there.eigenvalues_, here.eigenvalues_)
    assert_same_up_to_sign(there.transform(rows(9, 2) @ Q), here.transform(rows(9, 2)))


@pytest.mark.parametrize("solver", ["dense", "nystrom"])
@pytest.mark.parametrize("name", KERNELS)
def test_one_thread_and_two_give_the_same_bits(name: str, solver: str) -> None:
    usable(name, solver)
    X, found = rows(500 if solver == "dense" else 700), []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            model = KernelPCA(K, kernel=KERNELS[name], eigen_solver=solver, n_landmarks=40, tol=1e2).fit(X)
            found.append((model.eigenvalues_, model.transform(rows(300, 2))))
    assert_array_equal(found[0][0], found[1][0])
    assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_less_working_memory_gives_the_same_answer(solver: str) -> None:
    X = rows(600)
    here = fit(X, "gaussian", solver)
    with config_context(working_memory=1):
        there = fit(X, "gaussian", solver)
        Z = there.transform(rows(9, 2))
    assert_same(there.eigenvalues_, here.eigenvalues_)
    assert_same_up_to_sign(Z, here.transform(rows(9, 2)))


def as_file(X: Array, folder: Path) -> Path:
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def as_tensor(X: Array, folder: Path) -> Any:
    return pytest.importorskip("torch").tensor(X)


FORMS: dict[str, Any] = {
    "file": as_file,
    "CSR": lambda X, folder: sp.csr_array(X),
    "CSC": lambda X, folder: sp.csc_array(X),
    "columns first": lambda X, folder: np.asfortranarray(X),
    "list": lambda X, folder: X.tolist(),
    "tensor": as_tensor,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*KERNELS, "chi2"])
def test_a_file_an_array_a_sparse_matrix_and_a_tensor_have_the_same_scores(
    name: str, form: str, tmp_path: Path
) -> None:
    kernel, X = (Chi2(0.5), np.abs(rows())) if name == "chi2" else (KERNELS[name], rows())
    if name == "chi2" and form in ("CSR", "CSC"):
        pytest.skip("chi-squared kernels take dense rows")
    if form == "tensor" and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    here, there = fit(X, kernel), fit(FORMS[form](X, tmp_path), kernel)
    # a device evaluates what a wide kernel is, and not what it is about the mean: digits as it states
    size = float(np.max(there.certificate_.value_bounds)) / 1e-8 + float(here.eigenvalues_[0])
    assert_same(np.asarray(there.eigenvalues_), here.eigenvalues_, size)
    if name != "wide gaussian":
        assert_same_up_to_sign(np.asarray(there.transform(FORMS[form](X[:9], tmp_path))), here.transform(X[:9]))
