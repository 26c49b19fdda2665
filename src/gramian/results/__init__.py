"""What solvers return: spectra, solutions and optima, each with the certificate that says how accurate it is."""

from gramian.results.certificate import (
    Certificate,
    NumericalWarning,
    Optimum,
    Residual,
    SpectralCertificate,
    caller_level,
)
from gramian.results.quality import Quality, Verdict
from gramian.results.solution import Solution, Spectrum

__all__ = [
    "Certificate",
    "NumericalWarning",
    "Optimum",
    "Quality",
    "Residual",
    "Solution",
    "SpectralCertificate",
    "Spectrum",
    "Verdict",
    "caller_level",
]
