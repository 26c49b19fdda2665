"""Families of positive numbers: exponential, Weibull, lognormal, gamma."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, log_ndtr, xlogy

from gramian.likelihood.families.base import (
    LARGE,
    POSITIVE,
    Boundary,
    Concentration,
    Family,
    NoMaximumError,
    Parameter,
    Unit,
    log1mexp,
    log1pmx,
    log_gamma_p,
    log_gamma_q,
    log_less_digamma,
    moments,
    stirling,
)
from gramian.likelihood.families.line import LOG_2PI
from gramian.likelihood.sample import INF, Sample

Array = npt.NDArray[np.float64]


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
