"""Pictures of regressions, mixtures, likelihoods and maps draw the numbers of the models."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from scipy.stats import beta, chi2, norm, poisson
from sklearn.exceptions import NotFittedError

from display.drawing import drawn, legend_names, overlapping, rendered
from gramian import (
    GaussianMixture,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    MaximumLikelihood,
    Ridge,
    RidgeCV,
)
from gramian.analysis import procrustes
from gramian.display import (
    BinnedMixtureDisplay,
    FeatureSharesDisplay,
    KernelFieldDisplay,
    LeaveOneOutDisplay,
    MapDisplay,
    MixtureChoiceDisplay,
    MixtureDisplay,
    PredictionBandDisplay,
    ProfileDisplay,
    ResidualsDisplay,
    RidgePathDisplay,
)
from gramian.likelihood import fit
from gramian.mixture.choose import select_mixture


@pytest.fixture(scope="module")
def curve():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 50))
    return x, np.sin(x) + 0.1 * rng.normal(size=50)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=60)


def offsets(ax):
    return np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)])


def line_of(ax, label):
    return next(line for line in ax.get_lines() if line.get_label() == label)


def test_each_bandwidth_has_its_line_and_the_least_is_marked(curve):
    x, y = curve
    model = KernelRidgeCV(np.geomspace(1e-4, 10, 8), gamma=[0.1, 1.0, 10.0]).fit(x[:, None], y)
    picture = LeaveOneOutDisplay.from_estimator(model)
    for i in range(3):
        line = line_of(picture.ax_, f"kernel {i}")
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([model.alphas_[i], -model.scores_[i]]))
    assert legend_names(picture.ax_) == ["γ = 0.1", "γ = 1", "γ = 10"]
    assert picture.alphas[picture.best_] == model.alpha_
    assert model.kernels_[picture.best_[0]] == model.kernel_
    assert f"{model.alpha_:.3g}" in picture.ax_.get_title(loc="left")
    # the errors themselves, by leaving out each row in turn
    i, j = picture.best_
    lam, gamma = model.alphas_[i, j], model.kernels_[i].gamma
    K = np.exp(-gamma * (x[:, None] - x[None, :]) ** 2)
    errors = [
        y[k]
        - np.delete(K[k], k) @ np.linalg.solve(np.delete(np.delete(K, k, 0), k, 1) + lam * np.eye(49), np.delete(y, k))
        for k in range(50)
    ]
    assert picture.values[i, j] == pytest.approx(np.mean(np.square(errors)), rel=1e-6)


def test_many_bandwidths_are_a_map_with_a_row_for_each(curve):
    x, y = curve
    model = KernelRidgeCV(np.geomspace(1e-3, 1, 4), gamma=list(np.geomspace(0.01, 10, 10))).fit(x[:, None], y)
    ax = LeaveOneOutDisplay.from_estimator(model).ax_
    rows = [mesh for mesh in ax.collections if isinstance(mesh, QuadMesh)]
    shown = np.concatenate([np.asarray(mesh.get_array()) for mesh in rows])
    np.testing.assert_array_equal(shown, -model.scores_)
    for gamma, mesh in zip(np.geomspace(0.01, 10, 10), rows, strict=True):
        low, high = mesh.get_coordinates()[[0, 1], 0, 1]
        assert low < gamma < high
    assert rendered(ax.figure)


def test_kernels_of_other_kinds_and_plain_ridge_have_lines_too(curve, table):
    x, y = curve
    mixed = KernelRidgeCV([0.1, 1.0], kernel=["rbf", "laplacian"], gamma=1.0).fit(x[:, None], y)
    assert len(legend_names(LeaveOneOutDisplay.from_estimator(mixed).ax_)) == 2
    assert rendered(LeaveOneOutDisplay.from_estimator(mixed, kind="heat").figure_)
    ridge = RidgeCV(alphas=[1.0, 0.1, 10.0]).fit(*table)
    line = line_of(LeaveOneOutDisplay.from_estimator(ridge).ax_, "kernel 0")
    np.testing.assert_allclose(line.get_ydata(), ridge.path_.loo[[1, 0, 2], 0])
    with pytest.raises(ValueError, match="λ"):
        LeaveOneOutDisplay.from_estimator(Ridge().fit(*table))


@pytest.mark.parametrize("criterion", ["loo", "gcv", "marginal_likelihood"])
def test_plain_ridge_shows_what_it_chose_by(table, criterion):
    model = RidgeCV(alphas=np.geomspace(0.01, 1000, 40), criterion=criterion).fit(*table)
    picture = LeaveOneOutDisplay.from_estimator(model)
    assert picture.alphas[picture.best_] == model.alpha_
    np.testing.assert_array_equal(picture.values[0], model.path_.score(criterion)[:, 0])
    named = {"loo": "leave-one-out", "gcv": "generalised", "marginal_likelihood": "likelihood"}
    assert named[criterion] in picture.ax_.get_ylabel()
    with pytest.raises(ValueError, match=r"target.*0 to 0, got 3"):
        LeaveOneOutDisplay.from_estimator(model, target=3)


def test_a_legend_is_of_its_own_lines_where_the_axes_have_others(curve):
    x, y = curve
    ax = Figure().subplots()
    ax.plot([0.1, 1.0], [0.0, 0.0], color="red")
    model = KernelRidgeCV([0.1, 1.0], gamma=[0.1, 1.0]).fit(x[:, None], y)
    ax = LeaveOneOutDisplay.from_estimator(model, ax=ax).ax_
    drawn = [line_of(ax, f"kernel {i}").get_color() for i in range(2)]
    assert [handle.get_color() for handle in ax.get_legend().get_lines()] == drawn


def test_shares_of_features_are_bars_from_the_largest(table):
    X, y = table
    model = KernelRidgeCV(learn="loo").fit(X, y)
    picture = FeatureSharesDisplay.from_estimator(model, most=3)
    shares = [bar.get_width() for bar in picture.ax_.patches]
    np.testing.assert_array_equal(shares, np.sort(model.learned_.shares)[::-1][:3])
    assert [text.get_text() for text in picture.ax_.get_yticklabels()] == list(model.learned_.table()["feature"][:3])
    assert rendered(picture.figure_)
    with pytest.raises(ValueError, match="learn="):
        FeatureSharesDisplay.from_estimator(KernelRidgeCV().fit(X, y))


def test_a_classifier_shows_what_it_chose_by(curve):
    x, y = curve
    model = KernelRidgeClassifier([0.1, 1.0], gamma=[0.1, 1.0], criterion="accuracy").fit(x[:, None], y > 0)
    picture = LeaveOneOutDisplay.from_estimator(model)
    np.testing.assert_allclose(picture.values, 1 - model.scores_, atol=1e-12)
    assert "missed" in picture.ax_.get_ylabel()


def test_a_path_takes_the_place_of_the_axes_given(table):
    model = RidgeCV(alphas=np.geomspace(0.01, 100, 10)).fit(*table)
    figure = Figure(figsize=(8, 8), layout="constrained")
    ax = figure.subplots()
    picture = RidgePathDisplay.from_estimator(model, ax=ax, names=["$a", "_b", "c" * 400])
    assert len(picture.axes_) == 3
    assert picture.figure_ is figure
    assert legend_names(picture.ax_)[:2] == ["$a", "_b"]
    assert rendered(figure)
    assert len(RidgePathDisplay.from_estimator(model).figure_.axes) == 4  # the likelihood has an axis of its own


def test_a_band_is_the_same_from_predictions(curve):
    x, y = curve
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x[:, None], y)
    one = PredictionBandDisplay.from_estimator(model, x, y, level=0.9, bound=True)
    line = np.linspace(x.min(), x.max(), 300)
    f, bound = model.predict(line[:, None], return_bound=True)
    low, high = model.predict_interval(line[:, None], level=0.9)
    two = PredictionBandDisplay.from_predictions(line, f, lower=low, upper=high, bound=bound, data=(x, y), level=0.9)
    np.testing.assert_allclose(one.upper, two.upper)
    assert rendered(one.figure_) == rendered(two.figure_)
    with pytest.raises(ValueError, match="two ends"):
        PredictionBandDisplay(line, f, lower=f)


def test_residuals_are_the_same_from_predictions(table):
    X, y = table
    model = Ridge().fit(X, y)
    one = ResidualsDisplay.from_estimator(model, X, y)
    two = ResidualsDisplay.from_predictions(y, model.predict(X))
    np.testing.assert_allclose(one.residuals, y - model.predict(X), atol=1e-12)
    np.testing.assert_allclose(offsets(one.axes_[0]), np.column_stack([model.predict(X), one.residuals]))
    assert rendered(one.figure_) == rendered(two.figure_)
    worst = str(int(np.argmax(np.abs(one.residuals))) + 1)  # counted from 1
    assert one.labels_[0].texts[0].get_text() == worst
    assert overlapping(one.labels_[1].boxes(drawn(one.figure_))) == []


def test_quantiles_lie_on_the_line_of_a_normal_sample_and_the_band_is_that_of_order_statistics():
    n = 40
    r = norm.ppf((np.arange(1, n + 1) - 0.5) / n)
    picture = ResidualsDisplay.from_predictions(r[::-1], np.zeros(n), kind="qq", level=0.8)
    points = offsets(picture.ax_)
    np.testing.assert_allclose(points[:, 1], r[::-1], atol=1e-12)
    np.testing.assert_allclose(points[:, 0], r[::-1], atol=1e-12)
    outline = picture.ax_.collections[0].get_paths()[0].vertices
    low = norm.ppf(beta.ppf(0.1, 1, n)) * r.std(ddof=1)
    assert np.abs(outline[:, 1] - low).min() < 1e-9
    scaled = ResidualsDisplay.from_predictions(r, np.zeros(n), std=np.full(n, 2.0), kind="fitted")
    np.testing.assert_allclose(scaled.residuals, r / 2)
    assert "standard deviation" in scaled.ax_.get_ylabel()


def test_rows_of_a_mixture_are_drawn_by_component():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(5, 1, (60, 2))])
    model = GaussianMixture(2).fit(X)
    picture = MixtureDisplay.from_estimator(model, X)
    assigned = model.predict(X)
    some = np.asarray(picture.ax_.collections[1].get_offsets())
    np.testing.assert_array_equal(some, X[assigned == 1])
    with pytest.raises(ValueError, match="has 3"):
        MixtureDisplay(GaussianMixture(1).fit(np.column_stack([X, X[:, 0] + rng.normal(size=100)])).mixture_)
    choice = select_mixture(GaussianMixture(), X, n_components=(1, 2), covariance_types=("EII", "VVV"))
    ax = MixtureChoiceDisplay(choice).plot(criterion="aic").ax_
    np.testing.assert_array_equal(line_of(ax, "VVV").get_ydata(), choice.aic[:, 1])


def test_counts_of_pearson_are_bars_with_curves():
    edges = np.concatenate([[-np.inf], np.arange(5.0), [np.inf]])
    counts = [3, 10, 20, 18, 9, 2]
    model = GaussianMixture(1).fit_binned(edges, counts)
    ax = BinnedMixtureDisplay.from_estimator(model, edges, counts, name="$ratio").ax_
    assert [bar.get_height() for bar in ax.patches] == counts
    total = line_of(ax, "sum")
    expected = 62 * norm(model.means_[0, 0], np.sqrt(model.covariances_.ravel()[0])).pdf(total.get_xdata())
    np.testing.assert_allclose(total.get_ydata(), expected, rtol=1e-9)
    assert rendered(ax.figure)


def test_a_profile_is_the_deviance():
    data = [2, 0, 4, 1, 3]
    picture = ProfileDisplay.from_estimator(fit("poisson", data))
    curve = picture.curves_["rate"]
    deviance = [2 * (poisson.logpmf(data, 2.0).sum() - poisson.logpmf(data, rate).sum()) for rate in curve[:, 0]]
    np.testing.assert_allclose(curve[:, 1], deviance, atol=1e-8)
    assert np.all(np.diff(curve[:, 0]) > 0)
    limit = next(line for line in picture.ax_.get_lines() if line.get_linestyle() == ":")
    assert limit.get_ydata()[0] == pytest.approx(chi2.ppf(0.95, 1))
    low, high = fit("poisson", data).profile()["rate"]
    ends = [segment[0, 0] for segment in picture.ax_.collections[0].get_segments()]
    np.testing.assert_allclose(ends, [low, high])


def test_profiles_of_several_parameters_and_of_an_estimator():
    x = np.random.default_rng(0).gamma(3.0, 2.0, size=(30, 1))
    model = MaximumLikelihood("gamma").fit(x)
    picture = ProfileDisplay.from_estimator(model)
    assert [ax.get_xlabel() for ax in picture.axes_] == ["shape", "rate"]
    assert len(ProfileDisplay.from_estimator(model, names="rate").axes_) == 1
    with pytest.raises(ValueError, match="0 to 0, got 1"):
        ProfileDisplay.from_estimator(model, column=1)
    assert rendered(picture.figure_)


def test_a_profile_is_drawn_where_the_likelihood_is():
    x = [2, 0, 4]
    line = line_of(ProfileDisplay.from_estimator(fit("poisson", x)).ax_, "profile").get_xydata()
    rate, deviance = line.T
    exact = 2 * (3 * rate - 6 * np.log(rate) - (6 - 6 * np.log(2)))
    assert len(line) > 100
    np.testing.assert_allclose(deviance, exact, atol=0.04)  # less than the line is wide


def test_the_profile_of_a_maximum_at_the_end_has_one_side():
    picture = ProfileDisplay.from_estimator(fit("bernoulli", [1] * 10))
    curve = picture.curves_["theta"]
    np.testing.assert_allclose(curve[:, 1], -20 * np.log(curve[:, 0]), atol=1e-6)
    assert curve[-1].tolist() == [1.0, 0.0]
    assert rendered(picture.figure_)


def europe(rng, n=300):
    countries = {"Spain": (-4.0, 40.0), "France": (2.0, 47.0), "Italy": (12.0, 43.0), "Poland": (19.0, 52.0)}
    names = np.array(list(countries))[rng.integers(0, 4, n)]
    places = np.array([countries[name] for name in names])
    turned = (places + rng.normal(size=(n, 2))) @ [[0.6, 0.8], [-0.8, 0.6]] / 100 + 3
    return turned, places, names


def test_a_map_has_an_arrow_for_each_country_from_its_true_place():
    scores, places, names = europe(np.random.default_rng(0))
    moved = procrustes(scores, places)
    one = MapDisplay.from_alignment(moved, scores, places, labels=names, geographic=True)
    two = MapDisplay.from_predictions(moved.apply(scores), places, labels=names, geographic=True)
    assert rendered(one.figure_) == rendered(two.figure_)
    assert one.r_squared_ == pytest.approx(moved.r_squared)
    found = moved.apply(scores)
    arrows = [note for note in one.ax_.texts if note.arrow_patch is not None]
    assert len(arrows) == 4
    spain = next(note for note in arrows if np.allclose(note.xyann, [-4.0, 40.0]))
    np.testing.assert_allclose(spain.xy, np.median(found[names == "Spain"], axis=0))
    assert {text.get_text() for text in one.labels_[0].texts} == set(names)
    assert overlapping(one.labels_[0].boxes(drawn(one.figure_))) == []
    assert one.ax_.get_aspect() == pytest.approx(1 / np.cos(np.deg2rad(46.0)))


def test_a_map_without_countries_has_a_line_for_each_row():
    scores, places, _ = europe(np.random.default_rng(0), 50)
    found = procrustes(scores, places).apply(scores)
    ax = MapDisplay.from_predictions(found, places).ax_
    lines = next(part for part in ax.collections if not isinstance(part, PathCollection))
    np.testing.assert_allclose(np.array(lines.get_segments()), np.stack([places, found], axis=1))
    assert ax.get_aspect() == 1.0
    found[3, 0] = np.nan
    with pytest.raises(ValueError, match="Row 4"):
        MapDisplay(found, places)
    with pytest.raises(ValueError, match="place"):
        MapDisplay(found[1:], places)


@pytest.mark.parametrize(
    "draw",
    [
        lambda X, y: LeaveOneOutDisplay.from_estimator(KernelRidgeCV()),
        lambda X, y: RidgePathDisplay.from_estimator(RidgeCV()),
        lambda X, y: PredictionBandDisplay.from_estimator(KernelRidge(), X[:, 0], y),
        lambda X, y: ResidualsDisplay.from_estimator(Ridge(), X, y),
        lambda X, y: MixtureDisplay.from_estimator(GaussianMixture()),
        lambda X, y: BinnedMixtureDisplay.from_estimator(GaussianMixture(), [0, 1, 2], [1, 1]),
        lambda X, y: ProfileDisplay.from_estimator(MaximumLikelihood()),
        lambda X, y: KernelFieldDisplay.from_estimator(KernelRidge(), X[:, :2]),
    ],
)
def test_a_model_that_was_not_fitted_is_refused(draw, table):
    with pytest.raises(NotFittedError):
        draw(*table)


@pytest.mark.parametrize(
    ("draw", "complaint"),
    [
        (lambda: LeaveOneOutDisplay([1.0, 2.0], [[1.0]]), "must be alike"),
        (lambda: LeaveOneOutDisplay([1.0], [np.nan]), "nothing to draw"),
        (lambda: LeaveOneOutDisplay([1.0], [1.0]).plot(kind="pie"), "lines, heat"),
        (lambda: ResidualsDisplay([1.0, np.nan], [1.0, 1.0]), r"Row 2 has no finite residual: .* \(1 of them\)"),
        (lambda: ResidualsDisplay([1.0, 2.0], [1.0, 1.0], std=[0.0, 1.0]), "Row 1 has no finite residual"),
        (lambda: LeaveOneOutDisplay([0.0, 1.0], [1.0, 2.0]), "λ = 0 has no place on a logarithmic axis"),
        (lambda: ResidualsDisplay([1.0, 2.0], [1.0]), "must be vectors"),
        (lambda: ResidualsDisplay([1.0], [1.0], level=2), "level=2"),
        (lambda: ResidualsDisplay([1.0], [1.0]).plot(kind="pie"), "one of both, fitted, qq"),
        (lambda: PredictionBandDisplay([1.0], [[1.0]]), "must be vectors"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, complaint):
    with pytest.raises(ValueError, match=complaint):
        draw()
