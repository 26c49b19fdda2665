"""The certificate tells the truth about the fit it comes with."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from gramian import PCA
from oracles import Array, centred, residuals, separated, sparse_rows, with_spectrum

EXACT = ["auto", "full", "covariance_eigh"]
ITERATIVE = ["arpack", "krylov", "randomized", "power"]
SLOW = 1 / (1 + np.arange(60.0)) ** 0.1  # neighbours differ by a per cent or less


def fit(X: Any, k: int, solver: str, **params: Any) -> PCA:
    return PCA(k, svd_solver=solver, random_state=0, **params).fit(X)


def assert_certified(fitted: PCA, A: Array) -> None:
    """Recompute the residuals from the dense matrix, and hold the bounds against LAPACK's values."""
    certificate = fitted.certificate_
    mine = residuals(A, fitted.components_, fitted.singular_values_)
    values = np.linalg.svd(A, compute_uv=False)
    assert_allclose(certificate.residuals * certificate.norm / values[0], mine, rtol=0.05, atol=2e-13)
    # Before convergence a triplet may be near another value than its own; afterwards order is right too.
    error = np.abs(fitted.singular_values_[:, None] - values).min(axis=1)
    if certificate.converged:
        error = np.abs(fitted.singular_values_ - values[: len(mine)])
        assert_allclose(certificate.norm, values[0], rtol=2 * certificate.residuals.max() + 1e-12)
    assert certificate.norm <= values[0] * (1 + 1e-12)
    assert (error <= certificate.value_bounds + 1e-14 * values[0]).all(), (error, certificate.value_bounds)


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("shape", [(80, 12), (12, 80), (40, 40)])
def test_residuals_are_those_of_the_dense_matrix(shape: tuple[int, int], solver: str) -> None:
    X = separated(*shape)
    fitted = fit(X, 4, solver)
    assert_certified(fitted, centred(X))
    assert fitted.certificate_.converged
    assert fitted.certificate_.residuals.max() <= fitted.certificate_.tolerance


@pytest.mark.parametrize("solver", EXACT)
def test_exact_methods_reach_rounding(solver: str) -> None:
    certificate = fit(separated(80, 12), 4, solver).certificate_
    assert certificate.residuals.max() < 1e-13
    assert certificate.orthogonality < 1e-13


@pytest.mark.parametrize("solver", ["covariance_eigh", "krylov", "randomized"])
@pytest.mark.parametrize("scale", [False, True])
def test_weighted_scaled_and_sparse_fits_are_certified(solver: str, scale: bool) -> None:
    X = sparse_rows(70, 20, 0.3)
    weights = np.random.default_rng(1).integers(0, 4, 70)
    fitted = PCA(3, svd_solver=solver, scale=scale, random_state=0).fit(X, sample_weight=weights)
    assert_certified(fitted, centred(X.toarray(), weights, scale))


@given(
    n=st.integers(5, 60),
    p=st.integers(2, 60),
    decay=st.floats(0.3, 1.0),
    solver=st.sampled_from(EXACT + ITERATIVE),
    share=st.floats(0.0, 1.0),
    tol=st.sampled_from([0.0, 1e-2, 1e-9]),
)
def test_bounds_hold_for_any_shape_and_spectrum(
    n: int, p: int, decay: float, solver: str, share: float, tol: float
) -> None:
    rank = min(n - 1, p)
    X = with_spectrum(n, p, np.maximum(decay ** np.arange(rank), 1e-6), seed=n + 100 * p)
    k = 1 + int(share * (rank - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an honest warning is no failure here: a broken bound is
        fitted = fit(X, k, solver, tol=tol)
    values = np.linalg.svd(centred(X), compute_uv=False)[:k]
    error = np.abs(fitted.singular_values_ - values)
    assert (error <= fitted.certificate_.value_bounds + 1e-14 * values[0]).all()
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(k), atol=1e-9)


@given(seed=st.integers(0, 10**6), dtype=st.sampled_from([np.float32, np.float64]))
def test_eigenvalue_bounds_hold(seed: int, dtype: Any) -> None:
    X = np.random.default_rng(seed).standard_normal((30, 12)).astype(dtype)
    fitted = PCA(3, svd_solver="krylov", random_state=seed).fit(X)
    truth = np.linalg.svd(centred(X), compute_uv=False)[:3] ** 2 / 29
    bounds = fitted.certificate_.eigenvalue_bounds
    assert (np.abs(fitted.explained_variance_ - truth) <= bounds + 1e-13).all()


@pytest.mark.parametrize("solver", ["power", "randomized"])
def test_a_capped_iteration_warns_with_numbers_and_a_remedy(solver: str) -> None:
    X = with_spectrum(150, 60, SLOW)
    with pytest.warns(ConvergenceWarning) as caught:
        fitted = fit(X, 5, solver, iterated_power=1)
    message = str(caught[0].message)
    certificate = fitted.certificate_
    assert not certificate.converged
    assert certificate.residuals.max() > certificate.tolerance
    assert "tolerance" in message or "tol" in message
    assert f"{certificate.residuals.max():.1e}" in message
    assert any(word in message for word in ("iterated_power", "svd_solver", "krylov"))
    assert_certified(fitted, centred(X))


@pytest.mark.parametrize("solver", ITERATIVE)
def test_left_alone_the_same_spectrum_converges(solver: str) -> None:
    values = np.r_[3.0, 2.5, 2.2, SLOW] if solver == "power" else SLOW
    X = with_spectrum(150, 63, values)
    fitted = fit(X, 3, solver)
    assert fitted.certificate_.converged
    assert_certified(fitted, centred(X))


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("tol", [1e-3, 1e-8, 1e-12])
def test_the_tolerance_is_met(solver: str, tol: float) -> None:
    X = separated(100, 40)
    fitted = fit(X, 3, solver, tol=tol)
    assert fitted.certificate_.tolerance == tol
    assert fitted.certificate_.residuals.max() <= tol
    assert residuals(centred(X), fitted.components_, fitted.singular_values_).max() <= tol + 1e-14


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-6), (np.float32, 1e-4)])
@pytest.mark.parametrize("solver", ITERATIVE)
def test_default_tolerances(dtype: Any, tol: float, solver: str) -> None:
    certificate = fit(separated(100, 40).astype(dtype), 3, solver).certificate_
    assert certificate.tolerance == tol
    assert certificate.residuals.max() <= tol


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
def test_contents(solver: str) -> None:
    certificate = fit(separated(80, 12), 4, solver).certificate_
    assert certificate.method
    assert certificate.reason
    assert certificate.passes >= 1
    assert certificate.residuals.shape == certificate.value_bounds.shape == (4,)
    assert 0 <= certificate.orthogonality < 1e-10


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
def test_as_dict_is_plain_json(solver: str) -> None:
    certificate = fit(separated(80, 12), 4, solver).certificate_
    content = certificate.as_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    for name in (
        "method",
        "reason",
        "passes",
        "residuals",
        "value_bounds",
        "norm",
        "orthogonality",
        "tolerance",
    ):
        assert name in content
    assert content["converged"] is True


def test_representations() -> None:
    good = fit(separated(80, 12), 4, "krylov").certificate_
    with pytest.warns(ConvergenceWarning):
        poor = fit(with_spectrum(150, 60, SLOW), 5, "randomized", iterated_power=1).certificate_
    for certificate in (good, poor):
        for text in (repr(certificate), certificate._repr_html_()):
            assert certificate.method in text
            assert "residual" in text
    assert "<table" in good._repr_html_()
    assert "NOT converged" in repr(poor)
    assert "NOT" not in repr(good)


def test_more_work_for_a_tighter_tolerance() -> None:
    X = with_spectrum(150, 60, SLOW)
    loose, tight = (fit(X, 3, "krylov", tol=tol).certificate_ for tol in (1e-2, 1e-10))
    assert loose.passes < tight.passes


@pytest.mark.parametrize("steep", [False, True])
def test_small_tables_keep_their_digits_by_the_gram_matrix_or_without_it(steep: bool) -> None:
    """Where the spectrum falls far the Gram matrix would lose digits of small variances, and is not used."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 60)) * np.geomspace(1, 1e-6 if steep else 0.1, 60) + 3.0
    pca = PCA().fit(X)
    assert ("SVD" in pca.certificate_.method) == steep
    sigma = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    assert_allclose(pca.singular_values_, sigma, rtol=1e-8 if steep else 1e-12)
    assert pca.certificate_.converged
