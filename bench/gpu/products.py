"""Gaussian kernel times vectors, n = 10⁶ points of 20 features."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from bench.gpu.timing import Ceilings, Row, duration, share, timed
from gramian.kernels import Gaussian
from gramian.operators import kernel_operator

N, D, LOOK = 1_000_000, 20, 256
MODES = {"fast": ("float32", 5e-4), "accurate": ("float32", 2e-6), "double": ("float64", None)}


def rows(ceilings: Ceilings) -> Iterator[Row]:
    """Every mode with 1, 16 and 32 columns; the error on rows picked at random, against float64."""
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn(N, D, device="cuda", generator=generator)
    V = torch.randn(N, 32, device="cuda", generator=generator, dtype=torch.float64)
    some = torch.randperm(N, device="cuda", generator=generator)[:LOOK]
    want = _exact(X, some, V)
    peers = {c: _chunked(X, V[:, :c].float()) for c in (1, 16)}
    for mode, (dtype, tolerance) in MODES.items():
        A = kernel_operator(Gaussian(1 / (2 * D)), X, dtype=np.dtype(dtype), device=X.device, tolerance=tolerance)
        for columns in (1, 16, 32):
            U = V[:, :columns].to(A.dtype).contiguous()
            seconds, Y = timed(partial(A.matmat, U), repeats=3 if mode != "double" else 1)
            error = float((Y[some].double() - want[:, :columns]).norm() / want[:, :columns].norm())
            limit = share(N**2 / ceilings.exponentials, seconds) if mode != "double" else ""
            peer = _beside(peers.get(columns), seconds) if mode == "fast" else ""
            yield Row(
                f"Gaussian product, {columns} columns, {mode}", seconds, f"relative error {error:.1e}", limit, peer
            )


def _exact(X: Any, some: Any, V: Any) -> Any:
    """k(X[some], X) V in float64, from differences."""
    total = torch.zeros(len(some), V.shape[1], dtype=torch.float64, device=X.device)
    x = X[some].double()
    for i in range(0, len(X), 2**16):
        far = torch.cdist(x, X[i : i + 2**16].double(), compute_mode="donot_use_mm_for_euclid_dist")
        total += torch.exp(-(far**2) / (2 * D)) @ V[i : i + 2**16]
    return total


def _chunked(X: Any, V: Any) -> float:
    """The peer: distances, exponential and product of a chunk of rows after another, all by torch."""

    def work() -> Any:
        return torch.cat([torch.exp(torch.cdist(x, X).square_().div_(-2 * D)) @ V for x in X.split(4096)])

    return timed(work, repeats=1, warm=0)[0]


def _beside(peer: float | None, seconds: float) -> str:
    return "" if peer is None else f"chunked torch {duration(peer)} ({peer / seconds:.0f}×)"
