"""Kernel principal component analysis, pre-images, and feature maps."""

from gramian.kernel_pca.choose import KernelPCACV
from gramian.kernel_pca.estimator import KernelPCA
from gramian.kernel_pca.feature_maps import Nystroem, PolynomialMap, RBFSampler

__all__ = ["KernelPCA", "KernelPCACV", "Nystroem", "PolynomialMap", "RBFSampler"]
