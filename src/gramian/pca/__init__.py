"""Principal component analysis."""

from gramian.pca.advice import rank_advice
from gramian.pca.estimator import PCA
from gramian.pca.factor_analysis import FactorAnalysis
from gramian.pca.incremental import IncrementalPCA
from gramian.pca.truncated_svd import TruncatedSVD

__all__ = ["PCA", "FactorAnalysis", "IncrementalPCA", "TruncatedSVD", "rank_advice"]
