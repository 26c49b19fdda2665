"""Gaussian mixtures against scikit-learn's: ``python -m bench.mixture``.

Two large fits run the same number of EM steps from the same start, without acceleration and without regularisation, so
that both do the same work: seconds for each step (those of a fit of many steps less one of a single step, divided by
the difference), the peak memory of the process beyond its data, and how far the answers differ. Then the time to an
optimum that is certified, from the start that each package chooses, on data sets of which the optimum is known. Every
fit runs in a fresh process that has made one small fit.
"""

import argparse
import json
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parents[1]
SHORT, LONG = 1, 6  # steps whose difference is the time of a step
MEGABYTE = 2**20


@dataclass(frozen=True)
class Figures:
    """What one process measured."""

    seconds: float
    megabytes: float
    height: float
    note: str


@dataclass(frozen=True)
class Workload:
    """Rows, columns, components and covariances of a fit, and the ratio to reach."""

    title: str
    rows: int
    columns: int
    components: int
    kind: str
    target: str = ""


LARGE = {
    "full": Workload("full covariances, n = 200,000, d = 20, K = 10", 200_000, 20, 10, "full", "6×"),
    "diag": Workload("diagonal covariances, n = 1,000,000, d = 32, K = 16", 1_000_000, 32, 16, "diag", "5×"),
}
KNOWN = {
    "faithful": Workload("old faithful, three components of one covariance", 272, 2, 3, "tied"),
    "iris": Workload("iris, three components", 150, 4, 3, "full"),
    "diabetes": Workload("diabetes, three components", 145, 3, 3, "full"),
}
SOLVERS = ("gramian", "sklearn")


def rows_of(work: Workload, share: float) -> Any:
    """Overlapping clusters, the same for everyone."""
    import numpy as np

    n = max(50 * work.components, round(share * work.rows))
    rng = np.random.default_rng(0)
    means = rng.standard_normal((work.components, work.columns))
    X = rng.standard_normal((n, work.columns))
    labels = rng.integers(0, work.components, n)
    step = 10_000
    for i in range(0, n, step):  # no temporary as large as the data: the peak of memory is to be the fit's
        X[i : i + step] *= 0.8
        X[i : i + step] += means[labels[i : i + step]]
    return X


def known_rows(name: str) -> Any:
    """The table of a known optimum: embedded in the tests, or shipped with scikit-learn."""
    import numpy as np
    from sklearn.datasets import load_iris

    if name == "iris":
        return load_iris().data
    tables = json.loads((ROOT / "tests" / "data" / "mixtures.json").read_text("utf-8"))
    return np.array(tables[name])


def maker(solver: str, work: Workload, X: Any) -> Callable[..., Any]:
    """What makes a model that starts from the first rows, with the variances of the columns."""
    import numpy as np
    import sklearn.mixture

    import gramian.mixture.estimator as ours

    k, variances = work.components, X[:10_000].var(axis=0)
    P = np.repeat(np.diag(1 / variances)[None], k, axis=0) if work.kind == "full" else np.tile(1 / variances, (k, 1))
    shared = {
        "n_components": k,
        "covariance_type": work.kind,
        "reg_covar": 0.0,
        "tol": 0.0,
        "weights_init": np.full(k, 1 / k),
        "means_init": X[:k].copy(),
        "precisions_init": P,
    }
    if solver == "gramian":
        return lambda **more: ours.GaussianMixture(accelerate=False, **shared, **more)
    return lambda **more: sklearn.mixture.GaussianMixture(**shared, **more)


def steps(solver: str, work: Workload, share: float) -> Figures:
    """Seconds of one step, and the memory that the fit took beyond what was there before."""
    X = rows_of(work, share)
    make = maker(solver, work, X)
    make(max_iter=1).fit(X[: 500 * work.components])
    before = _peak()
    short, _ = _timed(make(max_iter=SHORT), X)
    long, model = _timed(make(max_iter=LONG), X)
    each = (long - short) / (LONG - SHORT)
    return Figures(each, _peak() - before, float(model.score(X)), f"{X.nbytes / MEGABYTE:,.0f} MB of data")


def _timed(model: Any, X: Any) -> tuple[float, Any]:
    start = perf_counter()
    model.fit(X)
    return perf_counter() - start, model


def certified(solver: str, name: str, work: Workload) -> Figures:
    """Seconds to an optimum: ours by its gradient, theirs by a gain of 1e-10 a row, which certifies nothing."""
    import sklearn.mixture

    import gramian.mixture.estimator as ours

    X = known_rows(name)
    common: dict[str, Any] = {"n_components": work.components, "covariance_type": work.kind, "random_state": 0}
    if solver == "gramian":
        model = ours.GaussianMixture(init_params="hierarchical", **common)
    else:
        model = sklearn.mixture.GaussianMixture(tol=1e-10, max_iter=10_000, reg_covar=1e-12, **common)
    model.fit(X)
    seconds, _ = _timed(model, X)
    height = len(X) * float(model.score(X))
    found = getattr(model, "certificate_", None)
    note = f"{model.n_iter_} iterations" + (f", gradient {found.gradient:.0e}" if found else "")
    return Figures(seconds, _peak(), height, note)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def worker(name: str, solver: str, share: float) -> None:
    """Measure and print the figures as JSON."""
    warnings.simplefilter("ignore")  # neither converges in so few steps, and both say so
    found = steps(solver, LARGE[name], share) if name in LARGE else certified(solver, name, KNOWN[name])
    print(json.dumps(asdict(found)))


def run(name: str, solver: str, share: float, limit: float) -> Figures | str:
    """Measure in a fresh process, or say why there is nothing to tell."""
    command = [sys.executable, "-m", "bench.mixture", "--worker", solver, "--workload", name, "--share", str(share)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return f"over {limit:.0f} s"
    except subprocess.CalledProcessError as error:
        return str((error.stderr.strip().splitlines() or [f"exit {error.returncode}"])[-1])[:80]
    return Figures(**json.loads(done.stdout.strip().splitlines()[-1]))


def median(name: str, solver: str, share: float, limit: float, repeats: int) -> Figures | str:
    """The run with the median time of a few."""
    found = [run(name, solver, share, limit) for _ in range(repeats)]
    good = sorted((f for f in found if isinstance(f, Figures)), key=lambda f: f.seconds)
    return good[len(good) // 2] if good else found[0]


def table(name: str, results: dict[str, Figures | str]) -> list[str]:
    """Return the lines of one workload's table, with ratios to ours."""
    work = LARGE.get(name) or KNOWN[name]
    unit = "a step" if name in LARGE else "to the optimum"
    memory = "memory beyond the data" if name in LARGE else "peak memory"
    height = "log-likelihood of a row" if name in LARGE else "log-likelihood"
    aim = f" (to reach: {work.target})" if work.target else ""
    lines = [f"## {work.title}{aim}", "", f"| solver | seconds {unit} | × ours | {memory} | {height} | |"]
    lines.append("|---|---|---|---|---|---|")
    ours = results.get("gramian")
    for solver, f in results.items():
        if isinstance(f, str):
            lines.append(f"| {solver} | {f} | | | | |")
            continue
        ratio = f"{f.seconds / ours.seconds:.1f}" if isinstance(ours, Figures) else ""
        value = f"{f.height:.9f}" if name in LARGE else f"{f.height:.4f}"
        lines.append(f"| {solver} | {f.seconds:.3f} | {ratio} | {f.megabytes:,.0f} MB | {value} | {f.note} |")
    return [*lines, ""]


def main(argv: list[str] | None = None) -> int:
    """Measure everything, print and write the tables."""
    made = argparse.ArgumentParser(prog="python -m bench.mixture", description=__doc__)
    made.add_argument("--workload", action="append", choices=[*LARGE, *KNOWN], help="default: all")
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--share", type=float, default=1.0, help="of the rows of the large fits; results are not written")
    made.add_argument("--limit", type=float, default=600.0, help="seconds a process may take")
    made.add_argument("--worker", help=argparse.SUPPRESS)
    args = made.parse_args(argv)
    if args.worker:
        worker(args.workload[0], args.worker, args.share)
        return 0
    lines: list[str] = []
    for name in args.workload or [*LARGE, *KNOWN]:
        results = {solver: median(name, solver, args.share, args.limit, args.repeats) for solver in SOLVERS}
        lines += table(name, results)
        print("\n".join(table(name, results)), flush=True)
    if args.share == 1.0:
        part = "".join(f"-{name}" for name in args.workload or ())
        out = ROOT / "bench" / "results" / f"mixture-{datetime.now(UTC):%Y-%m-%d}{part}.md"
        out.write_text("\n".join([*_head(), *lines]), encoding="utf-8")
        print(f"wrote {out.relative_to(ROOT)}")
    return 0


def _head() -> list[str]:
    import numpy
    import scipy
    import sklearn

    from bench.machine import describe

    found = describe()
    machine = f"{found['cpu']}, {found['cores']} cores, {found['memory_gb']} GB"
    versions = f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    return ["# Gaussian mixtures", "", " ".join((__doc__ or "").split()), "", f"{machine}; {versions}.", ""]


if __name__ == "__main__":
    raise SystemExit(main())
