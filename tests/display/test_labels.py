"""Names next to points never lie on one another, and names from data do no harm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from display.drawing import drawn, legend_names, overlapping, rendered
from gramian.display.base import as_names, as_ticks, natural_key, plain_name
from gramian.display.groups import appearance, groups_of, is_scale, scatter
from gramian.display.labels import Labels

HOSTILE = [
    r"$\frac{1}{0}$",
    "$x",
    "_hidden",
    "a\nb",
    "x" * 10_000,
    "שלום עולם",
    "\u202edesrever",
    "<script>alert(1)</script>",
    r"back\slash",
    "",
    "nul\x00l",
    "%s {0} {}",
]


def visible(labels):
    return [text for text in labels.texts if text.get_visible()]


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([(3.0, 3.0), (6.0, 2.0)]))
def test_names_never_overlap_and_stay_in_the_frame(seed, count, size):
    rng = np.random.default_rng(seed)
    xy = rng.normal(size=(count, 2)) * rng.choice([0.01, 1.0], size=(count, 1))
    ax = Figure(figsize=size).subplots()
    ax.scatter(*xy.T)
    labels = Labels(ax, xy, ["name " * int(rng.integers(1, 4)) + str(i) for i in range(count)])
    renderer = drawn(ax.figure)
    boxes = labels.boxes(renderer)
    assert overlapping(boxes) == []
    frame = ax.get_window_extent(renderer)
    assert all(frame.x0 <= b.x0 and b.x1 <= frame.x1 and frame.y0 <= b.y0 and b.y1 <= frame.y1 for b in boxes)


def test_where_there_is_room_every_name_is_written_and_hides_no_point():
    xy = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.5, 0.5], [0.52, 0.5]])
    ax = Figure(figsize=(5, 4)).subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    labels = Labels(ax, xy, list("abcde"))
    renderer = drawn(ax.figure)
    boxes = labels.boxes(renderer)
    assert len(boxes) == 5
    assert not any(box.contains(*point) for box in boxes for point in ax.transData.transform(xy))


def test_the_most_important_names_are_kept_where_there_is_no_room():
    ax = Figure(figsize=(2, 2)).subplots()
    ax.set(xlim=(-1, 1), ylim=(-1, 1))
    labels = Labels(ax, np.zeros((60, 2)), [f"number {i}" for i in range(60)])
    drawn(ax.figure)
    shown = [text.get_visible() for text in labels.texts]
    assert shown[0]
    assert 1 <= sum(shown) < 60


def test_places_follow_the_size_of_the_picture_and_its_limits():
    xy = np.column_stack([np.linspace(0, 1, 12), np.zeros(12)])
    ax = Figure(figsize=(2.5, 1.5)).subplots()
    ax.scatter(*xy.T)
    labels = Labels(ax, xy, ["quite a long name"] * 12)
    drawn(ax.figure)
    few = len(visible(labels))
    ax.figure.set_size_inches(20, 12)
    renderer = drawn(ax.figure)
    assert len(visible(labels)) == 12 > few
    assert overlapping(labels.boxes(renderer)) == []
    ax.set_xlim(0.45, 0.56)  # points outside the frame have no name in it
    drawn(ax.figure)
    assert len(visible(labels)) < 3


def test_a_name_lies_in_the_direction_asked_for():
    ax = Figure(figsize=(4, 4)).subplots()
    ax.set(xlim=(-2, 2), ylim=(-2, 2))
    heads = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    labels = Labels(ax, heads, list("eastwest")[:4], outward=heads)
    renderer = drawn(ax.figure)
    for head, box in zip(heads, labels.boxes(renderer), strict=True):
        middle = ax.transData.inverted().transform([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
        assert (middle - head) @ head > 0


def test_hostile_names_are_letters_only():
    ax = Figure(figsize=(8, 6)).subplots()
    xy = np.random.default_rng(0).uniform(size=(len(HOSTILE), 2))
    ax.scatter(*xy.T)
    labels = Labels(ax, xy, HOSTILE)
    assert labels.texts[0].get_text() == r"$\frac{1}{0}$"
    assert all(len(text.get_text()) <= 24 and "\n" not in text.get_text() for text in labels.texts)
    for kind in ("png", "svg", "pdf"):
        assert rendered(ax.figure, kind)


def test_a_legend_shows_names_that_matplotlib_would_hide():
    ax = Figure(layout="constrained").subplots()
    scatter(ax, np.zeros((len(HOSTILE), 2)), HOSTILE)
    assert legend_names(ax)[-1] == "no label"
    assert sorted(legend_names(ax)[:-1]) == sorted(plain_name(name) for name in HOSTILE if name)
    assert rendered(ax.figure)


def test_names_are_cut_in_the_middle_and_cleaned():
    assert plain_name("abcdefghij", 5) == "ab…ij"
    assert plain_name("a\r\nb\u202e\u200bc") == "a  bc"
    assert as_ticks(["$a$"]) == [r"\$a\$"]
    assert sorted(["x10", "x9", "y", "x"], key=natural_key) == ["x", "x9", "x10", "y"]
    with pytest.raises(ValueError, match="2 entries for 3"):
        as_names(["a", "b"], 3, "names", "x{}")


def test_missing_labels_are_a_group_of_their_own():
    pandas = pytest.importorskip("pandas")
    for labels in (
        ["a", None, "b", ""],
        np.array([1.0, np.nan, 2.0, np.nan]),
        pandas.Series(["a", pandas.NA, "b", pandas.NA]),
        np.array(["2020", "NaT", "2021", "NaT"], dtype="datetime64[D]").astype(object),
        pandas.Categorical(["a", None, "b", None]),
    ):
        groups = groups_of(labels, 4)
        assert (groups.codes < 0).tolist() == [False, True, False, True]
        assert len(groups.names) == 2
        assert groups.present == [-1, 0, 1]


def test_the_order_of_groups_is_that_of_categories_numbers_or_names():
    pandas = pytest.importorskip("pandas")
    ordered = pandas.Categorical(["low", "high", "low"], categories=["low", "middle", "high"])
    assert groups_of(pandas.Series(ordered), 3).names == ("low", "high")
    assert groups_of([10, 9, 10], 3).names == ("9", "10")
    assert groups_of(["g10", "g9", "g10"], 3).names == ("g9", "g10")
    with pytest.raises(ValueError, match=r"\(2,\).*3 rows"):
        groups_of(["a", "b"], 3)


def test_forty_groups_differ_in_colour_or_marker():
    looks = {tuple(appearance(k).values()) for k in range(40)}
    assert len(looks) == 40
    assert is_scale(np.arange(11.0))
    assert not is_scale(np.arange(10))
    assert not is_scale([str(i) for i in range(11)])
