"""The scikit-learn contract and nothing else: validate, build the operator, solve, name the results."""

from gramian.estimators._advice import rank_advice
from gramian.estimators.kernel_features import Nystroem, PolynomialMap, RBFSampler
from gramian.estimators.kernel_pca import KernelPCA
from gramian.estimators.pca import PCA

__all__ = ["PCA", "KernelPCA", "Nystroem", "PolynomialMap", "RBFSampler", "rank_advice"]
