"""What every spectral solver ends with, each number against an evaluation of its own."""

from __future__ import annotations

import hashlib
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.linalg

from gramian.operators import Centred, Data
from gramian.spectral.rayleigh import (
    FRESH,
    chance_of_overlooking,
    check_k,
    count_roundings,
    default_tolerance,
    finish,
    fix_signs,
    largest_eigenpairs,
    norms,
    orthogonality,
    random_block,
    seed_from_product,
    spectrum,
    thin_qr,
)

RNG = np.random.default_rng(5)
X = RNG.standard_normal((9, 5)) * [3.0, 2.0, 1.0, 0.5, 0.25]
EPS = 2.0**-52


def test_tolerances_are_those_of_the_precision() -> None:
    assert default_tolerance(Data(X)) == 1e-6
    assert default_tolerance(Data(X.astype(np.float32))) == 1e-4


@pytest.mark.parametrize("shape", [(9, 5), (5, 9)])
def test_as_many_triplets_as_the_shorter_side_has(shape: tuple[int, int]) -> None:
    A = Data(np.ones(shape))
    assert [check_k(A, k) for k in (1, 5)] == [1, 5]
    for k in (0, 6, -1):
        with pytest.raises(ValueError, match=rf"k={k}\b.* 5\b"):
            check_k(A, k)


@pytest.mark.parametrize("n", [1, 4, 2**18 - 1, 2**18, 2**18 + 1, 2**20, 10**9])
@pytest.mark.parametrize("p", [1, 9, 2**22])
def test_sums_are_made_in_blocks_and_their_roundings_add_like_random_numbers(n: int, p: int) -> None:
    def of_one_sum(m: int) -> Any:
        block = mpmath.mpf(min(m, 262144))
        return mpmath.sqrt(block) + (mpmath.sqrt(mpmath.mpf(m) / 262144) if m > 262144 else 0)

    assert count_roundings(n, p) == pytest.approx(float(4 + (of_one_sum(n) + of_one_sum(p)) / 2), rel=1e-14, abs=0)


def test_start_vectors_are_those_of_the_seed() -> None:
    block = random_block(Data(X), 7, 3, 11)
    np.testing.assert_array_equal(block, np.random.default_rng(11).standard_normal((7, 3)))
    assert random_block(Data(X.astype(np.float32)), 7, 3, 11).dtype == np.float32


def test_two_vectors_are_drawn_from_the_digits_of_a_product() -> None:
    assert FRESH == 2  # as docs/trust.md counts them


def test_the_seed_of_fresh_vectors_is_a_hash_of_the_first_column_of_a_product(torch: Any) -> None:
    Y = np.asfortranarray(X)
    digest = hashlib.blake2b(Y[:, 0].copy().tobytes(), digest_size=16).digest()
    found = seed_from_product(Y, 3)
    assert found == [3, *(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))]
    other = Y.copy()
    other[-1, 0] = np.nextafter(other[-1, 0], np.inf)
    assert seed_from_product(other, 3) != found
    other = Y.copy()
    other[:, 1] += 1.0
    assert seed_from_product(other, 3) == found
    tensor = torch.tensor(X)
    words = " ".join(f"{length:.2e}" for length in np.sqrt(np.sum(X**2, axis=0))).encode()
    digest = hashlib.blake2b(words, digest_size=16).digest()
    assert seed_from_product(tensor, 4) == [4, *(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))]
    assert seed_from_product(tensor * (1 + 1e-9), 4) == seed_from_product(tensor, 4)


@pytest.mark.parametrize(("m", "steps", "vectors", "share"), [(100, 9, 1, 0.5), (10_000, 20, 2, 0.75), (50, 6, 3, 0.9)])
def test_the_chance_of_overlooking_is_the_theorem_s(m: int, steps: int, vectors: int, share: float) -> None:
    root, eps = mpmath.sqrt(m), mpmath.mpf(share)
    krylov = (mpmath.mpf("1.648") * root * mpmath.exp(-mpmath.sqrt(eps) * (2 * steps - 1))) ** vectors
    power = (mpmath.mpf("0.824") * root * (1 - eps) ** (steps - mpmath.mpf("0.5"))) ** vectors
    assert chance_of_overlooking(m, steps, vectors, share) == pytest.approx(float(krylov), rel=1e-11, abs=0)
    assert chance_of_overlooking(m, steps, vectors, share, krylov=False) == pytest.approx(
        float(power), rel=1e-11, abs=0
    )


def test_where_nothing_random_was_tried_nothing_is_known() -> None:
    assert chance_of_overlooking(1, 0, 2, 0.5) == chance_of_overlooking(1, 9, 0, 0.5) == 1.0
    assert chance_of_overlooking(1, 0, 2, 0.1, krylov=False) == 1.0
    assert chance_of_overlooking(10**6, 1, 3, 0.5) == 1.0  # the formula says more, of what is a probability
    assert chance_of_overlooking(10, 3, 1, 0.5) < 1.0 > chance_of_overlooking(10, 9, 1, 0.5, krylov=False)


@pytest.mark.parametrize("krylov", [True, False])
def test_the_chance_of_overlooking_is_no_less_than_how_often_it_happens(krylov: bool) -> None:
    """One eigenvalue of 1, all others below 1/2: how often does a random start show nothing above 1/2?"""
    m, steps, tried, rng = 30, 2, 400, np.random.default_rng(0)
    values, missed = np.append(1.0, np.linspace(0.5, 0.0, m - 1)), 0
    for _ in range(tried):
        powers = values[:, None] ** np.arange(steps + 1) * rng.standard_normal((m, 1))  # of a diagonal matrix
        Q = np.linalg.qr(powers[:, :steps])[0] if krylov else powers[:, -1:] / np.linalg.norm(powers[:, -1])
        missed += np.linalg.eigvalsh(Q.T @ (values[:, None] * Q))[-1] < 0.5
    assert missed / tried <= chance_of_overlooking(m, steps, 1, 0.5, krylov=krylov)


@pytest.mark.parametrize("unit", [1.0, 2.0**-60])
@pytest.mark.parametrize(("least", "by_cholesky"), [(1e-3, True), (1e-5, False), (1e-9, False), (0.0, False)])
def test_thin_factors_are_orthonormal_however_they_are_made(least: float, by_cholesky: bool, unit: float) -> None:
    """Of a factor by Cholesky the diagonal is positive; LAPACK makes it negative here."""
    Y = np.linalg.qr(np.random.default_rng(1).standard_normal((60, 4)))[0] * [-1.0, -0.5, -0.1, -least]
    Q, R = thin_qr(np, unit * Y)
    np.testing.assert_allclose(Q @ R / unit, Y, atol=1e-15)
    np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=1e-14)
    np.testing.assert_array_equal(np.tril(R, -1), 0.0)
    assert bool(np.all(np.diag(R) > 0)) == by_cholesky


def test_thin_factors_of_columns_that_nearly_agree() -> None:
    """One Cholesky leaves Q orthonormal to ε times the squared condition number; a second mends that."""
    rng = np.random.default_rng(2)
    y = rng.standard_normal((50, 1))
    Y = np.concatenate([y, y + 2e-3 * rng.standard_normal((50, 2))], axis=1)
    Q, R = thin_qr(np, Y)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=2e-15)
    np.testing.assert_allclose(Q @ R, Y, atol=1e-13)


def test_the_largest_eigenpairs_descend() -> None:
    M = X.T @ X
    values, vectors = largest_eigenpairs(M, 3)
    known, directions = np.linalg.eigh(M)
    np.testing.assert_allclose(values, known[::-1][:3], rtol=1e-13)
    np.testing.assert_allclose(np.abs(directions[:, ::-1][:, :3].T @ vectors), np.eye(3), atol=1e-12)
    assert vectors.flags.c_contiguous
    assert largest_eigenpairs(M, 99)[1].shape == (5, 5)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("failure", ["raises", "finds less"])
def test_the_whole_is_decomposed_where_lapack_finds_too_few(
    failure: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    eigh, M = scipy.linalg.eigh, X.T @ X

    def fail(M: Any, **settings: Any) -> Any:
        if "subset_by_index" not in settings:
            return eigh(M, **settings)
        if failure == "raises":
            raise np.linalg.LinAlgError
        values, vectors = eigh(M, **settings)
        return values[1:], vectors[:, 1:]

    monkeypatch.setattr(scipy.linalg, "eigh", fail)
    values, vectors = largest_eigenpairs(M, k)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M)[::-1][:k], rtol=1e-13)
    np.testing.assert_allclose(M @ vectors, vectors * values, atol=1e-13)


@pytest.mark.parametrize("k", [1, 2])
def test_residuals_of_triplets_are_measured_on_both_sides(k: int) -> None:
    """From a space that is not invariant: there the residual is not rounding."""
    V = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 2)))[0]
    found = finish(Data(X), V, k)
    u, s, v = found.left, found.values, found.right
    assert u.shape == (9, k)
    assert v.shape == (5, k)
    np.testing.assert_allclose(s, np.linalg.svd(X @ V, compute_uv=False)[:k], rtol=1e-13)
    both = np.hypot(np.linalg.norm(X @ v - s * u, axis=0), np.linalg.norm(X.T @ u - s * v, axis=0))
    np.testing.assert_allclose(found.residuals, both / s[0], rtol=1e-12)
    assert found.residuals.min() > 1e-3
    other = found.transposed
    assert other.left is v
    assert other.right is u
    assert other.values is s
    assert other.residuals is found.residuals


def test_a_left_side_that_rounds_more_counts_in_the_residual() -> None:
    """Products with A that are off by 1e-3 after the first: the triplet is judged by what A gave, on both sides."""

    class Wrong(Data):
        def rmatmat(self, U: Any) -> Any:
            return super().rmatmat(U) * (1 + 1e-3)

    V = np.linalg.svd(X)[2].T[:, :1]
    found = finish(Wrong(X), V, 1)
    assert found.residuals[0] == pytest.approx(1e-3, rel=1e-9)
    found = finish(Wrong(np.diag([4.0, 0.0])), np.eye(2), 2)  # beside the largest value, though another is 0
    np.testing.assert_allclose(found.residuals, [1e-3, 0.0], atol=1e-12)


def test_nothing_has_residuals_of_nothing() -> None:
    found = finish(Data(np.zeros((4, 3))), np.eye(3)[:, :2], 2)
    np.testing.assert_array_equal(found.values, [0.0, 0.0])
    np.testing.assert_array_equal(found.residuals, [0.0, 0.0])


def test_orthogonality_is_the_largest_entry_of_the_defect() -> None:
    V = np.eye(4)[:, :3]
    assert orthogonality(np, V) == 0.0
    V = V.copy()
    V[0, 1], V[2, 2] = -1e-5, 1 - 1e-6
    assert orthogonality(np, V) == pytest.approx(1e-5, rel=1e-9)
    V[2, 2] = 1.25
    assert orthogonality(np, V) == pytest.approx(1.25**2 - 1)
    assert orthogonality(np, V[:, :0]) == 0.0


@pytest.mark.parametrize("mean", [0.0, 3.0, 1e5, 1e9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_rounding_of_a_certificate_is_that_of_its_formula(mean: float, dtype: Any) -> None:
    """4ε and the roots of sums; times 1 + offset/‖A‖² where means come off later, ‖A‖ at least √(unit·offset)."""
    rows = X.astype(dtype)
    A = Centred(Data(rows), np.full(5, mean, dtype)) if mean else Data(rows)
    V = np.linalg.svd(X)[2].T[:, :2].astype(dtype)
    found = finish(Data(rows), V, 2)
    told = spectrum(A, found, method="m", reason="r", passes=7, tolerance=1e-3, left=True, notes=("n",), overlooked=0.5)
    c, eps, offset = told.certificate, float(np.finfo(dtype).eps), 9 * 5 * mean**2
    unit = eps * (4 + (3 + mpmath.sqrt(5)) / 2)
    norm = max(found.values[0], float(mpmath.sqrt(unit * offset)))
    assert c.norm == pytest.approx(norm, rel=1e-6, abs=0)
    assert c.rounding == pytest.approx(float(unit * (1 + offset / norm**2)), rel=1e-6, abs=0)
    np.testing.assert_allclose(c.residuals, found.residuals * found.values[0] / norm, rtol=1e-6)
    assert c.orthogonality == orthogonality(np, found.right)
    assert (c.method, c.reason, c.passes, c.tolerance, c.notes, c.overlooked) == ("m", "r", 7, 1e-3, ("n",), 0.5)
    assert told.values is c.values is found.values
    assert told.right is found.right
    assert told.left is found.left
    bare = spectrum(A, found, method="m", reason="r", passes=7, tolerance=1e-3)
    assert bare.left is None
    assert bare.certificate.notes == ()
    assert bare.certificate.overlooked is None


def test_the_certificate_of_zeros_divides_by_nothing() -> None:
    A = Data(np.zeros((4, 3)))
    c = spectrum(A, finish(A, np.eye(3)[:, :1], 1), method="", reason="", passes=1, tolerance=1e-6).certificate
    assert c.norm == 0.0
    assert c.rounding == pytest.approx(EPS * (4 + (2 + 3**0.5) / 2), abs=0)
    np.testing.assert_array_equal(c.residuals, [0.0])


def test_a_value_of_0_is_bounded_by_what_the_other_side_left() -> None:
    """From a direction that the data map to 0, though the only singular value is 3."""
    A = Data(np.array([[3.0, 0.0]]))
    c = spectrum(A, finish(A, np.eye(2)[:, 1:], 1), method="", reason="", passes=1, tolerance=1e-6).certificate
    assert c.values[0] == 0.0
    assert c.residuals[0] * c.norm == pytest.approx(3.0)
    assert c.value_bounds[0] >= 3.0 / 2**0.5
    assert not c.converged


def test_products_in_fewer_digits_count_four_times() -> None:
    class Coarse(Data):
        epsilon = 1e-4

    A = Coarse(X)
    c = spectrum(A, finish(A, np.eye(5)[:, :1], 1), method="", reason="", passes=1, tolerance=1e-6).certificate
    assert c.rounding == pytest.approx(4e-4 + (3 + 5**0.5) / 2 * EPS, rel=1e-12, abs=0)


def test_signs_make_the_largest_entry_positive_and_of_ties_the_first() -> None:
    V = np.array([[0.5, -0.6, 1.0 - 0.5e-5, -1.0, 1.0], [-0.8, -0.1, -1.0, 1.0 - 2e-5, -1.0 - 1e-3]])
    fixed = fix_signs(np, V)
    np.testing.assert_array_equal(fixed, V * [-1.0, -1.0, 1.0, -1.0, -1.0])
    np.testing.assert_array_equal(fix_signs(np, -V), fixed)
    assert fix_signs(np, V[:, :0]).shape == (2, 0)
    np.testing.assert_array_equal(fix_signs(np, np.zeros((3, 1))), 0.0)


def test_lengths_are_those_of_columns() -> None:
    np.testing.assert_allclose(norms(np, X.astype(np.float32)), np.sqrt(np.sum(X**2, axis=0)), rtol=1e-6)
    assert norms(np, X.astype(np.float32)).dtype == np.float64
