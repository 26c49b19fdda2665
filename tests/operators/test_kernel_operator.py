"""The kernel operator beyond the contract: what is stored and when, columns, files, objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.metrics.pairwise import rbf_kernel

import gramian
from gramian.kernels import Callable, Gaussian, Linear, Precomputed, scale_gamma
from gramian.operators import KernelOperator
from gramian.spectral import Krylov

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((60, 4)), RNG.standard_normal((25, 4))
K = rbf_kernel(X, gamma=0.3)
K = (K + K.T) / 2  # to the last bit


def test_the_second_product_stores_a_matrix_that_fits() -> None:
    A, v = KernelOperator(Gaussian(0.3), X), np.ones(60)
    first = A @ v
    assert not A.stored
    second = A @ v
    assert A.stored
    third = A @ v
    np.testing.assert_allclose(first, K @ v, rtol=1e-13)
    np.testing.assert_allclose(second, K @ v, rtol=1e-13)
    np.testing.assert_array_equal(second, third)
    assert (A.passes, A.evaluations) == (3, 2)


def test_a_matrix_beyond_half_of_working_memory_is_not_stored() -> None:
    needed = 60 * 61 / 2 * 8 / 2**20  # one triangle
    for memory, stored in ((2.01 * needed, True), (1.99 * needed, False)):
        A = KernelOperator(Gaussian(0.3), X)
        with config_context(working_memory=memory):
            A @ np.ones(60)
            A @ np.ones(60)
        assert A.stored is stored


def test_storing_can_be_demanded_and_forbidden() -> None:
    always, never = (KernelOperator(Gaussian(0.3), X, store=store) for store in (True, False))
    for A in (always, never):
        for _ in range(3):
            np.testing.assert_allclose(A @ np.ones(60), K.sum(axis=1), rtol=1e-13)
    assert always.stored
    assert not never.stored
    assert never.evaluations == 3
    with pytest.raises(ValueError, match="store must be"):
        KernelOperator(Gaussian(0.3), X, store="maybe")


def test_a_symmetric_operator_is_its_transpose() -> None:
    A, B = KernelOperator(Gaussian(0.3), X), KernelOperator(Gaussian(0.3), X, Z)
    assert A.symmetric
    assert A.T is A
    assert not B.symmetric
    np.testing.assert_allclose(B.T.to_dense(), rbf_kernel(Z, X, gamma=0.3), rtol=1e-13)


@pytest.mark.parametrize("store", [True, False])
def test_columns_and_diagonal(store: bool) -> None:
    A, some = KernelOperator(Gaussian(0.3), X, store=store), np.array([7, 3, 3])
    A @ np.ones(60)
    np.testing.assert_allclose(A.columns(some), K[:, some], rtol=1e-13)
    np.testing.assert_allclose(A.columns(some, [5, 0]), K[np.ix_([5, 0], some)], rtol=1e-13)
    np.testing.assert_array_equal(A.diagonal(), 1.0)
    B = KernelOperator(Gaussian(0.3), X, Z)
    np.testing.assert_allclose(B.columns([2]), rbf_kernel(X, Z[[2]], gamma=0.3), rtol=1e-13)
    with pytest.raises(ValueError, match="no diagonal"):
        B.diagonal()


def test_rows_of_a_stored_matrix_come_in_blocks() -> None:
    many = np.random.default_rng(3).standard_normal((600, 4))
    A, want = KernelOperator(Gaussian(0.3), many, store=True), rbf_kernel(many, gamma=0.3)
    A @ np.ones(600)
    with config_context(working_memory=1.0):
        blocks = list(A.rows())
    assert len(blocks) > 1
    np.testing.assert_allclose(np.concatenate([block for _, _, block in blocks]), want, rtol=1e-12)
    np.testing.assert_allclose(A.to_dense(), want, rtol=1e-12)


def test_automatic_parameters_come_from_x() -> None:
    assert KernelOperator(Gaussian("scale"), X, Z).kernel == Gaussian(scale_gamma(X))


def test_names_of_scikit_learn() -> None:
    assert KernelOperator("rbf", X, Z).kernel == Gaussian()
    np.testing.assert_allclose(KernelOperator("rbf", X, Z).to_dense(), rbf_kernel(X, Z), rtol=1e-12)


def test_float32_products_of_float64_points() -> None:
    A = KernelOperator(Gaussian(0.3), X, dtype=np.float32)
    assert (A @ np.ones(60)).dtype == np.float32
    np.testing.assert_allclose(A @ np.ones(60), K.sum(axis=1), rtol=1e-5)


def test_a_file_is_read_in_blocks_of_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    want = rbf_kernel(X, Z, gamma=0.3)
    V, U = np.random.default_rng(1).standard_normal((25, 3)), np.random.default_rng(2).standard_normal((60, 3))
    with config_context(working_memory=0.002):
        A = KernelOperator(Gaussian(0.3), tmp_path / "x.npy", Z)
        assert not A.resident
        assert A.shape == (60, 25)
        np.testing.assert_allclose(A @ V, want @ V, atol=1e-13)
        np.testing.assert_allclose(A.T @ U, want.T @ U, atol=1e-13)
        np.testing.assert_allclose(A.to_dense(), want, atol=1e-13)
        np.testing.assert_allclose(A.cogram(), want @ want.T, atol=1e-12)
        assert not A.stored
    with pytest.raises(ValueError, match="memory"):
        A.columns([0])
    with pytest.raises(ValueError, match="Resolve it"):
        KernelOperator(Gaussian("scale"), tmp_path / "x.npy", Z)
    whole = KernelOperator(Gaussian(0.3), gramian.open(tmp_path / "x.npy"))
    np.testing.assert_allclose(whole.to_dense(), K, rtol=1e-13)
    assert whole.symmetric


@pytest.mark.parametrize("convert", [sp.csr_array, np.asfortranarray, lambda A: A.tolist()])
def test_points_of_any_kind(convert: Any) -> None:
    A = KernelOperator(Gaussian(0.3), convert(X), convert(Z))
    np.testing.assert_allclose(A @ np.ones(25), rbf_kernel(X, Z, gamma=0.3).sum(axis=1), rtol=1e-12)


def test_objects_and_precomputed() -> None:
    words = ["gram", "ram", "go", "margin"]
    A = KernelOperator(Callable(lambda a, b: float(len(set(a) & set(b)))), words)
    full = A.to_dense()
    np.testing.assert_array_equal(full[1], [3, 3, 0, 3])
    np.testing.assert_array_equal(A.columns([3, 0], [1, 2]), full[np.ix_([1, 2], [3, 0])])
    np.testing.assert_array_equal(A @ np.ones(4), full.sum(axis=1))
    P = KernelOperator(Precomputed(), K)
    assert P.symmetric
    np.testing.assert_allclose(P @ np.ones(60), K.sum(axis=1))
    np.testing.assert_array_equal(P.columns([3, 1], [0, 2]), K[np.ix_([0, 2], [3, 1])])
    np.testing.assert_array_equal(P.diagonal(), np.diagonal(K))
    lopsided = K.copy()
    lopsided[0, 1] = 5.0
    np.testing.assert_allclose(KernelOperator(Precomputed(), lopsided).T @ np.ones(60), lopsided.T @ np.ones(60))


def test_solvers_take_it() -> None:
    result = Krylov()(KernelOperator(Gaussian(0.3), X), 3)
    np.testing.assert_allclose(result.values, np.linalg.eigvalsh(K)[:-4:-1], rtol=1e-9)
    assert result.certificate.converged


def test_linear_kernel_is_the_gram_matrix() -> None:
    np.testing.assert_allclose(KernelOperator(Linear(), X).to_dense(), X @ X.T, rtol=1e-12, atol=1e-13)
