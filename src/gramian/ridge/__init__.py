"""Ridge regression, and classification by it."""

from gramian.ridge.classifier import RidgeClassifier, RidgeClassifierCV
from gramian.ridge.estimator import Ridge, RidgeCV

__all__ = ["Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV"]
