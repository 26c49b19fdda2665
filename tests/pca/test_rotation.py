"""Rotations against R's varimax, promax and GPArotation, and against what a maximum must satisfy."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gramian import PCA, NumericalWarning
from gramian.pca.interpret import loadings
from gramian.pca.rotation import Rotation, rotate, rotated_scores
from oracles import Array, separated

R: dict[str, Any] = json.loads((Path(__file__).parent.parent / "data" / "rotation.json").read_text("utf-8"))
TABLES = ["mtcars", "thurstone", "attitude"]
ORTHOGONAL = ["varimax", "quartimax", "equamax"]


def matched(ours: Array, theirs: Array) -> tuple[Array, Array]:
    """Order and signs of our factors that come nearest to theirs."""
    best = min(permutations(range(ours.shape[1])), key=lambda p: np.sum((np.abs(ours[:, p]) - np.abs(theirs)) ** 2))
    order = np.array(best)
    return order, np.sign(np.sum(ours[:, order] * theirs, axis=0))


def assert_same_factors(ours: Array, theirs: Any, atol: float) -> None:
    order, signs = matched(ours, np.array(theirs))
    assert_allclose(ours[:, order] * signs, theirs, atol=atol)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("normalize", [True, False])
def test_varimax_of_r(table: str, normalize: bool) -> None:
    found = rotate(R[table]["loadings"], normalize=normalize)
    assert found.converged
    # R stops when the sum of singular values stands still: half its digits
    assert_same_factors(found.loadings, R[table]["varimax" if normalize else "varimax_raw"], 2e-7)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["quartimax", "quartimax_raw", "equamax_raw"])
def test_gparotation(table: str, name: str) -> None:
    method, _, raw = name.partition("_")
    found = rotate(R[table]["loadings"], method, normalize=not raw)
    assert_same_factors(found.loadings, R[table][name], 1e-6)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("power", "name"), [(4, "promax"), (3, "promax_three")])
def test_promax_of_r(table: str, power: float, name: str) -> None:
    found = rotate(R[table]["loadings"], "promax", power=power)
    assert_same_factors(found.loadings, R[table][name], 2e-5)  # stats::promax repeats varimax with a tolerance of 1e-5


@pytest.mark.parametrize("table", TABLES)
def test_correlations_of_promax_factors(table: str) -> None:
    found = rotate(R[table]["loadings"], "promax")
    order, signs = matched(found.loadings, np.array(R[table]["promax"]))
    ours = found.correlations[np.ix_(order, order)] * np.outer(signs, signs)
    assert_allclose(ours, R[table]["promax_correlations"], atol=2e-5)


def criterion(L: Array, method: str, normalize: bool) -> float:
    """The orthomax criterion as it is written."""
    L = L / np.linalg.norm(L, axis=1, keepdims=True) if normalize else L
    p, k = L.shape
    gamma = {"varimax": 1.0, "quartimax": 0.0, "equamax": k / 2}[method]
    columns = [sum(x**4 for x in L[:, j]) - gamma / p * sum(x**2 for x in L[:, j]) ** 2 for j in range(k)]
    return float(sum(columns))


def random_rotation(rng: np.random.Generator, k: int) -> Array:
    return np.asarray(np.linalg.qr(rng.standard_normal((k, k)))[0])


@given(
    seed=st.integers(0, 10**6),
    method=st.sampled_from(ORTHOGONAL),
    normalize=st.booleans(),
    shape=st.sampled_from([(4, 2), (8, 3), (12, 5), (3, 3), (6, 1)]),
)
def test_what_every_orthogonal_rotation_must_satisfy(
    seed: int, method: str, normalize: bool, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(shape)
    found = rotate(A, method, normalize=normalize, n_starts=4)
    k = shape[1]
    assert found.converged
    assert_allclose(found.rotation.T @ found.rotation, np.eye(k), atol=1e-12)
    assert_allclose(found.loadings, A @ found.rotation, atol=1e-12)
    assert_allclose(found.communalities, np.sum(A**2, axis=1), rtol=1e-10)
    assert_allclose(found.explained_variance.sum(), np.sum(A**2), rtol=1e-10)
    assert np.all(np.diff(found.explained_variance) <= 1e-12)
    best = criterion(found.loadings, method, normalize)
    assert_allclose(found.criterion, best, rtol=1e-9, atol=1e-12)
    # no small rotation improves on it, in any plane, and no random one does either
    for i in range(k):
        for j in range(i):
            for angle in (-1e-3, 1e-3):
                T = np.eye(k)
                T[[i, i, j, j], [i, j, i, j]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
                assert criterion(found.loadings @ T, method, normalize) <= best + 1e-12
    assert all(criterion(A @ random_rotation(rng, k), method, normalize) <= best + 1e-9 for _ in range(50))


@given(seed=st.integers(0, 10**6), power=st.sampled_from([2.0, 3.0, 4.0]))
def test_promax_describes_the_same_variables(seed: int, power: float) -> None:
    rng = np.random.default_rng(seed)
    A = np.kron(np.eye(3), np.ones((4, 1))) + 0.3 * rng.standard_normal((12, 3))
    found = rotate(A, "promax", power=power)
    phi = found.correlations
    assert_allclose(np.diag(phi), 1, rtol=1e-10)
    assert_allclose(found.loadings @ phi @ found.loadings.T, A @ A.T, atol=1e-10)
    assert_allclose(found.structure, found.loadings @ phi, atol=1e-12)
    assert_allclose(found.communalities, np.sum(A**2, axis=1), rtol=1e-9)


@given(angle=st.floats(0.01, 1.5), size=st.sampled_from([1e-60, 1.0, 1e60]))
def test_a_perfect_simple_structure_is_found_again(angle: float, size: float) -> None:
    simple = np.array([[3.0, 0], [2, 0], [0, 1], [0, 1.5], [1, 0]]) * size
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for method in ORTHOGONAL:
        assert_allclose(rotate(simple @ turn, method).loadings / size, simple / size, atol=1e-7)


def test_a_start_at_the_minimum_is_left() -> None:
    # the criterion is stationary at these loadings, and smallest
    worst = np.array([[1.0, 1], [1, -1], [1, 1], [1, -1]])
    found = rotate(worst)
    assert found.converged
    assert_allclose(np.sort(np.abs(found.loadings), axis=1), np.tile([0, np.sqrt(2)], (4, 1)), atol=1e-9)


@pytest.mark.parametrize("method", [*ORTHOGONAL, "promax"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
def test_rotated_scores_are_standardised_and_rebuild_the_data(method: str, scale: bool, whiten: bool) -> None:
    X = separated(60, 6)
    pca = PCA(3, scale=scale, whiten=whiten).fit(X)
    found = rotate(pca, method)
    F = rotated_scores(pca, X, found)
    assert_allclose(np.cov(F.T), found.correlations, atol=1e-9)
    rebuilt = F @ found.loadings.T * (1.0 if pca.scale_ is None else pca.scale_) + pca.mean_
    assert_allclose(rebuilt, pca.inverse_transform(pca.transform(X)), atol=1e-9)
    D = X if pca.scale_ is None else X / pca.scale_
    covariance = np.cov(D.T, F.T)[:6, 6:]
    assert_allclose(covariance, found.structure, atol=1e-9)


def test_fewer_components_and_ranks() -> None:
    X = separated(30, 5)
    pca = PCA(4).fit(X)
    assert_allclose(rotate(pca, n_components=2).loadings, rotate(PCA(2).fit(X)).loadings, atol=1e-8)
    assert rotate(pca, n_components=1).loadings.shape == (5, 1)
    assert rotated_scores(pca, X, rotate(pca, n_components=2)).shape == (30, 2)
    with pytest.warns(NumericalWarning, match="rank"):
        flat = PCA(3).fit(np.outer(np.arange(6.0), [1, 2, 3]))
    assert rotate(flat).loadings.shape == (3, 1)


def test_stopping_early_is_said() -> None:
    A = np.random.default_rng(0).standard_normal((10, 5))
    with pytest.warns(NumericalWarning, match=r"varimax .* 1 sweeps"):
        found = rotate(A, max_iter=1)
    assert not found.converged
    assert "NOT converged" in repr(found)


def test_more_starts_never_do_worse() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        A = rng.standard_normal((7, 5))
        one, many = rotate(A, "quartimax"), rotate(A, "quartimax", n_starts=10, random_state=1)
        assert many.criterion >= one.criterion - 1e-12


def test_tables_and_refusals() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(separated(30, 4), columns=list("abcd"))
    pca = PCA(2).fit(frame)
    found = rotate(pca)
    assert isinstance(found, Rotation)
    assert list(pd.DataFrame(found.table())) == ["name", "factor0", "factor1", "communality"]
    assert found.table()["name"] == list("abcd")
    assert "varimax, converged" in repr(found)
    for arguments, word in [
        ({"method": "simplimax"}, "method must be one of"),
        ({"n_components": 3}, "between 1 and 2"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_starts": 0}, "n_starts"),
    ]:
        with pytest.raises(ValueError, match=word):
            rotate(pca, **arguments)
    with pytest.raises(ValueError, match="row 2"):
        rotate([[1.0, 0], [np.nan, 1]])
    with pytest.raises(ValueError, match="are 0"):
        rotate(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="shape"):
        rotate([1.0, 2.0])
    with pytest.raises(ValueError, match="model"):
        rotated_scores(PCA(2, scale=True).fit(frame), frame, found)
    with pytest.raises(ValueError, match="not independent"):
        rotate(np.outer([1.0, 2, 3], [1, 1]), "promax")
    assert loadings(pca).shape == (4, 2)


@pytest.mark.parametrize("scale", [False, True])
def test_shares_of_the_variance_are_printed(scale: bool) -> None:
    X = separated(40, 5)
    pca = PCA(2, scale=scale).fit(X)
    found = rotate(pca)
    variances = np.var(X / X.std(axis=0, ddof=1) if scale else X, axis=0, ddof=1)
    assert found.total_variance == pytest.approx(variances.sum())
    assert_allclose(found.explained_variance_ratio, np.sum(found.loadings**2, axis=0) / variances.sum(), rtol=1e-9)
    assert found.explained_variance_ratio.sum() == pytest.approx(pca.explained_variance_ratio_.sum())
    for name, row in (
        ("SS loadings", found.explained_variance),
        ("proportion", found.explained_variance_ratio),
        ("cumulative", np.cumsum(found.explained_variance_ratio)),
    ):
        line = next(text for text in repr(found).splitlines() if text.strip().startswith(name))
        assert line.split()[-2:] == [f"{x:.4g}" for x in row]
    assert "correlations of the factors" not in repr(found)


def test_correlations_of_oblique_factors_are_printed() -> None:
    found = rotate(R["mtcars"]["loadings"], "promax")
    text = repr(found).split("correlations of the factors:\n")[1]
    assert text.splitlines()[1].split() == ["factor0", *(f"{x:.4g}" for x in found.correlations[0])]
    # loadings alone are taken as those of scaled variables, as R's print of loadings does
    assert found.total_variance == len(R["mtcars"]["loadings"])
