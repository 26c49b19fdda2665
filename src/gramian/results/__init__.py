"""What a solver returns: a named result, and the certificate that says how good it is."""

from gramian.results.certificate import NumericalWarning
from gramian.results.optimum import Optimum
from gramian.results.solution import Residual, Solution
from gramian.results.spectrum import Certificate, Spectrum

__all__ = ["Certificate", "NumericalWarning", "Optimum", "Residual", "Solution", "Spectrum"]
