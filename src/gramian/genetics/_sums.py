"""What a projection needs of new genotypes, summed in one pass over blocks of SNPs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gramian.compute.genotypes import Decoder, calls, sample_counts
from gramian.compute.threads import parallel
from gramian.sources.plink import Genotypes

__all__ = ["Sums", "solved", "summed"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

TILE_BYTES = 2**22  # of decoded genotypes: what a core's cache holds
FEW = 0.02  # part of a tile's genotypes that may be missing for a sparse product to be the faster one
TOGETHER = 1 << 14  # systems solved in one call


class Sums(NamedTuple):
    """Of each sample: Σ z v, Σ z², genotypes seen, and the upper half of Σ v vᵀ over those missing, if asked for."""

    products: Matrix
    squares: Vector
    seen: npt.NDArray[np.int64]
    lost: Matrix


def summed(genotypes: Genotypes, line: Matrix, V: Matrix, with_lost: bool) -> Sums:
    """One pass over the genotypes: z = ag + b times the rows of V, (a, b) a row of ``line``, on all threads."""
    k, width = V.shape[1], genotypes.width
    step = max(1, TILE_BYTES // max(1, 4 * width * 8))
    upper = np.triu_indices(k)

    def work(share: Sequence[tuple[int, int]]) -> list[npt.NDArray[np.float64]]:
        decode = Decoder(step, width, np.float64)
        products, squares, missing = np.zeros((k, 4 * width)), np.zeros(4 * width), np.zeros(4 * width)
        lost = np.zeros((genotypes.shape[0] if with_lost else 0, len(upper[0])))
        for start, stop in share:
            packed, v = genotypes.packed(start, stop), V[start:stop]
            Z = decode(packed, line[start:stop])
            products += v.T @ Z
            squares += np.einsum("ij,ij->j", Z, Z)
            if _has_gaps(packed):
                missing += sample_counts(packed)[:, 3]
                if with_lost:
                    _add_lost(lost, calls(packed, genotypes.n_file)[:, genotypes.sample_index] < 0, v, upper)
            genotypes.give_back()
        return [products.T, squares, missing, lost]

    parts = [sum(part) for part in zip(*parallel(work, genotypes.spans(step)), strict=True)]
    products, squares, missing = (np.asarray(part)[genotypes.sample_index] for part in parts[:3])
    return Sums(products, squares, genotypes.shape[1] - missing.astype(np.int64), np.asarray(parts[3]))


def _has_gaps(packed: npt.NDArray[np.uint8]) -> bool:
    """Whether any genotype is 01, missing."""
    return bool((packed & ~(packed >> 1) & 0x55).any())


def _add_lost(lost: Matrix, missing: npt.NDArray[np.bool_], v: Matrix, upper: tuple[npt.NDArray[np.intp], ...]) -> None:
    """Add v vᵀ of every missing genotype to its sample."""
    count = int(np.count_nonzero(missing))
    if count == 0:
        return
    squares = v[:, upper[0]] * v[:, upper[1]]
    if count > FEW * missing.size:
        lost += missing.T.astype(np.float64) @ squares
    else:
        lost += np.asarray(sparse.csr_array(missing.T.astype(np.float64)) @ squares)


def solved(sums: Sums, whole: Matrix) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Least squares from the seen genotypes: (VᵀV − lost) b = products; and for whom it has no single answer."""
    n, k = sums.products.shape
    b, bad = np.empty((n, k)), np.zeros(n, dtype=bool)
    upper = np.triu_indices(k)
    for start in range(0, n, TOGETHER):
        part = slice(start, start + TOGETHER)
        A = np.repeat(whole[None], len(sums.products[part]), axis=0)
        A[:, upper[0], upper[1]] -= sums.lost[part]
        A[:, upper[1], upper[0]] = A[:, upper[0], upper[1]]
        values, vectors = np.linalg.eigh(A)
        bad[part] = (values[:, 0] <= 1e-8 * np.abs(values[:, -1])) | (sums.seen[part] <= k)
        values[bad[part]] = 1.0
        coefficients = np.einsum("nji,nj->ni", vectors, sums.products[part]) / values
        b[part] = np.einsum("nij,nj->ni", vectors, coefficients)
    return b, bad
