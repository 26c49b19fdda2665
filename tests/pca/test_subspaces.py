"""Angles between subspaces, and configurations moved onto each other."""

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes as scipy_procrustes

from gramian import PCA
from gramian.pca.subspaces import principal_angles, procrustes, subspace_distance
from oracles import Array, separated, subspace_sine

SMALL = [1e-14, 1e-10, 1e-5, 0.1, 0.7853, 1.0, np.pi / 2 - 1e-5, np.pi / 2 - 1e-10, np.pi / 2]


def orthogonal(rng: np.random.Generator, p: int) -> Array:
    return np.asarray(np.linalg.qr(rng.standard_normal((p, p)))[0])


@pytest.mark.parametrize("angle", SMALL)
def test_planes_at_a_known_angle(angle: float) -> None:
    A = np.eye(4)[:, :2]
    B = np.array([[1, 0], [0, np.cos(angle)], [0, np.sin(angle)], [0, 0]])
    assert_allclose(principal_angles(A, B), [0, angle], rtol=1e-15, atol=1e-16)


@given(seed=st.integers(0, 10**6), angle=st.sampled_from(SMALL))
def test_turned_and_mixed_bases_have_the_same_angles(seed: int, angle: float) -> None:
    rng = np.random.default_rng(seed)
    angles = np.array([0.02, angle])
    A = np.eye(6)[:, :2]
    B = np.vstack([np.diag(np.cos(angles)), np.diag(np.sin(angles)), np.zeros((2, 2))])
    Q, S, T = orthogonal(rng, 6), orthogonal(rng, 2), orthogonal(rng, 2)
    expected = np.sort(angles)
    assert_allclose(principal_angles(Q @ A @ S, Q @ B @ T), expected, atol=4e-15)
    assert_allclose(principal_angles(Q @ B, Q @ A @ np.diag([1, 1e3])), expected, atol=4e-15)


@given(seed=st.integers(0, 1000))
def test_tiny_angles_with_fifty_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 1))
    B = A + 1e-9 * rng.standard_normal((4, 1))
    with mpmath.workdps(50):
        a, b = ([mpmath.mpf(float(x)) for x in v[:, 0]] for v in (A, B))
        dot, aa, bb = (mpmath.fsum(x * y for x, y in zip(u, v, strict=True)) for u, v in ((a, b), (a, a), (b, b)))
        truth = float(mpmath.atan2(mpmath.sqrt(aa * bb - dot**2), dot))
    assert_allclose(principal_angles(A, B), [truth], atol=4e-16)


def test_models_of_different_sizes_and_dependent_columns() -> None:
    X = separated(40, 6)
    one, two = PCA(3).fit(X), PCA(2).fit(X[:20])
    angles = principal_angles(one, two)
    assert angles.shape == (2,)
    assert_allclose(np.sin(angles[-1]), subspace_sine(two.components_, one.components_), atol=1e-12)
    V = one.components_.T
    assert_allclose(principal_angles(np.hstack([V, V]), one), 0, atol=1e-14)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 3))
def test_distances_are_those_of_the_projections(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = orthogonal(rng, 6)[:, :k], orthogonal(rng, 6)[:, :k]
    D = A @ A.T - B @ B.T
    assert_allclose(subspace_distance(A, B), np.linalg.norm(D) / np.sqrt(2), atol=1e-12)
    assert_allclose(subspace_distance(A, B, "projection"), np.linalg.norm(D, 2), atol=1e-12)
    cosines = np.clip(np.linalg.svd(A.T @ B, compute_uv=False), 0, 1)
    assert_allclose(subspace_distance(A, B, "geodesic"), np.linalg.norm(np.arccos(cosines)), atol=1e-7)
    assert subspace_distance(A, A @ orthogonal(rng, k)) < 1e-14


def test_refused_subspaces() -> None:
    with pytest.raises(ValueError, match=r"3 dimensions.*in 4"):
        principal_angles(np.eye(3), np.eye(4))
    with pytest.raises(ValueError, match="B spans nothing"):
        principal_angles(np.eye(3), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="row 1, column 2"):
        principal_angles([[1.0, np.nan]], [[1.0]])
    with pytest.raises(ValueError, match="2 and B 1"):
        subspace_distance(np.eye(3)[:, :2], np.eye(3)[:, :1])
    with pytest.raises(ValueError, match="metric"):
        subspace_distance(np.eye(3), np.eye(3), "cosine")


@given(seed=st.integers(0, 10**6))
def test_scipy_procrustes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((12, 3)), rng.standard_normal((12, 3)) + 5
    fit = procrustes(A, B)
    first, second, disparity = scipy_procrustes(B, A)
    assert_allclose(1 - fit.r_squared, disparity, rtol=1e-9)
    centre, size = B.mean(axis=0), np.linalg.norm(B - B.mean(axis=0))
    assert_allclose((fit.apply(A) - centre) / size, second, atol=1e-9)
    assert_allclose((B - centre) / size, first, atol=1e-12)
    plain = procrustes(A, B, scale=False, translate=False)
    assert_allclose(plain.rotation, orthogonal_procrustes(A, B)[0], atol=1e-10)
    assert_allclose(plain.residual, np.sum((A @ plain.rotation - B) ** 2), rtol=1e-10)
    assert plain.scale == 1.0
    assert_allclose(plain.translation, 0)


@given(seed=st.integers(0, 10**6), reflect=st.booleans(), scale=st.booleans(), translate=st.booleans())
def test_no_other_movement_does_better(seed: int, reflect: bool, scale: bool, translate: bool) -> None:
    rng = np.random.default_rng(seed)
    A, B, w = rng.standard_normal((9, 3)), rng.standard_normal((9, 3)), rng.uniform(0.2, 3, 9)
    fit = procrustes(A, B, reflect=reflect, scale=scale, translate=translate, sample_weight=w)
    assert_allclose(fit.rotation.T @ fit.rotation, np.eye(3), atol=1e-12)
    assert_allclose(fit.residual, w @ np.sum((fit.apply(A) - B) ** 2, axis=1), rtol=1e-9)
    assert reflect or np.linalg.det(fit.rotation) > 0
    for _ in range(40):
        R = orthogonal(rng, 3)
        R = R if reflect or np.linalg.det(R) > 0 else -R
        moved = A @ R
        s, t = abs(rng.normal(1, 1)) if scale else 1.0, rng.normal(0, 0.3, 3) if translate else 0.0
        assert w @ np.sum((s * moved + t - B) ** 2, axis=1) >= fit.residual - 1e-9


@given(seed=st.integers(0, 10**6), mirror=st.booleans())
def test_a_similarity_is_found_again(seed: int, mirror: bool) -> None:
    rng = np.random.default_rng(seed)
    A, R = rng.standard_normal((10, 3)), orthogonal(rng, 3)
    R = R if (np.linalg.det(R) < 0) == mirror else -R
    fit = procrustes(A, 2.5 * A @ R + [1, 2, 3])
    assert_allclose(fit.rotation, R, atol=1e-10)
    assert_allclose([fit.scale, fit.r_squared], [2.5, 1], rtol=1e-12)
    without = procrustes(A, 2.5 * A @ R + [1, 2, 3], reflect=False)
    assert (without.r_squared > 1 - 1e-12) != mirror


def test_whole_weights_are_repetition_and_a_mirror_in_one_dimension_is_refused() -> None:
    rng = np.random.default_rng(0)
    A, B, w = rng.standard_normal((8, 2)), rng.standard_normal((8, 2)), np.array([0, 1, 2, 3, 1, 0, 2, 1])
    ours, theirs = procrustes(A, B, sample_weight=w), procrustes(np.repeat(A, w, axis=0), np.repeat(B, w, axis=0))
    assert_allclose(ours.rotation, theirs.rotation, atol=1e-12)
    assert_allclose(ours.residual, theirs.residual, rtol=1e-12)
    line = np.arange(5.0)
    backwards = procrustes(line, -line, reflect=False)
    assert backwards.scale == 0.0  # stretching by −1 would be a mirror
    assert_allclose(procrustes(line, -line).r_squared, 1)
    assert "Procrustes: scale" in repr(ours)
    assert list(ours.table()) == ["name", "axis0", "axis1"]


def test_refused_configurations() -> None:
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(4, 2\)"):
        procrustes(np.ones((3, 2)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="the same point"):
        procrustes(np.ones((3, 2)), np.eye(3)[:, :2])
    with pytest.raises(ValueError, match="B contains inf"):
        procrustes(np.eye(2), [[1.0, np.inf], [0, 1]])
