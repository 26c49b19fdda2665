"""ARPACK's few eigenpairs, and what is proved or searched beside them."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from gramian.spectral import lanczos
from gramian.spectral.lanczos import search_eigenpairs


def matrix_of(values: np.ndarray, seed: int = 0) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    G = (Q * values) @ Q.T
    return 0.5 * (G + G.T)


@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize(
    "values",
    [0.9 ** np.arange(300.0), 1 / np.arange(1.0, 301.0), np.repeat([5.0, 1.0], [30, 270]), np.repeat([1, 0], [4, 296])],
    ids=["fast", "slow", "plateaus", "rank 4"],
)
def test_pairs_are_those_of_lapack_or_none_are_claimed(values: np.ndarray, k: int) -> None:
    G = matrix_of(np.asarray(values, dtype=float))
    found = search_eigenpairs(G, k, 1e-12)
    if found is None:
        return
    theta, V, overlooked = found
    exact = scipy.linalg.eigvalsh(G)[::-1]
    assert_allclose(theta, exact[:k], atol=1e-10)
    assert_allclose(V.T @ V, np.eye(k), atol=1e-12)
    assert np.linalg.norm(G @ V - V * theta, axis=0).max() <= 1e-10 * exact[0]
    assert overlooked is None or overlooked <= 1e-9
    if overlooked is None:  # then it is proved, and so it is
        assert exact[k] <= exact[k - 1] * (1 + 1e-12)


def test_copies_of_an_eigenvalue_are_not_missed_in_silence() -> None:
    """From one start vector a Krylov space has one copy: 40 copies stand above others nearly as large."""
    for copies in (2, 7, 40):
        values = np.concatenate([np.full(copies, 1.0), 0.8 * 0.99 ** np.arange(300.0)])
        found = search_eigenpairs(matrix_of(values, copies), min(copies, 10), 1e-11)
        assert found is None or found[0].min() >= 1.0 - 1e-9


def test_a_proof_is_claimed_only_where_the_rest_is_small_or_a_factor_shows_it() -> None:
    few = search_eigenpairs(np.diag(np.r_[4.0, 2.0, np.full(898, 0.05)]), 2, 0.0)
    many = search_eigenpairs(np.diag(np.r_[4.0, 2.0, np.full(898, 0.5)]), 2, 0.0)
    factored = search_eigenpairs(np.diag(np.r_[4.0, 2.0, np.full(398, 0.5)]), 2, 0.0)
    assert few is not None
    assert few[2] is None  # 898·0.05² < 2²
    assert many is not None
    assert many[2] is not None  # 898·0.5² > 2², and too many rows to factor
    assert factored is not None
    assert factored[2] is None


def test_a_factor_proves_nothing_of_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """ARPACK that returns the second and third pair: the factor fails, and the search finds what is larger."""
    G = matrix_of(0.7 ** np.arange(200.0))
    lam, W = scipy.linalg.eigh(G)
    monkeypatch.setattr(lanczos.sla, "eigsh", lambda A, k, **_: (lam[-3:-1] + 0.1 * np.linalg.norm(G), W[:, -3:-1]))
    assert search_eigenpairs(G, 2, 1e-12) is None
