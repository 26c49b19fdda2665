"""Whole fits on a GPU, through the ordinary estimators."""

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from bench.gpu.timing import Ceilings, Row, duration, share, timed
from bench.uci import SETS, splits
from gramian import PCA, GaussianMixture, KernelPCA, KernelRidge


def clocked(work: Any) -> tuple[float, Any]:
    """Wall time of one call, the GPU's work included."""
    torch.cuda.synchronize()
    start = perf_counter()
    out = work()
    torch.cuda.synchronize()
    return perf_counter() - start, out


def pca(ceilings: Ceilings) -> Iterator[Row]:
    """All components of 10⁶ × 200 in float32, and the variances against float64."""
    X = torch.randn(1_000_000, 200, device="cuda") * torch.linspace(1, 3, 200, device="cuda") + 5
    seconds, model = min((clocked(lambda: PCA().fit(X)) for _ in range(5)), key=lambda pair: pair[0])
    D = X.double()
    D -= D.mean(0)
    want = torch.linalg.eigvalsh(D.T @ D / (len(D) - 1)).flip(0)
    error = float(((model.explained_variance_ - want) / want).abs().max())
    limit = share(X.nbytes / ceilings.bandwidth, seconds)
    yield Row("PCA of 10⁶ × 200, all components", seconds, f"variances within {error:.1e} of float64", limit)


def mixture(ceilings: Ceilings) -> Iterator[Row]:
    """One EM iteration on 10⁷ overlapping rows: a fit of many steps less one of few, by the step."""
    n, d, k = 10_000_000, 20, 16
    generator = torch.Generator("cuda").manual_seed(0)
    centres = torch.randn(k, d, device="cuda", generator=generator)
    X = 0.8 * torch.randn(n, d, device="cuda", generator=generator)
    X += centres[torch.randint(k, (n,), device="cuda", generator=generator)]
    for shape in ("full", "diag"):
        spread = X[:10_000].double().var(dim=0).cpu().numpy()
        precisions = np.repeat(np.diag(1 / spread)[None], k, axis=0) if shape == "full" else np.tile(1 / spread, (k, 1))
        start = {"weights_init": np.full(k, 1 / k), "precisions_init": precisions, "means_init": X[:k].cpu().numpy()}
        _steps(X, shape, start, 1)
        short, long = clocked(partial(_steps, X, shape, start, 2)), clocked(partial(_steps, X, shape, start, 22))
        seconds = (long[0] - short[0]) / 20
        quality = f"log-likelihood a row {short[1].lower_bound_:.6f} after 2 steps, {long[1].lower_bound_:.6f} after 22"
        limit = share(X.nbytes / ceilings.bandwidth, seconds)
        yield Row(f"mixture of 10⁷ × 20, 16 components, {shape}: one EM iteration", seconds, quality, limit)


def _steps(X: Any, shape: str, start: dict[str, Any], steps: int) -> Any:
    """Plain EM of so many steps, which are too few to converge."""
    shared: dict[str, Any] = {"reg_covar": 0.0, "tol": 0.0, "accelerate": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(16, covariance_type=shape, max_iter=steps, **shared, **start).fit(X)


def kernel_pca(ceilings: Ceilings) -> Iterator[Row]:
    """Ten components of 10⁶ points of 20 features, never storing the matrix."""
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn(1_000_000, 20, device="cuda", generator=generator)
    X += (
        2
        * torch.randn(12, 20, device="cuda", generator=generator)[
            torch.randint(12, (len(X),), device="cuda", generator=generator)
        ]
    )
    model = KernelPCA(10, kernel="rbf", gamma=1 / 40, eigen_solver="krylov", tol=1e-4)
    model.fit(X[:20_000])
    seconds, model = clocked(lambda: model.fit(X))
    c = model.certificate_
    limit = share(c.passes * len(X) ** 2 / ceilings.exponentials, seconds)
    quality = f"residuals at most {c.residuals.max():.1e}, converged {c.converged}, {c.passes} products"
    yield Row("KernelPCA of 10⁶ × 20, 10 components, to 1e-4", seconds, quality, limit)


def smooth(n: int, d: int) -> tuple[Any, Any]:
    """Points in a cube and a smooth function of them with noise of 0.1."""
    generator = torch.Generator("cuda").manual_seed(1)
    X = torch.rand(n, d, device="cuda", generator=generator, dtype=torch.float64) * 2 - 1
    y = torch.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + torch.cos(X[:, 3:].sum(1))
    return X, y + 0.1 * torch.randn(n, device="cuda", generator=generator, dtype=torch.float64)


def kernel_ridge(ceilings: Ceilings) -> Iterator[Row]:
    """A factor of 120,000 rows in float64; conjugate gradients on 10⁶."""
    X, y = smooth(120_000, 9)
    exact = KernelRidge(1.0, kernel="rbf", gamma=0.2, solver="cholesky")
    exact.fit(X[:5000], y[:5000])
    seconds, exact = clocked(lambda: exact.fit(X, y))
    limit = share(len(X) ** 3 / 3 / ceilings.double, seconds)
    yield Row("KernelRidge of 120,000 × 9, exact in float64", seconds, _certified(exact), limit)
    X, y = smooth(1_000_000, 9)
    model = KernelRidge(1.0, kernel="rbf", gamma=0.2, solver="cg", tol=1e-4)
    model.fit(X[:20_000], y[:20_000])
    seconds, model = clocked(lambda: model.fit(X, y))
    test, truth = smooth(1_000_000, 9)
    fit = float((model.predict(test[:10_000]) - truth[:10_000]).square().mean().sqrt())
    quality = f"{_certified(model)}, root mean square of residuals {fit:.3f} with noise 0.1"
    yield Row("KernelRidge of 10⁶ × 9, conjugate gradients to 1e-4", seconds, quality)


def uci(folder: Path) -> Iterator[Row]:
    """Exact fits in float64 of the first split of each set, on the GPU and on the CPU beside it."""
    for name in SETS:
        X, y, T, _ = next(iter(splits(folder / name)))
        gamma = 0.5 / (0.7**2 * X.shape[1])
        model = KernelRidge(0.01, kernel="rbf", gamma=gamma, solver="cholesky", device="cuda")
        model.fit(X, y)
        seconds, model = clocked(lambda m=model, X=X, y=y: m.fit(X, y))
        beside = KernelRidge(0.01, kernel="rbf", gamma=gamma, solver="cholesky")
        there, beside = clocked(lambda m=beside, X=X, y=y: m.fit(X, y))
        gap = float(np.max(np.abs(model.predict(T) - beside.predict(T))))
        quality = f"{_certified(model)}; predictions differ from the CPU's by {gap:.0e}"
        peer = f"the same on the CPU {duration(there)} ({there / seconds:.1f}×)"
        yield Row(f"KernelRidge on {name}, {len(X)} rows, exact in float64", seconds, quality, "", peer)


def _certified(model: Any) -> str:
    c = model.certificate_
    return f"residual {c.worst:.1e}, converged {c.converged}, {c.iterations} iterations"


def uploads(ceilings: Ceilings) -> Iterator[Row]:
    """Bytes to the GPU: pinned memory, as the streams use."""
    pinned = torch.empty(2**30, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    seconds, _ = timed(lambda: there.copy_(pinned, non_blocking=True))
    yield Row("upload of 1 GiB from pinned memory", seconds, f"{pinned.nbytes / seconds / 1e9:.1f} GB/s")
