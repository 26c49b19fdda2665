"""What a genotype is centred at and divided by, from the counts of its SNP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SCALES", "Standard", "standardise"]

Vector = npt.NDArray[np.float64]

SCALES = {
    "plink": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(2f(1 − f)), as PLINK prints",
    "patterson": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(f(1 − f)), twice what PLINK prints",
    "smartpca": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(q(1 − q)), q = (1 + Σg)/(2 + 2n); smartpca prints them "
    "multiplied to sum to n − 1",
    "none": "eigenvalues of ZZᵀ/M with z = g − 2f, not divided by anything",
}


@dataclass(frozen=True, eq=False)
class Standard:
    """Frequency of A1, mean copies, divisor and sum of squares of the standardised genotypes, for each SNP."""

    frequency: Vector
    mean: Vector
    scale: Vector
    squares: Vector


def standardise(by_snp: npt.NDArray[np.int64], scaling: str) -> Standard:
    r"""Centre and divisor of each SNP, where at least one genotype was seen and not all are the same.

    .. math:: f = \frac{\sum g}{2n},\qquad z = \frac{g - 2f}{s},\qquad s^2 \in \{2f(1-f),\ f(1-f),\ q(1-q),\ 1\}

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics._standardise import standardise
    >>> found = standardise(np.array([[1, 1, 2, 0]]), "plink")
    >>> found.mean, found.scale.round(4)
    (array([0.75]), array([0.6847]))
    """
    two, one, none, _ = by_snp.T.astype(np.float64)
    n = two + one + none
    copies = 2 * two + one
    f = copies / (2 * n)
    q = (1 + copies) / (2 + 2 * n)
    variance = {"plink": 2 * f * (1 - f), "patterson": f * (1 - f), "smartpca": q * (1 - q), "none": np.ones_like(f)}
    scale = np.sqrt(variance[scaling])
    mean = 2 * f
    squares = (two * (2 - mean) ** 2 + one * (1 - mean) ** 2 + none * mean**2) / scale**2
    return Standard(f, mean, scale, squares)
