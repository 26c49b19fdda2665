"""Files of other formats: each is written by its own library and read back, whole or in blocks."""

from __future__ import annotations

import bz2
import datetime
import gzip
import hashlib
import lzma
import os
import re
import shutil
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

import gramian
from gramian import PCA, KernelPCA
from gramian.cli import main
from gramian.persistence import ModelFileError, inspect, load
from gramian.sources import DenseSource, NpySource, Source, SparseSource
from gramian.sources.errors import SourceError
from gramian.sources.files import load_pyarrow, write_parquet
from gramian.sources.hdf5 import TRIAL
from gramian.sources.tables import read_table

TABLES = "is not installed (gramian[tables])"
ARRAYS = "is not installed (gramian[arrays])"
X = np.random.default_rng(0).normal(size=(50, 4))
NAMES = ["a", "b", "c", "d"]
SMALL = 400 / 2**20  # a working memory of 400 bytes: every file is larger, and is read in blocks of a row or a few


def gathered(source: Source, rows: int | None = None) -> Any:
    """Return all rows of a source, having looked that its blocks are consecutive."""
    parts, stop = [], 0
    for block in source.blocks(rows):
        assert block.start == stop
        stop = block.stop
        values = block.values.toarray() if source.sparse else np.array(block.values)
        assert len(values) == block.stop - block.start
        parts.append(values)
    assert stop == source.shape[0]
    return np.concatenate(parts)


def frame(**columns: Any) -> Any:
    pd = pytest.importorskip("pandas", reason=f"pandas {TABLES}")
    return pd.DataFrame(columns or dict(zip(NAMES, X.T, strict=True)))


# -- Parquet and Feather ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.parquet", "x.feather", "x.arrow", "x.ipc"])
@pytest.mark.parametrize("writer", ["pandas", "polars", "pyarrow"])
def test_columns_of_numbers(tmp_path: Path, name: str, writer: str) -> None:
    pa = pytest.importorskip("pyarrow", reason=f"pyarrow {TABLES}")
    pl = pytest.importorskip("polars", reason=f"polars {TABLES}")
    path = tmp_path / name
    if writer == "pandas":
        frame().to_parquet(path) if name == "x.parquet" else frame().to_feather(path)
    elif writer == "polars":
        table = pl.DataFrame(X, schema=NAMES)
        table.write_parquet(path) if name == "x.parquet" else table.write_ipc(path)
    elif name == "x.parquet":
        pa.parquet.write_table(pa.Table.from_pandas(frame()), path, row_group_size=7)
    else:
        table = pa.Table.from_pandas(frame())
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    for source in (gramian.open(path), read_table(path).source):
        assert isinstance(source, DenseSource)
        assert source.feature_names == NAMES
        assert_array_equal(source.values, X)


@given(rows=st.integers(1, 60), group=st.integers(1, 60))
def test_parquet_in_blocks(tmp_path_factory: Any, rows: int, group: int) -> None:
    pytest.importorskip("pyarrow", reason=f"pyarrow {TABLES}")
    path = tmp_path_factory.mktemp("p") / "x.parquet"
    table = frame(**dict(zip(NAMES, X.T, strict=True)), sex=np.where(X[:, 0] > 0, "f", "m"))
    table.to_parquet(path, row_group_size=group)
    with config_context(working_memory=SMALL):
        source = read_table(path, categorical="onehot").source
        assert not source.resident
        assert_array_equal(gathered(source), gathered(source, rows))
    assert source.feature_names == [*NAMES, "sex=f", "sex=m"]
    assert_array_equal(gathered(source, rows)[:, :4], X)
    assert_array_equal(gathered(source, rows)[:, 4], X[:, 0] > 0)


def test_what_becomes_of_each_type(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason=f"pyarrow {TABLES}")
    pytest.importorskip("pyarrow.parquet")
    day = datetime.date(2020, 1, 1)
    columns = {
        "i": pa.array([1, None, 3], pa.int64()),
        "u": pa.array([1, 2, 2**63], pa.uint64()),
        "f": pa.array([0.5, np.nan, None], pa.float32()),
        "t": pa.array([True, None, False]),
        "m": pa.array([Decimal("1.25"), None, Decimal("-3.50")]),
        "n": pa.nulls(3),
        "s": pa.array(["x", None, "y"], pa.large_string()),
        "k": pa.array(["7", "8", "7"]).dictionary_encode(),
        "d": pa.array([day, None, day]),
        "l": pa.array([[1], [], None]),
    }
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table(columns), path)
    table = read_table(path, drop=["d", "l"], categorical="onehot")
    nan = np.nan
    assert table.names == ["i", "u", "f", "t", "m", "n", "s=x", "s=y", "k=7", "k=8"]
    expected = [
        [1, 1, 0.5, 1, 1.25, nan, 1, 0, 1, 0],
        [nan, 2, nan, nan, nan, nan, nan, nan, 0, 1],
        [3, 2.0**63, nan, 0, -3.5, nan, 0, 1, 1, 0],
    ]
    assert_array_equal(gathered(table.source), expected)
    assert table.missing == {"i": 1, "f": 2, "t": 1, "m": 1, "n": 3, "s=x": 1, "s=y": 1}
    with pytest.raises(ValueError, match="Columns"):
        gramian.open(path)
    with pytest.raises(ValueError, match="'l'"):
        read_table(path, categorical="drop", label="l")
    with pytest.raises(ValueError, match="'l'"):
        read_table(path, columns="l", categorical="onehot")
    assert read_table(path, columns="i", label="s", id="k").label.tolist() == ["x", "", "y"]  # type: ignore[union-attr]


def test_single_precision_stays_single(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason=f"pyarrow {TABLES}")
    write_parquet(tmp_path / "x.parquet", {name: X[:, j].astype(np.float32) for j, name in enumerate(NAMES)})
    source = gramian.open(tmp_path / "x.parquet")
    assert source.dtype == np.float32
    assert_array_equal(gathered(source), X.astype(np.float32))


def test_the_index_of_a_frame_names_the_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason=f"pyarrow {TABLES}")
    table = frame().iloc[:3].set_axis(["u", "v", "w"])
    table.to_parquet(tmp_path / "x.parquet")
    read = read_table(tmp_path / "x.parquet")
    assert read.names == NAMES
    assert read.ids is not None
    assert read.ids.tolist() == ["u", "v", "w"]


@pytest.mark.parametrize("name", ["x.parquet", "x.feather"])
def test_damaged_tables(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow", reason=f"pyarrow {TABLES}")
    path = tmp_path / name
    frame().to_parquet(path) if name == "x.parquet" else frame().to_feather(path)
    path.write_bytes(path.read_bytes()[:-30])
    for read in (gramian.open, read_table):
        with pytest.raises(ValueError, match=rf"{name}: damaged"):
            read(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=rf"{name}: not a readable .* it holds text .* end in \.csv"):
        read_table(path)


def test_options_for_text_are_refused_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason=f"pyarrow {TABLES}")
    frame().to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    for name in ("x.parquet", "x.npy"):
        with pytest.raises(ValueError, match="header=True"):
            read_table(tmp_path / name, header=True)


# -- NumPy and Matrix Market ------------------------------------------------------------------------------------------


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, X=X)
    assert_array_equal(gathered(gramian.open(path)), X)
    np.savez_compressed(path, X=X, Y=X[:, :2], names=np.array(["u"]))
    assert_array_equal(gathered(gramian.open(f"{path}::Y")), X[:, :2])
    assert_array_equal(gathered(gramian.open(path, dataset="X")), X)
    with pytest.raises(ValueError, match=r"x\.npz.*\(50 x 4, float64\).*\(50 x 2, float64\)"):
        gramian.open(path)
    with pytest.raises(ValueError, match="'Z'"):
        read_table(f"{path}::Z")
    with pytest.raises(ValueError, match="name one"):
        gramian.open(f"{path}::X", dataset="Y")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"x\.npz: damaged"):
        gramian.open(path)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_size_in_the_directory_of_an_npz_file_does_not_hide_a_checksum(
    tmp_path: Path, save: Any, sparse: bool
) -> None:
    """zipfile compares the checksum only where a member ends: a longer one is not what its header says."""
    path, X = tmp_path / "x.npz", np.arange(48.0).reshape(12, 4)
    if sparse:
        sp.save_npz(path, sp.csr_array(X), compressed=save is np.savez_compressed)
    else:
        save(path, x=X)
    gramian.open(path)
    raw = bytearray(path.read_bytes())
    entry = raw.rindex(b"PK\x01\x02")  # of the last member, in the directory
    offsets = [24]  # of its whole size; of one that is not compressed the size in the file is the same
    if save is np.savez:
        raw[raw.rindex(np.float64(7.0).tobytes())] ^= 1
        offsets = [20, 24]
    for offset in offsets:
        raw[entry + offset + 2] ^= 1
        path.write_bytes(raw)
        with pytest.raises(SourceError, match=r"x\.npz.*damaged"):
            gramian.open(path)


def test_npz_never_unpickles(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.array([[object()]], dtype=object))
    with pytest.raises(ValueError, match="numbers"):
        gramian.open(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.npz", "x.mtx", "x.mtx.gz"])
def test_sparse_matrices_stay_sparse(tmp_path: Path, name: str) -> None:
    S = sp.random_array((30, 8), density=0.2, rng=np.random.default_rng(0))
    path = tmp_path / name
    if name == "x.npz":
        sp.save_npz(path, sp.csc_array(S))
    else:
        with gzip.open(path, "wb") if name == "x.mtx.gz" else path.open("wb") as file:
            scipy.io.mmwrite(file, S, precision=17)
    source = gramian.open(path)
    assert isinstance(source, SparseSource)
    assert_array_equal(gathered(source), S.toarray())
    table = read_table(path, columns=[2, 5], target=8)
    assert table.source.sparse
    assert table.names == ["x2", "x5"] == table.source.feature_names
    assert_array_equal(gathered(table.source), S.toarray()[:, [1, 4]])
    assert_array_equal(table.target, S.toarray()[:, 7])


def test_matrix_market_kinds(tmp_path: Path) -> None:
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(path, X)
    assert_allclose(gathered(gramian.open(path)), X, rtol=1e-15)
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n")
    assert gathered(gramian.open(path)).tolist() == [[1, 0, 1], [0, 0, 0], [1, 0, 0]]
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 5\n")
    with pytest.raises(ValueError, match=r"x\.mtx"):
        gramian.open(path)


def test_missing_and_infinite_cells_of_sparse_matrices(tmp_path: Path) -> None:
    S = np.array([[1.0, 0.0, np.nan], [0.0, 2.0, 4.0], [3.0, 0.0, 0.0]])
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(S))
    table = read_table(tmp_path / "x.npz", missing="mean")
    assert gathered(table.source).tolist() == [[1, 0, 2], [0, 2, 4], [3, 0, 0]]
    assert table.missing == {"x3": 1}
    assert gathered(read_table(tmp_path / "x.npz", missing="drop").source).tolist() == [[0, 2, 4], [3, 0, 0]]
    with pytest.raises(ValueError, match=r"x\.npz.*dataset='train'"):
        gramian.open(f"{tmp_path}/x.npz::train")
    S[2, 1] = np.inf
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(S))
    with pytest.raises(ValueError, match=r"'x2'.*\(row 3\)"):
        read_table(tmp_path / "x.npz")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_])
def test_labels_of_arrays_are_written_as_short_as_they_can_be(tmp_path: Path, dtype: Any) -> None:
    values = np.array([[0.1, 5], [3, 6], [1e20, 7]]) if np.dtype(dtype).kind == "f" else np.array([[1, 5], [0, 6]])
    np.save(tmp_path / "x.npy", values.astype(dtype))
    label = read_table(tmp_path / "x.npy", label=1).label
    assert label is not None
    assert label.tolist() == (["0.1", "3", "1e+20"] if np.dtype(dtype).kind == "f" else ["1", "0"])


def test_npy_in_blocks_with_roles_and_gaps(tmp_path: Path) -> None:
    holed = X.copy()
    holed[[3, 40], [0, 2]] = np.nan
    np.save(tmp_path / "x.npy", holed)
    keep = ~np.isnan(holed[:, [0, 2]]).any(axis=1)
    table = read_table(tmp_path / "x.npy", columns=[1, 3], target=2, missing="drop", id=4)
    assert not table.source.resident
    assert_array_equal(gathered(table.source, 7), holed[keep][:, [0, 2]])
    assert_array_equal(table.target, X[keep, 1])
    assert table.ids is not None
    assert [float(name) for name in table.ids] == X[keep, 3].tolist()
    filled = read_table(tmp_path / "x.npy", columns=[1, 3], missing="mean")
    means = np.nanmean(holed[:, [0, 2]], axis=0)
    assert_allclose(gathered(filled.source), np.where(np.isnan(holed[:, [0, 2]]), means, holed[:, [0, 2]]), rtol=1e-14)
    kept = read_table(tmp_path / "x.npy")
    assert isinstance(kept.source, NpySource)
    assert kept.notes == ("read in blocks: missing cells are not counted beforehand",)
    with pytest.raises(ValueError, match=r"2 cells.*2 columns \(x1 1, x3 1\)"):
        read_table(tmp_path / "x.npy", missing="refuse")


# -- HDF5 and Zarr ----------------------------------------------------------------------------------------------------


def test_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason=f"h5py {ARRAYS}")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("deep/X", data=X, chunks=(8, 2), compression="gzip")
        file["big_endian"] = X.astype(">f4")
        file["vector"] = X[:, 0]
        file["words"] = ["u", "v"]
        file["flags"] = X > 0
    assert_array_equal(gathered(gramian.open(f"{path}::deep/X")), X)
    assert_array_equal(gathered(gramian.open(path, dataset="/big_endian")), X.astype(np.float32))
    assert_array_equal(gathered(gramian.open(path, dataset="flags")), X > 0)
    with config_context(working_memory=SMALL):
        source = gramian.open(path, dataset="deep/X")
        assert not source.resident
        assert source.dtype == np.float64
        for rows in (None, 1, 7, 50, 99):
            assert_array_equal(gathered(source, rows), X)
    listed = r"holds big_endian \(50 x 4, >f4\), deep/X \(50 x 4, float64\), flags \(50 x 4, bool\)"
    with pytest.raises(ValueError, match=rf"x\.h5: say which dataset is meant .*{listed}"):
        gramian.open(path)
    with pytest.raises(ValueError, match=rf"no dataset 'vector' .*{listed}"):
        read_table(path, dataset="vector")
    with h5py.File(tmp_path / "user.h5", "w", userblock_size=512) as file:
        file["X"] = X
    assert_array_equal(gathered(gramian.open(tmp_path / "user.h5")), X)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"x\.h5: damaged"):
        gramian.open(path, dataset="deep/X")


@pytest.mark.parametrize("suffix", [".h5", ".h5ad"])
@pytest.mark.parametrize(
    ("child", "refused"),
    [
        ("import os; os.abort()", True),
        ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass", True),
        ("raise SystemExit(1)", False),
        ("import nothing_of_this_name", False),
    ],
)
def test_a_file_that_crashes_the_hdf5_library_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, child: str, refused: bool
) -> None:
    """A child reads first: a signal ends it where the library crashes; what it merely fails at is no reason."""
    h5py = pytest.importorskip("h5py", reason=f"h5py {ARRAYS}")
    pytest.importorskip("anndata", reason=f"anndata {ARRAYS}")
    path = tmp_path / f"x{suffix}"
    with h5py.File(path, "w") as file:
        file["X"] = X
    monkeypatch.setattr("gramian.sources.hdf5.TRIAL", child)
    if refused:
        with pytest.raises(SourceError, match=f"x{suffix}: damaged"):
            gramian.open(path)
        assert CliRunner().invoke(main, ["pca", str(path)]).exit_code == 3
    elif suffix == ".h5":
        assert_array_equal(gathered(gramian.open(path)), X)


def test_a_child_reads_what_this_process_will(tmp_path: Path) -> None:
    """Each attribute, text and small array once; where one of them cannot be read, all the others still."""
    h5py = pytest.importorskip("h5py", reason=f"h5py {ARRAYS}")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/words"], file["X"] = ["u", "v"], X
        file["X"].attrs["kind"] = "array"
        file.attrs["kind"] = "file"
        file["lost"] = h5py.SoftLink("/nowhere")
    seen: list[str] = []
    read, attribute = h5py.Dataset.__getitem__, h5py.AttributeManager.__getitem__

    def noted_read(item: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(item.name)
        if item.name == "/X":
            raise OSError
        return read(item, *args, **kwargs)

    def noted_attribute(attrs: Any, key: str) -> Any:
        seen.append(attribute(attrs, key))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h5py.Dataset, "__getitem__", noted_read)
        patch.setattr(h5py.AttributeManager, "__getitem__", noted_attribute)
        patch.setitem(sys.modules, "resource", None)
        patch.setattr(sys, "argv", ["", str(tmp_path / "x.h5"), "1"])
        exec(TRIAL, {})
    assert sorted(seen) == ["/X", "/group/words", "array", "file"]


def test_a_file_may_be_fitted_in_blocks(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason=f"h5py {ARRAYS}")
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["X"] = X
    expected = PCA(2).fit(X).explained_variance_
    with config_context(working_memory=SMALL):
        assert_allclose(PCA(2).fit(tmp_path / "x.hdf5").explained_variance_, expected, rtol=1e-12)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["array", "group", "zip"])
def test_zarr(tmp_path: Path, version: int, kind: str) -> None:
    zarr = pytest.importorskip("zarr", reason=f"zarr {ARRAYS}")
    path = tmp_path / ("x.zip" if kind == "zip" else "x.zarr")
    if kind == "array":
        zarr.save_array(path, X, zarr_format=version)
        dataset = None
    else:
        store = zarr.storage.ZipStore(path, mode="w") if kind == "zip" else zarr.storage.LocalStore(path)
        group = zarr.open_group(store, mode="w", zarr_format=version)
        group.create_array("deep/X", data=X, chunks=(8, 4))
        group.create_array("Y", data=X[:, :2])
        group.create_array("vector", data=X[:, 0])
        store.close()
        dataset = "deep/X"
    assert_array_equal(gathered(gramian.open(path, dataset=dataset)), X)
    with config_context(working_memory=SMALL):
        source = gramian.open(path, dataset=dataset)
        assert not source.resident
        for rows in (None, 7, 60):
            assert_array_equal(gathered(source, rows), X)
    if kind != "array":
        with pytest.raises(ValueError, match=r"\(50 x 2, float64\)"):
            gramian.open(path)
        with pytest.raises(ValueError, match=r"'Z'.*deep/X \(50 x 4, float64\)"):
            gramian.open(path, dataset="Z")


def test_the_checksum_of_a_folder_is_of_its_files(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason=f"zarr {ARRAYS}")
    for name in ("x.zarr", "y.zarr"):
        zarr.save_array(tmp_path / name, X)
    one, two = read_table(tmp_path / "x.zarr"), read_table(tmp_path / "y.zarr")
    assert one.checksum() == two.checksum()
    (tmp_path / "y.zarr" / "c" / "0" / "0").write_bytes(b"other")
    assert one.checksum() != two.checksum()
    np.save(tmp_path / "x.npy", X)
    assert read_table(tmp_path / "x.npy").checksum() == hashlib.sha256((tmp_path / "x.npy").read_bytes()).hexdigest()


def test_folders_and_zip_files_that_are_no_arrays(tmp_path: Path) -> None:
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(ValueError, match=r"x\.zarr"):
        gramian.open(tmp_path / "x.zarr")
    np.savez(tmp_path / "y.npz", X=X)
    (tmp_path / "y.npz").rename(tmp_path / "y.zip")
    with pytest.raises(ValueError, match=r"y\.zip"):
        gramian.open(tmp_path / "y.zip")


# -- AnnData ----------------------------------------------------------------------------------------------------------

CELLS = [f"cell {i}" for i in range(50)]
GENES = ["g1", "g2", "g3", "g4"]


def annotated(path: Path, matrix: Any, genes: list[str] = GENES) -> Path:
    anndata = pytest.importorskip("anndata", reason=f"anndata {ARRAYS}")
    pd = pytest.importorskip("pandas", reason=f"pandas {TABLES}")
    obs = frame(depth=np.arange(50.0) + 0.5).set_axis(pd.Index(CELLS, dtype=object))
    obs.loc["cell 7", "depth"] = np.nan
    obs["kind"] = pd.Categorical.from_codes(np.arange(50) % 2, pd.Index(["B", "T"], dtype=object))
    obs["sick"] = pd.array([None, *([True, False] * 25)[1:]], dtype="boolean")
    data = anndata.AnnData(matrix, obs=obs, var=frame(long=np.ones(4)).set_axis(pd.Index(genes, dtype=object)))
    data.layers["counts"] = sp.csr_matrix(np.round(np.abs(X)))
    data.obsm["X_pca"] = X[:, :2]
    data.write_h5ad(path)
    return path


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_annotated_matrices(tmp_path: Path, kind: str) -> None:
    S = np.where(X > 0.3, X, 0.0)
    matrix = {"dense": lambda: S, "csr": lambda: sp.csr_matrix(S), "csc": lambda: sp.csc_matrix(S)}[kind]()
    path = annotated(tmp_path / "x.h5ad", matrix)
    source = gramian.open(path)
    assert source.sparse == (kind != "dense")
    assert source.feature_names == GENES
    assert_array_equal(gathered(source), S)
    with config_context(working_memory=SMALL):
        streamed = gramian.open(path)
        assert streamed.resident == (kind == "csc")
        assert streamed.sparse == source.sparse
        for rows in (None, 7, 60):
            assert_array_equal(gathered(streamed, rows), S)
        assert_allclose(PCA(2).fit(streamed).explained_variance_, PCA(2).fit(S).explained_variance_, rtol=1e-10)
        kernel = KernelPCA(2, kernel="rbf", gamma=0.5)
        assert_allclose(kernel.fit(streamed).eigenvalues_, kernel.fit(S).eigenvalues_, rtol=1e-8)
        picked = read_table(path, columns=["g4", "g2"], missing="drop").source
        assert picked.resident == (kind == "csc")
        assert_array_equal(gathered(picked, 7), S[:, [3, 1]])


def test_layers_and_tables_of_annotated_matrices(tmp_path: Path) -> None:
    path = annotated(tmp_path / "x.h5ad", X)
    table = read_table(path, dataset="counts", columns=["g3", "g1"], label="kind")
    assert_array_equal(gathered(table.source), np.round(np.abs(X))[:, [2, 0]])
    assert table.label is not None
    assert table.label.tolist() == ["B", "T"] * 25
    assert table.ids is not None
    assert table.ids.tolist() == CELLS
    assert gramian.open(f"{path}::obsm/X_pca").shape == (50, 2)
    dropped = read_table(path, target="depth", missing="drop", id="kind")
    assert_array_equal(dropped.target, np.delete(np.arange(50.0) + 0.5, 7))
    assert_array_equal(gathered(dropped.source), np.delete(X, 7, axis=0))
    with pytest.raises(ValueError, match=r"target.*1 of 50 rows.*'cell 7'\)"):
        read_table(path, target="depth")
    with pytest.raises(ValueError, match=r"'kinds'.*label="):
        read_table(path, label="kinds")
    with pytest.raises(ValueError, match=r"'logs'.*\(50 x 4, float64\), layers/counts \(50 x 4"):
        read_table(path, dataset="logs")


def test_truth_values_of_annotated_rows_may_be_missing(tmp_path: Path) -> None:
    table = read_table(annotated(tmp_path / "x.h5ad", X), target="sick", missing="drop")
    assert_array_equal(table.target, np.tile([1.0, 0.0], 25)[1:])
    assert_array_equal(gathered(table.source), X[1:])


@pytest.mark.filterwarnings("ignore:Variable names are not unique")  # by anndata, as it writes the file
def test_double_names_of_variables_are_told_apart(tmp_path: Path) -> None:
    path = annotated(tmp_path / "x.h5ad", X, ["g1", "g2", "g1", "g1.2"])
    assert gramian.open(path).feature_names == ["g1", "g2", "g1.3", "g1.2"]
    table = read_table(path, columns=["g1.3"])
    assert_array_equal(gathered(table.source), X[:, [2]])
    assert table.notes[0] == "column 3 is called 'g1.3': there is an 'g1' already"


def test_an_hdf5_file_that_is_not_annotated(tmp_path: Path) -> None:
    pytest.importorskip("anndata", reason=f"anndata {ARRAYS}")
    h5py = pytest.importorskip("h5py", reason=f"h5py {ARRAYS}")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = X
    with pytest.raises(ValueError, match=r"x\.h5ad"):
        gramian.open(tmp_path / "x.h5ad")


# -- PLINK ------------------------------------------------------------------------------------------------------------


def test_genotypes_with_the_names_of_their_samples(tmp_path: Path) -> None:
    """Two SNPs of four people, packed by hand: 00 two A1, 10 one, 11 none, 01 missing, the first person lowest."""
    (tmp_path / "x.bed").write_bytes(bytes([0x6C, 0x1B, 0x01, 0b11_10_00_11, 0b01_00_00_10]))
    (tmp_path / "x.bim").write_text("1\trs1\t0\t5\tA\tG\n1\trs2\t0\t9\tC\tT\n")
    (tmp_path / "x.fam").write_text("FIN p1 0 0 1 -9\nFIN p2 0 0 2 -9\nITA p3 0 0 1 -9\nITA p4 0 0 2 -9\n")
    table = read_table(tmp_path / "x.bed", label="fid")
    assert_array_equal(gathered(table.source), [[0, 1], [2, 2], [1, 2], [0, np.nan]])
    assert table.names == ["rs1", "rs2"]
    assert table.ids is not None
    assert table.ids.tolist() == ["FIN:p1", "FIN:p2", "ITA:p3", "ITA:p4"]
    assert table.label is not None
    assert table.label.tolist() == ["FIN", "FIN", "ITA", "ITA"]
    assert read_table(tmp_path / "x.bed", columns="rs2", missing="drop", id="iid").ids.tolist() == ["p1", "p2", "p3"]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"'town'.*label="):
        read_table(tmp_path / "x.bed", label="town")
    with pytest.raises(ValueError, match="target='phenotype'"):
        read_table(tmp_path / "x.bed", target="phenotype")


# -- extras -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("pyarrow", "x.parquet", "tables"),
        ("pyarrow", "x.feather", "tables"),
        ("h5py", "x.h5", "arrays"),
        ("zarr", "x.zarr", "arrays"),
        ("anndata", "x.h5ad", "arrays"),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str, extra: str
) -> None:
    path = tmp_path / name
    if name == "x.zarr":
        path.mkdir()
        (path / "zarr.json").write_text("{}")
    else:
        path.write_bytes({"x.parquet": b"PAR1", "x.feather": b"ARROW1"}.get(name, b"\x89HDF\r\n\x1a\n"))
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    load_pyarrow.cache_clear()
    for read in (gramian.open, read_table):
        with pytest.raises(ImportError, match=rf'{package}, which is not installed: pip install "gramian\[{extra}\]"'):
            read(path)


# -- what is lost, or too much ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [1, 8, 1000])
def test_a_npy_file_longer_than_its_header_says_is_refused(tmp_path: Path, extra: int) -> None:
    np.save(tmp_path / "x.npy", X)
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole + bytes(extra))
    with pytest.raises(ValueError, match=rf"x\.npy.*{len(whole)} bytes.*{len(whole) + extra}"):
        gramian.open(tmp_path / "x.npy")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("group", ["", "a/b"])
def test_a_chunk_that_is_not_stored_is_named(tmp_path: Path, version: int, packed: bool, group: str) -> None:
    zarr = pytest.importorskip("zarr", reason=f"zarr {ARRAYS}")
    path = tmp_path / "x.zarr"
    if group:
        zarr.open_group(path, mode="w", zarr_format=version).create_array(group, data=X, chunks=(20, 3))
    else:
        zarr.create_array(path, data=X, chunks=(20, 3), zarr_format=version)
    assert_array_equal(gathered(gramian.open(path)), X)
    key = f"{group}/1.1".lstrip("/") if version == 2 else f"{group}/c/1/1".lstrip("/")
    (path / key).unlink()
    if packed:
        shutil.make_archive(str(tmp_path / "y"), "zip", path)
        path = tmp_path / "y.zip"
    with pytest.warns(UserWarning, match=f"1 of 6 chunks.*: {key}"):
        source = gramian.open(path)
    lost = X.copy()
    lost[20:40, 3:] = 0
    assert_array_equal(gathered(source), lost)


def test_cells_of_a_chunk_that_is_filled_with_nan_are_missing(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason=f"zarr {ARRAYS}")
    array = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, dtype="f8", chunks=(20, 4), fill_value=np.nan)
    array[:20] = X[:20]
    assert read_table(tmp_path / "x.zarr").missing == dict.fromkeys(["x1", "x2", "x3", "x4"], 30)


@pytest.mark.parametrize("name", ["x.csv", "x.npy", "x.h5", "x.bed"])
def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name}.*pipe"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("suffix", [".bim", ".fam"])
def test_a_pipe_beside_genotypes_is_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "x.bed").write_bytes(b"\x6c\x1b\x01\x00")
    (tmp_path / "x.bim").write_text("1 rs1 0 100 A G\n")
    (tmp_path / "x.fam").write_text("f i 0 0 1 -9\n")
    (tmp_path / f"x{suffix}").unlink()
    os.mkfifo(tmp_path / f"x{suffix}")
    with pytest.raises(ValueError, match=rf"x{suffix}.*pipe"):
        gramian.open(tmp_path / "x.bed")


def test_a_pipe_is_no_model_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.gramian")
    for read in (load, inspect):
        with pytest.raises(ModelFileError, match=r"m\.gramian.*pipe"):
            read(tmp_path / "m.gramian")


def test_indices_beyond_a_sparse_matrix_are_refused(tmp_path: Path) -> None:
    for format, indices in (("csr", [0, 9]), ("csr", [0, -2]), ("csc", [0, 99])):
        parts = {
            "data": np.ones(2),
            "indices": np.array(indices),
            "indptr": np.array([0, 1, 2]),
            "shape": np.array([2, 2]),
        }
        np.savez(tmp_path / "x.npz", format=np.array(format.encode()), **parts)
        with pytest.raises(ValueError, match=r"x\.npz"):
            gramian.open(tmp_path / "x.npz")


MATRIX = "%%MatrixMarket matrix coordinate real general\n% café\n3 3 2\n"


@pytest.mark.parametrize("body", ["1 1 2\0\n2 2 3\n", "1 1 1,5\n2 2 3\n", "1 1 2 x\n2 2 3\n", "1 1 2\n2 2", "1 1 2\n"])
def test_matrix_market_files_that_are_damaged(tmp_path: Path, body: str) -> None:
    (tmp_path / "x.mtx").write_text(MATRIX + body)
    with pytest.raises(ValueError, match=r"x\.mtx"):
        gramian.open(tmp_path / "x.mtx")


@pytest.mark.parametrize("body", ["1 1 2\n2 3 -3.5e-1\n", "1 1 2\r\n2 3 -.35", "1 1 2\n2 3 -3.5E-01"])
def test_matrix_market_files_without_a_last_line_end(tmp_path: Path, body: str) -> None:
    (tmp_path / "x.mtx").write_bytes((MATRIX + body).encode())
    assert_array_equal(gathered(gramian.open(tmp_path / "x.mtx")), [[2, 0, 0], [0, 0, -0.35], [0, 0, 0]])


def test_arrays_far_larger_than_what_is_stored_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason=f"h5py {ARRAYS}")
    zarr = pytest.importorskip("zarr", reason=f"zarr {ARRAYS}")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (10**9, 10**6), "f8", chunks=(100, 100))
    with pytest.raises(ValueError, match=r"x\.h5.*stored"):
        read_table(tmp_path / "x.h5")
    zarr.create_array(tmp_path / "x.zarr", shape=(10**9, 10**6), dtype="f8", chunks=(100, 100))
    with pytest.raises(ValueError, match=r"x\.zarr.*stored"):
        read_table(tmp_path / "x.zarr")


def test_a_heap_that_leads_in_circles_is_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason=f"h5py {ARRAYS}")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X
        file["names"] = NAMES
    assert_array_equal(gathered(gramian.open(f"{tmp_path}/x.h5::x")), X)
    raw = bytearray((tmp_path / "x.h5").read_bytes())
    at = raw.index(b"GCOL") + 16
    while raw[at : at + 2] != b"\0\0":  # the free space comes last
        at += 16 + -(-int.from_bytes(raw[at + 8 : at + 16], "little") // 8) * 8
    raw[at + 8 : at + 16] = bytes(8)
    (tmp_path / "x.h5").write_bytes(raw)
    with pytest.raises(ValueError, match=rf"x\.h5.*heap.*{at}"):
        gramian.open(f"{tmp_path}/x.h5::x")


@pytest.mark.parametrize("chunk", [2**22, 7])
@pytest.mark.parametrize("token", ["1.5.2", "1-2", "1e5e5", "1e5.5", "--1", "1.5nan", "nani", "e5", ".", "+"])
def test_a_matrix_market_file_with_what_is_no_number_is_refused_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, chunk: int
) -> None:
    monkeypatch.setattr("gramian.sources.npy.CHUNK", chunk)
    path = tmp_path / "x.mtx"
    head = "%%MatrixMarket matrix array real general\n% a comment\n3 1\n"
    path.write_text(f"{head}1.5\n{token}\n-2.5e-3\n")
    with pytest.raises(SourceError, match=re.escape(f"line 5: {token!r}")):
        gramian.open(path)
    path.write_text(f"{head}1.5\n2\n{token}")
    with pytest.raises(SourceError, match=re.escape(f"line 6: {token!r}")):
        gramian.open(path)
    path.write_text(f"{head}1.5\n.5E1\n-2.e-3")
    assert gramian.open(path).values.ravel().tolist() == [1.5, 5.0, -0.002]  # type: ignore[attr-defined]


@pytest.mark.parametrize("pack", [bz2, lzma], ids=["bz2", "xz"])
def test_packed_matrix_market_files(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / f"x.mtx.{'bz2' if pack is bz2 else 'xz'}"
    path.write_bytes(pack.compress(b"%%MatrixMarket matrix array real general\n2 1\n1.5\n2\n"))
    assert gramian.open(path).values.ravel().tolist() == [1.5, 2.0]  # type: ignore[attr-defined]
