"""Gramian: the linear algebra of statistical learning, with certificates.

Its parts load when they are first named, so that ``import gramian`` takes next to no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "estimators": (
        "PCA GaussianMixture KernelPCA KernelRidge KernelRidgeCV KernelRidgeClassifier MaximumLikelihood Nystroem "
        "PolynomialMap RBFSampler Ridge RidgeCV rank_advice"
    ),
    "genetics": "GenotypePCA",
    "linear": "RidgePath",
    "persistence": "load save",
    "results": "Certificate NumericalWarning Optimum Residual Solution Spectrum",
    "sources": "Source open",
}
_HOME = {name: layer for layer, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load the part of the package that a public name lives in."""
    if name not in __all__ and name not in ("cli", "compute", "display", "estimators", "results"):
        raise AttributeError(f"module 'gramian' has no attribute {name!r}")
    if name not in _HOME:
        return import_module(f"gramian.{name}")
    value = getattr(import_module(f"gramian.{_HOME[name]}"), "open_source" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
