"""Fits while workers, and the process that asked for the fit, are killed at random moments: ``python -m bench.chaos``.

Workers die by ``os._exit`` inside a task, before or after its work, of a Dask worker or of a process of joblib; and by
``distributed.chaos.KillWorker``, which exits, crashes or closes a worker after a random time, whatever it is doing,
also while it starts. The driver is ended by SIGKILL at a random moment of its fit, and run again, until it ends well;
the fit keeps its passes in a checkpoint. Last, nothing is killed (``--only quiet``): every fit by threads, processes,
and clusters of several sizes. Every result is compared with that of a fit that nothing happened to, bit by bit.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import config_context
from threadpoolctl import threadpool_limits

import gramian
from bench.machine import describe
from gramian.analysis import bootstrap, cross_validate_rank
from gramian.compute.executor import HERE, ClusterError, Dask, Executor, Processes, cluster, describe_use
from gramian.compute.genotypes import pack
from gramian.sources import write_parquet

ROOT = Path(__file__).parents[1]
MEMORY = 0.25  # MiB of working memory: many small blocks
OUT = "out"
SHARE = 0.01  # of the tasks end their worker
LIFE = 15.0  # seconds that KillWorker lets a worker live, in the mean
PATIENCE = 600.0  # seconds without a worker: on a busy machine they start slowly
PARTS = ("drivers", "workers", "quiet")
HEAD = """\
# Killed at random moments

`python -m bench.chaos` kills workers and drivers while fits run, and compares every answer with that of a fit that
nothing happened to, bit by bit.
"""


@dataclass(frozen=True)
class Files:
    """What the fits read."""

    table: str
    parts: str
    small: str
    holes: str
    counts: str
    people: str
    target: np.ndarray[Any, Any]

    @property
    def few(self) -> Any:
        """The target of the small table."""
        return self.target[:1500]

    @property
    def classes(self) -> Any:
        """Two classes."""
        return (self.target > np.median(self.target)).astype(int)


def write_files(folder: Path) -> Files:
    """Write a table, the same in parts, a small one for kernels, one with missing cells, counts and genotypes."""
    rng = np.random.default_rng(3)
    n, p = 12_000, 12
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + 10.0
    X[: n // 3] += 4.0
    np.save(folder / "x.npy", X)
    np.save(folder / "small.npy", X[:1500])
    (folder / "parts").mkdir()
    for i, part in enumerate(np.array_split(X, 5)):
        write_parquet(folder / "parts" / f"{i}.parquet", {f"c{j}": part[:, j] for j in range(p)})
    np.save(folder / "holes.npy", np.where(rng.random((400, 6)) < 0.1, np.nan, X[:400, :6]))
    np.save(folder / "counts.npy", rng.poisson(rng.gamma(0.6, 1.0, 60) * rng.gamma(1.0, 1.0, (2000, 60))).astype(float))
    calls = rng.binomial(2, rng.uniform(0.1, 0.9, (3000, 2))[:, np.arange(60) % 2]).astype(np.int8)
    (folder / "g.bed").write_bytes(bytes([0x6C, 0x1B, 1]) + pack(calls).tobytes())
    (folder / "g.bim").write_text("".join(f"1 rs{j} 0 {1000 * j + 1} A G\n" for j in range(len(calls))))
    (folder / "g.fam").write_text("".join(f"f{i} s{i} 0 0 0 -9\n" for i in range(60)))
    table, parts, small, holes, counts, people = (
        str(folder / name) for name in ("x.npy", "parts", "small.npy", "holes.npy", "counts.npy", "g.bed")
    )
    return Files(table, parts, small, holes, counts, people, X[:, 0] + rng.normal(size=n))


Fit = Callable[[Files], Any]


def _recipe(source: str) -> Any:
    return gramian.open(source).normalise(1e4).log1p().select_columns(range(0, 60, 2))


def _decompose_by_landmarks(files: Files) -> Any:
    model = gramian.KernelPCA(2, kernel="rbf", eigen_solver="nystrom", n_landmarks=60, random_state=0)
    return model.fit(files.small).transform(files.small)


FITS: dict[str, Fit] = {
    "PCA, Gram matrix": lambda f: gramian.PCA(3).fit(f.table).components_,
    "PCA, Parquet in parts": lambda f: gramian.PCA(3, scale=True).fit(f.parts).components_,
    "PCA, Krylov": lambda f: gramian.PCA(3, svd_solver="krylov").fit(f.table).components_,
    "PCA, counts": lambda f: gramian.PCA(3, scale=True).fit(_recipe(f.counts)).components_,
    "PCA, scores": lambda f: gramian.PCA(3).fit(f.table).transform(f.table),
    "PCA, missing cells": lambda f: gramian.PCA(2).fit(f.holes).components_,
    "TruncatedSVD": lambda f: gramian.TruncatedSVD(2).fit(f.table).components_,
    "FactorAnalysis": lambda f: gramian.FactorAnalysis(2).fit(f.table).components_,
    "Ridge": lambda f: gramian.Ridge(2.0).fit(f.table, f.target).coef_,
    "Ridge, least squares": lambda f: gramian.Ridge(2.0, solver="lsqr").fit(f.table, f.target).coef_,
    "RidgeCV": lambda f: gramian.RidgeCV().fit(f.table, f.target).coef_,
    "RidgeClassifier": lambda f: gramian.RidgeClassifier().fit(f.table, f.classes).coef_,
    "GaussianMixture": lambda f: (
        gramian.GaussianMixture(2, max_iter=5, tol=10.0, init_params="kmeans", random_state=0).fit(f.table).means_
    ),
    "BayesianGaussianMixture": lambda f: (
        gramian.BayesianGaussianMixture(2, max_iter=5, tol=10.0, random_state=0).fit(f.table).means_
    ),
    "RobustMixture": lambda f: gramian.RobustMixture(2, max_iter=5, tol=10.0, random_state=0).fit(f.small).means_,
    "MixtureDiscriminant": lambda f: (
        gramian.MixtureDiscriminant(1, covariance_types=["full"]).fit(f.table, f.classes).predict_proba(f.table)
    ),
    "KernelPCA": lambda f: (
        gramian.KernelPCA(2, kernel="rbf", eigen_solver="krylov", tol=1e-3).fit(f.small).eigenvectors_
    ),
    "KernelPCA, landmarks": _decompose_by_landmarks,
    "KernelRidge": lambda f: gramian.KernelRidge(kernel="rbf", solver="cg", tol=1e-3).fit(f.small, f.few).dual_coef_,
    "KernelRidge, landmarks": lambda f: (
        gramian.KernelRidge(kernel="rbf", solver="landmarks", n_landmarks=60, random_state=0)
        .fit(f.small, f.few)
        .predict(f.small)
    ),
    "KernelRidgeClassifier": lambda f: (
        gramian.KernelRidgeClassifier(kernel="rbf", solver="cg", tol=1e-3).fit(f.small, f.classes[:1500]).dual_coef_
    ),
    "GenotypePCA": lambda f: gramian.GenotypePCA(2, solver="krylov").fit(f.people).components_,
    "GenotypePCA, all pairs": lambda f: gramian.GenotypePCA(2, solver="exact").fit(f.people).eigenvectors_,
    "bootstrap": lambda f: (
        bootstrap(gramian.PCA(2).fit(f.small), f.small, n_replicates=40, scores=False).components.error
    ),
    "cross-validation": lambda f: cross_validate_rank(gramian.PCA(), f.small, n_folds=4, max_components=3).values,
}

# Fits that are resumed: what iterates, and those that make one pass. The last writes a folder of results.
RESUMED: dict[str, Fit] = {
    name: FITS[name]
    for name in (
        "PCA, Gram matrix",
        "PCA, Parquet in parts",
        "PCA, Krylov",
        "Ridge, least squares",
        "GaussianMixture",
        "KernelPCA",
        "KernelRidge",
        "GenotypePCA",
        "PCA, missing cells",
    )
}
RESUMED["GaussianMixture, missing cells"] = lambda f: gramian.GaussianMixture(2, random_state=0).fit(f.holes).means_


@dataclass
class Count:
    """What happened to one kind of victim."""

    kills: int = 0
    fits: int = 0
    done_again: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, name: str, found: Any, expected: Any) -> None:
        """Count a fit, and keep its name where a bit differs."""
        self.fits += 1
        if not np.array_equal(found, expected):
            self.wrong.append(name)


class _Mortal:
    """A task that ends its process now and then: before its work, or after it, when its result is lost."""

    def __init__(self, task: Any, share: float, folder: str) -> None:
        self.task, self.share, self.folder = task, share, folder

    def __call__(self, item: Any) -> Any:
        lot = random.SystemRandom().random()
        if lot < self.share / 2:
            self._end()
        result = self.task(item)
        if lot < self.share:
            self._end()
        return result

    def _end(self) -> None:
        Path(self.folder, f"{time.time_ns()}-{os.getpid()}").touch()
        os._exit(1)

    def describe(self, item: Any) -> str:
        return f"{type(self.task).__name__} of {item}"


class MortalDask(Dask):
    """A Dask cluster whose tasks end their worker now and then."""

    def __init__(self, client: Any, share: float, folder: Path) -> None:
        super().__init__(client, PATIENCE)
        self.share, self.folder = share, str(folder)

    def map(self, task: Any, items: Sequence[Any]) -> Iterator[Any]:
        return super().map(_Mortal(task, self.share, self.folder), items)

    def reduce(self, task: Any, items: Sequence[Any], merge: Any) -> Any:
        return super().reduce(_Mortal(task, self.share, self.folder), items, merge)


class MortalProcesses(Processes):
    """Processes whose tasks end them now and then."""

    def __init__(self, workers: int, share: float, folder: Path) -> None:
        super().__init__(workers)
        self.share, self.folder = share, str(folder)

    def map(self, task: Any, items: Sequence[Any]) -> Iterator[Any]:
        return super().map(_Mortal(task, self.share, self.folder), items)


def find_answers(files: Files, fits: dict[str, Fit]) -> dict[str, Any]:
    """Return what every fit finds in a process of its own that nothing happens to."""
    folder = Path(tempfile.mkdtemp(prefix="gramian-chaos-"))
    try:
        return {name: _run_until_done(fit, files, folder / "answer.npy", None, None)[0] for name, fit in fits.items()}
    finally:
        shutil.rmtree(folder)


def kill_tasks(files: Files, answers: dict[str, Any], kills: int, where: Any, share: float) -> Count:
    """Fit after fit while tasks end their workers, until so many have. ``where`` makes the executor."""
    count, names = Count(), list(FITS)
    folder = Path(tempfile.mkdtemp(prefix="gramian-chaos-"))
    try:
        while (count.kills if count.fits else -1) < kills and len(count.wrong) < 3:
            name = names[count.fits % len(names)]
            _fit_and_check(count, name, files, answers, where(share, folder))
            count.kills = len(list(folder.iterdir()))
    finally:
        shutil.rmtree(folder)
    return count


def _fit_and_check(count: Count, name: str, files: Files, answers: dict[str, Any], executor: Executor) -> None:
    with cluster(executor, patience=PATIENCE), config_context(working_memory=MEMORY):
        try:
            found = FITS[name](files)
        except ClusterError as error:
            count.wrong.append(f"{name}: {error}")
            return
        count.check(name, found, answers[name])
        if executor is not HERE and not describe_use():
            count.wrong.append(f"{name}: made here, not by {executor.describe()}")
        told = describe_use().rpartition(", ")[2]
        count.done_again += int(told.split()[0]) if "done again" in told else 0


def kill_workers(files: Files, answers: dict[str, Any], kills: int, mode: str, life: float) -> Count:
    """Fit after fit while Dask's KillWorker ends workers whatever they are doing, until it has ended so many."""
    from distributed.chaos import KillWorker

    count, names = Count(), list(FITS)
    folder = Path(tempfile.mkdtemp(prefix="gramian-chaos-"))

    class CountedKill(KillWorker):
        """KillWorker that leaves a file for each worker that it ends."""

        def mark(self) -> None:
            (folder / f"{time.time_ns()}-{os.getpid()}").touch()

        def graceful(self) -> None:
            self.mark()
            super().graceful()

        def sys_exit(self) -> None:
            self.mark()
            super().sys_exit()

        def segfault(self) -> None:
            self.mark()
            super().segfault()

    try:
        with local_workers() as client:
            client.register_plugin(CountedKill(f"{1000 * life:.0f} ms", mode), name="chaos")
            while (count.kills if count.fits else -1) < kills and len(count.wrong) < 3:
                _fit_and_check(count, names[count.fits % len(names)], files, answers, Dask(client, PATIENCE))
                count.kills = len(list(folder.iterdir()))
            client.unregister_worker_plugin("chaos")
    finally:
        shutil.rmtree(folder)
    return count


def compare_executors(files: Files, answers: dict[str, Any]) -> dict[str, Count]:
    """Every fit by threads here, on Dask clusters of one, two and four workers, each a process, and by processes."""
    counts = {f"{threads} threads": Count() for threads in (1, 2)}
    for threads in (1, 2):
        with threadpool_limits(threads):
            for name in FITS:
                _fit_and_check(counts[f"{threads} threads"], name, files, answers, HERE)
    for workers in (1, 2, 4):
        with local_workers(workers) as client:
            counts[f"Dask, {workers} workers"] = count = Count()
            for name in FITS:
                _fit_and_check(count, name, files, answers, Dask(client))
        counts[f"{workers} processes"] = count = Count()
        for name in FITS:
            _fit_and_check(count, name, files, answers, Processes(workers))
    return counts


@contextmanager
def local_workers(workers: int = 2) -> Iterator[Any]:
    """Give a client of workers that are processes, each started again when it ends."""
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        with inside, Client(inside) as client:
            yield client


def _run_until_done(
    fit: Fit, files: Files, out: Path, state: Path | None, draw: Callable[[], float | None] | None
) -> tuple[Any, int, float]:
    """Run a fit in a child process, killed as often as ``draw`` gives a time; its result, kills, and last duration."""
    kills = 0
    while True:
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                warnings.simplefilter("ignore")
                with config_context(working_memory=MEMORY):
                    if state is None:
                        found = fit(files)
                    else:
                        with gramian.checkpoint(state):
                            found = fit(files)
                np.save(out.with_name("part.npy"), found)
                out.with_name("part.npy").rename(out)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        moment = draw() if draw is not None else None
        if moment is not None:
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        kills += os.WIFSIGNALED(status)
        if out.exists():
            found = np.load(out)
            out.unlink()
            return found, kills, time.monotonic() - begun
        if not os.WIFSIGNALED(status):
            raise RuntimeError("A fit ended by itself, without a result.")


def kill_drivers(files: Files, answers: dict[str, Any], kills: int, seed: int) -> dict[str, Count]:
    """Kill the process of each fit at random moments, and resume it, until so many have been killed."""
    counts = {name: Count() for name in RESUMED}
    folder, draw = Path(tempfile.mkdtemp(prefix="gramian-chaos-")), random.Random(seed)
    try:
        lasts = {
            name: _run_until_done(RESUMED[name], files, folder / "x.npy", folder / "state", None)[2] for name in counts
        }
        while sum(count.kills for count in counts.values()) < kills:
            for name, count in counts.items():
                left = [3]  # kills of one fit, so that some of it is resumed more than once

                def moment(left: list[int] = left, last: float = lasts[name]) -> float | None:
                    left[0] -= 1
                    return draw.random() * last if left[0] >= 0 else None

                found, killed, _ = _run_until_done(RESUMED[name], files, folder / "x.npy", folder / "state", moment)
                count.kills += killed
                count.check(name, found, answers[name])
                if (left_over := sorted(path.name for path in folder.iterdir())) != []:
                    count.wrong.append(f"{name} left {', '.join(left_over)}")
                    shutil.rmtree(folder)
                    folder.mkdir()
                if sum(count.kills for count in counts.values()) >= kills:
                    break
    finally:
        shutil.rmtree(folder)
    return {name: count for name, count in counts.items() if count.fits}


def kill_commands(files: Files, kills: int, seed: int) -> Count:
    """Kill ``gramian pca --out --checkpoint`` at random moments: a folder of results is whole, or not there."""
    from gramian.cli import main

    count, draw = Count(), random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="gramian-chaos-"))

    def command(out: Path) -> Fit:
        words = ["pca", files.table, "-k", "3", "--solver", "krylov", "--out", str(out), "--force", "--no-pictures"]

        def run(_: Files) -> Any:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            main([*words, "--checkpoint", str(folder / "state")], standalone_mode=False)
            return 0

        return run

    def read(out: Path) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in sorted(out.iterdir()) if p.suffix == ".csv"}

    try:
        _, _, last = _run_until_done(command(folder / "whole"), files, folder / "x.npy", None, None)
        whole, out = read(folder / "whole"), folder / OUT
        while count.kills < kills:
            left = [2]

            def moment(left: list[int] = left) -> float | None:
                left[0] -= 1
                if out.exists() and read(out) != whole:
                    count.wrong.append("a folder of results was not whole")
                return draw.random() * last if left[0] >= 0 else None

            _, killed, _ = _run_until_done(command(out), files, folder / "x.npy", None, moment)
            count.kills += killed
            count.check("gramian pca", list(read(out).values()) == list(whole.values()), True)
            if (there := sorted(path.name for path in folder.iterdir())) != [OUT, "whole"]:
                count.wrong.append(f"left {', '.join(there)}")
            shutil.rmtree(out)
    finally:
        shutil.rmtree(folder)
    return count


def report(title: str, column: str, counts: dict[str, Count]) -> list[str]:
    """Return a table of what happened."""
    lines = [
        f"## {title}",
        "",
        f"| {column} | kills | fits | tasks done again | other bits, or lost |",
        "|---|---|---|---|---|",
    ]
    for name, count in counts.items():
        wrong = "; ".join(count.wrong) or "none"
        lines.append(f"| {name} | {count.kills} | {count.fits} | {count.done_again or ''} | {wrong} |")
    return [
        *lines,
        f"| all | {sum(c.kills for c in counts.values())} | {sum(c.fits for c in counts.values())} | | |",
        "",
    ]


def main() -> None:
    """Read the command line, run, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="of workers, and as many of drivers")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which drivers are killed")
    parser.add_argument("--life", type=float, default=LIFE, help="seconds that KillWorker lets a worker live")
    parser.add_argument("--out", type=Path, help="file for the report")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder, begun = Path(tempfile.mkdtemp(prefix="gramian-chaos-")), time.monotonic()
    parts, text, seen = options.only or PARTS, list[str](), list[Count]()

    def tell(title: str, column: str, counts: dict[str, Count]) -> None:
        lines = report(title, column, counts)
        print("\n".join(lines), flush=True)
        text.extend(lines)
        seen.extend(counts.values())

    try:
        files, part = write_files(folder), max(1, options.kills // 5)
        answers = find_answers(files, FITS | RESUMED)  # by forks, before this process has computed anything
        if "drivers" in parts:
            drivers = kill_drivers(files, answers, options.kills, options.seed)
            drivers["gramian pca --out --checkpoint"] = kill_commands(files, part, options.seed)
            tell("Drivers, by SIGKILL at a random moment, and resumed", "fit", drivers)
        if "workers" in parts:
            workers: dict[str, Count] = {}
            with local_workers() as client:
                workers["`os._exit` in tasks, 2 Dask workers"] = kill_tasks(
                    files, answers, 2 * part, lambda share, folder: MortalDask(client, share, folder), SHARE
                )
            print(workers, flush=True)
            for mode in ("sys.exit", "segfault", "graceful"):
                kind = f"`KillWorker`, {mode}, after {options.life:g} s in the mean, 2 Dask workers"
                workers[kind] = kill_workers(files, answers, 1 + part * 2 // 3, mode, options.life)
                print(kind, workers[kind], flush=True)
            workers["`os._exit` in tasks, 2 processes"] = kill_tasks(
                files, answers, part, lambda share, folder: MortalProcesses(2, share, folder), SHARE
            )
            tell("Workers", "how", workers)
        if "quiet" in parts:
            tell("Nothing killed: the bits of one process", "who worked", compare_executors(files, answers))
    finally:
        shutil.rmtree(folder)
    facts = describe()
    told = f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, NumPy {facts['numpy']}"
    text = [HEAD, f"{told}; seed {options.seed}; {time.monotonic() - begun:.0f} s.", "", *text]
    print("\n".join(text))
    if options.out is not None:
        options.out.write_text("\n".join(text), encoding="utf-8")
    if any(count.wrong for count in seen):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
