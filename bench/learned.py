"""Kernels learned at sizes: ``python -m bench.learned --rows 15000 [--device cuda] [--solver landmarks]``.

A smooth function of five of the features, which are uniform in a cube, with normal noise of 0.1; a width for each
feature is learned by ``KernelRidgeCV(learn="loo", fit_intercept=True)``. One line of JSON says the seconds of the fit
by the clock, the test error against the function without noise, what the certificate says, the share of the five
features, and how far 1,000 predictions can be from those of exact kernel ridge regression with the same kernel and λ:
the largest and the median bound. ``--exact TOL`` solves that problem by conjugate gradients as well, to a residual of
TOL, and says by how much predictions differ and how far its own can be from exact: together that certifies the fit by
landmarks.
"""

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np

import gramian
from bench.machine import describe


def sample(n: int, p: int, seed: int) -> tuple[Any, Any, Any]:
    """Rows, targets, and the function itself."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, p))
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * np.cos(4 * X[:, 3]) + 0.3 * X[:, 4] ** 3
    return X, f + 0.1 * rng.standard_normal(n), f


def main(argv: list[str] | None = None) -> int:
    """Learn, and print the line."""
    made = argparse.ArgumentParser(prog="python -m bench.learned", description=__doc__)
    made.add_argument("--rows", type=int, required=True)
    made.add_argument("--features", type=int, default=20)
    made.add_argument("--learn", default="loo", choices=("loo", "gcv", "marginal_likelihood"))
    made.add_argument("--solver", default="auto", choices=("auto", "eigh", "cg", "landmarks"))
    made.add_argument("--landmarks", type=int)
    made.add_argument("--device")
    made.add_argument("--exact", type=float, metavar="TOL")
    args = made.parse_args(argv)
    X, y, _ = sample(args.rows, args.features, 0)
    new, _, truth = sample(1000, args.features, 1)
    options = {"learn": args.learn, "solver": args.solver, "n_landmarks": args.landmarks, "fit_intercept": True}
    if args.device == "cuda":  # a small fit first: compilers and libraries start once in a process
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gramian.KernelRidgeCV(device=args.device, **options).fit(X[:3000], y[:3000])
    start = time.perf_counter()
    model = gramian.KernelRidgeCV(device=args.device, **options).fit(X, y)
    seconds = time.perf_counter() - start
    f, bound = model.predict(new, return_bound=True)
    c = model.certificate_
    found = {
        **vars(args),
        "seconds": round(seconds, 2),
        "error": float(np.sqrt(np.mean((f - truth) ** 2))),
        "solver": model.solver_,
        "converged": bool(c.converged),
        "residual": float(c.worst),
        "bounds": [float(np.max(bound)), float(np.median(bound))],
        "share of the five": float(model.learned_.shares[:5].sum()),
        "learned": model.learned_.note,
        "notes": list(c.notes),
        "machine": describe(),
    }
    if args.exact:
        print(json.dumps(found, default=str), flush=True)
        start = time.perf_counter()
        exact = gramian.KernelRidge(
            model.alpha_, kernel=model.kernel_, fit_intercept=True, solver="cg", tol=args.exact, device=args.device
        ).fit(X, y)
        g, bound = exact.predict(new, return_bound=True)
        found["exact"] = {
            "seconds": round(time.perf_counter() - start, 2),
            "converged": bool(exact.certificate_.converged),
            "iterations": int(exact.n_iter_),
            "differences": [float(np.max(np.abs(f - g))), float(np.median(np.abs(f - g)))],
            "bounds": [float(np.max(bound)), float(np.median(bound))],
            "error": float(np.sqrt(np.mean((g - truth) ** 2))),
        }
    print(json.dumps(found, default=str), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
