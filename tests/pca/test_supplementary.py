"""Rows, variables and categories that took no part, against FactoMineR and against their definitions."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from gramian import PCA
from gramian.pca.interpret import (
    describe,
    loadings,
    supplementary_categories,
    supplementary_columns,
    supplementary_rows,
)
from oracles import Array, separated, sparse_rows

DATA = Path(__file__).parent.parent / "data"
R: dict[str, Any] = json.loads((DATA / "decathlon.json").read_text("utf-8"))
LINES = list(csv.reader((DATA / "decathlon.csv").read_text("utf-8").splitlines()))[1:]
X = np.array([line[1:11] for line in LINES], dtype=np.float64)
RESULT = np.array([line[11:13] for line in LINES], dtype=np.float64)
COMPETITION = [line[13] for line in LINES]


def assert_same(ours: Array, theirs: Any) -> None:
    theirs = np.asarray(theirs)
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


def flip_of(pca: PCA, r: dict[str, Any]) -> Array:
    return np.asarray(np.sign(np.sum(loadings(pca) * np.array(r["var"]["coord"]), axis=0)))


def test_rows_of_factominer() -> None:
    r = R["last_rows_supplementary"]
    pca = PCA(5, scale=True).fit(X[:35])
    new = supplementary_rows(pca, X[35:])
    root = np.sqrt(35 / 34)  # FactoMineR divides by n
    assert_same(new.coordinates * flip_of(pca, r) * root, r["ind_sup"]["coord"])
    assert_same(new.cos2, r["ind_sup"]["cos2"])
    assert_same(new.distances * root, r["ind_sup"]["dist"])


def test_columns_of_factominer() -> None:
    r = R["scaled"]
    pca = PCA(scale=True).fit(X)
    extra = supplementary_columns(pca, X, RESULT, names=["Rank", "Points"])
    assert_same(extra.coordinates * flip_of(pca, r), r["quanti_sup"]["coord"])
    assert_same(extra.correlations * flip_of(pca, r), r["quanti_sup"]["cor"])
    assert_same(extra.cos2, r["quanti_sup"]["cos2"])


def test_columns_of_factominer_without_scaling() -> None:
    r = R["unscaled"]
    pca = PCA(5).fit(X)
    extra = supplementary_columns(pca, X, RESULT)
    assert_same(extra.correlations * flip_of(pca, r), r["quanti_sup"]["cor"])
    assert_same(extra.coordinates * flip_of(pca, r) * np.sqrt(40 / 41), r["quanti_sup"]["coord"])


@pytest.mark.parametrize("scaled", [True, False])
def test_columns_of_prince(scaled: bool) -> None:
    theirs = json.loads((DATA / "decathlon_prince.json").read_text("utf-8"))["scaled" if scaled else "unscaled"]
    pca = PCA(5, scale=scaled).fit(X)
    extra = supplementary_columns(pca, X, RESULT)
    flip = np.sign(np.sum(loadings(pca) * np.array(theirs["column_coordinates"]), axis=0))
    assert_same(extra.correlations * flip, theirs["supplementary_correlations"])


def test_categories_of_factominer() -> None:
    r = R["scaled"]
    pca = PCA(scale=True).fit(X)
    found = supplementary_categories(pca, X, COMPETITION)
    flip, root = flip_of(pca, r), np.sqrt(41 / 40)
    assert found.names == ("Decastar", "OlympicG")
    assert_allclose(found.weights, [13, 28])
    assert_same(found.coordinates * flip * root, r["quali_sup"]["coord"])
    assert_same(found.cos2, r["quali_sup"]["cos2"])
    assert_same(found.v_test * flip, r["quali_sup"]["v.test"])
    assert_same(found.distances * root, r["quali_sup"]["dist"])
    assert_same(found.eta2, r["quali_sup"]["eta2"])


def test_categories_of_factominer_without_scaling() -> None:
    r = R["unscaled"]
    pca = PCA(5).fit(X)
    found = supplementary_categories(pca, X, COMPETITION)
    assert_same(found.coordinates * flip_of(pca, r), r["quali_sup"]["coord"])
    assert_same(found.v_test * flip_of(pca, r), r["quali_sup"]["v.test"])
    assert_same(found.cos2, r["quali_sup"]["cos2"])
    assert_same(found.eta2, r["quali_sup"]["eta2"])


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_took_part_gets_the_same_numbers_as_supplementary(scale: bool, whiten: bool, weighted: bool) -> None:
    values = separated(30, 5)
    w = np.random.default_rng(1).uniform(0.5, 3, 30) if weighted else None
    pca = PCA(3, scale=scale, whiten=whiten).fit(values, sample_weight=w)
    reading = describe(pca, values, w)
    rows = supplementary_rows(pca, values)
    columns = supplementary_columns(pca, values, values, sample_weight=w)
    assert_allclose(rows.coordinates, reading.rows.coordinates, atol=1e-12)
    assert_allclose(rows.cos2, reading.rows.cos2, atol=1e-12)
    assert_allclose(columns.coordinates, reading.columns.coordinates, atol=1e-10)
    assert_allclose(columns.correlations, reading.columns.correlations, atol=1e-10)


def test_columns_by_numpy_and_of_every_kind(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    values = sparse_rows(50, 6, 0.5).toarray()
    Y = sparse_rows(50, 2, 0.5, seed=3).toarray() + np.array([0, 1e6])
    pca = PCA(3).fit(values)
    naive = np.corrcoef(Y.T, pca.transform(values).T)[:2, 2:]
    np.save(tmp_path / "y.npy", Y)
    frame = pd.DataFrame(Y, columns=["a", "b"])
    for kind in (Y, sparse.csr_array(Y), tmp_path / "y.npy", frame, Y.tolist()):
        assert_allclose(supplementary_columns(pca, values, kind).correlations, naive, atol=1e-9)
    assert_allclose(supplementary_columns(pca, sparse.csc_array(values), Y).correlations, naive, atol=1e-9)
    assert supplementary_columns(pca, values, frame).names == ("a", "b")
    assert supplementary_columns(pca, values, frame["b"]).names == ("b",)
    assert_allclose(supplementary_columns(pca, values, Y[:, 0]).correlations, naive[:1], atol=1e-9)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
def test_constants_correlate_with_nothing() -> None:
    values = np.outer(np.arange(8.0), [1, 2, 3])
    found = supplementary_columns(PCA(3).fit(values), values, np.stack([np.full(8, 0.1), np.arange(8.0)], axis=1))
    assert_allclose(found.correlations[0], 0)
    assert_allclose(np.abs(found.correlations[1]), [1, 0, 0], atol=1e-12)


def naive_categories(Z: Array, labels: list[Any], w: Array) -> tuple[Array, Array, Array]:
    """Barycentres, v-tests and η², from their definitions, one category at a time."""
    n = w.sum()
    variance = w @ Z**2 / n
    means, tests = [], []
    for category in sorted(set(labels)):
        member = w * np.array([label == category for label in labels])
        means.append(member @ Z / member.sum())
        tests.append(means[-1] / np.sqrt(variance / member.sum() * (n - member.sum()) / (n - 1)))
    between = sum(w[i] * means[sorted(set(labels)).index(label)] ** 2 for i, label in enumerate(labels))
    return np.array(means), np.array(tests), between / (n * variance)


@given(
    labels=st.lists(st.sampled_from("abc"), min_size=20, max_size=20).filter(lambda x: len(set(x)) > 1),
    weights=st.lists(st.integers(1, 4), min_size=20, max_size=20),
    scale=st.booleans(),
)
def test_categories_by_their_definitions(labels: list[str], weights: list[int], scale: bool) -> None:
    values, w = separated(20, 4), np.array(weights, dtype=float)
    pca = PCA(scale=scale).fit(values, sample_weight=w)
    found = supplementary_categories(pca, values, labels, w)
    means, tests, eta2 = naive_categories(pca.transform(values), labels, w)
    assert_allclose(found.coordinates, means, atol=1e-9)
    assert_allclose(found.v_test, tests, rtol=1e-6, atol=1e-8)
    assert_allclose(found.eta2[0], eta2, rtol=1e-7, atol=1e-12)
    assert_allclose(found.cos2.sum(axis=1), 1, rtol=1e-8)  # all components show all of it
    # integer weights are repetition
    again = np.repeat(np.arange(20), weights)
    theirs = supplementary_categories(pca, values[again], [labels[i] for i in again])
    assert_allclose(found.v_test, theirs.v_test, rtol=1e-6, atol=1e-8)


def test_the_v_test_is_calibrated_by_permutation() -> None:
    values, rng = separated(40, 3), np.random.default_rng(0)
    pca = PCA(2).fit(values)
    labels = np.array(["a"] * 12 + ["b"] * 28)
    tests = [supplementary_categories(pca, values, rng.permutation(labels)).v_test[0] for _ in range(400)]
    # exactly mean 0 and variance 1 over all permutations; 400 of them leave 1/√400 and √(2/400)
    assert_allclose(np.mean(tests, axis=0), 0, atol=4 / 20)
    assert_allclose(np.var(tests, axis=0), 1, atol=4 * np.sqrt(2 / 400))


def test_several_variables_and_every_kind_of_label() -> None:
    pd = pytest.importorskip("pandas")
    values = separated(12, 3)
    pca = PCA(2).fit(values)
    one, two = ["u", "v"] * 6, [1, 2, 3] * 4
    frame = pd.DataFrame({"one": pd.Categorical(one), "two": two})
    found = supplementary_categories(pca, values, frame)
    assert found.variables == ("one", "one", "two", "two", "two")
    assert found.names == ("u", "v", "1", "2", "3")
    for j, column in enumerate((one, two)):
        alone = supplementary_categories(pca, values, np.array(column))
        assert_allclose(found.eta2[j], alone.eta2[0])
    table = np.array([one, two], dtype=object).T
    assert_allclose(supplementary_categories(pca, values, table).v_test, found.v_test)
    assert supplementary_categories(pca, values, frame["two"]).eta2_names == ("two",)
    tuples = supplementary_categories(pca, values, list(zip(one, two, strict=True)))
    assert tuples.names[0] == "('u', 1)"
    mixed = supplementary_categories(pca, values, ["z", 1, "y"] * 4)
    assert mixed.names == ("z", "1", "y")
    assert "η²" in repr(found)
    assert pd.DataFrame(found.table()).shape == (5, 2 + 3 * 2 + 2)
    assert pd.DataFrame(found.eta2_table()).shape == (2, 3)


def test_sparse_files_and_blocks_give_the_same_categories(tmp_path: Path) -> None:
    matrix = sparse_rows(40, 7, 0.4)
    labels = list("abcd") * 10
    pca = PCA(3, scale=True).fit(matrix.toarray())
    np.save(tmp_path / "x.npy", matrix.toarray())
    plain = supplementary_categories(pca, matrix.toarray(), labels)
    for kind in (matrix, tmp_path / "x.npy"):
        found = supplementary_categories(pca, kind, labels)
        assert_allclose(found.cos2, plain.cos2, atol=1e-10)
        assert_allclose(found.distances, plain.distances, rtol=1e-10)


def test_edges_of_categories() -> None:
    values = separated(12, 3)
    pca = PCA(2).fit(values)
    alone = supplementary_categories(pca, values, ["a"] * 12)
    assert_allclose(alone.v_test, 0)
    assert_allclose(alone.eta2, 0, atol=1e-12)
    w = np.r_[np.zeros(3), np.ones(9)]
    without = supplementary_categories(pca, values, ["gone"] * 3 + ["a", "b", "b"] * 3, w)
    assert without.names == ("a", "b")


def test_refusals_name_the_culprit() -> None:
    values = separated(12, 3)
    pca = PCA(2).fit(values)
    with pytest.raises(ValueError, match=r"row 2.*'label0'"):
        supplementary_categories(pca, values, ["a", None, *"bcdefghijk"])
    with pytest.raises(ValueError, match=r"row 3.*'label0'"):
        supplementary_categories(pca, values, np.r_[0.0, 1, np.nan, np.ones(9)])
    with pytest.raises(ValueError, match=r"labels .*3 .*12"):
        supplementary_categories(pca, values, ["a", "b", "c"])
    bad = values.copy()
    bad[5, 1] = np.nan
    with pytest.raises(ValueError, match="row 6, column 2"):
        supplementary_columns(pca, values, bad)
    with pytest.raises(ValueError, match="5 rows"):
        supplementary_columns(pca, values, values[:5])
    with pytest.raises(ValueError, match="names has 1"):
        supplementary_columns(pca, values, values, names=["a"])
    with pytest.raises(ValueError, match="row 6, column 2"):
        supplementary_rows(pca, bad)
    with pytest.raises(ValueError, match="row_labels has 1"):
        supplementary_rows(pca, values, row_labels=["a"])


def test_missing_cells_are_refused_for_the_right_reason() -> None:
    rows = separated(30, 4)
    pca = PCA(2).fit(rows)
    gaps = rows.copy()
    gaps[5, 2] = np.nan
    with pytest.raises(ValueError, match="row 6, column 3"):
        supplementary_columns(pca, gaps, rows[:, 0])
    with pytest.raises(ValueError, match="row 6, column 3"):
        supplementary_rows(pca, gaps)
    with pytest.raises(ValueError, match="row 6, column 1"):
        supplementary_columns(pca, rows, gaps[:, 2])
