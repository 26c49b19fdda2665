"""scikit-learn's own contract of an estimator, with no check excused."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import PCA
from gramian.estimators.kernel_features import Nystroem, PolynomialMap, RBFSampler


# The checks feed degenerate data (one feature, constant columns) on purpose; Gramian rightly speaks up there.
@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        PCA(),
        PCA(1, whiten=True, svd_solver="covariance_eigh"),
        PCA(1, svd_solver="krylov", random_state=0),
        PCA(0.9, scale=True),
        Nystroem(),
        Nystroem(landmarks="rpcholesky"),
        RBFSampler(),
        PolynomialMap(),
    ]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)
