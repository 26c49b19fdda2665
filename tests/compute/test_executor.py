"""Passes in this process, in several and on a Dask cluster: the same bits, and workers that may end at any moment."""

import os
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import config_context

import gramian
from gramian.compute.executor import ClusterError, cluster, merge_tree

distributed = pytest.importorskip("distributed", reason="Dask is not installed (gramian[cluster])")
ROWS, COLUMNS = 4000, 12


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers, each a process that is started again when it ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workers = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with workers, distributed.Client(workers) as client:
            yield client


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("executor") / "x.npy"
    np.save(path, rng.normal(size=(ROWS, COLUMNS)) @ rng.normal(size=(COLUMNS, COLUMNS)) + 100.0)
    return str(path)


def make_tree(parts: list[str]) -> str:
    """Merge level by level: the definition."""
    while len(parts) > 1:
        parts = [f"({''.join(parts[i : i + 2])})" if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]


@pytest.mark.parametrize("count", range(1, 40))
def test_the_tree_depends_on_the_number_of_parts_alone(count: int) -> None:
    parts = [chr(65 + i) for i in range(count)]
    assert merge_tree(iter(parts), lambda a, b: f"({a}{b})") == make_tree(parts)


y = np.random.default_rng(4).normal(size=ROWS)
w = np.random.default_rng(5).uniform(0.5, 2.0, ROWS)
FITS = {
    "PCA, Gram matrix": lambda X: gramian.PCA(3).fit(X).components_,
    "PCA, weights": lambda X: gramian.PCA(3, scale=True).fit(X, sample_weight=w).components_,
    "PCA, Krylov": lambda X: gramian.PCA(3, svd_solver="krylov").fit(X).components_,
    "PCA, scores": lambda X: gramian.PCA(3).fit(X).transform(X),
    "Ridge": lambda X: gramian.Ridge(2.0).fit(X, y, sample_weight=w).coef_,
    "Ridge, least squares": lambda X: gramian.Ridge(2.0, solver="lsqr").fit(X, y).coef_,
    "RidgeCV": lambda X: gramian.RidgeCV().fit(X, y).coef_,
    "GaussianMixture": lambda X: gramian.GaussianMixture(2, max_iter=4, tol=10.0, random_state=0).fit(X).means_,
}


@pytest.fixture
def small_blocks() -> Iterator[None]:
    with config_context(working_memory=0.25):
        yield


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("fit", FITS)
def test_the_bits_do_not_depend_on_who_works(table: str, client: Any, fit: str) -> None:
    here = FITS[fit](table)
    with cluster(client):
        np.testing.assert_array_equal(FITS[fit](table), here)


@pytest.mark.usefixtures("small_blocks")
def test_processes_give_the_same_bits(table: str) -> None:
    here = gramian.PCA(3).fit(table)
    with cluster("processes[2]"):
        there = gramian.PCA(3).fit(table)
        in_memory = gramian.PCA(3).fit(np.load(table))
    np.testing.assert_array_equal(there.components_, here.components_)
    assert there.certificate_.executor == "2 processes"
    assert ("passes made by", "2 processes") in there.certificate_.summary()
    assert gramian.PCA(3).fit(table).certificate_.executor == ""
    assert here.certificate_.executor == in_memory.certificate_.executor == ""


@pytest.mark.usefixtures("small_blocks")
def test_parts_of_several_formats_are_read_by_workers(tmp_path: Path, client: Any) -> None:
    pl = pytest.importorskip("polars")
    X = np.random.default_rng(6).normal(size=(2500, 8))
    for i, (a, b) in enumerate(pairwise([0, 700, 701, 1600, 2500])):
        pl.DataFrame(X[a:b]).write_parquet(tmp_path / f"{i}.parquet", row_group_size=300)
    here = gramian.PCA(3).fit(tmp_path)
    with cluster(client):
        there = gramian.PCA(3).fit(tmp_path)
    np.testing.assert_array_equal(there.components_, here.components_)
    assert there.certificate_.executor == "Dask, 2 workers"


def test_dask_arrays_and_frames_are_worked_on_where_they_are(client: Any) -> None:
    da, dd, pd = (pytest.importorskip(name) for name in ("dask.array", "dask.dataframe", "pandas"))
    X = np.random.default_rng(7).normal(size=(900, 6))
    model = gramian.PCA(2).fit(da.from_array(X, chunks=(250, 4)))
    np.testing.assert_allclose(model.components_, gramian.PCA(2).fit(X).components_, atol=1e-13)
    assert model.certificate_.executor == "Dask, 2 workers"
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=3)
    named = gramian.Ridge().fit(frame, X[:, 0])
    assert named.feature_names_in_.tolist() == list("abcdef")
    assert gramian.PCA(2).fit(X).certificate_.executor == ""
    with pytest.raises(ValueError, match="town"):
        gramian.open(dd.from_pandas(pd.DataFrame({"a": [1.0], "town": ["Rome"]}), npartitions=1))


class Fatal:
    """A statistic that ends its process at the first, or at every, block of some row."""

    def __init__(self, folder: Path, row: int, *, always: bool) -> None:
        self.mark, self.row, self.always = folder / "ended", row, always

    def __call__(self, block: Any) -> Any:
        if block.start <= self.row < block.stop and (self.always or not self.mark.exists()):
            self.mark.touch()
            os._exit(1)
        return block.values.sum(axis=0)


@pytest.mark.usefixtures("small_blocks")
def test_a_lost_worker_changes_nothing(table: str, client: Any, tmp_path: Path) -> None:
    source = gramian.open(table)
    here = source.reduce(lambda b: b.values.sum(axis=0), np.add)
    with cluster(client):
        there = source.reduce(Fatal(tmp_path, 2000, always=False), np.add)
    assert (tmp_path / "ended").exists()
    np.testing.assert_array_equal(there, here)


@pytest.mark.usefixtures("small_blocks")
def test_rows_that_end_every_worker_are_named(table: str, client: Any, tmp_path: Path) -> None:
    source = gramian.open(table)
    with cluster(client), pytest.raises(ClusterError, match=r"Rows \d+ to \d+ of .*x\.npy"):
        source.reduce(Fatal(tmp_path, 2000, always=True), np.add)
    deadline = time.monotonic() + 60
    while len(client.scheduler_info()["workers"]) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.usefixtures("small_blocks")
def test_an_error_in_a_task_is_the_error_of_the_fit(tmp_path: Path, client: Any) -> None:
    X = np.ones((ROWS, 3))
    X[3210, 1] = np.inf
    np.save(tmp_path / "x.npy", X)
    with cluster(client), pytest.raises(ValueError, match="3211"):
        gramian.PCA(1).fit(str(tmp_path / "x.npy"))


@pytest.mark.parametrize("where", ["here", "local[0]", "processes[0]", "local[]"])
def test_clusters_that_are_none_are_refused(where: str) -> None:
    with pytest.raises(ValueError, match="cluster="), cluster(where):
        pass
    with pytest.raises(TypeError, match="cluster="), cluster(3):
        pass
