"""Stated errors of kernel values, and kernels about the mean of the rows, against arithmetic of 120 digits."""

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest

from gramian.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from kernel_oracles import DIGITS, exact_matrix
from oracles import Array


def make_kernels(unit: float) -> list[Kernel]:
    """One kernel of each kind, wide or narrow: γ multiplied by a unit."""
    return [
        Linear(),
        Polynomial(2, 1.0, unit),
        Polynomial(3, 0.0, unit),
        Polynomial(5, 0.3, unit),
        Polynomial(2, -0.7, unit),
        Sigmoid(unit, 0.5),
        Cosine(),
        Gaussian(unit),
        Laplacian(unit),
        Matern(0.5, unit**-0.5),
        Matern(1.5, unit**-0.5),
        Matern(2.5, unit**-0.5),
        RationalQuadratic(0.7, unit**-0.5),
        RationalQuadratic(40.0, unit**-0.5),
        Chi2(unit),
        AdditiveChi2(),
    ]


NAMES = [f"{i}-{type(kernel).__name__}" for i, kernel in enumerate(make_kernels(1.0))]


def make_points(rng: np.random.Generator, kernel: Kernel) -> Array:
    """A few rows: some equal, some near each other, some far, at a distance from the origin."""
    p = int(rng.integers(1, 6))
    X = rng.standard_normal((7, p)) * rng.choice([1e-4, 1.0, 30.0])
    X[1] = X[0]
    X[2] = X[0] * (1 + 1e-9)
    X[3] *= rng.choice([1.0, 1e3])
    X = X + rng.choice([0.0, 1.0, 1e3, 1e7])
    X = np.abs(X) if isinstance(kernel, (Chi2, AdditiveChi2)) else X
    return X.astype(np.float32).astype(np.float64) if rng.random() < 0.3 else X


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_values_are_within_their_stated_error(index: int) -> None:
    rng = np.random.default_rng(index)
    with mp.workdps(DIGITS):
        for _ in range(12):
            kernel = make_kernels(float(rng.choice([1e-14, 1e-6, 1e-2, 1.0, 50.0])))[index]
            X = make_points(rng, kernel)
            error, e = np.abs(kernel(X) - exact_matrix(kernel, X, X)), kernel.rounding(X)
            assert np.all(error <= np.outer(e, e)), (kernel, float(np.max(error / np.outer(e, e))))
            about = kernel.about_mean(X)
            if about is kernel:
                continue
            origin = np.array([about.origin])
            if isinstance(kernel, Cosine):  # whose origin is one of features
                rows = [[mp.mpf(float(v)) for v in x] for x in X]
                unit = [[v / mp.norm(x) for v in x] for x in rows]
                apart = [[v - mp.mpf(float(o)) for v, o in zip(x, origin[0], strict=True)] for x in unit]
                exact = np.array([[mp.fdot(x, z) for z in apart] for x in apart], dtype=object)
            else:
                ends = exact_matrix(kernel, X, origin)[:, 0]
                exact = exact_matrix(kernel, X, X) - ends[:, None] - ends + exact_matrix(kernel, origin, origin)[0, 0]
            error, e = np.abs(about(X) - exact), about.rounding(X)
            assert np.all(error <= np.outer(e, e)), (about, float(np.max(error / np.outer(e, e))))
            np.testing.assert_allclose(about.diagonal(X), np.diagonal(about(X)), rtol=1e-12, atol=np.max(e) ** 2)


@pytest.mark.parametrize("index", [i for i, name in enumerate(NAMES) if "Sigmoid" not in name], ids=str)
def test_about_the_mean_errors_are_small_beside_what_centring_leaves(index: int) -> None:
    """The trace of errors over the trace about the mean: a few hundred units where the rows are like each other."""
    rng = np.random.default_rng(0)
    for unit in (1e-14, 1e-9, 1e-3):
        kernel = make_kernels(unit)[index]
        X = rng.standard_normal((20, 4)) + 1e4 * isinstance(kernel, (Linear, Polynomial))
        X = np.abs(X) + 2 if isinstance(kernel, (Chi2, AdditiveChi2)) else X
        if isinstance(kernel, (Polynomial, Cosine)) and unit == 1e-3:
            continue
        if not kernel.positive_semidefinite:
            continue
        about = kernel.about_mean(X)
        K = np.asarray(about(X))
        left = np.trace(K) - K.sum() / len(K)
        assert np.sum(about.rounding(X) ** 2) <= 1e-9 * left
