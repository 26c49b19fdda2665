"""Distances of near-duplicates and of points far from zero, against 50 digits."""

from __future__ import annotations

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.kernels import Gaussian, Kernel, Matern, RationalQuadratic
from gramian.kernels.distance import RATE, at_least, exponential, lowest, squared_distances


def exact(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """The kernel of the very numbers in X and Z, with 50 digits."""
    with mpmath.workdps(50):
        rows = [[_value(kernel, x, z) for z in Z] for x in X]
        return np.array([[float(value) for value in row] for row in rows])


def _value(kernel: Any, x: np.ndarray, z: np.ndarray) -> Any:
    u = mpmath.fsum((mpmath.mpf(float(a)) - mpmath.mpf(float(b))) ** 2 for a, b in zip(x, z, strict=True))
    if isinstance(kernel, Gaussian):
        return mpmath.exp(-mpmath.mpf(kernel.gamma) * u)
    if isinstance(kernel, RationalQuadratic):
        return (1 + u / (2 * mpmath.mpf(kernel.alpha))) ** -mpmath.mpf(kernel.alpha)
    s = mpmath.sqrt(2 * mpmath.mpf(kernel.nu) * u) / mpmath.mpf(kernel.length_scale)
    factor = {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s * s / 3}[kernel.nu]
    return factor * mpmath.exp(-s)


KERNELS = [Gaussian(0.7), Matern(0.5), Matern(1.5), Matern(2.5), RationalQuadratic(0.8)]
by_name = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def near_duplicates(offset: float, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points, and points 1e-12 to 1 away from them, all moved by the offset."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 4)) + offset
    steps = np.geomspace(1e-12, 1, 12)[:, None]
    return X.astype(dtype), (X + steps * rng.standard_normal((12, 4))).astype(dtype)


@by_name
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e8])
def test_float64_keeps_twelve_digits(kernel: Kernel, offset: float) -> None:
    X, Z = near_duplicates(offset, np.float64)
    np.testing.assert_allclose(kernel(X, Z), exact(kernel, X, Z), rtol=2e-12)


@by_name
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_float32_keeps_five_digits(kernel: Kernel, offset: float) -> None:
    X, Z = near_duplicates(offset, np.float32)
    np.testing.assert_allclose(kernel(X, Z), exact(kernel, X, Z), rtol=2e-5)


def test_the_plain_formula_would_fail_these() -> None:
    """‖x‖² + ‖z‖² − 2x·z without an origin has no digit left at an offset of 1e8."""
    X, Z = near_duplicates(1e8, np.float64)
    plain = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2 * X @ Z.T
    assert np.abs(np.exp(-0.7 * plain) - exact(Gaussian(0.7), X, Z)).max() > 0.1


@by_name
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_have_kernel_one_wherever_they_stand(kernel: Kernel, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    X = (1000 * rng.standard_normal((700, 300)) + 1e6).astype(dtype)
    X[640:] = X[:60]  # in another tile
    K = kernel(X, X.copy())
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    np.testing.assert_array_equal(K[np.arange(640, 700), np.arange(60)], 1.0)
    np.testing.assert_array_equal(np.diagonal(kernel(X)), 1.0)
    assert K.max() <= 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1.0, 1e2, 1e4, 1e6, 1e10])
def test_tight_clusters_far_apart(dtype: Any, gamma: float) -> None:
    """Narrow kernels: every distance that matters is small compared with the norms, and most entries need repair."""
    rng = np.random.default_rng(2)
    centres = 10 * rng.standard_normal((3, 6))
    X = (centres[rng.integers(0, 3, 60)] + rng.standard_normal((60, 6)) / np.sqrt(6 * gamma)).astype(dtype)
    K, want = Gaussian(gamma)(X), exact(Gaussian(gamma), X, X)
    # absolute error: entries far from the diagonal of a cluster may lose relative digits, as documented
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    assert np.abs(K - want).max() < tolerance
    assert np.abs(Gaussian([gamma] * 6)(X) - want).max() < tolerance  # one for each feature: another path


@given(seed=st.integers(0, 10**6), shift=st.floats(-1e9, 1e9), spread=st.floats(1e-9, 1e9), n=st.integers(2, 40))
def test_squared_distances_are_never_negative(seed: int, shift: float, spread: float, n: int) -> None:
    X = spread * np.random.default_rng(seed).standard_normal((n, 3)) + shift
    X[-1] = X[0]
    u = squared_distances(X)
    assert u.min() >= 0.0
    assert u[0, -1] == 0.0
    direct = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(u, direct, atol=1e-13 * direct.max(), rtol=1e-9)


def test_integers_do_not_wrap_around() -> None:
    X = np.array([[0, 250], [255, 3]], dtype=np.uint8)
    far = 255.0**2 + 247.0**2
    np.testing.assert_array_equal(squared_distances(X), [[0, far], [far, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_points_give_tiny_normal_numbers(dtype: Any) -> None:
    X = np.array([[0.0], [1e4]], dtype=dtype)
    K = Gaussian(1.0)(X)
    assert 0 < K[0, 1] <= 4 * np.finfo(dtype).tiny
    assert np.finfo(dtype).tiny <= Matern(0.5)(np.array([[0.0], [1e6]], dtype=dtype))[0, 1] < 1e-37


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exponential_is_accurate(dtype: Any) -> None:
    x = -np.geomspace(1e-6, 80, 400).astype(dtype)
    with mpmath.workdps(40):
        exponents = [mpmath.mpf(float(v)) / mpmath.mpf(RATE) for v in x]
        want = np.array([float(mpmath.exp(e)) for e in exponents])
    # RATE itself is rounded: log2(e) to half a unit moves an exponent of 80 by a few ε
    tolerance = 80 * np.finfo(np.float64).eps + 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(exponential(x).astype(float), want, rtol=tolerance)
    assert lowest(np.dtype(dtype)) < -80
    assert at_least(np.full((2, 2), -1e9, dtype), -5.0).min() == -5.0
