"""``gramian bench``: Gramian and scikit-learn side by side on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from sklearn import decomposition, kernel_ridge, linear_model, mixture

from gramian.cli.options import command, option
from gramian.cli.output import Results, ResultTable, json_option, print_results
from gramian.cli.running import CommandRun, running_options
from gramian.kernel_ridge.estimator import KernelRidge
from gramian.mixture.estimator import GaussianMixture
from gramian.pca.estimator import PCA
from gramian.ridge.estimator import RidgeCV

REPEATS = 3
ALPHAS = np.logspace(-3, 3, 30)


class Workload(NamedTuple):
    """The same task for both, and what to compare their answers by."""

    name: str
    data: Callable[[float, np.random.Generator], tuple[Any, ...]]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    answer: Callable[[Any], NDArray[np.float64]]


def _rows(n: int, p: int, rank: int = 20) -> Callable[[float, np.random.Generator], tuple[Any, ...]]:
    def data(scale: float, rng: np.random.Generator) -> tuple[Any, ...]:
        m, q = max(50, int(n * scale)), max(rank, int(p * scale**0.5))
        X = rng.normal(size=(m, rank)) * np.geomspace(10, 1, rank) @ rng.normal(size=(rank, q))
        return (X + rng.normal(size=(m, q)),)

    return data


def _targets(n: int, p: int) -> Callable[[float, np.random.Generator], tuple[Any, ...]]:
    rows = _rows(n, p)

    def data(scale: float, rng: np.random.Generator) -> tuple[Any, ...]:
        (X,) = rows(scale, rng)
        return X, X @ rng.normal(size=X.shape[1]) + 10.0 * rng.normal(size=len(X))

    return data


def _groups(scale: float, rng: np.random.Generator) -> tuple[Any, ...]:
    n = max(60, int(30_000 * scale))
    centres = 8.0 * rng.normal(size=(3, 4))
    return (centres[rng.integers(0, 3, n)] + rng.normal(size=(n, 4)),)


WORKLOADS = (
    Workload(
        "PCA, 10 components",
        _rows(20_000, 500),
        lambda X: PCA(10).fit(X),
        lambda X: decomposition.PCA(10, svd_solver="covariance_eigh").fit(X),
        lambda m: np.asarray(m.explained_variance_),
    ),
    Workload(
        "RidgeCV, 30 values of λ",
        _targets(20_000, 200),
        lambda X, y: RidgeCV(ALPHAS).fit(X, y),
        lambda X, y: linear_model.RidgeCV(ALPHAS).fit(X, y),
        lambda m: np.asarray(m.coef_),
    ),
    Workload(
        "KernelRidge, Gaussian",
        _targets(3_000, 20),
        lambda X, y: KernelRidge(1.0, kernel="rbf", gamma=1e-4).fit(X, y),
        lambda X, y: kernel_ridge.KernelRidge(alpha=1.0, kernel="rbf", gamma=1e-4).fit(X, y),
        lambda m: np.asarray(m.dual_coef_),
    ),
    Workload(
        "GaussianMixture, 3 full components",
        _groups,
        lambda X: GaussianMixture(3, random_state=0).fit(X),
        lambda X: mixture.GaussianMixture(3, random_state=0, reg_covar=0, tol=1e-10, max_iter=1000).fit(X),
        lambda m: np.sort(np.asarray(m.weights_)),
    ),
)


@command("bench", "gramian bench --quick", "gramian bench --quick --threads 1 --json")
@option("--quick", is_flag=True, help="A few seconds, whether or not the project's own benchmarks are here.")
@json_option
@running_options
@click.pass_context
def bench(context: click.Context, quick: bool, as_json: bool, run: CommandRun) -> None:
    """Time Gramian against scikit-learn on this machine, and compare the answers.

    In a clone of the project this runs its own benchmarks (python -m bench), which take long; elsewhere, and with
    --quick, four small workloads.
    """
    if not quick and not as_json and _in_clone():
        context.exit(subprocess.run([sys.executable, "-m", "bench"], check=False).returncode)
    scale = 0.25 if quick else 1.0
    found = []
    with run.step("Timing") as report:
        for done, work in enumerate(WORKLOADS):
            report(done, len(WORKLOADS), work.name)
            data = work.data(scale, np.random.default_rng(run.seed))
            ours, mine = _time(work.ours, data)
            theirs, other = _time(work.theirs, data)
            a, b = work.answer(mine), work.answer(other)
            found.append(
                {
                    "workload": work.name,
                    "data": " × ".join(map(str, data[0].shape)),
                    "scikit-learn s": theirs,
                    "Gramian s": ours,
                    "speed-up": theirs / ours,
                    "difference": float(np.max(np.abs(a - b)) / np.max(np.abs(b))),
                }
            )
    columns = {name: [row[name] for row in found] for name in found[0]}
    told = "difference: of the answers, relative to the largest. Small workloads say little about large ones."
    results = Results(
        tables=[ResultTable(columns, title="Best of three runs on this machine")],
        lines=[told],
        facts={"workloads": found},
    )
    print_results(results, as_json)


def _in_clone() -> bool:
    """Whether the folder is a clone of the project: no other program called bench is run."""
    project = Path("pyproject.toml")
    named = project.is_file() and 'name = "gramian"' in project.read_text("utf-8", "replace")
    return named and Path("bench", "__main__.py").is_file()


def _time(fit: Callable[..., Any], data: tuple[Any, ...]) -> tuple[float, Any]:
    """The shortest of a few runs, after one to warm up."""
    model, best = fit(*data), float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        model = fit(*data)
        best = min(best, time.perf_counter() - start)
    return best, model
