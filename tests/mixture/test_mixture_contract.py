"""scikit-learn's own contract of an estimator, with no check excused."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian.mixture.estimator import GaussianMixture


# The checks feed degenerate data (constant columns, as many rows as parameters) on purpose; Gramian rightly speaks up.
@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        GaussianMixture(),
        GaussianMixture(2, covariance_type="diag", max_iter=200),
        GaussianMixture(2, covariance_type="spherical", max_iter=200),
        GaussianMixture(2, covariance_type="VVE", max_iter=200),
        GaussianMixture(2, covariance_type="tied", init_params="hierarchical", max_iter=200),
    ]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)
