"""A family given by its log-density alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad

from gramian.likelihood.families._links import REAL, Link
from gramian.likelihood.families.base import Family, Parameter
from gramian.likelihood.sample import INF, Sample

__all__ = ["Custom"]

Vector = npt.NDArray[np.float64]
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
        self._start = np.array([float(value) for value in start.values()])

    def log_density(self, x: Vector, theta: Vector) -> Vector:
        """What was given, −∞ outside the support."""
        inside = (x >= self.low) & (x <= self.high)
        result = np.full(np.shape(x), -INF)
        with np.errstate(divide="ignore"):
            result[inside] = np.asarray(self._f(x[inside], *theta), dtype=np.float64)
        return result

    def log_cdf(self, x: Vector, theta: Vector) -> Vector:
        """What was given, or an integral."""
        if self._cdf is not None:
            return np.asarray(self._cdf(x, *theta), dtype=np.float64)
        return self.log_interval(np.full_like(x, -INF), x, theta)

    def log_sf(self, x: Vector, theta: Vector) -> Vector:
        """What was given, or an integral."""
        if self._sf is not None:
            return np.asarray(self._sf(x, *theta), dtype=np.float64)
        return self.log_interval(x, np.full_like(x, INF), theta)

    def log_interval(self, a: Vector, b: Vector, theta: Vector) -> Vector:
        """ln P(a < X ≤ b), by the functions given or by integrating the density."""
        if self._cdf is not None and self._sf is not None:
            return super().log_interval(a, b, theta)
        low, high = np.maximum(a, self.low - self.discrete), np.minimum(b, self.high)
        measure = self._sum if self.discrete else self._integral
        return np.array([measure(float(p), float(q), theta) for p, q in zip(low, high, strict=True)])

    def narrow(self, a: Vector, b: Vector, theta: Vector) -> npt.NDArray[np.bool_]:
        """None, where all are integrated."""
        if self._cdf is None or self._sf is None:
            return np.zeros(len(a), dtype=bool)
        return super().narrow(a, b, theta)

    def total(self, theta: Vector) -> float:
        """The integral of the density over its support, which must be 1."""
        return float(np.exp(self.log_interval(np.array([-INF]), np.array([INF]), theta)[0]))

    def start(self, sample: Sample) -> Vector:
        """What was given."""
        return self._start.copy()

    def draw(self, theta: Vector, size: int, rng: np.random.Generator) -> Vector:
        """Refuse: a log-density alone does not say how to draw from it."""
        raise ValueError("A family given by its log-density alone cannot be drawn from; write a Family with draw().")

    def _integral(self, a: float, b: float, theta: Vector) -> float:
        if not a < b:
            return -INF
        density = lambda x: float(np.exp(self.log_density(np.array([x]), theta)[0]))  # noqa: E731
        value = quad(density, a, b, epsabs=0.0, epsrel=1e-11, limit=200)[0]
        return float(np.log(value)) if value > 0 else -INF

    def _sum(self, a: float, b: float, theta: Vector) -> float:
        k = np.arange(np.floor(a) + 1.0, min(np.floor(b), np.floor(a) + SUM) + 1.0)
        return float(np.logaddexp.reduce(self.log_density(k, theta))) if len(k) else -INF
