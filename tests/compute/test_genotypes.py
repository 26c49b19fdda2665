"""The hot loops on packed genotypes against arithmetic a genotype at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gramian.compute import genotypes as loops
from gramian.compute.bits import compiled_loops

TABLES = st.tuples(st.integers(1, 7), st.integers(1, 21)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(-1, 2))
)


def naive_decode(packed: np.ndarray, n: int) -> np.ndarray:
    """Bit by bit, as PLINK's description of the format has it."""
    meaning = {0b00: 2, 0b01: -1, 0b10: 1, 0b11: 0}
    return np.array([[meaning[(int(row[i // 4]) >> (2 * (i % 4))) & 3] for i in range(n)] for row in packed])


def test_bytes_mean_what_the_format_says() -> None:
    # the example of PLINK's own description: 00 two A1, 01 missing, 10 heterozygous, 11 two A2, lowest bits first
    assert loops.calls(np.array([[0xDC, 0x0F]], dtype=np.uint8), 6).tolist() == [[2, 0, -1, 0, 0, 0]]


@given(st.binary(min_size=1, max_size=40), st.integers(1, 5))
def test_every_byte_is_decoded_as_the_naive_twin_does(raw: bytes, width: int) -> None:
    packed = np.frombuffer(raw, dtype=np.uint8)
    packed = packed[: len(packed) // width * width].reshape(-1, width)
    assert np.array_equal(loops.calls(packed, 4 * width), naive_decode(packed, 4 * width).reshape(-1, 4 * width))


@given(TABLES)
def test_packing_and_decoding_are_inverse(G: np.ndarray) -> None:
    packed = loops.pack(G)
    assert packed.shape == (G.shape[0], -(-G.shape[1] // 4))
    assert np.array_equal(loops.calls(packed, G.shape[1]), G)


@given(TABLES, st.sampled_from(["int8", "int64", "float32"]), st.sampled_from("CF"))
def test_packed_bits_are_those_of_the_format(G: np.ndarray, dtype: str, order: str) -> None:
    packed = loops.pack(np.asarray(G, dtype=dtype, order=order))
    code = {2: 0b00, -1: 0b01, 1: 0b10, 0: 0b11}
    want = np.zeros((len(G), -(-G.shape[1] // 4)), dtype=np.uint8)  # what no sample fills stays 0, as PLINK wants it
    for (i, j), copies in np.ndenumerate(G):
        want[i, j // 4] |= code[int(copies)] << 2 * (j % 4)
    assert packed.dtype == np.uint8
    assert packed.flags.c_contiguous
    assert np.array_equal(packed, want)


def test_nothing_packs_to_nothing() -> None:
    assert loops.pack(np.zeros((2, 0), dtype=np.int8)).shape == (2, 0)
    assert loops.pack(np.zeros((0, 9), dtype=np.int8)).shape == (0, 3)


@pytest.mark.parametrize("wrong", [[[3]], [[-2]], [[0.5]], [[300]], [[np.nan]], [[257]]])
def test_what_is_no_genotype_is_not_packed(wrong: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="0, 1 or 2 copies"):
        loops.pack(wrong)


@given(TABLES, st.randoms(use_true_random=False))
def test_counts_agree_with_counting(G: np.ndarray, random: object) -> None:
    n = G.shape[1]
    kept = np.flatnonzero([random.random() < 0.7 for _ in range(n)])  # type: ignore[attr-defined]
    packed = loops.pack(G)
    mask = loops.sample_mask(kept, packed.shape[1])
    want = np.stack([(G[:, kept] == value).sum(axis=1) for value in (2, 1, 0, -1)], axis=1)
    assert np.array_equal(loops.snp_counts(packed, mask, len(kept)), want)
    by_sample = np.stack([(value == G).sum(axis=0) for value in (2, 1, 0, -1)], axis=1)
    assert np.array_equal(loops.sample_counts(packed)[:n], by_sample)


@pytest.mark.parametrize(("p", "n", "kept"), [(1, 1, 1), (300, 7, 5), (40, 261, 200), (256, 2051, 2051)])
def test_compiled_loops_count_the_same(p: int, n: int, kept: int) -> None:
    pytest.importorskip("numba", reason="numba is not installed (gramian[compiled])")
    compiled = compiled_loops(float("inf"))
    rng = np.random.default_rng(n)
    packed = loops.pack(rng.integers(-1, 3, (p, n)))
    mask = loops.sample_mask(np.sort(rng.choice(n, kept, replace=False)), packed.shape[1])
    for found, plain in zip(
        loops.block_counts(packed, mask, kept, compiled), loops.block_counts(packed, mask, kept), strict=True
    ):
        assert np.array_equal(found, plain)


def test_counters_of_a_byte_do_not_overflow() -> None:
    for value, column in ((2, 0), (1, 1), (0, 2), (-1, 3)):
        found = loops.sample_counts(loops.pack(np.full((1000, 5), value)))[:5]
        assert np.array_equal(found[:, column], np.full(5, 1000))
        assert found.sum() == 5000


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(G=TABLES)
def test_standardised_genotypes_agree_with_arithmetic(G: np.ndarray, dtype: str) -> None:
    rng = np.random.default_rng(0)
    line = rng.normal(size=(len(G), 2))
    packed = loops.pack(G)
    decode = loops.Decoder(len(G), packed.shape[1], dtype)
    Z = decode(packed, line)[:, : G.shape[1]]
    want = np.where(G < 0, 0.0, line[:, :1] * G + line[:, 1:])
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z, want, atol=8 * np.finfo(dtype).eps, rtol=0)
