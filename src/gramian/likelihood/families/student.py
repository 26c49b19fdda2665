"""Student's t family."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, log_ndtr

from gramian.likelihood.families._degenerate import refuse_concentration
from gramian.likelihood.families._gamma_terms import log1pmx
from gramian.likelihood.families._links import POSITIVE
from gramian.likelihood.families._tails import log_beta_q
from gramian.likelihood.families.base import Boundary, Family, Limit, Parameter
from gramian.likelihood.families.line import LOG_2PI, Normal
from gramian.likelihood.sample import Sample

__all__ = ["StudentT"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

MOST_POINTS = 2000  # among which ties are looked for
FAR = 1000.0  # degrees of freedom from which the difference of digamma functions is its series


class StudentT(Family):
    r"""Student's t with location and scale, :math:`f \propto (1 + z^2/\nu)^{-(\nu+1)/2}/\sigma`.

    Parameters ``df`` ν, ``location``, ``scale``. As ν → ∞ it becomes the normal family, and where the likelihood only
    grows with ν the fit is that. As ν → 0 the likelihood is unbounded for any sample (Fernández and Steel 1999): the
    fit is its highest maximum inside.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("student t", [-9.0, -1.0, -0.5, 0.0, 0.3, 0.8, 1.0, 7.0])
    >>> bool(est.estimates["df"] < 3)
    True
    """

    name = "student t"
    parameters = (
        Parameter("df", POSITIVE),
        Parameter("location", kind="location"),
        Parameter("scale", POSITIVE, "scale"),
    )
    unmoved = (0,)
    limit = Limit(0, Normal(), "the likelihood grows with df without end: the maximum is at df = ∞, the normal family")

    def log_density(self, x: Vector, theta: Vector) -> Vector:
        """−(ν+1)/2 ln(1 + z²/ν) − ln B(ν/2, ½) − ½ ln ν − ln σ."""
        df, z = theta[0], self._z(x, theta)
        if np.isinf(df):
            return np.asarray(-0.5 * (z * z + LOG_2PI) - np.log(theta[2]))
        constant = betaln(0.5 * df, 0.5) + 0.5 * np.log(df) + np.log(theta[2])
        return np.asarray(-0.5 * (df + 1.0) * np.log1p(z * z / df) - constant)

    def log_cdf(self, x: Vector, theta: Vector) -> Vector:
        """ln F₀(z)."""
        return self._tail(-self._z(x, theta), theta[0])

    def log_sf(self, x: Vector, theta: Vector) -> Vector:
        """ln F₀(−z)."""
        return self._tail(self._z(x, theta), theta[0])

    def score(self, x: Vector, theta: Vector) -> Matrix:
        """By ν, μ and σ, with v = (ν+1)/(ν+z²): the weight of robust regression."""
        df, _, scale = theta
        z = self._z(x, theta)
        v, u = (df + 1.0) / (df + z * z), z * z / df
        if df < FAR:
            constant = digamma(0.5 * (df + 1.0)) - digamma(0.5 * df) - 1.0 / df
            by_df = 0.5 * (constant - np.log1p(u) + v * u)
        else:  # the difference of digamma functions is 1/ν + 1/2ν² − 1/4ν⁴ + …, and u nearly ln(1 + u)
            constant = 0.5 / df**2 - 0.25 / df**4
            by_df = 0.5 * (constant - log1pmx(u) - u * u / (1.0 + u) + u / (df * (1.0 + u)))
        return np.array([by_df, v * z / scale, (v * z * z - 1.0) / scale])

    def velocity(self, x: Vector, theta: Vector) -> Matrix:
        """1 and z with location and scale; with ν there is no formula."""
        return np.array([np.zeros_like(x), np.ones_like(x), self._z(x, theta)])

    def start(self, sample: Sample) -> Vector:
        """ν by the kurtosis, between 3 and 30; median and the scale that goes with them."""
        x = sample.representatives()
        mean = float(np.average(x, weights=sample.weight))
        rest = x - mean
        second = float(np.average(rest**2, weights=sample.weight)) or 1.0
        excess = float(np.average(rest**4, weights=sample.weight)) / second**2 - 3.0
        df = float(np.clip(4.0 + 6.0 / excess, 3.0, 30.0)) if excess > 0 else 30.0
        spread = min(float(np.sqrt(second * (df - 2.0) / df)), 1.4826)  # in units of half the interquartile range
        return np.array([df, 0.0 if spread == 1.4826 else mean, spread])

    def boundary(self, sample: Sample) -> Boundary | None:
        """Refuse samples on which σ → 0."""
        refuse_concentration(sample, self.name, "scale → 0")
        return None

    def held(self, sample: Sample, fixed: dict[str, float]) -> None:
        """Refuse samples on which σ → 0 at the location that is held."""
        if "scale" not in fixed:
            refuse_concentration(sample, self.name, "scale → 0", fixed.get("location"))

    def walls(self, sample: Sample) -> dict[int, float]:
        """ν = m/(n − m), where m of n records may lie at one point: as σ → 0 there, ℓ ≈ (ν(n − m) − m) ln σ."""
        seen = sample.observed()
        points, which = np.unique(seen.lower[seen.exact], return_inverse=True)
        if not len(points) or len(points) > MOST_POINTS:
            return {0: 1.0 / (seen.total - 1.0)} if len(points) and seen.total > 1.0 else {}
        m = np.bincount(which.ravel(), seen.weight[seen.exact], len(points))
        rest = seen.where(~seen.exact)
        around = (rest.lower <= points[:, None]) & (points[:, None] <= rest.upper)
        elsewhere = seen.total - m - around @ rest.weight
        return {0: float(np.max(m[elsewhere > 0] / elsewhere[elsewhere > 0], initial=0.0))}

    def draw(self, theta: Vector, size: int, rng: np.random.Generator) -> Vector:
        """Values of t."""
        noise = rng.standard_normal(size) if np.isinf(theta[0]) else rng.standard_t(theta[0], size)
        return np.asarray(theta[1] + theta[2] * noise)

    def _z(self, x: Vector, theta: Vector) -> Vector:
        return np.asarray((x - theta[1]) / theta[2])

    def _tail(self, z: Vector, df: float) -> Vector:
        """ln P(T > z): half the incomplete beta function of z²/(ν + z²) beyond |z|."""
        if np.isinf(df):
            return np.asarray(log_ndtr(-z))
        size = np.minimum(np.abs(z), 1e150)
        y = size * size / (df + size * size)
        beyond = np.where(np.isinf(z), -np.inf, log_beta_q(0.5, 0.5 * df, y)) - np.log(2.0)
        return np.asarray(np.where(z >= 0, beyond, np.log1p(-np.exp(beyond))))
