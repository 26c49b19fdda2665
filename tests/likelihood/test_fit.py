"""Maximum likelihood, against R, scipy, mpmath, closed forms and published numbers."""

import json
import pickle
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import lambertw
from sklearn.exceptions import ConvergenceWarning

from gramian.likelihood.families import (
    Binomial,
    Categorical,
    Custom,
    Geometric,
    NoMaximumError,
    Scipy,
)
from gramian.likelihood.fit import compare, fit
from gramian.likelihood.sample import Binned, Censored, Intervals

INF = float("inf")
R = json.loads((Path(__file__).parents[1] / "data" / "mle.json").read_text("utf-8"))
# Pearson (1894), as in R's mixdist: 1000 crabs in 29 classes
CRABS = np.array(
    [1, 3, 5, 2, 7, 10, 13, 19, 20, 25, 40, 31, 60, 62, 54, 74, 84, 86, 96, 85, 75, 47, 43, 24, 19, 9, 5, 0, 1]
)
LIMITS = np.concatenate([[-INF], 0.5835 + 0.004 * np.arange(28), [INF]])
rng = np.random.default_rng(20260)
DRAWS: dict[str, Any] = {
    "normal": rng.normal(3, 2, 80),
    "logistic": rng.logistic(3, 2, 80),
    "laplace": rng.laplace(3, 2, 81),
    "student t": 3 + 2 * rng.standard_t(4, 200),
    "exponential": rng.exponential(2, 80),
    "gamma": rng.gamma(2.5, 2, 80),
    "weibull": 3 * rng.weibull(1.6, 80),
    "lognormal": rng.lognormal(1, 0.6, 80),
    "beta": rng.beta(2, 3, 80),
    "von mises": rng.vonmises(1, 2, 80),
    "poisson": rng.poisson(3, 80),
    "geometric": rng.geometric(0.3, 80),
    "negative binomial": rng.negative_binomial(2, 0.3, 80),
    "bernoulli": rng.binomial(1, 0.4, 80),
}


def near(found: Any, expected: Any, digits: float = 1e-6) -> None:
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)


@pytest.mark.parametrize(
    ("case", "family", "names", "scale"),
    [
        ("rivers_gamma", "gamma", {"shape": "shape", "rate": "rate"}, 100),
        ("rivers_weibull", "weibull", {"shape": "shape", "scale": "scale"}, 100),
        ("rivers_lognormal", "lognormal", {"meanlog": "meanlog", "sdlog": "sdlog"}, 100),
        ("rivers_exponential", "exponential", {"rate": "rate"}, 100),
        ("precip_logistic", "logistic", {"location": "location", "scale": "scale"}, 1),
        ("precip_beta", "beta", {"shape1": "a", "shape2": "b"}, 100),
        ("days_negative_binomial", "negative binomial", {"size": "size", "mu": "mean"}, 1),
        ("days_poisson", "poisson", {"lambda": "rate"}, 1),
        ("days_geometric", Geometric(first=0), {"prob": "theta"}, 1),
    ],
)
def test_estimates_errors_and_likelihood_are_those_of_fitdistr(case, family, names, scale):
    theirs, data = R[case], np.array(R[case.split("_")[0]], dtype=float) / scale
    ours = fit(family, data)
    assert ours.certificate.converged
    assert ours.loglik >= theirs["loglik"] - 1e-8 * abs(theirs["loglik"])
    assert ours.loglik == pytest.approx(theirs["loglik"], rel=1e-8)
    for their_name, name in names.items():
        error = theirs["sd"][their_name]
        assert abs(ours[name] - theirs["estimate"][their_name]) < 2e-5 * error  # optim's own accuracy
        expected_information = family == "beta"
        assert ours.standard_errors[name] == pytest.approx(error, rel=2e-3 if expected_information else 5e-4)


def test_student_t_is_that_of_fitdistr():
    x = np.array(R["precip"]) + np.concatenate([np.zeros(60), np.linspace(-90, 90, 10)])
    ours, theirs = fit("student t", x), R["precip_t"]
    assert ours.loglik == pytest.approx(theirs["loglik"], rel=1e-9)
    for name, key in (("df", "df"), ("location", "m"), ("scale", "s")):
        assert ours[name] == pytest.approx(theirs["estimate"][key], rel=1e-4)
        assert ours.standard_errors[name] == pytest.approx(theirs["sd"][key], rel=2e-3)


def in_their_terms(estimate: Any, kind: str) -> tuple[Any, Any]:
    """Location and ln(scale) of survreg, with their covariance, from ours by the delta method."""
    value, V = estimate.values, estimate.covariance
    if kind == "weibull":  # ln(scale) = −ln k, location = ln s
        J = np.array([[0.0, 1.0 / value[1]], [-1.0 / value[0], 0.0]])
        return np.array([np.log(value[1]), -np.log(value[0])]), J @ V @ J.T
    J = np.diag([1.0, 1.0 / value[1]])
    return np.array([value[0], np.log(value[1])]), J @ V @ J.T


@pytest.mark.parametrize(
    ("case", "family"),
    [
        ("lung_weibull", "weibull"),
        ("lung_lognormal", "lognormal"),
        ("lung_gaussian", "normal"),
        ("lung_logistic", "logistic"),
        ("mice_weibull", "weibull"),
        ("mice_lognormal", "lognormal"),
        ("mice_gaussian", "normal"),
        ("tobin_gaussian", "normal"),
    ],
)
def test_censored_fits_are_those_of_survreg(case, family):
    theirs, data = R[case], R[case.split("_")[0]]
    if case.startswith("lung"):
        sample: Any = Censored(data["time"], data["event"])
    elif case.startswith("tobin"):
        durable = np.array(data["durable"])
        sample = Censored(durable, durable > 0, side="left")
    else:
        lower = np.where(np.array(data["lower"]) == 0, np.nan, data["lower"])
        sample = Intervals(lower, [np.nan if u is None else u for u in data["upper"]])
    ours = fit(family, sample)
    place, V = in_their_terms(ours, family)
    assert ours.loglik == pytest.approx(theirs["loglik"], rel=1e-11)
    np.testing.assert_allclose(place, [theirs["mu"], theirs["log_scale"]], rtol=1e-7)
    np.testing.assert_allclose(V, theirs["vcov"], rtol=1e-5, atol=1e-5 * np.abs(theirs["vcov"]).max())


def test_a_t_with_fixed_df_is_that_of_survreg():
    sample, theirs = Censored(R["lung"]["time"], R["lung"]["event"]), R["lung_t4"]
    ours = fit("student t", sample, fixed={"df": 4.0})
    assert ours.loglik == pytest.approx(theirs["loglik"], rel=1e-11)
    assert ours["location"] == pytest.approx(theirs["mu"], rel=1e-7)
    assert ours.standard_errors["location"] == pytest.approx(np.sqrt(theirs["vcov"][0][0]), rel=1e-5)
    assert ours.standard_errors["df"] == 0.0
    assert ours.n_parameters == 2


def test_events_over_total_time():
    # the closed form, and survreg's intercept −ln(rate)
    time, event = np.array(R["lung"]["time"], dtype=float), np.array(R["lung"]["event"])
    ours = fit("exponential", Censored(time, event))
    assert ours["rate"] == pytest.approx(event.sum() / time.sum(), rel=1e-13)
    assert ours.standard_errors["rate"] == pytest.approx(ours["rate"] / np.sqrt(event.sum()), rel=1e-9)
    assert -np.log(ours["rate"]) == pytest.approx(R["lung_exponential"]["mu"], rel=1e-9)
    assert ours.loglik == pytest.approx(R["lung_exponential"]["loglik"], rel=1e-12)


def test_pearsons_crabs_as_one_normal():
    crabs = fit("normal", Binned(LIMITS, CRABS))
    assert crabs["mean"] == pytest.approx(0.644697, abs=5e-7)
    assert crabs["sd"] == pytest.approx(0.019054, abs=6e-7)
    assert crabs.loglik == pytest.approx(-2979.0593, abs=5e-5)
    assert crabs.certificate.converged


@pytest.mark.parametrize(
    "family", ["normal", "exponential", "lognormal", "poisson", "geometric", "von mises", "laplace"]
)
def test_closed_forms_are_where_a_numerical_search_ends(family):
    x = np.asarray(DRAWS[family], dtype=float)
    ours = fit(family, x)
    assert ours.certificate.method == "closed form"
    assert ours.certificate.gradient < 1e-12
    found = fit(family, x, start={name: 1.1 * value for name, value in ours.estimates.items()}, fixed={})
    assert found.estimates == ours.estimates  # a start changes nothing where there is a formula
    law = ours.family

    def density(v: Any, *theta: float) -> Any:
        return law.log_density(v, np.array(theta))

    bounds = {p.name: (p.link.low, p.link.high) for p in law.parameters}
    if family != "laplace":  # whose kinks stop Newton's method
        support = (-np.pi, np.pi) if family == "von mises" else (law.low, law.high)
        twin = Custom(density, {n: 1.2 * v for n, v in ours.estimates.items()}, bounds, support, law.discrete)
        other = fit(twin, x)
        near(other.values, ours.values, 1e-7)
        near(other.covariance, ours.covariance, 1e-6)
    shifts = [ours.values + h * e for h in (1e-4, -1e-4) for e in np.eye(len(ours.values))]
    assert all(law.log_density(x, theta).sum() < ours.loglik for theta in shifts)


@pytest.mark.parametrize("family", ["normal", "exponential", "lognormal", "poisson", "binomial"])
def test_standard_errors_of_closed_forms(family):
    x = np.asarray(DRAWS["gamma" if family in ("normal", "exponential", "lognormal") else "poisson"], dtype=float)
    n, errors = len(x), None
    est = fit(Binomial(20) if family == "binomial" else family, x)
    first = est.values[0]
    if family in ("normal", "lognormal"):
        errors = [est.values[1] / np.sqrt(n), est.values[1] / np.sqrt(2 * n)]
    elif family == "binomial":
        errors = [np.sqrt(first * (1 - first) / (20 * n))]
    else:
        errors = [first / np.sqrt(n) if family == "exponential" else np.sqrt(first / n)]
    np.testing.assert_allclose(list(est.standard_errors.values()), errors, rtol=1e-9)


@pytest.mark.parametrize(
    ("family", "name"),
    [("gamma", "gamma"), ("weibull", "weibull_min"), ("student t", "t"), ("logistic", "logistic"), ("beta", "beta")],
)
def test_our_families_agree_with_scipys_fit_and_with_its_densities(family, name):
    x = DRAWS[family]
    ours, twin = fit(family, x), fit(Scipy(name), x)
    assert twin.loglik == pytest.approx(ours.loglik, rel=1e-12)
    fixed = {"floc": 0} if family in ("gamma", "weibull", "beta") else {}
    fixed |= {"fscale": 1} if family == "beta" else {}
    theirs = getattr(stats, name).fit(x, **fixed)
    best = getattr(stats, name).logpdf(x, *theirs).sum()
    assert best <= ours.loglik + 1e-9
    assert best == pytest.approx(ours.loglik, rel=1e-7)


@pytest.mark.parametrize("name", ["gumbel_r", "genextreme", "skewnorm", "invgauss", "nakagami", "cauchy", "lomax"])
def test_any_distribution_of_scipy_reaches_at_least_its_own_fit(name):
    positive = name in ("invgauss", "nakagami", "lomax")
    x = rng.gamma(2.0, 1.0, 120) if positive else rng.gumbel(1.0, 2.0, 120)
    x = rng.pareto(2.0, 120) if name == "lomax" else x
    ours = fit(name, x)
    assert ours.certificate.converged
    law = getattr(stats, name)
    theirs = law.logpdf(x, *law.fit(x, **({"floc": 0} if positive else {}))).sum()
    assert ours.loglik >= theirs - 1e-6


def test_counts_of_scipy_are_fitted_too():
    x = np.random.default_rng(0).logseries(0.6, 200)
    ours = fit("logser", x)
    with mpmath.workdps(30):  # the mean is −p/((1−p) ln(1−p))
        mean = mpmath.mpf(int(x.sum())) / len(x)
        exact = mpmath.findroot(lambda p: -p / ((1 - p) * mpmath.log(1 - p)) - mean, 0.6)
    assert ours["p"] == pytest.approx(float(exact), rel=1e-10)


def test_gamma_to_fifteen_digits():
    x = [0.5, 1.25, 2.0, 3.5, 8.0]
    with mpmath.workdps(40):
        values = [mpmath.mpf(v) for v in x]
        mean = mpmath.fsum(values) / 5
        gap = mpmath.log(mean) - mpmath.fsum(mpmath.log(v) for v in values) / 5
        a = mpmath.findroot(lambda a: mpmath.log(a) - mpmath.digamma(a) - gap, 1.5)
        information = 5 * mpmath.matrix([[mpmath.psi(1, a), -mean / a], [-mean / a, mean**2 / a]])
        V = information**-1
        loglik = mpmath.fsum(
            a * mpmath.log(a / mean) - mpmath.loggamma(a) + (a - 1) * mpmath.log(v) - a / mean * v for v in values
        )
    ours = fit("gamma", x)
    assert ours["shape"] == pytest.approx(float(a), rel=1e-13)
    assert ours["rate"] == pytest.approx(float(a / mean), rel=1e-13)
    assert ours.loglik == pytest.approx(float(loglik), rel=1e-14)
    near(ours.covariance, [[float(V[0, 0]), float(V[0, 1])], [float(V[1, 0]), float(V[1, 1])]], 1e-9)


def test_truncated_closed_forms():
    x = np.random.default_rng(1).exponential(2.0, 60)
    seen = x[x > 0.7]
    ours = fit("exponential", seen, truncated=(0.7, INF))
    assert ours["rate"] == pytest.approx(1 / (seen.mean() - 0.7), rel=1e-12)  # no memory
    counts = np.array([1, 1, 2, 3, 1, 5, 2, 2])
    zeroless = fit("poisson", counts, truncated=(1, INF))
    m = counts.mean()  # rate/(1 − e^(−rate)) = m, so rate = m + W(−m e^(−m))
    assert zeroless["rate"] == pytest.approx(m + float(lambertw(-m * np.exp(-m)).real), rel=1e-12)
    geometric = fit("geometric", counts + 2, truncated=(3, INF))
    assert geometric["theta"] == pytest.approx(1 / m, rel=1e-11)
    entry = np.array([0.1, 0.5, 0.2, 1.0])
    late = fit("exponential", Censored([1.0, 2.0, 0.9, 4.0], [1, 1, 0, 1]), truncated=(entry, INF))
    assert late["rate"] == pytest.approx(3 / (7.9 - entry.sum()), rel=1e-11)  # events over time at risk


def test_a_doubly_truncated_normal_against_mpmath():
    x = np.array([-0.9, -0.2, 0.1, 0.4, 0.45, 0.8])
    ours = fit("normal", x, truncated=(-1.0, 1.0))
    with mpmath.workdps(30):

        def loglik(m: Any, s: Any) -> Any:
            window = mpmath.ncdf((1 - m) / s) - mpmath.ncdf((-1 - m) / s)
            return mpmath.fsum(-(((mpmath.mpf(float(v)) - m) / s) ** 2) / 2 - mpmath.log(s * window) for v in x)

        slopes = [mpmath.diff(loglik, (ours["mean"], ours["sd"]), order) for order in ((1, 0), (0, 1))]
        H = [
            [mpmath.diff(loglik, (ours["mean"], ours["sd"]), o) for o in row]
            for row in (((2, 0), (1, 1)), ((1, 1), (0, 2)))
        ]
    assert max(abs(float(s)) for s in slopes) < 1e-8
    near(ours.covariance @ -np.array(H, dtype=float), np.eye(2), 1e-7)


def test_whole_numbers_in_classes_behind_a_window():
    counts, edges = np.array([14, 9, 4]), [-1, 2, 4, 9]
    ours = fit("poisson", Binned(edges, counts), truncated=(1, 8))  # classes 1–2, 3–4, 5–8 of what can be seen

    def loglik(rate: float) -> float:
        p = stats.poisson.pmf(np.arange(9), rate)
        shares = np.array([p[1:3].sum(), p[3:5].sum(), p[5:9].sum()]) / p[1:9].sum()
        return float(counts @ np.log(shares))

    assert ours.loglik == pytest.approx(loglik(ours["rate"]), rel=1e-13)
    assert all(loglik(ours["rate"] + h) < ours.loglik for h in (-1e-4, 1e-4))
    h = 1e-3
    curve = -(loglik(ours["rate"] + h) - 2 * ours.loglik + loglik(ours["rate"] - h)) / h**2
    assert ours.standard_errors["rate"] == pytest.approx(curve**-0.5, rel=1e-5)
    assert ours.goodness(least=0).expected.sum() == pytest.approx(27.0)


def test_narrow_classes_are_values():
    x = DRAWS["weibull"]
    fine = fit("weibull", Intervals(x * (1 - 1e-9), x * (1 + 1e-9)))
    near(fine.values, fit("weibull", x).values, 1e-7)
    log_width = np.log(2e-9 * x).sum()
    assert fine.loglik == pytest.approx(fit("weibull", x).loglik + log_width, rel=1e-8)  # the ends are rounded


def test_classes_are_the_same_whichever_way_they_come():
    binned = fit("gamma", Binned([0, 1, 2, 4, INF], [5, 9, 7, 2]))
    lower, upper = np.repeat([0, 1, 2, 4], [5, 9, 7, 2]), np.repeat([1, 2, 4, INF], [5, 9, 7, 2])
    listed = fit("gamma", Intervals(lower, upper))
    near(binned.values, listed.values, 1e-9)
    near(binned.covariance, listed.covariance, 1e-7)


@pytest.mark.parametrize("family", [name for name in DRAWS if name != "student t"])
@settings(max_examples=5)
@given(seed=st.integers(0, 10_000))
def test_a_weight_is_a_repetition(family, seed):
    w = np.random.default_rng(seed).integers(0, 4, len(DRAWS[family]))
    weighted, repeated = fit(family, DRAWS[family], sample_weight=w), fit(family, np.repeat(DRAWS[family], w))
    near(weighted.values, repeated.values, 1e-9)
    near(weighted.covariance, repeated.covariance, 1e-6)
    assert weighted.loglik == pytest.approx(repeated.loglik, rel=1e-11)
    assert weighted.bic == pytest.approx(repeated.bic, rel=1e-11)


CONTINUOUS = ("normal", "logistic", "laplace", "student t", "exponential", "gamma", "weibull", "lognormal")


@pytest.mark.parametrize("family", CONTINUOUS)
@settings(max_examples=6)
@given(power=st.sampled_from([-8, -3, 2, 8]), shift=st.sampled_from([0.0, -1e4, 1e8]), kind=st.integers(0, 2))
def test_units_change_nothing_but_units(family, power, shift, kind):
    scale, law = 10.0**power, fit(family, DRAWS[family]).family
    located = any(p.kind == "location" for p in law.parameters)
    z = np.round(DRAWS[family], 3) if located else DRAWS[family]
    move = shift if located else 0.0  # in units of z: a mean of 1e8 standard deviations

    def sample(v: Any) -> Any:
        top = np.quantile(v, 0.8)
        return [v, Censored(np.minimum(v, top), v <= top), Intervals(v, np.where(v > top, INF, v))][kind]

    x = (z + move) * scale
    one, other = fit(family, sample(z)), fit(family, sample(x))
    digits = 1e-7 + 1e-15 * abs(move)
    for parameter, a, b in zip(law.parameters, one.values, other.values, strict=True):
        back = {"location": b / scale - move, "scale": b / scale, "rate": b * scale, "log": b - np.log(scale)}
        assert back.get(parameter.kind, b) == pytest.approx(a, rel=10 * digits, abs=10 * digits + 2e-16 * abs(move))
    points = len(z) if kind == 0 else int(np.sum(z <= np.quantile(z, 0.8)))
    assert other.loglik + points * np.log(scale) == pytest.approx(one.loglik, rel=1e-6 + 10 * digits)
    assert other.certificate.converged


def test_likelihood_falls_in_every_direction_from_a_certified_maximum():
    for family in ("gamma", "student t", "beta", "negative binomial", "weibull"):
        est = fit(family, DRAWS[family])
        assert est.certificate.gradient < 1e-9
        errors = np.sqrt(np.diag(est.covariance))
        for direction in np.random.default_rng(0).normal(size=(20, len(errors))):
            moved = est.values + 0.02 * errors * direction
            fall = est.loglik - est.family.log_density(DRAWS[family].astype(float), moved).sum()
            d = moved - est.values
            assert fall == pytest.approx(0.5 * d @ np.linalg.solve(est.covariance, d), rel=0.05)


def test_objective_never_increases():
    trace = fit("student t", DRAWS["student t"]).certificate.objective
    assert np.all(np.diff(trace) <= 0)


@pytest.mark.parametrize(
    ("family", "data", "value", "words"),
    [
        ("bernoulli", [1, 1, 1], 1.0, "all flips are heads: the maximum is at theta = 1; interval by profile"),
        ("bernoulli", [0, 0], 0.0, "all flips are tails"),
        (Binomial(4), [4, 4], 1.0, "all trials are successes"),
        ("poisson", [0, 0, 0], 0.0, "all counts are 0"),
        ("geometric", [1, 1], 1.0, "all values are 1"),
        ("geometric", Censored([3, 4], [0, 0]), 0.0, "no success was seen"),
        ("exponential", Censored([3.0, 4.0], [0, 0]), 0.0, "no event was seen"),
    ],
)
def test_a_maximum_at_the_boundary_is_named(family, data, value, words):
    est = fit(family, data)
    assert est.values[0] == value
    assert est.loglik == 0.0
    assert est.certificate.converged
    assert words in est.certificate.notes[0]
    assert np.isnan(list(est.standard_errors.values())).all()
    assert words in repr(est)


def test_a_boundary_is_found_by_the_search_too():
    est = fit("poisson", [1, 1, 1], truncated=(1, INF))  # nothing above the smallest value that could be seen
    assert est["rate"] == 0.0
    assert est.loglik == pytest.approx(0.0, abs=1e-6)
    assert "rate → 0" in est.certificate.notes[0]


def test_counts_without_extra_variance_are_poisson():
    x = np.array([3, 4, 4, 5, 5, 6, 4])
    est, poisson = fit("negative binomial", x), fit("poisson", x)
    assert est["size"] == INF
    assert est["mean"] == pytest.approx(poisson["rate"])
    assert est.loglik == pytest.approx(poisson.loglik, rel=1e-13)
    assert est.standard_errors["mean"] == pytest.approx(poisson.standard_errors["rate"])
    assert "the Poisson family" in est.certificate.notes[0]


def test_short_tails_are_normal():
    x = np.linspace(-1, 1, 41)
    est, normal = fit("student t", x), fit("normal", x)
    assert est["df"] == INF
    assert est["scale"] == pytest.approx(normal["sd"], rel=1e-12)
    assert est.loglik == pytest.approx(normal.loglik, rel=1e-12)
    assert "df = ∞, the normal family" in est.certificate.notes[0]
    np.testing.assert_allclose(est.log_density(x), normal.log_density(x))


def test_directions_that_cancel_are_uniform():
    est = fit("von mises", [0.0, np.pi / 2, np.pi, -np.pi / 2])
    assert est["kappa"] == 0.0
    assert np.isnan(est["mean"])
    assert est.loglik == pytest.approx(-4 * np.log(2 * np.pi))
    assert "no mean direction" in est.certificate.notes[0]


@pytest.mark.parametrize(
    ("family", "data", "message"),
    [
        ("normal", [3.0, 3.0], "All observed values are 3: .* as sd → 0"),
        ("normal", [3.0], "There is 1 sample"),
        ("logistic", [3.0, 3.0], "scale → 0"),
        ("laplace", [3.0, 3.0], "scale → 0"),
        ("student t", [3.0, 3.0], "scale → 0"),
        ("gamma", [2.0, 2.0], "shape → ∞"),
        ("weibull", [2.0, 2.0], "shape → ∞"),
        ("weibull", Censored([5.0, 1.0, 2.0], [1, 0, 0]), "lies in every censoring interval"),
        ("lognormal", [2.0, 2.0], "sdlog → 0"),
        ("beta", [0.5, 0.5], r"a \+ b → ∞"),
        ("von mises", [1.0, 1.0], "All angles are equal"),
        ("exponential", [0.0, 0.0], "rate → ∞"),
        ("normal", Censored([1.0, 2.0], [0, 0]), "All observations are censored"),
        ("weibull", Censored([1.0, 2.0], [0, 0]), "All observations are censored"),
        ("normal", Binned([0, 1, 2], [0, 7]), "one interval, 1 to 2"),
        ("normal", Binned([0, 1, 2, 3], [5, 5, 0]), "meet at 1: as sd → 0"),
        ("poisson", Censored([2, 3], [0, 0]), "rate → ∞"),
        ("negative binomial", [0, 0], "All counts are 0"),
        ("negative binomial", Censored([2, 3], [0, 0]), "mean → ∞"),
        ("multivariate normal", [[1.0, 2.0], [2.0, 3.0]], "There are 2 rows for 2 columns"),
        ("multivariate normal", [[1.0, 2.0]], "There is 1 sample"),
        ("multivariate normal", [[1.0, 2.0], [1.0, 3.0], [1.0, 5.0]], "Column 0 is constant"),
        ("multivariate normal", [[1.0, 2.0], [2.0, 4.0], [4.0, 8.0]], "Columns 0, 1 are linearly dependent"),
    ],
)
def test_a_likelihood_without_a_maximum_is_refused_with_the_reason(family, data, message):
    with pytest.raises(NoMaximumError, match=message):
        fit(family, data)


def test_a_truncated_normal_that_wants_to_be_exponential_is_refused():
    x = np.abs(np.random.default_rng(0).standard_cauchy(100))
    with pytest.raises(NoMaximumError, match="→ −∞"):
        fit("normal", x, truncated=(0, INF))


@pytest.mark.parametrize(
    ("family", "data", "message"),
    [
        ("gamma", [1.0, 0.0], r"Record 1 \(0\) is outside the support \(0, inf\) of the gamma family"),
        ("beta", [0.5, 1.0], r"Record 1 \(1\)"),
        ("poisson", [1.0, 2.5], "no whole number"),
        ("poisson", [-1], r"outside the support \{0, 1, …\}"),
        (Binomial(3), [4], r"\{0, 1, …, 3\}"),
        ("geometric", [0], r"\{1, 2, …\}"),
        ("von mises", Intervals([0.0], [INF]), "two finite ends"),
        ("von mises", Intervals([0.0, 1.0], [8.0, 2.0]), "no arc"),
        ("categorical", [1.0, np.nan], "Label 1 is missing"),
        (Categorical(["a"]), ["a", "b"], "Label .*b.* of observation 1"),
        ("multivariate normal", [[1.0, np.inf], [0.0, 1.0]], "Row 1, column 2 is inf"),
    ],
)
def test_impossible_data_are_named(family, data, message):
    with pytest.raises(ValueError, match=message):
        fit(family, data)


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="'mu'"):
        fit("normal", [1.0, 2.0], fixed={"mu": 0})
    with pytest.raises(ValueError, match="= -1"):
        fit("normal", [1.0, 2.0], start={"sd": -1})
    with pytest.raises(ValueError, match="tol"):
        fit("normal", [1.0, 2.0], tol=0)
    with pytest.raises(ValueError, match="categorical"):
        fit("categorical", ["a"], fixed={"a": 1})
    with pytest.raises(KeyError, match="no parameter 'mu'"):
        fit("normal", [1.0, 2.0])["mu"]


def test_too_few_steps_are_warned_about():
    with pytest.warns(ConvergenceWarning, match=r"1 steps.*max_iter"):
        est = fit("student t", DRAWS["student t"], max_iter=1)
    assert not est.certificate.converged


def test_fixed_parameters_are_held():
    x = DRAWS["gamma"]
    est = fit("gamma", x, fixed={"shape": 1.0})
    assert est["shape"] == 1.0
    assert est["rate"] == pytest.approx(1 / x.mean(), rel=1e-12)  # an exponential
    assert est.aic == pytest.approx(fit("exponential", x).aic, rel=1e-12)
    same = fit("normal", [3.0, 3.0], fixed={"sd": 2.0})
    assert same["mean"] == pytest.approx(3.0)
    held = fit("normal", [1.0, 2.0], fixed={"mean": 0.0, "sd": 1.0})
    assert held.loglik == pytest.approx(stats.norm.logpdf([1.0, 2.0]).sum())
    assert held.n_parameters == 0


def test_laplace_with_censored_and_rounded_records_is_at_its_highest_point():
    x = np.round(DRAWS["laplace"], 2)
    top = np.quantile(x, 0.7)
    est = fit("laplace", Censored(np.minimum(x, top), x <= top))
    censored = x > top

    def value(m: float, b: float) -> float:
        return float(stats.laplace.logpdf(x[~censored], m, b).sum() + censored.sum() * stats.laplace.logsf(top, m, b))

    assert est.loglik == pytest.approx(value(*est.values), rel=1e-13)
    grid = [value(m, b) for m in np.unique(x) for b in est["scale"] * np.linspace(0.9, 1.1, 21)]
    assert est.loglik >= max(grid)
    assert "kink" in est.certificate.notes[0]
    a = np.floor(x)
    binned = fit("laplace", Intervals(a, a + 1.0))
    assert binned.certificate.gradient < 1e-9
    mixed = fit("laplace", Intervals(np.where(x > 3, x, a), np.where(x > 3, x, a + 1.0)))
    assert mixed.certificate.gradient < 1e-6
    law, late, early = mixed.family, x[x > 3], a[x <= 3]
    places = mixed.values + np.array([[1e-3, 0], [-1e-3, 0], [0, 1e-3], [0, -1e-3], [0, 0]])
    shifted = [law.log_density(late, t).sum() + law.log_interval(early, early + 1.0, t).sum() for t in places]
    assert int(np.argmax(shifted)) == 4


def test_a_density_of_ones_own():
    def rayleigh(x: Any, s: float) -> Any:
        return np.log(x / s**2) - x**2 / (2 * s**2)

    law = Custom(rayleigh, {"s": 1.0}, {"s": (0, INF)}, (0, INF))
    x = DRAWS["weibull"]
    est = fit(law, x)
    assert est["s"] == pytest.approx(np.sqrt(np.mean(x**2) / 2), rel=1e-10)
    assert est.standard_errors["s"] == pytest.approx(est["s"] / np.sqrt(4 * len(x)), rel=1e-7)
    censored = fit(law, Censored(np.minimum(x, 3.0), x <= 3.0))
    events = np.sum(x <= 3.0)
    assert censored["s"] == pytest.approx(np.sqrt(np.sum(np.minimum(x, 3.0) ** 2) / (2 * events)), rel=1e-9)
    with pytest.raises(ValueError, match="2 over"):
        fit(Custom(lambda x, s: np.log(2) + rayleigh(x, s), {"s": 1.0}, {"s": (0, INF)}, (0, INF)), x)


def test_labels():
    est = fit("categorical", ["b", "a", "b", "c"], sample_weight=[1, 1, 2, 0])
    assert est.estimates == {"theta[a]": 0.25, "theta[b]": 0.75}
    assert est.loglik == pytest.approx(np.log(0.25) + 3 * np.log(0.75))
    near(est.covariance, (np.diag([0.25, 0.75]) - np.outer([0.25, 0.75], [0.25, 0.75])) / 4)
    np.testing.assert_allclose(est.log_density(["a", "b"]), np.log([0.25, 0.75]))
    listed = fit(Categorical([0, 1, 2]), [0, 0, 1])
    assert "theta[2] is 0: the maximum is at the boundary" in listed.certificate.notes[0]
    drawn = est.draw(500, 0)
    assert set(drawn) == {"a", "b"}
    assert abs(np.mean(drawn == "b") - 0.75) < 0.1
    with pytest.raises(ValueError, match="categorical is none"):
        est.goodness()


def test_rows():
    X = np.random.default_rng(0).normal(size=(50, 3)) @ np.array([[1.0, 0.5, 0.0], [0, 1, 0.3], [0, 0, 2]]) + 1e8
    w = np.random.default_rng(1).integers(0, 3, 50)
    est, again = fit("multivariate normal", X, sample_weight=w), fit("multivariate normal", np.repeat(X, w, axis=0))
    S = np.cov(X.T, fweights=w, ddof=0)
    assert est["cov[0,1]"] == pytest.approx(S[0, 1], rel=1e-6)
    near(est.values[3:], again.values[3:], 1e-10)
    expected = stats.multivariate_normal(np.average(X, axis=0, weights=w), S).logpdf(X) @ w
    assert est.loglik == pytest.approx(expected, rel=1e-7)
    assert est.certificate.gradient < 1e-6
    np.testing.assert_allclose(est.log_density(X) @ w, est.loglik, rtol=1e-7)
    column = fit("normal", X[:, 1], sample_weight=w)
    assert est.standard_errors["mean[1]"] == pytest.approx(column.standard_errors["mean"], rel=1e-8)
    n, v = w.sum(), S[1, 1]
    assert est.standard_errors["cov[1,1]"] == pytest.approx(v * np.sqrt(2 / n), rel=1e-6)
    assert est.standard_errors["cov[0,1]"] == pytest.approx(np.sqrt((S[0, 0] * v + S[0, 1] ** 2) / n), rel=1e-6)
    assert est.draw(7, 0).shape == (7, 3)
    near(np.cov((est.draw(20_000, 1) - 1e8).T), S, 0.1)


def test_families_are_ranked_on_one_sample():
    x = DRAWS["gamma"]
    ranked = compare(["normal", "gamma", "exponential", "beta", "lognormal"], x)
    aic = [e.aic for e in ranked.estimates]
    assert aic == sorted(aic)
    assert ranked.best.aic == aic[0]
    assert ranked["normal"].loglik == fit("normal", x).loglik
    assert list(ranked.failed) == ["beta"]
    assert ranked.weights.sum() == pytest.approx(1.0)
    assert "not beta: Record" in repr(ranked)
    table = ranked.table()
    np.testing.assert_allclose(table["difference"], np.array(aic) - aic[0])
    by_bic = compare(["normal", "exponential"], x, by="bic")
    assert by_bic.best.bic == min(e.bic for e in by_bic.estimates)
    with pytest.raises(ValueError, match="together"):
        compare(["normal", "poisson"], [0.5, 1.0, 2.0])
    both = compare(["normal", "poisson"], Binned([-INF, 1.5, 3.5, 5.5, INF], [9, 30, 20, 4]))
    assert len(both.estimates) == 2
    with pytest.raises(ValueError, match="by must be"):
        compare(["normal"], x, by="r2")
    with pytest.raises(ValueError, match="family"):
        compare(["beta"], x)
    with pytest.raises(ValueError, match="labels or rows"):
        compare(["categorical"], x)
    with pytest.raises(KeyError, match="'cauchy' is none"):
        ranked["cauchy"]


def test_counts_and_continuous_families_are_ranked_on_whole_numbers():
    x = np.random.default_rng(3).normal(70.0, 13.6, 272).round()
    ranked = compare(["poisson", "normal", "gamma"], x)
    assert ranked.best.family.name == "normal"
    assert any("whole numbers" in note for note in ranked.notes)
    # both are probabilities: of a count, and of what is rounded to it
    mean, sd = ranked["normal"].values
    near(ranked["normal"].loglik, np.log(stats.norm(mean, sd).cdf(x + 0.5) - stats.norm(mean, sd).cdf(x - 0.5)).sum())
    near(ranked["poisson"].loglik, stats.poisson(x.mean()).logpmf(x).sum())
    # rounding adds 1/12 to the variance (Sheppard)
    near(sd**2, x.var() - 1 / 12, 1e-5)
    shape, rate = ranked["gamma"].values
    law = stats.gamma(shape, scale=1 / rate)
    near(ranked["gamma"].loglik, np.log(law.cdf(x + 0.5) - law.cdf(x - 0.5)).sum())
    again = compare(["poisson", "normal"], x, truncated=(20, 200))
    window = stats.norm(*again["normal"].values)
    seen = np.log((window.cdf(x + 0.5) - window.cdf(x - 0.5)) / (window.cdf(200.5) - window.cdf(19.5))).sum()
    near(again["normal"].loglik, seen)


def test_names_of_scipy_and_r_are_known():
    assert fit("norm", DRAWS["normal"]).certificate.method == "closed form"
    assert fit("expon", DRAWS["gamma"]).family.name == "exponential"


def test_an_estimate_can_be_kept():
    est = pickle.loads(pickle.dumps(fit("gamma", DRAWS["gamma"])))
    assert est.estimates == fit("gamma", DRAWS["gamma"]).estimates
    assert est.profile()["shape"][0] < est["shape"]


@pytest.mark.parametrize(
    ("family", "fixed", "how"),
    [
        ("normal", {"mean": 5.0}, "sd → 0"),
        ("laplace", {"location": 5.0}, "scale → 0"),
        ("logistic", {"location": 5.0}, "scale → 0"),
        ("student t", {"location": 5.0}, "scale → 0"),
        ("student t", {"df": 3.0}, "scale → 0"),
        ("lognormal", {"meanlog": np.log(5.0)}, "sdlog → 0"),
        ("weibull", {"scale": 5.0}, "shape → ∞"),
    ],
)
def test_a_parameter_held_at_the_only_value_leaves_no_maximum(family, fixed, how):
    with pytest.raises(NoMaximumError, match=how):
        fit(family, [5.0, 5.0, 5.0, 5.0], fixed=fixed)


def test_a_parameter_held_elsewhere_leaves_one():
    assert fit("normal", [5.0, 5.0], fixed={"mean": 4.0})["sd"] == pytest.approx(1.0)
    assert fit("normal", [5.0, 5.0], fixed={"sd": 4.0})["mean"] == 5.0
    with pytest.raises(NoMaximumError, match="one interval"):
        fit("normal", Binned([0, 1, 2], [0, 7]), fixed={"mean": 1.5})


def test_the_limit_of_a_family_is_named_with_a_parameter_held():
    est = fit("negative binomial", [1, 2, 2, 3, 1, 2], fixed={"mean": 2.0})
    assert est["size"] == INF
    assert est.loglik == pytest.approx(stats.poisson.logpmf([1, 2, 2, 3, 1, 2], 2.0).sum())


@pytest.mark.parametrize(("m", "truncated"), [(50.0, None), (200.0, None), (1000.0, None), (50.0, (-300, 5000))])
def test_a_custom_peak_away_from_zero_is_not_missed(m, truncated):
    law = Custom(lambda x, m: -((x - m) ** 2) / 2 - 0.5 * np.log(2 * np.pi), start={"m": m})
    assert fit(law, [m + 1, m + 2, m + 3], truncated=truncated)["m"] == pytest.approx(m + 2)


@pytest.mark.parametrize(
    ("family", "data"),
    [
        ("normal", Binned([0, 1, 2, 3], [0, 10, 5])),
        ("gamma", Binned([0, 1, 2, INF], [5, 5, 0])),
        ("normal", Binned([-INF, 0, 1, INF], [5, 5, 0])),
    ],
)
def test_classes_that_meet_at_one_edge_have_no_maximum(family, data):
    with pytest.raises(NoMaximumError, match="meet at"):
        fit(family, data)


def test_counts_at_the_end_of_their_window_have_no_maximum():
    for family, name in (("poisson", "rate"), ("negative binomial", "mean")):
        with pytest.raises(NoMaximumError, match=f"{name} → ∞"):
            fit(family, [3, 3], truncated=(0, 3))


def test_a_bad_start_is_no_proof_that_there_is_no_maximum():
    est = fit("weibull", [1, 2, 4.0], start={"shape": 50.0, "scale": 0.01})
    assert est.values == pytest.approx(fit("weibull", [1, 2, 4.0]).values)


def test_probabilities_of_large_counts_keep_their_digits():
    with mpmath.workdps(50):
        rate = mpmath.mpf(10) ** 15 + 50
        terms = [k * mpmath.log(rate) - rate - mpmath.loggamma(k + 1) for k in (rate - 50, rate + 50)]
        n, k = mpmath.mpf(10) ** 12, mpmath.mpf(4) * 10**11
        share = mpmath.log(mpmath.binomial(n, k)) + k * mpmath.log(k / n) + (n - k) * mpmath.log1p(-k / n)
        exact = float(sum(terms)), float(share)
    assert fit("poisson", [1e15, 1e15 + 100]).loglik == pytest.approx(exact[0], rel=1e-12)
    assert fit(Binomial(10**12), [4 * 10**11]).loglik == pytest.approx(exact[1], rel=1e-9)


@pytest.mark.parametrize("option", [{"bootstrap": -3}, {"bootstrap": 2.5}, {"least": -3}, {"least": INF}])
def test_goodness_refuses_options_that_mean_nothing(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        fit("normal", [1.0, 2.0, 4.0]).goodness(**option)


def test_other_data_are_seen_through_the_window_of_the_fit():
    est = fit("exponential", [1.5, 2.0, 4.0], truncated=(1, INF))
    assert est.refit([1.5, 2.0, 4.0])["rate"] == pytest.approx(est["rate"])
    with pytest.raises(ValueError, match="outside the limits"):
        est.goodness([0.5, 2.0])
    expected = est.goodness(Binned([1, 2, 3, INF], [10, 5, 3]), least=0).expected
    assert expected == pytest.approx(18 * np.diff(stats.expon.cdf([0, 1, 2, INF], scale=1.5)))
    late = fit("exponential", [1.5, 2.0, 4.0], truncated=([1, 1, 2], INF))
    with pytest.raises(ValueError, match="for each record"):
        late.refit([3.0, 4.0])


def test_notes_say_what_is_true():
    left = fit("poisson", Censored([3, 2], [0, 0], side="left"))
    assert left.certificate.notes[0].startswith("all counts may be 0")
    with pytest.raises(NoMaximumError, match="→ ∞"):
        fit("normal", [0, 0.2, 0.5, 0.8, 1], truncated=(0, 1))


def test_a_location_of_scipy_may_be_held_where_it_is_or_elsewhere():
    x = np.array([1.0, 2.0, 4.0, 3.0])
    assert fit("invgauss", x, fixed={"loc": 0}).values == pytest.approx(fit("invgauss", x).values)
    est = fit("invgauss", x, fixed={"loc": 0.5})
    mu, _, scale = stats.invgauss.fit(x, floc=0.5)
    assert (est["mu"], est["loc"], est["scale"]) == pytest.approx((mu, 0.5, scale), rel=1e-4)
    with pytest.raises(ValueError, match="subtract"):
        fit("logser", [1, 2, 4], fixed={"loc": 1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit("bernoulli", ["H", "T", "H"]), "x == 'H'"),
        (lambda: Binned(["a", 1], [1]), "edges must be numbers; row 1 has 'a'"),
        (lambda: fit("normal", [1.0, 2.0], fixed={"sd": "a"}), "no number"),
        (lambda: Binomial([10, 5]), "one number of trials"),
        (lambda: fit("categorical", ["a", None]), r"missing \(None\)"),
        (lambda: fit("categorical", np.array(["a", 1], dtype=object)), "no order"),
        (lambda: compare([], [1.0, 2.0]), "families is empty"),
        (lambda: fit("multivariate normal", [[1, 2.0], [2, 3], [1, 5]]).wald(transformed=True), "use profile"),
        (lambda: fit("nbinom", [1, 2]), '"negative binomial"'),
        (lambda: fit("binom", [1, 2]), r"Binomial\(n\)"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_one_name_may_come_without_a_list():
    assert compare("normal", [1.0, 2.0, 4.0]).best.family.name == "normal"
    assert list(fit("normal", [1.0, 2.0, 4.0]).profile(names="mean")) == ["mean"]


def test_zeros_beside_times_censored_at_once_are_refused():
    with pytest.raises(NoMaximumError, match="be 0"):
        fit("exponential", Censored([0.0, 0.0], [0, 1]))


def test_equal_angles_with_their_spread_held_have_their_mean_there():
    est = fit("von mises", [0.25] * 4, truncated=(-0.5, 1.0), fixed={"kappa": 2.0})
    assert est["mean"] == pytest.approx(0.25)  # the middle of the window: its derivative vanishes too


def test_evidence_and_criteria_of_a_ranking_are_their_formulas():
    x = DRAWS["gamma"]
    ranked = compare(["normal", "gamma", "exponential"], x, by="loglik")
    heights, aic = np.array([e.loglik for e in ranked.estimates]), np.array([e.aic for e in ranked.estimates])
    assert (np.diff(heights) <= 0).all()
    np.testing.assert_allclose(ranked.criteria, -heights)
    np.testing.assert_allclose(ranked.weights, np.exp(-aic / 2) / np.exp(-aic / 2).sum(), rtol=1e-9)
    np.testing.assert_allclose(aic, [2 * e.n_parameters - 2 * e.loglik for e in ranked.estimates])
    np.testing.assert_allclose(
        [e.bic for e in ranked.estimates], [np.log(len(x)) * e.n_parameters - 2 * e.loglik for e in ranked.estimates]
    )
    with pytest.raises(ValueError, match="together"):  # one exact value is enough
        compare(["normal", "poisson"], Intervals([1, 2, 3, 0], [1, 4, 5, 2]))


@pytest.mark.parametrize("method", ["log_density", "cdf"])
def test_masked_values_are_no_numbers_for_a_fitted_distribution_either(method):
    est = fit("normal", [1.0, 2.0, 4.0])
    with pytest.raises(ValueError, match="masked at entry 2"):
        getattr(est, method)(np.ma.masked_array([1.0, 1e9], mask=[False, True]))
