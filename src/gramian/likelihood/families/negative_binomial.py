"""The negative binomial family."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma

from gramian.likelihood.families._gamma_terms import LARGE, log1pmx, log_poisson
from gramian.likelihood.families._links import POSITIVE
from gramian.likelihood.families._tails import log_beta_p, log_beta_q
from gramian.likelihood.families.base import Boundary, Limit, NoMaximumError, Parameter
from gramian.likelihood.families.counts import Counts, Poisson, finite, refuse_top
from gramian.likelihood.sample import INF, Sample

__all__ = ["NegativeBinomial"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


class NegativeBinomial(Counts):
    r"""The negative binomial family, :math:`P(k) = \frac{\Gamma(k+r)}{k!\,\Gamma(r)}p^r(1-p)^k`, p = r/(r+μ).

    Parameters ``size`` r and ``mean`` μ; the variance is μ + μ²/r. Where the variance of the sample is not above its
    mean the likelihood only grows with r, to that of the Poisson family (Levin and Reeds 1977).

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("negative binomial", [0, 0, 1, 2, 9])
    >>> round(est.estimates["mean"], 6)
    2.4
    """

    name = "negative binomial"
    parameters = (Parameter("size", POSITIVE), Parameter("mean", POSITIVE))
    limit = Limit(
        0,
        Poisson(),
        "the variance is not above the mean: the likelihood grows with size without end, and the maximum is at "
        "size = ∞, the Poisson family",
    )

    def log_mass(self, k: Vector, theta: Vector) -> Vector:
        """The coefficient and the powers; Poisson's where r = ∞."""
        size, mean = theta
        if np.isinf(size):
            return log_poisson(k, mean)
        # −ln B(k+1, r) − ln(k+r) is the coefficient, without subtracting gamma functions of r
        choices = -betaln(k + 1.0, size) - np.log(k + size)
        return np.asarray(choices - size * np.log1p(mean / size) + k * (np.log(mean) - np.log(size + mean)))

    def log_cdf(self, x: Vector, theta: Vector) -> Vector:
        """ln(1 − I_q(k+1, r)), q = 1 − p."""
        if np.isinf(theta[0]):
            return Poisson().log_cdf(x, theta[1:])
        k = np.floor(np.maximum(x, 0.0))
        inside = log_beta_q(finite(k) + 1.0, theta[0], np.full_like(k, theta[1] / (theta[0] + theta[1])))
        return np.where(x < 0, -INF, np.where(np.isinf(k), 0.0, inside))

    def log_sf(self, x: Vector, theta: Vector) -> Vector:
        """ln I_q(k+1, r)."""
        if np.isinf(theta[0]):
            return Poisson().log_sf(x, theta[1:])
        k = np.floor(np.maximum(x, 0.0))
        inside = log_beta_p(finite(k) + 1.0, theta[0], np.full_like(k, theta[1] / (theta[0] + theta[1])))
        return np.where(x < 0, 0.0, np.where(np.isinf(k), -INF, inside))

    def score(self, x: Vector, theta: Vector) -> Matrix:
        """ψ(k+r) − ψ(r) − ln(1+μ/r) + (μ−k)/(r+μ) and (k−μ)r/(μ(r+μ))."""
        size, mean = theta
        if size < LARGE:
            by_size = digamma(x + size) - digamma(size) - np.log1p(mean / size) + (mean - x) / (size + mean)
        else:  # the series of digamma; its logarithms and the last term are ln(1 + d) − d
            top = size + x
            series = x / (2.0 * size * top) + x * (size + top) / (12.0 * size**2 * top**2)
            by_size = log1pmx((x - mean) / (size + mean)) + series - (size**-4.0 - top**-4.0) / 120.0
        return np.array([by_size, (x - mean) * size / (mean * (size + mean))])

    def start(self, sample: Sample) -> Vector:
        """The moments: r = μ²/(v − μ)."""
        x = sample.representatives(0.0)
        mean = max(float(np.average(x, weights=sample.weight)), 0.1)
        variance = float(np.average((x - mean) ** 2, weights=sample.weight))
        return np.array([float(np.clip(mean**2 / max(variance - mean, 1e-9), 0.05, 100.0)), mean])

    def boundary(self, sample: Sample) -> Boundary | None:
        """The Poisson limit, and zeros only."""
        seen = sample.observed()
        mean = self.mean(seen)
        if seen.plain and np.average((seen.lower - mean) ** 2, weights=seen.weight) <= mean:
            if mean == 0.0:
                raise NoMaximumError("All counts are 0: any size fits as well with mean = 0. Fit the poisson family.")
            return Boundary(np.array([INF, mean]), str(self.limit.note if self.limit else ""))
        refuse_top(seen, "mean")
        if np.all(seen.upper == INF):
            raise NoMaximumError(
                "All counts are censored on the right: the likelihood grows to 1 as mean → ∞, without a maximum."
            )
        return None

    def draw(self, theta: Vector, size: int, rng: np.random.Generator) -> Vector:
        """Counts whose Poisson rates are gamma."""
        rates = theta[1] if np.isinf(theta[0]) else rng.gamma(theta[0], theta[1] / theta[0], size)
        return rng.poisson(rates, size).astype(np.float64)
