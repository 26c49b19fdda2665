"""Families of distributions: what a likelihood is made of."""

from gramian.likelihood.families.base import Family, Joint, Link, NoMaximumError, Parameter
from gramian.likelihood.families.bounded import Beta, VonMises
from gramian.likelihood.families.categorical import Categorical
from gramian.likelihood.families.counts import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from gramian.likelihood.families.custom import Custom
from gramian.likelihood.families.line import Laplace, LocationScale, Logistic, Normal, StudentT
from gramian.likelihood.families.multivariate import MultivariateNormal
from gramian.likelihood.families.names import as_family
from gramian.likelihood.families.positive import Exponential, Gamma, LogNormal, Weibull
from gramian.likelihood.families.scipy_stats import Scipy

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Custom",
    "Exponential",
    "Family",
    "Gamma",
    "Geometric",
    "Joint",
    "Laplace",
    "Link",
    "LocationScale",
    "LogNormal",
    "Logistic",
    "MultivariateNormal",
    "NegativeBinomial",
    "NoMaximumError",
    "Normal",
    "Parameter",
    "Poisson",
    "Scipy",
    "StudentT",
    "VonMises",
    "Weibull",
    "as_family",
]
