"""scikit-learn's own contract of an estimator, with no check excused."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import (
    PCA,
    BayesianGaussianMixture,
    FactorAnalysis,
    IncrementalPCA,
    KernelPCA,
    KernelPCACV,
    KernelRidge,
    MixtureDiscriminant,
    RobustMixture,
    TruncatedSVD,
)
from gramian.kernel_pca.feature_maps import Nystroem, PolynomialMap, RBFSampler


# The checks feed degenerate data (one feature, constant columns) on purpose; Gramian rightly speaks up there.
@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        PCA(),
        PCA(1, whiten=True, svd_solver="covariance_eigh"),
        PCA(1, svd_solver="krylov", random_state=0),
        PCA(0.9, scale=True),
        IncrementalPCA(),
        IncrementalPCA(1, whiten=True, batch_size=7),
        TruncatedSVD(1),
        TruncatedSVD(1, algorithm="arpack"),
        FactorAnalysis(),
        FactorAnalysis(2, rotation="promax"),
        KernelPCA(2),
        KernelPCA(kernel="rbf", fit_inverse_transform=True),
        KernelPCA(1, kernel="rbf", eigen_solver="krylov", random_state=0),
        KernelPCA(2, kernel="precomputed"),
        KernelPCACV([1, 2], gamma=[0.1, 1.0], criterion="novelty"),
        KernelPCACV(2),
        KernelRidge(),
        KernelRidge(0.1, kernel="rbf", fit_intercept=True),
        KernelRidge(kernel="rbf", solver="eigh"),
        KernelRidge(kernel="rbf", solver="cg", tol=1e-10),
        KernelRidge(kernel="rbf", solver="landmarks"),
        KernelRidge(kernel="precomputed"),
        BayesianGaussianMixture(),
        BayesianGaussianMixture(2, covariance_type="diag"),
        RobustMixture(),
        RobustMixture(2, covariance_type="EEI", degrees_of_freedom=None, noise=True),
        MixtureDiscriminant((1, 2), covariance_types=["EEE", "VVI"]),
        MixtureDiscriminant(covariance_types=["EEE"], shared=True),
        Nystroem(),
        Nystroem(landmarks="rpcholesky"),
        RBFSampler(),
        PolynomialMap(),
    ]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)
