"""What solvers return: a spectrum or the solution of a system, each with its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.results.certificate import Residual, SpectralCertificate


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Leading singular triplets :math:`A \approx \sum_i \sigma_i u_i v_i^T`, largest first.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Singular values σ, descending, in float64.
    right : array of shape (p, k)
        Right singular vectors V as columns, in the operator's own array type.
    left : array of shape (n, k) or None
        Left singular vectors U, where the solver was asked for them.
    certificate : SpectralCertificate
        How good these are.
    """

    values: npt.NDArray[np.float64]
    right: Any
    left: Any
    certificate: SpectralCertificate

    @property
    def eigenvalues(self) -> npt.NDArray[np.float64]:
        """Eigenvalues σ² of AᵀA."""
        return np.asarray(self.values**2)


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution x of Ax = b, one column for each right-hand side, and how good it is.

    Attributes
    ----------
    values : array of shape (n, t)
        x, in the operator's own array type.
    certificate : Residual
        How good it is.
    """

    values: Any
    certificate: Residual
