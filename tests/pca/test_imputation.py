"""Filling in: files written whole or not at all, Rubin's rules, and intervals that cover."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gramian import PCA
from gramian.analysis import multiple_imputation, pool
from oracles import Array


def correlated(n: int, seed: int, missing: float = 0.4) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 1)) @ np.ones((1, 4)) * 1.5 + rng.normal(size=(n, 4))
    gaps = rng.random((n, 4)) < missing
    gaps[:, 0] = False
    return truth, np.where(gaps, np.nan, truth)


def test_observed_cells_keep_every_bit() -> None:
    _, X = correlated(50, 0)
    filled = PCA(1).fit(X).impute(X)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(filled).all()


def test_a_file_is_completed_block_by_block(tmp_path: Path) -> None:
    _, X = correlated(300, 0)
    np.save(tmp_path / "x.npy", X)
    pca = PCA(1).fit(tmp_path / "x.npy")
    out = pca.impute(tmp_path / "x.npy", out=tmp_path / "filled.npy")
    assert out == tmp_path / "filled.npy"
    assert_allclose(np.load(out), pca.impute(X), rtol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["filled.npy", "x.npy"]


def test_a_file_that_is_there_is_not_replaced_and_a_failure_leaves_nothing(tmp_path: Path) -> None:
    _, X = correlated(30, 0)
    pca = PCA(1).fit(X)
    (tmp_path / "there.npy").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"there\.npy"):
        pca.impute(X, out=tmp_path / "there.npy")
    with pytest.raises(ValueError, match=r"\.npy"):
        pca.impute(X, out=tmp_path / "x.csv")
    X[5] = np.nan
    with pytest.raises(ValueError, match="Row 6"):
        pca.impute(X, out=tmp_path / "new.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["there.npy"]
    assert (tmp_path / "there.npy").read_bytes() == b"mine"


def test_pooling_by_hand() -> None:
    """Three tables, estimates 1, 2, 3 with variance ½ each: B = 1, T = ½ + 4/3, ν = 2(1 + ½·¾)²."""
    pooled = pool([[1.0], [2.0], [3.0]], [[0.5], [0.5], [0.5]])
    assert_allclose(pooled.estimate, [2.0])
    assert_allclose(pooled.variance, [0.5 + 4 / 3])
    assert_allclose(pooled.degrees_of_freedom, [2 * (1 + 0.5 / (4 / 3)) ** 2])
    assert_allclose(pooled.missing_information, [(4 / 3) / (0.5 + 4 / 3)])
    lower, upper = pooled.interval(0.95)
    assert_allclose((upper + lower) / 2, [2.0])


def test_equal_estimates_have_no_variance_between() -> None:
    pooled = pool([[1.0], [1.0]], [[0.25], [0.25]])
    assert_allclose(pooled.variance, [0.25])
    assert_allclose(pooled.interval(0.95)[1], [1 + 1.959964 * 0.5], rtol=1e-5)


def test_intervals_from_multiple_imputation_cover_the_truth() -> None:
    """The mean of a column of which 40 % is missing: about 95 % of 95 % intervals hold the true mean, 0."""
    held = narrow = 0
    for seed in range(60):
        _, X = correlated(80, seed)
        tables = multiple_imputation(PCA(1).fit(X), X, 8, random_state=seed)
        pooled = tables.pool(lambda T: (T.mean(axis=0), T.var(axis=0, ddof=1) / len(T)))
        lower, upper = pooled.interval(0.95)
        held += int(np.sum((lower[1:] < 0) & (upper[1:] > 0)))
        narrow += int(np.sum(pooled.missing_information[1:] > 0.02))
    assert held >= 0.90 * 180  # expected 171, binomial deviation about 3, rows shared between columns
    assert narrow >= 170


def test_drawing_the_model_too_adds_variance_between_tables() -> None:
    _, X = correlated(40, 1)
    pca = PCA(1).fit(X)
    between = {}
    for parameters in ("bootstrap", "fixed"):
        tables = multiple_imputation(pca, X, 40, parameters=parameters)
        pooled = tables.pool(lambda T: (T.mean(axis=0), T.var(axis=0, ddof=1) / len(T)))
        between[parameters] = pooled.between[1:].mean()
    assert between["bootstrap"] > between["fixed"] * 1.1


def test_tables_can_be_had_again_and_differ_from_each_other() -> None:
    _, X = correlated(40, 1)
    seen: list[Any] = []
    tables = multiple_imputation(
        PCA(1).fit(X), X, 3, random_state=4, progress=lambda done, n, _: seen.append((done, n))
    )
    first, second = list(tables), list(tables)
    assert len(tables) == 3
    assert_allclose(first, second, rtol=0)
    assert not np.allclose(first[0], first[1])
    assert_array_equal(first[0][~np.isnan(X)], X[~np.isnan(X)])
    assert seen[:3] == [(1, 3), (2, 3), (3, 3)]


def test_weights_are_those_of_the_rows() -> None:
    _, X = correlated(40, 2)
    w = np.r_[np.full(20, 3.0), np.full(20, 1.0)]
    pca = PCA(1).fit(X, sample_weight=w)
    (table,) = multiple_imputation(pca, X, 1, sample_weight=w)
    assert np.isfinite(table).all()


@pytest.mark.parametrize(("options", "complaint"), [({"parameters": "none"}, "parameters"), ({"n": 0}, "at least 1")])
def test_options_are_checked(options: Any, complaint: str) -> None:
    _, X = correlated(40, 2)
    with pytest.raises(ValueError, match=complaint):
        multiple_imputation(PCA(1).fit(X), X, **options)


def test_pool_wants_two_of_each() -> None:
    with pytest.raises(ValueError, match="two or more"):
        pool([[1.0]], [[1.0]])
