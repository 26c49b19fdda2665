"""Counts of cells x genes: normalised, logarithms taken and genes selected as they are read, sparse all the way."""

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

import gramian
from gramian.compute.executor import cluster
from gramian.sources import open_sparse_parquet, read_table, write_parquet
from gramian.sources.errors import SourceError

RNG = np.random.default_rng(21)
CELLS, GENES = 700, 60
COUNTS = RNG.poisson(RNG.gamma(0.6, 1.0, GENES) * RNG.lognormal(0, 0.7, (CELLS, 1)) * RNG.gamma(1, 1, (CELLS, GENES)))
CHOSEN = [41, 3, 17, 8, 30, 22, 55, 12, 9, 50]


def by_hand(counts: Any) -> Any:
    """The recipe with a dense copy of everything."""
    X = np.asarray(counts, dtype=np.float64)
    sums = X.sum(axis=1, keepdims=True)
    return np.log1p(X / np.where(sums > 0, sums, 1.0) * 1e4)[:, CHOSEN]


@pytest.fixture(scope="module", params=["h5ad", "zarr"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    anndata = pytest.importorskip("anndata", reason="anndata is not installed (gramian[arrays])")
    pd = pytest.importorskip("pandas")
    path = tmp_path_factory.mktemp("cells") / f"cells.{request.param}"
    cells, genes = (
        pd.DataFrame(index=pd.Index([f"{kind}{i}" for i in range(n)], dtype=object))
        for kind, n in (("cell", CELLS), ("gene", GENES))
    )
    cells["kind"] = pd.Series(np.where(np.arange(CELLS) % 3, "T", "B"), cells.index, dtype=object)
    data = anndata.AnnData(sp.csr_matrix(COUNTS.astype(np.float64)), cells, genes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the versions of Zarr's format
        data.write_h5ad(path) if request.param == "h5ad" else data.write_zarr(path)
    return str(path)


def test_cells_are_named_and_labelled(stored: str) -> None:
    table = read_table(stored, label="kind")
    assert table.source.sparse
    assert table.names[:2] == ["gene0", "gene1"]
    assert table.ids is not None
    assert table.label is not None
    assert table.ids[:2].tolist() == ["cell0", "cell1"]
    assert table.label[:3].tolist() == ["B", "T", "T"]


def recipe(source: Any) -> Any:
    return gramian.open(source).normalise(1e4).log1p().select_columns(CHOSEN)


@pytest.mark.parametrize("form", ["dense", "sparse", "file", "names"])
def test_the_recipe_is_what_numpy_computes(stored: str, form: str) -> None:
    with config_context(working_memory=0.05):  # so that the file is read in blocks
        if form == "names":
            names = gramian.open(stored).feature_names or []
            found = gramian.open(stored).normalise().log1p().select_columns([names[j] for j in CHOSEN])
            assert found.feature_names == [names[j] for j in CHOSEN]
        else:
            found = recipe({"dense": COUNTS, "sparse": sp.csr_array(COUNTS), "file": stored}[form])
        assert found.sparse == (form != "dense")
        assert len(list(found.blocks())) > 1 or form == "dense"
        values = found.to_array()
    assert_allclose(values.toarray() if sp.issparse(values) else values, by_hand(COUNTS), rtol=1e-14)


def test_components_are_those_of_a_dense_copy_whoever_works(stored: str) -> None:
    with config_context(working_memory=0.05):
        here = gramian.PCA(3, scale=True).fit(recipe(stored))
        with cluster("processes[1]"):
            there = gramian.PCA(3, scale=True).fit(recipe(stored))
    dense = gramian.PCA(3, scale=True).fit(by_hand(COUNTS))
    assert_allclose(here.components_, dense.components_, atol=1e-8)
    assert_allclose(here.explained_variance_, dense.explained_variance_, rtol=1e-9)
    assert_array_equal(there.components_, here.components_)
    assert there.certificate_.executor == "1 processes"


def test_what_was_handed_in_is_left_as_it_is() -> None:
    sparse, dense = sp.csr_array(COUNTS.astype(float)), COUNTS.astype(float)
    for X in (sparse, dense):
        before = X.copy()
        recipe(X).to_array()
        assert abs(X - before).max() == 0


def test_cells_without_counts_stay_zero_and_what_is_no_count_is_named() -> None:
    X = COUNTS[:5].astype(float)
    X[2] = 0.0
    assert not gramian.open(X).normalise().to_array()[2].any()
    for form in (np.array, sp.csr_array):
        for value in (-1.0, np.nan, np.inf):
            Y = X.copy()
            Y[3, 4] = value
            with pytest.raises(ValueError, match="row 4"):
                gramian.open(form(Y)).normalise().to_array()
        Y[3, 4] = -1.0
        with pytest.raises(ValueError, match="row 4"):
            gramian.open(form(Y)).log1p().to_array()


@pytest.mark.parametrize("columns", [["no gene"], [60], [-1], [True] * 3, [0.5]])
def test_columns_that_are_not_there_are_refused(columns: Any) -> None:
    with pytest.raises(ValueError, match="columns"):
        gramian.open(COUNTS).select_columns(columns)
    with pytest.raises(ValueError, match="total"):
        gramian.open(COUNTS).normalise(0)


def write_lists(folder: Path, cuts: list[int]) -> str:
    """Counts as lists of columns and values, in several files with small row groups."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (gramian[tables])")
    parquet = pytest.importorskip("pyarrow.parquet")
    for i, (a, b) in enumerate(pairwise(cuts)):
        stored = [np.flatnonzero(row) for row in COUNTS[a:b]]
        values = [row[at].astype(np.float64) for row, at in zip(COUNTS[a:b], stored, strict=True)]
        table = pa.table({"cell": [f"c{j}" for j in range(a, b)], "genes": stored, "counts": values})
        parquet.write_table(table, folder / f"{i}.parquet", row_group_size=90)
    return str(folder)


@pytest.mark.parametrize("cuts", [[0, CELLS], [0, 100, 101, CELLS]], ids=["a file", "parts"])
def test_lists_in_parquet_stay_sparse_whoever_works(tmp_path: Path, cuts: list[int]) -> None:
    folder = write_lists(tmp_path, cuts)
    with config_context(working_memory=0.05):
        source = open_sparse_parquet(folder, indices="genes", values="counts")
        assert source.sparse
        assert source.shape == COUNTS.shape
        for rows in (None, 1, 77, 5000):
            blocks = [(b.start, b.stop, b.values) for b in source.blocks(rows)]
            assert all(sp.issparse(values) for *_, values in blocks)
            assert_array_equal(sp.vstack([values for *_, values in blocks]).toarray(), COUNTS)
            assert [b[0] for b in blocks[1:]] == [b[1] for b in blocks[:-1]]
        here = gramian.PCA(3, scale=True).fit(recipe(source))
        with cluster("processes[1]"):
            there = gramian.PCA(3, scale=True).fit(recipe(source))
    assert_allclose(here.components_, gramian.PCA(3, scale=True).fit(by_hand(COUNTS)).components_, atol=1e-8)
    assert_array_equal(there.components_, here.components_)
    assert there.certificate_.executor == "1 processes"


def test_lists_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "x.parquet"
    for lists, named in [
        ({"indices": [[0, 1], [1]], "values": [[1.0], [2.0]]}, "row 1 has"),
        ({"indices": [[0], [1, 7]], "values": [[1.0], [2.0, 3.0]]}, "row 2 names the column 7"),
        ({"indices": [[0], [-1]], "values": [[1.0], [2.0]]}, "row 2 names the column -1"),
        ({"indices": [[0.5]], "values": [[1.0]]}, "whole numbers"),
        ({"indices": [0], "values": [[1.0]]}, "no lists"),
        ({"where": [[0]], "values": [[1.0]]}, "no column 'indices'"),
    ]:
        write_parquet(place, lists)
        with pytest.raises(SourceError, match=named):
            open_sparse_parquet(place, columns=4).to_array()
    write_parquet(place, {"indices": [[0, 0]], "values": [[1.0, 2.0]]})
    named_columns = open_sparse_parquet(place, columns=["a", "b"])
    assert named_columns.feature_names == ["a", "b"]
    assert_array_equal(named_columns.to_array().toarray(), [[3.0, 0.0]])


def test_masks_and_positions_select_the_same(tmp_path: Path) -> None:
    mask = np.isin(np.arange(GENES), CHOSEN)
    a = gramian.open(COUNTS).select_columns(mask).to_array()
    assert_array_equal(a, gramian.open(COUNTS).select_columns(np.flatnonzero(mask)).to_array())
