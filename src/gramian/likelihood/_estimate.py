"""What a fit returns: estimates with their uncertainty, the likelihood, and the certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtri

from gramian.likelihood._goodness import Goodness, line_goodness
from gramian.likelihood._intervals import ConfidenceIntervals
from gramian.likelihood._text import text_table
from gramian.results import Optimum

__all__ = ["Estimate", "Profile"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


class Profile(Protocol):
    """Where a parameter has lost so much of twice the log-likelihood."""

    def ends(self, j: int, drop: float, /) -> tuple[float, float]:
        """Below and above."""


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    r"""A family fitted to a sample.

    The standard errors are from the observed information, :math:`\operatorname{Cov}\hat\theta = I^{-1}` with
    :math:`I = -\partial^2\ell/\partial\theta\,\partial\theta^T` at the maximum. AIC = 2k − 2ℓ and BIC = k ln n − 2ℓ:
    less is better. ``gramian.display.plot_fit(estimate)`` draws it over its data.

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
    values: Vector
    covariance: Matrix
    loglik: float
    n: float
    n_parameters: int
    certificate: Optimum
    fixed: tuple[str, ...] = ()
    seen_from: Profile | None = field(default=None)
    again: Callable[[Any], Estimate] | None = field(default=None)
    errors: Vector | None = field(default=None)

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
        z, errors = float(ndtri(0.5 + 0.5 * _checked(level))), self._errors()
        lower, upper = self.values - z * errors, self.values + z * errors
        if transformed and not hasattr(self.family, "parameters"):
            raise ValueError(f"The {self.family.name} family has no coordinates without ends: use profile().")
        if transformed:
            lower, upper = self._transformed(z)
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
        if self.seen_from is None:
            raise ValueError("This fit has no parameter to profile.")
        drop = float(chdtri(1.0, 1.0 - _checked(level)))
        which = [self.names.index(name) for name in chosen]
        ends = np.array([self.seen_from.ends(j, drop) for j in which]).reshape(-1, 2)
        notes = tuple(note for j, pair in zip(which, ends, strict=True) for note in self._remarks(j, *pair))
        return ConfidenceIntervals(
            tuple(chosen), self.values[which], ends[:, 0], ends[:, 1], level, "profile likelihood", notes
        )

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
        if not hasattr(self.family, "log_interval"):
            raise ValueError(f"Goodness of fit is for families of numbers; {self.family.name} is none.")
        return line_goodness(self, data, least, bootstrap, random_state)

    def log_density(self, x: Any) -> Vector:
        """ln f(x) of the fitted distribution, or ln P(x)."""
        return np.asarray(self.family.log_density(self.family.read(x), self.values))

    def cdf(self, x: Any) -> Vector:
        """P(X ≤ x) of the fitted distribution."""
        return np.asarray(np.exp(self.family.log_cdf(self.family.read(x), self.values)))

    def draw(self, size: int, random_state: Any = None) -> Any:
        """Return random values of the fitted distribution."""
        return self.family.draw(self.values, int(size), np.random.default_rng(random_state))

    def refit(self, data: Any) -> Estimate:
        """Fit the same family, with the same parameters held, to other data."""
        if self.again is None:
            raise ValueError(f"The {self.family.name} family cannot be fitted again from here: call fit.")
        return self.again(data)

    def table(self) -> dict[str, Any]:
        """Return the columns parameter, estimate and standard error, ready for ``pandas.DataFrame``."""
        return {"parameter": list(self.names), "estimate": self.values, "standard error": self._errors()}

    def __repr__(self) -> str:
        lines = [f"Maximum likelihood: {self.family.name}, {self.n:g} observations", text_table(self.table())]
        lines.append(f"  log-likelihood {self.loglik:.8g}, AIC {self.aic:.8g}, BIC {self.bic:.8g}")
        word = "converged" if self.certificate.converged else "NOT converged"
        lines.append(f"  {word}: gradient {self.certificate.gradient:.1e} standard errors")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.certificate.notes)])

    def _errors(self) -> Vector:
        if self.errors is not None:
            return self.errors
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(np.diag(self.covariance)))

    def _remarks(self, j: int, low: float, high: float) -> Iterator[str]:
        name = self.names[j]
        if self._at_end(j):
            yield f"{name} is at the end of its range: one-sided"
        if self.sample is not None and np.isclose(low, self.family.walls(self.sample).get(j, -1.0), rtol=1e-9):
            yield f"at {name} = {low:.6g} and below the likelihood is unbounded: the interval ends there"
        for end, side in ((low, "below"), (high, "above")):
            if np.isnan(end):
                yield f"{name} has no end {side}: the likelihood rises there above the maximum that was found"

    def _at_end(self, j: int) -> bool:
        end = not np.isfinite(self.values[j]) or self.values[j] in (0.0, 1.0)
        return bool(end and np.isnan(self.covariance[j, j]))

    def _transformed(self, z: float) -> tuple[Vector, Vector]:
        lower, upper = np.empty(len(self.values)), np.empty(len(self.values))
        for j, (value, error) in enumerate(zip(self.values, self._errors(), strict=True)):
            link = self.family.parameters[j].link
            phi = link.free(value)
            width = z * error / link.slope(phi) if error > 0 else error
            lower[j], upper[j] = (
                (link.natural(phi - width), link.natural(phi + width)) if error == error else (np.nan,) * 2
            )
        return lower, upper


def _checked(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    return float(level)
