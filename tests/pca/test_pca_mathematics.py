"""Every equation of PCA, checked on numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import PCA
from oracles import Array, fix_signs, separated, subspace_sine

SOLVERS = ["full", "covariance_eigh", "krylov", "randomized", "power"]


def covariance(X: Array) -> Array:
    """S = (1/n) Σ (x−x̄)(x−x̄)ᵀ, with the divisor n."""
    rest = X - X.mean(axis=0)
    return np.asarray(rest.T @ rest / len(X))


def fit(X: Array, k: int | None = None, solver: str = "full") -> PCA:
    return PCA(k, svd_solver=solver, tol=1e-11, random_state=0).fit(X)


def random_basis(p: int, k: int, seed: int) -> Array:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, k)))[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_components_are_eigenvectors_of_the_covariance(solver: str) -> None:
    X = separated(50, 7)
    fitted = fit(X, 4, solver)
    S, V = covariance(X), fitted.components_.T
    eigenvalues = fitted.explained_variance_ * 49 / 50
    assert_allclose(S @ V, V * eigenvalues, atol=1e-8)
    assert_allclose(V.T @ V, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_components_are_right_singular_vectors(solver: str) -> None:
    X = separated(50, 7)
    fitted = fit(X, 3, solver)
    _, values, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    assert_allclose(fitted.components_, fix_signs(right[:3]), atol=1e-7)
    assert_allclose(fitted.singular_values_, values[:3], rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_eigenvalue_is_variance_of_the_projection(solver: str) -> None:
    X = separated(50, 7)
    fitted = fit(X, 4, solver)
    codes = fitted.transform(X)
    assert_allclose(codes.mean(axis=0), 0, atol=1e-10)
    assert_allclose(np.cov(codes.T), np.diag(fitted.explained_variance_), atol=1e-7)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 5))
def test_no_basis_has_more_variance_or_less_reconstruction_error(seed: int, k: int) -> None:
    X = separated(30, 6)
    fitted = fit(X, k)
    basis, rest = random_basis(6, k, seed), X - X.mean(axis=0)
    variance = ((rest @ basis) ** 2).sum() / 29
    error = ((rest - rest @ basis @ basis.T) ** 2).sum()
    assert variance <= fitted.explained_variance_.sum() * (1 + 1e-12)
    assert error >= fitted.reconstruction_error(X).sum() * (1 - 1e-10)


def test_variance_and_reconstruction_error_add_up() -> None:
    """What is not captured is what is lost, so maximising the one minimises the other."""
    X = separated(30, 6)
    total = ((X - X.mean(axis=0)) ** 2).sum()
    for k in range(1, 7):
        fitted = fit(X, k)
        captured = (fitted.singular_values_**2).sum()
        assert_allclose(captured + fitted.reconstruction_error(X).sum(), total, rtol=1e-12)


@given(seed=st.integers(0, 10**6))
def test_rayleigh_quotient_lies_between_the_extreme_eigenvalues(seed: int) -> None:
    X = separated(30, 6)
    fitted = fit(X)
    v = np.random.default_rng(seed).standard_normal(6)
    quotient = v @ covariance(X) @ v / (v @ v)
    eigenvalues = fitted.explained_variance_ * 29 / 30
    assert eigenvalues[-1] * (1 - 1e-12) <= quotient <= eigenvalues[0] * (1 + 1e-12)


def test_rayleigh_quotient_of_a_component_is_its_eigenvalue() -> None:
    X = separated(30, 6)
    fitted = fit(X)
    quotients = np.einsum("ki,ij,kj->k", fitted.components_, covariance(X), fitted.components_)
    assert_allclose(quotients, fitted.explained_variance_ * 29 / 30, rtol=1e-10)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_pythagoras(k: int) -> None:
    """‖X‖² = ‖XV‖² + ‖X − XVVᵀ‖² for the centred X, row by row and in all."""
    X = separated(30, 6)
    fitted = fit(X, k)
    rest = X - X.mean(axis=0)
    codes = fitted.transform(X)
    assert_allclose((rest**2).sum(axis=1), (codes**2).sum(axis=1) + fitted.reconstruction_error(X), rtol=1e-10)


def test_encoder_and_decoder() -> None:
    """Codes are U_k S_k, and the decoded rows x̄ + X V_k V_kᵀ."""
    X = separated(30, 6)
    fitted = fit(X, 3)
    rest = X - X.mean(axis=0)
    U, values, right = np.linalg.svd(rest, full_matrices=False)
    V = right[:3].T
    signs = np.sign((fitted.components_ * V.T).sum(axis=1))
    codes = fitted.transform(X)
    assert_allclose(codes, U[:, :3] * values[:3] * signs, atol=1e-10)
    assert_allclose(fitted.inverse_transform(codes), X.mean(axis=0) + rest @ V @ V.T, atol=1e-10)


def test_decoded_row_is_codes_plus_the_mean_in_the_dropped_directions() -> None:
    """x̃ = Σ_{i≤M} z_i u_i + Σ_{i>M} b_i u_i, where z_i = x·u_i and b_i = x̄·u_i."""
    X = separated(30, 6)
    basis, mean = fit(X).components_, X.mean(axis=0)
    rebuilt = X @ basis[:2].T @ basis[:2] + mean @ basis[2:].T @ basis[2:]
    fitted = fit(X, 2)
    assert_allclose(fitted.inverse_transform(fitted.transform(X)), rebuilt, atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_mean_error_is_the_sum_of_the_dropped_eigenvalues(solver: str) -> None:
    """J = (1/n) Σ ‖x − x̃‖² = Σ_{i>M} λ_i."""
    X = separated(40, 6)
    eigenvalues = np.linalg.eigvalsh(covariance(X))[::-1]
    fitted = fit(X, 2, solver)
    assert_allclose(fitted.reconstruction_error(X).mean(), eigenvalues[2:].sum(), rtol=1e-9)


def test_whitened_codes_have_unit_covariance() -> None:
    X = separated(40, 6)
    whitened = PCA(4, whiten=True).fit(X)
    assert_allclose(np.cov(whitened.transform(X).T), np.eye(4), atol=1e-9)
    assert_allclose(whitened.reconstruction_error(X), PCA(4).fit(X).reconstruction_error(X), rtol=1e-9)


def test_all_components_lose_nothing() -> None:
    X = separated(40, 6)
    assert_allclose(PCA().fit(X).reconstruction_error(X), 0, atol=1e-24)
    assert_allclose(PCA().fit(X).explained_variance_ratio_.sum(), 1, rtol=1e-14)


@pytest.mark.parametrize("solver", SOLVERS)
def test_fewer_rows_than_columns_through_the_gram_matrix(solver: str) -> None:
    """For n < d the eigenvectors of X Xᵀ give those of XᵀX as v = Xᵀu/σ."""
    X = separated(9, 50)
    rest = X - X.mean(axis=0)
    values, U = np.linalg.eigh(rest @ rest.T)
    values, U = values[::-1][:4], U[:, ::-1][:, :4]
    fitted = fit(X, 4, solver)
    assert_allclose(fitted.components_, fix_signs((rest.T @ U / np.sqrt(values)).T), atol=1e-7)
    assert_allclose(fitted.explained_variance_, values / 8, rtol=1e-9)


def power_method(A: Array, k: int, steps: int = 400) -> tuple[Array, Array]:
    """The textbook's loop: Gaussian start, renormalise each step, deflate for the next triplet."""
    rng, values, right = np.random.default_rng(0), [], []
    for _ in range(k):
        v: Array = np.asarray(rng.standard_normal(A.shape[1]))
        for _ in range(steps):
            v = A.T @ (A @ v)
            v = np.asarray(v / np.linalg.norm(v))
        s = float(np.linalg.norm(A @ v))
        values.append(s)
        right.append(v)
        A = A - np.outer(A @ v, v)
    return np.array(values), np.array(right)


@pytest.mark.parametrize("shape", [(40, 6), (8, 30)])
def test_power_method(shape: tuple[int, int]) -> None:
    X = separated(*shape)
    values, right = power_method(X - X.mean(axis=0), 3)
    fitted = fit(X, 3, "power")
    assert_allclose(fitted.singular_values_, values, rtol=1e-9)
    assert_allclose(fitted.components_, fix_signs(right), atol=1e-7)
    assert fitted.certificate_.converged


def test_digits_features_feed_a_classifier() -> None:
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = make_pipeline(PCA(20, whiten=True), LogisticRegression(max_iter=500))
    assert model.fit(train, y_train).score(test, y_test) > 0.93


def test_digits_compress_with_little_loss() -> None:
    X = load_digits().data
    half = PCA(0.9).fit(X)
    assert half.n_components_ == 21
    lost = half.reconstruction_error(X).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    assert_allclose(lost, 1 - half.explained_variance_ratio_.sum(), rtol=1e-10)
    assert lost < 0.1


def uci_iris() -> Array:
    """Iris as the UCI archive prints it: two rows differ from Fisher's table."""
    X = load_iris().data.copy()
    X[34] = X[37] = [4.9, 3.1, 1.5, 0.1]
    return np.asarray(X)


COVARIANCE_OF_STANDARDISED = [2.93035378, 0.92740362, 0.14834223, 0.02074601]
CORRELATION = [2.91081808, 0.92122093, 0.14735328, 0.02060771]


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh"])
def test_published_eigenvalues_of_iris(solver: str) -> None:
    """Raschka's article on PCA: standardised with divisor n, covariance with divisor n − 1."""
    standardised = StandardScaler().fit_transform(uci_iris())
    assert_allclose(fit(standardised, solver=solver).explained_variance_, COVARIANCE_OF_STANDARDISED, atol=5e-9)


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh"])
def test_published_correlation_eigenvalues_of_iris(solver: str) -> None:
    fitted = PCA(scale=True, svd_solver=solver).fit(uci_iris())
    assert_allclose(fitted.explained_variance_, CORRELATION, atol=5e-9)
    assert_allclose(fitted.explained_variance_ratio_ * 4, CORRELATION, atol=5e-9)


def test_iris_is_drawn_in_two_dimensions() -> None:
    """One species stands apart from the other two on the first axis."""
    X, y = load_iris(return_X_y=True)
    codes = PCA(2).fit_transform(X)
    assert max(codes[y == 0, 0]) < min(codes[y > 0, 0])


def test_genotypes_mirror_a_map() -> None:
    """People whose allele frequencies drift with their place: two components span the map."""
    rng = np.random.default_rng(0)
    places = rng.uniform(-1, 1, (120, 2))
    chance = 1 / (1 + np.exp(-(places @ rng.standard_normal((2, 3000)) * 0.6 + rng.standard_normal(3000))))
    alleles = rng.binomial(2, chance).astype(np.int8)
    codes = PCA(2, svd_solver="krylov", random_state=0).fit_transform(alleles)
    directions = np.linalg.qr(places - places.mean(axis=0))[0]
    assert subspace_sine(directions.T, (codes - codes.mean(axis=0)).T) < 0.3
