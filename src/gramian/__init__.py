"""Gramian: the linear algebra of statistical learning, with certificates."""

from gramian import operators, sources, spectral
from gramian.estimators import PCA
from gramian.results import Certificate, NumericalWarning, Spectrum
from gramian.sources import Source
from gramian.sources import open_source as open

__all__ = [
    "PCA",
    "Certificate",
    "NumericalWarning",
    "Source",
    "Spectrum",
    "open",
    "operators",
    "sources",
    "spectral",
]

__version__ = "0.1.0"
