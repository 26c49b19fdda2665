"""The genotype operator beyond the contract of all operators: samples far apart, few samples, large Gram matrices."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gramian.operators import GenotypeOperator, genotype
from gramian.sources.plink import Genotypes


def standardised(G: np.ndarray) -> np.ndarray:
    """Samples × SNPs less their means, 0 where missing, by plain arithmetic."""
    seen = G >= 0
    mean = np.where(seen, G, 0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    return np.where(seen, G - mean[:, None], 0.0).T


def peak(act: Callable[[], Any]) -> tuple[Any, int]:
    """What came out, and the most memory it took on the way."""
    tracemalloc.start()
    try:
        return act(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rows_of_samples_far_apart_are_decoded_alone() -> None:
    G = np.random.default_rng(0).integers(-1, 3, (3000, 4000)).astype(np.int8)
    kept = [3, 1999, 3998]
    A = GenotypeOperator(Genotypes.from_calls(G).select(samples=kept))
    rows, used = peak(lambda: [block for _, _, block in A.rows()])
    np.testing.assert_allclose(np.concatenate(rows), standardised(G[:, kept]), atol=1e-6)
    assert used < 2**24  # everybody between them decoded is 48 MB


def test_few_samples_need_few_tables() -> None:
    G = np.random.default_rng(0).integers(-1, 3, (20_000, 5)).astype(np.int8)
    A = GenotypeOperator(Genotypes.from_calls(G), dtype=np.float32)
    Z = standardised(G).astype(np.float64)
    for act, want in ((lambda: A.conormal(np.eye(5, dtype=np.float32)), Z @ Z.T), (A.to_dense, Z)):
        found, used = peak(act)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)
        assert used < 2**25  # a table of all bytes for each SNP is 80 MB


@pytest.mark.parametrize("rows", [4, 7, 1024])
def test_a_gram_matrix_is_mirrored_block_by_block(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    G = np.random.default_rng(0).integers(-1, 3, (50, 22)).astype(np.int8)
    monkeypatch.setattr(genotype, "GRAM_ROWS", rows)
    A = GenotypeOperator(Genotypes.from_calls(G), dtype=np.float64)
    Z, w = standardised(G), np.linspace(-1, 1, 50)
    np.testing.assert_allclose(A.cogram(), Z @ Z.T, atol=1e-12)
    np.testing.assert_allclose(A.cogram(w), Z * w @ Z.T, atol=1e-12)
    np.testing.assert_allclose(A.gram(), Z.T @ Z, atol=1e-12)
    assert np.array_equal(A.cogram(), A.cogram().T)


def test_a_gram_matrix_is_not_copied_over_and_over() -> None:
    G = np.random.default_rng(0).integers(-1, 3, (64, 1500)).astype(np.int8)
    A = GenotypeOperator(Genotypes.from_calls(G), dtype=np.float32)
    _, used = peak(A.cogram)
    assert used < 3 * 8 * 1500**2  # itself in both precisions, and three blocks of 1,024 rows
