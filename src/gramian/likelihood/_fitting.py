"""One fit of a family on the line: closed form or Newton's method, the boundary, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.likelihood._estimate import Estimate
from gramian.likelihood._intervals import LineProfile
from gramian.likelihood._kinks import ascend_kinks, information_about_kinks
from gramian.likelihood._newton import Ascent, ascend, decrement
from gramian.likelihood._problem import Problem
from gramian.likelihood._windows import seen_alike
from gramian.likelihood.families import Family
from gramian.likelihood.families.base import Boundary, NoMaximumError, Unit
from gramian.likelihood.families.custom import Custom
from gramian.likelihood.sample import Sample
from gramian.results import Optimum

__all__ = ["UNDETERMINED", "Fitting"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
LARGE = 1e4  # of a parameter whose limit is another family
WIDE = 5.0  # ln of a scale that has run away with its location
TILT = 1e-3  # location over squared scale, in units of the sample, that is more than rounding
END = 25.0  # coordinate that stands for an infinite one: e⁻²⁵ = 1e-11
UNDETERMINED = (
    "the information is not positive definite: the data leave a direction undetermined, or this is no maximum"
)
EXPECTED = (
    "the likelihood has a kink at every point: the standard error of the location is from the expected information"
)


@dataclass(frozen=True, eq=False)
class Fitting:
    """One fit: what is asked, step by step."""

    law: Family
    sample: Sample
    fixed: dict[str, float]
    begin: dict[str, float]
    tol: float
    most: int

    def run(self) -> Estimate:
        self._check()
        edge = self._edge()
        if edge is not None:
            return self._at_boundary(edge)
        problem, unit = self._problem()
        if not problem.free.any():
            return self._estimate(problem, unit, self._nothing(problem, unit), "evaluated", "all parameters are fixed")
        theta = self.law.closed(problem.sample) if self.sample.observed().plain and problem.free.all() else None
        if theta is not None:
            found, how, why = _certified(problem, problem.phi(theta)), "closed form", "values are exact and complete"
        else:
            found = self._climb(problem, unit)
            how, why = "Newton's method in free coordinates", self._why()
        if found.runaway is not None:
            return self._ran_away(problem, unit, found)
        if self._in_the_limit(problem, found):
            return self._at_limit(self.law.limit.note if self.law.limit else "")
        return self._estimate(problem, unit, found, how, why)

    def _edge(self) -> Boundary | None:
        if not self.fixed:
            return self.law.boundary(self.sample)
        if len(self.fixed) < len(self.law.names):
            self.law.held(self.sample, self.fixed)
        return None

    def _climb(self, problem: Problem, unit: Unit) -> Ascent:
        """From the start that was given, and from the family's own where that leads nowhere."""
        climb = ascend if self.law.smooth else ascend_kinks
        found = climb(problem, self._start(problem, unit, self.begin), self.tol, self.most)
        if self.begin and (found.runaway is not None or not found.decrement <= self.tol):
            again = climb(problem, self._start(problem, unit, {}), self.tol, self.most)
            better = again.value >= found.value or not np.isfinite(found.value)
            return again if again.runaway is None and (found.runaway is not None or better) else found
        return found

    def _check(self) -> None:
        for name, given in (("fixed", self.fixed), ("start", self.begin)):
            for key, value in given.items():
                if key not in self.law.names:
                    raise ValueError(f"{name} names {key!r}; the parameters are {', '.join(self.law.names)}.")
                if not _is_number(value):
                    raise ValueError(f"{name} gives {key} = {value!r}, which is no number.")
                if not self.law.parameters[self.law.names.index(key)].link.holds(value):
                    raise ValueError(f"{name} puts {key} = {value!r} outside its range.")
        if not (self.tol > 0 and self.most >= 1):
            raise ValueError("tol must be positive and max_iterations at least 1.")

    def _problem(self) -> tuple[Problem, Unit]:
        unit = self.law.unit(self.sample.observed())
        free = np.array([name not in self.fixed for name in self.law.names])
        return Problem(self.law, self.sample.scaled(unit.shift, unit.scale), free), unit

    def _start(self, problem: Problem, unit: Unit, begin: dict[str, float]) -> Vector:
        given = {**begin, **self.fixed}
        theta = self.law.start(problem.sample) if len(given) < len(self.law.names) else np.ones(len(self.law.names))
        natural = self.law.from_units(np.array([given.get(name, 1.0) for name in self.law.names]), unit)
        chosen = np.array([name in given for name in self.law.names])
        return problem.phi(np.where(chosen, natural, theta))

    def _nothing(self, problem: Problem, unit: Unit) -> Ascent:
        phi = self._start(problem, unit, {})
        value = problem.value(phi)
        return Ascent(phi, value, (value,), 0.0, np.empty((0, 0)))

    def _why(self) -> str:
        seen = self.sample.observed()
        kinds = [("truncated", seen.truncated), ("censored or binned", not seen.exact.all())]
        named = [name for name, there in kinds if there]
        return f"the data are {' and '.join(named)}" if named else f"the {self.law.name} family has no closed form"

    def _estimate(self, problem: Problem, unit: Unit, found: Ascent, how: str, why: str) -> Estimate:
        law, phi = self.law, found.phi
        covariance, notes = _covariance(problem, found)
        stretch = problem.slopes(phi) * law.stretch(unit)
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            spread = np.sqrt(np.diag(covariance))
            errors = spread * stretch  # not roots of what may be too small or too large for a square
            covariance = covariance * np.outer(stretch, stretch)
        values = law.to_units(problem.theta(phi), unit)
        values = np.array(
            [_wrapped(v) if p.kind == "angle" else v for v, p in zip(values, law.parameters, strict=True)]
        )
        values = np.array([self.fixed.get(name, v) for name, v in zip(law.names, values, strict=True)])
        notes = (*law.notes, *notes)
        if not law.smooth and len(problem.x) and problem.free[0]:
            notes = (*notes, EXPECTED)
        gradient = found.decrement if not np.isnan(covariance).any() else max(found.decrement, 2 * self.tol)
        loglik = found.value - self._jacobian(unit)
        trace = -np.maximum.accumulate(np.array(found.trace)) + self._jacobian(unit)
        proof = Optimum(how, why, problem.evaluations, len(trace) - 1, trace, gradient, self.tol, notes)
        self._normalised(values)
        seen_from = LineProfile(problem, phi, spread, found.value, unit, self.tol)
        return replace(self._named(values, covariance, loglik, proof, seen_from), errors=errors)

    def _named(
        self, values: Vector, covariance: Matrix, loglik: float, proof: Optimum, profile: LineProfile
    ) -> Estimate:
        law, number = self.law, len(self.law.names) - len(self.fixed)
        held = tuple(self.fixed)
        again = partial(_again, law, self.fixed, self.tol, self.most, self.sample)
        n = self.sample.total
        return Estimate(law, self.sample, law.names, values, covariance, loglik, n, number, proof, held, profile, again)

    def _jacobian(self, unit: Unit) -> float:
        """What the change of units adds to the log-likelihood of points."""
        if self.law.discrete:
            return 0.0
        return float(self.sample.weight[self.sample.exact].sum() * np.log(unit.scale))

    def _at_boundary(self, edge: Boundary) -> Estimate:
        """The maximum lies at the end of the range: its value, no standard error, and the profile seen from there."""
        limit = self.law.limit
        if limit is not None and np.isinf(edge.theta[limit.parameter]):
            return self._at_limit(edge.note)
        problem, unit = self._problem()
        theta = self.law.from_units(edge.theta, unit)
        value = problem.value_at(theta)
        return self._ended(problem, unit, edge.theta, problem.phi(np.nan_to_num(theta)), value, edge.note)

    def _ended(self, problem: Problem, unit: Unit, theta: Vector, phi: Vector, value: float, note: str) -> Estimate:
        p = len(theta)
        loglik = value - self._jacobian(unit)
        trace = np.array([-loglik])
        proof = Optimum(
            "at the boundary", "the likelihood grows up to it", problem.evaluations, 0, trace, 0.0, self.tol, (note,)
        )
        profile = LineProfile(problem, np.clip(phi, -END, END), np.full(p, np.nan), value, unit, self.tol)
        return self._named(theta, np.full((p, p), np.nan), loglik, proof, profile)

    def _at_limit(self, note: str) -> Estimate:
        """The family in its limit: the smaller family's fit, with an infinite parameter."""
        limit = self.law.limit
        assert limit is not None
        others = [name for name in self.law.names if name != self.law.names[limit.parameter]]
        held = {b: self.fixed[a] for a, b in zip(others, limit.family.names, strict=True) if a in self.fixed}
        inner = Fitting(limit.family, self.sample, held, {}, self.tol, self.most).run()
        values = np.insert(inner.values, limit.parameter, np.inf)
        covariance = np.full((len(values),) * 2, np.nan)
        rest = np.delete(np.arange(len(values)), limit.parameter)
        covariance[np.ix_(rest, rest)] = inner.covariance
        problem, unit = self._problem()
        finite = self.law.from_units(np.where(np.isinf(values), 1.0, values), unit)
        phi = problem.phi(finite)
        phi[limit.parameter] = np.log(1e5)
        proof = inner.certificate.with_(notes=(note, *inner.certificate.notes))
        value = inner.loglik + self._jacobian(unit)
        spread = np.full(len(values), np.nan)
        return self._named(
            values, covariance, inner.loglik, proof, LineProfile(problem, phi, spread, value, unit, self.tol)
        )

    def _in_the_limit(self, problem: Problem, found: Ascent) -> bool:
        """Whether a search that went far ended where the limit is as likely."""
        limit = self.law.limit
        if limit is None or not problem.free[limit.parameter] or found.phi[limit.parameter] < np.log(LARGE):
            return False
        theta = problem.theta(found.phi)
        theta[limit.parameter] = np.inf
        return problem.value_at(theta) >= found.value - 1e-9 * (1.0 + abs(found.value))

    def _ran_away(self, problem: Problem, unit: Unit, found: Ascent) -> Estimate:
        assert found.runaway is not None
        j, sign = found.runaway
        law, limit = self.law, self.law.limit
        wide = [
            i for i, p in enumerate(law.parameters) if p.kind == "scale" and found.phi[i] > WIDE and problem.free[i]
        ]
        follows = ""
        if law.parameters[j].kind == "location" and wide:  # a location goes with the scale only if θ/σ² does not vanish
            tilt = abs(found.phi[j]) * np.exp(-2.0 * found.phi[wide[0]])
            follows = f"{law.parameters[j].name} → {'∞' if sign > 0 else '−∞'} and " if tilt > TILT else ""
            j, sign = wide[0], 1
        if limit is not None and j == limit.parameter and sign > 0:
            return self._at_limit(limit.note)
        parameter = law.parameters[j]
        end = parameter.link.high if sign > 0 else parameter.link.low
        word = "∞" if end == np.inf else "−∞" if end == -np.inf else f"{end:g}"
        if problem.free.sum() == 1 and np.isfinite(end):
            note = f"the likelihood grows as {parameter.name} → {word}: the maximum is at the end; interval by profile"
            theta = problem.theta(found.phi)
            theta[j] = end
            return self._ended(problem, unit, law.to_units(theta, unit), found.phi, found.value, note)
        raise NoMaximumError(
            f"The likelihood of the {law.name} family keeps growing as {follows}{parameter.name} → {word}: these data "
            "have no maximum there. Fix the parameter (fixed={...}), take a smaller family, or use finer data."
        )

    def _normalised(self, values: Vector) -> None:
        if isinstance(self.law, Custom) and abs(self.law.total(values) - 1.0) > 1e-6:
            raise ValueError(
                f"The density integrates to {self.law.total(values):.6g} over its support at the maximum, not to 1: "
                "subtract the logarithm of its integral, or correct the support."
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, np.complexfloating)


def _again(law: Family, fixed: dict[str, float], tol: float, most: int, seen: Sample, data: Any) -> Estimate:
    sample = seen_alike(data, seen)
    law.check(sample)
    return Fitting(law, sample, fixed, {}, tol, most).run()


def _certified(problem: Problem, phi: Vector) -> Ascent:
    """A closed form, with the gradient and the information measured there."""
    value = problem.value(phi)
    if not problem.family.smooth:
        information = information_about_kinks(problem, phi)
        g = problem.gradient(phi)
        g[0] = 0.0  # the median: 0 lies between the slopes to its left and right
        return Ascent(phi, value, (value,), decrement(g, information)[1], information)
    information = problem.information(phi, fine=True)
    size = decrement(problem.gradient(phi)[problem.free], information)[1]
    return Ascent(phi, value, (value,), size, information)


def _covariance(problem: Problem, found: Ascent) -> tuple[Matrix, tuple[str, ...]]:
    """The inverse of the information, 0 for what is held; NaN, and a note, where it is not positive definite."""
    p, which = len(found.phi), np.flatnonzero(problem.free)
    covariance = np.zeros((p, p))
    if not len(which):
        return covariance, ()
    diagonal = np.diag(found.information)
    good = np.all(np.isfinite(found.information)) and np.all(diagonal > 0)
    if good:
        scale = 1.0 / np.sqrt(diagonal)
        values, vectors = np.linalg.eigh(found.information * np.outer(scale, scale))
        if values[0] > 1e-13:
            inverse = (vectors / values) @ vectors.T * np.outer(scale, scale)
            covariance[np.ix_(which, which)] = inverse
            return covariance, ()
    covariance[np.ix_(which, which)] = np.nan
    return covariance, (UNDETERMINED,)


def _wrapped(angle: float) -> float:
    """The same angle in (−π, π]."""
    return float(np.pi - (np.pi - angle) % (2.0 * np.pi)) if not -np.pi < angle <= np.pi else float(angle)
