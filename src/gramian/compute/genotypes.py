"""Hot loops on 2-bit genotypes: four of them in a byte, decoded where they are multiplied.

A byte holds the genotypes of four samples, the lowest bits first: 00 two copies of allele A1, 01 missing,
10 one copy, 11 none. A look-up table of all 256 bytes turns each into four numbers at once, in less time
than multiplying them takes: a compiled loop is not needed.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.bits import pad_to_words

Bytes = npt.NDArray[np.uint8]
SampleMask = npt.NDArray[np.uint64]
Calls = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int64]

A1_COPIES = np.array([2, -1, 1, 0], dtype=np.int8)  # of the codes 00, 01, 10, 11
SUM = 255  # rows whose bytes may be added before a byte overflows


@cache
def _table() -> npt.NDArray[np.int8]:
    """Copies of A1 of the four genotypes of every byte, −1 where missing."""
    return np.asarray(A1_COPIES[(np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3])


@cache
def _flags() -> npt.NDArray[np.uint32]:
    """For heterozygous, two A2 and missing: the four genotypes of every byte as four bytes, 1 where it is so."""
    codes = (np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3
    found = np.stack([codes == 2, codes == 3, codes == 1]).astype(np.uint8)
    return np.ascontiguousarray(found).view(np.uint32)[:, :, 0]


def calls(packed: Bytes, n: int) -> Calls:
    """Copies of A1 of the first n samples of each row; −1 where missing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.genotypes import calls
    >>> calls(np.array([[0b11_10_01_00]], dtype=np.uint8), 4)
    array([[ 2, -1,  1,  0]], dtype=int8)
    """
    rows, width = packed.shape
    return np.take(_table(), packed, axis=0, mode="clip").reshape(rows, 4 * width)[:, :n]


def pack(copies: npt.ArrayLike) -> Bytes:
    """The bytes of a block of SNPs × samples with 0, 1, 2 copies of A1 and −1 for missing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.genotypes import calls, pack
    >>> calls(pack([[0, 1, 2, -1, 1]]), 5)
    array([[ 0,  1,  2, -1,  1]], dtype=int8)
    """
    given = np.asarray(copies)
    with np.errstate(invalid="ignore"):  # a NaN is refused below, whatever it is cast to
        g = given.astype(np.int8, copy=False)
    n = g.shape[1]
    if not (g is given or np.array_equal(g, given)) or (g.size and not (g.min() >= -1 and g.max() <= 2)):
        raise ValueError("Genotypes are 0, 1 or 2 copies of an allele, and −1 where missing.")
    # the lower bit is set for missing and none, the upper one for one copy and none: 255 is −1 without its sign
    lower = np.take(_spread(), np.packbits(g <= 0, axis=1, bitorder="little"))
    upper = np.take(_spread(), np.packbits(g.view(np.uint8) <= 1, axis=1, bitorder="little"))
    upper <<= 1
    lower |= upper
    return np.ascontiguousarray(lower.view(np.uint8)[:, : -(-n // 4)])


@cache
def _spread() -> npt.NDArray[np.uint16]:
    """For every byte the word with its bits at the even places, 0 between them, the lowest byte first."""
    at = np.arange(8, dtype=np.uint16)
    words = np.sum(((np.arange(256, dtype=np.uint16)[:, None] >> at) & 1) << 2 * at, axis=1)
    return np.asarray(words, dtype="<u2")


def sample_mask(samples: npt.NDArray[np.intp], width: int) -> SampleMask:
    """One bit for each genotype that counts, in rows of ``width`` bytes padded to words."""
    copies = np.full((1, 4 * width), 2, dtype=np.int8)
    copies[0, samples] = 0
    bits = np.asarray(pack(copies) & 0x55, dtype=np.uint8)
    return np.asarray(_words(bits)[0])


def _words(packed: Bytes) -> npt.NDArray[np.uint64]:
    """Rows padded with zeros to whole words."""
    rows, width = packed.shape
    padded = np.zeros((rows, -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = packed
    return padded.view(np.uint64)


def snp_counts(packed: Bytes, mask: SampleMask, n: int) -> Counts:
    """Two A1, heterozygous, two A2 and missing among the n samples of the mask, for each row."""
    words = _words(packed)
    low, high = words & mask, (words >> np.uint64(1)) & mask
    found = [low ^ (low & high), high ^ (low & high), low & high]  # missing, heterozygous, two A2
    missing, one, none = (np.bitwise_count(bits).sum(axis=1, dtype=np.int64) for bits in found)
    return np.stack([n - missing - one - none, one, none, missing], axis=1)


def sample_counts(packed: Bytes) -> Counts:
    """Two A1, heterozygous, two A2 and missing among the rows, for each of the 4·width samples."""
    rows, width = packed.shape
    found = np.zeros((3, 4 * width), dtype=np.int64)
    for start in range(0, rows, SUM):
        part = packed[start : start + SUM]
        for kind, flags in enumerate(_flags()):
            # four counters of a byte in each word, which 255 rows cannot make overflow into one another
            words = np.add.reduce(np.take(flags, part, mode="clip"), axis=0, dtype=np.uint32)
            found[kind] += words.view(np.uint8)
    one, none, missing = found
    return np.stack([rows - one - none - missing, one, none, missing], axis=1)


def block_counts(packed: Bytes, mask: SampleMask, n: int, compiled: ModuleType | None = None) -> tuple[Counts, Counts]:
    """Both of :func:`snp_counts` and :func:`sample_counts`, by compiled loops where they are given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.genotypes import block_counts, pack, sample_mask
    >>> packed = pack([[2, 1, 0, -1], [2, 2, 0, 0]])
    >>> [found.tolist() for found in block_counts(packed, sample_mask(np.arange(4), 1), 4)]
    [[[1, 1, 1, 1], [2, 0, 2, 0]], [[2, 0, 0, 0], [1, 1, 0, 0], [0, 0, 2, 0], [0, 0, 1, 1]]]
    """
    if compiled is None:
        return snp_counts(packed, mask, n), sample_counts(packed)
    (rows, width), words = packed.shape, pad_to_words(packed, compiled.VECTOR)
    kept = np.zeros(words.shape[1], np.uint64)
    kept[: len(mask)] = mask
    by_snp, found = np.empty((rows, 3), np.int64), np.zeros((3, 4, 8 * words.shape[1]), np.int64)
    for start in range(0, rows, SUM):
        bits = np.zeros(found.shape, np.uint8)
        compiled.count_calls(words[start : start + SUM], kept, by_snp[start : start + SUM], *bits)
        found += bits
    by_sample = found[:, :, :width].transpose(0, 2, 1).reshape(3, 4 * width)
    counted = []
    for (low, high, none), of in ((by_snp.T, n), (by_sample, rows)):
        missing, one = low - none, high - none
        counted.append(np.stack([of - missing - one - none, one, none, missing], axis=1))
    return counted[0], counted[1]


class Decoder:
    r"""Standardised genotypes :math:`z = a g + b` of blocks of SNPs, 0 where missing.

    With :math:`a = 1/s` and :math:`b = -\bar g/s` these are :math:`(g - \bar g)/s`. A table per SNP holds z for all
    four genotypes of every byte, so that one look-up decodes, centres, scales and imputes: 0.4 ns a genotype here,
    however many are missing; multiplying by 16 columns and back takes twice that.
    The buffers are used again for every block: one decoder belongs to one thread.

    Parameters
    ----------
    rows, width : int
        Most SNPs in a block, and the bytes of each.
    dtype : dtype
        float32 or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.genotypes import Decoder, pack
    >>> decode = Decoder(1, 1, np.float64)
    >>> decode(pack([[0, 1, 2, -1]]), np.array([[2.0, -2.0]]))
    array([[-2.,  0.,  2.,  0.]])
    """

    def __init__(self, rows: int, width: int, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._copies_and_seen = _basis(self.dtype.name)
        self._tables = np.empty((rows, 1024), self.dtype)
        self._at = np.empty((rows, width), np.intp)
        self._out = np.empty((rows, width, 4), self.dtype)
        self._offset = 256 * np.arange(rows, dtype=np.intp)[:, None]

    def __call__(self, packed: Bytes, line: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The block of shape (SNPs, 4·width), given (a, b) of each SNP; good until the next call."""
        rows, width = packed.shape
        tables = np.dot(line.astype(self.dtype), self._copies_and_seen, out=self._tables[:rows])
        at = np.add(packed, self._offset[:rows], out=self._at[:rows, :width])
        Z = self._out[:rows] if width == self._out.shape[1] else np.empty((rows, width, 4), self.dtype)
        np.take(tables.reshape(-1, 4), at, axis=0, mode="clip", out=Z)
        return Z.reshape(rows, 4 * width)


@cache
def _basis(dtype: str) -> npt.NDArray[Any]:
    """Copies of A1, and whether a genotype was seen, for the four of every byte: tables are sums of the two."""
    codes = (np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3
    seen = codes != 1
    return np.stack([np.where(seen, A1_COPIES[codes], 0), seen]).reshape(2, 1024).astype(dtype)
