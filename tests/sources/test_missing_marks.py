"""Marks of missing cells that a table has of its own, such as -999: as they are given, and as they are pointed out."""

import numpy as np
import pandas as pd
import pytest

import gramian
from gramian.sources import read_table
from gramian.sources.marks import MissingMarks, find_suspects

TEXT = "height,age,score,kind\n1.6,20,3,a\n-999,30,-,b\n1.8,99,5,unknown\n1.7,33,2,a\n-999,28,1,b\n1.65,41,4,a\n"


def rows_of(table):
    return np.concatenate([np.asarray(block.values) for block in table.source.blocks(2)])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    "marks",
    [["-999", "-", "99", "unknown"], [-999, 99.0, "-", "unknown"], {"height": -999, "age": [99], "score": "-"}],
    ids=["texts", "numbers", "by column"],
)
def test_marks_are_what_pandas_takes_them_for(table, marks):
    found = read_table(table, na_values=marks, categorical="drop", missing="keep")
    want = pd.read_csv(table, na_values=marks)[["height", "age", "score"]]
    assert found.names == list(want.columns)
    np.testing.assert_array_equal(found.source.values, want.to_numpy(dtype=float))
    assert found.missing == {"height": 2, "age": 1, "score": 1}


@pytest.mark.parametrize("ending", ["parquet", "feather", "npy", "xlsx"])
def test_files_of_every_kind_have_marks(tmp_path, ending):
    X = np.array([[1.5, -999.0], [-999.0, 2.0], [2.5, 3.0], [3.5, 99.0]])
    path = tmp_path / f"x.{ending}"
    if ending == "npy":
        np.save(path, X)
    elif ending == "xlsx":
        pytest.importorskip("openpyxl")
        pd.DataFrame(X, columns=["a", "b"]).to_excel(path, index=False)
    else:
        getattr(pd.DataFrame(X, columns=["a", "b"]), f"to_{ending}")(path)
    found = read_table(path, na_values=-999)
    np.testing.assert_array_equal(rows_of(found), np.where(X == -999, np.nan, X))


def test_several_files_and_those_read_in_blocks_have_marks(tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    X[[0, 4], [1, 0]] = -999
    for i in range(2):
        pd.DataFrame(X[3 * i : 3 * i + 3], columns=["a", "b"]).to_parquet(tmp_path / f"part-{i}.parquet")
    found = read_table(tmp_path / "part-*.parquet", na_values=-999)
    np.testing.assert_array_equal(rows_of(found), np.where(X == -999, np.nan, X))


def test_a_marked_target_is_missing_and_a_marked_level_is_none(table):
    found = read_table(table, target="height", na_values=[-999, "-", "unknown"], categorical="onehot", missing="drop")
    assert found.target.tolist() == [1.6, 1.7, 1.65]  # the row of kind unknown has a missing cell
    assert [name for name in found.names if name.startswith("kind")] == ["kind=a", "kind=b"]
    with pytest.raises(ValueError, match="target is missing in 2"):
        read_table(table, target="height", drop=["kind", "score"], na_values=-999)


def test_marks_of_whole_numbers_and_of_sparse_matrices(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1, -9], [2, 3]]))
    np.testing.assert_array_equal(rows_of(read_table(tmp_path / "x.npy", na_values=-9)), [[1, np.nan], [2, 3]])
    from scipy import sparse

    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array([[1.0, 0.0], [0.0, -9.0]]))
    source = read_table(tmp_path / "s.npz", na_values=-9).source
    assert source.sparse
    np.testing.assert_array_equal(source.values.toarray(), [[1, 0], [0, np.nan]])


@pytest.mark.parametrize("marks", [{"hight": 1}, [None], True])
def test_marks_that_say_nothing_are_refused(table, marks):
    with pytest.raises(ValueError, match="na_values"):
        read_table(table, categorical="drop", na_values=marks)


@pytest.mark.parametrize(
    ("column", "mark"),
    [
        ([1.6, -999, 1.8, 1.7], "-999"),
        ([20, 31, 45, 9999, 9999], "9999"),
        ([20, 31, 45, -9, 60], "-9"),  # the only negative one
        ([0.5, -99.9, -0.5, 0.2], "-99.9"),
        ([3.0, 1e20, 4.0], "1e+20"),
        ([101.0, 9.969209968386869e36, 98.0], "9.969209968386869e+36"),
        ([100, 32767, 140, 90], "32767"),
        ([1, 5, 888, 3], "888"),
    ],
)
def test_numbers_that_look_like_marks_are_pointed_out(column, mark):
    (note,) = find_suspects(gramian.open(np.array(column, dtype=float)[:, None]), ["x"])
    assert f"holds {mark} " in note
    assert f"na_values={mark}" in note


@pytest.mark.parametrize(
    "column",
    [
        [20, 31, 45, 99],  # an age
        [-5, -9, 3, 4],
        [9990, 9995, 9999],
        [0, 1, 0, 1],
        [1, 2, 3, 1000],  # an outlier
        [99, 99, 99],
        [9.0, 8.0, 7.0],
        [np.nan, 999, np.nan],
        [100, 200, 77],
    ],
)
def test_other_numbers_are_not(column):
    assert find_suspects(gramian.open(np.array(column, dtype=float)[:, None]), ["x"]) == []


def test_a_table_tells_of_marks_once_for_all_columns(table):
    notes = [note for note in read_table(table, categorical="drop", na_values="-").notes if "na_values" in note]
    assert len(notes) == 1
    assert "height" in notes[0]
    assert "2 rows" in notes[0]
    frame = pd.read_csv(table)[["height", "age"]].replace({99: 50}).assign(more=[-999, 1, 2, 3, 4, 5])
    frame.to_csv(table, index=False)
    (note,) = [note for note in read_table(table).notes if "na_values" in note]
    assert "height" in note
    assert "more in 1" in note


def test_a_slip_among_numbers_names_the_argument(table):
    for rows in ("6,4\n7,1\n8,2\n9,3\n", "8,2\n" * 4):
        table.write_text("age,score\n1,5\n2,-\n3,7\n4,8\n5,3\n" + rows * 2)
        with pytest.raises(ValueError, match=r"'score'.*na_values='-'"):
            read_table(table, categorical="drop")


def test_marks_given_are_marks():
    marks = MissingMarks.of([-999, 1.5, "NULL "])
    assert marks.everywhere == ("-999", "1.5", "NULL")
    assert MissingMarks.of(marks) is marks
    assert not MissingMarks.of(None)
