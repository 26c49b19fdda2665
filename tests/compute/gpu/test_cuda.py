"""What only a GPU can show: compiled kernels at the sizes they were tuned for, against float64 on the same GPU.

The interpreter has the arithmetic of the kernels, and not the compiler's view of them: tensor cores, pipelines, shared
memory, streams.
"""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from gramian.compute import reference
from gramian.compute.genotypes import pack
from gramian.compute.gpu import cholesky, dense, genotypes, tiles, uploads
from gramian.kernels import Gaussian, Kernel, Laplacian, Matern, Polynomial, Sigmoid
from gramian.operators import DeviceGenotypeOperator
from gramian.sources import DenseSource
from gramian.sources.devices import StreamedSource
from gramian.sources.plink import Genotypes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

MODES = {"fast": ("float32", 1e-3), "accurate": ("float32", None), "double": ("float64", None)}
BOUNDS = {"fast": 5e-4, "accurate": 2e-6, "double": 1e-13}
GPU = torch.device("cuda", 0)


def normal(*shape: int, seed: int = 0, dtype: Any = torch.float64) -> Any:
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(GPU, dtype)


def gaussian(X: Any, Z: Any, gamma: float) -> Any:
    """exp(−γ|x − z|²) from differences, in float64."""
    squares = torch.cdist(X.double(), Z.double(), compute_mode="donot_use_mm_for_euclid_dist").square()
    return torch.exp(-gamma * squares)


def error(found: Any, want: Any) -> float:
    """The largest error of a column, relative to its length."""
    lost = torch.linalg.vector_norm(found.double() - want, dim=0)
    return float((lost / torch.linalg.vector_norm(want, dim=0)).max())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("d", [3, 20, 100, 1024])
def test_cuda_gaussian_products(d: int, mode: str) -> None:
    name, tolerance = MODES[mode]
    dtype, n, m = getattr(torch, name), 1500, 1100
    X, Z = normal(n, d, dtype=dtype), normal(m, d, seed=1, dtype=dtype)
    want = gaussian(X, Z, 0.5 / d)
    K = tiles.prepare(Gaussian(0.5 / d).formula(d), X, Z, dtype=name, tolerance=tolerance)
    assert K.error <= BOUNDS[mode]
    for k in (1, 3, 40):
        V = normal(m, k, seed=2, dtype=dtype).abs()
        assert error(tiles.product(K, V), want @ V.double()) <= K.error
    U = normal(n, 3, seed=3, dtype=dtype).abs()
    assert error(tiles.adjoint(K, U), want.T @ U.double()) <= K.error
    bound = 1e-13 if mode == "double" else 2e-6
    torch.testing.assert_close(tiles.dense(K).double(), want, rtol=0, atol=bound)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("d", [20, 1024])
def test_cuda_symmetric_products_of_many_rows(d: int, mode: str) -> None:
    """So many that a tile serves twice; some rows are checked."""
    name, tolerance = MODES[mode]
    dtype, n = getattr(torch, name), 2**16 + 77
    X, v = normal(n, d, dtype=dtype), normal(n, 1, seed=2, dtype=dtype).abs()
    K = tiles.prepare(Gaussian(0.5 / d).formula(d), X, dtype=name, tolerance=tolerance)
    found, some = tiles.symmetric_product(K, v), torch.arange(0, n, 1301, device=GPU)
    want = torch.cat([gaussian(X[i : i + 1], X, 0.5 / d) @ v.double() for i in some.tolist()])
    assert error(found[some], want) <= K.error


@pytest.mark.parametrize(
    "kernel", [Laplacian(0.05), Matern(0.5, 4.0), Matern(2.5, 4.0), Polynomial(3), Sigmoid(0.01, -0.3)], ids=repr
)
def test_cuda_other_kernels(kernel: Kernel) -> None:
    X, Z, V = normal(700, 20), normal(300, 20, seed=1), normal(300, 3, seed=2).abs()
    for mode, (name, tolerance) in MODES.items():
        x, z, v = (A.to(getattr(torch, name)) for A in (X, Z, V))
        exact = torch.from_numpy(kernel(x.double().cpu().numpy(), z.double().cpu().numpy())).to(GPU)
        K = tiles.prepare(kernel.formula(20), x, z, dtype=name, tolerance=tolerance)
        assert error(tiles.product(K, v), exact @ v.double()) <= K.error <= BOUNDS[mode]


def test_cuda_blocks_whose_last_entry_is_beyond_two_to_the_31() -> None:
    """Offsets of 32 bits would turn negative and write elsewhere."""
    X, Z = normal(2**17 + 5, 2, dtype=torch.float32), normal(2**14 + 100, 2, seed=1, dtype=torch.float32)
    nbytes = 4 * len(X) * len(Z)
    if torch.cuda.mem_get_info()[0] < 1.5 * nbytes:
        pytest.skip(f"the GPU has less than {1.5 * nbytes:.0f} bytes free")
    K = tiles.dense(tiles.prepare(Gaussian(0.3).formula(2), X, Z, dtype="float32"))
    assert K.numel() > 2**31
    rows, columns = slice(-200, None), slice(-300, None)
    assert error(K[rows, columns], gaussian(X[rows], Z[columns], 0.3)) < 2e-6
    del K
    torch.cuda.empty_cache()


LINES = ((1.0, 0.0), (0.0, 1.0))  # copies of the allele, and whether a genotype was seen


@pytest.mark.parametrize("mode", ["fast", "accurate", "double"])
@pytest.mark.parametrize("columns", [1, 24, 40])
def test_cuda_genotype_products(mode: str, columns: int) -> None:
    p, width = 2500, 1300
    made = torch.randint(0, 256, (p, width), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    packed = uploads.pad_rows(made.to(GPU))
    copies, seen = (genotypes.decode(packed, torch.tensor([pair] * p, device=GPU), torch.float64) for pair in LINES)
    mean, slope = copies.sum(dim=1) / seen.sum(dim=1), normal(p).abs() + 0.5
    line = torch.stack([slope, -slope * mean], dim=1)  # centred, as they are multiplied
    Z = genotypes.decode(packed, line, torch.float64)
    dtype = torch.float64 if mode == "double" else torch.float32
    U, W = normal(4 * width, columns, seed=2, dtype=dtype), normal(p, columns, seed=3, dtype=dtype)
    bound = {"fast": 5e-4, "accurate": 2e-6, "double": 1e-13}[mode]
    assert error(genotypes.adjoint(packed, line, U, mode=mode), Z @ U.double()) <= bound
    assert error(genotypes.product(packed, line, W, mode=mode), Z.T @ W.double()) <= bound


@pytest.mark.parametrize("power", [1, 3, 5])
def test_cuda_columns_with_peaks(power: int) -> None:
    """Normal numbers to the fifth power reach 150 times their root mean square."""
    rng = np.random.default_rng(3)
    G = rng.binomial(2, rng.uniform(0.05, 0.5, (64, 1)), (64, 200_000)).astype(np.int8)
    source = Genotypes.from_packed(torch.from_numpy(pack(G)).to(GPU), G.shape[1])
    A = DeviceGenotypeOperator(source, device=GPU, dtype=np.float32)
    U = normal(G.shape[1], 3, dtype=torch.float32) ** power
    U -= U.mean(dim=0)
    Z = torch.from_numpy(G - G.mean(axis=1, keepdims=True)).to(GPU)
    assert error(A.rmatmat(U), Z @ U.double()) <= 2e-6


def test_cuda_streamed_bytes_are_not_overwritten_before_they_were_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on each block takes longer than the next two copies."""
    monkeypatch.setattr(uploads, "BUFFER", 2**20)
    p, width = 4000, 4099
    rows = np.random.default_rng(0).integers(0, 256, (p, width), dtype=np.uint8)
    uploader, A, sums = (
        uploads.Uploader(width, GPU, p, padded=True),
        normal(3000, 3000, dtype=torch.float32),
        [],
    )
    for _ in range(2):  # the second pass finds the buffers of the first
        for _, _, block in uploader(uploader.cut(p, lambda a, b, out: np.copyto(out, rows[a:b]))):
            for _ in range(5):
                A = A / torch.linalg.matrix_norm(A) @ A
            sums.append(block.sum(dim=1, dtype=torch.int64))
    assert np.array_equal(torch.cat(sums).cpu().numpy(), np.tile(rows.sum(axis=1, dtype=np.int64), 2))
    whole = uploads.upload(lambda a, b, out: np.copyto(out, rows[a:b]), p, width, GPU)
    assert np.array_equal(whole.cpu().numpy(), rows)


def test_cuda_blocks_of_rows_are_not_written_over_what_is_still_read() -> None:
    """Memory that was given back is still read by what was queued before: the first copies wait for that."""
    X, A, sums = np.random.default_rng(0).standard_normal((4000, 1000)), normal(3000, 3000, dtype=torch.float32), []
    stream = StreamedSource(DenseSource(X), GPU)
    for _ in range(3):
        before = [torch.ones((500, 1000), dtype=torch.float64, device=GPU) for _ in range(2)]
        for _ in range(30):
            A = A / torch.linalg.matrix_norm(A) @ A
        ones = [tensor.sum() for tensor in before]
        del before
        sums.append(sum(block.values.sum(dim=0) for block in stream.blocks(500)))
        assert [float(one) for one in ones] == [500_000.0] * 2
    for total in sums:
        np.testing.assert_allclose(total.cpu().numpy(), X.sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 20, 200])
def test_cuda_sums_of_dense_rows(p: int, weighted: bool) -> None:
    X = np.random.default_rng(p).standard_normal((30_007, p)).astype(np.float32) + 3
    w = np.random.default_rng(1).uniform(0, 2, len(X)) if weighted else None
    origin, like = np.full((1, p), 2.5), torch.zeros((1, 1), dtype=torch.float64, device=GPU)
    want = reference.scatter(X.astype(np.float64), w, np.zeros((1, 1)), origin)
    there = [None if x is None else torch.from_numpy(x).to(GPU) for x in (X, w, origin)]
    for found, expected in zip(dense.scatter(there[0], there[1], like, there[2]), want, strict=True):
        np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-11, atol=1e-11 * np.abs(want[1]).max())
    V, U = normal(p, 3, dtype=torch.float32), normal(len(X), 3, seed=1, dtype=torch.float32)
    D = there[0].double() - 2.5
    shift = there[2].float()
    assert error(dense.product(there[0], V, shift), D @ V.double()) < 2e-6
    assert error(dense.adjoint(there[0], U, shift), D.T @ U.double()) < 1e-4  # sums of signs, which cancel


@pytest.mark.parametrize(("name", "bound"), [("float64", 1e-11), ("float32", 1e-4)])
def test_cuda_cholesky_of_many_blocks(name: str, bound: float) -> None:
    n = 1500
    X, B = normal(n, 4), normal(n, 3, seed=1)
    K = gaussian(X, X, 0.3)
    L = cholesky.BlockCholesky(n, lambda i, j: K[i, j], 1.0, device=GPU, dtype=getattr(torch, name), block=256)
    found = L.solve(B).double()
    assert error(K @ found + found, B) <= bound


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two CUDA devices")
def test_cuda_tensors_of_another_gpu_than_the_current_one() -> None:
    other = torch.device("cuda", (torch.cuda.current_device() + 1) % torch.cuda.device_count())
    X = normal(500, 5).to(other)
    K = tiles.prepare(Gaussian(0.3).formula(5), X, dtype="float64")
    want = gaussian(X, X, 0.3).sum(dim=1, keepdim=True)
    assert error(tiles.product(K, torch.ones((500, 1), device=other)), want) < 1e-12
