"""Rules for the number of components by name, as ``PCA(n_components=...)`` takes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gramian.analysis.cross_validation import cross_validate_rank
from gramian.analysis.parallel_analysis import parallel_analysis
from gramian.analysis.rank_choice import RankChoice
from gramian.results import NumericalWarning

__all__ = ["DATA_RULES"]


def _permutation(pca: Any, X: Any, sample_weight: Any) -> RankChoice:
    return parallel_analysis(pca, X, sample_weight=sample_weight, random_state=pca.random_state)


def _gaussian(pca: Any, X: Any, sample_weight: Any) -> RankChoice:
    return parallel_analysis(pca, X, null="gaussian", sample_weight=sample_weight, random_state=pca.random_state)


def _cross_validation(pca: Any, X: Any, sample_weight: Any) -> RankChoice:
    found = cross_validate_rank(pca, X, sample_weight=sample_weight, random_state=pca.random_state)
    if found.at_the_end:
        warnings.warn(f"n_components='cv': {found.reason}", NumericalWarning, stacklevel=4)  # at PCA.fit's caller
    return found


# Those that need the rows; the others, which need the eigenvalues alone, are gramian.analysis.rank.SPECTRUM_RULES.
DATA_RULES: dict[str, Callable[[Any, Any, Any], RankChoice]] = {
    "cv": _cross_validation,
    "parallel": _permutation,
    "parallel-gaussian": _gaussian,
}
