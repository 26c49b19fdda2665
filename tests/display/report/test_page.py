"""The file itself: one page, nothing fetched, scripts by checksum, small, whole or absent."""

import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from gramian import PCA
from gramian.display.report import DataFacts, DataTable, Report, Run, Section, Text, pca_report, render, write_report
from gramian.display.report import page as module
from gramian.display.report.cloud import Cloud, Panel, Points

pytest.importorskip("bokeh", reason="a report needs Bokeh: pip install 'gramian[report]'")

HOSTILE = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "a\ud800b", "=1+1", "‮rtl"]
EMPTY = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Reader(HTMLParser):
    """Elements as a parser of HTML sees them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.open, self.texts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append([dict(attributes), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += data
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5))
    model = PCA(3).fit(X)
    return render(
        pca_report(
            model,
            model.transform(X),
            ids=HOSTILE * 10,
            labels=HOSTILE * 10,
            label_name=HOSTILE[1],
            feature_names=HOSTILE,
            columns={name: X[:, j] for j, name in enumerate(HOSTILE)},
            data=DataFacts(HOSTILE[0], 50, 5, "ab" * 32, HOSTILE),
            run=Run(HOSTILE[0], 7, 0.5, HOSTILE),
            title=HOSTILE[1],
        )
    )


def test_elements_are_closed_in_order_and_hostile_text_makes_none(text):
    found = Reader(text)
    assert found.open == []
    names = {tag for tag, _ in found.tags}
    assert not names & {"img", "iframe", "object", "embed", "link", "base", "form"}
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    assert len(found.scripts) == 5  # two of data; Bokeh, its log level, and ours
    assert HOSTILE[1] in "".join(found.texts)


def test_nothing_is_named_that_could_be_fetched(text):
    found = Reader(text)
    places = [attributes[name] for _, attributes in found.tags for name in ("src", "href") if name in attributes]
    assert [place for place in places if not place.startswith("#")] == []
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_names_each_script_by_its_checksum_and_allows_nothing_else(text):
    found = Reader(text)
    (policy,) = (
        a["content"] for t, a in found.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    assert rules["default-src"] == rules["connect-src"] == ["'none'"]
    run = [body for attributes, body in found.scripts if attributes.get("type") != "application/json"]
    sums = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in run]
    assert rules["script-src"] == [f"'sha256-{checksum}'" for checksum in sums]
    assert text.index("Content-Security-Policy") < text.index("<script")


def test_the_page_says_how_to_make_it_again(text):
    words = " ".join("".join(Reader(text).texts).split())
    assert "ab" * 32 in words
    assert "Seed 7" in re.sub(r"Seed\s*7", "Seed 7", words)
    assert f"numpy {np.__version__}" in words


def test_the_page_can_be_read_aloud(text):
    found = Reader(text)
    assert ("html", {"lang": "en"}) in found.tags
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    plots = [attributes for tag, attributes in found.tags if "plot" in attributes.get("class", "").split()]
    assert plots
    assert all(attributes["aria-label"] for attributes in plots)
    heads = [attributes for tag, attributes in found.tags if tag == "th"]
    assert all(attributes.get("scope") in ("row", "col") for attributes in heads)
    named = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(named) == len(set(named))


def test_ten_thousand_points_of_fifty_columns_take_less_than_three_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 50)) * np.geomspace(10, 1, 50)
    model = PCA(10).fit(X)
    columns = {f"a column {j}": X[:, j] for j in range(50)}
    names = [f"sample {i:05d}" for i in range(10_000)]
    labels = np.array(["red", "green", "blue", "black"])[rng.integers(0, 4, 10_000)]
    measures = {"T²": X[:, 0] ** 2, "Q": X[:, 1] ** 2}
    facts = DataFacts("table.csv", 10_000, 50)
    report = pca_report(
        model, model.transform(X), ids=names, labels=labels, columns=columns, measures=measures, data=facts
    )
    write_report(tmp_path / "report.html", report)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert (tmp_path / "report.html").stat().st_size < 3_000_000
    assert "can be coloured by" not in text  # none was left out


SMALL = Report("Title", "", [Section("One", [Text("Words.")])])


def test_a_page_is_written_whole_and_replaces_another(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(path, SMALL)
    assert path.read_text("utf-8") == render(SMALL)
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(module.os, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        write_report(tmp_path / "report.html", SMALL)
    assert list(tmp_path.iterdir()) == []


def test_without_bokeh_the_error_names_what_to_install(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name == "bokeh" or name.startswith("bokeh.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "bokeh", None)
    write_report(tmp_path / "report.html", SMALL)  # has no figure
    (tmp_path / "report.html").unlink()
    points = Cloud(Points({"x": [0.0, 1.0], "y": [1.0, 0.0]}), [Panel("x", "y")])
    with pytest.raises(ImportError, match=r"gramian\[report\]"):
        write_report(tmp_path / "report.html", Report("Title", "", [Section("One", [points])]))
    assert list(tmp_path.iterdir()) == []


def test_bokeh_is_loaded_by_the_page_alone():
    code = "import sys, gramian.display.report; print('bokeh' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_script_that_would_end_its_element_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_read", lambda name: "x = '</SCRIPT>'")
    with pytest.raises(ValueError, match="element"):
        module.render(Report("Title", "", [Section("First", [Text("Words.")])]))


def test_tables_hold_every_digit_and_guard_their_text():
    table = DataTable("t", "T", {"name": ["=1+1", "b"], "value": np.array([1 / 3, np.nan])})
    found = Reader(f"<main>{table.html(None)}</main>")
    assert "'=1+1" in found.texts
    cells = [attributes["data-v"] for tag, attributes in found.tags if tag == "td"]
    assert cells == [repr(1 / 3), ""]
