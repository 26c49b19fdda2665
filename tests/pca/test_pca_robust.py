"""Right where others are silently wrong: large means, extreme scales, lost ranks, ties."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gramian import PCA, NumericalWarning
from oracles import EPS, Array, centred, exact_pca, separated, subspace_sine, with_spectrum

EXACT = ["auto", "full", "covariance_eigh"]
ITERATIVE = ["arpack", "krylov", "randomized", "power"]


def shifted(mean: float, dtype: Any = np.float64) -> Array:
    """Sixty rows of variance about one, rounded to the dtype after the mean was added."""
    rng = np.random.default_rng(int(np.log10(mean)))
    noise = rng.standard_normal((60, 4)) @ np.diag([2.0, 1.0, 0.7, 0.4]) @ rng.standard_normal((4, 4))
    return np.asarray(noise + mean * np.array([1.0, -1.0, 0.5, 2.0]), dtype=dtype)


def assert_within_certificate(fitted: PCA, exact: Any) -> None:
    """The variances are as good as 1e-10 or as the certificate promises, whichever is looser."""
    k, bounds = len(fitted.components_), fitted.certificate_.value_bounds
    values, variances = exact.singular_values[:k], exact.variances[:k]
    slack = bounds * (2 * values + bounds) / (fitted.n_samples_ - 1)
    error = np.abs(fitted.explained_variance_ - variances)
    assert (error <= slack + 1e-10 * variances).all(), (error, slack)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("mean", 10.0 ** np.arange(4, 13))
def test_large_means_in_float64(mean: float, solver: str) -> None:
    X = shifted(mean)
    exact, fitted = exact_pca(X), PCA(svd_solver=solver).fit(X)
    assert_allclose(fitted.explained_variance_, exact.variances, rtol=1e-10)
    assert_allclose(fitted.mean_, exact.mean, rtol=1e-15)
    assert_allclose(fitted.components_, exact.components, atol=1e-9)
    assert_allclose(fitted.explained_variance_ratio_, exact.ratios, rtol=1e-10)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("mean", 10.0 ** np.arange(2, 6))
def test_large_means_in_float32(mean: float, solver: str) -> None:
    X = shifted(mean, np.float32)
    exact, fitted = exact_pca(X), PCA(svd_solver=solver).fit(X)
    assert_allclose(fitted.explained_variance_, exact.variances, rtol=1e-10)
    assert_allclose(fitted.components_, exact.components, atol=1e-6)


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("mean", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("tol", [0.0, 1e-12])
def test_large_means_with_iterative_solvers(mean: float, solver: str, tol: float) -> None:
    X = shifted(mean)
    fitted = PCA(3, svd_solver=solver, tol=tol, random_state=0).fit(X)
    assert_within_certificate(fitted, exact_pca(X))
    assert fitted.certificate_.converged


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("mean", [1e2, 1e5])
def test_large_means_with_iterative_solvers_in_float32(mean: float, solver: str) -> None:
    X = shifted(mean, np.float32)
    fitted = PCA(3, svd_solver=solver, random_state=0).fit(X)
    assert_within_certificate(fitted, exact_pca(X))
    assert fitted.certificate_.converged


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "krylov", "randomized"])
@pytest.mark.parametrize("mean", [1e2, 1e4, 1e8])
def test_large_means_in_sparse_columns(solver: str, mean: float) -> None:
    """A full column far from zero amid sparse ones: implicit centring loses digits, and says how many."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 5)) < 0.7, 0.0, rng.standard_normal((60, 5)))
    X[:, 0] = mean + rng.standard_normal(60)
    fitted = PCA(3, svd_solver=solver, tol=1e-12, random_state=0).fit(sparse.csr_array(X))
    assert_within_certificate(fitted, exact_pca(X))


def test_large_mean_is_removed_before_projecting() -> None:
    X = shifted(1e12)
    fitted, exact = PCA(2).fit(X), exact_pca(X)
    codes = centred(X) @ exact.components[:2].T
    assert_allclose(fitted.transform(X), codes, atol=1e-3)  # the mean itself is rounded to 1e-4
    assert_allclose(fitted.fit_transform(X), fitted.transform(X), atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e8, -1e-300])
@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
def test_constant_matrix_is_said_to_be_constant(solver: str, value: float) -> None:
    with pytest.warns(NumericalWarning, match=r"constant|equal|no variance"):
        fitted = PCA(2, svd_solver=solver, random_state=0).fit(np.full((20, 4), value))
    assert_allclose(fitted.explained_variance_, 0)
    assert_allclose(fitted.explained_variance_ratio_, 0)
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(2), atol=1e-12)
    assert_allclose(fitted.transform(np.full((3, 4), value)), 0, atol=1e-12 * abs(value))
    assert fitted.rank_ == 0


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_one_sample_is_refused(solver: str, kind: Any) -> None:
    with pytest.raises(ValueError, match=r"1 sample|one sample|minimum of 2|at least (2|two)"):
        PCA(1, svd_solver=solver).fit(kind(np.ones((1, 4))))


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("factor", [1e200, 1e-170])
@pytest.mark.parametrize("scale", [False, True])
def test_extreme_scales(solver: str, factor: float, scale: bool) -> None:
    X, k = separated(30, 5), 3
    exact = exact_pca(X, scale=scale)
    model = PCA(k, svd_solver=solver, scale=scale, tol=1e-12, random_state=0)
    if scale:
        fitted, unit = model.fit(X * factor), 1.0
        assert_allclose(fitted.explained_variance_, exact.variances[:k], rtol=1e-9)
    else:
        with pytest.warns(NumericalWarning, match=r"overflow|underflow|float64"):
            fitted, unit = model.fit(X * factor), factor
    assert_allclose(fitted.singular_values_ / unit, exact.singular_values[:k], rtol=1e-9)
    assert_allclose(fitted.explained_variance_ratio_, exact.ratios[:k], rtol=1e-9)
    assert_allclose(fitted.components_, exact.components[:k], atol=1e-8)
    assert np.isfinite(fitted.transform(X * factor)).all()


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("factor", [1e100, 1e-100])
def test_large_scales_whose_variance_is_still_a_number(solver: str, factor: float) -> None:
    X = separated(30, 5)
    fitted = PCA(3, svd_solver=solver, tol=1e-12, random_state=0).fit(X * factor)
    assert_allclose(fitted.explained_variance_ / factor**2, exact_pca(X).variances[:3], rtol=1e-9)


@pytest.mark.parametrize("shape", [(60, 12), (600, 12), (16, 60)])
@pytest.mark.parametrize("solver", ["auto", "full"])
def test_falling_spectrum(shape: tuple[int, int], solver: str) -> None:
    """σ_k = 10⁻ᵏ: the Gram matrix alone would lose everything below 1e-8."""
    truth = 10.0 ** -np.arange(12)
    X = with_spectrum(*shape, values=truth)
    if shape[1] == 12:
        truth = exact_pca(X).singular_values
    fitted = PCA(12, svd_solver=solver).fit(X)
    assert_allclose(fitted.singular_values_, truth, rtol=0, atol=2e-14)
    assert_allclose(fitted.singular_values_[:10], truth[:10], rtol=1e-4)
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(12), atol=1e-12)


@pytest.mark.parametrize("solver", ["krylov", "randomized"])
def test_falling_spectrum_with_iterative_solvers(solver: str) -> None:
    X = with_spectrum(80, 30, 10.0 ** -np.arange(14))
    fitted = PCA(6, svd_solver=solver, tol=1e-9, random_state=0).fit(X)
    error = np.abs(fitted.singular_values_ - 10.0 ** -np.arange(6))
    assert (error <= fitted.certificate_.value_bounds + 1e-15).all()
    assert fitted.certificate_.value_bounds.max() < 1e-9
    assert_allclose(error, 0, atol=1e-13)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["krylov", "randomized"])
def test_values_too_small_for_the_tolerance_are_still_bounded(solver: str) -> None:
    fitted = PCA(10, svd_solver=solver, tol=1e-12, random_state=0).fit(with_spectrum(80, 30, 10.0 ** -np.arange(14)))
    error = np.abs(fitted.singular_values_ - 10.0 ** -np.arange(10))
    assert (error <= fitted.certificate_.value_bounds + 1e-15).all()
    assert fitted.certificate_.value_bounds.max() < 1e-6


@pytest.mark.parametrize("solver", EXACT)
def test_lapack_test_ratios(solver: str) -> None:
    for n, p in [(50, 50), (200, 30), (20, 90)]:
        X = np.random.default_rng(n).standard_normal((n, p))
        k = min(n - 1, p)
        fitted = PCA(k, svd_solver=solver).fit(X)
        A, V = centred(X), fitted.components_.T
        rebuilt = fitted.transform(X) @ V.T
        assert np.linalg.norm(A - rebuilt, 2) <= 30 * max(n, p) * np.linalg.norm(A, 2) * EPS
        assert np.linalg.norm(V.T @ V - np.eye(k), 2) <= 30 * k * EPS
        values = np.linalg.svd(A, compute_uv=False)[:k]
        assert_allclose(fitted.singular_values_, values, rtol=0, atol=30 * EPS * values[0])


@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", *ITERATIVE])
@pytest.mark.parametrize(("levels", "k"), [(12, 10), (13, 10), (40, 3), (25, 24)])
def test_tied_eigenvalues_of_balanced_categories(levels: int, k: int, solver: str) -> None:
    """Balanced one-hot columns: levels − 1 equal eigenvalues, so any basis of any part of them is right."""
    X = sparse.csr_array(np.tile(np.eye(levels), (10, 1)))
    fitted = PCA(k, svd_solver=solver, tol=1e-9, random_state=0).fit(X)
    V = fitted.components_
    assert_allclose(fitted.singular_values_, np.full(k, np.sqrt(10)), rtol=1e-8)
    assert_allclose(V @ V.T, np.eye(k), atol=1e-10)
    assert_allclose(V.sum(axis=1), 0, atol=1e-6)  # orthogonal to the only direction without variance
    assert fitted.certificate_.converged


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize(("before", "tied", "k"), [(0, 12, 10), (2, 3, 5), (2, 3, 4), (1, 20, 6)])
def test_tied_eigenvalues_of_dense_data(before: int, tied: int, k: int, solver: str) -> None:
    values = np.r_[np.linspace(5, 4, before), np.full(tied, 2.0), np.linspace(1, 0.5, 5)]
    X = with_spectrum(60, 30, values)
    fitted = PCA(k, svd_solver=solver, tol=1e-10, random_state=0).fit(X)
    _, _, right = np.linalg.svd(centred(X), full_matrices=False)
    assert_allclose(fitted.singular_values_, values[:k], rtol=1e-9)
    assert subspace_sine(fitted.components_, right[: before + tied]) < 1e-8
    if before:
        assert subspace_sine(right[:before], fitted.components_) < 1e-8
