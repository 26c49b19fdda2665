"""Sources: whatever the user has, in blocks of rows; and errors that name what is wrong."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context

import gramian
from gramian.sources import DenseSource, MemmapSource, NpySource, Source, SparseSource, TensorSource

X = np.arange(60.0).reshape(20, 3)


def saved(folder: pathlib.Path, values: np.ndarray, name: str = "x.npy") -> pathlib.Path:
    path = folder / name
    np.save(path, values)
    return path


def every_source(folder: pathlib.Path) -> dict[str, Source]:
    return {
        "dense": gramian.open(X),
        "fortran": gramian.open(np.asfortranarray(X)),
        "integers": gramian.open(X.astype(np.int16)),
        "list": gramian.open(X.tolist()),
        "sparse": gramian.open(sp.coo_array(X)),
        "npy": gramian.open(saved(folder, X)),
        "npy-fortran": gramian.open(str(saved(folder, np.asfortranarray(X), "f.npy"))),
        "npy-big-endian": gramian.open(saved(folder, X.astype(">f4"), "b.npy")),
        "memmap": gramian.open(np.load(saved(folder, X, "m.npy"), mmap_mode="r")),
    }


@given(rows=st.integers(1, 25))
def test_blocks_are_consecutive_and_make_up_the_table(tmp_path_factory: Any, rows: int) -> None:
    for name, source in every_source(tmp_path_factory.mktemp("s")).items():
        stop = 0
        for block in source.blocks(rows):
            assert block.start == stop
            stop = block.stop
            values = block.values.toarray() if source.sparse else np.asarray(block.values)
            np.testing.assert_array_equal(values, X[block.start : block.stop], err_msg=name)
        assert stop == 20


def test_block_sizes_follow_working_memory(tmp_path: pathlib.Path) -> None:
    for name, source in every_source(tmp_path).items():
        if source.sparse:
            continue
        with config_context(working_memory=200 / 2**20):
            sizes = [b.stop - b.start for b in source.blocks()]
        assert len(sizes) > 1, name
        assert max(sizes) * 3 * source.dtype.itemsize <= 200, name


def test_reduce_merges_in_order(tmp_path: pathlib.Path) -> None:
    for source in every_source(tmp_path).values():
        got = source.reduce(lambda b: [(b.start, b.stop)], lambda a, b: a + b, rows=7)
        assert got == [(0, 7), (7, 14), (14, 20)]


def test_types_and_names(tmp_path: pathlib.Path) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert isinstance(gramian.open(X), DenseSource)
    assert isinstance(gramian.open(sp.csr_matrix(X)), SparseSource)
    assert isinstance(gramian.open(saved(tmp_path, X)), NpySource)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        source = gramian.open(frame)
        assert source.feature_names == ["a", "b", "c"]
        np.testing.assert_array_equal(next(iter(source.blocks())).values, X)
    source = gramian.open(X)
    assert gramian.open(source) is source


def test_torch(torch: Any) -> None:
    source = gramian.open(torch.asarray(X))
    assert isinstance(source, TensorSource)
    np.testing.assert_array_equal(next(iter(source.blocks())).values, X)


def test_arrays_are_read_where_they_lie() -> None:
    block = next(iter(gramian.open(X).blocks()))
    assert np.shares_memory(block.values, X)
    S = sp.csr_array(X)
    assert np.shares_memory(next(iter(gramian.open(S).blocks())).values.data, S.data)


@pytest.mark.parametrize("cut", [slice(None), slice(5, 15), slice(3, 20)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps_and_their_slices(tmp_path: pathlib.Path, cut: slice, order: str) -> None:
    view = np.load(saved(tmp_path, np.asarray(X, order=order)), mmap_mode="r")[cut]
    source = gramian.open(view)
    got = np.concatenate([b.values.copy() for b in source.blocks(4)])
    np.testing.assert_array_equal(got, X[cut])
    assert isinstance(source, MemmapSource)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_was_written_to_a_map_survives_the_giving_back_of_its_pages(tmp_path: pathlib.Path, mode: str) -> None:
    mapped = np.load(saved(tmp_path, X), mmap_mode=mode)
    mapped[:, 0] = 99.0  # in mode "c" this is not in the file
    source = gramian.open(mapped[:, :2])
    for _ in range(2):
        assert np.concatenate([b.values.copy() for b in source.blocks(4)])[:, 0].tolist() == [99.0] * 20
    assert mapped[0, 0] == 99.0


def test_duplicates_in_sparse_input_are_summed_and_the_users_matrix_is_left_alone() -> None:
    S = sp.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert next(iter(gramian.open(S).blocks())).values.toarray().tolist() == [[3.0, 0.0]]
    assert S.nnz == 2


def test_bad_files_are_named_with_byte_counts(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path, X)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(ValueError, match=rf"x\.npy: truncated: 20 x 3 .* need {len(whole)} bytes, .* {len(whole) - 8}"):
        gramian.open(path)
    path.write_bytes(b"not numpy at all")
    with pytest.raises(ValueError, match=r"x\.npy"):
        gramian.open(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        gramian.open(tmp_path / "nowhere.npy")
    with pytest.raises(ValueError, match=r"'\.xyz'.*\.npy"):
        gramian.open("data.xyz")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ValueError, match="folder"):
        gramian.open(tmp_path / "folder.npy")


def test_a_file_that_shrinks_while_it_is_read(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path, X)
    source = gramian.open(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="became shorter"):
        list(source.blocks())


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (np.zeros(3), "2 dimensions"),
        (np.zeros((2, 2), complex), "complex"),
        (np.array([["a", "b"]]), "real numbers"),
        (sp.csr_array(np.eye(2) * 1j), "complex"),
    ],
)
def test_what_is_not_a_table_of_real_numbers_is_refused(values: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        gramian.open(values)


def test_files_that_are_not_tables_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        gramian.open(saved(tmp_path, np.zeros(3)))
    with pytest.raises(ValueError, match="complex"):
        gramian.open(saved(tmp_path, np.zeros((2, 2), complex)))


def test_csv(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("polars")
    path = tmp_path / "t.csv"
    path.write_text("height,weight\n1.5,60\n1.75,70\n")
    source = gramian.open(path)
    assert source.feature_names == ["height", "weight"]
    assert next(iter(source.blocks())).values.tolist() == [[1.5, 60.0], [1.75, 70.0]]
    path.write_text("name,weight\nAnn,60\nBob,70\n")
    with pytest.raises(ValueError, match=r"t\.csv"):
        gramian.open(path)
    path.write_text("a,b\n1,2,3\n")
    with pytest.raises(ValueError, match=r"t\.csv"):
        gramian.open(path)
    path.write_text("")
    with pytest.raises(ValueError, match=r"t\.csv"):
        gramian.open(path)


def test_frames_with_text_are_refused_by_column() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = {"age": [1, 2], "name": ["x", "y"], "town": ["u", "v"]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        with pytest.raises(ValueError, match="Columns"):
            gramian.open(frame)
    missing = pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})
    assert np.isnan(gramian.open(missing).values[1, 0])  # type: ignore[attr-defined]
