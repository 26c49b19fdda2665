"""The maximum of a likelihood with a kink at every point: Laplace's, where records are censored or truncated.

For each location the scale is found by Newton's method, and the location by bisection on the slopes of this profile to
the left and right of a point, which the kinks make different.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.likelihood._newton import Ascent, ascend, decrement
from gramian.likelihood._problem import Problem

__all__ = ["ascend_kinks", "information_about_kinks"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


def ascend_kinks(problem: Problem, phi: Vector, tolerance: float, most: int) -> Ascent:
    """Climb to the highest point, be it a kink or between two."""
    if not problem.free[0] or not len(problem.x):
        return ascend(problem, phi, tolerance, most)
    search = _Profile(problem, phi, tolerance, most)
    kinks = np.unique(problem.x)
    low, high = 0, len(kinks) - 1
    if search.slopes(kinks[low])[0] < 0.0 or search.slopes(kinks[high])[1] > 0.0:
        return ascend(problem, search.at(kinks[low if search.slopes(kinks[low])[0] < 0.0 else high]), tolerance, most)
    while low <= high:
        middle = (low + high) // 2
        left, right = search.slopes(kinks[middle])
        if left >= 0.0 >= right:
            return search.conclude(float(kinks[middle]), kink=True)
        low, high = (middle + 1, high) if right > 0.0 else (low, middle - 1)
    a, b = float(kinks[high]), float(kinks[low])
    return search.conclude(search.root(a + 1e-14 * (b - a), b - 1e-14 * (b - a)), kink=False)


class _Profile:
    """The best scale for each location, and the slopes there."""

    def __init__(self, problem: Problem, phi: Vector, tolerance: float, most: int) -> None:
        self.problem, self.phi, self.tolerance, self.most = problem, phi.copy(), tolerance, most
        self.rest = problem.only(problem.free & np.array([False, True]))

    def at(self, location: float) -> Vector:
        self.phi[0] = location
        if self.rest.free.any():
            self.phi = ascend(self.rest, self.phi, self.tolerance, self.most).phi.copy()
        return self.phi.copy()

    def slopes(self, location: float) -> tuple[float, float]:
        """To the left and to the right."""
        phi = self.at(location)
        here = float(self.problem.x_weight[self.problem.x == location].sum()) / float(np.exp(phi[1]))
        slope = float(self.problem.gradient(phi)[0])
        return slope + here, slope - here

    def root(self, a: float, b: float) -> float:
        """Where the slope between two kinks is 0; at the flatter end, where rounding hides its sign."""
        ends = [sum(self.slopes(m)) for m in (a, b)]
        if ends[0] * ends[1] >= 0.0:
            return a if abs(ends[0]) < abs(ends[1]) else b
        return float(brentq(lambda m: sum(self.slopes(m)), a, b, xtol=1e-15))

    def conclude(self, location: float, kink: bool) -> Ascent:
        phi = self.at(location)
        g = self.problem.gradient(phi)
        g[0] = 0.0 if kink else g[0]  # 0 lies between the slopes
        information = information_about_kinks(self.problem, phi)
        which = np.flatnonzero(self.problem.free)
        value = self.problem.value(phi)
        return Ascent(phi, value, (value,), decrement(g[which], information)[1], information)


def information_about_kinks(problem: Problem, phi: Vector) -> Matrix:
    """The expected information w/b² of points for the location; the observed one of all else."""
    which = np.flatnonzero(problem.free)
    intervals = problem.without_points()
    b = float(np.exp(phi[1]))
    of_points = [problem.x_weight.sum() / b**2, problem.x_weight @ np.abs(problem.x - phi[0]) / b]
    observed = intervals.information(phi, fine=True) if intervals.has_records else np.zeros((len(which),) * 2)
    return np.asarray(observed + np.diag(np.array(of_points)[which]))
