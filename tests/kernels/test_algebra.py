"""Sums, products, multiples; equality, hashing, cloning; scikit-learn's names; automatic widths; the feature map."""

from __future__ import annotations

import copy
import pickle
from math import comb
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC

import gramian
from gramian.kernels import (
    Callable,
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
    median_distance,
    monomials,
    polynomial_features,
    scale_gamma,
)

X = np.random.default_rng(0).uniform(0, 2, (30, 4))
Z = np.random.default_rng(1).uniform(0, 2, (20, 4))
ATOMS = [Gaussian(0.4), Linear(), Polynomial(3), Matern(0.5), Sigmoid(), Laplacian(0.3)]
atoms = st.sampled_from(ATOMS)


@given(a=atoms, b=atoms, c=atoms, s=st.floats(0.1, 10))
def test_algebra_is_elementwise(a: Kernel, b: Kernel, c: Kernel, s: float) -> None:
    kernel = a * b + s * (b + c) * a
    want = a(X, Z) * b(X, Z) + s * (b(X, Z) + c(X, Z)) * a(X, Z)
    np.testing.assert_allclose(kernel(X, Z), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X)), rtol=1e-12, atol=1e-12)
    assert kernel.positive_semidefinite == (Sigmoid() not in (a, b, c))


def test_flags_of_combinations() -> None:
    assert (Gaussian(1.0) * Matern()).normalised
    assert not (Gaussian(1.0) + Matern()).normalised
    assert not (2 * Gaussian(1.0)).normalised
    assert (1 * Gaussian(1.0)).normalised
    assert (Gaussian("scale") + Linear()).automatic
    assert not (Gaussian("scale") + Linear()).resolved(X).automatic
    assert (2 * Gaussian("median")).resolved(X) == 2 * Gaussian("median").resolved(X)


def test_a_python_function_with_float32_points() -> None:
    small = X.astype(np.float32)
    for kernel in (Callable(np.dot) + Linear(), Linear() + Callable(np.dot)):
        assert kernel(small).dtype == np.float64
        np.testing.assert_allclose(kernel(small), 2 * small @ small.T, rtol=1e-6)


def test_other_operands_are_refused() -> None:
    with pytest.raises(TypeError):
        Linear() + 1.0  # type: ignore[operator]
    with pytest.raises(TypeError):
        Linear() * "2"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Gaussian(), "Gaussian()"),
        (Gaussian(0.5), "Gaussian(gamma=0.5)"),
        (Gaussian(bandwidth=2), "Gaussian(bandwidth=2.0)"),
        (Gaussian(range(1, 7)), "Gaussian(gamma=(1, ..., 6))"),
        (Polynomial(2, coef0=0), "Polynomial(degree=2, coef0=0.0)"),
        (Sigmoid(), "Sigmoid(indefinite)"),
        (2 * (Linear() + Gaussian(1.0)) * Matern(), "2.0 * (Linear() + Gaussian(gamma=1.0)) * Matern()"),
        (Callable(np.dot), "Callable(dot)"),
        (Precomputed(), "Precomputed()"),
    ],
)
def test_repr(kernel: Kernel, text: str) -> None:
    assert repr(kernel) == text


@pytest.mark.parametrize("kernel", [Gaussian([1.0, 2.0]), 2 * Matern(0.5) + Linear() * Polynomial(2), Callable(max)])
def test_kernels_are_values(kernel: Kernel) -> None:
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert twin == kernel
        assert hash(twin) == hash(kernel)
        assert {kernel: 1}[twin] == 1
    assert kernel != Linear()
    with pytest.raises(AttributeError):
        kernel.gamma = 3.0  # type: ignore[attr-defined]


class Holder(BaseEstimator):
    def __init__(self, kernel: Any = None) -> None:
        self.kernel = kernel


def test_estimators_with_kernels_can_be_cloned() -> None:
    twin = clone(Holder(Gaussian(np.array([1.0, 2.0]))))
    assert twin.get_params() == {"kernel": Gaussian((1.0, 2.0))}


@pytest.mark.parametrize(
    "name", ["additive_chi2", "chi2", "linear", "poly", "polynomial", "rbf", "laplacian", "sigmoid", "cosine"]
)
def test_names_and_defaults_are_scikit_learns(name: str) -> None:
    np.testing.assert_allclose(as_kernel(name)(X, Z), pairwise_kernels(X, Z, metric=name), rtol=1e-12)
    resolved = as_kernel(name).resolved(X)  # of four columns: γ = 1/4, kept for other data
    np.testing.assert_allclose(resolved(X, Z), pairwise_kernels(X, Z, metric=name), rtol=1e-12)


def test_parameters_reach_named_kernels() -> None:
    assert as_kernel("rbf", 0.3) == Gaussian(0.3)
    assert as_kernel("poly", 0.3, 2, 0.5) == Polynomial(2, 0.5, 0.3)
    assert as_kernel("sigmoid", 0.3, coef0=2) == Sigmoid(0.3, 2.0)
    assert as_kernel("precomputed") == Precomputed()
    assert as_kernel(Matern()) == Matern()

    def shifted(x: Any, z: Any, by: float = 0.0) -> float:
        return float(x @ z) + by

    np.testing.assert_allclose(as_kernel(shifted, by=3.0)(X), X @ X.T + 3.0)


def test_scale_is_that_of_scikit_learns_svc() -> None:
    svc = SVC(gamma="scale").fit(X, np.arange(30) % 2)
    assert scale_gamma(X) == pytest.approx(svc._gamma, rel=1e-14)
    assert Gaussian("scale").resolved(X) == Gaussian(scale_gamma(X))
    S = sp.csr_array(np.where(X < 1, 0, X))
    assert scale_gamma(S) == pytest.approx(scale_gamma(S.toarray()), rel=1e-14)
    assert scale_gamma(np.ones((3, 2))) == 0.5
    assert scale_gamma(X + 1e8) == pytest.approx(scale_gamma(X), rel=1e-6)


def test_median_distance_of_all_and_of_a_sample() -> None:
    assert median_distance(X) == pytest.approx(np.median(pdist(X)), rel=1e-13)
    assert median_distance(sp.csr_array(X)) == pytest.approx(np.median(pdist(X)), rel=1e-13)
    many = np.random.default_rng(3).standard_normal((5000, 3))
    assert median_distance(many) == median_distance(many)  # seeded
    assert median_distance(many) == pytest.approx(np.median(pdist(many)), rel=0.03)
    m = median_distance(X)
    assert Gaussian("median").resolved(X).gamma == pytest.approx(0.5 / m**2)
    assert Gaussian(bandwidth="median").resolved(X) == Gaussian("median").resolved(X)
    assert Matern(0.5, "median").resolved(X) == Matern(0.5, m)
    assert RationalQuadratic(2.0, "median").resolved(X) == RationalQuadratic(2.0, m)


def test_median_of_repeated_rows() -> None:
    repeated = np.repeat([[0.0], [1.0], [5.0]], [8, 1, 1], axis=0)
    assert median_distance(repeated) == 4.0  # of 1, 4 and 5: copies count once
    assert median_distance(sp.csr_array(repeated)) == 4.0
    with pytest.raises(ValueError, match="all equal"):
        median_distance(np.ones((4, 2)))


def test_automatic_parameters_need_one_set() -> None:
    np.testing.assert_allclose(Gaussian("scale")(X), Gaussian(scale_gamma(X))(X))
    with pytest.raises(ValueError, match="resolved"):
        Gaussian("scale")(X, Z)


@given(
    p=st.integers(1, 4),
    q=st.integers(1, 4),
    c=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    gamma=st.sampled_from([None, 0.3, 2.0]),
    seed=st.integers(0, 99),
)
def test_kernel_equals_inner_product_of_features(p: int, q: int, c: float, gamma: float | None, seed: int) -> None:
    A, B = np.random.default_rng(seed).standard_normal((2, 6, p))
    phi = polynomial_features(A, q, c, gamma), polynomial_features(B, q, c, gamma)
    np.testing.assert_allclose(phi[0] @ phi[1].T, Polynomial(q, c, gamma)(A, B), rtol=1e-10, atol=1e-10)
    assert phi[0].shape[1] == comb(p + q - (c == 0), q) == len(monomials(p, q, c == 0))


def test_degree_two_by_hand() -> None:
    x, y = 3.0, 5.0
    r = np.sqrt(2.0)
    np.testing.assert_allclose(polynomial_features([[x, y]], 2, 0, 1), [[x * x, r * x * y, y * y]])
    np.testing.assert_allclose(polynomial_features([[x, y]], 2, 1, 1), [[1, r * x, r * y, x * x, r * x * y, y * y]])


def test_monomials_in_the_order_of_scikit_learn() -> None:
    plain = PolynomialFeatures(3).fit_transform(X[:5])
    mine = np.column_stack([np.prod(X[:5][:, term], axis=1) for term in monomials(4, 3)])
    np.testing.assert_allclose(mine, plain, rtol=1e-12)


def test_no_feature_map_for_a_negative_constant() -> None:
    assert not Polynomial(2, -1.0).positive_semidefinite
    with pytest.raises(ValueError, match="negative"):
        polynomial_features(X, 2, -1.0)
    with pytest.raises(ValueError, match="2 dimensions"):
        polynomial_features(X[0])


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3, coef0=0.5, gamma=0.3),
        Polynomial(2, coef0=0.0),
        gramian.kernels.Cosine(),
        2.5 * Linear() + Polynomial(2).on([1, 3]),
        Linear().about_mean(X + 50.0),
        gramian.kernels.Cosine().about_mean(X + 50.0),
    ],
    ids=repr,
)
def test_features_give_the_kernel_within_its_rounding(kernel: Kernel) -> None:
    points = X + 50.0 if "About" in type(kernel).__name__ else X
    Phi, error = kernel.map_features(points, 1000), kernel.rounding(points)
    assert Phi is not None
    assert np.all(np.abs(Phi @ Phi.T - kernel(points)) <= 2.01 * np.outer(error, error))
    assert kernel.map_features(points, Phi.shape[1]) is not None
    assert kernel.map_features(points, Phi.shape[1] - 1) is None


@pytest.mark.parametrize("kernel", [Gaussian(), Linear() + Gaussian(), Linear() * Linear(), Polynomial(2, coef0=-1.0)])
def test_other_kernels_know_no_features(kernel: Kernel) -> None:
    assert kernel.map_features(X, 1000) is None
    assert Linear().map_features(sp.csr_array(X), 1000) is None
