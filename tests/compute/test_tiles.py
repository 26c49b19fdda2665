"""Kernel products by tiles against the matrix, for every shape of tile and number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from gramian.compute import tiles
from gramian.kernels import Callable, Chi2, Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, Precomputed

KERNELS: list[Kernel] = [Gaussian(0.2), Polynomial(3) + 0.5 * Matern(), Laplacian(0.1) * Chi2(0.1), Linear()]


def points(n: int, seed: int, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 2, (n, 5)).astype(dtype)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("k", [1, 3, 24, 200])
@pytest.mark.parametrize("threads", [1, 2])
def test_products_agree_with_the_matrix(kernel: Kernel, k: int, threads: int) -> None:
    X, Z, rng = points(300, 0), points(390, 1), np.random.default_rng(2)
    V, U = rng.standard_normal((390, k)), rng.standard_normal((300, k))
    K, S = kernel(X, Z), kernel(X)
    size = np.abs(K).sum(axis=1).max()
    with threadpool_limits(threads):
        np.testing.assert_allclose(tiles.product(kernel.pairs(X, Z), V), K @ V, atol=1e-14 * size)
        np.testing.assert_allclose(tiles.adjoint(kernel.pairs(X, Z), U), K.T @ U, atol=1e-14 * size)
        np.testing.assert_allclose(tiles.symmetric_product(kernel.pairs(X), U), S @ U, atol=1e-14 * size)
        np.testing.assert_allclose(tiles.dense(kernel.pairs(X, Z)), K, rtol=1e-13)
        square = tiles.dense(kernel.pairs(X))
    np.testing.assert_allclose(square, S, rtol=1e-13)
    np.testing.assert_array_equal(square, square.T)


@given(n=st.integers(1, 300), m=st.integers(1, 300), k=st.integers(1, 40), seed=st.integers(0, 99))
def test_any_shape(n: int, m: int, k: int, seed: int) -> None:
    X, Z, rng = points(n, seed), points(m, seed + 1), np.random.default_rng(seed)
    V, U = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    kernel = Gaussian(0.5)
    np.testing.assert_allclose(tiles.product(kernel.pairs(X, Z), V), kernel(X, Z) @ V, atol=1e-11)
    np.testing.assert_allclose(tiles.adjoint(kernel.pairs(X, Z), U), kernel(X, Z).T @ U, atol=1e-11)
    np.testing.assert_allclose(tiles.symmetric_product(kernel.pairs(X), U), kernel(X) @ U, atol=1e-11)


def test_float32_loses_only_what_its_tiles_lose() -> None:
    """Sums are kept in float64: the error stays near ε times the largest sum of magnitudes, however many tiles."""
    X = points(3000, 0, np.float32)
    V = np.random.default_rng(1).uniform(0, 1, (3000, 2)).astype(np.float32)
    want = Gaussian(0.3)(X.astype(float)) @ V.astype(float)
    got = tiles.symmetric_product(Gaussian(0.3).pairs(X), V)
    assert got.dtype == np.float32
    assert np.abs(got / want - 1).max() < 4 * np.finfo(np.float32).eps
    np.testing.assert_allclose(tiles.product(Gaussian(0.3).pairs(X, X.copy()), V), want, rtol=1e-6)


class Ones:
    """A float32 matrix of ones."""

    dtype, symmetric, buffers, serial, side = np.dtype(np.float32), True, 1, True, 256

    def __init__(self, n: int) -> None:
        self.shape = (n, n)

    def fill(self, rows: slice, columns: slice, buffers: Any) -> np.ndarray:
        return np.ones((rows.stop - rows.start, columns.stop - columns.start), np.float32)


@pytest.mark.parametrize("multiply", [tiles.product, tiles.adjoint, tiles.symmetric_product])
def test_sums_over_tiles_are_kept_in_float64(multiply: Any) -> None:
    v = np.full((1024, 1), 0.25)
    v[:256] = v[768:] = 0.0
    v[0], v[-1] = 2.0**30, -(2.0**30)  # in float32 nothing between them would be left
    np.testing.assert_array_equal(multiply(Ones(1024), v), 512 * 0.25)


def test_results_do_not_change_from_run_to_run() -> None:
    X, V = points(700, 0), points(700, 1)
    pairs = Gaussian(0.3).pairs(X)
    np.testing.assert_array_equal(tiles.symmetric_product(pairs, V), tiles.symmetric_product(pairs, V))


def test_each_tile_of_a_symmetric_matrix_is_evaluated_once() -> None:
    evaluated: list[tuple[slice, slice]] = []

    class Counting:
        shape, dtype, symmetric, buffers, serial, side = (400, 400), np.dtype(float), True, 1, True, 0

        def fill(self, rows: slice, columns: slice, buffers: Any) -> np.ndarray:
            evaluated.append((rows, columns))
            return np.ones((rows.stop - rows.start, columns.stop - columns.start))

    np.testing.assert_array_equal(tiles.symmetric_product(Counting(), np.ones((400, 1))), 400.0)
    assert all(columns.start >= rows.start for rows, columns in evaluated)
    sizes = [(rows.stop - rows.start) * (columns.stop - columns.start) for rows, columns in evaluated]
    squares = {rows.start: rows.stop - rows.start for rows, _ in evaluated}
    assert sum(sizes) == (400**2 + sum(side**2 for side in squares.values())) / 2


@pytest.mark.parametrize("threads", [1, 2])
def test_stored_tiles_give_the_same_products(threads: int) -> None:
    X, Z, V = points(600, 0), points(300, 1), points(600, 2)
    square, wide = Gaussian(0.3).pairs(X), Gaussian(0.3).pairs(Z, X)
    with threadpool_limits(threads):
        kept, kept_wide = tiles.Stored(square), tiles.Stored(wide)
        np.testing.assert_allclose(tiles.symmetric_product(kept, V), Gaussian(0.3)(X) @ V, atol=1e-12)
        np.testing.assert_allclose(tiles.product(kept, V), Gaussian(0.3)(X) @ V, atol=1e-12)
        np.testing.assert_allclose(tiles.product(kept_wide, V), Gaussian(0.3)(Z, X) @ V, atol=1e-12)
        np.testing.assert_allclose(tiles.adjoint(kept_wide, V[:300]), Gaussian(0.3)(X, Z) @ V[:300], atol=1e-12)
        np.testing.assert_allclose(tiles.dense(kept), Gaussian(0.3)(X), rtol=1e-14)
    held = sum(tile.nbytes for tile in kept.tiles.values())
    assert tiles.Stored.nbytes(square) <= held < 0.8 * 600 * 600 * 8  # the diagonal tiles are whole
    assert sum(tile.nbytes for tile in kept_wide.tiles.values()) == tiles.Stored.nbytes(wide)


def test_stored_matrices_and_functions_of_objects() -> None:
    words = ["gram", "ram", "go", "margin"]
    kernel = Callable(lambda a, b: float(len(set(a) & set(b))))
    K, v = kernel(words), np.arange(4.0)[:, None]
    np.testing.assert_allclose(tiles.symmetric_product(kernel.pairs(words), v), K @ v)
    np.testing.assert_allclose(tiles.product(Precomputed().pairs(K[:, :3]), v[:3]), K[:, :3] @ v[:3])
    np.testing.assert_allclose(tiles.adjoint(Precomputed().pairs(K[:, :3]), v), K[:, :3].T @ v)


def test_tiles_and_their_slabs_are_of_the_sizes_that_were_measured() -> None:
    assert [tiles.side(k, 4) for k in (1, 10, 24, 1000)] == [352, 304, 256, 256]
    assert [tiles.side(k, 8) for k in (1, 10, 24, 1000)] == [256, 256, 256, 256]
    for k in range(1, tiles.NARROW):
        slabs = tiles._slabs(256, 250, k)
        assert [slab.start for slab in slabs[1:]] == [slab.stop for slab in slabs[:-1]]
        assert (slabs[0].start, slabs[-1].stop) == (0, 256)
        # heights are multiples of 16: a little above the bound at worst
        assert all((slab.stop - slab.start - 16) * 250 * k < tiles.FLOPS for slab in slabs)
    assert tiles._slabs(256, 250, tiles.NARROW) == [slice(0, 256)]
