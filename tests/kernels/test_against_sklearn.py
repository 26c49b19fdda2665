"""Every kernel against scikit-learn's, on dense and sparse data, in both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from gramian.kernels import (
    AdditiveChi2,
    Callable,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    as_kernel,
)

LENGTHS = np.array([0.5, 1.0, 2.0, 0.7, 1.5])


def points(n: int, seed: int, dtype: Any = np.float64) -> np.ndarray:
    X = np.random.default_rng(seed).uniform(0, 2, (n, 5))
    return np.where(X < 0.4, 0.0, X).astype(dtype)  # zeros, for sparse data


# kernel, and the same by scikit-learn
TWINS: dict[str, tuple[Kernel, Any]] = {
    "gaussian": (Gaussian(0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3)),
    "gaussian-default": (Gaussian(), pairwise.rbf_kernel),
    "gaussian-bandwidth": (Gaussian(bandwidth=1.7), lambda X, Z: gp.RBF(1.7)(X, Z)),
    "gaussian-ard": (Gaussian(bandwidth=LENGTHS), lambda X, Z: gp.RBF(LENGTHS)(X, Z)),
    "gaussian-beta": (Gaussian(beta=1 / (2 * LENGTHS**2)), lambda X, Z: gp.RBF(LENGTHS)(X, Z)),
    "linear": (Linear(), pairwise.linear_kernel),
    "polynomial": (Polynomial(), pairwise.polynomial_kernel),
    "polynomial-1": (Polynomial(1, 0.5, 2.0), lambda X, Z: pairwise.polynomial_kernel(X, Z, 1, 2.0, 0.5)),
    "polynomial-2": (Polynomial(2, 0.0, 1.0), lambda X, Z: pairwise.polynomial_kernel(X, Z, 2, 1.0, 0.0)),
    "polynomial-7": (Polynomial(7, 1.5, 0.2), lambda X, Z: pairwise.polynomial_kernel(X, Z, 7, 0.2, 1.5)),
    "sigmoid": (Sigmoid(0.2, -0.5), lambda X, Z: pairwise.sigmoid_kernel(X, Z, 0.2, -0.5)),
    "cosine": (Cosine(), pairwise.cosine_similarity),
    "laplacian": (Laplacian(0.4), lambda X, Z: pairwise.laplacian_kernel(X, Z, 0.4)),
    "laplacian-default": (Laplacian(), pairwise.laplacian_kernel),
    "matern-1": (Matern(0.5, 1.3), lambda X, Z: gp.Matern(1.3, nu=0.5)(X, Z)),
    "matern-3": (Matern(1.5, 1.3), lambda X, Z: gp.Matern(1.3, nu=1.5)(X, Z)),
    "matern-5-ard": (Matern(2.5, LENGTHS), lambda X, Z: gp.Matern(LENGTHS, nu=2.5)(X, Z)),
    "rational": (RationalQuadratic(0.7, 1.2), lambda X, Z: gp.RationalQuadratic(1.2, 0.7)(X, Z)),
    "rational-1": (RationalQuadratic(), lambda X, Z: gp.RationalQuadratic()(X, Z)),
    "chi2": (Chi2(0.6), lambda X, Z: pairwise.chi2_kernel(X, Z, 0.6)),
    "additive-chi2": (AdditiveChi2(), pairwise.additive_chi2_kernel),
    "callable": (Callable(np.dot), pairwise.linear_kernel),
}
DENSE_ONLY = {"chi2", "additive-chi2"}
cases = pytest.mark.parametrize("name", TWINS)


@cases
def test_agrees_with_scikit_learn(name: str) -> None:
    kernel, twin = TWINS[name]
    X, Z = points(40, 0), points(31, 1)
    np.testing.assert_allclose(kernel(X, Z), twin(X, Z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(X), twin(X, X), rtol=1e-12, atol=1e-13)


@cases
def test_float32_is_kept_and_accurate(name: str) -> None:
    kernel, twin = TWINS[name]
    X, Z = points(40, 0, np.float32), points(31, 1, np.float32)
    got, want = kernel(X, Z), twin(X.astype(float), Z.astype(float))
    assert got.dtype == (np.float64 if name == "callable" else np.float32)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("name", sorted(set(TWINS) - DENSE_ONLY))
def test_sparse_points_give_the_same(name: str) -> None:
    kernel, _ = TWINS[name]
    X, Z = points(40, 0), points(31, 1)
    np.testing.assert_allclose(kernel(sp.csr_array(X), sp.csr_matrix(Z)), kernel(X, Z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(sp.coo_array(X)), kernel(X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(2), Cosine()])
def test_sparse_beside_dense(kernel: Kernel) -> None:
    X, Z = points(12, 0), points(9, 1)
    np.testing.assert_allclose(kernel(sp.csr_array(X), Z), kernel(X, Z), rtol=1e-12)
    np.testing.assert_allclose(kernel(X, sp.csr_array(Z)), kernel(X, Z), rtol=1e-12)


@cases
def test_diagonal_symmetry_and_normalisation(name: str) -> None:
    kernel, _ = TWINS[name]
    X = points(600, 2)  # more than one tile
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(K), rtol=1e-12, atol=1e-14)
    if kernel.normalised:
        np.testing.assert_array_equal(np.diagonal(K), 1.0)
        assert K.max() <= 1.0


@cases
def test_positive_semidefinite_kernels_have_no_negative_eigenvalues(name: str) -> None:
    kernel, _ = TWINS[name]
    values = np.linalg.eigvalsh(kernel(points(60, 3)))
    if kernel.positive_semidefinite:
        assert values[0] >= -1e-12 * values[-1]
    else:
        assert values[0] < -1e-3  # sigmoid with c < 0, and the additive chi-squared


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    gamma=st.floats(1e-3, 1e3),
    name=st.sampled_from(["rbf", "laplacian", "chi2", "matern", "rational", "product", "sum"]),
)
def test_psd_for_any_width(seed: int, n: int, gamma: float, name: str) -> None:
    X = np.random.default_rng(seed).uniform(0, 3, (n, 3))
    X[n // 2 :] = X[: n - n // 2]  # repeated points: a singular matrix
    kernel = {
        "matern": Matern(2.5, gamma),
        "rational": RationalQuadratic(0.5, gamma),
        "product": Gaussian(gamma) * Polynomial(2),
        "sum": Gaussian(gamma) + 0.5 * Laplacian(gamma),
    }.get(name) or as_kernel(name, gamma)
    values = np.linalg.eigvalsh(kernel(X))
    assert values[0] >= -1e-13 * n * values[-1]


def test_a_zero_row_has_cosine_zero() -> None:
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_array_equal(Cosine()(X), [[0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(Cosine().diagonal(X), [0.0, 1.0])


def test_cosines_of_parallel_rows_do_not_pass_one() -> None:
    rows = np.random.default_rng(4).standard_normal((200, 50))
    K = Cosine()(rows, np.concatenate([3 * rows, -7 * rows]))
    assert np.abs(K).max() == 1.0
    np.testing.assert_allclose(K[np.arange(200), np.arange(200)], 1.0, rtol=1e-15)


def test_precomputed_is_the_matrix() -> None:
    K = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(Precomputed()(K), K)
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        Precomputed().diagonal(K)
    with pytest.raises(ValueError, match="no Z"):
        Precomputed()(K, K)


def test_callable_on_strings_sets_and_with_parameters() -> None:
    def shared(a: Any, b: Any, power: int = 1) -> float:
        return float(len(set(a) & set(b)) ** power)

    words, sets = ["gram", "ram", "go"], [{1, 2}, {2, 3}, set()]
    K = Callable(shared, (("power", 2),))(words, ("mag", "or"))
    np.testing.assert_array_equal(K, [[9, 1], [4, 1], [1, 1]])
    np.testing.assert_array_equal(Callable(shared)(sets), [[2, 1, 0], [1, 2, 0], [0, 0, 0]])
    np.testing.assert_array_equal(Callable(shared).diagonal(words), [4, 3, 2])


def test_callable_is_called_once_for_each_unordered_pair() -> None:
    calls: list[tuple[int, int]] = []

    def product(a: int, b: int) -> float:
        calls.append((a, b))
        return float(a * b)

    K = Callable(product)(list(range(1, 6)))
    np.testing.assert_array_equal(K, np.outer(np.arange(1, 6), np.arange(1, 6)))
    assert len(calls) == 15


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(1.0, beta=2.0), "one of gamma, beta and bandwidth; got gamma and beta"),
        (lambda: Gaussian(-1.0), "gamma must be a positive number"),
        (lambda: Gaussian("wide"), "'median', 'scale'; got 'wide'"),
        (lambda: Gaussian([1.0, 0.0]), "one for each feature"),
        (lambda: Gaussian([1.0, 2.0])(np.ones((2, 3))), "2 values for data with 3 columns"),
        (lambda: Matern(1.0), "nu must be one of"),
        (lambda: RationalQuadratic([1.0, 2.0]), "alpha is one number"),
        (lambda: Polynomial(2.5), "degree must be a whole number"),
        (lambda: Polynomial(0), "degree must be a whole number"),
        (lambda: Polynomial(2, np.inf), "coef0 must be a finite"),
        (lambda: Polynomial(2, 1.0, [1.0, 2.0]), "gamma is one number"),  # type: ignore[arg-type]
        (lambda: Sigmoid([1.0, 2.0]), "gamma is one number"),  # type: ignore[arg-type]
        (lambda: Chi2(0.0), "gamma must be a positive"),
        (lambda: Chi2()(np.array([[1.0, 2.0], [0.0, -3.0]])), "row 2, column 2 is -3.0"),
        (lambda: Chi2()(sp.eye_array(2)), r"toarray"),
        (lambda: Laplacian()(sp.eye_array(2), np.eye(2)), r"toarray"),
        (lambda: Callable("rbf"), "function must be callable"),
        (lambda: Linear()(np.ones(3)), r"got shape \(3,\)"),
        (lambda: Linear()(np.array([["a"]])), "use Callable"),
        (lambda: Linear()(np.ones((2, 3)), np.ones((2, 4))), "3 columns and Z has 4"),
        (lambda: Gaussian()(np.ones((2, 3)), np.ones((2, 4))), "3 columns and Z has 4"),
        (lambda: Linear()(np.array([[1.0, 2.0], [3.0, np.nan]])), "row 2, column 2 is nan"),
        (lambda: Gaussian()(np.eye(2), sp.csr_array([[0.0, np.inf]])), "stored value 1 is inf"),
        (lambda: Gaussian(1.0)(np.array([[0.0], [1e25]], dtype=np.float32)), "overflow float32"),
        (lambda: Gaussian(1.0)(np.array([[0.0], [1e200]])), "overflow float64"),
        (lambda: -2.0 * Linear(), "positive numbers"),
        (lambda: as_kernel("rbff"), "one of additive_chi2"),
    ],
)
def test_bad_input_is_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
