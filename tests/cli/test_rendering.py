"""What commands show and write, on results made by hand: each number, line and row that must be there, or must not."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import pytest

from gramian.cli import output as rendering
from gramian.cli.output import (
    Output,
    Results,
    ResultTable,
    Sketch,
    TableOutput,
    as_texts,
    csv_rows,
    describe_data,
    draw_sketch,
    number_columns,
    print_screen,
    publish_table,
    screen_cell,
    screen_tables,
    write_table,
)
from gramian.cli.running import CommandRun

HEIGHT = 16


def proof(converged: bool) -> Any:
    """Enough of a certificate for the screen."""
    return SimpleNamespace(converged=converged, tolerance=1e-6, summary=lambda: [("method", "by hand")])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is printed, on a screen so many characters wide."""
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    monkeypatch.setattr(rendering, "answer_stream", lambda: stream)

    def show(results: Results, **options: Any) -> str:
        print_screen(results, **options)
        return stream.getvalue()

    return show


def grid(text: str) -> list[str]:
    """The rows of a sketch between its frame, from the top."""
    return [line[1:-1] for line in text.splitlines() if line.startswith("│")]


def test_points_stand_where_their_coordinates_say() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-3, 5, 30), rng.uniform(10, 11, 30)
    text = draw_sketch(Sketch("T", x, y, ("across", "up")), 43)
    rows, wide = grid(text), 40
    assert len(rows) == HEIGHT
    assert {len(row) for row in rows} == {wide}
    place = set()
    for a, b in zip(x, y, strict=True):
        column = min(int((a - x.min()) / np.ptp(x) * wide), wide - 1)
        line = min(int((b - y.min()) / np.ptp(y) * HEIGHT), HEIGHT - 1)
        place.add((HEIGHT - 1 - line, column))
    assert {(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != " "} == place
    lines = text.splitlines()
    assert lines[0] == "T: up over across"
    assert lines[1] == "┌" + "─" * wide + "┐"
    ends = f"across: {x.min():.5g} to {x.max():.5g}   up: {y.min():.5g} to {y.max():.5g}"
    assert lines[-1] == ends
    # equal coordinates stand at the beginning
    assert grid(draw_sketch(Sketch("", [2.0, 2.0], [1.0, 3.0], ("x", "y")), 13))[0] == "·" + " " * 9
    beside = grid(draw_sketch(Sketch("", [0.0, 0.5], [7.0, 7.0], ("x", "y")), 13))
    assert beside[-1] == "·" + " " * 8 + "·"
    assert "".join(beside[:-1]).strip() == ""
    assert draw_sketch(Sketch("", [np.nan, 1.0], [0.0, np.inf], ("x", "y")), 13) == ""


@pytest.mark.parametrize(
    ("count", "mark"), [(1, "·"), (2, "·"), (3, "∙"), (7, "∙"), (8, "•"), (19, "•"), (20, "●"), (99, "●")]
)
def test_dots_grow_with_the_number_of_points(count: int, mark: str) -> None:
    x = np.append(np.zeros(count), 1.0)
    assert grid(draw_sketch(Sketch("", x, x, ("x", "y")), 13))[-1][0] == mark


def test_groups_have_marks_of_their_own_and_the_more_frequent_one_is_seen() -> None:
    text = draw_sketch(Sketch("", [0, 0, 0, 1], [0, 0, 0, 1], ("x", "y"), ["b", "a", "b", "c"]), 13)
    assert (grid(text)[-1][0], grid(text)[0][-1]) == ("+", "x")
    assert text.splitlines()[-1] == "o a   + b   x c"
    one = draw_sketch(Sketch("", [0, 1], [0, 1], ("x", "y"), ["a", "a"]), 13)
    assert one.splitlines()[-1] == "x: 0 to 1   y: 0 to 1"  # no legend of one group
    nine, ten, many = (
        draw_sketch(Sketch("", range(n), range(n), ("x", "y"), [f"{i:03d}" for i in range(n)]), 90) for n in (9, 10, 54)
    )
    assert nine.splitlines()[-1].startswith("o 000   + 001")
    assert ten.splitlines()[-1].startswith("a 000   b 001")
    assert "more" not in ten
    assert many.splitlines()[-1].endswith("Z 051 and 2 more")


def test_of_many_points_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MAX_SKETCHED", 10)
    x = np.arange(40.0)
    assert sum(mark != " " for row in grid(draw_sketch(Sketch("", x, x, ("x", "y")), 83)) for mark in row) == 10
    x = np.arange(10.0)
    assert sum(mark != " " for row in grid(draw_sketch(Sketch("", x, x, ("x", "y")), 83)) for mark in row) == 10


def test_numbers_are_shown_to_five_digits_and_whole_before_the_point() -> None:
    cells = [1e5, 99999.4, -1e5, -123456.78, 1e15, 0.000123456789, 1, "two\nlines", float("nan"), np.float32(0.5)]
    texts = ["100000.0", "99999", "-100000.0", "-123456.8", "1e+15", "0.00012346", "1", "two lines", "", "0.5"]
    assert [screen_cell(cell) for cell in cells] == texts
    assert screen_cell(0.123456, ".2f") == "0.12"


def columns_of(table: ResultTable, width: int) -> list[list[str]]:
    """The columns that stand side by side, block by block."""
    return [[str(column.header) for column in part.columns] for part in screen_tables(table, width)]


def test_columns_that_do_not_fit_stand_below_with_the_first_repeated() -> None:
    table = ResultTable({"name": ["ab", "c"], "one": [1.5, 2], "two": [10.25, 3], "three": [7, 8]}, title="All")
    # each takes its longest cell or word and three more: 7 + 6 + 8 + 8 = 29, and one of the width is kept
    assert columns_of(table, 30) == [["name", "one", "two", "three"]]
    assert columns_of(table, 29) == [["name", "one", "two"], ["name", "three"]]
    assert columns_of(table, 22) == [["name", "one", "two"], ["name", "three"]]
    assert columns_of(table, 21) == [["name", "one"], ["name", "two"], ["name", "three"]]
    assert columns_of(table, 5) == [["name", "one"], ["name", "two"], ["name", "three"]]  # two at the least
    titles = [part.title for part in screen_tables(table, 22)]
    assert titles == ["All", "(more columns)"]


def test_rows_beyond_the_most_are_a_sign_of_more() -> None:
    table = ResultTable({"n": np.arange(5)}, title="T", most=3)
    cells = [list(column.cells) for column in screen_tables(table, 80)[0].columns]
    assert cells == [["0", "1", "2", "…"]]
    whole = ResultTable({"n": np.arange(3)}, title="T", most=3)
    assert [list(column.cells) for column in screen_tables(whole, 80)[0].columns] == [["0", "1", "2"]]
    some = ResultTable({"a": [1.0], "b": [2.0], "c": [3.0]}, formats={"c": ".3f", "a": "", "absent": ""})
    part = screen_tables(some, 80)[0]
    assert [(str(column.header), *column.cells) for column in part.columns] == [("c", "3.000"), ("a", "1")]


def test_numbers_stand_on_the_right_on_one_line_and_texts_are_broken_between_words() -> None:
    table = ResultTable({"what": ["some words of a text", "more"], "how many there are": [12.5, 3.0]}, title="T")
    text, number = screen_tables(table, 24)[0].columns
    assert (text.justify, text.no_wrap, text.min_width) == ("left", False, 5)
    assert (number.justify, number.no_wrap, number.min_width) == ("right", True, 5)
    assert str(number.header) == "how\nmany\nthere\nare"  # a name that does not fit is broken
    assert str(text.header) == "what"
    assert str(screen_tables(table, 80)[0].columns[1].header) == "how many there are"
    long = ResultTable({"word": ["a" * 30]}, title="T")
    assert screen_tables(long, 80)[0].columns[0].min_width == 11


def test_what_is_shown_and_what_is_not(shown: Any) -> None:
    long = "a note that is longer than the screen is wide, and stays on one line [so]"
    results = Results(
        facts={},
        tables=[ResultTable({"kept off": [1]}), ResultTable({"shown": [2.5]}, title="A table")],
        lines=[f"{long} line"],
        data=SimpleNamespace(name="x[1].csv", size="3 rows", notes=[f"{long} note"]),
        certificates={"": proof(True), "other": proof(False)},
        sketch=Sketch("S", [0, 1], [0, 1], ("x", "y")),
    )
    text = shown(results, doubts=[f"{long} doubt"])
    assert "x[1].csv: 3 rows" in text
    for kind in ("line", "note"):
        assert f"  {long} {kind}\n" in text
    assert f"Warning: {long} doubt\n" in text
    assert "A table" in text
    assert "kept off" not in text
    assert "S: y over x" not in text
    assert "Arithmetic" in text
    assert "of other" in " ".join(text.split())


def test_a_sketch_is_as_wide_as_the_screen_and_no_wider_than_72(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results(facts={}, sketch=Sketch("S", [0, 1], [0, 1], ("x", "y")))
    narrow = shown(results, sketch=True)
    assert {len(row) for row in grid(narrow)} == {37}
    monkeypatch.setenv("COLUMNS", "200")
    stream = io.StringIO()
    monkeypatch.setattr(rendering, "answer_stream", lambda: stream)
    print_screen(results, sketch=True)
    assert {len(row) for row in grid(stream.getvalue())} == {69}


@pytest.mark.parametrize(
    ("met", "whole"), [((), True), ((True,), True), ((False,), False), ((True, False), False), ((False, True), False)]
)
def test_one_unmet_tolerance_among_several_is_not_met(met: tuple[bool, ...], whole: bool) -> None:
    assert Results(facts={}, certificates={str(i): proof(ok) for i, ok in enumerate(met)}).converged is whole


def test_the_checksum_is_left_out_of_large_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(b"12345")
    table: Any = SimpleNamespace(source=SimpleNamespace(shape=(4, 2)), notes=["two\nlines"], checksum=lambda: "abc")
    for most, checksum, notes in ((5, "abc", ["two lines"]), (4, "", ["two lines", "no checksum: the file is large"])):
        monkeypatch.setattr(rendering, "MAX_CHECKSUM_BYTES", most)
        facts = describe_data(table, file)
        assert (facts.name, facts.rows, facts.columns, facts.checksum, list(facts.notes)) == (
            "x.csv",
            4,
            2,
            checksum,
            notes,
        )
    assert describe_data(table, tmp_path / "absent.csv").checksum == "abc"


def test_rows_are_written_some_at_a_time_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"a": np.arange(23.0), "b": np.array(["x,y", 'q"'] + [""] * 21), "n": np.arange(23)}
    columns["a"][5] = np.nan
    for step in (1, 7, 23, 100):
        monkeypatch.setattr(rendering, "ROWS_AT_A_TIME", step)
        rows = list(csv_rows(columns, "NA"))
        assert [row[0] for row in rows] == [*range(5), "NA", *range(6, 23)]
        assert [row[2] for row in rows] == list(range(23))
        write_table(tmp_path / "t.csv", columns)
        with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
            read = list(csv.reader(file))
        assert read[0] == ["a", "b", "n"]
        assert len(read) == 24
        assert read[1] == ["0.0", "x,y", "0"]
        assert read[6][0] == ""
    write_table(tmp_path / "t.TSV", {"a": [1.5, np.nan], "b": ["c", "d"]})
    assert (tmp_path / "t.TSV").read_text("utf-8") == "a\tb\n1.5\tc\nNA\td\n"
    assert list(csv_rows({})) == []


def test_claimed_are_all_names_that_will_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed: list[Any] = []
    monkeypatch.setattr(rendering, "claim_place", lambda *given: claimed.append(given))
    options = {"out": tmp_path, "as_json": False, "force": True}
    always = ["b.bin", "t.parquet", "model.gramian", "certificate.json"]
    for no_report in (True, False):
        for no_pictures in (True, False):
            output = Output(format="parquet", no_report=no_report, no_pictures=no_pictures, **options)  # type: ignore[arg-type]
            output.check(["t"], ["p"], ["b.bin"])
            more = [*([] if no_report else ["report.html"]), *([] if no_pictures else ["p.png"])]
            assert claimed.pop() == (tmp_path, [tmp_path / name for name in [*always, *more]], True)
            assert output.has_report is not no_report
    Output(out=None, no_report=False, no_pictures=False, as_json=False, force=False).check(["t"], [])
    TableOutput(None, False, False).check()
    assert not claimed
    with pytest.raises(click.UsageError, match=r"must end in .csv or .parquet"):
        TableOutput(tmp_path / "x.tsv", False, False).check()
    with pytest.raises(click.UsageError, match="name a file"):
        TableOutput(tmp_path / "x", False, False).check(any_ending=True)
    with pytest.raises(click.UsageError, match="name a file"):
        TableOutput(tmp_path, False, False).check(any_ending=True)
    TableOutput(tmp_path / "x.tsv", False, False).check(any_ending=True)
    TableOutput(tmp_path / "x.CSV", False, True).check()
    assert claimed == [
        (tmp_path / "x.tsv", [tmp_path / "x.tsv"], False),
        (tmp_path / "x.CSV", [tmp_path / "x.CSV"], True),
    ]


def published(
    results: Results, out: Path | None, monkeypatch: pytest.MonkeyPatch, as_json: bool = False
) -> tuple[str, int]:
    """What is printed of one table, and how often the screen was written to."""
    stream, screens = io.StringIO(), []
    monkeypatch.setattr(rendering, "answer_stream", lambda: stream)
    monkeypatch.setattr(rendering, "print_screen", lambda *_, **given: screens.append(given))
    with click.Context(click.Command("try")):
        publish_table(CommandRun(), TableOutput(out, as_json, True), results)
    assert all(given == {"stderr": out is None} for given in screens)
    return stream.getvalue(), len(screens)


def test_a_table_goes_to_its_file_or_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ResultTable({"a": [1.5, 2.0], "b": ["x", "y"]})
    text = "a,b\n1.5,x\n2.0,y\n"
    assert published(Results(facts={}, tables=[table]), None, monkeypatch) == (text, 0)
    assert published(Results(facts={}, tables=[table], lines=["said"]), None, monkeypatch) == (text, 1)
    assert published(Results(facts={}, tables=[table, table]), None, monkeypatch) == (text, 1)
    assert published(Results(facts={}, tables=[table]), tmp_path / "t.csv", monkeypatch) == ("", 0)
    assert (tmp_path / "t.csv").read_text("utf-8") == text
    more = Results(facts={"n": 2}, tables=[table, table], write_more=lambda path: path.write_text("theirs", "utf-8"))
    assert published(more, tmp_path / "t.eigenvec", monkeypatch) == ("", 1)
    assert (tmp_path / "t.eigenvec").read_text("utf-8") == "theirs"
    published(more, tmp_path / "u.CSV", monkeypatch)
    assert (tmp_path / "u.CSV").read_text("utf-8") == text
    published(Results(facts={}, tables=[table]), tmp_path / "u.tsv", monkeypatch)
    assert (tmp_path / "u.tsv").read_text("utf-8") == "a\tb\n1.5\tx\n2.0\ty\n"
    printed, screens = published(more, None, monkeypatch, as_json=True)
    assert screens == 0
    found = json.loads(printed)
    assert found == {
        "command": "try", "n": 2, "warnings": [], "out": None, "table": {"a": [1.5, 2.0], "b": ["x", "y"]}
    }  # fmt: skip
    written = json.loads(published(more, tmp_path / "v.csv", monkeypatch, as_json=True)[0])
    assert "table" not in written
    assert written["out"] == str(tmp_path / "v.csv")


def test_columns_have_numbers_and_texts_stay_texts() -> None:
    values = np.arange(6.0).reshape(2, 3)
    named = number_columns("PC", values)
    assert list(named) == ["PC1", "PC2", "PC3"]
    np.testing.assert_array_equal(named["PC2"], values[:, 1])
    assert as_texts([1, "a"]) == ["1", "a"]
    assert as_texts(None) is None
    assert ResultTable({"a": [1, 2], "b": ["x", "y"]}).records() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
