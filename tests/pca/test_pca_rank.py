"""Data of low rank, and data that are not numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy import sparse

import gramian
from gramian import PCA, NumericalWarning
from oracles import Array, separated, subspace_sine, with_spectrum

EXACT = ["auto", "full", "covariance_eigh"]
ITERATIVE = ["arpack", "krylov", "randomized", "power"]


def low_rank(dtype: Any = np.float64, mean: float = 3.0) -> Array:
    """Rank three after centring, in ten columns."""
    return with_spectrum(40, 10, [5.0, 3.0, 2.0], mean=mean).astype(dtype)


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_more_components_than_the_rank(solver: str, dtype: Any) -> None:
    X = low_rank(dtype)
    with pytest.warns(NumericalWarning, match=r"rank"):
        fitted = PCA(6, svd_solver=solver, random_state=0).fit(X)
    _, _, right = np.linalg.svd(low_rank(mean=0.0), full_matrices=False)
    tol = 1e-5 if dtype is np.float64 else 1e-3
    assert fitted.rank_ == 3
    assert fitted.components_.shape == (6, 10)
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(6), atol=1e-9 if tol < 1e-4 else 1e-5)
    assert_allclose(fitted.singular_values_, [5, 3, 2, 0, 0, 0], atol=10 * tol)
    assert subspace_sine(right[:3], fitted.components_) < tol
    assert np.isfinite(fitted.transform(X)).all()


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_whitening_beyond_the_rank(solver: str, dtype: Any) -> None:
    X = low_rank(dtype)
    with pytest.warns(NumericalWarning, match=r"rank|variance"):
        fitted = PCA(5, whiten=True, svd_solver=solver, random_state=0).fit(X)
    codes = fitted.transform(X)
    assert_allclose(np.cov(codes.T), np.diag([1, 1, 1, 0, 0]), atol=1e-6 if dtype is np.float64 else 1e-3)
    assert (codes[:, 3:] == 0).all()
    assert_allclose(fitted.inverse_transform(codes), X, atol=1e-4 if dtype is np.float64 else 1e-3)


@pytest.mark.parametrize("solver", EXACT)
def test_the_default_with_more_columns_than_rows_is_quiet_and_finite(solver: str) -> None:
    X = separated(10, 25)
    assert np.isfinite(PCA(svd_solver=solver).fit(X).transform(X)).all()


@pytest.mark.parametrize("columns", [[2], [2, 5]])
def test_constant_columns_are_harmless(columns: list[int]) -> None:
    X = separated(40, 8)
    X[:, columns] = 1e9
    fitted = PCA(4).fit(X)
    without = PCA(4).fit(np.delete(X, columns, axis=1))
    assert_allclose(fitted.explained_variance_, without.explained_variance_, rtol=1e-10)
    assert_allclose(fitted.components_[:, columns], 0, atol=1e-10)


@pytest.mark.parametrize("solver", EXACT)
def test_repeated_columns(solver: str) -> None:
    X = separated(40, 4)
    twice = PCA(4, svd_solver=solver).fit(np.hstack([X, X]))
    assert_allclose(twice.explained_variance_, 2 * PCA(4).fit(X).explained_variance_, rtol=1e-9)


def test_two_rows_have_one_component() -> None:
    fitted = PCA(1).fit(np.array([[0.0, 0.0], [3.0, 4.0]]))
    assert_allclose(fitted.components_, [[0.6, 0.8]])
    assert_allclose(fitted.explained_variance_, [12.5])


def test_one_column() -> None:
    X = separated(40, 1)
    fitted = PCA().fit(X)
    assert_allclose(fitted.components_, [[1.0]])
    assert_allclose(fitted.explained_variance_, X.var(axis=0, ddof=1), rtol=1e-12)


INFINITIES = {"inf": np.inf, "-inf": -np.inf}
SPOILERS = {"NaN": np.nan, **INFINITIES}  # NaN is a missing cell in dense data, and nothing in sparse ones


def spoiled(value: float) -> Array:
    X = separated(50, 8)
    X[17, 5] = X[31, 2] = value
    return X


def assert_names_the_place(data: Any, name: str, solver: str = "auto") -> None:
    with pytest.raises(ValueError, match=name.lstrip("-")) as error:
        PCA(2, svd_solver=solver).fit(data)
    message = str(error.value).lower()
    assert "row 18" in message, message
    assert "column 6" in message, message


@pytest.mark.parametrize("name", INFINITIES)
@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_not_a_number_in_an_array(name: str, solver: str, dtype: Any, order: Any) -> None:
    assert_names_the_place(np.asarray(spoiled(INFINITIES[name]), dtype=dtype, order=order), name, solver)


@pytest.mark.parametrize("name", SPOILERS)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_not_a_number_in_sparse_data(name: str, layout: str) -> None:
    X = np.where(np.random.default_rng(0).random((50, 8)) < 0.5, 0, spoiled(0.0))
    X[17, 5] = X[31, 2] = SPOILERS[name]
    for solver in ("auto", "krylov", "covariance_eigh"):
        assert_names_the_place(getattr(sparse, f"{layout}_array")(X), name, solver)


@pytest.mark.parametrize("name", INFINITIES)
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_not_a_number_in_a_frame(name: str, container: str) -> None:
    frames = pytest.importorskip(container)
    columns = {f"c{j}": spoiled(INFINITIES[name])[:, j] for j in range(8)}
    assert_names_the_place(frames.DataFrame(columns), name)


@pytest.mark.parametrize("name", INFINITIES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("memory", [0.001, 64])
def test_not_a_number_in_a_file(tmp_path: Path, name: str, order: Any, memory: float) -> None:
    np.save(tmp_path / "data.npy", np.asarray(spoiled(INFINITIES[name]), order=order))
    with sklearn.config_context(working_memory=memory):
        assert_names_the_place(tmp_path / "data.npy", name)
        assert_names_the_place(np.load(tmp_path / "data.npy", mmap_mode="r"), name, "krylov")
        assert_names_the_place(gramian.open(tmp_path / "data.npy"), name, "randomized")


def test_not_a_number_in_a_csv_file(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "data.csv", spoiled(np.inf), delimiter=",", header="a,b,c,d,e,f,g,h", comments="")
    assert_names_the_place(tmp_path / "data.csv", "inf")


def test_not_a_number_in_later_calls() -> None:
    fitted, bad = PCA(2).fit(separated(50, 8)), spoiled(np.nan)
    for method in ("transform", "score", "score_samples", "reconstruction_error"):
        with pytest.raises(ValueError, match="row 18, column 6"):
            getattr(fitted, method)(spoiled(np.inf))
    with pytest.raises(ValueError, match="NaN"):
        fitted.reconstruction_error(bad)
    with pytest.raises(ValueError, match="NaN"):
        PCA(2).partial_fit(bad)


def test_not_a_number_in_a_torch_tensor(torch: Any) -> None:
    assert_names_the_place(torch.asarray(spoiled(np.inf)), "inf")
