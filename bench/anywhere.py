"""Shapes that nobody chose: ``python -m bench.anywhere`` draws them and compares with every solver of scikit-learn.

For each class (PCA, KernelPCA, Ridge, RidgeCV, KernelRidge, GaussianMixture) rows, columns, components, precision,
sparsity, spectrum, kernel and covariance type are drawn at random, sizes log-uniformly within a limit on the numbers
of a table. The seed is fresh and printed; ``--seed`` repeats a run. Ours and every solver of scikit-learn fit the
same data in fresh processes in alternating order. A ratio is the time of the fastest *accurate* solver over ours.

``--together`` fits all solvers of a shape in one process, in alternating order, which spares nine in ten starts of
Python: sixty shapes for each class take minutes rather than hours. ``--processor`` counts processor time with one BLAS
thread, for a machine that is not idle. ``--minutes`` shares out the time between the classes and draws while it lasts.

``--also-busy`` times ours once more beside a process that is busy, and says how much longer it takes.

A mixture counts with the whole fit that reaches at least our likelihood, less 0.001 a row: scikit-learn's with one
start, three, ten or thirty, the fastest that does. Where none does, the time of the most starts is a bound: the ratio
is that or more. Default against default is a second figure, of all shapes where ours is as likely as scikit-learn's one
start, less 0.001 a row.

``--tree FOLDER`` times another checkout of the project as well and prints new over old, shape by shape.
"""

import argparse
import json
import math
import os
import platform
import secrets
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench import machine

ROOT = Path(__file__).resolve().parent.parent
MOST_NUMBERS = 2e7
# scikit-learn stores the kernel matrix in float64 and copies it: 0.5 GB at 8,000 rows.
MOST_KERNEL_ROWS = 8_000
SPECTRA = ("noise", "slow", "fast", "low rank")
ALPHAS = tuple(float(a) for a in np.logspace(-3, 3, 13))
# The largest relative residual of a fit that counts, unless ours is worse: then ten times ours.
ACCURATE = {"float64": 1e-6, "float32": 1e-4}
# A component that is missing although all residuals are small shows as lost energy, or as a worse objective.
LOST_SHARE = 1e-4
ALIKE = 1e-3  # of the mean log-likelihood of a row: mixtures so close are as likely
PATIENCE = 10.0  # times the limit that a fit may take by the clock where processor time is counted
BUSY_LIMIT = 2.5  # times as long a fit may take beside a busy process


@dataclass(frozen=True)
class Shape:
    """One drawn problem of ``kind``, reproducible from its own seed."""

    kind: str
    seed: int
    rows: int
    cols: int
    components: int = 0
    dtype: str = "float64"
    density: float = 1.0
    spectrum: str = "slow"
    option: str = ""
    alpha: float = 1.0

    def __str__(self) -> str:
        """Return the shape in words, as the tables show it."""
        parts = [f"{self.rows:,}×{self.cols:,}"]
        parts += [f"k={self.components}"] if self.components else []
        parts += [self.option] if self.option else []
        parts += [f"{self.density:.2%} filled"] if self.density < 1 else [self.spectrum]
        parts += ["float32"] if self.dtype == "float32" else []
        return ", ".join(parts)


@dataclass
class Timing:
    """The fits of one solver on one shape."""

    solver: str
    seconds: list[float] = field(default_factory=list)
    residual: float = math.inf
    objective: float = -math.inf
    method: str = ""
    failure: str = ""

    @property
    def time(self) -> float:
        """The least of the medians of its processes: what the machine does when nothing disturbs it."""
        return min(self.seconds, default=math.inf)


# ---------------------------------------------------------------------------------------------- drawing the shapes


def draw_shape(kind: str, rng: np.random.Generator, most_numbers: float = MOST_NUMBERS) -> Shape:
    """Return a random problem of ``kind`` with at most ``most_numbers`` entries (a sparse one: ten times that)."""

    def log_uniform(low: float, high: float) -> int:
        return round(math.exp(rng.uniform(math.log(low), math.log(high))))

    seed, spectrum = int(rng.integers(2**31)), str(rng.choice(SPECTRA))
    dtype = "float32" if rng.random() < 0.25 else "float64"
    if kind in {"KernelPCA", "KernelRidge"}:
        rows, cols = log_uniform(50, MOST_KERNEL_ROWS), log_uniform(2, 200)
        rows = min(rows, round(math.sqrt(most_numbers / 2e7) * MOST_KERNEL_ROWS))
        kernels = ["rbf", "rbf", "poly", "laplacian", "linear", "cosine"]
        return Shape(
            kind,
            seed,
            rows,
            cols,
            components=min(log_uniform(1, 50), rows - 1) if kind == "KernelPCA" else 0,
            dtype="float64",
            spectrum=spectrum,
            option=str(rng.choice(kernels)),
            alpha=float(10 ** rng.uniform(-3, 1)),
        )
    if kind == "GaussianMixture":
        while True:
            rows, cols, groups = log_uniform(50, 500_000), log_uniform(2, 60), log_uniform(2, 20)
            if rows * cols <= most_numbers / 2 and rows >= 5 * groups:
                covariance = str(rng.choice(["full", "diag", "tied", "spherical"]))
                return Shape(kind, seed, rows, cols, groups, dtype, option=covariance)
    density = 1.0
    if kind in {"PCA", "Ridge"} and rng.random() < 0.25:
        density = float(10 ** rng.uniform(-3, -1))
    while True:
        rows, cols = log_uniform(50, 500_000), log_uniform(2, 50_000)
        numbers = rows * cols * (density if density < 1 else 1.0)
        # A decomposition of a matrix of the shorter side must fit too.
        if numbers <= most_numbers and min(rows, cols) <= 5_000 and rows * cols <= 50 * most_numbers:
            break
    components = min(log_uniform(1, 100), max(1, min(rows, cols) // 2)) if kind == "PCA" else 0
    alpha = float(10 ** rng.uniform(-3, 3))
    return Shape(kind, seed, rows, cols, components, dtype, density, spectrum, alpha=alpha)


def make_data(shape: Shape) -> tuple[Any, np.ndarray]:
    """Return the table and a target for it."""
    rng = np.random.default_rng(shape.seed)
    n, p = shape.rows, shape.cols
    if shape.kind == "GaussianMixture":
        centres = 4 * rng.standard_normal((shape.components, p))
        label = rng.integers(shape.components, size=n)
        width = np.exp(rng.uniform(-0.7, 0.7, (shape.components, p)))
        return (centres[label] + width[label] * rng.standard_normal((n, p))).astype(shape.dtype), label
    weight = rng.standard_normal(p) / math.sqrt(p)
    if shape.density < 1:
        filled: Any = sp.random_array((n, p), density=shape.density, format="csr", rng=rng)
        X: Any = sp.csr_matrix(filled.astype(shape.dtype))
    else:
        rank = min(20, n, p)
        size = {"noise": np.zeros(rank), "low rank": np.full(rank, 10.0)}.get(shape.spectrum)
        if size is None:
            size = 10 * np.arange(1, rank + 1.0) ** (-0.5 if shape.spectrum == "slow" else -2.0)
        signal_part = (rng.standard_normal((n, rank)) * size) @ rng.standard_normal((rank, p)) / math.sqrt(rank)
        X = (signal_part + rng.standard_normal((n, p)) + rng.standard_normal(p)).astype(shape.dtype)
    if shape.kind in {"KernelPCA", "KernelRidge"}:
        X = X / np.std(X)
    y = np.asarray(X @ weight).ravel()
    return X, y + 0.1 * np.std(y) * rng.standard_normal(n)


# ------------------------------------------------------------------------------------------------------- the solvers


def peers(shape: Shape) -> list[str]:
    """Return the names of scikit-learn's solvers for ``shape``; the first is its default."""
    if shape.kind == "PCA":
        return ["auto", "covariance_eigh", "arpack"] if shape.density < 1 else ["auto", *PCA_SOLVERS]
    if shape.kind == "KernelPCA":
        return ["auto", "dense", "arpack", "randomized"]
    if shape.kind == "Ridge":
        dense = ["auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"]
        return [name for name in dense if shape.density == 1 or name not in {"svd", "cholesky", "saga"}]
    if shape.kind == "GaussianMixture":
        # one start often ends in a lower optimum than ours, which tries several: more starts are what it takes then
        return ["default", "n_init=3", "n_init=10", "n_init=30"]
    return ["auto", "svd", "eigen"] if shape.kind == "RidgeCV" else ["default"]


PCA_SOLVERS = ("full", "covariance_eigh", "arpack", "randomized")


def build(shape: Shape, solver: str) -> Any:
    """Return the estimator: ours for the solver "ours", otherwise scikit-learn's with that solver."""
    from importlib import import_module

    homes = {"PCA": "decomposition", "KernelPCA": "decomposition", "KernelRidge": "kernel_ridge"}
    homes |= {"GaussianMixture": "mixture"}
    ours = solver == "ours"
    home = "gramian" if ours else f"sklearn.{homes.get(shape.kind, 'linear_model')}"
    make = getattr(import_module(home), shape.kind)
    gamma = None if shape.option in {"linear", "cosine"} else 1.0 / shape.cols
    match shape.kind:
        case "PCA":
            return make(shape.components, **({} if ours else {"svd_solver": solver, "random_state": 0}))
        case "KernelPCA":
            extra = {} if ours else {"eigen_solver": solver, "random_state": 0}
            return make(shape.components, kernel=shape.option, gamma=gamma, **extra)
        case "Ridge":
            return make(shape.alpha, **({} if ours else {"solver": solver, "random_state": 0}))
        case "RidgeCV":
            return make(ALPHAS, **({} if ours else {"gcv_mode": solver}))
        case "KernelRidge":
            return make(alpha=shape.alpha, kernel=shape.option, gamma=gamma)
        case _:
            starts = {"n_init": int(solver.partition("=")[2])} if solver.startswith("n_init") else {}
            return make(shape.components, covariance_type=shape.option, random_state=0, **starts)


def measure_fit(shape: Shape, model: Any, X: Any, y: np.ndarray) -> tuple[float, float]:
    """Return the largest relative residual of a fit and its objective (larger is better), whoever made it.

    PCA: ‖AᵀAv − σ²v‖/σ₁² and Σσ²; kernel PCA: ‖K̃u − λu‖/λ₁ and Σλ; ridge: ‖Aᵀ(Aw − y) + αw‖/‖Aᵀy‖;
    kernel ridge: ‖(K + αI)a − y‖/‖y‖; a mixture: the mean log-likelihood alone.
    """
    match shape.kind:
        case "PCA":
            mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
            V = np.asarray(model.components_, dtype=np.float64).T
            squares = np.asarray(model.singular_values_, dtype=np.float64) ** 2
            forward = _times(X, V) - mean @ V
            back = _times(X.T, forward) - np.outer(mean, forward.sum(axis=0))
            residual = np.linalg.norm(back - V * squares, axis=0).max() / squares.max()
            return float(residual), float(squares.sum())
        case "KernelPCA":
            from sklearn.metrics.pairwise import pairwise_kernels

            named = {"gamma": 1.0 / shape.cols} if shape.option in {"rbf", "laplacian", "poly"} else {}
            K = pairwise_kernels(X, metric=shape.option, **named)
            K -= K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
            values = np.asarray(model.eigenvalues_, dtype=np.float64)
            U = np.asarray(model.eigenvectors_, dtype=np.float64)
            return float(np.linalg.norm(K @ U - U * values, axis=0).max() / values.max()), float(values.sum())
        case "Ridge" | "RidgeCV":
            mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
            w, alpha = np.asarray(model.coef_, dtype=np.float64).ravel(), getattr(model, "alpha_", shape.alpha)
            target = y - y.mean()

            def adjoint(r: np.ndarray) -> np.ndarray:
                return np.asarray(_times(X.T, r) - mean * r.sum())

            gradient = adjoint(_times(X, w) - mean @ w - target) + alpha * w
            chosen = -math.log(alpha) if shape.kind == "RidgeCV" else 0.0
            return float(np.linalg.norm(gradient) / np.linalg.norm(adjoint(target))), chosen
        case "KernelRidge":
            from sklearn.metrics.pairwise import pairwise_kernels

            named = {"gamma": 1.0 / shape.cols} if shape.option in {"rbf", "laplacian", "poly"} else {}
            K = pairwise_kernels(X, metric=shape.option, **named)
            dual = np.asarray(model.dual_coef_, dtype=np.float64).ravel()
            return float(np.linalg.norm(K @ dual + shape.alpha * dual - y) / np.linalg.norm(y)), 0.0
        case _:
            return 0.0, float(model.score(X))


def _times(X: Any, V: np.ndarray, rows: int = 4_096) -> np.ndarray:
    """Return X @ V in float64, by blocks of rows so that a float32 table is not copied whole."""
    if sp.issparse(X):
        table: Any = X
        return np.asarray(table.astype(np.float64) @ V)
    return np.concatenate([X[i : i + rows].astype(np.float64) @ V for i in range(0, X.shape[0], rows)])


def is_accurate(timing: Timing, ours: Timing, kind: str, dtype: str, best: float) -> bool:
    """Return whether a fit counts: residual within max(base, 10× ours) and no objective lost against ``best``."""
    if not math.isfinite(timing.residual):
        return False
    base = ACCURATE[dtype]
    slack = 10 * ours.residual if ours.residual <= base else base
    if timing.residual > max(base, slack):
        return False
    if kind in {"PCA", "KernelPCA"}:
        return timing.objective >= best * (1 - LOST_SHARE)
    if kind == "GaussianMixture":
        return timing.objective >= ours.objective - ALIKE
    return True


# -------------------------------------------------------------------------------------------------------- one process


def run_worker(task: dict[str, Any]) -> dict[str, Any]:
    """Fit one shape with one solver in this process: warm-up, then the median of repeated fits, then accuracy."""
    shape, solver = Shape(**task["shape"]), task["solver"]
    X, y = make_data(shape)
    supervised = shape.kind in {"Ridge", "RidgeCV", "KernelRidge"}

    def fit() -> tuple[float, Any]:
        model = build(shape, solver)
        start = time.perf_counter()
        fitted = model.fit(X, y) if supervised else model.fit(X)
        return time.perf_counter() - start, fitted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tiny = Shape(**{**task["shape"], "rows": 60, "cols": min(shape.cols, 5), "density": 1.0})
        tiny = Shape(**{**asdict(tiny), "components": min(shape.components, 2)})
        small, target = make_data(tiny)
        warm = build(tiny, "svd" if solver == "svd" else solver)
        warm.fit(small, target) if supervised else warm.fit(small)
        signal.setitimer(signal.ITIMER_REAL, task["limit"])
        first, model = fit()
        seconds = [first]
        if first < 1.0:
            # The first fit pays for pages and caches that all later ones find.
            seconds = [fit()[0] for _ in range(max(2, min(30, int(0.6 / max(first, 1e-6)))))]
        signal.setitimer(signal.ITIMER_REAL, 0)
        residual, objective = measure_fit(shape, model, X, y)
    certificate = getattr(model, "certificate_", None)
    method = "" if certificate is None else str(certificate.method)
    return {"seconds": median(seconds), "residual": residual, "objective": objective, "method": method}


def run_together(task: dict[str, Any]) -> dict[str, Any]:
    """Fit one shape with every solver in this process: all of them once, then ours and the two fastest in turn."""
    shape, solvers, clock = Shape(**task["shape"]), list(task["solvers"]), time.perf_counter
    if task["processor"]:
        clock = time.process_time
    X, y = make_data(shape)
    supervised = shape.kind in {"Ridge", "RidgeCV", "KernelRidge"}
    seconds: dict[str, list[float]] = {}
    found: dict[str, dict[str, Any]] = {}

    def fit(solver: str) -> Any:
        model = build(shape, solver)
        start = clock()
        fitted = model.fit(X, y) if supervised else model.fit(X)
        seconds.setdefault(solver, []).append(clock() - start)
        return fitted

    def give_up(*_: object) -> None:
        raise TimeoutError(f"over {task['limit']:g} s")

    # the limit is by the clock even where processor time is counted, whose timers make its clock coarse: others may
    # take most of the machine meanwhile
    longest = (PATIENCE if task["processor"] else 1.0) * task["limit"]
    before = signal.signal(signal.SIGALRM, give_up)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in solvers:
            if shape.kind == "GaussianMixture" and _is_reached(found):
                found[solver] = {"failure": "not needed: fewer starts reach ours"}
                continue
            signal.setitimer(signal.ITIMER_REAL, longest)
            try:
                model = fit(solver)
                if seconds[solver][0] < 1.0:  # the first fit pays for imports, pages and caches
                    seconds[solver].clear()
                    model = fit(solver)
            except Exception as error:  # whatever a solver dies of is its result
                found[solver] = {"failure": f"{type(error).__name__}: {error}"[:120]}
                continue
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            residual, objective = measure_fit(shape, model, X, y)
            method = str(getattr(getattr(model, "certificate_", None), "method", ""))
            found[solver] = {"residual": residual, "objective": objective, "method": method}
        done = sorted(
            (name for name in seconds if seconds[name] and "failure" not in found[name]),
            key=lambda name: seconds[name][0],
        )
        fine = [name for name in done if found[name]["residual"] <= 10 * ACCURATE[shape.dtype]]
        others = [name for name in fine if name != "ours"]
        if shape.kind == "GaussianMixture":  # one start, and as many as it took, whichever are fastest
            others = [name for name in solvers if name in others and name in {"default", _last(solvers, others)}]
        again = [*(["ours"] if "ours" in done else []), *others[:2]]
        turns = 0
        while again and turns < 100 and sum(sum(seconds[name]) for name in again) < task.get("spend", 0.5) * len(again):
            for name in again[:: -1 if turns % 2 else 1]:
                fit(name)
            turns += 1
        quiet = {name: median(each) for name, each in seconds.items() if each}
        if task.get("busy") and "ours" in done:
            with busy_process(True):
                time.sleep(0.1)  # until it spins
                seconds["ours"].clear()
                while not seconds["ours"] or (len(seconds["ours"]) < 100 and sum(seconds["ours"]) < 0.5):
                    fit("ours")
                found["ours"]["busy"] = median(seconds["ours"])
    signal.signal(signal.SIGALRM, before)
    return {name: {**result, "seconds": quiet.get(name, math.inf)} for name, result in found.items()}


def _is_reached(found: dict[str, dict[str, Any]]) -> bool:
    """Whether a mixture of scikit-learn's is as likely as ours, less 0.001 a row."""
    ours = found.get("ours", {}).get("objective", math.inf)
    return any(each.get("objective", -math.inf) >= ours - ALIKE for name, each in found.items() if name != "ours")


def _last(solvers: Sequence[str], names: Sequence[str]) -> str:
    """The last of the solvers that is among the names."""
    return next((name for name in reversed(solvers) if name in names), "")


def start_worker(shape: Shape, solver: str, limit: float, tree: Path = ROOT) -> dict[str, Any]:
    """Run one fit in a fresh process of ``tree`` and return what it found, or ``{"failure": why}``."""
    command = [sys.executable, "-m", "bench.anywhere", "--worker"]
    task = json.dumps({"shape": asdict(shape), "solver": solver, "limit": limit})
    paths = [str(tree / "src"), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, input=task, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    if done.returncode:
        reasons = {-signal.SIGALRM: f"over {limit:g} s", -signal.SIGKILL: "killed", -signal.SIGSEGV: "crashed"}
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"failure": reasons.get(-abs(done.returncode), last[:120])}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


class Nursery:
    """A process that has imported everything, and forks a fresh one for each shape: a start costs a millisecond."""

    def __init__(self, processor: bool) -> None:
        self.processor = processor
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        if processor:
            environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        command = [sys.executable, "-m", "bench.anywhere", "--nursery"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )

    def run(
        self,
        shape: Shape,
        limit: float,
        solvers: Sequence[str] | None = None,
        *,
        busy: bool = False,
        spend: float = 0.5,
    ) -> dict[str, Any]:
        """Run every solver on ``shape`` in one fresh process; where that dies, all of them have failed.

        With ``busy`` ours is timed once more beside another process, as "busy" of its results. Ours and the fastest
        two are repeated for ``spend`` seconds each.
        """
        solvers = ["ours", *peers(shape)] if solvers is None else list(solvers)
        task = {"shape": asdict(shape), "solvers": solvers, "limit": limit, "processor": self.processor}
        task |= {"busy": busy, "spend": spend}
        sender, receiver = self.process.stdin, self.process.stdout
        assert sender is not None
        assert receiver is not None
        sender.write(json.dumps(task) + "\n")
        sender.flush()
        found: dict[str, Any] = json.loads(receiver.readline())
        return {name: {"failure": found["died"]} for name in solvers} if "died" in found else found

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def serve_nursery() -> None:
    """Read tasks line by line; a forked process answers each. The parent itself never fits, so it has no threads."""
    for kind in CLASSES:
        for solver in ("ours", "auto"):
            build(Shape(kind, 0, 60, 2, 1, option="full" if kind == "GaussianMixture" else "rbf"), solver)
    for line in sys.stdin:
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receiver)
            try:
                answer = json.dumps(run_together(json.loads(line)))
            except BaseException as error:  # the process ends either way; this is what it died of
                answer = json.dumps({"died": f"{type(error).__name__}: {error}"[:120]})
            with os.fdopen(sender, "w") as pipe:
                pipe.write(answer)
            os._exit(0)
        os.close(sender)
        with os.fdopen(receiver) as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        print(answer or json.dumps({"died": f"ended with {os.waitstatus_to_exitcode(status)}"}), flush=True)


def compare_solvers(
    shape: Shape,
    limit: float,
    rounds: int,
    tree: Path | None,
    alone: bool,
    together: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return times and accuracies of every solver on ``shape``: the first round everyone, then ours and the fastest.

    ``together`` is what one process has found of all of them already.
    """
    trees = {"ours": ROOT} | ({"before": tree} if tree else {})
    names = [*trees, *([] if alone else peers(shape))]
    timings = {name: Timing(name) for name in names}

    def run(name: str) -> None:
        timing = timings[name]
        if together is None:
            found = start_worker(shape, "ours" if name in trees else name, limit, trees.get(name, ROOT))
        else:
            found = together[name]
        if "failure" in found:
            timing.failure = found["failure"]
            return
        timing.seconds.append(found["seconds"])
        timing.residual, timing.objective = found["residual"], found["objective"]
        timing.method = found["method"]

    for name in names:
        run(name)
    ours = timings["ours"]
    rivals = [timing for name, timing in timings.items() if name not in trees and not timing.failure]
    best = max((t.objective for t in [ours, *rivals] if t.residual <= ACCURATE[shape.dtype]), default=-math.inf)
    counted = [t for t in rivals if is_accurate(t, ours, shape.kind, shape.dtype, best)]
    rival = min(counted, key=lambda t: t.time, default=None)
    default = None
    if shape.kind == "GaussianMixture" and not ours.failure:
        one = timings.get("default")
        if one is not None and one.seconds and ours.objective >= one.objective - ALIKE:
            default = one.time / ours.time
        if rival is None and one is not None and not one.failure:  # even the most starts end lower
            rival = max((t for t in rivals if t.seconds), key=lambda t: t.time, default=None)
    again = [*trees, *([rival.solver] if rival else [])]
    for number in range(1, rounds if together is None else 1):
        for name in again[:: -1 if number % 2 else 1]:
            if not timings[name].failure:
                run(name)
    fine = not ours.failure and is_accurate(ours, ours, shape.kind, shape.dtype, best)
    worse = shape.kind == "GaussianMixture" and any(t.objective > ours.objective + ALIKE for t in rivals)
    if shape.kind == "RidgeCV":  # one criterion, exact in all: who is alone with another λ is wrong
        chosen = {round(t.objective, 6) for t in rivals if t.residual <= ACCURATE[shape.dtype]}
        worse = len(chosen) == 1 and round(ours.objective, 6) not in chosen
    return {
        "shape": asdict(shape),
        "words": str(shape),
        "ours": ours.time,
        "method": ours.method,
        "accurate": fine and not worse,
        "failure": ours.failure,
        "rival": rival.solver if rival else None,
        "theirs": rival.time if rival else None,
        "ratio": rival.time / ours.time if rival and ours.seconds else None,
        "default": default,
        "busy_quiet": together["ours"]["busy"] / ours.time if together and "busy" in together["ours"] else None,
        "after_before": ours.time / timings["before"].time if tree and ours.seconds else None,
        "all": {name: {"seconds": t.seconds, "residual": t.residual, "why": t.failure} for name, t in timings.items()},
    }


# --------------------------------------------------------------------------------------------------------- the tables


def summarise(kind: str, outcomes: list[dict[str, Any]]) -> str:
    """Return one class's part of the report: geometric mean, share slower, the ten worst."""
    ratios = sorted((o for o in outcomes if o["ratio"]), key=lambda o: o["ratio"])
    lines = [f"## {kind}", "", f"{len(outcomes)} shapes, {len(ratios)} with an accurate solver of scikit-learn."]
    if ratios:
        slower = sum(o["ratio"] < 1 for o in ratios)
        low = sum(o["ratio"] < 0.95 for o in ratios)
        mean = geometric_mean([o["ratio"] for o in ratios])
        lines[-1] += f" Geometric mean **{mean:.2f}**, slower in {slower}, below 0.95 in {low}."
    plain = [o["default"] for o in outcomes if o.get("default")]
    if plain:
        low = sum(ratio < 0.95 for ratio in plain)
        lines[-1] += (
            f" Default against default, where ours is as likely ({len(plain)}): **{geometric_mean(plain):.2f}**, below "
            f"0.95 in {low}."
        )
    busy = sorted((o for o in outcomes if o["busy_quiet"]), key=lambda o: -o["busy_quiet"])
    if busy:
        mean, worst = geometric_mean([o["busy_quiet"] for o in busy]), busy[0]
        over = sum(o["busy_quiet"] > BUSY_LIMIT for o in busy)
        lines[-1] += (
            f" Beside a busy process ours takes {mean:.2f} times as long (geometric mean); over {BUSY_LIMIT} times in "
            f"{over}; most, {worst['busy_quiet']:.2f} times, for {worst['words']} ({_time(worst['ours'])})."
        )
    lines += _wrong(outcomes)
    lines += ["", "| shape | ours | scikit-learn | ratio | method |", "|---|---|---|---|---|"]
    lines += [
        f"| {o['words']} | {_time(o['ours'])} | {_time(o['theirs'])} ({o['rival']}) | {o['ratio']:.2f} "
        f"| {o['method']} |"
        for o in ratios[:10]
    ]
    changes = sorted((o for o in outcomes if o["after_before"]), key=lambda o: -o["after_before"])
    if changes:
        mean = geometric_mean([o["after_before"] for o in changes])
        lines += ["", f"New over old, geometric mean {mean:.3f}; the slowest:", "", "| shape | new / old | new |"]
        lines += ["|---|---|---|"]
        lines += [f"| {o['words']} | {o['after_before']:.2f} | {_time(o['ours'])} |" for o in changes[:10]]
    return "\n".join(lines)


def _wrong(outcomes: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each fit of ours that failed or was not accurate."""
    for outcome in outcomes:
        if outcome["failure"] or not outcome["accurate"]:
            why = outcome["failure"] or "less accurate than the others, or a worse optimum"
            yield f"- {outcome['words']}: {why}"


def _time(seconds: float) -> str:
    """Return a time with its unit."""
    return f"{1e3 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


@contextmanager
def busy_process(wanted: bool) -> Iterator[None]:
    """Keep one other process busy meanwhile, as on a machine that is shared."""
    if not wanted:
        yield
        return
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinner.kill()
        spinner.wait()


CLASSES = ("PCA", "KernelPCA", "Ridge", "RidgeCV", "KernelRidge", "GaussianMixture")


def main(argv: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Draw, run, and print; the report is rewritten after each class, so a stopped run keeps what it has."""
    parser = argparse.ArgumentParser(prog="python -m bench.anywhere", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=CLASSES, help="this class alone; may be repeated")
    parser.add_argument("--shapes", type=int, default=60, help="shapes for each class (default 60)")
    parser.add_argument("--seed", type=int, help="repeat the run that printed this seed")
    parser.add_argument("--most", type=float, default=MOST_NUMBERS, help="numbers in a table at most")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds all fits of a process may take")
    parser.add_argument("--minutes", type=float, help="time for all classes; each draws shapes while its share lasts")
    parser.add_argument("--together", action="store_true", help="one process for each shape instead of each fit")
    parser.add_argument("--processor", action="store_true", help="count processor time, with one thread (--together)")
    parser.add_argument("--rounds", type=int, default=2, help="processes for ours and for the fastest peer")
    parser.add_argument("--tree", type=Path, help="another checkout of the project to time as well")
    parser.add_argument("--alone", action="store_true", help="leave scikit-learn out (with --tree)")
    parser.add_argument("--busy", action="store_true", help="beside another busy process")
    parser.add_argument("--also-busy", action="store_true", help="time ours once more beside a busy process")
    parser.add_argument("--spend", type=float, default=0.5, help="seconds of repeated fits a solver (--together)")
    parser.add_argument("--out", type=Path, help="write the report and all figures to this name .md and .json")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--nursery", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        task = json.load(sys.stdin)
        print(json.dumps(run_worker(task)))
        return 0
    if args.nursery:
        serve_nursery()
        return 0
    if args.processor and not args.together:
        parser.error("--processor needs --together")
    if args.also_busy and (args.processor or not args.together):
        parser.error("--also-busy needs --together, and time by the clock")
    if args.together and (args.tree or args.alone):
        parser.error("--together compares with scikit-learn alone: leave out --tree and --alone")
    seed = args.seed if args.seed is not None else secrets.randbelow(10**9)
    facts = machine.describe()
    head = [f"# Shapes drawn at random, seed {seed}", ""]
    head += [
        f"`python -m bench.anywhere --seed {seed} --shapes {args.shapes} --most {args.most:g}`"
        + " --together" * args.together
        + " --processor" * args.processor
        + " --busy" * args.busy
        + " --also-busy" * args.also_busy
        + f" --limit {args.limit:g} --spend {args.spend:g}"
        + "".join(f" --only {kind}" for kind in args.only or [])
        + (f" --minutes {args.minutes:g}" if args.minutes else "")
    ]
    head += [
        "",
        ", ".join(f"{name} {value}" for name, value in facts.items()),
        f"Python {platform.python_version()}",
        "",
    ]
    say("\n".join(head))
    text, outcomes = "\n".join(head), dict[str, list[dict[str, Any]]]()
    tree = args.tree.resolve() if args.tree else None
    nursery = Nursery(args.processor) if args.together else None
    with busy_process(args.busy):
        kinds = list(args.only or CLASSES)
        began = time.monotonic()
        for number, kind in enumerate(kinds, start=1):
            # Each class has its own stream, so that leaving a class out does not change the others.
            rng = np.random.default_rng([seed, CLASSES.index(kind)])
            outcomes[kind] = []
            for _ in range(args.shapes):
                if args.minutes is not None and time.monotonic() - began > 60 * args.minutes * number / len(kinds):
                    break
                shape = draw_shape(kind, rng, args.most)
                together = nursery.run(shape, args.limit, busy=args.also_busy, spend=args.spend) if nursery else None
                found = compare_solvers(shape, args.limit, args.rounds, tree, args.alone, together)
                outcomes[kind].append(found)
                ratio = "  -  " if found["ratio"] is None else f"{found['ratio']:5.2f}"
                change = "" if found["after_before"] is None else f"  new/old {found['after_before']:.2f}"
                mark = "" if found["accurate"] else "  !"
                say(f"{kind:16s} {ratio}  {_time(found['ours']):>10s}  {shape}  {found['rival']}{change}{mark}")
            part = summarise(kind, outcomes[kind])
            say("\n" + part + "\n")
            text += part + "\n\n"
            if args.out:
                args.out.with_suffix(".md").write_text(text, encoding="utf-8")
                record = {"seed": seed, "machine": facts, "outcomes": outcomes}
                args.out.with_suffix(".json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    if nursery:
        nursery.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
