"""What a page holds of each point: enough digits, few bytes, and a statement where something is left out."""

from base64 import b64decode
from zlib import decompress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gramian.display.report import Report, Section, render
from gramian.display.report import cloud as module
from gramian.display.report.cloud import Cloud, Panel, Points, encode

TYPES = {"f4": "<f4", "f8": "<f8", "u1": "<u1", "u2": "<u2"}


def inflated(text):
    return decompress(b64decode(text))


def decoded(column):
    return np.frombuffer(inflated(column["data"]), dtype=TYPES[column["dtype"]])


def names_of(spec):
    return inflated(spec["names"]).decode().split("\n")


@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e300, 1e300)))
def test_axes_keep_their_digits(values):
    spec, notes = encode(Points({"x": values}))
    spread = np.ptp(values) if np.ptp(values) < np.inf else 1e300
    assert notes == []
    assert np.all(np.abs(decoded(spec["columns"][0]) - values) <= 1e-5 * spread)


def test_large_numbers_of_small_spread_are_kept_in_double_precision():
    years = 1e8 + np.arange(10.0)
    spec, _ = encode(Points({"x": years}))
    assert spec["columns"][0]["dtype"] == "f8"
    assert np.array_equal(decoded(spec["columns"][0]), years)


@given(st.lists(st.text(max_size=5) | st.none(), min_size=1, max_size=50))
def test_groups_are_codes_of_their_texts(labels):
    spec, _ = encode(Points({"x": np.zeros(len(labels))}, groups={"g": np.array(labels, dtype=object)}))
    column = spec["columns"][1]
    found = [column["values"][code] for code in decoded(column)]
    known = [label if label and label.strip() else "no label" for label in labels]
    assert found == known
    assert len(column["values"]) == len(set(known))


def test_numbers_among_groups_come_in_their_order():
    spec, _ = encode(Points({"x": np.zeros(4)}, groups={"g": ["10", "9", "b", "a"]}))
    assert spec["columns"][1]["values"] == ["9", "10", "a", "b"]


def test_shades_are_steps_over_the_range_of_the_column():
    values = np.array([0.0, 1.0, 31.0, 62.0, np.nan])
    spec, _ = encode(Points({"x": np.zeros(5)}, columns={"c": values}))
    column = spec["columns"][1]
    assert decoded(column).tolist() == [0, 1, 31, 62, 63]  # of 62, and missing
    assert (column["low"], column["high"], column["cut"]) == (0.0, 62.0, [False, False])


def test_outliers_do_not_take_the_colours_from_the_others():
    values = np.append(np.linspace(0, 1, 999), 1e6)
    spec, _ = encode(Points({"x": np.zeros(1000)}, columns={"c": values}))
    column = spec["columns"][1]
    assert column["high"] == np.quantile(values, 0.99) < 1
    assert column["cut"] == [False, True]


def test_many_points_are_sampled_and_it_is_said(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 100)
    x = np.arange(1000.0)
    spec, notes = encode(Points({"x": x}, names=[f"n{i}" for i in range(1000)]))
    rows = np.frombuffer(inflated(spec["rows"]), dtype="<i4")
    assert notes == ["A random sample of 100 of the 1,000 rows is drawn; every number was computed from all."]
    assert spec["n"] == len(rows) == len(set(rows)) == 100
    assert np.array_equal(decoded(spec["columns"][0]), x[rows])
    assert names_of(spec) == [f"n{i}" for i in rows]


def test_columns_beyond_the_room_are_left_out_and_it_is_said(monkeypatch):
    rng = np.random.default_rng(0)
    axes = {f"x{j}": rng.normal(size=100) for j in range(4)}
    columns = {f"c{j}": rng.normal(size=100) for j in range(4)}
    sizes = [len(column["data"]) for column in encode(Points(axes, columns=columns))[0]["columns"]]
    monkeypatch.setattr(module, "ROOM", sum(sizes[:3]) + sizes[4])
    spec, notes = encode(Points(axes, columns=columns), needed=["x3"])
    kept = [column["name"] for column in spec["columns"]]
    assert kept[:3] == ["x0", "x1", "x3"]  # what is needed, and what else there is room for, in order
    assert spec["axes"] == [0, 1, 2]
    assert "c0" in kept
    assert "3 of 4 axes" in notes[0]
    assert "coloured by 1 of 4 columns" in notes[1]


def test_a_page_of_100_000_points_is_smaller_than_four_megabytes():
    n, rng = 100_000, np.random.default_rng(0)
    axes = {f"PC{j + 1}": rng.normal(size=n) for j in range(10)}
    labels = rng.choice(list("abcdefgh"), n)
    columns = {f"c{j}": rng.normal(size=n) for j in range(50)}
    points = Points(axes, names=[f"sample{i:07d}" for i in range(n)], groups={"g": labels}, columns=columns)
    report = Report("T", "", [Section("S", [Cloud(points, [Panel("PC1", "PC2"), Panel("PC3", "PC4")])])])
    assert len(render(report).encode()) < 4_000_000
    spec, _ = encode(points, ["PC1"])
    low, high = axes["PC1"].min(), axes["PC1"].max()
    found = low + (high - low) * decoded(spec["columns"][0]) / 65_534
    assert np.abs(found - axes["PC1"]).max() <= (high - low) / 65_534


def test_long_names_are_shortened_and_it_is_said():
    spec, notes = encode(Points({"x": np.zeros(2)}, names=["a" * 500, "b"]))
    assert notes == ["1 name of more than 120 letters is shortened."]
    assert len(names_of(spec)[0]) == 120


@pytest.mark.parametrize("where", ["names", "groups", "columns"])
def test_columns_of_another_length_are_refused(where):
    extra = {"names": ["a"]} if where == "names" else {where: {"c": ["a"]}}
    with pytest.raises(ValueError, match=r"1 entries.*2 points"):
        Points({"x": [0.0, 1.0]}, **extra)


def test_points_without_an_axis_are_refused():
    with pytest.raises(ValueError, match="least"):
        Points({})
