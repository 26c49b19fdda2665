"""Passes in this process, in several and on a Dask cluster: the same bits, and workers that may end at any moment."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click import ClickException
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian.analysis import bootstrap, cross_validate_rank
from gramian.cli import main
from gramian.compute.executor import ClusterError, Dask, Processes, cluster, describe_use, merge_tree
from gramian.compute.genotypes import pack
from gramian.kernel_ridge.landmark_fit import LandmarkSolver
from gramian.kernels import Gaussian
from gramian.operators import KernelOperator

distributed = pytest.importorskip("distributed", reason="Dask is not installed (gramian[cluster])")
ROWS, COLUMNS = 2000, 12


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers, each a process that is started again when it ends."""
    import dask

    # two workers end, and two more with nothing else to do, before a task is named
    with warnings.catch_warnings(), dask.config.set({"distributed.scheduler.allowed-failures": 1}):
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
CALLS = np.random.default_rng(8).integers(-1, 3, size=(3000, 61)).astype(np.int8)  # SNPs x samples, -1 missing


@pytest.fixture(scope="module")
def genotypes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PLINK fileset of two populations."""
    folder = tmp_path_factory.mktemp("genotypes")
    own = np.random.default_rng(9).uniform(0.1, 0.9, (len(CALLS), 2))[:, np.arange(61) % 2]
    calls = np.where(CALLS < 0, -1, np.random.default_rng(10).binomial(2, own))
    (folder / "x.bed").write_bytes(bytes([0x6C, 0x1B, 1]) + pack(calls).tobytes())
    (folder / "x.bim").write_text("".join(f"1 rs{j} 0 {1000 * j + 1} A G\n" for j in range(len(calls))))
    (folder / "x.fam").write_text("".join(f"f{i} s{i} 0 0 0 -9\n" for i in range(61)))
    return str(folder / "x.bed")


def nystrom(X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return gramian.KernelPCA(2, kernel="rbf", eigen_solver="nystrom", n_landmarks=20).fit(X)


def landmarks(X: Any, method: str) -> Any:
    source, Z = gramian.open(X), np.load(X)[:40]
    k = Gaussian(1e-3)
    solver = LandmarkSolver(0.1, method=method)
    return solver(KernelOperator(k, source, Z, dtype=np.float64), k(Z, Z), y, 0.1, weights=w, intercept=True)


FITS = {
    "PCA, Gram matrix": lambda X: gramian.PCA(3).fit(X).components_,
    "PCA, weights": lambda X: gramian.PCA(3, scale=True).fit(X, sample_weight=w).components_,
    "PCA, Krylov": lambda X: gramian.PCA(3, svd_solver="krylov").fit(X).components_,
    "PCA, scores": lambda X: gramian.PCA(3).fit(X).transform(X),
    "Ridge": lambda X: gramian.Ridge(2.0).fit(X, y, sample_weight=w).coef_,
    "Ridge, least squares": lambda X: gramian.Ridge(2.0, solver="lsqr").fit(X, y).coef_,
    "RidgeCV": lambda X: gramian.RidgeCV().fit(X, y).coef_,
    "GaussianMixture": lambda X: gramian.GaussianMixture(2, max_iter=4, tol=10.0, random_state=0).fit(X).means_,
    "KernelPCA, Krylov": lambda X: (
        gramian.KernelPCA(2, kernel="rbf", eigen_solver="krylov", tol=1e-3).fit(X).eigenvectors_
    ),
    "KernelPCA, Nystrom": lambda X: nystrom(X).transform(X),
    "KernelRidge, CG": lambda X: gramian.KernelRidge(kernel="rbf", solver="cg", tol=1e-3).fit(X, y).dual_coef_,
    "KernelRidge, landmarks": lambda X: landmarks(X, "cg").coef,
    "KernelRidge, landmarks in one pass": lambda X: landmarks(X, "direct").coef,
    "bootstrap": lambda X: bootstrap(gramian.PCA(2).fit(X), X, n_replicates=40, scores=False).components.error,
    "cross-validation": lambda X: cross_validate_rank(gramian.PCA(), X, n_folds=3, max_components=3).values,
}


@pytest.fixture
def small_blocks() -> Iterator[None]:
    with config_context(working_memory=0.25):
        yield


PEOPLE = {
    "all pairs": lambda X: gramian.GenotypePCA(2, solver="exact").fit(X).eigenvectors_,
    "Krylov": lambda X: gramian.GenotypePCA(2, solver="krylov").fit(X).components_,
    "each pair's own SNPs": lambda X: gramian.GenotypePCA(2, solver="exact", missing="pairwise").fit(X).eigenvectors_,
}


CASES = [("a process", fit) for fit in [*FITS, *PEOPLE]] + [("two workers", fit) for fit in [*FITS, *PEOPLE]]
CASES += [(who, fit) for who in ("one worker", "four workers") for fit in [*FITS, *PEOPLE]]


@pytest.fixture(scope="module")
def workers(request: pytest.FixtureRequest, client: Any) -> Iterator[tuple[Any, str]]:
    """Who works: processes of joblib, processes of Dask, and threads of this process that Dask takes for workers."""
    if request.param == "a process":
        yield "processes[1]", "1 processes"
    elif request.param == "two workers":
        yield client, "Dask, 2 workers"
    else:
        n = {"one worker": 1, "four workers": 4}[request.param]
        local = {"processes": False, "n_workers": n, "threads_per_worker": 1, "dashboard_address": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ports in use
            with distributed.LocalCluster(**local) as inside, distributed.Client(inside, set_as_default=False) as own:
                yield own, f"Dask, {n} workers"


@pytest.fixture(scope="module")
def results(table: str, genotypes: str) -> dict[str, Any]:
    """What this process finds."""
    with config_context(working_memory=0.25):
        found = {name: fit(table) for name, fit in FITS.items()}
        return found | {name: fit(genotypes) for name, fit in PEOPLE.items()}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("workers", "fit"), CASES, indirect=["workers"])
def test_the_bits_do_not_depend_on_who_works(
    table: str, genotypes: str, results: dict[str, Any], workers: tuple[Any, str], fit: str
) -> None:
    who, name = workers
    used = []
    with cluster(who):
        found = (FITS | PEOPLE)[fit](table if fit in FITS else genotypes)
        used.append(describe_use())
    np.testing.assert_array_equal(found, results[fit])
    assert used == [name]


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
        there = source.reduce(Fatal(tmp_path, 1000, always=False), np.add)
    assert (tmp_path / "ended").exists()
    np.testing.assert_array_equal(there, here)


@pytest.mark.usefixtures("small_blocks")
def test_rows_that_end_every_worker_are_named(table: str, client: Any, tmp_path: Path) -> None:
    source = gramian.open(table)
    with cluster(client), pytest.raises(ClusterError, match=r"Rows \d+ to \d+ of .*x\.npy"):
        source.reduce(Fatal(tmp_path, 1000, always=True), np.add)
    deadline = time.monotonic() + 60
    while len(client.scheduler_info()["workers"]) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.usefixtures("small_blocks")
def test_a_task_that_was_with_workers_that_ended_for_another_is_not_blamed(table: str, monkeypatch: Any) -> None:
    """Dask gives up a task, of a pass or of results one by one, and then the same for another pass."""
    source, given_up, kind, most = gramian.open(table), list[Any](), ["merge"], [3]

    class Result:
        def __init__(self, value: Any, key: Any) -> None:
            self.value, self.key = value, key

        def result(self) -> Any:
            if kind[0] in self.key[0] and len(given_up) < most[0]:
                given_up.append(self.key)
                raise distributed.scheduler.KilledWorker((self.key[0].replace("merge", "share"), 1), None, 3)
            return self.value

    class Client:
        status = "running"

        def submit(self, function: Any, *args: Any, key: Any) -> Any:
            return Result(function(*(a.value if isinstance(a, Result) else a for a in args)), key)

        def scheduler_info(self, **_: Any) -> Any:
            return {"workers": {"a": {"memory_limit": 0, "nthreads": 1}}}

    monkeypatch.setattr(distributed, "wait", lambda futures: None)
    here, executor = source.reduce(lambda b: b.values.sum(axis=0), np.add), Dask(Client())
    with cluster(executor):
        there = source.reduce(lambda b: b.values.sum(axis=0), np.add)
    np.testing.assert_array_equal(there, here)
    assert len(given_up) == 3
    most[0] = 1000  # whatever is tried: a pass is not begun for ever
    with pytest.raises(ClusterError, match="again and again"):
        executor.reduce(Square(), [0, 1, 2], lambda a, b: a + b)
    kind[0], most[0] = "share", len(given_up) + 1
    assert list(executor.map(Square(), [0, 1, 2])) == [0, 1, 4]
    most[0] = 1000
    with pytest.raises(ClusterError, match="Number 0"):
        list(executor.map(Square(), [0, 1, 2]))


def test_dask_knows_how_large_results_are(client: Any) -> None:
    with cluster(client) as executor:
        results = executor.map(np.ones, [30_000])
        next(results)
        held = client.run_on_scheduler(
            lambda dask_scheduler: sum(t.get_nbytes() for t in dask_scheduler.tasks.values())
        )
    assert held >= 240_000


class Square:
    def __call__(self, item: int) -> int:
        return item * item

    def describe(self, item: int) -> str:
        return f"Number {item}"


@pytest.mark.usefixtures("small_blocks")
def test_an_error_in_a_task_is_the_error_of_the_fit(tmp_path: Path, client: Any) -> None:
    X = np.ones((ROWS, 3))
    X[1210, 1] = np.inf
    np.save(tmp_path / "x.npy", X)
    with cluster(client), pytest.raises(ValueError, match="1211"):
        gramian.PCA(1).fit(str(tmp_path / "x.npy"))


class Narrow(Processes):
    """Processes with little memory."""

    def room(self) -> tuple[int, str]:
        return 300 * 2**20, "each of these processes"


def test_a_pass_that_workers_have_no_memory_for_is_refused_with_both_figures(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3000, 2500), np.float32))
    with cluster(Narrow(1)), config_context(working_memory=8), pytest.raises(MemoryError) as caught:
        gramian.Ridge(solver="cholesky").fit(str(tmp_path / "x.npy"), np.ones(3000))
    assert "300.0 MiB" in str(caught.value)
    assert f"{(3 * 8 * 2500**2 + 200 * 2**20) / 2**20:.0f}"[:2] in str(caught.value)


@pytest.mark.usefixtures("small_blocks")
def test_processes_that_end_are_replaced_and_counted(table: str, tmp_path: Path) -> None:
    source = gramian.open(table)
    here = source.reduce(lambda b: b.values.sum(axis=0), np.add)
    with cluster("processes[2]"):
        there = source.reduce(Fatal(tmp_path, 1000, always=False), np.add)
        told = describe_use()
    assert (tmp_path / "ended").exists()
    np.testing.assert_array_equal(there, here)
    assert "done again" in told


@pytest.mark.usefixtures("small_blocks")
def test_rows_that_end_three_processes_are_named(table: str, tmp_path: Path) -> None:
    with cluster("processes[2]"), pytest.raises(ClusterError) as caught:
        gramian.open(table).reduce(Fatal(tmp_path, 1000, always=True), np.add)
    first, last = (int(n) for n in re.findall(r"Rows (\d+) to (\d+) of ", str(caught.value))[0])
    assert first <= 1001 <= last


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("early", [True, False], ids=["before a pass", "in a pass"])
def test_a_lost_scheduler_says_how_to_go_on(table: str, tmp_path: Path, early: bool) -> None:
    file, quiet = tmp_path / "scheduler.json", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    words = ["-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    process = subprocess.Popen([sys.executable, *words], **quiet)  # type: ignore[call-overload]
    try:
        while not file.exists():
            time.sleep(0.05)
        # there is no worker: the pass waits for one
        client = distributed.Client(scheduler_file=str(file), timeout=2, set_as_default=False)
        if early:
            process.kill()
            while client.status != "closed":
                time.sleep(0.05)
        else:
            threading.Timer(1.0, process.kill).start()
        with cluster(client), pytest.raises(ClusterError, match=r"lost.*--checkpoint"):
            gramian.PCA(2).fit(table)
        client.close()
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def inside() -> Iterator[Any]:
    """A cluster in this process that is asked for one worker, and forgets at once one that is lost."""
    import dask

    local = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with warnings.catch_warnings(), dask.config.set({"distributed.deploy.lost-worker-timeout": "10 ms"}):
        warnings.simplefilter("ignore")  # of ports in use
        with distributed.LocalCluster(**local) as workers, distributed.Client(workers, set_as_default=False) as client:
            yield client


def lose_workers(client: Any) -> None:
    """End all workers, and ask for no others."""
    client.cluster.scale(0)
    while client.scheduler_info()["workers"]:
        time.sleep(0.01)


@pytest.mark.usefixtures("small_blocks")
def test_a_pass_without_workers_ends_and_says_what_to_do(table: str, inside: Any) -> None:
    lose_workers(inside)
    with cluster(inside, patience=0.2) as executor:
        with pytest.raises(ClusterError, match=r"No worker is left.* none for 0\.2 s\..*Nothing of the fit was saved"):
            gramian.PCA(2).fit(table)
        with pytest.raises(ClusterError, match="No worker is left"):
            list(executor.map(Square(), [1, 2]))
    with pytest.raises(ValueError, match="patience=0"), cluster(inside, patience=0):
        pass


def test_a_command_without_workers_says_what_to_type(table: str, tmp_path: Path) -> None:
    local = {"processes": False, "n_workers": 0, "dashboard_address": None, "protocol": "tcp"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports in use
        with distributed.LocalCluster(**local) as workers:
            where = workers.scheduler_address
            words = ["pca", table, "-k", "2", "--memory", "256K", "--cluster", where, "--patience", "0.2"]
            for kept in ([], ["--checkpoint", str(tmp_path / "my state")]):
                with pytest.raises(ClickException, match="No worker is left") as caught:
                    main([*words, *kept], standalone_mode=False)
                again = shlex.split(caught.value.message.partition("What to type: ")[2])
                assert again == ["gramian", *words, *(kept or ["--checkpoint", "FOLDER"])]


@pytest.mark.usefixtures("small_blocks")
def test_a_fit_that_loses_its_workers_is_resumed_from_what_was_saved(table: str, tmp_path: Path, inside: Any) -> None:
    state, model = tmp_path / "my state", gramian.PCA(2, svd_solver="krylov")

    def fit_and_lose() -> None:
        with cluster(inside, patience=0.2), gramian.checkpoint(state):
            model.fit(table)
            lose_workers(inside)
            model.transform(table)

    with pytest.raises(ClusterError) as caught:
        fit_and_lose()
    told = re.search(
        r" (\d+) steps of the fit are saved in .*my state\. .*--checkpoint '.*my state'\.$", str(caught.value)
    )
    assert told is not None
    assert int(told[1]) == len(list(state.glob("[0-9]*.npz"))) > 2
    inside.cluster.scale(1)
    with cluster(inside), gramian.checkpoint(state):
        scores = gramian.PCA(2, svd_solver="krylov").fit(table).transform(table)
    np.testing.assert_array_equal(scores, model.transform(table))


@pytest.mark.usefixtures("small_blocks")
def test_a_worker_that_its_cluster_gave_up_is_replaced(table: str, inside: Any) -> None:
    expected, source = gramian.PCA(2).fit(table).components_, inside.cluster
    source.sync(source.workers[0].close)
    while source.workers:  # the cluster has forgotten it, and asks for no other
        time.sleep(0.01)
    with cluster(inside):
        np.testing.assert_array_equal(gramian.PCA(2).fit(table).components_, expected)


def test_workers_that_take_no_work_are_none(inside: Any) -> None:
    def pause(dask_worker: Any) -> None:
        dask_worker.status = distributed.core.Status.paused

    inside.run(pause)
    with cluster(inside, patience=0.5) as executor, pytest.raises(ClusterError, match="the 1 there are take no work"):
        list(executor.map(Square(), [1, 2]))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("mode", ["sys.exit", "segfault"])
def test_workers_that_die_whenever_they_like_change_nothing(table: str, mode: str) -> None:
    """Both workers are ended by Dask's own chaos within seconds, and those that follow them too, for a while."""
    import dask
    from distributed.chaos import KillWorker

    expected = gramian.PCA(3, svd_solver="krylov").fit(table).components_
    fewer = {"distributed.deploy.lost-worker-timeout": "3 s", "distributed.scheduler.allowed-failures": 10}
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with warnings.catch_warnings(), dask.config.set(fewer):
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(**local) as workers, distributed.Client(workers, set_as_default=False) as client:
            client.register_plugin(KillWorker("300 ms", mode), name="chaos")

            def end_chaos() -> None:  # a worker that dies while it is told makes this raise, and is told no more
                with contextlib.suppress(Exception):
                    client.unregister_worker_plugin("chaos")

            threading.Timer(1.0, end_chaos).start()
            lost = 0
            with cluster(client):
                while not lost:
                    found = gramian.PCA(3, svd_solver="krylov").fit(table)
                    np.testing.assert_array_equal(found.components_, expected)
                    lost = client.run_on_scheduler(count_lost_workers)


def count_lost_workers(dask_scheduler: Any) -> int:
    events = dask_scheduler.get_events("all")
    return sum(isinstance(event, dict) and event.get("action") == "remove-worker" for _, event in events)


@pytest.mark.parametrize("where", ["here", "local[0]", "processes[0]", "local[]"])
def test_clusters_that_are_none_are_refused(where: str) -> None:
    with pytest.raises(ValueError, match="cluster="), cluster(where):
        pass
    with pytest.raises(TypeError, match="cluster="), cluster(3):
        pass
