"""Banded ridge regression beside himalaya: ``python -m bench.banded``, where himalaya is installed.

Groups of columns of one size, some of which say nothing. At the same weights of the groups the coefficients are
compared: KernelRidge with a sum of linear kernels beside himalaya's WeightedKernelRidge. Then the weights are searched
for: ``KernelRidgeCV(learn="loo")`` beside ``MultipleKernelRidgeCV`` with 20 steps of its gradient and 30 random
weights, by 5 folds; of one target, since himalaya finds weights for each target and ours are one for all. Seconds, and
R² of 1,000 new rows.
"""

import time
import warnings
from typing import Any

import numpy as np
from himalaya.kernel_ridge import ColumnKernelizer, Kernelizer, MultipleKernelRidgeCV, WeightedKernelRidge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from gramian import KernelRidge, KernelRidgeCV
from gramian.kernels import Linear, Scaled

SHAPES = ((300, 5, 20), (600, 8, 30))  # rows, groups, columns of each


def problem(n: int, groups: int, size: int) -> Any:
    """Rows, a target that every second group says something of, and the columns of each."""
    rng = np.random.default_rng(0)
    columns = [np.arange(g * size, (g + 1) * size) for g in range(groups)]
    X = rng.normal(size=(n + 1000, groups * size))
    w = np.concatenate([rng.normal(size=size) * (g % 2) / np.sqrt(size) * g for g in range(groups)])
    y = X @ w + 0.5 * np.std(X @ w) * rng.normal(size=len(X))
    return X[:n], y[:n], X[n:], y[n:], columns


def kernelizer(columns: Any) -> Any:
    """himalaya's kernels of the groups."""
    return ColumnKernelizer([(f"g{k}", Kernelizer(kernel="linear"), list(some)) for k, some in enumerate(columns)])


def main() -> None:
    """Print the table."""
    heads = ("rows, groups, columns", "largest difference", "learn=loo: s, R²", "gradient: s, R²", "random: s, R²")
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---|---|---|")
    for n, groups, size in SHAPES:
        X, y, new, truth, columns = problem(n, groups, size)
        weights = np.geomspace(0.1, 10.0, groups)
        kernel: Any = Scaled(Linear().on(columns[0]), weights[0])
        for a, some in zip(weights[1:], columns[1:], strict=True):
            kernel = kernel + Scaled(Linear().on(some), a)
        ours = KernelRidge(3.0, kernel=kernel).fit(X, y)
        theirs = make_pipeline(
            kernelizer(columns),
            WeightedKernelRidge(
                alpha=3.0, deltas=np.log(weights), kernels="precomputed", solver_params={"tol": 1e-12, "max_iter": 1000}
            ),
        )
        theirs.fit(X, y)
        dual = theirs[-1].dual_coef_
        apart = float(np.max(np.abs(ours.dual_coef_ - dual)) / np.max(np.abs(dual)))
        cells = [f"{n}, {groups}, {size}", f"{apart:.1e}"]
        start: Any = Linear().on(columns[0])
        for some in columns[1:]:
            start = start + Linear().on(some)
        begin = time.perf_counter()
        model = KernelRidgeCV(kernel=start, learn="loo").fit(X, y)
        cells.append(f"{time.perf_counter() - begin:.2f}, {r2_score(truth, model.predict(new)):.4f}")
        gradient = {
            "solver": "hyper_gradient",
            "solver_params": {"max_iter": 20, "progress_bar": False, "n_targets_batch": 1},
        }
        at_random = {
            "solver": "random_search",
            "solver_params": {"n_iter": 30, "progress_bar": False, "alphas": np.logspace(-3, 6, 19)},
        }
        for options in (gradient, at_random):
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search = make_pipeline(
                    kernelizer(columns), MultipleKernelRidgeCV(kernels="precomputed", random_state=0, **options)
                ).fit(X, y)
            seconds = time.perf_counter() - begin
            cells.append(f"{seconds:.2f}, {r2_score(truth, np.ravel(search.predict(new))):.4f}")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
