"""Centring in feature space, against the matrices written out."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.operators import Data, FeatureCentred


def gram(n: int = 9) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(n, 4)) + 2
    return np.asarray(np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=-1)))


def test_without_weights_it_is_k_minus_1k_minus_k1_plus_1k1() -> None:
    K, one = gram(), np.full((9, 9), 1 / 9)
    assert_allclose(FeatureCentred(Data(K)).to_dense(), K - one @ K - K @ one + one @ K @ one, atol=1e-14)


@pytest.mark.parametrize("centre", [True, False])
def test_weights_are_repetition(centre: bool) -> None:
    K, w = gram(), np.array([1, 2, 0, 3, 1, 1, 2, 1, 1])
    index = np.repeat(np.arange(9), w)
    repeated = FeatureCentred(Data(K[np.ix_(index, index)]), centre=centre).to_dense()
    weighted = FeatureCentred(Data(K), w, centre=centre).to_dense()
    ours, theirs = np.linalg.eigvalsh(weighted)[::-1], np.linalg.eigvalsh(repeated)[::-1]
    assert_allclose(ours[:8], theirs[:8], atol=1e-12)
    assert_allclose(weighted, weighted.T, atol=1e-14)


def test_uncentred_without_weights_is_k_itself() -> None:
    assert_allclose(FeatureCentred(Data(gram()), centre=False).to_dense(), gram(), rtol=1e-14)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_tiles_rows_and_the_diagonal_are_those_of_the_matrix(torch: Any, weighted: bool, centre: bool) -> None:
    K, w = gram(), np.arange(1.0, 10.0) if weighted else None
    root, share = (np.ones(9), np.full(9, 1 / 9)) if w is None else (np.sqrt(w), w / w.sum())
    H = np.eye(9) - np.outer(np.ones(9), share) if centre else np.eye(9)
    want = root[:, None] * (H @ K @ H.T) * root
    for A in (FeatureCentred(Data(K), w, centre=centre), FeatureCentred(Data(torch.asarray(K)), w, centre=centre)):
        assert_allclose(A.to_dense(), want, atol=1e-13)
        assert_allclose(A.tile(slice(2, 7), slice(5, 9)), want[2:7, 5:9], atol=1e-13)
        narrow = A.tile(slice(2, 7), slice(5, 9), A.xp.float32)
        assert narrow.dtype == A.xp.float32
        assert_allclose(narrow, want[2:7, 5:9], atol=2e-6)
