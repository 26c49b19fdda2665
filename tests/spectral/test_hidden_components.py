"""Components hidden from the vectors that a seed draws: found all the same; and how likely it is to overlook one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramian import PCA
from gramian.operators import Data
from gramian.spectral import Krylov, Power, Randomized, SymmetricKrylov
from gramian.spectral.rayleigh import chance_of_overlooking, seed_from_product

M, K = 400, 1


def hiding_matrix(public: np.ndarray, seed: int = 0) -> np.ndarray:
    """Singular values 1, 0.1, … 0.001 and a hidden one of 2, whose right vector no public vector has a part of."""
    rng = np.random.default_rng(seed)
    public = np.linalg.qr(public)[0]
    hidden = rng.standard_normal(len(public))
    for _ in range(3):
        hidden -= public @ (public.T @ hidden)
        hidden /= np.linalg.norm(hidden)
    right = np.linalg.qr(np.column_stack([hidden, public, rng.standard_normal((len(public), 6))]))[0]
    left = np.linalg.qr(rng.standard_normal((2 * len(public), right.shape[1])))[0]
    values = np.array([2.0, 1.0, *np.geomspace(0.1, 0.001, right.shape[1] - 2)])
    return (left * values) @ right.T


def public_vectors(seed: int) -> np.ndarray:
    """Whatever a solver may draw from the seed alone: blocks of every width, and the next seeds for the next ones."""
    blocks = [np.random.default_rng(seed).standard_normal((M, b)) for b in range(1, 26)]
    more = [np.random.default_rng(seed + i).standard_normal((M, 1)) for i in range(K + 1)]
    return np.concatenate([*blocks, *more], axis=1)


@pytest.mark.parametrize("solver", [Krylov, Randomized, Power], ids=lambda c: c.__name__)
@pytest.mark.parametrize("seed", [0, 7])
def test_a_component_hidden_from_all_public_vectors_is_found(solver: Any, seed: int) -> None:
    A = hiding_matrix(public_vectors(seed))
    found = solver(tol=1e-8, seed=seed)(Data(A), K)
    want = np.linalg.svd(A, compute_uv=False)[:K]
    np.testing.assert_allclose(found.values, want, rtol=1e-7)
    assert found.certificate.overlooked is not None
    assert found.certificate.overlooked <= 1.0


def test_so_is_an_eigenvalue_hidden_from_the_start_of_a_symmetric_map() -> None:
    A = hiding_matrix(public_vectors(0))
    G = A.T @ A
    found = SymmetricKrylov(tol=1e-8)(Data((G + G.T) / 2), K)
    np.testing.assert_allclose(found.values, np.linalg.svd(A, compute_uv=False)[:K] ** 2, rtol=1e-7)


def test_pca_by_krylov_finds_what_was_hidden() -> None:
    A = hiding_matrix(public_vectors(0))
    A -= A.mean(axis=0)
    fitted = PCA(K, svd_solver="krylov").fit(A)
    np.testing.assert_allclose(fitted.singular_values_, np.linalg.svd(A, compute_uv=False)[:K], rtol=1e-5)


@pytest.mark.parametrize("solver", [Krylov, Randomized, Power], ids=lambda c: c.__name__)
def test_the_same_data_give_the_same_bits_and_other_data_other_directions(solver: Any) -> None:
    A = np.random.default_rng(1).standard_normal((60, 40)) * np.geomspace(1, 1e-3, 40)
    one, two = (solver(seed=3)(Data(A.copy()), 2) for _ in range(2))
    np.testing.assert_array_equal(one.right, two.right)
    W = A.T @ (A @ np.ones((40, 1)))
    other = A.copy()
    other[17, 5] = np.nextafter(other[17, 5], 9e9) + 1e-3
    assert seed_from_product(W, 0) == seed_from_product(W.copy(), 0)
    assert seed_from_product(W, 0) != seed_from_product(other.T @ (other @ np.ones((40, 1))), 0)
    assert seed_from_product(W, 0) != seed_from_product(W, 1)


def overlooks(m: int, steps: int, share: float, krylov: bool, rng: np.random.Generator) -> bool:
    """Whether one random start overlooks the eigenvalue 1, all others (1 − share)²·[0, 1]: by LAPACK on the space."""
    values = np.concatenate([[1.0], (1 - share) * np.linspace(0, 1, m - 1)])
    space = [rng.standard_normal(m)]
    for _ in range(steps - 1):
        space.append(values * space[-1])
        space[-1] /= np.linalg.norm(space[-1])
    Q = np.linalg.qr(np.column_stack(space if krylov else space[-1:]))[0]
    return bool(np.linalg.eigvalsh(Q.T @ (values[:, None] * Q))[-1] < 1 - share)


@pytest.mark.parametrize("krylov", [True, False])
@pytest.mark.parametrize(("steps", "share"), [(2, 0.75), (3, 0.5), (4, 0.5), (6, 0.25)])
def test_the_chance_of_overlooking_is_a_bound(krylov: bool, steps: int, share: float) -> None:
    rng, draws, m = np.random.default_rng(0), 1000, 30
    seen = sum(overlooks(m, steps, share, krylov, rng) for _ in range(draws)) / draws
    bound = chance_of_overlooking(m, steps, 1, share, krylov=krylov)
    assert seen <= bound + 4 * np.sqrt(bound * (1 - min(bound, 1.0)) / draws)


def test_the_chance_is_the_formula_of_kuczynski_and_wozniakowski() -> None:
    assert chance_of_overlooking(100, 9, 1, 0.25) == pytest.approx(1.648 * 10 * np.exp(-0.5 * 17))
    assert chance_of_overlooking(100, 9, 3, 0.25) == pytest.approx((1.648 * 10 * np.exp(-0.5 * 17)) ** 3)
    assert chance_of_overlooking(100, 9, 1, 0.5, krylov=False) == pytest.approx(0.824 * 10 * 0.5**8.5)
    assert chance_of_overlooking(100, 0, 1, 0.5) == chance_of_overlooking(10**6, 1, 1, 0.5) == 1.0
