"""What a page holds of each point: enough digits, few bytes, and a statement where something is left out."""

from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gramian.display.report import cloud as module
from gramian.display.report.cloud import Points, encode

TYPES = {"f4": "<f4", "f8": "<f8", "u1": "<u1", "u2": "<u2"}


def decoded(column):
    return np.frombuffer(b64decode(column["data"]), dtype=TYPES[column["dtype"]])


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


def test_shades_are_letters_over_the_range_of_the_column():
    values = np.array([0.0, 1.0, 31.0, 62.0, np.nan])
    spec, _ = encode(Points({"x": np.zeros(5)}, columns={"c": values}))
    column = spec["columns"][1]
    assert column["data"] == "ABf+/"  # 0, 1, 31 and 62 steps of 62, and missing, in the alphabet of RFC 4648
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
    rows = np.frombuffer(b64decode(spec["rows"]), dtype="<i4")
    assert notes == ["A random sample of 100 of the 1,000 rows is drawn; every number was computed from all."]
    assert spec["n"] == len(rows) == len(set(rows)) == 100
    assert np.array_equal(decoded(spec["columns"][0]), x[rows])
    assert spec["names"] == [f"n{i}" for i in rows]


def test_columns_beyond_the_room_are_left_out_and_it_is_said(monkeypatch):
    monkeypatch.setattr(module, "AT_LEAST", 1000)
    monkeypatch.setattr(module, "BYTES_EACH", 1)
    columns = {f"c{j}": np.arange(100.0) for j in range(12)}
    spec, notes = encode(Points({"x": np.arange(100.0)}, columns=columns))
    assert [column["name"] for column in spec["columns"][1:]] == [f"c{j}" for j in range(10)]
    assert notes == [
        "Points can be coloured by 10 of 12 columns; the others would make this file too large, or hold too many "
        "different texts."
    ]


def test_long_names_are_shortened_and_it_is_said():
    spec, notes = encode(Points({"x": np.zeros(2)}, names=["a" * 500, "b"]))
    assert notes == ["1 name of more than 120 letters is shortened."]
    assert len(spec["names"][0]) == 120


@pytest.mark.parametrize("where", ["names", "groups", "columns"])
def test_columns_of_another_length_are_refused(where):
    extra = {"names": ["a"]} if where == "names" else {where: {"c": ["a"]}}
    with pytest.raises(ValueError, match=r"1 entries.*2 points"):
        Points({"x": [0.0, 1.0]}, **extra)


def test_points_without_an_axis_are_refused():
    with pytest.raises(ValueError, match="least"):
        Points({})
