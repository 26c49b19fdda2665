"""Count the passes a block Krylov method needs on each spectrum: ``python -m bench.passes``.

A Krylov method sees only the singular values and the angles of its random start, so a diagonal matrix with
the same values needs as many passes as the data. One pass is one product with AᵀA, the data being read once.
The flat spectrum takes a few minutes.
"""

import numpy as np

from bench import spectra
from bench.spectra import Array
from bench.workloads import WORKLOADS, Workload


def modelled_values(workload: Workload) -> Array:
    """Return all min(n, p) singular values that a recipe leads to, descending."""
    n, p, m = workload.rows, workload.cols, min(workload.rows, workload.cols)
    if workload.spectrum == "random":
        return spectra.noise_bulk(n, p, m)
    if workload.spectrum == "topics":
        top = 4.0 * np.sqrt(n * spectra.topic_shares())
        floor = np.sqrt(workload.density) * spectra.noise_bulk(n, p, m - top.size)
        return np.sort(np.concatenate([top, floor]))[::-1]
    top = spectra.with_noise(spectra.signal(n, p, workload.latent, workload.spectrum), n, p)
    return np.sort(np.concatenate([top, spectra.noise_bulk(n, p, m - top.size)]))[::-1]


def krylov_passes(values: Array, k: int, block: int, tol: float, most: int = 60) -> int | None:
    """Return the passes until k pairs have √(‖Av−σu‖² + ‖Aᵀu−σv‖²)/‖A‖ ≤ tol, if ``most`` suffice."""
    square = (values**2)[:, None]
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((values.size, block)))[0]
    newest, images = basis, np.empty((values.size, 0))
    for step in range(1, most + 1):
        product = square * newest
        images = np.hstack([images, product])
        theta, y = np.linalg.eigh(basis.T @ images)
        theta, y = theta[::-1][:k], y[:, ::-1][:, :k]
        residual = np.linalg.norm(images @ y - (basis @ y) * theta, axis=0) / np.sqrt(theta)
        if theta.size == k and residual.max() <= tol * np.sqrt(theta[0]):
            return step
        for _ in range(2):  # once is not enough for orthogonality to rounding
            product = product - basis @ (basis.T @ product)
        newest = np.linalg.qr(product)[0]
        basis = np.hstack([basis, newest])
    return None


def main() -> None:
    """Print the passes for blocks of k/2, k, 1.5k and 2k vectors on every truncated workload."""
    for workload in WORKLOADS:
        if workload.components is None or workload.kind == "map":
            continue
        k, tol, values = workload.components, 1e-6, modelled_values(workload)
        for block in (k // 2, k, 3 * k // 2, 2 * k):
            passes = krylov_passes(values, k, block, tol)
            print(f"{workload.name:<28} block {block:>3}: {passes or 'over 60'} passes")


if __name__ == "__main__":
    main()
