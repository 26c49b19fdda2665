"""One job in a fresh interpreter: ``python -m bench.worker JOB``, whose last printed line is JSON.

Everything heavy happens here, so the process that starts the jobs stays small and one fit never sees what
another left behind.
"""

import argparse
import importlib
import json
import resource
import signal
import sys
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench import machine
from bench.accuracy import measure
from bench.data import CACHE, data_files, ensure_data, load
from bench.reference import Centred, ensure_reference
from bench.workloads import CANDIDATES, Peer, Workload, find


def prepare(workload: Workload, cache: Path) -> dict[str, Any]:
    """Write the data and the reference; return what the spectrum looks like."""
    ensure_data(workload, cache)
    reference = ensure_reference(workload, cache)
    size = sum(file.stat().st_size for file in data_files(workload, cache))
    nonzeros = int(load(workload, cache).nnz) if workload.kind == "sparse" else workload.rows * workload.cols
    first, last = float(reference.values[0]), float(reference.values[workload.rank - 1])
    return {"bytes": size, "nonzeros": nonzeros, "gap": reference.gap, "first": first, "last": last}


def fit(workload: Workload, peer: Peer, cache: Path, limit: float, evaluate: bool) -> dict[str, Any]:
    """Time one fit, take its peak memory, and only then, outside the timed part, measure its accuracy."""
    by_path = peer.module == "gramian" and workload.kind == "map"
    data = data_files(workload, cache)[0] if by_path else load(workload, cache)
    estimator_class = getattr(importlib.import_module(peer.module), peer.cls)
    _warm_up(estimator_class, peer, workload, by_path)
    estimator = estimator_class(n_components=workload.components, **peer.params)
    before = _resident_bytes()
    # The default action of the alarm ends the process, even inside a BLAS call that Python cannot interrupt.
    signal.setitimer(signal.ITIMER_REAL, limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = perf_counter()
        estimator.fit(data)
        seconds = perf_counter() - start
    signal.setitimer(signal.ITIMER_REAL, 0)
    peak = _peak_bytes()
    result = {"seconds": seconds, "before": before, "peak": peak, **_story(estimator)}
    result["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    if evaluate:
        del data
        reference = ensure_reference(workload, cache)
        centred = Centred(workload, cache, reference.mean)
        found = measure(centred, estimator.singular_values_, estimator.components_, reference)
        result["accuracy"] = asdict(found)
    return result


def _warm_up(estimator_class: Any, peer: Peer, workload: Workload, by_path: bool) -> None:
    """Fit 64×8 numbers first, so that lazy imports and the start of threads are not timed for anyone."""
    tiny = np.random.default_rng(0).standard_normal((64, 8)).astype(workload.dtype)
    estimator = estimator_class(n_components=2 if workload.components else None, **peer.params)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        if by_path:
            np.save(Path(folder) / "tiny.npy", tiny)
            estimator.fit(Path(folder) / "tiny.npy")
        else:
            estimator.fit(sp.csr_array(tiny) if workload.kind == "sparse" else tiny)


def _story(estimator: Any) -> dict[str, Any]:
    """Return the method a fit chose and the passes it made, where the estimator tells."""
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        return {"method": getattr(estimator, "_fit_svd_solver", None), "passes": None}
    return {"method": certificate.method, "passes": float(certificate.passes)}


def _peak_bytes() -> int:
    """Return the largest resident size so far, mapped file pages included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _resident_bytes() -> int:
    """Return the resident size now, or the peak so far where the system does not tell."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return _peak_bytes()
    return int(statm.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def main(argv: list[str] | None = None) -> None:
    """Run one job and print its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=("prepare", "fit", "machine"))
    parser.add_argument("--workload")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--solver", help="name of a peer of the workload, or of a candidate")
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--cache", type=Path, default=CACHE)
    args = parser.parse_args(argv)
    if args.job == "machine":
        sizes = (512, 3_000) if args.scale >= 1 else (32, 500)
        result: dict[str, Any] = {**machine.describe(), **machine.probe(*sizes)}
    else:
        workload = find(args.workload).scaled(args.scale)
        if args.job == "prepare":
            result = prepare(workload, args.cache)
        else:
            peers = {**CANDIDATES, **{peer.name: peer for peer in workload.peers}}
            result = fit(workload, peers[args.solver], args.cache, args.limit, args.evaluate)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
