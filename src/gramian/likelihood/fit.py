"""Maximum likelihood: a family and a sample in, an :class:`Estimate` out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.likelihood._estimate import Estimate
from gramian.likelihood._fitting import UNDETERMINED, Fitting
from gramian.likelihood.families import Custom, Joint, Scipy, as_family
from gramian.likelihood.sample import as_sample
from gramian.results import Optimum

__all__ = ["fit"]


def fit(
    family: Any,
    data: Any,
    *,
    sample_weight: Any = None,
    truncated: Any = None,
    fixed: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    tol: float = 1e-6,
    max_iterations: int = 200,
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
    max_iterations : int, default=200
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
        return _by_formula(law, data, sample_weight, tol)
    held = dict(fixed or {})
    law, held = law.holding(held) if isinstance(law, Scipy) else (law, held)
    sample = as_sample(data, sample_weight, truncated)
    law.check(sample)
    law = law.about(sample) if isinstance(law, Custom) else law
    result = Fitting(law, sample, held, dict(start or {}), tol, max_iterations).run()
    if not result.certificate.converged:
        warnings.warn(_unmet(result.certificate, law.name), ConvergenceWarning, stacklevel=2)
    return result


def _by_formula(law: Joint, data: Any, sample_weight: Any, tol: float) -> Estimate:
    fitted, f = law.formula(data, sample_weight)
    proof = Optimum(
        "closed form", "values are exact and complete", f.passes, 0, np.array([-f.loglik]), f.gradient, tol, f.notes
    )
    return Estimate(fitted, None, f.names, f.values, f.covariance, f.loglik, f.n, f.n_parameters, proof, (), f.profile)


def _unmet(proof: Optimum, name: str) -> str:
    if not np.isfinite(proof.gradient):
        return (
            f"The fit of the {name} family ended where its likelihood has no derivative, so nothing certifies it: the "
            "support may depend on the parameters. Give start=, or hold such parameters (fixed=)."
        )
    if UNDETERMINED in proof.notes:
        return f"The fit of the {name} family has no standard errors: {UNDETERMINED}. Hold a parameter (fixed=)."
    return (
        f"The fit of the {name} family stopped at a gradient of {proof.gradient:.1e} standard errors (asked for "
        f"{proof.tolerance:.1e}) after {proof.iterations} steps: raise max_iterations, or give start=."
    )
