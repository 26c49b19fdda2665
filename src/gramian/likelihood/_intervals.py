r"""Confidence intervals: by the normal approximation, and by the profile of the likelihood.

The profile interval of a parameter holds every value whose best likelihood is near the maximum,

.. math:: \{\theta_j : 2(\hat\ell - \max_{\theta_{-j}}\ell(\theta)) \le \chi^2_{1,1-\alpha}\},

needs no standard error, respects the range of the parameter, and is one-sided where the maximum is at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.likelihood._kinks import ascend_kinks
from gramian.likelihood._newton import FAR, REAL_FAR, ascend
from gramian.likelihood._problem import Problem
from gramian.likelihood._text import text_table
from gramian.likelihood.families._links import REAL
from gramian.likelihood.families.base import Unit

__all__ = ["ConfidenceIntervals", "LineProfile"]

Vector = npt.NDArray[np.float64]
STEPS = 400  # most iterations for the other parameters


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
    estimate: Vector
    lower: Vector
    upper: Vector
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
        return "\n".join([head, text_table(self.table()), *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True, eq=False)
class LineProfile:
    """The likelihood seen from its maximum: how far a parameter can go before it has fallen by so much.

    Attributes
    ----------
    problem : Problem
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

    problem: Problem
    phi: Vector
    spread: Vector
    value: float
    unit: Unit
    tolerance: float

    def ends(self, j: int, drop: float) -> tuple[float, float]:
        """Where parameter j has lost ``drop`` of twice the log-likelihood, below and above."""
        low, high = (self._end(j, sign, drop) for sign in (-1, 1))
        return self._natural(j, low), self._natural(j, high)

    def _natural(self, j: int, phi: float) -> float:
        theta = np.ones(len(self.phi))
        theta[j] = self.problem.family.parameters[j].link.natural(phi)
        return float(self.problem.family.to_units(theta, self.unit)[j])

    def _end(self, j: int, sign: int, drop: float) -> float:
        parameter = self.problem.family.parameters[j]
        first = float(self.phi[j])
        far = np.pi if parameter.kind == "angle" else REAL_FAR if parameter.link == REAL else FAR + abs(first)
        walk = _Walk(self, j, drop)
        step = float(np.sqrt(drop) * self.spread[j])
        step = step if np.isfinite(step) and step > 0 else 0.5
        near, at = 0.0, min(step, far)
        while walk(first + sign * at) < 0.0:
            if at >= far:
                return sign * np.pi + first if parameter.kind == "angle" else sign * np.inf
            near, at = at, min(2.0 * at, far)
        return float(brentq(walk, first + sign * near, first + sign * at, xtol=1e-13, rtol=1e-13))


class _Walk:
    """The deviance of coordinate j less the drop; the other coordinates follow from where they last were."""

    def __init__(self, profile: LineProfile, j: int, drop: float) -> None:
        self.profile, self.j, self.drop = profile, j, drop
        free = profile.problem.free.copy()
        free[j] = False
        self.problem, self.at = profile.problem.only(free), profile.phi.copy()

    def __call__(self, phi_j: float) -> float:
        self.at[self.j] = phi_j
        value = self.problem.value(self.at)
        if self.problem.free.any():
            value = self._climb(self.problem)
        return min(2.0 * (self.profile.value - value) - self.drop, 1e300)

    def _climb(self, problem: Problem) -> float:
        """The best value of the other coordinates; one that runs away is left where it can change nothing more."""
        climb = ascend if problem.family.smooth else ascend_kinks
        found = climb(problem, self.at, self.profile.tolerance, STEPS)
        self.at = found.phi.copy()
        if found.runaway is None:
            return found.value
        rest = problem.free.copy()
        rest[found.runaway[0]] = False
        return self._climb(problem.only(rest)) if rest.any() else found.value
