"""The pictures of kernel PCA show the scores, points and images they were handed."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import make_circles, make_moons, make_swiss_roll
from sklearn.decomposition import KernelPCA

from gramian import PCA
from gramian.display import EmbeddingDisplay, KernelFieldDisplay, ReconstructionDisplay
from gramian.display.base import MARKERS


def component_field(model, X, component=0, labels=None, ax=None):
    return KernelFieldDisplay.from_estimator(model, X, component=component, labels=labels, ax=ax).ax_


def before_and_after(X, scores, labels=None):
    return EmbeddingDisplay.from_predictions(X, scores, labels=labels)


def rendered(figure):
    """The figure as PNG bytes: drawing is where matplotlib's own warnings would appear."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


@pytest.fixture
def moons():
    return make_moons(60, noise=0.05, random_state=0)


@pytest.fixture
def model(moons):
    return KernelPCA(2, kernel="rbf", gamma=15).fit(moons[0])


def test_a_field_is_the_component_of_the_points_under_it(moons, model):
    X, y = moons
    ax = component_field(model, X, 1, y)
    shades = ax.collections[0]
    across, up = ax.get_xlim(), ax.get_ylim()
    assert across[0] < X[:, 0].min() < X[:, 0].max() < across[1]
    assert up[0] < X[:, 1].min() < X[:, 1].max() < up[1]
    scores = model.transform(X)[:, 1]
    low, high = shades.get_clim()
    assert low <= scores.min() < scores.max() <= high
    assert low == pytest.approx(-high)  # white is zero
    assert ax.get_title(loc="left") == "Component 2"
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_level_lines_of_a_linear_component_are_straight_and_orthogonal_to_it():
    X = np.random.default_rng(0).normal(size=(30, 2)) * [3.0, 1.0]
    pca = PCA(n_components=1).fit(X)
    ax = component_field(pca, X)
    lines = [line for line in ax.collections[1].get_paths() if len(line.vertices) > 3]
    assert lines
    for line in lines:
        steps = np.diff(line.vertices, axis=0)
        np.testing.assert_allclose(steps @ pca.components_[0], 0.0, atol=1e-6)


def test_points_of_a_field_lie_where_they_are_and_draw_on_the_axes_given(moons, model):
    X, y = moons
    left, right = Figure().subplots(1, 2)
    assert component_field(model, X, labels=y, ax=left) is left
    classes = [c for c in left.collections if len(c.get_offsets()) > 1]
    np.testing.assert_allclose(np.sort(np.vstack([c.get_offsets() for c in classes]), axis=0), np.sort(X, axis=0))
    assert len(classes) == 2
    plain = component_field(model, X, ax=right)
    np.testing.assert_allclose(plain.collections[-1].get_offsets(), X)
    assert plain.get_legend() is None


def test_a_constant_field_is_drawn_without_lines():
    class Constant:
        def transform(self, X):
            return np.zeros((len(X), 1))

    ax = component_field(Constant(), np.array([[0.0, 1.0], [2.0, 1.0]]))
    assert rendered(ax.figure)


@pytest.mark.parametrize(
    "data",
    [make_moons(40, random_state=0), make_circles(40, factor=0.3, random_state=0)],
    ids=["moons", "circles"],
)
def test_data_of_the_plane_stand_beside_their_scores(data):
    X, y = data
    scores = KernelPCA(3, kernel="rbf", gamma=2.0).fit_transform(X)
    picture = before_and_after(X, scores, y)
    left, right = picture.axes_
    for ax, expected in ((left, X), (right, scores[:, :2])):
        for code, points in enumerate(ax.collections):
            np.testing.assert_allclose(points.get_offsets(), expected[y == code])
    assert left.get_legend() is None
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["0", "1"]
    assert rendered(picture.figure_)


def test_a_single_score_is_drawn_as_a_strip():
    X, y = make_moons(40, random_state=0)
    scores = KernelPCA(1, kernel="rbf", gamma=15).fit_transform(X)
    right = before_and_after(X, scores, y).axes_[1]
    drawn = np.concatenate([points.get_offsets()[:, 0] for points in right.collections])
    np.testing.assert_allclose(np.sort(drawn), np.sort(scores[:, 0]))


def test_a_roll_is_drawn_in_space_with_the_colours_of_its_scores():
    X, t = make_swiss_roll(50, random_state=0)
    scores = KernelPCA(2, kernel="rbf", gamma=0.01).fit_transform(X)
    picture = before_and_after(X, scores, t)
    space, plane = picture.axes_
    np.testing.assert_allclose(space.collections[0].get_array(), t)
    np.testing.assert_allclose(plane.collections[0].get_array(), t)
    np.testing.assert_allclose(np.column_stack(space.collections[0]._offsets3d), X)
    assert rendered(picture.figure_)
    halves = before_and_after(X, scores, t > 9).axes_[0]
    assert len(halves.collections) == 2 <= len(MARKERS)
    assert rendered(before_and_after(X, scores).figure_)


def test_images_stand_beside_what_every_method_gave_back():
    rng = np.random.default_rng(0)
    clean = rng.uniform(size=(3, 8))
    noisy = clean + 0.5
    picture = ReconstructionDisplay.from_predictions(clean, {"noisy": noisy}, image_shape=(2, 4))
    assert len(picture.axes_) == 6
    assert picture.lost_["noisy"] == pytest.approx(0.25 * 24 / np.sum((clean - clean.mean(axis=0)) ** 2))
    np.testing.assert_allclose(picture.axes_[3].images[0].get_array(), noisy[1].reshape(2, 4))
    np.testing.assert_allclose(picture.axes_[4].images[0].get_array(), clean[2].reshape(2, 4))
    assert rendered(picture.figure_)


def test_wrong_shapes_are_named(moons, model):
    X, _ = moons
    with pytest.raises(ValueError, match="2 columns"):
        component_field(model, np.ones((4, 3)))
    with pytest.raises(ValueError, match="0 to 1, got 2"):
        component_field(model, X, 2)
    with pytest.raises(ValueError, match="two or three"):
        before_and_after(np.ones((4, 5)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="60 rows"):
        before_and_after(X, np.ones((4, 2)))
