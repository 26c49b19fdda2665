"""The gallery in a real browser: opened from disk, at two widths, quiet, and every link and listing in its place.

Chromium is the system's own, driven by Playwright. Where either is absent these tests are skipped and say so, unless
GRAMIAN_REQUIRE_BROWSER=1 asks for them.
"""

import os
import shutil

import pytest

from gramian.cli.demo import draw_plate, gallery
from gramian.cli.demo_content import Number, coin, iris, moons
from gramian.display.report import write_report

REQUIRED = os.environ.get("GRAMIAN_REQUIRE_BROWSER") == "1"
if REQUIRED:
    import playwright.sync_api as playwright
else:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright, which drives the browser, is absent")

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and not REQUIRED:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    assert found is not None, f"GRAMIAN_REQUIRE_BROWSER=1 and none of {', '.join(NAMES)} is installed"
    with playwright.sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield program
        program.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A gallery of three pictures and a few numbers."""
    folder = tmp_path_factory.mktemp("gallery")
    plates = {draw.__name__: draw_plate(draw, folder, {}) for draw in (iris, moons, coin)}
    numbers = [Number("crabs, one normal, log-likelihood", "-2979.0593", "-2979.0593", "K. Pearson", "0.00001")] * 3
    write_report(folder / "index.html", gallery(plates, numbers))
    return (folder / "index.html").as_uri()


@pytest.fixture(params=[(1280, 900), (360, 740)], ids=["wide", "narrow"])
def page(browser, address, request):
    width, height = request.param
    opened = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    heard = []
    opened.on("console", lambda message: heard.append(message.text))
    opened.on("pageerror", lambda error: heard.append(str(error)))
    opened.on("request", lambda sent: heard.append(sent.url) if not sent.url.startswith("data:") else None)
    opened.goto(address)
    yield opened
    opened.close()
    assert heard == [address]  # nothing but the page itself was asked for, and nothing complained


def test_style_and_pictures_are_let_in_and_nothing_overflows(page):
    assert page.evaluate("getComputedStyle(document.querySelector('.cards a')).display") == "flex"
    assert page.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 20)")
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]


def test_equations_are_drawn_as_equations(page):
    heights = page.evaluate("[...document.querySelectorAll('.equation img')].map((image) => image.height)")
    assert len(heights) >= 3
    assert min(heights) > 10


def test_a_card_leads_to_its_picture_and_the_code_opens(page):
    page.get_by_role("link", name="Two half moons").click()
    assert page.url.endswith("#moons")
    article = page.locator("#moons")
    assert article.bounding_box()["y"] < page.viewport_size["height"]
    listing = article.locator("pre")
    assert not listing.is_visible()
    article.get_by_text("The code that made it").click()
    assert listing.is_visible()
    assert listing.inner_text().rstrip().endswith('save_picture(picture, "moons.png")')
    assert listing.inner_text().startswith("from sklearn.datasets import make_moons\n")


def test_the_keyboard_reaches_the_content(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#s1"
