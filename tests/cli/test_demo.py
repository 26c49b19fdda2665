"""The demo: its numbers agree with the references, the code it shows draws its pictures, and its page stands alone."""

import ast
import base64
import csv
import html
import json
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import make_circles, make_moons

from gramian.cli import demo as command
from gramian.cli import demo_content, main
from gramian.cli.demo import FILES, write_script
from gramian.cli.demo_content import Number
from gramian.display.base import render_formula

PICTURES = {draw.__name__: draw for draw in command.DRAWS}


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tags, self.listings, self._in_listing = text, [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "pre":
            self.listings.append("")
            self._in_listing = True

    def handle_endtag(self, tag):
        self._in_listing = self._in_listing and tag != "pre"

    def handle_data(self, data):
        if self._in_listing:
            self.listings[-1] += data

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    return out, CliRunner().invoke(main, ["demo", "--quick", "--out", str(out)])


@pytest.fixture(scope="module")
def page(demo):
    return Page((demo[0] / "index.html").read_text("utf-8"))


def draw_only(monkeypatch, *draws):
    """A demo of these pictures alone."""
    monkeypatch.setattr(command, "DRAWS", draws)
    monkeypatch.setattr(command, "CHAPTERS", {("<u>", "&"): draws})


def test_every_published_number_agrees(demo):
    with (demo[0] / "numbers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 33
    assert [row for row in rows if not row["agree"].startswith("yes")] == []
    exact = [row for row in rows if row["agree"] == "yes"]
    assert len(exact) == 30
    assert [row for row in exact if row["reference"] != row["ours"]] == []


def test_a_number_that_differs_in_one_digit_does_not_agree():
    assert Number("x", "0.12345678", "0.12345679").verdict == "NO"
    assert Number("x", "0.9794", "0.9793", within="0.0001").agrees
    assert not Number("x", "0.9794", "0.9792", within="0.0001").agrees


def test_demo_writes_its_files_and_says_which_to_open(demo):
    out, result = demo
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert result.output.rstrip().splitlines()[-1] == f"Open {out / 'index.html'} in a browser."


def test_demo_names_its_pictures_and_prints_the_comparison(demo):
    output = demo[1].output
    titles = [draw.__doc__.splitlines()[0] for draw in PICTURES.values()]
    assert [title for title in titles if f"✓ {title}\n" not in output] == []
    assert "2.93035378   2.93035378" in output
    assert "33 of 33 reference numbers agree" in output
    assert "NO" not in output
    assert max(map(len, output.splitlines()[:-1])) <= 80


def test_every_method_has_its_pictures():
    wanted = "iris digit_scores digit_rank digit_images power_method digit_names moons circles swiss_roll without_noise"
    wanted += " ridge_path curve curves boundary coin crabs petals drawn europe"
    assert list(PICTURES) == wanted.split()


@pytest.mark.parametrize("key", list(PICTURES))
def test_the_code_on_the_page_draws_the_picture_on_the_page(demo, page, key, tmp_path, monkeypatch):
    """Run what a reader would copy, in a world of its own, and compare the files byte for byte."""
    code = page.listings[list(PICTURES).index(key)]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"<{key}>", "exec"), {"__name__": "__main__"})
    assert (tmp_path / f"{key}.png").read_bytes() == (demo[0] / f"{key}.png").read_bytes()
    assert len(code.splitlines()) < 32


def test_a_listing_has_the_imports_it_needs_and_no_others():
    code = write_script(demo_content.crabs, {})
    names = [alias.name for node in ast.parse(code).body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert names == ["GaussianMixture", "BinnedMixtureDisplay", "save_picture", "CRAB_COUNTS", "CRAB_EDGES"]
    assert "people = 400\nn_snps = 20000\n" in write_script(demo_content.europe, {"people": 400})


def test_pictures_are_in_the_page_and_beside_it(demo, page):
    shown = [image for image in page.all("img") if image["alt"] and image["src"].startswith("data:image/png")]
    files = [(demo[0] / f"{key}.png").read_bytes() for key in PICTURES]
    assert [base64.b64decode(image["src"].removeprefix("data:image/png;base64,")) for image in shown] == files
    assert all(file.startswith(b"\x89PNG") for file in files)


def test_page_fetches_nothing_and_needs_no_bokeh(page):
    assert page.all("link") == page.all("iframe") == []
    assert all(image["src"].startswith("data:") for image in page.all("img"))
    assert "Bokeh.set_log_level" not in page.text
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_each_picture_has_its_card_equation_certificate_and_code(page):
    names = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(set(names)) == len(names)
    links = [attrs["href"] for attrs in page.all("a")]
    assert [link for link in links if link[1:] not in names] == []
    assert [link for link in links if link[1:] in PICTURES] == [f"#{key}" for key in PICTURES]
    for key in PICTURES:
        article = re.search(rf'<article id="{key}".*?</article>', page.text, re.DOTALL)[0]
        assert article.count("data:image/svg+xml") >= 1
        assert article.count('class="certificate met"') == article.count('class="code"') == 1
        assert article.index("image/svg+xml") < article.index("image/png") < article.index("<pre ")


def test_page_can_be_read_without_seeing_it(page):
    assert all(len(image["alt"]) > 4 for image in page.all("img") if image["alt"])
    assert len([image for image in page.all("img") if not image["alt"]]) == len(PICTURES)  # cards, which have titles
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_certificates_are_written(demo):
    certificates = json.loads((demo[0] / "certificates.json").read_text())
    assert {name: item["converged"] for name, item in certificates.items()} == dict.fromkeys(PICTURES, True)


def test_the_map_is_said_to_be_simulated(page):
    article = re.search(r'<article id="europe".*?</article>', page.text, re.DOTALL)[0]
    found = re.search(r"Simulated: 400 people of 30 countries × ([\d,]+) SNPs.*correlation of (0\.\d+)", article)
    assert float(found[2]) > 0.8
    assert "people = 400\nn_snps = 3000" in html.unescape(re.sub(r"<[^>]+>", "", article))


def test_what_is_said_of_moons_and_circles_is_so():
    X, moon = make_moons(200, noise=0.05, random_state=0)
    z = demo_content.moons()[1].transform(X)[:, 0]
    assert len(set(zip(np.sign(z), moon, strict=True))) == 2
    X, circle = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    z = demo_content.circles()[1].transform(X)[:, 0]
    inner, outer = z[circle == 1], z[circle == 0]
    assert inner.min() > outer.max() or inner.max() < outer.min()


def test_kernel_pca_cleans_digits_better_than_the_best_linear_pca(page):
    found = re.search(r"noisy (0\.\d+), PCA (0\.\d+), kernel PCA (0\.\d+)", page.text)
    noisy, linear, kernel = map(float, found.groups())
    assert noisy == pytest.approx(0.25**2, rel=0.03)
    assert kernel < 0.8 * linear


def test_curve_and_classifier_find_what_they_should(page):
    assert 0.08 < float(re.search(r"is found as (0\.\d+)", page.text)[1]) < 0.12
    shares = [float(share) for share in re.findall(r"([\d.]+)% from", page.text)]
    assert shares == sorted(shares)
    assert shares[-1] > 95  # from 16 scores


def test_demo_does_not_overwrite_unasked(demo):
    out, _ = demo
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    result = CliRunner().invoke(main, ["demo", "--out", str(out)])
    assert result.exit_code == 2
    assert "--force" in result.output
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == before


def test_a_number_that_disagrees_is_shown_and_ends_with_4(tmp_path, monkeypatch):
    wrong = [Number("x", "1.5", "1.5"), Number("x < y", "1.5", "1.6", "someone & co")]
    draw_only(monkeypatch, demo_content.iris)
    monkeypatch.setattr(command, "compare_numbers", lambda: wrong)
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out")])
    text = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert result.exit_code == 4
    assert "1 of 2 reference numbers agree" in result.output
    assert re.search(r"x < y +1\.5 +1\.6 +NO", result.output)
    assert "<td><bdi>1.5</bdi></td><td><bdi>1.6</bdi></td><td><bdi>NO</bdi></td>" in text
    assert "someone &amp; co" in text
    assert "1 of 2 do NOT agree" in text


def unmet():
    """<b>Iris</b>

    <i>

    x_1 < y

    "quoted"
    """
    picture, pca, _ = demo_content.iris()
    pca.certificate_ = pca.certificate_.with_(tolerance=0.0)
    return picture, pca, "<script>"


def test_a_tolerance_that_is_not_met_is_shown_and_ends_with_4(tmp_path, monkeypatch):
    draw_only(monkeypatch, unmet)
    monkeypatch.setattr(command, "compare_numbers", list)
    monkeypatch.setitem(sys.modules, unmet.__module__, sys.modules.get(unmet.__module__, demo_content))
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    text = (tmp_path / "index.html").read_text("utf-8")
    assert result.exit_code == 4, result.output
    assert "the tolerance is NOT met" in text
    assert not re.search(r"<b>Iris|<i>|<script>\W|<u>|alt=\"\"quoted", text.partition('id="plots"')[0])
    assert "&lt;script&gt;" in text


def test_interrupted_it_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted():
        """Title

        Text

        x

        Seen
        """
        raise KeyboardInterrupt

    draw_only(monkeypatch, demo_content.iris, interrupted)
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 130
    assert "Stopped. Nothing half done is left behind." in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tex", [r"\unknown{x}", "{x", r"\frac{1}"])
def test_an_equation_that_is_no_tex_is_refused(tex):
    with pytest.raises(ValueError, match="Parse"):
        render_formula(tex)


def test_help_shows_two_examples():
    result = CliRunner().invoke(main, ["demo", "--help"])
    assert result.exit_code == 0
    assert result.output.count("  gramian demo") == len(command.demo.examples) == 2
