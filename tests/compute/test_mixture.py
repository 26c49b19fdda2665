"""The hot loops of mixtures against a naive twin: both ways, any precision, weights, shifts, denormals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from gramian.compute.mixture import Components, Sums, expectation, log_densities, rounding_size, weighted_sums
from oracles import Array


def components(k: int, d: int, full: bool, seed: int = 0, spread: float = 2.0) -> Components:
    rng = np.random.default_rng(seed)
    roots = np.stack([np.tril(rng.normal(size=(d, d)) * 0.3) + np.eye(d) for _ in range(k)])
    return Components(
        rng.normal(size=d),
        spread * rng.normal(size=(k, d)),
        roots if full else np.exp(0.3 * roots[:, 0]),
        rng.normal(size=k),
    )


def naive(X: Array, w: Array, parts: Components) -> Sums:
    """Row by row and component by component, with NumPy's own matrix products."""
    E = X[:, None, :] - parts.origin - parts.centres
    full = parts.roots.ndim == 3
    Y = np.einsum("kij,nkj->nki", parts.roots, E) if full else E * parts.roots
    joint = parts.constants - 0.5 * np.sum(Y**2, axis=2)
    total = logsumexp(joint, axis=1)
    R = np.exp(joint - total[:, None]) * w[:, None]
    second = np.einsum("nk,nki,nkj->kij", R, E, E) if full else np.einsum("nk,nki->ki", R, E**2)
    return Sums(R.sum(axis=0), np.einsum("nk,nki->ki", R, E), second, float(w @ total))


def assert_same(found: Sums, expected: Sums, rtol: float) -> None:
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, float(np.max(np.abs(b)))))


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("full", [False, True])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 300), d=st.integers(1, 6), k=st.integers(1, 5))
def test_sums_are_those_of_the_naive_twin(expanded, full, seed, n, d, k):
    rng = np.random.default_rng(seed)
    X, w, parts = rng.normal(size=(n, d)) * 2, rng.random(n), components(k, d, full, seed)
    assert_same(expectation(X, w, parts, expanded=expanded), naive(X, w, parts), 1e-11)


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_many_tiles_and_no_weights(expanded, full):
    X = np.random.default_rng(3).normal(size=(9001, 7))
    parts = components(4, 7, full)
    assert_same(expectation(X, None, parts, expanded=expanded), naive(X, np.ones(len(X)), parts), 1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_single_precision_and_fortran_order_are_summed_in_double(full):
    X = np.asfortranarray(np.random.default_rng(3).normal(size=(3000, 5)).astype(np.float32))
    parts = components(3, 5, full)
    assert_same(expectation(X, None, parts), naive(X.astype(np.float64), np.ones(len(X)), parts), 1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_small_components_far_apart_lose_no_digits_the_whitened_way(full):
    # Binary fractions, so that scaling and shifting are exact and every sum must scale with them.
    rng = np.random.default_rng(0)
    Z = np.round(rng.normal(size=(400, 2)) * 2**10) / 2**10
    far = np.repeat([[0.0, 0.0], [2.0**20, -(2.0**21)]], 200, axis=0)
    roots = np.stack([np.eye(2)] * 2) if full else np.ones((2, 2))
    parts = Components(np.zeros(2), np.array([[0.0, 0.0], [2.0**20, -(2.0**21)]]), roots, np.zeros(2))
    found = expectation(Z + far, None, parts)
    for k in range(2):
        mine = Z[200 * k : 200 * k + 200]
        assert_allclose(found.second[k], mine.T @ mine if full else np.sum(mine**2, axis=0), rtol=1e-14)
    assert rounding_size(parts, np.sqrt(np.mean((Z + far) ** 2, axis=0))) > 1e10  # the expanded way is not for these


@pytest.mark.parametrize("expanded", [False, True])
def test_responsibilities_that_are_nothing_are_exactly_nothing(expanded):
    parts = Components(np.zeros(1), np.array([[0.0], [30.0]]), np.ones((2, 1)), np.zeros(2))
    found = expectation(np.array([[0.0], [30.0]]), None, parts, expanded=expanded)
    assert_allclose(found.counts, [1.0, 1.0])
    assert found.first[0, 0] == 0.0


def test_a_weight_of_zero_takes_no_part():
    parts = components(2, 3, True)._replace(constants=np.array([0.0, -np.inf]))
    found = expectation(np.random.default_rng(0).normal(size=(50, 3)), None, parts)
    assert_allclose(found.counts, [50.0, 0.0])
    assert np.isfinite(found.log_likelihood)


@pytest.mark.parametrize("full", [False, True])
def test_log_densities_and_given_shares(full):
    X, parts = np.random.default_rng(1).normal(size=(500, 4)), components(3, 4, full)
    joint = log_densities(X, parts)
    assert_allclose(logsumexp(joint, axis=0).sum(), naive(X, np.ones(500), parts).log_likelihood, rtol=1e-13)
    R = np.exp(joint - logsumexp(joint, axis=0))
    found = weighted_sums(X, lambda rows: R[:, rows], parts.origin, parts.centres, full=full)
    assert_same(found._replace(log_likelihood=0.0), naive(X, np.ones(500), parts)._replace(log_likelihood=0.0), 1e-12)
