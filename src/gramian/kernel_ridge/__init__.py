"""Kernel ridge regression and classification."""

from gramian.kernel_ridge.classifier import KernelRidgeClassifier
from gramian.kernel_ridge.estimator import KernelRidge, KernelRidgeCV
from gramian.kernel_ridge.logistic import KernelLogisticRegression

__all__ = ["KernelLogisticRegression", "KernelRidge", "KernelRidgeCV", "KernelRidgeClassifier"]
