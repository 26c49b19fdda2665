"""Ridge regression, and classification by it."""

from gramian.ridge.classifier import RidgeClassifier, RidgeClassifierCV
from gramian.ridge.estimator import Ridge, RidgeCV
from gramian.ridge.penalties import ClassicalPenalties, classical_penalties

__all__ = ["ClassicalPenalties", "Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV", "classical_penalties"]
