"""How often each genotype occurs: counted by all cores, or on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute import genotypes as loops
from gramian.compute.devices import gpu, host, put
from gramian.compute.threads import parallel

if TYPE_CHECKING:
    from gramian.sources.plink.genotypes import Genotypes

__all__ = ["BLOCK", "Counts", "device_counts", "host_counts"]

BLOCK = 2**20  # packed bytes looked at together: their temporary arrays stay in a core's cache


class Counts(NamedTuple):
    """How often each genotype occurs: two A1, one, none, missing.

    Attributes
    ----------
    by_snp : ndarray of shape (p, 4)
        Among the samples, for each SNP.
    by_sample : ndarray of shape (n, 4)
        Among the SNPs, for each sample.
    """

    by_snp: npt.NDArray[np.int64]
    by_sample: npt.NDArray[np.int64]


def host_counts(source: Genotypes) -> Counts:
    """Count in blocks of SNPs, shared between the cores: one pass."""
    mask = loops.sample_mask(source.sample_index, source.width)
    n, p = source.shape
    by_snp = np.zeros((p, 4), dtype=np.int64)

    def work(share: Any) -> npt.NDArray[np.int64]:
        by_sample = np.zeros((4 * source.width, 4), dtype=np.int64)
        for start, stop in share:
            block = source.packed(start, stop)
            by_snp[start:stop] = loops.snp_counts(block, mask, n)
            by_sample += loops.sample_counts(block)
            source.give_back()
        return by_sample

    spans = source.spans(max(1, BLOCK // max(1, source.width)))
    parts = parallel(work, spans) if spans else [np.zeros((4 * source.width, 4), dtype=np.int64)]
    return Counts(by_snp, np.sum(parts, axis=0)[source.sample_index])


def device_counts(source: Genotypes, blocks: Any, device: Any) -> Counts:
    """Count the blocks of SNPs that are on a device, or come to it one after the other: one pass."""
    n, p = source.shape
    on = gpu().genotypes
    kept = None if source.complete else put(np.bincount(source.sample_index, minlength=4 * source.width) > 0, device)
    by_snp, by_sample = put(np.zeros((p, 4), dtype=np.int64), device), 0
    for start, stop, block in blocks:
        by_snp[start:stop] = on.snp_counts(block, kept, n)
        by_sample = by_sample + on.sample_counts(block)
    return Counts(host(by_snp), np.asarray(host(by_sample)).reshape(-1, 4)[source.sample_index])
