"""What cells show: no text is taken for a formula, and numbers stay numbers."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.display.report.blocks import as_json, escape_math, format_exact, format_value, guard_cell, isolate, shorten

FORMULA = tuple("=+-@＝＋－＠\t\r\n")


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "-", "+", "-a"]
)
def test_what_a_spreadsheet_would_compute_is_guarded(text):
    assert guard_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-1", "+1", "-1.5", "-.5", "-1e-9", "1", "", "a=b", "a-b", "−1", "-inf", "-1,5"])
def test_numbers_and_plain_text_are_left_alone(text):
    assert guard_cell(text) == text


@given(st.text())
def test_no_guarded_text_begins_a_formula_unless_it_is_a_number(text):
    safe = guard_cell(text)
    assert safe in (text, f"'{text}")
    if safe.startswith(FORMULA):
        float(safe.replace(",", "."))  # a number in every reader's eyes


@given(st.floats(allow_nan=False) | st.integers())
def test_exact_numbers_are_read_back_bit_for_bit(value):
    text = format_exact(value)
    assert guard_cell(text) == text
    (row,) = csv.reader(io.StringIO(text))
    assert type(value)(row[0]) == value


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_json_in_a_script_ends_no_element_and_is_read_back(value):
    text = as_json(value)
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == value


def test_a_lone_surrogate_can_be_written():
    assert as_json("a\ud800").encode("utf-8") == '"a\N{REPLACEMENT CHARACTER}"'.encode()


@given(st.text(max_size=300), st.integers(3, 100))
def test_short_text_keeps_its_ends(text, most):
    cut = shorten(text, most)
    assert len(cut) <= most
    assert cut == text or (cut[0] == text[0] and cut[-1] == text[-1])


@given(st.text(alphabet="$\\()[]x"))
def test_no_text_is_a_formula_to_a_picture(text):
    found = escape_math(text)
    assert not any(mark in found for mark in ("$$", "\\(", "\\)", "\\[", "\\]"))
    assert found.replace("\N{WORD JOINER}", "") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1e-7, "1.00e-07"),
        (123456.7, "1.2346e+05"),
        (float("nan"), "–"),
        (None, "–"),
        (False, "no"),
        (7, "7"),
    ],
)
def test_numbers_are_shown_with_five_digits(value, text):
    assert format_value(value) == text


def test_shares_are_shown_as_percentages():
    assert [format_value(value, percent=True) for value in (0.5, 0.0123, 0.00123, 0.0)] == [
        "50.0 %",
        "1.2 %",
        "0.12 %",
        "0.0 %",
    ]


def test_text_is_escaped_and_isolated():
    assert isolate("<a href='x'>&") == "<bdi>&lt;a href=&#x27;x&#x27;&gt;&amp;</bdi>"
