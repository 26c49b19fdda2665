"""What solvers return: spectra, solutions and optima, each with the certificate that says how accurate it is."""

from gramian.results.certificate import Certificate, NumericalWarning, caller_level
from gramian.results.optimum import Optimum
from gramian.results.solution import Residual, Solution
from gramian.results.spectrum import SpectralCertificate, Spectrum

__all__ = [
    "Certificate",
    "NumericalWarning",
    "Optimum",
    "Residual",
    "Solution",
    "SpectralCertificate",
    "Spectrum",
    "caller_level",
]
