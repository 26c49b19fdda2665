"""Gramian: the linear algebra of statistical learning, with certificates."""

from gramian import analysis, genetics, kernels, likelihood, linear, operators, persistence, sources, spectral
from gramian.estimators import (
    PCA,
    GaussianMixture,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    MaximumLikelihood,
    Nystroem,
    PolynomialMap,
    RBFSampler,
    Ridge,
    RidgeCV,
    rank_advice,
)
from gramian.genetics import GenotypePCA
from gramian.linear import RidgePath
from gramian.persistence import load, save
from gramian.results import Certificate, NumericalWarning, Optimum, Residual, Solution, Spectrum
from gramian.sources import Source
from gramian.sources import open_source as open

__all__ = [
    "PCA",
    "Certificate",
    "GaussianMixture",
    "GenotypePCA",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "MaximumLikelihood",
    "NumericalWarning",
    "Nystroem",
    "Optimum",
    "PolynomialMap",
    "RBFSampler",
    "Residual",
    "Ridge",
    "RidgeCV",
    "RidgePath",
    "Solution",
    "Source",
    "Spectrum",
    "analysis",
    "genetics",
    "kernels",
    "likelihood",
    "linear",
    "load",
    "open",
    "operators",
    "persistence",
    "rank_advice",
    "save",
    "sources",
    "spectral",
]

__version__ = "0.1.0"
