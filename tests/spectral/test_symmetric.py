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
from gramian.spectral import symmetric as module
from gramian.spectral.rayleigh import chance_of_overlooking
from gramian.spectral.symmetric import project
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


# What is computed, step by step


def test_a_projection_is_that_of_its_formulas() -> None:
    """Q of V = QR, QᵀKQ = ZΘZᵀ, X = QZ, and √2‖Kx − θx‖ beside the largest |θ|, here that of a negative one."""
    K = symmetric(np.linspace(-9.0, 4.0, 30))
    V = np.random.default_rng(1).standard_normal((30, 6))
    A = Data(K)
    found, X, image = project(A, V, 2)
    assert A.passes == 1
    Q = np.linalg.qr(V)[0]
    theta = np.linalg.eigvalsh(Q.T @ K @ Q)[::-1]
    assert_allclose(found.values, theta[:2], rtol=1e-12)
    assert_allclose(X.T @ X, np.eye(6), atol=1e-13)
    assert_allclose(X @ (X.T @ V), V, atol=1e-12)
    assert_allclose(X.T @ K @ X, np.diag(theta), atol=1e-12)
    assert_allclose(image, K @ X, atol=1e-12)
    assert found.right.shape == (30, 2)
    assert_allclose(found.right, X[:, :2], rtol=0)
    assert found.left is found.right or np.array_equal(found.left, found.right)
    residual = np.sqrt(2) * np.linalg.norm(K @ X[:, :2] - X[:, :2] * theta[:2], axis=0)
    assert_allclose(found.residuals, residual / np.abs(theta).max(), rtol=1e-10)
    assert np.abs(theta).max() > theta[0]


def test_a_projection_sees_the_symmetric_part_of_a_map_that_rounding_has_tilted() -> None:
    K = symmetric(np.linspace(1.0, 4.0, 12))
    tilted = K + 1e-3 * np.triu(np.random.default_rng(0).standard_normal((12, 12)), 1)
    V = np.eye(12)[:, :5]
    values = project(Data(tilted), V, 5)[0].values
    assert_allclose(values, np.linalg.eigvalsh(((tilted + tilted.T) / 2)[:5, :5])[::-1], rtol=1e-12)


def test_a_projection_of_zeros_has_no_residual() -> None:
    found = project(Data(np.zeros((4, 4))), np.eye(4)[:, :2], 2)[0]
    np.testing.assert_array_equal(found.values, 0.0)
    np.testing.assert_array_equal(found.residuals, 0.0)


@pytest.mark.parametrize(
    ("n", "k", "block", "width"),
    [(200, 1, None, 24), (200, 22, None, 24), (200, 23, None, 32), (200, 30, None, 32), (200, 31, None, 40),
     (12, 3, None, 12), (200, 3, 5, 5), (200, 3, 3, 3), (200, 3, 300, 200)],
)  # fmt: skip
def test_so_many_vectors_are_multiplied_at_a_time(n: int, k: int, block: int | None, width: int) -> None:
    class Watched(Data):
        widths: list[int] = []  # noqa: RUF012

        def matmat(self, V: Array) -> Array:
            self.widths.append(V.shape[1])
            return super().matmat(V)

    A = Watched(symmetric(np.geomspace(100, 1e-3, n)))
    A.widths = []
    found = SymmetricKrylov(block=block, tol=1e-4)(A, k)
    assert f"({width} vectors a product" in found.certificate.method
    # two of them join after the first product, drawn from its digits
    fresh = max(1, width - 2)
    assert A.widths[0] == fresh
    assert max(A.widths[:-1], default=width) <= width


def test_tolerances_seeds_and_the_number_of_passes_are_those_of_this_run() -> None:
    K = symmetric(SPECTRA["geometric"])
    A = Data(K)
    first, again, other = (SymmetricKrylov(seed=seed)(A, 3) for seed in (0, 0, 1))
    assert first.certificate.passes == again.certificate.passes
    assert A.passes == sum(found.certificate.passes for found in (first, again, other))
    assert first.certificate.tolerance == 1e-6
    assert SymmetricKrylov()(Data(K.astype(np.float32)), 3).certificate.tolerance == 1e-4
    np.testing.assert_array_equal(first.right, again.right)
    assert not np.array_equal(first.right, other.right)
    assert "float32" not in first.certificate.method
    assert first.certificate.notes == ()
    with pytest.raises(ValueError, match="k=201"):
        SymmetricKrylov()(A, 201)


@pytest.mark.parametrize("most", [3, 7])
def test_after_the_last_product_allowed_there_is_but_the_projection(most: int) -> None:
    A = Data(symmetric(1 + 1e-3 * np.linspace(1, 0, 400)))
    with pytest.warns(ConvergenceWarning):
        SymmetricKrylov(tol=1e-13, max_products=most)(A, 5)
    assert A.passes == most + 1


@pytest.mark.parametrize("with_twin", [False, True])
def test_the_chance_of_overlooking_is_that_of_the_steps_of_the_first_map(with_twin: bool) -> None:
    """Of 22 start vectors, and of two more after the first product; an eigenvalue twice as large is looked for."""
    K = symmetric(np.geomspace(100, 1, 400))
    wide, narrow = Data(K), Data(K.astype(np.float32))
    found = SymmetricKrylov(tol=1e-3)(wide, 3, twin=narrow if with_twin else None)
    steps = narrow.passes if with_twin else wide.passes - 1  # all but the projection
    known = chance_of_overlooking(400, steps, 22, 0.5) * chance_of_overlooking(400, steps - 1, 2, 0.5)
    assert found.certificate.overlooked == pytest.approx(known, rel=1e-9, abs=0)
    assert 0 < known < 1e-3
    small = SymmetricKrylov()(Data(symmetric(np.arange(1.0, 20.0))), 2)
    assert small.certificate.overlooked is None  # the whole space was searched


def test_notes_name_the_arithmetic_of_the_maps_that_were_used() -> None:
    K = symmetric(SPECTRA["geometric"])

    def named(precision: str) -> Data:
        A = Data(K.astype(np.float32))
        A.precision = precision
        return A

    used, unused = named("few digits"), named("never read")
    found = SymmetricKrylov(tol=1e-4)(Data(K), 4, twin=[used])
    assert [("few digits" in note) for note in found.certificate.notes] == [True]
    assert "float32" in found.certificate.method
    found = SymmetricKrylov(tol=1e-4)(Data(K), 4, twin=[Data(K.astype(np.float32))])
    assert found.certificate.notes == ()
    assert unused.passes == 0


def off_by(K: Array, size: float, seed: int = 0) -> Data:
    """K and noise of this size beside its largest eigenvalue, symmetric, in double precision."""
    E = np.random.default_rng(seed).standard_normal(K.shape)
    E = E + E.T
    return Data(K + size * np.linalg.norm(K, 2) / np.linalg.norm(E, 2) * E)


@pytest.mark.parametrize(("share", "products"), [(2.0, 1), (0.2, 2)])
def test_what_a_twin_leaves_is_mended_by_one_product_where_it_is_near(share: float, products: int) -> None:
    """The noise of the twin is what K finds: within the tolerance, or within ten times the tolerance."""
    K = symmetric(np.r_[np.geomspace(100, 60, 4), np.geomspace(1, 1e-3, 296)])
    noisy, size = off_by(K, 1e-4), 1e-4
    truth = np.linalg.eigh(noisy.source.values)
    found, _, _ = project(Data(K), np.ascontiguousarray(truth[1][:, :-5:-1]), 4)
    size = float(found.residuals.max())  # of the twin's own eigenvectors
    exact = Data(K)
    solved = SymmetricKrylov(tol=share * size)(exact, 4, twin=noisy)
    assert solved.certificate.converged
    assert exact.passes == products
    assert_allclose(solved.values, np.geomspace(100, 60, 4), rtol=2 * share * size)


def test_a_twin_that_is_further_off_is_not_mended_but_gone_on_from() -> None:
    K = symmetric(np.geomspace(100, 1e-3, 300))
    exact = Data(K)
    solved = SymmetricKrylov(tol=1e-9)(exact, 4, twin=off_by(K, 1e-4))
    assert solved.certificate.converged
    assert exact.passes > 3
    # what was asked for is looked at once and not again
    widths: list[int] = []

    class Watched(Data):
        def matmat(self, V: Array) -> Array:
            widths.append(V.shape[1])
            return super().matmat(V)

    SymmetricKrylov(tol=1e-6)(Watched(K), 4, twin=off_by(K, 1e-4))
    assert widths[0] == 4
    assert widths[1] > 4
    # begun from what the twin found, with no more than one product of looking at it
    cold = Data(K)
    SymmetricKrylov(tol=1e-9)(cold, 4)
    assert exact.passes <= cold.passes


def test_one_pair_that_is_right_is_not_enough() -> None:
    """Of a twin that knows the first direction exactly and the others roughly."""
    K = np.diag(np.r_[100.0, 50.0, 40.0, np.geomspace(1, 1e-3, 297)])
    turned = K.copy()
    turned[1:, 1:] = off_by(K[1:, 1:], 1e-4).source.values
    found = SymmetricKrylov(tol=1e-7)(Data(K), 3, twin=Data(turned))
    assert found.certificate.converged
    assert found.certificate.residuals.max() <= 1e-7
    assert_allclose(found.values, [100.0, 50.0, 40.0], rtol=1e-7)


def test_a_basis_is_as_large_as_memory_and_projections_allow() -> None:
    class Roomy(Data):
        room = 0

    A = Roomy(np.zeros((2000, 2000)))
    for room, k, b, limit in (
        (8 * 2000 * 5000, 3, 24, 1000),  # projected in a moment
        (8 * 2000 * 500, 3, 24, 500),  # as many as there is room for
        (8 * 2000 * 500 - 1, 3, 24, 499),
        (0, 3, 24, 72),  # three blocks at least
        (0, 100, 24, 148),  # and the pairs wanted with two more blocks
        (8 * 2000 * 5000, 980, 24, 1028),
        (8 * 2000 * 5000, 1990, 24, 2000),  # and never more than there are rows
    ):
        A.room = room  # type: ignore[misc]
        assert module._basis(A, k, b) == limit
