"""Ridge and kernel ridge regression against scikit-learn's: ``python -m bench.ridge``.

Every fit runs in a fresh process that has made one small fit; time is of ``fit``; memory is the peak of the process;
accuracy is measured afterwards in the same way for everyone. Rows are standard normal, targets a smooth function of
five features plus noise of 0.1.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Figures:
    """What one process measured: seconds, peak MB, an accuracy, and what that is."""

    seconds: float
    megabytes: float
    accuracy: str


@dataclass(frozen=True)
class Workload:
    """One job: what it is, whose solvers do it, the first being ours, and the ratio to reach."""

    title: str
    solvers: tuple[str, ...]
    target: str


WORKLOADS = {
    "kernel": Workload("KernelRidge, n = 10,000, d = 20, γ = 1/20, λ = 1", ("gramian", "gramian cg", "sklearn"), "2×"),
    "kernel-small-lambda": Workload(
        "KernelRidge, n = 10,000, d = 20, γ = 1/20, λ = 0.01", ("gramian", "gramian cg", "sklearn"), "2×"
    ),
    "kernel-20000": Workload("KernelRidge, n = 20,000, d = 20, γ = 1/20, λ = 1", ("gramian", "sklearn one thread"), ""),
    "choose": Workload("choosing among 20 λ, n = 3,000, d = 20", ("gramian", "sklearn"), "7×"),
    "ridge": Workload("RidgeCV, 100,000×200, 50 λ", ("gramian", "sklearn"), "25×"),
    "large-50000": Workload("KernelRidge, n = 50,000, d = 10, γ = 1/10, λ = 1, to 1e-6", ("gramian",), "60 s, 3 GB"),
    "large-50000-small-lambda": Workload(
        "KernelRidge, n = 50,000, d = 10, γ = 1/10, λ = 0.1, to 1e-6", ("gramian",), ""
    ),
    "large-200000": Workload("KernelRidge, n = 200,000, d = 10, γ = 1/10, λ = 1, to 1e-6", ("gramian",), ""),
    "landmarks-200000": Workload(
        "KernelRidge, n = 200,000, d = 10, γ = 1/10, λ = 1, 2,000 landmarks", ("gramian",), ""
    ),
}


def smooth(n: int, d: int) -> tuple[Any, Any]:
    """Rows and targets, the same for everyone."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + np.cos(X[:, 3] + X[:, 4]) + 0.1 * rng.standard_normal(n)
    return X, y


def timed(make: Callable[[], Any], X: Any, y: Any) -> tuple[Any, float, float]:
    """Return the fitted model, its seconds, and the peak memory of the process in MB."""
    make().fit(X[:300], y[:300])
    model = make()
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    return model, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def residual(model: Any, X: Any, y: Any, gamma: float, lam: float) -> float:
    """‖y − (K + λI)α‖/‖y‖ in float64, from ``dual_coef_`` alone."""
    import numpy as np

    from gramian.kernels import Gaussian
    from gramian.operators import KernelOperator

    alpha = np.asarray(model.dual_coef_, np.float64)
    K = KernelOperator(Gaussian(gamma=gamma), X, dtype=np.float64, store=False)
    return float(np.linalg.norm(y - K @ alpha - lam * alpha) / np.linalg.norm(y))


def kernel(name: str, n: int, d: int, lam: float, **options: Any) -> Figures:
    """One λ."""
    import sklearn.kernel_ridge

    import gramian

    X, y = smooth(n, d)
    params: dict[str, Any] = {"alpha": lam, "kernel": "rbf", "gamma": 1 / d}
    if name.startswith("gramian"):
        options |= {"solver": "cg", "tol": 1e-8} if name == "gramian cg" else {}
        model, seconds, peak = timed(lambda: gramian.KernelRidge(**params, **options), X, y)
    else:
        model, seconds, peak = timed(lambda: sklearn.kernel_ridge.KernelRidge(**params), X, y)
    if options.get("solver") == "landmarks":
        return Figures(seconds, peak, _test_error(model, d))
    return Figures(seconds, peak, f"residual {residual(model, X, y, 1 / d, lam):.1e}; {_how(model)}")


def _test_error(model: Any, d: int) -> str:
    import numpy as np

    X, y = smooth(210_000, d)
    error = float(np.sqrt(np.mean((model.predict(X[200_000:]) - y[200_000:]) ** 2)))
    return f"RMSE of 10,000 new rows {error:.4f} (noise 0.1); {_how(model)}"


def _how(model: Any) -> str:
    certificate = getattr(model, "certificate_", None)
    return "" if certificate is None else f"{certificate.method}, {certificate.iterations} iterations"


def choose(solver: str) -> Figures:
    """Twenty λ, by leave-one-out from one decomposition, or by 5-fold grid search."""
    import numpy as np
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    import gramian

    X, y = smooth(3_000, 20)
    alphas = np.logspace(-4, 2, 20)
    makers: dict[str, Callable[[], Any]] = {
        "gramian": lambda: gramian.KernelRidgeCV(alphas=alphas, kernel="rbf", gamma=1 / 20),
        "sklearn": lambda: GridSearchCV(
            KernelRidge(kernel="rbf", gamma=1 / 20), {"alpha": alphas}, cv=5, scoring="neg_mean_squared_error"
        ),
    }
    model, seconds, peak = timed(makers[solver], X, y)
    lam = model.alpha_ if solver == "gramian" else model.best_params_["alpha"]
    new, truth = (values[3_000:] for values in smooth(13_000, 20))
    error = float(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
    return Figures(seconds, peak, f"λ = {lam:.3g}, RMSE of 10,000 new rows {error:.4f}")


def ridge(solver: str) -> Figures:
    """Fifty λ of a linear model."""
    import numpy as np
    import sklearn.linear_model

    import gramian

    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 200)) @ np.diag(np.logspace(0, -2, 200)) + rng.standard_normal(200)
    y = X @ rng.standard_normal(200) + rng.standard_normal(100_000)
    alphas = np.logspace(-3, 4, 50)
    cls = gramian.RidgeCV if solver == "gramian" else sklearn.linear_model.RidgeCV
    model, seconds, peak = timed(lambda: cls(alphas=alphas), X, y)
    return Figures(seconds, peak, f"λ = {model.alpha_:.4g}, best_score_ {model.best_score_:.10f}")


JOBS: dict[str, Callable[[str], Figures]] = {
    "kernel": lambda s: kernel(s, 10_000, 20, 1.0),
    "kernel-small-lambda": lambda s: kernel(s, 10_000, 20, 0.01),
    "kernel-20000": lambda s: kernel(s, 20_000, 20, 1.0),
    "choose": choose,
    "ridge": ridge,
    "large-50000": lambda s: kernel(s, 50_000, 10, 1.0),
    "large-50000-small-lambda": lambda s: kernel(s, 50_000, 10, 0.1),
    "large-200000": lambda s: kernel(s, 200_000, 10, 1.0),
    "landmarks-200000": lambda s: kernel(s, 200_000, 10, 1.0, solver="landmarks", n_landmarks=2_000),
}


def run(name: str, solver: str, limit: float) -> Figures | str:
    """Measure in a fresh process, or say why there is nothing to tell.

    scikit-learn's KernelRidge crashes in two threads at 20,000 rows, so there it gets one from the start.
    """
    command = [sys.executable, "-m", "bench.ridge", "--worker", solver, "--only", name]
    try:
        env = os.environ | ({"OPENBLAS_NUM_THREADS": "1"} if solver == "sklearn one thread" else {})
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=True, env=env)
    except subprocess.TimeoutExpired:
        return f"over {limit:.0f} s"
    except subprocess.CalledProcessError as error:
        return str((error.stderr.strip().splitlines() or [f"exit {error.returncode}"])[-1])[:80]
    return Figures(**json.loads(done.stdout.strip().splitlines()[-1]))


def median(name: str, solver: str, limit: float, repeats: int) -> Figures | str:
    """Return the run with the median time of a few, the first where that took more than 20 s."""
    first = run(name, solver, limit)
    if isinstance(first, str) or first.seconds > 20:
        return first
    found = [first, *(run(name, solver, limit) for _ in range(repeats - 1))]
    good = sorted((f for f in found if isinstance(f, Figures)), key=lambda f: f.seconds)
    return good[len(good) // 2]


def table(name: str, found: dict[str, Figures | str]) -> list[str]:
    """Return the lines of one workload."""
    job = WORKLOADS[name]
    ours = found.get("gramian")
    goal = f" To reach: {job.target}." if job.target else ""
    lines = [f"**{job.title}.**{goal}", "", "| solver | fit | × ours | peak memory | |", "|---|---|---|---|---|"]
    for solver, f in found.items():
        if isinstance(f, str):
            lines.append(f"| {solver} | {f} | | | |")
            continue
        ratio = f"{f.seconds / ours.seconds:.1f}" if isinstance(ours, Figures) else ""
        lines.append(f"| {solver} | {f.seconds:.2f} s | {ratio} | {f.megabytes:,.0f} MB | {f.accuracy} |")
    needs = {"large-50000": 50_000, "large-50000-small-lambda": 50_000, "large-200000": 200_000}
    if name in needs:
        lines.append(f"| sklearn | cannot run | | {8 * needs[name] ** 2 / 1e9:,.0f} GB for the kernel matrix alone | |")
    return [*lines, ""]


def main(argv: list[str] | None = None) -> int:
    """Measure everything, print and write the tables."""
    made = argparse.ArgumentParser(prog="python -m bench.ridge", description=__doc__)
    made.add_argument("--only", action="append", choices=list(WORKLOADS))
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--limit", type=float, default=1800.0, help="seconds a process may take")
    made.add_argument("--worker", help=argparse.SUPPRESS)
    args = made.parse_args(argv)
    if args.worker:
        print(json.dumps(asdict(JOBS[args.only[0]](args.worker))))
        return 0
    part = "".join(f"-{name}" for name in args.only or ())
    out = ROOT / "bench" / "results" / f"ridge-{datetime.now(UTC):%Y-%m-%d}{part}.md"
    lines = _head()
    for name in args.only or WORKLOADS:
        found = {s: median(name, s, args.limit, args.repeats) for s in WORKLOADS[name].solvers}
        lines += table(name, found)
        print("\n".join(table(name, found)), flush=True)
        out.write_text("\n".join(lines), encoding="utf-8")
    print(f"wrote {out.relative_to(ROOT)}")
    return 0


def _head() -> list[str]:
    import numpy
    import scipy
    import sklearn

    import gramian
    from bench.machine import describe

    found = describe()
    machine = f"{found['cpu']}, {found['cores']} cores, {found['memory_gb']} GB"
    versions = f"gramian {gramian.__version__}, scikit-learn {sklearn.__version__}"
    versions += f", NumPy {numpy.__version__}, SciPy {scipy.__version__}"
    return [
        "# Ridge and kernel ridge regression",
        "",
        " ".join((__doc__ or "").split()),
        "",
        f"{machine}, load {found['load_before']} before; {versions}.",
        "",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
