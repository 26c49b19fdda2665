"""Bins, boxes and truncated moments: Pearson's crabs, integrals with fifty digits, and the limit of narrow bins."""

import json
from pathlib import Path

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.datasets import load_iris

import gramian
from gramian.mixture.binned import Bins, planar_moments, truncated_moments
from gramian.mixture.em import Maximiser, fit_mixture
from gramian.mixture.errors import standard_errors
from gramian.mixture.parameters import Mixture, Prior
from gramian.mixture.rows import MixtureRows

CRABS = json.loads((Path(__file__).parents[1] / "data" / "mixtures.json").read_text("utf-8"))["crabs"]
EDGES = np.concatenate([[-np.inf], 0.5835 + 0.004 * np.arange(28), [np.inf]])
START = Mixture.of([0.5, 0.5], [[0.62], [0.66]], [4e-4, 4e-4], "V")
X, SPECIES = load_iris(return_X_y=True)


def crabs() -> Bins:
    return Bins.of(EDGES, CRABS)


def exact_moments(a: float, b: float, order: int) -> tuple[float, list[float]]:
    """By the textbook's recursion, with digits enough to cancel a thousand times over."""
    with mpmath.workdps(1200):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        total = (mpmath.erf(b / mpmath.sqrt(2)) - mpmath.erf(a / mpmath.sqrt(2))) / 2
        M = [mpmath.mpf(1)]
        for j in range(1, order + 1):
            ends = (a ** (j - 1) * mpmath.npdf(a) - b ** (j - 1) * mpmath.npdf(b)) / total
            M.append((j - 1) * M[j - 2] + ends if j > 1 else ends)
        return float(mpmath.log(total)), [float(m) for m in M]


LIMITS = [
    (0.0, 0.2),
    (5.0, 5.01),
    (30.0, 31.0),
    (-50.0, -49.7),
    (-3.0, -3.0 + 1e-7),
    (-1.0, 1.5),
    (-4.0, 5.0),
    (2.0, 4.1),
    (1.0, 9.0),
    (12.0, 15.0),
    (-7.0, 6.99),
]


@pytest.mark.parametrize(("a", "b"), LIMITS)
def test_truncated_moments_have_all_digits(a, b):
    log_p, M = truncated_moments(np.array([a]), np.array([b]), 4)
    expected_p, expected = exact_moments(a, b, 4)
    scale = expected[2] ** (np.arange(5) / 2)
    assert_allclose(log_p[0], expected_p, rtol=4e-15, atol=4e-16)
    assert_allclose(M[:, 0] / scale, expected / scale, rtol=1e-14, atol=1e-15)


@given(a=st.floats(-40, 40), width=st.floats(1e-9, 60))
def test_turning_limits_round_turns_odd_moments(a, width):
    b = a + width
    one, M = truncated_moments(np.array([a]), np.array([b]), 4)
    two, W = truncated_moments(np.array([-b]), np.array([-a]), 4)
    assert_allclose(one, two, rtol=1e-12)
    assert_allclose(M[:, 0], W[:, 0] * [1, -1, 1, -1, 1], rtol=1e-9, atol=1e-12)
    assert a - 1e-12 * abs(a) <= M[1, 0] <= b + 1e-12 * abs(b)
    assert M[2, 0] >= M[1, 0] ** 2 * (1 - 1e-12)


def test_open_tails_and_points():
    log_p, M = truncated_moments(np.array([-np.inf, 38.0, -np.inf, 1.5]), np.array([np.inf, np.inf, -60.0, 1.5]), 2)
    assert_allclose(M[:, 0], [1, 0, 1], atol=1e-15)
    assert_allclose(log_p[0], 0.0, atol=1e-15)
    with mpmath.workdps(50):
        for i, x in ((1, 38), (2, 60)):
            tail = mpmath.erfc(x / mpmath.sqrt(2)) / 2
            assert_allclose(log_p[i], float(mpmath.log(tail)), rtol=1e-14)
            assert_allclose(abs(M[1, i]), float(mpmath.npdf(x) / tail), rtol=1e-14)
    assert_allclose(M[:, 3], [1, 1.5, 2.25])
    assert_allclose(log_p[3], -0.5 * 1.5**2 - 0.5 * np.log(2 * np.pi))


def test_pearsons_crabs():
    fit = fit_mixture(crabs(), START, tol=1e-6)
    assert fit.optimum.converged
    assert_allclose(fit.mixture.weights, [0.45276, 0.54724], atol=6e-6)
    assert_allclose(fit.mixture.means[:, 0], [0.632616, 0.654687], atol=6e-7)
    assert_allclose(np.sqrt(fit.mixture.covariances[:, 0]), [0.018619, 0.012483], atol=6e-7)
    assert_allclose(fit.log_likelihood, -2952.6959, atol=6e-5)
    fitness = crabs().goodness(fit.mixture)
    assert_allclose([fitness.deviance, fitness.chi2], [22.11, 20.50], atol=6e-3)
    assert fitness.degrees == 23
    assert fitness.p_values[0] > 0.5
    assert repr(fitness).startswith("Goodness: deviance 22.11 (p 0.5")
    assert "log-likelihood -2952.6959" in repr(fit)
    errors = standard_errors(crabs(), fit.mixture)
    assert errors.table()[2][0] == "mean 0, 0"
    assert "mean 0, 0             0.632616 ± 0.0062" in repr(errors)
    assert_allclose(errors.weights, [0.162, 0.162], atol=6e-4)
    assert_allclose(errors.means[:, 0], [0.0062, 0.0018], atol=6e-5)
    assert_allclose(errors.deviations[:, 0], [0.0019, 0.0012], atol=6e-5)


def test_crabs_with_one_normal_and_at_midpoints():
    one = fit_mixture(crabs(), Mixture.of([1.0], [[0.6]], [1e-3], "V"), tol=1e-8)
    assert_allclose([one.mixture.means[0, 0], one.mixture.covariances[0, 0] ** 0.5], [0.644697, 0.019054], atol=6e-7)
    assert_allclose(one.log_likelihood, -2979.0593, atol=6e-5)
    middle = 0.5815 + 0.004 * np.arange(29)
    rows = MixtureRows.of(gramian.open(middle[:, None]), np.array(CRABS, float))
    cruder = fit_mixture(rows, START, tol=1e-7).mixture
    assert_allclose(cruder.weights, [0.43275, 0.56725], atol=6e-5)
    assert_allclose(cruder.means[:, 0], [0.631741, 0.654579], atol=6e-6)
    assert_allclose(np.sqrt(cruder.covariances[:, 0]), [0.018311, 0.012619], atol=6e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_of_bins(scale):
    ours = fit_mixture(crabs(), START).mixture
    moved = fit_mixture(Bins.of(scale * EDGES, CRABS), START.transform(scale)).mixture
    assert_allclose(moved.means, scale * ours.means, rtol=1e-6)


@pytest.mark.parametrize("model", ["VVI", "VVV"])
def test_narrow_boxes_are_rows(model):
    data = X[:, :2]
    width = 1e-4
    boxes = Bins.intervals(data - width / 2, data + width / 2)
    rows = MixtureRows.of(gramian.open(data))
    start = Maximiser(model, Prior.floor(rows))(rows.assign(SPECIES, 3, model))
    moved = start.shift_origin(boxes.origin)
    here, there = boxes.expect(moved), rows.expect(moved).shift(moved.centres)
    assert_allclose(here.counts, there.counts, rtol=1e-6)
    assert_allclose(here.second, there.second, rtol=1e-4, atol=1e-6)
    assert_allclose(here.log_likelihood, there.log_likelihood + 150 * 2 * np.log(width), rtol=1e-7)


def test_values_known_exactly_are_rows():
    data = X[:, :2]
    rows, points = MixtureRows.of(gramian.open(data)), Bins.intervals(data, data)
    start = Maximiser("VVI")(rows.assign(SPECIES, 3, "VVI"))
    here, there = points.expect(start), rows.expect(start).shift(start.centres)
    assert_allclose(here.log_likelihood, there.log_likelihood, rtol=1e-12)
    assert_allclose(here.second, there.second, rtol=1e-10)


def test_a_table_of_boxes_has_independent_columns_where_covariances_are_diagonal():
    edges = ([-np.inf, 0.0, 1.0, np.inf], [-1.0, 0.5, 2.0])
    table = np.array([[3, 1], [4, 1], [5, 9]])
    bins = Bins.of(edges, table)
    mixture = Mixture.of([1.0], [[0.2, 0.3]], [[1.0, 2.0]], "VVI")
    one = Bins.of(edges[0], [1, 1, 1]).probabilities(mixture.marginal([0]))
    two = Bins.of(edges[1], [1, 1]).probabilities(mixture.marginal([1]))
    assert_allclose(bins.probabilities(mixture).reshape(3, 2), np.outer(one, two), rtol=1e-13)
    # the same through quadrature, as a full covariance that happens to be diagonal
    full = Mixture.of([1.0], [[0.2, 0.3]], [np.diag([1.0, 2.0])], "VVV")
    here, there = bins.expect(full), bins.expect(mixture)
    assert_allclose(np.diagonal(here.second, axis1=1, axis2=2), there.second, rtol=1e-12)
    assert_allclose(here.log_likelihood, there.log_likelihood, rtol=1e-13)


def exact_plane(a: tuple[float, float], b: tuple[float, float], rho: float) -> tuple[float, float, float]:
    """Ln P, E x and E y with many digits, the inner integral by error functions."""
    with mpmath.workdps(40):
        s = mpmath.sqrt(1 - mpmath.mpf(rho) ** 2)
        ends = [a[0] + (b[0] - a[0]) * mpmath.mpf(i) / 16 for i in range(17)]

        def inner(x):
            low, high = ((e - rho * x) / s / mpmath.sqrt(2) for e in (a[1], b[1]))
            sign = 1 if low + high > 0 else -1  # in the tail whose complement does not round
            return sign * (mpmath.erfc(sign * low) - mpmath.erfc(sign * high)) / 2

        def ends_of(x):
            return mpmath.npdf((a[1] - rho * x) / s) - mpmath.npdf((b[1] - rho * x) / s)

        total = mpmath.quad(lambda x: mpmath.npdf(x) * inner(x), ends)
        first = mpmath.quad(lambda x: x * mpmath.npdf(x) * inner(x), ends) / total
        second = mpmath.quad(lambda x: mpmath.npdf(x) * (rho * x * inner(x) + s * ends_of(x)), ends) / total
        return float(mpmath.log(total)), float(first), float(second)


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [
        ((-1.0, -0.5), (1.0, 2.0), 0.6),
        ((2.0, -4.0), (3.0, -3.0), 0.9),
        ((-1.0, -1.0), (2.0, 0.5), 0.99),
        ((0.1, 0.1), (0.2, 0.3), -0.7),
        ((5.0, 5.0), (6.0, 7.0), 0.3),
    ],
)
def test_moments_in_a_rectangle_have_all_digits(a, b, rho):
    log_p, first, second = planar_moments(np.array([a]), np.array([b]), np.array([[1.0, rho], [rho, 1.0]]))
    expected = exact_plane(a, b, rho)
    assert_allclose([log_p[0], *first[0]], expected, rtol=1e-12, atol=1e-13)
    turned = planar_moments(np.array([a[::-1]]), np.array([b[::-1]]), np.array([[1.0, rho], [rho, 1.0]]))
    assert_allclose(turned[2][0][::-1, ::-1], second[0], rtol=1e-11, atol=1e-12)


def test_a_full_covariance_is_found_from_a_table_in_the_plane():
    truth = Mixture.of([1.0], [[0.3, -0.2]], [[[1.0, 0.7], [0.7, 2.0]]])
    edges = np.array([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf])
    bins = Bins.of((edges, edges), np.zeros((6, 6)) + 1)
    table = 1e4 * bins.probabilities(truth).reshape(6, 6)
    start = Mixture.of([1.0], [[0.0, 0.0]], [np.eye(2)])
    found = fit_mixture(Bins.of((edges, edges), table), start, tol=1e-7)
    assert found.optimum.converged
    assert_allclose(found.mixture.covariances, truth.covariances, rtol=1e-6)
    assert_allclose(found.mixture.means, truth.means, rtol=1e-6)


@pytest.mark.parametrize(
    ("edges", "counts", "complaint"),
    [
        ([0.0, 1.0], [1, 2], "one more than counts"),
        ([0.0, 2.0, 1.0], [1, 2], "must rise"),
        ([0.0, 1.0, 2.0], [1, -2], "Count 1 is -2"),
        ([0.0, 1.0, 2.0], [0, 0], "nothing to fit"),
    ],
)
def test_what_is_not_a_histogram_is_refused(edges, counts, complaint):
    with pytest.raises(ValueError, match=complaint):
        Bins.of(edges, counts)


def test_what_cannot_be_integrated_is_refused():
    boxes = Bins.intervals(X[:, :3] - 0.05, X[:, :3] + 0.05)
    with pytest.raises(ValueError, match="need diagonal covariances"):
        boxes.expect(Mixture.of([1.0], [X[:, :3].mean(axis=0)], [np.eye(3)]))
    with pytest.raises(ValueError, match="3 columns"):
        boxes.expect(Mixture.of([1.0], [[0.0]], [1.0], "V"))
    with pytest.raises(ValueError, match="1 goes"):
        Bins.intervals([0.0, 2.0], [1.0, 1.0])


class TestExactValues:
    """Equal limits are a value known exactly, whatever the other column is."""

    truth = Mixture.of([0.3, 0.7], [[0.0, 1.0], [2.0, -1.0]], [[[1.0, 0.6], [0.6, 2.0]], [[0.5, -0.3], [-0.3, 1.0]]])
    rows = truth.sample(40, np.random.default_rng(0))[0]

    def test_in_both_columns_the_density_is_that_of_rows(self):
        bins, data = Bins.intervals(self.rows, self.rows), MixtureRows.of(gramian.open(self.rows))
        truth = self.truth.shift_origin(data.origin)
        for name in ("log_likelihood", "counts", "first", "second"):
            one, two = (getattr(d.expect(truth).shift(truth.centres), name) for d in (bins, data))
            assert_allclose(one, two, rtol=1e-11, atol=1e-11)

    @pytest.mark.parametrize("j", [0, 1])
    def test_in_one_column_the_other_is_confined_given_it(self, j):
        """Against differences of the conditional normal distribution function, by scipy."""
        low, high = self.rows.copy(), self.rows.copy()
        low[:, 1 - j], high[:, 1 - j] = -0.4, 0.9
        total = 0.0
        for x in self.rows[:, j]:
            parts = []
            for w, m, S in zip(self.truth.weights, self.truth.means, self.truth.covariances, strict=True):
                mean = m[1 - j] + S[0, 1] / S[j, j] * (x - m[j])
                rest = norm(mean, np.sqrt(S[1 - j, 1 - j] - S[0, 1] ** 2 / S[j, j]))
                parts.append(w * norm(m[j], np.sqrt(S[j, j])).pdf(x) * (rest.cdf(0.9) - rest.cdf(-0.4)))
            total += np.log(sum(parts))
        bins = Bins.intervals(low, high)
        assert_allclose(bins.expect(self.truth).log_likelihood, total, rtol=1e-11)
        narrow = Bins.intervals(low, high + 1e-7 * (np.arange(2) == j))
        near = narrow.expect(self.truth)
        assert_allclose(near.log_likelihood - 40 * np.log(1e-7), total, rtol=1e-6)
        assert_allclose(near.second, bins.expect(self.truth).second, rtol=1e-5)


@pytest.mark.parametrize(
    ("edges", "counts", "complaint"),
    [
        (["a", "b"], [1], "edges must be an array of real numbers"),
        ([0.0, 1.0], ["x"], "counts must be an array of real numbers"),
        ([0.0, np.nan, 2.0], [1, 1], "Edge 1 is NaN"),
        ([0.0, 2.0, 1.0], [1, 1], "edge 1 is 2.0 and edge 2 is 1.0"),
        ([0.0, 1.0, 2.0], [[1, 1]], r"counts have shape \(1, 2\)"),
        ([0.0, 1.0], 3, r"counts have shape \(\)"),
        ([0.0, 1.0 + 1j], [1], "edges must be an array of real numbers"),
    ],
)
def test_edges_and_counts_that_are_none_are_named(edges, counts, complaint):
    with pytest.raises(ValueError, match=complaint):
        Bins.of(edges, counts)
