"""The scikit-learn contract and nothing else: validate, build the operator, solve, name the results."""

from gramian.estimators._advice import rank_advice
from gramian.estimators.pca import PCA

__all__ = ["PCA", "rank_advice"]
