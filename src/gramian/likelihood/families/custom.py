"""A family given by its log-density alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import IntegrationWarning, quad

from gramian.likelihood.families.base import REAL, Family, Link, Parameter
from gramian.likelihood.sample import INF, Sample

Array = npt.NDArray[np.float64]
PIECES = 9  # between values of the sample, for integrals
SUM = 100_000  # most values of a discrete variable that are added up


class Custom(Family):
    r"""A family with a log-density of your own, :math:`\ln f(x;\theta_1,\theta_2,\dots)`.

    Parameters
    ----------
    log_density : callable
        Called as ``log_density(x, *theta)`` with an array x; returns an array. Must be normalised, which is checked.
    start : mapping of str to float
        The parameters by name, in the order they are passed, and where to begin.
    bounds : mapping of str to (low, high), optional
        Open ranges of the parameters; the whole line for those not named.
    support : tuple of float, default=(-inf, inf)
        Where the density is positive.
    discrete : bool, default=False
        Whether x is a whole number and the density a probability.
    log_cdf, log_sf : callable, optional
        For censored, binned and truncated data; without both, the density is integrated numerically.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood import Custom, fit
    >>> def log_density(x, s):
    ...     return np.log(x / s**2) - x**2 / (2 * s**2)
    >>> rayleigh = Custom(log_density, {"s": 1.0}, bounds={"s": (0, np.inf)}, support=(0, np.inf))
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> round(fit(rayleigh, x).estimates["s"], 9) == round(float(np.sqrt(np.mean(x**2) / 2)), 9)
    True
    """

    name = "custom"

    def __init__(
        self,
        log_density: Callable[..., Any],
        start: Mapping[str, float],
        bounds: Mapping[str, tuple[float, float]] | None = None,
        support: tuple[float, float] = (-INF, INF),
        discrete: bool = False,
        log_cdf: Callable[..., Any] | None = None,
        log_sf: Callable[..., Any] | None = None,
    ) -> None:
        ranges = {name: Link(*(float(end) for end in pair)) for name, pair in (bounds or {}).items()}
        unknown = sorted(set(ranges) - set(start))
        if unknown or not start:
            raise ValueError(
                f"bounds names {unknown}, which start does not." if unknown else "start names no parameter."
            )
        self.parameters = tuple(Parameter(name, ranges.get(name, REAL)) for name in start)
        for parameter in self.parameters:
            if not parameter.link.holds(start[parameter.name]):
                raise ValueError(f"start of {parameter.name!r} is {start[parameter.name]}, outside its bounds.")
        self.low, self.high = (float(end) for end in support)
        self.discrete = bool(discrete)
        self._f, self._cdf, self._sf = log_density, log_cdf, log_sf
        self._cuts: Array = np.empty(0)
        self._start = np.array([float(value) for value in start.values()])

    def log_density(self, x: Array, theta: Array) -> Array:
        """What was given, −∞ outside the support."""
        inside = (x >= self.low) & (x <= self.high)
        result = np.full(np.shape(x), -INF)
        with np.errstate(divide="ignore"):
            result[inside] = np.asarray(self._f(x[inside], *theta), dtype=np.float64)
        return result

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """What was given, or an integral."""
        if self._cdf is not None:
            return np.asarray(self._cdf(x, *theta), dtype=np.float64)
        return self.log_interval(np.full_like(x, -INF), x, theta)

    def log_sf(self, x: Array, theta: Array) -> Array:
        """What was given, or an integral."""
        if self._sf is not None:
            return np.asarray(self._sf(x, *theta), dtype=np.float64)
        return self.log_interval(x, np.full_like(x, INF), theta)

    def log_interval(self, a: Array, b: Array, theta: Array) -> Array:
        """ln P(a < X ≤ b), by the functions given or by integrating the density."""
        if self._cdf is not None and self._sf is not None:
            return super().log_interval(a, b, theta)
        low, high = np.maximum(a, self.low - self.discrete), np.minimum(b, self.high)
        measure = self._sum if self.discrete else self._integral
        return np.array([measure(float(p), float(q), theta) for p, q in zip(low, high, strict=True)])

    def narrow(self, a: Array, b: Array, theta: Array) -> npt.NDArray[np.bool_]:
        """None, where all are integrated."""
        if self._cdf is None or self._sf is None:
            return np.zeros(len(a), dtype=bool)
        return super().narrow(a, b, theta)

    def check_normalised(self, theta: Array) -> None:
        """Raise where the density does not integrate to 1 over its support."""
        total = float(np.exp(self.log_interval(np.array([-INF]), np.array([INF]), theta)[0]))
        if abs(total - 1.0) > 1e-6:
            raise ValueError(
                f"The density integrates to {total:.6g} over its support at the maximum, not to 1: "
                "subtract the logarithm of its integral, or correct the support."
            )

    def start(self, sample: Sample) -> Array:
        """What was given."""
        return self._start.copy()

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Refuse: a log-density alone does not say how to draw from it."""
        raise ValueError("A family given by its log-density alone cannot be drawn from; write a Family with draw().")

    def prepare(self, sample: Sample) -> Custom:
        """Return the same family, integrated piece by piece about these data, so that no narrow peak is missed."""
        twin = copy(self)
        x = np.sort(sample.observed().representatives(self.low, self.high))
        middle = x[np.unique(np.linspace(0, len(x) - 1, PIECES).astype(int))]
        spread = float(x[-1] - x[0]) or max(1e-3 * abs(float(x[0])), 1.0)
        reach = spread * 4.0 ** np.arange(-3, 5)
        twin._cuts = np.unique(np.concatenate([middle, x[0] - reach, x[-1] + reach]))
        return twin

    def _integral(self, a: float, b: float, theta: Array) -> float:
        """Between cuts about the data; the two open ends in units of the distance that has been covered."""
        if not a < b:
            return -INF
        inside = self._cuts[(self._cuts > a) & (self._cuts < b)]
        cuts = np.concatenate([[a], inside, [b]])
        width = float(self._cuts[-1] - self._cuts[0]) if len(self._cuts) else 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IntegrationWarning)  # of pieces that hold nearly nothing
            i = self._fullest(cuts[:-1], cuts[1:], theta)
            pieces = [(float(p), float(q)) for p, q in pairwise(cuts)]
            small = 1e-13 * self._piece(*pieces[i], width, 0.0, theta)
            value = sum(self._piece(*piece, width, small, theta) for piece in pieces)
        return float(np.log(value)) if value > 0 else -INF

    def _fullest(self, low: Array, high: Array, theta: Array) -> int:
        """The piece that holds most, judged by the densities at its ends and in its middle."""
        closed = np.where(np.isinf(low), high - 1.0, low), np.where(np.isinf(high), low + 1.0, high)
        start, stop = (np.nan_to_num(end, posinf=1.0, neginf=-1.0) for end in closed)
        x = np.array([start, 0.5 * (start + stop), stop])
        with np.errstate(all="ignore"):
            f = self.log_density(x.ravel(), theta).reshape(x.shape)
            return int(np.argmax(np.nan_to_num(np.max(f, axis=0) + np.log(np.abs(stop - start)), nan=-INF)))

    def _piece(self, a: float, b: float, width: float, small: float, theta: Array) -> float:
        scale = width if np.isinf([a, b]).any() else 1.0
        start = a if np.isfinite(a) else b if np.isfinite(b) else 0.0
        density = lambda u: float(np.exp(self.log_density(np.array([start + scale * u]), theta)[0]))  # noqa: E731
        ends = (a - start) / scale, (b - start) / scale
        return scale * float(quad(density, *ends, epsabs=small / scale, epsrel=1e-11, limit=200)[0])

    def _sum(self, a: float, b: float, theta: Array) -> float:
        k = np.arange(np.floor(a) + 1.0, min(np.floor(b), np.floor(a) + SUM) + 1.0)
        return float(np.logaddexp.reduce(self.log_density(k, theta))) if len(k) else -INF
