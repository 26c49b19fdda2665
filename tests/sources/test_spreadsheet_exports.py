"""Tables as spreadsheets export them: titles above, units and groups in a second header, totals below."""

import io

import numpy as np
import pandas as pd
import pytest

from gramian.sources import read_table

ROWS = [(f"n{i}", 1500.25 + 7 * i, 12.5 - 0.25 * i * i) for i in range(8)]
BODY = "".join(f"{name},{sales:.2f},{profit:.2f}\n" for name, sales, profit in ROWS)
GERMAN = "".join(f"{name};{sales:.2f};{profit:.2f}\n".replace(".", ",") for name, sales, profit in ROWS)
TABLE = pd.DataFrame([row[1:] for row in ROWS])


@pytest.fixture(params=["python", "pyarrow"])
def reader(request, monkeypatch):
    """Both readers of texts."""
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
        monkeypatch.setattr("gramian.sources.text.SMALL", 0)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("text", "names", "told"),
    [
        ("Report 2024\n\nName,Sales,Profit\n" + BODY, ["Sales", "Profit"], "line 1"),
        ("Report 2024,,\n,,\nName,Sales,Profit\n" + BODY, ["Sales", "Profit"], "lines 1 to 2"),
        ('"Report\n2024"\nName,Sales,Profit\n' + BODY, ["Sales", "Profit"], "lines 1 to 2"),
        ("Name,Sales,Profit\n,EUR,%\n" + BODY, ["Sales", "Profit"], "units"),
        ("Name,Sales,Profit\ntext,EUR,%\n" + BODY, ["Sales", "Profit"], "units"),
        ("Report\n\nName,Sales,Profit\n,EUR,%\n" + BODY, ["Sales", "Profit"], "units"),
        (",2023,\nName,Sales,Profit\n" + BODY, ["2023 Sales", "2023 Profit"], "two header rows"),
        ("sep=;\r\nName;Sales;Profit\n" + GERMAN, ["Sales", "Profit"], "line 1"),
        ("\ufeffsep=;\nName;Sales;Profit\n" + GERMAN, ["Sales", "Profit"], "line 1"),
        ("\n\nName,Sales,Profit\n" + BODY, ["Sales", "Profit"], None),
    ],
)
def test_what_stands_above_a_table_is_no_part_of_it(tmp_path, text, names, told):
    path = tmp_path / "t.csv"
    path.write_text(text, "utf-8", newline="")
    found = read_table(path, id=1)
    assert found.names == names
    np.testing.assert_array_equal(found.source.values, TABLE)
    assert found.ids.tolist() == [row[0] for row in ROWS]
    assert found.keys["row"].tolist() == [*range(1, 9)]
    assert told is None or any(told in note for note in found.notes)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    "text",
    [
        ',x\na,1\nb,2\nc,"3"\nd,4\ne,5\n',  # R's row names of one column
        "x,y\n1,2\n3,4\n5,6\n7,8\n",
        "x\n1.5\n2.5\n3.5\n4.5\n",
        "name,\nann,1\nbo,2\ncy,3\nd,4\n",
        "x,y\n,\n1,2\n3,4\n5,6\n7,8\n",
        "1,2\n3,4\n5,6\n7,8\n9,1\n",
    ],
)
def test_tables_without_titles_are_read_as_by_pandas(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    found = read_table(path, categorical="drop")
    header = None if text[0].isdigit() else 0
    want = pd.read_csv(io.StringIO(text), header=header, skip_blank_lines=True).select_dtypes("number")
    np.testing.assert_array_equal(found.source.values, want)


@pytest.mark.parametrize("text", ["Report\n1.5,2\n3,4\n5,6\n", "Report 2024\nName,Sales\nannual,12\nx\ny\n"])
def test_what_may_be_damaged_is_not_taken_for_a_title(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="line"):
        read_table(path, categorical="drop", delimiter=",")


def test_a_slip_in_one_column_is_no_unit(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,score,age\nann,absent,31\n" + "".join(f"n{i},{i},{i * i}\n" for i in range(12)))
    with pytest.raises(ValueError, match=r"line 2.*names or units"):
        read_table(path, categorical="drop")


def test_sheets_have_titles_and_units_too(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Report"], [], ["Name", "Sales", "Profit"], [None, "EUR", "%"], *ROWS):
        book.active.append(list(row))
    book.save(tmp_path / "t.xlsx")
    found = read_table(tmp_path / "t.xlsx", id="Name")
    assert found.names == ["Sales", "Profit"]
    np.testing.assert_array_equal(found.source.values, TABLE)


@pytest.mark.parametrize(("word", "row"), [("sums", TABLE.sum()), ("means", TABLE.mean())])
def test_a_row_of_totals_is_pointed_out(tmp_path, word, row):
    path = tmp_path / "t.csv"
    path.write_text("Name,Sales,Profit\n" + BODY)
    assert not any("last row" in note for note in read_table(path, id=1).notes)
    path.write_text("Name,Sales,Profit\n" + BODY + f"Total,{row[0]:.6f},{row[1]:.6f}\n")
    (note,) = [note for note in read_table(path, id=1).notes if "last row" in note]
    assert word in note
