"""The picture of a fit shows the data it was fitted to and the density that was fitted."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from gramian.display import FitDisplay
from gramian.likelihood.fit import fit
from gramian.likelihood.sample import Binned, Censored, Intervals

INF = float("inf")
GAMMA = np.random.default_rng(0).gamma(2.0, 1.5, 80)


def drawn(estimate, **options):
    return FitDisplay.from_estimator(estimate, **options).ax_


def rendered(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def curve(ax):
    return next(line for line in ax.lines if line.get_label() == "fit").get_xydata().T


def test_values_are_a_histogram_of_density_under_the_fitted_curve():
    est = fit("gamma", GAMMA)
    ax = drawn(est, bins=12)
    heights, edges = np.histogram(GAMMA, bins=12, density=True)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], heights)
    np.testing.assert_allclose([bar.get_x() for bar in ax.patches], edges[:-1])
    x, y = curve(ax)
    np.testing.assert_allclose(y, stats.gamma.pdf(x, est["shape"], scale=1 / est["rate"]), rtol=1e-9, atol=1e-300)
    assert x.min() >= 0.0
    assert ax.get_title(loc="left").startswith("gamma: shape")
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_weights_are_counts_in_the_histogram():
    est = fit("gamma", GAMMA, sample_weight=np.arange(80))
    twin = fit("gamma", np.repeat(GAMMA, np.arange(80)))
    bars = [[(bar.get_x(), bar.get_height()) for bar in drawn(e).patches] for e in (est, twin)]
    np.testing.assert_allclose(*bars)
    shares = fit("gamma", GAMMA, sample_weight=np.linspace(0.5, 1.5, 80))
    np.testing.assert_allclose(sum(bar.get_height() * bar.get_width() for bar in drawn(shares).patches), 1.0)
    heights = np.histogram(GAMMA, bins=5, weights=np.arange(80), density=True)[0]
    np.testing.assert_allclose([bar.get_height() for bar in drawn(est, bins=5).patches], heights)


def test_classes_have_the_area_of_their_share_and_open_ones_are_hatched():
    est = fit("normal", Binned([-INF, 0.0, 1.0, 3.0, INF], [3, 8, 6, 3]))
    ax = drawn(est)
    bars = sorted(ax.patches, key=lambda bar: bar.get_x())
    np.testing.assert_allclose([bar.get_height() * bar.get_width() for bar in bars], np.array([3, 8, 6, 3]) / 20)
    assert [bar.get_hatch() for bar in bars] == ["//", "", "", "//"]
    assert [bar.get_width() for bar in bars] == [1.0, 1.0, 2.0, 2.0]
    assert rendered(ax.figure)


def test_counts_are_bars_and_the_fit_is_points():
    x = np.array([0, 1, 1, 2, 4])
    est = fit("poisson", x)
    ax = drawn(est)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], [0.2, 0.4, 0.2, 0.0, 0.2])
    k, p = curve(ax)
    np.testing.assert_allclose(p, stats.poisson.pmf(k, 1.6), rtol=1e-12)
    many = drawn(fit("poisson", np.arange(0, 400, 3)))
    assert len(many.patches) == 60


def test_censored_times_are_their_product_limit():
    t, event = np.minimum(GAMMA, 4.0), GAMMA <= 4.0
    est = fit("weibull", Censored(t, event))
    ax = drawn(est)
    steps = next(line for line in ax.lines if "product" in line.get_label())
    times, S = est.sample.survival()
    np.testing.assert_allclose(steps.get_ydata()[1:-1], S)
    np.testing.assert_allclose(steps.get_xdata()[1:-1], times)
    x, y = curve(ax)
    np.testing.assert_allclose(y, np.exp(-((x / est["scale"]) ** est["shape"])), rtol=1e-9)
    marks = next(line for line in ax.lines if line.get_label() == "censored")
    assert len(marks.get_xdata()) == (~event).sum()
    assert rendered(ax.figure)


def test_intervals_are_lines_under_the_density():
    ax = drawn(fit("normal", Intervals([0.0, 1.0, -INF, 2.0, 1.5], [2.0, 3.0, 1.0, INF, 1.5])))
    lines = ax.collections[0].get_segments()
    assert len(lines) == 5
    assert all(line[:, 1].max() < 0 for line in lines)
    assert min(ax.get_yticks()) >= 0
    whole = drawn(fit("poisson", Intervals([-1.0, 1.0, 2.0], [1.0, 3.0, 5.0])))
    assert len(curve(whole)[0]) == 7
    assert rendered(ax.figure)


def test_a_truncated_fit_is_drawn_as_it_could_be_seen():
    seen = GAMMA[GAMMA > 1.0]
    est = fit("exponential", seen, truncated=(1.0, INF))
    ax = drawn(est, ax=Figure().subplots())
    x, y = curve(ax)
    expected = np.where(x < 1.0, 0.0, est["rate"] * np.exp(-est["rate"] * (x - 1.0)))
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12)


def test_rows_are_refused():
    with pytest.raises(ValueError, match="is no curve"):
        drawn(fit("multivariate normal", np.random.default_rng(0).normal(size=(9, 2))))


def test_a_left_censored_record_at_the_extreme_is_no_point():
    ax = drawn(fit("normal", Censored([1.0, 2.0, 3.0, 4.0], [0, 1, 1, 1], side="left")))
    dots = next(line for line in ax.lines if line.get_marker() == ".")
    np.testing.assert_array_equal(np.sort(dots.get_xdata()), [2.0, 3.0, 4.0])


def test_times_without_an_event_survive_at_one():
    ax = drawn(fit("exponential", Censored([1.0, 2.0, 3.0], [0, 0, 0])))
    steps = next(line for line in ax.lines if line.get_label() == "data (product limit)")
    np.testing.assert_array_equal(steps.get_ydata(), [1.0, 1.0])


def test_labels_are_bars_of_their_shares():
    ax = drawn(fit("categorical", ["a", "b", "a", "c"]))
    assert [bar.get_height() for bar in ax.patches] == [0.5, 0.25, 0.25]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]


def test_axes_show_the_circle_both_sides_of_a_coin_and_nothing_of_weight_zero():
    x, _ = curve(drawn(fit("von mises", [3.0, 3.1, -3.0])))
    assert (x.min(), x.max()) == (-np.pi, np.pi)
    assert drawn(fit("bernoulli", [1, 1])).get_xticks().tolist() == [0.0, 1.0]
    x, _ = curve(drawn(fit("normal", [1.0, 2.0, 3.0, 1e6], sample_weight=[1, 1, 1, 0])))
    assert x.max() < 4.0
