"""Any distribution of scipy.stats, by name."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from gramian.likelihood.families.base import POSITIVE, REAL, Family, Link, Parameter
from gramian.likelihood.sample import INF, Sample

Array = npt.NDArray[np.float64]
TRIES = (1.0, 0.3, 3.0, 10.0)  # shapes among which the search begins
REAL_TRIES = (0.0, 1.0, -1.0, 0.1, 3.0)  # and those that may be negative


class Scipy(Family):
    r"""A distribution of :mod:`scipy.stats` with its shapes, ``loc`` and ``scale``.

    Where the support has an end, ``loc`` would move it and the likelihood is often unbounded or without derivative
    there: ``loc`` is then 0, and not estimated, unless ``location=True``; ``scale`` is 1 where it would move an end
    that is not 0. Derivatives are by differences of sixth order.

    Parameters
    ----------
    distribution : str or scipy.stats distribution
        As "gumbel_r" or ``scipy.stats.gumbel_r``.
    location : bool, optional
        Whether to estimate ``loc``; by default where the support is the whole line.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("gumbel_r", [0.1, 0.7, 1.2, 2.9])
    >>> list(est.estimates)
    ['loc', 'scale']
    """

    def __init__(self, distribution: Any, location: bool | None = None) -> None:
        self.distribution: Any = getattr(stats, distribution, None) if isinstance(distribution, str) else distribution
        if not isinstance(self.distribution, (stats.rv_continuous, stats.rv_discrete)):
            raise ValueError(f"{distribution!r} is no distribution of scipy.stats.")
        self.name = str(self.distribution.name)
        self.discrete = isinstance(self.distribution, stats.rv_discrete)
        shapes = tuple(Parameter(info.name, _range(info, self.name)) for info in self.distribution._shape_info())
        links = [parameter.link for parameter in shapes]
        supports = [self.distribution.support(*point) for point in self._tries(links)]
        located = any(np.all(np.isinf(ends)) for ends in supports) if location is None else location
        natural = any(all(np.isinf(end) or end == 0.0 for end in ends) for ends in supports)
        self._located = located and not self.discrete
        self._scaled = not self.discrete and (self._located or natural)
        loc = (Parameter("loc", REAL, "location"),) if self._located else ()
        scale = (Parameter("scale", POSITIVE, "scale"),) if self._scaled else ()
        self.parameters = (*shapes, *loc, *scale)
        if not self.parameters:
            raise ValueError(
                f"{self.name} has nothing to estimate but the ends of its support, where the likelihood has no "
                "derivative: they are the smallest and the largest value."
            )
        typical = [1.0 if link == REAL else link.natural(0.0) for link in links]
        low, high = (float(v) for v in self.distribution.support(*typical))
        moved = {tuple(self.distribution.support(*(link.natural(v) for link in links))) for v in (0.5, 1.5)}
        if not self._located and len(moved) == 1:  # an end that neither loc, scale nor a shape moves
            self.low = low if low == 0.0 or not self._scaled else -INF
            self.high = high if high == 0.0 or not self._scaled else INF

    @property
    def _shapes(self) -> int:
        return int(self.distribution.numargs)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is held because it would move the end of the support."""
        loc = () if self._located or self.discrete else ("loc is held at 0",)
        scale = () if self._scaled or self.discrete else ("scale is held at 1",)
        held = " and ".join((*loc, *scale))
        return (f"{held}: it would move the end of the support",) if held else ()

    def hold(self, fixed: dict[str, float]) -> tuple[Family, dict[str, float]]:
        """The family and what is held in it, where that names a ``loc`` or ``scale`` that is not estimated anyway."""
        held = {"loc": (self._located, 0.0), "scale": (self._scaled, 1.0)}
        rest = {k: v for k, v in fixed.items() if k not in held or held[k][0] or v != held[k][1]}
        moved = {k for k in rest if k in held and not held[k][0]}
        if not moved:
            return self, rest
        if self.discrete:
            raise ValueError(f"{self.name} is fitted with loc = 0: subtract another one from the data.")
        return Scipy(self.distribution, location=True), {"loc": 0.0, **rest}

    def _arguments(self, theta: Array) -> tuple[tuple[float, ...], float, float]:
        rest = list(theta[self._shapes :])
        loc = rest.pop(0) if self._located else 0.0
        return tuple(theta[: self._shapes]), loc, (rest.pop(0) if self._scaled else 1.0)

    def _call(self, name: str, x: Array, theta: Array) -> Array:
        shapes, loc, scale = self._arguments(theta)
        with np.errstate(all="ignore"):
            z = x if self.discrete else (x - loc) / scale
            return np.asarray(getattr(self.distribution, name)(z, *shapes), dtype=np.float64)

    def log_density(self, x: Array, theta: Array) -> Array:
        """logpdf or logpmf."""
        if self.discrete:
            return self._call("logpmf", x, theta)
        return np.asarray(self._call("logpdf", x, theta) - np.log(self._arguments(theta)[2]))

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """logcdf."""
        return self._call("logcdf", x, theta)

    def log_sf(self, x: Array, theta: Array) -> Array:
        """logsf."""
        return self._call("logsf", x, theta)

    def start(self, sample: Sample) -> Array:
        """The best of a few shapes, each with loc and scale from its own quartiles and those of the sample."""
        x = sample.representatives(self.low, self.high)
        best, found = -INF, None
        for shapes in self._tries([parameter.link for parameter in self.parameters[: self._shapes]]):
            theta = self._match_quartiles(shapes, x, sample.weight)
            with np.errstate(all="ignore"):
                value = float(sample.weight @ self.log_density(x, theta))
            if np.isfinite(value) and value > best:
                best, found = value, theta
        if found is None:
            raise ValueError(f"No shape of {self.name} among those tried gives the data a likelihood; pass start=.")
        return found

    def _tries(self, links: list[Link]) -> list[Array]:
        grid = [REAL_TRIES if link == REAL else [link.natural(float(np.log(t))) for t in TRIES] for link in links]
        return [np.array(point) for point in product(*grid)]

    def _match_quartiles(self, shapes: Array, x: Array, weight: Array) -> Array:
        """``loc`` and ``scale`` that bring the quartiles of the standard distribution to those of the sample."""
        order = np.argsort(x)
        below = np.cumsum(weight[order]) / weight.sum()
        places = np.minimum(np.searchsorted(below, (0.25, 0.5, 0.75)), len(x) - 1)
        data = x[order[places]]
        with np.errstate(all="ignore"):
            own = [np.float64(self.distribution.ppf(q, *shapes)) for q in (0.25, 0.5, 0.75)]
            ratio = (data[2] - data[0]) / (own[2] - own[0]) if self._located else data[1] / own[1]
        scale = float(ratio) if self._scaled and np.isfinite(ratio) and ratio > 0 else 1.0
        tail = ([data[1] - scale * own[1]] if self._located else []) + ([scale] if self._scaled else [])
        return np.array([*shapes, *tail])

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Values drawn by scipy."""
        shapes, loc, scale = self._arguments(theta)
        values = self.distribution.rvs(*shapes, size=size, random_state=rng)
        return np.asarray(loc + scale * np.asarray(values, dtype=np.float64))

    def __repr__(self) -> str:
        return f"Scipy({self.name!r})"


def _range(info: Any, name: str) -> Link:
    """The open range of a shape; whole numbers cannot be estimated by derivatives."""
    if info.integrality:
        ours = {"binom": "Binomial(n), with n known", "nbinom": '"negative binomial", whose size is any number'}
        raise ValueError(
            f"{name} has the whole-number parameter {info.name!r}, which has no derivative: use "
            f"{ours.get(name, 'Custom with it fixed')}."
        )
    return Link(*(float(end) for end in info.domain))
