"""What tables of other programs look like: encodings, signs around numbers, dates, workbooks, packings, empty rows."""

from __future__ import annotations

import bz2
import datetime
import gzip
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gramian
from gramian.sources import SourceError, read_table
from gramian.sources import text as _text_files


@pytest.fixture(params=["python", "pyarrow"], autouse=True)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed (gramian[tables])")
    monkeypatch.setattr(_text_files, "SMALL", 2**40 if request.param == "python" else 0)
    return str(request.param)


def read(folder: Path, data: str | bytes, name: str = "t.csv", **options: Any) -> Any:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_table(path, **options)


# -- encodings --------------------------------------------------------------------------------------------------------

TEXT = "Länge;Straße\n1,5;3\n2,5;4\n"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_are_found_out(tmp_path: Path, encoding: str) -> None:
    table = read(tmp_path, TEXT.encode(encoding))
    assert table.names == ["Länge", "Straße"]
    assert_array_equal(table.source.values, [[1.5, 3], [2.5, 4]])
    assert_array_equal(gramian.open(tmp_path / "t.csv").values, table.source.values)  # type: ignore[attr-defined]


def test_an_encoding_that_cannot_be_found_out_is_given(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT.encode("mac-roman"), encoding="mac-roman").names == ["Länge", "Straße"]
    with pytest.raises(SourceError, match="'klingon'"):
        read(tmp_path, TEXT, encoding="klingon")
    with pytest.raises(SourceError, match=r"line 1: byte 0xe4 at position 1 .*encoding="):
        read(tmp_path, TEXT.encode("cp1252"), encoding="utf-8")
    with pytest.raises(SourceError, match=r"line 1: byte .* shift_jis"):
        read(tmp_path, b"\x85\x20,b\n1,2\n", encoding="shift_jis")


def test_a_letter_of_another_encoding_far_below_the_header(tmp_path: Path) -> None:
    lines = "who,x\n" + "a,1\nb,2\n" * 10_000 + "ü,3\n"
    table = read(tmp_path, lines.encode("cp1252"), id="who")
    assert table.ids[-1] == "ü"
    assert "cp1252" in table.notes[0]


def test_a_damaged_text_in_utf_8_is_not_taken_for_another_encoding(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"line 3: byte 0xff at position \d+ is not UTF-8"):
        read(tmp_path, "ä,b\n1,2\n".encode() + b"\xff,3\n")


# -- numbers with signs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,234.50", "$7", "($3.25)", "-$1"], [1234.5, 7, -3.25, -1]),
        (["1.234,50 €", "7,00 €", "−5 €"], [1234.5, 7, -5]),
        (["12%", "5 %", "0.5%"], [12, 5, 0.5]),
        (["1,234", "999", "12"], [1234, 999, 12]),
        (["1,234,567", "2,000"], [1234567, 2000]),
        (["1 234,5", "7 000"], [1234.5, 7000]),
        (["1'234.5", "7"], [1234.5, 7]),
        (["1\N{NO-BREAK SPACE}234", "NA"], [1234, np.nan]),
        (["0,512", "1,234"], [0.512, 1.234]),
        (["£.50", "£2"], [0.5, 2]),
    ],
)
def test_signs_around_and_between_digits(tmp_path: Path, cells: list[str], numbers: list[float]) -> None:
    table = read(tmp_path, "a\tb\n" + "".join(f"{cell}\t{i}\n" for i, cell in enumerate(cells)))
    assert_array_equal(table.source.values[:, 0], numbers)
    assert table.names == ["a", "b"]


@pytest.mark.parametrize("cells", [["$5", "€6"], ["5%", "6"], ["$5", "x"], ["(5", "6"]])
def test_signs_that_contradict_each_other_are_no_numbers(tmp_path: Path, cells: list[str]) -> None:
    text = "a;b\n" + "".join(f'"{cell}";1\n' for cell in cells)
    for rule in ("refuse", "label"):
        with pytest.raises(SourceError, match=r"'a'|a \(text"):
            read(tmp_path, text, categorical=rule)


def test_one_comma_before_three_digits_is_not_guessed_at(tmp_path: Path) -> None:
    text = 'n,m\n"1,234",1\n"9,999",2\n'
    for rule in ("refuse", "label", "onehot", "drop"):
        with pytest.raises(SourceError, match=r"decimal=','.*decimal='\.'"):
            read(tmp_path, text, categorical=rule)
    assert read(tmp_path, text, decimal=".").source.values[:, 0].tolist() == [1234, 9999]
    assert read(tmp_path, text, decimal=",").source.values[:, 0].tolist() == [1.234, 9.999]
    with pytest.raises(SourceError, match="12,345,678,901,234,567"):
        read(tmp_path, 'n,m\n"12,345,678,901,234,567",1\n"9,999",2\n')


def test_numbers_of_other_scripts_and_languages_are_no_numbers(tmp_path: Path) -> None:
    for cell in ("1_000", "٣", "1e", "1.2.3", "--5"):
        with pytest.raises(SourceError, match=r"a \(text"):
            read(tmp_path, f"a,b\n{cell},1\n5,2\n")


# -- dates ------------------------------------------------------------------------------------------------------------


def test_dates_as_days(tmp_path: Path) -> None:
    text = "day,at,x\n1970-01-02,06:00,1\n2020-02-29 12:00,18:00,2\nNA,00:00,3\n"
    table = read(tmp_path, text, dates="days")
    assert table.names == ["day (days)", "at (days)", "x"]
    leap = (datetime.date(2020, 2, 29) - datetime.date(1970, 1, 1)).days
    assert_array_equal(table.source.values, [[1, 0.25, 1], [leap + 0.5, 0.75, 2], [np.nan, 0, 3]])
    again = read(tmp_path, "x,at,day\n5,12:00,1970-01-03\n", like=table.names)
    assert_array_equal(again.source.values, [[2, 0.5, 5]])
    assert read(tmp_path, text, categorical="label").names == ["x"]
    with pytest.raises(SourceError, match="day"):
        read(tmp_path, text, categorical="onehot")
    assert read(tmp_path, "day,x\n2020-02-30,1\n2020-01-01,2\n", categorical="drop").names == ["x"]  # no such day


def test_dates_of_parquet_files_as_days(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    when = pd.to_datetime(["1970-01-02 12:00", None])
    pd.DataFrame({"when": when, "x": [1.0, 2.0]}).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", dates="days")
    assert_array_equal(table.source.values, [[1.5, 1], [np.nan, 2]])  # type: ignore[attr-defined]


# -- text beside numbers ----------------------------------------------------------------------------------------------

CARS = "name,mpg,origin,hp,fuel\n" + "".join(
    f"car {i},{20 + i % 7},{('usa', 'japan', 'europe')[i % 3]},{90 + i},{'gas' if i % 2 else ''}\n" for i in range(24)
)


def test_text_columns_label_and_name_the_rows(tmp_path: Path) -> None:
    table = read(tmp_path, CARS, categorical="label")
    assert table.names == ["mpg", "hp"]
    assert table.label_name == "origin"
    assert table.label.tolist() == ["usa", "japan", "europe"] * 8
    assert table.ids.tolist() == [f"car {i}" for i in range(24)]
    assert [note for note in table.notes if "origin" in note or "name" in note or "fuel" in note] == [
        "text column origin: labels the rows, and is not fitted",
        "text column name: names the rows, and is not fitted",
        "left out, being no numbers: fuel",
    ]
    table = read(tmp_path, CARS, categorical="label", label="fuel", id="origin")
    assert table.label_name == "fuel"
    assert table.ids.tolist() == ["usa", "japan", "europe"] * 8
    assert read(tmp_path, CARS, categorical="label", drop="origin").label is None
    with pytest.raises(SourceError, match="origin"):  # which was asked for
        read(tmp_path, CARS, categorical="label", columns=["mpg", "origin"])


def test_a_column_of_numbers_with_slips_does_not_label_the_rows(tmp_path: Path) -> None:
    text = "a,b\n" + "".join(f"{'<1' if i % 3 == 0 else i},{i}\n" for i in range(12))
    with pytest.raises(SourceError, match=r"'a': 8 of 12 cells are numbers, and '<1' \(line 2\)"):
        read(tmp_path, text, categorical="label")


# -- empty rows and columns -------------------------------------------------------------------------------------------


def test_rows_and_columns_with_nothing_in_them(tmp_path: Path) -> None:
    text = "who;a;b;c;\nu;1;2;;\nv;;;;\nw;3;;;\nx;;;;\ny;5;6;;\n"
    table = read(tmp_path, text, id="who", keep_empty=False)
    assert table.names == ["a", "b"]
    assert_array_equal(table.source.values, [[1, 2], [3, np.nan], [5, 6]])
    assert table.ids.tolist() == ["u", "w", "y"]
    assert table.rows.tolist() == [0, 2, 4]
    assert table.missing == {"b": 1}
    assert any("2 columns" in note and "c, x5" in note for note in table.notes)
    assert any("2 rows" in note and "line 3, line 5" in note for note in table.notes)
    whole = table.by_row({"x": np.array([0.5, 1.5, 2.5]), "k": np.array([1, 2, 3]), "t": np.array(["p", "q", "r"])})
    assert whole["row"].tolist() == [1, 2, 3, 4, 5]
    assert whole["id"].tolist() == list("uvwxy")
    assert_array_equal(whole["x"], [0.5, np.nan, 1.5, np.nan, 2.5])
    assert whole["k"].tolist() == [1, None, 2, None, 3]
    assert whole["t"].tolist() == ["p", None, "q", None, "r"]
    kept = read(tmp_path, text, id="who")
    assert kept.source.shape == (5, 4)
    assert kept.rows is None
    with pytest.raises(SourceError, match="nothing to fit"):
        read(tmp_path, "a,b\n,\nNA,\n", keep_empty=False, header=True)


@pytest.mark.parametrize("missing", ["drop", "mean", "keep"])
def test_empty_rows_and_columns_come_before_missing_cells(tmp_path: Path, missing: str) -> None:
    table = read(tmp_path, "a,b,c\n1,2,\n,,\n,4,\n5,6,\n", missing=missing, keep_empty=False)
    assert table.names == ["a", "b"]
    expected = {"drop": [[1, 2], [5, 6]], "mean": [[1, 2], [3, 4], [5, 6]], "keep": [[1, 2], [np.nan, 4], [5, 6]]}
    assert_array_equal(table.source.values, expected[missing])
    assert table.rows.tolist() == ([0, 3] if missing == "drop" else [0, 2, 3])


def test_columns_that_a_model_needs_stay_though_they_are_empty(tmp_path: Path) -> None:
    table = read(tmp_path, "b,a\n,1\n,2\n", like=["a", "b"], keep_empty=False)
    assert_array_equal(table.source.values, [[1, np.nan], [2, np.nan]])


# -- packings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_packed_texts(tmp_path: Path, ending: str) -> None:
    text = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(500))
    if ending == ".zst":
        pa = pytest.importorskip("pyarrow")
        packed = pa.Codec("zstd").compress(text, asbytes=True)
    else:
        packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[ending](text)
    table = read(tmp_path, packed, f"t.csv{ending}")
    assert_array_equal(table.source.values[:, 1], np.arange(500.0) ** 2)
    with pytest.raises(SourceError, match=rf"t\.csv\{ending}"):
        read(tmp_path, packed[: len(packed) // 2], f"t.csv{ending}")
    with pytest.raises(SourceError, match="not compressed"):
        read(tmp_path, text, f"t.csv{ending}")


# -- workbooks --------------------------------------------------------------------------------------------------------

CELLS = {str: '<c t="inlineStr"><is><t>{}</t></is></c>', float: "<c><v>{!r}</v></c>", bool: '<c t="b"><v>{:d}</v></c>'}


def write_workbook(path: Path, **sheets: list[list[Any]]) -> None:
    """A workbook of inline cells, the smallest that Excel opens."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    with zipfile.ZipFile(path, "w") as file:
        names = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, 1))
        file.writestr("xl/workbook.xml", f'<workbook {main} xmlns:r="{office}"><sheets>{names}</sheets></workbook>')
        links = "".join(
            f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        relations = f'<Relationships xmlns="{package}/relationships">'
        file.writestr("xl/_rels/workbook.xml.rels", f"{relations}{links}</Relationships>")
        root = f'<Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
        file.writestr("_rels/.rels", f"{relations}{root}</Relationships>")
        parts = "".join(
            f'<Override PartName="/xl/worksheets/s{i}.xml" ContentType="{kind}.worksheet+xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        book = f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        xml = '<Default Extension="xml" ContentType="application/xml"/>'
        file.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types">{xml}{book}{parts}</Types>')
        for i, rows in enumerate(sheets.values(), 1):
            body = "".join(
                f"<row>{''.join('<c/>' if c is None else CELLS[type(c)].format(c) for c in row)}</row>" for row in rows
            )
            file.writestr(f"xl/worksheets/s{i}.xml", f"<worksheet {main}><sheetData>{body}</sheetData></worksheet>")


def test_workbooks(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed (gramian[tables])")
    path = tmp_path / "people.xlsx"
    people = [["name", "height", "ok", "share", None], ["Ann", 1.5, True, "12%", None], ["Bo", None, False, "7%", None]]
    people += [[None] * 5, ["Cy", 0.1, True, "5%", None]]
    write_workbook(path, cover=[], people=people, more=[[1.0, 2.0], [3.0, 4.5], [5.0, 6.0]])
    table = read_table(path, categorical="label", keep_empty=False)
    assert table.names == ["height", "ok", "share"]
    assert_array_equal(table.source.values, [[1.5, 1, 12], [np.nan, 0, 7], [0.1, 1, 5]])  # type: ignore[attr-defined]
    assert table.ids is not None
    assert table.ids.tolist() == ["Ann", "Bo", "Cy"]
    assert "people" in table.notes[0]
    assert "more" in table.notes[0]
    second = read_table(f"{path}::more")
    assert second.names == ["x1", "x2"]
    assert_array_equal(gramian.open(path, dataset="more").values, second.source.values)  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match=r"'nowhere'.*people.*more"):
        read_table(path, dataset="nowhere")
    with pytest.raises(SourceError, match="delimiter"):
        read_table(path, delimiter=";")
    with pytest.raises(SourceError, match="row 3 of the sheet"):
        read_table(path, columns="ok", target="height")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(SourceError, match=r"people\.xlsx"):
        read_table(path)
