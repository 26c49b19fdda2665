"""Nyström, random Fourier and polynomial features against scikit-learn and against the kernels they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import kernel_approximation as twin
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from gramian.kernel_pca.feature_maps import Nystroem, PolynomialMap, RBFSampler
from gramian.kernels import Gaussian, Matern, Polynomial

X = np.random.default_rng(0).uniform(0, 1, (80, 5))
NEW = np.random.default_rng(1).uniform(0, 1, (30, 5))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gamma": 0.7},
        {"kernel": "poly", "degree": 2, "coef0": 0.5},
        {"kernel": "sigmoid", "gamma": 0.3, "n_components": 4},
        {"kernel": "laplacian"},
        {"kernel": "chi2"},
        {"kernel": "cosine", "n_components": 5},
        {"kernel": lambda x, z, power: float(np.dot(x, z) + 1) ** power, "kernel_params": {"power": 2}},
    ],
)
def test_nystroem_gives_scikit_learns_features(options: dict[str, Any]) -> None:
    settings = {"n_components": 12, "random_state": 3} | options
    mine, theirs = Nystroem(**settings).fit(X), twin.Nystroem(**settings).fit(X)
    np.testing.assert_array_equal(mine.component_indices_, theirs.component_indices_)
    np.testing.assert_allclose(mine.transform(NEW), theirs.transform(NEW), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky"])
def test_nystroem_is_exact_on_its_landmarks(landmarks: str) -> None:
    model = Nystroem(Matern(0.5), n_components=20, landmarks=landmarks, random_state=0).fit(X)
    features, K = model.transform(X), Matern(0.5)(X)
    rows = model.component_indices_
    np.testing.assert_allclose((features @ features.T)[:, rows], K[:, rows], atol=1e-10)
    rest = K - features @ features.T
    assert np.linalg.eigvalsh(rest)[0] > -1e-10
    if landmarks == "rpcholesky":
        assert model.trace_error_ == pytest.approx(np.trace(rest), rel=1e-8)


def test_pivoted_landmarks_are_better_on_digits() -> None:
    digits = load_digits().data[:600] / 16.0
    errors = {}
    for landmarks in ("uniform", "rpcholesky"):
        models = [Nystroem(gamma=0.1, n_components=60, landmarks=landmarks, random_state=seed) for seed in range(5)]
        errors[landmarks] = np.mean([600 - np.sum(model.fit_transform(digits) ** 2) for model in models])
    assert errors["rpcholesky"] < 0.95 * errors["uniform"]


def test_repeated_rows_do_not_divide_by_zero() -> None:
    doubled = np.repeat(X[:6], 2, axis=0)
    features = Nystroem(gamma=1.0, n_components=12, random_state=0).fit_transform(doubled)
    np.testing.assert_allclose(features @ features.T, Gaussian(1.0)(doubled), atol=1e-12)
    pivoted = Nystroem(gamma=1.0, n_components=12, landmarks="rpcholesky").fit(doubled)
    assert pivoted.components_.shape == (6, 5)  # a copy of a landmark is never chosen


def test_nystroem_of_a_precomputed_kernel() -> None:
    direct = Nystroem(gamma=0.5, n_components=9, random_state=0).fit(X)
    given = Nystroem("precomputed", n_components=9, random_state=0).fit(Gaussian(0.5)(X))
    np.testing.assert_allclose(given.transform(Gaussian(0.5)(NEW, X)), direct.transform(NEW), atol=1e-9)
    with pytest.raises(ValueError, match=r"\(30, 80\)"):
        Nystroem("precomputed").fit(Gaussian(0.5)(NEW, X))


@pytest.mark.parametrize("gamma", [0.5, "scale"])
def test_fourier_features_are_scikit_learns(gamma: Any) -> None:
    settings = {"gamma": gamma, "n_components": 50, "random_state": 7}
    mine, theirs = RBFSampler(**settings).fit(X), twin.RBFSampler(**settings).fit(X)
    np.testing.assert_allclose(mine.random_weights_, theirs.random_weights_, rtol=1e-12)
    np.testing.assert_allclose(mine.transform(NEW), theirs.transform(NEW), atol=1e-12)


def test_fourier_features_approach_the_kernel() -> None:
    """The mean over D draws has a standard error of at most 1/√D; five of them for 80² entries."""
    D = 20_000
    Z = RBFSampler(gamma=2.0, n_components=D, random_state=0).fit_transform(X)
    assert np.abs(Z @ Z.T - Gaussian(2.0)(X)).max() < 5 / np.sqrt(D)


@pytest.mark.parametrize(("degree", "coef0", "gamma"), [(2, 0.0, 1.0), (3, 1.0, None), (1, 2.0, 0.5)])
def test_polynomial_map_is_the_kernel(degree: int, coef0: float, gamma: float | None) -> None:
    model = PolynomialMap(degree, coef0=coef0, gamma=gamma).fit(X)
    A, B = model.transform(X), model.transform(NEW)
    np.testing.assert_allclose(A @ B.T, Polynomial(degree, coef0, gamma)(X, NEW), rtol=1e-12)
    assert len(model.get_feature_names_out()) == A.shape[1] == model.n_components_


def test_ridge_on_the_map_is_kernel_ridge() -> None:
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    kernel, lam = Polynomial(2, 1.0, 1.0), 0.1
    model = make_pipeline(PolynomialMap(2, gamma=1.0), Ridge(alpha=lam, fit_intercept=False)).fit(X, y)
    dual = kernel(NEW, X) @ np.linalg.solve(kernel(X) + lam * np.eye(80), y)
    np.testing.assert_allclose(model.predict(NEW), dual, rtol=1e-9)


MODELS = [
    Nystroem(n_components=7, random_state=0),
    Nystroem(n_components=7, random_state=0, landmarks="rpcholesky"),
    RBFSampler(n_components=7, random_state=0),
    PolynomialMap(),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_sparse_files_and_float32(model: Any, tmp_path: Path) -> None:
    want = clone(model).fit(X).transform(NEW)
    sparse = clone(model).fit(sp.csr_array(X)).transform(sp.csr_array(NEW))
    np.testing.assert_allclose(sparse, want, atol=1e-9)
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_allclose(clone(model).fit(tmp_path / "x.npy").transform(NEW), want, atol=1e-9)
    single = clone(model).fit(X.astype(np.float32)).transform(NEW.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, want, atol=2e-3)  # K_LL^(−1/2) multiplies rounding by its condition


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Nystroem(n_components=0), "n_components"),
        (Nystroem(landmarks="best"), "landmarks must be one of"),
        (Nystroem("sigmoid", landmarks="rpcholesky"), "not positive semidefinite"),
        (Nystroem("rbff"), "kernel must be one of"),
        (RBFSampler(gamma=-1.0), "gamma must be a positive number or 'scale', got -1.0"),
        (RBFSampler(gamma="median"), "gamma must be a positive number or 'scale'"),
        (PolynomialMap(coef0=-1.0), "coef0 must not be negative"),
    ],
)
def test_bad_parameters_are_refused_by_name(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(X)
