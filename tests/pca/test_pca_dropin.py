"""A script written for scikit-learn's PCA gives the same answers after changing the import."""

import inspect
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import decomposition

from gramian import PCA
from oracles import Array, minka_dimension, naive_pca, separated, with_spectrum

EXACT = ["auto", "full", "covariance_eigh"]
ITERATIVE = ["arpack", "randomized", "krylov", "power"]
SHAPES = [(60, 8, 3), (60, 8, 8), (200, 5, 2), (12, 30, 5), (40, 40, 6)]
ARRAYS = ["components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"]


def pair(X: Array, solver: str = "full", **params: Any) -> tuple[Any, Any]:
    """Ours with the solver named and scikit-learn's by its full SVD."""
    # 1e-11 makes an iterative solver as good as an exact one for a comparison at 1e-7.
    ours = PCA(svd_solver=solver, tol=1e-11, random_state=0, **params).fit(X)
    return ours, decomposition.PCA(svd_solver="full", **params).fit(X)


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-7) -> None:
    for name in ARRAYS:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=rtol, atol=rtol, err_msg=name)
    assert ours.n_components_ == theirs.n_components_
    assert ours.n_samples_ == theirs.n_samples_
    assert ours.n_features_in_ == theirs.n_features_in_
    assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-6, atol=1e-12)


def test_constructor_has_the_same_parameters_in_the_same_order() -> None:
    theirs = inspect.signature(decomposition.PCA.__init__).parameters
    ours = inspect.signature(PCA.__init__).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default, name
        assert ours[name].kind == parameter.kind, name
    assert len(ours) - len(theirs) <= 8


def test_every_public_method_exists_and_takes_the_same_arguments() -> None:
    for name in [name for name in dir(decomposition.PCA) if not name.startswith("_")]:
        method, twin = getattr(PCA, name), getattr(decomposition.PCA, name)
        assert callable(method) == callable(twin)
        expected = list(inspect.signature(twin).parameters)
        assert list(inspect.signature(method).parameters)[: len(expected)] == expected, name


def test_every_fitted_attribute_exists_with_the_same_shape() -> None:
    ours, theirs = pair(separated(30, 6), n_components=4)
    for name in [name for name in vars(theirs) if name.endswith("_") and not name.startswith("_")]:
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name)), name


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize(("n", "p", "k"), SHAPES)
def test_same_answers(n: int, p: int, k: int, solver: str, whiten: bool) -> None:
    X, new = separated(n, p), separated(9, p, seed=5)
    ours, theirs = pair(X, solver, n_components=k, whiten=whiten)
    assert_same(ours, theirs)
    assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-6, atol=1e-6)
    codes = theirs.transform(X)
    assert_allclose(ours.transform(X), codes, rtol=1e-6, atol=1e-6)
    assert_allclose(ours.inverse_transform(codes), theirs.inverse_transform(codes), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "krylov"])
@pytest.mark.parametrize(("n", "p", "k"), [(60, 8, 3), (200, 5, 5), (12, 30, 5)])
def test_same_probabilistic_model(n: int, p: int, k: int, solver: str, whiten: bool) -> None:
    """Whitening changes the scores and not the model: scikit-learn 1.9.1 counts the variances twice there."""
    X, new = separated(n, p), separated(p + 2, p, seed=5)
    ours, theirs = pair(X, solver, n_components=k)
    ours.set_params(whiten=whiten).fit(X)
    assert_allclose(ours.get_covariance(), theirs.get_covariance(), rtol=1e-6, atol=1e-8)
    assert_allclose(ours.get_precision(), theirs.get_precision(), rtol=1e-5, atol=1e-6)
    assert_allclose(ours.score_samples(new), theirs.score_samples(new), rtol=1e-5)
    assert_allclose(ours.score(new), theirs.score(new), rtol=1e-5)


def test_precision_inverts_the_covariance() -> None:
    fitted = PCA(3).fit(separated(50, 7))
    assert_allclose(fitted.get_precision() @ fitted.get_covariance(), np.eye(7), atol=1e-9)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.9, 0.99, 0.99999])
@pytest.mark.parametrize(("n", "p"), [(60, 8), (300, 6), (10, 25)])
def test_fraction_of_variance(n: int, p: int, fraction: float, solver: str) -> None:
    ours, theirs = pair(separated(n, p), solver, n_components=fraction)
    assert_same(ours, theirs)
    assert ours.explained_variance_ratio_.sum() > fraction


def latent(n: int, p: int, rank: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    return np.asarray(signal + 0.2 * rng.standard_normal((n, p)) + 5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", EXACT)
def test_minka_dimension(seed: int, solver: str) -> None:
    X = latent(60, 8, 1 + seed % 4, seed)
    ours, theirs = pair(X, solver, n_components="mle")
    assert_same(ours, theirs)
    assert ours.n_components_ == minka_dimension(naive_pca(X).variances, len(X))


@pytest.mark.parametrize(("n", "p"), [(30, 100), (20, 30), (25, 25)])
def test_minka_dimension_with_fewer_rows_than_columns(n: int, p: int) -> None:
    """scikit-learn refuses this; three strong directions in weak noise are three for any n and p."""
    noise = 0.01 * np.random.default_rng(0).standard_normal((n, p))
    fitted = PCA("mle").fit(with_spectrum(n, p, [90, 70, 50]) + noise)
    assert fitted.n_components_ == 3


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize(("n", "p"), [(60, 8), (9, 9)])
def test_none_keeps_everything(n: int, p: int, solver: str) -> None:
    X = separated(n + 1, p)
    ours, theirs = pair(X, solver)
    assert_same(ours, theirs)
    assert_allclose(ours.inverse_transform(ours.transform(X)), X, rtol=1e-9)


def test_none_with_more_columns_than_rows() -> None:
    X = separated(10, 25)
    ours, theirs = decomposition.PCA().fit(X), PCA().fit(X)
    assert ours.n_components_ == theirs.n_components_
    assert_allclose(ours.components_[:-1], theirs.components_[:-1], atol=1e-10)
    assert_allclose(ours.explained_variance_, theirs.explained_variance_, atol=1e-12)


def test_none_with_arpack_leaves_one_out() -> None:
    X = separated(30, 6)
    ours, theirs = PCA(svd_solver="arpack").fit(X), decomposition.PCA(svd_solver="arpack").fit(X)
    assert ours.n_components_ == theirs.n_components_ == 5


def test_no_components_at_all() -> None:
    X = separated(30, 6)
    ours, theirs = pair(X, n_components=0)
    assert ours.transform(X).shape == theirs.transform(X).shape == (30, 0)
    assert_allclose(ours.noise_variance_, theirs.noise_variance_)


@pytest.mark.parametrize("solver", EXACT + ITERATIVE)
@pytest.mark.parametrize("whiten", [False, True])
def test_float32_in_float32_out(solver: str, whiten: bool) -> None:
    X = separated(80, 6).astype(np.float32)
    fitted = PCA(3, svd_solver=solver, whiten=whiten, random_state=0).fit(X)
    reference = decomposition.PCA(3, svd_solver="full", whiten=whiten).fit(X.astype(np.float64))
    codes = fitted.transform(X)
    assert codes.dtype == np.float32
    assert fitted.fit_transform(X).dtype == np.float32
    assert fitted.inverse_transform(codes).dtype == np.float32
    assert_allclose(codes, reference.transform(X.astype(np.float64)), atol=2e-3)
    assert_allclose(fitted.explained_variance_, reference.explained_variance_, rtol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {"n_components": -1},
        {"n_components": 7},
        {"n_components": 1.0},
        {"n_components": 1.5},
        {"n_components": "most"},
        {"n_components": 2, "whiten": "yes"},
        {"n_components": 2, "svd_solver": "lapack"},
        {"n_components": 2, "tol": -1.0},
        {"n_components": 2, "iterated_power": -1},
        {"n_components": 2, "n_oversamples": 0},
        {"n_components": 2, "power_iteration_normalizer": "SVD"},
        {"n_components": "mle", "svd_solver": "randomized"},
        {"n_components": 7, "svd_solver": "arpack"},
    ],
)
def test_refuses_what_scikit_learn_refuses(params: dict[str, Any]) -> None:
    X = separated(30, 6)
    for estimator in (decomposition.PCA(**params), PCA(**params)):
        with pytest.raises(ValueError, match=next(reversed(params))):
            estimator.fit(X)


def test_says_how_many_components_are_possible() -> None:
    with pytest.raises(ValueError, match=r"n_components=7.*6"):
        PCA(7).fit(separated(30, 6))
