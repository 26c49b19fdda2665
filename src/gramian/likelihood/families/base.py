r"""What a family of distributions is: named parameters, a log-density, and probabilities of intervals.

Probabilities of intervals come from the logarithms of the nearer tail, so that none is lost to cancellation,

.. math:: \ln P(a<X\le b) = \ln F(b) + \ln(1 - e^{\ln F(a)-\ln F(b)}) \quad\text{or}\quad
    \ln S(a) + \ln(1 - e^{\ln S(b)-\ln S(a)}),

and of intervals so narrow that these subtract nearly equal numbers by Gauss–Legendre quadrature of the density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from gramian.likelihood.families._links import REAL, Link
from gramian.likelihood.families._tails import log1mexp
from gramian.likelihood.sample import INF, Sample

__all__ = ["NARROW", "Boundary", "Family", "Limit", "NoMaximumError", "Parameter", "Unit", "nodes"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

NARROW = 1e-3  # share of the nearer tail below which an interval is integrated: subtraction would cost three digits
FEW = 64  # values of a discrete variable that are summed one by one
_POINTS, _SHARES = np.polynomial.legendre.leggauss(12)


class NoMaximumError(ValueError):
    """The likelihood of these data has no maximum in this family."""


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name, its range, and what a change of units does to it.

    ``kind`` is "location" (shift + scale·θ), "scale" (scale·θ), "rate" (θ/scale), "log" (θ + ln scale), "angle" or
    "shape" (no change).
    """

    name: str
    link: Link = REAL
    kind: str = "shape"


@dataclass(frozen=True)
class Unit:
    """The units a fit is made in: x = shift + scale·z."""

    shift: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Boundary:
    """A maximum at the end of the range of the parameters: where, and why."""

    theta: Vector
    note: str


@dataclass(frozen=True, eq=False)
class Limit:
    """What a family becomes when one of its parameters grows without end."""

    parameter: int
    family: Family
    note: str


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

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def notes(self) -> tuple[str, ...]:
        """What every fit of the family should say."""
        return ()

    def read(self, x: Any) -> Vector:
        """Numbers as the family takes them."""
        return np.atleast_1d(np.asarray(x, dtype=np.float64))

    def log_density(self, x: Vector, theta: Vector) -> Vector:
        """ln f(x), or ln P(X = x)."""
        raise TypeError("a family supplies this")

    def log_cdf(self, x: Vector, theta: Vector) -> Vector:
        """ln P(X ≤ x)."""
        raise TypeError("a family supplies this")

    def log_sf(self, x: Vector, theta: Vector) -> Vector:
        """ln P(X > x)."""
        raise TypeError("a family supplies this")

    def start(self, sample: Sample) -> Vector:
        """Where to begin the search, in the units of the sample."""
        raise TypeError("a family supplies this")

    def draw(self, theta: Vector, size: int, rng: np.random.Generator) -> Vector:
        """Random values."""
        raise TypeError("a family supplies this")

    def score(self, x: Vector, theta: Vector) -> Matrix | None:
        """∂ ln f(x)/∂θ, a row for each parameter; None to have it computed by differences."""
        return None

    def velocity(self, x: Vector, theta: Vector) -> Matrix | None:
        """∂x/∂θ of a quantile x: what moves the probability of intervals.

        None to have that computed by differences; rows of the parameters in ``unmoved`` are not used.
        """
        return None

    def closed(self, sample: Sample) -> Vector | None:
        """The maximum for points without truncation, where it has a formula."""
        return None

    def boundary(self, sample: Sample) -> Boundary | None:
        """The maximum where it lies at the end of the parameters' range; raises where there is none."""
        return None

    def held(self, sample: Sample, fixed: dict[str, float]) -> None:
        """Raise where there is no maximum although some parameters are held."""

    def walls(self, sample: Sample) -> dict[int, float]:
        """Values of parameters, by place, at and below which the likelihood is unbounded."""
        return {}

    def log_interval(self, a: Vector, b: Vector, theta: Vector) -> Vector:
        """ln P(a < X ≤ b)."""
        if self.discrete:
            return self._log_sum(np.floor(a), np.floor(b), theta)
        tails, P = self._by_tails(a, b, theta)
        narrow = (tails < NARROW) & np.isfinite(a) & np.isfinite(b)
        if self.smooth and narrow.any():
            x, weight = nodes(a[narrow], b[narrow])
            inside = self.log_density(x.ravel(), theta).reshape(x.shape)
            P[narrow] = logsumexp(inside, axis=0, b=weight)
        return P

    def narrow(self, a: Vector, b: Vector, theta: Vector) -> npt.NDArray[np.bool_]:
        """Which intervals are so narrow that they are integrated."""
        if self.discrete or not self.smooth:
            return np.zeros(len(a), dtype=bool)
        return np.asarray((self._by_tails(a, b, theta)[0] < NARROW) & np.isfinite(a) & np.isfinite(b))

    def _by_tails(self, a: Vector, b: Vector, theta: Vector) -> tuple[Vector, Vector]:
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

    def _log_sum(self, a: Vector, b: Vector, theta: Vector) -> Vector:
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
        x = sample.representatives(self.low, self.high)
        if "location" in kinds:
            shift, spread = _middle(x, sample.weight)
            return Unit(shift, spread or 1.0)
        if kinds & {"scale", "rate", "log"}:
            size = float(np.average(np.abs(x), weights=sample.weight))
            return Unit(0.0, size if np.isfinite(size) and size > 0 else 1.0)
        return Unit()

    def to_units(self, theta: Vector, unit: Unit) -> Vector:
        """Θ in the units of the data, from θ in units of order 1."""
        change = {
            "location": lambda t: unit.shift + unit.scale * t,
            "scale": lambda t: unit.scale * t,
            "rate": lambda t: t / unit.scale,
            "log": lambda t: t + np.log(unit.scale),
        }
        return np.array([change.get(p.kind, float)(t) for p, t in zip(self.parameters, theta, strict=True)])

    def from_units(self, theta: Vector, unit: Unit) -> Vector:
        """The way back."""
        change = {
            "location": lambda t: (t - unit.shift) / unit.scale,
            "scale": lambda t: t / unit.scale,
            "rate": lambda t: t * unit.scale,
            "log": lambda t: t - np.log(unit.scale),
        }
        return np.array([change.get(p.kind, float)(t) for p, t in zip(self.parameters, theta, strict=True)])

    def stretch(self, unit: Unit) -> Vector:
        """The derivative of :meth:`to_units`."""
        factors = {"location": unit.scale, "scale": unit.scale, "rate": 1.0 / unit.scale}
        return np.array([factors.get(parameter.kind, 1.0) for parameter in self.parameters])

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)})"


def nodes(a: Vector, b: Vector) -> tuple[Matrix, Matrix]:
    """Points and weights of Gauss–Legendre quadrature over each interval, a column each."""
    half = 0.5 * (b - a)
    return a + half * (1.0 + _POINTS[:, None]), half * _SHARES[:, None]


def _middle(x: Vector, weight: Vector) -> tuple[float, float]:
    """Weighted median, and half the width of the middle half (or the spread of all, where that is 0)."""
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weight[order])
    low, median, high = (float(x[order[np.searchsorted(below, q * below[-1])]]) for q in (0.25, 0.5, 0.75))
    spread = 0.5 * (high - low)
    if spread == 0.0:
        spread = float(np.sqrt(np.average((x - median) ** 2, weights=weight)))
    return median, spread
