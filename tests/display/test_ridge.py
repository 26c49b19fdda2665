"""The pictures of ridge regression show the path, the choice and the fit they were handed."""

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.base import clone

from gramian.display import PredictionBandDisplay, ResidualsDisplay, RidgePathDisplay
from gramian.display.base import MARKERS, PALETTE
from gramian.display.ridge import leave_one_out_predictions
from gramian.kernel_ridge.estimator import KernelRidge, KernelRidgeCV
from gramian.results.certificate import NumericalWarning
from gramian.ridge.estimator import Ridge, RidgeCV

ALPHAS = np.geomspace(1e-2, 1e3, 15)


def fit_axes(*args, **options):
    return PredictionBandDisplay.from_estimator(*args, **options).ax_


def path_figure(model, **options):
    return RidgePathDisplay.from_estimator(model, **options).figure_


def rendered(figure):
    """The figure as PNG bytes: drawing is where matplotlib's own warnings would appear."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def sample(p=4, t=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, p))
    noise = rng.standard_normal(40 if t is None else (40, t))
    return X, X @ rng.standard_normal(p if t is None else (p, t)) + noise


def line_of(ax, label):
    return next(line for line in ax.get_lines() if line.get_label() == label)


def vertical(ax, x):
    """Whether a line from bottom to top stands at x."""
    return any(np.allclose(line.get_xdata(), x) and len(line.get_xdata()) == 2 for line in ax.get_lines())


def test_three_panels_show_the_path_of_a_model():
    model = RidgeCV(alphas=ALPHAS).fit(*sample())
    figure = path_figure(model)
    coefficients, kept, criteria, likelihood = figure.axes
    for j in range(4):
        line = line_of(coefficients, f"x{j + 1}")
        np.testing.assert_allclose(line.get_xdata(), ALPHAS)
        np.testing.assert_allclose(line.get_ydata(), model.path_.coef[:, 0, j])
    largest = line_of(kept, "largest σ").get_ydata()
    s = model.path_.singular_values[0]
    np.testing.assert_allclose(largest, s**2 / (s**2 + ALPHAS))
    np.testing.assert_allclose(line_of(criteria, "leave-one-out").get_ydata(), model.path_.loo[:, 0])
    np.testing.assert_allclose(line_of(criteria, "GCV").get_ydata(), model.path_.gcv[:, 0])
    shown = line_of(likelihood, "−log likelihood (right)").get_ydata()
    np.testing.assert_allclose(shown, -model.path_.log_marginal_likelihood[:, 0])
    assert all(vertical(ax, model.alpha_) for ax in (coefficients, kept, criteria))
    assert f"{model.alpha_:.3g}" in criteria.get_xlabel()
    assert rendered(figure).startswith(b"\x89PNG")


def test_the_marker_of_a_criterion_is_at_its_least_value():
    model = RidgeCV(alphas=ALPHAS).fit(*sample())
    _, _, criteria, likelihood = path_figure(model).axes
    for ax, label in ((criteria, "leave-one-out"), (criteria, "GCV"), (likelihood, "−log likelihood (right)")):
        line = line_of(ax, label)
        assert line.get_markevery() == [int(np.argmin(line.get_ydata()))]


def test_lines_are_told_apart_without_colour():
    _, kept, criteria, likelihood = path_figure(RidgeCV(alphas=ALPHAS).fit(*sample())).axes
    lines = [line for ax in (criteria, likelihood) for line in ax.get_lines() if line.get_marker() in MARKERS]
    assert len({line.get_linestyle() for line in lines}) == len({line.get_marker() for line in lines}) == 3
    assert line_of(kept, "largest σ").get_linestyle() != line_of(kept, "smallest σ").get_linestyle()


def test_degrees_of_freedom_stand_above_their_penalties():
    model = RidgeCV(alphas=ALPHAS).fit(*sample())
    figure = path_figure(model)
    rendered(figure)
    top = figure.axes[0].child_axes[0]
    for at, text in zip(top.get_xticks(), top.get_xticklabels(), strict=True):
        k = int(np.argmin(np.abs(ALPHAS - at)))
        assert text.get_text() == f"{model.path_.dof[k]:.3g}"


def test_unsorted_penalties_and_zero_are_put_in_order():
    X, y = sample()
    model = RidgeCV(alphas=[10.0, 1e-9, 0.1, 1.0]).fit(X, y)
    line = line_of(path_figure(model).axes[0], "x1")
    assert line.get_xdata().tolist() == [1e-9, 0.1, 1.0, 10.0]
    expected = [Ridge(alpha=lam).fit(X, y).coef_[0] for lam in (1e-9, 0.1, 1.0, 10.0)]
    np.testing.assert_allclose(line.get_ydata(), expected)
    path = replace(model.path_, alphas=np.array([10.0, 0.0, 0.1, 1.0]))
    assert line_of(path_figure(path).axes[0], "x1").get_xdata().tolist() == [0.1, 1.0, 10.0]
    chosen = replace(path, loo=np.array([[3.0], [1.0], [2.0], [2.0]]))
    assert "no place" in path_figure(chosen).axes[2].get_xlabel()
    with pytest.raises(ValueError, match="λ above 0"):
        path_figure(replace(path, alphas=np.zeros(4)))


def test_a_path_alone_is_marked_by_the_criterion_asked_for():
    path = RidgeCV(alphas=ALPHAS).fit(*sample()).path_
    for criterion in ("loo", "gcv", "marginal_likelihood"):
        figure = path_figure(path, criterion=criterion)
        assert vertical(figure.axes[0], ALPHAS[path.best(criterion)[0]])


def test_many_coefficients_are_grey_but_for_the_largest():
    X, y = sample(p=30)
    model = RidgeCV(alphas=ALPHAS).fit(X, y)
    figure = path_figure(model)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(texts) == len(PALETTE)
    largest = np.argsort(-np.abs(model.path_.coef[:, 0]).max(axis=0))[: len(PALETTE)]
    assert texts == [f"x{j + 1}" for j in np.sort(largest)]
    assert len(figure.axes[0].get_lines()) >= 30
    assert rendered(figure)


def test_names_come_from_the_frame_or_the_caller():
    pandas = pytest.importorskip("pandas")
    X, y = sample()
    model = RidgeCV(alphas=ALPHAS).fit(pandas.DataFrame(X, columns=list("abcd")), y)
    assert line_of(path_figure(model).axes[0], "c") is not None
    given = path_figure(model, names=["p", "q", "r", "s"]).axes[0]
    assert [text.get_text() for text in given.get_legend().get_texts()] == ["p", "q", "r", "s"]
    with pytest.raises(ValueError, match=r"2 entries.*4 columns"):
        path_figure(model, names=["p", "q"])


def test_every_target_has_its_picture():
    model = RidgeCV(alphas=ALPHAS, alpha_per_target=True).fit(*sample(t=2))
    for target in (0, 1):
        axes = path_figure(model, target=target).axes
        np.testing.assert_allclose(line_of(axes[0], "x2").get_ydata(), model.path_.coef[:, target, 1])
        assert vertical(axes[0], model.alpha_[target])
    with pytest.raises(ValueError, match="0 to 1, got 2"):
        path_figure(model, target=2)


def test_dual_coefficients_are_left_out():
    x = np.linspace(0, 6, 30)[:, None]
    model = KernelRidgeCV(alphas=ALPHAS, gamma=1.0).fit(x, np.sin(x[:, 0]))
    figure = path_figure(model)
    assert [ax.get_title(loc="left") for ax in figure.axes[:2]] == ["Kept of each direction", "What chooses λ"]
    assert vertical(figure.axes[0], model.alpha_)
    assert rendered(figure)


@pytest.mark.parametrize("shape", [(15, 1, 0), (0, 1, 4), (0,)])
def test_coefficients_that_were_not_kept_are_not_drawn(shape):
    path = replace(RidgeCV(alphas=ALPHAS).fit(*sample()).path_, coef=np.empty(shape))
    assert path_figure(path).axes[0].get_title(loc="left") == "Kept of each direction"
    with pytest.raises(ValueError, match="coefficients"):
        path_figure(path, coefficients=True)


def test_what_has_no_path_is_said():
    with pytest.raises(ValueError, match="Ridge"):
        path_figure(Ridge().fit(*sample()))
    with pytest.raises(ValueError, match="ndarray"):
        path_figure(np.ones(3))


@pytest.fixture
def curve():
    x = np.linspace(0, 6, 40)
    return x, np.sin(x) + 0.1 * np.random.default_rng(0).standard_normal(40)


def test_a_fit_shows_data_prediction_and_band(curve):
    x, y = curve
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x[:, None], y)
    ax = fit_axes(model, x, y)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), np.column_stack([x, y]))
    line = line_of(ax, "prediction")
    np.testing.assert_allclose(line.get_ydata(), model.predict(line.get_xdata()[:, None]))
    f, std = model.predict(x[:1, None], return_std=True)
    low, high = ax.collections[1].get_datalim(ax.transData).intervaly
    assert low < f[0] - 1.95 * std[0] < f[0] + 1.95 * std[0] < high
    assert rendered(ax.figure)


def test_the_band_of_a_straight_line_is_its_interval(curve):
    x, y = curve
    model = Ridge(alpha=0.1).fit(x[:, None], y)
    ax = fit_axes(model, x, y, level=0.8)
    low, high = model.predict_interval(np.linspace(0, 6, 300)[:, None], level=0.8)
    vertices = ax.collections[1].get_paths()[0].vertices
    for end in (low, high):
        distance = np.abs(vertices[:, 1][:, None] - end[None, ::50]).min(axis=0)
        np.testing.assert_allclose(distance, 0, atol=1e-9)
    assert "80% of new observations" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_certified_bound_is_drawn_where_asked_for(curve):
    x, y = curve
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0, solver="cg", tol=1e-2).fit(x[:, None], y)
    left, right = Figure().subplots(1, 2)
    assert fit_axes(model, x, y, ax=left, bound=True) is left
    at = np.linspace(0, 6, 300)
    f, bound = model.predict(at[:, None], return_bound=True)
    label = f"certified bound: ±{bound.max():.1e}"
    np.testing.assert_allclose(line_of(left, label).get_ydata(), f + bound)
    assert len(fit_axes(model, x, y, ax=right).get_lines()) == 1


def test_a_model_without_intervals_is_drawn_without_them(curve):
    class Plain:
        def predict(self, X):
            return X[:, 0]

    x, y = curve
    ax = fit_axes(Plain(), x, y)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["data", "prediction"]


def test_wrong_shapes_are_named(curve):
    x, y = curve
    model = Ridge().fit(x[:, None], y)
    with pytest.raises(ValueError, match="one column"):
        fit_axes(model, np.ones((4, 2)), np.ones(4))
    with pytest.raises(ValueError, match="40 points, y 39"):
        fit_axes(model, x, y[1:])
    with pytest.raises(ValueError, match="0 and 1"):
        fit_axes(model, x, y, level=95)
    with pytest.raises(ValueError, match=r"target.*0 to 1"):
        fit_axes(model, x, np.column_stack([y, y]), target=2)


def test_a_kernel_path_rises_and_is_drawn_from_the_largest():
    x = np.linspace(0, 6, 30)[:, None]
    model = KernelRidgeCV(alphas=ALPHAS, gamma=1.0).fit(x, np.sin(x[:, 0]))
    kept = path_figure(model).axes[0]
    largest, smallest = (line_of(kept, f"{which} σ").get_ydata() for which in ("largest", "smallest"))
    s = model.path_.singular_values.max()
    np.testing.assert_allclose(largest, s**2 / (s**2 + ALPHAS))
    assert np.all(largest > smallest)
    turned = RidgeCV(alphas=ALPHAS).fit(*sample()).path_
    turned = replace(turned, singular_values=turned.singular_values[::-1], filter_factors=turned.filter_factors[::-1])
    s = turned.singular_values.max()
    np.testing.assert_allclose(line_of(path_figure(turned).axes[1], "largest σ").get_ydata(), s**2 / (s**2 + ALPHAS))


def test_long_names_leave_room_and_nothing_lies_on_the_titles():
    X, y = sample()
    names = [f"the_pressure_in_the_upper_chamber_measured_by_sensor_{j}" for j in range(4)]
    figure = path_figure(RidgeCV(alphas=ALPHAS).fit(X, y), names=names)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == [f"the_press…sensor_{j}" for j in range(4)]
    assert figure.axes[2].get_window_extent(renderer).width > 0.6 * figure.bbox.width
    for ax in figure.axes[:3]:
        title = ax._left_title.get_window_extent(renderer)
        assert not any(other.get_legend().get_window_extent(renderer).overlaps(title) for other in figure.axes[:3])


def test_a_single_penalty_is_drawn_as_points():
    axes = path_figure(RidgeCV(alphas=[1.0]).fit(*sample())).axes
    assert all(line.get_marker() != "None" for line in axes[1].get_lines()[:4])
    assert line_of(axes[1], "largest σ").get_marker() != line_of(axes[1], "smallest σ").get_marker()


def test_markers_at_the_same_place_show_each_other():
    _, _, criteria, likelihood = path_figure(RidgeCV(alphas=ALPHAS).fit(*sample())).axes
    lines = [line for ax in (criteria, likelihood) for line in ax.get_lines() if line.get_marker() in MARKERS]
    assert [line.get_markerfacecolor() for line in lines] == ["none"] * 3
    sizes = [line.get_markersize() for line in lines]
    assert all(small < 0.7 * large for large, small in pairwise(sizes))


def test_coefficients_have_markers_all_along_their_lines():
    ax = path_figure(RidgeCV(alphas=ALPHAS).fit(*sample())).axes[0]
    lines = [line_of(ax, f"x{j}") for j in (1, 2, 3, 4)]
    assert len({line.get_marker() for line in lines}) == 4
    for line in lines:
        start, step = line.get_markevery()
        assert len(ALPHAS[start::step]) >= 5


def test_a_bound_thinner_than_the_line_is_a_number(curve):
    x, y = curve
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x[:, None], y)
    labels = [text.get_text() for text in fit_axes(model, x, y, bound=True).get_legend().get_texts()]
    assert float(labels[-1].removeprefix("certified bound: ±")) < 1e-9


@pytest.mark.parametrize("kernel", [False, True])
def test_rows_left_out_are_predicted_as_by_fits_without_them(kernel):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(25, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=25)
    model = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.7) if kernel else Ridge(alpha=2.0)
    found = leave_one_out_predictions(model.fit(X, y), X, y)
    apart = [clone(model).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(25)]
    np.testing.assert_allclose(found, apart, rtol=1e-8, atol=1e-10)
    picture = ResidualsDisplay.from_estimator(model, X, y, left_out=True)
    np.testing.assert_allclose(picture.residuals, y - apart, rtol=1e-7, atol=1e-10)
    assert picture.ax_.get_title(loc="left") == "Rows left out"


def test_a_fit_that_goes_through_every_point_predicts_no_row_by_the_others():
    X, y = np.random.default_rng(0).normal(size=(4, 6)), [1.0, 2.0, 0.0, 1.0]
    with pytest.warns(NumericalWarning):
        model = Ridge(alpha=0.0).fit(X, y)
    assert leave_one_out_predictions(model, X, y) is None
