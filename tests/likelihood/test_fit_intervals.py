"""Confidence intervals and goodness of fit, against closed forms, brute force, scipy and published numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats
from sklearn.exceptions import ConvergenceWarning

from gramian.likelihood.families import Categorical, StudentT
from gramian.likelihood.fit import fit
from gramian.likelihood.sample import Binned, Censored, Intervals, as_sample

INF = float("inf")
Q95 = stats.chi2.ppf(0.95, 1)
rng = np.random.default_rng(7)
GAMMA = rng.gamma(2.5, 2.0, 60)
CRABS = Binned(
    np.concatenate([[-INF], 0.5835 + 0.004 * np.arange(28), [INF]]),
    [1, 3, 5, 2, 7, 10, 13, 19, 20, 25, 40, 31, 60, 62, 54, 74, 84, 86, 96, 85, 75, 47, 43, 24, 19, 9, 5, 0, 1],
)


def test_wald_intervals_are_estimate_and_errors():
    est = fit("gamma", GAMMA)
    found = est.wald(level=0.9)
    z = stats.norm.ppf(0.95)
    low, high = found["shape"]
    assert low == pytest.approx(est["shape"] - z * est.standard_errors["shape"], rel=1e-12)
    assert high == pytest.approx(est["shape"] + z * est.standard_errors["shape"], rel=1e-12)
    inside = est.wald(level=0.9, transformed=True)
    spread = z * est.standard_errors["shape"] / est["shape"]
    np.testing.assert_allclose(inside["shape"], est["shape"] * np.exp([-spread, spread]), rtol=1e-12)
    assert list(found) == ["shape", "rate"]
    assert "90% confidence intervals, Wald" in repr(found)


@pytest.mark.parametrize("n", [1, 3, 10, 1000])
def test_all_heads_have_a_one_sided_interval(n):
    found = fit("bernoulli", np.ones(n)).profile()
    low, high = found["theta"]
    assert high == 1.0
    assert low == pytest.approx(np.exp(-Q95 / (2 * n)), rel=1e-10)  # −2n ln θ = χ²
    assert "one-sided" in found.notes[0]
    assert fit("bernoulli", np.zeros(n)).profile()["theta"][1] == pytest.approx(1 - low, rel=1e-8)


def test_no_event_has_a_one_sided_interval():
    assert fit("poisson", np.zeros(8)).profile()["rate"] == pytest.approx((0.0, Q95 / 16), rel=1e-10)
    silent = fit("exponential", Censored([1.0, 2.0, 4.0], [0, 0, 0])).profile()["rate"]
    assert silent == pytest.approx((0.0, Q95 / 14), rel=1e-10)  # 2 λ Σt = χ²


def test_profiles_of_the_normal_are_closed_forms():
    x = np.random.default_rng(0).normal(5.0, 3.0, 25)
    est = fit("normal", x)
    found, n = est.profile(), len(x)
    width = est["sd"] * np.sqrt(np.expm1(Q95 / n))  # n ln(1 + (m − x̄)²/s²) = χ²
    assert found["mean"] == pytest.approx((est["mean"] - width, est["mean"] + width), rel=1e-9)
    for end in found["sd"]:
        ratio = est["sd"] ** 2 / end**2
        assert n * (ratio - 1 - np.log(ratio)) == pytest.approx(Q95, rel=1e-8)
    rows = fit("multivariate normal", x[:, None]).profile()
    assert rows["mean[0]"] == pytest.approx(found["mean"], rel=1e-9)
    np.testing.assert_allclose(np.sqrt(rows["cov[0,0]"]), found["sd"], rtol=1e-8)


def test_the_profile_of_an_exponential_rate_is_a_closed_form():
    x = GAMMA[:20]
    est = fit("exponential", x)
    for end in est.profile()["rate"]:
        u = end / est["rate"]
        assert 2 * 20 * (u - 1 - np.log(u)) == pytest.approx(Q95, rel=1e-9)


def brute_force(loglik: Any, top: float, value: float, others: Any) -> float:
    """Twice the fall of the likelihood, maximised over the others by scipy."""
    best = optimize.minimize(
        lambda t: -loglik(value, t), others, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}
    )
    return float(2 * (top + best.fun))


def test_profiles_of_a_gamma_end_where_brute_force_says():
    est = fit("gamma", GAMMA)
    low, high = est.profile()["shape"]
    for end in (low, high):
        fall = brute_force(
            lambda a, t: stats.gamma.logpdf(GAMMA, a, scale=np.exp(-t[0])).sum(), est.loglik, end, [np.log(est["rate"])]
        )
        assert fall == pytest.approx(Q95, rel=1e-7)


def test_profiles_of_censored_times_end_where_brute_force_says():
    t = np.minimum(GAMMA, 6.0)
    est = fit("weibull", Censored(t, GAMMA <= 6.0))
    seen = GAMMA <= 6.0

    def loglik(s: float, k: Any) -> float:
        law = stats.weibull_min(np.exp(k[0]), scale=s)
        return float(law.logpdf(t[seen]).sum() + law.logsf(t[~seen]).sum())

    for end in est.profile(level=0.9, names=["scale"])["scale"]:
        fall = brute_force(loglik, est.loglik, end, [np.log(est["shape"])])
        assert fall == pytest.approx(stats.chi2.ppf(0.9, 1), rel=1e-7)


def test_the_profile_of_a_laplace_location_ends_where_its_closed_form_says():
    x = np.random.default_rng(5).laplace(2.0, 1.0, 31)
    est = fit("laplace", x)
    for end in est.profile(names=["location"])["location"]:
        fall = 2 * len(x) * np.log(np.mean(np.abs(x - end)) / est["scale"])
        assert fall == pytest.approx(Q95, rel=1e-6)


def test_profiles_of_covariances_and_shares():
    X = np.random.default_rng(3).normal(size=(40, 2)) @ np.array([[1.0, 0.6], [0.0, 2.0]])
    est = fit("multivariate normal", X)
    S = np.cov(X.T, ddof=0)

    def loglik(c: float, t: Any) -> float:
        C = np.array([[np.exp(t[0]), c], [c, np.exp(t[1])]])
        if np.linalg.det(C) <= 0:
            return -1e9
        return float(-0.5 * 40 * (np.log(np.linalg.det(2 * np.pi * C)) + np.trace(np.linalg.solve(C, S))))

    for end in est.profile(names=["cov[0,1]"])["cov[0,1]"]:
        fall = brute_force(loglik, est.loglik, end, np.log(np.diag(S)) + 0.05)
        assert fall == pytest.approx(Q95, rel=1e-6)
    shares = fit(Categorical(["a", "b", "c"]), ["a"] * 6 + ["b"] * 4)
    coin = fit("bernoulli", [1] * 6 + [0] * 4)
    assert shares.profile()["theta[a]"] == pytest.approx(coin.profile()["theta"], rel=1e-9)
    assert shares.profile()["theta[c]"] == pytest.approx((0.0, -np.expm1(-Q95 / 20)), rel=1e-9)


def test_a_parameter_the_data_do_not_bound_has_an_open_interval():
    found = fit("student t", np.linspace(-1, 1, 41)).profile()
    assert found["df"][1] == INF
    assert 1.0 < found["df"][0] < 100.0
    normal = fit("normal", np.linspace(-1, 1, 41)).profile()
    assert found["location"] == pytest.approx(normal["mean"], abs=1e-4)
    poisson = fit("negative binomial", [3, 4, 4, 5, 5, 6, 4]).profile()
    assert poisson["size"][1] == INF
    assert poisson["mean"] == pytest.approx(fit("poisson", [3, 4, 4, 5, 5, 6, 4]).profile()["rate"], rel=1e-3)
    around = fit("von mises", [0.0, np.pi / 2, np.pi, -np.pi / 2]).profile()
    assert around["mean"] == pytest.approx((-np.pi, np.pi))
    assert around["kappa"][0] == 0.0


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), n=st.integers(5, 60))
def test_profile_and_wald_intervals_agree_in_the_middle_and_hold_the_estimate(seed, n):
    x = np.random.default_rng(seed).gamma(3.0, 1.0, n)
    est = fit("weibull", x)
    profile, wald = est.profile(level=0.5), est.wald(level=0.5)
    for name in est.names:
        low, high = profile[name]
        assert low < est[name] < high
        assert high - low == pytest.approx(wald[name][1] - wald[name][0], rel=0.35)


def test_wrong_levels_and_names_are_named():
    est = fit("gamma", GAMMA, fixed={"shape": 2.0})
    with pytest.raises(ValueError, match="level=95"):
        est.wald(95)
    with pytest.raises(ValueError, match="'shape'"):
        est.profile(names=["shape"])
    with pytest.raises(KeyError, match="'shape'"):
        est.profile()["shape"]
    assert est.profile().table()["parameter"] == ["rate"]


def test_the_fit_of_the_crabs_is_the_published_one():
    found = fit("normal", CRABS).goodness(least=0)
    # deviance of two normals 22.11 and likelihood ratio 52.73: shared/MATHEMATICS.md
    assert found.deviance == pytest.approx(22.11 + 52.73, abs=0.01)
    assert found.df == 29 - 1 - 2
    assert found.p_deviance == pytest.approx(stats.chi2.sf(found.deviance, 26))
    assert found.expected.sum() == pytest.approx(1000.0)
    pooled = fit("normal", CRABS).goodness()
    assert pooled.expected.min() >= 5.0
    assert pooled.observed.sum() == 1000.0
    theirs = stats.chisquare(pooled.observed, pooled.expected * 1000 / pooled.expected.sum(), ddof=2)
    assert pooled.pearson == pytest.approx(theirs.statistic, rel=1e-9)
    assert pooled.p_pearson == pytest.approx(theirs.pvalue, rel=1e-9)
    assert "Kolmogorov–Smirnov is refused: it needs every value exactly" in pooled.notes[0]
    assert len(pooled.table()["observed"]) == len(pooled.observed)
    assert "Pearson X²" in repr(pooled)


def test_what_the_edges_leave_out_is_a_class_with_nothing_in_it():
    binned = Binned([0.0, 1.0, 2.0, 3.0], [10, 20, 10])
    found = fit("normal", binned).goodness(least=0)
    np.testing.assert_array_equal(found.observed, [0, 10, 20, 10, 0])
    assert found.expected.sum() == pytest.approx(40.0)
    seen = fit("normal", binned, truncated=(0.0, 3.0)).goodness(least=0)
    np.testing.assert_array_equal(seen.observed, [10, 20, 10])
    assert seen.expected.sum() == pytest.approx(40.0)
    assert np.isnan(seen.p_pearson)
    assert "leave no degrees of freedom" in seen.notes[0]
    start = fit("exponential", Binned([0.0, 1.0, 2.0, INF], [10, 5, 3])).goodness(least=0)
    np.testing.assert_array_equal(start.observed, [10, 5, 3])


def test_counts_are_their_own_classes():
    x = np.repeat(np.arange(7), [12, 25, 30, 17, 9, 4, 3])
    found = fit("poisson", x).goodness()
    rate = x.mean()
    expected = 100 * np.append(stats.poisson.pmf(np.arange(5), rate), stats.poisson.sf(4, rate))
    np.testing.assert_allclose(found.expected, expected, rtol=1e-10)
    np.testing.assert_array_equal(found.observed, [12, 25, 30, 17, 9, 7])
    assert found.df == 4
    assert "continuous variables only" in found.notes[0]


def test_values_are_divided_into_classes_of_equally_many():
    x = np.random.default_rng(4).normal(5.0, 2.0, 400)
    est = fit("normal", x)
    found = est.goodness()
    assert found.observed.sum() == 400
    assert np.ptp(found.observed) <= 1
    law = stats.norm(est["mean"], est["sd"])
    np.testing.assert_allclose(found.expected, 400 * (law.cdf(found.upper) - law.cdf(found.lower)), rtol=1e-9)
    np.testing.assert_array_equal(found.observed, np.histogram(x, [-INF, *found.upper])[0])
    assert found.p_pearson == pytest.approx(stats.chi2.sf(found.pearson, len(found.observed) - 1))
    assert found.p_pearson > 0.01
    assert fit("normal", np.exp(x)).goodness().p_pearson < 1e-10
    # the p-value errs on the side of the family: it is too small no more often than it says
    rng = np.random.default_rng(5)
    p = [fit("normal", rng.normal(size=100)).goodness().p_pearson for _ in range(200)]
    assert np.mean(np.array(p) < 0.05) < 0.10


def test_a_curve_follows_the_deviance():
    est = fit("gamma", GAMMA)
    curve = est.profile_curve("shape", 4.0)
    assert np.all(np.diff(curve[:, 0]) > 0)
    n, mean, log_mean = len(GAMMA), GAMMA.mean(), np.log(GAMMA).mean()
    loglik = (
        n * (curve[:, 0] * (np.log(curve[:, 0] / mean) + log_mean - 1) - special.gammaln(curve[:, 0])) - n * log_mean
    )
    np.testing.assert_allclose(curve[:, 1], 2 * (est.loglik - loglik), atol=1e-8)
    np.testing.assert_allclose(curve[[0, -1], 1], 4.0, rtol=1e-9)
    with pytest.raises(ValueError, match="'df' was not estimated"):
        est.profile_curve("df", 4.0)


def test_kolmogorov_smirnov_is_scipys_and_has_a_p_value_only_where_it_is_valid():
    est, other = fit("gamma", GAMMA), np.random.default_rng(9).gamma(2.5, 2.0, 40)
    own = est.goodness()
    twin = stats.gamma(est["shape"], scale=1 / est["rate"])
    assert own.ks == pytest.approx(stats.kstest(GAMMA, twin.cdf).statistic, rel=1e-9)
    assert np.isnan(own.p_ks)
    assert "estimated from the same values" in own.notes[1]
    fresh, theirs = est.goodness(other), stats.kstest(other, twin.cdf)
    assert fresh.ks == pytest.approx(theirs.statistic, rel=1e-9)
    assert fresh.p_ks == pytest.approx(theirs.pvalue, rel=1e-9)
    twice = fit("gamma", np.unique(GAMMA), sample_weight=np.full(60, 2.0)).goodness()
    assert twice.ks == pytest.approx(stats.kstest(np.repeat(GAMMA, 2), twin.cdf).statistic, rel=1e-6)


def test_the_bootstrap_of_a_normal_is_the_test_of_lilliefors():
    x = np.random.default_rng(2).normal(size=20)
    good = fit("normal", x).goodness(bootstrap=199, random_state=0)
    # Lilliefors (1967), table 1: for n = 20 the 5 % point of D is 0.190 and the 20 % point 0.160
    assert (good.ks < 0.160) == (good.p_ks > 0.20)
    bad = fit("normal", np.exp(2 * x)).goodness(bootstrap=199, random_state=0)
    assert bad.ks > 0.231  # its 1 % point
    assert bad.p_ks < 0.02


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (Censored(GAMMA, GAMMA < 5), {}, "censored records overlap"),
        (GAMMA, {"sample_weight": np.full(60, 0.5)}, "no whole numbers"),
        (GAMMA, {"truncated": (0.0, 1e9)}, "without classes, censoring or truncation"),
        (Intervals(np.floor(GAMMA), np.floor(GAMMA) + 1), {}, "bin the data"),
    ],
)
def test_what_cannot_be_tested_is_refused_by_name(data, options, words):
    found = fit("gamma", data, **options).goodness()
    assert any(words in note for note in found.notes)
    assert np.isnan(found.p_ks)
    assert words in repr(found)
    circle = fit("von mises", GAMMA).goodness()
    assert any("where the circle is cut" in note for note in circle.notes)


def lost(log_density, x, hold, starts):
    """2(ℓ̂ − ℓ) of a held parameter, by the simplex method from several starts."""
    return min(
        optimize.minimize(
            lambda rest: -np.sum(log_density(x, hold, *rest)),
            s,
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12},
        ).fun
        for s in starts
    )


@pytest.mark.parametrize("x", [[1, 2, 2.5, 3, 4, 3.5, 2.8], [1.1, 1.2, 1.3, 2, 3.0]])
def test_a_profile_that_flattens_has_no_end(x):
    x, est = np.array(x, dtype=float), fit("normal", x, truncated=(1, INF))
    found = est.profile()
    assert found["mean"][0] == -INF  # the limit is the exponential from 1 on, and near enough
    assert 2.0 * (est.loglik - stats.expon.logpdf(x - 1.0, scale=np.mean(x - 1.0)).sum()) < Q95
    assert found["sd"][1] == INF

    def density(x, mean, log_sd):
        return stats.norm.logpdf(x, mean, np.exp(log_sd)) - stats.norm.logsf(1.0, mean, np.exp(log_sd))

    at_end = lost(density, x, found["mean"][1], [[0.0], [1.0], [-1.0]])
    assert 2.0 * (est.loglik + at_end) == pytest.approx(Q95, abs=1e-6)


def test_the_other_parameters_leave_the_plateau_they_began_on():
    x = np.array([0, 1, 1, 2])
    size = np.exp(np.linspace(-3, 12, 3001))
    est = fit("negative binomial", x)
    for end in est.profile()["mean"]:
        best = stats.nbinom.logpmf(x[:, None], size, size / (size + end)).sum(axis=0).max()
        assert 2.0 * (est.loglik - best) == pytest.approx(Q95, abs=1e-4)


def test_a_lower_end_at_zero_is_zero():
    found = fit("negative binomial", [1, 2, 2, 3, 1, 2], truncated=(1, INF)).profile()
    assert found["mean"][0] == 0.0
    assert found["size"] == (0.0, INF)


def test_degrees_of_freedom_end_where_the_likelihood_is_unbounded():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    est = fit("student t", x)

    def density(x, df, location, log_scale):
        return stats.t.logpdf(x, df, location, np.exp(log_scale))

    low = est.profile(names="df")["df"][0]
    at_end = lost(density, x, low, [[3.0, 0.0], [2.0, -1.0], [3.1, 1.0]])
    assert 2.0 * (est.loglik + at_end) == pytest.approx(Q95, abs=1e-6)
    wild = fit("student t", [-3.0, -1.0, 0.0, 1.0, 8.0]).profile(names="df")
    assert wild["df"] == (1 / 4, INF)
    assert "unbounded" in wild.notes[0]
    tied = StudentT().walls(as_sample([0.0, 0.0, 1.0, 2.0, 3.0]))
    assert tied[0] == pytest.approx(2 / 3)
    late = StudentT().walls(Censored([0.0, 1.0, 2.0, 3.0], [1, 1, 1, 0]))  # nothing is later than what it may be
    assert late[0] == pytest.approx(1 / 3)


def test_a_moving_support_does_not_end_the_walk_early():
    x = np.array([1, 2, 3.0, 5, 4, 6, 9, 2.2, 2.5, 3.1])
    est = fit("genextreme", x)
    for c in est.profile(names="c")["c"]:

        def density(x, c, loc, log_scale):
            return np.maximum(stats.genextreme.logpdf(x, c, loc, np.exp(log_scale)), -1e6)

        at_end = lost(density, x, c, [[2.6, 0.4], [3.0, 0.8], [2.0, 0.0]])
        assert 2.0 * (est.loglik + at_end) == pytest.approx(Q95, abs=1e-5)


@pytest.mark.parametrize("edge", [1, 2, 3, 0.7, 1e-200, 1e200, np.pi])
def test_data_that_leave_a_curve_of_maxima_have_open_profiles(edge):
    with pytest.warns(ConvergenceWarning, match="no standard errors"):
        est = fit("gamma", Binned([0, edge, INF], [5, 5]))
    found = est.profile()
    assert found["shape"] == (0.0, INF)
    assert found["rate"] == (0.0, INF)


def test_standard_errors_are_not_lost_to_squares():
    for size in (1e-200, 1e300):
        est = fit("normal", np.array([1.0, 3.0, 4.0]) * size)
        assert est.standard_errors["mean"] / size == pytest.approx(np.std([1, 3, 4]) / np.sqrt(3))


def test_p_values_count_the_data_and_the_weights_of_others():
    est = fit("gamma", GAMMA)
    far = fit("normal", np.exp(np.arange(20.0))).goodness(bootstrap=19, random_state=0)
    assert far.p_ks == pytest.approx(1 / 20)  # no sample is as far: the data alone are
    other, w = np.array([0.5, 1.0, 2.0, 3.5, 7.0]), np.array([1, 4, 2, 3, 5])
    weighted = est.goodness(as_sample(other, sample_weight=w))
    theirs = stats.kstest(np.repeat(other, w), stats.gamma(est["shape"], scale=1 / est["rate"]).cdf)
    assert (weighted.ks, weighted.p_ks) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
    classes = Binned([0.0, 1.0, 2.0, 4.0, 8.0, INF], [10, 12, 14, 9, 7])
    assert est.goodness(classes, least=0).df == 4  # nothing was estimated from these counts
    assert fit("gamma", classes).goodness(least=0).df == 2


def test_anderson_darling_and_cramer_von_mises():
    x = np.random.default_rng(4).normal(2.0, 3.0, 60)
    found = fit("normal", x)
    first = found.goodness(bootstrap=199, random_state=0)
    law = stats.norm(found["mean"], found["sd"])
    u, n = np.sort(law.cdf(x)), len(x)
    i = np.arange(1, n + 1)
    assert first.anderson_darling == pytest.approx(-n - np.sum((2 * i - 1) * (np.log(u) + np.log1p(-u[::-1]))) / n)
    assert first.cramer_von_mises == pytest.approx(stats.cramervonmises(x, law.cdf).statistic)
    assert min(first.p_anderson_darling, first.p_cramer_von_mises) > 0.05
    # values that are there several times, told by weights
    w = np.random.default_rng(5).integers(1, 4, 60)
    twice, listed = fit("normal", x, sample_weight=w).goodness(), fit("normal", np.repeat(x, w)).goodness()
    assert twice.anderson_darling == pytest.approx(listed.anderson_darling, rel=1e-6)
    assert twice.cramer_von_mises == pytest.approx(listed.cramer_von_mises, rel=1e-6)
    assert np.isnan(listed.p_anderson_darling)
    bad = fit("normal", np.exp(x / 2)).goodness(bootstrap=99, random_state=0)
    assert max(bad.p_anderson_darling, bad.p_cramer_von_mises) == pytest.approx(0.01)
    assert "Anderson" in repr(bad)


def test_the_bootstrap_of_anderson_darling_is_stephens_table():
    """5 % of normal samples with both parameters estimated exceed 0.752/(1 + 0.75/n + 2.25/n²) (Stephens 1974)."""
    n, rng, exceeded, p = 25, np.random.default_rng(6), [], []
    for _ in range(300):
        A2 = fit("normal", rng.normal(size=n)).goodness().anderson_darling
        exceeded.append(0.752 / (1 + 0.75 / n + 2.25 / n**2) < A2)
    assert np.mean(exceeded) == pytest.approx(0.05, abs=0.035)
    for seed in range(4):
        found = fit("normal", rng.normal(size=n)).goodness(bootstrap=199, random_state=seed)
        p.append((found.anderson_darling > 0.65, found.p_anderson_darling < 0.08))
    assert all(a == b for a, b in p)


LAWS = {
    "gamma": lambda t: stats.gamma(t[0], scale=1 / t[1]),
    "weibull": lambda t: stats.weibull_min(t[0], scale=t[1]),
    "normal": lambda t: stats.norm(*t),
    "lognormal": lambda t: stats.lognorm(t[1], scale=np.exp(t[0])),
    "student t": lambda t: stats.t(*t),
}


def naive_sandwich(pieces, theta, weights):
    """I⁻¹(Σwssᵀ)I⁻¹ with derivatives of ln p of each record by central differences, twice extrapolated."""
    p = len(theta)

    def first(f, at, h):
        d = [(f(at + h * e) - f(at - h * e)) / (2 * h) for e in np.eye(p) * np.abs(at)[:, None]]
        return np.array(d) / np.abs(at).reshape(-1, *[1] * (np.ndim(d) - 1))

    def slope(f, at):
        return (4 * first(f, at, 5e-4) - first(f, at, 1e-3)) / 3

    S = slope(pieces, theta)
    H = -slope(lambda t: slope(pieces, t) @ weights, theta)
    return np.linalg.solve(H, np.linalg.solve(H, (S * weights) @ S.T).T)


@pytest.mark.parametrize("name", ["gamma", "weibull", "normal", "lognormal", "student t"])
def test_the_sandwich_is_that_of_the_records(name):
    x = np.random.default_rng(5).gamma(3.0, 1.0, 80)
    w = np.random.default_rng(6).integers(1, 4, 80)
    est = fit(name, x, sample_weight=w)
    expected = naive_sandwich(lambda t: LAWS[name](t).logpdf(x), est.values, w)
    found = est.sandwich()
    np.testing.assert_allclose(found.covariance, expected, rtol=2e-4, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(found._errors() ** 2, np.diag(found.covariance), rtol=1e-12)
    again = fit(name, np.repeat(x, w)).sandwich()
    np.testing.assert_allclose(again.covariance, found.covariance, rtol=1e-6)
    assert found.kind == "sandwich"
    assert est.kind == "information"
    assert "sandwich" in repr(found)
    assert found.wald()[found.names[0]][1] == pytest.approx(found.values[0] + 1.959963984540054 * found._errors()[0])


def test_the_sandwich_of_intervals_and_windows():
    x = np.random.default_rng(5).gamma(3.0, 1.0, 120)
    x = x[(x > 0.8) & (x < 7.0)]
    est = fit("gamma", x, truncated=(0.8, 7.0))

    def pieces(t):
        law = LAWS["gamma"](t)
        return law.logpdf(x) - np.log(law.cdf(7.0) - law.cdf(0.8))

    expected = naive_sandwich(pieces, est.values, np.ones(len(x)))
    np.testing.assert_allclose(est.sandwich().covariance, expected, rtol=1e-4)
    counts, edges = np.histogram(x, [0.8, 1.5, 2.0, 3.0, 4.5, 7.0])
    binned = fit("gamma", Binned(edges, counts))
    expected = naive_sandwich(lambda t: np.log(np.diff(LAWS["gamma"](t).cdf(edges))), binned.values, counts)
    np.testing.assert_allclose(binned.sandwich().covariance, expected, rtol=1e-4)


def test_the_sandwich_of_censored_times_is_that_of_survreg():
    """R 4.2.2: survreg(Surv(t, s) ~ 1, dist=, robust=TRUE)$var of the first 60 rows of survival's lung."""
    t = (
        "306,455,1010,210,883,1022,310,361,218,166,170,654,728,71,567,144,613,707,61,88,301,81,624,371,394,520,574,118,390,"
        "12,473,26,533,107,53,122,814,965,93,731,460,153,433,145,583,95,303,519,643,765,735,189,53,246,689,65,5,132,687,345"
    )
    times, seen = np.array(t.split(","), dtype=float), np.ones(60)
    seen[[2, 5, 37]] = 0
    normal = fit("lognormal", Censored(times, seen)).sandwich()
    assert normal["meanlog"] == pytest.approx(5.570174088352513, rel=1e-8)
    turn = np.diag([1.0, normal["sdlog"]])  # of (Intercept, ln scale)
    theirs = np.array([[0.02167973617162274, -0.00907832033687947], [-0.00907832033687947, 0.01554508320523791]])
    np.testing.assert_allclose(normal.covariance, turn @ theirs @ turn, rtol=2e-6)
    weibull = fit("weibull", Censored(times, seen)).sandwich()
    # shape = exp(−ln scale), scale = exp(Intercept)
    turn = np.array([[0.0, -weibull["shape"]], [weibull["scale"], 0.0]])
    theirs = np.array([[0.01283382369470176, -0.00548895876984117], [-0.00548895876984117, 0.01310885613425790]])
    np.testing.assert_allclose(weibull.covariance, turn @ theirs @ turn.T, rtol=2e-6)


def test_the_sandwich_where_it_is_a_formula():
    x = np.random.default_rng(1).standard_t(5, 200)
    est = fit("normal", 1e6 + 1e-3 * x).sandwich()
    c = 1e-3 * (x - x.mean())
    v = np.mean(c**2)
    assert est.standard_errors["sd"] == pytest.approx(np.sqrt((np.mean(c**4) - v**2) / 200 / (4 * v)), rel=1e-5)
    counts = np.random.default_rng(2).negative_binomial(2, 0.2, 300)
    assert fit("poisson", counts).sandwich().standard_errors["rate"] == pytest.approx(
        counts.std() / np.sqrt(300), rel=1e-8
    )
    held = fit("normal", x, fixed={"mean": 0.0}).sandwich()
    assert held.standard_errors["mean"] == 0.0
    assert held.standard_errors["sd"] == pytest.approx(np.sqrt(np.var(x**2) / 200) / (2 * held["sd"]), rel=1e-6)


def test_where_there_is_no_sandwich():
    with pytest.raises(ValueError, match="end of its range"):
        fit("poisson", np.zeros(8)).sandwich()
    with pytest.raises(ValueError, match="kink"):
        fit("laplace", GAMMA).sandwich()
    with pytest.raises(ValueError, match="no records"):
        fit("multivariate normal", np.random.default_rng(0).normal(size=(20, 2))).sandwich()
