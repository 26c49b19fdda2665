"""Text tables: what is written is what is read, however it is written; what is wrong is named by line and column."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import string
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import gramian
from gramian.sources import SourceError
from gramian.sources import text as _text_files
from gramian.sources.files import load_pyarrow
from gramian.sources.tables import Table, read_table

pytest.importorskip("pyarrow", reason="pyarrow is not installed (gramian[tables])")
pd = pytest.importorskip("pandas", reason="pandas is not installed (gramian[tables])")
pl = pytest.importorskip("polars", reason="polars is not installed (gramian[tables])")


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def values(table: Table) -> Any:
    return table.source.values  # type: ignore[attr-defined]


@pytest.fixture(params=["python", "pyarrow"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read with Python's own reader, and with pyarrow: which of them is used must not matter."""
    monkeypatch.setattr(_text_files, "SMALL", 2**40 if request.param == "python" else 0)
    return str(request.param)


# -- round trips ------------------------------------------------------------------------------------------------------

WORDS = st.text(alphabet=string.ascii_letters + " ,;|\t\"'äß=\n", min_size=1, max_size=8).map(str.strip)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(
    numbers=st.integers(1, 4).flatmap(
        lambda p: st.lists(st.lists(NUMBERS, min_size=p, max_size=p), min_size=1, max_size=6)
    ),
    words=st.lists(WORDS.filter(lambda w: w not in ("", "x", "NA", "nan")), min_size=6, max_size=6),
    delimiter=st.sampled_from(",;\t| "),
    decimal=st.sampled_from(".,"),
    newline=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    mark=st.booleans(),
    small=st.sampled_from([0, 2**20]),
)
def test_any_table_survives_any_way_of_writing_it(
    tmp_path_factory: Any,
    numbers: list[list[float]],
    words: list[str],
    delimiter: str,
    decimal: str,
    newline: str,
    quoting: int,
    mark: bool,
    small: int,
) -> None:
    names = [f"col {j}" for j in range(len(numbers[0]))]
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=newline)  # type: ignore[arg-type]
    writer.writerow(["word", *names])
    for word, row in zip(words, numbers, strict=False):
        writer.writerow([word, *(repr(v).replace(".", decimal) for v in row)])
    path = written(tmp_path_factory.mktemp("t"), out.getvalue().encode("utf-8-sig" if mark else "utf-8"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_text_files, "SMALL", small)
        table = read_table(path, id="word", delimiter=delimiter, decimal=decimal, header=True)
    assert_array_equal(values(table), np.array(numbers))
    assert table.names == names == table.source.feature_names
    assert table.ids is not None
    assert table.ids.tolist() == words[: len(numbers)]


@given(
    table=st.lists(
        st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), min_size=3, max_size=3), min_size=2, max_size=20
    ),
    style=st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), ("|", "."), (" ", ",")]),
    header=st.booleans(),
)
def test_the_way_of_writing_is_found_out(
    tmp_path_factory: Any, table: list[list[float]], style: tuple[str, str], header: bool
) -> None:
    delimiter, decimal = style
    table = [[0.5, *row] for row in table]  # a number that no one takes for grouped thousands
    lines = [delimiter.join(repr(v).replace(".", decimal) for v in row) for row in table]
    text = "\n".join([delimiter.join(["half", "a", "b", "c"]), *lines] if header else lines)
    read = read_table(written(tmp_path_factory.mktemp("t"), text))
    assert_array_equal(values(read), np.array(table))
    assert read.names == (["half", "a", "b", "c"] if header else ["x1", "x2", "x3", "x4"])
    assert f"delimiter {delimiter!r}" in read.notes[0]
    assert ("decimal comma" in read.notes[0]) == (decimal == ",")
    assert ("no header row" in read.notes[0]) != header


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy", "gzip"])
def test_files_of_other_programs(tmp_path: Path, kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    path = tmp_path / ("x.txt" if kind == "numpy" else "x.csv.gz" if kind == "gzip" else "x.csv")
    if kind == "polars":
        pl.DataFrame(X, schema=["a", "b", "c"]).write_csv(path)
    elif kind == "numpy":
        np.savetxt(path, X)
    else:
        pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(path)  # with row numbers, in a column without a name
    table = read_table(path)
    np.testing.assert_allclose(values(table), X, rtol=1e-15)
    ids = None if table.ids is None else table.ids.tolist()
    assert ids == ([str(i) for i in range(40)] if kind in ("pandas", "gzip") else None)
    assert_array_equal(gramian.open(path).values, values(table))  # type: ignore[attr-defined]


@pytest.mark.usefixtures("reader")
def test_numbers_are_read_to_the_last_bit_as_python_reads_them(tmp_path: Path) -> None:
    texts = [
        "0.1",
        "1e-320",
        "123456789012345680",
        "2.2250738585072011e-308",
        "9007199254740992",
        "12345678901234567.8",
        "-0.0",
        ".5",
        "5.",
        "+7",
    ]
    table = read_table(written(tmp_path, "a\n" + "\n".join(texts) + "\n"))
    assert values(table).ravel().tolist() == [float(text) for text in texts]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("kind", ["csv", "quoted", "parquet", "feather", "decimal"])
@pytest.mark.parametrize("role", ["feature", "target"])
def test_whole_numbers_that_float64_would_round_are_refused(tmp_path: Path, kind: str, role: str) -> None:
    number, name = 2**60 + 1, f"t.{'csv' if kind == 'quoted' else 'parquet' if kind == 'decimal' else kind}"
    frame = pd.DataFrame({"a": [1, 2, 2**60, number], "b": [0.5, 1.5, 2.5, 3.5]})
    if kind == "csv":
        frame.to_csv(tmp_path / name, index=False)
    elif kind == "quoted":
        rows = "".join(f'"{a}",{b}\n' for a, b in zip(frame.a, frame.b, strict=True))
        (tmp_path / name).write_text(f"a,b\n{rows}")
    elif kind == "parquet":
        frame.to_parquet(tmp_path / name)
    elif kind == "decimal":
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        table = pa.table({"a": pa.array(frame.a.tolist(), pa.decimal128(25)), "b": frame.b.to_numpy()})
        pq.write_table(table, tmp_path / name)
    else:
        frame.to_feather(tmp_path / name)
    where = "line 5" if name.endswith("csv") else "row 4"
    with pytest.raises(SourceError, match=rf"'a'.*{number}|{number}.*'a'") as error:
        read_table(tmp_path / name, target="a" if role == "target" else None)
    assert where in str(error.value)
    assert read_table(tmp_path / name, drop="a").names == ["b"]


WIDE_TEXTS = {
    "numbers": "a,b,c\n1,2.5,-3e2\n4,5,6\n",
    "no header": "1,2,3\n4,5,6\n",
    "missing": "a,b,c\n,NA,\n4,,\n,,\n7,8,\n",
    "blank lines": "a,b\n\n1,2\n\n\n3,4\n",
    "no last line end": "a,b\n1,2\n3,",
    "line ends of Windows": "a,b\r\n1,2\r\n3,NA\r\n",
    "decimal comma": "a;b\n1,5;2\n3;4,25\n",
    "row names": ",a,b\nu,1,2\nv,3,4\nw,5,6\n",
    "text": "a,kind,b\n1,x,2\n3,y,4\n5,,6\n",
    "truth values": "a,t,b\n1,true,2\n3,false,4\n",
    "text later": "a,b\n1,2\nx,4\n5,6\n",
    "blanks": "a, b\n1, 2\n3, 4\n",
    "quotes": 'a,b\n"1",2\n3,"4"\n',
    "ragged": "a,b\n1,2\n3\n5,6\n",
    "infinite": "a,b\n1,inf\n2,3\n",
}


@pytest.mark.parametrize("piece", [2**25, 8])
@pytest.mark.parametrize("columns", [None, ["b"], ["b", "a"]])
@pytest.mark.parametrize("text", WIDE_TEXTS.values(), ids=WIDE_TEXTS)
def test_wide_tables_are_read_as_narrow_ones_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, columns: Any, piece: int
) -> None:
    path, found = written(tmp_path, text), []
    monkeypatch.setattr(_text_files, "PIECE", piece)
    monkeypatch.setattr(_text_files, "SMALL", 0)
    for wide in (0, 10**9):
        monkeypatch.setattr(_text_files, "WIDE", wide)
        try:
            table = read_table(path, columns=columns, categorical="onehot")
            found.append([table.names, table.ids, table.missing, repr(values(table).tolist())])
        except SourceError as error:
            found.append([str(error)])
    assert repr(found[0]) == repr(found[1])


def test_a_wide_table_does_not_go_the_long_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(3, 5000))
    rows = "".join(f"u{i}," + ",".join(map(repr, row.tolist())) + f",{i % 2 == 1}\n" for i, row in enumerate(X))
    path = written(tmp_path, "id," + ",".join(f"c{j}" for j in range(5000)) + ",kind\n" + rows)
    monkeypatch.setattr(_text_files, "_read_pieces", None)
    monkeypatch.setattr(_text_files, "SMALL", 0)
    table = read_table(path, id="id", label="kind")
    assert_array_equal(values(table), X)
    assert table.label is not None
    assert table.label.tolist() == ["False", "True", "False"]


@pytest.mark.parametrize(
    "text", ["a\n" + "0\n" * 200_000, "0" * 400_000, '"a"\n' + '"0\n' * 99_999], ids=["rows", "line", "quote"]
)
def test_what_unpacks_past_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = written(tmp_path, gzip.compress(text.encode()), "t.csv.gz")
    monkeypatch.setattr(_text_files, "PIECE", 2**12)
    monkeypatch.setattr(_text_files, "CHUNK", 2**12)
    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 10**5)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises((MemoryError, SourceError), match=r"available|quote"):
        read_table(path)


@pytest.mark.usefixtures("reader")
def test_pieces_of_a_file_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces; columns that change their minds late; quotes that hold line ends."""
    rows = [(i, f"{i}.5" if i > 150 else str(i), f'"a\n{i}"' if i == 120 else f"w{i % 3}") for i in range(200)]
    path = written(tmp_path, "n,late,word\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    whole = read_table(path, label="word")
    for size in (7, 64, 1000):
        monkeypatch.setattr(_text_files, "PIECE", size)
        table = read_table(path, label="word")
        assert_array_equal(values(table), values(whole))
        assert_array_equal(table.label, whole.label)
    assert values(whole)[151].tolist() == [151.0, 151.5]
    assert whole.label is not None
    assert whole.label[120] == "a\n120"
    path = written(tmp_path, "a,b\n" + "1,2\n" * 100 + "x,3\n")
    with pytest.raises(ValueError, match=r"'a': 100 of 101 cells.*'x'.*102\)"):
        read_table(path)


@pytest.mark.parametrize("names", [["2001", "2002", "2003"], ["0", "1", "2"]])
def test_columns_called_by_numbers_beside_a_column_of_text(tmp_path: Path, names: list[str]) -> None:
    frame = pd.DataFrame([[1.5, 2, 3], [4, 5, 6]], index=pd.Index(["FR", "DE"], name="country"), columns=names)
    path = tmp_path / "t.csv"
    frame.to_csv(path)
    table = read_table(path, id="country")
    assert table.names == names
    assert table.ids is not None
    assert table.ids.tolist() == ["FR", "DE"]
    assert_array_equal(values(table), frame.to_numpy())


def test_many_double_names(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, ",".join(["a"] * 20_000) + "\n" + ",".join(["1"] * 20_000) + "\n"))
    assert table.names == ["a", *(f"a.{j}" for j in range(2, 20_001))]
    assert len(table.notes) == 7
    assert table.notes[-1] == "19994 more columns with double names are renamed so"


def test_a_wide_table(tmp_path: Path) -> None:
    X = np.arange(2 * 10_000).reshape(2, -1) % 997
    text = ",".join(f"gene{j}" for j in range(10_000)) + "\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n"
    assert_array_equal(values(read_table(written(tmp_path, text))), X)


# -- what is found out ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("5.1,3.5\n4.9,3.0\n", ["x1", "x2"], [[5.1, 3.5], [4.9, 3.0]]),
        ("0,1,2\n1.5,2,3\n4,5,6\n", ["0", "1", "2"], [[1.5, 2, 3], [4, 5, 6]]),
        ("0,1,2\n1,2,3\n", ["x1", "x2", "x3"], [[0, 1, 2], [1, 2, 3]]),
        ("2001,2002\n15,25\n3,4\n", ["2001", "2002"], [[15, 25], [3, 4]]),
        ("1990,2000,2010\n1.5,2,3\n", ["1990", "2000", "2010"], [[1.5, 2, 3]]),
        ("2001,2002\n2002,2003\n7,8\n", ["x1", "x2"], [[2001, 2002], [2002, 2003], [7, 8]]),
        ("1990,2003\n15,25\n", ["x1", "x2"], [[1990, 2003], [15, 25]]),
        ("2001 2002\nFR 1 2\nDE 3 4\n", ["2001", "2002"], [[1, 2], [3, 4]]),
        ("height\n1,5\n2,5\n", ["height"], [[1.5], [2.5]]),
        ("  1.0   2.0\n 10.0  20.0 \n", ["x1", "x2"], [[1, 2], [10, 20]]),
        ('"a" "b"\n"1" 5 6\n"2" 7 8\n', ["a", "b"], [[5, 6], [7, 8]]),
        ("a , b\n 1 , NA\n3, 5\n", ["a", "b"], [[1, np.nan], [3, 5]]),
        ('"1,5","2"\n"0,25","3"\n', ["x1", "x2"], [[1.5, 2], [0.25, 3]]),
        ("a;b\n1,234;5\n2,345;6\n", ["a", "b"], [[1.234, 5], [2.345, 6]]),
        ("\n\na,b\n\n1,2\n\n3,4\n\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("a,b\r1,2\r3,4\r", ["a", "b"], [[1, 2], [3, 4]]),
        ("size, cm;mass, kg\n1,5;2,5\n", ["size, cm", "mass, kg"], [[1.5, 2.5]]),
        ("a,b\n1,\n,2\n", ["a", "b"], [[1, np.nan], [np.nan, 2]]),
        ("ok,b\nTRUE,1\nfalse,2\n", ["ok", "b"], [[1, 1], [0, 2]]),
    ],
)
def test_ways_of_writing(tmp_path: Path, text: str, names: list[str], rows: list[list[float]]) -> None:
    table = read_table(written(tmp_path, text))
    assert table.names == names
    assert_array_equal(values(table), np.array(rows, dtype=float))


@pytest.mark.usefixtures("reader")
def test_a_comma_that_may_group_thousands_is_not_guessed_at(tmp_path: Path) -> None:
    path = written(tmp_path, 'price,b\n"1,234",3\n"2,345",6\n')
    with pytest.raises(ValueError, match=r"1,234 may.*1\.234 or 1234: say decimal=','"):
        read_table(path)
    assert values(read_table(path, decimal=","))[0, 0] == 1.234


@pytest.mark.usefixtures("reader")
def test_every_way_to_write_missing(tmp_path: Path) -> None:
    marks = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?", "."]
    table = read_table(written(tmp_path, "a,b\n" + "".join(f"{mark},1\n" for mark in marks) + "5,1\n"))
    assert np.isnan(values(table)[:-1, 0]).all()
    assert table.missing == {"a": len(marks)}
    assert table.notes[1] == f"{len(marks)} cells missing in 1 column (a {len(marks)})"
    with pytest.raises(ValueError, match=r"'None'.*line 2"):  # None may be a level of a text column
        read_table(written(tmp_path, "a,b\nNone,1\n5,1\n"))


def test_names_that_are_double_or_absent_are_made_up_and_told(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "a,a,,a\n1,2,3,4\n5,6,7,9\n"))
    assert table.names == ["a", "a.2", "x3", "a.3"]
    assert table.notes[1:] == (
        "column 2 is called 'a.2': there is an 'a' already",
        "column 4 is called 'a.3': there is an 'a' already",
    )


def test_a_column_that_counts_the_rows_is_pointed_out(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "n,a\n" + "".join(f"{i},{i * i}\n" for i in range(1, 8))))
    assert table.notes[-1].startswith("column n counts the rows from 1; drop it, or give it as id")


def test_columns_of_one_value_are_pointed_out(tmp_path: Path) -> None:
    rows = [f"{i * i},7,{'' if i % 2 else 0.5},{int(i == 150)}" for i in range(160)]
    path = written(tmp_path, "\n".join(["varies,same,gaps,late", *rows]))
    found = [note for note in read_table(path).notes if note.startswith("one value")]
    assert [note.partition(": ")[2] for note in found] == ["same, gaps"]
    new = read_table(path, like=["varies", "same", "gaps", "late"])  # of new rows that is no news
    assert not any(note.startswith("one value") for note in new.notes)


def test_what_opens_a_file_of_text_says_where_its_remedies_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "a,sex\n1,m\n2,f\n")
    with pytest.raises(SourceError, match="read_table"):
        gramian.open(path)
    with pytest.raises(SourceError) as caught:
        read_table(path)
    assert "read_table" not in str(caught.value)


# -- roles ------------------------------------------------------------------------------------------------------------

PEOPLE = "name,age,sex,code,y\nAnn,30,f,007,1.5\nBo,40,m,010,2.5\nCy,NA,m,NA,3.5\n"


@pytest.mark.usefixtures("reader")
def test_roles(tmp_path: Path) -> None:
    path = written(tmp_path, PEOPLE)
    table = read_table(path, target="y", label="code", id="name", categorical="onehot")
    assert table.names == ["age", "sex=f", "sex=m"]
    assert_array_equal(values(table), [[30, 1, 0], [40, 0, 1], [np.nan, 0, 1]])
    assert_array_equal(table.target, [1.5, 2.5, 3.5])
    assert table.label is not None
    assert table.label.tolist() == ["007", "010", "NA"]  # as they are written
    assert table.ids is not None
    assert table.ids.tolist() == ["Ann", "Bo", "Cy"]
    assert "column sex: one-hot of 2" in table.notes
    assert read_table(path, columns=["y", "age"]).names == ["y", "age"]
    assert read_table(path, columns=5).names == ["y"]
    assert read_table(path, drop=["name", "sex"]).names == ["age", "code", "y"]
    assert read_table(path, categorical="drop").notes[1] == "left out, being no numbers: name, sex"
    classes = read_table(path, target="sex", columns="age").target
    assert classes is not None
    assert classes.tolist() == ["f", "m", "m"]


@pytest.mark.usefixtures("reader")
def test_the_levels_of_one_hot_codes_agree_with_pandas(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"u": rng.normal(size=50), "town": rng.choice(["Ulm", "Bonn", "Köln", "a=b"], 50)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", categorical="onehot")
    expected = pd.get_dummies(frame, prefix_sep="=")
    assert table.names == list(expected.columns)
    np.testing.assert_allclose(values(table), expected.to_numpy(dtype=float), rtol=1e-15)


def test_columns_by_number_where_there_are_no_names(tmp_path: Path) -> None:
    path = written(tmp_path, "5.1,3.5,setosa\n4.9,3,setosa\n7,3,virginica\n")
    for label in (3, "3", "x3"):
        table = read_table(path, label=label)
        assert table.label is not None
        assert table.label.tolist() == ["setosa", "setosa", "virginica"]
        assert table.names == ["x1", "x2"]
    with pytest.raises(ValueError, match=r"column 4.*label="):
        read_table(path, label=4)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target": "agee"}, r"t\.csv: no column 'agee' for target=; near it: age"),
        ({"label": "NAME"}, "no column 'NAME' for label=; near it: name"),
        ({"id": "zzzz"}, "no column 'zzzz' for id=; the columns are name, age, sex, code, y"),
        ({"drop": "5"}, "no column '5' for drop="),
        ({"columns": ["age", "y"], "target": "y"}, "'y' is the target and in columns; name it once"),
        ({"drop": ["y"], "label": "y"}, "'y' is the label and in drop"),
        ({"columns": ["age"], "drop": ["age"]}, "'age' is in columns and in drop"),
        ({"columns": ["age"], "drop": ["age"], "like": ["age"]}, "columns= and drop= cannot be given too"),
        ({"columns": ["name"], "categorical": "drop"}, "no column of numbers is left"),
        ({"categorical": "ordinal"}, "categorical='ordinal': give one of refuse, onehot, drop"),
        ({"missing": "zero"}, "missing='zero': give one of keep, refuse, drop, mean"),
        ({"delimiter": "::"}, "delimiter='::': give one character"),
        ({"decimal": "'"}, 'decimal="\'": give'),
        ({"dataset": "X"}, r"\.csv file holds one table"),
        ({}, r"Columns without numbers: name \(text, 'Ann' in line 2\), sex \(text, 'f' in line 2\)\. Encode"),
        ({"drop": ["name", "sex"], "missing": "refuse"}, r"2 cells missing in 2 columns \(age 1, code 1\)\. Leave"),
    ],
)
def test_wrong_choices_are_told(tmp_path: Path, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        read_table(written(tmp_path, PEOPLE), **options)


def test_the_columns_of_an_earlier_table(tmp_path: Path) -> None:
    first = read_table(written(tmp_path, PEOPLE), drop=["name", "code"], categorical="onehot")
    again = read_table(written(tmp_path, "y,extra,sex,age\n9,8,m,50\n"), like=first.names)
    assert again.names == first.names == ["age", "sex=f", "sex=m", "y"]
    assert values(again).tolist() == [[50, 0, 1, 9]]
    new = read_table(written(tmp_path, "y,sex,age\n9,x,50\n8,f,40\n"), like=first.names)
    assert_array_equal(values(new), [[50, np.nan, np.nan, 9], [40, 1, 0, 8]])
    assert any("'x'" in note and "sex" in note and "1 of 2" in note for note in new.notes)
    with pytest.raises(ValueError, match="'sex' is numbers"):
        read_table(written(tmp_path, "y,sex,age\n9,1,50\n"), like=first.names)
    with pytest.raises(ValueError, match=r"2 of 4 columns.*sex=f, sex=m"):
        read_table(written(tmp_path, "y,age\n9,50\n"), like=first.names)
    with pytest.raises(ValueError, match=r"age .*'old' in line 2"):
        read_table(written(tmp_path, "y,sex,age\n9,f,old\n"), like=first.names)


# -- missing values ---------------------------------------------------------------------------------------------------

GAPS = "a,b,y,who\n1,2,1,p\n,4,2,q\n5,NA,3,r\n7,9,,s\n"


@pytest.mark.usefixtures("reader")
def test_missing_values_agree_with_pandas(tmp_path: Path) -> None:
    path = written(tmp_path, GAPS)
    frame = pd.read_csv(path)[["a", "b"]]
    kept = read_table(path, columns=["a", "b"])
    assert_array_equal(values(kept), frame)
    assert kept.missing == {"a": 1, "b": 1}
    filled = read_table(path, columns=["a", "b"], missing="mean")
    np.testing.assert_allclose(values(filled), frame.fillna(frame.mean()), rtol=1e-15)
    dropped = read_table(path, columns=["a", "b"], missing="drop", id="who")
    assert_array_equal(values(dropped), frame.dropna())
    assert dropped.ids is not None
    assert dropped.ids.tolist() == ["p", "s"]
    assert dropped.notes[-1] == "2 cells missing in 2 columns (a 1, b 1): 2 rows left out"


@pytest.mark.usefixtures("reader")
def test_a_missing_target_is_never_filled_in(tmp_path: Path) -> None:
    path = written(tmp_path, GAPS)
    for rule in ("keep", "mean", "refuse"):
        with pytest.raises(ValueError, match=r"target.*1 of 4 rows.*5\)"):
            read_table(path, columns="a", target="y", missing=rule)
    table = read_table(path, columns="a", target="y", missing="drop", label="who")
    assert_array_equal(table.target, [1.0, 3.0])
    assert table.label is not None
    assert table.label.tolist() == ["p", "r"]
    assert_array_equal(values(table), [[1.0], [5.0]])


def test_columns_and_tables_with_nothing_in_them(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,\n2,\n")
    assert np.isnan(values(read_table(path))[:, 1]).all()
    for rule in ("mean", "drop"):
        with pytest.raises(ValueError, match="'b'"):
            read_table(path, missing=rule)
    with pytest.raises(ValueError, match="complete"):
        read_table(written(tmp_path, "a,b\n1,\n,2\n"), missing="drop")


# -- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", r"t\.csv: the file is empty \(0 bytes\)"),
        ("\n \n", "nothing but blank lines"),
        ("a,b\n", r"a header row \(a, b\) and no rows of data"),
        ("a,b", "no rows of data"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells where the header has 2"),
        ("a,b\n1,2\n\n3,4,5\n", "line 4: 3 cells where the header has 2"),
        ("1,2\n3,4\n5\n", "line 3: 1 cells where the first row has 2"),
        ('a,b\n1,"x\ny"\n2,z,3\n', "line 4: 3 cells"),
        ("a,b\n1,2\n3,inf\n", r"column 'b' is inf \(line 3\)"),
        ("a,b\n1,2\n3,-1e999\n", r"column 'b' is -inf \(line 3\)"),
        ('a,b\n1,"2\n3,4\n5,6\n', "line 2: a quote (.*) opens here"),
        ('a,b\n1,"2\n3,4\n5,"6\n', "line 2: a quote (.*) opens here"),
        (b"a,b\n1,\x81\n", r"line 2: byte 0x81 at position 6 is not UTF-8"),
        ("ä,b\n".encode() + b"1,2\n" * 40_000 + b"3,\xff\n", r"line 40002: byte 0xff at position 160007 is not UTF-8"),
        (b"\xff\xfea\0,\0b\0\n\0001", "line .*utf-16"),
        (b"PAR1\0\0\0\0", r"not a readable \.csv file: it holds a Parquet file .* Rename it to end in \.parquet"),
        (b"\x00\x01\x02\x03", "binary data of no known kind"),
        ("day,b\n2020-01-01,3\n2020-01-02,6\n", r"day \(dates or times\)\. Make dates .* dates='days'"),
        ("a,b\n" + "1,2\n" * 20 + "x,2\n", r"column 'a': 20 of 21 cells are numbers, and 'x' \(line 22\) is not"),
    ],
)
def test_bad_texts_are_refused_with_line_and_column(tmp_path: Path, text: str | bytes, match: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=match):
        read_table(path)
    if "inf" not in match:  # of these gramian.open leaves the refusal to what is fitted
        with pytest.raises(ValueError, match=r"t\.csv: "):
            gramian.open(path)


@pytest.mark.usefixtures("reader")
def test_a_stray_quote_in_a_column_that_is_left_out_does_not_swallow_rows(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,note\n1,"open\n2,x\n3,y\n')
    with pytest.raises(ValueError, match="line 2"):
        read_table(path, drop="note")
    path = written(tmp_path, 'a,note\n1,5" pipe\n2,x\n3,y\n')  # within a cell a quote is a character
    assert values(read_table(path, drop="note")).ravel().tolist() == [1, 2, 3]


def test_dates_and_names_have_no_one_hot_code(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'day'"):
        read_table(written(tmp_path, "day,b\n2020-01-01,3\n2020-01-02,6\n"), categorical="onehot")
    rows = "".join(f"person {i},{i % 7}\n" for i in range(30))
    with pytest.raises(ValueError, match=r"'who'.*30 different.*30 rows.*id="):
        read_table(written(tmp_path, "who,b\n" + rows), categorical="onehot")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("categorical", ["refuse", "drop", "onehot"])
def test_numbers_with_a_slip_are_refused_whatever_is_done_with_text(tmp_path: Path, categorical: str) -> None:
    path = written(tmp_path, "a,b\n" + "".join(f"{i},{i % 5}\n" for i in range(20)) + "7,1O\n")
    with pytest.raises(ValueError, match=r"'b': 20 of 21 cells.*'1O'.*22\)"):
        read_table(path, categorical=categorical)


def test_files_that_are_not_there_or_not_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_table(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="folder"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(ValueError, match=r"'\.doc'; .*\.npy, .*\.csv"):
        read_table(tmp_path / "x.doc")
    damaged = gzip.compress(b"a,b\n" + b"1,2\n" * 9999)[:-20]
    with pytest.raises(ValueError, match=r"t\.csv\.gz"):
        read_table(written(tmp_path, damaged, "t.csv.gz"))
    with pytest.raises(ValueError, match="compressed"):
        read_table(written(tmp_path, "a,b\n1,2\n", "t.csv.gz"))


def test_texts_of_any_size_are_read_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "a,b\n1,2\n")
    monkeypatch.setattr(_text_files, "SMALL", 0)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    load_pyarrow.cache_clear()
    for read in (lambda path: read_table(path).source, gramian.open):
        assert read(path).values.tolist() == [[1, 2]]


# -- checksum, standard input -----------------------------------------------------------------------------------------


class Pipe:
    """Standard input with bytes behind it."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)

    def isatty(self) -> bool:
        return False


def npy(X: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, X)
    return out.getvalue()


X = np.arange(6.0).reshape(3, 2) ** 2


@pytest.mark.parametrize(
    "data",
    [b"a,b\n0,1\n4,9\n16,25\n", b"0\t1\n4\t9\n16\t25\n", gzip.compress(b"a;b\n0;1\n4;9\n16;25\n", mtime=0), npy(X)],
)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Pipe(data))
    table = read_table("-")
    for _ in range(2):  # it can be read again
        assert_array_equal(np.concatenate([np.array(b.values) for b in table.source.blocks(2)]), X)
    assert table.checksum() == hashlib.sha256(data).hexdigest()
    assert str(table.path) == "-"
    monkeypatch.setattr(sys, "stdin", Pipe(data))
    assert gramian.open("-").shape == (3, 2)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "standard input is empty"),
        (b"\0\1\2", "standard input holds binary data of no known kind"),
        (b"a,b\n1,2\n3\n", "^standard input: line 3: 1 cells"),
    ],
)
def test_bad_standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes, match: str) -> None:
    for read in (read_table, gramian.open):
        monkeypatch.setattr(sys, "stdin", Pipe(data))
        with pytest.raises(ValueError, match=match):
            read("-")


def test_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Pipe(b"")
    monkeypatch.setattr(pipe, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", pipe)
    with pytest.raises(ValueError, match="is a terminal"):
        read_table("-")


def test_checksum_and_repr(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\n3,4\n")
    table = read_table(path, target="b")
    assert table.checksum() == hashlib.sha256(path.read_bytes()).hexdigest()
    assert repr(table) == "t.csv: 2 rows, 1 column, target\n  delimiter ',', decimal point, header row"
