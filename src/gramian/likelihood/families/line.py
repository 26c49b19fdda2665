"""Families on the whole line: normal, logistic, Laplace, Student's t."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, log_expit, log_ndtr

from gramian.likelihood.families.base import (
    POSITIVE,
    Concentration,
    Family,
    Limit,
    Parameter,
    Unit,
    log1mexp,
    log1pmx,
    log_beta_q,
    mean_size,
    moments,
)
from gramian.likelihood.sample import Sample

Array = npt.NDArray[np.float64]
LOG_2PI = float(np.log(2.0 * np.pi))
OUTLYING = 1e4  # times as far as the middle half of the data do others lie, which then determine the scale


class LocationScale(Family):
    """(x − μ)/σ has a known distribution; subclasses supply it."""

    parameters = (Parameter("location", kind="location"), Parameter("scale", POSITIVE, "scale"))
    concentration = Concentration("{1} → 0", centre=0, width=1)

    def standard(self, z: Array) -> Array:
        """ln f₀(z)."""
        raise TypeError("a family supplies this")

    def slope(self, z: Array) -> Array:
        """d ln f₀/dz."""
        raise TypeError("a family supplies this")

    def standard_cdf(self, z: Array) -> Array:
        """ln F₀(z); the families are symmetric, so that ln S₀(z) = ln F₀(−z)."""
        raise TypeError("a family supplies this")

    def log_density(self, x: Array, theta: Array) -> Array:
        """ln f₀(z) − ln σ."""
        return np.asarray(self.standard((x - theta[0]) / theta[1]) - np.log(theta[1]))

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln F₀(z)."""
        return self.standard_cdf((x - theta[0]) / theta[1])

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln F₀(−z)."""
        return self.standard_cdf((theta[0] - x) / theta[1])

    def score(self, x: Array, theta: Array) -> Array:
        """−ψ/σ and −(1 + zψ)/σ."""
        z = (x - theta[0]) / theta[1]
        slope = self.slope(z)
        return np.array([-slope / theta[1], -(1.0 + z * slope) / theta[1]])

    def velocity(self, x: Array, theta: Array) -> Array:
        """1 and z."""
        return np.array([np.ones_like(x), (x - theta[0]) / theta[1]])

    def unit(self, sample: Sample) -> Unit:
        """The middle half of the data for a unit, or their mean distance from it where others lie far beyond."""
        near, x = super().unit(sample), sample.representatives()
        far = Unit.of(mean_size(0.5 * x - 0.5 * near.shift, sample.weight), near.shift)
        return far if far.scale > OUTLYING * near.scale else near

    def start(self, sample: Sample) -> Array:
        """Mean and standard deviation of one value for each record."""
        mean, variance = moments(sample.representatives(), sample.weight)
        return np.array([mean, float(np.sqrt(variance)) or 1.0])


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
    generator = "normal"

    def standard(self, z: Array) -> Array:
        """−(z² + ln 2π)/2."""
        return np.asarray(-0.5 * (z * z + LOG_2PI))

    def slope(self, z: Array) -> Array:
        """−z."""
        return -z

    def standard_cdf(self, z: Array) -> Array:
        """ln Φ(z)."""
        return np.asarray(log_ndtr(z))

    def closed_form(self, sample: Sample) -> Array:
        """Mean and standard deviation."""
        mean = float(np.average(sample.lower, weights=sample.weight))
        rest = sample.lower - mean
        mean += float(np.average(rest, weights=sample.weight))
        return np.array([mean, np.sqrt(np.average((sample.lower - mean) ** 2, weights=sample.weight))])


class Logistic(LocationScale):
    r"""The logistic family, :math:`F(x) = 1/(1+e^{-(x-\mu)/s})`; parameters ``location``, ``scale``.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> round(fit("logistic", [-2.0, -1.0, 0.0, 1.0, 2.0]).estimates["location"], 9) + 0.0
    0.0
    """

    name = generator = "logistic"

    def standard(self, z: Array) -> Array:
        """−|z| − 2 ln(1 + e^(−|z|))."""
        return np.asarray(-np.abs(z) - 2.0 * np.log1p(np.exp(-np.abs(z))))

    def slope(self, z: Array) -> Array:
        """−tanh(z/2)."""
        return np.asarray(-np.tanh(0.5 * z))

    def standard_cdf(self, z: Array) -> Array:
        """−ln(1 + e^(−z))."""
        return np.asarray(log_expit(z))

    def start(self, sample: Sample) -> Array:
        """The moments: variance π²s²/3."""
        mean, sd = super().start(sample)
        return np.array([mean, sd * np.sqrt(3.0) / np.pi])


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

    name = generator = "laplace"
    smooth = False

    def standard(self, z: Array) -> Array:
        """−|z| − ln 2."""
        return np.asarray(-np.abs(z) - np.log(2.0))

    def slope(self, z: Array) -> Array:
        """−sign z."""
        return -np.sign(z)

    def standard_cdf(self, z: Array) -> Array:
        """z − ln 2 below 0, ln(1 − e^(−z)/2) above."""
        return np.where(z < 0, np.minimum(z, 0.0) - np.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(z, 0.0))))

    def log_interval(self, a: Array, b: Array, theta: Array) -> Array:
        """On one side of μ the tails are exponential and their difference needs no subtraction of logarithms."""
        z, width = (a - theta[0]) / theta[1], (b - a) / theta[1]
        top = (b - theta[0]) / theta[1]
        near = np.where(z >= 0, z, -top)  # distance of the nearer end, where both are on one side
        with np.errstate(invalid="ignore", over="ignore"):
            beside = -near - np.log(2.0) + log1mexp(-width)
            across = np.log(-0.5 * (np.expm1(np.minimum(z, 0.0)) + np.expm1(-np.maximum(top, 0.0))))
        return np.asarray(np.where(near >= 0, beside, across))

    def closed_form(self, sample: Sample) -> Array:
        """Median and mean distance from it."""
        median = weighted_median(sample.lower, sample.weight)
        return np.array([median, float(np.average(np.abs(sample.lower - median), weights=sample.weight))])


def weighted_median(x: Array, weight: Array) -> float:
    """The median of values with frequencies; the middle of the two where half the weight lies on either side."""
    order = np.argsort(x, kind="stable")
    values, below = x[order], np.cumsum(weight[order])
    half = 0.5 * below[-1]
    i = int(np.searchsorted(below, half))
    if below[i] == half and i + 1 < len(values):
        return 0.5 * float(values[i]) + 0.5 * float(values[i + 1])
    return float(values[i])


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
    concentration = Concentration("scale → 0", centre=1, width=2)
    parameters = (
        Parameter("df", POSITIVE),
        Parameter("location", kind="location"),
        Parameter("scale", POSITIVE, "scale"),
    )
    unmoved = (0,)
    limit = Limit(0, Normal(), "the likelihood grows with df without end: the maximum is at df = ∞, the normal family")

    def log_density(self, x: Array, theta: Array) -> Array:
        """−(ν+1)/2 ln(1 + z²/ν) − ln B(ν/2, ½) − ½ ln ν − ln σ."""
        df, z = theta[0], self._z(x, theta)
        if np.isinf(df):
            return np.asarray(-0.5 * (z * z + LOG_2PI) - np.log(theta[2]))
        constant = betaln(0.5 * df, 0.5) + 0.5 * np.log(df) + np.log(theta[2])
        return np.asarray(-0.5 * (df + 1.0) * np.log1p(z * z / df) - constant)

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln F₀(z)."""
        return self._tail(-self._z(x, theta), theta[0])

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln F₀(−z)."""
        return self._tail(self._z(x, theta), theta[0])

    def score(self, x: Array, theta: Array) -> Array:
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

    def velocity(self, x: Array, theta: Array) -> Array:
        """1 and z with location and scale; with ν there is no formula."""
        return np.array([np.zeros_like(x), np.ones_like(x), self._z(x, theta)])

    def start(self, sample: Sample) -> Array:
        """ν by the kurtosis, between 3 and 30; median and the scale that goes with them."""
        x = sample.representatives()
        mean = float(np.average(x, weights=sample.weight))
        rest = x - mean
        rest = rest / (float(np.max(np.abs(rest))) or 1.0) if np.max(np.abs(rest)) > 1e60 else rest
        second = float(np.average(rest**2, weights=sample.weight)) or 1.0
        excess = float(np.average(rest**4, weights=sample.weight)) / second**2 - 3.0
        df = float(np.clip(4.0 + 6.0 / excess, 3.0, 30.0)) if excess > 0 else 30.0
        spread = min(float(np.sqrt(second * (df - 2.0) / df)), 1.4826)  # in units of half the interquartile range
        return np.array([df, 0.0 if spread == 1.4826 else mean, spread])

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

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Values of t."""
        noise = rng.standard_normal(size) if np.isinf(theta[0]) else rng.standard_t(theta[0], size)
        return np.asarray(theta[1] + theta[2] * noise)

    def _z(self, x: Array, theta: Array) -> Array:
        return np.asarray((x - theta[1]) / theta[2])

    def _tail(self, z: Array, df: float) -> Array:
        """ln P(T > z): half the incomplete beta function of z²/(ν + z²) beyond |z|."""
        if np.isinf(df):
            return np.asarray(log_ndtr(-z))
        size = np.minimum(np.abs(z), 1e150)
        y = size * size / (df + size * size)
        beyond = np.where(np.isinf(z), -np.inf, log_beta_q(0.5, 0.5 * df, y)) - np.log(2.0)
        return np.asarray(np.where(z >= 0, beyond, np.log1p(-np.exp(beyond))))
