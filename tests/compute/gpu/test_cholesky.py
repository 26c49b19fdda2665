"""Cholesky by block columns against NumPy's: sizes around the edges of blocks, what is stored and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from gramian.compute.gpu.cholesky import BlockCholesky, BlockNotDefinite, block_size, nbytes

CPU = torch.device("cpu")


def definite(n: int, seed: int = 0) -> np.ndarray:
    F = np.random.default_rng(seed).standard_normal((n, n + 2))
    return np.asarray(F @ F.T / (n + 2))


def factor(A: np.ndarray, shift: float, block: int, device: Any = CPU, dtype: Any = torch.float64) -> BlockCholesky:
    T = torch.from_numpy(A).to(device)
    return BlockCholesky(len(A), lambda rows, columns: T[rows, columns], shift, device=device, dtype=dtype, block=block)


def lower(L: BlockCholesky) -> np.ndarray:
    """The whole of L from its block columns."""
    out = np.zeros((L.n, L.n))
    for (start, stop), panel in zip(L.spans, L.panels, strict=True):
        out[start:, start:stop] = panel.cpu().numpy()
    return out


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 15, 16, 17, 31, 64])
def test_factor_and_solutions_are_numpys(n: int) -> None:
    A, B = definite(n), np.random.default_rng(1).standard_normal((n, 3))
    L = factor(A, 0.3, block=8)
    M = A + 0.3 * np.eye(n)
    assert_allclose(lower(L), np.linalg.cholesky(M), atol=1e-13)
    assert_allclose(L.solve(torch.from_numpy(B)).numpy(), np.linalg.solve(M, B), atol=1e-12)


@given(n=st.integers(1, 40), block=st.integers(1, 45), t=st.integers(0, 4), seed=st.integers(0, 99))
def test_any_block_gives_the_same_factor(n: int, block: int, t: int, seed: int) -> None:
    A, B = definite(n, seed), np.random.default_rng(seed).standard_normal((n, t))
    L = factor(A, 1.0, block)
    assert_allclose(lower(L), np.linalg.cholesky(A + np.eye(n)), atol=1e-13)
    assert_allclose((A + np.eye(n)) @ L.solve(torch.from_numpy(B)).numpy(), B, atol=1e-12)


def test_in_single_precision_as_good_as_that_allows() -> None:
    A, B = definite(50), np.ones((50, 1))
    L = factor(A, 1.0, 16, dtype=torch.float32)
    X = L.solve(torch.from_numpy(B))
    assert X.dtype == torch.float32
    assert_allclose(X.numpy(), np.linalg.solve(A + np.eye(50), B), atol=2e-6)


def test_right_hand_sides_are_not_written_to() -> None:
    B = torch.ones((9, 2), dtype=torch.float64)
    factor(definite(9), 1.0, 4).solve(B)
    assert bool((B == 1.0).all())


def test_no_rows_at_all() -> None:
    L = BlockCholesky(0, lambda rows, columns: torch.empty(0), 1.0, device=CPU)
    assert tuple(L.solve(torch.empty((0, 2))).shape) == (0, 2)


def test_each_block_on_or_below_the_diagonal_is_evaluated_once_and_no_other() -> None:
    A, asked = definite(20), np.zeros((20, 20), dtype=int)

    def fill(rows: slice, columns: slice) -> Any:
        asked[rows, columns] += 1
        return torch.from_numpy(A[rows, columns])

    BlockCholesky(20, fill, 1.0, device=CPU, block=8)
    blocks = np.arange(20) // 8
    assert np.array_equal(asked, (blocks[:, None] >= blocks[None, :]).astype(int))


@pytest.mark.parametrize(("n", "block"), [(20, 8), (64, 16), (65, 16), (5, 300)])
def test_it_stores_half_a_matrix_and_says_so_before(n: int, block: int) -> None:
    L = factor(definite(n), 1.0, block)
    stored = sum(panel.numel() for panel in L.panels)
    assert stored <= n * (n + min(block, n)) / 2
    assert 8 * stored <= nbytes(n, 8, block) <= 8 * stored + 40e6  # what cuBLAS works in


def test_the_size_of_blocks_grows_with_the_matrix() -> None:
    assert [block_size(n) for n in (1, 4_095, 8_192, 40_000, 10**6)] == [256, 256, 512, 2048, 4096]
    assert 57e9 < nbytes(120_000) < 61e9  # half of 120,000² numbers in float64, and the blocks on the diagonal


@pytest.mark.parametrize("at", [0, 7, 8, 19])
def test_the_leading_minor_that_is_not_positive_is_named(at: int) -> None:
    A = np.diag(np.where(np.arange(20) == at, -3.0, 2.0))
    with pytest.raises(BlockNotDefinite, match=f"order {at + 1}.*rows {at // 8 * 8} to") as e:
        factor(A, 0.5, 8)
    assert e.value.minor == at + 1
    assert e.value.size == 2.5
    assert isinstance(e.value, np.linalg.LinAlgError)


def test_what_is_not_finite_is_refused() -> None:
    A = definite(20)
    A[13, 2] = A[2, 13] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        factor(A, 1.0, 8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("n", [300, 1000, 5000])
def test_on_cuda_within_the_memory_predicted(n: int) -> None:
    device = torch.device("cuda", 0)
    A, B = definite(n), np.ones((n, 1))
    T = torch.from_numpy(A).to(device)
    torch.cuda.empty_cache()
    before, held = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    torch.cuda.reset_peak_memory_stats(device)
    L = BlockCholesky(n, lambda rows, columns: T[rows, columns], 1.0, device=device)
    assert torch.cuda.max_memory_allocated(device) - before <= nbytes(n)
    assert torch.cuda.max_memory_reserved(device) - held <= nbytes(n)
    X = L.solve(torch.from_numpy(B)).cpu().numpy()
    assert_allclose(A @ X + X, B, atol=1e-11)
