"""The same regression wherever the numbers live, in few passes and little memory."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.sources import Block, DenseSource
from oracles import Array, Convert

rng = np.random.default_rng(0)
X = np.where(rng.random((80, 6)) < 0.4, 0.0, np.round(64 * rng.normal(size=(80, 6))))
Y = X[:, :2] @ rng.normal(size=(2, 2)) + rng.normal(size=(80, 2)) + 5
WEIGHTS = {"none": None, "fractions": rng.uniform(0.2, 2, 80), "counts": rng.integers(0, 3, 80)}


def strided(data: Array) -> Array:
    wide = np.full((2 * data.shape[0], 3 * data.shape[1]), np.nan)
    wide[::2, ::3] = data
    return wide[::2, ::3]


KINDS: dict[str, Convert] = {
    "Fortran": np.asfortranarray,
    "strided": strided,
    "int16": lambda data: data.astype(np.int16),
    "list": lambda data: data.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "pandas": lambda data: pd.DataFrame(data, columns=list("abcdef")),
    "polars": lambda data: pl.DataFrame(data, schema=list("abcdef")),
}


def compare(ours: Any, data: Any, solver: str, intercept: bool, w: Array | None, y: Any = Y) -> None:
    options = {"solver": solver, "fit_intercept": intercept, "tol": 1e-13}
    dense = Ridge(2.0, **options).fit(X, Y, sample_weight=w)
    model = Ridge(2.0, **options).fit(ours, y, sample_weight=w)
    # a file is not read once more to correct what meets the tolerance of the gradient, 1e-8
    assert_allclose(model.coef_, dense.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.intercept_, dense.intercept_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.predict(data), dense.predict(X), rtol=1e-8, atol=1e-8)
    if solver != "cg":
        assert_allclose(model.predict(data, True)[1], dense.predict(X, True)[1], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["auto", "svd", "dual", "cg"])
@pytest.mark.parametrize(
    ("weights", "intercept"), [("none", True), ("fractions", True), ("counts", True), ("fractions", False)]
)
def test_kinds_of_arrays(kind: str, solver: str, intercept: bool, weights: str) -> None:
    data = KINDS[kind](X)
    compare(data, data, solver, intercept, WEIGHTS[weights])


@pytest.mark.parametrize("kind", ["csr", "pandas", "file", "memory map"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("wide", [False, True])
def test_ridge_cv_on_all_kinds(kind: str, weights: str, wide: bool, tmp_path: Path) -> None:
    data, w = (X[:5], WEIGHTS[weights]) if wide else (X, WEIGHTS[weights])
    y, w = Y[: len(data)], None if w is None else w[: len(data)] + (1 if wide else 0)
    np.save(tmp_path / "x.npy", data)
    given = {
        "csr": lambda: sparse.csr_array(data),
        "pandas": lambda: pd.DataFrame(data, columns=list("abcdef")),
        "file": lambda: tmp_path / "x.npy",
        "memory map": lambda: np.load(tmp_path / "x.npy", mmap_mode="r"),
    }[kind]()
    dense, ours = (RidgeCV([1.0, 30.0, 1e3]).fit(d, y, sample_weight=w) for d in (data, given))
    assert ours.alpha_ == dense.alpha_
    assert_allclose(ours.path_.loo, dense.path_.loo, rtol=1e-9)
    assert_allclose(ours.coef_, dense.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "svd", "dual", "cg"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("fortran", [False, True])
def test_files_in_small_blocks(solver: str, weights: str, fortran: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.asfortranarray(X) if fortran else X)
    np.save(tmp_path / "y.npy", Y)
    compare(path, path, solver, True, WEIGHTS[weights], tmp_path / "y.npy")
    compare(str(path), np.load(path, mmap_mode="r"), solver, False, WEIGHTS[weights])


@pytest.mark.parametrize("solver", ["auto", "svd", "dual", "cg"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("wide", [False, True])
def test_tensors(solver: str, weights: str, wide: bool, torch: Any) -> None:
    data, w = (X[:5], None) if wide else (X, WEIGHTS[weights])
    y = Y[: len(data)]
    dense = Ridge(2.0, solver=solver, tol=1e-13).fit(data, y, sample_weight=w)
    model = Ridge(2.0, solver=solver, tol=1e-13).fit(torch.tensor(data), torch.tensor(y), sample_weight=w)
    assert isinstance(model.coef_, torch.Tensor)
    assert isinstance(model.predict(torch.tensor(data)), torch.Tensor)
    assert_allclose(model.coef_.numpy(), dense.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.predict(torch.tensor(data)).numpy(), dense.predict(data), rtol=1e-9)
    cv = RidgeCV(store_cv_results=True).fit(torch.tensor(data), y, sample_weight=w)
    known = RidgeCV(store_cv_results=True).fit(data, y, sample_weight=w)
    assert_allclose(cv.cv_results_.numpy(), known.cv_results_, rtol=1e-8, atol=1e-12)


def test_targets_come_in_files_of_arrays_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"y\.csv"):
        Ridge().fit(X, tmp_path / "y.csv")
    assert_array_equal(Ridge().fit(X, DenseSource(Y)).coef_, Ridge().fit(X, Y).coef_)


def test_names_of_columns() -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = Ridge().fit(frame, Y)
    assert list(model.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="5 features"):
        Ridge().fit(X, Y).predict(X[:, :5])


class Blocks(DenseSource):
    """An array that pretends to be a file, a few rows at a time, and counts how often it is read."""

    resident = False

    def __init__(self, values: Array) -> None:
        super().__init__(values)
        self.reads = 0

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        self.reads += 1
        yield from super().blocks(min(rows or 7, 7))


def test_files_are_read_as_often_as_the_certificate_says() -> None:
    models = (Ridge(), 1), (Ridge(solver="svd"), 5), (Ridge(solver="dual"), 12), (Ridge([0.0, 1.0]), 5), (Ridge(0), 4)
    for model, most in (*models, (Ridge(solver="cg"), 60)):
        source = Blocks(X)
        model.fit(source, Y)
        assert source.reads == model.certificate_.passes <= most


def test_a_file_is_read_twice_for_every_penalty() -> None:
    source = Blocks(X)
    model = RidgeCV(np.geomspace(0.1, 1e4, 30)).fit(source, Y)
    assert source.reads == model.certificate_.passes == 2


def test_a_fit_that_is_almost_perfect_has_its_noise_measured() -> None:
    # RSS/‖y‖² = 1e-13: the difference of two moments would keep three digits of it
    y = X @ np.arange(1.0, 7.0) + 1e-5 * np.sin(np.arange(80.0))
    source = Blocks(X)
    model = Ridge(1e-8).fit(source, y)
    A = np.c_[np.ones(80), X]
    rss = np.linalg.lstsq(A, y)[1][0]
    assert model.noise_variance_ == pytest.approx(rss / 73, rel=1e-6)
    assert source.reads == 3


def test_blocks_far_from_each_other_merge_exactly() -> None:
    far = X + np.arange(80.0)[:, None] * 2.0**20
    dense = Ridge(solver="svd").fit(far, Y)
    assert_allclose(Ridge().fit(Blocks(far), Y).coef_, dense.coef_, rtol=1e-8)


def peak_of(work: Any) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("model", [Ridge(), Ridge(solver="cg"), RidgeCV(np.geomspace(1, 1e3, 20)), Ridge(0)])
def test_the_data_are_not_copied(model: Any) -> None:
    big = np.random.default_rng(0).normal(size=(60_000, 40))
    y = big[:, 0] + 1.0
    model.fit(big[:100], y[:100])  # imports and pools
    assert peak_of(lambda: model.fit(big, y)) < 0.75 * big.nbytes


def test_the_data_are_not_changed() -> None:
    copy, target = X.copy(), Y.copy()
    copy.flags.writeable = target.flags.writeable = False
    for solver in ("auto", "svd", "dual", "cg"):
        Ridge(solver=solver, copy_X=False).fit(copy, target)
    assert_array_equal(copy, X)
    assert_array_equal(target, Y)


def test_large_sparse_data_stay_sparse() -> None:
    big = sparse.random_array((4000, 30_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    y = np.asarray(big @ np.ones(30_000)) + 3.0
    model = Ridge(1.0, tol=1e-8)
    peak = peak_of(lambda: model.fit(big, y))
    assert model.solver_ == "cg"
    assert peak < 4000 * 30_000 * 8 / 20
    mean, residuals = big.mean(axis=0), y - y.mean() - (big @ model.coef_ - big.mean(axis=0) @ model.coef_)
    gradient = big.T @ residuals - mean * residuals.sum() - model.coef_
    start = big.T @ (y - y.mean())
    assert np.linalg.norm(gradient) <= 2e-8 * np.linalg.norm(start)


def test_sparse_data_with_a_small_penalty_are_factored_by_columns() -> None:
    wide = np.where(np.random.default_rng(1).random((8, 40)) < 0.5, 0.0, np.random.default_rng(2).normal(size=(8, 40)))
    wide[3] = 1e-5 * wide[3] + wide[2]  # nearly the same row, so that a Gram matrix would lose its digits
    y = np.arange(8.0)
    y[3] = y[2]
    model = Ridge(1e-9).fit(sparse.csr_array(wide), y)
    assert model.solver_ == "svd"
    assert_allclose(model.coef_, Ridge(1e-9, solver="svd").fit(wide, y).coef_, rtol=1e-10)
