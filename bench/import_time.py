"""Compare ``import gramian`` with ``import sklearn.decomposition``: ``python -m bench.import_time``."""

import subprocess
import sys
from statistics import median

MODULES = ("gramian", "sklearn.decomposition")
CODE = "from time import perf_counter as now; t = now(); import {}; print(now() - t)"


def import_seconds(module: str) -> float:
    """Return the time of one import in a fresh interpreter, the interpreter's own start not counted."""
    done = subprocess.run([sys.executable, "-c", CODE.format(module)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def compare(modules: tuple[str, ...] = MODULES, runs: int = 7) -> dict[str, float]:
    """Return the median import time of each module, after one unmeasured round that fills the file cache."""
    for module in modules:
        import_seconds(module)
    times: dict[str, list[float]] = {module: [] for module in modules}
    for number in range(runs):
        for module in modules[:: -1 if number % 2 else 1]:
            times[module].append(import_seconds(module))
    return {module: median(values) for module, values in times.items()}


def main() -> int:
    """Print both times; fail when ours is more than a tenth of a second slower."""
    ours, theirs = compare().values()
    fine = ours <= theirs + 0.1
    verdict = "fine" if fine else "too slow"
    print(f"import {MODULES[0]}: {ours:.3f} s, import {MODULES[1]}: {theirs:.3f} s: {verdict}")
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
