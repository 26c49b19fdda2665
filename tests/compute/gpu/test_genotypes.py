"""Packed genotypes on a device against arithmetic in float64 on unpacked ones: Triton's kernels, and plain torch."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.compute import genotypes as host
from gramian.operators import DeviceGenotypeOperator, GenotypeOperator
from gramian.sources.plink import Genotypes

torch = pytest.importorskip("torch", reason="torch is not installed")
from gramian.compute.gpu import genotypes as loops
from gramian.compute.gpu import genotypes as tensor
from gramian.compute.gpu import launch

INTERPRETED = launch._has_triton() and not torch.cuda.is_available()
has_triton = pytest.mark.skipif(not INTERPRETED, reason="Triton is not installed, or compiles for the GPU here")
TILES = tuple(tensor.ADJOINT.values())  # before tests shrink them
WAYS = [pytest.param("triton", marks=has_triton), "torch"]
LIMITS = {"fast": 5e-4, "accurate": 2e-6, "double": 1e-14}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles so small that a few hundred samples and SNPs are more than one of each, and several sums."""
    if torch.cuda.is_available():
        return  # a GPU is tested with the tiles it works with
    for C in (16, 32, 64, 128):
        monkeypatch.setitem(tensor.ADJOINT, C, tensor.Tiles(16, 16, 4, 1))
        monkeypatch.setitem(tensor.PRODUCT, C, tensor.Tiles(16, 16, 4, 1))
    monkeypatch.setattr(tensor, "PART_BYTES", 32)
    monkeypatch.setattr(tensor, "PART_SNPS", 32)


def way(name: str) -> Any:
    return launch.interpret_kernels() if name == "triton" else nullcontext()


def table(p: int, n: int, missing: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    G = rng.binomial(2, rng.uniform(0.05, 0.5, (p, 1)), (p, n))
    return np.where(rng.random((p, n)) < missing, -1, G)


def standard(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a, b) of each SNP, and Z (SNPs × samples)."""
    seen = G >= 0
    count = np.maximum(seen.sum(axis=1), 1)
    mean = np.where(seen, G, 0).sum(axis=1) / count
    scale = np.sqrt(np.maximum(mean * (1 - mean / 2), 0.05))
    line = np.stack([1 / scale, -mean / scale], axis=1)
    return line, np.where(seen, line[:, :1] * G + line[:, 1:], 0.0)


def relative(found: Any, want: np.ndarray) -> float:
    """The largest error of a column, relative to its length."""
    error = np.linalg.norm(np.asarray(found) - want, axis=0)
    return float(np.max(error / np.linalg.norm(want, axis=0)))


def packed(G: np.ndarray, pad: int = 0) -> Any:
    """Packed genotypes, each row followed by so many bytes that do not count."""
    bytes_ = host.pack(G)
    whole = np.full((len(G), bytes_.shape[1] + pad), 0xFF, dtype=np.uint8)
    whole[:, : bytes_.shape[1]] = bytes_
    return torch.from_numpy(whole)[:, : bytes_.shape[1]]


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("mode", "columns"), [("accurate", 3), ("accurate", 24), ("fast", 3), ("double", 3)])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_products_both_ways(name: str, mode: str, columns: int, missing: float) -> None:
    p, n = 37, 150  # neither a multiple of a tile, nor of four; two sums of each
    G = table(p, n, missing)
    line, Z = standard(G)
    rng = np.random.default_rng(1)
    U, W = rng.standard_normal((n, columns)) * [10.0**i for i in range(columns)], rng.standard_normal((p, columns))
    dtype = torch.float64 if mode == "double" else torch.float32
    options = {"mode": mode, "missing": missing > 0}
    with way(name):
        left = loops.adjoint(packed(G), torch.from_numpy(line), torch.from_numpy(U).to(dtype), **options)
        right = loops.product(packed(G), torch.from_numpy(line), torch.from_numpy(W).to(dtype), **options)
    assert left.dtype == right.dtype == torch.float64
    assert relative(left, Z @ U) < LIMITS[mode]
    assert relative(right[:n], Z.T @ W) < LIMITS[mode]


@has_triton
@pytest.mark.parametrize("columns", [1, 33, 64, 70])
def test_any_number_of_columns(columns: int) -> None:
    G = table(17, 40, 0.1)
    line, Z = standard(G)
    rng = np.random.default_rng(2)
    U, W = rng.standard_normal((40, columns)), rng.standard_normal((17, columns))
    with launch.interpret_kernels():
        left = loops.adjoint(packed(G), torch.from_numpy(line), torch.from_numpy(U).float())
        right = loops.product(packed(G), torch.from_numpy(line), torch.from_numpy(W).float())
    assert relative(left, Z @ U) < 2e-6
    assert relative(right, Z.T @ W) < 2e-6


@pytest.mark.parametrize("name", WAYS)
def test_padded_rows_and_samples_that_do_not_count(name: str) -> None:
    G = table(20, 101, 0.1)
    line, Z = standard(G)
    kept = np.arange(101) % 3 != 1
    U = np.where(kept[:, None], np.random.default_rng(3).standard_normal((101, 2)), 0.0)
    start = torch.ones((104, 2), dtype=torch.float64)
    with way(name):
        left = loops.adjoint(packed(G, pad=6), torch.from_numpy(line), torch.from_numpy(U).float())
        right = loops.product(packed(G, pad=6), torch.from_numpy(line), left, out=start)
    assert relative(left, Z @ U) < 2e-6
    assert right is start
    assert relative(right[:101] - 1, Z.T @ (Z @ U)) < 4e-6


@pytest.mark.parametrize("name", WAYS)
def test_bytes_that_do_not_lie_one_after_another(name: str) -> None:
    G = table(20, 101, 0.1)
    line, Z = standard(G)
    U = np.random.default_rng(3).standard_normal((101, 2))
    by_columns = packed(G).T.contiguous().T
    assert by_columns.stride(1) == 20
    with way(name):
        left = loops.adjoint(by_columns, torch.from_numpy(line), torch.from_numpy(U).float())
        right = loops.product(by_columns, torch.from_numpy(line), left)
        by_snp, by_sample = loops.snp_counts(by_columns, None, 101), loops.sample_counts(by_columns)
    assert relative(left, Z @ U) < 2e-6
    assert relative(right[:101], Z.T @ (Z @ U)) < 4e-6
    assert np.array_equal(by_snp, [[np.sum(row == g) for g in (2, 1, 0, -1)] for row in G])
    assert np.array_equal(by_sample[:101], [[np.sum(row == g) for g in (2, 1, 0, -1)] for row in G.T])


@pytest.mark.parametrize("setting", ["allow_tf32", "fp32_precision"])
def test_float32_products_keep_their_digits_however_torch_is_set(setting: str) -> None:
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, setting):
        pytest.skip(f"this torch has no {setting}")
    loose, exact = (True, False) if setting == "allow_tf32" else ("tf32", "ieee")
    try:
        setattr(matmul, setting, loose)
        found = loops.multiply(torch.full((1, 1), 1 + 2**-20), torch.ones((1, 1)))
        assert getattr(matmul, setting) == loose
    finally:
        setattr(matmul, setting, exact)
    assert float(found) == 1 + 2**-20


@pytest.mark.parametrize("name", WAYS)
def test_flat_lines_count_calls_and_zero_lines_nothing(name: str) -> None:
    G = table(20, 50, 0.2)
    line = np.tile([0.0, 1.0], (20, 1))
    line[4] = 0.0
    seen = (G >= 0) * line[:, 1:]
    with way(name):
        left = loops.adjoint(packed(G), torch.from_numpy(line), torch.ones((50, 1)))
        right = loops.product(packed(G), torch.from_numpy(line), torch.ones((20, 1)))
    np.testing.assert_allclose(left[:, 0], seen.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(right[:50, 0], seen.sum(axis=0), atol=1e-5)


@has_triton
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_columns_of_any_size_keep_their_digits(size: float) -> None:
    G = table(20, 60, 0.1)
    line, Z = standard(G)
    U = size * np.random.default_rng(4).standard_normal((60, 3)) ** 5
    U[:, 1] = 0.0
    with launch.interpret_kernels():
        left = loops.adjoint(packed(G), torch.from_numpy(line), torch.from_numpy(U).float())
    assert np.all(np.asarray(left)[:, 1] == 0)
    assert relative(np.asarray(left)[:, [0, 2]], (Z @ U)[:, [0, 2]]) < 2e-6


@has_triton
def test_a_common_part_takes_no_digits_from_the_rest() -> None:
    """Columns that are nearly constant: what is large and common cancels, sum by sum."""
    G = table(40, 400, 0.0)
    line, Z = standard(G)
    U = 1 + 1e-2 * np.random.default_rng(5).standard_normal((400, 2))
    with launch.interpret_kernels():
        left = loops.adjoint(packed(G), torch.from_numpy(line), torch.from_numpy(U).float(), missing=False)
    given = U.astype(np.float32)
    # of what is multiplied: at most half of the second grid, 2⁻²² of entries that are all alike, and float32's own sums
    assert np.max(np.abs(np.asarray(left) - Z @ given) / (np.abs(Z) @ given)) < 2**-22 + 2e-7


@has_triton
def test_the_operator_takes_the_common_part_out_first() -> None:
    source = Genotypes.from_calls(table(40, 200, 0.1))
    A = DeviceGenotypeOperator(source, device=torch.device("cpu"))
    U = 1 + 1e-3 * torch.from_numpy(np.random.default_rng(6).standard_normal((200, 2))).float()
    want = GenotypeOperator(source, dtype=np.float64).rmatmat(U.double().numpy())
    with launch.interpret_kernels():
        found = A.rmatmat(U)
        twice = A.conormal(U)
        assert "fp16 tensor cores, two parts" in A.precision
    assert relative(found, want) < 2e-4  # 1e-3 of what is multiplied is left
    assert relative(twice, GenotypeOperator(source, dtype=np.float64).matmat(want)) < 2e-4
    assert A.passes == 3  # and one for the sums of the SNPs


def test_what_is_not_finite_is_not_hidden() -> None:
    G = table(5, 9, 0.0)
    line, _ = standard(G)
    U = torch.ones((9, 1))
    U[3] = torch.inf
    with launch.interpret_kernels() if INTERPRETED else nullcontext(), np.errstate(invalid="ignore"):
        found = loops.adjoint(packed(G), torch.from_numpy(line), U)
    assert not torch.isfinite(found).all()


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("subset", [False, True])
def test_counts_agree_with_those_of_the_host(name: str, subset: bool) -> None:
    p, n = 29, 1030
    G = table(p, n, 0.1)
    kept = np.flatnonzero(np.arange(n) % 5 != 2) if subset else np.arange(n)
    bytes_ = host.pack(G)
    want = host.snp_counts(bytes_, host.sample_mask(kept, bytes_.shape[1]), len(kept))
    mask = torch.zeros(4 * bytes_.shape[1], dtype=torch.bool)
    mask[torch.from_numpy(kept)] = True
    with way(name):
        by_snp = loops.snp_counts(packed(G, pad=2), mask if subset else None, len(kept))
        by_sample = loops.sample_counts(packed(G, pad=2))
    assert np.array_equal(by_snp, want)
    assert np.array_equal(by_sample, host.sample_counts(bytes_))


@pytest.mark.parametrize("name", WAYS)
def test_counters_do_not_overflow(name: str) -> None:
    with way(name):
        by_snp = loops.snp_counts(packed(np.full((1, 4 * 256 * 64), 1)), None, 4 * 256 * 64)
        by_sample = loops.sample_counts(packed(np.full((1100, 3), -1)))
    assert by_snp.tolist() == [[0, 4 * 256 * 64, 0, 0]]
    assert by_sample[:3].tolist() == [[0, 0, 0, 1100]] * 3


@settings(max_examples=10, deadline=None)
@given(p=st.integers(1, 20), n=st.integers(1, 70), seed=st.integers(0, 99))
def test_plain_torch_decodes_as_the_host_does(p: int, n: int, seed: int) -> None:
    G = table(p, n, 0.2, seed)
    line, Z = standard(G)
    found = loops.decode(packed(G), torch.from_numpy(line), torch.float64)[:, :n]
    np.testing.assert_allclose(found, Z, atol=1e-14)


def test_the_mode_follows_the_tolerance() -> None:
    modes = [loops.choose_mode(torch.float32, tol) for tol in (None, 1e-6, 1e-4, 1.9e-3, 2e-3)]
    assert modes == ["accurate", "accurate", "accurate", "accurate", "fast"]
    assert loops.choose_mode(torch.float64, 0.1) == "double"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_products_on_cuda(missing: float) -> None:
    G = table(3001, 20_003, missing)
    line, Z = standard(G)
    U = np.random.default_rng(6).standard_normal((20_003, 24))
    on = packed(G, pad=11).cuda()
    left = loops.adjoint(on, torch.from_numpy(line).cuda(), torch.from_numpy(U).float().cuda(), missing=missing > 0)
    right = loops.product(on, torch.from_numpy(line).cuda(), left, missing=missing > 0)[:20_003]
    assert relative(left.cpu(), Z @ U) < 2e-6
    assert relative(right.cpu(), Z.T @ (Z @ U)) < 4e-6


@pytest.mark.parametrize("name", WAYS)
def test_columns_with_entries_that_stand_out(name: str) -> None:
    G = table(40, 203, 0.05)
    source = Genotypes.from_calls(G)
    U = np.random.default_rng(1).standard_normal((203, 3)).astype(np.float32)
    U[7, 1], U[90, 2] = 1e3, -3e4
    Z = GenotypeOperator(source, dtype=np.float64).to_dense()
    with way(name):
        A, V = DeviceGenotypeOperator(source, device=torch.device("cpu"), dtype=np.float32), torch.from_numpy(U)
        found, both, levels = A.rmatmat(V), A.conormal(V), A._levels(V)
    assert len(levels) == (2 if name == "triton" else 1)
    np.testing.assert_allclose(sum(levels).numpy(), U, rtol=1e-6)
    assert relative(found, Z.T @ U.astype(np.float64)) < 2e-6
    assert relative(both, Z @ (Z.T @ U.astype(np.float64))) < 2e-6


@has_triton
@pytest.mark.parametrize("power", [1, 3, 5])
def test_sums_of_a_tile_are_exact_however_unequal_the_entries(power: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole multiples of a grid, so few that float32 holds every sum of them: no rounding can touch them."""
    U = torch.from_numpy(np.random.default_rng(2).standard_normal((5000, 3)) ** power)
    factor = tensor.samples_factor(U, 1250, "accurate")
    rest = U * factor.scale
    tile = 4 * max(tiles.bytes for tiles in TILES)
    for part, grid in zip((factor.parts[:5000, :3], factor.parts[:5000, 3:6]), tensor.GRIDS, strict=True):
        steps = part.double() / grid
        assert torch.equal(steps, steps.round())
        assert float(steps.abs().max()) <= 2**11
        assert 4 * 2 * tile * float(steps.abs().max()) < 2**24  # levels are multiples of a quarter, at most 2
        rest = rest - part.double()
    assert float(rest.abs().max()) <= tensor.GRIDS[-1]
    assert float((rest / factor.scale).abs().max() / U.abs().max()) <= 2**-22
