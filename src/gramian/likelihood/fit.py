"""Maximum likelihood: a family and a sample in, an :class:`Estimate` out; and several families, ranked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtri
from sklearn.exceptions import ConvergenceWarning

from gramian.inputs.checks import check_share
from gramian.likelihood.families import Family, Joint, as_family
from gramian.likelihood.families.base import Boundary, NoMaximumError, Profile, Unit
from gramian.likelihood.goodness import Goodness, line_goodness
from gramian.likelihood.intervals import ConfidenceIntervals, LineProfile
from gramian.likelihood.problem import (
    Ascent,
    LikelihoodProblem,
    ascend,
    ascend_kinks,
    certify_kinks,
    decrement,
)
from gramian.likelihood.sample import Sample, as_sample, sample_like
from gramian.results import Optimum
from gramian.results.tables import text_table

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    r"""A family fitted to a sample.

    The standard errors are from the observed information, :math:`\operatorname{Cov}\hat\theta = I^{-1}` with
    :math:`I = -\partial^2\ell/\partial\theta\,\partial\theta^T` at the maximum. AIC = 2k − 2ℓ and BIC = k ln n − 2ℓ:
    less is better. ``gramian.display.FitDisplay.from_estimator(estimate)`` draws it over its data.

    Attributes
    ----------
    family : Family
        What was fitted.
    sample : Sample
        To what.
    names : tuple of str
        The parameters.
    values : ndarray of shape (p,)
        Their estimates.
    covariance : ndarray of shape (p, p)
        Of the estimates; NaN for parameters at the end of their range, 0 for those held fixed.
    loglik : float
        The maximum of the log-likelihood.
    n : float
        The number of observations: the sum of their weights.
    n_parameters : int
        How many parameters were estimated.
    certificate : Optimum
        How the maximum was found and how flat the likelihood is there.
    fixed : tuple of str
        Parameters that were held.
    kind : {"information", "sandwich"}
        What the standard errors are from: :meth:`sandwich` gives the other.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("poisson", [2, 0, 4, 2])
    >>> est.estimates, est.standard_errors["rate"].__round__(6)
    ({'rate': 2.0}, 0.707107)
    """

    family: Any
    sample: Any
    names: tuple[str, ...]
    values: Array
    covariance: Array
    loglik: float
    n: float
    n_parameters: int
    certificate: Optimum
    fixed: tuple[str, ...] = ()
    profiler: Profile | None = field(default=None)
    refitter: Callable[[Any], Estimate] | None = field(default=None)
    errors: Array | None = field(default=None)
    kind: str = "information"

    @property
    def estimates(self) -> dict[str, float]:
        """The parameters by name."""
        return {name: float(value) for name, value in zip(self.names, self.values, strict=True)}

    @property
    def standard_errors(self) -> dict[str, float]:
        """Roots of the diagonal of the covariance, by name."""
        return {name: float(value) for name, value in zip(self.names, self._errors(), strict=True)}

    @property
    def aic(self) -> float:
        """2k − 2ℓ."""
        return 2.0 * self.n_parameters - 2.0 * self.loglik

    @property
    def bic(self) -> float:
        """k ln n − 2ℓ."""
        return self.n_parameters * float(np.log(self.n)) - 2.0 * self.loglik

    def __getitem__(self, name: str) -> float:
        if name not in self.names:
            raise KeyError(f"The {self.family.name} family has no parameter {name!r}, but {', '.join(self.names)}.")
        return self.estimates[name]

    def sandwich(self) -> Estimate:
        r"""Return the same estimate with standard errors that hold where the family is not the true one.

        .. math:: \operatorname{Cov}\hat\theta=I^{-1}\Bigl[\sum_iw_is_is_i^T\Bigr]I^{-1}

        with the scores :math:`s_i=\partial\ln p(x_i)/\partial\theta` of the records and weights as frequencies
        (P. Huber, Proc. 5th Berkeley Symp. 1, 221, 1967; H. White, Econometrica 50, 1, 1982). The estimates then
        are those of the parameters that come closest to the truth, and :meth:`wald` gives intervals of them;
        :meth:`profile` and the criteria still take the family for true.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.likelihood import fit
        >>> counts = np.random.default_rng(0).negative_binomial(2, 0.2, 400)      # more scattered than Poisson's
        >>> est = fit("poisson", counts)
        >>> round(est.standard_errors["rate"], 3), round(est.sandwich().standard_errors["rate"], 3)
        (0.142, 0.329)
        >>> bool(np.isclose(est.sandwich().standard_errors["rate"], counts.std() / 20))
        True
        """
        profiler = self.profiler
        if not isinstance(profiler, LineProfile):
            raise ValueError(f"The {self.family.name} family keeps no records to take scores from.")
        problem, which = profiler.problem, np.flatnonzero(profiler.problem.free)
        if np.isnan(self.covariance).any():
            raise ValueError(
                "A parameter is at the end of its range, or is not determined: there are no standard errors of any "
                "kind."
            )
        if not self.family.smooth and len(problem.x) and problem.free[0]:
            raise ValueError(
                f"The likelihood of the {self.family.name} family has a kink at every point, and no second derivative "
                "for a sandwich: draw the sample anew (bootstrap) for errors that hold without the family."
            )
        phi = profiler.phi
        information = problem.information(phi, fine=True)
        inverse, S = _invert(information), problem.scores(phi)[which]
        covariance = np.zeros_like(self.covariance)
        covariance[np.ix_(which, which)] = inverse @ ((S * problem.sample.weight) @ S.T) @ inverse
        stretch = problem.slopes(phi) * self.family.change_of_units(profiler.unit)[1]
        errors = np.sqrt(np.diag(covariance)) * stretch
        with np.errstate(over="ignore", under="ignore"):
            return replace(self, covariance=covariance * np.outer(stretch, stretch), errors=errors, kind="sandwich")

    def wald(self, level: float = 0.95, transformed: bool = False) -> ConfidenceIntervals:
        r"""Intervals :math:`\hat\theta \pm z\,se(\hat\theta)`.

        Parameters
        ----------
        level : float, default=0.95
            Of confidence.
        transformed : bool, default=False
            Compute them in the coordinate that has no ends, as ln σ, and transform back: they then stay in the range
            of the parameter.

        Returns
        -------
        ConfidenceIntervals
            NaN for a parameter without a standard error.

        Examples
        --------
        >>> from gramian.likelihood import fit
        >>> fit("poisson", [2, 0, 4, 2]).wald()
        95% confidence intervals, Wald:
          parameter  estimate     lower    upper
          rate              2  0.614096   3.3859
        """
        check_share("level", level)
        z, errors = float(ndtri(0.5 + 0.5 * float(level))), self._errors()
        lower, upper = self.values - z * errors, self.values + z * errors
        if transformed and isinstance(self.family, Joint):
            raise ValueError(f"The {self.family.name} family has no coordinates without ends: use profile().")
        if transformed:
            for j, (value, error) in enumerate(zip(self.values, errors, strict=True)):
                link = self.family.parameters[j].link
                phi = link.free(value)
                width = z * error / link.slope(phi) if error > 0 else error
                if error == error:
                    lower[j], upper[j] = link.natural(phi - width), link.natural(phi + width)
        return ConfidenceIntervals(self.names, self.values, lower, upper, level, "Wald")

    def profile(self, level: float = 0.95, names: Any = None) -> ConfidenceIntervals:
        r"""Intervals of all values with :math:`2(\hat\ell - \ell_{profile}) \le \chi^2_1`.

        Parameters
        ----------
        level : float, default=0.95
            Of confidence, in large samples.
        names : str or sequence of str, optional
            Which parameters; all that were estimated, by default.

        Returns
        -------
        ConfidenceIntervals
            With an end at ±∞ or at the end of the range where the likelihood never falls far enough.

        Examples
        --------
        >>> from gramian.likelihood import fit
        >>> low, high = fit("bernoulli", [1] * 10).profile()["theta"]
        >>> round(low, 4), high
        (0.8252, 1.0)
        """
        names = [names] if isinstance(names, str) else names
        chosen = [name for name in self.names if name not in self.fixed] if names is None else list(names)
        for name in chosen:
            if name not in self.names or name in self.fixed:
                raise ValueError(f"{name!r} was not estimated; {', '.join(self.names)} are the parameters.")
        if self.profiler is None:
            raise ValueError("This fit has no parameter to profile.")
        check_share("level", level)
        drop = float(chdtri(1.0, 1.0 - float(level)))
        which = [self.names.index(name) for name in chosen]
        ends = np.array([self.profiler.ends(j, drop) for j in which]).reshape(-1, 2)
        notes = tuple(note for j, pair in zip(which, ends, strict=True) for note in self._explain_ends(j, *pair))
        return ConfidenceIntervals(
            tuple(chosen), self.values[which], ends[:, 0], ends[:, 1], level, "profile likelihood", notes
        )

    def profile_curve(self, name: str, drop: float) -> Array:
        r"""Values of a parameter and the deviance :math:`2(\hat\ell - \ell_{profile})` at each, up to ``drop``.

        Examples
        --------
        >>> from gramian.likelihood import fit
        >>> curve = fit("poisson", [2, 0, 4]).profile_curve("rate", 4.0)
        >>> bool(curve[0, 0] < 2.0 < curve[-1, 0]), float(curve[-1, 1].round(6))
        (True, 4.0)
        """
        if self.profiler is None or name not in self.names or name in self.fixed:
            raise ValueError(f"{name!r} was not estimated; {', '.join(self.names)} are the parameters.")
        return self.profiler.curve(self.names.index(name), drop)

    def goodness(self, data: Any = None, least: float = 5.0, bootstrap: int = 0, random_state: Any = None) -> Goodness:
        """How well the family describes the sample, or other data: deviance, X² and Kolmogorov–Smirnov.

        Parameters
        ----------
        data : array-like or Sample, optional
            Data that had no part in the fit; by default the sample.
        least : float, default=5.0
            Neighbouring classes are pooled until each expects so many observations; 0 leaves them as they are.
        bootstrap : int, default=0
            Samples drawn from the fit and fitted again, for the p-value of Kolmogorov–Smirnov on the sample itself.
        random_state : int or numpy.random.Generator, optional
            For these.

        Returns
        -------
        Goodness
            The statistics, their degrees of freedom and p-values, and what was refused and why.

        Examples
        --------
        >>> from gramian.likelihood import Binned, fit
        >>> fit("normal", Binned([-float("inf"), -1, 0, 1, float("inf")], [16, 34, 35, 15])).goodness().df
        1
        """
        if isinstance(self.family, Joint):
            raise ValueError(f"Goodness of fit is for families of numbers; {self.family.name} is none.")
        return line_goodness(self, data, least, bootstrap, random_state)

    def log_density(self, x: Any) -> Array:
        """ln f(x) of the fitted distribution, or ln P(x)."""
        return np.asarray(self.family.log_density(self.family.read(x), self.values))

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x) of the fitted distribution."""
        return np.asarray(np.exp(self.family.log_cdf(self.family.read(x), self.values)))

    def draw(self, size: int, random_state: Any = None) -> Any:
        """Return random values of the fitted distribution."""
        return self.family.draw(self.values, int(size), np.random.default_rng(random_state))

    def refit(self, data: Any) -> Estimate:
        """Fit the same family, with the same parameters held, to other data."""
        if self.refitter is None:
            raise ValueError(f"The {self.family.name} family cannot be fitted again from here: call fit.")
        return self.refitter(data)

    def table(self) -> dict[str, Any]:
        """Return the columns parameter, estimate and standard error, ready for ``pandas.DataFrame``."""
        return {"parameter": list(self.names), "estimate": self.values, "standard error": self._errors()}

    def __repr__(self) -> str:
        lines = [
            f"Maximum likelihood: {self.family.name}, {self.n:g} observations",
            text_table(self.table(), None, digits=6),
        ]
        lines.append(f"  log-likelihood {self.loglik:.8g}, AIC {self.aic:.8g}, BIC {self.bic:.8g}")
        if self.kind == "sandwich":
            lines.append("  standard errors by the sandwich: they hold where the family is not the true one")
        word = "converged" if self.certificate.converged else "NOT converged"
        lines.append(f"  {word}: gradient {self.certificate.gradient:.1e} standard errors")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.certificate.notes)])

    def _errors(self) -> Array:
        if self.errors is not None:
            return self.errors
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(np.diag(self.covariance)))

    def _explain_ends(self, j: int, low: float, high: float) -> Iterator[str]:
        name = self.names[j]
        at_end = not np.isfinite(self.values[j]) or self.values[j] in (0.0, 1.0)
        if at_end and np.isnan(self.covariance[j, j]):
            yield f"{name} is at the end of its range: one-sided"
        if self.sample is not None and np.isclose(low, self.family.walls(self.sample).get(j, -1.0), rtol=1e-9):
            yield f"at {name} = {low:.6g} and below the likelihood is unbounded: the interval ends there"
        for end, side in ((low, "below"), (high, "above")):
            if np.isnan(end):
                yield f"{name} has no end {side}: the likelihood rises there above the maximum that was found"


LARGE = 1e4  # of a parameter whose limit is another family
WIDE = 4.0  # ln of a scale that has run away with its location
TILT = 1e-3  # location over squared scale, in units of the sample, that is more than rounding
SINGULAR = 1e-11  # of the information in units of its diagonal: what its differences of the gradient may be wrong by
END = 25.0  # coordinate that stands for an infinite one: e⁻²⁵ = 1e-11
UNDETERMINED = (
    "the information is not positive definite: the data leave a direction undetermined, or this is no maximum"
)
EXPECTED = (
    "the likelihood has a kink at every point: the standard error of the location is from the expected information"
)


@dataclass(frozen=True, eq=False)
class LikelihoodFit:
    """One fit of a family of numbers: what is asked, step by step."""

    law: Family
    sample: Sample
    fixed: dict[str, float]
    begin: dict[str, float]
    tol: float
    max_iter: int

    def run(self) -> Estimate:
        """The estimate, wherever the maximum is: inside, at the end of a range, or in a smaller family."""
        self._check()
        if not self.fixed:
            edge = self.law.boundary(self.sample)
            if edge is not None:
                return self._at_boundary(edge)
        elif len(self.fixed) < len(self.law.names):
            self.law.check_fixed(self.sample, self.fixed)
        problem, unit = self._problem()
        seen = self.sample.observed()
        if not problem.free.any():
            phi = self._start(problem, unit, {})
            value = problem.value(phi)
            found = Ascent(phi, value, (value,), 0.0, np.empty((0, 0)))
            return self._estimate(problem, unit, found, "evaluated", "all parameters are fixed")
        theta = self.law.closed_form(problem.sample) if seen.plain and problem.free.all() else None
        if theta is not None:
            found, how, why = certify(problem, problem.phi(theta)), "closed form", "values are exact and complete"
        else:
            found, how = self._climb(problem, unit), "Newton's method in free coordinates"
            cut = not seen.exact.all() and not seen.rounding
            kinds = [("truncated", seen.truncated), ("rounded", bool(seen.rounding)), ("censored or binned", cut)]
            named = " and ".join(name for name, there in kinds if there)
            why = f"the data are {named}" if named else f"the {self.law.name} family has no closed form"
        if found.runaway is not None:
            return self._resolve_runaway(problem, unit, found)
        if self._is_in_the_limit(problem, found):
            return self._at_limit(self.law.limit.note if self.law.limit else "")
        return self._estimate(problem, unit, found, how, why)

    def _check(self) -> None:
        checked: dict[str, dict[str, Any]] = {"fixed": self.fixed, "start": self.begin}
        for name, given in checked.items():
            for key, value in given.items():
                if key not in self.law.names:
                    raise ValueError(f"{name} names {key!r}; the parameters are {', '.join(self.law.names)}.")
                if not isinstance(value, (int, float, np.number)) or isinstance(value, np.complexfloating):
                    raise ValueError(f"{name} gives {key} = {value!r}, which is no number.")
                if not self.law.parameters[self.law.names.index(key)].link.holds(float(value)):
                    raise ValueError(f"{name} puts {key} = {value!r} outside its range.")
        if not (self.tol > 0 and self.max_iter >= 1):
            raise ValueError("tol must be positive and max_iter at least 1.")

    def _problem(self) -> tuple[LikelihoodProblem, Unit]:
        """The likelihood in units of order 1, and these units."""
        unit = self.law.unit(self.sample.observed())
        free = np.array([name not in self.fixed for name in self.law.names])
        return LikelihoodProblem(self.law, self.sample.rescale(unit.shift, unit.scale), free), unit

    def _start(self, problem: LikelihoodProblem, unit: Unit, begin: dict[str, float]) -> Array:
        given = {**begin, **self.fixed}
        theta = self.law.start(problem.sample) if len(given) < len(self.law.names) else np.ones(len(self.law.names))
        natural = self.law.from_units(np.array([given.get(name, 1.0) for name in self.law.names]), unit)
        chosen = np.array([name in given for name in self.law.names])
        return problem.phi(np.where(chosen, natural, theta))

    def _climb(self, problem: LikelihoodProblem, unit: Unit) -> Ascent:
        """From the start that was given, and from the family's own where that leads nowhere."""
        climb = ascend if self.law.smooth else ascend_kinks
        found = climb(problem, self._start(problem, unit, self.begin), self.tol, self.max_iter)
        if self.begin and (found.runaway is not None or not found.decrement <= self.tol):
            again = climb(problem, self._start(problem, unit, {}), self.tol, self.max_iter)
            better = again.value >= found.value or not np.isfinite(found.value)
            return again if again.runaway is None and (found.runaway is not None or better) else found
        return found

    def _estimate(self, problem: LikelihoodProblem, unit: Unit, found: Ascent, how: str, why: str) -> Estimate:
        law, phi = self.law, found.phi
        covariance = _covariance(problem, found)
        determined = not np.isnan(covariance).any()
        stretch = problem.slopes(phi) * law.change_of_units(unit)[1]
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            spread = np.sqrt(np.diag(covariance))
            errors = spread * stretch  # not roots of what may be too small or too large for a square
            covariance = covariance * np.outer(stretch, stretch)
        values = law.to_units(problem.theta(phi), unit)
        angles = np.array([p.kind == "angle" for p in law.parameters])
        turn = angles & ~((values > -np.pi) & (values <= np.pi))
        values[turn] = np.pi - (np.pi - values[turn]) % (2.0 * np.pi)  # the same angles in (−π, π]
        values = np.array([self.fixed.get(name, v) for name, v in zip(law.names, values, strict=True)])
        notes = law.notes if determined else (*law.notes, UNDETERMINED)
        if not law.smooth and len(problem.x) and problem.free[0]:
            notes = (*notes, EXPECTED)
        loglik = found.value - self._jacobian(unit)
        trace = -np.maximum.accumulate(np.array(found.trace)) + self._jacobian(unit)
        proof = Optimum(
            how,
            why,
            problem.evaluations,
            len(trace) - 1,
            trace,
            found.decrement,
            determined,
            tolerance=self.tol,
            notes=notes,
        )
        law.check_normalised(values)
        profiler = LineProfile(problem, phi, spread, found.value, unit, self.tol)
        return replace(self._make_estimate(values, covariance, loglik, proof, profiler), errors=errors)

    def _make_estimate(
        self, values: Array, covariance: Array, loglik: float, proof: Optimum, profile: LineProfile
    ) -> Estimate:
        law, n, number = self.law, self.sample.total, len(self.law.names) - len(self.fixed)
        held, refitter = tuple(self.fixed), partial(refit, law, self.fixed, self.tol, self.max_iter, self.sample)
        return Estimate(
            law, self.sample, law.names, values, covariance, loglik, n, number, proof, held, profile, refitter
        )

    def _jacobian(self, unit: Unit) -> float:
        """What the change of units adds to the log-likelihood of points."""
        if self.law.discrete:
            return 0.0
        return float(self.sample.weight[self.sample.exact].sum() * np.log(unit.scale))

    def _at_boundary(self, edge: Boundary) -> Estimate:
        """The maximum lies at the end of the range: its value, no standard error, and the profile seen from there."""
        if self.law.limit is not None and np.isinf(edge.theta[self.law.limit.parameter]):
            return self._at_limit(edge.note)
        problem, unit = self._problem()
        theta = self.law.from_units(edge.theta, unit)
        phi, value = problem.phi(np.nan_to_num(theta)), problem.value_at(theta)
        return self._at_end_of_range(problem, unit, edge.theta, phi, value, edge.note)

    def _at_end_of_range(
        self, problem: LikelihoodProblem, unit: Unit, theta: Array, phi: Array, value: float, note: str
    ) -> Estimate:
        p, loglik = len(theta), value - self._jacobian(unit)
        why, trace = "the likelihood grows up to it", np.array([-loglik])
        passes = problem.evaluations
        proof = Optimum("at the boundary", why, passes, 0, trace, 0.0, tolerance=self.tol, notes=(note,))
        profile = LineProfile(problem, np.clip(phi, -END, END), np.full(p, np.nan), value, unit, self.tol)
        return self._make_estimate(theta, np.full((p, p), np.nan), loglik, proof, profile)

    def _at_limit(self, note: str) -> Estimate:
        """The family in its limit: the smaller family's fit, with an infinite parameter."""
        limit = self.law.limit
        assert limit is not None
        others = [name for name in self.law.names if name != self.law.names[limit.parameter]]
        held = {b: self.fixed[a] for a, b in zip(others, limit.family.names, strict=True) if a in self.fixed}
        inner = LikelihoodFit(limit.family, self.sample, held, {}, self.tol, self.max_iter).run()
        values = np.insert(inner.values, limit.parameter, np.inf)
        covariance = np.full((len(values),) * 2, np.nan)
        rest = np.delete(np.arange(len(values)), limit.parameter)
        covariance[np.ix_(rest, rest)] = inner.covariance
        problem, unit = self._problem()
        phi = problem.phi(self.law.from_units(np.where(np.isinf(values), 1.0, values), unit))
        phi[limit.parameter] = np.log(1e5)
        proof = inner.certificate.with_(notes=(note, *inner.certificate.notes))
        value, spread = inner.loglik + self._jacobian(unit), np.full(len(values), np.nan)
        profile = LineProfile(problem, phi, spread, value, unit, self.tol)
        return self._make_estimate(values, covariance, inner.loglik, proof, profile)

    def _is_in_the_limit(self, problem: LikelihoodProblem, found: Ascent) -> bool:
        """Whether a search that went far ended where the limit is as likely."""
        limit = self.law.limit
        if limit is None or not problem.free[limit.parameter] or found.phi[limit.parameter] < np.log(LARGE):
            return False
        theta = problem.theta(found.phi)
        theta[limit.parameter] = np.inf
        return problem.value_at(theta) >= found.value - 1e-9 * (1.0 + abs(found.value))

    def _resolve_runaway(self, problem: LikelihoodProblem, unit: Unit, found: Ascent) -> Estimate:
        assert found.runaway is not None
        j, sign = found.runaway
        law, limit = self.law, self.law.limit
        scales = [i for i, p in enumerate(law.parameters) if p.kind == "scale" and problem.free[i]]
        wide = [i for i in scales if found.phi[i] > WIDE]
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
            return self._at_end_of_range(problem, unit, law.to_units(theta, unit), found.phi, found.value, note)
        raise NoMaximumError(
            f"The likelihood of the {law.name} family keeps growing as {follows}{parameter.name} → {word}: these data "
            "have no maximum there, or one so far from where the search began that start= must lead to it. Fix the "
            "parameter (fixed={...}), take a smaller family, or use finer data."
        )


def refit(law: Family, fixed: dict[str, float], tol: float, max_iter: int, seen: Sample, data: Any) -> Estimate:
    """The same family, with the same parameters held, fitted to other data that are seen as the first were."""
    sample = sample_like(data, seen)
    law.check(sample)
    return LikelihoodFit(law, sample, fixed, {}, tol, max_iter).run()


def certify(problem: LikelihoodProblem, phi: Array) -> Ascent:
    """A closed form, with the gradient and the information measured there."""
    if not problem.family.smooth:
        return certify_kinks(problem, phi, kink=True)  # the median
    value = problem.value(phi)
    information = problem.information(phi, fine=True)
    size = decrement(problem.gradient(phi)[problem.free], information)[1]
    return Ascent(phi, value, (value,), size, information)


def _covariance(problem: LikelihoodProblem, found: Ascent) -> Array:
    """The inverse of the information, 0 for what is held; NaN where it is not positive definite."""
    p, which = len(found.phi), np.flatnonzero(problem.free)
    covariance = np.zeros((p, p))
    if not len(which):
        return covariance
    covariance[np.ix_(which, which)] = _invert(found.information)
    return covariance


def _invert(information: Array) -> Array:
    """The inverse of the information, in units of its diagonal; NaN where it is not positive definite."""
    diagonal = np.diag(information)
    if np.all(np.isfinite(information)) and np.all(diagonal > 0):
        scale = 1.0 / np.sqrt(diagonal)
        values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
        if values[0] > SINGULAR:
            return np.asarray((vectors / values) @ vectors.T * np.outer(scale, scale))
    return np.full_like(information, np.nan)


def fit(
    family: Any,
    data: Any,
    *,
    sample_weight: Any = None,
    truncated: Any = None,
    fixed: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> Estimate:
    r"""Fit a family of distributions by maximum likelihood.

    .. math:: \hat\theta = \arg\max_\theta \sum_iw_i\ln p_\theta(x_i)

    with p the density of a point, the probability of an interval (censored and binned data), and either divided by the
    probability of what could be seen (truncated data).

    Parameters
    ----------
    family : str, Family or scipy.stats distribution
        "bernoulli", "categorical", "poisson", "geometric", "negative binomial", "normal", "multivariate normal",
        "lognormal", "exponential", "gamma", "beta", "weibull", "student t", "laplace", "logistic", "von mises", or a
        name in :mod:`scipy.stats`; ``Binomial(n)``; ``Custom(log_density, start)``.
    data : array-like or Sample
        Values, or :class:`Binned`, :class:`Censored` or :class:`Intervals`; labels for "categorical", rows for
        "multivariate normal".
    sample_weight : array-like of shape (n,), optional
        Frequencies: a weight of 2 is the value twice.
    truncated : tuple of two numbers or arrays, optional
        Only values in this closed range could be seen: (1, ∞) is a count without zeros.
    fixed : mapping of str to float, optional
        Parameters to hold.
    start : mapping of str to float, optional
        Where the search begins; by default the family chooses.
    tol : float, default=1e-6
        Gradient to reach, in standard errors (see :class:`gramian.results.Optimum`).
    max_iter : int, default=200
        Most steps; too few is warned about.

    Returns
    -------
    Estimate
        Estimates, standard errors, intervals, goodness of fit, and the certificate.

    Examples
    --------
    >>> from gramian.likelihood import Binned, fit
    >>> fit("normal", [1.0, 2.0, 3.0, 6.0])
    Maximum likelihood: normal, 4 observations
      parameter  estimate  standard error
      mean              3        0.935414
      sd          1.87083        0.661438
      log-likelihood -8.181..., AIC 20.36..., BIC 19.13...
      converged: gradient ... standard errors
    """
    law = as_family(family)
    if isinstance(law, Joint):
        if truncated is not None or fixed is not None or start is not None:
            raise ValueError(f"truncated, fixed and start are not for the {law.name} family, whose fit is a formula.")
        fitted, f = law.formula(data, sample_weight)
        why, trace = "values are exact and complete", np.array([-f.loglik])
        proof = Optimum("closed form", why, f.passes, 0, trace, f.gradient, tolerance=tol, notes=f.notes)
        return Estimate(
            fitted, None, f.names, f.values, f.covariance, f.loglik, f.n, f.n_parameters, proof, (), f.profile
        )
    law, held = law.hold(dict(fixed or {}))
    sample = as_sample(data, sample_weight, truncated)
    law.check(sample)
    result = LikelihoodFit(law.prepare(sample), sample, held, dict(start or {}), tol, max_iter).run()
    if not result.certificate.converged:
        warnings.warn(_explain_unmet(result.certificate, law.name), ConvergenceWarning, stacklevel=2)
    return result


def _explain_unmet(proof: Optimum, name: str) -> str:
    if not np.isfinite(proof.gradient):
        return (
            f"The fit of the {name} family ended where its likelihood has no derivative, so nothing certifies it: the "
            "support may depend on the parameters. Give start=, or hold such parameters (fixed=)."
        )
    if not proof.determined:
        return f"The fit of the {name} family has no standard errors: {UNDETERMINED}. Hold a parameter (fixed=)."
    return (
        f"The fit of the {name} family stopped at a gradient of {proof.gradient:.1e} standard errors (asked for "
        f"{proof.tolerance:.1e}) after {proof.iterations} steps: raise max_iter, or give start=."
    )


CRITERIA = ("aic", "bic", "loglik")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    r"""Families ranked on one sample, the best first.

    Attributes
    ----------
    estimates : tuple of Estimate
        The fits.
    by : str
        The criterion.
    failed : dict of str to str
        Families that could not be fitted, and why.
    notes : tuple of str
        How families of counts and of continuous values were made comparable.

    Examples
    --------
    >>> from gramian.likelihood import compare
    >>> compare(["normal", "gamma"], [0.4, 1.1, 1.3, 2.5, 6.0]).best.family.name
    'gamma'
    """

    estimates: tuple[Estimate, ...]
    by: str
    failed: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Estimate:
        """The first of them."""
        return self.estimates[0]

    @property
    def criteria(self) -> Array:
        """The criterion of each: less is better."""
        return np.array([-e.loglik if self.by == "loglik" else getattr(e, self.by) for e in self.estimates])

    @property
    def weights(self) -> Array:
        r"""Akaike weights :math:`e^{-\Delta_i/2}/\sum_je^{-\Delta_j/2}` of the AIC: the evidence for each, of these."""
        aic = np.array([e.aic for e in self.estimates])
        shares = np.exp(-0.5 * (aic - aic.min()))
        return np.asarray(shares / shares.sum())

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.family.name == name:
                return estimate
        raise KeyError(f"{name!r} is none of {', '.join(e.family.name for e in self.estimates)}.")

    def table(self) -> dict[str, Any]:
        """Return the columns of the ranking, ready for ``pandas.DataFrame``."""
        found: dict[str, Any] = {"family": [e.family.name for e in self.estimates]}
        for name, attribute in (("parameters", "n_parameters"), ("loglik", "loglik"), ("aic", "aic"), ("bic", "bic")):
            found[name] = np.array([getattr(e, attribute) for e in self.estimates])
        return {**found, "difference": self.criteria - self.criteria[0], "weight": self.weights}

    def __repr__(self) -> str:
        head = f"{len(self.estimates)} families on {self.best.n:g} observations, by {self.by}:"
        lines = [head, text_table(self.table(), None, digits=6), *(f"  note: {note}" for note in self.notes)]
        for estimate in self.estimates:
            unmet = () if estimate.certificate.converged else ("NOT converged",)
            notes = (*unmet, *estimate.certificate.notes)
            lines += [f"  note ({estimate.family.name}): {note}" for note in notes]
        return "\n".join([*lines, *(f"  not {k}: {v}" for k, v in self.failed.items())])


def compare(
    families: str | Sequence[Any], data: Any, *, by: str = "aic", sample_weight: Any = None, truncated: Any = None
) -> Comparison:
    r"""Fit several families to one sample and rank them.

    Densities and probabilities are not comparable. Where families of both kinds are to be ranked, the values must be
    whole numbers, and a continuous family is fitted to them as values that were rounded,

    .. math:: \sum_i w_i\ln P(x_i-\tfrac12 < X \le x_i+\tfrac12),

    which is a probability as that of a count is; or every record must be an interval.

    Parameters
    ----------
    families : sequence of str or Family
        What to fit.
    data, sample_weight, truncated
        As in :func:`gramian.likelihood.fit`.
    by : {"aic", "bic", "loglik"}, default="aic"
        The criterion.

    Returns
    -------
    Comparison
        The fits, the best first; families that cannot have these data, or have no maximum, are listed with the reason.

    Examples
    --------
    >>> from gramian.likelihood import compare
    >>> table = compare(["normal", "lognormal", "beta"], [0.4, 1.1, 1.3, 2.5, 6.0]).table()
    >>> table["family"]
    ['lognormal', 'normal']
    >>> compare(["poisson", "normal"], [41, 52, 78, 79, 81, 84]).best.family.name
    'normal'
    """
    if by not in CRITERIA:
        raise ValueError(f"by must be one of {', '.join(CRITERIA)}; got {by!r}.")
    families = [families] if isinstance(families, str) else families
    laws = [as_family(family) for family in families]
    if not laws:
        raise ValueError("families is empty: name one at least.")
    if any(isinstance(law, Joint) for law in laws):
        raise ValueError("Families of labels or rows cannot be ranked with others: fit them by themselves.")
    sample = as_sample(data, sample_weight, truncated)
    kinds = {law.name for law in laws if law.discrete}, {law.name for law in laws if not law.discrete}
    seen, continuous = sample.observed(), sample
    notes: tuple[str, ...] = ()
    if all(kinds) and seen.exact.any():
        one, other = (", ".join(sorted(names)) for names in kinds)
        if not (seen.exact.all() and np.all(seen.lower == np.floor(seen.lower))):
            raise ValueError(
                f"Probabilities ({one}) and densities ({other}) of values that are no whole numbers cannot be ranked "
                "together: compare within one kind, or bin the data."
            )
        continuous = sample.rounded()
        notes = (f"values are whole numbers: {other} give each the probability of what is rounded to it, as {one} do",)
    found, failed = [], {}
    for law in laws:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # said in the table
                found.append(fit(law, sample if law.discrete else continuous))
        except ValueError as error:
            failed[law.name] = str(error)
    if not found:
        raise ValueError("No family could be fitted: " + " ".join(f"{k}: {v}" for k, v in failed.items()))
    order = np.argsort(Comparison(tuple(found), by).criteria, kind="stable")
    return Comparison(tuple(found[i] for i in order), by, failed, notes)
