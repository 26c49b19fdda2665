r"""What keeps components from collapsing: a floor under their variances, or a conjugate prior.

The prior is normal for means given covariances and inverse Wishart for covariances,

.. math:: \ln p = -\tfrac12\sum_k\bigl[(c+[\kappa>0])\ln|\Sigma_k| + \operatorname{tr}\Sigma_k^{-1}\Lambda
    + \kappa(\mu_k-\mu_P)^T\Sigma_k^{-1}(\mu_k-\mu_P)\bigr]

and enters a maximisation step as if some rows more had been seen: counts grow by c (and 1), scatter matrices by Λ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture.floor import POOLED
from gramian.likelihood.mixture.models import DIAGONAL
from gramian.likelihood.mixture.parameters import Mixture

if TYPE_CHECKING:
    from gramian.likelihood.mixture.statistics import Data

__all__ = ["FLOOR", "Prior"]

Array = npt.NDArray[np.float64]

FLOOR = 1e-22  # of the variances of the data
ROUNDING = float(np.finfo(float).eps)
CONJUGATE = ("EII", "VII", "EEI", "VVI", "EEE", "VVV")
SHRINKAGE = 0.01


@dataclass(frozen=True, eq=False)
class Prior:
    """A conjugate prior, or a floor.

    Attributes
    ----------
    scale : ndarray of shape (d,) or (d, d)
        Λ, or its diagonal.
    counts : float
        c.
    shrinkage : float
        κ: how many rows at the centre each mean is drawn by.
    centre : ndarray of shape (d,) or None
        μ_P, as it is (not measured from an origin).
    pooled : bool
        Whether it is a prior for one covariance that all components share.
    hard : bool
        Whether it is a floor: covariances may not fall below ``scale``, and nothing else is changed.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.likelihood.mixture import Prior, Rows
    >>> Prior.floor(Rows.of(gramian.open(np.array([[0.0], [2.0]])))).scale
    array([1.e-22])
    """

    scale: Array
    counts: float = 0.0
    shrinkage: float = 0.0
    centre: Array | None = None
    pooled: bool = False
    hard: bool = False

    @classmethod
    def floor(cls, data: Data, ratio: float = FLOOR) -> Prior:
        """A floor that no fit notices until a component collapses: Λ = ratio × the variances of the columns.

        The ratio has no units, so data multiplied by 1e8 give the same fit in other units. A column that varies by its
        rounding alone counts as the others do. See :mod:`gramian.likelihood.mixture.floor`.
        """
        varies = data.variances > (4 * ROUNDING * data.origin) ** 2
        spread = np.where(varies, data.variances, data.variances[varies].mean() if varies.any() else 1.0)
        return cls(ratio * spread, hard=True)

    @classmethod
    def conjugate(cls, covariance: Array, mean: Array, model: str, k: int, *, shrinkage: float = SHRINKAGE) -> Prior:
        r"""The default prior of Fraley and Raftery (2007), as in mclust.

        κ = 0.01, ν = d + 2, μ_P the mean of the data, and Λ their covariance divided by :math:`K^{2/d}`; where
        the model is diagonal, the mean of the variances divided likewise.

        Parameters
        ----------
        covariance : ndarray of shape (d, d)
            Of the data, with divisor n − 1.
        mean : ndarray of shape (d,)
            Of the data.
        model : str
            EII, VII, EEI, VVI, EEE or VVV.
        k : int
            How many components.
        shrinkage : float, default=0.01
            κ.
        """
        if model not in CONJUGATE:
            raise ValueError(f"The conjugate prior is for {', '.join(CONJUGATE)}, not {model}. Use one of these.")
        d = len(mean)
        freedom, share = d + 2.0, k ** (2.0 / d)
        even = float(np.trace(covariance)) / d / share
        if model in ("EII", "VII"):
            scale, counts = np.full(d, even / d), (freedom + 2) / d
        elif model in DIAGONAL:
            scale, counts = np.full(d, even), freedom + 2
        else:
            scale, counts = covariance / share, freedom + d + 1
        return cls(
            scale, counts, shrinkage, np.asarray(mean, dtype=np.float64), model in POOLED
        )  # then the prior counts once

    def shrunk(self, N: Array, centres: Array, origin: Array) -> Array:
        """Means drawn towards the prior's centre."""
        if self.centre is None or self.shrinkage == 0.0:
            return centres
        target, kappa = self.centre - origin, self.shrinkage
        return np.asarray(target + (centres - target) * (N / (N + kappa))[:, None])

    def added(self, N: Array, T: Array, centres: Array, origin: Array) -> tuple[Array, Array]:
        """Counts and scatter matrices with the prior's own."""
        if self.hard:
            return N, T
        share = 1.0 / len(N) if self.pooled else 1.0
        total = T + share * _form(self.scale, T.ndim)
        if self.centre is None or self.shrinkage == 0.0:
            return N + share * self.counts, total
        away = centres - (self.centre - origin)
        square = away**2 if T.ndim == 2 else away[:, :, None] * away[:, None, :]
        return N + share * self.counts + 1.0, total + self.shrinkage * square

    def log_density(self, mixture: Mixture) -> float:
        """ln p, up to a constant."""
        k = mixture.n_components
        N, T = self.added(np.zeros(k), np.zeros_like(mixture.covariances), mixture.centres, mixture.origin)
        if mixture.diagonal:
            traces = np.sum(T / mixture.covariances, axis=1)
        else:
            R = mixture.roots
            traces = np.einsum("kij,kjl,kil->k", R, T, R)
        return float(-0.5 * np.sum(N * mixture.log_determinants + traces))


def _form(scale: Array, ndim: int) -> Array:
    if ndim == 3:
        return np.diag(scale) if scale.ndim == 1 else scale
    return scale if scale.ndim == 1 else np.diag(scale)
