"""Pictures of components draw the model's numbers: scores, spectra, loadings, biplots, alarms, images."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backend_bases import MouseEvent
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import f as fisher
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

from display.drawing import drawn, legend_names, overlapping, rendered
from gramian import PCA, KernelPCA, rank_advice
from gramian.analysis import biplot, monitor, supplementary_columns
from gramian.display import (
    BiplotDisplay,
    ContributionsDisplay,
    CorrelationCircleDisplay,
    Display,
    KernelFieldDisplay,
    LoadingsDisplay,
    MonitoringDisplay,
    ReconstructionDisplay,
    ScoreDisplay,
    ScreeDisplay,
)
from gramian.display.groups import ellipse_of


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True)


@pytest.fixture(scope="module")
def pca(wine):
    return PCA(3, scale=True).fit(wine.data)


def offsets(ax):
    """Every point of the axes, in the order drawn."""
    return np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)])


def heads(ax):
    """Where arrows end."""
    return np.array([note.xy for note in ax.texts if note.arrow_patch is not None])


def in_order(rows):
    return np.asarray(rows)[np.lexsort(np.asarray(rows).T)]


def test_scores_are_those_of_the_model_and_the_same_from_predictions(wine, pca):
    options = {"labels": wine.target, "names": [f"w{i}" for i in range(178)], "components": (2, 0)}
    Z = pca.transform(wine.data)
    one = ScoreDisplay.from_estimator(pca, wine.data, ellipse="rows", **options)
    two = ScoreDisplay.from_predictions(Z, model=pca, ellipse="rows", **options)
    np.testing.assert_array_equal(in_order(offsets(one.ax_)), in_order(Z[:, [2, 0]]))
    assert rendered(one.figure_) == rendered(two.figure_)
    assert one.ax_.get_xlabel() == f"PC3 ({pca.explained_variance_ratio_[2]:.1%} of the variance)"
    assert one.ax_.get_aspect() == 1.0
    assert legend_names(one.ax_) == ["0", "1", "2"]


def test_names_of_far_rows_do_not_overlap(wine, pca):
    picture = ScoreDisplay.from_estimator(pca, wine.data, names=[f"wine {i}" for i in range(178)], most_names=30)
    boxes = picture.labels_[0].boxes(drawn(picture.figure_))
    assert len(boxes) > 20
    assert overlapping(boxes) == []
    Z = pca.transform(wine.data)[:, :2]
    farthest = int(np.argmax(np.sum((Z - Z.mean(axis=0)) ** 2 / Z.var(axis=0), axis=1)))
    assert picture.labels_[0].texts[0].get_text() == f"wine {farthest}"


@pytest.mark.parametrize(("of", "extra"), [("rows", 1 + 1 / 40), ("mean", 1 / 40)])
def test_ellipses_are_regions_of_hotelling(of, extra):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 2)) @ [[2.0, 1.0], [0.0, 0.5]]
    away = ellipse_of(Z, 0.9, of) - Z.mean(axis=0)
    distance = np.einsum("ij,jk,ik->i", away, np.linalg.inv(np.cov(Z.T)), away)
    np.testing.assert_allclose(distance, 2 * 39 / 38 * fisher(2, 38).ppf(0.9) * extra, rtol=1e-10)
    assert ellipse_of(np.outer(np.arange(5.0), [1.0, 2.0]), 0.9) is None


def test_thirty_groups_and_rows_without_a_label():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, 900)
    X = 6 * rng.normal(size=(30, 4))[codes] + rng.normal(size=(900, 4))
    labels = np.array([f"population {k} of a long name" for k in range(30)], dtype=object)[codes]
    labels[:20] = None
    picture = ScoreDisplay.from_estimator(PCA(2).fit(X), X, labels=labels, legend_title="where")
    renderer = drawn(picture.figure_)
    assert len(legend_names(picture.ax_)) == 31
    assert legend_names(picture.ax_)[-1] == "no label"
    assert overlapping([text.get_window_extent(renderer) for text in picture.ax_.get_legend().get_texts()]) == []
    assert overlapping(picture.labels_[0].boxes(renderer)) == []
    box = picture.ax_.get_legend().get_window_extent(renderer)
    assert box.x0 >= 0
    assert box.x1 <= picture.figure_.bbox.x1
    assert box.y0 >= 0
    assert not box.overlaps(picture.ax_.get_window_extent(renderer))


def test_many_points_are_pixels_and_axes_stay_lines():
    X = np.random.default_rng(0).normal(size=(100_000, 3))
    pca = PCA(2).fit(X)
    labelled = ScoreDisplay.from_estimator(pca, X, labels=X[:, 0] > 0)
    assert all(part.get_rasterized() for part in labelled.ax_.collections)
    assert len(rendered(labelled.figure_, "pdf")) < 300_000
    dense = ScoreDisplay.from_estimator(pca, X).ax_.collections[0]
    assert dense.get_array().sum() == 100_000
    few = ScoreDisplay.from_estimator(pca, X[:5]).ax_.collections[0]
    assert not few.get_rasterized()


def test_one_score_is_a_histogram_or_strips_by_group():
    z = np.random.default_rng(0).normal(size=(60, 1))
    assert sum(bar.get_height() for bar in ScoreDisplay(z).plot().ax_.patches) == 60
    picture = ScoreDisplay(z, labels=np.repeat(["a", "$b$", None], 20)).plot()
    np.testing.assert_array_equal(np.sort(offsets(picture.ax_)[:, 0]), np.sort(z[:, 0]))
    assert [text.get_text() for text in picture.ax_.get_yticklabels()] == ["no label", r"\$b\$", "a"]
    assert rendered(picture.figure_)


def test_a_missing_label_is_no_text_and_a_whole_number_has_no_decimals():
    Z = np.random.default_rng(0).normal(size=(4, 2))
    assert legend_names(ScoreDisplay(Z, labels=["b", float("nan"), "a", None]).plot().ax_) == ["a", "b", "no label"]
    assert legend_names(ScoreDisplay(Z, labels=["b", float("nan"), "a", "a"]).plot().ax_) == ["a", "b", "no label"]
    assert legend_names(ScoreDisplay(Z, labels=[10, np.nan, 2, 2]).plot().ax_) == ["2", "10", "no label"]
    assert legend_names(ScoreDisplay(Z, labels=[10, None, 2.5, 2.0]).plot().ax_) == ["2", "2.5", "10", "no label"]


def test_points_on_a_line_have_a_picture():
    for n in (5, 30_000):
        picture = ScoreDisplay(np.column_stack([np.zeros(n), 1e10 * np.arange(n)])).plot()
        assert rendered(picture.figure_)


def test_numbers_are_a_colour_scale_with_missing_ones_in_grey():
    z = np.random.default_rng(0).normal(size=(40, 2))
    values = np.where(np.arange(40) < 5, np.nan, np.arange(40.0))
    ax = ScoreDisplay(z, labels=values).plot().ax_
    assert to_hex(ax.collections[0].get_facecolor()[0]) == "#aaaaaa"
    np.testing.assert_array_equal(ax.collections[1].get_array(), values[5:])
    assert len(ax.figure.axes) == 2


def test_the_pointer_shows_the_name_of_a_row(wine, pca):
    picture = ScoreDisplay.from_estimator(pca, wine.data, names=[f"w{i}" for i in range(178)])
    drawn(picture.figure_)
    hover = picture.hover()
    canvas = picture.figure_.canvas

    def move(x, y):
        canvas.callbacks.process("motion_notify_event", MouseEvent("motion_notify_event", canvas, x, y))

    place = picture.ax_.transData.transform(pca.transform(wine.data)[7, :2])
    move(*place)
    assert hover.note.get_text() == "w7"
    assert hover.note.get_visible()
    move(1, 1)
    assert not hover.note.get_visible()
    hover.stop()
    move(*place)
    assert not hover.note.get_visible()


def test_a_scree_marks_every_rule_and_the_consensus(wine):
    advice, pca = rank_advice(wine.data, scale=True), PCA(scale=True).fit(wine.data)
    picture = ScreeDisplay.from_estimator(pca, advice=advice)
    top, rules = picture.axes_
    np.testing.assert_allclose([bar.get_height() for bar in top.patches], pca.explained_variance_ratio_)
    dots = [line for line in rules.get_lines() if line.get_marker() == "o"]
    assert [int(dot.get_xdata()[0]) for dot in dots] == list(advice.n_components)
    assert [text.get_text() for text in rules.get_yticklabels()] == list(advice.rules)
    choice = advice.choices["parallel"]
    line = next(line for line in top.get_lines() if "parallel" in line.get_label())
    above = pca.explained_variance_ratio_ > line.get_ydata()
    assert np.argmin(above) == choice.n_components
    assert any(np.allclose(line.get_xdata(), advice.consensus + 0.5) for line in top.get_lines())
    renderer = drawn(picture.figure_)
    assert not top.get_legend().get_window_extent(renderer).overlaps(top._left_title.get_window_extent(renderer))


def test_a_model_of_eigenvalues_and_their_whole_has_shares_too():
    genotypes = SimpleNamespace(eigenvalues_=np.array([3.0, 1.0]), total_variance_=10.0)
    assert [bar.get_height() for bar in ScreeDisplay.from_estimator(genotypes).ax_.patches] == [0.3, 0.1]
    Z = np.random.default_rng(0).normal(size=(9, 2))
    assert ScoreDisplay.from_predictions(Z, model=genotypes).ax_.get_ylabel() == "PC2 (10.0% of the variance)"
    assert ScoreDisplay.from_predictions(Z).ax_.get_ylabel() == "PC2"


def test_rules_beyond_the_components_drawn_are_arrows(wine):
    picture = ScreeDisplay.from_estimator(PCA(scale=True).fit(wine.data), advice=rank_advice(wine.data), most=2)
    assert len(picture.axes_[0].patches) == 2
    assert any(line.get_marker() == ">" for line in picture.axes_[1].get_lines())
    assert rendered(picture.figure_)


def test_loadings_are_lines_or_colours(wine, pca):
    L = pca.loadings()
    picture = LoadingsDisplay.from_estimator(pca, components=[1, 0])
    order = np.argsort(-np.abs(L[:, 1]))
    assert picture.ax_.get_yticklabels()[0].get_text() == wine.data.columns[order[0]]
    ends = np.concatenate([line.get_xydata() for line in picture.ax_.get_lines() if line.get_marker() in ("o", "s")])
    np.testing.assert_allclose(ends[np.argsort(ends[:, 1]), 0], L[order, 1])
    heat = LoadingsDisplay.from_estimator(pca, kind="heat", most=5).ax_
    assert heat.images[0].get_array().shape == (5, 3)
    assert np.abs(heat.images[0].get_array()).max() == np.abs(L).max()
    assert "largest 5 of 13" in heat.get_ylabel()
    assert rendered(heat.figure)


def test_intervals_of_loadings_are_drawn(pca):
    L = pca.loadings()
    ax = LoadingsDisplay(L, components=[0], intervals=(L - 0.1, L + 0.2)).plot().ax_
    ends = next(line for line in ax.get_lines() if line.get_marker() == "|").get_xdata()
    shown = np.sort(np.concatenate([L[:, 0] - 0.1, L[:, 0] + 0.2]))
    np.testing.assert_allclose(np.sort(ends), shown)


def test_contributions_are_sorted_with_their_average(wine, pca):
    ax = ContributionsDisplay.from_estimator(pca, components=(0, 1), most=4).ax_
    C = 100 * pca.components_[:2].T ** 2
    together = C @ pca.explained_variance_[:2] / pca.explained_variance_[:2].sum()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], np.sort(together)[::-1][:4])
    assert ax.get_lines()[0].get_xdata()[0] == pytest.approx(100 / 13)
    one, same = (ContributionsDisplay.from_estimator(pca, components=j) for j in (1, np.int64(1)))
    np.testing.assert_array_equal(one.values, same.values)
    rows = ContributionsDisplay.from_estimator(pca, wine.data, components=2)
    Z = pca.transform(wine.data)[:, 2]
    np.testing.assert_allclose(rows.values, 100 * Z**2 / np.sum(Z**2), rtol=1e-6)
    with pytest.raises(ValueError, match="weights"):
        ContributionsDisplay(C, components=(0, 1))


def test_products_of_a_biplot_are_the_data(wine, pca):
    picture = BiplotDisplay.from_estimator(pca, wine.data, alpha="symmetric", labels=wine.target, ellipse="mean")
    points, arrows = offsets(picture.ax_), heads(picture.ax_) / picture.factor_
    order = np.argsort(wine.target, kind="stable")  # groups are drawn one after another
    longest = np.argsort(-np.hypot(*biplot(pca, wine.data, "symmetric").columns.T), kind="stable")
    standard = (wine.data - wine.data.mean()) / wine.data.std(ddof=0)
    plane = PCA(2, scale=True).fit(wine.data)
    expected = (plane.inverse_transform(plane.transform(wine.data)) - plane.mean_) / plane.scale_
    np.testing.assert_allclose(points @ arrows.T, expected[np.ix_(order, longest)], atol=1e-6)
    assert np.corrcoef((points @ arrows.T).ravel(), standard.to_numpy()[np.ix_(order, longest)].ravel())[0, 1] > 0.7
    assert f"arrows × {picture.factor_:g}" in picture.ax_.get_xlabel()


def test_many_variables_of_a_biplot_are_dots_that_do_not_hide_the_rows():
    X = np.random.default_rng(0).normal(size=(30, 400))
    pca = PCA(2).fit(X)
    picture = BiplotDisplay.from_estimator(pca, X, most_arrows=7)
    V = picture.factor_ * biplot(pca, X).columns
    order = np.argsort(-np.hypot(*V.T), kind="stable")
    np.testing.assert_allclose(heads(picture.ax_), V[order[:7]])
    rows, dots = picture.ax_.collections
    np.testing.assert_allclose(np.asarray(dots.get_offsets()), V[order[7:]])
    assert dots.get_zorder() <= rows.get_zorder()


def test_names_of_rows_and_of_variables_do_not_overlap(wine, pca):
    names = [f"a wine of number {i}" for i in range(178)]
    picture = BiplotDisplay.from_estimator(pca, wine.data, names=names, most_names=40)
    renderer = drawn(picture.figure_)
    arrows, rows = (labels.boxes(renderer) for labels in picture.labels_)
    assert len(arrows) > 10
    assert len(rows) > 10
    assert overlapping([*arrows, *rows]) == []


def test_arrows_of_the_circle_are_correlations(wine, pca):
    extra = supplementary_columns(pca, wine.data, wine.data[["ash"]] ** 2, ["squared"])
    picture = CorrelationCircleDisplay.from_estimator(pca, supplementary=extra)
    Z = pca.transform(wine.data)
    columns = pd.concat([wine.data, wine.data[["ash"]] ** 2], axis=1).to_numpy()
    R = np.array([[np.corrcoef(x, Z[:, j])[0, 1] for j in (0, 1)] for x in columns.T])
    np.testing.assert_allclose(in_order(heads(picture.ax_)), in_order(R), atol=1e-6)
    assert picture.ax_.get_aspect() == 1.0
    assert overlapping(picture.labels_.boxes(drawn(picture.figure_))) == []
    many = CorrelationCircleDisplay(np.random.default_rng(0).uniform(-0.7, 0.7, (200, 2)))
    assert len(many.plot(most=20).labels_.texts) == 20


def test_alarms_are_drawn_beyond_their_limits(wine, pca):
    chart = monitor(pca, wine.data)
    rows = wine.data.copy()
    rows.iloc[::30] *= 1.5
    alarms = chart.check(rows)
    picture = MonitoringDisplay.from_estimator(chart, rows)
    same = MonitoringDisplay.from_predictions(alarms)
    assert rendered(picture.figure_) == rendered(same.figure_)
    above, below = picture.axes_
    assert len(above.collections[1].get_offsets()) == alarms.t2_alarm.sum()
    np.testing.assert_allclose(np.sort(below.collections[1].get_offsets()[:, 1]), np.sort(alarms.q[alarms.q_alarm]))
    plane = MonitoringDisplay.from_predictions(alarms, kind="plane").ax_
    np.testing.assert_allclose(in_order(offsets(plane)), in_order(np.column_stack([alarms.t2, alarms.q])))
    with pytest.raises(ValueError, match="PCA"):
        MonitoringDisplay.from_estimator(pca, rows)


def test_reconstructions_are_those_of_the_model():
    X = np.random.default_rng(0).normal(size=(30, 6))
    pca = PCA(4).fit(X)
    picture = ReconstructionDisplay.from_estimator(pca, X[:2], image_shape=(2, 3), counts=[4])
    back = pca.inverse_transform(pca.transform(X[:2]))
    same = ReconstructionDisplay.from_predictions(X[:2], {"k = 4": back}, image_shape=(2, 3), mean=pca.mean_)
    assert picture.lost_["k = 4"] == pytest.approx(np.sum((X[:2] - back) ** 2) / np.sum((X[:2] - pca.mean_) ** 2))
    np.testing.assert_allclose(same.axes_[1].images[0].get_array(), picture.axes_[1].images[0].get_array(), atol=1e-10)
    with pytest.raises(ValueError, match="'a' has shape"):
        ReconstructionDisplay(X[:2], {"a": X}, image_shape=(2, 3))


def test_a_field_is_the_same_from_predictions():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = KernelPCA(2, kernel="rbf", gamma=1.0).fit(X)
    one = KernelFieldDisplay.from_estimator(model, X, component=1, steps=20)
    grid = np.array([[x, y] for y in one.up for x in one.across])
    field = model.transform(grid)[:, 1].reshape(20, 20)
    np.testing.assert_allclose(one.field, field, atol=1e-12)
    two = KernelFieldDisplay.from_predictions(one.across, one.up, field, points=X, component=1)
    assert rendered(one.figure_) == rendered(two.figure_)


def test_pictures_of_several_panels_take_the_place_of_the_axes_given(wine, pca):
    figure = Figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    picture = LoadingsDisplay.from_estimator(pca, ax=left)
    assert picture.figure_ is figure
    assert not left.axison
    renderer = drawn(figure)
    half = figure.bbox.width / 2
    assert all(ax.get_window_extent(renderer).x1 <= half for ax in picture.axes_)
    assert ScoreDisplay.from_estimator(pca, wine.data, ax=right).ax_ is right
    loose = Figure().add_axes((0.1, 0.1, 0.8, 0.8))
    assert len(LoadingsDisplay.from_estimator(pca, ax=loose).axes_) == 3
    assert rendered(loose.figure)


@pytest.mark.parametrize(
    "draw",
    [
        lambda model, X: ScoreDisplay.from_estimator(model, X),
        lambda model, X: ScreeDisplay.from_estimator(model),
        lambda model, X: LoadingsDisplay.from_estimator(model),
        lambda model, X: ContributionsDisplay.from_estimator(model),
        lambda model, X: BiplotDisplay.from_estimator(model, X),
        lambda model, X: CorrelationCircleDisplay.from_estimator(model),
        lambda model, X: ReconstructionDisplay.from_estimator(model, X, image_shape=(1, 2)),
        lambda model, X: KernelFieldDisplay.from_estimator(model, X),
    ],
)
def test_a_model_that_was_not_fitted_is_refused(draw):
    with pytest.raises(NotFittedError):
        draw(PCA(), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("draw", "complaint"),
    [
        (lambda: ScoreDisplay([[0.0, np.nan]]), "scores of row 1 are not finite"),
        (lambda: ScoreDisplay(np.ones((3, 2)), names=["a"]), "names has 1 entries for 3"),
        (lambda: ScoreDisplay(np.ones((3, 2)), components=(0, 2)).plot(), "two from 0 to 1"),
        (lambda: ScoreDisplay(np.ones((3, 2))).plot(ellipse="all"), "(?s)ellipse.*rows.*mean"),
        (lambda: ScoreDisplay(np.ones((3, 2))).plot(level=95), "level=95"),
        (lambda: ScoreDisplay(np.ones((3, 1))).hover(), "no points to name"),
        (lambda: ScreeDisplay([]), "number for each component"),
        (lambda: ScreeDisplay.from_estimator(SimpleNamespace()), "does not know the shares"),
        (lambda: LoadingsDisplay(np.ones((3, 2)), components=[2]), "components 0 to 1"),
        (lambda: LoadingsDisplay(np.ones((3, 2))).plot(kind="pie"), "one of lines, heat"),
        (lambda: CorrelationCircleDisplay(np.ones((3, 1))), "Two components are drawn"),
        (lambda: KernelFieldDisplay([0, 1], [0, 1], np.ones((3, 2))), "is not of 2 by 2 points"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, complaint):
    with pytest.raises(ValueError, match=complaint):
        draw()


def test_hostile_names_of_columns_rows_and_labels_do_no_harm():
    rng = np.random.default_rng(0)
    bad = ["$\\frac{", "$a$", "_b", "c\nd", "e" * 3000, "שלום"]
    X = pd.DataFrame(rng.normal(size=(30, 6)), columns=bad)
    pca = PCA(3, scale=True).fit(X)
    rows = (bad * 5)[:30]
    for picture in (
        ScoreDisplay.from_estimator(pca, X, labels=rows, names=rows, legend_title="$\\bad{"),
        ScoreDisplay.from_estimator(pca, X, labels=rng.normal(size=30), legend_title="$\\bad{$"),
        BiplotDisplay.from_estimator(pca, X, labels=rows, names=rows),
        LoadingsDisplay.from_estimator(pca),
        CorrelationCircleDisplay.from_estimator(pca),
        ContributionsDisplay.from_estimator(pca),
    ):
        assert rendered(picture.figure_)
        assert picture.ax_.get_window_extent().width > 0.2 * picture.figure_.bbox.width


def test_a_display_saves_and_shows_itself(tmp_path, pca, wine):
    picture = ScoreDisplay(pca.transform(wine.data))
    assert picture._repr_png_().startswith(b"\x89PNG")
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        picture.save(tmp_path / f"a.{kind}")
        assert (tmp_path / f"a.{kind}").read_bytes().startswith(start)
    with pytest.raises(TypeError, match="picture"):
        Display().plot()
