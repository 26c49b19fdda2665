"""Penalties by formula, against what R's lm.ridge is known to print."""

import numpy as np
import pytest

from gramian import Ridge
from gramian.ridge import classical_penalties

# Longley (1967): GNP.deflator, GNP, Unemployed, Armed.Forces, Population, Year, Employed
LONGLEY = np.array(
    [
        [83.0, 234.289, 235.6, 159.0, 107.608, 1947, 60.323],
        [88.5, 259.426, 232.5, 145.6, 108.632, 1948, 61.122],
        [88.2, 258.054, 368.2, 161.6, 109.773, 1949, 60.171],
        [89.5, 284.599, 335.1, 165.0, 110.929, 1950, 61.187],
        [96.2, 328.975, 209.9, 309.9, 112.075, 1951, 63.221],
        [98.1, 346.999, 193.2, 359.4, 113.270, 1952, 63.639],
        [99.0, 365.385, 187.0, 354.7, 115.094, 1953, 64.989],
        [100.0, 363.112, 357.8, 335.0, 116.219, 1954, 63.761],
        [101.2, 397.469, 290.4, 304.8, 117.388, 1955, 66.019],
        [104.6, 419.180, 282.2, 285.7, 118.734, 1956, 67.857],
        [108.4, 442.769, 293.6, 279.8, 120.445, 1957, 68.169],
        [110.8, 444.546, 468.1, 263.7, 121.950, 1958, 66.513],
        [112.6, 482.704, 381.3, 255.2, 123.366, 1959, 68.655],
        [114.2, 502.601, 393.1, 251.4, 125.368, 1960, 69.564],
        [115.7, 518.173, 480.6, 257.2, 127.852, 1961, 69.331],
        [116.9, 554.894, 400.7, 282.7, 130.081, 1962, 70.551],
    ]
)


def test_they_are_those_that_r_prints() -> None:
    """The help of MASS's lm.ridge has 0.006836982 and 0.05267247; more digits and GCV by the same formulas in R."""
    found = classical_penalties(LONGLEY[:, 1:], LONGLEY[:, 0], np.array([0.0, 0.003, 0.006]) * 15 / 16)
    assert found.hoerl_kennard_baldwin * 16 / 15 == pytest.approx(0.006836981713, rel=1e-7)
    assert found.lawless_wang * 16 / 15 == pytest.approx(0.05267246505, rel=1e-7)
    np.testing.assert_allclose(found.gcv_slopes / 16, [0.12844002, 0.12051931, 0.11956844], rtol=1e-6)
    np.testing.assert_allclose(found.gcv / 16, [0.15856793, 0.14727705, 0.14536496], rtol=1e-6)


def test_gcv_is_of_the_fit_that_ridge_makes() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)) * [1, 5, 0.1, 2, 3], rng.normal(size=40)
    found = classical_penalties(X, y, [2.5])
    model = Ridge(2.5, scale=True).fit(X, y)
    rss = np.sum((y - model.predict(X)) ** 2)
    for gcv, df in ((found.gcv, model.dof_), (found.gcv_slopes, model.dof_ - 1)):
        assert gcv[0] == pytest.approx(rss / 40 / (1 - df / 40) ** 2)


def test_what_has_no_penalty_is_refused() -> None:
    X = np.random.default_rng(1).normal(size=(20, 4))
    for table, y, word in (
        (X[:, :2], X[:, 0], "columns"),
        (X[:5], X[:5, 0], "rows"),
        (np.c_[X, X[:, 0]], X[:, 0], "independent"),
        (X, np.ones(20), "vary"),
    ):
        with pytest.raises(ValueError, match=word):
            classical_penalties(table, y)
    with pytest.raises(ValueError, match="alphas"):
        classical_penalties(X, X[:, 0], [-1.0])
