"""Scores of samples with missing genotypes, fitted to the genotypes they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.operators import GenotypeOperator
from gramian.sources.plink import Genotypes

__all__ = ["least_squares_vectors"]

Array = Any


def least_squares_vectors(source: Genotypes, U: Array, singular_values: Array, components: Array) -> Array:
    r"""Columns of length 1 proportional to the scores that fit each sample's own genotypes best.

    .. math::
        c_i = \arg\min_c \sum_{j\ \text{seen}} (z_{ij} - v_j^Tc)^2 = (V_i^TV_i)^{-1} V^Tz_i,\qquad V^Tz_i = \Sigma u_i

    with V_i the rows of V at the SNPs that sample i has. All the k×k matrices are one product of the table of calls
    with the products of pairs of loadings, so that this takes one pass.
    """
    k = components.shape[0]
    a, b = np.triu_indices(k)
    seen = GenotypeOperator.observed(source, dtype=components.dtype)
    sums = seen.matmat(np.ascontiguousarray((components[a] * components[b]).T))
    normal = np.empty((len(U), k, k))
    normal[:, a, b] = normal[:, b, a] = sums
    scores = np.linalg.solve(normal, (U * singular_values)[:, :, None])[:, :, 0]
    return np.asarray(scores / np.linalg.norm(scores, axis=0), dtype=U.dtype)
