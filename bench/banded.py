"""Banded ridge regression beside himalaya: ``python -m bench.banded``, where himalaya is installed.

Groups of columns of one size, some of which say nothing. At the same weights of the groups the coefficients are
compared: KernelRidge with a sum of linear kernels beside himalaya's WeightedKernelRidge, and where there is a λ for
each group and no kernel, beside GroupRidge's. Then the weights are searched for: ``KernelRidgeCV(learn="loo")`` beside
``MultipleKernelRidgeCV`` with 20 steps of its gradient and 30 random weights, by 5 folds. Seconds, and R² of 1,000 new
rows, the mean over targets.

himalaya finds weights for each target and ours are one for all: the second table is of many targets, which all follow
the same groups, or each two groups of its own.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from himalaya.kernel_ridge import ColumnKernelizer, Kernelizer, MultipleKernelRidgeCV, WeightedKernelRidge
from himalaya.ridge import Ridge as ColumnRidge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from gramian import KernelRidge, KernelRidgeCV
from gramian.kernels import Linear, Scaled

SHAPES = ((300, 5, 20), (600, 8, 30), (1000, 6, 200), (2000, 10, 100))  # rows, groups, columns of each
TARGETS = ((400, 4, 50, 200), (1000, 4, 100, 1000))  # and targets
GRADIENT: dict[str, Any] = {
    "solver": "hyper_gradient",
    "solver_params": {"max_iter": 20, "progress_bar": False, "n_targets_batch": 200},
}
AT_RANDOM: dict[str, Any] = {
    "solver": "random_search",
    "solver_params": {
        "n_iter": 30,
        "progress_bar": False,
        "alphas": np.logspace(-3, 6, 19),
        "n_targets_batch": 200,
        "local_alpha": True,
    },
}


def problem(n: int, groups: int, size: int, targets: int = 1, *, own: bool = False) -> Any:
    """Rows, targets that every second group says something of, or two groups of each target's own, and the columns."""
    rng = np.random.default_rng(0)
    columns = [np.arange(g * size, (g + 1) * size) for g in range(groups)]
    X = rng.normal(size=(n + 1000, groups * size))
    shares = np.arange(groups) * (np.arange(groups) % 2)
    w = rng.normal(size=(groups, size, targets)) / np.sqrt(size) * shares[:, None, None]
    if own:
        w = rng.normal(size=(groups, size, targets)) * (rng.random((groups, targets)).argsort(0) < 2)[:, None]
    signal = X @ w.reshape(groups * size, targets)
    Y = signal + 0.5 * np.std(signal, axis=0) * rng.normal(size=signal.shape)
    return X[:n], Y[:n], X[n:], Y[n:], columns


def kernelizer(columns: Any) -> Any:
    """himalaya's kernels of the groups."""
    return ColumnKernelizer([(f"g{k}", Kernelizer(kernel="linear"), list(some)) for k, some in enumerate(columns)])


def sum_of(columns: Any, weights: Any = None) -> Any:
    """A linear kernel of each group, with a weight where there are any."""
    terms: list[Any] = [Linear().on(some) for some in columns]
    if weights is not None:
        terms = [Scaled(term, float(a)) for term, a in zip(terms, weights, strict=True)]
    return sum(terms[1:], start=terms[0])


def compare_coefficients(X: Any, Y: Any, columns: Any) -> tuple[float, float]:
    """Largest differences at given weights, over the largest coefficient: of rows, and of columns."""
    weights = np.geomspace(0.1, 10.0, len(columns))
    ours = KernelRidge(3.0, kernel=sum_of(columns, weights)).fit(X, Y)
    solver = {"tol": 1e-12, "max_iter": 1000}
    theirs = WeightedKernelRidge(alpha=3.0, deltas=np.log(weights), kernels="precomputed", solver_params=solver)
    dual = make_pipeline(kernelizer(columns), theirs).fit(X, Y)[-1].dual_coef_
    apart = float(np.max(np.abs(ours.dual_coef_ - dual)) / np.max(np.abs(dual)))
    # a ridge regression of columns that are multiplied by √a_g: what GroupRidge fits at λ_g = λ/a_g
    scale = np.repeat(np.sqrt(weights), [len(some) for some in columns])
    primal = ColumnRidge(alpha=3.0, fit_intercept=False).fit(X * scale, Y).coef_ * scale[:, None]
    mine = (X * scale**2).T @ ours.dual_coef_
    return apart, float(np.max(np.abs(mine - primal)) / np.max(np.abs(primal)))


def learn(given: Any) -> str:
    """Seconds of ours, and R²."""
    X, Y, new, truth, columns = given
    begin = time.perf_counter()
    model = KernelRidgeCV(kernel=sum_of(columns), learn="loo", alpha_per_target=Y.shape[1] > 1).fit(X, Y)
    return f"{time.perf_counter() - begin:.2f}, {r2_score(truth, model.predict(new)):.4f}"


def search(given: Any, options: dict[str, Any]) -> str:
    """Seconds of himalaya's search, and R²."""
    X, Y, new, truth, columns = given
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MultipleKernelRidgeCV(kernels="precomputed", random_state=0, **options)
        found = make_pipeline(kernelizer(columns), model).fit(X, Y)
    return f"{time.perf_counter() - begin:.2f}, {r2_score(truth, found.predict(new)):.4f}"


def main() -> None:
    """Print the tables."""
    made = argparse.ArgumentParser(prog="python -m bench.banded", description=__doc__)
    made.add_argument("--shapes", type=int, default=len(SHAPES), help="the first shapes of each table")
    args = made.parse_args()
    searches = ("learn=loo: s, R²", "gradient: s, R²", "random: s, R²")
    print(f"| rows, groups, columns | largest differences: rows, columns | {' | '.join(searches)} |")
    print("|---|---|---|---|---|")
    for n, groups, size in SHAPES[: args.shapes]:
        given = problem(n, groups, size)
        apart = compare_coefficients(given[0], given[1], given[-1])
        cells = [f"{n}, {groups}, {size}", f"{apart[0]:.1e}, {apart[1]:.1e}", learn(given)]
        cells += [search(given, options) for options in (GRADIENT, AT_RANDOM)]
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n| rows, groups, columns, targets | groups | {' | '.join(searches)} |")
    print("|---|---|---|---|---|")
    for shape in TARGETS[: args.shapes]:
        for own in (False, True):
            given = problem(*shape, own=own)
            cells = [str(shape)[1:-1], "of each target" if own else "of all", learn(given)]
            cells += [search(given, options) for options in (GRADIENT, AT_RANDOM)]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
