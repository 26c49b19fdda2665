"""Families of distributions, what a likelihood is made of, and families by name."""

from __future__ import annotations

from typing import Any

from scipy import stats

from gramian.likelihood.families.base import Family, Joint, Link, NoMaximumError, Parameter
from gramian.likelihood.families.continuous import (
    Beta,
    Exponential,
    Gamma,
    Laplace,
    LocationScale,
    Logistic,
    LogNormal,
    Normal,
    StudentT,
    VonMises,
    Weibull,
)
from gramian.likelihood.families.counts import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from gramian.likelihood.families.custom import Custom
from gramian.likelihood.families.joint import Categorical, MultivariateNormal
from gramian.likelihood.families.scipy_stats import Scipy

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Custom", "Exponential", "Family", "Gamma", "Geometric"]
__all__ += ["Joint", "Laplace", "Link", "LocationScale", "LogNormal", "Logistic", "MultivariateNormal"]
__all__ += ["NegativeBinomial", "NoMaximumError", "Normal", "Parameter", "Poisson", "Scipy", "StudentT", "VonMises"]
__all__ += ["Weibull", "as_family"]

_COUNTED = (Bernoulli, Categorical, Geometric, NegativeBinomial, Poisson)
_MEASURED = (Beta, Exponential, Gamma, Laplace, Logistic, LogNormal, MultivariateNormal, Normal, StudentT, VonMises)
_NAMED: dict[str, type[Family] | type[Joint]] = {law.name: law for law in (*_COUNTED, *_MEASURED, Weibull)}
# names under which others know families that have a closed form here, or formulas of their own
_ALIASES = {"gaussian": Normal, "norm": Normal, "expon": Exponential, "lognorm": LogNormal, "t": StudentT}
FAMILIES = dict(sorted((_NAMED | _ALIASES).items()))


def as_family(family: Any) -> Family | Joint:
    """Return a family by its name, or as it is.

    Parameters
    ----------
    family : str, Family or scipy.stats distribution
        "normal", "student t", …; "_" and "-" are read as spaces. A name that is not ours may be scipy's.

    Returns
    -------
    Family or Joint
        What :func:`gramian.likelihood.fit` fits.

    Examples
    --------
    >>> from gramian.likelihood.families import as_family
    >>> as_family("student-t"), as_family("gumbel_r")
    (StudentT(df, location, scale), Scipy('gumbel_r'))
    """
    if isinstance(family, (Family, Joint)):
        return family
    if isinstance(family, str):
        ours = FAMILIES.get(family.lower().replace("_", " ").replace("-", " ").strip())
        if ours is not None:
            return ours()
        if family.lower() == "binomial":
            raise ValueError("The binomial family needs the number of trials: Binomial(n).")
        if isinstance(getattr(stats, family, None), (stats.rv_continuous, stats.rv_discrete)):
            return Scipy(family)
        raise ValueError(f"There is no family {family!r}; there are {', '.join(FAMILIES)}, and those of scipy.stats.")
    if isinstance(family, (stats.rv_continuous, stats.rv_discrete)):
        return Scipy(family)
    if callable(family):
        raise ValueError("A log-density is fitted as Custom(log_density, start={...}), which names its parameters.")
    raise ValueError(f"family must be a name, a Family or a distribution of scipy.stats; got {family!r}.")
