"""One table of all hot loops: plain array code, the loops of the CPU, plain torch, Triton and the GPU agree.

What is right is float64 arithmetic written down plainly. float32 is to be within 2e-6 of it in the accurate mode and
within 5e-4 in the fast one, relative to the length of each column of the answer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from gramian.compute import dense as cpu
from gramian.compute import genotypes as cpu_genotypes
from gramian.compute import mixture as cpu_mixture
from gramian.compute import reference
from gramian.compute import tiles as cpu_tiles
from gramian.compute.devices import to_numpy
from gramian.compute.gpu import dense, genotypes, mixture, tiles
from gramian.compute.mixture import Components
from gramian.kernels import Gaussian, Laplacian, Matern

MODES = {"fast": ("float32", 5e-4), "accurate": ("float32", None), "double": ("float64", None)}
BOUNDS = {"fast": 5e-4, "accurate": 2e-6, "double": 1e-12}


def uniform(seed: int, *shape: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


X, Z, V, U = uniform(0, 90, 5, high=2.0), uniform(1, 70, 5, high=2.0), uniform(2, 70, 3), uniform(3, 90, 3)
KERNELS = {"gaussian": Gaussian(0.3), "laplacian": Laplacian(0.2), "matern": Matern(1.5, 2.0)}
Way = Callable[[str], Any]


def there(device: Any) -> Any:
    """What takes arrays to a device, in a dtype."""
    return lambda x, dtype=None: torch.from_numpy(np.asarray(x, dtype=dtype or x.dtype)).to(device)


def kernel_ways(kernel: Any, device: Any) -> dict[str, tuple[Any, Way, Way]]:
    """Name: what is right, and how the CPU and the device find it in a mode."""
    K, S, put = kernel(X.astype(float), Z.astype(float)), kernel(X.astype(float)), there(device)

    def on_device(name: str, right: Any, given: Any) -> Way:
        def run(mode: str) -> Any:
            dtype, tolerance = MODES[mode]
            points = [None if x is None else put(x, dtype) for x in (X, right)]
            pairs = tiles.prepare(kernel.formula(5), *points, dtype=dtype, tolerance=tolerance)
            assert pairs.error <= BOUNDS[mode]
            return getattr(tiles, name)(pairs, put(given, dtype))

        return run

    def here(name: str, right: Any, given: Any) -> Way:
        return lambda mode: getattr(cpu_tiles, name)(kernel.pairs(X, right, MODES[mode][0]), given)

    cases = {"product": (Z, V, K @ V), "adjoint": (Z, U, K.T @ U), "symmetric_product": (None, U, S @ U)}
    return {
        name: (want, here(name, right, given), on_device(name, right, given))
        for name, (right, given, want) in cases.items()
    }


def dense_ways(device: Any) -> dict[str, tuple[Any, Way, Way]]:
    """The same of D = X − origin."""
    put, origin = there(device), np.full((1, 5), 0.5, dtype=np.float32)
    columns = uniform(4, 5, 3)

    def ways(name: str, given: Any) -> tuple[Any, Way, Way]:
        def run(loops: Any, take: Any) -> Way:
            return lambda mode: getattr(loops, name)(
                take(X, MODES[mode][0]), take(given, MODES[mode][0]), origin=take(origin, MODES[mode][0])
            )

        want = getattr(reference, name)(X.astype(float), given.astype(float), origin=origin.astype(float))
        return want, run(cpu, np.asarray), run(dense, put)

    return {"product": ways("product", columns), "adjoint": ways("adjoint", U), "normal": ways("normal", columns)}


def genotype_ways(device: Any) -> dict[str, tuple[Any, Way, Way]]:
    """Of packed genotypes, standardised."""
    G, put = np.random.default_rng(5).integers(-1, 3, (60, 90)), there(device)
    packed = cpu_genotypes.pack(G)
    line = np.concatenate([uniform(6, 60, 1, low=1.0, high=2.0), uniform(7, 60, 1, low=-1.0, high=0.0)], axis=1)
    line = line.astype(np.float64)
    right = np.where(G >= 0, line[:, :1] * G + line[:, 1:], 0.0)
    W = uniform(8, 60, 3, low=-1.0)

    def here(mode: str) -> Any:
        return cpu_genotypes.Decoder(60, packed.shape[1], MODES[mode][0])(packed, line)[:, :90]

    def run(name: str, given: Any) -> Way:
        return lambda mode: getattr(genotypes, name)(put(packed), put(line), put(given, MODES[mode][0]), mode=mode)

    adjoint = (right @ U, lambda mode: here(mode) @ U, run("adjoint", U))
    product = (right.T @ W, lambda mode: here(mode).T @ W, lambda mode: run("product", W)(mode)[:90])
    return {"adjoint": adjoint, "product": product}


def mixture_ways(device: Any) -> dict[str, tuple[Any, Way, Way]]:
    """Σr, Σr(d−m) and Σr(d−m)(d−m)ᵀ of three components, as columns of one table."""
    roots = np.stack([np.eye(5), 2 * np.eye(5), np.tril(np.ones((5, 5)))])
    parts = Components(np.ones(5), uniform(9, 3, 5, low=-1.0).astype(float), roots, np.array([0.0, 0.5, -0.5]))
    E = X.astype(float)[:, None] - parts.origin - parts.centres
    joint = parts.constants - 0.5 * np.sum(np.einsum("kij,nkj->nki", roots, E) ** 2, axis=2)
    R = np.exp(joint)
    R /= R.sum(axis=1, keepdims=True)
    table = np.einsum("nk,nki,nkj->kij", R, E, E)

    def second(sums: Any) -> Any:
        return np.concatenate([sums.counts, sums.second.ravel()])[:, None]

    def run(mode: str) -> Any:
        tolerance = None if mode == "double" else BOUNDS[mode]
        return second(mixture.expectation(there(device)(X), None, parts, tolerance=tolerance))

    want = np.concatenate([R.sum(axis=0), table.ravel()])[:, None]
    return {"expectation": (want, lambda mode: second(cpu_mixture.expectation(X, None, parts)), run)}


WORK: dict[str, Callable[[Any], dict[str, tuple[Any, Way, Way]]]] = {
    **{name: lambda device, kernel=kernel: kernel_ways(kernel, device) for name, kernel in KERNELS.items()},  # type: ignore[misc]
    "dense": dense_ways,
    "genotypes": genotype_ways,
    "mixture": mixture_ways,
}


def error(found: Any, want: Any) -> float:
    lost = np.linalg.norm(to_numpy(found, float) - want, axis=0)
    return float(np.max(lost / np.linalg.norm(want, axis=0)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("work", WORK)
def test_all_modules_agree(work: str, mode: str, implementation: Any) -> None:
    for name, (want, here, device) in WORK[work](implementation).items():
        assert error(device(mode), want) <= BOUNDS[mode], name
        assert error(here(mode), want) <= min(BOUNDS[mode], 2e-6), f"{name} on the CPU"
