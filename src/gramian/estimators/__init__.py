"""The scikit-learn contract and nothing else: validate, build the operator, solve, name the results."""

from gramian.estimators.pca import PCA

__all__ = ["PCA"]
