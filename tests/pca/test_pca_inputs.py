"""The same numbers give the same answer wherever they live and however they are laid out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import gramian
from gramian import PCA
from oracles import Array, Convert, exact_pca, naive_pca, separated

SOLVERS = ["auto", "full", "covariance_eigh", "arpack", "krylov", "randomized", "power"]
X = np.round(separated(50, 7) * 64)  # whole numbers, so that every dtype holds them exactly
FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


def read_only(data: Array) -> Array:
    copy = data.copy()
    copy.flags.writeable = False
    return copy


def strided(data: Array) -> Array:
    wide = np.full((2 * data.shape[0], 3 * data.shape[1]), np.nan)
    wide[::2, ::3] = data
    return wide[::2, ::3]


LAYOUTS: dict[str, Convert] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "strided": strided,
    "reversed": lambda data: data[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda data: data.astype(">f8"),
    "list": lambda data: data.tolist(),
    "object": lambda data: data.astype(object),
}


def fit(data: Any, k: int = 3, solver: str = "full", **params: Any) -> PCA:
    return PCA(k, svd_solver=solver, tol=1e-11, random_state=0, **params).fit(data)


def assert_right(fitted: PCA, data: Array = X, tol: float = 1e-9) -> None:
    naive, k = naive_pca(data), len(fitted.components_)
    size = naive.singular_values[0]
    assert_allclose(fitted.components_, naive.components[:k], atol=tol)
    assert_allclose(fitted.singular_values_, naive.singular_values[:k], atol=tol * size)
    assert_allclose(fitted.mean_, naive.mean, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layout(layout: str, solver: str) -> None:
    data = LAYOUTS[layout](X)
    fitted = fit(data, solver=solver)
    assert_right(fitted)
    assert_allclose(fitted.transform(data), (X - fitted.mean_) @ fitted.components_.T, atol=1e-9)


INTEGERS = [np.int16, np.int32, np.int64, np.float16, np.longdouble]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("solver", ["auto", "full", "krylov"])
def test_other_dtypes_are_computed_in_float64(dtype: Any, solver: str) -> None:
    data = X.astype(dtype)
    fitted = fit(data, solver=solver)
    assert_right(fitted, data.astype(np.float64))
    assert fitted.transform(data).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("solver", ["auto", "full", "krylov"])
def test_narrow_and_unsigned_integers_do_not_wrap_around(dtype: Any, solver: str) -> None:
    top = np.iinfo(dtype).max - 100
    data = np.random.default_rng(0).integers(0, 100, (50, 4)).astype(dtype) + dtype(min(top, 2**50))
    assert_right(fit(data, solver=solver), data.astype(np.float64), tol=1e-7)


@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_booleans(solver: str) -> None:
    data = np.random.default_rng(0).random((60, 5)) < np.array([0.1, 0.3, 0.5, 0.7, 0.2])
    assert_right(fit(data, solver=solver), data.astype(np.float64))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_float32(solver: str, order: Any) -> None:
    data = np.asarray(separated(80, 6), dtype=np.float32, order=order)
    exact = exact_pca(data)
    fitted = PCA(3, svd_solver=solver, random_state=0).fit(data)
    assert_allclose(fitted.explained_variance_, exact.variances[:3], rtol=1e-5)
    assert_allclose(fitted.components_, exact.components[:3], atol=1e-3)
    assert fitted.transform(data).dtype == np.float32


@pytest.mark.parametrize("solver", ["covariance_eigh", "krylov"])
@pytest.mark.parametrize("container", ["array", "matrix"])
@pytest.mark.parametrize("layout", FORMATS)
def test_sparse_formats(layout: str, container: str, solver: str) -> None:
    dense = np.where(np.random.default_rng(1).random(X.shape) < 0.6, 0, X)
    data = getattr(sparse, f"{layout}_{container}")(dense)
    fitted = fit(data, solver=solver)
    assert_right(fitted, dense)
    scores = fitted.transform(data)
    assert isinstance(scores, np.ndarray)
    assert_allclose(scores, (dense - fitted.mean_) @ fitted.components_.T, atol=1e-8)
    assert_allclose(fitted.reconstruction_error(data), fitted.reconstruction_error(dense), rtol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_data_with_every_solver(solver: str) -> None:
    dense = np.where(np.random.default_rng(1).random(X.shape) < 0.6, 0, X)
    assert_right(fit(sparse.csr_array(dense), solver=solver), dense)


def test_sparse_with_repeated_and_unsorted_entries() -> None:
    rows, columns = np.divmod(np.arange(40), 4)
    values = np.random.default_rng(0).standard_normal(80)
    doubled = sparse.coo_array((values, (np.r_[rows, rows[::-1]], np.r_[columns, columns[::-1]])), shape=(10, 4))
    assert_right(fit(doubled, solver="covariance_eigh"), doubled.toarray())


@pytest.mark.parametrize("dtype", [np.int32, np.float32, bool])
def test_sparse_dtypes(dtype: Any) -> None:
    dense = np.where(np.random.default_rng(1).random(X.shape) < 0.6, 0, X).astype(dtype)
    fitted = PCA(2, svd_solver="krylov", random_state=0).fit(sparse.csr_array(dense))
    naive = naive_pca(dense)
    assert_allclose(fitted.singular_values_, naive.singular_values[:2], rtol=1e-5)


@pytest.mark.parametrize("solver", ["auto", "full", "krylov"])
def test_frames(solver: str) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = list("abcdefg")
    whole = pandas.DataFrame(X.astype(int), columns=names)
    mixed = whole.astype({"a": "float64", "b": "float32", "c": "Int64"})
    for frame in (
        whole,
        mixed,
        polars.DataFrame(X, schema=names),
        polars.DataFrame(X.astype(int), schema=names),
    ):
        fitted = fit(frame, solver=solver)
        assert_right(fitted)
        assert list(fitted.feature_names_in_) == names
        assert_allclose(np.asarray(fitted.transform(frame)), fit(X).transform(X), atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("as_text", [False, True])
def test_npy_file(tmp_path: Path, solver: str, order: Any, as_text: bool) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.asarray(X, order=order))
    where = str(path) if as_text else path
    fitted = fit(where, solver=solver)
    assert_right(fitted)
    assert_allclose(fitted.transform(where), fitted.transform(X), atol=1e-9)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2", "|u1"])
def test_npy_file_of_another_dtype(tmp_path: Path, dtype: str) -> None:
    data = np.abs(X % 200).astype(dtype)
    np.save(tmp_path / "data.npy", data)
    assert_allclose(PCA(3).fit(tmp_path / "data.npy").explained_variance_, naive_pca(data).variances[:3], rtol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_map_and_its_slices(tmp_path: Path, solver: str, order: Any) -> None:
    np.save(tmp_path / "data.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "data.npy", mmap_mode="r")
    assert_right(fit(mapped, solver=solver))
    for part in (mapped[5:45], mapped[::2], mapped[::-1], mapped[:, 1:6], mapped[3:40:3, ::2]):
        assert_right(fit(part, solver=solver), np.array(part))
    raw = np.memmap(tmp_path / "raw.bin", dtype=np.float64, mode="w+", shape=(X.size + 3,))
    raw[3:] = X.ravel()
    assert_right(fit(raw[3:].reshape(X.shape), solver=solver))


def test_memory_map_edited_in_memory_only(tmp_path: Path) -> None:
    """Copy-on-write pages differ from the file, and the array is what the user means."""
    np.save(tmp_path / "data.npy", np.zeros_like(X))
    edited = np.load(tmp_path / "data.npy", mmap_mode="c")
    edited[:] = X
    assert_right(fit(edited))


def test_memory_map_of_a_replaced_file(tmp_path: Path) -> None:
    """A map keeps the old contents after its file was removed and another took the name."""
    path = tmp_path / "data.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    path.unlink()
    assert_right(fit(mapped))
    np.save(path, np.zeros_like(X))
    assert_right(fit(mapped))


def test_memory_map_being_written(tmp_path: Path) -> None:
    mapped = np.lib.format.open_memmap(tmp_path / "data.npy", mode="w+", dtype=np.float64, shape=X.shape)
    mapped[:] = X
    assert_right(fit(mapped))


def test_csv_file(tmp_path: Path) -> None:
    names = ["one", "two", "three", "four", "five", "six", "seven"]
    np.savetxt(tmp_path / "data.csv", X / 7, fmt="%.17g", delimiter=",", header=",".join(names), comments="")
    for where in (tmp_path / "data.csv", str(tmp_path / "data.csv")):
        fitted = fit(where)
        assert_right(fitted, X / 7)
        assert list(fitted.feature_names_in_) == names
        assert_allclose(np.asarray(fitted.transform(where)), (X / 7 - fitted.mean_) @ fitted.components_.T, atol=1e-9)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.npy"):
        PCA(2).fit(tmp_path / "absent.npy")


@pytest.mark.parametrize("solver", SOLVERS)
def test_source(tmp_path: Path, solver: str) -> None:
    np.save(tmp_path / "data.npy", X)
    for source in (gramian.open(X), gramian.open(tmp_path / "data.npy"), gramian.open(sparse.csr_array(X))):
        assert source.shape == X.shape
        assert_right(fit(source, solver=solver))
        assert_allclose(np.asarray(fit(X).transform(source)), fit(X).transform(X), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_torch_tensors(torch: Any, solver: str, dtype: str) -> None:
    tensor = torch.asarray(X).to(getattr(torch, dtype))
    fitted = PCA(3, svd_solver=solver, random_state=0).fit(tensor)
    naive = naive_pca(X)
    assert_allclose(np.asarray(fitted.singular_values_), naive.singular_values[:3], rtol=1e-5)
    assert_allclose(np.abs(np.asarray(fitted.components_)), np.abs(naive.components[:3]), atol=1e-3)
    scores = np.asarray(fitted.transform(tensor))
    assert_allclose(scores, (X - naive.mean) @ np.asarray(fitted.components_).T, rtol=1e-3, atol=0.05)
    assert_array_equal(tensor.numpy(), X)
