"""Gramian: the linear algebra of statistical learning, with certificates.

Its parts load when they are first named, so that ``import gramian`` takes next to no time.
"""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian import (
        analysis,
        genetics,
        kernels,
        likelihood,
        linear,
        mixture,
        operators,
        persistence,
        sources,
        spectral,
    )
    from gramian.compute.executor import cluster
    from gramian.genetics import GenotypePCA
    from gramian.kernel_pca import KernelPCA, KernelPCACV, Nystroem, PolynomialMap, RBFSampler
    from gramian.kernel_ridge import KernelLogisticRegression, KernelRidge, KernelRidgeClassifier, KernelRidgeCV
    from gramian.likelihood import MaximumLikelihood
    from gramian.linear import RidgePath
    from gramian.mixture import BayesianGaussianMixture, GaussianMixture, MixtureDiscriminant, RobustMixture
    from gramian.pca import PCA, FactorAnalysis, IncrementalPCA, TruncatedSVD, rank_advice
    from gramian.persistence import load, save
    from gramian.results import (
        Certificate,
        NumericalWarning,
        Optimum,
        Residual,
        Solution,
        SpectralCertificate,
        Spectrum,
    )
    from gramian.ridge import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
    from gramian.sources import Source
    from gramian.sources import open_source as open
    from gramian.sources.checkpoint import checkpoint
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "PCA",
    "BayesianGaussianMixture",
    "Certificate",
    "FactorAnalysis",
    "GaussianMixture",
    "GenotypePCA",
    "IncrementalPCA",
    "KernelLogisticRegression",
    "KernelPCA",
    "KernelPCACV",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "MaximumLikelihood",
    "MixtureDiscriminant",
    "NumericalWarning",
    "Nystroem",
    "Optimum",
    "PolynomialMap",
    "RBFSampler",
    "Residual",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "RidgePath",
    "RobustMixture",
    "Solution",
    "Source",
    "SpectralCertificate",
    "Spectrum",
    "TruncatedSVD",
    "analysis",
    "checkpoint",
    "cluster",
    "genetics",
    "kernels",
    "likelihood",
    "linear",
    "load",
    "mixture",
    "open",
    "operators",
    "persistence",
    "rank_advice",
    "save",
    "sources",
    "spectral",
]

__version__ = "0.1.0"
