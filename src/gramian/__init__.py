"""Gramian: the linear algebra of statistical learning, with certificates."""

from gramian import analysis, kernels, likelihood, operators, sources, spectral
from gramian.estimators import PCA, KernelPCA, Nystroem, PolynomialMap, RBFSampler, rank_advice
from gramian.results import Certificate, NumericalWarning, Optimum, Residual, Solution, Spectrum
from gramian.sources import Source
from gramian.sources import open_source as open

__all__ = [
    "PCA",
    "Certificate",
    "KernelPCA",
    "NumericalWarning",
    "Nystroem",
    "Optimum",
    "PolynomialMap",
    "RBFSampler",
    "Residual",
    "Solution",
    "Source",
    "Spectrum",
    "analysis",
    "kernels",
    "likelihood",
    "open",
    "operators",
    "rank_advice",
    "sources",
    "spectral",
]

__version__ = "0.1.0"
