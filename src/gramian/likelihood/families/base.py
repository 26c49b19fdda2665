"""What all families share: ranges of parameters, logarithms of tails, and the base classes Family and Joint."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.special import digamma, expit, gammaln, logit, logsumexp, xlogy

from gramian.likelihood.sample import INF, Sample, as_floats


@dataclass(frozen=True)
class Link:
    """A range (low, high) of a parameter θ, and the coordinate φ in which it has no ends.

    θ = φ, low + e^φ, high − e^(−φ) or low + (high − low)/(1 + e^(−φ)), as the ends are infinite or not.

    Parameters
    ----------
    low, high : float
        Ends of the range; infinite where there is none.

    Examples
    --------
    >>> from gramian.likelihood.families import Link
    >>> Link(0.0, 1.0).natural(0.0)
    0.5
    """

    low: float = -np.inf
    high: float = np.inf

    def natural(self, phi: float) -> float:
        """θ of φ."""
        if isinf(self.low):
            return float(phi if isinf(self.high) else self.high - np.exp(-phi))
        if isinf(self.high):
            return float(self.low + np.exp(phi))
        return float(self.low + (self.high - self.low) * expit(phi))

    def free(self, theta: float) -> float:
        """φ of θ; infinite at the ends of the range."""
        with np.errstate(divide="ignore"):
            if isinf(self.low):
                return float(theta if isinf(self.high) else -np.log(self.high - theta))
            if isinf(self.high):
                return float(np.log(theta - self.low))
            return float(logit((theta - self.low) / (self.high - self.low)))

    def slope(self, phi: float) -> float:
        """dθ/dφ."""
        if isinf(self.low):
            return float(1.0 if isinf(self.high) else np.exp(-phi))
        if isinf(self.high):
            return float(np.exp(phi))
        return float((self.high - self.low) * expit(phi) * expit(-phi))

    def holds(self, theta: float) -> bool:
        """Whether θ lies inside the range."""
        return self.low < theta < self.high


REAL, POSITIVE, UNIT = Link(), Link(0.0), Link(0.0, 1.0)


Array = npt.NDArray[np.float64]

TINY = 1e-280  # below this scipy's functions near their underflow
TERMS = 500  # most terms of an expansion


def log1mexp(x: Array) -> Array:
    """ln(1 − eˣ) for x ≤ 0, to full relative accuracy at both ends (Mächler 2012)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > -np.log(2.0), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_gamma_p(a: Array | float, x: Array | float) -> Array:
    """ln P(a, x), the lower incomplete gamma function."""
    return _with_tail(special.gammainc, _gamma_series, a, x)


def log_gamma_q(a: Array | float, x: Array | float) -> Array:
    """ln Q(a, x), the upper incomplete gamma function."""
    return _with_tail(special.gammaincc, _gamma_fraction, a, x)


def log_beta_p(a: Array | float, b: Array | float, x: Array) -> Array:
    """ln I_x(a, b), the incomplete beta function."""
    return _with_tail(special.betainc, _beta_fraction, a, b, x)


def log_beta_q(a: Array | float, b: Array | float, x: Array) -> Array:
    """ln(1 − I_x(a, b))."""
    return _with_tail(special.betaincc, lambda a, b, x: _beta_fraction(b, a, 1.0 - x, np.log1p(-x), np.log(x)), a, b, x)


def _with_tail(function: Callable[..., Array], expansion: Callable[..., Array], *arguments: Array | float) -> Array:
    values = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in arguments))
    with np.errstate(divide="ignore"):
        direct = np.atleast_1d(function(*values))
        result = np.log(direct)
    x = values[-1]
    inside = (x > 0) & (x < np.inf) if len(values) == 2 else (x > 0) & (x < 1)
    small = np.atleast_1d((direct < TINY) & inside)
    if small.any():
        result[small] = expansion(*(np.atleast_1d(v)[small] for v in values))
    return result.reshape(x.shape)


def _gamma_series(a: Array, x: Array) -> Array:
    """ln of xᵃe⁻ˣ/Γ(a+1) (1 + x/(a+1) + x²/((a+1)(a+2)) + …)."""
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(1, TERMS):
        term = term * x / (a + k)
        total = total + term
        if np.all(term < 1e-17 * total):
            break
    return np.asarray(a * np.log(x) - x - special.gammaln(a + 1.0) + np.log(total))


def _gamma_fraction(a: Array, x: Array) -> Array:
    """ln of e⁻ˣxᵃ/Γ(a) · 1/(x+1−a − 1(1−a)/(x+3−a − 2(2−a)/(x+5−a − …)))."""
    fraction = _lentz(lambda k: (k * (a - k), x + 2.0 * k + 1.0 - a), x + 1.0 - a)
    return np.asarray(a * np.log(x) - x - special.gammaln(a) - np.log(fraction))


def _beta_fraction(a: Array, b: Array, x: Array, log_x: Array | None = None, log_y: Array | None = None) -> Array:
    """ln of xᵃ(1−x)ᵇ/(a B(a, b)) · 1/(1 + d₁/(1 + d₂/(1 + …)))."""

    def term(k: int) -> tuple[Array, Array]:
        m = k // 2
        if k % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        return d, np.ones_like(x)

    lx = np.log(x) if log_x is None else log_x
    ly = np.log1p(-x) if log_y is None else log_y
    fraction = _lentz(term, np.ones_like(x))
    return np.asarray(a * lx + b * ly - np.log(a) - special.betaln(a, b) - np.log(fraction))


def _lentz(term: Callable[[int], tuple[Array, Array]], first: Array) -> Array:
    """The continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) by the modified method of Lentz."""
    f, C, D = first.copy(), first.copy(), np.zeros_like(first)
    for k in range(1, TERMS):
        a, b = term(k)
        D = 1.0 / _not_zero(b + a * D)
        C = _not_zero(b + a / C)
        f = f * C * D
        if np.all(np.abs(C * D - 1.0) < 1e-16):
            break
    return f


def _not_zero(x: Array) -> Array:
    return np.where(x == 0.0, 1e-300, x)


LARGE = 100.0  # where three terms of the asymptotic series have full accuracy


def log1pmx(x: Array) -> Array:
    """ln(1 + x) − x, by its series where x is small."""
    near = np.abs(x) < 0.05
    t = np.where(near, x, 0.0)
    series = np.zeros_like(t)
    for k in range(14, 1, -1):
        series = t * series + (-1.0) ** (k + 1) / k
    with np.errstate(divide="ignore"):
        return np.where(near, t * t * series, np.log1p(np.where(near, 0.0, x)) - x)


def stirling(a: float) -> float:
    """a ln a − a − ln Γ(a), which is ln(a/2π)/2 − 1/(12a) + 1/(360a³) − …"""
    if a < LARGE:
        return float(a * np.log(a) - a - gammaln(a))
    return float(0.5 * np.log(a / (2.0 * np.pi)) - 1.0 / (12.0 * a) + 1.0 / (360.0 * a**3) - 1.0 / (1260.0 * a**5))


def log_less_digamma(a: float) -> float:
    """ln a − ψ(a), which is 1/(2a) + 1/(12a²) − 1/(120a⁴) + …"""
    if a < LARGE:
        return float(np.log(a) - digamma(a))
    return float(1.0 / (2.0 * a) + 1.0 / (12.0 * a**2) - 1.0 / (120.0 * a**4) + 1.0 / (252.0 * a**6))


def log_poisson(k: Array | float, rate: float | Array) -> Array:
    """k ln λ − λ − ln k!, for large k about its saddle point: k(ln(λ/k) + 1 − λ/k) − ½ ln 2πk − … (Loader 2000)."""
    large = k >= LARGE
    few, many = np.where(large, 0.0, k), np.where(large, k, LARGE)
    direct = xlogy(few, rate) - rate - gammaln(few + 1.0)
    if not np.any(large):
        return np.asarray(direct)
    v = 1.0 / many
    rest = -0.5 * np.log(2.0 * np.pi * many) - v * (1.0 / 12.0 - v * v * (1.0 / 360.0 - v * v / 1260.0))
    return np.where(large, many * log1pmx((rate - many) / many) + rest, direct)


NARROW = 1e-3  # share of the nearer tail below which an interval is integrated: subtraction would cost three digits
FEW = 64  # values of a discrete variable that are summed one by one
NODES = 12  # of Gauss–Legendre quadrature
NARROW_NODES = 5  # of an interval so narrow that its density varies by a thousandth or so: exact to rounding


class NoMaximumError(ValueError):
    """The likelihood of these data has no maximum in this family."""


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name, its range, and what a change of units does to it.

    ``kind`` is "location" (shift + scale·θ), "scale" (scale·θ), "rate" (θ/scale), "log" (θ + ln scale), "angle" or
    "shape" (no change); see :meth:`Family.change_of_units`.

    Parameters
    ----------
    name : str
        Its name.
    link : Link
        Its range.
    kind : {"location", "scale", "rate", "log", "angle", "shape"}
        What a change of units does to it.
    """

    name: str
    link: Link = REAL
    kind: str = "shape"


@dataclass(frozen=True)
class Unit:
    """The units a fit is made in: x = shift + scale·z, with a power of two for a scale, which rounds nothing."""

    shift: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, size: float, shift: float = 0.0) -> Unit:
        """Units in which this size is about 1; those of the data where there is none."""
        known = math.isfinite(size) and size > 0
        return cls(shift, 2.0 ** min(max(math.frexp(size)[1], -1000), 1000) if known else 1.0)


@dataclass(frozen=True, eq=False)
class Boundary:
    """A maximum at the end of the range of the parameters: where, and why."""

    theta: Array
    note: str


@dataclass(frozen=True, eq=False)
class Limit:
    """What a family becomes when one of its parameters grows without end."""

    parameter: int
    family: Family
    note: str


@dataclass(frozen=True)
class Concentration:
    """How a family can put all its probability near one point: a sample of one value then has no maximum.

    ``how`` says what the parameters do, with their names by place: "{1} → 0". ``centre`` is the place of the parameter
    that says where, ``width`` of the one that must be free.
    """

    how: str
    centre: int | None = None
    width: int | None = None


class Family:
    """A family of distributions on the line; subclasses supply the formulas, all of arrays x and one vector θ.

    Attributes
    ----------
    name : str
        What it is called.
    parameters : tuple of Parameter
        In the order of θ.
    discrete : bool
        Whether values are whole numbers, with probabilities for a density.
    low, high : float
        Ends of the support, both inside it for discrete families.
    """

    name: str
    parameters: tuple[Parameter, ...]
    discrete: bool = False
    smooth: ClassVar[bool] = True
    low: float = -INF
    high: float = INF
    open_low: ClassVar[bool] = False  # whether a point at the end of the support has density 0 or ∞
    open_high: ClassVar[bool] = False
    limit: Limit | None = None
    unmoved: ClassVar[tuple[int, ...]] = ()  # parameters with which quantiles move by no formula
    concentration: ClassVar[Concentration | None] = None
    generator: ClassVar[str] = ""  # method of numpy.random.Generator that takes θ

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def notes(self) -> tuple[str, ...]:
        """What every fit of the family should say."""
        return ()

    def read(self, x: Any) -> Array:
        """Numbers as the family takes them."""
        return np.atleast_1d(as_floats(x, "x"))

    def log_density(self, x: Array, theta: Array) -> Array:
        """ln f(x), or ln P(X = x)."""
        raise TypeError("a family supplies this")

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln P(X ≤ x)."""
        raise TypeError("a family supplies this")

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln P(X > x)."""
        raise TypeError("a family supplies this")

    def start(self, sample: Sample) -> Array:
        """Where to begin the search, in the units of the sample."""
        raise TypeError("a family supplies this")

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Random values."""
        return np.asarray(getattr(rng, self.generator)(*theta, size=size), dtype=np.float64)

    def score(self, x: Array, theta: Array) -> Array | None:
        """∂ ln f(x)/∂θ, a row for each parameter; None to have it computed by differences."""
        return None

    def velocity(self, x: Array, theta: Array) -> Array | None:
        """∂x/∂θ of a quantile x: what moves the probability of intervals.

        None to have that computed by differences; rows of the parameters in ``unmoved`` are not used.
        """
        return None

    def closed_form(self, sample: Sample) -> Array | None:
        """The maximum for points without truncation, where it has a formula."""
        return None

    def boundary(self, sample: Sample) -> Boundary | None:
        """The maximum where it lies at the end of the parameters' range; raises where there is none."""
        self.refuse_concentration(sample)
        return None

    def check_fixed(self, sample: Sample, fixed: dict[str, float]) -> None:
        """Raise where there is no maximum although some parameters are held."""
        at = self.concentration
        if at is not None and at.centre is not None and at.width is not None and self.names[at.width] not in fixed:
            self.refuse_concentration(sample, fixed.get(self.names[at.centre]))

    def hold(self, fixed: dict[str, float]) -> tuple[Family, dict[str, float]]:
        """The family in which these parameters are held, and what of them is still to be held."""
        return self, fixed

    def prepare(self, sample: Sample) -> Family:
        """The family as it is fitted to these data."""
        return self

    def check_normalised(self, theta: Array) -> None:
        """Raise where the density does not integrate to 1."""

    def walls(self, sample: Sample) -> dict[int, float]:
        """Values of parameters, by place, at and below which the likelihood is unbounded."""
        return {}

    def log_interval(self, a: Array, b: Array, theta: Array) -> Array:
        """ln P(a < X ≤ b)."""
        if self.discrete:
            return self._log_sum(np.floor(a), np.floor(b), theta)
        tails, P = self._by_tails(a, b, theta)
        narrow = (tails < NARROW) & np.isfinite(a) & np.isfinite(b)
        if self.smooth and narrow.any():
            x, weight = nodes(a[narrow], b[narrow], NARROW_NODES)
            inside = self.log_density(x.ravel(), theta).reshape(x.shape)
            top = np.max(inside, axis=0)
            with np.errstate(invalid="ignore"):  # of −∞, which stays
                P[narrow] = np.where(np.isneginf(top), top, top + np.log(np.sum(weight * np.exp(inside - top), axis=0)))
        return P

    def narrow(self, a: Array, b: Array, theta: Array) -> npt.NDArray[np.bool_]:
        """Which intervals are so narrow that they are integrated."""
        if self.discrete or not self.smooth:
            return np.zeros(len(a), dtype=bool)
        return np.asarray((self._by_tails(a, b, theta)[0] < NARROW) & np.isfinite(a) & np.isfinite(b))

    def _by_tails(self, a: Array, b: Array, theta: Array) -> tuple[Array, Array]:
        """P(a < X ≤ b) as a share of the nearer tail, and its logarithm."""
        with np.errstate(invalid="ignore", divide="ignore"):
            below, above = self.log_cdf(b, theta), self.log_sf(a, theta)
            left = log1mexp(self.log_cdf(a, theta) - below)
            right = log1mexp(self.log_sf(b, theta) - above)
        from_left = below < above
        share = np.where(from_left, left, right)
        total = np.where(from_left, below, above)
        share = np.where(np.isneginf(total), -INF, share)
        return np.exp(share), np.where(np.isneginf(share), -INF, total + share)

    def _log_sum(self, a: Array, b: Array, theta: Array) -> Array:
        """The same for whole numbers: few are summed, many are a difference of tails."""
        a, b = np.maximum(a, self.low - 1), np.minimum(b, self.high)
        P = self._by_tails(a, b, theta)[1]
        few = b - a <= FEW
        if few.any():
            k = a[few] + 1 + np.arange(FEW)[:, None]
            terms = np.where(k <= b[few], self.log_density(np.minimum(k, b[few]).ravel(), theta).reshape(k.shape), -INF)
            P[few] = logsumexp(np.where(b[few] > a[few], terms, -INF), axis=0)
        return P

    def unit(self, sample: Sample) -> Unit:
        """The units in which the data are of order 1, as far as the family can follow."""
        kinds = {parameter.kind for parameter in self.parameters}
        x, w = sample.representatives(self.low, self.high), sample.weight / np.max(sample.weight)
        if "location" in kinds:  # median, and half the width of the middle half (or the spread of all, where that is 0)
            order = np.argsort(x, kind="stable")
            below = np.cumsum(w[order])
            low, median, high = (float(x[order[np.searchsorted(below, q * below[-1])]]) for q in (0.25, 0.5, 0.75))
            return Unit.of(0.5 * high - 0.5 * low or mean_size(0.5 * x - 0.5 * median, w), median)
        return Unit.of(mean_size(x, w)) if kinds & {"scale", "rate", "log"} else Unit()

    def to_units(self, theta: Array, unit: Unit) -> Array:
        """θ in the units of the data, from θ in units of order 1."""
        shift, factor = self.change_of_units(unit)
        return np.asarray(shift + factor * theta)

    def from_units(self, theta: Array, unit: Unit) -> Array:
        """The way back."""
        shift, factor = self.change_of_units(unit)
        return np.asarray((theta - shift) / factor)

    def change_of_units(self, unit: Unit) -> tuple[Array, Array]:
        """Shifts and factors of the parameters: θ in the units of the data is shift + factor·θ."""
        by_kind = {
            "location": (unit.shift, unit.scale),
            "scale": (0.0, unit.scale),
            "rate": (0.0, 1.0 / unit.scale),
            "log": (math.log(unit.scale), 1.0),
        }
        shift, factor = zip(*(by_kind.get(p.kind, (0.0, 1.0)) for p in self.parameters), strict=True)
        return np.array(shift), np.array(factor)

    def check(self, sample: Sample) -> None:
        """Refuse records that are impossible in this family, by name."""
        a, b = sample.lower, sample.upper
        low = (a <= self.low) if self.open_low else (a < self.low)
        high = (b >= self.high) if self.open_high else (b > self.high)
        outside = np.where(
            sample.exact, low | high, (b <= self.low if not self.discrete else b < self.low) | (a >= self.high)
        )
        self._refuse(sample, outside & (sample.weight > 0), f"outside the support {self._support()}")
        if self.discrete:
            self._refuse(sample, sample.exact & (a != np.floor(a)), "no whole number")

    def _refuse(self, sample: Sample, bad: Any, why: str) -> None:
        rows = np.flatnonzero(bad)
        if len(rows):
            i = rows[0]
            value = f"{sample.lower[i]:g}" if sample.exact[i] else f"{sample.lower[i]:g} to {sample.upper[i]:g}"
            raise ValueError(f"Record {i} ({value}) is {why} of the {self.name} family.")

    def _support(self) -> str:
        if self.discrete:
            top = f", {self.high:g}" if np.isfinite(self.high) else ""
            return f"{{{self.low:g}, {self.low + 1:g}, …{top}}}"
        return f"({self.low:g}, {self.high:g})"

    def refuse_concentration(self, sample: Sample, at: float | None = None) -> None:
        """Raise where one value, one interval, or the edge that all classes share, explains all records.

        ``at`` is the only value at which that can be, where the location is held.
        """
        if self.concentration is None:
            return
        how = self.concentration.how.format(*self.names)
        seen = sample.observed()
        points = np.unique(seen.lower[seen.exact])
        a, b = seen.lower[~seen.exact], seen.upper[~seen.exact]
        if len(points):
            point = float(points[0])
            there = at is None or abs(point - at) <= 4.0 * np.finfo(np.float64).eps * max(abs(point), abs(at))
            if len(points) == 1 and np.all((a <= point) & (point <= b)) and there:
                rest = ", which also lies in every censoring interval" if len(a) else ""
                number = "There is 1 sample" if len(seen.lower) == 1 else f"All observed values are {point:g}{rest}"
                raise NoMaximumError(
                    f"{number}: the likelihood of the {self.name} family grows without bound as {how}, so there is no "
                    "maximum. Values that differ are needed, or the width of their rounding: Intervals(x - h, x + h)."
                )
            return
        low, high = float(np.max(a)), float(np.min(b))
        if low < high and (at is None or low < at < high):
            whole = "All observations are censored, and all" if np.isinf([low, high]).any() else "All observations"
            raise NoMaximumError(
                f"{whole} may lie in one interval, {low:g} to {high:g}: as {how} the {self.name} family can put all "
                "its probability there, so the likelihood nears 1 and has no maximum. Finer classes or exact values "
                "are needed."
            )
        # near an edge at which all classes meet any shares of them can be had, and nothing is left for other classes;
        # where they cover the support, any width of the family has these shares
        covered = np.all(a[b == low] <= self.low) and np.all(b[a == low] >= self.high)
        if at is None and low == high and not covered:
            raise NoMaximumError(
                f"All observations lie in classes that meet at {low:g}: as {how} at this edge the {self.name} family "
                "nears their shares, so the likelihood has no maximum. Finer classes or exact values are needed."
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)})"


def nodes(a: Array, b: Array, count: int = NODES) -> tuple[Array, Array]:
    """Points and weights of Gauss–Legendre quadrature over each interval, a column each."""
    half, (points, shares) = 0.5 * (b - a), np.polynomial.legendre.leggauss(count)
    return a + half * (1.0 + points[:, None]), half * shares[:, None]


def mean_size(x: Array, weight: Array) -> float:
    """The weighted mean of |x|, whose sum does not overflow."""
    most = float(np.max(np.abs(x), initial=0.0))
    return most * float(np.average(np.abs(x) / most, weights=weight)) if 0.0 < most < INF else most


def moments(x: Array, weight: Array) -> tuple[float, float]:
    """Weighted mean and variance."""
    mean = float(np.average(x, weights=weight))
    return mean, float(np.average((x - mean) ** 2, weights=weight))


ROOTS = np.linspace(0.0, 1.0, 9)  # of the way to the end of a curve, at which it is evaluated


class Profile(ABC):
    """How far each parameter can go from the maximum before twice the log-likelihood has fallen by so much."""

    @abstractmethod
    def ends(self, j: int, drop: float) -> tuple[float, float]:
        """Where parameter j has lost ``drop``, below and above."""

    def curve(self, j: int, drop: float) -> Array:
        """Values of parameter j and the deviance at each, as two columns, from the one end to the other."""
        points = [(end, root**2 * drop) for root in ROOTS[1:] for end in self.ends(j, root**2 * drop)]
        return np.array(sorted(points))


@dataclass(frozen=True, eq=False)
class FormulaFit:
    """A fit by formula: what an :class:`~gramian.likelihood.Estimate` needs.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    values, covariance : ndarray
        Estimates, and their covariance.
    loglik, n : float
        The log-likelihood and the number of observations.
    n_parameters : int
        How many are free.
    gradient : float
        The score in standard errors, measured where the formula leads.
    profile : Profile
        Of each parameter.
    notes : tuple of str
        What a reader should know.
    passes : int
        How often the data were read.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    loglik: float
    n: float
    n_parameters: int
    gradient: float
    profile: Profile
    notes: tuple[str, ...] = ()
    passes: int = 2


class Joint:
    """A family whose observations are no single numbers."""

    name: str
    discrete: bool = False

    def formula(self, data: Any, sample_weight: Any) -> tuple[Any, FormulaFit]:
        """The family as fitted, and the fit."""
        raise TypeError("a family supplies this")

    def read(self, x: Any) -> Any:
        """Data as the family takes them."""
        raise TypeError("a family supplies this")

    def log_density(self, x: Any, values: Array) -> Array:
        """ln f(x), or ln P(x)."""
        raise TypeError("a family supplies this")

    def draw(self, values: Array, size: int, rng: np.random.Generator) -> Any:
        """Random observations."""
        raise TypeError("a family supplies this")
