"""EM for mixtures: scikit-learn's steps, mclust's optima, published likelihoods, monotonicity, units, weights."""

import json
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture

import gramian
from gramian.mixture.em import Maximiser, MixtureFit, Stepwise, fit_mixture
from gramian.mixture.models import MODELS, resolve_model
from gramian.mixture.parameters import CONJUGATE, Constraints, Mixture, Prior, free_parameters
from gramian.mixture.rows import MixtureRows
from gramian.mixture.starts import is_plain
from oracles import Array

DATA = Path(__file__).parents[1] / "data"
MCLUST = json.loads((DATA / "mclust.json").read_text("utf-8"))
TABLES = json.loads((DATA / "mixtures.json").read_text("utf-8"))
X, SPECIES = load_iris(return_X_y=True)
THEIRS = {"full": "VVV", "tied": "EEE", "diag": "VVI", "spherical": "VII"}


def rows(data: Array, w: Array | None = None) -> MixtureRows:
    return MixtureRows.of(gramian.open(data), w)


def from_labels(data: MixtureRows, labels: Array, k: int, model: str) -> Mixture:
    return Maximiser(model, Prior.floor(data))(data.assign(labels, k, resolve_model(model, data.source.shape[1])))


def nearest(data: Array, k: int, seed: int) -> Array:
    """Labels by the nearest of k rows drawn, in units of the columns."""
    Z = (data - data.mean(axis=0)) / data.std(axis=0)
    chosen = Z[np.random.default_rng(seed).choice(len(Z), k, replace=False)]
    return np.argmin(((Z[:, None] - chosen) ** 2).sum(axis=2), axis=1)


def best_fit(data: Array, model: str, k: int, starts: int) -> MixtureFit:
    source = rows(data)
    fits = [fit_mixture(source, from_labels(source, nearest(data, k, seed), k, model)) for seed in range(starts)]
    return max((fit for fit in fits if not fit.diagnoses), key=lambda fit: fit.log_likelihood)


@pytest.mark.parametrize("name", THEIRS)
def test_ten_steps_are_scikit_learns(name):
    data = rows(X)
    start = from_labels(data, SPECIES, 3, name)
    inverse = {
        "full": lambda m: np.linalg.inv(m.covariances),
        "tied": lambda m: np.linalg.inv(m.covariances[0]),
        "diag": lambda m: 1 / m.covariances,
        "spherical": lambda m: 1 / m.covariances[:, 0],
    }[name]
    theirs = GaussianMixture(
        3,
        covariance_type=name,
        reg_covar=0.0,
        tol=0.0,
        max_iter=10,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=inverse(start),
    )
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        theirs.fit(X)
    ours = fit_mixture(data, start, Maximiser(name), tol=0.0, max_iter=10, accelerate=False)
    assert ours.optimum.iterations == 10
    assert_allclose(ours.mixture.means, theirs.means_, rtol=1e-9)
    assert_allclose(ours.mixture.weights, theirs.weights_, rtol=1e-9)
    found = {"full": ours.mixture.covariances, "tied": ours.mixture.covariances[0], "diag": ours.mixture.covariances}
    assert_allclose(found.get(name, ours.mixture.covariances[:, 0]), theirs.covariances_, rtol=1e-8, atol=1e-11)
    assert_allclose(ours.log_likelihood, 150 * theirs.score(X), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_optima_are_mclusts_or_higher(model):
    theirs = MCLUST["converged"][model]
    data = rows(X)
    fit = fit_mixture(data, from_labels(data, SPECIES, 3, model), tol=1e-6)
    assert fit.optimum.converged
    assert fit.log_likelihood > theirs["log_likelihood"] - 1e-8
    if model != "VVE":  # there ours is higher by more than one
        assert_allclose(fit.log_likelihood, theirs["log_likelihood"], atol=1e-6)
        assert_allclose(fit.mixture.means, theirs["means"], atol=2e-5)
        assert_allclose(fit.mixture.matrices, theirs["covariances"], atol=2e-4)


@pytest.mark.parametrize(
    ("table", "scale", "model", "k", "starts", "height"),
    [
        ("faithful", 1.0, "EEE", 3, 8, -1126.3159),
        ("galaxies", 1e-3, "V", 3, 8, -203.1792),
        ("diabetes", 1.0, "VVV", 3, 8, -2295.0935),
    ],
)
def test_published_optima_are_reached(table, scale, model, k, starts, height):
    data = scale * np.array(TABLES[table]).reshape(len(TABLES[table]), -1)
    fit = best_fit(data, model, k, starts)
    assert fit.optimum.converged
    assert fit.log_likelihood >= height - 5e-5


@pytest.mark.parametrize(("k", "bic"), [(2, -574.0178), (3, -580.8389)])
def test_bic_of_iris(k, bic):
    labels = np.minimum(SPECIES, k - 1)
    fit = fit_mixture(rows(X), from_labels(rows(X), labels, k, "VVV"))
    assert_allclose(2 * fit.log_likelihood - free_parameters("VVV", k, 4) * np.log(150), bic, atol=5e-5)


def test_waiting_times_of_old_faithful():
    waiting = np.array(TABLES["faithful"])[:, 1:]
    fit = fit_mixture(rows(waiting), Mixture.of([0.5, 0.5], [[50.0], [85.0]], [40.0, 40.0], "V"))
    assert_allclose(fit.mixture.weights, [0.3609, 0.6391], atol=5e-5)
    assert_allclose(fit.mixture.means[:, 0], [54.615, 80.091], atol=5e-4)


def some_data(seed: int, d: int, k: int, noise: float) -> tuple[Array, Array | None, np.random.Generator]:
    """Rows in any units, in clusters, one in three sets rounded so that some are equal, one in four with weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8 * k, 100))
    data = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3) + 3 * rng.integers(0, k, (n, 1)) * rng.random()
    data = np.round(data, 1) if seed % 3 == 0 and np.abs(data).max() > 1 else data
    w = rng.integers(0, 3, n).astype(float) if seed % 4 == 0 else None
    return data + noise * np.abs(data).max() * rng.normal(size=data.shape), w, rng


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), model=st.sampled_from(MODELS), d=st.integers(1, 3), k=st.integers(1, 4))
def test_the_objective_never_falls(seed, model, d, k):
    data, w, rng = some_data(seed, d, k, 1e-9)
    source = rows(data, w)
    spread = np.tile(np.diag(source.variances), (k, 1, 1))
    start = Mixture.of(np.full(k, 1 / k), data[rng.choice(len(data), k, replace=False)], spread, model)
    fit = fit_mixture(source, start, max_iter=150)
    trace = fit.optimum.objective
    assert len(trace) > 0
    assert (np.diff(trace) <= 1e-12 * (np.abs(trace[1:]) + len(data))).all()
    prior = Prior.floor(source).log_density(fit.mixture)
    assert_allclose(trace[-1], -(fit.log_likelihood + prior), rtol=1e-12)


def rules_of(kind: str, k: int, d: int, rng: np.random.Generator) -> Constraints:
    fixed, fixed_means = np.arange(k) == 0, rng.random((k, d)) < 0.4
    return {
        "none": Constraints(),
        "fixed": Constraints(fixed_weights=fixed, fixed_means=fixed_means),
        "tied": Constraints(tied_weights=np.zeros(k, int), tied_means=rng.integers(0, 2, (k, d))),
        "fixed covariances": Constraints(fixed_covariances=fixed),
        "tied covariances": Constraints(tied_covariances=np.arange(k) // 2),
    }[kind]


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 4),
    k=st.integers(1, 4),
    kind=st.sampled_from(["none", "fixed", "tied", "fixed covariances", "tied covariances"]),
    prior=st.sampled_from(["floor", "conjugate", "penalty"]),
)
def test_the_step_itself_never_lowers_the_objective(model, seed, d, k, kind, prior):
    """The bare map of EM, which no rule of fit_mixture guards: 14 models, priors and constraints, six steps each."""
    data, w, rng = some_data(seed, d, k, 1e-3)
    source = rows(data, w)
    if prior == "conjugate" and model in CONJUGATE:
        held = Prior.conjugate(np.cov(data.T).reshape(d, d), data.mean(axis=0), model, k)
    else:
        held = Prior(1e-3 * len(data) * source.variances) if prior == "penalty" else Prior.floor(source)
    kind = "none" if "covariances" in kind and model not in ("VII", "VVI", "VVV") else kind
    step = Maximiser(model, held, rules_of(kind, k, d, rng))
    alike = np.full(d, source.variances.mean()) if model in ("EII", "VII") else source.variances
    spread = np.tile(np.diag(alike), (k, 1, 1))
    means = data[rng.choice(len(data), k, replace=False)] - source.origin
    at = Mixture.of(rng.dirichlet(np.full(k, 5.0)), means, spread, model, source.origin)
    at = step(source.expect(at), at)  # from here on it obeys the rules
    stats = source.expect(at)
    for _ in range(6):
        new = step(stats, at)
        after = source.expect(new)
        before, now = stats.log_likelihood + step.log_prior(at), after.log_likelihood + step.log_prior(new)
        assert now >= before - 1e-9 * (abs(before) + stats.weight)
        at, stats = new, after


def test_the_certificate_is_the_gradient():
    data = rows(X)
    fit = fit_mixture(data, from_labels(data, SPECIES, 3, "VVV"), tol=1e-7)
    at = fit.mixture
    for j in range(4):  # ∂ℓ/∂μ, by differences of the likelihood itself, in standard errors of complete data
        step = 1e-4 * np.sqrt(at.covariances[1, j, j])
        heights = []
        for sign in (1, -1):
            means = at.means.copy()
            means[1, j] += sign * step
            heights.append(Mixture.of(at.weights, means, at.covariances).log_likelihood(X))
        slope = (heights[0] - heights[1]) / (2 * step)
        assert abs(slope) * np.sqrt(at.covariances[1, j, j] / (150 * at.weights[1])) < 1e-5
    assert fit.optimum.gradient <= 1e-7
    assert "SQUAREM" in repr(fit.optimum)


def test_acceleration_leads_to_the_same_place_sooner():
    data = rows(X)
    start = from_labels(data, SPECIES, 3, "VVI")
    plain = fit_mixture(data, start, tol=1e-6, accelerate=False)
    fast = fit_mixture(data, start, tol=1e-6)
    assert plain.optimum.converged
    assert fast.optimum.iterations < 0.6 * plain.optimum.iterations
    assert_allclose(fast.mixture.means, plain.mixture.means, atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("scale", "shift"), [(2.0**27, 0.0), (2.0**-27, 0.0), (1.0, 2.0**27)])
def test_other_units_change_nothing_but_units(model, scale, shift):
    base = np.round(X * 64) / 64  # so that a shift by 1e8 rounds nothing
    moved = scale * base + shift
    fits = [fit_mixture(rows(data), from_labels(rows(data), SPECIES, 3, model)) for data in (base, moved)]
    for a, b in zip(
        [scale * fits[0].mixture.means + shift, scale**2 * fits[0].mixture.matrices, fits[0].mixture.weights],
        [fits[1].mixture.means, fits[1].mixture.matrices, fits[1].mixture.weights],
        strict=True,
    ):
        assert_allclose(b, a, rtol=1e-6, atol=1e-9 * np.max(np.abs(a)))
    assert_allclose(fits[1].log_likelihood, fits[0].log_likelihood - 600 * np.log(scale), rtol=1e-9)


def test_the_shifted_fit_keeps_all_digits_of_its_centres():
    base = np.round(X * 64) / 64
    near, far = (fit_mixture(rows(d), from_labels(rows(d), SPECIES, 3, "VVV")) for d in (base, base + 2.0**27))
    a, b = near.mixture, far.mixture
    assert_allclose(b.centres - b.centres[0], a.centres - a.centres[0], rtol=1e-6, atol=1e-7)
    assert_allclose(b.covariances, a.covariances, rtol=1e-5)


@pytest.mark.parametrize("model", ["VVV", "EVE", "VII"])
def test_a_weight_of_two_is_a_row_twice(model):
    w = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), w.astype(int))
    weighted, twice = rows(X, w), rows(X[repeated])
    one = fit_mixture(weighted, from_labels(weighted, SPECIES, 3, model), tol=1e-7)
    two = fit_mixture(twice, from_labels(twice, SPECIES[repeated], 3, model), tol=1e-7)
    assert_allclose(one.mixture.means, two.mixture.means, rtol=1e-7)
    assert_allclose(one.log_likelihood, two.log_likelihood, rtol=1e-12)


def test_blocks_of_any_size_and_files_give_the_same(tmp_path):
    big = np.random.default_rng(0).normal(size=(20_000, 8)) + 3 * np.random.default_rng(1).integers(0, 2, (20_000, 1))
    np.save(tmp_path / "big.npy", big.astype(np.float32))
    start = Mixture.of([0.5, 0.5], [np.zeros(8), np.full(8, 3.0)], np.stack([np.eye(8)] * 2))
    whole = rows(big.astype(np.float32)).expect(start)
    with sklearn.config_context(working_memory=1):
        parts = MixtureRows.of(gramian.open(tmp_path / "big.npy")).expect(start)
    assert_allclose(parts.second, whole.second, rtol=1e-12, atol=1e-9)
    assert_allclose(parts.log_likelihood, whole.log_likelihood, rtol=1e-13)


def test_both_ways_of_the_hot_loop_serve_one_fit(monkeypatch):
    data = rows(X)
    start = from_labels(data, SPECIES, 3, "VVV")
    expanded = fit_mixture(data, start)
    monkeypatch.setattr("gramian.mixture.rows.EXPANDED", 0.0)
    assert_allclose(fit_mixture(data, start).mixture.means, expanded.mixture.means, rtol=1e-8)


class TestWrong:
    """Components that collapse or die are named."""

    def test_a_component_on_one_row(self):
        data = rows(np.concatenate([np.random.default_rng(0).normal(size=(50, 2)), [[9.0, 9.0]]]))
        start = Mixture.of([0.9, 0.1], [[0.0, 0.0], [9.0, 9.0]], np.stack([np.eye(2), 1e-3 * np.eye(2)]))
        fit = fit_mixture(data, start)
        (found,) = fit.diagnoses
        assert (found.component, found.kind) == (1, "collapsed")
        assert "unbounded" in found.message
        assert found.message in fit.optimum.notes
        assert_allclose(fit.mixture.covariances[1], np.diag(1e-22 * data.variances), rtol=1e-6, atol=1e-27)

    @pytest.mark.parametrize("model", MODELS)
    def test_a_constant_column_collapses_every_model_that_sees_columns(self, model):
        data = rows(np.column_stack([X[:, :2], np.full(150, 7.0)]))
        fit = fit_mixture(data, from_labels(data, SPECIES, 3, model), max_iter=200)
        seen = {item.kind for item in fit.diagnoses}
        assert seen == (set() if model in ("EII", "VII") else {"collapsed"})

    def test_a_component_without_rows(self):
        start = Mixture.of([0.5, 0.5], [X.mean(axis=0), X.mean(axis=0) + 1e3], np.stack([np.cov(X.T)] * 2))
        fit = fit_mixture(rows(X), start)
        (found,) = fit.diagnoses
        assert (found.component, found.kind) == (1, "empty")
        assert_allclose(fit.mixture.covariances[0], np.cov(X.T, bias=True), rtol=1e-6)

    def test_a_component_without_rows_keeps_its_share_of_the_prior(self):
        """With a prior, a component without rows is where the prior alone has its maximum."""
        data, prior = rows(X), Prior.conjugate(np.cov(X.T), X.mean(axis=0), "VVV", 2)
        start = Mixture.of([1.0, 0.0], [X.mean(axis=0), X.mean(axis=0) + 1e3], np.stack([np.cov(X.T)] * 2))
        found = Maximiser("VVV", prior)(data.expect(start.shift_origin(data.origin)), start.shift_origin(data.origin))
        assert_allclose(found.means[1], X.mean(axis=0), rtol=1e-9)
        assert_allclose(found.covariances[1], prior.scale / (prior.counts + 1), rtol=1e-9)

    def test_without_a_floor_a_collapse_is_an_error_that_names_the_component(self):
        data = rows(np.array([[0.0], [0.1], [0.3], [5.0], [5.0]]))
        start = Mixture.of([0.5, 0.5], [[0.0], [5.0]], [1.0, 1e-3], "V")
        with pytest.raises(ValueError, match="Component 2"):
            fit_mixture(data, start, Maximiser("V"))

    def test_labels(self):
        with pytest.raises(ValueError, match=r"3 labels.*150 rows"):
            rows(X).assign([0, 1, 1], 2, "VVV")
        with pytest.raises(ValueError, match="component 3"):
            Maximiser("VVV")(rows(X).assign(np.minimum(SPECIES, 1), 3, "VVV"))


class TestStepwise:
    """Mini-batches climb towards the optimum of all data."""

    def test_batches_end_near_the_full_fit(self):
        rng = np.random.default_rng(0)
        truth = Mixture.of([0.4, 0.6], [[0.0, 0.0], [4.0, 1.0]], [np.eye(2), 2 * np.eye(2)])
        data, _ = truth.sample(20_000, rng)
        full = fit_mixture(rows(data), truth).mixture
        at = Mixture.of([0.5, 0.5], [[-1.0, -1.0], [5.0, 3.0]], [2 * np.eye(2)] * 2)
        steps = Stepwise(Maximiser("VVV"))
        for batch in np.array_split(data, 100):
            at = steps.step(at, MixtureRows.of(gramian.open(batch)).expect(at))
        assert steps.seen == 20_000
        assert_allclose(at.means, full.means, atol=0.15)
        assert_allclose(at.weights, full.weights, atol=0.03)

    def test_one_batch_is_one_step_of_em(self):
        data = rows(X)
        start = from_labels(data, SPECIES, 3, "VVV")
        one = Stepwise(Maximiser("VVV")).step(start, data.expect(start))
        assert_allclose(one.means, Maximiser("VVV")(data.expect(start), start).means, rtol=1e-12)
        with pytest.raises(ValueError, match="alpha"):
            Stepwise(Maximiser("VVV"), alpha=0.3)


def test_statistics_from_different_origins_are_not_added():
    a, b = rows(X), rows(X + 1.0)
    one, two = (d.assign(SPECIES, 3, "VVV") for d in (a, b))
    with pytest.raises(ValueError, match="different origins"):
        one.merge(two)
    assert_allclose(one.merge(one).centres, one.centres, rtol=1e-12)


def test_sparse_rows_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ValueError, match="dense data"):
        MixtureRows.of(gramian.open(sparse.eye_array(5, format="csr")))


@pytest.mark.parametrize("model", ["VVV", "VVI"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_whose_monomials_are_kept_have_the_sums_of_all_others(monkeypatch, model, weighted):
    X = load_iris().data
    w = np.random.default_rng(0).integers(1, 4, len(X)).astype(float) if weighted else None
    rows = MixtureRows.of(gramian.open(X), w)
    at = Maximiser(model)(rows.assign(np.arange(len(X)) % 3, 3, model))
    kept = rows.expect(at).shift(at.centres)
    monkeypatch.setattr("gramian.mixture.rows.MOST_KEPT", 0)
    others = rows.expect(at).shift(at.centres)
    for name in ("counts", "first", "second", "log_likelihood", "weight"):
        assert_allclose(getattr(kept, name), getattr(others, name), rtol=1e-10, atol=1e-9)


def test_a_plain_partition_has_clusters_apart_none_of_which_falls_apart():
    rng = np.random.default_rng(4)
    centres = np.array([[0.0, 0.0, 0.0], [12.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 12.0]])
    truth = np.repeat(np.arange(4), 50)
    Z, w = centres[truth] + rng.standard_normal((200, 3)), np.ones(200)
    assert is_plain(Z, w, truth, 4)
    assert not is_plain(Z, w, np.minimum(truth, 2), 3)  # two groups in one
    halves = np.where(truth == 0, (Z[:, 0] > 0) * 4, truth)  # one group in two
    assert not is_plain(Z, w, halves, 5)
    assert not is_plain(Z, w, truth, 4, freedom=2000.0)  # more parameters than points
    assert not is_plain(np.full((20, 2), 3.0), np.ones(20), np.arange(20) % 2, 2)  # no spread, and none apart
    assert is_plain(2.0**300 * Z, w, truth, 4)


def test_clusters_far_apart_are_fitted_from_one_start_with_the_likelihood_of_many():
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(6), 40)
    X = (15.0 * rng.standard_normal((6, 8)))[truth] + rng.standard_normal((240, 8))
    one = gramian.GaussianMixture(6, covariance_type="diag").fit(X)
    many = gramian.GaussianMixture(6, covariance_type="diag", init_params="kmeans", n_init=10, random_state=1).fit(X)
    assert one.log_likelihood_ >= many.log_likelihood_ - 1e-6
