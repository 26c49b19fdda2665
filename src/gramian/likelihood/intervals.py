r"""Confidence intervals: by the normal approximation, and by the profile of the likelihood.

The profile interval of a parameter holds every value whose best likelihood is near the maximum,

.. math:: \{\theta_j : 2(\hat\ell - \max_{\theta_{-j}}\ell(\theta)) \le \chi^2_{1,1-\alpha}\},

needs no standard error, respects the range of the parameter, and is one-sided where the maximum is at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.likelihood.families.base import REAL, ROOTS, Profile, Unit
from gramian.likelihood.problem import FAR, REAL_FAR, LikelihoodProblem, ascend, ascend_kinks
from gramian.results.tables import text_table

Array = npt.NDArray[np.float64]
STEPS = 400  # most iterations for the other parameters
ABOVE = 1e-6  # of the log-likelihood, by which a profile may exceed the maximum through rounding
LEFT = 1e-6  # deviance at which a plateau has been left
PLATEAU = 10.0  # a coordinate that stands for infinity lies beyond
STILL = 1e-9  # change of the deviance that is none
HALVINGS = 6  # of a step after which the data have no likelihood from any start


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceIntervals:
    """An interval for each parameter.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    estimate, lower, upper : ndarray
        The estimates and the ends.
    level : float
        What share of such intervals holds the true value, in the long run.
    method : str
        "Wald" or "profile likelihood".
    notes : tuple of str
        Anything a reader should know.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> low, high = fit("poisson", [2, 0, 4]).profile()["rate"]
    >>> round(low, 4), round(high, 4)
    (0.7949, 4.0527)
    """

    names: tuple[str, ...]
    estimate: Array
    lower: Array
    upper: Array
    level: float
    method: str
    notes: tuple[str, ...] = field(default=())

    def __getitem__(self, name: str) -> tuple[float, float]:
        if name not in self.names:
            raise KeyError(f"There is no interval for {name!r}; there is for {', '.join(self.names)}.")
        j = self.names.index(name)
        return float(self.lower[j]), float(self.upper[j])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def table(self) -> dict[str, Any]:
        """Return the columns parameter, estimate, lower and upper, ready for ``pandas.DataFrame``."""
        numbers = {"estimate": self.estimate, "lower": self.lower, "upper": self.upper}
        return {"parameter": list(self.names), **numbers}

    def __repr__(self) -> str:
        head = f"{100 * self.level:g}% confidence intervals, {self.method}:"
        return "\n".join([head, text_table(self.table(), None, digits=6), *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True, eq=False)
class LineProfile(Profile):
    """The likelihood seen from its maximum: how far a parameter can go before it has fallen by so much.

    Attributes
    ----------
    problem : LikelihoodProblem
        The likelihood in free coordinates.
    phi, spread : ndarray of shape (p,)
        The maximum, and standard errors there (NaN where there are none).
    value : float
        The maximum of the log-likelihood.
    unit : Unit
        From the problem's units to those of the data.
    tolerance : float
        For the other parameters.
    """

    problem: LikelihoodProblem
    phi: Array
    spread: Array
    value: float
    unit: Unit
    tolerance: float

    @cached_property
    def walks(self) -> dict[int, _ProfileDeviance]:
        """The deviance of each parameter, by its place: what an interval has found, a picture need not seek again."""
        return {}

    def ends(self, j: int, drop: float) -> tuple[float, float]:
        """Where parameter j has lost ``drop`` of twice the log-likelihood, below and above."""
        low, high = self._ends(j, drop)
        below, wall = self._natural(j, low), self.problem.family.walls(self.problem.sample).get(j, -np.inf)
        return wall if np.isclose(below, wall, rtol=1e-12) else below, self._natural(j, high)

    def curve(self, j: int, drop: float) -> Array:
        """Values of parameter j and the deviance at each, up to ``drop`` or as far as was looked on an open side."""
        ends, walk, first = self._ends(j, drop), self.walks[j], float(self.phi[j])
        reach = [
            end if np.isfinite(end) else extreme(walk.values) for end, extreme in zip(ends, (min, max), strict=True)
        ]
        places = {float(first + share * (end - first)) for end in reach for share in ROOTS}
        points = [(self._natural(j, place), walk(place)) for place in places]
        return np.array(sorted((x, max(deviance, 0.0)) for x, deviance in points if deviance <= 2.0 * drop))

    def _ends(self, j: int, drop: float) -> tuple[float, float]:
        """The ends as coordinates φ, found once."""
        if j not in self.walks:
            self.walks[j] = _ProfileDeviance(self, j)
        walk = self.walks[j]
        if drop not in walk.ends:
            walk.ends[drop] = self._find_end(j, -1, drop), self._find_end(j, 1, drop)
        return walk.ends[drop]

    def _natural(self, j: int, phi: float) -> float:
        theta = np.ones(len(self.phi))
        theta[j] = self.problem.family.parameters[j].link.natural(phi)
        return float(self.problem.family.to_units(theta, self.unit)[j])

    def _find_end(self, j: int, sign: int, drop: float) -> float:
        """φ_j where the profile has lost ``drop``; ±∞ where it flattens first, NaN where it rises above the maximum."""
        parameter = self.problem.family.parameters[j]
        first, wall = float(self.phi[j]), None
        if sign < 0:
            wall = self.problem.family.walls(self.problem.sample).get(j)
        # how far to look: to a wall, half the circle, or to where a coordinate is as good as infinite
        if wall is not None:
            far = max(first - parameter.link.free(wall), 1e-12)
        else:
            far = np.pi if parameter.kind == "angle" else REAL_FAR if parameter.link == REAL else FAR + abs(first)
        walk = self.walks[j]
        step = float(np.sqrt(drop) * self.spread[j])
        step = step if np.isfinite(step) and step > 0 else 0.5
        growth = 2.0  # of the distance, but of logarithms, where it is one of ratios
        if parameter.link != REAL:
            growth, step = 1.5, min(step, 1.0)
        # from a maximum at the end of the range the way leads over a plateau first
        inward = not np.isfinite(self.spread[j]) and sign * first < -PLATEAU
        seen, near, at = [-drop], 0.0, min(step, far)
        while walk(first + sign * at) < drop:
            seen.append(walk(first + sign * at) - drop)
            if seen[-1] < -drop - ABOVE * max(1.0, abs(self.value)):
                return np.nan
            if at >= far or (_is_flat(seen) and not (inward and seen[-1] < -drop + LEFT)):
                return sign * far + first if parameter.kind == "angle" or wall is not None else sign * np.inf
            near, at = at, min(growth * at, far)
        return walk.find_crossing(first + sign * near, first + sign * at, drop)


def _is_flat(seen: list[float]) -> bool:
    """Whether the deviance, at growing distances, nears a limit below 0: gains that shrink, and small to what is left.

    Gains that fall by a factor 0.6 each time add up to 1.5 of the last one at most.
    """
    if len(seen) < 5:
        return False
    gains = np.abs(np.diff(seen[-4:]))
    shrinking = bool(np.all(gains[1:] <= 0.6 * gains[:-1]))
    return bool((shrinking or np.max(gains) <= STILL) and gains[-1] <= 1e-3 * -seen[-1])


class _ProfileDeviance:
    """The deviance of coordinate j, the other coordinates at their best; every value is kept.

    The others start from where they were at the nearest value of φ_j seen so far, and from the family's own start.
    """

    def __init__(self, profile: LineProfile, j: int) -> None:
        self.profile, self.j = profile, j
        free = profile.problem.free.copy()
        free[j] = False
        self.problem = profile.problem.only(free)
        self.values = {float(profile.phi[j]): 0.0}
        self.places = {float(profile.phi[j]): profile.phi.copy()}
        self.ends: dict[float, tuple[float, float]] = {}
        self.own = self._own_starts() if free.any() else []

    def __call__(self, phi_j: float) -> float:
        if phi_j not in self.values:
            self.values[phi_j] = self._deviance(phi_j)
        return self.values[phi_j]

    def find_crossing(self, near: float, at: float, drop: float) -> float:
        """Where the deviance passes the drop, between a value below and one that is not."""
        own, self.own = self.own, []  # between two values seen the others start from the nearer
        # the root of the deviance is nearly a straight line
        excess = lambda phi_j: np.sqrt(max(self(phi_j), 0.0)) - np.sqrt(drop)  # noqa: E731
        found = float(brentq(excess, near, at, xtol=1e-13, rtol=1e-13))
        self.own = own
        return found

    def _deviance(self, phi_j: float, halvings: int = HALVINGS) -> float:
        best, place = -np.inf, None
        for phi in [self.places[min(self.places, key=lambda known: abs(known - phi_j))], *self.own]:
            reached = phi.copy()
            reached[self.j] = phi_j
            value = self.problem.value(reached)
            if self.problem.free.any() and np.isfinite(value):
                value, reached = self._climb(self.problem, reached)
            if value > best:
                best, place = value, reached
        if place is not None:
            self.places[phi_j] = place
        elif halvings and self.problem.free.any():  # the support moved off the data: go there in shorter steps
            nearest = min(self.places, key=lambda known: abs(known - phi_j))
            self._deviance(0.5 * (nearest + phi_j), halvings - 1)
            if 0.5 * (nearest + phi_j) in self.places:
                return self._deviance(phi_j, halvings - 1)
        return min(2.0 * (self.profile.value - best), 1e300)

    def _own_starts(self) -> list[Array]:
        """Where the family would begin; and with a finite limiting parameter, as 1, if it has one."""
        family = self.problem.family
        try:
            theta = family.start(self.problem.sample)
        except ValueError:  # it has none without being given one
            return []
        starts = [np.where(self.profile.problem.free, self.problem.phi(theta), self.profile.phi)]
        if family.limit is not None and self.problem.free[family.limit.parameter]:
            starts.append(starts[0].copy())
            starts[1][family.limit.parameter] = 0.0
        return starts

    def _climb(self, problem: LikelihoodProblem, start: Array) -> tuple[float, Array]:
        """The best value of the other coordinates; one that runs away is left where it can change nothing more."""
        if problem.family.smooth:
            found = ascend(problem, start, self.profile.tolerance, STEPS, certify=False)
        else:
            found = ascend_kinks(problem, start, self.profile.tolerance, STEPS)
        if found.runaway is None:
            return found.value, found.phi.copy()
        rest = problem.free.copy()
        rest[found.runaway[0]] = False
        return self._climb(problem.only(rest), found.phi.copy()) if rest.any() else (found.value, found.phi.copy())
