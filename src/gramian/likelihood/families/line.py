r"""Families on the whole line: normal, logistic, Laplace.

With z = (x − μ)/σ and a standard density f₀ the density is f₀(z)/σ, and with ψ = d ln f₀/dz the score is

.. math:: \frac{\partial\ln f}{\partial\mu} = -\frac{\psi(z)}{\sigma},\qquad
    \frac{\partial\ln f}{\partial\sigma} = -\frac{1 + z\psi(z)}{\sigma}.

A quantile moves by 1 with μ and by z with σ, which gives the score of intervals.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, log_ndtr

from gramian.likelihood.families._degenerate import refuse_concentration
from gramian.likelihood.families._links import POSITIVE
from gramian.likelihood.families._tails import log1mexp
from gramian.likelihood.families.base import Boundary, Family, Parameter
from gramian.likelihood.sample import Sample

__all__ = ["Laplace", "LocationScale", "Logistic", "Normal", "weighted_median"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
LOG_2PI = float(np.log(2.0 * np.pi))


class LocationScale(Family):
    """(x − μ)/σ has a known distribution; subclasses supply it."""

    parameters = (Parameter("location", kind="location"), Parameter("scale", POSITIVE, "scale"))

    def standard(self, z: Vector) -> Vector:
        """ln f₀(z)."""
        raise TypeError("a family supplies this")

    def slope(self, z: Vector) -> Vector:
        """d ln f₀/dz."""
        raise TypeError("a family supplies this")

    def standard_cdf(self, z: Vector) -> Vector:
        """ln F₀(z); the families are symmetric, so that ln S₀(z) = ln F₀(−z)."""
        raise TypeError("a family supplies this")

    def log_density(self, x: Vector, theta: Vector) -> Vector:
        """ln f₀(z) − ln σ."""
        return np.asarray(self.standard((x - theta[0]) / theta[1]) - np.log(theta[1]))

    def log_cdf(self, x: Vector, theta: Vector) -> Vector:
        """ln F₀(z)."""
        return self.standard_cdf((x - theta[0]) / theta[1])

    def log_sf(self, x: Vector, theta: Vector) -> Vector:
        """ln F₀(−z)."""
        return self.standard_cdf((theta[0] - x) / theta[1])

    def score(self, x: Vector, theta: Vector) -> Matrix:
        """−ψ/σ and −(1 + zψ)/σ."""
        z = (x - theta[0]) / theta[1]
        slope = self.slope(z)
        return np.array([-slope / theta[1], -(1.0 + z * slope) / theta[1]])

    def velocity(self, x: Vector, theta: Vector) -> Matrix:
        """1 and z."""
        return np.array([np.ones_like(x), (x - theta[0]) / theta[1]])

    def start(self, sample: Sample) -> Vector:
        """Mean and standard deviation of one value for each record."""
        x = sample.representatives()
        mean = float(np.average(x, weights=sample.weight))
        return np.array([mean, float(np.sqrt(np.average((x - mean) ** 2, weights=sample.weight))) or 1.0])

    def boundary(self, sample: Sample) -> Boundary | None:
        """Refuse samples on which σ → 0."""
        refuse_concentration(sample, self.name, f"{self.names[1]} → 0")
        return None

    def held(self, sample: Sample, fixed: dict[str, float]) -> None:
        """Refuse samples on which σ → 0 at the location that is held."""
        if self.names[1] not in fixed:
            refuse_concentration(sample, self.name, f"{self.names[1]} → 0", fixed.get(self.names[0]))


class Normal(LocationScale):
    r"""The normal family, :math:`f(x) = e^{-(x-\mu)^2/2\sigma^2}/\sqrt{2\pi}\sigma`; parameters ``mean``, ``sd``.

    For points μ̂ = Σwx/Σw and σ̂² = Σw(x − μ̂)²/Σw.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("normal", [1.0, 2.0, 3.0, 6.0]).estimates["mean"]
    3.0
    """

    name = "normal"
    parameters = (Parameter("mean", kind="location"), Parameter("sd", POSITIVE, "scale"))

    def standard(self, z: Vector) -> Vector:
        """−(z² + ln 2π)/2."""
        return np.asarray(-0.5 * (z * z + LOG_2PI))

    def slope(self, z: Vector) -> Vector:
        """−z."""
        return -z

    def standard_cdf(self, z: Vector) -> Vector:
        """ln Φ(z)."""
        return np.asarray(log_ndtr(z))

    def closed(self, sample: Sample) -> Vector:
        """Mean and standard deviation."""
        mean = float(np.average(sample.lower, weights=sample.weight))
        rest = sample.lower - mean
        mean += float(np.average(rest, weights=sample.weight))
        return np.array([mean, np.sqrt(np.average((sample.lower - mean) ** 2, weights=sample.weight))])

    def draw(self, theta: Vector, size: int, rng: np.random.Generator) -> Vector:
        """Normal values."""
        return np.asarray(rng.normal(theta[0], theta[1], size))


class Logistic(LocationScale):
    r"""The logistic family, :math:`F(x) = 1/(1+e^{-(x-\mu)/s})`; parameters ``location``, ``scale``.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> round(fit("logistic", [-2.0, -1.0, 0.0, 1.0, 2.0]).estimates["location"], 9) + 0.0
    0.0
    """

    name = "logistic"

    def standard(self, z: Vector) -> Vector:
        """−|z| − 2 ln(1 + e^(−|z|))."""
        return np.asarray(-np.abs(z) - 2.0 * np.log1p(np.exp(-np.abs(z))))

    def slope(self, z: Vector) -> Vector:
        """−tanh(z/2)."""
        return np.asarray(-np.tanh(0.5 * z))

    def standard_cdf(self, z: Vector) -> Vector:
        """−ln(1 + e^(−z))."""
        return np.asarray(log_expit(z))

    def start(self, sample: Sample) -> Vector:
        """The moments: variance π²s²/3."""
        mean, sd = super().start(sample)
        return np.array([mean, sd * np.sqrt(3.0) / np.pi])

    def draw(self, theta: Vector, size: int, rng: np.random.Generator) -> Vector:
        """Logistic values."""
        return np.asarray(rng.logistic(theta[0], theta[1], size))


class Laplace(LocationScale):
    r"""The Laplace family, :math:`f(x) = e^{-|x-\mu|/b}/2b`; parameters ``location``, ``scale``.

    For points μ̂ is the median (the middle of the medians where there are several) and b̂ = Σw|x − μ̂|/Σw. The
    log-likelihood has a kink at every point, so the information for μ is the expected one, n/b².

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("laplace", [1.0, 2.0, 9.0]).estimates
    {'location': 2.0, 'scale': 2.6666666666666665}
    """

    name = "laplace"
    smooth = False

    def standard(self, z: Vector) -> Vector:
        """−|z| − ln 2."""
        return np.asarray(-np.abs(z) - np.log(2.0))

    def slope(self, z: Vector) -> Vector:
        """−sign z."""
        return -np.sign(z)

    def standard_cdf(self, z: Vector) -> Vector:
        """z − ln 2 below 0, ln(1 − e^(−z)/2) above."""
        return np.where(z < 0, np.minimum(z, 0.0) - np.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(z, 0.0))))

    def log_interval(self, a: Vector, b: Vector, theta: Vector) -> Vector:
        """On one side of μ the tails are exponential and their difference needs no subtraction of logarithms."""
        z, width = (a - theta[0]) / theta[1], (b - a) / theta[1]
        top = (b - theta[0]) / theta[1]
        near = np.where(z >= 0, z, -top)  # distance of the nearer end, where both are on one side
        with np.errstate(invalid="ignore", over="ignore"):
            beside = -near - np.log(2.0) + log1mexp(-width)
            across = np.log(-0.5 * (np.expm1(np.minimum(z, 0.0)) + np.expm1(-np.maximum(top, 0.0))))
        return np.asarray(np.where(near >= 0, beside, across))

    def closed(self, sample: Sample) -> Vector:
        """Median and mean distance from it."""
        median = weighted_median(sample.lower, sample.weight)
        return np.array([median, float(np.average(np.abs(sample.lower - median), weights=sample.weight))])

    def draw(self, theta: Vector, size: int, rng: np.random.Generator) -> Vector:
        """Laplace values."""
        return np.asarray(rng.laplace(theta[0], theta[1], size))


def weighted_median(x: Vector, weight: Vector) -> float:
    """The median of values with frequencies; the middle of the two where half the weight lies on either side."""
    order = np.argsort(x, kind="stable")
    values, below = x[order], np.cumsum(weight[order])
    half = 0.5 * below[-1]
    i = int(np.searchsorted(below, half))
    if below[i] == half and i + 1 < len(values):
        return 0.5 * float(values[i]) + 0.5 * float(values[i + 1])
    return float(values[i])
