"""Families of distributions: what a likelihood is made of."""

from gramian.likelihood.families._links import Link
from gramian.likelihood.families.base import Family, NoMaximumError, Parameter
from gramian.likelihood.families.bounded import Beta, VonMises
from gramian.likelihood.families.categorical import Categorical
from gramian.likelihood.families.counts import Bernoulli, Binomial, Geometric, Poisson
from gramian.likelihood.families.custom import Custom
from gramian.likelihood.families.joint import Joint
from gramian.likelihood.families.line import Laplace, LocationScale, Logistic, Normal
from gramian.likelihood.families.multivariate import MultivariateNormal
from gramian.likelihood.families.names import as_family
from gramian.likelihood.families.negative_binomial import NegativeBinomial
from gramian.likelihood.families.positive import Exponential, Gamma, LogNormal, Weibull
from gramian.likelihood.families.scipy_stats import Scipy
from gramian.likelihood.families.student import StudentT

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
