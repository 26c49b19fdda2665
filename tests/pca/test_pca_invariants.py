"""What no choice of memory, solver or seed may change."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import gramian
from gramian import PCA
from oracles import naive_pca, separated, sparse_rows, with_spectrum

SOLVERS = ["auto", "full", "covariance_eigh", "arpack", "krylov", "randomized", "power"]
SHAPES = [(300, 6), (40, 40), (12, 200)]


def fit(data: Any, solver: str, **params: Any) -> PCA:
    return PCA(3, svd_solver=solver, tol=1e-11, random_state=0, **params).fit(data)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("memory", [0.0005, 0.005, 0.1])
def test_any_working_memory_gives_the_same_answer(
    tmp_path: Path, shape: tuple[int, int], solver: str, memory: float
) -> None:
    X = separated(*shape)
    np.save(tmp_path / "data.npy", X)
    naive = naive_pca(X)
    with sklearn.config_context(working_memory=memory):
        for data in (X, tmp_path / "data.npy", gramian.open(np.asfortranarray(X))):
            fitted = fit(data, solver)
            assert_allclose(fitted.components_, naive.components[:3], atol=1e-8)
            assert_allclose(fitted.explained_variance_, naive.variances[:3], rtol=1e-9)
            assert_allclose(fitted.transform(data), (X - naive.mean) @ naive.components[:3].T, atol=1e-7)


@pytest.mark.parametrize("solver", ["arpack", "covariance_eigh", "krylov", "randomized", "power"])
@pytest.mark.parametrize("memory", [0.0005, 0.005, 0.1])
def test_any_working_memory_for_sparse_data(solver: str, memory: float) -> None:
    X = sparse_rows(90, 30, 0.2)
    X = X @ sparse.diags_array(np.geomspace(5, 0.5, 30))
    naive = naive_pca(X.toarray())
    with sklearn.config_context(working_memory=memory):
        fitted = fit(X, solver)
        assert_allclose(fitted.explained_variance_, naive.variances[:3], rtol=1e-9)
        assert_allclose(fitted.components_, naive.components[:3], atol=1e-7)
        assert_allclose(fitted.transform(X), fitted.transform(X.toarray()), atol=1e-9)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_data_are_never_modified(solver: str, dtype: Any, order: Any, copy: bool) -> None:
    X = np.asarray(separated(60, 6), dtype=dtype, order=order)
    before, weights = X.copy(), np.linspace(0.5, 2, 60)
    model = PCA(3, svd_solver=solver, copy=copy, scale=True, random_state=0)
    model.fit(X, sample_weight=weights)
    model.fit_transform(X)
    PCA(3, scale=True).partial_fit(X).components_.sum()
    codes = model.transform(X)
    kept = codes.copy()
    model.inverse_transform(codes)
    model.reconstruction_error(X)
    model.score(X)
    assert_array_equal(X, before)
    assert_array_equal(codes, kept)
    assert_array_equal(weights, np.linspace(0.5, 2, 60))


def test_sparse_data_are_never_modified() -> None:
    X = sparse_rows(60, 8, 0.4)
    before = X.copy()
    model = PCA(3, svd_solver="krylov", scale=True, random_state=0)
    model.fit(X, sample_weight=np.linspace(0.5, 2, 60)).transform(X)
    for part in ("data", "indices", "indptr"):
        assert_array_equal(getattr(X, part), getattr(before, part))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_fit_transform_is_fit_then_transform(solver: str, whiten: bool, scale: bool) -> None:
    for X in (separated(60, 8), separated(10, 40), separated(60, 8).astype(np.float32)):
        model = PCA(3, svd_solver=solver, whiten=whiten, scale=scale, random_state=0)
        tol = 1e-9 if X.dtype == np.float64 else 1e-4
        assert_allclose(model.fit_transform(X), model.fit(X).transform(X), rtol=tol, atol=tol)


def test_fit_transform_with_weights_returns_every_row() -> None:
    X, weights = separated(40, 6), np.arange(40) % 3
    model = PCA(2)
    codes = model.fit_transform(X, sample_weight=weights)
    assert codes.shape == (40, 2)
    assert_allclose(codes, model.transform(X), atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_same_seed_same_bits(shape: tuple[int, int], solver: str) -> None:
    X = separated(*shape)
    for seed in (0, 7):
        one, other = (PCA(3, svd_solver=solver, random_state=seed).fit(X) for _ in range(2))
        assert_array_equal(one.components_, other.components_)
        assert_array_equal(one.explained_variance_, other.explained_variance_)
        assert one.certificate_.as_dict() == other.certificate_.as_dict()


def test_a_random_state_object_is_accepted() -> None:
    X = separated(60, 20)
    seeded = PCA(3, svd_solver="randomized", random_state=np.random.RandomState(0)).fit(X)
    free = PCA(3, svd_solver="randomized", random_state=None).fit(X)
    assert_allclose(seeded.singular_values_, free.singular_values_, rtol=1e-5)


@given(
    shape=st.sampled_from([(20, 5), (6, 15), (10, 10)]),
    solver=st.sampled_from(SOLVERS),
    seed=st.integers(0, 1000),
    weighted=st.booleans(),
)
def test_largest_entry_of_every_component_is_positive(
    shape: tuple[int, int], solver: str, seed: int, weighted: bool
) -> None:
    X = separated(*shape, seed=seed)
    weights = np.linspace(1, 3, len(X)) if weighted else None
    components = PCA(4, svd_solver=solver, random_state=0).fit(X, sample_weight=weights).components_
    largest = np.abs(components).argmax(axis=1)
    assert (components[np.arange(4), largest] > 0).all()


@given(
    n=st.integers(3, 40),
    p=st.integers(1, 30),
    data=st.data(),
    solver=st.sampled_from(["auto", "full", "covariance_eigh"]),
    offset=st.sampled_from([0.0, 10.0, -1e5]),
)
def test_exact_solvers_for_any_shape(n: int, p: int, data: st.DataObject, solver: str, offset: float) -> None:
    k = data.draw(st.integers(1, min(n - 1, p)))
    X = with_spectrum(n, p, np.linspace(3, 1, min(n - 1, p)), seed=n * 100 + p, mean=offset)
    fitted = PCA(k, svd_solver=solver).fit(X)
    expected = np.linspace(3, 1, min(n - 1, p))[:k]
    assert_allclose(fitted.singular_values_, expected, rtol=1e-10 if abs(offset) < 1e3 else 1e-8)
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(k), atol=1e-11)
    assert fitted.certificate_.converged
