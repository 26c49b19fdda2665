"""A fitted genotype PCA as the files and projections see it: by its attributes, and in the units of other programs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gramian.sources.plink import Samples, Snps

__all__ = ["FittedGenotypePCA", "plink_eigenvalues", "score_lengths", "smartpca_eigenvalues", "variant_weights"]

Array = npt.NDArray[np.float64]


class FittedGenotypePCA(Protocol):
    """What is read of a fitted ``GenotypePCA``."""

    scaling: str
    missing: str
    eigenvectors_: Array
    eigenvalues_: Array
    eigenvalue_scale_: str
    singular_values_: Array
    components_: Array
    mean_: Array
    scale_: Array
    allele_frequency_: Array
    samples_: Samples
    snps_: Snps
    dropped_: Any
    certificate_: Any
    total_variance_: float
    all_eigenvalues_: Array | None


def plink_eigenvalues(model: FittedGenotypePCA) -> Array:
    """λ of ZZᵀ/M with PLINK's √(2f(1−f)) as divisor.

    The divisors of Patterson and of smartpca have no 2 in the root, which doubles λ; where nothing was divided by,
    there is no such scale and λ is as it is.
    """
    return model.eigenvalues_ * (0.5 if model.scaling in ("patterson", "smartpca") else 1.0)


def score_lengths(model: FittedGenotypePCA) -> Array:
    """What scores are divided by to be in the scale of ``eigenvectors_``: σ, or the lengths of fitted scores."""
    return np.asarray(getattr(model, "score_lengths_", model.singular_values_), dtype=np.float64)


def smartpca_eigenvalues(model: FittedGenotypePCA) -> Array:
    """λ in the scale in which all n of them sum to n − 1: all of them where all were computed."""
    known = model.eigenvalues_ if model.all_eigenvalues_ is None else model.all_eigenvalues_
    return np.asarray(known * ((len(model.eigenvectors_) - 1) / model.total_variance_))


def variant_weights(model: FittedGenotypePCA) -> Array:
    r"""PLINK's weights of the SNPs for allele A1, :math:`Z^Tu/\sqrt\lambda`, of shape (M, k).

    With σ² = Mλ that is √M·V: of length √M, or nearly so where each pair of samples is divided by the genotypes
    that both have.
    """
    return np.asarray(np.sqrt(len(model.snps_)) * model.components_.T.astype(np.float64))
