"""Kernel PCA: the textbook's equations, scikit-learn's answers, published numbers, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits, make_circles, make_moons, make_swiss_roll
from sklearn.decomposition import KernelPCA as Theirs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import gramian
from gramian import PCA, KernelPCA, NumericalWarning
from gramian.kernels import Callable, Gaussian, Linear, Matern, Polynomial
from oracles import Array

SOLVERS = ["dense", "krylov"]
KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "rbf default": {"kernel": "rbf"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 0.5},
    "linear": {"kernel": "linear"},
    "cosine": {"kernel": "cosine"},
}


def points(n: int = 60, p: int = 5, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n, p)) + 0.5


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_answers_are_those_of_scikit_learn(name: str, solver: str) -> None:
    X, new = points(), points(7, seed=1)
    ours = KernelPCA(4, eigen_solver=solver, tol=1e-10, **KERNELS[name]).fit(X)
    theirs = Theirs(4, eigen_solver="dense", **KERNELS[name]).fit(X)
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    assert_allclose(ours.eigenvectors_, theirs.eigenvectors_, atol=1e-8)
    assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-8)
    assert_allclose(ours.fit_transform(X), theirs.fit_transform(X), atol=1e-8)
    assert ours.certificate_.converged


def test_all_components_and_zero_eigenvalues_are_as_in_scikit_learn() -> None:
    X = points(20, 3)
    ours, theirs = KernelPCA().fit(X), Theirs().fit(X)
    assert ours.eigenvalues_.shape == theirs.eigenvalues_.shape == (3,)
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    kept = KernelPCA(6).fit(X)
    assert kept.transform(X).shape == (20, 6)
    assert_allclose(kept.eigenvalues_[3:], 0.0, atol=0)
    assert KernelPCA(6, remove_zero_eig=True).fit(X).transform(X).shape == (20, 3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_equations_of_the_notes(solver: str) -> None:
    """K̃ = K − 1K − K1 + 1K1, K̃a = λNa, λN aᵀa = 1, codes K̃A."""
    X = points()
    n, model = len(X), KernelPCA(3, kernel=Gaussian(0.2), eigen_solver=solver, tol=1e-11).fit(X)
    K, one = Gaussian(0.2)(X), np.full((n, n), 1 / n)
    centred = K - one @ K - K @ one + one @ K @ one
    A = model.eigenvectors_ / np.sqrt(model.eigenvalues_)
    assert_allclose(centred @ A, A * model.eigenvalues_, atol=1e-8)
    assert_allclose(np.diag(A.T @ centred @ A), 1.0, rtol=1e-9)  # components of length 1 in feature space
    assert_allclose(model.eigenvalues_ * np.sum(A**2, axis=0), 1.0, rtol=1e-9)
    assert_allclose(model.transform(X), centred @ A, atol=1e-8)
    assert_allclose(model.fit_transform(X), centred @ A, atol=1e-8)


def test_new_points_are_centred_with_the_training_means() -> None:
    X, new = points(), points(5, seed=3)
    model = KernelPCA(3, kernel=Gaussian(0.2)).fit(X)
    K, k, n = Gaussian(0.2)(X), Gaussian(0.2)(new, X), len(X)
    centred = k - K.mean(axis=0) - k.mean(axis=1)[:, None] + K.mean()
    assert_allclose(model.transform(new), centred @ model.eigenvectors_ / np.sqrt(model.eigenvalues_), atol=1e-10)
    assert n == len(model.mean_coefficients_)


def test_the_published_projection_of_a_half_moon_point() -> None:
    """S. Raschka, kernel PCA article: the entry of the first unit eigenvector that belongs to this point."""
    X, _ = make_moons(100, random_state=123)
    model = KernelPCA(1, kernel="rbf", gamma=15).fit(X)
    z = model.transform([[1.8713187, 0.00928245]])[0, 0] / np.sqrt(model.eigenvalues_[0])
    assert_allclose(abs(z), 0.07877284, atol=5e-8)


def test_the_linear_kernel_is_pca() -> None:
    X = points()
    ours, pca = KernelPCA(3, kernel=Linear()).fit(X), PCA(3).fit(X)
    assert_allclose(np.abs(ours.transform(X)), np.abs(pca.transform(X)), atol=1e-9)
    assert_allclose(ours.eigenvalues_, pca.singular_values_**2, rtol=1e-10)
    assert_allclose(ours.reconstruction_error(X), pca.reconstruction_error(X), atol=1e-9)


def test_the_polynomial_kernel_is_pca_of_its_features() -> None:
    X = points(40, 3)
    kernel = Polynomial(2, 1.0, 1.0)
    features = gramian.kernels.polynomial_features(X, 2, 1.0, 1.0)
    assert_allclose(
        KernelPCA(4, kernel=kernel).fit(X).eigenvalues_, PCA(4).fit(features).singular_values_ ** 2, rtol=1e-9
    )


@pytest.mark.parametrize(
    ("data", "gamma", "component"),
    [(make_moons(200, random_state=0), 15, 0), (make_circles(200, factor=0.3, noise=0.05, random_state=0), 2, 0)],
)
def test_half_moons_and_circles_separate_on_one_component(data: Any, gamma: float, component: int) -> None:
    X, y = data
    z = KernelPCA(2, kernel="rbf", gamma=gamma).fit_transform(X)[:, component]
    one, other = np.sort(z[y == 0]), np.sort(z[y == 1])
    assert one[-1] < other[0] or other[-1] < one[0]
    linear = PCA(1).fit_transform(X)[:, 0]
    assert linear[y == 0].max() > linear[y == 1].min()
    assert linear[y == 1].max() > linear[y == 0].min()


def test_the_inner_turn_of_the_swiss_roll_separates_from_the_outer() -> None:
    """With the textbook's kernel (γ = 0.1, 800 points), by a line through two scores; not so with PCA's."""
    X, position = make_swiss_roll(800, random_state=123)
    inner, outer = position < np.quantile(position, 0.3), position > np.quantile(position, 0.7)
    both = inner | outer

    def separation(Z: Array) -> float:
        return float(LogisticRegression(C=1e3).fit(Z[both], outer[both]).score(Z[both], outer[both]))

    kernel = separation(KernelPCA(2, kernel="rbf", gamma=0.1).fit_transform(X))
    assert kernel > separation(PCA(2).fit_transform(X)) + 0.1
    assert kernel > 0.85


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("centre", [True, False])
def test_an_integer_weight_is_repetition(solver: str, centre: bool) -> None:
    X, new = points(), points(6, seed=2)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    params: Any = {"kernel": "rbf", "gamma": 0.2, "eigen_solver": solver, "tol": 1e-11, "centre": centre}
    ours = KernelPCA(3, **params).fit(X, sample_weight=w)
    theirs = KernelPCA(3, **params).fit(np.repeat(X, w, axis=0))
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    assert_allclose(np.abs(ours.transform(new)), np.abs(theirs.transform(new)), atol=1e-8)
    assert_allclose(ours.fit_transform(X, sample_weight=w), ours.transform(X), atol=1e-8)
    assert_allclose(ours.reconstruction_error(new), theirs.reconstruction_error(new), atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_uncentred_components_are_those_of_k_itself(solver: str) -> None:
    X = points()
    model = KernelPCA(3, kernel=Gaussian(0.2), centre=False, eigen_solver=solver, tol=1e-11).fit(X)
    assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(Gaussian(0.2)(X))[::-1][:3], rtol=1e-9)
    assert_allclose(model.transform(X), model.fit_transform(X), atol=1e-8)


def test_scores_of_new_rows_are_as_accurate_as_the_fit() -> None:
    X, new = points(1600), points(50, seed=4)
    quick = KernelPCA(4, kernel=Gaussian(0.2), eigen_solver="krylov").fit(X)
    exact = KernelPCA(4, kernel=Gaussian(0.2), eigen_solver="dense").fit(X)
    size = np.abs(exact.transform(new)).max()
    assert_allclose(quick.transform(new), exact.transform(new), atol=1e-5 * size)
    assert_allclose(quick.transform(X), quick.fit_transform(X), atol=3e-6 * size)


def test_nystrom_with_every_row_is_exact_and_with_fewer_keeps_its_bound() -> None:
    X, new = points(150), points(9, seed=5)
    exact = KernelPCA(4, kernel=Gaussian(0.2), eigen_solver="dense").fit(X)
    whole = KernelPCA(4, kernel=Gaussian(0.2), eigen_solver="nystrom", n_landmarks=150).fit(X)
    assert_allclose(np.abs(whole.transform(new)), np.abs(exact.transform(new)), atol=1e-6)
    for m in (20, 60, 100):
        part = KernelPCA(4, kernel=Gaussian(0.2), eigen_solver="nystrom", n_landmarks=m, tol=10.0).fit(X)
        gap = exact.eigenvalues_ - part.eigenvalues_
        assert np.all(gap >= -1e-9)
        assert np.all(gap <= part.certificate_.value_bounds + 1e-9)
        assert part.X_fit_.shape == (m, 5)
        assert_allclose(part.fit_transform(X), part.transform(X), atol=1e-6)


def test_nystrom_that_misses_its_tolerance_warns() -> None:
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="n_landmarks"):
        KernelPCA(4, kernel=Gaussian(0.2), eigen_solver="nystrom", n_landmarks=10).fit(points(150))


@pytest.mark.parametrize("solver", ["auto", "dense", "krylov", "nystrom", "arpack", "randomized"])
def test_every_solver_certifies(solver: str) -> None:
    X = points(300)
    model = KernelPCA(3, kernel=Gaussian(0.01), eigen_solver=solver, n_landmarks=200, tol=1e-6).fit(X)
    exact = np.linalg.eigvalsh(_centred(Gaussian(0.01)(X)))[::-1][:3]
    assert model.certificate_.converged
    assert np.all(np.abs(model.eigenvalues_ - exact) <= model.certificate_.value_bounds + 1e-10 * exact[0])


def _centred(K: Array) -> Array:
    return np.asarray(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())


@given(seed=st.integers(0, 500), n=st.integers(5, 40), gamma=st.floats(1e-3, 5))
def test_scores_have_the_eigenvalues_as_squared_lengths_and_mean_zero(seed: int, n: int, gamma: float) -> None:
    Z = KernelPCA(3, kernel=Gaussian(gamma)).fit_transform(points(n, 3, seed))
    G = Z.T @ Z
    scale = max(1.0, float(G[0, 0]))
    assert_allclose(Z.mean(axis=0), 0.0, atol=1e-8 * scale)
    assert_allclose(G - np.diag(np.diag(G)), 0.0, atol=1e-8 * scale)


def test_precomputed_kernels_agree_with_their_formula() -> None:
    X, new = points(), points(6, seed=2)
    K, k = Gaussian(0.2)(X), Gaussian(0.2)(new, X)
    ours = KernelPCA(3, kernel="precomputed").fit(K)
    direct = KernelPCA(3, kernel=Gaussian(0.2)).fit(X)
    assert_allclose(ours.transform(k), direct.transform(new), atol=1e-9)
    theirs = Theirs(3, kernel="precomputed").fit(K)
    assert_allclose(np.abs(ours.transform(k)), np.abs(theirs.transform(k)), atol=1e-9)


def test_bad_kernel_matrices_are_named() -> None:
    K = Gaussian(0.2)(points(30))
    skew, hole, wide = K.copy(), K.copy(), K[:, :20]
    skew[4, 9] += 0.1
    hole[3, 7] = np.nan
    with pytest.raises(ValueError, match=r"\(4, 9\).*\(9, 4\)|\(9, 4\).*\(4, 9\)"):
        KernelPCA(2, kernel="precomputed").fit(skew)
    with pytest.raises(ValueError, match="row 4, column 8"):
        KernelPCA(2, kernel="precomputed").fit(hole)
    with pytest.raises(ValueError, match="square"):
        KernelPCA(2, kernel="precomputed").fit(wide)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_indefinite_matrix_is_noticed_though_few_components_are_asked_for(solver: str) -> None:
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(80, 80)))[0]
    values = np.linspace(10, 0, 80)
    values[-1] = -0.5
    K = (Q * values) @ Q.T
    with pytest.warns(NumericalWarning, match=r"-0\.[45]"):
        KernelPCA(2, kernel="precomputed", eigen_solver=solver).fit((K + K.T) / 2)
    with pytest.warns(NumericalWarning, match="products"):
        KernelPCA(2, kernel="precomputed", eigen_solver=solver).fit(-(K + K.T) / 2)


def test_the_sigmoid_kernel_says_that_it_is_indefinite() -> None:
    with pytest.warns(NumericalWarning, match="indefinite"):
        KernelPCA(2, kernel="sigmoid", gamma=0.5).fit(points())


def test_strings_sets_and_other_objects() -> None:
    def common(a: str, b: str) -> float:
        return float(len(set(a) & set(b)))

    words = ["gram", "gramian", "matrix", "metric", "atrium", "radium"]
    model = KernelPCA(2, kernel=Callable(common)).fit(words)
    K = np.array([[common(a, b) for b in words] for a in words])
    theirs = Theirs(2, kernel="precomputed").fit(K)
    assert_allclose(np.abs(model.transform(words)), np.abs(theirs.transform(K)), atol=1e-9)
    assert_allclose(KernelPCA(2, kernel=common).fit(words).eigenvalues_, model.eigenvalues_, rtol=1e-12)
    sets = [frozenset(word) for word in words]
    inner = KernelPCA(2, kernel=Callable(lambda a, b: float(len(a & b)))).fit(sets)
    assert_allclose(inner.eigenvalues_, model.eigenvalues_, rtol=1e-12)


def test_a_callable_on_rows_is_as_in_scikit_learn() -> None:
    def inner(x: Array, z: Array, power: float = 1.0) -> float:
        return float(x @ z) ** power

    X = points(20)
    ours = KernelPCA(2, kernel=inner, kernel_params={"power": 2.0}).fit(X)
    theirs = Theirs(2, kernel=inner, kernel_params={"power": 2.0}).fit(X)
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)


def test_sparse_rows_frames_files_tensors_and_narrow_floats(tmp_path: Any, torch: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X = np.where(points() > 0.5, points(), 0.0)
    np.save(tmp_path / "x.npy", X)
    expected = KernelPCA(3, kernel="rbf").fit(X).transform(X)
    for data in (sp.csr_array(X), pandas.DataFrame(X), tmp_path / "x.npy", torch.asarray(X), gramian.open(X)):
        assert_allclose(KernelPCA(3, kernel="rbf").fit(data).transform(data), expected, atol=1e-9)
    narrow = KernelPCA(3, kernel="rbf").fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert narrow.dtype == np.float32
    assert_allclose(narrow, expected, atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_learned_inverse_is_scikit_learns(kernel: str) -> None:
    X, new = points(), points(6, seed=2)
    ours = KernelPCA(3, kernel=kernel, gamma=0.2, fit_inverse_transform=True, alpha=0.1).fit(X)
    theirs = Theirs(3, kernel=kernel, gamma=0.2, fit_inverse_transform=True, alpha=0.1, eigen_solver="dense").fit(X)
    assert_allclose(
        ours.inverse_transform(ours.transform(new)), theirs.inverse_transform(theirs.transform(new)), atol=1e-7
    )
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        KernelPCA(3, kernel=kernel).fit(X).inverse_transform(np.zeros((1, 3)))


@pytest.mark.parametrize("inverse", ["fixed-point", "regularised", "mds"])
def test_denoising_digits_beats_linear_pca(inverse: str) -> None:
    X = load_digits().data[:800] / 16
    rng = np.random.default_rng(0)
    noisy = X[700:] + 0.25 * rng.normal(size=(100, 64))
    model = KernelPCA(32, kernel=Gaussian("median"), inverse=inverse).fit(X[:700])
    linear = PCA(32).fit(X[:700])
    ours = np.mean((model.denoise(noisy) - X[700:]) ** 2)
    theirs = np.mean((linear.inverse_transform(linear.transform(noisy)) - X[700:]) ** 2)
    assert ours < 0.85 * theirs < np.mean((noisy - X[700:]) ** 2)


def test_pre_images_report_the_distance_in_feature_space() -> None:
    X = points(80, 3)
    model = KernelPCA(5, kernel=Gaussian(0.2), inverse="regularised").fit(X)
    Z = model.transform(X[:4])
    found = model.preimages(Z, X[:4])
    G = Z @ model.dual_coefficients_.T + 1 / 80
    K, k = Gaussian(0.2)(X), Gaussian(0.2)(found.points, X)
    expected = 1 - 2 * np.sum(G * k, axis=1) + np.einsum("mi,ij,mj->m", G, K, G)
    assert found.converged.all()
    assert_allclose(found.objective, expected, atol=1e-8)
    assert_allclose(model.inverse_transform(Z), model.preimages(Z).points, rtol=1e-12)


def test_novelty_is_distance_in_feature_space() -> None:
    X = points(200, 2)
    model = KernelPCA(6, kernel=Gaussian(0.5)).fit(X)
    K, centred = Gaussian(0.5)(X), _centred(Gaussian(0.5)(X))
    seen = model.novelty(X)
    assert_allclose(seen.spe + np.sum(model.transform(X) ** 2, axis=1), np.diag(centred), atol=1e-9)
    assert_allclose(np.sum(seen.t2), 6 * 199, rtol=1e-9)
    far = model.novelty([[30.0, 30.0]])
    assert far.spe[0] > seen.spe.max()
    assert_allclose(far.spe[0], 1 + K.mean() - np.sum(model.transform([[30.0, 30.0]]) ** 2), rtol=1e-9)


def test_gamma_is_found_from_the_data_and_reported() -> None:
    X = points()
    assert KernelPCA(2, kernel="rbf").fit(X).gamma_ == 1 / 5
    scale = KernelPCA(2, kernel="rbf", gamma="scale").fit(X)
    assert_allclose(scale.gamma_, 1 / (5 * X.var()))
    assert scale.kernel_ == Gaussian(scale.gamma_)
    assert KernelPCA(2, kernel=Matern(1.5, 2.0)).fit(X).certificate_.converged


def test_pipelines_clones_pickles_and_frames_out() -> None:
    X, y = make_circles(120, factor=0.3, noise=0.05, random_state=0)
    model = make_pipeline(KernelPCA(3, kernel=Gaussian(2.0)), LogisticRegression()).fit(X, y)
    assert model.score(X, y) == 1.0
    pca = KernelPCA(2, kernel=Gaussian(2.0)).fit(X)
    assert clone(pca).kernel == Gaussian(2.0)
    assert_allclose(pickle.loads(pickle.dumps(pca)).transform(X), pca.transform(X), rtol=0)
    assert list(pca.set_output(transform="pandas").transform(X).columns) == ["kernelpca0", "kernelpca1"]


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"eigen_solver": "magic"}, "eigen_solver"),
        ({"inverse": "magic"}, "inverse"),
        ({"n_components": 0}, "n_components"),
        ({"tol": -1}, "tol"),
        ({"kernel": "magic"}, "kernel"),
    ],
)
def test_wrong_parameters_are_named(params: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        KernelPCA(**params).fit(points())


@pytest.mark.parametrize(("kernel", "p"), [("rbf", 5), ("linear", 3), ("laplacian", 60)])
def test_a_few_components_of_a_matrix_in_memory_are_those_of_lapack(kernel: str, p: int) -> None:
    """By Lanczos where that is quick, by LAPACK where eigenvalues are too close: the same to eight digits.

    An iteration says how likely it is to have overlooked one, unless what is left of B proves that it has not.
    """
    X = np.random.default_rng(3).normal(size=(450, p))
    few, whole = KernelPCA(3, kernel=kernel).fit(X), KernelPCA(3, kernel=kernel, eigen_solver="dense").fit(X)
    assert few.certificate_.converged
    assert_allclose(few.eigenvalues_, whole.eigenvalues_, rtol=1e-11)
    assert_allclose(few.transform(X), whole.transform(X), atol=1e-8)
    overlooked = few.certificate_.overlooked
    if "Lanczos" in few.certificate_.method and overlooked is None:
        every = KernelPCA(None, kernel=kernel, eigen_solver="dense").fit(X).eigenvalues_
        assert every[3] <= every[2]
    else:
        assert ("Lanczos" in few.certificate_.method) == (overlooked is not None)
    assert overlooked is None or overlooked < 1e-9


@pytest.mark.parametrize("name", ["poly", "linear", "cosine"])
@pytest.mark.parametrize("centre", [True, False])
def test_few_features_give_the_components_of_many_rows(name: str, centre: bool) -> None:
    X, new = points(90, 4), points(7, 4, seed=1)
    w = np.random.default_rng(2).integers(1, 4, 90)
    ours = KernelPCA(3, centre=centre, **KERNELS[name]).fit(X, sample_weight=w)
    whole = KernelPCA(3, centre=centre, eigen_solver="dense", **KERNELS[name]).fit(X, sample_weight=w)
    assert "features" in ours.certificate_.method
    assert ours.certificate_.converged
    bounds = np.asarray(ours.certificate_.value_bounds) + np.asarray(whole.certificate_.value_bounds)
    assert np.all(np.abs(ours.eigenvalues_ - whole.eigenvalues_) <= bounds)
    assert_allclose(ours.transform(new), whole.transform(new), atol=1e-9)
    assert_allclose(ours.reconstruction_error(new), whole.reconstruction_error(new), atol=1e-9)


def test_features_of_data_of_any_size() -> None:
    X = points(60, 3)
    usual, huge = KernelPCA(2).fit(X), KernelPCA(2).fit(X * 2.0**400)
    assert "features" in huge.certificate_.method
    assert_allclose(huge.eigenvalues_ / 2.0**800, usual.eigenvalues_, rtol=1e-12)
