"""Block Krylov for symmetric maps, against dense eigendecompositions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from gramian.operators import Data
from gramian.spectral import SymmetricKrylov
from oracles import Array


def symmetric(values: Array, seed: int = 0) -> Array:
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    A = (Q * values) @ Q.T
    return np.asarray((A + A.T) / 2)


SPECTRA: dict[str, Array] = {
    "geometric": np.geomspace(100, 1e-3, 200),
    "flat tail": np.r_[10.0, 9.0, 8.0, np.ones(197)],
    "equal pairs": np.repeat(np.linspace(20, 1, 100), 2),
    "indefinite": np.linspace(-50, 40, 200),
    "low rank": np.r_[np.arange(12.0, 0, -1), np.zeros(188)],
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_leading_pairs_and_their_bounds(name: str, k: int, tol: float) -> None:
    K = symmetric(SPECTRA[name])
    found = SymmetricKrylov(tol=tol)(Data(K), k)
    truth = np.sort(SPECTRA[name])[::-1][:k]
    assert found.certificate.converged
    bound = found.certificate.value_bounds
    assert np.all(np.abs(found.values - truth) <= bound + 1e-12 * np.abs(SPECTRA[name]).max())
    V = found.right
    measured = np.sqrt(2) * np.linalg.norm(K @ V - V * found.values, axis=0) / np.abs(found.values).max()
    assert_allclose(found.certificate.residuals, measured, atol=1e-13, rtol=0.5)
    assert_allclose(V.T @ V, np.eye(k), atol=1e-10)


@pytest.mark.parametrize("tol", [1e-5, 1e-9])
def test_a_twin_in_float32_carries_the_iteration_and_not_the_verdict(tol: float) -> None:
    K = symmetric(SPECTRA["geometric"])
    wide, narrow = Data(K), Data(K.astype(np.float32))
    found = SymmetricKrylov(tol=tol)(wide, 4, twin=narrow)
    assert found.certificate.converged
    assert found.right.dtype == np.float64
    assert_allclose(found.values, SPECTRA["geometric"][:4], rtol=tol)
    assert narrow.passes > 0
    assert found.certificate.passes == wide.passes + narrow.passes
    if tol == 1e-5:
        assert wide.passes == 1  # the projection alone


def coarse(K: Array, digits: int, seed: int = 0) -> Data:
    """K in float32, its rows and columns wrong by some 10^-digits: as points rounded to few bits make them."""
    error = 1 + 10.0**-digits * np.random.default_rng(seed).standard_normal(len(K))
    return Data((K * np.outer(error, error)).astype(np.float32))


@pytest.mark.parametrize("tol", [1e-3, 1e-4])
def test_a_coarse_twin_is_mended_by_one_step_with_a_finer_one(tol: float) -> None:
    K = symmetric(np.r_[np.geomspace(100, 20, 8), np.geomspace(1, 1e-3, 392)])
    exact, fine, rough = Data(K), Data(K.astype(np.float32)), coarse(K, 4)
    found = SymmetricKrylov(tol=tol)(exact, 8, twin=[rough, fine])
    assert found.certificate.converged
    assert (fine.passes, exact.passes) == (1, 1)
    assert found.certificate.passes == rough.passes + 2
    assert_allclose(found.values, np.geomspace(100, 20, 8), rtol=tol)


@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_a_twin_that_is_too_coarse_hands_over_to_the_finer_one_and_that_to_the_map(tol: float) -> None:
    K = symmetric(SPECTRA["geometric"])
    exact, fine, rough = Data(K), Data(K.astype(np.float32)), coarse(K, 2)
    found = SymmetricKrylov(tol=tol)(exact, 4, twin=[rough, fine])
    assert found.certificate.converged
    assert fine.passes > 1
    assert_allclose(found.values, SPECTRA["geometric"][:4], rtol=tol)
    assert_allclose(found.right.T @ found.right, np.eye(4), atol=1e-12)


def test_all_maps_together_make_no_more_products_than_allowed() -> None:
    K = symmetric(1 + 1e-3 * np.linspace(1, 0, 400))
    maps = Data(K), Data(K.astype(np.float32)), coarse(K, 3)
    with pytest.warns(ConvergenceWarning, match="max_products=5"):
        found = SymmetricKrylov(tol=1e-9, max_products=5)(maps[0], 5, twin=maps[:0:-1])
    assert sum(A.passes for A in maps) == found.certificate.passes <= 5 + 4  # each hands over, and K has the last word


@given(seed=st.integers(0, 1000), n=st.integers(2, 40), k=st.integers(1, 6))
def test_small_problems_are_exact(seed: int, n: int, k: int) -> None:
    k = min(k, n)
    values = np.random.default_rng(seed).normal(size=n)
    found = SymmetricKrylov(tol=1e-9)(Data(symmetric(values, seed)), k)
    assert_allclose(found.values, np.sort(values)[::-1][:k], atol=1e-8)


def test_too_few_products_warn() -> None:
    K = symmetric(1 + 1e-3 * np.linspace(1, 0, 200))
    with pytest.warns(ConvergenceWarning, match="max_products=2"):
        found = SymmetricKrylov(tol=1e-12, max_products=2)(Data(K), 5)
    assert not found.certificate.converged


def test_a_map_that_is_not_square_is_refused() -> None:
    with pytest.raises(ValueError, match="square"):
        SymmetricKrylov()(Data(np.ones((3, 2))), 1)


def test_torch(torch: Any) -> None:
    K = symmetric(SPECTRA["geometric"])
    found = SymmetricKrylov(tol=1e-8)(Data(torch.asarray(K)), 3)
    assert_allclose(found.values, SPECTRA["geometric"][:3], rtol=1e-8)
