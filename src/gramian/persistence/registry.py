"""The closed list of what a model file may name: a name that is not here is never looked up anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as gp

from gramian import kernels, mixture
from gramian.compute.rowspace import RowSpace
from gramian.genetics.pca import GenotypePCA
from gramian.kernel_pca.choose import KernelPCACV
from gramian.kernel_pca.estimator import KernelPCA
from gramian.kernel_pca.feature_maps import Nystroem, PolynomialMap, RBFSampler
from gramian.kernel_pca.solve import LandmarkStream
from gramian.kernel_ridge.classifier import KernelRidgeClassifier, ProbabilitySigmoid
from gramian.kernel_ridge.estimator import KernelRidge, KernelRidgeCV
from gramian.kernel_ridge.landmark_fit import LandmarkFit, Whitening
from gramian.kernel_ridge.learn import LearnedKernel
from gramian.kernel_ridge.logistic import KernelLogisticRegression
from gramian.kernels.base import NormalisedAbout
from gramian.kernels.inner_product import CosineAbout, LinearAbout, PolynomialAbout
from gramian.likelihood import families as laws
from gramian.likelihood.estimator import MaximumLikelihood
from gramian.likelihood.families.base import Link, Parameter, Unit
from gramian.likelihood.families.joint import Ellipse, Shares
from gramian.likelihood.fit import Estimate, refit
from gramian.likelihood.intervals import LineProfile
from gramian.likelihood.problem import LikelihoodProblem
from gramian.likelihood.sample import Binned, Censored, Intervals, Sample
from gramian.linear.path import RidgePath
from gramian.mixture.bayesian import BayesianGaussianMixture
from gramian.mixture.classes import MixtureDiscriminant
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.robust import RobustMixture
from gramian.pca.estimator import PCA
from gramian.pca.factor_analysis import FactorAnalysis
from gramian.pca.incremental import IncrementalPCA
from gramian.pca.rotation import Rotation
from gramian.pca.tracy_widom import TracyWidomTable
from gramian.pca.truncated_svd import TruncatedSVD
from gramian.results import Optimum, Residual, SpectralCertificate
from gramian.ridge.classifier import RidgeClassifier, RidgeClassifierCV
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.ridge.solve import RidgeInverse
from gramian.sources import DenseSource
from gramian.sources.plink import Samples, Snps


def _list_classes(prefix: str, *classes: type) -> dict[str, type]:
    return {f"{prefix}.{cls.__name__.lstrip('_')}": cls for cls in classes}


# What a file may hold as its model; the names are part of the format and outlive the places of the classes.
_LINEAR_MAPS = (FactorAnalysis, GenotypePCA, IncrementalPCA, PCA, TruncatedSVD)
_KERNEL_MAPS = (KernelPCA, KernelPCACV, Nystroem, PolynomialMap, RBFSampler)
_MAPS = (*_LINEAR_MAPS, *_KERNEL_MAPS)
_REGRESSIONS = (KernelRidge, KernelRidgeCV, Ridge, RidgeCV)
_CLASSIFIERS = (
    KernelLogisticRegression,
    KernelRidgeClassifier,
    MixtureDiscriminant,
    RidgeClassifier,
    RidgeClassifierCV,
)
_DENSITIES = (BayesianGaussianMixture, GaussianMixture, MaximumLikelihood, RobustMixture)
ESTIMATORS: dict[str, type] = {cls.__name__: cls for cls in (*_MAPS, *_REGRESSIONS, *_CLASSIFIERS, *_DENSITIES)}

# Kernels that are no Python functions of a user's: built in, and made of such.
_PLAIN = (kernels.Chi2, kernels.AdditiveChi2, kernels.Cosine, kernels.Linear, kernels.Polynomial, kernels.Sigmoid)
_RADIAL = (kernels.Gaussian, kernels.Laplacian, kernels.Matern, kernels.RationalQuadratic)
_MADE = (kernels.OnColumns, kernels.MatrixFunction, kernels.Precomputed, kernels.Product, kernels.Scaled, kernels.Sum)
_ABOUT = (CosineAbout, LinearAbout, NormalisedAbout, PolynomialAbout)
_ELEMENTARY = (gp.ConstantKernel, gp.DotProduct, gp.ExpSineSquared, gp.Matern, gp.PairwiseKernel, gp.RBF)
_COMPOSED = (gp.CompoundKernel, gp.Exponentiation, gp.Product, gp.RationalQuadratic, gp.Sum, gp.WhiteKernel)

CLASSES: dict[str, type] = {
    **ESTIMATORS,
    "results.Certificate": SpectralCertificate,
    **_list_classes("results", Optimum, Residual, RidgePath),
    **_list_classes("kernels", *_PLAIN, *_RADIAL, *_MADE, *_ABOUT),
    **_list_classes("sklearn", *_ELEMENTARY, *_COMPOSED),
    **_list_classes("families", *laws.FAMILIES.values(), laws.Binomial, laws.Scipy),
    **_list_classes("likelihood", Binned, Censored, Estimate, Intervals, LineProfile, Link, Parameter, Sample, Unit),
    "likelihood.Problem": LikelihoodProblem,
    **_list_classes("likelihood", Ellipse, Shares),
    **_list_classes("mixture", mixture.Constraints, mixture.Diagnosis, mixture.Landscape, mixture.Maximiser),
    **_list_classes("mixture", mixture.HeavyMixture, mixture.Mixture, mixture.Prior, mixture.Stepwise),
    "mixture.Fit": mixture.MixtureFit,
    "mixture.Statistics": mixture.SufficientStatistics,
    "ridge.Group": RidgeInverse,
    **_list_classes("kernel_pca", LandmarkStream),
    **_list_classes("kernel_ridge", LearnedKernel),
    "inducing.InducingFit": LandmarkFit,
    "inducing.Whitening": Whitening,
    "calibration.Sigmoid": ProbabilitySigmoid,
    **_list_classes("pca", Rotation),
    **_list_classes("stream", RowSpace, DenseSource),
    **_list_classes("genetics", Samples, Snps, TracyWidomTable),
}
NAMES: dict[type, str] = {cls: name for name, cls in CLASSES.items()}

# Functions of ours that fitted objects keep for later.
FUNCTIONS: dict[str, Callable[..., Any]] = {"likelihood.refit": refit}

TYPES: dict[str, type] = {
    **{cls.__name__: cls for cls in (bool, float, int, str)},
    **{f"numpy.{np.dtype(code).name}": np.dtype(code).type for code in ("f2", "f4", "f8", "i4", "i8", "b1")},
}


def function_name(function: Any) -> str | None:
    """The name of a function on the list, or None."""
    return next((name for name, known in FUNCTIONS.items() if known is function), None)
