"""What the figures were measured on: processor, memory, versions, and two quick probes of its speed."""

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_info

PACKAGES = ("gramian", "scikit-learn", "numpy", "scipy")


def describe() -> dict[str, str | int | float]:
    """Return the machine and the versions, without any path or name of the machine."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "memory_gb": round(_memory_bytes() / 1e9, 1),
        # Threaded BLAS can slow down many times on a busy machine, so figures taken under load mean little.
        "load_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "blas": _blas(),
    }


def probe(copy_mb: int = 512, order: int = 3_000) -> dict[str, float]:
    """Return the bandwidth of a copy on all cores (bytes read plus written) and the speed of gemm."""
    return {
        "bandwidth_gb_s": round(_bandwidth(copy_mb * 1_000_000), 1),
        "gflops_float64": round(_gemm(order, np.float64), 1),
        "gflops_float32": round(_gemm(order, np.float32), 1),
    }


def _bandwidth(size: int) -> float:
    """Return the GB/s of the best of five copies of ``size`` bytes, a share for every core."""
    cores = os.cpu_count() or 1
    source, target = np.ones(size // 8), np.zeros(size // 8)
    pairs = list(zip(np.array_split(target, cores), np.array_split(source, cores), strict=True))
    with ThreadPoolExecutor(cores) as pool:
        times = []
        for _ in range(5):
            start = perf_counter()
            list(pool.map(lambda pair: np.copyto(*pair), pairs))
            times.append(perf_counter() - start)
    return 2 * source.nbytes / min(times) / 1e9


def _gemm(order: int, dtype: type[np.float64] | type[np.float32]) -> float:
    """Return the GFLOP/s of the best of three products of two square matrices."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((order, order), dtype=dtype) for _ in range(2))
    times = []
    for _ in range(3):
        start = perf_counter()
        a @ b
        times.append(perf_counter() - start)
    return 2.0 * order**3 / min(times) / 1e9


def _cpu() -> str:
    """Return the processor's model."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_bytes() -> int:
    """Return the size of physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _version(package: str) -> str:
    """Return the installed version of ``package``."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    """Return the BLAS that NumPy and SciPy call: name, version, kernels, threads."""
    found = [
        f"{lib['internal_api']} {lib['version']} {lib.get('architecture', '')}, {lib['num_threads']} threads"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    ]
    return "; ".join(dict.fromkeys(found)) or "unknown"
