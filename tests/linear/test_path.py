"""The λ-path against naive twins: explicit matrices, n refits, densities of the normal distribution, an integral."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from gramian.linear import Filter, RidgePath, leave_one_out

LAMBDAS = np.array([1e-3, 0.1, 1.0, 30.0])
WEIGHTS = {"none": None, "counts": np.arange(12) % 3 + 1.0, "precisions": np.linspace(0.3, 2.5, 12)}
each_weighting = pytest.mark.parametrize("weights", WEIGHTS)
with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])


class Twin:
    """A ridge regression by explicit matrices: rows with counts are written out, precisions stay in W."""

    def __init__(self, X, Y, w, counts, intercept):
        self.X, self.Y, self.w = X, Y, np.ones(len(X)) if w is None else w
        self.counts, self.intercept = counts, intercept
        self.N = self.w.sum() if counts or w is None else float(len(X))

    def fit(self, lam, w=None):
        """Coefficients with the intercept last, which has no penalty: (ZᵀWZ + D)⁻¹ZᵀWY."""
        w = self.w if w is None else w
        Z = np.column_stack([self.X, np.ones(len(self.X))]) if self.intercept else self.X
        penalty = lam * np.eye(Z.shape[1])
        if self.intercept:
            penalty[-1, -1] = 0.0
        return Z, np.linalg.solve(Z.T * w @ Z + penalty, Z.T * w)

    def hat(self, lam):
        Z, solve = self.fit(lam)
        return Z @ solve

    def rss(self, lam):
        return self.w @ (self.Y - self.hat(lam) @ self.Y) ** 2

    def left_out(self, lam):
        """y_i less its prediction from a fit without it, or without one of its copies."""
        errors = []
        for i in range(len(self.X)):
            w = self.w.copy()
            w[i] = w[i] - 1.0 if self.counts else 0.0
            Z, solve = self.fit(lam, w)
            errors.append(self.Y[i] - Z[i] @ solve @ self.Y)
        return np.array(errors)

    def written_out(self):
        """X, Y and the precisions of single observations."""
        if not self.counts:
            return self.X, self.Y, self.w
        times = self.w.astype(int)
        return np.repeat(self.X, times, axis=0), np.repeat(self.Y, times, axis=0), np.ones(times.sum())

    def covariance(self, lam, scale=1.0):
        X, _, w = self.written_out()
        return scale * (np.diag(1.0 / w) + X @ X.T / lam)


def decomposed(twin):
    """The Filter of the twin's data, with U, by NumPy's SVD."""
    w, precise = twin.w, not twin.counts and not np.all(twin.w == 1)
    mean_x, mean_y = (w @ twin.X / w.sum(), w @ twin.Y / w.sum()) if twin.intercept else (0.0, 0.0)
    A, B = np.sqrt(w)[:, None] * (twin.X - mean_x), np.sqrt(w)[:, None] * (twin.Y - mean_y)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    keep = s > 1e-12 * s[0]
    U, s, Vt = U[:, keep], s[keep], Vt[keep]
    c = U.T @ B
    rest = np.sum((B - U @ c) ** 2, axis=0)
    log_weights = float(np.log(w).sum()) if precise else 0.0
    return Filter(s**2, c, rest, twin.N, float(w.sum()), twin.intercept, log_weights), U, Vt


def problem(weights="none", intercept=True, n=12, p=4, seed=0):
    rng = np.random.default_rng(seed)
    w = WEIGHTS[weights]
    X = rng.standard_normal((n, p)) * np.linspace(1, 3, p) + 2.0
    Y = X @ rng.standard_normal((p, 2)) + rng.standard_normal((n, 2)) + 5.0
    return Twin(X, Y, w, weights == "counts", intercept)


@each_weighting
@with_and_without
def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix(weights, intercept):
    twin = problem(weights, intercept)
    expected = [np.trace(twin.hat(lam)) for lam in LAMBDAS]
    np.testing.assert_allclose(decomposed(twin)[0].dof(LAMBDAS), expected, rtol=1e-10)


@each_weighting
@with_and_without
def test_coefficients_and_dual_coefficients(weights, intercept):
    twin = problem(weights, intercept)
    f, U, Vt = decomposed(twin)
    for k, lam in enumerate(LAMBDAS):
        expected = (twin.fit(lam)[1] @ twin.Y)[: twin.X.shape[1]]
        primal = Vt.T @ f.solution(LAMBDAS)[:, k]
        np.testing.assert_allclose(primal, expected, rtol=1e-9, atol=1e-12)
        mean = twin.w @ twin.X / twin.w.sum() if intercept else 0.0
        A = np.sqrt(twin.w)[:, None] * (twin.X - mean)
        # A Aᵀβ + λβ = ỹ has a part outside the span of U, which Aᵀ does not see
        np.testing.assert_allclose(A.T @ (U @ f.dual(lam)[:, 0]), expected, rtol=1e-9, atol=1e-12)


@each_weighting
@with_and_without
def test_residual_sums_and_what_is_made_of_them(weights, intercept):
    twin = problem(weights, intercept)
    f = decomposed(twin)[0]
    rss = np.array([twin.rss(lam) for lam in LAMBDAS])
    dof = np.array([np.trace(twin.hat(lam)) for lam in LAMBDAS])[:, None]
    np.testing.assert_allclose(f.rss(LAMBDAS), rss, rtol=1e-9)
    np.testing.assert_allclose(f.gcv(LAMBDAS), rss / twin.N / (1 - dof / twin.N) ** 2, rtol=1e-9)
    np.testing.assert_allclose(f.noise(LAMBDAS), rss / (twin.N - dof), rtol=1e-9)


@each_weighting
@with_and_without
def test_leaving_out_is_refitting(weights, intercept):
    twin = problem(weights, intercept)
    H = np.stack([twin.hat(lam) for lam in LAMBDAS], axis=1)
    residuals = twin.Y[:, None, :] - np.einsum("ilj,jt->ilt", H, twin.Y)
    leverage = np.array([np.diag(twin.hat(lam)) for lam in LAMBDAS]).T
    found = leave_one_out(residuals, leverage, WEIGHTS[weights], twin.counts)
    expected = np.stack([twin.left_out(lam) for lam in LAMBDAS], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_counts_leave_out_what_the_rows_written_out_leave_out():
    twin = problem("counts")
    X, Y, w = twin.written_out()
    long = Twin(X, Y, None, False, True)
    first = np.r_[0, np.cumsum(twin.w.astype(int))[:-1]]
    np.testing.assert_allclose(twin.left_out(0.7), long.left_out(0.7)[first], rtol=1e-10)
    assert len(w) == twin.N


def test_a_row_that_determines_its_own_fit_has_an_infinite_error():
    residuals, leverage = np.zeros((3, 1, 1)), np.array([[1.0], [1.0 - 1e-15], [0.5]])
    np.testing.assert_array_equal(leave_one_out(residuals, leverage, None, False)[:, 0, 0], [np.inf, np.inf, 0.0])
    twice = leave_one_out(residuals + 1.0, leverage, np.array([2.0, 1.0, 1.0]), True)[:, 0, 0]
    np.testing.assert_allclose(twice, [2.0, np.inf, 2.0])  # the other copy still holds it


@each_weighting
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_the_likelihood_is_the_normal_density(weights, scale):
    twin = problem(weights, intercept=False)
    f = decomposed(twin)[0]
    _, Y, _ = twin.written_out()
    expected = [
        [multivariate_normal(cov=twin.covariance(lam, scale)).logpdf(y) for y in Y.T]  # one row for each λ
        for lam in LAMBDAS[1:]
    ]
    np.testing.assert_allclose(f.log_likelihood(LAMBDAS[1:], scale), expected, rtol=1e-9)


@each_weighting
@with_and_without
def test_the_profiled_scale_is_the_most_likely_one(weights, intercept):
    twin = problem(weights, intercept)
    f = decomposed(twin)[0]
    best, top = f.scale(LAMBDAS), f.log_likelihood(LAMBDAS)
    np.testing.assert_allclose(f.log_likelihood(LAMBDAS, best), top, rtol=1e-13)
    for factor in (0.5, 0.999, 1.001, 2.0):
        assert np.all(f.log_likelihood(LAMBDAS, factor * best) < top)
    if not intercept:
        _, Y, _ = twin.written_out()
        quadratic = [[y @ np.linalg.solve(twin.covariance(lam), y) for y in Y.T] for lam in LAMBDAS]
        np.testing.assert_allclose(best, np.array(quadratic) / twin.N, rtol=1e-9)


@each_weighting
def test_a_flat_prior_of_the_intercept_integrates_it_out(weights):
    """Patterson and Thompson (1971): ln∫N(y; b1, C)db = −½[(N−1)ln2π + ln|C| + ln 1ᵀC⁻¹1 + yᵀPy]."""
    twin = problem(weights, intercept=True)
    f = decomposed(twin)[0]
    _, Y, _ = twin.written_out()
    ones, y = np.ones(len(Y)), Y[:, 0]
    for lam in LAMBDAS[1:]:
        C = twin.covariance(lam, 1.7)
        inverse = np.linalg.inv(C)
        P = inverse - np.outer(inverse @ ones, ones @ inverse) / (ones @ inverse @ ones)
        closed = -0.5 * (
            (len(y) - 1) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + np.log(ones @ inverse @ ones) + y @ P @ y
        )
        found = f.log_likelihood(lam, 1.7)[0, 0]
        assert found == pytest.approx(closed, rel=1e-9)
        centre = ones @ inverse @ y / (ones @ inverse @ ones)
        width = 12 / np.sqrt(ones @ inverse @ ones)
        density = multivariate_normal(cov=C)
        top = density.logpdf(y - centre)
        area = quad(lambda b: np.exp(density.logpdf(y - b) - top), centre - width, centre + width)[0]  # noqa: B023
        assert found == pytest.approx(top + np.log(area), rel=1e-8)


@given(
    st.integers(2, 9),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 999),
    st.lists(st.floats(-8, 8), min_size=2, max_size=6, unique=True),
)
def test_a_larger_penalty_shrinks_everything(n, p, intercept, seed, exponents):
    rng = np.random.default_rng(seed)
    twin = Twin(rng.standard_normal((n, p)), rng.standard_normal((n, 1)), None, False, intercept)
    f = decomposed(twin)[0]
    lam = np.sort(10.0 ** np.array(exponents))
    slack = 1 + 1e-12
    assert np.all(np.diff(f.dof(lam)) <= 1e-12)
    assert np.all(f.dof(lam) <= min(n, p + intercept) + 1e-9)
    assert np.all(f.dof(lam) >= float(intercept))
    assert np.all(f.rss(lam)[:-1] <= f.rss(lam)[1:] * slack + 1e-14)
    length = np.linalg.norm(f.solution(lam), axis=0)
    assert np.all(length[1:] <= length[:-1] * slack)
    assert np.all(np.diff(f.shrinkage(lam), axis=1) <= 0)
    assert np.all((f.shrinkage(lam) >= 0) & (f.shrinkage(lam) <= 1))
    np.testing.assert_allclose(f.factors(lam) * np.sqrt(f.squares)[:, None], f.shrinkage(lam))


def test_no_penalty_is_the_pseudo_inverse_and_has_no_likelihood():
    f = Filter(np.array([4.0, 0.0]), np.array([[2.0], [3.0]]), np.zeros(1), 2.0, 2.0, False)
    assert f.factors(0.0).tolist() == [[0.5], [0.0]]
    assert f.dof(0.0).tolist() == [1.0]
    assert f.rss(0.0).tolist() == [[9.0]]
    assert f.log_likelihood(0.0).tolist() == [[-np.inf]]
    full = Filter(np.array([4.0, 1.0]), np.array([[2.0], [3.0]]), np.zeros(1), 2.0, 2.0, False)
    assert full.gcv(0.0).tolist() == [[np.inf]]
    assert np.isnan(full.noise(0.0)).all()


def path(loo, **changes):
    loo = np.asarray(loo, dtype=float)
    L, t = loo.shape
    fields = {
        "alphas": np.geomspace(0.1, 10, L),
        "singular_values": np.ones(2),
        "filter_factors": np.ones((2, L)),
        "dof": np.linspace(3, 1, L),
        "coef": np.zeros((L, t, 3)),
        "intercept": np.zeros((L, t)),
        "loo": loo,
        "gcv": loo[::-1],
        "log_marginal_likelihood": -loo,
        "noise_variance": loo,
    }
    return RidgePath(**{**fields, **changes})


def test_the_best_of_a_path():
    found = path([[3.0, 1.0], [1.0, 2.0], [2.0, 4.0]])
    assert found.best().tolist() == [1, 1]
    assert found.best(per_target=True).tolist() == [1, 0]
    assert found.best("gcv", per_target=True).tolist() == [1, 2]
    assert found.best("marginal_likelihood", per_target=True).tolist() == [1, 0]
    assert path([[np.nan], [5.0], [np.inf]]).best().tolist() == [1]
    with pytest.raises(ValueError, match=r"marginal_likelihood.*'aic'"):
        found.best("aic")


def test_a_path_shows_itself_as_a_line_and_as_a_table():
    found = path([[3.0, 1.0], [1.0, 2.0], [2.0, 4.0]])
    assert repr(found) == ("RidgePath(3 values of λ from 0.1 to 10; least leave-one-out error 1.5 at λ = 1, df = 2.00)")
    assert found.table()["loo"].tolist() == [2.0, 1.5, 3.0]
    assert list(found.table()) == ["alpha", "dof", "loo", "gcv", "log_marginal_likelihood", "noise_variance"]


@pytest.mark.parametrize("lam", [1e-3, 1e-12, 1e-18, 1e-120])
def test_what_a_tiny_penalty_leaves_does_not_cancel(lam):
    squares, c = np.array([9.0, 4.0, 1.0]), np.array([[3.0], [-2.0], [1.0]])
    f = Filter(squares, c, np.zeros(1), 4.0, 4.0, True)
    left = [Fraction(lam) / (Fraction(s) + Fraction(lam)) for s in squares]
    rss = sum(r**2 * Fraction(v) ** 2 for r, v in zip(left, c[:, 0], strict=True))
    assert f.free(lam)[0] == pytest.approx(float(sum(left)), rel=1e-14, abs=0)
    assert f.gcv(lam)[0, 0] == pytest.approx(float(4 * rss / sum(left) ** 2), rel=1e-14, abs=0)
    assert f.noise(lam)[0, 0] == pytest.approx(float(rss / sum(left)), rel=1e-14, abs=0)


def test_directions_that_cannot_be_there_take_no_degrees_of_freedom():
    # three observations and an intercept have two directions: the least squares are rounding, larger than λ or not
    f = Filter(np.array([1e-17, 4.0, 0.0, 1.0]), np.zeros((4, 1)), np.zeros(1), 3.0, 3.0, True)
    assert f.free(1e-18)[0] == pytest.approx(1.25e-18, rel=1e-14, abs=0)


def test_what_is_beyond_the_data_hides_what_a_tiny_penalty_leaves():
    f = Filter(np.array([1.0]), np.ones((1, 2)), np.array([1e-20, 0.0]), 1.0, 1.0, False)
    assert f.gcv(1e-14)[0].tolist() == [np.inf, pytest.approx(1.0)]
    assert np.isnan(f.noise(1e-14)[0]).tolist() == [True, False]


def test_a_target_of_zeros_has_no_largest_likelihood():
    f = Filter(np.array([4.0, 1.0]), np.array([[0.0, 1.0], [0.0, 2.0]]), np.zeros(2), 3.0, 3.0, True)
    assert f.log_likelihood([0.5, 1.0])[:, 0].tolist() == [np.inf, np.inf]
    assert np.isfinite(f.log_likelihood([0.5, 1.0])[:, 1]).all()
    assert f.log_likelihood(0.0)[0, 0] == -np.inf
    assert np.isfinite(f.log_likelihood(0.5, 2.0)).all()
