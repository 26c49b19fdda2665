"""Test errors on UCI regression sets, the ten given splits: ``python -m bench.uci --data FOLDER``.

Features and target are standardised with the training rows, and errors are in standard deviations of the target.
Compared are, on the same splits:

- ``learn=loo`` and ``learn=marginal_likelihood``: ``KernelRidgeCV(learn=..., fit_intercept=True)``, nothing else given;
- ``default``: ``KernelRidgeCV(fit_intercept=True)``, one width, the median distance;
- ``grid``: ``KernelRidgeCV`` with four widths and seven λ, of more than 3,000 rows chosen on 1,000 of them;
- ``sklearn grid``: ``GridSearchCV(KernelRidge)`` with 5 shuffled folds on the same grid, in the same way;
- ``GPR``: scikit-learn's ``GaussianProcessRegressor`` with a width for each feature, amplitude and noise, up to 5,000
  rows;
- ``boosting``: ``HistGradientBoostingRegressor()`` as it is.

The negative log-likelihood of a test row is that of the normal law with the mean and standard deviation predicted; of
more than 1,000 test rows the first 1,000 have one. Boosting predicts no deviation. Seconds are of the fit by the clock.

Each fit is a line of JSON in ``--lines``, and none is made twice. ``--workers`` makes them side by side, each process
on cores of its own, the first split of every set before the second; with ``--gpu-workers`` kernels of large sets are
learned on the GPU by so many processes. What is not done after ``--limit`` seconds is not made.
"""

import argparse
import json
import multiprocessing as mp
import os
import queue
import time
import warnings
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

import gramian
from bench.machine import describe

ROOT = Path(__file__).parents[1]
SETS = ("yacht", "energy", "concrete", "pol", "elevators", "bike")
LARGE, SAMPLE, CRASHES, PROCESSES = 3_000, 1_000, 15_000, 5_000
JUDGED = 1_000  # test rows that a standard deviation is predicted of
ALPHAS = np.logspace(-5, 1, 7)
WIDTHS = np.array([0.35, 0.7, 1.4, 2.8])  # times √d


def splits(folder: Path) -> Any:
    """Yield the standardised training and test rows of each split."""
    table = np.loadtxt(folder / "data.csv.gz", delimiter=",")
    masks = np.loadtxt(folder / "test_mask.csv.gz", delimiter=",").astype(bool)
    X, y = table[:, :-1], table[:, -1]
    for mask in masks.T:
        mean, std = X[~mask].mean(axis=0), X[~mask].std(axis=0)
        Z = (X - mean) / np.where(std > 0, std, 1.0)
        t = (y - y[~mask].mean()) / y[~mask].std()
        yield Z[~mask], t[~mask], Z[mask], t[mask]


def gammas(d: int) -> Any:
    """γ = 1/(2·width²·d)."""
    return 0.5 / (WIDTHS**2 * d)


def fit_grid(X: Any, y: Any) -> Any:
    """Choose by leave-one-out error; on a sample of many rows."""
    model = gramian.KernelRidgeCV(alphas=ALPHAS, kernel="rbf", gamma=list(gammas(X.shape[1])))
    if len(X) <= LARGE:
        return model.fit(X, y)
    some = np.random.default_rng(0).choice(len(X), SAMPLE, replace=False)
    model.fit(X[some], y[some])
    return gramian.KernelRidge(model.alpha_, kernel=model.kernel_).fit(X, y)


def fit_their_grid(X: Any, y: Any) -> Any:
    """Choose by 5-fold grid search; on the same sample of many rows."""
    grid = {"alpha": ALPHAS, "gamma": list(gammas(X.shape[1]))}
    folds = KFold(5, shuffle=True, random_state=0)  # some of the sets are in order
    search = GridSearchCV(SklearnKernelRidge(kernel="rbf"), grid, cv=folds, scoring="neg_mean_squared_error")
    if len(X) <= LARGE:
        return search.fit(X, y)
    some = np.random.default_rng(0).choice(len(X), SAMPLE, replace=False)
    search.fit(X[some], y[some])
    with threadpool_limits(1 if len(X) >= CRASHES else None):
        return SklearnKernelRidge(kernel="rbf", **search.best_params_).fit(X, y)


def fit_process(X: Any, y: Any) -> Any:
    """A Gaussian process with a width for each feature, by scikit-learn."""
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.ones(X.shape[1]), (1e-2, 1e4)) + WhiteKernel(0.1, (1e-8, 1e1))
    return GaussianProcessRegressor(kernel, n_restarts_optimizer=1, random_state=0).fit(X, y)


def fit_learned(criterion: str, X: Any, y: Any, device: str | None = None) -> Any:
    """A width for each feature, and λ, by steps along the gradient."""
    return gramian.KernelRidgeCV(learn=criterion, fit_intercept=True, device=device).fit(X, y)


SOLVERS: dict[str, Any] = {
    "learn=loo": partial(fit_learned, "loo"),
    "learn=marginal_likelihood": partial(fit_learned, "marginal_likelihood"),
    "default": lambda X, y: gramian.KernelRidgeCV(fit_intercept=True).fit(X, y),
    "grid": fit_grid,
    "sklearn grid": fit_their_grid,
    "GPR": fit_process,
    "boosting": lambda X, y: HistGradientBoostingRegressor(random_state=0).fit(X, y),
}
LEARNED = ("learn=loo", "learn=marginal_likelihood")
Task = tuple[str, str, int]  # a set, a solver, a split


def judge(solver: str, device: str | None, X: Any, y: Any, new: Any, truth: Any) -> dict[str, Any]:
    """Fit, and return the test error, the negative log-likelihood and the seconds of the fit."""
    options = {} if device is None else {"device": device}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = SOLVERS[solver](X, y, **options)
        found: dict[str, Any] = {"seconds": time.perf_counter() - start, "where": device or "cpu"}
        f = np.asarray(model.predict(new))
        found["rmse"] = float(np.sqrt(np.mean((f - truth) ** 2)))
        if hasattr(model, "learned_"):
            found["kernel"] = [repr(model.kernel_)[:200], float(model.alpha_), model.learned_.note]
        if solver not in ("boosting", "sklearn grid"):
            g, std = model.predict(new[:JUDGED], return_std=True)
            z = (truth[:JUDGED] - g) / std
            found["nll"] = float(np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi)))
    return found


def read_lines(lines: Path) -> dict[Task, dict[str, Any]]:
    """What was found before."""
    found = {}
    for line in lines.read_text("utf-8").splitlines() if lines.exists() else ():
        one = json.loads(line)
        found[one["set"], one["solver"], one["split"]] = one
    return found


def make(task: Task, data: Path, device: str | None, rows: int | None) -> dict[str, Any]:
    """Make one fit; of the first rows alone where a number is given."""
    name, solver, k = task
    X, y, new, truth = list(splits(data / name))[k]
    on = device if solver in LEARNED and len(X) > LARGE else None
    return {
        "set": name,
        "solver": solver,
        "split": k,
        **judge(solver, on, X[:rows], y[:rows], new[:rows], truth[:rows]),
    }


def work(tasks: Any, answers: Any, data: Path, device: str | None, rows: int | None) -> None:
    """Make fits until there are none left: one worker."""
    while True:
        task = tasks.get()
        if task is None:
            return
        try:
            answers.put(make(task, data, device, rows))
        except Exception as error:  # the others go on
            answers.put({"failed": f"{task}: {type(error).__name__}: {str(error)[:300]}"})


def work_side_by_side(todo: list[Task], args: Any) -> None:
    """Make the fits in processes of some cores each, and write their lines as they come."""
    context, cores = mp.get_context("spawn"), sorted(os.sched_getaffinity(0))
    size, until = args.cores, time.monotonic() + args.limit
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(size)
    lists, answers, workers = (context.Queue(), context.Queue()), context.Queue(), []
    hard = {(name, solver) for name in SETS[3:] for solver in LEARNED} if args.gpu_workers else set()
    for task in todo:
        lists[task[:2] in hard].put(task)
    for k in range(args.workers + args.gpu_workers):
        gpu = k < args.gpu_workers
        os.sched_setaffinity(0, {cores[(size * k + j) % len(cores)] for j in range(size)})
        given = (lists[gpu], answers, args.data, "cuda" if gpu else None, args.rows)
        lists[gpu].put(None)
        workers.append(context.Process(target=work, args=given, daemon=True))
        workers[-1].start()
    os.sched_setaffinity(0, cores)
    left = len(todo)
    while left and time.monotonic() < until:
        try:
            one = answers.get(timeout=max(0.0, min(5.0, until - time.monotonic())))
        except queue.Empty:
            if not any(worker.is_alive() for worker in workers):
                break
            continue
        left -= 1
        keep(one, args.lines)
    print(f"{left} of {len(todo)} fits not made", flush=True)
    for worker in workers:
        worker.kill()


def keep(one: dict[str, Any], lines: Path) -> None:
    """Show what was found, and write its line."""
    print({name: value for name, value in one.items() if name != "kernel"}, flush=True)
    if "failed" not in one:
        lines.parent.mkdir(exist_ok=True, parents=True)
        with lines.open("a", encoding="utf-8") as out:
            out.write(json.dumps(one) + "\n")


def main(argv: list[str] | None = None) -> int:
    """Make what is missing, then print and write the table."""
    made = argparse.ArgumentParser(prog="python -m bench.uci", description=__doc__)
    made.add_argument("--data", type=Path, required=True, help="folder with one folder for each set")
    made.add_argument("--only", action="append", choices=SETS)
    made.add_argument("--solver", action="append", choices=list(SOLVERS))
    made.add_argument("--splits", type=int, default=10, help="the first splits, at most ten; 0 shows what was found")
    made.add_argument("--rows", type=int, help="the first rows alone, to try the program")
    made.add_argument("--lines", type=Path, default=ROOT / "bench" / ".cache" / "uci.jsonl")
    made.add_argument("--workers", type=int, default=0)
    made.add_argument("--gpu-workers", type=int, default=0)
    made.add_argument("--cores", type=int, default=2, help="of each worker")
    made.add_argument("--limit", type=float, default=np.inf, help="seconds after which workers are ended")
    made.add_argument("--no-table", action="store_true")
    args = made.parse_args(argv)
    names, found = args.only or SETS, read_lines(args.lines)
    todo: list[Task] = []
    for k in range(args.splits):
        for name in reversed(names):  # what takes long first
            for solver in args.solver or SOLVERS:
                if (name, solver, k) not in found and not (solver == "GPR" and name in SETS[3:]):
                    todo.append((name, solver, k))
    if args.workers or args.gpu_workers:
        work_side_by_side(todo, args)
    else:
        for task in todo:
            keep(make(task, args.data, None, args.rows), args.lines)
    if args.no_table:
        return 0
    found = read_lines(args.lines)
    versions = f"gramian {gramian.__version__}, scikit-learn {describe()['scikit-learn']}"
    lines = ["# Test errors on UCI sets", "", (__doc__ or "").strip(), "", f"{versions}.", ""]
    for name in names:
        lines += _table(name, args.data / name, found)
    print("\n".join(lines), flush=True)
    part = "".join(f"-{name}" for name in args.only or ())
    out = ROOT / "bench" / "results" / f"uci-{datetime.now(UTC):%Y-%m-%d}{part}.md"
    out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def _table(name: str, folder: Path, every: dict[Task, dict[str, Any]]) -> list[str]:
    """Everything that was found of a set; and the errors beside those of boosting on the same splits."""
    rows, columns = np.loadtxt(folder / "data.csv.gz", delimiter=",").shape
    boosted = {k: one["rmse"] for (which, solver, k), one in every.items() if (which, solver) == (name, "boosting")}
    lines = [f"## {name}: {rows:,} rows, {columns - 1} features", ""]
    lines += ["| solver | splits | RMSE | over boosting's | NLL | seconds |", "|---|---|---|---|---|---|"]
    for solver in SOLVERS:
        results = {k: one for (which, by, k), one in sorted(every.items()) if (which, by) == (name, solver)}
        if not results:
            continue
        rmse = np.array([one["rmse"] for one in results.values()])
        nll = [one["nll"] for one in results.values() if "nll" in one]
        same = [k for k in results if k in boosted]
        ratio = sum(results[k]["rmse"] for k in same) / max(sum(boosted[k] for k in same), 1e-300)
        said = f"{np.mean(nll):.3f} ± {np.std(nll):.2g}" if nll else ""
        seconds = f"{np.median([one['seconds'] for one in results.values()]):.3g}"
        seconds += ", GPU" if any(one["where"] != "cpu" for one in results.values()) else ""
        lines.append(
            f"| {solver} | {len(rmse)} | {rmse.mean():.4f} ± {rmse.std():.2g} | {ratio:.2f} | {said} | {seconds} |"
        )
    return [*lines, ""]


if __name__ == "__main__":
    raise SystemExit(main())
