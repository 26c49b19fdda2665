"""The site that ``make docs`` builds: links that lead somewhere, and every page quiet in a real browser.

These tests look at docs/_build/html as it lies there, so they run only where GRAMIAN_REQUIRE_SITE=1 says that it has
just been built, as ``make test-all`` does. Chromium is the system's own, driven by Playwright.
"""

import os
import re
import shutil
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2] / "docs" / "_build" / "html"
if os.environ.get("GRAMIAN_REQUIRE_SITE") != "1":
    pytest.skip("the site is looked at by make test-all, which builds it", allow_module_level=True)
import playwright.sync_api as playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
HREF = re.compile(r"""<(?:a|link|img|script)\b[^>]*?\b(?:href|src)=["']([^"']*)["']""")
ANCHOR = re.compile(r"""\b(?:id|name)=["']([^"']+)["']""")
PAGES = sorted(ROOT.rglob("*.html"))
# Files of the repository are shown by one template, without formulas: one in ten stands for them.
OPENED = [
    page for i, page in enumerate(PAGES) if "_static" not in page.parts and ("source" not in page.parts or i % 10 == 0)
]
SHARES = 12
# What can be clicked on and is seen, but is passed over by the Tab key, or taken out of the order of the page.
UNREACHED = (
    "[...document.querySelectorAll('a[href], button, input, select, summary, textarea, [onclick]')]"
    ".filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex !== 0).map((e) => e.outerHTML.slice(0, 80))"
)


@cache
def anchors(page: Path) -> frozenset[str]:
    return frozenset(map(unescape, ANCHOR.findall(page.read_text("utf-8"))))


def test_the_site_has_its_parts():
    assert len(PAGES) > 300
    for name in ("index", "guide/index", "gallery/index", "reference/gramian.PCA", "search", "project/changelog"):
        assert (ROOT / f"{name}.html").is_file()


@pytest.mark.parametrize("share", range(SHARES))
def test_every_link_leads_somewhere(share):
    broken = []
    for page in PAGES[share::SHARES]:
        if "_static" in page.parts:
            continue
        text = page.read_text("utf-8")
        for link in set(HREF.findall(text)):
            parts = urlsplit(unescape(link))
            if parts.scheme in {"http", "https"} and link.startswith(("https://", "http://")):
                assert "<script" not in link  # other sites may be linked to; nothing is loaded from them (see below)
                continue
            if parts.scheme in {"data", "mailto"}:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.exists():
                broken.append(f"{page.relative_to(ROOT)}: {link}")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: no anchor {link}")
    assert broken == []


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found is not None, f"none of {', '.join(NAMES)} is installed"
    with playwright.sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield program
        program.close()


class Listener:
    """What a page said and asked for."""

    def __init__(self, page):
        self.page, self.heard = page, []
        page.on("console", lambda m: self.heard.append(m.text) if m.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: self.heard.append(str(error)))
        page.on("requestfailed", lambda sent: self.heard.append(f"not found: {sent.url}"))
        page.on("request", lambda sent: self.heard.append(sent.url) if not is_local(sent.url) else None)

    def open(self, name):
        self.page.goto((ROOT / name).as_uri())
        self.page.evaluate("() => window.MathJax?.startup?.promise?.then(() => true)")
        return self.page


def is_local(url):
    return url.startswith(("data:", "blob:", ROOT.as_uri()))


@pytest.fixture
def site(browser):
    context = browser.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    listener = Listener(context.new_page())
    yield listener
    context.close()
    assert listener.heard == []


@pytest.mark.parametrize("share", range(SHARES))
def test_every_page_is_quiet_typeset_reached_by_keys_and_fits_a_phone(site, share):
    wrong = []
    for path in OPENED[share::SHARES]:
        page = site.open(path.relative_to(ROOT))
        name = path.relative_to(ROOT)
        bare = page.evaluate(
            "[...document.querySelectorAll('.math')].filter((e) => !e.querySelector('mjx-container svg')).length"
        )
        if bare or page.evaluate("document.querySelectorAll('[data-mjx-error], [data-mml-node=merror]').length"):
            wrong.append(f"{name}: {bare} formulas are not typeset, or an error is")
        if not page.evaluate(
            "[...document.images].every((e) => e.loading === 'lazy' || (e.complete && e.naturalWidth))"
        ):
            wrong.append(f"{name}: a picture is missing")
        page.keyboard.press("Tab")
        if not page.evaluate("document.activeElement.innerText").lower().startswith("skip"):
            wrong.append(f"{name}: the first key does not lead past the navigation")
        wrong += [f"{name}: no key reaches {element}" for element in page.evaluate(UNREACHED)]
        page.set_viewport_size({"width": 390, "height": 844})
        if (width := page.evaluate("document.documentElement.scrollWidth")) > 390:
            wrong.append(f"{name}: {width} pixels wide on a phone of 390")
        page.set_viewport_size({"width": 1400, "height": 900})
        wrong += [f"{name}: {text}" for text in site.heard]
        site.heard.clear()
    assert wrong == []


def test_a_slider_moves_by_the_keyboard_and_says_what_it_shows(site):
    page = site.open("course/em.html")
    figure = page.locator("figure.slider")
    panels = figure.locator("svg")
    assert panels.count() == 2  # the ellipses, and the likelihood as it climbs
    before = panels.first.inner_html(), figure.locator(".says").inner_text()
    climb = [float(panels.last.locator("circle").get_attribute("cy"))]
    figure.locator("input").focus()
    page.keyboard.press("ArrowRight")
    after = panels.first.inner_html(), figure.locator(".says").inner_text()
    climb.append(float(panels.last.locator("circle").get_attribute("cy")))
    assert climb[1] < climb[0]
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert "step 1" in figure.locator("input").get_attribute("aria-valuetext")
    assert panels.first.locator("circle").count() == 150


def test_an_equation_leads_to_its_place_in_a_chapter_and_in_the_source(site):
    page = site.open("equations.html")
    entry = page.locator("section", has=page.get_by_role("heading", name="The normal equations")).last
    entry.get_by_role("link", name="The dual, and the representer theorem").click()
    assert page.url.endswith("course/dual.html#equation-krr-normal")
    page.wait_for_load_state()
    page = site.open("equations.html")
    entry.get_by_role("link", name="gramian/kernel_ridge/solve.py").click()
    page.wait_for_load_state()
    assert "source/src/gramian/kernel_ridge/solve.py.html#line-" in page.url


# What a newcomer wants: the links to click from the first page, at most three, and what must then be on the page.
TASKS = {
    "fill a table with gaps": (["PCA with missing values"], "pca.impute("),
    "how many components have these data": (["How many components?"], '"parallel"'),
    "regression on many rows, with bounds": (["Kernel ridge regression on 100,000 rows"], "return_bound=True"),
    "the penalty that glmnet means": (["Coming from scikit-learn, R or PLINK"], "glmnet"),
    "covariates for regenie": (["Principal components as GWAS covariates"], "write_covariates"),
    "the line of source of an equation of the notes": (
        ["Equations", "The normal equations", "gramian/kernel_ridge/solve.py"],
        "eq: krr-normal",
    ),
    "a warning that a fit did not converge": (["What to do when it did not converge"], "what helps"),
    "a distribution from censored times, with an interval": (["maximum likelihood"], "Censored("),
    "how many groups, and new rows like them": (["Which mixture, how many clusters?"], "best.sample("),
    "the code of a picture of a ridge path": (["Gallery", "What λ does"], "RidgePathDisplay"),
    "predict from a shell": (["The command line"], "gramian predict"),
    "a kernel of one's own": (["Extend it", "A kernel"], "class InverseMultiquadric"),
    "what a method returns": (["Reference", "KernelRidge"], "squared_norm"),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_newcomer_finds_each_task_in_three_clicks(site, task):
    links, wanted = TASKS[task]
    page = site.open("index.html")
    assert len(links) <= 3
    for link in links:
        page.get_by_role("link", name=link).locator("visible=true").first.click()
        page.wait_for_load_state()
    assert wanted in page.locator("article, main").first.inner_text()


QUERIES = {
    "missing values": "PCA with missing values",
    "larger than memory": "PCA on a file larger than memory",
    "how many components": "How many components",
    "100,000 rows": "Kernel ridge regression on 100,000 rows",
    "binned data": "Fit a distribution to binned data",
    "which mixture": "Which mixture, how many clusters?",
    "GWAS covariates": "Principal components as GWAS covariates",
    "replace scikit-learn": "Replace scikit-learn’s PCA",
    "certificate": "Read a certificate",
    "did not converge": "What to do when it did not converge",
    "prcomp": "Coming from scikit-learn, R or PLINK",
    "representer theorem": "The dual, and the representer theorem",
}


@pytest.mark.parametrize("query", QUERIES)
def test_search_finds_the_page_without_a_network(site, query):
    page = site.open("search.html")
    page.goto(f"{page.url}?q={query.replace(' ', '+')}")
    page.get_by_role("main").get_by_role("link", name=QUERIES[query], exact=True).first.wait_for()


def test_search_finds_a_class_and_a_page(site):
    page = site.open("search.html")
    page.goto(page.url + "?q=landmarks")
    page.wait_for_selector("#search-results li")
    found = page.locator("#search-results li a").all_inner_texts()
    assert any("ernel ridge" in text for text in found)


def test_the_keyboard_reaches_content_and_sections(site):
    page = site.open("pca.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText").lower().startswith("skip")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.innerText || document.activeElement.tagName"))
    assert {"Guide", "Reference", "Gallery"} <= {text.strip() for text in reached}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_have_contrast(browser, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto((ROOT / "gallery/iris.html").as_uri())
    colours = page.evaluate(
        "(() => { const s = (e) => getComputedStyle(document.querySelector(e));"
        " return [s('body').backgroundColor, s('article p').color] })()"
    )
    back, text = (sum(map(float, re.findall(r"[\d.]+", colour)[:3])) for colour in colours)
    assert (back > text) is (scheme == "light")
    assert abs(back - text) > 350
    page.close()


def test_on_paper_there_is_only_the_page(site):
    page = site.open("pca.html")
    page.emulate_media(media="print")
    hidden = page.evaluate(
        "[...document.querySelectorAll('.bd-sidebar-primary, .bd-sidebar-secondary, .bd-header')]"
        ".every((e) => getComputedStyle(e).display === 'none')"
    )
    assert hidden
    assert page.locator("h1").is_visible()


def test_solutions_are_printed_and_long_lines_are_broken(site):
    page = site.open("course/ridge.html")
    solutions = page.locator("details")
    assert solutions.count() == 2
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details[open]").count() == 2
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('pre')].every((e) => e.scrollWidth <= e.clientWidth + 1)")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_an_equation_of_a_chapter_leads_to_the_index(site):
    page = site.open("course/dual.html")
    page.get_by_role("link", name="krr-quadratic", exact=True).click()
    page.wait_for_load_state()
    assert page.url.endswith("equations.html#notes-000-krr-quadratic")
    assert page.locator("#notes-000-krr-quadratic").count() == 1
