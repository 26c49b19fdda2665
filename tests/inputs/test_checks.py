"""Arguments that every estimator checks in the same way."""

from __future__ import annotations

import numpy as np
import pytest

from gramian import PCA, Ridge
from gramian.inputs.checks import check_weights


def test_masked_weights_are_refused_by_name() -> None:
    w = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
    with pytest.raises(ValueError, match=r"sample_weight.*row 2"):
        check_weights(w, 3)
    with pytest.raises(ValueError, match=r"noise_weight.*row 2"):
        check_weights(w, 3, "noise_weight")
    X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    with pytest.raises(ValueError, match="sample_weight"):
        PCA(1).fit(X, sample_weight=w)
    with pytest.raises(ValueError, match="sample_weight"):
        Ridge().fit(X, X[:, 0], sample_weight=w)


def test_a_masked_array_without_masked_entries_holds_weights() -> None:
    np.testing.assert_array_equal(check_weights(np.ma.masked_array([1.0, 2.0]), 2), [1.0, 2.0])
