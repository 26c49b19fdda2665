"""What solvers return: spectra, solutions and optima, each with the certificate that says how accurate it is."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.results.certificate import (
        Certificate,
        NumericalWarning,
        Optimum,
        Residual,
        SpectralCertificate,
        caller_level,
        describe_verdict,
    )
    from gramian.results.quality import FitLevel, Quality, find_gravest, measure_shares, warn_of_units
    from gramian.results.solution import Solution, Spectrum
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Certificate",
    "FitLevel",
    "NumericalWarning",
    "Optimum",
    "Quality",
    "Residual",
    "Solution",
    "SpectralCertificate",
    "Spectrum",
    "caller_level",
    "describe_verdict",
    "find_gravest",
    "measure_shares",
    "warn_of_units",
]
