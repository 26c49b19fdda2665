"""The formula of a kernel, evaluated entry by entry as its documentation reads, is the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.kernels import (
    AdditiveChi2,
    Callable,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    MatrixFunction,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
)
from gramian.kernels.base import Formula

LENGTHS = (0.5, 1.0, 2.0)
X = np.random.default_rng(0).uniform(0, 2, (12, 3))
Z = np.random.default_rng(1).uniform(0, 2, (9, 3))
X[0], Z[:2, 1] = 0.0, 0.0  # 0/0 of the chi-squared kernels, and the norm 0 of the cosine

ATOMS: list[Kernel] = [
    Gaussian(),
    Gaussian(0.7),
    Gaussian(beta=0.3),
    Gaussian(bandwidth=1.7),
    Gaussian(LENGTHS),
    Gaussian(bandwidth=LENGTHS),
    Laplacian(),
    Laplacian(0.4),
    Laplacian(LENGTHS),
    Matern(0.5, 1.3),
    Matern(1.5, LENGTHS),
    Matern(2.5),
    RationalQuadratic(),
    RationalQuadratic(0.7, LENGTHS),
    Linear(),
    Polynomial(),
    Polynomial(7, -0.5, 0.3),
    Sigmoid(),
    Sigmoid(0.4, -1.0),
    Cosine(),
    Chi2(),
    Chi2(0.3),
    AdditiveChi2(),
]


def argument(geometry: str, x: np.ndarray, z: np.ndarray) -> float:
    if geometry == "squared":
        return float(sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
    if geometry == "absolute":
        return float(sum(abs(a - b) for a, b in zip(x, z, strict=True)))
    if geometry == "chi2":
        return float(sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0))
    dot = float(sum(a * b for a, b in zip(x, z, strict=True)))
    if geometry == "inner":
        return dot
    norms = float(np.linalg.norm(x) * np.linalg.norm(z))
    return dot / norms if norms else 0.0


PROFILES: dict[str, Any] = {
    "exp": lambda u: np.exp(-u),
    "matern12": lambda u: np.exp(-np.sqrt(u)),
    "matern32": lambda u: (1 + np.sqrt(u)) * np.exp(-np.sqrt(u)),
    "matern52": lambda u: (1 + np.sqrt(u) + u / 3) * np.exp(-np.sqrt(u)),
    "rational": lambda u, alpha: (1 + u) ** -alpha,
    "identity": lambda u: u,
    "power": lambda u, q, b: (u + b) ** q,
    "tanh": lambda u, b: np.tanh(u + b),
}


def naive(formula: Formula, x: np.ndarray, z: np.ndarray) -> float:
    """One value, as the docstring of Formula has it."""
    if formula.geometry in ("sum", "product"):
        values = [naive(part, x, z) for part in formula.parts]
        return formula.factor * float(np.sum(values) if formula.geometry == "sum" else np.prod(values))
    u = argument(formula.geometry, formula.scale * x, formula.scale * z)
    return formula.factor * float(PROFILES[formula.profile](u, *formula.parameters))


def matrix(kernel: Kernel) -> np.ndarray:
    formula = kernel.formula(3)
    assert formula is not None
    return np.array([[naive(formula, x, z) for z in Z] for x in X])


@pytest.mark.parametrize("kernel", ATOMS, ids=repr)
def test_the_formula_is_the_kernel(kernel: Kernel) -> None:
    np.testing.assert_allclose(matrix(kernel), kernel(X, Z), rtol=1e-12, atol=1e-14)


atoms = st.sampled_from(ATOMS)


@given(a=atoms, b=atoms, c=atoms, s=st.floats(0.1, 10), t=st.floats(0.1, 10))
def test_formulas_of_combinations(a: Kernel, b: Kernel, c: Kernel, s: float, t: float) -> None:
    kernel = t * (a * b + s * (b + c) * a)
    np.testing.assert_allclose(matrix(kernel), kernel(X, Z), rtol=1e-10, atol=1e-12)


def test_what_is_no_formula() -> None:
    other = Callable(lambda x, z: float(x @ z))
    assert other.formula(3) is None
    assert Precomputed().formula(3) is None
    assert MatrixFunction(lambda x, z: x @ z.T).formula(3) is None
    assert (Linear() + other).formula(3) is None
    assert (other * Linear()).formula(3) is None
    assert (2.0 * other).formula(3) is None


@pytest.mark.parametrize("kernel", [Gaussian("median"), Matern(1.5, "median"), RationalQuadratic(1.0, "median")])
def test_parameters_that_wait_for_data_are_refused(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match=r"kernel\.resolved\(X\)"):
        kernel.formula(3)
    with pytest.raises(ValueError, match=r"kernel\.resolved\(X\)"):
        (Linear() + kernel).formula(3)
    assert kernel.resolved(X).formula(3) is not None


def test_one_value_for_each_feature_must_fit() -> None:
    with pytest.raises(ValueError, match=r"3 values.*2 columns"):
        Gaussian(LENGTHS).formula(2)
