"""Counts on packed 2-bit genotypes, exact and without decoding: pairs of SNPs by the bits that they share.

A SNP is three planes of bits, one bit a sample at every second place of its words: who is homozygous, who has two
copies of A1, who was observed. Sums over the samples that two SNPs share are counts of bits of their planes.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

MISSING = np.uint8(0x55)  # a byte of four missing genotypes
HALF = np.uint64(0x5555555555555555)
LONG = 0.5  # seconds of work from which on compiled loops are loaded
PAIRS = 2**17  # words of a plane that are compared together: they stay in a core's cache


def compiled_loops(seconds: float) -> ModuleType | None:
    """The loops of ``gramian.compute.compiled`` for work that takes so long without them, where Numba is installed.

    Numba is the extra ``compiled``. It loads in a quarter of a second, and compiles these loops in three, once on each
    machine: for less than half a second of work, as for all where it is absent, there is nothing.
    """
    return _load_loops() if seconds >= LONG else None


@cache
def _load_loops() -> ModuleType | None:
    if find_spec("numba") is None:
        return None
    try:
        return importlib.import_module("gramian.compute.compiled")
    except ImportError:  # of a Numba that does not know this NumPy
        return None


def pad_to_words(packed: Bytes, multiple: int) -> npt.NDArray[np.uint64]:
    """Rows of bytes as words, a multiple of so many; what is added is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.bits import pad_to_words
    >>> pad_to_words(np.zeros((2, 3), np.uint8), 4).shape
    (2, 4)
    """
    rows, width = packed.shape
    padded = np.full((rows, -(-width // (8 * multiple)) * 8 * multiple), MISSING)
    padded[:, :width] = packed
    return padded.view(np.uint64)


class SharedSums(NamedTuple):
    """Sums over the samples at which both SNPs of a pair were observed, x being +1, 0 or −1 for 2, 1 or 0 copies of A1.

    Attributes
    ----------
    n : ndarray of int64
        How many samples.
    first, second : ndarray of int64
        Σx of either SNP.
    first_squares, second_squares : ndarray of int64
        Σx² of either.
    product : ndarray of int64
        Σx₁x₂.
    """

    n: Integers
    first: Integers
    second: Integers
    first_squares: Integers
    second_squares: Integers
    product: Integers

    def exceed(self, r2: float) -> npt.NDArray[np.bool_]:
        """Whether the squared correlation is above a threshold, by more than rounding; not where one does not vary."""
        covariance = (self.n * self.product - self.first * self.second).astype(np.float64)
        variance = (self.n * self.first_squares - self.first**2).astype(np.float64)
        other = (self.n * self.second_squares - self.second**2).astype(np.float64)
        return np.asarray(covariance * covariance > r2 * (1 + 2.0**-44) * variance * other)


def hide(packed: Bytes, mask: Bytes) -> Bytes:
    """The same genotypes, missing where the mask has no bits.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.bits import hide
    >>> from gramian.compute.genotypes import calls
    >>> calls(hide(np.array([[0b11_10_01_00]], dtype=np.uint8), np.array([0b00_11_11_11], dtype=np.uint8)), 4)
    array([[ 2, -1,  1, -1]], dtype=int8)
    """
    return np.asarray((packed & mask) | (MISSING & ~mask))


def shared_sums(packed: Bytes, first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]) -> SharedSums:
    """Sums over the samples that both rows of each pair (first, second) share, by counting bits.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.bits import shared_sums
    >>> from gramian.compute.genotypes import pack
    >>> packed = pack([[2, 1, 0, -1], [2, 2, 0, 0]])
    >>> [int(value[0]) for value in shared_sums(packed, np.array([0]), np.array([1]))]
    [3, 0, 1, 2, 3, 2]
    """
    words = pad_to_words(packed, 1)
    low, high = words & HALF, (words >> np.uint64(1)) & HALF
    observed, homozygous, two = (high | ~low) & HALF, ~(low ^ high) & HALF, ~(low | high) & HALF
    found = np.empty((6, len(first)), dtype=np.int64)
    step = max(1, PAIRS // words.shape[1])
    for start in range(0, len(first), step):
        i, j = first[start : start + step], second[start : start + step]
        seen, hom, a1 = (plane[i] for plane in (observed, homozygous, two))
        other_seen, other_hom, other_a1 = (plane[j] for plane in (observed, homozygous, two))
        both = hom & other_hom
        squares, other_squares = _count(hom & other_seen), _count(other_hom & seen)
        found[:, start : start + step] = (
            _count(seen & other_seen),
            2 * _count(a1 & other_seen) - squares,
            2 * _count(other_a1 & seen) - other_squares,
            squares,
            other_squares,
            _count(both) - 2 * _count(both & (a1 ^ other_a1)),
        )
    return SharedSums(*found)


def _count(bits: Any) -> Integers:
    """Bits that are set in each row."""
    return np.asarray(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))
