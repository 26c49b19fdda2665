"""Products k(X, X) V by tiles, stored or not, against the kernel matrix of scikit-learn and of torch, times V.

Usage: python -m bench.kernel_product [--repeats 7] [--out FILE]

Rates are in 10⁹ kernel entries a second, n² counted once for a product, the best of the repeats. Beside the rate by the
clock stands the rate by processor time, times the number of cores: on a machine with other work it says what an idle
one would do.
"""

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import pairwise_kernels

from bench.machine import describe
from gramian.compute import tiles
from gramian.compute.threads import quiet_blas
from gramian.kernels import Gaussian, Kernel, Laplacian, Matern, Polynomial

Array = NDArray[Any]

KERNELS: dict[str, Kernel] = {
    "Gaussian": Gaussian(),
    "Polynomial, q = 3": Polynomial(),
    "Matérn, ν = 3/2": Matern(1.5, 5.0),
    "Laplacian": Laplacian(),
}
# kernel, n, d, columns of V, dtype
WORKLOADS = [
    *[("Gaussian", 10_000, 20, k, dtype) for dtype in ("float32", "float64") for k in (1, 10, 24)],
    ("Gaussian", 10_000, 200, 10, "float32"),
    ("Gaussian", 40_000, 20, 10, "float32"),
    ("Polynomial, q = 3", 10_000, 20, 10, "float32"),
    ("Matérn, ν = 3/2", 10_000, 20, 10, "float32"),
    ("Laplacian", 5_000, 20, 10, "float32"),
]
PEER_ROWS = 10_000  # beyond this a whole matrix is not asked of the others
STORED_ROWS = 16_000


def rates(product: Callable[[], Any], entries: float, repeats: int) -> tuple[float, float]:
    """Return 10⁹ entries a second by the clock, and by processor time times cores; the best of the repeats."""
    product()
    clock, work = [], []
    for _ in range(repeats):
        start, cpu = time.perf_counter(), time.process_time()
        product()
        clock.append(time.perf_counter() - start)
        work.append(time.process_time() - cpu)
    return entries / min(clock) / 1e9, entries / min(work) / 1e9 * (os.cpu_count() or 1)


def peers(name: str, X: Array, V: Array) -> dict[str, Callable[[], Any]]:
    """Return what others do: the whole matrix, times V."""
    if len(X) > PEER_ROWS:
        return {}
    named = {"Gaussian": "rbf", "Polynomial, q = 3": "poly", "Laplacian": "laplacian"}
    found: dict[str, Callable[[], Any]] = {"scikit-learn": lambda: SklearnMatern(5.0, nu=1.5)(X) @ V}
    if name in named:
        found = {"scikit-learn": lambda: pairwise_kernels(X, metric=named[name]) @ V}
    if name == "Gaussian" and find_spec("torch"):
        found["torch"] = torch_product(X, V)
    return found


def torch_product(X: Array, V: Array) -> Callable[[], Any]:
    """Return the product by torch on the processor, from its pairwise distances."""
    import torch

    T, W = torch.asarray(X), torch.asarray(V)
    return lambda: torch.exp(torch.cdist(T, T).square_() / -T.shape[1]) @ W


def row(workload: tuple[str, int, int, int, str], repeats: int) -> str:
    """Measure one workload."""
    name, n, d, k, dtype = workload
    rng = np.random.default_rng(0)
    X, V = (rng.standard_normal((n, width)).astype(dtype) for width in (d, k))
    pairs = KERNELS[name].pairs(X)
    repeats = max(2, repeats // (1 + n // 20_000))
    cells = []
    with quiet_blas():
        cells.append(rates(lambda: tiles.symmetric_product(pairs, V), n * n, repeats))
        if n <= STORED_ROWS:
            kept = tiles.Stored(pairs)
            cells.append(rates(lambda: tiles.symmetric_product(kept, V), n * n, repeats))
    shown = [f"{clock:.2f} ({work:.2f})" for clock, work in cells] + ["–"] * (2 - len(cells))
    others = peers(name, X, V)
    for peer in ("scikit-learn", "torch"):
        shown.append("{:.2f} ({:.2f})".format(*rates(others[peer], n * n, 2)) if peer in others else "–")
    return f"| {name} | {n:,} | {d} | {k} | {dtype} | " + " | ".join(shown) + " |"


def report(repeats: int, say: Callable[[str], None]) -> None:
    """Print the machine and the table."""
    say("# Kernel products\n")
    say("10⁹ entries of k(X, X) a second in a product with V, by the clock (and by processor time, times the cores).\n")
    for key, value in describe().items():
        say(f"- {key}: {value}")
    say("\n| kernel | n | d | columns of V | dtype | tiles | stored tiles | scikit-learn, whole | torch, whole |")
    say("|---" * 9 + "|")
    for workload in WORKLOADS:
        say(row(workload, repeats))


def main() -> None:
    """Read the command line, report, and write the report to a file if asked."""
    parser = argparse.ArgumentParser(description="Rates of kernel products.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    report(options.repeats, say)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
