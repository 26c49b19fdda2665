"""How well a model fits: levels, and measures of every method against independent computations."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import r2_score, root_mean_squared_error

from gramian import GaussianMixture, KernelRidgeCV, Ridge, RidgeCV
from gramian.genetics.pca import GenotypePCA, measure_components
from gramian.likelihood import fit
from gramian.likelihood.goodness import measure_goodness
from gramian.mixture.quality import measure_mixture
from gramian.results import FitLevel, Quality, find_gravest, measure_shares
from gramian.ridge.quality import measure_regression

RNG = np.random.default_rng(11)
X = RNG.normal(size=(40, 3))
Y = np.column_stack([X @ [1.0, 2.0, 0.0] + RNG.normal(size=40), RNG.normal(size=40)])


def test_what_says_most_against_a_model_is_found():
    levels = [FitLevel.FACT, FitLevel.NOT_REJECTED, FitLevel.POOR, FitLevel.DOUBTFUL, FitLevel.POOR]
    measures = [Quality(str(j), "", 0.0, "", level) for j, level in enumerate(levels)]
    assert find_gravest(measures).name == "2"
    assert find_gravest(measures[:2]).name == "1"
    assert find_gravest([]) is None


@pytest.mark.parametrize(
    ("shares", "names", "level"),
    [
        ([0.5, 0.3], ["share_explained"], "fact"),
        ([0.3], ["share_explained"], "doubtful"),
        ([0.3, 0.1, 0.5], ["share_explained", "share_in_plane"], "doubtful"),
        ([0.3, 0.2, 0.1], ["share_explained", "share_in_plane"], "fact"),
        ([np.nan, np.nan], [], None),
        ([], [], None),
    ],
)
def test_a_plane_that_hides_most_is_doubted(shares, names, level):
    found = measure_shares(shares)
    assert [measure.name for measure in found] == names
    assert [measure.verdict for measure in found[-1:]] == [level] * bool(names)


@pytest.mark.parametrize("make", [lambda: RidgeCV([0.1, 1.0]), lambda: KernelRidgeCV([0.1, 1.0], kernel="linear")])
def test_every_target_is_measured_by_itself(make):
    model = make().fit(X, Y)
    lam = np.broadcast_to(model.alpha_, 2)
    constant = {"fit_intercept": model.fit_intercept}
    rows = [(np.delete(X, i, 0), np.delete(Y, i, 0)) for i in range(40)]
    left = [[Ridge(lam[j], **constant).fit(A, B[:, j]).predict(X[i : i + 1])[0] for j in (0, 1)]
            for i, (A, B) in enumerate(rows)]  # fmt: skip
    found = {m.name: m for m in measure_regression(model, Y, model.predict(X), names=["a", "b"])}
    for j, name in enumerate("ab"):
        for tail, f in (("_left_out", np.array(left)), ("", model.predict(X))):
            assert found[f"r2{tail} {name}"].value == pytest.approx(r2_score(Y[:, j], f[:, j]), rel=1e-7)
            assert found[f"rmse{tail} {name}"].value == pytest.approx(root_mean_squared_error(Y[:, j], f[:, j]))
    given = measure_regression(Ridge(), Y, model.predict(X), left, ["a", "b"])
    np.testing.assert_allclose([m.value for m in given], [m.value for m in found.values()], rtol=1e-7)


def test_predictions_of_rows_left_out_that_are_no_better_than_the_mean_are_poor():
    y = np.arange(6.0)
    for f, level in ((np.full(6, 2.5), FitLevel.POOR), (y[::-1], FitLevel.POOR), (0.9 * y, FitLevel.FACT)):
        found = measure_regression(Ridge(), y, f, f)
        assert [m.verdict for m in found] == [level, *[FitLevel.FACT] * 3]  # of the rows fitted it says nothing


def test_a_target_that_does_not_vary_has_no_share_to_explain():
    first = measure_regression(Ridge(), np.ones(5), np.ones(5))[0]
    assert np.isnan(first.value)
    assert first.verdict == FitLevel.FACT


def test_distances_of_few_values_give_a_bound_on_the_p_value():
    x = np.array([0.1, 0.4, 0.5, 0.9])
    (measure,) = measure_goodness({"x": fit("normal", x)})
    law = stats.norm(x.mean(), x.std())
    assert measure.name == "p_value_bound"
    assert measure.value == pytest.approx(stats.kstest(x, law.cdf).pvalue, rel=1e-5)
    assert measure.verdict == FitLevel.NOT_REJECTED


def test_rows_have_no_test_and_columns_their_names():
    (measure,) = measure_goodness({"": fit("multivariate normal", X)})
    assert (measure.verdict, np.isnan(measure.value)) == (FitLevel.FACT, True)
    both = measure_goodness({"a": fit("normal", Y[:, 0]), "b": fit("exponential", np.repeat([1.0, 1.1], 60))})
    assert [m.name for m in both] == ["p_value a", "p_value b"]
    assert both[1].verdict == FitLevel.POOR


def test_rows_observed_several_times_count_as_often():
    counts = RNG.integers(1, 4, 40)
    model = GaussianMixture(2, random_state=0).fit(X, sample_weight=counts)
    R = model.predict_proba(X)
    weighted = measure_mixture(R, model.log_likelihood_, counts)
    repeated = measure_mixture(np.repeat(R, counts, axis=0), model.score_samples(X) @ counts)
    np.testing.assert_allclose([m.value for m in weighted], [m.value for m in repeated], rtol=1e-9)
    assert measure_mixture(np.full((3, 2), 0.5), 0.0)[0].verdict == FitLevel.DOUBTFUL
    assert measure_mixture(np.ones((3, 1)), 0.0)[0].verdict == FitLevel.FACT


def test_mixtures_of_columns_of_few_values_and_of_many_parameters_are_doubted():
    rng = np.random.default_rng(0)
    columns = {"speed": rng.normal(size=40), "gears": rng.integers(3, 6, 40), "empty": np.full(40, np.nan)}
    columns["speed"][:4] = np.nan
    stepped, crowded = measure_mixture(np.ones((40, 1)), -3.0, n_parameters=20, columns=columns)[2:]
    assert (stepped.value, stepped.verdict) == (1, FitLevel.DOUBTFUL)
    assert stepped.text.startswith("gears (3): ")
    assert (crowded.value, crowded.verdict) == (76 / 20, FitLevel.DOUBTFUL)
    few = {"speed": columns["speed"]}
    assert [m.verdict for m in measure_mixture(np.ones((40, 1)), -3.0, n_parameters=2, columns=few)] == [
        FitLevel.FACT
    ] * 3
    counted = measure_mixture(np.ones((40, 1)), -3.0, np.full(40, 2.0), n_parameters=2, columns=few)[-1]
    assert counted.value == 36.0


@pytest.mark.parametrize(("groups", "level"), [(1, FitLevel.DOUBTFUL), (2, FitLevel.FACT)])
def test_genotypes_without_structure_are_doubted(groups, level):
    rng = np.random.default_rng(4)
    G = rng.binomial(2, np.repeat(rng.uniform(0.1, 0.9, (groups, 500)), 60 // groups, axis=0))
    first = measure_components(GenotypePCA(3).fit(G))[0]
    assert (first.value, first.verdict) == (groups - 1, level)
