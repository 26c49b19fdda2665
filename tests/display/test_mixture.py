"""The pictures of mixtures show the densities, counts and criteria they were handed."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from gramian.display import BinnedMixtureDisplay, MixtureChoiceDisplay, MixtureDisplay, UncertaintyDisplay
from gramian.mixture.choose import MixtureChoice, select_mixture
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.models import MODELS


def axes_of(display, *args, **options):
    return display.from_estimator(*args, **options).ax_


def rendered(figure):
    """The figure as PNG bytes: drawing is where matplotlib's own warnings would appear."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (40, 3)), rng.normal(5, 1, (60, 3))])
    return pd.DataFrame(rows, columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def model(plane):
    return GaussianMixture(2).fit(plane)


def curves(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


def test_curves_of_one_column_are_its_components_and_their_sum(plane, model):
    ax = axes_of(MixtureDisplay, model, plane, columns=[1])
    found = curves(ax)
    x = found["sum"][:, 0]
    parts = [
        model.weights_[k] * norm(model.means_[k, 1], np.sqrt(model.covariances_[k, 1, 1])).pdf(x) for k in range(2)
    ]
    for k in range(2):
        np.testing.assert_allclose(found[f"component {k + 1}"][:, 1], parts[k], atol=1e-12)
    np.testing.assert_allclose(found["sum"][:, 1], sum(parts), atol=1e-12)
    assert ax.get_xlabel() == "b"
    bars = sum(bar.get_width() * bar.get_height() for bar in ax.patches)
    assert bars == pytest.approx(1.0)
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_ellipses_lie_at_one_and_two_standard_deviations(plane, model):
    ax = axes_of(MixtureDisplay, model, plane, columns=[0, 2])
    rings = [line.get_xydata() for line in ax.get_lines() if len(line.get_xydata()) == 121]
    assert len(rings) == 4
    for i, ring in enumerate(rings):
        k, columns = i // 2, np.ix_([0, 2], [0, 2])
        away = ring - model.means_[k, [0, 2]]
        distance = np.einsum("ij,jk,ik->i", away, np.linalg.inv(model.covariances_[k][columns]), away)
        np.testing.assert_allclose(distance, (1.0, 4.0)[i % 2], rtol=1e-9)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "c")
    points = sum(len(part.get_offsets()) for part in ax.collections if hasattr(part, "get_offsets"))
    assert points >= len(plane)
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_bars_are_the_counts_and_curves_are_on_their_scale():
    edges, counts = [-np.inf, 0.0, 1.0, 2.0, np.inf], [10, 40, 40, 10]
    model = GaussianMixture(1).fit_binned(edges, counts)
    ax = axes_of(BinnedMixtureDisplay, model, edges, counts)
    assert [bar.get_height() for bar in ax.patches] == counts
    assert [bar.get_width() for bar in ax.patches] == [1.0] * 4
    assert ax.patches[0].get_alpha() < ax.patches[1].get_alpha()
    total = curves(ax)["sum"]
    expected = 100 * norm(model.means_[0, 0], np.sqrt(model.covariances_[0, 0, 0])).pdf(total[:, 0])
    np.testing.assert_allclose(total[:, 1], expected, rtol=1e-9)
    wide = axes_of(BinnedMixtureDisplay, model, [0.0, 1.0, 2.0, 4.0], [10, 20, 30])
    assert [bar.get_height() for bar in wide.patches] == [10, 20, 15]
    assert wide.get_ylabel() == "count per 1"
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_the_lowest_value_of_a_choice_is_marked(plane):
    choice = select_mixture(GaussianMixture(), plane, n_components=(1, 2, 3), covariance_types=("EII", "VVV"))
    ax = axes_of(MixtureChoiceDisplay, choice)
    found = curves(ax)
    np.testing.assert_array_equal(found["EII"][:, 1], choice.bic[:, 0])
    np.testing.assert_array_equal(found["VVV"][:, 0], [1, 2, 3])
    mark = found[f"best: {choice.best.covariance_type}, {choice.best.n_components}"]
    assert mark[0, 1] == choice.bic.min()
    low, high = ax.get_ylim()
    assert low < choice.bic.min() < high
    assert "AIC" in axes_of(MixtureChoiceDisplay, choice, "aic").get_ylabel()
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_uncertain_rows_are_drawn_large(plane, model):
    between = pd.DataFrame([[2.5, 2.5, 2.5]], columns=plane.columns)
    rows = pd.concat([plane, between])
    ax = axes_of(UncertaintyDisplay, model, rows)
    sizes = np.concatenate([part.get_sizes() for part in ax.collections])
    doubt = 1 - model.predict_proba(rows).max(axis=1)
    assert sizes.max() == pytest.approx(4 + 160 * doubt.max())
    one = axes_of(UncertaintyDisplay, model, rows, columns=[0])
    heights = np.concatenate([part.get_offsets()[:, 1] for part in one.collections])
    np.testing.assert_allclose(np.sort(heights), np.sort(doubt), atol=1e-12)
    assert rendered(ax.figure).startswith(b"\x89PNG")


def test_pictures_are_drawn_on_the_axes_given(plane, model):
    ax = Figure().subplots()
    assert axes_of(MixtureDisplay, model, plane, ax=ax) is ax
    assert axes_of(MixtureDisplay, model, ax=Figure().subplots()).get_legend() is None


def test_what_cannot_be_drawn_is_refused(plane, model):
    with pytest.raises(ValueError, match="column"):
        axes_of(MixtureDisplay, model, columns=[0, 1, 2])
    with pytest.raises(ValueError, match="3 columns"):
        axes_of(MixtureDisplay, model, plane[["a", "b"]])
    with pytest.raises(ValueError, match="column"):
        axes_of(UncertaintyDisplay, model, plane, columns=[0, 1, 2])
    with pytest.raises(ValueError, match="'z'"):
        axes_of(UncertaintyDisplay, model, plane, columns=["z"])
    with pytest.raises(ValueError, match="one column"):
        axes_of(BinnedMixtureDisplay, model, [0, 1, 2], [1, 2])
    one = GaussianMixture().fit(plane[["a"]])
    with pytest.raises(ValueError, match="sides"):
        axes_of(BinnedMixtureDisplay, one, [-np.inf, np.inf], [5])
    for draw in (
        MixtureDisplay.from_estimator,
        lambda m: axes_of(UncertaintyDisplay, m, plane),
        lambda m: axes_of(BinnedMixtureDisplay, m, [0, 1], [2]),
    ):
        with pytest.raises(NotFittedError):
            draw(GaussianMixture())


def test_columns_are_drawn_by_name(plane, model):
    ax = axes_of(UncertaintyDisplay, model, plane, columns=["c", "a"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "a")
    assert axes_of(MixtureDisplay, model, plane, columns=["b"]).get_xlabel() == "b"
    sizes = [float(handle.get_sizes()[0]) for handle in ax.get_legend().legend_handles]
    assert sizes == [30.0, 30.0]


def test_values_above_the_frame_are_marked_and_models_can_be_told_apart():
    names, sizes = tuple(MODELS), (1, 2)
    values = np.add.outer([0.0, 1.0], np.arange(14.0))
    values[0, 3] = 1e4
    choice = MixtureChoice(
        "bic",
        sizes,
        names,
        bic=values,
        aic=values,
        icl=values,
        log_likelihood=-values,
        n_parameters=values,
        problems=(("",) * 14,) * 2,
        converged=np.ones((2, 14), bool),
        best=None,
    )
    ax = axes_of(MixtureChoiceDisplay, choice)
    found = curves(ax)
    assert ax.get_ylim()[1] < 1e4
    np.testing.assert_array_equal(found["above the frame: 1"][:, 0], [1])
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.get_lines()[:14]}
    assert len(looks) == 14
    with pytest.raises(ValueError, match="criterion 'foo'"):
        axes_of(MixtureChoiceDisplay, choice, "foo")
