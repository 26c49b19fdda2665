"""First fits in a process: what compiling costs with an empty cache, for another size, and in the next process."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from bench.gpu.timing import Ceilings, Row, duration

SIZES = (4096, 5003)  # of a first fit, and of another that no multiple of 16 divides


def fits(n: int) -> dict[str, Callable[[], Any]]:
    """A fit of each kind on n rows or people, from the host to the host."""
    from gramian import GaussianMixture, GenotypePCA, KernelPCA, KernelRidge
    from gramian.sources.plink import Genotypes

    rng = np.random.default_rng(n)
    X, calls = rng.normal(size=(n, 12)), rng.binomial(2, 0.3, (2000, n))
    y = np.sin(X).sum(axis=1)
    return {
        "KernelRidge": lambda: KernelRidge(kernel="rbf", solver="cg", device="cuda").fit(X, y),
        "KernelPCA": lambda: KernelPCA(5, kernel="rbf", eigen_solver="krylov", device="cuda").fit(X),
        "GaussianMixture": lambda: GaussianMixture(3, random_state=0, device="cuda", max_iter=20).fit(X),
        "GenotypePCA": lambda: GenotypePCA(4, solver="krylov", device="cuda").fit(Genotypes.from_calls(calls)),
    }


def clock_fits() -> dict[str, list[float]]:
    """Seconds of each fit: the first, one of another size, and that again."""
    import warnings

    warnings.simplefilter("ignore")
    torch.zeros(1, device="cuda")
    torch.linalg.eigh(torch.eye(8, device="cuda", dtype=torch.float64))  # the libraries' own start is not ours
    found: dict[str, list[float]] = {}
    for n in (*SIZES, SIZES[-1]):
        for name, fit in fits(n).items():
            before = time.perf_counter()
            fit()
            torch.cuda.synchronize()
            found.setdefault(name, []).append(time.perf_counter() - before)
    return found


def rows(_: Ceilings) -> Iterator[Row]:
    """Two processes, one after the other, which share a cache that is empty at first."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.gpu.start"]
        run = subprocess.run  # a child has no kernels yet, and its own cache
        first, second = (
            json.loads(
                run(command, env={**os.environ, "TRITON_CACHE_DIR": folder}, check=True, capture_output=True).stdout
            )
            for _ in range(2)
        )
    for name in first:
        fresh, other, warm = first[name]
        later = f"first in the next process {duration(second[name][0])}"
        quality = f"another size {duration(other)}, again {duration(warm)}; {later}"
        yield Row(f"first {name} of a process, {SIZES[0]:,} rows, nothing compiled", fresh, quality)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(clock_fits()))
