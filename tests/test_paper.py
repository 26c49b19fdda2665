"""The paper takes its figures from the records of the benchmarks, and cites what it lists."""

from importlib import util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
markdown = pytest.importorskip("markdown_it", reason="markdown-it, which makes a page of the paper, is absent")


@pytest.fixture(scope="module")
def book():
    specification = util.spec_from_file_location("build_paper", ROOT / "tools" / "build_paper.py")
    module = util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_page_has_its_figures_and_references(book):
    page = book.make_page()
    assert page.count("<figure>") == page.count("data:image/png;base64,") == 3
    assert "[@" not in page
    assert "(figure:" not in page
    assert "table:uci" not in page
    assert page.count("<table>") == 3
    assert page.count("<p>", page.index('id="references"')) == len(book.read_bibliography()) >= 10


def test_figures_show_what_was_recorded(book, monkeypatch):
    drawn = []
    keep = lambda names, values, *rest: drawn.append(dict(zip(names, values, strict=True)))  # noqa: E731
    monkeypatch.setattr(book, "draw_bars", keep)
    book.genotypes()
    book.pca()
    book.kernel_pca()
    text = (ROOT / "bench/results/genotypes-2026-11-16.md").read_text("utf-8")
    assert f"| gramian | {drawn[0]['gramian']:.2f} |" in text
    assert "plink2 --pca approx" in drawn[0]
    assert len(drawn[1]) >= 6
    text = (ROOT / "bench/results/kernel-pca-2026-11-15-5000-10000.md").read_text("utf-8")
    assert len(drawn[2]) == 4
    for name, seconds in drawn[2].items():
        assert f"| 10,000 | {name.partition(',')[0]} | {seconds:.2f} s |" in text
    for row in book.uci().splitlines()[2:]:
        assert row.removesuffix(" |") in (ROOT / "bench/results/uci-2026-11-15.md").read_text("utf-8")


def test_a_citation_without_an_entry_is_an_error(book, monkeypatch):
    monkeypatch.setattr(book, "read_bibliography", dict)
    with pytest.raises(SystemExit, match="musco2015"):
        book.make_page()
