"""Spectral solvers: a small frozen object of tolerances, called with an operator, returns a Spectrum."""

from gramian.results import Spectrum
from gramian.spectral.auto import Auto, Choice
from gramian.spectral.dense import Dense
from gramian.spectral.krylov import Krylov
from gramian.spectral.power import Power
from gramian.spectral.randomized import Randomized
from gramian.spectral.symmetric import SymmetricKrylov

__all__ = ["Auto", "Choice", "Dense", "Krylov", "Power", "Randomized", "Spectrum", "SymmetricKrylov"]
