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
more than 1,000 test rows the first 1,000 have one. Boosting predicts no deviation. Large sets take the first splits
alone, as many as ``--splits`` says. Seconds are of the fit by the clock, on whatever threads BLAS is given. What a
solver found is kept in ``bench/.cache``.
"""

import argparse
import json
import time
import warnings
from datetime import UTC, datetime
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


SOLVERS: dict[str, Any] = {
    "learn=loo": lambda X, y: gramian.KernelRidgeCV(learn="loo", fit_intercept=True).fit(X, y),
    "learn=marginal_likelihood": lambda X, y: gramian.KernelRidgeCV(
        learn="marginal_likelihood", fit_intercept=True
    ).fit(X, y),
    "default": lambda X, y: gramian.KernelRidgeCV(fit_intercept=True).fit(X, y),
    "grid": fit_grid,
    "sklearn grid": fit_their_grid,
    "GPR": fit_process,
    "boosting": lambda X, y: HistGradientBoostingRegressor(random_state=0).fit(X, y),
}


def judge(solver: str, X: Any, y: Any, new: Any, truth: Any) -> dict[str, float]:
    """Fit, and return the test error, the negative log-likelihood and the seconds of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = SOLVERS[solver](X, y)
        seconds = time.perf_counter() - start
        f = np.asarray(model.predict(new))
        found = {"rmse": float(np.sqrt(np.mean((f - truth) ** 2))), "seconds": seconds}
        if solver not in ("boosting", "sklearn grid"):
            g, std = model.predict(new[:JUDGED], return_std=True)
            z = (truth[:JUDGED] - g) / std
            found["nll"] = float(np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi)))
    return found


def run(name: str, folder: Path, solver: str, most: int) -> list[dict[str, float]]:
    """What a solver found on the first splits, from the cache where it was found before."""
    cache = ROOT / "bench" / ".cache" / f"uci-{name}-{solver.replace(' ', '-')}-2.json"
    found = json.loads(cache.read_text("utf-8")) if cache.exists() else []
    for k, split in enumerate(splits(folder)):
        if k >= most or (solver == "GPR" and len(split[0]) > PROCESSES):
            break
        if k >= len(found):
            found.append(judge(solver, *split))
            cache.parent.mkdir(exist_ok=True)
            cache.write_text(json.dumps(found), encoding="utf-8")
            print(name, solver, k, found[-1], flush=True)
    return list(found[:most])


def main(argv: list[str] | None = None) -> int:
    """Run all sets, print and write the table."""
    made = argparse.ArgumentParser(prog="python -m bench.uci", description=__doc__)
    made.add_argument("--data", type=Path, required=True, help="folder with one folder for each set")
    made.add_argument("--only", action="append", choices=SETS)
    made.add_argument("--solver", action="append", choices=list(SOLVERS), help="fill the cache and write no table")
    made.add_argument("--splits", type=int, default=10, help="the first splits, at most ten")
    args = made.parse_args(argv)
    names = args.only or SETS
    if args.solver:
        for name in names:
            for solver in args.solver:
                run(name, args.data / name, solver, args.splits)
        return 0
    versions = f"gramian {gramian.__version__}, scikit-learn {describe()['scikit-learn']}"
    lines = ["# Test errors on UCI sets", "", (__doc__ or "").strip(), "", f"{versions}.", ""]
    for name in names:
        lines += _table(name, args.data / name)
    print("\n".join(lines), flush=True)
    part = "".join(f"-{name}" for name in args.only or ())
    out = ROOT / "bench" / "results" / f"uci-{datetime.now(UTC):%Y-%m-%d}{part}.md"
    out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def _table(name: str, folder: Path) -> list[str]:
    """Everything the cache has of a set; and the errors beside those of boosting on the same splits."""
    rows, columns = np.loadtxt(folder / "data.csv.gz", delimiter=",").shape
    found = {solver: run_cached(name, solver) for solver in SOLVERS}
    boosted = np.array([one["rmse"] for one in found["boosting"]])
    lines = [f"## {name}: {rows:,} rows, {columns - 1} features", ""]
    lines += ["| solver | splits | RMSE | over boosting's | NLL | seconds |", "|---|---|---|---|---|---|"]
    for solver, results in found.items():
        if not results:
            continue
        rmse = np.array([one["rmse"] for one in results])
        nll = [one["nll"] for one in results if "nll" in one]
        same = min(len(rmse), len(boosted))
        ratio = f"{rmse[:same].mean() / boosted[:same].mean():.2f}" if same else ""
        said = f"{np.mean(nll):.3f} ± {np.std(nll):.2g}" if nll else ""
        seconds = float(np.median([one["seconds"] for one in results]))
        lines.append(
            f"| {solver} | {len(rmse)} | {rmse.mean():.4f} ± {rmse.std():.2g} | {ratio} | {said} | {seconds:.3g} |"
        )
    return [*lines, ""]


def run_cached(name: str, solver: str) -> list[dict[str, float]]:
    """What the cache has."""
    cache = ROOT / "bench" / ".cache" / f"uci-{name}-{solver.replace(' ', '-')}-2.json"
    return list(json.loads(cache.read_text("utf-8"))) if cache.exists() else []


if __name__ == "__main__":
    raise SystemExit(main())
