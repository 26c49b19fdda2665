"""Kernel ridge regression and classification."""

from gramian.kernel_ridge.classifier import KernelRidgeClassifier
from gramian.kernel_ridge.estimator import KernelRidge, KernelRidgeCV

__all__ = ["KernelRidge", "KernelRidgeCV", "KernelRidgeClassifier"]
