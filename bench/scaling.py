"""How passes scale, and peers beside them on the same cluster: ``python -m bench.scaling``.

``--only`` runs one of five parts. ``paper``: what passes over large data move, by arithmetic. ``workers``: one fit by
one worker process and by more. ``simulation``: up to 1,000 simulated workers, whose tasks wait as long as real ones
would read and then return a matrix; the scheduler is a process of its own, the workers are threads of others.
``peers``: ``dask.array.linalg.svd_compressed`` and dask-ml's PCA, where that is installed, on the Zarr store that ours
reads. ``cells``: the single-cell recipe beside scanpy, where that is installed, on the same ``.h5ad`` file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp

import gramian
from bench.chaos import local_workers
from bench.machine import describe
from gramian.compute.executor import MOST_SHARES, Dask, cluster

ROOT = Path(__file__).parents[1]
ORDER = 200  # of the matrix that a simulated task returns
COUNTS = (16, 64, 256, 512, 1000)
EACH = 4  # tasks for each simulated worker, while there are as many shares
WORK = 4.0  # seconds that each simulated worker has to do in a pass
WIDTH = 32  # columns of a block of vectors
PARTS = ("paper", "workers", "simulation", "peers", "cells")
K = 10
HEAD = """\
# Scaling, and peers on the same cluster

`python -m bench.scaling`. Workers are processes of one thread each.
"""


def make_rows(n: int, p: int, start: int, stop: int) -> np.ndarray[Any, Any]:
    """Return rows of a table whose variances fall slowly, the same whatever is asked for with them."""
    rng = np.random.default_rng([start, n, p])
    Q = np.linalg.qr(np.random.default_rng(p).normal(size=(p, p)))[0]
    rows: np.ndarray[Any, Any] = rng.normal(size=(stop - start, p)) * (np.arange(1, p + 1) ** -0.3) @ Q + 5.0
    return rows


def write_table(path: Path, n: int, p: int, step: int = 20_000) -> None:
    """Write the table as a ``.npy`` file, or as a Zarr store, a chunk for each ``step`` rows."""
    if path.suffix == ".npy":
        out: Any = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, p))
    else:
        import zarr

        out = zarr.create_array(path, shape=(n, p), chunks=(step, p), dtype="f8", compressors=None)
    for a in range(0, n, step):
        out[a : a + step] = make_rows(n, p, a, min(a + step, n))


def _sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def measure_workers(folder: Path, n: int, counts: Sequence[int]) -> list[str]:
    """One fit by one worker, two, and more: seconds, how much of the workers is used, and what they sent."""
    path = folder / "x.npy"
    write_table(path, n, 200)
    fits: dict[str, Callable[[], Any]] = {
        "PCA, Gram matrix": lambda: gramian.PCA(K, svd_solver="covariance_eigh").fit(path),
        "PCA, Krylov": lambda: gramian.PCA(K, svd_solver="krylov").fit(path),
        "Ridge": lambda: gramian.Ridge().fit(path, np.arange(float(n))),
    }
    size = f"{n:,} × 200, float64, {n * 1600 / 1e9:.2f} GB, in the page cache; best of 3"
    lines = [f"## From one worker to {max(counts)} ({size})", ""]
    lines += ["| fit | workers | seconds | efficiency | sent by the workers |", "|---|---|---|---|---|"]
    alone: dict[str, float] = {}
    for count in counts:
        with local_workers(count) as client, cluster(client):
            gramian.PCA(1).fit(path)  # imports, and the first look at the file
            for name, fit in fits.items():
                times, sent = list[float](), sum(client.run(_sent).values())
                for _ in range(3):
                    begun = time.perf_counter()
                    fit()
                    times.append(time.perf_counter() - begun)
                best, moved = min(times), (sum(client.run(_sent).values()) - sent) / 3
                alone.setdefault(name, best * count)
                line = f"| {name} | {count} | {best:.2f} | {alone[name] / best / count:.0%} | {tell_size(moved)} |"
                print(line, flush=True)
                lines.append(line)
    return [*lines, ""]


class Wait:
    """A task that takes some seconds and returns a matrix; one worker in ``slow_one_in`` takes three times as long."""

    def __init__(self, seconds: float, slow_one_in: int = 0) -> None:
        self.seconds, self.slow_one_in = seconds, slow_one_in

    def __call__(self, item: int) -> Any:
        slow = False
        if self.slow_one_in:
            from distributed import get_worker

            slow = int(get_worker().name) % self.slow_one_in == 0
        time.sleep(self.seconds * (3 if slow else 1))
        return np.full((ORDER, ORDER), float(item))


async def be_workers(address: str, first: int, count: int) -> None:
    """Be so many workers of one thread each, until the scheduler goes."""
    from distributed import Worker

    made: list[Any] = []
    for start in range(first, first + count, 50):
        names = range(start, min(start + 50, first + count))
        made += await asyncio.gather(*(Worker(address, nthreads=1, dashboard=False, name=i) for i in names))
    await asyncio.gather(*(worker.finished() for worker in made))


@contextmanager
def simulated_workers(count: int, hosts: int) -> Iterator[tuple[Any, Callable[[], list[float]]]]:
    """Give a client of so many workers in a few processes, and the processor seconds of scheduler, hosts and here."""
    from distributed import Client

    running: list[Any] = []

    def start(*words: str) -> Any:
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running.append(subprocess.Popen([sys.executable, *words], cwd=ROOT, **quiet))
        return running[-1]

    def read() -> list[float]:
        used = [sum(psutil.Process(process.pid).cpu_times()[:2]) for process in running]
        return [used[0], max(used[1:]), sum(psutil.Process().cpu_times()[:2])]

    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/s.json"
        try:
            words = ("--port", "0", "--no-dashboard", "--scheduler-file", file)
            start("-m", "distributed.cli.dask_scheduler", *words)
            with Client(scheduler_file=file, timeout=60) as client:
                cuts = [count * i // hosts for i in range(hosts + 1)]
                for a, b in pairwise(cuts):
                    start("-m", "bench.scaling", "--be", client.scheduler.address, str(a), str(b - a))
                client.wait_for_workers(count, timeout=300)
                yield client, read
        finally:
            for process in running:
                process.terminate()
                process.wait()


def simulate(counts: Sequence[int], hosts: int) -> list[str]:
    """Passes in which each worker has some seconds of work: what they take, and who was busy meanwhile."""
    lines = [
        f"## Simulated workers (each has {WORK:g} s to wait in a pass, in {EACH} tasks where 1,024 shares suffice)",
        "",
        f"A task returns {ORDER} × {ORDER} numbers. Workers are threads of {hosts} processes (hosts). Busy: processor",
        "time over the seconds of the pass. Efficiency: the work, divided evenly, over what the pass takes.",
        "",
        "| workers | tasks | pass | efficiency | of that by uneven shares | scheduler busy | driver busy | hosts busy "
        "| one worker in 16 three times slower |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for count in counts:
        shares = min(MOST_SHARES, EACH * count)
        seconds = WORK * count / shares
        with simulated_workers(count, hosts) as (client, read):
            executor, items = Dask(client), range(shares)
            executor.reduce(Wait(0.0), range(count), np.add)
            times, used = list[float](), list[list[float]]()
            for task in (Wait(seconds), Wait(seconds, 16)):
                before, begun = read(), time.perf_counter()
                total = executor.reduce(task, items, np.add)
                times.append(time.perf_counter() - begun)
                used.append([(b - a) / times[-1] for a, b in zip(before, read(), strict=True)])
                assert total[0, 0] == sum(items)
        even = WORK / (-(-shares // count) * seconds)
        busy = " | ".join(f"{share:.0%}" for share in (used[0][0], used[0][2], used[0][1]))
        line = f"| {count:,} | {shares:,} | {times[0]:.2f} s | {WORK / times[0]:.0%} | {even:.0%} | {busy} |"
        line += f" {times[1]:.2f} s |"
        print(line, flush=True)
        lines.append(line)
    return [*lines, ""]


@dataclass(frozen=True)
class Traffic:
    """What a fit moves: passes, bytes read in each, bytes to a worker for each pass, and back from each share."""

    name: str
    passes: tuple[int, int]
    read: float
    there: float
    back: float
    shares: int


def list_traffic() -> list[Traffic]:
    """The three examples: a table, genotypes, cells, with blocks of ``WIDTH`` vectors."""
    rows, columns = 10**9, 200
    people, snps = 500_000, 10**7
    cells, genes, stored, chosen = 10**7, 30_000, 0.05, 2000
    return [
        Traffic(
            f"{rows:,} rows × {columns}, float64: `PCA`, Gram matrix",
            (1, 1),
            8.0 * rows * columns,
            4e3,
            8.0 * columns**2,
            MOST_SHARES,
        ),
        Traffic(
            f"{people:,} people × {snps:,} SNPs, 2 bits: `GenotypePCA`",
            (10, 30),
            people * snps / 4,
            4.0 * people * WIDTH + 16 * snps / 16,
            8.0 * people * WIDTH,
            16,
        ),
        Traffic(
            f"{cells:,} cells × {genes:,} genes, {stored:.0%} stored (8 bytes), {chosen:,} genes chosen: `PCA`, Krylov",
            (10, 30),
            8.0 * cells * genes * stored,
            8.0 * chosen * WIDTH,
            8.0 * chosen * WIDTH,
            MOST_SHARES,
        ),
    ]


def tell_size(size: float) -> str:
    """Bytes in a unit that suits them."""
    for unit, factor in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def list_bytes() -> list[str]:
    """What the passes move, on paper."""
    lines = [
        f"## On paper (blocks of {WIDTH} vectors; a pass merges on the workers, and one statistic comes back)",
        "",
        "| fit | passes | read in a pass | in all | read by each of 100 workers in a pass | to a worker in a pass "
        "| between workers in a pass | to the driver in a pass |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for t in list_traffic():
        few, many = t.passes
        passes = f"{few}" if few == many else f"{few}–{many}"
        whole = tell_size(few * t.read) + ("" if few == many else f"–{tell_size(many * t.read)}")
        among = min(100, t.shares)
        each = f"{tell_size(t.read / among)}{'' if among == 100 else f' ({among} work)'}"
        lines.append(
            f"| {t.name} | {passes} | {tell_size(t.read)} | {whole} | {each} | {tell_size(t.there)} "
            f"| at most {t.shares - 1:,} × {tell_size(t.back)} | {tell_size(t.back)} |"
        )
    return [*lines, ""]


def find_truth(path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Components and variances of a table in memory, by an eigendecomposition of the centred Gram matrix."""
    import zarr

    X = zarr.open(path, mode="r")[:]
    X -= X.mean(axis=0)
    values, vectors = np.linalg.eigh(X.T @ X)
    return vectors[:, ::-1][:, :K].T, values[::-1][:K] / (len(X) - 1)


def fit_ours_path(path: Path) -> tuple[Any, Any]:
    """Ours, of the store: workers read it themselves."""
    model = gramian.PCA(K).fit(path)
    return model.components_, model.explained_variance_


def fit_ours_array(path: Path) -> tuple[Any, Any]:
    """Ours, of the Dask array that the others take."""
    import dask.array as da

    model = gramian.PCA(K).fit(da.from_zarr(str(path)))
    return model.components_, model.explained_variance_


def fit_compressed(path: Path, passes: int) -> tuple[Any, Any]:
    """Dask's randomised decomposition of the centred array, with so many power iterations."""
    import dask
    import dask.array as da

    X = da.from_zarr(str(path))
    _, s, v = da.linalg.svd_compressed(X - X.mean(axis=0), K, n_power_iter=passes, seed=0)
    s, v = dask.compute(s, v)
    return v, s**2 / (X.shape[0] - 1)


def fit_dask_ml(path: Path, solver: str) -> tuple[Any, Any]:
    """dask-ml's PCA."""
    import dask.array as da
    from dask_ml.decomposition import PCA

    model = PCA(K, svd_solver=solver, random_state=0).fit(da.from_zarr(str(path)))
    return model.components_, model.explained_variance_


PEERS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    "gramian.PCA, of the store": fit_ours_path,
    "gramian.PCA, of the Dask array": fit_ours_array,
    "svd_compressed, 0 power iterations (default)": lambda path: fit_compressed(path, 0),
    "svd_compressed, 4 power iterations": lambda path: fit_compressed(path, 4),
    "dask_ml PCA, randomized": lambda path: fit_dask_ml(path, "randomized"),
    "dask_ml PCA, full (tsqr)": lambda path: fit_dask_ml(path, "full"),
}


def _peak() -> int:
    """The most memory of this process so far, in kB; ``getrusage`` would begin with that of its parent."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


def compare_peers(folder: Path, n: int) -> list[str]:
    """PCA of one table by everyone, on a new cluster of two workers each: seconds, memory, and how far off."""
    path = folder / "x.zarr"
    write_table(path, n, 200)
    C, values = find_truth(path)
    lines = [f"## Peers ({n:,} × 200, float64, {n * 1600 / 1e9:.2f} GB in a Zarr store, {K} components, 2 workers)", ""]
    lines += [
        "| who | seconds | most memory of a worker | largest angle to the components | worst variance |",
        "|---|---|---|---|---|",
    ]
    for name, fit in PEERS.items():
        with local_workers(2) as client, cluster(client):
            before = max(client.run(_peak).values())
            times, V, found = list[float](), None, None
            try:
                for _ in range(2):
                    begun = time.perf_counter()
                    V, found = fit(path)
                    times.append(time.perf_counter() - begun)
            except ImportError as error:
                lines.append(f"| {name} | not installed: {error} | | | |")
                continue
            peak = max(client.run(_peak).values())
        rest = np.asarray(V).T - C.T @ (C @ np.asarray(V).T)
        angle = np.arcsin(min(1.0, float(np.linalg.norm(rest, 2))))
        worst = float(np.max(np.abs(np.asarray(found) / values - 1)))
        line = f"| {name} | {min(times):.2f} | {peak / 1e3:.0f} MB ({before / 1e3:.0f} before) |"
        line += f" {angle:.1e} | {worst:.1e} |"
        print(line, flush=True)
        lines.append(line)
    return [*lines, ""]


def write_cells(path: Path, cells: int, genes: int) -> None:
    """Write counts of cells of eight kinds as a sparse ``.h5ad``."""
    import anndata
    import pandas as pd

    rng = np.random.default_rng(0)
    base, kinds = rng.gamma(0.15, 0.4, genes), rng.lognormal(0, 0.8, (8, genes))
    parts = [
        sp.csr_matrix(
            rng.poisson(base * kinds[rng.integers(8, size=1000)] * rng.lognormal(0, 0.4, (1000, 1))), dtype="f4"
        )
        for _ in range(cells // 1000)
    ]
    X = sp.vstack(parts, format="csr")
    names = (
        pd.DataFrame(index=pd.Index([f"{k}{i}" for i in range(m)], dtype=object))
        for k, m in zip("cg", X.shape, strict=True)
    )
    anndata.AnnData(X, *names).write_h5ad(path)
    deviations = np.asarray(X.multiply(X).mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
    np.save(path.with_suffix(".genes.npy"), np.sort(np.argsort(-deviations)[:2000]))


def do_cells(who: str, path: Path) -> dict[str, Any]:
    """Normalise, take logarithms, select genes, scale and decompose, from the file to the components."""
    genes = np.load(path.with_suffix(".genes.npy"))
    begun = time.perf_counter()
    if who == "gramian":
        cells = gramian.open(path).normalise(1e4).log1p().select_columns(genes)
        model = gramian.PCA(50, scale=True).fit(cells)
        components, variances = model.components_, model.explained_variance_
    else:
        import scanpy as sc

        data = sc.read_h5ad(path)
        sc.pp.normalize_total(data, target_sum=1e4)
        sc.pp.log1p(data)
        data = data[:, genes].copy()
        sc.pp.scale(data)
        sc.pp.pca(data, n_comps=50)
        components, variances = data.varm["PCs"].T, data.uns["pca"]["variance"]
    seconds = time.perf_counter() - begun
    np.savez(path.with_suffix(f".{who}.npz"), C=components, v=variances)
    return {"seconds": seconds, "peak": _peak()}


def compare_cells(folder: Path, cells: int) -> list[str]:
    """The recipe by both, each in a process of its own."""
    path = folder / "cells.h5ad"
    write_cells(path, cells, 10_000)
    size = f"{cells:,} cells × 10,000 genes, {path.stat().st_size / 1e6:.0f} MB"
    lines = [f"## The single-cell recipe ({size}; 2,000 genes, 50 components)", ""]
    lines += ["| who | seconds | peak memory of the process |", "|---|---|---|"]
    for who in ("gramian", "scanpy"):
        words = ["-m", "bench.scaling", "--cells", who, str(path)]
        done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            lines.append(f"| {who} | {done.stderr.strip().splitlines()[-1]} | |")
            continue
        told = json.loads(done.stdout.splitlines()[-1])
        lines.append(f"| {who} | {told['seconds']:.1f} | {told['peak'] / 1e3:.0f} MB |")
    files = [path.with_suffix(f".{who}.npz") for who in ("gramian", "scanpy")]
    if all(file.exists() for file in files):
        a, b = (np.load(file) for file in files)
        gaps = np.abs(a["v"] / b["v"] - 1)
        angle = [np.linalg.norm(b["C"][:k] - b["C"][:k] @ a["C"][:k].T @ a["C"][:k], 2) for k in (7, 50)]
        lines += [
            "",
            f"Variances agree to {gaps[:7].max():.1e} (seven components that stand out) and {gaps.max():.1e} (all);",
        ]
        lines[-1] += f" the sine of the largest angle is {angle[0]:.1e} and {angle[1]:.1e}."
    return [*lines, ""]


def main() -> None:
    """Read the command line, run, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--workers", type=int, nargs="+", default=(1, 2), help="of the measured clusters")
    parser.add_argument("--number-of-cells", type=int, default=40_000)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS, help="of simulated workers")
    parser.add_argument("--out", type=Path, help="file for the report")
    parser.add_argument("--hosts", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="processes they share")
    parser.add_argument("--be", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--cells", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.be:
        asyncio.run(be_workers(options.be[0], int(options.be[1]), int(options.be[2])))
        return
    if options.cells:
        print(json.dumps(do_cells(options.cells[0], Path(options.cells[1]))))
        return
    facts = describe()
    told = [f"{facts['cpu']}, {facts['cores']} cores, load {facts['load_before']} before; Python {facts['python']}"]
    told += [
        f"NumPy {facts['numpy']}, one BLAS thread a process." if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else ""
    ]
    lines = [HEAD, ", ".join(filter(None, told)), ""]
    with tempfile.TemporaryDirectory(prefix="gramian-scaling-") as name:
        for part in options.only or PARTS:
            if part == "paper":
                lines += list_bytes()
            elif part == "workers":
                lines += measure_workers(Path(name), options.rows, options.workers)
            elif part == "simulation":
                lines += simulate(options.counts, options.hosts)
            elif part == "peers":
                lines += compare_peers(Path(name), options.rows)
            else:
                lines += compare_cells(Path(name), options.number_of_cells)
            print("\n".join(lines), flush=True)
            if options.out is not None:
                options.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
