"""Pre-images: exact where they exist, as near as a general optimiser comes, and honest where a search fails."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from gramian import KernelPCA
from gramian.kernel_pca import preimages as search
from gramian.kernel_pca.preimages import (
    METHODS,
    choose_geometry,
    fit_ridge_inverse,
    local_mds,
    preimages,
    regularised,
    ridge_points,
)
from gramian.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid, polynomial_features
from gramian.results import NumericalWarning

ITERATIONS = ("fixed-point", "regularised")


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(40, 3)) + np.array([5.0, 0.0, -2.0])


def projections(X, new, gamma, k):
    """Coefficients Γ of projections on k components, from scikit-learn's eigenvectors."""
    model = SklearnKernelPCA(k, kernel="rbf", gamma=gamma).fit(X)
    alpha = model.eigenvectors_ / np.sqrt(model.eigenvalues_)
    return model.transform(new) @ (alpha - alpha.mean(axis=0)).T + 1 / len(X)


def gaussian_distance(z, X, g, rates):
    """‖φ(z) − P‖² from a plain sum over differences."""
    k = np.exp(-np.sum(rates * (X - z) ** 2, axis=1))
    K = np.exp(-np.sum(rates * (X[:, None] - X[None]) ** 2, axis=2))
    return 1 - 2 * g @ k + g @ K @ g


# What is exact


@pytest.mark.parametrize("gamma", [0.5, (0.3, 1.0, 2.0)])
@pytest.mark.parametrize("method", ["fixed-point", "regularised", "mds"])
def test_the_image_of_a_training_row_goes_back_to_it(rows, method, gamma):
    start = rows + 0.1
    found = preimages(Gaussian(gamma), rows, np.eye(len(rows)), method=method, start=start, penalty=0.0)
    assert found.converged.all()
    np.testing.assert_allclose(found.points, rows, atol=1e-5)
    np.testing.assert_allclose(found.objective, 0.0, atol=1e-10)


@pytest.mark.parametrize("method", ["fixed-point", "regularised", "mds"])
def test_of_the_linear_kernel_every_point_has_a_pre_image(rows, method):
    G = np.random.default_rng(1).normal(size=(6, len(rows))) / 6
    found = preimages(Linear(), rows, G, method=method, penalty=0.0)
    assert found.converged.all()
    np.testing.assert_allclose(found.points, G @ rows, atol=1e-4)
    np.testing.assert_allclose(found.objective, 0.0, atol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.2), Gaussian(bandwidth=(1.0, 2.0, 3.0)), Polynomial(3, 1.0, 0.3), Polynomial(5, 0.0, 0.2), Linear()],
    ids=repr,
)
def test_mds_places_points_of_the_neighbours_span_exactly(rows, kernel):
    new = rows[:8] + 0.3 * np.random.default_rng(2).normal(size=(8, 3))  # five neighbours in space span all of it
    land = choose_geometry(kernel, rows, "mds")
    found = local_mds(land, kernel(new, rows), kernel.diagonal(new), 5)
    assert found.converged.all()
    np.testing.assert_allclose(land.outward(found.points), new, atol=1e-8)


def test_mds_in_more_dimensions_than_neighbours_gives_the_foot_in_their_span():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4, 9))
    inside = rng.dirichlet(np.ones(4)) @ X
    off = np.linalg.svd(X - X.mean(axis=0))[2][-1]  # orthogonal to the span
    kernel = Gaussian(0.05)
    land = choose_geometry(kernel, X, "mds")
    new = np.stack([inside, inside + 0.7 * off])
    found = local_mds(land, kernel(new, X), np.ones(2), 4)
    np.testing.assert_allclose(land.outward(found.points), [inside, inside], atol=1e-9)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Gaussian(0.3), {"kernel": "rbf", "gamma": 0.3}),
        (Polynomial(3, 1.0, 0.1), {"kernel": "poly", "degree": 3, "coef0": 1, "gamma": 0.1}),
        (Laplacian(0.2), {"kernel": "laplacian", "gamma": 0.2}),
    ],
    ids=repr,
)
def test_ridge_is_scikit_learns(rows, ours, theirs):
    # scikit-learn names no Laplacian kernel, and takes it as a function
    if theirs["kernel"] == "laplacian":
        theirs = {"kernel": lambda x, z: np.exp(-0.2 * np.abs(x - z).sum())}
    model = SklearnKernelPCA(4, fit_inverse_transform=True, alpha=0.05, **theirs).fit(rows)
    Z = model.transform(rows[:7] + 0.1)
    dual = fit_ridge_inverse(ours, model.X_transformed_fit_, rows, 0.05)
    np.testing.assert_allclose(dual, model.dual_coef_, rtol=1e-7, atol=1e-9)
    expected = model.inverse_transform(Z)
    np.testing.assert_allclose(ridge_points(ours, model.X_transformed_fit_, dual, Z), expected, rtol=1e-8)
    G = np.full((7, 40), 1 / 40)
    found = preimages(ours, rows, G, method="ridge", targets=Z, scores=model.X_transformed_fit_, dual=dual)
    np.testing.assert_allclose(found.points, expected, rtol=1e-8)
    assert found.converged.all()
    K, k = ours(rows), ours(expected, rows)
    np.testing.assert_allclose(found.objective, ours.diagonal(expected) - 2 * k.mean(axis=1) + K.mean(), atol=1e-9)


def test_ridge_resolves_the_kernel_from_the_rows_not_from_the_scores(rows):
    Z = np.random.default_rng(4).normal(size=(40, 2))
    dual = fit_ridge_inverse(Gaussian(1 / 3), Z, rows)
    found = preimages(Gaussian(), rows, np.eye(40), method="ridge", targets=Z, scores=Z, dual=dual)
    np.testing.assert_allclose(found.points, ridge_points(Gaussian(1 / 3), Z, dual, Z))


# As near as a general optimiser comes


@pytest.mark.parametrize("rates", [0.15, (0.05, 0.2, 0.4)])
@pytest.mark.parametrize("method", ITERATIONS)
def test_projections_come_as_near_as_bfgs_from_the_same_start(rows, method, rates):
    noisy = rows[:10] + 0.3 * np.random.default_rng(5).normal(size=(10, 3))
    root = np.sqrt(np.broadcast_to(rates, 3))
    G = projections(rows * root, noisy * root, 1.0, 6)
    found = preimages(Gaussian(rates), rows, G, method=method, start=noisy, penalty=0.0)
    assert found.converged.all()
    for z, g, start, reached in zip(found.points, G, noisy, found.objective, strict=True):
        best = minimize(gaussian_distance, start, args=(rows, g, np.asarray(rates)), tol=1e-10)
        assert reached <= best.fun + 1e-9
        np.testing.assert_allclose(reached, gaussian_distance(z, rows, g, np.asarray(rates)), atol=1e-10)


@pytest.mark.parametrize(("degree", "coef0"), [(2, 1.0), (3, 0.0), (3, 1.0)])
def test_polynomial_pre_images_come_as_near_as_bfgs_in_the_explicit_features(rows, degree, coef0):
    G = np.random.default_rng(6).dirichlet(np.ones(5), size=4)
    X = rows[:5]
    found = preimages(Polynomial(degree, coef0, 0.2), X, G, penalty=0.0, tol=1e-8, max_iter=5000)
    phi = polynomial_features(X, degree, coef0, 0.2)
    starts = X[np.argmin(cdist(G @ phi, phi), axis=1)]

    def distance(z, target):
        return np.sum((polynomial_features(z[None], degree, coef0, 0.2)[0] - target) ** 2)

    assert found.converged.all()
    for z, target, start, reached in zip(found.points, G @ phi, starts, found.objective, strict=True):
        best = minimize(distance, start, args=(target,), tol=1e-10)
        scale = np.sum(target**2)
        assert reached <= best.fun + 1e-9 * scale
        np.testing.assert_allclose(reached, distance(z, target), atol=1e-11 * scale)


def test_the_penalised_objective_is_stationary_where_the_search_ends(rows):
    noisy = rows[:5] + 0.5
    G, gamma, penalty = projections(rows, noisy, 0.15, 5), 0.15, 0.2
    found = preimages(Gaussian(gamma), rows, G, start=noisy, penalty=penalty, tol=1e-9)
    assert found.converged.all()
    for z, g, start in zip(found.points, G, noisy, strict=True):
        weight = 2 * g @ np.exp(-gamma * np.sum((rows - start) ** 2, axis=1))  # W at the start
        assert weight > 0

        def total(y, g=g, start=start, weight=weight):
            return gaussian_distance(y, rows, g, gamma) + penalty * weight * gamma * np.sum((y - start) ** 2)

        np.testing.assert_allclose(approx_fprime(z, total, 1e-6), 0.0, atol=5e-6)
        assert np.linalg.norm(z - start) < np.linalg.norm(noisy[0] - rows[0])


def test_a_strong_penalty_keeps_the_start(rows):
    noisy = rows[:3] + 0.5
    found = preimages(Gaussian(0.15), rows, projections(rows, noisy, 0.15, 5), start=noisy, penalty=1e7)
    assert found.converged.all()
    np.testing.assert_allclose(found.points, noisy, atol=1e-6)


# What never happens


@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.sampled_from(["gaussian", "poly"]))
def test_the_penalised_objective_never_rises_whatever_the_signs(seed, penalty, kind):
    rng = np.random.default_rng(seed)
    X, G, start = rng.normal(size=(6, 2)), rng.normal(size=(1, 6)), rng.normal(size=(1, 2))
    kernel = Gaussian(1.0) if kind == "gaussian" else Polynomial(3, 1.0, 0.5)
    land = choose_geometry(kernel, X, "regularised")
    begin = land.inward(start)
    first = land.slope(begin, G)
    strength = penalty * float(np.maximum(first.weight, 0.01 * first.bulk)[0])
    values = [float(first.value[0])]
    for steps in range(1, 16):
        with np.errstate(all="ignore"):
            Y = regularised(land, G, begin, penalty=penalty, tol=1e-12, max_iter=steps).points
        values.append(float(land.slope(Y, G).value[0] + strength * np.sum((Y - begin) ** 2)))
    assert np.isfinite(values).all()
    assert np.max(np.diff(values)) <= 1e-14 * float(first.size[0])
    y, g, z0 = (a[0] for a in (Y, G, begin))
    plain = kernel.diagonal(land.outward(Y))[0] - 2 * kernel(land.outward(Y), X)[0] @ g
    assert values[-1] == pytest.approx(plain + strength * np.sum((y - z0) ** 2), abs=1e-9)


@given(st.integers(0, 10_000))
def test_with_positive_coefficients_mikas_steps_climb_too_and_both_methods_take_the_same(seed):
    rng = np.random.default_rng(seed)
    X, G, start = rng.normal(size=(7, 2)), rng.dirichlet(np.ones(7), size=1), rng.normal(size=(1, 2))
    kernel = Gaussian(0.7)
    land = choose_geometry(kernel, X, "fixed-point")
    values, begin = [], land.inward(start)
    for steps in range(1, 12):
        Y = regularised(land, G, begin, penalty=0.0, tol=1e-12, max_iter=steps).points
        y = begin[0]
        for _ in range(steps):
            weights = G[0] * np.exp(-cdist(y[None], land.X, "sqeuclidean")[0])
            y = weights @ land.X / weights.sum()
        np.testing.assert_allclose(Y[0], y, atol=1e-10)
        values.append(1 - 2 * float(G[0] @ np.exp(-cdist(Y, land.X, "sqeuclidean")[0])))
    assert np.max(np.diff(values)) <= 1e-14


@given(st.integers(0, 10_000), st.sampled_from(ITERATIONS))
def test_points_are_finite_and_no_worse_than_their_start(seed, method):
    rng = np.random.default_rng(seed)
    X, G = rng.normal(size=(8, 2)), rng.normal(size=(5, 8))
    start = 3 * rng.normal(size=(5, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        found = preimages(Gaussian(2.0), X, G, method=method, start=start, penalty=0.0, max_iter=50)
    assert np.isfinite(found.points).all()
    assert np.isfinite(found.objective).all()
    begun = [gaussian_distance(z, X, g, 2.0) for z, g in zip(start, G, strict=True)]
    lost = ~found.converged
    assert np.all(found.objective[lost] <= np.asarray(begun)[lost] + 1e-10)
    if method == "regularised":
        assert np.all(found.objective <= np.asarray(begun) + 1e-10)


@pytest.mark.parametrize(
    ("start", "gamma"),
    [
        pytest.param(0.5, 1.0, id="the denominator is 0"),
        pytest.param(0.9, 1.0, id="it is negative"),
        pytest.param(0.5 - 1e-9, 1.0, id="it has all but cancelled"),
        pytest.param(-60.0, 1.0, id="it underflows"),
    ],
)
def test_a_collapse_is_reported_and_the_best_point_kept(start, gamma):
    X, G = np.array([[0.0], [1.0]]), np.array([[1.0, -1.0], [1.0, 0.0]])
    starts = np.array([[start], [0.1]])
    with pytest.warns(NumericalWarning, match=r"1 of 2.*0\)"):
        found = preimages(Gaussian(gamma), X, G, method="fixed-point", start=starts)
    assert found.converged.tolist() == [False, True]
    assert found.points[0, 0] == pytest.approx(start, abs=1e-12)
    assert found.points[1, 0] == pytest.approx(0.0, abs=1e-6)
    assert "NO" in repr(found)
    assert "rows 0" in found.notes[0]


def test_a_start_where_the_kernel_vanishes_is_no_answer():
    with pytest.warns(NumericalWarning, match="vanished"):
        found = preimages(Gaussian(1.0), np.array([[0.0], [1.0]]), np.array([[0.5, 0.5]]), start=[[60.0]])
    assert not found.converged[0]
    assert found.points[0, 0] == pytest.approx(60.0)


@pytest.mark.parametrize("start", [0.5, 0.9, 0.5 - 1e-9])
def test_the_regularised_fixed_point_goes_on_where_mikas_collapses(start):
    X, G = np.array([[0.0], [1.0]]), np.array([[1.0, -1.0]])
    found = preimages(Gaussian(1.0), X, G, start=[[start]], penalty=1e-4)
    assert found.converged.all()
    best = minimize(lambda z: gaussian_distance(z, X, G[0], 1.0), [-0.5], tol=1e-10)
    assert found.objective[0] <= best.fun + 1e-3
    assert found.points[0, 0] == pytest.approx(best.x[0], abs=0.02)


def test_too_few_iterations_are_reported(rows):
    noisy = rows[:4] + 0.5
    G = projections(rows, noisy, 0.15, 5)
    for method in ITERATIONS:
        with pytest.warns(NumericalWarning, match="4 of 4"):
            found = preimages(Gaussian(0.15), rows, G, method=method, start=noisy, max_iter=2)
        assert not found.converged.any()
        assert found.iterations.max() <= 3


def test_distances_that_no_point_has_are_reported():
    X = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    with pytest.warns(NumericalWarning, match="distances"):
        found = preimages(Gaussian(1.0), X, np.array([[2.0, -2.0, 0.0], [1.0, 0.0, 0.0]]), method="mds")
    assert not found.converged[0]
    assert np.isfinite(found.points).all()


# The same answer by every road


def test_sparse_rows_give_what_dense_ones_do(rows):
    X = np.where(np.abs(rows) > 1.0, rows, 0.0)
    noisy = X[:5] + 0.2
    G = projections(X, noisy, 0.1, 5)
    for method in ("fixed-point", "regularised", "mds"):
        for kernel in (Gaussian((0.1, 0.1, 0.2)), Linear()):
            dense = preimages(kernel, X, G, method=method, start=noisy)
            thin = preimages(kernel, sp.csr_array(X), G, method=method, start=noisy)
            np.testing.assert_allclose(thin.points, dense.points, atol=1e-6)
            np.testing.assert_allclose(thin.objective, dense.objective, atol=1e-8)


def test_blocks_of_rows_make_no_difference(rows, monkeypatch):
    G = projections(rows, rows[:9] + 0.2, 0.15, 5)
    whole = [preimages(Gaussian(0.15), rows, G, method=m) for m in METHODS[:3]]
    monkeypatch.setattr(search, "NUMBERS", 80)
    for method, expected in zip(METHODS[:3], whole, strict=True):
        found = preimages(Gaussian(0.15), rows, G, method=method)
        np.testing.assert_allclose(found.points, expected.points, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found.iterations, expected.iterations)


def test_what_is_known_of_the_points_need_not_be_computed(rows, monkeypatch):
    G, kernel = projections(rows, rows[:9] + 0.2, 0.15, 5), Gaussian(0.15)
    expected = preimages(kernel, rows, G)
    monkeypatch.setattr(search, "AFFORDABLE", 0.0)
    products = G @ kernel(rows)
    given_both = preimages(kernel, rows, G, products=products, norms=np.sum(G * products, axis=1))
    np.testing.assert_allclose(given_both.points, expected.points)
    np.testing.assert_allclose(given_both.objective, expected.objective, atol=1e-13)
    dear = preimages(kernel, rows, G, start=rows[:9] + 0.2)
    assert not dear.absolute
    assert "without ‖P‖²" in dear.notes[0]
    close = preimages(kernel, rows, G, start=rows[:9] + 0.2, products=products)
    np.testing.assert_allclose(dear.objective + np.sum(G * products, axis=1), close.objective, atol=1e-13)
    begun = preimages(kernel, rows, np.eye(40)[:2], penalty=0.0)  # from the largest coefficients
    np.testing.assert_allclose(begun.points, rows[:2], atol=1e-5)


def test_a_large_offset_of_the_data_changes_nothing_but_the_offset(rows):
    noisy = rows[:6] + 0.2
    G = projections(rows, noisy, 0.15, 5)
    for method in ("fixed-point", "regularised", "mds"):
        near = preimages(Gaussian(0.15), rows, G, method=method, start=noisy)
        far = preimages(Gaussian(0.15), rows + 1e6, G, method=method, start=noisy + 1e6)
        np.testing.assert_allclose(far.points - 1e6, near.points, atol=1e-6)


def test_no_rows_give_no_points(rows):
    for method in ("fixed-point", "regularised", "mds"):
        found = preimages(Gaussian(0.15), rows, np.empty((0, 40)), method=method)
        assert found.points.shape == (0, 3)


def test_results_make_tables(rows):
    found = preimages(Gaussian(0.15), rows, projections(rows, rows[:11], 0.15, 5))
    frame = pd.DataFrame(found.table())
    assert list(frame.columns) == ["row", "converged", "iterations", "objective"]
    assert len(frame) == 11
    assert "11 of 11 converged" in repr(found)
    assert "... and 1 more" in repr(found)


# What it is for


@pytest.mark.parametrize("noise", ["gaussian", "salt and pepper"])
def test_kernel_pca_denoises_digits_better_than_linear_pca(noise):
    X = load_digits().data / 16.0
    rng = np.random.default_rng(0)
    X = X[rng.permutation(len(X))]
    train, clean = X[:600], X[600:700]
    noisy = clean + 0.25 * rng.standard_normal(clean.shape)
    if noise == "salt and pepper":
        lot = rng.random(clean.shape)
        noisy = np.where(lot < 0.1, 0.0, np.where(lot < 0.2, 1.0, clean))
    gamma, k = 0.5 / np.median(cdist(train, train)) ** 2, 32
    G = projections(train, noisy, gamma, k)
    pca = PCA(k).fit(train)
    linear = np.mean((pca.inverse_transform(pca.transform(noisy)) - clean) ** 2)
    for method in ("fixed-point", "regularised", "mds"):
        found = preimages(Gaussian(gamma), train, G, method=method, start=noisy)
        assert found.converged.all()
        assert np.mean((found.points - clean) ** 2) < 0.75 * linear


# What is refused


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"method": "newton"}, "fixed-point, mds, regularised, ridge"),
        ({"kernel": Laplacian(1.0)}, "not for Laplacian.*ridge"),
        ({"kernel": Sigmoid()}, "not for Sigmoid.*ridge"),
        ({"kernel": Polynomial(3), "method": "fixed-point"}, "degree 3.*regularised"),
        ({"kernel": Polynomial(2), "method": "mds"}, "even power.*ridge"),
        ({"kernel": Gaussian((1.0, 2.0))}, "2 values.*3 columns"),
        ({"G": np.ones((1, 4))}, r"each of the 40 rows of X; got \(1, 4\)"),
        ({"G": np.full((1, 40), np.nan)}, r"G has nan at \(0, 0\)"),
        ({"start": np.ones((2, 3))}, r"start must have the shape \(1, 3\), got \(2, 3\)"),
        ({"start": [[0.0, np.inf, 0.0]]}, r"start has inf at \(0, 1\)"),
        ({"products": np.ones((1, 3))}, "products must have the shape"),
        ({"norms": np.ones(3)}, "norms must have the shape"),
        ({"penalty": -1.0}, "penalty"),
        ({"n_neighbors": 1}, "n_neighbors"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"method": "ridge"}, "needs targets, scores, dual"),
    ],
)
def test_wrong_arguments_are_named(rows, changes, complaint):
    arguments = {"kernel": Gaussian(0.5), "X": rows, "G": np.full((1, 40), 1 / 40)} | changes
    with pytest.raises(ValueError, match=complaint):
        preimages(**arguments)


def test_ridge_refuses_what_it_cannot_learn(rows):
    with pytest.raises(ValueError, match="number"):
        fit_ridge_inverse(Gaussian(1.0), np.ones((3, 2)), rows)
    with pytest.raises(ValueError, match="alpha must be"):
        fit_ridge_inverse(Gaussian(1.0), rows, rows, -1.0)
    with pytest.raises(ValueError, match="larger alpha"):
        fit_ridge_inverse(Gaussian(1.0), np.ones((40, 1)), rows, 0.0)
    with pytest.raises(ValueError, match=r"2 rows.*1 rows"):
        preimages(
            Gaussian(1.0), rows, np.ones((1, 40)), method="ridge", targets=rows[:2], scores=rows, dual=np.ones((40, 3))
        )


@pytest.mark.parametrize("method", ["fixed-point", "regularised", "mds"])
@pytest.mark.parametrize("kernel", [Gaussian(1e-7), Linear()], ids=str)
def test_preimages_of_components_found_about_the_mean(kernel: Any, method: str) -> None:
    """Norms, products and the objective are those of the kernel itself, whatever was evaluated."""
    X = np.random.default_rng(0).standard_normal((40, 2)) + (1e3 if isinstance(kernel, Linear) else 0.0)
    model = KernelPCA(2, kernel=kernel, inverse=method).fit(X)
    assert model._kernel_about is not model.kernel_
    Z = model.transform(X[:5])
    G = Z @ model.dual_coefficients_.T + model.mean_coefficients_
    direct = preimages(kernel, X, G, method=method)
    found = model.preimages(Z)
    np.testing.assert_allclose(found.points, direct.points, atol=1e-3 * np.std(X))
    np.testing.assert_allclose(found.points, X[:5], atol=0.05 * np.std(X))
    nystrom = KernelPCA(2, kernel=kernel, inverse=method, eigen_solver="nystrom", n_landmarks=30, tol=1e3).fit(X)
    with pytest.raises(ValueError, match="eigen_solver"):
        nystrom.preimages(Z)


def test_scores_too_far_out_have_no_learned_preimage() -> None:
    X = np.random.default_rng(0).standard_normal((40, 2))
    model = KernelPCA(2, kernel="poly", degree=2, fit_inverse_transform=True).fit(X)
    Z = model.transform(X[:3])
    Z[1] *= 1e200
    with pytest.raises(ValueError, match="row 2 "):
        model.inverse_transform(Z)
