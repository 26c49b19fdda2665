"""The scikit-learn contract and nothing else: validate, build the operator, solve, name the results."""

from gramian.estimators._advice import rank_advice
from gramian.estimators.kernel_features import Nystroem, PolynomialMap, RBFSampler
from gramian.estimators.kernel_pca import KernelPCA
from gramian.estimators.kernel_ridge import KernelRidge
from gramian.estimators.kernel_ridge_classifier import KernelRidgeClassifier
from gramian.estimators.kernel_ridge_cv import KernelRidgeCV
from gramian.estimators.mixture import GaussianMixture
from gramian.estimators.mle import MaximumLikelihood
from gramian.estimators.pca import PCA
from gramian.estimators.ridge import Ridge
from gramian.estimators.ridge_cv import RidgeCV

__all__ = [
    "PCA",
    "GaussianMixture",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "MaximumLikelihood",
    "Nystroem",
    "PolynomialMap",
    "RBFSampler",
    "Ridge",
    "RidgeCV",
    "rank_advice",
]
