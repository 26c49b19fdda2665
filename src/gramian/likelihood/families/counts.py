"""Families of counts: Bernoulli, binomial, Poisson, geometric, negative binomial."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, xlog1py, xlogy

from gramian.likelihood.families.base import (
    LARGE,
    POSITIVE,
    UNIT,
    Boundary,
    Family,
    Limit,
    NoMaximumError,
    Parameter,
    log1mexp,
    log1pmx,
    log_beta_p,
    log_beta_q,
    log_gamma_p,
    log_gamma_q,
    log_poisson,
)
from gramian.likelihood.sample import INF, Sample

Array = npt.NDArray[np.float64]
AT_END = "the maximum is at {} = {:g}; interval by profile"


class CountFamily(Family):
    """Whole numbers from ``low`` on; what is outside has probability 0."""

    discrete = True
    low = 0.0
    begin = (0.01, 0.99)  # between which θ the search begins
    most: ClassVar[float] = 1e150  # counts whose squares are numbers

    def check(self, sample: Sample) -> None:
        """Refuse what is no count, or too large a one to be worked with."""
        super().check(sample)
        ends = np.stack([sample.lower, sample.upper])
        self._refuse(sample, np.any(np.isfinite(ends) & (np.abs(ends) > self.most), axis=0), "too large a count")

    def log_mass(self, k: Array, theta: Array) -> Array:
        """ln P(X = k) for k in the support."""
        raise TypeError("a family supplies this")

    def log_density(self, x: Array, theta: Array) -> Array:
        """ln P(X = x), −∞ outside the support."""
        outside = (x < self.low) | (x > self.high) | (x != np.floor(x))
        return np.where(outside, -INF, self.log_mass(np.clip(np.floor(x), self.low, self.high), theta))

    def log_tail(self, k: Array, theta: Array, above: bool) -> Array:
        """ln P(X > k), or ln P(X ≤ k), for k in the support below its end."""
        raise TypeError("a family supplies this")

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln P(X ≤ x)."""
        return self._tail(x, theta, above=False)

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln P(X > x)."""
        return self._tail(x, theta, above=True)

    def _tail(self, x: Array, theta: Array, above: bool) -> Array:
        k = np.floor(x)
        inside = (k >= self.low) & (k < self.high)
        certain = np.where((x < self.low) == above, 0.0, -INF)
        return np.where(inside, self.log_tail(np.where(inside, k, self.low), theta, above), certain)

    def start(self, sample: Sample) -> Array:
        """The formula for points, of one value for each record and away from the ends of the range."""
        return np.asarray(np.clip(self.closed_form(sample), *self.begin))  # type: ignore[arg-type]

    def mean(self, sample: Sample) -> float:
        """The mean of one value for each record."""
        return float(np.average(sample.representatives(self.low, self.high), weights=sample.weight))

    def at_end(self, sample: Sample, k: float, theta: float, values: str, shown: str) -> Boundary | None:
        """The maximum at θ, where all records are, or may be, the value k that goes with it."""
        seen = sample.observed()
        may_be = np.where(seen.exact, seen.lower == k, (seen.lower < k) & (k <= seen.upper))
        if sample.truncated or not may_be.all():
            return None
        what = f"all {values} {'are' if seen.exact.all() else 'may be'} {shown}"
        return Boundary(np.array([theta]), f"{what}: {AT_END.format(self.names[0], theta)}")


def refuse_unbounded(seen: Sample, name: str) -> None:
    """Raise where a parameter grows without end: all counts are censored, or are the largest that could be seen."""
    if np.all(seen.exact & (seen.lower == np.floor(seen.right))):
        what = "the largest that truncated lets be seen"
    elif np.all(seen.upper == INF):
        what = "censored on the right"
    else:
        return
    raise NoMaximumError(f"All counts are {what}: the likelihood grows to 1 as {name} → ∞, without a maximum.")


class Binomial(CountFamily):
    r"""The binomial family, :math:`P(k) = \binom nk\theta^k(1-\theta)^{n-k}` with n known; parameter ``theta``.

    For points θ̂ = Σwk/(nΣw).

    Parameters
    ----------
    n : int
        The number of trials behind each observation.

    Examples
    --------
    >>> from gramian.likelihood import Binomial, fit
    >>> fit(Binomial(10), [3, 5, 4]).estimates
    {'theta': 0.4}
    """

    name = "binomial"
    parameters = (Parameter("theta", UNIT),)
    words = ("trials", "successes", "failures")

    def __init__(self, n: int) -> None:
        if np.ndim(n) or isinstance(n, str):
            raise ValueError(f"n must be one number of trials, the same behind every observation; got {n!r}.")
        if int(n) != n or n < 1:
            raise ValueError(f"n must be a whole number of trials, at least 1; got {n!r}.")
        self.n = int(n)
        self.high = float(n)

    def log_mass(self, k: Array, theta: Array) -> Array:
        """The binomial coefficient and the powers; of many trials a ratio of Poisson's, where large terms cancel."""
        if self.n >= LARGE:
            n, t = float(self.n), float(theta[0])
            all_of_them = log_poisson(np.array([n]), n)[0]
            return np.asarray(log_poisson(k, n * t) + log_poisson(n - k, n * (1.0 - t)) - all_of_them)
        choices = -betaln(k + 1.0, self.n - k + 1.0) - np.log(self.n + 1.0)
        # eq: bernoulli-density
        return np.asarray(choices + xlogy(k, theta[0]) + xlog1py(self.n - k, -theta[0]))

    def log_tail(self, k: Array, theta: Array, above: bool) -> Array:
        """ln I_θ(k+1, n−k), or ln(1 − I_θ(k+1, n−k))."""
        return (log_beta_p if above else log_beta_q)(k + 1.0, self.n - k, np.full_like(k, theta[0]))

    def score(self, x: Array, theta: Array) -> Array:
        """k/θ − (n−k)/(1−θ)."""
        return np.array([x / theta[0] - (self.n - x) / (1.0 - theta[0])])

    def closed_form(self, sample: Sample) -> Array:
        """The share of successes."""
        # eq: bernoulli-estimate
        return np.array([self.mean(sample) / self.n])

    def boundary(self, sample: Sample) -> Boundary | None:
        """Successes only, or failures only."""
        trials, successes, failures = self.words
        every = self.at_end(sample, self.n, 1.0, trials, successes)
        return every or self.at_end(sample, 0.0, 0.0, trials, failures)

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Binomial values."""
        return rng.binomial(self.n, theta[0], size).astype(np.float64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n})"


class Bernoulli(Binomial):
    r"""The Bernoulli family, the coin: P(1) = θ, P(0) = 1 − θ; parameter ``theta``. θ̂ is the share of ones.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("bernoulli", [1, 0, 1, 1]).estimates
    {'theta': 0.75}
    """

    name = "bernoulli"
    words = ("flips", "heads", "tails")

    def __init__(self) -> None:
        super().__init__(1)

    def __repr__(self) -> str:
        return "Bernoulli()"


class Poisson(CountFamily):
    r"""The Poisson family, :math:`P(k) = \lambda^ke^{-\lambda}/k!`; parameter ``rate``. λ̂ is the mean.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("poisson", [2, 0, 4]).estimates
    {'rate': 2.0}
    """

    name = generator = "poisson"
    parameters = (Parameter("rate", POSITIVE),)
    begin = (0.1, INF)

    def log_mass(self, k: Array, theta: Array) -> Array:
        """k ln λ − λ − ln k!."""
        return log_poisson(k, theta[0])

    def log_tail(self, k: Array, theta: Array, above: bool) -> Array:
        """ln P(k+1, λ), or ln Q(k+1, λ)."""
        return (log_gamma_p if above else log_gamma_q)(k + 1.0, theta[0])

    def score(self, x: Array, theta: Array) -> Array:
        """k/λ − 1."""
        return np.array([x / theta[0] - 1.0])

    def closed_form(self, sample: Sample) -> Array:
        """The mean."""
        return np.array([self.mean(sample)])

    def boundary(self, sample: Sample) -> Boundary | None:
        """Zeros only."""
        zeros = self.at_end(sample, 0.0, 0.0, "counts", "0")
        if zeros is None:
            refuse_unbounded(sample.observed(), "rate")
        return zeros


class Geometric(CountFamily):
    r"""The geometric family, :math:`P(k) = (1-\theta)^{k-f}\theta`, k = f, f+1, …; parameter ``theta``.

    The number of trials up to the first success (``first`` f = 1, as in scipy), or of failures before it (f = 0, as in
    R). For points θ̂ = 1/(mean − f + 1).

    Parameters
    ----------
    first : {1, 0}, default=1
        The smallest value.

    Examples
    --------
    >>> from gramian.likelihood import Geometric, fit
    >>> fit("geometric", [1, 3, 2]).estimates, fit(Geometric(first=0), [0, 2, 1]).estimates
    ({'theta': 0.5}, {'theta': 0.5})
    """

    name = "geometric"
    most = INF
    parameters = (Parameter("theta", UNIT),)
    begin = (0.001, 0.99)

    def __init__(self, first: int = 1) -> None:
        if first not in (0, 1):
            raise ValueError(
                f"first must be 0 (failures before the first success) or 1 (trials up to it); got {first!r}."
            )
        self.first = int(first)
        self.low = float(first)

    def log_mass(self, k: Array, theta: Array) -> Array:
        """(k−f) ln(1−θ) + ln θ."""
        with np.errstate(divide="ignore"):
            return np.asarray(xlog1py(k - self.low, -theta[0]) + np.log(theta[0]))

    def log_tail(self, k: Array, theta: Array, above: bool) -> Array:
        """(k−f+1) ln(1−θ), or ln(1 − (1−θ)^(k−f+1))."""
        tail = xlog1py(k - self.low + 1.0, -theta[0])
        return np.asarray(tail if above else log1mexp(tail))

    def score(self, x: Array, theta: Array) -> Array:
        """1/θ − (k−f)/(1−θ)."""
        return np.array([1.0 / theta[0] - (x - self.low) / (1.0 - theta[0])])

    def closed_form(self, sample: Sample) -> Array:
        """1/(mean − f + 1)."""
        return np.array([1.0 / (self.mean(sample) - self.low + 1.0)])

    def boundary(self, sample: Sample) -> Boundary | None:
        """The first value only; or none seen."""
        first = self.at_end(sample, self.low, 1.0, "values", f"{self.low:g}")
        if first is None and np.all(sample.observed().upper == INF) and not sample.truncated:
            note = f"all observations are censored, no success was seen: {AT_END.format('theta', 0.0)}"
            return Boundary(np.array([0.0]), note)
        return first

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Geometric values."""
        return rng.geometric(theta[0], size).astype(np.float64) - 1.0 + self.low


class NegativeBinomial(CountFamily):
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
    limit: Limit = Limit(
        0,
        Poisson(),
        "the variance is not above the mean: the likelihood grows with size without end, and the maximum is at "
        "size = ∞, the Poisson family",
    )

    def log_mass(self, k: Array, theta: Array) -> Array:
        """The coefficient and the powers; Poisson's where r = ∞."""
        size, mean = theta
        if np.isinf(size):
            return log_poisson(k, mean)
        # r/n of n = k + r trials, of which k fail: a ratio of Poisson's, where large terms cancel (Loader 2000)
        n, share = k + size, 1.0 / (size + mean)
        trials = log_poisson(size, n * (size * share)) + log_poisson(k, n * (mean * share)) - log_poisson(n, n)
        return np.asarray(np.log(size / n) + trials)

    def log_tail(self, k: Array, theta: Array, above: bool) -> Array:
        """ln I_q(k+1, r), or ln(1 − I_q(k+1, r)), q = 1 − p."""
        if np.isinf(theta[0]):
            return Poisson().log_tail(k, theta[1:], above)
        q = np.full_like(k, theta[1] / (theta[0] + theta[1]))
        return (log_beta_p if above else log_beta_q)(k + 1.0, theta[0], q)

    def score(self, x: Array, theta: Array) -> Array:
        """ψ(k+r) − ψ(r) − ln(1+μ/r) + (μ−k)/(r+μ) and (k−μ)r/(μ(r+μ))."""
        size, mean = theta
        if size < LARGE:
            by_size = digamma(x + size) - digamma(size) - np.log1p(mean / size) + (mean - x) / (size + mean)
        else:  # the series of digamma; its logarithms and the last term are ln(1 + d) − d
            top = size + x
            series = x / (2.0 * size * top) + x * (size + top) / (12.0 * size**2 * top**2)
            by_size = log1pmx((x - mean) / (size + mean)) + series - (size**-4.0 - top**-4.0) / 120.0
        return np.array([by_size, (x - mean) * size / (mean * (size + mean))])

    def start(self, sample: Sample) -> Array:
        """The moments: r = μ²/(v − μ)."""
        x = sample.representatives(0.0)
        mean = max(self.mean(sample), 0.1)
        with np.errstate(over="ignore"):
            variance = float(np.average((x - mean) ** 2, weights=sample.weight))
        return np.array([float(np.clip(mean**2 / max(variance - mean, 1e-9), 0.05, 100.0)), mean])

    def boundary(self, sample: Sample) -> Boundary | None:
        """The Poisson limit, and zeros only."""
        seen = sample.observed()
        mean = self.mean(seen)
        size = max(float(np.max(np.abs(seen.lower), where=seen.exact, initial=1.0)), 1.0)  # squares must not overflow
        if seen.plain and np.average(((seen.lower - mean) / size) ** 2, weights=seen.weight) <= mean / size / size:
            if mean == 0.0:
                raise NoMaximumError("All counts are 0: any size fits as well with mean = 0. Fit the poisson family.")
            return Boundary(np.array([INF, mean]), self.limit.note)
        refuse_unbounded(seen, "mean")
        return None

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Counts whose Poisson rates are gamma."""
        rates = theta[1] if np.isinf(theta[0]) else rng.gamma(theta[0], theta[1] / theta[0], size)
        return rng.poisson(rates, size).astype(np.float64)
