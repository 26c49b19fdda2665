"""Principal component analysis."""

from gramian.pca.advice import rank_advice
from gramian.pca.estimator import PCA

__all__ = ["PCA", "rank_advice"]
