"""Observed information: against second differences of the likelihood, closed forms, and simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

import gramian
from gramian.mixture.binned import Bins
from gramian.mixture.em import Maximiser, fit_mixture
from gramian.mixture.errors import Chart, observed_information, standard_errors
from gramian.mixture.models import MODELS
from gramian.mixture.parameters import Constraints, Mixture, Prior
from gramian.mixture.rows import MixtureRows
from gramian.results import NumericalWarning

X, SPECIES = load_iris(return_X_y=True)
PLANE = MixtureRows.of(gramian.open(X[:, [0, 2]]))


def start_of(model: str, data: MixtureRows = PLANE) -> Mixture:
    return Maximiser(model, Prior.floor(data))(data.assign(SPECIES, 3, model))


def assert_curvature(data: MixtureRows | Bins, chart: Chart, h: float = 1e-3) -> None:
    """VᵀIv is −∂²ℓ along v, for more directions v than happen to agree by chance: from the log-likelihood alone."""
    rng, information = np.random.default_rng(0), observed_information(data, chart)
    room = np.ones(chart.size)
    room[: chart.base.n_components - 1] = 0.2 * chart.base.weights.min()  # weights have less room
    middle = data.expect(chart.base).log_likelihood
    for _ in range(8):
        v = room * rng.normal(size=chart.size)
        heights = [data.expect(chart.mixture(s * h * v)).log_likelihood - middle for s in (1, -1, 2, -2)]
        curvature = -(16 * (heights[0] + heights[1]) - (heights[2] + heights[3])) / (12 * h * h)
        assert_allclose(v @ information @ v, curvature, rtol=1e-5, atol=1e-5 * np.abs(information).max() * (v @ v))


@pytest.mark.parametrize("model", MODELS)
def test_louis_is_the_second_derivative(model):
    for mixture in (start_of(model), fit_mixture(PLANE, start_of(model)).mixture):  # at any point, not only at optima
        assert_curvature(PLANE, Chart(mixture))


def test_weights_of_rows_count_in_it():
    w = np.random.default_rng(0).integers(1, 4, 150).astype(float)
    repeated = X[np.repeat(np.arange(150), w.astype(int))][:, [0, 2]]
    chart = Chart(start_of("VVV"))
    one = observed_information(MixtureRows.of(gramian.open(X[:, [0, 2]]), w), chart)
    assert_allclose(one, observed_information(MixtureRows.of(gramian.open(repeated)), chart), rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("model", ["VVI", "EVI", "VII"])
def test_louis_for_boxes_is_the_second_derivative(model):
    data = X[:, [0, 2]]
    bins = Bins.intervals(np.floor(2 * data) / 2, np.floor(2 * data) / 2 + 0.5)
    assert_curvature(bins, Chart(fit_mixture(bins, start_of(model), max_iter=30).mixture))


def test_missing_cells_and_planes_take_differences_of_the_gradient():
    data = X[:, [0, 2]].copy()
    data[::6, 1] = np.nan
    rows = MixtureRows.of(gramian.open(data))
    edges = np.linspace(0.0, 8.0, 7)
    table, _, _ = np.histogram2d(data[:, 0], X[:, 2], bins=[edges, edges])
    one = Mixture.of([1.0], [X[:, [0, 2]].mean(axis=0)], [np.cov(X[:, [0, 2]].T)])
    for observed in (rows, Bins.of((edges, edges), table)):
        assert_curvature(observed, Chart(one))


def test_one_normal_has_its_textbook_errors():
    S = np.cov(X.T, bias=True)
    found = standard_errors(MixtureRows.of(gramian.open(X)), Mixture.of([1.0], [X.mean(axis=0)], [S]))
    assert_allclose(found.means[0], np.sqrt(np.diag(S) / 150), rtol=1e-9)
    expected = np.sqrt((S**2 + np.outer(np.diag(S), np.diag(S))) / 150)
    assert_allclose(found.covariances[0], expected, rtol=1e-9)
    assert_allclose(found.deviations[0], np.sqrt(np.diag(S) / 300), rtol=1e-9)
    assert_allclose(found.weights, 0.0, atol=1e-12)


def test_errors_are_the_spread_of_estimates():
    truth = Mixture.of([0.4, 0.6], [[0.0], [3.0]], [1.0, 0.5], "V")
    rng = np.random.default_rng(0)
    fits = []
    for _ in range(100):
        sample, _ = truth.sample(400, rng)
        fits.append(fit_mixture(MixtureRows.of(gramian.open(sample)), truth).mixture)
    data = MixtureRows.of(gramian.open(truth.sample(400, rng)[0]))
    errors = standard_errors(data, fit_mixture(data, truth).mixture)
    # a standard deviation of 100 estimates is itself known to 7 %, and the errors of one sample vary too
    assert_allclose(errors.weights[0], np.std([f.weights[0] for f in fits]), rtol=0.3)
    assert_allclose(errors.means[:, 0], np.std([f.means[:, 0] for f in fits], axis=0), rtol=0.3)
    assert_allclose(errors.covariances[:, 0], np.std([f.covariances[:, 0] for f in fits], axis=0), rtol=0.4)


def test_held_parameters_have_no_error_and_free_ones_less():
    mixture = fit_mixture(PLANE, start_of("VVV"), tol=1e-7).mixture
    free = standard_errors(PLANE, mixture)
    rules = Constraints(
        fixed_means=np.array([[True, False], [False, False], [False, False]]),
        fixed_covariances=np.array([False, True, False]),
        fixed_weights=np.array([False, False, True]),
    )
    held = standard_errors(PLANE, mixture, rules)
    assert held.means[0, 0] < 1e-10
    assert held.weights[2] < 1e-12
    assert_allclose(held.covariances[1], 0.0, atol=1e-12)
    assert (held.means <= free.means * (1 + 1e-9)).all()
    # information of what is left is the same matrix without the rows and columns of what is held
    everything = Constraints(
        fixed_means=np.ones((3, 2), bool), fixed_covariances=np.ones(3, bool), tied_weights=np.array([0, 1, 2])
    )
    weights = standard_errors(PLANE, mixture, everything)
    expected = np.sqrt(np.diag(np.linalg.inv(free.information[:2, :2])))
    assert_allclose(weights.weights[:2], expected, rtol=1e-9)


def test_shared_parameters_have_one_error():
    tied = Constraints(tied_covariances=np.array([0, 0, 0]), tied_means=np.array([[0, 0], [1, 0], [2, 0]]))
    fit = fit_mixture(PLANE, start_of("VVV"), Maximiser("VVV", Prior.floor(PLANE), tied), tol=1e-7)
    found = standard_errors(PLANE, fit.mixture, tied)
    assert np.ptp(found.means[:, 1]) < 1e-9
    assert_allclose(found.covariances[0], found.covariances[1], rtol=1e-8)
    equal = fit_mixture(PLANE, fit.mixture, Maximiser("EEE", Prior.floor(PLANE)), tol=1e-7).mixture
    free = standard_errors(PLANE, equal)
    only = standard_errors(
        PLANE,
        Mixture(equal.weights, equal.centres, equal.covariances, "VVV", equal.origin),
        Constraints(tied_covariances=np.array([0, 0, 0])),
    )
    assert_allclose(only.means, free.means, rtol=1e-6)  # VVV with one covariance for all is EEE
    assert_allclose(only.covariances, free.covariances, rtol=1e-6)


def test_where_there_is_no_maximum_errors_are_nan_and_that_is_said():
    same = Mixture.of([0.5, 0.5], [X.mean(axis=0)] * 2, [np.cov(X.T)] * 2)
    with pytest.warns(NumericalWarning, match="not positive definite"):
        found = standard_errors(MixtureRows.of(gramian.open(X)), same)
    assert np.isnan(found.means).all()


def test_sandwich_of_one_normal_has_a_closed_form():
    """The errors of means are the same; those of covariances have fourth moments (White 1982)."""
    rows = np.random.default_rng(8).standard_t(5, size=(300, 2)) @ [[1.0, 0.4], [0.0, 2.0]]
    n, D = len(rows), rows - rows.mean(axis=0)
    one = Mixture.of([1.0], [rows.mean(axis=0)], [D.T @ D / n])
    data = MixtureRows.of(gramian.open(rows))
    found, plain = standard_errors(data, one, kind="sandwich"), standard_errors(data, one)
    assert_allclose(found.means, plain.means, rtol=1e-8)
    S = D.T @ D / n
    expected = np.sqrt((np.einsum("ni,nj->ij", D**2, D**2) / n - S**2) / n)
    assert_allclose(found.covariances[0], expected, rtol=1e-7)
    assert (np.diag(found.covariances[0]) > 1.2 * np.diag(plain.covariances[0])).all()
    with pytest.raises(ValueError, match="kind"):
        standard_errors(data, one, kind="bread")


def test_sandwich_of_mixtures_counts_rows_by_weight_and_covers():
    mixture = fit_mixture(PLANE, start_of("VVV"), tol=1e-8).mixture
    w = np.random.default_rng(9).integers(1, 4, size=len(X))
    columns = X[:, [0, 2]]
    weighted = standard_errors(MixtureRows.of(gramian.open(columns), w), mixture, kind="sandwich")
    repeated = standard_errors(MixtureRows.of(gramian.open(np.repeat(columns, w, axis=0))), mixture, kind="sandwich")
    assert_allclose(weighted.means, repeated.means, rtol=1e-6)
    # where the model holds both are nearly the same
    rng = np.random.default_rng(10)
    many = np.concatenate([rng.normal(-3, 1, 6000), rng.normal(2, 2, 4000)])[:, None]
    data = MixtureRows.of(gramian.open(many))
    fit = fit_mixture(data, Mixture.of([0.5, 0.5], [[-3.0], [2.0]], [1.0, 4.0], "V"), tol=1e-8).mixture
    both = [standard_errors(data, fit, kind=kind) for kind in ("sandwich", "information")]
    assert_allclose(both[0].means, both[1].means, rtol=0.05)
    assert_allclose(both[0].weights, both[1].weights, rtol=0.05)
    with pytest.raises(ValueError, match="scores of rows"):
        standard_errors(Bins.of(np.linspace(-10, 10, 30), np.full(29, 3)), fit, kind="sandwich")
