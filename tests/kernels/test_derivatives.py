"""Derivatives of kernels by their parameters against differences, and kernels of some of the columns."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian
from gramian import KernelRidge
from gramian.kernels import (
    Callable,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    Precomputed,
    RationalQuadratic,
)
from gramian.kernels.derivatives import evaluate_with_derivatives, list_parameters, parts_of, with_parameters

KERNELS = [
    Gaussian((0.3, 0.1, 0.6)),
    Matern(0.5, (1.0, 2.0, 3.0)),
    Matern(1.5, 2.0),
    Matern(2.5, (1.0, 2.0, 3.0)),
    RationalQuadratic(0.7, (1.0, 2.0, 3.0)),
    Laplacian((0.3, 0.2, 0.1)),
    Polynomial(3, coef0=0.7, gamma=0.4),
    Polynomial(2, coef0=0.0),
    Linear() + 0.5 * Gaussian(0.2) * Matern(2.5, 2.0),
    3.0 * Gaussian(0.2).on([2, 0]) + (Linear() + 2.0 * Polynomial(2)).on([1]) + Cosine(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("square", [True, False])
def test_derivatives_are_those_of_differences(kernel, square):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(9, 3)) + 2.0, None if square else rng.normal(size=(7, 3)) + 2.0
    G = rng.normal(size=(9, 9 if square else 7))
    K, pull = evaluate_with_derivatives(kernel, X, Z)
    np.testing.assert_allclose(K, kernel(X, Z), rtol=1e-12, atol=1e-14)
    values, found, h = np.array([one.value for one in list_parameters(kernel, 3)]), pull(G), 1e-5
    for k in range(len(values)):
        moved = [np.where(np.arange(len(values)) == k, values * np.exp(step), values) for step in (h, -h)]
        ends = [np.sum(G * with_parameters(kernel, 3, some)(X, Z)) for some in moved]
        assert found[k] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_parameters_are_put_back_where_they_were(kernel):
    X = np.random.default_rng(1).normal(size=(6, 3))
    again = with_parameters(kernel, 3, [one.value for one in list_parameters(kernel, 3)])
    np.testing.assert_allclose(again(X), kernel(X), rtol=1e-12)
    assert [type(part) for part in parts_of(again)] == [type(part) for part in parts_of(kernel)]


INSIDE = [Gaussian(0.3), Laplacian((0.2, 0.4)), Linear(), Polynomial(2), Cosine(), 2.0 * Gaussian(0.1) + Linear()]


@pytest.mark.parametrize("kernel", INSIDE, ids=repr)
def test_kernel_of_some_columns_is_that_of_the_columns(kernel):
    X = np.random.default_rng(2).normal(size=(8, 4)) + 1.0
    some = kernel.on([3, 1])
    np.testing.assert_array_equal(some(X), kernel(X[:, [3, 1]]))
    np.testing.assert_array_equal(some(X[:3], X[3:]), kernel(X[:3, [3, 1]], X[3:, [3, 1]]))
    np.testing.assert_array_equal(some.diagonal(X), kernel.diagonal(X[:, [3, 1]]))
    np.testing.assert_allclose(some(sp.csr_array(X)), some(X), rtol=1e-12)
    assert some == kernel.on((3, 1))
    assert some.normalised == kernel.normalised


def test_a_rule_is_resolved_for_the_columns_it_is_of():
    X = np.random.default_rng(3).normal(size=(20, 3)) * [1.0, 100.0, 1.0]
    assert Gaussian("median").on([0, 2]).resolved(X).kernel == Gaussian("median").resolved(X[:, [0, 2]])


def test_a_model_of_columns_is_kept_in_a_file(tmp_path):
    X = np.random.default_rng(4).normal(size=(20, 3))
    kernel = Gaussian(0.5).on([0]) + 0.1 * Linear().on(range(1, 3))
    assert "on([0])" in repr(kernel)
    model = KernelRidge(0.1, kernel=kernel).fit(X, X[:, 0])
    gramian.save(model, tmp_path / "model.gramian")
    np.testing.assert_array_equal(gramian.load(tmp_path / "model.gramian").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("kernel", "columns", "named"),
    [
        (Linear(), [], "at least one"),
        (Linear(), [0, 0], "twice"),
        (Linear(), [-1], "counted from 0"),
        (Linear(), [0.5], "whole numbers"),
        (Precomputed(), [0], "rows of numbers"),
        (Callable(len), [0], "rows of numbers"),
    ],
)
def test_columns_that_cannot_be_taken_are_refused(kernel, columns, named):
    with pytest.raises(ValueError, match=named):
        OnColumns(kernel, columns)


def test_a_column_beyond_the_last_is_named():
    with pytest.raises(ValueError, match="column 5"):
        Linear().on([5])(np.eye(3))
