"""Kernel PCA that chooses by rows held out, and kernel PCA of rows that come in batches."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from gramian import KernelPCA, KernelPCACV
from gramian.kernels import Gaussian, Linear, Polynomial
from oracles import Array


def ring(n: int, seed: int, noise: float = 0.05) -> Array:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t)]) + noise * rng.normal(size=(n, 2))


def plane(n: int, seed: int) -> Array:
    """Six columns that two numbers determine, but for noise."""
    rng = np.random.default_rng(seed)
    axes = np.random.default_rng(9).normal(size=(2, 6))
    return rng.normal(size=(n, 2)) @ axes + 0.1 * rng.normal(size=(n, 6))


@pytest.mark.parametrize("kernel", ["linear", Gaussian(0.1), Polynomial(2, gamma=0.3, coef0=1.0)], ids=repr)
@pytest.mark.parametrize("centre", [True, False])
def test_batches_that_landmarks_hold_are_one_fit(kernel: object, centre: bool) -> None:
    X = np.random.default_rng(0).normal(size=(120, 3)) + 1.0
    w = np.random.default_rng(1).integers(0, 3, 120).astype(float)
    parts = KernelPCA(3, kernel=kernel, centre=centre)
    for rows in np.array_split(np.arange(120), 4):
        parts.partial_fit(X[rows], sample_weight=w[rows])
    whole = KernelPCA(3, kernel=kernel, centre=centre).fit(X, sample_weight=w)
    np.testing.assert_allclose(parts.eigenvalues_, whole.eigenvalues_, rtol=1e-6)
    Z, expected = parts.transform(X), whole.transform(X)
    np.testing.assert_allclose(Z * np.sign(np.sum(Z * expected, axis=0)), expected, atol=1e-5)
    np.testing.assert_allclose(parts.novelty(X).spe, whole.novelty(X).spe, atol=1e-5)
    assert np.all(np.abs(parts.eigenvalues_ - whole.eigenvalues_) <= parts.certificate_.eigenvalue_bounds + 1e-9)


@pytest.mark.parametrize("gamma", [0.02, 0.3])
@pytest.mark.parametrize("drift", [0.0, 3.0])
def test_few_landmarks_keep_their_bound_also_where_batches_drift(gamma: float, drift: float) -> None:
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(60, 3)) + drift * k for k in range(4)]
    parts = KernelPCA(3, kernel="rbf", gamma=gamma, n_landmarks=40)
    for batch in batches:
        parts.partial_fit(batch)
    exact = KernelPCA(3, kernel="rbf", gamma=gamma).fit(np.concatenate(batches)).eigenvalues_
    assert len(parts.X_fit_) <= 40
    assert any(len(np.intersect1d(parts.X_fit_[:, 0], batch[:, 0])) for batch in batches[2:])
    off = np.abs(parts.eigenvalues_ - exact)
    assert np.all(off <= parts.certificate_.value_bounds)
    assert not parts.certificate_.converged  # what is left out is said


def test_batches_of_sparse_rows_and_a_fit_that_forgets_them() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4)) * (np.random.default_rng(1).random((60, 4)) < 0.5)
    dense = KernelPCA(2, kernel="rbf", gamma=0.3).partial_fit(X[:30]).partial_fit(X[30:])
    sparse = KernelPCA(2, kernel="rbf", gamma=0.3)
    sparse.partial_fit(sp.csr_array(X[:30])).partial_fit(sp.csr_array(X[30:]))
    np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(sparse.transform(sp.csr_array(X))), np.abs(dense.transform(X)), atol=1e-6)
    again = dense.fit(X[:30])
    assert len(again.X_fit_) == 30
    assert len(again.partial_fit(X[30:]).X_fit_) <= 30
    assert not hasattr(KernelPCA(kernel="precomputed"), "partial_fit")
    assert not hasattr(KernelPCACV(), "partial_fit")


def test_hidden_cells_choose_the_number_of_dimensions() -> None:
    model = KernelPCACV([1, 2, 3, 4, 5], kernel="linear").fit(plane(150, 0))
    assert model.n_components_ == 2
    assert model.transform(plane(5, 1)).shape == (5, 2)
    assert 0.0 > model.best_score_ > -0.2
    # a map that gives back what it is given explains no hidden cell
    assert model.scores_[0, -1] < 2 * model.best_score_


def test_reconstruction_prefers_a_curve_where_rows_lie_on_one() -> None:
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.5, 1.5, 250)
    X = np.column_stack([t, t**2, np.sin(3 * t)]) + 0.02 * rng.normal(size=(250, 3))
    model = KernelPCACV(kernel=["linear", "rbf"]).fit(X)
    assert isinstance(model.kernel_, Gaussian)
    straight = [k for k, kernel in enumerate(model.kernels_) if isinstance(kernel, Linear)]
    assert model.best_score_ > 0.5 * np.nanmax(model.scores_[straight])  # of negative numbers: half the error
    assert model.scores_.shape == (6, len(model.candidates_))


def test_novelty_tells_rows_off_the_ring() -> None:
    X, rng = ring(250, 0), np.random.default_rng(3)
    model = KernelPCACV(criterion="novelty").fit(X)
    inside = rng.uniform(-0.6, 0.6, (100, 2))
    inside = inside[np.hypot(*inside.T) < 0.7]
    new = ring(100, 7)
    spe = np.concatenate([model.novelty(new).spe, model.novelty(inside).spe])
    assert roc_auc_score(np.repeat([0, 1], [len(new), len(inside)]), spe) > 0.95
    known = KernelPCACV(criterion="novelty").fit(X, novel=inside)
    assert known.best_score_ > 0.98
    assert len(known.X_fit_) == len(X)


def test_the_choice_is_the_fit() -> None:
    X = plane(60, 3)
    model = KernelPCACV([1, 3], kernel="rbf", gamma=[0.01, 0.1]).fit(X)
    twin = KernelPCA(model.n_components_, kernel=model.kernel_).fit(X)
    np.testing.assert_array_equal(model.eigenvalues_, twin.eigenvalues_)
    np.testing.assert_allclose(model.transform(X), twin.transform(X))
    assert model.certificate_.converged
    assert "chosen by reconstruction" in str(model.certificate_)
    np.testing.assert_array_equal(model.scores_, KernelPCACV([1, 3], kernel="rbf", gamma=[0.01, 0.1]).fit(X).scores_)
    assert model.inverse_transform(model.transform(X)).shape == X.shape


@pytest.mark.parametrize(
    ("options", "X", "named"),
    [
        ({"criterion": "likelihood"}, np.eye(9), "criterion"),
        ({}, np.ones((9, 1)), "1 feature"),
        ({}, np.eye(3), "too few"),
        ({"kernel": "precomputed"}, np.eye(9), "one kernel"),
        ({"gamma": []}, np.eye(9), "nothing to choose"),
        ({"n_components": 0}, np.eye(9), "n_components"),
    ],
)
def test_what_cannot_be_chosen_is_refused(options: dict[str, object], X: Array, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        KernelPCACV(**options).fit(X)
