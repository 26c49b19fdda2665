"""Test errors on UCI regression sets, the ten given splits: ``python -m bench.uci --data FOLDER``.

Features and target are standardised with the training rows. Ours is ``KernelRidgeCV``, which chooses bandwidth and λ
on a grid by leave-one-out error, one decomposition for each bandwidth; scikit-learn's is ``GridSearchCV(KernelRidge)``
with 5 shuffled folds on the same grid. Sets of more than 3,000 training rows choose on 1,000 of them, both in the same
way, and fit on all; scikit-learn in one thread from 15,000 rows on, since it crashes with two at 20,000, and on the
first 3 splits, with ours on the same 3 beside. Errors alone are compared, in units of the target; ``bench.ridge``
compares times. What a solver found is kept in ``bench/.cache``.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

import gramian
from bench.machine import describe

ROOT = Path(__file__).parents[1]
SETS = ("yacht", "energy", "concrete", "pol", "elevators", "bike")
LARGE, SAMPLE, CRASHES = 3_000, 1_000, 15_000
PEER_SPLITS = 3  # of the large sets, for scikit-learn: a fit takes more than a minute
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
        middle, width = y[~mask].mean(), y[~mask].std()
        yield Z[~mask], (y[~mask] - middle) / width, Z[mask], y[mask], middle, width


def gammas(d: int) -> Any:
    """γ = 1/(2·width²·d)."""
    return 0.5 / (WIDTHS**2 * d)


def ours(X: Any, y: Any) -> Any:
    """Choose by leave-one-out error; on a sample of many rows."""
    model = gramian.KernelRidgeCV(alphas=ALPHAS, kernel="rbf", gamma=list(gammas(X.shape[1])))
    if len(X) <= LARGE:
        return model.fit(X, y)
    some = np.random.default_rng(0).choice(len(X), SAMPLE, replace=False)
    model.fit(X[some], y[some])
    return gramian.KernelRidge(model.alpha_, kernel=model.kernel_).fit(X, y)


def theirs(X: Any, y: Any) -> Any:
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


SOLVERS = {"gramian": ours, "sklearn": theirs}


def errors(name: str, folder: Path, solver: str) -> list[float]:
    """Root mean squared test errors of the ten splits, from the cache where they were found before."""
    found = ROOT / "bench" / ".cache" / f"uci-{name}-{solver}.json"
    if found.exists():
        return [float(value) for value in json.loads(found.read_text("utf-8"))]
    rmse: list[float] = []
    for X, y, new, truth, middle, width in splits(folder):
        if solver == "sklearn" and len(X) > LARGE and len(rmse) == PEER_SPLITS:
            break
        f = np.asarray(SOLVERS[solver](X, y).predict(new)) * width + middle
        rmse.append(float(np.sqrt(np.mean((f - truth) ** 2))))
    found.parent.mkdir(exist_ok=True)
    found.write_text(json.dumps(rmse), encoding="utf-8")
    return rmse


def main(argv: list[str] | None = None) -> int:
    """Run all sets, print and write the table."""
    made = argparse.ArgumentParser(prog="python -m bench.uci", description=__doc__)
    made.add_argument("--data", type=Path, required=True, help="folder with one folder for each set")
    made.add_argument("--only", action="append", choices=SETS)
    made.add_argument("--solver", action="append", choices=list(SOLVERS), help="fill the cache and write no table")
    args = made.parse_args(argv)
    names = args.only or SETS
    if args.solver:
        for name in names:
            for solver in args.solver:
                print(name, solver, np.mean(errors(name, args.data / name, solver)), flush=True)
        return 0
    versions = f"gramian {gramian.__version__}, scikit-learn {describe()['scikit-learn']}"
    lines = ["# Test errors on UCI sets", "", " ".join((__doc__ or "").split()), ""]
    lines += [f"{versions}. RMSE: mean ± standard deviation over the splits.", ""]
    lines += ["| set | rows | features | gramian | scikit-learn | ratio |", "|---|---|---|---|---|---|"]
    for name in names:
        lines.append(_line(name, args.data / name))
        print(lines[-1], flush=True)
    part = "".join(f"-{name}" for name in args.only or ())
    out = ROOT / "bench" / "results" / f"uci-{datetime.now(UTC):%Y-%m-%d}{part}.md"
    out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def _line(name: str, folder: Path) -> str:
    rows, columns = np.loadtxt(folder / "data.csv.gz", delimiter=",").shape
    a, b = (np.array(errors(name, folder, solver)) for solver in ("gramian", "sklearn"))
    ours, same = f"{a.mean():.4g} ± {a.std():.2g}", a[: len(b)]
    theirs = f"{b.mean():.4g} ± {b.std():.2g}" + (
        "" if len(a) == len(b) else f" (first {len(b)}; ours {same.mean():.4g})"
    )
    return f"| {name} | {rows:,} | {columns - 1} | {ours} | {theirs} | {same.mean() / b.mean():.3f} |"


if __name__ == "__main__":
    raise SystemExit(main())
