"""Families of numbers: on the whole line, of positive numbers, on the unit interval and on the circle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, gammaln, i0e, i1e, log_expit, log_ndtr, logsumexp, xlog1py, xlogy

from gramian.likelihood.families.base import (
    LARGE,
    POSITIVE,
    Boundary,
    Concentration,
    Family,
    Limit,
    NoMaximumError,
    Parameter,
    Unit,
    log1mexp,
    log1pmx,
    log_beta_p,
    log_beta_q,
    log_gamma_p,
    log_gamma_q,
    log_less_digamma,
    mean_size,
    moments,
    nodes,
    stirling,
)
from gramian.likelihood.sample import INF, Sample

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
            outside = -near - np.log(2.0) + log1mexp(-width)
            across = np.log(-0.5 * (np.expm1(np.minimum(z, 0.0)) + np.expm1(-np.maximum(top, 0.0))))
        return np.asarray(np.where(near >= 0, outside, across))

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


class _Positive(Family):
    """Values above 0."""

    low = 0.0
    open_low = True
    concentration = Concentration("shape → ∞")

    def logs(self, sample: Sample) -> tuple[float, float, float]:
        """Mean, mean of the logarithm and its standard deviation, for one value for each record."""
        x = sample.representatives(0.0)
        x = np.where(x > 0, x, 1e-3 * float(np.max(x)) or 1.0)  # what lies between 0 and 0
        centre, variance = moments(np.log(x), sample.weight)
        return float(np.average(x, weights=sample.weight)), centre, max(float(np.sqrt(variance)), 1e-3)

    def unit_by_logarithms(self, sample: Sample) -> Unit:
        """The middle of the logarithms of the data for a unit: values of all sizes stay numbers there."""
        x = sample.representatives(0.0)
        powers = np.frexp(x[x > 0])[1]
        return Unit.of(2.0 ** (int(powers.min() + powers.max()) // 2)) if len(powers) else Unit()


class Exponential(_Positive):
    r"""The exponential family, :math:`f(x) = \lambda e^{-\lambda x}`; parameter ``rate``.

    For points and right-censored times λ̂ = events / total time.

    Examples
    --------
    >>> from gramian.likelihood import Censored, fit
    >>> fit("exponential", Censored([1.0, 2.0, 5.0], event=[1, 1, 0])).estimates
    {'rate': 0.25}
    """

    name = "exponential"
    parameters = (Parameter("rate", POSITIVE, "rate"),)
    open_low = False

    def log_density(self, x: Array, theta: Array) -> Array:
        """ln λ − λx."""
        return np.where(x < 0, -INF, np.log(theta[0]) - theta[0] * x)

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln(1 − e^(−λx))."""
        return log1mexp(self.log_sf(x, theta))

    def log_sf(self, x: Array, theta: Array) -> Array:
        """−λx, and −∞ at ∞ even where λ = 0."""
        return np.where(np.isposinf(x), -INF, -theta[0] * np.clip(x, 0.0, np.finfo(np.float64).max))

    def score(self, x: Array, theta: Array) -> Array:
        """1/λ − x."""
        return np.array([1.0 / theta[0] - x])

    def velocity(self, x: Array, theta: Array) -> Array:
        """−x/λ."""
        return np.array([-x / theta[0]])

    def closed_form(self, sample: Sample) -> Array:
        """1/mean."""
        return np.array([1.0 / np.average(sample.lower, weights=sample.weight)])

    def start(self, sample: Sample) -> Array:
        """Events over total time: the maximum, if no interval has two ends."""
        seen = sample.exact | np.isfinite(sample.upper)
        time = sample.weight @ sample.representatives(0.0)
        return np.array([max(float(sample.weight @ seen), 0.5) / time])

    def boundary(self, sample: Sample) -> Boundary | None:
        """No event: λ = 0. All of them at 0: none."""
        seen = sample.observed()
        if np.all(seen.lower <= 0.0) and seen.exact.any():
            verb = "are" if seen.exact.all() else "may be"
            values = "The 1 sample there is, is 0" if len(seen.lower) == 1 else f"All values {verb} 0"
            raise NoMaximumError(f"{values}: the likelihood of the exponential family grows without bound as rate → ∞.")
        if np.all(seen.upper == INF) and not sample.truncated:
            note = (
                "all observations are censored and no event was seen: the maximum is at rate = 0; interval by profile"
            )
            return Boundary(np.array([0.0]), note)
        return None

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Exponential values."""
        return np.asarray(rng.exponential(1.0 / theta[0], size))


class Weibull(_Positive):
    r"""The Weibull family, :math:`S(x) = e^{-(x/s)^k}`; parameters ``shape`` k, ``scale`` s.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("weibull", [1.0, 2.0, 3.0, 4.0])
    >>> round(est.estimates["shape"], 4), round(est.estimates["scale"], 4)
    (2.4532, 2.8287)
    """

    name = "weibull"
    unit = _Positive.unit_by_logarithms
    parameters = (Parameter("shape", POSITIVE), Parameter("scale", POSITIVE, "scale"))
    concentration = Concentration("shape → ∞", centre=1, width=0)

    def log_density(self, x: Array, theta: Array) -> Array:
        """ln k − ln s + (k−1) ln(x/s) − (x/s)ᵏ."""
        k, s = theta
        with np.errstate(divide="ignore"):
            y = np.log(np.maximum(x, 0.0) / s)
        return np.where(x < 0, -INF, np.log(k / s) + _times(k - 1.0, y) - np.exp(k * y))

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln(1 − e^(−u))."""
        return log1mexp(-self._u(x, theta))

    def log_sf(self, x: Array, theta: Array) -> Array:
        """−u, with u = (x/s)ᵏ."""
        return -self._u(x, theta)

    def score(self, x: Array, theta: Array) -> Array:
        """1/k + (1 − u) ln(x/s) and (u − 1)k/s."""
        k, s = theta
        u = self._u(x, theta)
        return np.array([1.0 / k + (1.0 - u) * np.log(x / s), (u - 1.0) * k / s])

    def velocity(self, x: Array, theta: Array) -> Array:
        """−(x/k) ln(x/s) and x/s."""
        k, s = theta
        return np.array([-xlogy(x, x / s) / k, x / s])

    def start(self, sample: Sample) -> Array:
        """From the logarithms, whose standard deviation is π/(√6 k)."""
        _, centre, sd = self.logs(sample)
        k = np.pi / np.sqrt(6.0) / sd
        return np.array([k, np.exp(centre + np.euler_gamma / k)])

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Weibull values."""
        return np.asarray(theta[1] * rng.weibull(theta[0], size))

    def _u(self, x: Array, theta: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray((np.maximum(x, 0.0) / theta[1]) ** theta[0])


class LogNormal(_Positive):
    r"""The lognormal family: ln x is normal; parameters ``meanlog``, ``sdlog``.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("lognormal", [1.0, 10.0, 100.0]).estimates["meanlog"].__round__(6)
    2.302585
    """

    name = generator = "lognormal"
    unit = _Positive.unit_by_logarithms
    parameters = (Parameter("meanlog", kind="log"), Parameter("sdlog", POSITIVE))
    concentration = Concentration("sdlog → 0", centre=0, width=1)

    def log_density(self, x: Array, theta: Array) -> Array:
        """The normal density of ln x, less ln x."""
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.log(x)
            z = (y - theta[0]) / theta[1]
            return np.where(x <= 0, -INF, -0.5 * (z * z + LOG_2PI) - np.log(theta[1]) - y)

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln Φ(z)."""
        return np.asarray(log_ndtr(self._z(x, theta)))

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln Φ(−z)."""
        return np.asarray(log_ndtr(-self._z(x, theta)))

    def score(self, x: Array, theta: Array) -> Array:
        """z/σ and (z² − 1)/σ."""
        z = self._z(x, theta)
        return np.array([z / theta[1], (z * z - 1.0) / theta[1]])

    def velocity(self, x: Array, theta: Array) -> Array:
        """x and xz."""
        return np.array([x, np.where(x > 0, x * self._z(np.maximum(x, 1e-300), theta), 0.0)])

    def closed_form(self, sample: Sample) -> Array:
        """Mean and standard deviation of the logarithms."""
        mean, variance = moments(np.log(sample.lower), sample.weight)
        return np.array([mean, np.sqrt(variance)])

    def start(self, sample: Sample) -> Array:
        """The same of one value for each record."""
        return np.array(self.logs(sample)[1:])

    def check_fixed(self, sample: Sample, fixed: dict[str, float]) -> None:
        """Refuse samples whose logarithms are one value, that of the mean where it is held."""
        with np.errstate(divide="ignore"):
            a, b = (np.log(np.maximum(side, 0.0)) for side in (sample.lower, sample.upper))
        super().check_fixed(Sample(a, b, sample.weight, sample.left, sample.right), fixed)

    def _z(self, x: Array, theta: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray((np.log(np.maximum(x, 0.0)) - theta[0]) / theta[1])


class Gamma(_Positive):
    r"""The gamma family, :math:`f(x) = \lambda^ax^{a-1}e^{-\lambda x}/\Gamma(a)`; parameters ``shape`` a, ``rate`` λ.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("gamma", [1.0, 2.0, 3.0, 4.0])
    >>> round(est.estimates["shape"] / est.estimates["rate"], 6)
    2.5
    """

    name = "gamma"
    parameters = (Parameter("shape", POSITIVE), Parameter("rate", POSITIVE, "rate"))
    unmoved = (0,)

    def log_density(self, x: Array, theta: Array) -> Array:
        """a ln λ − ln Γ(a) + (a−1) ln x − λx, written about the mean a/λ, where large terms cancel."""
        a, rate = theta
        u = rate * np.maximum(x, 0.0) / a
        with np.errstate(divide="ignore"):
            if a < LARGE:
                power = _times(a - 1.0, np.log(a * u)) - a * u - gammaln(a)
            else:
                power = a * log1pmx(u - 1.0) - np.log(a * u) + stirling(a)
        return np.where(x < 0, -INF, np.log(rate) + power)

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln P(a, λx)."""
        return log_gamma_p(theta[0], theta[1] * np.maximum(x, 0.0))

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln Q(a, λx)."""
        return log_gamma_q(theta[0], theta[1] * np.maximum(x, 0.0))

    def score(self, x: Array, theta: Array) -> Array:
        """ln λ − ψ(a) + ln x and a/λ − x."""
        a, rate = theta
        u = rate * x / a
        log_u = np.log(u) if a < LARGE else np.log1p(u - 1.0)
        return np.array([log_u + log_less_digamma(a), a / rate * (1.0 - u)])

    def velocity(self, x: Array, theta: Array) -> Array:
        """−x/λ with the rate; with a there is no formula."""
        return np.array([np.zeros_like(x), -x / theta[1]])

    def start(self, sample: Sample) -> Array:
        """Minka's approximation, from ln(mean) − mean(ln)."""
        mean, centre, _ = self.logs(sample)
        s = max(np.log(mean) - centre, 1e-6)
        a = (3.0 - s + np.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
        return np.array([a, a / mean])

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Gamma values."""
        return np.asarray(rng.gamma(theta[0], 1.0 / theta[1], size))


def _times(power: float, log_x: Array) -> Array:
    """power · ln x, 0 where the power is 0 and x too."""
    return np.zeros_like(log_x) if power == 0.0 else np.asarray(power * log_x)


PANELS = 4096  # most pieces of an arc that is integrated


class Beta(Family):
    r"""The beta family, :math:`f(x) = x^{a-1}(1-x)^{b-1}/B(a,b)` on (0, 1); parameters ``a``, ``b``.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("beta", [0.2, 0.4, 0.6, 0.8])
    >>> round(est.estimates["a"] - est.estimates["b"], 9) + 0.0
    0.0
    """

    name = generator = "beta"
    parameters = (Parameter("a", POSITIVE), Parameter("b", POSITIVE))
    low, high = 0.0, 1.0
    open_low = open_high = True
    concentration = Concentration("a + b → ∞")

    def log_density(self, x: Array, theta: Array) -> Array:
        """(a−1) ln x + (b−1) ln(1−x) − ln B(a, b)."""
        a, b = theta
        inside = np.clip(x, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            f = xlogy(a - 1.0, inside) + xlog1py(b - 1.0, -inside) - betaln(a, b)
        return np.where((x < 0) | (x > 1), -INF, f)

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln I_x(a, b)."""
        return log_beta_p(theta[0], theta[1], np.clip(x, 0.0, 1.0))

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln(1 − I_x(a, b))."""
        return log_beta_q(theta[0], theta[1], np.clip(x, 0.0, 1.0))

    def score(self, x: Array, theta: Array) -> Array:
        """ln x − ψ(a) + ψ(a+b) and ln(1−x) − ψ(b) + ψ(a+b)."""
        a, b = theta
        return np.array([np.log(x) - digamma(a) + digamma(a + b), np.log1p(-x) - digamma(b) + digamma(a + b)])

    def start(self, sample: Sample) -> Array:
        """The moments: mean m and variance v give a + b = m(1−m)/v − 1."""
        x = np.clip(sample.representatives(0.0, 1.0), 1e-6, 1.0 - 1e-6)
        m, v = moments(x, sample.weight)
        size = max(m * (1.0 - m) / max(v, 1e-12) - 1.0, 0.1)
        return np.array([m * size, (1.0 - m) * size])


class VonMises(Family):
    r"""The von Mises family of angles, :math:`f(x) = e^{\kappa\cos(x-\mu)}/2\pi I_0(\kappa)`.

    Parameters ``mean`` μ in (−π, π] and ``kappa``. For points μ̂ is the direction of the resultant and
    I₁(κ̂)/I₀(κ̂) = R, its length. Intervals are arcs, in radians, no longer than the circle.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("von mises", [0.1, 0.4, -0.2, 0.9])
    >>> round(est.estimates["mean"], 4), round(est.estimates["kappa"], 4)
    (0.2963, 6.5012)
    """

    name = "von mises"
    parameters = (Parameter("mean", kind="angle"), Parameter("kappa", POSITIVE))
    concentration = Concentration("kappa → ∞", centre=0, width=1)

    def log_density(self, x: Array, theta: Array) -> Array:
        """κ(cos(x−μ) − 1) − ln 2πI₀(κ)e^(−κ)."""
        if theta[1] == 0.0:
            return np.full_like(x, -np.log(2.0 * np.pi))
        return np.asarray(-2.0 * theta[1] * np.sin(0.5 * (x - theta[0])) ** 2 - np.log(2.0 * np.pi * i0e(theta[1])))

    def log_interval(self, a: Array, b: Array, theta: Array) -> Array:
        """The arc in pieces of the width of the peak, each by Gauss–Legendre quadrature."""
        longest = float(np.max(b - a, initial=0.0))
        pieces = int(min(1.0 + longest * (1.0 + np.sqrt(theta[1])), PANELS))
        cuts = a + (b - a) * np.arange(pieces + 1)[:, None] / pieces
        x, weight = nodes(cuts[:-1].ravel(), cuts[1:].ravel())
        f = self.log_density(x.ravel(), theta).reshape(len(x), pieces, len(a))
        return np.asarray(logsumexp(f, axis=(0, 1), b=weight.reshape(f.shape)))

    def narrow(self, a: Array, b: Array, theta: Array) -> npt.NDArray[np.bool_]:
        """None of them: all are integrated."""
        return np.zeros(len(a), dtype=bool)

    def score(self, x: Array, theta: Array) -> Array:
        """κ sin(x−μ) and cos(x−μ) − I₁(κ)/I₀(κ)."""
        d = x - theta[0]
        return np.array([theta[1] * np.sin(d), _short(theta[1]) - 2.0 * np.sin(0.5 * d) ** 2])

    def closed_form(self, sample: Sample) -> Array:
        """Direction of the resultant, and κ by Newton's method on its length."""
        C, S = sample.weight @ np.cos(sample.lower), sample.weight @ np.sin(sample.lower)
        mean = float(np.arctan2(S, C))
        short = float(np.average(2.0 * np.sin(0.5 * (sample.lower - mean)) ** 2, weights=sample.weight))
        return np.array([mean, _concentration(short)])

    def start(self, sample: Sample) -> Array:
        """The same of the middles of the arcs."""
        x = sample.representatives()
        points = Sample(x, x, sample.weight, sample.left, sample.right)
        mean, kappa = self.closed_form(points)
        return np.array([mean, float(np.clip(kappa, 0.05, 1e6))])

    def boundary(self, sample: Sample) -> Boundary | None:
        """No maximum where R = 1; the uniform distribution where R = 0."""
        seen = sample.observed()
        if not seen.plain:
            turns = np.where(seen.exact, 0.0, seen.upper - seen.lower)
            self._refuse(seen, ~(turns <= 2.0 * np.pi * (1 + 1e-12)), "longer than the circle, and no arc")
            return super().boundary(seen)
        C, S = (seen.weight @ f(seen.lower) / seen.total for f in (np.cos, np.sin))
        mean = float(np.arctan2(S, C))
        if np.all(np.abs(np.sin(0.5 * (seen.lower - mean))) < 1e-15 * (1.0 + np.abs(seen.lower))):
            number = "There is 1 sample" if len(seen.lower) == 1 else "All angles are equal (R = 1)"
            raise NoMaximumError(f"{number}: the likelihood of the von mises family grows without bound as kappa → ∞.")
        if np.hypot(C, S) < 1e-15 * np.sqrt(len(seen.lower)):
            note = (
                "the resultant is 0: the maximum is at kappa = 0, the uniform distribution, which has no mean direction"
            )
            return Boundary(np.array([np.nan, 0.0]), note)
        return None

    def check(self, sample: Sample) -> None:
        """Refuse windows and intervals without ends."""
        for side in (sample.lower, sample.upper, *((sample.left, sample.right) if sample.truncated else ())):
            if np.isinf(side).any():
                raise ValueError("An arc of angles has two finite ends, in radians; one of them is infinite here.")

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Angles."""
        return np.asarray(rng.vonmises(0.0 if theta[1] == 0.0 else theta[0], theta[1], size))


def _short(kappa: float) -> float:
    """1 − I₁(κ)/I₀(κ), by its series where the two are nearly equal (DLMF 10.40.1)."""
    if kappa < 500.0:
        return float(1.0 - i1e(kappa) / i0e(kappa))
    v = 1.0 / kappa
    return float(v * (0.5 + v * (0.125 + v * (0.125 + v * (25.0 / 128.0 + v * (13.0 / 32.0))))))


def _concentration(short: float) -> float:
    """κ with 1 − I₁(κ)/I₀(κ) = short, by Newton's method in ln κ from Fisher's approximation."""
    R = 1.0 - short
    if R <= 0.0 or short == 0.0:
        return 0.0 if R <= 0.0 else INF
    kappa = 2.0 * R / (1.0 - R**2) if R < 0.5 else 0.5 / short
    for _ in range(50):
        ratio = 1.0 - _short(kappa)
        slope = 1.0 - ratio / kappa - ratio**2  # d/dκ of I₁/I₀
        if kappa >= 500.0:
            slope = 0.5 / kappa**2 * (1.0 + 0.5 / kappa)
        step = (short - _short(kappa)) / (-slope * kappa)
        kappa *= float(np.exp(np.clip(step, -1.0, 1.0)))
        if abs(step) < 1e-15:
            break
    return float(kappa)
