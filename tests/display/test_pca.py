"""The pictures show what the fitted attributes say."""

import io

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from gramian import PCA
from gramian.display import ReconstructionDisplay, ScoreDisplay, ScreeDisplay
from gramian.display.base import MARKERS, PALETTE


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(60, 6)) * np.array([6.0, 4.0, 3.0, 2.0, 1.0, 0.5])


@pytest.fixture
def pca(data):
    return PCA().fit(data)


def scree(pca, ax=None):
    return ScreeDisplay.from_estimator(pca, ax=ax).ax_


def score_plot(scores, pca, **options):
    return ScoreDisplay.from_predictions(scores, model=pca, **options).ax_


def gallery(pca, X, **options):
    return ReconstructionDisplay.from_estimator(pca, X, **options).figure_


def legend_names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def rendered(figure):
    """The figure as PNG bytes: drawing is where matplotlib's own warnings would appear."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def test_scree_bars_are_the_ratios_and_the_line_their_sum(pca):
    ax = scree(pca)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, pca.explained_variance_ratio_)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.cumsum(pca.explained_variance_ratio_))
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_scree_of_many_components_is_not_crowded_with_numbers():
    wide = PCA().fit(np.random.default_rng(1).normal(size=(80, 50)))
    assert not scree(wide).texts


def test_scree_of_small_shares_is_drawn_on_their_scale():
    pca = PCA(n_components=2).fit(np.random.default_rng(1).normal(size=(300, 200)))
    assert scree(pca).get_ylim()[1] < 0.1


def test_a_crowd_of_rows_is_drawn_as_its_density(pca, data):
    scores = np.tile(pca.transform(data), (400, 1))
    ax = score_plot(scores, pca)
    assert ax.collections[0].get_array().sum() == len(scores)
    assert rendered(ax.figure)


def test_pictures_draw_on_the_axes_given(pca, data):
    left, right = Figure().subplots(1, 2)
    assert scree(pca, ax=left) is left
    assert score_plot(pca.transform(data), pca, ax=right) is right


def test_score_plot_places_rows_at_their_scores(pca, data):
    scores = pca.transform(data)
    ax = score_plot(scores, pca)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), scores[:, :2])
    assert ax.get_xlabel() == f"PC1 ({pca.explained_variance_ratio_[0]:.1%} of the variance)"
    assert ax.get_aspect() == 1.0
    assert rendered(ax.figure)


def test_classes_differ_in_colour_and_in_marker(pca, data):
    ax = score_plot(pca.transform(data), pca, labels=np.arange(60) % 10)
    assert legend_names(ax) == [str(digit) for digit in range(10)]
    assert [to_hex(points.get_facecolor()[0]) for points in ax.collections] == list(PALETTE)
    assert len(set(MARKERS)) == len(PALETTE)


def test_many_numbers_get_a_colour_scale(pca, data):
    ax = score_plot(pca.transform(data), pca, labels=data[:, 0])
    assert ax.get_legend() is None
    assert len(ax.figure.axes) == 2
    assert rendered(ax.figure)


def test_of_very_many_names_the_rarest_are_put_together(pca, data):
    names = [f"class {i if i < 50 else 0}" for i in range(60)]
    ax = score_plot(pca.transform(data), pca, labels=names)
    assert legend_names(ax)[-1] == "other (11)"
    assert len(legend_names(ax)) == 40
    assert sum(len(points.get_offsets()) for points in ax.collections) == 60
    assert rendered(ax.figure)


def test_one_component_is_a_histogram(data):
    pca = PCA(n_components=1).fit(data)
    ax = score_plot(pca.transform(data), pca)
    assert sum(bar.get_height() for bar in ax.patches) == 60


@pytest.mark.parametrize("scale", [False, True])
def test_gallery_shows_the_reconstruction_of_the_estimator(data, scale):
    pca = PCA(n_components=4, scale=scale).fit(data)
    figure = gallery(pca, data[:2], image_shape=(2, 3), counts=[1, 4])
    assert [ax.get_title() for ax in figure.axes[:3]] == ["original", "k = 1", "k = 4"]
    shown = np.asarray(figure.axes[2].images[0].get_array()).ravel()
    np.testing.assert_allclose(shown, pca.inverse_transform(pca.transform(data[:2]))[0], atol=1e-10)
    assert rendered(figure)


def test_gallery_counts_default_to_halving(data):
    figure = gallery(PCA().fit(data), data[:1], image_shape=(2, 3))
    assert [ax.get_title() for ax in figure.axes] == ["original", "k = 1", "k = 3", "k = 6"]


def test_gallery_refuses_a_shape_that_does_not_fit(pca, data):
    with pytest.raises(ValueError, match=r"image_shape \(2, 2\).*6 values"):
        gallery(pca, data, image_shape=(2, 2))
