"""Scores of samples with missing genotypes, fitted to the genotypes they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.compute.devices import host
from gramian.operators import genotype_operator
from gramian.sources.plink import Genotypes

__all__ = ["least_squares_vectors"]

Array = Any

PAIR_BYTES = 2**28  # of products of pairs of loadings that are multiplied in one pass
SHOWN = 5  # samples named in an error


def least_squares_vectors(
    source: Genotypes, U: Array, singular_values: Array, components: Array, device: Any = None
) -> tuple[Array, Array]:
    r"""Scores that fit each sample's own genotypes best, as columns of length 1, and the lengths they had.

    .. math::
        c_i = \arg\min_c \sum_{j\ \text{seen}} (z_{ij} - v_j^Tc)^2 = (V_i^TV_i)^{-1} V^Tz_i,\qquad V^Tz_i = \Sigma u_i

    with V_i the rows of V at the SNPs that sample i has. The k×k matrices are products of the table of calls with the
    products of pairs of loadings: one pass, or more where there are so many pairs that they would fill the memory.
    """
    k = components.shape[0]
    a, b = np.triu_indices(k)
    options = {"dtype": components.dtype, "device": "cpu" if device is None else device}
    seen = genotype_operator(source, np.zeros(source.shape[1]), **options).seen()
    V, normal = components.T, np.empty((len(U), k, k))
    step = max(1, PAIR_BYTES // (V.shape[0] * V.dtype.itemsize))
    for i in range(0, len(a), step):
        first, second = a[i : i + step], b[i : i + step]
        sums = host(seen.matmat(seen.asarray(np.ascontiguousarray(V[:, first] * V[:, second]))))
        normal[:, first, second] = normal[:, second, first] = sums
    _refuse_undetermined(normal, source, float(np.finfo(components.dtype).eps))
    scores = np.linalg.solve(normal, (U * singular_values)[:, :, None])[:, :, 0]
    lengths = np.linalg.norm(scores, axis=0)
    return np.asarray(scores / lengths, dtype=U.dtype), lengths


def _refuse_undetermined(normal: Array, source: Genotypes, eps: float) -> None:
    """Name the samples whose genotypes are too few to fit k scores to."""
    values = np.linalg.eigvalsh(normal)
    bad = np.flatnonzero(~(values[:, 0] > 100 * eps))  # all genotypes make each matrix the identity
    if len(bad):
        names = ", ".join(source.samples.take(bad[:SHOWN]).names) + (", …" if len(bad) > SHOWN else "")
        raise ValueError(
            f"{len(bad)} of {len(normal)} samples have too few genotypes to fit {normal.shape[1]} scores to: {names}. "
            "Leave them out (gramian.genetics.Filters(max_sample_missing=0.5)), or use missing='mean'."
        )
