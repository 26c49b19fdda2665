"""The report in a real browser: opened from disk, hovered, selected in, switched and downloaded from.

Chromium is the system's own, driven by Playwright. Where either is absent these tests are skipped and say so, unless
GRAMIAN_REQUIRE_BROWSER=1 asks for them.
"""

import csv
import io
import os
import shutil
from dataclasses import dataclass, field

import numpy as np
import pytest
from matplotlib.path import Path as Outline

from gramian import PCA, GaussianMixture, KernelPCA, KernelRidgeCV, RidgeCV
from gramian.display.report import (
    DataFacts,
    Run,
    fit_report,
    genotype_report,
    guard_cell,
    kernel_pca_report,
    mixture_report,
    pca_report,
    regression_report,
    write_report,
)
from gramian.genetics.pca import GenotypePCA
from gramian.likelihood import compare, fit

pytest.importorskip("bokeh", reason="a report needs Bokeh: pip install 'gramian[report]'")

REQUIRED = os.environ.get("GRAMIAN_REQUIRE_BROWSER") == "1"
if REQUIRED:
    import playwright.sync_api as playwright
else:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright, which drives the browser, is absent")

NAMES = ("chromium", "chromium-browser", "google-chrome")
HACK = "window.hacked = 1"
HOSTILE = [
    f"<script>{HACK}</script>",
    f'"><img src=x onerror="{HACK}">',
    f"'-{HACK}-'",
    "</script><h1>out</h1>",
    "long " * 2000,
    "\N{RIGHT-TO-LEFT OVERRIDE}txet desrever",
    "שלום עולם",
    r"$$\int x$$",
    f'=HYPERLINK("javascript:{HACK}")',
    "@SUM(A1:A9)",
    "-2+3",
    "&lt;b&gt; {{name}} @{PC1} $index",
]


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


@dataclass
class Opened:
    """A page and what went wrong on it."""

    page: object
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def check_quiet(self):
        """Nothing on the console but information, and nothing fetched."""
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        assert self.page.evaluate("window.hacked") is None

    def pixel(self, panel, i):
        """Where point i is on the screen."""
        x, y = self.page.evaluate(
            """([panel, i]) => {
                const cloud = gramian.clouds[Object.keys(gramian.clouds)[0]], shown = cloud.panels[panel];
                const view = [...Bokeh.index].find((v) => v.model === shown.figure);
                const box = view.canvas_view.el.getBoundingClientRect();
                return [box.x + view.frame.x_scale.compute(cloud.columns[shown.x].data[i]),
                        box.y + view.frame.y_scale.compute(cloud.columns[shown.y].data[i])];
            }""",
            [panel, i],
        )
        return x, y

    def place(self, panel, point):
        """Where data coordinates are on the screen."""
        return self.page.evaluate(
            """([panel, [x, y]]) => {
                const shown = gramian.clouds[Object.keys(gramian.clouds)[0]].panels[panel];
                const view = [...Bokeh.index].find((v) => v.model === shown.figure);
                const box = view.canvas_view.el.getBoundingClientRect();
                return [box.x + view.frame.x_scale.compute(x), box.y + view.frame.y_scale.compute(y)];
            }""",
            [panel, [float(value) for value in point]],
        )

    def drag(self, panel, corners):
        """Press at the first of these data coordinates, move along the others, and let go."""
        points = [self.place(panel, corner) for corner in corners]
        self.page.mouse.move(*points[0])
        self.page.mouse.down()
        for point in points[1:]:
            self.page.mouse.move(*point, steps=2)
        self.page.mouse.up()

    def selected(self):
        return self.page.evaluate("Object.values(gramian.clouds)[0].chosen()")

    def table(self, click):
        """What a click downloads, as rows."""
        with self.page.expect_download() as waiting:
            click()
        with open(waiting.value.path(), encoding="utf-8", newline="") as file:
            return waiting.value.suggested_filename, list(csv.reader(file))


def opened(browser, path, width=1280, script=None):
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    found = Opened(page)
    page.on("console", lambda message: found.errors.append(message.text) if message.type in ("error", "warning") else 0)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    if script is not None:
        page.add_init_script(script)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=20_000)
    page.evaluate("gramian.ready")
    return found


def cluster(n=60, p=6, seed=0):
    """Three groups, far apart."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    return rng.normal(size=(n, p)) + 6.0 * np.eye(3, p)[group], group


X, GROUP = cluster()
MODEL = PCA(5).fit(X)
SCORES = MODEL.transform(X)
IDS = [f"sample {i:02d}" for i in range(len(X))]
LABELS = [f"group {g}" for g in GROUP]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    data = DataFacts("cluster.csv", *X.shape, "ab" * 32)
    columns = {"age": np.arange(60.0), "site": ["north", "south"] * 30}
    report = pca_report(MODEL, SCORES, ids=IDS, labels=LABELS, columns=columns, data=data, run=Run("gramian pca", 0))
    write_report(path, report)
    return path


@pytest.fixture(scope="module")
def shared(browser, plain):
    found = opened(browser, plain)
    found.page.evaluate("for (const s of document.querySelectorAll('select')) s.dataset.first = s.value")
    yield found
    found.page.close()


@pytest.fixture
def report(shared):
    """The page as it was opened: nothing selected, the first axes and colours."""
    yield shared
    shared.page.mouse.move(0, 0)
    shared.page.evaluate(
        """() => {
            for (const cloud of Object.values(gramian.clouds)) cloud.select([]);
            for (const s of document.querySelectorAll("select"))
                if (s.value !== s.dataset.first) { s.value = s.dataset.first; s.dispatchEvent(new Event("change")); }
        }"""
    )
    shared.check_quiet()


def test_hovering_shows_the_name_the_label_and_the_coordinates(report):
    report.page.locator(".cloud").first.scroll_into_view_if_needed()
    report.page.mouse.move(*report.pixel(0, 17))
    text = report.page.locator(".tip").first.inner_text()
    assert "sample 17" in text
    assert f"label: {LABELS[17]}" in text
    assert f"PC1: {float(f'{SCORES[17, 0]:.5g}'):g}"[:9] in text


@pytest.mark.parametrize(("panel", "axes"), [(0, (0, 1)), (1, (2, 3))])
def test_a_box_selects_its_points_in_both_plots(report, panel, axes):
    other = report.page.locator(".cloud").first.locator(".plot").nth(1 - panel)
    other.scroll_into_view_if_needed()
    report.page.mouse.move(5, 5)
    before = other.screenshot()
    chosen = SCORES[:, axes]
    low, high = np.quantile(chosen, [0.2, 0.8], axis=0)
    report.drag(panel, [low, high])
    inside = np.flatnonzero(np.all((chosen > low) & (chosen < high), axis=1))
    assert report.selected() == inside.tolist()
    assert report.page.locator(".count").first.inner_text() == f"{len(inside)} of 60 selected"
    report.page.mouse.move(5, 5)
    assert other.screenshot() != before  # the points that are not selected are faint there too


def test_a_lasso_selects_what_it_goes_around_and_the_download_holds_it(report):
    plots = report.page.locator(".cloud").first
    plots.scroll_into_view_if_needed()
    plots.locator('[title="Lasso Select"]').first.click()
    centre = SCORES[GROUP == 1, :2].mean(axis=0)
    angle = np.linspace(0, 2 * np.pi, 13)
    ring = centre + 2.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    report.drag(0, ring)
    inside = np.flatnonzero(Outline(ring).contains_points(SCORES[:, :2])).tolist()
    assert 3 < len(inside) < 30
    assert report.selected() == inside
    name, rows = report.table(plots.locator("button.save").click)
    assert name == "selected-scores.csv"
    names = ["PC1", "PC2", "PC3", "PC4", "PC5", "% of PC1", "% of PC2", "label", "site"]
    assert rows[0] == ["row", "name", *names]
    assert [int(row[0]) - 1 for row in rows[1:]] == inside  # rows are counted from 1
    assert [row[1] for row in rows[1:]] == [IDS[i] for i in inside]
    assert [row[9] for row in rows[1:]] == [LABELS[i] for i in inside]
    np.testing.assert_allclose(np.array([row[2:7] for row in rows[1:]], dtype=float), SCORES[inside], rtol=1e-6)
    plots.locator("button.clear").click()
    assert report.selected() == []
    plots.locator('[title="Box Select"]').first.click()


def test_other_components_can_be_put_on_the_axes(report):
    cloud = report.page.locator(".cloud").first
    cloud.scroll_into_view_if_needed()
    cloud.locator("select.axis[data-panel='0'][data-way='x']").select_option(index=4)
    (left, right, wide), (low, high, tall) = report.page.evaluate(
        """() => {
            const { x_range, y_range, inner_width, inner_height } = Object.values(gramian.clouds)[0].panels[0].figure;
            return [[x_range.start, x_range.end, inner_width], [y_range.start, y_range.end, inner_height]];
        }"""
    )
    assert left < SCORES[:, 4].min() < SCORES[:, 4].max() < right
    assert low < SCORES[:, 1].min() < SCORES[:, 1].max() < high
    assert (right - left) / wide == pytest.approx((high - low) / tall, rel=0.02)  # distances are true
    box = np.quantile(SCORES[:, [4, 1]], [0.3, 0.9], axis=0)
    report.drag(0, box)
    inside = np.all((SCORES[:, [4, 1]] > box[0]) & (SCORES[:, [4, 1]] < box[1]), axis=1)
    assert report.selected() == np.flatnonzero(inside).tolist()


def test_colours_follow_the_column_and_the_legend_selects_a_group(report):
    cloud = report.page.locator(".cloud").first
    legend = cloud.locator(".legend")
    assert legend.inner_text().split() == ["group", "0", "(20)", "group", "1", "(20)", "group", "2", "(20)"]
    legend.locator("button").nth(2).click()
    assert report.selected() == np.flatnonzero(GROUP == 2).tolist()
    assert cloud.locator("select.colour option").all_inner_texts()[-2:] == ["site", "age"]
    cloud.locator("select.colour").select_option(label="age")
    assert "age" in legend.inner_text()
    assert "59" in legend.inner_text()
    words = report.page.evaluate("[...Object.values(gramian.clouds)[0].source.data.colour]")
    assert words[0] == 0x440154FF  # the ends of viridis
    assert words[59] == 0xFDE725FF


def test_names_of_arrows_stay_within_the_frame(browser, tmp_path):
    names = [f"a column with a long name {j}" for j in range(X.shape[1])]
    write_report(
        tmp_path / "report.html", pca_report(MODEL, SCORES, feature_names=names, data=DataFacts("x", *X.shape))
    )
    found = opened(browser, tmp_path / "report.html")
    boxes = found.page.evaluate(
        """() => Object.values(gramian.clouds)[0].panels.flatMap(({ figure, texts }) =>
            texts.data.text.map((text, i) => {
                const at = (texts.data.x[i] - figure.x_range.start) / (figure.x_range.end - figure.x_range.start);
                const wide = 6.6 * text.length / figure.inner_width;
                return texts.data.align[i] === "right" ? [at - wide, at] : [at, at + wide];
            }))"""
    )
    assert boxes
    assert all(low >= -0.02 and high <= 1.02 for low, high in boxes), boxes
    found.check_quiet()
    found.page.close()


def test_arrows_end_within_the_frame_where_points_lie_on_one_side(browser, tmp_path):
    rng = np.random.default_rng(5)
    skew = np.exp(rng.normal(size=(80, 2)) @ [[1.5, 0.2, 0.1], [0.3, 1.2, -0.2]] + 0.2 * rng.normal(size=(80, 3)))
    model = PCA(2, scale=True).fit(skew)
    write_report(tmp_path / "report.html", pca_report(model, model.transform(skew), data=DataFacts("x", *skew.shape)))
    for width in (1400, 390):
        found = opened(browser, tmp_path / "report.html", width=width)
        inside = found.page.evaluate(
            """() => Object.values(gramian.clouds)[0].panels.flatMap((panel) => {
                const { x_range, y_range } = panel.figure, cloud = Object.values(gramian.clouds)[0];
                const heads = cloud.heads(panel, cloud.columns[panel.x].data, cloud.columns[panel.y].data);
                const within = (v, range) => range.start < v && v < range.end;
                return heads.map(([, [u, v]]) => within(u, x_range) && within(v, y_range));
            })"""
        )
        assert inside == [True] * 3
        found.check_quiet()
        found.page.close()


def test_legends_go_below_on_a_telephone_and_paper_is_dark_at_night(browser, tmp_path):
    place = """() => Bokeh.documents[0].roots().filter((f) => f.legend?.length ?? 1).map((f) =>
        ["right", "below"].map((way) => f[way].filter((part) => part.type === "Legend").length))"""
    write_report(tmp_path / "report.html", _ridge()[0])
    counted = {}
    for width in (1400, 390):
        found = opened(browser, tmp_path / "report.html", width=width)
        counted[width] = np.array(found.page.evaluate(place)).sum(axis=0).tolist()
        found.check_quiet()
        found.page.close()
    assert counted[1400][0] > 0
    assert counted[1400][1] == 0
    assert counted[390] == counted[1400][::-1]
    write_report(tmp_path / "fit.html", _fit()[0])
    found = opened(browser, tmp_path / "fit.html", width=390)
    backs = found.page.evaluate(
        """() => Bokeh.documents[0].roots().flatMap((f) => [...f.center, ...f.above, ...f.right, ...f.below])
            .filter((part) => part.type === "Legend").map((legend) => legend.background_fill_color)"""
    )
    assert backs
    assert all(colour is None or (isinstance(colour, dict) and colour.get("value") is None) for colour in backs), backs
    found.page.close()


def test_names_can_be_found(report):
    cloud = report.page.locator(".cloud").first
    cloud.locator("input.find").fill("PLE 4")
    assert report.selected() == list(range(40, 50))
    assert cloud.locator(".chosen tbody tr").count() == 10


def test_tables_are_sorted_and_downloaded_with_every_digit(report):
    table = report.page.locator(".table", has=report.page.get_by_role("heading", name="Loadings V√λ", exact=True))
    head = table.locator("thead th").nth(1)
    head.locator("button").click()
    first = [float(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert first == sorted(first)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    name, rows = report.table(table.locator("button.csv").click)
    assert name == "loadings.csv"
    order = np.argsort(-MODEL.components_[0])
    assert [row[0] for row in rows[1:]] == [f"x{i + 1}" for i in order]
    known = MODEL.components_.T * np.sqrt(MODEL.explained_variance_)
    assert np.array_equal(np.array([row[1:] for row in rows[1:]], dtype=float), known[order])


def test_no_script_runs_but_those_of_the_page(browser, plain):
    found = opened(browser, plain)
    found.page.evaluate(f"document.body.append(Object.assign(document.createElement('script'), {{text: '{HACK}'}}))")
    found.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 1\">')")
    assert found.page.evaluate("fetch('https://example.org').then(() => 'fetched', () => 'refused')") == "refused"
    assert found.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in error for error in found.errors)
    found.page.close()


def test_hostile_text_does_nothing_anywhere(browser, tmp_path):
    n = 5 * len(HOSTILE)
    Y = np.random.default_rng(1).normal(size=(n, len(HOSTILE)))
    model = PCA(4).fit(Y)
    write_report(
        tmp_path / "report.html",
        pca_report(
            model,
            model.transform(Y),
            ids=HOSTILE * 5,
            labels=HOSTILE * 5,
            label_name=HOSTILE[0],
            feature_names=HOSTILE,
            columns={name: Y[:, j] for j, name in enumerate(HOSTILE)},
            measures={HOSTILE[1]: Y[:, 0], HOSTILE[7]: Y[:, 1]},
            data=DataFacts(HOSTILE[1], n, 12, HOSTILE[0], HOSTILE),
            run=Run(HOSTILE[2], 0, 1.0, HOSTILE),
        ),
    )
    found = opened(browser, tmp_path / "report.html")
    cloud = found.page.locator(".cloud").first
    cloud.scroll_into_view_if_needed()
    found.page.mouse.move(*found.pixel(0, 1))
    found.page.locator(".tip").first.wait_for()
    assert HOSTILE[1] in found.page.locator(".tip").first.inner_text()
    for picker in ("select.axis[data-panel='0'][data-way='x']", "select.colour"):
        for option in range(cloud.locator(f"{picker} option").count()):
            cloud.locator(picker).select_option(index=option)
    cloud.locator("input.find").fill("a")
    _, rows = found.table(cloud.locator("button.save").click)
    texts = {text for row in rows for text in row}
    assert guard_cell(HOSTILE[8]) in texts
    assert not [text for text in texts if text[:1] in tuple("=@\t\r")]
    assert not [text for text in texts if text[:1] in tuple("+-") and not _is_number(text)]
    assert found.page.locator("h1").count() == 1
    assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found.check_quiet()
    found.page.close()


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_the_page_and_the_library_guard_the_same_cells(report):
    cells = [*HOSTILE, "", " =1", "\t1", "\r=1", "+1", "-1", "-1.5e-3", "-,5", "-inf", "+", "＝1", "1=1", "−1", " -1"]
    assert report.page.evaluate("(cells) => cells.map(gramian.guarded)", cells) == [guard_cell(cell) for cell in cells]
    text = report.page.evaluate("(cells) => gramian.csv([cells])", cells)
    assert next(csv.reader(io.StringIO(text, newline=""))) == [guard_cell(cell) for cell in cells]


GPU = """(() => {
    const { getParameter } = WebGLRenderingContext.prototype;
    WebGLRenderingContext.prototype.getParameter = function (name) {
        return name === 0x9246 || name === this.RENDERER ? "a GPU" : getParameter.call(this, name);
    };
})()"""


@pytest.mark.parametrize("script", [None, GPU], ids=["by hand", "by the GPU"])
def test_many_points_are_drawn_and_selected(browser, tmp_path, script):
    Y = np.random.default_rng(2).normal(size=(4000, 3)) * [3.0, 2.0, 1.0]
    model = PCA(3).fit(Y)
    scores = model.transform(Y)
    write_report(tmp_path / "report.html", pca_report(model, scores, data=DataFacts("many", 4000, 3)))
    found = opened(browser, tmp_path / "report.html", script=script)
    backend = found.page.evaluate("Object.values(gramian.clouds)[0].panels[0].figure.output_backend")
    assert backend == ("canvas" if script is None else "webgl")
    found.page.locator(".cloud").first.scroll_into_view_if_needed()
    found.drag(0, [(-1.0, -1.0), (2.0, 1.5)])
    inside = (scores[:, 0] > -1) & (scores[:, 0] < 2) & (scores[:, 1] > -1) & (scores[:, 1] < 1.5)
    # The mouse stops at whole pixels, of which one holds a few of the points at the edge.
    assert len(np.setxor1d(found.selected(), np.flatnonzero(inside))) <= 20
    assert found.page.locator(".count").first.inner_text().endswith("of 4,000 selected")
    found.check_quiet()
    found.page.close()


def _kernel_pca():
    model = KernelPCA(3, kernel="rbf").fit(X)
    return kernel_pca_report(model, model.transform(X), labels=LABELS, data=DataFacts("x", 60, 6)), "Gaussian"


def _ridge():
    model = RidgeCV(alphas="auto").fit(X, GROUP)
    report = regression_report(model, GROUP, model.predict(X), ids=IDS, data=DataFacts("x", 60, 6))
    return report, f"{model.score(X, GROUP):.5g}"


def _kernel_ridge():
    model = KernelRidgeCV().fit(X, GROUP)
    report = regression_report(model, GROUP, model.predict(X), labels=LABELS, data=DataFacts("x", 60, 6))
    return report, f"{model.score(X, GROUP):.5g}"


def _mixture():
    model = GaussianMixture(3).fit(X)
    return mixture_report(model, X, labels=LABELS, data=DataFacts("x", 60, 6)), f"{model.bic(X):.5g}"


def _fit():
    x = np.random.default_rng(3).gamma(2.0, 3.0, 200)
    ranking = compare(["gamma", "normal"], x)
    report = fit_report({"time": ranking, "count": fit("poisson", np.arange(20) % 5)}, data=DataFacts("x", 200, 2))
    return report, f"{ranking.best['shape']:.5g}"


def _genotypes():
    rng = np.random.default_rng(4)
    G = rng.binomial(2, np.repeat(rng.uniform(0.1, 0.9, (3, 400)), 20, axis=0))
    model = GenotypePCA(4).fit(G)
    place = rng.normal(size=(60, 2))
    report = genotype_report(
        model, labels=np.repeat(["A", "B", "C"], 20), coordinates=place, data=DataFacts("g", 60, 400)
    )
    return report, f"{100 * model.eigenvalues_[0] / model.total_variance_:.1f} %"


@pytest.mark.parametrize("make", [_kernel_pca, _ridge, _kernel_ridge, _mixture, _fit, _genotypes])
def test_every_report_opens_without_a_word_and_fits_a_telephone(browser, tmp_path, make):
    report, told = make()
    write_report(tmp_path / "report.html", report)
    found = opened(browser, tmp_path / "report.html", width=390)
    assert told in found.page.locator("body").inner_text()
    assert found.page.locator(".plot canvas").count() >= 2
    assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found.check_quiet()
    found.page.close()
