"""Choosing a mixture, testing its size, and how sure its parameters are."""

import json
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import norm
from sklearn.datasets import load_iris

from gramian.mixture.binned import Bins
from gramian.mixture.choose import Sweep, bootstrap_lrt, bootstrap_mixture, select_mixture, undo_inversions
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.models import MODELS, is_nested

FOLDER = Path(__file__).resolve().parents[1] / "data"
DATA = json.loads((FOLDER / "mixtures.json").read_text("utf-8"))
FAITHFUL = np.array(DATA["faithful"])
SWEEPS = json.loads((FOLDER / "mclust_sweep.json").read_text("utf-8"))
TABLES = {
    "crabs": np.array(SWEEPS["crabs"]),
    "iris": load_iris().data,
    "diabetes": np.array(DATA["diabetes"]),
    "galaxies": np.array(DATA["galaxies"])[:, None] / 1000,
}
MCLUST = json.loads((FOLDER / "mclust_grid.json").read_text("utf-8"))["faithful"]["fits"]


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 1, (60, 1)), rng.normal(6, 2, (90, 1))])


@pytest.fixture(scope="module")
def choice():
    models = ("EII", "VVI", "EEE", "VEE", "VVV")
    return select_mixture(
        GaussianMixture(init_params="hierarchical"), FAITHFUL, n_components=range(1, 4), covariance_types=models
    )


def test_the_choice_on_old_faithful_is_mclusts(choice):
    best = max((fit for fit in MCLUST if fit["k"] <= 3), key=lambda fit: fit["bic"])
    assert (choice.best.covariance_type, choice.best.n_components) == (best["model"], best["k"]) == ("EEE", 3)
    assert choice.best.bic(FAITHFUL) == pytest.approx(-best["bic"], abs=1e-2)


def test_every_line_of_the_table_is_a_fit_of_its_own(choice):
    known = {(fit["model"], fit["k"]): fit for fit in MCLUST}
    table = choice.table()
    assert len(table["bic"]) == 15
    for i, (k, model) in enumerate(zip(table["n_components"], table["covariance_type"], strict=True)):
        theirs = known[model, int(k)]
        assert table["n_parameters"][i] == theirs["df"] or k == 1
        assert table["bic"][i] < -theirs["bic"] + 1e-2 or k == 1
        assert table["aic"][i] == pytest.approx(-2 * table["log_likelihood"][i] + 2 * table["n_parameters"][i])
        assert table["icl"][i] >= table["bic"][i]
        assert table["problem"][i] == ""


def test_models_that_are_one_for_one_component_have_the_parameters_of_one(choice):
    """For one component EEE, VEE and VVV are the same model of the same size, as mclust's XXX."""
    first = choice.bic[0]
    j = [choice.covariance_types.index(name) for name in ("EEE", "VEE", "VVV")]
    assert len(set(first[j])) == 1
    assert set(choice.n_parameters[0][j]) == {5.0}


def test_what_is_best_by_a_criterion_is_first_in_its_ranking(choice):
    assert choice.ranked()[0] == ("EEE", 3, pytest.approx(choice.bic.min()))
    assert choice.ranked("aic")[0][2] == choice.aic.min()
    by_icl = select_mixture(
        GaussianMixture(), FAITHFUL, n_components=(2, 3), covariance_types=("EEE",), criterion="icl"
    )
    assert by_icl.best.n_components == 2  # the third component cannot be told from the second
    assert "MixtureChoice by icl: EEE, 2 components" in repr(by_icl)


def test_two_jobs_give_the_same_table_and_progress_counts_fits(two):
    seen = []
    here = select_mixture(GaussianMixture(), two, n_components=(1, 2), progress=lambda *at: seen.append(at))
    with parallel_config(backend="threading"):  # processes would take seconds to start
        there = select_mixture(GaussianMixture(), two, n_components=(1, 2), n_jobs=2)
    np.testing.assert_allclose(here.bic, there.bic, rtol=1e-10)
    assert here.covariance_types == ("E", "V")
    assert [at[:2] for at in seen] == [(i, 4) for i in range(1, 5)]
    assert (here.best.n_components, here.best.covariance_type) == (2, "V")


def test_a_collapsed_fit_is_not_chosen_however_likely():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 2)), np.tile([[7.0, 7.0]], (9, 1))])
    found = select_mixture(GaussianMixture(), X, n_components=(1, 2, 80), covariance_types=("VVV", "EEE"))
    j = found.covariance_types.index("VVV")
    assert "collapsed" in found.problems[1][j]
    assert found.bic[1, j] < found.bic[0, j]
    assert (found.best.covariance_type, found.best.n_components) != ("VVV", 2)
    assert "needs a row of its own" in found.problems[2][0] or "minimum of 80" in found.problems[2][0]
    assert np.isnan(found.bic[2]).all()
    assert "not eligible" in repr(found)


def test_all_models_are_tried_unless_some_are_named():
    X = np.random.default_rng(0).normal(size=(40, 2))
    found = select_mixture(GaussianMixture(), X, n_components=[1])
    assert found.covariance_types == MODELS
    assert found.best.covariance_type == "EII"  # white noise


def test_weights_and_bins_are_compared_as_rows_are(two):
    w = np.arange(len(two)) % 3
    weighted = select_mixture(GaussianMixture(), two, n_components=(1, 2), sample_weight=w)
    repeated = select_mixture(GaussianMixture(), np.repeat(two, w, axis=0), n_components=(1, 2))
    np.testing.assert_allclose(weighted.bic, repeated.bic, rtol=1e-8)
    edges = np.concatenate([[-np.inf], np.linspace(-2, 10, 25), [np.inf]])
    bins = select_mixture(GaussianMixture(), Bins.of(edges, np.histogram(two, edges)[0]), n_components=(1, 2))
    assert bins.best.n_components == 2


def test_the_likelihood_ratio_test_finds_two_components_and_no_third(two):
    found = select_mixture(
        GaussianMixture(tol=1e-2), two, n_components=range(1, 4), covariance_types="V", criterion="lrt", n_replicates=19
    )
    assert found.best.n_components == found.test.chosen == 2
    assert found.test.p_values[0] == 0.05
    assert found.test.p_values[1] > 0.05
    assert found.test.n_components == (1, 2)
    assert "1 against 2" in repr(found)
    assert (found.test.replicates[0] >= 0).all()


def test_under_the_null_the_test_keeps_its_level():
    """p-values of samples that have one component are spread out: the median is not small."""
    ps = []
    for seed in range(6):
        x = np.random.default_rng(seed).normal(size=(40, 1))
        prototype = GaussianMixture(covariance_type="E", tol=1e-2)
        ps.append(bootstrap_lrt(prototype, x, most=2, n_replicates=19, random_state=seed).p_values[0])
    assert 0.2 < np.median(ps) < 0.8


def test_samples_of_a_test_have_the_gaps_of_the_data(two):
    X = np.column_stack([two[:, 0], two[:, 0] + np.random.default_rng(1).normal(size=150)])
    X[::4, 1] = np.nan
    found = bootstrap_lrt(GaussianMixture(covariance_type="EEE", tol=1e-2), X, most=2, n_replicates=19)
    assert found.chosen == 2


def test_bootstrap_errors_of_one_normal_are_those_of_theory():
    x = np.random.default_rng(0).normal(2.0, 3.0, size=(200, 1))
    found = bootstrap_mixture(GaussianMixture().fit(x), x, n_replicates=250)
    assert found.means.error[0, 0] == pytest.approx(x.std() / np.sqrt(200), rel=0.1)
    assert found.covariances.error[0, 0, 0] == pytest.approx(x.var() * np.sqrt(2 / 200), rel=0.15)
    half = norm.ppf(0.975) * x.std() / np.sqrt(200)
    assert found.means.upper[0, 0] - found.means.lower[0, 0] == pytest.approx(2 * half, rel=0.15)


def test_bootstrap_and_information_agree_on_well_separated_components(two):
    model = GaussianMixture(2).fit(two)
    found, louis = bootstrap_mixture(model, two, n_replicates=100), model.standard_errors(two)
    np.testing.assert_allclose(found.means.error, louis.means, rtol=0.25)
    np.testing.assert_allclose(found.weights.error, louis.weights, rtol=0.25)
    np.testing.assert_array_equal(found.means.estimate, model.means_)
    assert len(found.table()["parameter"]) == 6
    assert "100 replicates" in repr(found)


def test_bootstrap_of_bins_draws_counts(two):
    edges = np.concatenate([[-np.inf], np.linspace(-2, 10, 25), [np.inf]])
    bins = Bins.of(edges, np.histogram(two, edges)[0])
    model = GaussianMixture(2).fit(bins)
    found = bootstrap_mixture(model, bins, n_replicates=60)
    np.testing.assert_allclose(found.means.error, model.standard_errors(bins).means, rtol=0.4)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda x: select_mixture(GaussianMixture(), x, criterion="r2"), "criterion must be one of"),
        (lambda x: select_mixture(GaussianMixture(), x, n_components=[0]), "at least 1"),
        (lambda x: select_mixture(GaussianMixture(), x, covariance_types=()), "covariance_types is empty"),
        (lambda x: select_mixture(GaussianMixture(), x, criterion="lrt"), "in one covariance model"),
        (
            lambda x: select_mixture(GaussianMixture(), x, criterion="lrt", covariance_types="E", n_components=[1, 3]),
            "has gaps",
        ),
        (lambda x: bootstrap_lrt(GaussianMixture(), x, n_replicates=9), "take 19 or more"),
        (lambda x: bootstrap_lrt(GaussianMixture(), x, first=3, most=2), "between 1 and most"),
        (lambda x: bootstrap_mixture(GaussianMixture().fit(x), x, n_replicates=20), "take 40 or more"),
        (
            lambda x: bootstrap_lrt(GaussianMixture(), Bins.of([0.0, 1.0, 2.0, 3.0], [50, 50, 50]), n_replicates=19),
            "do not cover everything",
        ),
    ],
)
def test_what_cannot_be_done_is_said(two, call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(two)


def test_a_sample_as_far_as_the_data_counts_against_them(two, monkeypatch):
    """The p-value is the share of samples that reach the statistic, the data among them."""
    prototype = GaussianMixture(covariance_type="V", tol=1e-2)
    value = float(bootstrap_lrt(prototype, two, most=2, n_replicates=19).statistics[0])
    for below, p in ((19, 0.05), (18, 0.1), (0, 1.0)):
        numbers = iter([value - 1] * below + [value] * (19 - below))
        monkeypatch.setattr("gramian.mixture.choose._lrt_of_sample", lambda *_, numbers=numbers: next(numbers))
        assert bootstrap_lrt(prototype, two, most=2, n_replicates=19).p_values[0] == p


def test_cells_are_missing_in_samples_as_often_as_in_rows_with_weight(two):
    X = np.column_stack([two[:60, 0], two[60:120, 0]])
    gaps = np.concatenate([np.column_stack([np.full(60, np.nan), X[:, 0]]), X])
    w = np.repeat([0.0, 1.0], 60)
    prototype = GaussianMixture(covariance_type="EII", tol=1e-2)
    with_gaps = bootstrap_lrt(prototype, gaps, most=2, n_replicates=19, sample_weight=w)
    without = bootstrap_lrt(prototype, X, most=2, n_replicates=19)
    np.testing.assert_allclose(with_gaps.replicates[0], without.replicates[0], rtol=1e-3, atol=1e-3)


def test_components_of_replicates_are_matched_and_their_faults_counted(two, monkeypatch):
    model = GaussianMixture(2, covariance_type="V").fit(two)
    swapped = model.mixture_.reorder([1, 0])
    notes = {}
    for slow, problem in ((True, ""), (False, "component 1 collapsed")):
        monkeypatch.setattr("gramian.mixture.choose._fit_resampled", lambda *_, s=slow, p=problem: (swapped, s, p))
        found = bootstrap_mixture(model, two, n_replicates=40)
        np.testing.assert_allclose(found.means.error, 0.0, atol=1e-12)
        np.testing.assert_array_equal(found.weights.upper, model.weights_)
        notes[slow] = found.notes
    assert notes[True] == ("40 of 40 fits did not converge",)
    assert "40 of 40" in notes[False][0]
    assert "collapsed" in notes[False][0]


def test_fits_that_did_not_converge_are_counted(two):
    options = {"n_components": (1, 2), "covariance_types": ("V",)}
    assert "did not converge" not in repr(select_mixture(GaussianMixture(), two, **options))
    assert "not converged, or not determined by the data: 1" in repr(
        select_mixture(GaussianMixture(max_iter=2, tol=1e-9), two, **options)
    )


@pytest.fixture(scope="module", params=TABLES)
def sweep(request):
    found = select_mixture(GaussianMixture(), TABLES[request.param], n_components=range(1, 6))
    return SWEEPS["bic"][request.param], found


def test_no_proper_fit_of_a_sweep_is_less_likely_than_mclusts(sweep):
    theirs, found = sweep
    for model, values in theirs.items():
        for k, value in enumerate(values, 1):
            i, j = found.n_components.index(k), found.covariance_types.index(model)
            if value is not None and not found.problems[i][j]:
                assert -found.bic[i, j] > value - 1e-3 * abs(value), (model, k)


def test_nested_models_bound_each_other(sweep):
    _, found = sweep
    assert found.inversions == ()
    assert "no inversion left" in found.best.certificate_.notes[-1]
    if len(found.covariance_types) == 2:
        return
    for i, rich in enumerate(found.covariance_types):
        for j, poor in enumerate(found.covariance_types):
            sound = found.eligible[:, i] & found.eligible[:, j]
            if is_nested(poor, rich):
                assert (found.log_likelihood[sound, i] > found.log_likelihood[sound, j] - 0.02).all(), (poor, rich)
        sound = found.eligible[1:, i] & found.eligible[:-1, i]
        assert (np.diff(found.log_likelihood[:, i])[sound] > -0.02).all(), rich


def test_the_four_groups_of_the_crabs_are_found():
    """Two species and two sexes, which starts by k-means do not find however many there are."""
    crabs = TABLES["crabs"]
    assert -GaussianMixture(4, covariance_type="EEV").fit(crabs).bic(crabs) == pytest.approx(-2842.2978, abs=0.1)


def test_an_inversion_is_undone_from_the_poorer_models_solution():
    crabs = TABLES["crabs"]
    given = GaussianMixture(init_params="random", max_iter=60)
    tries = Sweep(given, crabs, None, 4)
    good = Sweep(GaussianMixture(), crabs, None, 4).fit(4, "EEV")
    cells = {(4, "EEV"): good, (4, "VVV"): tries.fit(4, "VVV"), (3, "EEV"): tries.fit(3, "EEV")}
    assert cells[4, "VVV"].log_likelihood < good.log_likelihood
    assert undo_inversions(tries, cells) == ()
    assert cells[4, "VVV"].log_likelihood >= good.log_likelihood


def test_an_inversion_that_stays_is_named(monkeypatch):
    crabs = TABLES["crabs"]
    tries = Sweep(GaussianMixture(init_params="random", max_iter=60), crabs, None, 4)
    cells = {(4, "EEV"): Sweep(GaussianMixture(), crabs, None, 4).fit(4, "EEV"), (4, "VVV"): tries.fit(4, "VVV")}
    monkeypatch.setattr("gramian.mixture.choose.REPAIRS", 0)
    (left,) = undo_inversions(tries, cells)
    assert (left.covariance_type, left.below_covariance_type, left.n_components) == ("VVV", "EEV", 4)
    assert left.gap == pytest.approx(cells[4, "EEV"].log_likelihood - cells[4, "VVV"].log_likelihood)


def test_a_component_of_too_few_rows_is_spurious_and_not_chosen():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(80, 3)), rng.normal([30.0, 0, 0], 1e-3, (3, 3))])
    found = select_mixture(GaussianMixture(), X, n_components=(1, 2), covariance_types=("VVV",))
    assert "component" in found.problems[1][0]
    assert found.best.n_components == 1


@pytest.mark.parametrize("model", ["EEV", "VEV"])
def test_directions_that_rows_do_not_determine_are_not_chosen(model):
    """Nine components of 47 rows have directions of their own in which nothing varies, and 200 parameters or more."""
    X = np.random.default_rng(0).normal(size=(47, 6)) @ np.random.default_rng(1).normal(size=(6, 6))
    found = select_mixture(GaussianMixture(), X, n_components=(1, 9), covariance_types=(model,))
    assert "component" in found.problems[1][0]
    assert found.best.n_components == 1


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("table", [*TABLES, "faithful"])
def test_the_default_start_of_tables_is_no_worse_than_kmeans(table, kind):
    X = FAITHFUL if table == "faithful" else TABLES[table]
    for k in (2, 3, 4):
        ours, theirs = (GaussianMixture(k, covariance_type=kind, init_params=how).fit(X) for how in ("auto", "kmeans"))
        assert not ours.landscape_.problems[ours.landscape_.kept]
        if not theirs.landscape_.problems[theirs.landscape_.kept]:
            assert ours.log_likelihood_ >= theirs.log_likelihood_ - 1e-6 * abs(theirs.log_likelihood_)


@pytest.mark.parametrize("seed", range(12))
def test_the_default_start_of_random_mixtures_is_no_worse_than_kmeans(seed):
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(100, 800), rng.integers(1, 6), rng.integers(2, 6)
    labels, turned = rng.integers(k, size=n), rng.normal(size=(k, d, d)) / np.sqrt(d) + np.eye(d)
    centres = rng.normal(size=(k, d)) * rng.uniform(0.5, 5)
    X = centres[labels] + np.einsum("nij,nj->ni", turned[labels], rng.normal(size=(n, d)))
    ours, theirs = (GaussianMixture(k, init_params=how).fit(X) for how in ("auto", "kmeans"))
    assert ours.log_likelihood_ >= theirs.log_likelihood_ - 1e-6 * abs(theirs.log_likelihood_)


def test_where_partitions_agree_there_is_no_race(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, 1, (100, 2)) for centre in ([0, 0], [9, 0], [0, 9])])
    rich = GaussianMixture(3, n_init=2).fit(X)
    monkeypatch.delattr("gramian.mixture.starts.race")
    assert GaussianMixture(3).fit(X).log_likelihood_ == pytest.approx(rich.log_likelihood_, rel=1e-9)
