"""Kernel PCA where it is hard: narrow and wide kernels, offsets, indefinite matrices, odd objects, no variance."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine
from sklearn.decomposition import KernelPCA as Theirs
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelPCA, NumericalWarning, load, save
from gramian.kernels import Callable, Cosine, Gaussian, Laplacian, Linear, Polynomial, Precomputed
from oracles import Array


def points(n: int = 200, p: int = 4, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((n, p))


@pytest.mark.parametrize("n", [50, 300, 1500])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_a_kernel_so_narrow_that_all_eigenvalues_are_equal(n: int, k: int) -> None:
    model = KernelPCA(k, kernel=Gaussian(1e6)).fit(points(n))
    assert_allclose(model.eigenvalues_, np.ones(k), rtol=1e-9)
    assert model.transform(points(3, seed=1)).shape == (3, k)


def test_unscaled_wine_has_as_many_components_as_asked_for() -> None:
    assert KernelPCA(2, kernel="rbf").fit_transform(load_wine().data * 10).shape == (178, 2)


@pytest.mark.parametrize("shift", [1e3, 1e7, 1e12])
@pytest.mark.parametrize("solver", ["dense", "krylov", "nystrom"])
def test_an_offset_costs_no_digits(shift: float, solver: str) -> None:
    X = points() + shift
    D = X - X[0]  # exact
    exact = np.linalg.svd(D - D.mean(axis=0), compute_uv=False)[:2] ** 2
    model = KernelPCA(2, eigen_solver=solver, n_landmarks=20).fit(X)
    assert_allclose(model.eigenvalues_, exact, rtol=1e-9)
    assert model.certificate_.converged
    assert np.all(np.abs(model.eigenvalues_ - exact) <= model.certificate_.value_bounds)
    Z = model.fit_transform(X)
    assert_allclose(model.transform(X), Z, atol=1e-9 * np.abs(Z).max())


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystrom"])
@pytest.mark.parametrize("gamma", [1e-5, 1e-14, 1e-40])
def test_a_kernel_that_is_nearly_constant_is_nearly_linear(gamma: float, solver: str) -> None:
    """exp(−γd²) = 1 − γd² + O(γ²): centred, 2γ times inner products."""
    X = points() * [4, 3, 2, 1]
    exact = 2 * gamma * np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:2] ** 2
    model = KernelPCA(2, kernel="rbf", gamma=gamma, eigen_solver=solver, n_landmarks=100).fit(X)
    assert model.certificate_.converged
    assert_allclose(model.eigenvalues_, exact, rtol=max(1e-8, 300 * gamma))


def test_numbers_that_leave_no_digits_are_warned_about() -> None:
    with pytest.warns(ConvergenceWarning):  # tanh is no function of differences
        model = KernelPCA(2, kernel="sigmoid", gamma=1e-12, coef0=0).fit(points() + 1e8)
    assert not model.certificate_.converged
    with pytest.warns(ConvergenceWarning, match="constant"):  # squares are below the smallest number
        model = KernelPCA(2).fit(points() * 1e-200)
    assert not model.certificate_.converged
    with pytest.raises(ValueError, match="row 1 "):
        KernelPCA(2).fit(points() * 1e200)


@pytest.mark.parametrize("gamma", [1e-1, 1e-4, 1e-6])
def test_scores_of_new_rows_keep_the_digits_of_the_fit_for_wide_kernels_too(gamma: float) -> None:
    X = points(1600) * [4, 3, 2, 1]
    model = KernelPCA(3, kernel=Gaussian(gamma), eigen_solver="krylov").fit(X)
    Z = model.fit_transform(X)
    # a residual of tol λ₁ moves the scores of the third component by tol λ₁/√λ₃
    assert_allclose(model.transform(X), Z, atol=1e-5 * np.abs(Z).max())
    dense = KernelPCA(3, kernel=Gaussian(gamma), eigen_solver="dense").fit(X)
    spread = np.median(dense.novelty(X).spe)
    assert_allclose(model.novelty(X).spe, dense.novelty(X).spe, atol=1e-3 * spread + 1e-12)


def test_nystrom_refuses_kernels_that_are_no_inner_products() -> None:
    with pytest.raises(ValueError, match="positive semidefinite"):
        KernelPCA(3, kernel="sigmoid", gamma=1, eigen_solver="nystrom", n_landmarks=50).fit(points())
    K = np.eye(30) - 0.2
    np.fill_diagonal(K, 0.5)
    with pytest.raises(ValueError, match="positive semidefinite"):
        KernelPCA(3, kernel="precomputed", eigen_solver="nystrom", n_landmarks=20).fit(K)


def test_the_certificate_of_nystrom_counts_rounding() -> None:
    X = points() + 1e6
    model = KernelPCA(2, kernel=Linear(), eigen_solver="nystrom", n_landmarks=50, tol=1e3).fit(X)
    exact = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:2] ** 2
    assert np.all(np.abs(model.eigenvalues_ - exact) <= model.certificate_.value_bounds)


def test_the_model_keeps_its_own_rows() -> None:
    X = points()
    model = KernelPCA(2, kernel="rbf").fit(X)
    before = model.transform(points(5, seed=1))
    X *= 0.0
    assert_allclose(model.transform(points(5, seed=1)), before, rtol=0)


def test_squared_distances_centred_are_an_inner_product_and_raise_no_alarm() -> None:
    """Classical scaling: −½D² has negative eigenvalues, which centring takes away."""
    X = points(60)
    model = KernelPCA(2, kernel="precomputed").fit(-0.5 * cdist(X, X, "sqeuclidean"))
    linear = KernelPCA(2, kernel=Linear()).fit(X)
    assert_allclose(model.eigenvalues_, linear.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 1e6])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_a_small_negative_eigenvalue_is_found_whatever_the_weights(weight: float, solver: str) -> None:
    Q = np.linalg.qr(points(80, 80))[0]
    Q[:, -1] -= Q[:, -1].mean()
    Q = np.linalg.qr(Q[:, ::-1])[0][:, ::-1]
    values = np.r_[np.linspace(10, 1, 79), -0.01]
    K = (Q * values) @ Q.T
    with pytest.warns(NumericalWarning, match="-"):
        KernelPCA(3, kernel="precomputed", eigen_solver=solver).fit((K + K.T) / 2, sample_weight=np.full(80, weight))


@pytest.mark.filterwarnings("ignore:All features are equal")
@pytest.mark.parametrize("solver", ["dense", "krylov", "nystrom"])
def test_rows_that_are_all_equal_have_no_variance(solver: str) -> None:
    model = KernelPCA(2, kernel="rbf", eigen_solver=solver, n_landmarks=5).fit(np.ones((50, 3)))
    assert_allclose(model.eigenvalues_, 0.0, atol=1e-10)
    assert_allclose(model.transform(np.zeros((4, 3))), 0.0, atol=1e-6)
    none = KernelPCA(kernel="rbf", eigen_solver=solver, n_landmarks=5).fit(np.ones((50, 3)))
    assert none.transform(np.zeros((4, 3))).shape == (4, 0)


@pytest.mark.parametrize("inverse", ["ridge", "mds", "regularised"])
def test_a_row_of_weight_zero_is_no_row_for_the_way_back_either(inverse: str) -> None:
    X, keep = points(40), np.arange(40) % 3 > 0
    params: Any = {"kernel": Gaussian("median"), "inverse": inverse, "fit_inverse_transform": inverse == "ridge"}
    ours = KernelPCA(3, **params).fit(X, sample_weight=keep)
    theirs = KernelPCA(3, **params).fit(X[keep])
    Z = theirs.transform(points(6, seed=1))
    assert_allclose(ours.transform(points(6, seed=1)), Z, atol=1e-9)
    assert_allclose(ours.inverse_transform(Z), theirs.inverse_transform(Z), atol=1e-6)
    assert ours.eigenvectors_.shape == (40, 3)
    assert_allclose(ours.eigenvectors_[~keep], 0.0, atol=0)


def test_a_weight_is_repetition_for_the_learned_inverse() -> None:
    X, w = points(30), np.random.default_rng(0).integers(1, 4, 30)
    params: Any = {"kernel": Gaussian(0.3), "fit_inverse_transform": True, "alpha": 0.1}
    ours = KernelPCA(3, **params).fit(X, sample_weight=w)
    theirs = KernelPCA(3, **params).fit(np.repeat(X, w, axis=0))
    Z = theirs.transform(points(6, seed=1))
    assert_allclose(ours.inverse_transform(Z), theirs.inverse_transform(Z), atol=1e-7)


def test_objects_in_every_way() -> None:
    words = ["gram", "gramian", "matrix", "metric", "atrium", "radium"]
    common = Callable(lambda a, b: float(len(set(a) & set(b))))
    plain = KernelPCA(2, kernel=common).fit(words)
    landmarks = KernelPCA(2, kernel=common, eigen_solver="nystrom", n_landmarks=6).fit(words)
    assert_allclose(landmarks.eigenvalues_, plain.eigenvalues_, rtol=1e-6)
    twice = KernelPCA(2, kernel=2.0 * common).fit(words)
    assert_allclose(twice.eigenvalues_, 2 * plain.eigenvalues_, rtol=1e-10)
    both = KernelPCA(2, kernel=common + common).fit(words)
    assert_allclose(both.eigenvalues_, 2 * plain.eigenvalues_, rtol=1e-10)
    weighted = KernelPCA(2, kernel=common).fit_transform(words, sample_weight=[1, 1, 0, 1, 1, 1])
    assert weighted.shape == (6, 2)
    ragged = [(1.0,), (1.0, 2.0), (3.0,), (2.0, 2.0)]
    assert KernelPCA(1, kernel=Callable(lambda a, b: min(len(a), len(b)))).fit_transform(ragged).shape == (4, 1)


def test_a_function_is_called_once_for_each_pair() -> None:
    calls = 0

    def inner(a: Array, b: Array) -> float:
        nonlocal calls
        calls += 1
        return float(a @ b)

    KernelPCA(2, kernel=inner).fit(points(30))
    assert calls <= 2 * 30 * 31 // 2  # and once more for the diagonal


@pytest.mark.parametrize("size", [1e20, 1e-20])
def test_values_that_float32_cannot_hold_are_iterated_on_in_float64(size: float) -> None:
    X = points(1600) * size
    model = KernelPCA(2, kernel=Linear(), eigen_solver="krylov").fit(X)
    exact = np.linalg.svd(points(1600) - points(1600).mean(axis=0), compute_uv=False)[:2] ** 2
    assert_allclose(model.eigenvalues_ / size**2, exact, rtol=1e-5)


def test_sparse_kernel_matrices_are_transformed_too() -> None:
    K = Gaussian(0.3)(points(30))
    model = KernelPCA(2, kernel="precomputed").fit(sp.csr_array(K))
    assert_allclose(model.transform(sp.csr_array(K)), model.transform(K), atol=1e-12)


def test_a_parameter_for_each_feature_has_no_learned_inverse() -> None:
    with pytest.raises(ValueError, match="scores"):
        KernelPCA(2, kernel=Gaussian([0.1, 0.2, 0.3, 0.4]), fit_inverse_transform=True).fit(points(30))


def test_the_laplacian_keeps_its_digits_far_from_the_origin() -> None:
    X = points(50, 20)
    far = 2.0**27 + X
    near = far - 2.0**27
    assert_allclose(Laplacian(0.05)(far), np.exp(-0.05 * cdist(near, near, "cityblock")), atol=1e-12)


def test_what_is_said_of_parameters() -> None:
    X = points(30)
    assert KernelPCA(2, kernel=Precomputed()).__sklearn_tags__().input_tags.pairwise
    assert_allclose(KernelPCA(2, kernel=Gaussian(bandwidth=3.0)).fit(X).gamma_, 1 / 18)
    for wrong in ({"alpha": -1}, {"max_iter": 0}, {"tol": "a"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            KernelPCA(2, **wrong).fit(X)  # type: ignore[arg-type]
    model = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X)
    assert not hasattr(model.set_params(fit_inverse_transform=False).fit(X), "dual_coef_")


def test_squared_lengths_of_scores_are_the_eigenvalues() -> None:
    model = KernelPCA(3, kernel=Gaussian(0.3)).fit(points(60))
    assert_allclose(np.sum(model.transform(points(60)) ** 2, axis=0), model.eigenvalues_, rtol=1e-9)
    assert_allclose(model.eigenvalues_, Theirs(3, kernel="rbf", gamma=0.3).fit(points(60)).eigenvalues_, rtol=1e-9)


def test_memory_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def value(x: Array, z: Array) -> float:
        raise AssertionError("evaluated")

    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 2**26)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match=r"1600 rows.* 78.1 MiB.* 64.0 MiB.*krylov"):
        KernelPCA(2, kernel=Callable(value), eigen_solver="dense").fit(points(1600))


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystrom"])
@pytest.mark.parametrize("rank", [1, 2])
def test_components_beyond_the_rank_have_the_eigenvalue_zero(rank: int, solver: str) -> None:
    F = points(40, rank)
    model = KernelPCA(5, kernel="precomputed", eigen_solver=solver, n_landmarks=20).fit(F @ F.T)
    exact = np.linalg.svd(F - F.mean(axis=0), compute_uv=False) ** 2
    assert_allclose(model.eigenvalues_, np.r_[exact, np.zeros(5 - rank)], atol=1e-11 * exact[0])
    assert model.certificate_.converged
    assert model.transform(F @ F.T).shape == (40, 5)
    assert KernelPCA(99, kernel="precomputed", eigen_solver=solver, n_landmarks=20).fit(F @ F.T).n_features_in_ == 40


@pytest.mark.parametrize(
    "kernel", [Linear(), Gaussian(1e-12), Polynomial(3), Cosine(), 2.0 * Linear() + Gaussian(1e-9)], ids=repr
)
def test_a_model_about_the_mean_is_saved_with_it(kernel: Any, tmp_path: Path) -> None:
    X = points(50) + (0.0 if isinstance(kernel, Gaussian) else 1e4)
    model = KernelPCA(2, kernel=kernel).fit(X)
    assert model._kernel_about != model.kernel_
    save(model, tmp_path / "model.gramian")
    assert_allclose(load(tmp_path / "model.gramian").transform(X), model.transform(X), rtol=0)
